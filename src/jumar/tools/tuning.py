"""Finds faster plans for the contractions of a compiled piece by measuring them on this machine.

In: a piece (tools/enable/pieces.py) and a target.  Out: `Tuned`: for each kind of layer what the model of costs expected, what was measured to be the
fastest, and whether the whole piece keeps it.  Comes from `jumar tune` (tune.py), which writes the choices.

Each layer is compiled alone, once for each option of each question that its schedule asks (base/choices.py), and the options run in turns, so that
each finds the caches as the others left them.  A layer alone is not a layer in its model: so all winners are put in, each layer is timed where it
stands, those that lose there are taken out, and the rest stays only if the whole piece is faster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TypeVar

import numpy as np

from jumar.base import Array, Asked, Option, Question, TensorType, trying
from jumar.compiler import Assembled, finish, host_function
from jumar.device import Target
from jumar.ir import Constant, Graph, Node, param, same_node
from jumar.operators import find_schedule
from jumar.runtime import Instance
from jumar.tools.enable.pieces import Piece

Key = TypeVar("Key")
Clock = Callable[[], float]
LEAST_GAIN = 0.03  # of a layer alone, before another plan is thought of
TURNS_S, LEAST_TURNS, MOST_TURNS = 0.5, 5, 40  # of the options of one question
WHOLE_S, WHOLE_TURNS = 3.0, 200  # of the whole piece, where a per cent has to show
HOPELESS, AFTER = 1.5, 3  # an option this many times slower than the best after so many turns runs no more
PROFILES = 7


@dataclass
class Layer:
    """Contractions that ask the same questions.   owners: their places among the piece's nodes; gain_us: of all of them in the whole piece."""

    node: Node
    owners: list[int]
    asked: dict[Question, Asked]
    answers: dict[Question, Option] = field(default_factory=dict)
    expected_us: float = 0.0
    measured_us: float = 0.0
    gain_us: float = 0.0
    kept: bool = False

    @property
    def label(self) -> str:
        """What it is: the sizes that its first question names."""
        first = next(iter(self.asked.values())).question
        return f"{first.kind} {first.facts.partition(', tile')[0]}"

    def plan(self, measured: bool) -> str:
        """The plan in words: the model's, or the measured one."""
        words = [a.tell(self.answers.get(q, a.expected) if measured else a.expected) for q, a in self.asked.items()]
        return "; ".join(words)


@dataclass(frozen=True)
class Tuned:
    """layers that have a choice; before_s, after_s: of a run of the whole piece by the model's plans and with those kept; complete: nobody stopped it."""

    layers: tuple[Layer, ...]
    before_s: float
    after_s: float
    complete: bool

    @property
    def choices(self) -> dict[Question, Option | None]:
        """For every question that was looked at: the option to take, or None for the model's."""
        found: dict[Question, Option | None] = {}
        for layer in self.layers:
            if layer.measured_us:
                found |= {q: layer.answers.get(q) if layer.kept else None for q in layer.asked}
        return found


def tune(piece: Piece, target: Target, threads: int, tick: Callable[[str, int, int], None], clock: Clock = time.perf_counter) -> Tuned:
    """Measures every layer and then the whole.   tick: told what is measured, how many are done, and of how many.

    Ctrl-C ends the measuring of layers; what was found so far is still tried in the whole piece.
    """
    before = piece.compiled.assembled
    graph = piece.compiled.graph
    assert before is not None and graph is not None, "a piece that was compiled afresh has both"
    layers = layers_of(before, target)
    complete = True
    try:
        settled: dict[Question, Option] = {}
        for at, layer in enumerate(layers):
            tick(layer.label, at, len(layers))
            search(layer, target, threads, settled, clock)
            settled |= layer.answers
    except KeyboardInterrupt:
        complete = False
    tick("the whole model", len(layers), len(layers))
    before_s, after_s = settle(piece, graph, before, target, threads, layers, clock)
    return Tuned(tuple(layers), before_s, after_s, complete)


def layers_of(assembled: Assembled, target: Target) -> list[Layer]:
    """The nodes whose schedules have a choice, those that ask the same together."""
    found: dict[tuple[Question, ...], Layer] = {}
    for at, node in enumerate(dict.fromkeys(assembled.owners)):
        schedule = find_schedule(target.name, node.op)
        if schedule is None:
            continue
        with trying({}) as trial:
            schedule(node, target)
        asked = {q: a for q, a in trial.asked.items() if len(a.options) > 1}
        if asked:
            found.setdefault(tuple(asked), Layer(node, [], asked)).owners.append(at)
    return list(found.values())


def search(layer: Layer, target: Target, threads: int, settled: Mapping[Question, Option], clock: Clock) -> None:
    """Measures the options of one question after the other; what the winner asks further is measured, too."""
    graph = alone(layer.node)
    inputs = [_values(p.type) for p in graph.params]
    pending = [q for q in layer.asked if q not in settled]
    first = True
    while pending:
        question = pending.pop(0)
        asked = layer.asked[question]
        answers = {**settled, **layer.answers}
        runs = {option: _runner(graph, target, threads, {**answers, question: option}, inputs) for option in asked.options}
        times = race(runs, clock)
        best = min(times, key=lambda option: times[option])
        if times[best] > (1 - LEAST_GAIN) * times[asked.expected]:
            best = asked.expected
        if first:
            layer.expected_us, first = times[asked.expected] * 1e6, False
        layer.measured_us = times[best] * 1e6
        if best != asked.expected:
            layer.answers[question] = best
            with trying({**answers, **layer.answers}) as trial:
                finish(graph, target)
            new = {q: a for q, a in trial.asked.items() if q not in layer.asked and len(a.options) > 1}
            pending = [q for q in pending if q in trial.asked] + [q for q in new if q not in settled]
            layer.asked |= new


def race(runs: Mapping[Key, Callable[[], object]], clock: Clock, seconds: float = TURNS_S, most: int = MOST_TURNS) -> dict[Key, float]:
    """Median seconds of each, run in turns, `most` of them or as many as fit; those that are hopeless drop out early."""
    times: dict[Key, list[float]] = {key: [] for key in runs}
    running = list(runs)
    for key in running:
        runs[key]()
    end = clock() + seconds
    for turn in range(most):
        if turn >= LEAST_TURNS and clock() >= end:
            break
        if turn == AFTER:
            limit = HOPELESS * min(min(times[key]) for key in running)
            running = [key for key in running if min(times[key]) <= limit]
        for key in running:
            start = clock()
            runs[key]()
            times[key].append(clock() - start)
    return {key: median(each) for key, each in times.items()}


def settle(
    piece: Piece, graph: Graph, before: Assembled, target: Target, threads: int, layers: Sequence[Layer], clock: Clock
) -> tuple[float, float]:
    """Decides which layers keep their answers in the whole piece.   Seconds of a run before and after."""
    old = Instance(before.program, threads=threads, host=host_function)
    inputs = list(piece.inputs)
    found = [layer for layer in layers if layer.answers]
    while found:
        answers = {q: o for layer in found for q, o in layer.answers.items()}
        with trying(answers):
            _, after = finish(graph, target)
        new = Instance(after.program, threads=threads, host=host_function)
        gains = _gains(_profile(old, before, inputs), _profile(new, after, inputs))
        for layer in found:
            layer.gain_us = sum(gains[at] for at in layer.owners) if gains else layer.expected_us - layer.measured_us
        losing = [layer for layer in found if layer.gain_us <= 0]
        if losing:
            found = [layer for layer in found if layer.gain_us > 0]
            continue
        both = {"old": lambda: old.run(inputs), "new": lambda: new.run(inputs)}  # noqa: B023  (they run before the next round)
        times = race(both, clock, WHOLE_S, WHOLE_TURNS)
        if times["new"] < times["old"]:
            for layer in found:
                layer.kept = True
            return times["old"], times["new"]
        found = sorted(found, key=lambda layer: -layer.gain_us)[: len(found) // 2]
    seconds = race({"old": lambda: old.run(inputs)}, clock, WHOLE_S / 2, WHOLE_TURNS)["old"]
    return seconds, seconds


def alone(node: Node) -> Graph:
    """A graph of this node only: its constants stay, its other inputs are parameters."""
    params: dict[Node, Node] = {}
    for i in node.inputs:
        if not isinstance(i.op, Constant) and i not in params:
            assert isinstance(i.type, TensorType), "inputs of a node are tensors"
            params[i] = param(f"x{len(params)}", i.type)
    made = same_node(node, tuple(params.get(i, i) for i in node.inputs))
    outputs = tuple(made[i] for i in range(len(made.type))) if isinstance(made.type, tuple) else (made,)
    return Graph("layer", tuple(params.values()), outputs)


def _runner(
    graph: Graph, target: Target, threads: int, answers: Mapping[Question, Option], inputs: Sequence[Array]
) -> Callable[[], object]:
    with trying(answers):
        _, assembled = finish(graph, target)
    instance = Instance(assembled.program, threads=threads, host=host_function)
    out = instance.run(list(inputs))
    return lambda: instance.run(list(inputs), out)


def _values(type_: TensorType) -> Array:
    """Normal floats, small integers."""
    rng = np.random.default_rng(0)
    if type_.dtype.is_float:
        return np.asarray(rng.standard_normal(type_.dims)).astype(type_.dtype.numpy)
    return rng.integers(0, 2, type_.dims).astype(type_.dtype.numpy)


def _profile(instance: Instance, assembled: Assembled, inputs: Sequence[Array]) -> list[float]:
    """Microseconds of each node, in the order of their first steps: the median of several profiled runs."""
    order = {node: at for at, node in enumerate(dict.fromkeys(assembled.owners))}
    instance.run(list(inputs))
    runs = []
    for _ in range(PROFILES):
        each = [0.0] * len(order)
        for step in instance.profile(list(inputs)):
            each[order[assembled.owners[step.index]]] += step.us
        runs.append(each)
    return [median(values) for values in zip(*runs, strict=True)]


def _gains(before: Sequence[float], after: Sequence[float]) -> list[float]:
    """What each node gained; nothing where the two programs do not have the same nodes."""
    return [b - a for b, a in zip(before, after, strict=True)] if len(before) == len(after) else []
