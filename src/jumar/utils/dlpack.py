"""Tensors from and to other libraries without a copy, by DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from jumar.frontend.tensor import Tensor, wrap


class _Exporter:
    """An array of another library's capsule, as NumPy wants it."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def from_dlpack(dlpack: Any) -> Tensor:
    """A tensor over the memory of another library's tensor, or of a capsule."""
    return wrap(np.from_dlpack(dlpack if hasattr(dlpack, "__dlpack__") else _Exporter(dlpack)))


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule that other libraries read the tensor's memory from."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"to_dlpack: tensor must be a Tensor, got {type(tensor).__name__}")
    return tensor.__dlpack__()
