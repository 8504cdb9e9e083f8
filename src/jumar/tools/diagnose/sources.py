"""What the user gives, as streams of clean blocks: files, folders, archives, compressed files, standard input; any encoding.

In: paths.  Out: `Opened`: `Source`s and notes on what was left out; `blocks` gives UTF-8 without colours, carriage returns and NULs, whole lines,
about BLOCK bytes at a time.  Archives are read where they are: nothing is written to disk, no path of theirs is opened, and a bomb is cut off.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import re
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, cast

from jumar.base import ToolError

BLOCK = 256 * 1024
LONGEST = 32 * 1024  # of one line: what stands behind is a line of its own
MOST_FILES = 20_000  # of a folder or an archive
MOST_NBYTES = 8 << 30  # that one compressed file may unfold to
_SNIFFED = 8192
_ANSI = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[@-_]|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]")
_DIRTY = bytes((*range(9), *range(11, 32), 127))  # all that no line holds but for its end
_CONTROL = bytes(c for c in range(32) if c not in (8, 9, 10, 12, 13, 27))
_DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError)
_OPENERS: dict[bytes, Callable[[BinaryIO], IO[bytes]]] = {
    b"\x1f\x8b": lambda raw: cast("IO[bytes]", gzip.GzipFile(fileobj=raw)),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}


@dataclass(frozen=True)
class Source:
    """A stream of bytes with the name that the user knows.   nbytes: its size, 0 where that is unknown; damage: why it could not be read to its end."""

    name: str
    open: Callable[[], IO[bytes]]
    nbytes: int = 0
    damage: list[str] = field(default_factory=list, compare=False)


@dataclass(frozen=True)
class Opened:
    """Streams, and what was left out and why, in words."""

    sources: tuple[Source, ...]
    notes: tuple[str, ...] = ()


def source_of_text(name: str, text: str) -> Source:
    data = text.encode("utf-8", "replace")
    return Source(name, lambda: BytesIO(data), len(data))


def opened(paths: tuple[Path, ...]) -> Opened:
    """Every stream that the paths give, `-` for standard input; raises ToolError where a path that was named gives none."""
    sources: list[Source] = []
    notes: list[str] = []
    for path in paths:
        if str(path) == "-":
            sources.append(Source("stdin", _stdin))
        elif path.is_dir():
            sources += _folder(path, notes)
        elif path.exists() and not path.is_file():  # a pipe, a device: it can be read once only, so nobody looks first
            sources.append(Source(str(path), partial(_plain, path)))
        else:
            found = _file(path, notes)
            if not found:
                raise ToolError(f"{path}: file must be text or an archive of texts, got binary data", code="not-text")
            sources += found
    return Opened(tuple(sources), tuple(notes))


def _stdin() -> IO[bytes]:
    if sys.stdin is None:
        raise ToolError("-: standard input must be open, got none", hint="jumar diagnose FILE", code="not-text")
    return sys.stdin.buffer


def _folder(folder: Path, notes: list[str]) -> list[Source]:
    """The texts of a folder, in the order of their names; links are not followed."""
    try:
        next(folder.iterdir(), None)
    except OSError as error:
        raise ToolError(f"{folder}: folder must be readable, got {error.strerror}", code="file-missing") from error
    found: list[Source] = []
    binary = unreadable = 0
    for count, path in enumerate(sorted(_walk(folder))):
        if count >= MOST_FILES:
            notes.append(f"{folder}: only the first {MOST_FILES:,} files were read")
            break
        try:
            sources = _file(path, notes)
        except ToolError:
            unreadable += 1
            continue
        binary += not sources
        found += sources
    if binary:
        notes.append(f"{folder}: {binary} binary files were left out")
    if unreadable:
        notes.append(f"{folder}: {unreadable} files could not be read")
    return found


def _walk(folder: Path) -> Iterator[Path]:
    try:
        children = list(folder.iterdir())
    except OSError:
        return
    for path in children:
        if path.is_symlink():
            continue
        if path.is_dir():
            yield from _walk(path)
        elif path.is_file():
            yield path


def _file(path: Path, notes: list[str]) -> list[Source]:
    """The streams of one file: itself, what it unfolds to, or the members of an archive; none where it is binary."""
    try:
        with path.open("rb") as stream:
            start = stream.read(_SNIFFED)
        nbytes = path.stat().st_size
    except OSError as error:
        raise ToolError(f"{path}: file must be readable, got {error.strerror}", code="file-missing") from error
    name = str(path)
    if start.startswith(b"PK\x03\x04"):
        return _zip(path, notes)
    if opener := _opener(start):
        try:
            with path.open("rb") as raw, opener(raw) as inner:
                start = _some(inner, _SNIFFED)
        except _DAMAGE as error:
            raise ToolError(f"{path}: compressed file must be whole, got {error}", code="not-text") from error
        if _is_tar(start):
            return _tar(path, notes)
        return [] if is_binary(start) else [Source(name, partial(_unfolded, path, opener))]
    if _is_tar(start):
        return _tar(path, notes)
    return [] if is_binary(start) else [Source(name, partial(_plain, path), nbytes)]


def _plain(path: Path) -> IO[bytes]:
    return path.open("rb")


def _some(stream: IO[bytes], nbytes: int) -> bytes:
    """What a stream has at once: of a compressed file that breaks off, what stands before the break."""
    return stream.read1(nbytes) if isinstance(stream, (gzip.GzipFile, bz2.BZ2File, lzma.LZMAFile)) else stream.read(nbytes)


def _opener(start: bytes) -> Callable[[BinaryIO], IO[bytes]] | None:
    return next((opener for magic, opener in _OPENERS.items() if start.startswith(magic)), None)


def _unfolded(path: Path, opener: Callable[[BinaryIO], IO[bytes]]) -> IO[bytes]:
    return opener(path.open("rb"))


def _is_tar(start: bytes) -> bool:
    return start[257:262] == b"ustar"


def is_binary(start: bytes) -> bool:
    """Do the first bytes of a file look like no text?

    >>> is_binary(b"\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00"), is_binary("错误 error".encode("gb18030")), is_binary(b"")
    (True, False, False)
    """
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return False
    if start.startswith((b"\x7fELF", b"\x93NUMPY", b"\x89PNG", b"%PDF", b"SQLite")):
        return True
    control = len(start) - len(start.translate(None, _CONTROL))
    return control > max(8, 0.02 * len(start))  # a log has a stray bell or NUL at times


def _tar(path: Path, notes: list[str]) -> list[Source]:
    """The texts of a tar archive, read into memory one by one while there is room, since a compressed one cannot be entered in the middle."""
    found: list[Source] = []
    room, kept, binary = MOST_NBYTES, 0, 0
    try:
        with tarfile.open(path, "r|*") as archive:
            for count, member in enumerate(archive):
                if count >= MOST_FILES or room < 0:
                    notes.append(f"{path}: only its first {count:,} members were read")
                    break
                if not member.isfile() or not (stream := archive.extractfile(member)):
                    continue
                room -= member.size
                start = stream.read(_SNIFFED)
                name = f"{path}!{PurePosixPath(member.name)}"
                if is_binary(start):
                    binary += 1
                elif kept + member.size <= _IN_MEMORY:
                    kept += member.size
                    data = start + stream.read()
                    found.append(Source(name, partial(BytesIO, data), len(data)))
                else:
                    found.append(Source(name, partial(_tar_member, path, member.name), member.size))
    except (OSError, EOFError, tarfile.TarError, lzma.LZMAError) as error:
        if not found:
            raise ToolError(f"{path}: archive must be whole, got {error}", code="not-text") from error
        notes.append(f"{path}: damaged after {len(found)} files ({error})")
    if binary:
        notes.append(f"{path}: {binary} binary members were left out (archives within it are not opened)")
    return found or [source_of_text(str(path), "")]


_IN_MEMORY = 64 << 20  # bytes of an archive's members that are kept; for the others it is read once more


def _tar_member(path: Path, name: str) -> IO[bytes]:
    archive = tarfile.open(path, "r|*")  # noqa: SIM115  (lives as long as the stream)
    for member in archive:
        if member.name == name and (stream := archive.extractfile(member)):
            return stream
    return BytesIO()


def _zip(path: Path, notes: list[str]) -> list[Source]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.infolist() if not m.is_dir()]
            locked = sum(bool(m.flag_bits & 1) for m in members)
            names = []
            for member in members[:MOST_FILES]:
                if member.flag_bits & 1:
                    continue
                with archive.open(member) as stream:
                    if not is_binary(stream.read(_SNIFFED)):
                        names.append((member.filename, member.file_size))
    except (OSError, EOFError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise ToolError(f"{path}: archive must be whole, got {error}", code="not-text") from error
    if locked:
        notes.append(f"{path}: {locked} members need a password and were left out")
    if left := len(members) - locked - len(names):
        notes.append(f"{path}: {left} binary members were left out (archives within it are not opened)")
    return [Source(f"{path}!{name}", partial(_zip_member, path, name), nbytes) for name, nbytes in names] or [source_of_text(str(path), "")]


def _zip_member(path: Path, name: str) -> IO[bytes]:
    return zipfile.ZipFile(path).open(name)


def blocks(source: Source) -> Iterator[bytes]:
    """The source's text in clean blocks, each of whole lines."""
    rest, decoder = b"", None
    for chunk in _chunks(source):
        decoder = decoder or codecs.getincrementaldecoder(encoding_of(chunk))("replace")
        data = rest + decoder.decode(chunk).encode()
        cut = data.rfind(b"\n") + 1
        if not cut and len(data) < LONGEST:
            rest = data
            continue
        cut = cut or len(data) - data.endswith(b"\r")  # whose line end may come with the next chunk
        rest = data[cut:]
        yield _clean(data[:cut])
    if rest:
        yield _clean(rest)


def _chunks(source: Source) -> Iterator[bytes]:
    """The stream's bytes as they come, up to where it is damaged."""
    left = MOST_NBYTES
    try:
        with source.open() as stream:
            while left > 0 and (chunk := _some(stream, BLOCK)):
                left -= len(chunk)
                yield chunk
    except _DAMAGE as error:
        source.damage.append(str(error) or type(error).__name__)


def text_of(raw: bytes) -> str | None:
    """A whole file as clean text, or None where it is binary."""
    if is_binary(raw[:_SNIFFED]):
        return None
    return _clean(raw.decode(encoding_of(raw[:BLOCK]), "replace").encode("utf-8", "replace")).decode()


def encoding_of(start: bytes) -> str:
    """The encoding that the first bytes of a text speak for.

    >>> encoding_of("错误".encode()), encoding_of("错误：驱动".encode("gbk")), encoding_of(b"plain")
    ('utf-8', 'gb18030', 'utf-8')
    """
    for mark, name in ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")):
        if start.startswith(mark):
            return name
    for name in ("utf-8", "gb18030"):
        try:
            codecs.getincrementaldecoder(name)().decode(start)
        except UnicodeDecodeError:
            continue
        return name
    return "utf-8"


def _clean(block: bytes) -> bytes:
    """A block without what only terminals understand.   Progress bars (`\\r`) become lines."""
    if len(block.translate(None, _DIRTY)) == len(block):  # quicker than a search
        return block
    return _ANSI.sub(b"", block.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))
