"""Confusion: which classes are taken for which, and the seventeen rates that follow from it.

In: predictions and labels.  Out: matrices, rates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jumar.base import Array
from jumar.train.errors import UnsupportedError, check_count, check_kind
from jumar.train.metrics.base import Metric, rearrange_inputs

_NAN = np.array(float("nan"))


class ConfusionMatrix(Metric):
    """Row: true class; column: predicted.   normalize: "target", "prediction", "all" (shares), "no_norm" (counts); threshold: for scores of one class."""

    def __init__(self, num_classes: int, normalize: str = "no_norm", threshold: float = 0.5) -> None:
        super().__init__()
        self.num_classes = check_count(self._name, "num_classes", num_classes)
        if normalize not in ("target", "prediction", "all", "no_norm"):
            raise self._fail(f"normalize must be 'target', 'prediction', 'all' or 'no_norm', got {normalize!r}")
        check_kind(self._name, "threshold", threshold, float)
        self.normalize, self.threshold = normalize, threshold
        self.clear()

    def clear(self) -> None:
        self.confusion_matrix = np.zeros((self.num_classes, self.num_classes))
        self._is_update = False

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        y_pred, y = self._inputs(inputs, 2)
        if y_pred.ndim not in (y.ndim, y.ndim + 1):
            raise self._fail(f"predictions must have as many dimensions as labels, or one more, got {y_pred.shape} and {y.shape}")
        if y_pred.ndim == y.ndim + 1:
            y_pred = np.argmax(y_pred, axis=1)
        elif y_pred.dtype in (np.float16, np.float32, np.float64):
            y_pred = (y_pred >= self.threshold).astype(int)
        cells = (y.reshape(-1) * self.num_classes + y_pred.reshape(-1)).astype(int)
        if cells.size and (cells.min() < 0 or cells.max() >= self.num_classes**2):
            raise self._fail(
                f"labels and predictions must be below {self.num_classes}, the number of classes, got {y.max()} and {y_pred.max()}"
            )
        self.confusion_matrix += np.bincount(cells, minlength=self.num_classes**2).reshape(self.num_classes, self.num_classes)
        self._is_update = True

    def eval(self) -> Array:
        self._need(self._is_update)
        counts: Array = self.confusion_matrix.astype(float)
        if self.normalize == "no_norm":
            return counts
        among = {"target": counts.sum(axis=1, keepdims=True), "prediction": counts.sum(axis=0, keepdims=True), "all": counts.sum()}[
            self.normalize
        ]
        return np.asarray(np.divide(counts, among, out=np.zeros_like(counts), where=np.broadcast_to(among, counts.shape) != 0))


class ConfusionMatrixMetric(Metric):
    """A rate of one-hot predictions.   metric_name: see RATES; calculation_method: rates of each sample, averaged; else of the sums.

    skip_channel: True keeps the first channel (MindSpore's meaning of the word); decrease: what is averaged: "none", "mean", "sum", "mean_batch",
    "sum_batch", "mean_channel", "sum_channel".
    """

    def __init__(
        self, skip_channel: bool = True, metric_name: str = "sensitivity", calculation_method: bool = False, decrease: str = "mean"
    ) -> None:
        super().__init__()
        check_kind(self._name, "skip_channel", skip_channel, bool)
        check_kind(self._name, "calculation_method", calculation_method, bool)
        check_kind(self._name, "metric_name", metric_name, str)
        if decrease not in ("none", "mean", "sum", "mean_batch", "sum_batch", "mean_channel", "sum_channel"):
            raise self._fail(f"decrease must be known, got {decrease!r}")
        self.skip_channel, self.metric_name, self.calculation_method, self.decrease = (
            skip_channel,
            metric_name,
            calculation_method,
            decrease,
        )
        self.clear()

    def clear(self) -> None:
        self._total_num: Any = 0
        self._class_num = 0
        self._sums = np.zeros(4)

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        y_pred, y = self._inputs(inputs, 2)
        if not np.all(y.astype(np.uint8) == y):
            raise self._fail("labels must be 0 or 1")
        if y_pred.ndim < 2:
            raise self._fail(f"predictions must have at least two dimensions, got {y_pred.shape}")
        counts = _counts(self, y_pred, y, self.skip_channel)
        if self.calculation_method and not (y_pred.ndim == 2 or (y_pred.ndim == 3 and y_pred.shape[-1] == 1)):
            chart, valid = _decrease(rate(self.metric_name, counts), self.decrease)
            self._total_num += chart.item() * int(valid.item())
            self._class_num += int(valid.item())
        elif self.calculation_method:
            raise UnsupportedError(
                f"{self._name}: predictions must have a third dimension for calculation_method=True, got {y_pred.shape}",
                code="train-unsupported",
            )
        else:
            self._sums += counts.sum(axis=(0, 1))

    def eval(self) -> Any:
        if self.calculation_method:
            self._need(self._class_num)
            return self._total_num / self._class_num
        return rate(self.metric_name, self._sums[None])


def _counts(metric: Metric, y_pred: Array, y: Array, skip_channel: bool) -> Array:
    """tp, fp, tn, fn of each sample and class   -> [n, classes, 4]"""
    if not skip_channel:
        y = y[:, 1:] if y.shape[1] > 1 else y
        y_pred = y_pred[:, 1:] if y_pred.shape[1] > 1 else y_pred
    if y.shape != y_pred.shape:
        raise metric._fail(f"labels must have the predictions' shape {y_pred.shape}, got {y.shape}")
    y, y_pred = (a.astype(float).reshape(*a.shape[:2], -1) for a in (y, y_pred))
    tp, tn = (y_pred + y == 2).sum(axis=2).astype(float), (y_pred + y == 0).sum(axis=2).astype(float)
    p = y.sum(axis=2)
    return np.stack([tp, y.shape[-1] - p - tn, tn, p - tp], axis=-1)


def _decrease(chart: Array, how: str) -> tuple[Array, Array]:
    """Sums or means of what is not NaN, and how many those are."""
    valid = (~np.isnan(chart)).astype(float)
    chart = np.nan_to_num(chart, nan=0.0)

    def mean(axis: int, chart: Array, valid: Array) -> tuple[Array, Array]:
        count = valid.sum(axis=axis)
        return np.where(count > 0, chart.sum(axis=axis) / np.where(count > 0, count, 1), 0.0), count

    match how:
        case "mean":
            means, count = mean(1, chart, valid)
            return mean(0, means, (count > 0).astype(float))
        case "sum":
            return chart.sum(axis=(0, 1)), valid.sum(axis=(0, 1))
        case "mean_batch":
            return mean(0, chart, valid)
        case "mean_channel":
            return mean(1, chart, valid)
        case "sum_batch":
            return chart.sum(axis=0), valid.sum(axis=0)
        case "sum_channel":
            return chart.sum(axis=1), valid.sum(axis=1)
        case _:
            return chart, valid


# ------------------------------------------------------------------ rates
def _share(a: Any, b: Any) -> Array:
    """a / b, NaN where b is 0."""
    b = np.asarray(b, float)
    return np.where(b != 0, a / np.where(b != 0, b, 1), _NAN)


def _prevalence_threshold(tp: Array, fp: Array, tn: Array, fn: Array) -> Array:
    tpr, tnr = _share(tp, tp + fn), _share(tn, fp + tn)
    return _share(np.sqrt(tpr * (1.0 - tnr)) + tnr - 1.0, tpr + tnr - 1.0)


RATES: dict[str, Callable[[Array, Array, Array, Array], Array]] = {
    "tpr": lambda tp, fp, tn, fn: _share(tp, tp + fn),
    "tnr": lambda tp, fp, tn, fn: _share(tn, fp + tn),
    "ppv": lambda tp, fp, tn, fn: _share(tp, tp + fp),
    "npv": lambda tp, fp, tn, fn: _share(tn, tn + fn),
    "fnr": lambda tp, fp, tn, fn: _share(fn, tp + fn),
    "fpr": lambda tp, fp, tn, fn: _share(fp, fp + tn),
    "fdr": lambda tp, fp, tn, fn: _share(fp, fp + tp),
    "for": lambda tp, fp, tn, fn: _share(fn, fn + tn),
    "pt": _prevalence_threshold,
    "ts": lambda tp, fp, tn, fn: _share(tp, tp + fn + fp),
    "acc": lambda tp, fp, tn, fn: _share(tp + tn, tp + fn + fp + tn),
    "ba": lambda tp, fp, tn, fn: (_share(tp, tp + fn) + _share(tn, fp + tn)) / 2.0,
    "f1": lambda tp, fp, tn, fn: _share(tp * 2.0, tp * 2.0 + fn + fp),
    "mcc": lambda tp, fp, tn, fn: _share(tp * tn - fp * fn, np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))),
    "fm": lambda tp, fp, tn, fn: np.sqrt(_share(tp, tp + fp) * _share(tp, tp + fn)),
    "bm": lambda tp, fp, tn, fn: _share(tp, tp + fn) + _share(tn, fp + tn) - 1.0,
    "mk": lambda tp, fp, tn, fn: _share(tp, tp + fp) + _share(tn, tn + fn) - 1.0,
}
NAMES = {
    "sensitivity": "tpr", "recall": "tpr", "hit_rate": "tpr", "true_positive_rate": "tpr", "specificity": "tnr", "selectivity": "tnr",
    "true_negative_rate": "tnr", "precision": "ppv", "positive_predictive_value": "ppv", "negative_predictive_value": "npv", "miss_rate": "fnr",
    "false_negative_rate": "fnr", "fall_out": "fpr", "false_positive_rate": "fpr", "false_discovery_rate": "fdr", "false_omission_rate": "for",
    "prevalence_threshold": "pt", "threat_score": "ts", "critical_success_index": "ts", "csi": "ts", "accuracy": "acc", "balanced_accuracy": "ba",
    "f1_score": "f1", "matthews_correlation_coefficient": "mcc", "fowlkes_mallows_index": "fm", "informedness": "bm", "bookmaker_informedness": "bm",
    "markedness": "mk", "deltap": "mk",
}  # fmt: skip


def rate(name: str, counts: Array) -> Array:
    """A rate by its name.   counts: [..., 4] of tp, fp, tn, fn"""
    key = name.replace(" ", "_").lower()
    found = RATES.get(NAMES.get(key, key))
    if found is None:
        raise UnsupportedError(
            f"ConfusionMatrixMetric: metric_name must be one of {', '.join([*NAMES, *RATES])}, got {name!r}", code="train-unsupported"
        )
    return found(*(counts[..., i] for i in range(4)))
