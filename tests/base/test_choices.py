"""Choices: who answers a question, what is kept, and what a compile depends on."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumar.base import Option, Question, choices_key, choose, keep_choices, trying

QUESTION = Question("product", "[4, 8] x [8, 16] f32", "a machine")
OTHER = Question("product", "[4, 8] x [8, 32] f32", "a machine")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMAR_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("JUMAR_CACHE", "1")


def ask(question: Question = QUESTION) -> Option:
    return choose(question, (1, 1), lambda: [(1, 1), (2, 1), (2, 2)], str)


def test_without_a_measurement_the_expected_option_is_taken_and_nothing_is_asked_for() -> None:
    def refuse() -> list[Option]:
        raise AssertionError("options are listed only where somebody looks at them")

    assert choose(QUESTION, (1, 1), refuse, str) == (1, 1)
    assert choices_key() == ""


def test_what_is_kept_answers_its_question_and_no_other() -> None:
    assert keep_choices({QUESTION: (2, 2)})
    assert ask() == (2, 2)
    assert ask(OTHER) == (1, 1)
    assert ask(Question(QUESTION.kind, QUESTION.facts, "another machine")) == (1, 1)


def test_the_key_of_a_compile_follows_what_is_kept() -> None:
    keep_choices({QUESTION: (2, 2)})
    first = choices_key()
    keep_choices({OTHER: (2, 1)})
    second = choices_key()
    assert len({"", first, second}) == 3
    keep_choices({OTHER: None})
    assert choices_key() == first


def test_none_forgets_an_answer() -> None:
    keep_choices({QUESTION: (2, 2)})
    keep_choices({QUESTION: None})
    assert ask() == (1, 1)


def test_a_trial_knows_its_own_answers_only_and_notes_what_was_asked() -> None:
    keep_choices({OTHER: (2, 2)})
    with trying({QUESTION: (2, 1)}) as trial:
        assert ask() == (2, 1)
        assert ask(OTHER) == (1, 1)
    assert [a.taken for a in trial.asked.values()] == [(2, 1), (1, 1)]
    assert trial.asked[QUESTION].options == ((1, 1), (2, 1), (2, 2))
    assert ask(OTHER) == (2, 2)


@pytest.mark.parametrize("variable", ["JUMAR_TUNED", "JUMAR_CACHE"])
def test_settings_switch_measured_choices_off(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_choices({QUESTION: (2, 2)})
    monkeypatch.setenv(variable, "0")
    assert ask() == (1, 1)
    assert choices_key() == ""


def test_without_a_cache_nothing_is_kept_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMAR_CACHE", "0")
    assert not keep_choices({QUESTION: (2, 2)})


def test_a_damaged_file_is_as_none(tmp_path: Path) -> None:
    keep_choices({QUESTION: (2, 2)})
    (file,) = (p for p in (tmp_path / "tuned").rglob("*") if p.is_file())
    file.write_bytes(file.read_bytes()[:-3])
    assert ask() == (1, 1)
    assert keep_choices({QUESTION: (2, 1)})
    assert ask() == (2, 1)
