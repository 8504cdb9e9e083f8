"""Elementwise operators and groups of them: awkward shapes, broadcasts, mixed types."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from tests.operators.cpu.run import check, lower, run

from jumar.base import DTYPES, NATIVE, bf16, bool_, f16, f32, f64, i8, i32, i64, type_of, u8
from jumar.ir import Graph, constant, param
from jumar.operators import Add, Cast, Exp, Fused, Greater, Mul, Neg, Select, Slice, Transpose

RNG = np.random.default_rng(1)


def random(dtype: str, *shape: int) -> np.ndarray:
    kind = DTYPES[dtype]
    if kind.kind == "b":
        return RNG.integers(0, 2, shape).astype(bool)
    if kind.is_integer:
        return RNG.integers(0 if kind.kind == "u" else -100, 100, shape).astype(kind.numpy)
    return np.asarray(RNG.standard_normal(shape)).astype(kind.numpy)


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"])
def test_shapes_and_broadcasts(dtype: str) -> None:
    shapes = [
        ((), ()), ((0,), (1,)), ((1,), (1,)), ((3,), ()), ((5,), (5,)), ((17,), (1,)), ((1000,), (1000,)), ((3, 5), (5,)),
        ((7, 1), (1, 17)), ((2, 3, 33), (3, 1)), ((2, 1, 5, 1), (1, 3, 1, 40)), ((2, 0, 3), (3,)), ((4, 1, 2, 1, 3, 1), (1, 2, 1, 2, 1, 8)),
    ]  # fmt: skip
    for a, b in shapes:
        check(Add(), random(dtype, *a), random(dtype, *b))


def test_casts_between_all_native_types() -> None:
    names = sorted(d.name for d in NATIVE)
    for source, target in product(names, names):
        x = np.abs(random(source, 53)) if DTYPES[target].kind == "u" else random(source, 53)
        check(Cast(DTYPES[target]), x)


def graph(outputs: list, params: list) -> Fused:
    return Fused(Graph("group", tuple(params), tuple(outputs)))


def test_group_with_views_constants_and_two_results() -> None:
    x, y = param("x", type_of(random("f32", 4, 6, 10))), param("y", type_of(random("f32", 10, 1, 6)))
    back = Transpose((2, 1, 0))(Transpose((0, 2, 1))(y))  # [1, 6, 10]
    part = Slice((3, 5, 0), (-1, -1, 10), (-1, -1, 1))(x)
    total = Add()(Mul()(x, constant(np.float32(0.5))), Exp()(Neg()(back)))
    both = graph([total, Greater()(total, part)], [x, y])
    check(both, random("f32", 4, 6, 10), random("f32", 10, 1, 6))


def test_group_of_mixed_types() -> None:
    for narrow in (i8, u8, f16, bf16, i32, i64, bool_, f64):
        for shape in ((3,), (40,), (5, 33)):
            x, y = param("x", type_of(random("f32", *shape))), param("y", type_of(random(narrow.name, *shape)))
            wide = Cast(f32)(y)
            chosen = Select()(Greater()(x, wide), x, Mul()(wide, constant(np.float32(2))))
            result = chosen if narrow is u8 else Cast(narrow)(chosen)
            check(graph([result], [x, y]), random("f32", *shape), random(narrow.name, *shape))


def test_few_channels_in_planes_come_to_stand_together() -> None:
    for channels, dtype in product((1, 2, 3, 4, 7), ("f32", "u8", "f16")):
        for pixels in (31, 32, 64, 1003):
            x = param("x", type_of(random(dtype, 2, channels, pixels)))
            scale = param("s", type_of(random("f32")))
            check(graph([Transpose((0, 2, 1))(Mul()(Cast(f32)(x), scale))], [x, scale]), random(dtype, 2, channels, pixels), random("f32"))


def test_in_place_is_offered_only_for_the_same_element() -> None:
    a, b = param("a", type_of(random("f32", 8, 5))), param("b", type_of(random("f32", 5)))
    (task,) = lower(Add()(a, b)).tasks  # type: ignore[union-attr]
    assert task.inplace == ((2, 0),)
    (task,) = lower(Add()(a, a)).tasks  # type: ignore[union-attr]
    assert task.inplace == ((1, 0),)


def test_equal_groups_share_one_kernel() -> None:
    def kernel(*shape: int) -> object:
        a, b = param("a", type_of(random("f32", *shape))), param("b", type_of(random("f32", *shape)))
        return lower(Mul()(Add()(a, b), b)).tasks[0].kernel  # type: ignore[union-attr]

    assert kernel(64, 64) is kernel(3, 100)


def test_large_arrays_are_cut_into_chunks() -> None:
    x = random("f32", 700, 1001)
    node = Exp()(param("x", type_of(x)))
    assert lower(node).tasks[0].chunks > 4  # type: ignore[union-attr]
    check(Exp(), x)
    check(Add(), x, random("f32", 1001))
    check(Add(), random("f32", 3, 70001), random("f32", 3, 1))
    assert lower(Neg()(param("x", type_of(random("f32", 4000))))).tasks[0].chunks == 1  # type: ignore[union-attr]


def test_minus_zero_is_another_constant() -> None:
    x = np.array([-0.0, 1.0], np.float32)
    p = param("x", type_of(x))
    for value in (0.0, -0.0):
        (y,) = run(graph([Mul()(p, constant(np.float32(value)))], [p]), x)
        assert np.signbit(x * np.float32(value)).tolist() == np.signbit(y).tolist()


def test_types_that_are_not_native_are_refused() -> None:
    x = param("x", type_of(np.zeros(3, np.complex64)))
    assert lower(Neg()(x)) is None
    assert i32 in NATIVE and i64 in NATIVE
