"""A collection reads back to the same verdict, holds nobody's names, is the same twice, and is whole or not there."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import pty
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.field.machines import KINDS, NODES, environment, smi, write_folder, write_root

from jumar.base import ToolError
from jumar.tools.doctor import collect as packing
from jumar.tools.doctor.collect import MOST_LOGS, MOST_OF_LOG, collect, newest_logs
from jumar.tools.doctor.command import command
from jumar.tools.doctor.examine import examine
from jumar.tools.doctor.foreign import MANIFEST, foreign
from jumar.tools.doctor.gather import gather
from jumar.tools.doctor.machine import Machine, Output, Text

ENV = {line.partition("=")[0]: line.partition("=")[2] for line in environment().splitlines()}
MINE = {
    **ENV,
    "USER": "wangwu7",
    "HOME": "/home/wangwu7",
    "HF_TOKEN": "hf_Abcdefghijk1234567890",
    "MASTER_ADDR": "10.11.12.13",
    "http_proxy": "http://me:pw@10.11.12.99:3128",
}
PLOG = "[ERROR] HCCL(1234,python3):2025-03-01-11:23:25.123.456 [topoinfo.cc:1] [rank 3] connect to 10.11.12.14 of wangwu7 failed\n" * 5


def spoil_nothing(root: Path) -> None:
    pass


def spoil_nodes(root: Path) -> None:
    for name in NODES:
        (root / "dev" / name).unlink()


def spoil_driver(root: Path) -> None:
    file = root / "usr/local/Ascend/driver/version.info"
    file.write_text(file.read_text().replace("Version=", "Version=21.0.2\nOld="))


def spoil_rank_table(root: Path) -> None:
    (root / "home/wangwu7").mkdir(parents=True)
    device = '{"device_id": "0", "device_ip": "192.168.100.101", "rank_id": "0"}'
    (root / "home/wangwu7/rank.json").write_text(
        '{"version": "1.0", "server_count": "1", "status": "completed", "server_list": [{"server_id": "10.11.12.13", "device": ['
        + device
        + ", "
        + device
        + "]}]}"
    )


SPOILS = (spoil_nothing, spoil_nodes, spoil_driver, spoil_rank_table)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_root(tmp_path / "root")


def machine_of(root: Path) -> Machine:
    def runner(arguments: Sequence[str], limit_s: float) -> Output | None:
        command = " ".join(arguments)
        return Output(command, Text(command, smi()), 0) if arguments[0] == "npu-smi" and arguments[1:] == ("info",) else None

    env = {**MINE, "RANK_TABLE_FILE": "/home/wangwu7/rank.json"} if (root / "home").exists() else MINE
    return gather(root, env, runner)


def names(machine: Machine) -> list[str]:
    verdict = examine(machine).verdict
    return [f.rule.name for f in (*verdict.findings, *verdict.followed)]


def everything(path: Path) -> str:
    with tarfile.open(path) as archive:
        members = archive.getmembers()
        return "\n".join([*(m.name for m in members), *(archive.extractfile(m).read().decode() for m in members)])  # type: ignore[union-attr]


@pytest.mark.parametrize("spoil", SPOILS)
@pytest.mark.parametrize("logs", [False, True], ids=["no logs", "plogs"])
def test_a_collection_reads_back_to_the_same_verdict(root: Path, tmp_path: Path, spoil: object, logs: bool) -> None:
    spoil(root)  # type: ignore[operator]
    machine = machine_of(root)
    (tmp_path / "log").mkdir()
    (tmp_path / "log/plog-1234_20250301112325123.log").write_text(PLOG if logs else "")
    done = collect(machine, tmp_path / "out.tar.gz", [tmp_path / "log"])
    again = foreign(done.path)
    assert again.whole
    assert names(done.machine) == names(again)
    if spoil is not spoil_nothing:
        assert names(again) != []


@pytest.mark.parametrize("name", sorted(KINDS))
def test_files_that_were_copied_can_be_collected_again_with_the_same_verdict(name: str, tmp_path: Path) -> None:
    copied = foreign(write_folder(KINDS[name], tmp_path / "copied"))
    again = foreign(collect(copied, tmp_path / "out.tar.gz", []).path)
    assert again.whole == copied.whole
    assert names(again) == names(copied)


def test_a_collection_names_nobody(root: Path, tmp_path: Path) -> None:
    spoil_rank_table(root)
    (tmp_path / "plog-1.log").write_text(PLOG)
    done = collect(machine_of(root), tmp_path / "out.tar.gz", [tmp_path / "plog-1.log"])
    found = everything(done.path)
    for secret in ("wangwu7", "10.11.12.", "192.168.100", "hf_Abc", "me:pw"):
        assert secret not in found
    assert "/home/user" in found and "192.0.2.1" in found
    assert done.replaced["user"] >= 1 and done.replaced["ipv4"] >= 3


def test_the_manifest_lists_every_file_with_its_hash(root: Path, tmp_path: Path) -> None:
    done = collect(machine_of(root), tmp_path / "out.tar.gz", [])
    with tarfile.open(done.path) as archive:
        manifest = json.load(archive.extractfile(MANIFEST))  # type: ignore[arg-type]
        assert manifest["format"] == 1 and manifest["replaced"] == dict(done.replaced)
        assert {MANIFEST, *manifest["files"]} == set(archive.getnames()) == set(done.files)
        for name, told in manifest["files"].items():
            data = archive.extractfile(name).read()  # type: ignore[union-attr]
            assert (len(data), hashlib.sha256(data).hexdigest()) == (told["nbytes"], told["sha256"])


def test_the_same_machine_gives_the_same_bytes(root: Path, tmp_path: Path) -> None:
    machine = replace(machine_of(root), outputs=())  # df counts what is free
    first, second = (collect(machine, tmp_path / name, []).path.read_bytes() for name in ("a.tar.gz", "b.tar.gz"))
    assert first == second


def test_a_file_that_is_there_is_kept_unless_force_is_given(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tar.gz"
    out.write_text("mine")
    with pytest.raises(ToolError, match="must not be there yet"):
        collect(machine_of(root), out, [])
    assert out.read_text() == "mine"
    collect(machine_of(root), out, [], force=True)
    assert gzip.decompress(out.read_bytes())
    with pytest.raises(ToolError, match="must be a file"):
        collect(machine_of(root), tmp_path, [], force=True)


def test_ctrl_c_leaves_nothing_half_written(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "new" / "out.tar.gz"
    out.parent.mkdir()
    monkeypatch.setattr(packing.os, "replace", stopped)
    with pytest.raises(KeyboardInterrupt):
        collect(machine_of(root), out, [])
    assert os.listdir(out.parent) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_a_clear_line(root: Path, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(ToolError, match="must be writable"):
        collect(machine_of(root), tmp_path / "closed" / "out.tar.gz", [])


@contextmanager
def another_user() -> Iterator[None]:
    """Folders of mode 0000 are closed to this process, to root's, too."""
    me = os.geteuid()
    if me == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(me)


def test_places_that_this_user_may_not_look_into_hold_no_logs(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    outside = tempfile.TemporaryDirectory()  # pytest's own folders are closed to others
    request.addfinalizer(outside.cleanup)
    open_log = Path(outside.name) / "open.log"
    open_log.write_text("mine\n")
    for folder in (tmp_path, open_log.parent):
        folder.chmod(0o755)
    hidden = tmp_path / "hidden/ascend/log"
    hidden.mkdir(parents=True)
    (hidden / "plog.log").write_text("somebody else's\n")
    (tmp_path / "hidden").chmod(0)
    with another_user():
        assert [t.text for t in newest_logs([hidden, hidden / "plog.log", open_log])] == ["mine\n"]
        env = {**MINE, "ASCEND_HOME_PATH": str(hidden), "TMPDIR": str(hidden), "RANK_TABLE_FILE": str(hidden / "rank.json")}
        machine = gather(Path("/"), env, lambda arguments, limit_s: None)
        with pytest.raises(ToolError, match="must be in a folder that is there"):
            collect(machine, hidden / "o.tar.gz")
    (tmp_path / "hidden").chmod(0o755)
    collect(machine, tmp_path / "o.tar.gz", [hidden])
    assert "somebody else's" in everything(tmp_path / "o.tar.gz")


def test_of_many_logs_the_newest_are_taken_and_of_a_long_one_both_ends(tmp_path: Path) -> None:
    for number in range(MOST_LOGS + 5):
        file = tmp_path / f"plog-{number}.log"
        file.write_text(f"log {number}\n")
        os.utime(file, (1000 + number, 1000 + number))
    long = tmp_path / "plog-long.log"
    long.write_text("first line\n" + "between\n" * 200_000 + "last line\n")
    (tmp_path / "core.log").write_bytes(b"\x7fELF" + bytes(1000))
    (tmp_path / "away.log").symlink_to(tmp_path / "plog-1.log")
    found = newest_logs([tmp_path, tmp_path / "absent"])
    assert [log.source.rsplit("/", 1)[-1] for log in found][-1] == "plog-long.log"
    assert not any("plog-1.log" in log.source for log in found)
    text = found[-1].text
    assert text.startswith("first line\n") and text.endswith("last line\n") and "bytes left out" in text
    assert len(text) <= MOST_OF_LOG + 100


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_its_owner_is_told_what_was_replaced_and_to_look_first(root: Path, tmp_path: Path, lang: str) -> None:
    told = collect(machine_of(root), tmp_path / "out.tar.gz", []).told(lang)
    assert f"tar tzf {tmp_path / 'out.tar.gz'}" in told and ("nothing was sent" in told or "什么都没有发送" in told)


def test_the_command_writes_the_archive_and_says_what_it_did(tmp_path: Path) -> None:
    out = tmp_path / "here.tar.gz"
    done = CliRunner().invoke(command, ["--collect", str(out), "--json"], catch_exceptions=False)
    told = json.loads(done.output)
    assert done.exit_code == 0 and told["path"] == str(out) and MANIFEST in told["files"]
    assert foreign(out).whole
    assert "with --collect" in CliRunner().invoke(command, ["--force"]).output


def test_a_bar_is_shown_on_a_terminal_while_much_is_neutralised(tmp_path: Path) -> None:
    (tmp_path / "big.log").write_text("connect to 10.1.2.3 failed ret[9]\n" * 30_000)
    command = [sys.executable, "-m", "jumar", "doctor", "--collect", str(tmp_path / "c.tar.gz"), "--log", str(tmp_path / "big.log")]
    near, far = pty.openpty()
    shown = b""
    process = subprocess.Popen(
        [*command, "--from", str(tmp_path / "big.log")], stderr=far, stdout=subprocess.PIPE, env={**os.environ, "TERM": "xterm"}
    )
    os.close(far)
    with suppress(OSError):  # the end of a terminal is an error
        while piece := os.read(near, 4096):
            shown += piece
    os.close(near)
    output = process.communicate()[0]
    assert process.returncode == 0, shown
    assert b"neutralising" in shown or "脱敏".encode() in shown
    assert b"neutralising" not in output


@pytest.mark.parametrize(
    ("name", "word"), [("nowhere/out.tar.gz", "must be in a folder that is there"), ("out.zip", "must end in .tar.gz")]
)
def test_a_folder_that_is_not_there_and_another_form_are_refused(name: str, word: str, root: Path, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=word):
        collect(machine_of(root), tmp_path / name, [])
    assert not (tmp_path / "nowhere").exists()
