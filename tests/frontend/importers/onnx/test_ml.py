"""Operators of ai.onnx.ml against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import jumar

TREE = {
    "nodes_treeids": [0, 0, 0, 1, 1, 1], "nodes_nodeids": [0, 1, 2, 0, 1, 2], "nodes_featureids": [0, 0, 0, 2, 0, 0],
    "nodes_values": [0.1, 0.0, 0.0, -0.2, 0.0, 0.0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_LT", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 0, 0, 1, 0, 0], "nodes_falsenodeids": [2, 0, 0, 2, 0, 0],
}  # fmt: skip
TARGETS = {
    "target_treeids": [0, 0, 1, 1], "target_nodeids": [1, 2, 1, 2], "target_ids": [0, 1, 1, 0], "target_weights": [1.0, 2.0, 3.0, -4.0],
}  # fmt: skip
CLASSES = {
    "class_treeids": [0, 0, 1, 1, 1], "class_nodeids": [1, 2, 1, 2, 2], "class_ids": [0, 1, 2, 0, 1],
    "class_weights": [1.0, 2.0, 3.0, 0.5, 0.1],
    "classlabels_int64s": [7, 8, 9],
}  # fmt: skip
TWO = CLASSES | {"class_ids": [0] * 5, "classlabels_int64s": [3, 4], "class_weights": [0.3, 0.1, 0.4, 0.2, 0.1]}

CASES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "scaler": ("Scaler", 1, {"offset": [0.1, 0.2, 0.3], "scale": [2.0, 3.0, 4.0]}),
    "normalizer_max": ("Normalizer", 1, {"norm": "MAX"}),
    "normalizer_l1": ("Normalizer", 1, {"norm": "L1"}),
    "normalizer_l2": ("Normalizer", 1, {"norm": "L2"}),
    "imputer": ("Imputer", 1, {"imputed_value_floats": [9.0], "replaced_value_float": float("nan")}),
    "linear_regressor": ("LinearRegressor", 1, {"coefficients": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "intercepts": [0.5, 1.0], "targets": 2}),
    "linear_classifier": (
        "LinearClassifier", 2,
        {"coefficients": [1.0, -2.0, 3.0, -4.0, 5.0, 6.0], "intercepts": [0.5, 1.0], "classlabels_ints": [3, 4],
         "post_transform": "SOFTMAX"},
    ),
    "tree_regressor": ("TreeEnsembleRegressor", 1, TREE | TARGETS | {"n_targets": 2}),
    "tree_regressor_mean": ("TreeEnsembleRegressor", 1, TREE | TARGETS | {"n_targets": 2, "aggregate_function": "AVERAGE"}),
    "tree_classifier": ("TreeEnsembleClassifier", 2, TREE | CLASSES),
    "tree_classifier_softmax": ("TreeEnsembleClassifier", 2, TREE | CLASSES | {"post_transform": "SOFTMAX"}),
    "tree_classifier_two": ("TreeEnsembleClassifier", 2, TREE | TWO),
    "tree_classifier_two_logistic": (
        "TreeEnsembleClassifier", 2, TREE | TWO | {"class_weights": [0.3, -0.1, 0.4, 0.2, -0.6], "post_transform": "LOGISTIC"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_ml_operator_agrees_with_onnx_runtime(name: str) -> None:
    op, outputs, attributes = CASES[name]
    x = np.random.default_rng(3).uniform(-1, 1, (6, 3)).astype(np.float32)
    x[2, 1] = np.nan if op == "Imputer" else x[2, 1]
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], [f"y{i}" for i in range(outputs)], domain="ai.onnx.ml", **attributes)], "one",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)], [onnx.ValueInfoProto(name=f"y{i}") for i in range(outputs)],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)], ir_version=8)
    expected = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
    got = jumar.load(model, target="interpreter").run(None, {"x": x})
    for e, g in zip(expected, got, strict=True):
        assert e.dtype == g.dtype
        np.testing.assert_allclose(g, e, rtol=1e-5, atol=1e-6)
