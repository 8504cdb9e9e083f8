"""What is not arithmetic: shapes and types as values, assignment, order of effects, numbers among tensors.

In: tensors, parameters, numbers.  Out: tensors, numbers, or the parameter that was written.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from jumar import operators as o
from jumar.frontend import dtype as types
from jumar.frontend.recorder import is_capturing
from jumar.frontend.tensor import LOCAL
from jumar.ops import arithmetic as a
from jumar.ops import movement as s
from jumar.ops.creation import made
from jumar.ops.operands import Tensor, apply, as_tensor, as_type, cast, constant, ints, numpy_dtype
from jumar.ops.places import places


def shape(input_x: Any) -> tuple[int, ...]:
    """The shape, as numbers."""
    return as_tensor(input_x).shape


def dyn_shape(input_x: Any) -> Tensor:
    """The shape, as a tensor of int64."""
    return made(np.array(as_tensor(input_x).shape, np.int64))


def rank(input_x: Any) -> int:
    """How many dimensions."""
    return as_tensor(input_x).ndim


def size(input_x: Any) -> int:
    """How many elements."""
    return as_tensor(input_x).size


def dtype(x: Any) -> Any:
    """The element type."""
    return as_tensor(x).dtype


def is_tensor(obj: Any) -> bool:
    """Whether it is a Tensor."""
    return isinstance(obj, Tensor)


def typeof(x: Any) -> Any:
    """The type."""
    return x.dtype if isinstance(x, Tensor) else type(x)


def select(condition: Any, input: Any, other: Any) -> Tensor:
    """input where the condition holds, else other."""
    return a.where(condition, input, other)


def type_as(input: Any, other: Any) -> Tensor:
    """The tensor in another's element type."""
    return cast(as_tensor(input), other.dtype)


def view_as(input: Tensor, other: Tensor) -> Tensor:
    """The elements under another tensor's shape."""
    return s.reshape(input, other.shape)


def deepcopy(input_x: Any) -> Tensor:
    """A tensor of its own with the same elements."""
    return s.copy(input_x)


def partial(function: Any, *args: Any) -> Any:
    """The function with its first arguments given."""
    return functools.partial(function, *args)


# ---------------------------------------------------------------------------------------------------------- assignment
def _assigned(variable: Tensor, new: Any) -> Tensor:
    value = as_tensor(new)
    if value.shape != variable.shape:
        if value.size != variable.size:
            raise ValueError(f"assign: value must have the shape {variable.shape}, got {value.shape}")
        value = s.reshape(value, variable.shape)
    variable._write(cast(value, numpy_dtype(variable)))
    return variable


def assign(variable: Tensor, value: Any) -> Tensor:
    """Writes the value into the parameter."""
    return _assigned(variable, value)


def assign_add(variable: Tensor, value: Any) -> Tensor:
    """Adds the value to the parameter."""
    return _assigned(variable, a.add(variable, value))


def assign_sub(variable: Tensor, value: Any) -> Tensor:
    """Takes the value away from the parameter."""
    return _assigned(variable, a.sub(variable, value))


def inplace_update(x: Any, v: Any, indices: Any) -> Tensor:
    """x with v as its rows at the indices."""
    return s.copy(_row_scatter(x, v, indices, "none"))


def inplace_add(x: Any, v: Any, indices: Any) -> Tensor:
    """x with v added to its rows at the indices."""
    return _row_scatter(x, v, indices, "add")


def inplace_sub(x: Any, v: Any, indices: Any) -> Tensor:
    """x with v taken away from its rows at the indices."""
    return _row_scatter(x, a.neg(as_tensor(v)), indices, "add")


def _row_scatter(x: Any, v: Any, indices: Any, reduction: str) -> Tensor:
    tensor = as_tensor(x)
    index = constant(np.array(ints(indices), np.int64)) if not isinstance(indices, Tensor) else places(indices)
    index = s.reshape(index, (-1, 1))
    new = s.reshape(cast(as_tensor(v), numpy_dtype(tensor)), (index.shape[0], *tensor.shape[1:]))
    return apply(o.ScatterNd(reduction), tensor, index, new)  # type: ignore[no-any-return]


# -------------------------------------------------------------------------------------------------------------- order
def depend(value: Any, expr: Any) -> Any:
    """The value, after the expression: Python's order is the order."""
    return value


def print_(*input_x: Any) -> None:
    """Prints."""
    if LOCAL.recorder is not None and is_capturing():
        LOCAL.recorder.effect("prints")
    print(*input_x)  # noqa: T201  (that is what the function is for)


def move_to(input: Tensor, to: str = "CPU", blocking: bool = True) -> Tensor:
    """The tensor on another device: there is one."""
    return input


# --------------------------------------------------------------------------------------------------------------- sums
def addn(x: Any) -> Tensor:
    """The sum of tensors of one shape."""
    total, *rest = x if isinstance(x, tuple | list) else (x,)
    total = as_tensor(total)
    for t in rest:
        total = a.add(total, t)
    return total


def accumulate_n(x: Any) -> Tensor:
    """The sum of tensors of one shape."""
    return addn(x)


def strided_slice(
    input_x: Any, begin: Any, end: Any, strides: Any, begin_mask: int = 0, end_mask: int = 0, ellipsis_mask: int = 0, new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Tensor:  # fmt: skip
    """x[begin:end:strides], where bits of the masks make a bound open, an ellipsis, a new axis, or an int of a place."""
    from jumar.ops.indexing import getitem  # noqa: PLC0415

    index: list[Any] = []
    for i, (first, last, step) in enumerate(zip(ints(begin), ints(end), ints(strides), strict=True)):
        bit = 1 << i
        if ellipsis_mask & bit:
            index.append(Ellipsis)
        elif new_axis_mask & bit:
            index.append(None)
        elif shrink_axis_mask & bit:
            index.append(first)
        else:
            index.append(slice(None if begin_mask & bit else first, None if end_mask & bit else last, step))
    return getitem(as_tensor(input_x), tuple(index))


def slice_(input_x: Any, begin: Any, size: Any) -> Tensor:
    """A part that starts at `begin` and has a size, -1 for all that is left."""
    x = as_tensor(input_x)
    for axis, (first, count) in enumerate(zip(ints(begin), ints(size), strict=True)):
        last = x.shape[axis] if count == -1 else first + count
        if first < 0 or last > x.shape[axis]:
            raise ValueError(f"slice: begin and size must lie within {x.shape}, got {begin} and {size}")
        x = s.part(x, axis, first, last)
    return x


def reverse_sequence(x: Any, seq_lengths: Any, seq_dim: int, batch_dim: int = 0) -> Tensor:
    """The first `length` elements of each sequence backwards."""
    tensor, lengths = as_tensor(x), cast(as_tensor(seq_lengths), np.dtype(np.int64))
    steps = np.arange(tensor.shape[seq_dim])
    rows = s.unsqueeze(lengths, 1)
    index = a.where(a.less(constant(steps), rows), a.sub(a.sub(rows, 1), constant(steps)), constant(steps))  # [batch, sequence]
    index = index if batch_dim < seq_dim else s.transpose(index)
    shape_ = tuple(d if i in (seq_dim, batch_dim) else 1 for i, d in enumerate(tensor.shape))
    return apply(o.GatherElements(seq_dim), tensor, s.broadcast_to(s.reshape(index, shape_), tensor.shape))  # type: ignore[no-any-return]


def matrix_band_part(x: Any, lower: Any, upper: Any) -> Tensor:
    """The matrices with zeros outside of a band; a negative number keeps a whole triangle."""
    tensor = as_tensor(x)
    rows, columns = tensor.shape[-2:]
    low, high = int(lower), int(upper)
    i, j = np.indices((rows, columns))
    keep = ((i - j <= low) | (low < 0)) & ((j - i <= high) | (high < 0))
    return apply(o.Select(), constant(keep), tensor, constant(np.zeros((), numpy_dtype(tensor))))  # type: ignore[no-any-return]


# ------------------------------------------------------------------------------------------------------------- numbers
def scalar_add(x: Any, y: Any) -> Any:
    """x + y of numbers."""
    return x + y


def scalar_sub(x: Any, y: Any) -> Any:
    """x - y of numbers."""
    return x - y


def scalar_mul(x: Any, y: Any) -> Any:
    """x y of numbers."""
    return x * y


def scalar_div(x: Any, y: Any) -> Any:
    """x / y of numbers."""
    return x / y


def scalar_floordiv(x: Any, y: Any) -> Any:
    """x // y of numbers."""
    return x // y


def scalar_mod(x: Any, y: Any) -> Any:
    """x % y of numbers."""
    return x % y


def scalar_pow(x: Any, y: Any) -> Any:
    """x ** y of numbers."""
    return x**y


def scalar_log(x: Any) -> Any:
    """log of a number."""
    return math.log(x)


def scalar_eq(x: Any, y: Any) -> bool:
    """x == y of numbers."""
    return bool(x == y)


def scalar_lt(x: Any, y: Any) -> bool:
    """x < y of numbers."""
    return bool(x < y)


def scalar_gt(x: Any, y: Any) -> bool:
    """x > y of numbers."""
    return bool(x > y)


def scalar_cast(input_x: Any, input_y: Any) -> Any:
    """A number of another type."""
    kind = as_type(input_y).kind
    return {"Int": int, "UInt": int, "Float": float, "Bool": bool}[kind](input_x)


def make_tuple(*items: Any) -> tuple[Any, ...]:
    """The items as a tuple."""
    return items


def tuple_len(items: Any) -> int:
    """How many items."""
    return len(items)


def tuple_getitem(items: Any, index: int) -> Any:
    """One item."""
    return items[index]


def float_status(x: Any) -> Tensor:
    """[1.0] where an element is infinite or NaN, else [0.0]."""
    from jumar.ops.reduction import all as all_of  # noqa: PLC0415

    return s.reshape(cast(a.logical_not(all_of(a.isfinite(x))), types.float32), (1,))


isinstance_ = isinstance
numel, tensor_slice, scalar_to_array = size, slice_, made

__all__ = [
    "accumulate_n", "addn", "assign", "assign_add", "assign_sub", "deepcopy", "depend", "dtype", "dyn_shape", "inplace_add", "inplace_sub",
    "inplace_update", "is_tensor", "make_tuple", "matrix_band_part", "move_to", "numel", "partial", "print_", "rank", "reverse_sequence",
    "scalar_add", "scalar_cast", "scalar_div", "scalar_eq", "scalar_floordiv", "scalar_gt", "scalar_log", "scalar_lt", "scalar_mod",
    "scalar_mul", "scalar_pow", "scalar_sub", "select", "shape", "size", "strided_slice", "tensor_slice", "tuple_getitem", "tuple_len", "type_as",
    "typeof", "view_as",
]  # fmt: skip
