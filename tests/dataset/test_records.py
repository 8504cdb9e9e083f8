"""MindRecord: what is written is read, MindSpore's own file too, and damage is told."""

from __future__ import annotations

import base64
import lzma
from pathlib import Path

import numpy as np
import pytest

import jumar.dataset as ds
from jumar.dataset.recordcode import pack, pack_integers, unpack, unpack_integers
from jumar.mindrecord import FileReader, FileWriter

SCHEMA = {
    "id": {"type": "int32"}, "name": {"type": "string"}, "f": {"type": "float64"}, "data": {"type": "bytes"},
    "vec": {"type": "float32", "shape": [-1]}, "mat": {"type": "int64", "shape": [2, -1]},
}  # fmt: skip
ROWS = [
    {"id": i, "name": f"né{i}", "f": i / 3, "data": bytes([i] * (i + 1)), "vec": np.arange(i + 1, dtype=np.float32),
     "mat": np.arange(4).reshape(2, 2) * 70000 ** (i % 3) - i}
    for i in range(5)
]  # fmt: skip


def write(path: Path, shards: int = 1, page: int | None = None) -> str:
    writer = FileWriter(str(path), shards)
    if page:
        writer.set_page_size(page)
    writer.add_schema(SCHEMA, "five rows")
    writer.add_index(["id"])
    writer.write_raw_data(ROWS)
    writer.commit()
    return str(path) + ("0" if shards > 1 else "")


def check(data: ds.Dataset, expected=ROWS) -> None:
    found = list(data.create_dict_iterator(num_epochs=1, output_numpy=True))
    assert len(found) == len(expected)
    for row, want in zip(found, expected):
        assert list(row) == sorted(SCHEMA)
        assert (int(row["id"]), str(row["name"]), float(row["f"])) == (want["id"], want["name"], want["f"])
        assert row["data"].shape == (1,) and row["data"].tobytes() == want["data"]
        for name in ("vec", "mat"):
            assert np.array_equal(row[name], want[name]) and row[name].dtype == want[name].dtype


@pytest.mark.parametrize("shards, page", [(1, None), (3, None), (1, 1 << 15)])
def test_what_is_written_is_read(tmp_path, shards, page):
    check(ds.MindDataset(write(tmp_path / "a.mindrecord", shards, page), shuffle=False))


def test_mindspore_reads_what_we_write(tmp_path):
    real = pytest.importorskip("mindspore.dataset")
    check(real.MindDataset(write(tmp_path / "a.mindrecord", 2), shuffle=False))


def test_we_read_what_mindspore_writes(tmp_path):
    for name in ("real.mindrecord", "real.mindrecord.db"):
        (tmp_path / name).write_bytes(lzma.decompress(base64.b64decode((Path(__file__).parent / f"{name}.xz.b64").read_text())))
    check(ds.MindDataset(str(tmp_path / "real.mindrecord"), shuffle=False))


def test_many_pages(tmp_path):
    writer = FileWriter(str(tmp_path / "a"))
    writer.set_page_size(1 << 15)
    writer.add_schema({"x": {"type": "float32", "shape": [-1]}, "k": {"type": "int32"}})
    for i in range(40):
        writer.write_raw_data([{"x": np.full(i * 100, i, np.float32), "k": i}])
    writer.commit()
    for k, x in ds.MindDataset(str(tmp_path / "a"), shuffle=False).create_tuple_iterator(num_epochs=1, output_numpy=True):
        assert np.array_equal(x, np.full(int(k) * 100, k, np.float32))


def test_columns_shards_and_padding(tmp_path):
    path = write(tmp_path / "a")
    assert ds.MindDataset(path, ["name", "id"]).get_col_names() == ["name", "id"]
    seen = [
        [int(r[0]) for r in ds.MindDataset(
            path, ["id"], shuffle=False, num_shards=3, shard_id=i, padded_sample={"id": -1}, num_padded=1
        ).create_tuple_iterator(num_epochs=1, output_numpy=True)]
        for i in range(3)
    ]  # fmt: skip
    assert seen == [[0, 3], [1, 4], [2, -1]]
    shuffled = [int(r[0]) for r in ds.MindDataset(path, ["id"]).create_tuple_iterator(num_epochs=1, output_numpy=True)]
    assert sorted(shuffled) == list(range(5))


def test_file_reader(tmp_path):
    reader = FileReader(write(tmp_path / "a"), columns=["data", "id"])
    assert list(reader.get_next())[3] == {"data": b"\3\3\3\3", "id": 3}
    assert reader.len() == 5 and reader.schema()["mat"] == {"type": "int64", "shape": [2, -1]}
    reader.close()


def test_a_dataset_is_saved_and_read(tmp_path):
    data = ds.GeneratorDataset([(i, np.full(i + 1, i, np.uint8), f"t{i}") for i in range(6)], ["n", "x", "t"], shuffle=False)
    data.save(str(tmp_path / "saved"), 2)
    again = ds.MindDataset(str(tmp_path / "saved0"), shuffle=False)
    found = sorted((int(n), str(t), x.tolist()) for n, t, x in again.create_tuple_iterator(num_epochs=1, output_numpy=True))
    assert found == [(i, f"t{i}", [i] * (i + 1)) for i in range(6)]


def test_codes_go_both_ways():
    for value in ({"a": -33, "b": 1 << 40, "c": -(1 << 40), "d": 0.1, "e": "x" * 300, "f": 70000, "g": -200, "h": 255},):
        assert unpack(pack(value)) == value
    draws = np.random.default_rng(0)
    for bits in (7, 15, 31, 62):
        values = draws.integers(-(1 << bits), 1 << bits, 101)
        assert np.array_equal(unpack_integers(pack_integers(values), "int64"), values)
    mixed = np.array([1, 300, 70000, -1, 2, -300, 1 << 50, 5, 6, 7])
    assert np.array_equal(unpack_integers(pack_integers(mixed), "int64"), mixed)
    assert len(unpack_integers(pack_integers(np.array([], np.int64)), "int64")) == 0
    with pytest.raises(ds.DataFault, match="MessagePack"):
        unpack(b"\xd9")


def test_damage_is_told(tmp_path):
    path = write(tmp_path / "a")
    whole = Path(path).read_bytes()
    Path(path).write_bytes(whole[:-20])
    with pytest.raises(ds.DataFault, match="cut short"):
        list(ds.MindDataset(path, shuffle=False).create_tuple_iterator(num_epochs=1, output_numpy=True))
    Path(path).write_bytes(b"\xff" * 100)
    with pytest.raises(ds.DataFault, match="must start with a header"):
        ds.MindDataset(path)
    Path(path).write_bytes(whole)
    Path(path + ".db").write_bytes(b"no database, but long enough to be looked at as one")
    with pytest.raises(ds.DataFault, match="must be an index"):
        ds.MindDataset(path)
    Path(path + ".db").unlink()
    with pytest.raises(ds.DataFault, match=r"\.db must be there"):
        ds.MindDataset(path)


def test_nothing_is_left_of_a_file_that_was_not_committed(tmp_path):
    writer = FileWriter(str(tmp_path / "a"))
    writer.add_schema(SCHEMA)
    writer.write_raw_data(ROWS)
    del writer
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "row, words",
    [
        ({}, "none for"),
        ({"n": 1.5, "x": np.zeros(2, np.float32)}, "column 'n' must be int32, got 1.5"),
        ({"n": 1 << 40, "x": np.zeros(2, np.float32)}, "must be int32"),
        ({"n": 1, "x": np.zeros(3, np.float32)}, "shape"),
        ({"n": 1, "x": np.zeros(2)}, "array of float32, got float64"),
    ],
)
def test_rows_that_do_not_fit_are_refused(tmp_path, row, words):
    writer = FileWriter(str(tmp_path / "a"))
    writer.add_schema({"n": {"type": "int32"}, "x": {"type": "float32", "shape": [2]}})
    with pytest.raises(ds.DataFault, match=words):
        writer.write_raw_data([row])
