"""bench/twin_models.py: which rows are compared, with what, and how ratios are summed up; the training step that it builds."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from tests.models.net import Net

import jumar

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "bench"
DATA = Path(os.environ.get("SHARED", ROOT.parent / "shared")) / "data" / "e2e_times.csv"
HEAD = (
    "id,task,model,phase,hardware,soc_family,devices,batch_per_device,input,precision,metric,value,unit,per_device_value,"
    "software,source,note,usable_for\n"
)
LATENCY = "whole-model inference latency = batch/fps"


def loaded(name: str) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    sys.path.insert(0, str(BENCH))
    spec = importlib.util.spec_from_file_location(name, BENCH / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    return loaded("twin_models")


def table(folder: Path, *lines: str) -> Path:
    path = folder / "e2e_times.csv"
    path.write_text(HEAD + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def inference(model: str, *, row: str = "E1", batch: int = 8, size: str = "", fps: float = 400.0) -> str:
    return f"{row},t,{model},inference,h,310P3,1,{batch},{size},fp16,throughput,{fps},samples/s (fps),{fps},s,source,n,{LATENCY}"


def test_latency_is_the_batch_over_the_throughput(bench: ModuleType, tmp_path: Path) -> None:
    (row,) = bench.rows(table(tmp_path, inference("AlexNet")))
    assert (row.batch, row.time_ms, row.chip, row.seq) == (8, 20.0, "310P3", 0)


def test_tokens_come_from_the_row_or_from_the_repository(bench: ModuleType, tmp_path: Path) -> None:
    found = bench.rows(table(tmp_path, inference("roberta / 静态", size="seq 64"), inference("roberta"), inference("albert")))
    groups = [bench.sorted_out(row) for row in found]
    assert [row.seq for row in found] == [64, 0, 0]
    assert [group for group, _, _ in groups] == ["inference", "inference", "apart"]
    assert groups[1][1].seq == 70
    assert groups[2][2].startswith("input unknown")


def test_a_step_has_its_time_and_tokens_are_no_samples(bench: ModuleType, tmp_path: Path) -> None:
    step = 'E2,t,vgg13,train step,h,910B,8,32,224x224,mixed,step time,30.5,ms/step,1049,s,source,n,"whole-model train step, upper bound on time"'
    tokens = "E3,t,llama,train step,h,910B,8,1,seq 4096,bf16,throughput,900,tokens/s/device,900,s,source,n,good"
    unbatched = inference("AlexNet").replace(",1,8,,", ",1,see page,,")
    (row,) = bench.rows(table(tmp_path, step, tokens, unbatched))
    assert row.time_ms == 30.5
    assert bench.sorted_out(row)[0] == "bound"


def test_every_network_of_the_table_is_known(bench: ModuleType) -> None:
    cases = [*bench.CASES.values(), *bench.STEPS.values()]
    assert {c.network for c in cases} | set(bench.VISION.values()) <= set(loaded("twin_networks").NETWORKS)
    assert {c.group for c in cases} <= set(bench.COMPARED)
    assert not set(bench.CASES) & set(bench.APART)


@pytest.mark.skipif(not DATA.is_file(), reason="the published measurements are not beside this checkout")
def test_every_row_for_inference_is_compared_or_has_its_reason(bench: ModuleType) -> None:
    found = [row for row in bench.rows(DATA) if row.usable_for == LATENCY]
    assert len(found) > 200
    reasons = {row.model: why for row in found for _, case, why in [bench.sorted_out(row)] if case is None}
    assert all(reasons.values())
    assert set(reasons) <= set(bench.APART) | {"SwinTransformer_for_Pytorch"}


def answer(bench: ModuleType, model: str, ratio: float) -> object:
    return bench.Answer("E1", model, "net", "310P3", "inference", 1, 0, 1.0, ratio, 0.9 * ratio, 1.1 * ratio, ratio, "cube-bound", 3)


def test_statistics_count_a_model_once(bench: ModuleType) -> None:
    answers = [answer(bench, "a", 1.0), answer(bench, "a", 1.0), answer(bench, "a", 1.0), answer(bench, "b", 4.0)]
    found = bench.statistics_of(answers)
    assert found["rows"] == 4
    assert found["geometric_mean"] == pytest.approx(4**0.25)
    assert found["geometric_mean_by_model"] == pytest.approx(2.0)
    assert found["within_1.6"] == 0.75
    assert found["within_1.6_by_model"] == 0.5
    assert found["measured_within_interval"] == 0.75


def test_figures_are_rounded_and_no_number_is_null(bench: ModuleType) -> None:
    assert bench.rounded({"a": [1.23456, float("nan")], "b": 3}) == {"a": [1.235, None], "b": 3}


@pytest.mark.parametrize(("optimizer", "states"), [("sgd", 0), ("momentum", 1), ("adam", 2)])
def test_a_training_step_updates_every_weight_in_place(tmp_path: Path, optimizer: str, states: int) -> None:
    net = Net("small", seed=1)
    x = net.input("x", (2, 3, 8, 8))
    y = net.op("Flatten", net.op("Relu", net.conv(x, (3, 4), 3)), axis=1)
    y = net.op("Gemm", y, net.normal(5, 256), net.normal(5), transB=1)
    path = tmp_path / "small.onnx"
    path.write_bytes(net.model({"y": y}).SerializeToString())
    step = loaded("twin_training").training_step(jumar.load(str(path)).graph(), optimizer)
    assert len(step.updates) == 3 * (1 + states)
    assert step.params[1].shape == (2, 5)  # the targets
    assert all(step.outputs[o].type == step.params[p].type for o, p in step.updates)


def test_a_step_of_gradient_descent_lowers_the_loss(tmp_path: Path) -> None:
    net = Net("line", seed=1)
    y = net.op("Gemm", net.input("x", (4, 6)), net.normal(3, 6, std=0.5), net.normal(3), transB=1)
    path = tmp_path / "line.onnx"
    path.write_bytes(net.model({"y": y}).SerializeToString())
    step = loaded("twin_training").training_step(jumar.load(str(path)).graph(), "sgd")
    rng = np.random.default_rng(0)
    targets = np.eye(3, dtype=np.float32)[rng.integers(0, 3, 4)]
    weights = [rng.standard_normal(p.shape).astype(np.float32) for p in step.params[2:]]
    x, losses = rng.standard_normal((4, 6)).astype(np.float32), []
    from jumar.ir import interpret

    for _ in range(20):
        logits, *weights = interpret(step, [x, targets, *weights])
        chances = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
        losses.append(-np.log((chances * targets).sum(axis=-1)).mean())
    assert losses == sorted(losses, reverse=True)
