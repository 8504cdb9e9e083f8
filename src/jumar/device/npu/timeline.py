"""Tasks in a row: when each kernel of a graph starts and ends on the device, what it waits for, and what holds the whole back.

In: `Task`s with their `Prediction`s in order of execution, a `Chip`, and how the host launches them (`mode`).
Out: `Timeline`: spans on streams, latency with an interval, the busy time of each unit; read by reports, advice and the writers of profiles.
Before it: time.py, which predicts one kernel alone.  Constants with their sources: launch.csv.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from jumar.base import DeviceError, nearest
from jumar.device.npu.chip import Chip
from jumar.device.npu.task import AI_CPU, COMMUNICATION, CUBE, HOST, MIX_CUBE, Operand, Prediction, Task

MODES = ("sunk", "stepwise", "eager")
# streams of the device, as a profile numbers them; the host is no stream
MAIN, AI_CPU_STREAM, COMMUNICATION_STREAM, HOST_STREAM = 2, 3, 4, 0
BOUNDS = {
    "cube": "cube-bound", "vector": "vector-bound", "mte2": "memory-bound", "mte3": "memory-bound", "scalar": "overhead-bound",
    "launch": "overhead-bound", "ai cpu": "AI CPU-bound", "communication": "communication-bound", "dvpp": "DVPP-bound", "host": "host-bound",
}  # fmt: skip
# Parts of a kernel's squared error that it shares with every kernel of the model, and with those of its kind; the rest is its own and of kernels
# like it.  By kind: the left-out kinds of bench/twin_fidelity.py (0.27 between kinds, 0.37 within, in log; of known kinds it is 0.09).  By all: an
# assumption, for chips and versions of CANN that the measured kernels do not stand for.
SHARED_BY_ALL, SHARED_BY_KIND = 0.1, 0.35


@dataclass(frozen=True)
class Span:
    """One task in time, in microseconds from the start of the step.   index: of the task; stream: MAIN and its like.

    launch_us, launched_us: when the host begins and ends its part.  wait_us: how long no kernel ran before; cause: what the start waited for last
    (`host`, `gap`, `dependency`, `round trip`).  A task of the HOST core stands on HOST_STREAM.
    """

    index: int
    stream: int
    start_us: float
    end_us: float
    launch_us: float
    launched_us: float
    wait_us: float
    cause: str

    @property
    def time_us(self) -> float:
        return self.end_us - self.start_us


@dataclass(frozen=True, eq=False)
class Timeline:
    """A step of a model on one device.   spans: one a task, in order.  All times are predicted; low_us, high_us: an 80 % interval of latency_us.

    busy_us: time in which any kernel runs.  waits_us: time in which none does, by cause.  by_bottleneck: time of kernels by what limits them.
    pipes: part of the latency in which a pipe is busy (`cube`, `vector`, `mte2`, ...).  peak: part of the cube's peak that is used.
    bound: what holds the step back, in one word; critical: index of the task with the longest wait before it, None where nothing waits.
    """

    chip: Chip
    mode: str
    tasks: tuple[Task, ...]
    predictions: tuple[Prediction, ...]
    spans: tuple[Span, ...]
    latency_us: float
    low_us: float
    high_us: float
    busy_us: float
    host_us: float
    waits_us: Mapping[str, float]
    by_bottleneck: Mapping[str, float]
    pipes: Mapping[str, float]
    peak: float
    bound: str
    critical: int | None
    notes: tuple[str, ...] = field(default=())

    @property
    def busy(self) -> float:
        """Part of the latency in which the device computes or communicates."""
        return self.busy_us / self.latency_us if self.latency_us else 0.0

    def throughput(self, batch: int = 1) -> tuple[float, float, float]:
        """Samples a second when steps follow one another: predicted, low, high.

        The next step is launched while this one runs, so the round trip to the host at its end counts only where the host is what takes longest.
        """
        ends = self.waits_us.get("round trip", 0.0)
        period = max(self.latency_us - ends, self.host_us, 1e-9)
        low, high = (period * x / self.latency_us if self.latency_us else period for x in (self.low_us, self.high_us))
        return batch / period * 1e6, batch / max(high, 1e-9) * 1e6, batch / max(low, 1e-9) * 1e6

    @property
    def text(self) -> str:
        """A few lines for a reader; every figure is predicted."""
        lines = [
            f"{self.chip.name}, {self.mode}: {self.latency_us:.0f} us predicted ({self.low_us:.0f} to {self.high_us:.0f}), {self.bound};"
            f" device busy {self.busy:.0%}, cube at {self.peak:.0%} of its peak"
        ]
        lines += [f"  {name:<13} {time_us:>10.1f} us of kernels" for name, time_us in self.by_bottleneck.items()]
        lines += [f"  {'waits: ' + cause:<24} {time_us:.1f} us" for cause, time_us in self.waits_us.items()]
        lines += [
            f"  {time_us:>10.1f} us  {self.tasks[i].kind:<20} {self.tasks[i].label}"
            for i, time_us in ((s.index, s.time_us) for s in self.top(5))
        ]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    def gaps(self, count: int = 10) -> list[Span]:
        """Spans with the longest waits before them, longest first."""
        return [s for s in sorted(self.spans, key=lambda s: -s.wait_us)[:count] if s.wait_us > 0]

    def top(self, count: int = 10) -> list[Span]:
        """The longest spans, longest first."""
        return sorted(self.spans, key=lambda s: -s.time_us)[:count]


class Launching(NamedTuple):
    """What launching costs, in microseconds.   gap: between two kernels on a stream; host: of the host for one kernel; trip: there and back."""

    gap: float
    host: float
    trip: float


def timeline(
    tasks: Sequence[Task],
    predictions: Sequence[Prediction],
    chip: Chip,
    *,
    mode: str = "sunk",
    reads: Sequence[Sequence[int | None]] | None = None,
) -> Timeline:
    """The tasks on the streams of one device.   mode: `sunk`, the whole graph is loaded and launched once; `stepwise`, a graph is launched kernel by
    kernel (MindSpore's O0 and O1); `eager`, each operator is launched by the script (PYNATIVE, PyTorch).   reads: for each task the indices of
    those whose results it reads (others are ignored); without it each waits for the one before, and nothing overlaps.

    Kernels of cube and vector cores share one stream and run in order; AI CPU kernels and collectives have streams of their own.  What runs on
    the host stops the device: its inputs come back first, and the kernels after it are launched when it is done.
    """
    if mode not in MODES:
        raise DeviceError(f"timeline: mode must be one of {', '.join(MODES)}, got {mode!r}", hint=nearest(mode, MODES), code="npu-mode")
    if len(tasks) != len(predictions):
        raise DeviceError(f"timeline: predictions must be as many as tasks, got {len(predictions)} for {len(tasks)}; this is our bug")
    times = [p.time_us for p in predictions]
    nominal, low, high = (_launching(mode, chip, which) for which in ("value", "low", "high"))
    spans, latency = _run(tasks, times, reads, nominal)
    below, above = _interval(tasks, predictions, reads, nominal, low, high, latency)
    busy = _covered([(s.start_us, s.end_us) for s in spans if s.stream != HOST_STREAM])
    waits = _waits(spans, latency)
    by_bottleneck: dict[str, float] = {}
    pipes: dict[str, float] = {}
    peak = 0.0
    for task, prediction in zip(tasks, predictions):
        by_bottleneck[prediction.bottleneck] = by_bottleneck.get(prediction.bottleneck, 0.0) + prediction.time_us
        for pipe, time_us in prediction.pipes.items():
            pipes[pipe] = pipes.get(pipe, 0.0) + time_us
        peak += _ideal_us(task, prediction, chip)
    by_bottleneck = dict(sorted(by_bottleneck.items(), key=lambda item: -item[1]))
    waiting = [s for s in spans if s.cause and s.wait_us > 0]
    return Timeline(
        chip=chip,
        mode=mode,
        tasks=tuple(tasks),
        predictions=tuple(predictions),
        spans=tuple(spans),
        latency_us=latency,
        low_us=below,
        high_us=above,
        busy_us=busy,
        host_us=nominal.host * len(spans) + sum(s.time_us for s in spans if s.stream == HOST_STREAM),
        waits_us=waits,
        by_bottleneck=by_bottleneck,
        pipes={pipe: time_us / latency for pipe, time_us in pipes.items()} if latency else {},
        peak=peak / latency if latency else 0.0,
        bound=_bound(by_bottleneck, waits),
        critical=max(waiting, key=lambda s: s.wait_us).index if waiting else None,
        notes=_notes(mode, predictions),
    )


def _run(
    tasks: Sequence[Task], times: Sequence[float], reads: Sequence[Sequence[int | None]] | None, cost: Launching
) -> tuple[list[Span], float]:
    """Spans, and the end of the step as the host sees it."""
    spans: list[Span] = []
    free: dict[int, float] = {}  # when each stream has ended its last task
    ends: list[float] = []
    busy_until = 0.0  # the end of the last kernel on any stream
    host = 0.0 if cost.host else cost.trip / 2  # a sunk graph: half a round trip until the first kernel runs
    for i, (task, time_us) in enumerate(zip(tasks, times)):
        stream = _stream(task)
        needs = [ends[j] for j in reads[i] if j is not None and 0 <= j < i] if reads is not None else ends[-1:]
        ready = max(needs, default=0.0)
        if stream == HOST_STREAM:
            # the host waits for the inputs to come back, works, and goes on launching from there
            begin = max(host, ready + cost.trip / 2 if needs else 0.0)
            host = begin + time_us
            spans.append(Span(i, stream, begin, host, begin, host, max(0.0, begin - busy_until), "round trip" if needs else ""))
            ends.append(host)
            host += 0.0 if cost.host else cost.trip / 2
            continue
        launch, host = host, host + cost.host
        # an event tells another stream that its input is there: it costs what a gap costs
        in_order, ready = (free[stream] + cost.gap if stream in free else 0.0), (ready + cost.gap if needs else 0.0)
        start = max(host, ready, in_order)
        first = not free and not cost.host
        cause = (
            "round trip"
            if first
            else "gap"
            if start in (in_order, ready) and start <= busy_until + cost.gap
            else "host"
            if start == host
            else "dependency"
        )
        spans.append(Span(i, stream, start, start + time_us, launch, host, max(0.0, start - busy_until), cause))
        free[stream] = start + time_us
        busy_until = max(busy_until, start + time_us)
        ends.append(start + time_us)
    return spans, max(ends, default=0.0) + (cost.trip / 2 if ends else 0.0)


def _stream(task: Task) -> int:
    return {AI_CPU: AI_CPU_STREAM, COMMUNICATION: COMMUNICATION_STREAM, HOST: HOST_STREAM}.get(task.core, MAIN)


def _interval(
    tasks: Sequence[Task],
    predictions: Sequence[Prediction],
    reads: Sequence[Sequence[int | None]] | None,
    nominal: Launching,
    low: Launching,
    high: Launching,
    latency: float,
) -> tuple[float, float]:
    """An 80 % interval of the latency.

    Kernels: half-widths add in part as one error (their sum: of all, of those of a kind, of those with the same shapes), in part as independent ones
    (root of the sum of squares), see SHARED_BY_KIND.
    Launching: constants move together.  Either is put through the same simulation, since a device that waits for its host hides its own error;
    the two are independent of one another.
    """
    if not predictions:
        return 0.0, 0.0
    total = sum(p.time_us for p in predictions)
    found = []
    for sign, launching in ((-1.0, low), (1.0, high)):
        widths = [max(0.0, sign * ((p.low_us if sign < 0 else p.high_us) - p.time_us)) for p in predictions]
        kinds: dict[str, float] = {}
        alike: dict[tuple[str, tuple[Operand, ...]], float] = {}  # the same kernel on the same shapes errs the same way each time
        for task, width in zip(tasks, widths):
            kinds[task.kind] = kinds.get(task.kind, 0.0) + width
            alike[task.kind, task.inputs] = alike.get((task.kind, task.inputs), 0.0) + width
        own = (1 - SHARED_BY_ALL - SHARED_BY_KIND) * sum(w * w for w in alike.values())
        width = math.sqrt(own + SHARED_BY_KIND * sum(k * k for k in kinds.values()) + SHARED_BY_ALL * sum(widths) ** 2)
        # the error as a whole, spread over kernels in proportion to their own
        share = width / sum(widths) if sum(widths) else 0.0
        moved = [p.time_us + sign * share * w for p, w in zip(predictions, widths)]
        device = abs(_run(tasks, moved, reads, nominal)[1] - latency) if total else 0.0
        host = abs(_run(tasks, [p.time_us for p in predictions], reads, launching)[1] - latency)
        found.append(latency + sign * math.hypot(device, host))
    return max(found[0], 0.0), found[1]


def _waits(spans: Sequence[Span], latency: float) -> dict[str, float]:
    """Time in which no stream of the device has a task, by the cause that ends it."""
    waits: dict[str, float] = {}
    until = 0.0
    for span in sorted((s for s in spans if s.stream != HOST_STREAM), key=lambda s: s.start_us):
        if span.start_us > until:
            waits[span.cause] = waits.get(span.cause, 0.0) + span.start_us - until
        until = max(until, span.end_us)
    if latency > until:
        cause = "host" if spans and spans[-1].stream == HOST_STREAM else "round trip"
        waits[cause] = waits.get(cause, 0.0) + latency - until
    return dict(sorted(waits.items(), key=lambda item: -item[1]))


def _bound(by_bottleneck: Mapping[str, float], waits: Mapping[str, float]) -> str:
    parts: dict[str, float] = {}
    for bottleneck, time_us in by_bottleneck.items():
        if bottleneck == "host":
            continue  # the device waits meanwhile: that is counted below
        name = BOUNDS.get(bottleneck, f"{bottleneck}-bound")
        parts[name] = parts.get(name, 0.0) + time_us
    for cause, time_us in waits.items():
        name = "overhead-bound" if cause == "gap" else "host-bound"
        parts[name] = parts.get(name, 0.0) + time_us
    return max(parts, key=lambda name: parts[name]) if parts else ""


def _ideal_us(task: Task, prediction: Prediction, chip: Chip) -> float:
    """Time of a cube kernel's operations at the chip's peak; 0 for others."""
    if task.core not in (CUBE, MIX_CUBE) or not task.inputs or task.inputs[0].dtype is None:
        return 0.0
    rate = chip.peak_flops_per_s(task.inputs[0].dtype.name)
    return prediction.flops / rate * 1e6 if rate else 0.0


def _notes(mode: str, predictions: Sequence[Prediction]) -> tuple[str, ...]:
    wide = sum(p.time_us for p in predictions if p.evidence != "calibrated")
    total = sum(p.time_us for p in predictions)
    notes = [f"{wide / total:.0%} of the kernels' time lies outside the calibrated range"] if total and wide / total > 0.005 else []
    if mode != "sunk":
        notes.append("launching costs differ from host to host by a factor of five: the interval says so")
    return tuple(notes)


def _covered(parts: list[tuple[float, float]]) -> float:
    """Length of the union of intervals."""
    covered, until = 0.0, -math.inf
    for start, end in sorted(parts):
        covered += max(0.0, end - max(start, until))
        until = max(until, end)
    return covered


@lru_cache(maxsize=1)
def _constants() -> dict[tuple[str, str], dict[str, float]]:
    with (Path(__file__).parent / "launch.csv").open(encoding="utf-8", newline="") as file:
        return {(r["mode"], r["item"]): {k: float(r[k]) for k in ("value", "low", "high")} for r in csv.DictReader(file)}


def _launching(mode: str, chip: Chip, which: str) -> Launching:
    trip = "round_trip_310_us" if chip.name.startswith("Ascend310") else "round_trip_us"
    known = _constants()
    return Launching(known[mode, "gap_us"][which], known[mode, "host_us"][which], known["any", trip][which])
