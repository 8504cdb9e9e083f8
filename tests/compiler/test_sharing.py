"""Values that are read twice at each of many levels: 2 ** 22 ways lead through them, and no part of the compiler may walk them all."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from jumar.base import CompileError, TensorType, f32
from jumar.compiler import lower, optimize
from jumar.compiler.rules import Table, apply_rules, rule
from jumar.device import host
from jumar.ir import Graph, Node, constant, param
from jumar.operators import Add, Mul, Pow, ReduceMean, Relu, Slice, Softmax, Tanh
from jumar.operators.cpu.axes import axes_of

SECONDS = 120  # the walks below take less than one, or years


@pytest.fixture(autouse=True)
def _limit() -> Iterator[None]:
    def over(*_: object) -> None:
        raise TimeoutError("a walk does not remember where it was")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def _powers(x: Node) -> Node:
    for _ in range(22):
        x = Pow()(x, x)
    return x


def _gate(x: Node) -> Node:
    """What begins like gelu, above a sum of sums that share their terms."""
    a, b = x, Relu()(x)
    for _ in range(60):
        a, b = b, Add()(a, b)
    return Mul()(Mul()(x, constant(np.float32(0.5))), Add()(Tanh()(b), constant(np.float32(1))))


@pytest.mark.parametrize(
    "build",
    [lambda x: _powers(ReduceMean((1,), True)(x)), lambda x: _powers(Softmax(-1)(x)), _gate],
    ids=["after a reduction", "between passes", "sums"],
)
def test_each_node_is_met_once(build: Callable[[Node], Node]) -> None:
    x = param("x", TensorType((8, 32), f32))
    graph, _ = optimize(Graph("shared", (x,), (build(x),)), host())
    assert lower(graph, host()).works


def test_slices_of_slices_are_walked_once() -> None:
    x = param("x", TensorType((8, 128), f32))
    y = x
    for _ in range(40):
        n = y.shape[1]
        y = Pow()(Slice((0, 0), (8, n - 1), (1, 1))(y), Slice((0, 1), (8, n), (1, 1))(y))
    assert axes_of(y.type.size, [y], {x}) == (8, 88)


def test_rules_that_undo_each_other_are_our_bug() -> None:
    table: Table = {}
    swap = rule(table, Add)
    swap(lambda node: Add()(*node.inputs[::-1]))
    x, y = (param(name, TensorType((2,), f32)) for name in "xy")
    with pytest.raises(CompileError, match=r"rules: add must come to an end, and goes on .*: this is our bug"):
        apply_rules(Graph("swap", (x, y), (Add()(x, y),)), table)
