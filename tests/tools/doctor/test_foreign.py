"""A machine is recognised in files that were copied off it, in any layout, as folder or archive; what is no machine is refused in a line."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest
from tests.field.machines import KINDS, MACHINES, Kind, write_archive, write_folder

from jumar.base import ToolError
from jumar.tools.doctor import archive
from jumar.tools.doctor.checks import facts
from jumar.tools.doctor.examine import examine
from jumar.tools.doctor.foreign import foreign
from jumar.tools.doctor.layout import texts

FIVE = MACHINES[:5]


def named(kind: Kind) -> str:
    return kind.name


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "tar.gz"])
@pytest.mark.parametrize("kind", MACHINES, ids=named)
def test_each_machine_gets_its_one_verdict_first(kind: Kind, packed: bool, tmp_path: Path) -> None:
    path = write_archive(kind, tmp_path / "node.tar.gz") if packed else write_folder(kind, tmp_path / "node")
    verdict = examine(foreign(path)).verdict
    found = [f.rule.name for f in verdict.findings]
    assert found[:1] == ([kind.rule] if kind.rule else []), f"{found}, followed {[f.rule.name for f in verdict.followed]}"
    assert verdict.layer == kind.layer
    assert verdict.exit_code == (1 if kind.rule else 0)
    if kind.rule:
        assert verdict.findings[0].evidence, "a finding quotes a line"


@pytest.mark.parametrize("kind", FIVE, ids=named)
def test_a_verdict_quotes_lines_of_the_files_that_were_copied(kind: Kind, tmp_path: Path) -> None:
    for finding in examine(foreign(write_folder(kind, tmp_path))).verdict.findings[:1]:
        for line in finding.evidence:
            file = tmp_path / line.source
            if file.is_file() and line.line:
                assert line.text in file.read_text().split("\n")[line.line - 1]


@pytest.mark.parametrize("kind", MACHINES, ids=named)
def test_a_machine_that_is_written_and_read_again_gives_the_same_facts(kind: Kind, tmp_path: Path) -> None:
    machine = foreign(write_folder(kind, tmp_path / "a"))
    again = foreign(write_folder(Kind("again", texts(machine)), tmp_path / "b"))
    names = {f.name for f in facts(machine)}
    assert names <= {f.name for f in facts(again)}  # a collection is whole, so that more may be missing


@pytest.mark.parametrize("form", ["zip", "tar", "tar.xz", "tar.bz2"])
def test_other_archives_are_read_as_well(form: str, tmp_path: Path) -> None:
    folder = write_folder(KINDS["tls-mixed"], tmp_path / "m" / "node1")
    path = tmp_path / f"x.{form}"
    if form == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
            for file in sorted(folder.rglob("*")):
                zipped.write(file, file.relative_to(tmp_path))
    else:
        with tarfile.open(path, f"w:{form.partition('.')[2]}") as out:
            out.add(folder, "node1")
    assert examine(foreign(path)).verdict.findings[0].rule.name == "machine-hccl-tls-mixed"


def test_one_pasted_text_with_prompts_is_a_machine(tmp_path: Path) -> None:
    text = (
        "[root@n1 ~]# uname -r\n5.10.0-60.18.0.50\n"
        f"[root@n1 ~]# npu-smi info\n{KINDS['first-generation'].files['npu-smi.txt']}"
        "[root@n1 ~]# cat /usr/local/Ascend/driver/version.info\nVersion=24.1.0.3\nascendhal_version=7.35.23\n"
        "[root@n1 ~]# echo $ASCEND_HOME_PATH\n/usr/local/Ascend/ascend-toolkit/latest\n"
        "[root@n1 ~]# ls /dev/davinci*\n/dev/davinci0  /dev/davinci1  /dev/davinci_manager\n"
    )
    (tmp_path / "paste.txt").write_text(text)
    machine = foreign(tmp_path / "paste.txt")
    assert machine.identity.kernel is not None and machine.identity.kernel.value == "5.10.0-60.18.0.50"
    assert machine.variable("ASCEND_HOME_PATH") == "/usr/local/Ascend/ascend-toolkit/latest"
    assert machine.listings["/dev"].names() == ("davinci0", "davinci1", "davinci_manager")
    assert machine.file("/usr/local/Ascend/driver/version.info") is not None
    assert {"soc-910", "driver-version"} <= {f.name for f in facts(machine)}


def test_commands_into_a_container_and_with_their_path_are_known(tmp_path: Path) -> None:
    text = f"$ docker exec -it job npu-smi info\n{KINDS['healthy'].files['npu-smi.txt']}# /usr/bin/ls /dev/davinci0\n/dev/davinci0\n"
    (tmp_path / "x.txt").write_text(text)
    machine = foreign(tmp_path)
    assert [o.command for o in machine.outputs] == ["npu-smi info"]
    assert "davinci0" in machine.listings["/dev"].names()


def test_files_of_two_machines_are_noted(tmp_path: Path) -> None:
    write_folder(KINDS["healthy"], tmp_path / "node1")
    write_folder(KINDS["driver-too-old"], tmp_path / "node2")
    assert any("several machines" in note for note in foreign(tmp_path).notes)


def test_a_log_that_came_along_is_diagnosed_and_keeps_its_name(tmp_path: Path) -> None:
    write_folder(KINDS["healthy"], tmp_path)
    (tmp_path / "train.log").write_text("Traceback (most recent call last):\n  File 'x.py', line 1\nValueError: no\n")
    machine = foreign(tmp_path)
    assert [log.source for log in machine.logs] == ["train.log"]


def test_windows_line_ends_colours_and_gbk_are_read(tmp_path: Path) -> None:
    (tmp_path / "version.info").write_bytes(b"Version=25.0.rc1.1\r\nascendhal_version=7.35.23\r\n")
    (tmp_path / "ls.txt").write_bytes("\x1b[0;33mls: 无法访问 '/dev/davinci0': 没有那个文件或目录\x1b[0m\r\n".encode("gb18030"))
    machine = foreign(tmp_path)
    assert machine.files["/usr/local/Ascend/driver/version.info"].keys()["Version"].value == "25.0.rc1.1"
    assert machine.listings["/dev"].lacks("davinci0")


@pytest.mark.parametrize("kind", FIVE, ids=named)
def test_a_machine_is_recognised_in_an_archive_within_an_archive(kind: Kind, tmp_path: Path) -> None:
    inner = tmp_path / "node1.tar.gz"
    with tarfile.open(inner, "w:gz") as packed:
        for name, text in kind.files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            packed.addfile(member, io.BytesIO(text.encode()))
    with zipfile.ZipFile(tmp_path / "bundle.zip", "w") as bundle:
        bundle.write(inner, "support/node1.tar.gz")
        bundle.writestr("support/train.log.gz", gzip.compress(b"[INFO] step 1\n"))
    plain, packed_ = (examine(foreign(path)).verdict for path in (write_folder(kind, tmp_path / "m"), tmp_path / "bundle.zip"))
    assert [f.rule.name for f in packed_.findings] == [f.rule.name for f in plain.findings]
    assert [(e.source, e.line) for f in packed_.findings for e in f.evidence if e.line] == [
        (f"support/node1.tar.gz!{e.source}", e.line) for f in plain.findings for e in f.evidence if e.line
    ]
    assert any(log.source == "support/train.log.gz" for log in foreign(tmp_path / "bundle.zip").logs)


def test_a_collection_within_a_bundle_is_whole(tmp_path: Path) -> None:
    whole = texts(foreign(write_folder(KINDS["healthy"], tmp_path / "m")))
    write_archive(Kind("again", whole), tmp_path / "node7.tar.gz")
    with tarfile.open(tmp_path / "bundle.tar", "w") as bundle:
        bundle.add(tmp_path / "node7.tar.gz", "node7.tar.gz")
    machine = foreign(tmp_path / "bundle.tar")
    assert machine.whole and "/etc/ascend_install.info" in machine.files


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/../../b.txt"])
def test_a_name_that_leads_out_of_an_archive_is_left_out(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as out:
        for member, data in ((name, b"evil=1\n"), ("etc/os-release", b'PRETTY_NAME="openEuler"\n')):
            info = tarfile.TarInfo(member)
            info.size = len(data)
            out.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        out.addfile(link)
    machine = foreign(path)
    assert set(machine.files) == {"/etc/os-release"}
    assert any(name in note for note in machine.notes) and any("link" in note for note in machine.notes)


def refused(path: Path) -> str:
    with pytest.raises(ToolError) as told:
        foreign(path)
    text = str(told.value)
    assert "doctor-from" in text
    assert text.count("\n") <= 3
    return text


def test_a_folder_that_is_not_there_is_told_so(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path / "nowhere")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_without_permission_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir(mode=0)
    assert "Permission denied" in refused(tmp_path / "x")


def test_an_unreadable_folder_is_told_so_whoever_runs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: object) -> list[str]:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "listdir", denied)
    assert "Permission denied" in refused(tmp_path)


def test_an_empty_folder_is_told_so(tmp_path: Path) -> None:
    assert "got nothing" in refused(tmp_path)


def test_a_binary_file_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "x.dat").write_bytes(bytes(range(256)) * 64)
    assert "binary" in refused(tmp_path / "x.dat")
    assert "binary" in refused(tmp_path)


def test_a_giant_file_is_read_in_part_and_that_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_OF_ONE", 1 << 20)
    write_folder(KINDS["healthy"], tmp_path)
    with (tmp_path / "huge.log").open("wb") as file:
        file.write(b"[INFO] step\n" * 200_000)
        file.truncate(8 << 30)
    machine = foreign(tmp_path)
    assert any("huge.log" in note and "first 1 MB" in note for note in machine.notes)


def test_too_much_text_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_OF_ALL", 1000)
    write_folder(KINDS["healthy"], tmp_path)
    assert "got more" in refused(tmp_path)


def test_too_many_files_are_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_MEMBERS", 3)
    write_folder(KINDS["healthy"], tmp_path)
    assert "at most 3 files" in refused(tmp_path)


def test_an_archive_bomb_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_UNPACKED", 4 << 20)
    zeros = b"\0" * (1 << 20)
    with tarfile.open(tmp_path / "bomb.tar.gz", "w:gz") as out:
        for number in range(8):
            info = tarfile.TarInfo(f"{number}.log")
            info.size = len(zeros)
            out.addfile(info, io.BytesIO(zeros))
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as zipped:
        for number in range(8):
            zipped.writestr(f"{number}.log", zeros)
    assert "archive bomb" in refused(tmp_path / "bomb.tar.gz")
    assert "archive bomb" in refused(tmp_path / "bomb.zip")


def test_of_an_archive_that_breaks_off_the_beginning_is_used_and_that_is_told(tmp_path: Path) -> None:
    machine = foreign(write_archive(Kind("whole", texts(foreign(write_folder(KINDS["healthy"], tmp_path / "m")))), tmp_path / "x.tar.gz"))
    path = tmp_path / "x.tar.gz"
    path.write_bytes(path.read_bytes()[:1500])
    half = foreign(path)
    assert machine.whole and not half.whole, "of what breaks off nobody knows what is missing"
    assert half.files and machine.packages and not half.packages
    assert [note for note in half.notes if note.startswith("x.tar.gz: breaks off") and "it ends too early" in note]
    path.write_bytes(path.read_bytes()[:20])
    assert "it ends too early" in refused(path)


_LOG = "\n".join(f"iteration {n}/100 | lm loss: 2.0" for n in range(20)) + "\nRuntimeError: NPU out of memory. Tried to allocate 4.00 GiB\n"


@pytest.mark.parametrize(
    "line",
    [
        "-rw-r--r-- 1 bob bob 100 May  1 10:00 train.py",
        "ls: cannot access 'x': No such file or directory",
        "docker run --device /dev/davinci0 image",
        "docker run \\\n  --device /dev/davinci0 \\\n  image",
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_log_with_a_command_or_a_listing_in_it_stays_a_log(tmp_path: Path, line: str, first: bool) -> None:
    text = f"{line}\n{_LOG}" if first else f"{_LOG}{line}\n"
    (tmp_path / "train.log").write_text(text)
    machine = foreign(tmp_path / "train.log")
    assert [log.text.strip() for log in machine.logs] == [text.strip()]
    assert [output.text.text.strip() for output in machine.outputs] == ([line] if line.startswith("docker") else [])


def test_what_a_container_printed_below_its_command_is_a_log(tmp_path: Path) -> None:
    (tmp_path / "paste.txt").write_text(f"$ docker run --device /dev/davinci0 image\n{_LOG}")
    machine = foreign(tmp_path / "paste.txt")
    assert [log.text.strip() for log in machine.logs] == [_LOG.strip()]
    assert [output.command for output in machine.outputs] == ["docker run"]
