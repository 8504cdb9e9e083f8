"""`jumar run-package`: runs a compiled package; of Jumar it needs base, device and runtime, as a deployed model does.

In: model.jmr (or the folder that `jumar enable` wrote) and inputs from files.  Out: the outputs' types and ranges, or .npy files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np

from jumar.base import Array, StackError, TensorType, ToolError, config, nearest, type_of
from jumar.runtime import Package, load_package, measure


@click.command()
@click.argument("package", type=click.Path(path_type=Path))
@click.option(
    "--input", "-i", "inputs", multiple=True, metavar="NAME=FILE.npy", help="An input from a file; one that is not given is random."
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder into which each output is written as NAME.npy.")
@click.option("--threads", type=click.IntRange(0), default=0, help="Threads; 0 means the cores that this process may use.")
@click.option("--time", "timed", is_flag=True, help="Say what one run takes.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(package: Path, inputs: tuple[str, ...], out: Path | None, threads: int, timed: bool, as_json: bool) -> None:
    """Run PACKAGE (a .jmr file, or a folder written by `jumar enable`) once and show its outputs."""
    loaded = load_package(_file(package))
    given = dict(map(_read, inputs))
    ports = {p.name: p.type for p in loaded.programs[0].inputs}
    for name in given:
        if name not in ports:
            raise ToolError(
                f"--input: name must be one of {', '.join(ports)}, got {name!r}", hint=nearest(name, list(ports)), code="input-name"
            )
    arrays = given | {name: _random(type_) for name, type_ in _ports_that_fit(loaded, given).items() if name not in given}
    threads = threads or config("threads")
    try:
        outputs = loaded.run(arrays, threads=threads)
    except StackError as error:
        if error.code == "run-inputs":
            error.hint = _way_out(ports, given)
        raise
    time_ms = measure(lambda: loaded.run(arrays, threads=threads), 1.0) * 1000 if timed else None
    files = _write(outputs, out) if out else {}
    if as_json:
        rows = {name: {"type": str(type_of(a)), "file": files.get(name), **_range(a)} for name, a in outputs.items()}
        click.echo(
            json.dumps({"package": str(package), "outputs": rows, "time_ms": time_ms, "random_inputs": sorted(set(arrays) - set(given))})
        )
        return
    for name in sorted(set(arrays) - set(given)):
        click.echo(f"input {name}: random, seed 0", err=True)
    for name, array in outputs.items():
        spread = ", ".join(f"{k} {v:.6g}" for k, v in _range(array).items())
        click.echo(f"{name}: {type_of(array)}   {spread}" + (f"   -> {files[name]}" if name in files else ""))
    if time_ms is not None:
        click.echo(f"one run: {time_ms:.3f} ms (median)")


def _way_out(ports: Mapping[str, TensorType], given: Mapping[str, Array]) -> str:
    """What to do about arrays that no program of the package takes: convert, or compile for them."""
    for name, array in given.items():
        if type_of(array).dtype != ports[name].dtype:
            return f"convert {name}: numpy.save(path, array.astype({ports[name].dtype.numpy.name!r}))"
    shapes = " ".join(f"--input {name}={','.join(map(str, a.shape)) or 'scalar'}" for name, a in given.items())
    return f"a package holds the sizes that it was compiled for; for these: jumar enable MODEL.onnx {shapes} (or --dim NAME=NUMBER)"


def _file(package: Path) -> Path:
    """The package's file: itself, or the one in a folder that `jumar enable` wrote."""
    if not package.exists():
        raise ToolError(f"run-package: {package} must be a .jmr file or a folder with one, got nothing there", code="package-absent")
    if package.is_dir() and not (package / "model.jmr").is_file():
        raise ToolError(
            f"run-package: {package} must hold model.jmr, got a folder without it",
            hint="report.html in it says why `jumar enable` wrote none: operators on the host, or a model in several pieces",
            code="package-absent",
        )
    return package / "model.jmr" if package.is_dir() else package


def _read(text: str) -> tuple[str, Array]:
    name, _, file = text.rpartition("=")
    if not name:
        raise ToolError(f"--input: must be NAME=FILE.npy, got {text!r}", hint="for example --input x=image.npy", code="input-option")
    try:
        array = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ToolError(f"--input: {file} must be a NumPy file (.npy) that can be read, got {error}", code="input-file") from error
    if not isinstance(array, np.ndarray):
        raise ToolError(f"--input: {file} must hold one array (.npy), got an archive", code="input-file")
    return name, array


def _ports_that_fit(package: Package, given: Mapping[str, Array]) -> dict[str, TensorType]:
    """Inputs of the program that the given arrays fit, of the first where none does (the run then says what is wrong)."""
    for program in package.programs:
        ports = {p.name: p.type for p in program.inputs}
        if all(type_of(a) == ports[n] for n, a in given.items()):
            return ports
    return {p.name: p.type for p in package.programs[0].inputs}


def _random(type_: TensorType) -> Array:
    rng = np.random.default_rng(0)
    if type_.dtype.is_float:
        return np.asarray(rng.standard_normal(type_.dims)).astype(type_.dtype.numpy)
    return rng.integers(0, 2, type_.dims).astype(type_.dtype.numpy)


def _range(array: Array) -> dict[str, float]:
    if not array.size or array.dtype.kind not in "fiub":
        return {}
    values = array.astype(np.float64)
    return {"min": float(values.min()), "max": float(values.max()), "mean": float(values.mean())}


def _write(outputs: Mapping[str, Array], folder: Path) -> dict[str, str]:
    """Each output to a file of its own, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, Any] = {}
    for name, array in outputs.items():
        path = folder / f"{''.join(c if c.isalnum() or c in '._-' else '_' for c in name)}.npy"
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        with temporary.open("wb") as file:
            np.save(file, array)
        temporary.replace(path)
        files[name] = str(path)
    return files
