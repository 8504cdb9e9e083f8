"""`jumar tune MODEL`: measures the plans of a model's contractions on this machine and keeps those that make the whole model faster.

In: a model file, inputs as for `jumar enable`, threads.  Out: a table of layers with the plan that the model of costs chose and the one that was measured,
the time of the whole model before and after; the choices go to the compile cache (folder `tuned`), where every later compile finds them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from jumar.base import ToolError, config, keep_choices, trying
from jumar.device import host
from jumar.frontend import load
from jumar.tools.enable.inputs import choose, once, parse_dim, parse_input
from jumar.tools.enable.job import about_sizes
from jumar.tools.enable.model import declared_inputs
from jumar.tools.enable.pieces import compile_pieces
from jumar.tools.enable.settings import cache_fault
from jumar.tools.enable.units import ms_text, plural
from jumar.tools.tuning import Layer, Tuned, tune

INTERRUPTED = 130
WIDTH = 46  # of a plan in the table


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--input", "-i", "inputs", multiple=True, metavar="NAME=FILE.npy|SHAPE", help="Values of an input, or its shape: x=1,3,224,224."
)
@click.option("--dim", "-d", "dims", multiple=True, metavar="NAME=NUMBER", help="Size of a free dimension: batch=1.")
@click.option("--threads", type=click.IntRange(0), default=0, help="Threads; 0 means the cores that this process may use.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout; progress goes to stderr.")
def command(model: Path, inputs: tuple[str, ...], dims: tuple[str, ...], threads: int, as_json: bool) -> None:
    """Measure the plans of MODEL's layers (an ONNX file) on this machine, and keep those that make the whole model faster.

    Ctrl-C ends the measuring; what was found so far is still tried in the whole model, and kept where it is faster."""
    check_cache()
    target = host(threads or config("threads"))
    wanted = tuple(map(parse_input, once("--input", inputs)))
    with trying({}):
        loaded = load(model, target="cpu", threads=target.cores)
        chosen = choose(declared_inputs(loaded, list(wanted)), wanted, dict(map(parse_dim, once("--dim", dims))))
        with about_sizes(chosen):
            pieces = compile_pieces(loaded, chosen.arrays, threads=target.cores).pieces
    console = Console(stderr=True, highlight=False)
    bar = Progress(
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn(),
        console=console, transient=True, disable=not console.is_terminal,
    )  # fmt: skip
    found: list[Tuned] = []
    with bar if console.is_terminal else nullcontext():
        task = bar.add_task("", total=1)

        def tick(what: str, done: int, of: int) -> None:
            bar.update(task, description=what, completed=done, total=of)

        for piece in pieces:
            found.append(tune(piece, target, target.cores, tick))
            if not found[-1].complete:
                break
    saved = keep_choices({q: o for tuned in found for q, o in tuned.choices.items()})
    if as_json:
        json.dump(document(model, target.cores, found, saved), sys.stdout, indent=1)
        sys.stdout.write("\n")
    else:
        click.echo("\n".join(table(found, saved)))
    if found and not found[-1].complete:
        click.echo("stopped before all layers were measured", err=True)
        sys.exit(INTERRUPTED)


def check_cache() -> None:
    """Refuses to measure what could not be kept."""
    if fault := cache_fault():
        raise ToolError(
            f"tune: the compile cache must be at hand, since choices are kept in it, got none: {fault}",
            hint="JUMAR_CACHE_DIR names its folder, JUMAR_CACHE=1 turns it on",
            code="tune-cache",
        )


def table(found: Sequence[Tuned], saved: bool) -> list[str]:
    """The report in lines."""
    layers = [layer for tuned in found for layer in tuned.layers]
    if not layers:
        return ["no layer of this model has a choice of plans"]
    size = max(len(layer.label) for layer in layers) + 5
    lines = [f"{'layer':{size}} {'plan by model':{WIDTH}} {'plan by measurement':{WIDTH}} {'alone':>18}  in the model"]
    for layer in layers:
        times = f"{ms_text(layer.expected_us / 1e3)}, {ms_text(layer.measured_us / 1e3)}" if layer.measured_us else "not measured"
        measured = layer.plan(measured=True) if layer.answers else "the same"
        lines.append(f"{_name(layer):{size}} {layer.plan(measured=False):{WIDTH}} {measured:{WIDTH}} {times:>18}  {_verdict(layer)}")
    before, after = (sum(t) for t in zip(*((tuned.before_s, tuned.after_s) for tuned in found), strict=True))
    kept = sum(layer.kept for layer in layers)
    lines.append(f"whole model: {ms_text(before * 1e3)} by the model's plans, {ms_text(after * 1e3)} with {plural(kept, 'measured plan')}")
    if kept:
        lines.append(f"kept for later compiles: {config('cache_dir')}" if saved else f"could not be written to {config('cache_dir')}")
    return lines


def _name(layer: Layer) -> str:
    return f"{layer.label} x{len(layer.owners)}" if len(layer.owners) > 1 else layer.label


def _verdict(layer: Layer) -> str:
    if not layer.answers:
        return ""
    return f"{layer.gain_us:+.0f} µs, {'kept' if layer.kept else 'not kept'}".replace("+", "gains ").replace("-", "loses ")


def document(model: Path, threads: int, found: Sequence[Tuned], saved: bool) -> dict[str, object]:
    """The same for --json."""
    return {
        "model": str(model),
        "threads": threads,
        "complete": all(tuned.complete for tuned in found),
        "saved": saved,
        "before_ms": sum(tuned.before_s for tuned in found) * 1e3,
        "after_ms": sum(tuned.after_s for tuned in found) * 1e3,
        "layers": [
            {
                "layer": layer.label,
                "count": len(layer.owners),
                "by_model": layer.plan(measured=False),
                "by_measurement": layer.plan(measured=True),
                "by_model_us": layer.expected_us or None,  # null: not measured
                "by_measurement_us": layer.measured_us or None,
                "gain_in_model_us": layer.gain_us,
                "kept": layer.kept,
            }
            for tuned in found
            for layer in tuned.layers
        ],
    }
