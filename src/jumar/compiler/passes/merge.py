"""Common subexpressions: equal operators on equal inputs become one node, equal constants one constant.

In: any graph.  Out: the same with every value computed once.  Large constants are compared by a sample first and in full only
where the samples agree, so that weights are not hashed again and again.  An operator that gives more than another on the same inputs (its
`whole`: a recurrent layer that keeps what its gradient reads) stands for both.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from jumar.base import Array, event
from jumar.ir import Constant, Graph, Node, Param, apply, rebuild, same_node


@dataclass(frozen=True)
class Merge:
    """small_nbytes: constants up to this size are compared by content at once."""

    small_nbytes: int = 4096
    name = "merge"

    def __call__(self, graph: Graph) -> Graph:
        seen: dict[Hashable, Node] = {}
        constants: dict[Hashable, list[Node]] = {}
        merged = 0
        there = {(n.op, n.inputs) for n in graph.nodes if hasattr(n.op, "whole")}

        def visit(node: Node, inputs: tuple[Node, ...]) -> Node:
            nonlocal merged
            found = same_node(node, inputs)
            if isinstance(node.op, Constant):
                first = self._constant(found, constants)
            elif isinstance(node.op, Param) or getattr(node.op, "stateful", False):
                return found
            else:
                whole = getattr(node.op, "whole", node.op)
                if whole != node.op and (whole, node.inputs) in there:
                    found = apply(whole, *inputs, loc=node.loc)
                first = seen.setdefault((found.op, found.inputs), found)
            merged += first is not found and not isinstance(node.op, Constant)
            return first

        result = rebuild(graph, visit)
        if merged:
            event("merge", merged=merged)
        return result

    def _constant(self, node: Node, constants: dict[Hashable, list[Node]]) -> Node:
        array = node.array
        assert array is not None, "only constants come here"
        for other in constants.setdefault((array.shape, array.dtype.str, str(array.dtype), self._sample(array)), []):
            assert other.array is not None, "only constants are listed"
            if array is other.array or same_bits(array, other.array):
                return other
        constants[array.shape, array.dtype.str, str(array.dtype), self._sample(array)].append(node)
        return node

    def _sample(self, array: Array) -> Hashable:
        if array.dtype == object:
            return repr(array.tolist())
        if array.nbytes <= self.small_nbytes:
            return array.tobytes()
        flat = array.reshape(-1) if array.flags.c_contiguous else array[tuple(slice(0, 4) for _ in array.shape)].reshape(-1)
        return flat[:: max(1, flat.size // 256)].tobytes()


def same_bits(a: Array, b: Array) -> bool:
    """Whether two arrays of one shape and type hold the same bits (NaN equals NaN, 0 differs from -0)."""
    if a.dtype == object:
        return bool(a.tolist() == b.tolist())
    x, y = np.ascontiguousarray(a), np.ascontiguousarray(b)
    return bool(np.array_equal(x.reshape(-1).view(np.uint8), y.reshape(-1).view(np.uint8)))
