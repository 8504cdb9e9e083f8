"""What this process may open and write: device nodes, and the folders that the operator compiler and the logs need.

In: paths.  Out: the `Output` "access" for gather.py, read by checks/rights.py.  Nothing is opened: the kernel is asked with eaccess(2), which knows
of rights, read-only file systems and, for device nodes, the container's device cgroup (EPERM, where the file's rights would give EACCES).
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from jumar.tools.doctor.abi import glibc
from jumar.tools.doctor.machine import Output, Text

COMMAND = "access"
CLONE3 = 435  # the number of that call on x86_64 and aarch64
FOLDERS = ("HOME", "ASCEND_CACHE_PATH", "ASCEND_WORK_PATH", "ASCEND_PROCESS_LOG_PATH", "TMPDIR")


def rights(root: Path, nodes: Iterable[str], env: Mapping[str, str]) -> list[Output]:
    """One row for each node and each folder: `/dev/davinci0 rw: ok`, `HOME /root w: Read-only file system`."""
    rows = [f"{node} rw: {_asked(root / node.lstrip('/'), os.R_OK | os.W_OK)}" for node in nodes]
    for name, path in {"TMPDIR": "/tmp", **{n: env[n] for n in FOLDERS if env.get(n)}}.items():
        if path.startswith("/"):
            rows.append(f"{name} {path} w: {_asked(_nearest(root / path.lstrip('/')), os.W_OK)}")
    if root == Path("/") and (refused := _threads_refused()):
        rows.append(f"clone3: {refused}")
    return [Output(COMMAND, Text(COMMAND, "\n".join(rows)), 0)] if rows else []


def _threads_refused() -> str:
    """What seccomp says against clone3, empty where it may be called.   Arguments of no length start nothing: the kernel calls them invalid.

    Only where the C library starts threads with it (glibc 2.34 and later): there a profile that kills for it would have killed before.
    """
    libc = _libc()
    version = [int(part) for part in glibc().split(".")[:2] if part.isdigit()]
    if libc is None or sys.platform != "linux" or version < [2, 34]:
        return ""
    ctypes.set_errno(0)
    libc.syscall(ctypes.c_long(CLONE3), None, ctypes.c_size_t(0))
    return os.strerror(errno.EPERM) if ctypes.get_errno() == errno.EPERM else ""


def _nearest(folder: Path) -> Path:
    """The folder, or, where it is not there yet, the one that it would be made in."""
    return next((p for p in (folder, *folder.parents) if os.path.exists(p)), folder)


def _asked(path: Path, mode: int) -> str:
    """`ok`, or what the kernel says against it."""
    libc = _libc()
    if libc is None:
        return "ok" if os.access(path, mode) else "Permission denied"
    ctypes.set_errno(0)
    if libc.eaccess(os.fsencode(path), mode) == 0:
        return "ok"
    return os.strerror(ctypes.get_errno())


@cache
def _libc() -> ctypes.CDLL | None:
    """The C library, where it has eaccess."""
    try:
        found = ctypes.CDLL(None, use_errno=True)
        return found if found.eaccess else None
    except (OSError, AttributeError, TypeError):
        return None
