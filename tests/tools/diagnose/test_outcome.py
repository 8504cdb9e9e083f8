"""A run that ended well, or went on, and whose lines only warn, is healthy; one complaint, or bad numbers, and it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumar.tools.diagnose import diagnose_text
from jumar.tools.knowledge.complaint import complains, is_quiet

STEPS = "\n".join(f"step {n}: loss {5 - n / 100:.3f}, time {100 + n} ms" for n in range(1, 30))
ENDED = f"{STEPS}\ntraining finished, model saved to out/model.ckpt"
MEGATRON = (
    " iteration {n:8}/    2000 | consumed samples:  {n} | lm loss: {loss} | loss scale: {scale} | grad norm: 1.100 "
    "| number of skipped iterations:   {skipped} | number of nan iterations:   {nan} |"
)
FALLBACK = (
    "[W VariableFallbackKernel.cpp:51] Warning: CAUTION: The operator 'aten::_foreach_norm.Scalar' is not currently supported on the NPU backend "
    "and will fall back to run on the CPU. This may have performance implications. (function npu_cpu_fallback)"
)


@pytest.mark.parametrize(
    "warning",
    [
        FALLBACK,
        "[WARNING] DEVICE(21373,fffcd9fff0e0,python):2025-03-11-10:12:06.443.112 [ascend_memory_adapter.cc:117] Initialize] Free memory size is less "
        "than half of total memory size.Device 0 Device HBM total size:65452113920 Device HBM free size:31542113920",
        "[WARNING] RUNTIME(3310,python3):2025-05-11-02:11:04.181.233 [api_error.cc:10] rtGetSocSpec: not support, retCode=0x7030010",
        "[ERROR] TBE Subprocess[task_distribute] raise error[], main process disappeared!",
        "Gradient overflow.  Skipping step, Loss scaler 0 reducing loss scale to 32768.0",
    ],
)
def test_a_warning_in_a_run_that_ended_well_is_told_as_left_aside(warning: str) -> None:
    verdict = diagnose_text(f"{STEPS}\n{warning}\n{ENDED}")
    assert (verdict.exit_code, verdict.findings, verdict.layer, verdict.first_error) == (0, (), "", None)
    assert "the run went well (input:" in str(verdict.notes[0])


RUNS = {
    path.name: path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parents[1] / "knowledge/healthy/runs").glob("*.log"))
}


@pytest.mark.parametrize("name", RUNS)
def test_a_whole_healthy_run_is_healthy_until_something_fails_in_it(name: str) -> None:
    verdict = diagnose_text(RUNS[name])
    assert (verdict.exit_code, verdict.layer, [f.rule.name for f in verdict.findings]) == (0, "", [])
    assert diagnose_text(f"{RUNS[name]}\nRuntimeError: NPU out of memory. Tried to allocate 2.00 GiB").layer == "memory"
    assert diagnose_text(f"{RUNS[name]}\n但是推理结果和 GPU 不一致").exit_code == 1


def test_the_same_warning_is_answered_where_it_stands_alone_or_before_an_error() -> None:
    assert diagnose_text(FALLBACK).layer == "operator"
    assert diagnose_text(f"{ENDED}\n{FALLBACK}\nRuntimeError: something else failed").exit_code == 1


@pytest.mark.parametrize(
    "complaint",
    [
        "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 60.97 GiB total capacity; 58.00 GiB already allocated)",
        "The job finished, but the accuracy is worse than on GPU.",
        "训练能跑完，但是精度比 GPU 低很多",
        "step 40: loss: nan, time 100 ms",
        "step 40, loss: 2.1, overflow cond: True, loss_scale: 1.0",
        MEGATRON.format(n=40, loss="2.1E+00", scale="1.0", skipped=1, nan=0),
        MEGATRON.format(n=40, loss="2.1E+00", scale="65536.0", skipped=0, nan=1),
    ],
)
def test_a_complaint_or_a_bad_number_is_asked_about_though_the_run_ended(complaint: str) -> None:
    assert diagnose_text(f"{STEPS}\n{complaint}\n{ENDED}").exit_code == 1


@pytest.mark.parametrize("skipped", range(4))
def test_steps_of_megatron_are_healthy_also_while_the_scale_is_looked_for(skipped: int) -> None:
    lines = [MEGATRON.format(n=n, loss="1.1E+01", scale=f"{2 ** (32 - n)}.0", skipped=int(n <= skipped), nan=0) for n in range(1, 15)]
    assert diagnose_text("\n".join(lines)).exit_code == 0


def test_a_run_that_skips_most_of_its_steps_is_not_well() -> None:
    lines = [f"step {n}, loss: 2.1, overflow cond: {n % 2 == 0}, loss_scale: 65536.0" for n in range(1, 30)]
    assert diagnose_text("\n".join(lines)).layer == "amp"


def test_thousands_of_warnings_do_not_hide_a_good_end_nor_an_error_behind_them() -> None:
    long = f"{STEPS}\n" + f"{FALLBACK}\n" * 2000 + ENDED
    assert diagnose_text(long).exit_code == 0
    assert diagnose_text(f"{long}\nRuntimeError: NPU out of memory. Tried to allocate 2.00 GiB").layer == "memory"


def test_a_short_text_with_a_warning_and_no_end_is_not_called_well() -> None:
    assert diagnose_text(f"step 1: loss 2.1\n{FALLBACK}").exit_code == 1


@pytest.mark.parametrize(
    "line",
    [
        "[W npu.cpp:1] Warning: not supported",
        "2025-01-01 INFO error code 0",
        "step 5: loss 2.1, oom 0",
        "iteration    3/ 10 | lm loss: 1.0",
    ],
)
def test_what_only_informs_or_counts_is_quiet(line: str) -> None:
    assert is_quiet(line) and not complains(line)


@pytest.mark.parametrize("line", ["KeyError: 'x'", "it hangs after step 3", "INFO step 5 loss: nan", "loss is nan", "报错了"])
def test_what_says_that_something_is_wrong_complains(line: str) -> None:
    assert complains(line) and not is_quiet(line)


@pytest.mark.parametrize(
    "said",
    [
        "为什么 910B 上训练速度这么慢？",
        "吞吐只有 A100 的 1/5，求助",
        "loss 和 GPU 对不上",
        "throughput is 5x lower than on the GPU, what should I do?",
        "AI Core stays at 12%, everything else is idle",
        "Why does the first step need 10 minutes?",
        "the trained model answers nonsense afterwards",
        "显存一直在涨",
        "HBM usage 98%, is that expected?",
    ],
)
def test_what_somebody_asks_about_a_run_that_ended_is_not_waved_away(said: str) -> None:
    steps = "\n".join(f"INFO: epoch: 1 step: {i}, loss is {3.2 - i * 0.01:.3f}, per step time {800 + i} ms" for i in range(1, 16))
    verdict = diagnose_text(f"{said}\nAscend 910B\n{steps}\nTraining finished, checkpoint saved")
    assert not any("went well" in note for note in verdict.notes)
