"""Gradients of attention: blocks that are not full, shared heads, masks, causal order; against the reference and through a whole program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.operators.cpu.run import check, lower

from jumar.base import Array, type_of
from jumar.compiler import compile
from jumar.compiler.autodiff import gradients
from jumar.ir import Graph, apply, interpret, param
from jumar.operators import Attention, AttentionGrad

RNG = np.random.default_rng(5)


def drawn(*shape: int, dtype: Any = np.float32) -> Array:
    return (RNG.standard_normal(shape) * 0.7).astype(dtype)


def arrays(h: int, g: int, m: int, n: int, d: int, e: int, dtype: Any = np.float32) -> list[Array]:
    """q, k, v, y and dy."""
    shapes = ((2, h, m, d), (2, g, n, d), (2, g, n, e), (2, h, m, e), (2, h, m, e))
    return [drawn(*s, dtype=dtype) for s in shapes]


SHAPES = [(2, 2, 1, 1, 1, 1), (2, 2, 5, 7, 4, 3), (4, 2, 49, 33, 16, 20), (2, 2, 130, 65, 24, 17), (4, 1, 50, 100, 64, 64)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_gradients(shape: tuple[int, ...], dtype: str) -> None:
    given = arrays(*shape, dtype=dtype)
    h, _, m, n = shape[:4]
    for causal, offset in ((False, 0), (True, 0), (True, n - m), (True, -1)):
        check(AttentionGrad(0.3, causal=causal, offset=offset), *given, scale=20)
    hidden = RNG.integers(0, 2, (2, 1, m, n)).astype(np.bool_)
    hidden[0, 0, 0] = False  # a query that sees nothing
    for mask in (hidden, drawn(n, dtype=dtype), drawn(h, m, 1, dtype=dtype), np.where(hidden, 0, -np.inf).astype(dtype)):
        check(AttentionGrad(0.3), *given, mask, scale=20)
    check(AttentionGrad(0.3, causal=True), *given, hidden[:1, :, :1], scale=20)


def test_a_whole_program_is_the_gradient_of_the_formula() -> None:
    given = [*arrays(4, 2, 60, 50, 16, 16)[:3], drawn(2, 1, 1, 50), drawn(2, 4, 60, 16)]
    params = tuple(param(f"p{i}", type_of(a)) for i, a in enumerate(given))
    y = Attention(0.25, causal=True)(*params[:4])
    grads = gradients([y], params[:4], [params[4]])
    graph = Graph("g", params, (y, *(g for g in grads if g is not None)))
    compiled = compile(graph)
    assert ("attention_grad", "native") in compiled.report.selection
    expected = gradients([Attention(0.25, causal=True).formula(*params[:4])], params[:4], [params[4]])
    wanted = interpret(Graph("e", params, tuple(g for g in expected if g is not None)), given)
    for a, e in zip(compiled.instance(threads=2).run(given)[1:], wanted, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("fields", [{"softcap": 2.0}, {}])
def test_soft_caps_and_narrow_types_take_the_formula(fields: dict[str, Any]) -> None:
    given = arrays(2, 2, 5, 7, 4, 3, dtype="float32" if fields else "float16")
    assert lower(apply(AttentionGrad(0.3, **fields), *(param(f"p{i}", type_of(a)) for i, a in enumerate(given)))) is None
