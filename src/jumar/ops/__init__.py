"""`mindspore.ops`: the functions and primitives on tensors.

In: tensors, numbers and attributes under MindSpore's names and signatures.  Out: tensors, each by operators of floor 4 through `frontend.apply`.
One implementation for each meaning, by family files; `mint`, `numpy` and the methods of Tensor are tables over the same functions.
"""

from __future__ import annotations

from typing import Any

from jumar.frontend.tensor import Tensor, active
from jumar.ops import (
    activation,
    arithmetic,
    attention,
    convolution,
    creation,
    decompose,
    image,
    linalg,
    loss,
    methods,
    movement,
    normalization,
    ordering,
    places,
    pooling,
    random,
    reduction,
)
from jumar.ops.operands import lenient, missing, public

globals().update(public(arithmetic, movement, creation, reduction, ordering, places, linalg, activation, loss, convolution, pooling, image, normalization, random, attention, decompose))

cast = lenient(arithmetic.to_type)
median = lenient(ordering.median_pair)
scatter_add = places.scatter_rows_add
stop_gradient = arithmetic.stop_gradient
index_add = lenient(places.index_add_rows)
index_put = lenient(places.index_put)
_PRIVATE = ("annotations", "Any", "active", "public", "missing", "lenient")
__all__ = [n for n in sorted(globals()) if not n.startswith("_") and n not in _PRIVATE]


def __getattr__(name: str) -> Any:
    raise missing("ops", name, __all__)
