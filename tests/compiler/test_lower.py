"""Works that lowering leaves out are those that nobody needs, and only those."""

from __future__ import annotations

import numpy as np
import pytest
from tests.operators.cpu.test_recurrent import inputs, lists

from jumar.base import type_of
from jumar.compiler import compile
from jumar.ir import Get, Graph, apply, constant, f32t, param
from jumar.operators import Conv, Gru, Lstm, Relu, Rnn, Transpose
from jumar.operators.recurrent import Recurrent


@pytest.mark.parametrize("op", [Lstm, Gru, Rnn])
def test_a_state_that_a_later_work_writes_again_is_filled(op: type[Recurrent]) -> None:
    layer, arrays = op(lists(op, 1), (False,)), inputs(op, 1, (4, 2, 3, 5), None, "float32", False)
    node = apply(layer, *(param(f"p{i}", type_of(a)) for i, a in enumerate(arrays)))
    instance = compile(Graph("g", node.inputs, (Get(0)(node),))).instance()  # nobody reads the last state
    for _ in range(2):  # the second run finds what the first has left
        np.testing.assert_allclose(instance.run(arrays)[0], layer.reference(*arrays)[0], rtol=1e-5, atol=1e-5)


def test_a_transpose_that_nobody_reads_is_left_out() -> None:
    x = param("x", f32t(1, 3, 16, 16))
    w = constant(np.random.default_rng(0).standard_normal((8, 3, 3, 3)).astype(np.float32))
    y = Relu()(Conv((1, 1), (1, 1), (1, 1), (1, 1), channels_last=True)(Transpose((0, 2, 3, 1))(x), w))
    assert [s.name for s in compile(Graph("g", (x,), (y,))).program.steps if s.name == "transpose"] == []
