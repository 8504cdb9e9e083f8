"""Quantized operators of ONNX and ONNX Runtime: said in quantize, dequantize and products of integers.

A zero point is taken off before the product, so padding with zeros stays right; scales are joined into one factor for each result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jumar.base import Array, DType, f32, i8, i32, u8
from jumar.frontend.importers.onnx.node import OnnxNode, dtype_of_onnx
from jumar.frontend.importers.onnx.rule import find_rule, rule
from jumar.frontend.importers.onnx.trace import Tensor, Trace
from jumar.frontend.importers.onnx.value import Value
from jumar.ir import Node, constant
from jumar.operators import (
    Add,
    Concat,
    Conv,
    Dequantize,
    LeakyRelu,
    MatMul,
    Mul,
    Quantize,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceSum,
    Round,
    Select,
    Sigmoid,
    Softmax,
    add,
    broadcast_to,
    cast,
    div,
    equal,
    integer_conv,
    integer_matmul,
    maximum,
    minimum,
    mul,
    neg,
    normal_axis,
    reshape,
    select,
    slice_axis,
    sub,
    transpose,
)

MICROSOFT = "com.microsoft"


# ------------------------------------------------------------------------------------------------ quantize, dequantize
@rule("QuantizeLinear")
@rule("QuantizeLinear", domain=MICROSOFT)
def quantize_linear(t: Trace, n: OnnxNode, value: Value, scale: Value, zero: Value) -> Node:
    x, s = t.node(value), t.node(scale)
    asked = n.attribute("output_dtype", 0)
    dtype = dtype_of_onnx(asked) if asked else u8 if zero is None else t.node(zero).dtype
    kind = (
        dtype_of_onnx(n.attribute("precision"))
        if n.attribute("precision", 0)
        else s.dtype
        if s.dtype.bits > 8 and s.dtype.is_float
        else f32
    )
    axis, block = n.attribute("axis", 1), n.attribute("block_size", 0)
    zeros = () if zero is None else (laid_along(t.node(zero), x.shape, axis, block),)
    return Quantize(dtype, bool(n.attribute("saturate", 1)))(cast(x, kind), laid_along(cast(s, kind), x.shape, axis, block), *zeros)


@rule("DequantizeLinear")
@rule("DequantizeLinear", domain=MICROSOFT)
def dequantize_linear(t: Trace, n: OnnxNode, value: Value, scale: Value, zero: Value) -> Node:
    x, s = t.node(value), t.node(scale)
    asked = n.attribute("output_dtype", 0)
    kind = dtype_of_onnx(asked) if asked else s.dtype
    axis, block = n.attribute("axis", 1), n.attribute("block_size", 0)
    zeros = () if zero is None else (laid_along(t.node(zero), x.shape, axis, block),)
    return Dequantize()(x, laid_along(cast(s, kind), x.shape, axis, block), *zeros)


def laid_along(s: Node, shape: tuple[int, ...], axis: int, block: int = 0) -> Node:
    """Scales (or zero points) in a shape that broadcasts to `shape`: one for all, for each index of `axis`, or each block of it."""
    if s.rank == 0 or (s.rank == 1 and s.shape == (1,)):
        return reshape(s, ())
    axis = normal_axis("quantize", axis, len(shape))
    if block and s.rank == len(shape):
        split = reshape(s, (*s.shape[: axis + 1], 1, *s.shape[axis + 1 :]))
        wide = broadcast_to(split, (*s.shape[: axis + 1], block, *s.shape[axis + 1 :]))
        whole = reshape(wide, (*s.shape[:axis], s.shape[axis] * block, *s.shape[axis + 1 :]))
        return slice_axis(whole, axis, 0, shape[axis])
    return s if s.rank > 1 else reshape(s, (*s.shape, *(1,) * (len(shape) - 1 - axis)))


@rule("DynamicQuantizeLinear")
def dynamic_quantize_linear(t: Trace, n: OnnxNode, value: Value) -> tuple[Node, Node, Node]:
    return dynamic_quantize(t.node(value))


def dynamic_quantize(x: Node) -> tuple[Node, Node, Node]:
    """x as u8 over the range that it has (with 0 in it), the scale, and the zero point."""
    least, most = minimum(ReduceMin()(x), 0), maximum(ReduceMax()(x), 0)
    scale = div(sub(most, least), 255)
    scale = select(equal(scale, 0), 1, scale)  # nothing but zeros
    zero = cast(minimum(maximum(Round()(div(neg(least), scale)), 0), 255), u8)
    return Quantize(u8)(x, scale, zero), scale, zero


# ----------------------------------------------------------------------------------------------------------- products
def centered(t: Trace, value: Any, zero: Any, shape: tuple[int, ...] | None = None) -> Node:
    """Codes with their zero point taken off, as i32; the codes themselves where it is known to be 0.   shape: to lay the zero points in."""
    x = t.node(value)
    known = None if zero is None else t.known(zero)
    if zero is None or (known is not None and not known.any()):
        return x
    z = cast(t.node(zero), i32)
    return sub(cast(x, i32), reshape(z, shape if shape and z.type.size > 1 else () if z.type.size == 1 else z.shape))


def as_one_type(a: Node, b: Node) -> tuple[Node, Node]:
    """Both in one element type, for a product: i32 where they differ."""
    return (a, b) if a.dtype == b.dtype else (cast(a, i32), cast(b, i32))


def known_zero(t: Trace, zero: Any) -> Array | None:
    """A zero point that is known, 0 where there is none."""
    return np.zeros((), np.int32) if zero is None else t.known(zero)


def are_codes(*nodes: Node) -> bool:
    """Whether all are of 8 bits."""
    return all(n.dtype in (u8, i8) for n in nodes)


def integer_product(t: Trace, a: Any, b: Any, a_zero: Any, b_zero: Any) -> Node:
    """a @ b without their zero points, as i32.   Zero points: one, one for each row of a, one for each column of b, or of full rank."""
    x, w, w_zero = t.node(a), t.node(b), known_zero(t, b_zero)
    if are_codes(x, w) and w_zero is not None and w_zero.ndim < 2 and w.rank > 1:
        x_zero = known_zero(t, a_zero)
        one = x_zero is not None and x_zero.size == 1
        total = integer_matmul(x, w, int(x_zero.item()) if x_zero is not None and one else 0, w_zero)
        if total is not None and one:
            return total
        if total is not None:
            columns = ReduceSum((w.rank - 2,), keepdims=True)(sub(cast(w, i32), cast(constant(w_zero), i32)))
            zero = t.node(a_zero)
            shape = () if zero.type.size == 1 else _rows(t, a_zero)
            return sub(total, mul(reshape(cast(zero, i32), shape or ()), columns))
    x = centered(t, a, a_zero, _rows(t, a_zero))
    return cast(MatMul()(*as_one_type(x, centered(t, b, b_zero))), i32)


def _rows(t: Trace, value: Any) -> tuple[int, ...] | None:
    """A vector with one number for each row stands upright."""
    return None if value is None else (*t.node(value).shape, 1) if t.node(value).rank == 1 else t.node(value).shape


@rule("MatMulInteger")
def mat_mul_integer(t: Trace, n: OnnxNode, a: Value, b: Value, a_zero: Value, b_zero: Value) -> Node:
    return integer_product(t, a, b, a_zero, b_zero)


def requantized(t: Trace, total: Node, factor: Node, scale: Value, zero: Value) -> Node:
    """Sums times their factor as codes of another scale, with one rounding in between at most."""
    zeros = () if zero is None else (_lone(t.node(zero)),)
    dtype = zeros[0].dtype if zeros else u8
    ratio = div(factor, _lone(cast(t.node(scale), f32)))
    return Quantize(dtype)(mul(cast(total, f32), ratio), constant(np.float32(1), f32), *zeros)


def _lone(x: Node) -> Node:
    return reshape(x, ()) if x.type.size == 1 else x


@rule("QLinearMatMul")
def qlinear_mat_mul(
    t: Trace, n: OnnxNode, a: Tensor, a_scale: Value, a_zero: Value, b: Value, b_scale: Value, b_zero: Value, scale: Value, zero: Value
) -> Node:
    rows = cast(t.node(a_scale), f32)
    rows = _lone(rows) if rows.type.size == 1 or rows.rank != 1 else reshape(rows, (*rows.shape, 1))
    columns = _lone(cast(t.node(b_scale), f32))
    if a.dtype.is_float:  # floats of 8 bits have no integer product
        x, y = (
            Dequantize()(t.node(v), s, *(() if z is None else (_lone(t.node(z)),))) for v, s, z in ((a, rows, a_zero), (b, columns, b_zero))
        )
        return quantized(t, MatMul()(x, y), scale, zero)
    return requantized(t, integer_product(t, a, b, a_zero, b_zero), mul(rows, columns), scale, zero)


def integer_convolution(t: Trace, n: OnnxNode, x: Value, w: Value, x_zero: Value, w_zero: Value) -> Node:
    """The convolution of codes without their zero points, as i32; attributes as those of Conv."""
    kernel, image = t.node(w), t.node(x)
    conv = find_rule("Conv")
    assert conv is not None, "Conv has a rule"
    zero = known_zero(t, w_zero)
    if are_codes(image, kernel) and kernel.array is not None and zero is not None:
        plain: Node = conv.function(t, n, image, kernel, None)
        op = plain.op
        moved = known_zero(t, x_zero)
        if isinstance(op, Conv) and plain.inputs == (image, kernel):
            total = integer_conv(op, image, kernel, int(moved.item()) if moved is not None else 0, zero)
            if total is not None and moved is not None:
                return total
            if total is not None:
                weight = constant(kernel.array.astype(np.int32) - zero.reshape(-1, *(1,) * (kernel.rank - 1)).astype(np.int32))
                ones = constant(np.ones((1, *image.shape[1:]), np.int32))  # each window's weights, without those on padding
                return sub(total, mul(cast(_lone(t.node(x_zero)), i32), op(ones, weight)))
    a, b = as_one_type(centered(t, x, x_zero), centered(t, w, w_zero, (kernel.shape[0], *(1,) * (kernel.rank - 1))))
    result: Node = conv.function(t, n, a, b, None)
    return cast(result, i32)


@rule("ConvInteger")
def conv_integer(t: Trace, n: OnnxNode, x: Value, w: Value, x_zero: Value, w_zero: Value) -> Node:
    return integer_convolution(t, n, x, w, x_zero, w_zero)


@rule("QLinearConv")
def qlinear_conv(
    t: Trace,
    n: OnnxNode,
    x: Value,
    x_scale: Value,
    x_zero: Value,
    w: Value,
    w_scale: Value,
    w_zero: Value,
    scale: Value,
    zero: Value,
    bias: Value,
) -> Node:
    total = integer_convolution(t, n, x, w, x_zero, w_zero)
    per_channel = (-1, *(1,) * (total.rank - 2))
    if bias is not None:
        b = t.node(bias)
        total = add(total, reshape(b, (b.shape[0], *per_channel[1:])))
    ws = _lone(cast(t.node(w_scale), f32))
    ws = reshape(ws, (ws.shape[0], *per_channel[1:])) if ws.rank == 1 else ws
    return requantized(t, total, mul(_lone(t.node(x_scale)), ws), scale, zero)


# ------------------------------------------------------------------------------------------ ONNX Runtime's own operators
@rule("QLinearConv", domain=MICROSOFT)
def qlinear_conv_of_onnx_runtime(t: Trace, n: OnnxNode, x: Value, *others: Value) -> Node:
    """The standard's, but that with channels_last x and y are [n, *spatial, c]; the filters never are."""
    given = [*others, *[None] * (8 - len(others))]
    if not n.attribute("channels_last", 0):
        result: Node = qlinear_conv(t, n, x, *given)
        return result
    image = t.node(x)
    last = image.rank - 1
    y = qlinear_conv(t, n, transpose(image, (0, last, *range(1, last))), *given)
    return transpose(y, (0, *range(2, last + 1), 1))


def dequantized(t: Trace, value: Value, scale: Value, zero: Value) -> Node:
    """The numbers that codes stand for, one scale for all."""
    zeros = () if zero is None else (_lone(t.node(zero)),)
    return Dequantize()(t.node(value), _lone(t.node(scale)), *zeros)


def quantized(t: Trace, x: Node, scale: Value, zero: Value, default: DType = u8) -> Node:
    """Numbers as codes, one scale for all."""
    zeros = () if zero is None else (_lone(t.node(zero)),)
    return Quantize(zeros[0].dtype if zeros else default)(x, cast(_lone(t.node(scale)), x.dtype), *zeros)


def _qlinear_pair(op: Add | Mul) -> Callable[..., Node]:
    def two(
        t: Trace, n: OnnxNode, a: Tensor, a_scale: Value, a_zero: Value, b: Value, b_scale: Value, b_zero: Value, scale: Value, zero: Value
    ) -> Node:
        return quantized(t, op(dequantized(t, a, a_scale, a_zero), dequantized(t, b, b_scale, b_zero)), scale, zero, a.dtype)

    return two


rule("QLinearAdd", domain=MICROSOFT)(_qlinear_pair(Add()))
rule("QLinearMul", domain=MICROSOFT)(_qlinear_pair(Mul()))


def _qlinear(name: str, meaning: Callable[[Trace, OnnxNode, Node], Node], *required: str) -> None:
    """A rule for an operator on numbers that stand behind codes."""

    def one(t: Trace, n: OnnxNode, x: Tensor, x_scale: Value, x_zero: Value, scale: Value, zero: Value) -> Node:
        return quantized(t, meaning(t, n, dequantized(t, x, x_scale, x_zero)), scale, zero, x.dtype)

    rule(name, domain=MICROSOFT, required=required)(one)


def _average(t: Trace, n: OnnxNode, x: Node) -> Node:
    last = bool(n.attribute("channels_last", 0))
    return ReduceMean(tuple(range(1, x.rank - 1)) if last else tuple(range(2, x.rank)), keepdims=True)(x)


def _average_pool(t: Trace, n: OnnxNode, x: Node) -> Node:
    pool = find_rule("AveragePool")
    assert pool is not None, "AveragePool has a rule"
    if not n.attribute("channels_last", 0):
        result: Node = pool.function(t, n, x)
        return result
    first: Node = pool.function(t, n, transpose(x, (0, x.rank - 1, *range(1, x.rank - 1))))
    return transpose(first, (0, *range(2, x.rank), 1))


def _softmax(t: Trace, n: OnnxNode, x: Node) -> Node:
    axis = normal_axis("softmax", n.attribute("axis", -1), x.rank)
    if n.attribute("opset", 13) >= 13:
        return Softmax(axis)(x)
    rows = 1
    for d in x.shape[:axis]:
        rows *= d
    return reshape(Softmax(1)(reshape(x, (rows, x.type.size // max(rows, 1)))), x.shape)


def _mean(t: Trace, n: OnnxNode, x: Node) -> Node:
    axes = n.attribute("axes", ()) or tuple(range(x.rank))
    return ReduceMean(tuple(axes), keepdims=bool(n.attribute("keepdims", 1)))(x)


_qlinear("QLinearReduceMean", _mean)
_qlinear("QLinearSigmoid", lambda t, n, x: Sigmoid()(x))
_qlinear("QLinearLeakyRelu", lambda t, n, x: LeakyRelu(n.attribute("alpha", 0.01))(x))
_qlinear("QLinearGlobalAveragePool", _average)
_qlinear("QLinearAveragePool", _average_pool, "kernel_shape")
_qlinear("QLinearSoftmax", _softmax)


@rule("QLinearConcat", domain=MICROSOFT, required=("axis",))
def qlinear_concat(t: Trace, n: OnnxNode, scale: Value, zero: Value, *triples: Value) -> Node:
    parts = [dequantized(t, *triples[i : i + 3]) for i in range(0, len(triples), 3)]
    return quantized(t, Concat(n.attribute("axis"))(*parts), scale, zero)


@rule("QLinearWhere", domain=MICROSOFT)
def qlinear_where(
    t: Trace,
    n: OnnxNode,
    condition: Value,
    x: Value,
    x_scale: Value,
    x_zero: Value,
    y: Value,
    y_scale: Value,
    y_zero: Value,
    scale: Value,
    zero: Value,
) -> Node:
    return quantized(t, Select()(t.node(condition), dequantized(t, x, x_scale, x_zero), dequantized(t, y, y_scale, y_zero)), scale, zero)


@rule("QGemm", domain=MICROSOFT)
def qgemm(
    t: Trace,
    n: OnnxNode,
    a: Value,
    a_scale: Value,
    a_zero: Value,
    b: Value,
    b_scale: Value,
    b_zero: Value,
    c: Value,
    scale: Value,
    zero: Value,
) -> Node:
    """alpha * a @ b + c; the bias c has the scale of the product.   Without a scale of its own the result is of floats."""
    x, y = t.node(a), t.node(b)
    x = transpose(x, (1, 0)) if n.attribute("transA", 0) else x
    y = transpose(y, (1, 0)) if n.attribute("transB", 0) else y
    total = integer_product(t, x, y, a_zero, b_zero)
    factor = mul(mul(_lone(t.node(a_scale)), _lone(t.node(b_scale))), n.attribute("alpha", 1.0))
    total = total if c is None else add(total, t.node(c))
    return mul(cast(total, f32), factor) if scale is None else requantized(t, total, factor, scale, zero)


@rule("MatMulIntegerToFloat", domain=MICROSOFT)
def mat_mul_integer_to_float(
    t: Trace, n: OnnxNode, a: Value, b: Value, a_scale: Value, b_scale: Value, a_zero: Value, b_zero: Value, bias: Value
) -> Node:
    total = integer_product(t, a, b, a_zero, b_zero)
    scale = t.node(a_scale)
    rows = reshape(scale, (*scale.shape, 1)) if scale.rank == 1 and scale.type.size > 1 else _lone(scale)
    y = mul(cast(total, scale.dtype), mul(rows, _lone(t.node(b_scale))))
    return y if bias is None else add(y, t.node(bias))


@rule("DynamicQuantizeMatMul", domain=MICROSOFT)
def dynamic_quantize_mat_mul(t: Trace, n: OnnxNode, a: Value, b: Value, b_scale: Value, b_zero: Value, bias: Value) -> Node:
    codes, scale, zero = dynamic_quantize(t.node(a))
    y = mul(cast(integer_product(t, codes, b, zero, b_zero), f32), mul(scale, _lone(t.node(b_scale))))
    return y if bias is None else add(y, t.node(bias))
