"""No broken file crashes the process, hangs it, or ends in anything but a result or an error of ours (see fuzz.py)."""

from __future__ import annotations

import pytest
from tests.frontend import fuzz


def failures(count: int, start: int, target: str) -> list[str]:
    results = fuzz.run(list(range(start, start + count)), target, 2)
    return [f"file {i}: {why}" for i, (status, why) in sorted(results.items()) if status == "failed"]


def test_every_seed_is_sound() -> None:
    for raw, text in zip(fuzz.seeds(), fuzz.TEXTS, strict=True):
        assert fuzz.attempt(raw, "interpreter") == ("result", ""), text


def test_broken_files_are_refused_or_run() -> None:
    assert failures(fuzz.COUNT, 0, "interpreter") == []


@pytest.mark.slow
def test_broken_files_are_refused_or_run_as_machine_code() -> None:
    assert failures(600, 10_000, "cpu") == []
