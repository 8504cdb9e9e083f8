"""The micro-kernel of bytes: a register tile of exact integer sums of products of 8-bit codes.

In: pointers to the rows of A (for each tap of a convolution), a panel of packed B.  Out: a tile of 32-bit sums.  It is a `plain` kernel
that integer_gemm.py calls through a pointer, so it is compiled once per machine and not per model.

    c[i, :] = start[:] + sum over taps t and k of  rows[t][i][k] * b[t, k, :]        i < rows of the tile

Four neighbouring k are one step (`dot4` of kernel/builder.py): A gives them as one word for each row, B holds them side by side for each
column.  Where depth is not a multiple of 4 the packed B has zeros there, so what A has behind its row does not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from jumar.base import DType, i8, i32, i64, u8
from jumar.device import Target
from jumar.kernel import Builder, Kernel, Value, Variable
from jumar.operators.cpu.tiles import RowTile

STEP = 4  # k that one instruction sums
UNROLL = 2  # steps in one block
ROWS = 6  # of a tile


@dataclass(frozen=True)
class ByteTile(RowTile):
    """A register tile: `rows` x `vectors` vectors of `lanes` sums.

    x: the type of A's codes.  flip: their top bit is turned on the way, which makes u8 of i8 (128 more) and i8 of u8 (128 less): what
    the machine multiplies.  narrow: two neighbouring products always fit 16 bits (`dot4`).  splits: sums over k kept apart.
    """

    rows: int
    vectors: int
    lanes: int
    x: DType
    flip: bool = False
    narrow: bool = False
    splits: int = 1

    @property
    def columns(self) -> int:
        """Width of a packed panel of B."""
        return self.vectors * self.lanes

    @property
    def multiplied(self) -> DType:
        """The type of A's codes as they are multiplied."""
        return (i8 if self.x is u8 else u8) if self.flip else self.x

    def moved(self, x_zero: int) -> int:
        """The code that stands for 0 in A as it is multiplied."""
        return x_zero if not self.flip else x_zero + 128 if self.x is i8 else x_zero - 128

    def with_rows(self, rows: int) -> ByteTile:
        """As wide, with other rows."""
        return ByteTile(rows, self.vectors, self.lanes, self.x, self.flip, self.narrow, self.splits)


def one_instruction(target: Target, x: DType) -> bool:
    """Whether the machine sums four products of codes of type x by i8 in one instruction."""
    if target.architecture == "aarch64":
        return target.has("dotprod") if x is i8 else target.has("i8mm")
    wide = target.vector_bits == 512
    return x is u8 and (
        target.has("avx512vnni") if wide else target.has("avxvnni") or (target.has("avx512vnni") and target.has("avx512vl"))
    )


def byte_tile(target: Target, x: DType, columns: int, narrow: bool) -> ByteTile:
    """The tile for a machine and a width of the result.

    With 32 registers 6 x 4 (24 sums), or 6 x 2 and 6 x 1 where a narrow result would leave the last vectors empty; with 16 registers
    6 x 2, or 4 x 2 where products of 16 bits need registers of their own.
    """
    lanes = target.lanes(i32)
    best = u8 if target.architecture != "aarch64" else i8
    flip = x is not best and (one_instruction(target, best) or narrow) and not one_instruction(target, x)
    narrow = narrow and target.architecture != "aarch64" and not one_instruction(target, best)
    widths = (4, 2, 1) if target.vector_registers >= 32 else (2, 1)
    cost = {4: 1.0, 2: 1.1, 1: 1.4} if target.vector_registers >= 32 else {2: 1.0, 1: 1.3}
    vectors = min(widths, key=lambda v: (-(-columns // (v * lanes)) * v * cost[v], -v))
    return ByteTile(ROWS, vectors, lanes, x, flip, narrow, 2 if vectors == 1 else 1)


@cache
def byte_micro_kernel(tile: ByteTile) -> Kernel:
    """The micro-kernel of a tile.   Arguments, in order:

    rows: words, the pointer of row i for tap t at [t * rows + i];  taps;  steps: of four k, of each row
    b: [taps, steps, columns, 4];  start: what the sums of each column begin with;  c: [rows, columns]
    """
    flags = ("_flip" if tile.flip else "") + ("_narrow" if tile.narrow else "")
    k = Builder(f"micro_{tile.x}_{tile.rows}x{tile.vectors}x{tile.lanes}{flags}", entry="plain")
    rows, taps, steps = k.argument_pointer("rows", i64), k.argument_integer("taps"), k.argument_integer("steps")
    b, start, c = k.argument_pointer("b", i8), k.argument_pointer("start", i32), k.argument_pointer("c", i32)
    lanes, columns = tile.lanes, tile.columns
    begin = [k.load(start, j * lanes, lanes) for j in range(tile.vectors)]
    zero = k.const(0, i32, lanes)
    sums = [[[k.var(begin[j] if not s else zero) for j in range(tile.vectors)] for _ in range(tile.rows)] for s in range(tile.splits)]
    unroll = max(UNROLL, tile.splits)
    with k.loop(0, taps) as t:
        a = [k.load_pointer(rows, t * tile.rows + i, i32) for i in range(tile.rows)]
        panel = k.offset(b, t * steps * (STEP * columns))
        whole = steps - steps % unroll
        with k.loop(0, whole, unroll) as at:
            _steps(k, tile, sums, a, panel, at, unroll)
        with k.loop(whole, steps) as at:
            _steps(k, tile, sums, a, panel, at, 1)
    for i in range(tile.rows):
        for j in range(tile.vectors):
            total = sums[0][i][j].get()
            for more in sums[1:]:
                total = total + more[i][j].get()
            k.store(total, c, i * columns + j * lanes, aligned=True)
    return k.finish()


def _steps(k: Builder, tile: ByteTile, sums: list[list[list[Variable]]], a: list[Value], panel: Value, at: Value, count: int) -> None:
    """`count` steps from `at`; the sums live in variables only between blocks."""
    held = [[[v.get() for v in row] for row in part] for part in sums]
    width = STEP * tile.lanes
    for u in range(count):
        part = held[u % tile.splits]
        vectors = [k.load(panel, (at + u) * (STEP * tile.columns) + j * width, lanes=width) for j in range(tile.vectors)]
        for i in range(tile.rows):
            word = k.splat(k.load(a[i], at + u), tile.lanes)
            spread = k.bitcast(word ^ -2139062144 if tile.flip else word, tile.multiplied)
            for j in range(tile.vectors):
                part[i][j] = k.dot4(part[i][j], spread, vectors[j], narrow=tile.narrow)
    for part, row_sums in zip(held, sums, strict=True):
        for values, row in zip(part, row_sums, strict=True):
            for value, v in zip(values, row, strict=True):
                v.set(value)
