"""Segments: pieces of captured functions, compiled once for each structure.

In: nodes whose values are wanted, and the nodes whose values are known.  Out: a `Segment`: a ready Program with the order of its inputs.
The key is the structure (operators, types, how they hang together), so that a piece that is recorded again, by whichever function, is not compiled again;
Programs are kept on disk, too.  Plain numbers are constants until one of them is seen to change: then that one becomes an input.
"""

from __future__ import annotations

import threading
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import Any

from jumar.base import Array, code_version, config, event, span
from jumar.frontend.engines import Cpu, Native
from jumar.frontend.memory import check_fits
from jumar.frontend.store import digest, open_store
from jumar.frontend.twin import TWIN, ran
from jumar.ir import Constant, Graph, Node, param, print_graph, same_node
from jumar.runtime import Instance, allocate

Key = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Segment:
    """One piece, ready to run.   lifted: which of its plain numbers are inputs, behind the known values."""

    instance: Instance
    lifted: tuple[int, ...]
    updates: tuple[tuple[int, int], ...]
    graph: Graph

    @property
    def nodes(self) -> int:
        """Operators of the piece."""
        return self.graph.count()

    def run(self, known: list[Array], numbers: Sequence[Array]) -> list[Array]:
        """Values of the wanted nodes."""
        arrays = [*known, *(numbers[i] for i in self.lifted)] if self.lifted else known
        if TWIN:
            ran(self.graph, lambda: arrays)
        return self.instance.run(arrays)


@dataclass
class Family:
    """Segments that differ in plain numbers only.   lifted: the numbers that were seen to change."""

    lifted: set[int] = field(default_factory=set)
    members: dict[tuple[Any, ...], Segment] = field(default_factory=dict)
    seen: list[tuple[Any, ...]] = field(default_factory=list)


@dataclass(frozen=True)
class Shape:
    """The structure of a piece.   key: without plain numbers.   inputs: known nodes in order; numbers: arrays of the plain numbers."""

    key: Key
    inputs: tuple[Node, ...]
    numbers: tuple[Array, ...]
    order: tuple[Node, ...]


_FAMILIES: dict[Key, Family] = {}
_LOCK = threading.RLock()


def shape_of(wanted: Sequence[Node], known: Container[Node]) -> Shape:
    """The structure between known nodes and wanted ones, inputs before users."""
    numbers_of: dict[Node, int] = {}
    inputs: list[Node] = []
    values: list[Array] = []
    parts: list[Any] = []
    order: list[Node] = []
    for root in wanted:
        stack = [(root, 0)]
        while stack:
            node, at = stack.pop()
            if node in numbers_of:
                continue
            if node in known:
                numbers_of[node] = len(numbers_of)
                parts.append(node.type)
                inputs.append(node)
                continue
            ins = node.inputs
            while at < len(ins) and ins[at] in numbers_of:
                at += 1
            if at < len(ins):
                stack += [(node, at + 1), (ins[at], 0)]
                continue
            op = node.op
            if isinstance(op, Constant) and op.value.array.size == 1 and op.value.array.dtype.kind in "fiub":
                parts.append((op.value.array.dtype, op.value.array.shape))
                values.append(op.value.array)
            else:
                parts.append((op, *(numbers_of[i] for i in ins)))
            numbers_of[node] = len(numbers_of)
            order.append(node)
    key = (*parts, *(numbers_of[w] for w in wanted))
    return Shape(key, tuple(inputs), tuple(values), tuple(order))


def segment_of(wanted: Sequence[Node], shape: Shape, updates: tuple[tuple[int, int], ...], name: str) -> Segment:
    """The segment that computes the wanted nodes; compiled if its structure is new.   updates: as in `Graph`."""
    key = (shape.key, updates)
    numbers = tuple(v.tobytes() for v in shape.numbers)
    with _LOCK:
        family = _FAMILIES.get(key)
        if family is None:
            family = _FAMILIES[key] = Family()
        member = tuple(b"" if i in family.lifted else v for i, v in enumerate(numbers))
        found = family.members.get(member)
        if found is None:
            if family.seen:  # the number that changes becomes an input
                near = min(family.seen, key=lambda s: sum(a != b for a, b in zip(s, numbers, strict=True)))
                family.lifted |= {i for i, (a, b) in enumerate(zip(near, numbers, strict=True)) if a != b}
                member = tuple(b"" if i in family.lifted else v for i, v in enumerate(numbers))
                found = family.members.get(member)
            family.seen.append(numbers)
            if found is None:
                found = family.members[member] = _make(wanted, shape, updates, tuple(sorted(family.lifted)), name)
    return found


def _make(wanted: Sequence[Node], shape: Shape, updates: tuple[tuple[int, int], ...], lifted: tuple[int, ...], name: str) -> Segment:
    new: dict[Node, Node] = {n: param(f"x{i}", n.type, n.loc) for i, n in enumerate(shape.inputs)}
    params = list(new.values())
    number = 0
    for node in shape.order:
        op = node.op
        if isinstance(op, Constant) and op.value.array.size == 1 and op.value.array.dtype.kind in "fiub":
            if number in lifted:
                new[node] = param(f"n{number}", node.type, node.loc)
                params.append(new[node])
            else:
                new[node] = node
            number += 1
        else:
            new[node] = same_node(node, tuple(new[i] for i in node.inputs))
    graph = Graph(name, tuple(params), tuple(new[w] for w in wanted), updates=updates)
    return Segment(compiled(graph), lifted, updates, graph)


def compiled(graph: Graph) -> Instance:
    """The graph as a Program, ready to run; from the disk where it was compiled before."""
    engine = Cpu(config("threads"))
    store, key = open_store("programs"), ""
    if store is not None:
        key = digest(code_version(), engine.identity, print_graph(graph, places=False))  # the text names large constants by their digest
        raw = store.read_into(key, allocate)
        if raw is not None:
            with span("load", graph=graph.name):
                native = engine.restore(raw)
            assert isinstance(native, Native), "the CPU engine makes native code"
            check_fits(native.program, None)
            event("segment", graph=graph.name, nodes=graph.count(), cached=True)
            return native.instance
    with span("compile", graph=graph.name, nodes=graph.count()):
        native = engine.compile(graph)
    assert isinstance(native, Native), "the CPU engine makes native code"
    check_fits(native.program, native.compiled.report.plan if native.compiled else None)
    if store is not None and (blobs := engine.dump(native)) is not None:
        store.put_later(key, *blobs)
    event("segment", graph=graph.name, nodes=graph.count(), cached=False)
    return native.instance
