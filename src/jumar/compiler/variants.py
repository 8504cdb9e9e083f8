"""The same model, changed: at another batch, in 32-bit integers, with whole attention operators, with sizes padded, in 8 bits.

In: a graph as captured.  Out: the graph changed, or None where it cannot be changed so.  Read by advice.py, which forecasts it: what counts is
how long the changed model takes.  A batch, attention and narrower integers keep what is computed; padding adds channels, 8 bits take made-up scales.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from jumar.base import Array, StackError, TensorType, f32, i8, i32, i64
from jumar.compiler.passes.recognize_attention import ATTENTION
from jumar.compiler.rules import apply_rules
from jumar.ir import Graph, Node, Op, Param, apply, constant, param, rebuild, same_node
from jumar.operators import (
    Attention,
    Broadcast,
    Cast,
    Concat,
    Contraction,
    Conv,
    Dequantize,
    Elementwise,
    MatMul,
    Quantize,
    Reshape,
    Resize,
    Slice,
    Transpose,
)

Changed = dict[Node, Node]


class _NotSo(Exception):
    """The graph cannot be changed in this way."""


def _changed(graph: Graph, params: Sequence[Node], visit: Callable[[Node, tuple[Node, ...]], Node]) -> Graph | None:
    """The graph on new parameters, node by node; None where an operator does not take what its inputs have become."""
    new: Changed = dict(zip(graph.params, params, strict=True))
    try:
        for node in graph.nodes:
            if node not in new:
                new[node] = visit(node, tuple(new[i] for i in node.inputs))
    except (StackError, _NotSo):
        return None
    return Graph(graph.name, tuple(params), tuple(new[o] for o in graph.outputs), graph.output_names)


# ---------------------------------------------------------------------- batch
def batch_of(graph: Graph) -> int:
    """Examples in one run: the leading dimension that most parameters of two dimensions and more share; 1 where there is none."""
    leading = [p.shape[0] for p in graph.params if isinstance(p.type, TensorType) and p.rank >= 2]
    return max(set(leading), key=leading.count) if leading else 1


def with_batch(graph: Graph, batch: int) -> Graph | None:
    """The graph for so many examples.   None where an operator mixes them or sizes do not tell where they are.

    A dimension that grows is followed through the graph; a reshape's is the one with as many elements before it.
    """
    before = batch_of(graph)
    if batch == before or not graph.params or batch < 1:
        return None
    params = [_grown_param(p, before, batch) for p in graph.params]
    ratio = Fraction(batch, before)
    found = _changed(graph, params, lambda node, inputs: _grown(node, inputs, before, ratio))
    if found is None or any(_axis(o.type, n.type, ratio) is None for o, n in zip(graph.outputs, found.outputs, strict=True)):
        return None
    return found


def _grown_param(node: Node, before: int, batch: int) -> Node:
    if not isinstance(node.type, TensorType) or not node.rank or node.shape[0] != before:
        return node
    return param(_label(node), node.type.with_shape((batch, *node.shape[1:])), node.loc)


def _axis(old: Any, new: Any, ratio: Fraction) -> int | None:
    """The axis that has grown; None where none has."""
    if not isinstance(old, TensorType) or not isinstance(new, TensorType) or old.rank != new.rank:
        return None
    grown = [i for i, (a, b) in enumerate(zip(old.dims, new.dims, strict=True)) if a != b]
    return grown[0] if len(grown) == 1 and new.dims[grown[0]] == ratio * old.dims[grown[0]] else None


def _grown(node: Node, inputs: tuple[Node, ...], before: int, ratio: Fraction) -> Node:
    if all(a.type == b.type for a, b in zip(node.inputs, inputs, strict=True)):
        op = node.op
        if isinstance(op, Broadcast) and before > 1 and op.shape and op.shape[0] == before:  # a constant written once for each example
            return apply(Broadcast(_scaled_at(op.shape, 0, ratio)), *inputs, loc=node.loc)
        return same_node(node, inputs)
    axes = [_axis(a.type, b.type, ratio) for a, b in zip(node.inputs, inputs, strict=True)]
    known = [(i, axis) for i, axis in enumerate(axes) if axis is not None]
    if not known:
        raise _NotSo
    number, axis = known[0]
    old = node.inputs[number].type
    match node.op:
        case Reshape(shape=shape):
            return apply(Reshape(_scaled_at(shape, _same_place(old.dims, axis, shape, before), ratio)), *inputs, loc=node.loc)
        case Broadcast(shape=shape):
            at = axis + len(shape) - old.rank
            if shape[at] != old.dims[axis]:
                raise _NotSo
            return apply(Broadcast(_scaled_at(shape, at, ratio)), *inputs, loc=node.loc)
        case Slice(starts=starts, stops=stops, steps=steps):
            if starts[axis] != 0 or steps[axis] != 1 or stops[axis] < old.dims[axis]:
                raise _NotSo
            return apply(Slice(starts, _scaled_at(stops, axis, ratio), steps), *inputs, loc=node.loc)
        case Resize(sizes=sizes) if len(inputs) == 1:
            return apply(replace(node.op, sizes=_scaled_at(sizes, axis, ratio)), *inputs, loc=node.loc)
        case Concat():
            inputs = tuple(_spread(i, a, axis, old.dims[axis], ratio) for i, a in zip(inputs, axes, strict=True))
        case Elementwise() if before > 1:  # what was written once for each example, in a constant
            back = old.rank - axis  # the dimension, counted from the end, as broadcasting does
            inputs = tuple(_spread(i, a, i.rank - back, old.dims[axis], ratio) for i, a in zip(inputs, axes, strict=True))
        case op if any(isinstance(value, Graph) for value in op.attributes().values()):
            raise _NotSo
    result = apply(node.op, *inputs, loc=node.loc)
    if isinstance(result.type, TensorType) and _axis(node.type, result.type, ratio) is None:
        raise _NotSo  # examples were mixed
    return result


def _spread(node: Node, axis: int | None, at: int, size: int, ratio: Fraction) -> Node:
    """A value written once for each example, so often more; itself where it has grown already, or is one for all.   size: of the examples' dimension."""
    if axis is not None or not 0 <= at < node.rank or node.shape[at] != size:
        return node
    if ratio < 1:
        return Slice((0,) * node.rank, _scaled_at(node.shape, at, ratio), (1,) * node.rank)(node)
    if ratio.denominator > 1:
        raise _NotSo
    return Concat(at)(*[node] * ratio.numerator)


def _same_place(dims: Sequence[int], axis: int, shape: Sequence[int], before: int) -> int:
    """The dimension of a reshape's result in which the examples of `axis` are: as many elements lie before it; one example may be in a dimension of 1."""
    ahead = math.prod(dims[:axis])
    count = 1
    for i, size in enumerate(shape):
        if (count == ahead and (size > 1 or before == 1)) or count < ahead < count * size:
            return i
        count *= size
    raise _NotSo


def _scaled_at(shape: Sequence[int], axis: int, ratio: Fraction) -> tuple[int, ...]:
    scaled = ratio * shape[axis]
    if scaled.denominator > 1:
        raise _NotSo
    return tuple(scaled.numerator if i == axis else d for i, d in enumerate(shape))


# ---------------------------------------------------------------------- transposes at the border
def without_border_transposes(graph: Graph) -> tuple[Graph, tuple[str, ...]] | None:
    """Inputs that the graph transposes first are taken as it wants them, outputs that it transposes last are given as they were; their names, too."""
    named: list[str] = []
    fed: Changed = {}
    params = []
    for p in graph.params:
        users = graph.users[p]
        perms = {u.op.perm for u in users if isinstance(u.op, Transpose)}
        if users and len(perms) == 1 and all(isinstance(u.op, Transpose) for u in users) and p not in graph.outputs:
            (perm,) = perms
            wanted = param(_label(p), p.type.with_shape(tuple(p.shape[i] for i in perm)), p.loc)
            fed |= dict.fromkeys(users, wanted)
            named.append(_label(p))
            params.append(wanted)
        else:
            params.append(p)
    found = _changed(graph, params, lambda node, inputs: fed[node] if node in fed else same_node(node, inputs))
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


def _label(node: Node) -> str:
    assert isinstance(node.op, Param), "a parameter of the graph"
    return node.op.label


# ---------------------------------------------------------------------- integers of 32 bits
def narrow_integers(graph: Graph) -> Graph | None:
    """int64 as int32 everywhere, parameters included; None where there is none, or a constant does not fit."""
    if not any(isinstance(n.type, TensorType) and n.dtype is i64 for n in graph.nodes):
        return None
    params = [param(_label(p), _narrow(p.type), p.loc) for p in graph.params]
    return _changed(graph, params, _narrowed)


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


def _through_codes(x: Node) -> Node:
    scale, zero = constant(np.float32(0.05)), constant(np.int8(0))
    return Dequantize()(Quantize(i8)(x, scale, zero, loc=x.loc), scale, zero, loc=x.loc)


def _codes(weights: Array) -> Node:
    scale = np.float32(max(float(np.abs(weights).max(initial=0.0)) / 127, 1e-8))
    codes = np.clip(np.rint(weights / scale), -127, 127).astype(np.int8)
    return Dequantize()(constant(codes), constant(scale), constant(np.int8(0)))


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

    found = _changed(graph, graph.params, visit)
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
