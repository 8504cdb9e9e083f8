"""Every file of a path: of a folder, of an archive, of archives in them to any sensible depth; nothing is unpacked on the disk, no link is followed.

In: a path or a stream.  Out: `Member`s one after the other, and notes, in words, on what is damaged or beyond a limit.  Both diagnose/sources.py and
doctor/archive.py stand on it.  What a file is its bytes say, not its name.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from jumar.base import UNSAID, Said, reason
from jumar.tools.files.flow import PIECE, Budget, Damage, Flow
from jumar.tools.files.member import Member, plain
from jumar.tools.files.tar import BLOCK, is_tar, tar_members
from jumar.tools.files.unfold import codec_of, unfolded, why_unread
from jumar.tools.files.zip import is_zip, zip_members

Progress = Callable[[int], None]
_PROGRAMS = (".whl", ".jar", ".egg", ".apk")  # zips of programs: their texts are no logs


@dataclass(frozen=True)
class Limits:
    """members: files of one path; unfolded: bytes that may come out of one compressed file; depth: archives within one another."""

    members: int = 20_000
    unfolded: int = 8 << 30
    depth: int = 5


class _Full(Exception):
    """There are more members than are read."""


class Walk:
    """A way through one path; it counts, so it changes.   notes: what was damaged or beyond a limit; cut: was anything?; full: were there too many files?"""

    def __init__(self, limits: Limits = Limits(), progress: Progress = lambda _: None) -> None:
        self.notes: list[Said] = []
        self.cut = False
        self.full = False
        self._limits = limits
        self._progress = progress
        self._count = 0
        self._at = ""

    def of(self, path: Path, name: str) -> Iterator[Member]:
        """The members of a folder or a file.   name: what theirs begin with; where it is empty, those of a folder or an archive begin with their own."""
        try:
            yield from self._folder(path, name) if path.is_dir() else self._file(path, name, named=True)
        except _Full:
            self.full = True
            self._note(self._most(name or plain(path.name)[0]))

    def of_stream(self, stream: BinaryIO, name: str) -> Iterator[Member]:
        """The members of what comes through a pipe."""
        try:
            yield from self._of_stream(stream, Member(name, stat.S_IFREG), name, named=True)
        except _Full:
            self.full = True
            self._note(self._most(name))

    def _most(self, name: str) -> Said:
        most = self._limits.members
        return Said(
            f"{name}: only the first {most:,} files of it were read, the most that are", f"{name}：只读了前 {most:,} 个文件（上限）"
        )

    def _note(self, text: Said) -> None:
        self.cut = True
        self.notes.append(text)

    def _folder(self, folder: Path, prefix: str) -> Iterator[Member]:
        """Depth first, in the order of names; with a stack of our own, since folders may be nested deeper than Python calls."""
        left = self._children(str(folder), prefix)
        while left:
            place, name = left.pop()
            try:
                status = os.lstat(place)
                if stat.S_ISDIR(status.st_mode):
                    left += self._children(place, name)
                elif stat.S_ISREG(status.st_mode):
                    yield from self._file(Path(place), name, named=False)
                else:
                    yield self._counted(Member(name, status.st_mode, str(status.st_uid), str(status.st_gid)))
            except OSError as error:
                yield self._counted(Member(name, stat.S_IFREG, closed=reason(error)))

    def _children(self, folder: str, name: str) -> list[tuple[str, str]]:
        """Paths and names of what a folder holds, the last one first."""
        children = sorted(os.listdir(folder))[: self._limits.members + 1]
        return [(os.path.join(folder, c), "/".join(filter(None, (name, plain(os.fsencode(c))[0])))) for c in reversed(children)]

    def _file(self, path: Path, name: str, *, named: bool) -> Iterator[Member]:
        with path.open("rb", buffering=0) as stream:
            member = Member(name or plain(path.name)[0], os.fstat(stream.fileno()).st_mode)
            yield from self._of_stream(stream, member, name, named=named)

    def _of_stream(self, stream: BinaryIO, member: Member, prefix: str, *, named: bool) -> Iterator[Member]:
        budget = Budget(self._limits.unfolded)
        self._at = ""

        def pieces() -> Iterator[bytes]:
            while data := stream.read(PIECE):
                budget.fed += len(data)
                self._progress(len(data))
                yield data

        yield from self._within(replace(member, flow=Flow(pieces())), prefix, budget, 0, named=named)
        if budget.over:
            at = Said(f" (left out from {self._at} on)", f"（从 {self._at} 起未读）") if self._at else UNSAID
            self._note(Said(f"{member.name}: {budget.over}{at}", f"{member.name}：{budget.over.zh}{at.zh}"))

    def _counted(self, member: Member) -> Member:
        self._count += 1
        if self._count > self._limits.members:
            raise _Full
        return member

    def _within(
        self, member: Member, prefix: str, budget: Budget, depth: int, *, named: bool = False, opened: bool = False
    ) -> Iterator[Member]:
        """A member, or what is in it.   prefix: of the names of what is in it; depth: archives around; named: by the user; opened: it was unfolded."""
        flow = member.flow
        if flow is None:
            yield self._counted(member)
            return
        start = flow.peek(BLOCK)
        codec = codec_of(start)
        packed = is_zip(start) or is_tar(start)
        if why := why_unread(start):
            yield self._counted(replace(member, closed=why))
        elif packed and not named and member.name.endswith(_PROGRAMS):
            yield self._counted(replace(member, closed=Said("a package of a program", "程序包")))
        elif (codec or (packed and not opened)) and depth >= self._limits.depth:
            most = self._limits.depth
            self._note(
                Said(
                    f"{member.name}: archives within archives are read {most} deep, this one is deeper",
                    f"{member.name}：归档嵌套超过 {most} 层，未读",
                )
            )
            yield self._counted(replace(member, closed=Said("too deep", "嵌套过深")))
        elif codec:
            inner = replace(member, flow=Flow(unfolded(flow, codec, budget), under=flow))
            yield from self._within(inner, prefix, budget, depth + 1, named=named, opened=True)
        elif packed:
            yield from self._archive(flow, member.name, prefix, budget, depth + (not opened))
        else:
            yield self._counted(member)
            self._tell(flow, member.name, budget)

    def _archive(self, flow: Flow, name: str, prefix: str, budget: Budget, depth: int) -> Iterator[Member]:
        entries = zip_members(flow, budget) if is_zip(flow.peek(BLOCK)) else tar_members(flow)
        inside = ""
        try:
            for entry in entries:
                inside = self._at = f"{prefix}!{entry.name}" if prefix else entry.name
                yield from self._within(replace(entry, name=inside), inside, budget, depth)
                if budget.over:
                    return
        except Damage as damage:
            flow.damage = flow.damage or damage.what
        if flow.damage and not (flow.under and flow.under.broken) and not budget.over:
            if inside and self.notes and self.notes[-1].startswith(f"{inside}: "):  # the same, seen from within
                self.notes.pop()
            at = Said(f", at {inside}", f"，位于 {inside}") if inside else UNSAID
            self._note(
                Said(
                    f"{name}: breaks off or is damaged{at}; what stands before was read ({flow.damage})",
                    f"{name}：不完整或已损坏{at.zh}；之前的部分已读（{flow.damage.zh}）",
                )
            )

    def _tell(self, flow: Flow, name: str, budget: Budget) -> None:
        """A note where a file is damaged that is no archive, told of the outermost flow."""
        if flow.damage and not (flow.under and flow.under.broken) and not budget.over:
            self._note(Said(f"{name}: read up to where it breaks off ({flow.damage})", f"{name}：只读到中断处（{flow.damage.zh}）"))


def is_packed(start: bytes) -> bool:
    """Does a file that begins so hold others, or unfold to one?"""
    return bool(codec_of(start) or why_unread(start)) or is_zip(start) or is_tar(start)
