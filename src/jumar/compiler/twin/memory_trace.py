"""`Trace`: a graph as far as memory is concerned: which work makes and reads which value, and how many bytes each has.

In: a Graph, or the launches of a device (compiler/twin/memory.py), or both halves of a training step (compiler/twin/train_memory.py).  Out: lives for
compiler/plan.py, the same works in an order that keeps fewer bytes alive, and bounds that no plan and no order can beat.

A view makes no value: a reshape, one result of several, a broadcast that only elementwise operators read, a transpose that only a product reads. Nor does
a product whose only reader adds a bias: that is one kernel on the device.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jumar.base import Loc
from jumar.compiler.plan import Life
from jumar.ir import Constant, Get, Graph, Node, Param
from jumar.operators import (
    Add,
    After,
    BatchNormTrain,
    Broadcast,
    Conv,
    Elementwise,
    GroupNorm,
    LayerNorm,
    MatMul,
    Opaque,
    Reshape,
    RmsNorm,
    StopGradient,
    Transpose,
)


@dataclass(frozen=True)
class Value:
    """Bytes that stand in memory from the work that makes them to the last that reads them; without a maker they stand all the time.

    kind: `activation`, `backward`, `gradient`, `weight`, `state`, `input`, `output`, `workspace`.   label, place: names for the user.
    """

    nbytes: int
    kind: str
    label: str = ""
    place: str = ""


@dataclass(frozen=True)
class Work:
    """One launch: numbers of the values that it reads and makes, and of works that must come before it although it reads nothing of theirs.

    cheap: it does little more than to read and write them, so that computing them again costs little.
    """

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    after: tuple[int, ...] = ()
    label: str = ""
    place: str = ""
    backward: bool = False
    cheap: bool = False


@dataclass(frozen=True, eq=False)
class Trace:
    """Values, works in order of execution, and the values that are wanted at the end."""

    values: tuple[Value, ...]
    works: tuple[Work, ...]
    wanted: frozenset[int] = frozenset()
    order: str = "as given"
    makers: Mapping[int, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "makers", {v: i for i, w in enumerate(self.works) for v in w.writes})

    @property
    def standing_nbytes(self) -> int:
        """Bytes of the values that stand all the time."""
        return sum(v.nbytes for i, v in enumerate(self.values) if i not in self.makers)

    @property
    def total_nbytes(self) -> int:
        """Bytes of the values that are made, each in a place of its own."""
        return sum(self.values[i].nbytes for i in self.makers)


def spans(trace: Trace) -> dict[int, tuple[int, int]]:
    """First and last work of each value that is made."""
    end = max(len(trace.works) - 1, 0)
    last: dict[int, int] = {}
    for at, work in enumerate(trace.works):
        for v in work.reads:
            last[v] = at
    return {v: (at, end if v in trace.wanted else max(last.get(v, at), at)) for v, at in trace.makers.items()}


def lives_of(trace: Trace, align_nbytes: int = 512, pad_nbytes: int = 0) -> tuple[Life, ...]:
    """Lives for the plan, in the order of their makers, rounded as the device's plan rounds."""
    found = []
    for v, (first, last) in sorted(spans(trace).items(), key=lambda item: (item[1][0], item[0])):
        value = trace.values[v]
        if value.nbytes:
            found.append(Life(-(-(value.nbytes + pad_nbytes) // align_nbytes) * align_nbytes, first, last, value.label))
    return tuple(found)


def live_nbytes(trace: Trace) -> list[int]:
    """Bytes alive while each work runs: what it reads and makes among them."""
    change = [0] * (len(trace.works) + 1)
    for v, (first, last) in spans(trace).items():
        change[first] += trace.values[v].nbytes
        change[last + 1] -= trace.values[v].nbytes
    found, now = [], 0
    for at in range(len(trace.works)):
        now += change[at]
        found.append(now)
    return found


def peak_nbytes(trace: Trace) -> int:
    """The largest sum of bytes alive: what no plan for this order can beat."""
    return max(live_nbytes(trace), default=0)


# ---------------------------------------------------------------------- order


def needs_of(trace: Trace) -> list[tuple[int, ...]]:
    """For each work the works that it must wait for."""
    return [
        tuple(dict.fromkeys([*(trace.makers[v] for v in w.reads if v in trace.makers), *w.after]))
        for w in trace.works
    ]  # fmt: skip


def reordered(trace: Trace, order: Sequence[int], name: str) -> Trace:
    """The same works in another order."""
    place = {old: new for new, old in enumerate(order)}
    works = tuple(replace(trace.works[i], after=tuple(place[a] for a in trace.works[i].after)) for i in order)
    return Trace(trace.values, works, trace.wanted, name)


def by_levels(trace: Trace) -> Trace:
    """Level by level from the inputs: what GE calls breadth first (`topo_sorting_mode=0`); close to how an eager framework walks back."""
    needs = needs_of(trace)
    level = [0] * len(needs)
    for i in _topological(needs):
        level[i] = 1 + max((level[n] for n in needs[i]), default=0)
    return reordered(trace, sorted(range(len(needs)), key=lambda i: (level[i], i)), "by levels")


def for_memory(trace: Trace) -> Trace:
    """Of the works that can come next always the one after which least is alive: gradients are used up as soon as they can be."""
    needs = needs_of(trace)
    followers: list[list[int]] = [[] for _ in needs]
    for i, before in enumerate(needs):
        for n in before:
            followers[n].append(i)
    waits = [len(n) for n in needs]
    readers: dict[int, int] = {}
    reads = [tuple(dict.fromkeys(v for v in w.reads if v in trace.makers)) for w in trace.works]
    watchers: dict[int, list[int]] = {}
    for i, vs in enumerate(reads):
        for v in vs:
            readers[v] = readers.get(v, 0) + 1
            watchers.setdefault(v, []).append(i)
    nbytes = [v.nbytes for v in trace.values]
    makes = [sum(nbytes[v] for v in w.writes) for w in trace.works]

    def growth(i: int) -> int:
        return makes[i] - sum(nbytes[v] for v in reads[i] if readers[v] == 1 and v not in trace.wanted)

    ready = [(growth(i), i) for i, n in enumerate(waits) if not n]
    heapq.heapify(ready)
    done = [False] * len(needs)
    order: list[int] = []
    while ready:
        cost, i = heapq.heappop(ready)
        if done[i]:
            continue
        if cost != growth(i):  # somebody else read the same value meanwhile: cheaper now
            heapq.heappush(ready, (growth(i), i))
            continue
        done[i] = True
        order.append(i)
        for v in reads[i]:
            readers[v] -= 1
            if readers[v] == 1:
                for other in watchers[v]:
                    if not done[other] and not waits[other]:
                        heapq.heappush(ready, (growth(other), other))
        for f in followers[i]:
            waits[f] -= 1
            if not waits[f]:
                heapq.heappush(ready, (growth(f), f))
    assert len(order) == len(needs), "a trace has no circle"
    return reordered(trace, order, "for memory")


def bound_of_any_order(trace: Trace, samples: int = 64) -> int:
    """Bytes that are alive at some work in every order: made by what comes before it in all of them, and read by what comes after it in all.

    samples: works that are looked at, those around the peak; each gives a bound, the largest counts.
    """
    needs = needs_of(trace)
    count = len(needs)
    before = [0] * count
    for i in _topological(needs):
        for n in needs[i]:
            before[i] |= before[n] | (1 << n)
    live = live_nbytes(trace)
    chosen = sorted(range(count), key=lambda i: -live[i])[:samples]
    chosen += [max(range(count), key=lambda i: live[i] if not trace.works[i].backward else -1)] if count else []
    readers: dict[int, list[int]] = {}
    for i, w in enumerate(trace.works):
        for v in w.reads:
            readers.setdefault(v, []).append(i)
    best = 0
    for at in dict.fromkeys(chosen):
        bit, past = 1 << at, before[at] | (1 << at)
        found = 0
        for v, maker in trace.makers.items():
            touched = maker == at or at in readers.get(v, ())
            if touched or ((past >> maker) & 1 and (v in trace.wanted or any(before[r] & bit for r in readers.get(v, ())))):
                found += trace.values[v].nbytes
        best = max(best, found)
    return best


def _topological(needs: Sequence[Sequence[int]]) -> list[int]:
    """Works so that each comes after those it waits for, and otherwise in their own order."""
    followers: list[list[int]] = [[] for _ in needs]
    waits = [0] * len(needs)
    for i, before in enumerate(needs):
        waits[i] = len(before)
        for n in before:
            followers[n].append(i)
    ready = [i for i, n in enumerate(waits) if not n]
    heapq.heapify(ready)
    order = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        for f in followers[i]:
            waits[f] -= 1
            if not waits[f]:
                heapq.heappush(ready, f)
    return order


def sorted_trace(values: Iterable[Value], works: Sequence[Work], wanted: frozenset[int], name: str = "as given") -> Trace:
    """A trace of works that may wait for later ones: in an order that suits all, near the given one."""
    loose = Trace(tuple(values), tuple(works), wanted)
    order = _topological(needs_of(loose))
    assert len(order) == len(works), "a trace has no circle"
    return reordered(loose, order, name)


# ---------------------------------------------------------------------- from a graph

ALWAYS_VIEWS = (Reshape, Get, StopGradient, After)


@dataclass(frozen=True, eq=False)
class Traced:
    """A trace, and which value holds a node (a tuple of them where it has several results); a view's is its source's."""

    trace: Trace
    value_of: Mapping[Node, tuple[int, ...]]  # no entry for a product whose bias is added in the same kernel


def trace_of(graph: Graph, *, forward: frozenset[Node] = frozenset(), gradients: frozenset[Node] = frozenset()) -> Traced:
    """The works of a graph in the order of its nodes.

    forward: nodes that count as the forward half of a training step, all where it is empty; gradients: nodes that are gradients of weights.
    An output that `graph.updates` writes over a parameter takes no memory, where all readers of the old value can come before.
    """
    builder = _Builder(graph, forward, gradients)
    for node in graph.nodes:
        builder.add(node)
    return builder.finish()


class _Builder:
    def __init__(self, graph: Graph, forward: frozenset[Node], gradients: frozenset[Node]) -> None:
        self.graph, self.forward, self.gradients = graph, forward, gradients
        self.values: list[Value] = []
        self.works: list[Work] = []
        self.of: dict[Node, tuple[int, ...]] = {}
        self.readers: dict[int, list[int]] = {}
        self.updated = {p for _, p in graph.updates}
        self.replaces = {graph.outputs[o]: graph.params[p] for o, p in graph.updates}
        self.writers: list[tuple[int, int, int]] = []  # work, its value, the value that it replaces
        self.places = {p: i for i, p in enumerate(graph.params)}
        self.within = {product: n for n in graph.nodes if (product := biased(n, graph)) is not None}  # products, and who adds their bias

    def value(self, nbytes: int, kind: str, node: Node, name: str = "") -> int:
        named = node.op.label if isinstance(node.op, Param) else name or node.op.name
        self.values.append(Value(nbytes, kind, f"{named} {_type_text(node.type)}", place_text(node.loc)))
        return len(self.values) - 1

    def add(self, node: Node) -> None:
        if isinstance(node.op, Param):
            kind = "weight" if self.places[node] in self.updated else "input"
            self.of[node] = (self.value(node.type.nbytes, kind, node),)
        elif isinstance(node.op, Constant):
            self.of[node] = (self.value(node.type.nbytes, "weight" if node.type.size > 1 else "constant", node),)
        elif isinstance(node.op, Get) and len(self.of[node.inputs[0]]) > 1:
            self.of[node] = (self.of[node.inputs[0]][node.op.index],)
        elif is_view(node, self.graph):
            self.of[node] = self.of[node.inputs[0]] if node.inputs else ()
        elif node not in self.within:
            self.launch(node)

    def launch(self, node: Node) -> None:
        types = node.type if isinstance(node.type, tuple) else (node.type,)
        ahead = not self.forward or node in self.forward
        kind = "gradient" if node in self.gradients else "activation" if ahead else "backward"
        old = self.replaces.get(node)
        label = f"{product.op.name} + bias" if (product := biased(node, self.graph)) is not None else node.op.name
        writes = tuple(self.value(0 if old is not None else t.nbytes, kind, node, label) for t in types)
        sources = [x for i in node.inputs for x in (i.inputs if self.within.get(i) is node else (i,))]
        reads = tuple(dict.fromkeys(v for i in sources for v in self.of[i]))
        at = len(self.works)
        for v in reads:
            self.readers.setdefault(v, []).append(at)
        self.works.append(Work(reads, writes, (), label, place_text(node.loc), not ahead, is_cheap(node) and sources == [*node.inputs]))
        self.of[node] = writes
        if old is not None:
            self.writers.append((at, writes[0], self.of[old][0]))

    def finish(self) -> Traced:
        wanted = frozenset(v for o in self.graph.outputs for v in self.of[o])
        if self.writers:
            self._wait_for_readers()
        return Traced(sorted_trace(self.values, self.works, wanted), self.of)

    def _wait_for_readers(self) -> None:
        """Who writes over a parameter waits for all that read the old value; where one of them waits for the new value, that is a copy."""
        needs = needs_of(Trace(tuple(self.values), tuple(self.works)))
        before = [0] * len(needs)
        for i, ns in enumerate(needs):
            for n in ns:
                before[i] |= before[n] | (1 << n)
        for at, value, old in self.writers:
            readers = [r for r in self.readers.get(old, ()) if r != at]
            if any((before[r] >> at) & 1 for r in readers):
                self.values[value] = replace(self.values[value], nbytes=self.values[old].nbytes)
            else:
                self.works[at] = replace(self.works[at], after=tuple(readers))


def is_view(node: Node, graph: Graph) -> bool:
    """Whether a node's result is its input's memory, read in another way."""
    users = graph.users[node]
    match node.op:
        case Broadcast():
            return bool(users) and all(isinstance(u.op, Elementwise) for u in users)
        case Transpose():
            return (
                swaps_matrices(node)
                and bool(users)
                and all(isinstance(u.op, MatMul) or (swaps_matrices(u) and is_view(u, graph)) for u in users)
            )
        case _:
            return isinstance(node.op, ALWAYS_VIEWS)


def swaps_matrices(node: Node) -> bool:
    """Whether a node turns its last two dimensions, which a product can do while it reads."""
    if not isinstance(node.op, Transpose):
        return False
    perm = tuple(node.op.perm)
    return perm == (*range(len(perm) - 2), len(perm) - 1, len(perm) - 2)


def is_cheap(node: Node) -> bool:
    """Whether an operator's time is that of reading and writing its values."""
    return isinstance(node.op, Elementwise | LayerNorm | RmsNorm | BatchNormTrain | GroupNorm) or node.op == Opaque(1)


def biased(node: Node, graph: Graph) -> Node | None:
    """The product whose bias a node adds, where nobody else reads the product."""
    if not isinstance(node.op, Add):
        return None
    for product, bias in (node.inputs, node.inputs[::-1]):
        if isinstance(product.op, MatMul | Conv) and isinstance(bias.op, Param | Constant) and bias.rank <= 1 and product.type == node.type:
            return product if len(graph.users[product]) == 1 and product not in graph.outputs else None
    return None


def place_text(loc: Loc) -> str:
    """The user's line, or the node of the model file."""
    return f"{loc.file}:{loc.line}" if loc.line else loc.name or loc.file


def _type_text(type_: Any) -> str:
    return ", ".join(map(str, type_)) if isinstance(type_, tuple) else str(type_)
