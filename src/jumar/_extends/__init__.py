"""`mindspore._extends`: of MindSpore's parser only the decorator that third-party cells carry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def cell_attr_register(fn: Any = None, attrs: Any = None) -> Any:
    """Marks a cell's `__init__` whose arguments tell graphs apart.   Jumar tells them apart by structure: the function itself."""
    if callable(fn):
        return fn

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        return function

    return mark


__all__ = ["cell_attr_register"]
