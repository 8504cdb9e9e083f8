"""Losses with PyTorch's order of arguments.

In: what a network said and what was right.  Out: one number, or one for each.
"""

from __future__ import annotations

from typing import Any

from jumar import ops
from jumar.frontend.tensor import Tensor
from jumar.nn.loss import loss as plain
from jumar.nn.loss.loss import L1Loss, SoftMarginLoss

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "KLDivLoss", "L1Loss", "MSELoss", "NLLLoss", "SmoothL1Loss",
    "SoftMarginLoss",
]  # fmt: skip


class BCELoss(plain.BCELoss):
    """Cross entropy of probabilities of two classes."""

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        return super().construct(input, target)


class BCEWithLogitsLoss(plain.BCEWithLogitsLoss):
    """Cross entropy of sigmoid(input) with probabilities of two classes."""

    def __init__(self, weight: Any = None, reduction: str = "mean", pos_weight: Any = None) -> None:
        super().__init__(reduction, weight, pos_weight)


class CosineEmbeddingLoss(plain.CosineEmbeddingLoss):
    """1 - cos where target is 1, cos beyond the margin where it is -1."""

    def construct(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:  # type: ignore[override]
        return super().construct(input1, input2, target)


class CrossEntropyLoss(plain.CrossEntropyLoss):
    """Cross entropy of softmax(input) with numbers of classes or probabilities."""

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        return super().construct(input, target)


class KLDivLoss(plain.KLDivLoss):
    """target (log target - input), input being logarithms.   log_target: target, too."""

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction)
        self.log_target = log_target

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        if not self.log_target:
            return super().construct(input, target)
        found = ops.exp(target) * (target - input)
        if self.reduction == "batchmean":
            return ops.sum(found) / input.shape[0]  # type: ignore[no-any-return]
        return found if self.reduction == "none" else (ops.mean if self.reduction == "mean" else ops.sum)(found)  # type: ignore[no-any-return]


class MSELoss(plain.MSELoss):
    """(input - target)^2."""

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        return super().construct(input, target)


class NLLLoss(plain.NLLLoss):
    """Minus the score of the right class."""

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        return super().construct(input, target)


class SmoothL1Loss(plain.SmoothL1Loss):
    """Squares for differences below beta, absolute values beyond."""

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(beta, reduction)

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        return super().construct(input, target)
