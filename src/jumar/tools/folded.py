"""Tracebacks in which the user's lines stand out: frames inside Jumar are folded into one line.

In: an exception that a script let pass.  Out: a text; the last frame of ours is kept where the error is none of those that explain themselves.
"""

from __future__ import annotations

import traceback
from pathlib import Path
from types import TracebackType

from jumar.base import Loc, StackError

_HOME = str(Path(__file__).parents[1]) + "/"
_IMPORT = "<frozen importlib"


def traceback_text(error: BaseException, *, full: bool = False, skip: int = 0) -> str:
    """The traceback.   full: with every frame.   skip: frames of the caller above the script.

    >>> print(traceback_text(ValueError("x")))
    ValueError: x
    """
    return "\n".join(_parts(error, full, skip, set()))


def _parts(error: BaseException, full: bool, skip: int, seen: set[int]) -> list[str]:
    seen.add(id(error))
    lines: list[str] = []
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and id(cause) not in seen:
        how = (
            "The above exception was the direct cause of the following exception:"
            if error.__cause__ is not None
            else "During handling of the above exception, another exception occurred:"
        )
        lines += [*_parts(cause, full, skip, seen), "", how, ""]
    frames = list(traceback.extract_tb(_without(error.__traceback__, skip)))
    if frames:
        lines.append("Traceback (most recent call last):")
        lines += _frames(frames, full, explains_itself=isinstance(error, StackError))
    if isinstance(error, StackError):
        lines += [str(error), *_caret(error.loc, frames)]
    else:
        lines += "".join(traceback.format_exception_only(type(error), error)).rstrip("\n").split("\n")
    return lines


def _without(tb: TracebackType | None, skip: int) -> TracebackType | None:
    """The traceback below the frames that started the script."""
    while skip and tb is not None:
        tb, skip = tb.tb_next, skip - 1
    return tb


def is_ours(frame: traceback.FrameSummary) -> bool:
    """Whether a frame is inside Jumar, or of Python's import on its behalf."""
    return frame.filename.startswith((_HOME, _IMPORT))


def _frames(frames: list[traceback.FrameSummary], full: bool, explains_itself: bool) -> list[str]:
    lines: list[str] = []
    folded = 0
    for i, frame in enumerate(frames):
        last = i == len(frames) - 1
        if is_ours(frame) and not full and not (last and not explains_itself):
            folded += 1
            if last or not is_ours(frames[i + 1]):
                lines.append(f"  [{folded} frame{'s' * (folded > 1)} inside jumar; --full-traceback shows them]")
                folded = 0
            continue
        if folded:
            lines.append(f"  [{folded} frame{'s' * (folded > 1)} inside jumar; --full-traceback shows them]")
            folded = 0
        lines += traceback.format_list([frame])[0].rstrip("\n").split("\n")
    return lines


def _caret(loc: Loc | None, frames: list[traceback.FrameSummary]) -> list[str]:
    """The user's line with a caret, where the traceback does not show it: an operator that was recorded earlier."""
    if loc is None or not loc.line or not loc.text:
        return []
    if any(f.filename == loc.file and f.lineno == loc.line for f in frames):
        return []
    return [f"  {loc.file}:{loc.line}", f"    {loc.text}", f"    {'^' * len(loc.text)}"]
