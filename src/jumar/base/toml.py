"""A TOML file, read: the one place that knows which parser this Python has."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any


def read_toml(path: Path) -> dict[str, Any]:
    """What a TOML file holds; raises tomllib.TOMLDecodeError (a ValueError) with the line where it is not TOML."""
    if sys.version_info >= (3, 11):  # imported here: 5 ms, and most commands read no table
        import tomllib  # noqa: PLC0415
    else:  # the same parser, before it went into the standard library
        import tomli as tomllib  # noqa: PLC0415
    found: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    return found
