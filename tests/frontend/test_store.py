"""The cache between processes: a hit parses, traces and compiles nothing; what is damaged or changed counts as absent."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.frontend.build import model

import jumar
from jumar.frontend import model as model_module
from jumar.frontend import store
from jumar.frontend.importers.onnx import file as file_module

CUT = "g (float[n] x) => (float[k] y) { a = Relu(x) \n i = NonZero(a) \n j = Transpose(i) \n b = GatherND(a, j) \n y = Neg(b) }"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMAR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(store, "SETTLED_S", -1.0)  # files of a test are always new


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "m.onnx"
    found.write_bytes(model(CUT).SerializeToString())
    return found


def forbid(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Calls of these functions of the front end fail from now on."""

    def never(*args: Any, **named: Any) -> Any:
        raise AssertionError("this must come from the cache")

    for name in names:
        monkeypatch.setattr(model_module if name in ("content_hash", "read_path") else file_module, name, never)


def test_a_hit_reads_neither_the_file_nor_the_graph(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([1, -1, 2], np.float32)
    expected = jumar.load(path)(x)
    forbid(monkeypatch, "read_path", "parse_model", "read_model", "content_hash")
    m = jumar.load(path)
    assert [str(p) for p in m.inputs] == ["x: f32[n]"]
    assert m(x).tolist() == expected.tolist() == [-1, -2]
    assert m(np.array([-1, 5, 2], np.float32)).tolist() == [-5, -2]  # the same structure, other values
    monkeypatch.undo()


def test_a_changed_file_is_read_again(path: Path) -> None:
    x = np.array([1, -1, 2], np.float32)
    assert jumar.load(path)(x).tolist() == [-1, -2]
    path.write_bytes(model(CUT.replace("Neg(b)", "Abs(b)")).SerializeToString())
    assert jumar.load(path)(x).tolist() == [1, 2]


def test_new_shapes_are_traced_on_from_the_cache(path: Path) -> None:
    assert jumar.load(path)(np.array([1, -1, 2], np.float32)).tolist() == [-1, -2]
    m = jumar.load(path)
    assert m(np.array([1, 3, 2], np.float32)).tolist() == [-1, -3, -2]
    assert m(np.array([1, 3, 2, 4], np.float32)).tolist() == [-1, -3, -2, -4]


def test_a_file_that_changes_after_loading_is_not_mixed_with_the_old_one(path: Path) -> None:
    jumar.load(path)
    m = jumar.load(path)
    path.write_bytes(model(CUT.replace("Neg(b)", "Abs(b)")).SerializeToString())
    with pytest.raises(jumar.base.ImportFault) as caught:
        m(np.array([1, -1, 2], np.float32))
    assert caught.value.code == "file-changed"


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "foreign"])
def test_damaged_entries_are_made_again(path: Path, damage: str, tmp_path: Path) -> None:
    x = np.array([1, -1, 2], np.float32)
    jumar.load(path)(x)
    entries = [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]
    assert entries
    for entry in entries:
        raw = entry.read_bytes()
        middle = len(raw) // 2
        entry.write_bytes(
            {"flip": raw[:middle] + bytes([raw[middle] ^ 4]) + raw[middle + 1 :], "cut": raw[:middle], "empty": b"", "foreign": b"x" * 99}[
                damage
            ]
        )
    assert jumar.load(path)(x).tolist() == [-1, -2]


def test_another_version_of_the_code_finds_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([1, -1, 2], np.float32)
    jumar.load(path)(x)
    monkeypatch.setattr(store, "code_version", lambda: "other")
    forbid(monkeypatch, "read_model")
    with pytest.raises(AssertionError, match="must come from the cache"):
        jumar.load(path)


def test_processes_share_the_cache_without_harm(path: Path, tmp_path: Path) -> None:
    code = f"import numpy as np, jumar\nm = jumar.load({str(path)!r})\nfor k in range(3, 7):\n    print(m(np.arange(k, dtype=np.float32)).tolist())"
    env = os.environ | {"JUMAR_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": ":".join(sys.path)}
    jobs = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=env) for _ in range(4)]
    outputs = {job.communicate()[0] for job in jobs}
    assert outputs == {"".join(f"{[-float(i) for i in range(1, k)]}\n" for k in range(3, 7))}


def test_a_process_killed_while_it_compiles_leaves_a_sound_cache(path: Path, tmp_path: Path) -> None:
    code = f"import numpy as np, jumar\nfor k in range(3, 99):\n    jumar.load({str(path)!r})(np.arange(k, dtype=np.float32))"
    env = os.environ | {"JUMAR_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": ":".join(sys.path)}
    for delay in (0.7, 1.1):
        job = subprocess.Popen([sys.executable, "-c", code], env=env)
        time.sleep(delay)
        job.kill()
        job.wait()
    assert jumar.load(path)(np.arange(4, dtype=np.float32)).tolist() == [-1, -2, -3]


def test_the_hash_of_a_file_that_was_just_written_is_not_trusted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "SETTLED_S", 2.0)
    jumar.load(path)
    assert store.known_hash(str(path)) == ""
    os.utime(path, (time.time() - 100, time.time() - 100))  # the time of change still tells
    jumar.load(path)
    assert store.known_hash(str(path)) == ""


def test_a_model_known_by_its_content_holds_no_bytes_and_reads_them_for_a_new_call(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "SETTLED_S", 2.0)  # so the file is read to be hashed
    assert jumar.load(path)(np.array([1, -1], np.float32)).tolist() == [-1]
    m = jumar.load(path)
    assert m(np.array([1, -1], np.float32)).tolist() == [-1]
    assert m._source.raw is None
    assert m(np.array([1, -1, 2], np.float32)).tolist() == [-1, -2]


# ---- external data ----
W = np.array([1, 2, 3], np.float32)


def with_data(folder: Path, where: str, data: bytes | None) -> Path:
    """A model whose weights lie in `w.bin`.   where: the initializer, an attribute of a node, or of a node in a function."""
    proto = model(
        "g (float[3] x) => (float[3] y) <float[3] w = {0, 0, 0}> { y = Add(x, w) }"
        if where == "initializer"
        else "g (float[3] x) => (float[3] y) { w = Constant<value = float[3] {0, 0, 0}>() \n y = Add(x, w) }"
        if where == "attribute"
        else "g (float[3] x) => (float[3] y) { y = local.f(x) }",
        extra=', "local" : 1',
        functions='<domain: "local", opset_import: ["" : 18]> f (x) => (y) { w = Constant<value = float[3] {0, 0, 0}>() \n y = Add(x, w) }',
    )
    nodes = {"initializer": [], "attribute": proto.graph.node, "function": proto.functions[0].node}[where]
    tensor = nodes[0].attribute[0].t if nodes else proto.graph.initializer[0]
    for content in ("float_data", "raw_data"):
        tensor.ClearField(content)
    tensor.data_location = 1
    tensor.external_data.add(key="location", value="w.bin")
    folder.mkdir(exist_ok=True)
    path = folder / "m.onnx"
    path.write_bytes(proto.SerializeToString(deterministic=True))
    if data is not None:
        (folder / "w.bin").write_bytes(data)
    return path


everywhere = pytest.mark.parametrize("where", ["initializer", "attribute", "function"])


@everywhere
def test_a_copy_of_a_known_model_without_its_data_is_an_error(tmp_path: Path, where: str) -> None:
    x = np.zeros(3, np.float32)
    assert jumar.load(with_data(tmp_path / "a", where, W.tobytes()))(x).tolist() == [1, 2, 3]
    copy = with_data(tmp_path / "b", where, None)
    for source, code in ((copy, "external-data-missing"), (copy.read_bytes(), "external-data")):
        with pytest.raises(jumar.base.ImportFault) as caught:
            jumar.load(source)(x)
        assert caught.value.code == code
    (tmp_path / "b" / "w.bin").write_bytes(W.tobytes()[:8])
    with pytest.raises(jumar.base.ImportFault) as caught:
        jumar.load(copy)(x)
    assert caught.value.code == "external-data"
    (tmp_path / "b" / "w.bin").unlink()
    (tmp_path / "b" / "w.bin").symlink_to(tmp_path / "a" / "w.bin")
    with pytest.raises(jumar.base.ImportFault) as caught:
        jumar.load(copy)(x)
    assert caught.value.code == "external-data-outside"


@everywhere
def test_copies_of_a_model_have_the_data_beside_them(tmp_path: Path, where: str) -> None:
    x = np.zeros(3, np.float32)
    one, two = with_data(tmp_path / "a", where, W.tobytes()), with_data(tmp_path / "b", where, (-W).tobytes())
    for _ in range(2):
        assert jumar.load(one)(x).tolist() == [1, 2, 3]
        assert jumar.load(two)(x).tolist() == [-1, -2, -3]


def test_a_copy_with_the_same_data_comes_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.zeros(3, np.float32)
    jumar.load(with_data(tmp_path / "a", "initializer", W.tobytes()))(x)
    copy = with_data(tmp_path / "b", "initializer", W.tobytes())
    forbid(monkeypatch, "parse_model", "read_model")
    assert jumar.load(copy)(x).tolist() == [1, 2, 3]


def test_changed_data_of_the_same_size_and_time_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "SETTLED_S", 2.0)
    x = np.zeros(3, np.float32)
    path = with_data(tmp_path / "a", "initializer", W.tobytes())
    assert jumar.load(path)(x).tolist() == [1, 2, 3]
    status = os.stat(tmp_path / "a" / "w.bin")
    (tmp_path / "a" / "w.bin").write_bytes((-W).tobytes())
    os.utime(tmp_path / "a" / "w.bin", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert jumar.load(path)(x).tolist() == [-1, -2, -3]


def test_data_that_changes_after_loading_is_not_mixed_with_the_old_one(tmp_path: Path) -> None:
    path = with_data(tmp_path / "a", "initializer", W.tobytes())
    jumar.load(path)
    m = jumar.load(path)
    (tmp_path / "a" / "w.bin").write_bytes((-W).tobytes())
    with pytest.raises(jumar.base.ImportFault) as caught:
        m(np.zeros(3, np.float32))
    assert caught.value.code == "file-changed"
