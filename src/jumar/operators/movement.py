"""Movement operators: reshape, transpose, slice, pad, join, gather and scatter; elements move, nothing is computed.

In: nodes and static numbers (shapes, permutations, bounds) as attributes.  Out: definitions; the importer resolves every runtime
size into those attributes, so nothing here looks at the value of a shape tensor.
"""
# mypy: disable-error-code="override, no-any-return"

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jumar.base import Array, DType, OpError, TensorType, bool_, dtype_of, f16, f32, i8, i32, i64, u8
from jumar.ir import Node, Result, Sample, constant, f32t, find_op, sample, tensor
from jumar.operators.elementwise import Grads, add, cast, convert, div, equal, mul, select
from jumar.operators.families import Composite, Movement, Source, broadcast, normal_axis, numel, wide


# ------------------------------------------------------------------------------------------------- the shape changes
class Reshape(Movement):
    """The same elements in row-major order under another shape of as many."""

    shape: tuple[int, ...]
    signature = "x[...] -> y[*shape]"
    samples = (
        sample(f32t(2, 6), shape=(3, 4)),
        sample(f32t(2, 3, 4), shape=(24,)),
        sample(f32t(1), shape=()),
        sample(f32t(0, 3), shape=(3, 0)),
        sample(tensor(i8, 4), shape=(1, 2, 2)),
    )

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        if numel(self.shape) != x.size or any(d < 0 for d in self.shape):
            raise OpError(f"reshape: shape must hold {x.size} elements, got {list(self.shape)} for {x}", code="reshape-size")
        return x.with_shape(self.shape)

    def reference(self, x: Array) -> Array:
        return x.reshape(self.shape)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (reshape(dy, x.shape),)


class Transpose(Movement):
    """Dimension i of the result is dimension perm[i] of x."""

    perm: tuple[int, ...]
    signature = "x[...] -> y[...]"
    samples = (
        sample(f32t(2, 3), perm=(1, 0)),
        sample(f32t(2, 3, 4, 5), perm=(0, 2, 3, 1)),
        sample(f32t(), perm=()),
        sample(tensor(f16, 2, 3, 4), perm=(2, 0, 1)),
        sample(tensor(u8, 3, 0, 2), perm=(2, 1, 0)),
        sample(tensor(i64, 40, 33), perm=(1, 0)),
    )
    cann = "aclnnPermute"

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        if sorted(self.perm) != list(range(x.rank)):
            raise OpError(f"transpose: perm must be an order of 0..{x.rank - 1}, got {self.perm}", code="perm")
        return x.with_shape(x.shape[p] for p in self.perm)

    def reference(self, x: Array) -> Array:
        return x.transpose(self.perm)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (transpose(dy, tuple(self.perm.index(i) for i in range(len(self.perm)))),)


class Broadcast(Movement):
    """x repeated along its dimensions of size 1, and along new ones in front, up to `shape`."""

    shape: tuple[int, ...]
    signature = "x[...] -> y[*shape]"
    samples = (
        sample(f32t(3, 1), shape=(2, 3, 4)),
        sample(f32t(), shape=(2, 2)),
        sample(tensor(i64, 2, 1), shape=(2, 0)),
        sample(tensor(bool_, 3), shape=(3,)),
    )
    cann = "aclnnExpand"

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        if broadcast(self.name, x.shape, self.shape) != self.shape:
            raise OpError(f"broadcast: x must broadcast to {list(self.shape)}, got {x}", code="broadcast")
        return x.with_shape(self.shape)

    def reference(self, x: Array) -> Array:
        return np.broadcast_to(x, self.shape)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (sum_to(dy, x.shape),)


class BitCast(Movement):
    """The bits of x read as another element type of the same width."""

    dtype: DType
    signature = "x[...] -> y[...]"
    samples = (
        sample(f32t(2, 3), dtype=i32),
        sample(tensor(i8, 4), dtype=u8),
        sample(tensor(f16, 0), dtype=f16),
        sample(tensor(i32), dtype=f32, low=0),
    )

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        if x.dtype.bits != self.dtype.bits or "s" in (x.dtype.kind, self.dtype.kind):
            raise OpError(f"bit_cast: dtype must have the {x.dtype.bits} bits of {x.dtype}, got {self.dtype}", code="bit-cast")
        return x.with_dtype(self.dtype)

    def reference(self, x: Array) -> Array:
        bits = self.dtype.bits
        code = np.ascontiguousarray(x).reshape(x.shape).view(np.uint8 if bits < 8 else np.dtype(f"V{bits // 8}"))
        if bits < 8:
            code = code & np.uint8((1 << bits) - 1)
            if self.dtype.kind == "i":
                return convert(code, self.dtype)
        return code.view(self.dtype.numpy)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (dy if x.dtype == self.dtype else None,)


# -------------------------------------------------------------------------------------------------- parts and wholes
class Slice(Movement):
    """From start to before stop by step, for each dimension; a negative step ends at stop -1 for the first element."""

    starts: tuple[int, ...]
    stops: tuple[int, ...]
    steps: tuple[int, ...]
    signature = "x[...] -> y[...]"
    samples = (
        sample(f32t(4, 6), starts=(1, 0), stops=(3, 6), steps=(1, 2)),
        sample(f32t(5), starts=(4,), stops=(-1,), steps=(-2,)),
        sample(tensor(i64, 3, 4), starts=(1, 3), stops=(1, 0), steps=(1, -1)),
        sample(f32t(), starts=(), stops=(), steps=()),
        sample(tensor(f16, 2, 3, 8), starts=(0, 1, 2), stops=(2, 2, 7), steps=(1, 1, 1)),
    )
    cann = "aclnnSliceV2"

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        if not len(self.starts) == len(self.stops) == len(self.steps) == x.rank or 0 in self.steps:
            raise OpError(f"slice: starts, stops and steps must name all {x.rank} dimensions, steps but 0, got {self}", code="slice-bounds")
        for d, (start, stop, step) in zip(x.dims, zip(self.starts, self.stops, self.steps)):
            if not (0 <= start <= d and (0 <= stop <= d if step > 0 else -1 <= stop <= d)):
                raise OpError(f"slice: bounds must lie within {x}, got {self}", code="slice-bounds")
        return x.with_shape(len(range(*bounds)) for bounds in zip(self.starts, self.stops, self.steps))

    def reference(self, x: Array) -> Array:
        return x[self.slices]

    @property
    def slices(self) -> tuple[slice, ...]:
        """As Python's slices, where a stop below zero would count from the end."""
        return tuple(slice(a, None if b < 0 else b, s) for a, b, s in zip(self.starts, self.stops, self.steps))

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        """dy with zeros between and around."""
        if not y.type.size:
            return (Broadcast(x.shape)(constant(0, x.dtype)),)
        firsts = tuple(b if s > 0 else b + (n - 1) * s for b, s, n in zip(self.starts, self.steps, y.shape))
        dx = flip(dy, [i for i, s in enumerate(self.steps) if s < 0])
        for axis, step in enumerate(self.steps):
            dx = spaced(dx, axis, abs(step))
        high = tuple(d - b - n for d, b, n in zip(x.shape, firsts, dx.shape))
        return (Pad(firsts, high)(dx) if dx.shape != x.shape else dx,)


class Pad(Movement):
    """x with `low` more elements before and `high` after it in each dimension.

    mode: constant (`value`), edge (the last element), reflect (without the edge), wrap (periodic).
    """

    low: tuple[int, ...]
    high: tuple[int, ...]
    mode: str = "constant"
    value: float | int | bool = 0
    signature = "x[...] -> y[...]"
    samples = (  # `sample` takes low and high for itself
        Sample((f32t(2, 3),), {"low": (0, 1), "high": (2, 0), "value": 1.5}),
        Sample((f32t(3, 4),), {"low": (2, 1), "high": (1, 3), "mode": "reflect"}),
        Sample((tensor(i64, 3),), {"low": (4,), "high": (5,), "mode": "wrap"}),
        Sample((f32t(2, 2),), {"low": (1, 0), "high": (0, 3), "mode": "edge"}),
        Sample((tensor(bool_, 3),), {"low": (1,), "high": (0,), "value": True}),
        Sample((f32t(0),), {"low": (1,), "high": (2,)}),
        Sample((f32t(),), {"low": (), "high": ()}),
    )
    cann = "aclnnConstantPadNd"

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        if self.mode not in ("constant", "edge", "reflect", "wrap"):
            raise OpError(f"pad: mode must be constant, edge, reflect or wrap, got {self.mode!r}", code="pad-mode")
        if not len(self.low) == len(self.high) == x.rank or any(p < 0 for p in (*self.low, *self.high)):
            raise OpError(f"pad: low and high must be {x.rank} numbers from 0 up, got {self.low} and {self.high}", code="pad-sizes")
        if self.mode != "constant" and any(not d and a + b for d, a, b in zip(x.dims, self.low, self.high)):
            raise OpError(f"pad: x must have elements to repeat where it is padded, got {x}", code="pad-sizes")
        return x.with_shape(d + a + b for d, a, b in zip(x.dims, self.low, self.high))

    def reference(self, x: Array) -> Array:
        widths = tuple(zip(self.low, self.high))
        if self.mode == "constant":
            filler: Any = convert(np.asarray(self.value), dtype_of(x.dtype)) if x.dtype != object else ""
            return np.pad(x, widths, constant_values=filler) if widths else x
        return np.pad(x, widths, mode=self.mode) if widths else x  # type: ignore[call-overload]

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        if self.mode != "constant":
            for axis, (low, d, high) in enumerate(zip(self.low, x.shape, self.high)):
                if low or high:
                    dy = gathered_back(dy, axis, d, np.pad(np.arange(d), (low, high), mode=self.mode))  # type: ignore[call-overload]
            return (dy,)
        return (Slice(self.low, tuple(a + d for a, d in zip(self.low, x.shape)), (1,) * x.rank)(dy),)


class Concat(Movement):
    """The inputs one after another along `axis`."""

    axis: int
    signature = "x[...]... -> y[...]"
    samples = (
        sample(f32t(2, 3), f32t(2, 1), axis=1),
        sample(f32t(1, 2), f32t(3, 2), f32t(0, 2), axis=-2),
        sample(tensor(i64, 2), axis=0),
        sample(tensor(f16, 2, 3, 2), tensor(f16, 2, 3, 4), axis=2),
        sample(tensor(bool_, 2), tensor(bool_, 2), axis=0),
    )
    cann = "aclnnCat"

    def infer(self, *types: TensorType) -> Result:
        first = types[0]
        axis = normal_axis(self.name, self.axis, first.rank)
        for t in types:
            others = (t.rank, t.dtype, t.shape[:axis], t.shape[axis + 1 :])
            if others != (first.rank, first.dtype, first.shape[:axis], first.shape[axis + 1 :]):
                raise OpError(
                    f"concat: inputs must differ in dimension {axis} only, got {' and '.join(map(str, types))}", code="concat-shapes"
                )
        total = sum(t.dims[axis] for t in types)
        return first.with_shape((*first.shape[:axis], total, *first.shape[axis + 1 :]))

    def reference(self, *x: Array) -> Array:
        return np.concatenate(x, self.axis)

    def grad(self, *nodes: Node) -> Grads:
        *inputs, y, dy = nodes
        axis, at, pieces = normal_axis(self.name, self.axis, y.rank), 0, []
        for x in inputs:
            pieces.append(slice_axis(dy, axis, at, at + x.shape[axis]))
            at += x.shape[axis]
        return tuple(pieces)


# ------------------------------------------------------------------------------------------------ gather and scatter
INDICES = np.array([[0, -1], [2, 1]], np.int64)


class Gather(Movement):
    """x's slices along `axis` at the indices, as numpy.take; a negative index counts from the end."""

    axis: int = 0
    signature = "x[...], indices[...] -> y[...]"
    samples = (
        sample(f32t(3, 4), INDICES),
        sample(f32t(2, 3, 2), INDICES.astype(np.int32), axis=1),
        sample(f32t(4, 3), np.array(-1), axis=-1),
        sample(tensor(i8, 5), np.array([4, 0, 0])),
        sample(tensor(f16, 3, 0), np.array([1])),
        sample(f32t(3, 2), np.zeros((0,), np.int64)),
    )
    cann = "aclnnGatherV2"

    def infer(self, *types: TensorType) -> Result:
        x, indices = types
        check_indices(self.name, indices)
        axis = normal_axis(self.name, self.axis, x.rank)
        return x.with_shape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))

    def reference(self, x: Array, indices: Array) -> Array:
        if not indices.size:  # NumPy takes not even nothing from nothing
            axis = normal_axis(self.name, self.axis, x.ndim)
            return np.empty((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)
        return np.take(x, named(self.name, indices, x.shape[self.axis]), self.axis)

    def grad(self, x: Node, indices: Node, y: Node, dy: Node) -> Grads:
        return GatherGrad(self.axis, x.shape)(dy, indices), None


class GatherGrad(Composite):
    """What the input of a `Gather` receives: zeros, with dy's slices along `axis` added at the indices.   x_shape: the shape of that input"""

    axis: int
    x_shape: tuple[int, ...]
    signature = "dy[...], indices[...] -> dx[*x_shape]"
    samples = (
        sample(f32t(2, 2, 4), INDICES, axis=0, x_shape=(3, 4)),
        sample(f32t(2, 2, 2, 2), INDICES.astype(np.int32), axis=1, x_shape=(2, 3, 2)),
        sample(f32t(4), np.array(-1), axis=-1, x_shape=(4, 3)),
        sample(tensor(f16, 3), np.array([4, 0, 0]), axis=0, x_shape=(5,)),
        sample(f32t(0, 2), np.zeros((0,), np.int64), axis=0, x_shape=(3, 2)),
    )
    cann = "aclnnEmbeddingDenseBackward"

    def infer(self, *types: TensorType) -> Result:
        dy, indices = types
        check_indices(self.name, indices)
        axis = normal_axis(self.name, self.axis, len(self.x_shape))
        expected = (*self.x_shape[:axis], *indices.shape, *self.x_shape[axis + 1 :])
        if dy.shape != expected or self.x_shape[axis] < 0:
            raise OpError(f"gather_grad: dy must be {list(expected)}, slices of {list(self.x_shape)}, got {dy}", code="gather-shapes")
        return dy.with_shape(self.x_shape)

    def reference(self, *arrays: Array) -> Array:
        dy, indices = arrays
        axis = normal_axis(self.name, self.axis, len(self.x_shape))
        dx = np.zeros(self.x_shape, wide(dy).dtype)
        place = named(self.name, indices, self.x_shape[axis])
        index: tuple[Any, ...] = (*(slice(None),) * axis, place)
        np.add.at(dx, index, wide(dy))
        return dx.astype(dy.dtype)

    def decompose(self, *inputs: Node) -> Node:
        """A scatter along the first dimension, to which the axis is brought."""
        dy, indices = inputs
        axis, rank = normal_axis(self.name, self.axis, len(self.x_shape)), len(self.x_shape)
        front = (axis, *(i for i in range(rank) if i != axis))
        last = axis + indices.rank
        slices = transpose(dy, (*range(axis, last), *range(axis), *range(last, dy.rank)))
        zeros = Broadcast(tuple(self.x_shape[i] for i in front))(constant(0, dy.dtype))
        dx = ScatterNd("add")(zeros, reshape(indices, (*indices.shape, 1)), slices)
        return transpose(dx, tuple(front.index(i) for i in range(rank)))

    def grad(self, dy: Node, indices: Node, dx: Node, ddx: Node) -> Grads:
        return Gather(self.axis)(ddx, indices), None


class GatherElements(Movement):
    """y[i, j, k] = x[i, indices[i, j, k], k] for axis 1; likewise for others.  Indices may be smaller than x beside the axis."""

    axis: int = 0
    signature = "x[...], indices[...] -> y[...]"
    samples = (
        sample(f32t(3, 2), INDICES, axis=0),
        sample(f32t(2, 3), INDICES, axis=-1),
        sample(tensor(i64, 4), np.array([3, -4], np.int32)),
        sample(f32t(3, 5), INDICES, axis=0),
    )
    cann = "aclnnGather"

    def infer(self, *types: TensorType) -> Result:
        x, indices = types
        check_indices(self.name, indices)
        axis = normal_axis(self.name, self.axis, x.rank)
        if x.rank != indices.rank or any(a < b for i, (a, b) in enumerate(zip(x.dims, indices.dims)) if i != axis):
            raise OpError(f"gather_elements: indices must fit into x beside dimension {axis}, got {x} and {indices}", code="gather-shapes")
        return x.with_shape(indices.shape)

    def reference(self, x: Array, indices: Array) -> Array:
        return x[element_index(x, named(self.name, indices, x.shape[self.axis]), self.axis)]

    def grad(self, x: Node, indices: Node, y: Node, dy: Node) -> Grads:
        zeros = Broadcast(x.shape)(constant(0, x.dtype))
        return ScatterElements(self.axis, "add")(zeros, indices, dy), None


def element_index(x: Array, indices: Array, axis: int) -> tuple[Array, ...]:
    """The NumPy index of x's elements that `indices` name along `axis`."""
    grid: list[Array] = list(np.indices(indices.shape, sparse=True))
    grid[axis] = indices
    return tuple(grid)


def named(name: str, indices: Array, size: int) -> Array:
    """The indices, after a look that each names one of `size` elements, from the begin or from the end."""
    wrong = indices[(indices < -size) | (indices >= size)]
    if wrong.size:
        raise OpError(f"{name}: indices must be within -{size}..{size - 1}, got {wrong.flat[0]}", code="index-range")
    return indices


class GatherNd(Movement):
    """x at the index tuples in the last dimension of the indices, for each of the first `batch_dims` dimensions apart."""

    batch_dims: int = 0
    signature = "x[...], indices[..., n] -> y[...]"
    samples = (
        sample(f32t(3, 3), INDICES),
        sample(f32t(3, 2, 2), INDICES[:, :1]),
        sample(f32t(2, 3, 2), np.array([[1], [-1]]), batch_dims=1),
        sample(tensor(i32, 2, 2), np.zeros((0, 2), np.int64)),
        sample(tensor(f16, 2, 3), np.array([[[1]], [[0]]]), batch_dims=1),
    )
    cann = "aclnnGatherNd"

    def infer(self, *types: TensorType) -> Result:
        x, indices = types
        check_indices(self.name, indices)
        b = self.batch_dims
        if not 0 <= b < indices.rank or x.shape[:b] != indices.shape[:b] or b + indices.dims[-1] > x.rank:
            raise OpError(
                f"gather_nd: indices must name dimensions of x after {b} shared ones, got {x} and {indices}", code="gather-shapes"
            )
        return x.with_shape((*indices.shape[:-1], *x.shape[b + indices.dims[-1] :]))

    def reference(self, x: Array, indices: Array) -> Array:
        b = self.batch_dims
        apart = (1,) * (indices.ndim - 1 - b)
        index = (*(g.reshape(*g.shape, *apart) for g in np.indices(indices.shape[:b])), *tuple_index(self.name, x.shape[b:], indices))
        result: Array = x[index] if index else np.broadcast_to(x, (*indices.shape[:-1], *x.shape))
        return result

    def grad(self, x: Node, indices: Node, y: Node, dy: Node) -> Grads:
        column = (*indices.shape[:-1], 1)
        batch = [Iota(column, axis, indices.dtype)() for axis in range(self.batch_dims)]
        zeros = Broadcast(x.shape)(constant(0, x.dtype))
        return ScatterNd("add")(zeros, concat([*batch, indices], indices.rank - 1), dy), None


def tuple_index(name: str, shape: tuple[int, ...], indices: Array) -> tuple[Array, ...]:
    """The NumPy index of the elements that the index tuples in the last dimension of `indices` name."""
    return tuple(named(name, i, size) for i, size in zip(np.moveaxis(indices, -1, 0), shape, strict=False))


def _scattered(into: Array, index: tuple[Array, ...], updates: Array, reduction: str) -> Array:
    result = into.copy()
    if reduction == "none":
        result[index] = updates
    else:
        SCATTER[reduction].at(result, index, updates)
    return result


SCATTER: dict[str, Any] = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


class ScatterElements(Movement):
    """x with updates[i, j, k] put at [i, indices[i, j, k], k] for axis 1; likewise for others.   reduction: none, add, mul, min, max."""

    axis: int = 0
    reduction: str = "none"
    signature = "x[...], indices[...], updates[...] -> y[...]"
    samples = (
        sample(f32t(3, 2), np.array([[0, -1], [2, 1]]), f32t(2, 2)),
        sample(f32t(2, 3), INDICES, f32t(2, 2), axis=-1),
        sample(f32t(4), np.array([1, 1, -3]), f32t(3), reduction="add"),
        sample(tensor(i64, 4), np.array([1, 1]), tensor(i64, 2), reduction="mul"),
        sample(f32t(4), np.array([1, 1]), f32t(2), reduction="max"),
        sample(f32t(4), np.array([0, 0]), f32t(2), reduction="min"),
        sample(f32t(4), np.zeros((0,), np.int64), f32t(0)),
    )
    cann = "aclnnScatter"

    def infer(self, *types: TensorType) -> Result:
        x, indices, updates = types
        check_indices(self.name, indices)
        check_reduction(self.name, self.reduction)
        axis = normal_axis(self.name, self.axis, x.rank)
        if x.rank != indices.rank or any(a < b for i, (a, b) in enumerate(zip(x.dims, indices.dims)) if i != axis):
            raise OpError(
                f"scatter_elements: indices must fit into x beside dimension {axis}, got {x} and {indices}", code="scatter-shapes"
            )
        if indices.shape != updates.shape or x.dtype != updates.dtype:
            raise OpError(
                f"scatter_elements: updates must be {x.dtype} of the shape of indices, got {updates} and {indices}", code="scatter-shapes"
            )
        return x

    def reference(self, x: Array, indices: Array, updates: Array) -> Array:
        return _scattered(x, element_index(x, named(self.name, indices, x.shape[self.axis]), self.axis), updates, self.reduction)

    def grad(self, x: Node, indices: Node, updates: Node, y: Node, dy: Node) -> Grads:
        def put(reduction: str, into: Node, values: Node) -> Node:
            return ScatterElements(self.axis, reduction)(into, indices, values)

        dx, du = scatter_grads(self.reduction, put, lambda v: GatherElements(self.axis)(v, indices), x, updates, y, dy)
        return dx, None, du


class ScatterNd(Movement):
    """x with the updates put at the index tuples in the last dimension of the indices.   reduction: none, add, mul, min, max."""

    reduction: str = "none"
    signature = "x[...], indices[..., n], updates[...] -> y[...]"
    samples = (
        sample(f32t(3, 2), np.array([[1], [-1]]), f32t(2, 2)),
        sample(f32t(3, 3), np.array([[0, 1], [2, 2], [0, 1]]), f32t(3), reduction="add"),
        sample(tensor(i32, 4), np.array([[1], [1]]), tensor(i32, 2), reduction="mul"),
        sample(f32t(4), np.array([[3]]), f32t(1), reduction="max"),
        sample(f32t(4), np.array([[3], [3]]), f32t(2), reduction="min"),
        sample(tensor(f16, 2, 2), np.zeros((0, 1), np.int64), tensor(f16, 0, 2)),
    )
    cann = "aclnnScatterNd"

    def infer(self, *types: TensorType) -> Result:
        x, indices, updates = types
        check_indices(self.name, indices)
        check_reduction(self.name, self.reduction)
        if indices.rank < 1 or indices.dims[-1] > x.rank:
            raise OpError(f"scatter_nd: indices must name dimensions of x, got {x} and {indices}", code="scatter-shapes")
        expected = (*indices.shape[:-1], *x.shape[indices.dims[-1] :])
        if updates.shape != expected or updates.dtype != x.dtype:
            raise OpError(f"scatter_nd: updates must be {x.dtype}{list(expected)}, got {updates}", code="scatter-shapes")
        return x

    def reference(self, x: Array, indices: Array, updates: Array) -> Array:
        return _scattered(x, tuple_index(self.name, x.shape, indices), updates, self.reduction)

    def grad(self, x: Node, indices: Node, updates: Node, y: Node, dy: Node) -> Grads:
        def put(reduction: str, into: Node, values: Node) -> Node:
            return ScatterNd(reduction)(into, indices, values)

        dx, du = scatter_grads(self.reduction, put, lambda v: GatherNd()(v, indices), x, updates, y, dy)
        return dx, None, du


def scatter_grads(
    reduction: str, put: Callable[[str, Node, Node], Node], take: Callable[[Node], Node], x: Node, updates: Node, y: Node, dy: Node
) -> tuple[Node, Node]:
    """What x and the updates of a scatter receive.   put: scatters values; take: gathers from where they went."""
    match reduction:
        case "add":
            return dy, take(dy)
        case "none":  # as if no element were written twice
            return put("none", dy, Broadcast(updates.shape)(constant(0, x.dtype))), take(dy)
        case "mul":  # to each factor the product of the others: where one is zero the rest of the product, where two are nothing
            zero = equal(updates, 0)
            zeros = put("add", Broadcast(x.shape)(constant(0, x.dtype)), cast(zero, x.dtype))
            rest = put("mul", x, select(zero, 1, updates))
            others = select(zero, select(equal(take(zeros), 1), take(rest), 0), div(take(y), select(zero, 1, updates)))
            return put("mul", dy, updates), mul(take(dy), others)
    extreme = equal(updates, take(y))  # in equal parts to all that are the extreme
    kept = equal(x, y)
    count = put("add", cast(kept, x.dtype), cast(extreme, x.dtype))
    share = div(dy, count)
    return select(kept, share, 0), select(extreme, take(share), 0)


def check_indices(name: str, indices: TensorType) -> None:
    """Indices are integers of 32 or 64 bits."""
    if indices.dtype not in (i32, i64):
        raise OpError(f"{name}: indices must be i32 or i64, got {indices}", code="dtype-mismatch")


def check_reduction(name: str, reduction: str) -> None:
    """A scatter overwrites or combines in one of four ways."""
    if reduction != "none" and reduction not in SCATTER:
        raise OpError(f"{name}: reduction must be none, {', '.join(SCATTER)}, got {reduction!r}", code="scatter-reduction")


class Iota(Source):
    """The position along `axis`: 0, 1, 2 ...; the same in all other dimensions."""

    shape: tuple[int, ...]
    axis: int = 0
    dtype: DType = i64
    signature = "-> y[*shape]"
    samples = (
        sample(shape=(5,)),
        sample(shape=(2, 3), axis=-1, dtype=f32),
        sample(shape=(3, 1), axis=0, dtype=i32),
        sample(shape=(0, 2), axis=1),
    )
    cann = "aclnnArange"

    def infer(self, *types: TensorType) -> Result:
        normal_axis(self.name, self.axis, len(self.shape))
        return TensorType(self.shape, self.dtype)

    def reference(self, *arrays: Array) -> Array:
        axis = normal_axis(self.name, self.axis, len(self.shape))
        column = np.arange(self.shape[axis]).reshape(-1, *(1,) * (len(self.shape) - 1 - axis))
        return np.broadcast_to(column, self.shape).astype(self.dtype.numpy)


# ---------------------------------------------------------------------------------------------------------- formulas
def reshape(x: Node, shape: tuple[int, ...]) -> Node:
    """x under another shape; x itself where it has it."""
    return x if x.shape == tuple(shape) else Reshape(tuple(shape))(x)


def transpose(x: Node, perm: tuple[int, ...]) -> Node:
    """x with its dimensions in another order; x itself where it is that order."""
    return x if tuple(perm) == tuple(range(x.rank)) else Transpose(tuple(perm))(x)


def broadcast_to(x: Node, shape: tuple[int, ...]) -> Node:
    """x repeated up to a shape; x itself where it has it."""
    return x if x.shape == tuple(shape) else Broadcast(tuple(shape))(x)


def slice_axis(x: Node, axis: int, start: int, stop: int, step: int = 1) -> Node:
    """x from start to before stop along one axis; x itself where that is all.  Bounds as in `Slice`."""
    if (start, stop, step) == (0, x.shape[axis], 1):
        return x
    starts, stops, steps = [0] * x.rank, list(x.shape), [1] * x.rank
    starts[axis], stops[axis], steps[axis] = start, stop, step
    return Slice(tuple(starts), tuple(stops), tuple(steps))(x)


def flip(x: Node, axes: Sequence[int]) -> Node:
    """x with its elements in reverse order along some dimensions."""
    back = [axis in axes and x.shape[axis] > 1 for axis in range(x.rank)]
    starts = tuple(size - 1 if b else 0 for size, b in zip(x.shape, back))
    stops = tuple(-1 if b else size for size, b in zip(x.shape, back))
    return Slice(starts, stops, tuple(-1 if b else 1 for b in back))(x) if any(back) else x


def spaced(x: Node, axis: int, step: int) -> Node:
    """x with zeros between the elements of one dimension, so that they stand `step` apart."""
    n = x.shape[axis]
    if step == 1 or n < 2:
        return x
    low, high = [0] * (x.rank + 1), [0] * (x.rank + 1)
    high[axis + 1] = step - 1
    rows = Pad(tuple(low), tuple(high))(Reshape((*x.shape[: axis + 1], 1, *x.shape[axis + 1 :]))(x))
    return slice_axis(Reshape((*x.shape[:axis], n * step, *x.shape[axis + 1 :]))(rows), axis, 0, (n - 1) * step + 1)


def gathered_back(dy: Node, axis: int, size: int, index: Array) -> Node:
    """The sum of dy's cells by the cell of `size` that each was copied from: for indices that run in long stretches, as padding's do."""
    total: Node | None = None
    at = 0
    while at < len(index):
        step = int(index[at + 1] - index[at]) if at + 1 < len(index) else 1
        end = at + 1
        while step in (-1, 0, 1) and end < len(index) and index[end] - index[end - 1] == step:
            end += 1
        part = slice_axis(dy, axis, at, end)
        first = int(min(index[at], index[end - 1]))
        if step == 0 and end - at > 1:
            part = sum_to(part, tuple(1 if a == axis else d for a, d in enumerate(dy.shape)))
        elif step < 0:
            part = flip(part, (axis,))
        low, high = (tuple(p if a == axis else 0 for a in range(dy.rank)) for p in (first, size - first - part.shape[axis]))
        part = Pad(low, high)(part) if part.shape[axis] != size else part
        total = part if total is None else add(total, part)
        at = end
    return total if total is not None else dy


def concat(xs: list[Node] | tuple[Node, ...], axis: int) -> Node:
    """The nodes one after another along an axis; the node itself where it is one."""
    return xs[0] if len(xs) == 1 else Concat(axis)(*xs)


def sum_to(x: Node, shape: tuple[int, ...]) -> Node:
    """x summed over what broadcasting would add to `shape`: the adjoint of `broadcast_to`."""
    extra = x.rank - len(shape)
    axes = (*range(extra), *(i + extra for i, d in enumerate(shape) if d == 1 and x.shape[i + extra] != 1))
    reduce_sum: Any = find_op("reduce_sum")  # by name: reduction.py builds on this file
    total = reduce_sum(axes=axes)(x) if axes else x
    return reshape(total, shape)
