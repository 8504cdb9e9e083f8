"""Matrix products: forms, awkward sizes, element types, epilogues."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.operators.cpu.nodes import check_fused, close, random, run_node

from jumar.base import type_of
from jumar.ir import constant, param
from jumar.operators import Add, Gelu, MatMul, Maximum, Mul, Relu, Reshape, Transpose

FORMS = [
    ((5, 3), (3, 7)),
    ((1, 300), (300, 1000)),
    ((3, 300), (300, 17)),
    ((128, 768), (768, 48)),
    ((49, 700), (700, 33)),
    ((2, 3, 17, 40), (3, 40, 24)),
    ((2, 1, 4, 9), (5, 9, 8)),
    ((4, 9), (2, 3, 9, 8)),
    ((2, 3, 5, 4), (4, 6)),
    ((3,), (3, 5)),
    ((4, 3), (3,)),
    ((3,), (3,)),
    ((2, 4, 3), (2, 3, 1)),
    ((1, 1), (1, 1)),
    ((7, 1), (1, 255)),
]


@pytest.mark.parametrize("fixed", [False, True], ids=["computed", "constant"])
@pytest.mark.parametrize("x_shape, w_shape", FORMS)
def test_matmul_of_every_form(x_shape: tuple[int, ...], w_shape: tuple[int, ...], fixed: bool) -> None:
    rng = np.random.default_rng(0)
    x, w = random(rng, *x_shape), random(rng, *w_shape)
    x_node = param("x", type_of(x))
    w_node = constant(w) if fixed else param("w", type_of(w))
    actual = run_node(MatMul()(x_node, w_node), {x_node: x, w_node: w})
    close(np.matmul(x.astype(np.float64), w.astype(np.float64)), actual, 3e-6)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 6, 7, 8, 11, 13, 95, 97, 300])
@pytest.mark.parametrize("columns", [1, 8, 15, 16, 17, 40])
def test_every_number_of_rows_and_columns(rows: int, columns: int) -> None:
    rng = np.random.default_rng(rows)
    x, w = random(rng, rows, 19), random(rng, 19, columns)
    node = param("x", type_of(x))
    close(x.astype(np.float64) @ w, run_node(MatMul()(node, constant(w)), {node: x}), 2e-6)


@pytest.mark.parametrize(
    "x_type, w_type, tolerance",
    [
        (np.float64, np.float64, 1e-14),
        (np.float16, np.float16, 1e-3),
        (ml_dtypes.bfloat16, ml_dtypes.bfloat16, 8e-3),
        (np.int32, np.int32, 0),
        (np.int64, np.int64, 0),
        (np.int8, np.int8, 0),
        (np.uint8, np.int8, 0),
        (np.uint8, np.uint8, 0),
        (np.int16, np.int16, 0),
    ],
    ids=str,
)
@pytest.mark.parametrize("fixed", [False, True], ids=["computed", "constant"])
def test_matmul_of_every_element_type(x_type: Any, w_type: Any, tolerance: float, fixed: bool) -> None:
    rng = np.random.default_rng(0)
    x, w = random(rng, 13, 37, dtype=x_type), random(rng, 37, 21, dtype=w_type)
    x_node = param("x", type_of(x))
    w_node = constant(w) if fixed else param("w", type_of(w))
    node = MatMul()(x_node, w_node)
    close(node.op.reference(x, w).astype(node.dtype.numpy), run_node(node, {x_node: x, w_node: w}), tolerance)


def test_epilogue_of_bias_residual_and_activation() -> None:
    rng = np.random.default_rng(0)
    arrays = random(rng, 2, 9, 20), random(rng, 20, 37), random(rng, 37), random(rng, 2, 9, 37), random(rng, 1, 9, 1)
    check_fused(lambda x, w, b, r, s: Mul()(Add()(Gelu()(Add()(MatMul()(x, w), b)), r), s), *arrays)


def test_epilogue_that_differs_from_batch_to_batch() -> None:
    rng = np.random.default_rng(0)
    arrays = random(rng, 3, 2, 7, 5), random(rng, 3, 2, 5, 19), random(rng, 3, 1, 1, 19), random(rng, 2, 7, 1)
    check_fused(lambda x, w, a, b: Relu()(Maximum()(Add()(MatMul()(x, w), a), b)), *arrays)


def test_epilogue_with_an_operand_for_each_image() -> None:
    rng = np.random.default_rng(0)
    arrays = random(rng, 3, 5, 4, 6), random(rng, 6, 18), random(rng, 3, 1, 1, 18), random(rng, 1, 5, 4, 18)
    check_fused(lambda x, w, a, b: Add()(Mul()(MatMul()(x, w), a), b), *arrays)


def test_epilogue_that_splits_heads() -> None:
    rng = np.random.default_rng(0)
    arrays = random(rng, 2, 7, 24), random(rng, 24, 64), random(rng, 64)
    check_fused(lambda x, w, b: Transpose((0, 2, 1, 3))(Reshape((2, 7, 2, 32))(Add()(MatMul()(x, w), b))), *arrays)


def test_epilogue_of_narrow_types_rounds_once() -> None:
    rng = np.random.default_rng(0)
    arrays = random(rng, 9, 20, dtype=np.float16), random(rng, 20, 17, dtype=np.float16), random(rng, 17, dtype=np.float16)
    check_fused(lambda x, w, b: Relu()(Add()(MatMul()(x, w), b)), *arrays, tolerance=2e-3)


@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("m, k, n", [(5, 7, 9), (40, 33, 70), (1, 24, 17)])
def test_second_operand_is_turned_on_the_way(batch: tuple[int, ...], m: int, k: int, n: int) -> None:
    rng = np.random.default_rng(0)
    x, w, b = random(rng, *batch, m, k), random(rng, *batch, n, k), random(rng, n)
    swapped = (*range(len(batch)), len(batch) + 1, len(batch))
    check_fused(lambda x, w: MatMul()(x, Transpose(swapped)(w)), x, w)
    check_fused(lambda x, w, b: Relu()(Add()(MatMul()(x, Transpose(swapped)(w)), b)), x, w, b)
