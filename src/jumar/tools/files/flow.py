"""Bytes that come once and in order, with a look ahead, and what may come out of one file at most.

In: an iterator of pieces.  Out: `Flow`, on which unfold.py, tar.py and zip.py stand.  What damages a flow ends it, and is kept in words: nobody who
reads one needs to catch anything.
"""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from jumar.base import UNSAID, Said, reason

PIECE = 256 << 10  # bytes that are asked for at once
FREE = 64 << 20  # bytes that anything may unfold to, whatever its size
MOST_RATIO = 500  # bytes beyond that for each byte of the file: logs unfold to 10 to 100 times their size, bombs to 1,000 and more


class Damage(Exception):
    """Why bytes cannot be read on, in words."""

    def __init__(self, what: Said) -> None:
        super().__init__(what)
        self.what = what


DAMAGES = (Damage, OSError, EOFError, zlib.error, lzma.LZMAError)
NO_HEADER = Said("what should be a member's header is none", "应为文件头的位置不是文件头")
EARLY = Said("it ends too early", "内容不完整")


def what_of(error: Exception) -> Said:
    """What damaged a flow, in words."""
    if isinstance(error, Damage):
        return error.what
    if isinstance(error, OSError) and error.errno:
        return reason(error)
    text = str(error) or type(error).__name__
    return Said(text, f"解压出错：{text}")


@dataclass
class Budget:
    """What may be unfolded out of one file, all that lies in it together; mutable, since it is a count.   most: in bytes; over: the limit that was met."""

    most: int
    fed: int = 0
    unfolded: int = 0
    over: Said = UNSAID

    def spend(self, nbytes: int) -> None:
        self.unfolded += nbytes
        if self.unfolded > self.most:
            self.over = Said(
                f"unfolds to more than {sized(self.most)}, the most that is read of one file: it may be an archive bomb; unpack it if you trust it",
                f"解压后超过 {sized(self.most)}（单个文件的上限），可能是压缩炸弹；若信任它，请自行解压",
            )
        elif self.unfolded > FREE and self.unfolded > MOST_RATIO * self.fed:
            self.over = Said(
                f"unfolds to more than {MOST_RATIO} times its size: it may be an archive bomb; unpack it if you trust it",
                f"解压后超过自身大小的 {MOST_RATIO} 倍，可能是压缩炸弹；若信任它，请自行解压",
            )
        if self.over:
            raise Damage(self.over)


def sized(nbytes: int) -> str:
    """A limit as a user reads it.

    >>> sized(8 << 30), sized(32 << 20)
    ('8 GB', '32 MB')
    """
    return f"{nbytes >> 30} GB" if nbytes >= 1 << 30 else f"{nbytes >> 20} MB"


class Flow:
    """A stream of bytes; it is a buffer, so it changes.   under: the flow that it is taken from; damage: why it ended early, empty where it did not."""

    def __init__(self, pieces: Iterator[bytes], under: Flow | None = None) -> None:
        self.under = under
        self.damage = UNSAID
        self._pieces = pieces
        self._held = b""
        self._at = 0
        self._ended = False

    def some(self, most: int = PIECE) -> bytes:
        """What there is at once, at most so many bytes; nothing at the end."""
        while self._at >= len(self._held):
            if self._ended:
                return b""
            self._held, self._at = self._piece(), 0
        if not self._at and len(self._held) <= most:
            found, self._held = self._held, b""
            return found
        found = self._held[self._at : self._at + most]
        self._at += len(found)
        return found

    def read(self, nbytes: int) -> bytes:
        """So many bytes, fewer only at the end."""
        found = self.some(nbytes)
        if len(found) == nbytes or not found:
            return found
        parts, left = [found], nbytes - len(found)
        while left and (found := self.some(left)):
            parts.append(found)
            left -= len(found)
        return b"".join(parts)

    def peek(self, nbytes: int) -> bytes:
        """The next bytes, which stay, fewer only at the end."""
        while len(self._held) - self._at < nbytes and not self._ended:
            self._held, self._at = self._held[self._at :] + self._piece(), 0
        return self._held[self._at : self._at + nbytes]

    def give_back(self, data: bytes) -> None:
        """Puts bytes that were read too far before those that come."""
        if data:
            self._held, self._at = data + self._held[self._at :], 0

    def skip(self, nbytes: int) -> int:
        """Leaves so many bytes out; how many there were."""
        left = nbytes
        while left and (found := self.some(min(left, PIECE))):
            left -= len(found)
        return nbytes - left

    def drain(self) -> None:
        """Leaves the rest out."""
        while self.some():
            pass

    @property
    def broken(self) -> bool:
        """Is this flow damaged, or one that it is taken from?"""
        return bool(self.damage) or (self.under is not None and self.under.broken)

    def _piece(self) -> bytes:
        try:
            found = next(self._pieces, None)
        except DAMAGES as error:
            self.damage = self.damage or what_of(error)
            found = None
        self._ended = found is None
        return found or b""


def part(flow: Flow, nbytes: int) -> Iterator[bytes]:
    """The next bytes of a flow; Damage where there are fewer."""
    left = nbytes
    while left:
        found = flow.some(min(left, PIECE))
        if not found:
            raise Damage(EARLY)
        left -= len(found)
        yield found
