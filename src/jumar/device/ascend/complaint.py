"""`Complaint`: what a reader of a text did not understand or found wrong, and the line; `plain_lines`: pasted text without its dress.

In: any text.  Out: lines that the readers of this room take, and the complaints they give back instead of exceptions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST_LINE = 4000  # characters: no tool of this room writes longer lines, and a reader's time stays in bounds

_DRESS = re.compile(
    "\x1b\\[[0-9;:?]*[ -/]*[@-~]"  # colours and cursor moves
    "|\x1b\\][^\x07\x1b]{0,200}(?:\x07|\x1b\\\\)?"  # titles of a terminal
    "|\x1b[@-Z\\\\^_]"
    "|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f\u200b\ufeff]"
)


@dataclass(frozen=True)
class Complaint:
    """Something that is wrong or was not understood.   what: a sentence with the value; line: from 1, 0 for the text as a whole;
    kind: a short steady name of the kind of fault (`rank-id-twice`), for who acts on it; column: from 1, 0 where it tells nothing.

    >>> str(Complaint("rank_id 3 must occur once, got 2 times", line=7, kind="rank-id-twice"))
    'line 7: rank_id 3 must occur once, got 2 times'
    """

    what: str
    line: int = 0
    kind: str = ""
    column: int = 0

    def __str__(self) -> str:
        place = f"line {self.line}" + (f" column {self.column}" if self.column else "")
        return f"{place}: {self.what}" if self.line else self.what


def plain_lines(text: str) -> list[str]:
    """The lines of a text as `cat -n` counts them, without colours, control characters, Windows line ends and over-long tails.

    >>> plain_lines("\\x1b[31ma\\x1b[0m\\tb\\r\\nc")
    ['a b', 'c']
    """
    return [
        _DRESS.sub("", line[:LONGEST_LINE].replace("\r", " ").replace("\t", " ").replace("\xa0", " ")).rstrip() for line in text.split("\n")
    ]


def quoted(text: str, longest: int = 80) -> str:
    """A piece of the text as a complaint shows it: in quotes, cut where it is long."""
    text = text.strip()
    return repr(text if len(text) <= longest else text[: longest - 3] + "...")


_LOOP = re.compile(
    r"\bfor\s+\w{1,20}\s+in\s+(?:\{([0-9]{1,3})\.\.([0-9]{1,3})\}|[`$(]{1,2}\s*seq\s+([0-9]{1,3})\s+([0-9]{1,3})|([0-9 ]{1,60});)"
)


def loops(line: str) -> list[list[int]]:
    """The numbers that the shell's loops of a command line run over, the outer loop first.

    >>> loops("for i in $(seq 0 2); do for c in 0 1; do npu-smi info -t health -i $i -c $c; done; done")
    [[0, 1, 2], [0, 1]]
    """
    found = []
    for loop in _LOOP.finditer(line):
        first, last = loop[1] or loop[3], loop[2] or loop[4]
        found.append(list(range(int(first), int(last) + 1)) if first else [int(word) for word in loop[5].split() if len(word) < 4])
    return found
