"""Gradients of nodes as nodes: the backward pass, written into the same graph.

In: recorded nodes (a front end's capture or tape), and whom to differentiate by.  Out: one node for each, made of differentiable operators, so
that gradients of gradients are the same call again.  Each operator says its own `grad`; where it has none, its `decompose` is differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jumar.base import CompileError, TensorType
from jumar.ir import NOWHERE, Get, Node, constant, located, topological
from jumar.operators import Elementwise, StopGradient, add, broadcast_to, sum_to

Custom = Callable[..., Sequence[Node | None]]
Cotangent = Node | tuple[Node | None, ...]


def gradients(
    outputs: Sequence[Node],
    wrt: Sequence[Node],
    seeds: Sequence[Node | None] | None = None,
    custom: Mapping[Node, Custom] | None = None,
) -> tuple[Node | None, ...]:
    """The gradient of the sum of seed * output by each node of `wrt`; None where nothing flows.

    seeds: what comes back to each output, or None for ones.   custom: for nodes that answer for themselves: a function from what comes back to
    each of the node's results (None where nothing does) to what each of its inputs receives.
    """
    for node in (*outputs, *wrt):
        if isinstance(node.type, tuple):
            raise CompileError(f"gradients: outputs and wrt must be single values, got {node}", loc=node.loc, code="gradient-missing")
    backs: list[tuple[Node, Node]] = []
    for i, output in enumerate(outputs):
        seed = seeds[i] if seeds is not None else None
        if not output.type.dtype.is_float:
            continue
        if seed is None:
            seed = broadcast_to(constant(1, output.dtype), output.shape)
        elif seed.type != output.type:
            raise CompileError(
                f"gradients: seed {i} must be {output.type}, the type of its output, got {seed.type}", code="gradient-missing"
            )
        backs.append((output, seed))
    found = _walk(topological(o for o, _ in backs), backs, wrt, custom or {})
    return tuple(found.get(node) for node in wrt)


def _walk(
    order: Sequence[Node],
    backs: Sequence[tuple[Node, Node]],
    wrt: Sequence[Node],
    custom: Mapping[Node, Custom],
    border: frozenset[Node] = frozenset(),
) -> dict[Node, Node]:
    """What each node of `wrt` receives.

    order: inputs before users; backs: what comes back to some of them; border: nodes that receive and pass nothing on.
    """
    wanted = set(wrt)
    needed = {n for n in wrt if _carries(n) or isinstance(n.op, StopGradient)}
    for node in order:
        if node not in needed and node not in border and _carries(node) and any(i in needed for i in node.inputs):
            needed.add(node)
    pending: dict[Node, list[Node]] = {}
    several: dict[Node, list[list[Node]]] = {}  # what comes back to each result of a node with several
    for output, seed in backs:
        pending.setdefault(output, []).append(seed)
    found: dict[Node, Node] = {}
    for node in reversed(order):
        if node not in needed:
            continue
        with located(None if node.loc is NOWHERE else node.loc):
            dy = _arrived(node, pending, several)
            if dy is None:
                continue
            if node in wanted:
                assert isinstance(dy, Node), "only single values are asked for"
                found[node] = dy
            if node in border:
                continue
            if isinstance(node.op, Get):
                source = node.inputs[0]
                parts = several.setdefault(source, [[] for _ in source.type])
                assert isinstance(dy, Node), "one result is one value"
                parts[node.op.index].append(dy)
            elif any(i in needed for i in node.inputs):
                for i, (x, dx) in enumerate(zip(node.inputs, _backward(node, dy, needed, custom), strict=True)):
                    if dx is not None and x in needed:
                        pending.setdefault(x, []).append(_fitted(node, i, x, dx))
    return found


def _carries(node: Node) -> bool:
    """Whether a gradient can flow through a value: floats that are not stopped, and nodes of several results of which one is of floats."""
    if isinstance(node.op, StopGradient):
        return False
    types: tuple[TensorType, ...] = node.type if isinstance(node.type, tuple) else (node.type,)
    return any(t.dtype.is_float for t in types)


def _arrived(node: Node, pending: dict[Node, list[Node]], several: dict[Node, list[list[Node]]]) -> Cotangent | None:
    """The sum of all that comes back to a node, for each result; None where nothing does."""
    if not isinstance(node.type, tuple):
        return _total(pending.pop(node, []))
    parts = several.pop(node, None)
    return None if parts is None else tuple(_total(p) for p in parts)


def _total(parts: list[Node]) -> Node | None:
    """The sum, as a tree."""
    while len(parts) > 1:
        parts = [add(*parts[i : i + 2]) if i + 1 < len(parts) else parts[i] for i in range(0, len(parts), 2)]
    return parts[0] if parts else None


def _backward(node: Node, dy: Cotangent, needed: set[Node], custom: Mapping[Node, Custom]) -> Sequence[Node | None]:
    """What each input receives, as the node's owner, its operator, or the operator's parts say."""
    if node in custom:
        given = custom[node](*dy) if isinstance(dy, tuple) else custom[node](dy)
        if len(given) != len(node.inputs):
            what = f"{node.op.name}: custom gradient must give one value or None for each of {len(node.inputs)} inputs, got {len(given)}"
            raise CompileError(what, loc=node.loc, code="gradient-missing")
        return given
    grad: Any = getattr(node.op, "grad", None)
    if grad is not None:
        y = node.results if isinstance(node.type, tuple) else node
        received: Sequence[Node | None] = grad(*node.inputs, y, dy)
        if received is not NotImplemented:  # as Python's operators: ask another, here the parts
            return received
    decompose: Any = getattr(node.op, "decompose", None)
    if decompose is None:
        raise CompileError(
            f"{node.op.name}: operator must have a gradient to be differentiated, and has none: {node.op}",
            loc=node.loc,
            hint="stop_gradient on its result or input, or a gradient of your own (bprop), says what should flow",
            code="gradient-missing",
        )
    made = decompose(*node.inputs)
    parts = made if isinstance(made, tuple) else (made,)
    back = dy if isinstance(dy, tuple) else (dy,)
    backs = [(p, b) for p, b in zip(parts, back, strict=True) if b is not None]
    unique = list(dict.fromkeys(node.inputs))
    # the inputs come first, as if they were parameters: what lies above them is not walked here
    order = topological((p for p, _ in backs), unique)
    inside = _walk(order, backs, [x for x in unique if x in needed], custom, frozenset(unique))
    return [inside.pop(x, None) for x in node.inputs]  # an input that stands twice receives it all once


def _fitted(node: Node, index: int, x: Node, dx: Node) -> Node:
    """The gradient in the shape of its input: summed over what an elementwise operator broadcast."""
    if isinstance(node.op, Elementwise) or dx.shape != x.shape:
        dx = sum_to(dx, x.shape)
    if dx.type != x.type:
        raise CompileError(
            f"{node.op.name}: gradient of input {index} must be {x.type}, got {dx.type}: this is our bug", loc=node.loc, code="our-bug"
        )
    return dx
