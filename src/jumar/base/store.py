"""A folder of byte strings named by the hash of what made them: the cache of object code and of programs.

In: `put(key, bytes)` from any thread and any process.  Out: `get(key)`, the bytes that were put, or None; a damaged,
half-written or foreign file counts as absent and is removed.  The least recently used entries go when the folder exceeds its cap.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from jumar.base.config import config

if TYPE_CHECKING:
    from jumar.base.types import Array

_Bytes = TypeVar("_Bytes", bytes, memoryview)

_MAGIC = b"JUMARST2"
_HEAD = 64  # magic, length, checksum, and zeros, so that a mapped body is aligned
_PAGE = 4096
_LARGE = 1 << 20
_SWEEP_EVERY_NBYTES = 256 << 20
_TOUCH_AFTER_S = 3600.0  # an entry that was read within the hour needs no newer time for the LRU order
_written: dict[Path, int] = {}
_writing: dict[Path, threading.Thread] = {}
_lock = threading.Lock()


class Store:
    """A cache folder.   Opening one touches nothing; the folder is made at the first `put`."""

    def __init__(self, folder: str | os.PathLike[str], cap_gb: float | None = None) -> None:
        self.folder = Path(folder)
        self.cap_gb = cap_gb

    def path(self, key: str) -> Path:
        """The file of a key (hex digits)."""
        return self.folder / key[:2] / key

    def get(self, key: str) -> bytes | None:
        """The bytes of `key`, or None."""
        path = self.path(key)
        self._settle(path)
        try:
            raw = path.read_bytes()
        except OSError:
            return None
        return self._whole(path, raw)

    def read_into(self, key: str, allocate: Callable[[int], Array]) -> memoryview | None:
        """The bytes of `key`, or None, in memory of the caller's kind, to be used where they lie: for entries of many megabytes.

        A mapped file would be there twice for as long as it is copied from, and its small pages read at two thirds of the speed of large ones.
        """
        path = self.path(key)
        self._settle(path)
        try:
            with path.open("rb", buffering=0) as file:
                raw = allocate(os.fstat(file.fileno()).st_size).data
                at = 0
                while at < len(raw):
                    count = file.readinto(raw[at:])
                    if not count:
                        return None
                    at += count
        except (OSError, ValueError):  # absent, or empty
            return None
        return self._whole(path, raw)

    def _whole(self, path: Path, raw: _Bytes) -> _Bytes | None:
        """The body of a file; one that is damaged or foreign is removed."""
        body = unseal(raw)
        with contextlib.suppress(OSError):
            if body is None:
                path.unlink()
            elif time.time() - path.stat().st_mtime > _TOUCH_AFTER_S:
                os.utime(path)
        return body

    def put(self, key: str, *parts: bytes | memoryview) -> None:
        """Keeps the bytes, given in one piece or in several.   A full or read-only disk is no error: the cache is then just not used."""
        path = self.path(key)
        temporary = path.with_name(f"{key}.{os.getpid()}.{threading.get_ident()}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                file.write(_header(*parts))
                file.writelines(parts)
            temporary.replace(path)  # no fsync: after a crash of the machine the checksum tells
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink()
            return
        with _lock:
            before = _written.get(self.folder, _SWEEP_EVERY_NBYTES)  # so that the first put of a process sweeps
            _written[self.folder] = before + sum(map(len, parts))
            due = _written[self.folder] >= _SWEEP_EVERY_NBYTES
            if due:
                _written[self.folder] = 0
        if due:
            self.sweep()

    def put_later(self, key: str, *parts: bytes | memoryview) -> None:
        """`put` beside whatever comes next: a hundred megabytes take half a second.   Whoever reads the key waits, and so does the end of the process.
        Small ones are written at once."""
        if sum(map(len, parts)) < _LARGE:
            self.put(key, *parts)
            return
        path = self.path(key)

        def write() -> None:
            try:
                self.put(key, *parts)
            finally:
                _writing.pop(path, None)

        _writing[path] = thread = threading.Thread(target=write, name="jumar-store")
        thread.start()

    def _settle(self, path: Path) -> None:
        writing = _writing.get(path)
        if writing is not None and writing.is_alive():
            writing.join()

    def sweep(self) -> None:
        """Removes the least recently used entries until the folder is under nine tenths of its cap, and old temporary files."""
        cap = int((config("cache_gb") if self.cap_gb is None else self.cap_gb) * (1 << 30))
        entries = []
        now = time.time()
        for path in self.folder.glob("??/*"):
            with contextlib.suppress(OSError):
                stat = path.stat()
                if path.suffix != ".tmp":
                    entries.append((stat.st_mtime, stat.st_size, path))
                elif now - stat.st_mtime > 600:
                    path.unlink()
        total = sum(size for _, size, _ in entries)
        if total <= cap:
            return
        for _, size, path in sorted(entries, key=lambda e: e[0]):
            if total <= cap * 0.9:
                break
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size


def seal(body: bytes) -> bytes:
    """The bytes behind a header that tells whether they are whole."""
    return _header(body) + body


def _header(*parts: bytes | memoryview) -> bytes:
    length = sum(map(len, parts))
    return b"".join((_MAGIC, length.to_bytes(8, "little"), checksum(*parts).to_bytes(4, "little"), b"\0" * (_HEAD - 20)))


def unseal(raw: _Bytes) -> _Bytes | None:
    """The bytes that were sealed, or None where anything differs."""
    if len(raw) < _HEAD or raw[:8] != _MAGIC or int.from_bytes(raw[8:16], "little") != len(raw) - _HEAD or any(raw[20:_HEAD]):
        return None
    body = raw[_HEAD:]
    return body if checksum(body) == int.from_bytes(raw[16:20], "little") else None


def checksum(*parts: bytes | memoryview) -> int:
    """crc32 of small bodies; of large ones, of the sums of their pages: ten times as quick, and any flipped bit, lost or moved page shows."""
    if sum(map(len, parts)) // _PAGE * _PAGE < _LARGE:
        crc = 0
        for part in parts:
            crc = zlib.crc32(part, crc)
        return crc
    sums: list[bytes] = []
    carry = b""  # the beginning of a page that ends in a later part
    for part in parts:
        missing = (_PAGE - len(carry)) % _PAGE
        carry, rest = carry + part[:missing], memoryview(part)[missing:]
        if len(carry) == _PAGE:
            sums.append(_page_sums(carry))
            carry = b""
        whole = len(rest) // _PAGE * _PAGE
        if whole:
            sums.append(_page_sums(rest[:whole]))
        carry += rest[whole:]
    return zlib.crc32(carry, zlib.crc32(b"".join(sums)))


def _page_sums(pages: bytes | memoryview) -> bytes:
    import numpy as np  # noqa: PLC0415  (a tenth of a second, which a command that keeps little does not wait for)

    sums: bytes = np.frombuffer(pages, np.uint64).reshape(-1, _PAGE // 8).sum(1, dtype=np.uint64).tobytes()
    return sums
