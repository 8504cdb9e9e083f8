"""Reductions: sums, means, products, extremes over axes; positions of extremes; running sums and products.

In: one tensor.  Out: fewer elements (or, for running sums, as many).  f16 and bf16 are summed in f32 and rounded once.
"""
# mypy: disable-error-code="override, no-any-return"

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from jumar.base import Array, OpError, TensorType, bool_, dtype_of, f16, i8, i32, i64
from jumar.ir import Node, Result, Sample, f32t, sample, tensor
from jumar.operators.elementwise import And, Grads, cast, div, equal, mul, select
from jumar.operators.families import Reduction, Special, normal_axis, wide
from jumar.operators.movement import broadcast_to, reshape, transpose

SAMPLES = (
    sample(f32t(2, 5), axes=(1,)),
    sample(f32t(4, 3, 8), axes=(0, -1), keepdims=True),
    sample(f32t(2, 3)),
    sample(f32t()),
    sample(tensor(f16, 3, 9), axes=(-1,)),
    sample(tensor(i32, 3, 4), axes=(0,)),
    sample(f32t(2, 1, 3), axes=(1,)),
)
EMPTY = (sample(f32t(2, 0, 3), axes=(1,)), sample(tensor(i64, 0, 2), axes=(0,), keepdims=True))
BOOLS = (sample(tensor(bool_, 2, 5), axes=(1,)), sample(tensor(bool_, 3, 0), axes=(-1,)), sample(tensor(bool_, 2, 2)))


class Numeric(Reduction):
    """A reduction of numbers.   numpy: the function that is the reference; initial: what nothing at all reduces to."""

    abstract = True
    signature = "x[...] -> y[...]"
    samples: ClassVar[Sequence[Sample]] = (*SAMPLES, *EMPTY)
    numpy: ClassVar[Any] = None

    def reference(self, x: Array) -> Array:
        x = wide(x)
        result: Array = self.numpy(x, axis=self.over(x.ndim), keepdims=self.keepdims, **self.options(x))
        return result

    def options(self, x: Array) -> dict[str, Any]:
        """More arguments for the NumPy function."""
        return {"dtype": x.dtype}

    def spread(self, y: Node, x: Node) -> Node:
        """A result as large as x again."""
        kept = tuple(1 if i in self.over(x.rank) else d for i, d in enumerate(x.shape))
        return broadcast_to(reshape(y, kept), x.shape)


class ReduceSum(Numeric):
    """The sum; integers wrap."""

    numpy = staticmethod(np.sum)
    cann = "aclnnReduceSum"

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (self.spread(dy, x),)


class ReduceMean(Numeric):
    """The mean; of integers toward zero, of nothing NaN."""

    samples = (*SAMPLES, sample(f32t(2, 0, 3), axes=(1,)))
    cann = "aclnnMean"

    def reference(self, x: Array) -> Array:
        axes = self.over(x.ndim)
        count = math.prod(x.shape[a] for a in axes)
        total = np.sum(wide(x), axis=axes, keepdims=self.keepdims, dtype=None if dtype_of(x.dtype).is_float else np.int64)
        return np.asarray(total / count) if dtype_of(x.dtype).is_float else np.trunc(total / count).astype(x.dtype)

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        count = math.prod(x.shape[a] for a in self.over(x.rank))
        return (self.spread(mul(dy, 1 / count if count else math.nan), x),)


class ReduceProd(Numeric):
    """The product; integers wrap."""

    numpy = staticmethod(np.prod)
    cann = "aclnnProd"

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        """The product of all others, from both sides, so that zeros do no harm."""
        axes = self.over(x.rank)
        kept = tuple(i for i in range(x.rank) if i not in axes)
        order = (*kept, *axes)
        rows = reshape(transpose(x, order), (*(x.shape[i] for i in kept), math.prod(x.shape[i] for i in axes)))
        last = rows.rank - 1
        others = mul(CumProd(last, exclusive=True)(rows), CumProd(last, exclusive=True, reverse=True)(rows))
        others = transpose(reshape(others, tuple(x.shape[i] for i in order)), tuple(order.index(i) for i in range(x.rank)))
        return (mul(self.spread(dy, x), others),)


class ReduceMax(Numeric):
    """The largest; NaN where one is; of nothing the least number."""

    samples = (*SAMPLES, *EMPTY, sample(tensor(i8, 3, 3), axes=(0,)), sample(np.array([[1, np.nan], [2, 3]], np.float32), axes=(1,)))
    numpy = staticmethod(np.max)
    cann = "aclnnAmax"

    def options(self, x: Array) -> dict[str, Any]:
        return {"initial": lowest(x)}

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (_to_extremes(self, x, y, dy),)


class ReduceMin(Numeric):
    """The smallest; NaN where one is; of nothing the greatest number."""

    samples = (*SAMPLES, *EMPTY, sample(tensor(i8, 3, 3), axes=(0,)), sample(np.array([[1, np.nan], [2, 3]], np.float32), axes=(1,)))
    numpy = staticmethod(np.min)
    cann = "aclnnAmin"

    def options(self, x: Array) -> dict[str, Any]:
        return {"initial": highest(x)}

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (_to_extremes(self, x, y, dy),)


def lowest(x: Array) -> Any:
    """The least number of an array's element type: the neutral element of max."""
    return -np.inf if dtype_of(x.dtype).is_float else np.iinfo(x.dtype).min


def highest(x: Array) -> Any:
    """The greatest number of an array's element type: the neutral element of min."""
    return np.inf if dtype_of(x.dtype).is_float else np.iinfo(x.dtype).max


def _to_extremes(op: Numeric, x: Node, y: Node, dy: Node) -> Node:
    """The gradient in equal parts to the elements that are the extreme."""
    hits = equal(x, op.spread(y, x))
    counts = ReduceSum(op.axes, keepdims=op.keepdims)(cast(hits, x.dtype))
    return select(hits, op.spread(div(dy, counts), x), 0)


class ReduceAny(Reduction):
    """True where one is."""

    signature = "x[...] -> y[...]"
    samples = BOOLS
    cann = "aclnnAny"

    def reference(self, x: Array) -> Array:
        return np.any(x, axis=self.over(x.ndim), keepdims=self.keepdims)


class ReduceAll(Reduction):
    """True where all are."""

    signature = "x[...] -> y[...]"
    samples = BOOLS
    cann = "aclnnAll"

    def reference(self, x: Array) -> Array:
        return np.all(x, axis=self.over(x.ndim), keepdims=self.keepdims)


class ArgExtreme(Special):
    """Position of an extreme along `axis`: the first of equals, or the last; NaN is the extreme of all."""

    abstract = True
    axis: int = 0
    keepdims: bool = False
    select_last: bool = False
    signature = "x[...] -> y[...]"
    samples = (
        sample(f32t(2, 5), axis=1),
        sample(f32t(4, 3, 8), axis=-2, keepdims=True),
        sample(np.array([[1, 2, 2], [0, 0, 0]], np.float32), axis=1, select_last=True),
        sample(tensor(i8, 4, 3), axis=0),
        sample(np.array([1, np.nan, 3, np.nan], np.float32)),
        sample(tensor(f16, 7), axis=-1),
        sample(f32t(0, 3), axis=1),
    )
    numpy: ClassVar[Any] = None

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        axis = normal_axis(self.name, self.axis, x.rank)
        if x.shape[axis] == 0:
            raise OpError(f"{self.name}: dimension {axis} must have elements, got {x}", code="empty")
        middle = (1,) if self.keepdims else ()
        return TensorType((*x.shape[:axis], *middle, *x.shape[axis + 1 :]), i64)

    def reference(self, x: Array) -> Array:
        x = wide(x)
        if not self.select_last:
            return np.asarray(self.numpy(x, axis=self.axis, keepdims=self.keepdims))
        last = x.shape[self.axis] - 1
        return np.asarray(last - self.numpy(np.flip(x, self.axis), axis=self.axis, keepdims=self.keepdims))


class ArgMax(ArgExtreme):
    """Position of the largest along `axis`: the first of equals, or the last; NaN is the largest of all."""

    numpy = staticmethod(np.argmax)
    cann = "aclnnArgMax"


class ArgMin(ArgExtreme):
    """Position of the smallest along `axis`: the first of equals, or the last; NaN is the smallest of all."""

    numpy = staticmethod(np.argmin)
    cann = "aclnnArgMin"


class Running(Special):
    """All elements so far along `axis` as one.   exclusive: without the element itself; reverse: from the end."""

    abstract = True
    axis: int = 0
    exclusive: bool = False
    reverse: bool = False
    signature = "x[...] -> y[...]"
    samples = (
        sample(f32t(2, 5), axis=1),
        sample(f32t(4, 3), axis=0, exclusive=True),
        sample(f32t(2, 3, 2), axis=-2, reverse=True),
        sample(tensor(i32, 5), exclusive=True, reverse=True),
        sample(tensor(f16, 9)),
        sample(f32t(2, 0), axis=1),
        sample(f32t(1)),
    )
    numpy: ClassVar[Any] = None
    neutral: ClassVar[int] = 0

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        normal_axis(self.name, self.axis, x.rank)
        return x

    def reference(self, x: Array) -> Array:
        x = np.flip(wide(x), self.axis) if self.reverse else wide(x)
        y: Array = self.numpy(x, axis=self.axis, dtype=x.dtype)
        if self.exclusive:
            first = np.full_like(np.take(y, [0] if y.shape[self.axis] else [], self.axis), self.neutral)
            y = np.concatenate([first, np.take(y, range(y.shape[self.axis] - 1), self.axis)], self.axis)
        return np.flip(y, self.axis) if self.reverse else y


class CumSum(Running):
    """Running sum along `axis`.   exclusive: without the element itself; reverse: from the end."""

    numpy = staticmethod(np.cumsum)
    cann = "aclnnCumsum"

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        return (CumSum(self.axis, self.exclusive, not self.reverse)(dy),)


class CumProd(Running):
    """Running product along `axis`.   exclusive: without the element itself; reverse: from the end."""

    numpy = staticmethod(np.cumprod)
    neutral = 1
    cann = "aclnnCumprod"

    def grad(self, x: Node, y: Node, dy: Node) -> Grads:
        """The sum over later products, each over the element; the first zero takes part as a one, since what follows it is zero."""
        back = CumSum(self.axis, self.exclusive, not self.reverse)
        zero = equal(x, 0)
        first = And()(zero, equal(CumSum(self.axis, True, self.reverse)(cast(zero, x.dtype)), 0))
        without = CumProd(self.axis, self.exclusive, self.reverse)(select(first, 1, x))
        return (select(first, back(mul(dy, without)), div(back(mul(dy, y)), select(zero, 1, x))),)
