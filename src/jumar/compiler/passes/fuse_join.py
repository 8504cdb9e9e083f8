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

from jumar.ir import Constant, Node, Param
from jumar.operators import Reduction, is_root

Unit = object  # a Group, or a node that is in none


@dataclass
class Group:
    """members and the ones whose values leave the group."""

    members: set[Node]
    sinks: list[Node]


@dataclass
class Joiner:
    """State of the joining.   of: the group of each node; place: its number in the graph; users: who reads each node."""

    of: dict[Node, Group]
    place: dict[Node, int]
    users: dict[Node, tuple[Node, ...]]
    max_ops: int
    max_inputs: int
    max_results: int
    max_search: int = 400
    joined: int = 0
    refused: set[tuple[int, int]] = field(default_factory=set)
    spans: list[tuple[int, int]] = field(default_factory=list)  # of joined groups: places of the first result and of the last member

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
        """Whether some way leads from one group to the other through a third operator, in either direction."""
        return self._reaches(first, second) or self._reaches(second, first)

    def _reaches(self, source: Group, target: Group) -> bool:
        """Whether what `target` needs, beside `source` itself, needs `source`.   A search that grows too large counts as yes."""
        lowest = self._lowest(source)
        todo = [i for m in target.members for i in m.inputs if i not in target.members and i not in source.members]
        seen: set[Node] = set()
        while todo:
            node = todo.pop()
            if node in seen or isinstance(node.op, Param | Constant):
                continue
            group = self.of.get(node)
            if group is source:
                return True
            if group is None and self.place[node] < lowest:
                continue
            members = group.members if group is not None else {node}
            if max(self.place[m] for m in members) < lowest:
                continue
            seen |= members
            if len(seen) > self.max_search:
                return True
            todo += [i for m in members for i in m.inputs if i not in members]
        return False

    def _lowest(self, source: Group) -> int:
        """No operator before this place needs the group.   A group with several results may stand after readers of its first one, whose
        places say nothing then."""
        lowest, before = min(self.place[m] for m in source.members), -1
        while lowest != before:
            before = lowest
            lowest = min([lowest, *(low for low, high in self.spans if low < lowest <= high)])
        return lowest

    def join(self, first: Group, second: Group, sinks: list[Node]) -> None:
        """Makes them one."""
        whole = Group(first.members | second.members, sinks)
        for member in whole.members:
            self.of[member] = whole
        self.spans.append((min(self.place[s] for s in sinks), max(self.place[m] for m in whole.members)))
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
