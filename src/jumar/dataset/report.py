"""Which stage starves the step: the time of each stage of a pipeline, as text and as JSON.

In: clocks that an iterator keeps for its stages and for the two ends of its queue (pipeline.py).  Out: `Report` (dataset.report()).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any


@dataclass
class Clock:
    """What one stage took.   total_s: time until its rows were there, with the stages before it."""

    name: str
    depth: int
    total_s: float = 0.0
    rows: int = 0
    below: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Stage:
    """One stage of the report.   own_s: without the stages before it; where workers are, the time that was waited for them."""

    name: str
    depth: int
    rows: int
    own_s: float


@dataclass(frozen=True)
class Report:
    """Where the time of the last iterator went.

    step_waited_s: the step waited for data; pipeline_waited_s: the pipeline waited for the step; starving: the stage that is slowest,
    or "" where the step never waits long.
    """

    stages: tuple[Stage, ...]
    rows: int
    seconds: float
    step_waited_s: float
    pipeline_waited_s: float

    @property
    def starving(self) -> str:
        if not self.stages or self.step_waited_s < 0.1 * max(self.seconds, 1e-9):
            return ""
        return max(self.stages, key=lambda s: s.own_s).name

    def to_json(self) -> str:
        return json.dumps({**asdict(self), "starving": self.starving}, indent=2)

    def __str__(self) -> str:
        lines = [
            f"{self.rows} rows in {self.seconds:.3f} s; the step waited {self.step_waited_s:.3f} s for data, "
            f"the pipeline {self.pipeline_waited_s:.3f} s for the step"
        ]
        most = max((s.own_s for s in self.stages), default=0.0) or 1.0
        for s in self.stages:
            bar = "#" * round(20 * s.own_s / most)
            lines.append(f"  {'  ' * s.depth + s.name:<34} {s.rows:>9} rows {s.own_s:>9.3f} s  {bar}")
        lines.append(f"starved by: {self.starving}" if self.starving else "the step does not starve")
        return "\n".join(lines)


def timed(clock: Clock, rows: Iterator[Any]) -> Iterator[Any]:
    """The same rows, with the time until each was there noted in the clock."""
    try:
        while True:
            start = perf_counter()
            try:
                row = next(rows)
            except StopIteration:
                return
            finally:
                clock.total_s += perf_counter() - start
            clock.rows += 1
            yield row
    finally:
        close = getattr(rows, "close", None)
        if close:
            close()


def make_report(clocks: dict[int, Clock], rows: int, seconds: float, step_waited_s: float, pipeline_waited_s: float) -> Report:
    """Clocks of whole subtrees to stages with their own time."""
    stages = [
        Stage(c.name, c.depth, c.rows, max(0.0, c.total_s - sum(clocks[b].total_s for b in c.below if b in clocks)))
        for c in clocks.values()
    ]
    return Report(tuple(stages), rows, seconds, step_waited_s, pipeline_waited_s)
