"""`mindspore.ops.operations`: the primitives under the module where MindSpore defines them."""

from __future__ import annotations

import importlib
from typing import Any

from jumar.ops.primitive import Primitive, PrimitiveWithCheck, PrimitiveWithInfer, constexpr, prim_attr_register
from jumar.ops.primitives import TABLE

globals().update(TABLE)
_ROOMS = (
    "_inner_ops",
    "_grad_ops",
    "comm_ops",
    "math_ops",
    "nn_ops",
    "array_ops",
    "random_ops",
    "other_ops",
    "debug_ops",
    "inner_ops",
    "image_ops",
)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"jumar.ops.operations.{name}")
    from jumar import ops  # noqa: PLC0415  (which imports this table first)

    return getattr(ops, name)


__all__ = ["Primitive", "PrimitiveWithCheck", "PrimitiveWithInfer", "constexpr", "prim_attr_register", *sorted(TABLE)]  # noqa: PLE0604
