"""What the twin says of a model on one NPU, as values: `TwinFact`, and the dataclasses that it holds.

In: filled by twin.py from the compiler's forecasts.  Out: read by console.py, page.py and, as JSON, by whoever asked for `--json`.
Nothing ran on an NPU: times are predicted and stand with an interval, figures of the chip are documented, and each says so.
"""

from __future__ import annotations

from dataclasses import dataclass

PREDICTED, DOCUMENTED, MEASURED = "predicted", "documented", "measured"
BANNER = "values computed here on the CPU, times predicted by the twin; nothing ran on an NPU"


@dataclass(frozen=True)
class Estimate:
    """A figure and its kind.   low, high: an 80 % interval of what is predicted, the value itself of what is not."""

    value: float
    low: float
    high: float
    unit: str
    kind: str = PREDICTED


@dataclass(frozen=True)
class ChipFigure:
    """One figure of the chip.   kind: documented, measured or derived; source: where from."""

    name: str
    value: str
    kind: str
    source: str


@dataclass(frozen=True)
class UnitFact:
    """What one unit of the chip gets: kernels and their predicted time."""

    unit: str
    kernels: int
    time_us: float


@dataclass(frozen=True)
class MappedFact:
    """Operators of one kind that run alike.   operator: ours; cann: CANN's operator; unit: where it runs; how: aclnn, ge, composite, ai cpu, dvpp, host, view.

    evidence: documented, or inferred; source: what says so; why: what a person should know; alternatives: other ways, cheapest first."""

    operator: str
    count: int
    unit: str
    cann: str
    how: str
    evidence: str
    source: str
    why: str = ""
    place: str = ""
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True)
class CastsFact:
    """Casts that the precision mode inserts, those of one kind together.   constant: of weights, done before the model is loaded."""

    from_dtype: str
    to_dtype: str
    count: int
    nbytes: int
    why: str
    place: str
    constant: bool = False


@dataclass(frozen=True)
class ConversionFact:
    """Changes of a layout (TransData).   constant: of a weight, done once when the model is loaded; time_us: predicted, 0 for weights.

    count: how many alike.
    """

    what: str
    source: str
    target: str
    nbytes: int
    constant: bool
    time_us: float
    why: str
    avoid: str
    place: str = ""
    count: int = 1


@dataclass(frozen=True)
class RuleFact:
    """A fusion rule and how often it took.   members: what it joined, most frequent first."""

    rule: str
    count: int
    members: str


@dataclass(frozen=True)
class MissedRule:
    """A fusion that the device does not do here, and why.   nbytes: what passes through memory because of it."""

    producer: str
    consumer: str
    rule: str
    nbytes: int
    why: str
    place: str


@dataclass(frozen=True)
class PartFact:
    """A part of the device's memory: weights, activations, workspace, communication buffers ..."""

    name: str
    nbytes: int


@dataclass(frozen=True)
class DeviceMemoryFact:
    """Memory on the chip.   peak: of all parts; capacity: documented; usable: what is left of it for a model; total: of tensors without reuse.

    bound: the largest sum of live bytes; live: activations kernel by kernel; top: the tensors that make the peak;
    verdict: in words; largest_batch: that fits, 0 where it is not known, largest_text: in words; remedies: what would make it fit."""

    fits: bool
    verdict: str
    peak_nbytes: int
    capacity_nbytes: int
    usable_nbytes: int
    parts: tuple[PartFact, ...]
    total_nbytes: int = 0
    planned_nbytes: int = 0
    bound_nbytes: int = 0
    live_nbytes: tuple[int, ...] = ()
    top: tuple[PartFact, ...] = ()
    largest_batch: int = 0
    remedies: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    largest_text: str = ""

    @property
    def saving_percent(self) -> float:
        return 100.0 * (1 - self.planned_nbytes / self.total_nbytes) if self.total_nbytes else 0.0


@dataclass(frozen=True)
class KernelFact:
    """One kernel.   start_us, time_us, low_us, high_us: predicted; unit: where it runs; block_dim: cores that it is cut over, of `cores`.

    occupancy: part of those cores' time that has work; flops of the cube or vector; evidence: what the prediction stands on."""

    index: int
    label: str
    kind: str
    unit: str
    start_us: float
    time_us: float
    low_us: float
    high_us: float
    bottleneck: str
    block_dim: int
    occupancy: float
    flops: float
    nbytes: int
    evidence: str
    dtype: str = ""
    fused: tuple[str, ...] = ()
    place: str = ""

    @property
    def flops_per_s(self) -> float:
        return self.flops / self.time_us * 1e6 if self.time_us else 0.0

    @property
    def intensity(self) -> float:
        """Operations for each byte of its tensors."""
        return self.flops / self.nbytes if self.nbytes else 0.0


@dataclass(frozen=True)
class Bar:
    """One bar of the timeline.   lane: `host`, `cube`, `vector`, `ai cpu`, `communication` ...; kernel: its index, or -1."""

    lane: str
    start_us: float
    time_us: float
    label: str
    kernel: int = -1


@dataclass(frozen=True)
class Ceiling:
    """A line of the roofline plot: operations a second that the chip's documented figures allow, or bytes a second."""

    name: str
    value: float
    unit: str


@dataclass(frozen=True)
class AdviceFact:
    """One change and what it should gain, from predicting again with the change made.   command: the command or line that does it.

    gain: in `unit`, `us` or `bytes`; what: of what, `latency`, `time per sample` or `memory`; low_percent, high_percent: its 80 % interval."""

    kind: str
    title: str
    why: str
    command: str
    gain: float
    unit: str
    gain_percent: float
    low_percent: float
    high_percent: float
    what: str = "latency"
    evidence: str = PREDICTED

    @property
    def doubtful(self) -> bool:
        """Whether its interval holds a loss, too."""
        return self.low_percent <= 0


@dataclass(frozen=True)
class ValueNumerics:
    """How far one value of the chip's arithmetic, computed here, is from fp32.   error: relative, over all elements; finding: in words."""

    name: str
    type: str
    place: str
    error: float
    max_error: float
    finding: str


@dataclass(frozen=True)
class TwinNumerics:
    """The chip's arithmetic, executed on this CPU.   arithmetic: in words; within: nothing overflows and outputs are finite; advice: what mends it;
    lines: all of it as text."""

    summary: str
    within: bool
    arithmetic: str
    outputs: tuple[ValueNumerics, ...] = ()
    nodes: tuple[ValueNumerics, ...] = ()
    advice: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    time_s: float = 0.0


@dataclass(frozen=True)
class TwinFact:
    """A model on one chip.   bound: what limits it; device, host: busy times of one run; training: memory of a training step, where it was asked for.

    batch_from: what the batch was taken from, in words."""

    soc: str
    title: str
    precision: str
    mode: str
    latency: Estimate
    throughput: Estimate
    device: Estimate
    host_us: float
    bound: str
    utilisation: float
    batch: int
    chip: tuple[ChipFigure, ...]
    units: tuple[UnitFact, ...]
    mapping: tuple[MappedFact, ...]
    casts: tuple[CastsFact, ...]
    conversions: tuple[ConversionFact, ...]
    fusions: tuple[RuleFact, ...]
    missed: tuple[MissedRule, ...]
    kernels: tuple[KernelFact, ...]
    bars: tuple[Bar, ...]
    bottlenecks: tuple[tuple[str, float], ...]
    ceilings: tuple[Ceiling, ...]
    memory: DeviceMemoryFact | None = None
    advice: tuple[AdviceFact, ...] = ()
    numerics: TwinNumerics | None = None
    warnings: tuple[str, ...] = ()
    wide: tuple[tuple[str, int], ...] = ()
    pieces: int = 1
    batch_from: str = ""
    training: DeviceMemoryFact | None = None
    banner: str = BANNER

    def costliest(self, count: int = 10) -> list[KernelFact]:
        return sorted(self.kernels, key=lambda k: -k.time_us)[:count]

    @property
    def idle(self) -> str:
        """Why no kernel runs, where none does."""
        if lacking := [m.operator for m in self.mapping if m.how == "none"]:
            return f"the twin knows none for {', '.join(lacking)}"
        return "nothing is left but inputs, constants, and views of them"

    @property
    def kernels_us(self) -> float:
        return sum(k.time_us for k in self.kernels)
