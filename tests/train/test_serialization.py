"""Checkpoints: what goes in comes out, in MindSpore's bytes; damaged files are refused; a crash leaves the old file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.base import StackError
from jumar.frontend import Parameter, Tensor
from jumar.frontend.random import Generator
from jumar.train import (
    async_ckpt_thread_status,
    ckpt_to_safetensors,
    load_checkpoint,
    load_checkpoint_async,
    safetensors_to_ckpt,
    save_checkpoint,
)
from jumar.train.ckpt import read_entries, write_ckpt
from jumar.train.files import replacing, sweep

# written by MindSpore 2.10: save_checkpoint({"a.w": f32[2, 3], "s": f32, "b": bf16[2]}, append_dict={"epoch": 3, "name": "hä"})
FROM_MINDSPORE = bytes.fromhex(
    "0a2e0a03612e77122708020803" + "1207" + b"Float32".hex() + "1a18" + np.arange(6, dtype="<f4").tobytes().hex()
    + "0a140a0173120f1207" + b"Float32".hex() + "1a040000c03f"
    + "0a170a0162" + "1212" + "0802" + "1208" + b"BFloat16".hex() + "1a04" + "803f0040"
    + "0a1a0a0565706f6368" + "1211" + "1205" + b"Int64".hex() + "1a08" + "0300000000000000"
    + "0a190a046e616d65" + "1211" + "0800" + "1203" + b"str".hex() + "1a0868000000e4000000"
)  # fmt: skip
KINDS = ["f4", "f2", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?", "c8", ml_dtypes.bfloat16]


def some() -> dict[str, Parameter]:
    rng = np.random.default_rng(0)
    found = {f"layer.{i}": Parameter(rng.integers(0, 2, (2, i + 1)).astype(k)) for i, k in enumerate(KINDS)}
    return found | {
        "scalar": Parameter(np.float32(2.5)),
        "none": Parameter(np.zeros((0, 3), np.float32)),
        "one": Parameter(np.ones(1, np.int64)),
    }


def same(a: dict[str, Parameter], b: dict[str, Parameter]) -> None:
    assert sorted(a) == sorted(b)
    for name, value in a.items():
        assert (value.dtype, value.shape, name) == (b[name].dtype, b[name].shape, b[name].name)
        assert value.asnumpy().tobytes() == b[name].asnumpy().tobytes()


def test_a_file_of_mindspore_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.ckpt").write_bytes(FROM_MINDSPORE)
    found = load_checkpoint(str(tmp_path / "a.ckpt"))
    assert found["name"] == "hä"
    assert found["s"].shape == () and found["s"].asnumpy() == 1.5
    assert found["epoch"].asnumpy() == 3
    assert found["b"].asnumpy().tolist() == [1.0, 2.0] and str(found["b"].dtype) == "BFloat16"
    assert found["a.w"].asnumpy().tolist() == [[0, 1, 2], [3, 4, 5]]


def test_the_bytes_written_are_those_of_mindspore(tmp_path: Path) -> None:
    path = str(tmp_path / "a.ckpt")
    first = {"a.w": Parameter(np.arange(6, dtype=np.float32).reshape(2, 3)), "s": Parameter(np.float32(1.5))}
    save_checkpoint(first | {"b": Parameter(np.array([1, 2], ml_dtypes.bfloat16))}, path, append_dict={"epoch": 3, "name": "hä"})
    assert Path(path).read_bytes() == FROM_MINDSPORE


@pytest.mark.parametrize("kind", ["ckpt", "safetensors"])
@pytest.mark.parametrize("crc", [False, True])
@pytest.mark.parametrize("background", [False, True])
def test_what_is_saved_is_loaded(tmp_path: Path, kind: str, crc: bool, background: bool) -> None:
    params = some()
    path = str(tmp_path / f"a.{kind}")
    save_checkpoint(params, path, format=kind, crc_check=crc, async_save=background)
    while async_ckpt_thread_status():
        pass
    same(params, load_checkpoint(path, crc_check=crc, format=kind))
    assert os.listdir(tmp_path) == [f"a.{kind}"]


def test_large_values_stand_in_slices(tmp_path: Path) -> None:
    value = np.arange(1000, dtype=np.int32).reshape(10, 100)
    with open(tmp_path / "a.ckpt", "wb") as file:
        write_ckpt(file, [("w", value), ("v", value)], slice_nbytes=700)
    with open(tmp_path / "a.ckpt", "rb") as file:
        assert len(read_entries("a.ckpt", file)["w"].pieces) == 6
    found = load_checkpoint(str(tmp_path / "a.ckpt"))
    assert np.array_equal(found["w"].asnumpy(), value) and np.array_equal(found["v"].asnumpy(), value)


def test_a_generator_is_appended_by_its_state(tmp_path: Path) -> None:
    generator = Generator().manual_seed(7)
    save_checkpoint({}, str(tmp_path / "a.ckpt"), append_dict={"g": generator})
    other = Generator()
    other.set_state(load_checkpoint(str(tmp_path / "a.ckpt"))["g"].asnumpy())
    assert other.initial_seed() == 7


def test_lists_choices_and_prefixes(tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    params = [Parameter(np.full(2, i, np.float32), name=n) for i, n in enumerate(("conv1.w", "conv2.w", "fc.w"))]
    save_checkpoint(params, path, choice_func=lambda n: n != "fc.w")
    path += ".ckpt"
    assert list(load_checkpoint(path)) == ["conv1.w", "conv2.w"]
    assert list(load_checkpoint(path, choice_func=lambda n: "2" in n)) == ["conv2.w"]
    assert list(load_checkpoint(path, specify_prefix="conv1")) == ["conv1.w"]
    assert list(load_checkpoint(path, filter_prefix=["conv1"])) == ["conv2.w"]
    assert list(load_checkpoint_async(path).result()) == ["conv1.w", "conv2.w"]
    save_checkpoint([{"name": "x", "data": Tensor([1.0])}], path)
    assert list(load_checkpoint(path)) == ["x"]
    with pytest.raises(StackError, match="value that is wanted, got none"):
        load_checkpoint(path, choice_func=lambda n: False)


def test_formats_are_converted(tmp_path: Path) -> None:
    params = some()
    save_checkpoint(params, str(tmp_path / "a.ckpt"))
    ckpt_to_safetensors(str(tmp_path / "a.ckpt"), str(tmp_path / "out"), name_map={"one": "uno"})
    safetensors_to_ckpt(str(tmp_path / "out" / "a.safetensors"))
    params["uno"] = params.pop("one")
    same(params, load_checkpoint(str(tmp_path / "out" / "a.ckpt")))


def test_the_reference_package_reads_our_safetensors(tmp_path: Path) -> None:
    theirs = pytest.importorskip("safetensors.numpy")
    params = {n: p for n, p in some().items() if str(p.dtype) not in ("BFloat16", "Complex64")}
    save_checkpoint(params, str(tmp_path / "a.safetensors"), format="safetensors")
    found = theirs.load_file(str(tmp_path / "a.safetensors"))
    assert all(np.array_equal(found[n], params[n].asnumpy()) for n in params)


def test_a_flipped_bit_fails_the_checksum(tmp_path: Path) -> None:
    for kind in ("ckpt", "safetensors"):
        path = tmp_path / f"a.{kind}"
        save_checkpoint({"w": Parameter(np.ones(50, np.float32))}, str(path), format=kind, crc_check=True)
        raw = bytearray(path.read_bytes())
        raw[-60] ^= 4
        path.write_bytes(bytes(raw))
        assert "w" in load_checkpoint(str(path), format=kind)
        with pytest.raises(ValueError, match="checksum"):
            load_checkpoint(str(path), format=kind, crc_check=True)


def test_encrypted_files_are_refused(tmp_path: Path) -> None:
    for magic in ("d85e3a7f", "d95e3a7f", "da5e3a7f"):
        (tmp_path / "e.ckpt").write_bytes(bytes.fromhex(magic + "e800000010000000690b87bb") + bytes(100))
        with pytest.raises(StackError, match="encrypted"):
            load_checkpoint(str(tmp_path / "e.ckpt"))
    with pytest.raises(StackError, match="does not encrypt"):
        save_checkpoint(some(), str(tmp_path / "a.ckpt"), enc_key=b"0" * 16)


@pytest.mark.parametrize(
    "raw, text",
    [
        (b"\x0a\x7f", "must be complete"),
        (b"\x80\x04\x95pickle", "must be a MindSpore checkpoint"),
        (b"PK\x03\x04zip of torch", "must be a MindSpore checkpoint"),
        (b"\x0a" + b"\xff" * 11, "ten bytes"),
        (b"\x0a\x03\x0a\x01w", "a name and a tensor"),
        (b"\x0a\x0c\x0a\x01w\x12\x07\x12\x05Int64", "a type and a content"),
        (b"\x0a\x19\x0a\x01w\x12\x14\x08\x80\x80\x80\x80\x80\x08\x12\x07Float32\x1a\x02\0\0", "must hold 1099511627776 bytes"),
        (b"\x0a\x1b\x0a\x01w\x12\x16\x08" + b"\xff" * 9 + b"\x01\x12\x05Int64\x1a\x02\0\0", "not negative"),
        (b"\x0a\x11\x0a\x01w\x12\x0c\x12\x06Object\x1a\x02\0\0", "element type"),
    ],
)
def test_hostile_files_are_refused(tmp_path: Path, raw: bytes, text: str) -> None:
    (tmp_path / "a.ckpt").write_bytes(raw)
    with pytest.raises(StackError, match=text):
        load_checkpoint(str(tmp_path / "a.ckpt"))


@pytest.mark.parametrize(
    "table, text",
    [
        ('{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', "twice"),
        ('{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}', "must hold 8 bytes"),
        ('{"w":{"dtype":"F32","shape":[99999999999],"data_offsets":[0,399999999996]}}', "must lie in the file"),
        (
            '{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"v":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
            "follow one another",
        ),
        ('{"w":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}}', "element type"),
        ('{"w":{"dtype":"F32","shape":[true],"data_offsets":[0,4]}}', "must have dtype"),
        ("[" * 100000, "must be JSON"),
        ('{"w":', "must be JSON"),
    ],
)
def test_hostile_safetensors_are_refused(tmp_path: Path, table: str, text: str) -> None:
    (tmp_path / "a.safetensors").write_bytes(len(table).to_bytes(8, "little") + table.encode() + bytes(4))
    with pytest.raises(StackError, match=text):
        load_checkpoint(str(tmp_path / "a.safetensors"))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_damage_is_refused_or_harmless(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    kind = data.draw(st.sampled_from(["ckpt", "safetensors"]))
    path = folder / f"a.{kind}"
    save_checkpoint({"a": Parameter(np.ones((2, 3), np.float32)), "b": Parameter(np.ones(2, bool))}, str(path), format=kind)
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        match data.draw(st.sampled_from(["flip", "cut", "insert"])):
            case "flip":
                raw[at] = data.draw(st.integers(0, 255))
            case "cut" if at:
                del raw[at:]
            case _:
                raw[at:at] = data.draw(st.binary(min_size=1, max_size=12))
    path.write_bytes(bytes(raw))
    try:
        load_checkpoint(str(path))
    except StackError:
        pass


def test_a_failed_save_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.ckpt"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), replacing(path) as file:
        file.write(bytes(3 // (path.stat().st_size - 3)))
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["a.ckpt"]


def test_a_killed_save_leaves_the_old_file_and_is_swept(tmp_path: Path) -> None:
    path = tmp_path / "a.ckpt"
    path.write_bytes(b"old")
    code = f"import os\nfrom jumar.train.files import replacing\nwith replacing({str(path)!r}) as f:\n    f.write(b'half'); f.flush(); os.kill(os.getpid(), 9)"
    source = str(Path(__file__).resolve().parents[2] / "src")
    subprocess.run([sys.executable, "-c", code], check=False, env=os.environ | {"PYTHONPATH": source})
    assert path.read_bytes() == b"old" and len(os.listdir(tmp_path)) == 2
    sweep(str(tmp_path))
    assert os.listdir(tmp_path) == ["a.ckpt"]


def test_an_error_in_the_background_is_raised_by_the_next_save(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    save_checkpoint(some(), str(folder / "a.ckpt"), async_save=True)
    with pytest.raises(FileNotFoundError):
        save_checkpoint(some(), str(tmp_path / "a.ckpt"))
    save_checkpoint(some(), str(tmp_path / "a.ckpt"))


def test_arguments_are_checked(tmp_path: Path) -> None:
    path = str(tmp_path / "a.ckpt")
    with pytest.raises(TypeError, match="save_obj must be a Cell, a list or a dict, got int"):
        save_checkpoint(3, path)
    with pytest.raises(ValueError, match="format must be"):
        save_checkpoint(some(), path, format="npz")
    with pytest.raises(TypeError, match="append_dict must hold"):
        save_checkpoint(some(), path, append_dict={"x": [1]})
    with pytest.raises(ValueError, match="file must exist, got no file"):
        load_checkpoint(path)
    with pytest.raises(IsADirectoryError):
        save_checkpoint(some(), str(tmp_path))
