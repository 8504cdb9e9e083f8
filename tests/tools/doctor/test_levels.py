"""Each level is verified, failed with a reason, or unchecked with a reason; a crash and a hang are answers.  CANN and torch are ours: never a real NPU."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.field.machines import KINDS, write_folder

from jumar.tools.doctor.examine import examine
from jumar.tools.doctor.foreign import foreign
from jumar.tools.doctor.levels import Answer, Child, Tried, child, levels
from jumar.tools.doctor.machine import Machine
from jumar.tools.doctor.view import view

FAKE_ACL = """
import ctypes
class Call:
    def __init__(self, answer): self.answer = answer
    def __call__(self, *arguments): return self.answer(*arguments)
class Acl:
    def __init__(self, *a, **k):
        self.aclInit = Call(lambda config: INIT)
        self.aclrtGetDeviceCount = Call(count)
        self.aclrtGetVersion = Call(version)
        self.aclrtGetSocName = Call(lambda: b"Ascend910B1")
        self.aclGetRecentErrMsg = Call(lambda: b"EE1001: the device is busy\\nmore")
        self.aclFinalize = Call(lambda: 0)
def count(place):
    place._obj.value = 2
    return COUNT
def version(major, minor, patch):
    major._obj.value, minor._obj.value, patch._obj.value = 1, 14, 0
    return 0
INIT = COUNT = 0
ctypes.CDLL = Acl
"""
FAKE_TORCH = """
import sys, types
class Tensor:
    def __init__(self, total, device="cpu"): self.total, self.device = total, device
    def reshape(self, *a): return self
    def to(self, device): return Tensor(self.total, WHERE)
    def __add__(self, other): return Tensor(self.total + other.total, self.device)
    def sum(self): return self
    def cpu(self): return self
    def __float__(self): return float(self.total)
WHERE = "npu:0"
torch = types.ModuleType("torch")
torch.float32, torch.arange = "f32", lambda n, dtype: Tensor(n * (n - 1) / 2)
torch.npu = types.SimpleNamespace(is_available=lambda: True, synchronize=lambda: None, get_device_name=lambda i: "Ascend910B1")
sys.modules["torch"], sys.modules["torch_npu"] = torch, types.ModuleType("torch_npu")
"""

FAKE_MINDSPORE = """
import sys, types
ms = types.ModuleType("mindspore")
class Tensor:
    def __init__(self, array): self.array = array
    def sum(self): return Tensor(self.array.sum())
    def asnumpy(self): return self.array
ms.Tensor, ms.set_context = Tensor, lambda **k: None
ms.ops = types.SimpleNamespace(add=lambda x, y: Tensor(x.array + y.array))
ms.get_context = {"device_target": TARGET, "device_id": 0}.get
sys.modules["mindspore"] = ms
"""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return replace(foreign(write_folder(KINDS["healthy"], tmp_path)), here=True)


def with_fakes(acl: str = FAKE_ACL, torch: str = FAKE_TORCH) -> Child:
    """A runner of children in which small doubles of ours stand for libascendcl and torch."""

    def run(code: str, limit_s: float) -> Answer:
        return child((acl if "libascendcl" in code else torch) + code, 20)

    return run


def level(tried: tuple[Tried, ...], name: str) -> Tried:
    return next(t for t in tried if t.name == name)


def test_three_levels_that_answer_are_verified(machine: Machine) -> None:
    tried = levels(view(machine), with_fakes())
    assert [t.state for t in tried] == ["verified"] * 3
    assert level(tried, "cann").values["devices"] == "2"
    assert "Ascend910B1" in level(tried, "cann").en and "1.14.0" in level(tried, "cann").en
    assert "npu:0" in level(tried, "framework").en
    assert not any(t.facts for t in tried)


def test_a_call_that_fails_is_named_with_its_code_and_message(machine: Machine) -> None:
    examined = examine(machine, run=with_fakes(FAKE_ACL + "\nCOUNT = 507899\n"))
    cann = level(examined.tried, "cann")
    assert cann.state == "failed"
    assert cann.en == "aclrtGetDeviceCount: 507899 EE1001: the device is busy"
    assert [f.rule.name for f in examined.verdict.findings] == ["machine-level-cann"]


def test_a_crash_in_cann_is_an_answer(machine: Machine) -> None:
    crash = FAKE_ACL + "\nimport os, signal\ndef count(place): os.kill(os.getpid(), signal.SIGSEGV)\n"
    cann = level(levels(view(machine), with_fakes(crash)), "cann")
    assert (cann.state, cann.values["call"]) == ("failed", "aclrtGetDeviceCount")
    assert "SIGSEGV" in cann.en


def test_a_hang_is_ended_within_its_limit() -> None:
    start = time.monotonic()
    answer = child('print(\'{"jumar": {"call": "aclInit"}}\', flush=True)\nimport time\ntime.sleep(60)', 0.5)
    assert answer.ended == "no answer within 0.5 s"
    assert answer.said == {"call": "aclInit"}
    assert time.monotonic() - start < 10


def test_a_library_that_does_not_load_is_told_with_the_loaders_words(machine: Machine) -> None:
    tried = levels(view(machine), lambda code, limit: child(code, 20) if "libascendcl" in code else Answer({}, "exit code 1", ""))
    assert "libascendcl.so: cannot open shared object file" in level(tried, "cann").en


def test_the_stub_for_linking_counts_as_unchecked(machine: Machine) -> None:
    assert level(levels(view(machine), with_fakes(FAKE_ACL + "\nINIT = 100039\n")), "cann").state == "unchecked"


def test_a_sum_that_ran_elsewhere_is_no_proof(machine: Machine) -> None:
    tried = level(levels(view(machine), with_fakes(torch=FAKE_TORCH + "\nWHERE = 'cpu'\n")), "framework")
    assert tried.state == "failed"
    assert "on cpu" in tried.en


@pytest.mark.parametrize("target, state", [("Ascend", "verified"), ("CPU", "failed")])
def test_mindspore_is_asked_where_torch_npu_is_not_there(target: str, state: str, machine: Machine) -> None:
    packages = {"mindspore": machine.packages["torch"]}
    seen = view(replace(machine, packages=packages))
    tried = level(levels(seen, with_fakes(torch=f"TARGET = {target!r}\n{FAKE_MINDSPORE}")), "framework")
    assert tried.state == state
    assert f"{target}:0" in tried.en


def test_a_framework_that_does_not_import_is_told_with_its_last_line(machine: Machine) -> None:
    tried = level(levels(view(machine), with_fakes(torch="import sys\nsys.modules['torch'] = None\n")), "framework")
    assert tried.state == "failed"
    assert "import torch_npu" in tried.en and "ModuleNotFoundError" in tried.en


def test_files_of_another_machine_are_never_called(tmp_path: Path) -> None:
    def never(code: str, limit_s: float) -> Answer:
        raise AssertionError("no child is started for copied files")

    tried = levels(view(foreign(write_folder(KINDS["healthy"], tmp_path))), never)
    assert [t.state for t in tried] == ["verified", "unchecked", "unchecked"]
