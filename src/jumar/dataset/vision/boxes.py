"""Operations on a picture together with its bounding boxes.

In: a picture [height, width, channels] and boxes [n, 4 or more]: x, y, width, height, and what belongs to each.  Out: both, changed alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jumar.dataset.enums import Border, Inter
from jumar.dataset.errors import DataFault, DataTypeFault, check_number
from jumar.dataset.transforms.base import Transform, draws
from jumar.dataset.vision.base import Array, size_of
from jumar.dataset.vision.geometry import Crop, HorizontalFlip, Pad, Resize, VerticalFlip
from jumar.dataset.vision.random_geometry import RandomCrop, RandomResize, RandomResizedCrop


class _WithBoxes(Transform):
    """Called with a picture and its boxes."""

    def __call__(self, *values: Any) -> Any:
        who = type(self).__name__
        if len(values) != 2:
            raise DataTypeFault(f"{who}: must be called with a picture and its boxes, got {len(values)} columns")
        image, boxes = values[0], np.array(values[1], np.float32)
        if boxes.ndim != 2 or boxes.shape[1] < 4:
            raise DataFault(f"{who}: boxes must be [n, 4 or more], got shape {list(boxes.shape)}")
        h, w = size_of(image)
        if len(boxes) and ((boxes[:, :4] < 0).any() or (boxes[:, 0] + boxes[:, 2] > w).any() or (boxes[:, 1] + boxes[:, 3] > h).any()):
            raise DataFault(f"{who}: boxes must be inside of the picture {h} x {w}, got {boxes[:, :4].tolist()[:3]}")
        return self.change(image, boxes)

    def change(self, image: Any, boxes: Array) -> tuple[Any, Array]:
        raise NotImplementedError(type(self).__name__)


def cut_boxes(boxes: Array, top: int, left: int, height: int, width: int) -> Array:
    """Boxes inside of a part; those that lie outside are dropped, and where none is left an empty one stands."""
    x1 = np.clip(boxes[:, 0], left, left + width)
    y1 = np.clip(boxes[:, 1], top, top + height)
    x2 = np.clip(boxes[:, 0] + boxes[:, 2], left, left + width)
    y2 = np.clip(boxes[:, 1] + boxes[:, 3], top, top + height)
    out = boxes.copy()
    out[:, :4] = np.stack([x1 - left, y1 - top, x2 - x1, y2 - y1], 1)
    kept = out[(out[:, 2] > 0) & (out[:, 3] > 0)]
    return kept if len(kept) else np.zeros((1, boxes.shape[1]), np.float32)


class ResizeWithBBox(_WithBoxes):
    def __init__(self, size: Any, interpolation: Inter = Inter.BILINEAR) -> None:
        self.resize: Any = Resize(size, interpolation)

    def change(self, image: Any, boxes: Array) -> tuple[Any, Array]:
        return _resized(image, boxes, self.resize)


def _resized(image: Any, boxes: Array, resize: Any) -> tuple[Any, Array]:
    h, w = size_of(image)
    made = resize(image)
    new_h, new_w = size_of(made)
    boxes[:, [0, 2]] *= new_w / w
    boxes[:, [1, 3]] *= new_h / h
    return made, boxes


class RandomResizeWithBBox(_WithBoxes):
    def __init__(self, size: Any) -> None:
        self.resize = RandomResize(size)

    def change(self, image: Any, boxes: Array) -> tuple[Any, Array]:
        return _resized(image, boxes, self.resize)


class RandomHorizontalFlipWithBBox(_WithBoxes):
    def __init__(self, prob: float = 0.5) -> None:
        self.prob = check_number("RandomHorizontalFlipWithBBox", "prob", prob, 0.0, 1.0)

    def change(self, image: Any, boxes: Array) -> tuple[Any, Array]:
        if draws().random() >= self.prob:
            return image, boxes
        boxes[:, 0] = size_of(image)[1] - boxes[:, 0] - boxes[:, 2]
        return HorizontalFlip()(image), boxes


class RandomVerticalFlipWithBBox(_WithBoxes):
    def __init__(self, prob: float = 0.5) -> None:
        self.prob = check_number("RandomVerticalFlipWithBBox", "prob", prob, 0.0, 1.0)

    def change(self, image: Any, boxes: Array) -> tuple[Any, Array]:
        if draws().random() >= self.prob:
            return image, boxes
        boxes[:, 1] = size_of(image)[0] - boxes[:, 1] - boxes[:, 3]
        return VerticalFlip()(image), boxes


class RandomCropWithBBox(_WithBoxes):
    def __init__(
        self, size: Any, padding: Any = None, pad_if_needed: bool = False, fill_value: Any = 0, padding_mode: Border = Border.CONSTANT
    ) -> None:
        self.crop = RandomCrop(size, padding, pad_if_needed, fill_value, padding_mode)

    def change(self, image: Any, boxes: Array) -> tuple[Any, Array]:
        pads: list[Pad] = self.crop._pads(image)
        for pad in pads:
            image = pad(image)
            boxes[:, 0] += pad.padding[0]
            boxes[:, 1] += pad.padding[1]
        h, w = size_of(image)
        ch, cw = self.crop.size
        if ch > h or cw > w:
            raise DataFault(f"RandomCropWithBBox: size must be no larger than the picture {h} x {w}, got {[ch, cw]}")
        top, left = int(draws().integers(h - ch + 1)), int(draws().integers(w - cw + 1))
        return Crop((top, left), (ch, cw))(image), cut_boxes(boxes, top, left, ch, cw)


class RandomResizedCropWithBBox(_WithBoxes):
    def __init__(
        self,
        size: Any,
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Inter = Inter.BILINEAR,
        max_attempts: int = 10,
    ) -> None:
        self.crop = RandomResizedCrop(size, scale, ratio, interpolation, max_attempts)

    def change(self, image: Any, boxes: Array) -> tuple[Any, Array]:
        top, left, h, w = self.crop.area(*size_of(image))
        part = Crop((top, left), (h, w))(image)
        return _resized(part, cut_boxes(boxes, top, left, h, w), Resize(self.crop.size, self.crop.interpolation))


class BoundingBoxAugment(_WithBoxes):
    """An operation on the inside of some boxes."""

    def __init__(self, transform: Any, ratio: float = 0.3) -> None:
        if not callable(transform):
            raise DataTypeFault(f"BoundingBoxAugment: transform must be an operation, got {type(transform).__name__}")
        self.transform, self.ratio = transform, check_number("BoundingBoxAugment", "ratio", ratio, 0.0, 1.0)

    def change(self, image: Any, boxes: Array) -> tuple[Any, Array]:
        if not isinstance(image, np.ndarray):
            raise DataTypeFault("BoundingBoxAugment: image must be an array, got a PIL image", hint="put ToNumpy before it")
        out = image.copy()
        count = int(len(boxes) * self.ratio)
        for i in draws().permutation(len(boxes))[:count]:
            x, y, w, h = (int(v) for v in boxes[i, :4])
            part = self.transform(out[y : y + h, x : x + w].copy())
            out[y : y + h, x : x + w] = Resize((h, w))(part) if part.shape[:2] != (h, w) else part
        return out, boxes
