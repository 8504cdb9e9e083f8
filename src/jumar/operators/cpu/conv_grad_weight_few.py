"""The gradient of a convolution by its filters, where the filters fit into one vector: all sums of some taps stay in registers.

In: a ConvGradWeight, channels last; conv_grad_weight.py chooses.  Out: one task of sums, and conv_grad_weight.py's second one, which adds the
parts and puts them in order.  Filters are lanes, and few channels make few rows of a tile: in the kernel for all shapes both would be mostly
empty.  Here a row of taps is one run of x, and as many rows of taps as registers hold are summed at once: each position costs one vector of dy
and a product for each element that it meets.  A chunk takes blocks of output rows; it copies the rows of x that they read, with their
border, into scratch, in L1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

from jumar.base import DType
from jumar.device import Target
from jumar.kernel import Builder, Kernel, Value, Variable
from jumar.operators.cpu.conv import Geometry
from jumar.operators.cpu.epilogue import modulo, quotient
from jumar.operators.cpu.expression import masks_are_cheap
from jumar.operators.cpu.prepare import copy_line
from jumar.operators.schedule import Task, TaskArg, Temp, TempPlace

FREE = 4  # registers that hold no sums; with AVX-512, where a product spreads its number from memory, half of them
MOST_PIECES = 4  # of a row of taps
LINES_NBYTES = 16 << 10  # of x in scratch


@dataclass(frozen=True)
class Taps:
    """What makes one kernel different from another.   rows: of taps, summed at once; width: elements of each, summed at once."""

    dtype: DType
    lanes: int
    rows: int
    width: int

    def padded(self, g: Geometry) -> tuple[int, int]:
        """Rows of taps, and elements of each, in whole tiles: what is summed up beyond them nobody reads."""
        return -(-g.kernel[0] // self.rows) * self.rows, -(-g.kernel[1] * g.channels // self.width) * self.width


def few_filters(g: Geometry, dtype: DType, target: Target) -> Taps | None:
    """The kernel for a gradient; None where another is faster or this one cannot."""
    lanes = target.lanes(dtype)
    if len(g.spatial) != 2 or g.groups > 1 or g.taps == 1 or set(g.dilations) != {1} or min(*g.low, *g.high) < 0:
        return None
    run = g.kernel[1] * g.channels
    sums = target.vector_registers - FREE // (2 if target.vector_bits == 512 else 1)
    if g.filters > lanes or run > MOST_PIECES * sums or not masks_are_cheap([dtype], target):
        return None
    width = -(-run // -(-run // sums))
    passes = -(-g.kernel[0] // (sums // width))
    return Taps(dtype, lanes, -(-g.kernel[0] // passes), width)


def few_filters_task(taps: Taps, g: Geometry, x: TaskArg, dy: TaskArg, target: Target) -> tuple[Task, TempPlace, tuple[int, int]]:
    """The task of sums, where they are, and how many parts of [taps, channels, lanes] there are, and elements of each."""
    (height, width), (rows, columns), size = g.spatial, g.out, taps.dtype.nbytes
    pitch = (g.low[1] + width + g.high[1]) * g.channels
    block = max(1, min(rows, (LINES_NBYTES // size // pitch - g.kernel[0]) // g.strides[0] + 1))
    while g.n * -(-rows // block) < 4 * target.cores and block >= 4 * g.kernel[0]:
        block = -(-block // 2)
    blocks = -(-rows // block)
    block = -(-rows // blocks)
    each = -(-g.n * blocks // min(g.n * blocks, 8 * target.cores))  # blocks of a chunk
    parts = -(-g.n * blocks // each)
    held = (block - 1) * g.strides[0] + g.kernel[0]
    tap_rows, run = taps.padded(g)
    part_size = tap_rows * run * taps.lanes
    sums = TempPlace(Temp(parts * part_size * size, "sums"))
    numbers = (
        g.n * blocks, each, blocks, block, g.channels, height, width, g.low[0], g.low[1] * g.channels, g.high[1] * g.channels,
        g.strides[0], g.strides[1] * g.channels, g.kernel[0], rows, columns, g.filters, pitch, run, part_size,
    )  # fmt: skip
    flops = 2 * g.rows * g.taps * g.channels * g.filters
    nbytes = (g.n * math.prod(g.spatial) * g.channels + g.rows * g.filters) * size + sums.temp.nbytes
    kernel = few_filters_kernel(taps)
    scratch = ((held + tap_rows) * pitch + run) * size
    task = Task(kernel, (x, dy, sums, *numbers), (2,), parts, scratch_nbytes=scratch, flops=flops, nbytes=nbytes, label="conv_grad_weight")
    return task, sums, (parts, part_size)


@cache
def few_filters_kernel(shape: Taps) -> Kernel:
    """The kernel of a chunk: some blocks of output rows, each of one image."""
    dtype, lanes = shape.dtype, shape.lanes
    k = Builder("few_filters")
    x, dy, sums = k.pointer("x", dtype), k.pointer("dy", dtype), k.pointer("sums", dtype)
    names = (
        "all_blocks", "each", "blocks", "block", "channels", "height", "width", "low", "left", "right", "stride", "step", "taps", "rows",
        "columns", "filters", "pitch", "run", "part_size",
    )  # fmt: skip
    n = {name: k.integer(name) for name in names}
    lines = k.thread_scratch("scratch", 0, dtype)
    mine = k.offset(sums, k.chunk * n["part_size"])
    mask = k.lane_mask(n["filters"], lanes)
    begin = k.chunk * n["each"]
    with k.loop(begin, k.minimum(begin + n["each"], n["all_blocks"])) as number:
        image, first = quotient(k, number, n["blocks"]), modulo(k, number, n["blocks"]) * n["block"]
        last = k.minimum(first + n["block"], n["rows"])
        top, size = first * n["stride"] - n["low"], n["width"] * n["channels"]
        with k.loop(0, (last - first - 1) * n["stride"] + n["taps"]) as row:
            source = k.offset(x, (image * n["height"] + top + row) * size)
            inside = (top + row >= 0) & (top + row < n["height"])
            copy_line(k, source, k.offset(lines, row * n["pitch"]), (n["left"], size, n["right"]), lanes, inside)
        gradient = k.offset(dy, image * n["rows"] * n["columns"] * n["filters"])
        with k.loop(0, n["taps"], shape.rows) as tap, k.loop(0, n["run"], shape.width) as piece:
            totals = [[k.var(k.const(0, dtype, lanes)) for _ in range(shape.width)] for _ in range(shape.rows)]
            results = [k.offset(mine, ((tap + u) * n["run"] + piece) * lanes) for u in range(shape.rows)]
            _sum_taps(k, shape, n, (k.offset(lines, tap * n["pitch"] + piece), gradient), (first, last), mask, totals)
            with k.when(number > begin):
                for result, some in zip(results, totals, strict=True):
                    for i, total in enumerate(some):
                        total.set(total.get() + k.load(result, i * lanes, lanes))
            for result, some in zip(results, totals, strict=True):
                for i, total in enumerate(some):
                    k.store(total.get(), result, i * lanes)
    return k.finish()


def _sum_taps(
    k: Builder, shape: Taps, n: dict[str, Value], memory: tuple[Value, Value], rows: tuple[Value, Value], mask: Value, totals: list[list[Variable]]
) -> None:  # fmt: skip
    """Adds to `totals` what a block's positions give to a tile of taps.   memory: the tile's first element in x's lines, the image of dy."""
    (lines, dy), (first, last) = memory, rows
    with k.loop(first, last) as row:
        line = k.offset(lines, (row - first) * n["stride"] * n["pitch"])
        with k.loop(0, n["columns"]) as i:
            vector = k.load(dy, (row * n["columns"] + i) * n["filters"], shape.lanes, mask)
            here = k.offset(line, i * n["step"])
            for u, some in enumerate(totals):
                cells = k.offset(here, n["pitch"] * u)
                for v, total in enumerate(some):
                    total.set(k.fma(k.splat(k.load(cells, v), shape.lanes), vector, total.get()))
