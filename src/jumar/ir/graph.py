"""`Node` and `Graph`: values of the graph engine, and `apply`, which makes a node from an operator and its inputs.

In: operators applied to nodes by importers and the front end.  Out: immutable graphs; passes make new ones.
Nodes compare by identity; a graph holds what its outputs reach, so dead code falls away by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from jumar.base import Array, IRError, Loc, OpError, StackError, TensorType, type_of
from jumar.ir.op import Data, Op, Result
from jumar.ir.signature import check_inputs

NOWHERE = Loc()


class Param(Op):
    """An input of a graph; its node is listed in `Graph.params`."""

    label: str

    def infer(self, *types: TensorType) -> Result:
        raise IRError("param: a parameter gets its type when it is made, by `param(name, type)`")


class Constant(Op):
    """A value that is known at compile time."""

    value: Data
    family = "source"

    def infer(self, *types: TensorType) -> Result:
        return type_of(self.value.array)

    def reference(self, *arrays: Array) -> Array:
        return self.value.array


class Get(Op):
    """One result of a node that has several."""

    index: int
    family = "movement"

    def infer(self, *types: Any) -> Result:
        (source,) = types
        if not isinstance(source, tuple) or not 0 <= self.index < len(source):
            raise OpError(f"get: index must be one of the results of {source}, got {self.index}")
        found: TensorType = source[self.index]
        return found

    def reference(self, *arrays: Any) -> Array:
        result: Array = arrays[0][self.index]
        return result


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """One application of an operator: its own value.   type: a TensorType, or a tuple where there are several results."""

    op: Op
    inputs: tuple[Node, ...]
    type: Any
    loc: Loc = NOWHERE

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.type.dims
        return shape

    @property
    def dtype(self) -> Any:
        return self.type.dtype

    @property
    def rank(self) -> int:
        return len(self.type.shape)

    def __getitem__(self, index: int) -> Node:
        """Result `index` of a node with several."""
        return apply(Get(index), self, loc=self.loc)

    @property
    def results(self) -> tuple[Node, ...]:
        """The results as nodes: itself, or one `get` for each."""
        if isinstance(self.type, tuple):
            return tuple(self[i] for i in range(len(self.type)))
        return (self,)

    @property
    def array(self) -> Array | None:
        """The value, where the node is a constant."""
        return self.op.value.array if isinstance(self.op, Constant) else None

    def __repr__(self) -> str:
        return f"<{self.op}: {self.type}>"

    def __iter__(self) -> Iterator[Node]:
        return iter(self.results)


MAX_TYPES = 1 << 16
_TYPES: dict[tuple[Any, ...], Result] = {}  # what was inferred already: graphs apply the same operators to the same types again and again


def _inferred(op: Op, inputs: tuple[Node, ...], place: Loc) -> Result:
    """The type of the result; an error says where."""
    try:
        if op.signature:  # those without are made by graphs and passes
            check_inputs(op.name, op.signature, [n.type for n in inputs])
        type_ = op.infer(*(n.type for n in inputs))
        for t in type_ if isinstance(type_, tuple) else (type_,):
            if any(d < 0 for d in t.shape if not isinstance(d, str)):
                raise OpError(f"{op.name}: dimensions of the result must be 0 or more, got {t} from {op}", code="dims-negative")
    except StackError as error:
        if error.loc is None:
            error.loc = place
        raise
    except (ValueError, IndexError, TypeError) as error:
        types = ", ".join(str(n.type) for n in inputs)
        raise OpError(f"{op.name}: inputs and attributes must fit, got {op} on ({types}): {error}", loc=place, code="op-inputs") from error
    return type_


def apply(op: Op, *inputs: Node, loc: Loc | None = None) -> Node:
    """The node of `op` on `inputs`, its type inferred; the place defaults to the first input's that has one."""
    place = loc or _CURRENT_LOC.get() or next((n.loc for n in inputs if n.loc is not NOWHERE), NOWHERE)
    if op.family == "source":  # values: looking them up costs more
        return Node(op, inputs, _inferred(op, inputs, place), place)
    key = (op, *[n.type for n in inputs])
    type_ = _TYPES.get(key)
    if type_ is None:
        type_ = _inferred(op, inputs, place)
        if len(_TYPES) >= MAX_TYPES:
            _TYPES.clear()
        _TYPES[key] = type_
    return Node(op, inputs, type_, place)


_CURRENT_LOC: ContextVar[Loc | None] = ContextVar("loc", default=None)  # one per thread: models are traced side by side


@contextmanager
def located(loc: Loc | None) -> Iterator[None]:
    """`with located(loc):` gives that place to every node applied inside without one of its own."""
    token = _CURRENT_LOC.set(loc)
    try:
        yield
    finally:
        _CURRENT_LOC.reset(token)


def param(label: str, type_: TensorType, loc: Loc = NOWHERE) -> Node:
    """A graph input."""
    return Node(Param(label), (), type_, loc)


def constant(value: Any, dtype: Any = None, loc: Loc | None = None) -> Node:
    """A node of a known value.   dtype: a DType, or the value's own."""
    array = np.asarray(value) if dtype is None else np.asarray(value).astype(dtype.numpy)
    return apply(Constant(Data(array)), loc=loc)


@dataclass(frozen=True, eq=False)
class Graph:
    """A function: parameters to outputs.   output_names: for the user, in order.

    updates: pairs (number of an output, number of a parameter): in a compiled program that output replaces the memory of that input.
    What the graph computes is the same without them: every node reads the old values.
    """

    name: str
    params: tuple[Node, ...]
    outputs: tuple[Node, ...]
    output_names: tuple[str, ...] = field(default=())
    updates: tuple[tuple[int, int], ...] = field(default=())

    def __post_init__(self) -> None:
        if self.updates:
            _check_updates(self)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes that the outputs reach, inputs before users; parameters first, used or not."""
        return topological(self.outputs, self.params)

    @cached_property
    def users(self) -> dict[Node, tuple[Node, ...]]:
        """Who reads each node (once per reading)."""
        found: dict[Node, list[Node]] = {n: [] for n in self.nodes}
        for n in self.nodes:
            for i in n.inputs:
                found[i].append(n)
        return {n: tuple(u) for n, u in found.items()}

    def count(self) -> int:
        """Number of operators: nodes that are neither parameters, constants nor `get`."""
        return sum(not isinstance(n.op, Param | Constant | Get) for n in self.nodes)

    def with_outputs(self, outputs: Iterable[Node]) -> Graph:
        """The same function with other nodes for its outputs, one for each."""
        return Graph(self.name, self.params, tuple(outputs), self.output_names, self.updates)

    def __str__(self) -> str:
        from jumar.ir.text import print_graph  # noqa: PLC0415  (text reads graphs)

        return print_graph(self)


def _check_updates(graph: Graph) -> None:
    """Each output updates one parameter of its type at most, and each parameter is updated once at most."""
    outputs, params = [o for o, _ in graph.updates], [p for _, p in graph.updates]
    if len(set(outputs)) < len(outputs) or len(set(params)) < len(params):
        raise IRError(f"{graph.name}: updates must name each output and each parameter once, got {graph.updates}", code="updates")
    for output, parameter in graph.updates:
        if not (0 <= output < len(graph.outputs) and 0 <= parameter < len(graph.params)):
            have = f"{len(graph.outputs)} outputs and {len(graph.params)} parameters"
            raise IRError(f"{graph.name}: updates must lie within {have}, got {(output, parameter)}", code="updates")
        value, target = graph.outputs[output], graph.params[parameter]
        if value.type != target.type:
            raise IRError(
                f"{graph.name}: an update must keep the type of {target.op}, {target.type}, got {value.type}", loc=value.loc, code="updates"
            )


def topological(outputs: Iterable[Node], first: Iterable[Node] = ()) -> tuple[Node, ...]:
    """Nodes in an order where inputs come before users, without recursion (graphs are deep)."""
    done: dict[Node, None] = dict.fromkeys(first)
    for root in outputs:
        stack: list[tuple[Node, int]] = [(root, 0)]
        while stack:
            node, at = stack.pop()
            if node in done:
                continue
            while at < len(node.inputs) and node.inputs[at] in done:
                at += 1
            if at < len(node.inputs):
                stack.append((node, at + 1))
                stack.append((node.inputs[at], 0))
            else:
                done[node] = None
    return tuple(done)


def rebuild(graph: Graph, visit: Callable[[Node, tuple[Node, ...]], Node]) -> Graph:
    """A new graph: `visit(node, new_inputs)` gives each node's successor, inputs first; params stay themselves."""
    new: dict[Node, Node] = {p: p for p in graph.params}
    for node in graph.nodes:
        if node not in new:
            new[node] = visit(node, tuple(new[i] for i in node.inputs))
    return graph.with_outputs(new[o] for o in graph.outputs)


def same_node(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The node on new inputs; itself where they are the old ones."""
    if all(a is b for a, b in zip(node.inputs, inputs, strict=True)):
        return node
    if all(a.type == b.type for a, b in zip(node.inputs, inputs, strict=True)):
        return Node(node.op, inputs, node.type, node.loc)
    return apply(node.op, *inputs, loc=node.loc)
