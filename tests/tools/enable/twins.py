"""A hand-made `TwinFact`, for tests of what shows it, and that of a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from jumar.compiler import TwinOptions
from jumar.device.npu import find_chip
from jumar.frontend import load
from jumar.tools.enable.twin import TwinRequest, batch_command, look
from jumar.tools.enable.twin_facts import (
    AdviceFact,
    Bar,
    CastsFact,
    Ceiling,
    ChipFigure,
    ConversionFact,
    DeviceMemoryFact,
    Estimate,
    KernelFact,
    MappedFact,
    MissedRule,
    PartFact,
    RuleFact,
    TwinFact,
    TwinNumerics,
    UnitFact,
    ValueNumerics,
)

CHIP = find_chip("Ascend910B4")


def twin_of(path: Path, **options) -> TwinFact:
    """What the twin says of a model on `CHIP`, with 1 for each free dimension."""
    model = load(path)
    graphs = model.graphs(dims=dict.fromkeys(model.free_dims, 1))
    return look(graphs, CHIP, TwinRequest((CHIP,), TwinOptions(**options)), batch_command(model.inputs))[0]


KINDS = (
    ("MatMulV2", "cube", "cube", 8e8, 3 << 20),
    ("Add", "vector", "mte2", 2e6, 6 << 20),
    ("SoftmaxV2", "vector", "vector", 4e6, 2 << 20),
)


def kernels(count: int = 12) -> tuple[KernelFact, ...]:
    """Kernels one after the other."""
    found, at = [], 5.0
    for i in range(count):
        kind, unit, bottleneck, flops, nbytes = KINDS[i % 3]
        time = 6.0 + i
        found.append(
            KernelFact(
                i, f"node {i}", kind, unit, at, time, 0.8 * time, 1.3 * time, bottleneck, 20 if unit == "cube" else 40, 0.7, flops * (1 + i % 4),
                nbytes, "calibrated" if i % 5 else "sizes beyond those measured: wider", "f16", ("Relu",) if i == 3 else (), f"/layer.{i}/{kind}",
            )
        )  # fmt: skip
        at += time + 1
    return tuple(found)


def twin(soc: str = "Ascend910B4") -> TwinFact:
    """A model of a dozen kernels."""
    found = kernels()
    end = found[-1].start_us + found[-1].time_us
    bars = [Bar(k.unit, k.start_us, k.time_us, k.kind, k.index) for k in found]
    units = tuple(UnitFact(u, sum(k.unit == u for k in found), sum(k.time_us for k in found if k.unit == u)) for u in ("vector", "cube"))
    bound = tuple((b, sum(k.time_us for k in found if k.bottleneck == b)) for b in ("vector", "mte2", "cube"))
    return TwinFact(
        soc, f"A card with {soc} <x>", "force_fp16", "sunk: the graph is launched once and runs by itself", Estimate(end, 0.85 * end, 1.2 * end, "us"),
        Estimate(1e6 / end, 0.8e6 / end, 1.2e6 / end, "samples/s"), Estimate(0.9 * end, 0.8 * end, end, "us"), 3.0, "vector-bound", 0.9, 1,
        (ChipFigure("cube_cores", "20 cores", "documented", "platform configuration"),),
        units,
        (
            MappedFact("matmul", 4, "cube", "MatMulV2 / aclnnMatmul", "aclnn", "documented", "aclnn_ops.csv"),
            MappedFact("non_max_suppression", 1, "AI CPU", "NonMaxSuppression", "ai cpu", "inferred", "ge_ops.csv", "no f32", "/nms", ("int32 · 3 µs",)),
        ),
        (CastsFact("f32", "f16", 3, 3 << 20, "force_fp16", "/layer.0"),),
        (ConversionFact("x for conv", "NCHW", "NC1HWC0", 600 << 10, False, 3.2, "a convolution reads blocks", "feed NC1HWC0"),),
        (RuleFact("TbeEltwiseFusionPass", 3, "3 × add + relu"),),
        (MissedRule("softmax", "matmul", "", 2 << 20, "no rule joins a reduction with a product", "/layer.2"),),
        found, (*bars, Bar("host", 0.0, 3.0, "launch")), bound,
        (Ceiling("cube f16", 2.4e14, "op/s"), Ceiling("vector f16", 9e12, "op/s"), Ceiling("memory", 8e11, "bytes/s"), Ceiling("L2", 3e12, "bytes/s")),
        DeviceMemoryFact(
            True, "fits: 180 MiB of 32 GiB", 180 << 20, 32 << 30, 30 << 30, (PartFact("weights", 120 << 20), PartFact("activations", 60 << 20)), 200 << 20,
            60 << 20, 58 << 20, (58 << 20, 20 << 20, 30 << 20), (PartFact("/layer.0/MatMul", 30 << 20),),
        ),
        (AdviceFact("batch", "a batch of 16 in place of 1", "fixed costs", "--input x=16,3", 90.0, "us", 61.0, 52.0, 68.0, "time per sample"),),
        TwinNumerics(
            "1 node overflows", False, "f16", (), (ValueNumerics("exp", "f16", "/exp", 1.0, 0.5, "overflows: inf"),), ("subtract",),
            ("1 node overflows", "subtract"), 0.1,
        ),
        ("one warning",), (("sizes beyond those measured: wider", 3),),
    )  # fmt: skip


def too_large() -> TwinFact:
    """The same where it does not fit."""
    found = twin("Ascend310P3")
    assert found.memory, "it was made with memory"
    memory = replace(found.memory, fits=False, verdict="does not fit: 40 GiB of 21 GiB", peak_nbytes=40 << 30, remedies=("a batch of 4",))
    return replace(
        found,
        memory=replace(memory, capacity_nbytes=21 << 30, parts=(PartFact("weights", 38 << 30), PartFact("activations", 2 << 30))),
        advice=(),
    )
