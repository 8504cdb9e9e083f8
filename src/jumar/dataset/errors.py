"""The errors of the dataset room, and the checks at its border.

In: what a script passed, or what failed while a row was made.  Out: `DataFault`, which is also the type that MindSpore raises in its place.
"""

from __future__ import annotations

import numbers
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from jumar.base import StackError

INT32_MAX = 2**31 - 1


class DataFault(StackError, RuntimeError):
    """What went wrong while data was read or made."""

    layer: ClassVar[str] = "dataset"


class DataValueFault(DataFault, ValueError):
    """An argument has a value that it must not have."""


class DataTypeFault(DataFault, TypeError):
    """An argument has a type that it must not have."""


class RowFault(DataFault):
    """A function failed on a row.   stage: the stage; index: the row's number in its pass, from 0; trace: the traceback of where it failed."""

    def __init__(self, stage: str, index: int, trace: str, worker: str = "") -> None:
        last = trace.strip().splitlines()[-1] if trace.strip() else "unknown error"
        super().__init__(f"{stage}: row {index} failed{' in ' + worker if worker else ''}, got {last}\n{trace.rstrip()}")
        self.stage = stage
        self.index = index
        self.trace = trace
        self.worker = worker


class WorkerLost(DataFault):
    """A worker process ended by itself or was killed."""


class ExtraMissing(DataFault, ImportError):
    """An optional package is not installed."""


def trace_of(error: BaseException) -> str:
    """The traceback as text, without the frames of this package that only called the user's function."""
    here = str(Path(__file__).parent)
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None and frames.tb_frame.f_code.co_filename.startswith(here):
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames))


def need(package: str, extra: str = "vision") -> ExtraMissing:
    """The error for a package that is not installed."""
    return ExtraMissing(f"{package}: must be installed for this, got no such package", hint=f"pip install 'jumar[{extra}]'")


def check_int(who: str, name: str, value: Any, low: int, high: int = INT32_MAX) -> int:
    """`value` as an int within [low, high]."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise DataTypeFault(f"{who}: {name} must be an integer, got {value!r} of type {type(value).__name__}")
    if not low <= int(value) <= high:
        raise DataValueFault(f"{who}: {name} must be within [{low}, {high}], got {value}")
    return int(value)


def check_number(who: str, name: str, value: Any, low: float = float("-inf"), high: float = float("inf")) -> float:
    """`value` as a float within [low, high]."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise DataTypeFault(f"{who}: {name} must be a number, got {value!r} of type {type(value).__name__}")
    if not low <= float(value) <= high:
        raise DataValueFault(f"{who}: {name} must be within [{low}, {high}], got {value}")
    return float(value)


def check_bool(who: str, name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise DataTypeFault(f"{who}: {name} must be a bool, got {value!r} of type {type(value).__name__}")
    return value


def names(who: str, name: str, value: str | Iterable[str] | None) -> list[str]:
    """One column name or several as a list; None is no name."""
    if value is None:
        return []
    found = [value] if isinstance(value, str) else list(value)
    for one in found:
        if not isinstance(one, str) or not one:
            raise DataTypeFault(f"{who}: {name} must be a name or a list of names, got {value!r}")
    if len(set(found)) != len(found):
        raise DataValueFault(f"{who}: {name} must name each column once, got {found}")
    return found
