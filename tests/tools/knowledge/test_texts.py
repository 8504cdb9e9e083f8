"""What a rule says reads as a sentence, with what was caught and without it; what it asks the user to run is a command.

In: every rule, filled with its fallbacks and with what each of its examples catches.  Out: no word glued to what was filled in, no blank before a
full stop, no empty or open brackets, no word cut in two; commands that a shell takes as they stand.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cache

import pytest

from jumar.tools.diagnose import diagnose_text
from jumar.tools.knowledge import BLANK, Finding, Moment, Rule, load_rules
from jumar.tools.knowledge.rule import LANGUAGES, fill, pieces

RULES = load_rules()
_PLACE = re.compile(r"\{([a-z][a-z0-9_]*):([^{}]*)\}")
_WORD = r"[A-Za-z0-9]"
_CLOSING = r"[.,;:!?)\]，。；：）」]"


def named(rule: Rule) -> str:
    return rule.name


@cache
def _verdict(text: str):  # type: ignore[no-untyped-def]
    return diagnose_text(text)


def caught(rule: Rule) -> tuple[tuple[Mapping[str, str], str], ...]:
    """The values that a rule's texts may be filled with, and where they were caught: none, and of each example."""
    found: list[tuple[Mapping[str, str], str]] = [({}, "")]
    for example in rule.examples:
        verdict = _verdict(example)
        found += [(f.values, example) for f in (*verdict.findings, *verdict.followed) if f.rule.name == rule.name]
    return tuple(found)


def templates(rule: Rule) -> Iterator[str]:
    for lang in LANGUAGES:
        text = rule.texts[lang]
        yield from (text.what, *text.fix, text.next)


def flaws(template: str, values: Mapping[str, str]) -> Iterator[str]:
    """What a reader stumbles over at each place that is filled in."""
    parts = pieces(template, values)
    for at, (value, filled) in enumerate(parts):
        if not filled:
            continue
        before, after = "".join(p for p, _ in parts[:at]), "".join(p for p, _ in parts[at + 1 :])
        shown = f"{before[-30:]}|{value}|{after[:30]}"
        for flaw, seen in {
            "a word is glued": re.search(r"[A-Za-z,;:]$", before)
            and re.match(rf"{_WORD}|\(|->", value)
            and not re.search(r"[=/:_\-]$", before),
            "a word is glued behind": re.search(rf"{_WORD}$", value) and re.match(_WORD, after),
            "two full stops": re.search(r"[,;:]$|\w\.$", value) and re.match(r"[.,;:，。；：]", after),
            "a blank before punctuation": (before + value).endswith(" ") and re.match(_CLOSING + r"(?![\w.])", after),
            "a blank at an end": value != value.strip(),
            "two blanks": re.search(r"\S {2,}\S", value) or (value and (before + value + after[:1]).endswith("  ")),
            "nothing after a colon": not value and re.search(r"[:：] ?$", before) and re.match(r"\s*([.,;)，。；）]|$)", after),
            "empty brackets": not value and re.search(r"[(\[（'\"“「《]$", before) and re.match(r"[)\]）'\"”」》]", after),
            "open brackets": any(value.count(a) != value.count(b) for a, b in ("()", "[]", "（）")),
            "begins with a blank": not before and not value and after.startswith(" "),
            "begins with nothing": not value and not before and re.match(r"[，。；.,;]", after),
        }.items():
            if seen:
                yield f"{flaw}: {shown}"


def cuts(values: Mapping[str, str], source: str) -> Iterator[str]:
    """What was caught and ends within a word."""
    for name, value in values.items():
        if value and re.search(r"[A-Za-z]$", value) and value in source:
            at = [m.end() for m in re.finditer(re.escape(value), source)]
            if all(re.match(r"[A-Za-z]", source[end : end + 1]) for end in at):
                yield f"{name} is cut: {value!r}"


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_what_a_rule_says_reads_well_with_and_without_what_was_caught(rule: Rule) -> None:
    found = [flaw for values, _ in caught(rule) for template in templates(rule) for flaw in flaws(template, values)]
    used = {place[1] for template in (*templates(rule), *rule.run) for place in _PLACE.finditer(template)}
    found += [cut for values, source in caught(rule) for cut in cuts({k: v for k, v in values.items() if k in used}, source)]
    assert not found, "\n".join(dict.fromkeys(found))


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.run], ids=named)
def test_what_a_rule_asks_to_run_is_a_command_that_a_shell_takes(rule: Rule) -> None:
    for values, _ in caught(rule):
        for command in rule.run:
            filled = fill(command, values)
            assert shlex.split(filled), filled
            bare = re.sub(r"'[^']*'|\"[^\"]*\"|\$\{\w+\}|\{\}", "", filled)
            assert not re.search(r"<[A-Za-z\u4e00-\u9fff]|\{|\}|>\s*$", bare), f"the shell takes a placeholder for a redirection: {filled}"
            assert not re.search(r"(^|\s|/)\.\.\.(\s|$)|…|[\u4e00-\u9fff]", bare), f"words are left out: {filled}"


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_what_is_left_blank_is_told_how_to_be_found(rule: Rule) -> None:
    for values, source in caught(rule):
        found = Finding(rule, values, (), 1, Moment())
        for lang in LANGUAGES:
            text = found.text(lang)
            told = dict(found.blanks(lang))
            assert [b for step in (text.what, *text.fix, text.next) for b in BLANK.findall(step) if b not in told and b not in source] == []
        assert not [b for command in found.run() for b in BLANK.findall(command) if b not in source]
