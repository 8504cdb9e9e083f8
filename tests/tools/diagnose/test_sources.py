"""What users hand over is read whatever it is, or refused in one line: encodings, colours, line ends, archives, folders, binaries, nothing."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
import threading
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.base import ToolError
from jumar.tools.diagnose import diagnose, diagnose_text
from jumar.tools.diagnose.sources import BLOCK, Source, blocks, opened, size_of, source_of_text

LINE = "RuntimeError: 错误, error code is 507018"


def texts_of(path: Path) -> list[str]:
    return [b"".join(blocks(source)).decode() for source in opened((path,)).sources]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gbk", "gb18030", "utf-16"])
def test_every_encoding_gives_the_same_text(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "run.log"
    file.write_bytes(f"{LINE}\n{LINE}\n".encode(encoding))
    assert texts_of(file) == [f"{LINE}\n{LINE}\n"]


def test_colours_line_ends_bells_and_titles_are_gone(tmp_path: Path) -> None:
    file = tmp_path / "run.log"
    file.write_bytes(b"\x1b]0;title\x07\x1b[31mERROR\x1b[0m one\r\ntwo\x00\x08\rthree\n")
    assert texts_of(file) == ["ERROR one\ntwo\nthree\n"]


def test_line_numbers_hold_where_a_line_end_lies_on_the_edge_of_a_block(tmp_path: Path) -> None:
    file = tmp_path / "run.log"
    first = b"x" * (BLOCK - 1)
    file.write_bytes(first + b"\r\nDevice[1] lost heartbeat.\r\n")
    assert b"".join(blocks(next(opened((file,)).sources))).count(b"\n") == 2


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_log_is_read(tmp_path: Path, pack) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "run.log.z"
    file.write_bytes(pack(LINE.encode()))
    assert texts_of(file) == [LINE]


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_a_tar_archive_is_read_in_place_with_its_binaries_left_out(tmp_path: Path, mode: str) -> None:
    file = tmp_path / "logs.tar"
    with tarfile.open(file, mode) as archive:
        for name, data in {"../../etc/rank_0.log": LINE.encode(), "b.so": bytes(range(256)) * 9}.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    found = opened((file,))
    assert [(s.name, b"".join(blocks(s)).decode()) for s in found.sources] == [(f"{file}!etc/rank_0.log", LINE)]
    assert [note.partition(": ")[2] for note in found.notes] == [
        "read under what is left of its name, which leads out of the archive: etc/rank_0.log",
        "left out, binary: b.so",
        "left out, a link or a device: link",
    ]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["logs.tar"]


def test_evidence_names_every_archive_around_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with tarfile.open("logs.tar.gz", "w:gz") as logs:
        for rank in range(2):
            Path("x.log").write_text("[INFO] step\n" * 11 + ("ImportError: libhccl.so: cannot open shared object file\n" if rank else ""))
            logs.add("x.log", f"plog-{rank}.log")
    with zipfile.ZipFile("bundle.zip", "w") as bundle:
        bundle.write("logs.tar.gz", "node1/logs.tar.gz")
        bundle.writestr("node2/run.log.gz", gzip.compress(b"[INFO] step\n"))
    verdict = diagnose(opened((Path("bundle.zip"),)).sources)
    assert verdict.layer == "cann_env"
    assert str(verdict.findings[0].evidence[0]) == "bundle.zip!node1/logs.tar.gz!plog-1.log:12"
    assert verdict.sources == tuple(
        f"bundle.zip!{name}" for name in ("node1/logs.tar.gz!plog-0.log", "node1/logs.tar.gz!plog-1.log", "node2/run.log.gz")
    )


def test_where_no_path_gives_text_that_is_an_error_and_else_a_note(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"PK\x05\x06" + bytes(18))
    (tmp_path / "run.log").write_text(LINE)
    with pytest.raises(ToolError, match=r"x\.zip: holds no files"):
        texts_of(tmp_path / "x.zip")
    found = opened((tmp_path / "x.zip", tmp_path / "run.log"))
    assert [source.name for source in found.sources] == [str(tmp_path / "run.log")]
    assert found.notes == [f"{tmp_path / 'x.zip'}: holds no files"]


def test_of_several_paths_those_that_cannot_be_read_are_named_and_the_others_are_read(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(LINE)
    (tmp_path / "x.bin").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "cut.gz").write_bytes(gzip.compress(os.urandom(9000).hex().encode())[:-20])
    gone, binary, cut = (tmp_path / name for name in ("gone.log", "x.bin", "cut.gz"))
    found = opened((gone, tmp_path / "run.log", binary, cut))
    assert [source.name for source in found.sources if b"".join(blocks(source))] == [str(tmp_path / "run.log"), str(cut)]
    assert found.failed == [gone, binary, cut]
    assert [note.partition(": ")[0] for note in found.notes] == [str(path) for path in (gone, binary, cut)]
    with pytest.raises(ToolError, match="gone"):
        opened((gone, binary))


def test_a_file_that_is_given_twice_or_with_its_folder_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/run.log").write_text(LINE)
    (tmp_path / "link.log").symlink_to(tmp_path / "d/run.log")
    paths = (tmp_path / "d/run.log", tmp_path / "d", tmp_path / "d/../d/run.log", tmp_path / "link.log", tmp_path / "d")
    assert [source.name for source in opened(paths).sources] == [str(tmp_path / "d/run.log")]


def test_a_folder_that_may_not_be_looked_into_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "no").mkdir()
    (tmp_path / "run.log").write_text(LINE)
    listed = os.listdir

    def refused(place: str) -> list[str]:
        if place.endswith("/no"):
            raise PermissionError(13, "Permission denied")
        return listed(place)

    monkeypatch.setattr(os, "listdir", refused)
    found = opened((tmp_path,))
    assert [source.name for source in found.sources] == [str(tmp_path / "run.log")]
    assert found.notes == [f"{tmp_path}: left out, Permission denied: no"]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_is_text(tmp_path: Path, encoding: str) -> None:
    text = "一行 RuntimeError: NPU 显存不足\n" * 3000
    (tmp_path / "run.log").write_bytes(text.encode(encoding))
    assert [b"".join(blocks(source)).decode() for source in opened((tmp_path / "run.log",)).sources] == [text]


@pytest.mark.parametrize("numbers", [range(2000), [7, 10, 300] * 900, [65] * 2000])
def test_small_numbers_of_two_bytes_are_no_text(tmp_path: Path, numbers: Iterable[int]) -> None:
    (tmp_path / "x.bin").write_bytes(b"".join(n.to_bytes(2, "little") for n in numbers))
    with pytest.raises(ToolError, match="binary data"):
        opened((tmp_path / "x.bin",))


def test_of_many_damaged_files_the_first_are_named_and_the_others_counted(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"{number}.gz").write_bytes(gzip.compress(os.urandom(9000).hex().encode())[:-20])
    found = opened((tmp_path,))
    assert sum(bool(b"".join(blocks(source))) for source in found.sources) == 9
    assert [note.partition(": ")[2] for note in found.notes] == [
        *["read up to where it breaks off (it ends too early)"] * 5,
        "more is damaged or beyond a limit: 4",
    ]


def test_progress_counts_the_bytes_on_the_disk(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/a.gz").write_bytes(gzip.compress(LINE.encode() * 50_000))
    (tmp_path / "d/b.log").write_text(LINE * 9000)
    told: list[int] = []
    for source in opened((tmp_path,), told.append).sources:
        assert b"".join(blocks(source))
    assert sum(told) == size_of((tmp_path,)) == sum(f.stat().st_size for f in (tmp_path / "d").iterdir())


def test_a_zip_archive_is_read_in_place(tmp_path: Path) -> None:
    file = tmp_path / "logs.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("worker_3.log", LINE)
        archive.writestr("core.bin", bytes(range(256)) * 9)
    found = opened((file,))
    assert [s.name for s in found.sources] == [f"{file}!worker_3.log"] and found.notes == [f"{file}: left out, binary: core.bin"]


def test_a_folder_gives_its_texts_in_order_and_says_what_it_left_out(tmp_path: Path) -> None:
    (tmp_path / "rank_1").mkdir()
    (tmp_path / "rank_1/a.log").write_text(LINE)
    (tmp_path / "b.log").write_text(LINE)
    (tmp_path / "w.npy").write_bytes(b"\x93NUMPY" + bytes(100))
    (tmp_path / "loop").symlink_to(tmp_path)
    found = opened((tmp_path,))
    assert [s.name for s in found.sources] == [str(tmp_path / "b.log"), str(tmp_path / "rank_1/a.log")]
    assert found.notes == [f"{tmp_path}: left out, a link or a device: loop", f"{tmp_path}: left out, binary: w.npy"]


@pytest.mark.parametrize("data", [bytes(range(256)) * 40, b"\x7fELF\x02\x01\x01" + bytes(64), b"PK\x03\x04damaged", b"\x1f\x8bdamaged"])
def test_what_is_no_text_is_refused_by_name(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "x.bin"
    file.write_bytes(data)
    with pytest.raises(ToolError, match=r"x\.bin"):
        texts_of(file)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_without_permission_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    with pytest.raises(ToolError, match="closed"):
        opened((tmp_path / "closed",))


def test_one_endless_line_takes_bounded_memory() -> None:
    source = source_of_text("x", "e" * (3 * BLOCK))
    assert max(map(len, blocks(source))) <= 2 * BLOCK


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=4000))
def test_no_bytes_end_in_a_traceback(data: bytes) -> None:
    b"".join(blocks(Source("x", (data[:100], data[100:])))).decode()


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=2000))
def test_no_text_ends_in_a_traceback(text: str) -> None:
    verdict = diagnose_text(text)
    assert verdict.exit_code in (0, 1, 2)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_log_that_breaks_off_is_read_up_to_there_and_told_so(tmp_path: Path, pack) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "run.log.z"
    text = "".join(f"line {i} {hash(str(i))}\n" for i in range(60_000)) + LINE
    file.write_bytes(pack(text.encode())[:-2000])
    found = opened((file,))
    assert [sum(block.count(b"\n") for block in blocks(source)) > 0 for source in found.sources] == [True]
    assert found.notes == [f"{file}: read up to where it breaks off (it ends too early)"]


def test_a_pipe_is_read_once_and_whole(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(LINE,))
    writer.start()
    try:
        assert texts_of(pipe) == [LINE]
    finally:
        writer.join(timeout=10)


def test_a_line_of_a_megabyte_is_one_line_and_is_shown_where_the_match_is(tmp_path: Path) -> None:
    log = tmp_path / "minified.log"
    log.write_text(
        "first\n"
        + "x1234567," * 150_000
        + "ImportError: libhccl.so: cannot open shared object file: No such file or directory"
        + ",y" * 90_000
        + "\nlast\n"
    )
    verdict = diagnose(opened((log,)).sources)
    assert verdict.lines == 3 and verdict.layer == "cann_env"
    assert verdict.findings[0].evidence[0].line == 2 and "libhccl.so" in verdict.findings[0].evidence[0].text
