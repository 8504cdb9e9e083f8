"""Slicing, squeezing and joining along an axis, for rules of sequences and loops.

In: values, known or traced.  Out: the same kind: known stays known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jumar.frontend.importers.onnx.trace import Trace
from jumar.frontend.importers.onnx.value import Known
from jumar.operators import Concat, Reshape, Slice


def slice_axis(t: Trace, x: Any, axis: int, start: int, stop: int) -> Any:
    """Elements start..stop of one axis."""
    if isinstance(x, Known):
        return Known(x.array[(slice(None),) * axis + (slice(start, stop),)])
    node = t.node(x)
    starts = tuple(start if i == axis else 0 for i in range(node.rank))
    stops = tuple(stop if i == axis else d for i, d in enumerate(node.shape))
    return t.value(Slice(starts, stops, (1,) * node.rank)(node), eager=False)


def reshape(t: Trace, x: Any, shape: tuple[int, ...]) -> Any:
    """The value in another shape of as many elements."""
    if isinstance(x, Known):
        return Known(x.array.reshape(shape))
    return t.value(Reshape(shape)(t.node(x)), eager=False)


def squeeze_axis(t: Trace, x: Any, axis: int) -> Any:
    """The value without an axis of size 1."""
    return reshape(t, x, x.shape[:axis] + x.shape[axis + 1 :])


def unsqueeze_axis(t: Trace, x: Any, axis: int) -> Any:
    """The value with a new axis of size 1."""
    return reshape(t, x, (*x.shape[:axis], 1, *x.shape[axis:]))


def concat(t: Trace, parts: Sequence[Any], axis: int) -> Any:
    """The parts along an axis."""
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(p, Known) for p in parts):
        return Known(np.concatenate([p.array for p in parts], axis))
    return t.value(Concat(axis)(*(t.node(p) for p in parts)), eager=False)


def stack(t: Trace, parts: Sequence[Any], axis: int) -> Any:
    """The parts along a new axis."""
    return concat(t, [unsqueeze_axis(t, p, axis) for p in parts], axis)
