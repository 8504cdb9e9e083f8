"""The process of one rival: reads commands as lines of JSON, answers in lines of JSON, and does nothing in between.

Commands: {"do": "setup", "bench": "train"|"eager", "row", "threads"} -> {"compile_s", "loss", "versions", "note"}
          {"do": "run", "steps"} -> {"times_ms", "losses"}      {"do": "facts"} -> {"peak_mb"}      {"do": "quit"}
An answer with "missing" says that a package is not there, one with "error" what went wrong.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
MODULES = {
    "jumar": "mindspore_rows",
    "mindspore": "mindspore_rows",
    "torch": "torch_rows",
    "torch.compile": "torch_rows",
    "jax": "jax_rows",
}


class Rival:
    """A row that is set up: `step(i)` runs one step and returns its loss, `many(n)` runs one thing n times."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.step: Callable[[int], float] | None = None
        self.many: Callable[[int], None] | None = None
        self.at = 0

    def setup(self, bench: str, row: str, threads: int) -> dict[str, Any]:
        base = engine_name(self.engine)
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

    def run(self, steps: int) -> dict[str, Any]:
        times, losses = [], []
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


def engine_name(engine: str) -> str:
    """The package behind an engine; "mindspore (synchronous)" is mindspore in another setting."""
    return engine.partition(" ")[0]


def main() -> None:
    engine = sys.argv[1]
    os.sched_setaffinity(0, [int(core) for core in os.environ["BENCH_CORES"].split(",")])
    answers = os.fdopen(os.dup(1), "w")
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
                case "facts":
                    answer = {"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
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
    os._exit(0)  # some libraries hang in their farewell


if __name__ == "__main__":
    main()
