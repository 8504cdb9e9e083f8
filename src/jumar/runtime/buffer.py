"""Aligned memory: arenas, constants and scratch, on huge pages where they are large.

In: a number of bytes.  Out: a `uint8` array whose first byte is 64-byte aligned, and views on it.
Huge pages are worth up to 1.7x in L3 and 1.4x in DRAM (docs/facts: nested paging makes TLB misses dear).
"""

from __future__ import annotations

import math
import mmap
import sys
from typing import Any

import numpy as np

from jumar.base import Array, RuntimeFault, TensorType

ALIGN = 64
HUGE = 2 << 20


def allocate(nbytes: int) -> Array:
    """Zeroed bytes, 64-byte aligned (2 MiB aligned and on huge pages from 2 MiB on).   Freed with the last view.

    >>> allocate(100).ctypes.data % 64
    0
    """
    if nbytes < HUGE:
        raw = np.zeros(nbytes + ALIGN, np.uint8)
        start = -raw.ctypes.data % ALIGN
        return raw[start : start + nbytes]
    whole = (nbytes + HUGE - 1) // HUGE * HUGE
    memory = mmap.mmap(-1, whole + HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        try:
            memory.madvise(mmap.MADV_HUGEPAGE)
        except OSError:
            pass  # a kernel without huge pages: slower, not wrong
    raw = np.frombuffer(memory, np.uint8)
    start = -raw.ctypes.data % HUGE
    return raw[start : start + nbytes]


class Recycler:
    """Lends large arrays of one type, on the memory of earlier ones that nobody refers to any more.

    Fresh memory is dear: 75 MB of outputs are 18,000 page faults a run.  `kept` blocks are held; with all of them in use, loans are fresh.
    A loan is a view, and every view of it refers to the array below: its count of references tells when the last one is gone.  That is
    0.5 us a loan; a finalizer for each takes 10.  Where counts tell nothing (no CPython, or one without its lock), all loans are fresh.
    """

    def __init__(self, dtype: np.dtype[Any], shape: tuple[int, ...], kept: int = 2) -> None:
        self.dtype, self.shape = dtype, shape
        self.kept = kept if _COUNTS else 0
        self._blocks: list[tuple[Array, int]] = []  # and how many references there are when it is not lent

    def lend(self) -> Array:
        """An array with whatever was in memory; theirs who asked, until no array refers to it."""
        blocks = self._blocks
        for _ in range(len(blocks)):
            try:
                entry = blocks.pop(0)  # atomic, as append is: what is out of the list is ours alone
            except IndexError:
                break
            block, at_rest = entry
            loan: Array | None = block.view() if _references(block) == at_rest else None
            blocks.append(entry)
            if loan is not None:
                return loan
        nbytes = math.prod(self.shape) * self.dtype.itemsize
        block = allocate(nbytes).view(self.dtype).reshape(self.shape)
        at_rest = _references(block)
        fresh: Array = block.view()
        if len(blocks) < self.kept:
            blocks.append((block, at_rest))
        return fresh


def _references(block: Array) -> int:
    """How many references there are to the array that a view, and all views of it, stand on."""
    return sys.getrefcount(block.base)


_COUNTS = sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()


def aligned(data: Array) -> Array:
    """The bytes as an aligned array: themselves where they are aligned already, else a copy."""
    if data.dtype == np.uint8 and data.ndim == 1 and data.flags.c_contiguous and data.ctypes.data % ALIGN == 0:
        return data
    copy = allocate(data.nbytes)
    copy[:] = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    return copy


def view(memory: Array, offset: int, type: TensorType) -> Array:
    """The array of `type` that lies at `offset` in the bytes."""
    end = offset + type.nbytes
    if offset < 0 or end > memory.nbytes:
        raise RuntimeFault(f"buffer: view of {type} must lie inside {memory.nbytes} bytes, got {offset} .. {end}", code="buffer-range")
    flat: np.ndarray[Any, Any] = memory[offset:end].view(type.dtype.numpy)
    return flat.reshape(type.dims)
