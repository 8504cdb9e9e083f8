"""Gradients of recurrent layers: what the forward walk keeps and the walk back, every cell and option, over shapes that fill no vector."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from tests.operators.cpu.run import check, lower
from tests.operators.cpu.test_recurrent import DEFAULT, RNG, SHAPES, inputs, lists

from jumar.base import Array, f32, type_of
from jumar.compiler import compile
from jumar.compiler.autodiff import gradients
from jumar.ir import Graph, apply, constant, param
from jumar.operators import Gru, GruGrad, Lstm, LstmGrad, Rnn, RnnGrad
from jumar.operators.cpu import recurrent, recurrent_grad
from jumar.operators.recurrent import ACTIVATIONS, Recurrent

BACK: dict[type[Recurrent], type[Any]] = {Lstm: LstmGrad, Gru: GruGrad, Rnn: RnnGrad}


def walk_inputs(layer: Recurrent, shape: tuple[int, int, int, int], lengths: Array | None, dtype: Any, holes: bool) -> list[Array]:
    """Arrays of a walk back, in the order of its inputs."""
    seq, batch, _, hidden = shape
    dirs, wide = len(layer.backward), np.float64 if dtype == "float64" else np.float32

    def draw(kind: Any, *dims: int) -> Array:
        return (RNG.standard_normal(dims) * 0.4).astype(kind)

    arrays = [draw(dtype, seq, dirs, batch, hidden), *(draw(dtype, dirs, batch, hidden) for _ in range(layer.states))]
    arrays.append(draw(wide, dirs, seq, batch, layer.gates * hidden))
    arrays += [draw(wide, dirs, seq, batch, hidden) for _ in range(len(BACK[type(layer)].reads) - 1)]
    arrays += [draw(dtype, dirs, layer.gates * hidden, hidden), np.full(batch, seq, np.int32) if lengths is None else lengths]
    if layer.inner:
        arrays.append(draw(wide, dirs, seq, batch, hidden))
    return [*arrays, draw(dtype, dirs, 3 * hidden)] if holes else arrays


def back_of(layer: Recurrent) -> Any:
    """The operator that walks back over a layer."""
    made = {f.name: getattr(layer, f.name) for f in fields(layer) if f.name != "kept"}
    return BACK[type(layer)](**made)


def drawn_lengths(shape: tuple[int, int, int, int]) -> list[Array | None]:
    return [None, RNG.integers(0, shape[0] + 1, shape[1]).astype(np.int32)]


@pytest.mark.parametrize("op", [Lstm, Gru, Rnn])
@pytest.mark.parametrize(
    "backward, dtype", [((False,), "float32"), ((False, True), "float32"), ((True,), "float64"), ((False, True), "float16")]
)
def test_what_is_kept_and_the_walk_back(op: type[Recurrent], backward: tuple[bool, ...], dtype: str) -> None:
    for shape in SHAPES if dtype == "float32" else SHAPES[1:4]:
        for lengths in drawn_lengths(shape):
            layer = op(lists(op, len(backward)), backward, kept=True)
            check(layer, *inputs(op, len(backward), shape, lengths, dtype, False), scale=4)
            check(back_of(layer), *walk_inputs(layer, shape, lengths, dtype, False), scale=4)


def test_options() -> None:
    for shape in SHAPES[1:]:
        for layer, holes in (
            (Gru(lists(Gru, 2), (False, True), linear_before_reset=True, kept=True), False),
            (Gru(lists(Gru, 1), clip=0.3, kept=True), False),
            (Lstm(lists(Lstm, 2), (False, True), input_forget=True, kept=True), True),
            (Lstm(lists(Lstm, 1), clip=0.2, kept=True), True),
        ):
            for lengths in drawn_lengths(shape):
                check(layer, *inputs(type(layer), len(layer.backward), shape, lengths, "float32", holes), scale=4)
                check(back_of(layer), *walk_inputs(layer, shape, lengths, "float32", holes), scale=4)


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_slopes(name: str) -> None:
    other = (("Tanh", 0.0, 0.0), (name, 0.3, 0.2))
    for layer in (Rnn(other, (False, True)), Gru((*other, *other[::-1]), (False, True)), Lstm((*other, (name, 0.3, 0.2)), (True,))):
        check(back_of(layer), *walk_inputs(layer, (3, 2, 4, 9), None, "float32", False), scale=4)


@pytest.mark.parametrize("op", [Lstm, Gru, Rnn])
def test_rounds_cut_by_hidden_units(op: type[Recurrent], monkeypatch: pytest.MonkeyPatch) -> None:
    for room in (recurrent, recurrent_grad):
        monkeypatch.setattr(room, "unit_parts", lambda layer, walks, target: 3)
    for shape in SHAPES:
        for backward in ((True,), (False, True)):
            layer = op(lists(op, len(backward)), backward, kept=True)
            for lengths in drawn_lengths(shape):
                check(layer, *inputs(op, len(backward), shape, lengths, "float32", False), scale=4)
                check(back_of(layer), *walk_inputs(layer, shape, lengths, "float32", False), scale=4)


def test_one_direction_that_fits_a_core_is_one_task() -> None:
    layer = Lstm(lists(Lstm, 1))
    arrays = walk_inputs(layer, (20, 4, 3, 16), None, "float32", False)
    lowered = lower(apply(back_of(layer), *(constant(a) if i == 5 else param(f"p{i}", type_of(a)) for i, a in enumerate(arrays))))
    assert lowered is not None and [t.label for t in lowered.tasks] == ["lstm_grad"]


@pytest.mark.parametrize("op", [Lstm, Gru, Rnn])
@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("dirs", [1, 2])
def test_gradients_are_those_of_the_unrolled_steps(op: type[Recurrent], short: bool, dirs: int) -> None:
    """Compiled, with the forward pass and its results in one program: a layer runs forward once."""
    shape = (6, 3, 5, 9)
    options = {"linear_before_reset": True} if op is Gru else {}
    layer = op(lists(op, dirs), (False, True)[:dirs], **options)  # type: ignore[arg-type]
    arrays = inputs(op, dirs, shape, np.array([6, 2, 0], np.int32) if short else None, "float32", op is Lstm)
    params = tuple(param(f"p{i}", type_of(a)) for i, a in enumerate(arrays))
    results = layer(*params).results
    seeds = [constant(RNG.standard_normal(r.shape).astype(np.float32)) for r in results]
    floats = [p for p in params if p.dtype is f32]
    fused = gradients(results, floats, seeds)
    unrolled = gradients(layer.decompose(*params), floats, seeds)
    compiled = [compile(Graph("g", params, (*results, *(g for g in grads if g is not None)))) for grads in (fused, unrolled)]
    assert compiled[0].report.host == ()
    assert [n for n, how in compiled[0].report.selection if n == layer.name] == [layer.name]
    assert sum(count for (n, _), count in compiled[0].report.selection.items() if n == layer.name) == 1
    for actual, expected in zip(*(c.instance().run(arrays) for c in compiled), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=2e-4, atol=2e-5)


def test_the_defaults_are_those_of_the_layers() -> None:
    assert set(BACK) == set(DEFAULT)
