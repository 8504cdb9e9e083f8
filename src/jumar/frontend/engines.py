"""Engines: what makes a graph run on a target.  In: a target's name.  Out: a function from graphs to executables, for the evaluator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jumar.base import Array, ImportFault, nearest
from jumar.frontend.importers.onnx.plan import Compile, Executable
from jumar.ir import Graph, interpret


@dataclass(frozen=True, eq=False)
class Interpreted:
    """A graph on the operators' NumPy references: the oracle."""

    graph: Graph

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        return interpret(self.graph, arrays)


def _interpreter(threads: int) -> Compile:
    return Interpreted


ENGINES: dict[str, Callable[[int], Compile]] = {"interpreter": _interpreter}


def engine(target: str, threads: int) -> Compile:
    """The compiler of a target."""
    if target not in ENGINES:
        raise ImportFault(f"load: target must be one of {', '.join(ENGINES)}, got {target!r}", hint=nearest(target, list(ENGINES)), code="target-unknown")
    return ENGINES[target](threads)


__all__ = ["ENGINES", "Executable", "engine"]
