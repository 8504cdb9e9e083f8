"""Skinny products: few rows times a constant matrix, as when a text is written word by word.   As quick as the weights come from memory.

In: a group (root.py) whose root is a MatMul of up to `MOST_ROWS` rows by one constant matrix.  Out: one task: each chunk takes neighbouring
panels of columns, so that its weights are one stretch of memory that is read from end to end, once; the sums of a panel for all rows
stay in registers over the whole of k, and leave through the epilogue.

Measured (Zen 5, two cores, 80 GB/s from memory, 768 x 3072): one row reads at 95 % of that, by one stretch a core; 2, 4 or 8 streams are no
quicker.  Eight rows read at 85 %, and at 65 % without prefetches, since their arithmetic leaves the core too few loads in flight; 4 to
16 kB ahead are alike.  Blocks of k, which products of many rows want, read at 50 to 60 %.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from jumar.base import Array, DType, i64
from jumar.device import Target
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.contraction import accumulator
from jumar.operators.cpu.epilogue import Epilogue, Writer
from jumar.operators.cpu.matmul import place_table, product_of, writing_task
from jumar.operators.cpu.microkernel import Tile
from jumar.operators.cpu.packing import pack_panels
from jumar.operators.cpu.prepare import converted
from jumar.operators.cpu.root import RootGroup, matrix_axes, turned
from jumar.operators.schedule import Lowered, Packed, Task, TaskArg

MOST_ROWS = 8  # from about 13 rows on arithmetic takes longer than memory does
BLOCK_FMAS = 8  # in one block: where it holds more steps of k, LLVM orders them by row, waits on its own sums and spills (half the speed)
CHUNK_NBYTES = (32 << 10, 512 << 10)  # of weights: a microsecond, so that handing it out costs little, and ten, so that nobody waits long
AHEAD_NBYTES = 8 << 10  # how far weights are fetched ahead, from AHEAD_ROWS rows on: fewer leave the core loads enough in flight, and
AHEAD_ROWS = 4  # weights that come from L2 and L3 take 8 % longer with prefetches
CHUNKS = 8  # that each core gets where chunks of that size allow


@dataclass(frozen=True)
class Strip:
    """Sums of a panel in registers: rows x vectors of lanes, `splits` times over k, so that there are enough to hide an fma's latency."""

    rows: int
    vectors: int
    lanes: int
    dtype: DType
    splits: int

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes

    @property
    def unroll(self) -> int:
        """Steps of k in one block."""
        return max(self.splits, BLOCK_FMAS // (self.rows * self.vectors))


def strip_of(rows: int, columns: int, dtype: DType, target: Target) -> Strip:
    """The strip for a machine.

    >>> from jumar.base import f32
    >>> from jumar.device.cpu import named
    >>> strip_of(1, 512, f32, named("haswell")), strip_of(8, 512, f32, named("haswell")).vectors
    (Strip(rows=1, vectors=2, lanes=8, dtype=f32, splits=4), 1)
    """
    lanes, widest = target.lanes(dtype), 4 if target.vector_bits <= 128 else 2
    fits = (target.vector_registers - 1) // (rows + 1)  # sums, weights, and a register for an element of x
    vectors = max(v for v in (1, 2, 4) if v == 1 or v <= min(widest, fits, -(-columns // lanes)))
    return Strip(rows, vectors, lanes, dtype, max(1, min(4, 8 // (rows * vectors))))


def lower_skinny(group: RootGroup, target: Target) -> Lowered | None:
    """The tasks of a group around a MatMul; None where it is not skinny, or its weights are not known."""
    x, w = group.root.inputs
    p = product_of(x.type, w.type)
    source_w = None if w in group.outer else turned(group.root, w)
    value = group.array(source_w or w)
    if p.batches != 1 or value is None:
        return None
    whole = value.reshape(p.columns, p.depth).T if source_w else value.reshape(p.depth, p.columns)
    return skinny_product(group, whole, p.rows, target)


def skinny_product(group: RootGroup, w: Array, rows: int, target: Target) -> Lowered | None:
    """The tasks of a product of the root's first input, `rows` dense rows, by w: [depth, columns]; None where it is not skinny."""
    x, (depth, columns) = group.root.inputs[0], w.shape
    if not 0 < rows <= MOST_ROWS or group.root.type.size == 0 or x.type.size == 0:
        return None
    strip = strip_of(rows, columns, accumulator(group.root.dtype), target)
    layout = group.layout(matrix_axes(1, rows, columns), strip.columns)
    if layout is None:
        return None
    tasks: list[Task] = []
    source = converted(group.place(x), group.root, strip.dtype, strip.lanes, tasks)
    panels = Packed(pack_panels(w, Tile(strip.rows, strip.vectors, strip.lanes, strip.dtype)), "weights")
    block = panel_block(columns, depth, strip, target.cores)
    chunks = -(-columns // (strip.columns * block))
    kernel = skinny_kernel(strip.columns, strip.dtype, layout.epilogue, columns % strip.columns != 0)
    zeros = np.zeros(1, np.int64)
    places = place_table(zeros, zeros, layout)
    head: tuple[TaskArg, ...] = (strip_kernel(strip), source, panels, places, rows, columns, depth, block)
    tasks.append(writing_task(group, layout, kernel, head, chunks, strip.rows * strip.columns * strip.dtype.nbytes))
    return Lowered(tuple(tasks))


def panel_block(columns: int, depth: int, strip: Strip, cores: int) -> int:
    """Panels of a chunk."""
    panels, each = -(-columns // strip.columns), max(1, depth * strip.columns * strip.dtype.nbytes)
    least, most = CHUNK_NBYTES
    return max(1, min(max(panels * each // (cores * CHUNKS), least), most) // each)


@cache
def strip_kernel(strip: Strip) -> Kernel:
    """c[i, :] = sum over k of x[i, k] * panel[k, :], for the rows of a strip.   pitch: elements from row to row of x; c is dense."""
    k = Builder(f"strip_{strip.dtype}_{strip.rows}x{strip.vectors}x{strip.lanes}", entry="plain")
    x, pitch = k.argument_pointer("x", strip.dtype), k.argument_integer("pitch")
    panel, depth, c = k.argument_pointer("panel", strip.dtype), k.argument_integer("depth"), k.argument_pointer("c", strip.dtype)
    zero = k.const(0, strip.dtype, strip.lanes)
    sums = [[[k.var(zero) for _ in range(strip.vectors)] for _ in range(strip.rows)] for _ in range(strip.splits)]
    rows = [k.offset(x, pitch * i) for i in range(strip.rows)]
    whole = depth - depth % strip.unroll
    for first, last, step in ((k.index(0), whole, strip.unroll), (whole, depth, 1)):
        with k.loop(first, last, step) as at:
            held = [[[v.get() for v in row] for row in part] for part in sums]
            for i in range(0, step * strip.columns * strip.dtype.nbytes if strip.rows >= AHEAD_ROWS else 0, 64):
                k.prefetch(panel, at * strip.columns + (AHEAD_NBYTES + i) // strip.dtype.nbytes)
            for u in range(step):
                vectors = [k.load(panel, (at + u) * strip.columns + j * strip.lanes, strip.lanes) for j in range(strip.vectors)]
                for i, row in enumerate(held[u % strip.splits]):
                    spread = k.splat(k.load(rows[i], at + u), strip.lanes)
                    row[:] = [k.fma(spread, v, s) for v, s in zip(vectors, row, strict=True)]
            for part, new in zip(sums, held, strict=True):
                for variables, values in zip(part, new, strict=True):
                    for variable, value in zip(variables, values, strict=True):
                        variable.set(value)
    for i in range(strip.rows):
        for j in range(strip.vectors):
            total = sums[0][i][j].get()
            for more in sums[1:]:
                total = total + more[i][j].get()
            k.store(total, c, i * strip.columns + j * strip.lanes)
    return k.finish()


@cache
def skinny_kernel(columns: int, dtype: DType, epilogue: Epilogue, part: bool) -> Kernel:
    """The kernel of a chunk of panels.   columns: of a panel; part: the last one is not full."""
    k = Builder("skinny")
    strip = k.function_pointer("strip")
    x, w, places = k.pointer("x", dtype), k.pointer("w", dtype), k.pointer("places", i64)
    n = {name: k.integer(name) for name in ("rows", "columns", "depth", "panel_block")}
    out = Writer(k, epilogue)
    sums = k.thread_scratch("sums", 0, dtype)
    panels = (n["columns"] + (columns - 1)) / columns
    first = k.chunk * n["panel_block"]
    with k.loop(first, k.minimum(first + n["panel_block"], panels)) as panel:
        k.call(strip, x, n["depth"], k.offset(w, panel * n["depth"] * columns), n["depth"], sums)
        column = panel * columns

        def write(width: Value | None, column: Value = column) -> None:
            there = out.columns(lambda i: k.load(places, 2 + i), column, width, columns)
            with k.loop(0, n["rows"]) as row:
                there.write(row, k.load(sums, row * columns, columns, aligned=True))

        if not part:
            write(None)
        else:
            with k.when(n["columns"] - column >= columns):
                write(None)
            with k.otherwise():
                write(n["columns"] - column)
    return k.finish()
