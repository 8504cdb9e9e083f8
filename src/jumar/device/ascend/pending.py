"""Stand-ins for names that land in a moment (compat.py): who lands the real one takes the name out here and in the face."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def pairings(versions: Mapping[str, Any]) -> tuple[Any, ...]:
    return ()
