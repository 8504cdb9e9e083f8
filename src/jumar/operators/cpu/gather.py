"""Gathers: rows or elements whose places stand in a tensor of indices.

In: Gather, GatherNd, GatherElements nodes.  Out: one task each.  Elements move as integers of their width.  A negative index counts
from the end; one that is out of range reads the nearest element instead of foreign memory, and ends the run with an error.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from jumar.base import DType, i64
from jumar.device import Target
from jumar.ir import Node
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.cpu.indexed import copy_run
from jumar.operators.cpu.move import WIDTHS, dense, movable
from jumar.operators.cpu.pointwise import rows_of, split
from jumar.operators.families import normal_axis
from jumar.operators.movement import Gather, GatherElements, GatherNd
from jumar.operators.schedule import Lowered, Place, Task, TaskArg, schedule


@schedule("cpu", Gather)
def lower_gather(node: Node, target: Target) -> Lowered | None:
    """Runs of x's inner dimensions: for each outer position all indices."""
    x, indices = node.inputs
    if not movable(x):
        return None
    assert isinstance(node.op, Gather), "registered for Gather"
    axis = normal_axis("gather", node.op.axis, x.rank)
    run, size = math.prod(x.shape[axis + 1 :]), x.shape[axis]
    return _rows(node, (size,), (run,), run, indices.type.size, 0, size * run)


@schedule("cpu", GatherNd)
def lower_gather_nd(node: Node, target: Target) -> Lowered | None:
    """Runs of x's last dimensions: for each batch its index tuples."""
    x, indices = node.inputs
    if not movable(x):
        return None
    assert isinstance(node.op, GatherNd), "registered for GatherNd"
    b, n = node.op.batch_dims, indices.shape[-1]
    run = math.prod(x.shape[b + n :])
    tuples = math.prod(indices.shape[b:-1])
    sizes, strides = x.shape[b : b + n], dense(x.shape)[b : b + n]
    return _rows(node, sizes, strides, run, tuples, tuples * n, math.prod(x.shape[b:]))


def _rows(
    node: Node, sizes: Sequence[int], strides: Sequence[int], run: int, period: int, index_batch: int, x_batch: int
) -> Lowered | None:
    """period: index tuples of a batch; index_batch, x_batch: elements from one batch to the next."""
    x, indices = node.inputs
    if node.type.size == 0:
        return Lowered()
    if 0 in sizes:
        return None  # there is nothing to read: the reference says so
    nbytes, rows = x.dtype.nbytes, node.type.size // run
    while nbytes < 8 and not any(v % 2 for v in (run, x_batch, *strides)):
        nbytes, run, x_batch, strides = nbytes * 2, run // 2, x_batch // 2, [s // 2 for s in strides]
    moved = 2 * node.type.nbytes
    rows_per_chunk, _, _ = split(rows, 1, rows * (2 + run / 8), moved, 1)
    args: list[TaskArg] = [Place(x), Place(node), Place(indices), run, period, index_batch, x_batch, rows, rows_per_chunk, *sizes, *strides]
    kernel = gather_kernel(WIDTHS[nbytes], indices.dtype, len(sizes), run == 1)
    return Lowered((Task(kernel, tuple(args), (1,), chunks=-(-rows // rows_per_chunk), nbytes=moved, label=node.op.name, fault=IN_RANGE),))


@functools.cache
def gather_kernel(dtype: DType, index: DType, count: int, single: bool) -> Kernel:
    """y's row r is the run of x at the tuple of `count` indices of r.   single: runs of one element."""
    k = Builder(f"gather_{dtype}_{index}")
    x, y, indices = k.pointer("x", dtype), k.pointer("y", dtype), k.pointer("indices", index)
    run, period, index_batch, x_batch, rows, rows_per_chunk = (
        k.integer(n) for n in ("run", "period", "index_batch", "x_batch", "rows", "rows_per_chunk")
    )
    sizes = [k.integer(f"size{i}") for i in range(count)]
    strides = [k.integer(f"stride{i}") for i in range(count)]
    bounds = Bounds(k)
    first = k.chunk * rows_per_chunk
    batch, at = k.var(first / period), k.var(first % period)
    with k.loop(first, k.minimum(first + rows_per_chunk, rows)) as row:
        here = k.offset(indices, batch.get() * index_batch + at.get() * count)
        source = k.offset(x, batch.get() * x_batch + bounds.place(here, sizes, strides))
        if single:
            k.store(k.load(source), y, row)
        else:
            copy_run(k, source, k.offset(y, row * run), run)
        at.set(at.get() + 1)
        with k.when(at.get() == period):
            at.set(0)
            batch.set(batch.get() + 1)
    bounds.tell()
    return k.finish()


IN_RANGE = "indices must be within the dimensions that they name elements of, from -size to size - 1, got one that is not"


class Bounds:
    """Keeps indices within their dimensions, and remembers whether one was not: `tell`, at the end of a kernel, says so to the run."""

    def __init__(self, k: Builder) -> None:
        self.k = k
        self.word, self.step = k.fault_word()
        self.off = k.var(0)  # what is not 0 once an index was moved

    def inside(self, index: Value, size: Value) -> Value:
        """The index counted from the begin, within the dimension."""
        k = self.k
        index = k.convert(index, i64)
        index = k.select(index < 0, index + size, index)
        moved = k.minimum(k.maximum(index, 0), size - 1)
        self.off.set(self.off.get() | (index ^ moved))
        return moved

    def place(self, indices: Value, sizes: Sequence[Value], strides: Sequence[Value]) -> Value:
        """The offset of the element at a tuple of indices."""
        total = self.k.index(0)
        for i, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
            total = total + self.inside(self.k.load(indices, i), size) * stride
        return total

    def tell(self) -> None:
        """One store, and only where an index was out of range."""
        with self.k.when(self.off.get() != 0):
            self.k.store(self.step, self.word)


@schedule("cpu", GatherElements)
def lower_gather_elements(node: Node, target: Target) -> Lowered | None:
    """Element by element along the last dimension."""
    x, indices = node.inputs
    if not movable(x):
        return None
    if node.type.size == 0:
        return Lowered()
    assert isinstance(node.op, GatherElements), "registered for GatherElements"
    axis = normal_axis("gather_elements", node.op.axis, x.rank)
    walk = ElementWalk(x.shape, node.shape, axis)
    rows_per_chunk, _, _ = split(walk.rows, 1, 2 * node.type.size, 2 * node.type.nbytes, 1)
    args: list[TaskArg] = [Place(x), Place(node), Place(indices), *walk.args(rows_per_chunk)]
    kernel = gather_elements_kernel(WIDTHS[x.dtype.nbytes], indices.dtype, walk.outer)
    return Lowered(
        (Task(kernel, tuple(args), (1,), chunks=-(-walk.rows // rows_per_chunk), nbytes=2 * node.type.nbytes, label=node.op.name,
              fault=IN_RANGE),)
    )  # fmt: skip


class ElementWalk:
    """Numbers of a walk over indices of shape `shape` that name elements of `whole` along `axis`."""

    def __init__(self, whole: Sequence[int], shape: Sequence[int], axis: int) -> None:
        if len(shape) == 1:  # there is always an outer axis
            whole, shape, axis = (1, *whole), (1, *shape), axis + 1
        strides, own = dense(whole), dense(shape)
        last = len(shape) - 1
        self.outer = last
        self.sizes = shape[:last]
        self.rows = math.prod(self.sizes)
        self.whole_strides = [0 if i == axis else s for i, s in enumerate(strides[:last])]
        self.own_strides = own[:last]
        self.head = (shape[last], whole[axis], strides[axis], int(axis != last))
        self.apart = math.prod(shape[axis:last])  # rows that may name the same elements

    def args(self, rows_per_chunk: int) -> tuple[int, ...]:
        return (*self.head, self.rows, rows_per_chunk, *self.sizes[1:], *self.whole_strides, *self.own_strides)


class ElementLoop:
    """Code of such a walk: parameters in the order of `ElementWalk.args`."""

    def __init__(self, k: Builder, indices: Value, outer: int) -> None:
        self.k, self.indices = k, indices
        self.n, self.size, self.stride, self.step = (k.integer(n) for n in ("n", "size", "stride", "step"))
        self.rows, self.rows_per_chunk = k.integer("rows"), k.integer("rows_per_chunk")
        self.sizes = [k.integer(f"size{i}") for i in range(1, outer)]
        self.strides = [[k.integer(f"{name}{i}") for i in range(outer)] for name in ("whole", "own")]
        self.bounds = Bounds(k)

    def over(self) -> rows_of:
        """The loop over this chunk's rows, for `with`; gives variables: offsets in the whole and of the indices."""
        k = self.k
        first = k.chunk * self.rows_per_chunk
        return rows_of(k, first, k.minimum(first + self.rows_per_chunk, self.rows), self.sizes, self.strides)

    def element(self, whole: Value, own: Value, j: Value) -> tuple[Value, Value]:
        """(offset of the element named in the whole, offset of its index)."""
        k = self.k
        at = own + j
        found = self.bounds.inside(k.load(self.indices, at), self.size)
        return whole + found * self.stride + j * self.step, at


@functools.cache
def gather_elements_kernel(dtype: DType, index: DType, outer: int) -> Kernel:
    """y[own] = x[the element that the index at `own` names]."""
    k = Builder(f"gather_elements_{dtype}_{index}")
    x, y, indices = k.pointer("x", dtype), k.pointer("y", dtype), k.pointer("indices", index)
    loop = ElementLoop(k, indices, outer)
    with loop.over() as (whole, own):
        whole_at, own_at = whole.get(), own.get()
        with k.loop(0, loop.n) as j:
            source, at = loop.element(whole_at, own_at, j)
            k.store(k.load(x, source), y, at)
    loop.bounds.tell()
    return k.finish()
