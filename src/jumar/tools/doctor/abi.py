"""What compiled parts ask of the system: the C library here, the newest GLIBCXX of a libstdc++, the versions that a library needs.

In: shared objects, read as bytes, never loaded.  Out: version texts for gather.py.
"""

from __future__ import annotations

import mmap
import os
import re
from pathlib import Path

LARGEST = 512 << 20  # a library beyond this is not read
_NAMES = re.compile(rb"GLIBC(XX)?_(\d+(?:\.\d+){1,2})\b")  # begins with plain letters: thirty times as fast as with \b
STDCXX = (
    "usr/lib/aarch64-linux-gnu/libstdc++.so.6",
    "usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "usr/lib64/libstdc++.so.6",
    "usr/lib/libstdc++.so.6",
)


def newest(file: Path) -> dict[str, str]:
    """The newest version of GLIBC and of GLIBCXX that a shared object names: what libstdc++ offers, or what any other needs."""
    found: dict[str, tuple[int, ...]] = {}
    try:
        with file.open("rb") as stream:
            if not 0 < os.fstat(stream.fileno()).st_size <= LARGEST:
                return {}
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
                if data[:4] != b"\x7fELF":
                    return {}
                for name in _NAMES.finditer(data):
                    if (before := data[name.start() - 1 : name.start()]).isalnum() or before == b"_":
                        continue
                    kind, number = "GLIBCXX" if name[1] else "GLIBC", tuple(int(part) for part in name[2].split(b"."))
                    found[kind] = max(found.get(kind, ()), number)
    except (OSError, ValueError):
        return {}
    return {kind: ".".join(map(str, number)) for kind, number in found.items()}


def glibc() -> str:
    """The C library's version, or an empty text where it is none of GNU's."""
    try:
        text = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        return ""
    return text.removeprefix("glibc ").strip()


def libstdcxx(root: Path, library_path: str) -> Path | None:
    """The libstdc++ that a program would load: on LD_LIBRARY_PATH first, then in the system's folders."""
    listed = [Path(folder) / "libstdc++.so.6" for folder in library_path.split(":") if folder.startswith("/")]
    return next((p for p in (*listed, *(root / place for place in STDCXX)) if os.path.isfile(p)), None)
