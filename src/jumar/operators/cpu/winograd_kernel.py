"""Winograd's kernels: the inputs of tiles transformed, a product for each position, the products taken back and through the epilogue.

In: a form (winograd_transform.py), a register tile, an epilogue.  Out: templates for winograd.py's tasks; all sizes are arguments.

A chunk is a block of tiles and some panels of filters.  V, the transformed inputs, lie [positions, tiles, channels]: in the chunk's
scratch, or in memory where a task of its own has made them.  Panel by panel: M, the products of all positions, [positions, tiles,
columns], goes to scratch, then back to outputs while it is still in the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from jumar.base import i64
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.cpu.epilogue import Epilogue, Writer, modulo, quotient
from jumar.operators.cpu.microkernel import Tile
from jumar.operators.cpu.tiles import cover, heights
from jumar.operators.cpu.winograd_transform import Form, emit_square, filter_rows, input_rows, output_rows

PAD = 16  # elements between positions in scratch: without them the streams of positions fall on a few sets of the cache

Tails = tuple[bool, bool]  # whether channels and filters are not whole vectors

SIZES = (
    "tiles", "tiles_y", "tiles_x", "height", "width", "low_y", "low_x", "out_y", "out_x", "channels", "filters", "block", "blocks",
    "panel_block", "depth_block",
)  # fmt: skip


@dataclass(frozen=True)
class Sizes:
    """The arguments that all steps share."""

    k: Builder
    n: dict[str, Value]
    form: Form
    tile: Tile
    tails: Tails

    @property
    def straight(self) -> bool:
        """Whether transforms are written in straight lines: with 32 long registers, of squares up to 6 x 6 (2 to 10 % of a layer)."""
        return self.tile.lanes * self.tile.dtype.bits >= 512 and self.form.side <= 6

    def tile_at(self, index: Value) -> tuple[Value, Value, Value]:
        """Image, first output row and column of a tile."""
        k, m = self.k, self.form.m
        rest, column = quotient(k, index, self.n["tiles_x"]), modulo(k, index, self.n["tiles_x"])
        return quotient(k, rest, self.n["tiles_y"]), modulo(k, rest, self.n["tiles_y"]) * m, column * m


@dataclass(frozen=True)
class Tables:
    """Offsets of all positions, in words of scratch: of inputs in x and in a patch, of V.   Read from memory for every vector: as sums of
    strides they would be as many pointers, which LLVM keeps in memory and counts up one by one."""

    inside: Value
    patch: Value
    v: Value


def _table(s: Sizes, words: Value, number: int, row: Value, column: Value) -> Value:
    """The offsets of a square whose rows and columns are so far apart."""
    k, side = s.k, s.form.side
    table = k.offset(words, number * s.form.positions)
    with k.loop(0, side) as i, k.loop(0, side) as j:
        k.store(i * row + j * column, table, i * side + j)
    return table


def _tables(s: Sizes, words: Value, pitch: Value) -> Tables:
    """pitch: from one position of V to the next."""
    channels, side = s.n["channels"], s.form.side
    inside, patch = (_table(s, words, at, row * channels, channels) for at, row in enumerate((s.n["width"], s.k.index(side))))
    return Tables(inside, patch, _table(s, words, 2, pitch * side, pitch))


def _declare(k: Builder, form: Form, tile: Tile, tails: Tails) -> Sizes:
    return Sizes(k, {name: k.integer(name) for name in SIZES}, form, tile, tails)


def emit_input(s: Sizes, x: Value, zeros: Value, patch: Value, tables: Tables, index: Value, target: Value) -> None:
    """V of one tile, all channels.   patch: scratch for the inputs of a tile at the border."""
    k, n, form, lanes = s.k, s.n, s.form, s.tile.lanes
    side, channels = form.side, n["channels"]
    image, row, column = s.tile_at(index)
    top, left = row * form.stride - n["low_y"], column * form.stride - n["low_x"]
    line = n["width"] * channels
    base = k.offset(x, image * (n["height"] * line))
    whole = channels - modulo(k, channels, k.index(lanes))
    mask = k.lane_mask(channels - whole, lanes) if s.tails[0] else None
    inside = (top >= 0) & (left >= 0) & (top + side <= n["height"]) & (left + side <= n["width"])
    with k.when(k.logical_not(inside)), k.loop(0, side) as i, k.loop(0, side) as j:
        y, at = top + i, left + j
        outside = (y < 0) | (y >= n["height"]) | (at < 0) | (at >= n["width"])
        source = k.select(outside, zeros, k.offset(base, y * line + at * channels))
        copy = k.offset(patch, (i * side + j) * channels)
        with k.loop(0, whole, lanes) as c:
            k.store(k.load(source, c, lanes), copy, c)
        if mask is not None:
            k.store(k.load(source, whole, lanes, mask), copy, whole, mask)
    first = k.select(inside, k.offset(base, top * line + left * channels), patch)
    table = k.select(inside, tables.inside, tables.patch)

    def vector(c: Value, mask: Value | None) -> None:
        start, result = k.offset(first, c), k.offset(target, c)
        emit_square(
            k, s.tile.dtype, lanes, (side, side), lambda d: input_rows(k, form, d),
            lambda i, j: k.load(start, k.load(table, i * side + j), lanes, mask),
            lambda value, i, j: k.store(value, result, k.load(tables.v, i * side + j), mask),
            straight=s.straight,
        )  # fmt: skip

    with k.loop(0, whole, lanes) as c:
        vector(c, None)
    if mask is not None:
        vector(whole, mask)


def emit_output(
    s: Sizes, writer: Writer, offset: Callable[[int], Value], cell: tuple[Value, Value, Value], column: Value, source: Value, table: Value
) -> None:
    """The outputs of one tile and one panel through the epilogue.

    cell: the tile's first output position, and how many rows and columns of it exist; column: the panel's first; table: offsets of positions.
    """
    k, n, form, lanes = s.k, s.n, s.form, s.tile.lanes
    m, (first, rows, columns) = form.m, cell
    held = k.array(s.tile.dtype, m * m * lanes)

    def block(c: Value, width: Value | None) -> None:
        start = k.offset(source, c)
        emit_square(
            k, s.tile.dtype, lanes, (form.side, m), lambda d: output_rows(k, form, d),
            lambda i, j: k.load(start, k.load(table, i * form.side + j), lanes),
            lambda value, i, j: k.store(value, held, (i * m + j) * lanes, aligned=True),
            straight=s.straight,
        )  # fmt: skip
        part = writer.columns(offset, column + c, width, lanes)
        with k.loop(0, rows) as y, k.loop(0, columns) as x:
            part.write(first + y * n["out_x"] + x, k.load(held, (y * m + x) * lanes, lanes, aligned=True))

    width = k.minimum(n["filters"] - column, s.tile.columns)
    whole = width - modulo(k, width, k.index(lanes)) if s.tails[1] else width
    with k.loop(0, whole, lanes) as c:
        block(c, None)
    if s.tails[1]:
        with k.when(whole < width):
            block(whole, width - whole)


@dataclass(frozen=True)
class Scratch:
    """Where things are in a chunk's scratch, in elements.   Its tiles' cells (3 words each), tables, rows of V, a patch, V, M."""

    tables: int
    rows: int
    patch: int
    v: int
    products: int
    size: int


CELL = 3  # words


def scratch_of(form: Form, tile: Tile, channels: int, block: int, depth: int) -> Scratch:
    """depth: channels of V that lie in scratch: all, or none where V is in memory."""
    word, line = 8 // tile.dtype.nbytes, 64 // tile.dtype.nbytes

    def up(size: int) -> int:
        return -(-size // line) * line

    tables = up(CELL * block * word)
    rows = tables + up(4 * form.positions * word)
    patch = rows + up((block + tile.small) * word)
    v = patch + up(form.positions * depth)
    products = v + up(form.positions * (block * depth + PAD) if depth else 0)
    size = products + form.positions * ((block + tile.small) * tile.columns + PAD)
    return Scratch(tables, rows, patch, v, products, size)


@cache
def chunk_kernel(form: Form, tile: Tile, epilogue: Epilogue, tails: Tails, apart: bool) -> Kernel:
    """All steps for the tiles and panels of a chunk.   apart: V has been made before, and is read instead of x."""
    k = Builder(f"winograd{form.m}_{form.stride}" + ("_products" if apart else ""))
    micro = (k.function_pointer("tile_full"), k.function_pointer("tile_small"))
    x, u, zeros, places = k.pointer("x", tile.dtype), k.pointer("u", tile.dtype), k.pointer("zeros", tile.dtype), k.pointer("places", i64)
    s = _declare(k, form, tile, tails)
    tables_at, rows_at, patch_at, v_at, products_at = (k.integer(f"{name}_at") for name in ("tables", "rows", "patch", "v", "products"))
    writer = Writer(k, epilogue)
    scratch = k.thread_scratch("scratch", 0, tile.dtype)
    n, side, columns, channels = s.n, form.side, tile.columns, s.n["channels"]
    first = modulo(k, k.chunk, n["blocks"]) * n["block"]
    count = k.minimum(n["block"], n["tiles"] - first)
    cells, rows = k.cast_pointer(scratch, i64), k.cast_pointer(k.offset(scratch, rows_at), i64)
    patch, products = k.offset(scratch, patch_at), k.offset(scratch, products_at)
    if apart:
        v_pitch = n["tiles"] * channels + PAD
        v = k.offset(x, first * channels)
    else:
        v_pitch = n["block"] * channels + PAD
        v = k.offset(scratch, v_at)
    m_pitch = (n["block"] + tile.small) * columns + PAD
    words = k.cast_pointer(k.offset(scratch, tables_at), i64)
    tables = None if apart else _tables(s, words, v_pitch)
    m_table = _table(s, words, 3, m_pitch * side, m_pitch)
    with k.loop(0, count) as t:
        if tables:
            emit_input(s, x, zeros, patch, tables, first + t, k.offset(v, t * channels))
        image, row, column = s.tile_at(first + t)
        cell = (
            (image * n["out_y"] + row) * n["out_x"] + column,
            k.minimum(n["out_y"] - row, form.m),
            k.minimum(n["out_x"] - column, form.m),
        )
        for i, value in enumerate(cell):
            k.store(value, cells, t * CELL + i)
    fulls, smalls = cover(k, count, tile)
    covers = heights(k, tile, fulls, smalls)
    for height, base, tiles in covers:
        with k.loop(0, tiles) as t, k.loop(0, height) as j:
            at = base + t * height + j
            k.store_pointer(k.offset(v, k.minimum(at, count - 1) * channels), rows, at)
    panels = (n["filters"] + (columns - 1)) / columns
    first_panel = quotient(k, k.chunk, n["blocks"]) * n["panel_block"]
    panel_size = channels * columns
    share = quotient(k, panel_size, fulls + smalls)
    with k.loop(first_panel, k.minimum(first_panel + n["panel_block"], panels)) as panel:
        with k.loop(0, side) as down, k.loop(0, side) as across:
            same = k.minimum(down, form.unlike - 1) * form.unlike + k.minimum(across, form.unlike - 1)
            at = down * side + across
            filters = k.offset(u, (panel * form.unlike**2 + same) * panel_size)
            c = k.offset(products, at * m_pitch)
            with k.loop(0, channels, n["depth_block"]) as start:
                depth = k.minimum(n["depth_block"], channels - start)
                b = k.offset(filters, start * columns)
                add = k.select(start > 0, k.index(1), k.index(0))
                for function, (height, base, tiles) in zip(micro, covers, strict=True):
                    with k.loop(0, tiles) as t:
                        row = base + t * height
                        ahead = k.offset(b, panel_size + share * (t if height == tile.rows else fulls + t))
                        k.call(
                            function, k.offset(rows, row), 1, at * v_pitch + start, depth, b, k.offset(c, row * columns), columns, add, ahead
                        )  # fmt: skip
        with k.loop(0, count) as t:
            found = (k.load(cells, t * CELL), k.load(cells, t * CELL + 1), k.load(cells, t * CELL + 2))
            emit_output(s, writer, lambda i: k.load(places, 2 + i), found, panel * columns, k.offset(products, t * columns), m_table)
    return k.finish()


def input_patch(form: Form, tile: Tile) -> int:
    """Where the patch begins in the scratch of `input_kernel`, in elements."""
    return 3 * form.positions * 8 // tile.dtype.nbytes


@cache
def input_kernel(form: Form, tile: Tile, tails: Tails) -> Kernel:
    """The first step alone: V of a block of tiles."""
    k = Builder(f"winograd{form.m}_{form.stride}_input")
    x, v, zeros = k.pointer("x", tile.dtype), k.pointer("v", tile.dtype), k.pointer("zeros", tile.dtype)
    s = _declare(k, form, tile, tails)
    scratch = k.thread_scratch("scratch", 0, tile.dtype)
    n = s.n
    tables = _tables(s, k.cast_pointer(scratch, i64), n["tiles"] * n["channels"] + PAD)
    patch = k.offset(scratch, input_patch(form, tile))
    with k.loop(k.chunk * n["block"], k.minimum((k.chunk + 1) * n["block"], n["tiles"])) as t:
        emit_input(s, x, zeros, patch, tables, t, k.offset(v, t * n["channels"]))
    return k.finish()


@cache
def filter_kernel(form: Form, tile: Tile) -> Kernel:
    """Transformed filters from packed ones: [panels, 9, channels, columns] -> [panels, positions, channels, columns].

    A chunk is some channels of one panel.
    """
    k = Builder(f"winograd{form.m}_{form.stride}_filters")
    w, u = k.pointer("w", tile.dtype), k.pointer("u", tile.dtype)
    channels, block, blocks = k.integer("channels"), k.integer("block"), k.integer("blocks")
    side, line, lanes = form.unlike, tile.columns, tile.lanes
    panel, first = quotient(k, k.chunk, blocks), modulo(k, k.chunk, blocks) * block
    size = channels * line
    source, target = k.offset(w, panel * (9 * size)), k.offset(u, panel * (side * side * size))
    held = k.array(tile.dtype, 3 * side * lanes)
    with k.loop(first, k.minimum(first + block, channels)) as c, k.loop(0, line, lanes) as at:
        here = c * line + at
        with k.loop(0, 3) as x:
            taps = [k.load(source, (y * 3 + x) * size + here, lanes) for y in range(3)]
            for y, value in enumerate(filter_rows(k, form, taps)):
                k.store(value, held, (x + y * 3) * lanes, aligned=True)
        with k.loop(0, side) as i:
            row = [k.load(held, (i * 3 + j) * lanes, lanes, aligned=True) for j in range(3)]
            for j, value in enumerate(filter_rows(k, form, row)):
                k.store(value, target, (i * side + j) * size + here)
    return k.finish()
