"""Measures of classification: accuracy, precision, recall, F, top k.

In: scores [n, classes, ...] and labels [n, ...].  Out: shares between 0 and 1, for all or each class.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from jumar.train.errors import check_count, check_kind
from jumar.train.metrics.base import EvaluationBase, Metric, as_onehot, is_onehot, rearrange_inputs, same_classes

_EPSILON = sys.float_info.min  # MindSpore's: 0 / 0 is 0


class Accuracy(EvaluationBase):
    """Share of samples whose class (or all of whose labels) is right."""

    def __init__(self, eval_type: str = "classification") -> None:
        super().__init__(eval_type)
        self.clear()

    def clear(self) -> None:
        self._correct_num: Any = 0
        self._total_num = 0
        self._class_num = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        y_pred, y = self._pair(inputs)
        if self._type == "classification":
            result = np.equal(y_pred.argmax(axis=1), y).reshape(-1)
        else:
            rows = [a.swapaxes(1, a.ndim - 1).reshape(-1, self._class_num) for a in (y_pred, y)]
            result = np.equal(*rows).all(axis=1)
        self._correct_num += result.sum()
        self._total_num += result.shape[0]

    def eval(self) -> Any:
        self._need(self._total_num)
        return self._correct_num / self._total_num


class _Share(EvaluationBase):
    """True positives among something, by class."""

    def __init__(self, eval_type: str = "classification") -> None:
        super().__init__(eval_type)
        self.clear()

    def clear(self) -> None:
        several = self._type == "multilabel"
        self._class_num = 0
        self._true_positives: Any = np.empty(0) if several else 0
        self._among: Any = np.empty(0) if several else 0
        self._average_sum: Any = 0
        self._average_num = 0

    def _add(self, inputs: Any, *, predicted: bool) -> None:
        y_pred, y = self._pair(inputs)
        if self._type == "classification":
            y_pred, y = as_onehot(self, y_pred, y, self._class_num)
        else:
            y_pred, y = (a.swapaxes(1, 0).reshape(self._class_num, -1) for a in (y_pred, y))
        among, right = (y_pred if predicted else y).sum(axis=0), (y * y_pred).sum(axis=0)
        if self._type == "classification":
            self._true_positives += right
            self._among += among
        else:
            self._average_sum += np.sum(right / (among + _EPSILON))
            self._average_num += len(among)
            self._true_positives = np.concatenate((self._true_positives, right), axis=0)
            self._among = np.concatenate((self._among, among), axis=0)

    def eval(self, average: bool = False) -> Any:
        """average: the mean of all classes instead of each."""
        self._need(self._class_num)
        check_kind(self._name, "average", average, bool)
        result = self._true_positives / (self._among + _EPSILON)
        if average and self._type == "multilabel":
            result = self._average_sum / (self._average_num + _EPSILON)
        return result.mean() if average else result


class Precision(_Share):
    """Of what was taken for a class, the share that is."""

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        self._add(inputs, predicted=True)


class Recall(_Share):
    """Of what is of a class, the share that was taken for it."""

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        self._add(inputs, predicted=False)


class Fbeta(Metric):
    """(1 + beta^2) tp / (beta^2 actual + predicted), by class."""

    def __init__(self, beta: float) -> None:
        super().__init__()
        if not beta > 0:
            raise self._fail(f"beta must be above 0, got {beta}")
        self.beta = beta
        self.eps = _EPSILON
        self.clear()

    def clear(self) -> None:
        self._true_positives: Any = 0
        self._actual_positives: Any = 0
        self._positives: Any = 0
        self._class_num = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        y_pred, y = self._inputs(inputs, 2)
        if y_pred.ndim == y.ndim and is_onehot(y):
            y = y.argmax(axis=1)
        self._class_num = same_classes(self, self._class_num, y_pred)
        y_pred, y = as_onehot(self, y_pred, y, self._class_num)
        self._true_positives += (y * y_pred).sum(axis=0)
        self._positives += y_pred.sum(axis=0)
        self._actual_positives += y.sum(axis=0)

    def eval(self, average: bool = False) -> Any:
        """average: the mean of all classes instead of each."""
        self._need(self._class_num)
        check_kind(self._name, "average", average, bool)
        square = self.beta**2
        result = (1.0 + square) * self._true_positives / (square * self._actual_positives + self._positives + self.eps)
        return result.mean() if average else result


class F1(Fbeta):
    """Harmonic mean of precision and recall, by class."""

    def __init__(self) -> None:
        super().__init__(1.0)


class TopKCategoricalAccuracy(Metric):
    """Share of samples whose class is among the k of highest score."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = check_count(self._name, "k", k)
        self.clear()

    def clear(self) -> None:
        self._correct_num: Any = 0
        self._samples_num = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        y_pred, y = self._inputs(inputs, 2)
        if y_pred.ndim == y.ndim and is_onehot(y):
            y = y.argmax(axis=1)
        best = np.argsort(-y_pred, axis=1)[:, : self.k]
        column = y.reshape(-1, 1)
        self._correct_num += np.equal(best, column).sum()
        self._samples_num += column.shape[0]

    def eval(self) -> Any:
        self._need(self._samples_num)
        return self._correct_num / self._samples_num


class Top1CategoricalAccuracy(TopKCategoricalAccuracy):
    """Share of samples whose class has the highest score."""

    def __init__(self) -> None:
        super().__init__(1)


class Top5CategoricalAccuracy(TopKCategoricalAccuracy):
    """Share of samples whose class is among the five of highest score."""

    def __init__(self) -> None:
        super().__init__(5)
