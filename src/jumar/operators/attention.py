"""Attention and what stands around it: rotary positions, linear attention.

In: queries, keys and values with heads as a dimension of their own, [..., heads, length, depth].  Out: for each query the mean of the
values, weighted by how well their keys fit.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from jumar.base import Array, OpError, TensorType, bool_, f16
from jumar.ir import Node, Result, constant, f32t, find_op, sample, tensor
from jumar.operators.contraction import matmul
from jumar.operators.elementwise import And, Tanh, add, cast, exp, greater, mul, select, sub
from jumar.operators.families import Composite, broadcast, wide
from jumar.operators.movement import Concat, Reshape, Slice, Transpose
from jumar.operators.normalization import Normalization, Softmax, widened
from jumar.operators.reduction import ReduceAny

MINUS_INFINITY = float("-inf")


class Attention(Normalization):
    """softmax(q k^T * scale + mask) v, head by head; fewer heads of k and v are shared by neighbouring heads of q.

    causal: query i sees key j where j <= i + offset.   softcap: where positive, scores s become softcap * tanh(s / softcap).
    mask: bool (True: may be seen) or a number that is added to the score.  A query that may see nothing gives zeros.
    """

    scale: float
    causal: bool = False
    softcap: float = 0.0
    offset: int = 0
    signature = "q[..., h, m, d], k[..., h_kv, n, d], v[..., h_kv, n, dv], mask[...]? -> y[..., h, m, dv]"
    samples = (
        sample(f32t(2, 4, 5, 8), f32t(2, 4, 6, 8), f32t(2, 4, 6, 3), scale=0.35),
        sample(f32t(2, 4, 5, 8), f32t(2, 2, 7, 8), f32t(2, 2, 7, 8), scale=0.35, causal=True, offset=2),
        sample(f32t(1, 2, 3, 4), f32t(1, 2, 5, 4), f32t(1, 2, 5, 4), f32t(3, 5), scale=0.5, softcap=2.0),
        sample(f32t(2, 2, 3, 4), f32t(2, 1, 5, 4), f32t(2, 1, 5, 4), tensor(bool_, 2, 1, 3, 5), scale=0.5),
        sample(tensor(f16, 1, 2, 3, 4), tensor(f16, 1, 2, 5, 4), tensor(f16, 1, 2, 5, 4), scale=0.5),
        sample(f32t(2, 4, 3, 4), f32t(1, 2, 5, 4), f32t(1, 2, 5, 4), f32t(2, 1, 1, 5), scale=0.5),
    )
    cann = "aclnnFlashAttentionScore"

    def infer(self, *types: TensorType) -> Result:
        return self.result(self.name, *types)

    def result(self, name: str, *types: TensorType) -> TensorType:
        """The result's type.   name: of the operator that must not be given others, itself or its gradient."""
        q, k, v, *mask = types
        if not q.rank == k.rank == v.rank or q.rank < 3:
            raise OpError(f"{name}: q, k and v must have one rank of at least 3, got {q}, {k} and {v}", code="rank")
        if q.dims[-1] != k.dims[-1] or k.dims[-2] != v.dims[-2] or k.dims[-3] != v.dims[-3] or not k.dims[-3] or q.dims[-3] % k.dims[-3]:
            what = f"{name}: q[..., h, m, d], k[..., g, n, d] and v[..., g, n, e] must fit, got {q}, {k} and {v}"
            raise OpError(what, code="dimension-mismatch")
        if broadcast(name, q.shape[:-3], k.shape[:-3], v.shape[:-3]) != q.shape[:-3]:
            raise OpError(f"{name}: q, k and v must have one batch, got {q}, {k} and {v}", code="dimension-mismatch")
        scores = (*q.shape[:-1], k.shape[-2])
        if mask and broadcast(name, scores, mask[0].shape) != scores:
            raise OpError(f"{name}: mask must broadcast to {list(scores)}, got {mask[0]}", code="broadcast")
        return q.with_shape((*q.shape[:-1], v.shape[-1]))

    def meaning(self, *arrays: Array) -> Array:
        q, k, v, *mask = arrays
        share = q.shape[-3] // k.shape[-3]
        k, v = (np.repeat(a, share, axis=-3) for a in (k, v))
        scores = np.matmul(q * self.scale, np.swapaxes(k, -1, -2))
        if self.softcap > 0:
            scores = np.tanh(scores / self.softcap) * self.softcap
        bias = np.zeros(scores.shape[-2:], scores.dtype)
        if self.causal:
            bias = np.where(causal_mask(scores.shape[-2], scores.shape[-1], self.offset), bias, -np.inf)
        if mask:
            bias = bias + (np.where(mask[0], 0, -np.inf) if mask[0].dtype == np.bool_ else mask[0])
        scores = (scores + bias).astype(scores.dtype)
        blind = np.isneginf(bias.max(axis=-1, keepdims=True, initial=-np.inf))
        return np.asarray(np.matmul(np.where(blind, 0, Softmax().meaning(scores)).astype(scores.dtype), v))

    def formula(self, *inputs: Node) -> Node:
        q, k, v, *mask = inputs
        scores = attention_scores(q, k, self.scale, self.softcap)
        scores = masked(scores, *mask, causal=self.causal, offset=self.offset)
        return attention_values(attention_weights(scores, *mask, causal=self.causal, offset=self.offset), v)

    def flops(self, *types: TensorType) -> int:
        """Both matrix products."""
        q, k, v, *_ = types
        return 2 * math.prod(q.dims[:-1]) * k.dims[-2] * (q.dims[-1] + v.dims[-1])

    def grad(self, *nodes: Node) -> tuple[Node | None, ...]:
        q, k, v, *mask, y, dy = nodes
        op: Any = find_op("attention_grad")  # by name: attention_grad.py builds on this file
        walk = op(self.scale, self.causal, self.softcap, self.offset)
        dmask = [cast(walk.mask_gradient(q, k, v, y, dy, *mask), m.dtype) if m.dtype.is_float else None for m in mask]
        return (*walk(q, k, v, y, dy, *mask).results, *dmask)


def attention_scores(q: Node, k: Node, scale: float, softcap: float = 0.0) -> Node:
    """q k^T * scale, softly capped.   q: [..., h, m, d]   k: [..., g, n, d]   ->   [..., h, m, n]

    Heads that share a key are laid under each other as further rows: one product for each head of `k`.
    """
    *batch, h, m, d = q.shape
    g = k.shape[-3]
    rows = Reshape((*batch, g, h // g * m, d))(mul(q, scale))
    last = k.rank - 1
    scores = Reshape((*batch, h, m, k.shape[-2]))(matmul(rows, Transpose((*range(last - 1), last, last - 1))(k)))
    if softcap <= 0:
        return scores
    return mul(Tanh()(mul(scores, 1 / softcap)), softcap)


def masked(scores: Node, *mask: Node, causal: bool = False, offset: int = 0) -> Node:
    """Scores with the mask added, and minus infinity where a bool mask or the causal order forbids."""
    for m in mask:
        scores = select(m, scores, MINUS_INFINITY) if m.dtype == bool_ else add(scores, m)
    if causal:
        scores = select(constant(causal_mask(scores.shape[-2], scores.shape[-1], offset)), scores, MINUS_INFINITY)
    return scores


def attention_weights(scores: Node, *mask: Node, causal: bool = False, offset: int = 0) -> Node:
    """Softmax of masked scores; zeros where mask and causal order leave a query nothing to see."""
    weights = Softmax(-1)(scores)
    seen = [m if m.dtype == bool_ else greater(m, MINUS_INFINITY) for m in mask]
    if causal and (mask or offset < 0):
        seen.append(constant(causal_mask(scores.shape[-2], scores.shape[-1], offset)))
    if not seen:
        return weights
    sees = functools.reduce(And(), seen)
    return select(ReduceAny((sees.rank - 1,), keepdims=True)(sees), weights, 0)


def attention_values(weights: Node, v: Node) -> Node:
    """weights v.   weights: [..., h, m, n]   v: [..., g, n, e]   ->   [..., h, m, e]"""
    *batch, h, m, n = weights.shape
    g = v.shape[-3]
    y = matmul(Reshape((*batch, g, h // g * m, n))(weights), v)
    return Reshape((*batch, h, m, v.shape[-1]))(y)


def causal_mask(m: int, n: int, offset: int = 0) -> Array:
    """True where query i may see key j: j <= i + offset.   -> [m, n]"""
    return np.asarray(np.arange(n) <= np.arange(m)[:, None] + offset)


class RotaryEmbedding(Composite):
    """Turns pairs of elements of the last dimension by angles that depend on the position; what the angles do not cover stays.

    A pair is (i, i + half), or (2i, 2i + 1) with interleaved.  cos and sin broadcast against x, with half as many elements.
    """

    interleaved: bool = False
    signature = "x[..., d], cos[..., half], sin[..., half] -> y[..., d]"
    samples = (
        sample(f32t(2, 3, 4, 8), f32t(2, 1, 4, 4), f32t(2, 1, 4, 4)),
        sample(f32t(2, 4, 3, 8), f32t(4, 1, 2), f32t(4, 1, 2), interleaved=True),
    )
    cann = "aclnnRotaryPositionEmbedding"

    def infer(self, *types: TensorType) -> Result:
        x, cos, sin = types
        if cos.shape != sin.shape or 2 * cos.dims[-1] > x.dims[-1]:
            what = f"rotary_embedding: cos and sin must have one shape [..., <= d/2], got {cos} and {sin} for {x}"
            raise OpError(what, code="dimension-mismatch")
        if broadcast(self.name, x.shape[:-1], cos.shape[:-1]) != x.shape[:-1]:
            raise OpError(f"rotary_embedding: cos and sin must broadcast to x, got {cos} for {x}", code="broadcast")
        return x

    def reference(self, *arrays: Array) -> Array:
        x, cos, sin = map(wide, arrays)
        half = cos.shape[-1]
        first = (..., slice(0, 2 * half, 2) if self.interleaved else slice(0, half))
        second = (..., slice(1, 2 * half, 2) if self.interleaved else slice(half, 2 * half))
        y = x.copy()
        y[first] = x[first] * cos - x[second] * sin
        y[second] = x[first] * sin + x[second] * cos
        turned: Array = y.astype(arrays[0].dtype)
        return turned

    def decompose(self, *inputs: Node) -> Node:
        x, cos, sin = map(widened, inputs)
        half, axis = cos.shape[-1], x.rank - 1
        if self.interleaved:
            pairs = Reshape((*x.shape[:-1], half, 2))(_part(x, 0, 2 * half))
            a, b = (Reshape((*x.shape[:-1], half))(_part(pairs, i, i + 1)) for i in range(2))
        else:
            a, b = _part(x, 0, half), _part(x, half, 2 * half)
        turned = [sub(mul(a, cos), mul(b, sin)), add(mul(a, sin), mul(b, cos))]
        if self.interleaved:
            y = Reshape((*x.shape[:-1], 2 * half))(Concat(axis + 1)(*(Reshape((*x.shape[:-1], half, 1))(t) for t in turned)))
        else:
            y = Concat(axis)(*turned)
        if 2 * half < x.shape[-1]:
            y = Concat(axis)(y, _part(x, 2 * half, x.shape[-1]))
        return cast(y, inputs[0].dtype)


def _part(x: Node, start: int, stop: int) -> Node:
    """Elements start..stop of the last dimension."""
    rank = x.rank
    return Slice((0,) * (rank - 1) + (start,), (*x.shape[:-1], stop), (1,) * rank)(x) if (start, stop) != (0, x.shape[-1]) else x


class LinearAttention(Composite):
    """Attention as a recurrence on a state S[d, e] for each head: S_t = exp(g_t) S_(t-1) + update, y_t = scale q_t S_t.

    The update is k_t (outer) v_t; with `delta` it is beta_t k_t (outer) (v_t - k_t exp(g_t) S_(t-1)).
    gated: a decay g [b, h, t, d] or [b, h, t, 1] follows v; delta: a rate beta [b, h, t, 1] comes last.
    """

    scale: float
    gated: bool = True
    delta: bool = True
    signature = (
        "q[b, hq, t, d], k[b, h, t, d], v[b, h, t, e], state[b, h, d, e], g[b, h or 1, t, d or 1]?, beta[b, h or 1, t, 1]?"
        " -> y[b, hq, t, e], last[b, h, d, e]"
    )
    samples = (
        sample(f32t(1, 4, 3, 4), f32t(1, 2, 3, 4), f32t(1, 2, 3, 5), f32t(1, 2, 4, 5), f32t(1, 2, 3, 1), f32t(1, 2, 3, 1), scale=0.5,
               high=0.5),
        sample(f32t(1, 2, 3, 4), f32t(1, 2, 3, 4), f32t(1, 2, 3, 5), f32t(1, 2, 4, 5), scale=0.5, gated=False, delta=False, high=0.5),
    )  # fmt: skip

    def infer(self, *types: TensorType) -> Result:
        q, _, v, state, *rest = types
        if len(rest) != self.gated + self.delta:
            raise OpError(f"linear_attention: inputs must be {4 + self.gated + self.delta}, got {len(types)}", code="operand-count")
        if not state.dims[1] or q.dims[1] % state.dims[1]:
            raise OpError(f"linear_attention: heads of q must be a multiple of {state.shape[1]}, got {q}", code="dimension-mismatch")
        each = (*state.shape[:2], q.shape[2], q.shape[3])
        apart = [(r.shape[0], r.shape[2]) != (each[0], each[2]) or broadcast(self.name, each, r.shape) != each for r in rest]
        if any(apart) or (self.delta and rest[-1].shape[3] != 1):
            what = f"linear_attention: g and beta must be [b, h or 1, t, d or 1], got {', '.join(map(str, rest))} for {q}"
            raise OpError(what, code="dimension-mismatch")
        return q.with_shape((*q.shape[:3], v.shape[3])), state

    def reference(self, *arrays: Array) -> tuple[Array, Array]:
        q, k, v, state, *rest = (a.astype(np.float64) for a in arrays)
        share = q.shape[1] // k.shape[1]
        y = np.zeros((*q.shape[:3], v.shape[3]))
        for t in range(q.shape[2]):
            if self.gated:
                state = np.exp(rest[0][:, :, t, :, None]) * state
            key, value = k[:, :, t, :, None], v[:, :, t, None, :]
            if self.delta:
                value = rest[-1][:, :, t, :, None] * (value - (key * state).sum(axis=2, keepdims=True))
            state = state + key * value
            y[:, :, t] = self.scale * np.einsum("bhd,bhde->bhe", q[:, :, t], np.repeat(state, share, axis=1))
        return y.astype(arrays[0].dtype), state.astype(arrays[3].dtype)

    def decompose(self, *inputs: Node) -> tuple[Node, Node]:
        q, k, v, state, *rest = map(widened, inputs)
        (b, hq, _, d), h, e = q.shape, k.shape[1], v.shape[3]
        q = mul(q, self.scale)
        steps = []
        for t in range(q.shape[2]):
            if self.gated:
                decay = _step(rest[0], t)
                state = mul(Reshape((b, h, decay.shape[3], 1))(exp(decay)), state)
            key, value = _step(k, t), _step(v, t)
            if self.delta:
                value = mul(_step(rest[-1], t), sub(value, matmul(key, state)))
            state = add(state, mul(Reshape((b, h, d, 1))(key), value))
            steps.append(Reshape((b, hq, 1, e))(matmul(Reshape((b, h, hq // h, d))(_step(q, t)), state)))
        y = Concat(2)(*steps) if len(steps) > 1 else steps[0]
        return cast(y, inputs[0].dtype), cast(state, inputs[3].dtype)


def _step(x: Node, t: int) -> Node:
    """x[:, :, t : t + 1]"""
    b, h, _, d = x.shape
    return Slice((0, 0, t, 0), (b, h, t + 1, d), (1, 1, 1, 1))(x)
