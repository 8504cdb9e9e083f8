"""What a chip's arithmetic does to a model: which node overflows, which loses accuracy, and which to keep in fp32.

In: a graph with the casts of a precision mode (passes/precision.py), inputs, and a chip.  Out: `Findings`, plain data for reports.
Two runs side by side, node by node: one as the model means it, every float in fp32, and one as the chip computes it.  A node is charged
with the error that arises in it (its exact inputs, its own rounding); what it inherits and amplifies is listed apart.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from jumar.base import Array, DeviceError, IRError
from jumar.compiler.passes.precision import Precision, set_precision
from jumar.compiler.twin.findings import Findings, worst_error
from jumar.compiler.twin.remedies import advice, candidates
from jumar.compiler.twin.runs import SideBySide, output_numerics
from jumar.compiler.twin.values import is_narrow, types_of
from jumar.device.npu import Chip, arithmetic
from jumar.ir import Constant, Graph, Node, Param
from jumar.operators import Cast


def device_numerics(
    graph: Graph,
    inputs: Sequence[Array],
    chip: Chip,
    *,
    infnan: bool | None = None,
    hf32: bool | None = None,
    steps: bool | None = None,
    original: Graph | None = None,
    trials: int = 3,
) -> Findings:
    """The findings of one run of `graph` on `inputs`, in fp32 and as `chip` computes it.

    infnan, hf32, steps: see `arithmetic`; None is what the chip does by default.  trials: how many candidates are tried by a run each.
    original: the graph before its constants were cast, whose values count as exact.
    """
    started = time.perf_counter()
    math_ = arithmetic(chip, infnan=infnan, hf32=hf32, steps=steps)
    _check(graph, chip, inputs)
    names = graph.output_names or tuple(f"output {i}" for i in range(len(graph.outputs)))
    with np.errstate(all="ignore"):  # infinities are what is looked for
        run = SideBySide(graph, math_, _originals(graph, original) if original is not None else {})
        run.go(inputs)
        outputs = tuple(
            output_numerics(n, name, e, d)
            for n, name, e, d in zip(graph.outputs, names, run.exact_outputs, run.device_outputs, strict=True)
        )
        nodes = tuple(run.found.values())
        tried = candidates(run, inputs, worst_error(outputs), trials)
        said = tuple(advice(run, nodes, chip, math_))
    return Findings(chip.name, str(math_), nodes, outputs, tried, said, time.perf_counter() - started)


def run_precision(graph: Graph, inputs: Sequence[Array], chip: Chip, precision: Precision, *, trials: int = 3) -> Findings:
    """The findings of `graph`, in the model's own types, when `chip` runs it in a precision mode."""
    narrowed_, _ = set_precision(graph, chip, precision)
    return device_numerics(narrowed_, inputs, chip, infnan=precision.infnan, hf32=precision.hf32, original=graph, trials=trials)


def _check(graph: Graph, chip: Chip, inputs: Sequence[Array]) -> None:
    if len(inputs) != len(graph.params):
        raise IRError(f"{graph.name}: there must be {len(graph.params)} inputs, got {len(inputs)}")
    for p, array in zip(graph.params, inputs, strict=True):
        if np.shape(array) != p.type.shape:
            raise IRError(f"{graph.name}: input {p.op} must be {p.type}, got {list(np.shape(array))}", loc=p.loc)
    for node in graph.nodes:
        for type_ in types_of(node):
            if is_narrow(type_.dtype) and type_.dtype.name not in chip.dtypes:
                what = f"{node.op.name}: element type must be one that {chip.name} has, got {type_.dtype}"
                raise DeviceError(what, loc=node.loc, hint="f16 and f32 are on every chip, bf16 from Atlas A2 on", code="soc-mode")


def _originals(graph: Graph, original: Graph) -> dict[Node, Array]:
    """For each constant that a precision mode has cast, the value that it had: both graphs hold the same operators in one order, but for casts."""
    before, after = ([n for n in g.nodes if not isinstance(n.op, Cast | Constant | Param)] for g in (original, graph))
    if len(before) != len(after) or any(a.op != b.op for a, b in zip(before, after, strict=True)):
        return {}
    found: dict[Node, Array] = {}
    for old, new in zip(before, after, strict=True):
        for a, b in zip(old.inputs, new.inputs, strict=True):
            was, now = _through_casts(a), _through_casts(b)
            if now.array is not None and was.array is not None and now.dtype != was.dtype and was.dtype.is_float:
                found[now] = was.array
    return found


def _through_casts(node: Node) -> Node:
    while isinstance(node.op, Cast):
        (node,) = node.inputs
    return node
