"""Running sums and products along an axis.

In: CumSum, CumProd nodes.  Out: one task.  What lies inside of the axis runs in vectors, each lane a chain of its own; a chain along the
last dimension is one element after another.
"""

from __future__ import annotations

import functools
import math

from jumar.base import NATIVE, DType, bool_
from jumar.device import Target
from jumar.ir import Node
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.cpu.expression import compute_dtype, lanes_of, load, store
from jumar.operators.cpu.pointwise import split
from jumar.operators.families import normal_axis
from jumar.operators.reduction import CumProd, CumSum
from jumar.operators.schedule import Lowered, Place, Task, schedule


@schedule("cpu", CumSum, CumProd)
def lower_running(node: Node, target: Target) -> Lowered | None:
    """Chains are shared by threads, each chain is one thread's."""
    op, (x,) = node.op, node.inputs
    assert isinstance(op, CumSum | CumProd), "registered for running sums and products"
    if x.dtype not in NATIVE or x.dtype is bool_:
        return None
    if x.type.size == 0:
        return Lowered()
    axis = normal_axis(op.name, op.axis, x.rank)
    outer, n, inner = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    lanes = lanes_of([x.dtype], target)
    rows_per_chunk, parts, part = split(outer, inner, 4 * x.type.size / (lanes if inner >= lanes else 1), 2 * x.type.nbytes, lanes)
    kernel = running_kernel("add" if isinstance(op, CumSum) else "mul", x.dtype, op.exclusive, op.reverse, lanes)
    args = (Place(x), Place(node), outer, rows_per_chunk, n, inner, part, parts)
    chunks = -(-outer // rows_per_chunk) * parts
    inplace = () if op.exclusive else ((1, 0),)
    return Lowered((Task(kernel, args, (1,), chunks=chunks, inplace=inplace, nbytes=2 * x.type.nbytes, label=op.name),))


@functools.cache
def running_kernel(how: str, dtype: DType, exclusive: bool, reverse: bool, lanes: int) -> Kernel:
    """[outer, n, inner]; a chunk is some of outer, or a part of inner."""
    k = Builder(f"running_{how}_{dtype}")
    x, y = k.pointer("x", dtype), k.pointer("y", dtype)
    outer, rows_per_chunk, n, inner, part, parts = (k.integer(m) for m in ("outer", "rows_per_chunk", "n", "inner", "part", "parts"))
    begin = (k.chunk % parts) * part
    end = k.minimum(begin + part, inner)
    first = (k.chunk / parts) * rows_per_chunk
    kind = compute_dtype(dtype)

    def chain(start: Value, width: int) -> None:
        neutral = (0.0 if how == "add" else 1.0) if kind.is_float else (0 if how == "add" else 1)
        total = k.var(k.const(neutral, kind, width))
        with k.loop(0, n) as step:
            at = start + ((n - 1 - step) if reverse else step) * inner
            before = total.get()
            total.set(k.binary(how, before, load(k, x, at, width)))
            store(k, before if exclusive else total.get(), y, at)

    with k.loop(first, k.minimum(first + rows_per_chunk, outer)) as row:
        base = row * n * inner
        whole = begin + (end - begin) / lanes * lanes
        with k.loop(begin, whole, lanes) as i:
            chain(base + i, lanes)
        with k.loop(whole, end) as i:
            chain(base + i, 1)
    return k.finish()
