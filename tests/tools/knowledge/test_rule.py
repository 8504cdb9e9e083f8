"""Rules at work: the page's rule finds what it says, the order of findings, and texts are filled."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jumar.tools.diagnose.diagnose import diagnose_text, ready, with_rules
from jumar.tools.knowledge import Evidence, Fact, Hit, Moment, Rule, Text, apply_rules, load_rules

PAGE = Path(__file__).resolve().parents[3] / "docs" / "field" / "rules.md"
SHOWN = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]


def written(folder: Path, text: str) -> tuple[Rule, ...]:
    (folder / "mine.toml").write_text(text, encoding="utf-8")
    return load_rules([folder])


def test_the_rule_of_the_page_finds_its_example_and_leaves_its_look_alike(tmp_path: Path) -> None:
    rules = written(tmp_path, SHOWN)
    mine = with_rules(rules)
    found = diagnose_text(rules[0].examples[0], rules=mine).findings[0]
    assert found.what("en").startswith("The license server lic01 does not answer")
    assert found.run() == ("nc -vz lic01 27000",)
    assert not diagnose_text(rules[0].others[0], rules=mine).findings


def test_a_folder_of_the_user_is_read_beside_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.toml").write_text(SHOWN, encoding="utf-8")
    monkeypatch.setenv("JUMAR_RULES", str(tmp_path))
    assert diagnose_text("license server lic01 unreachable at checkout").findings[0].rule.name == "license-server-away"
    assert len(ready().rules) > 1
    monkeypatch.delenv("JUMAR_RULES")
    assert "license-server-away" not in [rule.name for rule in ready().rules]


def made(name: str, tier: str = "cause", *, match: tuple[str, ...] = (), **more: object) -> Rule:
    texts = {lang: Text("what {value:fallback}", ("fix",)) for lang in ("en", "zh")}
    return Rule(name, "memory", "cann", name, tier, match or (name,), texts, "test", **more)  # type: ignore[arg-type]


def hit(line: int, seconds: float = 0.0, **groups: str) -> Hit:
    return Hit(Evidence("a.log", line, f"line {line}"), Moment(seconds, 0, line), groups)


def names(rules: list[Rule], hits: dict[str, tuple[Hit, ...]], *facts: Fact) -> tuple[list[str], list[str]]:
    found = apply_rules(rules, hits, facts)
    return [f.rule.name for f in found.ordered], [f.rule.name for f in found.followed]


def test_the_earliest_cause_is_first_whatever_the_order_of_the_rules() -> None:
    assert names([made("b"), made("a")], {"a": (hit(9, 5.0),), "b": (hit(1, 9.0),)}) == (["a", "b"], [])


def test_a_cause_goes_before_an_earlier_symptom_which_has_followed() -> None:
    assert names([made("s", "symptom"), made("c")], {"s": (hit(1),), "c": (hit(2),)}) == (["c"], ["s"])


def test_what_a_finding_explains_has_followed_though_it_is_earlier() -> None:
    assert names([made("c", explains=("tim*",)), made("timeout")], {"c": (hit(5),), "timeout": (hit(1),)}) == (["c"], ["timeout"])


def test_two_that_explain_each_other_do_not_both_vanish() -> None:
    first, followed = names([made("a", explains=("b",)), made("b", explains=("a",))], {"a": (hit(1),), "b": (hit(2),)})
    assert (first, followed) == (["a"], ["b"])


def test_all_of_with_and_none_of_without_is_demanded() -> None:
    rule = made("a", also=("w", "fact:f"), without=("n",))
    assert names([rule], {"a": (hit(1),)}) == ([], [])
    assert names([rule], {"a": (hit(1),), "w": (hit(2),)}, Fact("f")) == (["a"], [])
    assert names([rule], {"a": (hit(1),), "w": (hit(2),), "n": (hit(3),)}, Fact("f")) == ([], [])


def test_values_come_from_groups_and_facts_and_else_from_the_fallback() -> None:
    rule = made("a", match=("a", "fact:f"))
    assert apply_rules([rule], {"a": (hit(1, value="7"),)}).ordered[0].what("en") == "what 7"
    assert apply_rules([rule], {}, [Fact("f", {"value": "8"}, (Evidence("x", 1, "y"),))]).ordered[0].what("en") == "what 8"
    assert apply_rules([rule], {"a": (hit(1),)}).ordered[0].what("en") == "what fallback"
