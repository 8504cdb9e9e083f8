"""Filters of convolutions: how they lie in memory, and packed panels of them, made at compile time or by a task of each run.

In: the filters of a convolution, or of one of its gradients, which reads the same memory with channels and filters exchanged and taps
reversed.  Out: panels [groups, panels, taps, channels, columns], in the order in which the micro-kernel reads them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from jumar.base import Array, DType, i64
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.cpu.epilogue import modulo, quotient
from jumar.operators.cpu.microkernel import Tile
from jumar.operators.cpu.packing import pack_panels
from jumar.operators.cpu.prepare import pack_task, transpose_block
from jumar.operators.schedule import Packed, Task, TaskArg, Temp, TempPlace


@dataclass(frozen=True)
class Filters:
    """Filter f, channel c, tap t of group g is at g * group_step + f * filter_step + c * channel_step + taps[t], in elements.

    filters, channels: of one group.
    """

    groups: int
    filters: int
    channels: int
    taps: tuple[int, ...]
    group_step: int
    filter_step: int
    channel_step: int

    @property
    def size(self) -> int:
        """Elements that are read."""
        return self.groups * self.filters * self.channels * len(self.taps)

    def matrix(self, w: Array) -> Array:
        """[groups, taps * channels, filters] of filters that are known."""
        flat = np.ascontiguousarray(w).reshape(-1)
        size = flat.itemsize
        steps = (self.group_step * size, self.channel_step * size, self.filter_step * size)
        views = [np.lib.stride_tricks.as_strided(flat[t:], (self.groups, self.channels, self.filters), steps) for t in self.taps]
        return np.stack(views, axis=1).reshape(self.groups, len(self.taps) * self.channels, self.filters)


def forward(groups: int, filters: int, channels: int, taps: int) -> Filters:
    """Those of a convolution: w is [groups * filters, channels, taps]."""
    return Filters(groups, filters, channels, tuple(range(taps)), filters * channels * taps, channels * taps, taps)


def backward(groups: int, filters: int, channels: int, taps: int, chosen: Sequence[int]) -> Filters:
    """Those of its input's gradient, for the same w: each channel of x is a filter over the channels of dy.   chosen: taps, in order."""
    return Filters(groups, channels, filters, tuple(chosen), filters * channels * taps, taps, channels * taps)


def packed_filters(w: TaskArg, value: Array | None, dtype: DType, filters: Filters, tile: Tile, tasks: list[Task]) -> TaskArg:
    """Where the panels are.   value: of w, where it is constant; else a task that makes them is added to `tasks`."""
    if value is not None:
        return Packed(pack_panels(filters.matrix(value), tile), "weights")
    if len(filters.taps) == 1 and 1 in (filters.filter_step, filters.channel_step):
        transposed = filters.channel_step == 1
        places = np.arange(filters.groups, dtype=np.int64) * filters.group_step + filters.taps[0]
        pitch = filters.filter_step if transposed else filters.channel_step
        task, temp = pack_task(w, dtype, tile, places, filters.channels, filters.filters, pitch, transposed=transposed)
        tasks.append(task)
        return temp
    panels = -(-filters.filters // tile.columns)
    temp = TempPlace(Temp(filters.groups * panels * len(filters.taps) * filters.channels * tile.columns * tile.dtype.nbytes, "weights"))
    run = _run(filters)
    args = (
        w, temp, Packed(run.lines, "lines"), filters.filters, panels, filters.group_step, filters.filter_step,
        run.outer, run.outer_step, len(run.lines), run.outer_lines, len(filters.taps) * filters.channels,
    )  # fmt: skip
    kernel = pack_filters_kernel(dtype, tile, bool((run.lines < 0).any()))
    nbytes = filters.size * dtype.nbytes + temp.temp.nbytes
    tasks.append(Task(kernel, args, (1,), filters.groups * panels, nbytes=nbytes, label="pack filters"))
    return temp


@dataclass(frozen=True)
class _Run:
    """Elements of one filter that lie side by side: `outer` runs of len(lines), `outer_step` apart.

    lines: for each element of a run the line of the panel that it goes to (-1: to none); each further run goes `outer_lines` further.
    """

    lines: Array
    outer: int
    outer_step: int
    outer_lines: int


def _run(filters: Filters) -> _Run:
    taps = len(filters.taps)
    if filters.channel_step == taps and filters.taps == tuple(range(taps)):  # all of a filter is one run
        at = np.arange(filters.channels * taps)
        return _Run((at % taps) * filters.channels + at // taps, 1, 0, 0)
    first, last = min(filters.taps), max(filters.taps)
    assert first >= 0, "taps lie behind the filter's first element"
    lines = np.full(last + 1, -1, np.int64)
    lines[list(filters.taps)] = np.arange(taps) * filters.channels
    return _Run(lines, filters.channels, filters.channel_step, 1)


@cache
def pack_filters_kernel(source: DType, tile: Tile, partial: bool) -> Kernel:
    """Panels of filters that are computed; a chunk is one panel.   partial: some elements of a run go to no line.

    Square blocks of `lanes` filters by `lanes` elements are turned in registers; each row of the result has its own line.  The columns
    after the last filter repeat it: what is computed from them is never written.
    """
    k = Builder("pack_filters")
    w, packed, lines = k.pointer("w", source), k.pointer("packed", tile.dtype), k.pointer("lines", i64)
    filters, panels, group_step, filter_step = (k.integer(n) for n in ("filters", "panels", "group_step", "filter_step"))
    outer, outer_step, run, outer_lines, depth = (k.integer(n) for n in ("outer", "outer_step", "run", "outer_lines", "depth"))
    lanes, columns = tile.lanes, tile.columns
    panel = modulo(k, k.chunk, panels)
    start = k.offset(w, quotient(k, k.chunk, panels) * group_step)
    out = k.offset(packed, k.chunk * depth * columns)
    whole = run - modulo(k, run, k.index(lanes))
    for block in range(0, columns, lanes):
        rows = [k.offset(start, k.minimum(panel * columns + block + j, filters - 1) * filter_step) for j in range(lanes)]
        with k.loop(0, outer) as o:
            here = [k.offset(row, o * outer_step) for row in rows]

            def put(vector: Value, element: Value, o: Value = o, block: int = block) -> None:
                line = k.load(lines, element)
                if not partial:
                    k.store(vector, out, (line + o * outer_lines) * columns + block)
                    return
                with k.when(line >= 0):
                    k.store(vector, out, (line + o * outer_lines) * columns + block)

            with k.loop(0, whole, lanes) as e:
                turned = transpose_block(k, [k.convert(k.load(row, e, lanes), tile.dtype) for row in here])
                for r, vector in enumerate(turned):
                    put(vector, e + r)
            with k.loop(whole, run) as e:
                vector = k.splat(k.convert(k.load(here[0], e), tile.dtype), lanes)
                for lane in range(1, lanes):
                    vector = k.insert(vector, k.convert(k.load(here[lane], e), tile.dtype), lane)
                put(vector, e)
    return k.finish()


def channel_filters(
    w: TaskArg,
    value: Array | None,
    dtypes: tuple[DType, DType],
    channels: int,
    all_taps: int,
    taps: Sequence[int],
    lanes: int,
    tasks: list[Task],
) -> TaskArg:
    """Filters of one channel each, [taps, channels filled up to whole vectors].

    w: [channels, all_taps], of the first of `dtypes`; taps: those that are wanted, in order.
    """
    source, result = dtypes
    pitch = -(-channels // lanes) * lanes
    if value is not None:
        packed = np.zeros((len(taps), pitch), result.numpy)
        packed[:, :channels] = value.reshape(channels, all_taps)[:, list(taps)].T
        return Packed(packed, "filters")
    temp = TempPlace(Temp(len(taps) * pitch * result.nbytes, "filters"))
    block = max(lanes, 2048 // max(1, len(taps)) // lanes * lanes)
    args = (w, temp, Packed(np.array(taps, np.int64), "taps"), channels, all_taps, len(taps), pitch, block)
    nbytes = channels * len(taps) * source.nbytes + temp.temp.nbytes
    kernel = channel_filters_kernel(source, result, lanes)
    tasks.append(Task(kernel, args, (1,), math.ceil(pitch / block), nbytes=nbytes, label="pack filters"))
    return temp


@cache
def channel_filters_kernel(source: DType, result: DType, lanes: int) -> Kernel:
    """packed[t, c] = w[c, taps[t]]; a chunk is a block of channels; those after the last repeat it."""
    k = Builder("channel_filters")
    w, packed, taps = k.pointer("w", source), k.pointer("packed", result), k.pointer("taps", i64)
    channels, all_taps, count, pitch, block = (k.integer(n) for n in ("channels", "all_taps", "count", "pitch", "block"))
    first = k.chunk * block
    with k.loop(first, k.minimum(first + block, pitch), lanes) as c:
        rows = [k.offset(w, k.minimum(c + j, channels - 1) * all_taps) for j in range(lanes)]
        with k.loop(0, count) as t:
            tap = k.load(taps, t)
            vector = k.splat(k.convert(k.load(rows[0], tap), result), lanes)
            for lane in range(1, lanes):
                vector = k.insert(vector, k.convert(k.load(rows[lane], tap), result), lane)
            k.store(vector, packed, t * pitch + c)
    return k.finish()
