"""The layer `twin` as the command runs it: several chips, strictly, without compiling, beside the CPU."""

from __future__ import annotations

import json
from pathlib import Path

import onnx.parser
import pytest
from tests.tools.helpers import jumar, small_network

from jumar.base import CompileError, TensorType, f32
from jumar.compiler import TwinOptions
from jumar.device.npu import find_chip
from jumar.ir import Graph, param
from jumar.operators import Add, Relu
from jumar.tools.enable.console import Teller
from jumar.tools.enable.facts import Environment, ModelFact, Report
from jumar.tools.enable.twin import TwinRequest
from jumar.tools.enable.twin_facts import BANNER
from jumar.tools.enable.twin_layer import Subject, twin_layer

CHIP = find_chip("Ascend910B4")


def test_with_strict_a_model_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    x = param("x", TensorType((1 << 14, 1 << 20), f32))
    wide = Subject([Graph("wide", (x,), (Add()(Relu()(x), x),))], None, "--dim batch={batch}")
    report = Report("wide", Environment("", "", 1, 1, "", 1, 1, 1, 1, "", "", {}, ""), ModelFact("", 1, "", {}, (), 1, 1, (), (), ()))
    with pytest.raises(CompileError, match="must fit, got does not fit") as caught:
        twin_layer(report, wide, TwinRequest((CHIP,), TwinOptions(strict=True)), tmp_path, tmp_path, Teller(quiet=True))
    assert caught.value.code == "npu-memory"
    assert "it fits with" in caught.value.hint


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


def test_the_command_shows_the_npu_beside_the_cpu(tmp_path: Path) -> None:
    small_network(tmp_path / "small.onnx")
    done = jumar("enable", "small.onnx", "--soc", "910B4", "--runs", "3", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "One run on Ascend910B4" in page
    assert "The same model on this CPU" in page
    assert (tmp_path / "out" / "model.jmr").exists()
    assert "latency" in done.stdout


VALUES_DECIDE = {
    "nonzero": "g (float[8, 8] x) => (int64[2, k] y) { y = NonZero(x) }",
    "loop": """g (int64 n, float[4, 4] x) => (float[4, 4] y) {
        c = Constant<value: tensor = bool {1}> ()
        y = Loop (n, c, x) <body = b (int64 i, bool ci, float[4, 4] a) => (bool co, float[4, 4] r) { co = Identity(ci) r = Exp(a) }>
    }""",
}


@pytest.mark.parametrize("name", VALUES_DECIDE)
@pytest.mark.parametrize("only", [("--twin-only",), ("--runs", "1", "--no-numerics")])
def test_what_values_decide_is_said_to_be_left_out(name: str, only: tuple[str, ...], tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 16]> {VALUES_DECIDE[name]}')
    onnx.save(model, str(tmp_path / "m.onnx"))
    done = jumar("enable", "m.onnx", "--soc", "910B4", *only, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert any("not in the forecast" in w and name in w.replace("non_zero", "nonzero") for w in json.loads(done.stdout)["warnings"])


def test_an_operator_without_a_mapping_is_not_called_no_work(tmp_path: Path) -> None:
    text = '<ir_version: 10, opset_import: ["" : 19]> g (float8e4m3fn[8, 8] x) => (float[8, 8] y) { y = Cast<to = 1>(x) }'
    onnx.save(onnx.parser.parse_model(text), str(tmp_path / "m.onnx"))
    done = jumar("enable", "m.onnx", "--soc", "910B4", "--twin-only", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "no kernel runs on the device: the twin knows none for cast" in done.stdout
    assert "1 operator, without a mapping on this chip" in done.stdout


MODES_AND_SWITCHES = (
    "allow_mix_precision,keep=OpType::Relu", "allow_mix_precision_bf16", "O1,bf16", "O2,keep_batchnorm_fp32=off", "O3", "force_fp32,hf32=on",
    "must_keep_origin_dtype,hf32=on", "force_fp32,saturate,deterministic",
)  # fmt: skip


@pytest.mark.parametrize("precision", MODES_AND_SWITCHES)
def test_advice_contradicts_no_precision_that_was_asked_for(precision: str, tmp_path: Path) -> None:
    small_network(tmp_path / "small.onnx")
    (tmp_path / "mix.json").write_text('{"black-list": {"to-remove": ["Exp"], "to-add": ["Gelu"]}, "white-list": {"to-add": ["Softmax"]}}')
    lists = ("--mixlist", "mix.json") if "mix" in precision else ()
    done = jumar("enable", "small.onnx", "--soc", "910B4", "--twin-only", "--precision", precision, *lists, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_inputs_are_drawn_only_where_their_values_count(tmp_path: Path) -> None:
    small_network(tmp_path / "small.onnx")
    for more, drawn in (((), "its type alone is asked for"), (("--numerics",), "random, seed 0")):
        done = jumar("enable", "small.onnx", "--soc", "910B4", "--twin-only", *more, "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert [i["source"] for i in json.loads(done.stdout)["model"]["inputs"]] == [drawn]
