"""What is known of models between processes: their faces, and the stages that their calls led to.

In: files and finished stages.  Out: the same from the compile cache (setting `cache_dir`, folders `faces` and `plans`): on a hit nothing is parsed,
imported or compiled.  Every key holds the code's own version, the CPU and the settings that change code, so nothing here can go stale.

A model file is known by the hash of its content.  Hashing 100 MB takes 0.1 s, so the hash is remembered for the file's path, size, inode and times of
change; a file written less than two seconds ago is hashed every time, as its times may not tell a second write.  External data is hashed likewise.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jumar.base import Array, ImportFault, StackError, Store, TensorType, code_version, config, dtype_of, parse_type
from jumar.frontend.engines import Engine
from jumar.frontend.importers.onnx.plan import Branch, Finish, HostCall, Interpreted, RunOp, Segment, Slot, Stage, Step
from jumar.frontend.importers.onnx.port import Port
from jumar.runtime import allocate

if TYPE_CHECKING:
    from jumar.ir import Graph, Op

CHUNK_NBYTES = 8 << 20
SETTLED_S = 2.0
KNOWN_NBYTES = 1 << 16  # results that are known and larger are not kept: they are in the model file


def digest(*parts: Any) -> str:
    """A hash of texts, bytes and numbers."""
    found = hashlib.blake2b(digest_size=20)
    for part in parts:
        raw = part if isinstance(part, bytes) else str(part).encode()
        found.update(struct.pack("<Q", len(raw)) + raw)
    return found.hexdigest()


def content_hash(raw: bytes | memoryview) -> str:
    """The hash of a file's content, in chunks so that two cores share it."""
    chunks = [memoryview(raw)[at : at + CHUNK_NBYTES] for at in range(0, len(raw), CHUNK_NBYTES)]
    if len(chunks) < 2:
        return digest(bytes(raw))
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  (3 ms: most files are known by their times)

    with ThreadPoolExecutor(min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2, 4)) as pool:
        return digest(*pool.map(lambda c: hashlib.blake2b(c, digest_size=20).digest(), chunks))


def file_stat(path: str | os.PathLike[str]) -> tuple[int, ...]:
    """What tells whether a file has changed."""
    s = os.stat(path)
    return (s.st_size, s.st_ino, s.st_dev, s.st_mtime_ns, s.st_ctime_ns)


def open_store(name: str) -> Store | None:
    """A folder of the compile cache; None where the cache is off."""
    return Store(Path(config("cache_dir")) / name) if config("cache") else None


@dataclass(frozen=True)
class Face:
    """What a model shows before it is read: its ports.   hash: of its content.   data: its external data, as locations and hashes of their content."""

    hash: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    metadata: dict[str, str]
    data: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """What identifies the model in keys of its plans."""
        return digest("plan", code_version(), self.hash, self.data)


def known_hash(path: str) -> str:
    """The hash of a file that has not changed since it was hashed last; else empty."""
    store = open_store("faces")
    raw = store.get(digest("hash", os.path.realpath(path))) if store else None
    try:
        record = json.loads(raw) if raw else {}
        return str(record["hash"]) if record and record["stat"] == list(file_stat(path)) else ""
    except (OSError, ValueError, KeyError, TypeError):  # gone, or not what we wrote
        return ""


def remember_hash(path: str, hash_: str, before: tuple[int, ...]) -> None:
    """Keeps the hash of a file.   before: its `file_stat` from before it was read; where it changed since, or just now, nothing is kept."""
    store = open_store("faces")
    try:
        settled = time.time() - max(before[3], before[4]) / 1e9 > SETTLED_S
        if store and settled and file_stat(path) == before:
            store.put(digest("hash", os.path.realpath(path)), json.dumps({"hash": hash_, "stat": before}).encode())
    except OSError:
        return


def data_hashes(locations: Iterable[str], folder: Path | None) -> tuple[tuple[str, str], ...]:
    """(location, hash of the content) of external data in a folder; an ImportFault where the reader would refuse a place, an OSError where it is gone."""
    from jumar.frontend.importers.onnx.file import TensorReader  # noqa: PLC0415  (7 ms: few models have external data)

    reader, found = TensorReader("model", folder), []
    for location in sorted(locations):
        path = os.fspath(reader.safe_path(location, "external data"))
        hash_, before = known_hash(path), file_stat(path)
        if not hash_:
            raw: Any = np.memmap(path, np.uint8, "r") if before[0] else np.zeros(0, np.uint8)
            hash_ = content_hash(memoryview(raw))
            remember_hash(path, hash_, before)
        found.append((location, hash_))
    return tuple(found)


def known_face(hash_: str, folder: Path | None) -> Face | None:
    """The face of a model of that content, if the external data beside THIS copy of it is what it was.   folder: None for a model from memory."""
    store = open_store("faces")
    raw = store.get(digest("face", code_version(), hash_)) if store else None
    try:
        record = json.loads(raw) if raw else None
        if record is None:
            return None
        data = tuple((str(location), str(known)) for location, known in record["data"])
        if data and data_hashes((location for location, _ in data), folder) != data:
            return None
        inputs, outputs = (tuple(Port.from_json(row) for row in record[side]) for side in ("inputs", "outputs"))
        return Face(hash_, inputs, outputs, record["metadata"], data)
    except (ImportFault, OSError, ValueError, KeyError, TypeError):  # not what we wrote, or data is missing: reading the model says so
        return None


def remember_face(face: Face) -> None:
    """Keeps the face of a model."""
    store = open_store("faces")
    if store:
        sides = {"inputs": [p.to_json() for p in face.inputs], "outputs": [p.to_json() for p in face.outputs]}
        store.put(digest("face", code_version(), face.hash), json.dumps({**sides, "metadata": face.metadata, "data": face.data}).encode())


@dataclass(frozen=True, eq=False)
class PlanStore:
    """Stages on disk.   engine: dumps and restores executables.   reads: False only writes, for a compile that must be a fresh one."""

    store: Store
    engine: Engine
    reads: bool = True

    def child_key(self, key: str, content: Any) -> str:
        """The key of what follows a stage; empty where that is not kept."""
        parts = _content_parts(content)
        return digest(key, *parts) if parts is not None else ""

    def load(self, key: str) -> Stage | None:
        """The stage of a key; None where there is none, or it cannot be read."""
        raw = self.store.read_into(key, allocate) if key and self.reads else None
        if raw is None:
            return None
        try:
            return self._read(raw, key)
        except (StackError, ValueError, KeyError, TypeError, IndexError, struct.error):
            return None  # an entry that we did not write: it is made again

    def _read(self, raw: memoryview, key: str) -> Stage:
        (length,) = struct.unpack_from("<Q", raw)
        record = json.loads(bytes(raw[8 : 8 + length]))
        steps: list[Step] = []
        for kind, inputs, start, nbytes in record["steps"]:
            part = raw[start : start + nbytes]
            match kind:
                case "program":
                    steps.append(Segment(self.engine.restore(part), tuple(inputs)))
                case "graph":
                    steps.append(Segment(Interpreted(_graph(bytes(part).decode())), tuple(inputs)))
                case "op":
                    steps.append(HostCall(RunOp(_op(bytes(part).decode())), [_tree(i) for i in inputs]))
        slot = record["branch"]
        return Stage(steps, Finish(_tree(record["outputs"])) if slot is None else Branch(slot), key, kept=True)

    def save(self, stage: Stage) -> None:
        """Keeps a stage where all of it can be kept: loops on the host, for one, cannot."""
        try:
            raw = self._write(stage)
        except (ImportFault, TypeError):
            return
        if raw is not None:
            self.store.put_later(stage.key, *raw)

    def _write(self, stage: Stage) -> list[bytes | memoryview] | None:
        from jumar.ir import Data, large_constants, print_graph  # noqa: PLC0415  (what is kept was compiled, so it is loaded by now)

        blobs: list[tuple[str, Any, list[bytes | memoryview]]] = []
        for step in stage.steps:
            match step:
                case Segment(executable=Interpreted(graph=graph), inputs=inputs):
                    if large_constants(graph):
                        return None
                    blobs.append(("graph", list(inputs), [print_graph(graph).encode()]))
                case Segment(executable=executable, inputs=inputs):
                    raw = self.engine.dump(executable)
                    if raw is None:
                        return None
                    blobs.append(("program", list(inputs), raw))
                case HostCall(function=RunOp(op=op), inputs=inputs) if not any(isinstance(a, Data) for a in op.attributes().values()):
                    blobs.append(("op", [_record(i) for i in inputs], [str(op).encode()]))
                case _:
                    return None
        end = stage.end
        outputs = [_record(t) for t in end.outputs] if isinstance(end, Finish) else None
        rows: list[list[Any]] = [[kind, inputs, 0, sum(map(len, raw))] for kind, inputs, raw in blobs]
        for _ in range(2):  # the starts stand in the header, whose length they change
            header = json.dumps({"steps": rows, "branch": end.slot if isinstance(end, Branch) else None, "outputs": outputs}).encode()
            header += b" " * (-(len(header) + 8) % 4096)
            at = 8 + len(header)
            for row in rows:
                row[2] = at
                at += -(-row[3] // 64) * 64
        parts: list[bytes | memoryview] = [struct.pack("<Q", len(header)), header]
        for _, _, raw in blobs:
            parts += [*raw, b"\0" * (-sum(map(len, raw)) % 64)]
        return parts


def _graph(text: str) -> Graph:
    import jumar.operators  # noqa: F401, PLC0415  (the text names operators; most kept stages hold none)
    from jumar.ir import parse_graph  # noqa: PLC0415  (see above)

    return parse_graph(text)


def _op(text: str) -> Op:
    import jumar.operators  # noqa: F401, PLC0415  (see _graph)
    from jumar.ir import parse_op  # noqa: PLC0415  (see _graph)

    return parse_op(text)


def _content_parts(content: Any) -> list[Any] | None:
    """What identifies a slot's content or a structure, for a key; None where strings are in it: too many to keep."""
    match content:
        case None:
            return ["none"]
        case TensorType():
            return [str(content)]
        case bytes() | str() | int():
            return [content]
        case tuple():
            inner = [_content_parts(c) for c in content]
            return None if any(i is None for i in inner) else ["(", *(p for i in inner for p in i or ()), ")"]
    return None


def _record(tree: Any) -> Any:
    match tree:
        case None:
            return None
        case Slot(index=index):
            return index
        case list():
            return ["list", *(_record(t) for t in tree)]
        case np.ndarray() if tree.nbytes <= KNOWN_NBYTES and tree.dtype != object:
            return ["array", f"{dtype_of(tree.dtype)}{list(tree.shape)}", tree.tobytes().hex()]
    raise ImportFault("cache: a result must be small and numeric to be kept", code="our-bug")


def _tree(record: Any) -> Any:
    match record:
        case int():
            return Slot(record)
        case ["list", *items]:
            return [_tree(i) for i in items]
        case ["array", type_, data]:
            found = parse_type(type_)
            array: Array = np.frombuffer(bytes.fromhex(data), found.dtype.numpy).reshape(found.dims)
            return array
        case list():
            return [_tree(i) for i in record]
    return None
