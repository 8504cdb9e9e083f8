"""The layer `twin`, from a model to its facts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.models.net import Net
from tests.tools.helpers import jumar, small_network

from jumar.base import CompileError, TensorType, f32
from jumar.compiler import TwinOptions
from jumar.device.npu import find_chip
from jumar.frontend import load
from jumar.ir import Graph, param
from jumar.operators import Add, Relu, Reshape
from jumar.tools.enable.console import Teller
from jumar.tools.enable.facts import Environment, ModelFact, Report
from jumar.tools.enable.page import page
from jumar.tools.enable.twin import TwinRequest, batch_command, look
from jumar.tools.enable.twin_facts import BANNER, TwinFact
from jumar.tools.enable.twin_layer import Subject, twin_layer
from jumar.tools.enable.twin_options import parse_training

CHIP = find_chip("Ascend910B4")


def twin_of(path: Path, **options) -> TwinFact:
    model = load(path)
    graphs = model.graphs(dims=dict.fromkeys(model.free_dims, 1))
    return look(graphs, CHIP, TwinRequest((CHIP,), TwinOptions(**options)), batch_command(model.inputs))[0]


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


def test_with_strict_a_model_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    x = param("x", TensorType((1 << 14, 1 << 20), f32))
    wide = Subject([Graph("wide", (x,), (Add()(Relu()(x), x),))], None, "--dim batch={batch}")
    report = Report("wide", Environment("", "", 1, 1, "", 1, 1, 1, 1, "", "", {}, ""), ModelFact("", 1, "", {}, (), 1, 1, (), (), ()))
    with pytest.raises(CompileError, match="must fit, got does not fit") as caught:
        twin_layer(report, wide, TwinRequest((CHIP,), TwinOptions(strict=True)), tmp_path, tmp_path, Teller(quiet=True))
    assert caught.value.code == "npu-memory"
    assert "it fits with" in caught.value.hint


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


def test_the_command_forecasts_without_compiling(tmp_path: Path) -> None:
    small_network(tmp_path / "small.onnx")
    done = jumar("enable", "small.onnx", "--soc", "910B4", "--compare", "310P3", "--twin-only", "--json", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert [t["soc"] for t in document["twins"]] == ["Ascend910B4", "Ascend310P3"]
    assert document["speed"] is None
    assert document["twins"][0]["advice"][0]["gain_percent"] > 0
    assert BANNER in done.stderr
    assert BANNER in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert not (tmp_path / "out" / "model.jmr").exists()


def test_one_of_several_chips_that_cannot_is_said_and_the_others_are_told(tmp_path: Path) -> None:
    small_network(tmp_path / "small.onnx")
    options = ("--twin-only", "--json", "--precision", "must_keep_origin_dtype")
    done = jumar("enable", "small.onnx", "--soc", "310P3", "--compare", "910B4", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert [t["soc"] for t in document["twins"]] == ["Ascend910B4"]
    assert any(w.startswith("Ascend310P3: no forecast: ") for w in document["warnings"])
    alone = jumar("enable", "small.onnx", "--soc", "310P3", *options, cwd=tmp_path)
    assert alone.returncode == 2
    assert "force_fp16" in json.loads(alone.stdout)["error"]["hint"]


def test_the_command_shows_the_npu_beside_the_cpu(tmp_path: Path) -> None:
    small_network(tmp_path / "small.onnx")
    done = jumar("enable", "small.onnx", "--soc", "910B4", "--runs", "3", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "One run on Ascend910B4" in page
    assert "The same model on this CPU" in page
    assert (tmp_path / "out" / "model.jmr").exists()
    assert "latency" in done.stdout


def test_a_planted_overflow_is_found_and_named(tmp_path: Path) -> None:
    net = Net("planted", seed=1)
    e = net.op("Exp", net.input("x", (2, 8)))
    total = net.op("ReduceSum", e, net.constant([1], np.int64), keepdims=1)
    (tmp_path / "planted.onnx").write_bytes(net.model({"y": net.op("Div", e, total)}).SerializeToString())
    np.save(tmp_path / "x.npy", np.full((2, 8), 12.0, np.float32))
    done = jumar(
        "enable", "planted.onnx", "--soc", "910B4", "--numerics", "--twin-only", "-i", "x=x.npy", "--out", "out", "--json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    numerics = json.loads(done.stdout)["twins"][0]["numerics"]
    assert not numerics["within"]
    assert "exp_" in numerics["summary"].lower()
    assert "overflows" in numerics["summary"]
