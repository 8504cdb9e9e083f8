"""Cases of all metrics, to be run with MindSpore's `train` and with ours: `python metric_cases.py` in MindSpore's environment prints the golden file."""

from __future__ import annotations

import json
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Nested lists of numbers."""
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    return np.asarray(value, np.float64).tolist()


def cases(train: Any, tensor: Any) -> dict[str, Any]:
    """Results by name."""
    rng = np.random.default_rng(7)
    found: dict[str, Any] = {}

    def add(name: str, metric: Any, *batches: tuple[Any, ...], **options: Any) -> None:
        metric.clear()
        for batch in batches:
            metric.update(*(tensor(b) if isinstance(b, np.ndarray) else b for b in batch))
        found[name] = plain(metric.eval(**options))

    scores = [rng.random((8, 5)).astype(np.float32) for _ in range(2)]
    labels = [rng.integers(0, 5, 8).astype(np.int32) for _ in range(2)]
    onehot = [np.eye(5, dtype=np.float32)[y] for y in labels]
    bits = [[rng.integers(0, 2, (6, 4)).astype(np.int32) for _ in range(2)] for _ in range(2)]
    both, hot, several = list(zip(scores, labels)), list(zip(scores, onehot)), [tuple(b) for b in bits]
    for name in ("Accuracy", "Precision", "Recall"):
        make = getattr(train, name)
        add(name, make(), *both)
        add(f"{name} onehot", make(), *hot)
        add(f"{name} multilabel", make("multilabel"), *several)
        if name != "Accuracy":
            add(f"{name} average", make(), *both, average=True)
            add(f"{name} multilabel average", make("multilabel"), *several, average=True)
    add("Accuracy pixels", train.Accuracy(), (rng.random((2, 3, 4)).astype(np.float32), rng.integers(0, 3, (2, 4)).astype(np.int32)))
    add("F1", train.F1(), *both)
    add("F1 average", train.F1(), *hot, average=True)
    add("Fbeta", train.Fbeta(2), *both)
    add("TopK", train.TopKCategoricalAccuracy(3), *both)
    add("Top1", train.Top1CategoricalAccuracy(), *both)
    add("Top5", train.Top5CategoricalAccuracy(), *hot)
    pairs = [(rng.random((3, 4)).astype(np.float32), rng.random((3, 4)).astype(np.float32)) for _ in range(2)]
    add("MAE", train.MAE(), *pairs)
    add("MSE", train.MSE(), *pairs)
    add("Dice", train.Dice(), *pairs)
    add("Loss", train.Loss(), (np.float32([1.5, 2.5]),), (np.array(3.0, np.float32),))
    chances = rng.random((6, 5)).astype(np.float32)
    words = rng.integers(0, 5, 6).astype(np.int32)
    words[2] = 1
    add("Perplexity", train.Perplexity(), (chances, words))
    add("Perplexity ignore", train.Perplexity(ignore_label=1), (chances, words))
    for reduction in ("none", "sum", "mean"):
        for similarity in ("cosine", "dot"):
            for zero in (True, False):
                add(
                    f"CosineSimilarity {similarity} {reduction} {zero}", train.CosineSimilarity(similarity, reduction, zero), (pairs[0][0],)
                )
    texts = (
        [["i", "have", "a", "pen", "on", "my", "desk"]],
        [[["i", "have", "a", "pen", "in", "my", "desk"], ["there", "is", "a", "pen", "on", "the", "desk"]]],
    )
    for n in (1, 2, 3, 4):
        add(f"Bleu {n}", train.BleuScore(n), texts)
        add(f"Bleu smooth {n}", train.BleuScore(n, smooth=True), texts, texts)
    for how in ("no_norm", "target", "prediction", "all"):
        add(f"ConfusionMatrix {how}", train.ConfusionMatrix(6, how), *both)
        add(f"ConfusionMatrix binary {how}", train.ConfusionMatrix(2, how, 0.4), (scores[0][:, 0], bits[0][0].reshape(-1)[:8]))
    hot_pred = np.eye(3)[rng.integers(0, 3, (4, 6))].transpose(0, 2, 1)
    hot_true = np.eye(3)[rng.integers(0, 3, (4, 6))].transpose(0, 2, 1)
    rates = [
        "tpr",
        "tnr",
        "ppv",
        "npv",
        "fnr",
        "fpr",
        "fdr",
        "for",
        "pt",
        "ts",
        "acc",
        "ba",
        "f1",
        "mcc",
        "fm",
        "bm",
        "mk",
        "hit rate",
        "csi",
    ]
    for rate in rates:
        for skip in (True, False):
            add(f"rate {rate} {skip}", train.ConfusionMatrixMetric(skip, rate), (hot_pred, hot_true), (hot_true, hot_pred))
        add(f"rate {rate} mean", train.ConfusionMatrixMetric(True, rate, True, "mean"), (hot_pred, hot_true))
        add(f"rate {rate} sum", train.ConfusionMatrixMetric(True, rate, True, "sum"), (hot_pred, hot_true))
    add("ROC", train.ROC(pos_label=1), (np.array([3, 1, 4, 2, 2, 5]), np.array([1, 1, 0, 1, 0, 0])))
    classes = np.array([[0.28, 0.55, 0.15, 0.05], [0.10, 0.20, 0.05, 0.05], [0.20, 0.05, 0.15, 0.05], [0.05, 0.05, 0.05, 0.75]])
    add("ROC classes", train.ROC(class_num=4), (classes, np.array([0, 1, 2, 3])))
    x, y = np.sort(rng.random(7)), rng.random(7)
    found["auc"] = plain(train.auc(x, y))
    found["auc falling"] = plain(train.auc(x[::-1], y))
    found["auc reorder"] = plain(train.auc(y, x, reorder=True))
    maps = [np.clip(np.add.outer(np.arange(9), -np.arange(8)) // 2 + k, 0, 3) for k in (0, 1)]
    flat = [np.zeros((5, 6), int), np.zeros((5, 6), int)]
    flat[0][2, 1:5], flat[1][2, 2:6] = 1, 1
    for metric in ("euclidean", "chessboard", "taxicab"):
        for label, (a, b) in ((1, maps), (2, maps), (1, flat)):
            key = f"{metric} {label} {a.shape}"
            for crop in (True, False):
                add(f"Hausdorff {key} {crop}", train.HausdorffDistance(metric, crop=crop), (a, b, label))
            add(f"Hausdorff percentile {key}", train.HausdorffDistance(metric, 70.0, True), (a, b, label))
            for symmetric in (True, False):
                add(f"MeanSurface {key} {symmetric}", train.MeanSurfaceDistance(symmetric, metric), (a, b, label))
                add(f"RootMeanSquare {key} {symmetric}", train.RootMeanSquareDistance(symmetric, metric), (a, b, label))
    add("MeanSurface absent", train.MeanSurfaceDistance(), (flat[0], flat[1] * 0, 1))
    add("MeanSurface absent symmetric", train.MeanSurfaceDistance(True), (flat[0], flat[1] * 0, 1))
    found["names"] = [ord(n[0]) for n in train.names()]
    return found


if __name__ == "__main__":
    import mindspore

    print(json.dumps(cases(mindspore.train, mindspore.Tensor), indent=0))
