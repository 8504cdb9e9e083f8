"""What captures did, for `jumar run --explain` and for tests: one `Fact` for each captured function."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Fact:
    """A captured function.

    captures: times Python ran to record it; recaptures: why again; effects: why Python runs at each call (replays); seconds: of captures.
    """

    function: str
    captures: int = 0
    pieces: int = 0
    nodes: int = 0
    replays: int = 0
    seconds: float = 0.0
    recaptures: list[str] = field(default_factory=list)
    effects: list[str] = field(default_factory=list)


FACTS: list[Fact] = []
