"""Elementwise operators: arithmetic, mathematics, logic, comparison, bits, choice and conversion, one result per element.

In: nodes that broadcast as in NumPy.  Out: definitions that fuse into any neighbour; `compute` is what a kernel does on registers.
Below the classes stand the functions of the same names (`add`, `exp`, `select` ...): they take nodes and plain numbers, for writing
gradients, decompositions and importer rules as formulas.
"""
# mypy: disable-error-code="override, no-any-return"

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import ml_dtypes
import numpy as np

from jumar.base import Array, DType, OpError, TensorType, bf16, bool_, dtype_of, f8e4m3fn, f8e5m2, f16, f32, f64, i4, i8, i32, i64, u8, u16
from jumar.ir import Node, Result, Sample, constant, f32t, sample, tensor
from jumar.kernel import Builder, Value
from jumar.kernel import math as kmath
from jumar.operators.families import Elementwise, wide

Grads = tuple[Node | None, ...]


def floats(low: float = -2.0, high: float = 2.0) -> tuple[Sample, ...]:
    """Samples of one input: each float type, a scalar, nothing at all."""
    types = (f32t(2, 5), f32t(), f32t(0, 3), tensor(f16, 9), tensor(bf16, 2, 3), tensor(f64, 4))
    return tuple(sample(t, low=low, high=high) for t in types)


INTEGERS = (sample(tensor(i32, 3, 4)), sample(tensor(i8, 5)), sample(tensor(u8, 5)), sample(tensor(i64)))
FLOAT_PAIRS = (
    sample(f32t(2, 5), f32t(5)),
    sample(f32t(2, 1), f32t(1, 3)),
    sample(f32t(), f32t(0, 2)),
    sample(tensor(f16, 9), tensor(f16, 9)),
    sample(tensor(bf16, 2, 3), tensor(bf16, 1)),
    sample(tensor(f64, 4), tensor(f64, 1, 4)),
)
INTEGER_PAIRS = (
    sample(tensor(i32, 3, 4), tensor(i32, 4)),
    sample(tensor(u8, 5), tensor(u8, 5)),
    sample(tensor(i8, 40), tensor(i8, 1)),
    sample(tensor(i64, 2, 1), tensor(i64, 3)),
)
BOOL_PAIRS = (sample(tensor(bool_, 2, 5), tensor(bool_, 5)), sample(tensor(bool_), tensor(bool_, 3)))
SPECIAL = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -1.5, 2.5, 3e38, -1e-30], np.float32
)  # no denormals: kernels flush them to zero


class Unary(Elementwise):
    """One input.   numpy: the function that is the reference, on floats of at least 32 bits."""

    abstract = True
    signature = "x[...] -> y[...]"
    samples: ClassVar[Sequence[Sample]] = floats()
    numpy: ClassVar[Any] = None

    def reference(self, x: Array) -> Array:
        result: Array = self.numpy(wide(x))
        return result


class Step(Unary):
    """A function of one input whose slope is zero wherever it has one: no gradient flows through it."""

    abstract = True

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (None,)


class Binary(Elementwise):
    """Two inputs of one element type.   numpy: the function that is the reference, on floats of at least 32 bits."""

    abstract = True
    signature = "a[...], b[...] -> y[...]"
    samples: ClassVar[Sequence[Sample]] = FLOAT_PAIRS
    numpy: ClassVar[Any] = None

    def reference(self, a: Array, b: Array) -> Array:
        result: Array = self.numpy(wide(a), wide(b))
        return result


# ---------------------------------------------------------------------------------------------------------- one input
class Identity(Unary):
    """x itself."""

    samples = (*floats(), sample(tensor(bool_, 3)))
    numpy = np.asarray

    def compute(self, k: Builder, x: Value) -> Value:
        return x

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (dy,)


class StopGradient(Step):
    """x itself, through which no gradient flows."""

    samples = (*floats(), sample(tensor(bool_, 3)))
    numpy = np.asarray

    def compute(self, k: Builder, x: Value) -> Value:
        return x


class Neg(Unary):
    """-x; integers wrap."""

    samples = (*floats(), *INTEGERS)
    numpy = np.negative
    cann = "aclnnNeg"

    def compute(self, k: Builder, x: Value) -> Value:
        return -x

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (neg(dy),)


class Abs(Unary):
    """|x|; the smallest integer stays itself."""

    samples = (*floats(), *INTEGERS, sample(np.array([-128, 127, -1], np.int8)))
    numpy = np.abs
    cann = "aclnnAbs"

    def compute(self, k: Builder, x: Value) -> Value:
        return k.abs(x) if x.dtype.is_float else k.select(x < 0, -x, x)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (mul(dy, sign(x)),)


class Sign(Step):
    """-1, 0 or 1; NaN stays NaN."""

    samples = (*floats(), *INTEGERS, sample(SPECIAL))
    numpy = np.sign
    cann = "aclnnSign"

    def compute(self, k: Builder, x: Value) -> Value:
        return k.select(x > 0, 1, x if x.dtype.kind == "u" else k.select(x < 0, -1, x))


class Square(Unary):
    """x * x."""

    samples = (*floats(), *INTEGERS)
    numpy = np.square
    cann = "aclnnSquare"

    def compute(self, k: Builder, x: Value) -> Value:
        return x * x

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (mul(dy, mul(x, 2)),)


class Sqrt(Unary):
    """Square root; NaN below zero."""

    samples = floats(0, 4)
    numpy = np.sqrt
    cann = "aclnnSqrt"

    def compute(self, k: Builder, x: Value) -> Value:
        return k.sqrt(x)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (div(dy, mul(y, 2)),)


class Rsqrt(Unary):
    """1 / sqrt(x)."""

    samples = floats(0.25, 4)
    cann = "aclnnRsqrt"

    def reference(self, x: Array) -> Array:
        return 1 / np.sqrt(wide(x))

    def compute(self, k: Builder, x: Value) -> Value:
        return 1 / k.sqrt(x)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (mul(dy, div(mul(y, -0.5), x)),)


class Reciprocal(Unary):
    """1 / x."""

    samples = floats(0.5, 4)
    numpy = np.reciprocal
    cann = "aclnnReciprocal"

    def compute(self, k: Builder, x: Value) -> Value:
        return 1 / x

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (neg(mul(dy, square(y))),)


class Exp(Unary):
    """e to the power of x."""

    numpy = np.exp
    cann = "aclnnExp"

    def compute(self, k: Builder, x: Value) -> Value:
        return kmath.exp(k, x)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (mul(dy, y),)


class Expm1(Unary):
    """exp(x) - 1, exact near zero."""

    numpy = np.expm1
    cann = "aclnnExpm1"

    def compute(self, k: Builder, x: Value) -> Value:
        return kmath.expm1(k, x)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (mul(dy, add(y, 1)),)


class Log(Unary):
    """Natural logarithm; NaN below zero, -inf at zero."""

    samples = floats(0.25, 4)
    numpy = np.log
    cann = "aclnnLog"

    def compute(self, k: Builder, x: Value) -> Value:
        return kmath.log(k, x)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (div(dy, x),)


class Log1p(Unary):
    """log(1 + x), exact near zero."""

    samples = floats(-0.5, 4)
    numpy = np.log1p
    cann = "aclnnLog1p"

    def compute(self, k: Builder, x: Value) -> Value:
        return kmath.log1p(k, x)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (div(dy, add(x, 1)),)


class Sin(Unary):
    """Sine."""

    numpy = np.sin
    cann = "aclnnSin"

    def compute(self, k: Builder, x: Value) -> Value:
        return kmath.sin(k, x)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (mul(dy, cos(x)),)


class Cos(Unary):
    """Cosine."""

    numpy = np.cos
    cann = "aclnnCos"

    def compute(self, k: Builder, x: Value) -> Value:
        return kmath.cos(k, x)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (neg(mul(dy, sin(x))),)


class Tan(Unary):
    """Tangent."""

    samples = floats(-1, 1)
    numpy = np.tan
    cann = "aclnnTan"

    def compute(self, k: Builder, x: Value) -> Value:
        return kmath.tan(k, x)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (mul(dy, add(square(y), 1)),)


class Asin(Unary):
    """Inverse sine, on -1 .. 1."""

    samples = floats(-0.9, 0.9)
    numpy = np.arcsin
    cann = "aclnnAsin"

    def compute(self, k: Builder, x: Value) -> Value:
        return kmath.asin(k, x)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (div(dy, sqrt(sub(1, square(x)))),)


class Acos(Unary):
    """Inverse cosine, on -1 .. 1."""

    samples = floats(-0.9, 0.9)
    numpy = np.arccos
    cann = "aclnnAcos"

    def compute(self, k: Builder, x: Value) -> Value:
        return kmath.acos(k, x)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (neg(div(dy, sqrt(sub(1, square(x))))),)


class Atan(Unary):
    """Inverse tangent."""

    numpy = np.arctan
    cann = "aclnnAtan"

    def compute(self, k: Builder, x: Value) -> Value:
        return kmath.atan(k, x)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (div(dy, add(square(x), 1)),)


class Sinh(Unary):
    """Hyperbolic sine."""

    numpy = np.sinh
    cann = "aclnnSinh"

    def compute(self, k: Builder, x: Value) -> Value:
        return kmath.sinh(k, x)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (mul(dy, cosh(x)),)


class Cosh(Unary):
    """Hyperbolic cosine."""

    numpy = np.cosh
    cann = "aclnnCosh"

    def compute(self, k: Builder, x: Value) -> Value:
        return kmath.cosh(k, x)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (mul(dy, sinh(x)),)


class Tanh(Unary):
    """Hyperbolic tangent."""

    numpy = np.tanh
    cann = "aclnnTanh"

    def compute(self, k: Builder, x: Value) -> Value:
        return kmath.tanh(k, x)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (mul(dy, sub(1, square(y))),)


class Asinh(Unary):
    """Inverse hyperbolic sine."""

    numpy = np.arcsinh
    cann = "aclnnAsinh"

    def compute(self, k: Builder, x: Value) -> Value:
        return kmath.asinh(k, x)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (div(dy, sqrt(add(square(x), 1))),)


class Acosh(Unary):
    """Inverse hyperbolic cosine, from 1 upwards."""

    samples = floats(1.25, 4)
    numpy = np.arccosh
    cann = "aclnnAcosh"

    def compute(self, k: Builder, x: Value) -> Value:
        return kmath.acosh(k, x)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (div(dy, sqrt(sub(square(x), 1))),)


class Atanh(Unary):
    """Inverse hyperbolic tangent, on -1 .. 1."""

    samples = floats(-0.9, 0.9)
    numpy = np.arctanh
    cann = "aclnnAtanh"

    def compute(self, k: Builder, x: Value) -> Value:
        return kmath.atanh(k, x)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (div(dy, sub(1, square(x))),)


class Sigmoid(Unary):
    """1 / (1 + exp(-x))."""

    cann = "aclnnSigmoid"

    def reference(self, x: Array) -> Array:
        x = wide(x)
        e = np.exp(-np.abs(x))  # never overflows
        return np.where(x < 0, e, np.ones_like(x)) / (1 + e)

    def compute(self, k: Builder, x: Value) -> Value:
        return kmath.sigmoid(k, x)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (mul(dy, mul(y, sub(1, y))),)


class Erf(Unary):
    """The error function."""

    cann = "aclnnErf"

    def reference(self, x: Array) -> Array:
        x = wide(x)
        return np.asarray(np.frompyfunc(math.erf, 1, 1)(x)).astype(x.dtype)

    def compute(self, k: Builder, x: Value) -> Value:
        return kmath.erf(k, x)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (mul(dy, mul(exp(neg(square(x))), 2 / math.sqrt(math.pi))),)


class Relu(Unary):
    """max(x, 0); NaN stays NaN."""

    samples = (*floats(), *INTEGERS, sample(SPECIAL))
    cann = "aclnnRelu"

    def reference(self, x: Array) -> Array:
        return np.maximum(x, np.zeros((), x.dtype))

    def compute(self, k: Builder, x: Value) -> Value:
        return k.maximum(x, 0)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (select(greater(y, 0), dy, 0),)


class Floor(Step):
    """The greatest integer not above x."""

    samples = (*floats(), sample(SPECIAL))
    numpy = np.floor
    cann = "aclnnFloor"

    def compute(self, k: Builder, x: Value) -> Value:
        return k.floor(x)


class Ceil(Step):
    """The least integer not below x."""

    samples = (*floats(), sample(SPECIAL))
    numpy = np.ceil
    cann = "aclnnCeil"

    def compute(self, k: Builder, x: Value) -> Value:
        return k.ceil(x)


class Round(Step):
    """The nearest integer, halves to the even one."""

    samples = (*floats(), sample(SPECIAL))
    numpy = np.rint
    cann = "aclnnRound"

    def compute(self, k: Builder, x: Value) -> Value:
        return k.round_even(x)


class Trunc(Step):
    """The integer part."""

    samples = (*floats(), sample(SPECIAL))
    numpy = np.trunc
    cann = "aclnnTrunc"

    def compute(self, k: Builder, x: Value) -> Value:
        return k.trunc(x)


class IsNan(Unary):
    """True where x is not a number."""

    result = bool_
    samples = (*floats(), sample(SPECIAL))
    numpy = np.isnan

    def compute(self, k: Builder, x: Value) -> Value:
        return k.is_nan(x)


class IsInf(Unary):
    """True where x is infinite, of the signs asked for."""

    positive: bool = True
    negative: bool = True
    result = bool_
    samples = (sample(SPECIAL), sample(SPECIAL, positive=False), sample(SPECIAL[:8].astype(np.float16), negative=False))
    cann = "aclnnIsInf"

    def reference(self, x: Array) -> Array:
        x = wide(x)
        return np.logical_or(self.positive & (x == np.inf), self.negative & (x == -np.inf))

    def compute(self, k: Builder, x: Value) -> Value:
        positive = x == math.inf if self.positive else k.const(False, bool_, x.lanes)
        return k.logical_or(positive, x == -math.inf) if self.negative else positive


class Not(Unary):
    """Logical not."""

    samples = (sample(tensor(bool_, 2, 5)), sample(tensor(bool_)))
    numpy = np.logical_not
    cann = "aclnnLogicalNot"

    def compute(self, k: Builder, x: Value) -> Value:
        return k.logical_not(x)


class BitwiseNot(Unary):
    """All bits flipped."""

    samples = INTEGERS
    numpy = np.bitwise_not
    cann = "aclnnBitwiseNot"

    def compute(self, k: Builder, x: Value) -> Value:
        return ~x


# --------------------------------------------------------------------------------------------------------- two inputs
class Add(Binary):
    """a + b; integers wrap."""

    samples = (*FLOAT_PAIRS, *INTEGER_PAIRS)
    numpy = np.add
    cann = "aclnnAdd"

    def compute(self, k: Builder, a: Value, b: Value) -> Value:
        return a + b

    def grad(self, a: Node, b: Node, y: Node, dy: Node) -> Grads:
        return dy, dy


class Sub(Binary):
    """a - b; integers wrap."""

    samples = (*FLOAT_PAIRS, *INTEGER_PAIRS)
    numpy = np.subtract
    cann = "aclnnSub"

    def compute(self, k: Builder, a: Value, b: Value) -> Value:
        return a - b

    def grad(self, a: Node, b: Node, y: Node, dy: Node) -> Grads:
        return dy, neg(dy)


class Mul(Binary):
    """a * b; integers wrap."""

    samples = (*FLOAT_PAIRS, *INTEGER_PAIRS)
    numpy = np.multiply
    cann = "aclnnMul"

    def compute(self, k: Builder, a: Value, b: Value) -> Value:
        return a * b

    def grad(self, a: Node, b: Node, y: Node, dy: Node) -> Grads:
        return mul(dy, b), mul(dy, a)


class Div(Binary):
    """a / b; integers truncate toward zero, and give 0 for a divisor of 0."""

    samples = (
        sample(f32t(2, 5), f32t(5), low=0.5, high=2),
        sample(tensor(f16, 9), tensor(f16, 1), low=0.5, high=2),
        sample(SPECIAL, SPECIAL[::-1].copy()),
        *INTEGER_PAIRS,
        sample(np.array([-7, 7, -128, 5], np.int8), np.array([2, -2, -1, 0], np.int8)),
    )
    cann = "aclnnDiv"

    def reference(self, a: Array, b: Array) -> Array:
        if not dtype_of(a.dtype).is_integer:
            return np.divide(wide(a), wide(b))
        return a // b + ((a % b != 0) & ((a < 0) != (b < 0))).astype(a.dtype)

    def compute(self, k: Builder, a: Value, b: Value) -> Value:
        return a / b

    def grad(self, a: Node, b: Node, y: Node, dy: Node) -> Grads:
        return div(dy, b), neg(mul(dy, div(y, b)))


class FloorDiv(Binary):
    """The greatest integer not above a / b, as Python's //."""

    samples = (sample(f32t(2, 5), f32t(5)), *INTEGER_PAIRS)
    numpy = np.floor_divide
    cann = "aclnnFloorDivide"

    def compute(self, k: Builder, a: Value, b: Value) -> Value:
        return k.floor_divide(a, b)

    def grad(self, a: Node, b: Node, y: Node, dy: Node) -> Grads:
        return None, None


class Mod(Binary):
    """What division leaves.   fmod: with the sign of a, as C's; else with the sign of b, as Python's."""

    fmod: bool = False
    samples = (
        sample(f32t(2, 5), f32t(5)),
        sample(f32t(2, 5), f32t(5), fmod=True),
        sample(tensor(f16, 9), tensor(f16, 9), fmod=True),
        sample(np.array([-6, 6, 6.0, -6, 0], np.float32), np.array([4, -4, 3, -3, -2], np.float32)),
        *INTEGER_PAIRS,
        sample(tensor(i32, 40), tensor(i32, 1), fmod=True),
    )
    cann = "aclnnRemainderTensorTensor"

    def reference(self, a: Array, b: Array) -> Array:
        result: Array = (np.fmod if self.fmod else np.mod)(wide(a), wide(b))
        return result

    def compute(self, k: Builder, a: Value, b: Value) -> Value:
        return k.remainder(a, b) if self.fmod else k.floor_remainder(a, b)

    def grad(self, a: Node, b: Node, y: Node, dy: Node) -> Grads:
        whole = Trunc()(div(a, b)) if self.fmod else FloorDiv()(a, b)
        return dy, neg(mul(dy, whole))


class Pow(Binary):
    """a to the power of b; integers wrap, and round toward zero where b is negative."""

    samples = (
        sample(f32t(2, 5), f32t(5), low=0.25, high=3),
        sample(tensor(f16, 9), tensor(f16, 1), low=0.25, high=3),
        sample(np.array([-2, -2, 0, -0.0, 4, np.inf], np.float32), np.array([3, 0.5, 0, -1, 0.5, 0], np.float32)),
        sample(np.array([2, -3, 1, -1, 7, 0], np.int32), np.array([10, 3, -4, -3, -1, 0], np.int32)),
        sample(np.array([3, 2], np.int64), np.array([39, 63], np.int64)),
    )
    cann = "aclnnPowTensorTensor"

    def reference(self, a: Array, b: Array) -> Array:
        if not dtype_of(a.dtype).is_integer:
            return np.asarray(np.power(wide(a), wide(b)))
        positive = np.power(a, np.where(b < 0, -b, b).astype(b.dtype))
        return np.where(b < 0, np.where(np.abs(a) == 1, positive, np.zeros_like(positive)), positive)

    def compute(self, k: Builder, a: Value, b: Value) -> Value:
        if a.dtype.is_float:
            return kmath.pow(k, a, b)
        down = b < 0
        result, base, rest = k.var(k.splat(k.const(1, a.dtype), a.lanes)), k.var(a), k.var(k.select(down, 0 - b, b))
        with k.loop(0, a.dtype.bits):
            result.set(k.select((rest.get() & 1) != 0, result.get() * base.get(), result.get()))
            base.set(base.get() * base.get())
            rest.set(rest.get() >> 1)
        return k.select(down & (a != 1) & (a != -1), 0, result.get())

    def grad(self, a: Node, b: Node, y: Node, dy: Node) -> Grads:
        db = mul(dy, select(And()(equal(a, 0), greater_equal(b, 0)), 0, mul(y, log(a))))  # 0 ** b stays 0, or 1 at 0 ** 0
        known = b.array
        if known is None or known.size != 1:
            return mul(dy, select(equal(b, 0), 0, mul(b, power(a, sub(b, 1))))), db  # a ** 0 is 1 everywhere, at 0 too
        exponent = float(known.reshape(()))
        if exponent == 0:
            return None, db
        slope = a if exponent == 2 else power(a, exponent - 1)
        return (dy if exponent == 1 else mul(dy, mul(slope, exponent))), db


def share_of_extreme(a: Node, b: Node, y: Node, dy: Node) -> Grads:
    """The gradient to the one that is the extreme, halves where both are."""
    part = select(equal(a, b), mul(dy, 0.5), dy)
    return select(equal(a, y), part, 0), select(equal(b, y), part, 0)


class Minimum(Binary):
    """The smaller; NaN where either is."""

    samples = (*FLOAT_PAIRS, *INTEGER_PAIRS, sample(SPECIAL, SPECIAL[::-1].copy()))
    numpy = np.minimum
    cann = "aclnnMinimum"

    def compute(self, k: Builder, a: Value, b: Value) -> Value:
        return k.minimum(a, b)

    def grad(self, a: Node, b: Node, y: Node, dy: Node) -> Grads:
        return share_of_extreme(a, b, y, dy)


class Maximum(Binary):
    """The larger; NaN where either is."""

    samples = (*FLOAT_PAIRS, *INTEGER_PAIRS, sample(SPECIAL, SPECIAL[::-1].copy()))
    numpy = np.maximum
    cann = "aclnnMaximum"

    def compute(self, k: Builder, a: Value, b: Value) -> Value:
        return k.maximum(a, b)

    def grad(self, a: Node, b: Node, y: Node, dy: Node) -> Grads:
        return share_of_extreme(a, b, y, dy)


class Equal(Binary):
    """a == b."""

    result = bool_
    samples = (*FLOAT_PAIRS, *INTEGER_PAIRS, *BOOL_PAIRS, sample(SPECIAL, SPECIAL))
    numpy = np.equal
    cann = "aclnnEqTensor"

    def compute(self, k: Builder, a: Value, b: Value) -> Value:
        return k.equal(a, b)


class NotEqual(Binary):
    """a != b."""

    result = bool_
    samples = (*FLOAT_PAIRS, *INTEGER_PAIRS, *BOOL_PAIRS, sample(SPECIAL, SPECIAL))
    numpy = np.not_equal
    cann = "aclnnNeTensor"

    def compute(self, k: Builder, a: Value, b: Value) -> Value:
        return k.not_equal(a, b)


class Less(Binary):
    """a < b; false with NaN."""

    result = bool_
    samples = (*FLOAT_PAIRS, *INTEGER_PAIRS)
    numpy = np.less
    cann = "aclnnLtTensor"

    def compute(self, k: Builder, a: Value, b: Value) -> Value:
        return k.less(a, b)


class LessEqual(Binary):
    """a <= b; false with NaN."""

    result = bool_
    samples = (*FLOAT_PAIRS, *INTEGER_PAIRS)
    numpy = np.less_equal
    cann = "aclnnLeTensor"

    def compute(self, k: Builder, a: Value, b: Value) -> Value:
        return k.less_equal(a, b)


class Greater(Binary):
    """a > b; false with NaN."""

    result = bool_
    samples = (*FLOAT_PAIRS, *INTEGER_PAIRS)
    numpy = np.greater
    cann = "aclnnGtTensor"

    def compute(self, k: Builder, a: Value, b: Value) -> Value:
        return k.greater(a, b)


class GreaterEqual(Binary):
    """a >= b; false with NaN."""

    result = bool_
    samples = (*FLOAT_PAIRS, *INTEGER_PAIRS)
    numpy = np.greater_equal
    cann = "aclnnGeTensor"

    def compute(self, k: Builder, a: Value, b: Value) -> Value:
        return k.greater_equal(a, b)


class And(Binary):
    """Logical and."""

    samples = BOOL_PAIRS
    numpy = np.logical_and
    cann = "aclnnLogicalAnd"

    def compute(self, k: Builder, a: Value, b: Value) -> Value:
        return k.logical_and(a, b)


class Or(Binary):
    """Logical or."""

    samples = BOOL_PAIRS
    numpy = np.logical_or
    cann = "aclnnLogicalOr"

    def compute(self, k: Builder, a: Value, b: Value) -> Value:
        return k.logical_or(a, b)


class Xor(Binary):
    """Logical exclusive or."""

    samples = BOOL_PAIRS
    numpy = np.logical_xor
    cann = "aclnnLogicalXor"

    def compute(self, k: Builder, a: Value, b: Value) -> Value:
        return k.logical_xor(a, b)


class BitwiseAnd(Binary):
    """Bits set in both."""

    samples = INTEGER_PAIRS
    numpy = np.bitwise_and
    cann = "aclnnBitwiseAndTensor"

    def compute(self, k: Builder, a: Value, b: Value) -> Value:
        return a & b


class BitwiseOr(Binary):
    """Bits set in either."""

    samples = INTEGER_PAIRS
    numpy = np.bitwise_or
    cann = "aclnnBitwiseOrTensor"

    def compute(self, k: Builder, a: Value, b: Value) -> Value:
        return a | b


class BitwiseXor(Binary):
    """Bits set in exactly one."""

    samples = INTEGER_PAIRS
    numpy = np.bitwise_xor
    cann = "aclnnBitwiseXorTensor"

    def compute(self, k: Builder, a: Value, b: Value) -> Value:
        return a ^ b


SHIFTS = (
    sample(np.array([16, 4, 1, 255], np.uint8), np.array([1, 8, 7, 200], np.uint8)),
    sample(np.array([-16, 4, -1], np.int8), np.array([1, 9, -3], np.int8)),
    sample(np.array([[-16], [1 << 40]], np.int64), np.array([1, 64, 63], np.int64)),
    sample(tensor(i32, 3), np.array(2, np.int32)),
)


class ShiftLeft(Binary):
    """Bits moved left, zeros move in; a shift outside 0 .. bits - 1 moves out all of them."""

    samples = SHIFTS
    numpy = np.left_shift
    cann = "aclnnLeftShift"

    def compute(self, k: Builder, a: Value, b: Value) -> Value:
        inside = _shift_inside(k, a, b)
        return k.select(inside, a << k.select(inside, b, 0), 0)


class ShiftRight(Binary):
    """Bits moved right, copies of the sign move in; a shift outside 0 .. bits - 1 leaves only those."""

    samples = SHIFTS
    numpy = np.right_shift
    cann = "aclnnRightShift"

    def compute(self, k: Builder, a: Value, b: Value) -> Value:
        inside = _shift_inside(k, a, b)
        moved = a >> k.select(inside, b, a.dtype.bits - 1)
        return moved if a.dtype.kind == "i" else k.select(inside, moved, 0)


def _shift_inside(k: Builder, a: Value, b: Value) -> Value:
    below = b < a.dtype.bits
    return below if b.dtype.kind == "u" else (b >= 0) & below


# ------------------------------------------------------------------------------------------- choice and conversion
class Select(Elementwise):
    """a where the condition holds, else b."""

    signature = "condition[...], a[...], b[...] -> y[...]"
    samples = (
        sample(tensor(bool_, 2, 5), f32t(2, 5), f32t(5)),
        sample(tensor(bool_, 3, 1), f32t(), f32t(1, 4)),
        sample(tensor(bool_), f32t(2), f32t(2)),
        sample(tensor(bool_, 5), tensor(i64, 5), tensor(i64)),
        sample(tensor(bool_, 4), tensor(bool_, 4), tensor(bool_, 1)),
        sample(tensor(bool_, 9), tensor(f16, 9), tensor(f16, 1)),
        sample(tensor(bool_, 0), tensor(u8, 1), tensor(u8, 1)),
    )
    cann = "aclnnSWhere"

    def check_same_dtype(self, types: Sequence[TensorType]) -> None:
        if types[0].dtype != bool_:
            raise OpError(f"select: condition must be bool, got {types[0]}", code="dtype-mismatch")
        super().check_same_dtype(types[1:])

    def reference(self, condition: Array, a: Array, b: Array) -> Array:
        return np.where(condition, a, b)

    def compute(self, k: Builder, condition: Value, a: Value, b: Value) -> Value:
        return k.select(condition, a, b)

    def grad(self, condition: Node, a: Node, b: Node, y: Node, dy: Node) -> Grads:
        return None, select(condition, dy, 0), select(condition, 0, dy)


class Cast(Elementwise):
    """The number in another element type: to integers toward zero (wrapping where it is an integer already), to floats to the nearest even.

    saturate: what is too large for an 8-bit float becomes its largest, not infinity or NaN.
    rounding: to f8e8m0 only: up, down, or nearest.
    """

    dtype: DType
    saturate: bool = True
    rounding: str = "up"
    signature = "x[...] -> y[...]"
    samples = (
        sample(f32t(2, 5), dtype=i32),
        sample(f32t(9), dtype=f16),
        sample(tensor(f16, 9), dtype=f32),
        sample(f32t(9), dtype=bf16),
        sample(tensor(bf16, 3), dtype=f64),
        sample(tensor(i64, 3), dtype=f32),
        sample(np.array([200, -200, 65535], np.int32), dtype=i8),
        sample(tensor(bool_, 3), dtype=f32),
        sample(SPECIAL, dtype=bool_),
        sample(f32t(), dtype=u8, low=0, high=9),
        sample(f32t(0), dtype=i64),
        sample(np.array([1e3, -1e9, np.nan, np.inf, 0.3], np.float32), dtype=f8e4m3fn),
        sample(SPECIAL, dtype=f8e5m2, saturate=False),
        sample(tensor(i8, 4), dtype=u16),
        sample(tensor(i32, 4), dtype=i4),
    )
    cann = "aclnnCast"

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        return x.with_dtype(self.dtype)

    def reference(self, x: Array) -> Array:
        return convert(x, self.dtype, saturate=self.saturate, rounding=self.rounding)

    def compute(self, k: Builder, x: Value) -> Value:
        return k.convert(x, self.dtype)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (cast(dy, x.dtype) if x.dtype.is_float else None,)


def convert(x: Array, dtype: DType, *, saturate: bool = True, rounding: str = "up") -> Array:
    """The array in another element type, by the rules of ONNX.

    >>> convert(np.array([1e3, -300.0], np.float32), f8e4m3fn).astype(float).tolist()
    [448.0, -288.0]
    """
    source = dtype_of(x.dtype)
    if source.kind == "s":
        return _from_text(x, dtype, saturate, rounding)
    if dtype.kind == "s":
        return _to_text(wide(x))
    if dtype.name == "f8e8m0":
        return _to_e8m0(wide(x).astype(np.float32), saturate, rounding)
    if dtype.is_float and dtype.bits <= 8:
        single = wide(x).astype(np.float32)
        limit = float(ml_dtypes.finfo(dtype.numpy).max)  # type: ignore[no-untyped-call]
        return (np.clip(single, -limit, limit) if saturate else single).astype(dtype.numpy)
    if dtype.is_integer and dtype.bits < 8:
        whole = np.trunc(wide(x)).astype(np.int64) if source.is_float else x.astype(np.int64)
        half = 1 << (dtype.bits - 1) if dtype.kind == "i" else 0
        return (((whole + half) & ((1 << dtype.bits) - 1)) - half).astype(dtype.numpy)
    if source.bits < 8:
        x = x.astype(np.float32 if source.is_float else np.int8)
    return wide(x).astype(dtype.numpy) if source.is_float else x.astype(dtype.numpy)


def _to_e8m0(x: Array, saturate: bool, rounding: str) -> Array:
    """Powers of two from 2^-127 to 2^127: the exponent of a float, rounded by its mantissa."""
    bits = x.view(np.uint32)
    exponent, mantissa = ((bits >> 23) & 255).astype(np.int32), bits & 0x7FFFFF
    up = {"up": mantissa > 0, "down": mantissa < 0, "nearest": mantissa >= 0x400000}[rounding]
    if rounding == "up" and saturate:
        up = up & ~((exponent == 0) & (mantissa <= 0x400000))
    code = np.where(np.isnan(x), 255, exponent + (up & (exponent < 255)))
    if saturate:
        code = np.where(np.isnan(x), 255, np.minimum(code, 254))
    return code.astype(np.uint8).view(ml_dtypes.float8_e8m0fnu)


def _from_text(x: Array, dtype: DType, saturate: bool, rounding: str) -> Array:
    if dtype.kind == "s":
        return x
    numbers = [int(s) if dtype.is_integer and str(s).lstrip("+-").isdigit() else float(s) for s in x.ravel().tolist()]
    exact = np.array(numbers, np.float64 if not dtype.is_integer else None).reshape(x.shape)
    return convert(exact, dtype, saturate=saturate, rounding=rounding)


def _to_text(x: Array) -> Array:
    """Numbers as text: the shortest digits that give the number back."""
    return np.array([str(v) for v in x.ravel()], object).reshape(x.shape)


# ------------------------------------------------------------------------------------------------------------ formulas
Number = float | int | bool


def number(value: Number, like: Node) -> Node:
    """The number as a constant of the same element type as `like`."""
    return constant(value, like.dtype)


def _both(a: Node | Number, b: Node | Number) -> tuple[Node, Node]:
    if isinstance(a, Node):
        return a, b if isinstance(b, Node) else number(b, a)
    assert isinstance(b, Node), "one operand of a formula is a node"
    return number(a, b), b


def add(a: Node | Number, b: Node | Number) -> Node:
    """a + b"""
    return Add()(*_both(a, b))


def sub(a: Node | Number, b: Node | Number) -> Node:
    """a - b"""
    return Sub()(*_both(a, b))


def mul(a: Node | Number, b: Node | Number) -> Node:
    """a * b"""
    return Mul()(*_both(a, b))


def div(a: Node | Number, b: Node | Number) -> Node:
    """a / b"""
    return Div()(*_both(a, b))


def power(a: Node | Number, b: Node | Number) -> Node:
    """a to the power of b"""
    return Pow()(*_both(a, b))


def minimum(a: Node | Number, b: Node | Number) -> Node:
    """The smaller of a and b."""
    return Minimum()(*_both(a, b))


def maximum(a: Node | Number, b: Node | Number) -> Node:
    """The larger of a and b."""
    return Maximum()(*_both(a, b))


def equal(a: Node | Number, b: Node | Number) -> Node:
    """a == b"""
    return Equal()(*_both(a, b))


def less(a: Node | Number, b: Node | Number) -> Node:
    """a < b"""
    return Less()(*_both(a, b))


def less_equal(a: Node | Number, b: Node | Number) -> Node:
    """a <= b"""
    return LessEqual()(*_both(a, b))


def greater(a: Node | Number, b: Node | Number) -> Node:
    """a > b"""
    return Greater()(*_both(a, b))


def greater_equal(a: Node | Number, b: Node | Number) -> Node:
    """a >= b"""
    return GreaterEqual()(*_both(a, b))


def select(condition: Node, a: Node | Number, b: Node | Number) -> Node:
    """a where the condition holds, else b."""
    return Select()(condition, *_both(a, b))


def cast(x: Node, dtype: DType) -> Node:
    """x in another element type; x itself where it has it."""
    return x if x.dtype == dtype else Cast(dtype)(x)


def neg(x: Node) -> Node:
    """-x"""
    return Neg()(x)


def sign(x: Node) -> Node:
    """The sign of x."""
    return Sign()(x)


def square(x: Node) -> Node:
    """x * x"""
    return Square()(x)


def sqrt(x: Node) -> Node:
    """The square root of x."""
    return Sqrt()(x)


def exp(x: Node) -> Node:
    """e to the power of x"""
    return Exp()(x)


def log(x: Node) -> Node:
    """The logarithm of x."""
    return Log()(x)


def sin(x: Node) -> Node:
    """The sine of x."""
    return Sin()(x)


def cos(x: Node) -> Node:
    """The cosine of x."""
    return Cos()(x)


def sinh(x: Node) -> Node:
    """The hyperbolic sine of x."""
    return Sinh()(x)


def cosh(x: Node) -> Node:
    """The hyperbolic cosine of x."""
    return Cosh()(x)
