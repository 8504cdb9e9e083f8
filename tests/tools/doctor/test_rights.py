"""What may be opened and written is asked of the kernel, nothing is opened."""

from __future__ import annotations

import ctypes
import errno
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


def test_threads_are_asked_for_only_of_this_machine_and_only_a_refusal_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing:
        def eaccess(self, _path: bytes, _mode: int) -> int:
            return 0

        def syscall(self, number: ctypes.c_long, *_: object) -> int:
            assert number.value == 435
            ctypes.set_errno(errno.EPERM)
            return -1

    assert not [row for row in rows(Path("/")) if row.startswith("clone3")], "the machine of the tests starts threads"
    monkeypatch.setattr(rights, "_libc", Refusing)
    monkeypatch.setattr(rights, "glibc", lambda: "2.36")
    assert rows(Path("/"))[-1] == "clone3: Operation not permitted"
    assert not [row for row in rows(tmp_path) if row.startswith("clone3")]
    monkeypatch.setattr(rights, "glibc", lambda: "2.31")  # starts threads with clone
    assert not [row for row in rows(Path("/")) if row.startswith("clone3")]
