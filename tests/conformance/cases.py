"""The ONNX project's conformance cases, from the installed `onnx` package.  In: nothing.  Out: name -> model, data, tolerances."""

from __future__ import annotations

import functools
import glob
import json
import os
import pickle
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

GROUPS = ("node", "simple", "pytorch-converted", "pytorch-operator")


@dataclass(frozen=True, eq=False)
class Case:
    group: str
    name: str
    rtol: float
    atol: float
    model: Any  # a ModelProto, or the path of a file
    sets: Any  # data sets of node cases; None: beside the model

    def data(self) -> list[tuple[list[Any], list[Any]]]:
        """Inputs and expected outputs."""
        if self.sets is not None:
            return [([_array(i) for i in inputs], [_array(o) for o in outputs]) for inputs, outputs in self.sets]
        import onnx

        model = onnx.load(self.model)
        found = []
        for folder in sorted(glob.glob(os.path.join(os.path.dirname(self.model), "test_data_set*"))):
            found.append((_read(folder, "input", model.graph.input), _read(folder, "output", model.graph.output)))
        return found


def _read(folder: str, kind: str, ports: Any) -> list[Any]:
    import onnx
    from onnx import numpy_helper

    values = []
    for i in range(len(glob.glob(os.path.join(folder, f"{kind}_*.pb")))):
        with open(os.path.join(folder, f"{kind}_{i}.pb"), "rb") as file:
            raw = file.read()
        match ports[i].type.WhichOneof("value"):
            case "sequence_type":
                sequence = onnx.SequenceProto.FromString(raw)
                values.append(numpy_helper.to_list(sequence))
            case "optional_type":
                values.append(numpy_helper.to_optional(onnx.OptionalProto.FromString(raw)))
            case _:
                values.append(numpy_helper.to_array(onnx.TensorProto.FromString(raw)))
    return values


def _array(value: Any) -> Any:
    import onnx
    from onnx import numpy_helper

    match value:
        case onnx.TensorProto():
            return numpy_helper.to_array(value)
        case onnx.SequenceProto():
            return numpy_helper.to_list(value)
        case onnx.OptionalProto():
            return numpy_helper.to_optional(value)
        case list() | tuple():
            return [_array(v) for v in value]
        case np.generic():
            return np.asarray(value)
    return value


def folder() -> Path:
    """Where the cases of this version of `onnx` lie, one file each: making them takes 20 s, reading one a millisecond."""
    import onnx

    return Path(os.environ.get("JUMAR_TEST_CACHE") or Path.home() / ".cache" / "jumar-tests") / f"conformance-{onnx.__version__}"


@functools.cache
def all_names() -> list[str]:
    """Every case that has data, as `group/name`."""
    index = folder() / "index.txt"
    if not index.exists():
        _make(folder())
    return index.read_text().split()


@functools.cache
def reasons() -> dict[str, str]:
    """Cases that are not supported, and why: one `group/name: reason` a line."""
    lines = (Path(__file__).parent / "unsupported.txt").read_text().splitlines()
    return {name.strip(): why.strip() for name, _, why in (line.partition(": ") for line in lines if line and not line.startswith("#"))}


def load_case(name: str) -> Case:
    """One case."""
    group, _, short = name.partition("/")
    if group == "node":
        with open(folder() / f"{short}.pickle", "rb") as file:
            return Case(*pickle.load(file))
    from onnx.backend.test.loader import DATA_DIR

    model = os.path.join(DATA_DIR, group, short, "model.onnx")
    settings = os.path.join(DATA_DIR, group, short, "data.json")
    tolerances = json.loads(Path(settings).read_text()) if os.path.exists(settings) else {}
    return Case(group, short, tolerances.get("rtol", 1e-3), tolerances.get("atol", 1e-7), model, None)


def _make(place: Path) -> None:
    from onnx.backend.test.loader import load_model_tests

    place.mkdir(parents=True, exist_ok=True)
    names = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for group in GROUPS:
            for case in sorted(load_model_tests(kind=group), key=lambda c: c.name):
                names.append(f"{group}/{case.name}")
                if group == "node":
                    made = (group, case.name, case.rtol, case.atol, case.model, case.data_sets)
                    _write(place / f"{case.name}.pickle", pickle.dumps(made))
    _write(place / "index.txt", "\n".join(names).encode())


def _write(path: Path, data: bytes) -> None:
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_bytes(data)
    part.replace(path)


def compare(expected: Any, got: Any, rtol: float, atol: float) -> str:
    """What differs, or an empty text; the rules of onnx.backend.test.runner."""
    if isinstance(expected, list | tuple):
        if not isinstance(got, list | tuple) or len(got) != len(expected):
            return f"expected a list of {len(expected)}, got {type(got).__name__}"
        return next((d for e, g in zip(expected, got, strict=True) if (d := compare(e, g, rtol, atol))), "")
    if expected is None or got is None:
        return "" if expected is None and got is None else "one is None"
    e, g = np.asarray(expected), np.asarray(got)
    if e.shape != g.shape:
        return f"shape {g.shape} instead of {e.shape}"
    if e.dtype.kind in "OUS":
        return "" if np.array_equal(e.astype(object), g.astype(object)) else f"texts differ: {g.ravel()[:4]} instead of {e.ravel()[:4]}"
    if e.dtype != g.dtype:
        return f"dtype {g.dtype} instead of {e.dtype}"
    if e.dtype.kind == "V" or e.dtype.name not in np.sctypeDict:
        if e.dtype.name == "bfloat16":
            rtol = max(rtol, 2**-6)
        e, g = e.astype(np.float32), g.astype(np.float32)
    try:
        np.testing.assert_allclose(g, e, rtol=rtol, atol=atol)
    except AssertionError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return "; ".join(lines[1:4])
    return ""
