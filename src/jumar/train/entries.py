"""Entries: what a checkpoint file holds, by name, before its values are read.

In: the tables of contents that ckpt.py and safetensors.py read out of files.  Out: arrays and texts, each read when it is wanted, each allocated only after
its size was found to be in the file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from jumar.base import Array
from jumar.frontend import dtype as types
from jumar.frontend.dtype import Type
from jumar.train.errors import FileFault

MAX_DIMS = 32  # NumPy 1 has no more


@dataclass(frozen=True)
class Entry:
    """One value of a file.   type: None for a text.   pieces: (offset, bytes) in the file, in order."""

    name: str
    type: Type | None
    dims: tuple[int, ...]
    pieces: tuple[tuple[int, int], ...]

    @property
    def nbytes(self) -> int:
        return sum(n for _, n in self.pieces)

    @property
    def shape(self) -> tuple[int, ...]:
        """MindSpore writes a scalar with dims (0,)."""
        return () if self.dims == (0,) and self.nbytes else self.dims


def damaged(path: str, what: str) -> FileFault:
    """The error of a file that is not what it should be."""
    return FileFault(f"{path}: {what}", hint="fetch or save the file again", code="checkpoint-damaged")


def check_size(path: str, entry: Entry) -> None:
    """Dimensions and bytes agree."""
    if entry.type is None:
        return
    if len(entry.dims) > MAX_DIMS or any(d < 0 for d in entry.dims):
        raise damaged(path, f"dimensions of {entry.name!r:.120} must be at most {MAX_DIMS} and not negative, got {list(entry.dims)!r:.120}")
    wanted = math.prod(entry.shape) * entry.type.itemsize
    if wanted != entry.nbytes:
        what = f"{entry.name!r:.120} must hold {wanted} bytes for {entry.type}{list(entry.shape)}, got {entry.nbytes}"
        raise damaged(path, what)


def read_array(path: str, file: BinaryIO, entry: Entry) -> Array:
    """The value of an entry, which is not a text."""
    assert entry.type is not None, "texts are read by read_text"
    array = np.empty(entry.shape, entry.type.numpy)
    if not array.nbytes:
        return array
    raw = array.reshape(-1).view(np.uint8).data
    at = 0
    for offset, nbytes in entry.pieces:
        file.seek(offset)
        if file.readinto(raw[at : at + nbytes]) != nbytes:  # type: ignore[attr-defined]
            raise damaged(path, f"file must not shrink while it is read, got fewer than {nbytes} bytes at {offset}")
        at += nbytes
    if entry.type is types.bool_ and raw.nbytes and int(array.view(np.uint8).max()) > 1:
        raise damaged(path, f"elements of {entry.name!r:.120} must be 0 or 1, being booleans")
    return array


def read_bytes(path: str, file: BinaryIO, entry: Entry) -> bytes:
    """The raw bytes of an entry."""
    found = []
    for offset, nbytes in entry.pieces:
        file.seek(offset)
        piece = file.read(nbytes)
        if len(piece) != nbytes:
            raise damaged(path, f"file must not shrink while it is read, got fewer than {nbytes} bytes at {offset}")
        found.append(piece)
    return b"".join(found)
