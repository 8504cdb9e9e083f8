"""How far the compiled model is from the reference: the graph as captured, run node by node on NumPy.

In: the captured graph and the compiled outputs.  Out: errors of each output; where one is out of tolerance, the first node that drifts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from jumar.base import Array, type_of
from jumar.ir import Constant, Get, Graph, Node, Param, interpret
from jumar.tools.enable.facts import Drift, NumericsFact, OutputError

Run = Callable[[Graph, Sequence[Array]], list[Array]]
TOLERANCE = {"f64": (1e-6, 1e-8), "f32": (1e-3, 1e-4), "f16": (2e-2, 2e-3), "bf16": (5e-2, 2e-2)}  # relative, absolute
WATCHED_NBYTES = 1 << 30  # values kept for the search of the first drift


def compare(name: str, got: Array, wanted: Array) -> OutputError:
    """The errors of one output.   Floats within rtol and atol of their type, everything else exactly."""
    kind = type_of(wanted)
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return OutputError(name, f"{type_of(got)}, not {kind}", float("inf"), float("inf"), False)
    if not wanted.size:
        return OutputError(name, str(kind), 0.0, 0.0, True)
    if not kind.dtype.is_float:
        same = bool(np.array_equal(got, wanted))
        worst = 0.0 if same or kind.dtype.kind not in "iu" else float(np.abs(got.astype(np.float64) - wanted.astype(np.float64)).max())
        return OutputError(name, str(kind), worst, 0.0 if same else 1.0, same)
    rtol, atol = TOLERANCE.get(kind.dtype.name, (1e-1, 1e-1))
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    both = np.isfinite(b) & np.isfinite(a)
    agree = both | (np.isnan(a) & np.isnan(b)) | (a == b)  # infinities of one sign, NaN where NaN belongs
    error, size = np.abs(a[both] - b[both]), np.abs(b[both])
    max_abs = float(error.max(initial=0.0))
    floor = max(1e-4 * float(size.max(initial=0.0)), 1e-12)  # near zero a relative error says nothing
    max_rel = float((error / (size + floor)).max(initial=0.0))
    within = bool(agree.all() and (error <= atol + rtol * size).all())
    return OutputError(name, str(kind), max_abs if agree.all() else float("inf"), max_rel if agree.all() else float("inf"), within)


def verify(graph: Graph, inputs: Sequence[Array], names: Sequence[str], outputs: Sequence[Array], run: Run) -> NumericsFact:
    """Compares the outputs with the reference's.   run: compiles and runs a graph, to look at inner values where they differ."""
    start = time.perf_counter()
    wanted = interpret(graph, inputs)
    took = time.perf_counter() - start
    errors = tuple(compare(n, g, w) for n, g, w in zip(names, outputs, wanted, strict=True))
    drift = None if all(e.within for e in errors) else first_drift(graph, inputs, run)
    return NumericsFact(
        "the NumPy reference of each operator, node by node", "f32: rtol 1e-3, atol 1e-4; integers exactly", errors, drift, took
    )


def first_drift(graph: Graph, inputs: Sequence[Array], run: Run) -> Drift | None:
    """The first node out of tolerance: by halving, since every look compiles the graph up to there."""
    nodes = [n for n in graph.nodes if not isinstance(n.op, Param | Constant | Get) and not isinstance(n.type, tuple)]
    values: dict[Node, Array] = {}
    held = 0

    def watch(node: Node, value: object) -> None:
        nonlocal held
        if isinstance(value, np.ndarray) and node in wanted_set and held < WATCHED_NBYTES:
            values[node] = value
            held += value.nbytes

    wanted_set = set(nodes)
    interpret(graph, inputs, watch=watch)
    candidates = [n for n in nodes if n in values]

    def error_at(node: Node) -> OutputError:
        piece = Graph(graph.name, graph.params, (node,), ())
        (got,) = run(piece, inputs)
        return compare(str(node.op), got, values[node])

    low, high, found = 0, len(candidates) - 1, None
    while low <= high:
        middle = (low + high) // 2
        error = error_at(candidates[middle])
        if error.within:
            low = middle + 1
        else:
            found, high = (candidates[middle], error), middle - 1
    if found is None:
        return None
    node, error = found
    return Drift(str(node.op), str(node.loc), error.max_abs, error.max_rel)
