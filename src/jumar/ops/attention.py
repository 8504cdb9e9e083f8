"""Attention: scaled dot products, MindSpore's flash_attention_score in its layouts, rotary embedding.

In: query, key and value.  Out: attention's result, by one fused operator.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jumar import operators as o
from jumar.ops import arithmetic as a
from jumar.ops import movement as s
from jumar.ops.activation import softmax
from jumar.ops.operands import BOOL, Tensor, apply, as_tensor, cast, constant, numpy_dtype
from jumar.ops.random import dropout


def scaled_dot_product(
    query: Any, key: Any, value: Any, mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None
) -> Tensor:
    """softmax(q k^T scale + mask) v over the last two dimensions; a bool mask is True where a key may be seen."""
    q, k, v = as_tensor(query), as_tensor(key), as_tensor(value)
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
    if mask is not None:
        mask = as_tensor(mask)
        if numpy_dtype(mask) != BOOL:
            mask = cast(mask, numpy_dtype(q))
    if not dropout_p and q.ndim >= 3:
        parts = [q, k, v] + ([] if mask is None else [mask])
        return apply(o.Attention(factor, bool(is_causal)), *parts)  # type: ignore[no-any-return]
    scores = a.mul(apply(o.MatMul(), q, s.swapaxes(k, -1, -2)), factor)
    if is_causal:
        rows, columns = scores.shape[-2:]
        scores = a.where(constant(np.tri(rows, columns, dtype=np.bool_)), scores, -math.inf)
    if mask is not None:
        scores = a.where(mask, scores, -math.inf) if numpy_dtype(mask) == BOOL else a.add(scores, mask)
    weights = softmax(scores, -1)
    return apply(o.MatMul(), dropout(weights, dropout_p) if dropout_p else weights, v)  # type: ignore[no-any-return]


def _heads(x: Tensor, layout: str, heads: int) -> Tensor:
    """[batch, heads, sequence, size] from any layout."""
    if layout == "BNSD":
        return x
    if layout == "BSND":
        return s.swapaxes(x, 1, 2)
    if layout == "BSH":
        b, n, h = x.shape
        return s.swapaxes(s.reshape(x, (b, n, heads, h // heads)), 1, 2)
    if layout == "SBH":
        n, b, h = x.shape
        return s.permute(s.reshape(x, (n, b, heads, h // heads)), (1, 2, 0, 3))
    raise NotImplementedError(f"flash_attention_score: input_layout BSH, SBH, BSND and BNSD are supported, got {layout!r}")


def _laid_out(x: Tensor, layout: str) -> Tensor:
    b, h, n, d = x.shape
    if layout == "BNSD":
        return x
    if layout == "BSND":
        return s.swapaxes(x, 1, 2)
    if layout == "BSH":
        return s.reshape(s.swapaxes(x, 1, 2), (b, n, h * d))
    return s.reshape(s.permute(x, (2, 0, 1, 3)), (n, b, h * d))


def flash_attention_score(
    query: Any, key: Any, value: Any, head_num: int, real_shift: Any = None, drop_mask: Any = None, padding_mask: Any = None,
    attn_mask: Any = None, prefix: Any = None, actual_seq_qlen: Any = None, actual_seq_kvlen: Any = None, keep_prob: float = 1.0,
    scalar_value: float = 1.0, pre_tokens: int = 2147483647, next_tokens: int = 2147483647, inner_precise: int = 0, input_layout: str = "BSH",
    sparse_mode: int = 0,
) -> Tensor:  # fmt: skip
    """softmax((q k^T + real_shift) scalar_value, masked) v; attn_mask is 1 where a key may NOT be seen.   sparse_mode: 0, 1, 2, 3."""
    q = as_tensor(query)
    size = q.shape[-1] if input_layout in ("BNSD", "BSND") else q.shape[-1] // head_num
    k, v = as_tensor(key), as_tensor(value)
    kv_heads = {"BNSD": lambda t: t.shape[1], "BSND": lambda t: t.shape[2]}.get(input_layout, lambda t: t.shape[-1] // size)(k)
    q, k, v = _heads(q, input_layout, head_num), _heads(k, input_layout, kv_heads), _heads(v, input_layout, kv_heads)
    if prefix is not None or padding_mask is not None or sparse_mode > 3:
        raise NotImplementedError("flash_attention_score: prefix, padding_mask and sparse_mode above 3 are not supported")
    rows, columns = q.shape[2], k.shape[2]
    mask: Tensor | None = None
    if sparse_mode in (2, 3):
        offset = 0 if sparse_mode == 2 else columns - rows
        mask = constant(np.tri(rows, columns, offset, dtype=np.bool_))
    elif attn_mask is not None:
        mask = a.logical_not(as_tensor(attn_mask))
        if mask.ndim == 3:
            mask = s.unsqueeze(mask, 1)
    if sparse_mode == 0 and (pre_tokens < columns or next_tokens < columns) and attn_mask is None:
        at = np.arange(columns)[None, :] - np.arange(rows)[:, None]
        mask = constant((at <= next_tokens) & (at >= -pre_tokens))
    if real_shift is not None:
        bias = a.mul(cast(as_tensor(real_shift), numpy_dtype(q)), scalar_value)
        mask = bias if mask is None else a.where(mask, bias, -math.inf)
    if keep_prob < 1.0:
        h = q.shape[1] // k.shape[1]
        y = scaled_dot_product(q, s.repeat_interleave(k, h, 1), s.repeat_interleave(v, h, 1), mask, 1 - keep_prob, False, scalar_value)
    else:
        y = scaled_dot_product(q, k, v, mask, 0.0, False, scalar_value)
    return _laid_out(y, input_layout)


def rotary_position_embedding(x: Any, cos: Any, sin: Any, mode: int = 0) -> Tensor:
    """x cos + rotated(x) sin.   mode: 0 the halves turn, 1 neighbours turn."""
    tensor = as_tensor(x)
    if mode == 0:
        first, second = s.split_evenly(tensor, -1, 2)
        turned = s.cat([a.neg(second), first], -1)
    else:
        pairs = s.reshape(tensor, (*tensor.shape[:-1], tensor.shape[-1] // 2, 2))
        turned = s.reshape(s.stack([a.neg(s.select(pairs, -1, 1)), s.select(pairs, -1, 0)], -1), tensor.shape)
    return a.add(a.mul(tensor, cos), a.mul(turned, sin))


__all__ = ["flash_attention_score", "rotary_position_embedding"]
