"""Sequences and optionals: Python lists and None while tracing, so nothing of them is left in the graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from jumar.frontend.importers.onnx.axes import concat, reshape, slice_axis, squeeze_axis
from jumar.frontend.importers.onnx.evaluator import Scope, run_graph
from jumar.frontend.importers.onnx.node import OnnxNode
from jumar.frontend.importers.onnx.rule import rule
from jumar.frontend.importers.onnx.trace import Trace
from jumar.frontend.importers.onnx.value import Known, Traced, Value


def items_of(n: OnnxNode, value: Value) -> list[Any]:
    """The items of a sequence value."""
    if not isinstance(value, list):
        raise n.fault(f"input must be a sequence, got {'none' if value is None else value.type}")
    return value


def _position(t: Trace, n: OnnxNode, position: Value, low: int, high: int) -> int:
    at = int(t.scalar(position))
    if not low <= at <= high:
        raise n.fault(f"position must be {low} to {high}, got {at}")
    return at


@rule("SequenceEmpty")
def sequence_empty(t: Trace, n: OnnxNode) -> Value:
    return []


@rule("SequenceConstruct")
def sequence_construct(t: Trace, n: OnnxNode, *items: Value) -> Value:
    return list(items)


@rule("SequenceLength")
def sequence_length(t: Trace, n: OnnxNode, sequence: Value) -> Any:
    return np.array(len(items_of(n, sequence)), np.int64)


@rule("SequenceAt")
def sequence_at(t: Trace, n: OnnxNode, sequence: Value, position: Value) -> Value:
    items = items_of(n, sequence)
    found: Value = items[_position(t, n, position, -len(items), len(items) - 1)]
    return found


@rule("SequenceInsert")
def sequence_insert(t: Trace, n: OnnxNode, sequence: Value, item: Value, position: Value) -> Value:
    items = list(items_of(n, sequence))
    at = len(items) if position is None else _position(t, n, position, -len(items), len(items))
    items.insert(at, item)
    return items


@rule("SequenceErase")
def sequence_erase(t: Trace, n: OnnxNode, sequence: Value, position: Value) -> Value:
    items = list(items_of(n, sequence))
    del items[-1 if position is None else _position(t, n, position, -len(items), len(items) - 1)]
    return items


@rule("SplitToSequence")
def split_to_sequence(t: Trace, n: OnnxNode, x: Value, split: Value) -> Value:
    if not isinstance(x, Known | Traced):
        raise n.fault("input must be a tensor, got none or a sequence")
    shape = x.shape
    axis = int(n.attribute("axis", 0))
    axis += len(shape) if axis < 0 else 0
    if not 0 <= axis < len(shape):
        raise n.fault(f"axis must be within the rank, got {axis} for {x.type}")
    keepdims = bool(n.attribute("keepdims", 1)) or split is not None
    sizes = _sizes(t, n, split, shape[axis])
    pieces: list[Any] = []
    start = 0
    for size in sizes:
        piece = slice_axis(t, x, axis, start, start + size)
        pieces.append(piece if keepdims else squeeze_axis(t, piece, axis))
        start += size
    return pieces


def _sizes(t: Trace, n: OnnxNode, split: Value, dim: int) -> list[int]:
    if split is None:
        return [1] * dim
    array = t.array(split)
    if array.ndim:
        sizes = [int(s) for s in array]
        if sum(sizes) != dim or any(s < 0 for s in sizes):
            raise n.fault(f"split must add up to {dim}, got {sizes}")
        return sizes
    size = int(array)
    if size <= 0:
        raise n.fault(f"split must be positive, got {size}")
    return [min(size, dim - at) for at in range(0, dim, size)]


@rule("ConcatFromSequence")
def concat_from_sequence(t: Trace, n: OnnxNode, sequence: Value) -> Any:
    items = items_of(n, sequence)
    if not items:
        raise n.fault("sequence must have items, got none")
    axis = int(n.attribute("axis", 0))
    new_axis = bool(n.attribute("new_axis", 0))
    rank = items[0].rank + new_axis
    axis += rank if axis < 0 else 0
    if not 0 <= axis < rank:
        raise n.fault(f"axis must be within the rank {rank}, got {axis}")
    if new_axis:
        items = [reshape(t, i, i.shape[:axis] + (1,) + i.shape[axis:]) for i in items]
    return concat(t, items, axis)


@rule("SequenceMap", scoped=True)
def sequence_map(t: Trace, n: OnnxNode, scope: Scope, *inputs: Value) -> Any:
    body = scope.graph.subgraph(n, "body")
    first = items_of(n, inputs[0])
    results: list[list[Any]] = [[] for _ in body.outputs]
    with t.holding([results]):
        for i in range(len(first)):
            given = [v[i] if isinstance(v, list) else v for v in inputs]
            for found, value in zip(results, run_graph(t, body, given, scope, scope.depth + 1), strict=True):
                found.append(value)
    return tuple(results)


# ---- optionals: the value itself, or None ----


@rule("Optional")
def optional(t: Trace, n: OnnxNode, x: Value) -> Value:
    return x


@rule("OptionalHasElement")
def optional_has_element(t: Trace, n: OnnxNode, x: Value) -> Any:
    return np.array(x is not None)


@rule("OptionalGetElement")
def optional_get_element(t: Trace, n: OnnxNode, x: Value) -> Value:
    if x is None:
        raise n.fault("optional must hold an element, got an empty one", hint="test it with OptionalHasElement first")
    return x
