"""What a new process pays before its first result, with an empty cache and again from a full one.

In: a model and inputs.  Out: seconds, each measured in a process of its own: reading the file, import, passes, kernels, linking and the first
run, less what a later run takes.  The import of Jumar itself is not counted.  This file is also that process: `python -m ... MODEL INPUTS.npz`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from jumar.base import Array, ToolError
from jumar.frontend import load

_PREFIX = "jumar-cold-"


def compile_times(model: Path, inputs: Mapping[str, Array], *, threads: int, cache: bool = True) -> tuple[float, float | None]:
    """Seconds cold and from the cache; the latter None where no cache is used."""
    remove_leftovers(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-") as folder:
        feeds = Path(folder) / "inputs.npz"
        with feeds.open("wb") as file:
            np.savez(file, **dict(zip(_names(inputs), map(_plain, inputs.values()), strict=True)))  # type: ignore[arg-type]
        environment = os.environ | {"JUMAR_CACHE_DIR": str(Path(folder) / "cache"), "JUMAR_CACHE": "1", "JUMAR_SAVE_GRAPHS": ""}
        environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
        environment.pop("MS_DEV_SAVE_GRAPHS", None)
        names = json.dumps(list(inputs))
        command = [sys.executable, "-m", "jumar.tools.enable.compile_time", str(model), str(feeds), names, str(threads)]
        cold = _seconds(command, environment)
        return cold, _seconds(command, environment) if cache else None


def is_alive(process: int) -> bool:
    """Whether a process of that number runs."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def remove_leftovers(folder: Path) -> None:
    """Cold caches of processes that were killed."""
    for path in folder.glob(f"{_PREFIX}*-*"):
        number = path.name.removeprefix(_PREFIX).partition("-")[0]
        if number.isdigit() and not is_alive(int(number)):
            shutil.rmtree(path, ignore_errors=True)  # another user's stay: we cannot


def _plain(array: Array) -> Array:
    """Text in a form that needs no pickle."""
    return array.astype(np.str_) if array.dtype == object else array


def _names(inputs: Mapping[str, Array]) -> list[str]:
    return [f"a{i}" for i in range(len(inputs))]  # any name may stand in a model; not so in an archive


def _seconds(command: list[str], environment: Mapping[str, str]) -> float:
    done = subprocess.run(command, capture_output=True, text=True, env=dict(environment), check=False)
    if done.returncode:
        raise ToolError(f"enable: the process that measures compile time must end well, got {done.stderr.strip()[-600:]}", code="our-bug")
    return float(json.loads(done.stdout.splitlines()[-1]))


def first_result(model: Path, inputs: Mapping[str, Array], *, threads: int) -> float:
    """Seconds from nothing to the first result, less a later run."""
    start = time.perf_counter()
    loaded = load(model, target="cpu", threads=threads or None)
    loaded.run(None, inputs)
    first = time.perf_counter()
    loaded.run(None, inputs)
    return (first - start) - (time.perf_counter() - first)


if __name__ == "__main__":
    feeds = np.load(sys.argv[2])
    arrays = {name: feeds[f"a{i}"] for i, name in enumerate(json.loads(sys.argv[3]))}
    given = {name: a.astype(object) if a.dtype.kind == "U" else a for name, a in arrays.items()}
    sys.stdout.write(json.dumps(first_result(Path(sys.argv[1]), given, threads=int(sys.argv[4]))) + "\n")
