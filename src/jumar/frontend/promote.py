"""Type promotion as MindSpore has it: which element type two operands meet in, and numbers among tensors.

In: Tensors and Python numbers.  Out: Tensors of one element type, ready for an elementwise operator.
A number takes the tensor's type, unless it is of a higher kind: bool < int < float < complex (int32 + 1.5 is float32, float16 * 2.5 stays float16).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

from jumar.frontend.dtype import Type, as_type, of_numpy
from jumar.frontend.engine import apply
from jumar.frontend.tensor import LOCAL, Tensor, as_array, scalar, wrap
from jumar.operators import Cast

_BF16 = np.dtype(ml_dtypes.bfloat16)
_F32, _F64, _I64 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64)


@lru_cache(maxsize=4096)
def joined(a: np.dtype[Any], b: np.dtype[Any]) -> np.dtype[Any]:
    """The element type in which two tensors meet.

    >>> joined(np.dtype(np.float16), np.dtype(np.float32)), joined(np.dtype(np.int8), np.dtype(np.uint8))
    (dtype('float32'), dtype('int16'))
    """
    if a == b:
        return a
    float_a, float_b = _is_float(a), _is_float(b)
    if float_a and float_b:
        if _BF16 in (a, b) and np.dtype(np.float16) in (a, b):
            return _F32
        return a if a.itemsize > b.itemsize else b
    if float_a or float_b:
        if "c" in (a.kind, b.kind):
            return np.promote_types(a if a != _BF16 else _F32, b if b != _BF16 else _F32)
        return a if float_a else b
    if {a.kind, b.kind} == {"i", "u"} and np.dtype(np.uint64) in (a, b):
        return _F32
    return np.promote_types(a, b)


@lru_cache(maxsize=4096)
def with_number(dtype: np.dtype[Any], kind: type) -> np.dtype[Any]:
    """The element type of a tensor's result with a Python number."""
    if kind is bool:
        return dtype
    if kind is int:
        return _I64 if dtype.kind == "b" else dtype
    if kind is float:
        return dtype if _is_float(dtype) or dtype.kind == "c" else _F32
    return dtype if dtype.kind == "c" else np.dtype(np.complex128 if dtype == _F64 else np.complex64)


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or dtype == _BF16 or (dtype.kind == "V" and "float" in dtype.name)


def numpy_dtype(x: Tensor) -> np.dtype[Any]:
    """The NumPy type of a tensor's elements, without computing it."""
    try:
        value = x._value
    except AttributeError:
        raise TypeError(f"input must be a Tensor, got {type(x).__name__}") from None
    return value.dtype if value is not None else x._node.type.dtype.numpy  # type: ignore[union-attr]


def cast(x: Tensor, dtype: Any) -> Tensor:
    """The tensor in another element type; itself where it has that already."""
    wanted = dtype if isinstance(dtype, np.dtype) else as_type(dtype).numpy
    own = numpy_dtype(x)
    if own == wanted:
        return x
    if LOCAL.recorder is None and _widens(own, wanted):
        return wrap(x.array.astype(wanted))
    result: Tensor = apply(Cast(of_numpy(wanted).dtype, saturate=False), x)  # type: ignore[arg-type]
    return result


@lru_cache(maxsize=4096)
def _widens(own: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whether NumPy's own conversion is the operator's: of numbers that neither overflow nor saturate."""
    if wanted.kind in "iu":
        return own.kind in "biu"
    return wanted in (_F32, _F64) and own.kind in "biuf" and (own.kind != "f" or own.itemsize <= wanted.itemsize)


def as_tensor(x: Any, dtype: Type | None = None) -> Tensor:
    """A tensor of whatever users give for one."""
    if isinstance(x, Tensor):
        return x if dtype is None else cast(x, dtype)
    if isinstance(x, bool | int | float):
        return scalar(x, of_numpy(np.dtype(as_type(type(x)).numpy)).numpy if dtype is None else dtype.numpy)
    return wrap(as_array(x, dtype))


def operands(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """Both as tensors of the element type in which they meet."""
    if isinstance(a, Tensor):
        type_a = numpy_dtype(a)
        if isinstance(b, Tensor):
            type_b = numpy_dtype(b)
            if type_a == type_b:
                return a, b
            meet = joined(type_a, type_b)
            return cast(a, meet), cast(b, meet)
        if isinstance(b, bool | int | float | complex):
            meet = with_number(type_a, type(b) if type(b) in _KINDS else _kind(b))
            return cast(a, meet), scalar(b, meet)
        return operands(a, as_tensor(b))
    if isinstance(b, Tensor):
        y, x = operands(b, a)
        return x, y
    return operands(as_tensor(a), as_tensor(b))


_KINDS = {bool, int, float, complex}


def _kind(value: Any) -> type:
    return next(k for k in (bool, int, float, complex) if isinstance(value, k))


def floating(x: Any) -> Tensor:
    """The operand of a function that is of floats (sqrt, division): integers become float32."""
    tensor = as_tensor(x)
    dtype = numpy_dtype(tensor)
    return tensor if _is_float(dtype) or dtype.kind == "c" else cast(tensor, _F32)


def is_floating(x: Tensor) -> bool:
    """Whether the elements are floats of any width."""
    return _is_float(numpy_dtype(x))
