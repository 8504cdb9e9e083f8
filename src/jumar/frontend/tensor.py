"""`Tensor`: a type and a value, or, while a function is captured, a place in its graph.

In: NumPy arrays, Python numbers and lists, and what `engine.apply` computes.  Out: what users hold.
Arithmetic, indexing and the other methods are those of `jumar.ops`, hung on by `ops/methods.py`; here stands only what a Tensor is.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from jumar.base import Array, ImportFault, TensorType, type_of
from jumar.frontend import dtype as types
from jumar.frontend.dtype import Type

if TYPE_CHECKING:
    from jumar.frontend.recorder import Recorder
    from jumar.ir import Node


class Tensor:
    """An array of one element type.

    input_data: number, (nested) list or tuple, NumPy array (copied) or Tensor.   dtype: default the data's own: Python ints give int64,
    Python floats float32.   Given shape and init instead of data, the initialiser fills it at once.

    Inside, a tensor is in one of two states: `_value` is its array; or `_value` is None and `_node` is its node in a capture that is under way.
    """

    __slots__ = ("__dict__", "__weakref__", "_node", "_recorder", "_value")
    _value: Array | None
    _node: Node | None
    _recorder: Recorder | None
    if TYPE_CHECKING:  # what ops/methods.py hangs on

        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __iter__(self) -> Iterator[Tensor]: ...
        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Any) -> Tensor: ...
        def __mod__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __xor__(self, other: Any) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...

    in_place = False  # whether a captured assignment writes into the tensor's own memory

    def __init__(
        self, input_data: Any = None, dtype: Any = None, shape: Any = None, init: Any = None, const_arg: bool = False, device: Any = None
    ) -> None:
        self._node = self._recorder = None
        if input_data is None and init is not None:
            input_data = _initialised(init, shape, dtype)
        if isinstance(input_data, Tensor):
            self._share(input_data, dtype)
            return
        self._value = as_array(input_data, None if dtype is None else types.as_type(dtype))

    def _share(self, other: Tensor, dtype: Any) -> None:
        """The state of another tensor: in a capture its node, else a copy of its array."""
        if dtype is not None and types.as_type(dtype) is not other.dtype:
            other = other.astype(dtype)
        if other._value is None:
            self._value, self._node, self._recorder = None, other._node, other._recorder
            assert self._recorder is not None, "a tensor without value is pending in a recorder"
            self._recorder.adopt(self)
        else:
            self._value = other._value.copy()

    # ------------------------------------------------------------------ what it is
    @property
    def array(self) -> Array:
        """The value; in a capture this cuts the trace, computes all that is pending, and says so."""
        if self._value is None:
            if self._recorder is None:
                raise ImportFault("Tensor: value must have been computed, got one of a capture that failed", code="tensor-dead")
            self._recorder.materialise(self)
        value = self._value
        assert value is not None, "materialise sets the value"
        return value

    @property
    def type_(self) -> TensorType:
        """Shape and element type."""
        if self._value is not None:
            return type_of(self._value)
        assert self._node is not None, "a pending tensor has a node"
        found: TensorType = self._node.type
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        if self._value is not None:
            return self._value.shape
        return self._node.type.shape  # type: ignore[union-attr, no-any-return]

    @property
    def dtype(self) -> Type:
        if self._value is not None:
            return types.of_numpy(self._value.dtype)
        return types.of_dtype(self._node.type.dtype)  # type: ignore[union-attr]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each dimension."""
        return self._value.strides if self._value is not None else _contiguous_strides(self.shape, self.itemsize)

    # ------------------------------------------------------------------ exchange
    def asnumpy(self) -> Array:
        """The value as a NumPy array that shares the tensor's memory where it can."""
        self._opaque("asnumpy")
        return self.array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        self._opaque("NumPy")
        array = self.array
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, **options: Any) -> Any:
        self._opaque("dlpack")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def item(self, *index: Any) -> Any:
        """One element as a Python number."""
        return self._scalar(index[0] if len(index) == 1 else index if index else None)

    def tolist(self) -> Any:
        """The value as nested lists of Python numbers."""
        if self.ndim == 0:
            return self._scalar(None)
        self._opaque("tolist")
        return self.array.tolist()

    def _opaque(self, how: str) -> None:
        """Python takes the value as a whole: a capture cannot skip what Python does with it."""
        recorder = LOCAL.recorder
        if recorder is not None:
            recorder.opaque(self, how)

    def _scalar(self, index: Any, kind: Any = None) -> Any:
        """One element for Python to decide on, as a `kind`: a capture cuts and branches on it."""
        if index is None and self.size != 1:
            raise ValueError(f"item: tensor must have one element, got shape {self.shape}")
        recorder = LOCAL.recorder
        return element(self.array, index, kind) if recorder is None else recorder.decide(self, index, kind)

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError("The truth value of an array with several elements is ambiguous. Use any() or all().")
        return bool(self._scalar(None, bool))

    def __int__(self) -> int:
        return int(self._scalar(None, int))

    def __float__(self) -> float:
        return float(self._scalar(None, float))

    def __complex__(self) -> complex:
        return complex(self._scalar(None))

    def __index__(self) -> int:
        if self.dtype.kind not in ("Int", "UInt", "Bool"):
            raise TypeError(f"only integer tensors of one element can be an index, got {self.dtype}{list(self.shape)}")
        return int(self._scalar(None, int))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __hash__(self) -> int:
        return id(self)

    def __str__(self) -> str:
        self._opaque("printing")
        return str(self.array)

    def __repr__(self) -> str:
        self._opaque("printing")
        value = np.array2string(self.array, separator=", ", formatter={"float_kind": lambda x: f"{x: .8e}"})
        newline = "\n" if self.ndim else " "
        return f"Tensor(shape={list(self.shape)}, dtype={self.dtype}, value={newline if self.ndim else ' '}{value})"

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        return format(self._scalar(None) if self.size == 1 else self.array, spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self.array,)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        copy = wrap(self.array.copy())
        memo[id(self)] = copy
        return copy

    # ------------------------------------------------------------------ writing
    def _write(self, new: Tensor) -> None:
        """The tensor's value becomes that of `new` (same shape and type): the one way in which a tensor is changed in place."""
        recorder = active()
        if recorder is not None:
            (recorder.views or recorder).write(self, new)
            return
        array, value = self.array, new.array
        if array.shape == value.shape and array.dtype == value.dtype and array.flags.writeable:
            array[...] = value
        else:
            self._value = value


class Scalar(Tensor):
    """A Python number on its way into an operator: in a capture a constant, not an input."""

    __slots__ = ()


def scalar(value: Any, dtype: np.dtype[Any]) -> Scalar:
    """A number of that element type."""
    tensor = _NEW(Scalar)
    tensor._value = np.array(value, dtype)
    tensor._node = tensor._recorder = None
    return tensor


class _Local(threading.local):
    """What each thread has under way."""

    def __init__(self) -> None:
        self.recorder: Recorder | None = None
        self.calls: list[Any] = []  # cells whose construct is running, outermost first


LOCAL = _Local()


def active() -> Recorder | None:
    """The capture or tape under way in this thread, if any."""
    return LOCAL.recorder


def wrap(array: Array) -> Tensor:
    """A Tensor over an array, shared, not copied."""
    tensor = _NEW(Tensor)
    tensor._value = array
    tensor._node = tensor._recorder = None
    return tensor


_NEW = Tensor.__new__


def pending(node: Node, recorder: Recorder) -> Tensor:
    """A Tensor that is a node of a capture."""
    tensor = _NEW(Tensor)
    tensor._value = None
    tensor._node, tensor._recorder = node, recorder
    return tensor


def as_array(data: Any, dtype: Type | None = None) -> Array:
    """A fresh array of what users give for a tensor."""
    if isinstance(data, np.ndarray):
        types.of_numpy(data.dtype)
        return np.array(data, dtype=None if dtype is None else dtype.numpy, order="C")
    if data is None:
        return np.empty((0,), np.float32 if dtype is None else dtype.numpy)
    if isinstance(data, np.generic):
        return np.array(data, dtype=None if dtype is None else dtype.numpy)
    if isinstance(data, bool | int | float | complex | str):
        return np.array(data, dtype=types.as_type(type(data)).numpy if dtype is None else dtype.numpy)
    if isinstance(data, list | tuple | range):
        return _from_sequence(data, dtype)
    if hasattr(data, "__array__"):
        return np.array(data, dtype=None if dtype is None else dtype.numpy)
    raise TypeError(f"Tensor: input_data must be a Tensor, a number, a list, a tuple or a NumPy array, got {type(data).__name__}")


def _from_sequence(data: Any, dtype: Type | None) -> Array:
    plain = _plain(data)
    try:
        array = np.array(plain)
    except ValueError as error:
        raise ValueError(f"Tensor: rows of input_data must have one length, got {data!r:.200}") from error
    if array.dtype == object:
        raise TypeError(f"Tensor: input_data must hold numbers, got {data!r:.200}")
    if dtype is not None:
        return array.astype(dtype.numpy)
    if array.dtype == np.float64 and not _holds_float64(data):
        return array.astype(np.float32)
    if array.dtype == np.complex128:
        return array.astype(np.complex64)
    return array


def _plain(data: Any) -> Any:
    """Lists without tensors in them."""
    if isinstance(data, list | tuple):
        return [_plain(d) for d in data]
    return data.asnumpy() if isinstance(data, Tensor) else data


def _holds_float64(data: Any) -> bool:
    if isinstance(data, list | tuple):
        return any(_holds_float64(d) for d in data)
    return getattr(data, "dtype", None) in (np.float64, types.float64)


def _initialised(init: Any, shape: Any, dtype: Any) -> Any:
    from jumar.common.initializer import initializer  # noqa: PLC0415  (an initialiser makes tensors)

    return initializer(init, shape, dtype or types.float32)


def _unpickle(array: Array) -> Tensor:
    return wrap(array)


def _contiguous_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides, step = [], itemsize
    for d in reversed(shape):
        strides.append(step)
        step *= d
    return tuple(reversed(strides))


def element(array: Array, index: Any, kind: Any = None) -> Any:
    """One element of an array as a Python number, or as a `kind` (bool, int, float)."""
    if kind is not None:
        return kind(array.item() if index is None else array[index])
    found = array.item() if index is None else array.item(*index) if isinstance(index, tuple) else array.item(index)
    return found if isinstance(found, bool | int | float | complex | str) else float(found)
