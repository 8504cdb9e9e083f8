"""Initialisers: statistics, shapes, errors; the formulas are MindSpore 2.10's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from jumar.common import initializer as module
from jumar.common.initializer import (
    Dirac,
    HeNormal,
    HeUniform,
    Initializer,
    Normal,
    Orthogonal,
    Sparse,
    TruncatedNormal,
    VarianceScaling,
    XavierUniform,
    initializer,
)  # fmt: skip
from jumar.frontend import Tensor
from jumar.frontend import dtype as types


def u(bound: float) -> tuple[float, float, float]:
    return 0.0, bound / math.sqrt(3), bound


@pytest.mark.parametrize(
    ("init", "shape", "want"),
    [
        ("normal", (200, 300), (0.0, 0.01, None)),
        (Normal(0.5, 1.0), (200, 300), (1.0, 0.5, None)),
        ("uniform", (200, 300), u(0.07)),
        ("TruncatedNormal", (200, 300), (0.0, 0.01, None)),
        (TruncatedNormal(1.0, 2.0, -1.0, 3.0), (200, 300), (1.7164, 0.7847, 3.0)),
        ("XavierUniform", (200, 300), u(math.sqrt(6 / 500))),
        (XavierUniform(2.0), (64, 32, 3, 3), u(2 * math.sqrt(6 / 864))),
        ("xavier_normal", (64, 32, 3, 3), (0.0, math.sqrt(2 / 864), None)),
        ("he_uniform", (64, 32, 3, 3), u(math.sqrt(6 / 288))),
        (HeUniform(5**0.5), (200, 300), u(math.sqrt(1 / 300))),
        (HeNormal(0, "fan_out", "relu"), (64, 32, 3, 3), (0.0, math.sqrt(2 / 576), None)),
        (VarianceScaling(2.0, "fan_avg", "uniform"), (200, 300), u(math.sqrt(6 / 250))),
        (VarianceScaling(), (200, 300), (0.0, math.sqrt(1 / 300), None)),
    ],
)
def test_statistics(init: Any, shape: tuple[int, ...], want: tuple[float, float, float | None]) -> None:
    x = initializer(init, shape).asnumpy()
    mean, std, most = want
    assert abs(x.mean() - mean) < 0.03 * std + 1e-6
    assert abs(x.std() / std - 1) < 0.02
    if most is not None:
        assert 0.95 * most < x.max() <= most * (1 + 1e-6)


def test_seeds_repeat() -> None:
    from jumar.common.seed import set_seed

    set_seed(1)
    first = initializer("normal", (3,)).asnumpy()
    set_seed(1)
    np.testing.assert_array_equal(initializer("normal", (3,)).asnumpy(), first)
    assert (initializer("normal", (3,)).asnumpy() != first).any()


def test_structured_ones() -> None:
    assert initializer("identity", (2, 3)).asnumpy().tolist() == [[1, 0, 0], [0, 1, 0]]
    assert initializer(Dirac(2), (4, 2, 3)).asnumpy()[:, :, 1].tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]]
    o = initializer(Orthogonal(2.0), (4, 2, 3)).asnumpy().reshape(4, 6)
    np.testing.assert_allclose(o @ o.T, 4 * np.eye(4), atol=1e-5)
    assert ((initializer(Sparse(0.1), (200, 30)).asnumpy() == 0).sum(0) == 20).all()


def test_types_and_values() -> None:
    assert initializer("zeros", [2], types.float16).dtype is types.float16
    assert initializer(2.5, 3).asnumpy().tolist() == [2.5] * 3

    class Seven(Initializer):
        def _initialize(self, arr: Any) -> None:
            arr[...] = 7

    assert initializer(Seven(), (2,)).asnumpy().tolist() == [7, 7]


@pytest.mark.parametrize(
    ("init", "shape", "error", "text"),
    [
        ("foo", (2,), ValueError, "the class corresponding to 'foo' was not found"),
        ("zeros", (0,), ValueError, "the value of 'shape' must be positive integer, but got (0,)"),
        ("zeros", "a", ValueError, "the value of 'shape' must be positive integer, but got a"),
        (None, (2,), TypeError, "should be 'Tensor', 'number', 'string' or 'initializer', but got <class 'NoneType'>"),
        (Tensor([1.0]), (2,), ValueError, "but got the 'init' shape [1] and the 'shape' (2,)"),
        (HeUniform(), (10,), ValueError, "can not be computed for tensor with fewer than 2 dimensions, but got dimensions 1"),
    ],
)
def test_errors(init: Any, shape: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as found:
        initializer(init, shape)
    assert text in str(found.value)


def test_gains() -> None:
    found = [module._calculate_gain(n, p) for n, p in (("relu", None), ("tanh", None), ("leaky_relu", 0.1), ("sigmoid", None))]
    np.testing.assert_allclose(found, [1.4142136, 1.6666667, 1.4071951, 1.0], rtol=1e-6)


def test_parameters_that_will_be_loaded_cost_no_random_numbers() -> None:
    from jumar import nn

    with nn.no_init_parameters():
        assert not nn.Dense(3, 4).weight.asnumpy().any()
    assert nn.Dense(3, 4).weight.asnumpy().any()
