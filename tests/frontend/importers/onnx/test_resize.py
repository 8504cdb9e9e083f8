"""Resize by fractional scales and to any sizes, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import jumar

ort = pytest.importorskip("onnxruntime")
SCALES = (0.25, 0.3, 1 / 3, 0.5, 0.6, 2 / 3, 0.7, 1.0, 1.1, 4 / 3, 1.5, 1.7, 2.0, 2.5, 3.0, 3.3)
COORDINATES = (
    "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn",
)  # fmt: skip
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def resize_model(shape: tuple[int, ...], scales: Any = None, sizes: Any = None, roi: Any = None, **attributes: Any) -> Any:
    opset = 11 if attributes["coordinate_transformation_mode"] == "tf_half_pixel_for_nn" else 19
    arrays = {"roi": roi if roi is not None else np.zeros(0), "scales": scales if sizes is None else np.zeros(0)}
    constants = [numpy_helper.from_array(np.asarray(v, np.float32), k) for k, v in arrays.items()]
    names = ["x", "roi" if roi is not None or opset == 11 else "", "scales" if sizes is None or opset == 11 else ""]
    if sizes is not None:
        constants.append(numpy_helper.from_array(np.asarray(sizes, np.int64), "sizes"))
        names.append("sizes")
    x, y = (helper.make_tensor_value_info(k, TensorProto.FLOAT, v) for k, v in (("x", shape), ("y", None)))
    graph = helper.make_graph([helper.make_node("Resize", names, ["y"], **attributes)], "g", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def ours_and_theirs(model: onnx.ModelProto, x: Any) -> tuple[Any, Any]:
    options = ort.SessionOptions()
    options.log_severity_level = 4  # it warns where its own shape inference rounds the other way
    (theirs,) = ort.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})
    return jumar.load(model, target="interpreter")(x), theirs


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize_as_onnx_runtime(mode: str, coordinates: str) -> None:
    """Known to differ, and left out: ONNX Runtime copies a dimension whose size stays, whatever its scale or region; and ties of
    "half_pixel_symmetric", whose offset it computes with another rounding."""
    rng, done = np.random.default_rng(len(mode) * 100 + len(coordinates)), 0
    crops, ties = coordinates == "tf_crop_and_resize", mode == "nearest" and coordinates == "half_pixel_symmetric"
    while done < 25:
        shape = (1, 2, *(int(s) for s in rng.integers(1, 14, 2)))
        scales = np.array([1, 1, *rng.choice(SCALES, 2)], np.float32)
        sizes = np.array([1, 2, *rng.integers(1, 25, 2)]) if rng.random() < 0.5 else None
        out = np.floor(scales * np.array(shape, np.float32)) if sizes is None else sizes
        stays = out[2:] == shape[2:]
        if out.min() < 1 or any(stays & (scales[2:] != 1)) or (any(stays) and (crops or sizes is not None)):
            continue
        attributes: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": coordinates}
        match mode:
            case "nearest":
                attributes["nearest_mode"] = "round_prefer_floor" if ties else str(rng.choice(NEAREST))
            case _ if coordinates != "tf_half_pixel_for_nn":
                attributes["antialias"] = int(rng.integers(2))
        if mode == "cubic":
            attributes |= {"exclude_outside": int(rng.integers(2)), "cubic_coeff_a": float(rng.choice([-0.5, -0.75]))}
        roi = np.array([0, 0, *rng.uniform(-0.2, 0.5, 2), 1, 1, *rng.uniform(0.5, 1.3, 2)]) if crops else None
        model = resize_model(shape, scales, sizes, roi, **attributes)
        y, expected = ours_and_theirs(model, rng.standard_normal(shape).astype(np.float32))
        assert y.shape == expected.shape, (shape, scales, sizes, attributes)
        if not ties:
            np.testing.assert_allclose(y, expected, 1e-4, 2e-5, err_msg=f"{shape} {scales} {sizes} {attributes}")
        done += 1


@pytest.mark.parametrize(
    ("size", "scale", "attributes"),
    [
        (10, 3.3, {"mode": "linear", "coordinate_transformation_mode": "asymmetric"}),  # 33 cells, not 32
        (5, 1.5, {"mode": "linear", "coordinate_transformation_mode": "align_corners"}),  # 7 cells, 6 steps, not 6.5
        (9, 0.7, {"mode": "nearest", "coordinate_transformation_mode": "half_pixel"}),
        (38, 1.2, {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "round_prefer_ceil"}),  # 7.4999995
    ],
)
def test_fractional_scales(size: int, scale: float, attributes: dict[str, Any]) -> None:
    model = resize_model((1, 1, 1, size), [1, 1, 1, scale], **attributes)
    y, expected = ours_and_theirs(model, np.arange(size, dtype=np.float32).reshape(1, 1, 1, size))
    np.testing.assert_allclose(y, expected, 1e-5, 1e-6)
