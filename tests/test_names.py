"""MindSpore's names that third-party packages use: how many of them there are here."""

from __future__ import annotations

from docs import names


def _present(count: int) -> tuple[int, list[str]]:
    """How many of the most used names MindSpore 2.10 still has, and which of them are missing."""
    rows = [r for r in names.rows()[:count] if r.state != names.GONE]
    return len(rows), [r.name for r in rows if r.state in (names.REFUSES, names.NOT_YET)]


def test_every_name_of_the_first_320_is_there() -> None:
    assert _present(320)[1] == []


def test_four_of_five_names_of_the_first_830_are_there() -> None:
    count, missing = _present(830)
    assert len(missing) <= count // 5, missing


def test_what_works_partly_says_what_it_does_not_do() -> None:
    known = {r.name for r in names.rows()}
    assert set(names.PARTLY) <= known
    assert all(names.PARTLY.values())
