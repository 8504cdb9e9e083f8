"""Families: what operators of one kind share, so that a new one is a few lines and fuses on its first day.

In: `Op` from ir.  Out: the bases that every definition of this room extends.  Fusion, layout and NPU unit follow from the
FAMILY; a pass asks `isinstance(op, Elementwise)`, never for a list of names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jumar.base import Array, Dim, DType, OpError, TensorType, dtype_of, nearest
from jumar.ir import Node, Op, Result

if TYPE_CHECKING:
    from jumar.kernel import Builder, Value


class Elementwise(Op):
    """Result element i depends on element i of each input; inputs broadcast as in NumPy and share one element type.

    result: element type of the result where it is not that of the inputs (comparisons give bool).
    `grad` of an elementwise operator returns gradients of the RESULT's shape: autodiff sums them over what was broadcast.
    """

    abstract = True
    family = "elementwise"
    result: ClassVar[DType | None] = None

    def infer(self, *types: TensorType) -> Result:
        self.check_same_dtype(types)
        return TensorType(broadcast(self.name, *(t.shape for t in types)), self.result or types[-1].dtype)

    def check_same_dtype(self, types: Sequence[TensorType]) -> None:
        if any(t.dtype != types[0].dtype for t in types):
            raise OpError(f"{self.name}: inputs must have one element type, got {', '.join(map(str, types))}", code="dtype-mismatch")

    def compute(self, k: Builder, *x: Value) -> Value:
        """Emits the operator on registers: values of equal lanes in the compute type (f32 for f16 and bf16)."""
        raise OpError(f"{self.name}: compute must be defined to run on the CPU", code="definition-missing")


class Reduction(Op):
    """One result over `axes` (empty: all of them).   keepdims: reduced dimensions stay as 1."""

    abstract = True
    family = "reduction"
    axes: tuple[int, ...] = ()
    keepdims: bool = False
    result: ClassVar[DType | None] = None

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        axes = self.over(x.rank)
        shape = [1 if i in axes else d for i, d in enumerate(x.shape) if self.keepdims or i not in axes]
        return TensorType(tuple(shape), self.result or x.dtype)

    def over(self, rank: int) -> tuple[int, ...]:
        """The axes as sorted, non-negative numbers."""
        return normal_axes(self.name, self.axes, rank) if self.axes else tuple(range(rank))


class Contraction(Op):
    """Sums of products: matrix products and convolutions.  Their work is counted in flops."""

    abstract = True
    family = "contraction"

    def flops(self, *types: TensorType) -> int:
        """Floating-point operations: two for each multiply-add."""
        raise OpError(f"{self.name}: flops must be defined", code="definition-missing")


class Movement(Op):
    """Moves elements without computing on them."""

    abstract = True
    family = "movement"


class Composite(Op):
    """An operator with a name of its own that simpler ones can express by `decompose`."""

    abstract = True
    family = "composite"

    def decompose(self, *inputs: Node) -> Node | tuple[Node, ...]:
        """The same in simpler operators, for targets that lack this one."""
        raise OpError(f"{self.name}: decompose must be defined", code="definition-missing")


class Source(Op):
    """Makes a value from attributes alone."""

    abstract = True
    family = "source"


class Special(Op):
    """Sorting, sampling, searching: neither of the other families; runs by its own schedule or on the host."""

    abstract = True
    family = "special"


def broadcast(name: str, *shapes: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """The shape to which NumPy broadcasting brings all shapes.

    >>> broadcast("add", (2, 1), (3,))
    (2, 3)
    """
    rank = max((len(s) for s in shapes), default=0)
    result: list[Dim] = []
    for axis in range(rank):
        sizes = {s[axis - rank + len(s)] for s in shapes if axis - rank + len(s) >= 0} - {1}
        if len(sizes) > 1:
            shown = " and ".join(str(list(s)) for s in shapes)
            raise OpError(f"{name}: shapes must broadcast, got {shown}", code="broadcast")
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def normal_axes(name: str, axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Axes as sorted non-negative numbers; an axis out of range or named twice is an error."""
    found = sorted(a + rank if a < 0 else a for a in axes)
    if any(not 0 <= a < rank for a in found) or len(set(found)) != len(found):
        raise OpError(f"{name}: axes must be distinct and within -{rank}..{rank - 1}, got {tuple(axes)}", code="axis-range")
    return tuple(found)


def normal_axis(name: str, axis: int, rank: int) -> int:
    """One axis as a non-negative number."""
    return normal_axes(name, (axis,), rank)[0]


def check_word(name: str, word: str, known: Sequence[str]) -> None:
    """Refuses an attribute that is none of the words that it may be."""
    if word not in known:
        raise OpError(
            f"{name}: attribute must be one of {', '.join(map(repr, known))}, got {word!r}",
            hint=nearest(word, list(known)),
            code="attribute",
        )


def wide(x: Array) -> Array:
    """The array in the type that references and kernels compute in: floats of 16 bits and less as f32, the rest as it is."""
    dtype = dtype_of(x.dtype)
    return x.astype(np.float32) if dtype.is_float and dtype.bits < 32 else x


def numel(shape: Sequence[Any]) -> int:
    """Number of elements of a shape."""
    return math.prod(shape)
