"""The report as one HTML page that needs nothing else: no network, no other file.

In: `Report`.  Out: the text of report.html, from the template beside this file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from jumar.tools.enable.charts import arena_legend, arena_map, memory_curve, share_bar, timeline
from jumar.tools.enable.facts import Report
from jumar.tools.enable.npu_numerics import error_text
from jumar.tools.enable.picture import picture
from jumar.tools.enable.twin_charts import COLOUR, live_curve, memory_bar, memory_legend, npu_timeline, roofline, us_text
from jumar.tools.enable.twin_facts import TwinFact
from jumar.tools.enable.units import count_text, ms_text, nbytes_text, number_text, plural

KINDS = ("contraction", "fused", "elementwise", "reduction", "movement", "other", "host", "input")


def page(report: Report) -> str:
    """The page."""
    jinja = Environment(loader=PackageLoader("jumar.tools.enable", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    jinja.filters |= {
        "nbytes": nbytes_text,
        "count": count_text,
        "ms": ms_text,
        "share": lambda share: Markup(share_bar(share)) + f"{100 * share:.1f} %",
        "did": did_text,
        "plural": plural,
        "us": us_text,
        "relative": error_text,
        "in_unit": unit_text,
    }
    present = {n.kind for n in report.graph} | {s.kind for s in report.speed.steps} if report.speed else {n.kind for n in report.graph}
    return jinja.get_template("report.html.j2").render(
        r=report,
        kinds=KINDS,
        shown_kinds=[k for k in KINDS if k in present],
        headline=headline(report),
        tiles=tiles(report),
        graph=Markup(picture(report.graph, [f"{i.name}: {i.chosen}" for i in report.model.inputs])) if report.graph else "",
        curve=Markup(memory_curve(report.memory)) if report.memory and report.memory.live_nbytes else "",
        arena=Markup(arena_map(report.memory)) if report.memory and report.memory.blocks else "",
        arena_legend=arena_legend(report.memory) if report.memory else (),
        timeline=Markup(timeline(report.speed.steps)) if report.speed and report.speed.steps else "",
        **_TWIN_PARTS,
    )


def unit_text(value: float, unit: str) -> str:
    """A figure with its unit.

    >>> unit_text(1234.5, "us"), unit_text(812.3, "samples/s")
    ('1.23 ms', '812 samples/s')
    """
    match unit:
        case "us":
            return us_text(value)
        case "bytes":
            return nbytes_text(value)
    return f"{number_text(value)} {unit}"


def bottleneck_colours(twin: TwinFact) -> list[tuple[str, str]]:
    """Names of what bounds kernels that have operations to count, with their colour."""
    names = dict.fromkeys(k.bottleneck for k in twin.costliest(len(twin.kernels)) if k.flops)
    return [(name, COLOUR.get(name, "other")) for name in names]


def twin_tiles(twin: TwinFact) -> list[tuple[str, str]]:
    """The figures of a chip that matter most."""
    e = twin.latency
    shown = [
        (us_text(e.value), f"latency, {e.kind}; {us_text(e.low)} to {us_text(e.high)}"),
        (f"{number_text(twin.throughput.value)} /s", f"samples a second, {twin.throughput.kind}, batch {twin.batch}"),
        (f"{100 * twin.utilisation:.0f} %", f"of the latency the device is busy, {e.kind}"),
    ]
    if twin.memory:
        m = twin.memory
        shown.append(
            (nbytes_text(m.peak_nbytes), f"at the peak, of {nbytes_text(m.capacity_nbytes)}: {'fits' if m.fits else 'does not fit'}")
        )
    shown.append((f"{len(twin.kernels)}", "kernels a run"))
    if twin.advice:
        shown.append((f"−{twin.advice[0].gain_percent:.0f} %", f"{twin.advice[0].what}, predicted, by the first advice below"))
    return shown


_TWIN_PARTS: dict[str, Callable[..., Any]] = {
    "twin_tiles": twin_tiles,
    "bottleneck_colours": bottleneck_colours,
    "npu_timeline": lambda twin: Markup(npu_timeline(twin)),
    "roofline": lambda twin: Markup(roofline(twin)),
    "memory_bar": lambda memory: Markup(memory_bar(memory)),
    "memory_legend": memory_legend,
    "live_curve": lambda memory: Markup(live_curve(memory)),
}


def did_text(did: dict[str, Any]) -> str:
    """What a pass did, in one line.

    >>> did_text({"folded": 3, "rules": {"transpose-transpose": 2}})
    'folded 3, rules: transpose-transpose 2'
    """
    parts = []
    for name, value in did.items():
        shown = name.replace("_", " ")
        if isinstance(value, dict):
            inner = ", ".join(f"{k} {v}" for k, v in value.items() if v)
            if inner:
                parts.append(f"{shown}: {inner}")
        elif isinstance(value, list | tuple):
            if value:
                parts.append(f"{shown}: {', '.join(map(str, value))}")
        elif value or isinstance(value, str):
            parts.append(f"{shown} {value}")
    return ", ".join(parts) or "nothing to do"


def headline(report: Report) -> str:
    """One sentence on top of everything."""
    m = report.model
    return f"{plural(m.node_count, 'operator')}, {count_text(m.parameters)} parameters, on {report.environment.cpu}"


def tiles(report: Report) -> list[tuple[str, str]]:
    """The figures that matter most, each with its meaning."""
    shown: list[tuple[str, str]] = []
    for t in report.twins:
        shown.append((us_text(t.latency.value), f"on {t.soc}, {t.latency.kind} ({us_text(t.latency.low)} to {us_text(t.latency.high)})"))
    if report.speed:
        shown.append(
            (
                ms_text(report.speed.median_ms),
                f"median latency here, {plural(report.speed.threads, 'thread')}{', measured' if report.twins else ''}",
            )
        )
        if report.speed.peak_gflops_per_s:
            shown.append((f"{report.speed.percent_of_peak:.0f} %", "of this machine's measured peak"))
    if report.numerics:
        worst = max((o.max_abs for o in report.numerics.outputs), default=0.0)
        shown.append(
            (f"{worst:.2g}", "largest error against the reference" if report.numerics.within else "largest error: out of tolerance")
        )
    if report.memory:
        shown.append((nbytes_text(report.memory.peak_nbytes), f"arena, {report.memory.saving_percent:.0f} % less than all tensors"))
    if report.compile:
        cached = f"; {ms_text(report.compile.cached_s * 1000)} from the cache" if report.compile.cached_s is not None else ""
        shown.append((ms_text(report.compile.cold_s * 1000), f"compile{cached}"))
    if report.passes:
        shown.append((f"{report.passes[0].before} → {report.passes[-1].after}", "operators captured, and after the graph engine"))
    return shown
