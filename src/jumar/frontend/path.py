"""Paths: one capture of a function, in terms of where each value comes from at the next call.

In: a finished `Capture` and the call's tensors.  Out: stages added to a tree (tree.py), and the structure of the result.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from jumar.frontend.dtype import Type
from jumar.frontend.recorder import Capture, Decision, HostCall, Piece
from jumar.frontend.tensor import Tensor
from jumar.frontend.tree import (  # fmt: skip
    Arg,
    Drawn,
    Entries,
    Finish,
    Held,
    Items,
    Plain,
    Result,
    Run,
    RunHost,
    Slot,
    Source,
    Stage,
    Target,
    Whole,
)  # fmt: skip
from jumar.ir import Node

MAX_BRANCHES = 16  # values that one decision may have


class Path:
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
                elif at >= len(stage.steps) or not stage.steps[at].is_same(self.step(done)):
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

    def writes(self) -> tuple[tuple[Target, Source], ...]:
        """What is left to write after the pieces: parameters that a piece has updated where they are need nothing."""
        found: list[tuple[Target, Source]] = []
        for tensor, _ in self.capture.written.values():
            target: Target = Arg(self.args[id(tensor)]) if id(tensor) in self.args else Held(tensor)
            source = self.source(tensor._node)  # type: ignore[arg-type]
            if not (isinstance(target, Held) and self.capture.updated.get(tensor._node) is tensor):  # type: ignore[arg-type]
                found.append((target, source))
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
