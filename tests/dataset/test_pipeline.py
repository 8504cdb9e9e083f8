"""Iterators: epochs, positions, reports, and what happens when they are left."""

from __future__ import annotations

import gc
import json
import threading
import time
from typing import Any

import numpy as np
import pytest

import jumar.dataset as ds
from jumar.dataset import vision


@pytest.fixture(autouse=True)
def seed():
    ds.config.set_seed(5)
    yield
    ds.config.set_seed(ds.config.DEFAULT_SEED)


def ids(dataset: ds.Dataset) -> list[Any]:
    return [row[0].tolist() for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)]


def noisy(x: np.ndarray) -> np.ndarray:
    return x + ds.row_generator().integers(1000)


def pipeline(workers: int = 1, processes: bool = False, count: int = 23) -> ds.Dataset:
    base = ds.GeneratorDataset(list(range(count)), ["x"], shuffle=True)
    mapped = base.map(noisy, "x", num_parallel_workers=workers, python_multiprocessing=processes)
    return mapped.shuffle(4).batch(3).repeat(2)


def test_each_loop_is_one_epoch_and_epochs_differ():
    it = ds.NumpySlicesDataset(list(range(8))).create_tuple_iterator(num_epochs=2, output_numpy=True)
    first, second = ([int(r[0]) for r in it] for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(8))
    assert first != second
    with pytest.raises(ds.DataFault, match="num_epochs"):
        next(it)


def test_orders_are_those_of_mindspore():
    assert ids(ds.NumpySlicesDataset(list(range(8))).repeat(2)) == [3, 0, 5, 2, 4, 6, 7, 1, 3, 7, 5, 1, 0, 2, 4, 6]
    assert ids(ds.NumpySlicesDataset(list(range(11)), num_shards=3, shard_id=1)) == [7, 3, 5, 2]
    ds.config.set_seed(11)
    assert ids(ds.NumpySlicesDataset(list(range(100)), num_samples=8)) == [18, 6, 1, 66, 46, 19, 72, 92]
    ds.config.set_seed(5)
    assert ids(ds.NumpySlicesDataset(list(range(8)), sampler=ds.RandomSampler(True, 8))) == [1, 0, 6, 6, 1, 2, 7, 7]


@pytest.mark.parametrize("workers, processes", [(2, False), (3, True)])
def test_workers_do_not_change_results(workers, processes):
    assert ids(pipeline()) == ids(pipeline(workers, processes))


@pytest.mark.parametrize("epoch, step", [(0, 0), (0, 5), (1, 0), (1, 9), (2, 15)])
def test_a_restored_position_goes_on_bit_for_bit(epoch, step):
    it = pipeline().create_tuple_iterator(num_epochs=3, output_numpy=True)
    whole = [[r[0].tolist() for r in it] for _ in range(3)]
    data = pipeline()
    it = data.create_tuple_iterator(output_numpy=True)
    for _ in range(epoch):
        for _ in it:
            pass
    for _ in range(step):
        next(it)
    text = data.position().to_json()
    it.stop()
    again = pipeline(2)
    again.restore(ds.Position.from_json(text))
    it = again.create_tuple_iterator(num_epochs=3 - epoch, output_numpy=True)
    rest = [[r[0].tolist() for r in it] for _ in range(3 - epoch)]
    assert rest == [whole[epoch][step:], *whole[epoch + 1 :]]


def test_rows_before_a_position_are_not_made():
    made: list[int] = []

    class Source:
        def __len__(self) -> int:
            return 100

        def __getitem__(self, i: int) -> Any:
            made.append(i)
            return np.array(i)

    data = ds.GeneratorDataset(Source(), ["x"], shuffle=False).map(noisy, "x").batch(10)
    data.restore(ds.Position(5, 0, 8))
    assert len(ids(data)) == 2
    assert made == list(range(80, 100))


def test_set_init_step_counts_over_epochs():
    data = ds.NumpySlicesDataset(list(range(8))).batch(2)
    data.set_init_step(5)
    assert ids(data) == [[5, 1], [0, 2], [4, 6]]


@pytest.mark.parametrize(
    "make",
    [
        lambda b: b.filter(lambda x: x % 2 == 0),
        lambda b: b.zip(ds.NumpySlicesDataset(list(range(12)), "y")),
        lambda b: b + ds.NumpySlicesDataset(list(range(100, 105)), ["x"]),
        lambda b: b.skip(3).take(7),
        lambda b: b.flat_map(lambda x: ds.NumpySlicesDataset([int(x)] * 3, ["x"], shuffle=False)),
        lambda b: b.split([5, 7])[1],
        lambda b: b.padded_batch(5, pad_info={}),
        lambda b: b.batch(lambda info: info.get_batch_num() + 1),
        lambda b: b.bucket_batch_by_length(["x"], [2, 5], [2, 3, 2], element_length_function=lambda x: int(x) + 1),
        lambda b: b.project("x").rename("x", "z").apply(lambda d: d.repeat(2)),
    ],
)
def test_each_stage_resumes_exactly(make):
    def data() -> ds.Dataset:
        return make(ds.NumpySlicesDataset(list(range(12)), ["x"]))

    whole = ids(data())
    for step in (1, len(whole) // 2, len(whole) - 1):
        again = data()
        again.restore(ds.Position(5, 0, step))
        assert ids(again) == whole[step:]


def test_parts_of_a_split_share_no_row_whatever_iterates_them():
    ds.config.set_seed(ds.config.DEFAULT_SEED)
    train, test = ds.NumpySlicesDataset(list(range(20))).split([0.7, 0.3])
    it = train.create_tuple_iterator(num_epochs=2, output_numpy=True)
    first, second = ([int(r[0]) for r in it] for _ in range(2))
    assert first != second
    assert set(first) == set(second)
    assert set(first) | set(ids(test)) == set(range(20))
    assert len(first) == 14
    a, b = ds.GeneratorDataset(list(range(20)), ["x"]).map(lambda x: x).shuffle(5).split([10, 10])
    assert sorted(ids(a) + ids(b)) == list(range(20))


def test_an_iterator_that_is_dropped_leaves_no_thread():
    before = threading.active_count()
    for _ in range(3):
        it = ds.GeneratorDataset(list(range(1000)), ["x"]).map(noisy, "x", num_parallel_workers=2).create_tuple_iterator(output_numpy=True)
        next(it)
        del it
    gc.collect()
    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.04)
    assert threading.active_count() == before


def test_the_report_names_the_stage_that_starves_the_step():
    def slow(x: np.ndarray) -> np.ndarray:
        time.sleep(0.004)
        return x

    data = ds.NumpySlicesDataset(list(range(30)), ["x"]).map(slow, "x", num_parallel_workers=1).batch(2)
    ids(data)
    report = data.report()
    assert report.starving == "Map(slow)"
    assert "starved by: Map(slow)" in str(report)
    found = json.loads(report.to_json())
    assert found["rows"] == 15
    assert [s["name"] for s in found["stages"]] == ["Batch(2)", "Map(slow)", "NumpySlices"]
    for _ in (it := data.create_tuple_iterator(num_epochs=1, output_numpy=True)):
        time.sleep(0.04)
    assert it.report().starving == ""


def test_a_failing_row_is_named_with_its_traceback():
    def bad(x: np.ndarray) -> np.ndarray:
        if x == 7:
            raise KeyError("seven")
        return x

    for workers, processes in ((1, False), (2, False), (2, True)):
        data = ds.NumpySlicesDataset(list(range(10)), ["x"], shuffle=False).map(
            bad, "x", num_parallel_workers=workers, python_multiprocessing=processes
        )
        with pytest.raises(ds.RowFault, match="row 7 failed") as caught:
            ids(data)
        assert "in bad" in str(caught.value) and "KeyError: 'seven'" in str(caught.value)
        assert isinstance(caught.value, RuntimeError)
        assert caught.value.index == 7


def test_rows_that_fail_may_be_skipped_or_replaced():
    def bad(x: np.ndarray) -> np.ndarray:
        if x == 2:
            raise ValueError("two")
        return x

    data = ds.NumpySlicesDataset(list(range(4)), ["x"], shuffle=False).map(bad, "x")
    try:
        ds.config.set_error_samples_mode(ds.ErrorSamplesMode.SKIP)
        assert ids(data) == [0, 1, 3]
        ds.config.set_error_samples_mode(ds.ErrorSamplesMode.REPLACE)
        assert ids(data) == [0, 1, 1, 3]
    finally:
        ds.config.set_error_samples_mode(ds.ErrorSamplesMode.RETURN)


def test_random_operations_give_an_image_and_its_mask_the_same_draw():
    image = np.arange(32 * 32, dtype=np.int64).reshape(32, 32, 1).astype(np.uint8)
    data = ds.GeneratorDataset([(image, image)] * 6, ["image", "mask"]).map(
        [vision.RandomCrop(20), vision.RandomHorizontalFlip()], ["image", "mask"]
    )
    seen = list(data.create_tuple_iterator(num_epochs=1, output_numpy=True))
    assert all(np.array_equal(a, b) for a, b in seen)
    assert len({a.tobytes() for a, _ in seen}) > 1


def test_debug_mode_runs_in_the_calling_thread():
    seen = set()
    ds.config.set_debug_mode(True)
    try:
        ids(
            ds.NumpySlicesDataset([1, 2, 3], ["x"]).map(lambda x: (seen.add(threading.current_thread()), x)[1], "x", num_parallel_workers=4)
        )
    finally:
        ds.config.set_debug_mode(False)
    assert seen == {threading.current_thread()}


def test_tensors_come_out_unless_arrays_are_asked_for():
    from jumar.frontend import Tensor

    (row,) = ds.GeneratorDataset([(np.float32(2), "text")], ["x", "s"]).create_dict_iterator(num_epochs=1)
    assert isinstance(row["x"], Tensor)
    assert row["s"] == np.array("text")
