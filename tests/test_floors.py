"""The floors: imports run down only, rooms are entered through their faces, and a deployed package needs three rooms."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1] / "src" / "jumar"
FLOORS = {
    "base": 1, "ir": 2, "device": 2, "kernel": 3, "runtime": 3, "operators": 4, "compiler": 5, "frontend": 6, "tools": 7,
    **dict.fromkeys(("amp", "common", "communication", "context", "dataset", "experimental", "mindrecord", "mint", "nn", "numpy", "ops"), 6),
    **dict.fromkeys(("parallel", "train", "_c_expression", "_checkparam", "_extends", "boost", "device_context", "device_manager", "graph"), 6),
    **dict.fromkeys(("hal", "log", "profiler", "utils"), 6),
    "version": 1,
}  # fmt: skip
FACES = {
    room for room, floor in FLOORS.items() if floor == FLOORS["frontend"]
}  # MindSpore's public rooms: they import one another, file by file
NARROW = {"runtime": {"base", "device"}}  # what a deployed model runs on
FILES = sorted(ROOT.rglob("*.py"))


def room_of(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return parts[0] if len(parts) > 1 else ""


def imports_of(path: Path) -> list[tuple[str, int]]:
    """Modules of jumar that a file imports at run time, with lines; `if TYPE_CHECKING:` names types only and may look up."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    hidden: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            hidden |= {inner for statement in node.body for inner in ast.walk(statement)}
    found = []
    for node in ast.walk(tree):
        if node in hidden:
            continue
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports must be absolute"
            if node.module == "jumar":  # `from jumar import base` names a room
                found += [(f"jumar.{alias.name}" if alias.name in FLOORS else "jumar", node.lineno) for alias in node.names]
            else:
                found.append((str(node.module), node.lineno))
    return [(name, line) for name, line in found if name == "jumar" or name.startswith("jumar.")]


def test_every_folder_is_a_known_room() -> None:
    rooms = {p.name for p in ROOT.iterdir() if p.is_dir() and any(p.rglob("*.py"))}
    assert rooms <= set(FLOORS), "a new room needs a floor: add it to FLOORS and to docs/design"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_run_down_and_through_faces(path: Path) -> None:
    mine = room_of(path)
    for name, line in imports_of(path):
        parts = name.split(".")
        where = f"{path.relative_to(ROOT)}:{line} imports {name}"
        if mine == "":  # jumar/__init__.py is the roof: it shows the front end
            continue
        assert len(parts) > 1, f"{where}: name the room"
        room = parts[1]
        if room == mine:
            continue
        assert room in FLOORS, f"{where}: {room} must be a room"
        if mine in FACES and room in FACES:
            continue
        assert FLOORS[room] < FLOORS[mine], f"{where}: floor {FLOORS[mine]} must not look up or sideways to floor {FLOORS[room]}"
        if mine in NARROW:
            assert room in NARROW[mine], f"{where}: {mine} must need {', '.join(sorted(NARROW[mine]))} only"
        assert len(parts) == 2 or is_folder_face(name), f"{where}: must enter through the face, jumar.{room}"


def is_folder_face(name: str) -> bool:
    """`jumar.frontend.importers` is the face of a room inside a room."""
    return (ROOT.parent / Path(*name.split("."))).is_dir()


def test_runtime_imports_only_its_three_rooms_when_loaded() -> None:
    """What really gets imported, lazily or not, when a package is loaded: no graph, no compiler, no LLVM."""
    code = (
        "import sys, jumar.runtime\n"
        "print(*sorted({m.split('.')[1] for m in sys.modules if m.startswith('jumar.')}))\n"
        "print('llvmlite' in sys.modules, 'onnx' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT.parent)
    rooms, heavy = done.stdout.splitlines()
    assert set(rooms.split()) <= {"base", "device", "runtime", "version"}
    assert heavy == "False False"


def test_a_model_from_the_cache_needs_neither_operators_nor_a_compiler(tmp_path: Path) -> None:
    """What really gets imported when a model that is known is loaded and run: what is imported there is waited for at each start."""
    path = tmp_path / "m.onnx"
    make = (
        "import sys, onnx, onnx.parser\n"
        "text = '<ir_version: 9, opset_import: [\"\": 18]> g (float[4, 8] x, float[8, 3] w) => (float[4, 3] y) { a = MatMul(x, w) \\n y = Relu(a) }'\n"
        "onnx.save(onnx.parser.parse_model(text), sys.argv[1])"
    )
    use = (
        "import sys, numpy as np, jumar\n"
        "y = jumar.load(sys.argv[1])(np.ones((4, 8), np.float32), np.ones((8, 3), np.float32))\n"
        "assert y.shape == (4, 3) and (y == 8).all()\n"
        "print(*sorted(m for m in sys.modules if m.startswith('jumar.')))\n"
        "print(*(m for m in ('llvmlite', 'onnx', 'ml_dtypes', 'google.protobuf', 'subprocess', 'logging') if m in sys.modules))"
    )
    environment = {**os.environ, "JUMAR_CACHE_DIR": str(tmp_path / "cache"), "JUMAR_CACHE": "1"}

    def run(code: str) -> list[str]:
        command = [sys.executable, "-c", code, str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT.parent, env=environment).stdout.splitlines()

    run(make)
    fresh, kept = run(use), run(use)
    assert "jumar.compiler" in fresh[0].split() and "jumar.operators" in fresh[0].split(), "the first load must have compiled it"
    rooms = {m.split(".")[1] for m in kept[0].split()}
    assert rooms <= {"base", "device", "runtime", "frontend", "version"}
    front = {m for m in kept[0].split() if m.startswith("jumar.frontend.")}
    assert not front & {"jumar.frontend.tensor", "jumar.frontend.engine", "jumar.frontend.importers.onnx.evaluator"}
    assert kept[1] == ""


def test_importing_jumar_is_quick_and_starts_nothing() -> None:
    """No thread, no file, no device; heavy libraries come with the first use."""
    code = "import sys, threading, jumar\nprint(threading.active_count(), *(m in sys.modules for m in ('llvmlite.binding', 'onnx', 'rich', 'jinja2')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT.parent)
    assert done.stdout.split() == ["1", "False", "False", "False", "False"]
