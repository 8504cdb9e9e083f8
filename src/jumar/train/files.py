"""Whole files or none: how the training room writes to disk.

In: a path and a function that writes.  Out: the file with all of its bytes, or the old one; a crash or a full disk at any moment leaves no half file.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

_PARTIAL = ".partial"


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to; when the block ends well it takes the place of `path` in one move, on disk before this returns."""
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}-{secrets.token_hex(4)}{_PARTIAL}")
    file = open(temporary, "xb")  # noqa: SIM115  (closed below, before the move)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        if os.path.exists(temporary):
            os.remove(temporary)
        raise
    sync_folder(folder)


def sync_folder(folder: str) -> None:
    """The names in a folder are on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sweep(folder: str) -> None:
    """Removes what a process that was killed left half-written: partial files of processes that are no more."""
    for name in os.listdir(folder):
        if not (name.startswith(".") and name.endswith(_PARTIAL)):
            continue
        owner = name.removesuffix(_PARTIAL).rsplit(".", 1)[-1].split("-")[0]
        if owner.isdigit() and not _alive(int(owner)):
            try:
                os.remove(os.path.join(folder, name))
            except FileNotFoundError:  # another process swept, too
                continue


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
