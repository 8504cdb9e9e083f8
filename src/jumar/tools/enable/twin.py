"""The layer `twin`: what the model would do on Ascend NPUs, from the compiler's forecasts.

In: the graphs of a model as captured, one for each piece, and what the user asked for.  Out: `TwinFact`, one for each chip.
Nothing runs on an NPU: the model's values are computed on this CPU, the times are predicted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jumar.base import TensorType
from jumar.compiler import (
    BATCH_COMMAND,
    Advice,
    Alternative,
    Forecast,
    Training,
    TwinOptions,
    advise,
    batch_of,
    check_names,
    conversion_launches,
    forecast,
    prepared_graph,
)
from jumar.device.npu import AI_CPU, COMMUNICATION, CUBE, DVPP, HOST, MIX_CUBE, MIX_VECTOR, VECTOR, Chip, Prediction, Task
from jumar.frontend import Port
from jumar.ir import Graph, Node
from jumar.profiler.ascend import lives_of, write_profile
from jumar.tools.enable.graphs import place, title
from jumar.tools.enable.twin_facts import (
    AdviceFact,
    Bar,
    CastsFact,
    Ceiling,
    ChipFigure,
    ConversionFact,
    Estimate,
    KernelFact,
    MappedFact,
    MissedRule,
    RuleFact,
    TwinFact,
    UnitFact,
)
from jumar.tools.enable.twin_memory import STANDING, memory_fact, training_fact
from jumar.tools.enable.units import plural

UNITS = {  # as the report calls them
    VECTOR: "vector", MIX_CUBE: "cube + vector", MIX_VECTOR: "cube + vector", AI_CPU: "AI CPU", DVPP: "DVPP", HOST: "host", COMMUNICATION: "communication",
}  # fmt: skip
SHOWN_MISSED = 20
MODES = {  # how the timeline's modes are said
    "sunk": "sunk: the graph is launched once and runs by itself",
    "stepwise": "stepwise: a graph, launched kernel by kernel",
    "eager": "eager: the script launches each operator",
}


@dataclass(frozen=True)
class TwinRequest:
    """What the user asked of the twin.   only: nothing is compiled, run or measured here; numerics: the chip's arithmetic is executed, too;
    training: the memory of such a training step is planned, too."""

    chips: tuple[Chip, ...]
    options: TwinOptions
    only: bool = False
    numerics: bool = False
    advice: bool = True
    training: Training | None = None


def look(
    graphs: Sequence[Graph], chip: Chip, request: TwinRequest, batch_command: str = BATCH_COMMAND
) -> tuple[TwinFact, tuple[Forecast, ...]]:
    """The model on one chip: its pieces one after the other.   batch_command: how another `{batch}` is asked for."""
    if request.options.precision.keep or request.options.precision.input_fp16:
        check_names(request.options.precision, chip, [*graphs, *map(prepared_graph, graphs)])  # what is joined has a name of its own
    found = tuple(forecast(g, chip, request.options) for g in graphs)
    fact = tell(found, _advice(found, batch_command) if request.advice else ())
    return (replace(fact, training=training_fact(found, request.training)) if request.training else fact), found


def batch_command(inputs: Sequence[Port]) -> str:
    """How a model gets another batch: by a free dimension where its inputs have one in common, else by a new export."""
    leading = [p.shape[0] for p in inputs if p.shape and len(p.shape) >= 2 and not p.has_default]
    free = {d for d in leading if isinstance(d, str)}
    return (
        f"--dim {free.pop()}={{batch}}" if len(free) == 1 else "export the model with a free batch (dynamic_axes), then --dim batch={batch}"
    )


def write_profiles(found: Sequence[Forecast], name: str, folder: Path) -> Path:
    """The predicted run of each piece as a profile in Ascend's formats; the folder, or that of the one profile in it."""
    written = []
    for number, f in enumerate(found):
        tasks, reads = [x.task for x in f.launches], [x.reads for x in f.launches]
        weights = sum(p.nbytes for p in f.memory.parts if p.name in STANDING)
        called = f"{Path(name).stem}{f'-piece{number}' if len(found) > 1 else ''}"
        lives, reserved = lives_of(tasks, reads), f.memory.needed_nbytes
        written.append(write_profile(folder, f.timeline, name=called, lives=lives, resident_nbytes=weights, reserved_nbytes=reserved))
    return written[0] if len(written) == 1 else folder


def tell(found: Sequence[Forecast], advice: tuple[AdviceFact, ...] = ()) -> TwinFact:
    """Forecasts of a model's pieces as facts, added up."""
    chip, options = found[0].chip, found[0].options
    kernels, bars = _kernels(found)
    batch = max((batch_of(f.captured) for f in found), default=1)
    latency, low, high = (sum(getattr(f.timeline, name) for f in found) for name in ("latency_us", "low_us", "high_us"))
    busy = sum(f.timeline.busy_us for f in found)
    share = busy / latency if latency else 0.0
    bottlenecks = Counter[str]()
    for f in found:
        bottlenecks.update(f.timeline.by_bottleneck)
    return TwinFact(
        soc=chip.name,
        title=chip.title,
        precision=precision_text(options),
        mode=MODES.get(options.mode, options.mode),
        latency=Estimate(latency, low, high, "us"),
        throughput=_throughput(found, batch),
        device=Estimate(busy, low * share, high * share, "us"),
        host_us=sum(f.timeline.host_us for f in found),
        bound=max(found, key=lambda f: f.timeline.latency_us).timeline.bound,
        utilisation=share,
        batch=batch,
        chip=tuple(ChipFigure(n, f"{x.value:.6g} {x.unit}".strip(), x.kind, f"{x.source}{f'; {x.note}' if x.note else ''}") for n, x in chip.figures.items()),
        units=_units(kernels),
        mapping=_mapping(found),
        casts=_casts(found),
        conversions=_conversions(found),
        fusions=_fusions(found),
        missed=_missed(found),
        kernels=kernels,
        bars=bars,
        bottlenecks=tuple((name, us) for name, us in bottlenecks.most_common() if us),
        ceilings=_ceilings(chip, found),
        memory=memory_fact(found),
        advice=advice,
        warnings=_warnings(found),
        wide=tuple(Counter(k.evidence for k in kernels if k.evidence != "calibrated").most_common()),
        pieces=len(found),
        batch_from=_batch_from(found, batch),
    )  # fmt: skip


def _batch_from(found: Sequence[Forecast], batch: int) -> str:
    """What the batch was taken from: nothing in a graph says which of its dimensions counts examples."""
    params = [
        p for f in found if batch_of(f.captured) == batch for p in f.captured.params if isinstance(p.type, TensorType) and p.rank >= 2
    ]
    names = dict.fromkeys(str(p.op.attributes().get("label", "")) for p in params if p.shape[0] == batch)
    return f"the first dimension of {', '.join(list(names)[:2])}{' ...' if len(names) > 2 else ''}" if names else "a run"


def precision_text(options: TwinOptions) -> str:
    """The precision as the user says it.

    >>> precision_text(TwinOptions())
    'force_fp16'
    """
    return str(options.precision)


def _throughput(found: Sequence[Forecast], batch: int) -> Estimate:
    """Samples a second: pieces follow one another, so their times for one sample add up."""
    if not any(f.launches for f in found):
        return Estimate(0.0, 0.0, 0.0, "samples/s")
    rates = [f.timeline.throughput(batch) for f in found if f.launches]
    value, low, high = (1 / sum(1 / max(r[i], 1e-12) for r in rates) for i in range(3))
    return Estimate(value, low, high, "samples/s")


# ---------------------------------------------------------------------- kernels and time
def _kernels(found: Sequence[Forecast]) -> tuple[tuple[KernelFact, ...], tuple[Bar, ...]]:
    kernels: list[KernelFact] = []
    bars: list[Bar] = []
    base = 0.0
    for f in found:
        for span in f.timeline.spans:
            task, prediction = f.launches[span.index].task, f.predictions[span.index]
            number = len(kernels)
            kernels.append(_kernel(number, task, prediction, base + span.start_us, f.chip))
            bars += [Bar(lane, base + span.start_us, span.time_us, task.kind, number) for lane in lanes(task, prediction, f.chip)]
            if span.launched_us > span.launch_us and task.core != HOST:
                bars.append(Bar("host", base + span.launch_us, span.launched_us - span.launch_us, "launch", number))
        base += f.timeline.latency_us
    return tuple(kernels), tuple(bars)


def _kernel(number: int, task: Task, p: Prediction, start_us: float, chip: Chip) -> KernelFact:
    first = task.inputs[0].dtype if task.inputs else None
    return KernelFact(
        number, task.label, task.kind, unit(task, p, chip), start_us, p.time_us, p.low_us, p.high_us, p.bottleneck, p.block_dim, p.occupancy,
        p.flops, round(p.moved_nbytes) or task.nbytes, p.evidence, first.name if first else "", task.fused, task.place,
    )  # fmt: skip


def lanes(task: Task, prediction: Prediction, chip: Chip) -> tuple[str, ...]:
    """The rows of the timeline that a kernel takes."""
    match task.core:
        case "MIX_AIC" | "MIX_AIV":
            return ("cube", "vector")
        case "AI_VECTOR_CORE":
            return ("vector",)
        case "AI_CPU":
            return ("ai cpu",)
        case "DVPP":
            return ("dvpp",)
        case "HOST":
            return ("host",)
        case "COMMUNICATION":
            return ("communication",)
    # one core holds both units (910A, 310P), or nobody said: by the pipe that has more to do
    return ("cube",) if prediction.pipes.get("cube", 0.0) or prediction.bottleneck == "cube" else ("vector",)


def unit(task: Task, prediction: Prediction, chip: Chip) -> str:
    """The unit in words; of a core that holds both, the one that works."""
    if task.core in UNITS:
        return UNITS[task.core]
    return lanes(task, prediction, chip)[0]


def _units(kernels: Sequence[KernelFact]) -> tuple[UnitFact, ...]:
    counts, times = Counter(k.unit for k in kernels), Counter[str]()
    for k in kernels:
        times[k.unit] += k.time_us  # type: ignore[assignment]  # Counter's values are numbers
    return tuple(UnitFact(name, counts[name], us) for name, us in times.most_common())


def _ceilings(chip: Chip, found: Sequence[Forecast]) -> tuple[Ceiling, ...]:
    """What the chip can do at most in the element types that its units spend most time on."""
    times: dict[str, Counter[str]] = {"cube": Counter(), "vector": Counter()}
    for f in found:
        for x, p in zip(f.launches, f.predictions, strict=True):
            first = x.task.inputs[0].dtype if x.task.inputs else None
            if first is not None:
                times["cube" if p.pipes.get("cube") else "vector"][first.name] += p.time_us  # type: ignore[assignment]  # Counter's values are numbers
    cube = [(n, chip.peak_flops_per_s(n)) for n, _ in times["cube"].most_common() if chip.peak_flops_per_s(n)] or [
        ("f16", chip.peak_flops_per_s("f16"))
    ]
    vector = next((n for n, _ in times["vector"].most_common() if n in ("f16", "f32", "bf16")), "f16")
    lines = [Ceiling(f"cube {name}", rate, "op/s") for name, rate in cube if rate]
    lines.append(Ceiling(f"vector {vector}", chip.peak_vector_per_s(vector), "op/s"))
    lines.append(Ceiling("memory", chip.memory_bytes_per_s, "bytes/s"))
    if chip.l2_bytes_per_s:
        lines.append(Ceiling("L2", chip.l2_bytes_per_s, "bytes/s"))
    return tuple(lines)


# ---------------------------------------------------------------------- operators, casts, layouts, fusion
def _mapping(found: Sequence[Forecast]) -> tuple[MappedFact, ...]:
    """One row for operators of one kind that run alike; what was taken apart is one row, with its parts."""
    merged: dict[tuple[str, ...], list[tuple[Node, tuple[Alternative, ...]]]] = {}
    for f in found:
        choices, parts = f.selection.choices, set[Node]()
        for c in f.selection.composites:
            parts |= set(c.parts)
            made = [choices[n] for n in c.parts if n in choices and choices[n].kind]
            units = " + ".join(dict.fromkeys(unit_text(x.unit) for x in made if x.unit))
            evidence = "documented" if all(x.evidence == "documented" for x in made) else "inferred"
            sources = "; ".join(dict.fromkeys(x.source for x in made))
            key = (title(c.node.op), units, " + ".join(x.kind for x in made), "composite", evidence, sources, c.why)
            merged.setdefault(key, []).append((c.node, ()))
        for node, choice in choices.items():
            if node not in parts:
                cann = " / ".join(dict.fromkeys(x for x in (choice.kind, choice.aclnn) if x))
                key = (title(node.op), unit_text(choice.unit), cann, choice.how, choice.evidence, choice.source, choice.why)
                merged.setdefault(key, []).append((node, choice.alternatives))
    rows = []
    for (operator, units, cann, how, evidence, source, why), members in merged.items():
        node, others = members[0]
        rows.append(
            MappedFact(operator, len(members), units, cann, how, evidence, source, why, place(node), tuple(map(_alternative, others)))
        )
    order = ("none", "host", "ai cpu", "dvpp", "composite", "ge", "aclnn")  # what a person should look at first
    return tuple(sorted(rows, key=lambda m: (order.index(m.how) if m.how in order else len(order), -m.count, m.operator)))


def unit_text(core: str) -> str:
    """A unit of CANN's in words."""
    return UNITS.get(core, "cube" if core == CUBE else core)


def _alternative(other: Alternative) -> str:
    cost = f"about {other.cost_us:.3g} µs, predicted" if other.cost_us is not None else ""
    return " · ".join(x for x in (other.what, other.how, cost) if x)


def _casts(found: Sequence[Forecast]) -> tuple[CastsFact, ...]:
    merged: dict[tuple[str, str, str, bool], list[tuple[str, int]]] = {}
    for f in found:
        for c in f.casts:
            why = "weights and other constants: done once, before the model is loaded" if c.constant else c.why
            merged.setdefault((str(c.from_dtype), str(c.to_dtype), why, c.constant), []).append((c.where, c.nbytes))
    rows = [CastsFact(a, b, len(m), sum(n for _, n in m), why, m[0][0], constant) for (a, b, why, constant), m in merged.items()]
    return tuple(sorted(rows, key=lambda c: (c.constant, -c.nbytes)))


def _conversions(found: Sequence[Forecast]) -> tuple[ConversionFact, ...]:
    rows = []
    for f in found:
        at = conversion_launches(f)
        for c in f.formats.conversions:
            readers = ", ".join(dict.fromkeys(title(n.op) for n in c.consumers)) or "the output"
            what = f"{title(c.producer.op)} for {readers}"
            time_us = f.predictions[at[c]].time_us if c in at else 0.0
            rows.append(ConversionFact(what, c.source, c.target, c.nbytes, c.constant, time_us, c.why, c.avoid, place(c.producer)))
    merged: dict[tuple[object, ...], list[ConversionFact]] = {}
    for row in rows:
        merged.setdefault((row.what, row.source, row.target, row.constant, row.why, row.avoid), []).append(row)
    together = [_together(rows) for rows in merged.values()]
    return tuple(sorted(together, key=lambda c: (c.constant, -c.nbytes)))


def _together(rows: Sequence[ConversionFact]) -> ConversionFact:
    first = rows[0]
    if len(rows) == 1:
        return first
    nbytes, time_us = sum(r.nbytes for r in rows), sum(r.time_us for r in rows)
    return replace(first, what=f"{len(rows)} × {first.what}", nbytes=nbytes, time_us=time_us, count=len(rows))


def _fusions(found: Sequence[Forecast]) -> tuple[RuleFact, ...]:
    merged: dict[str, Counter[str]] = {}
    for f in found:
        for group in f.fusion.groups:
            if group.rule and len(group.nodes) > 1:
                merged.setdefault(group.rule, Counter())[" + ".join(title(n.op) for n in group.nodes)] += 1
    rows = [RuleFact(rule, m.total(), ", ".join(f"{n} × {what}" for what, n in m.most_common(4))) for rule, m in merged.items()]
    return tuple(sorted(rows, key=lambda r: -r.count))


def _missed(found: Sequence[Forecast]) -> tuple[MissedRule, ...]:
    """Pairs of kernels that stay apart, those of the same kinds for the same reason as one."""
    merged: dict[tuple[str, ...], list[MissedRule]] = {}
    for m in (m for f in found for m in f.fusion.missed):
        row = MissedRule(m.producer, m.consumer, m.rule, m.nbytes, m.why, m.loc)
        merged.setdefault((m.producer.split(" ")[0], m.consumer.split(" ")[0], m.rule, m.why), []).append(row)
    together = [
        rows[0] if len(rows) == 1 else replace(rows[0], producer=f"{len(rows)} × {a}", consumer=b, nbytes=sum(r.nbytes for r in rows))
        for (a, b, *_), rows in merged.items()
    ]
    return tuple(sorted(together, key=lambda m: -m.nbytes)[:SHOWN_MISSED])


def _warnings(found: Sequence[Forecast]) -> tuple[str, ...]:
    """What must be said loudly: a chip's name that means another, operators on the host, predictions outside what was measured."""
    chip = found[0].chip
    said = [*([chip.caution] if chip.caution else []), *found[0].options.switches.notes]
    for how, words in (
        ("host", "on the host, and the device waits"),
        ("ai cpu", "on the AI CPU"),
        ("none", "without a mapping on this chip, which no figure here counts"),
    ):
        names = Counter(title(node.op) for f in found for node, c in f.selection.choices.items() if c.how == how)
        if names:
            said.append(f"{plural(names.total(), 'operator')}, {words}: {', '.join(f'{n} {name}' for name, n in names.most_common())}")
    said += dict.fromkeys(note for f in found for note in f.timeline.notes)
    return tuple(said)


# ---------------------------------------------------------------------- advice
def _advice(found: Sequence[Forecast], batch_command: str) -> tuple[AdviceFact, ...]:
    """Advice on each piece; what is said of several is one item, its gains added up."""
    total = sum(f.timeline.latency_us for f in found)
    merged: dict[tuple[str, str], list[Advice]] = {}
    for f in found:
        for a in advise(f, batch_command=batch_command):
            merged.setdefault((a.kind, a.title), []).append(a)
    rows = [_advised(items, total) for items in merged.values()]
    return tuple(sorted(rows, key=lambda a: -a.gain_percent))


def _advised(items: Sequence[Advice], total_us: float) -> AdviceFact:
    first = items[0]
    gain = sum(a.gain for a in items)
    if len(items) == 1:
        percent, low, high = first.percent, first.low_percent, first.high_percent
    else:
        percent = 100 * gain / total_us if first.unit == "us" and total_us else first.percent
        low, high = (percent * x / first.percent if first.percent else 0.0 for x in (first.low_percent, first.high_percent))
    return AdviceFact(first.kind, first.title, first.why, first.command, gain, first.unit, percent, low, high, first.what)
