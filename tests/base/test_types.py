"""Types: text forms parse back, and what cannot be a type is refused."""

import numpy as np
import pytest

from jumar.base import DTYPES, StackError, TensorType, dtype_of, f32, parse_type, str_, type_of


@pytest.mark.parametrize("text", ["f32[]", "f32[2, 3]", "bf16[n, 3]", "bool[0]", "u4[7]", "str[2]"])
def test_a_type_prints_what_it_parses(text):
    assert text == str(parse_type(text))


@pytest.mark.parametrize("text", ["f33[2]", "f32", "f32[2", "[2]", ""])
def test_what_is_no_type_is_refused_with_the_text_in_the_message(text):
    with pytest.raises(StackError, match="must be like f32"):
        parse_type(text)


@pytest.mark.parametrize("dtype", [d for d in DTYPES.values() if d is not str_], ids=str)
def test_every_element_type_has_a_numpy_type_of_its_width(dtype):
    assert dtype == dtype_of(dtype.numpy)
    assert dtype.nbytes == dtype.numpy.itemsize


def test_byte_order_does_not_change_the_element_type():
    assert f32 == dtype_of(np.dtype(">f4"))


def test_size_and_bytes_of_a_type():
    assert (6, 24) == (TensorType((2, 3), f32).size, TensorType((2, 3), f32).nbytes)


def test_dims_of_a_free_type_are_refused():
    with pytest.raises(StackError, match="free n"):
        TensorType(("n", 3), f32).dims  # noqa: B018


def test_type_of_an_array():
    assert "f32[2, 3]" == str(type_of(np.zeros((2, 3), np.float32)))
