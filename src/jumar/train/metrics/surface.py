"""Distances between the surfaces of two segmentations.

In: masks or label maps, and the label.  Out: the largest, mean or mean squared distance from one surface to the other.
Only distances at surface points are wanted, so they are taken point by point instead of by a transform of the whole picture: the same numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jumar.base import Array
from jumar.train.errors import check_kind
from jumar.train.metrics.base import Metric, rearrange_inputs

_METRICS = ("euclidean", "chessboard", "taxicab")
_BLOCK = 1 << 22  # pairs of points at once


class _Surfaces(Metric):
    """Two surfaces, of the last update."""

    def __init__(self, distance_metric: str = "euclidean") -> None:
        super().__init__()
        if distance_metric not in _METRICS:
            raise self._fail(f"distance_metric must be one of {', '.join(_METRICS)}, got {distance_metric!r}")
        self.distance_metric = distance_metric
        self.clear()

    def clear(self) -> None:
        self._edges: tuple[Array, Array] | None = None

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        if len(inputs) != 3 or not isinstance(inputs[2], int | float):
            raise self._fail("update must get a prediction, a target and a label (a number)")
        y_pred, y = self._inputs(inputs[:2], 2)
        label = inputs[2]
        if y_pred.size == 0 or y_pred.shape != y.shape:
            raise self._fail(f"prediction and target must have one shape, not empty, got {y_pred.shape} and {y.shape}")
        if label not in y_pred and label not in y:
            raise self._fail(f"label must be in the prediction or the target, got {label}")
        self._edges = self._surfaces(y_pred, y, label)

    def _surfaces(self, y_pred: Array, y: Array, label: Any) -> tuple[Array, Array]:
        a, b = (d if d.dtype == bool else d == label for d in (y_pred, y))
        return _surface(a), _surface(b)

    def _distances(self, *, back: bool = False) -> Array:
        """Of each point of the prediction's surface to the target's; `back`: the other way."""
        assert self._edges is not None, "eval asks first"
        start, end = self._edges[::-1] if back else self._edges
        a, b = np.argwhere(start), np.argwhere(end)
        if not len(a):
            return np.zeros(0)
        if not len(b):
            return np.full(len(a), np.inf)
        rows = max(1, _BLOCK // len(b))
        return np.concatenate([_nearest(a[i : i + rows], b, self.distance_metric) for i in range(0, len(a), rows)])


class HausdorffDistance(_Surfaces):
    """The largest distance from one surface to the other.   percentile: that percentile instead; directed: only from prediction to target.

    crop: to the box around both masks, in which dimensions of length 1 count no more: a flat mask has its outline for a surface.
    """

    def __init__(
        self, distance_metric: str = "euclidean", percentile: float | None = None, directed: bool | None = False, crop: bool | None = True
    ) -> None:
        super().__init__(distance_metric)
        check_kind(self._name, "percentile", percentile, (float, type(None)))
        check_kind(self._name, "directed", directed, (bool, type(None)))
        check_kind(self._name, "crop", crop, (bool, type(None)))
        if percentile is not None and not 0 <= percentile <= 100:
            raise self._fail(f"percentile must be from 0 to 100, got {percentile}")
        self.percentile, self.directed, self.crop = percentile, directed, crop

    def _surfaces(self, y_pred: Array, y: Array, label: Any) -> tuple[Array, Array]:
        a, b = y_pred == label, y == label
        if self.crop:
            box = tuple(slice(i.min(), i.max() + 1) for i in np.nonzero(a | b))
            a, b = np.squeeze(a[box]), np.squeeze(b[box])
        return _surface(a), _surface(b)

    def eval(self) -> Any:
        self._need(self._edges is not None)
        there = self._largest(self._distances())
        return there if self.directed else max(there, self._largest(self._distances(back=True)))

    def _largest(self, distances: Array) -> Any:
        if not len(distances):
            return np.inf
        return np.percentile(distances, self.percentile) if self.percentile else distances.max()


class _MeanOf(_Surfaces):
    def __init__(self, symmetric: bool = False, distance_metric: str = "euclidean") -> None:
        super().__init__(distance_metric)
        check_kind(self._name, "symmetric", symmetric, bool)
        self.symmetric = symmetric

    def _means(self, power: int) -> tuple[Any, Any]:
        self._need(self._edges is not None)
        found = [self._distances(), self._distances(back=True) if self.symmetric else np.zeros(1)]
        return tuple((d**power).mean() if len(d) else np.inf for d in found)  # type: ignore[return-value]


class MeanSurfaceDistance(_MeanOf):
    """Mean distance from the prediction's surface to the target's.   symmetric: the mean of both ways."""

    def eval(self) -> Any:
        there, back = self._means(1)
        return np.mean((there, back)) if self.symmetric and np.inf not in (there, back) else max(there, back) if self.symmetric else there


class RootMeanSquareDistance(_MeanOf):
    """Mean squared distance of the surfaces; its root if symmetric, as MindSpore has it."""

    def eval(self) -> Any:
        there, back = self._means(2)
        if not self.symmetric:
            return there
        return np.inf if np.inf in (there, back) else np.sqrt(np.mean((there, back)))


def _surface(mask: Array) -> Array:
    """Points of a mask with a neighbour outside of it; outside of the picture counts."""
    inside = mask.copy()
    padded = np.pad(mask, 1)
    centre = tuple(slice(1, -1) for _ in range(mask.ndim))
    for axis in range(mask.ndim):
        for shift in (-1, 1):
            inside &= np.roll(padded, shift, axis)[centre]
    return np.asarray(mask & ~inside)


def _nearest(a: Array, b: Array, metric: str) -> Array:
    """Distance of each point of a to the nearest of b."""
    gaps = np.abs(a[:, None, :] - b[None, :, :])
    match metric:
        case "euclidean":
            return np.asarray(np.sqrt((gaps**2).sum(axis=-1).min(axis=1)))
        case "chessboard":
            return np.asarray(gaps.max(axis=-1).min(axis=1))
        case _:
            return np.asarray(gaps.sum(axis=-1).min(axis=1))
