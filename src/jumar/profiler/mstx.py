"""Marks of one's own in a profile: `range_start("load")` ... `range_end(id)`."""

from __future__ import annotations

import itertools
import time
from typing import Any

from jumar.base import event

_NUMBERS = itertools.count(1)
_OPEN: dict[int, tuple[str, float]] = {}


def mark(message: str, stream: Any = None, domain: str = "default") -> None:
    """A moment."""
    event("mark", message=message, domain=domain)


def range_start(message: str, stream: Any = None, domain: str = "default") -> int:
    """Begins a stretch; its number ends it."""
    number = next(_NUMBERS)
    _OPEN[number] = (message, time.perf_counter())
    return number


def range_end(range_id: int, domain: str = "default") -> None:
    """Ends a stretch."""
    found = _OPEN.pop(range_id, None)
    if found is not None:
        event("range", message=found[0], domain=domain, seconds=time.perf_counter() - found[1])
