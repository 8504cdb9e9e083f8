"""Images: resizing and sampling between the cells of a grid.

In: [n, c, *spatial] (Resize: any dimensions).  Out: the same channels at other places.  Where the places are known when the graph is made,
the operator says itself in gathers and matrix products; where they are data, the host runs the reference.
"""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Sequence

import numpy as np

from jumar.base import Array, OpError, TensorType, f16, i64, u8
from jumar.ir import Node, Result, constant, f32t, sample, tensor
from jumar.operators.activation import Clip
from jumar.operators.bilinear import corners
from jumar.operators.contraction import ConvTranspose, accumulator, matmul
from jumar.operators.elementwise import And, Floor, Round, add, cast, greater, greater_equal, less_equal, maximum, mul, select, sub
from jumar.operators.families import Composite, Special, check_word, wide
from jumar.operators.movement import (  # fmt: skip
    Broadcast,
    Gather,
    GatherNd,
    Reshape,
    ScatterNd,
    broadcast_to,
    named,
    reshape,
    slice_axis,
    transpose,
)  # fmt: skip
from jumar.operators.normalization import widened
from jumar.operators.sort import DataDependent
from jumar.operators.windows import windows_out

_DENSE_BELOW = 128  # an axis shorter than this is interpolated by a matrix product, a longer one by gathering its taps
_TIE = 1e-6  # a place this near to the middle of two cells is a tie, as in ONNX Runtime: f32 seldom meets 7.5 itself


MODES = ("nearest", "linear", "cubic")
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "shrink_ceil")
COORDINATES = (
    "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn",
)  # fmt: skip


class Resize(Composite):
    """Other sizes by interpolation, dimension by dimension, so that any layout of the dimensions will do.

    sizes, scales: of every dimension.   coordinates: how an output place becomes an input place (ONNX coordinate_transformation_mode).
    nearest: how mode "nearest" rounds a place.   cubic: the coefficient a of mode "cubic".   antialias: shrinking averages more.
    exclude_outside: cells outside of the image weigh nothing.   roi: for "tf_crop_and_resize", starts and ends; beyond it stands `outside`.
    """

    sizes: tuple[int, ...]
    scales: tuple[float, ...]
    mode: str = "nearest"
    coordinates: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    cubic: float = -0.75
    antialias: bool = False
    exclude_outside: bool = False
    roi: tuple[float, ...] = ()
    outside: float = 0.0
    signature = "x[...] -> y[*sizes]"
    samples = (
        sample(f32t(1, 2, 3, 4), sizes=(1, 2, 6, 8), scales=(1.0, 1.0, 2.0, 2.0), coordinates="asymmetric", nearest="floor"),
        sample(f32t(1, 2, 5, 4), sizes=(1, 2, 3, 7), scales=(1.0, 1.0, 0.6, 1.75)),
        sample(f32t(1, 2, 5, 4), sizes=(1, 2, 8, 6), scales=(1.0, 1.0, 1.6, 1.5), mode="linear"),
        sample(f32t(1, 2, 6, 7), sizes=(1, 2, 3, 4), scales=(1.0, 1.0, 0.5, 4 / 7), mode="linear", antialias=True),
        sample(f32t(1, 1, 5, 4), sizes=(1, 1, 8, 6), scales=(1.0, 1.0, 1.6, 1.5), mode="cubic", coordinates="align_corners"),
        sample(f32t(1, 1, 4, 4), sizes=(1, 1, 3, 3), scales=(1.0, 1.0, 0.75, 0.75), mode="cubic", exclude_outside=True),
        sample(f32t(1, 1, 4, 4), sizes=(1, 1, 3, 3), scales=(1.0, 1.0, 0.75, 0.75), mode="linear", coordinates="tf_crop_and_resize",
               roi=(0.0, 0.0, 0.4, 0.6, 1.0, 1.0, 1.2, 1.7), outside=10.0),
        sample(f32t(1, 1, 150), sizes=(1, 1, 200), scales=(1.0, 1.0, 4 / 3), mode="linear"),
        sample(tensor(f16, 1, 1, 3, 3), sizes=(1, 1, 6, 6), scales=(1.0, 1.0, 2.0, 2.0), mode="linear"),
        sample(tensor(u8, 1, 1, 3), sizes=(1, 1, 5), scales=(1.0, 1.0, 5 / 3)),
    )  # fmt: skip
    cann = "aclnnResize"

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        if not x.rank == len(self.sizes) == len(self.scales):
            raise OpError(f"resize: sizes and scales must have one entry for each of {x.rank} dimensions, got {self.sizes}", code="rank")
        if any(s <= 0 for s in self.scales) or (0 in x.shape and x.shape != self.sizes):
            raise OpError(f"resize: scales must be positive and x not empty, got {self.scales} for {x}", code="attribute")
        for word, known in ((self.mode, MODES), (self.coordinates, COORDINATES), (self.nearest, NEAREST)):
            check_word(self.name, word, known)
        if self.coordinates == "tf_crop_and_resize" and len(self.roi) != 2 * x.rank:
            raise OpError(f"resize: roi must hold {2 * x.rank} numbers, got {len(self.roi)}", code="attribute")
        return x.with_shape(self.sizes)

    def resized(self, shape: Sequence[int]) -> list[int]:
        """The dimensions that change."""
        return [a for a, size in enumerate(shape) if (size, self.scales[a], *self._region(a)) != (self.sizes[a], 1.0, 0.0, 1.0)]

    def _region(self, axis: int) -> tuple[float, float]:
        crops = self.roi and self.coordinates == "tf_crop_and_resize"
        return (self.roi[axis], self.roi[axis + len(self.sizes)]) if crops else (0.0, 1.0)

    def places(self, axis: int, size: int) -> Array:
        """Where each output cell lies along an input dimension of `size` cells; in f32, as ONNX Runtime and torch: it decides ties of "nearest".

        The length of the output is the whole number in `sizes`, as ONNX's text, ONNX Runtime and torch have it (onnx.reference: size * scale).
        """
        out, scale, half, last = self.sizes[axis], np.float32(self.scales[axis]), np.float32(0.5), np.float32(size - 1)
        i: Array = np.arange(out, dtype=np.float32)
        x: Array
        match self.coordinates:
            case "align_corners":
                x = i * 0 if out == 1 else i * last / np.float32(out - 1)
            case "asymmetric":
                x = i / scale
            case "tf_crop_and_resize":
                start, stop = np.array(self._region(axis), np.float32)
                x = half * (start + stop) * last + i * 0 if out == 1 else start * last + i * (stop - start) * last / np.float32(out - 1)
            case "half_pixel":
                x = (i + half) / scale - half
            case "pytorch_half_pixel":
                x = i * 0 if out == 1 else (i + half) / scale - half
            case "half_pixel_symmetric":
                adjustment = np.float32(out) / (scale * np.float32(size))
                x = np.float32(size) / 2 * (1 - adjustment) + (i + half) / scale - half
            case "tf_half_pixel_for_nn":
                x = (i + half) / scale
            case other:
                raise OpError(f"resize: coordinates must be a coordinate transformation of ONNX, got {other!r}", code="attribute")
        return x

    def nearest_cells(self, axis: int, size: int) -> Array:
        """Mode "nearest": the input cell of each output cell."""
        x = self.places(axis, size).astype(np.float64)
        if self.nearest in ("round_prefer_floor", "round_prefer_ceil"):
            x = np.where(np.abs(x - np.floor(x) - 0.5) <= _TIE, np.floor(x) + 0.5, x)
        match self.nearest:
            case "round_prefer_floor":
                cells = np.ceil(x - 0.5)
            case "round_prefer_ceil":
                cells = np.floor(x + 0.5)
            case "floor":
                cells = np.floor(x)
            case "ceil":
                cells = np.ceil(x)
            case "shrink_ceil":  # Upsample and Resize-10: floor where it grows, ceil where it shrinks
                cells = np.ceil(x) if self.scales[axis] < 1 else np.floor(x)
            case _:
                raise OpError(f"resize: nearest must be a nearest_mode of ONNX, got {self.nearest!r}", code="attribute")
        return np.clip(cells, 0, size - 1).astype(np.int64)

    def taps(self, axis: int, size: int) -> tuple[Array, Array]:
        """Modes "linear" and "cubic": input cells of each output cell and their weights.   -> [out, taps] twice"""
        x, scale = self.places(axis, size).astype(np.float64), float(np.float32(self.scales[axis]))
        stretch = min(scale, 1.0) if self.antialias else 1.0
        reach = (1 if self.mode == "linear" else 2) / stretch
        count = 2 * math.ceil(reach)
        # the left neighbour is the last cell strictly before x, so that a whole place has weight 1 on its right end
        cells = np.ceil(x).astype(np.int64)[:, None] - 1 + np.arange(count) - count // 2 + 1
        weights = self._kernel((cells - x[:, None]) * stretch)
        if self.exclude_outside:
            weights = np.where((cells < 0) | (cells >= size), 0, weights)
        if self.exclude_outside or self.antialias:
            weights = weights / weights.sum(axis=1, keepdims=True)
        return np.clip(cells, 0, size - 1), weights

    def _kernel(self, distance: Array) -> Array:
        d = np.abs(distance)
        if self.mode == "linear":
            return np.asarray(np.maximum(1 - d, 0))
        a = self.cubic
        inner = ((a + 2) * d - (a + 3)) * d * d + 1
        outer = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        return np.where(d <= 1, inner, np.where(d < 2, outer, 0))

    def matrix(self, axis: int, size: int) -> Array:
        """The interpolation along one dimension as a matrix.   -> [out, size]"""
        cells, weights = self.taps(axis, size)
        m = np.zeros((len(cells), size))
        np.add.at(m, (np.arange(len(cells))[:, None], cells), weights)
        return m

    def inside(self, shape: Sequence[int]) -> Array | None:
        """Where "tf_crop_and_resize" lies in the image; None where it does all over.   -> bool, broadcasts to sizes"""
        if self.coordinates != "tf_crop_and_resize":
            return None
        result = np.ones([1] * len(shape), np.bool_)
        for axis in self.resized(shape):
            x = self.places(axis, shape[axis])
            result = result & ((x >= 0) & (x <= shape[axis] - 1)).reshape([-1 if a == axis else 1 for a in range(len(shape))])
        return None if result.all() else result

    def reference(self, *arrays: Array) -> Array:
        (x,) = arrays
        shape = x.shape
        y = x if self.mode == "nearest" else x.astype(np.float64)
        for axis in self.resized(shape):
            if self.mode == "nearest":
                y = np.take(y, self.nearest_cells(axis, shape[axis]), axis=axis)
            else:
                y = np.moveaxis(np.moveaxis(y, axis, -1) @ self.matrix(axis, shape[axis]).T, -1, axis)
        inside = self.inside(shape)
        return (y if inside is None else np.where(inside, y, self.outside)).astype(x.dtype)

    def decompose(self, *inputs: Node) -> Node:
        (x,) = inputs
        shape, dtype = x.shape, x.dtype
        inner = dtype if self.mode == "nearest" or (dtype.is_float and dtype.bits >= 32) else accumulator(f16)
        y = cast(x, inner)
        for axis in self.resized(shape):
            if self.mode == "nearest":
                y = _repeat_or_gather(y, axis, self.nearest_cells(axis, shape[axis]))
            elif shape[axis] < _DENSE_BELOW:
                y = _along(y, axis, self.matrix(axis, shape[axis]))
            else:
                y = _tapped(y, axis, *self.taps(axis, shape[axis]))
        inside = self.inside(shape)
        if inside is not None:
            y = select(constant(inside), y, self.outside)
        return cast(y, dtype)


def _along(x: Node, axis: int, m: Array) -> Node:
    """The matrix `m` [out, in] on one dimension, without moving any."""
    lead, rest = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    shape = (*x.shape[:axis], len(m), *x.shape[axis + 1 :])
    if rest == 1:
        return Reshape(shape)(matmul(Reshape((lead, x.shape[axis]))(x), constant(m.T, x.dtype)))
    return Reshape(shape)(matmul(constant(m, x.dtype), Reshape((lead, x.shape[axis], rest))(x)))


def _tapped(x: Node, axis: int, cells: Array, weights: Array) -> Node:
    """The sum over taps of gathered cells times their weights."""
    y: Node | None = None
    for tap in range(cells.shape[1]):
        weight = constant(weights[:, tap].reshape(-1, *[1] * (x.rank - axis - 1)), x.dtype)
        part = mul(Gather(axis)(x, constant(cells[:, tap])), weight)
        y = part if y is None else add(y, part)
    assert y is not None, "an interpolation has taps"
    return y


def _repeat_or_gather(x: Node, axis: int, cells: Array) -> Node:
    """Cells along a dimension: each one repeated by broadcasting where the pattern is regular."""
    size, out = x.shape[axis], len(cells)
    if size and out % size == 0 and np.array_equal(cells, np.arange(out) // (out // size)):
        before, after = x.shape[: axis + 1], x.shape[axis + 1 :]
        y = Broadcast((*before, out // size, *after))(Reshape((*before, 1, *after))(x))
        return Reshape((*x.shape[:axis], out, *after))(y)
    return Gather(axis)(x, constant(cells))


class GridSample(Composite):
    """Reads `x` at the places of `grid`, whose last dimension counts x first, from -1 to 1 over the image.

    mode: nearest, linear or cubic.   padding: what lies outside is zeros, border (the edge) or reflection.
    """

    mode: str = "linear"
    padding: str = "zeros"
    align_corners: bool = False
    signature = "x[n, c, *spatial], grid[n, *out, d] -> y[n, c, *out]"
    samples = (
        sample(f32t(2, 3, 4, 5), f32t(2, 3, 3, 2), low=-1.2, high=1.2),
        sample(f32t(1, 2, 4, 5), f32t(1, 3, 3, 2), low=-1.5, high=1.5, mode="cubic", padding="reflection"),
        sample(f32t(1, 2, 3, 4, 5), f32t(1, 2, 2, 3, 3), low=-1.2, high=1.2, mode="nearest", padding="border", align_corners=True),
    )
    cann = "aclnnGridSampler2D"

    def infer(self, *types: TensorType) -> Result:
        x, grid = types
        if grid.rank != x.rank or grid.dims[-1] != x.rank - 2 or grid.dims[0] != x.dims[0]:
            raise OpError(f"grid_sample: grid must be [n, *out, {x.rank - 2}], got {grid} for {x}", code="dimension-mismatch")
        check_word(self.name, self.mode, MODES)
        check_word(self.name, self.padding, ("zeros", "border", "reflection"))
        if 0 in x.shape[2:]:
            raise OpError(f"grid_sample: x must have cells to read, got {x}", code="empty")
        return x.with_shape((*x.shape[:2], *grid.shape[1:-1]))

    def reference(self, *arrays: Array) -> Array:
        x, grid = arrays
        sizes = x.shape[2:]
        places = [self._place(wide(grid[..., -1 - a]).reshape(len(x), -1), size) for a, size in enumerate(sizes)]
        taps = [self._taps(p) for p in places]
        y = np.zeros((*x.shape[:2], places[0].shape[1]), np.float64)
        for chosen in itertools.product(*(range(len(t)) for t in taps)):
            cells = [taps[a][k][0] for a, k in enumerate(chosen)]
            weight = np.prod([taps[a][k][1] for a, k in enumerate(chosen)], axis=0)
            y += weight[:, None] * self._read(x, cells)
        return y.reshape(*x.shape[:2], *grid.shape[1:-1]).astype(x.dtype)

    def _place(self, g: Array, size: int) -> Array:
        x = (g + 1) / 2 * (size - 1) if self.align_corners else ((g + 1) * size - 1) / 2
        if self.mode == "nearest":
            x = np.rint(x)
        if self.padding == "border":
            return np.clip(x, 0, size - 1)
        return self._reflect(x, size) if self.padding == "reflection" else x

    def _reflect(self, x: Array, size: int) -> Array:
        low, high = (0.0, size - 1.0) if self.align_corners else (-0.5, size - 0.5)
        if high == low:
            return np.zeros_like(x)
        folded = np.mod(x - low, 2 * (high - low))
        inside = (x >= low) & (x <= high)
        return np.where(inside, x, low + np.where(folded > high - low, 2 * (high - low) - folded, folded))

    def _taps(self, x: Array) -> list[tuple[Array, Array]]:
        """Cells and weights along one dimension."""
        if self.mode == "nearest":
            return [(x.astype(np.int64), np.ones_like(x))]
        first = np.floor(x)
        offsets = (0, 1) if self.mode == "linear" else (-1, 0, 1, 2)
        kernel = Resize((), (), mode=self.mode)._kernel
        return [((first + o).astype(np.int64), kernel(x - first - o)) for o in offsets]

    def _read(self, x: Array, cells: Sequence[Array]) -> Array:
        """x at whole places, [n, c, points], with what lies outside as the padding says."""
        inside = np.ones(cells[0].shape, np.bool_)
        at = []
        for size, cell in zip(x.shape[2:], cells, strict=True):
            inside &= (cell >= 0) & (cell < size)
            if self.padding == "reflection":
                cell = self._reflect(cell.astype(np.float64), size).astype(np.int64)
            at.append(np.clip(cell, 0, size - 1)[:, None])
        index = (np.arange(len(x))[:, None, None], np.arange(x.shape[1])[:, None], *at)
        found = x[index]
        return np.where(inside[:, None], found, 0) if self.padding == "zeros" else found

    def decompose(self, *inputs: Node) -> Node:
        """Cells are gathered as rows of channels, tap by tap, and summed by their weights."""
        x, grid = (widened(n) for n in inputs)
        n, c, *sizes = x.shape
        points = math.prod(grid.shape[1:-1])
        rows = transpose(reshape(x, (n, c, math.prod(sizes))), (0, 2, 1))
        flat = reshape(grid, (n, points, len(sizes)))
        taps = [self._node_taps(reshape(slice_axis(flat, 2, i, i + 1), (n, points)), size) for i, size in enumerate(reversed(sizes))][::-1]
        total: Node | None = None
        for chosen in itertools.product(*taps):
            place, weight = chosen[0]
            for size, (cell, part) in zip(sizes[1:], chosen[1:], strict=True):
                place, weight = add(mul(place, size), cell), mul(weight, part)
            found = GatherNd(1)(rows, reshape(place, (n, points, 1)))
            found = mul(found, cast(reshape(weight, (n, points, 1)), found.dtype))
            total = found if total is None else add(total, found)
        assert total is not None, "a place has taps"
        return cast(reshape(transpose(total, (0, 2, 1)), (n, c, *grid.shape[1:-1])), inputs[0].dtype)

    def _node_taps(self, g: Node, size: int) -> list[tuple[Node, Node]]:
        """Cells and weights along one dimension, as nodes [n, points]."""
        x = mul(add(g, 1), (size - 1) / 2) if self.align_corners else mul(sub(mul(add(g, 1), size), 1), 0.5)
        if self.mode == "nearest":
            x = Round()(x)
        if self.padding == "border":
            x = Clip(0.0, size - 1.0)(x)
        elif self.padding == "reflection":
            x = self._node_reflect(x, size)
        first = Floor()(x)
        offsets = {"nearest": (0,), "linear": (0, 1), "cubic": (-1, 0, 1, 2)}[self.mode]
        taps = []
        for offset in offsets:
            cell = add(first, offset) if offset else first
            weight = self._node_weight(sub(x, first), offset)
            if self.padding == "zeros":
                weight = select(And()(greater_equal(cell, 0), less_equal(cell, size - 1)), weight, 0)
            elif self.padding == "reflection":
                cell = self._node_reflect(cell, size)
            taps.append((Clip(0, size - 1)(cast(cell, i64)), weight))
        return taps

    def _node_reflect(self, x: Node, size: int) -> Node:
        low, high = (0.0, size - 1.0) if self.align_corners else (-0.5, size - 0.5)
        span = high - low
        if span == 0:
            return mul(x, 0)
        shifted = sub(x, low)
        folded = sub(shifted, mul(Floor()(mul(shifted, 1 / (2 * span))), 2 * span))
        mirrored = add(select(greater(folded, span), sub(2 * span, folded), folded), low)
        return select(And()(greater_equal(x, low), less_equal(x, high)), x, mirrored)

    def _node_weight(self, after: Node, offset: int) -> Node:
        """The kernel at distance `after - offset`, where 0 <= after < 1."""
        if self.mode == "nearest":
            return add(mul(after, 0), 1)
        d = after if offset == 0 else sub(1, after) if offset == 1 else add(after, 1) if offset < 0 else sub(2, after)
        if self.mode == "linear":
            return sub(1, d)
        a = -0.75
        if offset in (0, 1):
            return add(mul(mul(sub(mul(d, a + 2), a + 3), d), d), 1)
        return sub(mul(add(mul(sub(mul(d, a), 5 * a), d), 8 * a), d), 4 * a)


def bilinear(image: Array, y: Array, x: Array) -> Array:
    """The image [c, h, w] at places between its cells; outside is zero.   -> [c, *places]"""
    _, h, w = image.shape
    top, left = np.floor(y).astype(np.int64), np.floor(x).astype(np.int64)
    total = np.zeros((len(image), *y.shape), np.result_type(image.dtype, np.float32))
    for row, column in itertools.product((0, 1), (0, 1)):
        i, j = top + row, left + column
        weight = np.maximum(1 - np.abs(y - i), 0) * np.maximum(1 - np.abs(x - j), 0)
        weight = np.where((i >= 0) & (i < h) & (j >= 0) & (j < w), weight, 0)
        total += image[:, np.clip(i, 0, h - 1), np.clip(j, 0, w - 1)] * weight
    return total


class DeformConv(Composite):
    """A convolution whose taps are moved by `offset` (for each tap: down, right) and weighed by `mask`."""

    strides: tuple[int, int]
    pads_low: tuple[int, int]
    pads_high: tuple[int, int]
    dilations: tuple[int, int]
    groups: int = 1
    offset_groups: int = 1
    signature = (
        "x[n, c, h, w], w[k, c/groups, kh, kw], offset[n, og*kh*kw*2, oh, ow], bias[k], mask[n, og*kh*kw, oh, ow] -> y[n, k, oh, ow]"
    )
    samples = (
        sample(f32t(1, 2, 5, 5), f32t(3, 2, 2, 2), f32t(1, 8, 4, 4), f32t(3), f32t(1, 4, 4, 4), strides=(1, 1), pads_low=(0, 0),
               pads_high=(0, 0), dilations=(1, 1)),
    )  # fmt: skip
    cann = "aclnnDeformableConv2d"

    def infer(self, *types: TensorType) -> Result:
        x, w, *_ = types
        out = windows_out(self.name, x.dims[2:], w.dims[2:], self.strides, self.pads_low, self.pads_high, self.dilations)
        (n, c), (k, inner, *kernel), g, og = x.dims[:2], w.dims, self.groups, self.offset_groups
        if g < 1 or og < 1 or c != inner * g or k % g or c % og:
            what = f"deform_conv: w must be [k, c/groups, ...] with c = {c}, groups = {g} and offset_groups = {og}, got {w}"
            raise OpError(what, code="dimension-mismatch")
        for what, t, channels in (("offset", types[2], 2), ("mask", types[4], 1)):
            wanted = (n, og * math.prod(kernel) * channels, *out)
            if t.shape != wanted:
                raise OpError(f"deform_conv: {what} must be {list(wanted)}, got {t}", code="dimension-mismatch")
        return x.with_shape((n, k, *out))

    def reference(self, *arrays: Array) -> Array:
        x, w, offset, bias, mask = arrays
        (n, c, _, _), (k, _, kh, kw), (oh, ow) = x.shape, w.shape, offset.shape[2:]
        og, g = self.offset_groups, self.groups
        offset, mask = offset.reshape(n, og, kh, kw, 2, oh, ow), mask.reshape(n, og, kh, kw, oh, ow)
        rows, columns = (
            np.arange(o).reshape(o if a == 0 else 1, -1) * s - low + (np.arange(t) * d).reshape((t, 1, 1, 1) if a == 0 else (1, t, 1, 1))
            for a, (o, s, low, t, d) in enumerate(zip((oh, ow), self.strides, self.pads_low, (kh, kw), self.dilations, strict=True))
        )
        cells = np.empty((n, c, kh, kw, oh, ow), np.float32 if x.dtype.itemsize < 8 else np.float64)
        for b, o in np.ndindex(n, og):
            part = slice(o * c // og, (o + 1) * c // og)
            places = rows + offset[b, o, :, :, 0], columns + offset[b, o, :, :, 1]
            cells[b, part] = bilinear(x[b, part], *places) * mask[b, o]
        y = np.matmul(w.reshape(g, k // g, -1), cells.reshape(n, g, -1, oh * ow)).reshape(n, k, oh, ow)
        return np.asarray(y + bias.reshape(-1, 1, 1)).astype(x.dtype)

    def decompose(self, *inputs: Node) -> Node:
        """Cells are gathered as rows of channels, four for each tap, and meet the filters in one matrix product."""
        x, w, offset, bias, mask = (widened(n) for n in inputs)
        (n, c, h, width), (k, _, kh, kw), (oh, ow) = x.shape, w.shape, offset.shape[2:]
        og, g, taps = self.offset_groups, self.groups, kh * kw
        moved = reshape(offset, (n * og, kh, kw, 2, oh, ow))
        places = []
        for axis, (o, t) in enumerate(((oh, kh), (ow, kw))):
            at = np.arange(o) * self.strides[axis] - self.pads_low[axis] + np.arange(t)[:, None] * self.dilations[axis]
            grid = at[:, None, :, None] if axis == 0 else at[None, :, None, :]
            part = reshape(slice_axis(moved, 3, axis, axis + 1), (n * og, kh, kw, oh, ow))
            places.append(reshape(add(part, constant(grid, x.dtype)), (n * og, taps * oh * ow, 1)))
        rows = transpose(reshape(x, (n * og, c // og, h * width)), (0, 2, 1))
        weight = reshape(mask, (n * og, taps * oh * ow, 1))
        cells: Node | None = None
        for place, share in corners(h, width, *places):
            part = mul(GatherNd(1)(rows, place), mul(share, weight))
            cells = part if cells is None else add(cells, part)
        assert cells is not None, "a place has four corners"
        columns = transpose(reshape(cells, (n, og, taps, oh * ow, c // og)), (0, 1, 4, 2, 3))
        y = matmul(reshape(w, (g, k // g, c // g * taps)), reshape(columns, (n, g, c // g * taps, oh * ow)))
        return cast(add(reshape(y, (n, k, oh, ow)), reshape(bias, (k, 1, 1))), inputs[0].dtype)


class RoiAlign(Special):
    """For each box (x1, y1, x2, y2) of `rois` in image `batch[i]`: the mean (or max) of points between the cells, in a grid of `out` bins.

    sampling: points for each bin and direction; 0 takes as many as the bin has cells.   half_pixel: the centre of cell 0 lies at 0.5.
    """

    out: tuple[int, int] = (1, 1)
    mode: str = "avg"
    sampling: int = 0
    scale: float = 1.0
    half_pixel: bool = True
    signature = "x[n, c, h, w], rois[r, 4], i64 batch[r] -> y[r, c, *out]"
    samples = (
        sample(f32t(1, 2, 6, 6), np.array([[0, 0, 4, 4], [1.5, 2, 5, 5.5]], np.float32), np.array([0, 0]), out=(2, 3)),
        sample(f32t(2, 2, 6, 5), np.array([[0, 0, 4, 4], [1.5, 2, 5, 8.5]], np.float32), np.array([1, 0]), out=(2, 3), sampling=2),
        sample(f32t(2, 1, 6, 6), np.array([[0, 0, 4, 4]], np.float32), np.array([1]), out=(2, 2), mode="max", sampling=2, scale=0.5,
               half_pixel=False),
    )  # fmt: skip
    cann = "aclnnRoiAlign"

    def infer(self, *types: TensorType) -> Result:
        x, rois, _ = types
        check_word(self.name, self.mode, ("avg", "max"))
        if min(self.out, default=0) < 1 or len(self.out) != 2 or self.sampling < 0 or 0 in x.shape[2:]:
            what = f"roi_align: out must be 2 numbers from 1 up, sampling 0 or more and x not empty, got {self} for {x}"
            raise OpError(what, code="window-sizes")
        return x.with_shape((rois.shape[0], x.shape[1], *self.out))

    def reference(self, *arrays: Array) -> Array:
        x, rois, batch = arrays
        y = np.zeros((len(rois), x.shape[1], *self.out), x.dtype)
        for r, (box, b) in enumerate(zip(rois.astype(np.float64), batch.ravel(), strict=True)):
            x1, y1, x2, y2 = box * self.scale - (0.5 if self.half_pixel else 0)
            sides = np.array([y2 - y1, x2 - x1])
            if not self.half_pixel:
                sides = np.maximum(sides, 1)
            bins = sides / self.out
            counts = [self.sampling or max(math.ceil(size), 0) for size in bins]
            points = [
                start + (np.arange(o)[:, None] + (np.arange(n) + 0.5) / max(n, 1)) * size
                for start, o, n, size in zip((y1, x1), self.out, counts, bins, strict=True)
            ]
            if all(counts):
                y[r] = self._bins(x[named(self.name, np.array([int(b)]), len(x))[0]], *points)
        return y

    def _bins(self, image: Array, ys: Array, xs: Array) -> Array:
        """ys: [out_h, points], xs: [out_w, points] -> [c, out_h, out_w]"""
        _, h, w = image.shape
        shape = (ys.shape[0], ys.shape[1], xs.shape[0], xs.shape[1])
        y, x = np.broadcast_to(ys[:, :, None, None], shape), np.broadcast_to(xs[None, None], shape)
        far = (y < -1) | (y > h) | (x < -1) | (x > w)
        y, x = np.clip(y, 0, h - 1), np.clip(x, 0, w - 1)
        if self.mode == "avg":
            return np.asarray(np.where(far, 0, bilinear(image, y, x)).mean(axis=(2, 4)))
        # "max" takes the largest weighted corner of each point, as ONNX defines it
        top, left = np.floor(y).astype(np.int64), np.floor(x).astype(np.int64)
        best = np.full((len(image), *shape), -np.inf)
        for row, column in itertools.product((0, 1), (0, 1)):
            i, j = np.minimum(top + row, h - 1), np.minimum(left + column, w - 1)
            weight = (y - top if row else 1 - y + top) * (x - left if column else 1 - x + left)
            best = np.maximum(best, image[:, i, j] * weight)
        return np.asarray(np.where(far, 0, best).max(axis=(2, 4)))

    def grad(self, x: Node, rois: Node, batch: Node, y: Node, dy: Node) -> tuple[Node, None, None]:
        """Each point gives its share to the four cells around it; boxes say where, and receive nothing (as MindSpore has it)."""
        if self.mode != "avg" or not self.sampling:
            what = f"roi_align: mode must be 'avg' and sampling a number from 1 up for a gradient, got {self.mode!r} and {self.sampling}"
            raise OpError(what, code="gradient-missing")
        (n, c, h, w), r, s = x.shape, rois.shape[0], self.sampling
        sides = []
        for axis, (out, size) in enumerate(zip(self.out, (h, w), strict=True)):
            low, high = (
                add(mul(slice_axis(rois, 1, i, i + 1), self.scale), -0.5 if self.half_pixel else 0.0) for i in (1 - axis, 3 - axis)
            )
            side = sub(high, low) if self.half_pixel else maximum(sub(high, low), 1)
            at = add(low, mul(mul(side, 1 / out), constant((np.arange(out * s) + 0.5) / s, rois.dtype)))  # [r, out * s]
            near = And()(greater_equal(at, -1), less_equal(at, size))
            shape = (r, out, 1, s, 1) if axis == 0 else (r, 1, out, 1, s)
            sides.append((reshape(Clip(0.0, size - 1.0)(at), shape), reshape(near, shape)))
        (ys, near_y), (xs, near_x) = sides
        full = (r, *self.out, s, s)
        near = And()(near_y, near_x)
        image = reshape(mul(cast(batch, i64), h * w), (r, 1, 1, 1, 1))
        back = reshape(mul(transpose(dy, (0, 2, 3, 1)), 1 / (s * s)), (r, *self.out, 1, 1, c))
        dx = Broadcast((n * h * w, c))(constant(0, x.dtype))
        for place, weight in corners(h, w, broadcast_to(ys, full), broadcast_to(xs, full)):
            part = mul(back, reshape(cast(select(near, weight, 0), x.dtype), (*full, 1)))
            dx = ScatterNd("add")(dx, reshape(add(place, image), (*full, 1)), part)
        return transpose(reshape(dx, (n, h, w, c)), (0, 3, 1, 2)), None, None


class MaxRoiPool(Special):
    """The largest cell in each of `out` bins of each box; a row of `rois` is (image, x1, y1, x2, y2)."""

    out: tuple[int, int]
    scale: float = 1.0
    signature = "x[n, c, h, w], rois[r, 5] -> y[r, c, *out]"
    samples = (sample(f32t(1, 2, 6, 6), np.array([[0, 0, 0, 3, 3], [0, 2, 1, 5, 5]], np.float32), out=(2, 2)),)
    cann = "aclnnRoiPoolingWithArgMax"

    def infer(self, *types: TensorType) -> Result:
        x, rois = types
        if min(self.out, default=0) < 1 or len(self.out) != 2:
            raise OpError(f"max_roi_pool: out must be 2 numbers from 1 up, got {self.out}", code="window-sizes")
        return x.with_shape((rois.shape[0], x.shape[1], *self.out))

    def reference(self, *arrays: Array) -> Array:
        x, rois = arrays
        y = np.zeros((len(rois), x.shape[1], *self.out), x.dtype)
        for r, (b, *sides) in enumerate(rois):
            x1, y1, x2, y2 = (int(np.floor(c * self.scale + 0.5)) for c in sides)
            bounds = [_bins(start, stop, n, size) for start, stop, n, size in zip((y1, x1), (y2, x2), self.out, x.shape[2:], strict=True)]
            for (i, (top, bottom)), (j, (left, right)) in itertools.product(*(enumerate(b) for b in bounds)):
                if top < bottom and left < right:
                    y[r, :, i, j] = x[named(self.name, np.array([int(b)]), len(x))[0], :, top:bottom, left:right].max(axis=(1, 2))
        return y


def _bins(start: int, stop: int, count: int, size: int) -> list[tuple[int, int]]:
    """First cell and end of each bin of a box side."""
    step = max(stop - start + 1, 1) / count
    edges = [(math.floor(i * step) + start, math.ceil((i + 1) * step) + start) for i in range(count)]
    return [(min(max(a, 0), size), min(max(b, 0), size)) for a, b in edges]


class Col2Im(Composite):
    """Adds blocks of columns into an image, where they overlap: the reverse of cutting it into windows."""

    image: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads_low: tuple[int, ...]
    pads_high: tuple[int, ...]
    dilations: tuple[int, ...]
    signature = "x[n, c * kernel, windows] -> y[n, c, *image]"
    samples = (
        sample(f32t(2, 18, 9), image=(5, 5), kernel=(3, 3), strides=(1, 1), pads_low=(0, 0), pads_high=(0, 0), dilations=(1, 1)),
        sample(f32t(1, 4, 12), image=(5, 6), kernel=(2, 2), strides=(2, 2), pads_low=(1, 1), pads_high=(0, 1), dilations=(1, 1)),
    )
    cann = "aclnnIm2colBackward"

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        if len(self.image) != len(self.kernel):
            raise OpError(f"col2_im: image and kernel must have one rank, got {self.image} and {self.kernel}", code="window-sizes")
        self.out()
        if x.dims[1] % math.prod(self.kernel) or x.dims[2] != math.prod(self.out()):
            what = f"col2_im: x must be [n, c * {math.prod(self.kernel)}, {math.prod(self.out())}], got {x}"
            raise OpError(what, code="dimension-mismatch")
        return x.with_shape((x.shape[0], x.dims[1] // math.prod(self.kernel), *self.image))

    def out(self) -> tuple[int, ...]:
        """Windows in each direction."""
        return windows_out(self.name, self.image, self.kernel, self.strides, self.pads_low, self.pads_high, self.dilations)

    def reference(self, *arrays: Array) -> Array:
        (x,) = arrays
        out = self.out()
        taps = x.reshape(len(x), x.shape[1] // math.prod(self.kernel), *self.kernel, *out)
        sizes = [i + low + high for i, low, high in zip(self.image, self.pads_low, self.pads_high, strict=True)]
        y = np.zeros((*taps.shape[:2], *sizes), x.dtype)
        for tap in np.ndindex(*self.kernel):
            cells = [slice(t * d, t * d + (o - 1) * s + 1, s) for t, d, s, o in zip(tap, self.dilations, self.strides, out, strict=True)]
            into, of = (slice(None), slice(None), *cells), (slice(None), slice(None), *tap)
            y[into] += taps[of]
        crop = (slice(None), slice(None), *(slice(low, low + i) for low, i in zip(self.pads_low, self.image, strict=True)))
        return y[crop]

    def decompose(self, *inputs: Node) -> Node:
        """A transposed convolution whose filter k puts its input at tap k."""
        (x,) = inputs
        n, taps, out = x.shape[0], math.prod(self.kernel), self.out()
        c = x.shape[1] // taps
        one = np.tile(np.eye(taps).reshape(taps, 1, *self.kernel), (c, 1, *[1] * len(self.kernel)))
        extra = tuple(
            i + low + high - (o - 1) * s - d * (k - 1) - 1
            for i, low, high, o, s, d, k in zip(
                self.image, self.pads_low, self.pads_high, out, self.strides, self.dilations, self.kernel, strict=True)
        )  # fmt: skip
        op = ConvTranspose(self.strides, self.pads_low, self.pads_high, extra, self.dilations, c)
        return op(Reshape((n, c * taps, *out))(x), constant(one, x.dtype))


_PIXEL = "424d3a0000000000000036000000280000000100000001000000010018000000000004000000130b0000130b000000000000000000000000ff00"  # a red BMP


class ImageDecode(DataDependent):
    """A picture from the bytes of its file.   pixels: RGB, BGR or Grayscale   -> u8 [height, width, channels]"""

    pixels: str = "RGB"
    signature = "u8 bytes[n] -> u8 y[h, w, channels]"
    samples = (sample(np.frombuffer(bytes.fromhex(_PIXEL), np.uint8)),)

    def reference(self, *arrays: Array) -> Array:
        check_word(self.name, self.pixels, ("RGB", "BGR", "Grayscale"))
        try:
            from PIL import Image  # noqa: PLC0415  (an optional package)
        except ImportError as error:
            what = "image_decode: Pillow must be installed to decode pictures, got none"
            raise OpError(what, hint="pip install pillow", code="package-missing") from error
        image = Image.open(io.BytesIO(arrays[0].tobytes()))
        if self.pixels == "Grayscale":
            return np.asarray(image.convert("L"))[:, :, None]
        rgb = np.asarray(image.convert("RGB"))
        return rgb[:, :, ::-1] if self.pixels == "BGR" else rgb
