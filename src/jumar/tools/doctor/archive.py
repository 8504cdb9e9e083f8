"""Reads a folder or an archive as named texts: bounded in size and count, links are never followed, nothing is unpacked on disk.

In: a path (a folder, an archive of any form that files/walk.py reads, archives in them, or one text file).  Out: (name, text) pairs for foreign.py,
and notes on what was left out.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from pathlib import Path

from jumar.base import ToolError
from jumar.tools.files.flow import sized
from jumar.tools.files.member import Member
from jumar.tools.files.text import text_of
from jumar.tools.files.walk import Limits, Walk, is_packed

MOST_MEMBERS = 20_000
MOST_OF_ONE = 32 << 20  # bytes of one file; the rest is left, with a note
MOST_OF_ALL = 256 << 20  # bytes of text that are kept
MOST_UNPACKED = 1 << 30  # bytes that may come out of an archive: beyond it is a bomb
_BINARY = (".so", ".o", ".om", ".ckpt", ".safetensors", ".pyc", ".whl", ".run", ".png", ".jpg", ".pt", ".pth", ".bin", ".mindir", ".onnx")


@dataclass
class Shelf:
    """What was read so far; mutable, since it is the buffer that the reader fills.

    names: of all files, read or not; nodes: of device files, with mode, owner and group as ls prints them; cut: was something damaged or beyond a limit?
    """

    texts: list[tuple[str, str]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    nodes: list[tuple[str, str, str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    kept: int = 0
    cut: bool = False

    def take(self, member: Member, path: Path) -> None:
        """Reads one file, where it may be a text."""
        if member.outside:
            self.notes.append(f"{member.outside}: its name leads out of the archive, left out")
            return
        self.names.append(member.name)
        if member.is_node:
            self.nodes.append((member.name, stat.filemode(member.mode), member.owner, member.group))
        elif member.closed:
            self.notes.append(f"{member.name}: not read: {member.closed}")
        elif member.flow is None:
            self.notes.append(f"{member.name}: not a text file, left out")
        elif member.name.endswith(_BINARY):
            self.notes.append(f"{member.name}: binary, not read")
        else:
            most = self._room(path)
            raw = member.flow.read(most)
            text = text_of(raw)
            if text is None:
                self.notes.append(f"{member.name}: binary, not read")
            elif text.strip():
                self.texts.append((member.name, text))
                self.kept += len(raw)
            if len(raw) == most and member.flow.some(1):
                self.notes.append(f"{member.name}: only its first {sized(most)} were read")

    def _room(self, path: Path) -> int:
        """Bytes that one more file may have."""
        left = MOST_OF_ALL - self.kept
        if left <= 0:
            raise ToolError(
                f"{path.name or path}: texts must have at most {sized(MOST_OF_ALL)} together, got more",
                hint="leave out the big logs and read them with `jumar diagnose LOG`",
                code="doctor-from",
            )
        return min(left, MOST_OF_ONE)


def read(path: Path) -> Shelf:
    """Every text below a folder or in an archive, in order of the names."""
    walk = Walk(Limits(MOST_MEMBERS, MOST_UNPACKED))
    shelf = Shelf()
    try:
        _check(path)
        for member in walk.of(path, ""):
            shelf.take(member, path)
    except OSError as error:
        raise ToolError(
            f"{path}: must be readable, got {error.strerror or error}", hint="check the path and its permissions", code="doctor-from"
        ) from error
    if walk.full:
        raise ToolError(
            f"{path.name or path}: must hold at most {MOST_MEMBERS} files, got more",
            hint="copy the files that docs/field/doctor.md lists",
            code="doctor-from",
        )
    shelf.cut = walk.cut
    shelf.notes = [*walk.notes, *shelf.notes]
    shelf.texts.sort()
    if not shelf.texts and not shelf.nodes:
        what = shelf.notes[0] if shelf.notes else "nothing"
        raise ToolError(
            f"{path.name or path}: must hold text files, got {what}", hint="docs/field/doctor.md lists what to copy", code="doctor-from"
        )
    return shelf


def _check(path: Path) -> None:
    """Refuses what is no folder and no file, and a log that is too long to be kept."""
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        return
    if not stat.S_ISREG(status.st_mode):
        raise ToolError(f"{path.name}: must be a folder, an archive or a text file, got something else", code="doctor-from")
    with path.open("rb") as stream:
        if status.st_size > MOST_OF_ONE and not is_packed(stream.read(512)):
            raise ToolError(
                f"{path.name}: a single text must have at most {sized(MOST_OF_ONE)}, got {sized(status.st_size)}",
                hint=f"it is a log: jumar diagnose {path.name}",
                code="doctor-from",
            )
