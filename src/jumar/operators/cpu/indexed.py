"""Copies by tables: each element of the result comes from where tables, made at compile time, say.

In: for each dimension of the result the offset in the source that each position adds.  Out: a task.  For pads that mirror, and for
whatever else picks elements in a fixed pattern.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from jumar.base import Array, DType, i64
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.cpu.pointwise import split
from jumar.operators.schedule import Packed, Place, Task

MAX_TABLE = 1 << 16  # entries of the table of rows


def indexed_task(tables: Sequence[Array], width: DType, source: Place, result: Place, label: str) -> Task:
    """result[i, j, k] = source[t0[i] + t1[j] + t2[k]].   width: unsigned integer of the element's size."""
    tables = [t.astype(np.int64) for t in tables if len(t) != 1 or t[0]] or [np.zeros(1, np.int64)]
    inner = tables[-1]
    at = len(tables) - 1
    while at > 0 and len(inner) * len(tables[at - 1]) <= 64:  # short rows become longer ones
        at -= 1
        inner = (tables[at][:, None] + inner).reshape(-1)
    # rows as two tables, so that neither grows with the product of all dimensions
    outer, middle = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for t in reversed(tables[:at]):
        if len(middle) * len(t) <= MAX_TABLE and len(outer) == 1:
            middle = (t[:, None] + middle).reshape(-1)
        else:
            outer = (t[:, None] + outer).reshape(-1)
    rows = len(outer) * len(middle)
    dense = bool((np.diff(inner) == 1).all())
    nbytes = 2 * rows * len(inner) * width.nbytes
    rows_per_chunk, _, _ = split(rows, 1, rows * len(inner), nbytes, 1)
    args = (
        source,
        result,
        Packed(outer, "rows"),
        Packed(middle, "rows"),
        Packed(inner, "table"),
        len(middle),
        rows,
        rows_per_chunk,
        len(inner),
    )
    return Task(indexed_kernel(width, dense), args, (1,), chunks=-(-rows // rows_per_chunk), nbytes=nbytes, label=label)


@functools.cache
def indexed_kernel(dtype: DType, dense: bool) -> Kernel:
    """dense: the inner table counts up by one, so rows are copied in vectors."""
    k = Builder(f"indexed_{dtype}")
    x, y = k.pointer("x", dtype), k.pointer("y", dtype)
    outer, middle, inner = (k.pointer(n, i64) for n in ("outer", "middle", "inner"))
    period, rows, rows_per_chunk, n = (k.integer(m) for m in ("period", "rows", "rows_per_chunk", "n"))
    first = k.chunk * rows_per_chunk
    with k.loop(first, k.minimum(first + rows_per_chunk, rows)) as row:
        start = k.load(outer, row / period) + k.load(middle, row % period)
        here, there = k.offset(x, start), k.offset(y, row * n)
        if not dense:
            with k.loop(0, n) as i:
                k.store(k.load(here, k.load(inner, i)), there, i)
        else:
            copy_run(k, k.offset(here, k.load(inner, 0)), there, n)
    return k.finish()


def copy_run(k: Builder, x: Value, y: Value, n: Value) -> None:
    """Copies `n` elements in vectors, the rest one by one."""
    lanes = max(1, 32 // x.dtype.nbytes)
    whole = n / lanes * lanes
    with k.loop(0, whole, lanes) as i:
        k.store(k.load(x, i, lanes), y, i)
    with k.loop(whole, n) as i:
        k.store(k.load(x, i), y, i)
