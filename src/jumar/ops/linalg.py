"""Products of vectors and matrices.

In: tensors.  Out: tensors.  Decompositions (qr, svd, inverse ...) stand in decompose.py.
"""

from __future__ import annotations

import builtins
from typing import Any

from jumar import operators as o
from jumar.ops import arithmetic as a
from jumar.ops import movement as s
from jumar.ops import reduction as r
from jumar.ops.operands import Tensor, apply, as_tensor, cast, numpy_dtype, operands

_matmul = o.MatMul()


def matmul(input: Any, other: Any) -> Tensor:
    """Matrix product over the last two dimensions; the others broadcast; vectors are rows or columns."""
    x, w = operands(input, other)
    y: Tensor = apply(_matmul, x, w)
    dtype = numpy_dtype(x)
    return y if numpy_dtype(y) == dtype else cast(y, dtype)


def mm(input: Any, mat2: Any) -> Tensor:
    """Product of two matrices."""
    return _ranked("mm", 2, input, mat2)


def bmm(input: Any, mat2: Any) -> Tensor:
    """Products of matrices, batch by batch."""
    return _ranked("bmm", 3, input, mat2)


def batch_matmul(input: Any, other: Any) -> Tensor:
    """Products of matrices of one rank, batch by batch."""
    return matmul(input, other)


def mv(mat: Any, vec: Any) -> Tensor:
    """Product of a matrix and a vector."""
    return matmul(mat, vec)


def dot(input: Any, other: Any) -> Tensor:
    """The sum of the products of two vectors' elements."""
    x, y = as_tensor(input), as_tensor(other)
    if x.ndim == y.ndim == 1:
        return matmul(x, y)
    return tensor_dot(x, y, ([x.ndim - 1], [builtins.max(y.ndim - 2, 0)]))


def vdot(input: Any, other: Any) -> Tensor:
    """The sum of the products of two vectors' elements."""
    return matmul(input, other)


def vecdot(x: Any, y: Any, *, axis: int = -1) -> Tensor:
    """The sum of the products along an axis."""
    return r.sum(a.mul(x, y), axis)


def _ranked(name: str, rank: int, input: Any, other: Any) -> Tensor:
    x, y = as_tensor(input), as_tensor(other)
    if x.ndim != rank or y.ndim != rank:
        raise ValueError(f"{name}: inputs must have {rank} dimensions, got {x.shape} and {y.shape}")
    return matmul(x, y)


def outer(input: Any, vec2: Any) -> Tensor:
    """All products of two vectors' elements."""
    x, y = s.ravel(input), s.ravel(vec2)
    return a.mul(s.unsqueeze(x, 1), y)


def inner(input: Any, other: Any) -> Tensor:
    """Sums of products over the last dimensions."""
    x, y = as_tensor(input), as_tensor(other)
    if not x.ndim or not y.ndim:
        return a.mul(x, y)
    return tensor_dot(x, y, ([x.ndim - 1], [y.ndim - 1]))


def _scaled(input: Any, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """beta * input + alpha * product."""
    if alpha != 1:
        product = a.mul(product, alpha)
    if beta == 0:
        return product
    return a.add(input if beta == 1 else a.mul(input, beta), product)


def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * mat1 mat2."""
    return _scaled(input, mm(mat1, mat2), beta, alpha)


def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * mat vec."""
    return _scaled(input, matmul(mat, vec), beta, alpha)


def addr(input: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * (vec1 outer vec2)."""
    return _scaled(input, outer(vec1, vec2), beta, alpha)


def baddbmm(input: Any, batch1: Any, batch2: Any, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * batch1 batch2, batch by batch."""
    return _scaled(input, bmm(batch1, batch2), beta, alpha)


def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * the sum of batch1 batch2 over the batches."""
    return _scaled(input, r.sum(bmm(batch1, batch2), 0), beta, alpha)


def dense(input: Any, weight: Any, bias: Any = None) -> Tensor:
    """x w^T + bias."""
    w = as_tensor(weight)
    y = matmul(input, s.swapaxes(w, -1, -2) if w.ndim > 1 else w)
    return y if bias is None else a.add(y, bias)


def bidense(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Tensor:
    """x1 w x2 + bias, for each output."""
    y = einsum("...i,oij,...j->...o", input1, weight, input2)
    return y if bias is None else a.add(y, bias)


def tensor_dot(x1: Any, x2: Any, axes: Any) -> Tensor:
    """Sums of products over pairs of axes."""
    x, y = operands(x1, x2)
    if isinstance(axes, int):
        left, right = list(range(x.ndim - axes, x.ndim)), list(range(axes))
    else:
        left, right = ([v] if isinstance(v, int) else list(v) for v in axes)
    left, right = [v % x.ndim for v in left], [v % y.ndim for v in right]
    rows, columns = [i for i in range(x.ndim) if i not in left], [i for i in range(y.ndim) if i not in right]
    k = 1
    for v in left:
        k *= x.shape[v]
    m = s.reshape(s.permute(x, rows + left), (-1, k)) if k else s.reshape(s.permute(x, rows + left), (1, 0))
    n = s.reshape(s.permute(y, right + columns), (k, -1)) if k else s.reshape(s.permute(y, right + columns), (0, 1))
    return s.reshape(matmul(m, n), (*(x.shape[i] for i in rows), *(y.shape[i] for i in columns)))


def batch_dot(x1: Any, x2: Any, axes: Any = None) -> Tensor:
    """Sums of products over one axis of each, batch by batch."""
    x, y = operands(x1, x2)
    if axes is None:
        axes = (x.ndim - 1, y.ndim - 2 if y.ndim > 2 else y.ndim - 1)
    i, j = (axes, axes) if isinstance(axes, int) else axes
    i, j = i % x.ndim, j % y.ndim
    left, right = s.movedim(x, i, -1), s.movedim(y, j, 1)
    batch, rows, columns = x.shape[0], left.shape[1:-1], right.shape[2:]
    k = x.shape[i]
    made = matmul(s.reshape(left, (batch, -1, k)), s.reshape(right, (batch, k, -1)))
    return s.reshape(made, (batch, *rows, *columns) if rows or columns else (batch, 1))


def einsum(equation: str, *operands: Any) -> Tensor:
    """Sums of products by index letters: "bij,bjk->bik"."""
    parts = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], tuple | list) else list(operands)
    tensors = s._alike(parts, "einsum")
    if "->" not in equation:
        left = equation.replace(" ", "")
        letters = sorted(c for c in set(left) if c.isalpha() and left.count(c) == 1)
        equation = f"{left}->{'...' if '...' in left else ''}{''.join(letters)}"
    return apply(o.Einsum(equation.replace(" ", "")), *tensors)  # type: ignore[no-any-return]


def kron(input: Any, other: Any) -> Tensor:
    """The Kronecker product."""
    x, y = operands(input, other)
    rank = builtins.max(x.ndim, y.ndim)
    xs, ys = (1,) * (rank - x.ndim) + x.shape, (1,) * (rank - y.ndim) + y.shape
    left = s.reshape(x, tuple(v for d in xs for v in (d, 1)))
    right = s.reshape(y, tuple(v for d in ys for v in (1, d)))
    return s.reshape(a.mul(left, right), tuple(p * q for p, q in zip(xs, ys, strict=True)))


def trace(input: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Tensor:
    """The sum of the diagonal."""
    return r.sum(s.diagonal(input, offset, axis1, axis2), -1, dtype=dtype)


def cross(input: Any, other: Any, dim: int | None = None) -> Tensor:
    """The cross product along a dimension of size 3 (the first such where none is given)."""
    x, y = operands(input, other)
    if dim is None:
        dim = next((i for i, d in enumerate(x.shape) if d == 3), -1)
    if x.shape[dim] != 3:
        raise ValueError(f"cross: dimension {dim} must be 3, got {x.shape}")
    return a.sub(a.mul(s.roll(x, -1, dim), s.roll(y, -2, dim)), a.mul(s.roll(x, -2, dim), s.roll(y, -1, dim)))


def bias_add(input_x: Any, bias: Any, data_format: str = "NCHW") -> Tensor:
    """x plus one number for each channel."""
    x, b = as_tensor(input_x), as_tensor(bias)
    if data_format == "NHWC" or x.ndim <= 2:
        return a.add(x, b)
    return a.add(x, s.reshape(b, (-1, *[1] * (x.ndim - 2))))


def singular_values(x: Any) -> Tensor:
    """The singular values of matrices."""
    from jumar.ops.decompose import svd  # noqa: PLC0415

    return svd(x, compute_uv=False)  # type: ignore[no-any-return]


ger = outer

__all__ = [
    "addbmm", "addmm", "addmv", "addr", "baddbmm", "batch_dot", "bias_add", "bidense", "bmm", "cross", "dense", "dot", "einsum", "ger", "inner",
    "kron", "matmul", "mm", "mv", "outer", "tensor_dot", "trace", "vecdot",
]  # fmt: skip
