"""Cheap values that several operators read are computed by each of them, where that reads no more memory than the value itself would.

In: a graph in its final operators and layout.  Out: the same function with a copy of such nodes for each reader, so that the fuse pass
finds one reader for each.  x - mean of a batch norm is read by the variance, by the result, and twice by the backward pass: x is read in
its place, and the difference is never written.
"""

from __future__ import annotations

from dataclasses import dataclass

from jumar.base import TensorType, event
from jumar.ir import Constant, Get, Graph, Node, Param
from jumar.operators import Elementwise, Reduction, Reshape, Transpose

COSTLY = frozenset(
    {"exp", "expm1", "log", "log1p", "pow", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "sigmoid", "erf", "gelu",
     "silu", "elu", "selu", "celu", "softplus", "mish", "mod", "floor_div", "random_bits"}
)  # fmt: skip


@dataclass(frozen=True)
class Recompute:
    """max_readers: of a value; max_chain: cheap operators, one behind the other, that a reader computes; least_nbytes: of a value that counts."""

    max_readers: int = 6
    max_chain: int = 4
    least_nbytes: int = 1 << 14
    name = "recompute"

    def __call__(self, graph: Graph) -> Graph:
        chosen = self._chosen(graph)
        if not chosen:
            return graph
        new: dict[Node, Node] = {}
        for node in graph.nodes:
            if isinstance(node.op, Param | Constant):
                new[node] = node
            elif node not in chosen:
                new[node] = _copy(node, new, chosen)
        event("recompute", values=len(chosen))
        return graph.with_outputs(new[o] for o in graph.outputs)

    def _chosen(self, graph: Graph) -> dict[Node, tuple[int, frozenset[Node]]]:
        """Values that are computed by their readers: for each the length of its chain, and what is read instead."""
        users = {n: tuple(dict.fromkeys(u)) for n, u in graph.users.items()}
        outputs = set(graph.outputs)
        found: dict[Node, tuple[int, frozenset[Node]]] = {}
        for node in graph.nodes:
            readers = users[node]
            if (
                not isinstance(node.op, Elementwise)
                or node in outputs
                or node.op.name in COSTLY
                or not 2 <= len(readers) <= self.max_readers
            ):
                continue
            if node.type.nbytes < self.least_nbytes or not all(_takes_in(u, node) for u in readers):
                continue
            chain = 1 + max((found[i][0] for i in node.inputs if i in found), default=0)
            bases = frozenset(b for i in node.inputs for b in (found[i][1] if i in found else (i,)))
            if chain <= self.max_chain and _nbytes(bases) <= 1.15 * node.type.nbytes:
                found[node] = (chain, bases)
        return found


def _takes_in(reader: Node, value: Node) -> bool:
    """Whether the reader computes one element for each of the value's, or sums them, so that a group may hold both."""
    if not isinstance(reader.type, TensorType):
        return False
    if isinstance(reader.op, Reduction):
        return True
    return isinstance(reader.op, Elementwise | Reshape | Transpose) and reader.type.size == value.type.size


def _nbytes(nodes: frozenset[Node]) -> int:
    return sum(n.type.nbytes for n in nodes if not (n.array is not None and n.type.size == 1))


def _copy(node: Node, new: dict[Node, Node], chosen: dict[Node, tuple[int, frozenset[Node]]]) -> Node:
    """The node on new inputs; those that are chosen are made afresh."""
    made: dict[Node, Node] = {}
    for i in node.inputs:
        made[i] = _copy(i, new, chosen) if i in chosen else new[i]
    inputs = tuple(made[i] for i in node.inputs)
    if node not in chosen and all(a is b for a, b in zip(inputs, node.inputs, strict=True)):
        return node
    assert not isinstance(node.op, Get) or inputs == node.inputs or node not in chosen, "results of several are never copied"
    return Node(node.op, inputs, node.type, node.loc)
