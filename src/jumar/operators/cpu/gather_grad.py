"""What a table of embeddings receives: zeros, and rows of dy added at the places that indices name.

In: GatherGrad nodes.  Out: one task (and a conversion, where the elements are too narrow to be summed).  A chunk owns some rows of the table, or
some of its columns where it has few rows: it clears them and adds what falls on them, in the order of the indices, so that results do not
depend on chance and no two threads write the same element.
"""

from __future__ import annotations

import functools
import math

from jumar.base import DType
from jumar.device import Target
from jumar.ir import Node
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.cpu.epilogue import modulo, quotient
from jumar.operators.cpu.expression import compute_dtype
from jumar.operators.cpu.gather import IN_RANGE, Bounds
from jumar.operators.cpu.prepare import convert_task
from jumar.operators.families import normal_axis
from jumar.operators.movement import GatherGrad
from jumar.operators.schedule import Lowered, Place, Task, TaskArg, Temp, TempPlace, schedule

PARTS = 4  # chunks for each core: rows that are named often make them uneven
LEAST = 64  # elements of a row, and rows, that a chunk owns at least
SCANNED = 1 << 14  # indices from which fewer chunks, each of which reads them all, do better


@schedule("cpu", GatherGrad)
def lower_gather_grad(node: Node, target: Target) -> Lowered | None:
    """The tasks of a gradient; None for what is no float."""
    dy, indices = node.inputs
    assert isinstance(node.op, GatherGrad), "registered for GatherGrad"
    if not dy.dtype.is_float or node.type.size == 0:
        return None
    axis = normal_axis("gather_grad", node.op.axis, node.rank)
    outer, size, run = math.prod(node.shape[:axis]), node.shape[axis], math.prod(node.shape[axis + 1 :])
    dtype = compute_dtype(dy.dtype)
    lanes = target.lanes(dtype)
    result: TaskArg = Place(node) if dtype is dy.dtype else TempPlace(Temp(node.type.size * dtype.nbytes, "sums"))
    wanted = max(1, -(-(PARTS if indices.type.size <= SCANNED else 1) * target.cores // outer)) if target.cores > 1 else 1
    row_parts = min(wanted, max(1, size // LEAST))
    column_parts = min(-(-wanted // row_parts), max(1, run // LEAST))
    rows, columns = -(-size // row_parts), -(-run // (column_parts * lanes)) * lanes
    row_parts, column_parts = -(-size // rows), -(-run // columns)
    args: tuple[TaskArg, ...] = (
        Place(dy), result, Place(indices), size, run, indices.type.size, rows, row_parts, columns, column_parts
    )  # fmt: skip
    kernel = gather_grad_kernel(dy.dtype, dtype, indices.dtype, lanes)
    nbytes = node.type.nbytes + 2 * dy.type.nbytes
    tasks = [Task(kernel, args, (1,), outer * row_parts * column_parts, nbytes=nbytes, label=node.op.name, fault=IN_RANGE)]
    if dtype is not dy.dtype:
        task, made = convert_task(result, dtype, dy.dtype, node.type.size, lanes)
        tasks.append(
            Task(task.kernel, tuple(Place(node) if a is made else a for a in task.args), task.writes, task.chunks, label=task.label)
        )
    return Lowered(tuple(tasks))


@functools.cache
def gather_grad_kernel(source: DType, dtype: DType, index: DType, lanes: int) -> Kernel:
    """y[outer, index, column] += dy[outer, position, column] from zero, for the chunk's rows and columns."""
    k = Builder(f"gather_grad_{source}_{index}")
    dy, y, indices = k.pointer("dy", source), k.pointer("y", dtype), k.pointer("indices", index)
    size, run, count, rows, row_parts, columns, column_parts = (
        k.integer(n) for n in ("size", "run", "count", "rows", "row_parts", "columns", "column_parts")
    )
    bounds = Bounds(k)
    column_part, rest = modulo(k, k.chunk, column_parts), quotient(k, k.chunk, column_parts)
    row_part, outer = modulo(k, rest, row_parts), quotient(k, rest, row_parts)
    low, left = row_part * rows, column_part * columns
    high, width = k.minimum(low + rows, size), k.minimum(columns, run - left)
    table, given = k.offset(y, outer * size * run + left), k.offset(dy, outer * count * run + left)

    def clear(line: Value, n: Value) -> None:
        whole = n - modulo(k, n, k.index(lanes))
        with k.loop(0, whole, lanes) as i:
            k.store(k.const(0, dtype, lanes), line, i)
        with k.loop(whole, n) as i:
            k.store(k.const(0, dtype), line, i)

    with k.when(column_parts == 1):
        clear(k.offset(table, low * run), (high - low) * run)
    with k.otherwise(), k.loop(low, high) as row:
        clear(k.offset(table, row * run), width)
    whole = width - modulo(k, width, k.index(lanes))
    with k.loop(0, count) as position:
        row = bounds.inside(k.load(indices, position), size)
        with k.when((row >= low) & (row < high)):
            line, added = k.offset(table, row * run), k.offset(given, position * run)
            with k.loop(0, whole, lanes) as i:
                k.store(k.load(line, i, lanes) + k.convert(k.load(added, i, lanes), dtype), line, i)
            with k.loop(whole, width) as i:
                k.store(k.load(line, i) + k.convert(k.load(added, i), dtype), line, i)
    bounds.tell()
    return k.finish()
