"""How serious a line takes itself, and what that does to the order of findings and to the confidence of the first."""

from __future__ import annotations

import pytest

from jumar.tools.diagnose import diagnose_text
from jumar.tools.knowledge.severity import ERROR, PLAIN, WARNING, severity_of

LINES = [
    ("[ERROR] HCCL(98,python):2025-01-01 timeout", ERROR),
    ("[rank3]: EI0002: The wait execution of the Notify register times out.", ERROR),
    ("(EngineCore_0 pid=7) ERROR 07-21 11:10:31 [core.py:515] failed to start", ERROR),
    ("torch.distributed.DistBackendError: HCCL function error", ERROR),
    ("E0226 06:18:15.020000 281473 api.py:833] failed (exitcode: 1)", ERROR),
    ("[WARNING] DEVICE(311,python):2024-06-03 free memory is small", WARNING),
    ("[W721 11:10:40 compiler_depend.ts:528] Warning: NPU warning, error code is 507046[Error]: .", WARNING),
    ("/a/gpt.py:39: UserWarning: Apex is not installed", WARNING),
    ("[INFO] GE(1,python) RuntimeError: was caught", WARNING),
    ("Gradient overflow.  Skipping step", PLAIN),
    ("训练到第 100 步卡死", PLAIN),
]


@pytest.mark.parametrize(("line", "severity"), LINES, ids=[line[:30] for line, _ in LINES])
def test_a_line_takes_itself_as_serious_as_it_says(line: str, severity: int) -> None:
    assert severity_of(line) == severity


APEX = "/w/gpt_layer_specs.py:39: UserWarning: Apex is not installed. Falling back to Torch Norm"
OOM = "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 60.97 GiB total capacity; 58.00 GiB already allocated)"


def test_of_two_causes_the_error_is_the_verdict_though_the_warning_was_earlier() -> None:
    alone = diagnose_text(APEX)
    both = diagnose_text(f"{APEX}\n{OOM}")
    assert alone.layer == "amp" and alone.confidence == "high"
    assert both.layer == "memory" and both.confidence == "high"


def test_a_cause_that_only_a_warning_names_is_doubted_where_there_is_an_error() -> None:
    verdict = diagnose_text(f"{APEX}\nFrobnicateError: the frobnicator is not grommeted")
    assert verdict.layer == "amp" and verdict.confidence == "medium"
