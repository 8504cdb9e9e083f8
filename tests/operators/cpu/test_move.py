"""Movement: every view, copy, concatenation and pad, for elements of each width, at awkward sizes."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from tests.operators.cpu.run import check, lower

from jumar.base import f32, i32, type_of
from jumar.ir import Op, param
from jumar.operators import BitCast, Broadcast, Concat, Iota, Pad, Reshape, Slice, Transpose

RNG = np.random.default_rng(3)
WIDTHS = ["uint8", "float16", "float32", "int64", "bool", "complex64"]


def numbers(dtype: str, *shape: int) -> np.ndarray:
    return RNG.integers(0, 100, shape).astype(dtype)


def tasks(op: Op, *arrays: np.ndarray) -> int:
    lowered = lower(op(*(param(f"x{i}", type_of(a)) for i, a in enumerate(arrays))))
    assert lowered is not None
    return len(lowered.tasks)


@pytest.mark.parametrize("dtype", WIDTHS)
def test_transposes(dtype: str) -> None:
    for shape in [(3,), (5, 7), (1, 9), (64, 64), (100, 33), (17, 130)]:
        check(Transpose(tuple(range(len(shape)))[::-1]), numbers(dtype, *shape))
    for perm in permutations(range(3)):
        check(Transpose(perm), numbers(dtype, 9, 10, 35))
    for perm in [(0, 2, 3, 1), (0, 3, 1, 2), (3, 2, 1, 0), (1, 0, 3, 2), (0, 2, 1, 3), (2, 3, 0, 1)]:
        check(Transpose(perm), numbers(dtype, 2, 12, 5, 16))
        check(Transpose(perm), numbers(dtype, 1, 3, 8, 7))


@pytest.mark.parametrize("dtype", WIDTHS)
def test_slices(dtype: str) -> None:
    x = numbers(dtype, 6, 10, 34)
    cases = [
        ((1, 0, 2), (5, 10, 34), (1, 2, 4)),
        ((5, 9, 33), (-1, -1, -1), (-1, -2, -1)), ((0, 3, 1), (6, 4, 33), (1, 1, 1)), ((2, 2, 2), (2, 3, 4), (1, 1, 1)),
    ]  # fmt: skip
    for bounds in cases:
        check(Slice(*bounds), x)
    check(Slice((), (), ()), numbers(dtype))


@pytest.mark.parametrize("dtype", WIDTHS)
def test_broadcasts(dtype: str) -> None:
    for source, shape in [
        ((), (3,)),
        ((5, 1), (5, 17)),
        ((1, 40), (7, 40)),
        ((3, 1, 4), (2, 3, 5, 4)),
        ((1,), (0,)),
        ((64, 1, 2), (64, 9, 2)),
    ]:
        check(Broadcast(shape), numbers(dtype, *source))


@pytest.mark.parametrize("dtype", WIDTHS)
def test_concatenations(dtype: str) -> None:
    for shape in [(4, 6, 10), (3, 5, 7), (1, 1, 1)]:
        for axis in range(3):
            parts = [list(shape) for _ in range(3)]
            parts[1][axis] += 3
            parts[2][axis] = 0
            check(Concat(axis), *(numbers(dtype, *p) for p in parts))
    check(Concat(0), numbers(dtype, 3))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("dtype", WIDTHS[:5])
def test_pads(mode: str, dtype: str) -> None:
    cases = [
        ((5,), (2,), (3,)), ((3, 4), (0, 1), (2, 0)), ((1, 2, 9, 33), (0, 0, 3, 1), (0, 0, 1, 2)), ((2, 3), (4, 5), (5, 7)),
        ((3,), (0,), (0,)),
    ]  # fmt: skip
    for shape, low, high in cases:
        check(Pad(low, high, mode, 1), numbers(dtype, *shape))


def test_reshapes_are_no_task() -> None:
    x = numbers("float32", 6, 4)
    check(Reshape((3, 8)), x)
    check(BitCast(i32), x)
    assert tasks(Reshape((24,)), x) == 0


def test_iota() -> None:
    for op in (Iota((5,)), Iota((2, 3), -1, f32), Iota((3, 4, 2), 0, i32)):
        check(op)


@pytest.mark.parametrize("dtype", WIDTHS)
def test_few_channels_are_woven(dtype: str) -> None:
    for c in (2, 3, 4, 7):
        check(Transpose((0, 2, 3, 1)), numbers(dtype, 2, c, 9, 31))
        check(Transpose((0, 3, 1, 2)), numbers(dtype, 2, 9, 31, c))
    check(Transpose((0, 2, 1)), numbers(dtype, 1, 3, 5000))
    check(Transpose((0, 2, 1)), numbers(dtype, 1, 5000, 3))


def test_large_copies_are_shared_by_threads() -> None:
    x = numbers("float32", 400, 500)
    lowered = lower(Transpose((1, 0))(param("x", type_of(x))))
    assert lowered is not None and lowered.tasks[0].chunks > 4
    check(Transpose((1, 0)), x)
    check(Pad((3, 3), (3, 3), "reflect"), x)
