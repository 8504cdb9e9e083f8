"""What `jumar enable` found, as values: one dataclass for each layer, and `Report`, which holds them all.

In: filled by the files of this room, one each.  Out: read by console.py, page.py and, as JSON, by whoever asked for `--json`.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

from jumar.tools.enable.twin_facts import TwinFact
from jumar.tools.enable.units import plural


@dataclass(frozen=True)
class Environment:
    """The machine.   looked: every place that was searched for an NPU or CANN, with what it showed."""

    cpu: str
    architecture: str
    cores: int
    vector_bits: int
    instruction_set: str
    l1_nbytes: int
    l2_nbytes: int
    l3_nbytes: int
    memory_nbytes: int
    python: str
    system: str
    versions: dict[str, str]
    npu: str
    looked: tuple[str, ...] = ()


@dataclass(frozen=True)
class InputFact:
    """One input.   declared: its type in the file; chosen: the type compiled for; source: where its values come from."""

    name: str
    declared: str
    chosen: str
    source: str


@dataclass(frozen=True)
class DimFact:
    """A free dimension and the number chosen for it."""

    name: str
    value: int
    why: str


@dataclass(frozen=True)
class ModelFact:
    """The file.   operators: name and count, most frequent first; parameters: elements of all weights."""

    file: str
    nbytes: int
    producer: str
    opsets: dict[str, int]
    operators: tuple[tuple[str, int], ...]
    parameters: int
    parameters_nbytes: int
    inputs: tuple[InputFact, ...]
    outputs: tuple[str, ...]
    dims: tuple[DimFact, ...]

    @property
    def node_count(self) -> int:
        return sum(count for _, count in self.operators)


@dataclass(frozen=True)
class PassFact:
    """One optimisation.   before, after: operators in the graph; did: what it folded, fused, removed, with counts."""

    name: str
    before: int
    after: int
    time_ms: float
    did: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class MissedFusion:
    """A fusion that did not happen.   nbytes: what passes through memory because of it."""

    producer: str
    consumer: str
    nbytes: int
    why: str


@dataclass(frozen=True)
class Block:
    """A value's place in the arena.   first, last: steps during which it is alive."""

    label: str
    offset: int
    nbytes: int
    first: int
    last: int


@dataclass(frozen=True)
class MemoryFact:
    """The plan.   total: sum of all tensors; peak: the arena; bound: largest sum of live bytes; live: that sum, step by step;
    arenas: of how many pieces these are the sums."""

    total_nbytes: int
    peak_nbytes: int
    bound_nbytes: int
    constants_nbytes: int
    live_nbytes: tuple[int, ...] = ()
    blocks: tuple[Block, ...] = ()
    arenas: int = 1

    @property
    def saving_percent(self) -> float:
        return 100.0 * (1 - self.peak_nbytes / self.total_nbytes) if self.total_nbytes else 0.0

    @property
    def over_bound(self) -> float:
        return self.peak_nbytes / self.bound_nbytes if self.bound_nbytes else 1.0


@dataclass(frozen=True)
class CompileFact:
    """Times in seconds.   cold: with an empty cache; cached: again, all from disk, None where no cache is used; stages: seconds of each part, cold."""

    cold_s: float
    cached_s: float | None
    kernels: int
    steps: int
    host_steps: tuple[str, ...] = ()
    stages: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class OutputError:
    """How far one output is from the reference.   max_rel: largest |error| / (|reference| + 1e-4 of its largest)."""

    name: str
    type: str
    max_abs: float
    max_rel: float
    within: bool


@dataclass(frozen=True)
class Drift:
    """The first node, in order, whose value is out of tolerance."""

    node: str
    place: str
    max_abs: float
    max_rel: float


@dataclass(frozen=True)
class NumericsFact:
    """Against what and how near.   time_s: what the reference took."""

    reference: str
    tolerance: str
    outputs: tuple[OutputError, ...]
    drift: Drift | None
    time_s: float

    @property
    def within(self) -> bool:
        return all(o.within for o in self.outputs)


@dataclass(frozen=True)
class StepFact:
    """One step of the program.   time_ms: its median; starts and ends: (thread, start, end) in ms for the timeline."""

    index: int
    label: str
    kind: str
    place: str
    time_ms: float
    flops: int
    nbytes: int
    lanes: tuple[tuple[int, float, float], ...] = ()

    @property
    def gflops_per_s(self) -> float:
        return self.flops / self.time_ms / 1e6 if self.time_ms else 0.0

    @property
    def gbytes_per_s(self) -> float:
        return self.nbytes / self.time_ms / 1e6 if self.time_ms else 0.0


@dataclass(frozen=True)
class SpeedFact:
    """Times of whole runs in ms.   peak_gflops_per_s: what this machine's multiply-add units were measured to do."""

    runs: int
    threads: int
    median_ms: float
    p10_ms: float
    p90_ms: float
    per_s: float
    flops: int
    gflops_per_s: float
    peak_gflops_per_s: float
    steps: tuple[StepFact, ...] = ()

    @property
    def percent_of_peak(self) -> float:
        return 100.0 * self.gflops_per_s / self.peak_gflops_per_s if self.peak_gflops_per_s else 0.0

    def costliest(self, count: int = 10) -> list[StepFact]:
        return sorted(self.steps, key=lambda s: -s.time_ms)[:count]

    @property
    def steps_ms(self) -> float:
        return math.fsum(s.time_ms for s in self.steps)

    @property
    def between_ms(self) -> float:
        """What the median run takes beyond its steps: calls, copies, and what runs in Python between native pieces."""
        return max(self.median_ms - self.steps_ms, 0.0)


@dataclass(frozen=True)
class GraphNode:
    """A box of the picture.   inputs: indices of boxes; -1 - i is graph input i."""

    title: str
    kind: str
    type: str
    place: str
    inputs: tuple[int, ...]
    detail: str = ""


@dataclass(frozen=True)
class Report:
    """Everything.   None where a layer was not reached or left out; twins: what the model would do on NPUs, one for each chip."""

    title: str
    environment: Environment
    model: ModelFact
    passes: tuple[PassFact, ...] = ()
    missed: tuple[MissedFusion, ...] = ()
    compile: CompileFact | None = None
    memory: MemoryFact | None = None
    numerics: NumericsFact | None = None
    speed: SpeedFact | None = None
    graph: tuple[GraphNode, ...] = ()
    twins: tuple[TwinFact, ...] = ()
    warnings: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)

    @property
    def captured(self) -> int:
        """Operators in the graph that the first pass gets."""
        return self.passes[0].before if self.passes else 0

    @property
    def captured_text(self) -> str:
        """How the file's operators became the graph engine's."""
        inside, first = plural(self.model.node_count, "operator"), self.captured
        if first == self.model.node_count:
            return f"{inside} in the file, as many in the captured graph"
        why = "the import settles what is known by then and maps each operator to one or several of ours"
        return f"{inside} in the file, {first} in the captured graph: {why}"

    def as_json(self) -> dict[str, Any]:
        """Plain values, with the derived figures beside the measured ones; what has no number is null."""
        document: dict[str, Any] = _plain(self)
        document["model"]["node_count"] = self.model.node_count
        if self.memory:
            document["memory"] |= {"saving_percent": self.memory.saving_percent, "over_bound": self.memory.over_bound}
        if self.numerics:
            document["numerics"]["within"] = self.numerics.within
        if self.speed:
            document["speed"] |= {"percent_of_peak": self.speed.percent_of_peak, "between_ms": self.speed.between_ms}
            document["speed"]["costliest"] = [s.index for s in self.speed.costliest()]
        for twin, fact in zip(document["twins"], self.twins, strict=True):
            twin |= {"kernels_us": fact.kernels_us, "costliest": [k.index for k in fact.costliest()]}
            if fact.memory:
                twin["memory"] |= {"saving_percent": fact.memory.saving_percent}
        return document


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int | str | bool) or value is None:
        return value
    return str(value)
