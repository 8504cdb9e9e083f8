"""Gradients by name: where a backward pass spells out what an operator's inputs receive, an Ascend NPU has one kernel for it.

In: the simplified graph of a training step.  Out: the same with `Gradient` operators (LayerNormGrad, SoftmaxGrad, ReluGrad ...), which select.py maps.
The patterns are not written down: each is the operator's own `grad` on parameters, simplified by the same passes, and looked for in the graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jumar.base import TensorType, event
from jumar.ir import Graph, Node, Op, Param, param, same_node, topological
from jumar.operators import (
    Add,
    Elu,
    Gelu,
    Gradient,
    HardSigmoid,
    HardSwish,
    LayerNorm,
    LeakyRelu,
    LogSoftmax,
    Maximum,
    Minimum,
    Mish,
    Mul,
    Relu,
    RmsNorm,
    Sigmoid,
    Silu,
    Softmax,
    Softplus,
    Softsign,
    Tanh,
)

NAMED: tuple[type[Op], ...] = (
    LayerNorm,
    RmsNorm,
    Softmax,
    LogSoftmax,
    Gelu,
    Silu,
    Relu,
    LeakyRelu,
    Elu,
    HardSigmoid,
    HardSwish,
    Mish,
    Sigmoid,
    Tanh,
    Softplus,
    Softsign,
)  # fmt: skip  (operators for whose gradient CANN has a kernel)
COMMUTATIVE = (Add, Mul, Maximum, Minimum)
Bound = dict[Node, Node]
Kinds = dict[tuple[type[Op], TensorType], list[Node]]


@dataclass(frozen=True)
class RecognizeGradients:
    """simplify: the passes that the graph went through, for the patterns to go through them, too."""

    simplify: tuple[Callable[[Graph], Graph], ...] = ()
    name = "recognize_gradients"

    def __call__(self, graph: Graph) -> Graph:
        kinds = _by_kind(graph)
        patterns: dict[tuple[Op, tuple[TensorType, ...]], Pattern | None] = {}
        taken: set[Node] = set()
        found: list[Hit] = []
        for node in graph.nodes:
            if not isinstance(node.op, NAMED) or isinstance(node.type, tuple):
                continue
            key = node.op, tuple(i.type for i in node.inputs)
            if key not in patterns:
                patterns[key] = _pattern(node, self.simplify)
            pattern = patterns[key]
            if pattern is not None and (hit := pattern.find(node, kinds, taken)) is not None:
                found.append(hit)
                taken |= set(hit.roots.values())
        if found:
            event("recognize_gradients", **Counter(h.forward.op.name for h in found))
        return _replaced(graph, found) if found else graph


@dataclass(frozen=True, eq=False)
class Hit:
    """A gradient that the graph spells out.   roots: its results, by number of the input that receives them."""

    forward: Node
    sources: tuple[Node, ...]
    dy: Node
    roots: dict[int, Node]
    by_result: bool

    def make(self, new: dict[Node, Node]) -> Node:
        """The operator in its place, on the successors of what it reads."""
        first = next(iter(self.roots.values()))
        op = Gradient(str(self.forward.op), tuple(self.roots), self.by_result)
        return op(new[self.dy], *(new[s] for s in self.sources), loc=first.loc)


@dataclass(frozen=True, eq=False)
class Pattern:
    """What the inputs of one operator receive.   inputs, dy: parameters; roots: by number of the input, the first must be there.

    by_result: the one of `inputs` is the operator's result.
    """

    inputs: tuple[Node, ...]
    dy: Node
    roots: dict[int, Node]
    by_result: bool

    def find(self, forward: Node, kinds: Kinds, taken: set[Node]) -> Hit | None:
        """The gradient of a node where the graph has it, None where it has not."""
        sources = (forward,) if self.by_result else forward.inputs
        bound: Bound = dict(zip(self.inputs, sources, strict=True))
        roots: dict[int, Node] = {}
        for number, root in self.roots.items():
            for node in kinds.get((type(root.op), root.type), ()):
                more = None if node in taken else match(root, node, bound)
                if more is not None and self.dy in more:
                    bound, roots[number] = more, node
                    break
            if not roots:  # without the first there is no kernel for the others
                return None
        return Hit(forward, sources, bound[self.dy], roots, self.by_result)


def match(pattern: Node, node: Node, bound: Bound) -> Bound | None:
    """What the parameters of a pattern stand for where a node is as the pattern says, None where it is not."""
    known = bound.get(pattern)
    if known is not None:
        return bound if known is node else None
    if isinstance(pattern.op, Param):
        return {**bound, pattern: node} if pattern.type == node.type else None
    if pattern.array is not None:
        same = node.array is not None and node.type == pattern.type and bool(np.allclose(pattern.array, node.array, rtol=1e-5))
        return bound if same else None
    if pattern.type != node.type or pattern.op != node.op or len(pattern.inputs) != len(node.inputs):
        return None
    orders: Sequence[tuple[Node, ...]] = (node.inputs,)
    if isinstance(node.op, COMMUTATIVE) and node.inputs[0] is not node.inputs[1]:
        orders = (node.inputs, node.inputs[::-1])
    for inputs in orders:
        found: Bound | None = bound
        for part, i in zip(pattern.inputs, inputs, strict=True):
            found = match(part, i, found) if found is not None else None
        if found is not None:
            return {**found, pattern: node}
    return None


def _pattern(forward: Node, simplify: Sequence[Callable[[Graph], Graph]]) -> Pattern | None:
    """The gradients of an operator on its input types, in simplified operators."""
    op: Any = forward.op
    inputs = tuple(param(f"x{i}", n.type) for i, n in enumerate(forward.inputs))
    y, dy = param("y", forward.type), param("dy", forward.type)
    asked = topological(g for g in op.grad(*inputs, y, dy) if g is not None)
    by_result = y in asked and len(inputs) == 1 and inputs[0] not in asked
    result = y if by_result or y not in asked else op(*inputs)
    roots = {k: g for k, g in enumerate(op.grad(*inputs, result, dy)) if g is not None and inputs[k].dtype.is_float}
    graph = Graph("gradient", (*inputs, y, dy), tuple(roots.values()))
    for step in simplify:
        graph = step(graph)
    *sources, made_y, made_dy = graph.params
    roots = dict(zip(roots, graph.outputs, strict=True))
    if not roots or any(isinstance(r.op, Param) for r in roots.values()):
        return None
    return Pattern((made_y,) if by_result else tuple(sources), made_dy, roots, by_result)


def _by_kind(graph: Graph) -> Kinds:
    found: Kinds = {}
    for node in graph.nodes:
        if isinstance(node.type, TensorType) and node.inputs:
            found.setdefault((type(node.op), node.type), []).append(node)
    return found


def _replaced(graph: Graph, found: Sequence[Hit]) -> Graph:
    """The graph with a `Gradient` in the place of each set of roots; what only they read falls away."""
    hit_of = {root: hit for hit in found for root in hit.roots.values()}
    new: dict[Node, Node] = {p: p for p in graph.params}
    made: dict[int, Node] = {}
    waiting = list(reversed(graph.outputs))
    while waiting:
        node = waiting[-1]
        hit = hit_of.get(node)
        missing = [n for n in ((hit.dy, *hit.sources) if hit else node.inputs) if n not in new]
        if node in new or missing:
            waiting = waiting[:-1] if node in new else waiting + missing
            continue
        waiting.pop()
        if hit is None:
            new[node] = same_node(node, tuple(new[i] for i in node.inputs))
            continue
        gradient = made.setdefault(id(hit), hit.make(new)) if id(hit) not in made else made[id(hit)]
        place = list(hit.roots.values()).index(node)
        new[node] = gradient[place] if len(hit.roots) > 1 else gradient
    return graph.with_outputs(new[o] for o in graph.outputs)
