"""What rules ask of a node: the number it holds, the constant among its operands, the factors of a product.

In: nodes, in the rules of compiler/passes.  Out: small answers, None where the question does not apply.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jumar.base import Array
from jumar.ir import Node, constant
from jumar.operators import Broadcast, Cast, Mul, Pow, Reshape, Square, Transpose


def number(node: Node) -> float | None:
    """The number of a constant with one element (or a broadcast of one)."""
    while isinstance(node.op, Broadcast):
        node = node.inputs[0]
    array = node.array
    if array is None or array.size != 1 or array.dtype.kind not in "fiubV" or array.dtype == object:
        return None
    return float(array.reshape(-1)[0])


def is_number(node: Node, value: float, rtol: float = 1e-3) -> bool:
    """Whether the node is a constant of about that number (exporters write 0.7978846 in many roundings)."""
    found = number(node)
    return found is not None and abs(found - value) <= rtol * abs(value)


def uniform(array: Array) -> float | None:
    """The number that all elements of a small constant are."""
    if array.size == 0 or array.size > 1 << 16 or array.dtype.kind not in "fiub":
        return None
    first = array.reshape(-1)[0]
    return float(first) if array.size == 1 or bool((array == first).all()) else None


def with_constant(node: Node) -> Iterator[tuple[Node, Node]]:
    """(value, constant) of a commutative binary operator, if exactly one operand is a constant."""
    a, b = node.inputs
    if b.array is not None and a.array is None:
        yield a, b
    elif a.array is not None and b.array is None:
        yield b, a


def either(node: Node) -> Iterator[tuple[Node, Node]]:
    """The operands of a commutative binary operator, in both orders."""
    a, b = node.inputs
    yield a, b
    yield b, a


def like(value: float, node: Node) -> Node:
    """A number as a constant of the node's element type."""
    return constant(np.asarray(value), node.dtype, loc=node.loc)


def factors(node: Node, depth: int = 4) -> tuple[list[Node], float]:
    """The factors of a product that are not constant numbers, and the product of those that are."""
    found = number(node)
    if found is not None:
        return [], found
    match node:
        case Node(op=Mul(), inputs=(a, b)) if depth:
            left, c = factors(a, depth - 1)
            right, d = factors(b, depth - 1)
            return left + right, c * d
        case Node(op=Square(), inputs=(a,)) if depth:
            inner, c = factors(a, depth - 1)
            return inner * 2, c * c
        case Node(op=Pow(), inputs=(a, b)) if depth and (power := number(b)) in (2.0, 3.0):
            inner, c = factors(a, depth - 1)
            assert power is not None, "2 or 3"
            return inner * int(power), c**power
    return [node], 1.0


def through(node: Node, *ops: type) -> Node:
    """The node below operators that do not change values: casts, reshapes and so on, as listed."""
    while isinstance(node.op, ops):
        node = node.inputs[0]
    return node


MOVES = (Reshape, Transpose)
CASTS = (Cast,)
