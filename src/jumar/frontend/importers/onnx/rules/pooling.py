"""Pools: windows, whole images, and the way back."""

from __future__ import annotations

from jumar.frontend.importers.onnx.geometry import geometry
from jumar.frontend.importers.onnx.node import OnnxNode
from jumar.frontend.importers.onnx.rule import rule
from jumar.frontend.importers.onnx.trace import Trace
from jumar.frontend.importers.onnx.value import Tensor
from jumar.ir import Node
from jumar.operators import (  # fmt: skip
    Abs,
    AvgPool,
    LpPool,
    MaxPool,
    MaxPoolIndices,
    MaxUnpool,
    ReduceMax,
    ReduceMean,
    ReduceSum,
    fitted,
    power,
)


@rule("MaxPool")
def max_pool(t: Trace, n: OnnxNode, x: Tensor) -> Node | tuple[Node, ...]:
    g = geometry(n, x.shape[2:])
    if n.wants(1):
        return MaxPoolIndices(*g.fields, column_major=bool(n.attribute("storage_order", 0)))(t.node(x)).results
    return MaxPool(*g.fields)(t.node(x))


@rule("AveragePool")
def average_pool(t: Trace, n: OnnxNode, x: Tensor) -> Node:
    g = geometry(n, x.shape[2:])
    uncounted = g.uncounted if any(g.uncounted) else ()
    return AvgPool(*g.fields, count_include_pad=bool(n.attribute("count_include_pad", 0)), uncounted_high=uncounted)(t.node(x))


@rule("LpPool")
def lp_pool(t: Trace, n: OnnxNode, x: Tensor) -> Node:
    return LpPool(*geometry(n, x.shape[2:]).fields, p=int(n.attribute("p", 2)))(t.node(x))


@rule("GlobalAveragePool")
def global_average_pool(t: Trace, n: OnnxNode, x: Tensor) -> Node:
    return ReduceMean(tuple(range(2, x.rank)), keepdims=True)(t.node(x)) if x.rank > 2 else t.node(x)


@rule("GlobalMaxPool")
def global_max_pool(t: Trace, n: OnnxNode, x: Tensor) -> Node:
    return ReduceMax(tuple(range(2, x.rank)), keepdims=True)(t.node(x)) if x.rank > 2 else t.node(x)


@rule("GlobalLpPool")
def global_lp_pool(t: Trace, n: OnnxNode, x: Tensor) -> Node:
    p = float(n.attribute("p", 2))
    powers = power(Abs()(t.node(x)), p)
    return power(ReduceSum(tuple(range(2, x.rank)), keepdims=True)(powers) if x.rank > 2 else powers, 1 / p)


@rule("MaxUnpool")
def max_unpool(t: Trace, n: OnnxNode, x: Tensor, place: Tensor, shape: Tensor | None) -> Node:
    wanted = t.ints(shape) if shape is not None else None
    rank = x.rank - 2
    kernel = n.attribute("kernel_shape")
    strides = n.attribute("strides", None) or (1,) * rank
    pads = n.attribute("pads", None) or (0,) * (2 * rank)
    sizes = [(i - 1) * s - pads[a] - pads[a + rank] + k for a, (i, s, k) in enumerate(zip(x.shape[2:], strides, kernel, strict=True))]
    inferred = (*x.shape[:2], *sizes)
    y = MaxUnpool(inferred)(t.node(x), t.node(place))
    return y if wanted is None else fitted(y, (0,) * x.rank, tuple(o - i for o, i in zip(wanted, inferred, strict=True)))
