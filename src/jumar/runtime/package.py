"""A deployed model: one `.jmr` file with Programs for the input types that were asked for, and the pool's code.

In: Programs (compiler, `jumar deploy`).  Out: the file, and its run on a machine that has no compiler:
`python -m jumar.runtime model.jmr inputs.npz`.

The file is a ZIP without compression: `manifest.json` to read, `program-N` (program.py's form), `pool` (native code of the pool).
"""

from __future__ import annotations

import json
import platform
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from jumar.base import Array, RuntimeFault, TensorType, type_of
from jumar.device import missing_features
from jumar.runtime.executor import Instance
from jumar.runtime.native import pool_object, ship
from jumar.runtime.program import Program, dump, load

FORMAT = 3  # 2: steps have faults; 3: programs have updates


@dataclass(frozen=True)
class Package:
    """A model as Programs, one for each tuple of input types."""

    name: str
    programs: tuple[Program, ...]
    architecture: str
    pool: bytes = b""

    @cached_property
    def _instances(self) -> dict[tuple[TensorType, ...], Instance]:
        return {}

    def run(self, inputs: Sequence[Array] | Mapping[str, Array], *, threads: int = 0) -> dict[str, Array]:
        """The outputs by name.   inputs: in order, or by name."""
        names = [p.name for p in self.programs[0].inputs]
        if isinstance(inputs, Mapping):
            missing = [n for n in names if n not in inputs]
            if missing:
                raise RuntimeFault(
                    f"package {self.name}: inputs must be {', '.join(names)}, got {', '.join(inputs) or 'none'}", code="run-inputs"
                )
            inputs = [inputs[n] for n in names]
        arrays = [np.asarray(a) for a in inputs]
        key = tuple(type_of(a) for a in arrays)
        program = next((p for p in self.programs if tuple(port.type for port in p.inputs) == key), None)
        if program is None:
            known = "; ".join(", ".join(f"{port.name}: {port.type}" for port in p.inputs) for p in self.programs)
            got = ", ".join(map(str, key))
            raise RuntimeFault(
                f"package {self.name}: inputs must be one of [{known}], got [{got}]",
                hint="make a package for these shapes, too: jumar enable ... --dim, or Model.package(dims=...)",
                code="run-inputs",
            )
        if key not in self._instances:
            self._instances[key] = Instance(program, threads=threads)
        outputs = self._instances[key].run(arrays)
        return {port.name: array for port, array in zip(program.outputs, outputs, strict=True)}


def save_package(path: str | Path, programs: Sequence[Program], *, name: str = "", architecture: str = "") -> Path:
    """Writes the package; host steps are refused, since they need Python definitions that a deployment does not have."""
    path = Path(path)
    if not programs:
        raise RuntimeFault("package: programs must be at least one, got none", code="package-programs")
    host = sorted({step.op for program in programs for step in program.host_steps})
    if host:
        raise RuntimeFault(
            f"package: every step must have native code, got host steps {', '.join(host)}",
            hint="`jumar enable` names the operators that lack it",
            code="host-step",
        )
    architecture = architecture or (programs[0].target.split("-")[0] or platform.machine())
    manifest = {
        "format": FORMAT,
        "name": name or programs[0].name,
        "architecture": architecture,
        "target": programs[0].target,
        "programs": [
            {
                "inputs": {p.name: str(p.type) for p in program.inputs},
                "outputs": {p.name: str(p.type) for p in program.outputs},
                "steps": len(program.steps),
                "kernels": len(program.kernels),
                "constants_nbytes": program.constants.nbytes,
                "arena_nbytes": program.arena_nbytes,
            }
            for program in programs
        ],
    }
    temporary = path.with_name(path.name + ".tmp")
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as file:
        file.writestr("manifest.json", json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
        file.writestr("pool", pool_object(architecture))
        for i, program in enumerate(programs):
            file.writestr(f"program-{i}", dump(program))
    temporary.replace(path)
    return path


def load_package(path: str | Path) -> Package:
    """The package in a file; one that is damaged, or made for another machine, is refused with the reason."""
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as file:  # it checks a checksum of each part as it reads
            manifest = json.loads(file.read("manifest.json"))
            if manifest["format"] != FORMAT:
                raise RuntimeFault(
                    f"package {path.name}: format must be {FORMAT}, got {manifest['format']}",
                    hint="make it again with jumar enable",
                    code="package-format",
                )
            architecture, target = manifest["architecture"], manifest["target"]
            if architecture != platform.machine():
                raise RuntimeFault(f"package {path.name}: machine must be {architecture}, got {platform.machine()}", code="package-machine")
            lacking = missing_features(target.split("/")[-1])
            if lacking:
                raise RuntimeFault(
                    f"package {path.name}: the CPU must have {', '.join(lacking)}, which it lacks",
                    hint="make it with JUMAR_CPU=x86-64-v2, or on this CPU",
                    code="package-machine",
                )
            programs = tuple(load(file.read(f"program-{i}"), verify=False) for i in range(len(manifest["programs"])))
            native = file.read("pool")
            name = manifest["name"]
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        raise RuntimeFault(
            f"package: {path} must be a whole .jmr file, got {error}", hint="make it again with jumar enable", code="package-damaged"
        ) from error
    ship(native)
    return Package(name, programs, architecture, native)


def run_package(path: str | Path, inputs: Sequence[Array] | Mapping[str, Array], *, threads: int = 0) -> dict[str, Array]:
    """Loads a package and runs it once."""
    return load_package(path).run(inputs, threads=threads)
