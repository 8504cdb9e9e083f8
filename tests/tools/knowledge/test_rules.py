"""Every rule is well made: its examples get its verdict, look-alikes do not, both languages speak, and it is quiet on healthy logs."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from jumar.device.ascend import find_code
from jumar.tools.diagnose import diagnose_text
from jumar.tools.diagnose.diagnose import NOT_KNOWN
from jumar.tools.knowledge import CODE, COMMON, FACT, Rule, load_rules
from jumar.tools.knowledge.rule import compiled

RULES = load_rules()
NAMES = [rule.name for rule in RULES]
HEALTHY = {path.name: path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parent / "healthy").glob("*.log"))}
_PLACE = re.compile(r"\{([a-z_0-9]+)(:[^{}]*)?\}")


def named(rule: Rule) -> str:
    return rule.name


@cache
def verdict(text: str):  # type: ignore[no-untyped-def]
    return diagnose_text(text)


@pytest.mark.parametrize("rule", [r for r in RULES if r.examples], ids=named)
def test_an_example_gets_the_verdict_of_its_rule(rule: Rule) -> None:
    for example in rule.examples:
        found = verdict(example)
        if rule.tier == "hint":  # a hint stands behind whatever knows more
            assert rule.name in [f.rule.name for f in (*found.findings, *found.followed)], example
        else:
            assert [f.rule.name for f in found.findings][:1] == [rule.name], f"{example}\nfollowed: {[f.rule.name for f in found.followed]}"
        assert found.layer == rule.layer or rule.cause == NOT_KNOWN
        assert found.findings[0].evidence, "a finding quotes at least one line"


@pytest.mark.parametrize("rule", [r for r in RULES if r.others], ids=named)
def test_what_only_looks_alike_gets_another_verdict(rule: Rule) -> None:
    for other in rule.others:
        assert rule.name not in [f.rule.name for f in verdict(other).findings][:1]


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_a_rule_speaks_both_languages_shortly(rule: Rule) -> None:
    assert rule.examples or all(p.startswith(FACT) for p in rule.match), "a rule shows an example"
    for lang, text in rule.texts.items():
        shown = text.filled({})
        said = " ".join((shown.what, *shown.fix))
        assert text.what and text.fix, lang
        assert len(said) <= 1000, f"{lang}: {len(said)} characters"
        assert bool(re.search("[\u4e00-\u9fff]", said)) == (lang == "zh"), lang


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_placeholders_are_caught_somewhere_and_have_a_fallback(rule: Rule) -> None:
    groups = {name for p in rule.patterns() for name in re.findall(r"\(\?P<(\w+)>", p)}
    facts = any(p.startswith(FACT) for p in (*rule.match, *rule.also))
    for text in (*(s for t in rule.texts.values() for s in (t.what, *t.fix, t.next)), *rule.run):
        for name, fallback in _PLACE.findall(text):
            if fallback:
                assert facts or name in groups or name in COMMON, f"{name} is no group of a pattern of {rule.name}"


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_a_rule_is_quiet_where_nothing_is_wrong(rule: Rule) -> None:
    for pattern in rule.match:
        if not pattern.startswith((FACT, CODE)):
            assert not compiled(pattern).search(b""), f"{pattern} finds nothing at all"
            for number in re.findall(r"\d{4,}", pattern):
                plain = f"[INFO] request {number} finished, {number} tokens, step {number}/{number}, pid={number} at {number}.{number}"
                assert not compiled(pattern).search(plain.encode()), (
                    f"{pattern} takes any number for a code: write 'code:{number}' as an entry of its own"
                )


@pytest.mark.parametrize("rule", [r for r in RULES if any(p.startswith(CODE) for p in (*r.match, *r.also, *r.without))], ids=named)
def test_a_code_that_a_rule_asks_for_is_in_the_table(rule: Rule) -> None:
    for pattern in (*rule.match, *rule.also, *rule.without):
        if pattern.startswith(CODE) and not pattern.endswith("*"):
            *family, number = pattern[len(CODE) :].split(":")
            assert number in [code.number for code in find_code(number, *family)], pattern


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_what_a_rule_explains_exists(rule: Rule) -> None:
    from fnmatch import fnmatchcase

    for glob in rule.explains:
        assert any(fnmatchcase(name, glob) for name in NAMES), f"{glob} names no rule"


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_text_gives_no_firm_finding(name: str) -> None:
    assert not [(f.rule.name, f.evidence[0].text) for f in verdict(HEALTHY[name]).findings if f.rule.tier != "hint"]


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_the_name_of_a_file_is_no_failure(rule: Rule) -> None:
    file = rule.name.replace("-", "_")
    text = f'INFO: reading /data/{rule.name}/{rule.cause}.txt\n  File "/home/u/{rule.cause}/{file}.py", line 3, in main\nValueError: bad'
    assert not [(f.rule.name, f.evidence[0].text) for f in verdict(text).findings if f.rule.tier != "hint"]
