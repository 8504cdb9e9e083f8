"""`OnnxGraph`: a graph of an ONNX file in the order in which it can be evaluated, with its sub-graphs and functions.

In: GraphProto and FunctionProto from file.py.  Out: nodes sorted, every name checked, last uses known; evaluator.py walks it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jumar.base import Array, ImportFault, Loc, nearest
from jumar.frontend.importers.onnx.node import OnnxNode, text_of
from jumar.frontend.importers.onnx.port import Port, port_of
from jumar.frontend.importers.onnx.rule import normal_domain
from jumar.frontend.importers.onnx.value import Known

MAX_DEPTH = 64  # sub-graphs in sub-graphs, functions in functions


@dataclass(frozen=True)
class Context:
    """What all graphs of a file share.   functions: by domain, name and overload."""

    file: str
    opsets: Mapping[str, int]
    functions: Mapping[tuple[str, str, str], Any]
    read_tensor: Callable[[Any], Array]
    warn: Callable[[str], bool]
    attributes: Mapping[str, Any] = field(default_factory=dict)  # of the function call that this graph is the body of
    in_function: bool = False


@dataclass(eq=False)
class OnnxGraph:
    """One graph.   captures: names that it reads from the graphs around it.   expires: per node, the names that nobody reads after it."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[OnnxNode, ...]
    captures: tuple[str, ...]
    expires: tuple[tuple[str, ...], ...]
    weights: Mapping[str, Any]  # name -> TensorProto or SparseTensorProto
    read_tensor: Callable[[Any], Array]
    subgraphs: Mapping[tuple[OnnxNode, str], OnnxGraph]
    results: tuple[Port, ...]  # what the file says about the outputs; () in functions
    context: Context
    known: dict[str, Known] = field(default_factory=dict)

    def weight(self, name: str) -> Known | None:
        """An initializer, read when it is first asked for."""
        if name not in self.known:
            if name not in self.weights:
                return None
            self.known[name] = Known(self.read_tensor(self.weights[name]))
        return self.known[name]

    def subgraph(self, node: OnnxNode, attribute: str) -> OnnxGraph:
        """The graph that an attribute of a node holds."""
        found = self.subgraphs.get((node, attribute))
        if found is None:
            raise node.fault(f"attribute {attribute} must be a graph, got {node.attribute(attribute)!r}")
        return found

    def all_nodes(self) -> Iterator[OnnxNode]:
        """Nodes of this graph and of all sub-graphs."""
        yield from self.nodes
        for graph in self.subgraphs.values():
            yield from graph.all_nodes()


def read_graph(proto: Any, context: Context, outer: frozenset[str] = frozenset(), depth: int = 0) -> OnnxGraph:
    """An OnnxGraph of a GraphProto.   outer: names that the graphs around it define."""
    weights: dict[str, Any] = {}
    for tensor in proto.initializer:
        _define(weights, text_of(tensor.name), tensor, text_of(proto.name), context, "initializer")
    for sparse in proto.sparse_initializer:
        _define(weights, text_of(sparse.values.name), sparse, text_of(proto.name), context, "initializer")
    inputs: dict[str, Any] = {}
    for value in proto.input:
        _define(inputs, text_of(value.name), value, text_of(proto.name), context, "input")
    results = tuple(port_of(o) for o in proto.output)
    return _build(proto, context, tuple(inputs), tuple(o.name for o in results), weights, outer, depth, results)


def read_function(proto: Any, context: Context, attributes: Mapping[str, Any], depth: int = 0) -> OnnxGraph:
    """An OnnxGraph of a FunctionProto called with attributes (AttributeProtos by name)."""
    given = {text_of(a.name): a for a in proto.attribute_proto} | dict(attributes)
    opsets = {normal_domain(text_of(o.domain)): int(o.version) for o in proto.opset_import}
    inner = replace(context, opsets=opsets or context.opsets, attributes=given, in_function=True)
    # the standard's functions leave out the nodes of outputs that the caller does not name
    written = {text_of(name) for name in [*proto.input, *(name for node in proto.node for name in node.output)]}
    outputs = tuple(name if name in written else "" for name in map(text_of, proto.output))
    return _build(proto, inner, tuple(map(text_of, proto.input)), outputs, {}, frozenset(), depth, ())


def _define(table: dict[str, Any], name: str, value: Any, graph: str, context: Context, what: str) -> None:
    if name in table:
        raise ImportFault(f"{context.file}: names of {what}s must differ, got {name!r} twice in graph {graph!r}", code="name-duplicate")
    table[name] = value


def _build(
    proto: Any, context: Context, inputs: tuple[str, ...], outputs: tuple[str, ...],
    weights: Mapping[str, Any], outer: frozenset[str], depth: int, results: tuple[Port, ...],
) -> OnnxGraph:  # fmt: skip
    if depth > MAX_DEPTH:
        raise ImportFault(
            f"{context.file}: graphs must be nested at most {MAX_DEPTH} deep, got more at {text_of(proto.name)!r}", code="graph-nesting"
        )
    makers: dict[str, int] = {}
    given = frozenset(inputs) | frozenset(weights)
    protos = list(proto.node)
    for index, node in enumerate(protos):
        for name in map(text_of, node.output):
            if name and (name in makers or name in given):
                raise ImportFault(
                    f"{context.file}: a name must be written once, got {name!r} written again by {_node_name(node, index)}",
                    code="name-duplicate",
                )
            if name:
                makers[name] = index
    here = frozenset(makers) | given
    visible = outer | here
    title = text_of(proto.name)
    nodes = [read_node(p, i, context) for i, p in enumerate(protos)]
    subgraphs: dict[tuple[OnnxNode, str], OnnxGraph] = {}
    reads: list[tuple[str, ...]] = []
    for node in nodes:
        read = [n for n in node.input_names if n]
        for name, attribute in node.protos.items():
            if attribute.type == 5:
                subgraphs[node, name] = sub = read_graph(attribute.g, context, visible, depth + 1)
                read += sub.captures
        reads.append(tuple(dict.fromkeys(read)))
    _check_names(nodes, reads, visible, outputs, context, title)
    order = _sort(nodes, reads, makers, context)
    captures = tuple(dict.fromkeys(n for n in [*(n for r in reads for n in r), *outputs] if n and n not in here))
    last = {name: at for at, index in enumerate(order) for name in reads[index]}
    last = {name: last.get(name, makers_at) for name, makers_at in _made_at(order, nodes).items()} | last
    kept = frozenset(outputs)
    expires: list[list[str]] = [[] for _ in order]
    for name, at in last.items():
        if name not in kept:
            expires[at].append(name)
    return OnnxGraph(
        title, inputs, outputs, tuple(nodes[i] for i in order), captures, tuple(map(tuple, expires)),
        weights, context.read_tensor, subgraphs, results, context,
    )  # fmt: skip


def _made_at(order: Sequence[int], nodes: Sequence[OnnxNode]) -> dict[str, int]:
    return {name: at for at, index in enumerate(order) for name in nodes[index].output_names if name}


def _node_name(proto: Any, index: int) -> str:
    return text_of(proto.name) or f"{text_of(proto.op_type)} (node {index})"


def read_node(proto: Any, index: int, context: Context) -> OnnxNode:
    """An OnnxNode of a NodeProto; attributes that refer to those of the function call are replaced."""
    attributes: dict[str, Any] = {}
    for attribute in proto.attribute:
        found = attribute
        if attribute.ref_attr_name:
            referred = text_of(attribute.ref_attr_name)
            if referred not in context.attributes:
                continue  # the caller leaves it out, so it is absent here too
            found = _renamed(context.attributes[referred], attribute.name)
        attributes[text_of(attribute.name)] = found
    domain, op = normal_domain(text_of(proto.domain)), text_of(proto.op_type)
    name = _node_name(proto, index)
    loc = Loc(file=context.file, name=f"{name} ({domain + '.' if domain else ''}{op})")
    return OnnxNode(
        op, domain, context.opsets.get(domain, 1), name, tuple(map(text_of, proto.input)), tuple(map(text_of, proto.output)), attributes, loc,
        context.opsets, proto, context.read_tensor,
    )  # fmt: skip


def _renamed(attribute: Any, name: str) -> Any:
    if attribute.name == name:
        return attribute
    copy = type(attribute)()
    copy.CopyFrom(attribute)
    copy.name = name
    return copy


def _check_names(
    nodes: Sequence[OnnxNode],
    reads: Sequence[tuple[str, ...]],
    visible: frozenset[str],
    outputs: Sequence[str],
    context: Context,
    graph: str,
) -> None:
    for node, names in zip(nodes, reads, strict=True):
        for name in names:
            if name not in visible:
                raise ImportFault(
                    f"{context.file}: an input must be an output of a node, an initializer or an input of the graph, got {name!r}",
                    loc=node.loc, hint=nearest(name, set(visible)), code="name-undefined",
                )  # fmt: skip
    for name in outputs:
        if name and name not in visible:
            raise ImportFault(
                f"{context.file}: an output of graph {graph!r} must be written by a node, got {name!r}",
                hint=nearest(name, set(visible)), code="name-undefined",
            )  # fmt: skip


def _sort(nodes: Sequence[OnnxNode], reads: Sequence[tuple[str, ...]], makers: Mapping[str, int], context: Context) -> list[int]:
    """Indices of nodes, makers before readers, otherwise in the order of the file; a cycle is an error that shows it."""
    order: list[int] = []
    state = [0] * len(nodes)  # 1: on the way, 2: done
    for root in range(len(nodes)):
        stack = [root] if not state[root] else []
        while stack:
            index = stack[-1]
            if state[index] == 2:
                stack.pop()
                continue
            state[index] = 1
            waiting = [makers[n] for n in reads[index] if n in makers and state[makers[n]] != 2]
            if not waiting:
                state[index] = 2
                order.append(stack.pop())
                continue
            for other in waiting:
                if state[other] == 1:
                    cycle = " -> ".join(nodes[i].name for i in [*(i for i in stack[stack.index(other) :] if state[i] == 1), other])
                    raise ImportFault(f"{context.file}: nodes must not form a cycle, got {cycle}", loc=nodes[index].loc, code="graph-cycle")
            stack += reversed(waiting)
    return order
