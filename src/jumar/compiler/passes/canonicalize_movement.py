"""The rules of `canonicalize` about movement: transposes, reshapes, slices, pads, broadcasts, concatenations, reductions of nothing.

In: nodes.  Out: the same value with less moving; see `canonicalize.py` for the pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from jumar.compiler.rules import Alone, Table, rule, user_rule
from jumar.ir import Node, apply
from jumar.operators import (
    AvgPool,
    Broadcast,
    Concat,
    Conv,
    Elementwise,
    Gather,
    MatMul,
    MaxPool,
    Pad,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    Reduction,
    Reshape,
    Slice,
    Transpose,
)

MOVEMENT: Table = {}


@rule(MOVEMENT, Reshape)
def reshape_same(node: Node) -> Node | None:
    """reshape to the own shape -> x; reshape of reshape -> the last"""
    (x,) = node.inputs
    if x.type == node.type:
        return x
    if isinstance(x.op, Reshape):
        return Reshape(node.shape)(x.inputs[0], loc=node.loc)
    return None


@rule(MOVEMENT, Transpose)
def transpose_simple(node: Node) -> Node | None:
    """transpose in order -> x; two transposes -> one; a transpose that moves only dimensions of 1 -> reshape"""
    (x,) = node.inputs
    perm = node.op.perm  # type: ignore[attr-defined]
    if perm == tuple(range(x.rank)):
        return x
    if isinstance(x.op, Transpose):
        return Transpose(tuple(x.op.perm[p] for p in perm))(x.inputs[0], loc=node.loc)
    moved = [p for p in perm if x.shape[p] != 1]
    if moved == sorted(moved):
        return Reshape(node.shape)(x, loc=node.loc)
    return None


@rule(MOVEMENT, Transpose)
def transpose_of_broadcast(node: Node) -> Node | None:
    """transpose (broadcast x) -> broadcast (transpose x), where x has the rank already"""
    (x,) = node.inputs
    if isinstance(x.op, Broadcast) and x.inputs[0].rank == x.rank:
        return Broadcast(node.shape)(apply(node.op, x.inputs[0], loc=node.loc), loc=node.loc)
    return None


@user_rule(MOVEMENT, Transpose)
def transpose_of_matmul(node: Node, alone: Alone) -> Node | None:
    """transpose (matmul (transpose a) b) -> matmul (transpose b) a, likewise where b is the transpose: dw of x w^T comes as w lies"""
    (y,) = node.inputs
    if not isinstance(y.op, MatMul) or not _swaps_last(node) or not alone(y):
        return None
    a, b = y.inputs
    if a.rank != b.rank or not (_swaps_last(a) or _swaps_last(b)):
        return None
    return MatMul()(_swapped_last(b), _swapped_last(a), loc=y.loc)


def _swaps_last(node: Node) -> bool:
    """Whether a node is the transpose of its input's last two dimensions."""
    return isinstance(node.op, Transpose) and node.rank >= 2 and node.op.perm == (*range(node.rank - 2), node.rank - 1, node.rank - 2)


def _swapped_last(node: Node) -> Node:
    """The transpose of the last two dimensions; what a node is the transpose of, where it is one."""
    if _swaps_last(node):
        return node.inputs[0]
    return Transpose((*range(node.rank - 2), node.rank - 1, node.rank - 2))(node, loc=node.loc)


@rule(MOVEMENT, Broadcast)
def broadcast_simple(node: Node) -> Node | None:
    """broadcast to the own shape -> x; broadcast of broadcast -> one"""
    (x,) = node.inputs
    if x.type == node.type:
        return x
    if isinstance(x.op, Broadcast):
        return Broadcast(node.shape)(x.inputs[0], loc=node.loc)
    return Reshape(node.shape)(x, loc=node.loc) if x.type.size == node.type.size else None


@rule(MOVEMENT, Broadcast)
def broadcast_of_joined(node: Node) -> Node | None:
    """broadcast (reshape (broadcast x)), where the reshape only joins dimensions -> one broadcast of a reshaped x, then the joining

    Nearest-neighbour resizing writes one such pair for each dimension.
    """
    match node.inputs[0]:
        case Node(op=Reshape(), inputs=(Node(op=Broadcast(), inputs=(x,)) as inner,)) as joined if joined.rank == node.rank:
            pass
        case _:
            return None
    if x.rank != inner.rank or inner.type.size == 0:
        return None
    source: list[int] = []  # dimensions of x, then of its broadcast, with new ones of 1 where the outer broadcast repeats
    target: list[int] = []
    at = 0
    for size, wanted in zip(joined.shape, node.shape, strict=True):
        if size != wanted:
            source.append(1)
            target.append(wanted)
            continue
        product = 1
        while product < size and at < inner.rank:
            product *= inner.shape[at]
            source.append(x.shape[at])
            target.append(inner.shape[at])
            at += 1
        if product != size:
            return None
    if any(d != 1 for d in inner.shape[at:]):
        return None
    return Reshape(node.shape)(Broadcast(tuple(target))(Reshape(tuple(source))(x, loc=node.loc), loc=node.loc), loc=node.loc)


@rule(MOVEMENT, Elementwise)
def broadcast_into_elementwise(node: Node) -> Node | None:
    """x + broadcast y -> x + y: elementwise operators broadcast by themselves"""
    if len(node.inputs) < 2 or not any(isinstance(i.op, Broadcast) for i in node.inputs):
        return None
    for at, operand in enumerate(node.inputs):
        if isinstance(operand.op, Broadcast):
            new = apply(node.op, *(operand.inputs[0] if i == at else other for i, other in enumerate(node.inputs)), loc=node.loc)
            if new.type == node.type:
                return new
    return None


@rule(MOVEMENT, Elementwise)
def elementwise_of_broadcast(node: Node) -> Node | None:
    """f (broadcast x) -> broadcast (f x), where all other operands are single numbers"""
    big = [i for i in node.inputs if i.type.size > 1]
    if len(big) != 1 or not isinstance(big[0].op, Broadcast) or not isinstance(node.op, Elementwise):
        return None
    source = big[0].inputs[0]
    if any(i.rank > source.rank for i in node.inputs if i is not big[0]):
        return None
    small = apply(node.op, *(source if i is big[0] else i for i in node.inputs), loc=node.loc)
    return Broadcast(node.shape)(small, loc=node.loc) if small.shape == source.shape else None


@rule(MOVEMENT, Elementwise)
def elementwise_of_reshape(node: Node) -> Node | None:
    """f (reshape x) -> reshape (f x), where all other operands are single numbers or reshapes of the same kind: chains stay together"""
    big = [i for i in node.inputs if i.type.size > 1]
    if not big or any(not isinstance(i.op, Reshape) or i.shape != node.shape for i in big):
        return None
    source = big[0].inputs[0].shape
    if any(i.inputs[0].shape != source for i in big) or any(i.rank > len(source) for i in node.inputs if i.type.size == 1):
        return None
    inner = apply(node.op, *(i.inputs[0] if i.type.size > 1 else i for i in node.inputs), loc=node.loc)
    return Reshape(node.shape)(inner, loc=node.loc) if inner.shape == source else None


@rule(MOVEMENT, Slice)
def slice_simple(node: Node) -> Node | None:
    """slice of everything -> x; slice of slice -> one"""
    (x,) = node.inputs
    op = node.op
    assert isinstance(op, Slice), "listed under Slice"
    if x.type == node.type and all(s == 1 for s in op.steps):
        return x
    match x:
        case Node(op=Slice() as inner, inputs=(source,)) if all(s > 0 for s in (*op.steps, *inner.steps)):
            starts = tuple(a + b * s for a, b, s in zip(inner.starts, op.starts, inner.steps, strict=True))
            steps = tuple(a * b for a, b in zip(inner.steps, op.steps, strict=True))
            stops = tuple(a + (n - 1) * s + 1 if n else a for a, n, s in zip(starts, node.shape, steps, strict=True))
            return Slice(starts, stops, steps)(source, loc=node.loc)
    return None


@rule(MOVEMENT, Slice)
def slice_of_concat(node: Node) -> Node | None:
    """slice (concat a b ...) -> slice of the one piece, or concat of fewer pieces, that it touches"""
    (x,) = node.inputs
    op = node.op
    assert isinstance(op, Slice), "listed under Slice"
    if not isinstance(x.op, Concat):
        return None
    axis = x.op.axis % x.rank
    start, stop, step = op.starts[axis], op.stops[axis], op.steps[axis]
    if step != 1 or start >= stop:
        return None
    touched: list[Node] = []
    at = before = 0
    for piece in x.inputs:
        size = piece.shape[axis]
        if at < stop and at + size > start:
            before = at if not touched else before
            touched.append(piece)
        at += size
    if len(touched) == len(x.inputs):
        return None
    whole = touched[0] if len(touched) == 1 else Concat(axis)(*touched, loc=x.loc)
    starts = tuple(s - before if i == axis else s for i, s in enumerate(op.starts))
    stops = tuple(s - before if i == axis else s for i, s in enumerate(op.stops))
    return Slice(starts, stops, op.steps)(whole, loc=node.loc)


@rule(MOVEMENT, Concat)
def concat_simple(node: Node) -> Node | None:
    """concat of one -> it; concat of concat -> one; pieces without elements fall out"""
    axis = node.op.axis % node.rank  # type: ignore[attr-defined]
    if len(node.inputs) == 1:
        return node.inputs[0]
    full = [i for i in node.inputs if i.type.size]
    if full and len(full) < len(node.inputs):
        return Concat(axis)(*full, loc=node.loc)
    nested = [i for i in node.inputs if isinstance(i.op, Concat) and i.op.axis % i.rank == axis]
    if nested:
        flat = [p for i in node.inputs for p in (i.inputs if i in nested else (i,))]
        return Concat(axis)(*flat, loc=node.loc)
    return None


@rule(MOVEMENT, Concat)
def concat_of_slices(node: Node) -> Node | None:
    """concat of neighbouring slices of one value -> the slice that they are"""
    axis = node.op.axis % node.rank  # type: ignore[attr-defined]
    for at, (a, b) in enumerate(zip(node.inputs, node.inputs[1:], strict=False)):
        match a, b:
            case Node(op=Slice() as s, inputs=(x,)), Node(op=Slice() as t, inputs=(y,)) if x is y and _joins(s, t, axis, a.shape):
                stops = tuple(t.stops[i] if i == axis else v for i, v in enumerate(s.stops))
                joined = Slice(s.starts, stops, s.steps)(x, loc=node.loc)
                pieces = [*node.inputs[:at], joined, *node.inputs[at + 2 :]]
                return Concat(axis)(*pieces, loc=node.loc) if len(pieces) > 1 else joined
    return None


def _joins(s: Slice, t: Slice, axis: int, shape: Sequence[int]) -> bool:
    """Whether the second slice begins where the first ends."""
    others = [i for i in range(len(shape)) if i != axis]
    same = all((s.starts[i], s.stops[i], s.steps[i]) == (t.starts[i], t.stops[i], t.steps[i]) for i in others)
    return same and s.steps[axis] == t.steps[axis] == 1 and s.stops[axis] == t.starts[axis]


@rule(MOVEMENT, Pad)
def pad_simple(node: Node) -> Node | None:
    """pad by nothing -> x; pad of pad -> one; a negative pad -> slice"""
    (x, *rest) = node.inputs
    op = node.op
    assert isinstance(op, Pad), "listed under Pad"
    if rest:
        return None
    if not any(op.low) and not any(op.high):
        return x
    if any(v < 0 for v in (*op.low, *op.high)):
        if op.mode != "constant":
            return None
        starts = tuple(max(0, -v) for v in op.low)
        stops = tuple(d - max(0, -v) for d, v in zip(x.shape, op.high, strict=True))
        if any(a > b for a, b in zip(starts, stops, strict=True)):
            return None
        inner = Slice(starts, stops, (1,) * x.rank)(x, loc=node.loc)
        low, high = tuple(max(0, v) for v in op.low), tuple(max(0, v) for v in op.high)
        return replace(op, low=low, high=high)(inner, loc=node.loc)
    match x:
        case Node(op=Pad() as before, inputs=(source,)) if op.mode == before.mode == "constant" and op.value == before.value:
            low = tuple(a + b for a, b in zip(op.low, before.low, strict=True))
            high = tuple(a + b for a, b in zip(op.high, before.high, strict=True))
            return replace(op, low=low, high=high)(source, loc=node.loc)
    return None


@rule(MOVEMENT, Conv, MaxPool, AvgPool)
def pad_into_window(node: Node) -> Node | None:
    """conv (pad x) -> conv x with larger pads, where the pad is spatial and of what the operator takes for outside"""
    op = node.op
    assert isinstance(op, Conv | MaxPool | AvgPool), "listed under these"
    match node.inputs[0]:
        case Node(op=Pad(mode="constant") as pad, inputs=(x,)):
            pass
        case _:
            return None
    spatial = range(1, x.rank - 1) if op.channels_last else range(2, x.rank)
    if any(pad.low[i] or pad.high[i] for i in range(x.rank) if i not in spatial) or any(v < 0 for v in (*pad.low, *pad.high)):
        return None
    match op:
        case Conv():
            fits = pad.value == 0
        case MaxPool():
            fits = node.dtype.is_float and pad.value == -math.inf
        case _:  # a padded cell is counted: so it must be by the pool, and its own pads must count too
            fits = pad.value == 0 and not op.uncounted_high and (op.count_include_pad or not any((*op.pads_low, *op.pads_high)))
    if not fits:
        return None
    low = tuple(a + pad.low[i] for a, i in zip(op.pads_low, spatial, strict=True))
    high = tuple(a + pad.high[i] for a, i in zip(op.pads_high, spatial, strict=True))
    wider = replace(op, pads_low=low, pads_high=high)
    if isinstance(wider, AvgPool):
        wider = replace(wider, count_include_pad=True)
    return apply(wider, x, *node.inputs[1:], loc=node.loc)


@rule(MOVEMENT, MaxPool, AvgPool)
def pool_of_nothing(node: Node) -> Node | None:
    """a pool whose window is one cell -> x; a mean over the whole image -> reduce_mean"""
    op, (x,) = node.op, node.inputs
    assert isinstance(op, MaxPool | AvgPool), "listed under these"
    if any((*op.pads_low, *op.pads_high)):
        return None
    if all(k == 1 for k in op.kernel) and all(s == 1 for s in op.strides):
        return x
    spatial = tuple(range(1, x.rank - 1) if op.channels_last else range(2, x.rank))
    if all(d == 1 for d in op.dilations) and op.kernel == tuple(x.shape[i] for i in spatial) and all(node.shape[i] == 1 for i in spatial):
        return (ReduceMax if isinstance(op, MaxPool) else ReduceMean)(spatial, keepdims=True)(x, loc=node.loc)
    return None


@rule(MOVEMENT, Gather)
def gather_one(node: Node) -> Node | None:
    """gather of known neighbouring indices -> slice"""
    x, indices = node.inputs
    axis = node.op.axis % max(x.rank, 1)  # type: ignore[attr-defined]
    array = indices.array
    if array is None or array.size == 0 or array.size > 1 << 16 or x.array is not None:
        return None
    flat = np.where(array < 0, array + x.shape[axis], array).reshape(-1).astype(np.int64)
    first, size = int(flat[0]), flat.size
    if not 0 <= first <= x.shape[axis] - size or not np.array_equal(flat, np.arange(first, first + size)):
        return None
    starts = tuple(first if i == axis else 0 for i in range(x.rank))
    stops = tuple(first + size if i == axis else d for i, d in enumerate(x.shape))
    return Reshape(node.shape)(Slice(starts, stops, (1,) * x.rank)(x, loc=node.loc), loc=node.loc)


@rule(MOVEMENT, ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceProd)
def reduce_of_nothing(node: Node) -> Node | None:
    """a reduction over dimensions of 1 -> reshape; over some of them -> over the others"""
    (x,) = node.inputs
    op = node.op
    assert isinstance(op, Reduction), "listed under reductions"
    axes = op.over(x.rank)
    if x.type.dtype != node.type.dtype:
        return None
    if all(x.shape[a] == 1 for a in axes):
        return Reshape(node.shape)(x, loc=node.loc)
    if any(x.shape[a] == 1 for a in axes):
        inner = replace(op, axes=tuple(a for a in axes if x.shape[a] != 1), keepdims=True)(x, loc=node.loc)
        return Reshape(node.shape)(inner, loc=node.loc)
    return None


@rule(MOVEMENT, ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceProd)
def reduce_of_reduce(node: Node) -> Node | None:
    """reduce over b (reduce over a x) -> reduce over both"""
    (x,) = node.inputs
    op = node.op
    assert isinstance(op, Reduction), "listed under reductions"
    inner = x.op
    if type(inner) is not type(op) or not isinstance(inner, Reduction) or inner.result is not None:
        return None
    (source,) = x.inputs
    inner_axes = inner.over(source.rank)
    left = [i for i in range(source.rank) if inner.keepdims or i not in inner_axes]
    axes = {left[a] for a in op.over(x.rank)} | set(inner_axes)
    merged = replace(op, axes=tuple(sorted(axes)), keepdims=True)(source, loc=node.loc)
    return merged if merged.type == node.type else Reshape(node.shape)(merged, loc=node.loc)
