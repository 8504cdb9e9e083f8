"""Three levels, each verified as engineers do it: the driver answers, CANN answers through its ABI, a framework computes on the device.

In: a `View` of this machine; a runner for child processes (a crash or a hang of theirs must not be ours).  Out: `Tried`, one a level.
Never run on a real NPU by us: the calls are those of the ABI's headers, and the tests stand a small library of ours in CANN's place.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from jumar.device.ascend import find_code
from jumar.tools.doctor.view import View, fact
from jumar.tools.knowledge import Evidence, Fact

LIMIT_S = 60.0  # the first aclInit of a machine may take half a minute
SUM_LIMIT_S = 180.0  # the first operator is compiled


@dataclass(frozen=True)
class Tried:
    """One of the levels `driver`, `cann`, `framework`.   state: verified, failed or unchecked; en, zh: what it answered, what failed, why it was not asked.

    values: what it answered; facts: for the rules, where it failed.
    """

    name: str
    state: str
    en: str
    zh: str
    values: Mapping[str, str] = field(default_factory=dict)
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What a child process said.   said: its last JSON line; ended: in words, empty where it ended well."""

    said: Mapping[str, object]
    ended: str
    output: str


Child = Callable[[str, float], Answer]


def child(code: str, limit_s: float) -> Answer:
    """Runs Python code in a process of its own and reads the last line of its output, a JSON object."""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        raw, _ = process.communicate(timeout=limit_s)
        ended = "" if process.returncode == 0 else _ended(process.returncode)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raw, ended = b"", f"no answer within {limit_s:g} s"
        try:
            raw, _ = process.communicate(timeout=2)
        except subprocess.TimeoutExpired:  # held in the kernel by the driver
            if process.stdout:
                process.stdout.close()
    text = raw.decode("utf-8", "replace")
    said: Mapping[str, object] = {}
    for line in reversed(text.splitlines()):
        if line.startswith('{"jumar"'):
            said = json.loads(line)["jumar"]
            break
    return Answer(said, ended, text[-4000:])


def _ended(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def levels(v: View, run: Child = child) -> tuple[Tried, ...]:
    """The three levels of a machine, from the driver up; one is asked only where there is something to ask."""
    if not v.machine.here:
        why = ("files of another machine: nothing can be called", "这是另一台机器的文件，无法调用")
        return (_driver(v), Tried("cann", "unchecked", *why), Tried("framework", "unchecked", *why))
    return (_driver(v), _cann(v, run), _framework(v, run))


def _driver(v: View) -> Tried:
    """npu-smi's table was read, with cards in it."""
    npus = [npu for smi in v.smi for npu in smi.read.npus]
    driver = next((smi.read.driver for smi in v.smi if smi.read.driver), "")
    failed = sorted((f for smi in v.smi for f in smi.read.failures), key=lambda f: f.code is None)  # what names a code tells more
    failures = [f.text.strip() for f in failed]
    if npus:
        values = {"cards": str(len(npus)), "driver": driver, "name": npus[0].name}
        en = f"npu-smi lists {len(npus)} chips ({npus[0].name}), driver {driver or 'unknown'}"
        zh = f"npu-smi 列出 {len(npus)} 个芯片（{npus[0].name}），驱动 {driver or '未知'}"
        return Tried("driver", "verified", en, zh, values)
    if failures:
        return Tried("driver", "failed", f"npu-smi: {failures[0]}", f"npu-smi：{failures[0]}")
    return Tried("driver", "unchecked", "no npu-smi" if v.machine.whole else "no output of npu-smi", "没有 npu-smi 的输出")


# Each call prints what it answered, so that a crash leaves the last one known.  Constants: aclError 0; 100002 was initialised before.
_ACL = """
import ctypes, json
def say(**values): print(json.dumps({"jumar": values}), flush=True)
said = {"call": "dlopen libascendcl.so"}
say(**said)
try:
    acl = ctypes.CDLL("libascendcl.so", mode=ctypes.RTLD_GLOBAL)
except OSError as error:
    say(call=said["call"], code="dlopen", text=str(error))
    raise SystemExit(0)
acl.aclInit.argtypes, acl.aclInit.restype = [ctypes.c_char_p], ctypes.c_int
acl.aclrtGetDeviceCount.argtypes, acl.aclrtGetDeviceCount.restype = [ctypes.POINTER(ctypes.c_uint32)], ctypes.c_int
acl.aclFinalize.argtypes, acl.aclFinalize.restype = [], ctypes.c_int
def message():
    try:
        acl.aclGetRecentErrMsg.argtypes, acl.aclGetRecentErrMsg.restype = [], ctypes.c_char_p
        return (acl.aclGetRecentErrMsg() or b"").decode("utf-8", "replace")[:2000]
    except AttributeError:
        return ""
def call(name, *arguments):
    said["call"] = name
    say(**said)
    code = getattr(acl, name)(*arguments)
    if code not in (0, 100002):
        say(**{**said, "code": code, "text": message()})
        raise SystemExit(0)
call("aclInit", None)
count = ctypes.c_uint32()
call("aclrtGetDeviceCount", ctypes.byref(count))
said["devices"] = count.value
try:
    acl.aclrtGetVersion.argtypes, acl.aclrtGetVersion.restype = [ctypes.POINTER(ctypes.c_int32)] * 3, ctypes.c_int
    numbers = [ctypes.c_int32() for _ in range(3)]
    if acl.aclrtGetVersion(*map(ctypes.byref, numbers)) == 0:
        said["version"] = ".".join(str(n.value) for n in numbers)
except AttributeError:
    pass
try:
    acl.aclrtGetSocName.argtypes, acl.aclrtGetSocName.restype = [], ctypes.c_char_p
    said["soc"] = (acl.aclrtGetSocName() or b"").decode("utf-8", "replace")
except AttributeError:
    pass
call("aclFinalize")
say(**{**said, "call": "done", "code": 0})
"""


def _cann(v: View, run: Child) -> Tried:
    """aclInit, the number of devices, the version, the chip's name, aclFinalize; in a child."""
    if not v.releases:
        return Tried("cann", "unchecked", "no CANN here", "没有 CANN")
    answer = run(_ACL, LIMIT_S)
    said = {name: str(value) for name, value in answer.said.items()}
    call, code = said.get("call", "the child process"), said.get("code", "")
    if call == "done" and not answer.ended:
        more = "".join(f", {said[name]}" for name in ("soc", "version") if said.get(name))
        count = said.get("devices", "0")
        return Tried("cann", "verified", f"libascendcl answers: {count} devices{more}", f"libascendcl 有应答：{count} 个设备{more}", said)
    if code == "100039":  # the library that programs are linked with, which does nothing
        return Tried(
            "cann", "unchecked", "libascendcl.so is the stub for linking (100039)", "libascendcl.so 是链接用的桩库（100039）", said
        )
    why = answer.ended or said.get("text", "").strip().split("\n")[0] or _meaning(code)
    text = f"{call}: {code or 'no answer'} {why}".strip()
    found = fact("level-cann-failed", [Evidence("libascendcl.so", 0, text[:300])], call=call, code=code, why=why)
    return Tried("cann", "failed", text, text, said, (found,))


def _meaning(code: str) -> str:
    if not code.lstrip("-").isdigit():
        return ""
    known = find_code(code)
    return f"{known[0].symbol} {known[0].en}".strip() if known else ""


_TORCH = """
import json
def say(**values): print(json.dumps({"jumar": values}), flush=True)
say(call="import torch_npu")
import torch, torch_npu
say(call="torch.npu.is_available")
if not torch.npu.is_available():
    say(call="torch.npu.is_available", text="torch.npu.is_available() is False")
    raise SystemExit(0)
say(call="add")
x = torch.arange(6, dtype=torch.float32).reshape(2, 3).to("npu:0")
y = x + x
torch.npu.synchronize()
say(call="done", device=str(y.device), total=float(y.sum().cpu()), name=torch.npu.get_device_name(0))
"""
_MINDSPORE = """
import json
def say(**values): print(json.dumps({"jumar": values}), flush=True)
say(call="import mindspore")
import numpy as np, mindspore as ms
say(call="set_context")
ms.set_context(device_target="Ascend")
say(call="add")
x = ms.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
y = ms.ops.add(x, x)
total = float(y.sum().asnumpy())
say(call="done", device=ms.get_context("device_target") + ":" + str(ms.get_context("device_id")), total=total, name="")
"""
_SUM = 30.0  # of 2 x (0 + 1 + ... + 5)


def _framework(v: View, run: Child) -> Tried:
    """Two tensors are added on the device: the device that the result names and its value show that it ran there."""
    candidates = (("torch-npu", "torch_npu", _TORCH, "npu"), ("mindspore", "mindspore", _MINDSPORE, "Ascend"))
    found = next((c for c in candidates if v.machine.package(c[0])), None)
    if found is None:
        return Tried("framework", "unchecked", "neither torch_npu nor mindspore is installed", "没有安装 torch_npu 或 mindspore")
    _, name, code, where = found
    if not v.devices:
        return Tried("framework", "unchecked", f"{name} is installed, but there is no device", f"已安装 {name}，但没有设备")
    answer = run(code, SUM_LIMIT_S)
    said = {key: str(value) for key, value in answer.said.items()}
    total, device = said.get("total", ""), said.get("device", "")
    done = said.get("call") == "done" and not answer.ended
    if done and device.startswith(where) and total == str(_SUM):
        chip = f" ({said['name']})" if said.get("name") else ""
        return Tried(
            "framework", "verified", f"{name} added two tensors on {device}{chip}", f"{name} 在 {device} 上完成了张量加法{chip}", said
        )
    last = next((line.strip() for line in reversed(answer.output.splitlines()) if line.strip() and not line.startswith('{"jumar"')), "")
    if done:
        why = f"the result is on {device or 'no device'} and sums to {total or 'nothing'}, must be on {where} and {_SUM}"
    else:
        why = f"{said.get('call', 'start')}: {said.get('text') or answer.ended or 'no answer'}{f': {last[:200]}' if last else ''}"
    place = Evidence(f"{name}, a sum on the device", 0, (last or why)[:300])
    return Tried("framework", "failed", why, why, said, (fact("level-framework-failed", [place], framework=name, why=why[:200]),))
