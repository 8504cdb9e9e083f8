"""`mindspore.ops.operations._grad_ops`: gradients of primitives as primitives, those that clients name."""

from __future__ import annotations

from typing import Any

from jumar.ops import primitives as _table
from jumar.ops.operands import missing


def __getattr__(name: str) -> Any:
    if name in _table.GRADIENTS:
        return _table.GRADIENTS[name]
    raise missing("ops.operations._grad_ops", name, list(_table.GRADIENTS))
