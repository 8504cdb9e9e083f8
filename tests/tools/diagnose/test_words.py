"""The quick look never misses: what a pattern finds holds its words."""

from __future__ import annotations

import pytest

from jumar.tools.diagnose import scan
from jumar.tools.diagnose.diagnose import diagnose_text, with_rules
from jumar.tools.diagnose.words import Words, may_hold, words_of
from jumar.tools.knowledge import compiled, load_rules

RULES = load_rules()


@pytest.mark.parametrize(
    "pattern, words",
    [
        (r"abc\[\]def", (("abc[]def",),)),
        (r"(?P<x>abcd)def", (("abcd",), ("def",))),
        (r"ABCDe?f", (("abcd",),)),
        (r"abc{2,3}def|ghi", (("def", "ghi"),)),
        (r"(abcd)?ef", ()),
        (r"(abcd){0,2}efg", (("efg",),)),
        (r"(?i)Foo\.Bar\b", (("foo.bar",),)),
        (r"x(?:one|t)yyyy", (("yyyy",),)),
        (r"\x41bcde", (("bcde",),)),
        (r"[a-z\]]+", ()),
        (r"失败了|错误码", (("失败了", "错误码"),)),
        (r"卡.{0,4}(死|up)", (("卡",),)),
        (r"(host|local)ip.*(?:fail|error)ed", (("host", "local"), ("fail", "error"))),
    ],
)
def test_words_are_those_that_every_hit_holds(pattern: str, words: tuple[Words, ...]) -> None:
    assert words_of(pattern) == words


def test_every_hit_in_the_rules_own_examples_holds_the_words_of_its_pattern() -> None:
    missed = []
    for rule in RULES:
        for text in (*rule.examples, *rule.others):
            for pattern in rule.patterns():
                if not may_hold(text.lower(), words_of(pattern)) and compiled(pattern).search(text.encode()):
                    missed.append((rule.name, pattern))
    assert missed == []


def test_nearly_all_patterns_tell_of_a_word() -> None:
    patterns = {p for rule in RULES for p in rule.patterns()}
    assert sum(not words_of(p) for p in patterns) * 50 < len(patterns)


def test_a_short_text_has_the_verdict_that_it_has_with_all_patterns_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    short = with_rules(RULES)
    monkeypatch.setattr(scan, "COMPILED_LATER", 1 << 40)
    examples = [text for rule in RULES[::9] for text in rule.examples]
    quick = [diagnose_text(text, rules=short) for text in examples]
    monkeypatch.setattr(scan, "COMPILED_LATER", 0)
    full = with_rules(RULES)
    assert [[f.rule.name for f in v.findings] for v in quick] == [
        [f.rule.name for f in diagnose_text(t, rules=full).findings] for t in examples
    ]
