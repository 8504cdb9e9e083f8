"""Lifetimes to offsets: gives every value and temporary of a program its place in one arena.

In: lifetimes in steps (compiler/lower.py knows who reads and writes what).  Out: `Plan`, offsets and the report: sum of tensors, planned
peak, lower bound, live bytes at each step.  Several greedy orders are tried, then a short search moves the blocks at the top.

The problem is two-dimensional packing with fixed columns (dynamic storage allocation, NP-hard); on networks greedy by size with best-fit
gaps is within a few per cent of the bound, and the search closes most of the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

ALIGN = 64


@dataclass(frozen=True)
class Life:
    """A stretch of steps during which so many bytes must stand somewhere.   first, last: step numbers, both included."""

    nbytes: int
    first: int
    last: int
    label: str = ""

    @property
    def size(self) -> int:
        """Bytes taken: whole cache lines."""
        return -(-self.nbytes // ALIGN) * ALIGN


@dataclass(frozen=True)
class Plan:
    """Places of lives in an arena.   offsets: one for each life; nbytes: the arena; bound: the largest sum of live bytes.

    total_nbytes: what all lives would take without sharing; live_nbytes: the sum of live bytes at each step.
    """

    lives: tuple[Life, ...]
    offsets: tuple[int, ...]
    nbytes: int
    bound: int
    total_nbytes: int
    live_nbytes: tuple[int, ...] = field(repr=False, default=())
    method: str = ""

    @property
    def ratio(self) -> float:
        """Planned peak over the lower bound."""
        return self.nbytes / self.bound if self.bound else 1.0

    @property
    def saving(self) -> float:
        """Part of the sum of tensors that sharing saves."""
        return 1.0 - self.nbytes / self.total_nbytes if self.total_nbytes else 0.0

    def largest(self, count: int = 10) -> list[Life]:
        """The largest lives."""
        return sorted(self.lives, key=lambda life: -life.nbytes)[:count]


def plan(lives: Sequence[Life], *, search_moves: int = 400) -> Plan:
    """Offsets of lives such that no two that are alive at one step overlap.

    >>> plan([Life(100, 0, 1), Life(100, 1, 2), Life(100, 2, 3)]).offsets
    (0, 128, 0)
    """
    count = len(lives)
    steps = max((life.last for life in lives), default=-1) + 1
    live = _live(lives, steps)
    bound = max(live, default=0)
    near = _neighbours(lives)
    best: list[int] = [0] * count
    best_peak, method = (1 << 62) if count else 0, ""
    for name, order in _orders(lives).items():
        offsets, peak = _place(lives, near, order)
        if peak < best_peak:
            best, best_peak, method, best_order = offsets, peak, name, order
        if peak <= _aligned_bound(lives, steps):
            break
    if count and best_peak > bound * 1.02:
        found = _search(lives, near, best_order, best, best_peak, bound, search_moves)
        if found[1] < best_peak:
            best, best_peak, method = found[0], found[1], f"{method} + search"
    total = sum(life.nbytes for life in lives)
    return Plan(tuple(lives), tuple(best), best_peak, bound, total, tuple(live), method)


def _orders(lives: Sequence[Life]) -> dict[str, list[int]]:
    """Orders in which to place; ties go by time so that the result does not depend on anything else."""
    every = range(len(lives))
    span = [life.last - life.first + 1 for life in lives]
    return {
        "by size": sorted(every, key=lambda i: (-lives[i].size, lives[i].first)),
        "by lifetime": sorted(every, key=lambda i: (-span[i], -lives[i].size)),
        "by size x lifetime": sorted(every, key=lambda i: (-lives[i].size * span[i], lives[i].first)),
        "by size / lifetime": sorted(every, key=lambda i: (-lives[i].size / span[i], lives[i].first)),
        "first fit": sorted(every, key=lambda i: (lives[i].first, -lives[i].size)),
        "last fit": sorted(every, key=lambda i: (-lives[i].last, -lives[i].size)),
    }


def _place(lives: Sequence[Life], near: Sequence[Sequence[int]], order: Sequence[int]) -> tuple[list[int], int]:
    """Places the lives in that order, each into the smallest gap that holds it among those alive with it."""
    offsets = [-1] * len(lives)
    sizes = [life.size for life in lives]
    peak = 0
    for i in order:
        taken = sorted((offsets[j], offsets[j] + sizes[j]) for j in near[i] if offsets[j] >= 0)
        at, gap, end = -1, 1 << 62, 0
        for low, high in taken:
            if low - end >= sizes[i] and low - end < gap:
                at, gap = end, low - end
            end = max(end, high)
        offsets[i] = end if at < 0 else at
        peak = max(peak, offsets[i] + sizes[i])
    return offsets, peak


def _search(
    lives: Sequence[Life], near: Sequence[Sequence[int]], order: Sequence[int], offsets: list[int], peak: int, bound: int, moves: int
) -> tuple[list[int], int]:
    """Moves a life that ends at the peak, or one that stands in its way, earlier in the order, as long as that helps."""
    moves = min(moves, 60_000 // max(1, len(lives)))
    current = list(order)
    seed = 12345
    for _ in range(moves):
        if peak <= bound * 1.001:
            break
        tops = [i for i in current if offsets[i] + lives[i].size == peak]
        culprits = tops + [j for i in tops for j in near[i]]
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        moved = culprits[seed % len(culprits)]
        at = current.index(moved)
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        to = seed % (at + 1) if at else len(current) - 1
        trial = current[:at] + current[at + 1 :]
        trial.insert(to, moved)
        found, found_peak = _place(lives, near, trial)
        if found_peak <= peak:
            current, offsets, peak = trial, found, found_peak
    return offsets, peak


def _neighbours(lives: Sequence[Life]) -> list[list[int]]:
    """For each life those that are alive with it at some step, by a sweep over time."""
    near: list[list[int]] = [[] for _ in lives]
    active: list[int] = []
    for i in sorted(range(len(lives)), key=lambda i: lives[i].first):
        active = [j for j in active if lives[j].last >= lives[i].first]
        for j in active:
            near[i].append(j)
            near[j].append(i)
        active.append(i)
    return near


def _live(lives: Sequence[Life], steps: int) -> list[int]:
    change = [0] * (steps + 1)
    for life in lives:
        change[life.first] += life.nbytes
        change[life.last + 1] -= life.nbytes
    live, now = [], 0
    for step in range(steps):
        now += change[step]
        live.append(now)
    return live


def _aligned_bound(lives: Sequence[Life], steps: int) -> int:
    return max(_live([Life(life.size, life.first, life.last) for life in lives], steps), default=0)
