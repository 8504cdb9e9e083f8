"""Winograd's way to the gradient by 3x3 filters at stride 1: the transpose of winograd.py's algorithm, with as few products.

In: places of x and dy, channels last.  Out: tasks: both are transformed tile by tile, V = B^T x B and Y = A dy A^T; each position is a sum
of outer products over all tiles, on conv_grad_weight.py's kernel with positions as groups; then dw = G^T (V Y) G.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from jumar.base import config, f32, i64
from jumar.device import Target
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.cpu.conv import Geometry
from jumar.operators.cpu.epilogue import modulo, quotient
from jumar.operators.cpu.microkernel import Tile
from jumar.operators.cpu.winograd import CYCLES_IN, DRAM, EFFICIENCY, SPILL, input_task, suits, tile_count
from jumar.operators.cpu.winograd_kernel import PAD
from jumar.operators.cpu.winograd_transform import Form
from jumar.operators.schedule import Packed, Task, TaskArg, Temp, TempPlace


def choose_gradient(g: Geometry, tile: Tile, target: Target) -> int:
    """Outputs of a tile in each direction, by a model of cycles; 0 where the direct way is faster.   g: of the convolution."""
    if not config("winograd") or tile.dtype is not f32 or not suits(g) or g.strides != (1, 1):
        return 0
    best, chosen = 0.85 * 9 * g.rows * g.inner * g.filters / (2 * tile.lanes) / EFFICIENCY, 0
    for m in (2, 4):
        tiles, positions = tile_count(g, m), (m + 2) ** 2
        products = positions * tiles * g.inner * g.filters / (2 * tile.lanes) / EFFICIENCY
        transform = tiles * CYCLES_IN[1, m] * (g.inner + g.filters) / tile.lanes
        traffic = 2 * positions * tiles * (g.inner + g.filters) * 4 / SPILL
        ends = 3 * positions * g.inner * g.filters * 4 / (DRAM * tile.lanes)  # sums written, and read in strides
        if (cycles := products + transform + traffic + ends) < best:
            best, chosen = cycles, m
    return chosen


def transform_tasks(g: Geometry, m: int, tile: Tile, target: Target, x: TaskArg, dy: TaskArg) -> tuple[list[Task], TempPlace, TempPlace]:
    """The tasks that make V and Y, and where these are: [positions, tiles, channels], positions `position_pitch` apart."""
    form = Form(m)
    first, v = input_task(g, form, tile, target, x)
    tiles = tile_count(g, m)
    block = max(1, tiles // (4 * target.cores))
    y = TempPlace(Temp(4 * form.positions * position_pitch(tiles, g.filters), "winograd gradients"))
    zeros = Packed(np.zeros(-(-g.filters // tile.lanes) * tile.lanes, np.float32), "zeros")
    tiles_y, tiles_x = (-(-o // m) for o in g.out)
    args = (dy, y, zeros, tiles, tiles_y, tiles_x, *g.out, g.filters, block)
    second = Task(
        gradient_kernel(m, tile, g.filters % tile.lanes > 0), args, (1,), math.ceil(tiles / block), scratch_nbytes=8 * m * m,
        nbytes=y.temp.nbytes, label="winograd gradient",
    )  # fmt: skip
    return [first, second], v, y


def position_pitch(tiles: int, channels: int) -> int:
    """Elements from one position to the next."""
    return tiles * channels + PAD


def gradient_rows(k: Builder, m: int, o: Sequence[Value]) -> list[Value]:
    """A o: one direction of the transform of what comes back, from m to m + 2."""
    if m == 2:
        return [o[0], o[0] + o[1], o[0] - o[1], -o[1]]
    even, odd = o[0] + o[2], o[1] + o[3]
    far, near = k.fma(o[2], 4.0, o[0]), k.fma(o[3], 8.0, o[1] * 2.0)
    return [o[0], even + odd, even - odd, far + near, far - near, o[3]]


def weight_rows(k: Builder, m: int, e: Sequence[Value]) -> list[Value]:
    """G^T e: one direction of the way back to the filter, from m + 2 to 3."""
    if m == 2:
        total, difference = (e[1] + e[2]) * 0.5, (e[1] - e[2]) * 0.5
        return [e[0] + total, difference, e[3] + total]
    near, far = e[1] + e[2], e[3] + e[4]
    first = k.fma(e[0], 0.25, k.fma(near, -1 / 6, far * (1 / 24)))
    second = k.fma(e[2] - e[1], 1 / 6, (e[3] - e[4]) * (1 / 12))
    return [first, second, e[5] + (far - near) * (1 / 6)]


@cache
def gradient_kernel(m: int, tile: Tile, tail: bool) -> Kernel:
    """Y of a block of tiles; cells behind the last row and column are zero.   tail: channels are no whole vectors."""
    k = Builder(f"winograd{m}_gradient")
    dy, y, zeros = k.pointer("dy", tile.dtype), k.pointer("y", tile.dtype), k.pointer("zeros", tile.dtype)
    tiles, tiles_y, tiles_x, out_y, out_x, channels, block = (
        k.integer(n) for n in ("tiles", "tiles_y", "tiles_x", "out_y", "out_x", "channels", "block")
    )
    table = k.thread_scratch("table", 0, i64)
    side, lanes = m + 2, tile.lanes
    pitch = tiles * channels + PAD
    held = k.array(tile.dtype, side * m * lanes)
    with k.loop(k.chunk * block, k.minimum((k.chunk + 1) * block, tiles)) as t:
        rest, column = quotient(k, t, tiles_x), modulo(k, t, tiles_x) * m
        image, row = quotient(k, rest, tiles_y), modulo(k, rest, tiles_y) * m
        base = k.offset(dy, image * (out_y * out_x * channels))
        with k.loop(0, m) as i, k.loop(0, m) as j:
            outside = (row + i >= out_y) | (column + j >= out_x)
            pointer = k.select(outside, zeros, k.offset(base, ((row + i) * out_x + column + j) * channels))
            k.store_pointer(pointer, table, i * m + j)
        result = k.offset(y, t * channels)

        def vector(c: Value, mask: Value | None, result: Value = result) -> None:
            with k.loop(0, m) as down:
                values = [k.load(k.load_pointer(table, down + i * m, tile.dtype), c, lanes, mask) for i in range(m)]
                for i, value in enumerate(gradient_rows(k, m, values)):
                    k.store(value, held, (down + i * m) * lanes, aligned=True)
            with k.loop(0, side) as across:
                values = [k.load(held, (across * m + j) * lanes, lanes, aligned=True) for j in range(m)]
                for j, value in enumerate(gradient_rows(k, m, values)):
                    k.store(value, result, (across * side + j) * pitch + c, mask)

        whole = channels - modulo(k, channels, k.index(lanes))
        with k.loop(0, whole, lanes) as c:
            vector(c, None)
        if tail:
            vector(whole, k.lane_mask(channels - whole, lanes))
    return k.finish()


def weight_task(m: int, tile: Tile, panels: int, rows: int, parts: int, part_size: int, sums: TempPlace) -> tuple[Task, TempPlace]:
    """[panels, 9, rows, columns] from the sums of all positions: [parts, positions, panels, rows, columns]."""
    temp = TempPlace(Temp(panels * 9 * rows * tile.columns * tile.dtype.nbytes, "filter sums"))
    block = max(1, 256 // tile.columns)
    blocks = -(-rows // block)
    args = (sums, temp, panels, rows, block, blocks, parts, part_size)
    nbytes = sums.temp.nbytes + temp.temp.nbytes
    return Task(weight_kernel(m, tile), args, (1,), panels * blocks, nbytes=nbytes, label="winograd weights"), temp


@cache
def weight_kernel(m: int, tile: Tile) -> Kernel:
    """A chunk is some rows of one panel: parts are added, then taken back to the filter's nine taps."""
    k = Builder(f"winograd{m}_weights")
    sums, w = k.pointer("sums", tile.dtype), k.pointer("w", tile.dtype)
    panels, rows, block, blocks, parts, part_size = (k.integer(n) for n in ("panels", "rows", "block", "blocks", "parts", "part_size"))
    side, lanes, line = m + 2, tile.lanes, tile.columns
    panel, first = quotient(k, k.chunk, blocks), modulo(k, k.chunk, blocks) * block
    held = k.array(tile.dtype, 3 * side * lanes)
    with k.loop(first, k.minimum(first + block, rows)) as row, k.loop(0, line, lanes) as at:
        source = k.offset(sums, (panel * rows + row) * line + at)
        pitch = panels * rows * line
        with k.loop(0, side) as down:
            totals = [k.var(k.load(source, (down + i * side) * pitch, lanes)) for i in range(side)]
            with k.loop(1, parts) as part:
                for i, total in enumerate(totals):
                    total.set(total.get() + k.load(source, part * part_size + (down + i * side) * pitch, lanes))
            for i, value in enumerate(weight_rows(k, m, [t.get() for t in totals])):
                k.store(value, held, (down + i * side) * lanes, aligned=True)
        with k.loop(0, 3) as across:
            values = [k.load(held, (across * side + j) * lanes, lanes, aligned=True) for j in range(side)]
            for j, value in enumerate(weight_rows(k, m, values)):
                k.store(value, w, ((panel * 9 + across * 3 + j) * rows + row) * line + at)
    return k.finish()
