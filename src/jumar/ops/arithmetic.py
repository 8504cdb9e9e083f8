"""Elementwise functions: arithmetic, mathematics, comparison, logic, bits and choice.

In: tensors and numbers, in any mix of element types.  Out: tensors, by one operator each or a short formula of them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jumar import operators as o
from jumar.frontend.promote import is_floating
from jumar.ops.operands import (
    BOOL,
    I64,
    Tensor,
    apply,
    as_tensor,
    as_type,
    binary,
    cast,
    float_operands,
    float_unary,
    floating,
    numpy_dtype,
    operands,
    rounding,
    scalar,
    unary,
)

# ------------------------------------------------------------------------------------------------------------ one input
exp, expm1, log, log1p = (float_unary(n, op) for n, op in (("exp", o.Exp()), ("expm1", o.Expm1()), ("log", o.Log()), ("log1p", o.Log1p())))
sin, cos, tan = (float_unary(n, op) for n, op in (("sin", o.Sin()), ("cos", o.Cos()), ("tan", o.Tan())))
asin, acos, atan = (float_unary(n, op) for n, op in (("asin", o.Asin()), ("acos", o.Acos()), ("atan", o.Atan())))
sinh, cosh, tanh = (float_unary(n, op) for n, op in (("sinh", o.Sinh()), ("cosh", o.Cosh()), ("tanh", o.Tanh())))
asinh, acosh, atanh = (float_unary(n, op) for n, op in (("asinh", o.Asinh()), ("acosh", o.Acosh()), ("atanh", o.Atanh())))
sqrt, rsqrt = float_unary("sqrt", o.Sqrt()), float_unary("rsqrt", o.Rsqrt())
reciprocal, sigmoid, erf = float_unary("reciprocal", o.Reciprocal()), float_unary("sigmoid", o.Sigmoid()), float_unary("erf", o.Erf())
neg, abs, sign, square = unary("neg", o.Neg()), unary("abs", o.Abs()), unary("sign", o.Sign()), unary("square", o.Square())
floor, ceil, trunc = rounding("floor", o.Floor()), rounding("ceil", o.Ceil()), rounding("trunc", o.Trunc())
_round_even = rounding("round", o.Round())
identity, stop_gradient = unary("identity", o.Identity()), unary("stop_gradient", o.StopGradient())


def round(input: Any, *, decimals: int = 0) -> Tensor:
    """The nearest number with so many decimals, halves to the even one."""
    if not decimals:
        return _round_even(input)  # type: ignore[no-any-return]
    factor = 10.0**decimals
    return div(_round_even(mul(input, factor)), factor)


def exp2(input: Any) -> Tensor:
    """2 to the power of x."""
    return pow(2.0, floating(input))


def log2(input: Any) -> Tensor:
    """The logarithm to the base 2."""
    return mul(log(input), 1 / math.log(2))


def log10(input: Any) -> Tensor:
    """The logarithm to the base 10."""
    return mul(log(input), 1 / math.log(10))


def erfc(input: Any) -> Tensor:
    """One minus the error function."""
    return sub(1, erf(input))


def frac(input: Any) -> Tensor:
    """What is behind the point, with the sign of x."""
    return sub(input, trunc(input))


def positive(input: Any) -> Tensor:
    """The tensor itself."""
    return as_tensor(input)


def isnan(input: Any) -> Tensor:
    """True where x is not a number."""
    x = as_tensor(input)
    return apply(o.IsNan(), x) if numpy_dtype(x).kind not in "iub" else not_equal(x, x)  # type: ignore[no-any-return]


def isinf(input: Any) -> Tensor:
    """True where x is infinite."""
    x = as_tensor(input)
    return apply(o.IsInf(), x) if numpy_dtype(x).kind not in "iub" else not_equal(x, x)  # type: ignore[no-any-return]


def isposinf(input: Any) -> Tensor:
    """True where x is plus infinity."""
    return apply(o.IsInf(negative=False), floating(input))  # type: ignore[no-any-return]


def isneginf(input: Any) -> Tensor:
    """True where x is minus infinity."""
    return apply(o.IsInf(positive=False), floating(input))  # type: ignore[no-any-return]


def isfinite(input: Any) -> Tensor:
    """True where x is neither infinite nor NaN."""
    return logical_not(logical_or(isnan(input), isinf(input)))


def nan_to_num(input: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """x with other numbers for NaN (0) and the infinities (the greatest and the least number)."""
    x = as_tensor(input)
    if not is_floating(x):
        return x
    limits = _finfo(numpy_dtype(x))
    x = where(isnan(x), 0.0 if nan is None else nan, x)
    x = where(isposinf(x), float(limits.max) if posinf is None else posinf, x)
    return where(isneginf(x), float(limits.min) if neginf is None else neginf, x)


def _finfo(dtype: np.dtype[Any]) -> Any:
    import ml_dtypes  # noqa: PLC0415  (its finfo knows bfloat16)

    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def logit(input: Any, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), with x kept eps away from 0 and 1."""
    x = floating(input)
    if eps is not None and eps >= 0:
        x = clamp(x, eps, 1 - eps)
    return log(div(x, sub(1, x)))  # type: ignore[no-any-return]


def sinc(input: Any) -> Tensor:
    """sin(pi x) / (pi x), 1 at 0."""
    x = floating(input)
    at = mul(x, math.pi)
    zero = equal(x, 0)
    return where(zero, 1.0, div(sin(at), where(zero, 1.0, at)))


def deg2rad(input: Any) -> Tensor:
    """Degrees as radians."""
    return mul(floating(input), math.pi / 180)


def rad2deg(input: Any) -> Tensor:
    """Radians as degrees."""
    return mul(floating(input), 180 / math.pi)


def signbit(input: Any) -> Tensor:
    """True where x is below zero."""
    return less(input, 0)  # type: ignore[no-any-return]


# ----------------------------------------------------------------------------------------------------------- two inputs
_add, _sub, _mul, _pow = o.Add(), o.Sub(), o.Mul(), o.Pow()
_div, _floor_div, _mod, _fmod = o.Div(), o.FloorDiv(), o.Mod(), o.Mod(fmod=True)
_or, _and, _xor, _not = o.Or(), o.And(), o.Xor(), o.Not()
minimum, maximum = binary("minimum", o.Minimum()), binary("maximum", o.Maximum())


def add(input: Any, other: Any, alpha: Any = 1) -> Tensor:
    """a + alpha * b."""
    if alpha != 1:
        other = mul(other, alpha)
    a, b = operands(input, other)
    return apply(_or if numpy_dtype(a) == BOOL else _add, a, b)  # type: ignore[no-any-return]


def sub(input: Any, other: Any, alpha: Any = 1) -> Tensor:
    """a - alpha * b."""
    if alpha != 1:
        other = mul(other, alpha)
    a, b = operands(input, other)
    if numpy_dtype(a) == BOOL:
        raise TypeError("sub: operands must be numbers, got Bool and Bool; use logical_xor or logical_not")
    return apply(_sub, a, b)  # type: ignore[no-any-return]


def mul(input: Any, other: Any) -> Tensor:
    """a * b."""
    a, b = operands(input, other)
    return apply(_and if numpy_dtype(a) == BOOL else _mul, a, b)  # type: ignore[no-any-return]


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """a / b; integers give floats.   rounding_mode: None, "floor" or "trunc", which keep integers."""
    if rounding_mode is None:
        return apply(_div, *float_operands(input, other))  # type: ignore[no-any-return]
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode != "trunc":
        raise ValueError(f"div: rounding_mode must be None, 'floor' or 'trunc', got {rounding_mode!r}")
    a, b = operands(input, other)
    return trunc(apply(_div, a, b))  # type: ignore[no-any-return]


def floor_divide(input: Any, other: Any) -> Tensor:
    """The greatest integer not above a / b."""
    return apply(_floor_div, *_numbers(input, other))  # type: ignore[no-any-return]


def remainder(input: Any, other: Any) -> Tensor:
    """What division leaves, with the sign of b."""
    return apply(_mod, *_numbers(input, other))  # type: ignore[no-any-return]


def fmod(input: Any, other: Any) -> Tensor:
    """What division leaves, with the sign of a."""
    return apply(_fmod, *_numbers(input, other))  # type: ignore[no-any-return]


def _numbers(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """Operands of one element type that is not bool."""
    x, y = operands(a, b)
    return (cast(x, I64), cast(y, I64)) if numpy_dtype(x) == BOOL else (x, y)


def pow(input: Any, exponent: Any) -> Tensor:
    """a to the power of b."""
    if isinstance(exponent, int | float) and not isinstance(exponent, bool) and isinstance(input, Tensor):
        if exponent == 2:
            return square(cast(input, operands(input, exponent)[0].dtype))  # type: ignore[no-any-return]
        if exponent == 0.5:
            return sqrt(input)  # type: ignore[no-any-return]
    return apply(_pow, *_numbers(input, exponent))  # type: ignore[no-any-return]


def float_power(input: Any, exponent: Any) -> Tensor:
    """a to the power of b, in float64."""
    return pow(cast(as_tensor(input), "float64"), cast(as_tensor(exponent), "float64"))


def atan2(input: Any, other: Any) -> Tensor:
    """The angle of the point (other, input)."""
    y, x = float_operands(input, other)
    flat = atan(div(y, where(equal(x, 0), 1.0, x)))
    turned = where(less(x, 0), where(less(y, 0), sub(flat, math.pi), add(flat, math.pi)), flat)
    upright = where(greater(y, 0), math.pi / 2, where(less(y, 0), -math.pi / 2, cast(as_tensor(0.0), y.dtype)))
    return where(equal(x, 0), upright, turned)


def hypot(input: Any, other: Any) -> Tensor:
    """The length of (a, b)."""
    a, b = float_operands(input, other)
    return sqrt(add(square(a), square(b)))  # type: ignore[no-any-return]


def logaddexp(input: Any, other: Any) -> Tensor:
    """log(exp(a) + exp(b))."""
    a, b = float_operands(input, other)
    top = maximum(a, b)
    low = where(isinf(top), 0.0, sub(minimum(a, b), top))
    return where(isposinf(top), top, add(top, log1p(where(isneginf(top), 0.0, exp(low)))))


def logaddexp2(input: Any, other: Any) -> Tensor:
    """log2(2^a + 2^b)."""
    two = math.log(2)
    a, b = float_operands(input, other)
    return div(logaddexp(mul(a, two), mul(b, two)), two)


def xlogy(input: Any, other: Any) -> Tensor:
    """a log(b), 0 where a is 0."""
    a, b = float_operands(input, other)
    zero = logical_and(equal(a, 0), logical_not(isnan(b)))
    return where(zero, 0.0, mul(a, log(where(zero, 1.0, b))))


def xdivy(x: Any, y: Any) -> Tensor:
    """a / b, 0 where a is 0."""
    a, b = float_operands(x, y)
    zero = equal(a, 0)
    return where(zero, 0.0, div(a, where(zero, 1.0, b)))


def fmax(input: Any, other: Any) -> Tensor:
    """The larger of two; the number where the other is NaN."""
    a, b = operands(input, other)
    return where(isnan(a), b, where(isnan(b), a, maximum(a, b)))


def fmin(input: Any, other: Any) -> Tensor:
    """The smaller of two; the number where the other is NaN."""
    a, b = operands(input, other)
    return where(isnan(a), b, where(isnan(b), a, minimum(a, b)))


def copysign(x: Any, other: Any) -> Tensor:
    """|a| with the sign of b."""
    a, b = float_operands(x, other)
    return where(less(b, 0), neg(abs(a)), abs(a))


def heaviside(input: Any, values: Any) -> Tensor:
    """0 below zero, 1 above, `values` at zero."""
    x, v = operands(input, values)
    return where(equal(x, 0), v, cast(greater(x, 0), x.dtype))


def ldexp(x: Any, other: Any) -> Tensor:
    """a 2^b."""
    return mul(x, exp2(other))


def lerp(input: Any, end: Any, weight: Any) -> Tensor:
    """a + weight (end - a)."""
    return add(input, mul(weight, sub(end, input)))


def addcmul(input: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Tensor:
    """input + value * tensor1 * tensor2."""
    product = mul(tensor1, tensor2)
    return add(input, product if _is_one(value) else mul(product, value))


def addcdiv(input: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Tensor:
    """input + value * tensor1 / tensor2."""
    quotient = div(tensor1, tensor2)
    return add(input, quotient if _is_one(value) else mul(quotient, value))


def _is_one(value: Any) -> bool:
    return isinstance(value, int | float) and value == 1


def squared_difference(input: Any, other: Any) -> Tensor:
    """(a - b)^2."""
    return square(sub(input, other))  # type: ignore[no-any-return]


# ----------------------------------------------------------------------------------------------- comparison, logic, bits
equal, not_equal = binary("equal", o.Equal()), binary("not_equal", o.NotEqual())
less, less_equal = binary("less", o.Less()), binary("less_equal", o.LessEqual())
greater, greater_equal = binary("greater", o.Greater()), binary("greater_equal", o.GreaterEqual())


def as_bool(input: Any) -> Tensor:
    """True where the element is not zero."""
    x = as_tensor(input)
    return x if numpy_dtype(x) == BOOL else apply(o.NotEqual(), x, scalar(0, numpy_dtype(x)))


def logical_not(input: Any) -> Tensor:
    """Not a."""
    return apply(_not, as_bool(input))  # type: ignore[no-any-return]


def logical_and(input: Any, other: Any) -> Tensor:
    """a and b."""
    return apply(_and, as_bool(input), as_bool(other))  # type: ignore[no-any-return]


def logical_or(input: Any, other: Any) -> Tensor:
    """a or b."""
    return apply(_or, as_bool(input), as_bool(other))  # type: ignore[no-any-return]


def logical_xor(input: Any, other: Any) -> Tensor:
    """Either a or b."""
    return apply(_xor, as_bool(input), as_bool(other))  # type: ignore[no-any-return]


def _bits(a: Any, b: Any, on_bools: o.Elementwise, on_ints: o.Elementwise) -> Tensor:
    x, y = operands(a, b)
    if is_floating(x):
        raise TypeError(f"{on_ints.name}: operands must be integers or bools, got {x.dtype}")
    return apply(on_bools if numpy_dtype(x) == BOOL else on_ints, x, y)  # type: ignore[no-any-return]


def bitwise_and(input: Any, other: Any) -> Tensor:
    """a & b."""
    return _bits(input, other, _and, o.BitwiseAnd())


def bitwise_or(input: Any, other: Any) -> Tensor:
    """a | b."""
    return _bits(input, other, _or, o.BitwiseOr())


def bitwise_xor(input: Any, other: Any) -> Tensor:
    """a ^ b."""
    return _bits(input, other, _xor, o.BitwiseXor())


def bitwise_not(input: Any) -> Tensor:
    """~a."""
    x = as_tensor(input)
    if is_floating(x):
        raise TypeError(f"bitwise_not: input must be integers or bools, got {x.dtype}")
    return apply(_not if numpy_dtype(x) == BOOL else o.BitwiseNot(), x)  # type: ignore[no-any-return]


def bitwise_left_shift(input: Any, other: Any) -> Tensor:
    """a << b."""
    return apply(o.ShiftLeft(), *operands(input, other))  # type: ignore[no-any-return]


def bitwise_right_shift(input: Any, other: Any) -> Tensor:
    """a >> b."""
    return apply(o.ShiftRight(), *operands(input, other))  # type: ignore[no-any-return]


def isclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """True where |a - b| <= atol + rtol |b|."""
    a, b = float_operands(input, other)
    near = less_equal(abs(sub(a, b)), add(atol, mul(rtol, abs(b))))
    near = logical_or(equal(a, b), logical_and(near, isfinite(b)))
    return logical_or(near, logical_and(isnan(a), isnan(b))) if equal_nan else near


def approximate_equal(x: Any, y: Any, tolerance: float = 1e-05) -> Tensor:
    """True where |a - b| < tolerance."""
    return less(abs(sub(x, y)), tolerance)  # type: ignore[no-any-return]


# --------------------------------------------------------------------------------------------------------------- choice
_select = o.Select()


def where(condition: Any, input: Any, other: Any) -> Tensor:
    """a where the condition holds, else b."""
    a, b = operands(input, other)
    return apply(_select, as_bool(condition), a, b)  # type: ignore[no-any-return]


def clamp(input: Any, min: Any = None, max: Any = None) -> Tensor:
    """x within min .. max, of which either may be absent."""
    x = as_tensor(input)
    if min is None and max is None:
        raise ValueError("clamp: at least one of min and max must be given, got None for both")
    if not isinstance(min, Tensor) and not isinstance(max, Tensor):
        for bound in (min, max):
            if isinstance(bound, float):
                x = operands(x, bound)[0]
        return apply(o.Clip(_plain(min, x), _plain(max, x)), x)  # type: ignore[no-any-return]
    if min is not None:
        x = maximum(x, min)
    return x if max is None else minimum(x, max)


def _plain(bound: Any, x: Tensor) -> Any:
    """A bound as a Python number that the element type holds."""
    if bound is None:
        return None
    return float(bound) if is_floating(x) else int(bound)


def masked_fill(input: Any, mask: Any, value: Any) -> Tensor:
    """x with the value where the mask holds; x keeps its element type."""
    x = as_tensor(input)
    filler = cast(value, x.dtype) if isinstance(value, Tensor) else scalar(value, numpy_dtype(x))
    return apply(_select, as_bool(mask), filler, x)  # type: ignore[no-any-return]


def to_type(input: Any, dtype: Any) -> Tensor:
    """x in another element type."""
    return cast(as_tensor(input), as_type(dtype))


def softmax_type(input: Any, dtype: Any) -> Tensor:
    """The operand of a function of floats with a `dtype` argument."""
    return floating(input) if dtype is None else cast(as_tensor(input), as_type(dtype))


absolute, negative, inv, arccos, arcsin, arctan, arctan2 = abs, neg, reciprocal, acos, asin, atan, atan2
arccosh, arcsinh, arctanh, tensor_exp, tensor_expm1 = acosh, asinh, atanh, exp, expm1
multiply, subtract, divide, true_divide, floor_div, floordiv, floor_mod, mod = (
    mul,
    sub,
    div,
    div,
    floor_divide,
    floor_divide,
    remainder,
    remainder,
)
eq, ne, lt, le, gt, ge, invert, fix, clip = equal, not_equal, less, less_equal, greater, greater_equal, bitwise_not, trunc, clamp
tensor_add, tensor_sub, tensor_mul, tensor_div, tensor_pow = add, sub, mul, div, pow
tensor_lt, tensor_le, tensor_gt, tensor_ge, tensor_mod, tensor_floordiv = less, less_equal, greater, greater_equal, remainder, floor_divide


def clip_by_value(x: Any, clip_value_min: Any = None, clip_value_max: Any = None) -> Any:
    """x, or each tensor of a tuple or list, within the bounds."""
    if isinstance(x, tuple | list):
        return type(x)(clamp(t, clip_value_min, clip_value_max) for t in x)
    return clamp(x, clip_value_min, clip_value_max)


def truncate_div(x: Any, y: Any) -> Tensor:
    """a / b toward zero."""
    return div(x, y, rounding_mode="trunc")


__all__ = [
    "abs", "absolute", "acos", "acosh", "add", "addcdiv", "addcmul", "approximate_equal", "arccos", "arccosh", "arcsin", "arcsinh", "arctan",
    "arctan2", "arctanh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "ceil", "clamp", "clip", "clip_by_value", "copysign", "cos", "cosh", "deg2rad", "div", "divide",
    "eq", "equal", "erf", "erfc", "exp", "exp2", "expm1", "fix", "float_power", "floor", "floor_div", "floor_divide", "floor_mod", "floordiv",
    "fmax", "fmin", "fmod", "frac", "ge", "greater", "greater_equal", "gt", "heaviside", "hypot", "identity", "inv", "invert", "isclose",
    "isfinite", "isinf", "isnan", "isneginf", "isposinf", "ldexp", "le", "lerp", "less", "less_equal", "log", "log10", "log1p", "log2",
    "logaddexp", "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor", "logit", "lt", "masked_fill", "maximum", "minimum",
    "mod", "mul", "multiply", "nan_to_num", "ne", "neg", "negative", "not_equal", "positive", "pow", "rad2deg", "reciprocal", "remainder",
    "round", "rsqrt", "sigmoid", "sign", "signbit", "sin", "sinc", "sinh", "sqrt", "square", "squared_difference", "stop_gradient", "sub",
    "subtract", "tan", "tanh", "tensor_add", "tensor_div", "tensor_exp", "tensor_expm1", "tensor_floordiv", "tensor_ge", "tensor_gt",
    "tensor_le", "tensor_lt", "tensor_mod", "tensor_mul", "tensor_pow", "tensor_sub", "true_divide", "trunc", "truncate_div", "where",
    "xdivy", "xlogy",
]  # fmt: skip
