"""Words that a text must hold if a pattern is to find anything in it: a quick look that needs no compiled pattern.

In: a pattern of a rule (RE2, case-insensitive).  Out: words in lower case that must occur; none where the pattern tells of no word.
A short text is compared with these, so that of three thousand patterns only some dozens are compiled for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from jumar.tools.knowledge import kept

LEAST = 3  # bytes of a word: shorter ones occur in every text; a Chinese character is three
MOST = 24  # words of a pattern
_PIECES = re.compile(
    r"\\[pP](?:\{\^?\w+\}|\w)|\\x(?:\{\w+\}|\w\w)|\\[0-7]{2,3}|\\."  # escapes
    r"|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]"  # a class
    r"|\((?:\?(?:P?<\w+>|[imsU-]*:))?|\(\?|\)|\|"
    r"|[*?]\??|\+\??|\{\d+(?:,\d*)?\}\??|[.^$]|[^\\\[\]()|*?{+.^$]+|.",
    re.DOTALL,
)
Words = tuple[str, ...]


def words_of(pattern: str) -> tuple[Words, ...]:
    """What a text must hold, in lower case, for the pattern to be found there: of each of these one word; empty: nothing is known.

    >>> words_of("nic listen (start )?failed, port|EJ0003.*bind"), words_of("(a|b)[0-9]"), words_of("(device|card) [0-9]+ (is|was) (lost|gone)")
    ((('failed, port', 'ej0003'),), (), (('device', 'card'), ('lost', 'gone')))
    """
    if r"\Q" in pattern:
        return ()
    alternatives = _alternatives(iter(_PIECES.findall(pattern)))
    needed = alternatives[0] if len(alternatives) == 1 else [_either(alternatives)]
    return tuple(sorted((words for words in needed if 0 < len(words) <= MOST), key=_length, reverse=True))


def words_of_all(patterns: list[str]) -> list[tuple[Words, ...]]:
    """The words of each pattern: kept on disk, since reading three thousand patterns takes a tenth of a second."""
    return kept("words", (Path(__file__).read_bytes(), *map(str.encode, patterns)), lambda: [words_of(p) for p in patterns])


def may_hold(text: str, needed: tuple[Words, ...]) -> bool:
    """Can a pattern that needs these words be found in a text?   text: in lower case."""
    for words in needed:
        for word in words:
            if word in text:
                break
        else:
            return False
    return True


def _alternatives(pieces: Iterator[str]) -> list[list[Words]]:
    """What each of the alternatives up to the closing parenthesis needs: one word of each of these."""
    each: list[list[Words]] = []
    needed: list[Words] = []  # of this alternative: all of these
    run = ""
    group: Words | None = None  # the last thing was a group

    def close() -> None:
        nonlocal run, group
        if len(run.encode()) >= LEAST:
            needed.append((run,))
        if group:
            needed.append(group)
        run, group = "", None

    for piece in pieces:
        if piece.startswith("(") and (len(piece) < 3 or piece.endswith((":", ">"))):
            close()
            group = _either(_alternatives(pieces))
        elif piece == ")":
            break
        elif piece == "|":
            close()
            each.append(needed)
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
    each.append(needed)
    return each


def _either(alternatives: list[list[Words]]) -> Words:
    """Words of which one is in a text that holds one of the alternatives; empty where some alternative needs none.

    Of several things that an alternative needs it is the one that is met most rarely: its shortest word is the longest.
    """
    each = [max(needed, key=_length, default=()) for needed in alternatives]
    return tuple(word for words in each for word in words) if all(each) else ()


def _length(words: Words) -> int:
    """The bytes of the shortest."""
    return min(len(word.encode()) for word in words)
