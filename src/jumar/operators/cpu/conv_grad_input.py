"""The gradient of a convolution by its input: convolutions of dy, one for each phase of the input.

In: a group (root.py) whose root is a ConvGradInput, channels last.  Out: tasks of conv.py's, winograd.py's and depthwise.py's kernels.

Cell i of the input received from tap t of the output cell (i + pad - dilation * t) / stride, where that is whole.  Cells with one
remainder by the stride (a phase) have the same taps, so that each phase is a convolution with stride 1 by some of the taps, and no product
with zero is made.  Phases write every stride-th row of the result; what is fused behind follows them there.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np

from jumar.base import Array
from jumar.device import Target
from jumar.ir import Node
from jumar.operators.contraction import accumulator
from jumar.operators.conv_grad import ConvGradInput
from jumar.operators.cpu.blocking import choose_blocks
from jumar.operators.cpu.conv import Geometry, lower_conv, window_tasks
from jumar.operators.cpu.conv_grad_few import lower_few_channels
from jumar.operators.cpu.depthwise import depthwise_tasks, lower_depthwise
from jumar.operators.cpu.epilogue import FIXED, LINEAR, PERIODIC, Layout, Spot, Strides
from jumar.operators.cpu.filters import Filters, backward
from jumar.operators.cpu.matmul import place_table, product_task
from jumar.operators.cpu.microkernel import Tile, register_tile
from jumar.operators.cpu.prepare import convert_task
from jumar.operators.cpu.root import RootGroup, matrix_axes
from jumar.operators.cpu.winograd import lower_winograd
from jumar.operators.schedule import Lowered, Packed, Task, TaskArg
from jumar.operators.windows import split_channels


def gradient_geometry(root: Node) -> Geometry:
    """The sizes of the convolution of dy that the gradient is at stride 1 (its strides are not looked at)."""
    op, (dy, w) = root.op, root.inputs
    assert isinstance(op, ConvGradInput), "the gradient of a convolution's input"
    n, filters, out = split_channels(dy.shape, op.channels_last)
    _, channels, spatial = split_channels(op.x_shape, op.channels_last)
    if not spatial:
        return Geometry(n, (1,), filters, channels, op.groups, (1,), (1,), (1,), (0,), (0,), (1,))
    kernel = w.shape[2:]
    low = tuple(d * (k - 1) - p for d, k, p in zip(op.dilations, kernel, op.pads_low, strict=True))
    high = tuple(
        s - o - lo + d * (k - 1) for s, o, lo, d, k in zip(spatial, out, low, op.dilations, kernel, strict=True)
    )  # fmt: skip
    one = (1,) * len(spatial)
    return Geometry(n, out, filters, channels, op.groups, kernel, spatial, one, low, high, op.dilations)


def lower_input_gradient(group: RootGroup, target: Target) -> Lowered | None:
    """The tasks; None where what is fused behind does not follow the phases."""
    root = group.root
    op, dy = root.op, root.inputs[0]
    assert isinstance(op, ConvGradInput), "the gradient of a convolution's input"
    if root.type.size == 0 or dy.type.size == 0:
        return None
    g, x = gradient_geometry(root), group.place(dy)
    if all(s == 1 for s in op.strides):
        taps = range(g.taps - 1, -1, -1)
        if g.depthwise and (found := lower_depthwise(group, g, x, taps, target)):
            return found
        if found := lower_few_channels(group, g, x, target):
            return found
        filters = backward(g.groups, g.inner, g.filters_each, g.taps, taps)
        return lower_winograd(group, g, x, filters, target) or lower_conv(group, g, x, filters, target)
    return _Phases(group, op, g, x, target).lowered()


@dataclass(frozen=True)
class Phase:
    """Cells of the input with these remainders.   taps: flat numbers of the filter's taps that reach them; g: their convolution."""

    remainders: tuple[int, ...]
    taps: tuple[int, ...]
    g: Geometry


def phases_of(op: ConvGradInput, g: Geometry) -> list[Phase]:
    """All phases, each of which has at least one cell."""
    dims = [_phases_along(op, g, axis) for axis in range(len(g.out))]
    found = []
    for parts in itertools.product(*dims):
        taps = [0]
        for part, size in zip(parts, g.kernel, strict=True):
            taps = [t * size + u for t in taps for u in part.taps]
        fields = {name: tuple(getattr(p, name) for p in parts) for name in ("out", "low", "dilation")}
        kernel = tuple(len(p.taps) for p in parts)
        high = tuple(
            o - s - lo + d * (k - 1) for o, s, lo, d, k in zip(fields["out"], g.spatial, fields["low"], fields["dilation"], kernel, strict=True)
        )  # fmt: skip
        phase = replace(g, kernel=kernel, out=fields["out"], low=fields["low"], high=high, dilations=fields["dilation"])
        found.append(Phase(tuple(p.remainder for p in parts), tuple(taps), phase))
    return found


@dataclass(frozen=True)
class _Along:
    """One dimension of a phase.   taps: those that reach it, from the last to the first."""

    remainder: int
    taps: tuple[int, ...]
    out: int
    low: int
    dilation: int


def _phases_along(op: ConvGradInput, g: Geometry, axis: int) -> list[_Along]:
    stride, pad, dilation, kernel, size = op.strides[axis], op.pads_low[axis], op.dilations[axis], g.kernel[axis], g.out[axis]
    found = []
    for remainder in range(min(stride, size)):
        taps = tuple(t for t in range(kernel - 1, -1, -1) if (remainder + pad - dilation * t) % stride == 0)
        first = (remainder + pad - dilation * taps[0]) // stride if taps else 0
        count = -(-(size - remainder) // stride)
        found.append(_Along(remainder, taps, count, -first, dilation // math.gcd(dilation, stride)))
    return found


@dataclass(frozen=True)
class _Phases:
    """The tasks of a gradient with strides."""

    group: RootGroup
    op: ConvGradInput
    g: Geometry
    x: TaskArg
    target: Target

    def lowered(self) -> Lowered | None:
        group, g, dy = self.group, self.g, self.group.root.inputs[0]
        tile = register_tile(self.target, accumulator(group.root.dtype))
        layout = group.layout(g.axes, tile.columns)
        across = group.layout(matrix_axes(1, g.rows, g.filters), tile.lanes) if g.depthwise else None
        if layout is None:
            return None
        tasks: list[Task] = []
        x = self.x
        if dy.dtype is not tile.dtype:
            task, x = convert_task(x, dy.dtype, tile.dtype, dy.type.size, tile.lanes)
            tasks.append(task)
        assert isinstance(group.root.op, ConvGradInput), "the root"
        total = group.root.op.flops(*(i.type for i in group.root.inputs))
        for phase in phases_of(self.op, g):
            made = self.depthwise(phase, x, across) if across and phase.taps else None
            made = made or self.contraction(phase, x, layout, tile)
            if made is None:
                return None
            made[-1] = replace(
                made[-1], flops=2 * phase.g.n * phase.g.images * math.prod(phase.g.out) * len(phase.taps) * g.inner * g.filters
            )
            tasks += made
        assert sum(t.flops for t in tasks) <= 4 * total + 4, "phases share the products"
        return Lowered(tuple(tasks))

    def depthwise(self, phase: Phase, x: TaskArg, layout: Layout) -> list[Task] | None:
        found = phase_layout(layout, self.g, phase, self.op.strides)
        if found is None or found[1] > 1:
            return None
        return depthwise_tasks(self.group, phase.g, x, phase.taps, found[0], self.target)

    def contraction(self, phase: Phase, x: TaskArg, layout: Layout, tile: Tile) -> list[Task] | None:
        found = phase_layout(layout, self.g, phase, self.op.strides)
        if found is None:
            return None
        layout, images = found
        g = replace(phase.g, n=phase.g.n // images, images=images)
        if not phase.taps:
            return [self.nothing(g, layout, tile)]
        return window_tasks(self.group, g, x, self.filters(phase), layout, tile, self.target)

    def filters(self, phase: Phase) -> Filters:
        g = self.g
        return backward(g.groups, g.inner, g.filters_each, g.taps, phase.taps)

    def nothing(self, g: Geometry, layout: Layout, tile: Tile) -> Task:
        """Cells that no output read: products of one zero, so that what is fused behind is computed for them too."""
        batches = g.images * g.groups
        panels = -(-g.filters_each // tile.columns)
        zeros = Packed(np.zeros(panels * tile.columns, tile.dtype.numpy), "zeros")
        blocks = choose_blocks(g.rows, g.filters_each, 1, 1, tile, self.target, batches)
        none = np.zeros(batches, np.int64)
        return product_task(self.group, layout, blocks, zeros, zeros, place_table(none, none, layout), 0)


def phase_layout(layout: Layout, g: Geometry, phase: Phase, strides: tuple[int, ...]) -> tuple[Layout, int] | None:
    """The layout of a phase's rows, and how many images are batches of their own; None where two strides do not say where its rows are.

    layout: of all rows of the input, [n, *spatial].
    """
    size = math.prod(g.out)
    pitches = [math.prod(g.out[d + 1 :]) for d in range(len(g.out))]
    first = sum(r * p for r, p in zip(phase.remainders, pitches, strict=True))
    counts = phase.g.out
    levels = [(g.n, size), *((c, s * p) for c, s, p in zip(counts, strides, pitches, strict=True))]
    inner_count, inner_step = levels.pop()
    merged = [levels.pop()]
    while levels:
        count, step = levels.pop()
        if step == merged[-1][0] * merged[-1][1]:
            merged[-1] = (merged[-1][0] * count, merged[-1][1])
        else:
            merged.append((count, step))
    whole = any(s.lie.rows == PERIODIC for s in (*layout.operands, *layout.outputs))  # what an image has in common
    images = 1
    if len(merged) == 2 and merged[1] == (g.n, size):
        merged, images = merged[:1], g.n
    elif whole and len(merged) == 1 and merged[0][0] % g.n == 0:
        merged, images = [(merged[0][0] // g.n, merged[0][1])], g.n
    if len(merged) > 1:
        return None
    walk = _Walk(inner_count, merged[0][1], inner_step, first, images, size)
    operands, outputs = ([walk.spot(s) for s in spots] for spots in (layout.operands, layout.outputs))
    if any(s is None for s in (*operands, *outputs)):
        return None
    found = [tuple(s for s in spots if s is not None) for spots in (operands, outputs)]
    epilogue = replace(layout.epilogue, operands=tuple(s.lie for s in found[0]), outputs=tuple(s.lie for s in found[1]))
    return Layout(epilogue, found[0], found[1]), images


@dataclass(frozen=True)
class _Walk:
    """Row (i, j) of a phase is row first + i * outer + j * inner of all, j < period; each image has `size` of those."""

    period: int
    outer: int
    inner: int
    first: int
    images: int
    size: int

    def spot(self, spot: Spot) -> Spot | None:
        """A value along the rows of the phase."""
        s = spot.strides
        match spot.lie.rows:
            case "fixed":
                return replace(spot, offsets=self._offsets(spot.offsets, 0, 0))
            case "linear":
                return self._linear(spot, s.inner, self.size * s.inner)
            case _ if s.period == self.size and self.images > 1:
                return self._linear(spot, s.inner, s.outer)
        return None

    def _linear(self, spot: Spot, step: int, image: int) -> Spot:
        offsets = self._offsets(spot.offsets, self.first * step, image)
        if not step:
            return replace(
                spot, lie=replace(spot.lie, rows=FIXED), strides=replace(spot.strides, period=1, outer=0, inner=0), offsets=offsets
            )
        merged = self.outer == self.period * self.inner
        rows = LINEAR if merged else PERIODIC
        period, outer = (1, 0) if merged else (self.period, self.outer * step)
        strides = Strides(period, outer, self.inner * step, spot.strides.column_period, spot.strides.column_outer)
        return replace(spot, lie=replace(spot.lie, rows=rows), strides=strides, offsets=offsets)

    def _offsets(self, offsets: Array, first: int, image: int) -> Array:
        """[images * groups] from [groups]."""
        return np.asarray((np.arange(self.images)[:, None] * image + first + offsets[None, :]).reshape(-1))
