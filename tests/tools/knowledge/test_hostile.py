"""No pattern runs away: texts made of the patterns' own words, over and over, are read in time that grows with their length alone."""

from __future__ import annotations

import random
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.tools.diagnose import diagnose_text
from jumar.tools.knowledge import load_rules

WORDS = sorted({w for rule in load_rules() for p in rule.patterns() for w in re.findall(r"[A-Za-z]{3,}|[\[\](){}=:,.]+| +", p)})


def test_a_megabyte_of_the_patterns_own_words_is_read() -> None:
    pick = random.Random(7)
    for separator in ("", " ", "\n"):
        text = separator.join(pick.choice(WORDS) for _ in range(20_000))
        assert diagnose_text(text).lines >= 1


def test_one_word_a_hundred_thousand_times_is_read() -> None:
    assert diagnose_text(" " * 100_000).state == "nothing"
    for word in ("a", "error ", "[", "0", "port[", "failed: ", "错误"):
        assert diagnose_text(word * 100_000).lines >= 1


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=300), st.sampled_from(["", " ", "\n", "\x00", "\u2028"]))
def test_no_order_of_words_ends_in_a_traceback(words: list[str], separator: str) -> None:
    diagnose_text(separator.join(words))
