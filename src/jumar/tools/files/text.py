"""Bytes as text: is it text at all, in which encoding, and what of it is meant for terminals only.

In: bytes of a file.  Out: clean UTF-8 or a `str`, for diagnose/sources.py and the doctor.
"""

from __future__ import annotations

import codecs
import re

SNIFFED = 8192  # bytes that say whether a file is text
_OF_ENCODING = 256 << 10  # bytes that say in which encoding
_ANSI = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[@-_]|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]")
_DIRTY = bytes((*range(9), *range(11, 32), 127))  # all that no line holds but for its end
_WIDE = ("utf-16-le", "utf-16-be")  # written without a mark, by tools of Windows
_CONTROL = bytes(c for c in range(32) if c not in (8, 9, 10, 12, 13, 27))
_NO_CHARACTER = frozenset((*map(chr, _CONTROL), "\ufffd"))


def is_binary(start: bytes) -> bool:
    """Do the first bytes of a file look like no text?

    >>> is_binary(b"\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00"), is_binary("错误 error".encode("gb18030")), is_binary(b"")
    (True, False, False)
    """
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return False
    if start.startswith((b"\x7fELF", b"\x93NUMPY", b"\x89PNG", b"%PDF", b"SQLite")):
        return True
    if _wide(start):
        return False
    control = len(start) - len(start.translate(None, _CONTROL))
    return control > max(8, 0.02 * len(start))  # a log has a stray bell or NUL at times


def _wide(start: bytes) -> str:
    """The kind of UTF-16 without a mark that the bytes are, empty where they are none: of each two of its bytes one is NUL in Latin letters and blanks.

    >>> _wide("line 1\\nerror 错误\\n".encode("utf-16-le")), _wide("line 1\\nx".encode("utf-16-be")), _wide(b"plain\\n"), _wide(bytes(range(64)) * 9)
    ('utf-16-le', 'utf-16-be', '', '')
    """
    pairs = len(start) // 2
    low, high = start[: 2 * pairs : 2].count(0), start[1 : 2 * pairs : 2].count(0)
    if not pairs or max(low, high) < max(0.05 * pairs, 5 * min(low, high)):
        return ""
    name = _WIDE[low > high]
    text = codecs.getincrementaldecoder(name)("replace").decode(start)
    return "" if not _NO_CHARACTER.isdisjoint(text) or "\n" not in text else name


def text_of(raw: bytes) -> str | None:
    """A whole file as clean text, or None where it is binary."""
    if is_binary(raw[:SNIFFED]):
        return None
    return clean(raw.decode(encoding_of(raw[:_OF_ENCODING]), "replace").encode("utf-8", "replace")).decode()


def encoding_of(start: bytes) -> str:
    """The encoding that the first bytes of a text speak for.

    >>> encoding_of("错误".encode()), encoding_of("错误：驱动".encode("gbk")), encoding_of(b"plain")
    ('utf-8', 'gb18030', 'utf-8')
    """
    for mark, name in ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")):
        if start.startswith(mark):
            return name
    if wide := _wide(start):
        return wide
    for name in ("utf-8", "gb18030"):
        try:
            codecs.getincrementaldecoder(name)().decode(start)
        except UnicodeDecodeError:
            continue
        return name
    return "utf-8"


def clean(block: bytes) -> bytes:
    """A block without what only terminals understand.   Progress bars (`\\r`) become lines."""
    if len(block.translate(None, _DIRTY)) == len(block):  # quicker than a search
        return block
    return _ANSI.sub(b"", block.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))
