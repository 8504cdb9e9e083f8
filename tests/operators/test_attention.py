"""What is special about attention: queries that may see nothing, shared heads, and where the causal order begins."""

from __future__ import annotations

import numpy as np

from jumar.base import type_of
from jumar.ir import Graph, interpret, param
from jumar.operators.attention import Attention, RotaryEmbedding, causal_mask

RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:  # type: ignore[type-arg]
    return RNG.normal(size=shape).astype(np.float32)


def both_ways(op: Attention, *arrays: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    """The reference, after checking that the decomposition agrees."""
    params = tuple(param(f"x{i}", type_of(a)) for i, a in enumerate(arrays))
    whole = interpret(Graph("a", params, (op(*params),)), arrays)[0]
    parts = interpret(Graph("a", params, (op.decompose(*params),)), arrays)[0]
    np.testing.assert_allclose(parts, whole, rtol=1e-5, atol=1e-6)
    return whole


def test_a_query_that_may_see_nothing_gives_zeros() -> None:
    q, k, v = floats(1, 2, 3, 4), floats(1, 2, 5, 4), floats(1, 2, 5, 4)
    seen = np.ones((3, 5), np.bool_)
    seen[1] = False
    for mask in (seen, np.where(seen, 0, -np.inf).astype(np.float32)):
        y = both_ways(Attention(0.5), q, k, v, mask)
        assert (y[:, :, 1] == 0).all()
        assert np.isfinite(y).all()


def test_queries_before_the_first_key_give_zeros() -> None:
    y = both_ways(Attention(0.5, causal=True, offset=-1), floats(1, 1, 3, 4), floats(1, 1, 3, 4), floats(1, 1, 3, 4))
    assert (y[0, 0, 0] == 0).all()
    assert causal_mask(2, 3, 1).tolist() == [[True, True, False], [True, True, True]]


def test_shared_heads_are_repeated_heads() -> None:
    q, k, v = floats(2, 6, 3, 4), floats(2, 2, 5, 4), floats(2, 2, 5, 3)
    shared = both_ways(Attention(0.5), q, k, v)
    repeated = both_ways(Attention(0.5), q, np.repeat(k, 3, 1), np.repeat(v, 3, 1))
    np.testing.assert_allclose(shared, repeated, rtol=1e-6)


def test_rotation_keeps_lengths_and_what_the_angles_do_not_cover() -> None:
    x, angle = floats(1, 2, 3, 8), floats(1, 1, 3, 3)
    y = RotaryEmbedding().reference(x, np.cos(angle), np.sin(angle))
    np.testing.assert_allclose((y**2).sum(-1), (x**2).sum(-1), rtol=1e-5)
    np.testing.assert_array_equal(y[..., 6:], x[..., 6:])
