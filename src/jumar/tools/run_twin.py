"""What a script's run would have taken on the Ascend NPU that it asked for: the twin's part of `jumar run --explain`.

In: what `frontend.twin` watched.  Out: `TwinRun`, one row for each graph and each operator, with times that are predicted, never measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jumar.base import StackError
from jumar.frontend import twin, twin_forecast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumar.base import Array
    from jumar.compiler import Forecast, TwinOptions
    from jumar.device.npu import Chip
    from jumar.ir import Graph

_SHOWN = 12
SCRIPT = "script"  # the kind of the row of single operators together
HONEST = "values were computed on this CPU; times are predicted by the twin; nothing ran on an NPU"


@dataclass(frozen=True)
class TwinRow:
    """One graph, one operator of PYNATIVE mode (the device's part), or all of those in order, with the host's part.

    time_us, low_us, high_us: of one run, with an 80 % interval.   bound: what holds it back.  peak_nbytes: of device memory.  error: why there is no forecast.
    """

    name: str
    kind: str
    runs: int
    kernels: int = 0
    time_us: float = 0.0
    low_us: float = 0.0
    high_us: float = 0.0
    bound: str = ""
    peak_nbytes: int = 0
    error: str = ""

    @property
    def counts(self) -> bool:
        """Whether it is a part of the whole: single operators are, together, in the row of the script."""
        return self.kind != twin.OPERATOR


@dataclass(frozen=True)
class TwinNumerics:
    """The chip's arithmetic on one graph, on the inputs of its first run.   lines: for people; findings: `compiler.Findings` as a document."""

    name: str
    lines: tuple[str, ...]
    findings: dict[str, Any]


@dataclass(frozen=True)
class TwinRun:
    """A whole run on the twin.   rows: what takes longest first; numerics: where it was asked for."""

    chip: str
    rows: tuple[TwinRow, ...]
    numerics: tuple[TwinNumerics, ...] = ()

    @property
    def total_us(self) -> float:
        return sum(r.runs * r.time_us for r in self.rows if r.counts)

    @property
    def interval_us(self) -> tuple[float, float]:
        """The sums of the ends of the rows' intervals: errors of one model are taken as common."""
        return sum(r.runs * r.low_us for r in self.rows if r.counts), sum(r.runs * r.high_us for r in self.rows if r.counts)


def twin_run() -> TwinRun | None:
    """The run so far, forecast; None where no script asked for an Ascend NPU."""
    found = twin.watched()
    if found is None:
        return None
    chip, seen = found.chip, list(found.graphs.values())
    forecasts: dict[twin.Watched, Forecast] = {}
    rows = [_row(w, chip, forecasts) for w in seen]
    rows.sort(key=lambda r: -r.runs * r.time_us)
    if line := twin_forecast.eager_line(found.order, forecasts, chip):
        missing = sum(w.runs for w in seen if w.kind == twin.OPERATOR) - len(found.order)
        about = f"{len(found.order)} operators one by one" + (f" (the first; {missing} more ran)" if missing > 0 else "")
        rows.insert(0, TwinRow(about, SCRIPT, 1, len(line.tasks), line.latency_us, line.low_us, line.high_us, line.bound))
    numerics = tuple(_numerics(w.graph, w.inputs, chip, twin_forecast.options_of(w.kind, chip)) for w in seen if w.inputs is not None)
    return TwinRun(chip.name, tuple(rows), numerics)


def _numerics(graph: Graph, inputs: Sequence[Array], chip: Chip, options: TwinOptions) -> TwinNumerics:
    from jumar.compiler import prepared_graph, run_precision  # noqa: PLC0415  (see _row)
    from jumar.tools.enable.npu_numerics import numerics_lines  # noqa: PLC0415

    try:
        found = run_precision(prepared_graph(graph), inputs, chip, options.precision, trials=1)
    except StackError as error:
        return TwinNumerics(graph.name, (f"not computed: {error.what}",), {"error": error.what})
    return TwinNumerics(graph.name, tuple(numerics_lines(found)), found.document())


def _row(seen: twin.Watched, chip: Chip, forecasts: dict[twin.Watched, Forecast]) -> TwinRow:
    try:
        f = forecasts[seen] = twin_forecast.forecast_of(seen, chip)
    except StackError as error:
        return TwinRow(seen.graph.name, seen.kind, seen.runs, error=error.what)
    line, peak = f.timeline, f.memory.needed_nbytes
    if seen.kind == twin.OPERATOR:  # the host's part is the script's: see the row of all of them
        low, high = (sum(getattr(p, end) for p in f.predictions) for end in ("low_us", "high_us"))
        return TwinRow(seen.graph.name, seen.kind, seen.runs, len(f.launches), line.busy_us, low, high, line.bound, peak)
    return TwinRow(seen.graph.name, seen.kind, seen.runs, len(f.launches), line.latency_us, line.low_us, line.high_us, line.bound, peak)


def twin_document(run: TwinRun) -> dict[str, Any]:
    """The run as plain values."""
    low, high = run.interval_us
    rows = [
        {
            "name": r.name, "kind": r.kind, "runs": r.runs, "kernels": r.kernels, "predicted_us": round(r.time_us, 2),
            "low_us": round(r.low_us, 2), "high_us": round(r.high_us, 2), "bound": r.bound, "peak_nbytes": r.peak_nbytes, "error": r.error,
        }
        for r in run.rows
    ]  # fmt: skip
    return {
        "chip": run.chip, "kind": "predicted", "note": HONEST, "predicted_us": round(run.total_us, 1),
        "low_us": round(low, 1), "high_us": round(high, 1), "rows": rows,
        "numerics": [{"name": n.name, "lines": list(n.lines), "findings": n.findings} for n in run.numerics],
    }  # fmt: skip


def twin_lines(found: dict[str, Any]) -> list[str]:
    """The document of `twin_document` as lines for a terminal."""
    rows = found["rows"]
    lines = [f"twin of {found['chip']} ({HONEST}):", f"  all runs together: predicted {_interval(found)}"]
    for r in rows[:_SHOWN]:
        about = f"no forecast: {r['error']}" if r["error"] else f"predicted {_interval(r)}, {r['kernels']} kernels, {r['bound']}"
        lines.append(f"  {r['runs']:6} x {r['name']}: {about}")
    if len(rows) > _SHOWN:
        lines.append(f"  ... and {len(rows) - _SHOWN} more (--explain-json has all)")
    for n in found["numerics"]:
        lines += [f"  numerics of {n['name']}, on the inputs of its first run:", *(f"    {line}" for line in n["lines"])]
    return lines


def _interval(found: dict[str, Any]) -> str:
    return f"{_ms(found['predicted_us'])} [{_ms(found['low_us'])} to {_ms(found['high_us'])}]"


def _ms(time_us: float) -> str:
    return f"{time_us / 1e3:.3g} ms" if time_us >= 1e3 else f"{time_us:.3g} us"
