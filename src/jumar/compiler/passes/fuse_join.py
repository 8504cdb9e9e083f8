"""Groups with several results: neighbours that read the same values become one kernel.

In: the groups of fuse.py, each with one result.  Out: fewer groups: a new momentum and the new parameter made from it; the two sums of a
batch norm's backward pass with the gradient that they read.  What one of them computes the others need not read again.

Two groups are joined when one reads the other's result, or when both reduce the same large value; when a schedule takes them as one; and
when no third operator stands between them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from jumar.ir import Node
from jumar.operators import Reduction, is_root


@dataclass(eq=False)
class Group:
    """members and the ones whose values leave the group."""

    members: set[Node]
    sinks: list[Node]


Unit = Group | Node  # a group, or a node that is in none


@dataclass
class Joiner:
    """State of the joining.   of: the group of each node; place: its number in the graph; users: who reads each node.

    line: groups and nodes outside of them in an order in which each stands behind what it reads; at: where each of them stands.
    """

    of: dict[Node, Group]
    place: dict[Node, int]
    users: dict[Node, tuple[Node, ...]]
    max_ops: int
    max_inputs: int
    max_results: int
    max_search: int = 400
    joined: int = 0
    refused: set[tuple[int, int]] = field(default_factory=set)
    line: list[Unit | None] = field(default_factory=list)
    at: dict[Unit, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in sorted(self.place, key=self.place.__getitem__):
            unit = self._unit(node)
            if unit is node or node in self.of[node].sinks:
                self.at[unit] = len(self.line)
                self.line.append(unit)

    def pairs(self) -> Iterator[tuple[Group, Group]]:
        """Pairs that may be one: (who comes first, who comes after), in the graph's order."""
        for node in sorted(self.of, key=self.place.__getitem__):
            group = self.of[node]
            if node not in group.sinks:
                continue
            for reader in self.users[node]:
                other = self.of.get(reader)
                if other is not None and other is not self.of[node] and _same_space(self.of[node], other):
                    yield self.of[node], other
        for node in sorted(self.users, key=self.place.__getitem__):  # what several reductions read
            readers = [self.of[u] for u in self.users[node] if u in self.of]
            summing = [g for g in {id(g): g for g in readers}.values() if _reduces(g)]
            for a, b in pairwise(summing):
                first, second = self._now(a), self._now(b)
                if first is not second and _same_space(first, second):
                    yield first, second

    def _now(self, group: Group) -> Group:
        """The group in which the members of this one are by now."""
        return self.of[group.sinks[0]]

    def fits(self, first: Group, second: Group) -> bool:
        """Whether the sizes of the whole allow it, and nothing stands between the two."""
        key = (id(first), id(second))
        if key in self.refused:
            return False
        members = first.members | second.members
        if len(members) > self.max_ops or len(first.sinks) + len(second.sinks) > self.max_results or self.between(first, second):
            self.refused.add(key)
            return False
        return True

    def between(self, first: Group, second: Group) -> bool:
        """Whether some way leads from one group to the other through a third operator.   A search that grows too large counts as yes."""
        source, target = sorted((first, second), key=self.at.__getitem__)
        lowest = self.at[source]
        todo = [u for u in self._read(target) if u is not source]
        seen: set[Unit] = set()
        while todo:
            unit = todo.pop()
            if unit is source:
                return True
            if unit in seen or self.at[unit] < lowest:
                continue
            seen.add(unit)
            if len(seen) > self.max_search:
                return True
            todo += self._read(unit)
        return False

    def _unit(self, node: Node) -> Unit:
        return self.of.get(node, node)

    def _read(self, unit: Unit) -> list[Unit]:
        """What it reads."""
        if isinstance(unit, Node):
            return [self._unit(i) for i in unit.inputs]
        return [self._unit(i) for m in unit.members for i in m.inputs if i not in unit.members]

    def _readers(self, unit: Unit) -> list[Unit]:
        """What reads it."""
        if isinstance(unit, Node):
            return [self._unit(u) for u in self.users[unit]]
        return [self._unit(u) for s in unit.sinks for u in self.users[s] if u not in unit.members]

    def join(self, first: Group, second: Group, sinks: list[Node]) -> None:
        """Makes them one, which stands where the later one stood; readers of the earlier one that stood between them come behind it."""
        source, target = sorted((first, second), key=self.at.__getitem__)
        low, high = self.at.pop(source), self.at.pop(target)
        later: set[Unit] = set()
        todo = self._readers(source)
        while todo:
            unit = todo.pop()
            if unit is not target and unit not in later and self.at[unit] < high:
                later.add(unit)
                todo += self._readers(unit)
        whole = Group(first.members | second.members, sinks)
        for member in whole.members:
            self.of[member] = whole
        between = [u for u in self.line[low + 1 : high] if u is not None]
        moved = [*(u for u in between if u not in later), whole, *(u for u in between if u in later)]
        self.line[low : high + 1] = [*moved, *([None] * (high + 1 - low - len(moved)))]
        self.at.update((unit, low + i) for i, unit in enumerate(moved))
        self.joined += 1


def _reduces(group: Group) -> bool:
    return any(isinstance(m.op, Reduction) for m in group.members)


def _space(group: Group) -> int:
    """Elements over which the group runs."""
    if not group.sinks:
        return -1
    return max((math.prod(m.inputs[0].shape) for m in group.members if isinstance(m.op, Reduction)), default=group.sinks[0].type.size)


def _same_space(first: Group, second: Group) -> bool:
    """Whether both run over equally many elements, and the second does not read what the first one summed.

    Sums and what is made from them for each element would be two passes over memory in one kernel, each over a strip of columns, where two
    kernels read whole rows.
    """
    space = _space(first)
    if space != _space(second) or (any(is_root(m.op) for m in first.members) and any(is_root(m.op) for m in second.members)):
        return False
    return not _reduces(first) or not any(i in first.members and i.type.size < space for m in second.members for i in m.inputs)
