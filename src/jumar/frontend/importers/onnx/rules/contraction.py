"""Matrix products and convolutions."""

from __future__ import annotations

import numpy as np

from jumar.frontend.importers.onnx.geometry import geometry
from jumar.frontend.importers.onnx.node import OnnxNode
from jumar.frontend.importers.onnx.rule import rule
from jumar.frontend.importers.onnx.trace import Trace
from jumar.frontend.importers.onnx.value import Tensor
from jumar.ir import Node, constant
from jumar.operators import (  # fmt: skip
    Conv,
    ConvTranspose,
    DeformConv,
    Einsum,
    Silu,
    add,
    broadcast_to,
    cast,
    concat,
    matmul,
    mul,
    slice_axis,
    transpose,
)


@rule("MatMul")
def mat_mul(t: Trace, n: OnnxNode, x: Tensor, w: Tensor) -> Node:
    return cast(matmul(t.node(x), t.node(w)), x.dtype)


@rule("Gemm")
def gemm(t: Trace, n: OnnxNode, x: Tensor, w: Tensor, c: Tensor | None) -> Node:
    a, b = t.node(x), t.node(w)
    if a.rank != 2 or b.rank != 2:
        raise n.fault(f"A and B must be matrices, got {x.type} and {w.type}")
    alpha, beta = n.attribute("alpha", 1.0), n.attribute("beta", 1.0)
    a = transpose(a, (1, 0)) if n.attribute("transA", 0) else a
    b = transpose(b, (1, 0)) if n.attribute("transB", 0) else b
    if alpha != 1 and t.known(w) is not None:
        b, alpha = mul(b, alpha), 1.0  # folds into the weights
    y = cast(matmul(a, b), x.dtype)
    y = mul(y, alpha) if alpha != 1 else y
    if c is None or beta == 0:
        return y
    return broadcast_to(add(y, mul(t.node(c), beta) if beta != 1 else t.node(c)), y.shape)


@rule("Conv")
def conv(t: Trace, n: OnnxNode, x: Tensor, w: Tensor, bias: Tensor | None) -> Node:
    if x.rank < 3 or w.rank != x.rank:
        raise n.fault(f"X and W must be [n, c, *spatial] and [k, c/group, *kernel], got {x.type} and {w.type}")
    g = geometry(n, x.shape[2:], w.shape[2:])
    op = Conv(g.strides, g.low, g.high, g.dilations, n.attribute("group", 1))
    return op(t.node(x), t.node(w), *([] if bias is None else [t.node(bias)]))


@rule("ConvTranspose")
def conv_transpose(t: Trace, n: OnnxNode, x: Tensor, w: Tensor, bias: Tensor | None) -> Node:
    if x.rank < 3 or w.rank != x.rank:
        raise n.fault(f"X and W must be [n, c, *spatial] and [c, k/group, *kernel], got {x.type} and {w.type}")
    spatial, kernel, rank = x.shape[2:], w.shape[2:], x.rank - 2
    strides = n.attribute("strides", None) or (1,) * rank
    dilations = n.attribute("dilations", None) or (1,) * rank
    extra = n.attribute("output_padding", None) or (0,) * rank
    pads = n.attribute("pads", None) or (0,) * (2 * rank)
    auto, wanted = n.attribute("auto_pad", "NOTSET"), n.attribute("output_shape", None)
    if auto in ("SAME_UPPER", "SAME_LOWER") and not wanted:
        wanted = tuple(i * s for i, s in zip(spatial, strides, strict=True))
    if wanted:
        whole = [(i - 1) * s + e + (k - 1) * d + 1 for i, s, e, k, d in zip(spatial, strides, extra, kernel, dilations, strict=True)]
        total = [size - o for size, o in zip(whole, wanted[-rank:], strict=True)]
        less, more = tuple(p // 2 for p in total), tuple(p - p // 2 for p in total)
        low, high = (less, more) if auto == "SAME_UPPER" else (more, less)
    else:
        low, high = ((0,) * rank, (0,) * rank) if auto == "VALID" else (tuple(pads[:rank]), tuple(pads[rank:]))
    op = ConvTranspose(tuple(strides), low, high, tuple(extra), tuple(dilations), n.attribute("group", 1))
    return op(t.node(x), t.node(w), *([] if bias is None else [t.node(bias)]))


@rule("DeformConv")
def deform_conv(t: Trace, n: OnnxNode, x: Tensor, w: Tensor, offset: Tensor, bias: Tensor | None, mask: Tensor | None) -> Node:
    if x.rank != 4:
        raise n.fault(f"X must be [n, c, h, w], got {x.type}")
    g, groups = geometry(n, x.shape[2:], w.shape[2:]), n.attribute("offset_group", 1)
    b = constant(np.zeros(w.shape[0]), x.dtype) if bias is None else t.node(bias)
    m = t.node(mask) if mask is not None else constant(np.ones((x.shape[0], groups * w.shape[2] * w.shape[3], *offset.shape[2:])), x.dtype)
    strides, low, high, dilations = ((a, b) for a, b in (g.strides, g.low, g.high, g.dilations))
    return DeformConv(strides, low, high, dilations, n.attribute("group", 1), groups)(t.node(x), t.node(w), t.node(offset), b, m)


@rule("Einsum")
def einsum(t: Trace, n: OnnxNode, *operands: Tensor) -> Node:
    return Einsum(n.attribute("equation", ""))(*(t.node(x) for x in operands))


@rule("CausalConvWithState", domain="com.microsoft")
@rule("CausalConvWithState")
def causal_conv(t: Trace, n: OnnxNode, x: Tensor, w: Tensor, bias: Tensor | None, past: Tensor | None) -> tuple[Node, Node]:
    channels, kernel = x.shape[1], w.shape[2]
    state = constant(np.zeros((x.shape[0], channels, kernel - 1)), x.dtype) if past is None else t.node(past)
    whole = concat([state, t.node(x)], 2)
    y = Conv((1,), (0,), (0,), (1,), channels)(whole, t.node(w), *([] if bias is None else [t.node(bias)]))
    activation = n.attribute("activation", "none")
    if activation not in ("none", "", "silu", "swish"):
        raise n.fault(f"activation must be none, silu or swish, got {activation!r}")
    y = Silu()(y) if activation in ("silu", "swish") else y
    return y, slice_axis(whole, 2, whole.shape[2] - kernel + 1, whole.shape[2])
