"""`jumar run`: scripts that import mindspore, as a user would start them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.tools.helpers import ROOT, jumar


def script(folder: Path, text: str, name: str = "script.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_script_runs_as_main_with_its_own_arguments_and_folder(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    script(tmp_path / "lib", "VALUE = 5\n", "helper.py")
    script(
        tmp_path / "lib",
        "import sys, helper\nfrom mindspore import Tensor\n"
        "print(__name__, sys.argv, helper.VALUE, sys.modules['__main__'].Tensor is Tensor)\nsys.exit(3)\n",
    )
    done = jumar("run", "lib/script.py", "--epochs", "3", "-h", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "__main__ ['lib/script.py', '--epochs', '3', '-h'] 5 True\n")
    assert done.stderr == ""


def test_a_module_runs_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "pack").mkdir()
    script(tmp_path / "pack", "", "__init__.py")
    script(tmp_path / "pack", "import sys\nimport mindspore\nprint(mindspore.__version__, sys.argv[1:], __name__)\n", "__main__.py")
    assert jumar("run", "-m", "pack", "x", cwd=tmp_path).stdout == "2.10.0 ['x'] __main__\n"
    done = jumar("run", "-m", "packk", cwd=tmp_path)
    assert (done.returncode, "module must be there, got packk" in done.stderr) == (2, True)


def test_exit_codes_are_python_s(tmp_path: Path) -> None:
    assert jumar("run", script(tmp_path, "pass\n"), cwd=tmp_path).returncode == 0
    done = jumar("run", script(tmp_path, "import sys\nsys.exit('no data')\n"), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "no data\n")
    done = jumar("run", "nothing.py", cwd=tmp_path)
    assert (done.returncode, "script must be a file, got nothing.py" in done.stderr) == (2, True)
    done = jumar("run", script(tmp_path, "def f(:\n"), cwd=tmp_path)
    assert (done.returncode, "SyntaxError" in done.stderr, "run_script.py" in done.stderr) == (1, True, False)


def test_tracebacks_show_the_user_s_lines_and_fold_ours(tmp_path: Path) -> None:
    text = "from mindspore import Tensor\n\ndef f():\n    return Tensor([1.0, 2.0, 3.0]) @ Tensor([1.0, 2.0])\n\nf()\n"
    done = jumar("run", script(tmp_path, text), cwd=tmp_path)
    assert done.returncode == 1
    assert "line 6, in <module>" in done.stderr
    assert "line 4, in f" in done.stderr
    assert "inside jumar; --full-traceback shows them]" in done.stderr
    assert "run_script.py" not in done.stderr
    full = jumar("run", "--full-traceback", script(tmp_path, text), cwd=tmp_path).stderr
    assert "inside jumar" not in full
    assert len(full) > len(done.stderr)


def test_a_missing_module_of_mindspore_gets_a_hint(tmp_path: Path) -> None:
    done = jumar("run", script(tmp_path, "import mindspore.cotext\n"), cwd=tmp_path)
    assert "No module named 'mindspore.cotext'" in done.stderr
    assert "hint: Jumar 0.1.0 has no such module yet; did you mean context" in done.stderr


def test_the_mode_can_be_forced(tmp_path: Path) -> None:
    text = "import mindspore as ms\nms.set_context(mode=ms.PYNATIVE_MODE)\nprint(ms.get_context('mode'))\n"
    assert jumar("run", "--mode", "graph", script(tmp_path, text), cwd=tmp_path).stdout == "0\n"
    assert jumar("run", script(tmp_path, text), cwd=tmp_path).stdout == "1\n"


EXPLAINED = """
import mindspore as ms
x = ms.Tensor([[1.0, 2.0], [3.0, 4.0]])

@ms.jit
def loud(x):
    print("called")
    return x * 2

@ms.jit
def quiet(x):
    return x @ x + 1

for _ in range(2):
    loud(x), quiet(x)
ms.set_context(op_timeout=3)
"""


def test_explain_says_what_was_captured_and_why_python_runs(tmp_path: Path) -> None:
    path = script(tmp_path, EXPLAINED)
    done = jumar("run", "--explain", "--explain-json", "facts.json", path, cwd=tmp_path, JUMAR_CACHE_DIR=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "called\ncalled\n"
    assert "captured functions: 2" in done.stderr
    assert f"calls print at {path}:7" in done.stderr
    assert "settings that have nothing to set here: op_timeout=3" in done.stderr
    facts = json.loads((tmp_path / "facts.json").read_text())
    assert facts["schema"] == "jumar-run/1"
    functions = {f["function"]: f for f in facts["functions"]}
    assert (functions["quiet"]["captures"], functions["quiet"]["effects"]) == (1, [])
    assert functions["loud"]["replays"] == 1
    assert sum(g["nodes"] for g in facts["graphs"]) > 0
    assert facts["peak_memory_nbytes"] > 0
    again = jumar("run", "--explain", path, cwd=tmp_path, JUMAR_CACHE_DIR=str(tmp_path / "cache")).stderr
    assert "from the cache)" in again


def test_explain_speaks_after_an_error_too(tmp_path: Path) -> None:
    done = jumar("run", "--explain", script(tmp_path, "raise ValueError('x')\n"), cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.index("ValueError: x") < done.stderr.index("captured functions: 0")


def test_explain_speaks_when_the_script_has_closed_its_stderr(tmp_path: Path) -> None:
    done = jumar(
        "run", "--explain", script(tmp_path, "import os, sys\nos.dup2(os.open(os.devnull, os.O_WRONLY), 2)\nsys.exit(0)\n"), cwd=tmp_path
    )
    assert "captured functions: 0" in done.stderr


def test_ctrl_c_stops_with_130(tmp_path: Path) -> None:
    path = script(tmp_path, "import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    command = [sys.executable, "-m", "jumar.tools", "run", str(path)]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT / "src")}
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said.endswith("KeyboardInterrupt\n")


def test_python_dash_m_jumar_is_the_command_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "jumar", "--version"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": str(ROOT / "src")}
    )
    assert done.stdout.startswith("jumar ")
