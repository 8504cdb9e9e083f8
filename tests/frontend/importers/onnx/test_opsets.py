"""Older versions of operators against ONNX Runtime; the conformance suite has the newest ones only."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import jumar

Case = tuple[str, int, list[Any], int, dict[int, Any], dict[str, Any]]


def floats(*shape: int) -> tuple[int, ...]:
    """A random f32 input of that shape."""
    return shape


# name: operator, opset, inputs (a shape: random floats; an array: itself; None: absent), outputs, known inputs, attributes
CASES: dict[str, Case] = {
    "softmax_11": ("Softmax", 11, [floats(2, 3, 4)], 1, {}, {"axis": 1}),
    "log_softmax_9": ("LogSoftmax", 9, [floats(2, 3, 4)], 1, {}, {}),
    "hardmax_11": ("Hardmax", 11, [floats(2, 3, 4)], 1, {}, {"axis": -1}),
    "gemm_7": ("Gemm", 7, [floats(2, 3), floats(4, 3), floats(4)], 1, {}, {"transB": 1, "alpha": 0.5, "beta": 2.0}),
    "gemm_11_without_c": ("Gemm", 11, [floats(3, 2), floats(3, 4)], 1, {}, {"transA": 1}),
    "matmul_7": ("MatMul", 7, [floats(2, 3, 4), floats(4)], 1, {}, {}),
    "conv_same_lower": ("Conv", 8, [floats(1, 2, 7, 6), floats(3, 2, 4, 3)], 1, {}, {"auto_pad": "SAME_LOWER", "strides": [2, 1]}),
    "conv_same_upper": ("Conv", 11, [floats(1, 2, 9), floats(3, 2, 4)], 1, {}, {"auto_pad": "SAME_UPPER", "strides": [2]}),
    "conv_valid_grouped": ("Conv", 11, [floats(1, 4, 5, 5, 4), floats(6, 2, 2, 2, 2), floats(6)], 1, {}, {"auto_pad": "VALID", "group": 2}),
    "conv_transpose_same": ("ConvTranspose", 11, [floats(1, 2, 4, 5), floats(2, 3, 3, 3)], 1, {}, {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    "conv_transpose_7": (
        "ConvTranspose", 7, [floats(1, 4, 4, 3), floats(4, 2, 3, 2), floats(4)], 1, {},
        {"strides": [3, 2], "pads": [1, 0, 0, 1], "output_padding": [1, 1], "dilations": [1, 2], "group": 2},
    ),
    "conv_transpose_shape": (
        "ConvTranspose", 11, [floats(1, 1, 3, 3), floats(1, 2, 3, 3)], 1, {}, {"strides": [3, 2], "output_shape": [8, 7]},
    ),
    "max_pool_8": ("MaxPool", 8, [floats(1, 2, 6, 6)], 2, {}, {"kernel_shape": [3, 2], "strides": [2, 2], "storage_order": 1}),
    "max_pool_10_ceil": ("MaxPool", 10, [floats(1, 2, 6, 7)], 1, {}, {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    "average_pool_7": ("AveragePool", 7, [floats(1, 2, 6, 6)], 1, {}, {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "average_pool_10": (
        "AveragePool", 10, [floats(1, 2, 6, 6)], 1, {}, {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "pads": [1, 1, 0, 0]},
    ),
    "average_pool_same": ("AveragePool", 11, [floats(1, 2, 6, 5)], 1, {}, {"kernel_shape": [4, 3], "auto_pad": "SAME_LOWER"}),
    "average_pool_include": (
        "AveragePool", 11, [floats(1, 1, 5, 5)], 1, {}, {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1], "count_include_pad": 1},
    ),
    "lp_pool_2": ("LpPool", 7, [floats(1, 2, 6, 6)], 1, {}, {"kernel_shape": [3, 2], "p": 3}),
    "global_lp_pool_2": ("GlobalLpPool", 7, [floats(1, 2, 6, 6)], 1, {}, {"p": 1}),
    "batch_norm_7": ("BatchNormalization", 7, [floats(2, 3, 4), floats(3), floats(3), floats(3), np.array([1, 2, 3], np.float32)], 1, {}, {}),
    "batch_norm_9": ("BatchNormalization", 9, [floats(2, 3), floats(3), floats(3), floats(3), np.array([1, 2, 3], np.float32)], 1, {}, {}),
    "lrn_1": ("LRN", 7, [floats(2, 5, 3, 3)], 1, {}, {"size": 3, "alpha": 0.3, "beta": 0.6, "bias": 1.5}),
    "lp_normalization_1": ("LpNormalization", 7, [floats(2, 3)], 1, {}, {"p": 1, "axis": 0}),
    "mean_variance_9": ("MeanVarianceNormalization", 9, [floats(2, 3, 4, 4)], 1, {}, {"axes": [0, 2, 3]}),
    "upsample_7": ("Upsample", 7, [floats(1, 1, 2, 3)], 1, {}, {"scales": [1.0, 1.0, 2.0, 3.0]}),
    "upsample_9_linear": (
        "Upsample", 9, [floats(1, 1, 3, 3), np.array([1, 1, 2, 2], np.float32)], 1, {1: 0}, {"mode": "linear"},
    ),
    "resize_10": ("Resize", 10, [floats(1, 1, 4, 5), np.array([1, 1, 1.5, 2.2], np.float32)], 1, {1: 0}, {}),
    "resize_10_smaller": ("Resize", 10, [floats(1, 1, 7, 5), np.array([1, 1, 0.6, 0.5], np.float32)], 1, {1: 0}, {}),
    "resize_11": (
        "Resize", 11, [floats(1, 1, 4, 5), np.zeros(0, np.float32), np.array([1, 1, 1.5, 2.2], np.float32)], 1, {1: 0, 2: 0},
        {"mode": "cubic", "coordinate_transformation_mode": "pytorch_half_pixel"},
    ),
    "resize_11_tf_half_pixel_for_nn": (
        "Resize", 11, [floats(1, 1, 4, 5), np.zeros(0, np.float32), np.array([1, 1, 1.5, 2.0], np.float32)], 1, {1: 0, 2: 0},
        {"mode": "nearest", "coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": "floor"},
    ),
    "resize_13_sizes": (
        "Resize", 13, [floats(1, 1, 4, 5), None, None, np.array([1, 1, 7, 3])], 1, {3: 0},
        {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
    ),
    "top_k_1": ("TopK", 7, [floats(3, 5)], 2, {}, {"k": 2, "axis": 0}),
    "top_k_10": ("TopK", 10, [floats(3, 5), np.array([3])], 2, {1: 0}, {"axis": 1}),
    "non_max_suppression_10": (
        "NonMaxSuppression", 10,
        [np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3]]], np.float32), floats(1, 2, 3), np.array([2]), np.array([0.5], np.float32)],
        1, {2: 0, 3: 0}, {},
    ),
    "roi_align_10": (
        "RoiAlign", 10, [floats(1, 2, 8, 8), np.array([[0, 0, 5, 5], [2, 1, 7, 6]], np.float32), np.array([0, 0])], 1, {},
        {"output_height": 3, "output_width": 2, "sampling_ratio": 2, "spatial_scale": 0.8},
    ),
    "max_roi_pool_1": (
        "MaxRoiPool", 7, [floats(1, 2, 8, 8), np.array([[0, 0, 0, 5, 5], [0, 2, 1, 7, 6]], np.float32)], 1, {}, {"pooled_shape": [2, 3]},
    ),
    "max_unpool_9": ("MaxUnpool", 9, [floats(1, 1, 2, 2), np.array([[[[5, 7], [13, 15]]]])], 1, {}, {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "grid_sample_16": (
        "GridSample", 16, [floats(1, 2, 4, 5), floats(1, 3, 3, 2)], 1, {}, {"mode": "bicubic", "padding_mode": "reflection", "align_corners": 1},
    ),
    "dft_17": ("DFT", 17, [floats(2, 6, 1)], 1, {}, {"axis": 1, "onesided": 1}),
    "stft_17": ("STFT", 17, [floats(1, 20, 1), np.array(4), floats(8)], 1, {1: 0}, {}),
    "einsum_12": ("Einsum", 12, [floats(2, 3, 4), floats(2, 5, 4)], 1, {}, {"equation": "bij, bkj -> bik"}),
    "lstm_7": ("LSTM", 7, [floats(4, 2, 3), floats(1, 20, 3), floats(1, 20, 5), floats(1, 40)], 3, {}, {"hidden_size": 5}),
    "gru_7": (
        "GRU", 7, [floats(4, 2, 3), floats(2, 15, 3), floats(2, 15, 5), None, np.array([4, 2], np.int32)], 2, {},
        {"hidden_size": 5, "direction": "bidirectional", "linear_before_reset": 1},
    ),
    "rnn_7": (
        "RNN", 7, [floats(4, 2, 3), floats(1, 5, 3), floats(1, 5, 5), None, None, floats(1, 2, 5)], 2, {},
        {"hidden_size": 5, "direction": "reverse", "activations": ["HardSigmoid"], "activation_alpha": [0.3], "activation_beta": [0.4], "clip": 0.5},
    ),
    "layer_normalization_17": ("LayerNormalization", 17, [floats(2, 3, 4), floats(3, 4), floats(3, 4)], 3, {}, {"axis": 1}),
    "loss_13": ("SoftmaxCrossEntropyLoss", 13, [floats(3, 4, 2), np.array([[0, 1], [2, 3], [1, 1]]), floats(4)], 2, {}, {"ignore_index": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_older_version_agrees_with_onnx_runtime(name: str) -> None:
    op, opset, given, outputs, known, attributes = CASES[name]
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    inputs = [rng.uniform(-1, 1, x).astype(np.float32) if isinstance(x, tuple) else x for x in given]
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    free = [i for i, x in enumerate(inputs) if x is not None and i not in known]
    graph = helper.make_graph(
        [helper.make_node(op, names, [f"y{i}" for i in range(outputs)], **attributes)], "one",
        [helper.make_tensor_value_info(names[i], helper.np_dtype_to_tensor_dtype(inputs[i].dtype), inputs[i].shape) for i in free],
        [onnx.ValueInfoProto(name=f"y{i}") for i in range(outputs)], [numpy_helper.from_array(inputs[i], names[i]) for i in known],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    feeds = {names[i]: inputs[i] for i in free}
    expected = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    got = jumar.load(model, target="interpreter").run(None, feeds)
    for e, g in zip(expected, got, strict=True):
        assert e.dtype == g.dtype
        np.testing.assert_allclose(g, e, rtol=1e-4, atol=1e-5)
