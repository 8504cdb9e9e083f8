"""Random operations that move pixels: crops, flips, rotations, affine, perspective, erasing.

In: pictures.  Out: what an operation of geometry.py makes with drawn arguments; all pictures of a row get the same draw.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jumar.dataset.enums import Border, Inter
from jumar.dataset.errors import DataFault, DataTypeFault, DataValueFault, check_bool, check_int, check_number
from jumar.dataset.transforms.base import draws, pair
from jumar.dataset.vision.base import (
    Array,
    RandomOp,
    Sometimes,
    check_border,
    check_fill,
    check_inter,
    check_padding,
    check_size,
    size_of,
)
from jumar.dataset.vision.coding import is_pil, open_image, raw_bytes
from jumar.dataset.vision.geometry import (
    Affine,
    Crop,
    Erase,
    HorizontalFlip,
    Pad,
    Perspective,
    Resize,
    ResizedCrop,
    Rotate,
    VerticalFlip,
    fits,
)


class RandomHorizontalFlip(Sometimes):
    def __init__(self, prob: float = 0.5) -> None:
        super().__init__(HorizontalFlip(), prob)


class RandomVerticalFlip(Sometimes):
    def __init__(self, prob: float = 0.5) -> None:
        super().__init__(VerticalFlip(), prob)


class RandomPerspective(RandomOp):
    """Corners moved by up to `distortion_scale` of half the size."""

    def __init__(self, distortion_scale: float = 0.5, prob: float = 0.5, interpolation: Inter = Inter.BICUBIC) -> None:
        self.scale = check_number("RandomPerspective", "distortion_scale", distortion_scale, 0.0, 1.0)
        self.prob = check_number("RandomPerspective", "prob", prob, 0.0, 1.0)
        self.interpolation = check_inter("RandomPerspective", interpolation)

    def drawn(self, image: Any) -> Any:
        if draws().random() >= self.prob:
            return None
        h, w = size_of(image)
        dx, dy = int(self.scale * (w // 2)), int(self.scale * (h // 2))
        x, y = draws().integers(0, dx + 1, 4), draws().integers(0, dy + 1, 4)
        end = [[x[0], y[0]], [w - 1 - x[1], y[1]], [w - 1 - x[2], h - 1 - y[2]], [x[3], h - 1 - y[3]]]
        return Perspective([[0, 0], [w - 1, 0], [w - 1, h - 1], [0, h - 1]], end, self.interpolation)


class RandomCrop(RandomOp):
    """A part of `size` at a random place, after padding where asked."""

    def __init__(
        self,
        size: Any,
        padding: Any = None,
        pad_if_needed: bool = False,
        fill_value: Any = 0,
        padding_mode: Border = Border.CONSTANT,
    ) -> None:
        self.size = check_size("RandomCrop", size)
        self.padding = None if padding is None else check_padding("RandomCrop", padding)
        self.pad_if_needed = check_bool("RandomCrop", "pad_if_needed", pad_if_needed)
        self.fill_value, self.padding_mode = check_fill("RandomCrop", fill_value), check_border("RandomCrop", padding_mode)

    def _pads(self, image: Any) -> list[Pad]:
        h, w = size_of(image)
        pads = []
        if self.padding is not None:
            pads.append(Pad(self.padding, self.fill_value, self.padding_mode))
            h, w = h + self.padding[1] + self.padding[3], w + self.padding[0] + self.padding[2]
        if self.pad_if_needed and (h < self.size[0] or w < self.size[1]):
            down, right = max(0, self.size[0] - h), max(0, self.size[1] - w)
            pads.append(Pad((right, down, right, down), self.fill_value, self.padding_mode))
        return pads

    def drawn(self, image: Any) -> Any:
        pads = self._pads(image)
        h, w = size_of(image)
        for p in pads:
            left, top, right, bottom = p.padding
            h, w = h + top + bottom, w + left + right
        if self.size[0] > h or self.size[1] > w:
            fits(image, *self.size, who="RandomCrop")
        top, left = int(draws().integers(h - self.size[0] + 1)), int(draws().integers(w - self.size[1] + 1))
        crop = Crop((top, left), self.size)

        def op(one: Any) -> Any:
            for p in pads:
                one = p.direct(one)
            return crop.direct(one)

        return op


def draw_area(height: int, width: int, scale: Any, ratio: Any, max_attempts: int) -> tuple[int, int, int, int]:
    """(top, left, height, width) of a part with an area within `scale` and a shape within `ratio`; the middle where none is found."""
    low, high = math.log(ratio[0]), math.log(ratio[1])
    for _ in range(max_attempts):
        area = draws().uniform(scale[0], scale[1]) * height * width
        aspect = math.exp(draws().uniform(low, high))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return int(draws().integers(height - h + 1)), int(draws().integers(width - w + 1)), h, w
    if width / height < ratio[0]:
        w, h = width, min(height, round(width / ratio[0]))
    elif width / height > ratio[1]:
        w, h = min(width, round(height * ratio[1])), height
    else:
        w, h = width, height
    return (height - h) // 2, (width - w) // 2, h, w


class RandomResizedCrop(RandomOp):
    """A part of random area and shape, resized to `size`."""

    def __init__(
        self,
        size: Any,
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Inter = Inter.BILINEAR,
        max_attempts: int = 10,
    ) -> None:
        who = type(self).__name__
        self.size = check_size(who, size)
        self.scale, self.ratio = pair(who, "scale", scale, 0.0), pair(who, "ratio", ratio, 1e-9)
        self.interpolation = check_inter(who, interpolation)
        self.max_attempts = check_int(who, "max_attempts", max_attempts, 1)

    def area(self, height: int, width: int) -> tuple[int, int, int, int]:
        return draw_area(height, width, self.scale, self.ratio, self.max_attempts)

    def drawn(self, image: Any) -> Any:
        return ResizedCrop(*self.area(*size_of(image)), self.size, self.interpolation)


class RandomCropDecodeResize(RandomResizedCrop):
    """`RandomResizedCrop` of a file's bytes: only the part is turned into pixels of the result."""

    def drawn(self, image: Any) -> Any:
        if is_pil(image) or np.ndim(image) > 1:
            return super().drawn(image)
        picture = open_image(raw_bytes(image, "RandomCropDecodeResize"), "input")
        crop = ResizedCrop(*self.area(picture.height, picture.width), self.size, self.interpolation)

        def op(one: Any) -> Any:
            decoded = picture if one is image else open_image(raw_bytes(one, "RandomCropDecodeResize"), "input")
            return crop(np.array(decoded.convert("RGB")))

        return op


class RandomResize(RandomOp):
    """`Resize` with a random interpolation."""

    def __init__(self, size: Any) -> None:
        check_size("RandomResize", size)
        self.size = size

    def drawn(self, image: Any) -> Any:
        return Resize(
            self.size, [Inter.BILINEAR, Inter.NEAREST, Inter.BICUBIC, Inter.AREA][int(draws().integers(3 if is_pil(image) else 4))]
        )


def check_degrees(who: str, degrees: Any) -> tuple[float, float]:
    """A number as (-number, number), or a pair."""
    if isinstance(degrees, (int, float)) and not isinstance(degrees, bool):
        return -check_number(who, "degrees", degrees, 0), float(degrees)
    return pair(who, "degrees", degrees)


class RandomRotation(RandomOp):
    """Turned by a random angle."""

    def __init__(
        self, degrees: Any, resample: Inter = Inter.NEAREST, expand: bool = False, center: Any = None, fill_value: Any = 0
    ) -> None:
        self.degrees = check_degrees("RandomRotation", degrees)
        self.resample, self.expand, self.center = check_inter("RandomRotation", resample), expand, center
        self.fill_value = check_fill("RandomRotation", fill_value)

    def drawn(self, image: Any) -> Any:
        return Rotate(draws().uniform(*self.degrees), self.resample, self.expand, self.center, self.fill_value)


class RandomAffine(RandomOp):
    """Turned, moved, scaled and sheared at random.   translate: parts of the size, (x, y) or (x least, x most, y least, y most)."""

    def __init__(
        self,
        degrees: Any,
        translate: Any = None,
        scale: Any = None,
        shear: Any = None,
        resample: Inter = Inter.NEAREST,
        fill_value: Any = 0,
    ) -> None:
        who = "RandomAffine"
        self.degrees = check_degrees(who, degrees)
        moves = [0.0] * 4 if translate is None else [check_number(who, "translate", t, -1.0, 1.0) for t in translate]
        if len(moves) not in (2, 4):
            raise DataTypeFault(f"{who}: translate must be two or four numbers, got {translate!r}")
        self.translate = [moves[0], moves[1], 0.0, 0.0] if len(moves) == 2 and min(moves) < 0 else moves
        if len(self.translate) == 2:
            self.translate = [-moves[0], moves[0], -moves[1], moves[1]]
        self.scale = (1.0, 1.0) if scale is None else pair(who, "scale", scale, 1e-9)
        if shear is None:
            self.shear = [0.0] * 4
        elif isinstance(shear, (int, float)):
            self.shear = [-float(shear), float(shear), 0.0, 0.0]
        else:
            self.shear = [*shear, 0.0, 0.0] if len(shear) == 2 else list(shear)
        self.resample, self.fill_value = check_inter(who, resample), check_fill(who, fill_value)

    def drawn(self, image: Any) -> Any:
        g = draws()
        moved = [g.uniform(self.translate[i], self.translate[i + 1]) for i in (0, 2)]
        sheared = [g.uniform(self.shear[i], self.shear[i + 1]) for i in (0, 2)]
        return Affine(g.uniform(*self.degrees), moved, g.uniform(*self.scale), sheared, self.resample, self.fill_value)


class RandomErasing(RandomOp):
    """A random rectangle of an array [channels, height, width] set to `value` ("random": noise)."""

    def __init__(
        self,
        prob: float = 0.5,
        scale: tuple[float, float] = (0.02, 0.33),
        ratio: tuple[float, float] = (0.3, 3.3),
        value: Any = 0,
        inplace: bool = False,
        max_attempts: int = 10,
    ) -> None:
        who = "RandomErasing"
        self.prob = check_number(who, "prob", prob, 0.0, 1.0)
        self.scale, self.ratio = pair(who, "scale", scale, 0.0), pair(who, "ratio", ratio, 1e-9)
        if isinstance(value, str) and value != "random":
            raise DataValueFault(f"{who}: value must be a number, one for each channel or 'random', got {value!r}")
        self.value, self.inplace = value, check_bool(who, "inplace", inplace)
        self.max_attempts = check_int(who, "max_attempts", max_attempts, 1)

    def drawn(self, image: Any) -> Any:
        if is_pil(image) or np.ndim(image) != 3:
            raise DataTypeFault("RandomErasing: image must be an array [channels, height, width]", hint="put ToTensor before it")
        if draws().random() >= self.prob:
            return None
        channels, h, w = image.shape
        low, high = math.log(self.ratio[0]), math.log(self.ratio[1])
        for _ in range(self.max_attempts):
            area = draws().uniform(*self.scale) * h * w
            aspect = math.exp(draws().uniform(low, high))
            eh, ew = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if 0 < eh < h and 0 < ew < w:
                top, left = int(draws().integers(h - eh + 1)), int(draws().integers(w - ew + 1))
                value = draws().standard_normal((channels, eh, ew)) if isinstance(self.value, str) else np.reshape(self.value, (-1, 1, 1))
                return lambda one: _erased(one, top, left, eh, ew, value, self.inplace)
        return None


def _erased(image: Array, top: int, left: int, height: int, width: int, value: Any, inplace: bool) -> Array:
    out = image if inplace and image.flags.writeable else image.copy()
    out[:, top : top + height, left : left + width] = value
    return out


class CutOut(RandomOp):
    """`num_patches` random squares of side `length` set to zero."""

    def __init__(self, length: int, num_patches: int = 1, is_hwc: bool = True) -> None:
        self.length, self.patches = check_int("CutOut", "length", length, 1), check_int("CutOut", "num_patches", num_patches, 1)
        self.is_hwc = check_bool("CutOut", "is_hwc", is_hwc)

    def drawn(self, image: Any) -> Any:
        shape = np.shape(image)
        if is_pil(image) or len(shape) != 3:
            raise DataTypeFault(f"CutOut: image must be an array of three dimensions, got {type(image).__name__} {list(shape)}")
        h, w = shape[:2] if self.is_hwc else shape[1:]
        if self.length > h or self.length > w:
            raise DataFault(f"CutOut: length must be no larger than the picture {h} x {w}, got {self.length}")
        places = [(int(draws().integers(h - self.length + 1)), int(draws().integers(w - self.length + 1))) for _ in range(self.patches)]

        def op(one: Array) -> Array:
            for top, left in places:
                part = Erase(top, left, self.length, self.length, 0)
                one = part(one) if self.is_hwc else _erased(one, top, left, self.length, self.length, 0, False)
            return one

        return op
