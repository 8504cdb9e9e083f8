"""The pool of a framework on an NPU: blocks never overlap and always join, sums are right, and a slow oracle agrees."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.base import DeviceError
from jumar.device.npu.allocator import (
    GIB,
    KIB,
    MIB,
    MINDSPORE,
    MINDSPORE_VMM,
    RULES,
    TORCH_NPU,
    TORCH_NPU_EXPANDABLE,
    Allocator,
    DeviceMemoryError,
    Event,
    events_of,
    pool_rules,
    replay,
)

SIZES = st.one_of(st.integers(0, 4 * KIB), st.integers(4 * KIB, 3 * MIB), st.integers(3 * MIB, 40 * MIB))
STEPS = st.lists(st.tuples(st.sampled_from("aaff r"), SIZES, st.integers(0, 1), st.integers(0, 30)), max_size=80)


def check(pool: Allocator, live: dict[int, int]) -> None:
    """What must hold after every event."""
    blocks = list(pool.blocks())
    for (address, size, segment, used), (after, _, next_segment, next_used) in itertools.pairwise(blocks):
        assert address + size <= after, "blocks do not overlap"
        if segment == next_segment and address + size == after:
            assert used or next_used, "free neighbours are one block"
    figures = pool.figures()
    assert figures.reserved_nbytes == sum(size for _, size, _, _ in blocks) <= pool.capacity_nbytes
    assert figures.active_nbytes == sum(size for _, size, _, used in blocks if used) >= figures.allocated_nbytes
    assert figures.requested_nbytes == sum(live.values())
    assert figures.largest_free_nbytes == max((size for _, size, _, used in blocks if not used), default=0)
    assert figures.free_nbytes == sum(size for _, size, _, used in blocks if not used)
    assert 0 <= figures.fragmentation < 1
    assert all(size % 512 == 0 for _, size, _, _ in blocks)


@pytest.mark.parametrize(
    "rules", [*RULES.values(), replace(TORCH_NPU, max_split_nbytes=24 * MIB)], ids=lambda r: f"{r.name}-{r.max_split_nbytes}"
)
@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
def test_whatever_is_asked_blocks_stay_apart_and_sums_stay_right(rules, steps):
    pool = Allocator(replace(rules, segment_nbytes=min(rules.segment_nbytes, 48 * MIB)), 160 * MIB)
    live: dict[int, int] = {}
    now = 0.0
    for key, (what, nbytes, stream, pick) in enumerate(steps):
        now += 1
        if what == "a":
            try:
                pool.allocate(key, nbytes, stream=stream, time_us=now, persistent=pick % 5 == 0)
                live[key] = nbytes
            except DeviceMemoryError:
                pass
        elif live:
            gone = sorted(live)[pick % len(live)]
            del live[gone]
            pool.release(gone, time_us=now, ready_us=now + 3 if what == "r" else 0.0)
        check(pool, live)
    for key in list(live):
        pool.release(key, time_us=now, ready_us=now)
    pool._pass_time(now + 10)
    check(pool, {})
    assert pool.figures().active_nbytes == pool.figures().allocated_nbytes == 0


class Slow:
    """Best fit in the plainest form: lists of [size, owner] for each segment, searched from end to end."""

    def __init__(self, rules, capacity):
        self.rules, self.capacity, self.segments = rules, capacity, []  # (pool, blocks)

    @property
    def reserved(self):
        return sum(size for _, blocks in self.segments for size, _ in blocks)

    def allocate(self, key, nbytes, stream):
        rules = self.rules
        size = rules.rounded(nbytes)
        pool = (stream, size <= rules.small_nbytes)
        for attempt in range(2):
            fits = [
                (b[0], s, i)
                for s, (p, blocks) in enumerate(self.segments)
                if p == pool
                for i, b in enumerate(blocks)
                if b[1] is None and b[0] >= size
            ]
            if not fits:
                left = self.capacity - self.reserved
                segment = rules.segment_for(size, left)
                if size <= segment <= left and (not rules.doubling or left >= rules.least_nbytes):
                    self.segments.append((pool, [[segment, None]]))
                    fits = [(segment, len(self.segments) - 1, 0)]
            if fits:
                break
            if rules.gives_back and not attempt:
                self.segments = [s for s in self.segments if len(s[1]) > 1 or s[1][0][1] is not None]
            else:
                return False
        _, s, i = min(fits)
        blocks = self.segments[s][1]
        if rules.splits(size, blocks[i][0]):
            blocks.insert(i + 1, [blocks[i][0] - size, None])
            blocks[i][0] = size
        blocks[i][1] = key
        return True

    def release(self, key):
        for _, blocks in self.segments:
            for b in blocks:
                if b[1] == key:
                    b[1] = None
            i = 0
            while i + 1 < len(blocks):
                if blocks[i][1] is None and blocks[i + 1][1] is None:
                    blocks[i][0] += blocks.pop(i + 1)[0]
                else:
                    i += 1


@pytest.mark.parametrize("rules", [TORCH_NPU, replace(MINDSPORE, segment_nbytes=32 * MIB)], ids=lambda r: r.name)
@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_a_slow_oracle_takes_and_holds_the_same(rules, steps):
    pool, slow = Allocator(rules, 160 * MIB), Slow(rules, 160 * MIB)
    live = []
    for key, (what, nbytes, stream, pick) in enumerate(steps):
        if what == "a":
            try:
                pool.allocate(key, nbytes, stream=stream)
                took = True
            except DeviceMemoryError:
                took = False
            assert slow.allocate(key, nbytes, stream) == took
            live += [key] * took
        elif live:
            gone = live.pop(pick % len(live))
            pool.release(gone)
            slow.release(gone)
        expected = sorted((size, owner is not None) for _, blocks in slow.segments for size, owner in blocks)
        assert sorted((size, used) for _, size, _, used in pool.blocks()) == expected


def test_torch_npu_rounds_and_takes_segments_as_its_source_says():
    assert [TORCH_NPU.rounded(n) for n in (0, 480, 481, 1000)] == [512, 512, 1024, 1536]
    assert pool_rules("torch_npu", pad=False).rounded(512) == 512  # Ascend 950
    pool = Allocator(TORCH_NPU, GIB)
    # with 32 B more a MiB is not small any more, and 17 MiB are 18 in whole pages
    for key, (nbytes, reserved) in enumerate([(100, 2), (MIB, 22), (3 * MIB, 22), (17 * MIB, 40)]):
        pool.allocate(key, nbytes)
        assert pool.figures().reserved_nbytes == reserved * MIB


def test_mindspore_takes_blocks_of_a_gigabyte_and_doubles_for_more():
    pool = Allocator(MINDSPORE, 8 * GIB)
    pool.allocate(0, 100)
    assert pool.figures().reserved_nbytes == GIB
    pool.allocate(1, GIB + 1)
    assert pool.figures().reserved_nbytes == 3 * GIB
    pool.allocate(2, 4 * GIB)
    assert pool.figures().reserved_nbytes == 7 * GIB
    with pytest.raises(DeviceMemoryError):
        pool.allocate(3, 2 * GIB)
    pool.allocate(3, GIB - 512)


def test_mindspore_keeps_weights_in_a_segment_of_their_own():
    pool = Allocator(MINDSPORE, 8 * GIB)
    pool.allocate(0, MIB, persistent=True)
    pool.allocate(1, MIB)
    assert pool.figures().reserved_nbytes == 2 * GIB
    pool.allocate(2, GIB, persistent=True)  # the second one of weights is everybody's
    pool.release(2)
    pool.allocate(3, GIB)
    assert pool.figures().reserved_nbytes == 3 * GIB


def pieces(rules):
    """Every second of 64 blocks of 11 MiB is given back; then 22 MiB are wanted, and all the device is reserved."""
    lives = [Event(i, 11 * MIB, time_us=i, label=f"t{i}") for i in range(64)]
    return replay([*lives, *(Event(i, time_us=64) for i in range(0, 64, 2)), Event(99, 100 * MIB, label="scores")], rules, 64 * 12 * MIB)


def test_memory_in_pieces_fails_and_says_so_and_pages_mend_it():
    """MindSpore's pool cannot join what lies between blocks in use; pages can be taken from there and put elsewhere."""
    plain = pieces(replace(MINDSPORE, segment_nbytes=64 * 12 * MIB))
    assert plain.fault is not None and plain.at is not None and plain.at.label == "scores"
    assert "in pieces" in plain.fault.hint and "Request memory size: 104857600" in plain.fault.framework
    assert plain.figures[-1].fragmentation > 0.7
    assert pieces(MINDSPORE_VMM).fault is None
    assert pieces(TORCH_NPU).fault is None, "whole segments go back to the device"
    assert pieces(TORCH_NPU_EXPANDABLE).fault is not None, "no page of 20 MiB lies in a gap of 11"
    assert pieces(replace(TORCH_NPU_EXPANDABLE, segment_nbytes=2 * MIB)).fault is None


def test_out_of_memory_names_the_numbers_in_our_words_and_the_frameworks():
    history = replay([Event(0, 200 * MIB), Event(1, 100 * MIB, label="conv1")], TORCH_NPU, 256 * MIB)
    assert history.fault is not None and isinstance(history.fault, MemoryError)
    assert history.fault.what == (
        "pool torch_npu: a block for conv1 must fit into 54.00 MiB left of 256.00 MiB or into the largest of 2.00 MiB free in the pool, 2.00 MiB,"
        " got 100.00 MiB"
    )
    assert history.fault.framework == (
        "NPU out of memory. Tried to allocate 100.00 MiB (NPU 0; 256.00 MiB total capacity; 200.00 MiB already allocated; 200.00 MiB current active;"
        " 54.00 MiB free; 202.00 MiB reserved in total by PyTorch)"
    )


def test_a_block_that_another_stream_reads_is_active_and_not_allocated():
    pool = Allocator(TORCH_NPU, GIB)
    pool.allocate(0, 30 * MIB, time_us=1)
    pool.release(0, time_us=2, ready_us=5)
    assert (pool.figures().allocated_nbytes, pool.figures().active_nbytes > 0) == (0, True)
    pool.allocate(1, 30 * MIB, time_us=3)
    assert pool.figures().reserved_nbytes == 64 * MIB
    pool.allocate(2, 30 * MIB, time_us=6)
    assert pool.figures().reserved_nbytes == 64 * MIB


def test_events_of_lives_come_in_order_and_free_after_use():
    events = list(events_of([(10, 0, 1, "a", "", False), (20, 1, 2, "b", "", False)]))
    assert [(e.key, e.nbytes) for e in events] == [(0, 10), (1, 20), (0, None), (1, None)]


def test_unknown_rules_name_the_known_ones():
    with pytest.raises(DeviceError, match="rules must be one of torch_npu"):
        pool_rules("torch-npu")
