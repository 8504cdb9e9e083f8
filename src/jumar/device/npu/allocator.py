"""The memory pool of a framework on an NPU, block by block: what a script that runs operator by operator takes of the device.

In: requests and releases in order of time (`Event`; the compiler makes them from a graph), and the rules of a pool as data (`PoolRules`): torch_npu's
caching allocator, with and without expandable segments, or MindSpore's pool.  Out: `History`, figures after every event (allocated, active, reserved,
the largest free block against all that is free), and where the device ran out, the error that the framework would raise, with its numbers.

The rules were read from the frameworks' own sources and documentation; each carries where. No time is modelled here: events bring theirs.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from jumar.base import DeviceError, nearest

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True)
class PoolRules:
    """How a framework's pool rounds, splits, grows and gives back.

    align, pad: a request is rounded up to whole `align` bytes after `pad` bytes are added (a core may read past the end of a tensor).
    small: requests up to that size have a pool of their own, 0 where there is one pool.  small_segment, segment: what is asked of the device for a
    small one and for a larger one; from `own_segment` on a request gets a segment of its own, in whole `own_round`.   doubling: instead, the segment is
    doubled until the request fits, and takes what is left of the device where there is less.   split_small, split: the least rest that is cut off.
    max_split: blocks from that size on are neither cut nor given to smaller requests; 0: no such limit.
    expandable: a segment is a range of addresses that grows by pages (`small_segment`, `segment`) and gives back pages.
    gives_back: whole cached segments return to the device when it runs out.   persistent: weights have a first segment of their own.
    least: with less than this left, the device is not asked.   says: the words of the framework's error.
    """

    name: str
    source: str
    align_nbytes: int = 512
    pad_nbytes: int = 0
    small_nbytes: int = 0
    small_segment_nbytes: int = 2 * MIB
    segment_nbytes: int = 20 * MIB
    own_segment_nbytes: int = 10 * MIB
    own_round_nbytes: int = 2 * MIB
    doubling: bool = False
    split_small_nbytes: int = 512
    split_nbytes: int = MIB + 1
    max_split_nbytes: int = 0
    expandable: bool = False
    gives_back: bool = True
    persistent: bool = False
    least_nbytes: int = 0
    says: str = "torch_npu"

    def rounded(self, nbytes: int) -> int:
        """Bytes of the block that serves a request.

        >>> TORCH_NPU.rounded(512), MINDSPORE.rounded(512)
        (1024, 512)
        """
        return max(_up(nbytes + self.pad_nbytes, self.align_nbytes), self.align_nbytes)

    def is_small(self, size: int) -> bool:
        return size <= self.small_nbytes

    def segment_for(self, size: int, left_nbytes: int) -> int:
        """Bytes that are asked of the device for a block of that size."""
        if self.doubling:
            segment = self.segment_nbytes
            while segment < size:
                segment *= 2
            return min(segment, left_nbytes)
        if self.is_small(size):
            return self.small_segment_nbytes
        return self.segment_nbytes if size < self.own_segment_nbytes else _up(size, self.own_round_nbytes)

    def splits(self, size: int, block: int) -> bool:
        """Whether the rest of a block is cut off."""
        rest = block - size
        if self.is_small(size) or self.expandable:
            return rest >= self.split_small_nbytes
        return rest >= self.split_nbytes and not (self.max_split_nbytes and size >= self.max_split_nbytes)


TORCH_NPU = PoolRules(
    "torch_npu", "Ascend/pytorch torch_npu/csrc/core/npu/NPUCachingAllocator.cpp (constants and rules)", pad_nbytes=32, small_nbytes=MIB
)  # fmt: skip
TORCH_NPU_EXPANDABLE = replace(TORCH_NPU, name="torch_npu expandable_segments", expandable=True)
MINDSPORE = PoolRules(
    "mindspore", "mindspore mem_dynamic_allocator.cc: best fit, 512 B, blocks of mempool_block_size (1 GB), doubled for what is larger",
    segment_nbytes=GIB, doubling=True, split_nbytes=512, gives_back=False, persistent=True, least_nbytes=10 * MIB, says="mindspore",
)  # fmt: skip
MINDSPORE_VMM = replace(
    MINDSPORE, name="mindspore enable_vmm", doubling=False, persistent=False, gives_back=True, expandable=True,
    small_segment_nbytes=2 * MIB, segment_nbytes=2 * MIB,
    source="mindspore.cn, memory management: MS_ALLOC_CONF enable_vmm maps pages of 2 MB; how it searches is inferred",
)  # fmt: skip
RULES = {rules.name: rules for rules in (TORCH_NPU, TORCH_NPU_EXPANDABLE, MINDSPORE, MINDSPORE_VMM)}


def pool_rules(name: str, *, block_nbytes: int = 0, max_split_nbytes: int = 0, pad: bool = True) -> PoolRules:
    """Rules by name.   block_nbytes: MindSpore's `mempool_block_size`; max_split_nbytes: torch_npu's `max_split_size_mb`; pad: not from the 950 on."""
    if name not in RULES:
        raise DeviceError(f"pool: rules must be one of {', '.join(RULES)}, got {name!r}", hint=nearest(name, list(RULES)), code="npu-pool")
    rules = RULES[name]
    return replace(
        rules,
        segment_nbytes=block_nbytes or rules.segment_nbytes,
        max_split_nbytes=max_split_nbytes or rules.max_split_nbytes,
        pad_nbytes=rules.pad_nbytes if pad else 0,
    )


@dataclass(frozen=True)
class Event:
    """A request (`nbytes`) or, without, a release of what the same key asked for.

    ready_us: a released block may be given to others from that time on only (another stream still reads it).   persistent: a weight or a state.
    """

    key: int
    nbytes: int | None = None
    time_us: float = 0.0
    stream: int = 0
    label: str = ""
    place: str = ""
    persistent: bool = False
    ready_us: float = 0.0


@dataclass(frozen=True)
class Figures:
    """The pool after an event.   requested: bytes asked for; allocated: blocks in use; active: those and the ones another stream still reads.

    reserved: what the pool holds of the device; largest_free: the largest free block in it; device_free: what the device has left.
    """

    time_us: float
    requested_nbytes: int
    allocated_nbytes: int
    active_nbytes: int
    reserved_nbytes: int
    largest_free_nbytes: int
    device_free_nbytes: int

    @property
    def free_nbytes(self) -> int:
        """Free bytes inside the pool."""
        return self.reserved_nbytes - self.active_nbytes

    @property
    def fragmentation(self) -> float:
        """Part of the pool's free bytes that lies outside its largest free block: 0 where all is one block."""
        return 1.0 - self.largest_free_nbytes / self.free_nbytes if self.free_nbytes else 0.0


@dataclass(frozen=True, eq=False)
class History:
    """What became of a sequence of events.   figures: after each; segments: times the device was asked; retries: times the pool had to give back first.

    fault: the error that ended it, and at: the event that it happened at.
    """

    rules: PoolRules
    capacity_nbytes: int
    figures: tuple[Figures, ...] = field(repr=False)
    segments: int
    retries: int
    fault: DeviceMemoryError | None = None
    at: Event | None = None

    @property
    def peak_reserved_nbytes(self) -> int:
        return max((f.reserved_nbytes for f in self.figures), default=0)

    @property
    def at_peak(self) -> Figures | None:
        """The figures where most was reserved, with the largest use among those."""
        return max(self.figures, key=lambda f: (f.reserved_nbytes, f.allocated_nbytes), default=None)


class DeviceMemoryError(DeviceError, MemoryError):
    """A request that the device cannot serve, in our words, and `framework` in those of the framework."""

    framework: str = ""


FREE, USED, WAITING, UNMAPPED = range(4)
Key = tuple[int, str]  # stream and pool


class _Block:
    """A piece of a segment, between its neighbours."""

    __slots__ = ("address", "after", "before", "pool", "requested", "segment", "size", "state")

    def __init__(self, address: int, size: int, pool: Key, segment: int) -> None:
        self.address, self.size, self.pool, self.segment = address, size, pool, segment
        self.state, self.requested = FREE, 0
        self.before: _Block | None = None
        self.after: _Block | None = None

    @property
    def entry(self) -> tuple[int, int]:
        return self.size, self.address


class Allocator:
    """A pool at work: it is asked and told, and changes, as the driver that it stands for.

    >>> pool = Allocator(TORCH_NPU, 64 * MIB)
    >>> pool.allocate(1, 3 * MIB)
    >>> pool.figures().allocated_nbytes, pool.figures().reserved_nbytes
    (3146240, 20971520)
    >>> pool.release(1)
    >>> pool.figures().fragmentation
    0.0
    """

    def __init__(self, rules: PoolRules, capacity_nbytes: int, *, device: int = 0) -> None:
        self.rules, self.capacity_nbytes, self.device = rules, capacity_nbytes, device
        self.reserved = self.allocated = self.active = self.requested = 0
        self.segments = self.retries = 0
        self.time_us = 0.0
        self._blocks: dict[int, _Block] = {}  # in use, by the key of the request
        self._free: dict[Key, list[tuple[int, int]]] = {}  # sizes and addresses of free blocks, sorted
        self._at: dict[int, _Block] = {}  # every block by its address
        self._unmapped: dict[Key, list[int]] = {}  # addresses, sorted
        self._waiting: list[tuple[float, int]] = []  # when, and which address, becomes free
        self._next_address = 0

    # -- what is asked

    def allocate(self, key: int, nbytes: int, *, stream: int = 0, time_us: float = 0.0, label: str = "", persistent: bool = False) -> None:
        """Takes a block for that many bytes, or raises DeviceMemoryError."""
        assert key not in self._blocks, f"{label or key} asked for memory that it has already"
        self._pass_time(time_us)
        size = self.rules.rounded(nbytes)
        pool = (stream, "small" if self.rules.is_small(size) else "persistent" if persistent and self.rules.persistent else "large")
        block = self._find(pool, size) or self._grow(pool, size)
        if block is None and (self._waiting or self.rules.gives_back):
            self._pass_time(max((at for at, _ in self._waiting), default=self.time_us))
            if self.rules.gives_back:
                self._give_back()
            self.retries += 1
            block = self._find(pool, size) or self._grow(pool, size)
        if block is None:
            raise self._fault(nbytes, size, label)
        block.state, block.requested = USED, nbytes
        if self.rules.splits(size, block.size):
            self._put_free(self._cut(block, size))
        self._blocks[key] = block
        self.allocated += block.size
        self.active += block.size
        self.requested += nbytes

    def release(self, key: int, *, time_us: float = 0.0, ready_us: float = 0.0) -> None:
        """Gives the block of that key back to the pool, at `ready_us` where that is later."""
        self._pass_time(time_us)
        block = self._blocks.pop(key)
        self.allocated -= block.size
        self.requested -= block.requested
        if ready_us > self.time_us:
            block.state = WAITING
            heapq.heappush(self._waiting, (ready_us, block.address))
        else:
            self._set_free(block)

    def figures(self) -> Figures:
        largest = max((entries[-1][0] for entries in self._free.values() if entries), default=0)
        left = self.capacity_nbytes - self.reserved
        return Figures(self.time_us, self.requested, self.allocated, self.active, self.reserved, largest, left)

    def blocks(self) -> Iterator[tuple[int, int, int, bool]]:
        """Address, size, segment and use of all blocks that stand in memory, in order."""
        for address in sorted(self._at):
            block = self._at[address]
            if block.state != UNMAPPED:
                yield address, block.size, block.segment, block.state != FREE

    # -- blocks

    def _find(self, pool: Key, size: int) -> _Block | None:
        """The smallest free block that is large enough, out of the pool."""
        block = self._best(pool, size)
        if block is None and pool[1] == "persistent":
            block = self._best((pool[0], "large"), size) if self._free.get(pool) is not None else None
        if block is not None:
            self._take_free(block)
        return block

    def _best(self, pool: Key, size: int) -> _Block | None:
        entries = self._free.get(pool, [])
        at = bisect_left(entries, (size, -1))
        if at == len(entries):
            return None
        block = self._at[entries[at][1]]
        if self.rules.expandable:  # a block before unused addresses counts as what it can grow to
            while at + 1 < len(entries) and _reach(self._at[entries[at + 1][1]]) < _reach(block):
                at += 1
                block = self._at[entries[at][1]]
        limit = self.rules.max_split_nbytes
        if limit and (block.size >= limit if size < limit else block.size >= size + self.rules.segment_nbytes):
            return None
        return block

    def _grow(self, pool: Key, size: int) -> _Block | None:
        """A block of new memory from the device, if it has enough."""
        if self.rules.expandable:
            return self._expand(pool, size)
        left = self.capacity_nbytes - self.reserved
        if self.rules.doubling and left < max(size, self.rules.least_nbytes):
            return None
        segment = self.rules.segment_for(size, left)
        if segment > left:
            return None
        if pool[1] == "persistent" and pool in self._free:
            pool = (pool[0], "large")  # one segment for weights; the next ones are everybody's
        self._free.setdefault(pool, [])
        self.segments += 1
        self.reserved += segment
        block = _Block(self._next_address, segment, pool, self.segments)
        self._next_address += _up(segment, 2 * MIB)
        self._at[block.address] = block
        return block

    def _expand(self, pool: Key, size: int) -> _Block | None:
        """Maps pages behind the free end of the pool's range of addresses, or into a gap of it."""
        page = self.rules.small_segment_nbytes if pool[1] == "small" else self.rules.segment_nbytes
        block = self._room(pool, size, page)
        room, new, step = 0, 0, block
        while room < size:
            taken = min(_up(size - room, page), step.size) if step.state == UNMAPPED else step.size
            room, new = room + taken, new + (taken if step.state == UNMAPPED else 0)
            step = step.after or step
        if new > self.capacity_nbytes - self.reserved:
            return None
        if block.state == UNMAPPED:
            block = self._map(block, min(_up(size, page), block.size))
        while block.size < size:
            after = block.after
            assert after is not None and after.state == UNMAPPED, "free addresses were counted before"
            block = self._map(after, min(_up(size - block.size, page), after.size))
        self._take_free(block)
        return block

    def _room(self, pool: Key, size: int, page: int) -> _Block:
        """The lowest stretch of free and unmapped addresses that is large enough; a new range where there is none."""
        for address in self._unmapped.get(pool, []):
            block = self._at[address]
            if block.before is not None and block.before.state == FREE:
                block = block.before
            room = 0
            step: _Block | None = block
            while room < size and step is not None and step.state in (FREE, UNMAPPED):
                room += step.size
                step = step.after
            if room >= size:
                return block
        self.segments += 1
        span = _up(self.capacity_nbytes + self.capacity_nbytes // 8, page)
        block = _Block(self._next_address, span, pool, self.segments)
        block.state = UNMAPPED
        self._next_address += span
        self._at[block.address] = block
        insort(self._unmapped.setdefault(pool, []), block.address)
        return block

    def _map(self, block: _Block, nbytes: int) -> _Block:
        """Puts memory behind the first bytes of unmapped addresses; the free block that they become, joined to its neighbours."""
        self._unmapped[block.pool].remove(block.address)
        if nbytes < block.size:
            rest = self._cut(block, nbytes)
            rest.state = UNMAPPED
            insort(self._unmapped[block.pool], rest.address)
        self.reserved += nbytes
        return self._put_free(block)

    def _give_back(self) -> None:
        """Returns to the device what is wholly free: segments, or pages of an expandable one."""
        for entries in list(self._free.values()):
            for _, address in list(entries):
                block = self._at.get(address)
                if block is None or block.state != FREE:
                    continue
                if self.rules.expandable:
                    self._unmap(block)
                elif block.before is None and block.after is None:
                    self._take_free(block)
                    del self._at[block.address]
                    self.reserved -= block.size

    def _unmap(self, block: _Block) -> None:
        page = self.rules.small_segment_nbytes if block.pool[1] == "small" else self.rules.segment_nbytes
        base = block.address
        first = block
        while first.before is not None:
            first = first.before
        low = first.address + _up(base - first.address, page)
        high = first.address + (base + block.size - first.address) // page * page
        if high <= low:
            return
        self._take_free(block)
        if low > base:
            middle = self._cut(block, low - base)
            self._insert(block)
            block = middle
        if block.address + block.size > high:
            self._insert(self._cut(block, high - block.address))
        self.reserved -= block.size
        block.state = UNMAPPED
        for other in (block.before, block.after):
            if other is not None and other.state == UNMAPPED:
                self._unmapped[block.pool].remove(other.address)
                block = self._join(*sorted((block, other), key=lambda b: b.address))
        insort(self._unmapped.setdefault(block.pool, []), block.address)

    # -- lists

    def _cut(self, block: _Block, size: int) -> _Block:
        """The rest behind the first bytes of a block, as a block of its own."""
        rest = _Block(block.address + size, block.size - size, block.pool, block.segment)
        block.size = size
        rest.before, rest.after = block, block.after
        if block.after is not None:
            block.after.before = rest
        block.after = rest
        self._at[rest.address] = rest
        return rest

    def _join(self, low: _Block, high: _Block) -> _Block:
        del self._at[high.address]
        low.size += high.size
        low.after = high.after
        if high.after is not None:
            high.after.before = low
        return low

    def _set_free(self, block: _Block) -> None:
        self.active -= block.size
        self._put_free(block)

    def _put_free(self, block: _Block) -> _Block:
        """Joins a block with free neighbours and lists it."""
        block.state = FREE
        for other in (block.before, block.after):
            if other is not None and other.state == FREE and other is not block:
                self._take_free(other)
                block = self._join(*sorted((block, other), key=lambda b: b.address))
        self._insert(block)
        return block

    def _insert(self, block: _Block) -> None:
        block.state = FREE
        insort(self._free.setdefault(block.pool, []), block.entry)

    def _take_free(self, block: _Block) -> None:
        entries = self._free[block.pool]
        at = bisect_left(entries, block.entry)
        if at < len(entries) and entries[at] == block.entry:
            del entries[at]

    def _pass_time(self, time_us: float) -> None:
        """Blocks that others had to finish reading become free."""
        self.time_us = max(self.time_us, time_us)
        while self._waiting and self._waiting[0][0] <= self.time_us:
            self._set_free(self._at[heapq.heappop(self._waiting)[1]])

    # -- the error

    def _fault(self, nbytes: int, size: int, label: str) -> DeviceMemoryError:
        now = self.figures()
        left, free = now.device_free_nbytes, now.free_nbytes
        for_whom = f" for {label}" if label else ""
        error = DeviceMemoryError(
            f"pool {self.rules.name}: a block{for_whom} must fit into {size_text(left)} left of {size_text(self.capacity_nbytes)}"
            f" or into the largest of {size_text(free)} free in the pool, {size_text(now.largest_free_nbytes)}, got {size_text(size)}",
            hint=(
                "the free memory is in pieces: expandable_segments (torch_npu), enable_vmm (MindSpore) or graph mode join them"
                if free + left >= size
                else "a smaller batch, recomputation, gradient accumulation or float16 need less"
            ),
            code="npu-memory",
        )
        error.framework = _framework_text(self.rules.says, self.device, nbytes, self.capacity_nbytes, now)
        return error


def replay(events: Iterable[Event], rules: PoolRules, capacity_nbytes: int) -> History:
    """The pool's history over events, to the end or to the first request that cannot be served."""
    pool = Allocator(rules, capacity_nbytes)
    figures: list[Figures] = []
    for event in events:
        try:
            if event.nbytes is None:
                pool.release(event.key, time_us=event.time_us, ready_us=event.ready_us)
            else:
                pool.allocate(
                    event.key, event.nbytes,
                    stream=event.stream, time_us=event.time_us, label=event.label, persistent=event.persistent,
                )  # fmt: skip
        except DeviceMemoryError as fault:
            return History(rules, capacity_nbytes, (*figures, pool.figures()), pool.segments, pool.retries, fault, event)
        figures.append(pool.figures())
    return History(rules, capacity_nbytes, tuple(figures), pool.segments, pool.retries)


def events_of(lives: Sequence[tuple[int, int, int, str, str, bool]]) -> Iterator[Event]:
    """Events of lives (nbytes, first step, last step, label, place, persistent): what a step frees is free before the next one asks."""
    steps: dict[int, tuple[list[int], list[int]]] = {}
    for key, (_, first, last, *_) in enumerate(lives):
        steps.setdefault(first, ([], []))[0].append(key)
        steps.setdefault(last, ([], []))[1].append(key)
    for step in sorted(steps):
        born, dead = steps[step]
        for key in born:
            nbytes, _, _, label, place, persistent = lives[key]
            yield Event(key, nbytes, float(step), 0, label, place, persistent)
        for key in dead:
            yield Event(key, None, float(step))


def size_text(nbytes: float) -> str:
    """Bytes for a reader, as the frameworks print them: `1.50 GiB`.

    >>> size_text(260 * MIB)
    '260.00 MiB'
    """
    for unit, size in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if nbytes > size or nbytes == GIB:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes:.0f} B"


def _framework_text(says: str, device: int, nbytes: int, capacity: int, now: Figures) -> str:
    """What a user would find in the log, for searching."""
    if says == "mindspore":
        return (
            f"Out of Memory. Request memory size: {nbytes}, device free size {now.device_free_nbytes}, the dynamic memory pool total size is"
            f" {now.reserved_nbytes / MIB:.0f}M, total used size is {now.allocated_nbytes / MIB:.0f}M."
        )
    return (
        f"NPU out of memory. Tried to allocate {size_text(nbytes)} (NPU {device}; {size_text(capacity)} total capacity;"
        f" {size_text(now.allocated_nbytes)} already allocated; {size_text(now.active_nbytes)} current active;"
        f" {size_text(now.device_free_nbytes)} free; {size_text(now.reserved_nbytes)} reserved in total by PyTorch)"
    )


def _up(nbytes: int, unit: int) -> int:
    return -(-nbytes // unit) * unit


def _reach(block: _Block) -> int:
    """Bytes that a free block has with the unused addresses behind it."""
    return block.size + (block.after.size if block.after is not None and block.after.state == UNMAPPED else 0)
