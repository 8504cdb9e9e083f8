"""`Port`: an input or output of a model: its name, its kind, and its type with free dims by name.

In: ValueInfoProtos.  Out: what `Model.inputs` shows, what feeds are checked against, and what the compile cache keeps of a model's face.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jumar.base import DTYPES, Dim, DType, TensorType
from jumar.frontend.importers.onnx.node import dtype_of_onnx, text_of

UNKNOWN_DIMS = ("", "?")  # Paddle writes "?" for every dimension that it does not know


@dataclass(frozen=True)
class Port:
    """One input or output.   kind: tensor, sequence, optional, optional sequence.   shape None: even the rank is open.   fixed: it has a default."""

    name: str
    dtype: DType | None
    shape: tuple[Dim, ...] | None
    kind: str = "tensor"
    has_default: bool = False

    @property
    def type(self) -> TensorType | None:
        """The type, where the file says it."""
        return None if self.dtype is None or self.shape is None else TensorType(self.shape, self.dtype)

    def __str__(self) -> str:
        shape = "[...]" if self.shape is None else f"[{', '.join(map(str, self.shape))}]"
        inner = f"{self.dtype or 'any'}{shape}"
        return f"{self.name}: {inner if self.kind == 'tensor' else f'{self.kind} of {inner}'}"

    def to_json(self) -> list[Any]:
        return [
            self.name,
            self.dtype.name if self.dtype else None,
            None if self.shape is None else list(self.shape),
            self.kind,
            self.has_default,
        ]

    @staticmethod
    def from_json(row: list[Any]) -> Port:
        name, dtype, shape, kind, has_default = row
        return Port(name, DTYPES[dtype] if dtype else None, None if shape is None else tuple(shape), kind, has_default)


def port_of(value: Any, *, has_default: bool = False) -> Port:
    """The Port of a ValueInfoProto."""
    kind, proto, name = "", value.type, text_of(value.name)
    while True:
        match proto.WhichOneof("value"):
            case "tensor_type":
                tensor = proto.tensor_type
                dtype = dtype_of_onnx(tensor.elem_type, f"element type of {name!r}") if tensor.elem_type else None
                shape = _shape(tensor.shape, name) if tensor.HasField("shape") else None
                return Port(name, dtype, shape, kind.strip() or "tensor", has_default)
            case "sparse_tensor_type":
                return Port(name, dtype_of_onnx(proto.sparse_tensor_type.elem_type), None, "sparse tensor", has_default)
            case "sequence_type":
                kind, proto = f"{kind} sequence", proto.sequence_type.elem_type
            case "optional_type":
                kind, proto = f"{kind} optional", proto.optional_type.elem_type
            case "map_type":
                return Port(name, None, None, f"{kind} map".strip(), has_default)
            case _:
                return Port(name, None, None, kind.strip() or "tensor", has_default)


def _shape(proto: Any, name: str) -> tuple[Dim, ...]:
    dims: list[Dim] = []
    for axis, dim in enumerate(proto.dim):
        match dim.WhichOneof("value"):
            case "dim_value" if dim.dim_value >= 0:
                dims.append(int(dim.dim_value))
            case "dim_param" if text_of(dim.dim_param).strip() not in UNKNOWN_DIMS:
                dims.append(text_of(dim.dim_param).strip())
            case _:  # unnamed, or -1 as some exporters write for "any"
                dims.append(f"{name}_{axis}")
    return tuple(dims)
