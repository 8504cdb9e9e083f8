"""Axes of a loop nest: the coarsest ones of which the dimensions of every value in a group are runs.

In: shapes of full-sized values, and the nodes below them.  Out: sizes of the axes, outermost first.  An axis begins as all elements in one
row; a reshape cuts it where a dimension ends, a transpose only renames, so that [128, 768] seen as [128, 12, 64] with the first two
exchanged needs the axes 128, 12, 64 although 128 * 12 elements of one order are no multiple of the other's.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from jumar.ir import Node
from jumar.operators.families import Elementwise
from jumar.operators.movement import Broadcast, Reshape, Slice, Transpose


class NoAxes(Exception):
    """A dimension ends in the middle of an axis that cannot be cut there."""


class Axis:
    """One axis; cut in two, it is its parts.   size: steps along it."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.parts: tuple[Axis, Axis] | None = None

    def leaves(self) -> list[Axis]:
        """What the axis is by now, outermost first."""
        return [self] if self.parts is None else [leaf for part in self.parts for leaf in part.leaves()]

    def cut(self, inner: int) -> None:
        """Cuts the axis so that its inner part has `inner` steps."""
        if self.size % inner:
            raise NoAxes
        self.parts = (Axis(self.size // inner), Axis(inner))


Index = list[list[Axis]]  # for each dimension the axes of which it is a run


class Axes:
    """Axes of all elements of a nest.   total: how many there are."""

    def __init__(self, total: int) -> None:
        self.root = Axis(total)
        self.sliced: dict[tuple[Node, int], Axis] = {}  # the axis of a dimension of which only a part is read

    def sizes(self) -> tuple[int, ...]:
        """The axes, outermost first."""
        return tuple(leaf.size for leaf in self.root.leaves() if leaf.size > 1)

    def dense(self, shape: Sequence[int]) -> Index:
        """The dimensions of a full-sized value in the nest's own order."""
        return self.shaped([self.root], shape)

    def shaped(self, run: Sequence[Axis], shape: Sequence[int]) -> Index:
        """Dimensions of a shape along a run of axes, cut where they must be."""
        left = [leaf for axis in run for leaf in axis.leaves()]
        found: Index = []
        for size in reversed(shape):
            dim: list[Axis] = []
            have = 1
            while have < size:
                if not left:
                    raise NoAxes
                axis = left.pop()
                if have * axis.size > size:
                    if size % have:
                        raise NoAxes
                    axis.cut(size // have)
                    left += axis.leaves()
                    continue
                dim.insert(0, axis)
                have *= axis.size
            if have != size:
                raise NoAxes
            found.insert(0, dim)
        return found

    def descend(self, node: Node, index: Index, leaves: Collection[Node], seen: set[tuple[object, ...]]) -> None:
        """Follows an index from a value to what it is made from, as far as elements correspond."""
        key = (node, *(tuple(id(leaf) for a in dim for leaf in a.leaves()) for dim in index))
        if node in leaves or not node.inputs or key in seen:
            return
        seen.add(key)
        match node.op:
            case Transpose(perm=perm):
                inner: Index = [[] for _ in perm]
                for d, p in enumerate(perm):
                    inner[p] = index[d]
                self.descend(node.inputs[0], inner, leaves, seen)
            case Reshape():
                (x,) = node.inputs
                if not (x in leaves or not x.inputs) or math.prod(a.size for dim in index for a in dim) == x.type.size:
                    run = [a for dim in index for a in dim]
                    if math.prod(a.size for a in run) == x.type.size:
                        self.descend(x, self.shaped(run, x.shape), leaves, seen)
            case Slice(starts=starts, steps=steps):
                (x,) = node.inputs
                whole = [a == 0 and s == 1 and n == m for a, s, n, m in zip(starts, steps, node.shape, x.shape, strict=True)]
                # one axis for all who slice that value: with fresh ones `seen` would know none of them, and walk below x for each
                apart = [self.sliced.setdefault((x, d), Axis(n)) for d, n in enumerate(x.shape)]
                self.descend(x, [dim if w else [a] for dim, w, a in zip(index, whole, apart, strict=True)], leaves, seen)
            case Broadcast() | Elementwise():
                for x in node.inputs:
                    skip = node.rank - x.rank
                    self.descend(x, [[] if n == 1 else dim for n, dim in zip(x.shape, index[skip:], strict=True)], leaves, seen)
            case _:
                pass


def axes_of(total: int, roots: Sequence[Node], leaves: Collection[Node]) -> tuple[int, ...]:
    """The axes of a nest of so many elements.   roots: full-sized values in the nest's own order; below them the walk goes."""
    axes = Axes(total)
    before = 0
    # ends: a cut leaves two parts of at least 2, so the root has at most log2(total) axes.  Those of slices do not count, for no cut of
    # them reaches the root's
    while len(axes.root.leaves()) != before:
        before = len(axes.root.leaves())
        seen: set[tuple[object, ...]] = set()
        for root in roots:
            axes.descend(root, axes.dense(root.shape), leaves, seen)
    return axes.sizes()
