"""Capture: a Python function over Tensors becomes Programs (GRAPH mode, `jit`).

In: a function and its arguments.  Out: its result, by running it under a `Capture` the first time, and without Python from then on where it only computes.
A captured function is a tree of stages (tree.py) for each form of its arguments.  Guards (guards.py) say whether a tree still stands for the function;
where they do not hold, or a branch was never taken, Python runs again and the tree grows.
"""

from __future__ import annotations

import functools
import gc
import sys
import time
import types as pytypes
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jumar.base import event
from jumar.frontend.dtype import Type
from jumar.frontend.explain import FACTS, Fact
from jumar.frontend.guards import EPOCH, IS, Watch, failing
from jumar.frontend.path import Path
from jumar.frontend.recorder import Capture, Piece, activated
from jumar.frontend.tensor import LOCAL, Tensor
from jumar.frontend.tree import MISS, Entry, walk

MAX_ENTRIES = 8  # trees for one form of arguments; more means that something changes at each call
MAX_FORMS = 32  # forms of arguments
MAX_OBJECTS = 6  # forms of arguments that differ in objects known by identity


@dataclass
class Form:
    """What is known for one form of arguments.   replayed: why Python runs at each call, or empty."""

    entries: list[Entry] = field(default_factory=list)
    replayed: str = ""


class Captured:
    """A function that is captured when it is called.   name: for reports."""

    def __init__(self, function: Callable[..., Any], name: str = "") -> None:
        self.function = function
        self.name = name or getattr(function, "__qualname__", type(function).__name__)
        self.forms: OrderedDict[Any, Form] = OrderedDict()
        self.fact = Fact(self.name)
        functools.update_wrapper(self, function, updated=())

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else pytypes.MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if LOCAL.recorder is not None:
            return self.function(*args, **kwargs)
        leaves: list[Tensor] = []
        key = _key(args, kwargs, leaves)
        form = self.forms.get(key)
        if form is None:
            form = self.forms[key] = Form()
            if len(self.forms) > MAX_OBJECTS and _objects((args, kwargs)):
                form.replayed = "an object among the arguments is another one at each call"
            if len(self.forms) > 2 * MAX_FORMS:
                self.forms.popitem(last=False)
        why = ""
        if not form.replayed:
            for entry in form.entries:
                why = entry.failing(leaves)
                if why:
                    continue
                result = walk(entry, leaves)
                if result is not MISS:
                    return result
                why = "a branch is taken for the first time"
        return self._trace(form, args, kwargs, key, leaves, why)

    # ------------------------------------------------------------------ running Python
    def _trace(self, form: Form, args: Any, kwargs: Any, key: Any, leaves: list[Tensor], why: str) -> Any:
        if not self.fact.captures:
            FACTS.append(self.fact)
        if not form.replayed and len(form.entries) >= MAX_ENTRIES:
            form.replayed = f"changes at each call: {why}"
        elif not form.replayed and len(self.forms) > MAX_FORMS:
            form.replayed = "plain arguments change at each call"
        if form.replayed:
            self.fact.replays += 1
            return self._replay(args, kwargs)
        with young_heap():
            return self._record(form, args, kwargs, key, leaves, why)

    def _record(self, form: Form, args: Any, kwargs: Any, key: Any, leaves: list[Tensor], why: str) -> Any:
        """The function's result, run as Python; what it did is kept for the calls to come."""
        start = time.perf_counter()
        capture = Capture(self.name)
        watch = Watch(capture.effect)
        watch.follow(self.function, self.name, "", 0)
        for root in _objects((args, kwargs)):
            watch.follow(root, "argument", "", 0)
        try:
            with activated(capture):
                with _watched(watch, capture):
                    result = self.function(*args, **kwargs)
                if _changed(args, kwargs, key, leaves):
                    capture.effect("changes an argument", located=False)
                capture.forget()
                outside = [t for t in capture.alive() if id(t) not in capture.written]
                capture.cut(final=True)
                guards, cell_guards, changed = watch.finish()
                if changed:
                    capture.effect(f"changes {changed}", located=False)
        except BaseException:
            capture.abandon()
            raise
        path = Path(capture, leaves)
        template = path.template(result)
        leaked = {id(t) for t in outside} - path.returned
        if leaked:  # garbage in circles has no say
            del outside
            gc.collect()
            leaked = {id(t) for t in capture.alive()} - path.returned - capture.written.keys()
        if leaked:
            capture.effect("keeps a tensor that it computed", located=False)
        if path.refused:
            capture.effect(path.refused, located=False)
        reasons = [str(e) for e in capture.effects]
        if reasons:
            form.replayed = reasons[0]
        else:
            self._grow(form, path, template, Entry(guards, cell_guards, EPOCH[0], _pinned(leaves, watch), (args, kwargs)))
        capture.close()
        self._note(capture, why, reasons, time.perf_counter() - start)
        return result

    def _grow(self, form: Form, path: Path, template: Any, entry: Entry) -> None:
        """Adds the path to the tree that its guards belong to, or to a new one."""
        for old in form.entries:
            if not failing(old.guards) and not failing(old.cell_guards) and path.add_to(old.root, template):
                return
        path.add_to(entry.root, template)
        form.entries.append(entry)

    def _replay(self, args: Any, kwargs: Any) -> Any:
        capture = Capture(self.name)
        try:
            with activated(capture):
                result = self.function(*args, **kwargs)
                capture.forget()
                capture.cut(final=True)
        except BaseException:
            capture.abandon()
            raise
        capture.close()
        return result

    def _note(self, capture: Capture, why: str, reasons: list[str], seconds: float) -> None:
        pieces = [p for p in capture.log if isinstance(p, Piece)]
        nodes = sum(p.segment.nodes for p in pieces)
        self.fact.captures += 1
        self.fact.pieces, self.fact.nodes = len(pieces), nodes
        self.fact.seconds += seconds
        if why:
            self.fact.recaptures.append(why)
        for reason in reasons:
            if reason not in self.fact.effects:
                self.fact.effects.append(reason)
        event("capture", function=self.name, pieces=len(pieces), nodes=nodes, seconds=seconds, why=why, effects=tuple(reasons))


def _pinned(leaves: Sequence[Tensor], watch: Watch) -> list[tuple[int, Tensor]]:
    """Arguments that the function also reaches by another way: those are looked up by identity."""
    return [
        (i, t) for i, t in enumerate(leaves) if any(r[3] is t and not r[4].startswith("argument") for r, _ in watch.found if r[0] == IS)
    ]


# ---------------------------------------------------------------------- forms of arguments
def form_of(value: Any, leaves: list[Tensor], seen: dict[int, int]) -> Any:
    """A hashable that two arguments share if one tree may serve both: types of tensors, values of all else."""
    if isinstance(value, Tensor):
        first = seen.setdefault(id(value), len(leaves))
        leaves.append(value)
        if value.in_place:
            return (id(value), value.shape, value.dtype)
        array = value._value
        return (first, value.shape, value.dtype) if array is None else (first, array.shape, array.dtype)
    kind = type(value)
    if kind in (tuple, list):
        return (kind, *[form_of(v, leaves, seen) for v in value])
    if isinstance(value, dict):
        return (kind, *[(k, form_of(v, leaves, seen)) for k, v in value.items()])
    if isinstance(value, tuple | list):
        return (kind, *[form_of(v, leaves, seen) for v in value])
    if isinstance(value, np.ndarray):
        return (kind, value.shape, value.dtype, value.tobytes() if value.nbytes <= 1 << 16 else id(value))
    if value is None or isinstance(value, bool | int | float | str | bytes | complex | Type | np.generic):
        return (kind, value)
    return (kind, id(value))


@contextmanager
def _watched(watch: Watch, capture: Capture) -> Iterator[None]:
    """Within, the watch sees the frames that are entered; where a profiler sees them already, Python runs at each call."""
    if sys.getprofile() is not None:
        capture.effect("is being profiled")
        yield
        return
    gc.callbacks.insert(0, watch.collection_starts)
    gc.callbacks.append(watch.collection_ends)
    sys.setprofile(watch.hook)
    try:
        yield
    finally:
        if sys.getprofile() == watch.hook:
            sys.setprofile(None)
        gc.callbacks.remove(watch.collection_starts)
        gc.callbacks.remove(watch.collection_ends)


@contextmanager
def young_heap() -> Iterator[None]:
    """Within, `gc.collect` looks only at objects made since: on a heap of a million (large packages) it would take a second at every trace."""
    if gc.get_freeze_count():  # a trace within a trace, or the script's own wish
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _key(args: Any, kwargs: Any, leaves: list[Tensor]) -> Any:
    """The form of a call; its tensors are added to `leaves`."""
    return (form_of(args, leaves, {}), form_of(kwargs, leaves, {}) if kwargs else None)


def _changed(args: Any, kwargs: Any, key: Any, leaves: list[Tensor]) -> bool:
    """Whether the function has changed a container among its arguments."""
    now: list[Tensor] = []
    return _key(args, kwargs, now) != key or any(a is not b for a, b in zip(now, leaves, strict=True))


def _objects(value: Any) -> list[Any]:
    """What is neither a tensor nor a plain value nor a container in arguments: known by identity, so followed by guards."""
    if isinstance(value, list | tuple):
        return [o for v in value for o in _objects(v)]
    if isinstance(value, dict):
        return [o for v in value.values() for o in _objects(v)]
    plain = isinstance(value, Tensor | bool | int | float | str | bytes | complex | Type | np.generic) or value is None
    large = isinstance(value, np.ndarray) and value.nbytes > 1 << 16
    return [] if plain or (isinstance(value, np.ndarray) and not large) else [value]


# ---------------------------------------------------------------------- the public face
def jit(function: Any = None, *, capture_mode: str = "ast", jit_level: str = "O0", dynamic: int = 0, fullgraph: bool = False, backend: str = "",
        **options: Any) -> Any:  # fmt: skip
    """The function, captured: its operators run as compiled Programs.

    function: a function, method or cell.   The other arguments are MindSpore's and choose nothing here: there is one way to capture.

    >>> from jumar.frontend.tensor import Tensor
    >>> double = jit(lambda x: x)
    """
    if jit_level not in ("", "O0", "O1", "O2"):
        raise ValueError(f"jit: jit_level must be one of 'O0', 'O1', 'O2', got {jit_level!r}")
    if capture_mode not in ("ast", "bytecode", "trace"):
        raise ValueError(f"jit: capture_mode must be one of 'ast', 'bytecode', 'trace', got {capture_mode!r}")
    if function is None:
        return functools.partial(
            jit, capture_mode=capture_mode, jit_level=jit_level, dynamic=dynamic, fullgraph=fullgraph, backend=backend, **options
        )
    if isinstance(function, Captured):
        return function
    return Captured(function)


def call_cell(cell: Any, args: Any, kwargs: Any) -> Any:
    """A cell called in GRAPH mode with nothing under way."""
    captured = cell.__dict__.get("_captured")
    if captured is None:
        captured = Captured(_CellCall(cell), type(cell).__name__)
        object.__setattr__(cell, "_captured", captured)
    return captured(*args, **kwargs)


class _CellCall:
    """A cell as a function.   (A lambda would be a frame of ours without globals to guard.)"""

    def __init__(self, cell: Any) -> None:
        self.cell = cell

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.cell(*args, **kwargs)


def jit_class(cls: Any) -> Any:
    """The class itself: objects of any class may be used in captured functions."""
    return cls
