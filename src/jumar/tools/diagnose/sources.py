"""What the user gives, as streams of clean blocks: files, folders, standard input, compressed files and archives; any encoding.

In: paths.  Out: `Source`s; `blocks` gives UTF-8 without colours, carriage returns and NULs, whole lines, at most BLOCK bytes at a time.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from jumar.base import ToolError

BLOCK = 256 * 1024
LONGEST = 32 * 1024  # of one line: what stands behind is not looked at
_ANSI = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-_]|[\x00\x07\x08]")


@dataclass(frozen=True)
class Source:
    """A stream of bytes with the name that the user knows.   nbytes: its size, 0 where that is unknown."""

    name: str
    open: Callable[[], BinaryIO]
    nbytes: int = 0


def source_of_text(name: str, text: str) -> Source:
    data = text.encode("utf-8", "replace")
    return Source(name, lambda: BytesIO(data), len(data))


def source_of_file(path: Path) -> Source:
    try:
        size = path.stat().st_size
    except OSError as error:
        raise ToolError(f"diagnose: file must be readable, got {path}: {error.strerror}", code="file-missing") from error
    return Source(str(path), lambda: path.open("rb"), size)


def blocks(source: Source) -> Iterator[bytes]:
    """The source's text in clean blocks."""
    with source.open() as stream:
        rest, decoder = b"", None
        while chunk := stream.read(BLOCK):
            if decoder is None:
                decoder = codecs.getincrementaldecoder(_encoding(chunk))("replace")
            text = decoder.decode(chunk)
            data = rest + text.encode()
            cut = data.rfind(b"\n") + 1
            if not cut and len(data) < LONGEST:
                rest = data
                continue
            cut = cut or len(data)
            rest = data[cut:]
            yield _clean(data[:cut])
        if rest:
            yield _clean(rest)


def _encoding(start: bytes) -> str:
    """The encoding that the first bytes speak for."""
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
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\x1b" in block or b"\x00" in block or b"\x08" in block or b"\x07" in block:
        block = _ANSI.sub(b"", block)
    return block
