"""Whole attention blocks: matmul, scale, mask, softmax, matmul become one `attention`.

In: a graph in which softmax has its name.  Out: the same with attention.  Exporters scale the scores, or q, or both q and k by a root;
they transpose k on its own or fold that into the transpose that splits the heads.  All of these are one function.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jumar.base import Array
from jumar.compiler.match import either, number, with_constant
from jumar.compiler.passes.fold import fold_node
from jumar.compiler.rules import Alone, Table, user_rule
from jumar.ir import Node, apply
from jumar.operators import Add, Attention, Identity, MatMul, Mul, Not, Reshape, Select, Softmax, Transpose

ATTENTION: Table = {}


@dataclass(frozen=True)
class _Scores:
    """softmax's input, taken apart: product of q and k^T, times scale, plus mask.   keys: k^T, [..., d, n]"""

    q: Node
    keys: Node
    scale: float
    mask: Node | None


@user_rule(ATTENTION, MatMul)
def attention(node: Node, alone: Alone) -> Node | None:
    """softmax(q k^T * scale + mask) v -> attention"""
    weights, v = node.inputs
    while isinstance(weights.op, Identity):
        (weights,) = weights.inputs
    # weights that others read too (a backward pass) are in memory anyway: with attention scores would be computed twice
    if (
        not isinstance(weights.op, Softmax)
        or not alone(weights)
        or weights.op.axis % weights.rank != weights.rank - 1
        or not node.dtype.is_float
    ):
        return None
    found = _scores(weights.inputs[0])
    if found is None:
        return None
    q, scale = _peel(found.q)
    keys, more = _peel(found.keys)
    k = _swapped(keys)
    if not (q.rank == k.rank == v.rank == node.rank) or q.rank < 3 or q.shape[:-2] != k.shape[:-2] or k.shape[:-2] != v.shape[:-2]:
        return None
    total = found.scale * scale * more
    mask, causal = _causal(found.mask, q.shape[-2], k.shape[-2])
    if mask is not None and not _broadcasts(mask.shape, (*q.shape[:-1], k.shape[-2])):
        return None
    made = Attention(scale=float(np.float32(total)), causal=causal, offset=k.shape[-2] - q.shape[-2] if causal else 0)(
        q, k, v, *([mask] if mask is not None else []), loc=node.loc
    )
    return made if made.type == node.type else None


def _scores(node: Node) -> _Scores | None:
    mask: Node | None = None
    scale = 1.0
    match node:
        case Node(op=Add()):
            for product, other in either(node):
                if product.type == node.type and (inner := _product(product)):
                    return replace(inner, mask=other)
            return None
        case Node(op=Select(), inputs=(condition, a, b)):
            # where(mask, scores, low), or the other way round; a query that may see nothing must not exist, or get NaN anyway
            for scores, other, seen in ((a, b, condition), (b, a, Not()(condition, loc=node.loc))):
                low = number(other)
                if low is not None and scores.type == node.type and (low == -np.inf or (low <= -1e4 and _each_sees(seen))):
                    inner = _product(scores)
                    return replace(inner, mask=fold_node(seen) or seen) if inner else None
            return None
    found = _product(node)
    return replace(found, mask=mask, scale=found.scale * scale) if found else None


def _each_sees(mask: Node) -> bool:
    """Whether a constant mask lets each query see something."""
    known = fold_node(mask) or mask
    return known.array is not None and bool(known.array.any(axis=-1).all())


def _product(node: Node) -> _Scores | None:
    """(q, k^T, scale) of  q k^T * scale."""
    scale = 1.0
    while isinstance(node.op, Mul):
        step = next(((x, number(c)) for x, c in with_constant(node) if number(c) is not None), None)
        if step is None or step[1] is None:
            return None
        node, scale = step[0], scale * step[1]
    match node:
        case Node(op=MatMul(), inputs=(q, keys)):
            return _Scores(q, keys, scale, None)
    return None


def _peel(node: Node) -> tuple[Node, float]:
    """(x, c) of  x * c, also where the product stands below transposes and reshapes."""
    match node:
        case Node(op=Mul()):
            for x, c in with_constant(node):
                if (value := number(c)) is not None and x.type == node.type:
                    inner, more = _peel(x)
                    return inner, value * more
        case Node(op=Transpose() | Reshape(), inputs=(x,)):
            inner, value = _peel(x)
            if value != 1.0:
                return apply(node.op, inner, loc=node.loc), value
    return node, 1.0


def _swapped(keys: Node) -> Node:
    """k of k^T: one transpose less where there is one, one more where there is none."""
    swap = (*range(keys.rank - 2), keys.rank - 1, keys.rank - 2)
    match keys:
        case Node(op=Transpose(perm=perm), inputs=(x,)):
            both = tuple(perm[p] for p in swap)
            return x if both == tuple(range(keys.rank)) else Transpose(both)(x, loc=keys.loc)
    return Transpose(swap)(keys, loc=keys.loc)


def _causal(mask: Node | None, m: int, n: int) -> tuple[Node | None, bool]:
    """Whether a constant mask is the causal one, which then need not be read; the last query sees every key."""
    array = None if mask is None else mask.array
    if array is None or array.shape[-2:] != (m, n) or array.size != m * n or m < 2:
        return mask, False
    seen = np.tri(m, n, n - m, dtype=np.bool_)
    table: Array = array.reshape(m, n)
    if table.dtype == np.bool_:
        causal = bool((table == seen).all())
    else:
        causal = bool((table[seen] == 0).all() and (table[~seen].astype(np.float64) <= -1e4).all())
    return (None, True) if causal else (mask, False)


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    return len(shape) <= len(to) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(to), strict=False))
