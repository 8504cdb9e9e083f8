"""Products and convolutions of 8-bit codes: exact, on every way that a machine has of multiplying bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.operators.cpu.nodes import run_node

from jumar.base import Array, type_of
from jumar.ir import Node, constant, param
from jumar.operators import Conv, MatMul, Transpose

BYTES = {"u8": (np.uint8, 0, 255), "i8": (np.int8, -128, 127)}


def codes(rng: np.random.Generator, kind: str, *shape: int) -> Array:
    """Codes with many of the extreme ones."""
    dtype, low, high = BYTES[kind]
    drawn = rng.integers(low, high + 1, shape)
    ends = rng.choice([low, high], shape)
    return np.where(rng.random(shape) < 0.5, ends, drawn).astype(dtype)


def exact(node: Node, x: Node, w: Node, xs: Array, ws: Array, fixed: bool) -> None:
    bound = {x: xs} if fixed else {x: xs, w: ws}
    np.testing.assert_array_equal(node.op.reference(xs, ws).astype(np.int64), run_node(node, bound))


@pytest.mark.parametrize("fixed", [False, True], ids=["computed", "constant"])
@pytest.mark.parametrize("kind, x_zero", [("u8", 0), ("u8", 255), ("u8", 131), ("i8", 0), ("i8", -128), ("i8", 5)])
@pytest.mark.parametrize(
    "x_shape, w_shape",
    [((1, 1), (1, 1)), ((5, 3), (3, 7)), ((7, 64), (64, 64)), ((49, 130), (130, 33)), ((13, 257), (257, 100)), ((3, 9, 8), (8, 5)),
     ((2, 3, 17, 40), (3, 40, 24)), ((12, 16), (2, 16, 80))],
)  # fmt: skip
def test_products_are_exact(x_shape: tuple[int, ...], w_shape: tuple[int, ...], kind: str, x_zero: int, fixed: bool) -> None:
    rng = np.random.default_rng(0)
    xs, ws = codes(rng, kind, *x_shape), codes(rng, "i8", *w_shape)
    x = param("x", type_of(xs))
    w = constant(ws) if fixed else param("w", type_of(ws))
    exact(MatMul(x_zero)(x, w), x, w, xs, ws, fixed)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 14, 95])
@pytest.mark.parametrize("columns", [1, 15, 16, 17, 31, 33, 48, 63, 64, 65, 129])
def test_every_number_of_rows_and_columns(rows: int, columns: int) -> None:
    rng = np.random.default_rng(rows)
    xs, ws = codes(rng, "u8", rows, 19), codes(rng, "i8", 19, columns)
    x = param("x", type_of(xs))
    exact(MatMul(3)(x, constant(ws)), x, x, xs, ws, True)


@pytest.mark.parametrize("most", [64, 127, 128])
def test_weights_choose_how_they_are_multiplied(most: int) -> None:
    """With weights of at most 64 two products fit 16 bits; with more they would not."""
    xs = np.full((8, 300), 255, np.uint8)
    ws = np.full((300, 40), -most, np.int16).astype(np.int8)
    x = param("x", type_of(xs))
    exact(MatMul(1)(x, constant(ws)), x, x, xs, ws, True)


@pytest.mark.parametrize("dims", [(4, 32, 24), (3, 33, 5)])
def test_a_turned_second_input_is_packed_as_it_lies(dims: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(1)
    batch, depth, width = dims
    xs, ws = codes(rng, "u8", batch, 9, depth), codes(rng, "i8", batch, width, depth)
    x, w = param("x", type_of(xs)), param("w", type_of(ws))
    node = MatMul(7)(x, Transpose((0, 2, 1))(w))
    np.testing.assert_array_equal((xs.astype(np.int64) - 7) @ ws.astype(np.int64).swapaxes(1, 2), run_node(node, {x: xs, w: ws}))


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 9, 9, 64), (64, 64, 1, 1), {}),
    ((2, 7, 6, 8), (20, 8, 3, 3), {"pads_low": (1, 1), "pads_high": (1, 1)}),
    ((1, 11, 10, 3), (17, 3, 7, 7), {"strides": (2, 2), "pads_low": (3, 3), "pads_high": (3, 3)}),
    ((1, 8, 9, 5), (6, 5, 3, 2), {"pads_low": (0, 1), "pads_high": (1, 0), "dilations": (2, 1)}),
    ((1, 9, 9, 30), (70, 30, 3, 3), {"strides": (2, 2), "pads_low": (1, 1), "pads_high": (1, 1)}),
    ((1, 6, 6, 12), (8, 3, 3, 3), {"groups": 4, "pads_low": (1, 1), "pads_high": (1, 1)}),
    ((1, 6, 7, 10), (20, 5, 1, 1), {"groups": 2}),
    ((1, 10, 9, 21), (21, 1, 3, 3), {"groups": 21, "pads_low": (1, 1), "pads_high": (1, 1)}),
    ((2, 10, 9, 32), (32, 1, 5, 5), {"groups": 32, "strides": (2, 2), "pads_low": (2, 2), "pads_high": (1, 2)}),
    ((1, 5, 4), (6, 4, 3), {"strides": (1,), "pads_low": (1,), "pads_high": (1,), "dilations": (1,)}),
]


@pytest.mark.parametrize("kind, x_zero", [("u8", 0), ("u8", 137), ("i8", -128), ("i8", 9)])
@pytest.mark.parametrize("fixed", [False, True], ids=["computed", "constant"])
@pytest.mark.parametrize("x_shape, w_shape, fields", CONVOLUTIONS)
def test_convolutions_are_exact(
    x_shape: tuple[int, ...], w_shape: tuple[int, ...], fields: dict[str, Any], kind: str, x_zero: int, fixed: bool
) -> None:
    rng = np.random.default_rng(0)
    usual = {"strides": (1, 1), "pads_low": (0, 0), "pads_high": (0, 0), "dilations": (1, 1)}
    xs, ws = codes(rng, kind, *x_shape), codes(rng, "i8", *w_shape)
    x = param("x", type_of(xs))
    w = constant(ws) if fixed else param("w", type_of(ws))
    exact(Conv(**(usual | fields), channels_last=True, x_zero=x_zero)(x, w), x, w, xs, ws, fixed)  # type: ignore[arg-type]
