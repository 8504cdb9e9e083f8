"""Groups of operators that one kernel computes: epilogues of contractions, elementwise chains, rows with what surrounds them.

In: a graph in its final operators and layout.  Out: the same graph with `fused(body=@...)` nodes.  A group grows around one result; what it
holds is read by nobody else, so nothing is computed twice.  Contractions grow first, downwards along their only user; what is left grows
upwards from each result; at last groups that read the same are joined (fuse_join.py).  Whether a schedule takes a group is asked of
operators/fusible.py.  Every edge between two operators that could have been one kernel and are not is noted with its reason and the
bytes that it costs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from jumar.base import CompileError, Loc, TensorType, event
from jumar.compiler.passes.fuse_join import Group, Joiner
from jumar.ir import Constant, Get, Graph, Node, Op, Param, apply, param, rebuild
from jumar.operators import (
    ArgMax,
    ArgMin,
    Batchwise,
    Broadcast,
    Cast,
    Composite,
    Dequantize,
    Elementwise,
    Fused,
    LayerNorm,
    LogSoftmax,
    LpNorm,
    MatMul,
    Reduction,
    Reshape,
    RmsNorm,
    Slice,
    Softmax,
    Transpose,
    is_root,
    refusal,
)

ROWS = (Reduction, ArgMax, ArgMin, Softmax, LogSoftmax, LayerNorm, RmsNorm, LpNorm)
VIEWS = (Reshape, Transpose, Slice, Broadcast)


@dataclass(frozen=True)
class Fuse:
    """max_ops, max_inputs, max_results: of one group.   epilogues, chains: whether contractions and the rest grow."""

    target: str = "cpu"
    max_ops: int = 24
    max_inputs: int = 16
    max_results: int = 4
    epilogues: bool = True
    chains: bool = True
    name = "fuse"

    def __call__(self, graph: Graph) -> Graph:
        graph = self._within(graph)
        groups = Groups(graph, self)
        if self.epilogues:
            roots = [n for n in graph.nodes if is_root(n.op)]
            for node in roots:
                groups.grow_down(node)
            for node in roots:  # when each contraction has its own epilogue, so that none takes another's
                group = groups.of[node]
                if len(group.members) > 1:
                    groups.grow_up(group.members, group.sinks[0])
        if self.chains:
            for node in reversed(graph.nodes):
                if node not in groups.of and fusible(node) and not isinstance(node.op, Reshape):
                    groups.grow_up({node}, node)
        joined = groups.join() if self.max_results > 1 else 0
        result, kinds = groups.build()
        refused = groups.refused()
        for producer, consumer, reason in refused[:50]:
            nbytes = 2 * producer.type.nbytes
            names = (f"{producer.op.name} {producer.type}", f"{consumer.op.name} {_type(consumer)}")
            event("fusion refused", producer=names[0], consumer=names[1], nbytes=nbytes, reason=reason, loc=str(consumer.loc))
        if kinds or refused:
            event("fuse", groups=sum(kinds.values()), refused=len(refused), joined=joined, **kinds)
        return result

    def _within(self, graph: Graph) -> Graph:
        """The graph with groups in the bodies that run on parts of the batch."""
        if not any(isinstance(n.op, Batchwise) for n in graph.nodes):
            return graph

        def visit(node: Node, inputs: tuple[Node, ...]) -> Node:
            op = node.op
            return Node(replace(op, body=self(op.body)) if isinstance(op, Batchwise) else op, inputs, node.type, node.loc)

        return rebuild(graph, visit)


def fusible(node: Node) -> bool:
    """Whether an operator can be part of a loop nest."""
    return isinstance(node.type, TensorType) and node.type.size > 0 and isinstance(node.op, (Elementwise, *VIEWS, *ROWS))


def _type(node: Node) -> str:
    return str(node.type)


@dataclass
class Groups:
    """State of one run of the pass."""

    graph: Graph
    options: Fuse
    of: dict[Node, Group] = field(default_factory=dict)
    reasons: dict[tuple[Node, Node], str] = field(default_factory=dict)
    answers: dict[Hashable, str] = field(default_factory=dict)  # of bodies that were asked about: layers and parameters are alike

    def __post_init__(self) -> None:
        self.users = {n: tuple(dict.fromkeys(u)) for n, u in self.graph.users.items()}
        self.place = {n: i for i, n in enumerate(self.graph.nodes)}
        self.outputs = set(self.graph.outputs)

    # ------------------------------------------------------------------ contractions, downwards
    def grow_down(self, root: Node) -> None:
        """The epilogue of a contraction: along its only user as far as the schedule takes it."""
        members, sink = {root, *self._turned(root)}, root
        best = Group(set(members), [root])
        while sink not in self.outputs and self.users[sink]:
            step = self._next(members, sink)
            if step is None:
                break
            wider, end = step
            why = self._refusal(wider, end)
            if why:
                self.reasons[sink, self.users[sink][0]] = why
                break
            members, sink = wider, end
            # a reshape at the end is free, so it stays outside; a widening is better done where the value is read
            if not isinstance(sink.op, Reshape) and not self._widens_for_readers(sink):
                best = Group(set(members), [sink])
        self._take(best)

    def _widens_for_readers(self, node: Node) -> bool:
        """Whether a node only makes a value wider, and all that read it can do that themselves."""
        if not isinstance(node.op, Cast | Dequantize) or node.dtype.bits <= node.inputs[0].dtype.bits or node in self.outputs:
            return False
        return all(isinstance(u.op, Elementwise) and fusible(u) for u in self.users[node])

    def _turned(self, root: Node) -> list[Node]:
        """The transpose before the second input of a matrix product, which packing does on the way; where nothing else reads it."""
        if not isinstance(root.op, MatMul):
            return []
        w = root.inputs[1]
        rank = w.rank
        swapped = (*range(rank - 2), rank - 1, rank - 2)
        alone = self.users.get(w) == (root,) and w not in self.outputs and w is not root.inputs[0]
        return [w] if alone and rank >= 2 and isinstance(w.op, Transpose) and w.op.perm == swapped else []

    def _next(self, members: set[Node], sink: Node) -> tuple[set[Node], Node] | None:
        """The members with the operators up to the next one through which all that reads `sink` leaves."""
        wider, end = set(members), sink
        for _ in range(8):
            open_ = [n for n in wider if n is not end and (n in self.outputs or not wider.issuperset(self.users[n]))]
            waiting = sorted({u for n in (*open_, end) for u in self.users[n]} - wider, key=self.place.__getitem__)
            if wider != members and not open_:
                return wider, end
            if not waiting:
                return None
            following = waiting[0]
            allowed = isinstance(following.op, (Elementwise, Reshape, Transpose)) and fusible(following) and following not in self.of
            if not allowed:
                self.reasons[sink, following] = self._why_not(following)
                return None
            wider.add(following)
            end = following
        return None

    def _why_not(self, node: Node) -> str:
        if node in self.of:
            return "the reader belongs to another group"
        if is_root(node.op):
            return "a contraction reads its inputs from memory"
        return f"{node.op.name} is no epilogue"

    # ------------------------------------------------------------------ the rest, upwards
    def grow_up(self, members: set[Node], sink: Node) -> None:
        """Takes in producers that nobody else reads."""
        members = set(members)
        rejected: set[Node] = set()
        while True:
            candidates = {i for m in members if not is_root(m.op) for i in m.inputs} - members - rejected
            candidates = {c for c in candidates if fusible(c) and c not in self.of and c not in self.outputs}
            ready = [c for c in candidates if members.issuperset(self.users[c])]
            for c in candidates - set(ready):
                self.reasons.setdefault((c, sink), "its value is read by others too")
            if not ready:
                break
            best = max(ready, key=self.place.__getitem__)
            why = self._refusal(members | {best}, sink)
            if why:
                rejected.add(best)
                for user in self.users[best]:
                    self.reasons[best, user] = why
            else:
                members.add(best)
        self._take(Group(self._trimmed(members, sink), [sink]))

    def _trimmed(self, members: set[Node], sink: Node) -> set[Node]:
        """Without reshapes of what comes from outside: they are free there."""
        while True:
            edge = {m for m in members if isinstance(m.op, Reshape) and m is not sink and not any(i in members for i in m.inputs)}
            if not edge:
                return members
            members = members - edge

    # ------------------------------------------------------------------ what both ask
    def _refusal(self, members: set[Node], sink: Node) -> str:
        if len(members) > self.options.max_ops:
            return f"a group holds at most {self.options.max_ops} operators"
        return self._refused(members, [sink])

    def _refused(self, members: set[Node], sinks: Sequence[Node]) -> str:
        body, inputs = self.body(members, sinks, "trial")
        if len(inputs) > self.options.max_inputs:
            return f"a group reads at most {self.options.max_inputs} values"
        key = _shape_of(body)
        if key not in self.answers:
            self.answers[key] = refusal(self.options.target, body)
        return self.answers[key]

    def _take(self, group: Group) -> None:
        for member in group.members:
            self.of[member] = group

    def join(self) -> int:
        """Joins groups; gives how often."""
        options = self.options
        joiner = Joiner(self.of, self.place, self.users, options.max_ops, options.max_inputs, options.max_results)
        for first, second in joiner.pairs():
            if joiner.fits(first, second):
                members = first.members | second.members
                sinks = [s for s in (*first.sinks, *second.sinks) if s in self.outputs or not members.issuperset(self.users[s])]
                if self._refused(members, sinks):
                    joiner.refused.add((id(first), id(second)))
                else:
                    joiner.join(first, second, sorted(sinks, key=self.place.__getitem__))
        return joiner.joined

    def body(self, members: set[Node], sinks: Sequence[Node], name: str) -> tuple[Graph, list[Node]]:
        """The group as a graph, and the nodes outside that it reads; plain numbers are part of it."""
        inner: dict[Node, Node] = {}
        inputs: list[Node] = []
        params: list[Node] = []
        for member in sorted(members, key=self.place.__getitem__):
            for i in member.inputs:
                if i in inner or i in members:
                    continue
                if _is_plain_number(i) and not is_root(member.op):
                    inner[i] = i
                else:
                    inner[i] = param(f"x{len(params)}", i.type)
                    params.append(inner[i])
                    inputs.append(i)
            inner[member] = Node(member.op, tuple(inner[i] for i in member.inputs), member.type, member.loc)
        return Graph(name, tuple(params), tuple(inner[s] for s in sinks)), inputs

    def build(self) -> tuple[Graph, dict[str, int]]:
        """The graph with its groups, and how many there are of each kind."""
        kinds: Counter[str] = Counter()
        new: dict[Node, Node] = {p: p for p in self.graph.params}
        plain: dict[tuple[Op, tuple[Node, ...]], Node] = {}  # what was copied for a group that did not take it in is one again
        for node in self.graph.nodes:
            group = self.of.get(node)
            if node in new or (group is not None and node not in group.sinks):
                continue
            todo = [node]
            waiting: set[int] = set()
            while todo:
                at = todo[-1]
                unit = self.of.get(at)
                members = unit.members if unit is not None else {at}
                missing = [i for m in members for i in m.inputs if i not in members and i not in new]
                if missing:
                    if id(unit or at) in waiting:
                        raise CompileError(
                            f"fuse: groups must not wait for each other, got {at.op}: this is our bug", loc=at.loc, code="our-bug"
                        )
                    waiting.add(id(unit or at))
                    todo += sorted(missing, key=self.place.__getitem__, reverse=True)
                    continue
                todo.pop()
                if at in new:
                    continue
                if unit is None or len(unit.members) == 1:
                    inputs = tuple(new[i] for i in at.inputs)
                    made = at if inputs == at.inputs else Node(at.op, inputs, at.type, at.loc)
                    new[at] = plain.setdefault((at.op, inputs), made) if isinstance(at.op, Elementwise) else made
                    continue
                body, outside = self.body(unit.members, unit.sinks, f"fused_{sum(kinds.values())}")
                kinds[_kind(unit.members)] += 1
                whole = apply(Fused(body), *(new[i] for i in outside), loc=_loc(unit))
                for sink, result in zip(unit.sinks, whole.results, strict=True):
                    new[sink] = result
        return self.graph.with_outputs(new[o] for o in self.graph.outputs), dict(kinds)

    def refused(self) -> list[tuple[Node, Node, str]]:
        """Edges between operators of different kernels that could have been one, the largest first."""
        found: dict[Node, tuple[Node, Node, str]] = {}
        for node in self.graph.nodes:
            for i in dict.fromkeys(node.inputs):
                if (
                    isinstance(i.op, Param | Constant | Get)
                    or not isinstance(i.type, TensorType)
                    or not self._computes(i)
                    or not self._computes(node)
                ):
                    continue
                group = self.of.get(i)
                if group is not None and group is self.of.get(node):
                    continue
                reason = self.reasons.get((i, node)) or self._reason(i, node)
                if i not in found:
                    found[i] = (i, node, reason)
        return sorted(found.values(), key=lambda f: -f[0].type.nbytes)

    def _computes(self, node: Node) -> bool:
        return (fusible(node) and not isinstance(node.op, Reshape)) or is_root(node.op)

    def _reason(self, producer: Node, consumer: Node) -> str:
        if is_root(consumer.op):
            return "a contraction reads its inputs from memory"
        if producer in self.outputs:
            return "its value is an output of the graph"
        if len(self.users[producer]) > 1:
            return f"its value is read {len(self.users[producer])} times"
        return "the reader belongs to another group"


def _shape_of(body: Graph) -> Hashable:
    """What is equal for two bodies of the same operators on the same types."""
    number = {n: i for i, n in enumerate(body.nodes)}
    nodes = tuple(("" if isinstance(n.op, Param) else n.op, tuple(number[i] for i in n.inputs), n.type) for n in body.nodes)
    return nodes, tuple(number[o] for o in body.outputs)


def _is_plain_number(node: Node) -> bool:
    """Whether a constant is written into the code: 0.5, 1, 6, not a number that was learnt, for which each layer would need a kernel."""
    array = node.array
    if array is None or array.size != 1 or array.dtype.kind not in "fiub":
        return False
    value = float(array.reshape(-1)[0])
    return array.dtype.kind != "f" or not math.isfinite(value) or (abs(value) <= 1024 and value * 64 == round(value * 64))


def _kind(members: Iterable[Node]) -> str:
    ops = [m.op for m in members]
    if any(is_root(o) for o in ops):
        return "epilogue"
    return "rows" if any(isinstance(o, (*ROWS, Composite)) for o in ops) else "pointwise"


def _loc(group: Group) -> Loc:
    root = next((m for m in group.members if is_root(m.op)), group.sinks[-1])
    return root.loc
