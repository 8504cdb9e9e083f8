import json

import numpy as np
import pytest

import jumar.operators as ops
from jumar.base import CompileError, Loc, bf16, f16, f32, i64
from jumar.compiler.passes.precision import (
    MODES,
    SYNONYMS,
    Precision,
    check_names,
    check_precision,
    parse_precision,
    set_precision,
    uses_hf32,
)
from jumar.device.npu import find_chip
from jumar.ir import Graph, apply, constant, f32t, interpret, param, tensor

OLD, NEW = find_chip("310P3"), find_chip("910B4")


def net(dtype=f32):
    """A product, what follows it, a softmax."""
    x = param("x", tensor(dtype, 4, 16))
    w = constant(np.random.default_rng(0).normal(size=(16, 8)).astype(np.float32), dtype)
    y = ops.Relu()(ops.MatMul()(x, w))
    return Graph("net", (x,), (ops.Softmax()(ops.Exp()(y)),), ("y",))


def types(graph):
    return {n.op.name: str(n.dtype) for n in graph.nodes if n.op.name not in ("param", "constant", "cast")}


def casts(graph):
    return [f"{n.inputs[0].dtype}->{n.dtype}" for n in graph.nodes if n.op.name == "cast"]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("force_fp16", "f16 f16 f16 f16"),
        ("O3", "f16 f16 f16 f16"),
        ("allow_fp32_to_fp16", "f16 f32 f32 f32"),
        ("allow_fp32_to_bf16", "bf16 f32 f32 f32"),
        ("allow_mix_precision", "f16 f16 f32 f32"),  # exp is on the black list, softmax follows it
        ("mixed_bfloat16", "bf16 bf16 f32 f32"),
        ("must_keep_origin_dtype", "f32 f32 f32 f32"),
        ("O0", "f32 f32 f32 f32"),
        ("O1", "f16 f32 f32 f32"),
        ("O2", "f16 f16 f16 f16"),
        ("O2,bf16", "bf16 bf16 bf16 bf16"),
    ],
)
def test_a_mode_says_what_computes_in_which_type(mode, expected):
    graph = net()
    made, facts = set_precision(graph, NEW, parse_precision(mode))
    assert types(made) == dict(zip(("matmul", "relu", "exp", "softmax"), expected.split(), strict=True))
    assert (made.params[0].dtype, made.outputs[0].dtype) == (f32, f32)
    assert len([f for f in facts if not f.constant]) == len(casts(made))
    assert all(f.why and f.where and f.nbytes for f in facts)
    arrays = [np.random.default_rng(1).normal(size=(4, 16)).astype(np.float32)]
    np.testing.assert_allclose(interpret(graph, arrays)[0], interpret(made, arrays)[0], rtol=0.15, atol=0.02)


def test_force_fp32_multiplies_f16_and_goes_on_in_f32():
    made, _ = set_precision(net(), NEW, Precision("force_fp32"))
    assert types(made) == {"matmul": "f16", "relu": "f32", "exp": "f32", "softmax": "f32"}
    assert casts(made) == ["f32->f16", "f16->f32"]


def test_constants_are_cast_here_and_casts_are_shared():
    x = param("x", f32t(4, 4))
    w = constant(np.full((4, 4), 1e6, np.float32))
    y = ops.Add()(ops.MatMul()(x, w), x)
    made, facts = set_precision(Graph("net", (x,), (y,)), OLD, Precision())
    assert casts(made) == ["f32->f16", "f16->f32"]
    (weight,) = [f for f in facts if f.constant]
    assert "16 of its values lie beyond 65504" in weight.why
    assert {float(n.array.max()) for n in made.nodes if n.array is not None} == {65504.0}  # the chip saturates
    made, _ = set_precision(Graph("net", (x,), (y,)), NEW, Precision())
    assert {float(n.array.max()) for n in made.nodes if n.array is not None} == {float("inf")}


def test_casts_in_a_row_cancel():
    x = param("x", tensor(f16, 4))
    y = ops.Relu()(ops.Cast(f32)(x))
    made, _ = set_precision(Graph("net", (x,), (y,)), OLD, Precision())
    assert casts(made) == ["f16->f32"]  # the result keeps its type; the cast of the input is gone
    assert types(made) == {"relu": "f16"}


def test_integers_become_f16_at_once():
    mask = param("mask", tensor(i64, 2, 4))
    graph = Graph("net", (mask,), (ops.Exp()(ops.Cast(f32)(mask)),))
    assert casts(set_precision(graph, OLD, Precision())[0]) == ["i64->f16", "f16->f32"]
    assert casts(set_precision(graph, OLD, Precision("allow_fp32_to_fp16"))[0]) == ["i64->f32"]


def test_integers_stay_and_what_only_moves_follows():
    x, i = param("x", f32t(4, 4)), param("i", tensor(i64, 2))
    rows = ops.Gather(0)(x, ops.Add()(i, i))
    graph = Graph("net", (x, i), (rows,))
    made, facts = set_precision(graph, NEW, Precision("allow_fp32_to_fp16"))
    assert types(made) == {"add": "i64", "gather": "f32"}
    assert facts == ()
    assert types(set_precision(graph, NEW, Precision())[0]) == {"add": "i64", "gather": "f16"}  # as ATC: everything that can


def test_statistics_of_a_normalization_stay_wide():
    x = param("x", f32t(1, 3, 4, 4))
    weights = [constant(np.ones(3, np.float32)) for _ in range(4)]
    made, _ = set_precision(Graph("net", (x,), (ops.BatchNorm()(x, *weights),)), NEW, Precision())
    (norm,) = [n for n in made.nodes if n.op.name == "batch_norm"]
    assert [str(i.dtype) for i in norm.inputs] == ["f16", "f32", "f32", "f32", "f32"]


def test_batch_norms_of_level_o2_stay_wide_unless_asked_otherwise():
    x, (scale, bias) = param("x", f32t(2, 3, 4, 4)), (param(n, f32t(3)) for n in ("scale", "bias"))
    graph = Graph("net", (x, scale, bias), ops.BatchNormTrain()(x, scale, bias).results)
    for text, expected in (("O2", "f32"), ("O2,keep_batchnorm_fp32=off", "f16")):
        made, _ = set_precision(graph, NEW, parse_precision(text))
        (norm,) = [n for n in made.nodes if n.op.name == "batch_norm_train"]
        assert [str(i.dtype) for i in norm.inputs] == [expected, "f32", "f32"]


def test_an_optimiser_keeps_its_type():
    w, x = param("w", f32t(4, 4)), param("x", f32t(4, 4))
    grad = ops.MatMul()(x, w)
    stepped = ops.Sub()(w, ops.Mul()(grad, constant(np.float32(0.1))))
    made, _ = set_precision(Graph("step", (w, x), (stepped,), updates=((0, 0),)), NEW, Precision("O2"))
    assert types(made) == {"matmul": "f16", "mul": "f32", "sub": "f32"}
    assert made.updates == ((0, 0),)


def test_an_input_may_come_in_f16_and_a_node_may_keep_its_type():
    made, _ = set_precision(net(), OLD, parse_precision("force_fp16,input_fp16=x,keep=OpType::Exp"))
    assert made.params[0].dtype == f16
    assert types(made) == {"matmul": "f16", "relu": "f16", "exp": "f32", "softmax": "f16"}


def test_lists_change_by_the_file_of_atc(tmp_path):
    path = tmp_path / "mix.json"
    path.write_text(json.dumps({"black-list": {"to-remove": ["Exp"]}, "white-list": {"to-add": ["Exp", "Softmax"]}}))
    made, _ = set_precision(net(), NEW, parse_precision(f"allow_mix_precision,mixlist={path}"))
    assert types(made) == {"matmul": "f16", "relu": "f16", "exp": "f16", "softmax": "f16"}
    path.write_text(json.dumps({"black-list": {"to-add": ["MatMul"]}}))
    made, _ = set_precision(net(), NEW, parse_precision(f"allow_mix_precision,mixlist={path}"))
    assert types(made)["matmul"] == "f32"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{", "must be JSON"),
        ('{"red-list": {}}', "lists must be black-list"),
        ('{"black-list": {"add": []}}', "must hold to-add and to-remove"),
        ('{"black-list": {"to-add": [1]}}', "must be a list of operator types"),
        ('{"black-list": {"to-add": ["Exp"]}, "white-list": {"to-add": ["Exp"]}}', "added to one list, got Exp"),
    ],
)
def test_a_file_of_lists_that_is_wrong_says_what(tmp_path, text, what):
    path = tmp_path / "mix.json"
    path.write_text(text)
    with pytest.raises(CompileError, match=what) as error:
        parse_precision(f"allow_mix_precision,mixlist={path}")
    assert error.value.code == "npu-precision"


@pytest.mark.parametrize(
    ("soc", "text", "way"),
    [
        ("310P3", "allow_mix_precision_bf16", "use allow_mix_precision_fp16"),
        ("910A", "allow_fp32_to_bf16", "use allow_fp32_to_fp16"),
        ("310P3", "must_keep_origin_dtype,hf32=on", "leave hf32 out"),
        ("910B4", "force_fp16,hf32=on", "use must_keep_origin_dtype,hf32=on"),
        ("310P3", "force_fp16,infnan", "leave infnan out"),
        ("310P3", "O2,bf16", "leave bf16 out"),
        ("910A", "O3,keep_batchnorm_fp32=off", "use O2,keep_batchnorm_fp32=off"),
        ("910B4", "force_fp16,bf16", "or O2,bf16"),
        ("910B4", "must_keep_origin_dtype,keep=conv1", "leave keep out"),
        ("950PR_9599", "force_fp16,saturate", "leave saturate out"),
    ],
)
def test_settings_that_contradict_name_the_way_out(soc, text, way):
    with pytest.raises(CompileError, match=way) as error:
        check_precision(parse_precision(text), find_chip(soc))
    assert error.value.code == "npu-precision"


@pytest.mark.parametrize("text", ["force_fp16,infnan,saturate", "origin,hf32,hf32=off", "O2,deterministic=off,deterministic"])
def test_switches_that_contradict_each_other_are_both_named(text):
    with pytest.raises(CompileError, match=r"must not contradict each other, got .* and "):
        parse_precision(text)
    assert parse_precision("origin,hf32,hf32=on,keep=a,keep=b").keep == {"a", "b"}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("keep=sofmax", "did you mean softmax"), ("keep=OpType::Sofmax", "did you mean OpType::Softmax"), ("input_fp16=y", "for example x"),
    ],
)  # fmt: skip
def test_a_name_that_the_model_lacks_is_an_error(text, what):
    named = net()
    for good in ("keep=OpType::Exp", "keep=OpType::MatMulV2", "input_fp16=x"):
        check_names(parse_precision(f"force_fp16,{good}"), OLD, [named])
    x = apply(ops.Softmax(), param("x", f32t(2, 2)), loc=Loc("", 0, "softmax (Softmax)"))
    with pytest.raises(CompileError, match=f"(?s)must name .*{what}"):
        check_names(parse_precision(f"force_fp16,{text}"), OLD, [Graph("g", x.inputs, (x,))])


@pytest.mark.parametrize("text", ["force_fp17", "fp16,fast", "fp16,hf32=maybe"])
def test_a_misspelt_setting_names_those_that_exist(text):
    with pytest.raises(CompileError, match=r"(?s)must be one of") as error:
        parse_precision(text)
    assert error.value.code == "npu-precision"


def test_f32_products_cannot_be_kept_on_a_cube_without_them():
    with pytest.raises(CompileError, match=r"(?s)matmul must keep f32, got a cube that multiplies f16, i8 only.*allow_fp32_to_fp16"):
        set_precision(net(), OLD, Precision("must_keep_origin_dtype"))


def test_a_model_of_bf16_does_not_fit_a_chip_without():
    with pytest.raises(CompileError, match="export the model in f16"):
        set_precision(net(bf16), OLD, Precision())
    made, facts = set_precision(net(bf16), NEW, Precision("must_keep_origin_dtype"))
    assert set(types(made).values()) == {"bf16"}
    assert facts == ()


def test_hf32_is_cann_s_default_of_convolutions_only():
    x = param("x", f32t(1, 4, 4, 4))
    conv = ops.Conv((1, 1), (0, 0), (0, 0), (1, 1))(x, constant(np.ones((4, 4, 1, 1), np.float32)))
    product = ops.MatMul()(conv, conv)
    said = {text: [uses_hf32(n, NEW, parse_precision(f"origin{text}")) for n in (conv, product)] for text in ("", ",hf32", ",hf32=off")}
    assert said == {"": [True, False], ",hf32": [True, True], ",hf32=off": [False, False]}
    assert not uses_hf32(conv, OLD, Precision())


@pytest.mark.parametrize("mode", [*MODES, *SYNONYMS])
def test_every_mode_reads_back(mode):
    assert parse_precision(str(parse_precision(mode))) == parse_precision(mode)
