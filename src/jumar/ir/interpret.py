"""The oracle: runs any graph node by node on the operators' NumPy references.

In: a graph and arrays.  Out: arrays of the outputs (and of every node, where asked).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jumar.base import Array, IRError, TensorType, type_of
from jumar.ir.graph import Get, Graph, Node, Param


def interpret(graph: Graph, inputs: Sequence[Array], *, watch: Callable[[Node, Any], None] | None = None) -> list[Array]:
    """Outputs of `graph` on `inputs`.   watch: called with every node and its value, in order."""
    if len(inputs) != len(graph.params):
        raise IRError(f"{graph.name}: there must be {len(graph.params)} inputs, got {len(inputs)}")
    values: dict[Node, Any] = {}
    for p, array in zip(graph.params, inputs, strict=True):
        value = np.asarray(array)
        if type_of(value) != p.type:
            raise IRError(f"{graph.name}: input {p.op} must be {p.type}, got {type_of(value)}", loc=p.loc)
        values[p] = value
    last = {i: n for n in graph.nodes for i in n.inputs}
    keep = set(graph.outputs)
    for node in graph.nodes:
        if not isinstance(node.op, Param):
            values[node] = evaluate(node, [values[i] for i in node.inputs])
        if watch:
            watch(node, values[node])
        for i in set(node.inputs):
            if last[i] is node and i not in keep:
                del values[i]
    return [values[o] for o in graph.outputs]


def evaluate(node: Node, arrays: Sequence[Any]) -> Any:
    """The value of one node from the values of its inputs, checked against its type."""
    with np.errstate(all="ignore"):
        result = node.op.reference(*arrays)
    if isinstance(node.op, Get):
        return np.asarray(result)
    if isinstance(node.type, tuple):
        return tuple(_checked(node, np.asarray(r), t) for r, t in zip(result, node.type, strict=True))
    return _checked(node, np.asarray(result), node.type)


def _checked(node: Node, value: Array, type_: TensorType) -> Array:
    if value.shape != type_.shape:
        raise IRError(f"{node.op}: reference must give {type_}, got {type_of(value)}: this is our bug", loc=node.loc, code="our-bug")
    if value.dtype == type_.dtype.numpy:
        return value
    with np.errstate(all="ignore"):  # too large for 16 bits is infinite, as on a device
        return value.astype(type_.dtype.numpy)
