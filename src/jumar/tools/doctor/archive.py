"""Reads a folder or an archive as named texts: bounded in size and count, links are never followed, nothing is unpacked on disk.

In: a path (folder, tar, tar.gz, tar.bz2, tar.xz, zip, or one text file).  Out: (name, text) pairs for foreign.py, and notes on what was left out.
"""

from __future__ import annotations

import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from jumar.base import ToolError
from jumar.tools.diagnose.sources import text_of

MOST_MEMBERS = 20_000
MOST_OF_ONE = 32 << 20  # bytes of one file; the rest is left, with a note
MOST_OF_ALL = 256 << 20  # bytes of text that are kept
MOST_UNPACKED = 1 << 30  # bytes that may come out of an archive: beyond it is a bomb
_BINARY = (".so", ".o", ".om", ".ckpt", ".safetensors", ".pyc", ".whl", ".run", ".png", ".jpg", ".pt", ".pth", ".bin", ".mindir", ".onnx")


@dataclass
class Shelf:
    """What was read so far; mutable, since it is the buffer that the readers fill.

    names: of all files, read or not; nodes: of device files, with mode, owner and group as ls prints them.
    """

    texts: list[tuple[str, str]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    nodes: list[tuple[str, str, str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    kept: int = 0
    seen: int = 0

    def add(self, name: str, raw: bytes, cut: bool) -> None:
        text = text_of(raw)
        if text is None:
            self.notes.append(f"{name}: binary, not read")
        elif text.strip():
            self.texts.append((name, text))
            self.kept += len(raw)
        if cut:
            self.notes.append(f"{name}: only its first {MOST_OF_ONE >> 20} MB were read")

    def count(self, path: Path) -> None:
        self.seen += 1
        if self.seen > MOST_MEMBERS:
            raise ToolError(
                f"{path.name or path}: must hold at most {MOST_MEMBERS} files, got more",
                hint="copy the files that docs/field/doctor.md lists",
                code="doctor-from",
            )

    def room(self, path: Path) -> int:
        """Bytes that one more file may have."""
        left = MOST_OF_ALL - self.kept
        if left <= 0:
            raise ToolError(
                f"{path.name}: texts must have at most {MOST_OF_ALL >> 20} MB together, got more",
                hint="leave out the big logs and read them with `jumar diagnose LOG`",
                code="doctor-from",
            )
        return min(left, MOST_OF_ONE)


def read(path: Path) -> Shelf:
    """Every text below a folder or in an archive, in order of the names."""
    shelf = Shelf()
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            _folder(path, shelf)
        elif not stat.S_ISREG(status.st_mode):
            raise ToolError(f"{path.name}: must be a folder, an archive or a text file, got something else", code="doctor-from")
        elif zipfile.is_zipfile(path):
            _zip(path, shelf)
        elif _is_tar(path):
            _tar(path, shelf)
        elif status.st_size > MOST_OF_ONE:
            raise ToolError(
                f"{path.name}: a single text must have at most {MOST_OF_ONE >> 20} MB, got {status.st_size >> 20}",
                hint=f"it is a log: jumar diagnose {path.name}",
                code="doctor-from",
            )
        else:
            _file(path, path.name, shelf)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ToolError(
            f"{path.name}: must be a whole archive, got one that breaks off or is damaged ({error})",
            hint="copy it again",
            code="doctor-from",
        ) from error
    except OSError as error:
        raise ToolError(
            f"{path}: must be readable, got {error.strerror or error}", hint="check the path and its permissions", code="doctor-from"
        ) from error
    if not shelf.texts and not shelf.nodes:
        what = shelf.notes[0] if shelf.notes else "nothing"
        raise ToolError(
            f"{path.name or path}: must hold text files, got {what}", hint="docs/field/doctor.md lists what to copy", code="doctor-from"
        )
    return shelf


def _folder(path: Path, shelf: Shelf) -> None:
    def refuse(error: OSError) -> None:
        shelf.notes.append(f"{error.filename}: {error.strerror}")

    os.listdir(path)  # its own permission is an error, a folder's below it a note
    for folder, folders, names in os.walk(path, onerror=refuse, followlinks=False):
        folders.sort()
        for base in sorted(names):
            file = Path(folder) / base
            shelf.count(path)
            name = str(file.relative_to(path))
            shelf.names.append(name)
            try:
                status = file.lstat()
                if stat.S_ISCHR(status.st_mode):
                    shelf.nodes.append((name, stat.filemode(status.st_mode), str(status.st_uid), str(status.st_gid)))
                elif stat.S_ISREG(status.st_mode):
                    _file(file, name, shelf)
            except OSError as error:
                shelf.notes.append(f"{name}: {error.strerror or error}")


def _file(file: Path, name: str, shelf: Shelf) -> None:
    if name.endswith(_BINARY):
        shelf.notes.append(f"{name}: binary, not read")
        return
    most = shelf.room(file)
    with file.open("rb") as stream:
        raw = stream.read(most)
        shelf.add(name, raw, bool(stream.read(1)))


def _is_tar(path: Path) -> bool:
    try:
        with path.open("rb") as file, tarfile.open(fileobj=file, mode="r|*"):
            return True
    except (tarfile.TarError, EOFError, zlib.error):
        return False


def _members(archive: tarfile.TarFile, path: Path) -> Iterator[tarfile.TarInfo]:
    """Members, as long as what has come out of the archive stays within bounds (headers lie; positions do not)."""
    for member in archive:
        if archive.offset > MOST_UNPACKED or member.size > MOST_UNPACKED:
            raise ToolError(
                f"{path.name}: must unpack to at most {MOST_UNPACKED >> 30} GB, got more: it may be an archive bomb",
                hint="unpack it by hand if you trust it, and give the folder",
                code="doctor-from",
            )
        yield member


def _tar(path: Path, shelf: Shelf) -> None:
    with path.open("rb") as file, tarfile.open(fileobj=file, mode="r|*") as archive:
        for member in _members(archive, path):
            shelf.count(path)
            name = _safe(member.name)
            if name is not None and not member.isdir():
                shelf.names.append(name)
            if name is not None and member.ischr():
                mode = stat.filemode(stat.S_IFCHR | member.mode)
                shelf.nodes.append((name, mode, member.uname or str(member.uid), member.gname or str(member.gid)))
                continue
            if not member.isreg() or name is None or name.endswith(_BINARY):
                if not member.isdir():
                    shelf.notes.append(f"{member.name[:200]}: not a text file, left out")
                continue
            most = shelf.room(path)
            stream = archive.extractfile(member)
            if stream is not None:
                raw = stream.read(most)
                if len(raw) < min(member.size, most):
                    raise tarfile.ReadError("unexpected end of data")
                shelf.add(name, raw, member.size > most)
    shelf.texts.sort()


def _zip(path: Path, shelf: Shelf) -> None:
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if sum(m.file_size for m in members) > MOST_UNPACKED:
            raise ToolError(
                f"{path.name}: must unpack to at most {MOST_UNPACKED >> 30} GB, got more: it may be an archive bomb",
                hint="unpack it by hand if you trust it, and give the folder",
                code="doctor-from",
            )
        for member in members:
            shelf.count(path)
            name = _safe(member.filename)
            if member.is_dir():
                continue
            shelf.names += [name] if name else []
            if name is None or name.endswith(_BINARY) or member.flag_bits & 1 or stat.S_ISLNK(member.external_attr >> 16):
                shelf.notes.append(f"{member.filename[:200]}: not a text file, left out")
                continue
            most = shelf.room(path)
            with archive.open(member) as stream:
                raw = stream.read(most)
                shelf.add(name, raw, bool(stream.read(1)))
    shelf.texts.sort()


def _safe(name: str) -> str | None:
    """A member's name without leading slashes, or None where it leads out of the archive."""
    parts = [p for p in name.replace("\\", "/").split("/") if p not in ("", ".")]
    return None if ".." in parts or not parts else "/".join(parts)
