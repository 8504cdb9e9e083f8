"""Which lines of a long log are worth a look: of lines that differ in numbers only, the first few.

In: the lines of a block.  Out: the numbers of those to look at.  A training log of a gigabyte holds some hundred kinds of line; all patterns look
at each kind, not at each line.  Kinds that speak of a failure are looked at for longer, since their codes differ in numbers only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

FEW = 25  # lines of a kind that are looked at
MANY = 1500  # of a kind that speaks of a failure
KINDS = 300_000  # that are remembered
PLAIN = 40_000  # lines of a source that are looked at though no word of them speaks of a failure; behind, only those that do
ALARMING = 150_000  # lines of a source that are looked at since a word speaks of a failure
_NUMBERS = b"0123456789abcdef"  # hexadecimal ones, too: no two messages differ in these letters alone


@dataclass
class Shapes:
    """The kinds of line that were seen, and how often; mutable, since it is a memory.

    alarm: a regex for lines that speak of a failure; plain, alarming: how many lines without and with it may still be looked at; left: lines that were not.
    """

    alarm: Any
    seen: dict[int, int] = field(default_factory=dict)
    plain: int = PLAIN
    alarming: int = ALARMING
    left: int = 0

    def fresh(self, block: bytes, lines: list[bytes]) -> list[int]:
        """Numbers of the lines of a block that are worth a look."""
        seen, found = self.seen, []
        for number, shape in enumerate(block.translate(None, _NUMBERS).split(b"\n")):
            key = hash(shape)
            times = seen.get(key, 0)
            if times >= MANY:
                continue
            if times >= FEW or self.plain <= 0:  # only what speaks of a failure is looked at further
                if not self.alarm.search(lines[number]):
                    seen[key] = MANY
                    self.left += self.plain <= 0 and times < FEW
                    continue
                if self.alarming <= 0:
                    self.left += 1
                    continue
                self.alarming -= 1
            else:
                self.plain -= 1
            found.append(number)
            if times or len(seen) < KINDS:
                seen[key] = times + 1
        return found
