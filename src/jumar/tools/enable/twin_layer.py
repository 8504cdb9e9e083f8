"""The layer `twin` of `jumar enable`: one chip after the other, each told when it is done.

In: graphs of a model with the inputs that they ran on, and what the user asked for.  Out: the `Report` with a `TwinFact` for each chip, and for each
a folder with the predicted run in Ascend's own formats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jumar.base import Array, CompileError, StackError, ToolError
from jumar.compiler import Forecast
from jumar.device.npu import Chip
from jumar.frontend import Port
from jumar.ir import Graph
from jumar.tools.enable.console import Teller
from jumar.tools.enable.facts import Report
from jumar.tools.enable.twin import TwinRequest, batch_command, look, write_profiles
from jumar.tools.enable.twin_facts import TwinFact
from jumar.tools.enable.twin_numerics import chip_numerics


@dataclass(frozen=True, eq=False)
class Subject:
    """What is forecast.   inputs: arrays of each graph, in the order of its parameters, None where they are not known; command: asks for another `{batch}`.

    hosts: what runs in Python between the graphs, which no forecast counts."""

    graphs: Sequence[Graph]
    inputs: Sequence[Sequence[Array]] | None
    command: str
    hosts: tuple[str, ...] = ()


def subject_of(graphs: Sequence[Graph], arrays: Mapping[str, Array], ports: Sequence[Port]) -> Subject:
    """A model that does not run here.   Only of a model that is one graph the inputs are known."""
    labels = [str(p.op.attributes().get("label", "")) for p in graphs[-1].params] if graphs else []
    known = len(graphs) == 1 and all(label in arrays for label in labels)
    return Subject(graphs, [[arrays[label] for label in labels]] if known else None, batch_command(ports))


def twin_layer(report: Report, subject: Subject, request: TwinRequest, folder: Path, out: Path, teller: Teller) -> Report:
    """The report with what each of the chips would do.   folder: where to write now; out: where that will be in the end."""
    if subject.hosts:
        said = f"not in the forecast, since values decide what is done: {', '.join(subject.hosts)} (between the pieces of the model, here in Python)"
        report = replace(report, warnings=(*report.warnings, said))
        teller.warnings((said,))
    if not subject.graphs:
        why = "nothing else is left to compute" if subject.hosts else "every output is a constant or an input"
        return replace(report, warnings=(*report.warnings, f"the twin has nothing to say: {why}"))
    if request.numerics and subject.inputs is None:
        raise ToolError(
            f"enable: --numerics with --twin-only must have a model of one graph, got {len(subject.graphs)} pieces",
            hint="leave out --twin-only: then the pieces run here",
            code="twin-options",
        )
    for number, chip in enumerate(request.chips):
        teller.working("twin", f"forecasting for {chip.name}")
        teller.part(number, len(request.chips))
        try:
            fact, found = _one(subject, chip, request, teller)
        except StackError as error:
            # one of several chips that cannot run the model so is an answer, too; where it is the last hope it is the error
            last = number == len(request.chips) - 1 and not report.twins
            if len(request.chips) == 1 or request.options.strict or last:
                raise
            said = f"{chip.name}: no forecast: {error.what}{f' ({error.hint})' if error.hint else ''}"
            report = replace(report, warnings=(*report.warnings, said))
            teller.warnings((said,))
            continue
        where = write_profiles(found, report.title, folder / f"npu-{chip.name}")
        files = report.files | {f"profile of {chip.name}": str(out / where.relative_to(folder))}
        report = replace(report, twins=(*report.twins, fact), files=files)
        teller.twin(fact)
    teller.twins(report.twins, report.speed.median_ms if report.speed else None)
    return report


def _one(subject: Subject, chip: Chip, request: TwinRequest, teller: Teller) -> tuple[TwinFact, tuple[Forecast, ...]]:
    """What one chip would do."""
    fact, found = look(subject.graphs, chip, request, subject.command)
    if request.options.strict:
        _check_memory(fact)
    if request.numerics and subject.inputs is not None:
        teller.working("twin", f"computing as {chip.name} does")
        fact = replace(fact, numerics=chip_numerics(subject.graphs, subject.inputs, chip, request.options.precision))
    return fact, found


def _check_memory(fact: TwinFact) -> None:
    """With --strict a model that does not fit is an error."""
    memory = fact.memory
    if memory and not memory.fits:
        largest = "; ".join(f"{p.name} ({p.nbytes / 2**20:.0f} MiB)" for p in memory.top[:3])
        raise CompileError(
            f"{fact.soc}: memory of the model must fit, got {memory.verdict}; the largest at its peak: {largest}",
            hint=f"it fits with {memory.remedies[0]}"
            if memory.remedies
            else "a smaller batch, another chip, or without --strict to see the report",
            code="npu-memory",
        )
