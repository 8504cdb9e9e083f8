"""The same model at another batch or another length.

In: a graph whose dimensions are numbers.  Out: the graph with one of them grown or shrunk, or None where sizes do not tell where it is.  Read by advice.py,
which forecasts it.  A dimension is followed from the parameters on; in a reshape it is the one with as many elements before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from jumar.base import StackError, TensorType
from jumar.ir import Graph, Node, Param, apply, param, same_node
from jumar.operators import Broadcast, Concat, Elementwise, Pad, Reshape, Resize, Slice


class NotSo(Exception):
    """The graph cannot be changed in this way."""


def changed(graph: Graph, params: Sequence[Node], visit: Callable[[Node, tuple[Node, ...]], Node]) -> Graph | None:
    """The graph on new parameters, node by node; None where an operator does not take what its inputs have become."""
    new: dict[Node, Node] = dict(zip(graph.params, params, strict=True))
    try:
        for node in graph.nodes:
            if node not in new:
                new[node] = visit(node, tuple(new[i] for i in node.inputs))
    except (StackError, NotSo):
        return None
    return Graph(graph.name, tuple(params), tuple(new[o] for o in graph.outputs), graph.output_names)


def label_of(node: Node) -> str:
    """The name of a parameter."""
    assert isinstance(node.op, Param), "a parameter of the graph"
    return node.op.label


def batch_of(graph: Graph) -> int:
    """Examples in one run: the leading dimension that most parameters of two dimensions and more share; 1 where there is none."""
    leading = [p.shape[0] for p in graph.params if isinstance(p.type, TensorType) and p.rank >= 2]
    return max(set(leading), key=leading.count) if leading else 1


def with_batch(graph: Graph, batch: int) -> Graph | None:
    """The graph for so many examples; None where an operator mixes them, too."""
    before = batch_of(graph)
    if batch == before or batch < 1 or not graph.params:
        return None
    growth = Growth(before, Fraction(batch, before), leading=True)
    found = growth.of(graph, lambda p: (0,) if p.rank and p.shape[0] == before else ())
    if found is None or any(growth.axes(o.type, n.type) == () for o, n in zip(graph.outputs, found.outputs, strict=True)):
        return None
    return found


def with_length(graph: Graph, length: int, other: int) -> Graph | None:
    """The graph with so many rows (tokens, steps) in place of `length`, behind the batch; what is added up over them has more of them."""
    growth = Growth(length, Fraction(other, length), leading=False)
    found = growth.of(graph, lambda p: tuple(i for i in range(1, p.rank) if p.shape[i] == length))
    return None if found is None or all(a.type == b.type for a, b in zip(graph.params, found.params, strict=True)) else found


@dataclass(frozen=True)
class Growth:
    """One size that becomes another everywhere.   before: it; ratio: of the other to it; leading: it is the batch, so examples must not mix."""

    before: int
    ratio: Fraction
    leading: bool

    def of(self, graph: Graph, where: Callable[[Node], tuple[int, ...]]) -> Graph | None:
        """The graph with the dimensions grown that `where` gives of each parameter."""
        params = [self._param(p, where(p) if isinstance(p.type, TensorType) else ()) for p in graph.params]
        return changed(graph, params, self._visit)

    def _param(self, node: Node, axes: tuple[int, ...]) -> Node:
        if not axes:
            return node
        return param(label_of(node), node.type.with_shape(self._scaled(node.shape, axes)), node.loc)

    def axes(self, old: Any, new: Any) -> tuple[int, ...]:
        """The axes that have grown; an error where something else has changed."""
        if not isinstance(old, TensorType) or not isinstance(new, TensorType):
            if old != new:
                raise NotSo
            return ()
        if old.rank != new.rank:
            raise NotSo
        grown = tuple(i for i, (a, b) in enumerate(zip(old.dims, new.dims, strict=True)) if a != b)
        if any(new.dims[i] != self.ratio * old.dims[i] for i in grown):
            raise NotSo
        return grown

    def _visit(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        op = node.op
        if all(a.type == b.type for a, b in zip(node.inputs, inputs, strict=True)):
            if isinstance(op, Broadcast) and self.leading and self.before > 1 and op.shape and op.shape[0] == self.before:
                return apply(Broadcast(self._scaled(op.shape, (0,))), *inputs, loc=node.loc)  # a constant, once for each example
            return same_node(node, inputs)
        grown = [self.axes(a.type, b.type) for a, b in zip(node.inputs, inputs, strict=True)]
        first = next((i for i, axes in enumerate(grown) if axes), None)
        if first is None:
            raise NotSo
        old, axes = node.inputs[first].type, grown[first]
        match op:
            case Reshape(shape=shape):
                places = tuple(self._place(old.dims, axis, shape) for axis in axes)
                return apply(Reshape(self._scaled(shape, places)), *inputs, loc=node.loc)
            case Broadcast(shape=shape):
                places = tuple(axis + len(shape) - old.rank for axis in axes)
                if any(shape[at] != old.dims[axis] for at, axis in zip(places, axes, strict=True)):
                    raise NotSo
                return apply(Broadcast(self._scaled(shape, places)), *inputs, loc=node.loc)
            case Slice(starts=starts, stops=stops, steps=steps):
                whole = tuple(a for a in axes if (starts[a], steps[a]) == (0, 1) and stops[a] >= old.dims[a])
                if self.leading and whole != axes:
                    raise NotSo
                return apply(Slice(starts, self._scaled(stops, whole), steps), *inputs, loc=node.loc)
            case Resize(sizes=sizes) if len(inputs) == 1:
                return apply(replace(op, sizes=self._scaled(sizes, axes)), *inputs, loc=node.loc)
            case Concat(axis=joined):
                if not self.leading and joined % old.rank in axes:
                    raise NotSo
                inputs = tuple(self._fitted(i, g, axes, old) for i, g in zip(inputs, grown, strict=True))
            case Elementwise() if self.before > 1:  # what was written once for each of them, in a constant
                inputs = tuple(self._fitted(i, g, axes, old) for i, g in zip(inputs, grown, strict=True))
            case _ if any(isinstance(value, Graph) for value in op.attributes().values()):
                raise NotSo
        result = apply(op, *inputs, loc=node.loc)
        if isinstance(result.type, TensorType) and not self.axes(node.type, result.type) and self.leading:
            raise NotSo  # examples were mixed
        return result

    def _fitted(self, node: Node, grown: tuple[int, ...], axes: tuple[int, ...], beside: TensorType) -> Node:
        """An operand beside one that has grown along `axes`: grown there, too, where it has the old size."""
        for axis in axes:
            at = axis - beside.rank + node.rank
            if at in grown or at < 0 or node.shape[at] != beside.dims[axis]:
                continue
            node = self._more(node, at)
        return node

    def _more(self, node: Node, at: int) -> Node:
        """A value with more, or less, along an axis."""
        if self.ratio < 1:
            return Slice((0,) * node.rank, self._scaled(node.shape, (at,)), (1,) * node.rank)(node)
        if self.ratio.denominator == 1:
            return Concat(at)(*[node] * self.ratio.numerator)
        more = self._scaled(node.shape, (at,))[at] - node.shape[at]
        return Pad((0,) * node.rank, tuple(more if i == at else 0 for i in range(node.rank)))(node)

    def _place(self, dims: Sequence[int], axis: int, shape: Sequence[int]) -> int:
        """The dimension of a reshape's result in which that axis is: as many elements lie before it; one example may be in a dimension of 1."""
        ahead = math.prod(dims[:axis])
        count = 1
        for i, size in enumerate(shape):
            if (count == ahead and (size > 1 or self.before == 1)) or count < ahead < count * size:
                return i
            count *= size
        raise NotSo

    def _scaled(self, shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
        scaled = [self.ratio * d if i in axes else Fraction(d) for i, d in enumerate(shape)]
        if any(d.denominator > 1 for d in scaled):
            raise NotSo
        return tuple(d.numerator for d in scaled)
