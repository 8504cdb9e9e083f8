"""Bad files end in an error that names the thing and the way out, and nothing else happens."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from tests.frontend.build import model

import jumar
from jumar.base import ImportFault, recording
from jumar.frontend.importers.onnx import disk
from jumar.frontend.importers.onnx import file as file_module

PLAIN = "g (float[n] x) => (float[n] y) { a = Relu(x) \n y = Neg(a) }"


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMAR_CACHE", "0")


def fault(source: Any, *inputs: Any) -> ImportFault:
    with pytest.raises(ImportFault) as caught:
        jumar.load(source, target="interpreter")(*inputs)
    return caught.value


def test_what_is_no_onnx_file_is_said_to_be_none(tmp_path: Path) -> None:
    for raw, hint in (
        (b"PK\x03\x04 archive", "zip"),
        (b"<html>", "web page"),
        (b'{"a": 1}', "JSON"),
        (b"version https://git-lfs", "git lfs pull"),
        (os.urandom(1), ""),
    ):
        path = tmp_path / "m.onnx"
        path.write_bytes(raw)
        error = fault(path)
        assert error.code in ("file-not-onnx", "file-truncated"), raw
        assert hint in error.hint and str(path) in error.what
    (tmp_path / "e.onnx").write_bytes(b"")
    assert "got an empty file" in fault(tmp_path / "e.onnx").what
    assert fault(np.random.default_rng(0).bytes(1000)).code == "file-not-onnx"


def test_a_file_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    (tmp_path / "real.onnx").write_bytes(b"")
    error = fault(tmp_path / "unreal.onnx")
    assert error.code == "file-missing" and "real.onnx" in error.hint
    assert "got a folder" in fault(tmp_path).what
    os.mkfifo(tmp_path / "pipe")
    assert "no regular file" in fault(tmp_path / "pipe").what


def test_a_truncated_file_says_what_it_lacks() -> None:
    weights = numpy_helper.from_array(np.zeros(1000, np.float32), "w")
    proto = model(PLAIN)
    proto.graph.initializer.append(weights)
    raw = proto.SerializeToString()
    for cut in (len(raw) // 2, len(raw) - 1, 60):
        error = fault(raw[:cut])
        assert error.code == "file-truncated" and f"got {cut} bytes" in error.what


def test_versions_that_are_too_new_or_too_old_say_which_are_known() -> None:
    proto = model(PLAIN)
    proto.ir_version = 1
    assert fault(proto).code == "ir-version"
    proto.ir_version = 99
    assert "pip install --upgrade onnx" in fault(proto).hint
    proto.ir_version = 8
    proto.opset_import[0].version = 99
    assert fault(proto).code == "opset-version"
    assert fault(onnx.ModelProto(ir_version=8).SerializeToString()).code == "graph-missing"


def test_nodes_in_any_order_are_sorted_and_a_cycle_is_shown() -> None:
    proto = model(PLAIN)
    nodes = list(proto.graph.node)[::-1]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    assert jumar.load(proto, target="interpreter")(np.array([1, -2], np.float32)).tolist() == [-1, 0]
    proto.graph.node[1].input[0] = "y"
    proto.graph.node[0].name, proto.graph.node[1].name = "first", "second"
    error = fault(proto)
    assert error.code == "graph-cycle" and ("first -> second -> first" in error.what or "second -> first -> second" in error.what)


def test_names_are_written_once_and_read_after() -> None:
    proto = model(PLAIN)
    proto.graph.node[1].output[0] = "a"
    assert fault(proto).code == "name-duplicate"
    proto = model(PLAIN)
    proto.graph.node[1].input[0] = "aa"
    error = fault(proto)
    assert error.code == "name-undefined" and "got 'aa'" in error.what and "did you mean a" in error.hint
    proto = model(PLAIN)
    proto.graph.output[0].name = "z"
    assert fault(proto).code == "name-undefined"


def test_an_error_in_a_node_names_it() -> None:
    m = jumar.load(model("g (float[n] x, float[m] z) => (float[n] y) { y = Add(x, z) }"), target="interpreter")
    with pytest.raises(jumar.base.StackError) as caught:
        m(np.zeros(2, np.float32), np.zeros(3, np.float32))
    assert "Add" in str(caught.value.loc)


@pytest.mark.parametrize("dims", [[2**60], [-1], [2**31, 2**31], [2**40]])
def test_absurd_sizes_are_refused_before_anything_is_allocated(dims: list[int]) -> None:
    proto = model("g (float[n] x) => (float[n] y) { y = Add(x, w) }")
    proto.graph.initializer.append(onnx.TensorProto(name="w", data_type=1, dims=dims, raw_data=b"1234"))
    assert fault(proto, np.zeros(1, np.float32)).code in ("shape-absurd", "tensor-size")
    for op in ("y = Expand(x, s)", "y = ConstantOfShape(s)", "a = Unsqueeze(x, z) \n y = Tile(x, s)"):
        proto = model("g (float[1] x) => (float[n] y) { " + op + " }")
        proto.graph.initializer.append(numpy_helper.from_array(np.array(dims, np.int64), "s"))
        proto.graph.initializer.append(numpy_helper.from_array(np.array([0], np.int64), "z"))
        with pytest.raises(jumar.base.StackError):
            jumar.load(proto, target="interpreter")(np.zeros(1, np.float32))


def test_nan_in_weights_is_noted() -> None:
    proto = model("g (float[n] x) => (float[n] y) { y = Add(x, w) }")
    proto.graph.initializer.append(numpy_helper.from_array(np.array([np.nan], np.float32), "w"))
    m = jumar.load(proto, target="interpreter")
    with recording() as record:
        m(np.zeros(2, np.float32))
    assert [e.facts["tensor"] for e in record.events if e.name == "weights-nan"] == ["w"]
    assert "1 NaN in 'w'" in m.warnings[0]


def test_texts_that_are_no_utf8_are_read_or_refused_wherever_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMAR_CACHE", "1")  # the face of a model goes through JSON
    monkeypatch.setenv("JUMAR_CACHE_DIR", str(tmp_path))
    proto = model("zza (float[zzb] zzc) => (float[zzb] zzd) { zze = Mul(zzc, zzf) \n zzd = LeakyRelu<alpha = 0.5>(zze) }")
    proto.graph.initializer.append(numpy_helper.from_array(np.array([np.nan], np.float32), "zzf"))
    proto.graph.node[0].name, proto.graph.node[1].name, proto.graph.doc_string, proto.producer_name = "zzg", "zzh", "zzi", "zzj"
    proto.graph.value_info.append(onnx.helper.make_tensor_value_info("zze", 1, ["zzb"]))
    proto.metadata_props.add(key="zzk", value="zzl")
    raw = proto.SerializeToString()
    names = [f"zz{c}".encode() for c in "abcdefghijkl"] + [b"alpha", b"LeakyRelu", b"zz"]
    assert all(name in raw for name in names)
    for name in names:
        bad = raw.replace(name, b"\xff\xfe" + name[2:])
        if name == b"LeakyRelu":
            assert "\\xff\\xfe" in fault(bad, np.ones(1, np.float32)).what
            continue
        m = jumar.load(bad, target="interpreter")
        m(np.ones(1, np.float32))
        assert str(m) and m.warnings, name


def test_a_model_larger_than_memory_is_refused_with_the_sizes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(model(PLAIN).SerializeToString())
    monkeypatch.setattr(disk, "available_memory", lambda: 10)
    error = fault(path)
    assert error.code == "memory" and "GiB free" in error.what


# ---- external data ----


def external(folder: Path, location: str, *, data: bytes | None = None, **entries: Any) -> Path:
    proto = model("g (float[4] x) => (float[4] y) { y = Add(x, w) }")
    tensor = onnx.TensorProto(name="w", data_type=1, dims=[4], data_location=onnx.TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    proto.graph.initializer.append(tensor)
    path = folder / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    if data is not None:
        (folder / location).parent.mkdir(exist_ok=True)
        (folder / location).write_bytes(data)
    return path


W = np.array([1, 2, 3, 4], np.float32)


def test_external_data_is_read_from_the_models_folder(tmp_path: Path) -> None:
    x = np.zeros(4, np.float32)
    for location, entries, data in (
        ("w.bin", {}, W.tobytes()),
        ("sub/w.bin", {"offset": 8, "length": 16}, b"12345678" + W.tobytes() + b"rest"),
    ):
        assert jumar.load(external(tmp_path, location, data=data, **entries), target="interpreter")(x).tolist() == W.tolist()


def test_large_external_data_is_mapped(tmp_path: Path) -> None:
    proto = model("g (float[n] x) => (float[n] y) { y = Add(x, w) }")
    big = np.arange(1 << 19, dtype=np.float32)
    tensor = onnx.TensorProto(name="w", data_type=1, dims=[1 << 19], data_location=onnx.TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="w.bin")
    proto.graph.initializer.append(tensor)
    (tmp_path / "w.bin").write_bytes(big.tobytes())
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    np.testing.assert_array_equal(jumar.load(tmp_path / "m.onnx", target="interpreter")(big), big + big)


@pytest.mark.parametrize("location", ["../w.bin", "/etc/hostname", "a/../../w.bin", "", "..\\w.bin", "C:\\w.bin", "\0"])
def test_external_data_outside_the_folder_is_refused(tmp_path: Path, location: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(W.tobytes())
    assert fault(external(folder, location)).code == "external-data-outside"


def test_external_data_behind_a_link_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(W.tobytes())
    (folder / "w.bin").symlink_to(tmp_path / "w.bin")
    assert fault(external(folder, "w.bin")).code == "external-data-outside"
    (folder / "sub").symlink_to(tmp_path)
    assert fault(external(folder, "sub/w.bin")).code == "external-data-outside"


def test_external_data_that_is_missing_or_short_is_named(tmp_path: Path) -> None:
    error = fault(external(tmp_path, "w.bin"))
    assert error.code == "external-data-missing" and "'w'" in error.what and "w.bin" in error.what
    for entries, data in (
        ({}, b"short"),
        ({"offset": 4}, W.tobytes()),
        ({"length": 8}, W.tobytes()),
        ({"offset": -16}, W.tobytes()),
        ({"offset": "x"}, W.tobytes()),
    ):
        assert fault(external(tmp_path, "w.bin", data=data, **entries)).code == "external-data"
    assert fault(external(tmp_path, "w.bin", data=W.tobytes()).read_bytes()).code == "external-data"  # from memory there is no folder


def _with_weights() -> tuple[Any, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    w, v = rng.standard_normal((200, 300), dtype=np.float32), rng.standard_normal((300, 150), dtype=np.float32)
    proto = model("g (float[2, 200] x) => (float[2, 150] y) { a = MatMul(x, w) \n b = Add(a, s) \n y = MatMul(b, v) }")
    for array, name in ((w, "w"), (np.float32([3]), "s"), (v, "v")):
        proto.graph.initializer.append(numpy_helper.from_array(array, name))
    return proto, w, v


def test_large_weights_stay_where_they_are_in_the_file() -> None:
    proto, w, v = _with_weights()
    raw = proto.SerializeToString()
    small, weights = file_module.cut_weights(raw)
    assert len(small) < 2000 and [w.nbytes, v.nbytes] == [len(view) for view in weights.values()]
    assert all(view.obj is raw for view in weights.values())
    read = jumar.load(raw, target="interpreter")
    x = np.ones((2, 200), np.float32)
    np.testing.assert_allclose(read(x), (x @ w + 3) @ v, rtol=1e-4, atol=1e-3)
    assert raw == read._source.content()


def test_a_file_that_is_none_is_left_to_the_parser() -> None:
    proto, *_ = _with_weights()
    raw = proto.SerializeToString()
    for odd in (raw[:-1], raw + raw, b"", b"\xff" * 100, raw[:50]):
        assert (odd, {}) == file_module.cut_weights(odd)
    rng = np.random.default_rng(0)
    for _ in range(300):
        flipped = bytearray(raw)
        flipped[int(rng.integers(0, 200))] ^= 1 << int(rng.integers(0, 8))
        small, weights = file_module.cut_weights(bytes(flipped))
        assert bool(weights) == (small != bytes(flipped))
