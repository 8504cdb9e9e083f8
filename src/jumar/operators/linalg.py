"""Matrices taken apart: inverse, Cholesky, QR, singular values, eigenvalues, triangular systems.

In: square matrices or others in the last two dimensions.  Out: their factors.  The host computes them with LAPACK (numpy.linalg).
"""
# mypy: disable-error-code="override, no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np

from jumar.base import Array, OpError, TensorType, c64, c128, f32, f64
from jumar.ir import Node, Result, constant, f32t, sample
from jumar.operators.contraction import matmul
from jumar.operators.elementwise import Grads, add, mul, neg, select
from jumar.operators.families import Special, wide
from jumar.operators.movement import reshape, sum_to, transpose

POSITIVE = np.array([[4, 1, 0], [1, 3, 1], [0, 1, 2]], np.float32)


def turned(x: Node) -> Node:
    """The last two dimensions exchanged."""
    return transpose(x, (*range(x.rank - 2), x.rank - 1, x.rank - 2))


def check_square(name: str, x: TensorType) -> None:
    """Refuses what is no stack of square matrices."""
    if x.rank < 2 or x.shape[-1] != x.shape[-2]:
        raise OpError(f"{name}: x must be square matrices, got {x}", code="dimension-mismatch")


def _triangle(x: Node, *, upper: bool, diagonal: int = 0) -> Node:
    rows, columns = x.shape[-2:]
    keep = np.tri(rows, columns, diagonal - 1 if upper else diagonal, dtype=np.bool_)
    return select(constant(~keep if upper else keep), x, 0)


class Inverse(Special):
    """The inverse of each square matrix."""

    signature = "x[..., n, n] -> y[..., n, n]"
    samples = (sample(POSITIVE), sample(np.stack([POSITIVE, POSITIVE * 2])))
    cann = "aclnnInverse"

    def infer(self, *types: TensorType) -> Result:
        check_square(self.name, types[0])
        return types[0]

    def reference(self, x: Array) -> Array:
        return np.linalg.inv(wide(x)).astype(x.dtype)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (neg(matmul(turned(y), matmul(dy, turned(y)))),)


class Cholesky(Special):
    """The lower triangle l with l l^T = x, of each positive matrix."""

    signature = "x[..., n, n] -> y[..., n, n]"
    samples = (sample(POSITIVE),)

    def infer(self, *types: TensorType) -> Result:
        check_square(self.name, types[0])
        return types[0]

    def reference(self, x: Array) -> Array:
        return np.linalg.cholesky(wide(x)).astype(x.dtype)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        inner = matmul(turned(y), dy)
        half = mul(add(_triangle(inner, upper=False), _triangle(inner, upper=False, diagonal=-1)), 0.5)
        back = Inverse()(y)
        whole = matmul(turned(back), matmul(half, back))
        return (mul(add(whole, turned(whole)), 0.5),)


class SolveTriangular(Special):
    """x with a x = b, where a is triangular.   upper: which triangle counts; transposed: a^T x = b; unit: ones on the diagonal."""

    upper: bool = True
    transposed: bool = False
    unit: bool = False
    signature = "a[..., n, n], b[..., n, m] -> x[..., n, m]"
    samples = (sample(np.triu(POSITIVE), f32t(3, 2)), sample(np.tril(POSITIVE), f32t(3, 1), upper=False, transposed=True))

    def infer(self, *types: TensorType) -> Result:
        a, b = types
        check_square(self.name, a)
        return b

    def reference(self, a: Array, b: Array) -> Array:
        matrix = np.triu(wide(a)) if self.upper else np.tril(wide(a))
        if self.unit:
            matrix = np.where(np.eye(a.shape[-1], dtype=np.bool_), np.ones((), matrix.dtype), matrix)
        matrix = np.swapaxes(matrix, -1, -2) if self.transposed else matrix
        return np.linalg.solve(matrix, wide(b)).astype(b.dtype)

    def grad(self, a: Node, b: Node, y: Node, dy: Node) -> Grads:
        db = SolveTriangular(self.upper, not self.transposed, self.unit)(a, dy)
        outer = neg(matmul(y, turned(db)) if self.transposed else matmul(db, turned(y)))
        kept = _triangle(outer, upper=self.upper, diagonal=(1 if self.upper else -1) if self.unit else 0)
        return sum_to(kept, a.shape), db


class Solve(Special):
    """x with a x = b."""

    signature = "a[..., n, n], b[..., n, m] -> x[..., n, m]"
    samples = (sample(POSITIVE, f32t(3, 2)),)

    def infer(self, *types: TensorType) -> Result:
        check_square(self.name, types[0])
        return types[1]

    def reference(self, a: Array, b: Array) -> Array:
        return np.linalg.solve(wide(a), wide(b)).astype(b.dtype)

    def grad(self, a: Node, b: Node, y: Node, dy: Node) -> Grads:
        db = Solve()(turned(a), dy)
        return sum_to(neg(matmul(db, turned(y))), a.shape), db


class Qr(Special):
    """q and r with q r = x.   complete: q is square."""

    complete: bool = False
    signature = "x[..., m, n] -> q[..., m, k], r[..., k, n]"
    samples = (sample(f32t(4, 3)), sample(f32t(2, 3, 5), complete=True))

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        if x.rank < 2:
            raise OpError(f"qr: x must be matrices, got {x}", code="rank")
        m, n = x.dims[-2:]
        k = m if self.complete else min(m, n)
        return x.with_shape((*x.shape[:-2], m, k)), x.with_shape((*x.shape[:-2], k, n))

    def reference(self, x: Array) -> tuple[Array, Array]:
        q, r = np.linalg.qr(wide(x), mode="complete" if self.complete else "reduced")
        return q.astype(x.dtype), r.astype(x.dtype)


class Svd(Special):
    """Singular values in descending order, and u and v with x = u diag(s) v^T.   full: u and v are square."""

    full: bool = False
    signature = "x[..., m, n] -> s[..., k], u[..., m, p], v[..., n, q]"
    samples = (sample(POSITIVE), sample(f32t(2, 3, 5)))

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        if x.rank < 2:
            raise OpError(f"svd: x must be matrices, got {x}", code="rank")
        m, n = x.dims[-2:]
        k = min(m, n)
        batch = x.shape[:-2]
        return x.with_shape((*batch, k)), x.with_shape((*batch, m, m if self.full else k)), x.with_shape((*batch, n, n if self.full else k))

    def reference(self, x: Array) -> tuple[Array, Array, Array]:
        u, s, vh = np.linalg.svd(wide(x), full_matrices=self.full)
        return s.astype(x.dtype), u.astype(x.dtype), np.swapaxes(vh, -1, -2).astype(x.dtype)

    def grad(self, x: Node, y: tuple[Node, ...], dy: tuple[Node | None, ...]) -> tuple[Node | None]:
        """Through the singular values; those of u and v are not defined up to their signs, and refused."""
        ds, du, dv = dy
        if du is not None or dv is not None or self.full:
            raise OpError("svd: only the singular values have a gradient, got one for u or v", code="gradient-missing")
        if ds is None:
            return (None,)
        rows: Any = mul(y[1], _as_row(ds))
        return (matmul(rows, turned(y[2])),)


def _as_row(x: Node) -> Node:
    return reshape(x, (*x.shape[:-1], 1, x.shape[-1]))


class Eigh(Special):
    """Eigenvalues in ascending order and eigenvectors (columns) of symmetric matrices; the lower triangle counts."""

    signature = "x[..., n, n] -> w[..., n], v[..., n, n]"
    samples = (sample(POSITIVE),)

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        check_square(self.name, x)
        return x.with_shape(x.shape[:-1]), x

    def reference(self, x: Array) -> tuple[Array, Array]:
        w, v = np.linalg.eigh(wide(x))
        return w.astype(x.dtype), v.astype(x.dtype)


class Eigvals(Special):
    """Eigenvalues of square matrices: complex."""

    signature = "x[..., n, n] -> w[..., n]"
    samples = (sample(POSITIVE),)

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        check_square(self.name, x)
        return TensorType(x.shape[:-1], {f32: c64, f64: c128}.get(x.dtype, x.dtype))

    def reference(self, x: Array) -> Array:
        return np.linalg.eigvals(wide(x)).astype(np.complex128 if x.dtype == np.float64 else np.complex64)
