"""Mixtures of experts, sequences and other models' parts: tokens sorted by expert, CTC, boxes.

In: tensors.  Out: tensors.
"""

from __future__ import annotations

import math
from typing import Any

from jumar import operators as o
from jumar.frontend import dtype as types
from jumar.frontend.recorder import is_capturing
from jumar.ops import arithmetic as a
from jumar.ops import movement as s
from jumar.ops import ordering, places
from jumar.ops import reduction as r
from jumar.ops.operands import I64, Tensor, apply, as_tensor, cast, floating, numpy_dtype, wrap


def moe_token_permute(tokens: Any, indices: Any, num_out_tokens: int | None = None, padded_mode: bool = False) -> tuple[Tensor, Tensor]:
    """Tokens (once for each of their experts) in the order of the experts, and where each one went (int32).   indices: [n] or [n, k]."""
    if padded_mode:
        raise NotImplementedError("moe_token_permute: padded_mode must be False, got True")
    x, experts = as_tensor(tokens), as_tensor(indices)
    each = 1 if experts.ndim == 1 else experts.shape[1]
    order = ordering.sorted_pair(s.ravel(experts), 0)[1]
    went = ordering.sorted_pair(order, 0)[1]
    if num_out_tokens:
        order = s.part(order, 0, 0, min(int(num_out_tokens), order.shape[0]))
    return places.gather(x, a.floor_divide(order, each), 0), cast(went, types.int32)


def moe_token_unpermute(
    permuted_tokens: Any, sorted_indices: Any, probs: Any = None, padded_mode: bool = False, restore_shape: Any = None
) -> Tensor:
    """Tokens back in their own order; with probs [n, k] the weighted sum over a token's experts."""
    if padded_mode:
        raise NotImplementedError("moe_token_unpermute: padded_mode must be False, got True")
    x = places.gather(as_tensor(permuted_tokens), sorted_indices, 0)
    if probs is None:
        return x
    weights = as_tensor(probs)
    each = 1 if weights.ndim == 1 else weights.shape[1]
    rows = s.reshape(x, (-1, each, x.shape[-1]))
    return r.sum(a.mul(rows, cast(s.reshape(weights, (-1, each, 1)), numpy_dtype(rows))), 1)


def ctc_losses(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0, zero_infinity: bool = False
) -> tuple[Tensor, Tensor]:
    """The loss of each sequence, and the logarithms of the ways to each state [n, t, states]."""
    x = floating(log_probs)
    labels, frames, lengths = (cast(as_tensor(v), I64) for v in (targets, input_lengths, target_lengths))
    loss: Tensor = apply(o.CtcLoss(int(blank)), x, labels, frames, lengths)
    return a.where(a.isinf(loss), 0.0, loss) if zero_infinity else loss, _ways(x, labels, int(blank))


def _ways(log_p: Tensor, labels: Tensor, blank: int) -> Any:
    """The ways to each state; None in a capture, which would have to hand the values to NumPy for them."""
    if is_capturing():
        return None
    return wrap(o.ctc_ways(log_p.array, labels.array, blank).swapaxes(0, 1).astype(numpy_dtype(log_p)))


def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> tuple[Tensor, Any]:
    """The CTC loss (mean: over target lengths, then samples), and the logarithms of the ways to each state (None in a capture)."""
    loss, ways = ctc_losses(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
    if reduction == "sum":
        return r.sum(loss), ways
    if reduction == "mean":
        return r.mean(a.div(loss, a.clamp(cast(as_tensor(target_lengths), numpy_dtype(loss)), 1.0))), ways
    if reduction != "none":
        raise ValueError(f"ctc_loss: reduction must be 'none', 'mean' or 'sum', got {reduction!r}")
    return loss, ways


def nms_with_mask(boxes: Any, iou_threshold: float) -> tuple[Tensor, Tensor, Tensor]:
    """Boxes by score, their places before (int32), and True for those that stay."""
    found, where, stays = apply(o.SuppressOverlaps(float(iou_threshold)), as_tensor(boxes))
    return found, cast(where, types.int32), stays


def box_encode(anchors: Any, boxes: Any, means: Any, stds: Any) -> Tensor:
    """Boxes relative to anchors: moved centres and logarithms of sizes, normalised."""
    px, py, pw, ph = _center_size(anchors)
    gx, gy, gw, gh = _center_size(boxes)
    found = (a.div(a.sub(gx, px), pw), a.div(a.sub(gy, py), ph), a.log(a.div(gw, pw)), a.log(a.div(gh, ph)))
    return s.stack([a.div(a.sub(d, m), v) for d, m, v in zip(found, means, stds, strict=True)], -1)


def box_decode(anchors: Any, deltas: Any, max_shape: Any, means: Any, stds: Any, wh_ratio_clip: float) -> Tensor:
    """The boxes that deltas make of anchors, cut off at the image's edge."""

    px, py, pw, ph = _center_size(anchors)
    dx, dy, dw, dh = (a.add(a.mul(s.select(deltas, -1, i), stds[i]), means[i]) for i in range(4))
    limit = abs(math.log(wh_ratio_clip))
    gw, gh = (a.mul(p, a.exp(a.clamp(d, -limit, limit))) for p, d in ((pw, dw), (ph, dh)))
    gx, gy = a.add(px, a.mul(pw, dx)), a.add(py, a.mul(ph, dy))
    edges = []
    for center, size, most in ((gx, gw, max_shape[1]), (gy, gh, max_shape[0])):
        half = a.mul(a.sub(size, 1), 0.5)
        edges.append([a.clamp(a.sub(center, half), 0, most - 1), a.clamp(a.add(center, half), 0, most - 1)])
    (x1, x2), (y1, y2) = edges
    return s.stack([x1, y1, x2, y2], -1)


def _center_size(boxes: Any) -> tuple[Tensor, ...]:
    x1, y1, x2, y2 = (s.select(as_tensor(boxes), -1, i) for i in range(4))
    return a.mul(a.add(x1, x2), 0.5), a.mul(a.add(y1, y2), 0.5), a.add(a.sub(x2, x1), 1.0), a.add(a.sub(y2, y1), 1.0)


__all__ = ["ctc_loss", "moe_token_permute", "moe_token_unpermute"]
