"""`import mindspore` gives Jumar: in processes of their own, so that no other test sees it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.tools.helpers import ROOT


def fresh(code: str, tmp_path: Path) -> str:
    """What a new process prints with the alias on."""
    script = "import jumar\njumar.as_mindspore()\n" + code
    environment = {"PYTHONPATH": str(ROOT / "src"), "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_modules_and_classes_are_the_same(tmp_path: Path) -> None:
    code = """
import mindspore as ms, mindspore.common.dtype as mstype, jumar.common.dtype
from mindspore.common.tensor import Tensor
from mindspore import context, Tensor as T
import sys
print(ms is jumar, mstype is jumar.common.dtype, Tensor is T is jumar.Tensor, context is jumar.context, sys.modules["mindspore"] is jumar)
print(ms.__version__, mstype.__spec__.name, ms.__name__)
"""
    assert fresh(code, tmp_path) == "True True True True True\n2.10.0 jumar.common.dtype jumar"


def test_the_installed_version_and_specs_can_be_asked_for(tmp_path: Path) -> None:
    code = """
import importlib.metadata, importlib.util
print(importlib.metadata.version("mindspore"), importlib.metadata.metadata("mindspore")["Name"])
print(importlib.util.find_spec("mindspore.context") is not None, importlib.util.find_spec("mindspore.nothing"))
"""
    assert fresh(code, tmp_path) == "2.10.0 mindspore\nTrue None"


def test_pickles_that_name_mindspore_are_read(tmp_path: Path) -> None:
    code = """
import pickle
print(pickle.loads(b"cmindspore.common.tensor\\nTensor\\n.") is jumar.Tensor)
print(pickle.loads(pickle.dumps(jumar.Tensor([1.0, 2.0]))), pickle.loads(pickle.dumps(jumar.float32)) is jumar.float32)
"""
    assert fresh(code, tmp_path) == "True\n[1. 2.] True"


def test_a_second_time_does_nothing_and_too_late_is_an_error(tmp_path: Path) -> None:
    code = """
import sys, types
before = len(sys.meta_path)
jumar.as_mindspore()
print(len(sys.meta_path) == before)
sys.meta_path.pop(0)
sys.modules["mindspore"] = types.ModuleType("mindspore")
try:
    jumar.as_mindspore()
except jumar.base.StackError as error:
    print(error.code)
"""
    assert fresh(code, tmp_path) == "True\nalias-late"


def test_a_module_that_is_not_there_is_python_s_own_error(tmp_path: Path) -> None:
    code = """
for name in ("mindspore.nothing", "mindspore.context.nothing"):
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        print(error.name)
"""
    assert fresh(code, tmp_path) == "mindspore.nothing\nmindspore.context.nothing"


@pytest.mark.parametrize("how", ["line", "cell"])
def test_the_notebook_extension_runs_a_cell_and_reports(how: str, tmp_path: Path) -> None:
    code = f"""
class Shell:
    def register_magic_function(self, function, kind, name):
        self.magic = function
    def run_cell(self, text):
        exec(text, {{}})
shell = Shell()
jumar.load_ipython_extension(shell)
text = "import mindspore; print(mindspore.Tensor([1.0]))"
shell.magic(text) if {how == "line"} else shell.magic("", text)
"""
    assert fresh(code, tmp_path) == "[1.]"


def test_an_alias_of_others_answers_for_the_version_too(tmp_path: Path) -> None:
    code = """
import sys, importlib.metadata
sys.meta_path.pop(0)
for name in [m for m in sys.modules if m.startswith("jumar")]:
    del sys.modules[name]
import jumar
sys.modules["mindspore"] = jumar
jumar.VERSION, jumar.float32
print(importlib.metadata.version("mindspore"), jumar.__version__)
"""
    assert fresh(code, tmp_path) == "2.10.0 2.10.0"
