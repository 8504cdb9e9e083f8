"""A matrix product whose columns go separate ways becomes several: query, key and value of one projection.

In: a graph where a product with a constant is read by slices of its columns alone.  Out: one product for each slice, on a part of the
weights; its epilogue can then write the result where and how its reader wants it, and the slices cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jumar.base import event
from jumar.ir import Graph, Node, apply, constant, rebuild, same_node
from jumar.operators import Add, MatMul, Slice


@dataclass(frozen=True)
class Split:
    """min_columns: parts narrower than this stay slices."""

    min_columns: int = 32
    name = "split"

    def __call__(self, graph: Graph) -> Graph:
        outputs = set(graph.outputs)
        parts = {}
        for node in graph.nodes:
            users = graph.users[node]
            if node not in outputs and users and self._splits(node, users):
                for user in users:
                    parts[user] = node
        if not parts:
            return graph

        def visit(node: Node, inputs: tuple[Node, ...]) -> Node:
            if node not in parts:
                return same_node(node, inputs)
            assert isinstance(node.op, Slice), "parts are slices"
            return _part(inputs[0], node.op.starts[-1], node.op.stops[-1])

        event("split", products=len(set(parts.values())), parts=len(parts))
        return rebuild(graph, visit)

    def _splits(self, node: Node, users: Sequence[Node]) -> bool:
        if not isinstance(node.op, Add | MatMul) or node.rank == 0 or _product(node) is None:
            return False
        widths = [u.op.stops[-1] - u.op.starts[-1] for u in users if isinstance(u.op, Slice) and _of_columns(u)]
        return len(widths) == len(users) > 1 and min(widths) >= self.min_columns and sum(widths) <= node.shape[-1]


def _product(node: Node) -> tuple[Node, Node, Node | None] | None:
    """(x, w, bias) of  x w  or  x w + bias  with constant w and bias of one number for each column."""
    match node:
        case Node(op=MatMul(), inputs=(x, w)) if w.array is not None and w.rank >= 2:
            return x, w, None
        case Node(op=Add(), inputs=(a, b)):
            for y, bias in ((a, b), (b, a)):
                match y:
                    case Node(op=MatMul(), inputs=(x, w)) if w.array is not None and w.rank >= 2 and y.type == node.type:
                        if bias.array is not None and bias.rank and bias.type.size == node.shape[-1] == bias.shape[-1]:
                            return x, w, bias
    return None


def _of_columns(node: Node) -> bool:
    """Whether a slice takes neighbouring columns of every row."""
    op, (x,) = node.op, node.inputs
    assert isinstance(op, Slice), "asked about slices"
    return node.shape[:-1] == x.shape[:-1] and all(s == 1 for s in op.steps)


def _part(node: Node, start: int, stop: int) -> Node:
    found = _product(node)
    assert found is not None, "it was one before"
    x, w, bias = found
    assert w.array is not None, "the weights are constant"
    y = MatMul()(x, constant(w.array[..., start:stop], loc=w.loc), loc=node.loc)
    if bias is None or bias.array is None:
        return y
    return apply(Add(), y, constant(bias.array.reshape(-1)[start:stop], loc=bias.loc), loc=node.loc)
