"""`forecast`: what an Ascend NPU would do with a graph: which operators, in which formats, in how much memory, how long, and why.

In: a graph as captured, a `Chip`, options.  Out: `Forecast`, which holds what each stage gave: casts, mapping, formats, fusion, launches, their times,
the timeline and the memory.  Nothing is compiled or run.  The stages:

    captured -> device-independent passes -> precision -> select -> formats -> fusion -> launches -> times, timeline, memory
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from jumar.base import during
from jumar.compiler.passes.formats import Formats, assign_formats
from jumar.compiler.passes.fuse_npu import Fusion, fuse_npu
from jumar.compiler.passes.precision import CastFact, Precision, set_precision
from jumar.compiler.passes.recognize_gradients import RecognizeGradients
from jumar.compiler.passes.select import Selection, select
from jumar.compiler.passes.switches import Switches
from jumar.compiler.stages import device_independent
from jumar.compiler.twin.memory import DeviceMemory, device_memory
from jumar.compiler.twin.tasks import Launch, launches
from jumar.device.npu import Chip, Prediction, Timeline, predict, timeline
from jumar.ir import Graph


@dataclass(frozen=True)
class TwinOptions:
    """What the user chose.   mode: how kernels are launched, one of timeline.MODES; strict: an operator without a mapping is an error.

    training: the graph is a training step, so weights change and are converted at every step.   communicators: groups of devices, each with its buffers.
    framework: whose memory reserve and pool, `acl` for an offline model, `mindspore`, `torch_npu`.   autofuse: CANN's AutoFuse is on.
    """

    precision: Precision = field(default_factory=Precision)
    mode: str = "sunk"
    strict: bool = False
    switches: Switches = field(default_factory=Switches)
    training: bool = False
    communicators: int = 0
    framework: str = "acl"
    autofuse: bool = False


@dataclass(frozen=True, eq=False)
class Forecast:
    """A graph on a chip, stage by stage.   graph: as mapped, after precision; launches and predictions: one for each kernel, in order."""

    chip: Chip
    options: TwinOptions
    captured: Graph
    graph: Graph
    casts: tuple[CastFact, ...]
    selection: Selection
    formats: Formats
    fusion: Fusion
    launches: tuple[Launch, ...]
    predictions: tuple[Prediction, ...]
    timeline: Timeline
    memory: DeviceMemory


def forecast(graph: Graph, chip: Chip, options: TwinOptions | None = None) -> Forecast:
    """The forecast of a graph whose dimensions are numbers."""
    options = options or TwinOptions()
    with during(f"forecasting graph {graph.name!r} for {chip.name}"):
        prepared = graph
        for step in device_independent():
            prepared = step(prepared)
        if options.training:
            prepared = RecognizeGradients(device_independent())(prepared)
        typed, casts = set_precision(prepared, chip, options.precision)
        selection = select(typed, chip, strict=options.strict, inference=not options.training, precision=options.precision)
        eager = options.mode == "eager"
        formats = assign_formats(selection, chip, inference=not options.training, eager=eager, switches=options.switches)
        fusion = fuse_npu(selection, formats, chip, options.switches, eager=eager, autofuse=options.autofuse)
        found = launches(selection, formats, fusion, chip)
        predictions = predict_all(found, chip)
        line = timeline([x.task for x in found], predictions, chip, mode=options.mode, reads=[x.reads for x in found])
        memory = device_memory(
            found,
            selection.graph,
            chip,
            framework=options.framework,
            mode="pynative" if eager else "graph",
            communicators=options.communicators,
        )
    return Forecast(chip, options, graph, selection.graph, casts, selection, formats, fusion, found, predictions, line, memory)


def predict_all(found: Sequence[Launch], chip: Chip) -> tuple[Prediction, ...]:
    """The time of each launch, knowing which of its inputs the kernels before left in the L2 cache."""
    return tuple(predict(x.task, chip, resident_nbytes=n) for x, n in zip(found, resident(found, chip), strict=True))


def resident(found: Sequence[Launch], chip: Chip) -> tuple[int, ...]:
    """Bytes of each launch's inputs that are still in L2: what was written less than one L2 of traffic ago."""
    traffic: list[int] = [0]
    made: list[int] = []
    for x in found:
        near = 0
        for read, operand in zip(x.reads, x.task.inputs, strict=False):
            if read is not None and read >= 0 and traffic[-1] - traffic[read] < chip.l2_nbytes:
                near += operand.nbytes
        made.append(near)
        traffic.append(traffic[-1] + x.task.nbytes)
    return tuple(made)
