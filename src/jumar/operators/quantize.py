"""Quantization: between numbers and narrow codes, code = number / scale + zero point.

In: tensors with scales and zero points that broadcast to them as in NumPy; the importer brings a scale for each channel or block
into that shape.  Out: elementwise definitions.  Whatever else is quantized (convolutions, products) is said at import in these two and
contractions of integers.
"""
# mypy: disable-error-code="override, no-any-return"

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from jumar.base import Array, DType, OpError, TensorType, dtype_of, f8e4m3fn, f16, f32, i4, i8, i16, i32, u4, u8
from jumar.ir import Node, Result, constant, f32t, sample, tensor
from jumar.kernel import Builder, Value
from jumar.operators.contraction import Conv, MatMul
from jumar.operators.elementwise import cast, convert, mul, sub
from jumar.operators.families import Elementwise, broadcast, wide
from jumar.operators.reduction import ReduceSum


def one(value: float, dtype: DType) -> Array:
    """One number as an array, for samples."""
    return np.array(value).astype(dtype.numpy)


class Quantize(Elementwise):
    """x / scale, rounded (halves to even), plus the zero point if there is one, held within `dtype`; floats of 8 bits are rounded to.

    saturate: as in `Cast`.
    """

    dtype: DType
    saturate: bool = True
    signature = "x[...], scale[...], zero_point[...]? -> y[...]"
    samples = (
        sample(f32t(2, 5), one(0.02, f32), one(128, u8), dtype=u8),
        sample(f32t(3, 4), np.array([[0.1], [0.02], [0.5]], np.float32), np.array([[1], [-3], [0]], np.int8), dtype=i8),
        sample(np.array([0.5, 1.5, 2.5, -0.5, 1e9, -1e9], np.float32), one(1, f32), dtype=i8),
        sample(f32t(0), one(1, f32), one(7, i16), dtype=i16),
        sample(tensor(f16, 9), one(0.25, f16), one(3, u8), dtype=u8),
        sample(f32t(4), one(0.5, f32), dtype=i4),
        sample(f32t(4), one(0.001, f32), dtype=f8e4m3fn),
    )
    cann = "aclnnAscendQuant"

    def infer(self, *types: TensorType) -> Result:
        self.check_same_dtype(types)
        return TensorType(broadcast(self.name, *(t.shape for t in types)), self.dtype)

    def check_same_dtype(self, types: Sequence[TensorType]) -> None:
        x, scale, *zero = types
        if not x.dtype.is_float or x.dtype != scale.dtype or any(z.dtype != self.dtype for z in zero):
            raise OpError(
                f"quantize: x and scale must be of one float type and zero_point {self.dtype}, got {', '.join(map(str, types))}",
                code="dtype-mismatch",
            )

    def reference(self, x: Array, scale: Array, *zero: Array) -> Array:
        y = wide(x) / wide(scale)
        if self.dtype.is_float:
            return convert(y + wide(zero[0]) if zero else y, self.dtype, saturate=self.saturate)
        y = np.rint(y).astype(np.float64) + (zero[0].astype(np.float64) if zero else 0)
        low, high = bounds(self.dtype)
        return convert(np.nan_to_num(np.clip(y, low, high)).astype(np.int64), self.dtype)

    def compute(self, k: Builder, x: Value, scale: Value, *zero: Value) -> Value:
        y = x if scale.constant == 1 else x / scale
        code = zero[0].constant if zero else 0
        if self.dtype in (u8, i8) and y.dtype is f32 and isinstance(code, int):
            return self._by_adding(k, y, code)
        y = k.round_even(y)
        if zero:
            y = y + k.convert(zero[0], y.dtype)
        low, high = bounds(self.dtype)
        y = k.clamp(y, float(low), float(high))
        return k.convert(k.select(k.is_nan(y), 0.0, y), self.dtype)

    def _by_adding(self, k: Builder, y: Value, zero: int) -> Value:
        """8-bit codes in few instructions: a number held within the codes, plus 1.5 * 2^23, has the rounded one in its lowest bits."""
        low, high = bounds(self.dtype)
        held = k.fmin(k.fmax(y, float(low - zero)), float(high - zero))
        if self.dtype is i8:  # NaN is code 0; of u8 it is the lower bound already
            held = k.select(k.is_nan(y), float(-zero), held)
        return k.convert(k.bitcast(held + (12582912.0 + zero), i32), self.dtype)

    def grad(self, *nodes: Node) -> tuple[None, ...]:
        """Codes are steps: no gradient flows."""
        return (None,) * (len(nodes) - 2)


class Dequantize(Elementwise):
    """(x - zero point) * scale, in the element type of the scale."""

    signature = "x[...], scale[...], zero_point[...]? -> y[...]"
    samples = (
        sample(tensor(u8, 2, 5), one(0.02, f32), one(128, u8)),
        sample(tensor(i8, 3, 4), np.array([[0.1], [0.02], [0.5]], np.float32), np.array([[1], [-3], [0]], np.int8)),
        sample(tensor(i32, 6), one(0.5, f32)),
        sample(tensor(i16, 0), one(1, f32), one(7, i16)),
        sample(tensor(u8, 9), one(0.25, f16), one(3, u8)),
        sample(tensor(u4, 4), one(0.5, f32)),
        sample(tensor(f8e4m3fn, 4), one(3, f32)),
    )
    cann = "aclnnAscendAntiQuant"

    def infer(self, *types: TensorType) -> Result:
        x, scale, *zero = types
        if not scale.dtype.is_float or any(z.dtype != x.dtype for z in zero):
            raise OpError(
                f"dequantize: scale must be of floats and zero_point {x.dtype}, got {', '.join(map(str, types))}", code="dtype-mismatch"
            )
        return TensorType(broadcast(self.name, *(t.shape for t in types)), scale.dtype)

    def reference(self, x: Array, scale: Array, *zero: Array) -> Array:
        code = wide(x) if dtype_of(x.dtype).is_float else x.astype(np.int64)
        if zero:
            code = code - zero[0].astype(code.dtype)
        return code.astype(wide(scale).dtype) * wide(scale)

    def compute(self, k: Builder, x: Value, scale: Value, *zero: Value) -> Value:
        code = k.convert(x, f32 if x.dtype.is_float else i32)
        if zero:
            code = code - k.convert(zero[0], code.dtype)
        return k.convert(code, scale.dtype) * scale

    def grad(self, *nodes: Node) -> tuple[Node | None, ...]:
        x, scale, *zero, _, dy = nodes
        code = cast(x, dy.dtype)
        dx = cast(mul(dy, scale), x.dtype) if x.dtype.is_float else None
        return dx, mul(dy, sub(code, cast(zero[0], dy.dtype)) if zero else code), *(None for _ in zero)


class Lookup(Elementwise):
    """table[x]: any function of 8-bit codes, as 256 codes of `dtype` in the order of x's bits (0 .. 127, then -128 .. -1 for i8)."""

    dtype: DType
    table: tuple[int, ...]
    signature = "x[...] -> y[...]"
    samples = (
        sample(tensor(u8, 3, 70), dtype=u8, table=tuple((i * i) % 256 for i in range(256))),
        sample(tensor(i8, 2, 130), dtype=i8, table=tuple((i * 7 + 3) % 256 - 128 for i in range(256))),
        sample(tensor(u8, 5), dtype=i8, table=tuple(i - 128 for i in range(256))),
    )
    cann = ""

    def infer(self, *types: TensorType) -> Result:
        if types[0].dtype not in (u8, i8) or self.dtype not in (u8, i8) or len(self.table) != 256:
            raise OpError(f"lookup: x must be of 8-bit codes and table of 256, got {types[0]} and {len(self.table)}", code="dtype-mismatch")
        return types[0].with_dtype(self.dtype)

    def reference(self, x: Array) -> Array:
        return np.array(self.table, np.int16).astype(self.dtype.numpy)[x.view(np.uint8)]

    def compute(self, k: Builder, x: Value) -> Value:
        return k.lookup(x, self.table, self.dtype)

    def grad(self, *nodes: Node) -> tuple[None, ...]:
        """Codes are steps: no gradient flows."""
        return (None,)


# ------------------------------------------------------------------------------------------------- products of codes
def integer_matmul(x: Node, w: Node, x_zero: int, w_zero: Array) -> Node | None:
    """The i32 product of 8-bit codes less their zero codes.   w_zero: one, or one for each column; None where w's must be known and are not."""
    split = _signed(w, w_zero.reshape(-1) if w.rank > 1 else w_zero)
    if split is None:
        return None
    codes, rest = split
    total = MatMul(x_zero)(x, codes)
    if not rest.any():
        return total
    sums = ReduceSum((x.rank - 1,), keepdims=w.rank > 1)(sub(cast(x, i32), x_zero))
    return sub(total, mul(sums, constant(rest.astype(np.int32), i32)))


def integer_conv(op: Conv, x: Node, w: Node, x_zero: int, w_zero: Array) -> Node | None:
    """The i32 convolution of 8-bit codes less their zero codes, without a bias.   w_zero: one, or one for each filter."""
    if w.array is not None and w.shape[1] == 1 and op.groups == w.shape[0]:  # depthwise kernels have 32-bit filters
        zero = w_zero.reshape(-1, *(1,) * (w.rank - 1)) if w_zero.size > 1 else w_zero
        return replace(op, x_zero=x_zero)(x, constant(w.array.astype(np.int16) - zero.astype(np.int16), i16, loc=w.loc))
    split = _signed(w, w_zero.reshape(-1, *(1,) * (w.rank - 1)) if w_zero.size > 1 else w_zero)
    if split is None:
        return None
    codes, rest = split
    whole = replace(op, x_zero=x_zero)
    total = whole(x, codes)
    if not rest.any():
        return total
    if op.groups > 1:  # filters of nothing but their zero codes
        return sub(total, whole(x, constant(np.broadcast_to(rest, w.shape).astype(np.int8), i8)))
    sums = whole(x, constant(np.ones((1, *w.shape[1:]), np.int8), i8))  # of each window
    return sub(total, mul(sums, constant(rest.astype(np.int32).reshape(-1, *(1,) * (w.rank - 2)), i32)))


def _signed(w: Node, zero: Array) -> tuple[Node, Array] | None:
    """i8 codes and what is to be taken off them for w less its zero codes: nothing, where that fits 8 bits.   zero: broadcasts to w."""
    zero = zero.astype(np.int32)
    if w.array is not None:
        centered = w.array.astype(np.int32) - zero
        if centered.min(initial=0) >= -128 and centered.max(initial=0) <= 127:
            return constant(centered.astype(np.int8), i8, loc=w.loc), np.zeros((), np.int32)
        return (w, zero) if w.dtype is i8 else (constant((w.array.astype(np.int32) - 128).astype(np.int8), i8, loc=w.loc), zero - 128)
    if w.dtype is i8:
        return w, zero
    op = w.op
    if isinstance(op, Quantize) and len(w.inputs) == 3 and w.inputs[2].array is not None:
        moved = w.inputs[2].array.astype(np.int32) - 128
        return Quantize(i8)(*w.inputs[:2], constant(moved.astype(np.int8), i8), loc=w.loc), zero - 128
    return cast(sub(cast(w, i32), 128), i8), zero - 128


def bounds(dtype: DType) -> tuple[int, int]:
    """The least and the greatest number of an integer type.

    >>> bounds(i4)
    (-8, 7)
    """
    return (-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1) if dtype.kind == "i" else (0, (1 << dtype.bits) - 1)
