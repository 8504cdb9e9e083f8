"""Words that a text must hold if a pattern is to find anything in it: a quick look that needs no compiled pattern.

In: a pattern of a rule (RE2, case-insensitive).  Out: words in lower case, one of which must occur; none where the pattern tells of no word.
A short text is compared with these, so that of three thousand patterns only some dozens are compiled for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

LEAST = 3  # characters of a word: shorter ones occur in every text
MOST = 24  # words of a pattern
_PIECES = re.compile(
    r"\\[pP](?:\{\^?\w+\}|\w)|\\x(?:\{\w+\}|\w\w)|\\[0-7]{2,3}|\\."  # escapes
    r"|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]"  # a class
    r"|\((?:\?(?:P?<\w+>|[imsU-]*:))?|\(\?|\)|\|"
    r"|[*?]\??|\+\??|\{\d+(?:,\d*)?\}\??|[.^$]|[^\\\[\]()|*?{+.^$]+|.",
    re.DOTALL,
)
Words = tuple[str, ...]


def words_of(pattern: str) -> Words:
    """One of these must be in a text, in lower case, for the pattern to be found there; empty: nothing is known.

    >>> words_of("nic listen (start )?failed, port|EJ0003.*bind"), words_of("(a|b)[0-9]"), words_of("(device|card) [0-9]+ (is|was) (lost|gone)")
    (('failed, port', 'ej0003'), (), ('device', 'card'))
    """
    if r"\Q" in pattern:
        return ()
    found = _alternatives(iter(_PIECES.findall(pattern)))
    return found if len(found) <= MOST else ()


def _alternatives(pieces: Iterator[str]) -> Words:
    """What one of the alternatives up to the closing parenthesis needs; empty where some alternative needs nothing."""
    each: list[Words] = []
    needed: list[Words] = []  # of this alternative: all of these
    run = ""
    group: Words | None = None  # the last thing was a group

    def close() -> None:
        nonlocal run, group
        if len(run) >= LEAST:
            needed.append((run,))
        if group:
            needed.append(group)
        run, group = "", None

    for piece in pieces:
        if piece.startswith("(") and (len(piece) < 3 or piece.endswith((":", ">"))):
            close()
            group = _alternatives(pieces)
        elif piece == ")":
            break
        elif piece == "|":
            close()
            each.append(_best(needed))
            needed = []
        elif piece[0] in "*?{":  # what stands before may be missing
            run, group = run[:-1], None
            close()
        elif piece[0] in "+.^$[" or (piece[0] == "\\" and piece[1].isalnum()):
            close()
        else:
            if group is not None:
                close()
            run += piece[1] if piece[0] == "\\" else piece.lower()
    close()
    each.append(_best(needed))
    return tuple(word for words in each for word in words) if all(each) else ()


def _best(needed: list[Words]) -> Words:
    """Of several things that are all needed the one that is met most rarely: its shortest word is the longest."""
    return max(needed, key=lambda words: min(map(len, words)), default=())
