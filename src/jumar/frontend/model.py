"""`load` and `Model`: a model file as a Python function from arrays to arrays.

In: a path, bytes or a ModelProto; arrays.  Out: arrays.  Below: importers/onnx (evaluator), compiler, runtime.

    m = jumar.load("model.onnx")
    y = m(x)
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jumar.base import ImportFault, nearest
from jumar.frontend.engines import engine
from jumar.frontend.feeds import bind, read_feed
from jumar.frontend.importers.onnx.evaluator import Evaluator, check_supported
from jumar.frontend.importers.onnx.file import OnnxFile, parse_model, read_model, read_path
from jumar.frontend.importers.onnx.port import Port


class Model:
    """A loaded model.  It may be called from several threads.   inputs, outputs: names and types, free dimensions by name."""

    def __init__(self, file: OnnxFile, target: str, threads: int | None, dims: Mapping[str, int] | None) -> None:
        self.name = file.name
        self.target = target
        self.file = file
        self.inputs: tuple[Port, ...] = file.inputs
        self.outputs: tuple[Port, ...] = file.outputs
        self.dims = dict(dims or {})
        free = {d for p in self.inputs for d in (p.shape or ()) if isinstance(d, str)}
        for name in self.dims:
            if name not in free:
                raise ImportFault(
                    f"{self.name}: dims must name free dimensions ({', '.join(sorted(free)) or 'there are none'}), got {name!r}",
                    hint=nearest(name, free), code="input-dims",
                )  # fmt: skip
        self.lock = threading.Lock()
        self.compile_graph = engine(target, threads or 0)
        self.evaluators: dict[tuple[str, ...], Evaluator] = {}

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The outputs: an array, or a tuple where there are several."""
        results = self._run(bind(self.name, self.inputs, args, named))
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, output_names: Sequence[str] | None, feeds: Mapping[str, Any]) -> list[Any]:
        """The named outputs (all for None), as ONNX Runtime's `session.run`."""
        results = dict(zip((p.name for p in self.outputs), self._run(bind(self.name, self.inputs, (), feeds)), strict=True))
        for name in output_names or ():
            if name not in results:
                raise ImportFault(
                    f"{self.name}: output must be one of {', '.join(results)}, got {name!r}", hint=nearest(name, list(results)), code="output-name"
                )
        return [results[name] for name in output_names or results]

    def _run(self, feeds: Mapping[str, Any]) -> list[Any]:
        met = {name: (size, "dims=") for name, size in self.dims.items()}
        names = tuple(p.name for p in self.inputs if p.name in feeds)
        trees = [read_feed(self.name, p, feeds[p.name], met) for p in self.inputs if p.name in feeds]
        return self.evaluator(names)(*trees)

    def evaluator(self, names: tuple[str, ...]) -> Evaluator:
        """The model as a function of the inputs given; those left out have defaults in the file."""
        with self.lock:
            if names not in self.evaluators:
                self.evaluators[names] = Evaluator(self.file.graph, names, self.compile_graph)
            return self.evaluators[names]


def load(
    source: str | os.PathLike[str] | bytes | Any, *, target: str = "interpreter", threads: int | None = None, dims: Mapping[str, int] | None = None
) -> Model:
    """A model of a file, bytes or a ModelProto.   target: cpu, or interpreter (the oracle).   dims: sizes of free dimensions."""
    file = _read(source)
    check_supported(file.graph)
    return Model(file, target, threads, dims)


def _read(source: Any) -> OnnxFile:
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        raw = read_path(name)
        return read_model(parse_model(raw, name), name, Path(name).resolve().parent, len(raw))
    if isinstance(source, bytes | bytearray | memoryview):
        return read_model(parse_model(bytes(source), "model"), "model", None, len(source))
    if hasattr(source, "opset_import") and hasattr(source, "graph"):
        return read_model(source, source.graph.name or "model", None)
    raise ImportFault(f"load: model must be a path, bytes or a ModelProto, got {type(source).__name__}", code="file-missing")
