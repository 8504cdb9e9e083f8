"""`mindspore.graph`: the place to which MindSpore 2.10 moved what captures: `jit`, `mutable`, `_no_grad`."""

from __future__ import annotations

from jumar.common import api

__all__ = ["api"]
