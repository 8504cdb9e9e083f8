"""Recurrent layers: Lstm, Gru and Rnn over a sequence, in one or both directions.

In: x [seq, batch, input], weights for each direction [dirs, gates * hidden, ...], and the first state; who applies the operator makes what
is missing (a bias of zeros, the whole length).  Out: all states [seq, dirs, batch, hidden] and the last one [dirs, batch, hidden].
A layer says its cell twice: `cell` in NumPy for the reference, `step` in operators for the unrolled decomposition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np

from jumar.base import Array, OpError, TensorType
from jumar.ir import Node, Result, constant, f32t, find_op, sample
from jumar.operators.activation import Clip, Elu, HardSigmoid, LeakyRelu, Softplus, Softsign, ThresholdedRelu
from jumar.operators.contraction import matmul
from jumar.operators.elementwise import Relu, Sigmoid, Tanh, add, greater, mul, select, sub
from jumar.operators.families import Composite
from jumar.operators.movement import Broadcast, Concat, Reshape, Slice, Transpose

Activation = tuple[str, float, float]  # name, alpha, beta
Arrays = Sequence[Array]
ArrayFunctions = Sequence[Callable[[Array], Array]]
Nodes = Sequence[Node]
NodeFunctions = Sequence[Callable[[Node], Node]]


def activate(kind: Activation, x: Node) -> Node:
    """The activation of a gate on a node."""
    name, alpha, beta = kind
    match name:
        case "Affine":
            return add(mul(x, alpha), beta)
        case "ScaledTanh":
            return mul(Tanh()(mul(x, beta)), alpha)
    table: dict[str, Any] = {
        "Relu": Relu(), "Tanh": Tanh(), "Sigmoid": Sigmoid(), "LeakyRelu": LeakyRelu(alpha), "ThresholdedRelu": ThresholdedRelu(alpha),
        "HardSigmoid": HardSigmoid(alpha, beta), "Elu": Elu(alpha), "Softsign": Softsign(), "Softplus": Softplus(),
    }  # fmt: skip
    if name not in table:
        raise OpError(f"recurrent: activation must be one of {', '.join((*table, 'Affine', 'ScaledTanh'))}, got {name}", code="activation")
    node: Node = table[name](x)
    return node


ACTIVATIONS: dict[str, Callable[[Array, float, float], Array]] = {
    "Relu": lambda x, a, b: np.maximum(x, 0),
    "Tanh": lambda x, a, b: np.tanh(x),
    "Sigmoid": lambda x, a, b: 1 / (1 + np.exp(-x)),
    "Affine": lambda x, a, b: a * x + b,
    "LeakyRelu": lambda x, a, b: np.where(x >= 0, x, a * x),
    "ThresholdedRelu": lambda x, a, b: np.where(x > a, x, 0),
    "ScaledTanh": lambda x, a, b: a * np.tanh(b * x),
    "HardSigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
    "Elu": lambda x, a, b: np.where(x >= 0, x, a * np.expm1(x)),
    "Softsign": lambda x, a, b: x / (1 + np.abs(x)),
    "Softplus": lambda x, a, b: np.logaddexp(0, x),
}


UNROLLED = 32  # steps up to which a gradient goes through the decomposition: a step costs some 40 ms to compile, and runs twice as fast


class Recurrent(Composite):
    """What the three layers share.   directions: for each, whether it runs backward.   activations: the gates', direction by direction.

    clip: where positive, inputs of activations stay within -clip..clip: of all of them, also the cell state's on its way into the last one of an
    LSTM, for the standard says "applied to the input of activations" (ONNX Runtime leaves that one out, onnx's own reference evaluator
    leaves out clip altogether).   lengths: how many steps of each example count; past them
    states are zero and the last state stands still.
    """

    abstract = True
    gates: ClassVar[int]
    states: ClassVar[int] = 1
    functions: ClassVar[tuple[str, ...]]
    activations: tuple[Activation, ...]
    backward: tuple[bool, ...] = (False,)
    clip: float = 0.0

    def infer(self, *types: TensorType) -> Result:
        return self.results(self.name, types)

    def results(self, name: str, types: Sequence[TensorType]) -> tuple[TensorType, ...]:
        """The types of the results.   name: who asks, for errors (the gradient of a layer asks too)"""
        x, w, r, bias, lengths, *states = types
        dirs, hidden, each = len(self.backward), r.dims[-1], self.gates * r.dims[-1]
        wanted = [(w, (dirs, each, x.dims[2])), (r, (dirs, each, hidden)), (bias, (dirs, 2 * each)), (lengths, (x.dims[1],))]
        wanted += [(s, (dirs, x.dims[1], hidden)) for s in states[: self.states]]
        wanted += [(p, (dirs, 3 * hidden)) for p in states[self.states :]]  # peepholes
        for found, shape in wanted:
            if found.shape != shape:
                raise OpError(f"{name}: input must be {list(shape)}, got {found}", code="dimension-mismatch")
        if len(self.activations) != dirs * len(self.functions):
            raise OpError(f"{name}: activations must be {dirs * len(self.functions)}, got {len(self.activations)}", code="activation")
        return (x.with_shape((x.shape[0], dirs, x.shape[1], hidden)), *(s for s in states[: self.states]))

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, w, r, bias, lengths, *rest = (a if a.dtype.kind in "iu" else a.astype(np.promote_types(a.dtype, np.float32)) for a in arrays)
        seq, batch, _ = x.shape
        hidden = r.shape[2]
        y = np.zeros((seq, len(self.backward), batch, hidden), x.dtype)
        lasts: list[list[Array]] = []
        for d, backward in enumerate(self.backward):
            extras = [e[d] for e in rest[self.states :]]
            state = [s[d] for s in rest[: self.states]]
            wb, rb = np.split(bias[d], 2)
            fed = x @ w[d].T + wb
            functions = [self._function(a) for a in self.of_direction(d)]
            for t in range(seq):
                # a backward run of a shorter sequence begins at its own last step
                at = np.where(t < lengths, lengths - 1 - t, t) if backward else np.full(batch, t)
                new = self.cell(functions, fed[at, np.arange(batch)], state, r[d], rb, extras)
                live = (t < lengths)[:, None]
                y[at, d, np.arange(batch)] = np.where(live, new[0], 0)
                state = [np.where(live, n, s) for n, s in zip(new, state, strict=True)]
            lasts.append(state)
        return (y.astype(arrays[0].dtype), *(np.stack(s).astype(arrays[0].dtype) for s in zip(*lasts, strict=True)))

    def of_direction(self, direction: int) -> Sequence[Activation]:
        """The activations of one direction."""
        count = len(self.functions)
        return self.activations[direction * count : (direction + 1) * count]

    def _function(self, kind: Activation) -> Callable[[Array], Array]:
        name, alpha, beta = kind
        bound = self.clip if self.clip > 0 else np.inf
        return lambda x: ACTIVATIONS[name](np.clip(x, -bound, bound), alpha, beta)

    def cell(self, functions: ArrayFunctions, fed: Array, state: Arrays, r: Array, rb: Array, extras: Arrays) -> list[Array]:
        """The next states, in NumPy.   fed: x w + bias of this step, all gates."""
        raise NotImplementedError(self.name)

    def step(self, functions: NodeFunctions, fed: Node, state: Nodes, r: Node, rb: Node, extras: Nodes) -> list[Node]:
        """The same in operators."""
        raise NotImplementedError(self.name)

    def decompose(self, *inputs: Node) -> tuple[Node, ...]:
        """Unrolled over time: the products with x are one matrix product for the whole sequence."""
        x, w, r, bias, lengths, *rest = inputs
        seq, batch, depth = x.shape
        hidden, each, dirs = r.shape[2], self.gates * r.shape[2], len(self.backward)
        whole = lengths.array is not None and bool((lengths.array >= seq).all())
        ys, lasts = [], []
        for d, backward in enumerate(self.backward):
            extras = [Reshape(e.shape[1:])(_row(e, d)) for e in rest[self.states :]]
            state = [Reshape((batch, hidden))(_row(s, d)) for s in rest[: self.states]]
            weights = Transpose((1, 0))(Reshape((each, depth))(_row(w, d)))
            recurrent = Transpose((1, 0))(Reshape((each, hidden))(_row(r, d)))
            both = Reshape((2 * each,))(_row(bias, d))
            wb, rb = _row(both, 0, each), _row(both, each, 2 * each)
            fed = add(matmul(Reshape((seq * batch, depth))(x), weights), wb)
            functions = [self._node_function(a) for a in self.of_direction(d)]
            steps: list[Node] = []
            for t in reversed(range(seq)) if backward else range(seq):
                new = self.step(functions, _row(fed, t * batch, (t + 1) * batch), state, recurrent, rb, extras)
                y = new[0]
                if not whole:
                    live = Reshape((batch, 1))(greater(lengths, t))
                    y = select(live, y, 0)
                    new = [select(live, n, s) for n, s in zip(new, state, strict=True)]
                state = new
                steps.append(Reshape((1, 1, batch, hidden))(y))
            if backward:
                steps.reverse()
            ys.append(Concat(0)(*steps) if seq > 1 else steps[0])
            lasts.append([Reshape((1, batch, hidden))(s) for s in state])
        results = [ys, *([last[i] for last in lasts] for i in range(self.states))]
        return tuple((Concat(1 if i == 0 else 0)(*parts) if dirs > 1 else parts[0]) for i, parts in enumerate(results))

    def grad(self, *nodes: Any) -> Any:
        """Of a short sequence through its steps, which fuse and have gradients of their own; of a long one as one walk back."""
        *inputs, y, dy = nodes
        if inputs[0].shape[0] <= UNROLLED:
            return NotImplemented
        back = [d if d is not None else Broadcast(r.shape)(constant(0, r.dtype)) for d, r in zip(dy, y, strict=True)]
        op: Any = find_op(f"{self.name}_grad")  # by name: recurrent_grad.py builds on this file
        found = op(*(getattr(self, f.name) for f in fields(self)))(*back, *inputs).results
        return (*found[:4], None, *found[4:])

    def _node_function(self, kind: Activation) -> Callable[[Node], Node]:
        return lambda x: activate(kind, Clip(-self.clip, self.clip)(x) if self.clip > 0 else x)


def _row(x: Node, start: int, stop: int | None = None) -> Node:
    """x[start:stop] along the first dimension."""
    stop = start + 1 if stop is None else stop
    rest = x.shape[1:]
    return Slice((start, *[0] * len(rest)), (stop, *rest), (1,) * x.rank)(x) if (start, stop) != (0, x.shape[0]) else x


def _gate(x: Node, index: int, hidden: int, count: int = 1) -> Node:
    """The columns of `count` gates of [batch, gates * hidden]."""
    return Slice((0, index * hidden), (x.shape[0], (index + count) * hidden), (1, 1))(x)


_TANH: Activation = ("Tanh", 0.0, 0.0)
_SIGMOID: Activation = ("Sigmoid", 0.0, 0.0)
_FULL = np.array([4, 4], np.int32)
_SHORT = np.array([4, 2], np.int32)


class Rnn(Recurrent):
    """h_t = f(x_t w + h_(t-1) r + biases)."""

    gates = 1
    functions = ("Tanh",)
    signature = (
        "x[t, b, i], w[dirs, h, i], r[dirs, h, h], bias[dirs, 2h], i32 lengths[b], h0[dirs, b, h] -> y[t, dirs, b, h], h[dirs, b, h]"
    )
    samples = (
        sample(f32t(4, 2, 3), f32t(1, 5, 3), f32t(1, 5, 5), f32t(1, 10), _FULL, f32t(1, 2, 5), activations=(_TANH,), high=0.5),
        sample(f32t(4, 2, 3), f32t(2, 5, 3), f32t(2, 5, 5), f32t(2, 10), _SHORT, f32t(2, 2, 5),
               activations=(_TANH, ("Affine", 0.5, 0.1)), backward=(False, True), clip=1.0, high=0.5),
    )  # fmt: skip

    def cell(self, functions: ArrayFunctions, fed: Array, state: Arrays, r: Array, rb: Array, extras: Arrays) -> list[Array]:
        return [functions[0](fed + state[0] @ r.T + rb)]

    def step(self, functions: NodeFunctions, fed: Node, state: Nodes, r: Node, rb: Node, extras: Nodes) -> list[Node]:
        return [functions[0](add(fed, add(matmul(state[0], r), rb)))]


class Gru(Recurrent):
    """h_t = (1 - z) n + z h_(t-1); gates update z, reset r and new n lie in this order.

    linear_before_reset: the reset gate multiplies h r + bias, rather than h before the product.
    """

    gates = 3
    functions = ("Sigmoid", "Tanh")
    linear_before_reset: bool = False
    signature = (
        "x[t, b, i], w[dirs, 3h, i], r[dirs, 3h, h], bias[dirs, 6h], i32 lengths[b], h0[dirs, b, h] -> y[t, dirs, b, h], h[dirs, b, h]"
    )
    samples = (
        sample(f32t(4, 2, 3), f32t(1, 15, 3), f32t(1, 15, 5), f32t(1, 30), _FULL, f32t(1, 2, 5), activations=(_SIGMOID, _TANH), high=0.5),
        sample(f32t(4, 2, 3), f32t(2, 15, 3), f32t(2, 15, 5), f32t(2, 30), _SHORT, f32t(2, 2, 5),
               activations=(_SIGMOID, _TANH) * 2, backward=(False, True), linear_before_reset=True, high=0.5),
    )  # fmt: skip
    cann = "aclnnGRU"

    def cell(self, functions: ArrayFunctions, fed: Array, state: Arrays, r: Array, rb: Array, extras: Arrays) -> list[Array]:
        f, g = functions
        (h,), hidden = state, r.shape[1]
        two = 2 * hidden
        z, reset = np.split(f(fed[:, :two] + h @ r[:two].T + rb[:two]), 2, axis=1)
        if self.linear_before_reset:
            new = g(fed[:, two:] + reset * (h @ r[two:].T + rb[two:]))
        else:
            new = g(fed[:, two:] + (reset * h) @ r[two:].T + rb[two:])
        return [(1 - z) * new + z * h]

    def step(self, functions: NodeFunctions, fed: Node, state: Nodes, r: Node, rb: Node, extras: Nodes) -> list[Node]:
        f, g = functions
        (h,), hidden = state, r.shape[0]
        rb = Reshape((1, rb.shape[0]))(rb)
        if self.linear_before_reset:
            own = add(matmul(h, r), rb)
            gates = f(add(_gate(fed, 0, hidden, 2), _gate(own, 0, hidden, 2)))
            z, reset = _gate(gates, 0, hidden), _gate(gates, 1, hidden)
            inner = mul(reset, _gate(own, 2, hidden))
        else:
            gates = f(add(_gate(fed, 0, hidden, 2), add(matmul(h, _gate(r, 0, hidden, 2)), _gate(rb, 0, hidden, 2))))
            z, reset = _gate(gates, 0, hidden), _gate(gates, 1, hidden)
            inner = add(matmul(mul(reset, h), _gate(r, 2, hidden)), _gate(rb, 2, hidden))
        new = g(add(_gate(fed, 2, hidden), inner))
        return [add(new, mul(z, sub(h, new)))]


class Lstm(Recurrent):
    """c_t = f c_(t-1) + i tanh(...), h_t = o tanh(c_t); gates input i, output o, forget f and cell c lie in this order.

    peepholes [dirs, 3h] (for i, o, f) weigh the cell state into the gates.   input_forget: f is 1 - i.
    """

    gates = 4
    states = 2
    functions = ("Sigmoid", "Tanh", "Tanh")
    input_forget: bool = False
    signature = (
        "x[t, b, i], w[dirs, 4h, i], r[dirs, 4h, h], bias[dirs, 8h], i32 lengths[b], h0[dirs, b, h], c0[dirs, b, h], peepholes[dirs, 3h]?"
        " -> y[t, dirs, b, h], h[dirs, b, h], c[dirs, b, h]"
    )
    samples = (
        sample(f32t(4, 2, 3), f32t(1, 20, 3), f32t(1, 20, 5), f32t(1, 40), _FULL, f32t(1, 2, 5), f32t(1, 2, 5),
               activations=(_SIGMOID, _TANH, _TANH), high=0.5),
        sample(f32t(4, 2, 3), f32t(2, 20, 3), f32t(2, 20, 5), f32t(2, 40), _SHORT, f32t(2, 2, 5), f32t(2, 2, 5), f32t(2, 15),
               activations=(_SIGMOID, _TANH, _TANH) * 2, backward=(False, True), clip=2.0, high=0.5),
    )  # fmt: skip
    cann = "aclnnLSTM"

    def cell(self, functions: ArrayFunctions, fed: Array, state: Arrays, r: Array, rb: Array, extras: Arrays) -> list[Array]:
        f, g, out = functions
        h, c = state
        i_, o_, f_, c_ = np.split(fed + h @ r.T + rb, 4, axis=1)
        pi, po, pf = np.split(extras[0], 3) if extras else (np.zeros_like(c[0]),) * 3
        gate = f(i_ + pi * c)
        forget = 1 - gate if self.input_forget else f(f_ + pf * c)
        new = forget * c + gate * g(c_)
        return [f(o_ + po * new) * out(new), new]

    def step(self, functions: NodeFunctions, fed: Node, state: Nodes, r: Node, rb: Node, extras: Nodes) -> list[Node]:
        f, g, out = functions
        h, c = state
        hidden = r.shape[0]
        gates = add(fed, add(matmul(h, r), rb))
        parts = [_gate(gates, k, hidden) for k in range(4)]
        peepholes = [_row(extras[0], k * hidden, (k + 1) * hidden) for k in range(3)] if extras else None

        def peep(part: int, hole: int, cell: Node) -> Node:
            return add(parts[part], mul(peepholes[hole], cell)) if peepholes else parts[part]

        gate = f(peep(0, 0, c))
        forget = sub(1, gate) if self.input_forget else f(peep(2, 2, c))
        new = add(mul(forget, c), mul(gate, g(parts[3])))
        return [mul(f(peep(1, 1, new)), out(new)), new]
