"""Old versions of operators: what is an input today was an attribute, defaults differed.  The oracle is ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import jumar

ort = pytest.importorskip("onnxruntime")

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (2, 3, 4)).astype(np.float32)
IMAGE = rng.uniform(-2, 2, (1, 8, 4, 6)).astype(np.float32)
F16 = X.astype(np.float16)
INTS = rng.integers(-9, 9, (2, 3, 4)).astype(np.int32)


def i64(*values: int) -> Any:
    return np.array(values, np.int64)


def case(op: str, opset: int, *inputs: Any, outputs: int = 1, known: tuple[int, ...] = (), **attributes: Any) -> Any:
    """One node.   known: which inputs are initializers."""
    return pytest.param(op, opset, inputs, outputs, known, attributes, id=f"{op}-{opset}-{'-'.join(attributes) or len(inputs)}")


CASES = [
    case("Add", 7, X, X[0, 0]),
    case("Pow", 7, np.abs(X), np.float32(2)),
    case("Pow", 15, INTS, np.array(2, np.int64)),
    case("Pow", 15, INTS, np.array(0.5, np.float32)),
    case("Pow", 15, X, np.array(2, np.int32)),
    case("Clip", 6, X),
    case("Clip", 6, X, min=-1.0),
    case("Clip", 6, X, min=-1.0, max=0.5),
    case("Clip", 11, X, np.float32(-1), None),
    case("Clip", 12, INTS, None, np.array(2, np.int32), known=(2,)),
    case("Clip", 13, X, np.float32(-1), np.float32(1), known=(1, 2)),
    case("Dropout", 7, X, ratio=0.3),
    case("Dropout", 10, X),
    case("Dropout", 12, X, np.float32(0.3), outputs=2),
    case("Max", 8, X, X[0], X[:1, :, :1]),
    case("Min", 12, INTS, INTS[0]),
    case("Mean", 8, X, X[0], X[:, :1]),
    case("Sum", 8, X),
    case("Mod", 10, INTS, np.array(-5, np.int32)),
    case("Mod", 13, X, np.float32(0.7), fmod=1),
    case("Div", 14, INTS, np.array(-4, np.int32)),
    case("PRelu", 9, X, X[0, :, :1]),
    case("Shrink", 9, X, bias=0.3, lambd=0.8),
    case("IsInf", 10, np.array([1, np.inf, -np.inf], np.float32), detect_negative=0),
    case("ReduceSum", 11, X, axes=[0, -1]),
    case("ReduceSum", 11, X, axes=[1], keepdims=0),
    case("ReduceSum", 11, X),
    case("ReduceSum", 13, X, i64(0, -1), keepdims=0),
    case("ReduceSum", 13, X, i64(), noop_with_empty_axes=1),
    case("ReduceMean", 18, X, i64(2)),
    case("ReduceMean", 13, X, axes=[2]),
    case("ReduceMax", 12, INTS, axes=[1]),
    case("ReduceMin", 18, X, i64(-2)),
    case("ReduceL1", 13, X, axes=[-1]),
    case("ReduceL2", 11, X, axes=[0]),
    case("ReduceLogSumExp", 11, X * 100, axes=[1]),
    case("ReduceLogSum", 13, np.abs(X), axes=[1], keepdims=0),
    case("ReduceSumSquare", 18, INTS, i64(1)),
    case("ReduceProd", 11, X, axes=[1]),
    case("ReduceLogSumExp", 18, X),
    case("ReduceMean", 11, INTS, axes=[1]),
    case("ArgMax", 11, X, axis=-1, keepdims=0),
    case("ArgMax", 12, np.round(X), axis=1, select_last_index=1),
    case("ArgMin", 13, X),
    case("CumSum", 11, X, np.array(1, np.int32), exclusive=1),
    case("CumSum", 14, X, np.array(-1, np.int64), reverse=1, exclusive=1),
    case("Squeeze", 11, X[:, :1], axes=[1]),
    case("Squeeze", 11, X[:1, :, :1]),
    case("Squeeze", 13, X[:, :1], i64(-2)),
    case("Unsqueeze", 11, X, axes=[0, 4]),
    case("Unsqueeze", 13, X, i64(-1, 1)),
    case("Reshape", 7, X, i64(0, -1)),
    case("Reshape", 14, X[:0], i64(0, 4, 3), allowzero=1),
    case("Flatten", 9, X, axis=2),
    case("Flatten", 13, X, axis=-1),
    case("Slice", 9, X, starts=[1, -3], ends=[2, 10], axes=[1, 2]),
    case("Slice", 9, X, starts=[0, 1], ends=[-1, 2]),
    case("Slice", 10, X, i64(-1), i64(-100), i64(2), i64(-2)),
    case("Slice", 13, X, i64(3, 0), i64(-(2**63), 2**63 - 1), i64(2, 1), i64(-1, 2)),
    case("Slice", 13, X, i64(5), i64(1), i64(1)),
    case("Slice", 13, X, i64(-9), i64(2), i64(2)),
    case("Split", 11, X, axis=1, split=[1, 2], outputs=2),
    case("Split", 11, X, axis=2, outputs=2),
    case("Split", 13, X, i64(1, 0, 3), axis=-1, outputs=3),
    case("Split", 18, X, axis=1, num_outputs=2, outputs=2),
    case("Pad", 2, X, pads=[0, 1, 0, 0, 0, 2], value=1.5),
    case("Pad", 2, X, pads=[0, 1, 1, 0, 0, 2], mode="reflect"),
    case("Pad", 11, X, i64(0, 0, -1, 0, 1, 2), np.float32(2)),
    case("Pad", 13, X, i64(0, 2, 1, 1, 0, 0), mode="edge"),
    case("Pad", 18, X, i64(1, -1), np.float32(3), i64(-1), known=(1, 3)),
    case("Pad", 19, X, i64(0, 4, 1, 1, 0, 0), mode="wrap"),
    case("Tile", 6, X, i64(1, 2, 1)),
    case("Expand", 8, X[:, :1], i64(3, 1)),
    case("Concat", 11, X, X[:, :1], axis=-2),
    case("Gather", 11, X, i64(-1, 0), axis=1),
    case("GatherElements", 11, X, i64(0, -1, 1).reshape(1, 3, 1), axis=2),
    case("GatherND", 11, X, i64(1, 2).reshape(1, 2)),
    case("GatherND", 12, X, i64(1, -1).reshape(2, 1), batch_dims=1),
    case("Scatter", 9, X, i64(0, 1, 0, 1).reshape(1, 1, 4), X[:1, :1] * 9, axis=1),
    case("ScatterElements", 13, X, i64(-1).reshape(1, 1, 1), X[:1, :1, :1]),
    case("ScatterElements", 18, X, i64(1, 1).reshape(1, 1, 2), X[:1, :1, :2], axis=2, reduction="max"),
    case("ScatterND", 16, X, i64(1, 1).reshape(2, 1), X, reduction="add"),
    case("ScatterND", 18, X, i64(0, 0).reshape(2, 1), X, reduction="min"),
    case("DepthToSpace", 7, IMAGE, blocksize=2),
    case("DepthToSpace", 11, IMAGE, blocksize=2, mode="CRD"),
    case("SpaceToDepth", 7, IMAGE, blocksize=2),
    case("Trilu", 14, X, np.array(1, np.int64), upper=0),
    case("EyeLike", 9, X[0], k=-1, dtype=TensorProto.FLOAT),
    case("Range", 11, *i64(3, 11, 2)),
    case("Range", 11, *np.array([1, -1, -0.25], np.float32)),
    case("OneHot", 11, i64(0, -1, 7, 2), np.array(3, np.int64), np.array([2, 5], np.float32), axis=0),
    case("ConstantOfShape", 9, i64(2, 3)),
    case("Shape", 15, X, start=-2),
    case("Size", 13, X),
    case("Transpose", 7, X),
    case("Where", 9, X > 0, X, X[0]),
    case("ReverseSequence", 10, X[..., 0].T.copy(), i64(1, 3), time_axis=0, batch_axis=1),
    case("Cast", 9, X, to=TensorProto.INT64),
    case("Cast", 13, X, to=TensorProto.FLOAT16),
    case("CastLike", 15, INTS, F16),
    case("BitShift", 11, np.abs(INTS).astype(np.uint32), np.array(3, np.uint32), direction="LEFT"),
    case("QuantizeLinear", 10, X, np.float32(0.02), np.uint8(120)),
    case("QuantizeLinear", 13, X, np.array([0.1, 0.02, 0.5], np.float32), np.array([1, 2, 3], np.int8)),
    case("DequantizeLinear", 13, INTS.astype(np.int8), np.array([0.1, 0.2], np.float32), np.array([3, -4], np.int8), axis=0),
    case("DynamicQuantizeLinear", 11, X, outputs=3),
    case("Gelu", 20, X, approximate="tanh"),
    case("HardSwish", 14, X),
    case("Celu", 12, X, alpha=0.7),
]


def model_of(
    op: str, opset: int, inputs: tuple[Any, ...], outputs: int, known: tuple[int, ...], attributes: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """A model of one node, and its feeds."""
    arrays = {f"x{i}": np.asarray(x) for i, x in enumerate(inputs) if x is not None}
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], **attributes)
    initial = [onnx.numpy_helper.from_array(a, n) for n, a in arrays.items() if int(n[1:]) in known]
    feeds = {n: a for n, a in arrays.items() if int(n[1:]) not in known}
    ports = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()]
    graph = helper.make_graph([node], "one", ports, [helper.make_empty_tensor_value_info(f"y{i}") for i in range(outputs)], initial)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), feeds


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
@pytest.mark.parametrize("op, opset, inputs, outputs, known, attributes", CASES)
def test_version_computes_what_onnx_runtime_does(op, opset, inputs, outputs, known, attributes, target) -> None:  # type: ignore[no-untyped-def]
    model, feeds = model_of(op, opset, inputs, outputs, known, attributes)
    expected = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    actual = jumar.load(model, target=target).run(None, feeds)
    assert len(expected) == len(actual)
    for e, a in zip(expected, actual, strict=True):
        assert (e.dtype, e.shape) == (a.dtype, a.shape)
        np.testing.assert_allclose(a.astype(np.float64), e.astype(np.float64), rtol=2e-5, atol=1e-5)
