"""Gather, scatter and what picks or puts elements by places: index_select, take, one_hot, masked_select, nonzero, embedding.

In: tensors and tensors of places.  Out: tensors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jumar import operators as o
from jumar.frontend import dtype as types
from jumar.ops import arithmetic as a
from jumar.ops import movement as s
from jumar.ops.creation import filled
from jumar.ops.operands import I64, Tensor, apply, as_tensor, axis_of, cast, constant, eager, ints, numpy_dtype, scalar


def places(index: Any) -> Tensor:
    """Places as int32 or int64."""
    x = as_tensor(index)
    return x if numpy_dtype(x) in (np.dtype(np.int32), I64) else cast(x, I64)


def gather(input_params: Any, input_indices: Any, axis: Any, batch_dims: int = 0) -> Tensor:
    """The slices along an axis at the places, for each of the first batch_dims dimensions apart."""
    x, index = as_tensor(input_params), places(input_indices)
    at = axis_of(axis, x.ndim, "gather")
    if batch_dims:
        b = batch_dims + index.ndim if batch_dims < 0 else batch_dims
        x = s.movedim(x, at, b)
        batch = index.shape[:b]
        rows = a.add(
            index, constant((np.arange(math.prod(batch)) * x.shape[b]).reshape(*batch, *[1] * (index.ndim - b)).astype(numpy_dtype(index)))
        )
        flat = s.reshape(x, (math.prod(batch) * x.shape[b], *x.shape[b + 1 :]))
        y: Tensor = apply(o.Gather(0), flat, rows)
        inner = index.ndim - b
        return s.movedim(y, tuple(range(b, b + inner)), tuple(range(at, at + inner)))
    return apply(o.Gather(at), x, index)  # type: ignore[no-any-return]


def gather_elements(input: Any, dim: int, index: Any) -> Tensor:
    """For each place in `index` the element there along a dimension."""
    x = as_tensor(input)
    return apply(o.GatherElements(axis_of(dim, x.ndim, "gather")), x, places(index))  # type: ignore[no-any-return]


def gather_nd(input_x: Any, indices: Any) -> Tensor:
    """x at the places in the last dimension of the indices."""
    return apply(o.GatherNd(), as_tensor(input_x), places(indices))  # type: ignore[no-any-return]


def index_select(input: Any, dim: int, index: Any) -> Tensor:
    """The slices along a dimension at the places."""
    return gather(input, s.reshape(as_tensor(index), (-1,)), dim)


def take(input: Any, index: Any) -> Tensor:
    """The elements at places in the tensor laid flat."""
    return gather(s.ravel(input), index, 0)


def take_along(input: Any, index: Any, axis: int | None = None) -> Tensor:
    """The slices along an axis; without one, the elements of the tensor laid flat."""
    return take(input, index) if axis is None else gather(input, index, axis)


def embedding(
    input: Any, weight: Any, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
) -> Tensor:  # fmt: skip
    """The rows of the weight at the places.   max_norm: rows that are looked up are first scaled to at most this norm, in place."""
    table = as_tensor(weight)
    index = places(input)
    if max_norm is not None:
        from jumar.ops.reduction import vector_norm  # noqa: PLC0415

        sizes = vector_norm(table, norm_type, -1, True)
        scaled = a.where(a.greater(sizes, max_norm), a.mul(table, a.div(max_norm, a.add(sizes, 1e-7))), table)
        hit = apply(o.ScatterNd(), filled((table.shape[0],), False, np.dtype(np.bool_)), s.reshape(index, (-1, 1)),
                    filled((index.size,), True, np.dtype(np.bool_)))  # fmt: skip
        new = a.where(s.unsqueeze(hit, 1), a.stop_gradient(scaled), table)
        table._write(new)
    if padding_idx is not None:
        at = padding_idx % table.shape[0]
        rows = a.where(constant(np.arange(table.shape[0])[:, None] == at), a.stop_gradient(table), table)
        return apply(o.Gather(0), rows, index)  # type: ignore[no-any-return]
    return apply(o.Gather(0), table, index)  # type: ignore[no-any-return]


# -------------------------------------------------------------------------------------------------------------- scatter
def _updates(x: Tensor, value: Any, shape: tuple[int, ...]) -> Tensor:
    """What is put: of x's element type, at least of the indices' shape."""
    if not isinstance(value, Tensor):
        return filled(shape, value, numpy_dtype(x)) if np.ndim(value) == 0 else cast(as_tensor(value), numpy_dtype(x))
    value = cast(value, numpy_dtype(x))
    if value.shape == shape:
        return value  # type: ignore[no-any-return]
    if not value.ndim:
        return s.broadcast_to(value, shape)
    for axis, d in enumerate(shape):
        value = s.part(value, axis, 0, d)
    return value  # type: ignore[no-any-return]


def scatter(input: Any, axis: int, index: Any, src: Any, reduce: str = "none") -> Tensor:
    """x with src[i, j] put at [i, index[i, j]] (for axis 1).   reduce: none, add or multiply."""
    x, at = as_tensor(input), places(index)
    word = {"none": "none", None: "none", "add": "add", "multiply": "mul", "mul": "mul", "sum": "add", "max": "max", "min": "min"}[reduce]
    return apply(o.ScatterElements(axis_of(axis, x.ndim, "scatter"), word), x, at, _updates(x, src, at.shape))  # type: ignore[no-any-return]


def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Tensor:
    """x with src[i, j] added at [i, index[i, j]] (for dim 1)."""
    return scatter(input, dim, index, src, "add")


def tensor_scatter_elements(input_x: Any, indices: Any, updates: Any, axis: int = 0, reduction: str = "none") -> Tensor:
    """x with the updates put at the places along an axis."""
    return scatter(input_x, axis, indices, updates, reduction)


def _scatter_nd(input_x: Any, indices: Any, updates: Any, reduction: str) -> Tensor:
    x = as_tensor(input_x)
    return apply(o.ScatterNd(reduction), x, places(indices), cast(as_tensor(updates), numpy_dtype(x)))  # type: ignore[no-any-return]


def tensor_scatter_update(input_x: Any, indices: Any, updates: Any) -> Tensor:
    """x with the updates put at the index tuples."""
    return _scatter_nd(input_x, indices, updates, "none")


def tensor_scatter_add(input_x: Any, indices: Any, updates: Any) -> Tensor:
    """x with the updates added at the index tuples."""
    return _scatter_nd(input_x, indices, updates, "add")


def tensor_scatter_sub(input_x: Any, indices: Any, updates: Any) -> Tensor:
    """x with the updates taken away at the index tuples."""
    return _scatter_nd(input_x, indices, a.neg(as_tensor(updates)), "add")


def tensor_scatter_mul(input_x: Any, indices: Any, updates: Any) -> Tensor:
    """x multiplied by the updates at the index tuples."""
    return _scatter_nd(input_x, indices, updates, "mul")


def tensor_scatter_div(input_x: Any, indices: Any, updates: Any) -> Tensor:
    """x divided by the updates at the index tuples."""
    return _scatter_nd(input_x, indices, a.reciprocal(updates), "mul")


def tensor_scatter_max(input_x: Any, indices: Any, updates: Any) -> Tensor:
    """The larger of x and the updates at the index tuples."""
    return _scatter_nd(input_x, indices, updates, "max")


def tensor_scatter_min(input_x: Any, indices: Any, updates: Any) -> Tensor:
    """The smaller of x and the updates at the index tuples."""
    return _scatter_nd(input_x, indices, updates, "min")


def scatter_nd(indices: Any, updates: Any, shape: Any) -> Tensor:
    """Zeros with the updates added at the index tuples."""
    new = as_tensor(updates)
    return tensor_scatter_add(filled(ints(shape), 0, numpy_dtype(new)), indices, new)


def written(input_x: Tensor, new: Tensor) -> Tensor:
    """The tensor, after the new value was written into it."""
    input_x._write(cast(new, input_x.dtype))
    return input_x


def scatter_update(input_x: Any, indices: Any, updates: Any) -> Tensor:
    """Writes the updates to the rows."""
    return written(input_x, tensor_scatter_update(input_x, s.unsqueeze(indices, -1), updates))


def _in_place(name: str, function: Any, rows: bool) -> Any:
    def call(input_x: Any, indices: Any, updates: Any, use_locking: bool = False) -> Tensor:
        return written(input_x, function(input_x, s.unsqueeze(indices, -1) if rows else indices, updates))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = "Writes into the tensor: " + (function.__doc__ or "")
    return call


scatter_nd_add, scatter_nd_sub = (
    _in_place("scatter_nd_add", tensor_scatter_add, False),
    _in_place("scatter_nd_sub", tensor_scatter_sub, False),
)
scatter_nd_mul, scatter_nd_div = (
    _in_place("scatter_nd_mul", tensor_scatter_mul, False),
    _in_place("scatter_nd_div", tensor_scatter_div, False),
)
scatter_nd_max, scatter_nd_min = (
    _in_place("scatter_nd_max", tensor_scatter_max, False),
    _in_place("scatter_nd_min", tensor_scatter_min, False),
)
scatter_nd_update = _in_place("scatter_nd_update", tensor_scatter_update, False)
scatter_rows_add, scatter_sub = _in_place("scatter_add", tensor_scatter_add, True), _in_place("scatter_sub", tensor_scatter_sub, True)
scatter_mul, scatter_div = _in_place("scatter_mul", tensor_scatter_mul, True), _in_place("scatter_div", tensor_scatter_div, True)
scatter_max, scatter_min = _in_place("scatter_max", tensor_scatter_max, True), _in_place("scatter_min", tensor_scatter_min, True)


def _front(input: Any, dim: int) -> tuple[Tensor, int]:
    """The tensor with that dimension first."""
    x = as_tensor(input)
    axis = axis_of(dim, x.ndim)
    return s.movedim(x, axis, 0), axis


def _rows(input: Any, dim: int, index: Any, source: Any, reduction: str) -> Tensor:
    x, axis = _front(input, dim)
    new = s.movedim(cast(as_tensor(source), numpy_dtype(x)), axis, 0)
    at = s.reshape(places(index), (-1, 1))
    return s.movedim(apply(o.ScatterNd(reduction), x, at, new), 0, axis)


def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Tensor:
    """x with the source's slices added at the places along a dimension."""
    return _rows(input, dim, index, source if alpha == 1 else a.mul(source, alpha), "add")


def index_add_rows(x: Any, indices: Any, y: Any, axis: int, use_lock: bool = True, check_index_bound: bool = True) -> Tensor:
    """x with y's slices added at the places along an axis."""
    return index_add(x, axis, indices, y)


def index_copy(input: Any, dim: int, index: Any, source: Any) -> Tensor:
    """x with the source's slices put at the places along a dimension."""
    return _rows(input, dim, index, source, "none")


def index_fill(x: Any, axis: int, index: Any, value: Any) -> Tensor:
    """x with one number in the slices at the places along a dimension."""
    tensor = as_tensor(x)
    at = s.reshape(places(index), (-1,))
    front, axis = _front(tensor, axis)
    number = cast(value, numpy_dtype(tensor)) if isinstance(value, Tensor) else scalar(value, numpy_dtype(tensor))
    new = s.broadcast_to(s.reshape(number, ()), (at.size, *front.shape[1:]))
    return s.movedim(apply(o.ScatterNd(), front, s.unsqueeze(at, 1), new), 0, axis)


def select_scatter(input: Any, src: Any, axis: int, index: int) -> Tensor:
    """x with the source as one slice along an axis."""
    x = as_tensor(input)
    at = axis_of(axis, x.ndim)
    return slice_scatter(x, s.unsqueeze(as_tensor(src), at), at, index % x.shape[at], index % x.shape[at] + 1)


def slice_scatter(input: Any, src: Any, axis: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """x with the source as a part along an axis."""
    x = as_tensor(input)
    at = np.arange(x.shape[axis_of(axis, x.ndim)])[slice(start, end, step)]
    return _rows(x, axis, constant(at), s.broadcast_to(as_tensor(src), _with(x.shape, axis_of(axis, x.ndim), len(at))), "none")


def _with(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])


# ------------------------------------------------------------------------------------------------------------- by value
def one_hot(indices: Any, depth: Any, on_value: Any = 1, off_value: Any = 0, axis: int = -1) -> Tensor:
    """on_value where the position along the new axis is the index, else off_value."""
    index, count = as_tensor(indices), int(depth)
    if isinstance(on_value, Tensor | float) or isinstance(off_value, Tensor | float):
        dtype = numpy_dtype(on_value) if isinstance(on_value, Tensor) else np.dtype(np.float32)
    else:
        dtype = I64
    at = axis_of(axis, index.ndim + 1, "one_hot")
    shape = tuple(count if i == at else 1 for i in range(index.ndim + 1))
    kind = numpy_dtype(index)
    hit = a.equal(s.unsqueeze(index, at), constant(np.arange(count).astype(kind).reshape(shape)))
    on, off = (cast(v, dtype) if isinstance(v, Tensor) else scalar(v, dtype) for v in (on_value, off_value))
    return apply(o.Select(), hit, s.reshape(on, ()), s.reshape(off, ()))  # type: ignore[no-any-return]


def one_hot_torch(tensor: Any, num_classes: int = -1) -> Tensor:
    """1 at the index along a new last dimension, else 0: int64."""
    index = as_tensor(tensor)
    if num_classes == -1:
        from jumar.ops.reduction import amax  # noqa: PLC0415

        num_classes = int(amax(index).item()) + 1
    return cast(one_hot(index, num_classes), I64)


def nonzero(input: Any, *, as_tuple: bool = False) -> Any:
    """The places of the elements that are not zero: one row for each, or one vector for each dimension."""
    x = as_tensor(input)
    found = apply(o.NonZero(), x)
    if as_tuple:
        return tuple(s.select(found, 0, i) for i in range(max(x.ndim, 1)))
    return s.copy(s.transpose(found)) if eager() else s.transpose(found)


def argwhere(input: Any) -> Tensor:
    """The places of the elements that are not zero, one row for each."""
    return nonzero(input)  # type: ignore[no-any-return]


def masked_select(input: Any, mask: Any) -> Tensor:
    """The elements where the mask holds, in one row."""
    x, keep = as_tensor(input), a.as_bool(mask)
    shape = np.broadcast_shapes(x.shape, keep.shape)
    x, keep = s.broadcast_to(x, shape), s.broadcast_to(keep, shape)
    at = s.reshape(apply(o.NonZero(), s.ravel(keep)), (-1,))
    return apply(o.Gather(0), s.ravel(x), at)  # type: ignore[no-any-return]


def masked_scatter(input: Any, mask: Any, source: Any) -> Tensor:
    """x with the source's elements, in order, where the mask holds."""
    x, keep = as_tensor(input), a.as_bool(mask)
    shape = np.broadcast_shapes(x.shape, keep.shape)
    x, keep = s.broadcast_to(x, shape), s.broadcast_to(keep, shape)
    rank = apply(o.CumSum(0), cast(s.ravel(keep), I64))
    values = s.ravel(cast(as_tensor(source), numpy_dtype(x)))
    at = a.clamp(a.sub(rank, 1), 0, max(values.size - 1, 0))
    return apply(o.Select(), keep, s.reshape(apply(o.Gather(0), values, at), shape), x)  # type: ignore[no-any-return]


def sequence_mask(lengths: Any, maxlen: int | None = None) -> Tensor:
    """True at the first `length` places of a new last dimension."""
    n = as_tensor(lengths)
    if maxlen is None:
        from jumar.ops.reduction import amax  # noqa: PLC0415

        maxlen = int(amax(n).item())
    return a.less(constant(np.arange(maxlen).astype(numpy_dtype(n))), s.unsqueeze(n, -1))  # type: ignore[no-any-return]


def isin(element: Any, test_element: Any, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """True where the element is among the test elements."""
    from jumar.ops.reduction import any as any_of  # noqa: PLC0415

    x, among = as_tensor(element), s.ravel(test_element)
    found = any_of(a.equal(s.unsqueeze(x, -1), among), -1)
    return a.logical_not(found) if invert else found


def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
    """x with the values put at (or added to) the places that the indices name together."""
    from jumar.ops.indexing import linear, updated  # noqa: PLC0415

    x = as_tensor(input)
    index = tuple(indices) if isinstance(indices, tuple | list) else (indices,)
    value = cast(as_tensor(values), numpy_dtype(x))
    if not accumulate:
        return updated(x, index, value)
    flat_index: list[Any] = []
    for i in index:
        tensor = as_tensor(i)
        if numpy_dtype(tensor) == np.bool_:
            found = apply(o.NonZero(), tensor)
            flat_index += [s.select(found, 0, d) for d in range(tensor.ndim)]
        else:
            flat_index.append(cast(tensor, I64))
    k = len(flat_index)
    at, shape = linear(list(x.shape[:k]), flat_index)
    rest = x.shape[k:]
    flat = s.reshape(x, (math.prod(x.shape[:k]), *rest))
    new = s.reshape(s.broadcast_to(value, (*shape, *rest)), (math.prod(shape), *rest))
    return s.reshape(apply(o.ScatterNd("add"), flat, s.reshape(at, (-1, 1)), new), x.shape)


def put(input: Any, index: Any, source: Any, accumulate: bool = False) -> Tensor:
    """x with the source put at (or added to) places in the tensor laid flat."""
    x = as_tensor(input)
    at = s.reshape(places(index), (-1, 1))
    new = s.ravel(cast(as_tensor(source), numpy_dtype(x)))
    return s.reshape(apply(o.ScatterNd("add" if accumulate else "none"), s.ravel(x), at, new), x.shape)


def fill_diagonal(input: Any, fill_value: Any, wrap: bool = False) -> Tensor:
    """x with one number on its diagonal."""
    x = as_tensor(input)
    mask = np.zeros(x.shape, np.bool_)
    np.fill_diagonal(mask, True, wrap=wrap)
    return apply(o.Select(), constant(mask), scalar(fill_value, numpy_dtype(x)), x)  # type: ignore[no-any-return]


def unique_pair(input: Any, axis: int | None = None, sorted: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """The different elements, which of them each element is, and how often each occurs."""
    values, _, inverse, counts = apply(o.Unique(axis, sorted), as_tensor(input))
    return values, inverse, counts


def unique(input: Any) -> tuple[Tensor, Tensor]:
    """The different elements in order of appearance, and which of them each element is."""
    x = as_tensor(input)
    values, inverse, _ = unique_pair(s.ravel(x), sorted=False)
    kind = types.int64 if numpy_dtype(x) == I64 else types.int32
    return values, s.reshape(cast(inverse, kind), x.shape)


def unique_torch(input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """The different elements in ascending order; asked for: which of them each element is, how often each occurs."""
    x = as_tensor(input)
    values, inverse, counts = unique_pair(x if dim is not None else s.ravel(x), dim)
    found = [values]
    if return_inverse:
        found.append(s.reshape(inverse, x.shape) if dim is None else inverse)
    if return_counts:
        found.append(counts)
    return found[0] if len(found) == 1 else tuple(found)


def unique_consecutive(input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """The elements (or slices along a dimension) that differ from the one before."""
    from jumar.ops.reduction import any as any_of  # noqa: PLC0415
    from jumar.ops.reduction import cumsum, diff  # noqa: PLC0415

    x = as_tensor(input)
    rows = s.ravel(x) if dim is None else s.movedim(x, dim, 0)
    n = rows.shape[0]
    changed = a.not_equal(s.part(rows, 0, 1, max(n, 1)), s.part(rows, 0, 0, max(n - 1, 0)))
    if changed.ndim > 1:
        changed = any_of(s.reshape(changed, (changed.shape[0], -1)), 1)
    new = s.cat([filled((min(n, 1),), True, np.dtype(np.bool_)), changed])
    at = s.reshape(apply(o.NonZero(), new), (-1,))
    values: Tensor = apply(o.Gather(0), rows, at)
    found = [values if dim is None else s.movedim(values, 0, dim)]
    if return_inverse:
        inverse = a.sub(cumsum(cast(new, I64), 0), 1)
        found.append(s.reshape(inverse, x.shape) if dim is None else inverse)
    if return_counts:
        found.append(diff(at, append=constant(np.array([n], np.int64))))
    return found[0] if len(found) == 1 else tuple(found)


def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Tensor:
    """How often each number from 0 up occurs (float32); with weights, the sum of the weights."""
    return bincount_torch(input, filled(as_tensor(input).shape, 1, np.dtype(np.float32)) if weights is None else weights, minlength)


def bincount_torch(input: Any, weights: Any = None, minlength: int = 0) -> Tensor:
    """How often each number from 0 up occurs (int64); with weights, the sum of the weights."""
    from jumar.ops.reduction import amax  # noqa: PLC0415

    x = places(input)
    count = max(int(amax(x).item()) + 1 if x.size else 0, int(minlength))
    new = as_tensor(weights) if weights is not None else filled((x.size,), 1, I64)
    return apply(o.ScatterNd("add"), filled((count,), 0, numpy_dtype(new)), s.unsqueeze(x, 1), new)  # type: ignore[no-any-return]


def segment(op: str, x: Any, segment_ids: Any, num_segments: Any) -> Tensor:
    """The rows of each segment as one: add, max, min or mul."""
    data, ids = as_tensor(x), places(segment_ids)
    count = int(num_segments)
    flat = s.reshape(data, (ids.size, *data.shape[ids.ndim :]))
    dtype = numpy_dtype(data)
    if dtype.kind in "iu":
        limits: Any = np.iinfo(dtype)
    else:
        limits = a._finfo(dtype)
    start: Any = {"add": 0, "mul": 1, "max": limits.min, "min": limits.max}[op]
    into = filled((count, *flat.shape[1:]), start, dtype)
    keep = a.greater_equal(s.ravel(ids), 0)
    if op == "add":  # as MindSpore has it: a negative id is dropped
        rest = s.reshape(keep, (-1, *[1] * (flat.ndim - 1)))
        flat = a.where(rest, flat, 0)
        ids = a.maximum(ids, 0)
    return apply(o.ScatterNd(op), into, s.reshape(ids, (-1, 1)), flat)  # type: ignore[no-any-return]


def unsorted_segment_sum(input_x: Any, segment_ids: Any, num_segments: Any) -> Tensor:
    """The sum of the rows of each segment."""
    return segment("add", input_x, segment_ids, num_segments)


def unsorted_segment_max(x: Any, segment_ids: Any, num_segments: Any) -> Tensor:
    """The largest of the rows of each segment."""
    return segment("max", x, segment_ids, num_segments)


def unsorted_segment_min(x: Any, segment_ids: Any, num_segments: Any) -> Tensor:
    """The smallest of the rows of each segment."""
    return segment("min", x, segment_ids, num_segments)


def unsorted_segment_prod(x: Any, segment_ids: Any, num_segments: Any) -> Tensor:
    """The product of the rows of each segment."""
    return segment("mul", x, segment_ids, num_segments)


gather_d = gather_elements

__all__ = [
    "argwhere", "bincount", "embedding", "fill_diagonal", "gather", "gather_d", "gather_elements", "gather_nd", "index_fill", "index_select",
    "isin", "masked_scatter", "masked_select", "nonzero", "one_hot", "scatter", "scatter_div", "scatter_max", "scatter_min", "scatter_mul",
    "scatter_nd", "scatter_nd_add", "scatter_nd_div", "scatter_nd_max", "scatter_nd_min", "scatter_nd_mul", "scatter_nd_sub", "scatter_nd_update",
    "scatter_sub", "scatter_update", "select_scatter", "sequence_mask", "slice_scatter", "take", "tensor_scatter_add", "tensor_scatter_div",
    "tensor_scatter_elements", "tensor_scatter_max", "tensor_scatter_min", "tensor_scatter_mul", "tensor_scatter_sub", "tensor_scatter_update",
    "unique", "unique_consecutive", "unsorted_segment_max", "unsorted_segment_min", "unsorted_segment_prod", "unsorted_segment_sum",
]  # fmt: skip
