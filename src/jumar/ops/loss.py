"""Losses: cross entropy, binary cross entropy, mse, l1, kl, nll and their kin.

In: predictions, targets and weights.   Out: one number, or one for each sample.   reduction: none, mean, sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jumar import operators as o
from jumar.ops import arithmetic as a
from jumar.ops import movement as s
from jumar.ops import reduction as r
from jumar.ops.activation import log_softmax, logsigmoid, softplus
from jumar.ops.operands import I64, Tensor, apply, as_tensor, cast, constant, floating, numpy_dtype


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """The loss of all samples, as asked for."""
    if reduction == "none":
        return loss
    if reduction == "mean":
        return r.mean(loss)
    if reduction == "sum":
        return r.sum(loss)
    raise ValueError(f"loss: reduction must be 'none', 'mean' or 'sum', got {reduction!r}")


def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """(input - target)^2."""
    return reduced(a.square(a.sub(floating(input), target)), reduction)


def l1_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """|input - target|."""
    return reduced(a.abs(a.sub(floating(input), target)), reduction)


def smooth_l1_loss(input: Any, target: Any, beta: float = 1.0, reduction: str = "none") -> Tensor:
    """Quadratic within beta, linear beyond."""
    size = a.abs(a.sub(floating(input), target))
    if beta == 0:
        return reduced(size, reduction)
    return reduced(a.where(a.less(size, beta), a.mul(a.square(size), 0.5 / beta), a.sub(size, 0.5 * beta)), reduction)


def smooth_l1_loss_torch(input: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Quadratic within beta, linear beyond."""
    return smooth_l1_loss(input, target, beta, reduction)


def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """Quadratic within delta, linear beyond with slope delta."""
    size = a.abs(a.sub(floating(input), target))
    return reduced(a.where(a.less_equal(size, delta), a.mul(a.square(size), 0.5), a.mul(a.sub(size, 0.5 * delta), delta)), reduction)


def nll_loss(
    input: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0
) -> Tensor:
    """Minus the log probability of the target class, [n, c, ...] and [n, ...]; classes may have weights."""
    x, t = floating(input), as_tensor(target)
    axis = 1 if x.ndim > 1 else 0
    if numpy_dtype(t) not in (np.dtype(np.int32), I64):
        t = cast(t, I64)
    keep = a.not_equal(t, ignore_index)
    at = a.where(keep, a.where(a.less(t, 0), x.shape[axis], t), 0)  # a negative class is out of range, not one counted from the end
    picked = s.squeeze(_picked(x, axis, s.unsqueeze(at, axis)), axis)
    if weight is None:
        share = cast(keep, numpy_dtype(x))
        loss = a.where(keep, a.neg(picked), 0.0)
    else:
        share = a.where(keep, apply(o.Gather(0), cast(as_tensor(weight), numpy_dtype(x)), at), 0.0)
        loss = a.mul(a.neg(picked), share)
    total = r.sum(share) if reduction == "mean" else None
    if not label_smoothing:
        return a.div(r.sum(loss), total) if total is not None else reduced(loss, reduction)
    rows = x if weight is None else a.mul(x, s.reshape(cast(as_tensor(weight), numpy_dtype(x)), (-1, *[1] * (x.ndim - 1 - axis))))
    smooth = a.where(keep, a.neg(r.sum(rows, axis)), 0.0)
    share_of = label_smoothing / x.shape[axis]
    whole = a.add(a.mul(loss, 1 - label_smoothing), a.mul(smooth, share_of))
    return a.div(r.sum(whole), total) if total is not None else reduced(whole, reduction)


def _picked(x: Tensor, axis: int, index: Tensor) -> Tensor:
    return apply(o.GatherElements(axis), x, index)  # type: ignore[no-any-return]


def cross_entropy(
    input: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0
) -> Tensor:
    """Cross entropy of logits with classes, or with probabilities of the input's shape."""
    x, t = floating(input), as_tensor(target)
    axis = 1 if x.ndim > 1 else 0
    log_p = log_softmax(x, axis)
    if t.ndim != x.ndim or not t.dtype.is_floating_point:
        return nll_loss(log_p, t, weight, ignore_index, reduction, label_smoothing)
    t = cast(t, numpy_dtype(x))
    if label_smoothing:
        t = a.add(a.mul(t, 1 - label_smoothing), label_smoothing / x.shape[axis])
    if weight is not None:
        log_p = a.mul(log_p, s.reshape(cast(as_tensor(weight), numpy_dtype(x)), (-1, *[1] * (x.ndim - 1 - axis))))
    loss = a.neg(r.sum(a.mul(log_p, t), axis))
    if reduction == "mean":
        return a.div(r.sum(loss), float(max(loss.size, 1)))
    return reduced(loss, reduction)


def binary_cross_entropy(logits: Any, labels: Any, weight: Any = None, reduction: str = "mean") -> Tensor:
    """Cross entropy of probabilities with labels; logarithms are not below -100."""
    p = floating(logits)
    t = cast(as_tensor(labels), numpy_dtype(p))
    yes, no = a.clamp(a.log(p), -100.0), a.clamp(a.log(a.sub(1, p)), -100.0)
    loss = a.neg(a.add(a.mul(t, yes), a.mul(a.sub(1, t), no)))
    return reduced(loss if weight is None else a.mul(loss, weight), reduction)


def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: str = "mean"
) -> Tensor:
    """Cross entropy of sigmoid(input) with labels, without overflow."""
    x = floating(input)
    t = cast(as_tensor(target), numpy_dtype(x))
    if pos_weight is None:
        loss = a.add(a.sub(a.maximum(x, 0), a.mul(x, t)), softplus(a.neg(a.abs(x)), 1, 1e30))
    else:
        factor = a.add(a.mul(a.sub(pos_weight, 1), t), 1)
        low = a.neg(logsigmoid(x))
        loss = a.add(a.mul(a.sub(1, t), x), a.mul(factor, low))
    return reduced(loss if weight is None else a.mul(loss, weight), reduction)


def binary_cross_entropy_with_logits_torch(
    input: Any, target: Any, weight: Any = None, reduction: str = "mean", pos_weight: Any = None
) -> Tensor:
    """Cross entropy of sigmoid(input) with labels, without overflow."""
    return binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


def kl_div(logits: Any, labels: Any, reduction: str = "mean") -> Tensor:
    """labels (log labels - logits): logits are log probabilities."""
    return kl_div_torch(logits, labels, reduction)


def kl_div_torch(input: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """target (log target - input): input are log probabilities."""
    x, t = floating(input), as_tensor(target)
    loss = a.mul(a.exp(t), a.sub(t, x)) if log_target else a.sub(a.xlogy(t, t), a.mul(t, x))
    if reduction == "batchmean":
        return a.div(r.sum(loss), float(x.shape[0]))
    return reduced(loss, reduction)


def soft_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target input))."""
    return reduced(a.log1p(a.exp(a.neg(a.mul(input, target)))), reduction)


def margin_ranking_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean") -> Tensor:
    """max(0, margin - target (input1 - input2))."""
    return reduced(a.maximum(a.add(a.mul(a.neg(target), a.sub(input1, input2)), margin), 0), reduction)


def hinge_embedding_loss(inputs: Any, targets: Any, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """The input where the target is 1, max(0, margin - input) where it is -1."""
    x = floating(inputs)
    loss = a.add(a.where(a.not_equal(targets, 1), a.maximum(a.sub(margin, x), 0), 0.0), a.where(a.not_equal(targets, -1), x, 0.0))
    return reduced(loss, reduction)


def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-08) -> Tensor:
    """The cosine of the angle of vectors along a dimension."""
    p, q = floating(x1), floating(x2)
    size = a.mul(a.maximum(r.vector_norm(p, 2, dim), eps), a.maximum(r.vector_norm(q, 2, dim), eps))
    return a.div(r.sum(a.mul(p, q), dim), size)


def cosine_embedding_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean") -> Tensor:
    """1 - cosine where the target is 1, max(0, cosine - margin) where it is -1."""
    axis = as_tensor(input1).ndim - 1
    cosine = cosine_similarity(input1, input2, axis)
    loss = a.where(a.equal(target, 1), a.sub(1, cosine), a.where(a.equal(target, -1), a.maximum(a.sub(cosine, margin), 0), 0.0))
    return reduced(loss, reduction)


def pairwise_distance(x: Any, y: Any, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False) -> Tensor:
    """The p-norm of x - y + eps along the last dimension."""
    return r.vector_norm(a.add(a.sub(x, y), eps), p, -1, keepdim)


def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2, eps: float = 1e-06, swap: bool = False,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """max(0, d(anchor, positive) - d(anchor, negative) + margin)."""
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = a.minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduced(a.maximum(a.add(a.sub(near, far), margin), 0), reduction)


def multilabel_soft_margin_loss(input: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Tensor:
    """The mean over classes of the binary cross entropy."""
    x = floating(input)
    loss = a.neg(a.add(a.mul(target, logsigmoid(x)), a.mul(a.sub(1, target), logsigmoid(a.neg(x)))))
    return reduced(r.mean(loss if weight is None else a.mul(loss, weight), -1), reduction)


def multi_margin_loss(input: Any, target: Any, p: int = 1, margin: float = 1, weight: Any = None, reduction: str = "mean") -> Tensor:
    """The mean over the other classes of max(0, margin - x[target] + x[i])^p."""
    x, t = floating(input), cast(as_tensor(target), I64)
    at = s.unsqueeze(t, -1)
    size = a.maximum(a.add(a.sub(x, _picked(x, x.ndim - 1, at)), margin), 0)
    size = size if p == 1 else a.pow(size, p)
    if weight is not None:
        size = a.mul(size, apply(o.Gather(0), as_tensor(weight), at))
    other = a.not_equal(constant(np.arange(x.shape[-1])), at)
    return reduced(a.div(r.sum(a.where(other, size, 0.0), -1), float(x.shape[-1])), reduction)


def multilabel_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """The mean over classes of max(0, 1 - x[target] + x[other]); targets end at the first -1."""
    x, t = floating(input), cast(as_tensor(target), I64)
    single = x.ndim == 1
    if single:
        x, t = s.unsqueeze(x, 0), s.unsqueeze(t, 0)
    c = x.shape[1]
    live = a.equal(r.cumsum(cast(a.less(t, 0), I64), 1), 0)  # [n, c]
    at = a.where(live, t, 0)
    hit = a.logical_and(a.equal(s.unsqueeze(at, 2), constant(np.arange(c))), s.unsqueeze(live, 2))
    is_target = r.any(hit, 1)
    picked = _picked(x, 1, at)
    size = a.maximum(a.add(a.sub(s.unsqueeze(x, 1), s.unsqueeze(picked, 2)), 1), 0)  # [n, target, class]
    keep = a.logical_and(s.unsqueeze(live, 2), a.logical_not(s.unsqueeze(is_target, 1)))
    loss = a.div(r.sum(a.where(keep, size, 0.0), (1, 2)), float(c))
    return reduced(s.squeeze(loss, 0) if single else loss, reduction)


def gaussian_nll_loss(x: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-06, reduction: str = "mean") -> Tensor:
    """(log var + (x - target)^2 / var) / 2."""
    spread = a.maximum(floating(var), eps)
    loss = a.mul(a.add(a.log(spread), a.div(a.square(a.sub(x, target)), spread)), 0.5)
    return reduced(a.add(loss, 0.5 * float(np.log(2 * np.pi))) if full else loss, reduction)


def poisson_nll_loss(
    input: Any, target: Any, log_input: bool = True, full: bool = False, eps: float = 1e-08, reduction: str = "mean"
) -> Tensor:
    """exp(input) - target input, or input - target log(input + eps)."""
    x = floating(input)
    loss = a.sub(a.exp(x), a.mul(target, x)) if log_input else a.sub(x, a.mul(target, a.log(a.add(x, eps))))
    if full:
        t = floating(target)
        stirling = a.add(a.sub(a.mul(t, a.log(t)), t), a.mul(a.log(a.mul(t, 2 * float(np.pi))), 0.5))
        loss = a.add(loss, a.where(a.greater(t, 1), stirling, 0.0))
    return reduced(loss, reduction)


__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cosine_similarity", "cross_entropy",
    "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "margin_ranking_loss", "mse_loss", "multi_margin_loss",
    "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss",
    "triplet_margin_loss",
]  # fmt: skip
