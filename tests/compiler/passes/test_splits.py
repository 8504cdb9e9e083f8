"""Slices as one split."""

from __future__ import annotations

import pytest
from tests.compiler.npu import image

from jumar.compiler.passes.splits import shared_out
from jumar.ir import Graph
from jumar.operators import Relu, Slice


def cut(x, *ranges: tuple[int, int], step: int = 1):
    """Slices of channels."""
    n, _, h, w = x.shape
    return [Slice((0, a, 0, 0), (n, b, h, w), (1, step, 1, 1))(x) for a, b in ranges]


@pytest.mark.parametrize(
    ("ranges", "axis"),
    [
        (((0, 16), (16, 48)), 1),
        (((16, 48), (0, 16)), 1),
        (((0, 16), (32, 48)), None),
        (((0, 16), (16, 32)), None),
        (((0, 32), (16, 48)), None),
        (((0, 48),), None),
    ],
)
def test_parts_must_cover_the_value_once(ranges, axis) -> None:
    x = Relu()(image(48))
    parts = cut(x, *ranges)
    graph = Graph("net", (x.inputs[0],), tuple(Relu()(p) for p in parts))
    found, along = shared_out(graph, x)
    assert along == axis
    assert [p.op.starts[1] for p in found] == sorted(a for a, _ in ranges) * (axis is not None)


def test_parts_with_steps_are_no_split() -> None:
    x = Relu()(image(48))
    even, odd = (Slice((0, i, 0, 0), (1, 48, 16, 16), (1, 2, 1, 1))(x) for i in range(2))
    assert shared_out(Graph("net", (x.inputs[0],), (Relu()(even), Relu()(odd))), x) == ([], None)
