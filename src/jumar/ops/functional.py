"""`mindspore.ops.functional`: the older face of the functions: all of `ops` under one more name."""

from __future__ import annotations

from typing import Any

from jumar import ops


def __getattr__(name: str) -> Any:
    return getattr(ops, name)


__all__ = list(ops.__all__)
