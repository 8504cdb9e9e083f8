"""Dequantization by name: the i32 products of codes times their scale, as the one operator by which a cube writes them out.

In: a graph whose products of codes are convolutions and matrix products of integers (quantize.py).  Out: the same with `Dequantize` after them.
Spelt out as a cast and a multiplication it would pass through f16 under ATC's default mode, and sums of codes do not fit f16.
"""

from __future__ import annotations

from dataclasses import dataclass

from jumar.base import event, i32
from jumar.compiler.match import either
from jumar.ir import Graph, Node, rewrite
from jumar.operators import Cast, Conv, Dequantize, MatMul, Mul


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
            case Node(op=Cast(), inputs=(Node(op=Conv() | MatMul()) as product,)) if product.dtype is i32 and scale.array is not None:
                made = Dequantize()(product, scale, loc=node.loc)
                return made if made.type == node.type else None
    return None
