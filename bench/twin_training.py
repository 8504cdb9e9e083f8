"""A training step as one graph, from the forward graph of a network: loss, backward pass, and the optimiser's update of every weight.

In: a graph as imported (its weights are constants) and an optimiser.  Out: a graph whose parameters are the inputs, the targets, the weights and
the optimiser's state, and whose outputs update weights and state in place, as frameworks sink it into a device.
The normalisation of batches takes the statistics of the batch; the loss is softmax with cross entropy over the last dimension of the output.
Left out: dropout, running statistics, the loss scale.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jumar.base import f32
from jumar.compiler.autodiff import gradients
from jumar.ir import Constant, Graph, Node, constant, param, rebuild, same_node
from jumar.operators import BatchNorm, BatchNormTrain, Softmax, add, cast, div, mul, sqrt, sub

OPTIMIZERS = ("sgd", "momentum", "adam")


def training_step(graph: Graph, optimizer: str = "momentum") -> Graph:
    """The step.   optimizer: of OPTIMIZERS (`adam` without its correction of the first steps; LAMB and AdamW move as many bytes)."""
    if optimizer not in OPTIMIZERS:
        raise ValueError(f"training_step: optimizer must be one of {', '.join(OPTIMIZERS)}, got {optimizer!r}")
    weights: dict[Node, Node] = {}

    def visit(node: Node, inputs: tuple[Node, ...]) -> Node:
        if isinstance(node.op, Constant):
            if node.dtype.is_float and node.rank and np.prod(node.shape) > 2:
                weights[node] = param(f"weight.{len(weights)}", node.type)
                return weights[node]
            return node
        if isinstance(node.op, BatchNorm):
            return BatchNormTrain(node.op.epsilon)(*inputs[:3])[0]
        return same_node(node, inputs)

    forward = rebuild(graph, visit)
    logits = cast(forward.outputs[0], f32)
    targets = param("targets", logits.type)
    samples = float(np.prod(logits.shape[:-1]))
    seed = mul(sub(Softmax(-1)(logits), targets), constant(np.float32(1 / samples)))
    reached = set(forward.nodes)
    trained = [w for w in weights.values() if w in reached]
    found = gradients([logits], trained, [seed])
    updates: list[tuple[Node, Node]] = []  # a parameter, and its next value
    for weight, gradient in zip(trained, found, strict=True):
        if gradient is not None:
            updates += _update(weight, gradient, optimizer)
    states = [p for p, _ in updates]
    params = (*forward.params, targets, *dict.fromkeys((*trained, *states)))
    outputs = (logits, *(value for _, value in updates))
    pairs = tuple((1 + i, params.index(p)) for i, p in enumerate(states))
    return Graph(f"{graph.name} training step", params, outputs, updates=pairs)


def _update(weight: Node, gradient: Node, optimizer: str) -> Sequence[tuple[Node, Node]]:
    def number(value: float) -> Node:
        return constant(np.asarray(value, weight.dtype.numpy))

    label = str(weight.op).split("(")[-1].rstrip(")")
    if optimizer == "sgd":
        return [(weight, sub(weight, mul(gradient, number(0.01))))]
    first = param(f"{label}.first", weight.type)
    if optimizer == "momentum":
        mass = add(mul(first, number(0.9)), gradient)
        return [(weight, sub(weight, mul(mass, number(0.01)))), (first, mass)]
    second = param(f"{label}.second", weight.type)
    m = add(mul(first, number(0.9)), mul(gradient, number(0.1)))
    v = add(mul(second, number(0.999)), mul(mul(gradient, gradient), number(0.001)))
    step = div(m, add(sqrt(v), number(1e-6)))
    return [(weight, sub(weight, mul(step, number(1e-4)))), (first, m), (second, v)]
