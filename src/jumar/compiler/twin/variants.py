"""The same model, changed: in 32-bit integers, with whole attention operators, with channels padded, in 8 bits and back.

In: a graph as captured.  Out: the graph changed, or None where it cannot be changed so.  Read by advice.py, which forecasts it: what counts is
how long the changed model takes.  Attention and narrower integers keep what is computed; padding adds channels, 8 bits take made-up scales.
Other batches and lengths: sizes.py.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from jumar.base import Array, DType, TensorType, f32, i8, i32, i64
from jumar.compiler.passes.fold import Fold
from jumar.compiler.passes.recognize_attention import ATTENTION
from jumar.compiler.rules import apply_rules
from jumar.compiler.twin.sizes import changed, label_of
from jumar.ir import Graph, Node, Op, Param, apply, constant, param, rebuild, same_node
from jumar.operators import (
    Attention,
    Cast,
    Contraction,
    Conv,
    Dequantize,
    Elementwise,
    MatMul,
    Quantize,
    Transpose,
)


# ---------------------------------------------------------------------- transposes at the border
def without_border_transposes(graph: Graph) -> tuple[Graph, tuple[str, ...]] | None:
    """Inputs that the graph transposes first are taken as it wants them, outputs that it transposes last are given as they were; their names, too."""
    named: list[str] = []
    fed: dict[Node, Node] = {}
    params = []
    for p in graph.params:
        users = graph.users[p]
        perms = {u.op.perm for u in users if isinstance(u.op, Transpose)}
        if users and len(perms) == 1 and all(isinstance(u.op, Transpose) for u in users) and p not in graph.outputs:
            (perm,) = perms
            wanted = param(label_of(p), p.type.with_shape(tuple(p.shape[i] for i in perm)), p.loc)
            fed |= dict.fromkeys(users, wanted)
            named.append(label_of(p))
            params.append(wanted)
        else:
            params.append(p)
    found = changed(graph, params, lambda node, inputs: fed[node] if node in fed else same_node(node, inputs))
    if found is None:
        return None
    outputs = []
    for o, name in zip(found.outputs, found.output_names or ("",) * len(found.outputs), strict=True):
        inner = o.inputs[0] if isinstance(o.op, Transpose) else o
        # a product's result; moving data about is all that some outputs are
        if inner is not o and not isinstance(inner.op, Param):
            named.append(name or "the output")
            outputs.append(inner)
        else:
            outputs.append(o)
    return (found.with_outputs(outputs), tuple(named)) if named else None


# ---------------------------------------------------------------------- integers of 32 bits
def narrow_integers(graph: Graph) -> Graph | None:
    """int64 as int32 everywhere, parameters included; None where there is none, or a constant does not fit."""
    if not any(isinstance(n.type, TensorType) and n.dtype is i64 for n in graph.nodes):
        return None
    params = [param(label_of(p), _narrow(p.type), p.loc) for p in graph.params]
    return changed(graph, params, _narrowed)


def _narrow(type_: Any) -> Any:
    return TensorType(type_.shape, i32) if isinstance(type_, TensorType) and type_.dtype is i64 else type_


def _narrowed(node: Node, inputs: tuple[Node, ...]) -> Node:
    if node.array is not None:
        if node.dtype is not i64:
            return node
        held = node.array
        # bounds beyond any size (slices "to the end") stand for the largest number
        return constant(np.clip(held, -(2**31), 2**31 - 1).astype(np.int32), loc=node.loc)
    changed = {name: i32 for name, value in node.op.attributes().items() if value is i64}
    op: Op = type(node.op)(**(node.op.attributes() | changed))
    result = apply(op, *inputs, loc=node.loc) if changed or any(a is not b for a, b in zip(node.inputs, inputs, strict=True)) else node
    if isinstance(result.type, TensorType) and result.dtype is i64:
        return Cast(i32)(result, loc=node.loc)
    return result


# ---------------------------------------------------------------------- one operator in another type
def cast_around(graph: Graph, nodes: Collection[Node], dtype: DType) -> Graph:
    """The graph with these operators in another element type, and casts before and after each."""

    def visit(node: Node, inputs: tuple[Node, ...]) -> Node:
        if node not in nodes:
            return same_node(node, inputs)
        own = next(i.dtype for i in inputs if isinstance(i.type, TensorType) and i.dtype.kind != "b")
        other = apply(node.op, *(Cast(dtype)(i, loc=node.loc) if i.dtype == own else i for i in inputs), loc=node.loc)
        return other if other.type == node.type else Cast(node.dtype)(other, loc=node.loc)

    return rebuild(graph, visit)


# ---------------------------------------------------------------------- attention
def with_attention(graph: Graph) -> Graph | None:
    """Explicit attention (two products around a softmax) as one operator; None where there is none.   graph: canonical."""
    found, hits = apply_rules(graph, ATTENTION)
    return found if hits and any(isinstance(n.op, Attention) for n in found.nodes) else None


# ---------------------------------------------------------------------- 8 bits
def quantized(graph: Graph) -> Graph | None:
    """Products with constant weights on 8-bit codes, as a static quantizer writes them; scales are made up.   None where there are none."""
    count = 0

    def visit(node: Node, inputs: tuple[Node, ...]) -> Node:
        nonlocal count
        if not isinstance(node.op, Conv | MatMul) or node.dtype is not f32 or (weights := inputs[1].array) is None:
            return same_node(node, inputs)
        count += 1
        x, _, *bias = inputs
        return apply(node.op, _through_codes(x), _codes(weights), *bias, loc=node.loc)

    found = rebuild(graph, visit)
    return found if count else None


def unquantized(graph: Graph) -> Graph | None:
    """The numbers that a quantized model stands for: no rounding to codes in between, weights as floats.   None where nothing is quantized."""
    if not any(isinstance(n.op, Dequantize) for n in graph.nodes):
        return None

    def visit(node: Node, inputs: tuple[Node, ...]) -> Node:
        match same_node(node, inputs):
            case Node(op=Dequantize(), inputs=(Node(op=Quantize(), inputs=(x, scale, *_)), *_)) if (
                x.dtype == scale.dtype and x.type == node.type
            ):
                return x
            case found:
                return found

    found = Fold()(rebuild(graph, visit))
    return None if any(isinstance(n.op, Quantize | Dequantize) for n in found.nodes) else found


def _through_codes(x: Node) -> Node:
    scale, zero = constant(np.float32(0.05)), constant(np.int8(0))
    return Dequantize()(Quantize(i8)(x, scale, zero, loc=x.loc), scale, zero, loc=x.loc)


def _codes(weights: Array) -> Node:
    peak = max(-float(weights.min(initial=0.0)), float(weights.max(initial=0.0)))
    scale = np.float32(max(peak / 127, 1e-8))
    codes = weights * np.float32(1 / scale)
    np.rint(codes, out=codes)
    return Dequantize()(constant(codes.astype(np.int8)), constant(scale), constant(np.int8(0)))


# ---------------------------------------------------------------------- padding
def padded(graph: Graph, multiple: int) -> tuple[Graph, tuple[tuple[str, int, int], ...]] | None:
    """Inner sizes of products (channels, features) rounded up to a multiple, with zeros in the weights; what was padded: (place, from, to).

    A size grows where everything that reads it can: elementwise operators, and the weights of the next product.  Sizes of outputs stay.
    """
    grows: dict[Node, int] = {}
    for node in graph.nodes:
        if isinstance(node.op, Contraction) and (size := _features(node)) and size % multiple and _can_grow(graph, node):
            grows[node] = -(-size // multiple) * multiple
    if not grows:
        return None
    wide: dict[Node, tuple[int, int]] = {}  # nodes of the new graph whose feature axis has grown: (axis, by)

    def visit(node: Node, inputs: tuple[Node, ...]) -> Node:
        if all(a is b for a, b in zip(node.inputs, inputs, strict=True)) and node not in grows:
            return node
        more = next((wide[i] for i in inputs if i in wide), None)
        if isinstance(node.op, Contraction) and (more or node in grows):
            x, w, *bias = inputs
            weights = w.array
            assert weights is not None, "products with constant weights only"
            if more:
                weights = _pad(weights, 1 if isinstance(node.op, Conv) else weights.ndim - 2, more[1])
            if node in grows:
                by = grows[node] - _features(node)
                weights = _pad(weights, 0 if isinstance(node.op, Conv) else weights.ndim - 1, by)
                bias = [constant(_pad(b.array, 0, by)) for b in bias if b.array is not None]
                result = apply(node.op, x, constant(weights), *bias, loc=node.loc)
                wide[result] = (_feature_axis(node), by)
                return result
            return apply(node.op, x, constant(weights), *bias, loc=node.loc)
        if not more:  # the product before took the wider input and gave what it gave before
            return same_node(node, inputs)
        axis, by = more
        fitted = tuple(_padded_constant(i, node.rank, axis, by) for i in inputs)
        result = apply(node.op, *fitted, loc=node.loc)
        wide[result] = more
        return result

    found = changed(graph, graph.params, visit)
    return None if found is None else (found, tuple((n.loc.name or str(n.op), _features(n), to) for n, to in grows.items()))


def _features(node: Node) -> int:
    """Output features of a product with constant weights, 0 of others."""
    if isinstance(node.op, Conv):
        return node.inputs[1].shape[0] if node.inputs[1].array is not None and node.op.groups == 1 and not node.op.channels_last else 0
    if isinstance(node.op, MatMul) and node.inputs[1].array is not None and node.inputs[1].rank == 2 and node.inputs[0].rank >= 2:
        return node.inputs[1].shape[-1]
    return 0


def _feature_axis(node: Node) -> int:
    return 1 if isinstance(node.op, Conv) else node.rank - 1


def _can_grow(graph: Graph, node: Node) -> bool:
    """Whether all that reads the features is elementwise with constants, or a product with constant weights."""
    axis, seen, todo = _feature_axis(node), set[Node](), [node]
    outputs = set(graph.outputs)
    while todo:
        at = todo.pop()
        if at in outputs:
            return False
        for user in graph.users[at]:
            if user in seen:
                continue
            seen.add(user)
            if isinstance(user.op, Conv | MatMul):
                if (
                    _features(user)
                    and user.inputs[0] is at
                    and user.inputs[1] is not at
                    and (isinstance(user.op, Conv) == isinstance(node.op, Conv))
                ):
                    continue
                return False
            others = [i for i in user.inputs if i is not at]
            plain = isinstance(user.op, Elementwise) and isinstance(user.type, TensorType) and user.rank == at.rank
            if not plain or any(i.array is None or (i.rank == user.rank and i.shape[axis] not in (1, at.shape[axis])) for i in others):
                return False
            todo.append(user)
    return True


def _padded_constant(node: Node, rank: int, axis: int, by: int) -> Node:
    at = axis - rank + node.rank
    if node.array is None or at < 0 or node.shape[at] == 1:
        return node
    return constant(_pad(node.array, at, by), loc=node.loc)


def _pad(array: Array | None, axis: int, by: int) -> Array:
    assert array is not None, "a constant"
    return np.pad(array, [(0, by if i == axis else 0) for i in range(array.ndim)])
