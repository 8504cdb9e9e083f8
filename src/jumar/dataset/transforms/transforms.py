"""`dataset.transforms`: operations on any values, and ways to put operations together.

In: values of a row.  Out: arrays.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from jumar.dataset.enums import Relational
from jumar.dataset.errors import DataFault, DataTypeFault, DataValueFault, check_int, check_number
from jumar.dataset.transforms.base import Transform, check_prob, check_transforms, draws
from jumar.dataset.values import numpy_type, to_value

Array = np.ndarray[Any, np.dtype[Any]]


def _chain(transforms: list[Any], values: tuple[Any, ...]) -> Any:
    for one in transforms:
        result = one(*values)
        values = result if isinstance(result, tuple) else (result,)
    return values[0] if len(values) == 1 else values


class Compose(Transform):
    """Operations one after the other."""

    def __init__(self, transforms: list[Any]) -> None:
        self.transforms = check_transforms("Compose", transforms)

    def __call__(self, *values: Any) -> Any:
        return _chain(self.transforms, values)


class RandomApply(Transform):
    """All the operations, or none, with probability `prob`."""

    def __init__(self, transforms: list[Any], prob: float = 0.5) -> None:
        self.transforms, self.prob = check_transforms("RandomApply", transforms), check_prob("RandomApply", prob)

    def __call__(self, *values: Any) -> Any:
        if draws().random() < self.prob:
            return _chain(self.transforms, values)
        return values[0] if len(values) == 1 else values


class RandomChoice(Transform):
    """One of the operations."""

    def __init__(self, transforms: list[Any]) -> None:
        self.transforms = check_transforms("RandomChoice", transforms)

    def __call__(self, *values: Any) -> Any:
        return _chain([self.transforms[int(draws().integers(len(self.transforms)))]], values)


class RandomOrder(Transform):
    """All operations, in a random order."""

    def __init__(self, transforms: list[Any]) -> None:
        self.transforms = check_transforms("RandomOrder", transforms)

    def __call__(self, *values: Any) -> Any:
        return _chain([self.transforms[i] for i in draws().permutation(len(self.transforms))], values)


class Concatenate(Transform):
    """Vectors joined, with `prepend` before and `append` after."""

    def __init__(self, axis: int = 0, prepend: Any = None, append: Any = None) -> None:
        if axis not in (0, -1):
            raise DataValueFault(f"Concatenate: axis must be 0 or -1, got {axis!r}")
        self.prepend = None if prepend is None else np.asarray(prepend)
        self.append = None if append is None else np.asarray(append)

    def __call__(self, *values: Any) -> Any:
        parts = [p for p in (self.prepend, *(np.asarray(v) for v in values), self.append) if p is not None]
        if any(p.ndim != 1 for p in parts):
            raise DataFault(f"Concatenate: values must be vectors, got shapes {[p.shape for p in parts]}")
        return np.concatenate(parts)


class Duplicate(Transform):
    """A value twice, as two columns."""

    def __call__(self, *values: Any) -> Any:
        if len(values) != 1:
            raise DataTypeFault(f"Duplicate: must be called with one value, got {len(values)}")
        return values[0], np.array(values[0])


class Fill(Transform):
    """`fill_value` in each place."""

    def __init__(self, fill_value: Any) -> None:
        if not isinstance(fill_value, (str, bytes, float, bool, int)):
            raise DataTypeFault(f"Fill: fill_value must be a number or a text, got {type(fill_value).__name__}")
        self.fill_value = fill_value

    def apply(self, value: Any) -> Array:
        value = to_value(value, "Fill")
        if (value.dtype.kind in "US") != isinstance(self.fill_value, (str, bytes)):
            raise DataTypeFault(f"Fill: fill_value must be of the kind of the value, got {self.fill_value!r} for {value.dtype}")
        return np.full(value.shape, self.fill_value, None if value.dtype.kind in "US" else value.dtype)


class Mask(Transform):
    """Where a comparison with a constant is true."""

    def __init__(self, operator: Relational, constant: Any, dtype: Any = "bool") -> None:
        if not isinstance(operator, Relational):
            raise DataTypeFault(f"Mask: operator must be a Relational, got {operator!r}")
        self.compare = {
            Relational.EQ: np.equal, Relational.NE: np.not_equal, Relational.GT: np.greater,
            Relational.GE: np.greater_equal, Relational.LT: np.less, Relational.LE: np.less_equal,
        }[operator]  # fmt: skip
        if not isinstance(constant, (str, float, bool, int)):
            raise DataTypeFault(f"Mask: constant must be a number or a text, got {type(constant).__name__}")
        self.constant, self.dtype = constant, numpy_type(dtype)

    def apply(self, value: Any) -> Array:
        return np.asarray(self.compare(value, self.constant)).astype(self.dtype)


class OneHot(Transform):
    """Labels as vectors; `smoothing_rate` is spread over all classes.

    >>> OneHot(3)(np.array(1)).tolist()
    [0, 1, 0]
    """

    def __init__(self, num_classes: int, smoothing_rate: float = 0.0) -> None:
        self.num_classes = check_int("OneHot", "num_classes", num_classes, 1)
        self.smoothing_rate = check_number("OneHot", "smoothing_rate", smoothing_rate, 0.0, 1.0)

    def apply(self, value: Any) -> Array:
        labels = np.asarray(value)
        if labels.dtype.kind not in "iu":
            raise DataTypeFault(f"OneHot: label must be an integer, got {labels.dtype}")
        if labels.size and (labels.min() < 0 or labels.max() >= self.num_classes):
            raise DataValueFault(
                f"OneHot: label must be within [0, {self.num_classes}), got {labels.max() if labels.min() >= 0 else labels.min()}"
            )
        places = labels.reshape(-1) if labels.ndim < 2 else labels.reshape(labels.shape[0], -1)[:, 0]
        if self.smoothing_rate:
            out = np.full((len(places), self.num_classes), self.smoothing_rate / self.num_classes)
            out[np.arange(len(places)), places] = 1 - self.smoothing_rate + self.smoothing_rate / self.num_classes
        else:
            out = np.zeros((len(places), self.num_classes), labels.dtype)
            out[np.arange(len(places)), places] = 1
        return out[0] if labels.ndim == 0 or labels.shape == (1,) else out


class PadEnd(Transform):
    """Values with `pad_value` after their end, or cut, to `pad_shape`; None keeps a dimension."""

    def __init__(self, pad_shape: list[int | None], pad_value: Any = None) -> None:
        self.pad_shape = [None if n is None else check_int("PadEnd", "pad_shape", n, 0) for n in pad_shape]
        self.pad_value = pad_value

    def apply(self, value: Any) -> Array:
        value = to_value(value, "PadEnd")
        if value.ndim != len(self.pad_shape):
            raise DataFault(f"PadEnd: pad_shape must have {value.ndim} dimensions, got {self.pad_shape}")
        text = value.dtype.kind in "US"
        if self.pad_value is not None and text != isinstance(self.pad_value, (str, bytes)):
            raise DataTypeFault(f"PadEnd: pad_value must be of the kind of the value, got {self.pad_value!r} for {value.dtype}")
        shape = [n if n is not None else have for n, have in zip(self.pad_shape, value.shape)]
        fill = self.pad_value if self.pad_value is not None else ("" if text else 0)
        kind = np.result_type(value.dtype, np.asarray(fill).dtype) if text else value.dtype
        out = np.full(shape, fill, kind)
        part = tuple(builtins.slice(0, min(a, b)) for a, b in zip(shape, value.shape))
        out[part] = value[part]
        return out


class Plugin(Transform):
    """MindSpore's operations from a shared library of its own interface."""

    def __init__(self, lib_path: str, func_name: str, user_args: str | None = None) -> None:
        raise DataFault("Plugin: libraries of MindSpore's C++ interface are not supported", hint="map takes any Python function")


class Slice(Transform):
    """Parts of a value: an int, a list of ints, a slice, None or `...` for each dimension."""

    def __init__(self, *slices: Any) -> None:
        if not slices:
            raise DataTypeFault("Slice: must be given a part for a dimension, got none")
        for one in slices:
            if not (one is None or one is Ellipsis or isinstance(one, (int, list, builtins.slice))):
                raise DataTypeFault(f"Slice: a part must be an int, a list, a slice, None or ..., got {one!r}")
        self.slices = slices

    def apply(self, value: Any) -> Array:
        out = np.asarray(value)
        axis = 0
        for one in self.slices:
            if one is Ellipsis:
                axis = out.ndim - (len(self.slices) - 1 - self.slices.index(Ellipsis))
                continue
            if one is not None:
                chosen: Any = one if isinstance(one, builtins.slice) else np.atleast_1d(np.asarray(one))
                try:
                    out = out[(builtins.slice(None),) * axis + (chosen,)]
                except IndexError as error:
                    raise DataValueFault(f"Slice: a part must be inside of shape {np.shape(value)}, got {one!r}") from error
            axis += 1
        return np.array(out)


class TypeCast(Transform):
    """The value with another type."""

    def __init__(self, data_type: Any) -> None:
        try:
            self.data_type = numpy_type(data_type)
        except TypeError as error:
            raise DataTypeFault(f"TypeCast: data_type must be a dtype, got {data_type!r}") from error

    def apply(self, value: Any) -> Array:
        array = to_value(value, "TypeCast")
        if array.dtype.kind in "US" and self.data_type is not None and self.data_type.kind not in "US":
            raise DataTypeFault(f"TypeCast: value must be numbers, got texts {array.dtype}", hint="text.ToNumber reads numbers from texts")
        return np.asarray(array.astype(self.data_type))


class Unique(Transform):
    """(values that differ, sorted; where each place finds its own; how often each occurs)."""

    def __call__(self, *values: Any) -> Any:
        if len(values) != 1:
            raise DataTypeFault(f"Unique: must be called with one value, got {len(values)}")
        array = np.asarray(values[0]).reshape(-1)
        found, first, back, counts = np.unique(array, return_index=True, return_inverse=True, return_counts=True)
        order = np.argsort(first)  # in the order in which they appear
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return found[order], place[back].astype(np.int32), counts[order].astype(np.int32)
