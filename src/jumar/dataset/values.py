"""From what a script returns to what a row holds: NumPy arrays, and Python dicts as they are.

In: numbers, texts, arrays, Tensors, PIL images, lists.  Out: arrays (rows of sources, results of map and batch).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from jumar.dataset.errors import DataFault, DataTypeFault
from jumar.frontend.dtype import Type, string


def to_value(value: Any, who: str) -> Any:
    """`value` as an array; a dict stays a dict (of arrays).

    >>> to_value([1, 2], "map").dtype.name, to_value("ab", "map").dtype.str, to_value(1.5, "map").shape
    ('int64', '<U2', ())
    """
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "O":
            raise DataTypeFault(f"{who}: a value must be numbers or texts, got an array of Python objects, shape {value.shape}")
        return value
    if isinstance(value, dict):
        return {k: to_value(v, who) for k, v in value.items()}
    if value is None:
        raise DataTypeFault(f"{who}: a value must be numbers, texts or a dict, got None")
    tensor = sys.modules.get("jumar.frontend.tensor")
    if tensor is not None and isinstance(value, tensor.Tensor):
        return np.asarray(value.asnumpy())
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise DataTypeFault(f"{who}: a list must have rows of one length, got {error}") from error
    if array.dtype.kind == "O":
        raise DataTypeFault(f"{who}: a value must be numbers, texts or a dict, got {type(value).__name__}")
    return array


def stack(values: list[Any], who: str, column: str) -> Any:
    """Values of one column as a batch."""
    first = values[0]
    if isinstance(first, dict):
        return {k: stack([v[k] for v in values], who, f"{column}[{k!r}]") for k in first}
    for v in values:
        if v.shape != first.shape:
            raise DataFault(
                f"{who}: rows of column {column!r} must have one shape, got {list(first.shape)} and {list(v.shape)}",
                hint="padded_batch pads them; Resize or Crop makes images alike",
            )
        if v.dtype != first.dtype and v.dtype.kind != first.dtype.kind:
            raise DataFault(f"{who}: rows of column {column!r} must have one type, got {first.dtype} and {v.dtype}")
        if v.dtype.itemsize != first.dtype.itemsize and v.dtype.kind not in "US":
            raise DataFault(f"{who}: rows of column {column!r} must have one type, got {first.dtype} and {v.dtype}")
    return np.stack(values)


def numpy_type(kind: Any) -> np.dtype[Any] | None:
    """A dtype of NumPy from one of the front end, of NumPy, or a name; `string` is text."""
    if kind is None:
        return None
    if isinstance(kind, Type):
        return np.dtype("U") if kind is string else kind.numpy
    text = str(getattr(kind, "name", kind)).lower().rsplit(".", 1)[-1]
    if text in ("string", "str", "bytes"):
        return np.dtype("U")
    try:
        return np.dtype(kind)  # type: ignore[no-any-return]
    except (TypeError, ValueError):
        return np.dtype({"bool_": "bool", "bool": "bool"}.get(text, text))
