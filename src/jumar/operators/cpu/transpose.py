"""Transposes: copies whose source and result are dense along different axes, by square blocks in registers.

In: a `Region` that copies one operand.  Out: a task.  A tile is small enough for L1, so that every cache line is read and written once.
"""

from __future__ import annotations

import functools
import math

from jumar.base import DType
from jumar.ir import Node
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.cpu.pointwise import argument, rows_of, split
from jumar.operators.cpu.region import Region, collapse
from jumar.operators.schedule import Task, TaskArg

TILE = 64  # of source-dense elements in a tile
ACROSS = 32  # of result-dense elements in it


def is_transposing(region: Region) -> bool:
    """Whether a copy's source and result are dense along different axes, of a length that is worth blocks."""
    region = collapse(region)
    if len(region.space) < 2:
        return False
    dense = _dense(region)
    return dense is not None and min(region.space[dense[0]], region.space[dense[1]]) >= 4


def _dense(region: Region) -> tuple[int, int] | None:
    """(axis along which the source is dense, that along which the result is), if they differ."""
    source, result = region.operands[0].strides, region.targets[0].strides
    if 1 not in source or 1 not in result:
        return None
    a, b = source.index(1), result.index(1)
    return (a, b) if a != b else None


def transpose_task(region: Region, places: dict[Node, TaskArg], label: str) -> Task:
    """The task of a copy for which `is_transposing` holds."""
    region = collapse(region)
    axes = _dense(region)
    assert axes is not None, "asked of is_transposing"
    a, b = axes
    source, result = region.operands[0], region.targets[0]
    outer = [i for i in range(len(region.space)) if i not in (a, b)]
    na, nb = region.space[a], region.space[b]
    tiles = -(-na // TILE)
    rows = math.prod(region.space[i] for i in outer) * tiles
    nbytes = 2 * region.size * source.node.dtype.nbytes
    rows_per_chunk, _, _ = split(rows, 1, region.size / 2, nbytes, 1)
    sizes = [region.space[i] for i in outer] + [tiles]
    args: list[TaskArg] = [
        argument(source, places),
        argument(result, places),
        na,
        nb,
        source.strides[b],
        result.strides[a],
        rows,
        rows_per_chunk,
    ]
    args += sizes[1:]
    args += [source.strides[i] for i in outer] + [TILE]
    args += [result.strides[i] for i in outer] + [TILE * result.strides[a]]
    args += [0] * len(outer) + [TILE]
    kernel = transpose_kernel(source.node.dtype, len(sizes))
    return Task(kernel, tuple(args), (1,), chunks=-(-rows // rows_per_chunk), nbytes=nbytes, label=label)


@functools.cache
def transpose_kernel(dtype: DType, outer: int) -> Kernel:
    """result[.., a * to_a + b] = source[.., b * from_b + a], tile by tile; the last outer axis counts tiles along a."""
    k = Builder(f"transpose_{dtype}")
    x, y = k.pointer("x", dtype), k.pointer("y", dtype)
    na, nb, from_b, to_a = (k.integer(n) for n in ("na", "nb", "from_b", "to_a"))
    rows, rows_per_chunk = k.integer("rows"), k.integer("rows_per_chunk")
    sizes = [k.integer(f"size{i}") for i in range(1, outer)]
    strides = [[k.integer(f"{name}{i}") for i in range(outer)] for name in ("from", "to", "tile")]
    first = k.chunk * rows_per_chunk
    with rows_of(k, first, k.minimum(first + rows_per_chunk, rows), sizes, strides) as offsets:
        here, there = k.offset(x, offsets[0].get()), k.offset(y, offsets[1].get())
        length = k.minimum(na - offsets[2].get(), TILE)
        with k.loop(0, nb, ACROSS) as begin:
            _tile(k, here, there, length, begin, k.minimum(begin + ACROSS, nb), from_b, to_a)
    return k.finish()


def _tile(k: Builder, x: Value, y: Value, length: Value, begin: Value, end: Value, from_b: Value, to_a: Value) -> None:
    """Elements a < length, begin <= b < end."""
    side = 4 if x.dtype.bits == 64 else 8
    whole_a = length / side * side
    whole_b = begin + (end - begin) / side * side
    with k.loop(0, whole_a, side) as a, k.loop(begin, whole_b, side) as b:
        block = [k.load(x, (b + i) * from_b + a, side) for i in range(side)]
        for i, row in enumerate(transposed(k, block)):
            k.store(row, y, (a + i) * to_a + b)
    _one_by_one(k, x, y, (k.index(0), length), (whole_b, end), from_b, to_a)
    _one_by_one(k, x, y, (whole_a, length), (begin, whole_b), from_b, to_a)


def _one_by_one(
    k: Builder, x: Value, y: Value, a_range: tuple[Value, Value], b_range: tuple[Value, Value], from_b: Value, to_a: Value
) -> None:
    with k.loop(*a_range) as a, k.loop(*b_range) as b:
        k.store(k.load(x, b * from_b + a), y, a * to_a + b)


def transposed(k: Builder, rows: list[Value]) -> list[Value]:
    """The columns of a square of registers: blocks off the diagonal change places, of 1, 2, 4 ... elements.

    For 8 x 32 bits each step is a shuffle within 128-bit halves, but the last, which exchanges the halves.
    """
    side = len(rows)
    step = 1
    while step < side:
        low = [j if j & step == 0 else side + j - step for j in range(side)]
        high = [j + step if j & step == 0 else side + j for j in range(side)]
        new = list(rows)
        for i in range(side):
            if i & step == 0:
                new[i] = k.shuffle(rows[i], rows[i + step], low)
                new[i + step] = k.shuffle(rows[i], rows[i + step], high)
        rows = new
        step *= 2
    return rows
