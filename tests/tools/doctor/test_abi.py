"""Versions that shared objects name are read from their bytes; what is no shared object names none."""

from __future__ import annotations

from pathlib import Path

from jumar.tools.doctor import abi


def test_the_newest_of_each_kind_is_taken_by_number(tmp_path: Path) -> None:
    file = tmp_path / "x.so"
    file.write_bytes(b"\x7fELF\x00GLIBCXX_3.4.9\x00GLIBCXX_3.4.30\x00GLIBC_2.17\x00GLIBC_2.4\x00GLIBCXX_DEBUG_MESSAGE\x00")
    assert abi.newest(file) == {"GLIBCXX": "3.4.30", "GLIBC": "2.17"}


def test_a_file_that_is_no_shared_object_names_none(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("GLIBCXX_3.4.30")
    (tmp_path / "empty").touch()
    assert [abi.newest(tmp_path / name) for name in ("text", "empty", "absent")] == [{}, {}, {}]


def test_the_library_on_the_path_comes_before_the_systems(tmp_path: Path) -> None:
    for folder in ("conda/lib", "usr/lib64"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "libstdc++.so.6").touch()
    assert abi.libstdcxx(tmp_path, f"relative:{tmp_path}/conda/lib") == tmp_path / "conda/lib/libstdc++.so.6"
    assert abi.libstdcxx(tmp_path, "") == tmp_path / "usr/lib64/libstdc++.so.6"
