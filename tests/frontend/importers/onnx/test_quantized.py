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
