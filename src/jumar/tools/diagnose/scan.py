"""The lines that some pattern finds, in one pass and bounded memory: linear-time regexes over blocks, each run only where its words occur.

In: patterns, sources.  Out: `Scanned`: hits by pattern with place, time and rank.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

import re2

from jumar.tools.diagnose.shapes import Shapes
from jumar.tools.diagnose.sources import Source, blocks
from jumar.tools.diagnose.stamps import rank_of, rank_of_file, seconds_of
from jumar.tools.diagnose.words import Words, may_hold, words_of_all
from jumar.tools.knowledge import Evidence, Hit, Moment, as_written, compiled, regex_options

_BACK = 40  # lines before a hit in which its time is looked for
_WHOLE = 4 << 20  # bytes of a source that are looked at line by line, whatever they are
_SHORT = 200  # lines of a text that may be a question with a few lines of a log
COMPILED_LATER = 256 << 10  # bytes that are looked at before all patterns are compiled
_TEXT = 2000  # characters of a line that are kept
_AT_ONCE = 2000  # patterns of one filter: most often RE2 refuses some 3,700, and a refusal takes a second


@dataclass
class Scanned:
    """hits: by pattern; short: all lines of the sources that have few; sources: their names; lines, nbytes: of all sources, no lines where all
    are blank; left: lines not looked at."""

    hits: dict[str, tuple[Hit, ...]] = field(default_factory=dict)
    short: list[Evidence] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    lines: int = 0
    nbytes: int = 0
    left: int = 0


_PATH = 300  # characters of a path
_PATH_BEFORE = re.compile(rb"[\w.~/@%+-]*$")
_PATH_AFTER = re.compile(rb"[\w.~@%+-]*(?:/[\w.~/@%+-]*)?(?:\.[A-Za-z0-9]{1,6})?(?=[\s\"',;:)\]]|$)")


class Patterns:
    """Many regexes looked for at once; raises re2.error, at the first text, with the pattern that is none.

    kept: each pattern, and how many of its hits in a source are kept: its first ones; alarm: the one of lines that speak of a failure;
    unless: for some of them another regex: lines that it finds, too, are passed over; spoken: those that are words, and so are not found in
    the name of a file: a test named hccl_timeout.py has not timed out.  Compiling all of them takes a second: until
    COMPILED_LATER bytes were looked at, only those whose words occur (words.py) are compiled.
    """

    def __init__(self, kept: Mapping[str, int], alarm: str, unless: Mapping[str, str], spoken: AbstractSet[str] = frozenset()) -> None:
        self.names = list(kept)
        self.kept = list(kept.values())
        self.alarm = compiled(alarm)
        others = {other: compiled(other) for other in set(unless.values())}
        self.unless = {which: others[unless[name]] for which, name in enumerate(self.names) if name in unless}
        self.spoken = frozenset(which for which, name in enumerate(self.names) if name in spoken)
        self._filters: list[tuple[range, Any]] = []
        self._words: list[tuple[Words, ...]] = []
        self._regexes: dict[int, Any] = {}
        self._nbytes = 0

    def candidates(self, block: bytes) -> Iterable[int]:
        """Indices of the patterns whose words occur in a block."""
        self._nbytes += len(block)
        if not self._filters and self._nbytes <= COMPILED_LATER:
            return self._by_words(block.decode("utf-8", "replace").lower())
        self._filters = self._filters or [
            one
            for start in range(0, len(self.names), _AT_ONCE)
            for one in _filters(self.names, range(len(self.names))[start : start + _AT_ONCE])
        ]
        return [which[place] for which, one in self._filters for place in one.Match(block, potential=True) or ()]

    def _by_words(self, text: str) -> list[int]:
        self._words = self._words or words_of_all(self.names)
        return [which for which, needed in enumerate(self._words) if may_hold(text, needed)]

    def regex(self, which: int) -> Any:
        """The compiled pattern of an index."""
        found = self._regexes.get(which)
        if found is None:
            ready = next((one.re(which - ours.start) for ours, one in self._filters if which in ours), None)
            found = self._regexes[which] = compiled(self.names[which]) if ready is None else ready
        return found


def _filters(names: list[str], which: range) -> Iterator[tuple[range, Any]]:
    """What tells which patterns a block may hold, for some of them each: RE2 refuses to look for all words of too many patterns at once."""
    made = re2.Filter()
    for name in names[which.start : which.stop]:
        made.Add(as_written(name), regex_options())
    try:
        made.Compile()
    except re2.error:
        if len(which) < 2:
            raise
        middle = (which.start + which.stop) // 2
        yield from _filters(names, range(which.start, middle))
        yield from _filters(names, range(middle, which.stop))
    else:
        yield which, made


def scan(patterns: Patterns, sources: Iterable[Source]) -> Scanned:
    """Every line that one of the patterns finds; each source is read to its end before the next one is asked for."""
    total = Scanned()
    found: dict[int, list[Hit]] = {}
    blank = True
    for index, source in enumerate(sources):
        total.sources.append(source.name)
        shapes = Shapes(patterns.alarm)
        kept: dict[int, int] = {}
        lines_before, nbytes, last, broken = 0, 0, 0.0, False
        for data in blocks(source):
            last = last or _first_time(data)
            blank = blank and (not data or data.isspace())
            lines = data.removesuffix(b"\n").split(b"\n")
            # a short text is looked at whole
            fresh = shapes.fresh(data.removesuffix(b"\n"), lines) if nbytes > _WHOLE else list(range(len(lines)))
            block = _Block(source.name, rank_of_file(source.name), index, lines_before, lines, fresh, last)
            for which, hits in _look(patterns, block, kept):
                found.setdefault(which, []).extend(hits)
                kept[which] = kept.get(which, 0) + len(hits)
            last = block.time_at(len(lines))
            if not lines_before and len(lines) <= _SHORT and len(total.short) < _SHORT:
                total.short += [Evidence(source.name, n, line.decode("utf-8", "replace")[:_TEXT]) for n, line in enumerate(lines, 1)]
            lines_before += data.count(b"\n")  # a line that is longer than a block goes on in the next one
            broken = not data.endswith(b"\n")
            nbytes += len(data)
        total.lines += lines_before + broken
        total.nbytes += nbytes
        total.left += shapes.left
    if blank:
        total.lines = 0
    total.hits = {patterns.names[which]: tuple(hits) for which, hits in found.items()}
    return total


@dataclass(frozen=True)
class _Block:
    """Lines of one source.   first: lines of the source before it; fresh: which of its lines to look at; last: the time of the line before it;
    known: lines that were hit, told once for all patterns that find them."""

    source: str
    rank: int
    index: int
    first: int
    lines: list[bytes]
    fresh: list[int]
    last: float
    known: dict[int, tuple[Evidence, Moment, int]] = field(default_factory=dict)

    def hit(self, number: int, match: Any, row_start: int) -> Hit:
        """The hit on a line of the block, with its place, time and rank.   row_start: where the line starts in what was matched."""
        groups = {name.decode(): value.decode("utf-8", "replace").strip() for name, value in match.groupdict().items() if value}
        if len(self.lines[number]) > _TEXT:  # a line of a megabyte is shown where the match is
            start = max(0, match.start() - row_start - _TEXT // 3)
            text = self.lines[number][start : start + _TEXT].decode("utf-8", "replace")
            place = self.first + number + 1
            return Hit(Evidence(self.source, place, text), Moment(self.time_at(number + 1), self.index, place), groups, self.rank)
        if number not in self.known:
            text = self.lines[number].decode("utf-8", "replace")
            rank = rank_of(text)
            place = self.first + number + 1
            moment = Moment(self.time_at(number + 1), self.index, place)
            self.known[number] = Evidence(self.source, place, text), moment, self.rank if rank < 0 else rank
        evidence, moment, rank = self.known[number]
        return Hit(evidence, moment, groups, rank)

    def time_at(self, number: int) -> float:
        """The time of the nearest stamped line before line `number`, else the last one known.

        Some writers leave out the fraction: such a line is not earlier than the one before it in the same second.
        """
        whole: float | None = None
        for line in reversed(self.lines[max(0, number - _BACK) : number]):
            seconds = seconds_of(line[:400].decode("utf-8", "replace"), self.last)
            if seconds is None:
                continue
            if whole is None:
                if seconds != int(seconds):
                    return seconds
                whole = seconds
            elif seconds != whole:
                return seconds if int(seconds) == whole else whole
        return self.last if whole is None else max(whole, self.last) if int(self.last) == whole else whole


def _in_a_path(text: bytes, match: Any) -> bool:
    """Does what was found lie within the path of a file?"""
    start, end = match.start(), match.end()
    if end - start > _PATH or any(blank in match.group(0) for blank in (b" ", b"\t")):
        return False
    before = _PATH_BEFORE.search(text[max(0, start - _PATH) : start])
    after = _PATH_AFTER.match(text[end : end + _PATH])
    return before is not None and after is not None and b"/" in before.group(0)


def _look(patterns: Patterns, block: _Block, kept: Mapping[int, int]) -> Iterator[tuple[int, list[Hit]]]:
    """The hits of each pattern on the fresh lines of a block, while there is room for them."""
    text = b"\n".join([block.lines[number] for number in block.fresh])
    for which in patterns.candidates(text):
        room = patterns.kept[which] - kept.get(which, 0)
        hits: list[Hit] = []
        place, row = 0, 0
        while len(hits) < room and place <= len(text) and (match := patterns.regex(which).search(text, place)):
            row += text.count(b"\n", place, match.start())
            number = block.fresh[row]
            other = patterns.unless.get(which)
            if which in patterns.spoken and _in_a_path(text, match):
                place = max(match.end(), match.start() + 1)
                continue
            if other is None or not other.search(block.lines[number]):
                hits.append(block.hit(number, match, text.rfind(b"\n", 0, match.start()) + 1))
            end = text.find(b"\n", match.start())
            if end < 0:
                break
            place, row = end + 1, row + 1
        if hits:
            yield which, hits


_YEAR = re2.compile(rb"20\d\d[-/]\d\d[-/]\d\d[-T _]\d\d:\d\d:\d\d")


def _first_time(block: bytes) -> float:
    """The first complete date of a block, in seconds, 0 without one: lines that leave the year out are near it."""
    found = _YEAR.search(block)
    return (seconds_of(found.group().decode()) or 0.0) if found else 0.0
