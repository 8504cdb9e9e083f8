"""Scatters: a copy of x into which updates are put, or combined, at places that stand in a tensor of indices.

In: ScatterElements, ScatterNd nodes.  Out: the copy (which falls away where x's memory may be taken over) and the writing.
Writes that may meet are done by one thread, in order, so that results do not depend on chance.
"""

from __future__ import annotations

import functools
import math

from jumar.base import DType, bool_
from jumar.device import Target
from jumar.ir import Node
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.cpu.expression import load, store
from jumar.operators.cpu.gather import IN_RANGE, Bounds, ElementLoop, ElementWalk
from jumar.operators.cpu.move import WIDTHS, View, copy_tasks, dense, movable
from jumar.operators.families import normal_axis
from jumar.operators.movement import ScatterElements, ScatterNd
from jumar.operators.schedule import Lowered, Place, Task, TaskArg, schedule

PART = 1024  # elements of a run that a chunk writes


def _copied(node: Node, target: Target) -> tuple[Task, ...]:
    strides = dense(node.shape)
    views = View(Place(node.inputs[0]), strides), View(Place(node), strides)
    return copy_tasks(node.shape, node.dtype.nbytes, *views, target, "scatter (copy)")


@schedule("cpu", ScatterElements)
def lower_scatter_elements(node: Node, target: Target) -> Lowered | None:
    """Element by element; dimensions before the axis are apart, so threads share them."""
    x, indices, updates = node.inputs
    assert isinstance(node.op, ScatterElements), "registered for ScatterElements"
    dtype = _dtype(node, node.op.reduction)
    if dtype is None:
        return None
    tasks = _copied(node, target)
    if updates.type.size == 0 or node.type.size == 0:
        return Lowered(tasks)
    walk = ElementWalk(x.shape, updates.shape, normal_axis("scatter_elements", node.op.axis, x.rank))
    rows_per_chunk = walk.apart * max(1, -(-walk.rows // walk.apart // 32))
    args: list[TaskArg] = [Place(updates), Place(node), Place(indices), *walk.args(rows_per_chunk)]
    kernel = scatter_elements_kernel(dtype, indices.dtype, node.op.reduction, walk.outer)
    chunks = -(-walk.rows // rows_per_chunk)
    return Lowered(
        (*tasks, Task(kernel, tuple(args), (1,), chunks=chunks, nbytes=2 * updates.type.nbytes, label=node.op.name, fault=IN_RANGE))
    )


@schedule("cpu", ScatterNd)
def lower_scatter_nd(node: Node, target: Target) -> Lowered | None:
    """Runs of the last dimensions; threads share long runs, never the tuples."""
    x, indices, updates = node.inputs
    assert isinstance(node.op, ScatterNd), "registered for ScatterNd"
    dtype = _dtype(node, node.op.reduction)
    if dtype is None:
        return None
    tasks = _copied(node, target)
    if updates.type.size == 0 or node.type.size == 0:
        return Lowered(tasks)
    n = indices.shape[-1]
    run, rows = math.prod(x.shape[n:]), math.prod(indices.shape[:-1])
    part = run if run < 2 * PART else PART
    args: list[TaskArg] = [Place(updates), Place(node), Place(indices), rows, run, part, *x.shape[:n], *dense(x.shape)[:n]]
    kernel = scatter_nd_kernel(dtype, indices.dtype, node.op.reduction, n)
    return Lowered(
        (
            *tasks,
            Task(kernel, tuple(args), (1,), chunks=-(-run // part), nbytes=2 * updates.type.nbytes, label=node.op.name, fault=IN_RANGE),
        )
    )


def _dtype(node: Node, reduction: str) -> DType | None:
    """The type that the kernel moves: a width where nothing is combined; None for what has no arithmetic here."""
    if not movable(node):
        return None
    if reduction == "none":
        return WIDTHS[node.dtype.nbytes]
    return (
        node.dtype
        if node.dtype.nbytes in WIDTHS and node.dtype.kind in "fiub" and (node.dtype.bits > 8 or not node.dtype.is_float)
        else None
    )


def combine(k: Builder, reduction: str, y: Value, at: Value, update: Value, source: Value) -> None:
    """Puts the update at y[at]."""
    if reduction == "none":
        k.store(k.load(update, source), y, at)
        return
    how = {"add": "or", "mul": "and", "min": "and", "max": "or"}[reduction] if y.dtype is bool_ else reduction
    store(k, k.binary(how, load(k, y, at), load(k, update, source)), y, at)


@functools.cache
def scatter_elements_kernel(dtype: DType, index: DType, reduction: str, outer: int) -> Kernel:
    """y[the element that the index names] takes the update."""
    k = Builder(f"scatter_elements_{dtype}_{index}_{reduction}")
    updates, y, indices = k.pointer("updates", dtype), k.pointer("y", dtype), k.pointer("indices", index)
    loop = ElementLoop(k, indices, outer)
    with loop.over() as (whole, own):
        whole_at, own_at = whole.get(), own.get()
        with k.loop(0, loop.n) as j:
            found, at = loop.element(whole_at, own_at, j)
            combine(k, reduction, y, found, updates, at)
    loop.bounds.tell()
    return k.finish()


@functools.cache
def scatter_nd_kernel(dtype: DType, index: DType, reduction: str, count: int) -> Kernel:
    """y's run at each tuple of `count` indices takes the run of updates; a chunk is a part of every run."""
    k = Builder(f"scatter_nd_{dtype}_{index}_{reduction}")
    updates, y, indices = k.pointer("updates", dtype), k.pointer("y", dtype), k.pointer("indices", index)
    rows, run, part = k.integer("rows"), k.integer("run"), k.integer("part")
    sizes = [k.integer(f"size{i}") for i in range(count)]
    strides = [k.integer(f"stride{i}") for i in range(count)]
    bounds = Bounds(k)
    begin = k.chunk * part
    end = k.minimum(begin + part, run)
    with k.loop(0, rows) as row:
        there = k.offset(y, bounds.place(k.offset(indices, row * count), sizes, strides))
        here = k.offset(updates, row * run)
        with k.loop(begin, end) as i:
            combine(k, reduction, there, i, here, i)
    bounds.tell()
    return k.finish()
