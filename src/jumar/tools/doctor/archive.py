"""Reads a folder or an archive as named texts: bounded in size and count, links are never followed, nothing is unpacked on disk.

In: a path (a folder, an archive of any form that files/walk.py reads, archives in them, or one text file).  Out: (name, text) pairs for foreign.py,
and notes on what was left out.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from pathlib import Path

from jumar.base import Said, ToolError, reason
from jumar.tools.doctor.recognise import WHAT_TO_COPY
from jumar.tools.files.flow import sized
from jumar.tools.files.member import Member
from jumar.tools.files.text import text_of
from jumar.tools.files.walk import Limits, Walk, is_packed

MOST_MEMBERS = 20_000
MOST_OF_ONE = 32 << 20  # bytes of one file; the rest is left, with a note
MOST_OF_ALL = 256 << 20  # bytes of text that are kept
MOST_UNPACKED = 1 << 30  # bytes that may come out of an archive: beyond it is a bomb
_BINARY = (".so", ".o", ".om", ".ckpt", ".safetensors", ".pyc", ".whl", ".run", ".png", ".jpg", ".pt", ".pth", ".bin", ".mindir", ".onnx")

_NOT_TEXT = Said("binary, not read", "二进制文件，未读")


@dataclass
class Shelf:
    """What was read so far; mutable, since it is the buffer that the reader fills.

    names: of all files, read or not; nodes: of device files, with mode, owner and group as ls prints them; cut: was something damaged or beyond a limit?
    """

    texts: list[tuple[str, str]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    nodes: list[tuple[str, str, str, str]] = field(default_factory=list)
    notes: list[Said] = field(default_factory=list)
    kept: int = 0
    cut: bool = False

    def take(self, member: Member, path: Path) -> None:
        """Reads one file, where it may be a text."""
        if member.outside:
            self._note(member.outside, Said("its name leads out of the archive, left out", "名字指向归档之外，未读"))
            return
        self.names.append(member.name)
        if member.is_node:
            self.nodes.append((member.name, stat.filemode(member.mode), member.owner, member.group))
        elif member.closed:
            self._note(member.name, Said(f"not read: {member.closed}", f"未读：{member.closed.zh}"))
        elif member.flow is None:
            self._note(member.name, Said("not a text file, left out", "不是文本文件，未读"))
        elif member.name.endswith(_BINARY):
            self._note(member.name, _NOT_TEXT)
        else:
            most = self._room(path)
            raw = member.flow.read(most)
            text = text_of(raw)
            if text is None:
                self._note(member.name, _NOT_TEXT)
            elif text.strip():
                self.texts.append((member.name, text))
                self.kept += len(raw)
            if len(raw) == most and member.flow.some(1):
                self._note(member.name, Said(f"only its first {sized(most)} were read", f"只读了前 {sized(most)}"))

    def _note(self, name: str, what: Said) -> None:
        self.notes.append(Said(f"{name}: {what}", f"{name}：{what.zh}"))

    def _room(self, path: Path) -> int:
        """Bytes that one more file may have."""
        left = MOST_OF_ALL - self.kept
        if left <= 0:
            raise ToolError(
                Said(
                    f"{path.name or path}: texts must have at most {sized(MOST_OF_ALL)} together, got more",
                    f"{path.name or path}：文本合计不能超过 {sized(MOST_OF_ALL)}",
                ),
                hint=Said("leave out the big logs and read them with `jumar diagnose LOG`", "去掉大的日志，用 jumar diagnose LOG 单独查看"),
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
        why = reason(error)
        raise ToolError(
            Said(f"{path}: must be readable, got {why}", f"{path}：无法读取：{why.zh}"),
            hint=Said("check the path and its permissions", "检查路径和权限"),
            code="doctor-from",
        ) from error
    if walk.full:
        raise ToolError(
            Said(
                f"{path.name or path}: must hold at most {MOST_MEMBERS} files, got more",
                f"{path.name or path}：文件不能超过 {MOST_MEMBERS} 个",
            ),
            hint=WHAT_TO_COPY,
            code="doctor-from",
        )
    shelf.cut = walk.cut
    shelf.notes = [*walk.notes, *shelf.notes]
    shelf.texts.sort()
    if not shelf.texts and not shelf.nodes:
        got = shelf.notes[0] if shelf.notes else Said("nothing", "没有文件")
        raise ToolError(
            Said(f"{path.name or path}: must hold text files, got {got}", f"{path.name or path}：其中没有可读的文本文件（{got.zh}）"),
            hint=WHAT_TO_COPY,
            code="doctor-from",
        )
    return shelf


def _check(path: Path) -> None:
    """Refuses what is no folder and no file, and a log that is too long to be kept."""
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        return
    if not stat.S_ISREG(status.st_mode):
        raise ToolError(
            Said(
                f"{path.name}: must be a folder, an archive or a text file, got something else", f"{path.name}：必须是目录、归档或文本文件"
            ),
            code="doctor-from",
        )
    with path.open("rb") as stream:
        if status.st_size > MOST_OF_ONE and not is_packed(stream.read(512)):
            raise ToolError(
                Said(
                    f"{path.name}: a single text must have at most {sized(MOST_OF_ONE)}, got {sized(status.st_size)}",
                    f"{path.name}：单个文本不能超过 {sized(MOST_OF_ONE)}，实际为 {sized(status.st_size)}",
                ),
                hint=Said(f"it is a log: jumar diagnose {path.name}", f"这是日志：jumar diagnose {path.name}"),
                code="doctor-from",
            )
