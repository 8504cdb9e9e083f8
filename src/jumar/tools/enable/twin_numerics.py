"""The chip's arithmetic on a model, computed on this CPU: which node overflows, which loses accuracy.

In: the graph of each piece as captured, the inputs that it ran on, a chip and a precision.  Out: `TwinNumerics`; npu_numerics.py has the words.
"""

from __future__ import annotations

from collections.abc import Sequence

from jumar.base import Array
from jumar.compiler import NodeNumerics, OutputNumerics, Precision, prepared_graph, run_precision
from jumar.device.npu import Chip
from jumar.ir import Graph
from jumar.tools.enable.npu_numerics import candidate_text, numerics_lines
from jumar.tools.enable.twin_facts import TwinNumerics, ValueNumerics

SHOWN_NODES = 10


def chip_numerics(graphs: Sequence[Graph], inputs: Sequence[Sequence[Array]], chip: Chip, precision: Precision) -> TwinNumerics:
    """The findings of all pieces.   inputs: of each piece, in the order of its parameters."""
    found = [run_precision(prepared_graph(graph), arrays, chip, precision) for graph, arrays in zip(graphs, inputs, strict=True)]
    return TwinNumerics(
        summary="; ".join(dict.fromkeys(f.summary for f in found)),
        within=all(f.within for f in found),
        arithmetic="; ".join(dict.fromkeys(f.mode for f in found)),
        outputs=tuple(_output(o) for f in found for o in f.outputs),
        nodes=tuple(_node(n) for f in found for n in f.worst[:SHOWN_NODES]),
        advice=tuple(line for f in found for line in (*map(candidate_text, f.candidates), *f.advice)),
        lines=tuple(line for f in found for line in numerics_lines(f)),
        time_s=sum(f.took_s for f in found),
    )


def _output(o: OutputNumerics) -> ValueNumerics:
    said = []
    if o.broken:
        said.append("not one element is finite" if o.lost else f"{o.broken} elements are not finite")
    if o.agreement is not None and not o.lost:
        said.append(f"the largest element of a row stays in {100 * o.agreement:.1f} % of the rows")
    if o.wrong:
        said.append(f"{o.wrong} elements differ")
    return ValueNumerics(o.name, o.type, "", o.error, o.max_error, "; ".join(said))


def _node(n: NodeNumerics) -> ValueNumerics:
    said = []
    if n.overflows:
        inside = f", at its step {n.step}" if n.step else ""
        said.append(f"{n.overflows} of {n.size} elements overflow: it reaches {n.largest:.3g}{inside}{', a mask' if n.mask else ''}")
    elif 1 < n.grown < 1e4:
        said.append(f"makes the error {n.grown:.1f} times as large")
    if n.zeros:
        said.append(f"{n.zeros} elements become 0")
    return ValueNumerics(n.label, n.dtype, n.place, n.error, n.max_error, "; ".join(said))
