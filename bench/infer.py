"""How fast is a whole model on our runtime, against ONNX Runtime, OpenVINO, PyTorch and JAX, and what does it cost in memory and to load?

Question: latency of a run at batch as given; ratio = our median / the best rival's of that row, per round; per cent of the multiply-add units' peak;
peak memory of a process that loads the model and runs it three times; seconds from the file to the first outputs.
Machine, versions and the last answer: bench/results/infer-*.md (each written by this script together with its .json).
Usage: python bench/infer.py [MODEL ...] [--threads 1,2] [--rounds 5] [--out bench/results/infer-NAME] [--append] [--quick]
  MODEL: NAME_bN, NAME_bN_int8 or a file, see bench/models.py; without one, all of them.  $ONNX_MODELS is the folder of NAME.onnx and NAME_in.npz.
  --networks FILE (or $BENCH_NETWORKS): a Python file with `build(name, batch) -> (torch module, inputs, input names, output names)`, the networks that
    the files were exported from; without it PyTorch is not here.
  --python torch=PATH and the like: the interpreter that has a rival, where it is not the one of this script.
  --append: keeps the rows of OUT.json that are not measured now; the machine must be the same.
Each engine is a process of its own, bound to the same cores; they take turns. A turn is as many runs as fit into --turn seconds, at least three, after
one that does not count unless a run is longer than a turn.  A rival that takes twice the fastest rival's time in the first round has that round only,
so that the whole table with two threads and five rounds takes about twenty minutes (compiled PyTorch's first time, ten more).
An engine that fails, hangs or gives other outputs is a note in its row.
Ctrl-C ends the run; each row is written when it is done.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from rivals import driver
from rivals.driver import OURS, Result
from rivals.infer_rows import CACHED, ENGINES

import models

REFERENCE = "onnxruntime"
HOPELESS = 2.0  # times the fastest rival's time in the first round
LEAST_RANGE = 0.01  # of an output: chances that are all near nought are not looked at more closely
TOLERANCE, TOLERANCE_INT8 = 1e-4, 0.05  # of an output's range: fp32 by rounding; int8 by steps of 1/255 that fall to either side


@dataclass(frozen=True)
class Plan:
    """How the rows are measured."""

    engines: tuple[str, ...]
    rounds: int
    turn_s: float
    limit_s: float
    networks: str
    caches: Path  # where rivals keep what they made of a model


def tolerance(row: str) -> float:
    return TOLERANCE_INT8 if row.endswith("int8") else TOLERANCE


def measure(rivals: driver.Rivals, plan: Plan, found: models.Found, threads: int) -> Result:
    """Loads all engines, compares their outputs, and times them in turns."""
    result = Result(found.name, found.name, threads, load=os.getloadavg()[0], reference=REFERENCE)
    with np.load(found.inputs) as stored:
        result.flops = models.flops(found.path, dict(stored))
    workers: dict[str, driver.Worker] = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        try:
            for engine in plan.engines:
                if engine not in rivals.missing:
                    say(f"{found.name}, {threads} threads: loading {engine}")
                    _load(rivals, plan, found, engine, result, workers, Path(folder))
            _compare(workers, result, Path(folder), plan.limit_s)
            times = driver.turns(
                workers, result, plan.rounds, lambda at: say(f"{found.name}, {threads} threads: round {at + 1} of {plan.rounds}"),
                HOPELESS, seconds=plan.turn_s, limit_s=plan.limit_s,
            )  # fmt: skip
            if OURS in workers:
                result.peak_gflops = float(workers[OURS].ask(do="peak", threads=threads).get("gflops", 0.0))
        finally:
            for worker in workers.values():
                worker.quit()
    if plan.rounds:
        driver.summarize(result, times)
    say("")
    return result


def _load(
    rivals: driver.Rivals,
    plan: Plan,
    found: models.Found,
    engine: str,
    result: Result,
    workers: dict[str, driver.Worker],
    folder: Path,
) -> None:
    """A worker with the model; engines that keep something on disk begin with what they left there, and the time without it is measured first.

    Ours always begins with nothing: its code may be another than the last time.
    """
    cache = (plan.caches if engine in CACHED and engine != OURS else folder) / f"{found.name}-{result.threads}-{engine.replace(' ', '-')}"
    kept = cache.is_dir() and any(p.suffix != ".txt" for p in cache.iterdir())
    cache.mkdir(parents=True, exist_ok=True)
    asked = {"bench": "infer", "row": found.name, "threads": result.threads, "model": str(found.path), "inputs": str(found.inputs)}
    for cold in (True, False) if engine in CACHED and not kept else (False,):
        worker = workers[engine] = driver.Worker(engine, rivals.python(engine), result.threads, cache, {})
        answer = worker.ask(limit_s=plan.limit_s, do="setup", networks=plan.networks, **asked)
        fine = driver.accepted(answer, engine, result, rivals)
        if cold or not fine:
            workers.pop(engine).quit()
        if not fine:
            return
        if cold:
            result.cold_s[engine] = answer["compile_s"]
        else:
            result.cached_s[engine], result.peak_mb[engine] = answer["compile_s"], answer["peak_mb"]


def _compare(workers: dict[str, driver.Worker], result: Result, folder: Path, limit_s: float) -> None:
    """The largest difference of each engine's outputs from the reference's, in parts of the range of an output."""
    outputs: dict[str, list[np.ndarray]] = {}
    for engine, worker in workers.items():
        path = folder / f"outputs-{len(outputs)}.npz"
        answer = worker.ask(limit_s=limit_s, do="outputs", path=str(path))
        if "error" in answer:
            result.notes[engine] = answer["error"]
            continue
        with np.load(path) as stored:
            outputs[engine] = [stored[name] for name in stored.files]
        path.unlink()
    wanted = outputs.pop(REFERENCE, None)
    for engine, values in outputs.items() if wanted is not None else ():
        assert wanted is not None, "the reference's outputs"
        result.agree[engine] = difference(wanted, values)
        if result.agree[engine] > tolerance(result.row):
            result.notes[engine] = f"outputs differ by {result.agree[engine]:.2g} of their range"


def difference(wanted: list[np.ndarray], got: list[np.ndarray]) -> float:
    """The largest difference in parts of the range of an output; 1e9 where shapes or numbers are not comparable.

    >>> difference([np.array([0.0, 2.0])], [np.array([0.0, 1.9])])
    0.05
    """
    if [w.shape for w in wanted] != [g.shape for g in got]:
        return 1e9
    worst = 0.0
    for w, g in zip(wanted, got, strict=True):
        a, b = w.astype(np.float64), g.astype(np.float64)
        if not np.array_equal(np.isfinite(a), np.isfinite(b)):
            return 1e9
        extent = float(np.ptp(a)) if a.size else 0.0
        worst = max(worst, float(np.abs(a - b).max(initial=0.0)) / max(extent, LEAST_RANGE))
    return round(worst, 12)


def say(text: str) -> None:
    """Progress, on one line of the terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(f"  {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def line(result: Result) -> str:
    """One row for the terminal."""
    shown = "  ".join(f"{engine} {t:.3g}" for engine, t in result.median.items())
    ratio = f"ratio {result.ratio[result.best]:.2f}" if result.best else ""
    notes = "".join(f"  [{engine}: {note}]" for engine, note in result.notes.items() if not note.startswith(driver.UNSUITED))
    return f"{result.row:22} {result.threads} threads  {shown} ms  {ratio}  error {result.agree.get(OURS, float('nan')):.1g}{notes}"


def markdown(rows: list[Result], versions: dict[str, str], facts: dict[str, Any]) -> str:
    """The tables, with the machine on top."""
    engines = [e for e in ENGINES if any(e in r.median for r in rows)]
    lines = [
        "# Whole models: ours, ONNX Runtime, OpenVINO, PyTorch, JAX", "",
        driver.machine_text(facts),
        f"{', '.join(dict.fromkeys(versions.values()))}. Each engine is a process of its own, bound to the same cores; they take turns.",
        "Median ms of a run (p10 to p90). Ratio = ours / the best rival's of the row, median over the rounds (lowest to highest): below 1 we are faster.",
        "Peak: the model's flops in our time, as a share of what the multiply-add units did in fp32 in the same minutes (8-bit products may exceed it,",
        "and so may Winograd's, which needs fewer). A rival of twice the fastest rival's time was measured in one round only.",
        "An empty cell: the engine does not have the model, see below.", "",
        "| model | threads | " + " | ".join(engines) + " | ratio | best rival | of peak | outputs |",
        "|---|---|" + "---|" * len(engines) + "---|---|---|---|",
    ]  # fmt: skip
    for r in rows:
        cells = [f"{r.median[e]:.3g} ({r.spread[e][0]:.3g} to {r.spread[e][1]:.3g})" if e in r.median else "" for e in engines]
        ratio = f"**{r.ratio[r.best]:.2f}** ({r.ratio_spread[r.best][0]:.2f} to {r.ratio_spread[r.best][1]:.2f})" if r.best else ""
        share = f"{r.share_of_peak[OURS]:.0%}" if OURS in r.share_of_peak else ""
        verdict = ("**differ**" if OURS in r.notes else "agree") + f", {r.agree[OURS]:.1g}" if OURS in r.agree else ""
        lines.append(f"| {r.row} | {r.threads} | {' | '.join(cells)} | {ratio} | {r.best} | {share} | {verdict} |")
    compared = [r for r in rows if r.best]
    if compared:
        mean = float(np.exp(np.mean([np.log(r.ratio[r.best]) for r in compared])))
        worst = max(compared, key=lambda r: r.ratio[r.best])
        lines += [
            "",
            f"Geometric mean of the ratios {mean:.2f}; the worst is {worst.ratio[worst.best]:.2f} ({worst.row}, {worst.threads} threads).",
        ]
    lines += [
        "", "## Loading and memory", "",
        "Seconds from the file to the first outputs, imports not counted: with an empty cache where the engine has one (then with what it left there);",
        "PyTorch's begin with the network in memory. Peak resident memory in MB of a process that loads the model, with that cache,",
        "and runs it three times.", "",
        "| model | threads | " + " | ".join(f"{e} s" for e in engines) + " | " + " | ".join(f"{e} MB" for e in engines) + " |",
        "|---|---|" + "---|" * (2 * len(engines)),
    ]  # fmt: skip
    for r in rows:
        loads = []
        for e in engines:
            cached = f"{r.cached_s[e]:.2g}" if e in r.cached_s else ""
            loads.append(f"{r.cold_s[e]:.2g} ({cached})" if e in r.cold_s and e != "onnxruntime (optimizer)" else cached)
        memory = [f"{r.peak_mb[e]:.0f}" if e in r.peak_mb else "" for e in engines]
        lines.append(f"| {r.row} | {r.threads} | {' | '.join(loads)} | {' | '.join(memory)} |")
    notes: dict[tuple[str, str], list[str]] = {}
    for r in rows:
        for engine, note in r.notes.items():
            notes.setdefault((engine, note.removeprefix(f"{driver.UNSUITED}: ")), []).append(f"{r.row} ({r.threads})")
    said = [f"- {engine}: {note}: {', '.join(where)}" for (engine, note), where in notes.items()]
    return "\n".join([*lines, *(["", "Not measured or not compared (threads):", "", *said] if said else [])]) + "\n"


def read(out: Path) -> tuple[list[Result], dict[str, str], dict[str, Any]]:
    """Rows, versions and machine of an earlier run."""
    document = json.loads(out.with_suffix(".json").read_text())
    known = {f.name for f in fields(Result)}
    return [Result(**{k: v for k, v in row.items() if k in known}) for row in document["rows"]], document["versions"], document["machine"]


def same_machine(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return all(a.get(key) == b.get(key) for key in ("cpu", "family", "vectors", "caches", "cores", "huge_pages"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5, help="0: only load, which fills the caches and writes nothing")
    parser.add_argument("--turn", type=float, default=0.25, help="seconds of one turn")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds that an engine may take to load a model, or for a turn")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--networks", default=os.environ.get("BENCH_NETWORKS", ""), metavar="FILE", help="PyTorch's networks")
    parser.add_argument("--python", action="append", default=[], metavar="PACKAGE=PATH")
    parser.add_argument("--cache", type=Path, help="folder in which rivals keep what they compiled; default: a temporary one")
    parser.add_argument("--quick", action="store_true", help="two rounds of short turns, with two threads")
    parser.add_argument("--append", action="store_true", help="keep the rows of OUT.json that are not measured now")
    parser.add_argument("--out", type=Path, help="writes OUT.json and OUT.md")
    args = parser.parse_args()
    engines = tuple(args.engines.split(","))
    if unknown := [e for e in engines if e not in ENGINES]:
        parser.error(f"no engine {', '.join(unknown)}; there are {', '.join(ENGINES)}")
    if args.networks and not Path(args.networks).is_file():
        parser.error(f"--networks must be a file, got {args.networks}")
    if args.append and not args.out:
        parser.error("--append needs --out")
    threads = [2] if args.quick else [int(n) for n in args.threads.split(",")]
    rounds, turn = (2, 0.05) if args.quick else (args.rounds, args.turn)
    rivals, facts = driver.Rivals(driver.pythons(args.python)), driver.machine()
    rows: list[Result] = []
    if args.append and args.out.with_suffix(".json").exists():
        rows, rivals.versions, before = read(args.out)
        if not same_machine(before, facts):
            parser.error(f"--append: {args.out} is of another machine: {driver.machine_text(before)}")
        facts["load_before"] = before["load_before"]
    code = 0
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        networks = str(Path(args.networks).resolve()) if args.networks else ""
        plan = Plan(engines, rounds, turn, args.limit, networks, (args.cache or Path(folder) / "caches").resolve())
        try:
            for name in args.models or models.NAMED:
                try:
                    found = models.find(name, Path(folder))
                except FileNotFoundError as error:
                    print(f"{name}: left out: {error}", flush=True)
                    continue
                for count in threads:
                    result = measure(rivals, plan, found, count)
                    print(line(result), flush=True)
                    if rounds:
                        rows = merged(rows, result)
                        if args.out:
                            driver.write(args.out, markdown(rows, rivals.versions, facts), rows, rivals, facts)
        except KeyboardInterrupt:
            say("")
            print("stopped; the rows so far are kept", file=sys.stderr)
            code = 130
    if rows:
        print("\n" + markdown(rows, rivals.versions, facts))
    return code


def merged(rows: list[Result], new: Result) -> list[Result]:
    """The rows with one more, in the order of the names; it takes the place of one before, and its times with an empty cache where it has none."""
    before = next((r for r in rows if (r.row, r.threads) == (new.row, new.threads)), None)
    if before is not None:
        new.cold_s = {e: s for e, s in before.cold_s.items() if e in new.cached_s} | new.cold_s
    order = {name: i for i, name in enumerate(models.NAMED)}
    every = [*(r for r in rows if r is not before), new]
    return sorted(every, key=lambda r: (order.get(r.row, len(order)), r.row, r.threads))


if __name__ == "__main__":
    sys.exit(main())
