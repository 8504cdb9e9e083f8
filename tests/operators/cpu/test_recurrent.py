"""Recurrent layers: every cell, activation and option, over shapes that fill no vector; weights that are constant and that are not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.operators.cpu.run import TOLERANCE, check, lower, run_task

from jumar.base import Array, type_of
from jumar.device import host
from jumar.ir import Node, apply, constant, param
from jumar.operators import Gru, Lstm, Rnn
from jumar.operators.cpu import recurrent
from jumar.operators.recurrent import ACTIVATIONS, Recurrent

RNG = np.random.default_rng(7)
SHAPES = [(1, 1, 1, 1), (4, 2, 3, 5), (3, 5, 7, 16), (5, 7, 4, 33), (2, 4, 9, 40)]  # seq, batch, input, hidden
DEFAULT: dict[type[Recurrent], tuple[str, ...]] = {Lstm: ("Sigmoid", "Tanh", "Tanh"), Gru: ("Sigmoid", "Tanh"), Rnn: ("Tanh",)}


def inputs(op: type[Recurrent], dirs: int, shape: tuple[int, int, int, int], lengths: Array | None, dtype: Any, holes: bool) -> list[Array]:
    """Arrays of a layer, in the order of its inputs."""
    seq, batch, depth, hidden = shape
    each = op.gates * hidden

    def draw(*dims: int) -> Array:
        return (RNG.standard_normal(dims) * 0.4).astype(dtype)

    steps = np.full(batch, seq, np.int32) if lengths is None else lengths
    arrays = [draw(seq, batch, depth), draw(dirs, each, depth), draw(dirs, each, hidden), draw(dirs, 2 * each), steps]
    arrays += [draw(dirs, batch, hidden) for _ in range(op.states)]
    return [*arrays, draw(dirs, 3 * hidden)] if holes else arrays


def lists(op: type[Recurrent], dirs: int) -> tuple[tuple[str, float, float], ...]:
    return tuple((name, 0.0, 0.0) for name in DEFAULT[op]) * dirs


def check_constant(op: Recurrent, arrays: list[Array]) -> None:
    """With weights, bias and lengths known at compile time, as models have them."""
    nodes = [constant(a) if i in (1, 2, 3, 4, 7) else param(f"p{i}", type_of(a)) for i, a in enumerate(arrays)]
    results = run_layer(apply(op, *nodes), arrays)
    for expected, actual in zip(op.reference(*arrays), results, strict=True):
        limit = 4 * TOLERANCE[str(actual.dtype)]
        np.testing.assert_allclose(actual.astype(np.float64), expected.astype(np.float64), rtol=limit, atol=limit)


def run_layer(node: Node, arrays: list[Array]) -> list[Array]:
    lowered = lower(node)
    assert lowered is not None, "a layer has a schedule"
    memory: dict[Any, Array] = {(n, 0): np.ascontiguousarray(a) for n, a in zip(node.inputs, arrays, strict=True)}
    assert isinstance(node.type, tuple), "a layer has several results"
    for r, t in enumerate(node.type):
        memory[node, r] = np.full(t.nbytes, 0xAB, np.uint8)
    scratch = np.zeros(max(t.scratch_nbytes for t in lowered.tasks) + 64, np.uint8)
    for task in lowered.tasks:
        run_task(task, memory, scratch)
    return [memory[node, r].view(t.dtype.numpy).reshape(t.dims) for r, t in enumerate(node.type)]


@pytest.mark.parametrize("op", [Lstm, Gru, Rnn])
@pytest.mark.parametrize("backward", [(False,), (True,), (False, True)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_layers(op: type[Recurrent], backward: tuple[bool, ...], dtype: str) -> None:
    for shape in SHAPES:
        seq, batch = shape[:2]
        for lengths in (None, RNG.integers(0, seq + 1, batch).astype(np.int32)):
            layer = op(lists(op, len(backward)), backward)
            arrays = inputs(op, len(backward), shape, lengths, dtype, False)
            check(layer, *arrays, scale=4)
            check_constant(layer, arrays)


@pytest.mark.parametrize("backward", [(False,), (False, True)])
def test_options(backward: tuple[bool, ...]) -> None:
    dirs = len(backward)
    for shape in SHAPES:
        lengths = RNG.integers(1, shape[0] + 1, shape[1]).astype(np.int32)
        for layer, holes in (
            (Gru(lists(Gru, dirs), backward, linear_before_reset=True), False),
            (Gru(lists(Gru, dirs), backward, clip=0.3), False),
            (Lstm(lists(Lstm, dirs), backward, input_forget=True), True),
            (Lstm(lists(Lstm, dirs), backward, clip=0.2), True),
        ):
            for steps in (None, lengths):
                arrays = inputs(type(layer), dirs, shape, steps, "float32", holes)
                check(layer, *arrays, scale=4)
                check_constant(layer, arrays)


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_activations(name: str) -> None:
    other = (("Tanh", 0.0, 0.0), (name, 0.3, 0.2))
    check(Rnn(other, (False, True)), *inputs(Rnn, 2, (3, 2, 4, 9), None, "float32", False), scale=4)
    check(Gru((*other, *other[::-1]), (False, True)), *inputs(Gru, 2, (3, 2, 4, 9), None, "float32", False), scale=4)
    three = (*other, ("Relu", 0.0, 0.0))
    check(Lstm(three, (True,)), *inputs(Lstm, 1, (3, 2, 4, 9), None, "float32", False), scale=4)


@pytest.mark.parametrize("op", [Lstm, Gru, Rnn])
def test_steps_cut_by_hidden_units(op: type[Recurrent], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrent, "unit_parts", lambda layer, walks, target: 3)
    for shape in SHAPES:
        for backward in ((True,), (False, True)):
            layer = op(lists(op, len(backward)), backward)
            lengths = RNG.integers(0, shape[0] + 1, shape[1]).astype(np.int32)
            check(layer, *inputs(op, len(backward), shape, lengths, "float32", False), scale=4)


def test_directions_and_examples_walk_on_their_own_where_they_are_enough_for_the_threads() -> None:
    """A barrier at each step costs a time slice where the machine is busy, so it must be worth it: one direction, and r too large for one core."""

    def walks(hidden: int, dirs: int, batch: int) -> int:
        arrays = inputs(Lstm, dirs, (64, batch, 8, hidden), None, "float32", False)
        node = apply(
            Lstm(lists(Lstm, dirs), (False, True)[:dirs]), *(constant(a) if i else param("x", type_of(a)) for i, a in enumerate(arrays))
        )
        lowered = recurrent.lower_recurrent(node, replace(host(), cores=2))
        assert lowered is not None
        return sum(t.label == "lstm" for t in lowered.tasks)

    assert [walks(64, 2, 8), walks(256, 2, 8), walks(64, 1, 8), walks(16, 1, 1)] == [1, 1, 1, 1]
    assert [walks(256, 1, 8), walks(256, 1, 1)] == [64, 64]


def test_clip_bounds_the_input_of_every_activation_the_last_one_too() -> None:
    """As the standard says: where the cell state grows past the bound, what goes into the last tanh does not."""
    hidden, bound = 3, 0.5
    x, w = np.ones((20, 1, 2), np.float32), np.full((1, 4 * hidden, 2), 3, np.float32)
    r, bias = np.zeros((1, 4 * hidden, hidden), np.float32), np.zeros((1, 8 * hidden), np.float32)
    zeros = np.zeros((1, 1, hidden), np.float32)
    op = Lstm(lists(Lstm, 1), clip=bound)
    arrays = [x, w, r, bias, np.full(1, 20, np.int32), zeros, zeros]
    gate, c = 1 / (1 + np.exp(-bound)), 0.0
    for _ in range(20):
        c = gate * c + gate * np.tanh(bound)
    assert c > bound
    for y, h, cell in (op.reference(*arrays), run_layer(apply(op, *(param(f"p{i}", type_of(a)) for i, a in enumerate(arrays))), arrays)):
        np.testing.assert_allclose(cell, c, rtol=1e-5)
        np.testing.assert_allclose(h, gate * np.tanh(bound), rtol=1e-5)
        np.testing.assert_allclose(y[-1], h, rtol=1e-6)
