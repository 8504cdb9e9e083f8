"""Connectionist temporal classification: the loss of labels under frames of class probabilities; and boxes that overlap no better one.

In: log probabilities [t, n, c], labels [n, s], lengths of both.  Out: one loss for each sequence.
"""
# mypy: disable-error-code="override, no-any-return"

from __future__ import annotations

import numpy as np

from jumar.base import Array, OpError, TensorType, bool_, i64
from jumar.ir import Node, Result, constant, f32t, sample
from jumar.operators.elementwise import add, equal, exp, greater, less_equal, log, maximum, mul, neg, select, sub
from jumar.operators.families import Composite, Special
from jumar.operators.movement import Broadcast, Concat, GatherElements, Pad, ScatterNd, reshape, slice_axis

NEVER = -1e30  # the logarithm of a probability of nothing; finite, so that differences of two are numbers
_LOG_P = np.log(
    np.array([[[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]], [[0.1, 0.3, 0.6], [0.2, 0.7, 0.1]], [[0.5, 0.2, 0.3], [0.3, 0.3, 0.4]]], np.float32)
)


class CtcLoss(Composite):
    """-log of the probability of all ways to spell the labels with blanks and repeats, for each sequence; infinite where there is none.

    frames, lengths: how many frames and labels of each sequence count.
    """

    blank: int = 0
    signature = "log_p[t, n, c], i64 labels[n, s], i64 frames[n], i64 lengths[n] -> loss[n]"
    samples = (
        sample(_LOG_P, np.array([[1, 2], [1, 1]]), np.array([3, 3]), np.array([2, 1])),
        sample(_LOG_P, np.array([[1], [0]]), np.array([2, 3]), np.array([1, 1]), blank=2),
    )
    cann = "aclnnCtcLoss"

    def infer(self, *types: TensorType) -> Result:
        log_p, labels, *rest = types
        if not log_p.dtype.is_float or 0 in log_p.shape or not -1 < self.blank < log_p.dims[2]:
            raise OpError(
                f"ctc_loss: log_p must be floats [t, n, c] and blank one of the classes, got {log_p} and {self.blank}", code="attribute"
            )
        if any(t.dtype != i64 or t.shape[0] != log_p.shape[1] for t in (labels, *rest)) or labels.shape[1] == 0:
            shown = ", ".join(map(str, types))
            raise OpError(
                f"ctc_loss: labels and lengths must be i64 for each of {log_p.shape[1]} sequences, got {shown}", code="dimension-mismatch"
            )
        return log_p.with_shape((log_p.shape[1],))

    def reference(self, log_p: Array, labels: Array, frames: Array, lengths: Array) -> Array:
        ways = ctc_ways(log_p, labels, self.blank)
        end = 2 * lengths[:, None]
        at = np.arange(ways.shape[2])
        last = ways[np.clip(frames - 1, 0, len(ways) - 1), np.arange(len(labels))]
        total = np.logaddexp.reduce(np.where((at == end) | (at == end - 1), last, -np.inf), axis=1)
        return (-total).astype(log_p.dtype)

    def decompose(self, *inputs: Node) -> Node:
        """Frame by frame; log_p as it stands, so that gradients are those of the sum over ways."""
        log_p, labels, frames, lengths = inputs
        t, n, _ = log_p.shape
        states = 2 * labels.shape[1] + 1
        # blank, label, blank, ...
        pairs = Concat(2)(Broadcast((*labels.shape, 1))(constant(self.blank, i64)), reshape(labels, (*labels.shape, 1)))
        spelled = Concat(1)(reshape(pairs, (n, states - 1)), Broadcast((n, 1))(constant(self.blank, i64)))
        other = equal(equal(spelled, Pad((0, 2), (0, 0), value=self.blank)(slice_axis(spelled, 1, 0, states - 2))), constant(False))
        second = constant(np.arange(states) > 1)
        skips = select(second, select(equal(spelled, self.blank), constant(False), other), constant(False))
        emitted = GatherElements(2)(log_p, Broadcast((t, n, states))(spelled))
        ways = select(constant(np.arange(states) < 2), reshape(slice_axis(emitted, 0, 0, 1), (n, states)), NEVER)
        for frame in range(1, t):
            one = Pad((0, 1), (0, 0), value=NEVER)(slice_axis(ways, 1, 0, states - 1))
            two = select(skips, Pad((0, 2), (0, 0), value=NEVER)(slice_axis(ways, 1, 0, states - 2)), NEVER)
            new = add(_log_sum([ways, one, two]), reshape(slice_axis(emitted, 0, frame, frame + 1), (n, states)))
            ways = select(reshape(greater(frames, frame), (n, 1)), new, ways)
        end = reshape(mul(lengths, 2), (n, 1))
        at = constant(np.arange(states))
        final = [reshape(GatherElements(1)(select(equal(at, e), ways, NEVER), maximum(e, 0)), (n,)) for e in (end, sub(end, 1))]
        final[1] = select(greater(lengths, 0), final[1], NEVER)
        total = _log_sum(final)
        return select(less_equal(total, NEVER / 2), constant(np.inf, log_p.dtype), neg(total))


def _log_sum(parts: list[Node]) -> Node:
    """log of the sum of exp."""
    top = parts[0]
    for p in parts[1:]:
        top = maximum(top, p)
    total = exp(sub(parts[0], top))
    for p in parts[1:]:
        total = add(total, exp(sub(p, top)))
    return add(top, log(total))


def ctc_ways(log_p: Array, labels: Array, blank: int) -> Array:
    """Logarithms of the ways to each state (blank, label, blank, ...) at each frame.   -> f64 [t, n, states]"""
    p = log_p.astype(np.float64)
    states = 2 * labels.shape[1] + 1
    spelled = np.full((len(labels), states), blank, np.int64)
    spelled[:, 1::2] = labels
    skips = np.zeros(spelled.shape, np.bool_)  # a label may follow the one before without a blank, unless it is the same
    skips[:, 2:] = (spelled[:, 2:] != blank) & (spelled[:, 2:] != spelled[:, :-2])
    emitted = np.take_along_axis(p, np.broadcast_to(spelled, (len(p), *spelled.shape)), axis=2)
    ways = np.full_like(emitted, -np.inf)
    ways[0, :, :2] = emitted[0, :, :2]
    for t in range(1, len(p)):
        one, two = (np.full_like(ways[0], -np.inf) for _ in range(2))
        one[:, 1:], two[:, 2:] = ways[t - 1, :, :-1], ways[t - 1, :, :-2]
        ways[t] = emitted[t] + np.logaddexp(np.logaddexp(ways[t - 1], one), np.where(skips, two, -np.inf))
    return ways


class SuppressOverlaps(Special):
    """Which boxes stay, best score first, when each one takes away those behind it that overlap it by more than `iou`.

    boxes: x1, y1, x2, y2, score.   -> the boxes by score, their places before, and True for those that stay.
    """

    iou: float = 0.5
    signature = "boxes[n, 5] -> sorted[n, 5], i64 places[n], bool stays[n]"
    samples = (sample(np.array([[0, 0, 2, 2, 0.8], [0, 0, 2.1, 2, 0.9], [3, 3, 4, 4, 0.7]], np.float32)), sample(f32t(4, 5), iou=0.3))

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        if x.rank != 2 or x.shape[1] != 5:
            raise OpError(f"suppress_overlaps: boxes must be [n, 5], got {x}", code="dimension-mismatch")
        return x, TensorType(x.shape[:1], i64), TensorType(x.shape[:1], bool_)

    def reference(self, boxes: Array) -> tuple[Array, Array, Array]:
        order = np.argsort(-boxes[:, 4], kind="stable")
        x = boxes[order]
        corners = x.astype(np.float64)
        low, high = corners[:, None, :2], corners[:, None, 2:4]
        sides = np.maximum(np.minimum(high, corners[None, :, 2:4]) - np.maximum(low, corners[None, :, :2]), 0)
        common = sides.prod(axis=-1)
        area = np.maximum(corners[:, 2:4] - corners[:, :2], 0).prod(axis=-1)
        union = area[:, None] + area[None] - common
        overlap = np.where(union > 0, common / np.where(union > 0, union, 1), 0)
        stays = np.ones(len(x), np.bool_)
        for i in range(len(x)):
            if stays[i]:
                stays[i + 1 :] &= overlap[i, i + 1 :] <= self.iou
        return x, order.astype(np.int64), stays

    def grad(self, x: Node, y: tuple[Node, ...], dy: tuple[Node | None, ...]) -> tuple[Node | None]:
        if dy[0] is None:
            return (None,)
        return (ScatterNd()(Broadcast(x.shape)(constant(0, x.dtype)), reshape(y[1], (x.shape[0], 1)), dy[0]),)
