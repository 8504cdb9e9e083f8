"""JSON with the line of every value, and a precise word on what is no JSON: comments, a comma too many, a key twice, an end too soon.

In: the text of a file that people write by hand.  Out: `Entry` values for rank_table.py and docker.py; it reads on after what it can mend.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass

from jumar.device.ascend.complaint import Complaint, quoted

DEEPEST = 40  # levels: a rank table has six, the recursion stays small


@dataclass(frozen=True)
class Entry:
    """A value and its line.   value: dict by key, list, str, int, float, bool or None; their inner values are entries again."""

    value: dict[str, Entry] | list[Entry] | str | float | bool | None
    line: int

    @property
    def items(self) -> dict[str, Entry]:
        """The entries by key, empty where it is no object."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def entries(self) -> list[Entry]:
        """The entries of an array, empty where it is none."""
        return self.value if isinstance(self.value, list) else []

    @property
    def kind(self) -> str:
        """What it is, in JSON's words with its value where that is short."""
        match self.value:
            case dict():
                return "an object"
            case list():
                return "an array"
            case None:
                return "null"
            case bool():
                return f"{self.value}".lower()
            case str():
                return f"the string {quoted(self.value, 40)}"
        return f"the number {self.value}"


class _Stop(Exception):
    """Reading cannot go on; the complaint is written."""


_TOKEN = re.compile(
    r'[ \t\r\n\ufeff]+|(?P<comment>//[^\n]*|#[^\n]*|/\*.*?\*/)|(?P<string>"(?:[^"\\\n]|\\[^\n])*")|(?P<single>\'(?:[^\'\\\n]|\\[^\n])*\')'
    r"|(?P<number>-?[0-9][0-9.eE+-]*)|(?P<word>[A-Za-z_][A-Za-z_0-9]*)|(?P<mark>[{}\[\],:])",
    re.DOTALL,
)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?(?:[eE][+-]?[0-9]{1,2})?")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}


def read_json(text: str) -> tuple[Entry | None, tuple[Complaint, ...]]:
    """The value of a JSON text, None where nothing of it can be read, and what is wrong with the text.

    >>> entry, complaints = read_json('{"a": [1, 2,],\\n"b": "x"} // why')
    >>> entry.items["b"].line, [str(one) for one in complaints]
    (2, ['line 1 column 13: a comma must not stand before ]', 'line 2 column 11: JSON must not hold comments'])
    """
    reader = _Reader(text)
    try:
        entry = reader.value(0)
        if reader.token[0]:
            reader.complain(f"the text must end after its value, got {quoted(reader.token[1], 40)}", "json-tail")
    except _Stop:
        entry = None
    return entry, tuple(sorted(dict.fromkeys(reader.complaints), key=lambda one: (one.line, one.column)))


class _Reader:
    """Where the reading stands.  It has state since a token is consumed once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.starts = [0] + [found.end() for found in re.finditer("\n", text)]
        self.complaints: list[Complaint] = []
        self.token = ("", "", 0)  # kind, text, where; an empty kind is the end
        self.advance()

    def line(self, at: int) -> int:
        return bisect_right(self.starts, at)

    def complain(self, what: str, kind: str, at: int | None = None) -> None:
        place = self.token[2] if at is None else at
        line = self.line(place)
        if len(self.complaints) < 100:
            self.complaints.append(Complaint(what, line, kind, place - self.starts[line - 1] + 1))

    def advance(self) -> None:
        """The next token; comments are complained of and passed."""
        while self.at < len(self.text):
            found = _TOKEN.match(self.text, self.at)
            if found is None:
                self.token = ("bad", self.text[self.at : self.at + 20].split("\n")[0], self.at)
                return
            start, self.at = self.at, found.end()
            kind = found.lastgroup or ""
            if kind == "comment":
                self.complain("JSON must not hold comments", "json-comment", start)
            elif kind:
                self.token = (kind, found[0], start)
                return
        self.token = ("", "", len(self.text))

    def fail(self, wanted: str) -> _Stop:
        kind, text, at = self.token
        if not kind:
            self.complain(f"the text must go on with {wanted}, it ends" if self.text.strip() else "the text is empty", "json-end", at)
        elif kind == "bad" and text.startswith('"'):
            self.complain(f"a string must end on its line, got {quoted(text, 40)}", "json")
        else:
            self.complain(f"{wanted} must stand here, got {quoted(text, 40)}", "json")
        return _Stop()

    def value(self, depth: int) -> Entry:
        kind, text, at = self.token
        line = self.line(at)
        if depth > DEEPEST:
            self.complain(f"the text must have at most {DEEPEST} levels", "json-depth")
            raise _Stop()
        if text == "{" and kind == "mark":
            return Entry(self._object(depth), line)
        if text == "[" and kind == "mark":
            return Entry(self._array(depth), line)
        if kind in {"string", "single"}:
            return Entry(self._string(), line)
        if kind == "number":
            if not _NUMBER.fullmatch(text):
                self.complain(f"a number must be written as JSON does, got {quoted(text, 40)}", "json-number")
                self.advance()
                return Entry(text, line)
            self.advance()
            return Entry(float(text) if set(text) & set(".eE") else int(text), line)
        if kind == "word" and text in _WORDS:
            if text[0].isupper():
                self.complain(f"{text} is Python's, JSON writes {text.lower() if text != 'None' else 'null'}", "json-word")
            self.advance()
            return Entry(_WORDS[text], line)
        raise self.fail("a value")

    def _string(self) -> str:
        kind, text, _ = self.token
        if kind == "single":
            self.complain(f"a string must stand in double quotes, got {text[:40]}", "json-quotes")
            self.advance()
            return text[1:-1]
        try:
            value = str(json.loads(text, strict=False))
        except ValueError:
            self.complain(f"a string must have JSON's escapes only, got {quoted(text, 40)}", "json-escape")
            value = text[1:-1]
        self.advance()
        return value

    def _mark(self, mark: str) -> bool:
        return self.token[:2] == ("mark", mark)

    def _next(self, close: str) -> bool:
        """Whether another element follows; a comma before the end is complained of, one that is missing too."""
        if self._mark(","):
            self.advance()
            if self._mark(close):
                self.complain(f"a comma must not stand before {close}", "json-comma")
            return not self._mark(close)
        if self._mark(close):
            return False
        if self.token[0] in {"string", "single", "number", "word"} or self._mark("{") or self._mark("["):
            self.complain(f"a comma must stand before {quoted(self.token[1], 40)}", "json-comma")
            return True
        raise self.fail(f"a comma or {close}")

    def _object(self, depth: int) -> dict[str, Entry]:
        self.advance()
        found: dict[str, Entry] = {}
        more = not self._mark("}")
        while more:
            if self.token[0] not in {"string", "single"}:
                raise self.fail("a key in double quotes")
            at = self.token[2]
            key = self._string()
            if not self._mark(":"):
                raise self.fail(f"a colon after the key {quoted(key, 40)}")
            self.advance()
            if key in found:
                self.complain(f"the key {quoted(key, 40)} must occur once in its object", "json-key-twice", at)
            found[key] = self.value(depth + 1)
            more = self._next("}")
        self.advance()
        return found

    def _array(self, depth: int) -> list[Entry]:
        self.advance()
        found = []
        more = not self._mark("]")
        while more:
            found.append(self.value(depth + 1))
            more = self._next("]")
        self.advance()
        return found
