"""More work takes longer and no kernel beats its roof: properties of `predict` over shapes and chips, not of single samples."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jumar.base import f16, f32
from jumar.device.npu import Chip, Operand, Task, chips, find_chip, predict

NAMED = tuple(map(find_chip, ("310P3", "910A", "910B2", "910B4", "A3", "950PR")))
BATCHES = (*range(1, 66), 80, 96, 128, 144, 192, 256, 257, 384, 512, 1024)
FALLS = 0.02
# tiles are searched in steps: a product of a few rows more may find one that fits it better
SEARCHED = 0.17
Growing = Callable[[int], Task]


def conv(channels: int, results: int, window: int, side: int, stride: int = 1) -> Growing:
    c1, n1, out = -(-channels // 16), -(-results // 16), side // stride

    def at(batch: int) -> Task:
        w = Operand((c1 * window * window, n1, 16, 16), f16, "FRACTAL_Z")
        return Task(
            "Conv2D", (Operand((batch, c1, side, side, 16), f16, "NC1HWC0"), w), (Operand((batch, n1, out, out, 16), f16, "NC1HWC0"),)
        )

    return at


def depthwise(channels: int, window: int, side: int) -> Growing:
    def at(batch: int) -> Task:
        x = Operand((batch, channels // 16, side, side, 16), f16, "NC1HWC0")
        return Task("DepthwiseConv2D", (x, Operand((channels // 16 * window * window, 1, 16, 16), f16, "FRACTAL_Z")), (x,))

    return at


def product(k: int, n: int) -> Growing:
    return lambda m: Task("MatMulV2", (Operand((m, k), f16), Operand((k, n), f16)), (Operand((m, n), f16),))


def products(m: int, k: int, n: int) -> Growing:
    return lambda b: Task("BatchMatMulV2", (Operand((b, m, k), f16), Operand((b, k, n), f16)), (Operand((b, m, n), f16),))


def unary(kind: str, *shape: int, out: tuple[int, ...] | None = None) -> Growing:
    return lambda b: Task(kind, (Operand((b, *shape), f16),), (Operand((b, *(shape if out is None else out)), f16),))


def add(*shape: int, other: tuple[int, ...] | None = None) -> Growing:
    def at(batch: int) -> Task:
        x = Operand((batch, *shape), f16)
        return Task("Add", (x, x if other is None else Operand(other, f16)), (x,))

    return at


def transdata(channels: int, side: int, back: bool = False) -> Growing:
    def at(batch: int) -> Task:
        plain, blocks = (
            Operand((batch, channels, side, side), f16, "NCHW"),
            Operand((batch, -(-channels // 16), side, side, 16), f16, "NC1HWC0"),
        )
        return Task("TransData", (blocks if back else plain,), (plain if back else blocks,))

    return at


PLAIN = {
    "add": add(64, 28, 28), "add small": add(100), "add row": add(128, 768, other=(768,)), "gelu": unary("Gelu", 128, 3072),
    "sigmoid": unary("Sigmoid", 96, 14, 14), "cast": lambda b: Task("Cast", (Operand((b, 3, 224, 224), f16),), (Operand((b, 3, 224, 224), f32),)),
    "mean": unary("ReduceMean", 128, 768, out=(128, 1)), "mean small": unary("ReduceMean", 10, out=(1,)),
    "mean of maps": unary("ReduceMean", 256, 14, 14, out=(256, 1, 1)),
    "sum of batch": lambda b: Task("ReduceSum", (Operand((b, 128, 768), f16),), (Operand((128, 768), f16),)),
    "softmax": unary("SoftmaxV2", 12, 128, 128), "softmax small": unary("SoftmaxV2", 1000), "transdata": transdata(64, 56),
    "transdata back": transdata(1000, 1, back=True), "transdata deep": transdata(256, 14, back=True),
    "pool": lambda b: Task("MaxPool", (Operand((b, 4, 112, 112, 16), f16, "NC1HWC0"),), (Operand((b, 4, 56, 56, 16), f16, "NC1HWC0"),)),
    "transpose": lambda b: Task("Transpose", (Operand((b, 12, 128, 64), f16),), (Operand((b, 128, 12, 64), f16),), attrs={"perm": (0, 2, 1, 3)}),
}  # fmt: skip
ON_CUBE = {
    "conv deep": conv(512, 512, 3, 7), "conv wide": conv(64, 64, 3, 56), "conv 1x1": conv(256, 64, 1, 56), "conv stride": conv(1024, 2048, 1, 14, 2),
    "conv stem": conv(3, 64, 7, 224, 2), "conv mid": conv(256, 256, 3, 14), "conv small": conv(16, 24, 1, 28), "conv large": conv(512, 1024, 3, 32),
    "depthwise": depthwise(96, 3, 56), "depthwise deep": depthwise(960, 5, 7),
    "product": product(768, 3072), "product of classes": product(2048, 1000), "product square": product(4096, 4096), "product small": product(64, 64),
    "products": products(128, 64, 128), "products ragged": products(197, 64, 197),
}  # fmt: skip


def _deepest_fall(task: Growing, chip: Chip, batches: tuple[int, ...]) -> float:
    """How far the time falls below that of any smaller batch, as a share of it."""
    highest, deepest = 0.0, 0.0
    for batch in batches:
        time = predict(task(batch), chip).time_us
        highest = max(highest, time)
        deepest = max(deepest, 1 - time / highest)
    return deepest


@pytest.mark.parametrize("name", PLAIN)
def test_a_larger_batch_takes_no_less_time(name: str) -> None:
    assert {c.name: d for c in NAMED if (d := _deepest_fall(PLAIN[name], c, BATCHES)) > FALLS} == {}


@pytest.mark.parametrize("name", ON_CUBE)
def test_a_larger_batch_takes_no_less_time_on_the_cube(name: str) -> None:
    # fewer than eight rows load as slowly as was measured: 910B4-1 takes longer for four rows than for eight
    batches = tuple(b for b in BATCHES if b >= 8) if name.startswith("product ") or name == "product" else BATCHES
    assert {c.name: d for c in NAMED if (d := _deepest_fall(ON_CUBE[name], c, batches)) > SEARCHED} == {}


def test_two_images_do_not_take_the_cores_of_one_away() -> None:
    for chip in NAMED:
        one, two = (predict(conv(512, 512, 3, 7)(n), chip) for n in (1, 2))
        assert two.time_us < 2 * one.time_us and two.block_dim >= one.block_dim // 2


@pytest.mark.parametrize("name", [*PLAIN, *ON_CUBE])
def test_no_low_end_beats_the_roof(name: str) -> None:
    """The cube at its clock on all cores, and what L2 cannot hold at the documented bandwidth of the memory."""
    for chip in chips():
        for batch in (1, 8, 64, 1024):
            task = (PLAIN | ON_CUBE)[name](batch)
            p = predict(task, chip)
            memory = max(0.0, task.nbytes - chip.l2_nbytes) / chip.memory_bytes_per_s * 1e6
            cube = 0.0 if name in PLAIN or name.startswith("depthwise") else p.flops / chip.peak_flops_per_s("f16") * 1e6
            assert max(memory, cube) <= p.low_us * 1.0001 and p.low_us <= p.time_us <= p.high_us, (chip.name, batch)


def test_what_does_not_lie_in_l2_comes_from_memory() -> None:
    task = product(4096, 4096)(1)
    for chip in NAMED:
        assert predict(task, chip, resident_nbytes=0).low_us >= sum(o.nbytes for o in task.inputs) / chip.memory_bytes_per_s * 1e6 * 0.9999


def test_intervals_are_wider_the_less_was_measured_of_a_generation() -> None:
    def width(name: str) -> float:
        p = predict(product(768, 3072)(512), find_chip(name))
        return p.high_us / p.time_us

    assert width("910B4") < width("310P3") < width("910A") < width("950PR")
    said = [predict(product(768, 3072)(512), find_chip(n)).evidence for n in ("310P3", "910A", "950PR")]
    assert "whole models on 310P3" in said[0] and "four whole models" in said[1] and "nor a whole model" in said[2]


def test_an_element_type_that_was_not_measured_in_a_family_is_said() -> None:
    assert "was measured in f16" in predict(conv(64, 64, 3, 56)(1), find_chip("910B4")).evidence
