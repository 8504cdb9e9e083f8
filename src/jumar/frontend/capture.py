"""Capture: a Python function over Tensors becomes Programs (GRAPH mode, `jit`).

In: a function and its arguments.  Out: its result, by running it under a `Capture` the first time, and without Python from then on where it only computes.
A captured function is a tree of stages: pieces that run, then a value that decides which stage is next, or the result.  Guards (guards.py) say whether
the tree still stands for the function; where they do not hold, or a branch was never taken, Python runs again and the tree grows.
"""

from __future__ import annotations

import functools
import gc
import sys
import time
import types as pytypes
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jumar.base import Array, RuntimeFault, event
from jumar.frontend.dtype import Type
from jumar.frontend.engine import execute
from jumar.frontend.explain import FACTS, Fact
from jumar.frontend.guards import EPOCH, IS, Record, Watch, failing
from jumar.frontend.recorder import Capture, Decision, HostCall, Piece, activated
from jumar.frontend.segment import Segment
from jumar.frontend.tensor import LOCAL, Tensor, element, wrap
from jumar.ir import Node, Op
from jumar.runtime import Bound

MAX_ENTRIES = 8  # trees for one form of arguments; more means that something changes at each call
MAX_FORMS = 32  # forms of arguments
MAX_BRANCHES = 16  # values that one decision may have


# ---------------------------------------------------------------------- what a tree is made of
@dataclass(frozen=True)
class Arg:
    """The value of argument tensor `index`."""

    index: int

    def get(self, leaves: Sequence[Tensor], slots: Sequence[Array]) -> Array:
        return leaves[self.index].array

    def tensor_of(self, leaves: Sequence[Tensor]) -> Tensor:
        return leaves[self.index]


@dataclass(frozen=True, eq=False)
class Held:
    """The value of a tensor from outside: a parameter, a global."""

    tensor: Tensor

    def get(self, leaves: Sequence[Tensor], slots: Sequence[Array]) -> Array:
        return self.tensor.array

    def tensor_of(self, leaves: Sequence[Tensor]) -> Tensor:
        return self.tensor


@dataclass(frozen=True)
class Slot:
    """Value `index` of those that were computed on the way."""

    index: int

    def get(self, leaves: Sequence[Tensor], slots: Sequence[Array]) -> Array:
        return slots[self.index]


@dataclass(frozen=True)
class Drawn:
    """A generator's key (index -1), or its next offset but `index`."""

    generator: Any
    index: int

    def get(self, leaves: Sequence[Tensor], slots: Sequence[Array]) -> Array:
        return np.array(self.generator.seed_value if self.index < 0 else self.generator.offset + self.index, np.uint64)


Target = Arg | Held  # a tensor from outside
Source = Target | Slot | Drawn


class Run:
    """A piece to run.   Its results become the next slots.   Tensors from outside are looked at by identity only: their arrays seldom change."""

    def __init__(self, segment: Segment, sources: tuple[Source, ...], numbers: tuple[Array, ...]) -> None:
        self.segment = segment
        self.given = [s for s in sources if not isinstance(s, Held)]
        self.held = [(i, s.tensor) for i, s in enumerate(sources) if isinstance(s, Held)]
        self.numbers = [numbers[i] for i in segment.lifted]
        self.count = len(sources)
        self.bound: Bound | None = None
        self.arrays: list[Any] = []

    def __call__(self, leaves: Sequence[Tensor], slots: Sequence[Array]) -> list[Array]:
        bound, arrays = self.bound, self.arrays
        if bound is None:
            bound = self._bind()
        else:
            for at, (i, tensor) in enumerate(self.held):
                if tensor._value is not arrays[at]:
                    bound.put(i, tensor.array)
                    arrays[at] = tensor._value
        return bound(*[s.get(leaves, slots) for s in self.given])

    def _bind(self) -> Bound:
        stay: list[Array | None] = [None] * self.count
        for i, tensor in self.held:
            stay[i] = tensor.array
        self.arrays = [t.array for _, t in self.held]
        self.bound = self.segment.instance.bind([*stay, *self.numbers])
        return self.bound


@dataclass(frozen=True, eq=False)
class RunHost:
    """An operator that runs on the host.   Its results become the next slots; their types decide how to go on."""

    op: Op
    sources: tuple[Source, ...]


@dataclass(frozen=True, eq=False)
class Finish:
    """result: the structure of what is returned.   writes: tensors that take a value; draws: how far generators move on."""

    result: Any
    writes: tuple[tuple[Target, Source, bool], ...]  # target, source, whether the target takes the memory of the slot
    draws: tuple[tuple[Any, int], ...]


@dataclass
class Stage:
    """Steps, then an end: `finish`, or a decision on `source` with a stage for each value met."""

    steps: list[Run | RunHost] = field(default_factory=list)
    source: Source | None = None
    index: Any = None
    kind: Any = None
    children: dict[Any, Stage] = field(default_factory=dict)
    finish: Finish | None = None


@dataclass
class Entry:
    """One tree with its guards."""

    guards: list[Record]
    cell_guards: list[Record]
    epoch: int
    pinned: list[tuple[int, Tensor]]  # arguments that the function also reads from outside
    keep: Any
    root: Stage = field(default_factory=Stage)

    def failing(self, leaves: Sequence[Tensor]) -> str:
        """Which guard does not hold; empty where all do."""
        for i, tensor in self.pinned:
            if leaves[i] is not tensor:
                return f"argument {i} is another tensor than the one read from outside"
        found = failing(self.guards)
        if not found and self.epoch != EPOCH[0]:
            found = failing(self.cell_guards)
            if not found:
                self.epoch = EPOCH[0]
        return found


@dataclass
class Form:
    """What is known for one form of arguments.   replayed: why Python runs at each call, or empty."""

    entries: list[Entry] = field(default_factory=list)
    replayed: str = ""
    calls: int = 0


_MISS = object()


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
        key = (form_of(args, leaves, {}), form_of(kwargs, leaves, {}) if kwargs else None)
        form = self.forms.get(key)
        if form is None:
            form = self.forms[key] = Form()
            if len(self.forms) > 2 * MAX_FORMS:
                self.forms.popitem(last=False)
        form.calls += 1
        why = ""
        if not form.replayed:
            for entry in form.entries:
                why = entry.failing(leaves)
                if why:
                    continue
                result = _walk(entry, leaves)
                if result is not _MISS:
                    return result
                why = "a branch is taken for the first time"
                break
        return self._trace(form, args, kwargs, leaves, why)

    # ------------------------------------------------------------------ running Python
    def _trace(self, form: Form, args: Any, kwargs: Any, leaves: list[Tensor], why: str) -> Any:
        if not self.fact.captures:
            FACTS.append(self.fact)
        if not form.replayed and len(form.entries) >= MAX_ENTRIES:
            form.replayed = f"changes at each call: {why}"
        elif not form.replayed and len(self.forms) > MAX_FORMS:
            form.replayed = "plain arguments change at each call"
        if form.replayed:
            self.fact.replays += 1
            return self._replay(args, kwargs)
        start = time.perf_counter()
        capture = Capture(self.name)
        watch = Watch(capture.effect)
        watch.follow(self.function, self.name, "", 0)
        for root in _objects((args, kwargs)):
            watch.follow(root, "argument", "", 0)
        if sys.getprofile() is None:
            sys.setprofile(watch.hook)
        else:
            capture.effect("is being profiled")
        try:
            with activated(capture):
                result = self.function(*args, **kwargs)
                sys.setprofile(None) if sys.getprofile() == watch.hook else None
                capture.forget()
                outside = [t for t in capture.alive() if id(t) not in capture.written]
                capture.cut(final=True)
                guards, cell_guards, changed = watch.finish()
                if changed:
                    capture.effect(f"changes {changed}", located=False)
        except BaseException:
            if sys.getprofile() == watch.hook:
                sys.setprofile(None)
            capture.abandon()
            raise
        path = _Path(capture, leaves)
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

    def _grow(self, form: Form, path: _Path, template: Any, entry: Entry) -> None:
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


class _Path:
    """What one capture did, in terms of sources."""

    def __init__(self, capture: Capture, leaves: Sequence[Tensor]) -> None:
        self.capture = capture
        self.args = {id(t): i for i, t in reversed(list(enumerate(leaves)))}
        self.slots: dict[Node, int] = {}
        self.returned: set[int] = set()
        self.refused = ""
        self.owned: dict[Source, int] = {}  # slot -> the tensor that takes its memory; others get copies
        for done in capture.log:
            for node in done.wanted if isinstance(done, Piece) else done.results if isinstance(done, HostCall) else ():
                self.slots[node] = len(self.slots)
        for tensor, _ in capture.written.values():
            if tensor._node in self.slots:
                self.owned.setdefault(Slot(self.slots[tensor._node]), id(tensor))

    def source(self, node: Node) -> Source:
        """Where the value of a known node comes from at the next call."""
        if node in self.slots:
            return Slot(self.slots[node])
        if node in self.capture.drawn:
            return Drawn(*self.capture.drawn[node])
        tensor = self.capture.bound[node]
        return Arg(self.args[id(tensor)]) if id(tensor) in self.args else Held(tensor)

    def add_to(self, root: Stage, template: Any) -> bool:
        """Follows the tree and adds what is new.   False where the tree does not fit: it belongs to other code."""
        stage = root
        fresh = not root.steps and root.source is None and root.finish is None
        at = 0
        for done in self.capture.log:
            if isinstance(done, Decision):
                source = self.source(done.node)
                if stage.source is None:
                    if not fresh:
                        return False
                    stage.source, stage.index, stage.kind = source, done.index, done.kind
                value: Any = (type(done.value), done.value)
            else:
                if fresh:
                    stage.steps.append(self.step(done))
                elif at >= len(stage.steps):
                    return False
                at += 1
                if isinstance(done, Piece):
                    continue
                stage.source = stage.source or Slot(-1)
                value = tuple((self.capture.known[n].shape, self.capture.known[n].dtype) for n in done.results)
            if len(stage.children) >= MAX_BRANCHES and value not in stage.children:
                self.capture.effect("decides by a value that differs at each call", located=False)
                return True
            if value not in stage.children:
                stage.children[value] = Stage()
                fresh = True
            stage, at = stage.children[value], 0
        if stage.finish is None:
            stage.finish = Finish(template, self.writes(), tuple(self.capture.draws.items()))
        return True

    def step(self, done: Piece | HostCall) -> Run | RunHost:
        sources = tuple(self.source(n) for n in done.inputs)
        return Run(done.segment, sources, done.numbers) if isinstance(done, Piece) else RunHost(done.op, sources)

    def writes(self) -> tuple[tuple[Target, Source, bool], ...]:
        """What is left to write after the pieces: parameters that a piece has updated where they are need nothing."""
        found: list[tuple[Target, Source, bool]] = []
        for tensor, old in self.capture.written.values():
            target: Target = Arg(self.args[id(tensor)]) if id(tensor) in self.args else Held(tensor)
            if tensor._value is old and isinstance(target, Held):
                continue
            source = self.source(tensor._node)  # type: ignore[arg-type]
            found.append((target, source, isinstance(source, Slot) and self.owned.get(source) == id(tensor)))
        return tuple(found)

    def template(self, value: Any) -> Any:
        """The structure of a result, with sources in place of tensors."""
        if isinstance(value, Tensor):
            self.returned.add(id(value))
            if id(value) in self.args:
                return Whole(Arg(self.args[id(value)]))
            node = value._node if value._recorder is self.capture else self.capture.nodes.get(id(value))
            if node is None or (node in self.capture.bound and node not in self.slots):
                return Whole(Held(value if node is None else self.capture.bound[node]))
            if id(value) in self.capture.written:
                return Whole(Held(value))
            source = self.source(node)
            return Result(source, not (isinstance(source, Slot) and self.owned.setdefault(source, id(value)) == id(value)))
        if type(value) in (tuple, list):
            return Items(type(value), tuple(self.template(v) for v in value))
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return Items(type(value)._make, tuple(self.template(v) for v in value))  # type: ignore[attr-defined]
        if type(value) in (dict, OrderedDict):
            return Entries(type(value), tuple(value), tuple(self.template(v) for v in value.values()))
        if not isinstance(value, bool | int | float | complex | str | bytes | type(None) | Type | np.generic | slice | range | type):
            self.refused = self.refused or f"returns an object of {type(value).__name__}"
        return Plain(value)


@dataclass(frozen=True, eq=False)
class Plain:
    """A Python value as it is."""

    value: Any

    def make(self, leaves: Sequence[Tensor], slots: Sequence[Array]) -> Any:
        return self.value


@dataclass(frozen=True, eq=False)
class Whole:
    """A tensor from outside itself."""

    source: Target

    def make(self, leaves: Sequence[Tensor], slots: Sequence[Array]) -> Any:
        return self.source.tensor_of(leaves)


@dataclass(frozen=True, eq=False)
class Result:
    """A new tensor.   copied: somebody else has the memory of the value."""

    source: Source
    copied: bool

    def make(self, leaves: Sequence[Tensor], slots: Sequence[Array]) -> Any:
        array = self.source.get(leaves, slots)
        return wrap(array.copy() if self.copied else array)


@dataclass(frozen=True, eq=False)
class Items:
    """A list or tuple."""

    kind: Any
    parts: tuple[Any, ...]

    def make(self, leaves: Sequence[Tensor], slots: Sequence[Array]) -> Any:
        return self.kind([p.make(leaves, slots) for p in self.parts])


@dataclass(frozen=True, eq=False)
class Entries:
    """A dict."""

    kind: Any
    keys: tuple[Any, ...]
    parts: tuple[Any, ...]

    def make(self, leaves: Sequence[Tensor], slots: Sequence[Array]) -> Any:
        return self.kind((k, p.make(leaves, slots)) for k, p in zip(self.keys, self.parts, strict=True))


# ---------------------------------------------------------------------- running a tree
def _walk(entry: Entry, leaves: Sequence[Tensor]) -> Any:
    """The result by the tree, or _MISS where a branch is new or a tensor has another type by now."""
    stage = entry.root
    slots: list[Array] = []
    while True:
        for step in stage.steps:
            if isinstance(step, Run):
                try:
                    slots += step(leaves, slots)
                except RuntimeFault as fault:
                    if fault.code == "run-inputs":
                        return _MISS
                    raise
            else:
                result = execute(step.op, [s.get(leaves, slots) for s in step.sources])
                results = result if isinstance(result, tuple) else (result,)
                slots += results
                value: Any = tuple((r.shape, r.dtype) for r in results)
        finish = stage.finish
        if finish is not None:
            break
        if stage.source is None:
            return _MISS
        if not isinstance(stage.source, Slot) or stage.source.index >= 0:
            found = element(stage.source.get(leaves, slots), stage.index, stage.kind)
            value = (type(found), found)
        following = stage.children.get(value)
        if following is None:
            return _MISS
        stage = following
    for target, source, whole in finish.writes:
        array = source.get(leaves, slots)
        target.tensor_of(leaves)._value = array if whole else array.copy()
    for generator, count in finish.draws:
        generator.offset += count
    return finish.result.make(leaves, slots)


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
