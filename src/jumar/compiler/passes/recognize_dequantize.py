"""Dequantization by name: the i32 products of codes times their scale, as the one operator by which a cube writes them out.

In: a graph whose products of codes are convolutions and matrix products of integers (quantize.py).  Out: the same with `Dequantize` after them.
Spelt out as a cast and a multiplication it would pass through f16 under ATC's default mode, and sums of codes do not fit f16.
"""

from __future__ import annotations

from dataclasses import dataclass

from jumar.base import event, i32
from jumar.compiler.match import either
from jumar.ir import Graph, Node, rewrite
from jumar.operators import Add, Cast, Conv, Dequantize, MatMul, Mul, Sub


@dataclass(frozen=True)
class RecognizeDequantize:
    """No options."""

    name = "recognize_dequantize"

    def __call__(self, graph: Graph) -> Graph:
        graph, hits = rewrite(graph, (dequantize_product,))
        if hits:
            event("recognize_dequantize", **hits)
        return graph


def dequantize_product(node: Node) -> Node | None:
    """cast(product of codes) * constant -> dequantize"""
    if not isinstance(node.op, Mul) or not node.dtype.is_float:
        return None
    for number, scale in either(node):
        match number:
            case Node(op=Cast(), inputs=(sums,)) if scale.array is not None and _is_product(sums):
                made = Dequantize()(sums, scale, loc=node.loc)
                return made if made.type == node.type else None
    return None


def _is_product(node: Node, depth: int = 3) -> bool:
    """Whether the node is a product of codes, or one with sums added for a bias and zero codes."""
    if node.dtype is not i32:
        return False
    if isinstance(node.op, Conv | MatMul):
        return True
    return bool(depth) and isinstance(node.op, Add | Sub) and any(_is_product(i, depth - 1) for i in node.inputs)
