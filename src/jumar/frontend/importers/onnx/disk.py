"""Model files on disk: their bytes, where they are regular files and fit into memory.

In: a path.  Out: bytes for file.py, which parses them, and for frontend/store.py, which knows them by their hash: a model from the cache is not parsed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from jumar.base import ImportFault


def available_memory() -> int:
    """Bytes that this process may still allocate: what the machine, its control group and its own limit leave, whichever is less."""
    found = [_meminfo(), *_cgroup(), *_rlimit()]
    return min(found) if found else 1 << 36


def _meminfo() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:  # not Linux
        return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) if hasattr(os, "sysconf") else 1 << 36
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), 1 << 36)


def _cgroup() -> Iterator[int]:
    for limit, used in (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")):
        try:
            yield max(int(Path("/sys/fs/cgroup", limit).read_text()) - int(Path("/sys/fs/cgroup", used).read_text()), 0)
        except (OSError, ValueError):  # no such control group, or "max"
            continue


def _rlimit() -> Iterator[int]:
    try:
        import resource  # noqa: PLC0415  (not on Windows)

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except (ImportError, OSError, ValueError):
        return
    if limit != resource.RLIM_INFINITY:
        yield max(limit - used, 0)


def read_path(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a model file; refused where it is no regular file or does not fit into memory."""
    name = os.fspath(path)
    try:
        status = os.stat(name)
    except OSError as error:
        raise ImportFault(
            f"{name}: file must exist and be readable, got {error.strerror}", hint=_siblings(name), code="file-missing"
        ) from error
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "no regular file"
        raise ImportFault(
            f"{name}: model must be a file, got {kind}", hint=_siblings(os.path.join(name, "model.onnx")), code="file-missing"
        )
    check_memory(name, status.st_size)
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise ImportFault(f"{name}: file must exist and be readable, got {error.strerror}", code="file-missing") from error


def _siblings(name: str) -> str:
    folder = Path(name).parent
    found = sorted(p.name for p in folder.glob("*.onnx"))[:5] if folder.is_dir() else []
    return f"in that folder: {', '.join(found)}" if found else ""


def check_memory(name: str, nbytes: int) -> None:
    """Refuses a model that is larger than the memory that is free."""
    free = available_memory()
    if nbytes > free:
        raise ImportFault(
            f"{name}: model must fit into memory, got {nbytes / 2**30:.2f} GiB of weights with {free / 2**30:.2f} GiB free",
            hint="close other programs, use a machine with more memory, or a quantised model", code="memory",
        )  # fmt: skip
