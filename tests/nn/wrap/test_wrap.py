"""Cells for training: what they own, what a step does in both modes, and what an overflow leaves as it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from jumar import context, nn
from jumar.frontend import Tensor
from jumar.frontend import dtype as types

X = Tensor(np.array([[1.0, 2.0], [3.0, -1.0]], np.float32))
Y = Tensor(np.array([[0.5, 1.0], [-1.0, 2.0]], np.float32))


@pytest.fixture(params=[context.PYNATIVE_MODE, context.GRAPH_MODE], ids=["pynative", "graph"], autouse=True)
def mode(request: pytest.FixtureRequest) -> Iterator[None]:
    before = context.MODE
    context.set_context(mode=request.param)
    yield
    context.set_context(mode=before)


def network() -> Any:
    net = nn.Dense(2, 2)
    net.weight.set_data(Tensor(np.array([[0.1, 0.2], [0.3, 0.4]], np.float32)))
    net.bias.set_data(Tensor(np.zeros(2, np.float32)))
    return net


def gradient(net: Any) -> tuple[float, np.ndarray[Any, Any]]:
    x, w = X.asnumpy(), net.weight.asnumpy()
    error = x @ w.T + net.bias.asnumpy() - Y.asnumpy()
    return float((error**2).mean()), 2 * error.T @ x / error.size


def test_a_step_is_loss_gradient_and_update() -> None:
    net = network()
    loss, dw = gradient(net)
    want = net.weight.asnumpy() - 0.1 * dw
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1)).set_train()
    np.testing.assert_allclose(step(X, Y).asnumpy(), loss, rtol=1e-6)
    np.testing.assert_allclose(net.weight.asnumpy(), want, rtol=1e-5)


def test_what_a_step_owns_is_mindspores() -> None:
    net = network()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9))
    assert [n for n, _ in step.cells_and_names()] == ["", "network", "network._backbone", "network._loss_fn", "optimizer", "grad_reducer"]
    assert [p.name for p in step.get_parameters()] == [
        "weight", "bias", "global_step", "learning_rate", "momentum", "moments.weight", "moments.bias"
    ]  # fmt: skip


def test_sens_is_the_gradient_that_comes_in() -> None:
    net = network()
    _, dw = gradient(net)
    before = net.weight.asnumpy()
    nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1, loss_scale=2.0), sens=8.0)(X, Y)
    np.testing.assert_allclose(net.weight.asnumpy(), before - 0.4 * dw, rtol=1e-5)


def test_return_grad_gives_gradients_by_name() -> None:
    net = network()
    _, dw = gradient(net)
    _, grads = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params()), return_grad=True)(X, Y)
    assert list(grads) == ["weight", "bias"]
    np.testing.assert_allclose(grads["weight"].asnumpy(), dw, rtol=1e-5)


def test_a_scaled_step_is_a_step() -> None:
    net = network()
    loss, dw = gradient(net)
    want = net.weight.asnumpy() - 0.1 * dw
    step = nn.TrainOneStepWithLossScaleCell(
        nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9), nn.FixedLossScaleUpdateCell(16.0)
    )
    found = [float(v.asnumpy()) for v in step(X, Y)]
    np.testing.assert_allclose(found, [loss, 0.0, 16.0], rtol=1e-6)
    np.testing.assert_allclose(net.weight.asnumpy(), want, rtol=1e-5)


def test_an_overflow_changes_nothing_but_the_scale() -> None:
    net = network()
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    manager = nn.DynamicLossScaleUpdateCell(16.0, 2, 2)
    step = nn.TrainOneStepWithLossScaleCell(nn.WithLossCell(net, nn.MSELoss()), optimizer, manager)
    bad = Tensor(np.full((2, 2), np.inf, np.float32))
    before = [p.asnumpy() for p in optimizer.get_parameters()]
    assert bool(step(bad, Y)[1])
    for p, old in zip(optimizer.get_parameters(), before, strict=True):
        np.testing.assert_array_equal(p.asnumpy(), old)
    scales = [float(step(X, Y)[2].asnumpy()) for _ in range(4)]
    assert scales == [8.0, 8.0, 16.0, 16.0]


def test_gradients_without_an_optimizer() -> None:
    net = network()
    loss, dw = gradient(net)
    found, (dweight, _) = nn.ForwardValueAndGrad(nn.WithLossCell(net, nn.MSELoss()), net.trainable_params(), get_by_list=True)(X, Y)
    np.testing.assert_allclose(found.asnumpy(), loss, rtol=1e-6)
    np.testing.assert_allclose(dweight.asnumpy(), dw, rtol=1e-5)
    np.testing.assert_allclose(nn.WithGradCell(net, nn.MSELoss())(X, Y)[0].asnumpy(), dw, rtol=1e-5)


def test_evaluation_gives_loss_output_and_label() -> None:
    net = network()
    loss, output, label = nn.WithEvalCell(net, nn.MSELoss())(X, Y)
    np.testing.assert_allclose(loss.asnumpy(), gradient(net)[0], rtol=1e-6)
    assert (tuple(output.shape), tuple(label.shape)) == ((2, 2), (2, 2))


def test_micro_batches_are_parts_of_the_batch() -> None:
    net = nn.WithLossCell(network(), nn.MSELoss())
    np.testing.assert_allclose(nn.PipelineCell(net, 2)(X, Y).asnumpy(), net(X, Y).asnumpy(), rtol=1e-6)
    with pytest.raises(ValueError, match="the batch must be divisible by 3"):
        nn.GradAccumulationCell(net, 3)(X, Y)


def test_a_parameter_is_updated_by_a_cell() -> None:
    net = network()
    nn.ParameterUpdate(net.bias)(Tensor(np.array([5.0, 6.0], np.float16)))
    assert (net.bias.asnumpy().tolist(), net.bias.dtype) == ([5.0, 6.0], types.float32)
