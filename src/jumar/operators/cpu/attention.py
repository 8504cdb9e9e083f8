"""Attention: scores, softmax and the mean of the values for a block of queries of one head at a time.

In: a group (root.py) whose root is an Attention.  Out: tasks: k and v in panels, then the block kernel with its epilogue.
The scores of a block of rows stay in scratch, in L2; what the whole matrix of scores would take is never written.  Rows are not scaled
by their sum until the end, when there are only head_dim numbers left of each.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from jumar.base import Array, i64
from jumar.device import Target
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.attention import Attention
from jumar.operators.contraction import accumulator
from jumar.operators.cpu.attention_few import FEW, few_kernel
from jumar.operators.cpu.attention_row import Block, softmax_row
from jumar.operators.cpu.epilogue import Writer, modulo, quotient
from jumar.operators.cpu.matmul import micro_kernels, writing_task
from jumar.operators.cpu.microkernel import Tile, register_tile
from jumar.operators.cpu.prepare import convert_task, pack_task
from jumar.operators.cpu.root import RootGroup, matrix_axes
from jumar.operators.cpu.tiles import cover, heights
from jumar.operators.schedule import Lowered, Packed, Task, TaskArg

CAUSAL_TILES = 4  # tiles of rows in a block under a causal mask
PAD = 16  # elements between rows of scores, so that they do not fall on the same sets of the cache
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
    covers = tuple(zip(micro, heights(k, tile, *cover(k, rows, tile)), strict=True))
    table = k.cast_pointer(scratch, i64)
    scores, sums = k.offset(scratch, n["sums_at"]), k.offset(scratch, n["values_at"])
    queries = k.offset(q, k.load(place, 0) + first * n["depth"])

    def pointers(base: Value, pitch: Value) -> None:
        for _, (height, start, count) in covers:
            with k.loop(0, count) as t:
                for i in range(height):
                    row = start + t * height + i
                    k.store_pointer(k.offset(base, k.minimum(row, rows - 1) * pitch), table, row)

    def product(b: Value, c: Value, c_pitch: Value, depth: Value) -> None:
        for function, (height, start, count) in covers:
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
        total = softmax_row(k, block, line, mask_line, sees, seen, scale, softcap)
        k.store(total, sums, (rows + tile.rows) * columns + row)
    pointers(scores, n["pitch"])
    head_values = k.offset(values, k.load(place, 2))
    inverses = k.offset(sums, (rows + tile.rows) * columns)
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
    mask = mask_of(masks[0].shape, (*batch, heads, rows, count)) if masks else None
    if layout is None or (masks and mask is None):
        return None
    tasks: list[Task] = []
    source = group.place(q)
    if q.dtype is not dtype:
        task, source = convert_task(source, q.dtype, dtype, q.type.size, tile.lanes)
        tasks.append(task)
    head = np.arange(outer * heads, dtype=np.int64)
    kv, mask_places = head // (heads // shared), mask[0] if mask else head * 0
    block = Block(tile, layout.epilogue, op.causal, op.softcap > 0, (masks[0].dtype, bool(mask[1]), bool(mask[2])) if mask else None)
    mask_args: tuple[TaskArg, ...] = (group.place(masks[0]), mask[1]) if mask else ()
    numbers = tuple(int.from_bytes(np.array(x, dtype.numpy).tobytes(), "little") for x in (op.scale, op.softcap))

    def place_table(*offsets: Array) -> Packed:
        return Packed(
            np.ascontiguousarray(np.stack(np.broadcast_arrays(*offsets, mask_places, *layout.offsets), axis=-1).astype(np.int64)), "places"
        )

    if rows <= FEW:
        places = place_table(head * (rows * depth), kv * (count * depth), kv * (count * width))
        kernel = few_kernel(block, keys.dtype, values.dtype)
        args: tuple[TaskArg, ...] = (
            source, group.place(keys), group.place(values), places, *mask_args, *numbers, rows, count, depth, width, op.offset
        )  # fmt: skip
        scratch = (count + 4 * tile.columns) * dtype.nbytes
        return Lowered((*tasks, writing_task(group, layout, kernel, args, outer * heads, scratch)))
    each = np.arange(outer * shared, dtype=np.int64)
    k_task, k_panels = pack_task(group.place(keys), keys.dtype, tile, each * (count * depth), depth, count, depth, transposed=True)
    v_task, v_panels = pack_task(group.place(values), values.dtype, tile, each * (count * width), count, width, width)
    whole_keys, whole_width = (-(-size // tile.columns) * tile.columns for size in (count, width))
    places = place_table(head * (rows * depth), kv * (depth * whole_keys), kv * (count * whole_width))
    pitch = whole_keys + PAD
    row_block = _row_block(rows, pitch, outer * heads, op.causal, tile, target)
    table = -(-tile.covered(row_block) // 8) * 8 * 8 // dtype.nbytes
    values_at = -(-(table + tile.covered(row_block) * pitch) // 16) * 16
    scratch = (values_at + (row_block + tile.rows) * tile.columns + row_block + 16) * dtype.nbytes
    row_blocks = -(-rows // row_block)
    sizes = (rows, count, depth, width, row_block, row_blocks, pitch, table, values_at, op.offset)
    args = (*micro_kernels(tile), source, k_panels, v_panels, places, *mask_args, *numbers, *sizes)
    product = writing_task(group, layout, attention_kernel(block), args, outer * heads * row_blocks, scratch)
    return Lowered((*tasks, k_task, v_task, product))


def _row_block(rows: int, pitch: int, batches: int, causal: bool, tile: Tile, target: Target) -> int:
    """Rows whose scores fit half of L2, fewer where there would not be chunks enough, or keys that no row of a block sees are left out."""
    most = max(tile.rows, target.l2_nbytes // 2 // (pitch * tile.dtype.nbytes) // tile.rows * tile.rows)
    most = min(most, CAUSAL_TILES * tile.rows) if causal else most
    parts = max(-(-rows // most), min(-(-rows // (2 * tile.rows)), -(-4 * target.cores // batches)))
    return min(rows, (-(-rows // parts) + tile.rows - 1) // tile.rows * tile.rows)


def mask_of(shape: tuple[int, ...], scores: tuple[int, ...]) -> tuple[Array, int, int] | None:
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
