"""Element types and tensor types: the vocabulary that every floor shares.

In: nothing, this is the ground.  Out: `DType` (one instance per element type) and `TensorType` (shape and
element type of one value).  Text forms parse back: `f32[2, 3]` is `TensorType((2, 3), f32)`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from jumar.base.errors import StackError

Array = npt.NDArray[Any]
Dim = int | str  # a name is a free dimension of a signature; graphs that are compiled hold ints only


@dataclass(frozen=True)
class DType:
    """One element type.   kind: f float, i signed, u unsigned, b bool, c complex, s string."""

    name: str
    kind: str
    bits: int

    def __hash__(self) -> int:
        return hash(self.name)

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy type that holds such elements (narrow types live in `ml_dtypes`)."""
        known = _NUMPY.get(self.name)
        if known is None:
            import ml_dtypes  # noqa: PLC0415  (5 ms: most models hold no narrow types)

            known = getattr(ml_dtypes, _NARROW[self.name])
        found: np.dtype[Any] = np.dtype(known)
        return found

    @property
    def nbytes(self) -> int:
        """Bytes of one element in memory; types narrower than a byte take a whole one, as in NumPy."""
        return max(1, self.bits // 8)

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def is_integer(self) -> bool:
        return self.kind in "iu"

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name


def _declare(name: str, kind: str, bits: int) -> DType:
    return DTYPES.setdefault(name, DType(name, kind, bits))


DTYPES: dict[str, DType] = {}
_NUMPY: dict[str, Any] = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16,
    "i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8, "u64": np.uint64, "u32": np.uint32, "u16": np.uint16, "u8": np.uint8,
    "bool": np.bool_, "c64": np.complex64, "c128": np.complex128, "str": np.object_,
}  # fmt: skip
_NARROW = {  # names in `ml_dtypes`
    "bf16": "bfloat16", "f8e4m3fn": "float8_e4m3fn", "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2": "float8_e5m2", "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e8m0": "float8_e8m0fnu", "f4e2m1": "float4_e2m1fn", "i4": "int4", "i2": "int2", "u4": "uint4", "u2": "uint2",
}  # fmt: skip

f64, f32, f16, bf16 = (_declare(n, "f", b) for n, b in (("f64", 64), ("f32", 32), ("f16", 16), ("bf16", 16)))
f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0 = (
    _declare(n, "f", 8) for n in ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0")
)
f4e2m1 = _declare("f4e2m1", "f", 4)
i64, i32, i16, i8, i4, i2 = (_declare(f"i{b}", "i", b) for b in (64, 32, 16, 8, 4, 2))
u64, u32, u16, u8, u4, u2 = (_declare(f"u{b}", "u", b) for b in (64, 32, 16, 8, 4, 2))
bool_ = _declare("bool", "b", 8)
c64, c128 = _declare("c64", "c", 64), _declare("c128", "c", 128)
str_ = _declare("str", "s", 64)

_FROM_NUMPY = {DTYPES[name].numpy: DTYPES[name] for name in _NUMPY}
# what a CPU or NPU kernel may hold in memory; the rest is computed on the host and said so
NATIVE = frozenset({f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, bool_})


def dtype_of(value: npt.DTypeLike) -> DType:
    """The element type of a NumPy type or array.

    >>> dtype_of(np.float32)
    f32
    """
    if isinstance(value, np.dtype) and (known := _FROM_NUMPY.get(value)) is not None:
        return known
    found = np.dtype(value)
    if found.kind in "USTO":
        return str_
    if found.newbyteorder("=") not in _FROM_NUMPY and len(_FROM_NUMPY) < len(DTYPES):
        _FROM_NUMPY.update({DTYPES[name].numpy: DTYPES[name] for name in _NARROW})
    if found.newbyteorder("=") not in _FROM_NUMPY:
        raise StackError(f"dtype: element type must be one of {', '.join(DTYPES)}, got {found}", code="dtype-unknown")
    return _FROM_NUMPY[found.newbyteorder("=")]


@dataclass(frozen=True)
class TensorType:
    """Shape and element type of one value.

    >>> TensorType((2, 3), f32)
    f32[2, 3]
    """

    shape: tuple[Dim, ...]
    dtype: DType

    @property
    def rank(self) -> int:
        return len(self.shape)

    @cached_property
    def dims(self) -> tuple[int, ...]:
        """The shape as numbers; a free dimension here is our bug, since graphs are compiled for the dims met."""
        if self.free:
            raise StackError(f"type: dims of {self} must be numbers, got free {', '.join(self.free)}", code="dims-free")
        return self.shape  # type: ignore[return-value]

    @cached_property
    def free(self) -> tuple[str, ...]:
        return tuple(d for d in self.shape if isinstance(d, str))

    @cached_property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.dims)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.nbytes

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.shape, self.dtype))

    def with_shape(self, shape: Iterable[Dim]) -> TensorType:
        return TensorType(tuple(shape), self.dtype)

    def with_dtype(self, dtype: DType) -> TensorType:
        return TensorType(self.shape, dtype)

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    __repr__ = __str__


def type_of(array: Array) -> TensorType:
    """The type of a NumPy array.

    >>> type_of(np.zeros((2, 3), np.float32))
    f32[2, 3]
    """
    return TensorType(tuple(array.shape), dtype_of(array.dtype))


_TYPE = re.compile(r"\s*([a-z]\w*)\[([^\]]*)\]\s*")


def parse_type(text: str) -> TensorType:
    """The type that a text names: the inverse of `str`.

    >>> parse_type("bf16[n, 3]")
    bf16[n, 3]
    """
    found = _TYPE.fullmatch(text)
    if not found or found[1] not in DTYPES:
        raise StackError(f"type: text must be like f32[2, 3], got {text!r}", code="text-syntax")
    dims = (d.strip() for d in found[2].split(",") if d.strip())
    return TensorType(tuple(int(d) if d.lstrip("-").isdigit() else d for d in dims), DTYPES[found[1]])
