"""What training takes of a device: the backward half of a graph, what is kept for it, and what stands beside it.

In: a forward graph (an ONNX model, a captured cell) and a `Training`.  Out: the `Trace` of forward and backward, with blocks that are computed again where
that is asked, and the bytes that stand all the time: weights, gradients, optimiser state, copies, each divided as the devices divide them.
compiler/twin/memory.py plans the one and adds the other.

The backward half is compiler/autodiff.py's. Operators that are one kernel backwards on the device, too, are one work here: softmax reads its result,
layer normalization its input, gelu its input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from jumar.base import CompileError, TensorType, nearest
from jumar.compiler.autodiff import Custom, gradients
from jumar.compiler.twin.memory_trace import Trace, Traced, Work, by_levels, for_memory, live_nbytes, spans, trace_of
from jumar.ir import Constant, Graph, Node, param, rebuild, same_node
from jumar.operators import (
    Conv,
    Gelu,
    LayerNorm,
    LogSoftmax,
    MatMul,
    Opaque,
    Relu,
    RmsNorm,
    Sigmoid,
    Silu,
    Softmax,
    Tanh,
)

# bytes of state for each byte of fp32 weights, and what a user calls them
OPTIMIZERS: Mapping[str, tuple[int, str]] = {
    "sgd": (0, "no state"), "momentum": (1, "the momentum"), "adagrad": (1, "the sum of squares"), "rmsprop": (2, "mean square and momentum"),
    "adam": (2, "first and second moment"), "adamw": (2, "first and second moment"), "lamb": (2, "first and second moment"),
}  # fmt: skip
AMP = ("O0", "O1", "O2", "O3")
FORWARD_AGAIN = 1 / 3  # of a step's arithmetic is forward, two thirds backward: computing all blocks again costs that much more


@dataclass(frozen=True)
class Training:
    """How a model is trained, as far as memory asks.   amp: `O0` all in fp32; `O1` products in fp16; `O2` fp16 and fp32 weights; `O3` all in fp16.

    recompute: blocks whose inner values the backward pass computes again, 0: none; cheap: only what elementwise operators, dropout and normalizations make
    of other values that are kept.   accumulate: steps whose gradients are summed before an update.
    keep_gradients: all gradients stand until the update (a loss scale that is checked, clipping by the norm of all, reduction in one piece); None: where
    amp is O2 or O3, or there are several devices.   data, tensor: devices that share the batch, and the weights of each layer.
    shard: what the data-parallel devices hold a part of: 1 optimiser state (MindSpore's `parallel_optimizer`), 2 gradients too, 3 weights too.
    """

    optimizer: str = "adamw"
    amp: str = "O0"
    recompute: int = 0
    cheap: bool = False
    accumulate: int = 1
    keep_gradients: bool | None = None
    data: int = 1
    tensor: int = 1
    shard: int = 0

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            hint = nearest(self.optimizer, list(OPTIMIZERS))
            what = f"training: optimizer must be one of {', '.join(OPTIMIZERS)}, got {self.optimizer!r}"
            raise CompileError(what, hint=hint, code="npu-training")
        if self.amp not in AMP:
            raise CompileError(f"training: amp must be one of {', '.join(AMP)}, got {self.amp!r}", code="npu-training")
        if not 0 <= self.shard <= 3:
            raise CompileError(f"training: shard must be 0, 1, 2 or 3, got {self.shard}", code="npu-training")
        for name in ("accumulate", "data", "tensor"):
            if getattr(self, name) < 1:
                raise CompileError(f"training: {name} must be 1 or more, got {getattr(self, name)}", code="npu-training")
        if self.shard and self.data == 1:
            raise CompileError(
                f"training: shard must be 0 where one device holds the batch, got {self.shard}", hint="data=8, say", code="npu-training"
            )

    @property
    def keeps_gradients(self) -> bool:
        """Sums of gradients take them up as they come."""
        wanted = self.amp in ("O2", "O3") or self.data > 1 if self.keep_gradients is None else self.keep_gradients
        return wanted and self.accumulate == 1

    @property
    def communicators(self) -> int:
        """Groups of devices that the step needs: all data-parallel ones, all tensor-parallel ones."""
        return (self.data > 1) + (self.tensor > 1)

    @property
    def devices(self) -> int:
        return self.data * self.tensor


@dataclass(frozen=True)
class Standing:
    """Bytes that stand all the time.   kind: `weight`, `gradient`, `state`, `copy`; what: in words."""

    kind: str
    nbytes: int
    what: str


# ---------------------------------------------------------------------- both halves as one graph


@dataclass(frozen=True, eq=False)
class BothHalves:
    """A forward graph and its backward half.   graph: outputs are the forward ones, then the gradients; weights: by whom, params of the graph.

    forward: the nodes of the first half; gradients: those that are gradients of weights.
    """

    graph: Graph
    weights: tuple[Node, ...]
    forward: frozenset[Node]
    gradients: frozenset[Node]


def both_halves(graph: Graph, weights: Sequence[Node] | None = None, custom: Mapping[Node, Custom] | None = None) -> BothHalves:
    """The graph with its gradient by each weight.   weights: params; or None: those that `graph.updates` names, else every constant of floats
    with more than one element, as an inference graph holds them.   custom: gradients of nodes that answer for themselves.

    The sum of the outputs stands for the loss where the graph has none: it reads the outputs and keeps nothing.
    """
    if weights is None:
        weights = [graph.params[p] for _, p in graph.updates]
    if not weights:
        graph, weights = _with_weights(graph)
    known = dict(custom or {})
    for node in graph.nodes:
        if node not in known and (rule := _kernel_rule(node)) is not None:
            known[node] = rule
    found = gradients(graph.outputs, weights, custom=known)
    kept = [(w, g) for w, g in zip(weights, found, strict=True) if g is not None]
    if not kept:
        raise CompileError(
            f"training: {graph.name} must have weights that its outputs depend on, got none of {len(weights)}", code="npu-training"
        )
    made = tuple(g for _, g in kept)
    whole = Graph(graph.name, graph.params, (*graph.outputs, *made))
    return BothHalves(whole, tuple(w for w, _ in kept), frozenset(graph.nodes), frozenset(made))


def _with_weights(graph: Graph) -> tuple[Graph, list[Node]]:
    """The constants that are weights as parameters."""
    weights: list[Node] = []

    def visit(node: Node, inputs: tuple[Node, ...]) -> Node:
        if isinstance(node.op, Constant) and node.type.dtype.is_float and node.type.size > 1:
            weights.append(param(f"weight_{len(weights)}", node.type, node.loc))
            return weights[-1]
        return same_node(node, inputs)

    made = rebuild(graph, visit)
    return Graph(graph.name, (*made.params, *weights), made.outputs, graph.output_names), weights


def _kernel_rule(node: Node) -> Custom | None:
    """The gradient as one kernel, as CANN has it: SoftmaxGrad reads y, LayerNormGrad x, GeluGrad x."""
    match node.op:
        case Softmax() | LogSoftmax() | Tanh() | Sigmoid() | Relu():
            return lambda dy: (Opaque(1)(node, dy)[0],)
        case Gelu() | Silu():
            return lambda dy: (Opaque(1)(node.inputs[0], dy)[0],)
        case LayerNorm() | RmsNorm():
            return lambda dy: Opaque(len(node.inputs))(*node.inputs, dy).results
    return None


# ---------------------------------------------------------------------- as a trace


def training_trace(halves: BothHalves, training: Training) -> Trace:
    """The works of a step: forward, backward, and one update for each weight, in place.

    Gradients that are kept for the update stand from where they are made to the end; else each is used up by its update.
    """
    traced = trace_of(halves.graph, forward=halves.forward, gradients=halves.gradients)
    trace = _narrowed(halves, traced, training)
    if training.recompute:
        trace = recomputed(trace, training.recompute)
    elif training.cheap:
        trace = cheaply(trace)
    return _updated(trace, [v for g in halves.gradients for v in traced.value_of[g]], training)


def in_order(trace: Trace, training: Training) -> Trace:
    """The works as MindSpore orders them, level by level (`exec_order="bfs"`); with values that are made again, so that those come when they are wanted."""
    return for_memory(trace) if training.recompute or training.cheap else by_levels(trace)


def _narrowed(halves: BothHalves, traced: Traced, training: Training) -> Trace:
    """Values in the types of amp.   Statistics and the loss keep theirs, which is little; O1 halves what products give."""
    if training.amp == "O0" and training.tensor == 1:
        return traced.trace
    values = list(traced.trace.values)
    widths = _widest(traced.trace)
    done: set[int] = set()
    for node, held in traced.value_of.items():
        types = node.type if isinstance(node.type, tuple) else (node.type,)
        for v, t in zip(held, types, strict=False):
            if v in done or v not in traced.trace.makers or values[v].kind == "gradient":
                continue
            done.add(v)
            nbytes = values[v].nbytes
            if _halves(node, t, training.amp):
                nbytes //= 2
            if training.tensor > 1 and values[v].nbytes not in widths:
                nbytes //= training.tensor  # what lies inside a layer is divided, what goes from block to block is not
            values[v] = replace(values[v], nbytes=nbytes)
    return Trace(tuple(values), traced.trace.works, traced.trace.wanted, traced.trace.order)


def _halves(node: Node, type_: TensorType, amp: str) -> bool:
    if amp == "O0" or type_.dtype.name != "f32" or isinstance(node.op, LogSoftmax):
        return False
    return amp != "O1" or isinstance(node.op, MatMul | Conv)


def _widest(trace: Trace) -> set[int]:
    """The sizes of values that several works of the forward half read long after they are made: what goes from block to block."""
    made = spans(trace)
    readers: dict[int, list[int]] = {}
    for at, w in enumerate(trace.works):
        if not w.backward:
            for v in w.reads:
                readers.setdefault(v, []).append(at)
    return {trace.values[v].nbytes for v, at in readers.items() if v in made and len(at) > 1 and max(at) - made[v][0] > 4}


def _updated(trace: Trace, gradients_: Sequence[int], training: Training) -> Trace:
    """The trace with updates behind it: gradients are no outputs, they are read by the update of their weight."""
    works = list(trace.works)
    readers: dict[int, list[int]] = {}
    for at, w in enumerate(works):
        for v in w.reads:
            readers.setdefault(v, []).append(at)
    made = {v for v in gradients_ if v in trace.makers}
    barrier: tuple[int, ...] = ()
    if training.keeps_gradients:
        barrier = (len(works),)
        works.append(Work(tuple(sorted(made)), (), (), "check or reduce all gradients", backward=True))
    for v in sorted(made):
        works.append(Work((v,), (), barrier, f"{training.optimizer} of {trace.values[v].label}", backward=True))
    values = trace.values
    return Trace(values, tuple(works), frozenset(trace.wanted - made), trace.order)


# ---------------------------------------------------------------------- computed again


def blocks_of(trace: Trace, count: int) -> list[int]:
    """Where the forward half is cut into that many blocks: after these works little is handed on to later ones of the forward half."""
    forward = [i for i, w in enumerate(trace.works) if not w.backward]
    if not forward:
        return []
    size = forward[-1] + 1
    ahead = Trace(trace.values, tuple(trace.works[:size]), frozenset())
    crossing = _crossing(ahead)
    cuts: list[int] = []
    for k in range(1, count):
        middle, reach = size * k // count, max(1, size // (2 * count))
        window = range(max(cuts[-1] + 1 if cuts else 0, middle - reach), min(size - 1, middle + reach))
        if window:
            cuts.append(min(window, key=lambda i: (crossing[i], abs(i - middle))))
    return cuts


def _crossing(trace: Trace) -> list[int]:
    """Bytes handed over behind each work."""
    found = live_nbytes(trace)
    ends: dict[int, int] = {}
    for v, (_, last) in spans(trace).items():
        ends[last] = ends.get(last, 0) + trace.values[v].nbytes
    return [n - ends.get(at, 0) for at, n in enumerate(found)]


def recomputed(trace: Trace, count: int) -> Trace:
    """The trace with `count` blocks of the forward half computed again before the backward half reads inside them; only what a block hands on is kept.

    The last block's values are read at once, so keeping them costs nothing.
    """
    size = forward_size(trace)
    bounds = [-1, *blocks_of(trace, count), size - 1]
    block_of = {i: b for b in range(len(bounds) - 1) for i in range(bounds[b] + 1, bounds[b + 1] + 1)}
    handed = {
        v for i, w in enumerate(trace.works[:size]) for v in w.reads if v in trace.makers and block_of[trace.makers[v]] != block_of[i]
    }
    inner = {v for v, i in trace.makers.items() if i < size and v not in handed and v not in trace.wanted and block_of[i] < len(bounds) - 2}
    read = {v for w in trace.works[size:] for v in w.reads}
    needed: dict[int, list[int]] = {}
    wanted = read & inner
    for i in range(size - 1, -1, -1):
        work = trace.works[i]
        if wanted.intersection(work.writes):
            wanted.update(v for v in work.reads if v in inner)
            needed.setdefault(block_of[i], []).insert(0, i)
    return _again(trace, size, {v: needed.get(block_of[trace.makers[v]], []) for v in inner & read})


CHAIN = 4  # cheap works, one behind the other, that are done again for one value


def cheaply(trace: Trace) -> Trace:
    """The trace without values that cheap works make of others that are kept: they are made again where the backward half reads them."""
    size = forward_size(trace)
    read = {v for w in trace.works[size:] for v in w.reads if v in trace.makers and trace.makers[v] < size}
    dropped: dict[int, list[int]] = {}

    def chain(v: int, depth: int) -> list[int] | None:
        """The works that make a value of what stands or is kept; None where that takes a dear one."""
        if v not in trace.makers or (v in read and v not in dropped):
            return []
        if v in dropped:
            return dropped[v]
        work = trace.works[trace.makers[v]]
        if depth == 0 or not work.cheap:
            return None
        found: list[int] = []
        for x in work.reads:
            before = chain(x, depth - 1)
            if before is None:
                return None
            found += before
        return [*dict.fromkeys([*found, trace.makers[v]])]

    for i in range(size):
        work = trace.works[i]
        for v in work.writes:
            if work.cheap and v in read and v not in trace.wanted:
                read.discard(v)
                steps = chain(v, CHAIN)
                read.add(v)
                if steps:
                    dropped[v] = steps
    return _again(trace, size, dropped)


def forward_size(trace: Trace) -> int:
    """The number of works up to the last of the forward half."""
    return 1 + max((i for i, w in enumerate(trace.works) if not w.backward), default=-1)


def _again(trace: Trace, size: int, steps: Mapping[int, Sequence[int]]) -> Trace:
    """The trace with works of the forward half done again: for each value of `steps` those works, before the first of the backward half that reads it.

    They wait for what that reader waits for, so that no order does them early.
    """
    values, works = list(trace.values), list(trace.works[:size])
    copies: dict[int, int] = {}
    place = {i: i for i in range(size)}
    for i in range(size, len(trace.works)):
        work = trace.works[i]
        triggers = tuple(place[trace.makers[v]] for v in work.reads if trace.makers.get(v, 0) >= size)
        for v in work.reads:
            if v not in steps or v in copies:
                continue
            for j in steps[v]:
                again = trace.works[j]
                if all(x in copies for x in again.writes):
                    continue
                reads = tuple(copies.get(x, x) for x in again.reads)
                for x in again.writes:
                    values.append(replace(values[x], label=f"{values[x].label} (again)"))
                    copies[x] = len(values) - 1
                works.append(
                    Work(reads, tuple(copies[x] for x in again.writes), triggers, f"{again.label} (again)", again.place, True, again.cheap)
                )
        place[i] = len(works)
        works.append(replace(work, reads=tuple(copies.get(v, v) for v in work.reads), after=tuple(place[a] for a in work.after)))
    return Trace(tuple(values), tuple(works), trace.wanted, trace.order)


def traffic_again(trace: Trace) -> float:
    """Part of a step's reading and writing that works done again add: what they cost in time, about, where they are cheap."""
    first = again = 0
    for work in trace.works:
        moved = sum(trace.values[v].nbytes for v in (*work.reads, *work.writes))
        if work.label.endswith("(again)"):
            again += moved
        else:
            first += moved
    return again / first if first else 0.0


# ---------------------------------------------------------------------- what stands


def standing(weights: Sequence[TensorType], training: Training) -> tuple[Standing, ...]:
    """What stands all the time beside the trace, on one device.   Weights are counted in fp32 as captured; amp and sharding change that."""
    elements = sum(t.size for t in weights if t.dtype.is_float)
    others = sum(t.nbytes for t in weights if not t.dtype.is_float)
    mine = -(-elements // training.tensor)
    part = training.data
    width = 2 if training.amp == "O3" else 4
    whole = mine * width + others
    found = [Standing("weight", -(-whole // part) if training.shard >= 3 else whole, f"weights in fp{8 * width}")]
    if training.amp in ("O1", "O2"):
        found.append(
            Standing("copy", -(-mine * 2 // (part if training.shard >= 3 else 1)), "fp16 copies of the weights, kept for the backward pass")
        )
    count, what = OPTIMIZERS[training.optimizer]
    if count:
        state = mine * width * count
        found.append(Standing("state", -(-state // part) if training.shard else state, f"{training.optimizer}: {what}"))
    if training.accumulate > 1:
        sums = mine * width
        found.append(
            Standing("gradient", -(-sums // part) if training.shard >= 2 else sums, f"sums of gradients over {training.accumulate} steps")
        )
    return tuple(s for s in found if s.nbytes)
