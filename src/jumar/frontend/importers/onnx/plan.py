"""Plans: what a call does once it is traced: segments to run, values to look at, and where to go on.

In: segments and demands from trace.py while a call is traced for the first time.  Out: a tree of `Stage`s; later calls walk it without tracing.

A call has one *frame*, a list of arrays that only grows: first the inputs, then what each step appends.  A stage ends in a `Branch`
(the value in a slot, or the types that a host call gave, decide which stage comes next) or in a `Finish`.  A call that is the first
to take a way out of a branch is traced again from the start: everything up to there is in its frame, so nothing runs twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from jumar.base import Array, IRError, OpError, StackError, TensorType, type_of
from jumar.frontend.importers.onnx.value import as_array

if TYPE_CHECKING:
    from jumar.ir import Graph, Node, Op

Frame = list[Any]  # arrays, and the structures of what host calls gave
Tree = Any  # arrays of a call: an array, None, or a list of trees


class Executable(Protocol):
    """A compiled graph.   known: the arrays have the number, shapes and types of an earlier run, so nobody looks again."""

    def run(self, arrays: Sequence[Array], *, known: bool = False) -> list[Array]: ...


class Keeper(Protocol):
    """Stages on disk: what was traced once need not be traced by the next process."""

    def child_key(self, key: str, content: Any) -> str: ...

    def load(self, key: str) -> Stage | None: ...

    def save(self, stage: Stage) -> None: ...


Compile = Callable[["Graph"], Executable]


class Step(Protocol):
    """Something that reads slots of a frame and appends its results."""

    def run(self, frame: Frame) -> None: ...


@dataclass(frozen=True, eq=False)
class Segment:
    """A compiled piece of the model.   inputs: slots that its graph's parameters read."""

    executable: Executable
    inputs: tuple[int, ...]
    graph: Graph | None = None  # absent where it came from the cache

    def run(self, frame: Frame) -> None:
        frame += self.executable.run([frame[i] for i in self.inputs])


@contextmanager
def _values_fit(what: str) -> Iterator[None]:
    """What NumPy says about values that an operator cannot take, as an error of ours."""
    try:
        yield
    except StackError:
        raise
    except (ValueError, IndexError, TypeError, ArithmeticError, MemoryError, np.linalg.LinAlgError) as error:
        raise OpError(f"{what}: values must fit the operators that get them, got {type(error).__name__}: {error}", code="values") from error


@dataclass(frozen=True, eq=False)
class Interpreted:
    """A graph on the operators' NumPy references: the oracle, and quicker than compiling for a few small numbers."""

    graph: Graph

    def run(self, arrays: Sequence[Array], *, known: bool = False) -> list[Array]:
        from jumar.ir import interpret  # noqa: PLC0415  (4 ms: a compiled model from the cache holds no graph)

        with _values_fit(self.graph.name):
            return interpret(self.graph, arrays)


@dataclass(frozen=True, eq=False)
class RunOp:
    """A data-dependent operator as a function on the host."""

    op: Op

    def __call__(self, *arrays: Any) -> list[Any]:
        from jumar.ir import check_inputs  # noqa: PLC0415  (see Interpreted)

        check_inputs(self.op.name, self.op.signature, [type_of(a) for a in arrays if a is not None])
        with np.errstate(all="ignore"):
            result = self.op.reference(*arrays)
        return list(result) if isinstance(result, tuple) else [result]


@dataclass(frozen=True, eq=False)
class HostCall:
    """A Python function on trees of arrays: a data-dependent operator, a loop.   inputs: trees with slots, or arrays, as leaves.

    Appends the structure of the result, then its arrays.
    """

    function: Callable[..., Tree]
    inputs: Tree

    @property
    def name(self) -> str:
        """The operator, or that it is a loop."""
        return str(getattr(self.function, "op", "a loop"))

    def run(self, frame: Frame) -> None:
        at = len(frame)
        frame.append(None)
        with _values_fit(self.name):
            frame[at] = flatten(self.function(*fill(self.inputs, frame)), frame)


@dataclass(frozen=True, slots=True)
class Slot:
    """A leaf of a tree that lies in the frame."""

    index: int


@dataclass(eq=False)
class Branch:
    """What lies in a slot decides: an array by its bytes, a structure by its types."""

    slot: int
    stages: dict[Any, Stage] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Finish:
    """The call's results: trees with `Slot`s or arrays as leaves."""

    outputs: list[Tree]


@dataclass(frozen=True, slots=True, eq=False)
class Straight:
    """A call that is one compiled piece and nothing else.

    inputs, outputs: which of the call's arrays, and of the piece's results; None where they are all of them, in order.
    """

    executable: Executable
    inputs: tuple[int, ...] | None
    outputs: tuple[int, ...] | None

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """The call's outputs.   arrays: of the types that the piece was compiled for."""
        given = arrays if self.inputs is None else [arrays[i] for i in self.inputs]
        results = self.executable.run(given, known=True)
        return results if self.outputs is None else [results[i] for i in self.outputs]


@dataclass(eq=False)
class Stage:
    """Steps up to the next decision.   end: None while it was never traced to its end.   key: its name on disk, where it may lie there."""

    steps: list[Step] = field(default_factory=list)
    end: Branch | Finish | None = None
    key: str = ""
    kept: bool = False


class Text:
    """A string array as part of a structure: strings are known while tracing, so their content is part of the key."""

    __slots__ = ("array", "key")

    def __init__(self, array: Array) -> None:
        self.array = array
        self.key = (array.shape, tuple(array.ravel().tolist()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Text) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


Structure = TensorType | Text | None | tuple[Any, ...]  # of a tree; a tuple for a list


def flatten(tree: Tree, into: Frame) -> Structure:
    """Appends the arrays of a tree to a frame; gives the tree's structure, hashable.  Strings stay in the structure."""
    if tree is None:
        return None
    if isinstance(tree, list | tuple):
        return tuple(flatten(t, into) for t in tree)
    array = as_array(tree)
    if array.dtype == object:
        return Text(array)
    into.append(array)
    return type_of(array)


def fill(tree: Tree, frame: Frame) -> Tree:
    """The tree with slots replaced by what lies there."""
    match tree:
        case Slot(index=index):
            return frame[index]
        case list():
            return [fill(t, frame) for t in tree]
    return tree


def key_of(content: Any) -> Any:
    """What identifies the content of a slot."""
    if isinstance(content, np.ndarray):
        return (content.shape, content.dtype.name, content.tobytes())
    return content


class NeedsValue(Exception):
    """A value is needed that only a run can give, and this trace must not run."""

    def __init__(self, node: Node) -> None:
        super().__init__(str(node))
        self.node = node


MAX_STAGES = 1024  # ways out of one branch that are remembered


class Walk:
    """One call on its way through the tree.   frame None: compile only, nothing is run.

    It is first walked (`advance`) as far as the tree is known, then handed to a trace, which repeats the way from the root (`replay`) and goes on.
    """

    def __init__(self, root: Stage, frame: Frame | None, keeper: Keeper | None = None) -> None:
        self.frame = frame
        self.keeper = keeper
        self.path = [root]
        self.stage = 0  # where the trace is: index into path
        self.step = 0

    def advance(self, *, alone: bool) -> Finish | None:
        """Runs what is known; None where the call must be traced on.   alone: no other thread adds steps meanwhile."""
        assert self.frame is not None, "only a call with values runs"
        while True:
            stage = self.path[-1]
            end = stage.end  # read before the steps: a stage that has an end gets no more of them
            if end is None and not alone:
                return None
            for step in stage.steps:
                step.run(self.frame)
            match end:
                case Finish():
                    return end
                case Branch() as branch:
                    found = self._next(stage, branch)
                    if found is None:
                        return None
                    self.path.append(found)
                case _:
                    return None

    def _next(self, stage: Stage, branch: Branch) -> Stage | None:
        """The stage that the branch's slot leads to: in memory, or on disk."""
        assert self.frame is not None, "only a call with values decides"
        content = key_of(self.frame[branch.slot])
        found = branch.stages.get(content)
        if found is None and self.keeper and stage.key:
            found = self.keeper.load(self.keeper.child_key(stage.key, content))
            if found is not None:
                found = self._remember(branch, content, found)
        return found

    def _remember(self, branch: Branch, content: Any, stage: Stage) -> Stage:
        while len(branch.stages) >= MAX_STAGES:
            branch.stages.pop(next(iter(branch.stages)), None)
        return branch.stages.setdefault(content, stage)

    def keep(self) -> None:
        """Saves the finished stages of this way."""
        for stage in self.path:
            if self.keeper and stage.key and stage.end is not None and not stage.kept:
                stage.kept = True
                self.keeper.save(stage)

    # ---- for the trace ----

    def next_step(self, make: Callable[[], Step]) -> Step:
        """The step that stands here; made and run where this call is the first."""
        stage = self.path[self.stage]
        if self.step < len(stage.steps):
            step = stage.steps[self.step]
        else:
            if stage.end is not None:
                raise IRError("plan: a trace must repeat the steps of the one before: this is our bug", code="our-bug")
            step = make()
            if self.frame is not None:
                step.run(self.frame)
            stage.steps.append(step)
        self.step += 1
        return step

    def decide(self, slot: int) -> Any:
        """Ends the stage: the content of a slot, which is returned, decides how to go on."""
        assert self.frame is not None, "only a call with values decides"
        stage = self.path[self.stage]
        if stage.end is None:
            stage.end = Branch(slot)
        branch = stage.end
        if not isinstance(branch, Branch) or branch.slot != slot:
            raise IRError("plan: a trace must repeat the decisions of the one before: this is our bug", code="our-bug")
        if self.stage + 1 == len(self.path):
            content = key_of(self.frame[slot])
            key = self.keeper.child_key(stage.key, content) if self.keeper and stage.key else ""
            self.path.append(self._remember(branch, content, Stage(key=key)))
        self.stage += 1
        self.step = 0
        return self.frame[slot]

    def finish(self, outputs: list[Tree]) -> Finish:
        stage = self.path[self.stage]
        stage.end = Finish(outputs)
        return stage.end
