"""The evaluator: walks the nodes of an ONNX graph, gives each to its rule, and keeps what every call's types and values led to.

In: an `OnnxFile` and a compiler.  Out: `Evaluator`, a function from arrays to arrays; frontend/model.py calls it.

A graph is evaluated in a `Scope`: names to values.  Sub-graphs see the scope around them, functions do not.  `rules/control.py` asks for
`run_graph` (a sub-graph as part of this trace) or `Evaluator` again (a sub-graph as a function of its own, called on the host).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jumar.base import Array, ImportFault, StackError, nearest, span, type_of
from jumar.frontend.importers.onnx.file import available_memory
from jumar.frontend.importers.onnx.functions import check_node, function_of_schema, has_schema_function
from jumar.frontend.importers.onnx.graph import MAX_DEPTH, OnnxGraph, read_function
from jumar.frontend.importers.onnx.node import OnnxNode, text_of
from jumar.frontend.importers.onnx.plan import (
    Compile,
    Finish,
    Frame,
    Interpreted,
    Keeper,
    Segment,
    Slot,
    Stage,
    Straight,
    Tree,
    Walk,
    flatten,
)
from jumar.frontend.importers.onnx.rule import RULES, Rule, find_rule
from jumar.frontend.importers.onnx.texts import text_rule
from jumar.frontend.importers.onnx.trace import NeedsValue, Trace
from jumar.frontend.importers.onnx.value import Known, Traced, Value, leaves
from jumar.ir import Graph, located

TRACING = threading.RLock()  # one trace at a time: traces grow the tree of stages, and Python would not run two at once anyway


@dataclass(eq=False)
class Scope:
    """Names of one graph that is being evaluated, and the scope around it."""

    graph: OnnxGraph
    env: dict[str, Value]
    outer: Scope | None = None
    depth: int = 0

    def find(self, name: str) -> Value:
        """The value of a name, here or further out."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.env:
                return scope.env[name]
            weight = scope.graph.weight(name)
            if weight is not None:
                return weight
            scope = scope.outer
        raise ImportFault(f"onnx: a name must be written before it is read, got {name!r}: this is our bug", code="our-bug")


@dataclass(eq=False)
class Evaluator:
    """A graph as a function of arrays, with everything that was learnt from its calls.

    source: gives the graph, which is read only where something is new.  names: what the inputs are called, those of the graph first, then what it
    reads from outside.  outer: values known from outside.  keeper, key: where finished stages are kept on disk, and under which name.
    """

    source: Callable[[], OnnxGraph]
    names: tuple[str, ...]
    compile: Compile
    outer: Mapping[str, Value] = field(default_factory=dict)
    keeper: Keeper | None = None
    key: str = ""
    roots: dict[Any, Stage] = field(default_factory=dict)

    def __call__(self, *inputs: Tree) -> list[Tree]:
        """Results of the graph, one tree for each output."""
        frame: Frame = []
        structure = tuple(flatten(tree, frame) for tree in inputs)
        given = len(frame)
        walk = Walk(self.root(structure), frame, self.keeper)
        finish = walk.advance(alone=False)
        if finish is None:
            with TRACING:
                del frame[given:]
                walk = Walk(self.root(structure), frame, self.keeper)
                finish = walk.advance(alone=True) or self.trace(walk, structure)
        return [_result(tree, frame, given) for tree in finish.outputs]

    def straight(self, arrays: Sequence[Array]) -> Straight | None:
        """How calls with arrays of these types run, where that is one compiled piece."""
        stage = self.roots.get(tuple(type_of(a) for a in arrays))
        match stage:
            case Stage(steps=[Segment(executable=executable, inputs=inputs)], end=Finish(outputs=outputs)):
                slots = [o.index - len(arrays) for o in outputs if isinstance(o, Slot)]
                if len(slots) == len(outputs) == len(set(slots)) and min(slots) >= 0:
                    all_in, all_out = tuple(inputs) == tuple(range(len(arrays))), slots == list(range(len(slots)))
                    return Straight(executable, None if all_in else inputs, None if all_out else tuple(slots))
        return None

    def root(self, structure: Any) -> Stage:
        """The first stage of calls of that structure: in memory, on disk, or new."""
        found = self.roots.get(structure)
        if found is None:
            key = self.keeper.child_key(self.key, structure) if self.keeper and self.key else ""
            kept = self.keeper.load(key) if self.keeper and key else None
            found = self.roots.setdefault(structure, kept or Stage(key=key))
        return found

    def plan(self, structure: tuple[Any, ...]) -> Stage:
        """Compiles what can be compiled without values; the stage has no end where values are needed to go on."""
        with TRACING:
            stage = self.root(structure)
            if stage.end is None:
                try:
                    self.trace(Walk(stage, None, self.keeper), structure)
                except NeedsValue:
                    pass
            return stage

    def way(self, structure: tuple[Any, ...], frame: Frame) -> list[Stage]:
        """The stages that a call takes; they have been compiled by an earlier call.   frame: its inputs, flat."""
        walk = Walk(self.root(structure), frame, self.keeper)
        walk.advance(alone=True)
        return walk.path

    def graphs(self, structure: tuple[Any, ...], frame: Frame | None) -> list[Graph]:
        """The graphs of a call, traced anew: those of pieces that a cut ended, then the one that gives the outputs, all of them.

        frame: the inputs, flat; None where there are none, and then a cut is an error."""
        graph = self.source()
        with TRACING:
            walk = Walk(Stage(), frame)
            trace = Trace(graph.name or "main", walk, Interpreted, available_memory())
            inputs = [trace.values_of(s, name) for name, s in zip(self.names, structure, strict=True)]
            env = dict(self.outer) | dict(zip(self.names, inputs, strict=True))
            try:
                outputs = evaluate(trace, Scope(graph, env))
            except NeedsValue as error:
                raise ImportFault(
                    f"onnx: value of {error.node} must be known to go on, and only a run can tell it",
                    loc=trace.loc, hint="give inputs instead of dims", code="values-needed",
                ) from error  # fmt: skip
            steps = [s.graph for stage in walk.path for s in stage.steps if isinstance(s, Segment) and s.graph is not None]
            return [*steps, trace.whole(outputs, graph.outputs, [n for v in inputs for n in leaves(v)])]

    def trace(self, walk: Walk, structure: tuple[Any, ...]) -> Finish:
        """Evaluates the graph on values of that structure, along a walk and beyond its end."""
        graph = self.source()
        with span("import", graph=graph.name):
            trace = Trace(graph.name or "main", walk, self.compile, available_memory())
            inputs = [trace.values_of(s, name) for name, s in zip(self.names, structure, strict=True)]
            env = dict(self.outer) | dict(zip(self.names, inputs, strict=True))
            finish: Finish = trace.finish(evaluate(trace, Scope(graph, env)), graph.outputs)
        walk.keep()
        return finish


def _result(tree: Tree, frame: Frame, given: int) -> Tree:
    """The tree's arrays; those that are not this call's own (weights, its inputs) copied, since the caller may write into results."""
    match tree:
        case list():
            return [_result(t, frame, given) for t in tree]
        case Slot(index=index) if index >= given:
            return frame[index]
        case Slot(index=index):
            return frame[index].copy()
        case np.ndarray():
            return tree.copy()
    return tree


def evaluate(t: Trace, scope: Scope) -> list[Value]:
    """Values of the graph's outputs."""
    graph = scope.graph
    t.scopes.append(scope.env)
    try:
        for node, expired in zip(graph.nodes, graph.expires, strict=True):
            values = [settled(t, scope.find(name)) if name else None for name in node.input_names]
            results = call_rule(t, node, values, scope)
            for name, value in zip(node.output_names, results, strict=False):
                if name:
                    scope.env[name] = value
            for name in expired:
                scope.env.pop(name, None)
        return [settled(t, scope.find(name)) if name else None for name in graph.outputs]
    finally:
        t.scopes.pop()


def settled(t: Trace, value: Value) -> Value:
    """The value as it is by now: known where a cut has made it known."""
    match value:
        case Traced(node=node) if node in t.values and node.type.size <= 1024:
            return Known(t.values[node])
        case list():
            return [settled(t, v) for v in value]
    return value


def run_graph(t: Trace, graph: OnnxGraph, inputs: Sequence[Value], outer: Scope | None, depth: int = 0) -> list[Value]:
    """Evaluates a sub-graph or function as part of this trace."""
    if depth > MAX_DEPTH:
        raise ImportFault(f"onnx: functions must be nested at most {MAX_DEPTH} deep, got more", loc=t.loc, code="graph-nesting")
    if len(inputs) > len(graph.inputs):
        raise ImportFault(
            f"onnx: graph {graph.name!r} must get at most {len(graph.inputs)} inputs, got {len(inputs)}", loc=t.loc, code="node-invalid"
        )
    given = [*inputs, *[None] * (len(graph.inputs) - len(inputs))]
    return evaluate(t, Scope(graph, dict(zip(graph.inputs, given, strict=True)), outer, depth))


def subgraph_function(t: Trace, graph: OnnxGraph, scope: Scope) -> tuple[Evaluator, list[Value]]:
    """A sub-graph as a function of its own, and the values that it must get after its inputs: what it captures and is not known."""
    known: dict[str, Value] = {}
    traced: dict[str, Value] = {}
    for name in graph.captures:
        value = settled(t, scope.find(name))
        target = known if all(isinstance(v, Known) for v in leaves(value)) else traced
        target[name] = value
    return Evaluator(lambda: graph, (*graph.inputs, *traced), t.compile, known), list(traced.values())


def call_rule(t: Trace, node: OnnxNode, values: list[Value], scope: Scope) -> list[Value]:
    """The node's results by its rule, its function, or the function that the standard gives for it."""
    t.loc = node.loc
    eager = all(isinstance(v, Known) for value in values for v in leaves(value))
    rule = text_rule(node, values) or find_rule(node.op, node.domain)
    with located(node.loc):
        try:
            function = _model_function(node, scope)
            if function is not None:
                results: Any = run_graph(t, function, values, None, scope.depth + 1)
            elif rule is None:
                results = _schema_function(t, node, values, scope)
            else:
                results = _apply(t, rule, node, values, scope)
            settled_results = [t.value(r, eager=eager) for r in results]
        except StackError as error:
            error.loc = error.loc or node.loc
            raise
        except (NeedsValue, KeyboardInterrupt):
            raise
        except MemoryError as error:
            raise node.fault("its values must fit into memory, and did not", code="memory") from error
        except Exception as error:  # a rule reads what a file says: whatever it stumbles over is the file's node
            raise node.fault(f"node must be valid in opset {node.opset}, got {type(error).__name__}: {error}") from error
    if node.outputs > len(settled_results):
        raise node.fault(f"node must have at most {len(settled_results)} outputs, got {node.outputs}")
    return settled_results


def _apply(t: Trace, rule: Rule, node: OnnxNode, values: list[Value], scope: Scope) -> list[Any]:
    if rule.inputs is not None and len(values) > rule.inputs:
        if any(v is not None for v in values[rule.inputs :]):
            raise node.fault(f"node must have at most {rule.inputs} inputs, got {len(values)}")
        values = values[: rule.inputs]
    if rule.scoped:
        result = rule.function(t, node, scope, *rule.pad(values))
    else:
        result = rule.function(t, node, *rule.pad(values))
    if isinstance(result, tuple):
        return list(result)
    if hasattr(result, "type") and isinstance(result.type, tuple):
        return list(result.results)
    return [result]


def _model_function(node: OnnxNode, scope: Scope) -> OnnxGraph | None:
    """The body of a function that the model brings."""
    functions = scope.graph.context.functions
    proto = functions.get((node.domain, node.op, text_of(node.proto.overload))) if functions else None
    return None if proto is None else read_function(proto, scope.graph.context, node.protos)


def _schema_function(t: Trace, node: OnnxNode, values: list[Value], scope: Scope) -> list[Value]:
    proto = function_of_schema(node, values)
    if proto is None:
        raise unsupported([node], scope.graph.context.file)
    return run_graph(t, read_function(proto, scope.graph.context, node.protos), values, None, scope.depth + 1)


# ---- what is not supported ----


def check_supported(graph: OnnxGraph) -> None:
    """All operators without a rule in one error, before anything is traced."""
    nodes = list(_with_functions(graph))
    missing = [n for n in nodes if not _is_supported(n, graph)]
    if missing:
        raise unsupported(missing, graph.context.file)
    for node in nodes:
        check_node(node)


def _with_functions(graph: OnnxGraph) -> Iterable[OnnxNode]:
    """Nodes of the graph, its sub-graphs and the functions that they call, each function once."""
    seen: set[tuple[str, str, str]] = set()
    queue = list(graph.all_nodes())
    while queue:
        node = queue.pop()
        yield node
        key = (node.domain, node.op, text_of(node.proto.overload))
        if key in graph.context.functions and key not in seen:
            seen.add(key)
            queue += read_function(graph.context.functions[key], graph.context, node.protos).all_nodes()


def _is_supported(node: OnnxNode, graph: OnnxGraph) -> bool:
    if (node.domain, node.op, text_of(node.proto.overload)) in graph.context.functions or find_rule(node.op, node.domain):
        return True
    return find_rule(node.op, "text") is not None or has_schema_function(node)


def unsupported(nodes: Sequence[OnnxNode], file: str) -> ImportFault:
    """The error that lists operators without implementation, each with its nodes and the nearest that there is."""
    groups: dict[tuple[str, str, int], list[OnnxNode]] = {}
    for node in nodes:
        groups.setdefault((node.domain, node.op, node.opset), []).append(node)
    lines = []
    for (domain, op, opset), found in sorted(groups.items()):
        names = ", ".join(n.name for n in found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
        close = nearest(op, [name for d, name in RULES if d == domain]) or nearest(op, [name for _, name in RULES])
        lines.append(f"{domain or 'ai.onnx'} {op} (opset {opset}) at {names}{f'; {close}' if close else ''}")
    return ImportFault(
        f"{file}: operators must be supported, got {len(groups)} that are not:\n    " + "\n    ".join(lines),
        loc=nodes[0].loc if len(nodes) == 1 else None,
        hint="jumar ops --table lists what is supported; a model function of that name is used where the file brings one", code="op-unsupported",
    )  # fmt: skip
