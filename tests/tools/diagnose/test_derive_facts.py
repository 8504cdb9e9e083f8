"""Facts between the lines: paths of several CANNs, and an exception after which the other ranks waited."""

from __future__ import annotations

import pytest

from jumar.tools.diagnose import diagnose_text

HOME = "/usr/local/Ascend/ascend-toolkit"


def names(text: str) -> list[str]:
    return [finding.rule.name for finding in diagnose_text(text).findings]


def test_variables_that_point_into_two_canns_are_named_with_both_versions() -> None:
    text = f"LD_LIBRARY_PATH={HOME}/8.0.RC2/lib64:/usr/lib\nexport ASCEND_OPP_PATH={HOME}/8.2.RC1/opp\n"
    found = diagnose_text(text).findings[0]
    assert found.rule.name == "cann-paths-mixed"
    assert "8.0.RC2, 8.2.RC1" in found.what("en")


@pytest.mark.parametrize(
    "text",
    [
        f"LD_LIBRARY_PATH={HOME}/8.2.RC1/lib64\nASCEND_OPP_PATH={HOME}/8.2.RC1/opp",
        f"LD_LIBRARY_PATH={HOME}/latest/lib64:/usr/local/Ascend/driver/lib64\nASCEND_HOME_PATH={HOME}/8.2.RC1",
        "LD_LIBRARY_PATH=/usr/local/Ascend/nnal/atb/8.0.0/lib:/opt/python3.10/lib",
    ],
)
def test_one_cann_is_no_mix(text: str) -> None:
    assert "cann-paths-mixed" not in names(text)


RAISED = "2025-01-01 00:00:01 [rank2]: KeyError: 'lr'"
WAITED = "2025-01-01 00:02:01 [rank0]: EI0006: Getting socket times out."


def test_an_exception_before_the_others_waited_is_the_cause() -> None:
    assert names(f"{RAISED}\n{WAITED}")[:1] == ["raised-before-peers-waited"]


@pytest.mark.parametrize(
    "text", [f"{WAITED}\n2025-01-01 00:03:01 [rank0]: KeyError: 'lr'", RAISED, WAITED, f"[rank0]: KeyError: 'lr'\n{WAITED}"]
)
def test_an_exception_that_comes_later_or_on_the_same_rank_is_not(text: str) -> None:
    assert "raised-before-peers-waited" not in names(text)


def test_lines_that_only_sound_like_a_failure_are_passed_over() -> None:
    text = (
        "tests/test_a.py::test_loss_is_nan PASSED [ 10%]\n"
        "[INFO] RUNTIME(3011,python3): [npu_driver.cc:210] GetDeviceCount: device count=8, errorCode=0x0\n"
        "WARNING 05-01 10:00:00 [_custom_ops.py:20] Failed to import from vllm._C with ModuleNotFoundError(\"No module named 'vllm._C'\")\n"
        "INFO 05-01 10:00:00 [importing.py:53] Triton not installed or not compatible; certain GPU-related functions will not be available.\n"
    )
    verdict = diagnose_text(text)
    assert not verdict.findings
    assert verdict.first_error is None
