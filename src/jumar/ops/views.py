"""Views while something records: a write to a part is seen in the whole, and the reverse, as on arrays.

In: results of reshape, transpose and slicing under a recorder, and writes to tensors.  Out: new nodes for every living tensor of the family
that was written to.
Where nothing records, NumPy's views do this by themselves.  A recorder's values never change, so here a write to a view becomes a new value of its root
(each step knows its way back), and from that the other views are made again; what nobody reads afterwards falls out of the graph.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

from jumar import operators as o
from jumar.frontend.tensor import LOCAL, Tensor
from jumar.ir import Node
from jumar.ops.operands import apply

Strides = tuple[int, ...]


@dataclass(frozen=True)
class Reshaped:
    """The same elements under another shape."""

    shape: tuple[int, ...]

    def forward(self, base: Tensor) -> Tensor:
        return apply(o.Reshape(self.shape), base)  # type: ignore[no-any-return]

    def back(self, base: Tensor, new: Tensor) -> Tensor:
        return apply(o.Reshape(base.shape), new)  # type: ignore[no-any-return]

    def strides(self, shape: tuple[int, ...], strides: Strides) -> Strides:
        found = reshaped_strides(shape, strides, self.shape)
        assert found is not None, "what cannot be a view was not noted as one"
        return found


@dataclass(frozen=True)
class Permuted:
    """Dimensions in another order."""

    perm: tuple[int, ...]

    def forward(self, base: Tensor) -> Tensor:
        return apply(o.Transpose(self.perm), base)  # type: ignore[no-any-return]

    def back(self, base: Tensor, new: Tensor) -> Tensor:
        return apply(o.Transpose(tuple(self.perm.index(i) for i in range(len(self.perm)))), new)  # type: ignore[no-any-return]

    def strides(self, shape: tuple[int, ...], strides: Strides) -> Strides:
        return tuple(strides[p] for p in self.perm)


@dataclass(frozen=True)
class Sliced:
    """A part; bounds as `Slice` has them."""

    starts: tuple[int, ...]
    stops: tuple[int, ...]
    steps: tuple[int, ...]

    def forward(self, base: Tensor) -> Tensor:
        return apply(o.Slice(self.starts, self.stops, self.steps), base)  # type: ignore[no-any-return]

    def back(self, base: Tensor, new: Tensor) -> Tensor:
        from jumar.ops.indexing import Region, replaced  # noqa: PLC0415  (indexing makes views, too)

        return replaced(base, tuple(Region(a, b, c, False) for a, b, c in zip(self.starts, self.stops, self.steps, strict=True)), new)

    def strides(self, shape: tuple[int, ...], strides: Strides) -> Strides:
        return tuple(s * t for s, t in zip(strides, self.steps, strict=True))


Step = Reshaped | Permuted | Sliced


class Family:
    """Tensors over the same elements.   node: the root's value now."""

    __slots__ = ("members", "node")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.members: list[Member] = []


class Member:
    """One tensor of a family.   step: how it is made from its parent; the root has none.   plain: whether its elements lie in row-major order."""

    __slots__ = ("family", "parent", "plain", "ref", "shape", "step")

    def __init__(self, tensor: Tensor, family: Family, parent: Member | None, step: Step | None, plain: bool) -> None:
        self.ref, self.shape = weakref.ref(tensor), tensor.shape
        self.family, self.parent, self.step, self.plain = family, parent, step, plain
        family.members.append(self)

    def strides(self) -> Strides:
        """Elements from one to the next along each dimension, in the root's memory."""
        if self.parent is None or self.step is None:
            return contiguous(self.shape)
        return self.step.strides(self.parent.shape, self.parent.strides())


class Views:
    """The families of a recorder."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.members: dict[int, Member] = {}

    def find(self, tensor: Tensor) -> Member | None:
        """What is known of a tensor."""
        found = self.members.get(id(tensor))
        return found if found is not None and found.ref() is tensor else None

    def add(self, base: Tensor, view: Tensor, step: Step, plain: bool) -> None:
        """Notes that a tensor is a view of another."""
        parent = self.find(base)
        if parent is None:
            parent = self.members[id(base)] = Member(base, Family(self.recorder.node_of(base)), None, None, True)
        self.members[id(view)] = Member(view, parent.family, parent, step, plain and parent.plain)

    def write(self, tensor: Tensor, new: Tensor) -> None:
        """The tensor becomes `new`; so do, in their parts, those that share elements with it."""
        recorder, member = self.recorder, self.find(tensor)
        if member is None or recorder.frozen:
            recorder.write(tensor, new)
            return
        family = member.family
        others = [(m, t) for m in family.members if m is not member and (t := m.ref()) is not None]
        family.members = [member, *(m for m, _ in others)]
        if others:
            root = self._root(member, new)
            recorder.write(tensor, new)
            family.node = recorder.node_of(root)
            made: dict[int, Tensor] = {id(member): new}
            for m, t in others:
                recorder.write(t, self._value(m, root, made))
        else:
            root = self._root(member, new)
            recorder.write(tensor, new)
            family.node = recorder.node_of(root)

    def _root(self, member: Member, new: Tensor) -> Tensor:
        """The root's value after a write to one of its views."""
        chain: list[Member] = []
        while member.parent is not None:
            chain.append(member)
            member = member.parent
        if not chain:
            return new
        (base,) = self.recorder.compute([member.family.node])
        bases = [base]
        for m in reversed(chain[1:]):
            assert m.step is not None, "only roots have no step"
            bases.append(m.step.forward(bases[-1]))
        for m, b in zip(chain, reversed(bases), strict=True):
            assert m.step is not None, "only roots have no step"
            new = m.step.back(b, new)
        return new

    def _value(self, member: Member, root: Tensor, made: dict[int, Tensor]) -> Tensor:
        found = made.get(id(member))
        if found is None:
            if member.parent is None or member.step is None:
                found = root
            else:
                found = member.step.forward(self._value(member.parent, root, made))
            made[id(member)] = found
        return found


def note(base: Tensor, view: Tensor, step: Step, plain: bool = True) -> Tensor:
    """The view, known to the recorder as one.   plain: whether the step keeps row-major order."""
    recorder = LOCAL.recorder
    assert recorder is not None, "views are noted while something records"
    views = recorder.views
    if views is None:
        views = recorder.views = Views(recorder)
    views.add(base, view, step, plain)
    return view


def can_view(base: Tensor, shape: tuple[int, ...]) -> bool:
    """Whether another shape of the tensor can be a view: else it is a copy, as on arrays."""
    views = LOCAL.recorder.views if LOCAL.recorder is not None else None
    member = views.find(base) if views is not None else None
    return member is None or member.plain or reshaped_strides(member.shape, member.strides(), shape) is not None


def is_plain(tensor: Tensor) -> bool:
    """Whether the elements lie in row-major order."""
    recorder = LOCAL.recorder
    if recorder is not None:
        member = recorder.views.find(tensor) if recorder.views is not None else None
        return member is None or member.plain or member.strides() == contiguous(member.shape)
    return tensor._value is None or bool(tensor._value.flags.c_contiguous)


def contiguous(shape: tuple[int, ...]) -> Strides:
    """Strides of row-major order.

    >>> contiguous((2, 3, 4))
    (12, 4, 1)
    """
    found, step = [], 1
    for d in reversed(shape):
        found.append(step)
        step *= d
    return tuple(reversed(found))


def reshaped_strides(shape: tuple[int, ...], strides: Strides, wanted: tuple[int, ...]) -> Strides | None:
    """Strides of another shape over the same memory, None where there are none.

    >>> reshaped_strides((2, 3, 4), (12, 4, 1), (6, 4)), reshaped_strides((3, 2), (1, 3), (6,))
    ((4, 1), None)
    """
    if 0 in shape:
        return contiguous(wanted)
    blocks: list[tuple[int, int]] = []  # runs of dimensions that lie behind one another: elements, smallest stride
    for d, s in zip(shape, strides, strict=True):
        if d == 1:
            continue
        if blocks and blocks[-1][1] == d * s:
            blocks[-1] = (blocks[-1][0] * d, s)
        else:
            blocks.append((d, s))
    found: list[int] = []
    at = len(blocks) - 1
    left, step = blocks[at] if blocks else (1, 1)
    for d in reversed(wanted):
        if d != 1 and left == 1 and at > 0:
            at -= 1
            left, step = blocks[at]
        if left % d:
            return None
        found.append(step)
        left //= d
        step *= d
    return tuple(reversed(found))
