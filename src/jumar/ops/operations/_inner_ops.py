"""`mindspore.ops.operations._inner_ops`: primitives that MindSpore keeps for itself and that clients use all the same."""

from __future__ import annotations

from typing import Any

from jumar.ops import operations
from jumar.ops import primitives as _table


def __getattr__(name: str) -> Any:
    if name in _table.INNER:
        return _table.INNER[name]
    return getattr(operations, name)
