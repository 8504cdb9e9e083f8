"""One file as a reader gives it: its name, mode and owner, and its bytes.

In: what a folder, a tar or a zip says of it.  Out: `Member`; `plain` makes a name that can be shown and leads nowhere.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass

from jumar.base import UNSAID, Said
from jumar.tools.files.flow import Flow

_LONGEST = 400  # characters of a name


@dataclass(frozen=True)
class Member:
    """A file, a link, a device node.   mode: as stat has it, with the kind; closed: why it is not read, empty where it can be.

    outside: its own name where that leads out of the archive; flow: its bytes, to be read before the next member is asked for.
    """

    name: str
    mode: int
    owner: str = ""
    group: str = ""
    flow: Flow | None = None
    closed: Said = UNSAID
    outside: str = ""

    @property
    def is_node(self) -> bool:
        return stat.S_ISCHR(self.mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)


def plain(name: bytes | str) -> tuple[str, str]:
    """A name without what only terminals understand and without a way out of where it stands; and the whole of it where it had one.

    >>> plain("/etc/hccn.conf"), plain("a/../../b"), plain("日志.log".encode("gbk")), plain("run\\x1b[2J.log")
    (('etc/hccn.conf', ''), ('a/b', 'a/../../b'), ('日志.log', ''), ('run?[2J.log', ''))
    """
    text = name if isinstance(name, str) else _decoded(name)
    parts = [p for p in text.replace("\\", "/").split("/") if p not in ("", ".")]
    return _shown("/".join(p for p in parts if p != "..")), _shown(text) if ".." in parts else ""


def _shown(name: str) -> str:
    shown = "".join(c if c.isprintable() else "?" for c in name)
    return (shown if len(shown) <= _LONGEST else f"{shown[:40]}…{shown[41 - _LONGEST :]}") or "?"


def _decoded(name: bytes) -> str:
    for encoding in ("utf-8", "gb18030"):
        try:
            return name.decode(encoding)
        except UnicodeDecodeError:
            continue
    return name.decode("latin-1")
