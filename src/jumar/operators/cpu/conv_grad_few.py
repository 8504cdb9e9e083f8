"""The gradient of a convolution by an input of few channels: products for all taps side by side, then sums over the taps.

In: a group (root.py) around a ConvGradInput of stride 1, channels last; conv_grad_input.py chooses.  Out: one task, and one that packs the
filters.  As a convolution of dy, vectors lie across the input's channels: 6 of them leave most of a vector empty, and dy's border is
multiplied too.  Here one row of dy at a time is multiplied by all taps of all channels, which fill their vectors, into a line in L1; each
cell of the input then adds up what its taps left there.  A chunk is a block of the input's rows, whose sums stay in scratch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from jumar.base import DType, i64
from jumar.device import Target
from jumar.kernel import Builder, Kernel
from jumar.operators.contraction import accumulator
from jumar.operators.cpu.conv import Geometry
from jumar.operators.cpu.epilogue import Epilogue, Writer, modulo, quotient
from jumar.operators.cpu.matmul import place_table, writing_task
from jumar.operators.cpu.microkernel import Tile, register_tile
from jumar.operators.cpu.narrow import narrow_tile, tile_sums
from jumar.operators.cpu.root import RootGroup
from jumar.operators.schedule import Lowered, Packed, Task, TaskArg, Temp, TempPlace

SUMS_NBYTES = 64 << 10  # of a chunk's sums: they stay in L2 beside the line and the filters
WIDEST = 11  # taps of a row: code for each


@dataclass(frozen=True)
class Few:
    """What makes one kernel different from another.   run: taps of a row; vectors: of a cell's channels."""

    tile: Tile
    epilogue: Epilogue
    run: int
    vectors: int


def lower_few_channels(group: RootGroup, g: Geometry, x: TaskArg, target: Target) -> Lowered | None:
    """The tasks; None where they would not be faster.   g: of the convolution of dy, which is at `x`."""
    dy = group.root.inputs[0]
    dtype = accumulator(group.root.dtype)
    if dy.dtype is not dtype or len(g.spatial) != 2 or g.groups > 1 or g.taps == 1 or g.kernel[1] > WIDEST:
        return None
    if set(g.dilations) != {1} or min(*g.low, *g.high) < 0:
        return None
    columns = g.taps * g.filters
    tile = narrow_tile(g.spatial[1], columns, dtype, target, cores=1)
    layout = group.layout(g.axes, tile.lanes)
    if layout is None or 2 * _vectors(g, tile) > _window_vectors(g, register_tile(target, dtype)):
        return None
    (height, width), (rows, across), (taps, run) = g.spatial, g.out, g.kernel
    lanes, vectors = tile.lanes, -(-g.filters // tile.lanes)
    cell = vectors * lanes
    pitch = -(-columns // tile.columns) * tile.columns
    block = max(1, min(rows, SUMS_NBYTES // (across * cell * dtype.nbytes)))
    while g.n * -(-rows // block) < 4 * target.cores and block >= 4 * taps:
        block = -(-block // 2)
    blocks = -(-rows // block)
    block = -(-rows // blocks)
    tasks: list[Task] = []
    weights = _panels(group, g, pitch, tile, tasks)
    line = (g.low[1] + width + tile.rows + g.high[1]) * pitch + lanes
    zero = np.zeros(1, np.int64)
    head: tuple[TaskArg, ...] = (
        x, weights, place_table(zero, zero, layout), g.channels, height, width, g.low[0], g.low[1], g.high[1], taps, rows, across, g.filters,
        block, blocks, pitch, block * across * cell,
    )  # fmt: skip
    kernel = few_kernel(Few(tile, layout.epilogue, run, vectors))
    scratch = (block * across * cell + line) * dtype.nbytes
    return Lowered((*tasks, writing_task(group, layout, kernel, head, g.n * blocks, scratch)))


def _vectors(g: Geometry, tile: Tile) -> int:
    """Vectors that are multiplied or added for an image."""
    columns, (height, width) = g.taps * g.filters, g.spatial
    tiles = -(-width // tile.rows) * tile.rows * -(-columns // tile.columns) * tile.vectors
    return height * (tiles * g.channels + g.out[1] * g.taps * -(-g.filters // tile.lanes))


def _window_vectors(g: Geometry, tile: Tile) -> int:
    """The same of the convolution of dy."""
    return g.out[0] * g.out[1] * g.taps * g.channels * -(-g.filters // tile.columns) * tile.vectors


def _panels(group: RootGroup, g: Geometry, pitch: int, tile: Tile, tasks: list[Task]) -> TaskArg:
    """The filters as [channels of dy, taps from the last to the first, channels of x], each line filled up to `pitch`."""
    w = group.root.inputs[1]
    tap, channel = np.divmod(np.arange(g.taps * g.filters), g.filters)
    line = np.zeros(pitch, np.int64)  # what fills a line up is never read
    line[: len(tap)] = channel * g.taps + g.taps - 1 - tap
    table = np.arange(g.channels)[:, None] * (g.filters * g.taps) + line
    value = group.array(w)
    if value is not None:
        return Packed(value.reshape(-1)[table].astype(tile.dtype.numpy), "weights")
    temp = TempPlace(Temp(table.size * tile.dtype.nbytes, "weights"))
    block = max(1, 4096 // pitch) * pitch
    args = (group.place(w), temp, Packed(table, "table"), table.size, block)
    nbytes = w.type.nbytes + temp.temp.nbytes
    kernel = collect_kernel(w.dtype, tile.dtype)
    tasks.append(Task(kernel, args, (1,), -(-table.size // block), nbytes=nbytes, label="pack filters"))
    return temp


@cache
def collect_kernel(source: DType, result: DType) -> Kernel:
    """y[i] = x[table[i]]; a chunk is a block of elements."""
    k = Builder("collect")
    x, y, table = k.pointer("x", source), k.pointer("y", result), k.pointer("table", i64)
    size, block = k.integer("size"), k.integer("block")
    first = k.chunk * block
    with k.loop(first, k.minimum(first + block, size)) as i:
        k.store(k.convert(k.load(x, k.load(table, i)), result), y, i)
    return k.finish()


@cache
def few_kernel(shape: Few) -> Kernel:
    """The kernel of a chunk: a block of rows of one image of the result."""
    tile, lanes, run = shape.tile, shape.tile.lanes, shape.run
    k = Builder("few_channels")
    x, w, places = k.pointer("x", tile.dtype), k.pointer("w", tile.dtype), k.pointer("places", i64)
    names = (
        "channels", "height", "width", "low", "left", "right", "taps", "rows", "columns", "filters", "block", "blocks", "pitch", "held",
    )  # fmt: skip
    n = {name: k.integer(name) for name in names}
    out = Writer(k, shape.epilogue)
    sums = k.thread_scratch("scratch", 0, tile.dtype)
    line = k.offset(sums, n["held"])  # [left + width + right, pitch]: a row's products, zeros beside them
    inside, pitch, columns = k.offset(line, n["left"] * n["pitch"]), n["pitch"], n["columns"]
    image, first = quotient(k, k.chunk, n["blocks"]), modulo(k, k.chunk, n["blocks"]) * n["block"]
    last = k.minimum(first + n["block"], n["rows"])
    zero, cell = k.const(0, tile.dtype, lanes), shape.vectors * lanes
    with k.loop(0, (last - first) * columns * cell, lanes) as i:
        k.store(zero, sums, i)
    with k.loop(0, n["left"] * pitch, lanes) as i:
        k.store(zero, line, i)

    with k.loop(k.maximum(first - n["low"], 0), k.minimum(last - 1 - n["low"] + n["taps"], n["height"])) as y:
        source = k.offset(x, (image * n["height"] + y) * n["width"] * n["channels"])
        with k.loop(0, pitch, tile.columns) as panel, k.loop(0, n["width"], tile.rows) as i:
            a = [k.offset(source, k.minimum(i + j, n["width"] - 1) * n["channels"]) for j in range(tile.rows)]
            for j, values in enumerate(tile_sums(k, tile, a, k.offset(w, panel), n["channels"], pitch)):
                for v, value in enumerate(values):
                    k.store(value, inside, (i + j) * pitch + panel + v * lanes)
        beside = k.offset(inside, n["width"] * pitch)
        with k.loop(0, n["right"] * pitch + lanes, lanes) as i:
            k.store(zero, beside, i)
        with k.loop(k.maximum(y + n["low"] + 1 - last, 0), k.minimum(y + n["low"] - first + 1, n["taps"])) as tap:
            target = k.offset(sums, (y + n["low"] - tap - first) * columns * cell)
            products = k.offset(line, tap * run * n["filters"])
            with k.loop(0, columns) as i:
                for vector in range(0, cell, lanes):
                    total = k.load(target, i * cell + vector, lanes)
                    for v in range(run):
                        total = total + k.load(products, (i + v) * pitch + n["filters"] * v + vector, lanes)
                    k.store(total, target, i * cell + vector)

    for vector in range(0, cell, lanes):
        part = out.columns(lambda i: k.load(places, 2 + i), k.index(vector), n["filters"] - vector, lanes, ahead=False)
        with k.loop(0, (last - first) * columns) as i:
            part.write((image * n["rows"] + first) * columns + i, k.load(sums, i * cell + vector, lanes))
    return k.finish()
