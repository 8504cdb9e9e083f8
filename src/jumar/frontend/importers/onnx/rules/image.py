"""Resizing, sampling, regions, and pictures in files."""

from __future__ import annotations

import math

import numpy as np

from jumar.base import Array
from jumar.frontend.importers.onnx.geometry import geometry
from jumar.frontend.importers.onnx.node import OnnxNode
from jumar.frontend.importers.onnx.rule import rule
from jumar.frontend.importers.onnx.trace import Trace
from jumar.frontend.importers.onnx.value import Tensor, Value
from jumar.ir import Node, constant
from jumar.operators import Col2Im, GridSample, ImageDecode, MaxRoiPool, Resize, RoiAlign, matmul, reshape, transpose


@rule("Resize")
def resize(t: Trace, n: OnnxNode, x: Tensor, second: Tensor | None, third: Tensor | None, fourth: Tensor | None) -> Node:
    if n.opset < 11:
        return _upsampled(t, n, x, t.array(second))
    roi, scales, sizes = second, third, fourth
    axes = tuple(a + x.rank if a < 0 else a for a in n.attribute("axes", None) or range(x.rank))
    given = t.array(scales).astype(np.float64) if scales is not None else np.zeros(0)
    wanted = list(x.shape)
    factors = [1.0] * x.rank
    if given.size:
        for axis, factor in zip(axes, given, strict=True):
            factors[axis], wanted[axis] = float(factor), _scaled(x.shape[axis], factor)
    elif sizes is not None:
        _to_sizes(n, x, axes, t.ints(sizes), factors, wanted)
    else:
        raise n.fault("scales or sizes must be given, got neither")
    coordinates = n.attribute("coordinate_transformation_mode", "half_pixel")
    region: tuple[float, ...] = ()
    if coordinates == "tf_crop_and_resize":
        bounds = t.array(roi).astype(np.float64)
        region = tuple(
            float(bounds[half * len(axes) + axes.index(a)]) if a in axes else float(half) for half in (0, 1) for a in range(x.rank)
        )
    op = Resize(
        tuple(wanted), tuple(factors), n.attribute("mode", "nearest"), coordinates, n.attribute("nearest_mode", "round_prefer_floor"),
        n.attribute("cubic_coeff_a", -0.75), bool(n.attribute("antialias", 0)), bool(n.attribute("exclude_outside", 0)), region,
        n.attribute("extrapolation_value", 0.0),
    )  # fmt: skip
    return op(t.node(x))


def _to_sizes(n: OnnxNode, x: Tensor, axes: tuple[int, ...], sizes: tuple[int, ...], factors: list[float], wanted: list[int]) -> None:
    """Factors and sizes from the sizes asked for."""
    ratios = {a: size / max(x.shape[a], 1) for a, size in zip(axes, sizes, strict=True)}
    policy = n.attribute("keep_aspect_ratio_policy", "stretch")
    if policy not in ("stretch", "not_larger", "not_smaller"):
        raise n.fault(f"keep_aspect_ratio_policy must be stretch, not_larger or not_smaller, got {policy!r}")
    for axis, size in zip(axes, sizes, strict=True):
        if policy == "stretch":
            factors[axis], wanted[axis] = ratios[axis], size
        else:
            factors[axis] = (min if policy == "not_larger" else max)(ratios.values())
            wanted[axis] = math.floor(float(np.float32(factors[axis]) * np.float32(x.shape[axis]) + np.float32(0.5)))


def _scaled(size: int, factor: float) -> int:
    """The cells of a resized dimension; in f32, as ONNX Runtime does, where 10 * 3.3 makes 33, and not 32 for a factor just below."""
    return math.floor(float(np.float32(size) * np.float32(factor)))


def _upsampled(t: Trace, n: OnnxNode, x: Tensor, scales: Array) -> Node:
    """Resize as it was before opset 11."""
    factors = tuple(float(s) for s in scales.ravel())
    sizes = tuple(_scaled(d, f) for d, f in zip(x.shape, factors, strict=True))
    mode = {"nearest": "nearest", "linear": "linear", "bilinear": "linear"}.get(n.attribute("mode", "nearest"))
    if mode is None:
        raise n.fault(f"mode must be nearest or linear, got {n.attribute('mode')!r}")
    return Resize(sizes, factors, mode, "asymmetric", "shrink_ceil")(t.node(x))


@rule("Upsample")
def upsample(t: Trace, n: OnnxNode, x: Tensor, scales: Tensor | None) -> Node:
    if scales is not None:
        return _upsampled(t, n, x, t.array(scales))
    factors = n.attribute("scales", None) or (1.0, 1.0, n.attribute("height_scale", 1.0), n.attribute("width_scale", 1.0))
    return _upsampled(t, n, x, np.array(factors))


@rule("GridSample", domain="com.microsoft")
@rule("GridSample")
def grid_sample(t: Trace, n: OnnxNode, x: Tensor, grid: Tensor) -> Node:
    mode = n.attribute("mode", "linear")
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    padding = n.attribute("padding_mode", "zeros")
    if mode not in ("nearest", "linear", "cubic") or padding not in ("zeros", "border", "reflection"):
        raise n.fault(f"mode must be nearest, linear or cubic and padding_mode zeros, border or reflection, got {mode!r} and {padding!r}")
    return GridSample(mode, padding, bool(n.attribute("align_corners", 0)))(t.node(x), t.node(grid))


@rule("AffineGrid")
def affine_grid(t: Trace, n: OnnxNode, theta: Tensor, size: Tensor) -> Node:
    batch, _, *spatial = t.ints(size)
    aligned = n.attribute("align_corners", 0)
    steps = [np.linspace(-1, 1, s) if aligned else (2 * np.arange(s) + 1) / s - 1 for s in spatial]
    places = [*reversed(np.meshgrid(*steps, indexing="ij")), np.ones(spatial)]  # x first, then a 1 for the shift
    points = constant(np.stack(places, -1).reshape(-1, len(places)), theta.dtype)
    y = matmul(points, transpose(t.node(theta), (0, 2, 1)))
    return reshape(y, (batch, *spatial, len(spatial)))


@rule("RoiAlign")
def roi_align(t: Trace, n: OnnxNode, x: Tensor, rois: Tensor, batch: Tensor) -> Node:
    default = "half_pixel" if n.opset >= 16 else "output_half_pixel"
    half = n.attribute("coordinate_transformation_mode", default) == "half_pixel"
    out = (n.attribute("output_height", 1), n.attribute("output_width", 1))
    op = RoiAlign(out, n.attribute("mode", "avg"), n.attribute("sampling_ratio", 0), n.attribute("spatial_scale", 1.0), half)
    return op(t.node(x), t.node(rois), t.node(batch))


@rule("MaxRoiPool")
def max_roi_pool(t: Trace, n: OnnxNode, x: Tensor, rois: Tensor) -> Node:
    height, width = n.attribute("pooled_shape")
    return MaxRoiPool((height, width), n.attribute("spatial_scale", 1.0))(t.node(x), t.node(rois))


@rule("Col2Im")
def col2im(t: Trace, n: OnnxNode, x: Tensor, image: Tensor, block: Tensor) -> Node:
    sizes, kernel = t.ints(image), t.ints(block)
    g = geometry(n, sizes, kernel)
    return Col2Im(sizes, *g.fields)(t.node(x))


@rule("ImageDecoder")
def image_decoder(t: Trace, n: OnnxNode, encoded: Tensor) -> Value:
    found: Value = t.run(ImageDecode(n.attribute("pixel_format", "RGB")), encoded)
    return found
