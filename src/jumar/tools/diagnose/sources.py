"""What the user gives, as streams of clean blocks: files, folders, archives, compressed files, standard input; any encoding.

In: paths.  Out: `Opened`: `Source`s, each of which is read before the next one is asked for, and notes on what was left out; `blocks` gives UTF-8
without colours, carriage returns and NULs, whole lines, about BLOCK bytes at a time.  What archives hold is read by files/walk.py.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from jumar.base import UNSAID, Said, ToolError, reason, told
from jumar.tools.files.flow import Flow
from jumar.tools.files.member import Member, plain
from jumar.tools.files.text import SNIFFED, clean, encoding_of, is_binary
from jumar.tools.files.walk import Limits, Progress, Walk, is_packed

BLOCK = 256 * 1024
LONGEST = 32 * 1024  # of one line: what stands behind is a line of its own
LIMITS = Limits()
_NOTES = 5  # of one path on what is damaged
_NAMED = 3  # files that a note names


@dataclass(frozen=True)
class Source:
    """Bytes, piece by piece, with the name that the user knows."""

    name: str
    pieces: Iterable[bytes]


@dataclass(frozen=True)
class Opened:
    """Streams, and what was left out and why, in words; failed: of the named paths those that gave nothing, or not all.   Complete when the last
    source was read."""

    sources: Iterator[Source]
    notes: list[Said]
    failed: list[Path]


def source_of_text(name: str, text: str) -> Source:
    data = text.encode("utf-8", "replace")
    return Source(name, tuple(data[i : i + BLOCK] for i in range(0, len(data), BLOCK)))


def opened(paths: tuple[Path, ...], progress: Progress = lambda _: None) -> Opened:
    """Every text that the paths give, `-` for standard input.   progress: told of the bytes that were read.

    Raises ToolError at once where none of them can be read, and after the last source where none gave any text.
    """
    notes: list[Said] = []
    failed: list[Path] = []
    first: ToolError | None = None
    for path in paths:
        try:
            _check(path)
        except ToolError as error:
            first = first or error
            failed.append(path)
            notes.append(Said(error.what, told(error.what, "zh")))
    if first and len(failed) == len(paths):
        raise first
    return Opened(_sources(_once([path for path in paths if path not in failed]), notes, failed, progress), notes, failed)


def _once(paths: list[Path]) -> tuple[Path, ...]:
    """The paths without those that another one holds."""
    places = {path: path.resolve() if str(path) != "-" else path for path in paths}
    folders = {place for path, place in places.items() if path.is_dir()}
    kept: dict[Path, Path] = {}
    for path, place in places.items():
        if folders.isdisjoint(place.parents):
            kept.setdefault(place, path)
    return tuple(kept.values())


def size_of(paths: tuple[Path, ...]) -> int:
    """Bytes on the disk of all that the paths name, 0 where that is not known."""
    total = 0
    for path in paths:
        with suppress(OSError):
            total += sum(islice(_sizes(path), LIMITS.members)) if path.is_dir() else path.stat().st_size if path.is_file() else 0
    return total


def _sizes(folder: Path) -> Iterator[int]:
    left = [str(folder)]
    while left:
        with suppress(OSError):
            for entry in os.scandir(left.pop()):
                if entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    yield entry.stat().st_size


def _check(path: Path) -> None:
    """Refuses what nobody can read, before anything is."""
    if str(path) == "-":
        if sys.stdin is None:
            raise ToolError(
                Said("-: standard input must be open, got none", "-：没有打开的标准输入"), hint="jumar diagnose FILE", code="not-text"
            )
        return
    try:
        if path.is_dir():
            next(os.scandir(path), None)
            return
    except OSError as error:
        why = reason(error)
        raise ToolError(
            Said(f"{path}: folder must be readable, got {why}", f"{path}：目录无法读取：{why.zh}"), code="file-missing"
        ) from error
    if path.exists() and not path.is_file():  # a pipe, a device: it can be read once only, so nobody looks first
        return
    try:
        with path.open("rb") as stream:
            start = stream.read(SNIFFED)
    except OSError as error:
        why = reason(error)
        raise ToolError(
            Said(f"{path}: file must be readable, got {why}", f"{path}：文件无法读取：{why.zh}"), code="file-missing"
        ) from error
    if is_binary(start) and not is_packed(start):
        raise ToolError(
            Said(f"{path}: file must be text or an archive of texts, got binary data", f"{path}：必须是文本或文本的归档，这是二进制文件"),
            code="not-text",
        )


def _sources(paths: tuple[Path, ...], notes: list[Said], failed: list[Path], progress: Progress) -> Iterator[Source]:
    count = 0
    for path in paths:
        walk = Walk(LIMITS, progress)
        left: dict[Said, list[str]] = {}
        name = "stdin" if str(path) == "-" else _shown(path)
        before = count
        broken: Said | None = None
        try:
            for member in walk.of_stream(sys.stdin.buffer, name) if str(path) == "-" else walk.of(path, name):
                why = _left_out(member)
                if why == _NOTHING:
                    continue
                if why:
                    left.setdefault(why, []).append(member.name)
                elif member.flow is not None:
                    count += 1
                    yield Source(member.name, _whole(member.flow))
                if member.outside and not why:
                    left.setdefault(_OUTSIDE, []).append(member.name)
        except OSError as error:  # it was there when we looked
            why = reason(error)
            broken = Said(f"{name}: read up to {why}", f"{name}：读到中途出错：{why.zh}")
            notes.append(broken)
        notes += walk.notes[:_NOTES]
        if (more := len(walk.notes) - _NOTES) > 0:
            notes.append(Said(f"{name}: more is damaged or beyond a limit: {more}", f"{name}：损坏或超出上限的还有 {more} 个"))
        notes += [_told_of(name, why, names) for why, names in left.items()]
        if count == before and not left and not walk.notes and not broken:
            notes.append(Said(f"{name}: holds no files", f"{name}：其中没有文件"))
        if broken or (not path.is_dir() and (walk.cut or count == before)):
            failed.append(path)
    if not count and not all(path.is_dir() for path in paths):
        names, why = ", ".join(map(_shown, paths)), Said("; ".join(notes[:2]), "；".join(note.zh for note in notes[:2]))
        raise ToolError(
            Said(f"{names}: must hold readable text, got none ({why})", f"{names}：其中没有可读的文本（{why.zh}）"), code="not-text"
        )


_BINARY = Said("left out, binary", "未读，二进制文件")
_LINK = Said("left out, a link or a device", "未读，链接或设备文件")
_OUTSIDE = Said("read under what is left of its name, which leads out of the archive", "名字指向归档之外，已按余下的名字读取")
_NOTHING = Said("cannot be read", "无法读取")  # the walk says why


def _told_of(place: str, why: Said, names: list[str]) -> Said:
    """What happened to the members of a path, of which the first are named."""
    short = [name.removeprefix(place).lstrip("/!") or name for name in names]
    if short == [place]:
        return Said(f"{place}: {why}", f"{place}：{why.zh}")
    shown, more = ", ".join(short[:_NAMED]), len(short) - _NAMED
    return Said(
        f"{place}: {why}: {shown}{f' and {more} more' if more > 0 else ''}",
        f"{place}：{why.zh}：{shown}{f' 等 {len(short)} 个' if more > 0 else ''}",
    )


def _shown(path: Path) -> str:
    """A path as it was given, or what can be shown of it."""
    name = str(path)
    return name if name.isprintable() else "/" * name.startswith("/") + plain(os.fsencode(name))[0]


def _left_out(member: Member) -> Said:
    """Why a member is no source; empty where it is one."""
    if member.closed:
        return Said(f"left out, {member.closed}", f"未读，{member.closed.zh}")
    if member.flow is None:
        return _LINK
    start = member.flow.peek(SNIFFED)
    return _NOTHING if not start and member.flow.broken else _BINARY if is_binary(start) else UNSAID


def _whole(flow: Flow) -> Iterator[bytes]:
    return iter(lambda: flow.read(BLOCK), b"")


def blocks(source: Source) -> Iterator[bytes]:
    """The source's text in clean blocks, each of whole lines."""
    rest, decoder = b"", None
    for piece in source.pieces:
        decoder = decoder or codecs.getincrementaldecoder(encoding_of(piece))("replace")
        data = rest + decoder.decode(piece).encode()
        cut = data.rfind(b"\n") + 1
        if not cut and len(data) < LONGEST:
            rest = data
            continue
        cut = cut or len(data) - data.endswith(b"\r")  # whose line end may come with the next piece
        rest = data[cut:]
        yield clean(data[:cut])
    if rest:
        yield clean(rest)
