"""`mindspore.ops.operations.random_ops`: primitives under the file where MindSpore defines them."""

from __future__ import annotations

from typing import Any

from jumar.ops import operations


def __getattr__(name: str) -> Any:
    return getattr(operations, name)
