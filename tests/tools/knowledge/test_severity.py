"""How serious a line takes itself, and what that does to the order of findings and to the confidence of the first."""

from __future__ import annotations

import pytest

from jumar.tools.diagnose import Diagnosis, diagnose_text
from jumar.tools.diagnose.diagnose import with_rules
from jumar.tools.knowledge import load_rules
from jumar.tools.knowledge.severity import ERROR, PLAIN, WARNING, severity_of

LINES = [
    ("[ERROR] HCCL(98,python):2025-01-01 timeout", ERROR),
    ("[rank3]: EI0002: The wait execution of the Notify register times out.", ERROR),
    ("(EngineCore_0 pid=7) ERROR 07-21 11:10:31 [core.py:515] failed to start", ERROR),
    ("torch.distributed.DistBackendError: HCCL function error", ERROR),
    ("E0226 06:18:15.020000 281473 api.py:833] failed (exitcode: 1)", ERROR),
    ("torch._dynamo.exc.BackendCompilerFailed: backend='npu' raised", ERROR),
    ("torch._dynamo.exc.Unsupported: call_function of a builtin", ERROR),
    ("requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='hub', port=443)", ERROR),
    ("subprocess.TimeoutExpired: Command 'npu-smi info' timed out after 5 seconds", ERROR),
    ("[rank2]: AssertionError", ERROR),
    ("KeyboardInterrupt", ERROR),
    ("ReadTimeout: 30s", PLAIN),
    ("the job failed: see the log of rank 3", PLAIN),
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


RULES = """
[[rule]]
name = "part-old"
layer = "version_mismatch"
stack = "framework"
cause = "part_old"
tier = "cause"
match = ['the frobnicator is old']
source = "this test"
en.what = "old"
en.fix = ["renew it"]
zh.what = "旧"
zh.fix = ["更新"]
example = ["the frobnicator is old"]
seen = []

[[rule]]
name = "part-broken"
layer = "operator"
stack = "framework"
cause = "part_broken"
tier = "cause"
match = ['the frobnicator broke']
source = "this test"
en.what = "broken"
en.fix = ["mend it"]
zh.what = "坏"
zh.fix = ["修理"]
example = ["the frobnicator broke"]
seen = []

[[rule]]
name = "part-stopped"
layer = "graph_compile"
stack = "framework"
cause = "part_stopped"
tier = "symptom"
match = ['the frobnicator stopped']
source = "this test"
en.what = "stopped"
en.fix = ["start it"]
zh.what = "停止"
zh.fix = ["启动"]
example = ["the frobnicator stopped"]
seen = []
"""
WARNED = "[W npu.cpp:12] Warning: the frobnicator is old"


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Diagnosis:
    path = tmp_path_factory.mktemp("rules") / "two.toml"
    path.write_text(RULES)
    return with_rules(load_rules([path.parent]))


def test_of_two_causes_the_error_is_the_verdict_though_the_warning_was_earlier(rules: Diagnosis) -> None:
    alone = diagnose_text(WARNED, rules=rules)
    both = diagnose_text(f"{WARNED}\nRuntimeError: the frobnicator broke", rules=rules)
    assert alone.layer == "version_mismatch" and alone.confidence == "high"
    assert both.layer == "operator" and both.confidence == "high"


def test_a_cause_that_only_a_warning_names_comes_behind_the_symptom_of_an_error(rules: Diagnosis) -> None:
    symptom = "RuntimeError: the frobnicator stopped"
    assert diagnose_text(f"{WARNED}\n{symptom}", rules=rules).layer == "graph_compile"
    assert diagnose_text(f"the frobnicator is old\n{symptom}", rules=rules).layer == "version_mismatch"


def test_a_cause_that_only_a_warning_names_is_doubted_where_there_is_an_error(rules: Diagnosis) -> None:
    verdict = diagnose_text(f"{WARNED}\nRuntimeError: of another thing", rules=rules)
    assert verdict.layer == "version_mismatch" and verdict.confidence == "medium"
