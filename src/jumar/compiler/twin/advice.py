"""`advise`: what would make a model faster on an NPU, each item with the gain that the twin predicts for it.

In: a `Forecast`.  Out: `Advice`, the largest gain first.  No gain is guessed: each change is made (options, or the graph by variants.py) and
forecast again, and `Advice.apply` does so once more for whoever doubts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from jumar.base import DTYPES, OpError, StackError, TensorType
from jumar.compiler.passes.formats import Conversion
from jumar.compiler.passes.precision import FORCE_FP16, FORCE_FP32, MIX_BF16, ORIGIN, TO_BF16, Precision
from jumar.compiler.passes.select import Choice
from jumar.compiler.stages import device_independent
from jumar.compiler.twin.forecast import Forecast, TwinOptions, forecast
from jumar.compiler.twin.sizes import batch_of, label_of, with_batch, with_length
from jumar.compiler.twin.tasks import Launch
from jumar.compiler.twin.variants import (
    cast_around,
    narrow_integers,
    padded,
    quantized,
    unquantized,
    with_attention,
    without_border_transposes,
)
from jumar.device.npu import AI_CPU, HOST, Chip, Prediction, timeline
from jumar.ir import Graph, Param

SURE = 0.15
LEAST_PERCENT = 1.0  # what gains less is not said
BLOCK = 16  # rows and columns of the cube's smallest tile of fp16
MOST_SHARED = 0.95  # of the error, even where all kernels are the same: they are of other sizes
LONG_BATCH = 64  # beyond it a larger batch is no advice any more
BATCH_COMMAND = "build or export the model for a batch of {batch}"
LATENCY, PER_SAMPLE, MEMORY = "latency", "time per sample", "memory"


@dataclass(frozen=True, eq=False)
class Change:
    """What to forecast in place of what was forecast: a graph and options for a chip.   spared: conversions of formats that the change makes needless, by
    what would spare them."""

    graph: Graph
    chip: Chip
    options: TwinOptions
    spared: frozenset[str] = frozenset()

    def forecast(self) -> Forecast:
        """What the device would do with it."""
        found = forecast(self.graph, self.chip, self.options)
        return _without_conversions(found, self.spared) if self.spared else found


@dataclass(frozen=True, eq=False)
class Advice:
    """One change.   kind: a word; title: what to do; why: what it mends; command: the command or line that does it.

    before, after: in `unit` (`us`, of a run or a sample, or `bytes`), as predicted; what: LATENCY, PER_SAMPLE or MEMORY.
    low_percent, high_percent: an 80 % interval of the gain: what both forecasts have in common errs in both alike and cancels.
    """

    kind: str
    title: str
    why: str
    command: str
    before: float
    after: float
    unit: str
    what: str
    low_percent: float
    high_percent: float
    change: Change

    @property
    def gain(self) -> float:
        return self.before - self.after

    @property
    def percent(self) -> float:
        return 100.0 * self.gain / self.before if self.before else 0.0

    def stands_out(self, sure: float) -> bool:
        """Whether the gain is so much of its interval's width; one that is as likely a loss is no advice."""
        return not sure or self.percent >= sure * (self.high_percent - self.low_percent)

    def apply(self) -> Forecast:
        """The forecast with the change made."""
        return self.change.forecast()


@dataclass(frozen=True, eq=False)
class Idea:
    """A change whose gain is not known yet.   what: what it is to make smaller."""

    kind: str
    title: str
    why: str
    command: str
    graph: Graph
    options: TwinOptions
    what: str = LATENCY
    spared: frozenset[str] = frozenset()


def advise(
    found: Forecast, *, least_percent: float = LEAST_PERCENT, sure: float = SURE, batch_command: str = BATCH_COMMAND
) -> tuple[Advice, ...]:
    """What would gain at least so much, the largest gain first.   sure: how much of its interval's width a gain must be at least; batch_command: how
    the user gets another `{batch}`."""
    tried = (_try(found, idea) for idea in _ideas(found, batch_command))
    said = sorted((a for a in tried if a is not None and a.percent >= least_percent and a.stands_out(sure)), key=lambda a: -a.percent)
    best: dict[str, Advice] = {}
    for a in said:  # of two ways to the same (two batches, two precisions) the better one
        best.setdefault(a.kind, a)
    return tuple(replace(a, kind=a.kind.split()[0]) for a in best.values())


def prepared_graph(graph: Graph) -> Graph:
    """The graph as the device's own passes get it."""
    for step in device_independent():
        graph = step(graph)
    return graph


def _try(found: Forecast, idea: Idea) -> Advice | None:
    change = Change(idea.graph, found.chip, idea.options, idea.spared)
    try:
        changed = change.forecast()
    except StackError as error:
        if error.code == "our-bug":
            raise
        return None  # what the chip, or --strict, refuses is no advice, and no reason to tell nothing at all
    if not changed.memory.fits and found.memory.fits:
        return None
    if idea.what == MEMORY:
        before, after = float(found.memory.needed_nbytes), float(changed.memory.needed_nbytes)
        percent = 100.0 * (1 - after / before) if before else 0.0
        low, high = percent, percent  # sizes are known
    else:
        per = (batch_of(found.captured), batch_of(idea.graph)) if idea.what == PER_SAMPLE else (1, 1)
        before, after = found.timeline.latency_us / per[0], changed.timeline.latency_us / per[1]
        low, high = _interval(found, changed, before, after)
    unit = "bytes" if idea.what == MEMORY else "us"
    return Advice(idea.kind, idea.title, idea.why, idea.command, before, after, unit, idea.what, low, high, change)


def _interval(found: Forecast, changed: Forecast, before: float, after: float) -> tuple[float, float]:
    """The gain in percent, low and high.   Kernels that both have err alike; the rest of the two errors is taken as independent."""
    if not before or not after:
        return 0.0, 0.0
    shared = _shared(found, changed)
    a, b = (math.log(max(f.timeline.high_us, 1e-9) / max(f.timeline.low_us, 1e-9)) / 2 for f in (found, changed))
    width = math.sqrt(max(a * a + b * b - 2 * shared * a * b, 0.0))
    return tuple(100.0 * (1 - after / before * math.exp(sign * width)) for sign in (1, -1))  # type: ignore[return-value]  # two


def _shared(found: Forecast, changed: Forecast) -> float:
    """Part of the kernels' time that is spent in kernels which both forecasts have, by kind: one efficiency serves a kind."""
    times = []
    for f in (found, changed):
        by_kind = Counter[str]()
        for x, p in zip(f.launches, f.predictions, strict=True):
            by_kind[x.task.kind] += p.time_us  # type: ignore[assignment]  # Counter's values are numbers
        total = sum(by_kind.values()) or 1.0
        times.append({kind: t / total for kind, t in by_kind.items()})
    return MOST_SHARED * sum(min(share, times[1].get(kind, 0.0)) for kind, share in times[0].items())


# ---------------------------------------------------------------------- what could be changed
def _ideas(found: Forecast, batch_command: str) -> Iterator[Idea]:
    prepared = prepared_graph(found.captured)
    yield from _batch(found, batch_command)
    yield from _memory(found, batch_command)
    yield from _precision(found)
    yield from _launching(found)
    yield from _switches(found)
    yield from _autofuse(found)
    yield from _attention(found, prepared)
    yield from _integers(found)
    yield from _elsewhere(found)
    yield from _transposes(found, prepared)
    yield from _lengths(found)
    yield from _conversions(found)
    yield from _padding(found, prepared)
    yield from _codes(found, prepared)
    yield from _numbers(found)


def _batch(found: Forecast, command: str) -> Iterator[Idea]:
    """A batch that fills the cube's tiles, or a larger one, for throughput."""
    before = batch_of(found.captured)
    whole = before % BLOCK == 0
    batch = 2 * before if whole else -(-before // BLOCK) * BLOCK
    if batch <= LONG_BATCH and (graph := with_batch(found.captured, batch)) is not None:
        why = f"more samples share the fixed costs of {len(found.launches)} kernels"
        if not whole:
            why += f", and products get rows that fill the cube's tiles of {BLOCK}"
        yield Idea("batch", f"a batch of {batch} in place of {before}", why, command.format(batch=batch), graph, found.options, PER_SAMPLE)


def _memory(found: Forecast, command: str) -> Iterator[Idea]:
    """A smaller batch, where the model does not fit."""
    batch = batch_of(found.captured)
    while not found.memory.fits and batch > 1:
        batch //= 2
        graph = with_batch(found.captured, batch)
        if graph is None:
            return
        changed = forecast(graph, found.chip, found.options)
        if changed.memory.fits:
            over = found.memory.needed_nbytes / max(found.memory.usable_nbytes, 1)
            why = f"the model needs {over:.1f} times the memory that {found.chip.name} has for it"
            yield Idea("memory", f"a batch of {batch}", why, command.format(batch=batch), graph, found.options, MEMORY)
            return


def _precision(found: Forecast) -> Iterator[Idea]:
    """fp16 where the model keeps fp32, and HF32 for products that stay in fp32."""
    options, precision = found.options, found.options.precision
    # what belongs to the mode that was asked for must not go along: lists, levels, HF32
    narrow = Precision(FORCE_FP16, None, precision.deterministic, precision.infnan, keep=precision.keep, input_fp16=precision.input_fp16)
    if precision.canonical in (FORCE_FP32, ORIGIN):
        why = "the cube multiplies fp16 several times as fast as fp32, and half the bytes are moved; look at --numerics first"
        for changed in (narrow, replace(narrow, mode="allow_mix_precision")):
            command = f"--precision {changed}"
            yield Idea("precision", f"fp16 products: {changed.mode}", why, command, found.captured, replace(options, precision=changed))
        if "hf32" in found.chip.cube_macs and precision.hf32 is not True:
            changed = replace(precision, hf32=True)
            why = "products of fp32 with 11 bits of mantissa take a fraction of the time; sums stay in fp32"
            yield Idea("hf32", "HF32 for products", why, f"--precision {changed}", found.captured, replace(options, precision=changed))
    elif precision.canonical not in (FORCE_FP16, MIX_BF16, TO_BF16):
        why = "operators that mixed precision keeps in fp32 move twice the bytes, and casts stand around them; look at --numerics first"
        title = f"fp16 everywhere: {FORCE_FP16}"
        yield Idea("precision", title, why, f"--precision {narrow}", found.captured, replace(options, precision=narrow))


def _launching(found: Forecast) -> Iterator[Idea]:
    """The whole graph on the device, where the host launches kernel by kernel."""
    if found.options.mode == "sunk":
        return
    share = found.timeline.busy_us / found.timeline.latency_us if found.timeline.latency_us else 0.0
    why = f"the device is busy for {share:.0%} of the time and waits for {len(found.launches)} launches by the host in the rest"
    command = "--mode sunk; in MindSpore set_context(mode=GRAPH_MODE) and jit_config={'jit_level': 'O2'}, with torch_npu a graph (torchair, aclgraph)"
    yield Idea("sink", "sink the graph: launch it once", why, command, found.captured, replace(found.options, mode="sunk"))


def _switches(found: Forecast) -> Iterator[Idea]:
    """Fusion rules that are switched off and would take here."""
    switches = found.options.switches
    for rule in dict.fromkeys(m.rule for m in found.fusion.missed if m.rule and not switches.enabled(m.rule)):
        on = replace(switches, off=switches.off - {rule}, on=switches.on | {rule})
        why = "the rule joins kernels here, so that what is between them need not go through memory, and it is switched off"
        command = f'in fusion_switch.cfg: "{rule}": "on"'
        yield Idea("fuse", f"switch {rule} on", why, command, found.captured, replace(found.options, switches=on))


def _autofuse(found: Forecast) -> Iterator[Idea]:
    """CANN's AutoFuse, on chips that have it, for graphs."""
    if not found.options.autofuse and found.options.mode != "eager" and found.chip.split:
        why = "chains of elementwise operators of any length and shape become one kernel: fewer launches, less through memory"
        command = "--autofuse; on the device the environment variable AUTOFUSE_FLAGS=--enable_autofuse=true"
        yield Idea("autofuse", "switch AutoFuse on", why, command, found.captured, replace(found.options, autofuse=True))


def _attention(found: Forecast, prepared: Graph) -> Iterator[Idea]:
    graph = with_attention(prepared)
    if graph is not None:
        why = "explicit attention writes its scores to memory and reads them again, twice; one FlashAttention kernel keeps them on the chip"
        command = (
            "call the operator in the model: ops.flash_attention_score, or torch.nn.functional.scaled_dot_product_attention under torch_npu"
        )
        yield Idea("attention", "attention as one operator (FlashAttentionScore)", why, command, graph, found.options)


def _integers(found: Forecast) -> Iterator[Idea]:
    slow = Counter(x.task.kind for x in found.launches if x.task.core in (AI_CPU, HOST))
    if slow and (graph := narrow_integers(found.captured)) is not None:
        named = ", ".join(name for name, _ in slow.most_common(4))
        why = f"{slow.total()} kernels run on the AI CPU or the host ({named}); in int32 the vector cores have kernels for some of them"
        command = "x = x.astype(np.int32) for inputs, dtype=ms.int32 (torch.int32) in the model before export"
        yield Idea("dtype", "int32 in place of int64", why, command, graph, found.options)


def _elsewhere(found: Forecast) -> Iterator[Idea]:
    """Operators on the AI CPU or the host that have a kernel in another element type."""
    groups: dict[tuple[str, str], list[Choice]] = {}
    for choice in found.selection.choices.values():
        if choice.unit in (AI_CPU, HOST):
            other = next((a for a in choice.alternatives if a.dtype), None)
            if other is not None:
                groups.setdefault((other.how, other.dtype), []).append(choice)
    p = found.options.precision
    # the graph has its types by now; what is left of the precision is how the cube computes
    options = replace(found.options, precision=Precision(ORIGIN, hf32=p.hf32, deterministic=p.deterministic, infnan=p.infnan))
    for (how, name), choices in groups.items():
        nodes = {c.node for c in choices}
        try:
            graph = cast_around(found.graph, nodes, DTYPES[name])
        except OpError:
            continue
        first = choices[0]
        title = f"{len(choices)} × {first.node.op.name} in {name}" if len(choices) > 1 else f"{first.node.op.name} in {name}"
        yield Idea(f"unit {first.node.op.name}", title, first.why, how, graph, options)


def _transposes(found: Forecast, prepared: Graph) -> Iterator[Idea]:
    changed = without_border_transposes(prepared)
    if changed is not None:
        graph, names = changed
        why = "the model transposes what it is given, or gives; whoever makes the input can write it in that order for nothing"
        shown = ", ".join(names[:3])
        command = f"take {shown} as the model computes with it, for images n,c,h,w (in AIPP or the data pipeline)"
        yield Idea("transpose", f"no transpose of {shown}", why, command, graph, found.options)


def _lengths(found: Forecast) -> Iterator[Idea]:
    """Rows (tokens) in blocks of the cube: what does not fill them is padded inside of each kernel, or not taken as it lies in memory at all."""
    sizes = {p.shape[i]: label_of(p) for p in found.captured.params if isinstance(p.type, TensorType) for i in range(1, p.rank)}
    for size, name in sizes.items():
        other = -(-size // BLOCK) * BLOCK
        if size > BLOCK and size != other and (graph := with_length(found.captured, size, other)) is not None:
            why = f"rows of {size} end within a block of {BLOCK}: some kernels need a change of format for them"
            yield Idea(
                "rows",
                f"{other} rows in place of {size}",
                why,
                f"pad {name} from {size} to {other} and mask what was added",
                graph,
                found.options,
            )


def _conversions(found: Forecast) -> Iterator[Idea]:
    """Changes of format (TransData) at the border of the model that an option would spare."""
    groups: dict[str, list[Conversion]] = {}
    for c in found.formats.conversions:
        if c.avoid and not c.constant and _at_border(c):
            groups.setdefault(c.avoid, []).append(c)
    for avoid, conversions in groups.items():
        first = conversions[0]
        title = f"no TransData ({first.source} to {first.target}, {len(conversions)} of them)"
        yield Idea("layout", title, first.why, avoid, found.captured, found.options, spared=frozenset(c.avoid for c in conversions))


def conversion_launches(found: Forecast) -> dict[Conversion, int]:
    """The launch of each conversion that the device makes at every run."""
    return {x.conversion: number for number, x in enumerate(found.launches) if x.conversion}


def _without_conversions(found: Forecast, spared: frozenset[str]) -> Forecast:
    """The forecast less the launches of these conversions: who reads their results reads what they read."""
    dropped = {number for c, number in conversion_launches(found).items() if c.avoid in spared and _at_border(c)}
    kept: list[Launch] = []
    predictions: list[Prediction] = []
    now: dict[int, int | None] = {}  # where the result of each launch is found
    for number, (launch, prediction) in enumerate(zip(found.launches, found.predictions, strict=True)):
        reads = tuple(now[r] if r is not None and r >= 0 else r for r in launch.reads)
        if number in dropped:
            now[number] = reads[0]
            continue
        now[number] = len(kept)
        kept.append(replace(launch, reads=reads))
        predictions.append(prediction)
    tasks = [x.task for x in kept]
    line = timeline(tasks, predictions, found.chip, mode=found.options.mode, reads=[x.reads for x in kept])
    return replace(found, launches=tuple(kept), predictions=tuple(predictions), timeline=line)


def _at_border(c: Conversion) -> bool:
    """Whether it stands at an input or an output of the model."""
    return not c.consumers or isinstance(c.producer.op, Param)


def _padding(found: Forecast, prepared: Graph) -> Iterator[Idea]:
    changed = padded(prepared, BLOCK)
    if changed is not None:
        graph, sizes = changed
        shown = ", ".join(f"{a} → {b} at {where}" for where, a, b in sizes[:3])
        why = f"{len(sizes)} inner sizes are no multiples of {BLOCK}: rows are not aligned to 32 bytes, and the cube multiplies padding"
        command = f"in the model: {shown}{' ...' if len(sizes) > 3 else ''}"
        yield Idea("padding", f"channels and features in multiples of {BLOCK}", why, command, graph, found.options)


def _codes(found: Forecast, prepared: Graph) -> Iterator[Idea]:
    if "i8" in found.chip.cube_macs and (graph := quantized(prepared)) is not None:
        why = "the cube multiplies int8 twice as fast as fp16, and weights take half the bytes; accuracy must be measured with real data"
        command = (
            "quantise the ONNX file statically with calibration data, codes signed and without zero points "
            "(AMCT; onnxruntime.quantization.quantize_static with QInt8 and ActivationSymmetric)"
        )
        yield Idea("int8", "quantise products to int8", why, command, graph, found.options)


def _numbers(found: Forecast) -> Iterator[Idea]:
    """The model in fp16, where codes of 8 bits cost more than they spare."""
    graph = unquantized(found.captured)
    if graph is not None:
        narrow = replace(found.options, precision=Precision(FORCE_FP16))
        why = "around products of codes stand quantize and dequantize operators, each with kernels of its own here"
        yield Idea(
            "float", "the model before it was quantised, in fp16", why, "take the float model, with --precision force_fp16", graph, narrow
        )
