"""Engines: what makes a graph run on a target, and what brings it back from the cache.

In: a target's name.  Out: an `Engine` for the evaluator.  `cpu` compiles to machine code; `interpreter` runs the operators' references: the oracle.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from jumar.base import Array, ImportFault, choices_key, code_settings, config, nearest
from jumar.device import Target, host
from jumar.frontend.importers.onnx.plan import Executable, Interpreted
from jumar.runtime import Instance, Program, pieces
from jumar.runtime import load as load_program

if TYPE_CHECKING:
    from jumar.compiler import Compiled
    from jumar.ir import Graph


@dataclass(frozen=True, eq=False)
class Interpreter:
    """The oracle: node by node, in NumPy."""

    threads: int = 0
    identity: str = ""  # nothing is kept on disk: there is nothing to compile

    def compile(self, graph: Graph) -> Executable:
        return Interpreted(graph)

    def dump(self, executable: Executable) -> list[bytes | memoryview] | None:
        return None

    def restore(self, raw: memoryview) -> Executable:
        raise ImportFault("interpreter: nothing is kept on disk: this is our bug", code="our-bug")


@dataclass(frozen=True, eq=False)
class Native:
    """A Program, ready to run.   compiled: the report of its making; None when it came from the cache."""

    program: Program
    instance: Instance
    compiled: Compiled | None = None

    def run(self, arrays: Sequence[Array], *, known: bool = False) -> list[Array]:
        return self.instance.run(arrays, known=known)


@dataclass(frozen=True, eq=False)
class Cpu:
    """Machine code for the CPU that this is."""

    threads: int = 0

    @property
    def target(self) -> Target:
        """This machine with as many cores as threads will run."""
        found = host(self.threads or config("threads"))
        if found.architecture == "x86_64" and not found.has("avx2"):
            _say_narrow(found.cpu)
        return found

    @property
    def identity(self) -> str:
        """What the code depends on beside the graph."""
        return f"cpu {self.target} {code_settings()} {choices_key()}"

    def compile(self, graph: Graph) -> Executable:
        from jumar.compiler import compile  # noqa: PLC0415  (0.1 s and more: a model from the cache never needs it)

        compiled = compile(graph, self.target, threads=self.threads)
        return Native(compiled.program, compiled.instance(threads=self.threads), compiled)

    def dump(self, executable: Executable) -> list[bytes | memoryview] | None:
        return pieces(executable.program) if isinstance(executable, Native) else None

    def restore(self, raw: memoryview) -> Executable:
        program = load_program(raw, verify=False)  # the store has looked at its checksum
        return Native(program, Instance(program, threads=self.threads, host=_host_function if program.host_steps else None))


@cache
def _say_narrow(cpu: str) -> None:
    """Says once that models run, but slowly."""
    why = f"JUMAR_CPU={cpu} promises no AVX2 (JUMAR_CPU_FEATURES=+avx,+avx2,+fma would)" if config("cpu") else f"{cpu} has no AVX2"
    warnings.warn(f"cpu: {why}, so models run in vectors of 128 bits, at a quarter of the speed or less", RuntimeWarning, stacklevel=2)


def _host_function(op: str) -> Callable[..., Any]:
    from jumar.compiler import host_function  # noqa: PLC0415  (see Cpu.compile)

    return host_function(op)


Engine = Interpreter | Cpu
ENGINES: dict[str, Callable[[int], Engine]] = {"interpreter": Interpreter, "cpu": Cpu}
OTHER_DEVICES = ("gpu", "npu", "tpu", "xpu", "mps", "cuda", "rocm", "metal", "vulkan", "ascend")


def engine(target: str, threads: int) -> Engine:
    """The engine of a target."""
    if target not in ENGINES:
        raise ImportFault(
            f"load: target must be one of {', '.join(ENGINES)}, got {target!r}", hint=_target_hint(target), code="target-unknown"
        )
    return ENGINES[target](threads)


def _target_hint(target: str) -> str:
    """A misspelt name is put right; another device is no misspelling: `gpu` is as near to `cpu` as `cup` is."""
    near = "" if target.lower() in OTHER_DEVICES else nearest(target, list(ENGINES))
    return near or "models run on the processor that this is (target='cpu') or, slowly, in NumPy (target='interpreter')"
