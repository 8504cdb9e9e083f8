"""Products and convolutions of 8-bit codes as tasks of integer_gemm.py's kernel.

In: a group (root.py) whose root is a MatMul or a channels-last Conv of bytes by i8.  Out: tasks; None where the weights are of another
type (or filters that are computed), which go by 32-bit integers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jumar.base import i8, i32, u8
from jumar.device import Target
from jumar.ir import Node
from jumar.operators.contraction import Conv, MatMul
from jumar.operators.cpu.conv import RUN_CHANNELS, Geometry, runs_of, window_tables
from jumar.operators.cpu.epilogue import Axes, Layout
from jumar.operators.cpu.filters import Filters
from jumar.operators.cpu.integer_gemm import ByteBlocks, ByteShape, byte_blocks, byte_kernel, panel_nbytes
from jumar.operators.cpu.integer_microkernel import STEP, ByteTile, byte_micro_kernel, byte_tile
from jumar.operators.cpu.integer_packing import are_narrow, pack_bytes, pack_bytes_task
from jumar.operators.cpu.matmul import place_table, product_of, writing_task
from jumar.operators.cpu.prepare import border_task
from jumar.operators.cpu.root import RootGroup, turned
from jumar.operators.schedule import Lowered, Packed, Task, TaskArg


def of_bytes(root: Node) -> bool:
    """Whether a contraction multiplies 8-bit codes by signed ones."""
    x, w = root.inputs[:2]
    return x.dtype in (u8, i8) and w.dtype is i8 and root.dtype is i32


def tiled_layout(group: RootGroup, axes: Axes, target: Target, columns: int, narrow: bool) -> tuple[ByteTile, Layout] | None:
    """The widest tile in which the epilogue's values lie, and how they do."""
    tile = byte_tile(target, group.root.inputs[0].dtype, columns, narrow)
    while True:
        layout = group.layout(axes, tile.columns)
        if layout is not None:
            return tile, layout
        if tile.vectors == 1:
            return None
        tile = ByteTile(tile.rows, tile.vectors // 2, tile.lanes, tile.x, tile.flip, tile.narrow, 2 if tile.vectors == 2 else 1)


def lower_byte_product(group: RootGroup, target: Target) -> Lowered | None:
    """The tasks of a group around a MatMul of bytes."""
    root = group.root
    x, w = root.inputs
    assert isinstance(root.op, MatMul), "a product"
    p = product_of(x.type, w.type)
    if 0 in (p.rows, p.columns, p.depth, p.batches):
        return None
    source_w = None if w in group.outer else turned(root, w)
    w = source_w or w
    matrices, value = w.type.size // (p.depth * p.columns), group.array(w)
    known = None
    if value is not None:
        known = value.reshape(matrices, p.columns, p.depth).swapaxes(1, 2) if source_w else value.reshape(matrices, p.depth, p.columns)
        known = known[:, None]
    found = tiled_layout(group, p.axes, target, p.columns, known is not None and are_narrow(known))
    if found is None:
        return None
    tile, layout = found
    tasks: list[Task] = []
    place: TaskArg = group.place(x)
    if p.depth % STEP:  # the last step of the last row reads behind it
        task, place = border_task(place, x.dtype, target.lanes(x.dtype), 1, (0, x.type.size, 0), behind=STEP)
        tasks.append(task)
    panels: TaskArg
    if known is not None:
        panels = Packed(pack_bytes(known, tile, root.op.x_zero), "weights")
    else:
        each = np.arange(matrices, dtype=np.int64) * (p.depth * p.columns)
        pitch = p.depth if source_w else p.columns
        task, panels = pack_bytes_task(
            group.place(w), tile, each, p.depth, p.columns, pitch, root.op.x_zero, transposed=source_w is not None
        )  # fmt: skip
        tasks.append(task)
    blocks = byte_blocks(p.rows, p.columns, p.depth, 1, tile, target, p.batches)
    places = place_table(p.x_places * (p.rows * p.depth), p.w_places * (blocks.panels * blocks.panel_nbytes), layout)
    tasks.append(_task(group, layout, blocks, target, place, panels, places, (p.depth,), windows=False))
    return Lowered(tuple(tasks))


def lower_byte_conv(group: RootGroup, g: Geometry, filters: Filters, target: Target) -> Lowered | None:
    """The tasks of a group around a channels-last Conv of bytes, its bias already in the epilogue."""
    root = group.root
    x, w = root.inputs
    assert isinstance(root.op, Conv), "a convolution"
    value, zero = group.array(w), root.op.x_zero
    if value is None:
        return None
    known = filters.matrix(value).reshape(g.groups, g.taps, g.inner, g.filters_each)
    runs = g.inner <= RUN_CHANNELS and g.groups == 1 and g.kernel[-1] > 1 and g.dilations[-1] == 1 and min(g.low[-1], g.high[-1]) >= 0
    windows = runs_of(g) if runs else g
    if runs:  # taps of the last dimension are one run of channels
        known = known.reshape(1, windows.taps, windows.inner, g.filters_each)
    found = tiled_layout(group, g.axes, target, g.filters_each, are_narrow(known))
    if found is None:
        return None
    tile, layout = found
    tasks: list[Task] = []
    place: TaskArg = group.place(x)
    if runs or windows.inner % STEP:
        rows, (low, size, high) = g.bordered
        sizes = (low, size, high) if runs else (0, size, 0)
        task, place = border_task(place, x.dtype, target.lanes(x.dtype), rows, sizes, zero, behind=STEP)
        tasks.append(task)
    each = np.arange(g.groups, dtype=np.int64)
    panels = -(-g.filters_each // tile.columns)
    pitch = panels * panel_nbytes(windows.taps, -(-windows.inner // STEP), tile)
    places = place_table(each * g.inner, each * pitch, layout)
    weights = Packed(pack_bytes(known, tile, zero), "weights")
    blocks = byte_blocks(g.rows, g.filters_each, windows.inner, windows.taps, tile, target, g.groups)
    if g.pointwise:
        tasks.append(_task(group, layout, blocks, target, place, weights, places, (g.channels,), windows=False))
        return Lowered(tuple(tasks))
    outer, inner = window_tables(windows, g.channels)
    zeros = np.full(-(-max(windows.inner, 1) // STEP) * STEP, zero, x.dtype.numpy)
    more = (Packed(zeros, "zeros"), Packed(outer, "outer"), Packed(inner, "inner"), inner.shape[0], outer.shape[1], inner.shape[1])
    tasks.append(_task(group, layout, blocks, target, place, weights, places, more, windows=True))
    return Lowered(tuple(tasks))


def _task(
    group: RootGroup,
    layout: Layout,
    blocks: ByteBlocks,
    target: Target,
    x: TaskArg,
    w: TaskArg,
    places: Packed,
    find: Sequence[TaskArg],
    *,
    windows: bool,
) -> Task:
    """The contraction.   find: what finds the rows of x."""
    tile = blocks.tile
    masks = target.has("avx512bw")
    shape = ByteShape(tile, layout.epilogue, windows, blocks.columns % tile.columns > 0, masks)
    head = (byte_micro_kernel(tile), byte_micro_kernel(tile.with_rows(tile.small)), x, w, places, *blocks.args, *find)
    return writing_task(group, layout, byte_kernel(shape), head, blocks.chunks, blocks.scratch_nbytes)
