"""com.microsoft: what ONNX Runtime's optimizer and exporters write, said in our operators."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from jumar.base import Array, i32
from jumar.frontend.importers.onnx.geometry import geometry
from jumar.frontend.importers.onnx.node import OnnxNode
from jumar.frontend.importers.onnx.rule import rule
from jumar.frontend.importers.onnx.rules.contraction import conv, gemm
from jumar.frontend.importers.onnx.rules.normalization import statistics
from jumar.frontend.importers.onnx.trace import Trace
from jumar.frontend.importers.onnx.value import Tensor
from jumar.ir import Node, constant
from jumar.operators import (  # fmt: skip
    Clip,
    Conv,
    Gather,
    Gelu,
    GroupNorm,
    HardSigmoid,
    LayerNorm,
    LeakyRelu,
    MaxPool,
    ReduceSum,
    Relu,
    RmsNorm,
    Sigmoid,
    Silu,
    Softmax,
    Tanh,
    add,
    cast,
    equal,
    matmul,
    mul,
    reshape,
    slice_axis,
    sqrt,
    square,
    sub,
    transpose,
)

MICROSOFT = "com.microsoft"


def activated(n: OnnxNode, y: Node, numbers: Sequence[float]) -> Node:
    """The fused activation of a node.   numbers: its parameters, where the node says them."""
    name = n.attribute("activation", "")
    given = dict(enumerate(numbers))
    match name:
        case "":
            return y
        case "Relu" | "Sigmoid" | "Tanh":
            return {"Relu": Relu, "Sigmoid": Sigmoid, "Tanh": Tanh}[name]()(y)
        case "LeakyRelu":
            return LeakyRelu(given.get(0, 0.01))(y)
        case "Clip":
            return Clip(given.get(0), given.get(1))(y)
        case "HardSigmoid":
            return HardSigmoid(given.get(0, 0.2), given.get(1, 0.5))(y)
        case "Gelu" | "FastGelu":
            return Gelu("tanh" if name == "FastGelu" else "none")(y)
        case "QuickGelu":
            return Silu(given.get(0, 1.702))(y)
    what = f"activation must be Relu, Sigmoid, Tanh, LeakyRelu, Clip, HardSigmoid, Gelu or QuickGelu, got {name!r}"
    raise n.fault(what, code="op-unsupported")


# ------------------------------------------------------------------------------------------------------------ products
@rule("FusedMatMul", "TransposeMatMul", "FusedMatMulActivation", domain=MICROSOFT)
def fused_mat_mul(t: Trace, n: OnnxNode, a: Tensor, b: Tensor) -> Node:
    x, w = (_turned(t.node(v), n.attribute(f"transBatch{side}", 0), n.attribute(f"trans{side}", 0)) for v, side in ((a, "A"), (b, "B")))
    y, alpha = matmul(x, w), n.attribute("alpha", 1.0)
    numbers = [n.attribute(k) for k in ("activation_alpha", "activation_beta") if n.has(k)]
    return activated(n, mul(y, alpha) if alpha != 1 else y, numbers)


def _turned(x: Node, batch: int, rows: int) -> Node:
    if x.rank < 2:
        return x
    order = [*range(1, x.rank - 1), 0, x.rank - 1] if batch else list(range(x.rank))
    if rows:
        order[-2:] = reversed(order[-2:])
    return transpose(x, tuple(order))


@rule("FusedGemm", domain=MICROSOFT)
def fused_gemm(t: Trace, n: OnnxNode, x: Tensor, w: Tensor, c: Tensor | None) -> Node:
    return activated(n, gemm(t, n, x, w, c), [n.attribute(k) for k in ("activation_alpha", "activation_beta") if n.has(k)])


@rule("GemmFastGelu", domain=MICROSOFT)
def gemm_fast_gelu(t: Trace, n: OnnxNode, x: Tensor, w: Tensor, bias: Tensor | None) -> Node:
    y = matmul(t.node(x), t.node(w))
    return Gelu("tanh")(y if bias is None else add(y, t.node(bias)))


@rule("FusedConv", domain=MICROSOFT)
def fused_conv(t: Trace, n: OnnxNode, x: Tensor, w: Tensor, bias: Tensor | None, z: Tensor | None) -> Node:
    y = conv(t, n, x, w, bias)
    return activated(n, y if z is None else add(y, t.node(z)), n.attribute("activation_params", ()) or ())


@rule("NhwcConv", "NhwcFusedConv", domain=MICROSOFT)
def nhwc_conv(t: Trace, n: OnnxNode, x: Tensor, w: Tensor, bias: Tensor | None, z: Tensor | None) -> Node:
    g = geometry(n, x.shape[1:-1], w.shape[2:])
    op = Conv(g.strides, g.low, g.high, g.dilations, n.attribute("group", 1), channels_last=True)
    y = op(t.node(x), t.node(w), *([] if bias is None else [t.node(bias)]))
    return activated(n, y if z is None else add(y, t.node(z)), n.attribute("activation_params", ()) or ())


@rule("NhwcMaxPool", domain=MICROSOFT, required=("kernel_shape",))
def nhwc_max_pool(t: Trace, n: OnnxNode, x: Tensor) -> Node:
    return MaxPool(*geometry(n, x.shape[1:-1]).fields, channels_last=True)(t.node(x))


@rule("MatMulNBits", domain=MICROSOFT, required=("K", "N", "block_size"))
def mat_mul_n_bits(
    t: Trace, n: OnnxNode, x: Tensor, w: Tensor, scales: Tensor, zeros: Tensor | None, groups: Tensor | None, bias: Tensor | None
) -> Node:
    if n.attribute("weight_prepacked", 0) or groups is not None:
        raise n.fault("weights must lie as they are, without g_idx, got prepacked or indexed ones", code="op-unsupported")
    k, columns, bits, block = (n.attribute(a, 4) for a in ("K", "N", "bits", "block_size"))
    zero = None if zeros is None else t.array(zeros)
    weights = blocks_to_floats(t.array(w).reshape(columns, -1, block * bits // 8), t.array(scales), zero, bits)[:, :k]
    y = matmul(t.node(x), constant(np.ascontiguousarray(weights.T), x.dtype))
    return y if bias is None else add(y, t.node(bias))


def blocks_to_floats(packed: Array, scales: Array, zeros: Array | None, bits: int) -> Array:
    """Weights of `bits` bits, lowest bits first, in blocks with a scale and a zero point each.   [n, blocks, bytes] -> f32 [n, k]"""
    n, blocks, _ = packed.shape
    codes = _codes(packed, bits).astype(np.float32)
    if zeros is None:
        zero: Array = np.full((n, blocks), 1 << (bits - 1), np.float32)
    elif zeros.dtype == np.uint8:
        zero = _codes(zeros.reshape(n, -1), bits)[:, :blocks].astype(np.float32)
    else:
        zero = zeros.reshape(n, blocks).astype(np.float32)
    return np.asarray((codes - zero[..., None]) * scales.reshape(n, blocks, 1).astype(np.float32)).reshape(n, -1)


def _codes(packed: Array, bits: int) -> Array:
    """Numbers of `bits` bits of the bytes of the last dimension."""
    single = np.unpackbits(packed.astype(np.uint8), axis=-1, bitorder="little")
    single = single[..., : single.shape[-1] // bits * bits].reshape(*packed.shape[:-1], -1, bits)
    return np.asarray((single.astype(np.int64) << np.arange(bits)).sum(axis=-1))


# --------------------------------------------------------------------------------------------------------- activations
@rule("Gelu", domain=MICROSOFT)
def gelu(t: Trace, n: OnnxNode, x: Tensor) -> Node:
    return Gelu()(t.node(x))


@rule("BiasGelu", domain=MICROSOFT)
def bias_gelu(t: Trace, n: OnnxNode, x: Tensor, bias: Tensor) -> Node:
    return Gelu()(add(t.node(x), t.node(bias)))


@rule("FastGelu", domain=MICROSOFT)
def fast_gelu(t: Trace, n: OnnxNode, x: Tensor, bias: Tensor | None) -> Node:
    return Gelu("tanh")(t.node(x) if bias is None else add(t.node(x), t.node(bias)))


@rule("QuickGelu", domain=MICROSOFT)
def quick_gelu(t: Trace, n: OnnxNode, x: Tensor) -> Node:
    return Silu(n.attribute("alpha", 1.702))(t.node(x))


@rule("BiasSplitGelu", domain=MICROSOFT)
def bias_split_gelu(t: Trace, n: OnnxNode, x: Tensor, bias: Tensor) -> Node:
    y, half = add(t.node(x), t.node(bias)), x.shape[-1] // 2
    return mul(slice_axis(y, x.rank - 1, 0, half), Gelu()(slice_axis(y, x.rank - 1, half, 2 * half)))


@rule("BiasAdd", domain=MICROSOFT)
def bias_add(t: Trace, n: OnnxNode, x: Tensor, bias: Tensor, skip: Tensor) -> Node:
    return add(add(t.node(x), t.node(bias)), t.node(skip))


@rule("BiasSoftmax", domain=MICROSOFT)
def bias_softmax(t: Trace, n: OnnxNode, x: Tensor, bias: Tensor) -> Node:
    axis, addend = n.attribute("axis", 1), t.node(bias)
    axis = axis + x.rank if axis < 0 else axis
    if not n.attribute("is_inner_broadcast", 0) and addend.rank < x.rank:
        addend = reshape(addend, (1,) * (x.rank - addend.rank) + addend.shape)
    y = add(t.node(x), addend)
    rows = reshape(y, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))
    return reshape(Softmax(1)(rows), x.shape)


# ------------------------------------------------------------------------------------------------------ normalizations
@rule("SimplifiedLayerNormalization", domain=MICROSOFT)
@rule("SimplifiedLayerNormalization")
def simplified_layer_normalization(t: Trace, n: OnnxNode, x: Tensor, scale: Tensor) -> Node | tuple[Node | None, ...]:
    axis, epsilon = n.attribute("axis", -1), n.attribute("epsilon", 1e-5)
    y = cast(RmsNorm(axis, epsilon)(t.node(x), cast(t.node(scale), x.dtype)), scale.dtype)
    if not n.wants(1):
        return y
    return y, statistics(t.node(x), axis, epsilon, centered=False)[1]


@rule("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_normalization(
    t: Trace, n: OnnxNode, x: Tensor, skip: Tensor, gamma: Tensor, beta: Tensor | None, bias: Tensor | None
) -> tuple[Node | None, ...]:
    total, epsilon = _sum(t, x, skip, bias), n.attribute("epsilon", 1e-12)
    y = LayerNorm(-1, epsilon)(total, t.node(gamma), *([] if beta is None else [t.node(beta)]))
    mean, deviation = statistics(total, -1, epsilon) if n.wants(1) or n.wants(2) else (None, None)
    return y, mean, deviation, total


@rule("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_simplified_layer_normalization(
    t: Trace, n: OnnxNode, x: Tensor, skip: Tensor, gamma: Tensor, bias: Tensor | None
) -> tuple[Node | None, ...]:
    total, epsilon = _sum(t, x, skip, bias), n.attribute("epsilon", 1e-12)
    y = RmsNorm(-1, epsilon)(total, t.node(gamma))
    deviation = statistics(total, -1, epsilon, centered=False)[1] if n.wants(2) else None
    return y, None, deviation, total


def _sum(t: Trace, x: Tensor, skip: Tensor, bias: Tensor | None) -> Node:
    total = add(t.node(x), t.node(skip))
    return total if bias is None else add(total, t.node(bias))


@rule("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_normalization(
    t: Trace, n: OnnxNode, words: Tensor, segments: Tensor | None, word_table: Tensor, position_table: Tensor, segment_table: Tensor | None,
    gamma: Tensor, beta: Tensor, mask: Tensor | None, positions: Tensor | None,
) -> tuple[Node, ...]:  # fmt: skip
    batch, length = words.shape
    places = constant(np.arange(length)[None]) if positions is None else t.node(positions)
    total = add(Gather(0)(t.node(word_table), t.node(words)), Gather(0)(t.node(position_table), places))
    if segments is not None and segment_table is not None:
        total = add(total, Gather(0)(t.node(segment_table), t.node(segments)))
    y = LayerNorm(-1, n.attribute("epsilon", 1e-12))(total, t.node(gamma), t.node(beta))
    if mask is None:
        return y, constant(np.zeros(batch), i32), total
    return y, ReduceSum((1,))(cast(equal(t.node(mask), 1), i32)), total


@rule("GroupNorm", "SkipGroupNorm", domain=MICROSOFT, required=("groups",))
def group_norm(t: Trace, n: OnnxNode, x: Tensor, gamma: Tensor, beta: Tensor, skip: Tensor | None, bias: Tensor | None) -> tuple[Node, ...]:
    total, last = t.node(x), bool(n.attribute("channels_last", 1))
    channels = x.shape[-1] if last else x.shape[1]
    for addend in (skip, bias):
        if addend is not None:
            node = t.node(addend)
            lead = x.shape[0] if node.rank == 2 else 1
            spread = (lead, 1, 1, channels) if last else (lead, channels, 1, 1)
            total = add(total, node if node.rank == 4 else reshape(node, spread))
    first = transpose(total, (0, 3, 1, 2)) if last else total
    y = GroupNorm(n.attribute("groups"), n.attribute("epsilon", 1e-5))(first, *(cast(t.node(p), x.dtype) for p in (gamma, beta)))
    y = transpose(y, (0, 2, 3, 1)) if last else y
    return Silu()(y) if n.attribute("activation", 0) else y, total


# --------------------------------------------------------------------------------------------------------------- others
@rule("TorchEmbedding", domain=MICROSOFT)
def torch_embedding(t: Trace, n: OnnxNode, table: Tensor, indices: Tensor) -> Node:
    return Gather(0)(t.node(table), t.node(indices))


@rule("ExpandDims", domain=MICROSOFT)
def expand_dims(t: Trace, n: OnnxNode, x: Tensor, axis: Tensor) -> Node:
    at = int(t.scalar(axis))
    at = at + x.rank + 1 if at < 0 else at
    return reshape(t.node(x), (*x.shape[:at], 1, *x.shape[at:]))


@rule("CDist", domain=MICROSOFT)
def c_dist(t: Trace, n: OnnxNode, a: Tensor, b: Tensor) -> Node:
    x, y = reshape(t.node(a), (a.shape[0], 1, a.shape[1])), reshape(t.node(b), (1, *b.shape))
    distance = ReduceSum((2,))(square(sub(x, y)))
    return sqrt(distance) if n.attribute("metric", "sqeuclidean") == "euclidean" else distance


@rule("RelativePositionBias", domain=MICROSOFT, required=("max_distance",))
def relative_position_bias(t: Trace, n: OnnxNode, table: Tensor, queries: Tensor, keys: Tensor) -> Node:
    """T5's: near distances have a row of the table each, far ones share logarithmically wider rows."""
    rows, columns = int(t.scalar(queries)), int(t.scalar(keys))
    buckets, far, either = table.shape[0], n.attribute("max_distance"), bool(n.attribute("is_bidirectional", 0))
    distance = np.arange(columns)[None] - np.arange(rows)[:, None]
    count = buckets // 2 if either else buckets
    place = np.where(distance > 0, count, 0) if either else np.zeros_like(distance)
    distance = np.abs(distance) if either else np.maximum(-distance, 0)
    near = count // 2
    wide = near + (np.log(np.maximum(distance, 1) / near) / np.log(far / near) * (count - near)).astype(np.int64)
    place = place + np.where(distance < near, distance, np.minimum(wide, count - 1))
    bias = Gather(0)(t.node(table), constant(place))
    return reshape(transpose(bias, (2, 0, 1)), (1, table.shape[1], rows, columns))
