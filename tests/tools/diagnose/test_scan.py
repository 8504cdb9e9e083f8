"""Any number of patterns is looked for: who adds rules of one's own does not meet a limit of the regex engine."""

from __future__ import annotations

from jumar.tools.diagnose.scan import COMPILED_LATER, Patterns, scan
from jumar.tools.diagnose.sources import source_of_text

MANY = 8000


def test_thousands_of_patterns_are_found_in_a_long_text() -> None:
    names = [f"component{number} of (the )?machine{number} has (failed|stopped|vanished) with reason \\w+" for number in range(MANY)]
    patterns = Patterns(dict.fromkeys(names, 3), "failed", {})
    filling = "step is done, all is well\n" * (COMPILED_LATER // 20)
    asked = (0, 999, 1000, 3701, MANY - 1)
    text = filling + "".join(f"component{number} of machine{number} has failed with reason r{number}\n" for number in asked)
    hits = scan(patterns, [source_of_text("log", text)]).hits
    assert {name for name, found in hits.items() if found} == {names[number] for number in asked}
