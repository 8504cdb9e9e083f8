"""Attention with several heads, and the layers of a transformer.

In: [seq, batch, features], or batch first.  Out: the same.  Masks are boolean (True is not attended to) or added to the scores.
"""

from __future__ import annotations

import copy
import math
from typing import Any

from jumar import ops
from jumar.common.initializer import XavierNormal, XavierUniform, initializer
from jumar.frontend import dtype as types
from jumar.frontend.parameter import Parameter
from jumar.frontend.promote import cast
from jumar.frontend.tensor import Tensor
from jumar.nn.cell import Cell
from jumar.nn.layer.basic import Dense, Dropout, dense
from jumar.nn.layer.container import CellList
from jumar.nn.layer.normalization import LayerNorm


class MultiheadAttention(Cell):
    """softmax(q k^T / sqrt(d)) v for each head, between projections.

    kdim, vdim: features of keys and values, where they differ.   Returns (result, weights); weights is None unless need_weights.
    """

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, has_bias: bool = True, add_bias_kv: bool = False, add_zero_attn: bool = False,
        kdim: int | None = None, vdim: int | None = None, batch_first: bool = False, dtype: Any = types.float32,
    ) -> None:  # fmt: skip
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(
                "The init argument 'embed_dim' must be divisible by 'num_heads'. But got 'embed_dim'"
                f"={embed_dim} and 'num_heads'={num_heads}."
            )
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.head_dim, self.add_zero_attn = embed_dim // num_heads, add_zero_attn
        self._same = self.kdim == embed_dim and self.vdim == embed_dim
        start = XavierUniform()
        if self._same:
            self.in_proj_weight = Parameter(initializer(start, (3 * embed_dim, embed_dim), dtype), name="in_proj_weight")
        else:
            self.q_proj_weight = Parameter(initializer(start, (embed_dim, embed_dim), dtype), name="q_proj_weight")
            self.k_proj_weight = Parameter(initializer(start, (embed_dim, self.kdim), dtype), name="k_proj_weight")
            self.v_proj_weight = Parameter(initializer(start, (embed_dim, self.vdim), dtype), name="v_proj_weight")
        self.in_proj_bias: Any = None
        if has_bias:
            self.in_proj_bias = Parameter(initializer("zeros", (3 * embed_dim,), dtype), name="in_proj_bias")
        self.out_proj = Dense(embed_dim, embed_dim, has_bias=has_bias, dtype=dtype)
        self.bias_k: Any = None
        self.bias_v: Any = None
        if add_bias_kv:
            self.bias_k = Parameter(initializer(XavierNormal(), (1, 1, embed_dim), dtype), name="bias_k")
            self.bias_v = Parameter(initializer(XavierNormal(), (1, 1, embed_dim), dtype), name="bias_v")

    def _projected(self, q: Tensor, k: Tensor, v: Tensor) -> list[Tensor]:
        biases = [None] * 3 if self.in_proj_bias is None else ops.split(self.in_proj_bias, self.embed_dim, 0)
        if self._same:
            if q is k and k is v:
                return list(ops.chunk(dense(q, self.in_proj_weight, self.in_proj_bias), 3, -1))
            weights = ops.split(self.in_proj_weight, self.embed_dim, 0)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        return [dense(x, w, b) for x, w, b in zip((q, k, v), weights, biases, strict=True)]

    def _heads(self, x: Tensor) -> Tensor:
        """[seq, batch, embed] -> [batch, heads, seq, head_dim]."""
        seq, batch, _ = x.shape
        return ops.transpose(ops.reshape(x, (seq, batch, self.num_heads, self.head_dim)), (1, 2, 0, 3))  # type: ignore[no-any-return]

    def construct(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None, need_weights: bool = True,
        attn_mask: Tensor | None = None, average_attn_weights: bool = True,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        single = query.ndim == 2
        turn = self.batch_first and not single
        same = query is key and key is value
        if single:
            query, key, value = (ops.expand_dims(t, 1) for t in (query, key, value))
        elif turn:
            query, key, value = (ops.swapaxes(t, 0, 1) for t in (query, key, value))
        if same:
            key = value = query
        length, batch, _ = query.shape
        q, k, v = self._projected(query, key, value)
        extra = 0
        if self.bias_k is not None:
            k = ops.cat([k, ops.broadcast_to(cast(self.bias_k, k.dtype), (1, batch, self.embed_dim))], 0)
            v = ops.cat([v, ops.broadcast_to(cast(self.bias_v, v.dtype), (1, batch, self.embed_dim))], 0)
            extra += 1
        q, k, v = self._heads(q), self._heads(k), self._heads(v)
        if self.add_zero_attn:
            zeros = ops.zeros((batch, self.num_heads, 1, self.head_dim), k.dtype)
            k, v = ops.cat([k, zeros], 2), ops.cat([v, zeros], 2)
            extra += 1
        scores = ops.matmul(q * (1 / math.sqrt(self.head_dim)), ops.swapaxes(k, -1, -2))
        if attn_mask is not None:
            mask = _additive(attn_mask, scores)
            if mask.ndim == 3:
                mask = ops.reshape(mask, (batch, self.num_heads, *mask.shape[1:]))
            scores = scores + (ops.pad(mask, [0, extra]) if extra else mask)
        if key_padding_mask is not None:
            mask = _additive(ops.reshape(key_padding_mask, (batch, 1, 1, -1)), scores)
            scores = scores + (ops.pad(mask, [0, extra]) if extra else mask)
        weights = ops.softmax(scores, -1)
        used = ops.dropout(weights, p=self.dropout, training=True) if self.training and self.dropout else weights
        mixed = ops.reshape(ops.transpose(ops.matmul(used, v), (2, 0, 1, 3)), (length, batch, self.embed_dim))
        result = self.out_proj(mixed)
        shown = None
        if need_weights:
            shown = ops.mean(weights, 1) if average_attn_weights else weights
        if single:
            result, shown = ops.squeeze(result, 1), None if shown is None else ops.squeeze(shown, 0)
        elif turn:
            result = ops.swapaxes(result, 0, 1)
        return result, shown


def _additive(mask: Tensor, like: Tensor) -> Tensor:
    """A mask as numbers to add: minus infinity where a boolean one is True."""
    if mask.dtype is types.bool_:
        zero, least = Tensor(0.0, like.dtype), Tensor(float("-inf"), like.dtype)
        return ops.where(mask, least, zero)  # type: ignore[no-any-return]
    return cast(mask, like.dtype)


def _activation(activation: Any) -> Any:
    if isinstance(activation, str):
        if activation not in ("relu", "gelu"):
            raise ValueError(f"The activation must be 'relu' or 'gelu', but got {activation}.")
        return ops.relu if activation == "relu" else ops.gelu
    if not callable(activation):
        raise TypeError(f"The argument 'activation' must be str, callable or Cell instance, but got {activation}.")
    return activation


class _Layer(Cell):
    """What layers of encoders and decoders share: two dense layers, norms and dropouts."""

    def _dense_part(self, x: Tensor) -> Tensor:
        return self.dense2(self.dropout(self.activation(self.dense1(x))))  # type: ignore[no-any-return]


class TransformerEncoderLayer(_Layer):
    """Self-attention, then two dense layers; each is added to its input and normalised (norm_first: before)."""

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = "relu", layer_norm_eps: float = 1e-5,
        batch_first: bool = False, norm_first: bool = False, dtype: Any = types.float32,
    ) -> None:  # fmt: skip
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, dtype=dtype)
        self.dense1 = Dense(d_model, dim_feedforward, dtype=dtype)
        self.dropout = Dropout(p=dropout)
        self.dense2 = Dense(dim_feedforward, d_model, dtype=dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
        self.norm2 = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
        self.dropout1 = Dropout(p=dropout)
        self.dropout2 = Dropout(p=dropout)
        self.activation = _activation(activation)

    def _attend(self, x: Tensor, mask: Any, padding: Any) -> Tensor:
        return self.dropout1(  # type: ignore[no-any-return]
            self.self_attn(x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False)[0]
        )

    def construct(self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None) -> Tensor:
        x = src
        if self.norm_first:
            x = x + self._attend(self.norm1(x), src_mask, src_key_padding_mask)
            return x + self.dropout2(self._dense_part(self.norm2(x)))  # type: ignore[no-any-return]
        x = self.norm1(x + self._attend(x, src_mask, src_key_padding_mask))
        return self.norm2(x + self.dropout2(self._dense_part(x)))  # type: ignore[no-any-return]


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the memory, then two dense layers."""

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = "relu", layer_norm_eps: float = 1e-5,
        batch_first: bool = False, norm_first: bool = False, dtype: Any = types.float32,
    ) -> None:  # fmt: skip
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, dtype=dtype)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, dtype=dtype)
        self.dense1 = Dense(d_model, dim_feedforward, dtype=dtype)
        self.dropout = Dropout(p=dropout)
        self.dense2 = Dense(dim_feedforward, d_model, dtype=dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
        self.norm2 = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
        self.norm3 = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
        self.dropout1 = Dropout(p=dropout)
        self.dropout2 = Dropout(p=dropout)
        self.dropout3 = Dropout(p=dropout)
        self.activation = _activation(activation)

    def construct(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        def itself(x: Tensor) -> Tensor:
            found = self.self_attn(x, x, x, attn_mask=tgt_mask, key_padding_mask=tgt_key_padding_mask, need_weights=False)[0]
            return self.dropout1(found)  # type: ignore[no-any-return]

        def other(x: Tensor) -> Tensor:
            found = self.multihead_attn(
                x, memory, memory, attn_mask=memory_mask, key_padding_mask=memory_key_padding_mask, need_weights=False
            )[0]
            return self.dropout2(found)  # type: ignore[no-any-return]

        x = tgt
        if self.norm_first:
            x = x + itself(self.norm1(x))
            x = x + other(self.norm2(x))
            return x + self.dropout3(self._dense_part(self.norm3(x)))  # type: ignore[no-any-return]
        x = self.norm1(x + itself(x))
        x = self.norm2(x + other(x))
        return self.norm3(x + self.dropout3(self._dense_part(x)))  # type: ignore[no-any-return]


def _copies(layer: Cell, count: int) -> CellList:
    """Copies of a layer, whose parameters are named by their places."""
    return CellList([copy.deepcopy(layer) for _ in range(count)])


class TransformerEncoder(Cell):
    """Encoder layers, one after another, and a norm where one is given."""

    def __init__(self, encoder_layer: Cell, num_layers: int, norm: Cell | None = None) -> None:
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm: Any = norm

    def construct(self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None) -> Tensor:
        x = src
        for layer in self.layers:
            x = layer(x, src_mask=src_mask, src_key_padding_mask=src_key_padding_mask)
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(Cell):
    """Decoder layers, one after another, and a norm where one is given."""

    def __init__(self, decoder_layer: Cell, num_layers: int, norm: Cell | None = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm: Any = norm

    def construct(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        x = tgt
        for layer in self.layers:
            x = layer(
                x, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
            )  # fmt: skip
        return x if self.norm is None else self.norm(x)


class Transformer(Cell):
    """An encoder and a decoder."""

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6, dim_feedforward: int = 2048,
        dropout: float = 0.1, activation: Any = "relu", custom_encoder: Cell | None = None, custom_decoder: Cell | None = None,
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, dtype: Any = types.float32,
    ) -> None:  # fmt: skip
        super().__init__()
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, dtype)
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            norm = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
            self.encoder = TransformerEncoder(TransformerEncoderLayer(*sizes), num_encoder_layers, norm)
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            norm = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
            self.decoder = TransformerDecoder(TransformerDecoderLayer(*sizes), num_decoder_layers, norm)
        for _, p in self.parameters_and_names():
            if p.ndim > 1:
                p.set_data(initializer("xavier_uniform", p.shape, p.dtype))
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def construct(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ValueError(
                f"For 'Transformer', src and tgt must have {self.d_model} features, but got {src.shape[-1]} and {tgt.shape[-1]}."
            )
        memory = self.encoder(src, src_mask=src_mask, src_key_padding_mask=src_key_padding_mask)
        return self.decoder(  # type: ignore[no-any-return]
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
        )  # fmt: skip


__all__ = [
    "MultiheadAttention", "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",

]  # fmt: skip
