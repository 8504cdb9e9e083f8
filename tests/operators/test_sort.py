"""What is special about sorting: ties, NaN, and results whose shape the data tells."""

from __future__ import annotations

import numpy as np
import pytest

from jumar.base import OpError
from jumar.ir import f32t, param
from jumar.operators.sort import Compress, NonMaxSuppression, NonZero, TopK, Unique


def test_of_equal_elements_the_first_comes_first() -> None:
    x = np.array([2, 1, 2, 1], np.int8)
    assert TopK(3).reference(x)[1].tolist() == [0, 2, 1]
    assert TopK(3, largest=False).reference(x)[1].tolist() == [1, 3, 0]


def test_unsigned_and_nan_are_ordered() -> None:
    assert TopK(2).reference(np.array([0, 255, 3], np.uint8))[0].tolist() == [255, 3]
    values, place = TopK(2).reference(np.array([1, np.nan, 2], np.float32))
    assert place.tolist() == [1, 2]
    assert np.isnan(values[0])


def test_more_than_there_is_is_refused() -> None:
    with pytest.raises(OpError, match="k must be at most 3"):
        TopK(4)(param("x", f32t(3)))


def test_an_operator_whose_shape_depends_on_data_enters_no_graph() -> None:
    with pytest.raises(OpError, match="depends on the data"):
        NonZero()(param("x", f32t(3)))


def test_unique_in_order_of_appearance() -> None:
    y, first, inverse, counts = Unique(sorted=False).reference(np.array([3, 1, 3, 2]))
    assert [v.tolist() for v in (y, first, inverse, counts)] == [[3, 1, 2], [0, 1, 3], [0, 1, 0, 2], [2, 1, 1]]


def test_nothing_found_keeps_its_rank() -> None:
    assert NonZero().reference(np.zeros((2, 3))).shape == (2, 0)
    assert NonMaxSuppression().reference(np.zeros((1, 2, 4)), np.zeros((1, 1, 2))).shape == (0, 3)
    assert Compress(1).reference(np.zeros((2, 3)), np.array([False])).shape == (2, 0)
