"""Gradients of recurrent layers: one walk back over time.

In: what came back to the results of an Lstm, Gru or Rnn, and what its forward pass kept (`kept` in recurrent.py).  Out: what the gates of each
step receive, before their activations, and what the first states receive.  Products over all steps at once make of that what x and the
weights receive (`Recurrent.grad`).  A layer says one step back twice: `back` in NumPy, `back_step` in operators, where gradients have gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

from jumar.base import Array, OpError, TensorType
from jumar.ir import Node, Result, Sample, constant, f32t
from jumar.operators.activation import Clip
from jumar.operators.contraction import matmul
from jumar.operators.elementwise import add, cast, greater, mul, select, sub
from jumar.operators.families import Composite, wide
from jumar.operators.movement import Reshape, broadcast_to, concat, reshape
from jumar.operators.normalization import widened
from jumar.operators.recurrent import (
    ACTIVATIONS,
    Activation,
    ArrayStep,
    Gru,
    Lstm,
    NodeStep,
    Recurrent,
    Rnn,
    activate,
    gate_of,
    rows_of,
    wide_dtype,
)


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

    def node(self, x: Node) -> Node:
        """`value` in operators."""
        return activate(self.kind, Clip(-self.clip, self.clip)(x) if self.clip > 0 else x)

    def node_back(self, x: Node, dy: Node) -> Node:
        """dy * slope in operators: back through the few operators that the activation is made of."""
        at = self.node(x)
        while at is not x:
            op: Any = at.op
            which = next(i for i, n in enumerate(at.inputs) if n.array is None)
            dy = op.grad(*at.inputs, at, dy)[which] if len(at.inputs) > 1 else _first(op.grad(*at.inputs, at, dy))
            at = at.inputs[which]
        return dy


def _first(given: Any) -> Node:
    return given[0] if isinstance(given, tuple | list) else given  # type: ignore[no-any-return]


class RecurrentGrad(Composite):
    """What the three have in common.

    In: dy, then one for each last state, then what the layer kept as far as `reads` says, r, the lengths, and peepholes or what the layer kept
    for its reset gate, where there are any.
    Out: what the gates receive, zero past the lengths; one for each first state; where a Gru has linear_before_reset, what its products with
    h receive.
    """

    abstract = True
    activations: tuple[Activation, ...]
    backward: tuple[bool, ...] = (False,)
    clip: float = 0.0
    layer_type: ClassVar[type[Recurrent]]
    reads: ClassVar[tuple[int, ...]]  # of what the layer kept: the gates, and the state that the walk reads (products read the others)

    @property
    def layer(self) -> Recurrent:
        """The layer whose gradient this is."""
        return self.layer_type(**{f.name: getattr(self, f.name) for f in fields(self)})

    def infer(self, *types: TensorType) -> Result:
        layer = self.layer
        if len(self.activations) != (count := len(self.backward) * len(layer.functions)):
            raise OpError(f"{self.name}: activations must be {count}, got {len(self.activations)}", code="activation")
        first, count = 1 + layer.states, len(self.reads)
        dy, dh, gates, (r, lengths, *more) = types[0], types[1], types[first], types[first + count :]
        (dirs, batch, hidden), seq, each = dh.dims, dy.dims[0], layer.gates * dh.dims[2]
        if layer.inner != bool(more) and not isinstance(layer, Lstm):
            raise OpError(f"{self.name}: inputs must be {first + count + 2 + layer.inner}, got {len(types)}", code="operand-count")
        expected = [(dy, (seq, dirs, batch, hidden)), *((t, dh.shape) for t in types[1:first]), (gates, (dirs, seq, batch, each))]
        expected += [(t, (dirs, seq, batch, hidden)) for t in types[first + 1 : first + count]]
        expected += [(r, (dirs, each, hidden)), (lengths, (batch,))]
        expected += [(t, (dirs, seq, batch, hidden) if layer.inner else (dirs, 3 * hidden)) for t in more]
        for found, shape in expected:
            if found.shape != shape or len(self.backward) != dirs:
                raise OpError(f"{self.name}: input must be {list(shape)}, got {found}", code="dimension-mismatch")
        if gates.dtype != wide_dtype(dy.dtype):
            raise OpError(f"{self.name}: gates must be {wide_dtype(dy.dtype)}, got {gates}", code="dtype-mismatch")
        return (gates, *types[1:first], *(gates,) * layer.inner)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        layer = self.layer
        first = 1 + layer.states
        dy, *dlast = map(wide, arrays[:first])
        end = first + len(self.reads)
        kept, (r, lengths, *more) = arrays[first:end], map(wide, arrays[end:])
        inner, peepholes = (more, []) if layer.inner else ([], more)
        seq, _, batch, _ = dy.shape
        every = np.arange(batch)
        received = [np.zeros_like(kept[0]) for _ in range(1 + layer.inner)]
        firsts: list[list[Array]] = []
        for d, backward in enumerate(self.backward):
            gates = [Gate(a, layer.clip) for a in layer.of_direction(d)]
            dstate = [g[d] for g in dlast]
            for t in reversed(range(seq)):
                at = np.where(t < lengths, lengths - 1 - t, t) if backward else np.full(batch, t)
                live = (t < lengths)[:, None]
                arrived = [dstate[0] + dy[at, d, every], *dstate[1:]]
                to_gates, states = self.back(gates, [k[d, at, every] for k in (*kept, *inner)], r[d], [p[d] for p in peepholes], arrived)
                for into, value in zip(received, to_gates, strict=True):
                    into[d, at, every] = np.where(live, value, 0)
                dstate = [np.where(live, n, g) for n, g in zip(states, dstate, strict=True)]
            firsts.append(dstate)
        states = [np.stack(s).astype(arrays[1].dtype) for s in zip(*firsts, strict=True)]
        return (received[0], *states, *received[1:])

    def back(self, gates: list[Gate], kept: Sequence[Array], r: Array, peepholes: Sequence[Array], dnew: list[Array]) -> ArrayStep:
        """One step of the cell, backward: what its gates receive (and its products with h), and what the states before it do."""
        raise NotImplementedError(self.name)

    def decompose(self, *inputs: Node) -> tuple[Node, ...]:
        """Unrolled over time."""
        layer = self.layer
        first = 1 + layer.states
        end = first + len(self.reads)
        dy, *dlast = map(widened, inputs[:first])
        kept, (r, lengths, *more) = inputs[first:end], map(widened, inputs[end:])
        inner, peepholes = (more, []) if layer.inner else ([], more)
        seq, dirs, batch, hidden = dy.shape
        every: list[list[Node]] = []
        firsts: list[list[Node]] = []
        for d, backward in enumerate(self.backward):
            gates = [Gate(a, layer.clip) for a in layer.of_direction(d)]
            matrix = reshape(rows_of(r, d), r.shape[1:])
            holes = [reshape(rows_of(p, d), p.shape[1:]) for p in peepholes]
            dstate = [reshape(rows_of(g, d), (batch, hidden)) for g in dlast]
            flat = [reshape(rows_of(k, d), (seq * batch, k.shape[-1])) for k in (*kept, *inner)]
            steps: list[list[Node]] = []
            for t in range(seq) if backward else reversed(range(seq)):
                live = Reshape((batch, 1))(greater(lengths, t))
                came = reshape(rows_of(reshape(dy, (seq * dirs, batch, hidden)), t * dirs + d), (batch, hidden))
                now = [rows_of(k, t * batch, (t + 1) * batch) for k in flat]
                to_gates, states = self.back_step(gates, now, matrix, holes, [add(dstate[0], came), *dstate[1:]])
                steps.append([Reshape((1, 1, *g.shape))(select(live, g, 0)) for g in to_gates])
                dstate = [select(live, n, g) for n, g in zip(states, dstate, strict=True)]
            every.append([concat(parts if backward else parts[::-1], 1) for parts in zip(*steps, strict=True)])
            firsts.append([Reshape((1, batch, hidden))(s) for s in dstate])
        received = [concat(parts, 0) for parts in zip(*every, strict=True)]
        states = [cast(concat(parts, 0), inputs[1].dtype) for parts in zip(*firsts, strict=True)]
        return (received[0], *states, *received[1:])

    def back_step(self, gates: list[Gate], kept: Sequence[Node], r: Node, peepholes: Sequence[Node], dnew: list[Node]) -> NodeStep:
        """The same in operators."""
        raise NotImplementedError(self.name)


def from_layer(layer: type[Recurrent], reads: tuple[int, ...]) -> tuple[Sample, ...]:
    """Samples of a layer's gradient from the layer's own: what it kept is drawn like the rest."""
    found = []
    for s in layer.samples:
        (t, b, _), (dirs, each, h) = (np.shape(a) if isinstance(a, np.ndarray) else a.dims for a in (s.inputs[0], s.inputs[2]))
        kept = [f32t(dirs, t, b, each), *(f32t(dirs, t, b, h),) * (len(reads) - 1)]
        inner = (f32t(dirs, t, b, h),) * layer(**s.attributes).inner
        back = (f32t(t, dirs, b, h), *(f32t(dirs, b, h),) * layer.states)
        found.append(Sample((*back, *kept, s.inputs[2], s.inputs[4], *inner, *s.inputs[5 + layer.states :]), s.attributes, s.low, s.high))
    return tuple(found)


class RnnGrad(RecurrentGrad):
    """What the gates and the first state of an `Rnn` receive."""

    layer_type = Rnn
    signature = (
        "dy[t, dirs, b, h], dh[dirs, b, h], gates[dirs, t, b, h], r[dirs, h, h], i32 lengths[b] -> dgates[dirs, t, b, h], dh0[dirs, b, h]"
    )
    reads = (0,)
    samples = from_layer(Rnn, reads)

    def back(self, gates: list[Gate], kept: Sequence[Array], r: Array, peepholes: Sequence[Array], dnew: list[Array]) -> ArrayStep:
        d = dnew[0] * gates[0].slope(kept[0])
        return [d], [d @ r]

    def back_step(self, gates: list[Gate], kept: Sequence[Node], r: Node, peepholes: Sequence[Node], dnew: list[Node]) -> NodeStep:
        d = gates[0].node_back(kept[0], dnew[0])
        return [d], [matmul(d, r)]


class GruGrad(RecurrentGrad):
    """What the gates and the first state of a `Gru` receive."""

    linear_before_reset: bool = False
    layer_type = Gru
    cann = "aclnnGRUBackward"
    signature = (
        "dy[t, dirs, b, h], dh[dirs, b, h], gates[dirs, t, b, 3h], h[dirs, t, b, h], r[dirs, 3h, h], i32 lengths[b],"
        " inner[dirs, t, b, h]? -> dgates[dirs, t, b, 3h], dh0[dirs, b, h], down[dirs, t, b, 3h]?"
    )
    reads = (0, 1)
    samples = from_layer(Gru, reads)

    def back(self, gates: list[Gate], kept: Sequence[Array], r: Array, peepholes: Sequence[Array], dnew: list[Array]) -> ArrayStep:
        f, g = gates
        (inside, h, *inner), (dout,), two = kept, dnew, 2 * r.shape[1]
        both, before = inside[:, :two], inside[:, two:]
        z, reset = np.split(f.value(both), 2, axis=1)
        dbefore, dz = dout * (1 - z) * g.slope(before), dout * (h - g.value(before))
        dheld = dbefore * reset if inner else dbefore @ r[two:]
        dreset = dbefore * inner[0] if inner else dheld * h
        dboth = np.concatenate([dz, dreset], axis=1) * f.slope(both)
        received = [np.concatenate([dboth, dbefore], axis=1)]
        if inner:
            down = np.concatenate([dboth, dheld], axis=1)
            return [*received, down], [dout * z + down @ r]
        return received, [dout * z + dheld * reset + dboth @ r[:two]]

    def back_step(self, gates: list[Gate], kept: Sequence[Node], r: Node, peepholes: Sequence[Node], dnew: list[Node]) -> NodeStep:
        f, g = gates
        (inside, h, *inner), (dout,), hidden = kept, dnew, r.shape[1]
        z_, r_, before = (gate_of(inside, k, hidden) for k in range(3))
        z, reset = f.node(z_), f.node(r_)
        dbefore = g.node_back(before, mul(dout, sub(1, z)))
        dz = f.node_back(z_, mul(dout, sub(h, g.node(before))))
        dheld = mul(dbefore, reset) if inner else matmul(dbefore, rows_of(r, 2 * hidden, 3 * hidden))
        dreset = f.node_back(r_, mul(dbefore, inner[0]) if inner else mul(dheld, h))
        received, passed = [concat([dz, dreset, dbefore], 1)], mul(dout, z)
        if inner:
            down = concat([dz, dreset, dheld], 1)
            return [*received, down], [add(passed, matmul(down, r))]
        through = matmul(concat([dz, dreset], 1), rows_of(r, 0, 2 * hidden))
        return received, [add(add(passed, mul(dheld, reset)), through)]


class LstmGrad(RecurrentGrad):
    """What the gates and the first states of an `Lstm` receive."""

    input_forget: bool = False
    layer_type = Lstm
    cann = "aclnnLstmBackward"
    signature = (
        "dy[t, dirs, b, h], dh[dirs, b, h], dc[dirs, b, h], gates[dirs, t, b, 4h], c[dirs, t, b, h], r[dirs, 4h, h], i32 lengths[b],"
        " peepholes[dirs, 3h]? -> dgates[dirs, t, b, 4h], dh0[dirs, b, h], dc0[dirs, b, h]"
    )
    reads = (0, 2)
    samples = from_layer(Lstm, reads)

    def back(self, gates: list[Gate], kept: Sequence[Array], r: Array, peepholes: Sequence[Array], dnew: list[Array]) -> ArrayStep:
        f, g, out = gates
        (inside, c), (dh, dc) = kept, dnew
        i_, o_, f_, c_ = np.split(inside, 4, axis=1)
        pi, po, pf = np.split(peepholes[0], 3) if peepholes else (np.zeros_like(c[0]),) * 3
        gate, cand = f.value(i_), g.value(c_)
        forget = 1 - gate if self.input_forget else f.value(f_)
        new = forget * c + gate * cand
        do = dh * out.value(new) * f.slope(o_)
        dcell = dc + dh * f.value(o_) * out.slope(new) + do * po
        dforget = dcell * c
        di = (dcell * cand - dforget if self.input_forget else dcell * cand) * f.slope(i_)
        df = np.zeros_like(dforget) if self.input_forget else dforget * f.slope(f_)
        d = np.concatenate([di, do, df, dcell * gate * g.slope(c_)], axis=1)
        return [d], [d @ r, dcell * forget + di * pi + df * pf]

    def back_step(self, gates: list[Gate], kept: Sequence[Node], r: Node, peepholes: Sequence[Node], dnew: list[Node]) -> NodeStep:
        f, g, out = gates
        (inside, c), (dh, dc), hidden = kept, dnew, r.shape[1]
        i_, o_, f_, c_ = (gate_of(inside, k, hidden) for k in range(4))
        holes = [rows_of(p, k * hidden, (k + 1) * hidden) for p in peepholes for k in range(3)]
        gate, cand = f.node(i_), g.node(c_)
        forget = sub(1, gate) if self.input_forget else f.node(f_)
        new = add(mul(forget, c), mul(gate, cand))
        do = f.node_back(o_, mul(dh, out.node(new)))
        dcell = add(dc, out.node_back(new, mul(dh, f.node(o_))))
        dcell = add(dcell, mul(do, holes[1])) if holes else dcell
        dforget = mul(dcell, c)
        di = f.node_back(i_, sub(mul(dcell, cand), dforget) if self.input_forget else mul(dcell, cand))
        df = broadcast_to(constant(0, c.dtype), c.shape) if self.input_forget else f.node_back(f_, dforget)
        d = concat([di, do, df, g.node_back(c_, mul(dcell, gate))], 1)
        dold = mul(dcell, forget)
        dold = add(dold, add(mul(di, holes[0]), mul(df, holes[2]))) if holes else dold
        return [d], [matmul(d, r), dold]
