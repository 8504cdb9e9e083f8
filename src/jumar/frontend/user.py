"""The user's place: which line of whose script an operator comes from, and which cell it is in.

In: Python's stack, and the cells that are being called.  Out: `Loc` for nodes and errors.  A frame is ours if its file is in this package.
"""

from __future__ import annotations

import linecache
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from jumar.base import Loc
from jumar.frontend.tensor import LOCAL

_HOME = str(Path(__file__).parents[1]) + "/"
_OURS: dict[Any, bool] = {}
_LOCS: dict[tuple[Any, int], Loc] = {}

def is_ours(code: Any) -> bool:
    """Whether a code object belongs to this package."""
    found = _OURS.get(code)
    if found is None:
        found = _OURS[code] = code.co_filename.startswith(_HOME) or code.co_filename.startswith("<frozen") or "functools.py" in code.co_filename
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


def cell_path() -> str:
    """Where among the cells we are: `net.backbone.layer3.conv1`; empty outside of any."""
    calls = LOCAL.calls
    if not calls:
        return ""
    names = [type(calls[0]).__name__]
    for parent, child in zip(calls, calls[1:], strict=False):
        names.append(next((n for n, c in parent.name_cells().items() if c is child), type(child).__name__))
    return ".".join(names)
