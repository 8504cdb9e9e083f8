"""`mindspore.ops.function`: the functions under the package where MindSpore defines them."""

from __future__ import annotations

import importlib
from typing import Any

from jumar import ops

_ROOMS = (
    "array_func",
    "math_func",
    "nn_func",
    "random_func",
    "parameter_func",
    "grad",
    "linalg_func",
    "other_func",
    "clip_func",
    "debug_func",
)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"jumar.ops.function.{name}")
    return getattr(ops, name)


__all__ = list(ops.__all__)
