"""If, Loop and Scan: conditions that are known choose while tracing; short loops are unrolled; the rest runs the body as a function.

A loop that cannot be unrolled is one host call: its body is an `Evaluator` of its own, compiled once for its types, then one native call an iteration.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jumar.base import Array, event, f32
from jumar.frontend.importers.onnx.axes import concat, slice_axis, squeeze_axis, stack
from jumar.frontend.importers.onnx.evaluator import Scope, run_graph, settled, subgraph_function
from jumar.frontend.importers.onnx.graph import OnnxGraph
from jumar.frontend.importers.onnx.node import OnnxNode
from jumar.frontend.importers.onnx.rule import rule
from jumar.frontend.importers.onnx.trace import NeedsValue, Trace
from jumar.frontend.importers.onnx.value import Known, Value

UNROLL_ITERATIONS = 32
UNROLL_NODES = 2000
MAX_ITERATIONS = 1 << 24  # a loop that runs longer has lost its end
LONG_ITERATIONS = 1 << 16  # a loop that runs longer is told of: someone may be waiting for it


@rule("If", scoped=True)
def if_(t: Trace, n: OnnxNode, scope: Scope, condition: Value) -> Any:
    branch = "then_branch" if bool(t.scalar(condition)) else "else_branch"
    return tuple(run_graph(t, scope.graph.subgraph(n, branch), (), scope, scope.depth + 1))


class TooLong(Exception):
    """A loop has more iterations than are unrolled."""


@rule("Loop", scoped=True)
def loop(t: Trace, n: OnnxNode, scope: Scope, trips: Value, condition: Value, *carried: Value) -> Any:
    body = scope.graph.subgraph(n, "body")
    if len(body.inputs) != len(carried) + 2 or len(body.outputs) <= len(carried):
        raise n.fault(
            f"body must take {len(carried) + 2} values and give at least {len(carried) + 1}, got {len(body.inputs)} and {len(body.outputs)}"
        )
    if _endless(t, scope, body, trips, condition):
        raise n.fault(
            "loop must have a number of iterations or a condition that can change, got no number and a condition that stays true",
            hint="export the model again with a bound on the number of iterations", code="loop-endless",
        )  # fmt: skip
    try:
        with t.attempt():
            return _unrolled(t, scope, body, trips, condition, list(carried))
    except (NeedsValue, TooLong):
        pass
    function, captured = subgraph_function(t, body, scope)

    def run(trips: Array | None, condition: Array | None, carried: Sequence[Any], captured: Sequence[Any]) -> list[Any]:
        limit = None if trips is None else int(trips.reshape(-1)[0])
        going = condition is None or bool(condition.reshape(-1)[0])
        states, scans = list(carried), _empty_scans(body, len(carried))
        number = 0
        while going and (limit is None or number < limit):
            results = function(np.array(number, np.int64), np.array(going), *states, *captured)
            going = bool(results[0].reshape(-1)[0])
            states = results[1 : 1 + len(states)]
            for scan, item in zip(scans, results[1 + len(states) :], strict=True):
                scan.append(item)
            number += 1
            if number == LONG_ITERATIONS:
                told = f"{n.op}: loop must end some time, and goes on after {number} iterations, at {n.loc}"
                event("loop-long", loc=str(n.loc), iterations=number)
                if scope.graph.context.warn(told):  # the log too: who waits for the loop sees neither events nor warnings
                    logging.getLogger("jumar").warning(told)
            if number > MAX_ITERATIONS:
                raise n.fault(f"loop must end within {MAX_ITERATIONS} iterations, and goes on", code="loop-endless")
        return [*states, *_stacked(scans, body, len(states))]

    return tuple(t.host(run, [trips, condition, list(carried), captured]))


def _endless(t: Trace, scope: Scope, body: OnnxGraph, trips: Value, condition: Value) -> bool:
    """Whether nothing can end a loop: no number of iterations (exporters also write 2^63 - 1), and a condition that is true and stays so."""
    limit = None if trips is None else t.known(trips)
    if trips is not None and (limit is None or limit.size != 1 or int(limit.reshape(-1)[0]) <= MAX_ITERATIONS):
        return False
    first = None if condition is None else t.known(condition)
    if condition is not None and (first is None or first.size != 1 or not bool(first.reshape(-1)[0])):
        return False
    made = {name: node for node in body.nodes for name in node.output_names if name}
    name = body.outputs[0]
    while name in made and made[name].op in ("Identity", "Cast") and not made[name].domain:
        name = made[name].input_names[0]
    if name in body.inputs:
        return name == body.inputs[1]
    if name in made:
        value = made[name].attribute("value") if made[name].op == "Constant" else None
        return value is not None and bool(np.all(value))
    found = body.weight(name) or settled(t, scope.find(name))
    return isinstance(found, Known) and bool(np.all(found.array))


def _unrolled(t: Trace, scope: Scope, body: OnnxGraph, trips: Value, condition: Value, states: list[Value]) -> Any:
    limit = None if trips is None else int(t.scalar(trips))
    going = condition is None or bool(t.scalar(condition))
    most = min(UNROLL_ITERATIONS, UNROLL_NODES // max(len(body.nodes), 1))
    scans: list[list[Any]] = _empty_scans(body, len(states))
    number = 0
    while going and (limit is None or number < limit):
        if number >= most or (limit is not None and limit > most and condition is None):
            raise TooLong
        results = run_graph(t, body, [Known(np.array(number, np.int64)), Known(np.array(True)), *states], scope, scope.depth + 1)
        going = bool(t.scalar(results[0]))
        for scan, item in zip(scans, results[1 + len(states) :], strict=True):
            scan.append(item)
        states = results[1 : 1 + len(states)]
        number += 1
    if number == 0:
        return (*states, *_stacked(scans, body, len(states)))
    return (*states, *(stack(t, scan, 0) for scan in scans))


def _empty_scans(body: OnnxGraph, states: int) -> list[list[Any]]:
    return [[] for _ in body.outputs[1 + states :]]


def _stacked(scans: Sequence[list[Any]], body: OnnxGraph, states: int) -> list[Array]:
    return [np.stack(scan) if scan else _nothing(body, 1 + states + i) for i, scan in enumerate(scans)]


def _nothing(body: OnnxGraph, index: int) -> Array:
    """A scan output without iterations: its shape is what the file says, as far as it says it."""
    port = body.results[index] if index < len(body.results) else None
    shape = port.shape if port and port.shape is not None else ()
    dtype = port.dtype if port and port.dtype else f32
    return np.zeros((0, *(d if isinstance(d, int) else 0 for d in shape)), dtype.numpy)


@rule("Scan", scoped=True)
def scan(t: Trace, n: OnnxNode, scope: Scope, *inputs: Value) -> Any:
    body = scope.graph.subgraph(n, "body")
    count = int(n.attribute("num_scan_inputs", 0))
    batched = n.opset < 9
    given = list(inputs[1:] if batched else inputs)
    if not 1 <= count <= len(given) or len(given) != len(body.inputs):
        raise n.fault(f"num_scan_inputs must be 1 to {len(given)} and the body take as many, got {count} and {len(body.inputs)}")
    states, items = given[: len(given) - count], given[len(given) - count :]
    if len(body.outputs) < len(states):
        raise n.fault(f"body must give its {len(states)} states, got {len(body.outputs)} outputs")
    outputs = len(body.outputs) - len(states)
    if batched:
        return _batched(t, n, scope, body, inputs[0], states, items)
    plan = _Scan(
        _axes(n, "scan_input_axes", items),
        tuple(bool(d) for d in n.attribute("scan_input_directions", (0,) * count)),
        tuple(int(a) for a in n.attribute("scan_output_axes", (0,) * outputs)),
        tuple(bool(d) for d in n.attribute("scan_output_directions", (0,) * outputs)),
    )
    return tuple(_scanned(t, n, scope, body, states, items, plan))


class _Scan:
    def __init__(self, axes: Sequence[int], backward: Sequence[bool], out_axes: Sequence[int], out_backward: Sequence[bool]) -> None:
        self.axes = axes
        self.backward = backward
        self.out_axes = out_axes
        self.out_backward = out_backward


def _axes(n: OnnxNode, name: str, items: Sequence[Any]) -> tuple[int, ...]:
    axes = n.attribute(name, (0,) * len(items))
    found = tuple(int(a) + (i.rank if a < 0 else 0) for a, i in zip(axes, items, strict=True))
    if any(not 0 <= a < i.rank for a, i in zip(found, items, strict=True)):
        raise n.fault(f"{name} must be within the ranks, got {axes}")
    return found


def _scanned(t: Trace, n: OnnxNode, scope: Scope, body: OnnxGraph, states: list[Any], items: list[Any], plan: _Scan) -> list[Any]:
    lengths = {i.shape[a] for i, a in zip(items, plan.axes, strict=True)}
    if len(lengths) != 1:
        raise n.fault(f"scan inputs must have one length, got {sorted(lengths)}")
    (length,) = lengths
    if length > MAX_ITERATIONS:
        raise n.fault(f"scan must have at most {MAX_ITERATIONS} steps, got {length}", code="loop-endless")
    if 0 < length <= min(UNROLL_ITERATIONS, UNROLL_NODES // max(len(body.nodes), 1)):
        try:
            with t.attempt():
                return _unrolled_scan(t, scope, body, states, items, plan, length)
        except NeedsValue:
            pass
    function, captured = subgraph_function(t, body, scope)
    run = _scan_on_host(function, body, plan, length)
    results: list[Any] = t.host(run, [list(states), list(items), captured])
    return results


def _unrolled_scan(t: Trace, scope: Scope, body: OnnxGraph, states: list[Any], items: list[Any], plan: _Scan, length: int) -> list[Any]:
    rows: list[list[Any]] = [[] for _ in plan.out_axes]
    for i in range(length):
        at = [length - 1 - i if back else i for back in plan.backward]
        now = [squeeze_axis(t, slice_axis(t, x, a, p, p + 1), a) for x, a, p in zip(items, plan.axes, at, strict=True)]
        results = run_graph(t, body, [*states, *now], scope, scope.depth + 1)
        for row, value in zip(rows, results[len(states) :], strict=True):
            row.append(value)
        states = results[: len(states)]
    return [
        *states,
        *(
            stack(t, row[::-1] if back else row, _out_axis(a, row))
            for row, a, back in zip(rows, plan.out_axes, plan.out_backward, strict=True)
        ),
    ]


def _out_axis(axis: int, row: Sequence[Any]) -> int:
    return axis + row[0].rank + 1 if axis < 0 else axis


def _scan_on_host(function: Callable[..., list[Any]], body: OnnxGraph, plan: _Scan, length: int) -> Callable[..., list[Any]]:
    def run(states: list[Array], items: list[Array], captured: list[Any]) -> list[Any]:
        rows: list[list[Any]] = [[] for _ in plan.out_axes]
        for i in range(length):
            now = [x.take(length - 1 - i if back else i, a) for x, a, back in zip(items, plan.axes, plan.backward, strict=True)]
            results = function(*states, *now, *captured)
            for row, value in zip(rows, results[len(states) :], strict=True):
                row.append(value)
            states = results[: len(states)]
        gathered = [
            np.stack(row[::-1] if back else row, a) if row else _nothing(body, len(states) + k)
            for k, (row, a, back) in enumerate(zip(rows, plan.out_axes, plan.out_backward, strict=True))
        ]
        return [*states, *gathered]

    return run


def _batched(t: Trace, n: OnnxNode, scope: Scope, body: OnnxGraph, lengths: Value, states: list[Any], items: list[Any]) -> Any:
    """Scan of opset 8: a batch in front of everything, with a length for each."""
    backward = tuple(bool(d) for d in n.attribute("directions", (0,) * len(items)))
    outputs = len(body.outputs) - len(states)
    batch, longest = items[0].shape[0], items[0].shape[1]
    each = [longest] * batch if lengths is None else list(t.ints(lengths))
    plan = _Scan((0,) * len(items), backward, (0,) * outputs, (False,) * outputs)
    found = []
    for b in range(batch):
        mine = [squeeze_axis(t, slice_axis(t, s, 0, b, b + 1), 0) for s in states]
        rows = [slice_axis(t, squeeze_axis(t, slice_axis(t, x, 0, b, b + 1), 0), 0, 0, each[b]) for x in items]
        results = _scanned(t, n, scope, body, mine, rows, plan)
        found.append(results[: len(states)] + [_padded(t, r, longest) for r in results[len(states) :]])
    return tuple(stack(t, [f[i] for f in found], 0) for i in range(len(body.outputs)))


def _padded(t: Trace, x: Any, length: int) -> Any:
    missing = length - x.shape[0]
    if not missing:
        return x
    zeros = Known(np.zeros((missing, *x.shape[1:]), x.dtype.numpy))

    return concat(t, [x, zeros], 0)
