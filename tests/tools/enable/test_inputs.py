"""Inputs: what is read, what is made up, and which number a free dimension gets."""

from __future__ import annotations

import numpy as np
import pytest

from jumar.base import TensorType, ToolError, bool_, f32, i64, str_
from jumar.tools.enable.inputs import choose, once, parse_input


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


def test_text_is_read_and_objects_are_refused_with_a_way_out(tmp_path) -> None:
    np.save(tmp_path / "s.npy", np.array(["hello", "wörld"]))
    declared = {"s": TensorType((2,), str_)}
    (array,) = choose(declared, [parse_input(f"s={tmp_path / 's.npy'}")], {}).arrays.values()
    assert array.dtype == object
    assert array.tolist() == ["hello", "wörld"]
    np.save(tmp_path / "o.npy", np.array(["a", "b"], object), allow_pickle=True)
    with pytest.raises(ToolError, match="an array of Python objects") as caught:
        choose(declared, [parse_input(f"s={tmp_path / 'o.npy'}")], {})
    assert caught.value.hint == "save text as text: numpy.save(path, array.astype(str))"


@pytest.mark.parametrize("typed, value", [("16000", 16000), ("-3", -3), ("9007199254740993", 9007199254740993)])
def test_a_number_is_the_value_of_an_input_without_dimensions(typed: str, value: int) -> None:
    (array,) = choose({"sr": TensorType((), i64)}, [parse_input(f"sr={typed}")], {}).arrays.values()
    assert (array.shape, array.dtype, array.item()) == ((), np.int64, value)


def test_a_number_that_the_type_does_not_hold_and_one_for_a_tensor_are_refused() -> None:
    with pytest.raises(ToolError, match=r"sr must be a number that i64 holds, got 0\.5"):
        choose({"sr": TensorType((), i64)}, [parse_input("sr=0.5")], {})
    with pytest.raises(ToolError, match=r"x must be f32\[2, 3\], got shape \[7\]") as caught:
        choose({"x": TensorType((2, 3), f32)}, [parse_input("x=7")], {})
    assert "numbers are a shape here" in caught.value.hint


@pytest.mark.parametrize("shape, code", [((100_000, 1 << 34), "memory"), ((1 << 62, 4), "shape-absurd")])
def test_sizes_beyond_any_memory_are_refused_before_anything_is_made(shape: tuple[int, ...], code: str) -> None:
    with pytest.raises(ToolError) as caught:
        choose({"x": TensorType(shape, f32)}, [], {})
    assert caught.value.code == code


def test_one_name_with_two_values_is_an_error_that_names_both() -> None:
    assert once("--dim", ["n=3", "m=1", "n=3"]) == ("n=3", "m=1")
    with pytest.raises(ToolError, match="--dim: n must be given once, got 'n=3' and 'n=4'"):
        once("--dim", ["n=3", "n=4"])


def test_where_types_alone_count_nothing_is_allocated() -> None:
    chosen = choose({"x": TensorType(("n", 1 << 20), f32)}, (), {"n": 1 << 20}, values=False)
    assert chosen.arrays["x"].shape == (1 << 20, 1 << 20)
    assert chosen.arrays["x"].strides == (0, 0)
    assert chosen.inputs[0].source == "its type alone is asked for"
