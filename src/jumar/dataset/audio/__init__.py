"""The audio API by name. Its enumerations are values; its operations are known but not supported: importing is free, use is a clear error.

In: a name.  Out: an enumeration (utils.py), or a class or function that refuses (transforms.py, utils.py).
"""

from __future__ import annotations

from jumar.dataset.audio import transforms, utils
from jumar.dataset.audio.utils import (
    BorderType,
    DensityFunction,
    FadeShape,
    GainType,
    Interpolation,
    MelType,
    Modulation,
    NormMode,
    NormType,
    ResampleMethod,
    ScaleType,
    WindowType,
    create_dct,
    linear_fbanks,
    melscale_fbanks,
)


def __getattr__(name: str) -> type:
    return transforms.__getattr__(name)


__all__ = [  # noqa: PLE0604  (the names of the table)
    "BorderType", "DensityFunction", "FadeShape", "GainType", "Interpolation", "MelType", "Modulation", "NormMode", "NormType", "ResampleMethod",
    "ScaleType", "WindowType", "create_dct", "linear_fbanks", "melscale_fbanks", "transforms", "utils", *transforms.NAMES,
]  # fmt: skip
