"""Optimisers: five steps against values and names of state recorded from MindSpore 2.10 (recorded.json), in both modes; groups, schedules, errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumar import context, nn
from jumar.frontend import Parameter, Tensor
from jumar.frontend import dtype as types

RECORDED = json.loads(Path(__file__).with_name("recorded.json").read_text())
SHAPES = {"w": (2, 3), "b": (3,), "bn.gamma": (2, 2)}
P = list[Parameter]


def parameters() -> P:
    rng = np.random.RandomState(0)
    return [Parameter(Tensor(rng.randn(*shape).astype(np.float32)), name=name) for name, shape in SHAPES.items()]


def gradients(step: int) -> tuple[Tensor, ...]:
    rng = np.random.RandomState(10 + step)
    return tuple(Tensor(rng.randn(*shape).astype(np.float32)) for shape in SHAPES.values())


def groups(p: P) -> list[dict[str, Any]]:
    return [{"params": [p[0]], "lr": 0.05, "weight_decay": 0.1}, {"params": [p[1], p[2]]}, {"order_params": p}]


CASES: dict[str, Callable[[P], Any]] = {
    "SGD": nn.SGD,
    "SGD m": lambda p: nn.SGD(p, 0.1, momentum=0.9, weight_decay=0.01, dampening=0.1),
    "SGD nest": lambda p: nn.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "SGD ls": lambda p: nn.SGD(p, 0.1, momentum=0.9, loss_scale=2.0),
    "Momentum": lambda p: nn.Momentum(p, 0.1, 0.9),
    "Adam": nn.Adam,
    "Adam wd": lambda p: nn.Adam(p, 0.01, weight_decay=0.1, loss_scale=2.0),
    "Adam nest": lambda p: nn.Adam(p, 0.01, use_nesterov=True),
    "Adam amsgrad": lambda p: nn.Adam(p, 0.01, use_amsgrad=True),
    "Adam lazy": lambda p: nn.Adam(p, 0.01, use_lazy=True),
    "Adam offload": lambda p: nn.Adam(p, 0.01, use_offload=True),
    "AdamWeightDecay": nn.AdamWeightDecay,
    "AdamWeightDecay wd": lambda p: nn.AdamWeightDecay(p, 0.01, weight_decay=0.1),
    "AdaMax": nn.AdaMax,
    "AdaMax wd": lambda p: nn.AdaMax(p, 0.01, weight_decay=0.1),
    "Adagrad": nn.Adagrad,
    "Adagrad wd": lambda p: nn.Adagrad(p, 0.1, 0.05, weight_decay=0.1),
    "RMSProp": nn.RMSProp,
    "RMSProp c": lambda p: nn.RMSProp(p, 0.01, 0.8, 0.5, 1e-6, centered=True, weight_decay=0.1),
    "RMSProp m": lambda p: nn.RMSProp(p, 0.01, 0.8, 0.5, 1e-6),
    "FTRL": nn.FTRL,
    "ASGD": nn.ASGD,
    "ASGD wd": lambda p: nn.ASGD(p, 0.1, t0=2.0, weight_decay=0.1),
    "Rprop": nn.Rprop,
    "Rprop wd": lambda p: nn.Rprop(p, 0.1, (0.4, 1.5), (1e-3, 0.3), weight_decay=0.1),
    "Adadelta": nn.Adadelta,
    "Adadelta wd": lambda p: nn.Adadelta(p, 0.5, 0.8, 1e-5, weight_decay=0.1),
    "LazyAdam": lambda p: nn.LazyAdam(p, 0.01),
    "ProximalAdagrad": nn.ProximalAdagrad,
    "ProximalAdagrad wd": lambda p: nn.ProximalAdagrad(p, 0.1, 0.1, 0.01, 0.02, weight_decay=0.1),
    "AdaFactor": nn.AdaFactor,
    "AdaFactor lr": lambda p: nn.AdaFactor(p, 0.01, beta1=0.9, scale_parameter=False, relative_step=False),
    "AdamOffload": lambda p: nn.AdamOffload(p, 0.01),
    "lr scalar tensor": lambda p: nn.Momentum(p, Tensor(0.1), 0.9),
    "groups": lambda p: nn.Momentum(groups(p), 0.1, 0.9, weight_decay=0.01),
}


@pytest.fixture(params=[context.PYNATIVE_MODE, context.GRAPH_MODE], ids=["pynative", "graph"])
def mode(request: pytest.FixtureRequest) -> Iterator[int]:
    before = context.MODE
    context.set_context(mode=request.param)
    yield request.param
    context.set_context(mode=before)


def trained(make: Callable[[P], Any], steps: int = 5) -> tuple[P, Any]:
    params = parameters()
    optimizer = make(params)
    for i in range(steps):
        optimizer(gradients(i))
    return params, optimizer


@pytest.mark.parametrize("name", CASES)
def test_five_steps_are_mindspores(name: str, mode: int) -> None:
    params, optimizer = trained(CASES[name])
    assert [p.name for p in optimizer.get_parameters()] == RECORDED[name]["names"]
    for p, want in zip(params, RECORDED[name]["values"], strict=True):
        np.testing.assert_allclose(p.asnumpy().ravel(), want, rtol=3e-5, atol=3e-6)
    assert optimizer.global_step.asnumpy().tolist() == [5]


def test_every_recorded_case_runs() -> None:
    assert set(CASES) == set(RECORDED)


class Schedule(nn.learning_rate_schedule.LearningRateSchedule):
    def __init__(self) -> None:
        super().__init__()
        self.rate = nn.CosineDecayLR(0.01, 0.1, 4)

    def construct(self, global_step: Any) -> Any:
        return self.rate(global_step)


# first elements of w after five steps, recorded from MindSpore 2.10
@pytest.mark.parametrize(
    ("make", "want"),
    [
        (lambda p: nn.Momentum(p, [0.1, 0.2, 0.3, 0.4, 0.5], 0.9), [-2.4580955, -0.0403166, 2.9985995]),
        (lambda p: nn.Momentum(p, Schedule(), 0.9), [1.1198982, 0.3027133, 1.4171569]),
        (lambda p: nn.Momentum(p, Schedule(), 0.9, weight_decay=Schedule()), [1.0466249, 0.2867011, 1.3702275]),
        (
            lambda p: nn.Adam([{"params": p[:1], "lr": Schedule()}, {"params": p[1:], "lr": 0.01}], Schedule()),
            [1.5098728, 0.2758947, 1.1991416],
        ),
    ],
    ids=["list", "schedule", "decay", "groups"],
)
def test_rates_change_with_the_steps(make: Callable[[P], Any], want: list[float], mode: int) -> None:
    params, _ = trained(make)
    np.testing.assert_allclose(params[0].asnumpy().ravel()[:3], want, rtol=2e-5)


@pytest.mark.parametrize("setting, wanted", [("0", (0.9, 0.71)), ("1", (0.81, 0.539))], ids=["as MindSpore on the CPU", "as documented"])
def test_nesterov_of_momentum(setting: str, wanted: tuple[float, float], monkeypatch: pytest.MonkeyPatch) -> None:
    """MindSpore 2.10's CPU kernel ignores use_nesterov (the first two numbers are its own)."""
    monkeypatch.setenv("JUMAR_MOMENTUM_NESTEROV", setting)
    w = Parameter(Tensor([1.0]), name="w")
    optimizer = nn.Momentum([w], 0.1, 0.9, use_nesterov=True)
    for want in wanted:
        optimizer((Tensor([1.0]),))
        np.testing.assert_allclose(w.asnumpy(), [want], rtol=1e-6)


def test_gradients_are_centred_where_a_group_asks_for_it() -> None:
    """MindSpore's CPU package leaves them as they are."""
    p, q = (Parameter(Tensor(np.ones((2, 2), np.float32)), name=n) for n in "pq")
    optimizer = nn.Momentum([{"params": [p], "grad_centralization": True}, {"params": [q]}], 0.1, 0.9)
    g = Tensor(np.arange(4, dtype=np.float32).reshape(2, 2))
    found = optimizer.gradients_centralization((g, g))
    assert [f.asnumpy().tolist() for f in found] == [[[-0.5, 0.5], [-0.5, 0.5]], [[0.0, 1.0], [2.0, 3.0]]]


def test_lamb_steps_are_as_long_as_the_parameter_times_the_rate() -> None:
    before = parameters()[0].asnumpy()
    params, optimizer = trained(lambda p: nn.Lamb(p, 0.01), steps=1)
    step = np.linalg.norm(params[0].asnumpy() - before)
    np.testing.assert_allclose(step, 0.01 * np.linalg.norm(before), rtol=1e-5)
    assert [p.name for p in optimizer.get_parameters()][5:] == [f"lamb_{k}.{n}" for k in "mv" for n in SHAPES]


def test_lars_scales_gradients_by_the_parameter() -> None:
    before = parameters()[0].asnumpy()
    params, _ = trained(lambda p: nn.LARS(nn.Momentum(p, 0.1, 0.9), coefficient=0.5), steps=1)
    g = gradients(0)[0].asnumpy()
    ratio = 0.5 * np.linalg.norm(before) / (np.linalg.norm(g) + 1e-5)
    np.testing.assert_allclose(params[0].asnumpy(), before - 0.1 * ratio * g, rtol=1e-5)


def test_state_of_float16_parameters_is_float32() -> None:
    p = Parameter(Tensor(np.ones(2, np.float16)), name="w")
    optimizer = nn.Adam([p], 0.5)
    optimizer((Tensor(np.ones(2, np.float16)),))
    assert (p.dtype, optimizer.moment1[0].dtype) == (types.float16, types.float32)
    np.testing.assert_allclose(p.asnumpy(), [0.5, 0.5], rtol=1e-3)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: nn.SGD([]), ValueError, "parameters must not be empty"),
        (lambda: nn.SGD([1]), TypeError, "must be 'Parameter' or 'dict'"),
        (lambda: nn.SGD(parameters() + parameters()), ValueError, "its name 'w' already exists"),
        (
            lambda: nn.SGD(parameters(), -1.0),
            ValueError,
            "the 'learning rate' must be float and must >= 0, but got '-1.0' with type 'float'",
        ),
        (lambda: nn.Momentum(parameters(), 0.1, 0.9, weight_decay=-1.0), ValueError, "the 'weight_decay' must be float and must >= 0"),
        (lambda: nn.Momentum(parameters(), 0.1, 0.9, loss_scale=0.0), ValueError, "the 'loss_scale' must be float and must > 0"),
        (lambda: nn.Momentum(parameters(), 0.1, -0.9), ValueError, "the argument 'momentum' must be at least 0.0, but got -0.9"),
        (lambda: nn.SGD(parameters(), nesterov=True), ValueError, "if 'nesterov' is true, 'momentum' must be > 0.0"),
        (lambda: nn.SGD([{"foo": 1}]), KeyError, "the key in group params must be one of"),
        (lambda: nn.SGD(parameters(), Tensor(np.ones((2, 2), np.float32))), ValueError, "the dimension of it should be 0 or 1, but got 2"),
        (lambda: nn.thor(None, 0.1, 0.1, 0.9), NotImplementedError, "second-order optimisation is not supported"),
    ],
)
def test_what_makes_no_optimizer(make: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as found:
        make()
    assert text in str(found.value)


def test_the_rate_of_a_parameter_is_that_of_its_group() -> None:
    p = parameters()
    optimizer = nn.Momentum([{"params": p[:1], "lr": 0.3}, {"params": p[1:]}], 0.1, 0.9)
    assert [r.name for r in optimizer.get_lr()] == ["learning_rate_group_0", "learning_rate", "learning_rate"]
    assert optimizer.get_lr_parameter(p[0]).name == "learning_rate_group_0"
    optimizer.learning_rate[1].set_data(Tensor(0.7))
    np.testing.assert_allclose(optimizer.get_lr_parameter(p[1]).asnumpy(), 0.7)
