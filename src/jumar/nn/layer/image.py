"""Images: pixels from channels and back, gradients, crops, and how alike two images are.

In: [n, c, h, w].  Out: images, or one number for each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jumar import ops
from jumar.frontend import dtype as types
from jumar.frontend.engine import apply
from jumar.frontend.tensor import Tensor
from jumar.nn.cell import Cell
from jumar.operators import AvgPool, Conv


class PixelShuffle(Cell):
    """[..., c r r, h, w] -> [..., c, h r, w r]."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def construct(self, input: Tensor) -> Tensor:
        return ops.pixel_shuffle(input, self.upscale_factor)  # type: ignore[no-any-return]


class PixelUnshuffle(Cell):
    """[..., c, h r, w r] -> [..., c r r, h, w]."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def construct(self, input: Tensor) -> Tensor:
        return ops.pixel_unshuffle(input, self.downscale_factor)  # type: ignore[no-any-return]


class ImageGradients(Cell):
    """Differences to the next row and to the next column, zero at the end."""

    def construct(self, images: Tensor) -> tuple[Tensor, Tensor]:
        if images.ndim != 4:
            raise ValueError(f"For 'ImageGradients', images must have 4 dimensions, but got {images.ndim}.")
        dy, dx = images[:, :, 1:] - images[:, :, :-1], images[:, :, :, 1:] - images[:, :, :, :-1]
        return ops.pad(dy, [0, 0, 0, 1]), ops.pad(dx, [0, 1, 0, 0])


class CentralCrop(Cell):
    """The central part of [c, h, w] or [n, c, h, w]."""

    def __init__(self, central_fraction: float) -> None:
        super().__init__()
        if not 0 < central_fraction <= 1:
            raise ValueError(f"For 'CentralCrop', the 'central_fraction' must be in range (0, 1], but got {central_fraction}.")
        self.central_fraction = central_fraction

    def construct(self, image: Tensor) -> Tensor:
        if self.central_fraction == 1:
            return image
        h, w = image.shape[-2:]
        top, left = int((h - h * self.central_fraction) / 2), int((w - w * self.central_fraction) / 2)
        return image[..., top : h - top, left : w - left]


def _unit(images: Tensor, max_val: Any) -> tuple[Tensor, float]:
    """Images as floats of 0..1, and what 1 is."""
    if not images.dtype.is_floating_point:
        top = float(np.iinfo(images.dtype.numpy).max)
        return ops.cast(images, types.float32) / top, 1.0
    return images, float(max_val)


def _filter(size: int, sigma: float) -> np.ndarray[Any, Any]:
    """A Gaussian window, [1, 1, size, size], whose sum is 1."""
    at = np.arange(size) - (size - 1) / 2
    line = np.exp(-(at**2) / (2 * sigma**2))
    window = np.outer(line, line)
    found: np.ndarray[Any, Any] = (window / window.sum()).astype(np.float32)[None, None]
    return found


def _similarity(a: Tensor, b: Tensor, top: float, size: int, sigma: float, k1: float, k2: float) -> tuple[Tensor, Tensor]:
    """Mean structural similarity and mean contrast of each channel of each image."""
    c = a.shape[1]
    window = ops.cast(Tensor(np.repeat(_filter(size, sigma), c, axis=0)), a.dtype)
    op = Conv((1, 1), (0, 0), (0, 0), (1, 1), c)
    mean_a, mean_b = apply(op, a, window), apply(op, b, window)
    c1, c2 = (k1 * top) ** 2, (k2 * top) ** 2
    product, squares = mean_a * mean_b, mean_a * mean_a + mean_b * mean_b
    light = (product * 2 + c1) / (squares + c1)
    contrast = ((apply(op, a * b, window) - product) * 2 + c2) / (apply(op, a * a + b * b, window) - squares + c2)
    return ops.mean(light * contrast, (2, 3)), ops.mean(contrast, (2, 3))


class SSIM(Cell):
    """Structural similarity of each image."""

    def __init__(self, max_val: float = 1.0, filter_size: int = 11, filter_sigma: float = 1.5, k1: float = 0.01, k2: float = 0.03) -> None:
        super().__init__()
        if not max_val > 0:
            raise ValueError(f"For 'SSIM', the 'max_val' must be > 0, but got {max_val}.")
        self.max_val, self.filter_size, self.filter_sigma, self.k1, self.k2 = max_val, filter_size, filter_sigma, k1, k2

    def construct(self, img1: Tensor, img2: Tensor) -> Tensor:
        (a, top), (b, _) = _unit(img1, self.max_val), _unit(img2, self.max_val)
        return ops.mean(_similarity(a, b, top, self.filter_size, self.filter_sigma, self.k1, self.k2)[0], -1)  # type: ignore[no-any-return]


class MSSSIM(Cell):
    """Structural similarity over several scales of each image."""

    def __init__(
        self, max_val: float = 1.0, power_factors: Any = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333), filter_size: int = 11,
        filter_sigma: float = 1.5, k1: float = 0.01, k2: float = 0.03,
    ) -> None:  # fmt: skip
        super().__init__()
        self.max_val, self.power_factors, self.filter_size = max_val, tuple(power_factors), filter_size
        self.filter_sigma, self.k1, self.k2 = filter_sigma, k1, k2

    def construct(self, img1: Tensor, img2: Tensor) -> Tensor:
        (a, top), (b, _) = _unit(img1, self.max_val), _unit(img2, self.max_val)
        half = AvgPool((2, 2), (2, 2), (0, 0), (0, 0), (1, 1))
        total: Any = None
        for i, power in enumerate(self.power_factors):
            if i:
                a, b = apply(half, a), apply(half, b)
            similar, contrast = _similarity(a, b, top, self.filter_size, self.filter_sigma, self.k1, self.k2)
            part = ops.pow(ops.relu(similar if i == len(self.power_factors) - 1 else contrast), power)
            total = part if total is None else total * part
        return ops.mean(total, -1)  # type: ignore[no-any-return]


class PSNR(Cell):
    """Peak signal-to-noise ratio of each image, in decibels."""

    def __init__(self, max_val: float = 1.0) -> None:
        super().__init__()
        if not max_val > 0:
            raise ValueError(f"For 'PSNR', the 'max_val' must be > 0, but got {max_val}.")
        self.max_val = max_val

    def construct(self, img1: Tensor, img2: Tensor) -> Tensor:
        (a, top), (b, _) = _unit(img1, self.max_val), _unit(img2, self.max_val)
        error = ops.mean(ops.square(a - b), (-3, -2, -1))
        return ops.log(top**2 / error) * (10 / np.log(10).item())  # type: ignore[no-any-return]
