"""What a chip's arithmetic does to graphs: planted overflows are found and named, errors are charged where they arise."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import jumar
from jumar.base import Array, CompileError, DeviceError, DType, IRError, Loc, OpError, bf16, f16, f32, i8, type_of
from jumar.compiler import Findings, NodeNumerics, device_numerics, run_precision
from jumar.compiler.passes.precision import parse_precision
from jumar.device.npu import find_chip, hf32
from jumar.ir import REGISTRY, Constant, Graph, Node, apply, constant, f32t, interpret, located, param, tensor
from jumar.operators import (
    Cast,
    Dequantize,
    Gelu,
    LayerNorm,
    MatMul,
    Quantize,
    ReduceMean,
    ReduceSum,
    Softmax,
    add,
    div,
    exp,
    mul,
    square,
    sub,
)


def narrow(graph: Graph, dtype: DType = f16) -> Graph:
    """The graph with every fp32 value in a narrower type, between casts of its inputs, constants and outputs."""
    new: dict[Node, Node] = {}
    for n in graph.nodes:
        if n in graph.params or isinstance(n.op, Constant):
            new[n] = Cast(dtype)(n) if n.dtype is f32 else n
        else:
            new[n] = apply(Cast(dtype) if n.op == Cast(f32) else n.op, *(new[i] for i in n.inputs), loc=n.loc)
    return graph.with_outputs(Cast(f32)(new[o]) for o in graph.outputs)


def built(build: Callable[..., Node], *shapes: tuple[int, ...], dtype: DType | None = f16) -> Graph:
    params = tuple(param(f"x{i}", f32t(*s)) for i, s in enumerate(shapes))
    graph = Graph("g", params, (build(*params),), ("y",))
    return graph if dtype is None else narrow(graph, dtype)


def node(findings: Findings, op: str) -> NodeNumerics:
    return next(n for n in findings.nodes if n.op == op)


def unsafe_softmax(x: Node) -> Node:
    e = exp(x)
    return div(e, ReduceSum((1,), keepdims=True)(e))


LOGITS = np.random.default_rng(0).normal(0, 1, (4, 8)).astype(np.float32)
LOGITS[1, 2] = 14.0  # exp(14) is 1.2e6
TWO = LOGITS.copy()
TWO[1, 5] = 12.0  # exp(12) is 1.6e5: saturation makes them equal


def onnx_softmax(path: Path) -> Path:
    nodes = [
        helper.make_node("Exp", ["x"], ["e"], name="attention/Exp"),
        helper.make_node("ReduceSum", ["e", "axes"], ["s"], name="attention/Sum", keepdims=1),
        helper.make_node("Div", ["e", "s"], ["y"], name="attention/Div"),
    ]
    kind = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4, 8]) for n in ("x", "y")]
    axes = helper.make_tensor("axes", TensorProto.INT64, [1], [1])
    graph = helper.make_graph(nodes, "softmax", kind[:1], kind[1:], [axes])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.mark.parametrize("soc", ["910B4", "910A", "310P3", "310", "950PR_9599"])
def test_the_overflow_of_a_handwritten_softmax_is_found_and_its_onnx_node_named(tmp_path: Path, soc: str) -> None:
    graph = jumar.load(str(onnx_softmax(tmp_path / "softmax.onnx"))).graph(LOGITS)
    findings = device_numerics(narrow(graph), [LOGITS], find_chip(soc))
    first = findings.first_overflow
    assert first is not None and "attention/Exp" in first.name and first.overflows == 1
    assert first.largest == pytest.approx(math.exp(14), rel=1e-5) and first.filled > 18
    assert findings.worst[0] is first
    assert "attention/Exp" in findings.advice[0] and "largest value" in findings.advice[0]
    assert any("attention/Sum" in name for name in findings.candidates[0].nodes)
    assert not any("attention/Sum" in n.name and n.overflows for n in findings.nodes) or soc in ("910A", "310P3", "310")


def test_infinities_break_the_output_and_saturation_changes_it_in_silence() -> None:
    graph = built(unsafe_softmax, (4, 8))
    new = device_numerics(graph, [TWO], find_chip("910B4"))
    old = device_numerics(graph, [TWO], find_chip("910A"))
    assert new.outputs[0].broken > 0
    assert old.outputs[0].broken == 0 and old.outputs[0].error > 0.1
    assert "saturates" in old.mode and any("no inf or nan shows it" in line for line in old.advice)


def test_to_keep_the_nodes_that_overflow_in_fp32_is_tried_and_helps() -> None:
    findings = device_numerics(built(unsafe_softmax, (4, 8)), [TWO], find_chip("910B4"))
    (candidate,) = findings.candidates
    assert [name.split()[0] for name in candidate.nodes] == ["exp", "reduce_sum", "div"]
    assert math.isinf(candidate.before) and candidate.after is not None and candidate.after < 1e-3
    assert candidate.helps


def test_a_candidate_is_not_tried_where_no_trial_is_wanted() -> None:
    findings = device_numerics(built(unsafe_softmax, (4, 8)), [TWO], find_chip("910B4"), trials=0)
    assert findings.candidates[0].after is None


def test_softmax_as_one_operator_does_not_overflow() -> None:
    for soc in ("910B4", "910A", "310"):
        findings = device_numerics(built(Softmax(1), (4, 8)), [TWO], find_chip(soc))
        assert findings.first_overflow is None and findings.outputs[0].error < 2e-3


def test_bf16_has_the_range_but_fewer_bits() -> None:
    findings = device_numerics(built(unsafe_softmax, (4, 8), dtype=bf16), [LOGITS], find_chip("910B4"))
    assert findings.first_overflow is None
    assert 1e-3 < findings.outputs[0].error < 3e-2


def test_bf16_on_a_chip_without_it_is_refused() -> None:
    with pytest.raises(DeviceError, match="element type must be one that Ascend910A has, got bf16") as error:
        device_numerics(built(unsafe_softmax, (4, 8), dtype=bf16), [LOGITS], find_chip("910A"))
    assert error.value.code == "soc-mode"


def test_in_fp32_nothing_differs() -> None:
    findings = device_numerics(built(unsafe_softmax, (4, 8), dtype=None), [LOGITS], find_chip("910B4"))
    assert findings.outputs[0].error == 0 and not findings.worst and not findings.candidates


def test_what_overflows_in_fp32_too_is_said_to_be_the_models_own() -> None:
    x = LOGITS * 100
    findings = device_numerics(built(unsafe_softmax, (4, 8), dtype=None), [x], find_chip("910B4"))
    assert node(findings, "exp").unbounded > 0 and findings.first_overflow is None
    assert any("not the chip" in line for line in findings.advice)


def test_an_error_is_charged_to_the_node_where_it_arises_and_its_growth_to_the_one_that_cancels() -> None:
    """x*3 rounds; the difference of near numbers is exact but makes that rounding a hundred times as large."""
    x = np.linspace(1, 1.01, 32, dtype=np.float32).reshape(4, 8)
    findings = device_numerics(built(lambda x: sub(mul(x, 3.0), 3.0), (4, 8)), [x], find_chip("910B4"))
    product, difference = node(findings, "mul"), node(findings, "sub")
    assert product.born < 5e-4 and difference.born < 5e-4
    assert difference.error > 20 * product.error and difference.grown > 20
    assert findings.worst[0] is difference
    assert any("sub" in name for c in findings.candidates for name in c.nodes)


def test_keeping_the_cancelling_node_and_its_sources_in_fp32_removes_the_error() -> None:
    x = np.linspace(1, 1.01, 32, dtype=np.float32).reshape(4, 8)
    findings = device_numerics(built(lambda x: sub(mul(x, 3.0), 3.0), (4, 8)), [x], find_chip("910B4"))
    assert any(c.after is not None and c.after < 0.1 * c.before for c in findings.candidates)


def test_a_product_accumulates_in_fp32_and_rounds_once() -> None:
    rng = np.random.default_rng(1)
    x, w = rng.normal(0, 1, (8, 512)).astype(np.float16), rng.normal(0, 1, (512, 8)).astype(np.float16)
    a, b = param("x", tensor(f16, 8, 512)), param("w", tensor(f16, 512, 8))
    graph = Graph("g", (a, b), (MatMul()(a, b),))
    findings = device_numerics(graph, [x, w], find_chip("910B4"))
    (wanted,) = interpret(graph, [x, w])
    assert findings.outputs[0].error < 3e-4
    exact = x.astype(np.float64) @ w.astype(np.float64)
    assert np.linalg.norm(wanted - exact) / np.linalg.norm(exact) == pytest.approx(findings.outputs[0].error, rel=0.05)


def test_a_bias_is_added_in_fp32_before_the_product_is_rounded() -> None:
    rng = np.random.default_rng(7)
    x, w = rng.normal(0, 1, (4, 8)).astype(np.float32), rng.normal(0, 1, (8, 8)).astype(np.float32)
    bias = (-(x @ w)[0]).astype(np.float32)  # the first row nearly vanishes: a product that was rounded before would show
    p = param("x", f32t(4, 8))
    graph = narrow(Graph("g", (p,), (add(MatMul()(p, constant(w)), constant(bias)),), ("y",)))
    findings = device_numerics(graph, [x], find_chip("910B4"))
    half = [v.astype(np.float16).astype(np.float32) for v in (x, w, bias)]
    wanted = (half[0] @ half[1] + half[2]).astype(np.float16).astype(np.float32)
    exact = x @ w + bias
    assert node(findings, "matmul").born == 0
    assert findings.outputs[0].max_error == pytest.approx(np.abs(wanted - exact).max(), rel=1e-3)


def test_a_product_past_the_range_is_no_overflow_where_the_bias_brings_it_back() -> None:
    p = param("x", f32t(4, 8))
    y = add(MatMul()(p, constant(np.full((8, 8), 1e3, np.float32))), constant(np.full(8, -6e4, np.float32)))
    findings = device_numerics(narrow(Graph("g", (p,), (y,), ("y",))), [np.full((4, 8), 10.0, np.float32)], find_chip("910B4"))
    assert findings.first_overflow is None and findings.outputs[0].broken == 0


def test_hf32_is_what_the_mode_costs_and_is_charged_to_the_product() -> None:
    rng = np.random.default_rng(2)
    x, w = (rng.normal(0, 1, s).astype(np.float32) for s in ((8, 64), (64, 8)))
    graph = built(MatMul(), (8, 64), (64, 8), dtype=None)
    on = node(device_numerics(graph, [x, w], find_chip("910B4"), hf32=True), "matmul")
    off = device_numerics(graph, [x, w], find_chip("910B4"), hf32=False).outputs[0]
    assert off.error == 0
    wanted = hf32(x) @ hf32(w)
    assert on.error == on.born == pytest.approx(np.linalg.norm(wanted - x @ w) / np.linalg.norm(x @ w), rel=0.05)
    assert 5e-5 < on.error < 3e-4


def test_a_cube_without_fp32_takes_it_as_fp16() -> None:
    rng = np.random.default_rng(2)
    x, w = (rng.normal(0, 1, s).astype(np.float32) for s in ((8, 64), (64, 8)))
    graph = built(MatMul(), (8, 64), (64, 8), dtype=None)
    assert 1e-4 < node(device_numerics(graph, [x, w], find_chip("310P3")), "matmul").born < 1e-3


def test_a_mask_of_huge_negative_numbers_is_told_from_an_overflow() -> None:
    mask = constant(np.where(np.eye(4, 8, dtype=bool), -3e38, 0).astype(np.float32))
    findings = device_numerics(built(lambda x: Softmax(1)(add(x, mask)), (4, 8)), [LOGITS], find_chip("910B4"))
    first = findings.first_overflow
    assert first is not None and first.mask
    assert findings.outputs[0].broken == 0 and any("fill with -1e4" in line for line in findings.advice)


@pytest.mark.parametrize(
    "build, largest, words",
    [
        (lambda x: mul(x, 1e-3), 1e5, "the value itself is beyond the type"),
        (lambda x: mul(x, 1e5), 0.1, "the weights are beyond the type"),
        (square, 300.0, "keep the sum of squares in fp32"),
        (lambda x: ReduceSum((1,))(square(x)), 200.0, "keep the sum of squares in fp32"),
        (lambda x: ReduceSum((1,))(mul(x, x)), 200.0, "keep the sum of squares in fp32"),
        (ReduceSum((1,)), 3e4, "scale down what is summed"),
        (lambda x: ReduceSum((1,))(exp(x)), 10.5, "subtract the row's largest value before exp"),
        (lambda x: MatMul()(x, constant(np.full((8, 8), 100.0, np.float32))), 100.0, "scale an input before the product"),
    ],
)
def test_advice_fits_what_overflows(build: Callable[[Node], Node], largest: float, words: str) -> None:
    p = param("x", f32t(4, 8))
    graph = Graph("g", (p,), (build(p),), ("y",))
    findings = run_precision(graph, [np.full((4, 8), largest, np.float32)], find_chip("910B4"), parse_precision("force_fp16"))
    assert words in findings.advice[0]


def test_steps_in_fp16_find_the_overflow_inside_a_kernel() -> None:
    x = np.random.default_rng(3).normal(0, 400, (4, 8)).astype(np.float32)
    graph = built(LayerNorm(), (4, 8), (8,))
    inputs: list[Array] = [x, np.ones(8, np.float32)]
    wide = device_numerics(graph, inputs, find_chip("910A"))
    narrow_ = device_numerics(graph, inputs, find_chip("910A"), steps=True)
    assert wide.first_overflow is None
    first = narrow_.first_overflow
    assert first is not None and first.op == "layer_norm" and first.step == "square"
    assert narrow_.outputs[0].error > 10 * wide.outputs[0].error


def test_steps_lose_more_than_one_rounding() -> None:
    graph, x = built(Gelu(), (4, 8)), [LOGITS]
    once, often = (device_numerics(graph, x, find_chip("910B4"), steps=s).outputs[0].error for s in (False, True))
    assert once < often < 30 * once


def test_underflow_is_counted() -> None:
    x = np.full((4, 8), 1e-5, np.float32)
    findings = device_numerics(built(lambda x: square(mul(x, 1.0)), (4, 8)), [x], find_chip("910B4"))
    assert node(findings, "square").zeros == 32 and node(findings, "mul").subnormals == 32
    assert any("become 0 in f16" in line for line in findings.advice)


def test_what_underflows_beside_large_neighbours_is_worth_no_advice_but_in_training() -> None:
    x = np.full((4, 8), 1e-5, np.float32)
    x[0] = 1.0
    graph = built(lambda x: square(mul(x, 1.0)), (4, 8))
    findings = device_numerics(graph, [x], find_chip("910B4"))
    assert node(findings, "square").zeros == 24 and not findings.advice
    step = Graph("step", graph.params, graph.outputs, graph.output_names, updates=((0, 0),))
    assert any("a loss scale lifts gradients" in line for line in device_numerics(step, [x], find_chip("910B4")).advice)


def test_outputs_that_are_all_near_zero_are_within_though_far_off_for_their_size() -> None:
    x = np.full((4, 8), 1e-7, np.float32)
    findings = device_numerics(built(lambda x: mul(x, 1.0), (4, 8)), [x], find_chip("910B4"))
    assert findings.outputs[0].error > 0.1 and findings.within


def test_a_mean_of_squares_overflows_where_it_is_written_out() -> None:
    x = np.full((4, 8), 300.0, np.float32)
    findings = device_numerics(built(lambda x: ReduceMean((1,), keepdims=True)(square(x)), (4, 8)), [x], find_chip("910B4"))
    assert findings.first_overflow is not None and findings.first_overflow.op == "square"


def test_integers_are_exact() -> None:
    a, b = param("x", tensor(i8, 4, 8)), param("w", tensor(i8, 8, 4))
    graph = Graph("g", (a, b), (MatMul()(a, b),))
    rng = np.random.default_rng(0)
    findings = device_numerics(graph, [rng.integers(-128, 128, s).astype(np.int8) for s in ((4, 8), (8, 4))], find_chip("310P3"))
    assert findings.outputs[0].wrong == 0 and findings.nodes == ()


def test_decisions_that_change_are_counted_and_ties_are_none() -> None:
    def agreement(x: Array) -> float | None:
        findings = device_numerics(built(lambda x: sub(mul(x, 1.0), 1.0), (2, 2)), [x], find_chip("910B4"))
        return findings.outputs[0].agreement

    assert agreement(np.array([[1.0, 1.0001], [3.0, 2.0]], np.float32)) == 0.5  # 0 and 1e-4 are both 0 in fp16
    assert agreement(np.array([[2.0, 2.0001], [3.0, 2.0]], np.float32)) == 1.0


def test_findings_are_a_json_document_with_places() -> None:
    with located(Loc("net.py", 12, "Net.attention")):
        graph = built(unsafe_softmax, (4, 8))
    findings = device_numerics(graph, [TWO], find_chip("910B4"))
    text = json.dumps(findings.document(), allow_nan=False)
    document = json.loads(text)
    first = next(n for n in document["nodes"] if n["number"] == document["first_overflow"])
    assert (first["op"], first["name"], first["place"]) == ("exp", "Net.attention", "net.py:12")
    assert document["candidates"][0]["before"] == "inf"


def test_inputs_must_fit() -> None:
    with pytest.raises(IRError, match=r"input param\(label='x0'\) must be f32\[4, 8\], got \[4\]|input x0"):
        device_numerics(built(unsafe_softmax, (4, 8)), [np.ones(4, np.float32)], find_chip("910B4"))


# ------------------------------------------------------------------------------------------------------------------ with a precision mode
def weighted(weights: Array, mask: Array | None = None) -> Graph:
    x = param("x", f32t(4, 8))
    y = MatMul()(x, constant(weights))
    return Graph("g", (x,), (y if mask is None else Softmax(1)(add(y, constant(mask))),), ("y",))


def test_the_rounding_of_weights_is_charged_to_the_constant() -> None:
    weights = np.random.default_rng(5).normal(0, 1, (8, 8)).astype(np.float32)
    findings = run_precision(weighted(weights), [LOGITS], find_chip("310P3"), parse_precision("force_fp16"))
    rounding = np.linalg.norm(weights.astype(np.float16) - weights) / np.linalg.norm(weights)
    assert node(findings, "constant").born == pytest.approx(rounding, rel=1e-3)
    exact = LOGITS.astype(np.float64) @ weights
    computed = (LOGITS.astype(np.float16).astype(np.float32) @ weights.astype(np.float16).astype(np.float32)).astype(np.float16)
    assert findings.outputs[0].error == pytest.approx(np.linalg.norm(computed - exact) / np.linalg.norm(exact), rel=0.02)


def test_a_constant_beyond_the_range_is_found_though_it_was_cast_before_the_run() -> None:
    weights = np.eye(8, dtype=np.float32)
    mask = np.where(np.eye(4, 8, dtype=bool), np.finfo(np.float32).min, 0).astype(np.float32)
    findings = run_precision(weighted(weights, mask), [LOGITS], find_chip("910B4"), parse_precision("force_fp16"))
    first = findings.first_overflow
    assert first is not None and first.op == "constant" and first.mask and first.overflows == 4
    assert findings.within
    big = run_precision(weighted(weights * 1e5), [LOGITS], find_chip("910B4"), parse_precision("force_fp16"))
    assert big.first_overflow is not None and big.first_overflow.op == "constant" and not big.first_overflow.mask and not big.within


def masked_scores() -> Graph:
    """As exporters write attention's mask: (1 - m) times the least number, added to the scores."""
    x, m = param("x", f32t(4, 8)), param("m", f32t(4, 8))
    with located(Loc("m.onnx", 0, "fill")):
        fill = mul(sub(constant(np.float32(1)), m), float(np.finfo(np.float32).min))
    return Graph("g", (x, m), (Softmax(1)(add(x, fill)),), ("y",))


def test_a_mask_that_is_multiplied_by_its_fill_gives_no_number_where_there_are_infinities() -> None:
    m = np.ones((4, 8), np.float32)
    m[:, 6:] = 0
    new = run_precision(masked_scores(), [LOGITS, m], find_chip("910B4"), parse_precision("force_fp16"))
    assert new.outputs[0].broken == 32 and not new.within
    assert "the fill of a mask becomes infinite" in new.summary
    assert new.candidates[0].helps and new.candidates[0].after is not None and new.candidates[0].after < 1e-2
    assert any("fill with -1e4" in line for line in new.advice)
    old = run_precision(masked_scores(), [LOGITS, m], find_chip("910A"), parse_precision("force_fp16"))
    assert old.within and old.summary.startswith("nothing overflows")


def test_a_candidate_does_in_truth_what_its_trial_says() -> None:
    """The names that it gives, given to the precision mode, have the same effect."""
    x = param("x", f32t(4, 8))
    values: list[Node] = [x]
    for name, build in (("scale", lambda v: mul(v, 1.0)), ("exp (Exp)", exp)):  # as importers write the operator behind
        with located(Loc("m.onnx", 0, name)):
            values.append(build(values[-1]))
    with located(Loc("m.onnx", 0, "sum")):
        total = ReduceSum((1,), keepdims=True)(values[-1])
    with located(Loc("m.onnx", 0, "div")):
        y = div(values[-1], total)
    graph = Graph("g", (x,), (y,), ("y",))
    before = run_precision(graph, [TWO], find_chip("910B4"), parse_precision("force_fp16"))
    (candidate,) = before.candidates
    assert candidate.keep == ("exp", "sum", "div")
    switches = ",".join(f"keep={name}" for name in candidate.keep)
    after = run_precision(graph, [TWO], find_chip("910B4"), parse_precision(f"force_fp16,{switches}"))
    assert after.first_overflow is None and after.within
    assert after.outputs[0].error == pytest.approx(candidate.after, rel=1e-3)


@pytest.mark.parametrize("mode", ["force_fp32", "allow_fp32_to_fp16", "must_keep_origin_dtype", "O1", "O2"])
def test_modes_that_keep_vector_operators_wide_do_not_overflow(mode: str) -> None:
    x = param("x", f32t(4, 8))
    findings = run_precision(Graph("g", (x,), (unsafe_softmax(x),), ("y",)), [TWO], find_chip("910B4"), parse_precision(mode))
    assert (findings.first_overflow is None) == (mode != "O2")


def test_the_summary_names_the_node_and_the_error() -> None:
    with located(Loc("m.onnx", 0, "attention/Exp")):
        graph = built(unsafe_softmax, (4, 8))
    text = device_numerics(graph, [TWO], find_chip("910A")).summary
    assert "attention/Exp" in text and "65504" in text and "%" in text
    good = device_numerics(built(Softmax(1), (4, 8)), [TWO], find_chip("910A"))
    assert good.within and "nothing overflows" in good.summary


@pytest.mark.parametrize("soc, mode", [("310", "force_fp16"), ("910B4", "allow_mix_precision_bf16")])
def test_every_operator_is_computed_and_told(soc: str, mode: str) -> None:
    """On the examples of its definition; those with a shape that depends on data stand in no graph."""
    computed = 0
    for name, op in REGISTRY.items():
        for example in getattr(op, "samples", ()):
            arrays = example.arrays()
            params = tuple(param(f"x{i}", type_of(a)) for i, a in enumerate(arrays))
            try:
                graph = Graph(name, params, op(**example.attributes)(*params).results)
            except OpError:
                continue
            try:
                found = run_precision(graph, arrays, find_chip(soc), parse_precision(mode), trials=1)
            except (CompileError, DeviceError) as refused:
                if refused.code not in ("npu-precision", "soc-mode"):
                    raise
                continue
            json.dumps(found.document(), allow_nan=False)
            computed += 1
    assert computed > 700


def test_codes_that_rounding_turns_are_counted_and_what_follows_is_not_charged_twice() -> None:
    """A quantized value a hair above the middle between two codes: fp16 moves it to the other one."""
    x = np.full((4, 8), 2.5 + 2.0**-10, np.float32)
    p = param("x", f32t(4, 8))
    scale, zero = constant(np.float32(1.0)), constant(np.int8(0))
    graph = Graph("g", (p,), (Dequantize()(Quantize(i8)(mul(p, 1.0), scale, zero), scale, zero),), ("y",))
    findings = run_precision(graph, [x], find_chip("310P3"), parse_precision("force_fp16"))
    codes, values = node(findings, "quantize"), node(findings, "dequantize")
    assert codes.wrong == 32 and codes.dtype == "i8"
    assert values.grown == pytest.approx(1) and findings.worst[0] is codes
    assert findings.candidates == ()
