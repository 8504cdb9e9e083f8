"""How fast the compiled model runs: whole runs, then step by step.

In: a function that runs it once, and its instances.  Out: `SpeedFact`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from jumar.base import Array
from jumar.runtime import Instance, StepTime
from jumar.tools.enable.facts import SpeedFact, StepFact
from jumar.tools.enable.peak import peak_flops_per_s

PROFILES = 5


@dataclass(frozen=True)
class Piece:
    """A part of the model that is one native call, with the inputs that it got."""

    instance: Instance
    inputs: Sequence[Array]
    marks: Sequence[tuple[str, str]]  # of each step: its kind, and its place in the model


def measure_speed(
    run: Callable[[], object], pieces: Sequence[Piece], *, runs: int, threads: int, tick: Callable[[int, int], None]
) -> SpeedFact:
    """Times `runs` whole runs after two that warm up, and profiles each piece.   tick: told of each run."""
    for _ in range(2):
        run()
    times = []
    for i in range(runs):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
        tick(i + 1, runs)
    median, p10, p90 = (float(np.percentile(times, q)) for q in (50, 10, 90))
    steps = [fact for piece in pieces for fact in _steps(piece)]
    steps = _one_after_another(pieces, steps)
    flops = sum(s.flops for s in steps)
    return SpeedFact(
        runs=runs,
        threads=threads,
        median_ms=median,
        p10_ms=p10,
        p90_ms=p90,
        per_s=1e3 / median,
        flops=flops,
        gflops_per_s=flops / median / 1e6,
        peak_gflops_per_s=peak_flops_per_s(threads) / 1e9,
        steps=tuple(steps),
    )


def _steps(piece: Piece) -> list[StepFact]:
    """Each step with its median time over several profiled runs, and the lanes of the run that was nearest to the median."""
    piece.instance.run(list(piece.inputs))
    profiles = [piece.instance.profile(list(piece.inputs)) for _ in range(PROFILES)]
    ends = [max((s.end_us for s in profile), default=0.0) for profile in profiles]
    shown = profiles[int(np.argsort(ends)[len(ends) // 2])]
    found = []
    for i, step in enumerate(shown):
        us = float(np.median([profile[i].us for profile in profiles]))
        found.append(_fact(step, us, piece.marks))
    return found


def _fact(step: StepTime, us: float, marks: Sequence[tuple[str, str]]) -> StepFact:
    lanes = tuple((thread, a / 1e3, b / 1e3) for thread, a, b in step.threads)
    kind, place = marks[step.index] if step.index < len(marks) else ("other", step.loc)
    if step.kernel.startswith("host "):
        kind = "host"
    return StepFact(step.index, step.name or step.kernel, kind, place, us / 1e3, step.flops, step.nbytes, lanes)


def _one_after_another(pieces: Sequence[Piece], steps: list[StepFact]) -> list[StepFact]:
    """Numbers the steps of all pieces in one row, and moves each piece's lanes behind those of the one before."""
    if len(pieces) <= 1:
        return steps
    moved: list[StepFact] = []
    at, offset = 0, 0.0
    for piece in pieces:
        count = len(piece.instance.program.steps)
        part = steps[at : at + count]
        for s in part:
            lanes = tuple((t, a + offset, b + offset) for t, a, b in s.lanes)
            moved.append(StepFact(len(moved), s.label, s.kind, s.place, s.time_ms, s.flops, s.nbytes, lanes))
        at += count
        offset = max((b for s in moved for _, _, b in s.lanes), default=offset)
    return moved
