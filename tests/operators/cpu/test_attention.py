"""Attention: masks, causality, shared heads, few queries, epilogues, against the reference in f64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.operators.cpu.nodes import check_fused, close, random, run_node

from jumar.base import Array, type_of
from jumar.ir import param
from jumar.operators import Reshape, Transpose
from jumar.operators.attention import Attention

CASES = [
    ((1,), 12, 12, 128, 128, 64, 64, {}, ""),
    ((2,), 4, 2, 7, 9, 8, 3, {"causal": True, "offset": 2}, ""),
    ((), 3, 1, 17, 33, 24, 40, {}, "number"),
    ((2, 2), 2, 2, 5, 5, 7, 16, {}, "bool"),
    ((1,), 2, 2, 1, 50, 64, 64, {}, "bool"),
    ((1,), 4, 4, 300, 300, 16, 16, {"causal": True}, ""),
    ((1,), 2, 2, 40, 20, 8, 8, {"softcap": 2.0}, "number"),
    ((1,), 2, 2, 16, 9, 8, 8, {"causal": True, "offset": -3}, ""),
    ((1,), 2, 2, 6, 3, 8, 8, {"causal": True, "offset": -3}, ""),
    ((1,), 12, 12, 1, 77, 64, 64, {}, "number"),
    ((2,), 4, 2, 2, 77, 20, 9, {}, "bool"),
]


def mask_of(rng: np.random.Generator, kind: str, batch: tuple[int, ...], m: int, n: int) -> list[Array]:
    if kind == "number":
        return [random(rng, m, n)]
    return [rng.random((*batch, 1, 1, n)) > 0.4] if kind == "bool" else []


@pytest.mark.parametrize("batch, heads, shared, m, n, d, width, options, mask", CASES)
def test_attention(batch: Any, heads: int, shared: int, m: int, n: int, d: int, width: int, options: Any, mask: str) -> None:
    rng = np.random.default_rng(0)
    arrays = [random(rng, *batch, heads, m, d), random(rng, *batch, shared, n, d), random(rng, *batch, shared, n, width)]
    arrays += mask_of(rng, mask, batch, m, n)
    nodes = [param(f"p{i}", type_of(a)) for i, a in enumerate(arrays)]
    node = Attention(scale=d**-0.5, **options)(*nodes)
    wide = [a if a.dtype == np.bool_ else a.astype(np.float64) for a in arrays]
    with np.errstate(invalid="ignore"):
        expected = np.asarray(node.op.reference(*wide))
    close(expected, run_node(node, dict(zip(nodes, arrays, strict=True))), 2e-6)


@pytest.mark.parametrize("rows", [6, 20])
def test_query_that_may_see_nothing_gives_zeros(rows: int) -> None:
    rng = np.random.default_rng(0)
    arrays = [random(rng, 1, 2, rows, 8) for _ in range(3)]
    mask = np.ones((1, 1, rows, rows), np.bool_)
    mask[..., 2, :] = False
    nodes = [param(f"p{i}", type_of(a)) for i, a in enumerate((*arrays, mask))]
    actual = run_node(Attention(scale=0.5)(*nodes), dict(zip(nodes, (*arrays, mask), strict=True)))
    assert not actual[..., 2, :].any()
    assert np.isfinite(actual).all()


def test_mask_of_the_least_number_is_a_score_like_others() -> None:
    rng = np.random.default_rng(0)
    arrays = [random(rng, 1, 2, 20, 8) for _ in range(3)]
    mask = np.full((20, 20), np.finfo(np.float32).min, np.float32)
    nodes = [param(f"p{i}", type_of(a)) for i, a in enumerate((*arrays, mask))]
    actual = run_node(Attention(scale=0.0)(*nodes), dict(zip(nodes, (*arrays, mask), strict=True)))
    close(np.broadcast_to(arrays[2].mean(-2, keepdims=True), actual.shape), actual, 1e-6)


def test_epilogue_that_joins_heads() -> None:
    rng = np.random.default_rng(0)
    arrays = [random(rng, 2, 2, 20, 32) for _ in range(3)]
    check_fused(lambda q, k, v: Reshape((2, 20, 64))(Transpose((0, 2, 1, 3))(Attention(scale=0.2)(q, k, v))), *arrays)


def test_attention_of_half_precision() -> None:
    rng = np.random.default_rng(0)
    for rows in (3, 20):
        arrays = [random(rng, 1, 2, size, 8, dtype=np.float16) for size in (rows, 20, 20)]
        check_fused(Attention(scale=0.3), *arrays, tolerance=2e-3)
