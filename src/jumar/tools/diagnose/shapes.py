"""Which lines of a long log are worth a look: of lines that differ in numbers only, the first few.

In: the lines of a block.  Out: the numbers of those to look at.  A training log of a gigabyte holds some hundred kinds of line; all patterns look
at each kind, not at each line.  Kinds that speak of a failure are looked at for longer, since their codes differ in numbers only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

FEW = 25  # lines of a kind that are looked at
MANY = 1500  # of a kind that speaks of a failure
KINDS = 300_000  # that are remembered; what comes after is looked at
_NUMBERS = b"0123456789abcdef"  # hexadecimal ones, too: no two messages differ in these letters alone


@dataclass
class Shapes:
    """The kinds of line that were seen, and how often; mutable, since it is a memory.   alarm: a regex for lines that speak of a failure."""

    alarm: Any
    seen: dict[int, int] = field(default_factory=dict)

    def fresh(self, block: bytes, lines: list[bytes]) -> list[int]:
        """Numbers of the lines of a block that are worth a look."""
        seen, found = self.seen, []
        for number, shape in enumerate(block.translate(None, _NUMBERS).split(b"\n")):
            key = hash(shape)
            times = seen.get(key, 0)
            if times >= MANY:
                continue
            if times == FEW and not self.alarm.search(lines[number]):
                seen[key] = MANY
                continue
            found.append(number)
            if times or len(seen) < KINDS:
                seen[key] = times + 1
        return found
