"""Attention: scores, softmax and the mean of the values for a block of queries of one head at a time.

In: a group (root.py) whose root is an Attention.  Out: tasks: k and v in panels, then the block kernel with its epilogue.
The scores of a block of rows stay in scratch, in L2; what the whole matrix of scores would take is never written.  Rows are not scaled
by their sum until the end, when there are only head_dim numbers left of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from jumar.base import Array, DType, bool_, i64
from jumar.device import Target
from jumar.kernel import Builder, Kernel, Value, math
from jumar.operators.attention import Attention
from jumar.operators.contraction import accumulator
from jumar.operators.cpu.blocking import covered
from jumar.operators.cpu.epilogue import Epilogue, Writer, modulo, quotient
from jumar.operators.cpu.expression import load
from jumar.operators.cpu.gemm import cover
from jumar.operators.cpu.matmul import micro_kernels, writing_task
from jumar.operators.cpu.microkernel import FULL, SMALL, Tile, register_tile
from jumar.operators.cpu.prepare import convert_task, pack_task
from jumar.operators.cpu.root import RootGroup, matrix_axes
from jumar.operators.schedule import Lowered, Packed, Task, TaskArg

PAD = 16  # elements between rows of scores, so that they do not fall on the same sets of the cache
HIDDEN = float("-inf")  # a score that cannot be seen; the least number is a score like others, as exporters write it into masks


@dataclass(frozen=True)
class Block:
    """What makes one attention kernel different from another.   mask: its element type and whether it differs along rows and columns."""

    tile: Tile
    epilogue: Epilogue
    causal: bool
    softcap: bool
    mask: tuple[DType, bool, bool] | None


SIZES = ("rows", "keys", "depth", "width", "row_block", "row_blocks", "pitch", "sums_at", "values_at", "offset")


@cache
def attention_kernel(block: Block) -> Kernel:
    """The kernel of a chunk: a block of rows of one head."""
    tile = block.tile
    columns = tile.columns
    k = Builder("attention")
    micro = (k.function_pointer("tile_full"), k.function_pointer("tile_small"))
    q, keys, values, places = k.pointer("q", tile.dtype), k.pointer("k", tile.dtype), k.pointer("v", tile.dtype), k.pointer("places", i64)
    mask = k.pointer("mask", block.mask[0]) if block.mask else None
    mask_pitch = k.integer("mask_pitch") if block.mask else k.index(0)
    scale, softcap = k.number("scale", tile.dtype), k.number("softcap", tile.dtype)
    n = {name: k.integer(name) for name in SIZES}
    out = Writer(k, block.epilogue)
    scratch = k.thread_scratch("scratch", 0, tile.dtype)

    row_part, batch = modulo(k, k.chunk, n["row_blocks"]), quotient(k, k.chunk, n["row_blocks"])
    place = k.offset(places, batch * (4 + len(out.lies)))
    first = row_part * n["row_block"]
    rows = k.minimum(n["row_block"], n["rows"] - first)
    fulls, smalls = cover(k, rows)
    heights = ((micro[0], FULL, k.index(0), fulls), (micro[1], SMALL, fulls * FULL, smalls))
    table = k.cast_pointer(scratch, i64)
    scores, sums = k.offset(scratch, n["sums_at"]), k.offset(scratch, n["values_at"])
    queries = k.offset(q, k.load(place, 0) + first * n["depth"])

    def pointers(base: Value, pitch: Value) -> None:
        for _, height, start, count in heights:
            with k.loop(0, count) as t:
                for i in range(height):
                    row = start + t * height + i
                    k.store_pointer(k.offset(base, k.minimum(row, rows - 1) * pitch), table, row)

    def product(b: Value, c: Value, c_pitch: Value, depth: Value) -> None:
        for function, height, start, count in heights:
            with k.loop(0, count) as t:
                row = start + t * height
                k.call(function, k.offset(table, row), 1, 0, depth, b, k.offset(c, row * c_pitch), c_pitch, 0, b)

    # with a causal mask no row of this block sees keys from `seen` on
    seen = k.maximum(k.minimum(n["keys"], first + rows + n["offset"]), 1) if block.causal else n["keys"]
    pointers(queries, n["depth"])
    head_keys = k.offset(keys, k.load(place, 1))
    with k.loop(0, seen, columns) as key:
        product(k.offset(head_keys, key * n["depth"]), k.offset(scores, key), n["pitch"], n["depth"])
    head_mask = None if mask is None else k.offset(mask, k.load(place, 3))
    with k.loop(0, rows) as row:
        line = k.offset(scores, row * n["pitch"])
        sees = k.minimum(seen, first + row + n["offset"] + 1) if block.causal else seen
        mask_line = None if head_mask is None else k.offset(head_mask, (first + row) * mask_pitch)
        total = _softmax_row(k, block, line, mask_line, sees, seen, scale, softcap)
        k.store(total, sums, (rows + FULL) * columns + row)
    pointers(scores, n["pitch"])
    head_values = k.offset(values, k.load(place, 2))
    inverses = k.offset(sums, (rows + FULL) * columns)
    with k.loop(0, n["width"], columns) as column:
        product(k.offset(head_values, column * n["keys"]), sums, k.index(columns), seen)

        def panel(width: Value | None, column: Value = column) -> None:
            part = out.columns(lambda i: k.load(place, 4 + i), column, width, columns)
            with k.loop(0, rows) as row:
                part.write(first + row, k.load(sums, row * columns, columns, aligned=True) * k.load(inverses, row))

        with k.when(n["width"] - column >= columns):
            panel(None)
        with k.otherwise():
            panel(n["width"] - column)
    return k.finish()


def _softmax_row(
    k: Builder, block: Block, line: Value, mask: Value | None, sees: Value, seen: Value, scale: Value, softcap: Value
) -> Value:
    """Exponentials of one row of scores less their maximum, in place; the value is 1 over their sum, or 0 for a row that sees nothing."""
    dtype, lanes = block.tile.dtype, block.tile.columns
    hidden = k.const(HIDDEN, dtype, lanes)
    highest = k.var(hidden)

    def final(at: Value, inside: Value | None) -> None:
        score = k.load(line, at, lanes) * scale
        if block.softcap:
            score = math.tanh(k, score / softcap) * softcap
        if mask is not None and block.mask:
            seen_mask = load(k, mask, at, lanes, inside) if block.mask[2] else k.splat(load(k, mask, 0), lanes)
            if block.mask[0] is bool_:
                score = k.select(seen_mask, score, hidden)
            else:
                score = score + k.convert(seen_mask, dtype)
        if inside is not None:
            score = k.select(inside, score, hidden)
        k.store(score, line, at)
        highest.set(k.maximum(highest.get(), score))

    whole = sees - modulo(k, k.maximum(sees, 0), k.index(lanes))
    with k.loop(0, whole, lanes) as at:
        final(at, None)
    # the rest of the row as far as the block sees: hidden scores, whose exponentials are 0
    with k.loop(k.maximum(whole, 0), seen, lanes) as at:
        final(at, k.lane_mask(sees - at, lanes))
    top = k.reduce(highest.get(), "max")
    blind = top == HIDDEN
    top = k.select(blind, 0, top)
    total = k.var(k.const(0, dtype, lanes))
    with k.loop(0, seen, lanes) as at:
        value = math.exp(k, k.load(line, at, lanes) - top)
        k.store(value, line, at)
        total.set(total.get() + value)
    sum_ = k.reduce(total.get(), "add")
    return k.select(blind, k.const(0, dtype), k.const(1, dtype) / sum_)


def lower_attention(group: RootGroup, target: Target) -> Lowered | None:
    """The tasks of a group around an Attention."""
    root = group.root
    op = root.op
    assert isinstance(op, Attention), "the root"
    q, keys, values, *masks = root.inputs
    if root.type.size == 0 or keys.type.size == 0 or not root.dtype.is_float:
        return None
    dtype = accumulator(root.dtype)
    tile = register_tile(target, dtype)
    (*batch, heads, rows, depth), shared, count, width = q.shape, keys.shape[-3], keys.shape[-2], values.shape[-1]
    outer = int(np.prod(batch, dtype=np.int64))
    if keys.shape[:-3] != tuple(batch) or values.shape[:-3] != tuple(batch):
        return None
    layout = group.layout(matrix_axes(outer * heads, rows, width), tile.columns)
    mask = _mask_of(masks[0].shape, (*batch, heads, rows, count)) if masks else None
    if layout is None or (masks and mask is None):
        return None
    tasks: list[Task] = []
    source = group.place(q)
    if q.dtype is not dtype:
        task, source = convert_task(source, q.dtype, dtype, q.type.size, tile.lanes)
        tasks.append(task)
    each = np.arange(outer * shared, dtype=np.int64)
    k_task, k_panels = pack_task(group.place(keys), keys.dtype, tile, each * (count * depth), depth, count, depth, transposed=True)
    v_task, v_panels = pack_task(group.place(values), values.dtype, tile, each * (count * width), count, width, width)
    tasks += [k_task, v_task]
    whole_keys, whole_width = (-(-size // tile.columns) * tile.columns for size in (count, width))
    head = np.arange(outer * heads, dtype=np.int64)
    kv = head // (heads // shared)
    offsets = [head * (rows * depth), kv * (depth * whole_keys), kv * (count * whole_width), mask[0] if mask else head * 0, *layout.offsets]
    places = Packed(np.ascontiguousarray(np.stack(np.broadcast_arrays(*offsets), axis=-1).astype(np.int64)), "places")
    block = Block(tile, layout.epilogue, op.causal, op.softcap > 0, (masks[0].dtype, bool(mask[1]), bool(mask[2])) if mask else None)
    pitch = whole_keys + PAD
    row_block = _row_block(rows, pitch, outer * heads, tile, target)
    table = -(-covered(row_block) // 8) * 8 * 8 // dtype.nbytes
    values_at = table + covered(row_block) * pitch
    values_at = -(-values_at // 16) * 16
    scratch = (values_at + (row_block + FULL) * tile.columns + row_block + 16) * dtype.nbytes
    row_blocks = -(-rows // row_block)
    numbers = tuple(int.from_bytes(np.array(x, dtype.numpy).tobytes(), "little") for x in (op.scale, op.softcap))
    sizes = (rows, count, depth, width, row_block, row_blocks, pitch, table, values_at, op.offset)
    mask_args: tuple[TaskArg, ...] = (group.place(masks[0]), mask[1]) if mask else ()
    args: tuple[TaskArg, ...] = (*micro_kernels(tile), source, k_panels, v_panels, places, *mask_args, *numbers, *sizes)
    tasks.append(writing_task(group, layout, attention_kernel(block), args, outer * heads * row_blocks, scratch))
    return Lowered(tuple(tasks))


def _row_block(rows: int, pitch: int, batches: int, tile: Tile, target: Target) -> int:
    """Rows whose scores fit half of L2, fewer where there would not be chunks enough."""
    most = max(FULL, target.l2_nbytes // 2 // (pitch * tile.dtype.nbytes) // FULL * FULL)
    parts = max(-(-rows // most), min(-(-rows // (2 * FULL)), -(-4 * target.cores // batches)))
    return min(rows, -(-(-(-rows // parts)) // FULL) * FULL)


def _mask_of(shape: tuple[int, ...], scores: tuple[int, ...]) -> tuple[Array, int, int] | None:
    """Offsets of each head in the mask, elements from row to row, and 1 where it differs along columns."""
    dims = (1,) * (len(scores) - len(shape)) + tuple(shape)
    if any(d not in (1, s) for d, s in zip(dims, scores, strict=True)):
        return None
    steps, step = [0] * len(dims), 1
    for axis in range(len(dims) - 1, -1, -1):
        steps[axis] = step if dims[axis] > 1 else 0
        step *= dims[axis]
    offsets = np.zeros(1, np.int64)
    for size, stride in zip(scores[:-2], steps[:-2], strict=True):
        offsets = (offsets[:, None] + np.arange(size) * stride).reshape(-1)
    return offsets, steps[-2], steps[-1]

