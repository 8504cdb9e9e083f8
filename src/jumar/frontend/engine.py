"""`apply`: the one way by which a Tensor is computed; and how one operator runs at once.

In: an operator definition and Tensors of the element types that it wants.  Out: Tensors.  With nothing under way the operator runs now: in NumPy where it is
small, as a compiled Program of one operator where it is large or heavy.  Under a capture or a tape the recorder takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jumar.base import Array, OpError, StackError, bool_, f32, f64, i32, i64, type_of
from jumar.frontend.memory import OutOfMemory
from jumar.frontend.tensor import LOCAL, Tensor, wrap
from jumar.frontend.twin import TWIN, ran_operator
from jumar.frontend.user import explained
from jumar.ir import Graph, Node, Op, evaluate, param
from jumar.ir import apply as apply_node
from jumar.operators import AvgPool, Contraction, Conv, ConvTranspose, Elementwise, MatMul, MaxPool

SMALL = 1 << 15  # elements up to which NumPy's call is cheaper than ours
HEAVY = (Conv, ConvTranspose, MaxPool, AvgPool)  # operators whose NumPy reference is slow at any size
KEPT = 4096  # operators with their types that are remembered
Call = Callable[[Sequence[Array]], Any]
_CALLS: dict[Any, Call] = {}


def apply(op: Op, *tensors: Tensor) -> Any:
    """The result of an operator: a Tensor, or a tuple of them where it has several."""
    recorder = LOCAL.recorder
    if recorder is not None:
        return recorder.apply(op, tensors)
    try:
        result = execute(op, [t.array for t in tensors])
    except StackError as error:
        raise explained(error) from error.__cause__
    except AttributeError as error:
        raise not_tensors(op, tensors, error) from None
    return tuple(map(wrap, result)) if isinstance(result, tuple) else wrap(result)


def execute(op: Op, arrays: Sequence[Array]) -> Any:
    """The operator's result on arrays: fresh memory.   An array, or a tuple of them."""
    key = (op, *[(a.shape, a.dtype) for a in arrays])
    call = _CALLS.get(key)
    if call is None:
        if len(_CALLS) > KEPT:
            _CALLS.clear()
        call = _CALLS[key] = _call_of(op, arrays)
    try:
        result = call(arrays)
    except MemoryError as error:
        if isinstance(error, StackError):
            raise
        raise OutOfMemory(f"{op.name}: the result must fit into memory, got {error}", code="out-of-memory") from None
    if TWIN:
        ran_operator(op, arrays, result)
    return result


def _call_of(op: Op, arrays: Sequence[Array]) -> Call:
    """How the operator runs on arrays of these types."""
    if getattr(op, "data_dependent", False):
        return lambda given: _of_reference(op, given)
    node = apply_node(op, *(param(f"x{i}", type_of(a)) for i, a in enumerate(arrays)))
    if not _is_small(op, node):
        return _native(node)
    ufunc = getattr(op, "numpy", None)
    if isinstance(op, Elementwise) and isinstance(ufunc, np.ufunc) and all(i.dtype in _EXACT for i in (node, *node.inputs)):
        quiet = np.errstate

        def call(given: Sequence[Array]) -> Array:
            with quiet(all="ignore"):
                return np.asarray(ufunc(*given))

        return call if call(arrays).dtype == node.dtype.numpy else lambda given: _by_reference(node, given)
    return lambda given: _by_reference(node, given)


def not_tensors(op: Op, given: Sequence[Any], error: AttributeError) -> Exception:
    """The error for inputs that are no tensors; the error itself where all are."""
    wrong = next((g for g in given if not isinstance(g, Tensor)), None)
    if wrong is None and all(isinstance(g, Tensor) for g in given):
        return error
    return explained(OpError(f"{op.name}: inputs must be tensors, got {type(wrong).__name__}", code="op-inputs"))


_EXACT = {f32, f64, i64, i32, bool_}


def _by_reference(node: Node, arrays: Sequence[Array]) -> Any:
    result = evaluate(node, arrays)
    return tuple(_fresh(r, arrays) for r in result) if isinstance(result, tuple) else _fresh(result, arrays)


def _native(node: Node) -> Call:
    from jumar.frontend.segment import compiled  # noqa: PLC0415  (LLVM is loaded when a Program is first needed)

    instance = compiled(Graph(node.op.name, node.inputs, node.results))
    if isinstance(node.type, tuple):
        return lambda given: tuple(instance.run(given))
    return lambda given: instance.run(given)[0]


def _is_small(op: Op, node: Node) -> bool:
    if isinstance(op, Contraction):
        return isinstance(op, MatMul) and op.flops(*(i.type for i in node.inputs)) <= SMALL
    if isinstance(op, HEAVY):
        return False
    results = node.type if isinstance(node.type, tuple) else (node.type,)
    return sum(i.type.size for i in node.inputs) <= SMALL and all(t.size <= SMALL for t in results)


def _fresh(result: Array, arrays: Sequence[Array]) -> Array:
    """The result, copied where it is (a part of) an input's memory: writing into one tensor must not change another."""
    if any(result is a for a in arrays) or (result.base is not None and any(np.may_share_memory(result, a) for a in arrays)):
        return np.array(result)
    return result


def _of_reference(op: Op, arrays: Sequence[Array]) -> Any:
    with np.errstate(all="ignore"):
        result = op.reference(*arrays)
    return tuple(np.asarray(r) for r in result) if isinstance(result, tuple | list) else np.asarray(result)
