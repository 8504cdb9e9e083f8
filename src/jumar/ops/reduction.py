"""Reductions: sums, means, extremes, variances, norms, counts; running sums; positions of extremes.

In: tensors and the axes to reduce (None or (): all).  Out: tensors.
"""

from __future__ import annotations

import math
from typing import Any

from jumar import operators as o
from jumar.frontend import dtype as types
from jumar.frontend.promote import is_floating
from jumar.ops import arithmetic as a
from jumar.ops import movement as s
from jumar.ops.operands import BOOL, I64, Tensor, apply, as_tensor, as_type, axes_of, axis_of, cast, floating, numpy_dtype


def _typed(input: Any, dtype: Any) -> Tensor:
    """The operand in the type asked for; bools count as int64."""
    x = as_tensor(input)
    if dtype is not None:
        return cast(x, as_type(dtype))
    return cast(x, I64) if numpy_dtype(x) == BOOL else x


def _wide(input: Any, dtype: Any) -> Tensor:
    """The operand in the type asked for; bools and integers are summed as int64."""
    x = as_tensor(input)
    if dtype is not None:
        return cast(x, as_type(dtype))
    return cast(x, I64) if numpy_dtype(x).kind in "biu" else x


def _kept(x: Tensor, axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with 1 for what is reduced."""
    return tuple(1 if not axes or i in axes else d for i, d in enumerate(x.shape))


def sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum; integers as int64."""
    x = _wide(input, dtype)
    return apply(o.ReduceSum(axes_of(dim, x.ndim), bool(keepdim)), x)  # type: ignore[no-any-return]


def mean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean."""
    x = _typed(input, dtype)
    return apply(o.ReduceMean(axes_of(dim, x.ndim), bool(keepdim)), x)  # type: ignore[no-any-return]


def prod(input: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The product; integers as int64."""
    x = _wide(input, dtype)
    return apply(o.ReduceProd(axes_of(dim, x.ndim), bool(keepdim)), x)  # type: ignore[no-any-return]


def all(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
    """True where all elements are."""
    x = a.as_bool(input)
    return apply(o.ReduceAll(axes_of(dim, x.ndim), bool(keepdim)), x)  # type: ignore[no-any-return]


def any(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
    """True where one element is."""
    x = a.as_bool(input)
    return apply(o.ReduceAny(axes_of(dim, x.ndim), bool(keepdim)), x)  # type: ignore[no-any-return]


def _extreme(op: Any, input: Any, dim: Any, keepdim: bool, initial: Any = None, where: Any = None) -> Tensor:
    x = as_tensor(input)
    was_bool = numpy_dtype(x) == BOOL
    if was_bool:
        x = cast(x, types.uint8)
    largest = op is o.ReduceMax
    if where is not None:
        if initial is None:
            raise ValueError("amax, amin: initial must be given with where, got None")
        x = a.where(where, x, initial)
    y: Tensor = apply(op(axes_of(dim, x.ndim), bool(keepdim)), x)
    if initial is not None:
        y = cast(a.maximum(y, initial) if largest else a.minimum(y, initial), numpy_dtype(y))
    return cast(y, BOOL) if was_bool else y


def amax(input: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Tensor:
    """The largest element."""
    return _extreme(o.ReduceMax, input, axis, keepdims, initial, where)


def amin(input: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Tensor:
    """The smallest element."""
    return _extreme(o.ReduceMin, input, axis, keepdims, initial, where)


def aminmax(input: Any, *, axis: Any = 0, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The smallest and the largest element."""
    return amin(input, axis, keepdims), amax(input, axis, keepdims)


def positions(op: Any, input: Any, dim: int | None, keepdim: bool) -> Tensor:
    """Where the extreme stands: int64."""
    x = as_tensor(input)
    if numpy_dtype(x) == BOOL:
        x = cast(x, types.int32)
    if dim is None:
        y = apply(op(0), s.ravel(x))
        return s.reshape(y, (1,) * x.ndim) if keepdim else y
    if not x.ndim:
        return a.mul(cast(x, I64), 0)
    return apply(op(axis_of(dim, x.ndim), bool(keepdim)), x)  # type: ignore[no-any-return]


def argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the largest element stands, int64; of all elements where no dim is given."""
    return positions(o.ArgMax, input, dim, keepdim)


def argmin(input: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the smallest element stands, int32; of all elements where no axis is given."""
    return cast(positions(o.ArgMin, input, axis, keepdims), types.int32)


def argmin_torch(input: Any, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the smallest element stands, int64; of all elements where no dim is given."""
    return positions(o.ArgMin, input, dim, keepdim)


def with_place(op: Any, input: Any, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    """The extreme along a dimension and where it stands (int64)."""
    x = as_tensor(input)
    if not x.ndim:
        return s.copy(x), a.mul(cast(x, I64), 0)
    axis = axis_of(dim, x.ndim)
    place = positions(op, x, axis, True)
    value: Tensor = apply(o.GatherElements(axis), x, place)
    return (value, place) if keepdim else (s.squeeze(value, axis), s.squeeze(place, axis))


def max(input: Any, axis: int | None = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> tuple[Tensor, Tensor]:
    """The largest elements along an axis and their places; with no axis the largest of all, and 0."""
    return _max_or_min(o.ArgMax, o.ReduceMax, input, axis, keepdims, initial, where)


def min(input: Any, axis: int | None = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> tuple[Tensor, Tensor]:
    """The smallest elements along an axis and their places; with no axis the smallest of all, and 0."""
    return _max_or_min(o.ArgMin, o.ReduceMin, input, axis, keepdims, initial, where)


def _max_or_min(place: Any, value: Any, input: Any, axis: int | None, keepdims: bool, initial: Any, where: Any) -> tuple[Tensor, Tensor]:
    x = as_tensor(input)
    if axis is None:
        return _extreme(value, x, None, False, initial, where), _zero()
    if initial is not None:
        other = x if where is None else a.where(where, x, initial)
        x = a.maximum(other, initial) if place is o.ArgMax else a.minimum(other, initial)
    return with_place(place, x, axis, keepdims)


def _zero() -> Tensor:
    from jumar.ops.creation import filled  # noqa: PLC0415  (creation.py builds on this room's formulas)

    return filled((), 0, I64)


def argmax_with_value(input: Any, axis: int = 0, keep_dims: bool = False) -> tuple[Tensor, Tensor]:
    """Where the largest stands (int64), and its value."""
    value, place = with_place(o.ArgMax, input, axis, keep_dims)
    return place, value


def argmin_with_value(input: Any, axis: int = 0, keep_dims: bool = False) -> tuple[Tensor, Tensor]:
    """Where the smallest stands (int64), and its value."""
    value, place = with_place(o.ArgMin, input, axis, keep_dims)
    return place, value


# ------------------------------------------------------------------------------------------------------------ statistics
def _count(x: Tensor, axes: tuple[int, ...]) -> int:
    return math.prod(x.shape[i] for i in axes) if axes else x.size


def var(input: Any, axis: Any = None, ddof: Any = 0, keepdims: bool = False) -> Tensor:
    """The variance, divided by the count less ddof."""
    return var_mean(input, axis, ddof, keepdims)[0]


def var_mean(input: Any, axis: Any = None, ddof: Any = 0, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The variance and the mean."""
    x = floating(input)
    axes = axes_of(axis, x.ndim)
    middle: Tensor = apply(o.ReduceMean(axes, True), x)
    square = a.square(a.sub(x, middle))
    left = _count(x, axes) - int(ddof)
    total: Tensor = apply(o.ReduceSum(axes, bool(keepdims)), square)
    shape = total.shape
    return a.div(total, float(left) if left > 0 else 0.0), middle if keepdims else s.reshape(middle, shape)


def std(input: Any, axis: Any = None, ddof: Any = 0, keepdims: bool = False) -> Tensor:
    """The standard deviation."""
    return a.sqrt(var(input, axis, ddof, keepdims))  # type: ignore[no-any-return]


def std_mean(input: Any, axis: Any = None, ddof: Any = 0, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean."""
    spread, middle = var_mean(input, axis, ddof, keepdims)
    return a.sqrt(spread), middle


def logsumexp(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
    """log of the sum of exp, without overflow."""
    x = floating(input)
    axes = axes_of(dim, x.ndim)
    top: Tensor = apply(o.ReduceMax(axes, True), x)
    top = a.where(a.isinf(top), 0.0, top)
    total: Tensor = apply(o.ReduceSum(axes, True), a.exp(a.sub(x, a.stop_gradient(top))))
    y = a.add(a.log(total), a.stop_gradient(top))
    return y if keepdim else s.reshape(y, tuple(d for i, d in enumerate(x.shape) if axes and i not in axes))


def count_nonzero(x: Any, axis: Any = (), keep_dims: bool = False, dtype: Any = types.int32) -> Tensor:
    """How many elements are not zero."""
    return cast(sum(a.as_bool(x), axis, keep_dims), as_type(dtype))


def nansum(input: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum of what is a number."""
    x = as_tensor(input)
    return sum(a.where(a.isnan(x), 0, x) if is_floating(x) else x, axis, keepdims, dtype=dtype)


def nanmean(input: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean of what is a number."""
    x = floating(input)
    counts = sum(cast(a.logical_not(a.isnan(x)), numpy_dtype(x)), axis, keepdims)
    return a.div(nansum(x, axis, keepdims, dtype=dtype), counts)


def ptp(input: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest less the smallest."""
    return a.sub(amax(input, axis, keepdims), amin(input, axis, keepdims))


# --------------------------------------------------------------------------------------------------------- running sums
def cumsum(x: Any, axis: Any, dtype: Any = None) -> Tensor:
    """The sum of all elements so far."""
    tensor = _typed(x, dtype)
    return apply(o.CumSum(axis_of(axis, tensor.ndim)), tensor)  # type: ignore[no-any-return]


def cumprod(input: Any, dim: Any, dtype: Any = None) -> Tensor:
    """The product of all elements so far."""
    x = _typed(input, dtype)
    return apply(o.CumProd(axis_of(dim, x.ndim)), x)  # type: ignore[no-any-return]


def logcumsumexp(input: Any, axis: int) -> Tensor:
    """log of the sum of exp of all elements so far."""
    x = floating(input)
    top = a.stop_gradient(apply(o.ReduceMax((axis_of(axis, x.ndim),), True), x))
    return a.add(a.log(cumsum(a.exp(a.sub(x, top)), axis)), top)


def diff(x: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Differences of neighbours, n times."""
    tensor = as_tensor(x)
    parts = [t for t in (prepend, tensor, append) if t is not None]
    tensor = s.cat(parts, axis) if len(parts) > 1 else tensor
    at = axis_of(axis, tensor.ndim)
    for _ in range(n):
        size = tensor.shape[at]
        later, before = s.part(tensor, at, 1, builtins_max(size, 1)), s.part(tensor, at, 0, builtins_max(size - 1, 0))
        tensor = a.logical_xor(later, before) if numpy_dtype(tensor) == BOOL else a.sub(later, before)
    return tensor


def builtins_max(x: int, y: int) -> int:
    """The larger of two ints: `max` is a reduction here."""
    return x if x > y else y


# ---------------------------------------------------------------------------------------------------------------- norms
def vector_norm(x: Any, ord: Any = 2, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """The norm of vectors of that order."""
    tensor = floating(x) if dtype is None else cast(as_tensor(x), as_type(dtype))
    axes = axes_of(axis, tensor.ndim)
    size = a.abs(tensor)
    if ord in (math.inf, "inf"):
        return apply(o.ReduceMax(axes, keepdims), size)  # type: ignore[no-any-return]
    if ord in (-math.inf, "-inf"):
        return apply(o.ReduceMin(axes, keepdims), size)  # type: ignore[no-any-return]
    if ord == 0:
        return sum(cast(a.not_equal(tensor, 0), numpy_dtype(tensor)), axis, keepdims)
    if ord == 1:
        return sum(size, axis, keepdims)
    if ord == 2:
        return a.sqrt(sum(a.square(tensor), axis, keepdims))  # type: ignore[no-any-return]
    return a.pow(sum(a.pow(size, float(ord)), axis, keepdims), 1.0 / float(ord))


def matrix_norm(A: Any, ord: Any = "fro", axis: Any = (-2, -1), keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """The norm of matrices: fro, inf, -inf, 1, -1 (2, -2 and nuc by singular values)."""
    x = floating(A) if dtype is None else cast(as_tensor(A), as_type(dtype))
    row, column = (axis_of(v, x.ndim) for v in axis)
    if ord == "fro":
        return vector_norm(x, 2, (row, column), keepdims)
    if ord in (2, -2, "nuc"):
        from jumar.ops.linalg import singular_values  # noqa: PLC0415  (linalg.py builds on reductions)

        values = singular_values(s.movedim(x, (row, column), (-2, -1)))
        y = sum(values, -1) if ord == "nuc" else amax(values, -1) if ord == 2 else amin(values, -1)
        return s.expand_dims(y, tuple(sorted((row, column)))) if keepdims else y
    over, along = (row, column) if ord in (1, -1) else (column, row)
    if ord not in (1, -1, math.inf, -math.inf):
        raise ValueError(f"matrix_norm: ord must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {ord!r}")
    sums = sum(a.abs(x), over, True)
    y = amax(sums, along, True) if ord in (1, math.inf) else amin(sums, along, True)
    return y if keepdims else s.squeeze(y, (row, column))


def norm(A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The norm of matrices (two dims) or vectors; with neither ord nor dim that of all elements."""
    x = as_tensor(A)
    if ord is None:
        return vector_norm(x, 2, dim, keepdim, dtype=dtype)
    if (dim is None and x.ndim == 2) or (isinstance(dim, tuple | list) and len(dim) == 2):
        return matrix_norm(x, ord, dim or (-2, -1), keepdim, dtype=dtype)
    return vector_norm(x, ord, dim, keepdim, dtype=dtype)


def norm_torch(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The norm as torch.norm: of all elements, or along dims; p is the order."""
    if p == "nuc":
        return matrix_norm(input, "nuc", dim or (-2, -1), keepdim, dtype=dtype)
    return vector_norm(input, 2 if p in ("fro", None) else p, dim, keepdim, dtype=dtype)


def plain_sum(x: Any, axis: Any = (), keep_dims: bool = False) -> Tensor:
    """The sum; integers keep their type."""
    tensor = _typed(x, None)
    return apply(o.ReduceSum(axes_of(axis, tensor.ndim), bool(keep_dims)), tensor)  # type: ignore[no-any-return]


def plain_prod(x: Any, axis: Any = (), keep_dims: bool = False) -> Tensor:
    """The product; integers keep their type."""
    tensor = _typed(x, None)
    return apply(o.ReduceProd(axes_of(axis, tensor.ndim), bool(keep_dims)), tensor)  # type: ignore[no-any-return]


reduce_sum, reduce_mean, reduce_max, reduce_min = plain_sum, mean, amax, amin

__all__ = [
    "all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "argmax_with_value", "argmin_with_value", "count_nonzero", "cumprod", "cumsum", "diff",
    "logcumsumexp", "logsumexp", "matrix_norm", "max", "mean", "min", "nanmean", "nansum", "norm", "prod", "ptp", "reduce_max", "reduce_mean",
    "reduce_min", "reduce_sum", "std", "std_mean", "sum", "var", "var_mean", "vector_norm",
]  # fmt: skip
