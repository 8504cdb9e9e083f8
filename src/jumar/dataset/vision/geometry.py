"""Operations that move pixels: resize, crop, flip, pad, rotate, affine, perspective, slices.

In: pictures.  Out: pictures of another size or orientation.  Their random forms are in random_geometry.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jumar.dataset.enums import Border, Inter, SliceMode
from jumar.dataset.errors import DataFault, DataTypeFault, DataValueFault, check_bool, check_int, check_number
from jumar.dataset.vision import resample
from jumar.dataset.vision.base import (
    Array,
    ImageOp,
    check_border,
    check_fill,
    check_inter,
    check_padding,
    check_size,
    pil_filter,
    size_of,
)
from jumar.dataset.vision.coding import pil, to_pil

Matrix = np.ndarray[Any, np.dtype[np.float64]]


def resized(image: Array, height: int, width: int, inter: Inter, who: str = "Resize") -> Array:
    """An array in another size; a batch [n, height, width, channels] picture by picture."""
    if image.ndim > 3:
        return np.stack([resized(one, height, width, inter, who) for one in image])
    if inter in (Inter.PILCUBIC, Inter.ANTIALIAS):
        if inter is Inter.ANTIALIAS or image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
            raise DataTypeFault(
                f"{who}: {inter.name} must have a {'PIL image' if inter is Inter.ANTIALIAS else 'uint8 RGB array'}, got {image.dtype} array"
            )
        return np.array(to_pil(image, who).resize((width, height), pil().Resampling.BICUBIC))
    return resample.resize(image, height, width, inter)


class Resize(ImageOp):
    """To `size`: (height, width), or an int for the shorter side.

    >>> Resize(2)(np.zeros((4, 8, 3), np.uint8)).shape
    (2, 4, 3)
    """

    def __init__(self, size: int | tuple[int, int], interpolation: Inter = Inter.BILINEAR) -> None:
        self.size = check_size("Resize", size)
        self.shorter = None if isinstance(size, (list, tuple)) else self.size[0]
        self.interpolation = check_inter("Resize", interpolation)

    def _target(self, height: int, width: int) -> tuple[int, int]:
        if self.shorter is None:
            return self.size
        if height < width:
            return self.shorter, int(self.shorter * width / height)
        return int(self.shorter * height / width), self.shorter

    def on_array(self, image: Array) -> Array:
        return resized(image, *self._target(*image.shape[-3:-1] if image.ndim > 2 else image.shape), self.interpolation)

    def on_pil(self, image: Any) -> Any:
        height, width = self._target(image.height, image.width)
        return image.resize((width, height), pil_filter("Resize", self.interpolation))


class Crop(ImageOp):
    """The part at (top, left) of a size."""

    arrays_only = True

    def __init__(self, coordinates: tuple[int, int], size: int | tuple[int, int]) -> None:
        if not isinstance(coordinates, (list, tuple)) or len(coordinates) != 2:
            raise DataTypeFault(f"Crop: coordinates must be (top, left), got {coordinates!r}")
        self.top, self.left = (check_int("Crop", "coordinates", c, 0) for c in coordinates)
        self.size = check_size("Crop", size)

    def _check(self, height: int, width: int) -> None:
        if self.top + self.size[0] > height or self.left + self.size[1] > width:
            raise DataFault(f"Crop: the part must be inside of {height} x {width}, got {self.size} at ({self.top}, {self.left})")

    def on_array(self, image: Array) -> Array:
        self._check(*image.shape[:2])
        return np.asarray(image[self.top : self.top + self.size[0], self.left : self.left + self.size[1]].copy())

    def on_pil(self, image: Any) -> Any:
        self._check(image.height, image.width)
        return image.crop((self.left, self.top, self.left + self.size[1], self.top + self.size[0]))


class CenterCrop(ImageOp):
    """The middle; a picture that is smaller is padded with zeros."""

    def __init__(self, size: int | tuple[int, int]) -> None:
        self.size = check_size("CenterCrop", size)

    def on_array(self, image: Array) -> Array:
        h, w = self.size
        down, right = max(0, h - image.shape[0]), max(0, w - image.shape[1])
        if down or right:
            widths = [(down - down // 2, down // 2), (right - right // 2, right // 2)]
            image = np.pad(image, widths + [(0, 0)] * (image.ndim - 2))
        top, left = (image.shape[0] - h) // 2, (image.shape[1] - w) // 2
        return np.asarray(image[top : top + h, left : left + w].copy())

    def on_pil(self, image: Any) -> Any:
        h, w = self.size
        top, left = round((image.height - h) / 2.0), round((image.width - w) / 2.0)
        return image.crop((left, top, left + w, top + h))


class HorizontalFlip(ImageOp):
    arrays_only = True

    def on_array(self, image: Array) -> Array:
        return np.ascontiguousarray(image[..., ::-1, :] if image.ndim > 2 else image[:, ::-1])

    def on_pil(self, image: Any) -> Any:
        return image.transpose(pil().Transpose.FLIP_LEFT_RIGHT)


class VerticalFlip(ImageOp):
    arrays_only = True

    def on_array(self, image: Array) -> Array:
        return np.ascontiguousarray(image[..., ::-1, :, :] if image.ndim > 2 else image[::-1])

    def on_pil(self, image: Any) -> Any:
        return image.transpose(pil().Transpose.FLIP_TOP_BOTTOM)


MODES = {Border.EDGE: "edge", Border.REFLECT: "reflect", Border.SYMMETRIC: "symmetric"}


def padded(image: Array, left: int, top: int, right: int, bottom: int, fill: Any, border: Border) -> Array:
    """An array with a border."""
    widths = [(top, bottom), (left, right)] + [(0, 0)] * (image.ndim - 2)
    if border is Border.CONSTANT:
        out = np.empty([n + a + b for n, (a, b) in zip(image.shape, widths)], image.dtype)
        values = np.asarray(fill, image.dtype)
        out[...] = values if image.ndim > 2 and values.size in (1, image.shape[2]) else values.reshape(-1)[0]
        out[top : top + image.shape[0], left : left + image.shape[1]] = image
        return out
    if border is Border.REFLECT and (max(top, bottom) >= image.shape[0] or max(left, right) >= image.shape[1]):
        raise DataFault(
            f"Pad: a reflected border must be smaller than the picture {list(image.shape[:2])}, got {(left, top, right, bottom)}"
        )
    if border is Border.SYMMETRIC and (max(top, bottom) > image.shape[0] or max(left, right) > image.shape[1]):
        raise DataFault(
            f"Pad: a symmetric border must be no larger than the picture {list(image.shape[:2])}, got {(left, top, right, bottom)}"
        )
    return np.pad(image, widths, MODES[border])  # type: ignore[call-overload, no-any-return]


class Pad(ImageOp):
    """A border: one width, (left and right, top and bottom), or (left, top, right, bottom)."""

    def __init__(self, padding: Any, fill_value: Any = 0, padding_mode: Border = Border.CONSTANT) -> None:
        self.padding = check_padding("Pad", padding)
        self.fill_value, self.padding_mode = check_fill("Pad", fill_value), check_border("Pad", padding_mode)

    def on_array(self, image: Array) -> Array:
        return padded(image, *self.padding, self.fill_value, self.padding_mode)

    def on_pil(self, image: Any) -> Any:
        array = np.asarray(image)
        return pil().fromarray(padded(array, *self.padding, self.fill_value, self.padding_mode))


class PadToSize(ImageOp):
    """A border that makes the picture `size`; `offset` (top, left) says where it lies (default: the middle)."""

    def __init__(self, size: Any, offset: Any = None, fill_value: Any = 0, padding_mode: Border = Border.CONSTANT) -> None:
        self.size = check_size("PadToSize", size)
        self.offset = None
        if offset is not None and not (isinstance(offset, (list, tuple)) and not offset):
            found = [offset, offset] if isinstance(offset, int) else list(offset)
            self.offset = [check_int("PadToSize", "offset", o, 0) for o in (found * 2 if len(found) == 1 else found)]
        self.fill_value, self.padding_mode = check_fill("PadToSize", fill_value), check_border("PadToSize", padding_mode)

    def on_array(self, image: Array) -> Array:
        down, right = self.size[0] - image.shape[0], self.size[1] - image.shape[1]
        if down < 0 or right < 0:
            raise DataFault(f"PadToSize: size must be no smaller than the picture {list(image.shape[:2])}, got {list(self.size)}")
        top, left = (down // 2, right // 2) if self.offset is None else self.offset
        if top > down or left > right:
            raise DataFault(f"PadToSize: offset and picture must fit {list(self.size)}, got {self.offset} and {list(image.shape[:2])}")
        return padded(image, left, top, right - left, down - top, self.fill_value, self.padding_mode)


def affine_matrix(center: tuple[float, float], angle: float, translate: Any, scale: float, shear: Any) -> Matrix:
    """From result to picture: the inverse of turning by `angle` (clockwise degrees), scaling, shearing about the centre and moving."""
    rot, sx, sy = math.radians(angle), math.radians(shear[0]), math.radians(shear[1])
    a = math.cos(rot - sy) / math.cos(sy)
    b = -math.cos(rot - sy) * math.tan(sx) / math.cos(sy) - math.sin(rot)
    c = math.sin(rot - sy) / math.cos(sy)
    d = -math.sin(rot - sy) * math.tan(sx) / math.cos(sy) + math.cos(rot)
    m = np.array([d / scale, -b / scale, 0, -c / scale, a / scale, 0]).reshape(2, 3)
    m[:, 2] = m[:, :2] @ np.array([-center[0] - translate[0], -center[1] - translate[1]]) + np.array(center)
    return m


class Rotate(ImageOp):
    """By `degrees` against the clock, about `center` (default: the middle); `expand` keeps the corners."""

    arrays_only = True

    def __init__(
        self,
        degrees: float,
        resample: Inter = Inter.NEAREST,
        expand: bool = False,
        center: tuple[float, float] | None = None,
        fill_value: Any = 0,
    ) -> None:
        self.degrees = check_number("Rotate", "degrees", degrees) % 360
        self.resample, self.expand = check_inter("Rotate", resample), check_bool("Rotate", "expand", expand)
        self.center, self.fill_value = center, check_fill("Rotate", fill_value)

    def on_array(self, image: Array) -> Array:
        h, w = image.shape[:2]
        center = self.center if self.center is not None else ((w - 1) / 2.0, (h - 1) / 2.0)
        turn = math.radians(self.degrees)
        a, b = math.cos(turn), math.sin(turn)
        forward = np.array([[a, b, (1 - a) * center[0] - b * center[1]], [-b, a, b * center[0] + (1 - a) * center[1]]])
        if self.expand:
            wide, high = h * abs(b) + w * abs(a), h * abs(a) + w * abs(b)
            forward[:, 2] += (wide / 2.0 - w / 2.0, high / 2.0 - h / 2.0)
            h, w = round(high), round(wide)
        return resample.warp(image, invert_affine(forward), h, w, self.resample, self.fill_value)

    def on_pil(self, image: Any) -> Any:
        fill = self.fill_value
        if isinstance(fill, int) and len(image.getbands()) > 1:
            fill = (fill,) * len(image.getbands())  # type: ignore[assignment]
        return image.rotate(self.degrees, pil_filter("Rotate", self.resample), self.expand, self.center, fillcolor=fill)


def invert_affine(m: Matrix) -> Matrix:
    """The way back of a [2, 3] matrix."""
    d = m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]
    d = 1.0 / d if d else 0.0
    a11, a22, a12, a21 = m[1, 1] * d, m[0, 0] * d, -m[0, 1] * d, -m[1, 0] * d
    b1 = -a11 * m[0, 2] - a12 * m[1, 2]
    b2 = -a21 * m[0, 2] - a22 * m[1, 2]
    return np.array([[a11, a12, b1], [a21, a22, b2]])


class Affine(ImageOp):
    """Turned by `degrees`, moved by `translate` (parts of width and height), scaled and sheared about the middle."""

    arrays_only = True

    def __init__(
        self, degrees: float, translate: Any, scale: float, shear: Any, resample: Inter = Inter.NEAREST, fill_value: Any = 0
    ) -> None:
        self.degrees = check_number("Affine", "degrees", degrees)
        if not isinstance(translate, (list, tuple)) or len(translate) != 2:
            raise DataTypeFault(f"Affine: translate must be (x, y), got {translate!r}")
        self.translate = [check_number("Affine", "translate", t, -1.0, 1.0) for t in translate]
        self.scale = check_number("Affine", "scale", scale, 1e-9)
        pair_of = [shear, 0.0] if isinstance(shear, (int, float)) else list(shear)
        self.shear = [check_number("Affine", "shear", s) for s in pair_of]
        self.resample, self.fill_value = check_inter("Affine", resample), check_fill("Affine", fill_value)

    def on_array(self, image: Array) -> Array:
        h, w = image.shape[:2]
        moved = (self.translate[0] * w, self.translate[1] * h)
        m = affine_matrix(((w - 1) / 2.0, (h - 1) / 2.0), self.degrees, moved, self.scale, self.shear)
        return resample.warp(image, m, h, w, self.resample, self.fill_value)

    def on_pil(self, image: Any) -> Any:
        w, h = image.size
        moved = (self.translate[0] * w, self.translate[1] * h)
        m = affine_matrix((w * 0.5 + 0.5, h * 0.5 + 0.5), self.degrees, moved, self.scale, self.shear)
        fill = (
            (self.fill_value,) * len(image.getbands())
            if isinstance(self.fill_value, int) and len(image.getbands()) > 1
            else self.fill_value
        )
        return image.transform((w, h), pil().Transform.AFFINE, m.reshape(-1).tolist(), pil_filter("Affine", self.resample), fillcolor=fill)


def perspective_matrix(start: Array, end: Array) -> Matrix:
    """The [3, 3] matrix that takes four points to four points."""
    rows, right = [], []
    for (x, y), (u, v) in zip(start, end):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        right += [u, v]
    found = np.linalg.solve(np.array(rows, np.float64), np.array(right, np.float64))
    return np.append(found, 1.0).reshape(3, 3)


class Perspective(ImageOp):
    """Four points (top left, top right, bottom right, bottom left) taken to four others."""

    def __init__(self, start_points: Any, end_points: Any, interpolation: Inter = Inter.BILINEAR) -> None:
        self.start, self.end = np.asarray(start_points, np.float64), np.asarray(end_points, np.float64)
        if self.start.shape != (4, 2) or self.end.shape != (4, 2):
            raise DataTypeFault(
                f"Perspective: start_points and end_points must be four points each, got {self.start.shape} and {self.end.shape}"
            )
        self.interpolation = check_inter("Perspective", interpolation)

    def on_array(self, image: Array) -> Array:
        inverse = np.linalg.inv(perspective_matrix(self.start, self.end))
        return resample.warp(image, inverse, image.shape[0], image.shape[1], self.interpolation, 0)

    def on_pil(self, image: Any) -> Any:
        m = perspective_matrix(self.end, self.start).reshape(-1)[:8]
        return image.transform(image.size, pil().Transform.PERSPECTIVE, m.tolist(), pil_filter("Perspective", self.interpolation))


class ResizedCrop(ImageOp):
    """A part, resized."""

    arrays_only = True

    def __init__(self, top: int, left: int, height: int, width: int, size: Any, interpolation: Inter = Inter.BILINEAR) -> None:
        who = "ResizedCrop"
        self.top, self.left = check_int(who, "top", top, 0), check_int(who, "left", left, 0)
        self.height, self.width = check_int(who, "height", height, 1), check_int(who, "width", width, 1)
        self.size, self.interpolation = check_size(who, size), check_inter(who, interpolation)

    def on_array(self, image: Array) -> Any:
        part = Crop((self.top, self.left), (self.height, self.width)).on_array(image)
        return Resize(self.size, self.interpolation).on_array(part)

    def on_pil(self, image: Any) -> Any:
        part = Crop((self.top, self.left), (self.height, self.width)).on_pil(image)
        return Resize(self.size, self.interpolation).on_pil(part)


class FiveCrop(ImageOp):
    """The four corners and the middle: (top left, top right, bottom left, bottom right, middle)."""

    def __init__(self, size: Any) -> None:
        self.size = check_size("FiveCrop", size)

    def on_pil(self, image: Any) -> tuple[Any, ...]:
        h, w = self.size
        if h > image.height or w > image.width:
            raise DataFault(f"FiveCrop: size must be no larger than the picture {image.height} x {image.width}, got {list(self.size)}")
        places = ((0, 0), (0, image.width - w), (image.height - h, 0), (image.height - h, image.width - w))
        return (*(image.crop((x, y, x + w, y + h)) for y, x in places), CenterCrop(self.size)(image))


class TenCrop(ImageOp):
    """`FiveCrop` of the picture and of its mirror image."""

    def __init__(self, size: Any, use_vertical_flip: bool = False) -> None:
        self.five = FiveCrop(size)
        self.flip = VerticalFlip() if check_bool("TenCrop", "use_vertical_flip", use_vertical_flip) else HorizontalFlip()

    def on_pil(self, image: Any) -> tuple[Any, ...]:
        return (*self.five(image), *self.five(self.flip.on_pil(image)))


class SlicePatches(ImageOp):
    """num_height x num_width parts, as so many columns."""

    def __init__(self, num_height: int = 1, num_width: int = 1, slice_mode: SliceMode = SliceMode.PAD, fill_value: int = 0) -> None:
        self.rows, self.columns = (
            check_int("SlicePatches", "num_height", num_height, 1),
            check_int("SlicePatches", "num_width", num_width, 1),
        )
        if not isinstance(slice_mode, SliceMode):
            raise DataTypeFault(f"SlicePatches: slice_mode must be a SliceMode, got {slice_mode!r}")
        self.mode, self.fill_value = slice_mode, check_int("SlicePatches", "fill_value", fill_value, 0, 255)

    def on_array(self, image: Array) -> tuple[Array, ...]:
        h, w = image.shape[:2]
        if self.mode is SliceMode.PAD:
            image = padded(image, 0, 0, -w % self.columns, -h % self.rows, self.fill_value, Border.CONSTANT)
        ph, pw = image.shape[0] // self.rows, image.shape[1] // self.columns
        if not ph or not pw:
            raise DataValueFault(f"SlicePatches: parts must be no more than pixels {h} x {w}, got {self.rows} x {self.columns}")
        return tuple(image[r * ph : (r + 1) * ph, c * pw : (c + 1) * pw].copy() for r in range(self.rows) for c in range(self.columns))


class Erase(ImageOp):
    """A rectangle filled with `value`."""

    def __init__(self, top: int, left: int, height: int, width: int, value: Any = 0, inplace: bool = False) -> None:
        who = "Erase"
        self.top, self.left = check_int(who, "top", top, 0), check_int(who, "left", left, 0)
        self.height, self.width = check_int(who, "height", height, 1), check_int(who, "width", width, 1)
        self.value, self.inplace = value, check_bool(who, "inplace", inplace)

    def on_array(self, image: Array) -> Array:
        if self.top + self.height > image.shape[0] or self.left + self.width > image.shape[1]:
            raise DataFault(
                f"Erase: the rectangle must be inside of {list(image.shape[:2])}, got {(self.top, self.left, self.height, self.width)}"
            )
        out = image if self.inplace and image.flags.writeable else image.copy()
        out[self.top : self.top + self.height, self.left : self.left + self.width] = self.value
        return out


def fits(image: Any, height: int, width: int, who: str) -> None:
    """A crop must be no larger than the picture."""
    h, w = size_of(image)
    if height > h or width > w:
        raise DataFault(f"{who}: size must be no larger than the picture {h} x {w}, got {[height, width]}", hint="pad_if_needed=True pads")
