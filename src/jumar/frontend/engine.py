"""`apply`: the one way by which a Tensor is computed; and how one operator runs at once.

In: an operator definition and Tensors of the element types that it wants.  Out: Tensors.  With nothing under way the operator runs now: in NumPy where it is
small, as a compiled Program of one operator where it is large or heavy.  Under a capture or a tape the recorder takes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jumar.base import Array, type_of
from jumar.frontend.tensor import LOCAL, Tensor, wrap
from jumar.ir import Graph, Node, Op, evaluate, param
from jumar.ir import apply as apply_node
from jumar.operators import AvgPool, Contraction, Conv, ConvTranspose, MatMul, MaxPool
from jumar.runtime import Instance

SMALL = 1 << 15  # elements up to which NumPy's call is cheaper than ours
HEAVY = (Conv, ConvTranspose, MaxPool, AvgPool)  # operators whose NumPy reference is slow at any size
_NODES: dict[Any, Node] = {}
_INSTANCES: dict[Any, Instance] = {}
KEPT = 4096  # operators with their types that are remembered


def apply(op: Op, *tensors: Tensor) -> Any:
    """The result of an operator: a Tensor, or a tuple of them where it has several."""
    recorder = LOCAL.recorder
    if recorder is not None:
        return recorder.apply(op, tensors)
    result = execute(op, [t.array for t in tensors])
    return tuple(map(wrap, result)) if isinstance(result, tuple) else wrap(result)


def execute(op: Op, arrays: Sequence[Array]) -> Any:
    """The operator's result on arrays: fresh memory.   An array, or a tuple of them."""
    if getattr(op, "data_dependent", False):
        return _of_reference(op, arrays)
    key = (op, *[(a.shape, a.dtype) for a in arrays])
    node = _NODES.get(key)
    if node is None:
        if len(_NODES) > KEPT:
            _NODES.clear()
        node = _NODES[key] = apply_node(op, *(param(f"x{i}", type_of(a)) for i, a in enumerate(arrays)))
    if _is_small(op, node, arrays):
        result = evaluate(node, arrays)
        if isinstance(result, tuple):
            return tuple(_fresh(r, arrays) for r in result)
        return _fresh(result, arrays)
    instance = _INSTANCES.get(key)
    if instance is None:
        instance = _INSTANCES[key] = _compiled(node)
    outputs = instance.run(arrays)
    return tuple(outputs) if isinstance(node.type, tuple) else outputs[0]


def _is_small(op: Op, node: Node, arrays: Sequence[Array]) -> bool:
    if isinstance(op, Contraction):
        return isinstance(op, MatMul) and op.flops(*(i.type for i in node.inputs)) <= SMALL
    if isinstance(op, HEAVY):
        return False
    return sum(a.size for a in arrays) <= SMALL and (isinstance(node.type, tuple) or node.type.size <= SMALL)


def _fresh(result: Array, arrays: Sequence[Array]) -> Array:
    """The result, copied where it is (a part of) an input's memory: writing into one tensor must not change another."""
    if any(result is a for a in arrays) or (result.base is not None and any(np.may_share_memory(result, a) for a in arrays)):
        return result.copy()
    return result


def _of_reference(op: Op, arrays: Sequence[Array]) -> Any:
    with np.errstate(all="ignore"):
        result = op.reference(*arrays)
    return tuple(np.asarray(r) for r in result) if isinstance(result, tuple | list) else np.asarray(result)


def _compiled(node: Node) -> Instance:
    from jumar.frontend.segment import compiled  # noqa: PLC0415  (LLVM is loaded when a Program is first needed)

    return compiled(Graph(node.op.name, node.inputs, node.results))
