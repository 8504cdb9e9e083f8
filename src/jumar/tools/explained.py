"""An error code as it is shown: lines for the terminal, and a document.

In: `Code`s.  Out: text in English or Chinese, and what `jumar explain --json` prints of one code.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

import click

from jumar.device.ascend import FAMILIES, Code, known_codes
from jumar.tools.knowledge import layers, left_blank

_WORDS = {
    "en": {
        "family": "family", "module": "module", "layer": "layer", "causes": "causes", "next": "look at", "also": "also", "source": "source",
        "any": "any: it passes on what another layer reported; look at the first error before it",
        "several": "{asked} is a number of {n} families; the likelier first. Say which: {each}", "unknown": "not in the table",
    },
    "zh": {
        "family": "类别", "module": "模块", "layer": "层", "causes": "常见原因", "next": "排查", "also": "等价写法", "source": "来源",
        "any": "任意层：该码只是转述其他层的错误，请看它之前的第一条错误",
        "several": "{asked} 在 {n} 个类别中都有定义，按可能性排列；可指定类别：{each}", "unknown": "表中没有",
    },
}  # fmt: skip


def family_counts() -> dict[str, int]:
    """How many codes of each family the table has; 0 for those that are read by their build alone."""
    counts = Counter(code.family for code in known_codes())
    return {name: counts[name] for name in FAMILIES if counts[name] or name in ("ts", "exit")}


def spellings(code: Code) -> tuple[str, ...]:
    """Other ways in which logs print a number: decimal, hexadecimal, unsigned and signed.

    >>> from jumar.device.ascend import find_code
    >>> spellings(find_code("0x7020023")[0]), spellings(find_code("-8005")[0])
    (('117571619',), ('4294959291', '0xffffe0bb'))
    """
    value = code.value
    if value is None or abs(value) < 256:
        return ()
    unsigned = value & 0xFFFFFFFF if value < 0 else value
    every = (str(unsigned), f"0x{unsigned:x}", *((str(unsigned - (1 << 32)),) if 1 << 31 <= unsigned < 1 << 32 else ()))
    own = code.number.lower()
    return tuple(text for text in every if text != own and text.removeprefix("0x") != own.removeprefix("0x").lstrip("0"))


def code_lines(asked: str, codes: Sequence[Code], lang: str) -> Iterator[str]:
    """What the terminal shows of one question."""
    words = _WORDS[lang]
    if len({code.family for code in codes}) > 1:
        families = tuple(dict.fromkeys(code.family for code in codes))
        each = ", ".join(f"jumar explain {family} {codes[0].number}" for family in families)
        yield from wrapped(words["several"].format(asked=asked, n=len(families), each=each), "", "  ")
        yield ""
    for place, code in enumerate(codes):
        if place:
            yield ""
        yield from _one(asked, code, lang, words)


def code_list(codes: Sequence[Code], lang: str) -> Iterator[str]:
    """Many codes, one on a line: number, symbol, meaning."""
    wide = [max(len(text) for text in column) for column in zip(*((code.number, _symbol(code)) for code in codes))]
    for code in codes:
        symbol = f"{_symbol(code):{wide[1]}}  " if wide[1] else ""
        yield f"{code.number:{wide[0]}}  {symbol}{code.meaning(lang)}"


def _symbol(code: Code) -> str:
    return code.symbol if code.family not in ("plog", "event") else ""  # those have a title, which the meaning repeats


def wrapped(text: str, first: str, rest: str) -> Iterator[str]:
    """The text in lines as wide as the terminal is; a Chinese character takes two columns and may stand at any line's end."""
    width = max(40, min(shutil.get_terminal_size().columns, 120)) - 1 if sys.stdout.isatty() else 108
    line, used, begun = first, _columns(first), False
    for piece in re.findall(r"[^\s\u2e80-\uffff]+[\u3001\u3002\uff00-\uffef]*\s*|[\u2e80-\uffff][\u3001\u3002\uff00-\uff20]*\s*|\s+", text):
        if begun and used + _columns(piece.rstrip()) > width:
            yield line.rstrip()
            line, used = rest, _columns(rest)
        line, used, begun = line + piece, used + _columns(piece), True
    yield line.rstrip()


def _columns(text: str) -> int:
    return sum(2 if ord(c) > 0x2E80 else 1 for c in text)


def _one(asked: str, code: Code, lang: str, words: dict[str, str]) -> Iterator[str]:
    head = f"{code.number}  {code.symbol}".rstrip()
    typed = asked.strip()
    if typed.lower() in spellings(code) and typed not in code.symbol:  # -1 for 4294967295
        head = f"{typed} = {head}"
    yield click.style(head, bold=True) + ("" if code.known else click.style(f"  ({words['unknown']})", fg="yellow"))
    yield from wrapped(code.meaning(lang), "  ", "  ")
    layer = layers().get(code.layer)
    rows = [
        (words["family"], f"{code.family}: {FAMILIES[code.family][lang == 'zh']}" if code.family in FAMILIES else code.family),
        (words["module"], code.module),
        (
            words["layer"],
            f"{code.layer}: {layer.title[lang]}" if layer else code.layer or (words["any"] if code.value != 0 and code.known else ""),
        ),
        (words["also"], "  ".join(spellings(code))),
    ]
    causes = code.causes(lang)
    rows += [(words["causes"] if not n else "", f"- {cause}") for n, cause in enumerate(causes)]
    rows += [("", f"{blank}  {how}") for blank, how in left_blank((code.meaning(lang), *causes), lang)]
    if layer and not causes:
        rows.append((words["next"], layer.next[lang]))
    rows.append((words["source"], code.source))
    for label, text in rows:
        if text:
            indent = "  " + label + " " * (max(1, 9 - sum(2 if ord(c) > 0x2E80 else 1 for c in label)))
            yield from wrapped(text, indent, " " * 11)


def code_document(code: Code, lang: str) -> dict[str, object]:
    """What `--json` says of one code; both languages are there, `meaning` and `causes` are in the one that was asked for."""
    return {
        "number": code.number,
        "value": code.value,
        "also": list(spellings(code)),
        "family": code.family,
        "module": code.module,
        "symbol": code.symbol,
        "known": code.known,
        "layer": code.layer,
        "meaning": code.meaning(lang),
        "causes": list(code.causes(lang)),
        "en": {"meaning": code.meaning("en"), "causes": list(code.causes("en"))},
        "zh": {"meaning": code.meaning("zh"), "causes": list(code.causes("zh"))},
        "source": code.source,
    }
