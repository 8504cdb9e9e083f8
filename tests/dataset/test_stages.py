"""Stages: batch, map, and those that choose, mix, join and rename."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jumar.dataset as ds
from jumar.dataset.batching import BatchInfo


def rows(dataset: ds.Dataset) -> list[tuple[Any, ...]]:
    return [tuple(v.tolist() for v in row) for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)]


def numbers(count: int, name: str = "x") -> ds.Dataset:
    return ds.NumpySlicesDataset(list(range(count)), [name], shuffle=False)


def four() -> ds.Dataset:
    return ds.GeneratorDataset([(i, i * 1.5, f"s{i}", -i) for i in range(2)], list("abcd"), shuffle=False)


def test_map_puts_columns_where_mindspore_puts_them():
    assert four().map(lambda x, y: x + y, ["b", "d"], ["z"]).get_col_names() == ["z", "a", "c"]
    assert four().map(lambda x: (x, x), ["b"], ["p", "q"]).get_col_names() == ["p", "q", "a", "c", "d"]
    assert four().map(lambda x: x, ["b"], ["p"]).get_col_names() == ["a", "p", "c", "d"]
    assert rows(ds.GeneratorDataset([(1, 2)], ["a", "b"]).map(lambda x: x, ["a"], ["b"])) == [(1,)]
    assert rows(four().map(lambda x: x + 1))[1] == (2, 1.5, "s1", -1)  # the first column where none is named
    assert rows(numbers(2).map([lambda x: (x, x + 1), lambda x, y: x * y], "x")) == [(0,), (2,)]


def test_per_batch_map_is_told_the_batch():
    data = numbers(3).batch(2, per_batch_map=lambda x, info: ([v * 10 + info.get_batch_num() for v in x],), input_columns=["x"])
    assert rows(data) == [([0, 10],), ([21],)]
    data = four().batch(2, per_batch_map=lambda a, info: (np.stack(a), np.stack(a) + 1), input_columns=["a"], output_columns=["u", "v"])
    assert data.get_col_names() == ["u", "v", "b", "c", "d"]
    assert rows(data)[0][:3] == ([0, 1], [1, 2], [0.0, 1.5])
    seen = [
        b.shape[0]
        for (b,) in numbers(6).batch(lambda info: info.get_batch_num() + 1).create_tuple_iterator(num_epochs=1, output_numpy=True)
    ]
    assert seen == [1, 2, 3]
    assert BatchInfo(1, 2).get_epoch_num() == 1
    with pytest.raises(ds.DataFault, match="must return 1 columns, got 2"):
        rows(numbers(2).batch(2, per_batch_map=lambda x, info: (x, x), input_columns=["x"]))


def test_batches_of_texts_and_dicts():
    data = ds.GeneratorDataset([("a", {"n": 1}), ("bcd", {"n": 2})], ["t", "d"], shuffle=False).batch(2)
    ((texts, table),) = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert texts.tolist() == ["a", "bcd"]
    assert table["n"].tolist() == [1, 2]


def test_padded_batches():
    data = ds.GeneratorDataset([np.ones(1), np.ones(3)], ["x"], shuffle=False)
    assert rows(data.padded_batch(2, pad_info={"x": ([4], -1)})) == [([[1, -1, -1, -1], [1, 1, 1, -1]],)]
    assert rows(data.padded_batch(2, pad_info={})) == [([[1, 0, 0], [1, 1, 1]],)]
    assert rows(data.padded_batch(2, pad_info={"x": ([2], 0)})) == [([[1, 0], [1, 1]],)]
    texts = ds.GeneratorDataset([np.array(["a"]), np.array(["b", "c"])], ["x"], shuffle=False)
    assert rows(texts.padded_batch(2, pad_info={"x": ([3], "pad")})) == [([["a", "pad", "pad"], ["b", "c", "pad"]],)]
    with pytest.raises(ds.DataFault, match="one shape"):
        rows(data.batch(2))


def test_buckets_hold_rows_of_like_length():
    data = ds.GeneratorDataset([np.ones(i) for i in (1, 9, 2, 8, 3, 7)], ["x"], shuffle=False)
    data = data.bucket_batch_by_length(["x"], [3, 5], [2, 2, 2], pad_info={"x": ([None], 0)})
    assert [r[0].shape for r in data.create_tuple_iterator(num_epochs=1, output_numpy=True)] == [(2, 2), (2, 9), (1, 3), (1, 7)]


def test_sizes_are_known_or_counted():
    data = numbers(10)
    assert data.batch(3).get_dataset_size() == 4
    assert data.batch(3, drop_remainder=True).get_dataset_size() == 3
    assert data.repeat(3).get_dataset_size() == 30
    assert data.repeat().get_dataset_size() == 10
    assert data.skip(4).get_dataset_size() == 6
    assert data.skip(40).get_dataset_size() == 0
    assert data.take(40).get_dataset_size() == 10
    assert data.filter(lambda x: x < 3).get_dataset_size() == 3
    assert data.zip(numbers(4, "y")).get_dataset_size() == 4
    assert (data + numbers(4)).get_dataset_size() == 14
    assert (data.batch(3).repeat(2).get_batch_size(), data.repeat(2).repeat(3).get_repeat_count()) == (3, 6)


def test_choosing_and_joining():
    assert rows(numbers(6).filter(lambda x: x % 2 == 1, "x")) == [(1,), (3,), (5,)]
    assert rows(numbers(6).skip(1).take(2)) == [(1,), (2,)]
    assert rows(ds.zip((numbers(3), numbers(2, "y")))) == [(0, 0), (1, 1)]
    assert rows(numbers(2) + numbers(1)) == [(0,), (1,), (0,)]
    assert rows(numbers(2).concat([numbers(1), numbers(1)])) == [(0,), (1,), (0,), (0,)]
    assert four().project(["d", "a"]).get_col_names() == ["d", "a"]
    assert four().rename(["d", "a"], ["x", "y"]).get_col_names() == ["y", "b", "c", "x"]
    assert rows(numbers(2).flat_map(lambda x: numbers(int(x) + 1))) == [(0,), (0,), (1,)]
    joined = numbers(3) + numbers(3)
    joined.use_sampler([5, 0, 3])
    assert rows(joined) == [(2,), (0,), (0,)]


def test_split_counts_and_fractions():
    def parts(sizes, count=7):
        return [[r[0] for r in rows(p)] for p in numbers(count).split(sizes, randomize=False)]

    assert parts([0.5, 0.3, 0.2]) == [[0, 1, 2, 3], [4, 5], [6]]
    assert parts([4, 3]) == [[0, 1, 2, 3], [4, 5, 6]]
    with pytest.raises(RuntimeError, match="add up to the 7 rows"):
        parts([4, 2])
    with pytest.raises(ValueError, match="add up to 1"):
        parts([0.5, 0.3])


def test_shuffle_mixes_within_its_buffer():
    seen = [r[0] for r in rows(numbers(100).shuffle(10))]
    assert sorted(seen) == list(range(100))
    assert seen != list(range(100))
    assert all(seen.index(v) >= v - 10 for v in range(100))


def test_callbacks_are_told_of_epochs_and_rows():
    told: list[Any] = []

    class Note(ds.DSCallback):
        def ds_begin(self, ds_run_context):
            told.append("begin")

        def ds_epoch_begin(self, ds_run_context):
            told.append(("epoch", ds_run_context.cur_epoch_num))

        def ds_step_begin(self, ds_run_context):
            told.append(ds_run_context.cur_step_num)

        def ds_epoch_end(self, ds_run_context):
            told.append("end")

    it = numbers(3).map(lambda x: x, "x", callbacks=Note(2)).create_tuple_iterator(num_epochs=2, output_numpy=True)
    for _ in range(2):
        list(it)
    assert told == ["begin", ("epoch", 1), 1, 3, "end", ("epoch", 2), 4, 6, "end"]


def test_one_dataset_may_stand_in_several_trees():
    base = numbers(4)
    assert rows(base.zip(base.rename("x", "y"))) == [(i, i) for i in range(4)]
    assert rows(base.take(1)) == [(0,)]


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: numbers(2).batch(0), "batch_size must be within"),
        (lambda: numbers(2).repeat(0), "count must be -1 or positive"),
        (lambda: numbers(2).take(0), "count must be -1 or positive"),
        (lambda: numbers(2).skip(-1), "count must be within"),
        (lambda: numbers(2).shuffle(1), "buffer_size must be within"),
        (lambda: rows(numbers(2).map(lambda x: x, "nope")), r"among \['x'\], got 'nope'"),
        (lambda: rows(numbers(2).map(lambda x: (x, x), "x")), "1 columns, got 2"),
        (lambda: rows(numbers(2).map(lambda x: None, "x")), "got None"),
        (lambda: rows(numbers(2).filter(lambda x: "yes", "x")), "must return a bool"),
        (lambda: rows(numbers(2).zip(numbers(2))), "each column once"),
        (lambda: rows(numbers(2) + numbers(2, "y")), "must have the columns"),
        (lambda: numbers(2).rename(["x", "y"], ["a"]), "as many as"),
        (lambda: rows(numbers(2).rename("q", "x")), "got 'q'"),
        (lambda: numbers(2).apply(lambda d: None), "must return a Dataset"),
        (lambda: numbers(2).device_que(), "device queue"),
        (lambda: numbers(2).create_dict_iterator(num_epochs=0), "num_epochs"),
        (lambda: numbers(2).report(), "must have been iterated"),
        (lambda: numbers(2).restore("text"), "must be a Position"),
        (lambda: numbers(2).take(1).use_sampler([0]), "on a source"),
    ],
)
def test_what_is_wrong_is_said(make, words):
    with pytest.raises((ds.DataFault, TypeError), match=words):
        make()


def test_functions_with_global_random_numbers_stay_in_order():
    import time

    def draw(x):
        time.sleep(0.0005)
        return np.random.rand()

    def values():
        np.random.seed(1)
        return rows(numbers(30).map(draw, "x"))

    assert values() == values()
