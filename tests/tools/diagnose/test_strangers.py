"""A text of another software gets no cause of an Ascend machine; one word of Ascend's is enough to be asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumar.device.ascend import codes_in
from jumar.tools.diagnose import diagnose_text

FOLDER = Path(__file__).parents[1] / "knowledge" / "strangers"
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.log"))}
LINES = [line for text in TEXTS.values() for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_of_another_software_is_told_as_such(name: str) -> None:
    verdict = diagnose_text(TEXTS[name])
    assert [f.rule.name for f in (*verdict.findings, *verdict.followed)] == ["other-software"]
    assert verdict.layer == "" and verdict.like is None and verdict.exit_code == 1
    assert verdict.findings[0].evidence


@pytest.mark.parametrize("name", TEXTS)
def test_numbers_of_another_software_are_no_codes(name: str) -> None:
    assert not diagnose_text(TEXTS[name]).codes


def test_a_word_of_ascend_opens_the_rules_to_a_text_with_a_stranger_in_it() -> None:
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    assert diagnose_text(oom).layer == ""
    assert (
        diagnose_text(f"{oom}\nRuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 60.97 GiB total capacity)").layer
        == "memory"
    )


@pytest.mark.parametrize(
    "line",
    [
        "Invoice error code 507018 for customer 12",
        "order 507018 failed: card declined",
        "error: ticket EZ9999 not found",
        "GET /items/507015 404 Not Found error",
        "HTTP 507 insufficient storage, error; request 507018",
        "支付失败，订单 507018",
    ],
)
def test_a_number_in_a_sentence_of_business_is_no_code(line: str) -> None:
    assert codes_in(line) == ()
    assert not diagnose_text(line).findings or diagnose_text(line).layer == ""


def test_the_number_of_a_job_that_the_scheduler_ended_is_no_code() -> None:
    line = "slurmstepd: error: *** JOB 507018 ON node3 CANCELLED AT 2025-05-01T10:00:00 DUE TO TIME LIMIT ***"
    assert codes_in(line) == ()
    assert [finding.rule.name for finding in diagnose_text(line).findings] == ["scheduler-time-limit"]


@pytest.mark.parametrize(
    "line",
    [
        "psycopg2.OperationalError: could not connect to server: Connection refused",
        "bash: foo: command not found",
        "zookeeper: Session 0x100002a timeout",
        "Task failed with retCode=9",
        "sshd[1234]: error: kex_exchange_identification: Connection closed by remote host",
        "ERROR 1062 (23000): Duplicate entry '1' for key 'PRIMARY'",
    ],
)
def test_a_line_with_no_word_of_ascend_is_likened_to_nothing(line: str) -> None:
    assert diagnose_text(line).like is None and diagnose_text(line).layer == ""


@pytest.mark.parametrize("line", ["error code is 507018", "RuntimeError: 507018", "AssertionError: Torch not compiled with CUDA enabled"])
def test_a_short_paste_without_a_stranger_is_answered(line: str) -> None:
    assert diagnose_text(line).layer
