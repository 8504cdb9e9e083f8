"""One error type that names its layer, the user's line and the way out.

In: what went wrong, where (`Loc`), how to go on (`hint`), the page that explains it (`code`).
Out: `StackError`, with one subclass per room, and `during(...)`, which adds what was going on.
What went wrong, the hint and what was going on may be `Said` in two languages; who catches the error sets `language`, and its text is in that one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from jumar.base.said import UNSAID, Language, Said, told


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


_AT, _HINT, _MORE, _WHILE = Said("at ", "位置："), Said("hint: ", "提示："), Said("more: ", "详见："), Said("while ", "当时正在")


class StackError(Exception):
    """An error of the stack.   Text: `[layer] what`, then loc, hint, the page, and what was going on.

    >>> error = ToolError(Said("a.log: file must be there, got none", "a.log：文件不存在"), hint="jumar diagnose FILE", code="file-missing")
    >>> error.language = "zh"
    >>> error.__str__().splitlines()
    ['ToolError: [tools] a.log：文件不存在', '  提示：jumar diagnose FILE', '  详见：jumar explain file-missing']
    """

    layer: ClassVar[str] = "base"

    def __init__(self, what: str, *, loc: Loc | None = None, hint: str = "", code: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.loc = loc
        self.hint = hint
        self.code = code
        self.context: list[str] = []
        self.language: Language = "en"

    def __str__(self) -> str:
        lines = [f"{type(self).__name__}: [{self.layer}] {self.told(self.what)}"]
        if self.loc and str(self.loc):
            lines += self._place(self.loc)
        if self.hint:
            lines.append(f"  {self.told(_HINT)}{self.told(self.hint)}")
        if self.code:
            lines.append(f"  {self.told(_MORE)}jumar explain {self.code}")
        lines += [f"  {self.told(_WHILE)}{self.told(doing)}" for doing in self.context]
        return "\n".join(lines)

    def told(self, text: str) -> str:
        """A text of this error (`what`, `hint`) in the language of the error."""
        return told(text, self.language)

    def _place(self, loc: Loc) -> list[str]:
        """Where it was: one line, or the user's line with a caret below."""
        at = self.told(_AT)
        if loc.end <= loc.column:
            return [f"  {at}{loc}"]
        return [f"  {at}{loc.file}:{loc.line}", f"      {loc.text}", "      " + " " * loc.column + "^" * (loc.end - loc.column)]


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


def nearest(name: str, known: list[str] | tuple[str, ...] | set[str] | dict[str, object]) -> Said:
    """`did you mean X?` for a misspelt name, or an empty text."""
    from difflib import get_close_matches  # noqa: PLC0415  (only an error pays for it)

    close = get_close_matches(name, list(known), n=3, cutoff=0.6)
    return did_you_mean(close)


def did_you_mean(names: list[str] | tuple[str, ...]) -> Said:
    """The question after these names; empty where there are none."""
    return Said(f"did you mean {' or '.join(names)}?", f"是否指 {' 或 '.join(names)}？") if names else UNSAID
