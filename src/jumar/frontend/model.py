"""`load` and `Model`: a model file as a Python function from arrays to arrays.

In: a path, bytes or a ModelProto; arrays.  Out: arrays.  Below: importers/onnx (evaluator), compiler, runtime.

    m = jumar.load("model.onnx")
    y = m(x)
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jumar.base import Array, ImportFault, TensorType, during, event, nearest
from jumar.frontend.engines import ENGINES, Engine, Native, engine
from jumar.frontend.feeds import bind, read_feed
from jumar.frontend.importers.onnx.calls import Evaluator
from jumar.frontend.importers.onnx.disk import read_path
from jumar.frontend.importers.onnx.node import text_of
from jumar.frontend.importers.onnx.plan import MAX_STAGES, Finish, HostCall, Interpreted, Segment, Stage, Straight, flatten
from jumar.frontend.importers.onnx.port import Port
from jumar.frontend.store import (
    Face,
    PlanStore,
    content_hash,
    data_hashes,
    file_stat,
    known_face,
    known_hash,
    open_store,
    remember_face,
    remember_hash,
)
from jumar.runtime import Program

if TYPE_CHECKING:
    from jumar.frontend.importers.onnx.file import OnnxFile
    from jumar.frontend.importers.onnx.graph import OnnxGraph
    from jumar.ir import Graph


@dataclass(frozen=True, eq=False)
class Piece:
    """A compiled piece of a model; a plain network is one.   graph, compiled: absent where it came from the cache; host: what runs in Python instead.
    received: the arrays that it ran on, one for each parameter, where they were asked for."""

    graph: Graph | None = None
    program: Program | None = None
    compiled: Any = None
    host: str = ""
    received: tuple[Array, ...] | None = None


@dataclass(frozen=True, eq=False)
class Plan:
    """What a model became for some types.   complete: nothing is left that only a run with values can tell."""

    pieces: tuple[Piece, ...]
    complete: bool


class Source:
    """Where a model comes from, read when it is first needed: a model whose calls are all in the cache is never parsed."""

    def __init__(self, name: str, path: str | None = None, raw: bytes | None = None, proto: Any = None, hash_: str = "") -> None:
        self.name = name
        self.path = path
        self.raw = raw
        self.proto = proto
        self.hash = hash_
        self.data: tuple[tuple[str, str], ...] = ()  # the external data that a face from the cache stands for
        self.lock = threading.Lock()

    @cached_property
    def file(self) -> OnnxFile:
        """The model, read and checked; operators that are not supported are an error here."""
        # 0.1 s, with rules and operators: a model whose calls are all in the cache is not read
        from jumar.frontend.importers.onnx.evaluator import check_supported  # noqa: PLC0415
        from jumar.frontend.importers.onnx.file import cut_weights, parse_model, read_model  # noqa: PLC0415

        raw = self.raw
        if self.path is not None and raw is None:
            raw = read_path(self.path)
            if self.hash and content_hash(raw) != self.hash:
                raise self.changed("file")
        small, weights = cut_weights(raw) if raw else (raw, None)
        proto = self.proto if small is None else parse_model(small, self.name)
        self.raw = None if self.path is not None else raw
        found = read_model(proto, self.name, self.folder, len(raw or b""), weights)
        if self.data and data_hashes(found.reader.files, self.folder) != self.data:
            raise self.changed("external data")
        check_supported(found.graph)
        return found

    @property
    def folder(self) -> Path | None:
        """Where external data may lie; None for a model from memory."""
        return Path(self.path).resolve().parent if self.path else None

    def content(self) -> bytes:
        """The bytes of a model from memory."""
        with self.lock:
            raw = self.raw
            if raw is not None:
                return raw
            try:
                return bytes((self.proto if self.proto is not None else self.file.proto).SerializeToString())
            except ValueError as error:  # protobuf ends at 2 GiB
                raise ImportFault(
                    f"{self.name}: model from memory must be below 2 GiB to be pickled: {error}", hint="load it by its path", code="memory"
                ) from error

    def changed(self, what: str) -> ImportFault:
        """What is raised where a model is no longer what it was."""
        return ImportFault(
            f"{self.name}: {what} must stay as it was when the model was loaded, and has changed", hint="load it again", code="file-changed"
        )

    def graph(self) -> OnnxGraph:
        with self.lock:
            return self.file.graph


class Model:
    """A loaded model.  It may be called from several threads.   inputs, outputs: names and types, free dimensions by name."""

    def __init__(self, source: Source, face: Face, engine_: Engine, dims: Mapping[str, int]) -> None:
        self.name = source.name
        self.inputs = face.inputs
        self.outputs = face.outputs
        self.metadata = face.metadata
        self.dims = _checked_dims(source.name, face.inputs, dims)
        self._source = source
        self._face = face
        self._engine = engine_
        self._lock = threading.Lock()
        self._evaluators: dict[tuple[str, ...], Evaluator] = {}
        self._names = tuple(p.name for p in face.inputs)
        self._by_position = not any(p.has_default for p in face.inputs)
        self._straight: dict[Any, Straight] = {}  # what calls of types met before may do at once
        self._odd: list[str] = []  # what runs found odd about the file

    # ---- running ----

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The outputs: an array, or a tuple where there are several.   m(x), m(x, y), m(name=x), m({"name": x})"""
        results = self._results(args, named)
        return results[0] if len(results) == 1 else tuple(results)

    def _run_straight(self, args: Sequence[Any], named: Mapping[str, Any]) -> list[Any] | None:
        """The outputs of a call whose shapes and types a call before had: they are right then.   None: not such a call."""
        first = args[0] if len(args) == 1 and not named else None
        if type(first) is dict:
            args, named = (), first
        if named:
            if args or len(named) != len(self._names):
                return None
            try:
                args = [named[name] for name in self._names]
            except KeyError:
                return None
        elif not self._by_position:
            return None
        try:
            found = self._straight.get(tuple([(a.shape, a.dtype) for a in args]))
        except (AttributeError, TypeError):  # not arrays: the long way reads them, or says what is wrong
            return None
        if found is None:
            return None
        for a in args:
            if type(a) is not np.ndarray:
                return None
        return found.run(args)

    def run(self, output_names: Sequence[str] | None, feeds: Mapping[str, Any]) -> list[Any]:
        """The named outputs (all for None), as ONNX Runtime's `session.run`."""
        if not output_names:
            return self._results((), feeds)
        names = [p.name for p in self.outputs]
        for name in output_names:
            if name not in names:
                raise ImportFault(
                    f"{self.name}: output must be one of {', '.join(names)}, got {name!r}", hint=nearest(name, names), code="output-name"
                )
        results = self._results((), feeds)
        return [results[names.index(name)] for name in output_names]

    def _results(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any]:
        found = self._run_straight(args, named)
        return self._run(bind(self.name, self.inputs, args, named)) if found is None else found

    def _run(self, feeds: Mapping[str, Any]) -> list[Any]:
        names, trees = self._trees(feeds)
        evaluator = self._evaluator(names)
        results = evaluator(*trees)
        self._compare(results)
        if len(names) == len(self._names) and all(isinstance(t, np.ndarray) for t in trees):
            straight = evaluator.straight(trees)
            if straight and len(self._straight) < MAX_STAGES:
                self._straight[tuple([(t.shape, t.dtype) for t in trees])] = straight
        return results

    def _compare(self, results: Sequence[Any]) -> None:
        """Notes outputs that are not what the file declares; what was computed is right, and whoever relies on the file is not."""
        for port, result in zip(self.outputs, results, strict=True):
            if port.kind != "tensor" or port.shape is None or not isinstance(result, np.ndarray):
                continue
            sizes = [d if isinstance(d, int) else None for d in port.shape]
            if len(sizes) == result.ndim and all(d in (None, size) for d, size in zip(sizes, result.shape, strict=True)):
                continue
            what = f"{self.name}: output {port.name!r} must be as the file declares it, {port}, got the shape {list(result.shape)}"
            if not any(w.startswith(f"{self.name}: output {port.name!r} ") for w in self._odd):
                self._odd.append(what)
                event("output-declared", model=self.name, output=port.name, shape=result.shape)

    def _trees(self, feeds: Mapping[str, Any]) -> tuple[tuple[str, ...], list[Any]]:
        met = {name: (size, "dims=") for name, size in self.dims.items()}
        given = [p for p in self.inputs if p.name in feeds]
        return tuple(p.name for p in given), [read_feed(self.name, p, feeds[p.name], met) for p in given]

    def _evaluator(self, names: tuple[str, ...], *, fresh: bool = False) -> Evaluator:
        """The model as a function of the inputs given; those left out have defaults in the file."""
        with self._lock:
            if names not in self._evaluators:
                store = open_store("plans") if self._face.hash and self._engine.identity else None
                keeper = PlanStore(store, self._engine, reads=not fresh) if store else None
                key = keeper.child_key(self._face.key, (self._engine.identity, *names)) if keeper else ""
                self._evaluators[names] = Evaluator(self._source.graph, names, self._engine.compile, keeper=keeper, key=key)
            return self._evaluators[names]

    # ---- compiling and looking ----

    def compile(
        self, *args: Any, dims: Mapping[str, int] | None = None, fresh: bool = False, keep_inputs: bool = False, **named: Any
    ) -> Plan:
        """Compiles for inputs (which are run) or for dims, so that the first call is as quick as the others; says what the model became.

        fresh: compile again even where the cache knows it, for the reports that come with compiling.   keep_inputs: pieces hold what they ran on."""
        if fresh:
            with self._lock:
                self._evaluators.clear()
                self._straight.clear()
        if args or named:
            names, trees = self._trees(bind(self.name, self.inputs, args, named))
            evaluator = self._evaluator(names, fresh=fresh)
            evaluator(*trees)
            frame: list[Any] = []
            structure = tuple(flatten(t, frame) for t in trees)
            return _plan(evaluator.way(structure, frame), frame if keep_inputs else None)
        names, structure = self._structure(dims or {})
        return _plan([self._evaluator(names, fresh=fresh).plan(structure)])

    def graphs(self, *args: Any, dims: Mapping[str, int] | None = None, **named: Any) -> list[Graph]:
        """The graphs that the model is traced into, before any pass: one for a plain network, more where values decide how to go on.

        Give inputs, or dims (then what depends on values ends in an error that says where)."""
        return self.traced(*args, dims=dims, **named)[0]

    def traced(self, *args: Any, dims: Mapping[str, int] | None = None, **named: Any) -> tuple[list[Graph], tuple[str, ...]]:
        """The graphs as `graphs` gives them, and what runs on the host between them: loops, operators whose sizes values decide."""
        if args or named:
            names, trees = self._trees(bind(self.name, self.inputs, args, named))
            frame: list[Any] = []
            structure = tuple(flatten(t, frame) for t in trees)
            return Evaluator(self._source.graph, names, Interpreted).graphs(structure, frame)
        names, structure = self._structure(dims or {})
        return Evaluator(self._source.graph, names, Interpreted).graphs(structure, None)

    def graph(self, *args: Any, dims: Mapping[str, int] | None = None, **named: Any) -> Graph:
        """The one graph of a plain network."""
        found = self.graphs(*args, dims=dims, **named)
        if len(found) != 1:
            raise ImportFault(
                f"{self.name}: model must be one graph here, got {len(found)} pieces, since values decide how it goes on",
                hint="see Model.graphs", code="values-needed",
            )  # fmt: skip
        return found[0]

    def package(self, path: str | os.PathLike[str], *, dims: Mapping[str, int] | Sequence[Mapping[str, int]] | None = None) -> None:
        """Writes a file that runs on base, device and runtime alone.   dims: sizes of free dimensions, or several sets of them."""
        from jumar.compiler import compile  # noqa: PLC0415  (see engines.Cpu)
        from jumar.runtime import save_package  # noqa: PLC0415  (loads what only packages need)

        wanted = list(dims) if isinstance(dims, Sequence) else [dims or {}]
        save_package(Path(path), [compile(self.graph(dims=d)).program for d in wanted], name=Path(self.name).stem)

    def clone(self) -> Model:
        """Another model on the same weights and compiled code."""
        copy = Model(self._source, self._face, self._engine, self.dims)
        copy._evaluators, copy._lock, copy._straight, copy._odd = self._evaluators, self._lock, self._straight, self._odd
        return copy

    def __copy__(self) -> Model:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return self.clone()

    def __reduce__(self) -> tuple[Any, ...]:
        """What pickle keeps: the file's path, or the model's bytes, and how it was loaded; another process compiles it again, or finds it in the cache."""
        source, found = self._source, self._engine
        target = next(name for name, kind in ENGINES.items() if type(found) is kind)
        kept: str | bytes = os.path.abspath(source.path) if source.path is not None else source.content()
        return _reopen, (kept, self.name, self._face.hash, target, found.threads, self.dims)

    def input_types(self, dims: Mapping[str, int] | None = None) -> dict[str, TensorType]:
        """Types of the inputs with numbers for the free dimensions."""
        names, structure = self._structure(dims or {})
        return {name: t for name, t in zip(names, structure, strict=True) if isinstance(t, TensorType)}

    @property
    def free_dims(self) -> tuple[str, ...]:
        """Free dimensions of the inputs that have no size yet."""
        names = (d for p in self.inputs if not p.has_default for d in (p.shape or ()) if isinstance(d, str))
        return tuple(d for d in dict.fromkeys(names) if d not in self.dims)

    @property
    def file(self) -> OnnxFile:
        """The ONNX file behind the model; read now, if it was not."""
        self._source.graph()
        return self._source.file

    @property
    def warnings(self) -> list[str]:
        """What was odd about the file, as far as it has been read and run."""
        read = self._source.file.reader.warnings if "file" in self._source.__dict__ else []
        return [*read, *self._odd]

    def _structure(self, dims: Mapping[str, int]) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        sizes = self.dims | _checked_dims(self.name, self.inputs, dims)
        ports = [p for p in self.inputs if not p.has_default]
        missing = [d for d in self.free_dims if d not in sizes]
        if missing:
            what = f"{self.name}: free dimensions must have sizes, got none for {', '.join(missing)}"
            raise ImportFault(what, hint=f"dims={{{missing[0]!r}: 1}}", code="input-dims")
        structure = []
        for p in ports:
            if p.kind != "tensor" or p.shape is None or p.dtype is None:
                raise ImportFault(
                    f"{self.name}: type of input must be known to compile without inputs, got {p}",
                    hint="give inputs instead",
                    code="input-kind",
                )
            structure.append(TensorType(tuple(sizes[d] if isinstance(d, str) else d for d in p.shape), p.dtype))
        return tuple(p.name for p in ports), tuple(structure)

    def __repr__(self) -> str:
        return f"Model({self.name!r}, {', '.join(map(str, self.inputs))} -> {', '.join(map(str, self.outputs))})"


def _checked_dims(name: str, ports: Sequence[Port], dims: Mapping[str, int]) -> dict[str, int]:
    free = {d for p in ports for d in (p.shape or ()) if isinstance(d, str)}
    for dim, size in dims.items():
        if dim not in free:
            what = f"{name}: dims must name free dimensions ({', '.join(sorted(free)) or 'there are none'}), got {dim!r}"
            raise ImportFault(what, hint=nearest(dim, free), code="input-dims")
        if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size < 2**47:
            raise ImportFault(f"{name}: size of dimension {dim!r} must be a whole number from 0 on, got {size!r}", code="input-dims")
    return dict(dims)


def _plan(stages: Sequence[Stage], frame: Sequence[Any] | None = None) -> Plan:
    """frame: everything that the steps of a run read and wrote."""
    pieces = []
    for stage in stages:
        for step in stage.steps:
            received = tuple(frame[i] for i in step.inputs) if frame is not None and isinstance(step, Segment) else None
            match step:
                case Segment(executable=Native(program=program, compiled=compiled), graph=graph):
                    pieces.append(Piece(graph, program, compiled, received=received))
                case Segment(graph=graph):
                    pieces.append(Piece(graph, received=received))
                case HostCall():
                    pieces.append(Piece(host=step.name))
    return Plan(tuple(pieces), bool(stages) and isinstance(stages[-1].end, Finish))


def load(
    source: str | os.PathLike[str] | bytes | Any, *, target: str = "cpu", threads: int | None = None, dims: Mapping[str, int] | None = None
) -> Model:
    """A model of a file, bytes or a ModelProto.

    target: cpu, or interpreter (the oracle).   threads: 0 or None for all cores.   dims: sizes of free dimensions."""
    found = engine(target, threads or 0)
    place, face = _open(source)
    return Model(place, face, found, dims or {})


def _reopen(kept: str | bytes, name: str, hash_: str, target: str, threads: int, dims: Mapping[str, int]) -> Model:
    """The model that was pickled; an ImportFault where its file is gone or is another one by now."""
    with during(f"loading the pickled model {name}"):
        place, face = _open(kept)
        if isinstance(kept, bytes):
            place.name = name
        elif hash_ and face.hash and hash_ != face.hash:
            raise place.changed("file")
        return Model(place, face, engine(target, threads), dims)


def _open(source: Any) -> tuple[Source, Face]:
    """Where the model is, and what it shows: from the cache, or by reading it."""
    if isinstance(source, str | os.PathLike):
        return _open_path(os.fspath(source))
    if isinstance(source, bytes | bytearray | memoryview):
        raw = bytes(source)
        hash_ = content_hash(raw)
        place = Source("model", raw=raw, hash_=hash_)
        return place, known_face(hash_, None) or _read_face(place, hash_)
    if hasattr(source, "opset_import") and hasattr(source, "graph"):
        size = source.ByteSize()
        hash_ = content_hash(source.SerializeToString()) if size < 1 << 30 and open_store("faces") else ""
        place = Source(text_of(source.graph.name) or "model", proto=source)
        return place, _read_face(place, hash_, keep=False)
    raise ImportFault(f"load: model must be a path, bytes or a ModelProto, got {type(source).__name__}", code="file-missing")


def _open_path(name: str) -> tuple[Source, Face]:
    hash_ = known_hash(name)
    place = Source(name, path=name, hash_=hash_)
    face = known_face(hash_, place.folder) if hash_ else None
    if face is None:
        before = file_stat(name) if os.path.exists(name) else ()
        raw = read_path(name)
        if not hash_ and open_store("faces"):
            hash_ = content_hash(raw)
            remember_hash(name, hash_, before)
        place = Source(name, path=name, raw=raw, hash_=hash_)
        face = known_face(hash_, place.folder) if hash_ else None
    if face is None:
        return place, _read_face(place, hash_)
    place.raw = None  # a second copy of the weights: calls that are known do without, and others read the file again
    place.data = face.data
    return place, face


def _read_face(source: Source, hash_: str, *, keep: bool = True) -> Face:
    file = source.file
    # without a hash nothing is kept, and the data needs none either
    data = data_hashes(file.reader.files, source.folder) if hash_ and file.reader.files else ()
    face = Face(hash_, file.inputs, file.outputs, file.metadata, data)
    if keep and hash_:
        remember_face(face)
    return face
