"""`Step`: what every writer of this room reads: a timeline with the clock and the rank that a profile has, and the lives of its tensors.

In: a `Timeline` and options of `write_profile`.  Out: read by kernels.py, host.py, trace.py, communication.py and memory.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jumar.device.npu import AI_CPU, COMMUNICATION, HOST_STREAM, Span, Task, Timeline

PREDICTED = "predicted by the twin of jumar, not measured"


@dataclass(frozen=True)
class Life:
    """A tensor on the device.   first, last: indices of the tasks that make it and read it last; last is None for one that outlives the step."""

    name: str
    nbytes: int
    first: int
    last: int | None


@dataclass(frozen=True, eq=False)
class Step:
    """One step on one rank.   at_us: the start of the step on the profile's clock; ranks: devices that do the same; reserved_nbytes: what the device
    has set aside, 0 where only the lives are known; resident_nbytes: weights and what else is there all the time."""

    line: Timeline
    name: str
    at_us: float
    rank: int = 0
    ranks: int = 1
    number: int = 0
    lives: tuple[Life, ...] = ()
    resident_nbytes: int = 0
    reserved_nbytes: int = 0

    @property
    def device_spans(self) -> list[Span]:
        """Spans of the device, as they start."""
        return sorted((s for s in self.line.spans if s.stream != HOST_STREAM), key=lambda s: s.start_us)

    @property
    def group(self) -> str:
        """The number of the group of all ranks: the only one there is."""
        return "1"

    def kernel(self, span: Span) -> str:
        """The kernel's name."""
        task = self.line.tasks[span.index]
        return communicated(self, span) if task.core == COMMUNICATION else task.label or f"{task.kind}_{span.index}"

    def when(self, us: float) -> str:
        """A time of the step on the profile's clock, as text: a float has no nanoseconds left at this size."""
        nanoseconds = round(self.at_us * 1000) + round(us * 1000)
        return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"


def lives_of(tasks: Sequence[Task], reads: Sequence[Sequence[int | None]], outputs: Sequence[int] = ()) -> tuple[Life, ...]:
    """Lives of what tasks make.   reads: for each task the indices of those whose results it reads; outputs: tasks whose results outlive the step."""
    last = dict.fromkeys(range(len(tasks)), -1)
    for i, needs in enumerate(reads):
        for j in needs:
            if j is not None and j >= 0:
                last[j] = max(last[j], i)
    kept = set(outputs) or {i for i, end in last.items() if end < 0}
    return tuple(
        Life(task.label or f"{task.kind}_{i}", sum(o.nbytes for o in task.outputs), i, None if i in kept else max(last[i], i))
        for i, task in enumerate(tasks)
        if any(o.nbytes for o in task.outputs)
    )


def communicated(step: Step, span: Span) -> str:
    """The name of a collective as HCCL makes it: kind, end of the group's number, and how many came before."""
    before = sum(1 for s in step.line.spans[: span.index] if step.line.tasks[s.index].core == COMMUNICATION)
    return f"{collective_type(step.line.tasks[span.index].kind)}_{step.group.rjust(3, '0')[-3:]}_{before}_1"


def collective_type(kind: str) -> str:
    """`hcom_allReduce_` for `all_reduce`, `HcomAllReduce` and itself."""
    words = kind.removeprefix("hcom_").removeprefix("Hcom").strip("_").split("_")
    joined = words[0][:1].lower() + words[0][1:] + "".join(w.capitalize() for w in words[1:])
    return f"hcom_{joined}_"


def computing(step: Step, span: Span) -> bool:
    """Whether a span is a kernel's, not a collective's."""
    return step.line.tasks[span.index].core != COMMUNICATION


def on_cores(step: Step, span: Span) -> bool:
    """Whether it runs on cube or vector cores."""
    return step.line.tasks[span.index].core not in (AI_CPU, COMMUNICATION, "DVPP", "HOST")


def union(parts: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Intervals without overlap, in order."""
    found: list[tuple[float, float]] = []
    for start, end in sorted(parts):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def without(parts: Sequence[tuple[float, float]], others: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """What of the intervals no other covers; both without overlap and in order."""
    found: list[tuple[float, float]] = []
    for start, end in parts:
        at = start
        for other_start, other_end in others:
            if other_end <= at or other_start >= end:
                continue
            if other_start > at:
                found.append((at, other_start))
            at = max(at, other_end)
        if at < end:
            found.append((at, end))
    return found
