"""Pools in both layouts, of one to three dimensions, with borders, dilations and every native type; running sums and products."""

from __future__ import annotations

import numpy as np
import pytest
from tests.operators.cpu.run import check

from jumar.operators import AvgPool, CumProd, CumSum, MaxPool, MaxPoolIndices

RNG = np.random.default_rng(5)
CASES = [  # spatial, kernel, strides, pads_low, pads_high, dilations
    ((9,), (3,), (1,), (0,), (0,), (2,)), ((8,), (2,), (2,), (0,), (0,), (1,)), ((7, 6), (3, 2), (2, 2), (1, 0), (1, 1), (1, 1)),
    ((14, 14), (5, 5), (1, 1), (2, 2), (2, 2), (1, 1)), ((5, 6, 4), (2, 3, 2), (1, 2, 1), (0, 1, 1), (1, 1, 0), (1, 1, 2)),
    ((1, 1), (1, 1), (1, 1), (0, 0), (0, 0), (1, 1)),
]  # fmt: skip


def numbers(dtype: str, *shape: int) -> np.ndarray:
    return (RNG.standard_normal(shape) * 10).astype(dtype)


def shaped(c: int, spatial: tuple[int, ...], last: bool) -> tuple[int, ...]:
    return (2, *spatial, c) if last else (2, c, *spatial)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint8", "int64"])
def test_pools(dtype: str, last: bool) -> None:
    for spatial, *window in CASES:
        for c in (1, 3, 8, 37):
            x = numbers(dtype, *shaped(c, spatial, last))
            check(MaxPool(*window, channels_last=last), x)
            if dtype.startswith("float"):
                check(AvgPool(*window, channels_last=last), x, scale=4)
                check(AvgPool(*window, count_include_pad=True, channels_last=last), x, scale=4)


def test_places_of_maxima() -> None:
    for spatial, *window in CASES:
        for column_major in (False, True):
            check(MaxPoolIndices(*window, column_major=column_major), numbers("float32", *shaped(3, spatial, False)))
    check(MaxPoolIndices((2, 2), (2, 2), (0, 0), (0, 0), (1, 1)), np.zeros((1, 1, 4, 4), np.float32))


def test_nan_is_the_largest() -> None:
    x = numbers("float32", 1, 6, 6, 20)
    x[0, 2, 3, 5] = np.nan
    check(MaxPool((3, 3), (1, 1), (1, 1), (1, 1), (1, 1), channels_last=True), x)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int64", "uint8"])
def test_running_sums(dtype: str) -> None:
    for shape, axis in [((9,), 0), ((3, 100), 1), ((100, 3), 0), ((2, 7, 40), 1), ((1, 1), 0), ((64, 5, 300), 1)]:
        x = RNG.integers(0, 3, shape).astype(dtype)
        for exclusive in (False, True):
            check(CumSum(axis, exclusive, not exclusive), x)
            check(CumSum(axis, exclusive, exclusive), x)
            check(CumProd(axis, exclusive, exclusive), x)
