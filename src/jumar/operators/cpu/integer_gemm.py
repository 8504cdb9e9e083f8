"""The contraction kernel of bytes: one chunk of a product or a convolution of 8-bit codes, around its micro-kernel.

In: blocks, packed weights (integer_packing.py), an epilogue.  Out: `byte_kernel`, a template as in gemm.py, and `ByteBlocks`, the numbers
it takes.  integer.py makes its tasks.

A chunk is a block of rows x a block of column panels of one batch.  It writes the pointers of its rows for each tap into scratch
(padding points at a row of x's zero code), then takes tile after tile through the micro-kernel and the epilogue.  k is not cut: bytes
are small, and a panel that does not fit L1 still streams from L2 faster than it is used (64 columns: 256 bytes for each 12 cycles of a
6 x 4 tile).  So sums never leave L1, and what is written is codes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from jumar.base import Option, Question, choose, i8, i32, i64
from jumar.device import Target
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.cpu.epilogue import Epilogue, Writer, modulo, quotient
from jumar.operators.cpu.integer_microkernel import SHORT, STEP, TALL, ByteTile

LEAST_OPS = 1_500_000  # of a chunk: about two microseconds
CHUNKS = 5  # that each core should have at least

# numbers of a chunk's work, in the order of the arguments (see `ByteBlocks`)
SIZES = ("rows", "columns", "taps", "steps", "row_block", "row_blocks", "panel_block", "panel_blocks", "sums_at")


@dataclass(frozen=True)
class ByteShape:
    """What makes one kernel different from another.   windows: as in gemm.py; partial: the last panel has columns that do not exist;
    masks: the machine stores bytes under a mask (else those columns go one by one)."""

    tile: ByteTile
    epilogue: Epilogue
    windows: bool = False
    partial: bool = False
    masks: bool = False


@dataclass(frozen=True)
class ByteBlocks:
    """The cut of one contraction of `batches` x [rows, taps * 4 * steps] x [taps * 4 * steps, columns]."""

    rows: int
    columns: int
    taps: int
    steps: int
    row_block: int
    panel_block: int
    tile: ByteTile
    batches: int = 1

    @property
    def panels(self) -> int:
        return -(-self.columns // self.tile.columns)

    @property
    def panel_nbytes(self) -> int:
        """Bytes of a packed panel: its start, then its codes."""
        return panel_nbytes(self.taps, self.steps, self.tile)

    @property
    def row_blocks(self) -> int:
        return -(-self.rows // self.row_block)

    @property
    def panel_blocks(self) -> int:
        return -(-self.panels // self.panel_block)

    @property
    def chunks(self) -> int:
        return self.batches * self.row_blocks * self.panel_blocks

    @property
    def sums_at(self) -> int:
        """Where the sums begin in scratch, in words of 8 bytes."""
        return -(-covered(min(self.row_block, self.rows)) * self.taps // 8) * 8

    @property
    def scratch_nbytes(self) -> int:
        return 8 * self.sums_at + TALL * self.tile.columns * i32.nbytes

    @property
    def args(self) -> tuple[int, ...]:
        """In the order of `SIZES`."""
        return (
            self.rows, self.columns, self.taps, self.steps, self.row_block, self.row_blocks, self.panel_block, self.panel_blocks, self.sums_at,
        )  # fmt: skip


def panel_nbytes(taps: int, steps: int, tile: ByteTile) -> int:
    """Bytes of a packed panel."""
    return tile.columns * (i32.nbytes + STEP * taps * steps)


def covered(rows: int) -> int:
    """Rows that tiles of 6 and 4 cover.

    >>> [covered(n) for n in (1, 5, 6, 7, 49)]
    [4, 6, 6, 8, 50]
    """
    return max(SHORT, rows + rows % 2)


def byte_blocks(rows: int, columns: int, depth: int, taps: int, tile: ByteTile, target: Target, batches: int = 1) -> ByteBlocks:
    """The cut: a chunk's part of B and its rows of A stay in L2; then chunks get smaller until each core has several."""
    steps = -(-depth // STEP)
    cut = ByteBlocks(rows, columns, taps, steps, rows, 1, tile, batches)
    budget = target.l2_nbytes // 2
    cut = replace(cut, panel_block=_even(cut.panels, max(1, budget // cut.panel_nbytes)))
    most = max(8 * TALL, budget // 2 // max(1, taps * steps * STEP))
    cut = replace(cut, row_block=_even(rows, min(most, 512), TALL))
    ops = 2 * rows * columns * taps * steps * STEP * batches
    wanted = min(CHUNKS * target.cores, max(1, ops // LEAST_OPS)) if target.cores > 1 else 1
    while cut.chunks < wanted:
        if cut.row_block > 8 * TALL and cut.panel_block * cut.panel_nbytes <= budget and cut.panel_block == cut.panels:
            cut = replace(cut, row_block=_even(rows, cut.row_block // 2, TALL))
        elif cut.panel_block > 1:
            cut = replace(cut, panel_block=_even(cut.panels, cut.panel_block // 2))
        elif cut.row_block > 4 * TALL:
            cut = replace(cut, row_block=_even(rows, cut.row_block // 2, TALL))
        else:
            break
    return measured(cut, target)


def measured(cut: ByteBlocks, target: Target) -> ByteBlocks:
    """The cut, or the one near it that was measured to be faster on this machine (`jumar tune`)."""
    depth = f"{cut.taps} x {cut.steps * STEP}"
    batches = f"{cut.batches} of " if cut.batches > 1 else ""
    facts = f"{batches}[{cut.rows}, {depth}] x [{depth}, {cut.columns}] bytes, tile {cut.tile.rows} x {cut.tile.columns}"
    row_block, panel_block = choose(
        Question("product", facts, target.machine),
        (cut.row_block, cut.panel_block),
        lambda: kin(cut),
        lambda o: f"{o[0]} rows, {o[1]} panels",
    )
    return replace(cut, row_block=row_block, panel_block=panel_block)


def kin(cut: ByteBlocks) -> Sequence[Option]:
    """Cuts near this one: half and twice its rows and panels."""
    rows = dict.fromkeys(_even(cut.rows, max(1, n), TALL) for n in (cut.row_block, cut.row_block // 2, 2 * cut.row_block))
    panels = dict.fromkeys(min(cut.panels, max(1, n)) for n in (cut.panel_block, cut.panel_block // 2, 2 * cut.panel_block))
    return [(r, p) for r in rows for p in panels]


def _even(number: int, limit: int, multiple: int = 1) -> int:
    """Parts of about one size, near `limit`, multiples of `multiple`."""
    parts = math.ceil(number / max(1, limit))
    return max(1, math.ceil(math.ceil(number / parts) / multiple) * multiple)


@cache
def byte_kernel(shape: ByteShape) -> Kernel:
    """The kernel of a chunk."""
    tile, columns = shape.tile, shape.tile.columns
    k = Builder("byte_windows" if shape.windows else "byte_product")
    tall, short = k.function_pointer("tile_tall"), k.function_pointer("tile_short")
    x, w, places = k.pointer("x", tile.x), k.pointer("w", i8), k.pointer("places", i64)
    n = {name: k.integer(name) for name in SIZES}
    find = _window_rows(k, x, n) if shape.windows else _strided_rows(k, x)
    out = Writer(k, shape.epilogue)
    table = k.thread_scratch("scratch", 0, i64)

    row_part, rest = modulo(k, k.chunk, n["row_blocks"]), quotient(k, k.chunk, n["row_blocks"])
    panel_part, batch = modulo(k, rest, n["panel_blocks"]), quotient(k, rest, n["panel_blocks"])
    place = k.offset(places, batch * (2 + len(out.lies)))
    first_row = row_part * n["row_block"]
    rows = k.minimum(n["row_block"], n["rows"] - first_row)
    panels = (n["columns"] + (columns - 1)) / columns
    first_panel = panel_part * n["panel_block"]
    last_panel = k.minimum(first_panel + n["panel_block"], panels)
    talls, shorts = cover(k, rows)
    sums = k.cast_pointer(k.offset(table, n["sums_at"]), i32)
    find(k.load(place, 0), first_row, rows, talls, shorts, table)
    panel_size = (n["taps"] * n["steps"] + 1) * (STEP * columns)

    with k.loop(first_panel, last_panel) as panel:
        start = k.offset(w, k.load(place, 1) + panel * panel_size)
        column = panel * columns

        def tiles(write: Callable[[Value, Value], None], start: Value = start) -> None:
            with k.loop(0, talls + shorts) as t:
                is_tall = t < talls
                row = k.select(is_tall, t * TALL, talls * TALL + (t - talls) * SHORT)
                height = k.minimum(k.select(is_tall, k.index(TALL), k.index(SHORT)), rows - row)
                function = k.select(is_tall, tall, short)
                pointers = k.offset(table, row * n["taps"])
                k.call(function, pointers, n["taps"], n["steps"], k.offset(start, i32.nbytes * columns), k.cast_pointer(start, i32), sums)
                write(first_row + row, height)

        def put(lanes: int, width: Value | None) -> None:
            part = out.columns(lambda i: k.load(place, 2 + i), column, width, lanes)

            def write(row: Value, height: Value) -> None:
                with k.loop(0, height) as i:
                    part.write(row + i, k.load(sums, i * columns, lanes, aligned=True))

            tiles(write)

        def one_by_one(row: Value, height: Value) -> None:
            with k.loop(0, n["columns"] - column) as j:
                part = out.columns(lambda i: k.load(place, 2 + i), column + j, None, 1)
                with k.loop(0, height) as i:
                    part.write(row + i, k.load(sums, i * columns + j))

        if not shape.partial:
            put(columns, None)
        else:
            with k.when(n["columns"] - column >= columns):
                put(columns, None)
            with k.otherwise():
                if shape.masks:
                    put(columns, n["columns"] - column)
                else:
                    tiles(one_by_one)
    return k.finish()


def cover(k: Builder, rows: Value) -> tuple[Value, Value]:
    """How many tall and how many short tiles cover `rows` (one row more where they are odd)."""
    even = k.maximum((rows + 1) & ~1, SHORT)
    rest = even % TALL
    shorts = k.select(rest == 0, k.index(0), k.select(rest == 4, k.index(1), k.index(2)))
    return (even - shorts * SHORT) / TALL, shorts


Find = Callable[[Value, Value, Value, Value, Value, Value], None]


def _tiles(k: Builder, rows: Value, talls: Value, shorts: Value, visit: Callable[[Value, Value, Value, int], None]) -> None:
    """visit(first row of the tile, row with the excess ones clamped, index in the tile, height) for every row of every tile."""
    for height, base, count in ((TALL, k.index(0), talls), (SHORT, talls * TALL, shorts)):
        with k.loop(0, count) as t:
            first = base + t * height
            with k.loop(0, height) as i:
                visit(first, k.minimum(first + i, rows - 1), i, height)


def _strided_rows(k: Builder, x: Value) -> Find:
    pitch = k.integer("pitch")

    def find(offset: Value, first_row: Value, rows: Value, talls: Value, shorts: Value, table: Value) -> None:
        start = k.offset(x, offset + first_row * pitch)
        _tiles(k, rows, talls, shorts, lambda first, row, i, _: k.store_pointer(k.offset(start, row * pitch), table, first + i))

    return find


def _window_rows(k: Builder, x: Value, n: dict[str, Value]) -> Find:
    """As gemm.py's: row m is the window at outer position m // inner, inner position m % inner; below 0 is padding."""
    zeros, outer_table, inner_table = k.pointer("zeros", x.dtype), k.pointer("outer_table", i64), k.pointer("inner_table", i64)
    inner, outer_taps, inner_taps = k.integer("inner"), k.integer("outer_taps"), k.integer("inner_taps")

    def find(offset: Value, first_row: Value, rows: Value, talls: Value, shorts: Value, table: Value) -> None:
        start = k.offset(x, offset)

        def visit(first: Value, row: Value, i: Value, height: int) -> None:
            m = first_row + row
            outer_row = k.offset(outer_table, quotient(k, m, inner) * outer_taps)
            inner_row = k.offset(inner_table, modulo(k, m, inner) * inner_taps)
            where = first * n["taps"] + i
            with k.loop(0, outer_taps) as u:
                above = k.load(outer_row, u)
                with k.loop(0, inner_taps) as v:
                    at = above + k.load(inner_row, v)
                    pointer = k.select(at < 0, zeros, k.offset(start, at))
                    k.store_pointer(pointer, table, where + (u * inner_taps + v) * height)

        _tiles(k, rows, talls, shorts, visit)

    return find
