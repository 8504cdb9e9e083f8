"""Recurrent layers under a tape: the forward pass runs once, and what it keeps is not seen."""

from __future__ import annotations

import numpy as np
import pytest

import jumar as ms
from jumar import Tensor, nn, ops
from jumar.frontend import recorder


def test_a_layer_under_a_tape_runs_once_and_gives_its_own_results(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    execute = recorder.execute
    monkeypatch.setattr(recorder, "execute", lambda op, arrays: (seen.append(op.name), execute(op, arrays))[1])
    net = nn.LSTM(3, 5)
    x = Tensor(np.random.default_rng(0).standard_normal((4, 2, 3)).astype(np.float32))

    def loss(x: Tensor) -> Tensor:
        y, (h, c) = net(x)
        return ops.sum(y) + ops.sum(h * c)

    mode = ms.get_context("mode")
    ms.set_context(mode=ms.PYNATIVE_MODE)
    try:
        eager = ms.grad(loss)(x)
        assert seen.count("lstm") == 1 and seen.count("lstm_grad") == 1
        ms.set_context(mode=ms.GRAPH_MODE)
        np.testing.assert_allclose(eager.asnumpy(), ms.grad(loss)(x).asnumpy(), rtol=1e-4, atol=1e-6)
    finally:
        ms.set_context(mode=mode)
