"""`jumar doctor`: exit codes, JSON, HTML, language; a clear line for what cannot be read, never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.field.machines import KINDS, write_archive, write_folder

from jumar.tools.verdict.show import WIDTH

ROOT = Path(__file__).resolve().parents[3]


def doctor(*arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "LC_ALL": "C.UTF-8"}
    env.pop("COLUMNS", None)  # of a terminal, or of who runs tests side by side
    return subprocess.run([sys.executable, "-m", "jumar", "doctor", *arguments], capture_output=True, text=True, env=env, check=False)


def test_findings_exit_with_one_and_show_cause_proof_and_mend(tmp_path: Path) -> None:
    done = doctor("--from", str(write_archive(KINDS["driver-too-old"], tmp_path / "n.tar.gz")))
    assert done.returncode == 1, done.stderr
    assert "driver_too_old_for_cann" in done.stdout and "23.0.rc3" in done.stdout
    assert "usr/local/Ascend/driver/version.info" in done.stdout and "compatible_version=" in done.stdout
    assert len(done.stdout.splitlines()) <= 50


def test_a_healthy_machine_exits_with_zero(tmp_path: Path) -> None:
    done = doctor("--from", str(write_folder(KINDS["healthy"], tmp_path)))
    assert done.returncode == 0, done.stdout + done.stderr


def test_json_names_the_layer_and_the_finding(tmp_path: Path) -> None:
    done = doctor("--from", str(write_folder(KINDS["first-generation"], tmp_path)), "--json")
    document = json.loads(done.stdout)
    assert document["layer"] == "version_mismatch"
    assert "first_generation_910_taken_for_a2" in done.stdout


def test_chinese_and_a_page(tmp_path: Path) -> None:
    page = tmp_path / "out.html"
    done = doctor("--from", str(write_folder(KINDS["two-canns-mixed"], tmp_path / "m")), "--lang", "zh", "--html", str(page))
    assert done.returncode == 1
    assert "混用" in done.stdout
    assert "混用" in page.read_text(encoding="utf-8")


def test_what_cannot_be_read_exits_with_two_and_a_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "x.bin").write_bytes(bytes(range(256)) * 100)
    for path in ("empty", "x.bin", "nowhere"):
        done = doctor("--from", str(tmp_path / path))
        assert done.returncode == 2
        assert "Traceback" not in done.stderr and "ToolError" in done.stderr


def test_nothing_of_a_file_is_run_or_rendered(tmp_path: Path) -> None:
    files = {**KINDS["disk"].files, "df.txt": KINDS["disk"].files["df.txt"].replace("/dev/sda2", "<script>alert(1)</script>")}
    for name, text in files.items():
        (tmp_path / "m" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "m" / name).write_text(text)
    page = tmp_path / "out.html"
    assert doctor("--from", str(tmp_path / "m"), "--html", str(page)).returncode == 1
    assert "<script>alert" not in page.read_text(encoding="utf-8")


def test_the_page_shows_what_the_command_prints(tmp_path: Path) -> None:
    write_folder(KINDS["driver-too-old"], tmp_path / "node7")
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "LC_ALL": "C.UTF-8", "COLUMNS": str(WIDTH)}
    command = [sys.executable, "-m", "jumar", "doctor", "--from", "node7"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=env, check=False)
    page = (ROOT / "docs/field/doctor.md").read_text(encoding="utf-8")
    assert f"```text\n$ jumar doctor --from node7\n{done.stdout.rstrip()}\n```" in page


def test_the_page_and_the_help_name_every_option() -> None:
    page, told = (ROOT / "docs/field/doctor.md").read_text(encoding="utf-8"), doctor("--help").stdout
    for option in ("--from", "--collect", "--log", "--force", "--json", "--html", "--lang"):
        assert f"`{option}" in page and option in told
    assert "never on a real NPU" in page and "never ran on a real NPU" in told


def test_a_folder_that_tells_of_no_ascend_machine_could_not_be_checked(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("buy milk\n")
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    done = doctor("--from", str(tmp_path))
    assert done.returncode == 2
    assert "must hold files of an Ascend machine" in done.stderr


def test_a_script_may_demand_a_card() -> None:
    if os.path.exists("/dev/davinci_manager"):
        return
    done = doctor("--need", "npu")
    assert done.returncode == 2, done.stdout
    assert "no NPU was found" in done.stderr


def test_collect_makes_no_page(tmp_path: Path) -> None:
    done = doctor("--collect", str(tmp_path / "a.tar.gz"), "--html", str(tmp_path / "a.html"))
    assert done.returncode == 2
    assert "--html goes with a verdict" in done.stderr


def test_a_variable_of_logs_alone_makes_no_ascend_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    if os.path.exists("/dev/davinci_manager"):
        return
    monkeypatch.setenv("ASCEND_PROCESS_LOG_PATH", "/tmp/plog")
    done = doctor()
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("No Ascend NPU here")
