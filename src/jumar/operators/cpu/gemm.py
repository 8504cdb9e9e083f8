"""The contraction kernel: one chunk of a matrix product or of a convolution, around the micro-kernel.

In: blocks (blocking.py), packed weights (packing.py), an epilogue.  Out: `contraction_kernel`, a template whose text holds types, tile and
epilogue; all sizes are arguments.  matmul.py and conv.py make its tasks.

A chunk is a block of rows x a block of column panels of one batch.  It writes the pointers of its rows for each tap into scratch (a
convolution's padding points at a row of zeros), then goes over blocks of k, panels and tiles of rows: sums of a tile stay in scratch
until the last block of k; then the epilogue takes them to memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from jumar.base import DType, i64
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.cpu.blocking import HALF, UNDER_HALF, WHOLE
from jumar.operators.cpu.epilogue import Epilogue, Writer, modulo, quotient
from jumar.operators.cpu.microkernel import Tile

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
    find = (_window_rows if shape.windows else _strided_rows)(k, x, tile, n)
    out = Writer(k, shape.epilogue)
    scratch = k.thread_scratch("scratch", 0, tile.dtype)

    row_part, rest = modulo(k, k.chunk, n["row_blocks"]), quotient(k, k.chunk, n["row_blocks"])
    panel_part, batch = modulo(k, rest, n["panel_blocks"]), quotient(k, rest, n["panel_blocks"])
    place = k.offset(places, batch * (2 + len(out.lies)))
    first_row = row_part * n["row_block"]
    rows = k.minimum(n["row_block"], n["rows"] - first_row)
    panels = (n["columns"] + (columns - 1)) / columns
    first_panel = panel_part * n["panel_block"]
    last_panel = k.minimum(first_panel + n["panel_block"], panels)
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
                low = t < fulls
                height = k.select(low, k.index(tile.rows), k.index(tile.small))
                row = t * tile.rows - k.maximum(t - fulls, 0) * (tile.rows - tile.small)
                pointers = k.offset(table, row * n["taps"] + tap * height)
                held = k.offset(c, row * n["row_sums"])
                k.call(k.select(low, chosen[0], chosen[1]), pointers, taps, start, depth, b, held, columns, add, k.offset(ahead, share * t))
                # tile by tile, so that its lines of memory come and go while the next tile is computed
                with k.when(done):
                    _finish(k, shape, out, starts, first_row + row, k.minimum(height, rows - row), n["columns"] - panel * columns, held)
    return k.finish()


def cover(k: Builder, rows: Value, tile: Tile) -> tuple[Value, Value]:
    """How many full and how many small tiles cover `rows` (`Tile.covered` says how many rows that are).

    A small tile takes as long as a tile of fewer rows would: it has just enough sums to hide the latency of its fmas.
    """
    tiles = quotient(k, rows + (tile.rows - 1), k.index(tile.rows))
    smalls = k.minimum(tiles, (tiles * tile.rows - rows) >> 1)
    return tiles - smalls, smalls


def heights(k: Builder, tile: Tile, fulls: Value, smalls: Value) -> tuple[tuple[int, Value, Value], tuple[int, Value, Value]]:
    """(rows, first row, how many) of the full and of the small tiles."""
    return (tile.rows, k.index(0), fulls), (tile.small, fulls * tile.rows, smalls)


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


Find = Callable[[Value, Value, Value, Value, Value, Value], None]


def _tiles(k: Builder, tile: Tile, rows: Value, fulls: Value, smalls: Value, visit: Callable[[Value, Value, Value, int], None]) -> None:
    """visit(first row of the tile, row with the excess ones clamped, index in the tile, height) for every row of every tile."""
    for height, base, count in heights(k, tile, fulls, smalls):
        with k.loop(0, count) as t:
            first = base + t * height
            with k.loop(0, height) as i:
                visit(first, k.minimum(first + i, rows - 1), i, height)


def _strided_rows(k: Builder, x: Value, tile: Tile, n: dict[str, Value]) -> Find:
    pitch = k.integer("pitch")

    def find(offset: Value, first_row: Value, rows: Value, fulls: Value, smalls: Value, table: Value) -> None:
        start = k.offset(x, offset + first_row * pitch)
        _tiles(k, tile, rows, fulls, smalls, lambda first, row, i, _: k.store_pointer(k.offset(start, row * pitch), table, first + i))

    return find


def _window_rows(k: Builder, x: Value, tile: Tile, n: dict[str, Value]) -> Find:
    """Row m is the window at outer position m // inner, inner position m % inner; a negative sum of the tables' entries is padding."""
    zeros, outer_table, inner_table = k.pointer("zeros", x.dtype), k.pointer("outer_table", i64), k.pointer("inner_table", i64)
    inner, outer_taps, inner_taps = k.integer("inner"), k.integer("outer_taps"), k.integer("inner_taps")

    def find(offset: Value, first_row: Value, rows: Value, fulls: Value, smalls: Value, table: Value) -> None:
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

        _tiles(k, tile, rows, fulls, smalls, visit)

    return find
