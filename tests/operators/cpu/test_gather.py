"""Gathers and scatters: axes, negative and doubled indices, batches, each width, each way to combine."""

from __future__ import annotations

import numpy as np
import pytest
from tests.operators.cpu.run import check

from jumar.operators import Gather, GatherElements, GatherNd, ScatterElements, ScatterNd

RNG = np.random.default_rng(4)
WIDTHS = ["uint8", "float16", "float32", "int64", "bool"]


def numbers(dtype: str, *shape: int) -> np.ndarray:
    return RNG.integers(0, 5, shape).astype(dtype)


def indices(size: int, *shape: int, dtype: str = "int64") -> np.ndarray:
    return RNG.integers(-size, size, shape).astype(dtype)


@pytest.mark.parametrize("dtype", WIDTHS)
def test_gather(dtype: str) -> None:
    for shape in [(7,), (5, 3), (4, 9, 64), (2, 6, 17)]:
        for axis in range(len(shape)):
            for index_shape in [(), (1,), (11,), (2, 3)]:
                check(Gather(axis), numbers(dtype, *shape), indices(shape[axis], *index_shape, dtype="int32"))
    check(Gather(0), numbers(dtype, 1000, 33), indices(1000, 300))
    check(Gather(1), numbers(dtype, 3, 100), indices(100, 5000))
    check(Gather(0), numbers(dtype, 3, 4), indices(3, 0))


@pytest.mark.parametrize("dtype", WIDTHS)
def test_gather_elements(dtype: str) -> None:
    for shape, axis, index_shape in [
        ((7,), 0, (20,)),
        ((5, 6), 0, (3, 6)),
        ((5, 6), 1, (5, 9)),
        ((4, 5, 6), 1, (4, 2, 3)),
        ((30, 40), 1, (30, 400)),
    ]:
        check(GatherElements(axis), numbers(dtype, *shape), indices(shape[axis], *index_shape))


@pytest.mark.parametrize("dtype", WIDTHS)
def test_gather_nd(dtype: str) -> None:
    x = numbers(dtype, 4, 4, 4, 6)
    for n in (1, 2, 3):
        check(GatherNd(), x, indices(4, 5, 2, n))
        check(GatherNd(1), x, indices(4, 4, 3, min(n, 2)))
    check(GatherNd(), x, indices(4, 0, 2))


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
@pytest.mark.parametrize("dtype", WIDTHS)
def test_scatters(dtype: str, reduction: str) -> None:
    for shape, axis, index_shape in [
        ((7,), 0, (5,)),
        ((5, 6), 0, (3, 6)),
        ((5, 6), 1, (5, 4)),
        ((6, 5, 6), 1, (4, 2, 3)),
        ((300, 9), 1, (300, 9)),
    ]:
        where = indices(shape[axis], *index_shape)
        check(ScatterElements(axis, reduction), numbers(dtype, *shape), where, numbers(dtype, *index_shape))
    x = numbers(dtype, 4, 4, 6)
    for n, rest in ((1, (4, 6)), (2, (6,)), (3, ())):
        check(ScatterNd(reduction), x, indices(4, 7, n), numbers(dtype, 7, *rest))
    check(ScatterNd(reduction), numbers(dtype, 5, 3000), indices(5, 7, 1), numbers(dtype, 7, 3000))
