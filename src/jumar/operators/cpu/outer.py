"""The outer-product micro-kernel: a register tile of sums over positions, the inner loop of gradients by filters.

In: for each position a pointer to a row of A and a line of a packed panel of B.  Out: a tile of sums.  Where microkernel.py's reads
rows of A along k, this one reads a few neighbouring elements of another row for each k: nothing is transposed or gathered before.

    c[i, :] (+)= sum over positions m of  rows[m][channel + i] * b[m, :]        i < rows of the tile
"""

from __future__ import annotations

from functools import cache

from jumar.base import i64
from jumar.kernel import Builder, Kernel
from jumar.operators.cpu.microkernel import Tile

UNROLL = 4  # positions in one block


@cache
def outer_kernel(tile: Tile) -> Kernel:
    """The micro-kernel of a tile.   Arguments, in order:

    rows: words, the pointer of position m at [m];  channel: added to each, in elements;  depth: positions;  b: [depth, columns]
    c, pitch: the tile's first element and elements from row to row;  add: 1 adds to what c holds, 0 overwrites
    """
    k = Builder(f"outer_{tile.dtype}_{tile.rows}x{tile.vectors}x{tile.lanes}", entry="plain")
    rows, channel, depth = k.argument_pointer("rows", i64), k.argument_integer("channel"), k.argument_integer("depth")
    b, c = k.argument_pointer("b", tile.dtype), k.argument_pointer("c", tile.dtype)
    pitch, add = k.argument_integer("pitch"), k.argument_integer("add")
    zero = k.const(0, tile.dtype, tile.lanes)
    sums = [[k.var(zero) for _ in range(tile.vectors)] for _ in range(tile.rows)]
    with k.when(add != 0):
        for i, row in enumerate(sums):
            for j, v in enumerate(row):
                v.set(k.load(c, pitch * i + j * tile.lanes, lanes=tile.lanes))
    whole = depth - depth % UNROLL
    for first, last, step in ((k.index(0), whole, UNROLL), (whole, depth, 1)):
        with k.loop(first, last, step) as at:
            held = [[v.get() for v in row] for row in sums]
            for u in range(step):
                a = k.offset(k.load_pointer(rows, at + u, tile.dtype), channel)
                vectors = [k.load(b, (at + u) * tile.columns + j * tile.lanes, lanes=tile.lanes) for j in range(tile.vectors)]
                for i in range(tile.rows):
                    spread = k.splat(k.load(a, i), tile.lanes)
                    held[i] = [k.fma(spread, vector, before) for vector, before in zip(vectors, held[i], strict=True)]
            for row, values in zip(sums, held, strict=True):
                for v, value in zip(row, values, strict=True):
                    v.set(value)
    for i, row in enumerate(sums):
        for j, v in enumerate(row):
            k.store(v.get(), c, pitch * i + j * tile.lanes)
    return k.finish()
