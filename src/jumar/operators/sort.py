"""Sorting, searching and counting: what depends on the order of the data, or has a shape that only the data tells.

In: tensors.  Out: values, places, counts.  An operator with `data_dependent` never enters a graph: who traces runs its reference.
"""
# mypy: disable-error-code="override"

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from jumar.base import Array, OpError, TensorType, dtype_of, f16, i32, i64
from jumar.ir import Data, Node, Result, constant, f32t, sample, tensor
from jumar.operators.elementwise import mul
from jumar.operators.families import Special, check_word, normal_axis
from jumar.operators.movement import Broadcast, Gather, ScatterElements, reshape


class TopK(Special):
    """The k largest (or smallest) elements along `axis` and where they stand; of equal ones the first comes first, NaN is the largest.

    sorted: in order; otherwise any order will do.
    """

    k: int
    axis: int = -1
    largest: bool = True
    sorted: bool = True
    signature = "x[..., n, ...] -> y[..., k, ...], i64 place[..., k, ...]"
    samples = (
        sample(f32t(3, 7), k=3), sample(f32t(2, 5, 3), k=2, axis=1, largest=False), sample(tensor(i32, 12), k=4),
        sample(tensor(f16, 2, 4), k=4),
        sample(np.array([1.0, np.nan, 2.0, 2.0], np.float32), k=3),
    )  # fmt: skip
    cann = "aclnnTopk"

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        axis = normal_axis(self.name, self.axis, x.rank)
        if not 0 <= self.k <= x.dims[axis]:
            raise OpError(f"top_k: k must be at most {x.shape[axis]}, the size of axis {axis}, got {self.k}", code="top-k")
        y = x.with_shape(self.k if a == axis else d for a, d in enumerate(x.shape))
        return y, y.with_dtype(i64)

    def reference(self, x: Array) -> tuple[Array, Array]:
        order = _descending(x, self.axis) if self.largest else np.argsort(x, axis=self.axis, kind="stable")
        place = np.take(order, range(self.k), axis=self.axis)
        return np.take_along_axis(x, place, axis=self.axis), place

    def grad(self, x: Node, y: tuple[Node, ...], dy: tuple[Node | None, ...]) -> tuple[Node | None]:
        if dy[0] is None:
            return (None,)
        zeros = Broadcast(x.shape)(constant(0, x.dtype))
        return (ScatterElements(normal_axis(self.name, self.axis, x.rank))(zeros, y[1], dy[0]),)


def _descending(x: Array, axis: int) -> Array:
    """A stable order from the largest down."""
    last = x.shape[axis] - 1
    return np.flip(last - np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)


class DataDependent(Special):
    """An operator whose result has a shape that only the data tells."""

    abstract = True
    data_dependent: ClassVar[bool] = True

    def infer(self, *types: TensorType) -> Result:
        raise OpError(f"{self.name}: shape of the result must be known to enter a graph, and depends on the data", code="data-dependent")


class NonZero(DataDependent):
    """Places of the elements that are not zero, one column for each.   -> [rank, count]"""

    signature = "x[...] -> i64 y[rank, count]"
    samples = (sample(np.array([[1, 0], [1, 1]], np.float32)),)
    cann = "aclnnNonzero"

    def reference(self, x: Array) -> Array:
        return np.array(np.nonzero(np.atleast_1d(x)), np.int64)[: x.ndim]


class Unique(DataDependent):
    """The different elements (or slices along `axis`), where each first stands, which one each element is, and how often each occurs."""

    axis: int | None = None
    sorted: bool = True
    signature = "x[...] -> y[count, ...], i64 first[count], i64 inverse[n], i64 counts[count]"
    samples = (
        sample(np.array([2, 1, 1, 3, 4, 3], np.float32)),
        sample(np.array([[1, 0], [1, 0], [2, 3]], np.float32), axis=0, sorted=False),
    )
    cann = "aclnnUnique2"

    def reference(self, x: Array) -> tuple[Array, ...]:
        if self.axis is not None:
            normal_axis(self.name, self.axis, x.ndim)
        y, first, inverse, counts = np.unique(x, True, True, True, axis=self.axis)
        inverse = inverse.reshape(-1)
        if not self.sorted:
            order = np.argsort(first)
            y, first, counts = np.take(y, order, axis=self.axis or 0), first[order], counts[order]
            inverse = np.argsort(order)[inverse]
        return y, first, inverse, counts


class Compress(DataDependent):
    """The slices along `axis` (without one: the elements, laid flat) where the condition holds."""

    axis: int | None = None
    signature = "x[...], bool keep[m] -> y[...]"
    samples = (sample(f32t(3, 2), np.array([False, True, True]), axis=0), sample(f32t(3, 2), np.array([True, False, True])))

    def reference(self, x: Array, keep: Array) -> Array:
        size = x.shape[normal_axis(self.name, self.axis, x.ndim)] if self.axis is not None else x.size
        if keep.ndim != 1 or len(keep) > size:
            what = f"compress: keep must be one row of at most {size} conditions, got {list(keep.shape)} for x{list(x.shape)}"
            raise OpError(what, code="dimension-mismatch")
        return np.compress(keep.astype(np.bool_), x, axis=self.axis)


class NonMaxSuppression(DataDependent):
    """Boxes in order of their scores that overlap no better one by more than `iou`, as rows (image, class, box).

    most: how many for each class at most.   score: boxes must have more than this.   center: a box is (x, y, width, height), otherwise
    two corners (y1, x1, y2, x2).
    """

    most: int = 0
    iou: float = 0.0
    score: float | None = None
    center: bool = False
    signature = "boxes[n, b, 4], scores[n, classes, b] -> i64 y[count, 3]"
    samples = (
        sample(np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3]]], np.float32), np.array([[[0.9, 0.8, 0.7]]], np.float32), most=3,
               iou=0.5),
    )  # fmt: skip
    cann = "aclnnNonMaxSuppression"

    def reference(self, boxes: Array, scores: Array) -> Array:
        found: list[tuple[int, int, int]] = []
        for image, label in np.ndindex(*scores.shape[:2]):
            low, high = self._corners(boxes[image].astype(np.float64))
            order = _descending(scores[image, label], 0)
            if self.score is not None:
                order = order[scores[image, label][order] > self.score]
            kept = 0
            while len(order) and kept < self.most:
                best, order = order[0], order[1:]
                found.append((image, label, int(best)))
                kept += 1
                order = order[_overlap(low, high, best, order) <= self.iou]
        return np.array(found, np.int64).reshape(-1, 3)

    def _corners(self, boxes: Array) -> tuple[Array, Array]:
        """The low and the high corner of each box."""
        if self.center:
            middle, half = boxes[:, :2], boxes[:, 2:] / 2
            return middle - half, middle + half
        return np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])


def _overlap(low: Array, high: Array, best: int, others: Array) -> Array:
    """Intersection over union of box `best` and others; 0 where one of them is empty."""
    sides = np.minimum(high[best], high[others]) - np.maximum(low[best], low[others])
    common = np.prod(np.maximum(sides, 0), axis=1)
    area = np.prod(high - low, axis=1)
    union = area[best] + area[others] - common
    valid = (area[best] > 0) & (area[others] > 0) & (union > 0)
    return np.asarray(np.where(valid, common / np.where(valid, union, 1), 0))


class Det(Special):
    """The determinant of each square matrix."""

    signature = "x[..., n, n] -> y[...]"
    samples = (sample(f32t(3, 3)), sample(f32t(2, 4, 2, 2)))

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        if x.rank < 2 or x.shape[-1] != x.shape[-2]:
            raise OpError(f"det: x must be square matrices, got {x}", code="dimension-mismatch")
        return x.with_shape(x.shape[:-2])

    def reference(self, x: Array) -> Array:
        return np.asarray(np.linalg.det(x.astype(np.float64)))

    def grad(self, x: Node, y: Node, dy: Node) -> tuple[Node]:
        """The cofactors: determinants without one row and one column, which are right for singular matrices too."""
        n = x.shape[-1]
        if n == 0:
            return (Broadcast(x.shape)(constant(0, x.dtype)),)
        others = np.array([[j for j in range(n) if j != i] for i in range(n)], np.int64).reshape(n, n - 1)
        places = others[:, None, :, None] * n + others[None, :, None, :]  # [row, column, n - 1, n - 1]
        minors = Gather(x.rank - 2)(reshape(x, (*x.shape[:-2], n * n)), constant(places))
        signs = constant((-1.0) ** np.add.outer(np.arange(n), np.arange(n)), x.dtype)
        return (mul(mul(Det()(minors), signs), reshape(dy, (*dy.shape, 1, 1))),)


class Ngrams(Special):
    """Counts, in each row of x, the n-grams of a pool, at `places` of the result (ONNX TfIdfVectorizer).

    pool: all n-grams in one row; starts: where those of length 1, 2, ... begin.   shortest, longest, skips: which n-grams count and how
    many elements may lie between neighbours.   mode: TF the count, IDF the weight where there is any, TFIDF count times weight.
    """

    pool: Data
    starts: tuple[int, ...]
    places: tuple[int, ...]
    weights: tuple[float, ...] = ()
    shortest: int = 1
    longest: int = 1
    skips: int = 0
    mode: str = "TF"
    signature = "x[..., n] -> f32 y[..., m]"
    samples = (sample(np.array([[1, 2, 1, 3]]), pool=Data(np.array([1, 3, 1, 2])), starts=(0, 2), places=(0, 1, 2), longest=2),)

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        check_word(self.name, self.mode, ("TF", "IDF", "TFIDF"))
        ends = (*self.starts[1:], self.pool.array.size)
        pieces = [(end - start, n) for n, (start, end) in enumerate(zip(self.starts, ends), 1)]
        if not pieces or self.starts[0] < 0 or any(size < 0 or size % n for size, n in pieces):
            raise OpError(f"ngrams: starts must cut the pool of {self.pool.array.size} into n-grams, got {self.starts}", code="attribute")
        count = sum(size // n for size, n in pieces)
        if len(self.places) != count or not count or min(self.places) < 0 or (self.weights and len(self.weights) != count):
            raise OpError(f"ngrams: places must be one number from 0 up for each of {count} n-grams, got {self.places}", code="attribute")
        if not 1 <= self.shortest <= self.longest <= len(self.starts) or self.skips < 0:
            raise OpError(f"ngrams: lengths must be within 1..{len(self.starts)} and skips 0 or more, got {self}", code="attribute")
        return TensorType((*x.shape[:-1], max(self.places) + 1), dtype_of(np.float32))

    def table(self) -> dict[tuple[object, ...], int]:
        """The place of each n-gram that counts."""
        found: dict[tuple[object, ...], int] = {}
        pool, ends, number = self.pool.array.tolist(), (*self.starts[1:], self.pool.array.size), 0
        for n, (start, end) in enumerate(zip(self.starts, ends, strict=True), 1):
            for at in range(start, end - n + 1, n):
                if self.shortest <= n <= self.longest:
                    found[tuple(pool[at : at + n])] = self.places[number]
                number += 1
        return found

    def reference(self, x: Array) -> Array:
        table, rows = self.table(), x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
        counts = np.zeros((len(rows), max(self.places) + 1), np.float32)
        for y, row in zip(counts, rows.tolist(), strict=True):
            for n in range(self.shortest, self.longest + 1):
                for step in range(1, 2 if n == 1 else self.skips + 2):
                    for at in range(len(row) - step * (n - 1)):
                        place = table.get(tuple(row[at : at + step * n : step][:n]))
                        if place is not None:
                            y[place] += 1
        weights = np.ones(counts.shape[1], np.float32)
        if self.weights:
            weights[list(self.places)] = self.weights
        result = {"TF": counts, "IDF": np.where(counts > 0, weights, 0), "TFIDF": counts * weights}[self.mode]
        return np.asarray(result.reshape(*x.shape[:-1], counts.shape[1]))
