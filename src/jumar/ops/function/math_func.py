"""`mindspore.ops.function.math_func`: functions under the file where MindSpore defines them; `f_ext` is mint's `f`."""

from __future__ import annotations

from typing import Any

from jumar.ops import auto_generate


def __getattr__(name: str) -> Any:
    return auto_generate.found(name, "ops.function.math_func")
