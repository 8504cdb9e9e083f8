"""Memory of a graph on an NPU: what it takes, what makes its peak, what sharing saves, and whether it fits.

In: launches in order of execution (compiler/twin/tasks.py), the graph that they come from, a `Chip`, a mode.  Out: `DeviceMemory`.  In graph mode every value
has a place beforehand (compiler/plan.py), as GE and MindSpore's graph mode plan it; operator by operator the blocks come from the framework's pool
(device/npu/allocator.py).  A training step is planned from its forward graph (compiler/twin/train_memory.py); compiler/twin/fit.py looks for what makes it fit.

Each part says what it stands on: `planned` from the graph, `documented` by the vendor, or `estimated`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from jumar.base import CompileError, nearest
from jumar.compiler.plan import Plan, plan
from jumar.compiler.twin.memory_trace import Trace, Value, Work, for_memory, live_nbytes, lives_of, peak_nbytes, spans, trace_of
from jumar.compiler.twin.train_memory import BothHalves, Training, both_halves, in_order, standing, training_trace
from jumar.device.npu import MIB, Chip, Event, History, Task, events_of, pool_rules, replay, size_text
from jumar.ir import Constant, Get, Graph, Node

MODES = ("graph", "pynative")
HCCL_BUFFER_NBYTES = 200 * MIB  # HCCL_BUFFSIZE; a communicator takes one to send and one to receive
RUNTIME_NBYTES = 512 * MIB  # streams, loaded kernels, the context: an estimate
POOLS = {"mindspore": "mindspore", "torch_npu": "torch_npu", "acl": "mindspore"}


class Launched(Protocol):
    """What is read of a launch."""

    @property
    def task(self) -> Task: ...
    @property
    def nodes(self) -> tuple[Node, ...]: ...
    @property
    def reads(self) -> tuple[int | None, ...]: ...
    @property
    def slots(self) -> tuple[int, ...]: ...
    @property
    def writes(self) -> tuple[Node, ...]: ...


@dataclass(frozen=True)
class Part:
    """One part of the memory.   evidence: `planned`, `documented` or `estimated`."""

    name: str
    nbytes: int
    evidence: str
    note: str = ""


@dataclass(frozen=True)
class Held:
    """A value that stands in memory at the peak.   first, last: numbers of the launches between which it does."""

    nbytes: int
    label: str
    place: str
    kind: str
    first: int
    last: int


@dataclass(frozen=True, eq=False)
class DeviceMemory:
    """What a graph takes of a chip.

    capacity: the chip's memory; usable: what is left of it for the model; needed: what the model takes.   parts: of `needed`; reserved: of the rest.
    arena: bytes of all values that share places; bound: the most that is alive at one launch, which no plan for this order beats; unshared: each
    value in a place of its own.   live: bytes alive at each launch, `peak` the launch where most are, at_peak: the largest values there.
    plan in graph mode, history in PYNATIVE mode; training as it was asked for.
    """

    chip: str
    mode: str
    capacity_nbytes: int
    usable_nbytes: int
    needed_nbytes: int
    parts: tuple[Part, ...]
    reserved: tuple[Part, ...]
    arena_nbytes: int
    bound_nbytes: int
    unshared_nbytes: int
    peak: int
    live_nbytes: tuple[int, ...] = field(repr=False)
    at_peak: tuple[Held, ...] = field(repr=False)
    plan: Plan | None = field(default=None, repr=False)
    history: History | None = field(default=None, repr=False)
    training: Training | None = None
    notes: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        return self.needed_nbytes <= self.usable_nbytes and (self.history is None or self.history.fault is None)

    @property
    def saving(self) -> float:
        """Part of the values' bytes that sharing places saves."""
        return 1.0 - self.arena_nbytes / self.unshared_nbytes if self.unshared_nbytes else 0.0

    @property
    def text(self) -> str:
        """A few lines for a reader."""
        verdict = "fits" if self.fits else "does not fit"
        lines = [
            f"{self.chip}, {self.mode} mode: {verdict}: {size_text(self.needed_nbytes)} of {size_text(self.usable_nbytes)} usable"
            f" ({size_text(self.capacity_nbytes)} on the chip)"
        ]
        lines += [f"  {p.name:<28} {size_text(p.nbytes):>12}  {p.evidence}{f': {p.note}' if p.note else ''}" for p in self.parts]
        lines += [
            f"  {'not usable: ' + p.name:<28} {size_text(p.nbytes):>12}  {p.evidence}{f': {p.note}' if p.note else ''}"
            for p in self.reserved
        ]
        lines.append(
            f"  sharing saves {self.saving:.0%} of {size_text(self.unshared_nbytes)};"
            f" no plan for this order needs less than {size_text(self.bound_nbytes)}"
        )
        lines.append(f"  the peak is at launch {self.peak}; the largest values there:")
        lines += [f"    {size_text(h.nbytes):>12}  {h.kind:<10} {h.label}{f'  {h.place}' if h.place else ''}" for h in self.at_peak[:8]]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    def check(self) -> None:
        """Raises where the model does not fit."""
        if self.fits:
            return
        if self.history is not None and self.history.fault is not None:
            raise self.history.fault
        held = "".join(f"\n    {size_text(h.nbytes):>12}  {h.label}{f'  {h.place}' if h.place else ''}" for h in self.at_peak[:5])
        raise CompileError(
            f"{self.chip}: memory of the model must fit into {size_text(self.usable_nbytes)} usable, got {size_text(self.needed_nbytes)};"
            f" the largest values at its peak:{held}",
            hint="`fit(...)` in jumar.compiler tells the batch, recomputation or sharding with which it does",
            code="npu-memory",
        )


def device_memory(
    launches: Sequence[Launched],
    graph: Graph,
    chip: Chip,
    *,
    mode: str = "graph",
    training: Training | None = None,
    framework: str = "mindspore",
    communicators: int = 0,
    buffer_nbytes: int = HCCL_BUFFER_NBYTES,
    pool: str = "",
    weights: Sequence[Node] | None = None,
) -> DeviceMemory:
    """The memory of a graph on a chip.   launches: in order of execution; without any, each operator of the graph counts as one.

    mode: `graph` plans, `pynative` runs the requests through the framework's pool.   framework: whose reserve and pool, `mindspore`, `torch_npu` or
    `acl` (an offline model).   communicators: groups of devices; buffer_nbytes: HCCL_BUFFSIZE.   pool: rules by name, else the framework's.
    training: the graph is a forward one and is trained so; `weights`: its parameters that are trained, else its constants of floats.
    """
    if mode not in MODES:
        raise CompileError(
            f"device memory: mode must be graph or pynative, got {mode!r}", hint=nearest(mode, MODES), code="npu-memory-mode"
        )
    if framework not in POOLS:
        what = f"device memory: framework must be one of {', '.join(POOLS)}, got {framework!r}"
        raise CompileError(what, hint=nearest(framework, list(POOLS)), code="npu-memory-mode")
    pad = chip_pad_nbytes(chip)
    if training is not None and not graph.updates:
        halves = both_halves(graph, weights)
        return training_memory(
            halves, chip, training, mode=mode, framework=framework, communicators=communicators, buffer_nbytes=buffer_nbytes, pool=pool
        )  # fmt: skip
    trace = trace_of_launches(launches, graph, chip) if launches else trace_of(graph).trace
    parts = _standing_parts(launches, graph, weights or ())
    reserved, usable = reserve(chip, framework, communicators, buffer_nbytes)
    return _measured(trace, parts, chip, mode, reserved, usable, pad, pool or POOLS[framework], None, ())


def training_memory(
    halves: BothHalves,
    chip: Chip,
    training: Training,
    *,
    mode: str = "graph",
    framework: str = "mindspore",
    communicators: int | None = None,
    buffer_nbytes: int = HCCL_BUFFER_NBYTES,
    pool: str = "",
    trace: Trace | None = None,
) -> DeviceMemory:
    """The memory of a training step on one of its devices.   trace: in place of the one that `halves` and `training` give."""
    if trace is None:  # a script has all gradients before it updates
        kept = replace(training, keep_gradients=True) if mode == "pynative" and training.keep_gradients is None else training
        trace = in_order(training_trace(halves, kept), training)
    weights = set(halves.weights)
    inputs = sum(p.type.nbytes for p in halves.graph.params if p not in weights)
    parts = [Part(s.kind, s.nbytes, "planned", s.what) for s in standing([w.type for w in halves.weights], training)]
    if inputs:
        parts.append(Part("input", inputs, "planned", "what the step is fed"))
    if training.shard >= 3 and weights:
        widest = max(w.type.nbytes for w in weights)
        parts.append(Part("gathered weights", 2 * widest, "estimated", "two of the largest layer, while it is gathered"))
    groups = training.communicators if communicators is None else max(communicators, training.communicators)
    reserved, usable = reserve(chip, framework, groups, buffer_nbytes)
    notes = (
        ("values inside layers are counted divided by the tensor-parallel devices, those between blocks whole",)
        if training.tensor > 1
        else ()
    )
    return _measured(trace, tuple(parts), chip, mode, reserved, usable, chip_pad_nbytes(chip), pool or POOLS[framework], training, notes)


def _measured(
    trace: Trace, parts: tuple[Part, ...], chip: Chip, mode: str, reserved: tuple[Part, ...], usable: int,
    pad: int, pool: str, training: Training | None, notes: tuple[str, ...],
) -> DeviceMemory:  # fmt: skip
    """The plan, or the pool's history, of a trace, with what stands beside it."""
    live = live_nbytes(trace)
    better = peak_nbytes(for_memory(trace))
    if mode == "graph" and better < 0.98 * max(live, default=0):
        notes = (*notes, f"an order of the launches that frees values as soon as it can needs {size_text(max(live) - better)} less")
    peak = max(range(len(live)), key=lambda i: live[i], default=0)
    lives = lives_of(trace, 512, pad)
    fixed = sum(p.nbytes for p in parts)
    if mode == "graph":
        planned = plan(lives)
        arena, bound, history = planned.nbytes, planned.bound, None
        parts = (*parts, Part("values in shared places", arena, "planned", f"{len(lives)} values, {planned.method}"))
        needed = fixed + arena
    else:
        planned = None
        rules = pool_rules(pool, pad=bool(pad))
        history = replay(_events(trace, parts), rules, usable)
        needed = history.peak_reserved_nbytes
        bound = max(live, default=0)
        arena = max(needed - fixed, 0)
        parts = (*parts, Part("values and free blocks", arena, "planned", f"the pool of {rules.name} at its largest"))
        at = history.at_peak
        if at is not None and at.free_nbytes:
            notes = (
                *notes,
                f"at the largest, {size_text(at.free_nbytes)} of the pool were free, {size_text(at.largest_free_nbytes)} in one piece",
            )
    return DeviceMemory(
        chip.name, mode, chip.memory_nbytes, usable, needed, parts, reserved, arena, bound, sum(life.nbytes for life in lives),
        peak, tuple(live), held_at(trace, peak), planned, history, training, notes,
    )  # fmt: skip


def held_at(trace: Trace, at: int, count: int = 20) -> tuple[Held, ...]:
    """The largest values that are alive at a work."""
    alive = [(v, s) for v, s in spans(trace).items() if s[0] <= at <= s[1] and trace.values[v].nbytes]
    alive.sort(key=lambda item: (-trace.values[item[0]].nbytes, item[1]))
    return tuple(
        Held(trace.values[v].nbytes, trace.values[v].label, trace.values[v].place, trace.values[v].kind, *s) for v, s in alive[:count]
    )


def _events(trace: Trace, parts: Sequence[Part]) -> Iterator[Event]:
    end = len(trace.works)
    lives = [(p.nbytes, -1, end, p.name, "", True) for p in parts if p.nbytes]
    lives += [
        (trace.values[v].nbytes, first, last, trace.values[v].label, trace.values[v].place, False)
        for v, (first, last) in sorted(spans(trace).items(), key=lambda item: (item[1][0], item[0]))
        if trace.values[v].nbytes
    ]
    return events_of(lives)


# ---------------------------------------------------------------------- what is not the model's


def reserve(chip: Chip, framework: str, communicators: int, buffer_nbytes: int = HCCL_BUFFER_NBYTES) -> tuple[tuple[Part, ...], int]:
    """What of a chip's memory a model cannot have, and what is left.

    MindSpore takes 15/16 of what is free, in whole 2 MB, less 10 MB, and leaves the rest to HCCL and the runtime; where those need more, it gets less.
    """
    share, why = _system_share(chip)
    system = int(chip.memory_nbytes * share)
    free = chip.memory_nbytes - system
    buffers = 2 * buffer_nbytes * communicators
    parts = [Part("system", system, "estimated", why)] if system else []
    if buffers:
        parts.append(
            Part(
                "communication",
                buffers,
                "documented",
                f"2 x {size_text(buffer_nbytes)} (HCCL_BUFFSIZE) for each of {communicators} communicators",
            )
        )
    if framework == "mindspore":
        left = free - (free * 15 // 16 // (2 * MIB) * 2 * MIB - 10 * MIB)
        if left >= buffers + RUNTIME_NBYTES:
            parts.append(
                Part("framework and runtime", left - buffers, "documented", "MindSpore leaves 1/16 and 10 MB to HCCL and the runtime")
            )
        else:
            parts.append(
                Part(
                    "runtime",
                    RUNTIME_NBYTES,
                    "estimated",
                    "max_device_memory has to be lowered: MindSpore's 1/16 does not hold the buffers",
                )
            )
    else:
        parts.append(Part("runtime", RUNTIME_NBYTES, "estimated", "streams, loaded kernels, the context"))
    return tuple(parts), max(chip.memory_nbytes - sum(p.nbytes for p in parts), 0)


def _system_share(chip: Chip) -> tuple[float, str]:
    """The part of the memory that no process is offered, from `total capacity` in users' logs of torch_npu."""
    if chip.family.startswith("Ascend310P"):
        return 1 - 43.24 / 48, "a user's log: 43.24 of 48 GiB"
    if chip.split:
        return 1 - 61.27 / 64, "a user's log: 61.27 of 64 GiB"
    return 0.0, ""


def chip_pad_nbytes(chip: Chip) -> int:
    """Bytes behind a tensor that a core may touch: 32 before the 950, none from it on."""
    return 0 if chip.arch >= 3510 else 32


# ---------------------------------------------------------------------- launches


def trace_of_launches(launches: Sequence[Launched], graph: Graph, chip: Chip) -> Trace:
    """The trace of launches, each with the memory that its kernel asks for while it runs.

    What replaces a parameter is written over it, so it takes nothing, where no later launch reads the old value.
    """
    values: list[Value] = []
    works: list[Work] = []
    made: list[tuple[int, ...]] = []
    for launch in launches:
        task = launch.task
        label = task.label or task.kind
        writes = []
        for n, operand in enumerate(task.outputs):
            shape = ", ".join(map(str, operand.shape))
            values.append(
                Value(operand.nbytes, "activation", f"{label}{f'[{n}]' if n else ''} {operand.dtype}[{shape}] {operand.format}", task.place)
            )
            writes.append(len(values) - 1)
        made.append(tuple(writes))
        if asked := workspace_nbytes(task, chip):
            values.append(Value(asked, "workspace", f"workspace of {label}", task.place))
            writes.append(len(values) - 1)
        reads = tuple(made[r][slot] for r, slot in zip(launch.reads, launch.slots, strict=True) if r is not None and r >= 0)
        works.append(Work(tuple(dict.fromkeys(reads)), tuple(writes), (), task.kind, task.place))
    holders = _holders(launches, made, graph)
    last = {-1 - r: at for at, launch in enumerate(launches) for r in launch.reads if r is not None and r < 0}
    for o, p in graph.updates:
        at, v = holders.get(graph.outputs[o], (-1, -1))
        if v >= 0 and last.get(p, -1) <= at:
            values[v] = replace(values[v], nbytes=0, kind="update")
    return Trace(tuple(values), tuple(works), frozenset(v for _, v in holders.values()))


def _holders(launches: Sequence[Launched], made: Sequence[tuple[int, ...]], graph: Graph) -> dict[Node, tuple[int, int]]:
    """The launch and the value that hold each output of the graph: its maker's, or those of the conversion behind it that nobody reads."""
    read = {(r, slot) for launch in launches for r, slot in zip(launch.reads, launch.slots, strict=True)}
    held: dict[tuple[Node, int], tuple[int, int]] = {}
    for at, launch in enumerate(launches):
        count: dict[Node, int] = {}
        for slot, node in enumerate(launch.writes):
            index = count.get(node, 0)
            count[node] = index + 1
            if launch.nodes or (at, slot) not in read:
                held[node, index] = (at, made[at][slot])
    found = {}
    for output in graph.outputs:
        node, index = output, 0
        while (node, index) not in held and node.inputs:
            index = node.op.index if isinstance(node.op, Get) else index
            node = node.inputs[0]  # a view, or one of several results
        if (node, index) in held:
            found[output] = held[node, index]
    return found


def _standing_parts(launches: Sequence[Launched], graph: Graph, weights: Sequence[Node]) -> tuple[Part, ...]:
    """Weights as the device stores them, what a training step keeps, inputs."""
    updated = {graph.params[p] for _, p in graph.updates}
    fixed = set(weights) - updated
    stored = _stored_weights(launches)
    plain = [n for n in graph.nodes if (isinstance(n.op, Constant) and n not in stored) or n in fixed]
    held = sum(n.type.nbytes for n in plain) + sum(stored.values())
    padded = sum(stored.values()) - sum(n.type.nbytes for n in stored)
    kept = sum(p.type.nbytes for p in updated)
    inputs = sum(p.type.nbytes for p in graph.params if p not in updated and p not in fixed)
    parts = []
    if held:
        parts.append(
            Part("weights", held, "planned", f"{size_text(padded)} more than in plain memory, for their formats" if padded > 0 else "")
        )
    if kept:
        parts.append(Part("weights and state", kept, "planned", "parameters that the step writes"))
    if inputs:
        parts.append(Part("inputs", inputs, "planned"))
    return tuple(parts)


def _stored_weights(launches: Sequence[Launched]) -> dict[Node, int]:
    """Bytes of constants in the format in which kernels read them; the largest, where they are read in several."""
    found: dict[Node, int] = {}
    for launch in launches:
        known = [o for o, r in zip(launch.task.inputs, launch.reads, strict=False) if r is None]
        inside = set(launch.nodes)
        read = [_source(i) for n in launch.nodes for i in n.inputs if i not in inside]
        constants = [n for n in read if isinstance(n.op, Constant)]
        if len(known) != len(constants):
            continue  # a value without inputs that is no constant, or one that is read twice
        for operand, node in zip(known, constants, strict=True):
            found[node] = max(found.get(node, 0), operand.nbytes)
    return found


def _source(node: Node) -> Node:
    """What a node of movements only shows."""
    while node.op.family == "movement" and len(node.inputs) == 1:
        (node,) = node.inputs
    return node


def _fp32(task: Task, chip: Chip) -> int:
    return sum(o.size for o in task.outputs) * 4


def _sort(task: Task, chip: Chip) -> int:
    return 2 * sum(o.nbytes for o in task.inputs[:1]) + 16 * MIB


def _partial_sums(task: Task, chip: Chip) -> int:
    return min(chip.vector_cores, 64) * 4 * max((o.shape[-1] if o.shape else 1 for o in task.outputs), default=1)


def _attention(task: Task, chip: Chip) -> int:
    # scores and partial results of the tiles that the cores are at: 128 x 512 in fp32, twice, for each cube core
    return 16 * MIB + chip.cube_cores * 2 * 128 * 512 * 4


def _system(task: Task, chip: Chip) -> int:
    return 16 * MIB  # what the high-level interfaces of Ascend C ask for on chips with separate cores


# bytes that a kernel asks for while it runs, by CANN's operator type: estimates from how such kernels work
WORKSPACE: Mapping[str, Callable[[Task, Chip], int]] = {
    "Conv2DBackpropFilter": _fp32, "Conv3DBackpropFilter": _fp32, "TopK": _sort, "TopKV2": _sort, "Sort": _sort,
    "LayerNormGrad": _partial_sums, "LayerNormGradV3": _partial_sums, "RmsNormGrad": _partial_sums, "BNTrainingReduce": _partial_sums,
    "FlashAttentionScore": _attention, "FlashAttentionScoreGrad": _attention, "PromptFlashAttention": _attention,
    "IncreFlashAttention": _attention, "FusedInferAttentionScore": _attention, "GroupedMatmul": _system, "MoeInitRouting": _sort,
}  # fmt: skip


def workspace_nbytes(task: Task, chip: Chip) -> int:
    """What a kernel asks for while it runs, an estimate by its kind."""
    asks = WORKSPACE.get(task.kind)
    return asks(task, chip) if asks is not None else 0
