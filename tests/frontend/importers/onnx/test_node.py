"""Tensors and attributes decode to what the onnx package itself reads."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from jumar.base import ImportFault
from jumar.frontend.importers.onnx.node import DTYPE_OF_ONNX, decode_attribute, decode_tensor

VALUES = np.array([0, 1, -1, 3, 2, -2, 1], np.float64)


@pytest.mark.parametrize("number", sorted(DTYPE_OF_ONNX))
@pytest.mark.parametrize("raw", [False, True])
def test_every_element_type_decodes(number: int, raw: bool) -> None:
    dtype = DTYPE_OF_ONNX[number]
    if dtype.kind == "s":
        proto = helper.make_tensor("t", number, [2], [b"a", "\u4f60".encode()])
        assert decode_tensor(proto).tolist() == ["a", "\u4f60"]
        return
    values = np.abs(VALUES) if dtype.kind in "ub" or dtype.name == "f8e8m0" else VALUES
    if dtype.bits == 2:
        values = np.clip(values, -2, 1)
    array = values.astype(dtype.numpy)
    proto = (
        numpy_helper.from_array(array, "t")
        if raw
        else helper.make_tensor("t", number, [7], array.astype(np.complex128 if dtype.kind == "c" else np.float64).tolist())
    )
    assert proto.HasField("raw_data") == raw
    got = decode_tensor(proto)
    assert got.dtype == dtype.numpy
    np.testing.assert_array_equal(got.astype(np.complex128), array.astype(np.complex128))


def test_a_tensor_of_another_size_than_its_shape_is_refused() -> None:
    for proto in (
        onnx.TensorProto(data_type=1, dims=[3], raw_data=b"12345678"),
        onnx.TensorProto(data_type=1, dims=[3], float_data=[1, 2]),
        onnx.TensorProto(data_type=8, dims=[3], string_data=[b"a"]),
        onnx.TensorProto(data_type=22, dims=[3], int32_data=[1]),
    ):
        with pytest.raises(ImportFault) as caught:
            decode_tensor(proto)
        assert caught.value.code == "tensor-size"
    with pytest.raises(ImportFault):
        decode_tensor(onnx.TensorProto(data_type=77, dims=[0]))


@pytest.mark.parametrize("value", [3, 2.5, "text", [1, 2], [1.5, 2.5], ["a", "b"], [np.ones(2, np.float32)]])
def test_attributes_decode_to_python_values(value: Any) -> None:
    given = [numpy_helper.from_array(v) if isinstance(v, np.ndarray) else v for v in value] if isinstance(value, list) else value
    got = decode_attribute(helper.make_attribute("a", given), decode_tensor)
    if isinstance(value, list):
        assert isinstance(got, tuple)
        np.testing.assert_array_equal(np.array(got), np.array(value))
    else:
        assert got == value and type(got) is type(value)


def test_sparse_tensors_become_dense() -> None:
    values = numpy_helper.from_array(np.array([5, 7], np.float32), "v")
    for indices in (np.array([1, 5], np.int64), np.array([[0, 1], [1, 2]], np.int64)):
        sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(indices), [2, 3])
        got = decode_attribute(helper.make_attribute("a", sparse), decode_tensor)
        assert got.tolist() == [[0, 5, 0], [0, 0, 7]]


def test_bfloat16_is_read_bit_by_bit() -> None:
    array = np.array([1.5, -2.25], ml_dtypes.bfloat16)
    np.testing.assert_array_equal(decode_tensor(numpy_helper.from_array(array)), array)
