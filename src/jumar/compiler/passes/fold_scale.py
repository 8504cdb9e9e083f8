"""Scales and shifts by constants disappear into the weights of the contraction before or after them.

In: a canonical graph.  Out: the same function with batch norms, and products and sums by one number for each channel, folded into the
weights and bias of Conv, ConvTranspose and MatMul.  A contraction that something else reads too keeps its weights.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jumar.base import Array, event
from jumar.compiler.match import with_constant
from jumar.compiler.rules import repeat
from jumar.ir import Graph, Node, apply, constant, rebuild, same_node
from jumar.operators import Add, BatchNorm, Conv, ConvTranspose, MatMul, Mul, Reshape

Weighted = Conv | ConvTranspose
OnlyUser = Callable[[Node], bool]


@dataclass(frozen=True)
class FoldScale:
    """max_rounds: how long a chain of scales and shifts may be."""

    max_rounds: int = 8
    name = "fold_scale"

    def __call__(self, graph: Graph) -> Graph:
        graph, hits, _ = repeat(graph, self._round, self.max_rounds)
        if hits:
            event("fold_scale", **hits)
        return graph

    def _round(self, graph: Graph, hits: Counter[str]) -> Graph:
        single = {n for n, users in graph.users.items() if len(users) == 1} - set(graph.outputs)
        alone = set(single)  # nodes of the new graph that have one user

        def visit(node: Node, inputs: tuple[Node, ...]) -> Node:
            found = same_node(node, inputs)
            for function in RULES.get(type(node.op), ()):
                new = function(found, alone.__contains__)
                if new is not None:
                    assert new.type == found.type, f"{function.__name__} keeps the type: this is our bug"
                    hits[function.__name__] += 1
                    found = new
                    break
            if node in single:
                alone.add(found)
            return found

        return rebuild(graph, visit)


def per_channel(value: Node, like: Node, axis: int) -> Array | None:
    """[c] or [] of a constant that has one number for each channel of `like`."""
    array = value.array
    if array is None or array.dtype.kind not in "fV":
        return None
    if array.size == 1:
        return array.reshape(())
    shape = (1,) * (like.rank - array.ndim) + array.shape
    channels = like.shape[axis]
    return array.reshape(-1) if shape == tuple(channels if i == axis else 1 for i in range(like.rank)) else None


def batch_norm(node: Node, _: OnlyUser) -> Node | None:
    """batch_norm x -> x * a + b"""
    x, *rest = node.inputs
    arrays = [r.array for r in rest]
    if any(a is None for a in arrays):
        return None
    scale, bias, mean, var = (_wide(a) for a in arrays if a is not None)
    a = scale / np.sqrt(var + node.op.epsilon)  # type: ignore[attr-defined]
    b = bias - mean * a
    shape = (x.shape[1], *[1] * (x.rank - 2))
    y = Mul()(x, constant(a.reshape(shape), x.dtype), loc=node.loc)
    return Add()(y, constant(b.reshape(shape), x.dtype), loc=node.loc)


def scale_after(node: Node, alone: OnlyUser) -> Node | None:
    """(conv x w b) * s -> conv x (w * s) (b * s)"""
    for y, s in with_constant(node):
        op = y.op
        if not isinstance(op, Weighted) or not alone(y):
            continue
        x, w, *bias = y.inputs
        scale = per_channel(s, y, _channel_axis(op, y))
        if scale is None or w.array is None or any(b.array is None for b in bias):
            continue
        new_w = _of(w, _scaled_outputs(op, _wide(w.array), _wide(scale)))
        new_bias = [_of(b, _wide(b.array) * _wide(scale)) for b in bias if b.array is not None]
        return apply(op, x, new_w, *new_bias, loc=y.loc)
    return None


def shift_after(node: Node, alone: OnlyUser) -> Node | None:
    """(conv x w b) + t -> conv x w (b + t)"""
    for y, t in with_constant(node):
        op = y.op
        if not isinstance(op, Weighted) or not alone(y):
            continue
        x, w, *bias = y.inputs
        shift = per_channel(t, y, _channel_axis(op, y))
        if shift is None or any(b.array is None for b in bias):
            continue
        before = _wide(bias[0].array) if bias and bias[0].array is not None else 0.0
        total = np.broadcast_to(before + _wide(shift), (y.shape[_channel_axis(op, y)],))
        return apply(op, x, w, constant(total, y.dtype), loc=y.loc)
    return None


def scale_before(node: Node, alone: OnlyUser) -> Node | None:
    """conv (x * s) w -> conv x (w * s); conv (x + t) w b -> conv x w (b + w t), where no padding sees t"""
    op = node.op
    assert isinstance(op, Conv), "listed under Conv"
    y, w, *bias = node.inputs
    if w.array is None or not isinstance(y.op, Mul | Add) or not alone(y) or any(b.array is None for b in bias):
        return None
    for x, c in with_constant(y):
        values = per_channel(c, y, _channel_axis(op, y))
        if values is None or x.type != y.type:
            continue
        channels = y.shape[_channel_axis(op, y)]
        by_channel = np.broadcast_to(_wide(values), (channels,)).reshape(op.groups, channels // op.groups)
        filters = _wide(w.array).reshape(op.groups, -1, *w.shape[1:])  # [g, k/g, c/g, ...]
        spread = by_channel.reshape(op.groups, 1, -1, *[1] * (w.rank - 2))
        if isinstance(y.op, Mul):
            return apply(op, x, _of(w, (filters * spread).reshape(w.shape)), *bias, loc=node.loc)
        if any((*op.pads_low, *op.pads_high)):
            return None
        shift = (filters * spread).reshape(w.shape[0], -1).sum(axis=1)
        before = _wide(bias[0].array) if bias and bias[0].array is not None else 0.0
        return apply(op, x, w, constant(before + shift, node.dtype), loc=node.loc)
    return None


def scale_after_matmul(node: Node, alone: OnlyUser) -> Node | None:
    """(x w) * s -> x (w * s), where s is one number, or one for each column"""
    for y, s in with_constant(node):
        if not isinstance(y.op, MatMul) or not alone(y) or y.type != node.type:
            continue
        x, w = y.inputs
        scale = per_channel(s, y, y.rank - 1) if y.rank else None
        if scale is None or w.array is None or w.rank < 2:
            continue
        return MatMul()(x, _of(w, _wide(w.array) * _wide(scale)), loc=y.loc)
    return None


def scale_after_bias(node: Node, alone: OnlyUser) -> Node | None:
    """(x w + b) * s -> x (w * s) + b * s"""
    for total, s in with_constant(node):
        if not isinstance(total.op, Add) or not alone(total) or total.type != node.type:
            continue
        for y, b in with_constant(total):
            if not isinstance(y.op, MatMul) or not alone(y) or y.inputs[1].array is None or y.type != node.type:
                continue
            if y.inputs[1].rank < 2 or per_channel(s, y, y.rank - 1) is None or per_channel(b, y, y.rank - 1) is None:
                continue
            assert b.array is not None and s.array is not None, "per_channel says so"
            scaled = scale_after_matmul(Mul()(y, s, loc=y.loc), alone)
            return None if scaled is None else Add()(scaled, _of(b, _wide(b.array) * _wide(s.array)), loc=node.loc)
    return None


def scale_before_matmul(node: Node, alone: OnlyUser) -> Node | None:
    """(x * s) w -> x (s * w), where s is one number, or one for each row of w"""
    y, w = node.inputs
    if w.array is None or w.rank < 2 or not isinstance(y.op, Mul) or not alone(y):
        return None
    for x, s in with_constant(y):
        scale = per_channel(s, y, y.rank - 1)
        if scale is None or x.type != y.type:
            continue
        rows = _wide(scale) if scale.ndim == 0 else _wide(scale)[:, None]
        return MatMul()(x, _of(w, _wide(w.array) * rows), loc=node.loc)
    return None


def scale_after_reshape(node: Node, alone: OnlyUser) -> Node | None:
    """(reshape y) * c -> reshape (y * c) for one number c: a step towards the contraction below"""
    for y, c in with_constant(node):
        if isinstance(y.op, Reshape) and c.type.size == 1 and c.rank == 0 and alone(y) and isinstance(y.inputs[0].op, MatMul | Conv):
            return Reshape(node.shape)(apply(node.op, y.inputs[0], c, loc=node.loc), loc=node.loc)
    return None


def _channel_axis(op: Weighted, node: Node) -> int:
    return node.rank - 1 if isinstance(op, Conv) and op.channels_last else 1


def _scaled_outputs(op: Weighted, w: Array, scale: Array) -> Array:
    if scale.ndim == 0:
        return np.asarray(w * scale)
    if isinstance(op, Conv):  # [k, c/g, ...]
        return np.asarray(w * scale.reshape(-1, *[1] * (w.ndim - 1)))
    c, kg, *kernel = w.shape  # [c, k/g, ...]: group i of c makes group i of k
    by_group = scale.reshape(op.groups, 1, kg, *[1] * len(kernel))
    return np.asarray((w.reshape(op.groups, c // op.groups, kg, *kernel) * by_group).reshape(w.shape))


def _wide(array: Array) -> Array:
    """Half precision is folded in f32 and rounded once."""
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float32)


def _of(old: Node, array: Array) -> Node:
    """The new value of a constant, in its type."""
    return constant(array, old.dtype, loc=old.loc)


RULES: dict[type, tuple[Callable[[Node, OnlyUser], Node | None], ...]] = {
    BatchNorm: (batch_norm,),
    Mul: (scale_after, scale_after_matmul, scale_after_bias, scale_after_reshape),
    Add: (shift_after,),
    Conv: (scale_before,),
    MatMul: (scale_before_matmul,),
}
