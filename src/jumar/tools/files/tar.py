"""The members of a tar archive, as its bytes come: ustar, GNU and pax, old ones without a mark.

In: a `Flow`.  Out: `Member`s, lazily.  The standard library reads long names and pax headers of any length into memory, and so a bomb; here they
are bounded.
"""

from __future__ import annotations

import re
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field

from jumar.base import Said
from jumar.tools.files.flow import NO_HEADER, Damage, Flow, part
from jumar.tools.files.member import Member, plain

BLOCK = 512
_MOST_OF_HEADER = 1 << 20  # bytes of a long name or of a pax header
_KINDS = {
    **dict.fromkeys(tarfile.REGULAR_TYPES, stat.S_IFREG),
    tarfile.DIRTYPE: stat.S_IFDIR,
    tarfile.CHRTYPE: stat.S_IFCHR,
    tarfile.BLKTYPE: stat.S_IFBLK,
    tarfile.FIFOTYPE: stat.S_IFIFO,
    tarfile.SYMTYPE: stat.S_IFLNK,
    tarfile.LNKTYPE: stat.S_IFLNK,
}
_OF_THE_NEXT = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_PAX = re.compile(rb"(\d{1,9}) ([^=\n]{1,200})=")


@dataclass
class _Ahead:
    """What headers before a member say of it, by name as pax has it."""

    said: dict[str, bytes] = field(default_factory=dict)

    def text(self, key: str, otherwise: str) -> str:
        value = self.said.get(key)
        return otherwise if value is None else value.decode("utf-8", "replace")[:100]


def is_tar(start: bytes) -> bool:
    """Is this the first header of a tar archive?   Its checksum tells; of old ones nothing else would."""
    return len(start) >= BLOCK and _header(start[:BLOCK]) is not None


def _header(block: bytes) -> tarfile.TarInfo | None:
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except (tarfile.HeaderError, ValueError):
        return None


def tar_members(flow: Flow) -> Iterator[Member]:
    """The files, links and nodes of an archive; Damage where it breaks off."""
    ahead = _Ahead()
    while True:
        block = flow.read(BLOCK)
        if len(block) == BLOCK and not block.strip(b"\0"):
            return
        if len(block) < BLOCK:
            raise Damage(Said("it ends without the mark of an end", "没有结束标记"))
        header = _header(block)
        if header is None or header.size < 0:
            raise Damage(NO_HEADER)
        size = -(-header.size // BLOCK) * BLOCK
        if header.type in _OF_THE_NEXT:
            if header.size > _MOST_OF_HEADER:
                raise Damage(
                    Said(
                        f"a header must have at most {_MOST_OF_HEADER >> 20} MB, got {header.size} bytes",
                        f"文件头不能超过 {_MOST_OF_HEADER >> 20} MB，实际为 {header.size} 字节",
                    )
                )
            data = flow.read(size)[: header.size]
            if header.type == tarfile.GNUTYPE_LONGNAME:
                ahead.said["path"] = data.rstrip(b"\0")
            elif header.type in (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE):
                ahead.said.update(_pax(data))
            continue
        if header.type == tarfile.GNUTYPE_SPARSE:  # its holes are not in the archive, and no text has any
            more = block[482]
            while more:
                extension = flow.read(BLOCK)
                more = extension[504] if len(extension) == BLOCK else 0
        yield from _member(flow, header, ahead)
        ahead = _Ahead()


def _member(flow: Flow, header: tarfile.TarInfo, ahead: _Ahead) -> Iterator[Member]:
    nbytes = header.size
    if (stated := ahead.said.get("size", b"")).isdigit() and len(stated) < 20:
        nbytes = int(stated)
    kind = _KINDS.get(header.type)
    if kind is None or kind != stat.S_IFREG:
        nbytes = nbytes if kind is None else 0
    body = Flow(part(flow, nbytes), under=flow)
    if kind is not None and kind != stat.S_IFDIR:
        raw = ahead.said.get("GNU.sparse.name") or ahead.said.get("path") or header.name.encode("utf-8", "surrogateescape")
        name, outside = plain(raw)
        owner = ahead.text("uname", header.uname) or str(header.uid)
        group = ahead.text("gname", header.gname) or str(header.gid)
        yield Member(name, kind | header.mode & 0o7777, owner, group, body if kind == stat.S_IFREG else None, outside=outside)
    body.drain()
    if body.damage:
        raise Damage(body.damage)
    flow.skip(-nbytes % BLOCK)


def _pax(data: bytes) -> dict[str, bytes]:
    """`LENGTH NAME=VALUE` records of a pax header, up to where it is damaged."""
    found: dict[str, bytes] = {}
    place = 0
    while record := _PAX.match(data, place):
        end = place + int(record[1])
        if end <= record.end() or end > len(data):
            break
        found[record[2].decode("utf-8", "replace")] = data[record.end() : end - 1]
        place = end
    return found
