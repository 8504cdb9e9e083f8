"""com.microsoft attention: packed projections, padding masks, caches that grow or are shared buffers, rotary positions.

All become q, k and v with heads as a dimension, one mask, and our Attention.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from jumar.base import bool_, i64
from jumar.frontend.importers.onnx.node import OnnxNode
from jumar.frontend.importers.onnx.rule import rule
from jumar.frontend.importers.onnx.rules.attention import both, join_heads, rotated, split_heads
from jumar.frontend.importers.onnx.rules.microsoft import MICROSOFT
from jumar.frontend.importers.onnx.trace import Trace
from jumar.frontend.importers.onnx.value import Tensor
from jumar.ir import Node, constant
from jumar.operators import (  # fmt: skip
    And,
    Attention,
    NotEqual,
    RmsNorm,
    ScatterElements,
    Softmax,
    add,
    attention_scores,
    attention_values,
    broadcast_to,
    cast,
    concat,
    greater,
    greater_equal,
    less,
    less_equal,
    masked,
    matmul,
    number,
    reshape,
    select,
    slice_axis,
    transpose,
    widened,
)


def _scale(n: OnnxNode, depth: int) -> float:
    return float(n.attribute("scale", 0.0)) or 1 / math.sqrt(depth)


def _padding(n: OnnxNode, mask: Node, batch: int, total: int, like: Node) -> Node:
    """A padding mask in any of its forms as numbers to add: 0 for what may be seen, mask_filter_value for the rest."""
    keys = constant(np.arange(total))
    match mask.shape:
        case (b,) if b == batch:  # lengths
            seen = less(keys, cast(reshape(mask, (batch, 1, 1, 1)), i64))
        case (b,) if b == 2 * batch:  # ends, then starts
            ends, starts = (reshape(cast(slice_axis(mask, 0, i * batch, (i + 1) * batch), i64), (batch, 1, 1, 1)) for i in range(2))
            seen = And()(less(keys, ends), greater_equal(keys, starts))
        case (b, length):
            seen = _nonzero(reshape(mask, (b, 1, 1, length)))
        case (b, rows, length):
            seen = _nonzero(reshape(mask, (b, 1, rows, length)))
        case (_, 1, rows, length) if length >= total:  # a window of a larger mask
            m = like.shape[2]
            seen = _nonzero(slice_axis(slice_axis(mask, 3, 0, total), 2, total - m, total))
            rows = m
        case _:
            raise n.fault(f"mask must be [b], [2b], [b, total], [b, s, total] or [b, 1, max, max], got {mask.type}", code="op-unsupported")
    return select(seen, constant(0, like.dtype), float(n.attribute("mask_filter_value", -10000.0)))


def _nonzero(x: Node) -> Node:
    return x if x.dtype == bool_ else NotEqual()(x, number(0, x))


@rule("Attention", domain=MICROSOFT, required=("num_heads",))
def attention(
    t: Trace, n: OnnxNode, x: Tensor, w: Tensor, bias: Tensor | None, mask: Tensor | None, past: Tensor | None, addend: Tensor | None,
    past_length: Tensor | None,
) -> tuple[Node, ...]:  # fmt: skip
    if n.attribute("past_present_share_buffer", 0) or n.attribute("do_rotary", 0):
        raise n.fault("cache must grow and rotary positions be separate, got past_present_share_buffer or do_rotary", code="op-unsupported")
    heads = n.attribute("num_heads")
    y = matmul(t.node(x), t.node(w))
    y = y if bias is None else add(y, t.node(bias))
    sizes = n.attribute("qkv_hidden_sizes", None) or (y.shape[2] // 3,) * 3
    edges = [0, sizes[0], sizes[0] + sizes[1], sum(sizes)]
    q, k, v = (split_heads(slice_axis(y, 2, a, b), heads) for a, b in pairwise(edges))
    offset = 0
    if past is not None:
        offset = past.shape[3]
        k, v = (concat([reshape(slice_axis(t.node(past), 0, i, i + 1), past.shape[1:]), new], 2) for i, new in ((0, k), (1, v)))
    masks = [_padding(n, t.node(mask), q.shape[0], k.shape[2], q)] if mask is not None else []
    whole = both(masks[0] if masks else None, None if addend is None else t.node(addend))
    op = Attention(_scale(n, q.shape[3]), bool(n.attribute("unidirectional", 0)), 0.0, offset)
    out = join_heads(op(q, k, v, *([] if whole is None else [whole])))
    if not n.wants(1):
        return (out,)
    return out, concat([reshape(p, (1, *p.shape)) for p in (k, v)], 0)


@rule("MultiHeadAttention", domain=MICROSOFT, required=("num_heads",))
def multi_head_attention(
    t: Trace, n: OnnxNode, query: Tensor, key: Tensor | None, value: Tensor | None, bias: Tensor | None, mask: Tensor | None,
    addend: Tensor | None, past_k: Tensor | None, past_v: Tensor | None, past_length: Tensor | None, beams: Tensor | None,
) -> tuple[Node, ...]:  # fmt: skip
    if past_length is not None or beams is not None:
        raise n.fault("cache must grow, got a shared buffer or a cache of beams", code="op-unsupported")
    heads = n.attribute("num_heads")
    q, k, v = _unpacked(n, t.node(query), None if key is None else t.node(key), None if value is None else t.node(value), heads)
    if bias is not None:
        edges = np.cumsum([0, *(heads * p.shape[3] for p in (q, k, v))]).tolist()
        q, k, v = (
            add(p, reshape(slice_axis(t.node(bias), 0, a, b), (1, heads, 1, p.shape[3])))
            for p, (a, b) in zip((q, k, v), pairwise(edges), strict=True)
        )
    offset = 0
    if past_k is not None and past_v is not None:
        offset = past_k.shape[2]
        k, v = concat([t.node(past_k), k], 2), concat([t.node(past_v), v], 2)
    whole = both(None if mask is None else _padding(n, t.node(mask), q.shape[0], k.shape[2], q), None if addend is None else t.node(addend))
    masks, causal, scale = [] if whole is None else [whole], bool(n.attribute("unidirectional", 0)), _scale(n, q.shape[3])
    if not n.wants(3):
        return join_heads(Attention(scale, causal, 0.0, offset)(q, k, v, *masks)), k, v
    weights = Softmax(-1)(masked(attention_scores(q, k, scale), *masks, causal=causal, offset=offset))
    return join_heads(attention_values(weights, v)), k, v, weights


def _unpacked(n: OnnxNode, query: Node, key: Node | None, value: Node | None, heads: int) -> tuple[Node, Node, Node]:
    """q, k and v as [b, heads, length, depth], however they were packed."""

    def part(x: Node, index: int) -> Node:
        b, s, h, _, d = x.shape
        return transpose(reshape(slice_axis(x, 3, index, index + 1), (b, s, h, d)), (0, 2, 1, 3))

    if query.rank == 5:
        return part(query, 0), part(query, 1), part(query, 2)
    q = split_heads(query, heads)
    if key is None:
        raise n.fault("key must be given where the query is not packed, got none")
    if key.rank == 5:
        return q, part(key, 0), part(key, 1)
    if value is None:
        raise n.fault("value must be given where the key is not packed, got none")
    k, v = (x if x.rank == 4 else split_heads(x, heads) for x in (key, value))
    return q, k, v


@rule("RotaryEmbedding", domain=MICROSOFT)
def rotary_embedding(t: Trace, n: OnnxNode, x: Tensor, positions: Tensor, cos: Tensor, sin: Tensor) -> Node:
    node, places = t.node(x), cast(t.node(positions), i64)
    batch, length = (x.shape[0], x.shape[1]) if x.rank == 3 else (x.shape[0], x.shape[2])
    if places.type.size == 1 and (positions.rank == 1 or length > 1):  # one offset for all
        places = broadcast_to(add(reshape(places, (1, 1)), constant(np.arange(length)[None])), (batch, length))
    turned = n.attribute("rotary_embedding_dim", 0)
    heads = n.attribute("num_heads", 0) or (x.shape[2] // (2 * cos.shape[1]) if x.rank == 3 else x.shape[1])
    return rotated(node, t.node(cos), t.node(sin), places, interleaved=bool(n.attribute("interleaved", 0)), heads=heads, turned=turned)


@rule("GroupQueryAttention", domain=MICROSOFT, required=("num_heads", "kv_num_heads"))
def group_query_attention(
    t: Trace, n: OnnxNode, query: Tensor, key: Tensor | None, value: Tensor | None, past_k: Tensor | None, past_v: Tensor | None,
    lengths: Tensor, total: Tensor, cos: Tensor | None, sin: Tensor | None, positions: Tensor | None, addend: Tensor | None,
    sink: Tensor | None, k_scale: Tensor | None, v_scale: Tensor | None, q_norm: Tensor | None, k_norm: Tensor | None,
    chunks: Tensor | None,
) -> tuple[Node, ...]:  # fmt: skip
    if k_scale is not None or v_scale is not None or chunks is not None or n.attribute("sliding_window_cache", 0) or n.wants(3):
        raise n.fault("cache must be of plain numbers and whole, got a quantized, chunked or sliding one", code="op-unsupported")
    heads, kv_heads = n.attribute("num_heads"), n.attribute("kv_num_heads")
    q, k, v = _projections(t, query, key, value, heads, kv_heads)
    if q_norm is not None and k_norm is not None:
        epsilon = n.attribute("qk_norm_epsilon", 1e-6)
        q = RmsNorm(-1, n.attribute("q_norm_epsilon", epsilon))(q, t.node(q_norm))
        k = RmsNorm(-1, n.attribute("k_norm_epsilon", epsilon))(k, t.node(k_norm))
    batch, length, held = q.shape[0], q.shape[2], past_k.shape[2] if past_k is not None else 0
    ends = add(reshape(cast(t.node(lengths), i64), (batch, 1)), 1)  # tokens of each example after this call
    prompt = int(t.scalar(total)) <= length
    # a prompt begins at 0 in each example and is padded at its end; later tokens follow those that the cache holds
    start = broadcast_to(constant(np.zeros((1, 1), np.int64)), (batch, 1)) if prompt else add(ends, -length)
    places = add(start, constant(np.arange(length)[None]))
    if n.attribute("do_rotary", 0):
        if cos is None or sin is None:
            raise n.fault("cos_cache and sin_cache must be given with do_rotary, got none")
        at = places if positions is None else cast(t.node(positions), i64)
        turn = bool(n.attribute("rotary_interleaved", 0))
        q, k = (rotated(p, t.node(cos), t.node(sin), at, interleaved=turn, heads=0, turned=0) for p in (q, k))
    shared = held > 0 and held >= int(t.scalar(total))
    if past_k is not None and past_v is not None and held:
        if shared:
            k, v = (_written(t.node(past), new, places) for past, new in ((past_k, k), (past_v, v)))
        else:
            k, v = concat([t.node(past_k), k], 2), concat([t.node(past_v), v], 2)
    window, keys = n.attribute("local_window_size", -1), constant(np.arange(k.shape[2]))
    rows = reshape(places, (batch, 1, length, 1))
    plain = (batch == 1 and not shared) or (prompt and not held)
    offset = 0 if prompt and not held else k.shape[2] - length
    causal, mask = plain and bool(n.attribute("causal", 1)), None
    if not plain:
        mask = less_equal(keys, rows)
    if window > 0:
        mask = both(mask, greater(keys, add(rows, -window)))
    if addend is not None:
        bias = t.node(addend)
        missing = k.shape[2] - bias.shape[3]
        if missing > 0:
            bias = concat([bias, broadcast_to(constant(0, bias.dtype), (*bias.shape[:3], missing))], 3)
        mask = both(mask, bias)
    masks, scale, softcap = [] if mask is None else [mask], _scale(n, q.shape[3]), float(n.attribute("softcap", 0.0))
    if sink is None and not n.attribute("smooth_softmax", 0):
        y = Attention(scale, causal, softcap, offset)(q, k, v, *masks)
    else:
        y = _with_sink(q, k, v, masks, scale, softcap, causal, offset, constant(np.zeros(heads), q.dtype) if sink is None else t.node(sink))
    return join_heads(y), k, v


def _projections(t: Trace, query: Tensor, key: Tensor | None, value: Tensor | None, heads: int, kv_heads: int) -> tuple[Node, Node, Node]:
    """q [b, heads, s, d], k and v [b, kv_heads, s, d], of three inputs or of one that holds all."""
    node = t.node(query)
    if key is not None and value is not None:
        k, v = (split_heads(t.node(x), kv_heads) for x in (key, value))
        return split_heads(node, heads), k, v
    depth = query.shape[2] // (heads + 2 * kv_heads)
    a, b = heads * depth, (heads + kv_heads) * depth
    return (
        split_heads(slice_axis(node, 2, 0, a), heads),
        split_heads(slice_axis(node, 2, a, b), kv_heads),
        split_heads(slice_axis(node, 2, b, node.shape[2]), kv_heads),
    )


def _written(past: Node, new: Node, places: Node) -> Node:
    """A cache [b, h, max, d] with the new tokens at their places [b, s]."""
    batch, length = places.shape
    return ScatterElements(2)(past, broadcast_to(reshape(places, (batch, 1, length, 1)), new.shape), new)


def _with_sink(q: Node, k: Node, v: Node, masks: list[Node], scale: float, softcap: float, causal: bool, offset: int, sink: Node) -> Node:
    """Attention with one more score for each head that takes part in the softmax and has no value."""
    wide_q, wide_k = widened(q), widened(k)
    scores = attention_scores(wide_q, wide_k, scale, softcap)
    scores = masked(scores, *(m if m.dtype == bool_ else cast(m, scores.dtype) for m in masks), causal=causal, offset=offset)
    b, h, m, n = scores.shape
    extra = broadcast_to(reshape(cast(sink, scores.dtype), (1, h, 1, 1)), (b, h, m, 1))
    weights = slice_axis(Softmax(-1)(concat([scores, extra], 3)), 3, 0, n)
    return cast(attention_values(weights, widened(v)), q.dtype)
