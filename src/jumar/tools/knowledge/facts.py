"""What was seen: lines that a pattern found, and facts that code derived from them; both carry their evidence.

In: nothing.  Out: `Evidence`, `Hit`, `Fact`, which readers (diagnose, doctor) make and `apply_rules` reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Evidence:
    """A line as it stands in its source.   line: counted from 1, 0 where a source has no lines; text: at most LONGEST characters of it."""

    source: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.source}:{self.line}" if self.line else self.source


@dataclass(frozen=True, order=True)
class Moment:
    """When something happened, to compare with other lines: seconds where a clock is known, then the place in what was read.

    seconds: since 1970 in the log's own time zone, or of the line before that had a time; 0 where there is none at all.
    """

    seconds: float = 0.0
    source: int = 0
    line: int = 0


@dataclass(frozen=True)
class Hit:
    """A line that a pattern found.   groups: what its named groups caught; rank: of the process that wrote it, -1 unknown."""

    evidence: Evidence
    moment: Moment = Moment()
    groups: Mapping[str, str] = field(default_factory=dict)
    rank: int = -1


@dataclass(frozen=True)
class Fact:
    """Something derived: a name that rules ask for (`fact:NAME`), values for their texts, and the lines that show it.   rank: of one process, else -1."""

    name: str
    values: Mapping[str, str] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    moment: Moment = Moment()
    rank: int = -1
