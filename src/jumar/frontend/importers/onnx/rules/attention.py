"""Attention of the standard: heads unpacked, caches joined, masks made; then our Attention, or its parts where the scores are asked for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jumar.base import DType, bool_, f32, f64, i64
from jumar.frontend.importers.onnx.evaluator import Scope, run_graph
from jumar.frontend.importers.onnx.node import OnnxNode, dtype_of_onnx
from jumar.frontend.importers.onnx.rule import rule
from jumar.frontend.importers.onnx.trace import Trace
from jumar.frontend.importers.onnx.value import Tensor
from jumar.ir import Node, constant
from jumar.operators import (  # fmt: skip
    MINUS_INFINITY,
    And,
    Attention,
    Gather,
    LinearAttention,
    Pad,
    RotaryEmbedding,
    Softmax,
    add,
    attention_scores,
    attention_values,
    attention_weights,
    cast,
    concat,
    less,
    less_equal,
    masked,
    reshape,
    select,
    transpose,
    widened,
)


def split_heads(x: Node, heads: int) -> Node:
    """[batch, length, heads * depth] -> [batch, heads, length, depth]"""
    b, s, d = x.shape
    return transpose(reshape(x, (b, s, heads, d // heads)), (0, 2, 1, 3))


def join_heads(x: Node) -> Node:
    """The inverse of `split_heads`."""
    b, h, s, d = x.shape
    return reshape(transpose(x, (0, 2, 1, 3)), (b, s, h * d))


def both(a: Node | None, b: Node | None) -> Node | None:
    """Two masks as one: bool ones must both allow, numbers are added."""
    if a is None or b is None:
        return a if b is None else b
    if a.dtype == b.dtype == bool_:
        return And()(a, b)
    if a.dtype == bool_:
        a, b = b, a
    return select(b, a, MINUS_INFINITY) if b.dtype == bool_ else add(a, b)


@rule("Attention")
def attention(
    t: Trace, n: OnnxNode, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, past_k: Tensor | None, past_v: Tensor | None,
    valid: Tensor | None,
) -> tuple[Node, ...]:  # fmt: skip
    packed = q.rank == 3
    query, key, value = t.node(q), t.node(k), t.node(v)
    if packed:
        query, key, value = (
            split_heads(x, n.attribute(heads)) for x, heads in ((query, "q_num_heads"), (key, "kv_num_heads"), (value, "kv_num_heads"))
        )
    if past_k is not None and past_v is not None:
        key, value = concat([t.node(past_k), key], 2), concat([t.node(past_v), value], 2)
    m, total = query.shape[2], key.shape[2]
    scale = n.attribute("scale", None)
    scale = 1 / math.sqrt(query.shape[3]) if scale is None else scale
    softcap, offset, causal = n.attribute("softcap", 0.0), past_k.shape[2] if past_k is not None else 0, bool(n.attribute("is_causal", 0))
    bias = None if mask is None else _padded(t.node(mask), total)
    left, right = n.attribute("left_window_size", -1), n.attribute("right_window_size", -1)
    if valid is not None:
        # the last query stands at the last valid key of its example
        counts = reshape(cast(t.node(valid), i64), (-1 if valid.rank == 0 else valid.shape[0], 1, 1, 1))
        keys = constant(np.arange(total))
        bias = both(bias, less(keys, counts))
        if causal:
            bias = both(bias, less_equal(constant(np.arange(total) - np.arange(m)[:, None] + m), counts))
        if left >= 0:
            bias = both(bias, less_equal(counts, constant(np.arange(total) - np.arange(m)[:, None] + m + left)))
        if right >= 0:
            bias = both(bias, less_equal(constant(np.arange(total) - np.arange(m)[:, None] + m - right), counts))
        causal = False
    elif left >= 0 or right >= 0:
        place = np.arange(m)[:, None] + offset
        window = (np.arange(total) >= place - left if left >= 0 else True) & (np.arange(total) <= place + right if right >= 0 else True)
        bias = both(bias, constant(np.broadcast_to(window, (m, total))))
    masks = [] if bias is None else [bias]
    if not n.wants(3):
        y = Attention(scale, causal, softcap, offset)(query, key, value, *masks)
        return join_heads(y) if packed else y, key, value
    mode = n.attribute("qk_matmul_output_mode", 0)
    wide_q, wide_k, wide_v = (widened(x) for x in (query, key, value))
    raw = attention_scores(wide_q, wide_k, scale)
    capped = attention_scores(wide_q, wide_k, scale, softcap)
    masks = [x if x.dtype == bool_ else cast(x, raw.dtype) for x in masks]
    biased = masked(capped, *masks, causal=causal, offset=offset)
    weights = attention_weights(biased, *masks, causal=causal, offset=offset)
    y = cast(attention_values(weights, wide_v), query.dtype)
    shown = (raw if not softcap else capped, capped, biased, weights)[mode]
    return join_heads(y) if packed else y, key, value, cast(shown, query.dtype)


def _padded(mask: Node, total: int) -> Node:
    """A mask that is shorter than the keys forbids the rest."""
    missing = total - mask.shape[-1]
    if missing <= 0:
        return mask
    fill: bool | float = False if mask.dtype == bool_ else MINUS_INFINITY
    return Pad((0,) * mask.rank, (*(0,) * (mask.rank - 1), missing), "constant", fill)(mask)


@rule("RotaryEmbedding")
def rotary_embedding(t: Trace, n: OnnxNode, x: Tensor, cos: Tensor, sin: Tensor, positions: Tensor | None) -> Node:
    return rotated(
        t.node(x), t.node(cos), t.node(sin), None if positions is None else t.node(positions),
        interleaved=bool(n.attribute("interleaved", 0)), heads=n.attribute("num_heads", 0), turned=n.attribute("rotary_embedding_dim", 0),
    )  # fmt: skip


def rotated(x: Node, cos: Node, sin: Node, positions: Node | None, *, interleaved: bool, heads: int, turned: int) -> Node:
    """Rotary embedding of [b, heads, s, d] or [b, s, heads * d]; the angles are those of `positions`, or of every token as they are."""
    if positions is not None:
        cos, sin = (Gather(0)(a, positions) for a in (cos, sin))
    packed = x.rank == 3
    b, s = (x.shape[0], x.shape[1]) if packed else (x.shape[0], x.shape[2])
    if turned and cos.shape[-1] * 2 > turned:
        raise ValueError(f"cos and sin must have {turned // 2} angles, got {cos.shape[-1]}")
    lead = cos.shape[0] if cos.rank == 3 else 1
    shape = (lead, s, 1, cos.shape[-1]) if packed else (lead, 1, s, cos.shape[-1])
    tall = reshape(x, (b, s, heads, x.shape[2] // heads)) if packed else x
    return reshape(RotaryEmbedding(interleaved)(tall, reshape(cos, shape), reshape(sin, shape)), x.shape)


@rule("LinearAttention", domain="com.microsoft")
@rule("LinearAttention")
def linear_attention(
    t: Trace, n: OnnxNode, q: Tensor, k: Tensor, v: Tensor, past: Tensor | None, decay: Tensor | None, beta: Tensor | None
) -> tuple[Node, Node]:
    hq, hk = n.attribute("q_num_heads"), n.attribute("kv_num_heads")
    mode = n.attribute("update_rule", "gated_delta")
    if mode not in ("linear", "gated", "delta", "gated_delta"):
        raise n.fault(f"update_rule must be linear, gated, delta or gated_delta, got {mode!r}")
    query, key, value = split_heads(t.node(q), hq), split_heads(t.node(k), hk), split_heads(t.node(v), hk)
    depth = query.shape[3]
    state = constant(np.zeros((query.shape[0], hk, depth, value.shape[3])), q.dtype) if past is None else t.node(past)
    extras = []
    if "gated" in mode:
        extras.append(split_heads(t.node(decay), hk))
    if "delta" in mode and beta is not None:
        rate = t.node(beta)
        extras.append(transpose(reshape(rate, (*rate.shape, 1)), (0, 2, 1, 3)))
    scale = n.attribute("scale", 0.0) or 1 / math.sqrt(depth)
    y, last = LinearAttention(scale, "gated" in mode, "delta" in mode)(query, key, value, state, *extras).results
    return join_heads(y), last


@rule("FlexAttention", domain="ai.onnx.preview", scoped=True)
def flex_attention(t: Trace, n: OnnxNode, scope: Scope, q: Tensor, k: Tensor, v: Tensor) -> Node:
    precision: DType = dtype_of_onnx(n.attribute("softmax_precision")) if n.has("softmax_precision") else (f64 if q.dtype == f64 else f32)
    query, key, value = (cast(t.node(x), precision) for x in (q, k, v))
    scale = n.attribute("scale", None)
    scores: Any = attention_scores(query, key, 1 / math.sqrt(q.shape[3]) if scale is None else scale)
    if n.has("score_mod"):
        (scores,) = run_graph(t, scope.graph.subgraph(n, "score_mod"), [t.value(scores, eager=False)], scope, scope.depth + 1)
    weights: Any = Softmax(-1)(t.node(scores))
    if n.has("prob_mod"):
        (weights,) = run_graph(t, scope.graph.subgraph(n, "prob_mod"), [t.value(weights, eager=False)], scope, scope.depth + 1)
    return cast(attention_values(t.node(weights), value), q.dtype)
