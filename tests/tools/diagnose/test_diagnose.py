"""The first error over files and ranks, what followed from it, codes, bounds: what `jumar diagnose` promises."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from jumar.tools.diagnose import diagnose_text
from jumar.tools.diagnose.command import command
from jumar.tools.diagnose.diagnose import diagnose
from jumar.tools.diagnose.sources import opened

WAITING = (
    "[ERROR] RUNTIME(7277,python):2025-03-26-17:31:03.645.648 [api_c.cc:1713]7277 rtStreamSynchronize:ErrCode=507048\n"
    "EI0002: [PID: 7277] 2025-03-26-17:31:03.645.648 The wait execution of the Notify register times out. Reason: The Notify register has not "
    "received the Notify record from remote rank [5].\n"
    "RuntimeError: HCCL function error: AllReduce, error code is 507048\n"
)
CULPRIT = (
    "[INFO] step 100\n"
    "[rank5]: RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 5; 60.97 GiB total capacity; 58.10 GiB already allocated; 58.10 GiB current "
    "active; 0.52 GiB free; 59.80 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb\n"
    "[ERROR] 2025-03-26-17:00:01 (PID:205, Device:5, RankID:5) ERR00006 PTA memory error\n"
)


def test_the_rank_that_failed_first_is_blamed_and_those_that_waited_for_it_are_not(tmp_path: Path) -> None:
    for rank in range(8):
        (tmp_path / f"worker_{rank}.log").write_text(f"2025-03-26 16:59:00,000 start\n{CULPRIT if rank == 5 else WAITING}")
    verdict = diagnose(opened((tmp_path,)).sources)
    assert verdict.layer == "memory"
    assert verdict.findings[0].evidence[0].source.endswith("worker_5.log")
    assert verdict.first_error and verdict.first_error.source.endswith("worker_5.log")
    assert any(f.rule.layer == "hccl" for f in (*verdict.followed, *verdict.findings[1:]))


def test_ranks_in_one_file_are_ordered_by_their_times() -> None:
    verdict = diagnose_text(WAITING + CULPRIT)
    assert verdict.layer == "memory" and verdict.first_error and verdict.first_error.line > 3


@pytest.mark.parametrize("text", ["", "   \n\n"])
def test_an_empty_text_could_not_be_checked(text: str) -> None:
    verdict = diagnose_text(text)
    assert not verdict.findings and verdict.layer == ""


def test_an_unknown_error_still_gives_the_layer_and_the_codes() -> None:
    verdict = diagnose_text("[ERROR] HCCL(1,python):2025-03-26-17:31:03.645.648 [x.cc:1][1]something new, errNo[0x00000000050000ff]")
    assert verdict.layer == "hccl" and verdict.confidence == "low"
    assert verdict.codes[0].codes[0].family == "hccl"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("prefix", ["", "\x1b[31m", "[rank3]: ", "(Worker_TP3 pid=78100) ERROR 04-20 21:27:00 [executor.py:932] "])
def test_colours_launchers_and_line_ends_change_no_verdict(end: str, prefix: str) -> None:
    lines = ("Traceback (most recent call last):", "ImportError: libhccl.so: cannot open shared object file: No such file or directory")
    assert diagnose_text("".join(f"{prefix}{line}{end}" for line in lines)).layer == "cann_env"


def test_the_command_answers_in_both_languages_and_with_its_exit_codes(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("ImportError: libhccl.so: cannot open shared object file: No such file or directory\n")
    run = CliRunner()
    english = run.invoke(command, [str(log), "--lang", "en"], standalone_mode=False)
    chinese = run.invoke(command, [str(log), "--lang", "zh"], standalone_mode=False)
    assert english.return_value == chinese.return_value == 1
    assert "at fault: CANN environment" in english.output and "故障层: CANN 环境" in chinese.output
    (tmp_path / "ok.log").write_text("step 1 loss 0.5\n")
    assert run.invoke(command, [str(tmp_path / "ok.log")], standalone_mode=False).return_value == 0
    (tmp_path / "empty.log").write_text("")
    assert run.invoke(command, [str(tmp_path / "empty.log")], standalone_mode=False).return_value == 2


def test_a_log_of_one_repeated_error_takes_bounded_memory_and_keeps_its_first_line(tmp_path: Path) -> None:
    log = tmp_path / "big.log"
    log.write_text("Device[1] lost heartbeat. error code is 507010\n" * 200_000)
    verdict = diagnose(opened((log,)).sources)
    assert verdict.lines == 200_000
    assert verdict.first_error and verdict.first_error.line == 1
    assert len(verdict.findings[0].evidence) <= 3


def test_an_earlier_run_in_the_same_log_is_left_aside_and_told_so() -> None:
    old = CULPRIT.replace("2025-03-26", "2025-03-24").replace("[INFO] step 100", "2025-03-24 17:00:00,000 step 100")
    verdict = diagnose_text(old + WAITING)
    assert verdict.layer == "hccl" and any("earlier runs" in note for note in verdict.notes)


@pytest.mark.parametrize(
    "text",
    [
        "step 1 error_rate=0.0 failed=0",
        "training finished, 0 errors",
        "no errors found",
        "val_error 0.013 error: 0",
        "INFO 03-26 10:00:00 failed=0",
    ],
)
def test_words_of_failure_in_a_healthy_log_are_none(text: str) -> None:
    assert diagnose_text(text).exit_code == 0
