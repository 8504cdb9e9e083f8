"""Starts the rivals of a row, lets them take turns, and tells who was how fast.  Used by bench/train.py, eager.py and infer.py.

In: `Rivals` (engines and their interpreters), rows, rounds.  Out: `Result`s, and their Markdown and JSON.
One works at a time: the others wait for a line on their pipe. Every rival of a row is bound to the same cores.
"""

from __future__ import annotations

import json
import os
import platform
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
OURS = "jumar"
COMPARED = 8  # losses: later ones differ by how rounding has grown
PACKAGES = ("jumar", "mindspore", "torch", "jax", "onnxruntime", "openvino")
UNSUITED = "Unsuited"  # the error of an engine that has nothing of its own to do with a model
LIMIT_S = 900.0  # of one answer: a rival that hangs is a note in its row


@dataclass
class Result:
    """One row at one number of threads."""

    row: str
    title: str
    threads: int
    unit: str = "ms"
    median: dict[str, float] = field(default_factory=dict)
    spread: dict[str, tuple[float, float]] = field(default_factory=dict)  # p10, p90
    ratio: dict[str, float] = field(default_factory=dict)  # ours / theirs: median over the rounds
    ratio_spread: dict[str, tuple[float, float]] = field(default_factory=dict)
    best: str = ""
    cold_s: dict[str, float] = field(default_factory=dict)
    cached_s: dict[str, float] = field(default_factory=dict)
    peak_mb: dict[str, float] = field(default_factory=dict)
    losses: dict[str, list[float]] = field(default_factory=dict)
    agree: dict[str, float] = field(default_factory=dict)  # largest relative difference of a loss from the reference's
    reference: str = ""
    notes: dict[str, str] = field(default_factory=dict)
    load: float = 0.0
    flops: int = 0  # of a run
    peak_gflops: float = 0.0  # what the multiply-add units did in the same minutes

    @property
    def share_of_peak(self) -> dict[str, float]:
        """Of the multiply-add units' measured peak, for each engine; empty where the flops are not known."""
        if not self.flops or not self.peak_gflops or self.unit != "ms":
            return {}
        return {engine: self.flops / (ms * 1e6) / self.peak_gflops for engine, ms in self.median.items()}


class Worker:
    """A process of one rival, and the pipe to it."""

    def __init__(self, engine: str, python: str, threads: int, cache: Path, environment: dict[str, str]) -> None:
        self.engine = engine
        cores = sorted(os.sched_getaffinity(0))[:threads]
        each = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "JUMAR_THREADS")}
        caches = {name: str(cache) for name in ("JUMAR_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "BENCH_CACHE")}
        self.errors = cache / f"stderr-{os.urandom(4).hex()}.txt"
        self.process = subprocess.Popen(
            [python, str(HERE / "worker.py"), engine],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors.open("w"),
            text=True,
            cwd=cache,
            env={**os.environ, **each, **caches, "BENCH_CORES": ",".join(map(str, cores)), "GLOG_v": "3", **environment},
        )

    def ask(self, *, limit_s: float = LIMIT_S, **command: Any) -> dict[str, Any]:
        """The answer to a command; a worker that died or took too long (and is then ended) answers with an error."""
        assert self.process.stdin is not None and self.process.stdout is not None, "driver: the worker has pipes"
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
            if not select.select([self.process.stdout], [], [], limit_s)[0]:
                self.process.kill()
                self.process.wait()
                return {"error": f"no answer to {command['do']} within {limit_s:.0f} s"}
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return json.loads(line) if line else {"error": f"the process ended with code {self.process.wait()}"}

    def quit(self) -> None:
        """Ends the process."""
        if self.process.poll() is None:
            try:
                self.process.stdin.close()  # type: ignore[union-attr]
                self.process.wait(30)
            except (BrokenPipeError, subprocess.TimeoutExpired):
                self.process.kill()
                self.process.wait()


@dataclass
class Rivals:
    """Which engines, and the interpreter of each."""

    pythons: dict[str, str]
    versions: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def python(self, engine: str) -> str:
        package = engine.partition(" ")[0].partition(".")[0]
        return self.pythons.get(package, sys.executable)


def measure(
    rivals: Rivals, engines: list[str], bench: str, row: str, title: str, threads: int, rounds: int, steps: int, cached: bool, unit: str = "ms"
) -> Result:  # fmt: skip
    """Sets up all engines on a row, times them in turns, and then once more with warm caches."""
    result = Result(row, title, threads, unit, load=os.getloadavg()[0])
    workers: dict[str, Worker] = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        caches = {engine: Path(folder) / engine.replace(" ", "-") for engine in engines}
        try:
            for engine in engines:
                if engine in rivals.missing:
                    continue
                caches[engine].mkdir()
                worker = workers[engine] = Worker(engine, rivals.python(engine), threads, caches[engine], {})
                answer = worker.ask(do="setup", bench=bench, row=row, threads=threads)
                if not accepted(answer, engine, result, rivals):
                    workers.pop(engine).quit()
                    continue
                result.cold_s[engine] = answer["compile_s"]
                result.losses[engine] = [answer["loss"]] if "loss" in answer else []
            times = turns(workers, result, rounds, steps=steps)
            for engine, worker in workers.items():
                result.peak_mb[engine] = float(worker.ask(do="facts").get("peak_mb", np.nan))
                worker.quit()
            if cached:
                for engine in list(times):
                    again = Worker(engine, rivals.python(engine), threads, caches[engine], {})
                    answer = again.ask(do="setup", bench=bench, row=row, threads=threads)
                    again.quit()
                    if "compile_s" in answer:
                        result.cached_s[engine] = answer["compile_s"]
        finally:
            for worker in workers.values():
                worker.quit()
    summarize(result, times)
    return result


def accepted(answer: dict[str, Any], engine: str, result: Result, rivals: Rivals) -> bool:
    """Whether an engine is set up; if not, why is noted."""
    if "missing" in answer:
        rivals.missing[engine] = f"the package {answer['missing']} is not there ({rivals.python(engine)})"
        print(f"  {engine}: left out: {rivals.missing[engine]}", flush=True)
        return False
    if "error" in answer:
        result.notes[engine] = answer["error"]
        if not answer["error"].startswith(UNSUITED):
            print(f"  {engine}: {answer['error']}", flush=True)
        return False
    rivals.versions[engine] = answer["versions"]
    return True


def turns(
    workers: dict[str, Worker],
    result: Result,
    rounds: int,
    tick: Callable[[int], None] = lambda _: None,
    hopeless: float = 0.0,
    **amount: float,
) -> dict[str, list[list[float]]]:
    """For each engine its times of each round.   amount: of a turn, as the worker's `run` takes it; tick: told of each round that begins.

    hopeless: a rival this many times slower than the fastest one in the first round takes no part in the others; 0: all do.
    """
    times: dict[str, list[list[float]]] = {engine: [] for engine in workers}
    racing = dict(workers)
    for at in range(rounds):
        if at == 1 and hopeless:
            first = {engine: float(np.median(times[engine][0])) for engine in times if engine != OURS}
            racing = {e: w for e, w in workers.items() if first.get(e, 0.0) <= hopeless * min(first.values(), default=0.0)}
        order = [engine for engine in racing if engine in workers]
        order = order[at % len(order) :] + order[: at % len(order)] if order else []
        tick(at)
        for engine in order:
            time.sleep(0.05)  # threads of the one before go to sleep
            answer = workers[engine].ask(do="run", **amount)
            if "error" in answer:
                result.notes[engine] = answer["error"]
                workers.pop(engine).quit()
                times.pop(engine)
                continue
            times[engine].append(answer["times_ms"])
            result.losses.setdefault(engine, []).extend(answer["losses"])
    return times


def summarize(result: Result, times: dict[str, list[list[float]]]) -> None:
    """Medians, spreads, and ratios to each rival, into the result.   A rival whose outputs differ (a note says so) is none to be compared with."""
    scale = 1e3 if result.unit == "us" else 1.0
    for engine, turns in times.items():
        flat = np.concatenate([np.asarray(turn) for turn in turns]) * scale
        result.median[engine] = float(np.median(flat))
        result.spread[engine] = (float(np.percentile(flat, 10)), float(np.percentile(flat, 90)))
    others = [engine for engine in times if engine != OURS and engine not in result.notes]
    if OURS in times and others:
        result.best = min(others, key=lambda engine: result.median[engine])
        mine = np.array([np.median(turn) for turn in times[OURS]])
        for engine in others:
            theirs = np.array([np.median(turn) for turn in times[engine]])
            each = mine[: len(theirs)] / theirs
            result.ratio[engine] = float(np.median(each))
            result.ratio_spread[engine] = (float(each.min()), float(each.max()))
    result.reference = result.reference or next((e for e in ("torch", "mindspore", "jax") if result.losses.get(e)), "")
    if given := result.losses.get(result.reference):
        wanted = np.array(given)
        for engine, losses in result.losses.items():
            found = np.array(losses)
            shared = min(len(found), len(wanted), COMPARED)
            if engine != result.reference and shared:
                difference = np.abs(found[:shared] - wanted[:shared]) / np.maximum(np.abs(wanted[:shared]), 0.05 * abs(wanted[0]))
                result.agree[engine] = float(difference.max())


VECTORS = ("avx2", "fma", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_tile", "asimd", "asimddp", "sve")


def machine() -> dict[str, Any]:
    """What it was measured on."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    cpu = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor())
    flags = set(next((line.partition(":")[2] for line in lines if line.lower().startswith(("flags", "features"))), "").split())
    family = [next((v.partition(":")[2].strip() for v in lines if v.startswith(key)), "") for key in ("cpu family", "model\t", "stepping")]
    pages = _text(Path("/sys/kernel/mm/transparent_hugepage/enabled"))
    return {
        "cpu": cpu,
        "family": "/".join(v for v in family if v),
        "vectors": [name for name in VECTORS if name in flags],
        "caches": _caches(Path("/sys/devices/system/cpu/cpu0/cache")),
        "huge_pages": pages.partition("[")[2].partition("]")[0],
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "cores": len(os.sched_getaffinity(0)),
        "load_before": os.getloadavg()[0],
        "system": platform.platform(),
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
    }


def machine_text(facts: dict[str, Any]) -> str:
    """The same in a line."""
    caches = ", ".join(f"{level} {size}" for level, size in facts["caches"].items())
    return (
        f"{facts['cpu']} (family/model/stepping {facts['family']}; {', '.join(facts['vectors'])}), {facts['cores']} cores, {caches}, "
        f"{facts['memory_gb']} GB, huge pages: {facts['huge_pages'] or 'unknown'}; load {facts['load_before']:.2f} at the start; "
        f"{facts['system']}; Python {facts['python']}; {facts['date']}."
    )


def _caches(folder: Path) -> dict[str, str]:
    """{"L1d": "48K", ...} of one core."""
    found = {}
    for each in sorted(folder.glob("index*")):
        kind = {"Data": "d", "Instruction": "i"}.get(_text(each / "type"), "")
        found[f"L{_text(each / 'level')}{kind}"] = _text(each / "size")
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def line(result: Result) -> str:
    """One row for the terminal."""
    shown = "  ".join(f"{engine} {t:.3g}" for engine, t in result.median.items())
    ratios = "  ".join(f"/{engine} {r:.2f}" for engine, r in result.ratio.items())
    apart = "  ".join(f"{engine} {d:.1g}" for engine, d in result.agree.items())
    return f"{result.row:16} {result.threads} threads  {shown} {result.unit}  {ratios}" + (f"  losses apart: {apart}" if apart else "")


def markdown(title: str, question: str, results: list[Result], rivals: Rivals, facts: dict[str, Any], tolerance: float) -> str:
    """The tables, with the machine on top."""
    engines = [e for e in rivals.versions if any(e in r.median for r in results)]
    versions = ", ".join(dict.fromkeys(rivals.versions.values()))
    lines = [
        f"# {title}", "", question, "",
        machine_text(facts),
        f"{versions}. Each rival is a process of its own, bound to the same cores; they take turns.",
        *(f"Left out: {engine}: {why.partition(' (')[0]}." for engine, why in rivals.missing.items()),
        "Median (p10 to p90). Ratio = ours / theirs, median over the rounds (lowest to highest): below 1 we are faster.", "",
        "| row | threads | " + " | ".join(engines) + " | " + " | ".join(f"ours / {e}" for e in engines if e != OURS) + " | best rival |",
        "|---|---|" + "---|" * (2 * len(engines) - (OURS in engines) + 1),
    ]  # fmt: skip
    for r in results:
        cells = [f"{r.median[e]:.3g} {r.unit} ({r.spread[e][0]:.3g} to {r.spread[e][1]:.3g})" if e in r.median else "" for e in engines]
        ratios = [
            f"{'**' if e == r.best else ''}{r.ratio[e]:.2f}{'**' if e == r.best else ''} ({r.ratio_spread[e][0]:.2f} to {r.ratio_spread[e][1]:.2f})"
            if e in r.ratio else ""
            for e in engines if e != OURS
        ]  # fmt: skip
        lines.append(f"| {r.title} | {r.threads} | {' | '.join(cells)} | {' | '.join(ratios)} | {r.best} |")
    if any(r.agree for r in results):
        lines += ["", "## First step, memory, losses", ""]
        lines += [
            "First step (compile included) with empty caches, then with those it left, in seconds; peak resident memory of the process; the largest relative"
        ]
        lines += [
            f"difference of the first {COMPARED} losses from the reference's, from the same weights (agree: at most {tolerance:.0%}).",
            "",
        ]
        lines += ["| row | threads | engine | cold s | cached s | peak MB | losses |", "|---|---|---|---|---|---|---|"]
        for r in results:
            for e in r.median:
                verdict = f"the reference, {min(COMPARED, len(r.losses[e]))} steps" if e == r.reference else ""
                if e in r.agree:
                    verdict = f"{'agree' if r.agree[e] <= tolerance else '**differ**'}, {r.agree[e]:.1g}"
                cached = f"{r.cached_s[e]:.2f}" if e in r.cached_s else ""
                lines.append(f"| {r.title} | {r.threads} | {e} | {r.cold_s[e]:.2f} | {cached} | {r.peak_mb[e]:.0f} | {verdict} |")
    notes = [f"- {r.title}, {r.threads} threads, {engine}: {note}" for r in results for engine, note in r.notes.items()]
    return "\n".join([*lines, *(["", "Not measured:", *notes] if notes else [])]) + "\n"


def write(out: Path, text: str, results: list[Result], rivals: Rivals, facts: dict[str, Any]) -> None:
    """OUT.md and OUT.json."""
    out.parent.mkdir(parents=True, exist_ok=True)
    document = {"machine": facts, "versions": rivals.versions, "rows": [asdict(r) for r in results]}
    out.with_suffix(".json").write_text(json.dumps(document, indent=1) + "\n")
    out.with_suffix(".md").write_text(text)


def pythons(given: list[str]) -> dict[str, str]:
    """{"torch": PATH} of ["torch=PATH"]."""
    found = {}
    for each in given:
        package, _, path = each.partition("=")
        if package not in PACKAGES or not path:
            raise SystemExit(f"--python must be one of {', '.join(f'{p}=' for p in PACKAGES)} and the path of an interpreter, got {each}")
        found[package] = path
    return found
