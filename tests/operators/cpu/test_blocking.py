"""Cuts of contractions that `jumar tune` may choose: each computes what the expected one does."""

from __future__ import annotations

import numpy as np
import pytest
from tests.operators.cpu.nodes import run_node
from tests.operators.cpu.run import run

from jumar.base import trying, type_of
from jumar.ir import constant, param
from jumar.operators import MatMul


@pytest.mark.parametrize(("rows", "depth", "columns"), [(16, 96, 200), (49, 600, 130), (200, 1000, 70)])
def test_every_cut_of_a_product_gives_the_same(rows: int, depth: int, columns: int) -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((rows, depth), (depth, columns)))
    with trying({}) as trial:
        (expected,) = run(MatMul(), x, w)
    np.testing.assert_allclose(expected, x.astype(np.float64) @ w, rtol=1e-4, atol=1e-3)
    tried = 0
    for question, asked in trial.asked.items():
        for option in asked.options:
            with trying({question: option}):
                (actual,) = run(MatMul(), x, w)
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4, err_msg=asked.tell(option))
            tried += 1
    assert tried > 1


def test_every_cut_of_a_product_of_bytes_gives_the_same() -> None:
    rng = np.random.default_rng(0)
    xs, ws = rng.integers(0, 256, (100, 300)).astype(np.uint8), rng.integers(-127, 128, (300, 260)).astype(np.int8)
    x = param("x", type_of(xs))
    node = MatMul(3)(x, constant(ws))
    expected = (xs.astype(np.int64) - 3) @ ws.astype(np.int64)
    with trying({}) as trial:
        np.testing.assert_array_equal(run_node(node, {x: xs}), expected)
    ((question, asked),) = trial.asked.items()
    assert len(asked.options) > 2
    for option in asked.options:
        with trying({question: option}):
            np.testing.assert_array_equal(run_node(node, {x: xs}), expected, err_msg=asked.tell(option))
