"""Gradients added up over steps."""

from __future__ import annotations

import numpy as np

import jumar
from jumar import nn
from jumar.boost import GradientAccumulation


def test_the_optimiser_runs_when_the_count_is_full() -> None:
    net = nn.Dense(2, 1, has_bias=False, weight_init="zeros")
    accumulate = GradientAccumulation(2, nn.SGD(net.trainable_params(), learning_rate=1.0))
    loss = jumar.Tensor(1.0)
    first, second = (jumar.Tensor(np.array([[a, b]], np.float32)) for a, b in ((2, 4), (4, 0)))
    accumulate(loss, (first,))
    assert net.weight.asnumpy().tolist() == [[0.0, 0.0]]
    accumulate(loss, (second,))
    assert net.weight.asnumpy().tolist() == [[-3.0, -2.0]]
    accumulate(loss, (second,))
    accumulate(loss, (second,))
    assert net.weight.asnumpy().tolist() == [[-7.0, -2.0]]
