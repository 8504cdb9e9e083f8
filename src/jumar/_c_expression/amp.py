"""Levels of mixed precision, and the stack of them that blocks push onto: `push_amp_strategy`, `pop_amp_strategy`.

In: strategies.  Out: the one in force, which `jumar.amp` asks for.
"""

from __future__ import annotations

import enum
import threading
from dataclasses import dataclass
from typing import Any


class AmpLevel(enum.Enum):
    """How much is computed in half precision."""

    AmpO0, AmpO1, AmpO2, AmpO3, AmpAuto = range(5)


@dataclass(frozen=True)
class AmpStrategy:
    """A level, the half type, and lists of operators."""

    level: AmpLevel
    dtype: Any
    white_list: tuple[Any, ...] = ()
    black_list: tuple[Any, ...] = ()


class _Stack(threading.local):
    def __init__(self) -> None:
        self.items: list[AmpStrategy] = []


_STACK = _Stack()


def create_amp_strategy(level: AmpLevel, dtype: Any, white_list: Any = (), black_list: Any = ()) -> AmpStrategy:
    """A strategy."""
    return AmpStrategy(level, dtype, tuple(white_list), tuple(black_list))


def push_amp_strategy(level: AmpLevel, dtype: Any, white_list: Any = (), black_list: Any = ()) -> None:
    """A strategy comes into force."""
    _STACK.items.append(create_amp_strategy(level, dtype, white_list, black_list))


def pop_amp_strategy() -> None:
    """The strategy before is in force again."""
    _STACK.items.pop()


def get_curr_amp_strategy() -> AmpStrategy | None:
    """The strategy in force."""
    return _STACK.items[-1] if _STACK.items else None
