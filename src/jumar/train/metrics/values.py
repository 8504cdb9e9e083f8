"""Measures of values: mean errors, loss, perplexity, similarity, overlap, translation.

In: predictions and targets.  Out: numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from jumar.train.errors import check_count, check_kind
from jumar.train.metrics.base import EmptyMetric, Metric, rearrange_inputs


class _Error(Metric):
    """The sum of an error over samples, by their number."""

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        self._sum: Any = 0
        self._samples_num = 0

    def eval(self) -> Any:
        self._need(self._samples_num)
        return self._sum / self._samples_num


class MAE(_Error):
    """Mean absolute error: summed over a sample's elements, averaged over samples, as MindSpore has it."""

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        y_pred, y = self._inputs(inputs, 2)
        self._sum += np.abs(y.reshape(y_pred.shape) - y_pred).sum()
        self._samples_num += y.shape[0]


class MSE(_Error):
    """Mean squared error: summed over a sample's elements, averaged over samples, as MindSpore has it."""

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        y_pred, y = self._inputs(inputs, 2)
        self._sum += np.power(y.reshape(y_pred.shape) - y_pred, 2).sum()
        self._samples_num += y.shape[0]


class Loss(_Error):
    """Mean of the batches' losses."""

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        (loss,) = self._inputs(inputs, 1)
        if loss.ndim > 1:
            raise self._fail(f"loss must have at most one dimension, got {loss.shape}")
        self._sum += loss.reshape(-1).mean(-1)
        self._samples_num += 1


class Perplexity(Metric):
    """exp of the mean negative log of the probability that the labels had.   ignore_label: a label that does not count."""

    def __init__(self, ignore_label: int | None = None) -> None:
        super().__init__()
        check_kind(self._name, "ignore_label", ignore_label, (int, type(None)))
        self.ignore_label = ignore_label
        self.clear()

    def clear(self) -> None:
        self._sum_metric: Any = 0.0
        self._num_inst: Any = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        preds, labels = self._inputs(inputs, 2)
        if labels.size != preds.size / preds.shape[-1]:
            raise EmptyMetric(f"{self._name}: labels must be one for each row of {preds.shape}, got {labels.shape}", code="metric-empty")
        flat = labels.reshape(-1)
        rows = flat.astype(int)[:, None]
        chosen = np.squeeze(preds[np.arange(len(rows))[:, None], rows])
        ignored: Any = 0
        if self.ignore_label is not None:
            ignore = (flat == self.ignore_label).astype(chosen.dtype)
            ignored = np.sum(ignore)
            chosen = chosen * (1 - ignore) + ignore
        self._sum_metric += -np.sum(np.log(np.maximum(1e-10, chosen)))
        self._num_inst += chosen.size - ignored

    def eval(self) -> float:
        self._need(self._num_inst)
        return math.exp(self._sum_metric / self._num_inst)


class CosineSimilarity(Metric):
    """Products of all rows of the last batch with one another.   similarity: "cosine" or "dot"; reduction: "none", "sum", "mean" over a row."""

    def __init__(self, similarity: str = "cosine", reduction: str = "none", zero_diagonal: bool = True) -> None:
        super().__init__()
        if similarity not in ("cosine", "dot") or reduction not in ("none", "sum", "mean"):
            raise self._fail(f"similarity and reduction must be known, got {similarity!r} and {reduction!r}")
        check_kind(self._name, "zero_diagonal", zero_diagonal, bool)
        self.similarity, self.reduction, self.zero_diagonal = similarity, reduction, zero_diagonal
        self.clear()

    def clear(self) -> None:
        self.sqr_mtx_res: Any = 0
        self._is_update = False

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        (rows,) = self._inputs(inputs, 1)
        if self.similarity == "cosine":
            rows = rows / np.linalg.norm(rows, ord=2, axis=1)[:, None]
        self.sqr_mtx_res = np.dot(rows, rows.T)
        self._is_update = True

    def eval(self) -> Any:
        self._need(self._is_update)
        result = self.sqr_mtx_res.copy()
        if self.zero_diagonal:
            np.fill_diagonal(result, 0)
        if self.reduction == "none":
            return result
        return np.mean(result, axis=-1) if self.reduction == "mean" else np.sum(result, axis=-1)


class Dice(Metric):
    """Twice the overlap by the sum of squares.   smooth: keeps 0 / 0 away."""

    def __init__(self, smooth: float = 1e-5) -> None:
        super().__init__()
        if not smooth > 0:
            raise self._fail(f"smooth must be above 0, got {smooth}")
        self.smooth = smooth
        self.clear()

    def clear(self) -> None:
        self._dice_coeff_sum = 0.0
        self._samples_num = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        y_pred, y = self._inputs(inputs, 2)
        if y_pred.shape != y.shape:
            raise self._fail(f"targets must have the predictions' shape {y_pred.shape}, got {y.shape}")
        self._samples_num += y.shape[0]
        a, b = y_pred.flatten(), y.flatten()
        self._dice_coeff_sum += 2 * float(np.dot(a, b)) / float(np.dot(a, a) + np.dot(b, b) + self.smooth)

    def eval(self) -> float:
        self._need(self._samples_num)
        return self._dice_coeff_sum / float(self._samples_num)


class BleuScore(Metric):
    """BLEU of translations against references.   n_gram: 1 to 4; smooth: add one to numerators and denominators."""

    def __init__(self, n_gram: int = 4, smooth: bool = False) -> None:
        super().__init__()
        check_kind(self._name, "smooth", smooth, bool)
        if check_count(self._name, "n_gram", n_gram) > 4:
            raise self._fail(f"n_gram must be from 1 to 4, got {n_gram}")
        self.n_gram, self.smooth = n_gram, smooth
        self.clear()

    def clear(self) -> None:
        self._numerator = np.zeros(self.n_gram)
        self._denominator = np.zeros(self.n_gram)
        self._c = self._r = 0.0
        self._is_update = False

    def _grams(self, words: Sequence[Any]) -> Counter[tuple[Any, ...]]:
        return Counter(tuple(words[j : j + i]) for i in range(1, self.n_gram + 1) for j in range(len(words) - i + 1))

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        if len(inputs) != 2 or len(inputs[0]) != len(inputs[1]):
            raise self._fail(f"update must get as many translations as lists of references, got {[len(i) for i in inputs]}")
        for candidate, references in zip(*inputs, strict=True):
            self._c += len(candidate)
            self._r += len(min(references, key=lambda ref: abs(len(candidate) - len(ref))))
            mine = self._grams(candidate)
            theirs: Counter[tuple[Any, ...]] = Counter()
            for reference in references:
                theirs |= self._grams(reference)
            for gram, count in (mine & theirs).items():
                self._numerator[len(gram) - 1] += count
            for gram, count in mine.items():
                self._denominator[len(gram) - 1] += count
        self._is_update = True

    def eval(self) -> Any:
        self._need(self._is_update)
        if min(self._numerator) == 0.0:
            return np.array(0.0)
        more = 1.0 if self.smooth else 0.0
        mean = np.exp(np.sum(np.log((self._numerator + more) / (self._denominator + more)) / self.n_gram))
        penalty = 1.0 if self._c > self._r else np.exp(1 - self._r / self._c)
        return penalty * mean
