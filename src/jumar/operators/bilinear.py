"""Reading between the cells of an image, as formulas of nodes: where the four neighbours of a place stand, and what each weighs.

In: places, as nodes of any shape.  Out: pairs of (flat cell, weight), for gathering forward and scattering backward.
"""

from __future__ import annotations

import itertools

from jumar.base import i64
from jumar.ir import Node
from jumar.operators.activation import Clip
from jumar.operators.elementwise import And, Floor, add, cast, greater_equal, less_equal, mul, select, sub


def corners(height: int, width: int, y: Node, x: Node) -> list[tuple[Node, Node]]:
    """The cells around (y, x), row by row counted, and their weights; a cell outside of the image weighs nothing.   -> i64 and float, of y's shape"""
    found = []
    rows, columns = _neighbours(y, height), _neighbours(x, width)
    for (i, across), (j, along) in itertools.product(rows, columns):
        found.append((add(mul(i, width), j), mul(across, along)))
    return found


def _neighbours(at: Node, size: int) -> list[tuple[Node, Node]]:
    """The cells before and after a place along one dimension."""
    first = Floor()(at)
    after = sub(at, first)
    pairs = []
    for cell, weight in ((first, sub(1, after)), (add(first, 1), after)):
        inside = And()(greater_equal(cell, 0), less_equal(cell, size - 1))
        pairs.append((cast(Clip(0.0, float(size - 1))(cell), i64), select(inside, weight, 0)))
    return pairs
