"""RoiAlign: for each box a grid of bins, each the mean or the maximum of points between cells.

In: RoiAlign nodes.  Out: one task; a chunk is one box.  Where a point lies and what its four cells weigh is the same for all channels,
so a block of channels is in registers while the points of a bin are gone through.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from jumar.base import NATIVE, DType, f64, i64
from jumar.device import Target
from jumar.ir import Node
from jumar.kernel import Builder, Kernel, Value, Variable
from jumar.operators.cpu.expression import compute_dtype, load, store
from jumar.operators.cpu.gather import IN_RANGE, Bounds
from jumar.operators.image import RoiAlign
from jumar.operators.schedule import Lowered, Place, Task, TaskArg, schedule

BLOCK = 8  # channels in registers


@schedule("cpu", RoiAlign)
def lower_roi_align(node: Node, target: Target) -> Lowered | None:
    """One task over boxes."""
    op, (x, rois, batch) = node.op, node.inputs
    assert isinstance(op, RoiAlign), "registered for RoiAlign"
    if not (x.dtype in NATIVE and x.dtype.is_float and rois.dtype in NATIVE and rois.dtype.is_float) or x.type.size == 0:
        return None
    if node.type.size == 0:
        return Lowered()
    kernel = roi_align_kernel(x.dtype, rois.dtype, batch.dtype, op.mode == "max", op.sampling, float(op.scale), op.half_pixel)
    args: tuple[TaskArg, ...] = (Place(x), Place(rois), Place(batch), Place(node), *x.shape, *op.out)
    return Lowered((Task(kernel, args, (3,), rois.shape[0], nbytes=x.type.nbytes + node.type.nbytes, label=op.name, fault=IN_RANGE),))


@functools.cache
def roi_align_kernel(dtype: DType, box: DType, index: DType, largest: bool, sampling: int, scale: float, half_pixel: bool) -> Kernel:
    """y[chunk, c, i, j]."""
    k = Builder("roi_align")
    x, rois, batch, y = k.pointer("x", dtype), k.pointer("rois", box), k.pointer("batch", index), k.pointer("y", dtype)
    n, c, h, w, out_h, out_w = (k.integer(name) for name in ("n", "c", "h", "w", "out_h", "out_w"))
    sides = (h, w)
    bounds = Bounds(k)
    image = k.offset(x, bounds.inside(k.load(batch, k.chunk), n) * c * h * w)
    bounds.tell()
    result = k.offset(y, k.chunk * c * out_h * out_w)
    # in double, as the reference: a size that is nearly whole decides how many points there are
    x1, y1, x2, y2 = (k.convert(load(k, rois, k.chunk * 4 + i), f64) * scale - (0.5 if half_pixel else 0.0) for i in range(4))
    starts, sizes, counts = [], [], []
    for low, high, out in ((y1, y2, out_h), (x1, x2, out_w)):
        size = high - low if half_pixel else k.maximum(high - low, 1.0)
        size = size / k.convert(out, f64)
        starts.append(low)
        sizes.append(size)
        counts.append(k.index(sampling) if sampling else k.maximum(k.convert(k.ceil(size), i64), 0))
    kind = compute_dtype(dtype)

    def points(bins: Sequence[Value], channel: Value, width: int) -> None:
        totals = [k.var(k.const(-float("inf") if largest else 0.0, kind)) for _ in range(width)]
        source = k.offset(image, channel * h * w)
        with k.loop(0, counts[0]) as iy, k.loop(0, counts[1]) as ix:
            at = [_point(k, starts[a], sizes[a], bins[a], i, counts[a]) for a, i in enumerate((iy, ix))]
            near = k.logical_and(*(k.logical_and(p >= -1.0, p <= k.convert(s, f64)) for p, s in zip(at, sides, strict=True)))
            with k.when(near):
                ys, xs = (_cells(k, p, s) for p, s in zip(at, sides, strict=True))
                cells = [(i * w + j, k.convert(a * b, kind)) for i, a in ys for j, b in xs]
                for number, total in enumerate(totals):
                    here = k.offset(source, h * w * number)
                    _add(k, total, [(load(k, here, cell), weight) for cell, weight in cells], largest)
            if largest:
                with k.when(~near):
                    for total in totals:
                        total.set(k.maximum(total.get(), 0.0))
        count = counts[0] * counts[1]
        for number, total in enumerate(totals):
            value = total.get() if largest else total.get() / k.convert(k.maximum(count, 1), kind)
            to = ((channel + number) * out_h + bins[0]) * out_w + bins[1]
            store(k, k.select(count == 0, k.const(0.0, kind), value), result, to)

    whole = c / BLOCK * BLOCK
    for first, last, width in ((k.index(0), whole, BLOCK), (whole, c, 1)):
        with k.loop(first, last, width) as channel, k.loop(0, out_h) as i, k.loop(0, out_w) as j:
            points((i, j), channel, width)
    return k.finish()


def _point(k: Builder, start: Value, size: Value, bin: Value, number: Value, count: Value) -> Value:
    """Where a point lies along one axis."""
    part = (k.convert(number, f64) + 0.5) / k.convert(count, f64)
    return start + (k.convert(bin, f64) + part) * size


def _cells(k: Builder, point: Value, side: Value) -> list[tuple[Value, Value]]:
    """The two cells around a point along one axis, with their weights."""
    point = k.clamp(point, 0.0, k.convert(side - 1, f64))
    whole = k.floor(point)
    low = k.convert(whole, i64)
    return [(low, 1.0 - (point - whole)), (k.minimum(low + 1, side - 1), point - whole)]


def _add(k: Builder, total: Variable, cells: Sequence[tuple[Value, Value]], largest: bool) -> None:
    """A point's four cells into the total of a bin.   The maximum is of the weighted cells, as ONNX defines it."""
    value = total.get()
    for cell, weight in cells:
        value = k.maximum(value, cell * weight) if largest else k.fma(cell, weight, value)
    total.set(value)
