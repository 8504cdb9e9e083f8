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
from jumar.operators.cpu.blocking import Cut
from jumar.operators.cpu.epilogue import Epilogue, Writer
from jumar.operators.cpu.integer_microkernel import STEP, ByteTile
from jumar.operators.cpu.tiles import chunk_of, cover, strided_rows, tile_at, window_rows

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
class ByteBlocks(Cut):
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
    def width(self) -> int:
        return self.tile.columns

    @property
    def panel_nbytes(self) -> int:
        """Bytes of a packed panel: its start, then its codes."""
        return panel_nbytes(self.taps, self.steps, self.tile)

    @property
    def sums_at(self) -> int:
        """Where the sums begin in scratch, in words of 8 bytes."""
        return -(-self.tile.covered(min(self.row_block, self.rows)) * self.taps // 8) * 8

    @property
    def scratch_nbytes(self) -> int:
        return 8 * self.sums_at + self.tile.rows * self.tile.columns * i32.nbytes

    @property
    def args(self) -> tuple[int, ...]:
        """In the order of `SIZES`."""
        return (
            self.rows, self.columns, self.taps, self.steps, self.row_block, self.row_blocks, self.panel_block, self.panel_blocks, self.sums_at,
        )  # fmt: skip


def panel_nbytes(taps: int, steps: int, tile: ByteTile) -> int:
    """Bytes of a packed panel."""
    return tile.columns * (i32.nbytes + STEP * taps * steps)


def byte_blocks(rows: int, columns: int, depth: int, taps: int, tile: ByteTile, target: Target, batches: int = 1) -> ByteBlocks:
    """The cut: a chunk's part of B and its rows of A stay in L2; then chunks get smaller until each core has several."""
    steps = -(-depth // STEP)
    cut = ByteBlocks(rows, columns, taps, steps, rows, 1, tile, batches)
    budget = target.l2_nbytes // 2
    cut = replace(cut, panel_block=_even(cut.panels, max(1, budget // cut.panel_nbytes)))
    most = max(8 * tile.rows, budget // 2 // max(1, taps * steps * STEP))
    cut = replace(cut, row_block=_even(rows, min(most, 512), tile.rows))
    ops = 2 * rows * columns * taps * steps * STEP * batches
    wanted = min(CHUNKS * target.cores, max(1, ops // LEAST_OPS)) if target.cores > 1 else 1
    while cut.chunks < wanted:
        if cut.row_block > 8 * tile.rows and cut.panel_block * cut.panel_nbytes <= budget and cut.panel_block == cut.panels:
            cut = replace(cut, row_block=_even(rows, cut.row_block // 2, tile.rows))
        elif cut.panel_block > 1:
            cut = replace(cut, panel_block=_even(cut.panels, cut.panel_block // 2))
        elif cut.row_block > 4 * tile.rows:
            cut = replace(cut, row_block=_even(rows, cut.row_block // 2, tile.rows))
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
    rows = dict.fromkeys(_even(cut.rows, max(1, n), cut.tile.rows) for n in (cut.row_block, cut.row_block // 2, 2 * cut.row_block))
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
    micro = (k.function_pointer("tile_full"), k.function_pointer("tile_small"))
    x, w, places = k.pointer("x", tile.x), k.pointer("w", i8), k.pointer("places", i64)
    n = {name: k.integer(name) for name in SIZES}
    find = window_rows(k, x, tile, n["taps"]) if shape.windows else strided_rows(k, x, tile)
    out = Writer(k, shape.epilogue)
    table = k.thread_scratch("scratch", 0, i64)

    _, batch, (first_row, rows), (first_panel, last_panel, _) = chunk_of(k, n, columns)
    place = k.offset(places, batch * (2 + len(out.lies)))
    fulls, smalls = cover(k, rows, tile)
    sums = k.cast_pointer(k.offset(table, n["sums_at"]), i32)
    find(k.load(place, 0), first_row, rows, fulls, smalls, table)
    panel_size = (n["taps"] * n["steps"] + 1) * (STEP * columns)

    with k.loop(first_panel, last_panel) as panel:
        start = k.offset(w, k.load(place, 1) + panel * panel_size)
        column = panel * columns

        def tiles(write: Callable[[Value, Value], None], start: Value = start) -> None:
            with k.loop(0, fulls + smalls) as t:
                full, row, height = tile_at(k, t, fulls, tile)
                pointers = k.offset(table, row * n["taps"])
                k.call(
                    k.select(full, *micro),
                    pointers,
                    n["taps"],
                    n["steps"],
                    k.offset(start, i32.nbytes * columns),
                    k.cast_pointer(start, i32),
                    sums,
                )
                write(first_row + row, k.minimum(height, rows - row))

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
