"""Images: pad, interpolate, grid_sample, unfold and fold, pixel shuffle, and boxes.

In: x [n, c, h, w] mostly.  Out: the same kind.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jumar import operators as o
from jumar.ops import arithmetic as a
from jumar.ops import movement as s
from jumar.ops.convolution import spread
from jumar.ops.linalg import bmm
from jumar.ops.operands import I64, Tensor, apply, as_tensor, cast, constant, floating, ints, numpy_dtype
from jumar.ops.pooling import adaptive_avg_pool

_PAD_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap", "symmetric": "symmetric"}


def pad(input_x: Any, padding: Any, mode: str = "constant", value: Any = None) -> Tensor:
    """More elements around, in pairs from the last dimension on.   mode: constant, reflect, replicate, circular.

    A negative number takes elements away.   MindSpore up to 2.0 took a pair for each dimension, from the first on; clients still write that.
    """
    x = as_tensor(input_x)
    if isinstance(padding, tuple | list) and padding and all(isinstance(p, tuple | list) for p in padding):
        padding = [amount for pair in reversed(padding) for amount in pair]
    amounts = ints(padding)
    if len(amounts) % 2 or len(amounts) > 2 * x.ndim:
        raise ValueError(f"pad: padding must be pairs for at most {x.ndim} dimensions, got {padding}")
    low, high = [0] * x.ndim, [0] * x.ndim
    for i in range(len(amounts) // 2):
        low[x.ndim - 1 - i], high[x.ndim - 1 - i] = amounts[2 * i], amounts[2 * i + 1]
    return padded(x, low, high, mode, value)


def padded(x: Tensor, low: Any, high: Any, mode: str = "constant", value: Any = None) -> Tensor:
    """So many more elements before and after each dimension."""
    if mode not in _PAD_MODES:
        raise ValueError(f"pad: mode must be one of {', '.join(_PAD_MODES)}, got {mode!r}")
    for axis, (before, after) in enumerate(zip(low, high, strict=True)):
        if before < 0 or after < 0:
            x = s.part(x, axis, max(-before, 0), x.shape[axis] - max(-after, 0))
    low, high = tuple(max(p, 0) for p in low), tuple(max(p, 0) for p in high)
    if not any(low) and not any(high):
        return s.copy(x)
    if mode == "constant":
        if isinstance(value, Tensor):
            value = value.item()
        return apply(o.Pad(low, high, "constant", value or 0), x)  # type: ignore[no-any-return]
    if mode == "reflect" and any(max(p, q) >= d for p, q, d in zip(low, high, x.shape, strict=True) if p or q):
        raise ValueError(f"pad: padding of mode 'reflect' must be less than the dimension, got {low} and {high} for {x.shape}")
    for axis, (p, q) in enumerate(zip(low, high, strict=True)):
        if p or q:
            x = _spread_edge(x, axis, p, q, mode)
    return x


def _spread_edge(x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    """Padding whose gradient flows back: the cells are gathered."""
    numpy_mode: Any = _PAD_MODES[mode]
    where = np.pad(np.arange(x.shape[axis]), (before, after), mode=numpy_mode)
    return apply(o.Gather(axis), x, constant(where))  # type: ignore[no-any-return]


def mirror_pad(input_x: Any, paddings: Any, mode: str) -> Tensor:
    """More elements around by mirroring; paddings: one pair for each dimension.   mode: REFLECT or SYMMETRIC."""
    pairs = np.asarray(as_tensor(paddings).asnumpy()).reshape(-1, 2)
    return padded(as_tensor(input_x), [int(p) for p in pairs[:, 0]], [int(p) for p in pairs[:, 1]], mode.lower())


# --------------------------------------------------------------------------------------------------------------- resize
def resized(
    x: Tensor,
    size: tuple[int, ...],
    scales: tuple[float, ...] | None,
    mode: str,
    coordinates: str,
    nearest: str = "floor",
    cubic: float = -0.75,
) -> Tensor:
    """The image in another size."""
    spatial = x.shape[2:]
    factors = scales or tuple(out / d for out, d in zip(size, spatial, strict=True))
    # with the coefficient -1/2 stands TensorFlow's rule that cells outside of the image weigh nothing
    op = o.Resize((*x.shape[:2], *size), (1.0, 1.0, *factors), mode, coordinates, nearest, cubic, False, cubic == -0.5)
    return apply(op, x)  # type: ignore[no-any-return]


_INTERPOLATIONS = {"nearest", "linear", "bilinear", "trilinear", "bicubic", "area", "nearest-exact"}


def interpolate(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Tensor:  # fmt: skip
    """Another size by interpolation.   mode: nearest, nearest-exact, linear, bilinear, trilinear, bicubic, area.

    bicubic without align_corners is TensorFlow's: its coefficient is -1/2, not the -3/4 of PyTorch (`interpolate_torch`).
    """
    return _interpolated(input, size, scale_factor, mode, align_corners, recompute_scale_factor, -0.75 if align_corners else -0.5)


def interpolate_torch(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Tensor:  # fmt: skip
    """Another size by interpolation, as PyTorch has it."""
    return _interpolated(input, size, scale_factor, mode, align_corners, recompute_scale_factor, -0.75)


def _interpolated(
    input: Any, size: Any, scale_factor: Any, mode: str, align_corners: bool | None, recompute_scale_factor: bool | None, cubic: float
) -> Tensor:
    x = as_tensor(input)
    rank = x.ndim - 2
    if mode not in _INTERPOLATIONS:
        raise ValueError(f"interpolate: mode must be one of {', '.join(sorted(_INTERPOLATIONS))}, got {mode!r}")
    if (size is None) == (scale_factor is None):
        raise ValueError(f"interpolate: either size or scale_factor must be given, got {size} and {scale_factor}")
    scales = None
    if size is not None:
        wanted = ints(size) * (rank if len(ints(size)) == 1 else 1)
    else:
        factors = [float(v) for v in (scale_factor if isinstance(scale_factor, tuple | list) else [scale_factor] * rank)]
        wanted = tuple(math.floor(d * f) for d, f in zip(x.shape[2:], factors, strict=True))
        scales = None if recompute_scale_factor else tuple(factors)
    if mode == "area":
        return adaptive_avg_pool(rank, x, wanted)
    if align_corners and mode in ("linear", "bilinear", "trilinear", "bicubic"):
        scales = None
    coordinates = "align_corners" if align_corners else "half_pixel"
    if mode == "nearest":
        return resized(
            x,
            wanted,
            scales,
            "nearest",
            "align_corners" if align_corners else "asymmetric",
            "round_prefer_ceil" if align_corners else "floor",
        )
    if mode == "nearest-exact":
        return resized(x, wanted, scales, "nearest", "half_pixel", "round_prefer_ceil")
    return resized(floating(x), wanted, scales, "cubic" if mode == "bicubic" else "linear", coordinates, "floor", cubic)


def upsample(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Tensor:  # fmt: skip
    """As `interpolate`."""
    return interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor)


def grid_sample(input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = False) -> Tensor:
    """Reads the image at the places of the grid, from -1 to 1 over the image."""
    word = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}.get(mode)
    if word is None:
        raise ValueError(f"grid_sample: mode must be 'bilinear', 'nearest' or 'bicubic', got {mode!r}")
    x = floating(input)
    return apply(o.GridSample(word, padding_mode, bool(align_corners)), x, cast(as_tensor(grid), numpy_dtype(x)))  # type: ignore[no-any-return]


def affine_grid(theta: Any, size: Any, align_corners: bool = False) -> Tensor:
    """The grid that `grid_sample` wants for affine maps theta [n, d, d + 1]."""
    matrix = as_tensor(theta)
    spatial = ints(size)[2:]
    ranges = []
    for d in spatial:
        edge = np.linspace(-1, 1, d) if d > 1 else np.zeros(1)
        ranges.append(edge if align_corners else edge * (d - 1) / d)
    grid = np.stack([*reversed(np.meshgrid(*ranges, indexing="ij")), np.ones(spatial)], -1)
    points = constant(grid.reshape(1, -1, len(spatial) + 1).astype(numpy_dtype(matrix)))
    n = matrix.shape[0]
    flat = bmm(s.broadcast_to(points, (n, *points.shape[1:])), s.swapaxes(matrix, 1, 2))
    return s.reshape(flat, (n, *spatial, len(spatial)))


# --------------------------------------------------------------------------------------------------- patches and blocks
def unfold(input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The patches of images as columns: [n, c * kernel, patches]."""
    x = as_tensor(input)
    single = x.ndim == 3
    if single:
        x = s.unsqueeze(x, 0)
    kernel, step = spread(kernel_size, 2, "unfold: kernel_size"), spread(stride, 2, "unfold: stride")
    gap = spread(dilation, 2, "unfold: dilation")
    amounts = ints(padding)
    ph, pw = amounts * 2 if len(amounts) == 1 else amounts[:2] if len(amounts) == 2 else (amounts[0], amounts[2])
    x = padded(x, (0, 0, ph, pw), (0, 0, ph, pw)) if ph or pw else x
    n, c, h, w = x.shape
    out = [(d - g * (k - 1) - 1) // t + 1 for d, g, k, t in zip((h, w), gap, kernel, step, strict=True)]
    rows = np.arange(kernel[0])[:, None] * gap[0] + np.arange(out[0]) * step[0]  # [kh, oh]
    columns = np.arange(kernel[1])[:, None] * gap[1] + np.arange(out[1]) * step[1]
    where = rows[:, None, :, None] * w + columns[None, :, None, :]  # [kh, kw, oh, ow]
    y = apply(o.Gather(2), s.reshape(x, (n, c, h * w)), constant(where.reshape(-1)))
    y = s.reshape(y, (n, c * math.prod(kernel), math.prod(out)))
    return s.squeeze(y, 0) if single else y


def fold(input: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Images from columns of patches [n, c * kernel, patches]: what overlaps is summed."""
    x = as_tensor(input)
    single = x.ndim == 2
    if single:
        x = s.unsqueeze(x, 0)
    kernel, pads = spread(kernel_size, 2, "fold: kernel_size"), spread(padding, 2, "fold: padding")
    op = o.Col2Im(
        spread(output_size, 2, "fold: output_size"),
        kernel,
        spread(stride, 2, "fold: stride"),
        pads,
        pads,
        spread(dilation, 2, "fold: dilation"),
    )
    y: Tensor = apply(op, x)
    return s.squeeze(y, 0) if single else y


def col2im(input_x: Any, output_size: Any, kernel_size: Any, dilation: Any, padding_value: Any, stride: Any) -> Tensor:
    """Images from patches [n, c, kernel, patches]."""
    x = as_tensor(input_x)
    n, c, k, count = x.shape
    return fold(s.reshape(x, (n, c * k, count)), output_size, kernel_size, dilation, padding_value, stride)


def pixel_shuffle(input: Any, upscale_factor: int) -> Tensor:
    """[..., c r r, h, w] as [..., c, h r, w r]."""
    x, r = as_tensor(input), int(upscale_factor)
    *batch, c, h, w = x.shape
    if c % (r * r):
        raise ValueError(f"pixel_shuffle: channels must be a multiple of {r * r}, got {c}")
    k = len(batch)
    y = s.reshape(x, (*batch, c // (r * r), r, r, h, w))
    y = s.permute(y, (*range(k), k, k + 3, k + 1, k + 4, k + 2))
    return s.reshape(y, (*batch, c // (r * r), h * r, w * r))


def pixel_unshuffle(input: Any, downscale_factor: int) -> Tensor:
    """[..., c, h r, w r] as [..., c r r, h, w]."""
    x, r = as_tensor(input), int(downscale_factor)
    *batch, c, h, w = x.shape
    if h % r or w % r:
        raise ValueError(f"pixel_unshuffle: height and width must be multiples of {r}, got {h} and {w}")
    k = len(batch)
    y = s.reshape(x, (*batch, c, h // r, r, w // r, r))
    y = s.permute(y, (*range(k), k, k + 2, k + 4, k + 1, k + 3))
    return s.reshape(y, (*batch, c * r * r, h // r, w // r))


def channel_shuffle(x: Any, groups: int) -> Tensor:
    """Channels of the groups one by one in turn."""
    tensor = as_tensor(x)
    n, c, *spatial = tensor.shape
    y = s.reshape(tensor, (n, groups, c // groups, *spatial))
    return s.reshape(s.swapaxes(y, 1, 2), tensor.shape)


def depth_to_space(input: Any, block_size: int) -> Tensor:
    """[n, block block c, h, w] as [n, c, h block, w block], the block outside."""
    x, r = as_tensor(input), int(block_size)
    n, c, h, w = x.shape
    y = s.permute(s.reshape(x, (n, r, r, c // (r * r), h, w)), (0, 3, 4, 1, 5, 2))
    return s.reshape(y, (n, c // (r * r), h * r, w * r))


def space_to_depth(input: Any, block_size: int) -> Tensor:
    """[n, c, h block, w block] as [n, block block c, h, w]."""
    x, r = as_tensor(input), int(block_size)
    n, c, h, w = x.shape
    y = s.permute(s.reshape(x, (n, c, h // r, r, w // r, r)), (0, 3, 5, 1, 2, 4))
    return s.reshape(y, (n, c * r * r, h // r, w // r))


# ----------------------------------------------------------------------------------------------------------------- boxes
def iou(anchor_boxes: Any, gt_boxes: Any, mode: str = "iou") -> Tensor:
    """Overlap of boxes (x1, y1, x2, y2), pixels counted whole: [gt, anchor].   mode: iou, or iof: by the ground truth's area."""
    p, q = as_tensor(anchor_boxes), as_tensor(gt_boxes)
    left, right = s.unsqueeze(p, 0), s.unsqueeze(q, 1)

    def column(x: Tensor, i: int) -> Tensor:
        return s.select(x, -1, i)

    def area(x: Tensor) -> Tensor:
        return a.mul(a.add(a.sub(column(x, 2), column(x, 0)), 1), a.add(a.sub(column(x, 3), column(x, 1)), 1))

    sides = [
        a.clamp(a.add(a.sub(a.minimum(column(left, i + 2), column(right, i + 2)), a.maximum(column(left, i), column(right, i))), 1), 0)
        for i in (0, 1)
    ]
    common = a.mul(*sides)
    whole = area(right) if mode == "iof" else a.sub(a.add(area(left), area(right)), common)
    return a.div(common, whole)


def roi_align(features: Any, rois: Any, out: tuple[int, int], scale: float, sampling: int, half_pixel: bool) -> Tensor:
    """Regions of interest (image, x1, y1, x2, y2), each as one small image."""
    boxes = as_tensor(rois)
    batch = cast(s.select(boxes, 1, 0), I64)
    return apply(o.RoiAlign(out, "avg", sampling, scale, half_pixel), as_tensor(features), s.part(boxes, 1, 1, 5), batch)  # type: ignore[no-any-return]


__all__ = [
    "affine_grid", "channel_shuffle", "col2im", "fold", "grid_sample", "interpolate", "iou", "mirror_pad", "pad", "pixel_shuffle",
    "pixel_unshuffle", "unfold", "upsample",
]  # fmt: skip
