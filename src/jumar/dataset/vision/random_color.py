"""Random operations that change colours.

In: pictures.  Out: what an operation of color.py makes with drawn arguments.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jumar.dataset.errors import DataTypeFault, DataValueFault, check_int, check_number
from jumar.dataset.transforms.base import draws, pair
from jumar.dataset.vision.base import Array, RandomOp, Sometimes, clipped, need_rgb
from jumar.dataset.vision.coding import is_pil, to_pil
from jumar.dataset.vision.color import (
    AdjustBrightness,
    AdjustContrast,
    AdjustHue,
    AdjustSaturation,
    AdjustSharpness,
    AutoContrast,
    Equalize,
    Grayscale,
    Invert,
    Posterize,
    Solarize,
)


def _range(who: str, name: str, value: Any, middle: float, low: float, high: float) -> tuple[float, float]:
    """A number as a range about `middle`, or a pair."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        by = check_number(who, name, value, 0.0)
        return max(low, middle - by), min(high, middle + by) if middle == 0 else middle + by
    return pair(who, name, value, low, high)


class RandomColorAdjust(RandomOp):
    """Brightness, contrast, saturation and hue by random factors, in a random order."""

    def __init__(self, brightness: Any = (1, 1), contrast: Any = (1, 1), saturation: Any = (1, 1), hue: Any = (0, 0)) -> None:
        who, inf = "RandomColorAdjust", float("inf")
        self.ranges = [
            (AdjustBrightness, _range(who, "brightness", brightness, 1.0, 0.0, inf), 1.0),
            (AdjustContrast, _range(who, "contrast", contrast, 1.0, 0.0, inf), 1.0),
            (AdjustSaturation, _range(who, "saturation", saturation, 1.0, 0.0, inf), 1.0),
            (AdjustHue, _range(who, "hue", hue, 0.0, -0.5, 0.5), 0.0),
        ]

    def drawn(self, image: Any) -> Any:
        ops: list[Any] = []
        for i in draws().permutation(4):
            kind, (low, high), neutral = self.ranges[i]
            # on PIL images MindSpore works through all four, and a hue of 0 still rounds once
            if (low, high) != (neutral, neutral) or is_pil(image):
                ops.append(kind(draws().uniform(low, high)))

        def op(one: Any) -> Any:
            for each in ops:
                one = each(one)
            return one

        return op


class RandomColor(RandomOp):
    """Saturation by a random factor."""

    def __init__(self, degrees: Any = (0.1, 1.9)) -> None:
        self.degrees = pair("RandomColor", "degrees", degrees, 0.0)

    def drawn(self, image: Any) -> Any:
        return AdjustSaturation(draws().uniform(*self.degrees))


class RandomSharpness(RandomOp):
    """Sharpness by a random factor."""

    def __init__(self, degrees: Any = (0.1, 1.9)) -> None:
        self.degrees = pair("RandomSharpness", "degrees", degrees, 0.0)

    def drawn(self, image: Any) -> Any:
        return AdjustSharpness(draws().uniform(*self.degrees))


class RandomAdjustSharpness(Sometimes):
    arrays_only = True

    def __init__(self, degree: float, prob: float = 0.5) -> None:
        super().__init__(AdjustSharpness(check_number("RandomAdjustSharpness", "degree", degree, 0.0)), prob)


class RandomAutoContrast(Sometimes):
    arrays_only = True

    def __init__(self, cutoff: float = 0.0, ignore: Any = None, prob: float = 0.5) -> None:
        super().__init__(AutoContrast(cutoff, ignore), prob)


class RandomEqualize(Sometimes):
    arrays_only = True

    def __init__(self, prob: float = 0.5) -> None:
        super().__init__(Equalize(), prob)


class RandomInvert(Sometimes):
    arrays_only = True

    def __init__(self, prob: float = 0.5) -> None:
        super().__init__(Invert(), prob)


class RandomGrayscale(Sometimes):
    """Grey with as many channels as before."""

    def __init__(self, prob: float = 0.1) -> None:
        super().__init__(Grayscale(3), prob)


class RandomPosterize(RandomOp):
    """A random number of bits kept."""

    arrays_only = True

    def __init__(self, bits: Any = (8, 8)) -> None:
        both = (bits, bits) if isinstance(bits, int) else bits
        if not isinstance(both, (tuple, list)) or len(both) != 2:
            raise DataTypeFault(f"RandomPosterize: bits must be an int or (least, most), got {bits!r}")
        self.low, self.high = (check_int("RandomPosterize", "bits", b, 1, 8) for b in both)
        if self.low > self.high:
            raise DataValueFault(f"RandomPosterize: bits must be (least, most), got {bits!r}")

    def drawn(self, image: Any) -> Any:
        return Posterize(int(draws().integers(self.low, self.high + 1)))


class RandomSolarize(RandomOp):
    """Values within a random range inverted."""

    arrays_only = True

    def __init__(self, threshold: Any = (0, 255)) -> None:
        found = pair("RandomSolarize", "threshold", threshold, 0, 255)
        self.low, self.high = int(found[0]), int(found[1])

    def drawn(self, image: Any) -> Any:
        low, high = sorted(int(v) for v in draws().integers(self.low, self.high + 1, 2))
        return Solarize((low, high))


class RandomLighting(RandomOp):
    """Noise along the main colour directions of ImageNet, with deviation `alpha`."""

    VALUES = np.array([55.46, 4.794, 1.148])
    VECTORS = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])

    def __init__(self, alpha: float = 0.05) -> None:
        self.alpha = check_number("RandomLighting", "alpha", alpha, 0.0)

    def drawn(self, image: Any) -> Any:
        shift = self.VECTORS @ (draws().normal(0, self.alpha, 3) * self.VALUES) if self.alpha else np.zeros(3)

        def op(one: Any) -> Any:
            array: Array = need_rgb("RandomLighting", np.asarray(one))
            made = clipped(array.astype(np.float32) + shift.astype(np.float32), array.dtype)
            return to_pil(made, "RandomLighting") if is_pil(one) else made

        return op
