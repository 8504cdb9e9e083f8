"""Indexing: `x[...]` and `x[...] = v` with all that NumPy's index may be made of.

In: a tensor and an index: ints, slices, None, Ellipsis, bools, lists, arrays, tensors, masks.  Out: a tensor, or the tensor written to.
Where nothing records, NumPy does it on the arrays: basic indices give views.  A recorder gets the same as operators: Slice and Reshape for basic indices,
Gather and ScatterNd by linear places for advanced ones, Select for masks with a value that broadcasts.  Only a mask
that picks elements needs its data (NonZero).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from jumar import operators as o
from jumar.base import Array
from jumar.ops import arithmetic as a
from jumar.ops import movement as s
from jumar.ops.operands import I64, Tensor, apply, as_tensor, cast, constant, eager, numpy_dtype, scalar, wrap


def getitem(x: Tensor, index: Any) -> Tensor:
    """x[index]."""
    if type(index) is list:
        index = _listed(index)
    if eager():
        plain = _plain(index)
        found = x.array[plain]
        if not isinstance(found, np.ndarray):  # NumPy copies a single element; with an ellipsis it stays a view
            found = x.array[(*plain, ...) if isinstance(plain, tuple) else (plain, ...)]
        return wrap(found)
    if isinstance(index, Tensor) and numpy_dtype(index) == np.bool_ and index.ndim:
        return _get_masked(x, index)
    if isinstance(index, bool | np.bool_):
        return s.part(s.unsqueeze(x, 0), 0, 0, int(index))
    plan = parse(x.shape, index)
    return _advanced(plan, _basic(plan, x)) if plan.advanced else _basic(plan, x)


def setitem(x: Tensor, index: Any, value: Any) -> None:
    """x[index] = value; the value broadcasts and takes x's element type."""
    if type(index) is list:
        index = _listed(index)
    if eager():
        array = x.array
        if not array.flags.writeable:
            array = x._value = array.copy()
        if isinstance(value, list | tuple):
            value = as_tensor(value)
        array[_plain(index)] = value.array if isinstance(value, Tensor) else value
        return
    filler = cast(value, x.dtype) if isinstance(value, Tensor) else _constant_value(x, value)
    x._write(updated(x, index, filler))


def updated(x: Tensor, index: Any, value: Tensor) -> Tensor:
    """x with the value at the index: a new tensor."""
    mask = _whole_mask(x, index)
    if mask is not None and _spreads(value, x, mask):
        return _put_by_mask(x, mask, value)
    plan = parse(x.shape, index)
    if plan.advanced:
        return _scatter(plan, x, value)
    shape = plan.basic_shape
    if value.ndim > len(shape):
        value = s.reshape(value, value.shape[value.ndim - len(shape) :])
    value = s.broadcast_to(value, shape) if value.shape != shape else value
    return replaced(x, plan.regions, s.reshape(value, plan.region_shape))


def _listed(index: list[Any]) -> Any:
    """A list of plain numbers is an array of places; with slices, lists or tensors in it, it is what a tuple is."""
    return index if all(isinstance(i, int | float | np.number | np.bool_) for i in index) else tuple(index)


def _plain(index: Any) -> Any:
    """The index with arrays for tensors, as NumPy wants it."""
    if isinstance(index, tuple):
        return tuple(map(_plain, index))
    if isinstance(index, Tensor):
        array = index.array
        return array if array.ndim or array.dtype == np.bool_ else int(array)
    if isinstance(index, list):
        return np.array([_plain(i) for i in index], None if index else np.int64)
    if isinstance(index, slice):
        return slice(*(int(v) if isinstance(v, Tensor) else v for v in (index.start, index.stop, index.step)))
    if isinstance(index, range):
        return np.array(index, np.int64)
    return index


def _constant_value(x: Tensor, value: Any) -> Tensor:
    if isinstance(value, bool | int | float | complex):
        return scalar(value, numpy_dtype(x))
    return cast(as_tensor(value), x.dtype)


# ---------------------------------------------------------------------------------------------------------------- plans
@dataclass(frozen=True)
class Region:
    """What a basic index takes of one dimension.   dropped: an int took the dimension away."""

    start: int
    stop: int
    step: int
    dropped: bool

    @property
    def count(self) -> int:
        return len(range(self.start, self.stop, self.step))


@dataclass(frozen=True)
class Plan:
    """An index, understood.

    regions: one for each dimension of x.   new: places of new dimensions in `basic_shape`.   advanced: dimension of x -> index (array or tensor of int64).
    together: whether the advanced indices stand side by side, so that their result takes their place; else it comes first.
    """

    shape: tuple[int, ...]
    regions: tuple[Region, ...]
    items: tuple[Any, ...]  # None for a new dimension, else the number of a dimension of x
    advanced: dict[int, Any]
    together: bool

    @property
    def region_shape(self) -> tuple[int, ...]:
        return tuple(r.count for r in self.regions)

    @property
    def basic_shape(self) -> tuple[int, ...]:
        """Shape after the basic part; advanced dimensions still whole."""
        return tuple(1 if i is None else self.regions[i].count for i in self.items if i is None or not self.regions[i].dropped)


def parse(shape: tuple[int, ...], index: Any) -> Plan:
    """The plan of an index for a tensor of that shape."""
    items = _expanded(shape, index)
    arrays = any(_is_array(i) for i in items)
    regions: list[Region] = []
    order: list[Any] = []
    advanced: dict[int, Any] = {}
    places: list[int] = []
    for at, item in enumerate(items):
        if item is None:
            order.append(None)
            continue
        axis = len(regions)
        size = shape[axis]
        order.append(axis)
        if isinstance(item, slice):
            regions.append(Region(*_bounds(item, size), False))
        elif _is_array(item) or arrays:
            advanced[axis] = _checked(item, size, axis)
            places.append(at)
            regions.append(Region(0, size, 1, False))
        else:
            number = _in_range(int(item), size, axis)
            regions.append(Region(number, number + 1, 1, True))
    together = not places or places[-1] - places[0] + 1 == len(places)
    return Plan(shape, tuple(regions), tuple(order), advanced, together)


def _bounds(item: slice, size: int) -> tuple[int, int, int]:
    parts = (int(v) if isinstance(v, Tensor | np.integer) else v for v in (item.start, item.stop, item.step))
    start, stop, step = slice(*parts).indices(size)
    count = len(range(start, stop, step))
    if not count:
        return 0, 0, 1
    if step > 0:
        return start, min(stop, size), step
    return start, max(stop, -1), step


def _in_range(number: int, size: int, axis: int) -> int:
    if not -size <= number < size:
        raise IndexError(f"index {number} is out of bounds for axis {axis} with size {size}")
    return number % size


def _is_array(item: Any) -> bool:
    """Whether it is an advanced index: an array or tensor that is not one plain int."""
    return isinstance(item, Tensor | np.ndarray)


def _checked(item: Any, size: int, axis: int) -> Any:
    """Places from 0 up, as an int64 array, or a tensor of them."""
    if isinstance(item, Tensor):
        if item.dtype.kind not in ("Int", "UInt"):
            raise IndexError(f"index: tensors must hold integers or bools, got {item.dtype}")
        return cast(item, I64)
    array = np.asarray(item)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise IndexError(f"index: arrays must hold integers or bools, got {array.dtype}")
    wrong = array[(array < -size) | (array >= size)]
    if wrong.size:
        raise IndexError(f"index {wrong.flat[0]} is out of bounds for axis {axis} with size {size}")
    return np.where(array < 0, array + size, array).astype(np.int64)


def _expanded(shape: tuple[int, ...], index: Any) -> list[Any]:
    """One item for each dimension and each new one: masks as places, Ellipsis as slices."""
    given = list(index) if isinstance(index, tuple) else [index]
    items: list[Any] = []
    for item in given:
        if isinstance(item, list | range | tuple):
            item = _from_list(item)
        if isinstance(item, np.bool_):
            item = bool(item)
        if isinstance(item, bool):
            item = np.array(item)
        if isinstance(item, np.ndarray) and item.ndim == 0 and item.dtype.kind in "iu":
            item = int(item)
        items.append(item)
    taken = sum(0 if i is None or i is Ellipsis else _dims_of(i) for i in items)
    if sum(i is Ellipsis for i in items) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if taken > len(shape):
        raise IndexError(f"too many indices for array: array is {len(shape)}-dimensional, but {taken} were indexed")
    rest = [slice(None)] * (len(shape) - taken)
    at = next((n for n, i in enumerate(items) if i is Ellipsis), None)
    items = [*items, *rest] if at is None else [*items[:at], *rest, *items[at + 1 :]]
    found: list[Any] = []
    axis = 0
    for item in items:
        if _is_mask(item):
            dims = item.ndim
            if dims == 0:
                raise IndexError("index: a single bool must stand alone in an index that is recorded")
            _check_mask(shape, axis, item)
            found += _places(item)
            axis += dims
        else:
            found.append(item)
            axis += item is not None
    return found


def _from_list(item: Any) -> Any:
    if any(isinstance(v, Tensor) for v in item):
        return s.stack([cast(as_tensor(v), I64) for v in item])
    return np.array(item, None if len(item) else np.int64)


def _is_mask(item: Any) -> bool:
    return (isinstance(item, Tensor) and numpy_dtype(item) == np.bool_) or (isinstance(item, np.ndarray) and item.dtype == np.bool_)


def _dims_of(item: Any) -> int:
    return item.ndim if _is_mask(item) else 1


def _check_mask(shape: tuple[int, ...], axis: int, mask: Any) -> None:
    wanted = shape[axis : axis + mask.ndim]
    if tuple(mask.shape) != wanted:
        raise IndexError(f"index: mask must have the shape {wanted} of the dimensions that it picks from, got {tuple(mask.shape)}")


def _places(mask: Any) -> list[Any]:
    """The places of the true elements, one vector for each dimension of the mask."""
    if isinstance(mask, np.ndarray):
        return list(np.nonzero(mask))
    found = apply(o.NonZero(), mask)
    return [s.select(found, 0, i) for i in range(mask.ndim)]


# ------------------------------------------------------------------------------------------------------------------ get
def _basic(plan: Plan, x: Tensor) -> Tensor:
    regions = plan.regions
    if any((r.start, r.stop, r.step) != (0, d, 1) for r, d in zip(regions, plan.shape, strict=True)):
        x = s.sliced(x, tuple(r.start for r in regions), tuple(r.stop for r in regions), tuple(r.step for r in regions))
    return s.reshape(x, plan.basic_shape)


def _advanced(plan: Plan, x: Tensor) -> Tensor:
    """The advanced part, on the result of the basic one."""
    kept = [i for i in plan.items if i is None or not plan.regions[i].dropped]
    axes = [n for n, i in enumerate(kept) if i in plan.advanced]
    indices = [plan.advanced[kept[n]] for n in axes]
    if len(axes) == 1:
        return apply(o.Gather(axes[0]), x, _as_index(indices[0]))  # type: ignore[no-any-return]
    rest = [n for n in range(x.ndim) if n not in axes]
    places, shape = linear([x.shape[n] for n in axes], indices)
    front = s.permute(x, axes + rest)
    flat = s.reshape(front, (math.prod(x.shape[n] for n in axes), *(x.shape[n] for n in rest)))
    y: Tensor = apply(o.Gather(0), flat, places)
    if not plan.together:
        return y
    before = sum(n < axes[0] for n in rest)
    return s.permute(y, (*range(len(shape), len(shape) + before), *range(len(shape)), *range(len(shape) + before, y.ndim)))


def _as_index(index: Any) -> Tensor:
    return index if isinstance(index, Tensor) else constant(np.asarray(index))


def linear(dims: list[int], indices: list[Any]) -> tuple[Tensor, tuple[int, ...]]:
    """Places in dimensions laid flat, and the shape to which the indices broadcast."""
    try:
        shape = np.broadcast_shapes(*(tuple(i.shape) for i in indices))
    except ValueError as error:
        shown = ", ".join(str(tuple(i.shape)) for i in indices)
        raise IndexError(f"shape mismatch: indexing arrays could not be broadcast together with shapes {shown}") from error
    if not any(isinstance(i, Tensor) for i in indices):
        total: Array = np.zeros(shape, np.int64)
        for size, index in zip(dims, indices, strict=True):
            total = total * size + index
        return constant(total), shape
    sum_: Any = 0
    for size, index in zip(dims, indices, strict=True):
        place = _as_index(index)
        if isinstance(index, Tensor):
            place = a.where(a.less(place, 0), a.add(place, size), place)
        sum_ = place if isinstance(sum_, int) else a.add(a.mul(sum_, size), place)
    return s.broadcast_to(sum_, shape) if sum_.shape != shape else sum_, shape


def _get_masked(x: Tensor, mask: Tensor) -> Tensor:
    """The elements (or slices) where the mask holds."""
    _check_mask(x.shape, 0, mask)
    places, _ = linear(list(mask.shape), _places(mask))
    return apply(o.Gather(0), s.reshape(x, (mask.size, *x.shape[mask.ndim :])), places)  # type: ignore[no-any-return]


# ------------------------------------------------------------------------------------------------------------------ set
def replaced(x: Tensor, regions: tuple[Region, ...], value: Tensor) -> Tensor:
    """x with the value in the regions: by joining what stays around it; by places where a region has gaps."""
    if not value.size:
        return x
    if any(r.step != 1 and r.count > 1 for r in regions):
        places = np.arange(x.size).reshape(x.shape)[tuple(_slice(r) for r in regions)]
        flat: Tensor = apply(o.ScatterNd(), s.ravel(x), constant(places.reshape(-1, 1)), s.ravel(value))
        return s.reshape(flat, x.shape)
    for axis, region in enumerate(regions):
        low, high = region.start, region.start + region.count
        if (low, high) == (0, x.shape[axis]):
            continue
        middle = s.part(x, axis, low, high)
        whole = tuple(Region(0, d, 1, False) if i <= axis else r for i, (d, r) in enumerate(zip(middle.shape, regions, strict=True)))
        parts = [s.part(x, axis, 0, low), replaced(middle, whole, value), s.part(x, axis, high, x.shape[axis])]
        return s.cat([p for p in parts if p.size], axis)
    return value


def _slice(region: Region) -> slice:
    return slice(region.start, None if region.stop < 0 else region.stop, region.step)


def _scatter(plan: Plan, x: Tensor, value: Tensor) -> Tensor:
    """x with the value at places that indices name."""
    axes = sorted(plan.advanced)
    if any(i is None for i in plan.items):
        raise IndexError("index: None cannot stand beside arrays in an assignment that is recorded")
    rest = [i for i in range(x.ndim) if i not in axes]
    places, shape = linear([x.shape[i] for i in axes], [plan.advanced[i] for i in axes])
    regions = [plan.regions[i] for i in rest]
    kept = tuple(r.count for r in regions if not r.dropped)
    before = sum(i < axes[0] for i in rest) if plan.together else 0
    wanted = (*kept[:before], *shape, *kept[before:])
    if value.shape != wanted:
        value = s.broadcast_to(s.reshape(value, value.shape[max(0, value.ndim - len(wanted)) :]), wanted)
    turned = (*range(before, before + len(shape)), *range(before), *range(before + len(shape), len(wanted)))
    value = s.permute(value, turned)
    flat = s.reshape(s.permute(x, axes + rest), (math.prod(x.shape[i] for i in axes), *(x.shape[i] for i in rest)))
    count = math.prod(shape)
    places = s.reshape(places, (count, 1))
    value = s.reshape(value, (count, *(r.count for r in regions)))
    if any(r.count != x.shape[i] or r.step != 1 for r, i in zip(regions, rest, strict=True)):
        old: Tensor = apply(o.Gather(0), flat, s.reshape(places, (count,)))
        value = replaced(old, (Region(0, count, 1, False), *regions), value)
    new: Tensor = apply(o.ScatterNd(), flat, places, value)
    order = axes + rest
    return s.permute(s.reshape(new, tuple(x.shape[i] for i in order)), tuple(order.index(i) for i in range(x.ndim)))


def _whole_mask(x: Tensor, index: Any) -> Tensor | None:
    """The mask, where the index is one mask and nothing else."""
    if isinstance(index, tuple) and len(index) == 1:
        (index,) = index
    if isinstance(index, bool | np.bool_):
        return constant(np.array(bool(index)))
    if isinstance(index, list) and index and all(isinstance(i, bool) for i in index):
        index = np.array(index)
    if not _is_mask(index):
        return None
    _check_mask(x.shape, 0, index)
    return _as_index(index)


def _spreads(value: Tensor, x: Tensor, mask: Tensor) -> bool:
    """Whether the value is the same for all that the mask picks."""
    rest = x.shape[mask.ndim :]
    inner = value.shape[max(0, value.ndim - len(rest)) :] if rest else ()
    outer = value.shape[: value.ndim - len(inner)]
    return all(d == 1 for d in outer) and all(p in (1, q) for p, q in zip(reversed(inner), reversed(rest), strict=False))


def _put_by_mask(x: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    rest = x.ndim - mask.ndim
    inner = value.shape[max(0, value.ndim - rest) :] if rest else ()
    value = s.reshape(value, inner)
    mask = s.reshape(mask, (*mask.shape, *[1] * rest))
    y: Tensor = apply(o.Select(), mask, value, x)
    return y
