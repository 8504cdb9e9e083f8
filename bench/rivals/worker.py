"""The process of one rival: reads commands as lines of JSON, answers in lines of JSON, and does nothing in between.

Commands: {"do": "setup", "bench": "train"|"eager", "row", "threads"} -> {"compile_s", "loss", "versions"}
          {"do": "setup", "bench": "infer", "row", "threads", "model", "inputs", "networks"} -> {"compile_s", "peak_mb", "versions"}
          {"do": "run", "steps"|"seconds"} -> {"times_ms", "losses"}      {"do": "facts"} -> {"peak_mb"}      {"do": "quit"}
          {"do": "outputs", "path"} -> {}, the outputs of a run in an .npz      {"do": "peak", "threads"} -> {"gflops"}, of ours only
An answer with "missing" says that a package is not there, one with "error" what went wrong.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
INFER, LEAST_RUNS = "infer_rows", 3
MODULES = {
    "jumar": "mindspore_rows",
    "mindspore": "mindspore_rows",
    "torch": "torch_rows",
    "torch.compile": "torch_rows",
    "jax": "jax_rows",
}


class Rival:
    """A row that is set up: `step(i)` runs one step and returns its loss, `many(n)` runs one thing n times, `once()` is a model's outputs."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.step: Callable[[int], float] | None = None
        self.many: Callable[[int], None] | None = None
        self.once: Callable[[], list[Any]] | None = None
        self.at = 0

    def setup(self, bench: str, row: str, threads: int, **model: str) -> dict[str, Any]:
        base = engine_name(self.engine)
        if bench == "infer":
            return self.setup_model(row, threads, **model)
        if base == "jumar":
            sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))
            from jumar.tools.alias import as_mindspore

            as_mindspore()
        module = importlib.import_module(f"rivals.{MODULES[base]}")
        versions = module.prepare(self.engine, threads)
        start = time.perf_counter()
        if bench == "eager":
            self.many = module.eager(self.engine, row)
            self.many(1)
            return {"compile_s": time.perf_counter() - start, "versions": versions}
        self.step = module.train(self.engine, row)
        built = time.perf_counter()
        loss = self.step(0)
        self.at = 1
        return {"compile_s": time.perf_counter() - built, "build_s": built - start, "loss": loss, "versions": versions}

    def setup_model(self, row: str, threads: int, model: str, inputs: str, networks: str) -> dict[str, Any]:
        """Loads a model and runs it three times; what the process needed until then is the engine's peak memory."""
        if engine_name(self.engine) == "jumar":
            sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))
        rows = importlib.import_module(f"rivals.{INFER}")
        prepared = rows.prepare(self.engine, row, threads, model, inputs, networks)
        start = time.perf_counter()
        self.once = prepared.load()
        self.once()
        seconds = time.perf_counter() - start
        for _ in range(2):
            self.once()
        return {"compile_s": seconds, "peak_mb": peak_mb(), "versions": prepared.version, "note": prepared.note}

    def outputs(self, path: str) -> dict[str, Any]:
        assert self.once is not None, "worker: outputs come after setup"
        np.savez(path, *(np.asarray(value) for value in self.once()))
        return {}

    def peak(self, threads: int) -> dict[str, Any]:
        from jumar.tools.enable.peak import measure_peak

        return {"gflops": measure_peak(threads) / 1e9}

    def timed(self, once: Callable[[], list[Any]], seconds: float) -> list[float]:
        """As many runs as fit, at least three; one before that is not counted where it costs less than the turn."""
        times: list[float] = []
        begun = time.perf_counter()
        once()
        first = time.perf_counter()
        if first - begun >= seconds:
            times.append((first - begun) * 1e3)
        end = first + seconds
        while len(times) < LEAST_RUNS or time.perf_counter() < end:
            start = time.perf_counter()
            once()
            times.append((time.perf_counter() - start) * 1e3)
        return times

    def run(self, steps: int = 0, seconds: float = 0.0) -> dict[str, Any]:
        times, losses = [], []
        if self.once is not None:
            return {"times_ms": self.timed(self.once, seconds), "losses": []}
        if self.many is not None:
            for _ in range(5):
                start = time.perf_counter()
                self.many(steps)
                times.append((time.perf_counter() - start) * 1e3 / steps)
            return {"times_ms": times, "losses": []}
        assert self.step is not None, "worker: run comes after setup"
        for _ in range(steps):
            start = time.perf_counter()
            loss = self.step(self.at)
            times.append((time.perf_counter() - start) * 1e3)
            losses.append(loss)
            self.at += 1
        return {"times_ms": times, "losses": losses}


def peak_mb() -> float:
    """The most memory that this process ever had."""
    status = Path("/proc/self/status")
    if status.is_file():  # ru_maxrss remembers the process that this one was forked from
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def engine_name(engine: str) -> str:
    """The package behind an engine; "mindspore (synchronous)" is mindspore in another setting."""
    return engine.partition(" ")[0]


def main() -> None:
    engine = sys.argv[1]
    os.sched_setaffinity(0, [int(core) for core in os.environ["BENCH_CORES"].split(",")])
    answers = os.fdopen(os.dup(1), "w")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's, which then closes the pipe
    os.dup2(2, 1)  # what libraries print must not get among the answers
    rival = Rival(engine)
    for line in sys.stdin:
        command = json.loads(line)
        try:
            match command.pop("do"):
                case "setup":
                    answer = rival.setup(**command)
                case "run":
                    answer = rival.run(**command)
                case "outputs":
                    answer = rival.outputs(**command)
                case "peak":
                    answer = rival.peak(**command)
                case "facts":
                    answer = {"peak_mb": peak_mb()}
                case _:
                    break
        except ModuleNotFoundError as error:
            answer = {"missing": str(error.name)}
            if error.name is None or error.name.partition(".")[0] == "rivals":
                answer = {"error": repr(error)}
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    answers.close()
    for thread in threading.enumerate():
        if thread.name == "jumar-store":  # it writes what the next process begins with
            thread.join()
    os._exit(0)  # some libraries hang in their farewell


if __name__ == "__main__":
    main()
