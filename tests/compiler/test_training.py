"""Whole training steps: forward, backward and optimiser as one program that writes parameters in place, against the interpreter."""

import numpy as np
import pytest

from jumar.base import TensorType, i32
from jumar.compiler import compile
from jumar.compiler.autodiff import gradients
from jumar.ir import Graph, constant, f32t, interpret, param
from jumar.operators import (
    AvgPool,
    BatchNormTrain,
    Conv,
    Div,
    Gather,
    Gelu,
    LayerNorm,
    LogSoftmax,
    MatMul,
    MaxPool,
    ReduceSum,
    Relu,
    Reshape,
    Slice,
    Softmax,
    Sqrt,
    Square,
    StopGradient,
    Transpose,
    add,
    mul,
    sub,
)


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("JUMAR_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))


class Weights:
    """Parameters as they are asked for."""

    def __init__(self):
        self.params = []

    def __call__(self, *shape):
        self.params.append(param(f"w{len(self.params)}", f32t(*shape)))
        return self.params[-1]


def number(value):
    return constant(np.float32(value))


def cnn(w, x):
    def conv(x, filters, kernel, stride=1, groups=1):
        pad = kernel // 2
        op = Conv((stride, stride), (pad, pad), (pad, pad), (1, 1), groups)
        return op(x, w(filters, x.shape[1] // groups, kernel, kernel))

    def norm(x):
        return BatchNormTrain()(x, w(x.shape[1]), w(x.shape[1]))[0]

    y = MaxPool((3, 3), (2, 2), (1, 1), (1, 1), (1, 1))(Relu()(norm(conv(x, 16, 3))))
    z = norm(conv(Relu()(norm(conv(y, 24, 3, 2))), 24, 3))
    y = Relu()(add(z, norm(conv(y, 24, 1, 2))))
    y = Relu()(norm(conv(conv(y, 24, 3, 1, 24), 32, 1)))
    y = AvgPool((2, 2), (2, 2), (0, 0), (0, 0), (1, 1))(y)
    flat = Reshape((x.shape[0], y.type.size // x.shape[0]))(y)
    return add(MatMul()(flat, w(flat.shape[1], 10)), w(10))


def transformer(w, ids):
    n, t, d, heads = *ids.shape, 32, 4
    x = Gather(0)(w(50, d), ids)
    h = LayerNorm(-1)(x, w(d), w(d))
    qkv = add(MatMul()(h, w(d, 3 * d)), w(3 * d))
    parts = (Slice((0, 0, i * d), (n, t, i * d + d), (1, 1, 1))(qkv) for i in range(3))
    q, k, v = (Transpose((0, 2, 1, 3))(Reshape((n, t, heads, d // heads))(p)) for p in parts)
    scores = mul(MatMul()(q, Transpose((0, 1, 3, 2))(k)), number((d // heads) ** -0.5))
    y = Reshape((n, t, d))(Transpose((0, 2, 1, 3))(MatMul()(Softmax(-1)(scores), v)))
    x = add(x, add(MatMul()(y, w(d, d)), w(d)))
    z = MatMul()(Gelu()(add(MatMul()(LayerNorm(-1)(x, w(d), w(d)), w(d, 4 * d)), w(4 * d))), w(4 * d, d))
    return MatMul()(Reshape((n * t, d))(add(x, z)), w(d, 50))


def step(model, x, optimiser):
    """The graph of a training step; parameters and what the optimiser keeps are updated."""
    w = Weights()
    logits = model(w, x)
    target = param("target", logits.type)
    loss = mul(ReduceSum(())(mul(LogSoftmax(-1)(logits), StopGradient()(target))), number(-1 / logits.shape[0]))
    kept, new = [], []
    for p, g in zip(w.params, gradients((loss,), w.params), strict=True):
        states = [param(f"{p.op.label}_{i}", p.type) for i in range(1 if optimiser == "momentum" else 2)]
        if optimiser == "momentum":
            made = [add(mul(states[0], number(0.9)), g)]
            new.append((sub(p, mul(made[0], number(0.1))), *made))
        else:
            made = [
                add(mul(states[0], number(0.9)), mul(g, number(0.1))),
                add(mul(states[1], number(0.99)), mul(Square()(g), number(0.01))),
            ]
            new.append((sub(p, Div()(mul(made[0], number(0.01)), add(Sqrt()(made[1]), number(1e-3)))), *made))
        kept.append((p, *states))
    params = (x, target, *(v for vs in kept for v in vs))
    outputs = (loss, *(v for vs in new for v in vs))
    return Graph("step", params, outputs, (), tuple((1 + i, 2 + i) for i in range(len(outputs) - 1)))


@pytest.mark.parametrize(
    "model, x, optimiser",
    [(cnn, f32t(4, 3, 34, 30), "momentum"), (cnn, f32t(2, 3, 20, 20), "adam"), (transformer, TensorType((3, 40), i32), "adam")],
    ids=["cnn-momentum", "cnn-adam", "transformer-adam"],
)  # fmt: skip
def test_a_step_is_one_native_program_that_updates_in_place(model, x, optimiser):
    graph = step(model, param("x", x), optimiser)
    compiled = compile(graph)
    assert not compiled.program.host_steps
    rng = np.random.default_rng(0)
    arrays = [np.asarray(rng.standard_normal(p.type.dims) * 0.3, np.float32) for p in graph.params]
    for array, p in zip(arrays, graph.params, strict=True):
        if p.op.label.endswith("_1"):
            np.abs(array, out=array)
    if x.dtype is i32:
        arrays[0] = rng.integers(0, 50, x.dims).astype(np.int32)
    call = compiled.instance(threads=2).bind([None, *arrays[1:]])
    for _ in range(2):
        expected = interpret(graph, [a.copy() for a in arrays])
        actual = call(arrays[0])
        for e, a in zip(expected, actual, strict=True):
            np.testing.assert_allclose(a, e, rtol=2e-3, atol=2e-4 * max(1.0, float(np.abs(e).max())))
        assert all(a is b for a, b in zip(actual[1:], arrays[2:], strict=True))
    assert not any(c.node.op.name == "identity" and i for i, c in enumerate(compiled.lowering.choices) if c.how == "native")


def test_the_backward_pass_keeps_channels_last():
    compiled = compile(step(cnn, param("x", f32t(4, 3, 34, 30)), "momentum"))
    assert compiled.report.selection["transpose", "native"] <= 4  # the image, and what a product reads turned
