"""Advice: what is promised is what comes when a person makes the change by hand: other options, another graph."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.tools.helpers import small_network

from jumar.base import CompileError, TensorType, f32, i8, i32, i64
from jumar.compiler import Advice, TwinOptions, advise, forecast
from jumar.compiler.passes.switches import Switches
from jumar.compiler.twin.advice import PER_SAMPLE
from jumar.device.npu import Chip, find_chip
from jumar.frontend import load
from jumar.ir import Graph, Node, constant, param
from jumar.operators import (
    Add,
    Attention,
    Cast,
    Conv,
    CumSum,
    Dequantize,
    Gather,
    LayerNorm,
    MatMul,
    Mul,
    Quantize,
    ReduceMax,
    Relu,
    Sigmoid,
    Silu,
    Softmax,
    Transpose,
)

CHIP = find_chip("Ascend910B4")


def weights(*shape: int) -> Node:
    return constant(np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32))


def floats(name: str, *shape: int) -> Node:
    return param(name, TensorType(shape, f32))


def layers(width: int, rows: int = 64, count: int = 4) -> Graph:
    """A perceptron whose layers are so wide."""
    x = floats("x", rows, 512)
    y = x
    for i in range(count):
        y = Relu()(Add()(MatMul()(y, weights(512 if not i else width, width)), weights(width)))
    return Graph("layers", (x,), (MatMul()(y, weights(width, 256)),))


def item(graph: Graph, kind: str, options: TwinOptions | None = None, chip: Chip = CHIP) -> Advice:
    found = {a.kind: a for a in advise(forecast(graph, chip, options), least_percent=-1000.0, sure=0)}
    assert kind in found, f"{kind} must be among the advice, got {list(found)}"
    return found[kind]


def check(advice: Advice, by_hand: float) -> None:
    """What a person gets who makes the change is what was promised, within a tenth of the gain; so is what `apply` says."""
    assert advice.before - by_hand == pytest.approx(advice.gain, rel=0.1, abs=0.02 * advice.before)
    again = advice.apply().timeline.latency_us
    if advice.what != PER_SAMPLE:
        assert again == pytest.approx(advice.after, rel=0.01)
    assert advice.low_percent <= advice.percent <= advice.high_percent


def test_a_larger_batch_gains_as_promised(tmp_path: Path) -> None:
    model = load(small_network(tmp_path / "small.onnx"))
    advice = item(model.graph(dims={"batch": 1}), "batch")
    assert "batch of 16" in advice.command
    check(advice, forecast(model.graph(dims={"batch": 16}), CHIP).timeline.latency_us / 16)
    assert advice.percent > 50


def test_a_smaller_batch_makes_a_model_fit_as_promised() -> None:
    def wide(batch: int) -> Graph:
        x = floats("x", batch, 1 << 20)
        return Graph("wide", (x,), (Add()(Relu()(x), weights(1)),))

    found = forecast(wide(1 << 14), CHIP)
    assert not found.memory.fits
    advice = item(wide(1 << 14), "memory")
    by_hand = forecast(wide(int(advice.title.split()[-1])), CHIP).memory
    assert by_hand.fits
    assert advice.after == by_hand.needed_nbytes
    assert advice.unit == "bytes"


def test_fp16_gains_as_promised() -> None:
    graph = layers(1024)
    slow = TwinOptions()
    slow = replace(slow, precision=replace(slow.precision, mode="force_fp32"))
    advice = item(graph, "precision", slow)
    assert "--precision" in advice.command
    check(advice, forecast(graph, CHIP, replace(slow, precision=advice.change.options.precision)).timeline.latency_us)
    assert advice.percent > 0


def test_sinking_the_graph_gains_as_promised() -> None:
    graph = layers(64)
    advice = item(graph, "sink", TwinOptions(mode="eager"))
    check(advice, forecast(graph, CHIP, TwinOptions(mode="sunk")).timeline.latency_us)
    assert advice.percent > 30
    assert not [a for a in advise(forecast(graph, CHIP)) if a.kind == "sink"]


def test_a_rule_that_is_switched_off_gains_as_promised() -> None:
    graph = layers(1024)
    on = forecast(graph, CHIP)
    rule = next(g.rule for g in on.fusion.groups if g.rule)
    advice = item(graph, "fuse", TwinOptions(switches=Switches(off=frozenset({rule}))))
    assert rule in advice.command
    check(advice, on.timeline.latency_us)


def test_autofuse_gains_as_promised() -> None:
    x = floats("x", 1024, 4096)
    y = x
    for i in range(12):
        y = Mul()(Sigmoid()(Add()(y, constant(np.float32(i)))), y)
    graph = Graph("chain", (x,), (y,))
    advice = item(graph, "autofuse")
    check(advice, forecast(graph, CHIP, TwinOptions(autofuse=True)).timeline.latency_us)


def test_attention_as_one_operator_gains_as_promised() -> None:
    q, k, v = (floats(n, 4, 12, 512, 64) for n in "qkv")
    explicit = MatMul()(Softmax(3)(MatMul()(q, Transpose((0, 1, 3, 2))(k))), v)
    advice = item(Graph("explicit", (q, k, v), (explicit,)), "attention")
    whole = Graph("whole", (q, k, v), (Attention(scale=1.0)(q, k, v),))
    check(advice, forecast(whole, CHIP).timeline.latency_us)
    assert advice.percent > 0


def test_narrow_integers_gain_as_promised() -> None:
    def lookup(dtype) -> Graph:
        at = param("at", TensorType((64, 128), dtype))
        return Graph("lookup", (at,), (Gather(0)(weights(1000, 64), CumSum(1)(at)),))

    advice = item(lookup(i64), "dtype", chip=find_chip("Ascend310P3"))
    check(advice, forecast(lookup(i32), find_chip("Ascend310P3")).timeline.latency_us)


def test_an_input_in_the_models_order_gains_as_promised() -> None:
    plain = {"strides": (2, 2), "pads_low": (1, 1), "pads_high": (1, 1), "dilations": (1, 1)}
    last, first = floats("x", 8, 256, 256, 3), floats("x", 8, 3, 256, 256)
    made = [Conv(**plain)(x, weights(32, 3, 3, 3)) for x in (Transpose((0, 3, 1, 2))(last), first)]
    advice = item(Graph("last", (last,), (made[0],)), "transpose")
    check(advice, forecast(Graph("first", (first,), (made[1],)), CHIP).timeline.latency_us)
    assert advice.percent > 0


def test_padded_features_gain_as_promised() -> None:
    advice = item(layers(1001, rows=1024), "padding")
    assert "1001 → 1008" in advice.command
    check(advice, forecast(layers(1008, rows=1024), CHIP).timeline.latency_us)


def test_codes_of_8_bits_gain_as_promised() -> None:
    def narrow(x: Node) -> Node:
        scale, zero = constant(np.float32(0.1)), constant(np.int8(3))
        return Dequantize()(Quantize(i8)(x, scale, zero), scale, zero)

    x = floats("x", 2048, 2048)
    y = z = x
    for _ in range(3):
        codes = constant(np.random.default_rng(0).integers(-127, 127, (2048, 2048)).astype(np.int8))
        y = MatMul()(y, weights(2048, 2048))
        z = MatMul()(narrow(z), Dequantize()(codes, constant(np.float32(0.01)), constant(np.int8(0))))
    advice = item(Graph("floats", (x,), (y,)), "int8")
    check(advice, forecast(Graph("codes", (x,), (z,)), CHIP).timeline.latency_us)


def test_the_model_before_it_was_quantised_gains_as_promised() -> None:
    x = floats("x", 64, 64)
    scale, zero = constant(np.float32(0.1)), constant(np.int8(0))
    y, z = x, x
    for _ in range(3):
        codes = constant(np.random.default_rng(0).integers(-127, 127, (64, 64)).astype(np.int8))
        wide = Dequantize()(codes, constant(np.float32(0.01)), zero)
        y = Silu()(MatMul()(Dequantize()(Quantize(i8)(y, scale, zero), scale, zero), wide))
        z = Silu()(MatMul()(z, weights(64, 64)))
    advice = item(Graph("codes", (x,), (y,)), "float")
    check(advice, forecast(Graph("floats", (x,), (z,)), CHIP).timeline.latency_us)
    assert advice.percent > 0


def test_an_operator_off_the_ai_cpu_gains_as_promised() -> None:
    def total(inner) -> Graph:
        x = param("x", TensorType((8, 400, 400), i64))
        y = ReduceMax((2,))(Cast(inner)(x) if inner else x)
        return Graph("total", (x,), (Cast(i64)(y) if inner else y,))

    old = find_chip("Ascend310P3")
    advice = item(total(None), "unit", chip=old)
    assert "cast the inputs of reduce_max to i32" in advice.command
    check(advice, forecast(total(i32), old).timeline.latency_us)
    assert advice.percent > 0


def test_rows_that_need_no_change_of_format_gain_as_promised() -> None:
    def block(rows: int) -> Graph:
        x = floats("x", 8, rows, 768)
        y = x
        for _ in range(2):
            norm = LayerNorm(2, 1e-5)(y, weights(768), weights(768))
            y = MatMul()(norm, weights(768, 768))
        return Graph("block", (x,), (y,))

    old = find_chip("Ascend310P3")
    advice = item(block(207), "rows", chip=old)
    assert advice.command.startswith("pad x from 207 to 208")
    check(advice, forecast(block(208), old).timeline.latency_us)
    assert advice.percent > 5


def test_an_output_that_keeps_its_format_gains_as_promised() -> None:
    x = floats("x", 4, 64, 64, 64)
    plain = {"strides": (1, 1), "pads_low": (1, 1), "pads_high": (1, 1), "dilations": (1, 1)}
    graph = Graph("image", (x,), (Conv(**plain)(x, weights(255, 64, 3, 3)),))
    found = forecast(graph, CHIP)
    advice = item(graph, "layout")
    assert "--is_output_adjust_hw_layout" in advice.command
    last = max(i for i, launch in enumerate(found.launches) if launch.task.kind == "TransData")
    spared = found.predictions[last].time_us
    assert advice.gain == pytest.approx(spared, rel=0.1, abs=2)
    assert len(advice.apply().launches) == len(found.launches) - 1


def test_what_gains_little_is_not_said_and_the_largest_gain_is_first() -> None:
    found = advise(forecast(layers(1000), CHIP))
    assert all(a.percent >= 1 and a.percent >= 0.15 * (a.high_percent - a.low_percent) for a in found)
    assert [a.percent for a in found] == sorted((a.percent for a in found), reverse=True)


def test_a_change_that_the_chip_refuses_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    found = forecast(layers(64, rows=1), CHIP)
    kinds = {a.kind for a in advise(found)}

    def refused(self: object) -> None:
        raise CompileError("refused", code=code)

    monkeypatch.setattr("jumar.compiler.twin.advice.Change.forecast", refused)
    code = "npu-operator"
    assert kinds
    assert advise(found) == ()
    code = "our-bug"
    with pytest.raises(CompileError):
        advise(found)
