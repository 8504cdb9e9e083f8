"""A verdict: which layer is at fault, how sure that is, what followed, and what was read.

In: findings, decoded codes, the first error (diagnose), checks and levels (doctor).  Out: `Verdict`, shown by terminal.py, document.py, page.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jumar.device.ascend import Code
from jumar.tools.knowledge import Evidence, Finding

CONFIDENCE = {"cause": "high", "symptom": "medium", "hint": "low"}  # by the tier of the first finding


@dataclass(frozen=True)
class Decoded:
    """An error code that was met.   text: as it is written; evidence: where first; codes: what it can mean, the most likely first."""

    text: str
    codes: tuple[Code, ...]
    evidence: Evidence


@dataclass(frozen=True)
class Component:
    """A part of the machine.   name: driver, firmware, cann, mindspore, NPU 0 ...; value: its version or state; state: ok, bad or unknown."""

    name: str
    value: str
    state: str = "ok"
    evidence: Evidence | None = None


@dataclass(frozen=True)
class Level:
    """How far the machine is shown to work.   name: driver, cann, framework; state: verified, failed or unchecked; why: by language."""

    name: str
    state: str
    why: Mapping[str, str]


@dataclass(frozen=True)
class Verdict:
    """findings: the first is the cause, others stand for themselves; followed: what came of them; layer: at fault, empty if nothing is.

    confidence: high (the text names the cause), medium, low (only the layer is likely), none; first_error: the earliest line that looks like one;
    first_rank: of the process that wrote it, -1 unknown;
    sources: what was read; notes: what could not be, in words; unread: is that, in part, what the user named?
    machine: a line that says which one was looked at; components, levels: of the doctor.
    """

    findings: tuple[Finding, ...] = ()
    followed: tuple[Finding, ...] = ()
    like: Finding | None = None
    codes: tuple[Decoded, ...] = ()
    layer: str = ""
    confidence: str = "none"
    first_error: Evidence | None = None
    first_rank: int = -1
    sources: tuple[str, ...] = ()
    lines: int = 0
    notes: tuple[str, ...] = ()
    unread: bool = False
    machine: str = ""
    components: tuple[Component, ...] = ()
    levels: tuple[Level, ...] = ()

    @property
    def told(self) -> Finding | None:
        """What is told first: the cause, or the known failure that the text is most like."""
        return self.like or (self.findings[0] if self.findings else None)

    @property
    def state(self) -> str:
        """In a word: `found`, else `healthy`, `partly` where not all of it could be read, `nothing` where nothing was."""
        if self.findings or self.first_error or self.codes:
            return "found"
        if not self.lines and not self.components:
            return "nothing"
        return "partly" if self.unread else "healthy"

    @property
    def exit_code(self) -> int:
        """0 nothing wrong was found, 1 something was, 2 it could not be checked, or not all of it."""
        return 2 if self.unread else {"found": 1, "healthy": 0}.get(self.state, 2)
