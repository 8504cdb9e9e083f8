"""`Op`: the base of every operator definition, and the registry that finds a class by its name.

In: subclasses with annotated fields (the attributes).  Out: frozen, hashable, printable values: `softmax(axis=1)`.
The meaning of an operator (infer, reference, grad, decompose, compute) hangs on its class; see operators/.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jumar.base import Array, DType, IRError, TensorType, dtype_of, f32, nearest

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform

    from jumar.ir.graph import Node
else:

    def dataclass_transform(**_: Any) -> Any:
        """For type checkers only; `typing` has it from Python 3.11 on."""
        return lambda cls: cls


Result = TensorType | tuple[TensorType, ...]

REGISTRY: dict[str, type[Op]] = {}


@dataclass(frozen=True)
class Sample:
    """One example of an operator: types (or arrays) of its inputs and its attributes; docs and tests use it.

    low, high: range of the random values, for operators with a smaller domain (log, acosh).
    """

    inputs: tuple[TensorType | Array, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    low: float = -2.0
    high: float = 2.0

    def arrays(self, seed: int = 0) -> list[Array]:
        """Random inputs of those types; arrays are taken as they are."""
        rng = np.random.default_rng(seed)
        return [_random(rng, t, self.low, self.high) if isinstance(t, TensorType) else t for t in self.inputs]


def _random(rng: np.random.Generator, type_: TensorType, low: float, high: float) -> Array:
    dtype = type_.dtype
    if dtype.kind == "b":
        return rng.integers(0, 2, type_.dims).astype(np.bool_)
    if dtype.is_integer:
        least = 0 if dtype.kind == "u" else int(low * 4)
        return rng.integers(least, max(int(high * 4), least + 2), type_.dims).astype(dtype.numpy)
    return np.asarray(rng.uniform(low, high, type_.dims)).astype(dtype.numpy)


def sample(*inputs: TensorType | Array, low: float = -2.0, high: float = 2.0, **attributes: Any) -> Sample:
    """Short form: `sample(f32t(2, 5), axis=1)`."""
    return Sample(inputs, attributes, low, high)


def f32t(*shape: int) -> TensorType:
    """Type of an f32 tensor, for samples."""
    return TensorType(shape, f32)


def tensor(dtype: DType, *shape: int) -> TensorType:
    """Type of a tensor, for samples."""
    return TensorType(shape, dtype)


class Data:
    """An array as an attribute: hashable by content, never written to.

    >>> Data(np.array([1, 2]))
    data([1, 2], i64)
    """

    __slots__ = ("_key", "array")

    def __init__(self, array: Any) -> None:
        array = np.asarray(array)
        if array.flags.writeable:
            array = array.view()
            array.flags.writeable = False
        self.array: Array = array
        self._key: tuple[Any, ...] | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """Content as a hashable: digest, shape and type; computed once."""
        if self._key is None:
            content = np.ascontiguousarray(self.array)
            raw = repr(content.tolist()).encode() if content.dtype == object else content.view(np.uint8).data if content.size else b""
            if content.dtype != object and content.ndim == 0:
                raw = content.tobytes()
            self._key = (hashlib.blake2b(raw, digest_size=16).hexdigest(), content.shape, str(content.dtype))
        return self._key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Data) and (self.array is other.array or self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        dtype = dtype_of(self.array.dtype)
        if self.array.size <= 16:
            values = self.array.astype(np.float64) if dtype.is_float and dtype.bits < 32 else self.array
            return f"data({values.tolist()!r}, {dtype}{_empty_shape(self.array)})"
        return f"data(#{self.key[0]}, {dtype})"


def _empty_shape(array: Array) -> str:
    """An array without elements needs its shape said."""
    return "" if array.size else f", {array.shape}"


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Op:
    """Base of all operators: subclasses become frozen dataclasses and enter the registry under their snake-case name.

    A class with `abstract = True` in its own body (a family) is not registered.
    """

    abstract: ClassVar[bool] = True
    name: ClassVar[str] = ""
    family: ClassVar[str] = ""
    signature: ClassVar[str] = ""
    samples: ClassVar[Sequence[Sample]] = ()
    cann: ClassVar[str] = ""

    def __init_subclass__(cls, **_: Any) -> None:
        super().__init_subclass__()
        dataclass(frozen=True, repr=False)(cls)
        cls.abstract = bool(cls.__dict__.get("abstract", False))
        if cls.abstract:
            return
        cls.name = cls.__dict__.get("name") or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
        if REGISTRY.setdefault(cls.name, cls).__qualname__ != cls.__qualname__:
            raise IRError(f"{cls.name}: operator must be defined once, got {cls} and {REGISTRY[cls.name]}")
        REGISTRY[cls.name] = cls

    def __call__(self, *inputs: Node, loc: Any = None) -> Node:
        """Applies the operator: a node whose type is inferred."""
        from jumar.ir.graph import apply  # noqa: PLC0415  (Op and Node know each other)

        return apply(self, *inputs, loc=loc)

    def infer(self, *types: TensorType) -> Result:
        """Types of the results from types of the inputs; raises OpError where they do not fit."""
        raise IRError(f"{self.name}: infer must be defined by the operator or its family", code="definition-missing")

    def reference(self, *arrays: Array) -> Any:
        """What the operator means, in NumPy: the oracle.   arrays -> one array or a tuple of arrays."""
        raise IRError(f"{self.name}: reference must be defined", code="definition-missing")

    def attributes(self) -> dict[str, Any]:
        """The attributes that differ from their defaults, in the order of the definition."""
        found: dict[str, Any] = {}
        for f in fields(self):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            if f.default is MISSING or not _same(value, f.default):
                found[f.name] = value
        return found

    def __repr__(self) -> str:
        listed = ", ".join(f"{k}={_show(v)}" for k, v in self.attributes().items())
        return f"{self.name}({listed})" if listed else self.name

    __str__ = __repr__


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)


def _show(value: Any) -> str:
    if isinstance(value, tuple):
        inner = ", ".join(map(_show, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if hasattr(value, "params") and hasattr(value, "outputs"):
        return f"@{value.name}"
    return repr(value)


def find_op(name: str) -> type[Op]:
    """The class of an operator name."""
    if name not in REGISTRY:
        raise IRError(f"op: operator must be defined, got {name!r}", hint=nearest(name, list(REGISTRY)), code="op-unknown")
    return REGISTRY[name]
