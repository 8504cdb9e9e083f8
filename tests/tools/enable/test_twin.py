"""The layer `twin`, from a model to its facts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.models.net import Net
from tests.tools.enable.twins import CHIP, twin_of
from tests.tools.helpers import small_network

from jumar.base import TensorType, f32, i64
from jumar.compiler import TwinOptions
from jumar.frontend import load
from jumar.ir import Graph, constant, param
from jumar.operators import Gather, Relu, Reshape
from jumar.tools.enable.facts import Environment, ModelFact, Report
from jumar.tools.enable.page import page
from jumar.tools.enable.twin import TwinRequest, batch_command, look
from jumar.tools.enable.twin_facts import AdviceFact, TwinFact


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> TwinFact:
    return twin_of(small_network(tmp_path_factory.mktemp("twin") / "small.onnx"))


def test_every_operator_is_mapped_with_its_evidence(small: TwinFact) -> None:
    assert any("Conv2D" in m.cann and m.unit == "cube" for m in small.mapping)
    assert any("Softmax" in m.cann for m in small.mapping)
    assert all(m.evidence in ("documented", "inferred") and m.source for m in small.mapping)


def test_times_add_up_and_stand_in_their_intervals(small: TwinFact) -> None:
    assert small.latency.kind == "predicted"
    assert small.latency.low < small.latency.value < small.latency.high
    assert sum(us for _, us in small.bottlenecks) == pytest.approx(small.kernels_us)
    assert sum(u.time_us for u in small.units) == pytest.approx(small.kernels_us)
    assert sum(u.kernels for u in small.units) == len(small.kernels)
    assert all(k.low_us <= k.time_us <= k.high_us for k in small.kernels)
    assert max(k.start_us + k.time_us for k in small.kernels) <= small.latency.value
    assert small.throughput.low < small.throughput.value < small.throughput.high


def test_figures_of_the_chip_name_their_source(small: TwinFact) -> None:
    assert len(small.chip) > 10
    assert all(f.source and f.kind in ("documented", "measured", "derived") for f in small.chip)


@pytest.mark.parametrize("rows", [0, 3])
def test_a_model_without_work_has_no_rate(rows: int) -> None:
    x = param("x", TensorType((rows, 4), f32))
    fact, _ = look([Graph("none", (x,), (Relu()(x) if not rows else Reshape((4, rows))(x),))], CHIP, TwinRequest((CHIP,), TwinOptions()))
    assert fact.kernels == () or fact.latency.value > 0
    assert fact.throughput.value < 1e9
    assert page(
        Report(
            "none", Environment("", "", 1, 1, "", 1, 1, 1, 1, "", "", {}, ""), ModelFact("", 1, "", {}, (), 1, 1, (), (), ()), twins=(fact,)
        )
    )


def test_launching_one_by_one_is_bound_by_the_host(tmp_path: Path) -> None:
    eager = twin_of(small_network(tmp_path / "small.onnx"), mode="eager")
    assert eager.bound == "host-bound"
    assert any(b.lane == "host" for b in eager.bars)
    assert eager.advice[0].kind in ("batch", "sink")


def test_a_batch_is_asked_for_as_the_model_takes_it(small: TwinFact, tmp_path: Path) -> None:
    advice = next(a for a in small.advice if a.kind == "batch")
    assert advice.command == "--dim batch=16"
    fixed = load(small_network(tmp_path / "fixed.onnx", free=False))
    assert "free batch" in batch_command(fixed.inputs)


def test_pieces_of_a_model_add_up(tmp_path: Path) -> None:
    net = Net("cut", seed=1)
    y = net.op("Relu", net.op("MatMul", net.input("x", (3, 4)), net.normal(4, 6, std=1.0)))
    places = net.op("Transpose", net.op("NonZero", y), perm=[1, 0])
    (tmp_path / "cut.onnx").write_bytes(net.model({"y": net.op("Exp", net.op("GatherND", y, places))}).SerializeToString())
    model = load(tmp_path / "cut.onnx")
    graphs = [p.graph for p in model.compile(x=np.ones((3, 4), np.float32), fresh=True).pieces if p.graph is not None]
    request = TwinRequest((CHIP,), TwinOptions())
    whole, forecasts = look(graphs, CHIP, request)
    assert whole.pieces == len(graphs) > 1
    assert whole.latency.value == pytest.approx(sum(f.timeline.latency_us for f in forecasts))
    assert len(whole.kernels) == sum(len(f.launches) for f in forecasts)


def test_the_batch_says_where_it_comes_from(small: TwinFact) -> None:
    assert small.batch_from.startswith("the first dimension of ")
    x = param("x", TensorType((8,), f32))
    fact, _ = look([Graph("flat", (x,), (Relu()(x),))], CHIP, TwinRequest((CHIP,), TwinOptions()))
    assert (fact.batch, fact.batch_from) == (1, "a run")


def test_a_search_that_ends_is_no_finding() -> None:
    x = param("x", TensorType((2, 4), f32))
    fact, _ = look([Graph("tiny", (x,), (Relu()(x),))], CHIP, TwinRequest((CHIP,), TwinOptions()))
    assert fact.memory is not None
    assert fact.memory.largest_text == "more than 1048576 (not searched further)"


def test_advice_that_may_gain_nothing_says_so() -> None:
    advice = AdviceFact("autofuse", "switch AutoFuse on", "", "", 1.0, "us", 1.8, -3.6, 6.9)
    assert advice.doubtful
    assert not replace(advice, low_percent=0.5).doubtful


def test_of_a_table_only_the_rows_that_are_read_are_moved() -> None:
    table, rows = constant(np.zeros((30000, 64), np.float32)), param("rows", TensorType((128,), i64))
    fact, _ = look([Graph("table", (rows,), (Gather(0)(table, rows),))], CHIP, TwinRequest((CHIP,), TwinOptions()))
    assert 0 < fact.kernels[0].nbytes < 128 * 64 * 4 * 4
