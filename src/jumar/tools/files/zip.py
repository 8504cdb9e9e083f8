"""The members of a zip archive, as its bytes come: by the headers that stand before each of them.

In: a `Flow`.  Out: `Member`s, lazily.  The directory at the end is not needed, so one that breaks off, or lies in another archive, is read as well,
and a directory of millions of names takes no memory.
"""

from __future__ import annotations

import bz2
import stat
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from jumar.base import UNSAID, Said
from jumar.tools.files.flow import EARLY, NO_HEADER, PIECE, Budget, Damage, Flow, part
from jumar.tools.files.member import Member, plain
from jumar.tools.files.unfold import inflated, worked

_HEADER = struct.Struct("<4s5H3L2H")
_LOCAL, _DESCRIPTOR = b"PK\x03\x04", b"PK\x07\x08"
_SPANNED = (b"PK\x07\x08PK\x03\x04", b"PK00PK\x03\x04")
_AT_THE_END = (b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x08")
_METHODS = {0: "stored", 8: "deflate", 9: "deflate64", 12: "bzip2", 14: "lzma", 93: "zstd", 95: "xz", 98: "PPMd", 99: "AES"}
_READ = (0, 8, 12)
_CHECKSUM = Said("its checksum is another one", "校验和不符")
_IN_FRONT = 24  # bytes of a descriptor at most: mark, checksum, two sizes of 8


@dataclass(frozen=True)
class _Header:
    """What stands before a member.   nbytes: as packed, -1 where only what follows the data tells."""

    name: bytes
    locked: bool
    method: int
    checksum: int
    nbytes: int
    later: bool


def is_zip(start: bytes) -> bool:
    return start.startswith((_LOCAL, b"PK\x05\x06", *_SPANNED))


def zip_members(flow: Flow, budget: Budget) -> Iterator[Member]:
    """The files of an archive; Damage where it breaks off."""
    if flow.peek(8).startswith(_SPANNED):
        flow.skip(4)
    while (mark := flow.peek(4)) == _LOCAL:
        header = _header(flow)
        name, outside = plain(header.name)
        packed = Flow(part(flow, header.nbytes) if header.nbytes >= 0 else _until_descriptor(flow), under=flow)
        ends_itself = header.nbytes < 0 and header.method in (8, 12) and not header.locked
        packed = flow if ends_itself else packed
        body = Flow(_body(packed, header, budget), under=packed)
        if not header.name.endswith((b"/", b"\\")):
            closed = Said("it needs a password", "需要密码") if header.locked else UNSAID
            if not closed and header.method not in _READ:
                method = _METHODS.get(header.method, f"method {header.method}")
                closed = Said(f"it is packed by {method}, which is not read", f"压缩方式 {method} 无法读取")
            yield Member(name, stat.S_IFREG | 0o644, flow=None if closed else body, closed=closed, outside=outside)
        data = body if ends_itself else packed  # of a damaged member that ends itself nobody knows where the next one begins
        data.drain()
        if data.damage:
            raise Damage(data.damage)
        if header.later:
            _to_next(flow)
    if mark not in _AT_THE_END:
        raise Damage(NO_HEADER if mark else Said("it ends without its directory", "末尾没有目录"))


def _header(flow: Flow) -> _Header:
    raw = flow.read(_HEADER.size)
    if len(raw) < _HEADER.size:
        raise Damage(Said("it ends in a member's header", "在文件头处中断"))
    _, _, flags, method, _, _, checksum, nbytes, unfolded, long_name, long_extra = _HEADER.unpack(raw)
    name, extra = flow.read(long_name), flow.read(long_extra)
    if nbytes == 0xFFFFFFFF:
        nbytes = _of_extra(extra, 8 if unfolded == 0xFFFFFFFF else 0)
    later = bool(flags & 8)
    return _Header(name, bool(flags & 0x41), method, checksum, -1 if later and not nbytes else nbytes, later)


def _of_extra(extra: bytes, at: int) -> int:
    """The size in the zip64 field."""
    place = 0
    while place + 4 <= len(extra):
        kind, nbytes = struct.unpack_from("<HH", extra, place)
        if kind == 1 and place + 12 + at <= len(extra) and at + 8 <= nbytes:
            return int(struct.unpack_from("<Q", extra, place + 4 + at)[0])
        place += 4 + nbytes
    raise Damage(Said("a member does not say its size", "有文件没有写明大小"))


def _body(packed: Flow, header: _Header, budget: Budget) -> Iterator[bytes]:
    """A member's bytes; Damage at its end where they are not those that were packed."""
    checksum = 0
    if header.method == 0:
        pieces: Iterator[bytes] = iter(packed.some, b"")
    else:
        pieces = inflated(packed) if header.method == 8 else worked(packed, bz2.BZ2Decompressor())
    for piece in pieces:
        if header.method:
            budget.spend(len(piece))
        checksum = zlib.crc32(piece, checksum)
        yield piece
    if packed.damage:
        raise Damage(packed.damage)
    if header.later:
        stated = packed.peek(8) if header.nbytes < 0 and header.method else b""
        wanted = stated[4:8] if stated.startswith(_DESCRIPTOR) else stated[:4]
        if wanted and wanted != struct.pack("<L", checksum):
            raise Damage(_CHECKSUM)
    elif checksum != header.checksum:
        raise Damage(_CHECKSUM)


def _until_descriptor(flow: Flow) -> Iterator[bytes]:
    """The bytes of a member that does not say how many it has, up to the descriptor that does."""
    passed = 0
    while True:
        held = flow.peek(PIECE)
        place = held.find(_DESCRIPTOR)
        while place >= 0 and struct.pack("<L", (passed + place) & 0xFFFFFFFF) != held[place + 8 : place + 12]:
            if place + 12 > len(held) and len(held) == PIECE:
                break
            place = held.find(_DESCRIPTOR, place + 1)
        if place == 0:
            return
        nbytes = place if place > 0 else len(held) - len(_DESCRIPTOR) + 1 if len(held) == PIECE else len(held)
        if not nbytes:
            raise Damage(EARLY)
        passed += nbytes
        yield flow.read(nbytes)


def _to_next(flow: Flow) -> None:
    """Passes the descriptor behind a member: with or without its mark, of 4 or 8 bytes a size."""
    ahead = flow.peek(_IN_FRONT + 4)
    places = [place for mark in (_LOCAL, *_AT_THE_END) if (place := ahead.find(mark)) >= 0]
    flow.skip(min(places) if places else 0)
