"""Blocking: how the work of a contraction is cut into chunks and blocks that fit the caches.

In: sizes of a contraction, a tile, a target.  Out: `Blocks`, the numbers that gemm.py's kernel takes as arguments.

What is cut and why.  k: a panel block of B (k x 16) stays near while the tiles of rows pass over it: in L1, or in L2 where that is large and
feeds a tile as fast.  Rows: the block of A for one block of k stays in L2 while the panels pass over it.  Panels: so that a chunk's part of B
stays in L2 when neighbouring chunks share it.
Then chunks are made smaller until every core has several, since the other core may be busy with something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jumar.base import Option, Question, choose
from jumar.device import Target
from jumar.operators.cpu.microkernel import UNROLL, Tile

DEPTH = 256  # steps of k in a block: 16 kB of B in f32
DEEP = 768  # the same with a megabyte of L2 or more: sums go through memory less often (Zen 5, 128 x 768 x 3072: 3 % against 256)
LEAST_FLOPS = 400_000  # of a chunk: some microseconds, so that handing it out costs little
CHUNKS = 6  # that each core should have at least

WHOLE, PART, HALF, UNDER_HALF = "whole", "part", "half", "under_half"  # the last panel of columns


class Cut:
    """The work of a contraction in chunks: blocks of rows x blocks of column panels x batches."""

    rows: int
    columns: int
    row_block: int
    panel_block: int
    batches: int

    @property
    def width(self) -> int:
        """Columns of a panel."""
        raise NotImplementedError

    @property
    def panels(self) -> int:
        return -(-self.columns // self.width)

    @property
    def row_blocks(self) -> int:
        return -(-self.rows // self.row_block)

    @property
    def panel_blocks(self) -> int:
        return -(-self.panels // self.panel_block)

    @property
    def chunks(self) -> int:
        return self.batches * self.row_blocks * self.panel_blocks


@dataclass(frozen=True)
class Blocks(Cut):
    """The cut of one contraction.   panels are columns of a tile; taps are those of a convolution's window, 1 for a matrix product."""

    rows: int
    columns: int
    depth: int
    taps: int
    row_block: int
    panel_block: int
    tap_block: int
    depth_block: int
    tile: Tile
    batches: int = 1

    @property
    def last(self) -> str:
        """How full the last panel is.   One or two rows and tiles that cannot be halved take it as PART."""
        rest, whole = self.columns % self.tile.columns, self.tile.columns
        if rest == 0:
            return WHOLE
        if 2 * rest > whole or self.tile.vectors % 2 or self.rows <= 2:
            return PART
        return HALF if 2 * rest == whole else UNDER_HALF

    @property
    def width(self) -> int:
        return self.tile.columns

    @property
    def single(self) -> bool:
        """One block of k: sums need not be kept from block to block."""
        return self.tap_block >= self.taps and self.depth_block >= self.depth

    @property
    def table_words(self) -> int:
        """Row pointers in scratch, rounded to a cache line."""
        return -(-self.tile.covered(min(self.row_block, self.rows)) * self.taps // 8) * 8

    @property
    def sums_at(self) -> int:
        """Where the sums begin in scratch, in elements."""
        return self.table_words * 8 // self.tile.dtype.nbytes

    @property
    def panel_sums(self) -> int:
        """Elements from a panel's sums to the next one's."""
        return 0 if self.single else self.tile.covered(min(self.row_block, self.rows)) * self.tile.columns

    @property
    def row_sums(self) -> int:
        """Elements from a row's sums to the next one's: 0 where each tile's are done with before the next tile begins."""
        return 0 if self.single else self.tile.columns

    @property
    def scratch_nbytes(self) -> int:
        rows = self.tile.rows if self.single else self.tile.covered(min(self.row_block, self.rows)) * self.panel_block
        return (self.sums_at + rows * self.tile.columns) * self.tile.dtype.nbytes

    @property
    def args(self) -> tuple[int, ...]:
        """In the order of gemm.SIZES."""
        return (
            self.rows, self.columns, self.depth, self.taps, self.row_block, self.row_blocks, self.panel_block, self.panel_blocks,
            self.tap_block, self.depth_block, self.sums_at, self.panel_sums, self.row_sums,
        )  # fmt: skip


def choose_blocks(rows: int, columns: int, depth: int, taps: int, tile: Tile, target: Target, batches: int = 1) -> Blocks:
    """The cut of a contraction of `batches` x [rows, taps * depth] x [taps * depth, columns]."""
    panels = -(-columns // tile.columns)
    scale = 4 / tile.dtype.nbytes
    unit = int((DEEP if target.l2_nbytes >= 1 << 20 else DEPTH) * scale)
    tap_block, depth_block = 1, depth
    if depth >= unit:
        parts = max(1, round(depth / unit))
        depth_block = _up(-(-depth // parts), UNROLL)
    else:
        parts = -(-taps // max(1, int(1.5 * unit) // max(1, depth)))
        tap_block = max(1, -(-taps // parts)) if taps else 1
    block_depth = min(depth_block * tap_block, depth * taps) or 1
    row_limit = max(4 * tile.rows, target.l2_nbytes // 2 // (block_depth * tile.dtype.nbytes) // tile.rows * tile.rows)
    row_block = rows if rows <= min(row_limit, 256) else _even(rows, min(row_limit, 96), tile.rows)
    whole = max(1, taps * depth * tile.columns * tile.dtype.nbytes)
    panel_block = max(1, min(panels, 3 * target.l2_nbytes // 8 // whole))
    panel_block = min(panels, max(panel_block, 4)) if depth * taps > unit else panel_block
    cut = Blocks(rows, columns, depth, taps, row_block, _even_panels(panels, panel_block), tap_block, depth_block, tile, batches)
    return measured(_enough_chunks(cut, target.cores), target)


def measured(cut: Blocks, target: Target) -> Blocks:
    """The cut, or the one of its kin that was measured to be faster on this machine (`jumar tune`)."""
    expected = (cut.row_block, cut.panel_block, cut.tap_block, cut.depth_block)
    depth = f"{cut.taps} x {cut.depth}" if cut.taps > 1 else f"{cut.depth}"
    batches = f"{cut.batches} of " if cut.batches > 1 else ""
    facts = f"{batches}[{cut.rows}, {depth}] x [{depth}, {cut.columns}] {cut.tile.dtype.name}, tile {cut.tile.rows} x {cut.tile.columns}"
    question = Question("product", facts, target.machine)
    taken = choose(question, expected, lambda: kin(cut), lambda o: f"{o[0]} rows, {o[1]} panels, {o[2]} taps, {o[3]} deep")
    row_block, panel_block, tap_block, depth_block = taken
    return replace(cut, row_block=row_block, panel_block=panel_block, tap_block=tap_block, depth_block=depth_block)


def kin(cut: Blocks) -> Sequence[Option]:
    """Cuts near this one: half and twice its rows and panels, and blocks of k half and twice as deep."""
    rows = dict.fromkeys(min(cut.rows, _up(max(1, n), cut.tile.rows)) for n in (cut.row_block, cut.row_block // 2, 2 * cut.row_block))
    panels = dict.fromkeys(min(cut.panels, max(1, n)) for n in (cut.panel_block, cut.panel_block // 2, 2 * cut.panel_block))
    found = [(r, p, cut.tap_block, cut.depth_block) for r in rows for p in panels]
    if cut.taps == 1 or cut.depth_block < cut.depth:
        halves = {_up(-(-cut.depth_block // 2), UNROLL), min(cut.depth, 2 * cut.depth_block)} - {cut.depth_block}
        found += [(cut.row_block, cut.panel_block, cut.tap_block, d) for d in sorted(halves) if 64 <= d]
    else:
        halves = {-(-cut.tap_block // 2), min(cut.taps, 2 * cut.tap_block)} - {cut.tap_block}
        found += [(cut.row_block, cut.panel_block, t, cut.depth_block) for t in sorted(halves)]
    return found


def _enough_chunks(cut: Blocks, cores: int) -> Blocks:
    """The same in smaller chunks, until each core has several or they get too small."""
    flops = 2 * cut.rows * cut.columns * cut.depth * cut.taps * cut.batches
    wanted = min(CHUNKS * cores, max(1, flops // LEAST_FLOPS)) if cores > 1 else 1
    while cut.chunks < wanted:
        if cut.panel_block > 2 or (cut.row_block <= 8 * cut.tile.rows and cut.panel_block > 1):
            cut = _with(cut, cut.row_block, _even_panels(cut.panels, cut.panel_block // 2))
        elif cut.row_block > 4 * cut.tile.rows:
            cut = _with(cut, _even(cut.rows, cut.row_block // 2, cut.tile.rows), cut.panel_block)
        else:
            break
    return cut


def _with(cut: Blocks, row_block: int, panel_block: int) -> Blocks:
    return Blocks(cut.rows, cut.columns, cut.depth, cut.taps, row_block, panel_block, cut.tap_block, cut.depth_block, cut.tile, cut.batches)


def _even(rows: int, limit: int, height: int) -> int:
    """Blocks of about one size, whole tiles, near `limit`."""
    parts = -(-rows // limit)
    return _up(-(-rows // parts), height)


def _up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def _even_panels(panels: int, limit: int) -> int:
    parts = -(-panels // max(1, limit))
    return max(1, -(-panels // parts))
