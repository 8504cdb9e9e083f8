"""The time of a kernel: its bottleneck, what makes it longer, and what the interval says."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from jumar.base import DType, bf16, f16, f32, i8, i64
from jumar.device.npu import BOTTLENECKS, Operand, Prediction, Task, chips, collective, find_chip, predict
from jumar.device.npu.time import calibration

B4, B1 = find_chip("910B4"), find_chip("910B1")


def matmul(m: int, k: int, n: int, dtype: DType = f16) -> Task:
    return Task("MatMulV3", (Operand((m, k), dtype), Operand((k, n), dtype)), (Operand((m, n), dtype),))


def add(*shape: int, dtype: DType = f16) -> Task:
    return Task("Add", (Operand(shape, dtype), Operand(shape, dtype)), (Operand(shape, dtype),))


def test_a_large_product_is_bound_by_the_cube_and_near_its_rate() -> None:
    p = predict(matmul(4096, 4096, 4096), B4)
    assert p.bottleneck == "cube" and p.block_dim == B4.cube_cores
    assert 0.6 < p.flops / (p.time_us * 1e-6) / B4.peak_flops_per_s("f16") < 1.0


def test_a_large_sum_is_bound_by_memory_and_near_its_bandwidth() -> None:
    p = predict(add(4096, 65536), B4)
    assert p.bottleneck in ("mte2", "mte3")
    assert 0.5 < 3 * 2 * 4096 * 65536 / (p.time_us * 1e-6) / B4.memory_bytes_per_s < 1.1


def test_a_scalar_costs_a_launch() -> None:
    p = predict(add(1), B4)
    assert p.bottleneck == "launch" and p.block_dim == 1 and 0.8 < p.time_us < 3


def test_more_work_takes_longer() -> None:
    times = [predict(matmul(m, 4096, 4096), B4).time_us for m in (16, 256, 1024, 4096, 16384)]
    assert times == sorted(times)
    times = [predict(add(4096, n), B4).time_us for n in (16, 256, 1024, 4096, 16384)]
    assert times == sorted(times)


def test_element_types_have_their_rates() -> None:
    half, single, integer = (predict(matmul(4096, 4096, 4096, d), B4).time_us for d in (f16, f32, i8))
    assert integer < half < single


def test_operands_in_l2_are_read_faster() -> None:
    task = add(2048, 4096)
    assert predict(task, B4, resident_nbytes=task.nbytes).time_us < predict(task, B4, resident_nbytes=0).time_us


def test_a_faster_memory_helps_what_waits_for_it() -> None:
    assert predict(add(4096, 65536), find_chip("910B4-1")).time_us < 0.7 * predict(add(4096, 65536), B4).time_us


def test_integers_that_no_kernel_takes_go_to_the_ai_cpu() -> None:
    shape = Operand((48,), i64)
    assert predict(Task("FloorDiv", (shape, shape), (shape,)), B1).bottleneck == "ai cpu"
    single = Operand((48,), f32)
    assert predict(Task("FloorDiv", (single, single), (single,)), B1).bottleneck != "ai cpu"


def test_an_unknown_kind_gets_a_wide_interval_and_says_why() -> None:
    p = predict(replace(add(1024, 1024), kind="Frobnicate"), B4)
    known = predict(add(1024, 1024), B4)
    assert "no kernel of this kind was measured" in p.evidence
    assert p.high_us / p.low_us > known.high_us / known.low_us
    assert known.evidence == "calibrated"


def test_a_chip_that_was_not_measured_says_so() -> None:
    for name in ("310P3", "910A", "950PR_9599"):
        p = predict(add(1024, 1024), find_chip(name))
        assert "generation" in p.evidence and p.low_us < p.time_us < p.high_us


def test_a_kernel_beyond_all_that_was_measured_says_so() -> None:
    assert "larger than any kernel" in predict(add(1 << 16, 1 << 16), B4).evidence


def test_what_is_fused_in_adds_less_than_a_kernel_of_its_own() -> None:
    alone, gelu = matmul(1024, 1024, 1024), Task("Gelu", (Operand((1024, 1024), f16),), (Operand((1024, 1024), f16),))
    fused = predict(replace(alone, fused=("Gelu",)), B4).time_us
    assert predict(alone, B4).time_us <= fused < predict(alone, B4).time_us + predict(gelu, B4).time_us


def test_a_grouped_product_multiplies_the_rows_of_its_groups() -> None:
    x, w, y = Operand((65536, 1024), bf16), Operand((8, 1024, 1024), bf16), Operand((65536, 1024), bf16)
    some = Task("GroupedMatmul", (x, w), (y,), attrs={"group_list": [16, 32, 48, 64, 80, 96, 112, 128]})
    assert predict(some, B1).time_us < 0.2 * predict(Task("GroupedMatmul", (x, w), (y,)), B1).time_us


def test_a_group_list_may_hold_sums_or_counts() -> None:
    x, w, y = Operand((65536, 1024), bf16), Operand((4, 1024, 1024), bf16), Operand((65536, 1024), bf16)
    times = {
        name: predict(Task("GroupedMatmul", (x, w), (y,), attrs=attrs), B1).time_us
        for name, attrs in {
            "sums": {"group_list": [512, 1024, 1536, 2048]},
            "counts": {"group_list": [512, 512, 512, 512]},
            "said": {"group_list": [512, 512, 512, 512], "group_list_type": 1},
        }.items()
    }
    assert len(set(times.values())) == 1


def test_attention_over_a_cache_reads_the_tokens_that_are_there() -> None:
    q, cache, out = Operand((4, 16, 1, 512), bf16), Operand((4096, 1, 128, 512), bf16), Operand((16, 4, 1, 512), bf16)
    short = Task("FusedInferAttentionScore", (q, cache, cache), (out,), attrs={"actual_seq_lengths_kv": [128] * 4, "input_layout": "BNSD"})
    long = replace(short, attrs={"actual_seq_lengths_kv": [65536] * 4, "input_layout": "BNSD"})
    assert predict(short, B1).time_us < 0.5 * predict(long, B1).time_us


def test_a_collective_among_known_ranks_is_the_collective() -> None:
    message = Operand((1 << 24,), f16)
    task = Task("HcomAllReduce", (message,), (message,), attrs={"ranks": 8})
    assert predict(task, find_chip("910B2")) == collective("HcomAllReduce", message.nbytes, 8, find_chip("910B2"))


def test_a_cache_that_is_written_in_place_is_not_moved() -> None:
    row, weight, cache = Operand((8, 1, 1, 576), bf16), Operand((512,), bf16), Operand((4096, 1, 128, 512), bf16)
    assert predict(Task("KvRmsNormRopeCache", (row, weight, cache), (cache,)), B1).time_us < 50


def test_a_tensor_without_elements_is_as_good_as_absent() -> None:
    some = predict(Task("Add", (Operand((0, 8), f16), Operand((16, 8), f16)), (Operand((16, 8), f16),)), B1)
    assert math.isfinite(some.time_us)


MAP = Operand((1, 4, 56, 56, 16), f16, "NC1HWC0")
EVERY = [
    matmul(64, 64, 64),
    add(8, 8),
    Task("SoftmaxV2", (Operand((12, 128, 128), f16),), (Operand((12, 128, 128), f16),)),
    Task("LayerNormV3", (Operand((128, 768), f16), Operand((768,), f16)), (Operand((128, 768), f16),)),
    Task("Conv2D", (Operand((1, 4, 56, 56, 16), f16, "NC1HWC0"), Operand((36, 4, 16, 16), f16, "FRACTAL_Z")), (Operand((1, 4, 56, 56, 16), f16, "NC1HWC0"),)),
    Task("Conv2D", (Operand((1, 64, 56, 56), f16, "NCHW"), Operand((64, 64, 3, 3), f16, "NCHW")), (Operand((1, 64, 56, 56), f16, "NCHW"),)),
    Task("DepthwiseConv2D", (Operand((1, 4, 56, 56, 16), f16, "NC1HWC0"), Operand((36, 1, 16, 16), f16, "FRACTAL_Z")), (MAP,)),
    Task("TransData", (Operand((1, 64, 56, 56), f16, "NCHW"),), (Operand((1, 4, 56, 56, 16), f16, "NC1HWC0"),)),
    Task("GatherV2", (Operand((30522, 768), f16), Operand((1, 128), i64)), (Operand((1, 128, 768), f16),)),
    Task("Transpose", (Operand((1, 128, 12, 64), f16),), (Operand((1, 12, 128, 64), f16),), attrs={"perm": (0, 2, 1, 3)}),
    Task("MaxPool", (Operand((1, 4, 112, 112, 16), f16, "NC1HWC0"),), (Operand((1, 4, 56, 56, 16), f16, "NC1HWC0"),)),
    Task("TopKV2", (Operand((1, 1000), f32),), (Operand((1, 5), f32),)),
    Task("ReduceMean", (Operand((1, 2048, 7, 7), f16),), (Operand((1, 2048, 1, 1), f16),)),
    Task("ConcatD", (Operand((1, 64, 56, 56), f16), Operand((1, 64, 56, 56), f16)), (Operand((1, 128, 56, 56), f16),)),
    Task("ApplyAdamW", tuple(Operand((1 << 20,), f32) for _ in range(4)), tuple(Operand((1 << 20,), f32) for _ in range(3))),
    Task("HcomAllReduce", (Operand((1 << 24,), f16),), (Operand((1 << 24,), f16),)),
    Task("ResizeBilinearV2", (Operand((1, 4, 32, 32, 16), f32, "NC1HWC0"),), (Operand((1, 4, 64, 64, 16), f32, "NC1HWC0"),)),
    Task("DynamicRNN", (Operand((16, 8, 64), f16), Operand((128, 256), f16)), (Operand((16, 8, 64), f16),)),
    Task("Nothing", (), ()),
]  # fmt: skip


@pytest.mark.parametrize("task", EVERY, ids=lambda t: t.kind)
def test_every_chip_gets_a_whole_prediction(task: Task) -> None:
    for chip in chips():
        p = predict(task, chip)
        assert isinstance(p, Prediction) and math.isfinite(p.time_us) and 0 < p.low_us < p.time_us < p.high_us, chip.name
        assert p.bottleneck in BOTTLENECKS and 0 <= p.occupancy <= 1 and all(v >= 0 for v in p.pipes.values())
        assert p == predict(task, chip)


def test_constants_are_few_and_say_what_they_are() -> None:
    assert len(calibration().constants) <= 40
