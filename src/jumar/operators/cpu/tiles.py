"""Tiles of rows: how register tiles of two heights cover the rows of a chunk, and where those rows are.

In: a tile, a chunk's first row and number of rows.  Out: numbers of tiles (`cover`, `heights`), and code that writes the pointers of all rows
into a table, tile by tile (`strided_rows`, `window_rows`).  All contraction kernels walk their rows so: gemm.py, integer_gemm.py,
winograd_kernel.py, attention.py and their gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from jumar.base import i64
from jumar.kernel import Builder, Value
from jumar.operators.cpu.epilogue import modulo, quotient

# (offset of the batch in x, first row, rows, full tiles, small tiles, table)
Find = Callable[[Value, Value, Value, Value, Value, Value], None]


class RowTile:
    """A tile of `rows` rows, next to a lower one, `small`, so that the two cover any number of rows."""

    rows: int
    LOWER: ClassVar = 2  # rows fewer in a small tile

    @property
    def small(self) -> int:
        """Rows of the lower tile."""
        return self.rows - self.LOWER

    def covered(self, rows: int) -> int:
        """Rows of the fewest tiles of this height and of the lower one that have `rows`: mostly the same, one more where it is odd.

        >>> from jumar.base import f32
        >>> from jumar.operators.cpu.microkernel import Tile
        >>> [Tile(6, 2, 8, f32).covered(n) for n in (1, 5, 6, 7, 49)], [Tile(8, 2, 16, f32).covered(n) for n in (1, 8, 9, 12, 49)]
        ([4, 6, 6, 8, 50], [6, 8, 12, 12, 50])
        """
        tiles = -(-rows // self.rows)
        return tiles * self.rows - self.LOWER * min(tiles, (tiles * self.rows - rows) // self.LOWER)


def chunk_of(k: Builder, n: Mapping[str, Value], columns: int) -> tuple[Value, Value, tuple[Value, Value], tuple[Value, Value, Value]]:
    """Which part of a `Cut` (blocking.py) this chunk is: its block of rows, its batch, (first row, rows), (first panel, the one behind its last,
    panels in all).   n: the cut's numbers; columns: of a panel."""
    row_part, rest = modulo(k, k.chunk, n["row_blocks"]), quotient(k, k.chunk, n["row_blocks"])
    panel_part, batch = modulo(k, rest, n["panel_blocks"]), quotient(k, rest, n["panel_blocks"])
    first_row = row_part * n["row_block"]
    rows = k.minimum(n["row_block"], n["rows"] - first_row)
    panels = (n["columns"] + (columns - 1)) / columns
    first_panel = panel_part * n["panel_block"]
    return row_part, batch, (first_row, rows), (first_panel, k.minimum(first_panel + n["panel_block"], panels), panels)


def cover(k: Builder, rows: Value, tile: RowTile) -> tuple[Value, Value]:
    """How many full and how many small tiles cover `rows` (`RowTile.covered` says how many rows that are).

    A small tile takes as long as a tile of fewer rows would: it has just enough sums to hide the latency of its fmas.
    """
    tiles = quotient(k, rows + (tile.rows - 1), k.index(tile.rows))
    smalls = k.minimum(tiles, (tiles * tile.rows - rows) >> 1)
    return tiles - smalls, smalls


def heights(k: Builder, tile: RowTile, fulls: Value, smalls: Value) -> tuple[tuple[int, Value, Value], tuple[int, Value, Value]]:
    """(rows, first row, how many) of the full and of the small tiles."""
    return (tile.rows, k.index(0), fulls), (tile.small, fulls * tile.rows, smalls)


def tile_at(k: Builder, t: Value, fulls: Value, tile: RowTile) -> tuple[Value, Value, Value]:
    """Whether tile number t is a full one, its first row, and its rows."""
    full = t < fulls
    row = t * tile.rows - k.maximum(t - fulls, 0) * (tile.rows - tile.small)
    return full, row, k.select(full, k.index(tile.rows), k.index(tile.small))


def strided_rows(k: Builder, x: Value, tile: RowTile) -> Find:
    """Rows that are `pitch` elements apart; declares that argument."""
    pitch = k.integer("pitch")

    def find(offset: Value, first_row: Value, rows: Value, fulls: Value, smalls: Value, table: Value) -> None:
        start = k.offset(x, offset + first_row * pitch)

        def visit(first: Value, row: Value, i: Value, _: int) -> None:
            k.store_pointer(k.offset(start, row * pitch), table, first + i)

        _visit(k, tile, rows, fulls, smalls, visit)

    return find


def window_rows(k: Builder, x: Value, tile: RowTile, taps: Value) -> Find:
    """Row m is the window at outer position m // inner, inner position m % inner; a negative sum of the tables' entries is padding, which is
    read at `zeros`.   Declares these arguments."""
    zeros, outer_table, inner_table = k.pointer("zeros", x.dtype), k.pointer("outer_table", i64), k.pointer("inner_table", i64)
    inner, outer_taps, inner_taps = k.integer("inner"), k.integer("outer_taps"), k.integer("inner_taps")

    def find(offset: Value, first_row: Value, rows: Value, fulls: Value, smalls: Value, table: Value) -> None:
        start = k.offset(x, offset)

        def visit(first: Value, row: Value, i: Value, height: int) -> None:
            m = first_row + row
            outer_row = k.offset(outer_table, quotient(k, m, inner) * outer_taps)
            inner_row = k.offset(inner_table, modulo(k, m, inner) * inner_taps)
            where = first * taps + i
            with k.loop(0, outer_taps) as u:
                above = k.load(outer_row, u)
                with k.loop(0, inner_taps) as v:
                    at = above + k.load(inner_row, v)
                    pointer = k.select(at < 0, zeros, k.offset(start, at))
                    k.store_pointer(pointer, table, where + (u * inner_taps + v) * height)

        _visit(k, tile, rows, fulls, smalls, visit)

    return find


def _visit(k: Builder, tile: RowTile, rows: Value, fulls: Value, smalls: Value, visit: Callable[[Value, Value, Value, int], None]) -> None:
    """visit(first row of the tile, row with the excess ones clamped, index in the tile, height) for every row of every tile."""
    for height, base, count in heights(k, tile, fulls, smalls):
        with k.loop(0, count) as t:
            first = base + t * height
            with k.loop(0, height) as i:
                visit(first, k.minimum(first + i, rows - 1), i, height)
