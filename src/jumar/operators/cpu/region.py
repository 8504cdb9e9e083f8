"""Regions: a group of operators as one loop nest: an iteration space, and where each operand is read and written in it.

In: nodes of a graph (a single operator, or the body of a `Fused`).  Out: `Region`, for `pointwise.py` and `rows.py`.

The walk goes from the results to the inputs and carries, for each dimension of a value, how it follows from the axes of the space.
So transposes, slices, broadcasts and reshapes inside a group cost nothing: they only change strides.
Composite operators are taken apart; `reduce` operators make a region with reduced axes, where all must reduce the same ones.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from jumar.base import NATIVE, DType, bool_, i32, i64
from jumar.ir import Constant, Get, Node, param, topological
from jumar.operators.cpu.axes import NoAxes, axes_of
from jumar.operators.cpu.expression import Accumulate, Expression, Position, Step, StepOp, number_of
from jumar.operators.elementwise import Cast, Div, Equal, IsNan, Or, Select
from jumar.operators.families import Composite, Elementwise, Reduction
from jumar.operators.movement import Broadcast, Reshape, Slice, Transpose
from jumar.operators.reduction import (
    ArgMax,
    ArgMin,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
)


@dataclass(frozen=True)
class Part:
    """How one dimension of a value follows from the space: start + the sum of axis * step."""

    terms: tuple[tuple[int, int], ...] = ()
    start: int = 0


Index = tuple[Part, ...]  # one Part for each dimension of a value


@dataclass(frozen=True)
class Operand:
    """A value in memory, seen from the space: elements to move for one step of each axis, and where it begins."""

    node: Node
    strides: tuple[int, ...]
    offset: int = 0


@dataclass(frozen=True)
class Region:
    """A loop nest.   space: sizes of the axes; reduced: which of them are summed away; operands: one for each input of the expression,
    targets: one for each output, on nodes that only stand for it."""

    space: tuple[int, ...]
    reduced: frozenset[int]
    expression: Expression
    operands: tuple[Operand, ...]
    targets: tuple[Operand, ...]

    @property
    def size(self) -> int:
        """Points of the space."""
        return math.prod(self.space)


class _NoRegion(Exception):
    """These nodes are not one loop nest."""


def region_of(outputs: Sequence[Node], leaves: Collection[Node] = ()) -> Region | None:
    """The loop nest that computes `outputs` from `leaves` (parameters and constants always are), or None where there is none."""
    try:
        return _Walk(outputs, leaves).region()
    except _NoRegion:
        return None


REDUCTIONS: dict[type[Reduction], str] = {
    ReduceSum: "add", ReduceMean: "add", ReduceMax: "max", ReduceMin: "min", ReduceProd: "mul", ReduceAny: "or", ReduceAll: "and",
}  # fmt: skip
_Reducing = Reduction | ArgMax | ArgMin


class _Walk:
    """State of one walk: steps and operands found so far."""

    def __init__(self, outputs: Sequence[Node], leaves: Collection[Node]) -> None:
        self.leaves = frozenset(leaves)
        self.outputs = [self.plain(o) for o in outputs]
        self.inputs: dict[Operand, int] = {}
        self.steps: dict[Step, int] = {}
        self.memo: dict[tuple[Node, Index], int] = {}
        self.rows: dict[Node, Index | None] = {}
        self.nodes = [n for n in topological(self.outputs, self.leaves) if n not in self.leaves]
        self.reductions = [n for n in self.nodes if isinstance(n.op, _Reducing)]
        self.total = (self.reductions[0].inputs[0] if self.reductions else self.outputs[0]).type.size
        self.space = self.refine()
        self.reduced = self.reduced_axes()

    def plain(self, root: Node) -> Node:
        """The node with composite operators taken apart, as far as the leaves."""
        new: dict[Node, Node] = {}
        for node in topological([root], self.leaves):
            if node in self.leaves or not node.inputs:
                new[node] = node
                continue
            inputs = tuple(new[i] for i in node.inputs)
            source = node.inputs[0]
            if isinstance(node.op, Get) and isinstance(source.op, Composite) and source not in self.leaves:
                parts = source.op.decompose(*(new[i] for i in source.inputs))
                new[node] = self.plain(parts[node.op.index])
            elif isinstance(node.op, Composite) and not isinstance(node.type, tuple):
                simple = node.op.decompose(*inputs)
                assert isinstance(simple, Node), "one result decomposes into one node"
                new[node] = self.plain(simple) if simple.op != node.op else simple
            else:
                new[node] = node if inputs == node.inputs else Node(node.op, inputs, node.type, node.loc)
        return new[root]

    # ------------------------------------------------------------------ the space
    def refine(self) -> tuple[int, ...]:
        """Axes so fine that each dimension of each full-sized value is a run of them."""
        roots = [r.inputs[0] for r in self.reductions] + [o for o in self.outputs if o.type.size == self.total]
        if self.total == 0:
            return roots[0].shape
        try:
            return axes_of(self.total, roots, self.leaves)
        except NoAxes as error:
            raise _NoRegion from error

    def identity(self, shape: Sequence[int]) -> Index:
        """The index of a value of the full size, whose dimensions are runs of axes."""
        if math.prod(shape) != self.total:
            raise _NoRegion
        if self.total == 0:  # nothing to refine: the axes are the dimensions
            return tuple(Part(((d, 1),)) for d in range(len(shape)))
        parts: list[Part] = []
        axis = len(self.space)
        for dim in reversed(shape):
            terms, step = [], 1
            while step < dim:
                axis -= 1
                if axis < 0:
                    raise _NoRegion
                terms.append((axis, step))
                step *= self.space[axis]
            if step != dim:
                raise _NoRegion
            parts.append(Part(tuple(reversed(terms))))
        return tuple(reversed(parts))

    def reduced_axes(self) -> frozenset[int]:
        found = set()
        for node in self.reductions:
            source = node.inputs[0]
            index = self.identity(source.shape)
            found.add(frozenset(axis for d in _reduced_dims(node) for axis, _ in index[d].terms))
        if len(found) > 1:
            raise _NoRegion
        return found.pop() if found else frozenset()

    def is_leaf(self, node: Node) -> bool:
        return node in self.leaves or not node.inputs

    # ------------------------------------------------------------------ where results go
    def row_index(self, node: Node) -> Index | None:
        """The index of a value that follows from reductions, from below; None for what says nothing."""
        if node not in self.rows:  # each node once: there are exponentially many ways through x ** x ** x
            self.rows[node] = self._row_index(node)
        return self.rows[node]

    def _row_index(self, node: Node) -> Index | None:
        if self.is_leaf(node):
            return None
        match node.op:
            case Reduction() | ArgMax() | ArgMin():
                return self.kept_index(node)
            case Reshape():
                below = self.row_index(node.inputs[0])
                return below and _reshape(below, node.inputs[0].shape, node.shape, self.space)
            case Transpose(perm=perm):
                below = self.row_index(node.inputs[0])
                return below and tuple(below[p] for p in perm)
            case Elementwise():
                merged = [Part()] * node.rank
                known = False
                for source in node.inputs:
                    index = self.row_index(source)
                    if index is None:
                        continue
                    known = True
                    for d, part in enumerate(index, node.rank - len(index)):
                        merged[d] = part if part.terms else merged[d]
                if not known or any(d > 1 and not p.terms for d, p in zip(node.shape, merged, strict=True)):
                    return None
                return tuple(merged)
        return None

    def kept_index(self, node: Node) -> Index:
        """The index of a reduction's result."""
        assert not isinstance(node.type, tuple), "a reduction has one result"
        index, dims = self.identity(node.inputs[0].shape), _reduced_dims(node)
        keepdims = bool(node.op.keepdims)  # type: ignore[attr-defined]
        return tuple(Part() if d in dims else p for d, p in enumerate(index) if keepdims or d not in dims)

    # ------------------------------------------------------------------ the walk
    def region(self) -> Region:
        numbers: list[int] = []
        targets: list[Operand] = []
        for output in self.outputs:
            full = output.type.size == self.total
            index = self.identity(output.shape) if full else self.row_index(output)
            if index is None:
                raise _NoRegion
            numbers.append(self.visit(output, index))
            targets.append(self.operand(param(f"result{len(targets)}", output.type), index))
        count = len(self.inputs)
        inputs = tuple(o.node.dtype for o in self.inputs)
        steps = tuple(replace(s, args=tuple(_renumber(a, count) for a in s.args)) for s in self.steps)
        expression = Expression(inputs, steps, tuple(_renumber(n, count) for n in numbers))
        return Region(self.space, self.reduced, expression, tuple(self.inputs), tuple(targets))

    def operand(self, node: Node, index: Index) -> Operand:
        """The value in memory, dense, as seen through `index`."""
        if node.dtype not in NATIVE:
            raise _NoRegion
        strides, offset, dense = [0] * len(self.space), 0, 1
        for dim, part in zip(reversed(node.shape), reversed(index), strict=True):
            for axis, step in part.terms:
                strides[axis] += step * dense
            offset += part.start * dense
            dense *= dim
        return Operand(node, tuple(strides), offset)

    def step(self, op: StepOp, args: Sequence[int], dtype: DType) -> int:
        """The number of a step: negative until the inputs are counted (-1 is the first step)."""
        if dtype not in NATIVE:
            raise _NoRegion
        return self.steps.setdefault(Step(op, tuple(args), dtype), -1 - len(self.steps))

    def visit(self, node: Node, index: Index) -> int:
        """The number of a value at an index."""
        key = (node, index)
        if key not in self.memo:
            self.memo[key] = self.make(node, index)
        return self.memo[key]

    def make(self, node: Node, index: Index) -> int:
        if isinstance(node.op, Constant) and node not in self.leaves and node.type.size == 1 and node.dtype in NATIVE:
            return self.step(number_of(node.op.value.array.reshape(()).item()), (), node.dtype)
        if self.is_leaf(node):
            return self.inputs.setdefault(self.operand(node, index), len(self.inputs))
        match node.op:
            case Transpose(perm=perm):
                inner = [Part()] * node.rank
                for d, p in enumerate(perm):
                    inner[p] = index[d]
                return self.visit(node.inputs[0], tuple(inner))
            case Reshape():
                found = _reshape(index, node.shape, node.inputs[0].shape, self.space)
                return self.visit(node.inputs[0], found)
            case Broadcast():
                return self.visit(node.inputs[0], _spread(index, node.inputs[0].shape))
            case Slice(starts=starts, steps=steps):
                moved = (
                    Part(tuple((a, s * by) for a, s in p.terms), p.start * by + start)
                    for p, start, by in zip(index, starts, steps, strict=True)
                )
                return self.visit(node.inputs[0], tuple(moved))
            case Reduction() | ArgMax() | ArgMin():
                return self.reduction(node, index)
            case Elementwise():
                return self.step(node.op, [self.visit(i, _spread(index, i.shape)) for i in node.inputs], node.dtype)
        raise _NoRegion

    def reduction(self, node: Node, index: Index) -> int:
        if index != self.kept_index(node):
            raise _NoRegion  # the result is read in another order than it is made
        source = node.inputs[0]
        x = self.visit(source, self.identity(source.shape))
        dtype = source.dtype
        match node.op:
            case ReduceMean():
                return self.mean(x, dtype, math.prod(source.shape[d] for d in _reduced_dims(node)))
            case ArgMax() | ArgMin() as op:
                best = self.step(Accumulate("max" if isinstance(op, ArgMax) else "min"), (x,), dtype)
                hit = self.step(Equal(), (x, best), bool_)
                if dtype.is_float:  # NaN wins, as in NumPy, and is equal to nothing
                    hit = self.step(Or(), (hit, self.step(IsNan(), (x,), bool_)), bool_)
                none = self.step(number_of(-1 if op.select_last else 2**31 - 1), (), i32)
                at = self.step(Select(), (hit, self.step(Position(), (), i32), none), i32)
                found = self.step(Accumulate("max" if op.select_last else "min"), (at,), i32)
                return self.step(Cast(i64), (found,), i64)
            case op if type(op) in REDUCTIONS:
                return self.step(Accumulate(REDUCTIONS[type(op)]), (x,), node.dtype)  # type: ignore[index]
        raise _NoRegion

    def mean(self, x: int, dtype: DType, count: int) -> int:
        """Of integers toward zero, summed in i64."""
        if dtype.is_float:
            return self.step(Div(), (self.step(Accumulate("add"), (x,), dtype), self.step(number_of(float(count)), (), dtype)), dtype)
        total = self.step(Accumulate("add"), (self.step(Cast(i64), (x,), i64),), i64)
        return self.step(Cast(dtype), (self.step(Div(), (total, self.step(number_of(count), (), i64)), i64),), dtype)


def _reduced_dims(node: Node) -> tuple[int, ...]:
    """Which dimensions of its input a reduction removes."""
    rank = node.inputs[0].rank
    match node.op:
        case Reduction() as op:
            return op.over(rank)
        case ArgMax(axis=axis) | ArgMin(axis=axis):
            return (axis % rank,)
    raise AssertionError("a reduction: this is our bug")


def _renumber(number: int, count: int) -> int:
    return number if number >= 0 else count - 1 - number


def _spread(index: Index, shape: Sequence[int]) -> Index:
    """The index of an operand of this shape that is broadcast to the value at `index`."""
    skip = len(index) - len(shape)
    return tuple(Part() if dim == 1 else part for dim, part in zip(shape, index[skip:], strict=True))


def _cuts(shape: Sequence[int]) -> list[int]:
    """Products of the trailing dimensions: where dimensions begin and end in memory."""
    found = [1]
    for dim in reversed(shape):
        found.append(found[-1] * dim)
    return found


def _reshape(index: Index, old: Sequence[int], new: Sequence[int], space: Sequence[int]) -> Index:
    """The index of a value seen in shape `new`, from that in shape `old`."""
    if math.prod(old) == 0:
        raise _NoRegion
    cuts = sorted({*_cuts(old), *_cuts(new)})
    if any(b % a for a, b in pairwise(cuts)):
        raise _NoRegion
    pieces: dict[int, tuple[tuple[int, int], ...]] = {}  # terms of the factor that begins at a cut
    at = 1
    for dim, part in zip(reversed(old), reversed(index), strict=True):
        if dim == 1:
            continue
        inside = [c // at for c in cuts if at <= c < at * dim]
        for low, high in zip(inside, [*inside[1:], dim], strict=True):
            if part.start:
                raise _NoRegion
            terms = [(axis, step) for axis, step in part.terms if low <= step < high]
            if any(step % low or step * space[axis] > high for axis, step in terms):
                raise _NoRegion
            pieces[low * at] = tuple((axis, step // low) for axis, step in terms)
        if any(step < 1 for _, step in part.terms):
            raise _NoRegion
        at *= dim
    parts: list[Part] = []
    at = 1
    for dim in reversed(new):
        found = [(axis, step * cut // at) for cut, terms in pieces.items() if at <= cut < at * dim for axis, step in terms]
        parts.append(Part(tuple(sorted(found))))
        at *= dim
    return tuple(reversed(parts))


def collapse(region: Region) -> Region:
    """The same nest with as few axes as can be: those of size 1 dropped, neighbours merged where every operand allows it."""
    everything = (*region.operands, *region.targets)
    axes: list[tuple[int, bool, list[int]]] = []  # size, reduced, strides of everything
    for axis, size in enumerate(region.space):
        if size == 1:
            continue
        strides = [o.strides[axis] for o in everything]
        is_reduced = axis in region.reduced
        if axes:
            last_size, last_reduced, last = axes[-1]
            if last_reduced == is_reduced and all(a == b * size for a, b in zip(last, strides, strict=True)):
                axes[-1] = (last_size * size, is_reduced, strides)
                continue
        axes.append((size, is_reduced, strides))
    return with_axes(region, axes)


def with_axes(region: Region, axes: Sequence[tuple[int, bool, Sequence[int]]]) -> Region:
    """The region with other axes: (size, reduced, strides of operands and targets) for each."""
    moved = [replace(o, strides=tuple(s[i] for _, _, s in axes)) for i, o in enumerate((*region.operands, *region.targets))]
    count = len(region.operands)
    reduced = frozenset(i for i, (_, r, _) in enumerate(axes) if r)
    return Region(tuple(size for size, _, _ in axes), reduced, region.expression, tuple(moved[:count]), tuple(moved[count:]))
