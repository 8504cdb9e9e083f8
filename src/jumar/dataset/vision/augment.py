"""Augmentation recipes: AutoAugment, RandAugment, TrivialAugmentWide, UniformAugment, random policies; MixUp and CutMix of batches.

In: pictures, or batches with one-hot labels.  Out: the same kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jumar.dataset.enums import AutoAugmentPolicy, ImageBatchFormat, Inter
from jumar.dataset.errors import DataFault, DataTypeFault, DataValueFault, check_bool, check_int, check_number
from jumar.dataset.transforms.base import Transform, check_transforms, draws
from jumar.dataset.vision.base import Array, RandomOp, check_fill, check_inter, size_of
from jumar.dataset.vision.color import (
    AdjustBrightness,
    AdjustContrast,
    AdjustSaturation,
    AdjustSharpness,
    AutoContrast,
    Equalize,
    Invert,
    Posterize,
    Solarize,
)
from jumar.dataset.vision.geometry import Affine, Rotate

Op = Callable[[Any], Any]
_IMAGENET = (
    "Posterize .4 8 Rotate .6 9|Solarize .6 5 AutoContrast .6 -|Equalize .8 - Equalize .6 -|Posterize .6 7 Posterize .6 6|"
    "Equalize .4 - Solarize .2 4|Equalize .4 - Rotate .8 8|Solarize .6 3 Equalize .6 -|Posterize .8 5 Equalize 1 -|"
    "Rotate .2 3 Solarize .6 8|Equalize .6 - Posterize .4 6|Rotate .8 8 Color .4 0|Rotate .4 9 Equalize .6 -|"
    "Equalize 0 - Equalize .8 -|Invert .6 - Equalize 1 -|Color .6 4 Contrast 1 8|Rotate .8 8 Color 1 2|Color .8 8 Solarize .8 7|"
    "Sharpness .4 7 Invert .6 -|ShearX .6 5 Equalize 1 -|Color .4 0 Equalize .6 -|Equalize .4 - Solarize .2 4|"
    "Solarize .6 5 AutoContrast .6 -|Invert .6 - Equalize 1 -|Color .6 4 Contrast 1 8|Equalize .8 - Equalize .6 -"
)
_CIFAR10 = (
    "Invert .1 - Contrast .2 6|Rotate .7 2 TranslateX .3 9|Sharpness .8 1 Sharpness .9 3|ShearY .5 8 TranslateY .7 9|"
    "AutoContrast .5 - Equalize .9 -|ShearY .2 7 Posterize .3 7|Color .4 3 Brightness .6 7|Sharpness .3 9 Brightness .7 9|"
    "Equalize .6 - Equalize .5 -|Contrast .6 7 Sharpness .6 5|Color .7 7 TranslateX .5 8|Equalize .3 - AutoContrast .4 -|"
    "TranslateY .4 3 Sharpness .2 6|Brightness .9 6 Color .2 8|Solarize .5 2 Invert 0 -|Equalize .2 - AutoContrast .6 -|"
    "Equalize .2 - Equalize .6 -|Color .9 9 Equalize .6 -|AutoContrast .8 - Solarize .2 8|Brightness .1 3 Color .7 0|"
    "Solarize .4 5 AutoContrast .9 -|TranslateY .9 9 TranslateY .7 9|AutoContrast .9 - Solarize .8 3|Equalize .8 - Invert .1 -|"
    "TranslateY .7 9 AutoContrast .9 -"
)
_SVHN = (
    "ShearX .9 4 Invert .2 -|ShearY .9 8 Invert .7 -|Equalize .6 - Solarize .6 6|Invert .9 - Equalize .6 -|Equalize .6 - Rotate .9 3|"
    "ShearX .9 4 AutoContrast .8 -|ShearY .9 8 Invert .4 -|ShearY .9 5 Solarize .2 6|Invert .9 - AutoContrast .8 -|"
    "Equalize .6 - Rotate .9 3|ShearX .9 4 Solarize .3 3|ShearY .8 8 Invert .7 -|Equalize .9 - TranslateY .6 6|"
    "Invert .9 - Equalize .6 -|Contrast .3 3 Rotate .8 4|Invert .8 - TranslateY 0 2|ShearY .7 6 Solarize .4 8|Invert .6 - Rotate .8 4|"
    "ShearY .3 7 TranslateX .9 3|ShearX .1 6 Invert .6 -|Solarize .7 2 TranslateY .6 7|ShearY .8 4 Invert .8 -|"
    "ShearX .7 9 TranslateY .8 3|ShearY .8 5 AutoContrast .7 -|ShearX .7 2 Invert .1 -"
)
POLICIES = {AutoAugmentPolicy.IMAGENET: _IMAGENET, AutoAugmentPolicy.CIFAR10: _CIFAR10, AutoAugmentPolicy.SVHN: _SVHN}


def magnitudes(bins: int, height: int, width: int, *, wide: bool, part: float = 150.0 / 331.0) -> dict[str, tuple[Array | None, bool]]:
    """For each operation how strong it is in each bin (None: always the same) and whether its sign is drawn."""
    move = (32.0, 32.0) if wide else (part * width, part * height)
    strong = 0.99 if wide else 0.9
    shear = 0.99 if wide else 0.3
    steps = np.arange(bins)
    bits = 8 - np.rint(steps / ((bins - 1) / (6 if wide else 4)) if bins > 1 else steps)
    return {
        "Identity": (None, False),
        "ShearX": (np.linspace(0, shear, bins), True),
        "ShearY": (np.linspace(0, shear, bins), True),
        "TranslateX": (np.linspace(0, move[0], bins), True),
        "TranslateY": (np.linspace(0, move[1], bins), True),
        "Rotate": (np.linspace(0, 135.0 if wide else 30.0, bins), True),
        "Brightness": (np.linspace(0, strong, bins), True),
        "Color": (np.linspace(0, strong, bins), True),
        "Contrast": (np.linspace(0, strong, bins), True),
        "Sharpness": (np.linspace(0, strong, bins), True),
        "Posterize": (bits, False),
        "Solarize": (np.linspace(255.0, 0, bins), False),
        "AutoContrast": (None, False),
        "Equalize": (None, False),
        "Invert": (None, False),
    }


def operation(name: str, strength: float, size: tuple[int, int], inter: Inter, fill: Any) -> Op:
    """One operation of a recipe at a strength."""
    height, width = size
    match name:
        case "ShearX":
            return Affine(0, (0, 0), 1.0, (math.degrees(math.atan(strength)), 0), inter, fill)
        case "ShearY":
            return Affine(0, (0, 0), 1.0, (0, math.degrees(math.atan(strength))), inter, fill)
        case "TranslateX":
            return Affine(0, (max(-1.0, min(1.0, int(strength) / width)), 0), 1.0, (0, 0), inter, fill)
        case "TranslateY":
            return Affine(0, (0, max(-1.0, min(1.0, int(strength) / height))), 1.0, (0, 0), inter, fill)
        case "Rotate":
            return Rotate(strength, inter, False, None, fill)
        case "Brightness":
            return AdjustBrightness(1 + strength)
        case "Color":
            return AdjustSaturation(1 + strength)
        case "Contrast":
            return AdjustContrast(1 + strength)
        case "Sharpness":
            return AdjustSharpness(1 + strength)
        case "Posterize":
            return Posterize(int(strength))
        case "Solarize":
            return Solarize(strength)
        case "AutoContrast":
            return AutoContrast()
        case "Equalize":
            return Equalize()
        case "Invert":
            return Invert()
        case _:
            return lambda image: image


class _Recipe(RandomOp):
    """Operations by name, strength and sign."""

    arrays_only = True

    def __init__(self, interpolation: Inter, fill_value: Any) -> None:
        self.interpolation = check_inter(type(self).__name__, interpolation)
        self.fill_value = check_fill(type(self).__name__, fill_value)

    def _op(self, name: str, table: dict[str, tuple[Array | None, bool]], level: int, image: Any) -> Op:
        strengths, signed = table[name]
        strength = 0.0 if strengths is None else float(strengths[level])
        if signed and draws().random() < 0.5:
            strength = -strength
        return operation(name, strength, size_of(image), self.interpolation, self.fill_value)


def _chained(ops: list[Op]) -> Op:
    def op(image: Any) -> Any:
        for one in ops:
            image = one(image)
        return image

    return op


class AutoAugment(_Recipe):
    """One of the 25 pairs of operations that were learnt for a data set."""

    def __init__(
        self, policy: AutoAugmentPolicy = AutoAugmentPolicy.IMAGENET, interpolation: Inter = Inter.NEAREST, fill_value: Any = 0
    ) -> None:
        super().__init__(interpolation, fill_value)
        if not isinstance(policy, AutoAugmentPolicy):
            raise DataTypeFault(f"AutoAugment: policy must be an AutoAugmentPolicy, got {policy!r}")
        self.pairs = [p.split() for p in POLICIES[policy].split("|")]

    def drawn(self, image: Any) -> Any:
        chosen = self.pairs[int(draws().integers(len(self.pairs)))]
        table = magnitudes(10, *size_of(image), wide=False)
        ops = []
        for name, prob, level in (chosen[:3], chosen[3:]):
            if draws().random() < float(prob):
                ops.append(self._op(name, table, 0 if level == "-" else int(level), image))
        return _chained(ops)


class RandAugment(_Recipe):
    """`num_ops` operations of one strength."""

    def __init__(
        self, num_ops: int = 2, magnitude: int = 9, num_magnitude_bins: int = 31, interpolation: Inter = Inter.NEAREST, fill_value: Any = 0
    ) -> None:
        super().__init__(interpolation, fill_value)
        self.num_ops = check_int("RandAugment", "num_ops", num_ops, 0)
        self.bins = check_int("RandAugment", "num_magnitude_bins", num_magnitude_bins, 2)
        self.magnitude = check_int("RandAugment", "magnitude", magnitude, 0, self.bins - 1)

    def drawn(self, image: Any) -> Any:
        table = magnitudes(self.bins, *size_of(image), wide=False)
        del table["Invert"]
        known = list(table)
        return _chained([self._op(known[int(draws().integers(len(known)))], table, self.magnitude, image) for _ in range(self.num_ops)])


class TrivialAugmentWide(_Recipe):
    """One operation of any strength."""

    def __init__(self, num_magnitude_bins: int = 31, interpolation: Inter = Inter.NEAREST, fill_value: Any = 0) -> None:
        super().__init__(interpolation, fill_value)
        self.bins = check_int("TrivialAugmentWide", "num_magnitude_bins", num_magnitude_bins, 2)

    def drawn(self, image: Any) -> Any:
        table = magnitudes(self.bins, *size_of(image), wide=True)
        del table["Invert"]
        known = list(table)
        return self._op(known[int(draws().integers(len(known)))], table, int(draws().integers(self.bins)), image)


class UniformAugment(RandomOp):
    """Up to `num_ops` of the transforms, each with probability one half."""

    arrays_only = True

    def __init__(self, transforms: list[Any], num_ops: int = 2) -> None:
        self.transforms = check_transforms("UniformAugment", transforms)
        self.num_ops = check_int("UniformAugment", "num_ops", num_ops, 1)
        if self.num_ops > len(self.transforms):
            raise DataValueFault(f"UniformAugment: num_ops must be at most the {len(self.transforms)} transforms, got {num_ops}")

    def drawn(self, image: Any) -> Any:
        chosen = draws().choice(len(self.transforms), self.num_ops, replace=False)
        return _chained([self.transforms[i] for i in chosen if draws().random() < 0.5])


class RandomSelectSubpolicy(RandomOp):
    """One of several lists of (operation, probability)."""

    arrays_only = True

    def __init__(self, policy: list[list[tuple[Any, float]]]) -> None:
        if not isinstance(policy, list) or not policy or not all(isinstance(p, list) and p for p in policy):
            raise DataTypeFault(f"RandomSelectSubpolicy: policy must be a list of lists of (operation, probability), got {policy!r}")
        for op, prob in (one for p in policy for one in p):
            if not callable(op):
                raise DataTypeFault(f"RandomSelectSubpolicy: an operation must be a function, got {type(op).__name__}")
            check_number("RandomSelectSubpolicy", "prob", prob, 0.0, 1.0)
        self.policy = policy

    def drawn(self, image: Any) -> Any:
        chosen = self.policy[int(draws().integers(len(self.policy)))]
        return _chained([op for op, prob in chosen if draws().random() < prob])


def _check_batch(who: str, images: Any, labels: Any) -> tuple[Array, Array]:
    images, labels = np.asarray(images), np.asarray(labels)
    if images.ndim != 4:
        raise DataFault(f"{who}: images must be a batch of four dimensions, got shape {list(images.shape)}", hint="batch comes before it")
    if labels.ndim not in (2, 3) or len(labels) != len(images):
        raise DataFault(
            f"{who}: labels must be one-hot, [batch, classes] or [batch, labels, classes], got shape {list(labels.shape)}",
            hint="OneHot makes them",
        )
    return images, labels


class MixUpBatch(Transform):
    """Each picture of a batch mixed with another one; their one-hot labels in the same proportion."""

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = check_number("MixUpBatch", "alpha", alpha, 1e-9)

    def __call__(self, *values: Any) -> Any:
        if len(values) != 2:
            raise DataTypeFault(f"MixUpBatch: must be called with images and labels, got {len(values)} columns")
        images, labels = _check_batch("MixUpBatch", *values)
        lam = np.float32(draws().beta(self.alpha, self.alpha))
        other = draws().permutation(len(images))
        mixed = images.astype(np.float32) * lam + images[other].astype(np.float32) * (1 - lam)
        kind = images.dtype if images.dtype.kind == "f" else np.dtype(np.uint8) if images.dtype == np.uint8 else np.dtype(np.float32)
        made = np.clip(np.trunc(mixed), 0, 255).astype(kind) if kind == np.uint8 else mixed.astype(kind)
        return made, (labels * lam + labels[other] * (1 - lam)).astype(np.float32)


class CutMixBatch(Transform):
    """A rectangle of each picture replaced by that of another one; labels in proportion to the area."""

    def __init__(self, image_batch_format: ImageBatchFormat, alpha: float = 1.0, prob: float = 1.0) -> None:
        if not isinstance(image_batch_format, ImageBatchFormat):
            raise DataTypeFault(f"CutMixBatch: image_batch_format must be an ImageBatchFormat, got {image_batch_format!r}")
        self.first = image_batch_format is ImageBatchFormat.NCHW
        self.alpha, self.prob = check_number("CutMixBatch", "alpha", alpha, 1e-9), check_number("CutMixBatch", "prob", prob, 0.0, 1.0)

    def __call__(self, *values: Any) -> Any:
        if len(values) != 2:
            raise DataTypeFault(f"CutMixBatch: must be called with images and labels, got {len(values)} columns")
        images, labels = _check_batch("CutMixBatch", *values)
        h, w = images.shape[2:] if self.first else images.shape[1:3]
        out, mixed = images.copy(), labels.astype(np.float32)
        other = draws().permutation(len(images))
        for i, j in enumerate(other):
            lam, chance = draws().beta(self.alpha, self.alpha), draws().random()
            x, y = int(draws().integers(w)), int(draws().integers(h))
            if chance >= self.prob:
                continue
            cw, ch = int(w * math.sqrt(1 - lam)), int(h * math.sqrt(1 - lam))
            x1, x2, y1, y2 = max(0, x - cw // 2), min(w, x + cw // 2), max(0, y - ch // 2), min(h, y + ch // 2)
            place: Any = (slice(None), slice(y1, y2), slice(x1, x2)) if self.first else (slice(y1, y2), slice(x1, x2))
            out[i][place] = images[j][place]
            kept = 1 - (x2 - x1) * (y2 - y1) / (h * w)
            mixed[i] = labels[i] * kept + labels[j] * (1 - kept)
        return out, mixed


class MixUp(Transform):
    """MixUp for a `per_batch_map`-like use: a batch with itself (`is_single`), or with the batch before it."""

    def __init__(self, batch_size: int, alpha: float, is_single: bool = True) -> None:
        self.batch_size = check_int("MixUp", "batch_size", batch_size, 1)
        self.alpha = check_number("MixUp", "alpha", alpha, 1e-9)
        if not check_bool("MixUp", "is_single", is_single):
            raise DataFault(
                "MixUp: is_single must be True, got False",
                hint="mixing with the batch before depends on what ran before; it cannot be resumed",
            )

    def __call__(self, *values: Any) -> Any:
        if len(values) != 2:
            raise DataTypeFault(f"MixUp: must be called with images and labels, got {len(values)} columns")
        images, labels = _check_batch("MixUp", *values)
        if len(images) != self.batch_size:
            raise DataFault(f"MixUp: a batch must have {self.batch_size} pictures, got {len(images)}")
        lam = draws().beta(self.alpha, self.alpha)
        other = draws().permutation(len(images))
        return images * lam + (1 - lam) * images[other], labels * lam + (1 - lam) * labels[other]
