"""Messages between a pipeline and a worker process: small ones through a pipe, large arrays through memory that both have mapped.

In: picklable objects.  Out: the same on the other side, as copies of its own (workers.py).
The memory is a `memfd`: it has no name, so nothing stays behind however the processes end, and it does not count against /dev/shm.
A channel has as many slots as tasks may be under way; a slot is written again only after its message was answered, so there is no lock.
"""

from __future__ import annotations

import errno
import mmap
import os
import pickle
import struct
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any

from jumar.dataset.errors import DataFault

LARGE = 32 * 1024  # bytes of buffers from which shared memory is faster than the pipe
_ALIGN = 64
_HEAD = struct.Struct("<qqqq")  # ticket, kind, slot, number of buffers in it


class Slot:
    """One stretch of shared memory that grows as messages need."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.map: mmap.mmap | None = None

    def room(self, nbytes: int, *, grow: bool) -> memoryview:
        if self.map is None or len(self.map) < nbytes:
            if grow:
                size = max(1 << 16, 1 << (nbytes - 1).bit_length()) if nbytes < 1 << 28 else -(-nbytes // 4096) * 4096
                try:
                    os.posix_fallocate(self.fd, 0, size)  # else a full machine would end the process with SIGBUS at the first write
                except OSError as error:
                    if error.errno in (errno.ENOSPC, errno.ENOMEM):
                        raise DataFault(
                            f"workers: shared memory for a row of {nbytes} bytes must be available, got {error.strerror}"
                        ) from error
                    raise
            if self.map is not None:
                self.map.close()
            self.map = mmap.mmap(self.fd, os.fstat(self.fd).st_size)
        return memoryview(self.map)

    def close(self) -> None:
        if self.map is not None:
            self.map.close()
            self.map = None
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class Slots:
    """The shared memory of one direction; it may be handed to a process that is spawned."""

    def __init__(self, count: int, fds: list[int] | None = None) -> None:
        self.slots = [Slot(os.memfd_create("jumar-dataset") if fds is None else fds[i]) for i in range(count)]

    def __reduce__(self) -> Any:
        return _slots_from, ([reduction.DupFd(s.fd) for s in self.slots],)

    def close(self) -> None:
        for slot in self.slots:
            slot.close()


def _slots_from(copies: list[Any]) -> Slots:
    return Slots(len(copies), [c.detach() for c in copies])


def send(pipe: Connection, slots: Slots | None, ticket: int, kind: int, message: Any) -> None:
    """One message; what is large of it goes to slot `ticket % slots`, so that a pipe is never so full that both sides wait."""
    buffers: list[pickle.PickleBuffer] = []
    try:
        body = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
        raws = [b.raw() for b in buffers]
    except BufferError:  # an array that is not contiguous cannot be given out of band
        raws, body = [], pickle.dumps(message, protocol=5)
    if raws and (slots is None or sum(r.nbytes for r in raws) < LARGE):
        raws, body = [], pickle.dumps(message, protocol=5)
    if slots is not None and (raws or len(body) > LARGE):
        raws.append(memoryview(body))  # the pickle is the last of the buffers
    index = ticket % len(slots.slots) if slots else 0
    sizes = [r.nbytes for r in raws]
    if raws and slots is not None:
        with slots.slots[index].room(sum(_rounded(n) for n in sizes), grow=True) as view:
            place = 0
            for n, raw in zip(sizes, raws):
                view[place : place + n] = raw
                place += _rounded(n)
        body = b""
    pipe.send_bytes(_HEAD.pack(ticket, kind, index, len(sizes)) + struct.pack(f"<{len(sizes)}q", *sizes) + body)


def _rounded(nbytes: int) -> int:
    return -(-nbytes // _ALIGN) * _ALIGN


def receive(pipe: Connection, slots: Slots | None) -> tuple[int, int, Any]:
    """(ticket, kind, message); arrays are copies, so the slot is free again."""
    data = memoryview(pipe.recv_bytes())
    ticket, kind, index, count = _HEAD.unpack_from(data)
    if not count or slots is None:
        return ticket, kind, pickle.loads(data[_HEAD.size :])
    sizes = struct.unpack_from(f"<{count}q", data, _HEAD.size)
    buffers, place = [], 0
    with slots.slots[index].room(sum(_rounded(n) for n in sizes), grow=False) as view:
        for n in sizes:
            buffers.append(bytearray(view[place : place + n]))
            place += _rounded(n)
    return ticket, kind, pickle.loads(buffers.pop(), buffers=buffers)
