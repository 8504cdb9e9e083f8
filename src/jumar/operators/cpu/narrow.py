"""Narrow products: few steps of k, so that what surrounds the sums costs as much as the sums themselves.

In: a 1x1 convolution (or a product) whose k is one short block.  Out: one task.  A tile of rows stays in registers from the first step
of k to the end of the epilogue: no table of rows, no sums in memory.  The tile's width follows the columns: 72 of them are 5 vectors of 16,
not 6.  conv.py chooses; blocking and micro-kernels of deeper products are gemm.py's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from jumar.base import DType, i64
from jumar.device import Target
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.cpu.epilogue import Epilogue, Layout, Writer, modulo
from jumar.operators.cpu.matmul import writing_task
from jumar.operators.cpu.microkernel import UNROLL, Tile
from jumar.operators.cpu.root import RootGroup
from jumar.operators.schedule import Packed, Task, TaskArg

DEEPEST = 128  # steps of k up to which it is faster than gemm.py's kernel
WIDEST = 5  # vectors of a tile
CHUNK_FLOPS = 400_000
NEAR_NBYTES = 8 << 10  # rows of x that stay in L1 while the panels pass over them


@dataclass(frozen=True)
class Narrow:
    """What makes one narrow kernel different from another.   whole, part: whether there are panels that are full, and a last one that is not."""

    tile: Tile
    epilogue: Epilogue
    whole: bool
    part: bool


def narrow_tile(rows: int, columns: int, dtype: DType, target: Target, cores: int = 0) -> Tile:
    """The tile that wastes least: of the columns' vectors, of the loads that feed its fmas, and of the last tile that each core gets.

    cores: that share the rows (0: all).

    >>> from jumar.base import f32
    >>> from jumar.device.cpu import named
    >>> [(t.rows, t.vectors) for n in (16, 24, 40) for t in [narrow_tile(4096, n, f32, named("haswell"))]]
    [(6, 2), (4, 3), (12, 1)]
    """
    lanes, registers, cores = target.lanes(dtype), target.vector_registers * 3 // 4, cores or target.cores
    vectors = -(-columns // lanes)

    def cost(t: Tile) -> float:
        """Cycles for two steps of k, of a machine that loads as many vectors as it multiplies, and some for what each tile costs."""
        tiles = -(-rows // t.rows // cores) * cores
        lower = 1.0 if t.rows == tallest(t.vectors) else 1.03  # heights of their own are kernels of their own
        return lower * tiles * -(-vectors // t.vectors) * (max(t.rows * t.vectors, t.rows + t.vectors) + 1)

    def tallest(width: int) -> int:
        return min(12, registers // width)

    widths = [width for width in range(WIDEST, 0, -1) if tallest(width) >= 4]
    return min((Tile(h, w, lanes, dtype) for w in widths for h in range(tallest(w), max(4, tallest(w) * 2 // 3) - 1, -1)), key=cost)


@cache
def narrow_kernel(shape: Narrow) -> Kernel:
    """The kernel of a chunk: a block of rows, all columns."""
    tile, lanes = shape.tile, shape.tile.lanes
    k = Builder("narrow")
    x, w, places = k.pointer("x", tile.dtype), k.pointer("w", tile.dtype), k.pointer("places", i64)
    rows, columns, depth, pitch = (k.integer(name) for name in ("rows", "columns", "depth", "pitch"))
    row_block, near = k.integer("row_block"), k.integer("near")
    out = Writer(k, shape.epilogue)
    x0, w0 = k.offset(x, k.load(places, 0)), k.offset(w, k.load(places, 1))
    first = k.chunk * row_block
    last = k.minimum(first + row_block, rows)

    def tiles(start: Value, end: Value, column: Value, width: Value | None) -> None:
        """The tiles of one panel.   width: of its columns, where it is not full."""
        b = k.offset(w0, column * depth)
        with k.loop(start, end, tile.rows) as row:
            a = [k.offset(x0, k.minimum(row + i, end - 1) * pitch) for i in range(tile.rows)]
            sums = tile_sums(k, tile, a, b, depth, tile.columns)
            parts = [
                out.columns(
                    lambda i: k.load(places, 2 + i), column + j * lanes, None if width is None else width - j * lanes, lanes, ahead=False
                )
                for j in range(tile.vectors)
            ]
            for i, values in enumerate(sums):
                with k.when(row + i < end):
                    for part, value in zip(parts, values, strict=True):
                        part.write(row + i, value)

    with k.loop(first, last, near) as start:
        end = k.minimum(start + near, last)
        whole = columns - modulo(k, columns, k.index(tile.columns)) if shape.whole else k.index(0)
        if shape.whole:
            with k.loop(0, whole, tile.columns) as column:
                tiles(start, end, column, None)
        if shape.part:
            tiles(start, end, whole, columns - whole)
    return k.finish()


def write_tile(
    k: Builder, out: Writer, places: Value, tile: Tile, columns: tuple[Value, Value | None], rows: tuple[Value, Value], sums: list[list[Value]]
) -> None:  # fmt: skip
    """A tile through the epilogue.   columns: the first, and how many there are where the panel is not full; rows: the same for rows."""
    (column, width), (row, count), lanes = columns, rows, tile.lanes
    parts = [
        out.columns(lambda i: k.load(places, 2 + i), column + j * lanes, None if width is None else width - j * lanes, lanes, ahead=False)
        for j in range(tile.vectors)
    ]
    for i, values in enumerate(sums):
        with k.when(count > i):
            for part, value in zip(parts, values, strict=True):
                part.write(row + i, value)


def tile_sums(k: Builder, tile: Tile, a: list[Value], b: Value, depth: Value, pitch: Value | int) -> list[list[Value]]:
    """The sums of products of one tile, in registers.   pitch: elements from one line of `b` to the next."""
    zero = k.const(0, tile.dtype, tile.lanes)
    sums = [[k.var(zero) for _ in range(tile.vectors)] for _ in range(tile.rows)]

    def step(at: Value, count: int) -> None:
        held = [[v.get() for v in row] for row in sums]
        for u in range(count):
            vectors = [k.load(b, (at + u) * pitch + j * tile.lanes, tile.lanes) for j in range(tile.vectors)]
            for i, row in enumerate(held):
                spread = k.splat(k.load(a[i], at + u), tile.lanes)
                row[:] = [k.fma(spread, vector, value) for vector, value in zip(vectors, row, strict=True)]
        for variables, values in zip(sums, held, strict=True):
            for v, value in zip(variables, values, strict=True):
                v.set(value)

    whole = depth - modulo(k, depth, k.index(UNROLL))
    with k.loop(0, whole, UNROLL) as at:
        step(at, UNROLL)
    with k.loop(whole, depth) as at:
        step(at, 1)
    return [[v.get() for v in row] for row in sums]


def narrow_task(
    group: RootGroup, layout: Layout, tile: Tile, sizes: tuple[int, int, int, int], x: TaskArg, w: TaskArg, places: Packed, target: Target
) -> Task:
    """The task of a product.   sizes: rows, columns, depth, and the elements from one row of x to the next; w: panels of the tile."""
    rows, columns, depth, pitch = sizes
    full, rest = divmod(columns, tile.columns)
    kernel = narrow_kernel(Narrow(tile, layout.epilogue, full > 0, rest > 0))

    tiles = -(-rows // tile.rows)
    chunks = min(tiles, -(-2 * rows * columns * depth // CHUNK_FLOPS // target.cores) * target.cores)
    block = tiles // chunks * tile.rows
    near = min(block, max(1, NEAR_NBYTES // (depth * tile.dtype.nbytes * tile.rows)) * tile.rows)
    head: tuple[TaskArg, ...] = (x, w, places, rows, columns, depth, pitch, block, near)
    return writing_task(group, layout, kernel, head, -(-rows // block), 0)
