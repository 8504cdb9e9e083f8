"""The twin's memory as facts: parts, what would fit, a training step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.tools.enable.twins import CHIP, twin_of
from tests.tools.helpers import small_network

from jumar.base import TensorType, ToolError, f32
from jumar.compiler import TwinOptions
from jumar.frontend import load
from jumar.ir import Graph, constant, param
from jumar.operators import Add, MatMul, Relu
from jumar.tools.enable.twin import TwinRequest, look
from jumar.tools.enable.twin_facts import TwinFact
from jumar.tools.enable.twin_options import parse_training


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> TwinFact:
    return twin_of(small_network(tmp_path_factory.mktemp("twin") / "small.onnx"))


def test_memory_is_that_of_the_parts(small: TwinFact) -> None:
    assert small.memory is not None
    assert small.memory.fits
    assert small.memory.capacity_nbytes == CHIP.memory_nbytes
    assert small.memory.peak_nbytes == sum(p.nbytes for p in small.memory.parts if not p.name.startswith("not usable"))


def test_a_model_that_does_not_fit_is_told_what_would() -> None:
    x = param("x", TensorType((1 << 14, 1 << 20), f32))
    fact, _ = look([Graph("wide", (x,), (Add()(Relu()(x), x),))], CHIP, TwinRequest((CHIP,), TwinOptions()))
    assert fact.memory is not None
    assert not fact.memory.fits
    assert fact.memory.verdict.startswith("does not fit: ")
    assert 0 < fact.memory.largest_batch < 1 << 14
    assert fact.memory.remedies
    assert any(a.kind == "memory" for a in fact.advice)


def test_a_training_step_is_planned_where_it_is_asked_for(tmp_path: Path) -> None:
    graphs = load(small_network(tmp_path / "small.onnx")).graphs(dims={"batch": 4})
    plain = look(graphs, CHIP, TwinRequest((CHIP,), TwinOptions(), training=parse_training("adamw")))[0]
    recomputed = look(graphs, CHIP, TwinRequest((CHIP,), TwinOptions(), training=parse_training("sgd,O2")))[0]
    assert plain.training is not None
    assert recomputed.training is not None
    assert plain.memory is not None
    assert plain.training.fits
    assert plain.training.peak_nbytes > recomputed.training.peak_nbytes
    assert plain.training.peak_nbytes > plain.memory.peak_nbytes


def test_what_a_training_step_is_counted_on_and_what_changes_nothing_is_said(tmp_path: Path) -> None:
    graphs = load(small_network(tmp_path / "small.onnx")).graphs(dims={"batch": 4})
    told = {}
    x = param("x", TensorType((4, 8), f32))
    layer = [Graph("layer", (x,), (Relu()(MatMul()(x, constant(np.ones((8, 8), np.float32)))),))]
    for text in ("adamw", "adamw,recompute=999", "adamw,tensor=3"):
        fact = look(
            layer if "recompute" in text else graphs, CHIP, TwinRequest((CHIP,), TwinOptions(), training=parse_training(text), advice=False)
        )[0]
        assert fact.training is not None
        assert "as it was exported" in fact.training.notes[0]
        told[text] = " ".join(fact.training.notes)
    assert "recompute=999 spares nothing" in told["adamw,recompute=999"]
    assert "tensor=3 divides no dimension of " in told["adamw,tensor=3"]
    assert "spares" not in told["adamw"]
    with pytest.raises(ToolError, match="must divide a dimension of the weights, got 101"):
        look(graphs, CHIP, TwinRequest((CHIP,), TwinOptions(), training=parse_training("adamw,tensor=101"), advice=False))
