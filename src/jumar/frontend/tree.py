"""Trees of stages: what a captured function has become, to be run without Python.

In: what `path.py` makes of a capture, and the tensors of a call.  Out: the function's result, by `walk`.
A stage is pieces that run, then a value that decides which stage is next, or the result.  An `Entry` is a tree with the guards under which it stands
for the function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jumar.base import Array, RuntimeFault
from jumar.frontend.engine import execute
from jumar.frontend.guards import EPOCH, Record, failing
from jumar.frontend.recorder import fits
from jumar.frontend.segment import Segment
from jumar.frontend.tensor import Tensor, element, wrap
from jumar.frontend.twin import TWIN, ran
from jumar.ir import Op
from jumar.runtime import Bound


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
        self.segment, self.sources = segment, sources
        self.given = [s for s in sources if not isinstance(s, Held)]
        self.held = [(i, s.tensor) for i, s in enumerate(sources) if isinstance(s, Held)]
        self.numbers = [numbers[i] for i in segment.lifted]
        self.count = len(sources)
        self.bound: Bound | None = None
        self.arrays: list[Any] = []

    def is_same(self, other: Run | RunHost) -> bool:
        """Whether the other does the same: a tree grows only where it does what was recorded."""
        return isinstance(other, Run) and self.segment is other.segment and same_sources(self.sources, other.sources)

    def __call__(self, leaves: Sequence[Tensor], slots: Sequence[Array]) -> list[Array]:
        bound, arrays = self.bound, self.arrays
        if bound is None:
            bound = self._bind()
        else:
            for at, (i, tensor) in enumerate(self.held):
                if tensor._value is not arrays[at]:
                    bound.put(i, tensor.array)
                    arrays[at] = tensor._value
        if TWIN:
            ran(self.segment.graph, lambda: self._received(leaves, slots))
        return bound(*[s.get(leaves, slots) for s in self.given])

    def _received(self, leaves: Sequence[Tensor], slots: Sequence[Array]) -> list[Array]:
        """What the piece runs on, in the order of its parameters."""
        return [*(s.tensor.array if isinstance(s, Held) else s.get(leaves, slots) for s in self.sources), *self.numbers]

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

    def is_same(self, other: Run | RunHost) -> bool:
        """Whether the other does the same."""
        return isinstance(other, RunHost) and self.op == other.op and same_sources(self.sources, other.sources)


def same_sources(mine: Sequence[Source], others: Sequence[Source]) -> bool:
    """Whether values come from the same places; tensors are the same if they are one."""
    if len(mine) != len(others):
        return False
    pairs = zip(mine, others, strict=True)
    return all(a.tensor is b.tensor if isinstance(a, Held) and isinstance(b, Held) else a == b for a, b in pairs)


@dataclass(frozen=True, eq=False)
class Finish:
    """result: the structure of what is returned.   writes: tensors that take a value; draws: how far generators move on."""

    result: Any
    writes: tuple[tuple[Target, Source], ...]
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


# ---------------------------------------------------------------------- the structure of a result
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
MISS = object()


def walk(entry: Entry, leaves: Sequence[Tensor]) -> Any:
    """The result by the tree, or MISS where a branch is new or a tensor has another type by now."""
    stage = entry.root
    slots: list[Array] = []
    while True:
        for step in stage.steps:
            if isinstance(step, Run):
                try:
                    slots += step(leaves, slots)
                except RuntimeFault as fault:
                    if fault.code == "run-inputs":
                        return MISS
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
            return MISS
        if not isinstance(stage.source, Slot) or stage.source.index >= 0:
            found = element(stage.source.get(leaves, slots), stage.index, stage.kind)
            value = (type(found), found)
        following = stage.children.get(value)
        if following is None:
            return MISS
        stage = following
    for target, source in finish.writes:
        tensor, array = target.tensor_of(leaves), source.get(leaves, slots)
        if fits(tensor.array, array):
            tensor.array[...] = array
        else:
            tensor._value = array.copy()
    for generator, count in finish.draws:
        generator.offset += count
    return finish.result.make(leaves, slots)
