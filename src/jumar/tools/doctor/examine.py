"""A machine to a verdict: checks make facts, the rules are applied to them and to the logs that came along, the levels are verified.

In: a `Machine`.  Out: a `Verdict` with the machine's components and its three levels, shown by command.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from jumar.base import Said
from jumar.tools.diagnose.diagnose import ready
from jumar.tools.diagnose.sources import source_of_text
from jumar.tools.doctor.checks import facts
from jumar.tools.doctor.checks.rights import confinement
from jumar.tools.doctor.levels import Child, Tried, child, levels
from jumar.tools.doctor.machine import LONGEST, Machine, Seen, Text
from jumar.tools.doctor.view import View, view
from jumar.tools.knowledge import Evidence, Fact, Moment
from jumar.tools.verdict import Component, Level, Verdict

NOTES = 4  # that are shown
REMARKS = ("card-memory-held", "card-bit-errors-past")  # facts of a machine that is well: a card at work, errors that were mended
_FAULTS = {  # component -> rules that speak of it
    "NPU": "card-* device-* npu-smi-* container-nodes-* visible-device-* first-generation-*",
    "driver": "driver-* container-driver-* npu-smi-driver-broken",
    "firmware": "driver-firmware-mismatch",
    "CANN": "cann-* kernels-* nnal-* driver-too-old-for-cann driver-cann-mismatch framework-cann-mismatch",
    "torch_npu": "torch-* framework-* packages-mismatch",
    "torch": "torch-*",
    "mindspore": "mindspore-* framework-*",
    "Python": "python-* numpy-*",
    "glibc": "glibc-*",
    "container": "device-cgroup-* root-without-* seccomp-* user-namespace-*",
}
_PACKAGES = {"torch_npu": "torch-npu", "torch": "torch", "mindspore": "mindspore", "vllm_ascend": "vllm-ascend", "numpy": "numpy"}
_NONE = {
    "en": "No Ascend NPU here (no device node, no npu-smi, no driver, no CANN): what can be checked without one was.",
    "zh": "这里没有昇腾 NPU（没有设备节点、npu-smi、驱动和 CANN）：只检查了不需要 NPU 的部分。",
}

_NOT_TOLD = {
    "en": "Nothing in these files tells of an Ascend NPU: what can be checked without one was.",
    "zh": "这些文件中没有昇腾 NPU 的信息：只检查了不需要 NPU 的部分。",
}


@dataclass(frozen=True)
class Examination:
    """verdict: what is wrong, the deepest cause first; tried: driver, CANN, framework; facts: all that the checks found."""

    verdict: Verdict
    tried: tuple[Tried, ...]
    facts: tuple[Fact, ...]
    view: View


def examine(machine: Machine, lang: str = "en", run: Child = child) -> Examination:
    """The verdict on a machine.   run: calls for the levels, each in a process of its own."""
    seen = view(machine)
    three = levels(seen, run)
    of_levels = (one for level in three for one in level.facts)
    found = (*facts(machine), *(replace(one, moment=Moment(0.0, 0, 1_000_000 + i)) for i, one in enumerate(of_levels)))
    wrong = tuple(one for one in found if one.name not in REMARKS)
    logs = (*machine.logs, *(_of_driver(o.text) for o in machine.output("dmesg") if not machine.here))
    verdict = ready().of([source_of_text(log.source, log.text) for log in logs], wrong)
    verdict = _apart(verdict)
    bad = [f.rule.name.removeprefix("machine-") for f in (*verdict.findings, *verdict.followed)]
    verdict = replace(
        verdict,
        sources=tuple(dict.fromkeys((*_read(machine), *verdict.sources))),
        notes=(*verdict.notes, *_remarks(found, lang), *_few(machine.notes)),
        machine=_title(seen, lang),
        components=tuple(_components(seen, bad)),
        levels=tuple(Level(t.name, t.state, {"en": t.en, "zh": t.zh}) for t in three) if seen.ascend else (),
    )
    return Examination(verdict, three, found, seen)


def _apart(verdict: Verdict) -> Verdict:
    """What a check found beside the verdict is no consequence of it, unless some rule says so: a card that is held, a torch that does not fit."""
    every = (*verdict.findings, *verdict.followed)
    explained = [glob for f in every for glob in f.rule.explains]
    own = [
        f for f in verdict.followed if f.rule.name.startswith("machine-") and not any(fnmatchcase(f.rule.name, glob) for glob in explained)
    ]
    return replace(
        verdict,
        findings=(*verdict.findings, *(replace(f, follows="") for f in own)),
        followed=tuple(f for f in verdict.followed if f not in own),
    )


_OF_DRIVER = re.compile(r"\[ascend\]|\bdavinci|\bdevdrv|oom-kill|Out of memory: Killed", re.IGNORECASE)


def _of_driver(kernel: Text) -> Text:
    """Of a kernel's log that was copied what the driver says, and whom the system killed; the other lines are blank, so that the numbers hold."""
    lines = [line if _OF_DRIVER.search(line[:LONGEST]) else "" for line in kernel.text.split("\n")]
    return Text(kernel.source, "\n" * (kernel.first_line - 1) + "\n".join(lines))


def _remarks(found: tuple[Fact, ...], lang: str) -> Iterator[str]:
    """What is no fault but good to know, in the words of its rule."""
    told = tuple(one for one in found if one.name in REMARKS)
    for finding in ready().of([], told).findings if told else ():
        yield finding.what(lang)


def _read(machine: Machine) -> Iterator[str]:
    """Each file or command that was read, once."""
    if machine.here:
        yield from machine.files
        yield from (o.command for o in machine.outputs)
        return
    yield from (text.source for text in machine.files.values())
    yield from (o.text.source for o in machine.outputs)
    yield from (listing.source for listing in machine.listings.values())
    yield from (seen.evidence.source for known in (machine.environment, machine.packages) for seen in known.values())


def _few(notes: tuple[str, ...]) -> tuple[str, ...]:
    """The first notes, and how many more there are: a verdict fits a screen."""
    return notes if len(notes) <= NOTES else (*notes[:NOTES], Said(f"... {len(notes) - NOTES} more", f"…… 另有 {len(notes) - NOTES} 条"))


def _title(v: View, lang: str) -> str:
    """One line: is this an Ascend machine, and of what kind."""
    if not v.ascend:
        return (_NONE if v.machine.whole else _NOT_TOLD)[lang]
    i = v.machine.identity
    parts = [seen.value for seen in (i.os, i.kernel, i.arch) if seen]
    where = {"en": "in a container", "zh": "容器内"}[lang] if v.machine.in_container else {"en": "on a host", "zh": "主机上"}[lang]
    if not parts and v.machine.output("docker", "docker-inspect", "nerdctl", "podman"):
        return {"en": "a container, as docker shows it", "zh": "一个容器（docker 的显示）"}[lang]
    return ", ".join([*parts, where] if i.container else parts)


def _components(v: View, bad: list[str]) -> Iterator[Component]:
    """What is installed, each with its version and the line that states it."""

    def one(name: str, value: str, place: Evidence | None = None, known: bool = True) -> Component:
        wrong = any(fnmatchcase(rule, glob) for rule in bad for glob in _FAULTS.get(name, "").split())
        return Component(name, value, "bad" if wrong else "ok" if known else "unknown", place)

    def seen(name: str, value: Seen | None) -> Iterator[Component]:
        if value:
            yield one(name, value.value, value.evidence)

    chips = {(npu.npu, npu.chip, npu.bus_id): (smi, npu) for smi in reversed(v.smi) for npu in smi.read.npus}  # a table may be there twice
    if chips:
        states = ", ".join(sorted({npu.health for _, npu in chips.values() if npu.health}, key=lambda health: (health != "OK", health)))
        smi, first = next((s, npu) for s in v.smi for npu in s.read.npus)
        yield one("NPU", f"{len(chips)} x {first.name} ({states})", smi.place(first.line))
    elif v.devices:
        yield one("NPU", f"{len(v.devices)} device nodes", known=False)
    elif v.ascend:
        yield one("NPU", "none seen", known=False)
    yield from seen("driver", v.driver_version)
    yield from seen("firmware", v.firmware_version)
    for release in v.releases:
        used = " *" if len(v.releases) > 1 and release is v.used else ""
        yield one("CANN", f"{release.version}{used}  {release.homes[0]}", release.evidence)
    for name, package in _PACKAGES.items():
        yield from seen(name, v.machine.package(package))
    yield from seen("Python", v.machine.identity.python)
    yield from seen("glibc", v.machine.identity.glibc)
    held, place = confinement(v) if v.inside else ("", None)
    if held:
        yield one("container", held, place)
