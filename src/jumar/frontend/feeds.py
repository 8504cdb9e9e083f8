"""What users give a model, as the arrays that it wants: by name, dtype and dims checked, nothing cast in silence.

In: the arguments of a call and the model's ports.  Out: one tree for each port, in order; model.py passes them on.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jumar.base import Array, ImportFault, TensorType, bf16, dtype_of, nearest, str_, type_of
from jumar.frontend.importers.onnx.port import Port
from jumar.frontend.importers.onnx.value import as_array


def bind(model: str, ports: Sequence[Port], args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Feeds by name of the arguments of a call: positional, by keyword, or one dict."""
    first = args[0] if len(args) == 1 and not named else None
    if isinstance(first, Mapping):
        args, named = (), first
    wanted = [p for p in ports if not p.has_default]
    if len(args) > len(ports):
        raise _inputs(model, ports, f"must get at most {len(ports)} inputs, got {len(args)}")
    feeds = {p.name: a for p, a in zip([*wanted, *(p for p in ports if p.has_default)], args, strict=False)}
    for name, value in named.items():
        if name in feeds:
            raise _inputs(model, ports, f"input {name!r} must be given once, got it by position and by name")
        if name not in {p.name for p in ports}:
            raise ImportFault(
                f"{model}: input must be one of {', '.join(p.name for p in ports)}, got {name!r}",
                hint=nearest(name, [p.name for p in ports]), code="input-name",
            )  # fmt: skip
        feeds[name] = value
    missing = [str(p) for p in wanted if p.name not in feeds]
    if missing:
        raise _inputs(
            model, ports, f"all inputs must be given, {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing, got {len(feeds)}"
        )
    return feeds


def _inputs(model: str, ports: Sequence[Port], what: str) -> ImportFault:
    return ImportFault(f"{model}: {what}", hint=f"the inputs are {'; '.join(map(str, ports))}", code="input-name")


def read_feed(model: str, port: Port, value: Any, dims: dict[str, tuple[int, str]]) -> Any:
    """The arrays of one feed, checked against its port.   dims: free dimensions met so far and where; extended."""
    if port.kind.startswith("optional"):
        if value is None:
            return None
        return read_feed(
            model, Port(port.name, port.dtype, port.shape, port.kind.removeprefix("optional").strip() or "tensor"), value, dims
        )
    if port.kind == "sequence":
        if not isinstance(value, list | tuple):
            raise ImportFault(f"{model}: input {port.name!r} must be a list of arrays, got {type(value).__name__}", code="input-kind")
        return [_checked(model, port, _to_array(model, port, v), {}) for v in value]
    if port.kind != "tensor":
        raise ImportFault(f"{model}: input {port.name!r} must be a tensor or a sequence, got a {port.kind}", code="input-kind")
    return _checked(model, port, _to_array(model, port, value), dims)


def _to_array(model: str, port: Port, value: Any) -> Array:
    """An array of anything that is one, without copying where NumPy can look at its memory."""
    if isinstance(value, np.ndarray):
        array: Array = value
    elif hasattr(value, "__dlpack__"):
        array = _from_dlpack(model, port, value)
    elif hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        array = np.asarray(value)
    elif isinstance(value, bytes | bytearray | memoryview) or hasattr(value, "__buffer__"):
        array = np.asarray(memoryview(value))
    elif isinstance(value, bool | int | float | complex | str | list | tuple):
        # Python numbers have no element type of their own, so they take the input's
        try:
            array = as_array(
                np.asarray(value) if port.dtype in (None, str_) else np.asarray(value, port.dtype.numpy if port.dtype else None)
            )
        except (ValueError, TypeError, OverflowError) as error:
            raise ImportFault(
                f"{model}: input {port.name!r} must be {port}, got {type(value).__name__}: {error}", code="input-kind"
            ) from error
    else:
        raise ImportFault(
            f"{model}: input {port.name!r} must be an array, got {type(value).__name__}",
            hint="NumPy arrays, anything with __dlpack__ or the buffer protocol, numbers and lists of them are taken", code="input-kind",
        )  # fmt: skip
    if array.dtype.kind in "UST":
        array = array.astype(object)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _from_dlpack(model: str, port: Port, value: Any) -> Array:
    try:
        return np.from_dlpack(value)
    except (RuntimeError, BufferError, TypeError, AttributeError) as error:
        found, why = _from_dlpack_bf16(value), error
        if found is not None:
            return found
    if not getattr(value, "requires_grad", False) and hasattr(value, "__array__"):
        try:
            return np.asarray(value)
        except (RuntimeError, TypeError, ValueError):
            pass  # the first error says more
    raise ImportFault(
        f"{model}: input {port.name!r} must lie in memory that NumPy can read, got {type(value).__name__}: {why}",
        hint=_tensor_hint(port, value), code="input-kind",
    ) from why  # fmt: skip


def _tensor_hint(port: Port, value: Any) -> str:
    if getattr(value, "requires_grad", False):
        return f"{port.name}.detach()"
    device = str(getattr(value, "device", "")).partition(":")[0]
    return {"": "move it to the CPU first", "cpu": "give it as a NumPy array"}.get(device, f"{port.name}.cpu()")


class _DlTensor(ctypes.Structure):
    """The head of DLPack's DLManagedTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device_kind", ctypes.c_int32), ("device", ctypes.c_int32), ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
    )  # fmt: skip


@dataclass(frozen=True)
class _Capsule:
    """What NumPy asks for memory."""

    held: Any

    def __dlpack__(self, **_: Any) -> Any:
        return self.held

    def __dlpack_device__(self) -> tuple[int, int]:
        return (DL_CPU, 0)


DL_CPU, DL_UINT, DL_BFLOAT = 1, 1, 4


def _from_dlpack_bf16(value: Any) -> Array | None:
    """An array of bfloat16, of which NumPy knows nothing: its numbers are taken as uint16 and then seen as what they are.   None: it is none."""
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    try:
        capsule = value.__dlpack__()
        head = ctypes.cast(pointer_of(capsule, b"dltensor"), ctypes.POINTER(_DlTensor)).contents
        if (head.device_kind, head.code, head.bits, head.lanes) != (DL_CPU, DL_BFLOAT, 16, 1):
            return None
        head.code = DL_UINT
        return np.from_dlpack(_Capsule(capsule)).view(bf16.numpy)
    except (RuntimeError, BufferError, TypeError, ValueError, AttributeError):  # the caller says what NumPy said
        return None


def _checked(model: str, port: Port, array: Array, dims: dict[str, tuple[int, str]]) -> Array:
    got = type_of(array) if array.dtype.kind != "O" else TensorType(array.shape, str_)
    if port.dtype is not None and dtype_of(array.dtype) != port.dtype:
        cast = "np.bool_" if port.dtype.name == "bool" else f"np.{port.dtype.numpy.name}"
        raise ImportFault(
            f"{model}: element type of input {port.name!r} must be {port.dtype}, got {got}",
            hint="" if port.dtype is str_ or got.dtype is str_ else f"{port.name}.astype({cast})", code="input-dtype",
        )  # fmt: skip
    if port.shape is None:
        return array
    if len(port.shape) != array.ndim:
        raise ImportFault(
            f"{model}: input {port.name!r} must have {len(port.shape)} dimensions, {port}, got {got}",
            hint=_rank_hint(port, array),
            code="input-shape",
        )
    for axis, (dim, size) in enumerate(zip(port.shape, array.shape, strict=True)):
        where = f"dimension {axis} of {port.name!r}"
        if isinstance(dim, int):
            if dim != size:
                raise ImportFault(f"{model}: {where} must be {dim}, got {size} in {got}", hint=f"the model says {port}", code="input-shape")
        elif dims.setdefault(dim, (size, where))[0] != size:
            raise ImportFault(
                f"{model}: dimension {dim!r} must be one size, got {dims[dim][0]} as {dims[dim][1]} and {size} as {where}",
                code="input-dims",
            )
    return array


def _rank_hint(port: Port, array: Array) -> str:
    assert port.shape is not None, "only a known rank can be missed"
    if len(port.shape) == array.ndim + 1:
        return f"is the batch missing? {port.name}[None]"
    return f"is there a dimension too many? {port.name}[0]" if len(port.shape) + 1 == array.ndim and array.shape[0] == 1 else ""
