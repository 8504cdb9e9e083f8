"""Gradients of graphs: against torch, against differences, and what flows, stops and is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jumar.base import Array, CompileError, Loc, f16, f32, f64, i64, type_of
from jumar.compiler import compile
from jumar.compiler.autodiff import gradients
from jumar.ir import Graph, Node, constant, f32t, interpret, located, param, tensor, topological
from jumar.operators import (
    Attention,
    AvgPool,
    BatchNormTrain,
    Cast,
    Conv,
    Floor,
    Gather,
    Gelu,
    Gru,
    Identity,
    LayerNorm,
    LogSoftmax,
    Lstm,
    MatMul,
    MaxPool,
    Multinomial,
    ReduceMean,
    ReduceSum,
    Relu,
    Rnn,
    Sigmoid,
    StopGradient,
    TopK,
    add,
    cast,
    exp,
    greater,
    matmul,
    mul,
    neg,
    power,
    reshape,
    select,
    square,
    sub,
)
from jumar.operators.recurrent_grad import SLOPES, Gate


def values(outputs: Any, params: tuple[Node, ...], arrays: list[Array]) -> list[Array]:
    """What nodes are on arrays."""
    return interpret(Graph("values", params, tuple(outputs)), arrays)


def drawn(*params: Node, seed: int = 0) -> list[Array]:
    """Numbers for parameters."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(p.shape).astype(p.dtype.numpy) for p in params]


def network(params: list[Node]) -> Node:
    """Convolution, batch norm, pools, a product and cross entropy: the loss."""
    x, w, scale, bias, dense, target = params
    y, _, _ = BatchNormTrain()(Conv((2, 1), (1, 1), (1, 1), (1, 1))(x, w), scale, bias)
    y = MaxPool((2, 2), (1, 1), (0, 0), (0, 0), (1, 1))(Relu()(y))
    y = AvgPool((2, 2), (2, 2), (0, 0), (0, 0), (1, 1))(y)
    logits = matmul(reshape(y, (y.shape[0], y.type.size // y.shape[0])), dense)
    return neg(ReduceMean()(ReduceSum((1,))(mul(LogSoftmax(1)(logits), target))))


def network_params(dtype: Any = f64) -> list[Node]:
    shapes = {"x": (2, 3, 9, 7), "w": (4, 3, 3, 3), "scale": (4,), "bias": (4,), "dense": (24, 5), "target": (2, 5)}
    return [param(k, tensor(dtype, *s)) for k, s in shapes.items()]


def test_gradients_of_a_network_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    params = network_params()
    arrays = drawn(*params)
    loss = network(params)
    found = values([loss, *gradients([loss], params)], tuple(params), arrays)

    x, w, scale, bias, dense, target = leaves = [torch.tensor(a, requires_grad=True) for a in arrays]
    f = torch.nn.functional
    y = f.batch_norm(f.conv2d(x, w, stride=(2, 1), padding=1), None, None, scale, bias, training=True)
    y = f.avg_pool2d(f.max_pool2d(f.relu(y), 2, 1), 2)
    total = -(f.log_softmax(y.flatten(1) @ dense, 1) * target).sum(1).mean()
    total.backward()
    for a, e in zip(found, [total, *(leaf.grad for leaf in leaves)], strict=True):
        np.testing.assert_allclose(a, e.detach().numpy(), rtol=1e-9, atol=1e-12)


def test_gradients_of_a_transformer_block_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    shapes = {"x": (2, 5, 8), "g": (8,), "b": (8,), "wq": (8, 8), "wk": (8, 8), "wv": (8, 8), "w1": (8, 16), "w2": (16, 8)}
    params = [param(k, tensor(f64, *s)) for k, s in shapes.items()]
    arrays = drawn(*params)
    x, g, b, wq, wk, wv, w1, w2 = params

    def heads(v: Node) -> Node:
        return reshape(v, (2, 1, 5, 8))

    h = LayerNorm(-1, 1e-5)(x, g, b)
    y = add(x, reshape(Attention(0.35, causal=True)(heads(matmul(h, wq)), heads(matmul(h, wk)), heads(matmul(h, wv))), (2, 5, 8)))
    y = add(y, matmul(Gelu()(matmul(y, w1)), w2))
    found = values(gradients([ReduceSum()(square(y))], params), tuple(params), arrays)

    x, g, b, wq, wk, wv, w1, w2 = leaves = [torch.tensor(a, requires_grad=True) for a in arrays]
    f = torch.nn.functional
    h = f.layer_norm(x, (8,), g, b)
    y = x + f.scaled_dot_product_attention((h @ wq)[:, None], (h @ wk)[:, None], (h @ wv)[:, None], is_causal=True, scale=0.35)[:, 0]
    y = y + f.gelu(y @ w1) @ w2
    (y**2).sum().backward()
    for a, leaf in zip(found, leaves, strict=True):
        np.testing.assert_allclose(a, leaf.grad.numpy(), rtol=1e-8, atol=1e-8)


def test_compiled_forward_and_backward_compute_what_the_interpreter_does() -> None:
    params = network_params(f32)
    loss = network(params)
    grads = gradients([loss], params[1:5])
    graph = Graph("step", tuple(params), (loss, *(g for g in grads if g is not None)))
    arrays = drawn(*params)
    for e, a in zip(interpret(graph, arrays), compile(graph).instance(threads=1).run(arrays), strict=True):
        np.testing.assert_allclose(a, e, rtol=2e-4, atol=2e-5)


def test_contributions_of_all_users_add_up() -> None:
    x = param("x", tensor(f64, 3))
    y = add(mul(x, x), add(exp(x), mul(x, 3)))
    (array,) = arrays = drawn(x)
    (dx,) = gradients([ReduceSum()(y), ReduceSum()(x)], [x])
    np.testing.assert_allclose(values([dx], (x,), arrays)[0], 2 * array + np.exp(array) + 3 + 1)


def test_what_was_broadcast_is_summed() -> None:
    a, b = param("a", tensor(f64, 2, 3)), param("b", tensor(f64, 3))
    da, db = gradients([mul(a, b)], [a, b])
    arrays = drawn(a, b)
    found = values([da, db], (a, b), arrays)
    np.testing.assert_allclose(found[0], np.broadcast_to(arrays[1], (2, 3)))
    np.testing.assert_allclose(found[1], arrays[0].sum(0))


def test_composite_with_one_input_twice_and_inputs_that_depend_on_each_other() -> None:
    """The decomposition is differentiated as if its inputs were free; their own history is walked once."""
    x = param("x", tensor(f64, 1, 1, 3, 4))
    k = mul(exp(x), 0.1)
    y = ReduceSum()(square(Attention(0.5)(x, k, x)))
    (array,) = drawn(x)

    def loss(a: Array) -> float:
        return float(values([y], (x,), [a])[0])

    (actual,) = values(gradients([y], [x]), (x,), [array])
    for at in np.ndindex(array.shape):
        step = np.zeros_like(array)
        step[at] = 1e-6
        assert actual[at] == pytest.approx((loss(array + step) - loss(array - step)) / 2e-6, rel=1e-5, abs=1e-8)


def test_inner_nodes_and_what_lies_above_them_both_receive() -> None:
    x = param("x", tensor(f64, 2))
    y = exp(x)
    dx, dy = gradients([square(y)], [x, y])
    (array,) = arrays = drawn(x)
    found = values([dx, dy], (x,), arrays)
    np.testing.assert_allclose(found[1], 2 * np.exp(array))
    np.testing.assert_allclose(found[0], 2 * np.exp(2 * array))


def test_nothing_flows_to_what_is_not_used_or_stopped_or_no_float() -> None:
    x, unused, at = param("x", f32t(3)), param("unused", f32t(3)), param("at", tensor(i64, 2))
    stopped = mul(StopGradient()(x), 2)
    y = add(ReduceSum()(Gather(0)(Floor()(x), at)), ReduceSum()(stopped))
    assert gradients([y], [x, unused, at]) == (None, None, None)
    assert gradients([Cast(i64)(x)], [x]) == (None,)
    assert gradients([Cast(f32)(Cast(i64)(x))], [x]) == (None,)
    (dx,) = gradients([mul(StopGradient()(x), x)], [x])
    assert values([dx], (x,), [np.array([1, 2, 3], np.float32)])[0].tolist() == [1, 2, 3]


def test_an_operator_without_gradient_is_named_with_the_users_line() -> None:
    x = param("x", f32t(2, 3))
    with located(Loc("train.py", 17)):
        drawn_ = Multinomial(count=1, dtype=f32)(mul(x, 2))
    with pytest.raises(CompileError, match="multinomial: operator must have a gradient") as caught:
        gradients([drawn_], [x])
    assert caught.value.loc == Loc("train.py", 17) and caught.value.code == "gradient-missing"
    beside = add(ReduceSum((1,), keepdims=True)(x), Multinomial(count=1, dtype=f32)(StopGradient()(x)))
    assert gradients([beside], [x])[0] is not None


def test_of_several_results_only_those_that_are_used_ask() -> None:
    x = param("x", tensor(f64, 5))
    best, place = TopK(2)(x)
    (dx,) = gradients([mul(best, cast(place, f64))], [x])
    assert values([dx], (x,), [np.array([1.0, 9, 2, 7, 3])])[0].tolist() == [0, 1, 0, 3, 0]
    y, mean, var = BatchNormTrain()(param("y", tensor(f64, 4, 2)), *(constant(np.ones(2)),) * 2)
    source = y.inputs[0].inputs[0]
    (dmean,) = gradients([mean], [source])
    (dvar,) = gradients([var], [source])
    arrays = drawn(source)
    found = values([dmean, dvar], (source,), arrays)
    np.testing.assert_allclose(found[0], np.full((4, 2), 0.25))
    np.testing.assert_allclose(found[1], (arrays[0] - arrays[0].mean(0)) / 2)


def test_seeds_weigh_outputs_and_must_have_their_types() -> None:
    x = param("x", tensor(f64, 2))
    (dx,) = gradients([exp(x), mul(x, 2)], [x], [constant(np.array([3.0, 0])), None])
    found = values([dx], (x,), [np.zeros(2)])[0]
    assert found.tolist() == [5, 2]
    with pytest.raises(CompileError, match=r"seed 0 must be f64\[2\]"):
        gradients([exp(x)], [x], [constant(np.ones(2, np.float32))])


def test_a_custom_gradient_speaks_for_its_node() -> None:
    x, y = param("x", f32t(2)), param("y", f32t(2))
    opaque = Identity()(mul(x, y))
    asked: list[Node] = []

    def back(dy: Node) -> tuple[Node]:
        asked.append(dy)
        return (mul(dy, 10),)

    dx, dy = gradients([ReduceSum()(mul(opaque, 2))], [x, y], custom={opaque: back})
    found = values([dx, dy], (x, y), [np.array([1, 2], np.float32), np.array([3, 4], np.float32)])
    assert [f.tolist() for f in found] == [[60, 80], [20, 40]] and len(asked) == 1
    with pytest.raises(CompileError, match="custom gradient must give one value or None for each of 1 inputs, got 2"):
        gradients([opaque], [x], custom={opaque: lambda dy: (dy, dy)})


def test_a_custom_gradient_of_a_node_with_several_results_gets_one_for_each() -> None:
    x = param("x", f32t(4))
    best = TopK(2)(x)
    seen: list[Any] = []

    def back(*dy: Node | None) -> tuple[Node | None]:
        seen.extend(dy)
        return (mul(x, 7),)

    (dx,) = gradients([best[0]], [x], custom={best: back})
    assert dx is not None and seen[0] is not None and seen[1] is None


def test_gradient_nodes_stand_at_the_line_of_the_forward_node() -> None:
    x = param("x", f32t(3))
    with located(Loc("net.py", 3)):
        h = Sigmoid()(x)
    with located(Loc("net.py", 4)):
        y = exp(h)
    (dx,) = gradients([y], [x])
    assert dx is not None
    made = set(topological([dx])) - set(topological([y]))
    lines = {n.loc.line for n in made if n.loc.line}
    assert dx.loc.line == 3 and lines == {3, 4}


def test_higher_orders_are_gradients_of_gradients() -> None:
    x = param("x", tensor(f64, 3))
    y = power(x, 4.0)
    expected = [lambda v: 4 * v**3, lambda v: 12 * v**2, lambda v: 24 * v, lambda v: 24 + 0 * v]
    (array,) = drawn(x)
    for formula in expected:
        (dx,) = gradients([y], [x])
        assert dx is not None
        np.testing.assert_allclose(values([dx], (x,), [array])[0], formula(array))
        y = dx


def test_a_forward_derivative_is_two_backward_ones() -> None:
    """jvp: the gradient, by the seed, of the gradient along it."""
    x, v = param("x", tensor(f64, 2, 3)), param("v", tensor(f64, 2, 3))
    y = Gelu()(matmul(x, constant(np.arange(6.0).reshape(3, 2) / 3)))
    seed = param("seed", y.type)
    (dx,) = gradients([y], [x], [seed])
    (forward,) = gradients([ReduceSum()(mul(dx, v))], [seed])
    arrays = drawn(x, v)
    (actual,) = values([forward], (x, v, seed), [*arrays, np.zeros(y.shape)])
    moved = [values([y], (x,), [arrays[0] + s * arrays[1]])[0] for s in (1e-6, -1e-6)]
    np.testing.assert_allclose(actual, (moved[0] - moved[1]) / 2e-6, rtol=1e-6)


def test_gradients_keep_the_element_type() -> None:
    x, w = param("x", tensor(f16, 4, 8)), param("w", f32t(8))
    y = LayerNorm(-1, 1e-5)(x, cast(w, f16))
    dx, dw = gradients([ReduceSum()(cast(y, f32))], [x, w])
    assert dx is not None and dw is not None and (dx.type, dw.type) == (x.type, w.type)


def test_deep_graphs_need_no_recursion() -> None:
    x = param("x", tensor(f64))
    y = x
    for _ in range(5000):
        y = sub(mul(y, 1.0), 0.0)
    (dx,) = gradients([y], [x])
    assert values([dx], (x,), [np.array(2.0)])[0] == 1


def test_a_batch_of_rows_meets_its_weights_in_one_product() -> None:
    x, w = param("x", f32t(4, 5, 3)), param("w", f32t(3, 2))
    (dw,) = gradients([matmul(x, w)], [w])
    assert dw is not None and isinstance(dw.op, MatMul) and dw.shape == (3, 2)


@pytest.mark.parametrize("layer", [Rnn, Gru, Lstm])
@pytest.mark.parametrize("number", [0, 1])
def test_walking_back_over_time_is_the_gradient_of_the_unrolled_steps(layer: Any, number: int) -> None:
    op = layer(**layer.samples[number].attributes)
    arrays = [a.astype(np.float64) if a.dtype == np.float32 else a for a in map(np.asarray, layer.samples[number].arrays())]
    params = tuple(param(f"x{i}", type_of(a)) for i, a in enumerate(arrays))
    results = op.decompose(*params)
    seeds = [constant(a) for a in drawn(*results, seed=3)]
    unrolled = [g for g in gradients(results, params, seeds) if g is not None]
    walked = [g for g in gradients(op(*params).results, params, seeds) if g is not None]
    for e, a in zip(values(unrolled, params, arrays), values(walked, params, arrays), strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", sorted(SLOPES))
def test_slope_of_an_activation_is_its_difference(name: str) -> None:
    gate = Gate((name, 0.3, 0.7), 1.5)
    x = np.linspace(-1.93, 2, 40)
    np.testing.assert_allclose(gate.slope(x), (gate.value(x + 1e-6) - gate.value(x - 1e-6)) / 2e-6, rtol=1e-6, atol=1e-9)


def test_extremes_share_and_powers_of_zero_are_finite() -> None:
    a, b = param("a", tensor(f64, 2)), param("b", tensor(f64, 2))
    da, db = gradients([power(a, b)], [a, b])
    found = values([da, db], (a, b), [np.array([0.0, 0.0]), np.array([0.0, 2.0])])
    assert [f.tolist() for f in found] == [[0, 0], [0, 0]]
    (dx,) = gradients([select(greater(a, 0), a, 0)], [a])
    assert values([dx], (a,), [np.array([1.0, -1.0])])[0].tolist() == [1, 0]


def test_what_cannot_be_differentiated_as_a_whole_is_refused() -> None:
    x = param("x", f32t(4))
    with pytest.raises(CompileError, match="outputs and wrt must be single values"):
        gradients([TopK(2)(x)], [x])
