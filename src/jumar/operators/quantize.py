"""Quantization: between numbers and narrow codes, code = number / scale + zero point.

In: tensors with scales and zero points that broadcast to them as in NumPy; the importer brings a scale for each channel or block
into that shape.  Out: elementwise definitions.  Whatever else is quantized (convolutions, products) is said at import in these two and
contractions of integers.
"""
# mypy: disable-error-code="override, no-any-return"

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jumar.base import Array, DType, OpError, TensorType, dtype_of, f8e4m3fn, f16, f32, i4, i8, i16, i32, u4, u8
from jumar.ir import Node, Result, f32t, sample, tensor
from jumar.kernel import Builder, Value
from jumar.operators.elementwise import cast, convert, mul, sub
from jumar.operators.families import Elementwise, broadcast, wide


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
        y = k.round_even(x / scale)
        if zero:
            y = y + k.convert(zero[0], y.dtype)
        low, high = bounds(self.dtype)
        y = k.clamp(y, float(low), float(high))
        return k.convert(k.select(k.is_nan(y), 0.0, y), self.dtype)

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


def bounds(dtype: DType) -> tuple[int, int]:
    """The least and the greatest number of an integer type.

    >>> bounds(i4)
    (-8, 7)
    """
    return (-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1) if dtype.kind == "i" else (0, (1 << dtype.bits) - 1)
