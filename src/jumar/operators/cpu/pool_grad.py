"""Gradients of pools: each window gives its dy to the cell of its maximum, or to all of its cells in equal parts.

In: MaxPoolGrad and AvgPoolGrad nodes, channels last, of one to three spatial dimensions.  Out: one task (two for narrow floats, which are
summed in f32).  A chunk is some channels of one image: it clears them, then goes over the windows in order; vectors lie across channels.
Windows overlap, so that chunks must not share an image's channels.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jumar.base import DType, i64
from jumar.device import Target
from jumar.ir import Node
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.cpu.expression import compute_dtype, load, masks_are_cheap
from jumar.operators.cpu.move import dense
from jumar.operators.cpu.pool import MOST_CELLS, SPATIAL, clipped
from jumar.operators.cpu.prepare import convert_task
from jumar.operators.cpu.rows_kernel import neutral
from jumar.operators.pooling import AvgPoolGrad, MaxPoolGrad
from jumar.operators.schedule import Lowered, Packed, Place, Task, TaskArg, Temp, TempPlace

LEAST_CHANNELS = 16  # of a chunk: a cache line of f32


@dataclass(frozen=True)
class Spread:
    """What the code depends on.   maximum: the first of a window's largest cells gets all; else each gets dy over its window's count.

    apart: sizes of windows that are whole and do not overlap, so that each of their cells is written once, and their code has no loops;
    tiled: they leave no cell between them or beside them.
    """

    maximum: bool
    dtype: DType
    lanes: int
    masked: bool
    apart: tuple[int, ...] = ()
    tiled: bool = False


def lower_pool_gradient(node: Node, target: Target) -> Lowered | None:
    """The tasks of a gradient with channels last."""
    op = node.op
    assert isinstance(op, MaxPoolGrad | AvgPoolGrad) and op.channels_last, "a gradient of a pool, channels last"
    dy, dtype = node.inputs[-1], node.dtype
    if len(op.kernel) > SPATIAL or compute_dtype(dtype).kind != "f":
        return None
    if node.type.size == 0:
        return Lowered()
    n, *spatial, channels = node.shape
    out = dy.shape[1:-1]
    extra = (1,) * (SPATIAL - len(spatial))
    sizes, outs = (*extra, *spatial), (*extra, *out)
    pool = op if isinstance(op, MaxPoolGrad) else op.pool
    tables = [np.array([[0, 1]])] * len(extra) + [clipped(pool, axis, spatial[axis], out[axis]) for axis in range(len(spatial))]
    strides = [s * channels for s in dense(sizes)]
    steps = [d * s for d, s in zip([0] * len(extra) + list(op.dilations), strides, strict=True)]
    wide = compute_dtype(dtype)
    lanes = target.lanes(wide)
    masked = lanes > 1 and masks_are_cheap([dtype, wide], target)
    block = channels
    while n * -(-channels // block) < 4 * target.cores and block > LEAST_CHANNELS:
        block = max(LEAST_CHANNELS, -(-block // 2 // LEAST_CHANNELS) * LEAST_CHANNELS)
    result: TaskArg = Place(node) if dtype is wide else TempPlace(Temp(node.type.size * wide.nbytes, "wide"))
    args: list[TaskArg] = [Place(dy), result]
    if isinstance(op, MaxPoolGrad):
        args.append(Place(node.inputs[0]))
    else:
        args.append(Packed((1 / np.maximum(op.pool.counts(spatial), 1)).astype(wide.numpy), "shares"))
    args += [Packed(t.astype(np.int64), "window") for t in tables]
    blocks = -(-channels // block)
    args += [channels, block, blocks, math.prod(sizes), *outs, *strides, *steps]
    nbytes = sum(i.type.nbytes for i in node.inputs) + node.type.nbytes
    window = (*extra, *pool.kernel)
    whole = all((t[:, 1] == size).all() for t, size in zip(tables, window, strict=True))
    apart = math.prod(window) <= MOST_CELLS and whole and all(s >= k for s, k in zip(pool.strides, pool.kernel, strict=True))
    apart = apart and set(pool.dilations) == {1}
    tiled = apart and math.prod(outs) * math.prod(window) == math.prod(sizes)
    kernel = pool_grad_kernel(Spread(isinstance(op, MaxPoolGrad), dtype, lanes, masked, window if apart else (), tiled))
    tasks = [Task(kernel, tuple(args), (1,), n * blocks, nbytes=nbytes, label=op.name)]
    if isinstance(result, TempPlace):
        task, _ = convert_task(result, wide, dtype, node.type.size, lanes)
        tasks.append(Task(task.kernel, (result, Place(node), *task.args[2:]), (1,), task.chunks, nbytes=task.nbytes, label="convert"))
    return Lowered(tuple(tasks))


@functools.cache
def pool_grad_kernel(spread: Spread) -> Kernel:
    """A chunk: some channels of one image."""
    k = Builder("pool_grad")
    wide = compute_dtype(spread.dtype)
    dy, dx = k.pointer("dy", spread.dtype), k.pointer("dx", wide)
    if spread.maximum:
        x = k.pointer("x", spread.dtype)
    else:
        shares = k.pointer("shares", wide)
    tables = [k.pointer(f"table{i}", i64) for i in range(SPATIAL)]
    channels, block, blocks, cells = k.integer("channels"), k.integer("block"), k.integer("blocks"), k.integer("cells")
    outs = [k.integer(f"out{i}") for i in range(SPATIAL)]
    strides = [k.integer(f"stride{i}") for i in range(SPATIAL)]
    steps = [k.integer(f"step{i}") for i in range(SPATIAL)]
    image, begin = k.chunk / blocks, (k.chunk % blocks) * block
    end = k.minimum(begin + block, channels)
    first = image * cells * channels
    windows = image * outs[0] * outs[1] * outs[2]

    def window(c: Value, lanes: int, mask: Value | None, here: Value, number: Value, cell: Value, counts: list[Value]) -> None:
        """One window for the channels from `c`.   here: its first cell; number: of the window; cell: of the window in its image."""
        gradient = load(k, dy, number * channels + c, lanes, mask)
        if spread.maximum:
            found = k.var(k.const(neutral("max", wide), wide, lanes))
            with k.loop(0, counts[0]) as a, k.loop(0, counts[1]) as b, k.loop(0, counts[2]) as d:
                found.set(k.maximum(found.get(), load(k, x, here + a * steps[0] + b * steps[1] + d * steps[2] + c, lanes, mask)))
            best = found.get()
        else:
            gradient = gradient * k.splat(k.load(shares, cell), lanes)
        left = k.var(gradient)
        with k.loop(0, counts[0]) as a, k.loop(0, counts[1]) as b, k.loop(0, counts[2]) as d:
            at = here + a * steps[0] + b * steps[1] + d * steps[2] + c
            before = k.load(dx, at, lanes, mask)
            if spread.maximum:
                value = load(k, x, at, lanes, mask)
                hit = k.logical_or(k.equal(value, best), k.is_nan(value))
                zero = k.const(0, wide, lanes)
                k.store(before + k.select(hit, left.get(), zero), dx, at, mask)
                left.set(k.select(hit, zero, left.get()))
            else:
                k.store(before + left.get(), dx, at, mask)

    def window_apart(c: Value, lanes: int, mask: Value | None, here: Value, number: Value, cell: Value, counts: list[Value]) -> None:
        """The same for windows apart from each other: all that belongs to one is in registers."""
        gradient = load(k, dy, number * channels + c, lanes, mask)
        at = [
            here + sum((step * i for step, i in zip(steps, place, strict=True)), c)
            for place in itertools.product(*(range(size) for size in spread.apart))
        ]
        if not spread.maximum:
            gradient = gradient * k.splat(k.load(shares, cell), lanes)
            for place in at:
                k.store(gradient, dx, place, mask)
            return
        values = [load(k, x, place, lanes, mask) for place in at]
        best = functools.reduce(k.maximum, values)
        zero = k.const(0, wide, lanes)
        for place, value in zip(at, values, strict=True):
            hit = k.logical_or(k.equal(value, best), k.is_nan(value))
            k.store(k.select(hit, gradient, zero), dx, place, mask)
            gradient = k.select(hit, zero, gradient)

    def across(visit: Callable[[Value, int, Value | None], None]) -> None:
        """visit(c, lanes, mask) for all channels of the chunk."""
        rest, lanes = begin, spread.lanes
        if lanes > 1:
            rest = begin + (end - begin) / lanes * lanes
            with k.loop(begin, rest, lanes) as c:
                visit(c, lanes, None)
        if spread.masked:
            with k.loop(rest, end, lanes) as c:
                visit(c, lanes, k.lane_mask(end - c, lanes))
            return
        with k.loop(rest, end) as c:
            visit(c, 1, None)

    if not spread.tiled:
        with k.loop(0, cells) as cell:
            row = first + cell * channels
            across(lambda c, lanes, mask: k.store(k.const(0, wide, lanes), dx, row + c, mask))
    spread_window = window_apart if spread.apart else window
    with k.loop(0, outs[0]) as o0, k.loop(0, outs[1]) as o1, k.loop(0, outs[2]) as o2:
        begins = [k.load(t, o * 2) for t, o in zip(tables, (o0, o1, o2), strict=True)]
        counts = [k.load(t, o * 2 + 1) for t, o in zip(tables, (o0, o1, o2), strict=True)]
        here = first + begins[0] * strides[0] + begins[1] * strides[1] + begins[2] * strides[2]
        cell = (o0 * outs[1] + o1) * outs[2] + o2
        across(lambda c, lanes, mask: spread_window(c, lanes, mask, here, windows + cell, cell, counts))
    return k.finish()
