"""Channels last for convolutions and pools, and transposes sunk through everything else until they cancel.

In: a graph that was decomposed for its target.  Out: the same function, where convolutions and pools work on [n, *spatial, c], and the
only transposes left are those that no neighbour could take in.

The pass goes over the graph once and keeps, for each value, the forms in which it is held: the value is a transpose (that need not be
computed) of a node that is.  A transpose in the graph is then nothing but another name for its input; an operator is computed in the
form that costs its inputs least; and what insists on an order (a matrix product, an output) gets a real transpose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jumar.base import TensorType, event
from jumar.ir import Constant, Data, Graph, Node, Op, Param, apply, same_node
from jumar.operators import (
    ArgMax,
    ArgMin,
    AvgPool,
    AvgPoolGrad,
    Broadcast,
    Concat,
    Conv,
    ConvGradInput,
    ConvGradWeight,
    CumProd,
    CumSum,
    Elementwise,
    Gather,
    LayerNorm,
    LogSoftmax,
    LpNorm,
    MaxPool,
    MaxPoolGrad,
    Pad,
    Reduction,
    Reshape,
    Resize,
    RmsNorm,
    Slice,
    Softmax,
    Transpose,
)

Perm = tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """channels_last: whether convolutions and pools change; otherwise transposes are only sunk."""

    channels_last: bool = True
    name = "layout"

    def __call__(self, graph: Graph) -> Graph:
        forms = Forms(graph.params)
        for node in graph.nodes:
            if not isinstance(node.op, Param):
                self._visit(node, forms)
        result = graph.with_outputs(forms.get(o, order(o)) for o in graph.outputs)
        left = sum(isinstance(n.op, Transpose) for n in result.nodes)
        before = sum(isinstance(n.op, Transpose) for n in graph.nodes)
        if left or before:
            event("layout", transposes_before=before, transposes_after=left, **forms.counts)
        return result

    def _visit(self, node: Node, forms: Forms) -> None:
        if isinstance(node.type, TensorType) and node.type.size:
            handler = next((HANDLERS[c] for c in type(node.op).__mro__ if c in HANDLERS), None)
            if handler in (windowed, gradient) and not self.channels_last:
                handler = None
            if handler is not None and handler(node, forms):
                return
        forms.hold(node, same_node(node, tuple(forms.get(i, order(i)) for i in node.inputs)), order(node))


def order(node: Node) -> Perm:
    """Dimensions in their own order."""
    return tuple(range(node.rank)) if isinstance(node.type, TensorType) else ()


def inverse(perm: Perm) -> Perm:
    """The permutation that undoes it."""
    found = [0] * len(perm)
    for i, p in enumerate(perm):
        found[p] = i
    return tuple(found)


class Forms:
    """The forms in which values are held: perm -> node, where value dimension i is dimension perm[i] of the node."""

    def __init__(self, params: Sequence[Node]) -> None:
        self.table: dict[Node, dict[Perm, Node]] = {p: {order(p): p} for p in params}
        self.counts: Counter[str] = Counter()

    def hold(self, value: Node, node: Node, perm: Perm) -> None:
        """Notes that `value` is held as `node`."""
        self.table.setdefault(value, {}).setdefault(perm, node)

    def perms(self, value: Node) -> tuple[Perm, ...]:
        """The forms that exist; the first is the one in which the value was computed."""
        return tuple(self.table[value])

    def first(self, value: Node) -> tuple[Node, Perm]:
        """The form in which the value was computed."""
        perm, node = next(iter(self.table[value].items()))
        return node, perm

    def get(self, value: Node, perm: Perm) -> Node:
        """The value in a form, by a transpose (or a reshape, where only dimensions of 1 move) if it is not held so yet."""
        held = self.table[value]
        if perm not in held:
            source, have = self._best(value, perm)
            held[perm] = _transposed(source, move(have, perm))
        return held[perm]

    def cost(self, value: Node, perm: Perm) -> int:
        """Bytes that a transpose into the form would move; 0 where none is needed."""
        if perm in self.table[value] or value.array is not None:
            return 0
        source, have = self._best(value, perm)
        return 0 if _only_ones(source, move(have, perm)) else value.type.nbytes

    def _best(self, value: Node, perm: Perm) -> tuple[Node, Perm]:
        held = self.table[value]
        for have, node in held.items():
            if _only_ones(node, move(have, perm)):
                return node, have
        return self.first(value)


def move(have: Perm, want: Perm) -> Perm:
    """The transpose that turns a node held in one form into the other."""
    return tuple(have[j] for j in inverse(want))


def _only_ones(node: Node, perm: Perm) -> bool:
    moved = [p for p in perm if node.shape[p] != 1]
    return moved == sorted(moved)


def _transposed(node: Node, perm: Perm) -> Node:
    if perm == tuple(range(node.rank)):
        return node
    shape = tuple(node.shape[p] for p in perm)
    if node.array is not None:
        return apply(Constant(Data(np.transpose(node.array, perm))), loc=node.loc)
    return Reshape(shape)(node, loc=node.loc) if _only_ones(node, perm) else Transpose(perm)(node, loc=node.loc)


Handler = Callable[[Node, Forms], bool]
HANDLERS: dict[type, Handler] = {}


def handles(*ops: type) -> Callable[[Handler], Handler]:
    """Registers how operators are computed in other forms; a handler says False where the usual order has to do."""

    def register(function: Handler) -> Handler:
        for op in ops:
            HANDLERS[op] = function
        return function

    return register


def spread(values: Sequence[Any], perm: Perm) -> tuple[Any, ...]:
    """One entry for each dimension of the value, as entries for the dimensions of the node that holds it."""
    return tuple(values[i] for i in inverse(perm))


@handles(Transpose)
def transpose(node: Node, forms: Forms) -> bool:
    """Another name for its input."""
    (x,) = node.inputs
    perm = node.op.perm  # type: ignore[attr-defined]
    for have in forms.perms(x):
        forms.hold(node, forms.table[x][have], tuple(have[p] for p in perm))
    return True


@handles(Conv, MaxPool, AvgPool)
def windowed(node: Node, forms: Forms) -> bool:
    """Convolutions and pools: channels last."""
    op = node.op
    assert isinstance(op, Conv | MaxPool | AvgPool), "listed under these"
    if op.channels_last:
        return False
    rank = node.rank
    perm = (0, rank - 1, *range(1, rank - 1))
    x, *rest = node.inputs
    inputs = [forms.get(x, perm), *(forms.get(r, order(r)) for r in rest)]
    forms.hold(node, apply(replace(op, channels_last=True), *inputs, loc=node.loc), perm)
    forms.counts["channels_last"] += 1
    return True


@handles(ConvGradInput, ConvGradWeight, MaxPoolGrad, AvgPoolGrad)
def gradient(node: Node, forms: Forms) -> bool:
    """Gradients of convolutions and pools: channels last; filters and what they receive keep their order."""
    op = node.op
    assert isinstance(op, ConvGradInput | ConvGradWeight | MaxPoolGrad | AvgPoolGrad), "listed under these"
    if op.channels_last:
        return False
    images = {ConvGradInput: 1, ConvGradWeight: 2, MaxPoolGrad: 3, AvgPoolGrad: 1}[type(op)]  # inputs that are [n, c, ...]
    rank = node.inputs[0].rank
    perm = (0, rank - 1, *range(1, rank - 1))
    inputs = [forms.get(i, perm if at < images else order(i)) for at, i in enumerate(node.inputs)]
    if isinstance(op, ConvGradInput | AvgPoolGrad):
        made: Op = replace(op, channels_last=True, x_shape=spread(op.x_shape, perm))
    else:
        made = replace(op, channels_last=True)
    forms.hold(node, apply(made, *inputs, loc=node.loc), order(node) if isinstance(op, ConvGradWeight) else perm)
    forms.counts["channels_last"] += 1
    return True


@handles(Elementwise)
def elementwise(node: Node, forms: Forms) -> bool:
    """In the form that costs the operands least; smaller operands get the rank first."""
    full = [i for i in node.inputs if i.rank == node.rank]
    perm = _cheapest(full, node, forms)
    if perm == order(node):
        return False
    inputs = [_operand(i, node.rank, perm, forms) for i in node.inputs]
    forms.hold(node, apply(node.op, *inputs, loc=node.loc), perm)
    return True


def _operand(value: Node, rank: int, perm: Perm, forms: Forms) -> Node:
    """An operand in a form of the result's rank; single numbers stay as they are."""
    if value.rank == rank:
        return forms.get(value, perm)
    plain = forms.get(value, order(value))
    if value.type.size == 1:
        return plain
    shape = (1,) * (rank - value.rank) + value.shape
    if plain.array is not None:
        return _transposed(apply(Constant(Data(plain.array.reshape(shape))), loc=value.loc), inverse(perm))
    return _transposed(Reshape(shape)(plain, loc=value.loc), inverse(perm))


def _cheapest(full: Sequence[Node], node: Node, forms: Forms) -> Perm:
    """The form in which the operands of full rank need the fewest bytes moved."""
    usual = order(node)
    traced = [i for i in full if i.array is None]
    if not traced:  # constants can be held in any form; convolutions read the one with channels last
        return (0, node.rank - 1, *range(1, node.rank - 1)) if full and forms.counts["channels_last"] and node.rank > 2 else usual
    candidates = dict.fromkeys(p for i in sorted(traced, key=lambda i: -i.type.size) for p in forms.perms(i))
    largest = max(traced, key=lambda i: i.type.size)
    lower = [i for i in node.inputs if i.rank < node.rank and i.array is None]

    def cost(perm: Perm) -> tuple[int, bool, bool]:
        moved = sum(forms.cost(i, perm) for i in full)
        moved += sum(_lower_cost(i, node.rank, perm) for i in lower)
        return moved, perm != forms.first(largest)[1], perm == usual

    return min([*candidates, usual], key=cost)


def _lower_cost(value: Node, rank: int, perm: Perm) -> int:
    shape = (1,) * (rank - value.rank) + value.shape
    moved = [p for p in inverse(perm) if shape[p] != 1]
    return 0 if moved == sorted(moved) else int(value.type.nbytes)


@handles(Concat)
def concat(node: Node, forms: Forms) -> bool:
    """In the form that costs the pieces least."""
    perm = _cheapest(node.inputs, node, forms)
    axis = perm[node.op.axis % node.rank]  # type: ignore[attr-defined]
    forms.hold(node, Concat(axis)(*(forms.get(i, perm) for i in node.inputs), loc=node.loc), perm)
    return True


@handles(Slice)
def slice_(node: Node, forms: Forms) -> bool:
    """Bounds move with their dimensions."""
    x, perm = forms.first(node.inputs[0])
    op = node.op
    assert isinstance(op, Slice), "listed under Slice"
    made = Slice(spread(op.starts, perm), spread(op.stops, perm), spread(op.steps, perm))(x, loc=node.loc)
    forms.hold(node, made, perm)
    return True


@handles(Pad)
def pad(node: Node, forms: Forms) -> bool:
    """Widths move with their dimensions."""
    if len(node.inputs) != 1:
        return False
    x, perm = forms.first(node.inputs[0])
    op = node.op
    assert isinstance(op, Pad), "listed under Pad"
    forms.hold(node, replace(op, low=spread(op.low, perm), high=spread(op.high, perm))(x, loc=node.loc), perm)
    return True


@handles(Broadcast)
def broadcast(node: Node, forms: Forms) -> bool:
    """A broadcast that adds no dimensions keeps its input's form."""
    if node.inputs[0].rank != node.rank:
        return False
    x, perm = forms.first(node.inputs[0])
    forms.hold(node, Broadcast(spread(node.shape, perm))(x, loc=node.loc), perm)
    return True


@handles(Resize)
def resize(node: Node, forms: Forms) -> bool:
    """Sizes and scales move with their dimensions."""
    op = node.op
    assert isinstance(op, Resize), "listed under Resize"
    if len(node.inputs) != 1 or len(op.sizes) != node.rank or (op.scales and len(op.scales) != node.rank) or op.roi:
        return False
    x, perm = forms.first(node.inputs[0])
    moved = replace(op, sizes=spread(op.sizes, perm), scales=spread(op.scales, perm) if op.scales else op.scales)
    forms.hold(node, moved(x, loc=node.loc), perm)
    return True


@handles(Reduction)
def reduction(node: Node, forms: Forms) -> bool:
    """Reduces the dimensions where they are."""
    x, perm = forms.first(node.inputs[0])
    op = node.op
    assert isinstance(op, Reduction), "listed under Reduction"
    axes = op.over(len(perm))
    made = replace(op, axes=tuple(sorted(perm[a] for a in axes)))(x, loc=node.loc)
    forms.hold(node, made, perm if op.keepdims else _without(perm, axes))
    return True


def _without(perm: Perm, axes: Sequence[int]) -> Perm:
    """The form of a value that lost some dimensions."""
    left = [p for i, p in enumerate(perm) if i not in axes]
    rank = {p: at for at, p in enumerate(sorted(left))}
    return tuple(rank[p] for p in left)


@handles(ArgMax, ArgMin)
def arg_extreme(node: Node, forms: Forms) -> bool:
    """Searches along the dimension where it is."""
    x, perm = forms.first(node.inputs[0])
    op = node.op
    assert isinstance(op, ArgMax | ArgMin), "listed under these"
    axis = op.axis % len(perm)
    forms.hold(node, replace(op, axis=perm[axis])(x, loc=node.loc), perm if op.keepdims else _without(perm, (axis,)))
    return True


@handles(Softmax, LogSoftmax, LpNorm, CumSum, CumProd)
def along_axis(node: Node, forms: Forms) -> bool:
    """Works along its axis where that is, best where it is the last."""
    if len(node.inputs) != 1:
        return False
    (value,) = node.inputs
    op = node.op
    assert isinstance(op, Softmax | LogSoftmax | LpNorm | CumSum | CumProd), "listed under these"
    axis = op.axis % node.rank
    perm = next((p for p in forms.perms(value) if p[axis] == node.rank - 1), forms.perms(value)[0])
    forms.hold(node, replace(op, axis=perm[axis])(forms.get(value, perm), loc=node.loc), perm)
    return True


@handles(LayerNorm, RmsNorm)
def row_norm(node: Node, forms: Forms) -> bool:
    """The normalized dimensions stay the last ones, in their order; those before may be held in any."""
    x, *affine = node.inputs
    axis = node.op.axis % node.rank  # type: ignore[attr-defined]
    perm = next((p for p in forms.perms(x) if p[axis:] == order(node)[axis:]), None)
    if perm is None:
        return False
    inputs = [forms.get(x, perm), *(forms.get(a, order(a)) for a in affine)]
    forms.hold(node, apply(node.op, *inputs, loc=node.loc), perm)
    return True


@handles(Gather)
def gather(node: Node, forms: Forms) -> bool:
    """One index, or a list of them, along the dimension where it is."""
    value, indices = node.inputs
    x, perm = forms.first(value)
    if indices.rank > 1 or perm == order(value):
        return False
    axis = node.op.axis % value.rank  # type: ignore[attr-defined]
    made = Gather(perm[axis])(x, forms.get(indices, order(indices)), loc=node.loc)
    forms.hold(node, made, perm if indices.rank else _without(perm, (axis,)))
    return True


@handles(Reshape)
def reshape(node: Node, forms: Forms) -> bool:
    """Where the dimensions that are joined lie side by side in a form, the reshape is done there."""
    (value,) = node.inputs
    groups = _groups(value.shape, node.shape)
    for perm in forms.perms(value):
        found = _reshaped(value.shape, node.shape, groups, perm)
        if found is not None:
            made = Reshape(spread(node.shape, found))(forms.table[value][perm], loc=node.loc)
            forms.hold(node, made, found)
            return True
    # a transpose is needed: into the form where joined dimensions lie side by side and the rest stays as it lies, innermost first
    near = _side_by_side(value.shape, groups, forms.first(value)[1])
    found = _reshaped(value.shape, node.shape, groups, near)
    assert found is not None, "joined dimensions lie side by side"
    forms.hold(node, Reshape(spread(node.shape, found))(forms.get(value, near), loc=node.loc), found)
    return True


Group = tuple[tuple[int, ...], tuple[int, ...]]


def _groups(old: Sequence[int], new: Sequence[int]) -> list[Group]:
    """Which dimensions become which: the finest runs of equal size, dimensions of 1 left out.

    >>> _groups((2, 12, 5), (2, 3, 4, 5))
    [((0,), (0,)), ((1,), (1, 2)), ((2,), (3,))]
    """
    left, right = [i for i, d in enumerate(old) if d != 1], [i for i, d in enumerate(new) if d != 1]
    groups: list[Group] = []
    a = b = 0
    while a < len(left):
        first_a, first_b = a, b
        size_a, size_b = old[left[a]], new[right[b]]
        a, b = a + 1, b + 1
        while size_a != size_b:
            if size_a < size_b:
                size_a *= old[left[a]]
                a += 1
            else:
                size_b *= new[right[b]]
                b += 1
        groups.append((tuple(left[first_a:a]), tuple(right[first_b:b])))
    return groups


def _side_by_side(old: Sequence[int], groups: Sequence[Group], perm: Perm) -> Perm:
    """The form nearest to `perm` in which the dimensions of each group follow each other."""
    at = {i: k for k, i in enumerate(inverse(perm))}
    sequence = [i for olds, _ in sorted(groups, key=lambda g: at[g[0][-1]]) for i in olds]
    for i, d in enumerate(old):
        if d == 1:
            sequence.insert(sequence.index(i - 1) + 1 if i else 0, i)
    return inverse(tuple(sequence))


def _reshaped(old: Sequence[int], new: Sequence[int], groups: Sequence[Group], perm: Perm) -> Perm | None:
    """The form of the result when the node held in `perm` is reshaped; None where joined dimensions lie apart there."""
    held = [i for i in inverse(perm) if old[i] != 1]  # value dimensions in the order in which they lie in memory
    by_first = {olds[0]: (olds, news) for olds, news in groups}
    sequence: list[int] = []
    at = 0
    while at < len(held):
        if held[at] not in by_first:
            return None
        olds, news = by_first[held[at]]
        if tuple(held[at : at + len(olds)]) != olds:
            return None
        sequence += news
        at += len(olds)
    for i, d in enumerate(new):  # dimensions of 1 follow the one before them
        if d == 1:
            sequence.insert(sequence.index(i - 1) + 1 if i else 0, i)
    return inverse(tuple(sequence))
