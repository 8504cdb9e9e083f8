"""The twin's memory as facts: parts, what would fit, a training step."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.tools.helpers import small_network

from jumar.base import TensorType, f32
from jumar.compiler import TwinOptions
from jumar.device.npu import find_chip
from jumar.frontend import load
from jumar.ir import Graph, param
from jumar.operators import Add, Relu
from jumar.tools.enable.twin import TwinRequest, batch_command, look
from jumar.tools.enable.twin_facts import TwinFact
from jumar.tools.enable.twin_options import parse_training

CHIP = find_chip("Ascend910B4")


def twin_of(path: Path, **options) -> TwinFact:
    model = load(path)
    graphs = model.graphs(dims=dict.fromkeys(model.free_dims, 1))
    return look(graphs, CHIP, TwinRequest((CHIP,), TwinOptions(**options)), batch_command(model.inputs))[0]


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
