"""Element types as MindSpore names them: `float32`, `int64`, ... and their ways to and from ours and NumPy's.

In: names, NumPy types, Python types.  Out: `Type` values, compared by identity.  `jumar.common.dtype` is the public face.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from jumar.base import DTYPES, DType, ImportFault, nearest


class Type:
    """One element type.   kind: the class of MindSpore's type tree it belongs to.   dtype: ours."""

    __slots__ = ("dtype", "kind", "name")

    def __init__(self, name: str, dtype: DType | None, kind: str) -> None:
        self.name, self.dtype, self.kind = name, dtype, kind

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"mindspore.{_PUBLIC.get(self.name, self.name.lower())}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _by_name, (self.name,)

    def __deepcopy__(self, memo: Any) -> Type:
        return self

    def __copy__(self) -> Type:
        return self

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy type."""
        if self.dtype is None:
            raise TypeError(f"{self.name} has no NumPy type")
        return self.dtype.numpy

    @property
    def itemsize(self) -> int:
        return self.numpy.itemsize

    @property
    def is_floating_point(self) -> bool:
        return self.kind in ("Float", "BFloat")


_PUBLIC = {"Bool": "bool_", "BFloat16": "bfloat16", "String": "string"}
_ALL: dict[str, Type] = {}


def _declare(name: str, ours: str, kind: str) -> Type:
    _ALL[name] = Type(name, DTYPES.get(ours), kind)
    return _ALL[name]


def _by_name(name: str) -> Type:
    return _ALL[name]


bool_ = _declare("Bool", "bool", "Bool")
int8, int16, int32, int64 = (_declare(f"Int{n}", f"i{n}", "Int") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (_declare(f"UInt{n}", f"u{n}", "UInt") for n in (8, 16, 32, 64))
float16, float32, float64 = (_declare(f"Float{n}", f"f{n}", "Float") for n in (16, 32, 64))
bfloat16 = _declare("BFloat16", "bf16", "BFloat")
float8_e4m3fn = _declare("Float8E4M3FN", "f8e4m3fn", "Float")
float8_e5m2 = _declare("Float8E5M2", "f8e5m2", "Float")
hifloat8 = Type("HiFloat8", None, "Float")
complex64, complex128 = _declare("Complex64", "c64", "Complex"), _declare("Complex128", "c128", "Complex")
string = _declare("String", "str", "String")
qint4x2 = _declare("QInt4x2", "i4", "Int")
# types of the graph language that client code names but never computes with
type_none, tensor_type, tuple_type, list_type, function = (Type(n, None, n) for n in ("TypeNone", "TensorType", "Tuple", "List", "Func"))
_ALL |= {t.name: t for t in (hifloat8, type_none, tensor_type, tuple_type, list_type, function)}
# "a number of any size": MindSpore's generic types
number, int_generic, float_generic = Type("Number", None, "Number"), Type("Int", None, "Int"), Type("Float", None, "Float")

NAMES: dict[str, Type] = {
    "bool_": bool_, "bool": bool_, "int8": int8, "byte": int8, "int16": int16, "short": int16, "int32": int32, "intc": int32,
    "int64": int64, "long": int64, "intp": int64, "uint8": uint8, "ubyte": uint8, "uint16": uint16, "ushort": uint16, "uint32": uint32,
    "uintc": uint32, "uint64": uint64, "uintp": uint64, "float16": float16, "half": float16, "float32": float32, "single": float32,
    "float64": float64, "double": float64, "bfloat16": bfloat16, "complex64": complex64, "cfloat": complex64, "complex128": complex128,
    "cdouble": complex128, "string": string, "float8_e4m3fn": float8_e4m3fn, "float8_e5m2": float8_e5m2, "hifloat8": hifloat8,
    "qint4x2": qint4x2, "int": int64, "int_": int64, "uint": uint64, "float": float32, "float_": float32,
}  # fmt: skip

_FROM_DTYPE: dict[DType, Type] = {t.dtype: t for t in _ALL.values() if t.dtype is not None}
_FROM_NUMPY: dict[np.dtype[Any], Type] = {t.dtype.numpy: t for t in _ALL.values() if t.dtype is not None and t.name != "String"}
_FROM_PYTHON: dict[Any, Type] = {
    builtins.bool: bool_,
    builtins.int: int64,
    builtins.float: float32,
    builtins.complex: complex64,
    str: string,
}


def of_dtype(dtype: DType) -> Type:
    """MindSpore's name of our element type."""
    return _FROM_DTYPE[dtype]


def of_numpy(dtype: Any) -> Type:
    """MindSpore's name of a NumPy element type."""
    found = _FROM_NUMPY.get(np.dtype(dtype))
    if found is None:
        if np.dtype(dtype).kind in "US":
            return string
        raise TypeError(f"Tensor: element type must be one of {', '.join(sorted(NAMES))}, got {np.dtype(dtype)}")
    return found


def as_type(dtype: Any) -> Type:
    """A type from whatever users write for one: `ms.float32`, `"float32"`, `np.float32`, `float`."""
    if isinstance(dtype, Type):
        return dtype
    if isinstance(dtype, str):
        found = NAMES.get(dtype) or _ALL.get(dtype)
        if found is None:
            raise ImportFault(f"dtype: type must be known, got {dtype!r}", hint=nearest(dtype, list(NAMES)), code="dtype-unknown")
        return found
    try:
        if dtype in _FROM_PYTHON:
            return _FROM_PYTHON[dtype]
        return of_numpy(dtype)
    except TypeError as error:
        raise TypeError(f"dtype: type must be a mindspore dtype, a name or a NumPy type, got {dtype!r}") from error
