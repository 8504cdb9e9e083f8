"""The twin under a script: what ran while the script asked for an Ascend NPU, and what such an NPU would have taken.

In: `set_context(device_target="Ascend")` on a machine without one (`start`), pieces of captured functions as they run (segment.py), and single operators
(engine.py).  Out: `watched()`, each graph with its number of runs; a report asks `compiler.forecast` for its time.  Values are computed on this CPU, always.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jumar.base import Array, config, event, type_of
from jumar.device import find_cann
from jumar.ir import Graph, Node, Op, param
from jumar.log import warning

if TYPE_CHECKING:
    from jumar.device.npu import Chip

GRAPH, OPERATOR = "graph", "operator"


@dataclass(eq=False)
class Watched:
    """A graph that ran.   kind: a piece of a captured function, or one operator of PYNATIVE mode; inputs: of its first run, where they are kept."""

    graph: Graph
    kind: str
    runs: int = 0
    inputs: tuple[Array, ...] | None = None


@dataclass
class Twin:
    """The NPU that is stood for, and what ran meanwhile.   order: single operators as they ran, the first LONGEST of them."""

    chip: Chip
    graphs: dict[object, Watched] = field(default_factory=dict)
    order: list[Watched] = field(default_factory=list)


LONGEST = 100_000
KEPT_NBYTES = 1 << 30  # inputs beyond are not kept
_KEEPS: list[bool] = [False]
TWIN: list[Twin] = []  # one, while a script asks for an Ascend NPU: engines look here at every call


def start(soc: str = "") -> None:
    """From now on what runs is watched; said once in the log.   soc: a chip's name; the setting `soc` where it is empty."""
    from jumar.device.npu import find_chip  # noqa: PLC0415  (scripts for the CPU need no chips)

    chip = find_chip(soc or config("soc"))
    if TWIN and TWIN[0].chip == chip:
        return
    first = not TWIN
    TWIN[:] = [Twin(chip)]
    event("twin", chip=chip.name)
    if first:
        cann = find_cann()
        why = f"{cann}".partition("\n")[0] + ("; Jumar has no driver for it yet" if cann.usable else "")
        warning(
            "device_target='Ascend': %s. The twin of %s (JUMAR_SOC) stands for it: values are computed on this CPU, times are predicted, "
            "nothing runs on an NPU. `jumar run --explain` reports them.", why, chip.name,
        )  # fmt: skip


def stop() -> None:
    """What runs is not watched any more; what was seen is forgotten."""
    TWIN.clear()


def keep_inputs() -> None:
    """From now on the inputs of each graph's first run are kept, so that the chip's arithmetic can be computed on them (`jumar run --numerics`)."""
    _KEEPS[0] = True


def ran(graph: Graph, received: Callable[[], Sequence[Array]]) -> None:
    """A piece of a captured function is about to run.   received: its inputs, in the order of its parameters; it may write over them."""
    seen = TWIN[0].graphs
    found = seen.get(graph)
    if found is None:
        found = seen[graph] = Watched(graph, GRAPH, inputs=_copied(received(), seen.values()) if _KEEPS[0] else None)
    found.runs += 1


def _copied(arrays: Sequence[Array], seen: Iterable[Watched]) -> tuple[Array, ...] | None:
    """Copies, while all that is kept is not too much."""
    held = sum(a.nbytes for w in seen for a in w.inputs or ())
    return tuple(a.copy() for a in arrays) if held + sum(a.nbytes for a in arrays) <= KEPT_NBYTES else None


def ran_operator(op: Op, arrays: Sequence[Array], result: Any) -> None:
    """One operator ran by itself.   result: an array or a tuple of them: its types are known now, also where they depend on values."""
    seen = TWIN[0].graphs
    results = result if isinstance(result, tuple) else (result,)
    key = (op, *[(a.shape, a.dtype) for a in (*arrays, *results)])
    found = seen.get(key)
    if found is None:
        params = tuple(param(f"x{i}", type_of(a)) for i, a in enumerate(arrays))
        types = tuple(map(type_of, results))
        node = Node(op, params, types if isinstance(result, tuple) else types[0])
        found = seen[key] = Watched(Graph(op.name, params, node.results), OPERATOR)
    found.runs += 1
    if len(TWIN[0].order) < LONGEST:
        TWIN[0].order.append(found)


def watched() -> Twin | None:
    """The twin and what ran on it; None where no script asked for one."""
    return TWIN[0] if TWIN else None
