"""The command line: small commands, exit codes, and what each says."""

from __future__ import annotations

import errno
import json
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from tests.tools.helpers import ROOT, jumar

from jumar.tools import compat
from jumar.tools.cli import cli, main


def test_version_and_help_name_every_command(tmp_path: Path) -> None:
    assert jumar("--version", cwd=tmp_path).stdout.startswith("jumar ")
    text = jumar("--help", cwd=tmp_path).stdout
    for command in ("run", "enable", "run-package", "tune", "ops", "explain", "cache", "settings", "completion"):
        assert command in text


def test_help_is_printed_without_numpy_or_any_room_below() -> None:
    code = (
        "import sys\nfrom jumar.tools.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit as end:\n"
        "    print('end', end.code, *sorted(m for m in sys.modules if m == 'numpy' or m.startswith('jumar.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT / "src")
    assert done.stdout.splitlines()[-1].split() == ["end", "0", "jumar.tools", "jumar.tools.cli", "jumar.version"]


@pytest.mark.parametrize("name", ["doctor", "diagnose", "compat", "snapshot", "explain"])
def test_the_help_of_the_doctor_s_commands_has_examples_exit_codes_and_a_text_for_each_option(name: str) -> None:
    context = click.Context(cli, info_name="jumar", max_content_width=110)
    command = cli.get_command(context, name)
    assert command is not None
    text = command.get_help(click.Context(command, context, name, max_content_width=110))
    assert f"\n  jumar {name}" in text and "Exit code" in text
    parts = [*command.commands.values()] if isinstance(command, click.Group) else [command]
    options = [option for part in parts for option in part.params if isinstance(option, click.Option)]
    assert [] == [option.name for option in options if len((option.help or "").split()) < 2]


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (KeyboardInterrupt(), {"en": "stopped: nothing was left half-written", "zh": "已停止：没有留下写到一半的文件"}),
        (MemoryError(), {"en": "memory must hold what the command reads and makes", "zh": "内存不足"}),
        (OSError(errno.ENOSPC, "No space left on device"), {"en": "output must have room, got No space", "zh": "输出的磁盘空间不足"}),
    ],
    ids=["Ctrl-C", "memory", "disk"],
)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_command_that_is_ended_says_so_in_its_language(
    end: BaseException, told: dict[str, str], lang: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ended(*_: object) -> None:
        raise end

    monkeypatch.setattr(compat, "installed_here", ended)
    with pytest.raises(SystemExit):
        main(["compat", "--lang", lang])
    assert told[lang] in capsys.readouterr().err


def test_a_misspelt_command_gets_the_nearest(tmp_path: Path) -> None:
    done = jumar("enabel", cwd=tmp_path)
    assert done.returncode == 2
    assert "no such command: enabel; did you mean enable?" in done.stderr


def test_ops_table_and_json_tell_the_same(tmp_path: Path) -> None:
    rows = json.loads(jumar("ops", "--json", cwd=tmp_path).stdout)
    table = jumar("ops", "--table", cwd=tmp_path).stdout.splitlines()
    assert len(rows) > 100
    assert [r["name"] for r in rows] == [line.split()[0] for line in table[1:-1]]
    softmax = next(r for r in rows if r["name"] == "softmax")
    assert softmax["cann"] == "aclnnSoftmax"
    assert softmax["reference"]


def test_settings_show_where_a_value_comes_from(tmp_path: Path) -> None:
    rows = {r["name"]: r for r in json.loads(jumar("settings", "--json", cwd=tmp_path, JUMAR_THREADS="3").stdout)}
    assert rows["threads"]["value"] == "3"
    assert rows["threads"]["from"] == "JUMAR_THREADS"
    assert rows["winograd"]["from"] == "default"


def test_a_setting_that_cannot_be_read_is_an_error_with_exit_code_2(tmp_path: Path) -> None:
    done = jumar("settings", cwd=tmp_path, JUMAR_THREADS="many")
    assert done.returncode == 2
    assert done.stderr == ("StackError: [base] config: JUMAR_THREADS must be int, got 'many'\n  more: jumar explain setting-value\n")


def test_cache_clear_removes_entries_and_nothing_else(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    entry = cache / "kernels" / "ab" / ("ab" * 32)
    entry.parent.mkdir(parents=True)
    entry.write_bytes(b"x" * 2048)
    (cache / "mine.txt").write_text("not the cache's")
    assert "1 entry, 2 KiB" in jumar("cache", "show", cwd=tmp_path, JUMAR_CACHE_DIR=str(cache)).stdout
    assert jumar("cache", "clear", cwd=tmp_path, JUMAR_CACHE_DIR=str(cache)).stdout.startswith("removed 1 entry, 2 KiB")
    assert not entry.exists()
    assert (cache / "mine.txt").exists()


def test_explain_prints_a_page_and_lists_them(tmp_path: Path) -> None:
    assert "op-unsupported" in jumar("explain", cwd=tmp_path).stdout.split()
    assert jumar("explain", "op-unsupported", cwd=tmp_path).stdout.startswith("# op-unsupported")
    done = jumar("explain", "op-unsuported", cwd=tmp_path)
    assert done.returncode == 2
    said = done.stderr.splitlines()
    assert said[0] == "ToolError: [tools] explain: code must be known, got 'op-unsuported'"
    assert said[1].startswith("  hint: did you mean op-unsupported")


def test_completion_prints_the_line_for_a_shell(tmp_path: Path) -> None:
    assert "_JUMAR_COMPLETE=zsh_source" in jumar("completion", "zsh", cwd=tmp_path).stdout


def test_unknown_variables_are_listed_with_the_settings(tmp_path: Path) -> None:
    said = jumar("settings", cwd=tmp_path, JUMAR_THRAEDS="2").stdout
    assert "JUMAR_THRAEDS   (no setting is called that; did you mean threads?)" in said


def test_ctrl_c_while_python_imports_has_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt")
    for code in ("import jumar.tools.cli", "import runpy; runpy.run_module('jumar.tools', run_name='__main__')"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path, capture_output=True, text=True, check=False, env={"PYTHONPATH": f"{tmp_path}:{ROOT / 'src'}"},
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (130, "")


def test_too_little_memory_is_an_error_and_no_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 373 GiB")

    monkeypatch.setattr(cli, "main", fail)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit) as caught:
        main(["ops", "--json"])
    assert caught.value.code == 2
    shown = capsys.readouterr()
    assert "got Unable to allocate 373 GiB" in shown.err
    assert json.loads(shown.out)["error"]["code"] == "memory"


def test_a_bug_of_ours_is_an_error_document_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*args: object, **named: object) -> None:
        raise KeyError("v3")

    monkeypatch.setattr(cli, "main", broken)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with pytest.raises(KeyError):
        main(["ops", "--json"])
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "our-bug"
