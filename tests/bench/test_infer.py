"""bench/infer.py and what it stands on: flops, differences, limits, rows that replace others, and a whole run of a small model."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tests.models.net import Net
from tests.tools.helpers import small_network

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "bench"


@pytest.fixture(scope="module")
def infer() -> ModuleType:
    sys.path.insert(0, str(BENCH))
    spec = importlib.util.spec_from_file_location("infer", BENCH / "infer.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["infer"] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def row(infer: ModuleType, name: str, threads: int = 2, **facts: object) -> object:
    found = infer.Result(name, name, threads)
    for key, value in facts.items():
        setattr(found, key, value)
    return found


def test_flops_are_two_for_each_multiply_add(infer: ModuleType, tmp_path: Path) -> None:
    net = Net("sizes", seed=1)
    x = net.input("x", ("batch", 3, 8, 8))
    y = net.conv(x, (3, 4), 3, 2)  # 4x4 positions
    y = net.op("Flatten", y, axis=1)
    y = net.op("Gemm", y, net.normal(5, 64), net.normal(5), transB=1)
    path = tmp_path / "sizes.onnx"
    path.write_bytes(net.model({"y": y}).SerializeToString())
    wanted = 2 * (4 * 16 * 27 + 64 * 5) * 2  # a batch of two
    assert infer.models.flops(path, {"x": np.zeros((2, 3, 8, 8), np.float32)}) == wanted


def test_flops_of_a_model_whose_shapes_are_computed(infer: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    nodes = [
        helper.make_node("Shape", ["x"], ["all"]),
        helper.make_node("Mul", ["all", "two"], ["more"]),
        helper.make_node("Expand", ["x", "all"], ["same"]),
        helper.make_node("Reshape", ["same", "all"], ["a"]),
        helper.make_node("NonZero", ["a"], ["places"]),
        helper.make_node("Cast", ["places"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["w", "floats"], ["y"]),
    ]
    two = helper.make_tensor("two", TensorProto.INT64, [2], [2, 2])
    w = helper.make_tensor("w", TensorProto.FLOAT, [3, 2], [1.0] * 6)
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None if n == "y" else [2, 2]) for n in ("x", "y")]
    graph = helper.make_graph(nodes, "computed", info[:1], info[1:], [two, w])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    assert infer.models.flops(tmp_path / "m.onnx", {"x": np.ones((2, 2), np.float32)}) == 2 * 3 * 2 * 4


@pytest.mark.parametrize(
    ("got", "wanted"),
    [
        ([np.array([0.0, 2.0])], 0.0),
        ([np.array([0.0, 1.0])], 0.5),
        ([np.array([0.0, 2.0, 2.0])], 1e9),
        ([np.array([0.0, np.nan])], 1e9),
        ([], 1e9),
    ],
)
def test_difference_is_in_parts_of_the_range(infer: ModuleType, got: list[np.ndarray], wanted: float) -> None:
    assert infer.difference([np.array([0.0, 2.0])], got) == wanted


def test_difference_of_a_range_near_nought_is_in_parts_of_a_hundredth(infer: ModuleType) -> None:
    assert infer.difference([np.array([0.0, 1e-5])], [np.array([0.0, 1.1e-5])]) == pytest.approx(1e-4)


def test_a_rival_that_hangs_is_ended_and_told(infer: ModuleType, tmp_path: Path) -> None:
    hangs = tmp_path / "python"
    hangs.write_text("#!/bin/sh\nexec sleep 60\n")
    hangs.chmod(0o755)
    worker = infer.driver.Worker("onnxruntime", str(hangs), 1, tmp_path, {})
    assert worker.ask(limit_s=0.2, do="setup") == {"error": "no answer to setup within 0 s"}
    assert worker.process.poll() is not None
    worker.quit()


def test_a_rival_that_dies_is_told(infer: ModuleType, tmp_path: Path) -> None:
    worker = infer.driver.Worker("onnxruntime", "/bin/false", 1, tmp_path, {})
    assert worker.ask(limit_s=20, do="setup")["error"].startswith("the process ended with code")
    worker.quit()


def test_a_rival_whose_outputs_differ_is_none_to_be_compared_with(infer: ModuleType) -> None:
    found = row(infer, "m", notes={"openvino": "outputs differ"})
    infer.driver.summarize(found, {"jumar": [[4.0], [6.0]], "onnxruntime": [[8.0], [8.0]], "openvino": [[1.0], [1.0]]})
    assert found.best == "onnxruntime"
    assert found.ratio == {"onnxruntime": 0.625}
    assert found.ratio_spread == {"onnxruntime": (0.5, 0.75)}


class Scripted:
    """A worker that answers with the times it was given, and counts its turns."""

    def __init__(self, time_ms: float) -> None:
        self.time_ms, self.turns = time_ms, 0

    def ask(self, **_: object) -> dict[str, object]:
        self.turns += 1
        return {"times_ms": [self.time_ms], "losses": []}


def test_a_hopeless_rival_has_the_first_round_only(infer: ModuleType) -> None:
    workers = {"jumar": Scripted(9.0), "onnxruntime": Scripted(2.0), "openvino": Scripted(3.9), "torch": Scripted(4.1)}
    found = row(infer, "m")
    infer.driver.summarize(found, infer.driver.turns(workers, found, 3, hopeless=2.0, seconds=0.1))
    assert {engine: worker.turns for engine, worker in workers.items()} == {"jumar": 3, "onnxruntime": 3, "openvino": 3, "torch": 1}
    assert found.ratio["torch"] == pytest.approx(9.0 / 4.1)


def test_share_of_peak_is_flops_in_our_time(infer: ModuleType) -> None:
    found = row(infer, "m", median={"jumar": 2.0}, flops=10**9, peak_gflops=1000.0)
    assert found.share_of_peak == {"jumar": 0.5}
    assert row(infer, "m", median={"jumar": 2.0}).share_of_peak == {}


def test_a_row_takes_the_place_of_the_one_before_and_rows_keep_their_order(infer: ModuleType) -> None:
    first = row(infer, "minilm", cold_s={"torch.compile": 30.0, "jumar": 2.0}, cached_s={"jumar": 1.0})
    others = [row(infer, "resnet50_b1"), first, row(infer, "zzz")]
    new = row(infer, "minilm", cold_s={"jumar": 3.0}, cached_s={"jumar": 1.0, "torch.compile": 5.0})
    rows = infer.merged(others, new)
    assert [r.row for r in rows] == ["resnet50_b1", "minilm", "zzz"]
    assert rows[1] is new
    assert new.cold_s == {"torch.compile": 30.0, "jumar": 3.0}  # another engine's time with an empty cache is still true


def test_rows_of_another_machine_are_not_kept(infer: ModuleType) -> None:
    facts = infer.driver.machine()
    assert infer.same_machine(facts, dict(facts, load_before=9.0))
    assert not infer.same_machine(facts, dict(facts, vectors=["none"]))


def test_a_whole_run_writes_rows_that_a_second_run_adds_to(infer: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    for name in ("one", "two"):
        small_network(tmp_path / f"{name}.onnx", free=False)
        np.savez(tmp_path / f"{name}_in.npz", x=np.ones((1, 3, 16, 16), np.float32))
    out = tmp_path / "results" / "infer-test"
    torch = importlib.util.find_spec("torch") is not None
    for name in ("one", "two"):
        command = [
            sys.executable, BENCH / "infer.py", tmp_path / f"{name}.onnx", "--threads", "1", "--rounds", "2", "--turn", "0.01", "--append", "--out", out,
            "--engines", "jumar,onnxruntime" + ",torch" * torch,
        ]  # fmt: skip
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr + done.stdout
    rows, versions, _ = infer.read(out)
    assert [r.row for r in rows] == ["one", "two"]
    assert versions["onnxruntime"].startswith("onnxruntime ")
    for r in rows:
        assert set(r.median) == {"jumar", "onnxruntime"}
        assert r.agree["jumar"] <= infer.TOLERANCE
        assert not torch or r.notes["torch"].startswith(("Unsuited", "torch"))
        assert r.cold_s["jumar"] > 0
        assert min(r.peak_mb.values()) > 10
        assert r.flops > 0
    text = out.with_suffix(".md").read_text()
    assert "| one | 1 |" in text
    assert not torch or "no networks in PyTorch (--networks): one (1), two (1)" in text


def test_an_unknown_engine_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(BENCH / "infer.py"), "--engines", "tensorflow"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 2
    assert "no engine tensorflow; there are jumar, onnxruntime" in done.stderr


def test_results_in_the_repository_are_of_this_form(infer: ModuleType) -> None:
    for path in sorted((BENCH / "results").glob("infer-*.json")):
        rows, _, facts = infer.read(path)
        assert rows, path
        assert infer.driver.machine_text(facts)
        assert all(json.dumps(r.ratio) and r.reference == infer.REFERENCE for r in rows)
