"""One reader for files, folders and archives: every form, archives within archives, bounds, damage; whatever the bytes are, never a traceback."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import stat
import struct
import sys
import tarfile
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.tools.files import flow as flows
from jumar.tools.files.flow import Flow
from jumar.tools.files.walk import Limits, Walk

LINE = b"RuntimeError: error code is 507018\n"
NOTED = b"[INFO] step\n"
Files = dict[str, bytes]
LIMITS = Limits()


def tarred(files: Files, mode: str = "w", form: int = tarfile.GNU_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, format=form) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


class Pipe(io.RawIOBase):
    """What a zip is written to that cannot go back: sizes come after the data then."""

    def __init__(self) -> None:
        self.data = b""

    def writable(self) -> bool:
        return True

    def write(self, data) -> int:  # type: ignore[no-untyped-def, override]
        self.data += bytes(data)
        return len(data)


def zipped(files: Files, method: int = zipfile.ZIP_DEFLATED, piped: bool = False) -> bytes:
    out = Pipe() if piped else io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:  # type: ignore[arg-type]
        for name, data in files.items():
            archive.writestr(name, data)
    return out.data if isinstance(out, Pipe) else out.getvalue()


def read(data: bytes | Path, limits: Limits = LIMITS, most: int = 1 << 20) -> tuple[Files, list[str]]:
    """Texts by name, and notes."""
    walk = Walk(limits)
    members = walk.of(data, "x") if isinstance(data, Path) else walk.of_stream(io.BytesIO(data), "x")
    found: Files = {}
    for member in members:
        found[member.name] = (
            member.closed.encode() if member.closed else member.flow.read(most) if member.flow else stat.filemode(member.mode).encode()
        )
    return found, walk.notes


PACKERS: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
ARCHIVES: dict[str, Callable[[Files], bytes]] = {
    "tar": tarred,
    "tar.gz": lambda files: tarred(files, "w:gz"),
    "tar.bz2": lambda files: tarred(files, "w:bz2"),
    "tar.xz": lambda files: tarred(files, "w:xz"),
    "tar, ustar": lambda files: tarred(files, form=tarfile.USTAR_FORMAT),
    "tar, pax": lambda files: tarred(files, form=tarfile.PAX_FORMAT),
    "zip": zipped,
    "zip, stored": lambda files: zipped(files, zipfile.ZIP_STORED),
    "zip, bzip2": lambda files: zipped(files, zipfile.ZIP_BZIP2),
    "zip, through a pipe": lambda files: zipped(files, piped=True),
    "zip, stored through a pipe": lambda files: zipped(files, zipfile.ZIP_STORED, piped=True),
    "zip, bzip2 through a pipe": lambda files: zipped(files, zipfile.ZIP_BZIP2, piped=True),
}
FILES = {
    "a.log": LINE,
    "空/错误.log": "错误\n".encode(),
    "empty": b"",
    f"{'deep/' * 25}{'long' * 30}.log": LINE * 20_000,
    "PK.log": b"PK\x07\x08" * 3 + LINE,
}


@pytest.mark.parametrize("form", ARCHIVES)
def test_every_form_of_archive_gives_its_files(form: str) -> None:
    files = {n: d for n, d in FILES.items() if len(n) < 200} if "ustar" in form else FILES
    assert read(ARCHIVES[form](files)) == ({f"x!{name}": data for name, data in files.items()}, [])


@pytest.mark.parametrize("form", PACKERS)
def test_a_compressed_file_keeps_its_name_and_several_in_a_row_are_one(form: str) -> None:
    assert read(PACKERS[form](LINE) + PACKERS[form](NOTED)) == ({"x": LINE + NOTED}, [])


@pytest.mark.parametrize("outer", ARCHIVES)
def test_an_archive_within_an_archive_is_read_and_both_names_are_told(outer: str) -> None:
    for name, inner in ARCHIVES.items():
        found, notes = read(ARCHIVES[outer]({"before": NOTED, "node1/logs": inner({"plog-1.log": LINE}), "after": NOTED}))
        assert found == {"x!before": NOTED, "x!node1/logs!plog-1.log": LINE, "x!after": NOTED}, name
        assert notes == []
    for pack in PACKERS.values():
        assert read(ARCHIVES[outer]({"a.gz": pack(LINE)}))[0] == {"x!a.gz": LINE}


def test_what_a_file_is_its_bytes_say_not_its_name(tmp_path: Path) -> None:
    (tmp_path / "logs.txt").write_bytes(tarred({"a.log": LINE}, "w:gz"))
    (tmp_path / "plain.tar.gz").write_bytes(LINE)
    assert read(tmp_path) == ({"x/logs.txt!a.log": LINE, "x/plain.tar.gz": LINE}, [])


def test_archives_are_read_to_a_depth_that_the_note_names() -> None:
    def nested(levels: int) -> bytes:
        data = LINE
        for _ in range(levels):
            data = tarred({"a": data}, "w:gz")
        return data

    assert read(nested(5)) == ({"x" + "!a" * 5: LINE}, [])
    found, notes = read(nested(6))
    assert found == {"x" + "!a" * 5: b"too deep"}
    assert notes == [f"x{'!a' * 5}: archives within archives are read 5 deep, this one is deeper"]
    many = LINE
    for _ in range(40):
        many = gzip.compress(many)
    assert "5 deep" in read(many)[1][0]


def test_more_files_than_are_read_are_told_with_the_limit() -> None:
    found, notes = read(tarred({f"{i}": LINE for i in range(9)}), Limits(members=4))
    assert len(found) == 4 and notes == ["x: only the first 4 files of it were read, the most that are"]


@pytest.mark.parametrize(
    "form", [f for f in ARCHIVES if f != "zip, stored" and not f.startswith("tar,") and f != "tar" and "stored" not in f]
)
def test_what_unfolds_to_more_than_is_read_is_told_with_the_limit_and_what_was_read_stays(form: str) -> None:
    data = ARCHIVES[form]({"a.log": LINE, "b.log": NOTED * 600_000, "c.log": LINE})
    found, notes = read(data, Limits(unfolded=4 << 20), most=8 << 20)
    assert found["x!a.log"] == LINE and len(found["x!b.log"]) <= 4 << 20 and "x!c.log" not in found
    assert [n.startswith("x: unfolds to more than 4 MB") and "x!b.log" in n for n in notes] == [True]


def test_a_bomb_takes_neither_memory_nor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows, "FREE", 8 << 20)
    bomb = gzip.compress(bytes(64 << 20))
    for layers in (bomb, zipped({"b": bomb}), tarred({"b": tarred({"c": bomb}, "w:xz")}, "w:bz2"), zipped({"a": bytes(64 << 20)})):
        tracemalloc.start()
        start = time.process_time()
        walk = Walk()
        for member in walk.of_stream(io.BytesIO(layers), "x"):
            while member.flow and member.flow.some():
                pass
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert len(walk.notes) == 1 and f"{flows.MOST_RATIO} times" in walk.notes[0]
        assert peak < 16 << 20 and time.process_time() - start < 20


def test_a_header_of_gigabytes_and_a_directory_of_millions_take_no_memory() -> None:
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 4 << 30
    found, notes = read(header.tobuf(tarfile.GNU_FORMAT) + b"a" * 100_000)
    assert not found and "at most 1 MB" in notes[0]
    entry = zipped({"a": LINE})
    place = entry.index(b"PK\x01\x02")
    assert read(entry[:place] + entry[place:] * 100_000) == ({"x!a": LINE}, [])


def test_links_nodes_and_ways_out_are_told_and_never_followed(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, kind in (
            ("link", tarfile.SYMTYPE),
            ("hard", tarfile.LNKTYPE),
            ("dev/davinci0", tarfile.CHRTYPE),
            ("disk", tarfile.BLKTYPE),
            ("pipe", tarfile.FIFOTYPE),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.mode, info.uname, info.gname = kind, "/etc/passwd", 0o660, "root", "HwHiAiUser"
            archive.addfile(info)
        for name in ("/etc/hosts", "../../root/x", "..\\y"):
            info = tarfile.TarInfo(name)
            info.size = len(LINE)
            archive.addfile(info, io.BytesIO(LINE))
    members = list(Walk().of_stream(io.BytesIO(out.getvalue()), ""))
    assert [(m.name, stat.filemode(m.mode)[0], m.flow is None, m.outside) for m in members] == [
        ("link", "l", True, ""),
        ("hard", "l", True, ""),
        ("dev/davinci0", "c", True, ""),
        ("disk", "b", True, ""),
        ("pipe", "p", True, ""),
        ("etc/hosts", "-", False, ""),
        ("root/x", "-", False, "../../root/x"),
        ("y", "-", False, "..\\y"),
    ]
    assert (members[2].owner, members[2].group, members[2].is_node) == ("root", "HwHiAiUser", True)
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "d").mkdir()
    (tmp_path / "d/out").symlink_to(tmp_path / "secret")
    (tmp_path / "d/loop").symlink_to(tmp_path / "d")
    os.mkfifo(tmp_path / "d/pipe")
    assert {name: text[:1] for name, text in read(tmp_path / "d")[0].items()} == {"x/loop": b"l", "x/out": b"l", "x/pipe": b"p"}


@pytest.mark.parametrize("later", [False, True])
def test_a_member_with_a_password_is_told_and_the_others_are_read(later: bool) -> None:
    data = bytearray(zipped({"a.log": LINE, "b.log": NOTED}))
    data[6] |= 9 if later else 1  # as zip -e marks it
    if later:
        size = struct.unpack_from("<L", data, 18)[0]
        descriptor = b"PK\x07\x08" + struct.pack("<LLL", 1, size, len(LINE))
        struct.pack_into("<LLL", data, 14, 0, 0, 0)
        end = 30 + len("a.log") + size
        data[end:end] = descriptor
    assert read(bytes(data)) == ({"x!a.log": b"it needs a password", "x!b.log": NOTED}, [])


def test_a_method_that_is_not_read_is_named_and_the_others_are_read() -> None:
    found, notes = read(zipped({"a.log": LINE}, zipfile.ZIP_LZMA))
    assert found == {"x!a.log": b"it is packed by lzma, which is not read"} and not notes
    for magic, name in ((b"7z\xbc\xaf\x27\x1c", b"7z"), (b"Rar!\x1a\x07\x01", b"rar")):
        assert read(tarred({"a": magic + bytes(100), "b": LINE}))[0] == {
            "x!a": name + b" is not read: unpack it, or pack it as tar.gz or zip",
            "x!b": LINE,
        }


def test_zst_is_read_where_python_can_and_told_where_it_cannot() -> None:
    data = bytes.fromhex("28b52ffd0458210000") + b"line" + bytes.fromhex("4b3caeee")
    found, notes = read(data)
    if sys.version_info >= (3, 14):
        assert (found, notes) == ({"x": b"line"}, [])
        assert len(read(data[:-6])[1]) == 1
    else:
        assert (found, notes) == ({"x": b"zst is not read by this Python (3.14 reads it): unpack it with zstd -d"}, [])


@pytest.mark.parametrize("form", ARCHIVES)
def test_of_an_archive_that_breaks_off_what_stands_before_is_read_and_one_line_says_so(form: str) -> None:
    noise = random.Random(1).randbytes(400_000).hex().encode()
    data = ARCHIVES[form]({"a.log": LINE, "inner": tarred({"b.log": LINE * 3, "c.log": noise}, "w:gz"), "d.log": noise})
    parts = (9, 3) if "bz" not in form else (9,)  # bz2 gives whole blocks of 900 KB only
    for place in (len(data) * part // 10 for part in parts):
        found, notes = read(data[:place])
        assert found["x!a.log"] == LINE
        assert [n for n in notes if n.startswith("x: breaks off or is damaged")] == notes and len(notes) == 1, notes


def test_a_damaged_archive_within_an_archive_does_not_hide_its_neighbours() -> None:
    inner = tarred({"b.log": LINE, "c.log": random.Random(1).randbytes(9999)}, "w:gz")
    for pack in ARCHIVES.values():
        found, notes = read(pack({"in.tgz": inner[:6000], "z.log": LINE}))
        assert found["x!in.tgz!b.log"] == LINE == found["x!z.log"]
        assert len(notes) == 1 and notes[0].startswith("x!in.tgz: breaks off or is damaged, at x!in.tgz!c.log")


def test_a_wrong_checksum_is_told() -> None:
    for piped in (False, True):
        data = zipped({"a.log": LINE, "b.log": NOTED}, zipfile.ZIP_DEFLATED, piped)
        place = data.index(b"PK\x07\x08") + 4 if piped else 14
        found, notes = read(data[:place] + b"\0\0\0\0" + data[place + 4 :])
        assert found["x!a.log"] == LINE
        assert [("a.log" in n, "checksum" in n) for n in notes] == [(True, True)]


def test_folders_deeper_than_python_calls_and_names_of_any_bytes_are_read(tmp_path: Path) -> None:
    place = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=place)
        deeper = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = deeper
    os.close(place)
    (tmp_path / "e").mkdir()
    Path(os.fsdecode(os.fsencode(tmp_path / "e") + b"/\xb4\xed\xce\xf3\x1b[2J.log")).write_bytes(LINE)
    assert LINE in read(tmp_path / "e")[0].values()
    found, _ = read(tmp_path)
    assert found["x/e/错误?[2J.log"] == LINE
    while (tmp_path / "d/d").exists():  # what removes a test's folder calls itself for each level
        (tmp_path / "d/d").rename(tmp_path / "up")
        (tmp_path / "d").rmdir()
        (tmp_path / "up").rename(tmp_path / "d")


SEEDS = [
    pack({"a.log": LINE * 40, "in": tarred({"b": LINE, "c.gz": gzip.compress(NOTED)}, "w:gz"), "z": zipped({"q": LINE})})
    for pack in ARCHIVES.values()
]
SEEDS += [pack(LINE * 50) for pack in PACKERS.values()]


@settings(max_examples=500, deadline=None)
@given(
    st.sampled_from(SEEDS), st.lists(st.tuples(st.floats(0, 1), st.sampled_from("xid"), st.binary(max_size=6)), max_size=6), st.floats(0, 1)
)
def test_archives_with_changed_bytes_never_end_in_a_traceback(
    data: bytes, changes: Iterable[tuple[float, str, bytes]], keep: float
) -> None:
    for where, how, new in changes:
        place = int(where * len(data))
        gone = {"x": len(new), "i": 0, "d": 3}[how]
        data = data[:place] + (b"" if how == "d" else new) + data[place + gone :]
    read(data[: int((0.3 + keep) * len(data))])


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(
        [b"PK\x03\x04", b"\x1f\x8b\x08\0", b"BZh91AY&SY", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", tarfile.TarInfo("a").tobuf(), b""]
    ),
    st.binary(max_size=600),
)
def test_bytes_behind_any_mark_never_end_in_a_traceback(mark: bytes, data: bytes) -> None:
    read(mark + data)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.binary(max_size=9), max_size=9),
    st.lists(st.tuples(st.sampled_from(["some", "read", "peek", "skip"]), st.integers(0, 20)), max_size=20),
)
def test_a_flow_gives_every_byte_once_and_in_order(pieces: list[bytes], steps: list[tuple[str, int]]) -> None:
    stream, whole = Flow(iter(pieces)), b"".join(pieces)
    for step, number in steps:
        match step:
            case "peek":
                assert stream.peek(number) == whole[:number]
            case "skip":
                assert stream.skip(number) == min(number, len(whole))
                whole = whole[number:]
            case "read":
                assert stream.read(number) == whole[:number]
                whole = whole[number:]
            case _:
                got = stream.some(number) if number else b""
                assert whole.startswith(got) and (got or not whole or not number)
                whole = whole[len(got) :]
