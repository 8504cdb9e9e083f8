"""`mindspore.ops.function.nn_func`: functions under the file where MindSpore defines them; `f_ext` is mint's `f`.

Beside them stand the parts of multi-head attention that clients import from there.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jumar.frontend import dtype as types
from jumar.frontend.tensor import Tensor
from jumar.ops import activation, arithmetic, auto_generate, creation, image, linalg, movement, random, reduction


def linear(x: Any, w: Any, b: Any) -> Tensor:
    """x w^T + b."""
    return linalg.dense(x, w, b)


def _inner_dropout(x: Any, p: float, training: bool) -> Tensor:
    return random.dropout(x, p, training) if 0 < p < 1 and training else x


def _inner_pad(x: Any, padding: Any, value: Any = None) -> Tensor:
    return image.pad(x, padding, "constant", value)


def _check_qkv_shape(query_ndim: int, key_ndim: int, value_ndim: int) -> bool:
    """Whether there is a batch dimension."""
    if query_ndim not in (2, 3) or key_ndim != query_ndim or value_ndim != query_ndim:
        raise ValueError(
            f"attention: query, key and value must all have 2 or all 3 dimensions, got {query_ndim}, {key_ndim} and {value_ndim}"
        )
    return query_ndim == 3


def _check_kpm_shape(query_ndim: int, kmp_ndim: int) -> None:
    if kmp_ndim != query_ndim - 1:
        raise ValueError(f"attention: key_padding_mask must have {query_ndim - 1} dimensions, got {kmp_ndim}")


def _check_attn_mask_shape(
    query_ndim: int,
    query_shape: tuple[int, ...],
    key_shape: tuple[int, ...],
    attn_mask_ndim: int,
    attn_mask_shape: tuple[int, ...],
    num_heads: int,
) -> None:
    """The mask is [queries, keys], or one such for each batch and head."""
    if attn_mask_ndim not in (2, 3):
        raise ValueError(f"attention: attn_mask must have 2 or 3 dimensions, got {attn_mask_ndim}")
    if attn_mask_ndim == 3 and query_ndim == 2:
        wanted = (num_heads, query_shape[0], key_shape[0])
        if tuple(attn_mask_shape) != wanted:
            raise ValueError(f"attention: attn_mask must have the shape {wanted}, got {tuple(attn_mask_shape)}")


def _in_projection(
    q: Any, k: Any, v: Any, w_q: Any, w_k: Any, w_v: Any, b_q: Any = None, b_k: Any = None, b_v: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    return linalg.dense(q, w_q, b_q), linalg.dense(k, w_k, b_k), linalg.dense(v, w_v, b_v)


def _in_projection_packed(q: Any, k: Any, v: Any, w: Any, b: Any, k_is_v: bool, q_is_k: bool) -> tuple[Tensor, ...]:
    """Query, key and value, each by its third of the weights."""
    size = q.shape[-1]
    if k_is_v and q_is_k:
        return movement.split(linalg.dense(q, w, b), size, -1)
    weights = movement.split(w, size, 0)
    biases = (None,) * 3 if b is None else movement.split(b, size, 0)
    return tuple(linalg.dense(x, part, bias) for x, part, bias in zip((q, k, v), weights, biases, strict=True))


def multi_head_attention_forward(
    query: Any, key: Any, value: Any, embed_dim_to_check: int, num_heads: int, in_proj_weight: Any, in_proj_bias: Any, bias_k: Any,
    bias_v: Any, add_zero_attn: bool, dropout_p: float, out_proj_weight: Any, out_proj_bias: Any, training: bool = True,
    key_padding_mask: Any = None, attn_mask: Any = None, use_separate_proj_weight: bool = False, q_proj_weight: Any = None,
    k_proj_weight: Any = None, v_proj_weight: Any = None, static_k: Any = None, static_v: Any = None, average_attn_weights: bool = True,
    is_causal: bool = False, k_is_v: bool = False, q_is_k: bool = False, dtype: Any = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Attention of many heads with its projections.   query, key, value: [length, batch, size] or [length, size].

    -> the result, and the weights of the keys (the mean over heads where average_attn_weights).  Masks: True where a key may not be seen, or numbers.
    """
    batched = _check_qkv_shape(query.ndim, key.ndim, value.ndim)
    if not batched:
        query, key, value = (movement.unsqueeze(x, 1) for x in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else movement.unsqueeze(key_padding_mask, 0)
    m, n, size = query.shape
    if size != embed_dim_to_check or size % num_heads:
        raise ValueError(f"attention: query must have {embed_dim_to_check} features, a multiple of {num_heads} heads, got {size}")
    if use_separate_proj_weight:
        biases = (None,) * 3 if in_proj_bias is None else movement.split(in_proj_bias, size, 0)
        q, k, v = _in_projection(query, key, value, q_proj_weight, k_proj_weight, v_proj_weight, *biases)
    else:
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias, k_is_v, q_is_k)
    if bias_k is not None and bias_v is not None:
        k, v = (movement.cat([x, movement.tile(b, (1, n, 1))], 0) for x, b in ((k, bias_k), (v, bias_v)))
    k = _heads(k, n, num_heads) if static_k is None else static_k
    v = _heads(v, n, num_heads) if static_v is None else static_v
    if add_zero_attn:
        k, v = (image.padded(x, (0, 0, 0), (0, 1, 0)) for x in (k, v))
    q = arithmetic.mul(_heads(q, n, num_heads), (size // num_heads) ** -0.5)
    scores = linalg.matmul(q, movement.adjoint(k))
    extra = k.shape[1] - key.shape[0]
    if is_causal and attn_mask is None:
        attn_mask = creation.made(~np.tri(m, key.shape[0], dtype=np.bool_))
    if attn_mask is not None:
        scores = _masked(scores, movement.reshape(attn_mask, (-1, *attn_mask.shape[-2:])), extra)
    if key_padding_mask is not None:
        rows = movement.repeat_interleave(movement.unsqueeze(key_padding_mask, 1), num_heads, 0)
        scores = _masked(scores, rows, extra)
    weights = _inner_dropout(activation.softmax(scores, -1), dropout_p, training)
    y = movement.reshape(movement.swapaxes(linalg.matmul(weights, v), 0, 1), (m, n, size))
    y = linalg.dense(y, out_proj_weight, out_proj_bias)
    shown = movement.reshape(weights, (n, num_heads, m, k.shape[1]))
    if average_attn_weights:
        shown = reduction.mean(shown, 1)
    return (y, shown) if batched else (movement.squeeze(y, 1), movement.squeeze(shown, 0))


def _heads(x: Tensor, batch: int, heads: int) -> Tensor:
    """[length, batch, heads * size] as [batch * heads, length, size]."""
    return movement.swapaxes(movement.reshape(x, (x.shape[0], batch * heads, -1)), 0, 1)


def _masked(scores: Tensor, mask: Tensor, extra: int) -> Tensor:
    """Scores with a mask; keys that were added behind may be seen."""
    if extra:
        mask = image.padded(mask, (0, 0, 0), (0, 0, extra))
    if mask.dtype is types.bool_:
        return arithmetic.where(mask, -math.inf, scores)
    return arithmetic.add(scores, mask)


def _interploate_ext_make_tuple(input: Any, value: Any) -> tuple[Any, ...]:
    """One value for each spatial dimension."""
    return tuple(value) if isinstance(value, tuple | list) else (value,) * (input.ndim - 2)


def _interpolate_ext_scale_factor_convert_size(input: Any, scale_factor: Any) -> list[int]:
    """The sizes that factors give."""
    return [math.floor(d * f) for d, f in zip(input.shape[2:], _interploate_ext_make_tuple(input, scale_factor), strict=True)]


def __getattr__(name: str) -> Any:
    return auto_generate.found(name, "ops.function.nn_func")
