"""Graphs as text, and back: what is printed parses to an equal graph.

    graph mlp(%x: f32[2, 3]):
      %1: f32[2, 4] = matmul %x %w        # dense_1
      return %1

In: a `Graph`, or its text (and, for large constants, a dict from digest to array).  Out: the other one.
Sub-graphs (attributes of an operator) are printed before the graph that holds them and named `@name`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from jumar.base import DTYPES, Array, DType, IRError, Loc, parse_type
from jumar.ir.graph import NOWHERE, Graph, Node, Param, apply, param
from jumar.ir.op import Data, Op, find_op


def print_graph(graph: Graph, *, places: bool = True) -> str:
    """The text of a graph, its sub-graphs first.   places: with the place that each node comes from, as a comment."""
    blocks: dict[str, str] = {}
    _print_into(graph, blocks, {}, places)
    return "\n".join(blocks.values())


def _print_into(graph: Graph, blocks: dict[str, str], named: dict[str, Graph], places: bool) -> None:
    for node in graph.nodes:
        for sub in subgraphs(node.op):
            if named.setdefault(sub.name, sub) is not sub and sub.name in blocks:
                continue  # equal names: the fuse pass numbers its groups, so a second print would be the same text
            _print_into(sub, blocks, named, places)
    names = _names(graph)
    params = ", ".join(f"{names[p]}: {p.type}" for p in graph.params)
    lines = [f"graph {graph.name}({params}):"]
    for node in graph.nodes:
        if not isinstance(node.op, Param):
            operands = "".join(f" {names[i]}" for i in node.inputs)
            where = f"  # {node.loc}" if places and str(node.loc) else ""
            lines.append(f"  {names[node]}: {_type_text(node.type)} = {node.op}{operands}{where}")
    outputs = " ".join(names[o] for o in graph.outputs)
    aliases = f"  as {list(graph.output_names)}" if graph.output_names else ""
    updates = f"  updates {list(graph.updates)}" if graph.updates else ""
    lines.append(f"  return {outputs}{aliases}{updates}")
    blocks[graph.name] = "\n".join(lines) + "\n"


def _type_text(type_: Any) -> str:
    return f"({', '.join(map(str, type_))})" if isinstance(type_, tuple) else str(type_)


def _names(graph: Graph) -> dict[Node, str]:
    names: dict[Node, str] = {}
    for p in graph.params:
        assert isinstance(p.op, Param), "a parameter of a graph is a Param node"
        names[p] = f"%{re.sub(r'[^A-Za-z0-9_.:/-]', '_', p.op.label)}"
    taken = set(names.values())
    number = 0
    for node in graph.nodes:
        if node not in names:
            number += 1
            while f"%{number}" in taken:
                number += 1
            names[node] = f"%{number}"
    return names


def subgraphs(op: Op) -> Iterator[Graph]:
    """Graphs among the attributes of an operator."""
    for value in op.attributes().values():
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, Graph):
                yield item


_HEAD = re.compile(r"graph\s+(\S+?)\((.*)\):\s*")
_LINE = re.compile(r"\s+(%\S+?):\s*(\([^)]*\)|[a-z]\w*\[[^\]]*\])\s*=\s*([a-z]\w*)(.*)")


def parse_graph(text: str, data: Mapping[str, Array] | None = None) -> Graph:
    """The graph of a text; the last block is the one returned.   data: arrays of `data(#digest, ...)` constants."""
    graphs: dict[str, Graph] = {}
    last: Graph | None = None
    lines = iter([line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")])
    for line in lines:
        head = _HEAD.fullmatch(line)
        if not head:
            raise _syntax("a graph must begin with `graph name(params):`", line)
        last = _parse_block(head, lines, graphs, data or {})
        graphs[last.name] = last
    if last is None:
        raise _syntax("text must hold a graph", text[:40])
    return last


def _parse_block(head: re.Match[str], lines: Iterator[str], graphs: dict[str, Graph], data: Mapping[str, Array]) -> Graph:
    values: dict[str, Node] = {}
    params = []
    for name, type_text in re.findall(r"%(\S+?):\s*([a-z]\w*\[[^\]]*\])", head[2]):
        params.append(param(name, parse_type(type_text)))
        values[f"%{name}"] = params[-1]
    for line in lines:
        stripped = line.strip()
        if stripped.startswith("return"):
            rest, _, pairs = stripped.removeprefix("return").partition("  updates ")
            names, _, aliases = rest.partition("  as ")
            outputs = tuple(_value(values, n, line) for n in names.split())
            updates = tuple((int(o), int(p)) for o, p in ast.literal_eval(pairs)) if pairs else ()
            return Graph(head[1], tuple(params), outputs, tuple(ast.literal_eval(aliases)) if aliases else (), updates)
        found = _LINE.fullmatch(line)
        if not found:
            raise _syntax("a line must be `%name: type = op(attributes) %inputs`", line)
        rest, _, place = found[4].partition("  # ")
        attributes, rest = _split_attributes(rest)
        op = _parse_op(found[3], attributes, graphs, data, line)
        inputs = [_value(values, n, line) for n in rest.split()]
        node = apply(op, *inputs, loc=Loc(name=place.strip()) if place.strip() else NOWHERE)
        if _type_text(node.type) != re.sub(r",\s*", ", ", found[2]):
            raise _syntax(f"type must be {_type_text(node.type)}, as inferred", line)
        values[found[1]] = node
    raise _syntax("a graph must end with `return`", head[0])


def _value(values: dict[str, Node], name: str, line: str) -> Node:
    if name not in values:
        raise _syntax(f"{name} must be defined before it is read", line)
    return values[name]


def _split_attributes(text: str) -> tuple[str, str]:
    if not text.startswith("("):
        return "", text
    depth, quote = 0, ""
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote and text[at - 1] != "\\" else quote
        elif char in "'\"":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth == 0:
                return text[1:at], text[at + 1 :]
    return "", text


def _parse_op(name: str, attributes: str, graphs: dict[str, Graph], data: Mapping[str, Array], line: str) -> Op:
    source = re.sub(r"data\(#([0-9a-f]+), (\w+)\)", r"data('#\1', \2)", attributes)
    source = re.sub(r"@([\w.:/-]+)", r"graph_('\1')", source)
    try:
        call = ast.parse(f"f({source})", mode="eval").body
        assert isinstance(call, ast.Call), "f(...) is a call"
        made = find_op(name)(**{str(k.arg): _literal(k.value, graphs, data) for k in call.keywords})
    except (SyntaxError, ValueError, TypeError) as error:
        raise _syntax(f"attributes of {name} must be readable: {error}", line) from error
    return made


def parse_op(text: str, data: Mapping[str, Array] | None = None) -> Op:
    """The operator of a text: the inverse of `str(op)`, for operators without sub-graphs.

    >>> str(parse_op("param(label='x')"))
    "param(label='x')"
    """
    name, _, rest = text.partition("(")
    return _parse_op(name, rest.removesuffix(")"), {}, data or {}, text)


def _literal(tree: ast.expr, graphs: dict[str, Graph], data: Mapping[str, Array]) -> Any:
    match tree:
        case ast.Name(id="inf"):
            return float("inf")
        case ast.Name(id="nan"):
            return float("nan")
        case ast.Name(id=name) if name in DTYPES:
            return DTYPES[name]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Name(id="inf")):
            return float("-inf")
        case ast.Tuple(elts=items):
            return tuple(_literal(i, graphs, data) for i in items)
        case ast.List(elts=items):
            return [_literal(i, graphs, data) for i in items]
        case ast.Call(func=ast.Name(id="graph_"), args=[ast.Constant(value=str(name))]):
            return graphs[name]
        case ast.Call(func=ast.Name(id="data"), args=[value, ast.Name(id=dtype), *shape]):
            return _data(_literal(value, graphs, data), DTYPES[dtype], shape, data)
    return ast.literal_eval(tree)


def _data(value: Any, dtype: DType, shape: list[ast.expr], data: Mapping[str, Array]) -> Data:
    if isinstance(value, str):
        if value[1:] not in data:
            raise IRError(f"text: constant {value} must be among the arrays given", hint="pass data=load_constants(...)", code="text-data")
        return Data(data[value[1:]])
    array = np.asarray(value, dtype=object if dtype.kind == "s" else None).astype(dtype.numpy)
    return Data(array.reshape(ast.literal_eval(shape[0])) if shape else array)


def large_constants(graph: Graph) -> dict[str, Array]:
    """The arrays that the text names by digest only, for saving beside it."""
    found: dict[str, Array] = {}
    for node in graph.nodes:
        for value in node.op.attributes().values():
            if isinstance(value, Data) and value.array.size > 16:
                found[value.key[0]] = value.array
        for sub in subgraphs(node.op):
            found |= large_constants(sub)
    return found


def _syntax(what: str, line: str) -> IRError:
    return IRError(f"text: {what}, got {line.strip()!r}", code="text-syntax")
