"""Depthwise convolutions: each channel with a filter of its own, vectors along the channels.

In: a group whose root is a Conv with one input channel for each filter, channels last.  Out: one task (and a conversion of narrow types).

A tile is some neighbouring outputs of one row: their sums stay in registers while the taps pass.  The inputs that a tile reads are found
once, as pointers (padding points at zeros), and then serve all channels, so that the inner loops know nothing of borders.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from jumar.base import DType, i32, i64
from jumar.device import Target
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.contraction import accumulator
from jumar.operators.cpu.conv import Geometry, window_tables
from jumar.operators.cpu.epilogue import Epilogue, Layout, Writer, modulo, quotient
from jumar.operators.cpu.filters import channel_filters
from jumar.operators.cpu.matmul import writing_task
from jumar.operators.cpu.prepare import convert_task, root_zero
from jumar.operators.cpu.root import RootGroup, matrix_axes
from jumar.operators.schedule import Lowered, Packed, Task, TaskArg

CHUNK_FLOPS = 200_000
FEW_CHANNELS = 64


@dataclass(frozen=True)
class Strip:
    """What makes one depthwise kernel different from another.   width: outputs of a tile; taps, stride, dilation: in the last dimension.

    source: the type of x where it is narrower than `dtype`, that of the sums.
    """

    width: int
    taps: int
    stride: int
    dilation: int
    lanes: int
    dtype: DType
    epilogue: Epilogue
    tail: bool = True  # channels may not be whole vectors
    source: DType | None = None

    @property
    def reach(self) -> int:
        """Inputs of one row that a tile reads."""
        return (self.width - 1) * self.stride + (self.taps - 1) * self.dilation + 1

    @property
    def wide(self) -> int:
        """Addresses in one vector."""
        return max(2, self.lanes * self.dtype.nbytes // 8)

    @property
    def words(self) -> int:
        """Words of a row's addresses in scratch: whole vectors."""
        return -(-self.reach // self.wide) * self.wide


@cache
def depthwise_kernel(strip: Strip) -> Kernel:
    """The kernel of a chunk: a block of output rows (or of parts of them)."""
    k = Builder("depthwise")
    source = strip.source or strip.dtype
    x, w, zeros = k.pointer("x", source), k.pointer("w", strip.dtype), k.pointer("zeros", source)
    places, outer_table = k.pointer("places", i64), k.pointer("outer_table", i64)
    channels, out, size, low = k.integer("channels"), k.integer("out"), k.integer("size"), k.integer("low")
    outer_taps, tiles, total = k.integer("outer_taps"), k.integer("tiles"), k.integer("total")
    block, near = k.integer("block"), k.integer("near")
    x_zero = k.integer("x_zero") if strip.source else None
    writer = Writer(k, strip.epilogue)
    table = k.thread_scratch("table", 0, i64)
    whole = channels - modulo(k, channels, k.index(strip.lanes))
    pitch = (channels + (strip.lanes - 1)) & -strip.lanes  # of packed weights
    addresses = _Addresses(k, strip, (x, zeros, table), channels, size)
    size_of_table = outer_taps * strip.words
    last = k.minimum((k.chunk + 1) * block, total)
    with k.loop(k.chunk * block, last, near) as begin:
        end = k.minimum(begin + near, last)
        with k.loop(begin, end) as tile:
            first = modulo(k, tile, tiles) * strip.width
            with k.loop(0, outer_taps) as u:
                above = k.load(outer_table, quotient(k, tile, tiles) * outer_taps + u)
                addresses.write(above, first * strip.stride - low, (tile - begin) * outer_taps + u)
        places_of_begin = quotient(k, begin, tiles) * out, modulo(k, begin, tiles) * strip.width

        def block_of(c: Value, mask_width: Value | None, tiles: tuple[Value, Value], start: tuple[Value, Value]) -> None:
            """Some tiles for some channels."""
            row, column = (k.var(at) for at in start)  # counted on: divisions for each tile take 5 % of a 3x3 convolution
            with k.loop(*tiles) as tile:
                first = column.get()
                sums = _sums(k, strip, k.offset(table, (tile - tiles[0]) * size_of_table), w, outer_taps, pitch, c, mask_width, x_zero)
                part = writer.columns(lambda i: k.load(places, 2 + i), c, mask_width, strip.lanes, ahead=False)
                for t, value in enumerate(sums):
                    with k.when(out - first > t):
                        part.write(row.get() + first + t, value)
                column.set(first + strip.width)
                with k.when(column.get() >= out):
                    column.set(0)
                    row.set(row.get() + out)

        with k.loop(0, whole, strip.lanes) as c:
            block_of(c, None, (begin, end), places_of_begin)
        if strip.tail:
            block_of(whole, channels - whole, (begin, end), places_of_begin)
    return k.finish()


class _Addresses:
    """Code that writes the addresses of one row's inputs into scratch, a vector of them at a time: one by one they took a third of the time of
    a 3x3 convolution of 64 channels."""

    def __init__(self, k: Builder, strip: Strip, pointers: tuple[Value, Value, Value], channels: Value, size: Value) -> None:
        x, zeros, self.table = pointers
        self.k, self.strip, self.size = k, strip, size
        # an address as a number, by way of memory
        k.store_pointer(x, self.table, 0)
        k.store_pointer(zeros, self.table, 1)
        self.x, self.zeros = k.load(self.table, 0), k.splat(k.load(self.table, 1), strip.wide)
        self.nbytes = (strip.source or strip.dtype).nbytes
        self.step = channels * self.nbytes
        self.places = k.iota(strip.wide, i64)
        self.steps = self.places * k.splat(self.step, strip.wide)

    def write(self, above: Value, start: Value, row: Value) -> None:
        """above: where the row begins, in elements (negative: outside of the image); start: the first input; row: of the table."""
        k, wide = self.k, self.strip.wide
        size = k.select(above < 0, k.index(0), self.size)
        first = self.x + above * self.nbytes + start * self.step
        for j in range(0, self.strip.reach, wide):
            at = self.places + k.splat(start + j, wide)
            outside = (at < k.splat(k.index(0), wide)) | (at >= k.splat(size, wide))
            address = self.steps + k.splat(first + self.step * j, wide)
            k.store(k.select(outside, self.zeros, address), self.table, row * self.strip.words + j)


def _sums(
    k: Builder, strip: Strip, table: Value, w: Value, outer_taps: Value, pitch: Value, c: Value, width: Value | None, x_zero: Value | None
) -> list[Value]:
    """The sums of a tile for the channels from `c`.   x_zero: the code that stands for 0 in an x of codes."""
    lanes, mask = strip.lanes, None if width is None else k.lane_mask(width, strip.lanes)
    sums = [k.var(k.const(0, strip.dtype, lanes)) for _ in range(strip.width)]
    with k.loop(0, outer_taps) as u:
        held = [s.get() for s in sums]
        filters = [k.load(w, (u * strip.taps + v) * pitch + c, lanes) for v in range(strip.taps)]
        for j in range(strip.reach):
            uses = [(t, v) for t in range(strip.width) for v in range(strip.taps) if t * strip.stride + v * strip.dilation == j]
            if not uses:
                continue
            value = k.load(k.load_pointer(table, u * strip.words + j, strip.source or strip.dtype), c, lanes, mask)
            if x_zero is not None:
                value = k.convert(value, strip.dtype) - k.convert(x_zero, strip.dtype)
            for t, v in uses:
                held[t] = k.fma(value, filters[v], held[t])
        for s, value in zip(sums, held, strict=True):
            s.set(value)
    return [s.get() for s in sums]


def tile_width(out: int, taps: int, registers: int) -> int:
    """How many outputs a tile has: those that waste little of a row, then the more the better.

    >>> [tile_width(n, 3, 16) for n in (112, 56, 7, 10, 3)]
    [8, 8, 7, 5, 3]
    """
    widest = max(3, min(8, registers - 2 - min(taps, 5)))
    if out <= 3:
        return max(1, out)
    return min(range(3, widest + 1), key=lambda width: (-(-out // width)) * (max(width, 5) + 1.0))


def _block(g: Geometry, strip: Strip, outer: tuple[int, ...], tiles: int, target: Target) -> tuple[int, int]:
    """Tiles of a chunk, and of a part of it over which one vector of channels passes after the other.

    Chunks are large enough to be worth handing out, and few enough for all cores.  With many channels a part is some whole rows, whose inputs
    for one vector stay in L1: 5x5 on 12 x 80 x 240 then does 135 GF/s (Zen 5, one thread) instead of 87.  With up to 64 channels it is one tile,
    since memory is read best from end to end.
    """
    total, each = outer[0] * tiles, max(1, 2 * strip.width * g.taps * g.channels)
    most = max(1, total // (4 * target.cores))
    block = max(1, min(CHUNK_FLOPS // each, most))
    vector, table = strip.lanes * strip.dtype.nbytes, outer[1] * strip.words * 8
    stride = g.strides[-2] if len(g.strides) > 1 else 1
    fitting = (
        n
        for n in range(8, 0, -1)
        if ((n - 1) * stride + outer[1]) * g.spatial[-1] * vector + n * tiles * table <= target.l1_nbytes * 3 // 4
    )
    rows = next(fitting, 0) if g.channels > FEW_CHANNELS else 0
    if not rows:
        return block, 1
    near = max(1, min(rows, most // tiles) * tiles)
    return max(block, near), near


def lower_depthwise(group: RootGroup, g: Geometry, x: TaskArg, taps: Sequence[int], target: Target) -> Lowered | None:
    """The tasks of a depthwise convolution.   taps: which element of a filter each tap of the window is."""
    source, dtype = group.root.inputs[0], accumulator(group.root.dtype)
    lanes = target.lanes(dtype)
    layout = group.layout(matrix_axes(1, g.rows, g.filters), lanes)
    if layout is None:
        return None
    tasks: list[Task] = []
    zero = root_zero(group.root)
    codes = source.dtype if dtype is i32 and (source.dtype is not dtype or zero) else None
    if source.dtype is not dtype and codes is None:
        task, x = convert_task(x, source.dtype, dtype, source.type.size, lanes)
        tasks.append(task)
    return Lowered((*tasks, *depthwise_tasks(group, g, x, taps, layout, target, codes, zero)))


def depthwise_tasks(
    group: RootGroup,
    g: Geometry,
    x: TaskArg,
    taps: Sequence[int],
    layout: Layout,
    target: Target,
    codes: DType | None = None,
    x_zero: int = 0,
) -> list[Task]:
    """Packed filters and the convolution of x, which is of the type that sums have, or of narrower `codes` where `x_zero` stands for 0."""
    w, dtype = group.root.inputs[1], accumulator(group.root.dtype)
    lanes = target.lanes(dtype)
    tasks: list[Task] = []
    all_taps = w.type.size // max(1, g.channels)
    packed = channel_filters(group.place(w), group.array(w), (w.dtype, dtype), g.channels, all_taps, taps, lanes, tasks)
    width = tile_width(g.out[-1], g.kernel[-1], target.vector_registers)
    strip = Strip(width, g.kernel[-1], g.strides[-1], g.dilations[-1], lanes, dtype, layout.epilogue, g.channels % lanes > 0, codes)
    outer, _ = window_tables(g, g.channels)
    zeros = np.full(-(-g.channels // lanes) * lanes, x_zero, (codes or dtype).numpy)
    tiles = -(-g.out[-1] // width)
    total = outer.shape[0] * tiles
    places = np.array([[0, 0, *(int(o[0]) for o in layout.offsets)]], np.int64)
    block, near = _block(g, strip, outer.shape, tiles, target)
    head: tuple[TaskArg, ...] = (
        x, packed, Packed(zeros, "zeros"), Packed(places, "places"), Packed(outer, "outer"),
        g.channels, g.out[-1], g.spatial[-1], g.low[-1], outer.shape[1], tiles, total, block, near, *((x_zero,) if codes else ()),
    )  # fmt: skip
    scratch = 8 * outer.shape[1] * strip.words * near
    return [*tasks, writing_task(group, layout, depthwise_kernel(strip), head, math.ceil(total / block), scratch)]
