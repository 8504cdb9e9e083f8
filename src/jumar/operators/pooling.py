"""Pools: one number for each window of each channel.

In: [n, c, *spatial] (or [n, *spatial, c] with channels_last).  Out: the same with fewer cells.  A ceil_mode is resolved by who makes
the operator into larger `pads_high`; global pools are ReduceMax and ReduceMean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jumar.base import Array, OpError, TensorType, dtype_of, f16, i64, u8
from jumar.ir import Node, Op, Result, constant, f32t, find_op, sample, tensor
from jumar.operators.elementwise import Abs, div, mul, power
from jumar.operators.families import Composite, wide
from jumar.operators.movement import Broadcast, Gather, Reshape, ScatterElements, named, transpose
from jumar.operators.windows import join_channels, split_channels, windows, windows_out


class Pool(Op):
    """What pools share.   kernel, strides, pads_low, pads_high, dilations: one number for each spatial dimension."""

    abstract = True
    family = "pool"
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads_low: tuple[int, ...]
    pads_high: tuple[int, ...]
    dilations: tuple[int, ...]

    def out(self, spatial: Sequence[int]) -> tuple[int, ...]:
        """Spatial sizes of the result."""
        return windows_out(self.name, spatial, self.kernel, self.strides, self.pads_low, self.pads_high, self.dilations)

    def pooled(self, x: TensorType, channels_last: bool = False) -> TensorType:
        """The type of the result."""
        n, c, spatial = split_channels(x.dims, channels_last)
        return x.with_shape(join_channels(n, c, self.out(spatial), channels_last))

    def windows(self, x: Array, fill: Any) -> Array:
        """[n, c, *out, *kernel]: the windows of `x`, cells outside of it being `fill`."""
        return windows(x, self.kernel, self.strides, self.pads_low, self.pads_high, self.dilations, fill)

    def window_axes(self) -> tuple[int, ...]:
        """The axes of `windows` that run inside of one window."""
        return tuple(range(-len(self.kernel), 0))


class MaxPool(Pool):
    """The largest element of each window; what lies outside of the input is never the largest."""

    channels_last: bool = False
    signature = "x[n, c, *spatial] -> y[n, c, *out]"
    samples = (
        sample(f32t(2, 3, 7, 6), kernel=(3, 2), strides=(2, 2), pads_low=(1, 0), pads_high=(1, 1), dilations=(1, 1)),
        sample(f32t(1, 7, 6, 4), kernel=(3, 3), strides=(2, 1), pads_low=(1, 1), pads_high=(1, 1), dilations=(1, 1), channels_last=True),
        sample(f32t(1, 2, 9), kernel=(3,), strides=(1,), pads_low=(0,), pads_high=(0,), dilations=(2,)),
        sample(tensor(u8, 1, 2, 4, 4), kernel=(2, 2), strides=(2, 2), pads_low=(0, 0), pads_high=(0, 0), dilations=(1, 1)),
    )
    cann = "aclnnMaxPool"

    def infer(self, *types: TensorType) -> Result:
        return self.pooled(types[0], self.channels_last)

    def reference(self, *arrays: Array) -> Array:
        x = np.moveaxis(arrays[0], -1, 1) if self.channels_last else arrays[0]
        y = self.windows(x, least(x.dtype)).max(axis=self.window_axes())
        return np.asarray(np.moveaxis(y, 1, -1) if self.channels_last else y)

    def grad(self, x: Node, y: Node, dy: Node) -> tuple[Node]:
        op = MaxPoolGrad(self.kernel, self.strides, self.pads_low, self.pads_high, self.dilations, self.channels_last)
        return (op(x, y, dy),)


class MaxPoolGrad(Pool, Composite):
    """What the input of a `MaxPool` receives: each window's dy goes to its largest cell, of equal ones to the first.

    y: the result of the pool, for targets that find the largest cell by comparing.
    """

    channels_last: bool = False
    signature = "x[n, ...], y[n, ...], dy[n, ...] -> dx[n, ...]"
    samples = (
        sample(np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4) % 7, np.array([[[[5, 6, 6], [5, 6, 6]]]], np.float32), f32t(1, 1, 2, 3),
               kernel=(2, 2), strides=(1, 1), pads_low=(0, 0), pads_high=(0, 0), dilations=(1, 1)),
        sample(f32t(2, 7, 6, 3), f32t(2, 4, 3, 3), f32t(2, 4, 3, 3), kernel=(3, 3), strides=(2, 2), pads_low=(1, 1), pads_high=(1, 1),
               dilations=(1, 1), channels_last=True),
        sample(f32t(1, 2, 9), f32t(1, 2, 5), f32t(1, 2, 5), kernel=(3,), strides=(1,), pads_low=(0,), pads_high=(0,), dilations=(2,)),
    )  # fmt: skip
    cann = "aclnnMaxPool2dWithIndicesBackward"

    def infer(self, *types: TensorType) -> Result:
        x, y, dy = types
        if not x.dtype.is_float or x.rank < 2:
            raise OpError(f"max_pool_grad: x must be [n, c, ...] of floats, got {x}", code="rank")
        expected = self.pooled(x, self.channels_last)
        for what, t in (("y", y), ("dy", dy)):
            if t != expected:
                raise OpError(
                    f"max_pool_grad: {what} must be {expected}, the type of the pool's result, got {t}", code="dimension-mismatch"
                )
        return x

    def indices(self) -> MaxPoolIndices:
        """The pool that tells where each maximum stands."""
        return MaxPoolIndices(self.kernel, self.strides, self.pads_low, self.pads_high, self.dilations)

    def reference(self, *arrays: Array) -> Array:
        x, _, dy = (np.moveaxis(a, -1, 1) if self.channels_last else a for a in arrays)
        place = self.indices().reference(x)[1]
        dx = np.zeros(x.size, wide(x).dtype)
        np.add.at(dx, place.ravel(), wide(dy).ravel())
        image = dx.reshape(x.shape).astype(x.dtype)
        return np.asarray(np.moveaxis(image, 1, -1) if self.channels_last else image)

    def decompose(self, *inputs: Node) -> Node:
        x, _, dy = inputs
        place, dy = self.places(x), _channels_second(dy, self.channels_last)
        zeros = Broadcast((x.type.size,))(constant(0, x.dtype))
        dx = ScatterElements(0, "add")(zeros, Reshape((dy.type.size,))(place), Reshape((dy.type.size,))(dy))
        return _channels_back(Reshape(_channels_second_shape(x, self.channels_last))(dx), self.channels_last)

    def places(self, x: Node) -> Node:
        """Where in the flat input, channels second, each maximum stands."""
        return self.indices()(_channels_second(x, self.channels_last))[1]

    def grad(self, x: Node, y: Node, dy: Node, dx: Node, ddx: Node) -> tuple[Node | None, ...]:
        """Linear in dy: the gradient is read where the maxima stand."""
        flat = Reshape((x.type.size,))(_channels_second(ddx, self.channels_last))
        return None, None, _channels_back(Gather(0)(flat, self.places(x)), self.channels_last)


class MaxPoolIndices(Pool):
    """Max pool with, as the second result, where each maximum stands in the flat input.

    column_major: the places count each image by columns first (ONNX storage_order = 1).
    """

    column_major: bool = False
    signature = "x[n, c, *spatial] -> y[n, c, *out], i64 place[n, c, *out]"
    samples = (
        sample(f32t(2, 3, 6, 6), kernel=(2, 2), strides=(2, 2), pads_low=(0, 0), pads_high=(0, 0), dilations=(1, 1)),
        sample(f32t(1, 2, 5, 6), kernel=(3, 3), strides=(1, 2), pads_low=(1, 1), pads_high=(1, 1), dilations=(1, 1), column_major=True),
    )
    cann = "aclnnMaxPool2dWithIndices"

    def infer(self, *types: TensorType) -> Result:
        y = self.pooled(types[0])
        return y, y.with_dtype(i64)

    def reference(self, *arrays: Array) -> tuple[Array, Array]:
        (x,) = arrays
        n, c, *spatial = x.shape
        size = math.prod(spatial)
        place = np.arange(size).reshape(spatial[::-1]).T if self.column_major else np.arange(size).reshape(spatial)
        place = place + size * np.arange(n * c).reshape(n, c, *[1] * len(spatial))
        cells, places = self.windows(x, least(x.dtype)), self.windows(place, -1)
        inside = len(self.kernel)
        cells = cells.reshape(*cells.shape[:-inside], math.prod(self.kernel))
        places = places.reshape(cells.shape)
        best = cells.argmax(axis=-1)[..., None]
        # where the input is as low as the padding, any cell inside of it will do
        best = np.where(np.take_along_axis(places, best, -1) < 0, (places >= 0).argmax(axis=-1)[..., None], best)
        return np.take_along_axis(cells, best, -1)[..., 0], np.take_along_axis(places, best, -1)[..., 0]

    def grad(self, x: Node, y: tuple[Node, ...], dy: tuple[Node | None, ...]) -> tuple[Node | None]:
        op = MaxPoolGrad(self.kernel, self.strides, self.pads_low, self.pads_high, self.dilations)
        return (op(x, y[0], dy[0]) if dy[0] is not None else None,)


class AvgPool(Pool):
    """The mean of each window.

    count_include_pad: padded cells count as zeros; otherwise the mean is over the cells inside of the input.
    uncounted_high: so much of pads_high never counts (it comes from ceil_mode).
    """

    count_include_pad: bool = False
    channels_last: bool = False
    uncounted_high: tuple[int, ...] = ()
    signature = "x[n, c, *spatial] -> y[n, c, *out]"
    samples = (
        sample(f32t(2, 3, 7, 6), kernel=(3, 2), strides=(2, 2), pads_low=(1, 0), pads_high=(1, 1), dilations=(1, 1)),
        sample(f32t(1, 7, 6, 4), kernel=(3, 3), strides=(2, 1), pads_low=(1, 1), pads_high=(1, 1), dilations=(1, 1), channels_last=True),
        sample(f32t(1, 2, 8, 6), kernel=(3, 3), strides=(2, 2), pads_low=(1, 1), pads_high=(2, 1), dilations=(1, 1), count_include_pad=True,
               uncounted_high=(1, 0)),
        sample(f32t(1, 2, 9), kernel=(3,), strides=(1,), pads_low=(0,), pads_high=(0,), dilations=(2,)),
        sample(tensor(f16, 1, 2, 4, 4), kernel=(2, 2), strides=(2, 2), pads_low=(0, 0), pads_high=(0, 0), dilations=(1, 1)),
    )  # fmt: skip
    cann = "aclnnAvgPool2d"

    def infer(self, *types: TensorType) -> Result:
        if len(self.uncounted_high) not in (0, len(self.kernel)):
            what = f"avg_pool: uncounted_high must be {len(self.kernel)} numbers or none, got {self.uncounted_high}"
            raise OpError(what, code="window-sizes")
        return self.pooled(types[0], self.channels_last)

    def counts(self, spatial: Sequence[int]) -> Array:
        """[*out]: by how many cells the sum of each window is divided; the product over dimensions of what each one counts."""
        total = np.ones((), np.int64)
        for axis, size in enumerate(spatial):
            low, high = self.pads_low[axis], self.pads_high[axis]
            first = np.arange(self.out(spatial)[axis]) * self.strides[axis] - low
            at = first[:, None] + np.arange(self.kernel[axis]) * self.dilations[axis]
            spare = self.uncounted_high[axis] if self.uncounted_high else 0
            least_, most = (-low, size + high - spare) if self.count_include_pad else (0, size)
            total = total[..., None] * ((at >= least_) & (at < most)).sum(axis=1)
        return np.asarray(total)

    def reference(self, *arrays: Array) -> Array:
        x = np.moveaxis(arrays[0], -1, 1) if self.channels_last else arrays[0]
        cells = self.windows(x, 0)
        total = cells.sum(axis=self.window_axes(), dtype=np.float64 if x.dtype == np.float64 else np.float32)
        y = total / self.counts(x.shape[2:]).astype(total.dtype)
        return np.asarray(np.moveaxis(y, 1, -1) if self.channels_last else y).astype(x.dtype)

    def grad(self, x: Node, y: Node, dy: Node) -> tuple[Node]:
        fields = (self.kernel, self.strides, self.pads_low, self.pads_high, self.dilations)
        return (AvgPoolGrad(x.shape, *fields, self.count_include_pad, self.channels_last, self.uncounted_high)(dy),)


class AvgPoolGrad(Composite):
    """What the input of an `AvgPool` receives: each window's dy in equal parts.   x_shape: the shape of that input."""

    x_shape: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads_low: tuple[int, ...]
    pads_high: tuple[int, ...]
    dilations: tuple[int, ...]
    count_include_pad: bool = False
    channels_last: bool = False
    uncounted_high: tuple[int, ...] = ()
    signature = "dy[n, ...] -> dx[*x_shape]"
    samples = (
        sample(f32t(2, 3, 4, 3), x_shape=(2, 3, 7, 6), kernel=(3, 2), strides=(2, 2), pads_low=(1, 0), pads_high=(1, 1), dilations=(1, 1)),
        sample(f32t(1, 4, 6, 4), x_shape=(1, 7, 6, 4), kernel=(3, 3), strides=(2, 1), pads_low=(1, 1), pads_high=(1, 1), dilations=(1, 1),
               channels_last=True),
        sample(f32t(1, 2, 5, 3), x_shape=(1, 2, 8, 6), kernel=(3, 3), strides=(2, 2), pads_low=(1, 1), pads_high=(2, 1), dilations=(1, 1),
               count_include_pad=True, uncounted_high=(1, 0)),
        sample(f32t(1, 2, 5), x_shape=(1, 2, 9), kernel=(3,), strides=(1,), pads_low=(0,), pads_high=(0,), dilations=(2,)),
        sample(tensor(f16, 1, 2, 2, 2), x_shape=(1, 2, 4, 4), kernel=(2, 2), strides=(2, 2), pads_low=(0, 0), pads_high=(0, 0),
               dilations=(1, 1)),
    )  # fmt: skip
    cann = "aclnnAvgPool2dBackward"

    @property
    def pool(self) -> AvgPool:
        """The pool whose gradient this is."""
        fields = (self.kernel, self.strides, self.pads_low, self.pads_high, self.dilations)
        return AvgPool(*fields, self.count_include_pad, self.channels_last, self.uncounted_high)

    def infer(self, *types: TensorType) -> Result:
        (dy,) = types
        x = dy.with_shape(self.x_shape)
        _, _, spatial = split_channels(self.x_shape, self.channels_last) if x.rank >= 2 else (0, 0, ())
        out = windows_out(self.name, spatial, self.kernel, self.strides, self.pads_low, self.pads_high, self.dilations)
        if len(self.uncounted_high) not in (0, len(self.kernel)):
            what = f"avg_pool_grad: uncounted_high must be {len(self.kernel)} numbers or none, got {self.uncounted_high}"
            raise OpError(what, code="window-sizes")
        if not dy.dtype.is_float or x.rank < 2 or dy.shape != self.pool.pooled(x, self.channels_last).shape:
            what = f"avg_pool_grad: dy must be the mean over windows of {list(self.x_shape)} ({list(out)} cells), got {dy}"
            raise OpError(what, code="dimension-mismatch")
        return x

    def reference(self, *arrays: Array) -> Array:
        dy = wide(np.moveaxis(arrays[0], -1, 1) if self.channels_last else arrays[0])
        n, c, spatial = split_channels(self.x_shape, self.channels_last)
        share = dy / self.pool.counts(spatial).astype(dy.dtype)
        dx = np.zeros((n, c, *(i + lo + hi for i, lo, hi in zip(spatial, self.pads_low, self.pads_high, strict=True))), dy.dtype)
        for tap in np.ndindex(*self.kernel):
            firsts = [t * d for t, d in zip(tap, self.dilations, strict=True)]
            cells = (slice(f, f + (o - 1) * s + 1, s) for f, o, s in zip(firsts, dy.shape[2:], self.strides, strict=True))
            into = (slice(None), slice(None), *cells)
            dx[into] += share
        crop = (slice(None), slice(None), *(slice(lo, lo + i) for lo, i in zip(self.pads_low, spatial, strict=True)))
        dx = dx[crop]
        return np.asarray(np.moveaxis(dx, 1, -1) if self.channels_last else dx).astype(arrays[0].dtype)

    def decompose(self, *inputs: Node) -> Node:
        """The shares, spread by a transposed convolution with a filter of ones, each channel an image of its own."""
        dy = _channels_second(inputs[0], self.channels_last)
        n, c, spatial = split_channels(self.x_shape, self.channels_last)
        share = div(dy, constant(self.pool.counts(spatial), dy.dtype))
        images = Reshape((n * c, 1, *dy.shape[2:]))(share)
        ones = Broadcast((1, 1, *self.kernel))(constant(1, dy.dtype))
        turned: Any = find_op("conv_grad_input")  # by name: contractions know pools
        fields = (self.strides, self.pads_low, self.pads_high, self.dilations)
        return _channels_back(Reshape((n, c, *spatial))(turned((n * c, 1, *spatial), *fields)(images, ones)), self.channels_last)

    def grad(self, dy: Node, dx: Node, ddx: Node) -> tuple[Node]:
        return (self.pool(ddx),)


class LpPool(Pool, Composite):
    """The p-norm of each window."""

    p: int = 2
    signature = "x[n, c, *spatial] -> y[n, c, *out]"
    samples = (
        sample(f32t(2, 3, 7, 6), kernel=(3, 2), strides=(2, 2), pads_low=(1, 0), pads_high=(1, 1), dilations=(1, 1)),
        sample(f32t(1, 2, 9), kernel=(3,), strides=(1,), pads_low=(0,), pads_high=(0,), dilations=(2,), p=3),
    )

    def infer(self, *types: TensorType) -> Result:
        if self.p < 1:
            raise OpError(f"lp_pool: p must be 1 or more, got {self.p}", code="attribute")
        return self.pooled(types[0])

    def reference(self, *arrays: Array) -> Array:
        (x,) = arrays
        total = (np.abs(self.windows(x, 0)).astype(np.float64) ** self.p).sum(axis=self.window_axes())
        return np.asarray(total ** (1 / self.p)).astype(x.dtype)

    def decompose(self, *inputs: Node) -> Node:
        (x,) = inputs
        mean = AvgPool(self.kernel, self.strides, self.pads_low, self.pads_high, self.dilations, count_include_pad=True)
        return power(mul(mean(power(Abs()(x), self.p)), math.prod(self.kernel)), 1 / self.p)


class MaxUnpool(Composite):
    """Puts each element of `x` at its place in a flat output of zeros: undoes MaxPoolIndices."""

    shape: tuple[int, ...]
    signature = "x[n, c, *spatial], i64 place[n, c, *spatial] -> y[*shape]"
    samples = (sample(f32t(1, 1, 2, 2), np.array([[[[5, 7], [13, 15]]]]), shape=(1, 1, 4, 4)),)
    cann = "aclnnMaxUnpool2d"

    def infer(self, *types: TensorType) -> Result:
        x, place = types
        if x.shape != place.shape or len(self.shape) != x.rank:
            raise OpError(f"max_unpool: x, place and shape must have one rank and x the shape of place, got {x}, {place} and {self.shape}",
                          code="dimension-mismatch")  # fmt: skip
        return x.with_shape(self.shape)

    def reference(self, *arrays: Array) -> Array:
        x, place = arrays
        y = np.zeros(math.prod(self.shape), x.dtype)
        y[named(self.name, place.ravel(), y.size)] = x.ravel()
        return y.reshape(self.shape)

    def decompose(self, *inputs: Node) -> Node:
        x, place = (Reshape((n.type.size,))(n) for n in inputs)
        zeros = Broadcast((math.prod(self.shape),))(constant(0, x.dtype))
        return Reshape(self.shape)(ScatterElements(0)(zeros, place, x))


def _channels_second(x: Node, channels_last: bool) -> Node:
    """[n, *spatial, c] as [n, c, *spatial]."""
    return transpose(x, (0, x.rank - 1, *range(1, x.rank - 1))) if channels_last else x


def _channels_back(x: Node, channels_last: bool) -> Node:
    """The inverse of `_channels_second`."""
    return transpose(x, (0, *range(2, x.rank), 1)) if channels_last else x


def _channels_second_shape(x: Node, channels_last: bool) -> tuple[int, ...]:
    n, c, spatial = split_channels(x.shape, channels_last)
    return (n, c, *spatial)


def least(dtype: Any) -> Any:
    """The value that no element is below: what lies outside of a max pool."""
    found = dtype_of(dtype)
    return -np.inf if found.is_float else np.iinfo(dtype).min
