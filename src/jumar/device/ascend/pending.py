"""Stand-ins for names that land in a moment (codes.py, compat.py): who lands the real one takes the name out here and in the face."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Code:
    number: str = ""
    family: str = ""
    module: str = ""
    symbol: str = ""
    en: str = ""
    zh: str = ""
    layer: str = ""


@dataclass(frozen=True)
class Mention:
    text: str
    start: int
    code: Code


def codes_in(line: str) -> tuple[Mention, ...]:
    return ()


def pairings(versions: Mapping[str, Any]) -> tuple[Any, ...]:
    return ()
