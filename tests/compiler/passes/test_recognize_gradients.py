import numpy as np
import pytest

import jumar.operators as ops
from jumar.base import f16
from jumar.compiler.autodiff import gradients
from jumar.compiler.passes.precision import Precision, set_precision
from jumar.compiler.passes.recognize_gradients import NAMED, RecognizeGradients
from jumar.compiler.passes.select import select
from jumar.compiler.stages import device_independent
from jumar.device.npu import find_chip
from jumar.ir import Graph, Sample, constant, f32t, interpret, param

CASES = [
    (ops.LayerNorm(-1), (f32t(2, 3, 16), f32t(16), f32t(16))),
    (ops.LayerNorm(1), (f32t(2, 3, 16), f32t(3, 16))),
    (ops.RmsNorm(-1), (f32t(2, 3, 16), f32t(16))),
    (ops.Gelu(approximate="tanh"), (f32t(4, 16),)),
    *((op(), (f32t(4, 16),)) for op in NAMED if op not in (ops.LayerNorm, ops.RmsNorm)),
]


def simplified(graph):
    for step in device_independent():
        graph = step(graph)
    return graph


def backward(op, types):
    """An operator, its result and what its inputs receive."""
    xs = [param(f"x{i}", t) for i, t in enumerate(types)]
    y = op(*xs)
    dy = param("dy", y.type)
    return simplified(Graph("net", (*xs, dy), (y, *(g for g in gradients((y,), xs, (dy,)) if g is not None))))


@pytest.mark.parametrize(("op", "types"), CASES, ids=lambda c: str(c) if isinstance(c, tuple) else c.name)
def test_a_gradient_that_is_spelt_out_gets_its_name_and_computes_the_same(op, types):
    graph = backward(op, types)
    made = RecognizeGradients(device_independent())(graph)
    (gradient,) = [n for n in made.nodes if isinstance(n.op, ops.Gradient)]
    assert gradient.op.of == str(op)
    assert {n.op.name for n in made.nodes} <= {"param", "constant", "get", "gradient", op.name}  # nothing of the pattern is left
    arrays = Sample(tuple(p.type for p in graph.params)).arrays()
    for expected, actual in zip(interpret(graph, arrays), interpret(made, arrays), strict=True):
        np.testing.assert_allclose(expected, actual, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("op", "types"), CASES, ids=lambda c: str(c) if isinstance(c, tuple) else c.name)
@pytest.mark.parametrize("soc", ["910A", "910B4", "950"])
def test_a_gradient_has_a_kernel(op, types, soc):
    made = RecognizeGradients(device_independent())(backward(op, types))
    typed, _ = set_precision(made, find_chip(soc), Precision())
    (choice,) = [c for n, c in select(typed, find_chip(soc)).choices.items() if isinstance(n.op, ops.Gradient)]
    assert "Grad" in choice.kind
    assert choice.how in ("aclnn", "ge")
    assert choice.node.inputs[0].dtype is f16


def test_a_norm_s_gradient_stays_wide_where_the_norm_does():
    made = RecognizeGradients(device_independent())(backward(ops.LayerNorm(-1), CASES[0][1]))
    for mode, expected in (("O2", "f32"), ("allow_mix_precision", "f32"), ("O3", "f16")):
        typed, _ = set_precision(made, find_chip("910B4"), Precision(mode))
        assert {str(n.inputs[0].dtype) for n in typed.nodes if n.op.name in ("gradient", "layer_norm")} == {expected}


def test_several_layers_find_each_their_own():
    x, w1, w2 = param("x", f32t(8, 16)), param("w1", f32t(16, 16)), param("w2", f32t(16, 16))
    h = ops.Relu()(ops.MatMul()(ops.Relu()(ops.MatMul()(x, w1)), w2))
    loss = ops.ReduceSum()(ops.Square()(h))
    graph = simplified(Graph("net", (x, w1, w2), (loss, *gradients((loss,), (w1, w2)))))
    made = RecognizeGradients(device_independent())(graph)
    assert [str(n.op) for n in made.nodes if n.op.name == "gradient"] == ["gradient(of='relu', by_result=True)"] * 2
    arrays = Sample(tuple(p.type for p in graph.params)).arrays()
    for expected, actual in zip(interpret(graph, arrays), interpret(made, arrays), strict=True):
        np.testing.assert_allclose(expected, actual, rtol=1e-4, atol=1e-4)


def test_a_graph_without_gradients_stays_itself():
    x = param("x", f32t(4, 4))
    graph = Graph("net", (x,), (ops.Softmax()(ops.Add()(x, constant(np.float32(1)))),))
    assert RecognizeGradients()(graph) is graph
