"""Matrix products: `MatMul` in all its forms as tasks of gemm.py's kernel.

In: a group (root.py) whose root is a MatMul.  Out: tasks: conversion of narrow types, packing where w is no constant, the product with its
epilogue.  A product by one matrix is one product however many dimensions x has; else every matrix is a batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jumar.base import Array, TensorType
from jumar.device import Target
from jumar.kernel import Kernel
from jumar.operators.attention import Attention
from jumar.operators.contraction import accumulator
from jumar.operators.conv_grad import ConvGradInput
from jumar.operators.cpu.blocking import HALF, UNDER_HALF, Blocks, choose_blocks
from jumar.operators.cpu.epilogue import Axes, Layout
from jumar.operators.cpu.gemm import Shape, contraction_kernel
from jumar.operators.cpu.microkernel import Tile, micro_kernel, register_tile
from jumar.operators.cpu.packing import pack_panels
from jumar.operators.cpu.prepare import converted, pack_task
from jumar.operators.cpu.root import RootGroup, matrix_axes, turned
from jumar.operators.families import Contraction
from jumar.operators.schedule import Lowered, Packed, Task, TaskArg


@dataclass(frozen=True)
class Product:
    """Sizes of a product: batches x [rows, depth] x [depth, columns]; x_places, w_places: which matrix each batch reads."""

    rows: int
    depth: int
    columns: int
    x_places: Array
    w_places: Array

    @property
    def batches(self) -> int:
        return len(self.x_places)

    @property
    def axes(self) -> Axes:
        return matrix_axes(self.batches, self.rows, self.columns)


def product_of(x: TensorType, w: TensorType) -> Product:
    """The sizes of a MatMul.

    >>> from jumar.ir import f32t
    >>> product_of(f32t(2, 5, 4, 3), f32t(3, 7)).rows
    40
    """
    depth = x.dims[-1]
    rows = x.dims[-2] if x.rank > 1 else 1
    columns = w.dims[-1] if w.rank > 1 else 1
    x_batch, w_batch = x.dims[:-2], w.dims[:-2]
    one = np.zeros(1, np.int64)
    if math.prod(w_batch) == 1:
        return Product(math.prod(x_batch) * rows, depth, columns, one, one)
    batch = np.broadcast_shapes(x_batch, w_batch)
    x_places, w_places = (
        np.ascontiguousarray(np.broadcast_to(np.arange(math.prod(b)).reshape(b), batch)).reshape(-1).astype(np.int64)
        for b in (x_batch, w_batch)
    )
    return Product(rows, depth, columns, x_places, w_places)


def lower_matmul(group: RootGroup, target: Target) -> Lowered | None:
    """The tasks of a group around a MatMul."""
    x, w = group.root.inputs
    if group.root.type.size == 0 or x.type.size == 0:
        return None
    tile = register_tile(target, accumulator(group.root.dtype))
    p = product_of(x.type, w.type)
    layout = group.layout(p.axes, tile.columns)
    if layout is None:
        return None
    tasks: list[Task] = []
    source = converted(group.place(x), group.root, tile.dtype, tile.lanes, tasks)
    source_w = None if w in group.outer else turned(group.root, w)  # packing turns it
    w = source_w or w
    value, panels, panel_sizes = group.array(w), group.place(w), -(-p.columns // tile.columns) * p.depth * tile.columns
    matrices = w.type.size // (p.depth * p.columns)
    if value is not None:
        whole = value.reshape(matrices, p.columns, p.depth).swapaxes(1, 2) if source_w else value.reshape(matrices, p.depth, p.columns)
        panels = Packed(pack_panels(whole, tile), "weights")
    else:
        each = np.arange(matrices, dtype=np.int64) * (p.depth * p.columns)
        pitch = p.depth if source_w else p.columns
        task, panels = pack_task(panels, w.dtype, tile, each, p.depth, p.columns, pitch, transposed=source_w is not None)
        tasks.append(task)
    blocks = choose_blocks(p.rows, p.columns, p.depth, 1, tile, target, p.batches)
    places = place_table(p.x_places * (p.rows * p.depth), p.w_places * panel_sizes, layout)
    tasks.append(product_task(group, layout, blocks, source, panels, places, p.depth))
    return Lowered(tuple(tasks))


def place_table(x: Array, w: Array, layout: Layout) -> Packed:
    """Offsets of each batch in x, w, outputs and operands, in elements."""
    return Packed(np.ascontiguousarray(np.stack(np.broadcast_arrays(x, w, *layout.offsets), axis=-1).astype(np.int64)), "places")


def product_task(group: RootGroup, layout: Layout, blocks: Blocks, x: TaskArg, w: TaskArg, places: Packed, pitch: int) -> Task:
    """The contraction kernel on rows that are `pitch` elements apart."""
    kernel = contraction_kernel(Shape(blocks.tile, layout.epilogue, last=blocks.last))
    head: tuple[TaskArg, ...] = (*tiles_of(blocks), x, w, places, *blocks.args, pitch)
    return contraction_task(group, layout, blocks, kernel, head)


def tiles_of(blocks: Blocks, *, windows: bool = False) -> tuple[TaskArg, ...]:
    """The micro-kernels of a contraction, in the order of gemm.py's parameters."""
    whole = micro_kernels(blocks.tile, blocks.tile.rows if windows else blocks.rows)
    half = blocks.tile.half
    narrow = (micro_kernel(half), micro_kernel(blocks.tile.with_rows(blocks.tile.small).half)) if blocks.last in (HALF, UNDER_HALF) else ()
    return (*whole, *narrow)


def micro_kernels(tile: Tile, rows: int = 3) -> tuple[TaskArg, TaskArg]:
    """The two tiles that cover any number of rows.   One or two rows of a product (one tap) get tiles with sums apart for each step of k."""
    small = tile.with_rows(rows, 4 // rows) if rows <= 2 else tile.with_rows(tile.small)
    return micro_kernel(tile), micro_kernel(small)


def contraction_task(group: RootGroup, layout: Layout, blocks: Blocks, kernel: Kernel, head: tuple[TaskArg, ...]) -> Task:
    """A task of gemm.py's kernel: `head`, then the epilogue's arguments."""
    return writing_task(group, layout, kernel, head, blocks.chunks, blocks.scratch_nbytes)


def writing_task(group: RootGroup, layout: Layout, kernel: Kernel, head: tuple[TaskArg, ...], chunks: int, scratch_nbytes: int) -> Task:
    """The task that writes a group's results: `head`, then the epilogue's arguments."""
    root = group.root
    tail = group.writer_args(layout)
    step = len(tail) // (len(layout.outputs) + len(layout.operands))
    writes = tuple(len(head) + i * step for i in range(len(layout.outputs)))
    # an operand that lies exactly as an output does may be overwritten by it: a row's operands are read before its outputs are written
    inplace = tuple(
        (written, len(head) + (len(writes) + i) * step)
        for written, output in zip(writes, layout.outputs, strict=True)
        for i, spot in enumerate(layout.operands)
        if spot.lie == output.lie and spot.strides == output.strides and np.array_equal(spot.offsets, output.offsets)
    )
    assert isinstance(root.op, Contraction | Attention | ConvGradInput), "the root of a group"
    flops = root.op.flops(*(i.type for i in root.inputs))
    nbytes = sum(s.node.type.nbytes for s in (*layout.outputs, *layout.operands)) + sum(i.type.nbytes for i in root.inputs)
    pitched = tuple(p for i, s in enumerate(layout.outputs) for p in s.pitched(len(head) + i * step))
    return Task(
        kernel, (*head, *tail), writes, chunks, inplace, scratch_nbytes, flops=flops, nbytes=nbytes, label=root.op.name, pitched=pitched
    )  # fmt: skip
