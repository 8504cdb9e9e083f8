"""Learning rates: lists and schedules against values recorded from MindSpore 2.10."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jumar import nn
from jumar.frontend import Tensor
from jumar.frontend import dtype as types

LISTS: dict[str, tuple[Any, list[float]]] = {
    "cosine": (lambda: nn.cosine_decay_lr(0.01, 0.1, 6, 2, 2), [0.1, 0.1, 0.055, 0.055, 0.01, 0.01]),
    "exponential": (lambda: nn.exponential_decay_lr(0.1, 0.9, 6, 2, 1), [0.1, 0.1, 0.09, 0.09, 0.081, 0.081]),
    "inverse": (lambda: nn.inverse_decay_lr(0.1, 0.5, 6, 1, 1, True), [0.1, 0.0666667, 0.05, 0.04, 0.0333333, 0.0285714]),
    "natural": (lambda: nn.natural_exp_decay_lr(0.1, 0.9, 6, 2, 2, True), [0.1, 0.1, 0.1, 0.1, 0.0165299, 0.0165299]),
    "piecewise": (lambda: nn.piecewise_constant_lr([2, 5], [0.1, 0.05]), [0.1, 0.1, 0.05, 0.05, 0.05]),
    "polynomial": (lambda: nn.polynomial_decay_lr(0.1, 0.01, 6, 2, 2, 0.5), [0.1, 0.1, 0.0736396, 0.0736396, 0.01, 0.01]),
    "warm-up": (lambda: nn.warmup_lr(0.01, 6, 2, 2), [0, 0, 0.005, 0.005, 0.01, 0.01]),
}
SCHEDULES: dict[str, tuple[Any, list[float]]] = {
    "cosine": (lambda: nn.CosineDecayLR(0.01, 0.1, 4), [0.1, 0.0868198, 0.055, 0.0231802, 0.01, 0.01]),
    "exponential stair": (lambda: nn.ExponentialDecayLR(0.1, 0.9, 4, True), [0.1, 0.1, 0.1, 0.1, 0.09, 0.09]),
    "exponential": (lambda: nn.ExponentialDecayLR(0.1, 0.9, 4), [0.1, 0.0974004, 0.0948683, 0.0924021, 0.09, 0.0876603]),
    "natural": (lambda: nn.NaturalExpDecayLR(0.1, 0.9, 4), [0.1, 0.040657, 0.0165299, 0.0067206, 0.0027324, 0.0011109]),
    "inverse": (lambda: nn.InverseDecayLR(0.1, 0.9, 4), [0.1, 0.0816327, 0.0689655, 0.0597015, 0.0526316, 0.0470588]),
    "polynomial": (lambda: nn.PolynomialDecayLR(0.1, 0.01, 4, 0.5), [0.1, 0.0879423, 0.0736396, 0.055, 0.01, 0.01]),
    "polynomial anew": (lambda: nn.PolynomialDecayLR(0.1, 0.01, 4, 0.5, True), [0.1, 0.0879423, 0.0736396, 0.055, 0.01, 0.0651135]),
    "warm-up": (lambda: nn.WarmUpLR(0.1, 2), [0, 0.05, 0.1, 0.1, 0.1, 0.1]),
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_are_mindspores(name: str) -> None:
    make, want = LISTS[name]
    np.testing.assert_allclose(make(), want, atol=1e-7)


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_are_mindspores(name: str) -> None:
    make, want = SCHEDULES[name]
    cell = make()
    np.testing.assert_allclose([float(cell(Tensor(i, types.int32)).asnumpy()) for i in range(6)], want, atol=1e-6)


def test_milestones_ascend() -> None:
    with pytest.raises(ValueError, match="must be ascending"):
        nn.piecewise_constant_lr([3, 2], [0.1, 0.05])
