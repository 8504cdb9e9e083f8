"""Matrices taken apart and systems solved; distances; complex numbers; special functions by formulas.

In: tensors.  Out: tensors.  Factorisations are operators that the host runs; special functions are elementwise formulas, so that they fuse and have gradients.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jumar import operators as o
from jumar.ops import arithmetic as a
from jumar.ops import movement as s
from jumar.ops import reduction as r
from jumar.ops.creation import eye, made
from jumar.ops.linalg import matmul
from jumar.ops.operands import I64, Tensor, apply, as_tensor, cast, constant, eager, floating, numpy_dtype, operands, wrap


# ------------------------------------------------------------------------------------------------------------- matrices
def inverse(input: Any) -> Tensor:
    """The inverse of square matrices."""
    return apply(o.Inverse(), floating(input))  # type: ignore[no-any-return]


def det(input: Any) -> Tensor:
    """The determinant of square matrices."""
    return apply(o.Det(), floating(input))  # type: ignore[no-any-return]


def slogdet(input: Any) -> tuple[Tensor, Tensor]:
    """The sign and the logarithm of the size of the determinant."""
    value = det(input)
    return a.sign(value), a.log(a.abs(value))


def logdet(input: Any) -> Tensor:
    """The logarithm of the determinant."""
    return a.log(det(input))  # type: ignore[no-any-return]


def cholesky(input_x: Any, upper: bool = False) -> Tensor:
    """The lower (or upper) triangular factor of positive matrices."""
    y: Tensor = apply(o.Cholesky(), floating(input_x))
    return s.adjoint(y) if upper else y


def cholesky_inverse(input_x: Any, upper: bool = False) -> Tensor:
    """The inverse of a positive matrix from its triangular factor."""
    x = as_tensor(input_x)
    return inverse(matmul(s.adjoint(x), x) if upper else matmul(x, s.adjoint(x)))


def cholesky_solve(input: Any, input2: Any, upper: bool = False) -> Tensor:
    """x with (l l^T) x = input, from the triangular factor l."""
    factor = as_tensor(input2)
    first = apply(o.SolveTriangular(upper, upper), factor, as_tensor(input))
    return apply(o.SolveTriangular(upper, not upper), factor, first)  # type: ignore[no-any-return]


def triangular_solve(b: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False) -> tuple[Tensor, Tensor]:
    """x with A x = b for triangular A, and A."""
    matrix = floating(A)
    return apply(o.SolveTriangular(bool(upper), bool(transpose), bool(unitriangular)), matrix, floating(b)), matrix


def matrix_solve(matrix: Any, rhs: Any, adjoint: bool = False) -> Tensor:
    """x with matrix x = rhs."""
    x = floating(matrix)
    return apply(o.Solve(), s.adjoint(x) if adjoint else x, floating(rhs))  # type: ignore[no-any-return]


def qr(input: Any, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """q and r with q r = x.   mode: reduced or complete."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode must be 'reduced' or 'complete', got {mode!r}")
    return apply(o.Qr(mode == "complete"), floating(input))  # type: ignore[no-any-return]


def svd(input: Any, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """Singular values, and u and v with x = u diag(s) v^T."""
    found = apply(o.Svd(bool(full_matrices and compute_uv)), floating(input))
    return found if compute_uv else found[0]


def pinv(x: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """The pseudo-inverse."""
    tensor = floating(x)
    values, u, v = svd(tensor)
    limit = np.finfo(numpy_dtype(tensor)).eps * max(tensor.shape[-2:]) if rtol is None and atol is None else rtol or 0.0
    least = a.add(a.mul(r.amax(values, -1, True), limit), atol or 0.0)
    flat = a.where(a.greater(values, least), a.reciprocal(values), 0.0)
    return matmul(a.mul(v, s.unsqueeze(flat, -2)), s.adjoint(u))


def eigvals(A: Any) -> Tensor:
    """The eigenvalues of square matrices."""
    return apply(o.Eigvals(), floating(A))  # type: ignore[no-any-return]


def eigh(A: Any) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of symmetric matrices."""
    return apply(o.Eigh(), floating(A))  # type: ignore[no-any-return]


def matrix_power(input: Any, n: int) -> Tensor:
    """The matrix times itself, n times."""
    x = as_tensor(input)
    if n < 0:
        x, n = inverse(x), -n
    result: Tensor | None = None
    while n:
        if n & 1:
            result = x if result is None else matmul(result, x)
        n >>= 1
        if n:
            x = matmul(x, x)
    return s.broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape) if result is None else result


def matrix_exp(input: Any) -> Tensor:
    """e to the power of the matrix: scaled by 2^-8, Taylor's series of 12 terms, squared back."""
    x = floating(input)
    small = a.mul(x, 2.0**-8)
    term = total = s.broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape)
    for i in range(1, 13):
        term = a.div(matmul(term, small), float(i))
        total = a.add(total, term)
    for _ in range(8):
        total = matmul(total, total)
    return total


def lstsq(input: Any, A: Any) -> Tensor:
    """x that makes |input x - A| least."""
    x = floating(input)
    return matmul(pinv(x), floating(A))


def cond(A: Any, p: Any = None) -> Tensor:
    """The condition number: the norm times the norm of the inverse."""
    x = floating(A)
    if p in (None, 2, -2):
        values = svd(x, compute_uv=False)
        ends = r.amax(values, -1), r.amin(values, -1)
        return a.div(*(ends if p != -2 else ends[::-1]))
    return a.mul(r.matrix_norm(x, p), r.matrix_norm(inverse(x), p))


def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
    """The covariances of the rows."""
    x = floating(input)
    if x.ndim < 2:
        x = s.reshape(x, (1, -1))
    n = x.shape[1]
    weights = None
    for part in (fweights, aweights):
        if part is not None:
            weights = part if weights is None else a.mul(weights, part)
    if weights is None:
        centered = a.sub(x, r.mean(x, 1, True))
        total: Any = float(n)
        scaled, square = centered, total
    else:
        total = r.sum(weights)
        centered = a.sub(x, a.div(r.sum(a.mul(x, weights), 1, True), total))
        scaled = a.mul(centered, weights)
        square = total if aweights is None else a.div(r.sum(a.mul(weights, aweights)), total)
    left = (
        total - correction if isinstance(total, float) else a.sub(total, a.mul(square, correction) if aweights is not None else correction)
    )
    y = a.div(matmul(scaled, s.adjoint(centered)), left)
    return s.reshape(y, ()) if as_tensor(input).ndim < 2 else y


# ------------------------------------------------------------------------------------------------------------- distances
def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: str = "") -> Tensor:
    """The p-norm of the difference of each row with each row."""
    x, y = operands(x1, x2)
    return _p_norm(a.sub(s.unsqueeze(x, -2), s.unsqueeze(y, -3)), p)


def _p_norm(x: Tensor, p: float) -> Tensor:
    if p == 2:  # whose gradient at 0 is 0
        total = r.sum(a.square(x), -1)
        zero = a.equal(total, 0)
        return a.where(zero, 0.0, a.sqrt(a.where(zero, 1.0, total)))
    return r.vector_norm(x, p, -1)


def pdist(input: Any, p: float = 2.0) -> Tensor:
    """The p-norm of the difference of each pair of rows."""
    x = floating(input)
    i, j = np.triu_indices(x.shape[-2], 1)
    pick = o.Gather(x.ndim - 2)
    return _p_norm(a.sub(apply(pick, x, constant(i)), apply(pick, x, constant(j))), p)


def dist(input: Any, other: Any, p: float = 2) -> Tensor:
    """The p-norm of the difference."""
    return r.vector_norm(a.sub(input, other), p)


# -------------------------------------------------------------------------------------------------------- whole numbers
def gcd(input: Any, other: Any) -> Tensor:
    """The greatest common divisor."""
    x, y = operands(input, other)
    x, y = a.abs(x), a.abs(y)
    for _ in range(93 if numpy_dtype(x).itemsize == 8 else 47):  # Lamé: as many steps as Fibonacci numbers fit
        again = a.not_equal(y, 0)
        if eager() and not bool(r.any(again)):
            break
        x, y = a.where(again, y, x), a.where(again, a.remainder(x, a.where(again, y, 1)), 0)
    return x


def lcm(input: Any, other: Any) -> Tensor:
    """The least common multiple."""
    x, y = operands(input, other)
    common = gcd(x, y)
    return a.abs(a.mul(a.floor_divide(x, a.maximum(common, 1)), y))  # type: ignore[no-any-return]


# -------------------------------------------------------------------------------------------------------- complex numbers
def _host(function: Any, *tensors: Any) -> Tensor:
    arrays = [as_tensor(t).array for t in tensors]
    y = np.asarray(function(*arrays))
    return wrap(np.ascontiguousarray(y)) if eager() else made(y)


def _is_complex(x: Any) -> bool:
    return isinstance(x, Tensor) and numpy_dtype(x).kind == "c"


def real(input: Any) -> Tensor:
    """The real part."""
    return _host(np.real, input) if _is_complex(input) else as_tensor(input)


def imag(input: Any) -> Tensor:
    """The imaginary part."""
    return _host(np.imag, input) if _is_complex(input) else a.mul(input, 0)


def conj(input: Any) -> Tensor:
    """The complex conjugate."""
    return _host(np.conj, input) if _is_complex(input) else as_tensor(input)


def angle(input: Any) -> Tensor:
    """The angle of a complex number."""
    if _is_complex(input):
        return _host(np.angle, input)
    x = floating(input)
    return a.where(a.less(x, 0), math.pi, a.where(a.isnan(x), math.nan, a.mul(x, 0.0)))


def complex_of(real: Any, imag: Any) -> Tensor:
    """The complex number of a real and an imaginary part."""
    return _host(lambda x, y: (x + 1j * y).astype(np.complex128 if x.dtype == np.float64 else np.complex64), *operands(real, imag))


def polar(abs: Any, angle: Any) -> Tensor:
    """The complex number of a size and an angle."""
    size, turn = operands(abs, angle)
    return complex_of(a.mul(size, a.cos(turn)), a.mul(size, a.sin(turn)))


def view_as_real(input: Any) -> Tensor:
    """Real and imaginary parts as a last dimension."""
    return s.stack([real(input), imag(input)], -1)


def is_complex(input: Any) -> bool:
    """Whether the elements are complex."""
    return as_tensor(input).dtype.kind == "Complex"


def is_floating_point(input: Any) -> bool:
    """Whether the elements are floats."""
    return as_tensor(input).dtype.is_floating_point


def isreal(input: Any) -> Tensor:
    """True where the imaginary part is zero."""
    return a.equal(imag(input), 0)  # type: ignore[no-any-return]


# ------------------------------------------------------------------------------------------------------ special functions
def polynomial(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """Horner's rule, the highest power first."""
    y: Any = a.add(a.mul(x, coefficients[0]), coefficients[1])
    for c in coefficients[2:]:
        y = a.add(a.mul(y, x), c)
    return y  # type: ignore[no-any-return]


# Giles, Approximating the erfinv function (2010): single precision
_NEAR = (
    2.81022636e-08,
    3.43273939e-07,
    -3.5233877e-06,
    -4.39150654e-06,
    0.00021858087,
    -0.00125372503,
    -0.00417768164,
    0.246640727,
    1.50140941,
)
_FAR = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682)


def erfinv(input: Any) -> Tensor:
    """The number whose error function is x."""
    x = floating(input)
    w = a.neg(a.log(a.mul(a.sub(1, x), a.add(1, x))))
    far = a.greater_equal(w, 5.0)
    near_at, far_at = a.sub(a.where(far, 0.0, w), 2.5), a.sub(a.sqrt(a.where(far, w, 9.0)), 3.0)
    y = a.stop_gradient(a.mul(a.where(far, polynomial(far_at, _FAR), polynomial(near_at, _NEAR)), x))
    for _ in range(2 if numpy_dtype(x) == np.float64 else 1):  # Newton's steps, which carry the exact gradient, too
        y = a.stop_gradient(y)
        y = a.sub(y, a.mul(a.sub(a.erf(y), x), a.mul(a.exp(a.square(y)), math.sqrt(math.pi) / 2)))
    return a.where(a.equal(a.abs(x), 1), a.stop_gradient(a.mul(x, math.inf)), y)


# Lanczos, A precision approximation of the gamma function (1964), with g = 7 and 9 terms
_LANCZOS = (
    676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905, -0.13857109526572012,
    9.9843695780195716e-6, 1.5056327351493116e-7,
)  # fmt: skip


def lgamma(input: Any) -> Tensor:
    """The logarithm of the size of the gamma function."""
    x = floating(input)
    low = a.less(x, 0.5)
    z = a.sub(a.where(low, a.sub(1, x), x), 1)
    total: Any = 0.99999999999980993
    for i, c in enumerate(_LANCZOS):
        total = a.add(total, a.div(c, a.add(z, float(i + 1))))
    t = a.add(z, 7.5)
    high = a.add(a.sub(a.mul(a.add(z, 0.5), a.log(t)), t), a.add(a.log(total), 0.5 * math.log(2 * math.pi)))
    mirrored = a.sub(math.log(math.pi), a.add(a.log(a.abs(a.sin(a.mul(a.sub(x, a.floor(x)), math.pi)))), high))
    return a.where(a.isinf(x), math.inf, a.where(low, mirrored, high))


def digamma(input: Any) -> Tensor:
    """The derivative of lgamma."""
    x = floating(input)
    low = a.less(x, 0.5)
    z = a.where(low, a.sub(1, x), x)
    shift: Any = 0.0
    for _ in range(6):  # z from 6 up, where the series is exact
        step = a.less(z, 6)
        shift = a.sub(shift, a.where(step, a.reciprocal(z), 0.0))
        z = a.where(step, a.add(z, 1), z)
    w = a.reciprocal(a.square(z))
    series = a.mul(w, polynomial(w, (-1 / 132, 1 / 240, -1 / 252, 1 / 120, -1 / 12)))
    y = a.add(a.add(a.sub(a.log(z), a.div(0.5, z)), series), shift)
    pole = a.logical_and(low, a.equal(x, a.floor(x)))
    turned = a.sub(y, a.div(math.pi, a.tan(a.mul(x, math.pi))))
    return a.where(pole, math.nan, a.where(low, turned, y))


def mvlgamma(input: Any, p: int) -> Tensor:
    """The multivariate log-gamma function of dimension p."""
    x = floating(input)
    total: Any = p * (p - 1) / 4 * math.log(math.pi)
    for i in range(p):
        total = a.add(total, lgamma(a.sub(x, i / 2)))
    return total  # type: ignore[no-any-return]


# Abramowitz and Stegun, Handbook of Mathematical Functions, 9.8.1 to 9.8.4
_I0_NEAR = (0.0045813, 0.0360768, 0.2659732, 1.2067492, 3.0899424, 3.5156229, 1.0)
_I0_FAR = (0.00392377, -0.01647633, 0.02635537, -0.02057706, 0.00916281, -0.00157565, 0.00225319, 0.01328592, 0.39894228)
_I1_NEAR = (0.00032411, 0.00301532, 0.02658733, 0.15084934, 0.51498869, 0.87890594, 0.5)
_I1_FAR = (-0.00420059, 0.01787654, -0.02895312, 0.02282967, -0.01031555, 0.00163801, -0.00362018, -0.03988024, 0.39894228)


def _bessel(x: Tensor, near: tuple[float, ...], far: tuple[float, ...], odd: bool, scaled: bool) -> Tensor:
    size = a.abs(x)
    is_far = a.greater(size, 3.75)
    inner = a.where(is_far, 1.0, size)
    low = polynomial(a.square(a.div(inner, 3.75)), near)
    outer = a.where(is_far, size, 4.0)
    high = a.div(polynomial(a.div(3.75, outer), far), a.sqrt(outer))
    if odd:
        low = a.mul(low, inner)
    y = a.where(is_far, high if scaled else a.mul(high, a.exp(outer)), a.mul(low, a.exp(a.neg(inner))) if scaled else low)
    return a.mul(y, a.sign(x)) if odd else y


def bessel_i0(x: Any) -> Tensor:
    """The modified Bessel function of the first kind, order 0."""
    return _bessel(floating(x), _I0_NEAR, _I0_FAR, False, False)


def bessel_i0e(x: Any) -> Tensor:
    """exp(-|x|) times bessel_i0."""
    return _bessel(floating(x), _I0_NEAR, _I0_FAR, False, True)


def bessel_i1(x: Any) -> Tensor:
    """The modified Bessel function of the first kind, order 1."""
    return _bessel(floating(x), _I1_NEAR, _I1_FAR, True, False)


def bessel_i1e(x: Any) -> Tensor:
    """exp(-|x|) times bessel_i1."""
    return _bessel(floating(x), _I1_NEAR, _I1_FAR, True, True)


def trapz(y: Any, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The area under the points."""
    tensor = floating(y)
    n = tensor.shape[dim]
    at = dim % tensor.ndim
    middle = a.mul(a.add(s.part(tensor, at, 1, n), s.part(tensor, at, 0, n - 1)), 0.5)
    if x is None:
        return a.mul(r.sum(middle, at), dx)
    steps = r.diff(x, 1, -1 if as_tensor(x).ndim == 1 else at)
    if steps.ndim == 1 and middle.ndim > 1:
        steps = s.reshape(steps, tuple(-1 if i == at else 1 for i in range(middle.ndim)))
    return r.sum(a.mul(middle, steps), at)


def vander(x: Any, N: int | None = None) -> Tensor:
    """Powers of the elements as rows, the highest first."""
    tensor = as_tensor(x)
    n = tensor.shape[0] if N is None else N
    powers = constant(np.arange(n - 1, -1, -1).astype(np.float32 if numpy_dtype(tensor).kind == "f" else np.int64))
    return cast(a.pow(s.unsqueeze(tensor, 1), powers), numpy_dtype(tensor))


def cartesian_prod(*inputs: Any) -> Tensor:
    """All combinations of one element of each vector."""
    if len(inputs) == 1:
        return as_tensor(inputs[0])
    from jumar.ops.creation import meshgrid  # noqa: PLC0415

    return s.stack([s.ravel(g) for g in meshgrid(*inputs, indexing="ij")], 1)


def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of r elements of a vector."""
    import itertools  # noqa: PLC0415

    x = as_tensor(input)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    index = np.array(list(choose(range(x.shape[0]), r)), np.int64).reshape(-1, r)
    return apply(o.Gather(0), x, constant(index))  # type: ignore[no-any-return]


def block_diag(*inputs: Any) -> Tensor:
    """The matrices on the diagonal of one."""
    parts = [s.atleast_2d(x) for x in inputs]
    width = sum(p.shape[1] for p in parts)
    rows, at = [], 0
    for p in parts:
        rows.append(apply(o.Pad((0, at), (0, width - at - p.shape[1])), p))
        at += p.shape[1]
    return s.cat(rows, 0)


def population_count(input_x: Any) -> Tensor:
    """How many bits are set."""
    x = as_tensor(input_x)
    bits = constant(np.arange(numpy_dtype(x).itemsize * 8).astype(numpy_dtype(x)))
    one = a.bitwise_and(a.bitwise_right_shift(s.unsqueeze(x, -1), bits), 1)
    return cast(r.sum(cast(a.not_equal(one, 0), I64), -1), "uint8")


matrix_determinant, log_matrix_determinant = det, slogdet

__all__ = [
    "angle", "bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "block_diag", "cartesian_prod", "cdist", "cholesky", "cholesky_inverse",
    "cholesky_solve", "combinations", "cond", "conj", "cov", "det", "digamma", "dist", "eigvals", "erfinv", "gcd", "imag", "inverse",
    "is_complex", "is_floating_point", "isreal", "lcm", "lgamma", "log_matrix_determinant", "logdet", "lstsq", "matrix_determinant",
    "matrix_exp", "matrix_power", "matrix_solve", "mvlgamma", "pdist", "pinv", "polar", "population_count", "qr", "real", "slogdet", "svd", "trapz",
    "vander", "view_as_real",
]  # fmt: skip
