"""Attention of a few queries, as when a text is written word by word: keys and values are read once, where they lie.

In: the same as attention.py, with few rows.  Out: one task, a chunk for each head.
Packing k and v would move more than there is to compute.
"""

from __future__ import annotations

from functools import cache

from jumar.base import DType, i64
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.cpu.attention_row import Block, softmax_row
from jumar.operators.cpu.epilogue import Writer, modulo
from jumar.operators.cpu.expression import load
from jumar.operators.cpu.prepare import transpose_block

FEW = 8  # rows
WIDE = 4  # vectors of values that are summed side by side


@cache
def few_kernel(block: Block, k_dtype: DType, v_dtype: DType) -> Kernel:
    """The kernel of a chunk: all queries of one head."""
    dtype, lanes = block.tile.dtype, block.tile.lanes
    k = Builder("attention_few")
    q, keys, values, places = k.pointer("q", dtype), k.pointer("k", k_dtype), k.pointer("v", v_dtype), k.pointer("places", i64)
    mask = k.pointer("mask", block.mask[0]) if block.mask else None
    mask_pitch = k.integer("mask_pitch") if block.mask else k.index(0)
    scale, softcap = k.number("scale", dtype), k.number("softcap", dtype)
    n = {name: k.integer(name) for name in ("rows", "keys", "depth", "width", "offset")}
    out = Writer(k, block.epilogue)
    line = k.thread_scratch("line", 0, dtype)

    place = k.offset(places, k.chunk * (4 + len(out.lies)))
    head_keys, head_values = k.offset(keys, k.load(place, 1)), k.offset(values, k.load(place, 2))
    head_mask = None if mask is None else k.offset(mask, k.load(place, 3))
    with k.loop(0, n["rows"]) as row:
        query = k.offset(q, k.load(place, 0) + row * n["depth"])
        sees = k.minimum(n["keys"], row + n["offset"] + 1) if block.causal else n["keys"]
        seen = k.maximum(sees, 1) if block.causal else sees
        whole = seen - modulo(k, seen, k.index(lanes))
        with k.loop(0, whole, lanes) as key:
            sums = _dots(k, query, k.offset(head_keys, key * n["depth"]), n["depth"], lanes, lanes)
            turned = transpose_block(k, sums)
            while len(turned) > 1:
                turned = [a + b for a, b in zip(turned[::2], turned[1::2], strict=True)]
            k.store(turned[0], line, key)
        with k.loop(whole, seen) as key:
            k.store(k.reduce(_dots(k, query, k.offset(head_keys, key * n["depth"]), n["depth"], 1, lanes)[0], "add"), line, key)
        mask_line = None if head_mask is None else k.offset(head_mask, row * mask_pitch)
        inverse = softmax_row(k, block, line, mask_line, sees, seen, scale, softcap)
        wide = n["width"] - modulo(k, n["width"], k.index(WIDE * lanes))

        def columns(column: Value, count: int, width: Value | None, row: Value = row, seen: Value = seen, inverse: Value = inverse) -> None:
            inside = None if width is None else k.lane_mask(width, lanes)
            sums = [k.var(k.const(0, dtype, lanes)) for _ in range(count)]
            with k.loop(0, seen) as key:
                weight = k.splat(k.load(line, key), lanes)
                for j, s in enumerate(sums):
                    value = load(k, head_values, key * n["width"] + column + j * lanes, lanes, inside)
                    s.set(k.fma(weight, value, s.get()))
            for j, s in enumerate(sums):
                part = out.columns(lambda i: k.load(place, 4 + i), column + j * lanes, width, lanes)
                part.write(row, s.get() * inverse)

        with k.loop(0, wide, WIDE * lanes) as column:
            columns(column, WIDE, None)
        with k.loop(wide, n["width"], lanes) as column:
            columns(column, 1, n["width"] - column)
    return k.finish()


def _dots(k: Builder, query: Value, keys: Value, depth: Value, count: int, lanes: int) -> list[Value]:
    """Lane by lane products of the query with `count` keys, summed over the depth but not over lanes."""
    sums = [k.var(k.const(0, query.dtype, lanes)) for _ in range(count)]
    whole = depth - modulo(k, depth, k.index(lanes))

    def step(at: Value, mask: Value | None) -> None:
        vector = k.load(query, at, lanes, mask)
        for i, s in enumerate(sums):
            s.set(k.fma(load(k, keys, depth * i + at, lanes, mask), vector, s.get()))

    with k.loop(0, whole, lanes) as at:
        step(at, None)
    with k.when(whole < depth):
        step(whole, k.lane_mask(depth - whole, lanes))
    return [s.get() for s in sums]
