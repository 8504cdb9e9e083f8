"""Inputs: what is read, what is made up, and which number a free dimension gets."""

from __future__ import annotations

import numpy as np
import pytest

from jumar.base import TensorType, ToolError, bool_, f32, i64
from jumar.tools.enable.inputs import choose, parse_input


def test_free_dimensions_get_a_size_by_name_then_by_place() -> None:
    declared = {
        "image": TensorType(("batch", 3, "height", "d7"), f32),
        "ids": TensorType(("n", "d9"), i64),
    }
    chosen = choose(declared, [], {})
    assert {d.name: d.value for d in chosen.dims} == {"batch": 1, "height": 320, "d7": 320, "n": 1, "d9": 32}
    assert all(d.why.startswith("not given: ") for d in chosen.dims)


def test_a_given_shape_settles_the_dimension_for_all_inputs() -> None:
    declared = {"a": TensorType(("batch", 4), f32), "b": TensorType(("batch",), i64)}
    chosen = choose(declared, [parse_input("a=5,4")], {})
    assert chosen.arrays["b"].shape == (5,)
    assert chosen.dims[0].why == "from input a"


def test_made_up_values_follow_the_type() -> None:
    declared = {"x": TensorType((3, 4), f32), "mask": TensorType((4,), i64), "ids": TensorType((4,), i64), "on": TensorType((4,), bool_)}
    arrays = choose(declared, [], {}).arrays
    assert [a.dtype for a in arrays.values()] == [np.float32, np.int64, np.int64, np.bool_]
    assert arrays["mask"].tolist() == [1, 1, 1, 1]
    assert set(arrays["ids"].tolist()) <= {0, 1}


def test_made_up_values_are_the_same_every_time() -> None:
    declared = {"x": TensorType((3, 4), f32)}
    np.testing.assert_array_equal(choose(declared, [], {}).arrays["x"], choose(declared, [], {}).arrays["x"])


def test_an_archive_is_no_input(tmp_path) -> None:
    np.savez(tmp_path / "x.npz", x=np.ones(3, np.float32))
    with pytest.raises(ToolError, match=r"must hold one array \(\.npy\), got an archive"):
        choose({"x": TensorType((3,), f32)}, [parse_input(f"x={tmp_path / 'x.npz'}")], {})
