"""Element types: classes for `isinstance`, conversions, and MindSpore's names."""

from __future__ import annotations

import numpy as np
import pytest

import jumar
from jumar.common import dtype as types


def test_classes_tell_kinds_apart() -> None:
    assert isinstance(jumar.int32, types.Int)
    assert not isinstance(jumar.bfloat16, types.Float)
    assert isinstance(jumar.float16, types.Number)
    assert isinstance(jumar.float32, jumar.Type)
    assert types.Int(32) is jumar.int32
    assert types.Int() is jumar.int_
    assert str(types.TensorType(jumar.float32)) == "Tensor[Float32]"
    assert types.TensorType(jumar.float32) == types.TensorType(jumar.float32)


def test_names_are_mindspore_s() -> None:
    assert (jumar.int, jumar.float, jumar.long, jumar.half, jumar.double) == (
        jumar.int32, jumar.float32, jumar.int64, jumar.float16, jumar.float64,
    )  # fmt: skip
    assert jumar.float32 in types.number_type
    assert jumar.bool_ not in types.number_type
    assert jumar.QuantDtype.UINT8.value == 107


@pytest.mark.parametrize(
    "value, expected",
    [(1, "Int64"), (1.0, "Float64"), (True, "Bool"), ("a", "String"), ((1, 2), "Tuple"), ([1], "List"), (1j, "Complex128"),
     (np.float32, "Float32"), (jumar.Tensor([1.0]), "Tensor[Float32]"), (lambda: 0, "Func")],
)  # fmt: skip
def test_values_have_types(value: object, expected: str) -> None:
    assert expected == str(types.get_py_obj_dtype(value))


def test_conversions_to_numpy_and_python() -> None:
    assert types.dtype_to_nptype(jumar.int8) is np.int8
    assert types.dtype_to_pytype(jumar.bfloat16) is float
    assert types.type_size_in_bytes(jumar.complex64) == 8
    with pytest.raises(TypeError, match="must be a python type object"):
        types.pytype_to_dtype(1)
    with pytest.raises(NotImplementedError, match="cannot be converted to MindSpore type"):
        types.get_py_obj_dtype({1: 2})


def test_a_type_is_one_of_a_wider_one() -> None:
    assert types._issubclass_(jumar.float32, jumar.number)
    assert types._issubclass_(jumar.float32, types.float_)
    assert not types._issubclass_(jumar.float32, jumar.int_)
