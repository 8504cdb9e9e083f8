"""What may be opened and written is asked of the kernel, nothing is opened."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jumar.tools.doctor import rights


def rows(root: Path, nodes: tuple[str, ...] = (), **env: str) -> list[str]:
    return [line for output in rights.rights(root, nodes, env) for line in output.text.text.splitlines()]


def test_a_node_and_the_folders_are_told_in_one_row_each(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/davinci0").touch()
    (tmp_path / "tmp").mkdir()
    assert rows(tmp_path, ("/dev/davinci0",), HOME="/home/a") == ["/dev/davinci0 rw: ok", "TMPDIR /tmp w: ok", "HOME /home/a w: ok"]


def test_what_is_not_there_is_told_in_the_kernels_words(tmp_path: Path) -> None:
    assert rows(tmp_path, ("/dev/davinci0",))[0] == "/dev/davinci0 rw: No such file or directory"


def test_a_folder_that_is_not_there_yet_counts_as_the_one_that_it_would_be_made_in(tmp_path: Path) -> None:
    assert "HOME /a/b/c w: ok" in rows(tmp_path, HOME="/a/b/c")


def test_a_relative_folder_is_not_asked_for(tmp_path: Path) -> None:
    assert not [row for row in rows(tmp_path, HOME="work") if row.startswith("HOME")]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_rights_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o500)
    assert "HOME /home w: Permission denied" in rows(tmp_path, HOME="/home")


def test_without_the_c_librarys_call_python_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rights, "_libc", lambda: None)
    assert rows(tmp_path, ("/dev/davinci0",))[0] == "/dev/davinci0 rw: Permission denied"
