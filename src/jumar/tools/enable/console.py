"""The layers on the terminal, as each is done.

In: facts.  Out: lines on stdout (stderr with --json), and while something runs, which layer it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from jumar.tools.enable.facts import (
    CompileFact,
    Environment,
    MemoryFact,
    MissedFusion,
    ModelFact,
    NumericsFact,
    PassFact,
    Report,
    SpeedFact,
)
from jumar.tools.enable.page import did_text, unit_text
from jumar.tools.enable.twin_charts import us_text
from jumar.tools.enable.twin_facts import TwinFact
from jumar.tools.enable.units import count_text, ms_text, nbytes_text, number_text, plural

LAYERS = ("environment", "model", "graph engine", "compile time", "memory", "numerics", "speed", "twin", "report")
PAD = 15


class Teller:
    """Says what is going on.   quiet: everything goes to stderr, stdout is for JSON."""

    def __init__(self, *, quiet: bool) -> None:
        self.console = Console(stderr=quiet, highlight=False, soft_wrap=True)
        self.progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("layer {task.fields[layer]}/" + str(len(LAYERS))),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self.task = self.progress.add_task("", total=1.0, layer=0)

    @contextmanager
    def running(self) -> Iterator[None]:
        """While open, the line at the bottom shows the layer that is being worked on."""
        with self.progress:
            yield

    def working(self, layer: str, text: str) -> None:
        """What is being done now."""
        self.progress.update(self.task, description=text, layer=LAYERS.index(layer) + 1, completed=0.0, total=1.0)

    def part(self, done: int, of: int) -> None:
        """How far it is."""
        self.progress.update(self.task, completed=done / of)

    def line(self, name: str, text: str, style: str = "") -> None:
        """One line; the name stands in the margin, at the first line of a layer only."""
        body = f"[{style}]{escape(text)}[/]" if style else escape(text)
        self.console.print(f"[bold]{escape(name):{PAD}}[/]{body}")

    # ------------------------------------------------------------------ the layers
    def environment(self, e: Environment) -> None:
        self.line(
            "environment",
            f"{e.cpu}, {plural(e.cores, 'core')}, {e.vector_bits}-bit vectors ({e.instruction_set}), {nbytes_text(e.memory_nbytes)}",
        )
        self.line("", f"{e.npu} (looked in {plural(len(e.looked), 'place')}; the report lists them)")

    def model(self, m: ModelFact) -> None:
        shown = ", ".join(f"{count} {name}" for name, count in m.operators[:6])
        more = f" and {len(m.operators) - 6} more kind{'s' * (len(m.operators) != 7)}" if len(m.operators) > 6 else ""
        self.line(
            "model", f"{Path(m.file).name}: {plural(m.node_count, 'operator')} ({shown}{more}), {count_text(m.parameters)} parameters"
        )
        for i in m.inputs:
            chosen = f" -> {i.chosen}" if i.chosen != i.declared else ""
            self.line("", f"input {i.name}: {i.declared}{chosen}, {i.source}")
        for d in m.dims:
            self.line("", f"free dimension {d.name} = {d.value} ({d.why})")

    def captured(self, r: Report) -> None:
        if r.passes:
            self.line("graph engine", r.captured_text)

    def passes(self, passes: tuple[PassFact, ...], missed: tuple[MissedFusion, ...]) -> None:
        shown = [p for p in passes if p.before != p.after or p.did]
        for p in shown:
            self.line("", f"{p.name:14}{p.before:5} -> {p.after:<5}{did_text(p.did)}")
        for m in missed[:5]:
            self.line("", f"not fused: {m.producer} into {m.consumer} ({nbytes_text(m.nbytes)}): {m.why}")

    def warnings(self, warnings: tuple[str, ...]) -> None:
        for w in warnings:
            self.line("", f"warning: {w}", "yellow")

    def compiled(self, c: CompileFact) -> None:
        cached = f"{ms_text(c.cached_s * 1e3)} from the cache" if c.cached_s is not None else "no cache in use"
        self.line(
            "compile time",
            f"{ms_text(c.cold_s * 1e3)} cold, {cached}; {plural(c.steps, 'step')} on {plural(c.kernels, 'kernel')}",
        )

    def memory(self, m: MemoryFact) -> None:
        arena = "an arena" if m.arenas == 1 else f"{m.arenas} arenas (one for each piece)"
        self.line(
            "memory",
            f"tensors {nbytes_text(m.total_nbytes)} in {arena} of {nbytes_text(m.peak_nbytes)} ({m.saving_percent:.1f} % saved; lower bound "
            f"{nbytes_text(m.bound_nbytes)}, plan at {m.over_bound:.3f} of it), constants {nbytes_text(m.constants_nbytes)}",
        )

    def numerics(self, n: NumericsFact) -> None:
        for at, o in enumerate(n.outputs[:8]):
            verdict = "agrees" if o.within else "DIFFERS"
            self.line(
                "numerics" if at == 0 else "",
                f"{o.name}: {o.type} {verdict}: max abs error {o.max_abs:.2g}, relative {o.max_rel:.2g}",
                "" if o.within else "red",
            )
        if len(n.outputs) > 8:
            self.line("", f"and {plural(len(n.outputs) - 8, 'more output')}, of which {sum(o.within for o in n.outputs[8:])} agree")
        if n.drift:
            self.line("", f"first node that drifts: {n.drift.node} at {n.drift.place}: {n.drift.max_abs:.2g}", "red")

    def speed(self, s: SpeedFact) -> None:
        self.line(
            "speed",
            f"median {ms_text(s.median_ms)} (p10 {ms_text(s.p10_ms)}, p90 {ms_text(s.p90_ms)}, {plural(s.runs, 'run')}, "
            f"{plural(s.threads, 'thread')}), {s.per_s:.4g} runs/s",
        )
        if s.flops:
            self.line(
                "",
                f"{s.gflops_per_s:.4g} Gflop/s, {s.percent_of_peak:.0f} % of the {s.peak_gflops_per_s:.4g} Gflop/s measured on this machine",
            )
        if s.steps:
            self.line(
                "",
                f"the steps take {ms_text(s.steps_ms)} together, by separate profiled runs; {ms_text(s.between_ms)} of the median is spent between them",
            )
        for step in s.costliest():
            share = 100 * step.time_ms / s.steps_ms if s.steps_ms else 0.0
            rate = f", {step.gflops_per_s:.3g} Gflop/s" if step.flops else ""
            self.line("", f"{share:5.1f} %  {ms_text(step.time_ms):>8}  {step.label}{rate}  {step.place}")

    def twin(self, t: TwinFact) -> None:
        """One chip: a compact block, each figure with its kind."""
        e, rate = t.latency, t.throughput
        self.line("twin", f"{t.title} ({t.soc}), {t.precision}, {t.mode.split(':')[0]}")
        if not t.kernels:
            self.line("", f"no kernel runs on the device: {t.idle}")
            self.warnings(t.warnings)
            return
        source = f" ({t.batch_from})" if t.batch_from else ""
        self.line(
            "",
            f"latency {us_text(e.value)} [{us_text(e.low)} to {us_text(e.high)}], {unit_text(rate.value, rate.unit)} at batch {t.batch}{source} "
            f"[{number_text(rate.low)} to {number_text(rate.high)}], {e.kind}; device busy {100 * t.utilisation:.0f} %, {t.bound}",
        )
        units = ", ".join(f"{u.kernels} on {u.unit} ({us_text(u.time_us)})" for u in t.units)
        changes, casts = (sum(k.kind == kind for k in t.kernels) for kind in ("TransData", "Cast"))  # others are done within a kernel
        self.line(
            "", f"{plural(len(t.kernels), 'kernel')}: {units}; {plural(changes, 'layout change')} and {plural(casts, 'cast')} among them"
        )
        total = t.kernels_us or 1.0
        self.line("", "time goes to " + ", ".join(f"{name} {100 * us / total:.0f} %" for name, us in t.bottlenecks[:5]) + ", predicted")
        if t.memory:
            saved = (
                f"; reuse saves {t.memory.saving_percent:.0f} % of {nbytes_text(t.memory.total_nbytes)}"
                if t.memory.saving_percent > 0
                else ""
            )
            largest = f"; the largest batch is {t.memory.largest_text}" if t.memory.largest_batch else ""
            self.line(
                "",
                f"memory: {t.memory.verdict}, {nbytes_text(t.memory.capacity_nbytes)} on the chip{saved}{largest}",
                "" if t.memory.fits else "red",
            )
            for remedy in t.memory.remedies:
                self.line("", f"  fits with {remedy}")
        if t.training:
            largest = f"; the largest batch is {t.training.largest_text}" if t.training.largest_batch else ""
            self.line("", f"training: {t.training.verdict}{largest}", "" if t.training.fits else "red")
            for remedy in t.training.remedies:
                self.line("", f"  fits with {remedy}")
            for note in t.training.notes:
                self.line("", f"  {note}")
        for w in t.warnings:
            self.line("", f"warning: {w}", "yellow")
        if t.numerics:
            for at, line in enumerate(t.numerics.lines or (t.numerics.summary,)):
                self.line("", f"{'  ' if at else 'numerics: '}{line}", "" if at or t.numerics.within else "red")
        for a in t.advice[:5]:
            gain = us_text(a.gain) if a.unit == "us" else nbytes_text(a.gain)
            doubt = ", which may gain nothing" if a.doubtful else ""
            self.line(
                "",
                f"advice: {a.title}: {a.gain_percent:.1f} % less {a.what} [{a.low_percent:.1f} to {a.high_percent:.1f}]{doubt} ({gain}), "
                f"predicted: {a.command}",
            )

    def twins(self, twins: tuple[TwinFact, ...], measured_ms: float | None) -> None:
        """Chips side by side, and what all of it is."""
        if len(twins) > 1:
            fastest = min(t.latency.value for t in twins)
            for at, t in enumerate(twins):
                e = t.latency
                fits = "" if t.memory is None or t.memory.fits else "; does not fit"
                self.line(
                    "compare" if not at else "",
                    f"{t.soc:16}{us_text(e.value):>9} [{us_text(e.low)} to {us_text(e.high)}] predicted, {e.value / fastest:.2f} of the fastest{fits}",
                )
            if measured_ms is not None:
                self.line("", f"{'this CPU':16}{ms_text(measured_ms):>9} measured")
        self.line("", f"the twin: {twins[0].banner}")
