"""Memory is aligned and zeroed; views stay inside it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

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


def test_memory_is_lent_again_when_the_last_view_is_gone() -> None:
    lender = Recycler(np.dtype(np.float32), (4, 1 << 17))
    first = lender.lend()
    address = first.ctypes.data
    piece = buffer_of(first[1:, 100:200])
    del first
    other = lender.lend()
    assert address != other.ctypes.data  # `piece` still reads the first
    del piece
    assert address == lender.lend().ctypes.data
    assert (np.dtype(np.float32), (4, 1 << 17)) == (other.dtype, other.shape)


def buffer_of(array: np.ndarray) -> memoryview:
    """What other libraries hold: a buffer of a view."""
    return memoryview(array)


def test_only_so_many_blocks_are_held_and_no_two_loans_share_memory() -> None:
    lender = Recycler(np.dtype(np.uint8), (1 << 20,), kept=1)
    loans = [lender.lend() for _ in range(3)]
    assert 3 == len({loan.ctypes.data for loan in loans})
    assert 1 == len(lender._blocks)


def test_threads_never_get_the_same_memory() -> None:
    lender = Recycler(np.dtype(np.int64), (1 << 14,))

    def work(number: int) -> bool:
        for _ in range(300):
            loan = lender.lend()
            loan[:] = number
            if (loan != number).any():
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))
