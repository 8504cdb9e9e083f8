"""Optimisers in PyTorch's manner: five steps, and schedulers, against values recorded from MindSpore 2.10."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jumar.mint.optim as mint_optim
from jumar import context
from jumar.experimental import optim
from jumar.experimental.optim import lr_scheduler as s
from jumar.frontend import Parameter, Tensor

RECORDED = json.loads(Path(__file__).with_name("recorded.json").read_text())
SHAPES = {"w": (2, 3), "b": (3,), "bn.gamma": (2, 2)}


def parameters() -> list[Parameter]:
    rng = np.random.RandomState(0)
    return [Parameter(Tensor(rng.randn(*shape).astype(np.float32)), name=name) for name, shape in SHAPES.items()]


def gradients(step: int) -> tuple[Tensor, ...]:
    rng = np.random.RandomState(10 + step)
    return tuple(Tensor(rng.randn(*shape).astype(np.float32)) for shape in SHAPES.values())


@pytest.fixture(params=[context.PYNATIVE_MODE, context.GRAPH_MODE], ids=["pynative", "graph"])
def mode(request: pytest.FixtureRequest) -> Iterator[None]:
    before = context.MODE
    context.set_context(mode=request.param)
    yield
    context.set_context(mode=before)


def make(name: str, params: list[Parameter]) -> Any:
    if name == "groups":
        return optim.Adam([{"params": params[:1], "lr": 0.05}, {"params": params[1:], "weight_decay": 0.1}], lr=0.01)
    kind, _, options = name.partition(" ")
    return getattr(optim, kind)(params, **json.loads(options))


@pytest.mark.parametrize("name", RECORDED)
def test_five_steps_are_mindspores(name: str, mode: None) -> None:
    params = parameters()
    optimizer = make(name, params)
    assert [p.name for p in optimizer.get_parameters()] == RECORDED[name]["names"]
    for i in range(5):
        optimizer(gradients(i))
    for p, want in zip(params, RECORDED[name]["values"], strict=True):
        np.testing.assert_allclose(p.asnumpy().ravel(), want, rtol=3e-5, atol=3e-6)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
        ("Adam", {"lr": 0.01, "weight_decay": 0.1}),
        ("AdamW", {"lr": 0.01}),
        ("AdamW", {"lr": 0.01, "amsgrad": True}),
    ],
)
def test_those_of_mint_are_the_experimental_ones(name: str, options: dict[str, Any], mode: None) -> None:
    """The CPU package of MindSpore has no kernels for them."""
    ours, others = parameters(), parameters()
    a, b = getattr(mint_optim, name)(ours, **options), getattr(optim, name)(others, **options)
    for i in range(5):
        a(gradients(i))
        b(gradients(i))
    for p, q in zip(ours, others, strict=True):
        np.testing.assert_allclose(p.asnumpy(), q.asnumpy(), rtol=1e-6)


def test_state_of_mint_has_its_names() -> None:
    assert [p.name for p in mint_optim.SGD(parameters(), 0.1).get_parameters()][3:] == [*[f"momentum_buf.{n}" for n in SHAPES], "step_t"]
    assert [p.name for p in mint_optim.Adam(parameters()).get_parameters()][-1] == "state_step"


def test_a_rate_can_be_changed_between_steps(mode: None) -> None:
    p = Parameter(Tensor([1.0]), name="w")
    optimizer = optim.SGD([p], lr=0.1)
    optimizer((Tensor([1.0]),))
    optimizer.param_groups[0]["lr"].set_data(Tensor(0.5))
    optimizer((Tensor([1.0]),))
    np.testing.assert_allclose(p.asnumpy(), [0.4], rtol=1e-6)


SCHEDULERS: dict[str, tuple[Callable[[Any], Any], list[float]]] = {
    "StepLR": (lambda o: s.StepLR(o, 3, 0.5), [0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025, 0.025, 0.025]),
    "MultiStepLR": (lambda o: s.MultiStepLR(o, [2, 5], 0.1), [0.1, 0.1, 0.01, 0.01, 0.01, 0.001, 0.001, 0.001, 0.001]),
    "ExponentialLR": (lambda o: s.ExponentialLR(o, 0.9), [0.1, 0.09, 0.081, 0.0729, 0.06561, 0.059049, 0.0531441, 0.0478297, 0.0430467]),
    "ConstantLR": (lambda o: s.ConstantLR(o, 0.5, 3), [0.05, 0.05, 0.05, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]),
    "LinearLR": (lambda o: s.LinearLR(o, 0.3, 1.0, 4), [0.03, 0.0475, 0.065, 0.0825, 0.1, 0.1, 0.1, 0.1, 0.1]),
    "PolynomialLR": (lambda o: s.PolynomialLR(o, 5, 2.0), [0.1, 0.064, 0.036, 0.016, 0.004, 0.0, 0.0, 0.0, 0.0]),
    "LambdaLR": (lambda o: s.LambdaLR(o, lambda e: 0.9**e), [0.1, 0.09, 0.081, 0.0729, 0.06561, 0.059049, 0.0531441, 0.0478297, 0.0430467]),
    "MultiplicativeLR": (lambda o: s.MultiplicativeLR(o, lambda e: 0.9), [0.1, 0.09, 0.081, 0.0729, 0.06561]),
    "CosineAnnealingLR": (
        lambda o: s.CosineAnnealingLR(o, 4, 0.01), [0.1, 0.0868198, 0.055, 0.0231802, 0.01, 0.0231802, 0.055, 0.0868198, 0.1]
    ),
    "CosineAnnealingWarmRestarts": (
        lambda o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.01), [0.1, 0.0775, 0.0325, 0.1, 0.0939711, 0.0775, 0.055, 0.0325, 0.0160289]
    ),
    "CyclicLR": (lambda o: s.CyclicLR(o, 0.01, 0.1, 2), [0.01, 0.055, 0.1, 0.055, 0.01, 0.055, 0.1, 0.055, 0.01]),
    "CyclicLR triangular2": (
        lambda o: s.CyclicLR(o, 0.01, 0.1, 2, 3, "triangular2"), [0.01, 0.055, 0.1, 0.07, 0.04, 0.01, 0.0325, 0.055, 0.04]
    ),
    "CyclicLR exp_range": (
        lambda o: s.CyclicLR(o, 0.01, 0.1, 2, mode="exp_range", gamma=0.9),
        [0.01, 0.0505, 0.0829, 0.042805, 0.01, 0.036572, 0.0578297, 0.0315234, 0.01],
    ),
    "SequentialLR": (
        lambda o: s.SequentialLR(o, [s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)], [3]),
        [0.01, 0.01, 0.1, 0.1, 0.09, 0.081, 0.0729, 0.06561, 0.059049],
    ),
}  # fmt: skip


def rate(optimizer: Any) -> float:
    return float(optimizer.param_groups[0]["lr"].asnumpy())


@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedulers_are_mindspores(name: str) -> None:
    build, want = SCHEDULERS[name]
    optimizer = optim.SGD(parameters(), lr=0.1)
    scheduler = build(optimizer)
    found = [rate(optimizer)]
    for _ in want[1:]:
        scheduler.step()
        found.append(rate(optimizer))
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(scheduler.get_last_lr()[0].asnumpy(), found[-1], rtol=1e-6)


def test_a_plateau_halves_the_rate() -> None:
    optimizer = optim.SGD(parameters(), lr=0.1)
    scheduler = s.ReduceLROnPlateau(optimizer, patience=1, factor=0.5)
    found = []
    for _ in range(6):
        scheduler.step(Tensor(1.0))
        found.append(rate(optimizer))
    np.testing.assert_allclose(found, [0.1, 0.1, 0.05, 0.05, 0.025, 0.025], rtol=1e-6)


def test_a_scheduler_wants_an_optimizer_of_this_kind() -> None:
    with pytest.raises(TypeError, match="optimizer must be an experimental or mint Optimizer, got int"):
        s.StepLR(3, 1)  # type: ignore[arg-type]


def test_repr_lists_the_groups() -> None:
    assert "Parameter Group 0\n    dampening: 0.0" in repr(optim.SGD(parameters(), lr=0.1))


def test_parameters_are_in_one_group() -> None:
    p = parameters()
    with pytest.raises(ValueError, match="more than one parameter group"):
        optim.SGD([{"params": p}, {"params": p[:1]}], lr=0.1)
