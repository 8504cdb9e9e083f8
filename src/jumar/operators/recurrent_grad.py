"""Gradients of recurrent layers as one walk back over time, for sequences too long to be unrolled.

In: what came back to the results of an Lstm, Gru or Rnn, and the layer's inputs.  Out: what each of the float inputs receives.  The walk goes
forward once more, keeps the states, and comes back; a layer says its cell's own backward step in `back`.  They run on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import ClassVar, NamedTuple

import numpy as np

from jumar.base import Array, OpError, TensorType
from jumar.ir import Result, Sample, f32t
from jumar.operators.families import Special
from jumar.operators.recurrent import ACTIVATIONS, Activation, Gru, Lstm, Recurrent, Rnn


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


SLOPES: dict[str, Callable[[Array, float, float], Array]] = {
    "Relu": lambda x, a, b: np.where(x > 0, 1.0, 0.0),
    "Tanh": lambda x, a, b: 1 - np.tanh(x) ** 2,
    "Sigmoid": lambda x, a, b: _sigmoid(x) * (1 - _sigmoid(x)),
    "Affine": lambda x, a, b: np.full_like(x, a),
    "LeakyRelu": lambda x, a, b: np.where(x > 0, 1.0, a),
    "ThresholdedRelu": lambda x, a, b: np.where(x > a, 1.0, 0.0),
    "ScaledTanh": lambda x, a, b: a * b * (1 - np.tanh(b * x) ** 2),
    "HardSigmoid": lambda x, a, b: np.where((a * x + b > 0) & (a * x + b < 1), a, 0.0),
    "Elu": lambda x, a, b: np.where(x < 0, a * np.exp(np.minimum(x, 0)), 1.0),
    "Softsign": lambda x, a, b: 1 / np.square(1 + np.abs(x)),
    "Softplus": lambda x, a, b: _sigmoid(x),
}


class Gate(NamedTuple):
    """An activation with its slope, both on what `clip` leaves of their argument."""

    kind: Activation
    clip: float

    def value(self, x: Array) -> Array:
        """The activation itself."""
        name, alpha, beta = self.kind
        return np.asarray(ACTIVATIONS[name](self._clipped(x), alpha, beta))

    def slope(self, x: Array) -> Array:
        """Its derivative; zero where clip holds the argument."""
        name, alpha, beta = self.kind
        found = SLOPES[name](self._clipped(x), alpha, beta).astype(x.dtype)
        return np.where(np.abs(x) <= self.clip, found, 0) if self.clip > 0 else found

    def _clipped(self, x: Array) -> Array:
        return np.clip(x, -self.clip, self.clip) if self.clip > 0 else x


class Weights(NamedTuple):
    """What a cell has in one direction: r [gates * hidden, hidden], its bias, and peepholes where there are any."""

    r: Array
    bias: Array
    extras: Sequence[Array]


class Received(NamedTuple):
    """What one step gives back: to its gates before the activations, to the states before it, and to the weights."""

    fed: Array
    states: list[Array]
    weights: Weights


class RecurrentGrad(Special):
    """What the three have in common.   In: dy, then one for each last state, then the inputs of the layer."""

    abstract = True
    layer_type: ClassVar[type[Recurrent]]

    @property
    def layer(self) -> Recurrent:
        """The layer whose gradient this is."""
        return self.layer_type(*(getattr(self, f.name) for f in fields(self)))

    def infer(self, *types: TensorType) -> Result:
        layer = self.layer
        back, inputs = types[: 1 + layer.states], types[1 + layer.states :]
        results = layer.results(self.name, inputs)
        if back != results:
            raise OpError(
                f"{self.name}: gradients must be {', '.join(map(str, results))}, got {', '.join(map(str, back))}", code="dimension-mismatch"
            )
        return (*inputs[:4], *inputs[5:])

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        layer = self.layer
        (x, w, r, bias, lengths, *rest), back = self._wide(arrays[1 + layer.states :]), self._wide(arrays[: 1 + layer.states])
        grads = [np.zeros_like(a) for a in (x, w, r, bias, *rest)]
        dx, dw, dr, dbias, *drest = grads
        for d, backward in enumerate(layer.backward):
            own, recurrent = np.split(bias[d], 2)
            weights = Weights(r[d], recurrent, [e[d] for e in rest[layer.states :]])
            gates = [Gate(a, layer.clip) for a in layer.of_direction(d)]
            fed = x @ w[d].T + own
            dfed, dstates, dweights = self._walk(gates, fed, [s[d] for s in rest[: layer.states]], weights, lengths, backward, back, d)
            dx += dfed @ w[d]
            flat = dfed.reshape(-1, dfed.shape[-1])
            dw[d] = flat.T @ x.reshape(-1, x.shape[-1])
            dr[d] = dweights.r
            dbias[d] = np.concatenate([flat.sum(axis=0), dweights.bias])
            for into, value in zip(drest, (*dstates, *dweights.extras), strict=True):
                into[d] = value
        kept = (*arrays[1 + layer.states : 5 + layer.states], *arrays[6 + layer.states :])
        return tuple(g.astype(a.dtype) for g, a in zip(grads, kept, strict=True))

    @staticmethod
    def _wide(arrays: Sequence[Array]) -> list[Array]:
        return [a if a.dtype.kind in "iu" else a.astype(np.promote_types(a.dtype, np.float32)) for a in arrays]

    def _walk(
        self, gates: list[Gate], fed: Array, state: list[Array], weights: Weights, lengths: Array, backward: bool, back: list[Array], d: int
    ) -> tuple[Array, list[Array], Weights]:
        """Forward to keep the states, then back.   -> what fed, the first states and the weights receive"""
        layer = self.layer
        seq, batch = fed.shape[:2]
        every = np.arange(batch)
        functions = [g.value for g in gates]
        tape = []
        for t in range(seq):
            at = np.where(t < lengths, lengths - 1 - t, t) if backward else np.full(batch, t)
            live = (t < lengths)[:, None]
            tape.append((at, live, state))
            new = layer.cell(functions, fed[at, every], state, weights.r, weights.bias, weights.extras)
            state = [np.where(live, n, s) for n, s in zip(new, state, strict=True)]
        dfed = np.zeros_like(fed)
        total = Weights(np.zeros_like(weights.r), np.zeros_like(weights.bias), [np.zeros_like(e) for e in weights.extras])
        dstate = [g[d] for g in back[1:]]
        for at, live, state in reversed(tape):
            arrived = [np.where(live, g, 0) for g in dstate]
            arrived[0] = arrived[0] + np.where(live, back[0][at, d, every], 0)
            received = self.back(gates, fed[at, every], state, weights, arrived)
            dfed[at, every] = received.fed
            dstate = [np.where(live, 0, g) + s for g, s in zip(dstate, received.states, strict=True)]
            for into, value in zip((*total[:2], *total.extras), (*received.weights[:2], *received.weights.extras), strict=True):
                into += value
        return dfed, dstate, total

    def back(self, gates: list[Gate], fed: Array, state: list[Array], weights: Weights, dnew: list[Array]) -> Received:
        """One step of the cell, backward."""
        raise NotImplementedError(self.name)


def with_gradients(layer: type[Recurrent]) -> tuple[Sample, ...]:
    """The samples of a layer, with what comes back to its results in front."""
    found = []
    for s in layer.samples:
        (t, b, _), (dirs, _, h) = (np.shape(a) if isinstance(a, np.ndarray) else a.dims for a in (s.inputs[0], s.inputs[2]))
        back = (f32t(t, dirs, b, h), *(f32t(dirs, b, h),) * layer.states)
        found.append(Sample((*back, *s.inputs), s.attributes, s.low, s.high))
    return tuple(found)


class RnnGrad(RecurrentGrad):
    """What the inputs of an `Rnn` receive."""

    activations: tuple[Activation, ...]
    backward: tuple[bool, ...] = (False,)
    clip: float = 0.0
    layer_type = Rnn
    signature = (
        "dy[t, dirs, b, h], dh[dirs, b, h], x[t, b, i], w[dirs, h, i], r[dirs, h, h], bias[dirs, 2h], i32 lengths[b], h0[dirs, b, h]"
        " -> dx[t, b, i], dw[dirs, h, i], dr[dirs, h, h], dbias[dirs, 2h], dh0[dirs, b, h]"
    )
    samples = with_gradients(Rnn)

    def back(self, gates: list[Gate], fed: Array, state: list[Array], weights: Weights, dnew: list[Array]) -> Received:
        (h,) = state
        d = dnew[0] * gates[0].slope(fed + h @ weights.r.T + weights.bias)
        return Received(d, [d @ weights.r], Weights(d.T @ h, d.sum(axis=0), []))


class GruGrad(RecurrentGrad):
    """What the inputs of a `Gru` receive."""

    activations: tuple[Activation, ...]
    backward: tuple[bool, ...] = (False,)
    clip: float = 0.0
    linear_before_reset: bool = False
    layer_type = Gru
    cann = "aclnnGRUBackward"
    signature = (
        "dy[t, dirs, b, h], dh[dirs, b, h], x[t, b, i], w[dirs, 3h, i], r[dirs, 3h, h], bias[dirs, 6h], i32 lengths[b], h0[dirs, b, h]"
        " -> dx[t, b, i], dw[dirs, 3h, i], dr[dirs, 3h, h], dbias[dirs, 6h], dh0[dirs, b, h]"
    )
    samples = with_gradients(Gru)

    def back(self, gates: list[Gate], fed: Array, state: list[Array], weights: Weights, dnew: list[Array]) -> Received:
        f, g = gates
        (h,), (dout,), (r, bias, _) = state, dnew, weights
        two = 2 * r.shape[1]
        both = fed[:, :two] + h @ r[:two].T + bias[:two]
        z, reset = np.split(f.value(both), 2, axis=1)
        dr, dbias = np.empty_like(r), np.empty_like(bias)
        if self.linear_before_reset:
            inner = h @ r[two:].T + bias[two:]
            before = fed[:, two:] + reset * inner
        else:
            before = fed[:, two:] + (reset * h) @ r[two:].T + bias[two:]
        new = g.value(before)
        dbefore, dz, dh = dout * (1 - z) * g.slope(before), dout * (h - new), dout * z
        if self.linear_before_reset:
            dreset, dinner = dbefore * inner, dbefore * reset
            dh = dh + dinner @ r[two:]
            dr[two:], dbias[two:] = dinner.T @ h, dinner.sum(axis=0)
        else:
            dheld = dbefore @ r[two:]
            dreset, dh = dheld * h, dh + dheld * reset
            dr[two:], dbias[two:] = dbefore.T @ (reset * h), dbefore.sum(axis=0)
        dboth = np.concatenate([dz, dreset], axis=1) * f.slope(both)
        dr[:two], dbias[:two] = dboth.T @ h, dboth.sum(axis=0)
        return Received(np.concatenate([dboth, dbefore], axis=1), [dh + dboth @ r[:two]], Weights(dr, dbias, []))


class LstmGrad(RecurrentGrad):
    """What the inputs of an `Lstm` receive."""

    activations: tuple[Activation, ...]
    backward: tuple[bool, ...] = (False,)
    clip: float = 0.0
    input_forget: bool = False
    layer_type = Lstm
    cann = "aclnnLstmBackward"
    signature = (
        "dy[t, dirs, b, h], dh[dirs, b, h], dc[dirs, b, h], x[t, b, i], w[dirs, 4h, i], r[dirs, 4h, h], bias[dirs, 8h], i32 lengths[b],"
        " h0[dirs, b, h], c0[dirs, b, h], peepholes[dirs, 3h]?"
        " -> dx[t, b, i], dw[dirs, 4h, i], dr[dirs, 4h, h], dbias[dirs, 8h], dh0[dirs, b, h], dc0[dirs, b, h], dpeepholes[dirs, 3h]?"
    )
    samples = with_gradients(Lstm)

    def back(self, gates: list[Gate], fed: Array, state: list[Array], weights: Weights, dnew: list[Array]) -> Received:
        f, g, out = gates
        (h, c), (dh, dc), (r, bias, extras) = state, dnew, weights
        i_, o_, f_, c_ = np.split(fed + h @ r.T + bias, 4, axis=1)
        pi, po, pf = np.split(extras[0], 3) if extras else (np.zeros_like(c[0]),) * 3
        i_, f_ = i_ + pi * c, f_ + pf * c
        gate, cand = f.value(i_), g.value(c_)
        forget = 1 - gate if self.input_forget else f.value(f_)
        new = forget * c + gate * cand
        o_ = o_ + po * new
        do = dh * out.value(new) * f.slope(o_)
        dcell = dc + dh * f.value(o_) * out.slope(new) + do * po
        dforget = dcell * c
        dgate = dcell * cand - dforget if self.input_forget else dcell * cand
        df = np.zeros_like(dforget) if self.input_forget else dforget * f.slope(f_)
        di = dgate * f.slope(i_)
        d = np.concatenate([di, do, df, dcell * gate * g.slope(c_)], axis=1)
        peepholes = [np.concatenate([(di * c).sum(axis=0), (do * new).sum(axis=0), (df * c).sum(axis=0)])] if extras else []
        return Received(d, [d @ r, dcell * forget + di * pi + df * pf], Weights(d.T @ h, d.sum(axis=0), peepholes))
