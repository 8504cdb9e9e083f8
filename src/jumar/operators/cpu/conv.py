"""Convolutions as contractions: which rows of channels-last x each output position reads.

In: a group (root.py) whose root is a Conv, its bias already an operand of the epilogue.  Out: tasks.
A 1x1 convolution is a matrix product.  Any other reads its windows through two tables, one for the outer dimensions and one for the
last: padding, strides and dilations cost nothing, and x is not copied.  With few channels a row of taps is one run of memory, once x has
its border.
Depthwise ones go to depthwise.py, 3x3 ones with stride 1 may go to winograd.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from jumar.base import Array
from jumar.device import Target
from jumar.ir import Node
from jumar.operators.contraction import Conv, accumulator
from jumar.operators.cpu.blocking import choose_blocks
from jumar.operators.cpu.epilogue import Axes, Layout
from jumar.operators.cpu.filters import Filters, forward, packed_filters
from jumar.operators.cpu.gemm import Shape, contraction_kernel
from jumar.operators.cpu.matmul import contraction_task, place_table, product_task, tiles_of
from jumar.operators.cpu.microkernel import Tile, register_tile
from jumar.operators.cpu.narrow import DEEPEST, narrow_task, narrow_tile
from jumar.operators.cpu.prepare import border_task, converted
from jumar.operators.cpu.root import RootGroup, grouped_axes, matrix_axes
from jumar.operators.schedule import Lowered, Packed, Task, TaskArg
from jumar.operators.windows import split_channels

PADDING = -(1 << 40)  # in a table: so low that no sum with it can be a place in memory
LEAST_ROWS = 48  # of a narrow product
RUN_CHANNELS = 12  # with so few channels or fewer, the taps of a row are taken as one run


@dataclass(frozen=True)
class Geometry:
    """Sizes of a channels-last convolution; spatial tuples are outermost first and have at least one entry."""

    n: int
    spatial: tuple[int, ...]
    channels: int
    filters: int
    groups: int
    kernel: tuple[int, ...]
    out: tuple[int, ...]
    strides: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    dilations: tuple[int, ...]
    images: int = 1  # examples that are batches of their own; n is then 1

    @property
    def inner(self) -> int:
        """Channels that one filter reads."""
        return self.channels // self.groups

    @property
    def filters_each(self) -> int:
        return self.filters // self.groups

    @property
    def rows(self) -> int:
        """Output positions of a batch."""
        return self.n * math.prod(self.out)

    @property
    def taps(self) -> int:
        return math.prod(self.kernel)

    @property
    def pointwise(self) -> bool:
        """A matrix product: each output position reads the input at the same place."""
        return self.taps == 1 and set(self.strides) == {1} and not any(self.low) and not any(self.high)

    @property
    def depthwise(self) -> bool:
        return self.inner == 1 and self.filters_each == 1 and self.groups > 1

    @property
    def bordered(self) -> tuple[int, tuple[int, int, int]]:
        """Rows of the last dimension, and elements before, of and after each."""
        return self.n * math.prod(self.spatial[:-1]), (
            self.low[-1] * self.channels,
            self.spatial[-1] * self.channels,
            self.high[-1] * self.channels,
        )

    @property
    def axes(self) -> Axes:
        if self.groups > 1:
            return grouped_axes(self.rows, self.groups, self.filters_each)
        return matrix_axes(1, self.rows, self.filters)


def geometry_of(root: Node) -> Geometry:
    """The sizes of a Conv node."""
    op, x, w = root.op, root.inputs[0], root.inputs[1]
    assert isinstance(op, Conv), "a convolution"
    n, channels, spatial = split_channels(x.shape, op.channels_last)
    out = split_channels(root.shape, op.channels_last)[2]
    if not spatial:
        return Geometry(n, (1,), channels, w.shape[0], op.groups, (1,), (1,), (1,), (0,), (0,), (1,))
    return Geometry(
        n, spatial, channels, w.shape[0], op.groups, w.shape[2:], out, op.strides, op.pads_low, op.pads_high, op.dilations
    )  # fmt: skip


def filters_of(g: Geometry) -> Filters:
    """The filters of a Conv of these sizes."""
    return forward(g.groups, g.filters_each, g.inner, g.taps)


def lower_conv(group: RootGroup, g: Geometry, x: TaskArg, filters: Filters, target: Target) -> Lowered | None:
    """The tasks of a channels-last convolution of what is at `x`, any kind, by the contraction kernel.   filters: of the root's second input."""
    tile = register_tile(target, accumulator(group.root.dtype))
    layout = group.layout(g.axes, tile.columns)
    if layout is None:
        return None
    tasks: list[Task] = []
    x = converted(x, group.root, tile.dtype, tile.lanes, tasks)
    tasks += window_tasks(group, g, x, filters, layout, tile, target)
    return Lowered(tuple(tasks))


def window_tasks(group: RootGroup, g: Geometry, x: TaskArg, filters: Filters, layout: Layout, tile: Tile, target: Target) -> list[Task]:
    """Packed filters and the contraction; x is of the tile's type.   layout: of `g.images` batches of groups, each of `g.rows` rows."""
    tasks: list[Task] = []
    w = group.root.inputs[1]
    if slim := narrow_of(g, tile, target):
        weights = packed_filters(group.place(w), group.array(w), w.dtype, filters, slim, tasks)
        zero = np.zeros(1, np.int64)
        sizes = (g.rows, g.filters, g.inner, g.channels)
        return [*tasks, narrow_task(group, layout, slim, sizes, x, weights, place_table(zero, zero, layout), target)]
    weights = packed_filters(group.place(w), group.array(w), w.dtype, filters, tile, tasks)
    panels = -(-g.filters_each // tile.columns)
    image, each = (v.reshape(-1) for v in np.indices((g.images, g.groups), dtype=np.int64))
    x_places = image * (math.prod(g.spatial) * g.channels) + each * g.inner
    places = place_table(x_places, each * (panels * g.taps * g.inner * tile.columns), layout)
    batches = g.images * g.groups
    if g.pointwise:
        blocks = choose_blocks(g.rows, g.filters_each, g.inner, 1, tile, target, batches)
        return [*tasks, product_task(group, layout, blocks, x, weights, places, g.channels)]
    windows = g
    runs = g.inner <= RUN_CHANNELS and g.groups == 1 and g.kernel[-1] > 1 and g.dilations[-1] == 1
    if runs and g.images == 1 and min(g.low[-1], g.high[-1]) >= 0:
        if g.low[-1] or g.high[-1]:
            task, x = border_task(x, tile.dtype, tile.lanes, *g.bordered)
            tasks.append(task)
        windows = runs_of(g)
    blocks = choose_blocks(g.rows, g.filters_each, windows.inner, windows.taps, tile, target, batches)
    outer, inner = window_tables(windows, g.channels)
    zeros = np.zeros(max(windows.inner, 1), tile.dtype.numpy)
    head: tuple[TaskArg, ...] = (
        *tiles_of(blocks, windows=True), x, weights, places, *blocks.args, Packed(zeros, "zeros"), Packed(outer, "outer"), Packed(inner, "inner"),
        inner.shape[0], outer.shape[1], inner.shape[1],
    )  # fmt: skip
    kernel = contraction_kernel(Shape(tile, layout.epilogue, windows=True, last=blocks.last))
    return [*tasks, contraction_task(group, layout, blocks, kernel, head)]


def narrow_of(g: Geometry, tile: Tile, target: Target) -> Tile | None:
    """The tile of a narrow product, where that is faster: everywhere with vectors of 256 bits or fewer (3 to 38 %); with AVX-512 only where it
    has fewer columns to fill up, since gemm.py's tile of 8 x 32 runs at 440 to 490 GF/s there, and narrow ones at 400 to 425 (Zen 5, relu)."""
    if not g.pointwise or g.groups * g.images > 1 or g.inner > DEEPEST or g.rows < LEAST_ROWS:
        return None
    slim = narrow_tile(g.rows, g.filters, tile.dtype, target)

    def filled(t: Tile) -> int:
        return -(-g.filters // t.columns) * t.columns

    return slim if target.vector_bits < 512 or filled(slim) < filled(tile) else None


def window_tables(g: Geometry, channels: int) -> tuple[Array, Array]:
    """Where windows begin, in elements: [n * outer positions, outer taps] and [inner positions, inner taps]; negative is padding.

    channels: elements from one position to the next in memory (more than `g.channels` where positions are runs).
    """
    step = channels
    places: list[Array] = []  # of each dimension: [out, kernel]
    for d in range(len(g.spatial) - 1, -1, -1):
        at = np.arange(g.out[d])[:, None] * g.strides[d] - g.low[d] + np.arange(g.kernel[d])[None, :] * g.dilations[d]
        places.insert(0, np.where((at >= 0) & (at < g.spatial[d]), at * step, PADDING))
        step *= g.spatial[d]
    outer = np.arange(g.n)[:, None] * step
    for place in places[:-1]:
        outer = np.maximum(outer[:, None, :, None] + place[None, :, None, :], PADDING).reshape(len(outer) * len(place), -1)
    return np.ascontiguousarray(outer, np.int64), np.ascontiguousarray(places[-1], np.int64)


def runs_of(g: Geometry) -> Geometry:
    """The same with the taps of the last dimension as one run of channels; x has its border in that dimension."""
    width = g.spatial[-1] + g.low[-1] + g.high[-1]
    channels = g.kernel[-1] * g.channels
    return replace(
        g, spatial=(*g.spatial[:-1], width), channels=channels, kernel=(*g.kernel[:-1], 1), low=(*g.low[:-1], 0), high=(*g.high[:-1], 0)
    )  # fmt: skip
