"""Functions that make tensors from numbers: zeros, ones, full, arange, linspace, eye and their kin.

In: shapes and numbers.  Out: tensors; in a capture nodes of the graph, not inputs.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from jumar import operators as o
from jumar.frontend import dtype as types
from jumar.frontend.dtype import Type, of_numpy
from jumar.ops import movement as s
from jumar.ops.arithmetic import add, mul
from jumar.ops.operands import Array, Tensor, apply, as_tensor, as_type, cast, constant, eager, ints, numpy_dtype, scalar, sizes, wrap


def made(array: Array) -> Tensor:
    """A tensor over a fresh array; in a capture a constant of the graph."""
    return wrap(array) if eager() else apply(o.Identity(), constant(array))


def filled(shape: tuple[int, ...], value: Any, dtype: np.dtype[Any]) -> Tensor:
    """One number everywhere."""
    if any(d < 0 for d in shape):
        raise ValueError(f"size: dimensions must be 0 or more, got {shape}")
    if eager():
        return wrap(np.full(shape, value, dtype) if value else np.zeros(shape, dtype))
    return apply(o.Broadcast(shape), scalar(value, dtype))  # type: ignore[no-any-return]


def zeros(*size: Any, dtype: Any = None) -> Tensor:
    """Zeros; float32 where no type is given."""
    size, dtype = _typed(size, dtype)
    return filled(size, 0, as_type(dtype or types.float32).numpy)


def ones(*size: Any, dtype: Any = None) -> Tensor:
    """Ones; float32 where no type is given."""
    size, dtype = _typed(size, dtype)
    return filled(size, 1, as_type(dtype or types.float32).numpy)


def empty(*size: Any, dtype: Any = None, device: Any = None, pin_memory: bool = False) -> Tensor:
    """Room for a tensor, filled with zeros."""
    return zeros(*size, dtype=dtype)


def _typed(size: tuple[Any, ...], dtype: Any) -> tuple[tuple[int, ...], Any]:
    """Size and element type, which may be the second positional argument."""
    if len(size) > 1 and not isinstance(size[-1], int | np.integer | Tensor):
        size, dtype = size[:-1], size[-1] if size[-1] is not None else dtype
    return sizes(*size), dtype


def full(size: Any, fill_value: Any, *, dtype: Any = None) -> Tensor:
    """One number everywhere, in its own type where none is given."""
    if isinstance(fill_value, Tensor):
        wanted = cast(fill_value, as_type(dtype)) if dtype is not None else fill_value
        return s.copy(s.broadcast_to(s.reshape(wanted, ()), ints(size)))
    return filled(ints(size), fill_value, as_type(type(fill_value) if dtype is None else dtype).numpy)


def fill(type: Any, shape: Any, value: Any) -> Tensor:
    """One number everywhere."""
    return full(shape, value, dtype=type)


def zeros_like(input: Any, *, dtype: Any = None) -> Tensor:
    """Zeros of the tensor's shape and type."""
    return _like(input, 0, dtype)


def ones_like(input: Any, *, dtype: Any = None) -> Tensor:
    """Ones of the tensor's shape and type."""
    return _like(input, 1, dtype)


def full_like(input: Any, fill_value: Any, *, dtype: Any = None) -> Tensor:
    """One number everywhere, in the tensor's shape and type."""
    if isinstance(fill_value, Tensor):
        x = as_tensor(input)
        return full(x.shape, fill_value, dtype=x.dtype if dtype is None else dtype)
    return _like(input, fill_value, dtype)


def empty_like(input: Any, *, dtype: Any = None, device: Any = None, pin_memory: bool = False) -> Tensor:
    """Room for a tensor like this one, filled with zeros."""
    return _like(input, 0, dtype)


def _like(input: Any, value: Any, dtype: Any) -> Tensor:
    x = as_tensor(input)
    return filled(x.shape, value, numpy_dtype(x) if dtype is None else as_type(dtype).numpy)


def arange(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None) -> Tensor:
    """From start to before end by step: int64 for ints, float32 for floats, where no type is given."""
    if end is None:
        start, end = 0, start
    first, last, by = (_number(v) for v in (start, end, step))
    if by == 0:
        raise ValueError("arange: step must not be 0")
    wanted = as_type(dtype) if dtype is not None else _common((start, end, step))
    count = max(0, math.ceil((last - first) / by))
    if eager():
        values = first + np.arange(count) * by if wanted.kind in ("Int", "UInt") else first + np.arange(count, dtype=np.float64) * by
        return wrap(np.asarray(values).astype(wanted.numpy))
    whole = all(isinstance(v, int) for v in (first, by))
    assert wanted.dtype is not None, "arange has a type of numbers"
    if whole and wanted.kind in ("Int", "UInt"):
        at: Tensor = apply(o.Iota((count,), 0, wanted.dtype))
        return add(at if by == 1 else mul(at, by), first) if first else at if by == 1 else mul(at, by)
    return made((first + np.arange(count, dtype=np.float64) * by).astype(wanted.numpy))


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor | np.generic | np.ndarray) else value


def _common(values: tuple[Any, ...]) -> Type:
    """The type of a sequence between such numbers."""
    kinds = [v.dtype if isinstance(v, Tensor) else of_numpy(v.dtype) if isinstance(v, np.generic) else as_type(type(v)) for v in values]
    given = [k for k, v in zip(kinds, values, strict=True) if isinstance(v, Tensor | np.generic)]
    if any(k.is_floating_point for k in kinds):
        return next((k for k in given if k.is_floating_point), types.float32)
    return given[0] if given else types.int64


def linspace(start: Any, end: Any, steps: Any, *, dtype: Any = None) -> Tensor:
    """So many numbers from start to end, both of them in, at equal distances."""
    wanted = types.float32 if dtype is None else as_type(dtype)
    count = int(steps)
    if isinstance(start, Tensor | np.ndarray) or isinstance(end, Tensor):
        first, last = as_tensor(start), as_tensor(end)
        if first.ndim or last.ndim:
            raise ValueError(f"linspace: start and end must be numbers, got shapes {first.shape} and {last.shape}")
        if dtype is None and first.dtype.is_floating_point:
            wanted = first.dtype
        start, end = first.item(), last.item()
    return made(np.linspace(start, end, count).astype(wanted.numpy))


def logspace(start: Any, end: Any, steps: int, base: int = 10, *, dtype: Any = types.float32) -> Tensor:
    """base to the power of `linspace`."""
    return made(np.logspace(_number(start), _number(end), int(steps), base=base).astype(as_type(dtype).numpy))


def eye(n: int, m: int | None = None, dtype: Any = None) -> Tensor:
    """Ones on the diagonal of a matrix, zeros elsewhere."""
    return made(np.eye(n, m, dtype=as_type(dtype or types.float32).numpy))


def meshgrid(*inputs: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Coordinates of a grid, one tensor for each dimension.   indexing: "xy" (the first two change places) or "ij"."""
    if len(inputs) == 1 and isinstance(inputs[0], tuple | list):
        inputs = tuple(inputs[0])
    indexing = indexing or "xy"
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    vectors = [s.reshape(x, (-1,)) for x in inputs]
    rank = len(vectors)
    order = list(builtins.range(rank))
    if indexing == "xy" and rank > 1:
        order[:2] = [1, 0]
    shape = [0] * rank
    for i, v in enumerate(vectors):
        shape[order[i]] = v.shape[0]
    return tuple(
        s.copy(s.broadcast_to(s.reshape(v, tuple(v.shape[0] if j == order[i] else 1 for j in builtins.range(rank))), shape))
        for i, v in enumerate(vectors)
    )


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = types.int64) -> Tensor:
    """Rows and columns of the lower triangle's elements."""
    return made(np.array(np.tril_indices(row, offset, col)).astype(as_type(dtype).numpy))


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = types.int64) -> Tensor:
    """Rows and columns of the upper triangle's elements."""
    return made(np.array(np.triu_indices(row, offset, col)).astype(as_type(dtype).numpy))


def _window(values: Array, window_length: int, periodic: bool, dtype: Any, default: Type = types.float32) -> Tensor:
    return made((values[:-1] if periodic and window_length > 1 else values).astype(as_type(dtype or default).numpy))


def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = None) -> Tensor:
    """The Hamming window."""
    n = window_length + (periodic and window_length > 1)
    values = alpha - beta * np.cos(2 * np.pi * np.arange(n) / max(n - 1, 1)) if n > 1 else np.ones(n)
    return _window(values, window_length, periodic, dtype)


def hann_window(window_length: int, periodic: bool = True, *, dtype: Any = None) -> Tensor:
    """The Hann window."""
    return _window(np.hanning(window_length + (periodic and window_length > 1)), window_length, periodic, dtype, types.float64)


def bartlett_window(window_length: int, periodic: bool = True, *, dtype: Any = None) -> Tensor:
    """The Bartlett window."""
    return _window(np.bartlett(window_length + (periodic and window_length > 1)), window_length, periodic, dtype)


def blackman_window(window_length: int, periodic: bool = True, *, dtype: Any = None) -> Tensor:
    """The Blackman window."""
    return _window(np.blackman(window_length + (periodic and window_length > 1)), window_length, periodic, dtype)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None) -> Tensor:
    """The Kaiser window."""
    return _window(np.kaiser(window_length + (periodic and window_length > 1), beta), window_length, periodic, dtype, types.float64)


def scalar_to_tensor(input_x: Any, dtype: Any = types.float32) -> Tensor:
    """A number as a tensor of no dimension."""
    return made(np.array(input_x, as_type(dtype).numpy))


def tuple_to_array(input_x: Any) -> Tensor:
    """A tuple of numbers as a vector."""
    values = as_tensor(list(input_x)).array
    return made(values.astype(np.int32) if values.dtype == np.int64 else values)


range = arange

__all__ = [
    "arange", "bartlett_window", "blackman_window", "empty", "empty_like", "eye", "fill", "full", "full_like", "hamming_window", "hann_window",
    "kaiser_window", "linspace", "logspace", "meshgrid", "ones", "ones_like", "range", "scalar_to_tensor", "tril_indices", "triu_indices",
    "tuple_to_array", "zeros", "zeros_like",
]  # fmt: skip
