"""The k largest or smallest along an axis.

In: TopK nodes.  Out: one task; a chunk is some rows.  Elements are compared as integers of the same order (NaN above all, -0 as 0;
turned around where the smallest are wanted), so that one comparison serves every type.

Both ways pass by a vector of elements none of which beats the k-th best so far.  Few: what beats it is put in its place in a list in
scratch, the rest of the list moves on by one, in vectors.  Many: it is appended to a heap of candidates, and when that has 2 k the
candidates are merge-sorted and the best k stay.  Elements come in order of their places and both ways keep the order of equal ones, so of
those the first comes first.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from jumar.base import NATIVE, DType, bf16, bool_, f16, f32, f64, i32, i64, u32, u64
from jumar.device import Target
from jumar.ir import Node
from jumar.kernel import Builder, Kernel, Value, Variable
from jumar.operators.cpu.expression import lanes_of
from jumar.operators.cpu.pointwise import fetch, split
from jumar.operators.families import normal_axis
from jumar.operators.schedule import Lowered, Place, Task, schedule
from jumar.operators.sort import TopK

FEW = 160  # longest list: at 100 it takes half the time of candidates, at 300 about the same, and data that rise move all of it each time
LEAST = 64  # candidates at least


@schedule("cpu", TopK)
def lower_top_k(node: Node, target: Target) -> Lowered | None:
    """One task over rows, each along the axis."""
    op, (x,) = node.op, node.inputs
    assert isinstance(op, TopK), "registered for TopK"
    axis = normal_axis(op.name, op.axis, x.rank)
    if x.dtype not in NATIVE or x.shape[axis] >= 1 << 31:
        return None
    outer, n, inner = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    rows = outer * inner
    if rows * op.k == 0:
        return Lowered()
    key = i64 if x.dtype.bits == 64 else i32
    lanes = max(1, min(lanes_of([key], target), lanes_of([x.dtype], target)))
    few, candidates = op.k <= FEW, min(n, max(2 * op.k, LEAST))
    kernel = top_k_kernel(x.dtype, op.largest, few, inner == 1, lanes)
    kept = op.k * (1 + math.log(n / op.k))  # elements that beat the k-th best before them, where order is random
    work = 2 * n / lanes + kept * (6 + op.k / lanes if few else 12 * candidates.bit_length())
    rows_per_chunk, _, _ = split(rows, 1, rows * work, x.type.nbytes, 1)
    room = -(-op.k // lanes) * lanes + lanes if few else 2 * (candidates + 2)  # the list after a vector of what is never beaten
    args = (Place(x), Place(node), Place(node, 0, 1), rows, rows_per_chunk, n, inner, op.k, candidates, room)
    nbytes = x.type.nbytes + rows * op.k * (x.dtype.nbytes + 8)
    scratch = 2 * room * key.nbytes
    return Lowered((Task(kernel, args, (1, 2), -(-rows // rows_per_chunk), scratch_nbytes=scratch, nbytes=nbytes, label=op.name),))


@functools.cache
def top_k_kernel(dtype: DType, largest: bool, few: bool, dense: bool, lanes: int) -> Kernel:
    """[outer, n, inner]; a chunk is some of outer x inner.   dense: inner is 1."""
    return _TopK(dtype, largest, few, dense, lanes).kernel()


class _TopK:
    """The kernel being written.   keys, places: in scratch, `room` elements each."""

    def __init__(self, dtype: DType, largest: bool, few: bool, dense: bool, lanes: int) -> None:
        k = self.k = Builder(f"top_k_{dtype}")
        self.largest, self.few, self.lanes = largest, few, lanes
        self.kind = i64 if dtype.bits == 64 else i32
        self.x, self.y, self.place = k.pointer("x", dtype), k.pointer("y", dtype), k.pointer("place", i64)
        self.rows, self.rows_per_chunk, self.n, self.inner, self.count, self.candidates, self.room = (
            k.integer(name) for name in ("rows", "rows_per_chunk", "n", "inner", "k", "candidates", "room")
        )
        self.step = None if dense else self.inner
        self.keys = k.thread_scratch("scratch", 0, self.kind)
        self.places = k.offset(self.keys, self.room)

    def kernel(self) -> Kernel:
        k = self.k
        first = k.chunk * self.rows_per_chunk
        with k.loop(first, k.minimum(first + self.rows_per_chunk, self.rows)) as row:
            outer, inner = (row, k.index(0)) if self.step is None else (row / self.inner, row % self.inner)
            x = k.offset(self.x, outer * self.n * self.inner + inner)
            found = self.list_of(x) if self.few else self.sorted_of(x)
            target = outer * self.count * self.inner + inner
            with k.loop(0, self.count) as i:
                at = k.convert(k.load(found, i), i64)
                to = target + i * self.inner
                k.store(k.load(x, at * self.inner), self.y, to)
                k.store(at, self.place, to)
        return k.finish()

    def key(self, x: Value, at: Value, lanes: int) -> Value:
        """Elements from `at` as integers of which a larger one is better."""
        k = self.k
        value = fetch(k, x, at, self.step, lanes, None)
        if value.dtype in (f16, bf16):
            value = k.convert(value, f32)
        if value.dtype in (f32, f64):
            bits = k.bitcast(value + 0.0, self.kind)  # -0 + 0 is 0
            most = (1 << (self.kind.bits - 1)) - 1
            key = k.select(k.is_nan(value), most, bits ^ ((bits >> (self.kind.bits - 1)) & most))
        elif value.dtype in (u32, u64):
            key = k.bitcast(value, self.kind) ^ k.const(-1 << (self.kind.bits - 1), self.kind, lanes)
        else:
            key = k.convert(value, self.kind)
        return key if self.largest else ~key

    # ------------------------------------------------------------------ few
    def list_of(self, x: Value) -> Value:
        """The places of the best, in order."""
        k, lanes = self.k, self.lanes
        most = (1 << (self.kind.bits - 1)) - 1
        k.store(k.const(most, self.kind, lanes), self.keys)
        # the first k elements have a place in the list, however small they are
        with k.loop(0, self.count) as at:
            key = self.key(x, at, 1)
            k.store(key, self.keys, at + lanes)
            k.store(k.convert(at, self.kind), self.places, at + lanes)
            self.insert(key, at, at + 1)
        worst = k.var(k.load(self.keys, self.count + (lanes - 1)))

        def take(key: Value, at: Value) -> None:
            self.insert(key, at, self.count)
            worst.set(k.load(self.keys, self.count + (lanes - 1)))

        self.better(x, self.count, worst, take)
        return k.offset(self.places, lanes)

    def better(self, x: Value, start: Value, worst: Variable, take: Callable[[Value, Value], None]) -> None:
        """take(key, place) for the elements from `start` that beat `worst`, which may change as they are taken."""
        k, lanes = self.k, self.lanes

        def one(at: Value) -> None:
            key = self.key(x, at, 1)
            with k.when(key > worst.get()):
                take(key, at)

        # what is left after whole vectors comes as a last turn of the same loop, so that the code of `take` is there once
        with k.loop(start, self.n, lanes) as at:
            end = k.minimum(at + lanes, self.n)
            any_better = k.var(k.const(True, bool_))
            with k.when(end == at + lanes):
                any_better.set(k.reduce(self.key(x, at, lanes) > k.splat(worst.get(), lanes), "or"))
            with k.when(any_better.get()), k.loop(at, end) as i:
                one(i)

    def insert(self, key: Value, at: Value, length: Value) -> None:
        """Puts an element into the list's first `length`: what it beats moves on by one, from the end."""
        k, lanes = self.k, self.lanes
        key, place = k.splat(key, lanes), k.splat(k.convert(at, self.kind), lanes)
        blocks = (length + (lanes - 1)) / lanes
        with k.loop(0, blocks) as i:
            here = (blocks - i) * lanes
            mine, before = k.load(self.keys, here, lanes), k.load(self.keys, here - 1, lanes)
            own, left = k.load(self.places, here, lanes), k.load(self.places, here - 1, lanes)
            moves, beats = before < key, mine < key
            k.store(k.select(moves, before, k.select(beats, key, mine)), self.keys, here)
            k.store(k.select(moves, left, k.select(beats, place, own)), self.places, here)

    # ------------------------------------------------------------------ many
    def sorted_of(self, x: Value) -> Value:
        """The places of the best, in order: candidates are gathered and sorted until all elements are seen."""
        k = self.k
        with k.loop(0, self.candidates) as at:
            self.append(self.key(x, at, 1), at, at)
        self.sort(self.candidates)
        held = k.var(self.count)
        worst = k.var(k.load(self.keys, self.count))

        def take(key: Value, at: Value) -> None:
            self.append(key, at, held.get())
            held.set(held.get() + 1)
            with k.when(held.get() == self.candidates):
                self.sort(self.candidates)
                held.set(self.count)
                worst.set(k.load(self.keys, self.count))

        self.better(x, self.candidates, worst, take)
        with k.when(held.get() > self.count):
            self.sort(held.get())
        return k.offset(self.places, 1)

    def append(self, key: Value, at: Value, number: Value) -> None:
        """Candidates begin at 1: a merge looks at what lies before and after a run."""
        self.k.store(key, self.keys, number + 1)
        self.k.store(self.k.convert(at, self.kind), self.places, number + 1)

    def sort(self, count: Value) -> None:
        """The first `count` candidates in order: runs of one, two, four ... are merged to the other half of scratch and back."""
        k, half = self.k, self.candidates + 2
        width = k.var(1)
        with k.loop(0, 64, 2), k.when(width.get() < count):
            for source, target in ((k.index(1), half + 1), (half + 1, k.index(1))):
                with k.loop(0, count, width.get() * 2) as start:
                    self.merge(source, target, start, k.minimum(start + width.get(), count), k.minimum(start + width.get() * 2, count))
                width.set(width.get() * 2)

    def merge(self, source: Value, target: Value, start: Value, middle: Value, end: Value) -> None:
        """Two runs into one, from both ends at once: two chains of loads and comparisons that do not wait for each other.

        Beyond the end of a run there is memory, and what is read there does not count.
        """
        k = self.k
        keys, places = k.offset(self.keys, source), k.offset(self.places, source)
        to_keys, to_places = k.offset(self.keys, target), k.offset(self.places, target)
        a, b, c, d = k.var(start), k.var(middle), k.var(middle - 1), k.var(end - 1)

        def put(left: Value, right: Value, first: Value, i: Value, j: Value, to: Value) -> None:
            k.store(k.select(first, left, right), to_keys, to)
            k.store(k.load(places, k.select(first, i, j)), to_places, to)

        with k.loop(0, (end - start + 1) / 2) as n:
            i, j = a.get(), b.get()
            left, right = k.load(keys, i), k.load(keys, j)
            first = (j >= end) | ((i < middle) & (left >= right))
            put(left, right, first, i, j, start + n)
            a.set(k.select(first, i + 1, i))
            b.set(k.select(first, j, j + 1))
            i, j = c.get(), d.get()
            left, right = k.load(keys, i), k.load(keys, j)
            last = (j < middle) | ((i >= start) & (left < right))
            put(left, right, last, i, j, end - 1 - n)  # in the middle of an odd number both ends write the same
            c.set(k.select(last, i - 1, i))
            d.set(k.select(last, j, j - 1))
