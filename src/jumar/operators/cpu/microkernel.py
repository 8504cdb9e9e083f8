"""The micro-kernel: a register tile of sums of products, the one inner loop of matrix products and convolutions.

In: pointers to the rows of A (for each tap of a convolution), a panel of packed B.  Out: a tile of C.  It is a `plain` kernel that
others call through a pointer (gemm.py, winograd.py, attention.py), so it is compiled once per machine and not per model.

    c[i, :] (+)= sum over taps t and k of  rows[t][i][start + k] * b[t, k, :]        i < rows of the tile
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from jumar.base import DType, i64
from jumar.device import Target
from jumar.kernel import Builder, Kernel, Value, Variable
from jumar.operators.cpu.tiles import RowTile

UNROLL = 4  # steps of k in one block: enough to hide the loop, few enough that each broadcast stays next to its use


@dataclass(frozen=True)
class Tile(RowTile):
    """A register tile: `rows` x `vectors` vectors of `lanes`.

    splits: sums over k kept apart, to hide the latency of few rows.  stride: vectors from one k to the next in a panel, where that is
    wider than the tile.
    """

    rows: int
    vectors: int
    lanes: int
    dtype: DType
    splits: int = 1
    stride: int = 0

    @property
    def columns(self) -> int:
        """Width of a packed panel of B."""
        return (self.stride or self.vectors) * self.lanes

    def with_rows(self, rows: int, splits: int = 1) -> Tile:
        """As wide, with other rows."""
        return Tile(rows, self.vectors, self.lanes, self.dtype, splits)

    @property
    def half(self) -> Tile:
        """Half as wide on the same panels, for a last one that is half empty; twice the sums over k make up for the vectors."""
        return Tile(self.rows, self.vectors // 2, self.lanes, self.dtype, 2, self.vectors)


def register_tile(target: Target, dtype: DType) -> Tile:
    """The tile for a machine: 6 rows x 2 vectors fill 16 registers (12 sums, 2 of B, a broadcast); NEON's 32 short ones take 4 vectors.

    AVX-512's 32 take 8 rows: on a Zen 5 (both cores, k = 768, everything in L2) 97.5 % of the fma peak, where 6 rows reach 95.5 %, 12 rows or
    8 x 3 no more, and 5 x 5 and 4 x 6, whose broadcasts leave the fma, 60 %.  Panels stay 32 wide, so that narrow convolutions fit.

    >>> from jumar.base import f32
    >>> from jumar.device.cpu import named
    >>> register_tile(named("haswell"), f32).columns
    16
    """
    lanes = target.lanes(dtype)
    vectors = 4 if target.vector_registers >= 32 and target.vector_bits <= 128 else 2
    return Tile(8 if target.vector_bits >= 512 else 6, vectors, lanes, dtype)


@cache
def micro_kernel(tile: Tile) -> Kernel:
    """The micro-kernel of a tile.   Arguments, in order:

    rows: words, the pointer of row i for tap t at [t * rows + i];  taps;  start, depth: which k of every row, in elements
    b: [taps, depth, columns];  c, pitch: the tile's first element and elements from row to row
    add: 1 adds to what c holds, 0 overwrites;  ahead: memory to prefetch, some cache lines for every `UNROLL` steps of k
    """
    k = Builder(
        f"micro_{tile.dtype}_{tile.rows}x{tile.vectors}x{tile.lanes}" + (f"_{tile.splits}_{tile.stride}" if tile.splits > 1 else ""),
        entry="plain",
    )
    rows, taps, start, depth = (
        k.argument_pointer("rows", i64),
        k.argument_integer("taps"),
        k.argument_integer("start"),
        k.argument_integer("depth"),
    )
    b, c, pitch, add = (
        k.argument_pointer("b", tile.dtype),
        k.argument_pointer("c", tile.dtype),
        k.argument_integer("pitch"),
        k.argument_integer("add"),
    )
    ahead = k.argument_pointer("ahead", tile.dtype)
    zero = k.const(0, tile.dtype, tile.lanes)
    sums = [[[k.var(zero) for _ in range(tile.vectors)] for _ in range(tile.rows)] for _ in range(tile.splits)]
    with k.when(add != 0):
        for i, row in enumerate(sums[0]):
            for j, v in enumerate(row):
                v.set(k.load(c, pitch * i + j * tile.lanes, lanes=tile.lanes))
    # few rows pass over a panel few times, and each time must fetch more of the next one
    line, lines = 64 // tile.dtype.nbytes, 1 if tile.rows >= 6 else 4
    with k.loop(0, taps) as t:
        a = [k.offset(k.load_pointer(rows, t * tile.rows + i, tile.dtype), start) for i in range(tile.rows)]
        panel = k.offset(b, t * depth * tile.columns)
        unroll = max(UNROLL, tile.splits)
        whole = depth - depth % unroll
        with k.loop(0, whole, unroll) as at:
            for i in range(lines):
                k.prefetch(ahead, at * (line * lines // UNROLL) + i * line, locality=2)
            _step(k, tile, sums, a, panel, at, unroll)
        with k.loop(whole, depth) as at:
            _step(k, tile, sums, a, panel, at, 1)
    for i in range(tile.rows):
        for j in range(tile.vectors):
            total = sums[0][i][j].get()
            for more in sums[1:]:
                total = total + more[i][j].get()
            k.store(total, c, pitch * i + j * tile.lanes)
    return k.finish()


def _step(k: Builder, tile: Tile, sums: list[list[list[Variable]]], a: list[Value], panel: Value, at: Value, count: int) -> None:
    """`count` steps of k from `at`; the sums live in variables only between blocks."""
    held = [[[v.get() for v in row] for row in part] for part in sums]
    for u in range(count):
        part = held[u % tile.splits]
        vectors = [k.load(panel, (at + u) * tile.columns + j * tile.lanes, lanes=tile.lanes) for j in range(tile.vectors)]
        for i in range(tile.rows):
            spread = k.splat(k.load(a[i], at + u), tile.lanes)
            for j in range(tile.vectors):
                part[i][j] = k.fma(spread, vectors[j], part[i][j])
    for part, row_sums in zip(held, sums, strict=True):
        for values, row in zip(part, row_sums, strict=True):
            for value, v in zip(values, row, strict=True):
                v.set(value)
