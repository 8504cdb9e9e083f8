"""Every stage of a compile as files, numbered in order: what JUMAR_SAVE_GRAPHS (or MindSpore's MS_DEV_SAVE_GRAPHS) asks for.

In: graphs, kernels and the Program as compile.py makes them.  Out: `00_capture.graph`, one file after each pass, `constants.npz` (once, by
digest), `kernels/*.kernel` and `*.ll`, `program.txt`.  `load_graph` reads a stage back, so that a compile can go on from an edited one.
"""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes  # noqa: F401  (registers the names of narrow types with NumPy)
import numpy as np

from jumar.base import Array
from jumar.compiler.assemble import Assembled
from jumar.device import Target
from jumar.ir import Graph, large_constants, parse_graph, print_graph
from jumar.kernel import emit


class Saver:
    """Writes stages into a folder; does nothing without one."""

    def __init__(self, folder: str | Path | None) -> None:
        self.folder = Path(folder) if folder else None
        self.count = 0
        self.constants: dict[str, Array] = {}

    def graph(self, name: str, graph: Graph) -> None:
        """Writes a graph as the next file."""
        if self.folder is None:
            return
        folder = self._folder(graph.name)
        (folder / f"{self.count:02}_{name}.graph").write_text(print_graph(graph))
        self.count += 1
        before = len(self.constants)
        self.constants |= large_constants(graph)
        if len(self.constants) > before:
            _save_constants(folder / "constants.npz", self.constants)

    def assembled(self, assembled: Assembled, target: Target) -> None:
        """Writes kernels, their LLVM IR, the Program and the memory plan."""
        if self.folder is None:
            return
        folder = self._folder(assembled.program.name)
        kernels = folder / f"{self.count:02}_kernels"
        kernels.mkdir(exist_ok=True)
        for at, kernel in enumerate(assembled.kernels):
            (kernels / f"{at:03}_{kernel.name}.kernel").write_text(str(kernel) + "\n")
            (kernels / f"{at:03}_{kernel.name}.ll").write_text(emit(kernel, target))
        (folder / f"{self.count + 1:02}_program.txt").write_text(str(assembled.program) + "\n")
        plan = assembled.plan
        lines = [f"arena {plan.nbytes} B, bound {plan.bound} B, sum {plan.total_nbytes} B, {plan.method}"]
        lines += [
            f"{life.first:5}..{life.last:<5} at {at:>10} {life.nbytes:>10} B  {life.label}"
            for life, at in zip(plan.lives, plan.offsets, strict=True)
        ]
        (folder / f"{self.count + 2:02}_memory.txt").write_text("\n".join(lines) + "\n")

    def _folder(self, name: str) -> Path:
        assert self.folder is not None, "asked only where there is a folder"
        folder = self.folder / re.sub(r"[^\w.-]", "_", name)
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def _save_constants(path: Path, constants: dict[str, Array]) -> None:
    """Element types that NumPy does not know by name are kept as bytes, with their type in the key."""
    plain = {}
    for digest, array in constants.items():
        native = array.dtype.kind in "fiubcO" and array.dtype.isbuiltin == 1
        plain[digest if native else f"{digest}:{array.dtype.name}"] = array if native else array.view(np.dtype(f"u{array.dtype.itemsize}"))
    np.savez(path, **plain)  # type: ignore[arg-type]


def load_constants(path: str | Path) -> dict[str, Array]:
    """The constants of saved graphs, by digest."""
    with np.load(path) as files:
        found: dict[str, Array] = {}
        for key in files.files:
            digest, _, dtype = key.partition(":")
            found[digest] = files[key].view(np.dtype(dtype)) if dtype else files[key]
    return found


def load_graph(path: str | Path) -> Graph:
    """The graph of a saved stage, with the constants beside it."""
    path = Path(path)
    constants = path.with_name("constants.npz")
    return parse_graph(path.read_text(), load_constants(constants) if constants.exists() else None)
