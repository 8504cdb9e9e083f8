"""Curves: what a threshold on the score would give, and the area under it.

In: scores and labels.  Out: false and true positive rates by threshold; areas.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jumar.base import Array
from jumar.train.errors import ArgumentFault, KindFault, check_kind
from jumar.train.metrics.base import Metric, rearrange_inputs


def auc(x: Array, y: Array, reorder: bool = False) -> Any:
    """Area under the points (x, y) by trapezoids.   reorder: sort by x first; else x must rise or fall throughout."""
    if not isinstance(x, np.ndarray) or not isinstance(y, np.ndarray):
        raise KindFault(f"auc: x and y must be arrays, got {type(x).__name__} and {type(y).__name__}", code="train-argument")
    if any(a.ndim != 1 and not (a.ndim == 2 and a.shape[1] == 1) for a in (x, y)) or len(x) != len(y) or len(x) < 2:
        raise ArgumentFault(f"auc: x and y must be columns of one length of at least 2, got {x.shape} and {y.shape}", code="train-argument")
    x, y = np.ravel(x), np.ravel(y)
    if reorder:
        order = np.lexsort((y, x))
        x, y = x[order], y[order]
    steps = np.diff(x)
    falls = bool(np.any(steps < 0))
    if falls and not np.all(steps <= 0):
        raise ArgumentFault(f"auc: x must rise or fall throughout, got {x!r:.100}", hint="reorder=True sorts it", code="train-argument")
    area = np.sum(steps * (y[1:] + y[:-1]) / 2.0)
    return -area if falls else area


class ROC(Metric):
    """Rates by threshold: (false positive rate, true positive rate, thresholds), lists of them for several classes.

    class_num: of scores [n, classes]; pos_label: the positive label of scores [n], default 1.  Of the last batch only, as MindSpore has it.
    """

    def __init__(self, class_num: int | None = None, pos_label: int | None = None) -> None:
        super().__init__()
        check_kind(self._name, "class_num", class_num, (int, type(None)))
        check_kind(self._name, "pos_label", pos_label, (int, type(None)))
        self.class_num, self.pos_label = class_num, pos_label
        self.clear()

    def clear(self) -> None:
        self.y_pred: Any = 0
        self.y: Any = 0
        self._is_update = False

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        y_pred, y = self._inputs(inputs, 2)
        if y_pred.ndim == y.ndim:
            if self.class_num not in (None, 1):
                raise self._fail(f"class_num must be 1 for scores of the labels' shape, got {self.class_num}")
            self.class_num = 1
            self.pos_label = 1 if self.pos_label is None else self.pos_label
            y_pred = y_pred.flatten()
        elif y_pred.ndim == y.ndim + 1:
            if self.pos_label is not None or self.class_num != y_pred.shape[1]:
                raise self._fail(f"class_num must be {y_pred.shape[1]}, without pos_label, for scores {y_pred.shape}, got {self.class_num}")
            y_pred = np.moveaxis(y_pred, 1, -1).reshape(-1, y_pred.shape[1])
        else:
            raise self._fail(f"scores must have as many dimensions as labels, or one more, got {y_pred.shape} and {y.shape}")
        self.y_pred, self.y = y_pred, y.flatten()
        self._is_update = True

    def eval(self) -> Any:
        self._need(self._is_update)
        if self.class_num == 1 and self.y_pred.ndim == 1:
            return self._curve(self.y_pred, self.y == self.pos_label)
        curves = [self._curve(self.y_pred[:, c], self.y == c) for c in range(self.class_num or 0)]
        return tuple(list(part) for part in zip(*curves, strict=True))

    def _curve(self, scores: Array, positive: Array) -> tuple[Array, Array, Array]:
        order = np.argsort(-scores)
        scores, positive = scores[order], positive[order].astype(np.int64)
        last = np.append(np.nonzero(np.diff(scores))[0], len(scores) - 1)  # of each run of one score
        tps = np.cumsum(positive)[last]
        fps = 1 + last - tps
        if tps[-1] <= 0 or fps[-1] <= 0:
            raise self._fail("labels must hold positive and negative samples, got only one kind")
        tpr, fpr = np.append(0, tps) / tps[-1], np.append(0, fps) / fps[-1]
        return fpr, tpr, np.hstack([scores[last][:1] + 1, scores[last]])
