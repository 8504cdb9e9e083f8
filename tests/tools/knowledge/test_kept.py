"""What was made of the rules is read from the cache the next time, is made anew when anything of it changed, and never fails for the cache's sake."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.tools.knowledge.test_rule import SHOWN

from jumar.base import ToolError, seal
from jumar.tools.diagnose.diagnose import diagnose_text, with_rules
from jumar.tools.knowledge import Likeness, kept, load, load_rules
from jumar.tools.knowledge.kept import FOLDER


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUMAR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("JUMAR_CACHE", raising=False)
    return tmp_path / "cache" / FOLDER


def files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file())


def times_made(*made_of: bytes) -> int:
    made = []
    assert kept("test", made_of, lambda: made.append(1) or [("a", 1.5), {"b": ("c",)}]) == [("a", 1.5), {"b": ("c",)}]
    return len(made)


def test_what_was_made_of_the_same_is_not_made_again() -> None:
    assert [times_made(b"x"), times_made(b"x"), times_made(b"y"), times_made(b"x", b""), times_made(b"x")] == [1, 0, 1, 1, 0]


@pytest.mark.parametrize("damage", [b"", b"JUMARST2", b"x" * 500])
def test_a_damaged_entry_is_made_anew(cache: Path, damage: bytes) -> None:
    times_made(b"x")
    (file,) = files(cache)
    file.write_bytes(damage)
    assert [times_made(b"x"), times_made(b"x")] == [1, 0]


def test_a_whole_entry_of_another_kind_is_made_anew(cache: Path) -> None:
    times_made(b"x")
    (file,) = files(cache)
    file.write_bytes(seal(b"not packed"))
    assert [times_made(b"x"), times_made(b"x")] == [1, 0]


def test_a_cache_that_is_off_or_not_writable_is_no_error(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JUMAR_CACHE", "0")
    assert [times_made(b"x"), times_made(b"x")] == [1, 1]
    assert files(cache) == []
    monkeypatch.setenv("JUMAR_CACHE", "1")
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("JUMAR_CACHE_DIR", str(tmp_path / "a file"))
    assert [times_made(b"x"), times_made(b"x")] == [1, 1]


def test_rules_from_the_cache_are_those_of_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = load_rules()
    monkeypatch.setattr(load, "_read_all", lambda *_: pytest.fail("the files were parsed again"))
    again = load_rules()
    assert again == fresh
    assert [r.file for r in again] == [r.file for r in fresh]


def test_a_changed_file_of_the_user_is_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(SHOWN, encoding="utf-8")
    before = load_rules([tmp_path])
    file.write_text(SHOWN.replace("does not answer", "is silent"), encoding="utf-8")
    assert [r.texts["en"].what for r in load_rules([tmp_path])] == [before[0].texts["en"].what.replace("does not answer", "is silent")]
    file.write_text(SHOWN.replace('tier = "cause" ', 'tier = "certain" '), encoding="utf-8")
    for _ in range(2):  # what is wrong is not kept
        with pytest.raises(ToolError, match="tier must be one of"):
            load_rules([tmp_path])


def test_the_nearest_failure_and_the_verdict_are_the_same_from_the_cache(cache: Path) -> None:
    rules = load_rules()
    asked = ["hello", "error: the HCCL rank table has a duplicate device ip"]
    first = Likeness(rules).nearest(asked)
    text = "RuntimeError: call aclnnMatMul failed, detail:EZ1001"
    verdict = diagnose_text(text, rules=with_rules(rules))
    count = len(files(cache))
    assert count == 3, "rules, words, likeness"
    assert Likeness(load_rules()).nearest(asked) == first
    assert diagnose_text(text, rules=with_rules(load_rules())) == verdict
    assert len(files(cache)) == count
