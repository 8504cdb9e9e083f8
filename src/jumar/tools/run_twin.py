"""What a script's run would have taken on the Ascend NPU that it asked for: the twin's part of `jumar run --explain`.

In: what `frontend.twin` watched.  Out: `TwinRun`, one row for each graph and each operator, with times that are predicted, never measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jumar.base import StackError
from jumar.frontend import twin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumar.base import Array
    from jumar.compiler import TwinOptions
    from jumar.device.npu import Chip
    from jumar.ir import Graph

_SHOWN = 12
HONEST = "values were computed on this CPU; times are predicted by the twin; nothing ran on an NPU"


@dataclass(frozen=True)
class TwinRow:
    """One graph, or one operator of PYNATIVE mode.   time_us, low_us, high_us: of one run, with an 80 % interval; launch_us: of the host for it.

    bound: what holds it back.  peak_nbytes: of device memory.  error: why there is no forecast.
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
    def total_us(self) -> float:
        return self.runs * self.time_us


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
        return sum(r.total_us for r in self.rows)

    @property
    def interval_us(self) -> tuple[float, float]:
        """The sums of the ends of the rows' intervals: errors of one model are taken as common."""
        return sum(r.runs * r.low_us for r in self.rows), sum(r.runs * r.high_us for r in self.rows)


def twin_run() -> TwinRun | None:
    """The run so far, forecast; None where no script asked for an Ascend NPU."""
    found = twin.watched()
    if found is None:
        return None
    chip, seen = found
    rows = [_row(w, chip) for w in seen]
    numerics = tuple(_numerics(w.graph, w.inputs, chip, _options(w.kind, chip)) for w in seen if w.inputs is not None)
    return TwinRun(chip.name, tuple(sorted(rows, key=lambda r: -r.total_us)), numerics)


def _numerics(graph: Graph, inputs: Sequence[Array], chip: Chip, options: TwinOptions) -> TwinNumerics:
    from jumar.compiler import prepared_graph, run_precision  # noqa: PLC0415  (see _row)
    from jumar.tools.enable.npu_numerics import numerics_lines  # noqa: PLC0415

    try:
        found = run_precision(prepared_graph(graph), inputs, chip, options.precision, trials=1)
    except StackError as error:
        return TwinNumerics(graph.name, (f"not computed: {error.what}",), {"error": error.what})
    return TwinNumerics(graph.name, tuple(numerics_lines(found)), found.document())


def _row(seen: twin.Watched, chip: Chip) -> TwinRow:
    from jumar.compiler import forecast  # noqa: PLC0415  (a script for the CPU needs no forecast)

    try:
        f = forecast(seen.graph, chip, _options(seen.kind, chip))
    except StackError as error:
        return TwinRow(seen.graph.name, seen.kind, seen.runs, error=error.what)
    line = f.timeline
    return TwinRow(
        seen.graph.name, seen.kind, seen.runs, len(f.launches), line.latency_us, line.low_us, line.high_us, line.bound, f.memory.needed_nbytes
    )  # fmt: skip


def _options(kind: str, chip: Chip) -> TwinOptions:
    """As MindSpore runs it: operators of PYNATIVE mode one by one; graphs sunk on the first generation and at O2, else kernel by kernel."""
    from jumar.compiler import Precision, TwinOptions  # noqa: PLC0415  (see above)
    from jumar.context import get_context  # noqa: PLC0415

    level = get_context("jit_config").get("jit_level", "")
    sunk = level == "O2" or (not level and chip.arch < 2200)
    keeps = chip.cube_macs.get("f32", 0) > 0  # a cube without f32 computes in f16, whatever the script says
    mode = "eager" if kind == twin.OPERATOR else "sunk" if sunk else "stepwise"
    return TwinOptions(Precision("must_keep_origin_dtype" if keeps else "allow_fp32_to_fp16"), mode, training=True)


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
