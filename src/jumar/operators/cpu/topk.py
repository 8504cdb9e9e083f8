"""The k largest or smallest along an axis.

In: TopK nodes.  Out: one task; a chunk is some rows.  Elements are compared as integers of the same order (NaN above all, -0 as 0;
turned around where the smallest are wanted), so that one comparison serves every type.

Few: a list of the best so far, in order, in scratch.  A vector of elements none of which beats the last of the list is passed by; what
beats it is put in its place, the rest of the list moves on by one, in vectors.  Elements come in order of their places, so of equal ones
the first stays first.  Many: the whole row is merge-sorted, which keeps the order of equal ones too.
"""

from __future__ import annotations

import functools
import math

from jumar.base import NATIVE, DType, bf16, f16, f32, f64, i32, i64, u32, u64
from jumar.device import Target
from jumar.ir import Node
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.cpu.expression import lanes_of
from jumar.operators.cpu.pointwise import fetch, split
from jumar.operators.families import normal_axis
from jumar.operators.schedule import Lowered, Place, Task, schedule
from jumar.operators.sort import TopK

FEW = 256  # longest list: data that rise make a move of the whole list for every element


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
    levels = max(1, (n - 1).bit_length())
    listed = 1.5 * op.k * (1 + math.log(n / op.k)) * (6 + op.k / lanes) + 2 * n / lanes
    few = op.k <= FEW and listed < 6 * n * levels
    kernel = top_k_kernel(x.dtype, op.largest, few, inner == 1, lanes)
    rows_per_chunk, _, _ = split(rows, 1, rows * (listed if few else 6 * n * levels), x.type.nbytes, 1)
    room = -(-op.k // lanes) * lanes + lanes if few else 2 * (n + 1)  # the list after a vector of what is never beaten
    args = (Place(x), Place(node), Place(node, 0, 1), rows, rows_per_chunk, n, inner, op.k, levels, room)
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
        self.rows, self.rows_per_chunk, self.n, self.inner, self.count, self.levels, self.room = (
            k.integer(name) for name in ("rows", "rows_per_chunk", "n", "inner", "k", "levels", "room")
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
            found = self.list_of(x) if self.few else self.sorted(x)
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

        def offer(key: Value, at: Value) -> None:
            with k.when(key > worst.get()):
                self.insert(key, at, self.count)
                worst.set(k.load(self.keys, self.count + (lanes - 1)))

        whole = self.count + (self.n - self.count) / lanes * lanes
        if lanes > 1:
            with k.loop(self.count, whole, lanes) as at:
                keys = self.key(x, at, lanes)
                with k.when(k.reduce(keys > k.splat(worst.get(), lanes), "or")):
                    for lane in range(lanes):
                        offer(k.extract(keys, lane), at + lane)
        with k.loop(whole if lanes > 1 else self.count, self.n) as at:
            offer(self.key(x, at, 1), at)
        return k.offset(self.places, lanes)

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
    def sorted(self, x: Value) -> Value:
        """All places, in order: runs of one, two, four ... are merged, from one half of scratch to the other."""
        k, half = self.k, self.n + 1
        with k.loop(0, self.n) as at:
            k.store(self.key(x, at, 1), self.keys, at)
            k.store(k.convert(at, self.kind), self.places, at)
        with k.loop(0, self.levels) as level:
            width = k.index(1) << level
            source, target = (level & 1) * half, (1 - (level & 1)) * half
            with k.loop(0, self.n, width * 2) as start:
                middle, end = k.minimum(start + width, self.n), k.minimum(start + width * 2, self.n)
                a, b = k.var(start), k.var(middle)
                with k.loop(start, end) as to:
                    i, j = a.get(), b.get()
                    # beyond the end of a run there is memory, and what is read there does not count
                    left, right = k.load(self.keys, source + i), k.load(self.keys, source + j)
                    first = (j >= end) | ((i < middle) & (left >= right))
                    k.store(k.select(first, left, right), self.keys, target + to)
                    k.store(k.load(self.places, source + k.select(first, i, j)), self.places, target + to)
                    a.set(k.select(first, i + 1, i))
                    b.set(k.select(first, j, j + 1))
        return k.offset(self.places, (self.levels & 1) * half)
