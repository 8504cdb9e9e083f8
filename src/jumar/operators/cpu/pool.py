"""Pools: maxima and means of windows, whose borders are clipped by tables made at compile time.

In: MaxPool, AvgPool, MaxPoolIndices nodes of one to three spatial dimensions.  Out: one task.  With channels last, which
the layout pass prefers, vectors lie across channels; with channels first they lie across windows that are not clipped at the sides.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jumar.base import Array, DType, f32, f64, i64
from jumar.device import Target
from jumar.ir import Node
from jumar.kernel import Builder, Kernel, Value, Variable
from jumar.operators.cpu.expression import compute_dtype, lanes_of, load, masks_are_cheap, store
from jumar.operators.cpu.move import dense
from jumar.operators.cpu.pointwise import PAIR, fetch, split
from jumar.operators.cpu.rows_kernel import neutral
from jumar.operators.pooling import AvgPool, MaxPool, MaxPoolIndices, Pool
from jumar.operators.schedule import Lowered, Packed, Place, Task, TaskArg, schedule

SPATIAL = 3
MOST_CELLS = 9  # of a window without loops
Op = MaxPool | AvgPool | MaxPoolIndices


@dataclass(frozen=True)
class Window:
    """What the code depends on.   how: max or add; counted: sums are divided by a table; places: maxima come with their places.

    dense: with channels first, neighbouring windows begin at neighbouring elements.  whole: with channels last, sizes of small windows of which
    none is clipped: their code has no loops.
    """

    how: str
    dtype: DType
    channels_last: bool
    lanes: int
    masked: bool
    counted: bool
    places: bool
    dense: bool
    whole: tuple[int, ...] = ()


@schedule("cpu", MaxPool, AvgPool, MaxPoolIndices)
def lower_pool(node: Node, target: Target) -> Lowered | None:
    """One task over all results."""
    op, (x,) = node.op, node.inputs
    assert isinstance(op, Op), "registered for pools"
    y_type = node.type[0] if isinstance(node.type, tuple) else node.type
    if len(op.kernel) > SPATIAL or (isinstance(op, AvgPool) and not x.dtype.is_float) or compute_dtype(x.dtype).kind not in "fiu":
        return None
    if y_type.size == 0:
        return Lowered()
    last = not isinstance(op, MaxPoolIndices) and op.channels_last
    n, c = x.shape[0], x.shape[-1] if last else x.shape[1]
    spatial = x.shape[1:-1] if last else x.shape[2:]
    out = op.out(spatial)
    extra = (1,) * (SPATIAL - len(spatial))
    sizes, outs = (*extra, *spatial), (*extra, *out)
    tables = [np.array([[0, 1]])] * len(extra) + [clipped(op, axis, spatial[axis], out[axis]) for axis in range(len(spatial))]
    steps = [0] * len(extra) + list(op.dilations)
    cell = c if last else 1  # elements from one cell of the last spatial dimension to the next
    strides = [s * cell for s in dense(sizes)]
    memory = [x.dtype]
    lanes = lanes_of(memory, target) * (PAIR if last and c >= PAIR * lanes_of(memory, target) else 1)
    masked = lanes > 1 and masks_are_cheap(memory, target)
    counted = isinstance(op, AvgPool)
    cells = (*extra, *op.kernel)
    whole = last and math.prod(cells) <= MOST_CELLS and all((t[:, 1] == size).all() for t, size in zip(tables, cells, strict=True))
    window = Window(
        "add" if counted else "max", x.dtype, last, lanes, masked, counted, isinstance(op, MaxPoolIndices), op.strides[-1] == 1,
        cells if whole else (),
    )  # fmt: skip
    full = np.flatnonzero(tables[-1][:, 1] == op.kernel[-1])  # windows that are whole along the last dimension

    images = n if last else n * c
    rows = images * math.prod(outs[:2])
    taps = math.prod(op.kernel)
    work = y_type.size * taps / lanes * (1 if last or window.dense else 4)
    nbytes = x.type.nbytes + y_type.nbytes
    rows_per_chunk, _, _ = split(rows, 1, work, nbytes, 1)
    args: list[TaskArg] = [Place(x), Place(node), *(Packed(t.astype(np.int64), "window") for t in tables)]
    if counted:
        assert isinstance(op, AvgPool), "means are counted"
        args.append(Packed(op.counts(spatial).astype(compute_dtype(x.dtype).numpy), "counts"))
    if window.places:
        assert isinstance(op, MaxPoolIndices), "places are asked for"
        place_strides = [1, *np.cumprod(spatial[:-1]).tolist()] if op.column_major else list(dense(spatial))
        args += [Place(node, 0, 1), *([0] * len(extra) + [int(s) for s in place_strides]), math.prod(spatial)]
    args += [
        rows,
        rows_per_chunk,
        c if last else 1,
        *outs,
        math.prod(sizes) * cell,
        *strides,
        *(d * s for d, s in zip(steps, strides, strict=True)),
    ]
    if not last and not window.places:
        args += [*((int(full[0]), int(full[-1]) + 1) if len(full) else (0, 0)), op.strides[-1]]
    writes = tuple(i for i, a in enumerate(args) if isinstance(a, Place) and a.node is node)
    args += steps if window.places else []
    task = Task(pool_kernel(window), tuple(args), writes, chunks=-(-rows // rows_per_chunk), nbytes=nbytes, label=op.name)
    return Lowered((task,))


def clipped(op: Pool, axis: int, size: int, out: int) -> Array:
    """[out, 2]: the first cell of each window that lies inside, and how many do."""
    first = np.arange(out) * op.strides[axis] - op.pads_low[axis]
    at = first[:, None] + np.arange(op.kernel[axis]) * op.dilations[axis]
    inside = (at >= 0) & (at < size)
    begin = np.where(inside.any(axis=1), np.take_along_axis(at, inside.argmax(axis=1)[:, None], 1)[:, 0], 0)
    return np.stack([begin, inside.sum(axis=1)], axis=1)


@functools.cache
def pool_kernel(window: Window) -> Kernel:
    """A chunk is some rows of results: [image, first, second spatial dimension]."""
    return _Pool(window).kernel()


@dataclass(frozen=True)
class _Row:
    """A row of results.   source: its windows' first cells; result, cell: number of its first result, and of that in the image."""

    source: Value
    result: Value
    cell: Value
    counts: tuple[Value, ...]
    begins: tuple[Value, ...]
    image: Value


class _Pool:
    """The kernel being written."""

    def __init__(self, window: Window) -> None:
        k = self.k = Builder("pool")
        self.window = window
        self.counters: list[Variable] = []  # position in the window, while a place is looked for
        self.kind = compute_dtype(window.dtype)
        self.x, self.y = k.pointer("x", window.dtype), k.pointer("y", window.dtype)
        self.tables = [k.pointer(f"table{i}", i64) for i in range(SPATIAL)]
        self.counts = k.pointer("counts", self.kind) if window.counted else None
        if window.places:
            self.places = k.pointer("places", i64)
            self.place_strides = [k.integer(f"place_stride{i}") for i in range(SPATIAL)]
            self.place_image = k.integer("place_image")
        self.rows, self.rows_per_chunk, self.cell = k.integer("rows"), k.integer("rows_per_chunk"), k.integer("cell")
        self.outs = [k.integer(f"out{i}") for i in range(SPATIAL)]
        self.image = k.integer("image")
        self.strides = [k.integer(f"stride{i}") for i in range(SPATIAL)]
        self.steps = [k.integer(f"step{i}") for i in range(SPATIAL)]
        self.place_steps = [k.integer(f"place_step{i}") for i in range(SPATIAL)] if window.places else []
        self.across_windows = not (window.channels_last or window.places)
        if self.across_windows:
            self.full_begin, self.full_end, self.stride = k.integer("full_begin"), k.integer("full_end"), k.integer("stride")

    def kernel(self) -> Kernel:
        k = self.k
        first = k.chunk * self.rows_per_chunk
        with k.loop(first, k.minimum(first + self.rows_per_chunk, self.rows)) as row:
            middle, rest = row % self.outs[1], row / self.outs[1]
            front, image = rest % self.outs[0], rest / self.outs[0]
            at = (front, middle)
            begins, counts = zip(*(self.clip(i, at[i]) for i in range(2)), strict=True)
            source = k.offset(self.x, image * self.image + begins[0] * self.strides[0] + begins[1] * self.strides[1])
            place = _Row(source, row * self.outs[2], (front * self.outs[1] + middle) * self.outs[2], counts, begins, image)
            if not self.across_windows:
                self.columns(place, k.index(0), self.outs[2])
            else:
                self.columns(place, k.index(0), self.full_begin)
                self.columns(place, self.whole_windows(place), self.outs[2])
        return k.finish()

    def columns(self, row: _Row, low: Value, high: Value) -> None:
        """The windows of a row, one by one."""
        k = self.k
        with k.loop(low, high) as column:
            begin, count = self.clip(2, column)
            here = k.offset(row.source, begin * self.strides[2])
            result = (row.result + column) * self.cell
            ranges = (*row.counts, count)
            if self.window.places:
                self.place_of_maximum(here, ranges, result, row.image, (*row.begins, begin))
            else:
                self.across(here, ranges, result, row.cell + column)

    def whole_windows(self, row: _Row) -> Value:
        """Vectors across neighbouring windows of one channel, as far as they are not clipped; gives the first column left."""
        k, lanes = self.k, self.window.lanes
        end = self.full_begin + (self.full_end - self.full_begin) / lanes * lanes
        step = None if self.window.dense else self.stride
        with k.loop(self.full_begin, end, lanes) as column:
            begin, count = self.clip(2, column)
            total = k.var(k.const(neutral(self.window.how, self.kind), self.kind, lanes))
            with _Taps(self, k.offset(row.source, begin), (*row.counts, count)) as source:
                total.set(k.binary(self.window.how, total.get(), fetch(k, source, k.index(0), step, lanes, None)))
            value = total.get()
            if self.counts is not None:
                value = value / k.load(self.counts, row.cell + column, lanes)
            store(k, value, self.y, row.result + column)
        return end

    def clip(self, axis: int, at: Value) -> tuple[Value, Value]:
        """(first cell inside, how many) of a window."""
        k = self.k
        return k.load(self.tables[axis], at * 2), k.load(self.tables[axis], at * 2 + 1)

    def across(self, here: Value, ranges: Sequence[Value], result: Value, cell: Value) -> None:
        """The window for all channels."""
        k, lanes = self.k, self.window.lanes
        divisor = None if self.counts is None else k.load(self.counts, cell)
        if self.across_windows:
            self.window_of(here, ranges, result, k.index(0), 1, None, divisor)
            return
        rest = k.index(0)
        if lanes > 1:
            rest = self.cell / lanes * lanes
            with k.loop(0, rest, lanes) as c:
                self.window_of(here, ranges, result, c, lanes, None, divisor)
        if self.window.masked:
            with k.loop(rest, self.cell, lanes) as c:
                self.window_of(here, ranges, result, c, lanes, k.lane_mask(self.cell - c, lanes), divisor)
            return
        with k.loop(rest, self.cell) as c:
            self.window_of(here, ranges, result, c, 1, None, divisor)

    def window_of(
        self, here: Value, ranges: Sequence[Value], result: Value, c: Value, lanes: int, mask: Value | None, divisor: Value | None
    ) -> None:
        k, how = self.k, self.window.how
        if self.window.whole:
            places = itertools.product(*(range(size) for size in self.window.whole))
            cells = [sum((step * i for step, i in zip(self.steps, place, strict=True)), c) for place in places]
            value = functools.reduce(lambda a, b: k.binary(how, a, b), [load(k, here, cell, lanes, mask) for cell in cells])
        else:
            total = k.var(k.const(neutral(how, self.kind), self.kind, lanes))
            with _Taps(self, here, ranges) as source:
                total.set(k.binary(how, total.get(), load(k, source, c, lanes, mask)))
            value = total.get()
        store(k, value if divisor is None else value / k.splat(divisor, lanes), self.y, result + c, mask)

    def place_of_maximum(self, here: Value, ranges: Sequence[Value], result: Value, image: Value, begins: Sequence[Value]) -> None:
        """The largest element and the first place where it stands; NaN is the largest, as for NumPy's argmax."""
        k = self.k
        best, where = k.var(k.const(neutral("max", self.kind), self.kind)), k.var(-1)
        with _Taps(self, here, ranges) as source:
            value = load(k, source, 0)
            taps = [v.get() for v in self.counters]
            place = image * self.place_image
            for begin, tap, step, stride in zip(begins, taps, self.place_steps, self.place_strides, strict=True):
                place = place + (begin + tap * step) * stride
            larger = (value > best.get()) | (where.get() < 0)
            if self.kind in (f32, f64):
                larger = larger | (k.is_nan(value) & (best.get() == best.get()))
            with k.when(larger):
                best.set(value)
                where.set(place)
        store(k, best.get(), self.y, result)
        k.store(where.get(), self.places, result)


class _Taps:
    """`with` runs the block for each cell of a window; gives the pointer to it."""

    def __init__(self, pool: _Pool, here: Value, ranges: Sequence[Value]) -> None:
        self.pool, self.here, self.ranges = pool, here, ranges

    def __enter__(self) -> Value:
        k = self.pool.k
        source = self.here
        self.loops = []
        self.pool.counters = []
        for count, step in zip(self.ranges, self.pool.steps, strict=True):
            loop = k.loop(0, count)
            at = loop.__enter__()
            self.loops.append(loop)
            if self.pool.window.places:
                self.pool.counters.append(k.var(at))
            source = k.offset(source, at * step)
        return source

    def __exit__(self, *exception: object) -> None:
        for loop in reversed(self.loops):
            loop.__exit__(None, None, None)
