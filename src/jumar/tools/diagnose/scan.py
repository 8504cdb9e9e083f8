"""The lines that some pattern finds, in one pass and bounded memory: linear-time regexes over blocks, each run only where its words occur.

In: patterns, sources.  Out: `Scanned`: hits by pattern with place, time and rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import re2

from jumar.tools.diagnose.sources import Source, blocks
from jumar.tools.diagnose.stamps import rank_of_file, seconds_of, stamp
from jumar.tools.knowledge import Evidence, Hit, Moment, as_written, compiled, regex_options

KEPT = 400  # hits of a pattern that are kept for each source: its first ones
_BACK = 40  # lines before a hit in which its time is looked for
_TEXT = 2000  # characters of a line that are kept


@dataclass
class Scanned:
    """hits: by pattern; lines, nbytes: of all sources."""

    hits: dict[str, tuple[Hit, ...]] = field(default_factory=dict)
    lines: int = 0
    nbytes: int = 0


class Patterns:
    """Many regexes looked for at once, each compiled once; raises re2.error with the pattern that is none.

    unless: for some of them another regex: lines that it finds, too, are passed over.
    """

    def __init__(self, patterns: Iterable[str], unless: Mapping[str, str] | None = None) -> None:
        self.names = list(dict.fromkeys(patterns))
        self.filter = re2.Filter()
        for name in self.names:
            self.filter.Add(as_written(name), regex_options())
        self.filter.Compile()
        self.regexes = [self.filter.re(index) for index in range(len(self.names))]
        self.unless = {self.names.index(name): compiled(other) for name, other in (unless or {}).items()}

    def candidates(self, block: bytes) -> Iterable[int]:
        """Indices of the patterns whose words occur in a block."""
        return self.filter.Match(block, potential=True) or ()


def scan(patterns: Patterns, sources: Iterable[Source], progress: Callable[[int], None] = lambda _: None) -> Scanned:
    """Every line that one of the patterns finds.   progress: told of the bytes that each block took."""
    hits: dict[int, list[Hit]] = {}
    total = Scanned()
    for index, source in enumerate(sources):
        total_before = total.lines
        file_rank, last = rank_of_file(source.name), 0.0
        kept: dict[int, int] = {}
        for block in blocks(source):
            last = last or _first_time(block)
            for which in patterns.candidates(block):
                room = KEPT - kept.get(which, 0)
                if room <= 0:  # full up: not looked for again
                    continue
                found = _find(patterns.regexes[which], block, room, patterns.unless.get(which))
                for start, end, match in found:
                    number = total.lines - total_before + block.count(b"\n", 0, start) + 1
                    text = block[start:end].decode("utf-8", "replace")[:_TEXT]
                    mark = stamp(text, last)
                    seconds = mark.seconds if mark.seconds is not None else _time_before(block, start, last)
                    rank = mark.rank if mark.rank >= 0 else file_rank
                    groups = {name.decode(): value.decode("utf-8", "replace").strip() for name, value in match.groupdict().items() if value}
                    hits.setdefault(which, []).append(
                        Hit(Evidence(source.name, number, text), Moment(seconds, index, number), groups, rank)
                    )
                kept[which] = kept.get(which, 0) + len(found)
            last = _time_before(block, len(block), last)
            total.lines += block.count(b"\n") + (not block.endswith(b"\n"))
            total.nbytes += len(block)
            progress(len(block))
    total.hits = {patterns.names[which]: tuple(found) for which, found in hits.items()}
    return total


def _find(regex: Any, block: bytes, room: int, unless: Any) -> list[tuple[int, int, Any]]:
    """The first `room` lines of a block that a regex finds, as start, end, match; those that `unless` finds, too, are passed over."""
    found: list[tuple[int, int, Any]] = []
    place = 0
    while len(found) < room and place <= len(block) and (match := regex.search(block, place)):
        start = block.rfind(b"\n", 0, match.start()) + 1
        end = block.find(b"\n", match.start())
        end = len(block) if end < 0 else end
        if unless is None or not unless.search(block[start:end]):
            found.append((start, end, match))
        place = end + 1
    return found


def _time_before(block: bytes, place: int, last: float) -> float:
    """The time of the nearest stamped line before a place, else the last one known."""
    end = place
    for _ in range(_BACK):
        start = block.rfind(b"\n", 0, max(end - 1, 0)) + 1
        if start >= end:
            break
        mark = stamp(block[start : min(end, start + 400)].decode("utf-8", "replace"), last)
        if mark.seconds is not None:
            return mark.seconds
        end = start
    return last


_YEAR = re2.compile(rb"20\d\d[-/]\d\d[-/]\d\d[-T _]\d\d:\d\d:\d\d")


def _first_time(block: bytes) -> float:
    """The first complete date of a block, in seconds, 0 without one: lines that leave the year out are near it."""
    found = _YEAR.search(block)
    return (seconds_of(found.group().decode()) or 0.0) if found else 0.0
