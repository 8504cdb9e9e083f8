"""The contraction kernel: one chunk of a matrix product or of a convolution, around the micro-kernel.

In: blocks (blocking.py), packed weights (packing.py), an epilogue.  Out: `contraction_kernel`, a template whose text holds types, tile and
epilogue; all sizes are arguments.  matmul.py and conv.py make its tasks.

A chunk is a block of rows x a block of column panels of one batch.  It writes the pointers of its rows for each tap into scratch (a
convolution's padding points at a row of zeros), then goes over blocks of k, panels and tiles of rows: sums of a tile stay in scratch
until the last block of k; then the epilogue takes them to memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from jumar.base import DType, i64
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.cpu.blocking import HALF, UNDER_HALF, WHOLE
from jumar.operators.cpu.epilogue import Epilogue, Writer, quotient
from jumar.operators.cpu.microkernel import Tile
from jumar.operators.cpu.tiles import chunk_of, cover, strided_rows, tile_at, window_rows

# numbers of a chunk's work, in the order of the arguments (see `Blocks` in blocking.py)
SIZES = (
    "rows", "columns", "depth", "taps", "row_block", "row_blocks", "panel_block", "panel_blocks",
    "tap_block", "depth_block", "sums_at", "panel_sums", "row_sums",
)  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """What makes one contraction kernel different from another.

    windows: rows of A are found by two tables (outer and inner positions of a window) and may be padding; else they are `pitch` apart.
    last: how full the last panel of columns is: WHOLE needs half the code; HALF and UNDER_HALF get tiles half as wide, and HALF no masks.
    """

    tile: Tile
    epilogue: Epilogue
    windows: bool = False
    last: str = WHOLE

    @property
    def dtype(self) -> DType:
        return self.tile.dtype

    @property
    def half(self) -> bool:
        return self.last in (HALF, UNDER_HALF)


@cache
def contraction_kernel(shape: Shape) -> Kernel:
    """The kernel of a chunk."""
    tile, columns = shape.tile, shape.tile.columns
    k = Builder("contraction_windows" if shape.windows else "contraction")
    micro = (k.function_pointer("tile_full"), k.function_pointer("tile_small"))
    narrow = (k.function_pointer("half_full"), k.function_pointer("half_small")) if shape.half else micro
    x, w, places = k.pointer("x", tile.dtype), k.pointer("w", tile.dtype), k.pointer("places", i64)
    n = {name: k.integer(name) for name in SIZES}
    find = window_rows(k, x, tile, n["taps"]) if shape.windows else strided_rows(k, x, tile)
    out = Writer(k, shape.epilogue)
    scratch = k.thread_scratch("scratch", 0, tile.dtype)

    row_part, batch, (first_row, rows), (first_panel, last_panel, panels) = chunk_of(k, n, columns)
    place = k.offset(places, batch * (2 + len(out.lies)))
    fulls, smalls = cover(k, rows, tile)

    table = k.cast_pointer(scratch, i64)
    sums = k.offset(scratch, n["sums_at"])
    find(k.load(place, 0), first_row, rows, fulls, smalls, table)

    panel_pitch = n["taps"] * n["depth"] * columns
    w0 = k.offset(w, k.load(place, 1))
    with k.loop(0, n["taps"], n["tap_block"]) as tap, k.loop(0, n["depth"], n["depth_block"]) as start:
        taps = k.minimum(n["tap_block"], n["taps"] - tap)
        depth = k.minimum(n["depth_block"], n["depth"] - start)
        add = k.select((tap + start) > 0, k.index(1), k.index(0))
        done = ((tap + taps) == n["taps"]) & ((start + depth) == n["depth"])
        block = tap * n["depth"] * columns + start * taps * columns  # depth is cut only where taps are taken one by one
        size = taps * depth * columns
        with k.loop(first_panel, last_panel) as panel:
            b = k.offset(w0, panel * panel_pitch + block)
            # the panel that comes next is fetched while this one is used, a part of it with each tile of rows; after the last one come
            # the next block of k, and then the next chunk, which mostly is this thread's
            again = k.select(done, k.select(row_part + 1 < n["row_blocks"], first_panel, panel + 1), first_panel) * panel_pitch
            again = k.select(done, again, again + block + size)
            ahead = k.offset(w0, k.select(panel + 1 < last_panel, (panel + 1) * panel_pitch + block, again))
            share = quotient(k, size, fulls + smalls)
            c = k.offset(sums, (panel - first_panel) * n["panel_sums"])
            starts = out.starts(lambda i: k.load(place, 2 + i), panel * columns)
            chosen = tuple(k.select(panel + 1 == panels, b, a) for a, b in zip(micro, narrow, strict=True)) if shape.half else micro
            with k.loop(0, fulls + smalls) as t:
                full, row, height = tile_at(k, t, fulls, tile)
                pointers = k.offset(table, row * n["taps"] + tap * height)
                held = k.offset(c, row * n["row_sums"])
                k.call(
                    k.select(full, chosen[0], chosen[1]), pointers, taps, start, depth, b, held, columns, add, k.offset(ahead, share * t)
                )
                # tile by tile, so that its lines of memory come and go while the next tile is computed
                with k.when(done):
                    _finish(k, shape, out, starts, first_row + row, k.minimum(height, rows - row), n["columns"] - panel * columns, held)
    return k.finish()


def _finish(k: Builder, shape: Shape, out: Writer, starts: list[Value], first_row: Value, rows: Value, columns: Value, c: Value) -> None:
    """The epilogue of one tile.   columns: that are left from its first on."""
    whole = shape.tile.columns

    def panel(lanes: int, width: Value | None) -> None:
        part = out.panel(starts, width, lanes)
        with k.loop(0, rows) as row:
            part.write(first_row + row, k.load(c, row * whole, lanes, aligned=True))
            part.fetch(first_row + row + shape.tile.rows)

    if shape.last == WHOLE:
        panel(whole, None)
        return
    with k.when(columns >= whole):
        panel(whole, None)
    with k.otherwise():
        if shape.last == HALF:
            panel(whole // 2, None)
        else:
            panel(whole // 2 if shape.last == UNDER_HALF else whole, columns)
