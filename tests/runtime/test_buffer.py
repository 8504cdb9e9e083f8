"""Memory is aligned and zeroed; views stay inside it."""

from __future__ import annotations

import numpy as np
import pytest

from jumar.base import RuntimeFault, TensorType, bf16, f32
from jumar.runtime import Recycler, aligned, allocate, view


@pytest.mark.parametrize("nbytes, alignment", [(1, 64), (64, 64), (1000, 64), (2 << 20, 2 << 20), (5_000_000, 2 << 20)])
def test_allocations_are_zeroed_and_aligned(nbytes: int, alignment: int) -> None:
    memory = allocate(nbytes)
    assert memory.nbytes == nbytes and memory.ctypes.data % alignment == 0 and not memory.any()
    memory[:] = 7


def test_a_view_shares_the_memory_and_a_view_outside_is_refused() -> None:
    memory = allocate(256)
    view(memory, 64, TensorType((2, 3), f32))[:] = 1
    assert memory[64:88].view(np.float32).tolist() == [1.0] * 6
    assert view(memory, 0, TensorType((4,), bf16)).dtype == bf16.numpy
    assert view(memory, 256, TensorType((0, 5), f32)).shape == (0, 5)
    with pytest.raises(RuntimeFault, match=r"must lie inside 256 bytes, got 252 \.\. 260"):
        view(memory, 252, TensorType((2,), f32))


def test_aligned_copies_only_what_is_not() -> None:
    memory = allocate(128)
    assert aligned(memory) is memory
    moved = aligned(memory[1:])
    assert moved.ctypes.data % 64 == 0 and moved.nbytes == 127


def test_a_block_is_lent_again_only_when_no_array_refers_to_it() -> None:
    lender = Recycler()
    first = lender.lend(1 << 21)
    address = first.ctypes.data
    piece = first[100:200].view(np.float32)
    del first
    other = lender.lend(1 << 21)
    assert address != other.ctypes.data  # `piece` still reads the first
    del piece
    assert address == lender.lend(1 << 21).ctypes.data


def test_only_so_many_blocks_of_a_size_wait() -> None:
    lender = Recycler(kept=1)
    loans = [lender.lend(1 << 21) for _ in range(3)]
    del loans
    assert [1] == [len(blocks) for blocks in lender._free.values()]
