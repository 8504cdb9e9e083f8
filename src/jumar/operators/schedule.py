"""What a schedule returns: tasks, which are steps whose buffers have no place in memory yet.

In: a node of the final graph and a target.  Out: `Lowered`, for compiler/lower.py, which strings the tasks of all nodes together;
compiler/plan.py then gives every value and temporary its offset, and compiler/assemble.py writes the Program.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from jumar.base import Array
from jumar.device import Target
from jumar.ir import Node, Op
from jumar.kernel import Kernel


@dataclass(frozen=True, eq=False)
class Temp:
    """Memory that the tasks of one node share and nobody else reads.   nbytes: size; 64-byte aligned."""

    nbytes: int
    label: str = "temp"


@dataclass(frozen=True, eq=False)
class Packed:
    """A constant in the form that a kernel wants (packed weights, an offset table); 64-byte aligned."""

    array: Array
    label: str = "packed"


@dataclass(frozen=True)
class Place:
    """Where an argument points: the value of a node, result `result` where it has several, plus bytes."""

    node: Node
    nbytes_offset: int = 0
    result: int = 0


@dataclass(frozen=True)
class TempPlace:
    temp: Temp
    nbytes_offset: int = 0


TaskArg = int | Place | TempPlace | Packed | Kernel  # a Kernel: the address of its code, for micro-kernels


@dataclass(frozen=True)
class Pitched:
    """A result whose rows may as well lie further apart, as columns of a wider value.

    arg: points to it; steps: the arguments that say how far rows lie apart, in elements of `nbytes` bytes; run_nbytes: what lies together
    whatever those say.
    """

    arg: int
    steps: tuple[int, ...]
    run_nbytes: int
    nbytes: int

    def spread(self, args: tuple[TaskArg, ...], row_nbytes: int, pitch_nbytes: int) -> tuple[TaskArg, ...] | None:
        """The arguments for rows of `row_nbytes` that lie `pitch_nbytes` apart; None where its steps are no rows."""
        steps = [args[s] for s in self.steps]
        if self.run_nbytes > row_nbytes or pitch_nbytes % self.nbytes:
            return None
        if any(not isinstance(s, int) or s * self.nbytes % row_nbytes for s in steps):
            return None
        new = {at: s * self.nbytes // row_nbytes * pitch_nbytes // self.nbytes for at, s in zip(self.steps, steps, strict=True)}  # type: ignore[operator]
        return tuple(new.get(i, a) for i, a in enumerate(args))


@dataclass(frozen=True)
class Task:
    """One step: `kernel` on `args` (in the order of its parameters), in `chunks` pieces handed out to threads.

    reads, writes: which args; whatever is not written is read.  inplace: pairs (written arg, read arg) that may share memory because
    element i of the first depends on element i of the second only.  scratch_nbytes: per-thread memory that the kernel uses.
    pitched: results whose rows may lie further apart.
    fault: what must hold, for the error when the kernel has stored its step in the run's fault word (`Builder.fault_word`).
    """

    kernel: Kernel
    args: tuple[TaskArg, ...]
    writes: tuple[int, ...]
    chunks: int = 1
    inplace: tuple[tuple[int, int], ...] = ()
    scratch_nbytes: int = 0
    flops: int = 0
    nbytes: int = 0
    label: str = ""
    fault: str = ""
    pitched: tuple[Pitched, ...] = ()


@dataclass(frozen=True)
class Lowered:
    """The tasks of a node; or `alias`: the node is the memory of its input (reshape), and no task runs."""

    tasks: tuple[Task, ...] = ()
    alias: Place | None = None


Schedule = Callable[[Node, Target], Lowered | None]  # None: this schedule does not cover these types

_SCHEDULES: dict[str, dict[type[Op], Schedule]] = {"cpu": {}}


def schedule(target: str, *ops: type[Op]) -> Callable[[Schedule], Schedule]:
    """Registers the schedule of operators (or of a whole family) for a target."""

    def register(function: Schedule) -> Schedule:
        for op in ops:
            _SCHEDULES[target][op] = function
        return function

    return register


@cache
def schedules(target: str) -> Mapping[type[Op], Schedule]:
    """The schedules of a target, by operator or family; empty for one that has none.

    The files of its folder are read now, all of them: half of what an import of the operators took, and only what makes code needs them.
    """
    if target not in _SCHEDULES:
        return {}
    room = importlib.import_module(f"{__package__}.{target}")
    for module in pkgutil.iter_modules(room.__path__):
        importlib.import_module(f"{room.__name__}.{module.name}")
    return _SCHEDULES[target]


def find_schedule(target: str, op: Op) -> Schedule | None:
    """The schedule of an operator: its own, or its family's."""
    table: Mapping[Any, Schedule] = schedules(target)
    return next((table[c] for c in type(op).__mro__ if c in table), None)
