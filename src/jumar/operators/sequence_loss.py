"""Connectionist temporal classification: the loss of a sequence of labels under frames of class probabilities, and its gradient.

In: log probabilities [t, n, c], labels [n, s], lengths of both.  Out: one loss for each sequence, and what the log probabilities receive.
"""
# mypy: disable-error-code="override, no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np

from jumar.base import Array, OpError, TensorType, bool_, i64
from jumar.ir import Node, Result, f32t, sample
from jumar.operators.elementwise import mul
from jumar.operators.families import Special
from jumar.operators.movement import reshape

_LOG_P = np.log(np.full((4, 2, 3), 1 / 3, np.float32))


class CtcLoss(Special):
    """-log of the probability of all ways to spell the labels with blanks and repeats, for each sequence; the logarithms of the ways
    to each state (blank, label, blank, ...) at each frame; and the derivative by log_p.

    The derivative is by the log probabilities as they stand: minus the share of ways that pass through each class at each frame.
    """

    blank: int = 0
    signature = "log_p[t, n, c], i64 labels[n, s], i64 frames[n], i64 lengths[n] -> loss[n], ways[n, t, states], share[t, n, c]"
    samples = (sample(_LOG_P, np.array([[1, 2], [1, 1]]), np.array([4, 4]), np.array([2, 1])),
               sample(_LOG_P, np.array([[1, 2], [1, 1]]), np.array([4, 2]), np.array([2, 2])))  # fmt: skip
    cann = "aclnnCtcLoss"

    def infer(self, *types: TensorType) -> Result:
        log_p, labels, *_ = types
        if not log_p.dtype.is_float or labels.shape[0] != log_p.shape[1]:
            raise OpError(
                f"ctc_loss: log_p must be floats [t, n, c] and labels [n, s], got {log_p} and {labels}", code="dimension-mismatch"
            )
        states = 2 * labels.dims[1] + 1
        return log_p.with_shape((log_p.shape[1],)), log_p.with_shape((log_p.shape[1], log_p.shape[0], states)), log_p

    def reference(self, log_p: Array, labels: Array, frames: Array, lengths: Array) -> tuple[Array, ...]:
        p = log_p.astype(np.float64)
        t_most, n, _ = p.shape
        states = 2 * labels.shape[1] + 1
        spelled = np.full((n, states), self.blank, np.int64)
        spelled[:, 1::2] = labels
        skips = np.zeros((n, states), np.bool_)  # a label may follow the one before without a blank, unless it is the same
        skips[:, 2:] = (spelled[:, 2:] != self.blank) & (spelled[:, 2:] != spelled[:, :-2])
        emitted = np.take_along_axis(p, np.broadcast_to(spelled, (t_most, n, states)), axis=2)
        at = np.arange(states)
        inside = at <= 2 * lengths[:, None]
        forward = _walk(emitted, skips, np.where((at < 2) & inside, 0.0, -np.inf))
        rows, last = np.arange(n), np.clip(frames - 1, 0, None)
        ends = np.where((at == 2 * lengths[:, None]) | (at == 2 * lengths[:, None] - 1), forward[last, rows], -np.inf)
        total = np.logaddexp.reduce(ends, axis=1)
        share = np.zeros_like(p)
        for i in range(n):  # backwards: each sequence from its own last frame
            f, k = int(frames[i]), 2 * int(lengths[i]) + 1
            if not np.isfinite(total[i]):
                continue
            back = _walk(
                emitted[:f, i : i + 1, :k][::-1, :, ::-1], _skips_back(skips[i, :k])[None], np.where(np.arange(k) < 2, 0.0, -np.inf)[None]
            )
            ways = forward[:f, i, :k] + back[::-1, 0, ::-1] - emitted[:f, i, :k] - total[i]
            at_class: Any = (np.arange(f)[:, None], i, np.broadcast_to(spelled[i, :k], (f, k)))
            np.subtract.at(share, at_class, np.exp(ways))
        return (-total).astype(log_p.dtype), forward.swapaxes(0, 1).astype(log_p.dtype), share.astype(log_p.dtype)

    def grad(self, *nodes: Any) -> tuple[Node | None, ...]:
        *_, y, dy = nodes
        if dy[0] is None:
            return None, None, None, None
        return mul(y[2], reshape(dy[0], (1, dy[0].shape[0], 1))), None, None, None


def _skips_back(skips: Array) -> Array:
    """Which states may be entered from two behind when the walk goes backwards."""
    found = np.zeros_like(skips)
    found[2:] = skips[2:][::-1]
    return found


def _walk(emitted: Array, skips: Array, start: Array) -> Array:
    """Log probabilities of all ways to each state, frame by frame.   emitted: [t, n, states]"""
    ways = np.full_like(emitted, -np.inf)
    if not len(emitted):
        return ways
    ways[0] = emitted[0] + start
    for t in range(1, len(emitted)):
        before = ways[t - 1]
        one, two = np.full_like(before, -np.inf), np.full_like(before, -np.inf)
        one[:, 1:], two[:, 2:] = before[:, :-1], before[:, :-2]
        ways[t] = emitted[t] + np.logaddexp(np.logaddexp(before, one), np.where(skips, two, -np.inf))
    return ways


class SuppressOverlaps(Special):
    """Which boxes stay, best score first, when each one takes away those behind it that overlap it by more than `iou`.

    boxes: x1, y1, x2, y2, score.   -> the boxes by score, their places before, and True for those that stay.
    """

    iou: float = 0.5
    signature = "boxes[n, 5] -> sorted[n, 5], i64 places[n], bool stays[n]"
    samples = (sample(np.array([[0, 0, 2, 2, 0.8], [0, 0, 2.1, 2, 0.9], [3, 3, 4, 4, 0.7]], np.float32)), sample(f32t(4, 5), iou=0.3))
    cann = "NMSWithMask"

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        if x.rank != 2 or x.shape[1] != 5:
            raise OpError(f"suppress_overlaps: boxes must be [n, 5], got {x}", code="dimension-mismatch")
        return x, TensorType(x.shape[:1], i64), TensorType(x.shape[:1], bool_)

    def reference(self, boxes: Array) -> tuple[Array, Array, Array]:
        order = np.argsort(-boxes[:, 4], kind="stable")
        x = boxes[order]
        wide = x.astype(np.float64)
        low, high = wide[:, None, :2], wide[:, None, 2:4]
        sides = np.maximum(np.minimum(high, wide[None, :, 2:4]) - np.maximum(low, wide[None, :, :2]), 0)
        common = sides.prod(axis=-1)
        area = np.maximum(wide[:, 2:4] - wide[:, :2], 0).prod(axis=-1)
        union = area[:, None] + area[None] - common
        overlap = np.where(union > 0, common / np.where(union > 0, union, 1), 0)
        stays = np.ones(len(x), np.bool_)
        for i in range(len(x)):
            if stays[i]:
                stays[i + 1 :] &= overlap[i, i + 1 :] <= self.iou
        return x, order.astype(np.int64), stays
