"""One error type that names its layer, the user's line and the way out.

In: what went wrong, where (`Loc`), how to go on (`hint`), the page that explains it (`code`).
Out: `StackError`, with one subclass per room, and `during(...)`, which adds what was going on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Loc:
    """Where a node comes from: a line of the user's script, or a node of an imported file.

    `file` is the script or model file, `line` 0 where there are no lines, `name` the node or scope, `text` the line.
    `column`, `end`: the part of `text` that was at work, where it is known.
    """

    file: str = ""
    line: int = 0
    name: str = ""
    text: str = ""
    column: int = 0
    end: int = 0

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return "   ".join(part for part in (place, self.name, self.text) if part)


class StackError(Exception):
    """An error of the stack.   Text: `[layer] what`, then loc, hint, the page, and what was going on."""

    layer: ClassVar[str] = "base"

    def __init__(self, what: str, *, loc: Loc | None = None, hint: str = "", code: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.loc = loc
        self.hint = hint
        self.code = code
        self.context: list[str] = []

    def __str__(self) -> str:
        lines = [f"{type(self).__name__}: [{self.layer}] {self.what}"]
        if self.loc and str(self.loc):
            lines += self._place(self.loc)
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        if self.code:
            lines.append(f"  more: jumar explain {self.code}")
        lines += [f"  while {doing}" for doing in self.context]
        return "\n".join(lines)

    @staticmethod
    def _place(loc: Loc) -> list[str]:
        """Where it was: one line, or the user's line with a caret below."""
        if loc.end <= loc.column:
            return [f"  at {loc}"]
        return [f"  at {loc.file}:{loc.line}", f"      {loc.text}", "      " + " " * loc.column + "^" * (loc.end - loc.column)]


class IRError(StackError):
    layer = "ir"


class DeviceError(StackError):
    layer = "device"


class KernelError(StackError):
    layer = "kernel"


class RuntimeFault(StackError):
    layer = "runtime"


class OpError(StackError, ValueError, TypeError):
    """An operator that its inputs do not fit.   A ValueError and a TypeError too: MindSpore raises the one for shapes, the other for element types."""

    layer = "operators"


class CompileError(StackError):
    layer = "compiler"


class ImportFault(StackError):
    layer = "frontend"


class ToolError(StackError):
    layer = "tools"


@contextmanager
def during(doing: str) -> Iterator[None]:
    """Adds to any `StackError` that passes what was going on: `while compiling graph 'mlp' for cpu`."""
    try:
        yield
    except StackError as error:
        error.context.append(doing)
        raise


def nearest(name: str, known: list[str] | tuple[str, ...] | set[str] | dict[str, object]) -> str:
    """`did you mean X?` for a misspelt name, or an empty text."""
    from difflib import get_close_matches  # noqa: PLC0415  (only an error pays for it)

    close = get_close_matches(name, list(known), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(close)}?" if close else ""
