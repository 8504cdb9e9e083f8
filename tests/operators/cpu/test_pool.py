"""Pools in both layouts, of one to three dimensions, with borders, dilations and every native type; running sums and products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.operators.cpu.nodes import random, run_node
from tests.operators.cpu.run import check

from jumar.base import type_of
from jumar.ir import param
from jumar.operators import AvgPool, AvgPoolGrad, CumProd, CumSum, MaxPool, MaxPoolGrad, MaxPoolIndices

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


@pytest.mark.parametrize("channels", [1, 8, 19, 40])
@pytest.mark.parametrize(
    "n, spatial, kernel, strides, pads, dilations",
    [
        (2, (8, 9), (2, 2), (2, 2), (0, 0), (1, 1)), (1, (9, 9), (3, 3), (2, 2), (1, 1), (1, 1)), (3, (7,), (3,), (1,), (1,), (2,)),
        (2, (4, 5, 6), (2, 3, 2), (1, 2, 2), (0, 1, 0), (1, 1, 1)), (1, (6, 6), (3, 2), (1, 1), (1, 0), (2, 2)),
        (2, (4, 9), (2, 3), (2, 3), (0, 0), (1, 1)), (1, (7, 9), (1, 3), (2, 4), (0, 0), (1, 1)),
    ],
)  # fmt: skip
def test_gradients_of_pools(channels: int, n: int, spatial: Any, kernel: Any, strides: Any, pads: Any, dilations: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 3, (n, *spatial, channels)).astype(np.float32)  # many equal maxima: the first one gets all
    x.reshape(-1)[::17] = np.nan
    fields = (kernel, strides, pads, pads, dilations)
    y = MaxPool(*fields, channels_last=True).reference(x)
    dy = random(rng, *y.shape)
    for op, arrays in ((MaxPoolGrad(*fields, channels_last=True), (x, y, dy)), (AvgPoolGrad(x.shape, *fields, channels_last=True), (dy,))):
        params = [param(f"x{i}", type_of(a)) for i, a in enumerate(arrays)]
        actual = run_node(op(*params), dict(zip(params, arrays, strict=True)))
        np.testing.assert_allclose(actual, op.reference(*arrays), rtol=1e-5, atol=1e-6)
