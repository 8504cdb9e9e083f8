"""The evaluator: walks the nodes of an ONNX graph and gives each to its rule.

In: an `OnnxGraph` and a `Walk`.  Out: a trace of it with the values of its outputs; calls.py asks for it where a call is new.

A graph is evaluated in a `Scope`: names to values.  Sub-graphs see the scope around them, functions do not.  `rules/control.py` asks for
`run_graph` (a sub-graph as part of this trace) or `Evaluator` again (a sub-graph as a function of its own, called on the host).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jumar.base import ImportFault, StackError, nearest
from jumar.frontend.importers.onnx.calls import Evaluator
from jumar.frontend.importers.onnx.disk import available_memory
from jumar.frontend.importers.onnx.functions import check_node, function_of_schema, has_schema_function
from jumar.frontend.importers.onnx.graph import MAX_DEPTH, OnnxGraph, read_function
from jumar.frontend.importers.onnx.node import OnnxNode, text_of
from jumar.frontend.importers.onnx.plan import Compile, Walk
from jumar.frontend.importers.onnx.rule import RULES, Rule, find_rule
from jumar.frontend.importers.onnx.texts import text_rule
from jumar.frontend.importers.onnx.trace import NeedsValue, Trace
from jumar.frontend.importers.onnx.value import Known, Traced, Value, leaves
from jumar.ir import located


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


def begin(
    graph: OnnxGraph, walk: Walk, compile_: Compile, names: Sequence[str], structure: Sequence[Any], outer: Mapping[str, Value]
) -> tuple[Trace, list[Value], Scope]:
    """The trace of a call, its inputs, and the scope in which its graph is evaluated.   outer: values known from outside."""
    trace = Trace(graph.name or "main", walk, compile_, available_memory())
    inputs = [trace.values_of(s, name) for name, s in zip(names, structure, strict=True)]
    return trace, inputs, Scope(graph, dict(outer) | dict(zip(names, inputs, strict=True)))


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
