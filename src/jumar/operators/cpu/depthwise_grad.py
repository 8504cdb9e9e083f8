"""The gradient of a depthwise convolution by its filters: each channel's dy with the cells of x that its taps met.

In: places of x and dy, channels last.  Out: two tasks: sums of a part of the rows, vectors along the channels; then their total in
the filters' order.  The taps of one row of the window are summed in registers while the row of dy passes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

from jumar.base import DType, i64
from jumar.device import Target
from jumar.ir import Node
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.cpu.conv import Geometry, window_tables
from jumar.operators.cpu.microkernel import Tile
from jumar.operators.schedule import Packed, Place, Task, TaskArg, Temp, TempPlace

MOST_SUMS = 10  # vectors of sums in registers


@dataclass(frozen=True)
class Band:
    """What makes one kernel different from another.   taps, stride, dilation: of the last dimension; vectors: taken side by side."""

    taps: int
    stride: int
    dilation: int
    vectors: int
    lanes: int
    dtype: DType


def depthwise_weight_tasks(node: Node, g: Geometry, x: TaskArg, dy: TaskArg, tile: Tile, target: Target) -> list[Task]:
    """The tasks of a depthwise ConvGradWeight."""
    lanes = tile.lanes
    vectors = max(1, min(2 if g.channels > lanes else 1, MOST_SUMS // g.kernel[-1]))
    outer, _ = window_tables(g, g.channels)
    rows, outer_taps = outer.shape
    pitch = -(-g.channels // lanes) * lanes
    parts = max(1, min(rows, 4 * target.cores))
    each = -(-rows // parts)
    parts = -(-rows // each)
    sums = TempPlace(Temp(parts * g.taps * pitch * tile.dtype.nbytes, "sums"))
    stride, low, dilation, taps = g.strides[-1], g.low[-1], g.dilations[-1], g.kernel[-1]
    # positions whose taps all lie inside
    first = min(g.out[-1], max(0, -(-low // stride)))
    last = min(g.out[-1], max(first, (g.spatial[-1] - 1 - (taps - 1) * dilation + low) // stride + 1))
    band = Band(taps, stride, dilation, vectors, lanes, tile.dtype)
    args: tuple[TaskArg, ...] = (
        x, dy, sums, Packed(outer, "outer"), g.channels, pitch, rows, each, outer_taps, g.out[-1], g.spatial[-1], low, first, last,
    )  # fmt: skip
    nbytes = (g.rows + g.n * math.prod(g.spatial)) * g.channels * tile.dtype.nbytes
    flops = 2 * g.rows * g.taps * g.channels
    total = (sums, Place(node), g.channels, pitch, g.taps, parts, max(1, 1024 // g.taps))
    return [
        Task(band_kernel(band), args, (2,), parts, flops=flops, nbytes=nbytes, label="conv_grad_weight"),
        Task(total_kernel(tile.dtype, node.dtype), total, (1,), math.ceil(g.channels / total[-1]), nbytes=sums.temp.nbytes, label="filter order"),
    ]  # fmt: skip


@cache
def band_kernel(band: Band) -> Kernel:
    """Sums [taps, pitch] of a part of the rows."""
    k = Builder("depthwise_weight")
    x, dy, sums = k.pointer("x", band.dtype), k.pointer("dy", band.dtype), k.pointer("sums", band.dtype)
    outer_table = k.pointer("outer_table", i64)
    channels, pitch, rows, each, outer_taps = (k.integer(n) for n in ("channels", "pitch", "rows", "each", "outer_taps"))
    out, size, low, first, last = (k.integer(n) for n in ("out", "size", "low", "first", "last"))
    mine = k.offset(sums, k.chunk * outer_taps * pitch * band.taps)
    zero = k.const(0, band.dtype, band.lanes)
    with k.loop(0, outer_taps * band.taps) as tap, k.loop(0, pitch, band.lanes) as c:
        k.store(zero, mine, tap * pitch + c)

    def strip(row: Value, c: Value, vectors: int, mask: Value | None) -> None:
        line = k.offset(dy, row * out * channels)
        with k.loop(0, outer_taps) as u:
            above = k.load(outer_table, row * outer_taps + u)
            with k.when(above >= 0):
                cells = k.offset(x, above)
                totals = [[k.var(zero) for _ in range(vectors)] for _ in range(band.taps)]

                def position(i: Value, inside: bool) -> None:
                    held = [[t.get() for t in row] for row in totals] if inside else []
                    gradients = [k.load(line, i * channels + c + j * band.lanes, band.lanes, mask) for j in range(vectors)]
                    for v in range(band.taps):
                        at = i * band.stride - low + v * band.dilation
                        if inside:
                            for j in range(vectors):
                                value = k.load(cells, at * channels + c + j * band.lanes, band.lanes, mask)
                                totals[v][j].set(k.fma(value, gradients[j], held[v][j]))
                            continue
                        with k.when((at >= 0) & (at < size)):
                            for j in range(vectors):
                                value = k.load(cells, at * channels + c + j * band.lanes, band.lanes, mask)
                                totals[v][j].set(k.fma(value, gradients[j], totals[v][j].get()))

                with k.loop(0, first) as i:
                    position(i, False)
                with k.loop(first, last) as i:
                    position(i, True)
                with k.loop(last, out) as i:
                    position(i, False)
                for v in range(band.taps):
                    for j in range(vectors):
                        at = (u * band.taps + v) * pitch + c + j * band.lanes
                        k.store(k.load(mine, at, band.lanes) + totals[v][j].get(), mine, at)

    width = band.vectors * band.lanes
    wide = channels - channels % width
    whole = channels - channels % band.lanes
    with k.loop(k.chunk * each, k.minimum((k.chunk + 1) * each, rows)) as row:
        with k.loop(0, wide, width) as c:
            strip(row, c, band.vectors, None)
        if band.vectors > 1:
            with k.loop(wide, whole, band.lanes) as c:
                strip(row, c, 1, None)
        with k.when(whole < channels):
            strip(row, whole, 1, k.lane_mask(channels - whole, band.lanes))
    return k.finish()


@cache
def total_kernel(source: DType, result: DType) -> Kernel:
    """dw[c, tap] = the sum of the parts' [tap, c]; a chunk is a block of channels."""
    k = Builder("depthwise_total")
    sums, dw = k.pointer("sums", source), k.pointer("dw", result)
    channels, pitch, taps, parts, block = (k.integer(n) for n in ("channels", "pitch", "taps", "parts", "block"))
    first = k.chunk * block
    with k.loop(first, k.minimum(first + block, channels)) as c, k.loop(0, taps) as tap:
        total = k.var(k.load(sums, tap * pitch + c))
        with k.loop(1, parts) as part:
            total.set(total.get() + k.load(sums, (part * taps + tap) * pitch + c))
        k.store(k.convert(total.get(), result), dw, c * taps + tap)
    return k.finish()
