"""ONNX files, read with suspicion: every size and path is checked before anything is allocated or opened.

In: bytes (disk.py) or a ModelProto.  Out: `OnnxFile`: the graph in order, its ports, its weights on demand; evaluator.py runs it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jumar.base import Array, ImportFault, event
from jumar.frontend.importers.onnx.disk import check_memory
from jumar.frontend.importers.onnx.graph import Context, OnnxGraph, read_graph
from jumar.frontend.importers.onnx.node import check_dims, decode_raw, decode_tensor, dense, dtype_of_onnx, text_of
from jumar.frontend.importers.onnx.port import Port, port_of
from jumar.frontend.importers.onnx.rule import normal_domain

OLDEST_IR = 3
MAP_NBYTES = 1 << 20  # external tensors from this size on are mapped rather than read


@dataclass(frozen=True, eq=False)
class OnnxFile:
    """A model that has been read and checked.   nbytes: of the file and its external data."""

    name: str
    proto: Any
    graph: OnnxGraph
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    opsets: Mapping[str, int]
    nbytes: int
    reader: TensorReader

    @property
    def metadata(self) -> dict[str, str]:
        """What the exporter noted."""
        return {text_of(p.key): text_of(p.value) for p in self.proto.metadata_props}


def parse_model(raw: bytes, name: str) -> Any:
    """The ModelProto of bytes."""
    import onnx  # noqa: PLC0415  (0.2 s: a model from the cache never needs it)
    from google.protobuf.message import DecodeError  # noqa: PLC0415  (comes with onnx)

    if not raw:
        raise ImportFault(f"{name}: file must be an ONNX model, got an empty file", code="file-not-onnx")
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(raw)
    except (DecodeError, ValueError, RuntimeError) as error:
        raise _not_onnx(raw, name) from error
    if not proto.HasField("graph"):
        if proto.ir_version and proto.ir_version < 1000 and raw[:1] == b"\x08":
            raise ImportFault(f"{name}: model must have a graph, got none", hint="is the file complete?", code="graph-missing")
        raise _not_onnx(raw, name)
    return proto


Weights = Mapping[bytes, memoryview]  # by the mark that stands in a TensorProto in place of its bytes
CUT_NBYTES = 1 << 16  # weights from this size on are not copied into protobuf's objects


def cut_weights(raw: bytes) -> tuple[bytes, Weights]:
    """The file without the bytes of its large initializers, and those, where they lie in `raw`: parsing would copy them, and reading copy again.

    What does not look as it should is left as it is: the parser finds the words for it.
    """
    weights: dict[bytes, memoryview] = {}
    secret, view = os.urandom(16), memoryview(raw)
    graphs = [f for f in _fields(raw, 0, len(raw)) if f.number == MODEL_GRAPH]
    if len(graphs) != 1 or graphs[0].kind != 2:
        return raw, {}
    graph = graphs[0]
    body, kept = [], graph.begin
    for tensor in _fields(raw, graph.begin, graph.end):
        if tensor.number != GRAPH_INITIALIZER or tensor.kind != 2 or tensor.end - tensor.begin < CUT_NBYTES:
            continue
        data = [f for f in _fields(raw, tensor.begin, tensor.end) if f.number == TENSOR_RAW_DATA]
        if len(data) != 1 or data[0].kind != 2 or data[0].end - data[0].begin < CUT_NBYTES:
            continue
        mark = secret + len(weights).to_bytes(8, "little")
        weights[mark] = view[data[0].begin : data[0].end]
        small = raw[tensor.begin : data[0].start] + _field(TENSOR_RAW_DATA, mark) + raw[data[0].end : tensor.end]
        body += [raw[kept : tensor.start], _field(GRAPH_INITIALIZER, small)]
        kept = tensor.end
    if not weights:
        return raw, {}
    whole = b"".join([*body, raw[kept : graph.end]])
    return raw[: graph.start] + _field(MODEL_GRAPH, whole) + raw[graph.end :], weights


MODEL_GRAPH, GRAPH_INITIALIZER, TENSOR_RAW_DATA = 7, 5, 9  # numbers of fields in onnx.proto


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a protobuf message: where it starts, and where its value begins and ends.   kind: 2 has a length."""

    number: int
    kind: int
    start: int
    begin: int
    end: int


def _fields(raw: bytes, at: int, end: int) -> list[_Field]:
    """The fields of a message; none where it cannot be one."""
    found = []
    while at < end:
        start = at
        key, at = _varint(raw, at)
        if at < 0:
            return []
        begin = at
        match key & 7:
            case 0:
                _, at = _varint(raw, at)
            case 1:
                at += 8
            case 2:
                length, begin = _varint(raw, at)
                at = begin + length if begin >= 0 else -1
            case 5:
                at += 4
            case _:
                return []
        if not 0 <= at <= end:
            return []
        found.append(_Field(key >> 3, key & 7, start, begin, at))
    return found


def _field(number: int, value: bytes) -> bytes:
    """A field with a length."""
    length, size = len(value), bytearray()
    while length >= 0x80:
        size.append(length & 0x7F | 0x80)
        length >>= 7
    size.append(length)
    return bytes([number << 3 | 2]) + bytes(size) + value


def _not_onnx(raw: bytes, name: str) -> ImportFault:
    where = _truncated_at(raw)
    if where:
        return ImportFault(
            f"{name}: file must be complete, got {len(raw)} bytes where a field needs {where}",
            hint="fetch or export the file again; with Git LFS: git lfs pull", code="file-truncated",
        )  # fmt: skip
    start = raw[:32]
    hint = {
        b"{": "this looks like JSON: convert it with onnx.load(..., format='json')",
        b"v": "this looks like a Git LFS pointer: git lfs pull",
        b"P": "this looks like a zip archive (a PyTorch .pt?): export it with torch.onnx.export",
        b"<": "this looks like a web page: the download did not give the file",
    }.get(start[:1], "export the model to ONNX, or check that the download is complete")
    return ImportFault(f"{name}: file must be an ONNX model, got bytes that begin with {start[:12]!r}", hint=hint, code="file-not-onnx")


def _truncated_at(raw: bytes) -> int:
    """Bytes that the file would need, where it is a ModelProto up to a field that goes past its end; else 0."""
    at, fields = 0, 0
    while at < len(raw):
        key, at = _varint(raw, at)
        number, kind = key >> 3, key & 7
        if at < 0 or number not in (1, 2, 3, 4, 5, 6, 7, 8, 14, 20, 25, 26) or kind not in (0, 2) or (number in (1, 5)) != (kind == 0):
            return 0
        value, at = _varint(raw, at)
        if at < 0:
            return len(raw) + 1 if fields else 0
        if kind == 2:
            if at + value > len(raw):
                return at + value if fields and value < 2**40 else 0
            at += value
        fields += 1
    return 0


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(raw):
            return 0, -1
        value |= (raw[at] & 0x7F) << shift
        at += 1
        if raw[at - 1] < 0x80:
            return value, at
    return 0, -1


def read_model(proto: Any, name: str, folder: Path | None, nbytes: int = 0, weights: Weights | None = None) -> OnnxFile:
    """A checked OnnxFile of a ModelProto.   folder: where external data may lie; None: nowhere.   weights: what was cut out of it."""
    import onnx  # noqa: PLC0415  (see parse_model)

    if not OLDEST_IR <= proto.ir_version <= onnx.IR_VERSION:
        newer = proto.ir_version > onnx.IR_VERSION
        raise ImportFault(
            f"{name}: IR version must be {OLDEST_IR} to {onnx.IR_VERSION}, got {proto.ir_version}",
            hint="pip install --upgrade onnx" if newer else "convert it with onnx.version_converter", code="ir-version",
        )  # fmt: skip
    opsets = {normal_domain(text_of(o.domain)): int(o.version) for o in proto.opset_import}
    newest = onnx.defs.onnx_opset_version()
    if not 1 <= opsets.get("", 1) <= newest:
        raise ImportFault(
            f"{name}: opset must be 1 to {newest}, got {opsets['']}",
            hint="pip install --upgrade onnx" if opsets[""] > newest else "export the model again", code="opset-version",
        )  # fmt: skip
    functions = {(normal_domain(text_of(f.domain)), text_of(f.name), text_of(f.overload)): f for f in proto.functions}
    reader = TensorReader(name, folder, weights)
    total = nbytes + sum(reader.external_nbytes(t) for t in _all_tensors(proto) if t.data_location == 1)
    check_memory(name, total)
    context = Context(name, opsets, functions, reader, reader.warn)
    graph = read_graph(proto.graph, context)
    ports = tuple(port_of(i, has_default=text_of(i.name) in graph.weights) for i in proto.graph.input)
    return OnnxFile(name, proto, graph, ports, tuple(port_of(o) for o in proto.graph.output), opsets, total, reader)


def _all_tensors(proto: Any) -> Iterator[Any]:
    """Initializers and tensor attributes of a model's graph, its sub-graphs and functions."""
    graphs = [proto.graph]
    nodes = [node for f in proto.functions for node in f.node]
    while graphs or nodes:
        if graphs:
            one = graphs.pop()
            yield from one.initializer
            for sparse in one.sparse_initializer:
                yield from (sparse.values, sparse.indices)
            nodes += one.node
            continue
        for attribute in nodes.pop().attribute:
            if attribute.type == 4:
                yield attribute.t
            elif attribute.type == 9:
                yield from attribute.tensors
            elif attribute.type in (5, 10):
                graphs += [attribute.g] if attribute.type == 5 else attribute.graphs


class TensorReader:
    """Reads TensorProtos, external data included.   folder: the only one that external data may lie in.   weights: see `cut_weights`."""

    def __init__(self, model: str, folder: Path | None, weights: Weights | None = None) -> None:
        self.model = model
        self.folder = folder
        self.weights = weights or {}
        self.files: dict[str, int] = {}  # location -> nbytes
        self.warnings: list[str] = []

    def __call__(self, proto: Any) -> Array:
        if proto.DESCRIPTOR.name == "SparseTensorProto":
            return dense(proto, self)
        array = self._external(proto) if proto.data_location == 1 else decode_tensor(proto, self.weights)
        self._warn_nan(array, text_of(proto.name))
        return array

    def external_nbytes(self, proto: Any) -> int:
        """Bytes of a tensor that lies outside, after checking that they are there."""
        return self._range(proto)[2]

    def _external(self, proto: Any) -> Array:
        path, offset, nbytes = self._range(proto)
        dtype = dtype_of_onnx(proto.data_type)
        if nbytes >= MAP_NBYTES:
            raw: Any = np.memmap(path, np.uint8, "r", offset, (nbytes,))
        else:
            with open(path, "rb") as file:
                file.seek(offset)
                raw = file.read(nbytes)
        return np.asarray(decode_raw(raw, dtype, tuple(proto.dims), f"tensor {text_of(proto.name)!r}"))

    def _range(self, proto: Any) -> tuple[Path, int, int]:
        """File, offset and length of external data, checked against each other."""
        what = f"{self.model}: external data of tensor {text_of(proto.name)!r}"
        entries = {text_of(e.key): text_of(e.value) for e in proto.external_data}
        location = entries.get("location", "")
        size = check_dims(tuple(proto.dims), f"tensor {text_of(proto.name)!r}")
        dtype = dtype_of_onnx(proto.data_type)
        if dtype.kind == "s":
            raise ImportFault(f"{what} must not be strings, got {dtype}", code="external-data")
        needed = size * dtype.nbytes if dtype.bits >= 8 else -(-size * dtype.bits // 8)
        try:
            offset, length = int(entries.get("offset", 0) or 0), int(entries.get("length", needed) or needed)
        except ValueError as error:
            raise ImportFault(f"{what} must have whole numbers as offset and length, got {entries}", code="external-data") from error
        path = self.safe_path(location, what)
        held = self._held(path, location, what)
        if offset < 0 or length != needed or offset + length > held:
            raise ImportFault(
                f"{what} must be {needed} bytes within {location!r} of {held} bytes, got offset {offset}, length {length}",
                hint="is the data file complete, and the one that belongs to the model?", code="external-data",
            )  # fmt: skip
        return path, offset, length

    def safe_path(self, location: str, what: str) -> Path:
        """The path of a location; refused where it leads out of the model's folder, by `..`, a root or a link."""
        if self.folder is None:
            raise ImportFault(
                f"{what} must lie beside a model file, got a model from memory", hint="load the model by its path", code="external-data"
            )
        parts = location.replace("\\", "/").split("/")
        outside = not location or "\0" in location or os.path.isabs(location) or parts[0] == "" or ".." in parts or ":" in parts[0]
        path = self.folder
        for part in parts if not outside else ():
            path = path / part
            outside = outside or path.is_symlink()
        if outside:
            raise ImportFault(
                f"{what} must lie in the model's folder, got {location!r}",
                hint="paths with '..', absolute paths and symbolic links are refused; copy the data file beside the model", code="external-data-outside",
            )  # fmt: skip
        return path

    def _held(self, path: Path, location: str, what: str) -> int:
        if location not in self.files:
            try:
                status = os.stat(path)
            except OSError as error:
                raise ImportFault(
                    f"{what} must be there, got no file {location!r}", hint=f"put it into {self.folder}", code="external-data-missing"
                ) from error
            if not stat.S_ISREG(status.st_mode):
                raise ImportFault(f"{what} must be a regular file, got {location!r}", code="external-data")
            self.files[location] = status.st_size
        return self.files[location]

    def warn(self, what: str) -> bool:
        """Notes what is odd about the model, once; says whether it is new."""
        if what in self.warnings:
            return False
        self.warnings.append(what)
        return True

    def _warn_nan(self, array: Array, name: str) -> None:
        """NaN in weights is noted, not refused: some exporters leave it in values that nobody reads."""
        with np.errstate(all="ignore"):
            suspicious = array.dtype.kind == "f" and array.size > 0 and not np.isfinite(array.sum(dtype=np.float64))
        count = int(np.isnan(array).sum()) if suspicious else 0
        if count:
            self.warnings.append(f"{self.model}: weights must be numbers, got {count} NaN in {name!r}")
            event("weights-nan", model=self.model, tensor=name, count=count)
