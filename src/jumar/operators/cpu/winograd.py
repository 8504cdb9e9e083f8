"""Winograd's convolution: 3x3 filters at stride 1 with 2.25 or 4 times fewer products.

In: a group whose root is such a Conv (or the gradient of one's input), channels last.  Out: tasks, or None where the direct way is faster.
Filters are transformed at compile time where they are constant, else in each run.

A tile of m x m outputs needs (m + 2)^2 inputs: its transform V has as many positions, each position is a matrix product of all tiles
with transformed filters U, and M = V U is transformed back.  Lavin and Gray, Fast Algorithms for Convolutional Neural Networks (2015).
Two forms.  `blocked`: a chunk takes some tiles through all three steps, V and M stay in its scratch, in L2; for many tiles.
`stepped`: three tasks, the middle one a batched contraction split over filters, so that each weight is read once; for few tiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from jumar.base import Array, config, f32, i64
from jumar.device import Target
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.cpu.blocking import choose_blocks
from jumar.operators.cpu.conv import Geometry
from jumar.operators.cpu.epilogue import Epilogue, Layout, Lie, Strides, Writer, modulo, quotient
from jumar.operators.cpu.expression import Expression
from jumar.operators.cpu.filters import Filters, packed_filters
from jumar.operators.cpu.gemm import Shape, contraction_kernel, cover, heights
from jumar.operators.cpu.matmul import micro_kernels, writing_task
from jumar.operators.cpu.microkernel import Tile, register_tile
from jumar.operators.cpu.packing import pack_panels
from jumar.operators.cpu.root import RootGroup, matrix_axes
from jumar.operators.schedule import Lowered, Packed, Task, TaskArg, Temp, TempPlace

FILTER = {
    4: np.array(
        [[1 / 4, 0, 0], [-1 / 6, -1 / 6, -1 / 6], [-1 / 6, 1 / 6, -1 / 6], [1 / 24, 1 / 12, 1 / 6], [1 / 24, -1 / 12, 1 / 6], [0, 0, 1]]
    ),
    2: np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]]),
}
PAD = 16  # elements between positions in scratch: without them 36 streams fall on a few sets of the cache


Tails = tuple[bool, bool]


@dataclass(frozen=True)
class Plan:
    """A way to do it.   m: outputs of a tile in each direction; block: tiles of a chunk, 0 for the stepped form."""

    m: int
    block: int

    @property
    def side(self) -> int:
        return self.m + 2

    @property
    def positions(self) -> int:
        return self.side**2


def suits(g: Geometry) -> bool:
    """Whether the convolution has Winograd's form."""
    return (
        len(g.spatial) == 2
        and g.kernel == (3, 3)
        and set(g.strides) == {1}
        and set(g.dilations) == {1}
        and g.groups == 1
        and g.inner >= 8
        and g.filters >= 8
        and min(g.out) >= 2
    )


# ---------------------------------------------------------------------- choice
# cycles of one core, fitted on a Zen 3 to ResNet's and YOLO's layers
CYCLES_IN = {2: 60, 4: 200}  # of a tile's transform for one vector of channels, epilogue not counted
CYCLES_OUT = {2: 45, 4: 140}
TRANSFORM = {2: 10, 4: 22}  # of one filter of one channel, which is mostly the writing of its positions
EFFICIENCY = 0.88  # of the products
DRAM, L3 = 4.0, 16.0  # bytes per cycle and core that weights stream at when all cores read
SPILL = 10.0  # bytes per cycle of V and M where they leave L2


def choose_plan(g: Geometry, tile: Tile, target: Target, made: bool = False) -> Plan | None:
    """The fastest way by a model of cycles; None for the direct convolution.   made: filters are transformed in each run."""
    direct = 9 * g.inner * g.filters * g.rows / (2 * tile.lanes) / 0.95
    direct = max(direct, 36 * g.inner * g.filters / DRAM) / target.cores
    best: tuple[float, Plan | None] = (0.92 * direct, None)
    for m in (2, 4):
        tiles = tile_count(g, m)
        limit = int(1.25 * target.l2_nbytes) // ((m + 2) ** 2 * (g.inner + _padded(g, tile)) * 4)
        shares = {tile.covered(-(-tiles // (target.cores * parts))) for parts in range(1, 5)}
        plans = [Plan(m, 0), *(Plan(m, t) for t in sorted({*(tile.rows * i for i in (1, 2, 3, 4, 6, 8)), *shares}) if t <= limit)]
        each = TRANSFORM[m] * g.inner * _padded(g, tile) / target.cores if made else 0.0
        best = min([best, *((cycles(g, plan, tile, target) + each, plan) for plan in plans)], key=lambda b: b[0])
    return best[1]


def cycles(g: Geometry, plan: Plan, tile: Tile, target: Target) -> float:
    """Estimated cycles of a plan, all cores at work."""
    tiles, columns = tile_count(g, plan.m), _padded(g, tile)
    weights = plan.positions * g.inner * columns * 4
    transform = (CYCLES_IN[plan.m] * g.inner + CYCLES_OUT[plan.m] * columns) / tile.lanes
    row = plan.positions * g.inner * columns / (2 * tile.lanes) / EFFICIENCY  # the products of one tile
    if not plan.block:
        traffic = 2 * plan.positions * tiles * (g.inner + columns) * 4 / SPILL
        return (max(tile.covered(tiles) * row, weights / DRAM) + tiles * transform + traffic) / target.cores * 1.1 + 6000
    loads = [0.0] * target.cores  # chunks go to whoever is free
    for first in range(0, tiles, plan.block):
        count = min(plan.block, tiles - first)
        loads[loads.index(min(loads))] += max(tile.covered(count) * row, weights / L3) + 0.3 * weights / L3 + count * transform
    return max(loads) + 0.5 * weights / DRAM / target.cores


def tile_count(g: Geometry, m: int) -> int:
    return g.n * math.prod(-(-o // m) for o in g.out)


def _tails(g: Geometry, tile: Tile) -> Tails:
    return g.inner % tile.lanes > 0, g.filters % tile.lanes > 0


def _padded(g: Geometry, tile: Tile) -> int:
    return -(-g.filters // tile.columns) * tile.columns


# ---------------------------------------------------------------------- weights
def transform_filters(w: Array, filters: Filters, m: int, tile: Tile) -> Array:
    """-> [positions, panels, channels, columns].   Packed first, so that one matrix product by G x G does the rest."""
    taps = pack_panels(filters.matrix(w).reshape(9, filters.channels, filters.filters), tile)
    both = np.kron(FILTER[m], FILTER[m]).astype(tile.dtype.numpy)
    return (both @ taps.reshape(9, -1)).reshape(len(both), *taps.shape[1:])


def filter_rows(k: Builder, m: int, g: Sequence[Value]) -> list[Value]:
    """G g: one direction of the transform of filters."""
    a, b, c = g
    if m == 2:
        half = (a + c) * 0.5
        return [a, k.fma(b, 0.5, half), k.fma(b, -0.5, half), c]
    sixth, outer = b * (1 / 6), (a + c) * (-1 / 6)
    far = k.fma(c, 1 / 6, a * (1 / 24))
    return [a * 0.25, outer - sixth, outer + sixth, k.fma(b, 1 / 12, far), k.fma(b, -1 / 12, far), c]


@cache
def filter_kernel(m: int, tile: Tile) -> Kernel:
    """Transformed filters from packed ones: [panels, 9, channels, columns] -> [positions, panels, channels, columns].

    A chunk is some channels of one panel.
    """
    k = Builder(f"winograd{m}_filters")
    w, u = k.pointer("w", tile.dtype), k.pointer("u", tile.dtype)
    panels, channels, block, blocks = k.integer("panels"), k.integer("channels"), k.integer("block"), k.integer("blocks")
    side, line = m + 2, tile.columns
    panel, first = quotient(k, k.chunk, blocks), modulo(k, k.chunk, blocks) * block
    source, target = k.offset(w, panel * (9 * channels * line)), k.offset(u, panel * (channels * line))
    pitch = panels * channels * line
    held = k.array(tile.dtype, 3 * side * tile.lanes)
    with k.loop(first, k.minimum(first + block, channels)) as c, k.loop(0, line, tile.lanes) as at:
        here = c * line + at
        with k.loop(0, 3) as x:
            column = [k.load(source, (y * 3 + x) * channels * line + here, tile.lanes) for y in range(3)]
            for y, value in enumerate(filter_rows(k, m, column)):
                k.store(value, held, (x + y * 3) * tile.lanes, aligned=True)
        with k.loop(0, side) as i:
            row = [k.load(held, (i * 3 + j) * tile.lanes, tile.lanes, aligned=True) for j in range(3)]
            for j, value in enumerate(filter_rows(k, m, row)):
                k.store(value, target, (i * side + j) * pitch + here)
    return k.finish()


def transformed_filters(group: RootGroup, filters: Filters, m: int, tile: Tile, tasks: list[Task]) -> TaskArg:
    """Where they are: a constant, or what tasks make in each run."""
    w = group.root.inputs[1]
    value = group.array(w)
    if value is not None:
        return Packed(transform_filters(value, filters, m, tile), "winograd filters")
    packed = packed_filters(group.place(w), None, w.dtype, filters, tile, tasks)
    panels = -(-filters.filters // tile.columns)
    temp = TempPlace(Temp((m + 2) ** 2 * panels * filters.channels * tile.columns * tile.dtype.nbytes, "winograd filters"))
    block = max(1, min(filters.channels, 512 // tile.columns))
    blocks = math.ceil(filters.channels / block)
    args = (packed, temp, panels, filters.channels, block, blocks)
    tasks.append(Task(filter_kernel(m, tile), args, (1,), panels * blocks, nbytes=temp.temp.nbytes * 5 // 4, label="winograd filters"))
    return temp


# ---------------------------------------------------------------------- transforms on registers
def input_rows(k: Builder, m: int, d: Sequence[Value]) -> list[Value]:
    """B^T d: one direction of the transform of inputs."""
    if m == 2:
        return [d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]]
    even, odd = k.fma(d[2], -4.0, d[4]), k.fma(d[1], -4.0, d[3])
    p, q = d[4] - d[2], d[3] - d[1]
    return [
        k.fma(d[0], 4.0, k.fma(d[2], -5.0, d[4])), even + odd, even - odd, k.fma(q, 2.0, p), k.fma(q, -2.0, p),
        k.fma(d[1], 4.0, k.fma(d[3], -5.0, d[5])),
    ]  # fmt: skip


def output_rows(k: Builder, m: int, d: Sequence[Value]) -> list[Value]:
    """A^T d: one direction of the transform of products."""
    if m == 2:
        return [d[0] + d[1] + d[2], d[1] - d[2] - d[3]]
    s, t, u, v = d[1] + d[2], d[1] - d[2], d[3] + d[4], d[3] - d[4]
    return [d[0] + s + u, k.fma(v, 2.0, t), k.fma(u, 4.0, s), k.fma(v, 8.0, t) + d[5]]


@dataclass(frozen=True)
class Sizes:
    """The arguments that all three steps share.   tails: whether channels and filters are not whole vectors."""

    k: Builder
    n: dict[str, Value]
    tails: Tails

    def tile_at(self, index: Value, m: int) -> tuple[Value, Value, Value]:
        """Image, first output row and column of a tile."""
        k = self.k
        rest, column = quotient(k, index, self.n["tiles_x"]), modulo(k, index, self.n["tiles_x"])
        return quotient(k, rest, self.n["tiles_y"]), modulo(k, rest, self.n["tiles_y"]) * m, column * m


SIZES = ("tiles", "tiles_y", "tiles_x", "height", "width", "low_y", "low_x", "out_y", "out_x", "channels", "columns", "filters", "block")


def _declare(k: Builder, tails: Tails) -> Sizes:
    return Sizes(k, {name: k.integer(name) for name in SIZES}, tails)


def _size_args(g: Geometry, plan: Plan, columns: int, block: int) -> tuple[int, ...]:
    tiles_y, tiles_x = (-(-o // plan.m) for o in g.out)
    return (g.n * tiles_y * tiles_x, tiles_y, tiles_x, *g.spatial, *g.low, *g.out, g.inner, columns, g.filters, block)


def emit_input(s: Sizes, m: int, tile: Tile, x: Value, zeros: Value, table: Value, index: Value, target: Value, pitch: Value) -> None:
    """V of one tile, all channels.   table: scratch for its pointers; position p of the tile goes to target + p * pitch.

    Both directions are loops over rows of registers: a third of the code that straight lines would be, and as fast.
    """
    k, n, side, lanes = s.k, s.n, m + 2, tile.lanes
    image, row, column = s.tile_at(index, m)
    base = k.offset(x, image * (n["height"] * n["width"] * n["channels"]))
    with k.loop(0, side) as i:
        y = row + i - n["low_y"]
        outside_y = (y < 0) | (y >= n["height"])
        with k.loop(0, side) as j:
            at = column + j - n["low_x"]
            outside = outside_y | (at < 0) | (at >= n["width"])
            pointer = k.select(outside, zeros, k.offset(base, (y * n["width"] + at) * n["channels"]))
            k.store_pointer(pointer, table, i * side + j)
    held = k.array(tile.dtype, side * side * lanes)

    def block(c: Value, mask: Value | None) -> None:
        with k.loop(0, side) as column:
            values = [k.load(k.load_pointer(table, column + i * side, x.dtype), c, lanes, mask) for i in range(side)]
            for i, value in enumerate(input_rows(k, m, values)):
                k.store(value, held, (column + i * side) * lanes, aligned=True)
        with k.loop(0, side) as row:
            values = [k.load(held, (row * side + j) * lanes, lanes, aligned=True) for j in range(side)]
            for j, value in enumerate(input_rows(k, m, values)):
                k.store(value, target, (row * side + j) * pitch + c, mask)

    whole = n["channels"] - modulo(k, n["channels"], k.index(lanes))
    with k.loop(0, whole, lanes) as c:
        block(c, None)
    if s.tails[0]:
        block(whole, k.lane_mask(n["channels"] - whole, lanes))


def emit_output(
    s: Sizes, m: int, tile: Tile, writer: Writer, offset: Callable[[int], Value], index: Value, source: Value, pitch: Value
) -> None:
    """The outputs of one tile through the epilogue.   Position p of its products is at source + p * pitch."""
    k, n, side, lanes = s.k, s.n, m + 2, tile.lanes
    image, row, column = s.tile_at(index, m)
    rows, columns = k.minimum(n["out_y"] - row, m), k.minimum(n["out_x"] - column, m)
    first = (image * n["out_y"] + row) * n["out_x"] + column
    half, held = k.array(tile.dtype, m * side * lanes), k.array(tile.dtype, m * lanes)

    def block(c: Value, width: Value | None) -> None:
        with k.loop(0, side) as position:
            values = [k.load(source, (position + i * side) * pitch + c, lanes) for i in range(side)]
            for i, value in enumerate(output_rows(k, m, values)):
                k.store(value, half, (position + i * side) * lanes, aligned=True)
        part = writer.columns(offset, c, width, lanes)
        with k.loop(0, rows) as y:
            values = [k.load(half, (y * side + j) * lanes, lanes, aligned=True) for j in range(side)]
            for j, value in enumerate(output_rows(k, m, values)):
                k.store(value, held, j * lanes, aligned=True)
            with k.loop(0, columns) as x:
                part.write(first + y * n["out_x"] + x, k.load(held, x * lanes, lanes, aligned=True))

    whole = n["filters"] - modulo(k, n["filters"], k.index(lanes))
    with k.loop(0, whole, lanes) as c:
        block(c, None)
    if s.tails[1]:
        block(whole, n["filters"] - whole)


# ---------------------------------------------------------------------- kernels
@cache
def blocked_kernel(m: int, tile: Tile, epilogue: Epilogue, tails: Tails) -> Kernel:
    """All three steps for the tiles of a chunk."""
    k = Builder(f"winograd{m}")
    micro = (k.function_pointer("tile_full"), k.function_pointer("tile_small"))
    x, u, zeros, places = k.pointer("x", tile.dtype), k.pointer("u", tile.dtype), k.pointer("zeros", tile.dtype), k.pointer("places", i64)
    s = _declare(k, tails)
    writer = Writer(k, epilogue)
    scratch = k.thread_scratch("scratch", 0, tile.dtype)
    n, positions = s.n, (m + 2) ** 2
    first = k.chunk * n["block"]
    count = k.minimum(n["block"], n["tiles"] - first)
    word = 8 // tile.dtype.nbytes
    v = k.offset(scratch, _table_words(m) * word + (n["block"] + tile.small) * word)
    v_pitch = n["block"] * n["channels"] + PAD
    products = k.offset(v, v_pitch * positions)
    m_pitch = (n["block"] + tile.small) * n["columns"] + PAD
    table = k.cast_pointer(scratch, i64)
    rows = k.offset(table, _table_words(m))
    with k.loop(0, count) as t:
        emit_input(s, m, tile, x, zeros, table, first + t, k.offset(v, t * n["channels"]), v_pitch)
    fulls, smalls = cover(k, count, tile)
    covers = heights(k, tile, fulls, smalls)
    for height, base, tiles in covers:
        with k.loop(0, tiles) as t:
            for i in range(height):
                row = k.minimum(base + t * height + i, count - 1)
                k.store_pointer(k.offset(v, row * n["channels"]), rows, base + t * height + i)
    panel_size = n["channels"] * tile.columns
    with k.loop(0, positions) as p, k.loop(0, n["columns"], tile.columns) as column:
        b = k.offset(u, (p * n["columns"] + column) * n["channels"])
        c = k.offset(products, p * m_pitch + column)
        share = quotient(k, panel_size, fulls + smalls)
        for function, (height, base, tiles) in zip(micro, covers, strict=True):
            with k.loop(0, tiles) as t:
                row = base + t * height
                ahead = k.offset(b, panel_size + share * (t if height == tile.rows else fulls + t))
                k.call(
                    function, k.offset(rows, row), 1, p * v_pitch, n["channels"], b, k.offset(c, row * n["columns"]), n["columns"], 0, ahead
                )  # fmt: skip
    with k.loop(0, count) as t:
        emit_output(s, m, tile, writer, lambda i: k.load(places, 2 + i), first + t, k.offset(products, t * n["columns"]), m_pitch)
    return k.finish()


def _table_words(m: int) -> int:
    """Words of scratch for a tile's pointers, whole cache lines."""
    return -(-((m + 2) ** 2) // 8) * 8


@cache
def input_kernel(m: int, tile: Tile, tails: Tails) -> Kernel:
    """The first step alone: V of a block of tiles, [positions, tiles, channels]."""
    k = Builder(f"winograd{m}_input")
    x, v, zeros = k.pointer("x", tile.dtype), k.pointer("v", tile.dtype), k.pointer("zeros", tile.dtype)
    s = _declare(k, tails)
    table = k.thread_scratch("table", 0, i64)
    n = s.n
    with k.loop(k.chunk * n["block"], k.minimum((k.chunk + 1) * n["block"], n["tiles"])) as t:
        emit_input(s, m, tile, x, zeros, table, t, k.offset(v, t * n["channels"]), n["tiles"] * n["channels"] + PAD)
    return k.finish()


@cache
def output_kernel(m: int, tile: Tile, epilogue: Epilogue, tails: Tails) -> Kernel:
    """The last step alone."""
    k = Builder(f"winograd{m}_output")
    products, places = k.pointer("products", tile.dtype), k.pointer("places", i64)
    s = _declare(k, tails)
    writer = Writer(k, epilogue)
    n = s.n
    with k.loop(k.chunk * n["block"], k.minimum((k.chunk + 1) * n["block"], n["tiles"])) as t:
        source, pitch = k.offset(products, t * n["columns"]), n["tiles"] * n["columns"] + PAD
        emit_output(s, m, tile, writer, lambda i: k.load(places, 2 + i), t, source, pitch)
    return k.finish()


# ---------------------------------------------------------------------- tasks
def lower_winograd(
    group: RootGroup, g: Geometry, x: TaskArg, filters: Filters, target: Target, plan: Plan | None = None
) -> Lowered | None:  # fmt: skip
    """The tasks; None where this is not the way.   plan: to take that one, whatever the model says."""
    if not config("winograd") or group.root.dtype is not f32 or not suits(g):
        return None
    tile = register_tile(target, f32)
    plan = plan or choose_plan(g, tile, target, group.array(group.root.inputs[1]) is None)
    layout = group.layout(matrix_axes(1, g.rows, g.filters), tile.lanes)
    if plan is None or layout is None:
        return None
    tasks: list[Task] = []
    weights = transformed_filters(group, filters, plan.m, tile, tasks)
    zeros = Packed(np.zeros(-(-g.inner // tile.lanes) * tile.lanes, np.float32), "zeros")
    places = Packed(np.array([[0, 0, *(int(o[0]) for o in layout.offsets)]], np.int64), "places")
    columns = _padded(g, tile)
    if not plan.block:
        return Lowered((*tasks, *_stepped(group, g, plan, tile, layout, target, x, weights, places)))
    head: tuple[TaskArg, ...] = (*micro_kernels(tile), x, weights, zeros, places, *_size_args(g, plan, columns, plan.block))
    v = plan.positions * (plan.block * g.inner + PAD)
    products = plan.positions * ((plan.block + tile.small) * columns + PAD)
    scratch = 8 * (_table_words(plan.m) + plan.block + tile.small) + 4 * (v + products)
    kernel = blocked_kernel(plan.m, tile, layout.epilogue, _tails(g, tile))
    return Lowered((*tasks, writing_task(group, layout, kernel, head, math.ceil(tile_count(g, plan.m) / plan.block), scratch)))


def input_task(g: Geometry, plan: Plan, tile: Tile, target: Target, x: TaskArg) -> tuple[Task, TempPlace]:
    """V of all tiles, [positions, tiles, channels], and where it is."""
    tiles = tile_count(g, plan.m)
    block = max(1, tiles // (4 * target.cores))
    v = TempPlace(Temp(4 * plan.positions * (tiles * g.inner + PAD), "winograd inputs"))
    zeros = Packed(np.zeros(-(-g.inner // tile.lanes) * tile.lanes, np.float32), "zeros")
    args = (x, v, zeros, *_size_args(g, plan, _padded(g, tile), block))
    nbytes = 4 * g.n * math.prod(g.spatial) * g.channels + v.temp.nbytes
    kernel = input_kernel(plan.m, tile, _tails(g, tile))
    return Task(
        kernel, args, (1,), math.ceil(tiles / block), scratch_nbytes=8 * _table_words(plan.m), nbytes=nbytes, label="winograd input"
    ), v


def _stepped(
    group: RootGroup,
    g: Geometry,
    plan: Plan,
    tile: Tile,
    layout: Layout,
    target: Target,
    x: TaskArg,
    weights: TaskArg,
    places: Packed,
) -> tuple[Task, ...]:
    tiles, columns, positions = tile_count(g, plan.m), _padded(g, tile), plan.positions
    block = max(1, tiles // (4 * target.cores))
    sizes = _size_args(g, plan, columns, block)
    chunks = math.ceil(tiles / block)
    first, v = input_task(g, plan, tile, target, x)
    products = TempPlace(Temp(4 * positions * (tiles * columns + PAD), "winograd products"))
    blocks = choose_blocks(tiles, columns, g.inner, 1, tile, target, positions)
    each = np.arange(positions, dtype=np.int64)
    offsets = [each * (tiles * g.inner + PAD), each * (g.inner * columns), each * (tiles * columns + PAD)]
    lie = Lie(f32, "linear", "dense")
    shape = Shape(tile, Epilogue(Expression((f32,), (), (0,)), 0, (), (lie,)))
    table = Packed(np.ascontiguousarray(np.stack(offsets, -1)), "places")
    head: tuple[TaskArg, ...] = (*micro_kernels(tile), v, weights, table, *blocks.args, g.inner)
    middle = Task(
        contraction_kernel(shape), (*head, products, *Strides(inner=columns).args), (len(head),), blocks.chunks,
        scratch_nbytes=blocks.scratch_nbytes, flops=2 * positions * tiles * g.inner * columns, nbytes=4 * positions * g.inner * columns,
        label="winograd product",
    )  # fmt: skip
    last = writing_task(group, layout, output_kernel(plan.m, tile, layout.epilogue, _tails(g, tile)), (products, places, *sizes), chunks, 0)
    return (first, middle, last)
