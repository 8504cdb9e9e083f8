"""Element types under the names that scripts know: `float32`, `int_`, `list_`; classes such as `Float` for `isinstance`; conversions.

In: `jumar.frontend.dtype`.  Out: `mindspore.common.dtype`.
"""

from __future__ import annotations

import builtins
import enum
import types as pytypes
from typing import Any

import ml_dtypes
import numpy as np

from jumar.frontend.dtype import (
    Type,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    function,
    hifloat8,
    int8,
    int16,
    int32,
    int64,
    number,
    qint4x2,
    string,
    tensor_type,
    type_none,
    uint8,
    uint16,
    uint32,
    uint64,
)  # fmt: skip
from jumar.frontend.dtype import as_type as _as_type
from jumar.frontend.dtype import float_generic as float_
from jumar.frontend.dtype import int_generic as int_
from jumar.frontend.dtype import list_type as list_
from jumar.frontend.dtype import tuple_type as tuple_
from jumar.frontend.tensor import Tensor

bool, int, float = bool_, int32, float32
byte, short, intc, long, intp = int8, int16, int32, int64, int64
ubyte, ushort, uintc, uintp = uint8, uint16, uint32, uint64
half, single, double, cfloat, cdouble = float16, float32, float64, complex64, complex128
uint = Type("UInt", None, "UInt")
_null = Type("Null", None, "Null")
env_type, symbolic_key, undetermined = (
    Type("EnvType", None, "EnvType"),
    Type("SymbolicKey", None, "SymbolicKey"),
    Type("Undetermined", None, ""),
)
type_type, type_refkey = Type("TypeType", None, "TypeType"), Type("RefKey", None, "RefKey")
index_slices, coo_tensor, csr_tensor = (Type(n, None, n) for n in ("RowTensor", "COOTensor", "CSRTensor"))

int_type = (int8, int16, int32, int64)
uint_type = (uint8, uint16, uint32, uint64)
_float8 = (float8_e4m3fn, float8_e5m2, hifloat8)
float_type = (float16, float32, float64, bfloat16, *_float8)
complex_type = (complex64, complex128)
number_type = (*int_type, *uint_type, float16, float32, float64, bfloat16, *complex_type, qint4x2, *_float8)
signed_type = (*int_type, float16, float32, float64, bfloat16, *complex_type, qint4x2, *_float8)
all_types = (bool_, *number_type)
np_bfloat16 = ml_dtypes.bfloat16


class _Kind(type):
    """A class of element types: `isinstance(ms.float16, Float)`; called with a width it gives the type, `Float(16) is float16`."""

    def __instancecheck__(cls, value: Any) -> builtins.bool:
        return isinstance(value, Type) and (cls.__name__ in ("Number", value.kind))

    def __call__(cls, bits: builtins.int | None = None) -> Any:
        if bits is None:
            return _GENERIC[cls.__name__]
        return _as_type(f"{cls.__name__}{bits}")


class Number(metaclass=_Kind):
    """Any number."""


class Int(metaclass=_Kind):
    """Signed integers."""


class UInt(metaclass=_Kind):
    """Unsigned integers."""


class Float(metaclass=_Kind):
    """Floating-point numbers but bfloat16."""


class BFloat(metaclass=_Kind):
    """bfloat16."""


class Complex(metaclass=_Kind):
    """Complex numbers."""


class Bool(metaclass=_Kind):
    """Truth values."""


class String(metaclass=_Kind):
    """Texts."""


class Tuple(metaclass=_Kind):
    """Tuples."""


class List(metaclass=_Kind):
    """Lists."""


class _NullType(metaclass=_Kind):
    """The type of nothing."""


_GENERIC: dict[str, Any] = {
    "Number": number, "Int": int_, "UInt": uint, "Float": float_, "BFloat": bfloat16, "Bool": bool_, "String": string, "Tuple": tuple_, "List": list_,
    "_NullType": _null, "Complex": Type("Complex", None, "Complex"),
}  # fmt: skip


class TensorType:
    """The type of a tensor: the type of its elements."""

    def __init__(self, element: Type | None = None) -> None:
        self._element = element

    def element_type(self) -> Type | None:
        """The type of an element."""
        return self._element

    def __eq__(self, other: object) -> builtins.bool:
        return isinstance(other, TensorType) and other._element is self._element

    def __hash__(self) -> builtins.int:
        return hash(("TensorType", self._element))

    def __str__(self) -> str:
        return f"Tensor[{self._element}]" if self._element else "Tensor"

    def __repr__(self) -> str:
        return f"mindspore.tensor[{str(self._element).lower()}]" if self._element else "mindspore.tensor"


_QUANTISED = {f"{sign}INT{n}": base + n - 1 for sign, base in (("", 0), ("U", 100)) for n in range(1, 17)}
QuantDtype: Any = enum.Enum("QuantDtype", _QUANTISED)  # type: ignore[misc]

_simple_types: dict[Any, Type] = {
    list: list_, tuple: tuple_, type(None): type_none, builtins.bool: bool_, builtins.int: int64, builtins.float: float64,
    builtins.complex: complex128, str: string, np.bool_: bool_, np.str_: string,
    **{t.numpy.type: t for t in (*int_type, *uint_type, float16, float32, float64)},
}  # fmt: skip


def pytype_to_dtype(obj: Any) -> Type:
    """The type of a Python or NumPy class: `float` is float64 here, as in MindSpore."""
    if isinstance(obj, np.dtype):
        obj = obj.type
    if isinstance(obj, Type):
        return obj
    if not isinstance(obj, type):
        raise TypeError(
            "For 'pytype_to_dtype', the argument 'obj' must be a python type object,such as int, float, str, etc. "
            f"But got type {type(obj)}."
        )
    if obj in _simple_types:
        return _simple_types[obj]
    raise NotImplementedError(f"The python type {obj} cannot be converted to MindSpore type.")


def get_py_obj_dtype(obj: Any) -> Any:
    """The type of a value."""
    if isinstance(obj, Tensor):
        return TensorType(obj.dtype)
    if isinstance(obj, Type):
        return type_type
    if isinstance(obj, pytypes.FunctionType | pytypes.MethodType):
        return function
    return pytype_to_dtype(obj if isinstance(obj, type) else type(obj))


def dtype_to_nptype(type_: Type) -> Any:
    """NumPy's scalar class of a type.

    >>> dtype_to_nptype(float16)
    <class 'numpy.float16'>
    """
    if type_ is bfloat16:
        return np_bfloat16
    if type_.dtype is None or type_ in (string, *_float8, qint4x2):
        raise KeyError(type_)
    return type_.numpy.type


def dtype_to_pytype(type_: Type) -> Any:
    """Python's class for a type."""
    found = {"Bool": builtins.bool, "Int": builtins.int, "UInt": builtins.int, "Float": builtins.float, "BFloat": builtins.float,
             "Complex": builtins.complex, "String": str, "List": list, "Tuple": tuple, "TypeNone": type(None)}.get(type_.kind)  # fmt: skip
    if found is None or type_ in _float8:
        raise KeyError(type_)
    return found


def type_size_in_bytes(dtype: Type) -> builtins.int:
    """Bytes of an element; 0 of a text."""
    return 0 if dtype is string else dtype.itemsize


def _issubclass_(type_: Any, dtype: Any) -> builtins.bool:
    """Whether a type is one of a wider one: float32 of float_ and of number."""
    if type_ is dtype:
        return True
    if not isinstance(type_, Type) or not isinstance(dtype, Type):
        return False
    if dtype is number:
        return type_.kind in ("Int", "UInt", "Float", "BFloat", "Complex")
    return dtype in _GENERIC.values() and type_.kind == dtype.kind


_dtype_to_nptype, _dtype_to_pytype, _pytype_to_dtype, _get_py_obj_dtype = (
    dtype_to_nptype,
    dtype_to_pytype,
    pytype_to_dtype,
    get_py_obj_dtype,
)

__all__ = [
    "Int", "QuantDtype", "TensorType", "Type", "_null", "bfloat16", "bool", "bool_", "byte", "cdouble", "cfloat", "complex64", "complex128", "double",
    "dtype_to_nptype", "dtype_to_pytype", "float", "float8_e4m3fn", "float8_e5m2", "float16", "float32", "float64", "float_", "get_py_obj_dtype",
    "half", "hifloat8", "int", "int8", "int16", "int32", "int64", "int_", "intc", "intp", "list_", "long", "number", "pytype_to_dtype", "qint4x2",
    "short", "single", "string", "tensor_type", "tuple_", "type_none", "ubyte", "uint", "uint8", "uint16", "uint32", "uint64", "uintc", "uintp", "ushort",
]  # fmt: skip
