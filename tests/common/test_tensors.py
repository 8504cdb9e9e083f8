"""`tensor`, `swap_tensors`, sparse tensors, storage, DLPack and buffers."""

from __future__ import annotations

import numpy as np
import pytest

import jumar
from jumar._c_expression import MSContext, _reuse_data_ptr, frombuffer
from jumar.common.sparse_tensor import COOTensor, RowTensor
from jumar.common.storage import UntypedStorage


def test_tensor_makes_one() -> None:
    assert jumar.tensor([1, 2]).dtype is jumar.int64
    assert jumar.tensor(1.5, jumar.float16).dtype is jumar.float16


def test_swapping_swaps_values_and_attributes() -> None:
    a, b = jumar.Parameter(jumar.Tensor([1.0]), name="a"), jumar.Parameter(jumar.Tensor([2.0, 3.0]), name="b")
    jumar.swap_tensors(a, b)
    assert (a.name, a.shape, b.name) == ("b", (2,), "a")
    with pytest.raises(RuntimeError, match="must be of one class"):
        jumar.swap_tensors(a, jumar.Tensor([1.0]))


def test_sparse_tensors_change_form() -> None:
    coo = COOTensor(jumar.Tensor([[1, 2], [0, 1]], jumar.int32), jumar.Tensor([2.0, 1.0]), (3, 4))
    csr = coo.to_csr()
    assert csr.indptr.asnumpy().tolist() == [0, 1, 2, 2]
    assert csr.to_coo().indices.asnumpy().tolist() == [[0, 1], [1, 2]]
    dense = np.zeros((3, 4), np.float32)
    dense[1, 2], dense[0, 1] = 2, 1
    np.testing.assert_array_equal(coo.to_dense().asnumpy(), dense)
    np.testing.assert_array_equal(csr.to_dense().asnumpy(), dense)
    np.testing.assert_array_equal(csr.mm(jumar.Tensor(np.eye(4, dtype=np.float32))).asnumpy(), dense)
    assert coo.add(coo).values.asnumpy().tolist() == [2.0, 4.0]
    rows = RowTensor(jumar.Tensor([1], jumar.int32), jumar.Tensor([[5.0, 6.0]]), (2, 2))
    assert rows.to_dense().asnumpy().tolist() == [[0.0, 0.0], [5.0, 6.0]]
    with pytest.raises(TypeError, match="values must be a Tensor"):
        COOTensor(jumar.Tensor([[0, 1]]), [1.0], (2, 2))


def test_bytes_are_shared() -> None:
    x = jumar.Tensor([1.0, 2.0])
    assert UntypedStorage(x).size() == 8
    again = jumar.from_dlpack(jumar.to_dlpack(x))
    x.asnumpy()[0] = 7
    assert again.asnumpy()[0] == 7
    buffer = bytearray(np.array([1, 2], np.int32).tobytes())
    assert frombuffer(buffer, jumar.int32).asnumpy().tolist() == [1, 2]
    y = jumar.Tensor([0.0])
    _reuse_data_ptr(y, x, 1)
    assert y.asnumpy().tolist() == [2.0]


def test_the_context_of_c_code() -> None:
    assert MSContext.get_instance().get_param("device_target") == "CPU"
    assert MSContext.get_instance() is MSContext.get_instance()


def test_the_check_runs(capsys: pytest.CaptureFixture[str]) -> None:
    jumar.run_check()
    assert "successfully" in capsys.readouterr().out
