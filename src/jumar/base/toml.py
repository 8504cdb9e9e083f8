"""TOML, read: the one place that knows the parser."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def read_toml(path: Path) -> dict[str, Any]:
    """What a TOML file holds; raises a ValueError with the line where it is not TOML."""
    return toml_of(path.read_text(encoding="utf-8"))


def toml_of(text: str) -> dict[str, Any]:
    """What a TOML text holds; raises a ValueError with the line where it is not TOML."""
    # tomli, not the standard library's copy of it: it comes compiled, three times as fast.  Imported here, since most commands read no table
    import tomli  # noqa: PLC0415

    found: dict[str, Any] = tomli.loads(text)
    return found
