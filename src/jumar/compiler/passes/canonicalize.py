"""Algebra: one form for what can be written in several, and nothing for what does nothing.

In: any graph.  Out: the same function with fewer and simpler nodes.  One function is one rule; the tables at the bottom of each rule's
file list them by operator.  Rules about shapes and movement stand in `canonicalize_movement.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jumar.base import Array, DType, event, f32
from jumar.compiler.match import either, like, number, uniform, with_constant
from jumar.compiler.passes.canonicalize_movement import MOVEMENT
from jumar.compiler.passes.fold import fold_node
from jumar.compiler.rules import Alone, Table, apply_rules, rule, user_rule
from jumar.ir import Constant, Data, Graph, Node, apply, constant
from jumar.operators import (
    Add,
    Cast,
    Clip,
    Div,
    Elementwise,
    Identity,
    Maximum,
    Minimum,
    Mul,
    Neg,
    Not,
    Pow,
    Reciprocal,
    Relu,
    Rsqrt,
    Select,
    Sqrt,
    Square,
    StopGradient,
    Sub,
)

ALGEBRA: Table = {}


@dataclass(frozen=True)
class Canonicalize:
    """Applies all rules of algebra and movement until none applies."""

    name = "canonicalize"

    def __call__(self, graph: Graph) -> Graph:
        result, hits = apply_rules(graph, TABLE)
        if hits:
            event("canonicalize", **hits)
        return result


def kept(node: Node, value: Node) -> Node | None:
    """`value` in place of `node`, if it has its type (broadcasting may have given the node a larger one)."""
    return value if value.type == node.type else None


def folded(node: Node) -> Node:
    """The node, or its value if that is known and small."""
    return fold_node(node) or node


@rule(ALGEBRA, Elementwise)
def uniform_constant(node: Node) -> Node | None:
    """An operand that is one number all over becomes that number: x + [2, 2, 2] -> x + 2."""
    if len(node.inputs) < 2:
        return None
    for at, operand in enumerate(node.inputs):
        array = operand.array
        if array is None or array.ndim == 0 or array.size == 0:
            continue
        if array.reshape(-1)[0] != array.reshape(-1)[-1] or uniform(array) is None:
            continue
        scalar = apply(Constant(Data(array.reshape(-1)[0])), loc=operand.loc)
        new = apply(node.op, *(scalar if i == at else other for i, other in enumerate(node.inputs)), loc=node.loc)
        if new.type == node.type:
            return new
    return None


@rule(ALGEBRA, Identity, StopGradient)
def identity(node: Node) -> Node | None:
    """identity x -> x; stop_gradient x -> x, for gradients are made before"""
    return node.inputs[0]


@rule(ALGEBRA, Add)
def add_zero(node: Node) -> Node | None:
    """x + 0 -> x"""
    for x, c in either(node):
        if number(c) == 0:
            return kept(node, x)
    return None


@rule(ALGEBRA, Add)
def add_negative(node: Node) -> Node | None:
    """x + (-y) -> x - y"""
    for x, other in either(node):
        match other:
            case Node(op=Neg(), inputs=(y,)):
                return Sub()(x, y, loc=node.loc)
    return None


@rule(ALGEBRA, Sub)
def sub_constant(node: Node) -> Node | None:
    """x - c -> x + (-c); 0 - x -> -x"""
    x, y = node.inputs
    if y.array is not None and x.array is None and (node.dtype.is_float or node.dtype.kind == "i"):
        return Add()(x, folded(Neg()(y)), loc=node.loc)
    if number(x) == 0 and y.array is None and node.dtype.kind in "fi":
        return kept(node, Neg()(y, loc=node.loc))
    return None


@rule(ALGEBRA, Mul)
def mul_one(node: Node) -> Node | None:
    """x * 1 -> x; x * -1 -> -x"""
    for x, c in either(node):
        if number(c) == 1:
            return kept(node, x)
        if number(c) == -1 and x.array is None and node.dtype.kind in "fi":
            return kept(node, Neg()(x, loc=node.loc))
    return None


@rule(ALGEBRA, Div)
def div_one(node: Node) -> Node | None:
    """x / 1 -> x"""
    x, c = node.inputs
    return kept(node, x) if number(c) == 1 else None


@rule(ALGEBRA, Div)
def div_constant(node: Node) -> Node | None:
    """x / c -> x * (1/c) in f32, or where 1/c is exact; one number is divided, which costs nothing and is exact"""
    x, c = node.inputs
    if c.array is None or x.array is not None or not node.dtype.is_float or node.type.size == 1:
        return None
    with np.errstate(all="ignore"):
        inverse = (1.0 / c.array.astype(np.float64)).astype(c.array.dtype)
    if not np.isfinite(inverse.astype(np.float64)).all() or (np.abs(inverse.astype(np.float64)) < _tiny(node.dtype)).any():
        return None
    exact = bool((np.frexp(c.array.astype(np.float64))[0] == np.sign(c.array.astype(np.float64)) * 0.5).all())
    if node.dtype != f32 and not exact:
        return None
    return Mul()(x, constant(inverse, loc=c.loc), loc=node.loc)


def _tiny(dtype: DType) -> float:
    """Smallest normal number."""
    return {"f64": 2.3e-308, "f16": 6.2e-5}.get(dtype.name, 1.2e-38)


@rule(ALGEBRA, Div)
def div_reciprocal(node: Node) -> Node | None:
    """1 / sqrt x -> rsqrt x; 1 / x -> reciprocal x; a / sqrt x -> a * rsqrt x where x is smaller than a"""
    a, b = node.inputs
    if not node.dtype.is_float:
        return None
    if isinstance(b.op, Sqrt) and b.type.size * 8 <= a.type.size:
        return kept(node, Mul()(a, Rsqrt()(b.inputs[0], loc=b.loc), loc=node.loc))
    if number(a) != 1:
        return None
    if isinstance(b.op, Sqrt):
        return kept(node, Rsqrt()(b.inputs[0], loc=node.loc))
    return kept(node, Reciprocal()(b, loc=node.loc))


@rule(ALGEBRA, Reciprocal)
def reciprocal_sqrt(node: Node) -> Node | None:
    """reciprocal (sqrt x) -> rsqrt x; reciprocal (reciprocal x) -> x"""
    match node.inputs[0]:
        case Node(op=Sqrt(), inputs=(x,)):
            return Rsqrt()(x, loc=node.loc)
        case Node(op=Reciprocal(), inputs=(x,)):
            return x
    return None


@rule(ALGEBRA, Neg)
def neg_neg(node: Node) -> Node | None:
    """-(-x) -> x; -(x * c) -> x * -c; -(x - y) -> y - x"""
    match node.inputs[0]:
        case Node(op=Neg(), inputs=(x,)):
            return x
        case Node(op=Mul()) as product:
            for x, c in with_constant(product):
                return Mul()(x, folded(Neg()(c)), loc=node.loc)
        case Node(op=Sub(), inputs=(x, y)):
            return Sub()(y, x, loc=node.loc)
    return None


@user_rule(ALGEBRA, Add, Mul)
def merge_constants(node: Node, alone: Alone) -> Node | None:
    """(x * c) * d -> x * (c * d); (x + c) + d -> x + (c + d) where no digits are lost and x + c is not needed anyway"""
    op = type(node.op)
    for inner, d in with_constant(node):
        if not isinstance(inner.op, op) or not alone(inner):
            continue
        for x, c in with_constant(inner):
            if d.type.size > max(c.type.size, 1) and c.type.size > 1:
                continue
            assert c.array is not None and d.array is not None, "with_constant gives constants"
            if op is Add and node.dtype.is_float and not _same_sign(c.array, d.array):
                continue
            both = folded(op()(c, d))
            if both.array is None or not _sane(both.array):
                continue
            return kept(node, op()(x, both, loc=node.loc))
    return None


def _same_sign(a: Array, b: Array) -> bool:
    low = min(float(a.min(initial=0)), float(b.min(initial=0)))
    high = max(float(a.max(initial=0)), float(b.max(initial=0)))
    return low >= 0 or high <= 0


def _sane(array: Array) -> bool:
    """Merging must not overflow or underflow what two steps would not have."""
    if array.dtype.kind != "f":
        return True
    return bool(np.isfinite(array).all() and ((array == 0) | (np.abs(array) > np.finfo(array.dtype).tiny)).all())


@rule(ALGEBRA, Mul)
def mul_self(node: Node) -> Node | None:
    """x * x -> square x"""
    a, b = node.inputs
    return Square()(a, loc=node.loc) if a is b and node.dtype.is_float else None


@rule(ALGEBRA, Mul)
def mul_negatives(node: Node) -> Node | None:
    """(-x) * (-y) -> x * y; (-x) * c -> x * -c"""
    a, b = node.inputs
    if isinstance(a.op, Neg) and isinstance(b.op, Neg):
        return Mul()(a.inputs[0], b.inputs[0], loc=node.loc)
    for x, c in with_constant(node):
        if isinstance(x.op, Neg):
            return Mul()(x.inputs[0], folded(Neg()(c)), loc=node.loc)
    return None


@rule(ALGEBRA, Square)
def square_of(node: Node) -> Node | None:
    """square (-x) -> square x; square (sqrt x) stays (it is NaN for negative x)"""
    match node.inputs[0]:
        case Node(op=Neg(), inputs=(x,)):
            return Square()(x, loc=node.loc)
    return None


@rule(ALGEBRA, Pow)
def pow_constant(node: Node) -> Node | None:
    """x^2 -> square x; x^0.5 -> sqrt x; x^1 -> x; x^-1 -> reciprocal x; x^-0.5 -> rsqrt x; x^3 -> square x * x"""
    x, c = node.inputs
    power = number(c)
    if power is None or not node.dtype.is_float or x.type != node.type:
        return None
    match power:
        case 1.0:
            return x
        case 2.0:
            return Square()(x, loc=node.loc)
        case 3.0:
            return Mul()(Square()(x, loc=node.loc), x, loc=node.loc)
        case 0.5:
            return Sqrt()(x, loc=node.loc)
        case -0.5:
            return Rsqrt()(x, loc=node.loc)
        case -1.0:
            return Reciprocal()(x, loc=node.loc)
    return None


@rule(ALGEBRA, Cast)
def cast_chain(node: Node) -> Node | None:
    """cast to the own type -> x; cast (cast x) -> cast x where the first loses nothing"""
    (x,) = node.inputs
    if x.dtype == node.dtype:
        return x
    match x:
        case Node(op=Cast(), inputs=(inner,)) if lossless(inner.dtype, x.dtype):
            if inner.dtype == node.dtype:
                return inner
            return apply(node.op, inner, loc=node.loc)
    return None


def lossless(a: DType, b: DType) -> bool:
    """Whether every value of `a` is a value of `b`.

    >>> from jumar.base import f16, f32, i32, u8
    >>> lossless(f16, f32), lossless(i32, f32), lossless(u8, i32)
    (True, False, True)
    """
    mantissa = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
    if a.kind == "b":
        return b.kind in "fiu"
    if a.is_float and b.is_float:
        return a.bits < b.bits and a.name in mantissa and b.name in mantissa
    if a.is_integer and b.is_float:
        return a.bits - (a.kind == "i") <= mantissa.get(b.name, 0)
    if a.is_integer and b.is_integer:
        return (a.kind == b.kind and a.bits < b.bits) or (a.kind == "u" and b.kind == "i" and a.bits < b.bits)
    return False


@rule(ALGEBRA, Not)
def not_not(node: Node) -> Node | None:
    """not (not x) -> x"""
    match node.inputs[0]:
        case Node(op=Not(), inputs=(x,)):
            return x
    return None


@rule(ALGEBRA, Select)
def select_known(node: Node) -> Node | None:
    """select true a b -> a; select c a a -> a; select (not c) a b -> select c b a"""
    c, a, b = node.inputs
    if a is b:
        return kept(node, a)
    if c.array is not None and (known := uniform(c.array)) is not None:
        return kept(node, a if known else b)
    match c:
        case Node(op=Not(), inputs=(inner,)):
            return Select()(inner, b, a, loc=node.loc)
    return None


@rule(ALGEBRA, Maximum, Minimum)
def bound_to_clip(node: Node) -> Node | None:
    """max(x, c) -> clip; min(x, c) -> clip"""
    for x, c in with_constant(node):
        bound = number(c)
        if bound is None or math.isnan(bound) or x.type != node.type or not node.dtype.is_float:
            continue
        return Clip(bound, None)(x, loc=node.loc) if isinstance(node.op, Maximum) else Clip(None, bound)(x, loc=node.loc)
    return None


@rule(ALGEBRA, Clip)
def clip_simple(node: Node) -> Node | None:
    """clip without bounds -> x; clip from 0 -> relu; clip (clip x) and clip (relu x) -> clip x"""
    low, high = node.op.low, node.op.high  # type: ignore[attr-defined]
    (x,) = node.inputs
    if low is None and high is None:
        return x
    if low == 0 and high is None and node.dtype.is_float:
        return Relu()(x, loc=node.loc)
    match x:
        case Node(op=Relu(), inputs=(inner,)):
            inner_low, inner_high = 0.0, None
        case Node(op=Clip(low=inner_low, high=inner_high), inputs=(inner,)):
            pass
        case _:
            return None
    # clip(a, b) then clip(c, d) is one clip only if the intervals meet
    lows = [b for b in (low, inner_low) if b is not None]
    highs = [b for b in (high, inner_high) if b is not None]
    if lows and highs and max(lows) > min(highs):
        return None
    return Clip(max(lows) if lows else None, min(highs) if highs else None)(inner, loc=node.loc)


@rule(ALGEBRA, Relu)
def relu_of(node: Node) -> Node | None:
    """relu (relu x) -> relu x; relu (clip from >= 0) -> the clip; relu (clip to b) -> clip from 0 to b"""
    (x,) = node.inputs
    match x:
        case Node(op=Relu()):
            return x
        case Node(op=Clip(low=low)) if low is not None and low >= 0:
            return x
        case Node(op=Clip(low=None, high=high), inputs=(inner,)) if high is not None and high >= 0:
            return Clip(0.0, high)(inner, loc=node.loc)
    return None


def negative_one(node: Node) -> Node:
    """-1 as a constant of the node's type."""
    return like(-1.0, node)


TABLE: Table = {op: [*ALGEBRA.get(op, []), *MOVEMENT.get(op, [])] for op in [*ALGEBRA, *MOVEMENT]}
