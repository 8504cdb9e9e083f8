"""Constant folding: what depends on constants alone is computed once, by the operators' references.

In: any graph.  Out: the same graph with constants in those places.  A value that is much larger than what it is made from stays an
operator (a broadcast of one number to a whole mask), unless only folded values read it.  One that is a few times larger is made, as long
as all of them have room: it is codes as numbers (quantized weights), which would be unpacked, and packed for a kernel, in each run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jumar.base import TensorType, event, i8, u8
from jumar.ir import Constant, Data, Get, Graph, Node, Param, apply, evaluate
from jumar.operators import Dequantize


@dataclass(frozen=True)
class Fold:
    """dequantize: whether 8-bit codes become numbers, which the pass `quantize` wants as codes.
    max_growth_nbytes: a constant that is larger than this and than all that it is made from is not made,
    unless it is at most `max_widening` times as large, and all such values together are at most `max_widened_nbytes`."""

    dequantize: bool = True
    max_growth_nbytes: int = 1 << 20
    max_widening: int = 4  # from 8 bits to 32
    max_widened_nbytes: int = 4 << 30
    name = "fold"

    def __call__(self, graph: Graph) -> Graph:
        known = _known(graph, self.dequantize)
        if not known:
            return graph
        values: dict[Node, Any] = {}
        new: dict[Node, Node] = {p: p for p in graph.params}
        for node in self._widened(graph, known):
            new[node] = apply(Constant(Data(_evaluate(node, values))), loc=node.loc)
        for node in graph.nodes:
            if node in new or (node in known and not isinstance(node.op, Constant)):
                continue
            new[node] = self._successor(node, new, known, values)
        outputs = [self._value(o, new, known, values) for o in graph.outputs]
        result = graph.with_outputs(outputs)
        count = graph.count() - result.count()
        if count:
            event("fold", folded=count)
        return result

    def _widened(self, graph: Graph, known: set[Node]) -> list[Node]:
        """Known values that others read and that grow a little; none where they have no room."""
        read = dict.fromkeys(i for n in graph.nodes if n not in known for i in n.inputs if i in known)
        found = [n for n in read if self._grows(n) and isinstance(n.type, TensorType) and n.type.nbytes <= self.max_widening * _sources(n)]
        return found if sum(n.type.nbytes for n in found) <= self.max_widened_nbytes else []

    def _successor(self, node: Node, new: dict[Node, Node], known: set[Node], values: dict[Node, Any]) -> Node:
        inputs = tuple(self._value(i, new, known, values) for i in node.inputs)
        if all(a is b for a, b in zip(inputs, node.inputs, strict=True)):
            return node
        return Node(node.op, inputs, node.type, node.loc)

    def _value(self, node: Node, new: dict[Node, Node], known: set[Node], values: dict[Node, Any]) -> Node:
        """The successor of a node that is read by something that is not folded."""
        if node in new:
            return new[node]
        assert node in known, "only known nodes are left for later"
        if self._grows(node):
            found = self._successor(node, new, known, values)
        else:
            found = apply(Constant(Data(_evaluate(node, values))), loc=node.loc)
        new[node] = found
        return found

    def _grows(self, node: Node) -> bool:
        if not isinstance(node.type, TensorType):
            return True
        if node.type.nbytes <= self.max_growth_nbytes:
            return False
        return node.type.nbytes > _sources(node)


def _sources(node: Node) -> int:
    """Bytes of the constants that a known node is made from."""
    sources: dict[Node, int] = {}
    todo = [node]
    while todo:
        at = todo.pop()
        if at.array is not None:
            sources[at] = at.array.nbytes
        elif at not in sources:
            sources[at] = 0
            todo += at.inputs
    return sum(sources.values())


def _known(graph: Graph, dequantize: bool) -> set[Node]:
    """Nodes that depend on constants alone."""
    known: set[Node] = set()
    for node in graph.nodes:
        if not dequantize and isinstance(node.op, Dequantize) and node.inputs[0].dtype in (u8, i8):
            continue
        if isinstance(node.op, Param) or getattr(node.op, "data_dependent", False) or getattr(node.op, "stateful", False):
            continue
        if all(i in known for i in node.inputs):
            known.add(node)
    return known


def _evaluate(root: Node, values: dict[Node, Any]) -> Any:
    """The value of a known node; iterative, since chains may be deep."""
    stack = [root]
    while stack:
        node = stack[-1]
        if node in values:
            stack.pop()
            continue
        missing = [i for i in node.inputs if i not in values]
        if missing:
            stack.extend(missing)
            continue
        values[node] = evaluate(node, [values[i] for i in node.inputs])
        stack.pop()
    return values[root]


def fold_node(node: Node) -> Node | None:
    """The constant of a node whose inputs are constants, where it is small; for rules that make such nodes."""
    if isinstance(node.op, Constant | Param | Get) or not node.inputs or not isinstance(node.type, TensorType):
        return None
    arrays = [i.array for i in node.inputs]
    if any(a is None for a in arrays) or node.type.nbytes > max(1 << 20, *(a.nbytes for a in arrays if a is not None)):
        return None
    return apply(Constant(Data(np.asarray(evaluate(node, arrays)))), loc=node.loc)
