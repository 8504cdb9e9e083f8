"""Quantized operators, the standard's and ONNX Runtime's own, against ONNX Runtime: equal but for one code where roundings tie."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import jumar

ort = pytest.importorskip("onnxruntime")

rng = np.random.default_rng(0)


def u8(*shape: int) -> Any:
    return rng.integers(0, 256, shape).astype(np.uint8)


def i8(*shape: int) -> Any:
    return rng.integers(-64, 64, shape).astype(np.int8)  # seven bits: ONNX Runtime saturates pairs of products in 16 bits on AVX2


def f32(*values: float) -> Any:
    return np.array(values[0] if len(values) == 1 else values, np.float32)


def zero(value: int, dtype: Any = np.uint8) -> Any:
    return np.array(value, dtype)


MICROSOFT = "com.microsoft"
A, B, IMAGE = u8(4, 8), u8(8, 5), u8(2, 3, 6, 5)
X = rng.uniform(-2, 2, (4, 8)).astype(np.float32)
WEIGHTS = i8(4, 3, 3, 3)
SCALED = (f32(0.02), zero(120))
RESULT = (f32(0.05), zero(100))

CASES = [
    ("", "QLinearMatMul", (A, *SCALED, B, f32(0.01), zero(99), f32(0.09), zero(128)), {}),
    ("", "QLinearMatMul", (A, *SCALED, i8(8, 5), f32(0.01, 0.02, 0.01, 0.03, 0.01), np.zeros(5, np.int8), f32(0.3), zero(128)), {}),
    ("", "MatMulInteger", (A, B, zero(7), zero(9)), {}),
    ("", "MatMulInteger", (A, i8(8, 5), zero(7), i8(5)), {}),
    ("", "ConvInteger", (IMAGE, u8(4, 3, 3, 3), zero(11)), {"pads": [1, 1, 1, 1]}),
    (
        "",
        "QLinearConv",
        (IMAGE, *SCALED, WEIGHTS, f32(0.01), zero(0, np.int8), f32(0.3), zero(128)),
        {"pads": [1, 0, 1, 2], "strides": [2, 1]},
    ),
    (
        "",
        "QLinearConv",
        (
            IMAGE,
            *SCALED,
            WEIGHTS,
            f32(0.01, 0.02, 0.03, 0.01),
            np.zeros(4, np.int8),
            f32(0.5),
            zero(9),
            rng.integers(-999, 999, 4).astype(np.int32),
        ),
        {},
    ),
    ("", "DynamicQuantizeLinear", (X,), {}),
    ("", "DynamicQuantizeLinear", (np.zeros((2, 3), np.float32),), {}),
    (MICROSOFT, "QuantizeLinear", (X, f32(0.02), zero(3, np.int8)), {}),
    (MICROSOFT, "DequantizeLinear", (A, *SCALED), {}),
    (MICROSOFT, "QLinearAdd", (A, *SCALED, u8(8), f32(0.03), zero(3), *RESULT), {}),
    (MICROSOFT, "QLinearMul", (A, *SCALED, u8(4, 1), f32(0.03), zero(3), *RESULT), {}),
    (MICROSOFT, "QLinearSigmoid", (A, *SCALED, f32(1 / 256), zero(0)), {}),
    (MICROSOFT, "QLinearLeakyRelu", (A, *SCALED, *RESULT), {"alpha": 0.1}),
    (MICROSOFT, "QLinearGlobalAveragePool", (IMAGE, *SCALED, f32(0.02), zero(100)), {}),
    (MICROSOFT, "QLinearGlobalAveragePool", (IMAGE, *SCALED, f32(0.02), zero(100)), {"channels_last": 1}),
    (MICROSOFT, "QLinearAveragePool", (IMAGE, *SCALED, f32(0.02), zero(100)), {"kernel_shape": [2, 2]}),
    (MICROSOFT, "QLinearAveragePool", (IMAGE, *SCALED, f32(0.02), zero(100)), {"kernel_shape": [2, 3], "channels_last": 1}),
    *(
        (
            MICROSOFT,
            "QLinearConv",
            (image, *SCALED, w, f32(0.01), zero(0, np.int8), f32(0.3), zero(128), *bias),
            {**options, "channels_last": last},
        )
        for last, image in ((0, IMAGE), (1, u8(2, 6, 5, 3)))
        for bias in ((), (rng.integers(-999, 999, 6).astype(np.int32),))
        for w, options in ((i8(6, 3, 3, 3), {"pads": [1, 0, 1, 2], "strides": [2, 1]}), (i8(6, 1, 2, 2), {"group": 3, "dilations": [2, 1]}))
    ),
    (MICROSOFT, "QLinearSoftmax", (A, *SCALED, f32(1 / 256), zero(0)), {"axis": -1, "opset": 13}),
    (MICROSOFT, "QLinearConcat", (*RESULT, A, *SCALED, u8(4, 2), f32(0.01), zero(5)), {"axis": 1}),
    (MICROSOFT, "QLinearWhere", (X > 0, A, *SCALED, u8(8), f32(0.03), zero(3), *RESULT), {}),
    (
        MICROSOFT,
        "QGemm",
        (A, *SCALED, u8(5, 8), f32(0.01), zero(99), rng.integers(-99, 99, 5).astype(np.int32), f32(0.2), zero(128)),
        {"transB": 1, "alpha": 1.5},
    ),
    (MICROSOFT, "QGemm", (A, *SCALED, B, f32(0.01), zero(99)), {}),
    (MICROSOFT, "DynamicQuantizeMatMul", (X, i8(8, 5), f32(0.02), zero(1, np.int8), X[0, :5].copy()), {}),
    (MICROSOFT, "MatMulIntegerToFloat", (A, i8(8, 5), f32(0.02), f32(0.01), zero(120), zero(0, np.int8)), {}),
]


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
@pytest.mark.parametrize("domain, op, inputs, attributes", CASES, ids=[f"{c[1]}-{i}" for i, c in enumerate(CASES)])
def test_quantized_operator_computes_what_onnx_runtime_does(domain, op, inputs, attributes, target) -> None:  # type: ignore[no-untyped-def]
    outputs = ["y", "scale", "zero"] if op == "DynamicQuantizeLinear" else ["y"]
    arrays = {f"x{i}": np.asarray(x) for i, x in enumerate(inputs)}
    node = helper.make_node(op, list(arrays), outputs, domain=domain, **attributes)
    feeds = {n: a for n, a in arrays.items() if a.ndim > 1}  # scales and zero points are weights
    ports = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()]
    initial = [onnx.numpy_helper.from_array(a, n) for n, a in arrays.items() if n not in feeds]
    graph = helper.make_graph([node], "one", ports, [helper.make_empty_tensor_value_info(n) for n in outputs], initial)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13), helper.make_opsetid(MICROSOFT, 1)], ir_version=8)
    expected = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    actual = jumar.load(model, target=target).run(None, feeds)
    for e, a in zip(expected, actual, strict=True):
        assert (e.dtype, e.shape) == (a.dtype, a.shape)
        codes = e.dtype in (np.uint8, np.int8)
        np.testing.assert_allclose(a.astype(np.float64), e.astype(np.float64), rtol=0 if codes else 1e-5, atol=1 if codes else 1e-5)


@pytest.mark.parametrize("weights, w_zero", [(i8, 0), (u8, 128), (u8, 60)], ids=["signed", "centred", "far"])
@pytest.mark.parametrize("op, shape, w_shape, attributes", [
    ("ConvInteger", (1, 8, 7, 6), (12, 8, 3, 3), {"pads": [1, 1, 1, 1]}),
    ("ConvInteger", (1, 8, 7, 6), (8, 1, 3, 3), {"pads": [1, 1, 1, 1], "group": 8, "strides": [2, 2]}),
    ("ConvInteger", (1, 8, 7, 6), (12, 4, 3, 3), {"group": 2}),
    ("MatMulInteger", (5, 22), (22, 19), {}),
])  # fmt: skip
def test_known_weights_and_a_zero_point_that_each_run_finds(op, shape, w_shape, attributes, weights, w_zero) -> None:  # type: ignore[no-untyped-def]
    """As dynamic quantization has them: exact."""
    w = weights(*w_shape)
    names = ["x", "w", "x_zero", "w_zero"]
    known = [onnx.numpy_helper.from_array(w, "w"), onnx.numpy_helper.from_array(zero(w_zero, w.dtype), "w_zero")]
    inputs = [
        helper.make_tensor_value_info("x", onnx.TensorProto.UINT8, shape),
        helper.make_tensor_value_info("x_zero", onnx.TensorProto.UINT8, ()),
    ]
    output = helper.make_tensor_value_info("y", onnx.TensorProto.INT32, None)
    graph = helper.make_graph([helper.make_node(op, names, ["y"], **attributes)], "g", inputs, [output], known)
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()
    feeds = {"x": u8(*shape), "x_zero": zero(131)}
    (expected,) = ort.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, feeds)
    (actual,) = jumar.load(data, target="cpu").run(None, feeds)
    np.testing.assert_array_equal(expected, actual)


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
@pytest.mark.parametrize("axes, keepdims", [((), 1), ((1,), 0), ((-1, 2), 1)])
def test_qlinear_reduce_mean_is_the_mean_of_what_codes_stand_for(axes: tuple[int, ...], keepdims: int, target: str) -> None:
    """ONNX Runtime names it, but has no kernel for CPUs to compare with."""
    options = {"keepdims": keepdims, **({"axes": list(axes)} if axes else {})}
    node = helper.make_node("QLinearReduceMean", ["x", "s", "z", "t", "u"], ["y"], domain=MICROSOFT, **options)
    numbers = {"s": SCALED[0], "z": SCALED[1], "t": RESULT[0], "u": RESULT[1]}
    x, y = (helper.make_tensor_value_info(n, onnx.TensorProto.UINT8, shape) for n, shape in (("x", IMAGE.shape), ("y", None)))
    graph = helper.make_graph([node], "one", [x], [y], [onnx.numpy_helper.from_array(a, n) for n, a in numbers.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13), helper.make_opsetid(MICROSOFT, 1)], ir_version=8)
    mean = ((IMAGE.astype(np.float64) - 120) * 0.02).mean(axis=axes or None, keepdims=bool(keepdims))
    expected = np.clip(np.rint(mean / 0.05) + 100, 0, 255)
    actual = jumar.load(model, target=target)(IMAGE)
    assert actual.dtype == np.uint8 and actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, atol=1)


@pytest.mark.parametrize("weights", [np.int8, np.uint8])
@pytest.mark.parametrize("per_channel", [False, True])
def test_lstm_of_quantize_dynamic_is_the_lstm_of_its_weights(weights: Any, per_channel: bool) -> None:
    """ONNX Runtime rounds x and the state to 8 bits as well, so it is as far from the model as that."""
    seq, batch, depth, hidden, dirs = 5, 2, 6, 4, 2
    draw = np.random.default_rng(3)
    least = -64 if weights == np.int8 else 64
    codes = {n: draw.integers(least, least + 128, (dirs, d, 4 * hidden)).astype(weights) for n, d in (("w", depth), ("r", hidden))}
    scale = draw.uniform(0.004, 0.008, (dirs, 4 * hidden) if per_channel else (dirs,)).astype(np.float32)
    zero_point = np.full(scale.shape, 0 if weights == np.int8 else 128, weights)
    arrays = {**codes, "b": draw.uniform(-0.1, 0.1, (dirs, 8 * hidden)).astype(np.float32), "s": scale, "z": zero_point}
    names = ["x", "w", "r", "b", "", "", "", "", "s", "z", "s", "z"]
    options = {"direction": "bidirectional", "hidden_size": hidden}
    x = draw.standard_normal((seq, batch, depth)).astype(np.float32)

    def made(node: Any, initial: dict[str, Any]) -> Any:
        ports = [helper.make_tensor_value_info("x", 1, x.shape)], [helper.make_tensor_value_info(n, 1, None) for n in ("y", "h", "c")]
        graph = helper.make_graph([node], "one", *ports, [onnx.numpy_helper.from_array(a, n) for n, a in initial.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14), helper.make_opsetid(MICROSOFT, 1)], ir_version=8)

    quantized = made(helper.make_node("DynamicQuantizeLSTM", names, ["y", "h", "c"], domain=MICROSOFT, **options), arrays)
    spread = [v.reshape(dirs, 1, -1) for v in (scale, zero_point.astype(np.float32))]
    floats = {n: np.ascontiguousarray(((c - spread[1]) * spread[0]).astype(np.float32).transpose(0, 2, 1)) for n, c in codes.items()}
    plain = made(helper.make_node("LSTM", ["x", "w", "r", "b"], ["y", "h", "c"], **options), {**floats, "b": arrays["b"]})
    actual = jumar.load(quantized).run(None, {"x": x})
    for a, e in zip(actual, ort.InferenceSession(plain.SerializeToString()).run(None, {"x": x}), strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-5)
    for a, e in zip(actual, ort.InferenceSession(quantized.SerializeToString()).run(None, {"x": x}), strict=True):
        np.testing.assert_allclose(a, e, atol=0.05)
