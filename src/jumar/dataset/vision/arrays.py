"""Operations that change types, layouts and scales: decode, to tensor, normalize, rescale.

In: bytes, PIL images, arrays.  Out: arrays (or PIL images, where asked).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jumar.dataset.errors import DataFault, DataTypeFault, DataValueFault, check_bool, check_number
from jumar.dataset.transforms.base import Transform
from jumar.dataset.values import numpy_type
from jumar.dataset.vision.base import Array, ImageOp
from jumar.dataset.vision.coding import decode, is_pil, to_pil


class Decode(Transform):
    """Pixels of a JPEG, PNG, BMP ... file: RGB uint8, or a PIL image."""

    def __init__(self, to_pil: bool = False) -> None:
        self.to_pil = check_bool("Decode", "to_pil", to_pil)

    def apply(self, value: Any) -> Any:
        return decode(value, to_pil=self.to_pil)


class ToPIL(Transform):
    """An array as a PIL image."""

    def apply(self, value: Any) -> Any:
        return to_pil(value, "ToPIL")


class ToNumpy(Transform):
    """A PIL image as an array."""

    def apply(self, value: Any) -> Array:
        return np.array(value)


class ToTensor(ImageOp):
    """[height, width, channels] of 0 .. 255 as [channels, height, width] of 0 .. 1."""

    def __init__(self, output_type: Any = np.float32) -> None:
        self.output_type = numpy_type(output_type)

    def on_array(self, image: Array) -> Array:
        if image.ndim > 3:
            raise DataTypeFault(f"ToTensor: image must have two or three dimensions, got {image.ndim}")
        image = image[..., None] if image.ndim == 2 else image
        scaled = np.ascontiguousarray(image.transpose(2, 0, 1)).astype(np.float32)
        scaled /= np.float32(255)
        return scaled.astype(self.output_type, copy=False)

    def on_pil(self, image: Any) -> Array:
        return self.on_array(np.asarray(image))


class ToType(Transform):
    """Another type."""

    def __init__(self, data_type: Any) -> None:
        self.data_type = numpy_type(data_type)

    def apply(self, value: Any) -> Array:
        if is_pil(value):
            raise DataTypeFault("ToType: image must be an array, got a PIL image", hint="put ToTensor or ToNumpy before it")
        return np.asarray(value).astype(self.data_type)


class HWC2CHW(ImageOp):
    """Channels first; a picture without channels stays."""

    def on_array(self, image: Array) -> Array:
        return np.ascontiguousarray(np.moveaxis(image, -1, -3)) if image.ndim > 2 else image


class Rescale(ImageOp):
    """image * rescale + shift, as float32."""

    def __init__(self, rescale: float, shift: float) -> None:
        self.rescale, self.shift = check_number("Rescale", "rescale", rescale), check_number("Rescale", "shift", shift)

    def on_array(self, image: Array) -> Array:
        return np.asarray((image.astype(np.float32) * np.float32(self.rescale) + np.float32(self.shift)).astype(np.float32))


def _per_channel(who: str, name: str, values: Any, low: float) -> Array:
    if not isinstance(values, (list, tuple)) or not values:
        raise DataTypeFault(f"{who}: {name} must be a list of numbers, got {values!r}")
    return np.array([check_number(who, name, v, low) for v in values], np.float32)


class Normalize(ImageOp):
    """(image - mean) / std for each channel, as float32."""

    def __init__(self, mean: Any, std: Any, is_hwc: bool = True) -> None:
        self.mean, self.std = _per_channel("Normalize", "mean", mean, 0.0), _per_channel("Normalize", "std", std, 0.0)
        if len(self.mean) != len(self.std):
            raise DataValueFault(f"Normalize: mean and std must be as many, got {len(self.mean)} and {len(self.std)}")
        if not self.std.all():
            raise DataValueFault(f"Normalize: std must not be zero, got {std!r}")
        self.is_hwc = check_bool("Normalize", "is_hwc", is_hwc)

    def on_array(self, image: Array) -> Array:
        if image.ndim == 2 and len(self.mean) == 1:
            return np.asarray(((image.astype(np.float32) - self.mean[0]) / self.std[0]).astype(np.float32))
        channels = image.shape[-1] if self.is_hwc else image.shape[-3] if image.ndim > 2 else 0
        if len(self.mean) not in (1, channels):
            raise DataFault(f"Normalize: mean must be one for each of {channels} channels, got {len(self.mean)}")
        out = image.astype(np.float32)
        if self.is_hwc and image.ndim > 1:  # rows with their channels side by side: long loops instead of loops over three
            flat = out.reshape(*out.shape[:-2], -1)
            flat -= np.tile(np.resize(self.mean, channels), out.shape[-2])
            flat /= np.tile(np.resize(self.std, channels), out.shape[-2])
            return out
        out -= self.mean[:, None, None]
        out /= self.std[:, None, None]
        return out


class NormalizePad(ImageOp):
    """`Normalize`, and a fourth channel of zeros."""

    def __init__(self, mean: Any, std: Any, dtype: str = "float32", is_hwc: bool = True) -> None:
        self.normalize = Normalize(mean, std, is_hwc)
        if dtype not in ("float32", "float16"):
            raise DataValueFault(f"NormalizePad: dtype must be 'float32' or 'float16', got {dtype!r}")
        self.dtype = np.dtype(dtype)

    def on_array(self, image: Array) -> Array:
        made = self.normalize(image)
        axis = -1 if self.normalize.is_hwc else -3
        zeros = np.zeros_like(np.take(made, [0], axis))
        return np.concatenate([made, zeros], axis).astype(self.dtype)


class LinearTransformation(ImageOp):
    """A flattened picture minus a mean, times a square matrix (whitening).   Channels first."""

    def __init__(self, transformation_matrix: Any, mean_vector: Any) -> None:
        self.matrix, self.mean = np.asarray(transformation_matrix), np.asarray(mean_vector)
        n = len(self.mean)
        if self.matrix.shape != (n, n):
            raise DataValueFault(f"LinearTransformation: matrix must be square for {n} means, got shape {list(self.matrix.shape)}")

    def on_array(self, image: Array) -> Array:
        if image.size != len(self.mean):
            raise DataFault(f"LinearTransformation: image must have {len(self.mean)} values, got {image.size}")
        return np.asarray(((image.reshape(1, -1) - self.mean) @ self.matrix).reshape(image.shape))
