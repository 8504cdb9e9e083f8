"""Sorting and searching: sort, argsort, topk, median, quantiles, histograms, searchsorted, running extremes.

In: tensors.  Out: values and places (int32 or int64, as the interface has it).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jumar import operators as o
from jumar.frontend import dtype as types
from jumar.ops import arithmetic as a
from jumar.ops import movement as s
from jumar.ops.operands import BOOL, I64, Tensor, apply, as_tensor, axis_of, cast, constant, floating, numpy_dtype


def sorted_pair(input: Any, axis: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """The elements in order along an axis, and their places (int64)."""
    x = as_tensor(input)
    was_bool = numpy_dtype(x) == BOOL
    if was_bool:
        x = cast(x, types.int8)
    if not x.ndim:
        return s.copy(as_tensor(input)), a.mul(cast(x, I64), 0)
    at = axis_of(axis, x.ndim, "sort")
    values, places = apply(o.TopK(x.shape[at], at, bool(descending)), x)
    return cast(values, BOOL) if was_bool else values, places


def sort(input_x: Any, axis: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """The elements in order along an axis, and their places (int32)."""
    values, places = sorted_pair(input_x, axis, descending)
    return values, cast(places, types.int32)


def sort_torch(input: Any, *, dim: int = -1, descending: bool = False, stable: bool = False) -> tuple[Tensor, Tensor]:
    """The elements in order along a dimension, and their places (int64)."""
    return sorted_pair(input, dim, descending)


def argsort(input: Any, axis: int = -1, descending: bool = False) -> Tensor:
    """The places of the elements in order (int32)."""
    return cast(sorted_pair(input, axis, descending)[1], types.int32)


def argsort_torch(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The places of the elements in order (int64)."""
    return sorted_pair(input, dim, descending)[1]


def msort(input: Any) -> Tensor:
    """The elements in order along the first dimension."""
    return sorted_pair(input, 0)[0]


def topk_pair(input: Any, k: Any, dim: int | None = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """The k largest (or smallest) elements and their places (int64)."""
    x = as_tensor(input)
    at = axis_of(-1 if dim is None else dim, x.ndim, "topk")
    if not 0 <= int(k) <= x.shape[at]:
        raise ValueError(f"topk: k must be within 0..{x.shape[at]}, the size of axis {at}, got {int(k)}")
    return apply(o.TopK(int(k), at, bool(largest), bool(sorted)), x)  # type: ignore[no-any-return]


def topk(input: Any, k: Any, dim: int | None = None, largest: bool = True, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """The k largest (or smallest) elements and their places (int32)."""
    values, places = topk_pair(input, k, dim, largest, sorted)
    return values, cast(places, types.int32)


def top_k(input_x: Any, k: Any, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """The k largest elements of the last dimension and their places (int32)."""
    return topk(input_x, k, None, True, sorted)


def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The k-th smallest element along a dimension and its place."""
    x = as_tensor(input)
    at = axis_of(dim, x.ndim, "kthvalue")
    values, places = topk_pair(x, k, at, False)
    last = tuple(s.part(v, at, k - 1, k) for v in (values, places))
    return last if keepdim else tuple(s.squeeze(v, at) for v in last)  # type: ignore[return-value]


def median_pair(input: Any, axis: int = -1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The lower median along an axis and its place (int64)."""
    x = as_tensor(input)
    if not x.ndim:
        return s.copy(x), a.mul(cast(x, I64), 0)
    at = axis_of(axis, x.ndim, "median")
    return kthvalue(x, (x.shape[at] + 1) // 2, at, keepdims)


def median_torch(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower median of all elements, or along a dimension with its place."""
    if dim is None:
        return median_pair(s.ravel(input), 0)[0]
    return median_pair(input, dim, keepdim)


def nanmedian(input: Any, axis: int = -1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The lower median of what is a number, along an axis, and its place."""
    x = floating(input)
    at = axis_of(axis, x.ndim, "nanmedian")
    from jumar.ops.reduction import sum as total  # noqa: PLC0415

    values, places = sorted_pair(x, at)  # NaN comes last
    counts = total(cast(a.logical_not(a.isnan(x)), I64), at, True)
    middle = a.maximum(a.floor_divide(a.sub(counts, 1), 2), 0)
    found = tuple(apply(o.GatherElements(at), v, middle) for v in (values, places))
    return found if keepdims else tuple(s.squeeze(v, at) for v in found)  # type: ignore[return-value]


def quantile(input: Any, q: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The q-quantiles, linear between neighbours."""
    x = floating(input)
    rank = x.ndim
    if axis is None:
        x = s.ravel(x)
    at = 0 if axis is None else axis_of(axis, x.ndim, "quantile")
    wanted = as_tensor(q)
    fractions = np.atleast_1d(wanted.asnumpy()).astype(np.float64)
    values = s.movedim(sorted_pair(x, at)[0], at, 0)
    n = values.shape[0]
    place = fractions * (n - 1)
    low = np.floor(place).astype(np.int64)
    high = np.minimum(low + 1, n - 1)
    weight = constant((place - low).astype(numpy_dtype(x)).reshape(-1, *[1] * (values.ndim - 1)))
    y = a.lerp(apply(o.Gather(0), values, constant(low)), apply(o.Gather(0), values, constant(high)), weight)
    if keepdims:
        y = s.reshape(y, (y.shape[0], *([1] * rank if axis is None else [1 if i == at else d for i, d in enumerate(x.shape)])))
    return y if wanted.ndim else s.squeeze(y, 0)


def cummax_pair(input: Any, axis: int, *, largest: bool = True) -> tuple[Tensor, Tensor]:
    """The extreme of all elements so far and its place (int64): by doubling steps."""
    x = as_tensor(input)
    at = axis_of(axis, x.ndim, "cummax")
    size = x.shape[at]
    places: Tensor = apply(o.Iota(x.shape, at, o.Iota.dtype))
    step = 1
    better = a.greater_equal if largest else a.less_equal
    while step < size:
        tail, head = s.part(x, at, step, size), s.part(x, at, 0, size - step)
        tail_at, head_at = s.part(places, at, step, size), s.part(places, at, 0, size - step)
        keep = a.logical_or(better(tail, head), a.isnan(tail))
        x = s.cat([s.part(x, at, 0, step), a.where(keep, tail, head)], at)
        places = s.cat([s.part(places, at, 0, step), a.where(keep, tail_at, head_at)], at)
        step *= 2
    return x, places


def cummax(input: Any, axis: int) -> tuple[Tensor, Tensor]:
    """The largest of all elements so far, and its place."""
    return cummax_pair(input, axis)


def cummin(input: Any, axis: int) -> tuple[Tensor, Tensor]:
    """The smallest of all elements so far, and its place (int32)."""
    value, place = cummax_pair(input, axis, largest=False)
    return value, cast(place, types.int32)


def cummin_torch(input: Any, dim: int) -> tuple[Tensor, Tensor]:
    """The smallest of all elements so far, and its place (int64)."""
    return cummax_pair(input, dim, largest=False)


def searchsorted(
    sorted_sequence: Any, values: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None, sorter: Any = None
) -> Tensor:
    """Where the values would go in the sorted rows: how many elements are before them."""
    from jumar.ops.reduction import sum as total  # noqa: PLC0415

    row, x = as_tensor(sorted_sequence), as_tensor(values)
    if sorter is not None:
        row = apply(o.GatherElements(row.ndim - 1), row, cast(as_tensor(sorter), I64))
    if row.ndim == 1:
        before, at = row, s.unsqueeze(x, -1)
    else:
        before, at = s.unsqueeze(row, -2), s.unsqueeze(x, -1)
    hit = a.less_equal(before, at) if right or side == "right" else a.less(before, at)
    return cast(total(cast(hit, I64), -1), types.int32 if out_int32 else types.int64)


def bucketize(input: Any, boundaries: Any, *, right: bool = False) -> Tensor:
    """Which of the buckets between the boundaries each element falls into (int32)."""
    return searchsorted(as_tensor(boundaries), as_tensor(input), right=right, out_int32=True)


def histc(input: Any, bins: int = 100, min: Any = 0, max: Any = 0) -> Tensor:
    """How many elements fall into each of so many equal bins between min and max."""
    from jumar.ops.reduction import amax, amin  # noqa: PLC0415

    x = s.ravel(input)
    low, high = float(min), float(max)
    if low == high:
        low, high = float(amin(x).item()), float(amax(x).item())
        if low == high:
            low, high = low - 1, high + 1
    inside = a.logical_and(a.greater_equal(x, low), a.less_equal(x, high))
    place = a.clamp(cast(a.floor(a.mul(a.sub(floating(x), low), bins / (high - low))), I64), 0, bins - 1)
    from jumar.ops.creation import filled  # noqa: PLC0415

    zeros = filled((int(bins),), 0, numpy_dtype(x))
    return apply(o.ScatterNd("add"), zeros, s.unsqueeze(place, 1), cast(inside, numpy_dtype(x)))  # type: ignore[no-any-return]


__all__ = [
    "argsort", "bucketize", "cummax", "cummin", "histc", "msort", "nanmedian", "quantile", "searchsorted", "sort", "top_k", "topk",
]  # fmt: skip
