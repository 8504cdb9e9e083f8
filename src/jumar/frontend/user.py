"""The user's place: which line of whose script an operator comes from, and which cell it is in.

In: Python's stack, and the cells that are being called.  Out: `Loc` for nodes and errors.  A frame is ours if its file is in this package.
"""

from __future__ import annotations

import linecache
import sys
from itertools import islice, pairwise
from pathlib import Path
from types import FrameType
from typing import Any

from jumar.base import Loc, StackError
from jumar.frontend.tensor import LOCAL

_HOME = str(Path(__file__).parents[1]) + "/"
_OURS: dict[Any, bool] = {}
_LOCS: dict[tuple[Any, int], Loc] = {}


def is_ours(code: Any) -> bool:
    """Whether a code object belongs to this package."""
    found = _OURS.get(code)
    if found is None:
        found = _OURS[code] = (
            code.co_filename.startswith(_HOME) or code.co_filename.startswith("<frozen") or "functools.py" in code.co_filename
        )
    return found


def user_frame() -> FrameType | None:
    """The innermost frame that is not ours."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame.f_code):
        frame = frame.f_back
    return frame


def user_loc() -> Loc | None:
    """The user's line that is running."""
    frame = user_frame()
    if frame is None:
        return None
    key = (frame.f_code, frame.f_lineno)
    loc = _LOCS.get(key)
    if loc is None:
        if len(_LOCS) > 100_000:
            _LOCS.clear()
        name = frame.f_code.co_filename
        loc = _LOCS[key] = Loc(name, frame.f_lineno, "", linecache.getline(name, frame.f_lineno).strip())
    return loc


def explained(error: StackError) -> StackError:
    """The error of an operator, with the user's line, the part of it that was at work, and the cell."""
    frame = user_frame()
    if frame is not None and not (error.loc is not None and error.loc.end):
        error.loc = _exact(frame)
    where = cell_path()
    if where and not any(c.startswith("in cell ") for c in error.context):
        error.context.append(f"in cell {where}")
    return error


def _exact(frame: FrameType) -> Loc:
    """The place of a frame with its columns; Python 3.10 knows lines only, so the whole line is meant."""
    code, line = frame.f_code, frame.f_lineno
    whole = linecache.getline(code.co_filename, line).rstrip("\n")
    text = whole.strip()
    if not text:
        return Loc(code.co_filename, line)
    indent = len(whole) - len(whole.lstrip())
    column, end = 0, len(text)
    if hasattr(code, "co_positions") and frame.f_lasti >= 0:
        first, last, start, stop = next(islice(code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
        if first == line and start is not None and stop is not None:
            column = _characters(whole, start) - indent
            end = _characters(whole, stop) - indent if last == line else len(text)
    return Loc(code.co_filename, line, "", text, max(0, column), max(1, end))


def _characters(text: str, nbytes: int) -> int:
    """Positions count bytes of UTF-8."""
    return len(text.encode()[:nbytes].decode(errors="ignore"))


def cell_path() -> str:
    """Where among the cells we are: `net.backbone.layer3.conv1`; empty outside of any."""
    calls = LOCAL.calls
    if not calls:
        return ""
    names = [type(calls[0]).__name__]
    for parent, child in pairwise(calls):
        names.append(next((n for n, c in parent.name_cells().items() if c is child), type(child).__name__))
    return ".".join(names)
