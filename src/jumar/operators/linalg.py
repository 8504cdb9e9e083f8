"""Matrices taken apart: inverse, Cholesky, QR, singular values, eigenvalues, systems of equations.

In: matrices in the last two dimensions.  Out: their factors.  The host computes them with LAPACK (numpy.linalg); gradients are formulas in products of them.
"""
# mypy: disable-error-code="override, no-any-return"

from __future__ import annotations

import numpy as np

from jumar.base import Array, OpError, TensorType, c64, c128, f32, f64
from jumar.ir import Node, Result, constant, f32t, sample
from jumar.operators.contraction import matmul
from jumar.operators.elementwise import Grads, add, div, mul, neg, select, square, sub
from jumar.operators.families import Special, broadcast, wide
from jumar.operators.movement import Concat, reshape, slice_axis, sum_to, transpose

POSITIVE = np.array([[4, 1, 0.5], [1, 3, 1], [0.5, 1, 2]], np.float32)
TALL = np.array([[3, 1, 0], [1, -2, 1], [0, 1, 4], [2, 0, 1]], np.float32)


def turned(x: Node) -> Node:
    """The last two dimensions exchanged."""
    return transpose(x, (*range(x.rank - 2), x.rank - 1, x.rank - 2))


def check_matrices(name: str, x: TensorType, *, square: bool = False) -> None:
    """Refuses what is no stack of matrices with elements, or no stack of square ones."""
    if x.rank < 2 or (square and x.shape[-1] != x.shape[-2]) or 0 in x.shape or not x.dtype.is_float:
        raise OpError(f"{name}: x must be {'square ' if square else ''}matrices of floats, got {x}", code="dimension-mismatch")


def _triangle(x: Node, *, upper: bool, diagonal: int = 0) -> Node:
    rows, columns = x.shape[-2:]
    keep = np.tri(rows, columns, diagonal - 1 if upper else diagonal, dtype=np.bool_)
    return select(constant(~keep if upper else keep), x, 0)


def _even(x: Node) -> Node:
    """The mean of matrices and what they are turned."""
    return mul(add(x, turned(x)), 0.5)


def _diagonal(x: Node) -> Node:
    """Vectors as diagonal matrices."""
    n = x.shape[-1]
    return select(constant(np.eye(n, dtype=np.bool_)), reshape(x, (*x.shape[:-1], 1, n)), 0)


def _row(x: Node) -> Node:
    return reshape(x, (*x.shape[:-1], 1, x.shape[-1]))


def _apart(x: Node) -> Node:
    """1 / (x[j] - x[i]) beside the diagonal, 0 on it."""
    gaps = sub(_row(x), reshape(x, (*x.shape, 1)))
    eye = constant(np.eye(x.shape[-1], dtype=np.bool_))
    return select(eye, 0, div(1, select(eye, 1, gaps)))


class OfSquare(Special):
    """A function of square matrices that gives matrices of their size."""

    abstract = True
    signature = "x[..., n, n] -> y[..., n, n]"

    def infer(self, *types: TensorType) -> Result:
        check_matrices(self.name, types[0], square=True)
        return types[0]


class Inverse(OfSquare):
    """The inverse of each square matrix."""

    samples = (sample(POSITIVE), sample(np.stack([POSITIVE, POSITIVE * 2])))
    cann = "aclnnInverse"

    def reference(self, x: Array) -> Array:
        return np.linalg.inv(wide(x)).astype(x.dtype)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (neg(matmul(turned(y), matmul(dy, turned(y)))),)


class Cholesky(OfSquare):
    """The lower triangle l with l l^T = (x + x^T) / 2, of each positive matrix; NaN where there is none."""

    samples = (sample(POSITIVE), sample(np.stack([POSITIVE, POSITIVE * 2])))

    def reference(self, x: Array) -> Array:
        matrix = wide(x)
        even = (matrix + np.swapaxes(matrix, -1, -2)) / 2
        try:
            return np.linalg.cholesky(even).astype(x.dtype)
        except np.linalg.LinAlgError:
            return np.stack([_factor(m) for m in even.reshape(-1, *x.shape[-2:])]).reshape(x.shape).astype(x.dtype)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        inner = matmul(turned(y), dy)
        half = mul(add(_triangle(inner, upper=False), _triangle(inner, upper=False, diagonal=-1)), 0.5)
        back = Inverse()(y)
        return (_even(matmul(turned(back), matmul(half, back))),)


def _factor(x: Array) -> Array:
    try:
        return np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        return np.full_like(x, np.nan)


class System(Special):
    """Equations: the second input is the right side."""

    abstract = True
    signature = "a[..., n, n], b[..., n, m] -> x[..., n, m]"

    def infer(self, *types: TensorType) -> Result:
        a, b = types
        check_matrices(self.name, a, square=True)
        check_matrices(self.name, b)
        if a.shape[-1] != b.shape[-2] or a.dtype != b.dtype:
            raise OpError(f"{self.name}: b must have the rows and the element type of a, got {a} and {b}", code="dimension-mismatch")
        return b.with_shape((*broadcast(self.name, a.shape[:-2], b.shape[:-2]), *b.shape[-2:]))


class SolveTriangular(System):
    """x with a x = b, where a is triangular.   upper: which triangle counts; transposed: a^T x = b; unit: ones on the diagonal."""

    upper: bool = True
    transposed: bool = False
    unit: bool = False
    samples = (
        sample(POSITIVE, f32t(3, 2)),
        sample(POSITIVE, f32t(3, 1), upper=False, transposed=True),
        sample(POSITIVE, f32t(2, 3, 2), unit=True),
    )
    cann = "aclnnTriangularSolve"

    def reference(self, a: Array, b: Array) -> Array:
        matrix = np.triu(wide(a)) if self.upper else np.tril(wide(a))
        if self.unit:
            matrix = np.where(np.eye(a.shape[-1], dtype=np.bool_), np.ones((), matrix.dtype), matrix)
        matrix = np.swapaxes(matrix, -1, -2) if self.transposed else matrix
        return np.linalg.solve(*_same_rank(matrix, wide(b))).astype(b.dtype)

    def grad(self, a: Node, b: Node, y: Node, dy: Node) -> Grads:
        db = SolveTriangular(self.upper, not self.transposed, self.unit)(a, dy)
        outer = neg(matmul(y, turned(db)) if self.transposed else matmul(db, turned(y)))
        kept = _triangle(outer, upper=self.upper, diagonal=(1 if self.upper else -1) if self.unit else 0)
        return sum_to(kept, a.shape), sum_to(db, b.shape)


class Solve(System):
    """x with a x = b."""

    samples = (sample(POSITIVE, f32t(3, 2)), sample(POSITIVE, f32t(2, 3, 2)))

    def reference(self, a: Array, b: Array) -> Array:
        return np.linalg.solve(*_same_rank(wide(a), wide(b))).astype(b.dtype)

    def grad(self, a: Node, b: Node, y: Node, dy: Node) -> Grads:
        db = Solve()(turned(a), dy)
        return sum_to(neg(matmul(db, turned(y))), a.shape), sum_to(db, b.shape)


def _same_rank(a: Array, b: Array) -> tuple[Array, Array]:
    """Both of one rank, so that NumPy takes no stack for vectors."""
    rank = max(a.ndim, b.ndim)
    return a.reshape(*(1,) * (rank - a.ndim), *a.shape), b.reshape(*(1,) * (rank - b.ndim), *b.shape)


class Qr(Special):
    """q and r with q r = x.   complete: q is square."""

    complete: bool = False
    signature = "x[..., m, n] -> q[..., m, k], r[..., k, n]"
    samples = (sample(TALL), sample(np.stack([POSITIVE, POSITIVE * 2]), complete=True), sample(TALL.T.copy()))

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        check_matrices(self.name, x)
        m, n = x.dims[-2:]
        k = m if self.complete else min(m, n)
        return x.with_shape((*x.shape[:-2], m, k)), x.with_shape((*x.shape[:-2], k, n))

    def reference(self, x: Array) -> tuple[Array, Array]:
        q, r = np.linalg.qr(wide(x), mode="complete" if self.complete else "reduced")
        return q.astype(x.dtype), r.astype(x.dtype)

    def grad(self, x: Node, y: tuple[Node, ...], dy: tuple[Node | None, ...]) -> Grads:
        """Of a wide matrix [a, b]: r = [q^T a, q^T b], and q is that of a."""
        q, r = y
        m, n = x.shape[-2:]
        if m > n and self.complete:
            raise OpError(f"qr: a complete q of more columns than x must have no gradient, got one for {x.type}", code="gradient-missing")
        dq = dy[0] if dy[0] is not None else mul(q, 0)
        dr = dy[1] if dy[1] is not None else mul(r, 0)
        right = None
        if m < n:
            axis = x.rank - 1
            rest, drest = slice_axis(x, axis, m, n), slice_axis(dr, axis, m, n)
            right = matmul(q, drest)
            dq = add(dq, matmul(rest, turned(drest)))
            r, dr = slice_axis(r, axis, 0, m), slice_axis(dr, axis, 0, m)
        inner = sub(matmul(r, turned(dr)), matmul(turned(dq), q))
        whole = add(_triangle(inner, upper=False), turned(_triangle(inner, upper=False, diagonal=-1)))
        left = turned(SolveTriangular()(r, turned(add(dq, matmul(q, whole)))))
        return (_joined(left, right),)


def _joined(left: Node, right: Node | None) -> Node:

    return left if right is None else Concat(left.rank - 1)(left, right)


class Svd(Special):
    """Singular values in descending order, and u and v with x = u diag(s) v^T.   full: u and v are square."""

    full: bool = False
    signature = "x[..., m, n] -> s[..., k], u[..., m, p], v[..., n, q]"
    samples = (sample(POSITIVE), sample(np.stack([TALL, TALL[::-1] * 2])), sample(TALL.T.copy()))

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        check_matrices(self.name, x)
        m, n = x.dims[-2:]
        k = min(m, n)
        batch = x.shape[:-2]
        return x.with_shape((*batch, k)), x.with_shape((*batch, m, m if self.full else k)), x.with_shape((*batch, n, n if self.full else k))

    def reference(self, x: Array) -> tuple[Array, Array, Array]:
        u, s, vh = np.linalg.svd(wide(x), full_matrices=self.full)
        return s.astype(x.dtype), u.astype(x.dtype), np.swapaxes(vh, -1, -2).astype(x.dtype)

    def grad(self, x: Node, y: tuple[Node, ...], dy: tuple[Node | None, ...]) -> Grads:
        s, u, v = y
        ds, du, dv = dy
        if self.full and x.shape[-1] != x.shape[-2] and (du is not None or dv is not None):
            raise OpError(f"svd: full u and v must have no gradient where x is not square, got one for {x.type}", code="gradient-missing")
        k = s.shape[-1]
        if self.full:
            u, v = slice_axis(u, u.rank - 1, 0, k), slice_axis(v, v.rank - 1, 0, k)
        inner = _diagonal(ds) if ds is not None else mul(_diagonal(s), 0)
        apart = _apart(square(s))
        outside = None
        if du is not None:
            turn = matmul(turned(u), du)
            inner = add(inner, mul(mul(apart, sub(turn, turned(turn))), _row(s)))
            beside = matmul(div(sub(du, matmul(u, turn)), _row(s)), turned(v))
            outside = beside
        if dv is not None:
            turn = matmul(turned(v), dv)
            inner = add(inner, mul(reshape(s, (*s.shape, 1)), mul(apart, sub(turn, turned(turn)))))
            beside = matmul(div(u, _row(s)), turned(sub(dv, matmul(v, turn))))
            outside = beside if outside is None else add(outside, beside)
        main = matmul(matmul(u, inner), turned(v))
        return (main if outside is None else add(main, outside),)


class Eigh(Special):
    """Eigenvalues in ascending order and eigenvectors (columns) of symmetric matrices: of (x + x^T) / 2."""

    signature = "x[..., n, n] -> w[..., n], v[..., n, n]"
    samples = (sample(POSITIVE), sample(np.stack([POSITIVE, POSITIVE * 2])))

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        check_matrices(self.name, x, square=True)
        return x.with_shape(x.shape[:-1]), x

    def reference(self, x: Array) -> tuple[Array, Array]:
        matrix = wide(x)
        w, v = np.linalg.eigh((matrix + np.swapaxes(matrix, -1, -2)) / 2)
        return w.astype(x.dtype), v.astype(x.dtype)

    def grad(self, x: Node, y: tuple[Node, ...], dy: tuple[Node | None, ...]) -> Grads:
        (w, v), (dw, dv) = y, dy
        inner = _diagonal(dw) if dw is not None else mul(_diagonal(w), 0)
        if dv is not None:
            inner = add(inner, mul(_apart(w), matmul(turned(v), dv)))
        return (_even(matmul(matmul(v, inner), turned(v))),)


class Eigvals(Special):
    """Eigenvalues of square matrices: complex."""

    signature = "x[..., n, n] -> w[..., n]"
    samples = (sample(POSITIVE),)

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        check_matrices(self.name, x, square=True)
        return TensorType(x.shape[:-1], {f32: c64, f64: c128}.get(x.dtype, c64))

    def reference(self, x: Array) -> Array:
        return np.linalg.eigvals(wide(x)).astype(np.complex128 if x.dtype == np.float64 else np.complex64)
