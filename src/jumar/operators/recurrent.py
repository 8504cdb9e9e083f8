"""Recurrent layers: Lstm, Gru and Rnn over a sequence, in one or both directions.

In: x [seq, batch, input], weights for each direction [dirs, gates * hidden, ...], and the first state; who applies the operator makes what
is missing (a bias of zeros, the whole length).  Out: all states [seq, dirs, batch, hidden] and the last one [dirs, batch, hidden].
A layer says its cell twice: `cell` in NumPy for the reference, `step` in operators for the unrolled decomposition.
With `kept` a layer also gives what its gradient wants to know of each step; recurrent_grad.py walks back over it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar

import numpy as np

from jumar.base import Array, DType, OpError, TensorType, f32
from jumar.ir import Node, Result, constant, f32t, find_op, sample
from jumar.operators.activation import Clip, Elu, HardSigmoid, LeakyRelu, Softplus, Softsign, ThresholdedRelu
from jumar.operators.contraction import matmul, turned
from jumar.operators.elementwise import Relu, Sigmoid, Tanh, add, cast, greater, mul, select, sub
from jumar.operators.families import Composite
from jumar.operators.movement import Broadcast, Reshape, Slice, Transpose, concat, reshape, slice_axis
from jumar.operators.normalization import widened
from jumar.operators.reduction import ReduceSum

Activation = tuple[str, float, float]  # name, alpha, beta
Arrays = Sequence[Array]
ArrayFunctions = Sequence[Callable[[Array], Array]]
Nodes = Sequence[Node]
NodeFunctions = Sequence[Callable[[Node], Node]]
ArrayStep = tuple[list[Array], list[Array]]
NodeStep = tuple[list[Node], list[Node]]


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


class Recurrent(Composite):
    """What the three layers share.   directions: for each, whether it runs backward.   activations: the gates', direction by direction.

    clip: where positive, inputs of activations stay within -clip..clip: of all of them, also the cell state's on its way into the last one of an
    LSTM, for the standard says "applied to the input of activations" (ONNX Runtime leaves that one out, onnx's own reference evaluator
    leaves out clip altogether).   lengths: how many steps of each example count; past them
    states are zero and the last state stands still.
    kept: further results, [dirs, t, b, ...], zero past the lengths, in f32 or wider: at each step what goes into the activations of all gates
    [4h, 3h or h], the states before the step [h each], and where a Gru has linear_before_reset what its reset gate multiplies [h].
    """

    abstract = True
    gates: ClassVar[int]
    states: ClassVar[int] = 1
    functions: ClassVar[tuple[str, ...]]
    activations: tuple[Activation, ...]
    backward: tuple[bool, ...] = (False,)
    clip: float = 0.0
    kept: bool = False

    @property
    def whole(self) -> Recurrent:
        """The same layer with all the results it can give, of which its own are the first."""
        return replace(self, kept=True)

    @property
    def inner(self) -> bool:
        """Whether a gate multiplies what h makes in another."""
        return False

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
        kept: tuple[TensorType, ...] = ()
        if self.kept:
            widths = (each, *(hidden,) * (self.states + self.inner))
            kept = tuple(TensorType((dirs, *x.shape[:2], n), wide_dtype(x.dtype)) for n in widths)
        return (x.with_shape((x.shape[0], dirs, x.shape[1], hidden)), *states[: self.states], *kept)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, w, r, bias, lengths, *rest = (a if a.dtype.kind in "iu" else a.astype(np.promote_types(a.dtype, np.float32)) for a in arrays)
        seq, batch, _ = x.shape
        hidden = r.shape[2]
        y = np.zeros((seq, len(self.backward), batch, hidden), x.dtype)
        widths = (self.gates * hidden, *(hidden,) * (self.states + self.inner))
        kept = [np.zeros((len(self.backward), seq, batch, n), x.dtype) for n in widths]
        lasts: list[list[Array]] = []
        for d, backward in enumerate(self.backward):
            extras = [e[d] for e in rest[self.states :]]
            state = [s[d] for s in rest[: self.states]]
            wb, rb = np.split(bias[d], 2)
            fed = x @ w[d].T + wb
            functions = [self.function(a) for a in self.of_direction(d)]
            for t in range(seq):
                # a backward run of a shorter sequence begins at its own last step
                at = np.where(t < lengths, lengths - 1 - t, t) if backward else np.full(batch, t)
                new, inside = self.cell(functions, fed[at, np.arange(batch)], state, r[d], rb, extras)
                live = (t < lengths)[:, None]
                for into, value in zip(kept, (inside[0], *state, *inside[1:]), strict=True):
                    into[d, at, np.arange(batch)] = np.where(live, value, 0)
                y[at, d, np.arange(batch)] = np.where(live, new[0], 0)
                state = [np.where(live, n, s) for n, s in zip(new, state, strict=True)]
            lasts.append(state)
        last = (np.stack(s).astype(arrays[0].dtype) for s in zip(*lasts, strict=True))
        return (y.astype(arrays[0].dtype), *last, *(kept if self.kept else ()))

    def of_direction(self, direction: int) -> Sequence[Activation]:
        """The activations of one direction."""
        count = len(self.functions)
        return self.activations[direction * count : (direction + 1) * count]

    def function(self, kind: Activation) -> Callable[[Array], Array]:
        name, alpha, beta = kind
        bound = self.clip if self.clip > 0 else np.inf
        return lambda x: ACTIVATIONS[name](np.clip(x, -bound, bound), alpha, beta)

    def cell(self, functions: ArrayFunctions, fed: Array, state: Arrays, r: Array, rb: Array, extras: Arrays) -> ArrayStep:
        """The next states, and what goes into the gates (and what the reset gate multiplies), in NumPy.   fed: x w + bias of this step."""
        raise NotImplementedError(self.name)

    def step(self, functions: NodeFunctions, fed: Node, state: Nodes, r: Node, rb: Node, extras: Nodes) -> NodeStep:
        """The same in operators."""
        raise NotImplementedError(self.name)

    def decompose(self, *inputs: Node) -> tuple[Node, ...]:
        """Unrolled over time: the products with x are one matrix product for the whole sequence."""
        x, w, r, bias, lengths, *rest = (widened(i) if self.kept else i for i in inputs)
        seq, batch, depth = x.shape
        hidden, each = r.shape[2], self.gates * r.shape[2]
        whole = lengths.array is not None and bool((lengths.array >= seq).all())
        ys, lasts, kepts = [], [], []
        for d, backward in enumerate(self.backward):
            extras = [Reshape(e.shape[1:])(rows_of(e, d)) for e in rest[self.states :]]
            state = [Reshape((batch, hidden))(rows_of(s, d)) for s in rest[: self.states]]
            weights = Transpose((1, 0))(Reshape((each, depth))(rows_of(w, d)))
            recurrent = Transpose((1, 0))(Reshape((each, hidden))(rows_of(r, d)))
            both = Reshape((2 * each,))(rows_of(bias, d))
            wb, rb = rows_of(both, 0, each), rows_of(both, each, 2 * each)
            fed = add(matmul(Reshape((seq * batch, depth))(x), weights), wb)
            functions = [self.node_function(a) for a in self.of_direction(d)]
            steps: list[list[Node]] = []
            for t in reversed(range(seq)) if backward else range(seq):
                new, inside = self.step(functions, rows_of(fed, t * batch, (t + 1) * batch), state, recurrent, rb, extras)
                given = [new[0], inside[0], *state, *inside[1:]] if self.kept else [new[0]]
                if not whole:
                    live = Reshape((batch, 1))(greater(lengths, t))
                    given = [select(live, g, 0) for g in given]
                    new = [select(live, n, s) for n, s in zip(new, state, strict=True)]
                state = new
                steps.append([Reshape((1, 1, *g.shape))(g) for g in given])
            if backward:
                steps.reverse()
            y, *kept = zip(*steps, strict=True)
            ys.append(concat(y, 0))
            kepts.append([concat(k, 1) for k in kept])
            lasts.append([Reshape((1, batch, hidden))(s) for s in state])
        last = (concat(parts, 0) for parts in zip(*lasts, strict=True))
        kept_nodes = (concat(parts, 0) for parts in zip(*kepts, strict=True))
        return tuple(cast(n, inputs[0].dtype) for n in (concat(ys, 1), *last)) + tuple(kept_nodes)

    def grad(self, *nodes: Any) -> Any:
        """A walk back over what the forward pass kept, which gives what the gates receive; then products over all steps at once."""
        *inputs, y, dy = nodes
        x, w, r, bias, lengths, *rest = inputs
        if any(d is not None for d in dy[1 + self.states :]):
            return NotImplemented  # a gradient of the gradient, through the steps
        first, kept = 1 + self.states, y[1 + self.states :] if self.kept else self.whole(*inputs).results[1 + self.states :]
        back = [d if d is not None else Broadcast(n.shape)(constant(0, n.dtype)) for d, n in zip(dy[:first], y, strict=False)]
        op: Any = find_op(f"{self.name}_grad")  # by name: recurrent_grad.py builds on this file
        walk = op(**{f.name: getattr(self, f.name) for f in fields(self) if f.name != "kept"})
        inner = (kept[-1],) if self.inner else ()
        fed, *found = walk(*back, *(kept[i] for i in walk.reads), r, lengths, *inner, *rest[self.states :]).results
        dstates, own = found[: self.states], found[self.states] if self.inner else fed  # own: what the products with h receive
        (seq, batch, depth), dirs, each = x.shape, len(self.backward), self.gates * r.shape[2]
        outer = (dirs,) if dirs > 1 else ()

        def rows(n: Node) -> Node:
            """[dirs, steps and examples, n], or a matrix where there is one direction."""
            return cast(reshape(n, (*outer, seq * batch, n.shape[-1])), x.dtype)

        flat = rows(fed)
        dx = matmul(flat, reshape(w, (*outer, each, depth)))
        dx = ReduceSum((0,))(dx) if outer else dx
        dw = matmul(turned(flat), reshape(x, (seq * batch, depth)))
        dr = self.recurrent_gradient(rows(own), rows(kept[1]), kept)
        sums = [ReduceSum((1,))(reshape(n, (dirs, seq * batch, each))) for n in dict.fromkeys((fed, own))]
        dbias = cast(concat([sums[0], sums[-1]], 1), bias.dtype)
        return (reshape(dx, x.shape), reshape(dw, w.shape), reshape(dr, r.shape), dbias, None, *dstates,
                *self.peephole_gradients(fed, kept, inputs))  # fmt: skip

    def recurrent_gradient(self, received: Node, before: Node, kept: Nodes) -> Node:
        """What r receives.   received: [..., steps, gates * hidden]; before: h before each step [..., steps, hidden]."""
        return matmul(turned(received), before)

    def peephole_gradients(self, fed: Node, kept: Nodes, inputs: Nodes) -> list[Node]:
        """What the peepholes receive, where there are any."""
        return []

    def node_function(self, kind: Activation) -> Callable[[Node], Node]:
        return lambda x: activate(kind, Clip(-self.clip, self.clip)(x) if self.clip > 0 else x)


def wide_dtype(dtype: DType) -> DType:
    """The type in which a layer computes."""
    return f32 if dtype.bits < 32 else dtype


def rows_of(x: Node, start: int, stop: int | None = None) -> Node:
    """x[start:stop] along the first dimension."""
    stop = start + 1 if stop is None else stop
    rest = x.shape[1:]
    return Slice((start, *[0] * len(rest)), (stop, *rest), (1,) * x.rank)(x) if (start, stop) != (0, x.shape[0]) else x


def gate_of(x: Node, index: int, hidden: int, count: int = 1) -> Node:
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

    def cell(self, functions: ArrayFunctions, fed: Array, state: Arrays, r: Array, rb: Array, extras: Arrays) -> ArrayStep:
        gate = fed + state[0] @ r.T + rb
        return [functions[0](gate)], [gate]

    def step(self, functions: NodeFunctions, fed: Node, state: Nodes, r: Node, rb: Node, extras: Nodes) -> NodeStep:
        gate = add(fed, add(matmul(state[0], r), rb))
        return [functions[0](gate)], [gate]


class Gru(Recurrent):
    """h_t = (1 - z) n + z h_(t-1); gates update z, reset r and new n lie in this order.

    linear_before_reset: the reset gate multiplies h r + bias, rather than h before the product.
    """

    gates = 3
    functions = ("Sigmoid", "Tanh")
    linear_before_reset: bool = False

    @property
    def inner(self) -> bool:
        return self.linear_before_reset

    signature = (
        "x[t, b, i], w[dirs, 3h, i], r[dirs, 3h, h], bias[dirs, 6h], i32 lengths[b], h0[dirs, b, h] -> y[t, dirs, b, h], h[dirs, b, h]"
    )
    samples = (
        sample(f32t(4, 2, 3), f32t(1, 15, 3), f32t(1, 15, 5), f32t(1, 30), _FULL, f32t(1, 2, 5), activations=(_SIGMOID, _TANH), high=0.5),
        sample(f32t(4, 2, 3), f32t(2, 15, 3), f32t(2, 15, 5), f32t(2, 30), _SHORT, f32t(2, 2, 5),
               activations=(_SIGMOID, _TANH) * 2, backward=(False, True), linear_before_reset=True, high=0.5),
    )  # fmt: skip
    cann = "aclnnGRU"

    def cell(self, functions: ArrayFunctions, fed: Array, state: Arrays, r: Array, rb: Array, extras: Arrays) -> ArrayStep:
        f, g = functions
        (h,), hidden = state, r.shape[1]
        two = 2 * hidden
        both = fed[:, :two] + h @ r[:two].T + rb[:two]
        z, reset = np.split(f(both), 2, axis=1)
        inner = h @ r[two:].T + rb[two:] if self.linear_before_reset else (reset * h) @ r[two:].T + rb[two:]
        before = fed[:, two:] + (reset * inner if self.linear_before_reset else inner)
        inside = [np.concatenate([both, before], axis=1), *([inner] if self.inner else [])]
        return [(1 - z) * g(before) + z * h], inside

    def step(self, functions: NodeFunctions, fed: Node, state: Nodes, r: Node, rb: Node, extras: Nodes) -> NodeStep:
        f, g = functions
        (h,), hidden = state, r.shape[0]
        rb = Reshape((1, rb.shape[0]))(rb)
        if self.linear_before_reset:
            own = add(matmul(h, r), rb)
            both = add(gate_of(fed, 0, hidden, 2), gate_of(own, 0, hidden, 2))
        else:
            both = add(gate_of(fed, 0, hidden, 2), add(matmul(h, gate_of(r, 0, hidden, 2)), gate_of(rb, 0, hidden, 2)))
        gates = f(both)
        z, reset = gate_of(gates, 0, hidden), gate_of(gates, 1, hidden)
        if self.linear_before_reset:
            inner = gate_of(own, 2, hidden)
            before = add(gate_of(fed, 2, hidden), mul(reset, inner))
        else:
            inner = add(matmul(mul(reset, h), gate_of(r, 2, hidden)), gate_of(rb, 2, hidden))
            before = add(gate_of(fed, 2, hidden), inner)
        new = g(before)
        inside = [concat([both, before], 1), *([inner] if self.inner else [])] if self.kept else []
        return [add(new, mul(z, sub(h, new)))], inside

    def recurrent_gradient(self, received: Node, before: Node, kept: Nodes) -> Node:
        if self.linear_before_reset:
            return matmul(turned(received), before)
        hidden, axis = before.shape[-1], received.rank - 1
        parts = []
        for d in range(len(self.backward)):
            reset = self.node_function(self.of_direction(d)[0])(slice_axis(rows_of(kept[0], d), 3, hidden, 2 * hidden))
            parts.append(cast(mul(reset, rows_of(kept[1], d)), before.dtype))
        held = reshape(concat(parts, 0), before.shape)
        both, new = slice_axis(received, axis, 0, 2 * hidden), slice_axis(received, axis, 2 * hidden, 3 * hidden)
        return concat([matmul(turned(both), before), matmul(turned(new), held)], axis - 1)


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

    def cell(self, functions: ArrayFunctions, fed: Array, state: Arrays, r: Array, rb: Array, extras: Arrays) -> ArrayStep:
        f, g, out = functions
        h, c = state
        i_, o_, f_, c_ = np.split(fed + h @ r.T + rb, 4, axis=1)
        pi, po, pf = np.split(extras[0], 3) if extras else (np.zeros_like(c[0]),) * 3
        i_, f_ = i_ + pi * c, f_ + pf * c
        gate = f(i_)
        forget = 1 - gate if self.input_forget else f(f_)
        new = forget * c + gate * g(c_)
        o_ = o_ + po * new
        return [f(o_) * out(new), new], [np.concatenate([i_, o_, f_, c_], axis=1)]

    def step(self, functions: NodeFunctions, fed: Node, state: Nodes, r: Node, rb: Node, extras: Nodes) -> NodeStep:
        f, g, out = functions
        h, c = state
        hidden = r.shape[0]
        gates = add(fed, add(matmul(h, r), rb))
        parts = [gate_of(gates, k, hidden) for k in range(4)]
        peepholes = [rows_of(extras[0], k * hidden, (k + 1) * hidden) for k in range(3)] if extras else None

        def peep(part: int, hole: int, cell: Node) -> Node:
            return add(parts[part], mul(peepholes[hole], cell)) if peepholes else parts[part]

        i_, f_, c_ = peep(0, 0, c), peep(2, 2, c), parts[3]
        gate = f(i_)
        forget = sub(1, gate) if self.input_forget else f(f_)
        new = add(mul(forget, c), mul(gate, g(c_)))
        o_ = peep(1, 1, new)
        return [mul(f(o_), out(new)), new], [concat([i_, o_, f_, c_], 1)] if self.kept else []

    def peephole_gradients(self, fed: Node, kept: Nodes, inputs: Nodes) -> list[Node]:
        if len(inputs) < 8:
            return []
        hidden, parts = inputs[2].shape[2], []
        for d in range(len(self.backward)):
            f, g, _ = (self.node_function(a) for a in self.of_direction(d))
            gates, back = ([slice_axis(rows_of(n, d), 3, k * hidden, (k + 1) * hidden) for k in range(4)] for n in (kept[0], fed))
            c, gate = rows_of(kept[2], d), f(gates[0])
            forget = sub(1, gate) if self.input_forget else f(gates[2])
            new = add(mul(forget, c), mul(gate, g(gates[3])))
            sums = [ReduceSum((1, 2))(mul(back[k], state)) for k, state in enumerate((c, new, c))]
            parts.append(concat(sums, 1))
        return [cast(concat(parts, 0), inputs[7].dtype)]
