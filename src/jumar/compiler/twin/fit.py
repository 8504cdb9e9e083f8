"""`fit`: does a model fit a chip, with which batch, and if not, what makes it fit.

In: a forward graph, a `Chip`, how it is trained (or that it is not).  Out: `Verdict`: what it needs, the largest batch, and ways that make it fit, each
with its bytes and what it costs in time, cheapest first.  Numbers for other batches come from the same graph at a second batch (`at_batch`): each value
is a fixed part and a part for each sample. Where a graph cannot be made at another batch, all its values count as proportional, and the verdict says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from jumar.base import Array, StackError
from jumar.compiler.autodiff import Custom
from jumar.compiler.twin.memory import HCCL_BUFFER_NBYTES, DeviceMemory, device_memory, reserve, training_memory
from jumar.compiler.twin.memory_trace import Trace, spans, trace_of
from jumar.compiler.twin.sizes import batch_of, with_batch
from jumar.compiler.twin.train_memory import (
    FORWARD_AGAIN,
    BothHalves,
    Training,
    both_halves,
    in_order,
    standing,
    traffic_again,
    training_trace,
)
from jumar.device.npu import Chip, size_text
from jumar.ir import Constant, Graph, Node, Op, Param, apply, param
from jumar.operators import Broadcast, Reshape

LIMIT = 1 << 20  # samples: beyond, the search stops
DEVICES = 8  # of one server: what sharding is offered with where the user named no number


@dataclass(frozen=True)
class Way:
    """One way to make a model fit.   what: in words, command: what says it in MindSpore; batch: samples a device and step; samples: of an update.

    needed: bytes; largest_batch: with all else equal; cost: in time, in words; slower: part of a step's time that it adds, predicted.
    """

    what: str
    command: str
    training: Training | None
    batch: int
    samples: int
    needed_nbytes: int
    largest_batch: int
    cost: str
    slower: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """Whether a model fits a chip.   batch: the graph's; largest_batch: with nothing else changed, 0 where not even one sample fits."""

    chip: str
    fits: bool
    batch: int
    needed_nbytes: int
    usable_nbytes: int
    largest_batch: int
    ways: tuple[Way, ...]
    memory: DeviceMemory
    notes: tuple[str, ...] = ()

    @property
    def largest_text(self) -> str:
        """The largest batch in words."""
        return _count_text(self.largest_batch)

    @property
    def text(self) -> str:
        """The verdict in words."""
        said = "fits" if self.fits else "fits with what is named below" if self.ways else "does not fit, nor with anything tried"
        lines = [
            f"{self.chip}: {said}: batch {self.batch} needs {size_text(self.needed_nbytes)} of {size_text(self.usable_nbytes)} usable;"
            f" the largest batch is {self.largest_text}"
        ]
        for way in self.ways:
            samples = f", {way.samples} samples an update" if way.samples != way.batch else ""
            lines.append(
                f"  {way.what}: batch {way.batch}{samples}, {size_text(way.needed_nbytes)} (up to batch {_count_text(way.largest_batch)}); {way.cost}"
                + (f"; {way.command}" if way.command else "")
            )
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])


def _count_text(samples: int) -> str:
    return "none" if not samples else f"more than {samples} (not searched further)" if samples == LIMIT else str(samples)


def fit(
    graph: Graph,
    chip: Chip,
    training: Training | None = None,
    *,
    batch: int = 0,
    weights: Sequence[Node] | None = None,
    custom: Mapping[Node, Custom] | None = None,
    framework: str = "mindspore",
    buffer_nbytes: int = HCCL_BUFFER_NBYTES,
    build: Callable[[int], Graph] | None = None,
    memory: DeviceMemory | None = None,
) -> Verdict:
    """The verdict on a graph and a chip.   batch: samples of the graph, else the first dimension that most of its inputs share.

    weights: parameters that are trained, else constants of floats.   build: makes the graph for another batch, where the caller can (then `weights` and
    `custom` are those of the first graph and are found again by their labels and order).   memory: what a forecast found for this graph and batch in
    graph mode, with its kernels and formats: it is what counts then, and other batches are in proportion to it.
    """
    samples = batch or samples_of(graph, weights or ())
    notes: list[str] = []
    scaled = _Scaled.of(graph, samples, weights, custom, build, notes)
    have = training or None
    groups = have.communicators if have else 0
    _, usable = reserve(chip, framework, groups, buffer_nbytes)
    search = _Search(scaled, chip, framework, buffer_nbytes)
    if have is not None:
        halves = scaled.halves or both_halves(graph, weights, custom)  # the second raises, and says what cannot be trained
        memory = training_memory(halves, chip, have, framework=framework, buffer_nbytes=buffer_nbytes)
    elif memory is None:
        memory = device_memory((), graph, chip, framework=framework, buffer_nbytes=buffer_nbytes, weights=weights)
    search.measure(have, samples, memory)
    needed = memory.needed_nbytes
    fits = needed <= usable
    largest = search.largest_batch(have)
    ways = () if fits else search.ways(have, samples)
    return Verdict(chip.name, fits, samples, needed, usable, largest, ways, memory, tuple(notes))


def samples_of(graph: Graph, weights: Sequence[Node] = ()) -> int:
    """The first dimension that most inputs share."""
    known = set(weights)
    firsts = [p.shape[0] for p in graph.params if p not in known and p.type.shape]
    return max(set(firsts), key=lambda n: (firsts.count(n), n)) if firsts else 1


# ---------------------------------------------------------------------- another batch


def at_batch(graph: Graph, batch: int, other: int, weights: Sequence[Node] = ()) -> tuple[Graph, dict[Node, Node]] | None:
    """The graph with `other` samples in place of `batch`, and which node became which; None where that cannot be.

    Inputs whose first dimension is the batch get the other one, or those that it divides, where that alone does not do; shapes that operators carry follow
    in the first dimension that the batch divides.
    """
    if batch < 1:
        return None
    return _at_batch(graph, batch, other, weights, lambda n: n == batch) or _at_batch(
        graph, batch, other, weights, lambda n: n % batch == 0
    )


def _twice(
    graph: Graph, samples: int, weights: Sequence[Node] | None, custom: Mapping[Node, Custom] | None
) -> tuple[Graph, dict[Node, Node]] | None:
    """The graph at twice its batch; a plain model by following its examples (variants.py), a loss over all of them by its sizes."""
    if weights is None and not custom and batch_of(graph) == samples:
        followed = with_batch(graph, 2 * samples)
        if followed is not None:
            return followed, {}
    return at_batch(graph, samples, 2 * samples, weights or ())


def _at_batch(
    graph: Graph, batch: int, other: int, weights: Sequence[Node], follows: Callable[[int], bool]
) -> tuple[Graph, dict[Node, Node]] | None:
    known = set(weights)
    new: dict[Node, Node] = {}
    for p in graph.params:
        scales = p not in known and p.type.shape and follows(p.shape[0])
        shape = (p.shape[0] // batch * other, *p.shape[1:]) if scales else p.type.shape
        new[p] = param(p.op.label, p.type.with_shape(shape), p.loc) if scales and isinstance(p.op, Param) else p
    try:
        for node in graph.nodes:
            if node in new:
                continue
            if isinstance(node.op, Constant):
                new[node] = node
                continue
            inputs = tuple(new[i] for i in node.inputs)
            op = node.op
            if not node.inputs or (_carries_shape(op) and _grew(node, inputs, batch)):
                op = _scaled_op(op, batch, other)
            same = op is node.op and all(a is b for a, b in zip(inputs, node.inputs, strict=True))
            new[node] = node if same else apply(op, *inputs, loc=node.loc)
    except (StackError, ValueError, IndexError, TypeError):
        return None
    return Graph(graph.name, tuple(new[p] for p in graph.params), tuple(new[o] for o in graph.outputs), graph.output_names), new


def _carries_shape(op: Op) -> bool:
    return any(f.name == "shape" for f in fields(op))  # type: ignore[arg-type]


def _grew(node: Node, inputs: tuple[Node, ...], batch: int) -> bool:
    """Whether a shape that an operator carries has to follow the batch."""
    if isinstance(node.op, Broadcast):
        source = inputs[0].type.shape
        return node.shape[:1] == (batch,) and (len(source) < len(node.shape) or source[0] != batch)
    if isinstance(node.op, Reshape):
        return any(a.type != b.type for a, b in zip(inputs, node.inputs, strict=True))
    return True  # random numbers and the like


def _scaled_op(op: Op, batch: int, other: int) -> Op:
    """The operator with the first dimension of its shape that the batch divides following it."""
    if not _carries_shape(op):
        return op
    shape: tuple[int, ...] = op.shape  # type: ignore[attr-defined]
    for at, size in enumerate(shape):
        if size and size % batch == 0:
            grown = (*shape[:at], size // batch * other, *shape[at + 1 :])
            return replace(op, shape=grown)  # type: ignore[type-var]
    return op


@dataclass(frozen=True, eq=False)
class _Scaled:
    """A graph at its batch and at twice that, as traces can be made of both."""

    graph: Graph
    samples: int
    weights: tuple[Node, ...]
    halves: BothHalves | None
    other: Graph | None
    other_halves: BothHalves | None

    @staticmethod
    def of(
        graph: Graph, samples: int, weights: Sequence[Node] | None, custom: Mapping[Node, Custom] | None,
        build: Callable[[int], Graph] | None, notes: list[str],
    ) -> _Scaled:  # fmt: skip
        halves = _halves(graph, weights, custom)
        twice = _twice(graph, samples, weights, custom) if build is None else (build(2 * samples), {})
        if twice is None:
            notes.append(f"{graph.name} cannot be made at another batch: other batches are counted as if every value grew with it")
            return _Scaled(graph, samples, tuple(weights or ()), halves, None, None)
        other, new = twice
        if halves is None:
            return _Scaled(graph, samples, tuple(weights or ()), None, other, None)
        place = {p: i for i, p in enumerate(graph.params)}
        matching = [other.params[place[w]] for w in weights] if weights is not None else None
        moved = {new[n]: rule for n, rule in (custom or {}).items() if n in new}
        if custom and len(moved) < len(custom):
            notes.append("operators with gradients of their own are counted as at the first batch")
        try:
            other_halves = _halves(other, matching, moved)
        except StackError:
            other_halves = None
        return _Scaled(graph, samples, tuple(weights or ()), halves, other, other_halves)

    def growth(self, training: Training | None) -> _Growth:
        """When each value is alive, its bytes, and how many of them come with each sample."""
        first, second = self._traces(training)
        if second is not None and (len(second.values), len(second.works)) != (len(first.values), len(first.works)):
            second = None
        if training is not None and self.halves is not None:
            first = in_order(first, training)
        made = sorted(spans(first).items())
        nbytes = np.array([first.values[v].nbytes for v, _ in made], np.float64)
        if second is None:
            grows = np.array(
                [first.values[v].nbytes if first.values[v].kind in ("activation", "backward") else 0 for v, _ in made], np.float64
            )
        else:
            grows = np.array([second.values[v].nbytes for v, _ in made], np.float64) - nbytes
        each = grows / self.samples
        ends = np.array([(low, high + 1) for _, (low, high) in made], np.int64).reshape(-1, 2)
        return _Growth(nbytes - grows, each, ends[:, 0], ends[:, 1], len(first.works), traffic_again(first))

    def _traces(self, training: Training | None) -> tuple[Trace, Trace | None]:
        if training is None or self.halves is None:
            return trace_of(self.graph).trace, trace_of(self.other).trace if self.other is not None else None
        second = training_trace(self.other_halves, training) if self.other_halves is not None else None
        return training_trace(self.halves, training), second


@dataclass(frozen=True, eq=False)
class _Growth:
    """Values of a trace as functions of the batch: fixed bytes, bytes for each sample, first work, and the one after the last.

    again: part of a step's memory traffic that works done again add.
    """

    fixed: Array
    each: Array
    first: Array
    after: Array
    works: int
    again: float

    def peak_nbytes(self, batch: int) -> int:
        """The most that is alive at one work."""
        nbytes = self.fixed + self.each * batch
        change = np.zeros(self.works + 1)
        np.add.at(change, self.first, nbytes)
        np.subtract.at(change, self.after, nbytes)
        return int(np.cumsum(change).max(initial=0))


def _halves(graph: Graph, weights: Sequence[Node] | None, custom: Mapping[Node, Custom] | None) -> BothHalves | None:
    try:
        return both_halves(graph, weights, custom)
    except StackError:
        return None  # a graph of integers, or an operator without a gradient: it is not trained


# ---------------------------------------------------------------------- the search


class _Search:
    """Bytes of options and batches.

    ratio, beside: what was planned for the first batch over the peak of its trace, and bytes more that stand; other batches are given both, too.
    """

    def __init__(self, scaled: _Scaled, chip: Chip, framework: str, buffer_nbytes: int) -> None:
        self.scaled, self.chip, self.framework, self.buffer_nbytes = scaled, chip, framework, buffer_nbytes
        self.ratio, self.beside = 1.0, 0
        self.grown: dict[Training | None, _Growth] = {}

    def measure(self, training: Training | None, samples: int, memory: DeviceMemory) -> None:
        """Takes what was planned as the measure."""
        peak = self._growth(training).peak_nbytes(samples)
        self.ratio = memory.arena_nbytes / peak if peak else 1.0
        self.beside = memory.needed_nbytes - memory.arena_nbytes - self._fixed(training, samples)

    def needed(self, training: Training | None, batch: int) -> int:
        """Bytes that a batch needs: what stands, and the peak of the values as the plan would make it."""
        return self._fixed(training, batch) + self.beside + int(self._growth(training).peak_nbytes(batch) * self.ratio)

    def _growth(self, training: Training | None) -> _Growth:
        alike = training and replace(training, optimizer="sgd", accumulate=min(training.accumulate, 2), data=min(training.data, 2), shard=0)
        if alike not in self.grown:
            self.grown[alike] = self.scaled.growth(alike)
        return self.grown[alike]

    def _fixed(self, training: Training | None, batch: int) -> int:
        """What stands all the time, and what the batch is fed."""
        graph, halves = self.scaled.graph, self.scaled.halves
        if training is None or halves is None:
            weights = set(self.scaled.weights)
            held: int = sum(n.type.nbytes for n in graph.nodes if isinstance(n.op, Constant) or n in weights)
        else:
            graph, weights = halves.graph, set(halves.weights)
            held = sum(s.nbytes for s in standing([w.type for w in halves.weights], training))
        inputs: int = sum(p.type.nbytes for p in graph.params if p not in weights)
        return held + inputs * batch // self.scaled.samples

    def usable(self, training: Training | None) -> int:
        return reserve(self.chip, self.framework, training.communicators if training else 0, self.buffer_nbytes)[1]

    def largest_batch(self, training: Training | None) -> int:
        """The largest batch that fits, 0 where one sample does not."""
        usable = self.usable(training)
        if self.needed(training, 1) > usable:
            return 0
        if self.needed(training, LIMIT) <= usable:
            return LIMIT
        low, high = 1, 2
        while self.needed(training, high) <= usable:
            low, high = high, high * 2
        while high - low > max(1, low // 200):
            middle = (low + high) // 2
            if self.needed(training, middle) <= usable:
                low = middle
            else:
                high = middle
        return low

    def ways(self, training: Training | None, samples: int) -> tuple[Way, ...]:
        """What makes that many samples an update fit, cheapest in time first, and the largest batch alone at the end."""
        found: list[Way] = []
        if training is not None:
            for option, what, command in self._options(training):
                way = self._way(option, what, command, training, samples)
                if way is not None:
                    found.append(way)
        largest = self.largest_batch(training)
        if largest:
            found.append(
                Way(f"a batch of {largest}", f"batch_size={largest}", training, largest, largest, self.needed(training, largest), largest,
                    "another batch for the optimiser: the learning rate may have to follow")
            )  # fmt: skip
        found.sort(key=lambda w: (w.slower, w.training.devices if w.training else 1, samples not in (w.batch, w.samples)))
        return tuple(found)

    def _options(self, training: Training) -> list[tuple[Training, str, str]]:
        """Options from cheap to dear; a pair of them where one alone does not do."""
        half = [(replace(training, amp="O2"), "float16 (amp O2)", 'amp_level="O2"')] if training.amp in ("O0", "O1") else []
        blocks = self._blocks()
        singles = [
            *half,
            (replace(training, cheap=True), "recomputing what is cheap (activations, dropout, normalizations)", "recompute() of those cells"),
            *((replace(training, recompute=n), f"recomputing {n} blocks", f"cell.recompute() on {n} blocks") for n in blocks),
            (replace(training, data=max(training.data, DEVICES), shard=1), f"optimiser state over {max(training.data, DEVICES)} devices",
             "parallel_optimizer / ZeRO 1"),
            (replace(training, data=max(training.data, DEVICES), shard=3), f"weights, gradients and state over {max(training.data, DEVICES)} devices",
             "ZeRO 3"),
            (replace(training, tensor=DEVICES), f"each layer over {DEVICES} devices", "model parallel"),
        ]  # fmt: skip
        options = [s for s in singles if s[0] != training]
        for base, what, command in half:
            options.append((replace(base, cheap=True), f"{what} and recomputing what is cheap", f"{command}, recompute() of those cells"))
            options += [(replace(base, recompute=n), f"{what} and recomputing {n} blocks", f"{command}, cell.recompute()") for n in blocks]
            options.append(
                (replace(base, data=max(base.data, DEVICES), shard=1), f"{what} and optimiser state over {DEVICES} devices", command)
            )
        return options

    def _blocks(self) -> tuple[int, ...]:
        """Numbers of blocks to try: few, and one for every few dozens of operators."""
        works = sum(1 for w in trace_of(self.scaled.graph).trace.works)
        return tuple(dict.fromkeys((4, max(2, min(64, works // 30)))))

    def _way(self, option: Training, what: str, command: str, first: Training, samples: int) -> Way | None:
        """The option with the batch as it is, or with it in parts that are summed."""
        usable = self.usable(option)
        slower = FORWARD_AGAIN if option.recompute and not first.recompute else 0.0
        extra = (
            f"about {slower:.0%} more arithmetic (estimated)"
            if slower
            else "no slower"
            if option.devices == first.devices
            else "communication"
        )
        largest = self.largest_batch(option)
        if largest >= samples:
            return Way(what, command, option, samples, samples, self.needed(option, samples), largest, extra, slower)
        for steps in range(2, samples + 1):
            if samples % steps:
                continue
            summed = replace(option, accumulate=option.accumulate * steps)
            part = samples // steps
            if part > largest:
                continue
            needed = self.needed(summed, part)
            if needed <= usable:
                cost = f"{extra}, {steps} smaller steps for one update"
                return Way(f"{what}, {steps} steps of {part} summed", f"{command}, accumulate {steps}", summed, part, samples, needed,
                           self.largest_batch(summed), cost, slower + 0.02 * steps)  # fmt: skip
        return None
