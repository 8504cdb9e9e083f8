"""Which values share memory: a task may write over an operand only if nothing else that it does reads it."""

from __future__ import annotations

import numpy as np

from jumar.base import TensorType, f32
from jumar.compiler import compile
from jumar.ir import Graph, interpret, param
from jumar.operators import Add, Conv, ReduceSum, Softmax, Tanh


def test_a_window_does_not_write_over_the_values_that_it_still_reads() -> None:
    """A depthwise convolution with its own input as residual, which it reaches in two ways."""
    x, w, b = (param(n, TensorType(s, f32)) for n, s in (("x", (1, 14, 14, 16)), ("w", (16, 1, 3, 3)), ("b", (16,))))
    held = Tanh()(ReduceSum((0,), keepdims=True)(x))
    y = Add()(Conv((1, 1), (1, 1), (1, 1), (1, 1), 16, channels_last=True)(held, w, b), held)
    graph = Graph("residual", (x, w, b), (Softmax(1)(y),))
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(p.shape).astype(np.float32) for p in graph.params]
    (expected,), (actual,) = interpret(graph, arrays), compile(graph).instance().run(arrays)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
