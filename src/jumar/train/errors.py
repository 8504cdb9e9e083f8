"""Errors of the training room.

In: what went wrong.  Out: `[train] ...` errors that are also the Python errors MindSpore's users catch (`ValueError`, `RuntimeError`, `TypeError`).
"""

from __future__ import annotations

from typing import Any

from jumar.base import StackError


class TrainError(StackError):
    """Training, checkpoints, metrics."""

    layer = "train"


class FileFault(TrainError, ValueError):
    """A checkpoint that cannot be read: absent, damaged, hostile, encrypted."""


class MismatchError(TrainError, RuntimeError):
    """A checkpoint of another network."""


class ArgumentFault(TrainError, ValueError):
    """An argument with a value that cannot be."""


class KindFault(TrainError, TypeError):
    """An argument of the wrong type."""


class UnsupportedError(TrainError, NotImplementedError):
    """What Jumar does not do, with what to use instead."""


def check_kind(where: str, name: str, value: Any, kinds: type | tuple[type, ...]) -> None:
    """The argument has one of the types; a bool is no int."""
    wanted = kinds if isinstance(kinds, tuple) else (kinds,)
    if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted and int in wanted):
        names = " or ".join("None" if k is type(None) else k.__name__ for k in wanted)
        raise KindFault(f"{where}: {name} must be {names}, got {type(value).__name__}", code="train-argument")


def check_count(where: str, name: str, value: Any, lowest: int = 1) -> int:
    """The argument is an integer of at least `lowest`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise KindFault(f"{where}: {name} must be an int, got {type(value).__name__}", code="train-argument")
    if value < lowest:
        raise ArgumentFault(f"{where}: {name} must be at least {lowest}, got {value}", code="train-argument")
    return value
