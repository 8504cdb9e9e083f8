"""Choices between ways to do the same thing: what a cost model expects, or what was measured on this machine (`jumar tune`).

In: a `Question` that a schedule asks, with its options and the one that the model expects to be fastest.  Out: the option to take: the one that
somebody tries just now, else the one that was measured, else the expected one.  What was measured stands in the compile cache, folder `tuned`,
by the code's version: another version asks other questions.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from jumar.base.config import config
from jumar.base.store import Store

Option = tuple[int, ...]
MAKERS = ("base", "compiler", "device", "frontend", "ir", "kernel", "operators", "runtime")  # rooms that make what is kept on disk


@dataclass(frozen=True)
class Question:
    """What is to be chosen.   facts: sizes and types, readable; machine: the target that the answer is for, its cores included."""

    kind: str
    facts: str
    machine: str

    def __str__(self) -> str:
        return f"{self.kind} | {self.facts} | {self.machine}"


@dataclass(frozen=True)
class Asked:
    """A question as it was asked.   taken: what was answered; tell: an option in words."""

    question: Question
    options: tuple[Option, ...]
    expected: Option
    taken: Option
    tell: Callable[[Option], str]


@dataclass
class Trial:
    """Choices that somebody tries: these and no others are known, and every question is noted."""

    answers: Mapping[Question, Option]
    asked: dict[Question, Asked] = field(default_factory=dict)


_trial: ContextVar[Trial | None] = ContextVar("jumar_trial", default=None)


def choose(question: Question, expected: Option, options: Callable[[], Sequence[Option]], tell: Callable[[Option], str]) -> Option:
    """The option to take.   options: all of them, called only where they are looked at."""
    trial = _trial.get()
    if trial is None:
        return _known().get(str(question), expected)
    taken = trial.answers.get(question, expected)
    if question not in trial.asked:
        every = tuple(dict.fromkeys((expected, *options())))
        trial.asked[question] = Asked(question, every, expected, taken, tell)
    return taken


@contextmanager
def trying(answers: Mapping[Question, Option]) -> Iterator[Trial]:
    """Answers for the compiles inside, in place of those that were measured; the trial notes what was asked."""
    trial = Trial(answers)
    token = _trial.set(trial)
    try:
        yield trial
    finally:
        _trial.reset(token)


def choices_key() -> str:
    """What code that was made depends on: a hash of all measured choices; empty where there are none."""
    trial = _trial.get()
    known = {str(q): o for q, o in trial.answers.items()} if trial is not None else _known()
    return hashlib.sha256(_dumped(known)).hexdigest()[:16] if known else ""


def keep_choices(found: Mapping[Question, Option | None]) -> bool:
    """Writes answers for later compiles, beside those to other questions; None: the model's, forgets an earlier answer.   Whether they could be written."""
    known = dict(_known())
    for question, option in found.items():
        if option is None:
            known.pop(str(question), None)
        else:
            known[str(question)] = option
    if known == _known():
        return True
    store = _store()
    if store is None:
        return False
    store.put(_key(), _dumped(known))
    return _known() == known


@cache
def code_version() -> str:
    """The files of the rooms that make what is kept, by their sizes and times, and NumPy's version: what they make is new when they are."""
    root, files = os.path.dirname(os.path.dirname(__file__)), list[tuple[str, int, int]]()
    for room in MAKERS:
        _look_at(os.path.join(root, room), f"{room}/", files)
    return hashlib.sha256(repr((np.__version__, sorted(files))).encode()).hexdigest()[:40]


def _look_at(folder: str, inside: str, files: list[tuple[str, int, int]]) -> None:
    """Adds path, size and time of each Python file below a folder.   Every load of a model waits for this: 2 ms; 17 with pathlib and all rooms."""
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if name.endswith(".py"):
                status = entry.stat()
                files.append((inside + name, status.st_size, status.st_mtime_ns))
            elif "." not in name and name != "__pycache__" and entry.is_dir():
                _look_at(entry.path, f"{inside}{name}/", files)


def _dumped(known: Mapping[str, Option]) -> bytes:
    return json.dumps(known, sort_keys=True, indent=1).encode()


def _key() -> str:
    return hashlib.sha256(f"choices {code_version()}".encode()).hexdigest()


def _store() -> Store | None:
    return Store(Path(config("cache_dir")) / "tuned") if config("cache") else None


_read: dict[str, tuple[tuple[int, int], dict[str, Option]]] = {}  # path -> (its time and size, what it holds)


def _known() -> Mapping[str, Option]:
    """What was measured on any machine with this code; read once for each state of the file."""
    store = _store()
    if store is None or not config("tuned"):
        return {}
    path = store.path(_key())
    try:
        stat = os.stat(path)
    except OSError:
        return {}
    state = (stat.st_mtime_ns, stat.st_size)
    held = _read.get(str(path))
    if held is None or held[0] != state:
        raw = store.get(_key())
        held = (state, {q: tuple(o) for q, o in json.loads(raw).items()} if raw else {})
        _read[str(path)] = held
    return held[1]
