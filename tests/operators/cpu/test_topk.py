"""The k best along an axis: every native type, ties, NaN, lists and whole sorts."""

from __future__ import annotations

import numpy as np
import pytest
from tests.operators.cpu.run import check

from jumar.operators import TopK

RNG = np.random.default_rng(11)
TYPES = ["float32", "float64", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"]
CASES = [  # shape, axis, k
    ((1,), 0, 1), ((7,), 0, 7), ((3, 100), 1, 5), ((100, 3), 0, 9), ((2, 37, 5), 1, 11), ((4, 1000), 1, 70), ((2, 300), 1, 300),
    ((3, 3000), 1, 200), ((2, 1500), 0, 1),
    ((3, 1), 1, 1), ((2, 33), -1, 33), ((2, 5), 1, 0), ((1, 2000, 3), 1, 400),
]  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("largest", [True, False])
def test_the_best_of_each_row(dtype: str, largest: bool) -> None:
    for shape, axis, k in CASES:
        few = RNG.integers(0, 5, shape).astype(dtype)  # many are equal
        check(TopK(k, axis, largest), few)
        if dtype != "bool":
            many = (RNG.standard_normal(shape) * 100).astype(dtype) if dtype[0] == "f" else RNG.integers(0, 120, shape).astype(dtype)
            check(TopK(k, axis, largest), many)


@pytest.mark.parametrize("largest", [True, False])
def test_ends_of_the_range(largest: bool) -> None:
    for dtype in ("int8", "int32", "uint32", "int64", "uint64"):
        info = np.iinfo(dtype)
        x = np.array([info.min, info.max, info.min, 1, info.max, info.min, info.min] * 3, dtype)
        for k in (1, 4, 20, 21):
            check(TopK(k, 0, largest), x)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_nan_infinity_and_both_zeros(dtype: str, largest: bool) -> None:
    x = np.array([0.0, -0.0, np.nan, -np.inf, 1.0, np.inf, -np.nan, -0.0, 0.0, np.nan, -1.0] * 5, dtype)
    for k in (1, 3, 8, 30, 55):
        check(TopK(k, 0, largest), x)


def test_rising_and_falling() -> None:
    for x in (np.arange(3000, dtype=np.float32), np.arange(3000, dtype=np.float32)[::-1].copy()):
        for k in (1, 8, 200, 3000):
            for largest in (True, False):
                check(TopK(k, 0, largest), x)
