"""Vector math on the builder: exp, log, tanh, erf ... for any number of lanes.

In: a `Builder` and a value of f32 or f64.  Out: a value of the same type.  Used by the elementwise schedules of operators.

f32 has polynomials of its own, written with fma; each docstring states the largest error in units in the last place (ulp),
measured over the whole range by tests/kernel/test_math.py.  f64, and what is rarely hot, calls the C library lane by lane.
Infinities, NaN, signed zeros and subnormal numbers come out as IEEE 754 and C say, as long as the thread does not flush
subnormals (a Program's run does: results below 1.2e-38 are then 0).
"""

from __future__ import annotations

from jumar.base import KernelError, f32, f64, i32, i64, u32
from jumar.kernel.builder import Builder
from jumar.kernel.value import Value

_INF = float("inf")
_LN2 = 0.6931471805599453
# ln 2 in two parts: n * the first is exact for |n| < 2^9 even without fma
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
_ROUND = 12582912.0  # 1.5 * 2^23: adding it rounds a single to an integer, which then stands in its low bits
_EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)


def _check(k: Builder, name: str, x: Value) -> None:
    if x.dtype not in (f32, f64) or x.type.pointer:
        raise KernelError(f"kernel {k.name}: {name} must be of f32 or f64, got {x.type}", hint="k.convert(x, f32)", code="kernel-operand")


def polynomial(k: Builder, x: Value, coefficients: tuple[float, ...]) -> Value:
    """c0 x^n + c1 x^(n-1) ... + cn, by Horner's rule."""
    result = k.const(coefficients[0], x.dtype, x.lanes)
    for c in coefficients[1:]:
        result = k.fma(result, x, c)
    return result


def _at_most(k: Builder, x: Value, limit: float) -> Value:
    """min(x, limit) that keeps NaN and is one instruction."""
    return k.select(x > limit, limit, x)


def _at_least(k: Builder, x: Value, limit: float) -> Value:
    return k.select(x < limit, limit, x)


def _power_of_two(k: Builder, n: Value) -> Value:
    """2^n as f32, for i32 n in -126 .. 127."""
    return k.bitcast((n + 127) << 23, f32)


def _reduced(k: Builder, x: Value) -> tuple[Value, Value, Value]:
    """x = n ln 2 + r with |r| <= ln 2 / 2.   Gives n (as i32), r, and (exp(r) - 1 - r) / r^2."""
    shifted = k.fma(x, 1.0 / _LN2, _ROUND)
    n = k.bitcast(shifted, i32) - 0x4B400000
    whole = shifted - _ROUND
    r = k.fma(whole, -_LN2_LOW, k.fma(whole, -_LN2_HIGH, x))
    return n, r, polynomial(k, r, _EXP)


def exp(k: Builder, x: Value) -> Value:
    """e^x.   f32: 1 ulp."""
    _check(k, "exp", x)
    if x.dtype is f64:
        return k.call_libm("exp", x)
    n, r, q = _reduced(k, _at_least(k, _at_most(k, x, 89.0), -104.0))
    p = k.fma(q, r * r, r) + 1.0
    half = n >> 1  # in two steps, so that both factors are normal when the result is subnormal or overflows
    return p * _power_of_two(k, half) * _power_of_two(k, n - half)


def exp_below(k: Builder, x: Value) -> Value:
    """e^x for x that is never above 88, as in softmax: two thirds of the work of `exp`.   f32: 1 ulp; 0 where it would be subnormal."""
    _check(k, "exp", x)
    if x.dtype is f64:
        return k.call_libm("exp", x)
    n, r, q = _reduced(k, _at_least(k, x, -104.0))
    biased = n + 127
    scale = k.bitcast(k.select(biased < 0, 0, biased) << 23, f32)
    return k.fma(k.fma(q, r * r, r), scale, scale)


def exp2(k: Builder, x: Value) -> Value:
    """2^x.   f32: 1 ulp."""
    _check(k, "exp2", x)
    if x.dtype is f64:
        return k.call_libm("exp2", x)
    x = _at_least(k, _at_most(k, x, 129.0), -151.0)
    shifted = x + _ROUND
    n = k.bitcast(shifted, i32) - 0x4B400000
    r = (x - (shifted - _ROUND)) * _LN2
    p = k.fma(polynomial(k, r, _EXP), r * r, r) + 1.0
    half = n >> 1
    return p * _power_of_two(k, half) * _power_of_two(k, n - half)


def expm1(k: Builder, x: Value) -> Value:
    """e^x - 1, exact near 0.   f32: 1.5 ulp."""
    _check(k, "expm1", x)
    if x.dtype is f64:
        return k.call_libm("expm1", x)
    n, r, q = _reduced(k, _at_least(k, _at_most(k, x, 89.0), -18.0))
    p = k.fma(q, r * r, r)
    half = _power_of_two(k, n - 1)  # half of it, since 2^128 is no single
    result = k.fma(half, p, half - 0.5) * 2.0
    return k.select(n == 0, k.select(x == 0.0, x, p), result)


_LOG = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip


def _split(k: Builder, x: Value) -> tuple[Value, Value]:
    """x = m 2^e for a positive x: m - 1 with m in sqrt(1/2) .. sqrt(2), and e as f32."""
    tiny = x < 1.17549435e-38
    x = k.select(tiny, x * 8388608.0, x)
    # subtracting the bits of sqrt(1/2) makes the exponent change there instead of at 1
    bits = k.bitcast(x, i32) - 0x3F3504F3
    e = k.convert(bits >> 23, f32)
    m = k.bitcast((bits & 0x007FFFFF) + 0x3F3504F3, f32)
    return m - 1.0, k.select(tiny, e - 23.0, e)


def _log_edges(k: Builder, x: Value, result: Value) -> Value:
    result = k.select(x == _INF, x, result)
    result = k.select(x == 0.0, -_INF, result)
    return k.select(x >= 0.0, result, float("nan"))


def log(k: Builder, x: Value) -> Value:
    """Natural logarithm.   f32: 1 ulp."""
    _check(k, "log", x)
    if x.dtype is f64:
        return k.call_libm("log", x)
    f, e = _split(k, x)
    z = f * f
    y = polynomial(k, f, _LOG) * f * z
    y = k.fma(e, _LN2_LOW, y)
    y = k.fma(z, -0.5, y)
    return _log_edges(k, x, k.fma(e, _LN2_HIGH, f + y))


def _log_base(k: Builder, x: Value, high: float, low: float, per_octave: tuple[float, float]) -> Value:
    """Logarithm to another base: 1 / ln(base) = high + low, log(2) to the base = the sum of `per_octave`."""
    f, e = _split(k, x)
    z = f * f
    y = k.fma(z, -0.5, polynomial(k, f, _LOG) * f * z)
    t = k.fma(f, low, y * (high + low))
    t = k.fma(e, per_octave[1], t) if per_octave[1] else t
    t = k.fma(f, high, t)
    return _log_edges(k, x, k.fma(e, per_octave[0], t))


def log2(k: Builder, x: Value) -> Value:
    """Logarithm to the base 2.   f32: 1 ulp."""
    _check(k, "log2", x)
    if x.dtype is f64:
        return k.call_libm("log2", x)
    return _log_base(k, x, 1.44269502, 1.92596299e-8, (1.0, 0.0))


def log10(k: Builder, x: Value) -> Value:
    """Logarithm to the base 10.   f32: 1 ulp."""
    _check(k, "log10", x)
    if x.dtype is f64:
        return k.call_libm("log10", x)
    return _log_base(k, x, 0.434294492, -1.01e-8, (0.30078125, 2.48745663e-4))


def log1p(k: Builder, x: Value) -> Value:
    """log(1 + x), exact near 0.   f32: 1.5 ulp."""
    _check(k, "log1p", x)
    if x.dtype is f64:
        return k.call_libm("log1p", x)
    u = x + 1.0
    lost = k.select(x > 1.0, 1.0 - (u - x), x - (u - 1.0))  # what the rounding of 1 + x left out
    whole = log(k, u)
    result = k.select((u > 0.0) & (u < _INF), whole + lost / u, whole)
    return k.select(k.abs(x) < 1e-20, x, result)


def sigmoid(k: Builder, x: Value) -> Value:
    """1 / (1 + e^-x).   f32: 2.5 ulp down to x = -88, below which it stays at 6e-39 (or 0, where subnormals are flushed)."""
    return 1.0 / ((exp_below(k, _at_most(k, -x, 88.0)) if x.dtype is f32 else exp(k, -x)) + 1.0)


def tanh(k: Builder, x: Value) -> Value:
    """Hyperbolic tangent.   f32: 2.2 ulp."""
    _check(k, "tanh", x)
    if x.dtype is f64:
        return k.call_libm("tanh", x)
    t = expm1(k, _at_most(k, k.abs(x), 9.5) * 2.0)
    return k.copy_sign(t / (t + 2.0), x)


def erf(k: Builder, x: Value) -> Value:
    """The error function.   f32: 1 ulp.   Coefficients: N. Juffa's two-piece fit."""
    _check(k, "erf", x)
    if x.dtype is f64:
        return k.call_libm("erf", x)
    t, s = k.abs(x), x * x
    near = polynomial(k, s, (-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1))
    near = k.fma(near, x, x)
    c = _at_most(k, t, 4.0)
    far = polynomial(k, c, (-1.72853470e-5, 3.83197126e-4, -3.88396438e-3, 2.42546219e-2, -1.06777877e-1, -6.34846687e-1, -1.28717512e-1))
    far = k.copy_sign(1.0 - exp_below(k, k.fma(far, c, -c)), x)
    return k.select(t > 0.927734375, far, near)


# (normal distribution function of x - 1/2) / x as a quotient of polynomials of x^2 up to 5.6^2, by weighted least squares: 2.2e-8
_NORMAL = (
    (2.22963052e-8, 6.28958196e-6, 1.68927654e-4, 4.67734132e-3, 3.39290798e-2, 0.398942262),
    (1.17960951e-6, 7.33426641e-5, 1.88548525e-3, 2.86775530e-2, 0.251713932, 1.0),
)


def gelu(k: Builder, x: Value) -> Value:
    """x times the normal distribution function of x, for f32: within 1.8e-7 |x|; the formula with an erf of 1 ulp is within 1.1e-7 |x|."""
    t = _at_most(k, x * x, 5.6 * 5.6)
    above, below = (polynomial(k, t, c) for c in _NORMAL)
    part = _at_least(k, _at_most(k, x * (above / below), 0.5), -0.5)
    return (part + 0.5) * x


def gelu_tanh(k: Builder, x: Value) -> Value:
    """x (1 + tanh(u)) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3), for f32, as x sigmoid(2 u): within 2e-7 |x|."""
    x = _at_least(k, x, -10.0)  # where it is -1.2e-37
    twice = x * k.fma(x * x, -0.044715 * 1.5957691216057308, -1.5957691216057308)
    return x / (exp_below(k, twice) + 1.0)


def erfc(k: Builder, x: Value) -> Value:
    """1 - erf(x), from the C library."""
    _check(k, "erfc", x)
    return k.call_libm("erfc", x)


_SIN = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COS = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_TRIG_LIMIT = 50000.0  # beyond it the three parts of pi/2 are not enough


def _trigonometric(k: Builder, x: Value, name: str, turn: int) -> Value:
    """sin(x + turn * pi/2)"""
    _check(k, name, x)
    if x.dtype is f64:
        return k.call_libm(name, x)
    shifted = k.fma(x, 0.6366197723675814, _ROUND)
    quadrant = k.bitcast(shifted, i32) + turn
    j = shifted - _ROUND
    r = k.fma(j, -5.39030253e-15, k.fma(j, -3.13916473e-07, k.fma(j, -1.57079601e00, x)))
    z = r * r
    sine = k.fma(polynomial(k, z, _SIN) * z, r, r)
    sine = k.select(x == 0.0, x, sine) if turn == 0 else sine  # keeps the sign of -0
    cosine = k.fma(polynomial(k, z, _COS), z * z, k.fma(z, -0.5, 1.0))
    value = k.select((quadrant & 1) == 0, sine, cosine)
    sign = k.bitcast(quadrant & 2, u32) << 30
    result = k.var(k.bitcast(k.bitcast(value, u32) ^ sign, f32))
    large = ~(k.abs(x) <= _TRIG_LIMIT)
    with k.when(k.reduce(large, "or")):
        result.set(k.select(large, k.call_libm(name, x), result.get()))
    return result.get()


def sin(k: Builder, x: Value) -> Value:
    """Sine.   f32: 1.6 ulp; beyond 50000 the C library's."""
    return _trigonometric(k, x, "sin", 0)


def cos(k: Builder, x: Value) -> Value:
    """Cosine.   f32: 1.6 ulp; beyond 50000 the C library's."""
    return _trigonometric(k, x, "cos", 1)


def _log_double(k: Builder, x: Value) -> Value:
    """log of a positive normal f64, to 1e-12: enough for a power in f32."""
    bits = k.bitcast(x, i64) - 0x3FE6A09E667F3BCD
    # the exponent, moved into the low bits of 1.5 * 2^52, is a double after subtracting that
    e = k.bitcast((bits >> 52) + 0x4338000000000000, f64) - 6755399441055744.0
    m = k.bitcast((bits & 0xFFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD, f64)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    odd = polynomial(k, z, (2 / 15, 2 / 13, 2 / 11, 2 / 9, 2 / 7, 2 / 5, 2 / 3, 2.0))
    return k.fma(e, _LN2, odd * s)


def _exp_double(k: Builder, x: Value) -> Value:
    """exp of an f64 in -700 .. 700, to 1e-12."""
    shifted = k.fma(x, 1.0 / _LN2, 6755399441055744.0)
    whole = shifted - 6755399441055744.0
    r = k.fma(whole, -1.9082149292705877e-10, k.fma(whole, -0.6931471803691238, x))
    p = polynomial(k, r, (1 / 3628800, 1 / 362880, 1 / 40320, 1 / 5040, 1 / 720, 1 / 120, 1 / 24, 1 / 6, 0.5, 1.0, 1.0))
    return p * k.bitcast((k.bitcast(shifted, i64) + (1023 - 0x4338000000000000)) << 52, f64)


def pow(k: Builder, x: Value, y: Value) -> Value:
    """x^y.   f32: computed in f64, 0.6 ulp."""
    _check(k, "pow", x)
    if x.dtype is f64:
        return k.call_libm("pow", x, y)
    a = k.abs(x)
    plain = (a > 0.0) & (a < _INF)
    exponent = k.convert(y, f64)
    product = exponent * _log_double(k, k.convert(k.select(plain, a, 1.0), f64))
    limited = k.select(product > 200.0, 200.0, k.select(product < -200.0, -200.0, product))
    result = k.convert(_exp_double(k, limited), f32)
    result = k.select(plain, result, k.select((a > 1.0) ^ (y < 0.0), _INF, 0.0))  # of 0 and of infinity
    result = k.select((a == 1.0) & ~k.is_nan(y), 1.0, result)
    integer = k.trunc(y) == y
    odd = integer & (k.trunc(y * 0.5) * 2.0 != y) & (k.abs(y) < _INF)
    result = k.select(odd, k.copy_sign(result, x), result)
    result = k.select((x < 0.0) & (x > -_INF) & ~integer & ~k.is_nan(y), float("nan"), result)
    result = k.select(k.is_nan(x) | k.is_nan(y), x + y, result)
    return k.select((y == 0.0) | (x == 1.0), 1.0, result)


def tan(k: Builder, x: Value) -> Value:
    """Tangent, from the C library."""
    _check(k, "tan", x)
    return k.call_libm("tan", x)


def asin(k: Builder, x: Value) -> Value:
    """Arc sine, from the C library."""
    _check(k, "asin", x)
    return k.call_libm("asin", x)


def acos(k: Builder, x: Value) -> Value:
    """Arc cosine, from the C library."""
    _check(k, "acos", x)
    return k.call_libm("acos", x)


def atan(k: Builder, x: Value) -> Value:
    """Arc tangent, from the C library."""
    _check(k, "atan", x)
    return k.call_libm("atan", x)


def atan2(k: Builder, y: Value, x: Value) -> Value:
    """Angle of the point (x, y), from the C library."""
    _check(k, "atan2", y)
    return k.call_libm("atan2", y, x)


def sinh(k: Builder, x: Value) -> Value:
    """Hyperbolic sine, from the C library."""
    _check(k, "sinh", x)
    return k.call_libm("sinh", x)


def cosh(k: Builder, x: Value) -> Value:
    """Hyperbolic cosine, from the C library."""
    _check(k, "cosh", x)
    return k.call_libm("cosh", x)


def asinh(k: Builder, x: Value) -> Value:
    """Inverse hyperbolic sine, from the C library."""
    _check(k, "asinh", x)
    return k.call_libm("asinh", x)


def acosh(k: Builder, x: Value) -> Value:
    """Inverse hyperbolic cosine, from the C library."""
    _check(k, "acosh", x)
    return k.call_libm("acosh", x)


def atanh(k: Builder, x: Value) -> Value:
    """Inverse hyperbolic tangent, from the C library."""
    _check(k, "atanh", x)
    return k.call_libm("atanh", x)
