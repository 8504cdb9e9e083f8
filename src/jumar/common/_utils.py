"""Small questions about shapes, under the names of `mindspore.common._utils`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def is_shape_unknown(shape: Sequence[int]) -> bool:
    """Whether a dimension is not known: it is negative."""
    return any(d < 0 for d in shape)


def is_dim_unknown(shape: Sequence[int]) -> bool:
    """Whether not even the number of dimensions is known."""
    return any(d == -2 for d in shape)


def get_func(func: Any) -> Callable[..., Any]:
    """The function under a bound method or a static method."""
    return getattr(func, "__func__", func)  # type: ignore[no-any-return]
