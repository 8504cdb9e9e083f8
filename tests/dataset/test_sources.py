"""Sources and samplers: files in the forms in which data sets come, and what Python gives."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jumar.dataset as ds


def rows(dataset: ds.Dataset) -> list[tuple[Any, ...]]:
    return [tuple(v.tolist() for v in row) for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)]


def test_values_get_the_types_that_mindspore_gives_them():
    (row,) = ds.GeneratorDataset([(np.array([1]), 1.5, "text", 7, b"ab", np.float32(2), True)], list("abcdefg")).create_tuple_iterator(
        num_epochs=1, output_numpy=True
    )
    assert [(v.dtype.str, v.shape) for v in row] == [
        ("<i8", (1,)), ("<f8", ()), ("<U4", ()), ("<i8", ()), ("|S2", ()), ("<f4", ()), ("|b1", ()),
    ]  # fmt: skip


def test_iterables_functions_and_generators_start_anew_each_epoch():
    def generate():
        yield from ((i,) for i in range(3))

    class Again:
        def __iter__(self):
            self.at = 0
            return self

        def __next__(self):
            self.at += 1
            if self.at > 3:
                raise StopIteration
            return (self.at - 1,)

    for source in (generate, generate(), Again(), lambda: iter([(0,), (1,), (2,)]), iter([(0,), (1,), (2,)])):
        data = ds.GeneratorDataset(source, ["x"])
        assert data.get_dataset_size() == 3
        assert [r[0] for r in rows(data.repeat(2))] == [0, 1, 2, 0, 1, 2]


def test_an_operation_that_writes_into_its_input_does_not_change_the_source():
    source = np.arange(4)

    def spoil(x):
        x += 100
        return x

    for make in (lambda: ds.NumpySlicesDataset(source, ["x"], shuffle=False), lambda: ds.GeneratorDataset([source], ["x"])):
        data = make().map(spoil, "x")
        assert rows(data) == rows(data)
    assert source.tolist() == [0, 1, 2, 3]


def test_batch_sampler_and_collate():
    data = ds.GeneratorDataset(list(range(4)), ["x"], batch_sampler=[[0, 1], [3, 2]], collate_fn=lambda items: (np.array(items) * 2,))
    assert rows(data) == [([0, 2],), ([6, 4],)]
    assert data.get_dataset_size() == 2


@pytest.mark.parametrize(
    "sampler, expected",
    [
        (ds.SequentialSampler(2, 3), [2, 3, 4]),
        (ds.SubsetSampler([3, 1]), [3, 1]),
        ([4, 2, 0], [4, 2, 0]),
        (ds.DistributedSampler(2, 0, shuffle=False), [0, 2, 4, 6]),
        (ds.DistributedSampler(3, 2, shuffle=False), [2, 5, 1]),
        (ds.DistributedSampler(4, 0, shuffle=False, offset=2), [2, 6]),
    ],
)
def test_samplers(sampler, expected):
    data = ds.GeneratorDataset(list(range(7)), ["x"], sampler=sampler)
    assert [r[0] for r in rows(data)] == expected
    assert data.get_dataset_size() == len(expected)


def test_samplers_draw_as_they_say():
    weights = [0, 1, 0, 3]
    drawn = ds.WeightedRandomSampler(weights, 4000).order(4, 1, 0)
    assert set(drawn.tolist()) == {1, 3}
    assert 0.7 < (drawn == 3).mean() < 0.8
    assert sorted(ds.WeightedRandomSampler(weights, 2, replacement=False).order(4, 1, 0).tolist()) == [1, 3]
    assert sorted(ds.SubsetRandomSampler([5, 3, 1]).order(9, 1, 0).tolist()) == [1, 3, 5]
    outer = ds.SubsetSampler([1, 0])
    outer.add_child(ds.SequentialSampler(2, 4))
    assert [r[0] for r in rows(ds.GeneratorDataset(list(range(7)), ["x"], sampler=outer))] == [3, 2]

    class Even(ds.Sampler):
        def __iter__(self):
            yield from range(0, self.dataset_size, 2)

    assert [r[0] for r in rows(ds.GeneratorDataset(list(range(7)), ["x"], sampler=Even()))] == [0, 2, 4, 6]
    with pytest.raises(ds.DataValueFault, match=r"within \[0, 7\), got 9"):
        rows(ds.GeneratorDataset(list(range(7)), ["x"], sampler=[9]))
    with pytest.raises(ds.DataValueFault, match="stand alone"):
        ds.GeneratorDataset([1], ["x"], sampler=[0], shuffle=True)


def test_shards_cover_all_rows_once_more_or_less():
    seen = [r[0] for i in range(3) for r in rows(ds.NumpySlicesDataset(list(range(10)), num_shards=3, shard_id=i))]
    assert set(seen) == set(range(10))
    assert len(seen) == 12


def test_image_folder(tmp_path):
    for name in ("b", "a", "C10", "C2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").write_bytes(name.encode())
    (tmp_path / "a" / "0.JPG").write_bytes(b"first")
    (tmp_path / "a" / "notes.txt").write_bytes(b"no picture")
    data = ds.ImageFolderDataset(str(tmp_path), shuffle=False)
    assert data.get_class_indexing() == {"C10": 0, "C2": 1, "a": 2, "b": 3}
    assert (data.num_classes(), data.get_dataset_size(), data.get_col_names()) == (4, 5, ["image", "label"])
    found = list(data.create_tuple_iterator(num_epochs=1, output_numpy=True))
    assert [(i.tobytes(), int(n), i.dtype, n.dtype) for i, n in found][2:4] == [
        (b"first", 2, np.uint8, np.int32),
        (b"a", 2, np.uint8, np.int32),
    ]
    chosen = ds.ImageFolderDataset(str(tmp_path), shuffle=False, class_indexing={"b": 7}, extensions=[".png"])
    assert [int(r[1]) for r in chosen.create_tuple_iterator(num_epochs=1, output_numpy=True)] == [7]
    each = ds.ImageFolderDataset(str(tmp_path), sampler=ds.PKSampler(2))
    assert [int(r[1]) for r in each.create_tuple_iterator(num_epochs=1, output_numpy=True)] == [0, 0, 1, 1, 2, 2, 3, 3]
    with pytest.raises(ValueError, match="must be a folder"):
        ds.ImageFolderDataset(str(tmp_path / "none"))


def test_cifar(tmp_path):
    draws = np.random.RandomState(0)
    records = draws.randint(0, 256, (6, 3073)).astype(np.uint8)
    (tmp_path / "data_batch_1.bin").write_bytes(records[:4].tobytes())
    (tmp_path / "test_batch.bin").write_bytes(records[4:].tobytes())
    data = ds.Cifar10Dataset(str(tmp_path), "train", shuffle=False)
    found = list(data.create_tuple_iterator(num_epochs=1, output_numpy=True))
    assert len(found) == 4 and ds.Cifar10Dataset(str(tmp_path)).get_dataset_size() == 6
    assert np.array_equal(found[1][0], records[1, 1:].reshape(3, 32, 32).transpose(1, 2, 0))
    assert found[1][1] == records[1, 0] and found[1][1].dtype == np.uint32
    (tmp_path / "train.bin").write_bytes(draws.randint(0, 100, (3, 3074)).astype(np.uint8).tobytes())
    assert ds.Cifar100Dataset(str(tmp_path), "train").get_col_names() == ["image", "coarse_label", "fine_label"]
    (tmp_path / "test_batch.bin").write_bytes(b"short")
    with pytest.raises(ds.DataFault, match="records of 3073 bytes"):
        rows(ds.Cifar10Dataset(str(tmp_path), "test"))


@pytest.mark.parametrize("packed", [False, True])
def test_mnist(tmp_path, packed):
    draws = np.random.RandomState(0)
    for name, count in (("train", 5), ("t10k", 3)):
        images = struct.pack(">4i", 2051, count, 28, 28) + draws.bytes(count * 784)
        labels = struct.pack(">2i", 2049, count) + bytes(range(count))
        for kind, data in ((f"{name}-images-idx3-ubyte", images), (f"{name}-labels-idx1-ubyte", labels)):
            (tmp_path / (kind + (".gz" if packed else ""))).write_bytes(gzip.compress(data) if packed else data)
    found = list(ds.MnistDataset(str(tmp_path), shuffle=False).create_tuple_iterator(num_epochs=1, output_numpy=True))
    assert [int(n) for _, n in found] == [0, 1, 2, 0, 1, 2, 3, 4]
    assert found[0][0].shape == (28, 28, 1) and found[0][0].dtype == np.uint8 and found[0][1].dtype == np.uint32
    assert ds.FashionMnistDataset(str(tmp_path), "test").get_dataset_size() == 3
    with pytest.raises(ds.DataValueFault, match="usage must be one of"):
        ds.MnistDataset(str(tmp_path), "valid")


def test_text_files(tmp_path):
    (tmp_path / "a.txt").write_text("hello\n\n  wörld \nlast", encoding="utf-8")
    (tmp_path / "b.txt").write_bytes(b"second\r\nx\n")
    data = ds.TextFileDataset([str(tmp_path / "b.txt"), str(tmp_path / "a.txt")], shuffle=False)
    assert [r[0] for r in rows(data)] == ["hello", "  wörld ", "last", "second\r", "x"]
    assert data.get_dataset_size() == 5
    assert len(rows(ds.TextFileDataset(str(tmp_path / "*.txt"), num_shards=2, shard_id=1))) == 3
    (tmp_path / "c.txt").write_bytes(b"\xff\xfe\n")
    with pytest.raises(ds.DataFault, match="must be UTF-8"):
        rows(ds.TextFileDataset(str(tmp_path / "c.txt")))


def test_csv_files(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('x,y,z\n1,"a, ""b""\nc",2.5\n\n3,c,\n', encoding="utf-8")
    assert rows(ds.CSVDataset(str(path), shuffle=False)) == [("1", 'a, "b"\nc', "2.5"), ("3", "c", "")]
    typed = ds.CSVDataset(str(path), column_defaults=[0, "", 9.0], shuffle=False)
    assert rows(typed) == [(1, 'a, "b"\nc', 2.5), (3, "c", 9.0)]
    assert [t.str for t in typed.output_types()] == ["<i4", "<U0", "<f4"]
    assert len(rows(ds.CSVDataset(str(path), column_names=["p", "q", "r"]))) == 3
    path.write_text("x,y\n1,2,3\n")
    with pytest.raises(ds.DataFault, match="2 fields"):
        rows(ds.CSVDataset(str(path)))
    path.write_text("x\nnope\n")
    with pytest.raises(ds.DataFault, match="column 'x' must be int32, got 'nope'"):
        rows(ds.CSVDataset(str(path), column_defaults=[0]))


def test_rows_that_are_given_fill_up_shards():
    padding = ds.PaddedDataset([{"x": np.array(100)}, {"x": np.array(200)}])
    seen = []
    for i in range(4):
        data = ds.NumpySlicesDataset([0, 1, 2], ["x"], shuffle=False) + padding
        data.use_sampler(ds.DistributedSampler(4, i, shuffle=False))
        seen.append([r[0] for r in rows(data)])
    assert seen == [[0, 200], [1], [2], [100]]


def test_a_cache_reads_each_row_once(tmp_path):
    cache = ds.DatasetCache(1)
    (tmp_path / "a").mkdir()
    for i in range(3):
        (tmp_path / "a" / f"{i}.png").write_bytes(bytes([i]))
    data = ds.ImageFolderDataset(str(tmp_path), cache=cache, shuffle=False)
    first = rows(data)
    for path in Path(tmp_path / "a").iterdir():
        path.write_bytes(b"changed")
    assert rows(data) == first
    assert (cache.hits, cache.get_stat()["num_mem_cached"]) == (3, 3)


def test_random_and_fake_data_follow_from_their_seeds():
    schema = ds.Schema()
    schema.add_column("x", np.float32, [2, 3])
    schema.add_column("n", np.int32, [])
    data = ds.RandomDataset(5, schema)
    assert rows(data) == rows(data)
    assert data.output_shapes() == [[2, 3], []]
    fake = ds.FakeImageDataset(4, (8, 8, 3), shuffle=False)
    assert rows(fake) == rows(fake) and fake.output_shapes() == [[8, 8, 3], []]


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: ds.GeneratorDataset([1], None), "column_names must name"),
        (lambda: ds.GeneratorDataset(5, ["x"]), "source must be iterable"),
        (lambda: rows(ds.GeneratorDataset([(1, 2)], ["x"])), "1 values for the columns"),
        (lambda: rows(ds.GeneratorDataset([None], ["x"])), "got None"),
        (lambda: rows(ds.GeneratorDataset([[1]], ["x"])), "got a list"),
        (lambda: rows(ds.GeneratorDataset([1], ["x"], column_types=[np.float32])), "column 'x' must be float32, got int64"),
        (lambda: ds.NumpySlicesDataset(([1], [1, 2])), "one length"),
        (lambda: ds.GeneratorDataset(iter([1]), ["x"], num_shards=2, shard_id=0), "__getitem__"),
        (lambda: ds.NumpySlicesDataset([1], num_shards=2), "together"),
    ],
)
def test_what_is_wrong_is_said(make, words):
    with pytest.raises(ds.DataFault, match=words):
        make()


def test_shards_draw_different_random_numbers():
    def drawn(i: int) -> list:
        data = ds.NumpySlicesDataset([0] * 8, ["x"], num_shards=2, shard_id=i)
        return rows(data.map(lambda x: x + ds.row_generator().integers(1 << 40), "x"))

    assert drawn(0) == drawn(0) != drawn(1)


def test_sources_that_are_missing_say_so_when_they_are_made():
    from jumar.dataset import CocoDataset

    with pytest.raises(ds.DataFault, match="CocoDataset: is not supported"):
        CocoDataset("folder", "file")
    with pytest.raises(AttributeError, match="NoSuchDataset"):
        ds.NoSuchDataset  # noqa: B018


def test_the_size_of_an_iterable_is_asked_and_costs_no_pass():
    class Counting:
        passes = 0

        def __len__(self):
            return 4

        def __iter__(self):
            self.passes += 1
            return iter([(self.passes * 10 + i,) for i in range(4)])

    dataset = ds.GeneratorDataset(Counting(), ["a"], shuffle=False).batch(2)
    assert dataset.get_dataset_size() == 2
    assert rows(dataset) == [([10, 11],), ([12, 13],)]
