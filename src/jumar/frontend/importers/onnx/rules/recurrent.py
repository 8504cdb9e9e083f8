"""LSTM, GRU and RNN: absent inputs become zeros, the layout becomes ours (time first)."""

from __future__ import annotations

import numpy as np

from jumar.base import i32
from jumar.frontend.importers.onnx.node import OnnxNode
from jumar.frontend.importers.onnx.rule import rule
from jumar.frontend.importers.onnx.trace import Trace
from jumar.frontend.importers.onnx.value import Tensor, Traced
from jumar.ir import Node, constant
from jumar.operators import Activation, Dequantize, Gru, Lstm, Recurrent, Rnn, cast, reshape, transpose

DEFAULTS: dict[str, tuple[float | None, float | None]] = {  # alpha and beta, where an activation has them
    "Relu": (None, None), "Tanh": (None, None), "Sigmoid": (None, None), "Softsign": (None, None), "Softplus": (None, None),
    "Affine": (1.0, 0.0), "LeakyRelu": (0.01, None), "ThresholdedRelu": (1.0, None), "ScaledTanh": (1.0, 1.0),
    "HardSigmoid": (0.2, 0.5), "Elu": (1.0, None),
}  # fmt: skip


def _activations(n: OnnxNode, functions: tuple[str, ...], directions: int) -> tuple[Activation, ...]:
    """Names with their numbers; the lists of alphas and betas hold one for each activation that has one."""
    names = n.attribute("activations", None) or functions * directions
    known = {name.lower(): name for name in DEFAULTS}
    alphas, betas = iter(n.attribute("activation_alpha", ()) or ()), iter(n.attribute("activation_beta", ()) or ())
    found = []
    for name in names:
        if name.lower() not in known:
            raise n.fault(f"activation must be one of {', '.join(DEFAULTS)}, got {name!r}")
        alpha, beta = DEFAULTS[known[name.lower()]]
        a = 0.0 if alpha is None else next(alphas, alpha)
        b = 0.0 if beta is None else next(betas, beta)
        found.append((known[name.lower()], a, b))
    return tuple(found)


def _layer(
    t: Trace, n: OnnxNode, op: type[Recurrent], x: Tensor, w: Tensor, r: Tensor, b: Tensor | None, lengths: Tensor | None,
    states: list[Tensor | None], extras: list[Tensor | None], options: dict[str, bool],
) -> tuple[Node, ...]:  # fmt: skip
    directions = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
    direction = n.attribute("direction", "forward")
    if direction not in directions:
        raise n.fault(f"direction must be forward, reverse or bidirectional, got {direction!r}")
    backward = directions[direction]
    batch_first = bool(n.attribute("layout", 0))
    seq = transpose(t.node(x), (1, 0, 2)) if batch_first else t.node(x)
    hidden, batch, dirs = r.shape[2], seq.shape[1], len(backward)
    bias = constant(np.zeros((dirs, 2 * op.gates * hidden)), x.dtype) if b is None else t.node(b)
    steps = constant(np.full(batch, seq.shape[0]), i32) if lengths is None else cast(t.node(lengths), i32)
    first = []
    for state in states:
        if state is None:
            first.append(constant(np.zeros((dirs, batch, hidden)), x.dtype))
        else:
            first.append(transpose(t.node(state), (1, 0, 2)) if batch_first else t.node(state))
    made = op(_activations(n, op.functions, dirs), backward, float(n.attribute("clip", 0.0) or 0.0), **options)
    y, *lasts = made(seq, t.node(w), t.node(r), bias, steps, *first, *(t.node(e) for e in extras if e is not None)).results
    if not batch_first:
        return (y, *lasts)
    return (transpose(y, (2, 0, 1, 3)), *(transpose(last, (1, 0, 2)) for last in lasts))


@rule("RNN")
def rnn(
    t: Trace, n: OnnxNode, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None, lengths: Tensor | None, h: Tensor | None
) -> tuple[Node, ...]:
    return _layer(t, n, Rnn, x, w, r, b, lengths, [h], [], {})


@rule("GRU")
def gru(
    t: Trace, n: OnnxNode, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None, lengths: Tensor | None, h: Tensor | None
) -> tuple[Node, ...]:
    return _layer(t, n, Gru, x, w, r, b, lengths, [h], [], {"linear_before_reset": bool(n.attribute("linear_before_reset", 0))})


@rule("DynamicQuantizeLSTM", domain="com.microsoft")
def dynamic_quantize_lstm(
    t: Trace, n: OnnxNode, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None, lengths: Tensor | None, h: Tensor | None, c: Tensor | None,
    peepholes: Tensor | None, w_scale: Tensor, w_zero: Tensor, r_scale: Tensor, r_zero: Tensor,
) -> tuple[Node, ...]:  # fmt: skip
    """What `quantize_dynamic` makes of an LSTM: weights as codes, [dirs, input, 4h] rather than [dirs, 4h, input].

    x and the state stay floats here; ONNX Runtime rounds them to 8 bits at every step, so its results are a little further from the model's.
    """
    whole = []
    for codes, scale, zero in ((w, w_scale, w_zero), (r, r_scale, r_zero)):
        numbers = [t.node(v) for v in (scale, zero)]
        spread = [reshape(v, (v.shape[0], 1, 1 if v.rank == 1 else v.shape[1])) for v in numbers]
        whole.append(Traced(transpose(Dequantize()(t.node(codes), *spread), (0, 2, 1))))
    options = {"input_forget": bool(n.attribute("input_forget", 0))}
    return _layer(t, n, Lstm, x, whole[0], whole[1], b, lengths, [h, c], [peepholes], options)


@rule("LSTM")
def lstm(
    t: Trace, n: OnnxNode, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None, lengths: Tensor | None, h: Tensor | None,
    c: Tensor | None, peepholes: Tensor | None,
) -> tuple[Node, ...]:  # fmt: skip
    return _layer(t, n, Lstm, x, w, r, b, lengths, [h, c], [peepholes], {"input_forget": bool(n.attribute("input_forget", 0))})
