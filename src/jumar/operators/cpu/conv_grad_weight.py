"""The gradient of a convolution by its filters: for each tap the products of all positions of dy with the cells of x that they met.

In: a ConvGradWeight, channels last.  Out: two tasks (and conversions of narrow types): sums, then their order in memory.

A chunk takes some panels of columns (channels of dy), some taps and a part of the positions.  For a block of positions it notes where the
window of each begins for each tap (padding points at zeros, so that strides, dilations and borders cost nothing), copies the block's panel of
dy side by side, and goes over taps and tiles of channels of x with outer.py's micro-kernel.  Few outputs and many positions are shared out
by parts of the positions, each with sums of its own.  The second task adds the parts and turns [tap, channel, filter] into
[filter, channel, tap].  With few channels a row of taps is one run of memory, as for the convolution itself.
3x3 filters at stride 1 may go by winograd_grad.py, depthwise ones by depthwise_grad.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from jumar.base import Array, DType, i64
from jumar.device import Target
from jumar.ir import Node
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.contraction import accumulator
from jumar.operators.conv_grad import ConvGradWeight
from jumar.operators.cpu.blocking import CHUNKS, LEAST_FLOPS
from jumar.operators.cpu.conv import RUN_CHANNELS, Geometry, runs_of, window_tables
from jumar.operators.cpu.conv_grad_weight_few import few_filters, few_filters_task
from jumar.operators.cpu.depthwise_grad import depthwise_weight_tasks
from jumar.operators.cpu.epilogue import modulo, quotient
from jumar.operators.cpu.microkernel import Tile, register_tile
from jumar.operators.cpu.outer import outer_kernel
from jumar.operators.cpu.prepare import border_task, convert_task, transpose_block
from jumar.operators.cpu.winograd import tile_count
from jumar.operators.cpu.winograd_grad import choose_gradient, position_pitch, transform_tasks, weight_task
from jumar.operators.schedule import Lowered, Packed, Place, Task, TaskArg, Temp, TempPlace
from jumar.operators.windows import split_channels

POSITIONS = 256  # of a block
LEAST_POSITIONS = 128  # of a part
SET_NBYTES = 4096  # from one line to the next of the same set of L1
SIDE = 8  # channels of a tile whose cells are copied: half a cache line
PARTS_NBYTES = 8 << 20  # of all sums together, at most


def weight_geometry(node: Node) -> Geometry:
    """The sizes of the convolution whose filters' gradient the node is, channels last."""
    op, (x, dy) = node.op, node.inputs
    assert isinstance(op, ConvGradWeight), "the gradient of a convolution's filters"
    n, channels, spatial = split_channels(x.shape, op.channels_last)
    _, filters, out = split_channels(dy.shape, op.channels_last)
    if not spatial:
        return Geometry(n, (1,), channels, filters, op.groups, (1,), (1,), (1,), (0,), (0,), (1,))
    kernel = op.w_shape[2:]
    return Geometry(n, spatial, channels, filters, op.groups, kernel, out, op.strides, op.pads_low, op.pads_high, op.dilations)


def lower_weight_gradient(node: Node, target: Target, winograd: int = 0) -> Lowered | None:
    """The tasks of a ConvGradWeight with channels last.   winograd: tiles of that size, whatever the model says."""
    x, dy = node.inputs
    if node.type.size == 0 or x.type.size == 0 or dy.type.size == 0:
        return None
    g, tile = weight_geometry(node), register_tile(target, accumulator(x.dtype))
    tasks: list[Task] = []
    places: list[TaskArg] = []
    for value in (x, dy):
        place: TaskArg = Place(value)
        if value.dtype is not tile.dtype:
            task, place = convert_task(place, value.dtype, tile.dtype, value.type.size, tile.lanes)
            tasks.append(task)
        places.append(place)
    if g.depthwise:
        return Lowered((*tasks, *depthwise_weight_tasks(node, g, places[0], places[1], tile, target)))
    if m := winograd or choose_gradient(g, tile, target):
        return Lowered((*tasks, *_winograd_tasks(node, g, m, tile, target, places[0], places[1])))
    if few := few_filters(g, tile.dtype, target):
        task, sums, parts = few_filters_task(few, g, places[0], places[1], target)
        channel, u, v = (i.reshape(-1) for i in np.indices((g.inner, *g.kernel)))
        lines = u * few.padded(g)[1] + v * g.inner + channel
        return Lowered((*tasks, task, _order(node, g, lines, Tile(1, 1, few.lanes, few.dtype), sums, 1, 0, parts)))
    w, at = g, places[0]
    if g.inner <= RUN_CHANNELS and g.groups == 1 and g.kernel[-1] > 1 and g.dilations[-1] == 1:
        if g.low[-1] or g.high[-1]:
            task, at = border_task(at, tile.dtype, tile.lanes, *g.bordered)
            tasks.append(task)
        w = runs_of(g)
    cut = choose_cut(w, tile, target)
    sums = TempPlace(Temp(cut.parts * cut.part_size * tile.dtype.nbytes, "sums"))
    flops = 2 * g.rows * g.taps * g.inner * g.filters
    tasks.append(_sums_task(w, g.channels, cut, tile, at, places[1], sums, flops, Steps(g.inner, g.filters, g.filters_each)))
    tasks.append(_order_task(node, g, w, cut, tile, sums))
    return Lowered(tuple(tasks))


def _winograd_tasks(node: Node, g: Geometry, m: int, tile: Tile, target: Target, x: TaskArg, dy: TaskArg) -> list[Task]:
    tasks, v, y = transform_tasks(g, m, tile, target, x, dy)
    tiles, positions = tile_count(g, m), (m + 2) ** 2
    one = (1,)
    w = Geometry(1, (tiles,), positions * g.inner, positions * g.filters, positions, one, (tiles,), one, (0,), (0,), one)
    cut = choose_cut(w, tile, target)
    sums = TempPlace(Temp(cut.parts * cut.part_size * tile.dtype.nbytes, "sums"))
    flops = 2 * positions * tiles * g.inner * g.filters
    steps = Steps(position_pitch(tiles, g.inner), g.filters, position_pitch(tiles, g.filters))
    tasks.append(_sums_task(w, g.inner, cut, tile, v, y, sums, flops, steps))
    back, filters = weight_task(m, tile, cut.panels, cut.rows, cut.parts, cut.part_size, sums)
    return [*tasks, back, _order_task(node, g, g, Cut(g, tile, 1, cut.block, 1, g.taps), tile, filters)]


# ---------------------------------------------------------------------- how the work is cut
@dataclass(frozen=True)
class Cut:
    """parts: of the positions; block: positions taken together; panel_block, tap_block: of a chunk; rows: tiles' rows for the channels."""

    g: Geometry
    tile: Tile
    parts: int
    block: int
    panel_block: int
    tap_block: int

    @property
    def panels(self) -> int:
        return -(-self.g.filters_each // self.tile.columns)

    @property
    def tiles(self) -> tuple[int, int, int]:
        """How many full and small tiles cover the channels, and the height of a small one; the last of a kind is moved back to fit."""
        channels = self.g.inner
        full, small = self.tile.rows, self.tile.small
        if channels < full:
            return 0, 1 if channels <= small else 2, min(channels, small)
        tiles = -(-channels // full)
        smalls = (tiles * full - self.tile.covered(channels)) // (full - small)
        return tiles - smalls, smalls, small

    @property
    def rows(self) -> int:
        fulls, smalls, height = self.tiles
        return fulls * self.tile.rows + smalls * height

    @property
    def row_of(self) -> Array:
        """[channels]: the row of sums that holds each channel."""
        (fulls, smalls, height), full = self.tiles, self.tile.rows
        found = np.full(self.g.inner, -1, np.int64)
        for i in range(fulls + smalls):
            base, tall = (i * full, full) if i < fulls else (fulls * full + (i - fulls) * height, height)
            start = min(base, self.g.inner - tall)
            for j in range(tall):
                if found[start + j] < 0:
                    found[start + j] = base + j
        return found

    @property
    def part_size(self) -> int:
        """Elements of one part's sums: [groups, panels, taps, rows, columns]."""
        return self.g.groups * self.panels * self.g.taps * self.rows * self.tile.columns

    @property
    def part_rows(self) -> int:
        """Positions of a part, whole blocks."""
        return -(-self.g.rows // (self.parts * self.block)) * self.block

    @property
    def packed(self) -> bool:
        """Whether a block's cells are copied tile by tile before panels pass over them: of one tap, where all rows of x lie in the same cache
        sets, so that each tile would fetch them again.

        Measured (2 cores Zen 5, GF/s without and with): 14 x 14 x 1024 -> 256: 286, 374; 28 x 28 x 512 -> 128, of half as long rows: 387, 356.
        """
        again = self.g.channels * self.tile.dtype.nbytes % SET_NBYTES == 0
        return again and self.g.taps == 1 and self.panel_block > 1 and self.tile.rows == SIDE

    @property
    def tap_blocks(self) -> int:
        return -(-self.g.taps // self.tap_block)

    @property
    def panel_blocks(self) -> int:
        return -(-self.panels // self.panel_block)

    @property
    def chunks(self) -> int:
        return self.parts * self.g.groups * self.panel_blocks * self.tap_blocks


def choose_cut(g: Geometry, tile: Tile, target: Target) -> Cut:
    """A chunk's sums and its block of x stay in L2; then chunks get smaller until every core has several."""
    size = tile.dtype.nbytes
    block = max(64, min(POSITIONS, target.l2_nbytes // 4 // max(1, g.inner * size) // 4 * 4))
    cut = Cut(g, tile, 1, min(block, g.rows), 1, g.taps)
    each = max(1, cut.rows * tile.columns * size)  # sums of one tap of a panel
    budget = target.l2_nbytes // 3
    cut = replace(cut, tap_block=max(1, min(g.taps, budget // each)))
    cut = replace(cut, panel_block=max(1, min(cut.panels, budget // (each * cut.tap_block))))
    flops = 2 * g.rows * g.taps * g.inner * g.filters
    wanted = min(CHUNKS * target.cores, max(1, flops // LEAST_FLOPS)) if target.cores > 1 else 1
    memory = g.rows * (g.channels + g.filters) * size
    while cut.chunks < wanted:
        nbytes = 2 * cut.parts * cut.part_size * size
        if nbytes <= min(PARTS_NBYTES, memory) and g.rows >= 2 * cut.parts * LEAST_POSITIONS:
            cut = replace(cut, parts=2 * cut.parts)
        elif cut.panel_block > 1:
            cut = replace(cut, panel_block=-(-cut.panel_block // 2))
        elif cut.tap_block > 1:
            cut = replace(cut, tap_block=-(-cut.tap_block // 2))
        elif g.rows >= 2 * cut.parts * LEAST_POSITIONS and nbytes <= 4 * PARTS_NBYTES:
            cut = replace(cut, parts=2 * cut.parts)
        else:
            break
    even = -(-g.rows // cut.parts)
    even = -(-even // -(-even // cut.block))  # blocks of one size
    cut = replace(cut, block=min(-(-even // 4) * 4, max(4, g.rows)))
    return replace(cut, parts=-(-g.rows // cut.part_rows))  # none is empty


# ---------------------------------------------------------------------- sums
NUMBERS = (
    "positions", "part_rows", "block", "taps", "tap_block", "tap_blocks", "panels", "panel_block", "panel_blocks", "groups",
    "channels", "filters", "x_group", "dy_pitch", "dy_group", "fulls", "smalls", "part_size",
    "inner", "outer_taps", "inner_taps",
)  # fmt: skip


@dataclass(frozen=True)
class Steps:
    """Elements from one group of x to the next, from one position of dy to the next, and from one group of dy to the next."""

    x_group: int
    dy: int
    dy_group: int


def _sums_task(
    g: Geometry, pitch: int, cut: Cut, tile: Tile, x: TaskArg, dy: TaskArg, sums: TempPlace, flops: int, steps: Steps
) -> Task:  # fmt: skip
    """pitch: elements from one cell of x to the next."""
    outer, inner = window_tables(g, pitch)
    fulls, smalls, height = cut.tiles
    zeros = np.zeros(max(1, g.inner), tile.dtype.numpy)
    numbers = (
        g.rows, cut.part_rows, cut.block, g.taps, cut.tap_block, cut.tap_blocks, cut.panels, cut.panel_block, cut.panel_blocks, g.groups,
        g.inner, g.filters_each, steps.x_group, steps.dy, steps.dy_group, fulls, smalls, cut.part_size,
        inner.shape[0], outer.shape[1], inner.shape[1],
    )  # fmt: skip
    args: tuple[TaskArg, ...] = (
        outer_kernel(tile), outer_kernel(tile.with_rows(height)), x, dy, sums, Packed(zeros, "zeros"),
        Packed(outer, "outer"), Packed(np.ascontiguousarray(inner.T), "inner"), *numbers,
    )  # fmt: skip
    scratch = 8 * g.taps * cut.block + tile.dtype.nbytes * cut.block * tile.columns
    if cut.packed:
        scratch += 8 * cut.block + tile.dtype.nbytes * cut.block * (fulls + smalls) * SIDE
    nbytes = g.rows * (g.channels + g.filters) * tile.dtype.nbytes + sums.temp.nbytes
    partial = g.filters_each % tile.columns != 0
    return Task(
        sums_kernel(tile, height, partial, cut.packed), args, (4,), cut.chunks, scratch_nbytes=scratch, flops=flops, nbytes=nbytes, label="conv_grad_weight"
    )  # fmt: skip


@cache
def sums_kernel(tile: Tile, height: int, partial: bool, packed: bool) -> Kernel:
    """Sums of a chunk.   height: of a small tile; partial: the last panel has columns that do not exist; packed: see `Cut`."""
    k = Builder("weight_sums")
    full, small = k.function_pointer("tile_full"), k.function_pointer("tile_small")
    x, dy, sums = k.pointer("x", tile.dtype), k.pointer("dy", tile.dtype), k.pointer("sums", tile.dtype)
    zeros, outer_table, inner_table = k.pointer("zeros", tile.dtype), k.pointer("outer_table", i64), k.pointer("inner_table", i64)
    n = {name: k.integer(name) for name in NUMBERS}
    table = k.thread_scratch("table", 0, i64)
    columns = tile.columns

    tap_part, rest = modulo(k, k.chunk, n["tap_blocks"]), quotient(k, k.chunk, n["tap_blocks"])
    panel_part, rest = modulo(k, rest, n["panel_blocks"]), quotient(k, rest, n["panel_blocks"])
    group, part = modulo(k, rest, n["groups"]), quotient(k, rest, n["groups"])
    first_tap, first_panel = tap_part * n["tap_block"], panel_part * n["panel_block"]
    last_tap = k.minimum(first_tap + n["tap_block"], n["taps"])
    last_panel = k.minimum(first_panel + n["panel_block"], n["panels"])
    begin = part * n["part_rows"]
    end = k.minimum(begin + n["part_rows"], n["positions"])
    line = k.cast_pointer(k.offset(table, n["taps"] * n["block"]), tile.dtype)  # the block's panel of dy
    cells = k.offset(x, group * n["x_group"])
    if packed:
        places = k.cast_pointer(k.offset(line, n["block"] * columns), i64)
        cells_packed = k.offset(k.cast_pointer(places, tile.dtype), n["block"] * (8 // tile.dtype.nbytes))
        with k.loop(0, n["block"]) as m:
            k.store_pointer(k.offset(cells_packed, m * SIDE), places, m)
    rows = n["fulls"] * tile.rows + n["smalls"] * height
    tap_size = rows * columns
    mine = k.offset(sums, part * n["part_size"] + group * n["panels"] * n["taps"] * tap_size)

    with k.loop(begin, end, n["block"]) as start:
        count = k.minimum(n["block"], end - start)
        add = k.select(start > begin, k.index(1), k.index(0))
        first_row, last_row = quotient(k, start, n["inner"]), quotient(k, start + count - 1, n["inner"])
        with k.loop(first_tap, last_tap) as tap:
            u, beside = quotient(k, tap, n["inner_taps"]), k.offset(inner_table, modulo(k, tap, n["inner_taps"]) * n["inner"])
            pointers = k.offset(table, tap * n["block"] - start)
            with k.loop(first_row, last_row + 1) as row:
                above = k.load(outer_table, row * n["outer_taps"] + u)
                before = row * n["inner"]
                with k.loop(k.maximum(start - before, 0), k.minimum(start + count - before, n["inner"])) as i:
                    at = above + k.load(beside, i)
                    k.store_pointer(k.select(at < 0, zeros, k.offset(cells, at)), pointers, before + i)
        if packed:
            _pack_cells(k, n, table, count, cells_packed, tile, height)
        with k.loop(first_panel, last_panel) as panel:
            source = k.offset(dy, start * n["dy_pitch"] + group * n["dy_group"] + panel * columns)
            if partial:
                width = k.minimum(n["filters"] - panel * columns, columns)
                mask = k.lane_mask(width, columns)
                with k.loop(0, count) as m:
                    k.store(k.load(source, m * n["dy_pitch"], columns, mask), line, m * columns)
            else:
                with k.loop(0, count) as m:
                    k.store(k.load(source, m * n["dy_pitch"], columns), line, m * columns)
            with k.loop(first_tap, last_tap) as tap:
                pointers = k.offset(table, tap * n["block"])
                result = k.offset(mine, (panel * n["taps"] + tap) * tap_size)
                smalls_from = n["fulls"] * tile.rows
                for function, tall, base, tiles in ((full, tile.rows, k.index(0), n["fulls"]), (small, height, smalls_from, n["smalls"])):
                    with k.loop(0, tiles) as t:
                        row = base + t * tall
                        channel = k.minimum(row, n["channels"] - tall)
                        where = (pointers, channel)
                        if packed:
                            number = t if tall == tile.rows and base is not smalls_from else n["fulls"] + t
                            where = (places, number * n["block"] * SIDE + (channel - k.minimum(row, n["channels"] - SIDE)))
                        k.call(function, *where, count, line, k.offset(result, row * columns), columns, add)
    return k.finish()


def _pack_cells(k: Builder, n: dict[str, Value], table: Value, count: Value, packed: Value, tile: Tile, height: int) -> None:
    """The block's cells of one tap as [tile, position, SIDE]: as many rows at once as find room in one cache set."""
    with k.loop(0, count, SIDE) as m:
        rows = k.minimum(count - m, SIDE)
        with k.loop(0, n["fulls"] + n["smalls"]) as t:
            base = k.select(t < n["fulls"], t * tile.rows, n["fulls"] * tile.rows + (t - n["fulls"]) * height)
            channel = k.minimum(base, n["channels"] - SIDE)
            out = k.offset(packed, (t * n["block"] + m) * SIDE)
            with k.loop(0, rows) as r:
                k.store(k.load(k.load_pointer(table, m + r, tile.dtype), channel, SIDE), out, r * SIDE)


# ---------------------------------------------------------------------- their order in memory
def _order_task(node: Node, g: Geometry, w: Geometry, cut: Cut, tile: Tile, sums: TempPlace) -> Task:
    """dw[filter, channel, tap] from the sums.   g: of the convolution; w: with runs of taps as channels, where that was done."""
    e = np.arange(g.inner * g.taps)
    channel, tap = e // g.taps, e % g.taps
    if w is g:
        lines = tap * cut.rows + cut.row_of[channel]
    else:  # a run of taps of the last dimension
        lines = tap // g.kernel[-1] * cut.rows + cut.row_of[tap % g.kernel[-1] * g.inner + channel]
    return _order(node, g, lines, tile, sums, cut.panels, w.taps * cut.rows * tile.columns, (cut.parts, cut.part_size))


def _order(
    node: Node, g: Geometry, lines: Array, tile: Tile, sums: TempPlace, panels: int, panel_size: int, parts: tuple[int, int]
) -> Task:  # fmt: skip
    """lines: where a panel of sums has each element of a filter; parts: how many, and elements of each."""
    block = max(tile.lanes, 2048 // tile.columns // tile.lanes * tile.lanes)
    blocks = math.ceil(len(lines) / block)
    args: tuple[TaskArg, ...] = (
        sums, Place(node), Packed(lines.astype(np.int64), "lines"), len(lines), block, blocks, panels, g.filters_each, panel_size, *parts,
    )  # fmt: skip
    nbytes = sums.temp.nbytes + node.type.nbytes
    kernel = order_kernel(tile, node.dtype)
    return Task(kernel, args, (1,), g.groups * panels * blocks, nbytes=nbytes, label="filter order")


@cache
def order_kernel(tile: Tile, result: DType) -> Kernel:
    """A chunk is a block of elements of the filters of one panel: parts are added, squares of lanes turned in registers."""
    k = Builder("weight_order")
    sums, dw, lines = k.pointer("sums", tile.dtype), k.pointer("dw", result), k.pointer("lines", i64)
    size, block, blocks, panels, filters = (k.integer(n) for n in ("size", "block", "blocks", "panels", "filters"))
    panel_size, parts, part_size = k.integer("panel_size"), k.integer("parts"), k.integer("part_size")
    lanes, columns = tile.lanes, tile.columns
    first, rest = modulo(k, k.chunk, blocks) * block, quotient(k, k.chunk, blocks)
    panel, group = modulo(k, rest, panels), quotient(k, rest, panels)
    source = k.offset(sums, rest * panel_size)
    end = k.minimum(first + block, size)
    whole = first + (end - first) / lanes * lanes
    for at in range(0, columns, lanes):
        filter_ = panel * columns + at
        here = k.minimum(filters - filter_, lanes)
        target = k.offset(dw, (group * filters + filter_) * size)
        with k.when(here > 0):
            with k.loop(first, whole, lanes) as e:
                totals = [k.var(k.load(source, k.load(lines, e + r) * columns + at, lanes)) for r in range(lanes)]
                with k.loop(1, parts) as part:
                    for r, total in enumerate(totals):
                        total.set(total.get() + k.load(source, part * part_size + k.load(lines, e + r) * columns + at, lanes))
                turned = transpose_block(k, [t.get() for t in totals])
                with k.when(here == lanes):
                    for r, vector in enumerate(turned):
                        k.store(k.convert(vector, result), target, size * r + e)
                with k.otherwise():
                    for r, vector in enumerate(turned):
                        with k.when(here > r):
                            k.store(k.convert(vector, result), target, size * r + e)
            with k.loop(whole, end) as e:
                total = k.var(k.load(source, k.load(lines, e) * columns + at, lanes))
                with k.loop(1, parts) as part:
                    total.set(total.get() + k.load(source, part * part_size + k.load(lines, e) * columns + at, lanes))
                for r in range(lanes):
                    with k.when(here > r):
                        k.store(k.convert(k.extract(total.get(), r), result), target, size * r + e)
    return k.finish()
