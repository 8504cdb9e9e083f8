"""Compressed streams, known by their first bytes: gz, bz2, xz, and zst where Python has it; several in a row are one.

In: a `Flow`.  Out: the pieces it unfolds to, at most PIECE bytes at a time and within the `Budget`, whatever the bytes are.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any, Protocol

from jumar.base import UNSAID, Said
from jumar.tools.files.flow import EARLY, PIECE, Budget, Damage, Flow, what_of

_MOST_FOR_XZ = 128 << 20  # bytes of memory: `xz -9` makes files that take 65 MB
Codec = Callable[[Flow], Iterator[bytes]]


class _Machine(Protocol):
    """What the decompressors of Python have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def needs_input(self) -> bool: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


def inflated(flow: Flow, window: int = -15) -> Iterator[bytes]:
    """One deflate stream; what stands behind it stays in the flow.   window: as zlib counts it, 31 for gzip."""
    machine = zlib.decompressobj(window)
    while not machine.eof:
        data = machine.unconsumed_tail or flow.some()
        found = machine.decompress(data, PIECE)
        if not data and not found and not machine.eof:
            raise Damage(EARLY)
        yield found
    flow.give_back(machine.unused_data)


def worked(flow: Flow, machine: _Machine) -> Iterator[bytes]:
    """One stream of bz2, xz or zst."""
    while not machine.eof:
        data = flow.some() if machine.needs_input else b""
        if machine.needs_input and not data:
            raise Damage(EARLY)
        yield machine.decompress(data, PIECE)
    flow.give_back(machine.unused_data)


@cache
def _zstd() -> Any:
    """Python's module for zst, None before 3.14."""
    try:
        return import_module("compression.zstd")
    except ImportError:
        return None


def _zst(flow: Flow) -> Iterator[bytes]:
    try:
        yield from worked(flow, _zstd().ZstdDecompressor())  # windows of more than 128 MB are refused by default
    except _zstd().ZstdError as error:
        raise Damage(what_of(error)) from error


_ZST = b"\x28\xb5\x2f\xfd"
_CODECS: dict[bytes, Codec] = {  # by how they begin
    b"\x1f\x8b": lambda flow: inflated(flow, 31),
    b"BZh": lambda flow: worked(flow, bz2.BZ2Decompressor()),
    b"\xfd7zXZ\x00": lambda flow: worked(flow, lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_MOST_FOR_XZ)),
    _ZST: _zst,
}
_BZ2_BLOCKS = (b"1AY&SY", b"\x17rE8P\x90")  # a text may well begin with BZh
_OTHERS = {
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"Rar!\x1a\x07": "rar",
    b"\x1f\x9d": "Z",
    b"\x04\x22\x4d\x18": "lz4",
    b"LZIP": "lzip",
    b"MSCF": "cab",
}


def codec_of(start: bytes) -> Codec | None:
    """What unfolds a stream that begins so, None where it is not compressed, or not so that it can be read here."""
    magic = next((magic for magic in _CODECS if start.startswith(magic)), b"")
    if (magic == b"BZh" and start[4:10] not in _BZ2_BLOCKS) or (magic == _ZST and not _zstd()):
        return None
    return _CODECS.get(magic)


def why_unread(start: bytes) -> Said:
    """Why a packed form that is known is not read, empty where it is none or is read.

    >>> why_unread(b"Rar!\\x1a\\x07\\x01"), why_unread(b"plain")
    ('rar is not read: unpack it, or pack it as tar.gz or zip', '')
    """
    if start.startswith(_ZST) and not _zstd():
        return Said(
            "zst is not read by this Python (3.14 reads it): unpack it with zstd -d",
            "这个 Python 不能读 zst（3.14 可以）：请用 zstd -d 解压",
        )
    form = next((name for magic, name in _OTHERS.items() if start.startswith(magic)), "")
    if not form:
        return UNSAID
    return Said(f"{form} is not read: unpack it, or pack it as tar.gz or zip", f"不能读 {form}：请解压，或改用 tar.gz 或 zip")


def unfolded(flow: Flow, codec: Codec, budget: Budget) -> Iterator[bytes]:
    """The whole text of a compressed stream; what stands behind it (zeros, a signature) is left."""
    while True:
        for piece in codec(flow):
            budget.spend(len(piece))
            yield piece
        if codec_of(flow.peek(16)) is not codec:
            return
