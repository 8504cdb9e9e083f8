"""`jumar enable`: one model through every layer, each explained.

In: `Options`.  Out: `Report`, and a folder with report.html, report.json, stages/ and model.jmr.  The folder appears when it is
complete: everything is written beside it first, so that a stop in the middle leaves nothing half-written.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from jumar.base import Array, StackError, ToolError, config, type_of
from jumar.compiler import compile
from jumar.device import usable_cores
from jumar.frontend import Model, load
from jumar.ir import Graph
from jumar.runtime import save_package
from jumar.tools.enable import speed
from jumar.tools.enable.compile_time import compile_times, is_alive
from jumar.tools.enable.console import Teller
from jumar.tools.enable.environment import find_environment
from jumar.tools.enable.facts import Block, CompileFact, InputFact, MemoryFact, MissedFusion, NumericsFact, PassFact, Report
from jumar.tools.enable.graphs import boxes, kind, owners, place
from jumar.tools.enable.inputs import Chosen, Wanted, choose
from jumar.tools.enable.model import declared_inputs, describe
from jumar.tools.enable.numerics import verify
from jumar.tools.enable.page import page
from jumar.tools.enable.pieces import Piece, Pieces, compile_pieces
from jumar.tools.enable.settings import cache_fault
from jumar.tools.enable.twin import TwinRequest, batch_command
from jumar.tools.enable.twin_layer import Subject, subject_of, twin_layer
from jumar.tools.enable.units import plural


@dataclass(frozen=True)
class Options:
    """What the user asked for.   arrays: inputs that are at hand already, before files and made-up ones; twin: what NPUs would do with the model."""

    model: Path
    out: Path
    inputs: tuple[Wanted, ...] = ()
    dims: tuple[tuple[str, int], ...] = ()
    threads: int = 0
    runs: int = 30
    numerics: bool = True
    title: str = ""
    arrays: tuple[tuple[str, Array], ...] = ()
    source: str = ""
    notes: tuple[str, ...] = ()
    twin: TwinRequest | None = None


def enable(options: Options, teller: Teller) -> Report:
    """The report; everything is written before it returns."""
    threads = options.threads or config("threads") or usable_cores()
    with whole_folder(options.out) as folder, stages_saved(folder / "stages"):
        teller.working("environment", "looking at the machine")
        environment = find_environment()
        teller.environment(environment)

        teller.working("model", f"reading {options.model.name}")
        model = load(options.model, target="cpu", threads=threads)
        traced = _types_alone(model, options) if options.twin and options.twin.only and not options.twin.numerics else None
        chosen = traced[0] if traced else _inputs(model, options)
        facts = describe(options.model, model, chosen)
        teller.model(facts)
        report = Report(options.title or options.model.name, environment, facts)

        if options.twin and options.twin.only:
            with about_sizes(chosen):
                graphs, hosts = traced[1] if traced else model.traced(chosen.arrays)
                report = replace(report, warnings=(*options.notes, *model.warnings))
                teller.warnings(report.warnings)
                subject = replace(subject_of(graphs, chosen.arrays, model.inputs), hosts=hosts)
                report = twin_layer(report, subject, options.twin, folder, options.out, teller)
            return _end(report, Pieces((), ()), folder, options, teller)

        teller.working("graph engine", "compiling")
        with about_sizes(chosen):
            built = compile_pieces(model, chosen.arrays, threads=threads)
            pieces = built.pieces
            outputs = [np.asarray(o) for o in model.run(None, chosen.arrays)]
        report = replace(report, **_graph_engine(pieces), warnings=(*options.notes, *model.warnings, *_warnings(built)))
        teller.captured(report)
        teller.passes(report.passes, report.missed)
        teller.warnings(report.warnings)

        teller.working("compile time", "compiling again in new processes, with an empty cache and a full one")
        cold, cached = compile_times(options.model, chosen.arrays, threads=threads, cache=not cache_fault())
        report = replace(report, compile=_compile_fact(pieces, cold, cached), memory=_memory(pieces))
        assert report.compile is not None, "it was made in the line above"
        teller.compiled(report.compile)
        if report.memory:
            teller.memory(report.memory)

        if options.numerics:
            teller.working("numerics", "running the reference: NumPy, node by node")
            report = replace(report, numerics=_numerics(pieces, [p.name for p in model.outputs], outputs, teller))
            assert report.numerics is not None, "it was made in the line above"
            teller.numerics(report.numerics)

        teller.working("speed", "measuring")
        run = lambda: model.run(None, chosen.arrays)  # noqa: E731
        parts = [speed.Piece(p.instance, p.inputs, [(kind(n.op), place(n)) for n in owners(p.compiled)]) for p in pieces]
        report = replace(report, speed=speed.measure_speed(run, parts, runs=options.runs, threads=threads, tick=teller.part))
        assert report.speed is not None, "it was made in the line above"
        teller.speed(report.speed)

        if options.twin:
            subject = Subject([p.graph for p in pieces], [p.inputs for p in pieces], batch_command(model.inputs), built.hosts)
            report = twin_layer(report, subject, options.twin, folder, options.out, teller)
        return _end(report, built, folder, options, teller)


def _end(report: Report, built: Pieces, folder: Path, options: Options, teller: Teller) -> Report:
    """Everything written, and said where."""
    teller.working("report", "writing")
    told = len(report.warnings)
    report = _write(report, built, folder, options)
    teller.warnings(report.warnings[told:])
    for kind_of_file, where in report.files.items():
        teller.line("written" if kind_of_file == "report" else "", f"{kind_of_file}: {where}")
    return report


def _types_alone(model: Model, options: Options) -> tuple[Chosen, tuple[list[Graph], tuple[str, ...]]] | None:
    """The model's graphs from the types of its inputs, however large they are; None where values decide what is done."""
    declared = declared_inputs(model, list(options.inputs))
    if options.arrays or set(declared) != {p.name for p in model.inputs if not p.has_default}:
        return None
    chosen = choose(declared, options.inputs, dict(options.dims), values=False)
    try:
        with about_sizes(chosen):
            return chosen, model.traced(dims={d.name: d.value for d in chosen.dims})
    except StackError as error:
        if error.code == "values-needed":
            return None
        raise


def _inputs(model: Model, options: Options) -> Chosen:
    if options.arrays:
        arrays = dict(options.arrays)
        ports = {p.name: p for p in model.inputs}
        facts = tuple(InputFact(n, str(ports[n].type), str(type_of(a)), options.source) for n, a in arrays.items())
        return Chosen(arrays, facts, ())
    return choose(declared_inputs(model, list(options.inputs)), options.inputs, dict(options.dims))


@contextmanager
def about_sizes(chosen: Chosen) -> Iterator[None]:
    """Adds to an error that sizes were made up, which may be why."""
    try:
        yield
    except StackError as error:
        if made_up := [f"{d.name}={d.value}" for d in chosen.dims if d.why.startswith("not given")]:
            also = f"these sizes were made up: {', '.join(made_up)}; try others with --dim NAME=NUMBER or --input NAME=SHAPE"
            error.hint = f"{error.hint}; {also}" if error.hint else also
        raise


# ---------------------------------------------------------------------- layers
def _graph_engine(pieces: Sequence[Piece]) -> dict[str, Any]:
    """Passes of all pieces, added up by their place in the order; refusals; the picture."""
    passes: list[PassFact] = []
    for parts in zip(*(p.compiled.report.passes for p in pieces), strict=False):
        did: dict[str, Any] = {}
        for part in parts:
            for key, value in part.facts.items():
                did[key] = did[key] + value if isinstance(value, int) and isinstance(did.get(key), int) else value
        passes.append(
            PassFact(parts[0].name, sum(p.before for p in parts), sum(p.after for p in parts), 1e3 * sum(p.seconds for p in parts), did)
        )
    refusals = sorted((r for p in pieces for r in p.compiled.report.refusals), key=lambda r: -r.nbytes)
    missed = tuple(MissedFusion(r.producer, r.consumer, r.nbytes, r.reason) for r in refusals[:20])
    return {"passes": tuple(passes), "missed": missed, "graph": boxes([p.compiled.graph for p in pieces if p.compiled.graph])}


def _warnings(built: Pieces) -> tuple[str, ...]:
    found = []
    host = sorted({name for p in built.pieces for name in p.compiled.report.host})
    if host:
        found.append(
            f"{len(host)} kind{'s' * (len(host) != 1)} of operator without native code, run on the host in NumPy: {', '.join(host)}"
        )
    if len(built.pieces) > 1 or built.hosts:
        between = f", with {', '.join(built.hosts)} in Python between them" if built.hosts else ""
        pieces = plural(len(built.pieces), "native piece")
        found.append(f"the model is cut into {pieces}, where values decide how to go on{between}")
    return tuple(found)


def _compile_fact(pieces: Sequence[Piece], cold: float, cached: float | None) -> CompileFact:
    stages: dict[str, float] = dict.fromkeys(("passes", "lower", "kernels", "plan", "constants"), 0.0)  # as they follow one another
    for p in pieces:
        for name, seconds in p.compiled.report.seconds.items():
            if name != "total":
                stages[name] = stages.get(name, 0.0) + seconds
    return CompileFact(
        cold,
        cached,
        sum(p.compiled.report.kernels for p in pieces),
        sum(len(p.compiled.program.steps) for p in pieces),
        tuple(sorted({name for p in pieces for name in p.compiled.report.host})),
        stages,
    )


def _memory(pieces: Sequence[Piece]) -> MemoryFact | None:
    """The plans of all pieces, added up: each piece has an arena of its own, drawn side by side and step after step."""
    plans = [p.compiled.report.plan for p in pieces if p.compiled.report.plan]
    if not plans:
        return None
    blocks: list[Block] = []
    live: list[int] = []
    base = 0
    for plan in plans:
        at = len(live)
        blocks += [Block(x.label, base + o, x.nbytes, at + x.first, at + x.last) for x, o in zip(plan.lives, plan.offsets, strict=True)]
        live += plan.live_nbytes
        base += plan.nbytes
    constants = sum(p.compiled.program.constants.nbytes for p in pieces)
    total, bound = sum(plan.total_nbytes for plan in plans), sum(plan.bound for plan in plans)
    return MemoryFact(total, base, bound, constants, tuple(live), tuple(blocks), len(plans))


def _numerics(pieces: Sequence[Piece], names: Sequence[str], outputs: Sequence[Array], teller: Teller) -> NumericsFact:
    """Every piece against the reference on the inputs that it got; one piece: the model's own outputs under their names."""
    found: list[NumericsFact] = []
    for number, p in enumerate(pieces):
        teller.part(number, len(pieces))
        got = p.instance.run(list(p.inputs))
        labels = list(p.graph.output_names) or [f"output {i}" for i in range(len(got))]
        if len(pieces) == 1 and len(names) == len(got):
            labels = list(names)
        elif len(pieces) > 1:
            labels = [f"piece {number}: {label}" for label in labels]
        found.append(verify(p.graph, p.inputs, labels, got, _run_graph))
    if not found:
        return NumericsFact("nothing: the outputs are constants", "", (), None, 0.0)
    drift = next((f.drift for f in found if f.drift), None)
    return replace(found[0], outputs=tuple(o for f in found for o in f.outputs), drift=drift, time_s=sum(f.time_s for f in found))


def _run_graph(graph: Graph, inputs: Sequence[Array]) -> list[Array]:
    with setting(JUMAR_SAVE_GRAPHS=""):
        return compile(graph).instance().run(list(inputs))


# ---------------------------------------------------------------------- files
def _write(report: Report, built: Pieces, folder: Path, options: Options) -> Report:
    pieces, out = built.pieces, options.out
    files = {"report": str(out / "report.html"), "figures": str(out / "report.json")}
    if (folder / "stages").is_dir():
        files["stages"] = str(out / "stages")
    whole = len(pieces) == 1 and not built.hosts
    missing = len(report.model.outputs) - len(pieces[0].compiled.program.outputs) if whole else 0
    if whole and not missing and not pieces[0].compiled.program.host_steps:
        save_package(folder / "model.jmr", [pieces[0].compiled.program], name=report.title)
        files["package"] = str(out / "model.jmr")
    elif not (options.twin and options.twin.only):
        if not pieces and not built.hosts:
            why = "nothing is left to run, since every output is a constant or an input"
        elif missing > 0:
            why = f"{plural(missing, 'output')} of the model {'is' if missing == 1 else 'are'} handed on in Python, outside native code"
        elif len(pieces) != 1 or built.hosts:
            why = "the model needs the host between native pieces, and a package stands on native code alone"
        else:
            why = "operators run on the host, and a package stands on native code alone"
        report = replace(report, warnings=(*report.warnings, f"no package was written: {why}"))
    report = replace(report, files=files | report.files)
    (folder / "report.html").write_text(page(report), encoding="utf-8")
    document = report.as_json() | {"written": sorted([*_files(folder), "report.json"])}  # what a later run may replace
    (folder / "report.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return report


@contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """A folder beside `out` that takes its place when the block ends well, and vanishes when it does not."""
    out = out.resolve()
    other = _others(out)
    if other:
        raise ToolError(
            f"--out: {out} must be new, empty, or written by `jumar enable`, got {other}", hint="name another folder", code="out-folder"
        )
    _remove_leftovers(out)
    folder = out.with_name(f".{out.name}.{os.getpid()}.part")
    old = out.with_name(f".{out.name}.{os.getpid()}.old")
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise ToolError(f"--out: {out.parent} must be a folder that can be written to, got {error.strerror}", code="out-folder") from error
    try:
        yield folder
        if other := _others(out):
            raise ToolError(f"--out: {out} must stay as it was during the run, got {other}", hint="name another folder", code="out-folder")
        if out.exists():
            out.rename(old)
        folder.rename(out)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _others(out: Path) -> str:
    """What is at `out` that this command did not write there, in words; empty where nothing is."""
    if not out.exists():
        return ""
    if not out.is_dir():
        return "a file"
    try:
        known = set(json.loads((out / "report.json").read_text(encoding="utf-8"))["written"])
    except (OSError, ValueError, TypeError, KeyError):
        known = set()
    strange = sorted(set(_files(out)) - known)
    if not strange:
        return ""
    return f"a folder with other files: {', '.join(strange[:3])}{f' and {len(strange) - 3} more' if len(strange) > 3 else ''}"


def _files(folder: Path) -> list[str]:
    """Everything in the folder that would be lost with it: files, links, and folders that are empty."""
    found = []
    for path in folder.rglob("*"):
        if path.is_symlink() or not path.is_dir() or not any(path.iterdir()):
            found.append(path.relative_to(folder).as_posix())
    return sorted(found)


def _remove_leftovers(out: Path) -> None:
    """What runs with this --out left beside it when they were killed."""
    for path in out.parent.glob(f".{glob.escape(out.name)}.*"):
        number, _, ending = path.name.removeprefix(f".{out.name}.").partition(".")
        if ending in ("part", "old") and number.isdigit() and not is_alive(int(number)):
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def stages_saved(folder: Path) -> Iterator[None]:
    """Saves the stages of every compile into `folder`, and in the end also where the user's settings want them."""
    wanted = config("save_graphs")
    try:
        with setting(JUMAR_SAVE_GRAPHS=str(folder), MS_DEV_SAVE_GRAPHS="0"):
            yield
    finally:
        if wanted and folder.is_dir():
            try:
                shutil.copytree(folder, wanted, dirs_exist_ok=True)
            except OSError as error:  # shutil.Error, too
                raise ToolError(
                    f"config: JUMAR_SAVE_GRAPHS must be a folder that can be written to, got {wanted!r}", code="setting-value"
                ) from error


@contextmanager
def setting(**environment: str) -> Iterator[None]:
    """Settings for a while, by their environment names."""
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
