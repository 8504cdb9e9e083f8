"""`OnnxNode`: one node of an ONNX file as rules read it, its attributes decoded on demand.

In: a NodeProto and the opsets of its model.  Out: a value for rules; `decode_tensor` gives arrays of TensorProtos.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jumar.base import DTYPES, Array, DType, ImportFault, Loc

# TensorProto.DataType: the numbers are fixed by the format, so the file can be judged before `onnx` is imported
DTYPE_OF_ONNX: dict[int, DType] = {
    number: DTYPES[name]
    for number, name in {
        1: "f32", 2: "u8", 3: "i8", 4: "u16", 5: "i16", 6: "i32", 7: "i64", 8: "str", 9: "bool", 10: "f16", 11: "f64", 12: "u32", 13: "u64",
        14: "c64", 15: "c128", 16: "bf16",
        17: "f8e4m3fn", 18: "f8e4m3fnuz", 19: "f8e5m2", 20: "f8e5m2fnuz", 21: "u4", 22: "i4", 23: "f4e2m1", 24: "f8e8m0", 25: "u2", 26: "i2",
    }.items()
}  # fmt: skip
ONNX_OF_DTYPE = {dtype: number for number, dtype in DTYPE_OF_ONNX.items()}


def dtype_of_onnx(number: int, what: str = "element type") -> DType:
    """Our element type of a TensorProto.DataType."""
    if number not in DTYPE_OF_ONNX:
        raise ImportFault(f"onnx: {what} must be one of 1 to {max(DTYPE_OF_ONNX)}, got {number}", code="dtype-unknown")
    return DTYPE_OF_ONNX[number]


@dataclass(frozen=True, eq=False)
class OnnxNode:
    """One node.   outputs: number of outputs up to the last that has a name.   opset: version of the node's domain."""

    op: str
    domain: str
    opset: int
    name: str
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    protos: Mapping[str, Any]  # name -> AttributeProto
    loc: Loc
    opsets: Mapping[str, int] = field(default_factory=dict)
    proto: Any = None
    read_tensor: Callable[[Any], Array] | None = None  # knows the model's folder, for external data

    @property
    def outputs(self) -> int:
        return max((i + 1 for i, name in enumerate(self.output_names) if name), default=0)

    def wants(self, index: int) -> bool:
        """Output `index` has a name, so somebody may read it."""
        return index < len(self.output_names) and bool(self.output_names[index])

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute as a Python value: float, int, str, array, tuple of those; a GraphProto for a sub-graph."""
        if name not in self.protos:
            return default
        return decode_attribute(self.protos[name], self.read_tensor or decode_tensor)

    def has(self, name: str) -> bool:
        """The attribute is given."""
        return name in self.protos

    def fault(self, what: str, *, hint: str = "", code: str = "node-invalid") -> ImportFault:
        """An error about this node, for a rule to raise."""
        return ImportFault(f"{self.op}: {what}", loc=self.loc, hint=hint, code=code)


def text_of(raw: bytes | str) -> str:
    """A text of a file; protobuf gives bytes where it is no UTF-8."""
    return raw if isinstance(raw, str) else raw.decode("utf-8", "backslashreplace")


def decode_attribute(proto: Any, read_tensor: Callable[[Any], Array]) -> Any:
    """The Python value of an AttributeProto."""
    match proto.type:
        case 1:
            return float(proto.f)
        case 2:
            return int(proto.i)
        case 3:
            return text_of(proto.s)
        case 4:
            return read_tensor(proto.t)
        case 5:
            return proto.g
        case 6:
            return tuple(float(f) for f in proto.floats)
        case 7:
            return tuple(int(i) for i in proto.ints)
        case 8:
            return tuple(text_of(s) for s in proto.strings)
        case 9:
            return tuple(read_tensor(t) for t in proto.tensors)
        case 10:
            return tuple(proto.graphs)
        case 11:
            return dense(proto.sparse_tensor, read_tensor)
        case 12:
            return tuple(dense(s, read_tensor) for s in proto.sparse_tensors)
        case 13:
            return proto.tp
        case 14:
            return tuple(proto.type_protos)
    raise ImportFault(f"onnx: type of attribute {text_of(proto.name)!r} must be one of 1 to 14, got {proto.type}", code="attribute-type")


def check_dims(dims: tuple[int, ...], what: str) -> int:
    """Number of elements of a shape read from a file, refused where it is negative or absurd."""
    if any(d < 0 for d in dims) or math.prod(dims) >= 2**47:
        raise ImportFault(f"onnx: shape of {what} must have sizes >= 0 and below 2^47 elements, got {list(dims)}", code="shape-absurd")
    return math.prod(dims)


_FIELD = {
    1: "float_data",
    10: "int32_data",
    7: "int64_data",
    11: "double_data",
    14: "float_data",
    15: "double_data",
    12: "uint64_data",
    13: "uint64_data",
}


def decode_tensor(proto: Any, weights: Mapping[bytes, memoryview] | None = None) -> Array:
    """The array of a TensorProto whose data lies in the file.   weights: bytes that were cut out of it, by the mark that stands there instead."""
    what = f"tensor {text_of(proto.name)!r}" if proto.name else "a tensor"
    dtype = dtype_of_onnx(proto.data_type, f"element type of {what}")
    dims = tuple(int(d) for d in proto.dims)
    size = check_dims(dims, what)
    if proto.data_location == 1:
        raise ImportFault(f"onnx: data of {what} must lie in the file here, got external data", code="external-data")
    if dtype.kind == "s":
        texts = [s.decode("utf-8", "surrogateescape") for s in proto.string_data]  # data goes back as it came
        return _reshape(np.array(texts, dtype=object), size, dims, what)
    if proto.HasField("raw_data"):
        raw = proto.raw_data
        return decode_raw(weights.get(raw, raw) if weights else raw, dtype, dims, what)
    values = getattr(proto, _FIELD.get(proto.data_type, "int32_data"))
    return _reshape(_from_field(values, dtype, size), size, dims, what)


def _reshape(array: Array, size: int, dims: tuple[int, ...], what: str) -> Array:
    if array.size != size:
        raise ImportFault(f"onnx: {what} must hold {size} elements for its shape {list(dims)}, got {array.size}", code="tensor-size")
    return array.reshape(dims)


def _from_field(values: Any, dtype: DType, size: int) -> Array:
    if dtype.kind == "c":
        parts = np.array(values, np.float64)[: len(values) // 2 * 2]
        return (parts[0::2] + 1j * parts[1::2]).astype(dtype.numpy)
    if dtype.bits < 8:
        return unpack(np.array(values, np.int64).astype(np.uint8), dtype, size)
    if dtype.is_float and dtype.bits == 16:
        return np.array(values, np.int64).astype(np.uint16).view(dtype.numpy)
    if dtype.is_float and dtype.bits == 8:
        return np.array(values, np.int64).astype(np.uint8).view(dtype.numpy)
    held = {"f": np.float64, "u": np.uint64}.get(dtype.kind if dtype.bits >= 32 else "i", np.int64)
    return np.array(values, held).astype(dtype.numpy)


def decode_raw(raw: Any, dtype: DType, dims: tuple[int, ...], what: str) -> Array:
    """An array over little-endian bytes, without copying where the type has whole bytes."""
    size = math.prod(dims)
    needed = size * dtype.nbytes if dtype.bits >= 8 else -(-size * dtype.bits // 8)
    if len(raw) != needed:
        raise ImportFault(f"onnx: {what} must have {needed} bytes for {dtype}{list(dims)}, got {len(raw)}", code="tensor-size")
    if dtype.bits < 8:
        return unpack(np.frombuffer(raw, np.uint8), dtype, size).reshape(dims)
    if dtype.kind == "b":
        return np.asarray((np.frombuffer(raw, np.uint8) != 0).reshape(dims))
    return np.frombuffer(raw, dtype.numpy).reshape(dims)


def unpack(packed: Array, dtype: DType, size: int) -> Array:
    """Elements narrower than a byte, lowest bits first."""
    per_byte = 8 // dtype.bits
    shifts = np.arange(per_byte, dtype=np.uint8) * dtype.bits
    codes = ((packed[:, None] >> shifts) & ((1 << dtype.bits) - 1)).reshape(-1)[:size].astype(np.uint8)
    if dtype.kind == "i":
        codes = codes.astype(np.int8)
        half = 1 << (dtype.bits - 1)
        return np.where(codes >= half, codes - 2 * half, codes).astype(np.int8).astype(dtype.numpy)
    return codes.astype(dtype.numpy) if dtype.kind == "u" else codes.view(dtype.numpy)


def dense(proto: Any, read_tensor: Callable[[Any], Array]) -> Array:
    """A sparse tensor as a dense array."""
    dims = tuple(int(d) for d in proto.dims)
    size = check_dims(dims, "a sparse tensor")
    if size > 2**31:
        raise ImportFault(f"onnx: a sparse tensor must have below 2^31 elements to be made dense, got {list(dims)}", code="shape-absurd")
    values, indices = read_tensor(proto.values), read_tensor(proto.indices)
    dense = np.zeros(size, values.dtype)
    flat = np.ravel_multi_index(tuple(indices.T), dims) if indices.ndim == 2 else indices
    dense[flat] = values
    return dense.reshape(dims)
