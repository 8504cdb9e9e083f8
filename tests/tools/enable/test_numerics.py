"""Numerics: errors of outputs, and the first node that drifts."""

from __future__ import annotations

import numpy as np

from jumar.base import Array
from jumar.ir import Graph, f32t, interpret, param
from jumar.operators import Exp, Neg, Sqrt
from jumar.tools.enable.numerics import compare, verify


def test_floats_agree_within_tolerance_and_integers_exactly() -> None:
    one = np.ones(3, np.float32)
    assert compare("y", one + 1e-5, one).within
    assert not compare("y", one + 1e-2, one).within
    assert not compare("y", np.array([1, 2]), np.array([1, 3])).within
    assert not compare("y", np.ones(4, np.float32), one).within


def test_nan_and_infinities_agree_where_they_belong() -> None:
    odd = np.array([np.nan, np.inf, 1.0], np.float32)
    assert compare("y", odd.copy(), odd).within
    wrong = np.array([0.0, np.inf, 1.0], np.float32)
    assert not compare("y", wrong, odd).within


def test_the_first_node_that_drifts_is_found() -> None:
    x = param("x", f32t(4))
    root = Sqrt()(x)
    graph = Graph("g", (x,), (Neg()(Exp()(root)),))
    inputs = [np.linspace(1, 2, 4, dtype=np.float32)]

    def wrong_exp(piece: Graph, arrays: list[Array]) -> list[Array]:
        """A compiler whose exp is wrong."""
        reaches = any(isinstance(n.op, Exp) for n in piece.nodes)
        return [value + (0.5 if reaches else 0.0) for value in interpret(piece, arrays)]

    found = verify(graph, inputs, ["y"], wrong_exp(graph, inputs), wrong_exp)
    assert not found.within
    assert found.drift is not None
    assert found.drift.node == "exp"
    assert abs(found.drift.max_abs - 0.5) < 1e-6


def test_no_drift_is_looked_for_where_all_agrees() -> None:
    x = param("x", f32t(4))
    graph = Graph("g", (x,), (Exp()(x),))
    inputs = [np.zeros(4, np.float32)]
    found = verify(graph, inputs, ["y"], interpret(graph, inputs), interpret)
    assert found.within
    assert found.drift is None
    assert found.outputs[0].max_abs == 0.0
