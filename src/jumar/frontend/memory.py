"""Will a Program fit into memory: asked before anything is allocated.

In: a compiled Program, and its plan where it was just made.  Out: nothing, or an error with the largest values of the plan and what helps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumar.base import RuntimeFault
from jumar.device import free_nbytes
from jumar.runtime import Program

if TYPE_CHECKING:
    from jumar.compiler import Plan

SPARED = 64 << 20  # left to Python and the rest of the process


class OutOfMemory(RuntimeFault, MemoryError):
    """A Program that needs more memory than there is."""


def needed_nbytes(program: Program) -> int:
    """Arena, scratch and fresh outputs; inputs and constants are there already."""
    fresh = sum(p.type.nbytes for i, p in enumerate(program.outputs) if i not in {o for o, _ in program.updates})
    return program.arena_nbytes + program.scratch_nbytes + fresh


def check_fits(program: Program, plan: Plan | None) -> None:
    """Raises OutOfMemory where the Program needs more than is free."""
    needed, free = needed_nbytes(program), free_nbytes()
    if not free or needed + SPARED <= free:
        return
    largest = "" if plan is None else "".join(f"\n    {_shown(life.nbytes):>10}  {life.label or 'temporary'}" for life in plan.largest(10))
    raise OutOfMemory(
        f"run: {program.name} must fit into {_shown(free)} of free memory, got {_shown(needed)} (arena {_shown(program.arena_nbytes)})"
        + (f"; the largest values of the plan:{largest}" if largest else ""),
        hint="a smaller batch, gradient accumulation, or float16 (amp_level='O2') need less",
        code="out-of-memory",
    )


def _shown(nbytes: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if nbytes < 1024:
            return f"{nbytes:.4g} {unit}"
        nbytes /= 1024
    return f"{nbytes:.4g} GiB"
