"""Settings are looked at before the work."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumar.base import StackError
from jumar.tools.enable.settings import cache_fault, check_settings


@pytest.mark.parametrize(
    "name, value, wording",
    [
        ("JUMAR_THREADS", "abc", "JUMAR_THREADS must be int, got 'abc'"),
        ("JUMAR_THREADS", "-1", "JUMAR_THREADS must be at least 0, got -1"),
        ("JUMAR_CACHE", "maybe", "JUMAR_CACHE must be 0 or 1, got 'maybe'"),
        ("JUMAR_SKIP_PASSES", "fold,fuze", "JUMAR_SKIP_PASSES must name passes, got 'fuze'"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused(name: str, value: str, wording: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(StackError, match=wording) as caught:
        check_settings()
    assert caught.value.code == "setting-value"


def test_unknown_variables_and_a_cache_that_cannot_be_written_are_warned_about(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("JUMAR_CACHE", "1")
    monkeypatch.setenv("JUMAR_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setenv("JUMAR_THRAEDS", "2")
    monkeypatch.setenv("JUMAR_SKIP_PASSES", "fuse, fold")
    assert check_settings() == (
        f"the compile cache cannot be used: {tmp_path / 'file'}: File exists",
        "no setting is called JUMAR_THRAEDS, and it does nothing",
    )
    monkeypatch.setenv("JUMAR_CACHE_DIR", str(tmp_path / "new"))
    assert cache_fault() == ""
