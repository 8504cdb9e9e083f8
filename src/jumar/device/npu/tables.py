"""The room's TOML files, read.

In: a name below this folder.  Out: plain values, read by chip.py (chips/) and time.py (constants.toml).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:  # the same parser, before it went into the standard library
    import tomli as tomllib

ROOM = Path(__file__).parent


def read_toml(name: str) -> dict[str, Any]:
    """What a file of this room holds.

    >>> sorted(read_toml("constants.toml"))
    ['constants', 'families', 'generations', 'kinds']
    """
    found: dict[str, Any] = tomllib.loads((ROOM / name).read_text(encoding="utf-8"))
    return found
