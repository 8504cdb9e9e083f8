"""com.microsoft operators against ONNX Runtime, which defines them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import jumar

MICROSOFT = "com.microsoft"
RNG = np.random.default_rng(7)


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def ints(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, np.int32)


def model_of(op: str, inputs: list[Any], outputs: int, known: tuple[int, ...], attributes: dict[str, Any]) -> onnx.ModelProto:
    """One node; inputs in `known` are initializers, None is an absent input."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, domain=MICROSOFT, **attributes)
    given = [i for i, x in enumerate(inputs) if x is not None and i not in known]
    graph = helper.make_graph(
        [node], "one",
        [helper.make_tensor_value_info(names[i], helper.np_dtype_to_tensor_dtype(inputs[i].dtype), inputs[i].shape) for i in given],
        [helper.make_tensor_value_info(r, TensorProto.UNDEFINED, None) for r in results],
        [numpy_helper.from_array(inputs[i], names[i]) for i in known],
    )  # fmt: skip
    for info in graph.output:
        info.ClearField("type")
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)], ir_version=8)


def rotary(length: int, half: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    angle = np.outer(np.arange(length), 1 / 10 ** np.arange(half)).astype(np.float32)
    return np.cos(angle), np.sin(angle)


COS, SIN = rotary(16, 4)
PACKED = RNG.integers(0, 256, (5, 2, 8)).astype(np.uint8)
QKV = [floats(2, 3, 16), floats(2, 3, 16), floats(2, 3, 16)]
COS8, SIN8 = rotary(16, 8)
STEP = [floats(1, 1, 64), floats(1, 1, 32), floats(1, 1, 32), floats(1, 2, 5, 16), floats(1, 2, 5, 16)]
HEADS = {"num_heads": 4, "kv_num_heads": 2}

CASES: dict[str, tuple[str, list[Any], int, tuple[int, ...], dict[str, Any]]] = {
    "fused_matmul": ("FusedMatMul", [floats(2, 4, 3), floats(2, 5, 4)], 1, (), {"transA": 1, "transB": 1, "alpha": 0.5}),
    "fused_matmul_batch": ("FusedMatMul", [floats(4, 2, 3), floats(3, 2, 5)], 1, (), {"transBatchA": 1, "transBatchB": 1}),
    "fused_gemm": ("FusedGemm", [floats(2, 3), floats(3, 4), floats(4)], 1, (1, 2), {"activation": "LeakyRelu", "activation_alpha": 0.2}),
    "fused_conv": ("FusedConv", [floats(1, 3, 6, 6), floats(4, 3, 3, 3), floats(4)], 1, (1,), {"activation": "Relu", "pads": [1, 1, 1, 1]}),
    "fused_conv_clip": (
        "FusedConv", [floats(1, 3, 6, 6), floats(4, 3, 3, 3)], 1, (1,), {"activation": "Clip", "activation_params": [-0.1, 0.3]},
    ),
    "gelu": ("Gelu", [floats(2, 7)], 1, (), {}),
    "bias_gelu": ("BiasGelu", [floats(2, 7), floats(7)], 1, (), {}),
    "fast_gelu": ("FastGelu", [floats(2, 7), floats(7)], 1, (), {}),
    "quick_gelu": ("QuickGelu", [floats(2, 7)], 1, (), {"alpha": 1.3}),
    "skip_layer_norm": ("SkipLayerNormalization", [floats(2, 3, 8), floats(2, 3, 8), floats(8), floats(8), floats(8)], 1, (), {"epsilon": 1e-5}),
    "skip_rms_norm": ("SkipSimplifiedLayerNormalization", [floats(2, 3, 8), floats(2, 3, 8), floats(8)], 1, (), {"epsilon": 1e-5}),
    "embed": (
        "EmbedLayerNormalization",
        [ints([1, 2, 3], [4, 0, 1]), ints([0, 0, 1], [0, 1, 1]), floats(6, 8), floats(4, 8), floats(2, 8), floats(8), floats(8),
         ints([1, 1, 0], [1, 1, 1])], 2, (2, 3, 4, 5, 6), {"epsilon": 1e-5},
    ),
    "attention": ("Attention", [floats(2, 3, 8), floats(8, 24), floats(24), ints(2, 3)], 1, (1, 2), {"num_heads": 2}),
    "attention_mask": ("Attention", [floats(2, 3, 8), floats(8, 24), floats(24), ints([1, 1, 0], [1, 1, 1])], 1, (1, 2), {"num_heads": 2}),
    "attention_past": (
        "Attention", [floats(1, 3, 8), floats(8, 24), floats(24), None, floats(2, 1, 2, 4, 4)], 2, (1, 2), {"num_heads": 2, "unidirectional": 1},
    ),
    "multi_head": ("MultiHeadAttention", [*QKV, floats(48)], 1, (3,), {"num_heads": 4}),
    "multi_head_mask": ("MultiHeadAttention", [*QKV, None, ints([1, 1, 0], [1, 1, 1]), floats(1, 4, 3, 3)], 1, (), {"num_heads": 4}),
    "multi_head_past": (
        "MultiHeadAttention", [*QKV, None, None, None, floats(2, 4, 5, 4), floats(2, 4, 5, 4)], 3, (), {"num_heads": 4, "unidirectional": 1},
    ),
    "rotary": ("RotaryEmbedding", [floats(2, 3, 16), np.array([[0, 1, 2], [3, 4, 5]]), COS, SIN], 1, (2, 3), {}),
    "rotary_offset": ("RotaryEmbedding", [floats(2, 2, 3, 8), np.array([4]), COS, SIN], 1, (2, 3), {"interleaved": 1}),
    "group_query_prompt": (
        "GroupQueryAttention", [floats(2, 3, 64), floats(2, 3, 32), floats(2, 3, 32), None, None, ints(2, 2), ints(3), COS8, SIN8], 3,
        (6, 7, 8), HEADS | {"do_rotary": 1},
    ),
    "group_query_step": (
        "GroupQueryAttention", [*STEP, ints(5), ints(6), COS8, SIN8], 3, (6, 7, 8), HEADS | {"do_rotary": 1, "local_window_size": 3},
    ),
    "group_query_sink": (
        "GroupQueryAttention", [*STEP, ints(5), ints(6), COS8, SIN8, None, None, floats(4)], 3, (6, 7, 8), HEADS | {"do_rotary": 1},
    ),
    "group_query_packed": (
        "GroupQueryAttention", [floats(1, 3, 128), None, None, None, None, ints(2), ints(3), COS8, SIN8], 3, (6, 7, 8),
        HEADS | {"do_rotary": 1, "rotary_interleaved": 1, "softcap": 3.0},
    ),
    "mat_mul_n_bits": (
        "MatMulNBits", [floats(2, 3, 32), PACKED, floats(10)], 1, (1, 2), {"K": 32, "N": 5, "bits": 4, "block_size": 16},
    ),
    "mat_mul_n_bits_zero": (
        "MatMulNBits", [floats(3, 32), PACKED, floats(10), RNG.integers(0, 256, 5).astype(np.uint8)], 1, (1, 2, 3),
        {"K": 32, "N": 5, "bits": 4, "block_size": 16},
    ),
    "grid_sample": ("GridSample", [floats(1, 2, 4, 4), floats(1, 3, 3, 2)], 1, (), {"mode": "bilinear", "padding_mode": "border"}),
    "cdist": ("CDist", [floats(3, 4), floats(5, 4)], 1, (), {"metric": "euclidean"}),
    "expand_dims": ("ExpandDims", [floats(2, 3), np.array(-1, np.int32)], 1, (1,), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_microsoft_operator_agrees_with_onnx_runtime(name: str) -> None:
    op, inputs, outputs, known, attributes = CASES[name]
    model = model_of(op, inputs, outputs, known, attributes).SerializeToString()
    feeds = {f"x{i}": x for i, x in enumerate(inputs) if x is not None and i not in known}
    expected = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feeds)
    got = jumar.load(onnx.load_from_string(model), target="interpreter").run(None, feeds)
    for e, g in zip(expected, got, strict=True):
        assert e.dtype == g.dtype
        np.testing.assert_allclose(g, e, rtol=1e-4, atol=1e-5)
