"""Code of nests with reduced axes: softmax, layer norm, sums; every pass of `phases.py` over a row while it is in the cache.

In: an expression and `Rows`, what its code depends on.  Out: a kernel; `rows.py` fills its args.

In row mode the vectors lie along the innermost reduced axis: a row has one value of each reduction, found by folding lanes at the end.
In column mode they lie across the innermost kept axis: each lane is a row of its own, and nothing is folded.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from jumar.base import DType, bool_, f32, i32, u8
from jumar.kernel import Builder, Kernel, Value, Variable, math
from jumar.operators.cpu.expression import Accumulate, Expression, Position, Step, compute_dtype, emit_step, load
from jumar.operators.cpu.phases import Phases
from jumar.operators.cpu.pointwise import fetch, put, rows_of
from jumar.operators.elementwise import Div, Exp, Sub

BLOCK = 2048  # elements summed into one register before it is added to the total: keeps the error of long sums small
MAX_UNROLL = 2


def unroll_of(cost: float) -> int:
    """Vectors (of two registers) in one turn of a loop: short bodies wait for their accumulators."""
    return MAX_UNROLL if cost <= 6 else 1


@dataclass(frozen=True)
class Rows:
    """What the code depends on beside the expression.   outer: kept axes counted as rows; loops: reduced axes; columns: the mode.

    element: which inputs differ along the reduced axes; inner: how each pointer moves along the vectors (0, 1, or 2: with a stride);
    pieces: the first reduced axis is cut over chunks, each of which writes a partial result (and its own elements); blocked: sums go through blocks.
    """

    outer: int
    loops: int
    columns: bool
    element: tuple[bool, ...]
    inner: tuple[int, ...]
    lanes: int
    unroll: int
    masked: bool
    pieces: bool
    blocked: bool


@functools.cache
def rows_kernel(expression: Expression, results: tuple[DType, ...], walk: Rows) -> Kernel:
    """args: pointers of inputs and results, [offset of each stash in scratch], sizes of the reduced axes, [inner size, part, parts],
    [piece, pieces, elements between partial results], [rows, rows of a chunk, sizes of outer axes but the first, strides along them],
    strides along reduced axes (in row mode not the last), strides along the vectors that are not 0 or 1;
    then the scratch."""
    return _Rows(expression, results, walk).kernel()


Lane = tuple[int, Value | None]  # lanes, mask


class _Rows:
    """The kernel being written.   row_values: values of the row by number, one for each vector across (row mode has one)."""

    def __init__(self, expression: Expression, results: tuple[DType, ...], walk: Rows) -> None:
        k = self.k = Builder("rows")
        self.expression, self.walk = expression, walk
        self.phases = Phases(expression, walk.element)
        self.inputs = [k.pointer(f"x{i}", d) for i, d in enumerate(expression.inputs)]
        self.results = [k.pointer(f"y{i}", d) for i, d in enumerate(results)]
        stash_offsets = [k.integer(f"stash{i}") for i in range(len(self.phases.stashed))]
        self.sizes = [k.integer(f"reduced{i}") for i in range(walk.loops)]
        self.bounds = [(k.index(0), size) for size in self.sizes]
        pointers = len(self.inputs) + len(self.results)
        if walk.columns:
            self.inner, self.part, self.parts = k.integer("inner"), k.integer("part"), k.integer("parts")
        if walk.pieces:
            self.piece, self.pieces, self.partial = k.integer("piece"), k.integer("pieces"), k.integer("partial")
        if walk.outer:
            self.rows, self.rows_per_chunk = k.integer("rows"), k.integer("rows_per_chunk")
            self.outer_sizes = [k.integer(f"size{a}") for a in range(1, walk.outer)]
            self.outer_strides = [[k.integer(f"outer{i}_{a}") for a in range(walk.outer)] for i in range(pointers)]
        loops = walk.loops if walk.columns else walk.loops - 1
        self.strides = [[k.integer(f"stride{i}_{a}") for a in range(loops)] for i in range(pointers)]
        self.steps = [k.integer(f"step{i}") if kind == 2 else None for i, kind in enumerate(walk.inner)]
        self.stashes: dict[int, Value] = {}
        if stash_offsets:
            scratch = k.thread_scratch("scratch", 0, u8)
            for n, offset in zip(self.phases.stashed, stash_offsets, strict=True):
                self.stashes[n] = k.cast_pointer(k.offset(scratch, offset), compute_dtype(expression.dtype(n)))

    # ------------------------------------------------------------------ which rows
    def kernel(self) -> Kernel:
        k, walk = self.k, self.walk
        chunk = k.chunk
        if walk.pieces:
            at = chunk % self.pieces
            chunk = chunk / self.pieces
            low = at * self.piece
            self.bounds[0] = (low, k.minimum(low + self.piece, self.sizes[0]))
            outputs = zip(self.results, self.expression.outputs, strict=True)
            self.results = [y if self.phases.element(n) else k.offset(y, at * self.partial) for y, n in outputs]
        begin, end = k.index(0), k.index(0)
        if walk.columns:
            begin = (chunk % self.parts) * self.part
            end = k.minimum(begin + self.part, self.inner)
            chunk = chunk / self.parts
        pointers = [*self.inputs, *self.results]
        if not walk.outer:
            self.across(pointers, begin, end)
            return k.finish()
        first = chunk * self.rows_per_chunk
        last = k.minimum(first + self.rows_per_chunk, self.rows)
        with rows_of(k, first, last, self.outer_sizes, self.outer_strides) as offsets:
            self.across([k.offset(p, o.get()) for p, o in zip(pointers, offsets, strict=True)], begin, end)
        return k.finish()

    def across(self, pointers: list[Value], begin: Value, end: Value) -> None:
        """One row, or a strip of columns from `begin` to `end` in vectors, then what is left of it."""
        k, walk = self.k, self.walk
        if not walk.columns:
            self.row(pointers, None, walk.unroll, (walk.lanes, None))
            return
        width = walk.lanes * walk.unroll
        rest = begin
        if width > 1:
            rest = begin + (end - begin) / width * width
            with k.loop(begin, rest, width) as at:
                self.row(pointers, at, walk.unroll, (walk.lanes, None))
        if walk.masked:
            with k.loop(rest, end, walk.lanes) as at:
                self.row(pointers, at, 1, (walk.lanes, k.lane_mask(end - at, walk.lanes)))
            return
        if walk.unroll > 1 and walk.lanes > 1:
            whole = rest + (end - rest) / walk.lanes * walk.lanes
            with k.loop(rest, whole, walk.lanes) as at:
                self.row(pointers, at, 1, (walk.lanes, None))
            rest = whole
        with k.loop(rest, end) as at:
            self.row(pointers, at, 1, (1, None))

    # ------------------------------------------------------------------ one row
    def row(self, pointers: list[Value], column: Value | None, unroll: int, lane: Lane) -> None:
        """All passes over a row (or over `unroll` vectors of columns)."""
        state = _Row(self, pointers, column, unroll if column is not None else 1, lane)
        for number in range(self.phases.count):
            state.settle(number)
            state.run_pass(number)
        state.settle(self.phases.count)
        state.store_row()


class _Row:
    """One row being written: values known of it, and the accumulators of the pass."""

    def __init__(self, rows: _Rows, pointers: list[Value], column: Value | None, across: int, lane: Lane) -> None:
        self.rows, self.k, self.walk, self.phases, self.expression = rows, rows.k, rows.walk, rows.phases, rows.expression
        self.pointers, self.column, self.across = pointers, column, across
        self.lanes, self.mask = lane
        self.known: dict[int, list[Value]] = {}
        self.reciprocals: dict[int, list[Value]] = {}

    def settle(self, number: int) -> None:
        """Computes what is known of the row before pass `number`: code outside of the loops."""
        for n in range(len(self.expression.inputs) + len(self.expression.steps)):
            if n in self.known or self.phases.element(n) or self.phases.phase(n) > number:
                continue
            step = self.expression.step(n)
            if step is None:
                self.known[n] = [self.row_input(n, u) for u in range(self.across)]
            elif not isinstance(step.op, Accumulate):
                self.known[n] = [emit_step(self.k, step, [self.known[a][u] for a in step.args]) for u in range(self.across)]
        for step in self.expression.steps:
            divisor = self.row_divisor(step)
            if divisor in self.known and divisor not in self.reciprocals:
                self.reciprocals[divisor] = [1.0 / v for v in self.known[divisor]]

    def is_below_maximum(self, step: Step) -> bool:
        """The exponential of what a row's maximum was subtracted from: never above 0."""
        if not isinstance(step.op, Exp) or compute_dtype(step.dtype) is not f32:
            return False
        below = self.expression.step(step.args[0])
        if below is None or not isinstance(below.op, Sub):
            return False
        top = self.expression.step(below.args[1])
        return top is not None and top.op == Accumulate("max") and top.args[0] == below.args[0]

    def row_divisor(self, step: Step) -> int:
        """The divisor of a division of elements by a value of the row, which becomes a multiplication; -1 for other steps.

        A division takes five times as long; the result may differ in the last bit.
        """
        if isinstance(step.op, Div) and step.dtype.is_float and self.phases.element(step.args[0]) and not self.phases.element(step.args[1]):
            return step.args[1]
        return -1

    def row_input(self, n: int, u: int) -> Value:
        """An input that is the same all along the row."""
        if self.column is None or self.walk.inner[n] == 0:
            return load(self.k, self.pointers[n], 0)
        return fetch(self.k, self.pointers[n], self.column + u * self.lanes, self.rows.steps[n], self.lanes, self.mask)

    def store_row(self) -> None:
        """Writes the results that are one for each row."""
        for i, n in enumerate(self.expression.outputs):
            pointer = self.pointers[len(self.expression.inputs) + i]
            if self.phases.element(n):
                continue
            if self.column is None:
                put(self.k, self.known[n][0], pointer, self.k.index(0), None, None)
                continue
            step = self.rows.steps[len(self.expression.inputs) + i]
            for u in range(self.across):
                put(self.k, self.k.splat(self.known[n][u], self.lanes), pointer, self.column + u * self.lanes, step, self.mask)

    # ------------------------------------------------------------------ a pass
    def run_pass(self, number: int) -> None:
        k, walk = self.k, self.walk
        found = self.phases.accumulated_in(number)
        unroll = self.across if walk.columns else min(walk.unroll, unroll_of(self.phases.pass_cost(number)))
        vectors = {n: self.fresh(n, unroll, self.lanes) for n in found}
        scalars = {} if walk.columns or walk.masked or self.lanes == 1 else {n: self.fresh(n, 1, 1) for n in found}

        def nest(level: int, pointers: list[Value], counter: Value) -> None:
            low, high = self.rows.bounds[level]
            if level == walk.loops - 1:
                self.innermost(number, pointers, counter * self.rows.sizes[level], low, high, vectors, scalars)
                return
            with k.loop(low, high) as at:
                strides = (s[level] for s in self.rows.strides)
                moved = [k.offset(p, at * s) for p, s in zip(pointers, strides, strict=True)]
                nest(level + 1, moved, counter * self.rows.sizes[level] + at)

        nest(0, self.pointers, k.index(0))
        for n in found:
            values = [v.get() for v in vectors[n]]
            if not walk.columns:
                how = self.how(n)
                while len(values) > 1:
                    half = len(values) // 2
                    values = [k.binary(how, a, b) for a, b in zip(values[:half], values[half:], strict=True)]
                values = [k.reduce(values[0], how)]
                if scalars:
                    values = [k.binary(how, values[0], scalars[n][0].get())]
            dtype = compute_dtype(self.expression.dtype(n))
            self.known[n] = [k.convert(v, dtype) for v in values]

    def how(self, n: int) -> str:
        step = self.expression.step(n)
        assert step is not None and isinstance(step.op, Accumulate), "an accumulator is a step"
        if self.expression.dtype(step.args[0]) is bool_:
            return {"max": "or", "min": "and", "mul": "and", "add": "or"}.get(step.op.how, step.op.how)
        return step.op.how

    def fresh(self, n: int, count: int, lanes: int) -> list[Variable]:
        """Accumulators that hold nothing yet."""
        dtype = compute_dtype(self.expression.dtype(self.phases.arg(n)))
        return [self.k.var(self.k.const(neutral(self.how(n), dtype), dtype, lanes)) for _ in range(count)]

    def innermost(
        self, number: int, pointers: list[Value], counter: Value, low: Value, high: Value,
        vectors: dict[int, list[Variable]], scalars: dict[int, list[Variable]],
    ) -> None:  # fmt: skip
        """The last reduced axis, in blocks where long sums ask for it."""
        k = self.k
        loop = self.down if self.walk.columns else self.along
        summed = [n for n in vectors if self.how(n) == "add"]
        if not (self.walk.blocked and summed):
            loop(number, pointers, counter, low, high, vectors, scalars)
            return
        with k.loop(low, high, BLOCK) as begin:
            inner = vectors | {n: self.fresh(n, len(vectors[n]), vectors[n][0].get().lanes) for n in summed}
            tail = scalars | {n: self.fresh(n, 1, 1) for n in summed if n in scalars}
            loop(number, pointers, counter, begin, k.minimum(begin + BLOCK, high), inner, tail)
            for total, part in ((vectors, inner), (scalars, tail)):
                for n in summed:
                    for a, b in zip(total.get(n, ()), part.get(n, ()), strict=True):
                        a.set(a.get() + b.get())

    def along(
        self, number: int, pointers: list[Value], counter: Value, low: Value, high: Value,
        vectors: dict[int, list[Variable]], scalars: dict[int, list[Variable]],
    ) -> None:  # fmt: skip
        """Row mode: vectors from `low` to `high`, then the rest under a mask or one by one."""
        k, lanes = self.k, self.lanes
        unroll = len(next(iter(vectors.values()))) if vectors else unroll_of(self.phases.pass_cost(number))
        unroll = min(unroll, self.walk.unroll)
        width = lanes * unroll
        rest = low
        if width > 1:
            rest = low + (high - low) / width * width
            with k.loop(low, rest, width) as at:
                for u in range(unroll):
                    self.element(number, pointers, counter, at + u * lanes, 0, (lanes, None), {n: v[u] for n, v in vectors.items()})
        if self.walk.masked and lanes > 1:
            with k.loop(rest, high, lanes) as at:
                mask = k.lane_mask(high - at, lanes)
                self.element(number, pointers, counter, at, 0, (lanes, mask), {n: v[0] for n, v in vectors.items()})
            return
        tail = scalars or vectors
        with k.loop(rest, high) as at:
            self.element(number, pointers, counter, at, 0, (1, None), {n: v[0] for n, v in tail.items()})

    def down(
        self, number: int, pointers: list[Value], counter: Value, low: Value, high: Value,
        vectors: dict[int, list[Variable]], _scalars: dict[int, list[Variable]],
    ) -> None:  # fmt: skip
        """Column mode: row after row, all vectors of the strip."""
        k = self.k
        assert self.column is not None, "column mode has a column"
        strides = [s[-1] for s in self.rows.strides]
        with k.loop(low, high) as at:
            moved = [k.offset(p, at * s) for p, s in zip(pointers, strides, strict=True)]
            for u in range(self.across):
                place = self.column + u * self.lanes
                here = (counter + at) * self.across + u
                self.element(number, moved, here, place, u, (self.lanes, self.mask), {n: v[u] for n, v in vectors.items()}, counter + at)

    # ------------------------------------------------------------------ one vector of elements
    def element(
        self, number: int, pointers: list[Value], counter: Value, at: Value, u: int, lane: Lane, into: dict[int, Variable],
        row: Value | None = None,
    ) -> None:  # fmt: skip
        """Computes, accumulates, stashes and stores one vector.   counter: of the row's elements before; row: column mode's position."""
        k = self.k
        lanes, mask = lane
        values: dict[int, Value] = {}
        stash_at = counter * self.lanes if self.walk.columns else counter + at

        def value(n: int) -> Value:
            if n not in values:
                values[n] = make(n)
            return values[n]

        def make(n: int) -> Value:
            if not self.phases.element(n):
                return self.known[n][u]
            step = self.expression.step(n)
            if step is None:
                if self.walk.inner[n] == 0:
                    return load(k, pointers[n], 0)
                return fetch(k, pointers[n], at, self.rows.steps[n], lanes, mask)
            if n in self.rows.stashes and self.phases.phase(n) < number:
                return k.load(self.rows.stashes[n], stash_at, lanes)
            if isinstance(step.op, Position):
                if row is not None:
                    return k.splat(k.convert(row, i32), lanes)
                return k.splat(k.convert(counter + at, i32), lanes) + k.iota(lanes, i32) if lanes > 1 else k.convert(counter + at, i32)
            if self.is_below_maximum(step):
                return math.exp_below(k, value(step.args[0]))
            if self.row_divisor(step) in self.reciprocals:
                return value(step.args[0]) * self.reciprocals[step.args[1]][u]
            return emit_step(k, step, [value(a) for a in step.args])

        for n, accumulator in into.items():
            found = k.splat(value(self.phases.arg(n)), lanes)
            before = accumulator.get()
            how = self.how(n)
            if mask is not None and not self.walk.columns:
                found = k.select(mask, found, k.const(neutral(how, found.dtype), found.dtype, lanes))
            accumulator.set(k.binary(how, before, found))
        # all results are computed before the first is stored: one of them may lie where an operand of another lies
        results = [(len(self.expression.inputs) + i, value(self.expression.outputs[i])) for i in self.phases.stored_in(number)]
        for pointer, result in results:
            put(k, k.splat(result, lanes), pointers[pointer], at, self.rows.steps[pointer], mask)
        for n in self.rows.stashes:
            if n in values and self.phases.phase(n) == number:
                k.store(k.splat(values[n], lanes), self.rows.stashes[n], stash_at)


def neutral(how: str, dtype: DType) -> float | int | bool:
    """What changes nothing when it is accumulated."""
    if dtype is bool_:
        return how == "and"
    least: float | int
    greatest: float | int
    if dtype.is_float:
        zero, one, least, greatest = 0.0, 1.0, float("-inf"), float("inf")
    else:
        limits = np.iinfo(dtype.numpy)
        zero, one, least, greatest = 0, 1, int(limits.min), int(limits.max)
    return {"add": zero, "mul": one, "max": least, "min": greatest, "or": zero, "and": -1}[how]
