"""Order: which work comes when, so that a value that replaces an input is written after all have read the old one.

In: what each work reads and writes, in an order that computes the right values, and the updates that are wanted.  Out: `Order`: the works
in an order in which as many updates as can be are written straight into the input; the rest needs a copy at the end (two inputs
that are swapped, say).  compiler/lower.py asks, compiler/assemble.py then gives the values their places.

Cost: linear in what the works touch, times the logarithm of a heap; there may be thousands of works and hundreds of updates.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

Block = Any  # whatever names a piece of memory; it is a key
Touch = tuple[Block, bool]  # a piece of memory, and whether it is written


@dataclass(frozen=True)
class Order:
    """works: their numbers in order.   copied: blocks whose update could not be written straight into the input."""

    works: tuple[int, ...]
    copied: frozenset[Block]


def order_works(touches: Sequence[Sequence[Touch]], updates: Mapping[Block, Block], in_place: Set[tuple[int, Block]]) -> Order:
    """The order for `updates`: block -> the input's block that it replaces.

    touches: of each work, in an order that is right without updates.  in_place: (work, block) where the work may write that block over the
    input although it reads the old values itself, since it reads each element before it writes the same one.
    """
    readers: dict[Block, list[int]] = {}
    writers: dict[Block, list[int]] = {}
    targets = set(updates.values())
    for at, touched in enumerate(touches):
        for block, written in touched:
            if written and block in updates:
                writers.setdefault(block, []).append(at)
            elif not written and block in targets:
                readers.setdefault(block, []).append(at)
    copied: set[Block] = set()
    gates: dict[Block, tuple[list[int], list[int]]] = {}
    for block, target in updates.items():
        before, after = dict.fromkeys(readers.get(target, ())), dict.fromkeys(writers.get(block, ()))
        if any(at in after and (at, block) not in in_place for at in before):
            copied.add(block)
        elif before:
            gates[block] = ([at for at in before if at not in after], list(after))
            if len(before) > len(gates[block][0]) and len(after) > 1:  # one of several writers reads the old value: another may come first
                copied.add(block)
                del gates[block]
    return _Sort(_dependencies(touches), gates, copied).run()


def _dependencies(touches: Sequence[Sequence[Touch]]) -> list[list[int]]:
    """For each work those before it that it must wait for: who wrote what it touches, or read what it writes."""
    wrote: dict[Block, int] = {}
    read: dict[Block, list[int]] = {}
    found: list[list[int]] = []
    for at, touched in enumerate(touches):
        needs: dict[int, None] = {}
        for block, written in touched:
            if block in wrote:
                needs[wrote[block]] = None
            if written:
                needs.update(dict.fromkeys(read.get(block, ())))
        for block, written in touched:
            if written:
                wrote[block], read[block] = at, []
            else:
                read.setdefault(block, []).append(at)
        needs.pop(at, None)
        found.append(list(needs))
    return found


class _Sort:
    """A topological sort that keeps to the given order where it can, over works and gates.

    A gate is a place between the readers of an old value and the writers of the new one: `count + i` for the i-th.
    """

    def __init__(self, needs: list[list[int]], gates: Mapping[Block, tuple[list[int], list[int]]], copied: set[Block]) -> None:
        self.count = len(needs)
        self.blocks = list(gates)
        self.copied = copied
        self.needs = [*needs, *(before for before, _ in gates.values())]
        for i, (_, after) in enumerate(gates.values()):
            for at in after:
                self.needs[at].append(self.count + i)
        self.followers: list[list[int]] = [[] for _ in self.needs]
        for at, before in enumerate(self.needs):
            for i in before:
                self.followers[i].append(at)
        self.waits = [len(before) for before in self.needs]
        self.done = [False] * len(self.needs)

    def run(self) -> Order:
        ready = [self._key(at) for at, waits in enumerate(self.waits) if not waits]
        heapq.heapify(ready)
        order: list[int] = []
        oldest = self._undone()
        while True:
            while ready:
                at = heapq.heappop(ready)[1]
                if self.done[at]:
                    continue
                self.done[at] = True
                if at < self.count:
                    order.append(at)
                for follower in self.followers[at]:
                    self.waits[follower] -= 1
                    if not self.waits[follower]:
                        heapq.heappush(ready, self._key(follower))
            stuck = next(oldest, None)
            if stuck is None:
                return Order(tuple(order), frozenset(self.copied))
            gate = self._in_cycle(stuck)
            self.copied.add(self.blocks[gate - self.count])
            self.needs[gate] = []
            heapq.heappush(ready, self._key(gate))

    def _key(self, at: int) -> tuple[int, int]:
        return (at if at < self.count else -1, at)

    def _undone(self) -> Iterator[int]:
        """The first work that is not done, each time it is asked."""
        for at in range(self.count):
            while not self.done[at]:
                yield at

    def _in_cycle(self, at: int) -> int:
        """A gate on a circle of waiting; there is one, since works alone wait for earlier ones only."""
        seen: dict[int, None] = {}
        while at not in seen:
            seen[at] = None
            at = next(i for i in self.needs[at] if not self.done[i])
        path = list(seen)
        return next(i for i in path[path.index(at) :] if i >= self.count)
