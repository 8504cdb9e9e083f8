"""Softmax and its kin, batch, layer, instance and group normalization."""

from __future__ import annotations

import math

from jumar.base import i64
from jumar.frontend.importers.onnx.node import OnnxNode, dtype_of_onnx
from jumar.frontend.importers.onnx.rule import rule
from jumar.frontend.importers.onnx.trace import Trace
from jumar.frontend.importers.onnx.value import Tensor
from jumar.ir import Node
from jumar.operators import (  # fmt: skip
    ArgMax,
    BatchNorm,
    GroupNorm,
    InstanceNorm,
    Iota,
    LayerNorm,
    LogSoftmax,
    LpNorm,
    Lrn,
    ReduceMean,
    RmsNorm,
    Rsqrt,
    Softmax,
    add,
    broadcast_to,
    cast,
    div,
    equal,
    mul,
    normal_axis,
    reshape,
    sqrt,
    square,
    sub,
    widened,
)


def _rows(n: OnnxNode, x: Node) -> tuple[Node, int]:
    """Before opset 13 everything from `axis` on is one row."""
    if n.opset >= 13:
        return x, normal_axis(n.op, n.attribute("axis", -1), x.rank)
    axis = n.attribute("axis", 1)
    axis = axis + x.rank if axis < 0 else axis
    if axis == x.rank - 1:
        return x, axis
    return reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))), 1


@rule("Softmax")
def softmax(t: Trace, n: OnnxNode, x: Tensor) -> Node:
    rows, axis = _rows(n, t.node(x))
    return reshape(Softmax(axis)(rows), x.shape)


@rule("LogSoftmax")
def log_softmax(t: Trace, n: OnnxNode, x: Tensor) -> Node:
    rows, axis = _rows(n, t.node(x))
    return reshape(LogSoftmax(axis)(rows), x.shape)


@rule("Hardmax")
def hardmax(t: Trace, n: OnnxNode, x: Tensor) -> Node:
    rows, axis = _rows(n, t.node(x))
    best = ArgMax(axis, keepdims=True)(rows)
    return reshape(cast(equal(Iota(rows.shape, axis, i64)(), best), x.dtype), x.shape)


@rule("LayerNormalization")
def layer_normalization(t: Trace, n: OnnxNode, x: Tensor, scale: Tensor, bias: Tensor | None) -> Node | tuple[Node, ...]:
    axis, epsilon = normal_axis(n.op, n.attribute("axis", -1), x.rank), n.attribute("epsilon", 1e-5)
    y = LayerNorm(axis, epsilon)(t.node(x), t.node(scale), *([] if bias is None else [t.node(bias)]))
    if not n.wants(1) and not n.wants(2):
        return y
    stash = dtype_of_onnx(n.attribute("stash_type", 1))
    return y, *(cast(s, stash) for s in statistics(t.node(x), axis, epsilon))


def statistics(x: Node, axis: int, epsilon: float, *, centered: bool = True) -> tuple[Node, Node]:
    """Mean, and 1 / sqrt(variance + epsilon), over the dimensions from `axis` on, in f32 or wider."""
    axes, wide = tuple(range(normal_axis("statistics", axis, x.rank), x.rank)), widened(x)
    mean = ReduceMean(axes, keepdims=True)(wide)
    spread = sub(wide, mean) if centered else wide
    return mean, Rsqrt()(add(ReduceMean(axes, keepdims=True)(square(spread)), epsilon))


@rule("RMSNormalization")
def rms_normalization(t: Trace, n: OnnxNode, x: Tensor, scale: Tensor) -> Node:
    wide = x.dtype if x.dtype.bits >= scale.dtype.bits else scale.dtype
    op = RmsNorm(normal_axis(n.op, n.attribute("axis", -1), x.rank), n.attribute("epsilon", 1e-5))
    return cast(op(cast(t.node(x), wide), cast(t.node(scale), wide)), scale.dtype)


@rule("BatchNormalization")
def batch_normalization(
    t: Trace, n: OnnxNode, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor
) -> Node | tuple[Node, ...]:
    epsilon, momentum = n.attribute("epsilon", 1e-5), n.attribute("momentum", 0.9)
    given = [t.node(v) for v in (scale, bias, mean, var)]
    if n.opset >= 14:
        training = bool(n.attribute("training_mode", 0))
    else:
        training = n.outputs > 1 and not (n.opset < 7 and n.attribute("is_test", 0))
    if n.opset < 9 and not n.attribute("spatial", 1):
        s, b, m, v = (reshape(p, (1, *x.shape[1:])) for p in given)
        return add(mul(div(sub(t.node(x), m), sqrt(add(v, epsilon))), s), b)
    if not training:
        statistics = (cast(p, x.dtype) for p in given)
        return BatchNorm(epsilon)(t.node(x), *statistics)
    axes = tuple(a for a in range(x.rank) if a != 1)
    wide = cast(t.node(x), given[2].dtype)
    now = ReduceMean(axes, keepdims=True)(wide)
    spread = reshape(ReduceMean(axes)(square(sub(wide, now))), (x.shape[1],))
    now = reshape(now, (x.shape[1],))
    y = BatchNorm(epsilon)(t.node(x), *(cast(p, x.dtype) for p in (*given[:2], now, spread)))
    running = [add(mul(before, momentum), mul(after, 1 - momentum)) for before, after in zip(given[2:], (now, spread), strict=True)]
    return (y, *running) if n.opset >= 14 else (y, *running, now, spread)


@rule("InstanceNormalization")
def instance_normalization(t: Trace, n: OnnxNode, x: Tensor, scale: Tensor, bias: Tensor) -> Node:
    return InstanceNorm(n.attribute("epsilon", 1e-5))(t.node(x), t.node(scale), t.node(bias))


@rule("GroupNormalization")
def group_normalization(t: Trace, n: OnnxNode, x: Tensor, scale: Tensor, bias: Tensor) -> Node:
    groups, channels = n.attribute("num_groups"), x.shape[1]
    each = [t.node(scale), t.node(bias)]
    if n.opset < 21:  # one number for each group
        each = [reshape(broadcast_to(reshape(p, (groups, 1)), (groups, channels // groups)), (channels,)) for p in each]
    return GroupNorm(groups, n.attribute("epsilon", 1e-5))(t.node(x), *each)


@rule("LpNormalization")
def lp_normalization(t: Trace, n: OnnxNode, x: Tensor) -> Node:
    return LpNorm(n.attribute("axis", -1), n.attribute("p", 2))(t.node(x))


@rule("MeanVarianceNormalization")
def mean_variance_normalization(t: Trace, n: OnnxNode, x: Tensor) -> Node:
    axes, node = tuple(n.attribute("axes", (0, 2, 3))), t.node(x)
    centered = sub(node, ReduceMean(axes, keepdims=True)(node))
    return div(centered, add(sqrt(ReduceMean(axes, keepdims=True)(square(centered))), 1e-9))


@rule("LRN")
def lrn(t: Trace, n: OnnxNode, x: Tensor) -> Node:
    alpha, beta, bias = n.attribute("alpha", 1e-4), n.attribute("beta", 0.75), n.attribute("bias", 1.0)
    return Lrn(n.attribute("size"), alpha, beta, bias)(t.node(x))
