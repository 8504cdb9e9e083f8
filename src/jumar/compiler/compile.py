"""`compile`: a graph to a Program, through the stages.

In: a graph with numbers for dims, and a target.  Out: `Compiled`: the Program and a report of what each pass did, how each operator runs,
where the memory went and how long it took.  Comes after frontend (capture, importers), before runtime.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jumar.base import Event, config, during, recording, span
from jumar.compiler.assemble import Assembled, assemble
from jumar.compiler.host import host_function
from jumar.compiler.kernels import KernelMaker
from jumar.compiler.lower import Lowering, lower
from jumar.compiler.plan import Plan
from jumar.compiler.save import Saver
from jumar.compiler.stages import CAPTURE, stages
from jumar.device import Target, host
from jumar.ir import Graph
from jumar.runtime import Instance, Program


@dataclass(frozen=True)
class PassReport:
    """What one pass did.   before, after: operators; facts: what it noted."""

    stage: str
    name: str
    before: int
    after: int
    seconds: float
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Refusal:
    """A fusion that did not happen, and why.   nbytes: what it would have saved to write and read."""

    producer: str
    consumer: str
    nbytes: int
    reason: str
    loc: str = ""


@dataclass(frozen=True)
class CompileReport:
    """passes in order; selection: (operator, how it runs) -> how often; host: operators without native code; times in seconds."""

    passes: tuple[PassReport, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    selection: dict[tuple[str, str], int] = field(default_factory=dict)
    host: tuple[str, ...] = ()
    plan: Plan | None = None
    kernels: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    from_cache: bool = False


@dataclass(frozen=True)
class Compiled:
    """A Program, and what is known of its making (graph and lowering are absent when it came from the cache)."""

    program: Program
    report: CompileReport
    graph: Graph | None = None
    lowering: Lowering | None = None
    assembled: Assembled | None = None

    def instance(self, *, threads: int = 0) -> Instance:
        """The Program, ready to run."""
        return Instance(self.program, threads=threads, host=host_function)


def compile(graph: Graph, target: Target | None = None, *, threads: int = 0, save: str | Path | None = None) -> Compiled:
    """The Program of a graph.   threads: for making kernels; save: a folder for every stage (default: the setting `save_graphs`)."""
    target = target or host()
    saver = Saver(save or config("save_graphs"))
    start = time.perf_counter()
    with during(f"compiling graph {graph.name!r} for {target.name}"), recording() as record:
        saver.graph(CAPTURE, graph)
        graph, passes = optimize(graph, target, saver)
        lowering, assembled = finish(graph, target, threads=threads)
        saver.assembled(assembled, target)
    seconds = {name: record.seconds(name) for name in ("lower", "plan", "kernels", "constants")}
    seconds |= {"passes": sum(p.seconds for p in passes), "total": time.perf_counter() - start}
    report = CompileReport(
        tuple(passes),
        tuple(_refusals(record.events)),
        dict(Counter((c.node.op.name, c.how) for c in lowering.choices)),
        tuple(sorted({n.op.name for n in lowering.host_nodes})),
        assembled.plan,
        len(assembled.kernels),
        seconds,
    )
    return Compiled(assembled.program, report, graph, lowering, assembled)


def finish(graph: Graph, target: Target, *, threads: int = 0) -> tuple[Lowering, Assembled]:
    """The Program of a graph after all passes."""
    with KernelMaker(target, threads) as maker:
        with span("lower"):
            lowering = lower(graph, target, maker.add)
        made = maker.finish()
    return lowering, assemble(lowering, target, made)


def optimize(graph: Graph, target: Target, saver: Saver | None = None) -> tuple[Graph, list[PassReport]]:
    """The graph after all passes, and what each did."""
    reports: list[PassReport] = []
    for stage in stages(target):
        for step in stage.passes:
            start = time.perf_counter()
            before = graph.count()
            with during(f"running pass {step.name}"), recording() as record:
                graph = step(graph)
            facts: dict[str, Any] = {}
            for noted in record.events:
                if noted.name == step.name:
                    facts |= noted.facts
            reports.append(PassReport(stage.name, step.name, before, graph.count(), time.perf_counter() - start, facts))
            if saver:
                saver.graph(step.name, graph)
        if saver:
            saver.graph(stage.name, graph)
    return graph, reports


def _refusals(events: list[Event]) -> list[Refusal]:
    found = [Refusal(**e.facts) for e in events if e.name == "fusion refused"]
    return sorted(found, key=lambda r: -r.nbytes)
