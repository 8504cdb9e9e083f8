"""Optimiser steps of ai.onnx.preview.training: formulas on nodes, one group of outputs for each tensor that is trained."""

from __future__ import annotations

from collections.abc import Sequence

from jumar.base import i64
from jumar.frontend.importers.onnx.node import OnnxNode
from jumar.frontend.importers.onnx.rule import rule
from jumar.frontend.importers.onnx.trace import Trace
from jumar.frontend.importers.onnx.value import Value
from jumar.ir import Node
from jumar.operators import add, cast, div, greater, mul, number, power, select, sqrt, square, sub

DOMAIN = "ai.onnx.preview.training"


def _groups(t: Trace, n: OnnxNode, values: Sequence[Value], count: int) -> list[tuple[Node, ...]]:
    """Inputs come as x1 x2 ... g1 g2 ... v1 v2 ...; gives (x1, g1, v1), (x2, g2, v2), ..."""
    if not values or len(values) % count:
        raise n.fault(f"tensors must come in groups of {count}, got {len(values)}")
    size = len(values) // count
    nodes = [t.node(v) for v in values]
    return [tuple(nodes[i + k * size] for k in range(count)) for i in range(size)]


def _results(rows: Sequence[tuple[Node, ...]]) -> tuple[Node, ...]:
    return tuple(row[k] for k in range(len(rows[0])) for row in rows)


def _number(n: OnnxNode, name: str, default: float = 0.0) -> float:
    return float(n.attribute(name, default))


@rule("Adagrad", domain=DOMAIN)
def adagrad(t: Trace, n: OnnxNode, rate: Value, step: Value, *tensors: Value) -> tuple[Node, ...]:
    decay, epsilon, norm = _number(n, "decay_factor"), _number(n, "epsilon", 1e-6), _number(n, "norm_coefficient")
    rows = []
    for x, g, h in _groups(t, n, tensors, 3):
        now = div(cast(t.node(rate), x.dtype), add(mul(cast(t.node(step), x.dtype), decay), 1.0))
        slope = add(mul(x, norm), g)
        squares = add(h, square(slope))
        rows.append((sub(x, div(mul(now, slope), add(sqrt(squares), epsilon))), squares))
    return _results(rows)


@rule("Adam", domain=DOMAIN)
def adam(t: Trace, n: OnnxNode, rate: Value, step: Value, *tensors: Value) -> tuple[Node, ...]:
    alpha, beta, epsilon = _number(n, "alpha", 0.9), _number(n, "beta", 0.999), _number(n, "epsilon", 1e-6)
    norm, norm_post = _number(n, "norm_coefficient"), _number(n, "norm_coefficient_post")
    rows = []
    for x, g, v, h in _groups(t, n, tensors, 4):
        slope = add(mul(x, norm), g)
        mean = add(mul(v, alpha), mul(slope, 1.0 - alpha))
        squares = add(mul(h, beta), mul(square(slope), 1.0 - beta))
        at = cast(t.node(step), x.dtype)
        plain = cast(t.node(rate), x.dtype)
        unbiased = div(mul(plain, sqrt(sub(1.0, power(beta, at)))), sub(1.0, power(alpha, at)))
        now = select(greater(cast(t.node(step), i64), 0), unbiased, plain)
        new = sub(x, div(mul(now, mean), add(sqrt(squares), epsilon)))
        rows.append((mul(new, 1.0 - norm_post), mean, squares))
    return _results(rows)


@rule("Momentum", domain=DOMAIN)
def momentum(t: Trace, n: OnnxNode, rate: Value, step: Value, *tensors: Value) -> tuple[Node, ...]:
    alpha, beta, norm = _number(n, "alpha"), _number(n, "beta"), _number(n, "norm_coefficient")
    nesterov = n.attribute("mode", "standard") == "nesterov"
    rows = []
    for x, g, v in _groups(t, n, tensors, 3):
        slope = add(mul(x, norm), g)
        factor = select(greater(cast(t.node(step), i64), 0), number(beta, x), number(1.0, x))
        speed = add(mul(v, alpha), mul(factor, slope))
        move = add(slope, mul(speed, alpha)) if nesterov else speed
        rows.append((sub(x, mul(cast(t.node(rate), x.dtype), move)), speed))
    return _results(rows)
