"""`Metric`: what every measure is: cleared, fed batch by batch, evaluated.

In: predictions and labels as Tensors, arrays or lists.  Out: numbers.  Users derive from `Metric`, too.
"""

from __future__ import annotations

import functools
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jumar.base import Array
from jumar.frontend import Tensor
from jumar.train.errors import ArgumentFault, KindFault, TrainError


class EmptyMetric(TrainError, RuntimeError):
    """A measure of nothing."""


def rearrange_inputs(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of `update`: takes the inputs that `set_indexes` named, in its order."""

    @functools.wraps(func)
    def update(self: Any, *inputs: Any) -> Any:
        indexes = self.indexes
        return func(self, *([inputs[i] for i in indexes] if indexes else inputs))

    return update


class Metric(metaclass=ABCMeta):
    """A measure.   `clear()`, then `update(...)` for each batch, then `eval()`; a call does all three."""

    def __init__(self) -> None:
        self._indexes: list[int] | None = None

    @property
    def indexes(self) -> list[int] | None:
        """Which of the evaluation network's outputs `update` takes; None: all."""
        return getattr(self, "_indexes", None)  # users derive without calling __init__

    def set_indexes(self, indexes: list[int]) -> Metric:
        """Chooses outputs of the evaluation network."""
        if not isinstance(indexes, list) or not all(isinstance(i, int) for i in indexes):
            raise ArgumentFault(f"set_indexes: indexes must be a list of ints, got {indexes!r:.100}", code="train-argument")
        self._indexes = indexes
        return self

    def _convert_data(self, data: Any) -> Array:
        """An array of what was given."""
        if isinstance(data, Tensor):
            return data.asnumpy()
        if isinstance(data, list):
            return np.array(data)
        if isinstance(data, np.ndarray):
            return data
        raise KindFault(f"{self._name}: inputs must be tensors, lists or arrays, got {type(data).__name__}", code="train-argument")

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _inputs(self, inputs: Sequence[Any], count: int) -> list[Array]:
        """That many inputs as arrays."""
        if len(inputs) != count:
            raise ArgumentFault(f"{self._name}: update must get {count} inputs, got {len(inputs)}", code="train-argument")
        return [self._convert_data(x) for x in inputs]

    def _fail(self, what: str) -> ArgumentFault:
        return ArgumentFault(f"{self._name}: {what}", code="train-argument")

    def _need(self, there: Any) -> None:
        """Something was measured."""
        if not there:
            raise EmptyMetric(f"{self._name}: update must be called with samples before eval, got none", code="metric-empty")

    def __call__(self, *inputs: Any) -> Any:
        self.clear()
        self.update(*inputs)
        return self.eval()

    @abstractmethod
    def clear(self) -> None:
        """Forgets what was measured."""

    @abstractmethod
    def eval(self) -> Any:
        """The measure of all batches."""

    @abstractmethod
    def update(self, *inputs: Any) -> None:
        """Takes a batch."""


class EvaluationBase(Metric):
    """Measures of classes.   eval_type: "classification" (one class a sample) or "multilabel"."""

    def __init__(self, eval_type: str) -> None:
        super().__init__()
        if eval_type not in ("classification", "multilabel"):
            raise KindFault(f"{self._name}: eval_type must be 'classification' or 'multilabel', got {eval_type!r}", code="train-argument")
        self._type = eval_type
        self._class_num = 0

    def _pair(self, inputs: Sequence[Any]) -> tuple[Array, Array]:
        """Predictions and labels that go together; labels of one class as its number."""
        y_pred, y = self._inputs(inputs, 2)
        if self._type == "classification":
            if y_pred.ndim == y.ndim and is_onehot(y):
                y = y.argmax(axis=1)
            if y.shape != (*y_pred.shape[:1], *y_pred.shape[2:]):
                raise self._fail(f"labels must have the predictions' shape without axis 1, got {y.shape} and {y_pred.shape}")
        else:
            if y.shape != y_pred.shape:
                raise self._fail(f"labels must have the predictions' shape {y_pred.shape}, got {y.shape}")
            if not all(np.equal(a**2, a).all() for a in (y_pred, y)):
                raise self._fail("predictions and labels must be 0 or 1 for several labels")
        self._class_num = same_classes(self, self._class_num, y_pred)
        return y_pred, y


def same_classes(metric: Metric, before: int, y_pred: Array) -> int:
    """The number of classes, which may not change from batch to batch."""
    if before not in (0, y_pred.shape[1]):
        raise metric._fail(f"number of classes must stay {before}, got {y_pred.shape[1]}")
    return int(y_pred.shape[1])


def as_onehot(metric: Metric, y_pred: Array, y: Array, classes: int) -> tuple[Array, Array]:
    """Rows with a one at the predicted and the true class."""
    if y.max() + 1 > classes:
        raise metric._fail(f"labels must be below {classes}, the number of classes, got {y.max()}")
    eye = np.eye(classes)
    return eye[y_pred.argmax(axis=1).reshape(-1)], eye[y.reshape(-1)]


def is_onehot(data: Array) -> bool:
    """Whether axis 1 holds a single one."""
    return data.ndim > 1 and bool(np.equal(data**2, data).all() and np.equal(data.sum(axis=1), 1).all())
