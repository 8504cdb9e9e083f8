"""Transposes: copies whose source and result are dense along different axes, by square blocks in registers.

In: a `Region` that copies one operand.  Out: a task.  A tile is small enough for L1, so that every cache line is read and written once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from jumar.base import DType
from jumar.device import Target
from jumar.ir import Node
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.cpu.pointwise import argument, rows_of, split
from jumar.operators.cpu.region import Region, collapse
from jumar.operators.schedule import Task, TaskArg

TILE = 64  # of source-dense elements in a tile
ACROSS = 32  # of result-dense elements in it
TILE_ACROSS = 256  # of them that a thread takes at once
PIXELS = 2048  # of a tile of few channels
CHANNELS = 7  # at most, where they are woven in registers


def is_transposing(region: Region) -> bool:
    """Whether a copy's source and result are dense along different axes, of a length that is worth blocks."""
    region = collapse(region)
    axes = _dense(region) if len(region.space) > 1 else None
    if axes is None:
        return False
    return _channels(region, axes) > 0 or min(region.space[a] for a in axes) >= 4


def _dense(region: Region) -> tuple[int, int] | None:
    """(axis along which the source is dense, that along which the result is), if they differ."""
    source, result = region.operands[0].strides, region.targets[0].strides
    if 1 not in source or 1 not in result:
        return None
    a, b = source.index(1), result.index(1)
    return (a, b) if a != b else None


def _channels(region: Region, axes: tuple[int, int]) -> int:
    """How many channels stand together, in the result (positive) or in the source (negative); 0 where they are not few, or not dense."""
    a, b = axes
    na, nb = region.space[a], region.space[b]
    if nb <= CHANNELS and na >= 16 and region.targets[0].strides[a] == nb:
        return nb
    return -na if na <= CHANNELS and nb >= 16 and region.operands[0].strides[b] == na else 0


def transpose_task(region: Region, places: dict[Node, TaskArg], target: Target, label: str) -> Task:
    """The task of a copy for which `is_transposing` holds."""
    region = collapse(region)
    axes = _dense(region)
    assert axes is not None, "asked of is_transposing"
    a, b = axes
    source, result = region.operands[0], region.targets[0]
    channels = _channels(region, axes)
    tiles = {b: PIXELS} if channels < 0 else {a: PIXELS} if channels else {a: TILE, b: TILE_ACROSS}
    outer = [i for i in range(len(region.space)) if i not in (a, b)]
    sizes = [region.space[i] for i in outer] + [-(-region.space[i] // n) for i, n in tiles.items()]
    rows = math.prod(sizes)
    nbytes = 2 * region.size * source.node.dtype.nbytes
    rows_per_chunk, _, _ = split(rows, 1, region.size / 2, nbytes, 1)
    args: list[TaskArg] = [argument(source, places), argument(result, places), region.space[a], region.space[b]]
    args += [source.strides[b], result.strides[a], rows, rows_per_chunk, *sizes[1:]]
    for strides in (source.strides, result.strides):
        args += [strides[i] for i in outer] + [strides[i] * n for i, n in tiles.items()]
    for axis, n in tiles.items():
        args += [0] * len(outer) + [n if i == axis else 0 for i in tiles]
    dtype = source.node.dtype
    side = _side(dtype, (source.strides[b], result.strides[a]), target)
    kernel = weave_kernel(dtype, len(sizes), channels) if channels else transpose_kernel(dtype, len(sizes), side)
    return Task(kernel, tuple(args), (1,), chunks=-(-rows // rows_per_chunk), nbytes=nbytes, label=label)


def _side(dtype: DType, pitches: Sequence[int], target: Target) -> int:
    """Elements of a square in registers: half a cache line, or with 512-bit vectors a whole one where rows begin with lines.

    Measured (2 cores Zen 5, f32, us, half lines and whole ones): 2048 x 1024: 1176, 353 (rows 4 kB apart share cache sets); 2048 x 384:
    204, 154; 512 x 3072: 201, 144; 255 x 6400, whose rows are not whole lines: 105, 118.
    """
    half, whole = 32 // dtype.nbytes, 64 // dtype.nbytes
    wide = target.vector_bits >= 512 and dtype.bits >= 32 and all(p % whole == 0 for p in pitches)
    return whole if wide else min(8, half)


@functools.cache
def transpose_kernel(dtype: DType, outer: int, side: int) -> Kernel:
    """result[.., a * to_a + b] = source[.., b * from_b + a], tile by tile; the last two outer axes count tiles along a and b.

    side: of the squares that are turned in registers.
    """
    k = Builder(f"transpose_{dtype}")
    x, y, (na, nb, from_b, to_a), rows = _parameters(k, dtype, outer, 2)
    with rows as (from_at, to_at, a_at, b_at):
        here, there = k.offset(x, from_at.get()), k.offset(y, to_at.get())
        length, across = k.minimum(na - a_at.get(), TILE), k.minimum(nb - b_at.get(), TILE_ACROSS)
        with k.loop(0, across, ACROSS) as begin:
            _tile(k, side, here, there, length, begin, k.minimum(begin + ACROSS, across), from_b, to_a)
    return k.finish()


def _parameters(k: Builder, dtype: DType, outer: int, tiled: int) -> tuple[Value, Value, list[Value], rows_of]:
    """Source, result, (na, nb, from_b, to_a), and the loop over rows, which gives offsets: in source, in result, along each tiled axis."""
    x, y = k.pointer("x", dtype), k.pointer("y", dtype)
    numbers = [k.integer(n) for n in ("na", "nb", "from_b", "to_a")]
    rows, rows_per_chunk = k.integer("rows"), k.integer("rows_per_chunk")
    sizes = [k.integer(f"size{i}") for i in range(1, outer)]
    strides = [[k.integer(f"{name}{i}") for i in range(outer)] for name in ("from", "to", "tile", "across")[: 2 + tiled]]
    first = k.chunk * rows_per_chunk
    return x, y, numbers, rows_of(k, first, k.minimum(first + rows_per_chunk, rows), sizes, strides)


@functools.cache
def weave_kernel(dtype: DType, outer: int, channels: int) -> Kernel:
    """Few channels from rows of their own to stand together (channels > 0), or apart from one another (< 0)."""
    count = abs(channels)
    k = Builder(f"weave_{dtype}_{count}" if channels > 0 else f"unweave_{dtype}_{count}")
    x, y, (na, nb, from_b, to_a), rows = _parameters(k, dtype, outer, 1)
    lanes = min(16, 32 // dtype.nbytes)
    with rows as (from_at, to_at, tile_at):
        here, there = k.offset(x, from_at.get()), k.offset(y, to_at.get())
        length = k.minimum((na if channels > 0 else nb) - tile_at.get(), PIXELS)
        whole = length / lanes * lanes
        with k.loop(0, whole, lanes) as i:
            if channels > 0:
                parts = [k.load(here, from_b * c + i, lanes) for c in range(count)]
                for j, woven in enumerate(woven_of(k, parts)):
                    k.store(woven, there, i * count + j * lanes)
            else:
                parts = [k.load(here, i * count + j * lanes, lanes) for j in range(count)]
                for c, own in enumerate(unwoven_of(k, parts)):
                    k.store(own, there, to_a * c + i)
        with k.loop(whole, length) as i:
            for c in range(count):
                if channels > 0:
                    k.store(k.load(here, from_b * c + i), there, i * count + c)
                else:
                    k.store(k.load(here, i * count + c), there, to_a * c + i)
    return k.finish()


def woven_of(k: Builder, rows: list[Value]) -> list[Value]:
    """Vectors of one channel each as vectors in which all channels of an element stand together."""
    count, lanes = len(rows), rows[0].lanes
    return [_picked(k, rows, [divmod(j * lanes + lane, count)[::-1] for lane in range(lanes)]) for j in range(count)]


def unwoven_of(k: Builder, parts: list[Value]) -> list[Value]:
    """The inverse of `woven_of`."""
    count, lanes = len(parts), parts[0].lanes
    return [_picked(k, parts, [divmod(lane * count + c, lanes) for lane in range(lanes)]) for c in range(count)]


def _picked(k: Builder, sources: list[Value], places: list[tuple[int, int]]) -> Value:
    """A vector of lanes that stand at (source, lane)."""
    result: Value | None = None
    for s, source in enumerate(sources):
        here = [which == s for which, _ in places]
        if not any(here):
            continue
        moved = k.shuffle(source, source, [lane for _, lane in places])
        result = moved if result is None else k.shuffle(result, moved, [i + len(here) * on for i, on in enumerate(here)])
    assert result is not None, "every lane has a source"
    return result


def _tile(k: Builder, side: int, x: Value, y: Value, length: Value, begin: Value, end: Value, from_b: Value, to_a: Value) -> None:
    """Elements a < length, begin <= b < end."""
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
