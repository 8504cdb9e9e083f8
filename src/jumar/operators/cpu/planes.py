"""First convolutions: an image of few channels that lies in planes, read where it is.

In: a group (root.py) around a Conv of a transposed image [n, channels, height, width], or of one channel.  Out: one task, and one that packs
filters that are not constant: neither the transpose nor a border in memory is needed.  A chunk is a block of output rows: it copies the rows
of the planes that it reads, with their padding, into scratch, in L1; then tiles of neighbouring outputs of a row stay in registers over all
channels and taps, as in narrow.py.  Each number of the image is spread over the lanes of as many filters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from jumar.base import i64
from jumar.device import Target
from jumar.ir import Node
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.contraction import accumulator
from jumar.operators.cpu.conv import Geometry
from jumar.operators.cpu.epilogue import Epilogue, Writer, modulo, quotient
from jumar.operators.cpu.filters import forward, packed_filters
from jumar.operators.cpu.matmul import place_table, writing_task
from jumar.operators.cpu.microkernel import Tile
from jumar.operators.cpu.narrow import narrow_tile, write_tile
from jumar.operators.cpu.prepare import copy_line
from jumar.operators.cpu.root import RootGroup
from jumar.operators.movement import Transpose
from jumar.operators.schedule import Lowered, Place, Task, TaskArg

MOST_CHANNELS = 4
CHUNK_FLOPS = 400_000


@dataclass(frozen=True)
class Planes:
    """What makes one kernel different from another.   stride: from one output of a row to the next; whole, part: kinds of panels."""

    tile: Tile
    epilogue: Epilogue
    stride: int
    whole: bool
    part: bool


def in_planes(node: Node) -> Node | None:
    """The image in planes of which `node` is the transpose, channels last."""
    return node.inputs[0] if isinstance(node.op, Transpose) and node.op.perm == (0, 2, 3, 1) else None


def lower_planes(group: RootGroup, g: Geometry, target: Target) -> Lowered | None:
    """The task of a first convolution; None where it is none."""
    x, w = group.root.inputs
    planes = in_planes(group.outer.get(x, x))
    dtype = accumulator(group.root.dtype)
    padded = min(*g.low, *g.high) >= 0
    if x.dtype is not dtype or g.channels > MOST_CHANNELS or g.groups > 1 or not padded:
        return None
    if len(g.spatial) != 2 or set(g.dilations) != {1} or g.taps == 1 or g.filters > 128:
        return None
    if planes is not None:
        source: TaskArg = Place(planes)
    elif g.channels == 1:  # one plane, whatever its order is called
        source = group.place(x)
    else:
        return None
    tile = narrow_tile(g.out[1], g.filters, dtype, target, cores=1)
    layout = group.layout(g.axes, tile.lanes)
    if layout is None:
        return None
    (height, width), (rows, columns), (taps, run) = g.spatial, g.out, g.kernel
    block = max(1, min(CHUNK_FLOPS // (2 * columns * g.filters * g.taps * g.channels), -(-g.n * rows // (4 * target.cores))))
    blocks = -(-rows // block)
    block = -(-rows // blocks)
    pitch = g.low[1] + width + g.high[1]
    held = (block - 1) * g.strides[0] + taps
    full, rest = divmod(g.filters, tile.columns)
    kernel = planes_kernel(Planes(tile, layout.epilogue, g.strides[1], full > 0, rest > 0))
    zero = np.zeros(1, np.int64)
    tasks: list[Task] = []
    order = forward(1, g.filters, 1, g.channels * g.taps)  # plane by plane, as they lie in memory
    weights = packed_filters(group.place(w), group.array(w), w.dtype, order, tile, tasks)
    head: tuple[TaskArg, ...] = (
        source, weights, place_table(zero, zero, layout), g.channels, height, width, g.low[0], g.low[1], g.high[1],
        g.strides[0], taps, run, rows, columns, g.filters, block, blocks, held, pitch,
    )  # fmt: skip
    scratch = (g.channels * held * pitch + tile.rows * g.strides[1]) * dtype.nbytes
    return Lowered((*tasks, writing_task(group, layout, kernel, head, g.n * blocks, scratch)))


@cache
def planes_kernel(shape: Planes) -> Kernel:
    """The kernel of a chunk: a block of output rows of one image."""
    tile, lanes = shape.tile, shape.tile.lanes
    k = Builder("planes")
    x, w, places = k.pointer("x", tile.dtype), k.pointer("w", tile.dtype), k.pointer("places", i64)
    names = (
        "channels", "height", "width", "low", "left", "right", "stride", "taps", "run", "rows", "columns", "filters", "block", "blocks",
        "held", "pitch",
    )  # fmt: skip
    n = {name: k.integer(name) for name in names}
    out = Writer(k, shape.epilogue)
    scratch = k.thread_scratch("scratch", 0, tile.dtype)
    image, first = quotient(k, k.chunk, n["blocks"]), modulo(k, k.chunk, n["blocks"]) * n["block"]
    last = k.minimum(first + n["block"], n["rows"])
    top = first * n["stride"] - n["low"]
    with k.loop(0, n["channels"]) as c, k.loop(0, (last - first - 1) * n["stride"] + n["taps"]) as row:
        line = k.offset(scratch, (c * n["held"] + row) * n["pitch"])
        at = top + row
        source = k.offset(x, ((image * n["channels"] + c) * n["height"] + at) * n["width"])
        copy_line(k, source, line, (n["left"], n["width"], n["right"]), lanes, (at >= 0) & (at < n["height"]))

    depth = n["channels"] * n["taps"] * n["run"]

    def panel(filters: Value, width: Value | None) -> None:
        """The filters of one panel over all rows of the chunk."""
        b = k.offset(w, filters * depth)
        with k.loop(first, last) as row, k.loop(0, n["columns"], tile.rows) as column:
            sums = _sums(k, shape, n, k.offset(scratch, (row - first) * n["stride"] * n["pitch"]), column, b)
            place = (image * n["rows"] + row) * n["columns"] + column
            write_tile(k, out, places, tile, (filters, width), (place, n["columns"] - column), sums)

    filled = n["filters"] - modulo(k, n["filters"], k.index(tile.columns)) if shape.whole else k.index(0)
    if shape.whole:
        with k.loop(0, filled, tile.columns) as filters:
            panel(filters, None)
    if shape.part:
        panel(filled, n["filters"] - filled)
    return k.finish()


def _sums(k: Builder, shape: Planes, n: dict[str, Value], line: Value, column: Value, b: Value) -> list[list[Value]]:
    """The sums of a tile of outputs: those from `column` on of the row whose first line is `line`.   Those beyond the row are of no use: they
    read whatever comes next in scratch, so that all places of a tile are a constant apart."""
    tile, lanes = shape.tile, shape.tile.lanes
    sums = [[k.var(k.const(0, tile.dtype, lanes)) for _ in range(tile.vectors)] for _ in range(tile.rows)]
    with k.loop(0, n["channels"]) as c, k.loop(0, n["taps"]) as tap:
        a = k.offset(line, (c * n["held"] + tap) * n["pitch"] + column * shape.stride)
        at = (c * n["taps"] + tap) * n["run"]
        # a loop, for of several taps in one block LLVM would keep the spread numbers, more than there are registers: half as fast
        with k.loop(0, n["run"]) as v:
            vectors = [k.load(b, (at + v) * tile.columns + j * lanes, lanes) for j in range(tile.vectors)]
            here = k.offset(a, v)
            for i, row in enumerate(sums):
                spread = k.splat(k.load(here, i * shape.stride), lanes)
                for vector, value in zip(vectors, row, strict=True):
                    value.set(k.fma(spread, vector, value.get()))
    return [[v.get() for v in row] for row in sums]
