"""`jumar soc list` and `jumar soc show NAME`: what is known of the Ascend chips, each figure with its kind and source.

In: `jumar.device.npu.chips`.  Out: tables, or JSON.  `complete_soc` completes names of chips for any command that takes one.
"""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict, dataclass
from typing import Any

import click
from click.shell_completion import CompletionItem

from jumar.device.npu import DERIVED, MEASURED, Chip, Figure, chips, find_chip


@click.group()
def command() -> None:
    """The Ascend chips that are known, and what is known of them."""


@command.command("list")
@click.option("--all", "bins", is_flag=True, help="List all bins of a chip, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_chips(bins: bool, as_json: bool) -> None:
    """List the chips: name, cores, clock, peak rates, memory."""
    rows = [soc_row(c) for c in chips() if bins or not c.variant_of]
    if as_json:
        click.echo(json.dumps([asdict(r) for r in rows], indent=1, ensure_ascii=False))
        return
    cells = [_HEAD, *(_cells(r) for r in rows)]
    wide = [max(len(row[i]) for row in cells) for i in range(len(_HEAD))]
    for row in cells:
        first, *rest = (text.ljust(w) if i == 0 else text.rjust(w) for i, (text, w) in enumerate(zip(row, wide)))
        click.echo("  ".join((first, *rest)).rstrip())
    hidden = len(chips()) - len(rows)
    click.echo(
        f"\ncores: cube + vector; peaks at the clock that is listed.  `jumar soc show NAME` gives every figure's source{'.' * (not hidden)}"
    )
    if hidden:
        click.echo(f"{hidden} more bins of these chips: `jumar soc list --all`.")


def complete_soc(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Chips whose name, as npu-smi prints it or with `Ascend` before, goes on as typed; with nothing typed, one name each."""
    typed = incomplete.lower()
    found = [(n, c) for c in chips() for n in (c.npu_smi, c.name)[: 2 if typed else 1] if n.lower().startswith(typed)]
    return [CompletionItem(name, help=chip.title) for name, chip in found]


@command.command("show")
@click.argument("name", shell_complete=complete_soc)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(name: str, as_json: bool) -> None:
    """Show every figure of chip NAME with its kind and source."""
    chip = find_chip(name)
    if as_json:
        click.echo(json.dumps(soc_document(chip), indent=1, ensure_ascii=False))
        return
    if chip.caution:
        click.secho(f"caution: {chip.caution}", fg="yellow", bold=True)
    click.secho(f"{chip.name}: {chip.title}", bold=True)
    kind = "cube and vector cores apart" if chip.split else "cube and vector unit in one core"
    click.echo(f"family {chip.family}, architecture {chip.arch}, {kind}{f', a bin of {chip.variant_of}' if chip.variant_of else ''}")
    for title, names in (
        ("products", chip.products),
        ("kernels take", sorted(chip.dtypes)),
        ("vector units compute", sorted(chip.vector_dtypes)),
    ):
        if names:
            click.echo(textwrap.fill(f"{title}: {', '.join(names)}", 110, subsequent_indent="  "))
    click.echo(
        f"overflow of fp16: {_OVERFLOW[chip.overflow]}; modes: {', '.join(sorted(chip.modes)) or 'none'}; DVPP: {'yes' if chip.dvpp else 'no'}\n"
    )
    _show_figures(chip)
    for note in chip.notes:
        click.echo(textwrap.fill(f"- {note}", 110, subsequent_indent="  "))


_OVERFLOW = {"saturate": "saturates at 65504", "infnan": "inf and nan", "both": "inf and nan, or saturation (a mode)"}


def _show_figures(chip: Chip) -> None:
    """Every figure on a line; sources below, by number; notes under their figure."""
    sources = list(dict.fromkeys(f.source for f in chip.figures.values()))
    lines = [(name, text_of(f), f.kind, f"[{sources.index(f.source) + 1}]", f.note) for name, f in chip.figures.items()]
    for dtype in chip.cube_macs:
        peak = Figure(chip.peak_flops_per_s(dtype), "OP/s" if dtype.startswith("i") else "FLOP/s", DERIVED, "")
        lines.append((f"peak.{dtype}", text_of(peak), DERIVED, "", "2 x cube_macs x cube_cores x clock_hz"))
    wide, high = (max(len(line[i]) for line in lines) for i in (0, 1))
    for name, value, kind, mark, note in lines:
        shown = click.style(f"{kind:10}", fg={MEASURED: "green", DERIVED: "yellow"}.get(kind))
        click.echo(f"{name:{wide}}  {value:>{high}}  {shown}  {mark:4} {note}".rstrip())
    click.echo()
    for number, source in enumerate(sources, 1):
        click.echo(f"[{number}] {source}")
    click.echo()


_STEPS = ((1e12, "T"), (1e9, "G"), (1e6, "M"))


def text_of(figure: Figure) -> str:
    """A figure as people read it.

    >>> text_of(Figure(1.65e9, "Hz", "measured", "")), text_of(Figure(196608, "B", "documented", "")), text_of(Figure(0.8e12, "B/s", "", ""))
    ('1.65 GHz', '192 KiB', '0.8 TB/s')
    """
    value, unit = figure.value, figure.unit
    if unit == "B":
        for step, prefix in ((2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki")):
            if value >= step:
                return f"{value / step:.4g} {prefix}B"
    elif unit in ("Hz", "B/s", "OP/s", "FLOP/s"):
        for large, prefix in _STEPS:
            if value >= large or (large == 1e12 and unit == "B/s" and value >= 5e11):
                return f"{value / large:.4g} {prefix}{unit}"
    return f"{value:g} {unit}"


@dataclass(frozen=True)
class SocRow:
    """A chip on one line of the list.   peak: T operations a second by element type; sizes in bytes, rates in bytes/s."""

    name: str
    npu_smi: str
    title: str
    variant_of: str
    arch: int
    cube_cores: int
    vector_cores: int
    clock_hz: float
    peak: dict[str, float]
    memory_nbytes: int
    memory_bytes_per_s: float
    l2_nbytes: int
    overflow: str
    modes: list[str]


def soc_row(chip: Chip) -> SocRow:
    return SocRow(
        name=chip.name,
        npu_smi=chip.npu_smi,
        title=chip.title,
        variant_of=chip.variant_of,
        arch=chip.arch,
        cube_cores=chip.cube_cores,
        vector_cores=chip.vector_cores,
        clock_hz=chip.clock_hz,
        peak={dtype: round(chip.peak_flops_per_s(dtype) / 1e12, 1) for dtype in chip.cube_macs},
        memory_nbytes=chip.memory_nbytes,
        memory_bytes_per_s=chip.memory_bytes_per_s,
        l2_nbytes=chip.l2_nbytes,
        overflow=chip.overflow,
        modes=sorted(chip.modes),
    )


_HEAD = ("chip", "arch", "cores", "GHz", "fp16 T", "bf16 T", "int8 T", "fp32 T", "memory GB", "GB/s", "L2 MB", "fp16 past 65504")


def _cells(row: SocRow) -> tuple[str, ...]:
    peaks = (f"{row.peak[d]:g}" if d in row.peak else "-" for d in ("f16", "bf16", "i8", "f32"))
    return (
        row.name,
        str(row.arch),
        f"{row.cube_cores} + {row.vector_cores}",
        f"{row.clock_hz / 1e9:.2f}",
        *peaks,
        f"{row.memory_nbytes / 2**30:.3g}",
        f"{row.memory_bytes_per_s / 1e9:.4g}",
        f"{row.l2_nbytes / 2**20:g}",
        {"saturate": "saturates", "infnan": "inf", "both": "inf (or saturates)"}[row.overflow],
    )


def soc_document(chip: Chip) -> dict[str, Any]:
    """The whole chip for JSON: its row, its names, and every figure."""
    return {
        **asdict(soc_row(chip)),
        "family": chip.family,
        "caution": chip.caution,
        "aliases": list(chip.aliases),
        "products": list(chip.products),
        "split": chip.split,
        "dvpp": chip.dvpp,
        "dtypes": sorted(chip.dtypes),
        "vector_dtypes": sorted(chip.vector_dtypes),
        "figures": {name: asdict(figure) for name, figure in chip.figures.items()},
        "notes": list(chip.notes),
    }
