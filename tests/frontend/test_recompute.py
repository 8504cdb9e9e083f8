"""Blocks that are computed again: the same numbers, less memory."""

from __future__ import annotations

import numpy as np
import pytest

import jumar as ms
from jumar import nn
from jumar.frontend import Tensor
from jumar.frontend.capture import Captured

X = np.random.RandomState(0).randn(256, 16).astype(np.float32)


class Net(nn.Cell):
    def __init__(self, again: bool) -> None:
        super().__init__()
        self.blocks = nn.CellList(
            [nn.SequentialCell([nn.Dense(16, 64), nn.GELU(), nn.Dropout(p=0.2), nn.Dense(64, 16), nn.BatchNorm1d(16)]) for _ in range(4)]
        )
        for i, p in enumerate(self.trainable_params()):
            p.set_data(Tensor(np.random.RandomState(i).randn(*p.shape).astype(np.float32) / 8))
        if again:
            for block in self.blocks:
                block.recompute()

    def construct(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = x + block(x)
        return (x * x).mean()


def gradients(again: bool, graph: bool) -> tuple[list[np.ndarray], list[np.ndarray], int]:
    """Losses and gradients of two steps, moving statistics, and the arena in bytes."""
    net = Net(again).set_train()
    ms.set_seed(5)
    find = ms.value_and_grad(net, None, net.trainable_params())
    step = Captured(find) if graph else find
    found = []
    for _ in range(2):
        loss, grads = step(Tensor(X))
        found += [loss.asnumpy(), *(g.asnumpy() for g in grads)]
    statistics = [p.asnumpy() for n, p in net.parameters_and_names() if "moving" in n]
    nbytes = 0
    if graph:
        assert not step.fact.effects
        entry = next(iter(step.forms.values())).entries[0]
        nbytes = entry.root.steps[0].segment.instance.program.arena_nbytes
    return found, statistics, nbytes


@pytest.mark.parametrize("graph", [False, True], ids=["pynative", "graph"])
def test_recomputation_changes_memory_and_no_number(graph: bool) -> None:
    kept, kept_statistics, kept_nbytes = gradients(False, graph)
    again, again_statistics, again_nbytes = gradients(True, graph)
    for a, b in zip([*kept, *kept_statistics], [*again, *again_statistics], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    if graph:
        assert again_nbytes < 0.6 * kept_nbytes
