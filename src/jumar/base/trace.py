"""Spans and events: the one place where time and facts are noted; profiler, report and CLI are its readers.

In: `with span("fuse", nodes=12):` and `event("fold", count=3)` anywhere in the stack.
Out: lists of `Span` and `Event` for whoever opened `recording()`; nobody listening costs next to nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Event:
    """A fact noted while something ran."""

    name: str
    facts: dict[str, Any]


@dataclass
class Span:
    """A stretch of time.   start_s, end_s: seconds of `time.perf_counter`."""

    name: str
    facts: dict[str, Any]
    start_s: float = 0.0
    end_s: float = 0.0
    depth: int = 0

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s


@dataclass
class Recording:
    """What was noted while it was open."""

    spans: list[Span] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    depth: int = 0

    def seconds(self, name: str) -> float:
        return sum(s.seconds for s in self.spans if s.name == name)


_CURRENT: ContextVar[Recording | None] = ContextVar("recording", default=None)


@contextmanager
def recording() -> Iterator[Recording]:
    """Collects spans and events of everything that runs inside; a recording around it gets them too."""
    record = Recording()
    outer = _CURRENT.get()
    token = _CURRENT.set(record)
    try:
        yield record
    finally:
        _CURRENT.reset(token)
        if outer is not None:
            outer.spans += [replace(s, depth=s.depth + outer.depth) for s in record.spans]
            outer.events += record.events


@contextmanager
def span(name: str, **facts: Any) -> Iterator[dict[str, Any]]:
    """Notes how long the block takes; add to the yielded dict what is known only at the end."""
    record = _CURRENT.get()
    if record is None:
        yield facts
        return
    mine = Span(name, facts, time.perf_counter(), depth=record.depth)
    record.spans.append(mine)
    record.depth += 1
    try:
        yield facts
    finally:
        record.depth -= 1
        mine.end_s = time.perf_counter()


def event(name: str, **facts: Any) -> None:
    """Notes a fact."""
    record = _CURRENT.get()
    if record is not None:
        record.events.append(Event(name, facts))
