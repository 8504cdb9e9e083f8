"""A rule: patterns that find one kind of failure, the layer at fault, and what to tell the user, in English and Chinese.

In: layers.toml; rules from load.py, which reads them by format.py.  Out: `Rule`, `Layer`, read by apply.py, by the docs and by the tests.
A rule is data: adding one touches no code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import re2

from jumar.base import read_toml

HERE = Path(__file__).parent
TIERS = ("cause", "symptom", "hint")
STACK = ("os", "host_env", "driver", "firmware", "hardware", "container", "kubernetes", "cann", "framework", "application")
FACT = "fact:"
CODE = "code:"  # an error code in any spelling: code:507018, with its family code:drv:87, or by how it begins code:EI*, code:507*
NO_FAILURE_OF_OURS = ("fact:other-software", "fact:went-well")  # a text of another software; a run without a complaint
LANGUAGES = ("en", "zh")
PLACE = re.compile(r"\{([a-z][a-z0-9_]*):([^{}]*)\}")
_OPENING, _CLOSING = ("(", "[", "（"), (")", "]", "）")


@dataclass(frozen=True)
class Layer:
    """A layer of the machine.   title, next: by language; next: what to look at when the cause is not known."""

    name: str
    title: Mapping[str, str]
    next: Mapping[str, str]


@dataclass(frozen=True)
class Text:
    """What is told in one language.   what: what failed and why; fix: what to do, in order; next: where to look if that does not help."""

    what: str
    fix: tuple[str, ...]
    next: str = ""

    def filled(self, values: Mapping[str, str]) -> Text:
        return Text(fill(self.what, values), tuple(fill(step, values) for step in self.fix), fill(self.next, values))


@dataclass(frozen=True)
class Rule:
    """One kind of failure.   match: any of these finds it; also: each must be found too; without: none may be found.  Each is a regex,
    an error code in any spelling (code:507018, code:drv:87), or a fact (fact:NAME).

    layer: at fault, empty where none of the machine is.
    tier: `cause` where the text names or proves the cause, `symptom` where the cause is probable, `hint` where it only points at a layer.
    rank: higher goes first within a tier; explains: findings (names, globs) that merely follow from this one.
    examples, others: texts that must, and must not, have this verdict; seen: field cases that were in view when the rule was written.
    """

    name: str
    layer: str
    stack: str
    cause: str
    tier: str
    match: tuple[str, ...]
    texts: Mapping[str, Text]
    source: str
    also: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    rank: int = 0
    examples: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    file: str = field(default="", compare=False)

    def patterns(self) -> tuple[str, ...]:
        """Every regex of the rule."""
        return tuple(p for p in (*self.match, *self.also, *self.without) if not p.startswith((FACT, CODE)))


def fill(text: str, values: Mapping[str, str]) -> str:
    """A text with its placeholders filled: what was caught, else what stands after the colon.

    >>> fill("port {port:of HCCL} is taken, {name:x}", {"port": "60000"})
    'port 60000 is taken, x'
    >>> fill("more than the card has{size:}. Rank {rank:}: see ({file:}).", {"size": "8 GiB."})
    'more than the card has 8 GiB. Rank: see.'
    """
    return "".join(piece for piece, _ in pieces(text, values))


def pieces(text: str, values: Mapping[str, str]) -> tuple[tuple[str, bool], ...]:
    """A text in pieces, and whether each was filled in: joined so that words keep one blank between them and nothing empty stays in brackets."""
    found: list[tuple[str, bool]] = []
    at = 0
    ahead = ""  # what is left out in front of the next piece
    for place in PLACE.finditer(text):
        before = text[at : place.start()].removeprefix(ahead)
        after = text[place.end() :]
        value = (values.get(place[1]) or place[2]).strip()
        at, ahead = place.end(), ""
        if value and value[-1] in ".,;:" and not value.endswith("...") and after[:1] in (".", ",", ";", ":", "，", "。", "；", "："):
            value = value.rstrip(".,;:")
        if not value and before.endswith(_OPENING) and after.startswith(_CLOSING):
            before, ahead = before[:-1].rstrip(" "), after[0]
        elif not value and before.endswith(" ") and re.match(r"[\s.,;:!?)\]，。；：）]|$", after):
            before = before.removesuffix(" ")
        elif value and not place[2].strip() and re.search(r"[A-Za-z]$", before) and re.match(r"[\w(<>=\[]", value):
            before += " "
        found += [(before.replace("  ", " "), False), (value, True)]
    return (*found, (text[at:].removeprefix(ahead), False))


def compiled(pattern: str) -> Any:
    """The regex of a rule: linear-time, case-insensitive, within one line, over UTF-8 bytes."""
    return re2.compile(as_written(pattern), regex_options())


def as_written(pattern: str) -> bytes:
    """A rule's pattern as the engine takes it: ^ and $ mean the ends of a line."""
    return b"(?m)" + pattern.encode()


@cache
def regex_options() -> Any:
    options = re2.Options()
    options.case_sensitive = False
    options.never_nl = True
    options.log_errors = False
    options.max_mem = 1 << 20  # of each regex: thousands share the memory that a long log may take
    return options


@cache
def layers() -> Mapping[str, Layer]:
    """The layers by name, in the order of layers.toml."""
    rows = read_toml(HERE / "layers.toml")["layer"]
    return {
        row["name"]: Layer(row["name"], {lang: row[lang]["title"] for lang in LANGUAGES}, {lang: row[lang]["next"] for lang in LANGUAGES})
        for row in rows
    }
