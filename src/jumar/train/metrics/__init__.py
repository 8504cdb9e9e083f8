"""Metrics: measures of a network's results, by name.  MindSpore's `mindspore.train.metrics` (also `nn`'s).

In: names, dicts and sets of metrics.  Out: Metric objects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jumar.base import nearest
from jumar.train.errors import KindFault, TrainError
from jumar.train.metrics.base import EvaluationBase, Metric, rearrange_inputs
from jumar.train.metrics.classes import (
    F1,
    Accuracy,
    Fbeta,
    Precision,
    Recall,
    Top1CategoricalAccuracy,
    Top5CategoricalAccuracy,
    TopKCategoricalAccuracy,
)
from jumar.train.metrics.confusion import ConfusionMatrix, ConfusionMatrixMetric
from jumar.train.metrics.curve import ROC, auc
from jumar.train.metrics.surface import HausdorffDistance, MeanSurfaceDistance, RootMeanSquareDistance
from jumar.train.metrics.values import MAE, MSE, BleuScore, CosineSimilarity, Dice, Loss, Perplexity
from jumar.train.unsupported import refuser

OcclusionSensitivity = refuser("OcclusionSensitivity")

_FACTORY: dict[str, Callable[..., Any]] = {
    "F1": F1, "acc": Accuracy, "accuracy": Accuracy, "auc": auc, "bleu_score": BleuScore, "confusion_matrix": ConfusionMatrix,
    "confusion_matrix_metric": ConfusionMatrixMetric, "cosine_similarity": CosineSimilarity, "dice": Dice, "hausdorff_distance": HausdorffDistance,
    "loss": Loss, "mae": MAE, "mean_surface_distance": MeanSurfaceDistance, "mse": MSE, "occlusion_sensitivity": OcclusionSensitivity,
    "perplexity": Perplexity, "precision": Precision, "recall": Recall, "roc": ROC, "root_mean_square_distance": RootMeanSquareDistance,
    "top_1_accuracy": Top1CategoricalAccuracy, "top_5_accuracy": Top5CategoricalAccuracy, "topk": TopKCategoricalAccuracy,
}  # fmt: skip


class MetricName(TrainError, KeyError):
    """A metric that there is not."""

    __str__ = TrainError.__str__


def names() -> list[str]:
    """Names that `get_metric_fn` knows."""
    return sorted(_FACTORY)


def get_metric_fn(name: str, *args: Any, **kwargs: Any) -> Any:
    """A metric by its name."""
    if name not in _FACTORY:
        raise MetricName(
            f"get_metric_fn: name must be one of {', '.join(names())}, got {name!r}", hint=nearest(str(name), names()), code="metric-name"
        )
    return _FACTORY[name](*args, **kwargs)


def get_metrics(metrics: Any) -> dict[str, Metric] | None:
    """Metrics by name, of what Model takes: a dict, a set of names, or None."""
    if metrics is None:
        return None
    if isinstance(metrics, dict) and all(isinstance(n, str) and isinstance(m, Metric) for n, m in metrics.items()):
        return metrics
    if isinstance(metrics, set):
        return {name: get_metric_fn(name) for name in metrics}
    raise KindFault(
        f"Model: metrics must be None, a set of names or a dict of Metrics by name, got {metrics!r:.100}", code="train-argument"
    )


__all__ = [
    "names", "get_metric_fn", "Accuracy", "MAE", "MSE", "Metric", "rearrange_inputs", "Precision", "HausdorffDistance", "Recall", "Fbeta", "BleuScore",
    "CosineSimilarity", "OcclusionSensitivity", "F1", "Dice", "ROC", "auc", "TopKCategoricalAccuracy", "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy", "Loss", "MeanSurfaceDistance", "RootMeanSquareDistance", "Perplexity", "ConfusionMatrix", "ConfusionMatrixMetric",
]  # fmt: skip
