"""`jumar ops`: every operator and what its definition gives: the same matrix that the op x property test checks.

In: `ir.REGISTRY`, filled by the operators room; with --soc, what an Ascend chip would run each with.  Out: a list, a table, or JSON.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any, cast

import click

from jumar import operators
from jumar.compiler.passes import coverage
from jumar.device.npu import Chip, find_chip
from jumar.ir import REGISTRY, Op
from jumar.tools.soc import complete_soc

COLUMNS = ("reference", "decompose", "cpu", "grad", "samples", "cann")


@dataclass(frozen=True)
class OpRow:
    """One operator.   cpu: whose schedule makes machine code for it: its own, its parts' (it decomposes), its family's; cann: its name there."""

    name: str
    family: str
    attributes: str
    doc: str
    reference: bool
    decompose: bool
    cpu: str
    grad: bool
    samples: int
    cann: str


@click.command()
@click.option("--table", is_flag=True, help="Print operators against what each has.")
@click.option("--soc", metavar="NAME", shell_complete=complete_soc, help="Print what an Ascend chip would run each with.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(table: bool, soc: str | None, as_json: bool) -> None:
    """List the operators; --table shows which of reference, decomposition, CPU code, gradient, samples and CANN name each has.

    --soc NAME shows the unit, the CANN operator and the evidence for each operator and element type on that chip.
    """
    if soc is not None:
        _print_coverage(find_chip(soc), as_json)
        return
    rows = op_rows()
    if as_json:
        click.echo(json.dumps([asdict(r) for r in rows], indent=1))
    elif table:
        wide = max(len(r.name) for r in rows)
        click.echo(f"{'operator':{wide}}  {'family':12} " + " ".join(f"{c:9}" for c in COLUMNS))
        for r in rows:
            cells = (_mark(getattr(r, c)) for c in COLUMNS)
            click.echo((f"{r.name:{wide}}  {r.family:12} " + " ".join(f"{c:9}" for c in cells)).rstrip())
        click.echo(
            f"{len(rows)} operators, {sum(r.cpu != '' for r in rows)} with CPU code, {sum(r.cann != '' for r in rows)} with a CANN name"
        )
    else:
        for r in rows:
            click.echo(f"{r.name}({r.attributes})  {r.doc}")


def _print_coverage(chip: Chip, as_json: bool) -> None:
    """The mapping of every operator on a chip: element types that fare alike share a line."""
    rows = coverage(chip)
    if as_json:
        click.echo(json.dumps([asdict(r) for r in rows], indent=1))
        return
    alike: dict[tuple[str, ...], list[str]] = {}
    for r in rows:
        runs = r.kind or "+".join(r.parts) or "-"
        alike.setdefault((r.op, r.unit or "-", runs, r.how, r.evidence, r.why.split(", got ")[0]), []).append(r.dtype)
    cells = [("operator", "types", "unit", "CANN operator", "how", "evidence"), *((k[0], " ".join(d), *k[1:5]) for k, d in alike.items())]
    wide = [min(max(len(row[i]) for row in cells), w) for i, w in enumerate((20, 24, 20, 28, 9, 10))]
    for row, (*_, why) in zip(cells, (("",), *alike)):
        text = "  ".join(cell[: w - 1] + "…" if len(cell) > w else cell.ljust(w) for cell, w in zip(row, wide))
        click.echo(text.rstrip() + (f"  {why}" if why and row[4] != "view" else ""))
    units: dict[str, int] = {}
    for r in rows:
        units[r.unit or r.how] = units.get(r.unit or r.how, 0) + 1
    said = ", ".join(
        f"{n} on {unit}" if unit not in ("view", "none") else f"{n} {unit}s" for unit, n in sorted(units.items(), key=lambda u: -u[1])
    )
    click.echo(f"\n{chip.name}: {len(rows)} operators in their element types: {said.replace('nones', 'nowhere')}")


def _mark(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "-"
    return str(value) if value else "-"


def op_rows() -> list[OpRow]:
    """A row for each operator that a graph can hold, by family and name."""
    rows = [_row(name, op) for name, op in REGISTRY.items()]
    return sorted(rows, key=lambda r: (r.family, r.name))


def _row(name: str, op: type[Op]) -> OpRow:
    doc = " ".join((op.__doc__ or "").split("\n\n")[0].split())
    attributes = ", ".join(f.name for f in fields(cast(Any, op)))
    decomposes = _own(op, "decompose", operators.Composite)
    table = operators.schedules("cpu")
    cpu = "own" if op in table else "parts" if decomposes else "family" if any(c in table for c in op.__mro__) else ""
    return OpRow(
        name=name,
        family=str(op.family),
        attributes=attributes,
        doc=doc,
        reference=_own(op, "reference", Op),
        decompose=decomposes,
        cpu=cpu,
        grad=_own(op, "grad", Op),
        samples=len(getattr(op, "samples", ())),
        cann=str(getattr(op, "cann", "") or ""),
    )


def _own(op: type[Op], member: str, base: type[Op]) -> bool:
    """Whether the class defines the member itself rather than inheriting the base's refusal."""
    found = getattr(op, member, None)
    return found is not None and found is not getattr(base, member, None)
