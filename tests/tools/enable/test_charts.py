"""Charts: round ticks, labels apart from what they name, a legend for the arena."""

from __future__ import annotations

import re

from jumar.tools.enable.charts import arena_legend, arena_map, memory_curve, ticks
from jumar.tools.enable.facts import Block, MemoryFact

MEMORY = MemoryFact(9000, 7000, 6500, 0, (6500, 3000, 6500), tuple(Block(f"v{i}", 512 * i, 512 - i, i % 3, i % 3) for i in range(9)))


def test_ticks_are_round_and_none_is_twice() -> None:
    assert ticks(3, least=1.0) == [0, 1, 2, 3]
    assert ticks(0.043) == [0, 0.01, 0.02, 0.03, 0.04]
    assert [t / 1024**2 for t in ticks(37.2 * 1024**2, base=1024)] == [0, 8, 16, 24, 32]
    assert re.findall(r'end">([^<]+)</text>', memory_curve(MEMORY))[:4] == ["0 B", "2 KiB", "4 KiB", "6 KiB"]


def test_labels_of_the_lines_stand_above_the_curve() -> None:
    assert set(re.findall(r'-text" x="[^"]+" y="([^"]+)"', memory_curve(MEMORY))) == {"14"}


def test_the_legend_names_the_largest_values_by_colour() -> None:
    legend = arena_legend(MEMORY)
    assert legend[0] == ("contraction", "v0, 512 B")
    assert legend[-1] == ("input", "3 smaller values")
    assert arena_map(MEMORY).count('class="block c6"') == 3
