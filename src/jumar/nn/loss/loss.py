"""The losses.

In: what a network said and what was right.  Out: one number, or one for each example or element (`reduction="none"`).  Their formulas are those of the
functions of `jumar.ops`.
"""

from __future__ import annotations

from typing import Any

from jumar import ops
from jumar.frontend import dtype as types
from jumar.frontend.tensor import Tensor
from jumar.nn.cell import Cell
from jumar.nn.layer.activation import get_activation


class LossBase(Cell):
    """The base of losses.   reduction: mean, sum or none."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(
                f"For '{type(self).__name__}', the 'reduction' must be in ['mean', 'sum', 'none'], but got {str(reduction).lower()}."
            )
        self.reduction = reduction
        self.average, self.reduce = reduction == "mean", reduction != "none"

    def get_axis(self, x: Tensor) -> tuple[int, ...]:
        """All axes of a tensor."""
        return tuple(range(x.ndim))

    def get_loss(self, x: Tensor, weights: Any = 1.0) -> Tensor:
        """x times weights, reduced, in x's element type."""
        kind = x.dtype
        wide = ops.cast(x, types.float32)
        if isinstance(weights, Tensor):
            weights = ops.cast(weights, types.float32)
        found = wide * weights
        if self.reduce:
            found = ops.mean(found) if self.average else ops.sum(found)
        return ops.cast(found, kind)  # type: ignore[no-any-return]

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: construct must be defined")


_Loss = LossBase


def _same_shape(owner: str, a: Tensor, b: Tensor) -> None:
    if tuple(a.shape) != tuple(b.shape):
        raise ValueError(f"For '{owner}', the shapes must be equal, but got {tuple(a.shape)} and {tuple(b.shape)}.")


class L1Loss(LossBase):
    """|logits - labels|."""

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ops.l1_loss(logits, labels, self.reduction)  # type: ignore[no-any-return]


L1LossExt = L1Loss


class MSELoss(LossBase):
    """(logits - labels)^2."""

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return self.get_loss(ops.square(logits - labels))


class RMSELoss(LossBase):
    """The root of the mean of (logits - label)^2."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        return ops.sqrt(ops.mean(ops.square(logits - label)))  # type: ignore[no-any-return]


class MAELoss(LossBase):
    """|logits - label|."""

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        return self.get_loss(ops.abs(logits - label))


class SmoothL1Loss(LossBase):
    """Squares for differences below beta, absolute values beyond."""

    def __init__(self, beta: float = 1.0, reduction: str = "none") -> None:
        super().__init__(reduction)
        self.beta = beta

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ops.smooth_l1_loss(logits, labels, self.beta, self.reduction)  # type: ignore[no-any-return]


class HuberLoss(LossBase):
    """Squares for differences below delta, straight beyond."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ops.huber_loss(logits, labels, self.reduction, self.delta)  # type: ignore[no-any-return]


class SoftMarginLoss(LossBase):
    """log(1 + exp(-labels * logits))."""

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ops.soft_margin_loss(logits, labels, self.reduction)  # type: ignore[no-any-return]


class SoftmaxCrossEntropyWithLogits(LossBase):
    """Cross entropy of softmax(logits) with numbers of classes (sparse) or with probabilities.   One number for each example with `none`."""

    def __init__(self, sparse: bool = False, reduction: str = "none") -> None:
        super().__init__(reduction)
        if not isinstance(sparse, bool):
            raise TypeError(f"For 'SoftmaxCrossEntropyWithLogits', the 'sparse' must be bool, but got {type(sparse).__name__}.")
        self.sparse = sparse

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        scores = ops.log_softmax(ops.cast(logits, types.float32) if logits.dtype is types.float16 else logits, -1)
        if self.sparse:
            if labels.ndim != logits.ndim - 1:
                raise ValueError(
                    f"For 'SoftmaxCrossEntropyWithLogits', labels must have one dimension less than logits, but got {tuple(labels.shape)} "
                    f"and {tuple(logits.shape)}."
                )
            places = ops.expand_dims(labels, -1)
            found = -ops.squeeze(ops.gather_elements(scores, -1, ops.cast(places, types.int64)), -1)
        else:
            _same_shape("SoftmaxCrossEntropyWithLogits", logits, labels)
            found = -ops.sum(scores * labels, -1)
        return self.get_loss(ops.cast(found, logits.dtype))


class CrossEntropyLoss(LossBase):
    """Cross entropy of softmax(logits) over the second dimension with numbers of classes or probabilities."""

    def __init__(self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0) -> None:
        super().__init__(reduction)
        if weight is not None and not isinstance(weight, Tensor):
            raise TypeError(f"For 'CrossEntropyLoss', the type of 'weight' must be Tensor or None, but got {type(weight).__name__}.")
        if not 0 <= label_smoothing <= 1:
            raise ValueError(f"For 'CrossEntropyLoss', the 'label_smoothing' must be in range [0.0, 1.0], but got {label_smoothing}.")
        self.weight, self.ignore_index, self.label_smoothing = weight, ignore_index, label_smoothing

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ops.cross_entropy(logits, labels, self.weight, self.ignore_index, self.reduction, self.label_smoothing)  # type: ignore[no-any-return]


class NLLLoss(LossBase):
    """Minus the score of the right class."""

    def __init__(self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight, self.ignore_index = weight, ignore_index

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ops.nll_loss(logits, labels, self.weight, self.ignore_index, self.reduction)  # type: ignore[no-any-return]


class BCELoss(LossBase):
    """Cross entropy of probabilities of two classes."""

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        _same_shape("BCELoss", logits, labels)
        return ops.binary_cross_entropy(logits, labels, self.weight, self.reduction)  # type: ignore[no-any-return]


class BCEWithLogitsLoss(LossBase):
    """Cross entropy of sigmoid(input) with probabilities of two classes."""

    def __init__(self, reduction: str = "mean", weight: Any = None, pos_weight: Any = None) -> None:
        super().__init__(reduction)
        self.weight, self.pos_weight = weight, pos_weight

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        return ops.binary_cross_entropy_with_logits(input, target, self.weight, self.pos_weight, self.reduction)  # type: ignore[no-any-return]


class KLDivLoss(LossBase):
    """labels (log labels - logits), logits being logarithms.   reduction: also batchmean."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__("mean" if reduction == "batchmean" else reduction)
        self.reduction = reduction

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ops.kl_div(logits, labels, self.reduction)  # type: ignore[no-any-return]


class CosineEmbeddingLoss(LossBase):
    """1 - cos where labels are 1, cos beyond the margin where they are -1."""

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        if not -1 <= margin <= 1:
            raise ValueError(f"For 'CosineEmbeddingLoss', the 'margin' must be in range [-1.0, 1.0], but got {margin}.")
        self.margin = float(margin)

    def construct(self, logits_x1: Tensor, logits_x2: Tensor, labels: Tensor) -> Tensor:  # type: ignore[override]
        return ops.cosine_embedding_loss(logits_x1, logits_x2, labels, self.margin, self.reduction)  # type: ignore[no-any-return]


class MarginRankingLoss(LossBase):
    """max(0, -target (input1 - input2) + margin)."""

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def construct(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:  # type: ignore[override]
        return ops.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)  # type: ignore[no-any-return]


class HingeEmbeddingLoss(LossBase):
    """logits where labels are 1, max(0, margin - logits) where they are -1."""

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ops.hinge_embedding_loss(logits, labels, self.margin, self.reduction)  # type: ignore[no-any-return]


class MultiLabelSoftMarginLoss(LossBase):
    """Cross entropy of sigmoids, the mean over classes."""

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight

    def construct(self, x: Tensor, target: Tensor) -> Tensor:
        return ops.multilabel_soft_margin_loss(x, target, self.weight, self.reduction)  # type: ignore[no-any-return]


class MultiMarginLoss(LossBase):
    """max(0, margin - x[right] + x[other])^p, the mean over classes."""

    def __init__(self, p: int = 1, margin: float = 1.0, reduction: str = "mean", weight: Any = None) -> None:
        super().__init__(reduction)
        self.p, self.margin, self.weight = p, margin, weight

    def construct(self, x: Tensor, target: Tensor, weight: Any = None) -> Tensor:
        chosen = self.weight if weight is None else weight
        return ops.multi_margin_loss(x, target, self.p, self.margin, chosen, self.reduction)  # type: ignore[no-any-return]


class MultilabelMarginLoss(LossBase):
    """max(0, 1 - x[right] + x[other]) for each right class, those before the first -1."""

    def construct(self, x: Tensor, target: Tensor) -> Tensor:
        return ops.multilabel_margin_loss(x, target, self.reduction)  # type: ignore[no-any-return]


class PoissonNLLLoss(LossBase):
    """exp(input) - target input, or with log_input=False input - target log(input)."""

    def __init__(self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        return ops.poisson_nll_loss(input, target, self.log_input, self.full, self.eps, self.reduction)  # type: ignore[no-any-return]


class GaussianNLLLoss(LossBase):
    """(log var + (logits - labels)^2 / var) / 2."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full, self.eps = full, eps

    def construct(self, logits: Tensor, labels: Tensor, var: Tensor) -> Tensor:  # type: ignore[override]
        return ops.gaussian_nll_loss(logits, labels, var, self.full, self.eps, self.reduction)  # type: ignore[no-any-return]


class TripletMarginLoss(LossBase):
    """max(0, |x - positive| - |x - negative| + margin)."""

    def __init__(self, p: int = 2, swap: bool = False, eps: float = 1e-6, reduction: str = "mean", margin: float = 1.0) -> None:
        super().__init__(reduction)
        self.p, self.swap, self.eps, self.margin = p, swap, eps, margin

    def construct(self, x: Tensor, positive: Tensor, negative: Tensor, margin: Any = 1.0) -> Tensor:  # type: ignore[override]
        chosen = margin if isinstance(margin, Tensor) or margin != 1.0 else self.margin
        return ops.triplet_margin_loss(  # type: ignore[no-any-return]
            x, positive, negative, margin=chosen, p=self.p, eps=self.eps, swap=self.swap, reduction=self.reduction
        )


class TripletMarginWithDistanceLoss(LossBase):
    """The same with a distance of one's own, by default the Euclidean one."""

    def __init__(self, distance_function: Any = None, swap: bool = False, reduction: str = "mean", margin: float = 1.0) -> None:
        super().__init__(reduction)
        if margin < 0:
            raise ValueError(f"For 'TripletMarginWithDistanceLoss', the 'margin' must be at least 0, but got {margin}.")
        self.distance_function = distance_function or (lambda a, b: ops.sqrt(ops.sum(ops.square(a - b), 1)))
        self.swap, self.margin = swap, margin

    def construct(self, x: Tensor, positive: Tensor, negative: Tensor) -> Tensor:  # type: ignore[override]
        near, far = self.distance_function(x, positive), self.distance_function(x, negative)
        if self.swap:
            far = ops.minimum(far, self.distance_function(positive, negative))
        return self.get_loss(ops.relu(near - far + self.margin))


class CTCLoss(LossBase):
    """Minus the logarithm of the probability of all alignments.   log_probs: [t, n, c]."""

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def construct(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:  # type: ignore[override]
        found = ops.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity)
        return found[0] if isinstance(found, tuple) else found  # type: ignore[no-any-return]


class DiceLoss(LossBase):
    """1 - 2 |logits label| / (|logits|^2 + |label|^2)."""

    def __init__(self, smooth: float = 1e-5) -> None:
        super().__init__()
        self.smooth = smooth

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        _same_shape("DiceLoss", logits, label)
        both = ops.sum(ops.mul(ops.reshape(logits, -1), ops.reshape(label, -1)))
        total = ops.sum(ops.square(logits)) + ops.sum(ops.square(label))
        return 1 - (both * 2 + self.smooth) / (total + self.smooth)  # type: ignore[no-any-return]


class MultiClassDiceLoss(LossBase):
    """The mean of the Dice loss of each class."""

    def __init__(self, weights: Any = None, ignore_indiex: int | None = None, activation: Any = "softmax") -> None:
        super().__init__()
        self.binarydiceloss = DiceLoss(1e-5)
        self.weights, self.ignore_indiex = weights, ignore_indiex
        self.activation: Any = get_activation(activation) if isinstance(activation, str) else activation

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        _same_shape("MultiClassDiceLoss", logits, label)
        scores = logits if self.activation is None else self.activation(logits)
        total: Any = 0.0
        for i in range(label.shape[1]):
            if i != self.ignore_indiex:
                part = self.binarydiceloss(scores[:, i], label[:, i])
                total = total + (part if self.weights is None else part * self.weights[i])
        return total / label.shape[1]  # type: ignore[no-any-return]


class FocalLoss(LossBase):
    """-(1 - p)^gamma log p of the right class.   labels: [n, 1, ...], or one-hot [n, c, ...]."""

    def __init__(self, weight: Any = None, gamma: float = 2.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        if weight is not None and not isinstance(weight, Tensor):
            raise TypeError(f"For 'FocalLoss', the type of 'weight' must be Tensor or None, but got {type(weight).__name__}.")
        self.weight, self.gamma = weight, float(gamma)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        n, c = logits.shape[:2]
        scores = ops.log_softmax(ops.reshape(logits, (n, c, -1)), 1)
        right = ops.reshape(labels, (n, labels.shape[1], -1))
        if labels.shape[1] == 1:
            places = ops.cast(right, types.int64)
            chosen = ops.gather_elements(scores, 1, places)
            factor = ops.pow(1 - ops.exp(chosen), self.gamma)
            if self.weight is not None:
                factor = factor * ops.reshape(ops.gather(ops.cast(self.weight, chosen.dtype), ops.reshape(places, -1), 0), places.shape)
            return self.get_loss(ops.mean(-ops.squeeze(factor * chosen, 1), -1))
        if labels.shape[1] != c:
            raise ValueError(f"For 'FocalLoss', labels must have 1 or {c} channels, but got {labels.shape[1]}.")
        weighted = ops.cast(right, scores.dtype)
        if self.weight is not None:
            weighted = weighted * ops.reshape(ops.cast(self.weight, scores.dtype), (1, c, 1))
        return self.get_loss(ops.mean(-ops.sum(weighted * ops.pow(1 - ops.exp(scores), self.gamma) * scores, 1), -1))


class SampledSoftmaxLoss(LossBase):
    """Softmax over a random sample of the classes is not supported."""

    def __init__(
        self, num_sampled: int, num_classes: int, num_true: int = 1, sampled_values: Any = None, remove_accidental_hits: bool = True,
        seed: int = 0, reduction: str = "none",
    ) -> None:  # fmt: skip
        raise NotImplementedError("SampledSoftmaxLoss is not supported; CrossEntropyLoss over all classes is")
