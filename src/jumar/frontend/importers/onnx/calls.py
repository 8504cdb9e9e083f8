"""`Evaluator`: a graph of an ONNX file as a function from arrays to arrays, and what every call's types and values led to.

In: an `OnnxGraph` and a compiler.  Out: results; frontend/model.py calls it, and so do loops on the host.  What is new is traced by evaluator.py, which is
imported then: a call whose stages are known, in memory or on disk, walks their plan (plan.py) and runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from jumar.base import Array, ImportFault, span, type_of
from jumar.frontend.importers.onnx.plan import (
    Compile,
    Finish,
    Frame,
    HostCall,
    Interpreted,
    Keeper,
    NeedsValue,
    Segment,
    Slot,
    Stage,
    Straight,
    Tree,
    Walk,
    flatten,
)
from jumar.frontend.importers.onnx.value import Value, leaves

if TYPE_CHECKING:
    from jumar.frontend.importers.onnx.graph import OnnxGraph
    from jumar.ir import Graph

TRACING = threading.RLock()  # one trace at a time: traces grow the tree of stages, and Python would not run two at once anyway


@dataclass(eq=False)
class Evaluator:
    """A graph as a function of arrays, with everything that was learnt from its calls.

    source: gives the graph, which is read only where something is new.  names: what the inputs are called, those of the graph first, then what it
    reads from outside.  outer: values known from outside.  keeper, key: where finished stages are kept on disk, and under which name.
    """

    source: Callable[[], OnnxGraph]
    names: tuple[str, ...]
    compile: Compile
    outer: Mapping[str, Value] = field(default_factory=dict)
    keeper: Keeper | None = None
    key: str = ""
    roots: dict[Any, Stage] = field(default_factory=dict)

    def __call__(self, *inputs: Tree) -> list[Tree]:
        """Results of the graph, one tree for each output."""
        frame: Frame = []
        structure = tuple(flatten(tree, frame) for tree in inputs)
        given = len(frame)
        walk = Walk(self.root(structure), frame, self.keeper)
        finish = walk.advance(alone=False)
        if finish is None:
            with TRACING:
                del frame[given:]
                walk = Walk(self.root(structure), frame, self.keeper)
                finish = walk.advance(alone=True) or self.trace(walk, structure)
        return [_result(tree, frame, given) for tree in finish.outputs]

    def straight(self, arrays: Sequence[Array]) -> Straight | None:
        """How calls with arrays of these types run, where that is one compiled piece."""
        stage = self.roots.get(tuple(type_of(a) for a in arrays))
        match stage:
            case Stage(steps=[Segment(executable=executable, inputs=inputs)], end=Finish(outputs=outputs)):
                slots = [o.index - len(arrays) for o in outputs if isinstance(o, Slot)]
                if len(slots) == len(outputs) == len(set(slots)) and min(slots) >= 0:
                    all_in, all_out = tuple(inputs) == tuple(range(len(arrays))), slots == list(range(len(slots)))
                    return Straight(executable, None if all_in else inputs, None if all_out else tuple(slots))
        return None

    def root(self, structure: Any) -> Stage:
        """The first stage of calls of that structure: in memory, on disk, or new."""
        found = self.roots.get(structure)
        if found is None:
            key = self.keeper.child_key(self.key, structure) if self.keeper and self.key else ""
            kept = self.keeper.load(key) if self.keeper and key else None
            found = self.roots.setdefault(structure, kept or Stage(key=key))
        return found

    def plan(self, structure: tuple[Any, ...]) -> Stage:
        """Compiles what can be compiled without values; the stage has no end where values are needed to go on."""
        with TRACING:
            stage = self.root(structure)
            if stage.end is None:
                try:
                    self.trace(Walk(stage, None, self.keeper), structure)
                except NeedsValue:
                    pass
            return stage

    def way(self, structure: tuple[Any, ...], frame: Frame) -> list[Stage]:
        """The stages that a call takes; they have been compiled by an earlier call.   frame: its inputs, flat."""
        walk = Walk(self.root(structure), frame, self.keeper)
        walk.advance(alone=True)
        return walk.path

    def graphs(self, structure: tuple[Any, ...], frame: Frame | None) -> tuple[list[Graph], tuple[str, ...]]:
        """The graphs of a call, traced anew: those of pieces that a cut ended, then the one that gives the outputs, all of them; and what runs on the
        host between them.

        frame: the inputs, flat; None where there are none, and then a cut is an error."""
        from jumar.frontend.importers.onnx.evaluator import begin, evaluate  # noqa: PLC0415  (see trace)

        graph = self.source()
        with TRACING:
            walk = Walk(Stage(), frame)
            trace, inputs, scope = begin(graph, walk, Interpreted, self.names, structure, self.outer)
            try:
                outputs = evaluate(trace, scope)
            except NeedsValue as error:
                raise ImportFault(
                    f"onnx: value of {error.node} must be known to go on, and only a run can tell it",
                    loc=trace.loc, hint="give inputs instead of dims", code="values-needed",
                ) from error  # fmt: skip
            steps = [s.graph for stage in walk.path for s in stage.steps if isinstance(s, Segment) and s.graph is not None]
            hosts = dict.fromkeys(s.name for stage in walk.path for s in stage.steps if isinstance(s, HostCall))
            return [*steps, trace.whole(outputs, graph.outputs, [n for v in inputs for n in leaves(v)])], tuple(hosts)

    def trace(self, walk: Walk, structure: tuple[Any, ...]) -> Finish:
        """Evaluates the graph on values of that structure, along a walk and beyond its end."""
        # 0.1 s: a call whose stages come from the cache needs neither rules nor operators
        from jumar.frontend.importers.onnx.evaluator import begin, evaluate  # noqa: PLC0415

        graph = self.source()
        with span("import", graph=graph.name):
            trace, _, scope = begin(graph, walk, self.compile, self.names, structure, self.outer)
            finish: Finish = trace.finish(evaluate(trace, scope), graph.outputs)
        walk.keep()
        return finish


def _result(tree: Tree, frame: Frame, given: int) -> Tree:
    """The tree's arrays; those that are not this call's own (weights, its inputs) copied, since the caller may write into results."""
    match tree:
        case list():
            return [_result(t, frame, given) for t in tree]
        case Slot(index=index) if index >= given:
            return frame[index]
        case Slot(index=index):
            return frame[index].copy()
        case np.ndarray():
            return tree.copy()
    return tree
