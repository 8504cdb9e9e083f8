"""Packing of 8-bit weights: panels with the sums that they begin with, made at compile time or by a task of each run.

In: codes [k, n].  Out: panels: for each column the 32-bit start of its sums (what x's zero code adds, taken off), then [steps, columns, 4].
k is filled up with zeros to whole steps in each tap, n to whole panels.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from jumar.base import Array, i8, i32, i64
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.cpu.epilogue import modulo, quotient
from jumar.operators.cpu.integer_gemm import panel_nbytes
from jumar.operators.cpu.integer_microkernel import STEP, ByteTile
from jumar.operators.cpu.prepare import transpose_block
from jumar.operators.schedule import Packed, Task, TaskArg, Temp, TempPlace


def pack_bytes(w: Array, tile: ByteTile, x_zero: int) -> Array:
    """w: [batch, taps, depth, n] -> bytes [batch, panels, panel_nbytes].   x_zero: the code that stands for 0 in x.

    >>> from jumar.base import u8
    >>> pack_bytes(np.ones((1, 1, 3, 5), np.int8), ByteTile(6, 2, 4, u8), 2)[0, 0, :32].view(np.int32)
    array([-6, -6, -6, -6, -6,  0,  0,  0], dtype=int32)
    """
    batch, taps, depth, n = w.shape
    columns, steps = tile.columns, -(-depth // STEP)
    panels = -(-n // columns)
    whole = np.zeros((batch, taps, steps * STEP, panels * columns), np.int8)
    whole[:, :, :depth, :n] = w
    sums = w.sum((1, 2), dtype=np.int64) * -tile.moved(x_zero)
    start = np.zeros((batch, panels * columns), np.int32)
    start[:, :n] = sums.astype(np.uint64).astype(np.uint32).view(np.int32)  # sums wrap around, as those of the kernel do
    codes = whole.reshape(batch, taps, steps, STEP, panels, columns).transpose(0, 4, 1, 2, 5, 3)
    packed = np.empty((batch, panels, panel_nbytes(taps, steps, tile)), np.int8)
    packed[..., : 4 * columns] = start.reshape(batch, panels, columns).view(np.int8)
    packed[..., 4 * columns :] = codes.reshape(batch, panels, -1)
    return packed


def are_narrow(w: Array) -> bool:
    """Whether two neighbouring products of any u8 by these weights fit 16 bits together.   w: [batch, taps, depth, n]."""
    depth = w.shape[2] + w.shape[2] % 2
    size = np.zeros((w.shape[0], w.shape[1], depth, w.shape[3]), np.int32)
    size[:, :, : w.shape[2]] = np.abs(w.astype(np.int32))
    return bool((255 * size.reshape(*size.shape[:2], depth // 2, 2, -1).sum(3) <= 32767).all())


@cache
def pack_bytes_kernel(tile: ByteTile, transposed: bool) -> Kernel:
    """One panel of a matrix [k, n] of i8 in memory: rows `pitch` apart, or, transposed, columns `pitch` apart.   A chunk is a panel."""
    k = Builder("pack_bytes_transposed" if transposed else "pack_bytes")
    w, packed, places = k.pointer("w", i8), k.pointer("packed", i8), k.pointer("places", i64)
    depth, width, pitch, panels, x_zero = (k.integer(n) for n in ("depth", "width", "pitch", "panels", "x_zero"))
    columns, lanes = tile.columns, tile.lanes
    panel, batch = modulo(k, k.chunk, panels), quotient(k, k.chunk, panels)
    source = k.offset(w, k.load(places, batch))
    steps = (depth + (STEP - 1)) / STEP
    start = k.cast_pointer(k.offset(packed, k.chunk * (steps + 1) * (STEP * columns)), i32)
    codes = k.offset(k.cast_pointer(start, i8), STEP * columns)
    words = k.cast_pointer(codes, i32)
    column = panel * columns
    here = k.minimum(width - column, columns)
    whole = depth / STEP
    full = here - modulo(k, here, k.index(lanes))

    def one_by_one(first: Value, last: Value, begin: Value, end: Value) -> None:
        """Steps first .. last of the columns begin .. end; k and columns that do not exist are zeros."""
        with k.loop(first, last) as step, k.loop(begin, end) as j:
            for r in range(STEP):
                at = step * STEP + r
                found = (at < depth) & (j < here)
                place = (column + j) * pitch + at if transposed else at * pitch + column + j
                value = k.load(source, k.select(found, place, k.index(0)))
                k.store(k.select(found, value, k.const(0, i8)), codes, (step * columns + j) * STEP + r)

    with k.loop(0, full, lanes) as j:
        if transposed:
            row = k.offset(source, (column + j) * pitch)
            turned = whole - modulo(k, whole, k.index(lanes))
            with k.loop(0, turned, lanes) as step:
                block = [k.load(k.cast_pointer(k.offset(row, pitch * r), i32), step, lanes) for r in range(lanes)]
                for r, vector in enumerate(transpose_block(k, block)):
                    k.store(vector, words, (step + r) * columns + j)
            with k.loop(turned, whole) as step, k.loop(0, lanes) as lane:
                k.store(k.load(k.cast_pointer(k.offset(row, pitch * lane), i32), step), words, step * columns + j + lane)
        else:
            with k.loop(0, whole) as step:
                row = k.offset(source, step * (STEP * pitch) + column + j)
                a, b, c, d = (k.load(row, pitch * r, lanes) for r in range(STEP))
                pairs = [index for lane in range(lanes) for index in (lane, lanes + lane)]
                fours = [
                    index for lane in range(lanes) for index in (2 * lane, 2 * lane + 1, 2 * lanes + 2 * lane, 2 * lanes + 2 * lane + 1)
                ]
                k.store(k.shuffle(k.shuffle(a, b, pairs), k.shuffle(c, d, pairs), fours), codes, (step * columns + j) * STEP)
    one_by_one(k.index(0), whole, full, k.index(columns))
    one_by_one(whole, steps, k.index(0), k.index(columns))
    ones = k.const(1, tile.multiplied, STEP * lanes)
    zero = k.convert(x_zero, i32)
    for first in range(0, columns, lanes):
        total = k.var(k.const(0, i32, lanes))
        with k.loop(0, steps) as step:
            total.set(k.dot4(total.get(), ones, k.load(codes, (step * columns + first) * STEP, STEP * lanes)))
        k.store(-(total.get() * zero), start, first)
    return k.finish()


def pack_bytes_task(
    w: TaskArg, tile: ByteTile, places: Array, depth: int, width: int, pitch: int, x_zero: int, *, transposed: bool
) -> tuple[Task, TempPlace]:
    """Panels of the matrices of `w` at `places` (offsets in elements), in a temporary: [len(places), panels, panel_nbytes]."""
    panels = -(-width // tile.columns)
    size = len(places) * panels * panel_nbytes(1, -(-depth // STEP), tile)
    temp = TempPlace(Temp(size, "panels"))
    args = (w, temp, Packed(places, "places"), depth, width, pitch, panels, tile.moved(x_zero))
    nbytes = len(places) * depth * width + size
    return Task(pack_bytes_kernel(tile, transposed), args, (1,), len(places) * panels, nbytes=nbytes, label="pack"), temp
