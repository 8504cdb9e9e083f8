"""What is special about pools: what lies outside of the input, and how many cells a mean divides by."""

from __future__ import annotations

import numpy as np

from jumar.operators.pooling import AvgPool, MaxPool, MaxPoolIndices, MaxUnpool


def test_what_lies_outside_is_never_the_largest() -> None:
    x = np.full((1, 1, 2), -5, np.int8)
    assert MaxPool((3,), (1,), (1,), (1,), (1,)).reference(x).tolist() == [[[-5, -5]]]
    y, place = MaxPoolIndices((3,), (1,), (1,), (1,), (1,)).reference(np.full((1, 1, 2), -np.inf, np.float32))
    assert np.isneginf(y).all()
    assert ((place >= 0) & (place < 2)).all()


def test_nan_wins_a_max_pool() -> None:
    x = np.array([[[1, np.nan, 2, 3]]], np.float32)
    np.testing.assert_array_equal(MaxPool((2,), (2,), (0,), (0,), (1,)).reference(x), [[[np.nan, 3]]])


def test_cells_that_ceil_mode_adds_never_count() -> None:
    x = np.ones((1, 1, 4), np.float32)
    counted = AvgPool((3,), (2,), (1,), (2,), (1,), count_include_pad=True, uncounted_high=(1,))
    assert counted.counts((4,)).tolist() == [3, 3, 2]
    np.testing.assert_allclose(counted.reference(x), [[[2 / 3, 1, 1 / 2]]])
    np.testing.assert_allclose(AvgPool((3,), (2,), (1,), (2,), (1,)).reference(x), [[[1, 1, 1]]])


def test_places_count_columns_first_where_asked() -> None:
    x = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
    pool = MaxPoolIndices((2, 3), (1, 1), (0, 0), (0, 0), (1, 1))
    assert pool.reference(x)[1].tolist() == [[[[5]]]]
    x[0, 0, 0, 1] = 9
    assert pool.reference(x)[1].tolist() == [[[[1]]]]
    assert MaxPoolIndices((2, 3), (1, 1), (0, 0), (0, 0), (1, 1), column_major=True).reference(x)[1].tolist() == [[[[2]]]]


def test_unpooling_undoes_pooling() -> None:
    x = np.random.default_rng(0).permutation(32).reshape(2, 1, 4, 4).astype(np.float32)
    y, place = MaxPoolIndices((2, 2), (2, 2), (0, 0), (0, 0), (1, 1)).reference(x)
    back = MaxUnpool(x.shape).reference(y, place)
    assert ((back == x) | (back == 0)).all()
    assert (back > 0).sum() == (y > 0).sum()
