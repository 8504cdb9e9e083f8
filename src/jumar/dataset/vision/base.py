"""What operations on pictures share: one method for arrays, one for PIL images, and the checks of their arguments.

In: uint8 or float arrays [height, width(, channels)], or PIL images.  Out: the same kind.  An array is worked on with OpenCV's formulas, a PIL
image with Pillow's, as in MindSpore.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jumar.dataset.enums import Border, Inter
from jumar.dataset.errors import DataTypeFault, DataValueFault, check_int, check_number
from jumar.dataset.transforms.base import Transform, draws
from jumar.dataset.vision.coding import is_pil, pil

Array = np.ndarray[Any, np.dtype[Any]]


class ImageOp(Transform):
    """An operation on a picture: `on_array` and `on_pil`.   arrays_only: a PIL image comes out as an array, as from MindSpore's C++."""

    arrays_only = False

    def apply(self, value: Any) -> Any:
        return self.direct(np.asarray(value) if self.arrays_only and is_pil(value) else value)

    def direct(self, value: Any) -> Any:
        """A PIL image stays one."""
        if is_pil(value):
            return self.on_pil(value)
        array = np.asarray(value)
        if array.dtype.kind not in "uifb" or array.ndim < 2:
            raise DataTypeFault(
                f"{type(self).__name__}: image must be numbers [height, width(, channels)] or a PIL image, got {array.dtype} {list(array.shape)}",
                hint="Decode comes first for files" if array.ndim == 1 else "",
            )
        return self.on_array(array)

    def on_array(self, image: Array) -> Any:
        raise DataTypeFault(f"{type(self).__name__}: image must be a PIL image, got an array", hint="put ToPIL before it")

    def on_pil(self, image: Any) -> Any:
        raise DataTypeFault(f"{type(self).__name__}: image must be an array, got a PIL image", hint="put ToTensor or ToNumpy before it")


class RandomOp(ImageOp):
    """A random operation: the same draw for all pictures of a row (an image and its mask)."""

    def __call__(self, *values: Any) -> Any:
        if not values:
            raise DataTypeFault(f"{type(self).__name__}: must be called with a picture, got none")
        if self.arrays_only:
            values = tuple(np.asarray(v) if is_pil(v) else v for v in values)
        op = self.drawn(values[0])
        op = op.direct if isinstance(op, ImageOp) else op
        results = tuple(v if op is None else op(v) for v in values)
        return results[0] if len(results) == 1 else results

    def drawn(self, image: Any) -> Any:
        """The operation for this row, or None for none."""
        raise NotImplementedError(type(self).__name__)


class Sometimes(RandomOp):
    """An operation with probability `prob`."""

    def __init__(self, op: Any, prob: Any) -> None:
        self.prob = check_number(type(self).__name__, "prob", prob, 0.0, 1.0)
        self.op = op

    def drawn(self, image: Any) -> Any:
        return self.op if draws().random() < self.prob else None


def size_of(image: Any) -> tuple[int, int]:
    """(height, width)."""
    return (image.height, image.width) if is_pil(image) else (image.shape[0], image.shape[1])


def check_size(who: str, size: Any) -> tuple[int, int]:
    """An int or (height, width) as a pair."""
    if isinstance(size, (list, tuple)):
        if len(size) != 2:
            raise DataTypeFault(f"{who}: size must be an int or (height, width), got {size!r}")
        return check_int(who, "size", size[0], 1), check_int(who, "size", size[1], 1)
    return (check_int(who, "size", size, 1),) * 2


def check_inter(who: str, inter: Any) -> Inter:
    if not isinstance(inter, Inter):
        raise DataTypeFault(f"{who}: interpolation must be an Inter, got {inter!r}")
    return inter


def check_fill(who: str, fill: Any) -> int | tuple[int, int, int]:
    """A grey value or one for each of three channels."""
    if isinstance(fill, (tuple, list)):
        if len(fill) != 3:
            raise DataTypeFault(f"{who}: fill_value must be an int or three of them, got {fill!r}")
        r, g, b = (check_int(who, "fill_value", v, 0, 255) for v in fill)
        return r, g, b
    return check_int(who, "fill_value", fill, 0, 255)


def check_border(who: str, border: Any) -> Border:
    if not isinstance(border, Border):
        raise DataTypeFault(f"{who}: padding_mode must be a Border, got {border!r}")
    return border


def check_padding(who: str, padding: Any) -> tuple[int, int, int, int]:
    """One width, (left and right, top and bottom) or all four, as (left, top, right, bottom)."""
    if isinstance(padding, Sequence) and not isinstance(padding, str):
        found = [check_int(who, "padding", p, 0) for p in padding]
        if len(found) == 2:
            return found[0], found[1], found[0], found[1]
        if len(found) == 4:
            return found[0], found[1], found[2], found[3]
        raise DataValueFault(f"{who}: padding must be one, two or four widths, got {padding!r}")
    return (check_int(who, "padding", padding, 0),) * 4


def pil_filter(who: str, inter: Inter) -> Any:
    """Pillow's filter of an Inter."""
    kinds = pil().Resampling
    table = {Inter.NEAREST: kinds.NEAREST, Inter.BILINEAR: kinds.BILINEAR, Inter.BICUBIC: kinds.BICUBIC, Inter.ANTIALIAS: kinds.LANCZOS}
    if inter not in table:
        raise DataTypeFault(f"{who}: interpolation must be one that Pillow has for a PIL image, got {inter.name}")
    return table[inter]


def clipped(values: Array, kind: np.dtype[Any]) -> Array:
    """Float results as the type of the picture, rounded to even and kept in its range."""
    if kind.kind == "f":
        return values.astype(kind)
    info = np.iinfo(kind)
    return np.clip(np.rint(values), info.min, info.max).astype(kind)


def grey(image: Array) -> Array:
    """Brightness of RGB pixels, with OpenCV's weights (15 bits for uint8)."""
    if image.dtype == np.uint8:
        r, g, b = (image[..., i].astype(np.int32) for i in range(3))
        return ((r * 9798 + g * 19235 + b * 3735 + 16384) >> 15).astype(np.uint8)
    return np.asarray(image[..., 0] * 0.299 + image[..., 1] * 0.587 + image[..., 2] * 0.114, image.dtype)


def need_rgb(who: str, image: Array) -> Array:
    if image.ndim != 3 or image.shape[2] != 3:
        raise DataTypeFault(f"{who}: image must have three channels last, got shape {list(image.shape)}")
    return image
