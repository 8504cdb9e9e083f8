"""The folder of --out: what is in it is lost only if this command wrote it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jumar.base import ToolError
from jumar.tools.enable import compile_time
from jumar.tools.enable.compile_time import is_alive
from jumar.tools.enable.job import setting, stages_saved, whole_folder


def write(out: Path, *names: str) -> None:
    """A result with these files."""
    with whole_folder(out) as folder:
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("ours")
        (folder / "report.json").write_text(json.dumps({"written": [*names, "report.json"]}))


def dead_process() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def test_an_earlier_result_is_replaced(tmp_path: Path) -> None:
    write(tmp_path / "out", "report.html", "stages/a.graph")
    write(tmp_path / "out", "report.html")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["report.html", "report.json"]


@pytest.mark.parametrize("name", ["mine.txt", "stages/mine.txt", "mine/"])
def test_a_result_to_which_the_user_added_something_is_kept(name: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(out, "report.html", "stages/a.graph")
    if name.endswith("/"):
        (out / name).mkdir()
    else:
        (out / name).write_text("mine")
    with pytest.raises(ToolError, match=f"got a folder with other files: {name.rstrip('/')}\n"):
        write(out, "report.html")
    assert (out / name).exists()


def test_what_is_added_during_the_run_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def run_while_the_user_works() -> None:
        with whole_folder(out):
            out.mkdir()
            (out / "mine.txt").write_text("mine")

    with pytest.raises(ToolError, match="must stay as it was during the run"):
        run_while_the_user_works()
    assert [p.name for p in tmp_path.rglob("*")] == ["out", "mine.txt"]


def test_a_report_of_somebody_else_does_not_make_a_folder_ours(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("[1]")
    with pytest.raises(ToolError, match=r"other files: report\.json"):
        write(tmp_path)


def test_leftovers_of_dead_processes_go_and_those_of_living_ones_stay(tmp_path: Path) -> None:
    dead, alive = dead_process(), os.getppid()
    for name in (f".out.{dead}.part", f".out.{alive}.part", f".out2.{dead}.part", ".out.mine.part"):
        (tmp_path / name).mkdir()
    write(tmp_path / "out", "report.html")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([f".out.{alive}.part", f".out2.{dead}.part", ".out.mine.part", "out"])


def test_cold_caches_of_dead_processes_are_removed(tmp_path: Path) -> None:
    dead = dead_process()
    assert not is_alive(dead)
    for number in (dead, os.getpid()):
        (tmp_path / f"jumar-cold-{number}-abc").mkdir()
    compile_time.remove_leftovers(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == [f"jumar-cold-{os.getpid()}-abc"]


def test_through_a_link_the_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link", "report.html")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "report.html").is_file()


def test_stages_go_also_where_the_setting_wants_them(tmp_path: Path) -> None:
    with setting(JUMAR_SAVE_GRAPHS=str(tmp_path / "wanted")):
        with stages_saved(tmp_path / "stages"):
            assert os.environ["JUMAR_SAVE_GRAPHS"] == str(tmp_path / "stages")
            (tmp_path / "stages").mkdir()
            (tmp_path / "stages" / "a.graph").write_text("graph")
        assert (tmp_path / "wanted" / "a.graph").read_text() == "graph"
    (tmp_path / "file").write_text("no folder")

    def save_into_a_file() -> None:
        with setting(JUMAR_SAVE_GRAPHS=str(tmp_path / "file")), stages_saved(tmp_path / "stages"):
            pass

    with pytest.raises(ToolError, match="JUMAR_SAVE_GRAPHS must be a folder"):
        save_into_a_file()
