"""Nodes to tasks: asks the schedules, takes apart what no schedule covers, and leaves the rest to the host.

In: the fused graph.  Out: `Lowering`: the tasks in order, which values are the memory of others, and the table of who runs what.
Every graph can be lowered: a fused group that a schedule refuses is taken apart into its operators, a composite into simpler ones,
and what is left without native code runs as its NumPy reference between two native calls, and is listed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from jumar.base import NATIVE, CompileError, TensorType, event
from jumar.compiler.order import order_works
from jumar.compiler.passes.decompose import decomposed
from jumar.device import Target
from jumar.ir import Constant, Get, Graph, Node, Param, apply, same_node, topological
from jumar.kernel import Kernel
from jumar.operators import (
    After,
    Batchwise,
    Concat,
    Fused,
    Identity,
    Lowered,
    Place,
    Reshape,
    Task,
    TaskArg,
    Temp,
    TempPlace,
    find_schedule,
)

LINE = 64  # bytes: pieces of parts of cache lines are copied, since each writer would fetch its neighbours' lines


@dataclass(frozen=True, eq=False)
class Work:
    """One step to be: a task of a node, or (task None) the node's reference on the host."""

    node: Node
    task: Task | None = None

    @property
    def label(self) -> str:
        """What a person calls it: the operators, and the task's own name where the node has several tasks."""
        label = self.task.label if self.task else ""
        op = self.node.op
        if not isinstance(op, Fused):
            return label or op.name
        names = [n.op.name for n in op.body.nodes if not isinstance(n.op, Param | Constant | Reshape)]
        whole = "+".join(names)
        return whole if label in ("", op.body.name, *names) else f"{whole}: {label.replace(op.body.name, '').strip()}"


Value = tuple[Node, int]  # a node and which of its results
Block = Value | Temp


@dataclass(frozen=True)
class Choice:
    """How one node runs, for reports.   how: native, alias, host, or apart (taken apart since no schedule covers it)."""

    node: Node
    how: str
    reason: str = ""


@dataclass
class Lowering:
    """works: in order.   aliases: values that are (a part of) the memory of another; outputs: the value of each graph output.

    updates: values that are written into the memory of an input, by its number; they come after all that read the old values.
    """

    graph: Graph
    works: list[Work] = field(default_factory=list)
    aliases: dict[Value, Place] = field(default_factory=dict)
    outputs: list[Value] = field(default_factory=list)
    updates: dict[Value, int] = field(default_factory=dict)
    choices: list[Choice] = field(default_factory=list)

    def resolve(self, node: Node, result: int = 0, nbytes_offset: int = 0) -> tuple[Value, int]:
        """Whose memory a value is, and where in it."""
        while True:
            op = node.op
            if isinstance(op, Get):
                node, result = node.inputs[0], op.index
            elif (place := self.aliases.get((node, result))) is not None:
                node, result, nbytes_offset = place.node, place.result, nbytes_offset + place.nbytes_offset
            else:
                return (node, result), nbytes_offset

    def forget_arguments(self) -> None:
        """Lets go of what tasks run on, packed weights above all, once the tasks are steps of a Program."""
        self.works = [replace(w, task=replace(w.task, args=())) if w.task else w for w in self.works]

    @property
    def host_nodes(self) -> list[Node]:
        """Nodes that the host computes."""
        return [w.node for w in self.works if w.task is None]


def type_at(value: Value) -> TensorType:
    """The type of one result."""
    node, result = value
    found = node.type[result] if isinstance(node.type, tuple) else node.type
    assert isinstance(found, TensorType), "a result is a tensor"
    return found


def lower(graph: Graph, target: Target, on_kernel: Callable[[Kernel], None] | None = None) -> Lowering:
    """The tasks of a graph.   on_kernel: told of every kernel as soon as a task has it."""
    lowering = _Lowerer(target, on_kernel).run(graph)
    counts: dict[str, int] = {}
    for choice in lowering.choices:
        counts[choice.how] = counts.get(choice.how, 0) + 1
    hosts = sorted({c.node.op.name for c in lowering.choices if c.how == "host"})
    event("lower", works=len(lowering.works), hosts=hosts, **{f"by_{how}": n for how, n in counts.items()})
    return lowering


class _Lowerer:
    """State of one lowering: the successors of nodes, and what was made so far."""

    def __init__(self, target: Target, on_kernel: Callable[[Kernel], None] | None) -> None:
        self.target = target
        self.on_kernel = on_kernel
        self.made = Lowering(Graph("lowering", (), ()))
        self.several: dict[Node, tuple[Node, ...]] = {}
        self.taken: set[Value] = set()  # by outputs

    def run(self, graph: Graph) -> Lowering:
        new: dict[Node, Node] = {p: p for p in graph.params}
        for node in shallow_first(graph):
            if node not in new:
                new[node] = self.place(node, tuple(new[i] for i in node.inputs))
        own = dict(graph.updates)
        outputs = [self._output(new[o], graph.params[own[i]] if i in own else None) for i, o in enumerate(graph.outputs)]
        self.made.outputs = [value for value, _ in outputs]
        self._sweep()
        self._join()
        self._interleave()
        self._update(dict(graph.updates), graph, outputs)
        self.made.graph = graph.with_outputs(n for _, n in outputs)
        return self.made

    def place(self, old: Node, inputs: tuple[Node, ...]) -> Node:
        """The successor of a node; its tasks are listed."""
        if isinstance(old.op, Param | Constant):
            return old
        if isinstance(old.op, Get):
            parts = self.several.get(inputs[0])
            return parts[old.op.index] if parts else same_node(old, inputs)
        node = same_node(old, inputs)
        if isinstance(node.op, Batchwise):
            self._repeat(node, node.op)
            return node
        lowered = self._ask(node)
        if lowered is not None:
            self._take(node, lowered)
            return node
        match node.op:
            case Reshape() | Identity() | After():
                self._take(node, Lowered(alias=Place(node.inputs[0])))
                return node
            case Fused(body=body):
                self.made.choices.append(Choice(node, "apart", "no schedule takes the group as a whole"))
                return self._inline(node, body.outputs, dict(zip(body.params, inputs, strict=True)))
        if (parts := decomposed(node)) is not None and not any(p.op == node.op and p.inputs == node.inputs for p in parts):
            self.made.choices.append(Choice(node, "apart", "no schedule for these types"))
            return self._inline(node, parts, {i: i for i in inputs})
        self._host(node)
        return node

    def _ask(self, node: Node) -> Lowered | None:
        types = [t for n in (node, *node.inputs) for t in (n.type if isinstance(n.type, tuple) else (n.type,))]
        if any(t.dtype not in NATIVE for t in types):
            return None
        schedule = find_schedule(self.target.name, node.op)
        return schedule(node, self.target) if schedule else None

    def _take(self, node: Node, lowered: Lowered) -> None:
        if lowered.alias is not None:
            self.made.aliases[node, 0] = lowered.alias
            self.made.choices.append(Choice(node, "alias"))
            return
        for task in lowered.tasks:
            self.made.works.append(Work(node, task))
            if self.on_kernel:
                for kernel in kernels_of(task):
                    self.on_kernel(kernel)
        self.made.choices.append(Choice(node, "native"))

    def _repeat(self, node: Node, op: Batchwise) -> None:
        """The tasks of a body once for each part of the batch.   Its kernels, tables and packed weights are made once."""
        body = _Lowerer(self.target, self.on_kernel).run(op.body)
        results = (node.type,) if isinstance(node.type, TensorType) else node.type
        for part in range(op.parts):
            copies = _Copies(body)
            for i, (p, source) in enumerate(zip(op.body.params, node.inputs, strict=True)):
                self.made.aliases[copies.node(p), 0] = Place(source, part * p.type.nbytes if i in op.cut else 0)
            for r, ((inner, result), type_) in enumerate(zip(body.outputs, results, strict=True)):
                self.made.aliases[copies.node(inner), result] = Place(node, part * (type_.nbytes // op.parts), r)
            for (inner, result), place in body.aliases.items():
                self.made.aliases[copies.node(inner), result] = copies.place(place)
            self.made.works += [copies.work(w) for w in body.works]
        self.made.choices += body.choices

    def _host(self, node: Node) -> None:
        types = [t for n in (node, *node.inputs) for t in (n.type if isinstance(n.type, tuple) else (n.type,))]
        if any(t.dtype.kind == "s" for t in types):
            raise CompileError(f"{node.op.name}: texts must be known when the graph is made, got {types}", loc=node.loc, code="text-traced")
        self.made.works.append(Work(node))
        self.made.choices.append(Choice(node, "host", "no schedule and no simpler form"))

    def _inline(self, node: Node, outputs: tuple[Node, ...], new: dict[Node, Node]) -> Node:
        """Places the nodes that stand for one."""
        for output in outputs:
            for inner in _order(output, new):
                if inner not in new:
                    new[inner] = self.place(inner, tuple(new[i] for i in inner.inputs))
        results = tuple(new[o] for o in outputs)
        if not isinstance(node.type, tuple):
            return results[0]
        self.several[node] = results
        return node

    def _output(self, node: Node, own: Node | None = None) -> tuple[Value, Node]:
        """The value of a graph output: memory of its own, so a copy where it is an input, a constant, a part, or an output already.

        own: the input that the output replaces; where it is that input, nothing is to be done.
        """
        value, offset = self.made.resolve(node)
        whole = offset == 0 and type_at(value).nbytes == node.type.nbytes
        if own is not None and value == (own, 0):
            return value, node
        if not whole or value in self.taken or isinstance(value[0].op, Param | Constant):
            node = self._copy(node)
            value = (node, 0)
        self.taken.add(value)
        return value, node

    def _copy(self, node: Node) -> Node:
        copy = apply(Identity(), node, loc=node.loc)
        lowered = self._ask(copy)
        if lowered is not None and lowered.alias is None:
            self._take(copy, lowered)
        else:
            self._host(copy)
        return copy

    def _update(self, updates: Mapping[int, int], graph: Graph, outputs: list[tuple[Value, Node]]) -> None:
        """Puts the works in an order in which inputs can be written over; values for which there is none are copied at the end."""
        wanted: dict[Value, int] = {outputs[o][0]: o for o in updates if outputs[o][0] != (graph.params[updates[o]], 0)}
        if not wanted:
            return
        made, works = self.made, self.made.works
        targets: dict[Block, Block] = {value: (graph.params[updates[o]], 0) for value, o in wanted.items()}
        touched = [touches(made, w) for w in works]
        in_place = {
            (at, b)
            for at, t in enumerate(touched)
            for b, _, written in t
            if written and b in targets and _over(works[at], t, b, targets[b])
        }
        order = order_works([[(b, written) for b, _, written in t] for t in touched], targets, in_place)
        made.works = [works[i] for i in order.works]
        for value, o in wanted.items():
            if value in order.copied:
                node = self._copy(outputs[o][1])
                outputs[o] = ((node, 0), node)
                made.outputs[o] = (node, 0)
            made.updates[made.outputs[o]] = updates[o]
        event("updates", updates=len(updates), copied=len(order.copied))

    def _sweep(self) -> None:
        """Drops works whose results nobody reads: a schedule may read what is before its node's input.

        Who writes may write a part only, or read what was there (a state that goes from step to step): then the works before count, too.
        """
        made = self.made
        needed: set[Block] = set(made.outputs)
        kept: list[Work] = []
        for work in reversed(made.works):
            touched = touches(made, work)
            if work.task is None or any(written and block in needed for block, _, written in touched):
                needed.update(block for block, _, _ in touched)
                kept.append(work)
        made.works = kept[::-1]

    def _join(self) -> None:
        """Concatenations along the outermost dimension: the pieces are made where they will stand."""
        outputs = set(self.made.outputs)
        readers: dict[Value, int] = {}
        for work in self.made.works:
            if isinstance(work.node.op, Concat):
                for i in work.node.inputs:
                    value, _ = self.made.resolve(i)
                    readers[value] = readers.get(value, 0) + 1
        for at in range(len(self.made.works) - 1, -1, -1):
            node = self.made.works[at].node
            if not isinstance(node.op, Concat) or not _contiguous(node) or (node, 0) in self.made.aliases:
                continue
            places = self._pieces(node, outputs, readers)
            if places is not None:
                self.made.aliases.update(places)
                placed = Choice(node, "alias", "its pieces are made in place")
                self.made.choices = [placed if c.node is node else c for c in self.made.choices]
                del self.made.works[at]

    def _interleave(self) -> None:
        """Concatenations along an inner dimension: who makes a piece that nobody else reads writes its rows as columns of the whole."""
        made = self.made
        uses: dict[Block, list[tuple[int, int]]] = {}  # value -> (work, argument), -1 for what is no argument
        joins: dict[Node, list[int]] = {}
        for at, work in enumerate(made.works):
            touched = touches(made, work)
            args = [arg for arg, _ in places_of(work.task)] if work.task else [-1] * len(touched)
            for arg, (block, _, _) in zip(args, touched, strict=True):
                uses.setdefault(block, []).append((at, arg))
            if isinstance(work.node.op, Concat) and work.task is not None:
                joins.setdefault(work.node, []).append(at)
        gone: set[int] = set()
        for node, copies in joins.items():
            axis = node.op.axis % node.rank  # type: ignore[attr-defined]
            inner = math.prod(node.shape[axis + 1 :]) * node.dtype.nbytes
            pitch, end = node.shape[axis] * inner, 0
            for piece in node.inputs:
                value, inside = made.resolve(piece)
                row, start = piece.shape[axis] * inner, end
                end += row
                used = uses.get(value, [])
                whole = inside == 0 and not isinstance(value[0].op, Param | Constant) and type_at(value).nbytes == piece.type.nbytes
                if not whole or value in made.outputs or len(used) != 2 or used[1][0] not in copies or (row | start | pitch) % LINE:
                    continue
                writer, arg = used[0]
                task = self._spread(made.works[writer].task, arg, row, pitch)
                if task is not None:
                    made.works[writer] = replace(made.works[writer], task=task)
                    made.aliases[value] = Place(node, start)
                    gone.add(used[1][0])
        made.works = [w for at, w in enumerate(made.works) if at not in gone]

    def _spread(self, task: Task | None, arg: int, row: int, pitch: int) -> Task | None:
        """The task with the rows of that result further apart; None where it cannot."""
        found = next((p for p in task.pitched if p.arg == arg), None) if task else None
        args = found.spread(task.args, row, pitch) if task and found else None
        if task is None or args is None:
            return None
        return replace(task, args=args, inplace=tuple(pair for pair in task.inplace if arg not in pair))

    def _pieces(self, node: Node, outputs: set[Value], readers: Mapping[Value, int]) -> dict[Value, Place] | None:
        """Where each piece goes, if all of them can be made in place."""
        places: dict[Value, Place] = {}
        offset = 0
        for piece in node.inputs:
            value, inside = self.made.resolve(piece)
            whole = inside == 0 and type_at(value).nbytes == piece.type.nbytes
            if not whole or value in outputs or value in places or readers.get(value) != 1 or isinstance(value[0].op, Param | Constant):
                return None
            places[value] = Place(node, offset)
            offset += piece.type.nbytes
        return places


@dataclass
class _Copies:
    """What one repetition of a body has of its own: nodes for its values, and temporaries."""

    body: Lowering
    nodes: dict[Node, Node] = field(default_factory=dict)
    temps: dict[Temp, Temp] = field(default_factory=dict)

    def node(self, node: Node) -> Node:
        """The node that stands for one of the body; constants stay themselves."""
        for n in _order(node, self.nodes):
            self.nodes[n] = n if isinstance(n.op, Constant) else Node(n.op, tuple(self.nodes[i] for i in n.inputs), n.type, n.loc)
        return self.nodes[node]

    def place(self, place: Place) -> Place:
        return replace(place, node=self.node(place.node))

    def work(self, work: Work) -> Work:
        """The same on the copies."""
        if work.task is None:
            return Work(self.node(work.node))
        args: list[TaskArg] = []
        for arg in work.task.args:
            match arg:
                case Place():
                    args.append(self.place(arg))
                case TempPlace(temp=temp):
                    args.append(replace(arg, temp=self.temps.setdefault(temp, Temp(temp.nbytes, temp.label))))
                case _:
                    args.append(arg)
        return Work(self.node(work.node), replace(work.task, args=tuple(args)))


def _over(work: Work, touched: list[tuple[Block, int, bool]], value: Block, target: Block) -> bool:
    """Whether a work may write `value` into the memory of `target`, which it reads: each element after it was read, and nothing else of it."""
    if work.task is None:
        return False
    by_arg = {at: t for (at, _), t in zip(places_of(work.task), touched, strict=True)}
    if sum(t[0] == target for t in touched) != 1 or sum(t[0] == value for t in touched) != 1:
        return False
    return any(by_arg.get(w) == (value, 0, True) and by_arg.get(r) == (target, 0, False) for w, r in work.task.inplace)


def touches(lowering: Lowering, work: Work) -> list[tuple[Block, int, bool]]:
    """(block, offset in it, whether it is written) of each piece of memory that a work touches."""
    found: list[tuple[Block, int, bool]] = []
    if work.task is None:
        for i in work.node.inputs:
            value, offset = lowering.resolve(i)
            found.append((value, offset, False))
        results = len(work.node.type) if isinstance(work.node.type, tuple) else 1
        for r in range(results):
            value, offset = lowering.resolve(work.node, r)
            found.append((value, offset, True))
        return found
    for at, place in places_of(work.task):
        written = at in work.task.writes
        if isinstance(place, TempPlace):
            found.append((place.temp, place.nbytes_offset, written))
        else:
            value, offset = lowering.resolve(place.node, place.result, place.nbytes_offset)
            found.append((value, offset, written))
    return found


def shallow_first(graph: Graph) -> tuple[Node, ...]:
    """The nodes in the order of the outputs that take the fewest steps: gradients of the last layers before those of the first, so
    that what the forward pass left for a layer is freed as soon as the backward pass has come by it."""
    depth: dict[Node, int] = {}
    for node in graph.nodes:
        depth[node] = 1 + max((depth[i] for i in node.inputs), default=0)
    return topological(sorted(graph.outputs, key=depth.__getitem__), graph.params)


def _contiguous(node: Node) -> bool:
    axis = node.op.axis % node.rank  # type: ignore[attr-defined]
    return math.prod(node.shape[:axis]) == 1


def _order(output: Node, known: Mapping[Node, Node]) -> list[Node]:
    """Nodes between known ones and the output, inputs first."""
    done: dict[Node, None] = {}
    stack = [(output, False)]
    while stack:
        node, ready = stack.pop()
        if node in known or node in done:
            continue
        if ready:
            done[node] = None
        else:
            stack.append((node, True))
            stack += [(i, False) for i in node.inputs]
    return list(done)


def kernels_of(task: Task) -> list[Kernel]:
    """The kernel of a task and those that it calls."""
    return [task.kernel, *(arg for arg in task.args if isinstance(arg, Kernel))]


def places_of(task: Task) -> list[tuple[int, Place | TempPlace]]:
    """Arguments of a task that are memory of the arena, of inputs, outputs or constants, by their number."""
    return [(at, arg) for at, arg in enumerate(task.args) if isinstance(arg, Place | TempPlace)]
