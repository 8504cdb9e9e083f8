"""Runs of operators on long activations go over the batch in parts: what one writes is still in the cache when the next one reads it.

In: a graph in its final operators and layout.  Out: the same with `batchwise(body=@..., parts=8)` nodes; Fuse then works inside of them.
A run begins at an operator whose activations, over the whole batch, fill a good part of the last cache, and ends where weights are as large
as activations: those are better read once for all examples.  Measured on Zen 5 (L3 32 MB, 2 cores), batch 8: the first 14 steps of ResNet-50
take 21.7 ms one image at a time and 32.6 ms all at once, those of YOLOv5s as a whole 254 and 281.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from jumar.base import TensorType, event
from jumar.device import Target
from jumar.ir import Constant, Graph, Node, Op, Param, apply, param
from jumar.operators import (
    AvgPool,
    Batchwise,
    Broadcast,
    Concat,
    Contraction,
    Conv,
    Elementwise,
    MaxPool,
    Pad,
    Reduction,
    Reshape,
    Resize,
    Slice,
    Transpose,
    normal_axis,
)

WEIGHT = 4  # weights are read again for each part: so many times their bytes must be activations
UNKNOWN_WEIGHT = 16  # the same where weights are no constants: they are packed again, too


def cut_batch_for(target: Target) -> CutBatch:
    """The pass with a machine's caches: a quarter of the last one for a run to be worth it, an eighth for the activations of a part."""
    last = target.l3_nbytes or 2 * target.cores * target.l2_nbytes
    return CutBatch(max(last // 4, target.cores * target.l2_nbytes), max(last // 8, target.cores * target.l2_nbytes // 2))


@dataclass(frozen=True)
class CutBatch:
    """long_nbytes: what an operator reads and writes, over the batch, to begin a run; part_nbytes: what it may for a part of several examples."""

    long_nbytes: int = 8 << 20
    part_nbytes: int = 4 << 20
    name = "cut_batch"

    def __call__(self, graph: Graph) -> Graph:
        facts = {n: fact for n in graph.nodes if (fact := _fact(n)) is not None}
        done: set[Node] = set()
        runs: list[_Run] = []
        while (run := self._next(graph, facts, done)) is not None:
            done |= run.members
            if self._pays(graph, run):
                runs.append(run)
        if not runs:
            return graph
        event("cut_batch", runs=len(runs), operators=sum(len(r.members) for r in runs), parts=max(r.parts for r in runs))
        return _Builder(graph, runs).build()

    def _next(self, graph: Graph, facts: dict[Node, _Fact], done: set[Node]) -> _Run | None:
        """The next run: from the first long operator on, all that can and does not mind, as far as others need it."""
        run: _Run | None = None
        after: set[Node] = set()  # what needs a result of the run and is not of it: what needs that in turn must wait for the whole run
        for node, fact in facts.items():
            if run is None:
                if node not in done and fact.nbytes >= self.long_nbytes and not fact.minds:
                    run = _Run(node.shape[0], {node})
                continue
            within = [i for i in node.inputs if i in run.members]
            waits = any(i in after for i in node.inputs)
            if not waits and node not in done and not fact.minds and node.shape[0] == run.batch and all(i in fact.cut for i in within):
                run.members.add(node)
            elif waits or within:
                after.add(node)
        if run:
            kept: set[Node] = set()
            for node in reversed(facts):
                if node in run.members and (facts[node].nbytes >= self.long_nbytes or any(u in kept for u in graph.users[node])):
                    kept.add(node)
            run.members = kept
            each = max(facts[n].nbytes for n in kept) // run.batch
            most = max(1, self.part_nbytes // each)
            run.parts = run.batch // max(b for b in range(1, run.batch + 1) if run.batch % b == 0 and b <= most)
        return run

    def _pays(self, graph: Graph, run: _Run) -> bool:
        """Whether enough is written and read again within the run and nowhere else."""
        outputs = set(graph.outputs)
        between = (n for n in run.members if n not in outputs and all(u in run.members for u in graph.users[n]))
        return run.parts > 1 and sum(n.type.nbytes for n in between if isinstance(n.op, Contraction)) >= self.long_nbytes


@dataclass
class _Run:
    """batch: examples; members: its operators, such that no path leaves them and comes back; parts: how often the body runs."""

    batch: int
    members: set[Node]
    parts: int = 1


@dataclass(frozen=True)
class _Fact:
    """What the pass knows of an operator.   cut: inputs of which a part of the result needs a part (none: no operator for a run); nbytes: of
    those and the result; minds: its weights are so large that they are better read once."""

    cut: tuple[Node, ...]
    nbytes: int
    minds: bool


def _fact(node: Node) -> _Fact | None:
    if isinstance(node.op, Param | Constant):
        return None
    cut = cut_inputs(node)
    if not cut:
        return _Fact((), 0, True)
    nbytes = node.type.nbytes + sum(i.type.nbytes for i in dict.fromkeys(cut))
    if not isinstance(node.op, Contraction):
        return _Fact(cut, nbytes, False)
    weights = node.inputs[1]
    return _Fact(cut, nbytes, weights.type.nbytes * (WEIGHT if weights.array is not None else UNKNOWN_WEIGHT) > nbytes)


# ---------------------------------------------------------------------- which operators there are for a part
Make = Callable[[Any, Node, int], Op]  # operator, node, examples of a part


def _same(op: Op, node: Node, part: int) -> Op:
    return op


# operator -> (whether examples go their own ways, the operator on a part)
_RULES: dict[type[Op], tuple[Callable[[Any, Node], bool], Make]] = {
    Conv: (lambda op, node: True, _same),
    MaxPool: (lambda op, node: True, _same),
    AvgPool: (lambda op, node: True, _same),
    Concat: (lambda op, node: normal_axis("concat", op.axis, node.rank) > 0, _same),
    Transpose: (lambda op, node: op.perm[0] == 0, _same),
    Pad: (lambda op, node: op.low[0] == op.high[0] == 0, _same),
    Reduction: (lambda op, node: 0 not in op.over(node.inputs[0].rank), _same),
    Elementwise: (lambda op, node: True, _same),
    Reshape: (lambda op, node: True, lambda op, node, part: Reshape((part, *op.shape[1:]))),
    Broadcast: (lambda op, node: node.inputs[0].rank == node.rank, lambda op, node, part: Broadcast((part, *op.shape[1:]))),
    Resize: (
        lambda op, node: len(node.inputs) == 1 and 0 not in op.resized(node.inputs[0].shape) and not op.roi,
        lambda op, node, part: replace(op, sizes=(part, *op.sizes[1:])),
    ),
    Slice: (
        lambda op, node: (op.starts[0], op.steps[0]) == (0, 1),
        lambda op, node, part: Slice(op.starts, (part, *op.stops[1:]), op.steps),
    ),
}


def cut_inputs(node: Node) -> tuple[Node, ...]:
    """The inputs of an operator of which each example of the result needs its own part only; none where there is no such rule."""
    rule = next((_RULES[c] for c in type(node.op).__mro__ if c in _RULES), None)
    if rule is None or not isinstance(node.type, TensorType) or not node.rank or node.shape[0] < 2 or not node.inputs:
        return ()
    n = node.shape[0]
    if isinstance(node.op, Elementwise):
        return tuple(i for i in node.inputs if i.rank == node.rank and i.shape[0] == n)
    cut = node.inputs if isinstance(node.op, Concat) else node.inputs[:1]
    if any(not i.rank or i.shape[0] != n for i in cut) or not rule[0](node.op, node):
        return ()
    return cut


def on_part(node: Node, inputs: tuple[Node, ...], part: int) -> Node:
    """The operator on one part."""
    make = next(_RULES[c] for c in type(node.op).__mro__ if c in _RULES)[1]
    return apply(make(node.op, node, part), *inputs, loc=node.loc)


# ---------------------------------------------------------------------- the graph with its runs
class _Builder:
    """Replaces each run by one node."""

    def __init__(self, graph: Graph, runs: list[_Run]) -> None:
        self.graph, self.runs = graph, runs
        self.of = {node: run for run in runs for node in run.members}
        self.new: dict[Node, Node] = {p: p for p in graph.params}

    def build(self) -> Graph:
        # a run waits for all that it reads, so what comes before a member in the order may come after its run
        todo = list(reversed(self.graph.outputs))
        while todo:
            node = todo[-1]
            run = self.of.get(node)
            needs = self._reads(run) if run else node.inputs
            missing = [i for i in needs if i not in self.new]
            if missing and node not in self.new:
                todo += missing
                continue
            todo.pop()
            if node in self.new:
                continue
            if run is None:
                inputs = tuple(self.new[i] for i in node.inputs)
                self.new[node] = node if inputs == node.inputs else Node(node.op, inputs, node.type, node.loc)
            else:
                self._replace(run)
        return self.graph.with_outputs(self.new[o] for o in self.graph.outputs)

    def _reads(self, run: _Run) -> tuple[Node, ...]:
        """What a run reads from outside, in order."""
        members = [n for n in self.graph.nodes if n in run.members]
        return tuple(dict.fromkeys(i for n in members for i in n.inputs if i not in run.members))

    def _replace(self, run: _Run) -> None:
        part, outputs = run.batch // run.parts, set(self.graph.outputs)
        inner: dict[Node, Node] = {}
        read: dict[tuple[Node, bool], Node] = {}  # what comes from outside, whole or cut
        members = [n for n in self.graph.nodes if n in run.members]

        def value(source: Node, cut: bool) -> Node:
            if source in inner:
                return inner[source]
            if isinstance(source.op, Constant) and not cut:
                return source
            if (source, cut) not in read:
                shape = (part, *source.shape[1:]) if cut else source.shape
                read[source, cut] = param(f"x{len(read)}", source.type.with_shape(shape))
            return read[source, cut]

        for node in members:
            cut = cut_inputs(node)
            inner[node] = on_part(node, tuple(value(i, i in cut) for i in node.inputs), part)
        results = [n for n in members if n in outputs or any(u not in run.members for u in self.graph.users[n])]
        body = Graph(f"part_{self.runs.index(run)}", tuple(read.values()), tuple(inner[n] for n in results))
        op = Batchwise(body, run.parts, tuple(i for i, (_, cut) in enumerate(read) if cut))
        whole = apply(op, *(self.new[source] for source, _ in read), loc=members[0].loc)
        for node, result in zip(results, whole.results, strict=True):
            self.new[node] = result
        for node in members:
            self.new.setdefault(node, whole)  # nobody outside reads it
