"""Values that flow through a trace: known arrays, traced nodes, and lists of them.

In: results of rules (nodes, arrays, numbers, tuples).  Out: `Value`, which rules receive as inputs; used by trace.py and evaluator.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jumar.base import Array, DType, TensorType, type_of

if TYPE_CHECKING:
    from jumar.ir import Node


@dataclass(frozen=True, eq=False, slots=True)
class Known:
    """A value that is there while tracing: a weight, a constant, a size, a string."""

    array: Array

    @property
    def type(self) -> TensorType:
        return type_of(self.array)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def rank(self) -> int:
        return self.array.ndim

    @property
    def dtype(self) -> DType:
        return self.type.dtype


@dataclass(frozen=True, eq=False, slots=True)
class Traced:
    """A value that the compiled graph will compute."""

    node: Node

    @property
    def type(self) -> TensorType:
        type_: TensorType = self.node.type
        return type_

    @property
    def shape(self) -> tuple[int, ...]:
        return self.node.shape

    @property
    def rank(self) -> int:
        return self.node.rank

    @property
    def dtype(self) -> DType:
        dtype: DType = self.node.type.dtype
        return dtype


Tensor = Known | Traced
Value = Known | Traced | list[Any] | None  # a list is a sequence of values; None an absent or empty optional


def leaves(value: Value) -> Iterator[Tensor]:
    """The tensors of a value, in order."""
    match value:
        case Known() | Traced():
            yield value
        case list():
            for item in value:
                yield from leaves(item)


def as_array(value: Any) -> Array:
    """An array of a Python or NumPy value; texts become arrays of objects, as ONNX strings are."""
    array = np.asarray(value)
    return array.astype(object) if array.dtype.kind in "UST" else array
