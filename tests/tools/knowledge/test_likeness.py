"""Where no rule's pattern is found, the known failure with the nearest words is named as such: low confidence, never for a text without an error."""

from __future__ import annotations

from jumar.tools.diagnose import diagnose_text
from jumar.tools.knowledge import Likeness, load_rules

RULES = load_rules()


def test_an_example_is_nearest_to_its_own_rule_for_nearly_all() -> None:
    likeness = Likeness(RULES)
    shown = [(rule, rule.examples[0]) for rule in likeness.rules if rule.examples and len(rule.examples[0]) > 60]
    right = sum((like := likeness.nearest([example])) is not None and like.rule is rule for rule, example in shown)
    assert right > 0.85 * len(shown)


def test_words_that_no_rule_has_are_near_to_none() -> None:
    assert Likeness(RULES).nearest(["zyx wvu tsr", "qpo"]) is None
    assert Likeness(RULES).nearest([]) is None
    assert Likeness([]).nearest(["device error"]) is None


def test_the_line_with_most_of_the_words_is_the_evidence() -> None:
    like = Likeness(RULES).nearest(["hello", "the HCCL rank table must not have a duplicate device ip: error", "bye"])
    assert like is not None and like.line == 1


def test_a_text_without_any_rule_gets_the_likely_layer_with_low_confidence() -> None:
    verdict = diagnose_text("error: our ranktable has server_list and device_list with another device_ip and rank_id than the hccn conf")
    assert verdict.like is not None and verdict.confidence == "low" and verdict.layer == "hccl"
    assert verdict.told is verdict.like and verdict.exit_code == 1


def test_a_firm_finding_and_a_text_without_an_error_are_compared_with_nothing() -> None:
    assert diagnose_text("ImportError: libhccl.so: cannot open shared object file: No such file or directory").like is None
    assert diagnose_text("the rank tables of our two servers agree about addresses of the devices").like is None
