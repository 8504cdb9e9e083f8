"""Frameworks and plug-ins: do torch, torch_npu, MindSpore, CANN and Python fit one another; is a wheel of an older CANN in the way.

In: a `View`.  Out: facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from jumar.device.ascend import Version, pairings, read_version
from jumar.tools.doctor.machine import Seen
from jumar.tools.doctor.view import View, fact
from jumar.tools.knowledge import Fact
from jumar.tools.products import product, release_range

_PACKAGES = {  # component of the table -> package
    "torch_npu": "torch-npu",
    "torch": "torch",
    "mindspore": "mindspore",
    "vllm-ascend": "vllm-ascend",
    "vllm": "vllm",
    "mindspeed": "mindspeed",
    "mindie": "mindie",
    "numpy": "numpy",
}
_STALE = ("te", "hccl", "topi", "auto-tune", "schedule-search", "opc-tool", "op-compile-tool", "dataflow", "llm-datadist")


def versions(v: View) -> dict[str, tuple[Version, Seen]]:
    """The version of each component with its line."""
    found: dict[str, tuple[Version, Seen]] = {}

    def add(name: str, seen: Seen | None) -> None:
        version = read_version(seen.value) if seen else None
        if seen and version:
            found[name] = (version, seen)

    for component, package in _PACKAGES.items():
        add(component, v.machine.package(package))
    if "mindspore" not in found:
        add("mindspore", v.machine.package("mindspore-ascend"))
    if v.used:
        add("cann", Seen(v.used.version, v.used.evidence))
    add("python", v.machine.identity.python)
    return found


def torch_pair(v: View) -> list[Fact]:
    """torch_npu is built for one torch: the first three numbers are the same."""
    plugin, torch = v.machine.package("torch-npu"), v.machine.package("torch")
    if plugin is None:
        return []
    wanted = ".".join(re.findall(r"\d+", plugin.value)[:3])
    if torch is None:
        whole = "pip" in v.machine.packages or v.machine.whole  # `pip list | grep npu` does not show torch
        return [fact("torch-missing", [plugin.evidence], torch_npu=plugin.value, wanted=wanted)] if whole else []
    have = ".".join(re.findall(r"\d+", torch.value.split("+")[0])[:3])
    if wanted != have:
        return [
            fact("torch-npu-for-other-torch", [plugin.evidence, torch.evidence], torch_npu=plugin.value, torch=torch.value, wanted=wanted)
        ]
    if "+cu" in torch.value:
        return [fact("torch-is-cuda-build", [torch.evidence], torch=torch.value, wanted=wanted)]
    return []


def pairs(v: View) -> list[Fact]:
    """Every pair that the table knows; driver and torch have checks of their own."""
    known = versions(v)
    found = []
    for pair in pairings({name: version for name, (version, _) in known.items()}):
        if pair.a not in known or pair.b not in known or pair.verdict != "outside" or {pair.a, pair.b} == {"torch", "torch_npu"}:
            continue
        values = {
            "a": product(pair.a),
            "a_version": pair.a_version,
            "b": product(pair.b),
            "b_version": pair.b_version,
            "wanted": f"{product(pair.wants)} {', '.join(map(release_range, pair.wanted[:4]))}".strip(),
        }
        places = [known[pair.a][1].evidence, known[pair.b][1].evidence]
        name = "python-not-supported" if "python" in (pair.a, pair.b) else "framework-cann-mismatch"
        found.append(fact(name if "cann" in (pair.a, pair.b) or "python" in (pair.a, pair.b) else "packages-mismatch", places, **values))
    return found[:2]


def mindspore_plugin(v: View) -> list[Fact]:
    """MindSpore and CANN are there, but the wheel has no part for Ascend (a CPU build)."""
    wheel = v.machine.package("mindspore")
    listing = next((x for p, x in v.machine.listings.items() if p.endswith(("/mindspore/lib/plugin", "/mindspore/plugin"))), None)
    if wheel and listing and "*" in listing.asked and v.releases and not any("ascend" in n for n in listing.names()):
        return [fact("mindspore-without-ascend", [wheel.evidence], mindspore=wheel.value)]
    return []


def stale_wheels(v: View) -> list[Fact]:
    """te, hccl and others of CANN that were installed into site-packages: they hide those of the CANN that is sourced."""
    homes = tuple(h for r in v.releases for h in r.homes)
    if not homes:
        return []
    found = []
    for name in _STALE:
        seen = v.machine.package(name)
        place = seen.evidence.text.split()[-1] if seen else ""
        if seen and place.startswith("/") and not place.startswith(homes) and "/Ascend/" not in place and "/cann" not in place:
            found.append((name, seen, place))
    if not found:
        return []
    name, seen, place = found[0]
    return [fact("cann-wheels-stale", [seen.evidence], packages=" ".join(n for n, _, _ in found), place=place)]


def stated(v: View) -> list[Fact]:
    """Versions, for rules that ask for them."""
    names = {"torch_npu": "torch-npu", "cann": ""}
    return [
        fact(f"{names.get(name, name)}-version", [seen.evidence], version=seen.value)
        for name, (_, seen) in versions(v).items()
        if names.get(name, name)
    ]


CHECKS: tuple[Callable[[View], list[Fact]], ...] = (torch_pair, pairs, mindspore_plugin, stale_wheels, stated)
