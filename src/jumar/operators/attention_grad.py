"""What queries, keys and values of an attention receive.

In: its inputs, its result and what came back to that.  Out: five products: scores and weights are made again, and what the softmax subtracts is
the sum of dy * y, in rows of values.
"""

from __future__ import annotations

import math

import numpy as np

from jumar.base import Array, OpError, TensorType
from jumar.ir import Node, Result, Sample
from jumar.operators.attention import Attention, attention_scores, attention_weights, causal_mask, masked
from jumar.operators.contraction import matmul, turned
from jumar.operators.elementwise import cast, mul, square, sub
from jumar.operators.families import Composite, wide
from jumar.operators.movement import reshape, sum_to
from jumar.operators.normalization import widened
from jumar.operators.reduction import ReduceSum


class AttentionGrad(Composite):
    """What q, k and v of an `Attention` receive, given its result y and dy; the attributes are those of the attention."""

    scale: float
    causal: bool = False
    softcap: float = 0.0
    offset: int = 0
    signature = (
        "q[..., h, m, d], k[..., h_kv, n, d], v[..., h_kv, n, dv], y[..., h, m, dv], dy[..., h, m, dv], mask[...]?"
        " -> dq[..., h, m, d], dk[..., h_kv, n, d], dv[..., h_kv, n, dv]"
    )
    samples = tuple(
        Sample((q, k, v, *(Attention(**s.attributes).infer(q, k, v, *mask),) * 2, *mask), s.attributes, s.low, s.high)  # type: ignore[arg-type]
        for s in Attention.samples
        for q, k, v, *mask in (s.inputs,)
    )
    cann = "aclnnFlashAttentionScoreGrad"

    @property
    def attention(self) -> Attention:
        """The attention whose gradient this is."""
        return Attention(self.scale, self.causal, self.softcap, self.offset)

    def infer(self, *types: TensorType) -> Result:
        q, k, v, y, dy, *mask = types
        if not (result := self.attention.result(self.name, q, k, v, *mask)) == y == dy:
            raise OpError(f"attention_grad: y and dy must be {result}, got {y} and {dy}", code="dimension-mismatch")
        return q, k, v

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        q, k, v, y, dy, *mask = (a if a.dtype == np.bool_ else wide(a) for a in arrays)
        share, (m, n) = q.shape[-3] // k.shape[-3], (q.shape[-2], k.shape[-2])
        heads_k, heads_v = (np.repeat(a, share, axis=-3) for a in (k, v))
        scores = np.matmul(q * self.scale, np.swapaxes(heads_k, -1, -2))
        slope = np.ones_like(scores)
        if self.softcap > 0:
            scores = np.tanh(scores / self.softcap)
            slope, scores = 1 - np.square(scores), scores * self.softcap
        for a in mask:
            scores = scores + (np.where(a, 0, -np.inf) if a.dtype == np.bool_ else a)
        if self.causal:
            scores = np.where(causal_mask(m, n, self.offset), scores, -np.inf)
        top = scores.max(axis=-1, keepdims=True)
        weights = np.exp(scores - np.where(np.isneginf(top), 0, top))
        total = weights.sum(axis=-1, keepdims=True)
        weights = weights / np.where(total == 0, 1, total)
        dscores = weights * (np.matmul(dy, np.swapaxes(heads_v, -1, -2)) - (dy * y).sum(axis=-1, keepdims=True)) * slope * self.scale
        dq = np.matmul(dscores, heads_k)
        dk, dv = np.matmul(np.swapaxes(dscores, -1, -2), q), np.matmul(np.swapaxes(weights, -1, -2), dy)
        found = (dq, *(_shared(d, a.shape, share) for d, a in ((dk, k), (dv, v))))
        return tuple(d.astype(a.dtype) for d, a in zip(found, arrays, strict=False))

    def decompose(self, *inputs: Node) -> tuple[Node, ...]:
        q, k, v, _, dy, *_ = wide_inputs = [widened(n) for n in inputs]
        weights, dscores = self._weights(*wide_inputs)
        h, m, g = q.shape[-3], q.shape[-2], k.shape[-3]

        def rows(x: Node) -> Node:
            return reshape(x, (*q.shape[:-3], g, h // g * m, x.shape[-1]))  # heads that share a key lie under each other

        dv = sum_to(matmul(turned(rows(weights)), rows(dy)), v.shape)
        if self.softcap > 0:
            dscores = mul(dscores, sub(1, square(mul(attention_scores(q, k, self.scale, self.softcap), 1 / self.softcap))))
        scaled = rows(mul(dscores, self.scale))
        dq = reshape(matmul(scaled, k), q.shape)
        dk = sum_to(matmul(turned(scaled), rows(q)), k.shape)
        return tuple(cast(d, n.dtype) for d, n in zip((dq, dk, dv), inputs, strict=False))

    def mask_gradient(self, *inputs: Node) -> Node:
        """What a mask of numbers receives."""
        _, dscores = self._weights(*(widened(n) for n in inputs))
        return sum_to(dscores, inputs[5].shape)

    def _weights(self, q: Node, k: Node, v: Node, y: Node, dy: Node, *mask: Node) -> tuple[Node, Node]:
        """The weights, and what the masked scores receive."""
        (*batch, h, m, _), g, n = q.shape, k.shape[-3], k.shape[-2]
        scores = masked(attention_scores(q, k, self.scale, self.softcap), *mask, causal=self.causal, offset=self.offset)
        weights = attention_weights(scores, *mask, causal=self.causal, offset=self.offset)
        dweights = reshape(matmul(reshape(dy, (*batch, g, h // g * m, v.shape[-1])), turned(v)), (*batch, h, m, n))
        return weights, mul(weights, sub(dweights, ReduceSum((y.rank - 1,), keepdims=True)(mul(dy, y))))

    def flops(self, *types: TensorType) -> int:
        """All five products."""
        q, k, v, *_ = types
        return 2 * math.prod(q.dims[:-1]) * k.dims[-2] * (3 * q.dims[-1] + 2 * v.dims[-1])


def _shared(d: Array, shape: tuple[int, ...], share: int) -> Array:
    """Summed over the heads that share one, and over what was broadcast."""
    d = d.reshape(*d.shape[:-3], d.shape[-3] // share, share, *d.shape[-2:]).sum(axis=-3)
    axes = tuple(i for i, size in enumerate(shape) if size == 1 and d.shape[i] != 1)
    return np.asarray(d.sum(axis=axes, keepdims=True))
