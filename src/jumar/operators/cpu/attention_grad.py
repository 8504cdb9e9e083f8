"""Gradients of attention: all five products of a head of keys at a time, with scores that never leave the caches.

In: AttentionGrad nodes.  Out: one task, whose chunks are heads of k and v.  A chunk packs its head, then goes over blocks of the rows of all
queries that share it: scores, their softmax and what they receive stand in scratch, rows of dq leave at once, and dk and dv are summed in
scratch until the end.  Sums over rows are outer products, so nothing is transposed but k and v.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from jumar.base import i64
from jumar.device import Target
from jumar.ir import Node
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.attention_grad import AttentionGrad
from jumar.operators.cpu.attention import PAD, mask_of
from jumar.operators.cpu.attention_row import Scores, softmax_row
from jumar.operators.cpu.expression import compute_dtype
from jumar.operators.cpu.matmul import micro_kernels
from jumar.operators.cpu.microkernel import register_tile
from jumar.operators.cpu.outer import outer_kernel
from jumar.operators.cpu.prepare import pack_transposed
from jumar.operators.cpu.tiles import cover, heights
from jumar.operators.schedule import Lowered, Packed, Place, Task, TaskArg, schedule

ROWS = 48  # of queries in a block: two of scores, beside the panels of k and v, fit L2 for some hundred keys
# share: heads of q for one of k; pitch: from row to row of scores; *_at: where each part of scratch begins, in elements
SIZES = (
    "rows", "keys", "depth", "width", "share", "row_block", "pitch", "offset", "turned_keys_at", "turned_values_at", "keys_at",
    "queries_at", "back_at", "weights_at", "scores_at", "dk_at", "dv_at", "sums_at",
)  # fmt: skip


@schedule("cpu", AttentionGrad)
def lower_attention_grad(node: Node, target: Target) -> Lowered | None:
    """The task of a gradient; None for soft caps, narrow types, and too few heads for the cores."""
    op = node.op
    assert isinstance(op, AttentionGrad), "registered for it"
    q, keys, values, _, _, *masks = node.inputs
    (*batch, heads, rows, depth), shared, count, width = q.shape, keys.shape[-3], keys.shape[-2], values.shape[-1]
    dtype = q.dtype
    if op.softcap > 0 or not dtype.is_float or compute_dtype(dtype) is not dtype or 0 in (q.type.size, keys.type.size, values.type.size):
        return None
    outer = int(np.prod(batch, dtype=np.int64))
    if keys.shape[:-3] != tuple(batch) or values.shape[:-3] != tuple(batch) or outer * shared < target.cores:
        return None
    mask = mask_of(masks[0].shape, (*batch, heads, rows, count)) if masks else None
    if masks and mask is None:
        return None
    tile = register_tile(target, dtype)
    columns = tile.columns
    head = Scores(tile, op.causal, False, (masks[0].dtype, bool(mask[1]), bool(mask[2])) if mask else None)
    row_block = min(rows, ROWS)
    whole_keys, whole_depth, whole_width, block = (-(-n // columns) * columns for n in (count, depth, width, tile.covered(row_block)))
    pitch = whole_keys + max(PAD, columns)  # a row clears a panel behind its own
    parts = {
        "table": block * 8 // dtype.nbytes, "turned_keys": whole_keys * depth, "turned_values": whole_keys * width, "keys": whole_depth * count,
        "queries": whole_depth * row_block, "back": whole_width * row_block, "weights": block * pitch, "scores": block * pitch,
        "dk": (count + tile.rows) * whole_depth, "dv": (count + tile.rows) * whole_width, "sums": (block + tile.rows) * columns,
    }  # fmt: skip
    at, starts = 0, {}
    for name, size in parts.items():
        starts[name] = at
        at += -(-size // columns) * columns
    offsets = np.ascontiguousarray(np.broadcast_to(mask[0] if mask else np.zeros(1, np.int64), (outer * heads,)), np.int64)
    scale = int.from_bytes(np.array(op.scale, dtype.numpy).tobytes(), "little")
    one = int.from_bytes(np.array(1, dtype.numpy).tobytes(), "little")
    mask_args: tuple[TaskArg, ...] = (Place(masks[0]), mask[1]) if mask else ()
    sizes = (rows, count, depth, width, heads // shared, row_block, pitch, op.offset, *(starts[n[: -len("_at")]] for n in SIZES[8:]))
    args: tuple[TaskArg, ...] = (
        *micro_kernels(tile), outer_kernel(tile), *(Place(n) for n in node.inputs[:5]), *(Place(node, 0, i) for i in range(3)),
        Packed(offsets, "places"), *mask_args, scale, one, *sizes,
    )  # fmt: skip
    nbytes = 2 * sum(n.type.nbytes for n in node.inputs[:3]) + 2 * node.inputs[3].type.nbytes
    task = Task(
        attention_grad_kernel(head), args, (8, 9, 10), outer * shared, scratch_nbytes=at * dtype.nbytes,
        flops=op.flops(*(n.type for n in node.inputs)), nbytes=nbytes, label=op.name,
    )  # fmt: skip
    return Lowered((task,))


@cache
def attention_grad_kernel(head: Scores) -> Kernel:
    """The kernel of a chunk."""
    return _Grad(head).kernel()


class _Grad:
    """The kernel being written."""

    def __init__(self, head: Scores) -> None:
        tile = self.tile = head.tile
        k = self.k = Builder("attention_grad")
        self.head = head
        self.micro = (k.function_pointer("tile_full"), k.function_pointer("tile_small"))
        self.outer = k.function_pointer("outer")
        self.given = {n: k.pointer(n, tile.dtype) for n in ("q", "k", "v", "y", "dy", "dq", "dk", "dv")}
        self.places = k.pointer("places", i64)
        self.mask = k.pointer("mask", head.mask[0]) if head.mask else None
        self.mask_pitch = k.integer("mask_pitch") if head.mask else k.index(0)
        self.scale, self.one = k.number("scale", tile.dtype), k.number("one", tile.dtype)
        self.n = {name: k.integer(name) for name in SIZES}
        self.scratch = k.thread_scratch("scratch", 0, tile.dtype)
        self.table = k.cast_pointer(self.scratch, i64)

    def part(self, name: str) -> Value:
        """Where a part of scratch begins."""
        return self.k.offset(self.scratch, self.n[f"{name}_at"])

    def kernel(self) -> Kernel:
        k, n, columns = self.k, self.n, self.tile.columns
        keys = k.offset(self.given["k"], k.chunk * n["keys"] * n["depth"])
        values = k.offset(self.given["v"], k.chunk * n["keys"] * n["width"])
        for source, inner, name in ((keys, "depth", "turned_keys"), (values, "width", "turned_values")):
            with k.loop(0, n["keys"], columns) as key:
                out = k.offset(self.part(name), key * n[inner])
                pack_transposed(k, source, out, key, k.minimum(n["keys"] - key, columns), n[inner], n[inner], self.tile)
        self.pack(keys, self.part("keys"), n["keys"], n["depth"])
        for name, inner in (("dk", "depth"), ("dv", "width")):
            with k.loop(0, n["keys"] * self.whole(n[inner]), self.tile.lanes) as i:
                k.store(k.const(0, self.tile.dtype, self.tile.lanes), self.part(name), i)
        with k.loop(0, n["share"]) as share:
            number = k.chunk * n["share"] + share
            with k.loop(0, n["rows"], n["row_block"]) as first:
                self.block(number, first)
        for name, inner in (("dk", "depth"), ("dv", "width")):
            result = k.offset(self.given[name], k.chunk * n["keys"] * n[inner])
            pitch = self.whole(n[inner])
            with k.loop(0, n["keys"]) as row:
                self.copy(k.offset(self.part(name), row * pitch), k.offset(result, row * n[inner]), n[inner])
        return k.finish()

    def whole(self, width: Value) -> Value:
        """Width in whole panels."""
        columns = self.tile.columns
        return (width + (columns - 1)) & ~(columns - 1)

    def copy(self, source: Value, result: Value, width: Value) -> None:
        k, lanes = self.k, self.tile.lanes
        rest = width & (lanes - 1)
        with k.loop(0, width - rest, lanes) as i:
            k.store(k.load(source, i, lanes), result, i)
        with k.loop(width - rest, width) as i:
            k.store(k.load(source, i), result, i)

    def pack(self, source: Value, out: Value, rows: Value, width: Value) -> None:
        """Panels of a matrix [rows, width]: [panels, rows, columns]."""
        k, columns = self.k, self.tile.columns
        with k.loop(0, width, columns) as column:
            panel = k.offset(out, column * rows)
            with k.when(width - column >= columns), k.loop(0, rows) as row:
                k.store(k.load(source, row * width + column, columns), panel, row * columns)
            with k.when(width - column < columns):
                mask = k.lane_mask(width - column, columns)
                with k.loop(0, rows) as row:
                    k.store(k.load(source, row * width + column, columns, mask), panel, row * columns)

    def pointers(self, base: Value, pitch: Value, rows: Value) -> None:
        """Writes the table of rows; those that tiles cover beyond the last one are the last one."""
        k = self.k
        fulls, smalls = cover(k, rows, self.tile)
        with k.loop(0, fulls * self.tile.rows + smalls * self.tile.small) as row:
            k.store_pointer(k.offset(base, k.minimum(row, rows - 1) * pitch), self.table, row)

    def product(self, b: Value, c: Value, pitch: Value, depth: Value, rows: Value) -> None:
        """c = rows of the table times a panel."""
        k = self.k
        for function, (height, base, count) in zip(self.micro, heights(k, self.tile, *cover(k, rows, self.tile)), strict=True):
            with k.loop(0, count) as t:
                row = base + t * height
                k.call(function, k.offset(self.table, row), 1, 0, depth, b, k.offset(c, row * pitch), pitch, 0, b)

    def sum(self, panels: Value, name: str, width: Value, rows: Value, seen: Value) -> None:
        """dk or dv += the table's rows, turned, times panels of [rows, width]."""
        k, columns = self.k, self.tile.columns
        pitch = self.whole(width)
        with k.loop(0, width, columns) as column:
            b = k.offset(panels, column * rows)
            with k.loop(0, seen, self.tile.rows) as key:
                c = k.offset(self.part(name), key * pitch + column)
                k.call(self.outer, self.table, key, rows, b, c, pitch, 1)

    def block(self, number: Value, first: Value) -> None:
        """Some rows of one head of queries."""
        k, n, columns = self.k, self.n, self.tile.columns
        rows = k.minimum(n["row_block"], n["rows"] - first)
        at = number * n["rows"] + first
        q, dq = (k.offset(self.given[name], at * n["depth"]) for name in ("q", "dq"))
        y, dy = (k.offset(self.given[name], at * n["width"]) for name in ("y", "dy"))
        seen = k.maximum(k.minimum(n["keys"], first + rows + n["offset"]), 1) if self.head.causal else n["keys"]
        weights, scores = self.part("weights"), self.part("scores")
        self.pack(q, self.part("queries"), rows, n["depth"])
        self.pack(dy, self.part("back"), rows, n["width"])
        for source, inner, turned, into in ((q, "depth", "turned_keys", weights), (dy, "width", "turned_values", scores)):
            self.pointers(source, n[inner], rows)
            with k.loop(0, seen, columns) as key:
                self.product(k.offset(self.part(turned), key * n[inner]), k.offset(into, key), n["pitch"], n[inner], rows)
        mask = None if self.mask is None else k.offset(self.mask, k.load(self.places, number))
        with k.loop(0, rows) as row:
            here = row * n["pitch"]
            line = None if mask is None else k.offset(mask, (first + row) * self.mask_pitch)
            sees = k.minimum(seen, first + row + n["offset"] + 1) if self.head.causal else seen
            self.row(k.offset(weights, here), k.offset(scores, here), line, sees, seen, self.dot(y, dy, row * n["width"]))
        self.pointers(weights, n["pitch"], rows)
        self.sum(self.part("back"), "dv", n["width"], rows, seen)
        self.pointers(scores, n["pitch"], rows)
        self.sum(self.part("queries"), "dk", n["depth"], rows, seen)
        sums = self.part("sums")
        with k.loop(0, n["depth"], columns) as column:
            self.product(k.offset(self.part("keys"), column * n["keys"]), sums, k.index(columns), seen, rows)
            with k.loop(0, rows) as row:
                self.copy(k.offset(sums, row * columns), k.offset(dq, row * n["depth"] + column), k.minimum(n["depth"] - column, columns))

    def dot(self, a: Value, b: Value, start: Value) -> Value:
        """The sum of products of two rows of values."""
        k, lanes, width = self.k, self.tile.lanes, self.n["width"]
        total = k.var(k.const(0, self.tile.dtype, lanes))
        rest = width & (lanes - 1)
        with k.loop(0, width - rest, lanes) as i:
            total.set(k.fma(k.load(a, start + i, lanes), k.load(b, start + i, lanes), total.get()))
        last = k.var(k.const(0, self.tile.dtype))
        with k.loop(width - rest, width) as i:
            last.set(k.fma(k.load(a, start + i), k.load(b, start + i), last.get()))
        return k.reduce(total.get(), "add") + last.get()

    def row(self, weights: Value, scores: Value, mask: Value | None, sees: Value, seen: Value, delta: Value) -> None:
        """Scores to weights, and what the weights receive to what the scores do; zeros behind, which tiles of keys may read."""
        k, lanes = self.k, self.tile.columns
        inverse = softmax_row(k, self.head, weights, mask, sees, seen, self.scale, self.one)
        with k.loop(0, seen, lanes) as at:
            weight = k.load(weights, at, lanes) * inverse
            k.store(weight, weights, at)
            k.store(weight * (k.load(scores, at, lanes) - delta) * self.scale, scores, at)
        behind = self.whole(seen)
        for line in (weights, scores):
            k.store(k.const(0, self.tile.dtype, lanes), line, behind)
