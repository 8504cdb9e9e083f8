"""Losses against values recorded from MindSpore 2.10 (recorded.json), and their shapes and errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumar import nn, ops
from jumar.frontend import Tensor
from jumar.frontend import dtype as types

RECORDED = json.loads(Path(__file__).with_name("recorded.json").read_text())


def floats(rows: Any) -> Tensor:
    return Tensor(np.array(rows, np.float32))


A, B = floats([[0.5, -1.2, 2.0], [0.1, 0.7, -0.3]]), floats([[1.0, 0.2, 0.4], [-0.5, 0.6, 0.8]])
PA, PB = floats([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]]), floats([[0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
Y, BINARY, SIGNS = Tensor([2, 0], types.int32), floats([[1, 0, 1], [0, 1, 0]]), floats([[1, -1, 1], [-1, 1, -1]])
W = floats([1, 2, 3])
CASES: dict[str, Callable[[str], Any]] = {
    "L1Loss": lambda r: nn.L1Loss(r)(A, B),
    "MAELoss": lambda r: nn.MAELoss(r)(A, B),
    "MSELoss": lambda r: nn.MSELoss(r)(A, B),
    "SmoothL1Loss": lambda r: nn.SmoothL1Loss(reduction=r)(A, B),
    "SmoothL1 beta": lambda r: nn.SmoothL1Loss(0.5, r)(A, B),
    "HuberLoss": lambda r: nn.HuberLoss(r, 0.5)(A, B),
    "SCE dense": lambda r: nn.SoftmaxCrossEntropyWithLogits(reduction=r)(A, PB),
    "SCE sparse": lambda r: nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction=r)(A, Y),
    "CE": lambda r: nn.CrossEntropyLoss(reduction=r)(A, Y),
    "CE w ls": lambda r: nn.CrossEntropyLoss(W, reduction=r, label_smoothing=0.1)(A, Y),
    "CE prob": lambda r: nn.CrossEntropyLoss(reduction=r, label_smoothing=0.1)(A, PB),
    "CE ign": lambda r: nn.CrossEntropyLoss(reduction=r, ignore_index=2)(A, Y),
    "NLL": lambda r: nn.NLLLoss(reduction=r)(A, Y),
    "BCE": lambda r: nn.BCELoss(reduction=r)(PA, BINARY),
    "BCEw": lambda r: nn.BCELoss(PB, reduction=r)(PA, BINARY),
    "BCEL": lambda r: nn.BCEWithLogitsLoss(reduction=r)(A, BINARY),
    "BCEL w": lambda r: nn.BCEWithLogitsLoss(r, PB, W)(A, BINARY),
    "CosEmb": lambda r: nn.CosineEmbeddingLoss(0.1, r)(A, B, Tensor([1, -1], types.int32)),
    "KL": lambda r: nn.KLDivLoss(r)(ops.log(PA), PB),
    "Hinge": lambda r: nn.HingeEmbeddingLoss(1.0, r)(A, SIGNS),
    "MarginRank": lambda r: nn.MarginRankingLoss(0.1, r)(A, B, SIGNS),
    "Poisson": lambda r: nn.PoissonNLLLoss(reduction=r)(A, PB),
    "Gauss": lambda r: nn.GaussianNLLLoss(reduction=r)(A, B, PA),
    "MultiLabelSoftMargin": lambda r: nn.MultiLabelSoftMarginLoss(reduction=r)(A, BINARY),
    "MultiMargin": lambda r: nn.MultiMarginLoss(reduction=r)(A, Tensor([2, 0])),
    "TripletD": lambda r: nn.TripletMarginWithDistanceLoss(reduction=r)(A, B, PA),
    "Focal": lambda r: nn.FocalLoss(floats([1, 2, 1]), 2.0, r)(A, Tensor([[1], [2]], types.int32)),
}


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", CASES)
def test_values_are_mindspores(name: str, reduction: str) -> None:
    np.testing.assert_allclose(CASES[name](reduction).asnumpy(), RECORDED[name][reduction], rtol=1e-5, atol=2e-6)


@pytest.mark.skipif(not hasattr(ops, "ctc_loss"), reason="ops.ctc_loss is not there yet")
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_ctc_is_mindspores(reduction: str) -> None:
    scores = ops.log_softmax(Tensor(np.random.RandomState(0).randn(6, 2, 5).astype(np.float32)), -1)
    targets = Tensor([[1, 2, 2], [3, 1, 0]], types.int32)
    found = nn.CTCLoss(0, reduction)(scores, targets, Tensor([6, 5], types.int32), Tensor([3, 2], types.int32))
    np.testing.assert_allclose(found.asnumpy(), RECORDED["CTC"][reduction], rtol=1e-5)


def test_a_loss_keeps_the_type_of_what_it_is_given() -> None:
    assert nn.MSELoss()(A.astype(types.float16), B.astype(types.float16)).dtype is types.float16


def test_get_loss_of_a_loss_of_ones_own() -> None:
    class Own(nn.LossBase):
        def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
            return self.get_loss(logits - labels, 2.0)

    np.testing.assert_allclose(Own()(A, B).asnumpy(), -0.23333336, rtol=1e-6)
    assert Own("none")(A, B).shape == (2, 3)
    assert Own().get_axis(A) == (0, 1)


def test_an_unknown_reduction_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the 'reduction' must be in \['mean', 'sum', 'none'\], but got foo"):
        nn.L1Loss("foo")
