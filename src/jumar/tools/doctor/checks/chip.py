"""Is the software made for the chip: the first-generation 910 whose name looks like an A2 card's, and kernels of another chip.

In: a `View`.  Out: facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from jumar.tools.doctor.machine import Seen, Text
from jumar.tools.doctor.view import Release, View, fact
from jumar.tools.knowledge import Evidence, Fact

SOCS = {"910": "ascend910", "910b": "ascend910b", "910_93": "ascend910_93", "310p": "ascend310p", "310b": "ascend310b", "310": "ascend310"}
_A2 = re.compile(
    r"Ascend910B[1-4]\w*|ascend910b[1-4]?\w*|cann-kernels-910b|kernels-910b|ops-910b|910b-(?:ubuntu|openeuler)\S*|\bA2[-_]\w*|Ascend-cann-910b",
    re.IGNORECASE,
)
_PACKAGE = re.compile(r"Ascend-cann-(?:kernels-)?910b\w*", re.IGNORECASE)
_SOC = re.compile(r"soc_?version[=: \"']+Ascend910B[1-4]\w*", re.IGNORECASE)
_VARIABLES = ("SOC_VERSION", "ASCEND_SOC_VERSION", "ASCEND_CHIP", "NPU_SOC", "CHIP_TYPE", "DEVICE_TYPE", "ASCEND_CANN_IMAGE", "IMAGE")


def first_generation(v: View) -> list[Fact]:
    """A card that npu-smi calls `910B` (or 910A, 910ProB): the first generation, on which software for A2 (910B1-B4) does not run."""
    chip = v.generation
    if chip is None or chip[0] != "910":
        return []
    own = [fact("soc-910", [chip[1].evidence], name=chip[1].value)]
    for release in _kernels(v):
        listing = release.kernels
        names = set(listing.names()) if listing else set()
        if listing and "ascend910b" in names and "ascend910" not in names:
            entry = listing.entry("ascend910b")
            place = entry.evidence if entry and entry.evidence.text else Evidence(listing.source, 0, "ascend910b")
            return [
                *own,
                fact("first-generation-taken-for-a2", [chip[1].evidence, place], name=chip[1].value, what="kernel/config/ascend910b"),
            ]
    for place, what in _said(v):
        return [*own, fact("first-generation-taken-for-a2", [chip[1].evidence, place], name=chip[1].value, what=what)]
    return own


def _said(v: View) -> Iterator[tuple[Evidence, str]]:
    """Where variables, images, run lines and package files speak of A2."""
    for _, seen in v.variables(*_VARIABLES):
        found = _A2.search(seen.value)
        if found:
            yield seen.evidence, found[0]
    texts: list[Text] = [o.text for o in v.machine.output("docker", "nerdctl", "podman")]
    for text in texts:
        found = _A2.search(text.text)
        if found:
            yield text.at(found.start()), found[0]
    for path, text in v.machine.glob("*_install.info"):
        found = _A2.search(text.text)
        if found and "/Ascend" in path:
            yield text.at(found.start()), found[0]
    for listing in v.machine.listings.values():
        for entry in listing.entries:
            if _PACKAGE.search(entry.name):
                yield entry.evidence, entry.name
    for log in v.machine.logs:
        for line, place in log.lines():
            found = _PACKAGE.search(line) or _SOC.search(line)
            if found:
                yield place, found[0]
    for name in ("vllm-ascend", "mindie", "mindie-llm"):
        package = v.machine.package(name)
        if package:
            yield package.evidence, f"{name} {package.value}"


def kernels_for_other_chip(v: View) -> list[Fact]:
    """The operators' kernels of the CANN that is used: none at all, or none for this chip."""
    chip = v.generation
    if chip is None or chip[0] not in SOCS:
        return []
    wanted = SOCS[chip[0]]
    for release in _kernels(v):
        listing = release.kernels
        if listing is None or "*" not in listing.asked:
            continue
        names = [n for n in listing.names() if re.fullmatch(r"ascend\d\w*", n)]
        fits = any(n == wanted or n.startswith(wanted + "_") or _alike(n, wanted) for n in names)
        if names and not fits and not (wanted == "ascend910" and "ascend910b" in names):
            entry = listing.entry(names[0])
            place = entry.evidence if entry and entry.evidence.text else Evidence(listing.source, 0, " ".join(names))
            return [fact("kernels-for-other-chip", [chip[1].evidence, place], chip=chip[1].value, wanted=wanted, have=", ".join(names))]
    return []


def _alike(name: str, wanted: str) -> bool:
    """A3's kernels stand under ascend910_93; releases before 8.0.RC2 kept A2's under ascend910b1 and the like."""
    return bool(re.fullmatch(rf"{wanted}[1-9]\w*", name)) and wanted != "ascend910"


def kernels_missing(v: View) -> list[Fact]:
    """A toolkit without any kernels: their package was not installed."""
    for release in _kernels(v):
        if release.kernels is None and v.machine.whole and "opp_kernel" not in release.parts and "ops" not in "".join(release.parts):
            return [fact("kernels-missing", [release.evidence], cann=release.version, chip=_chip(v))]
        if release.kernels is not None and "*" in release.kernels.asked and not release.kernels.entries:
            return [fact("kernels-missing", [_empty(release)], cann=release.version, chip=_chip(v))]
    return []


def _empty(release: Release) -> Evidence:
    listing = release.kernels
    assert listing is not None, "kernels_missing asks only for releases with a listing"
    return listing.evidence if listing.evidence.text else Evidence(listing.source, 0, "empty")


def _chip(v: View) -> str:
    chip: tuple[str, Seen] | None = v.generation
    return chip[1].value if chip else ""


def _kernels(v: View) -> tuple[Release, ...]:
    """The release that is used, or all where that is not known."""
    return (v.used,) if v.used else v.releases


def chips(v: View) -> list[Fact]:
    """The chip, for rules that speak of one generation."""
    chip = v.generation
    if chip is None or chip[0] == "910":
        return []
    return [fact(f"soc-{chip[0]}", [chip[1].evidence], name=chip[1].value)]


CHECKS: tuple[Callable[[View], list[Fact]], ...] = (first_generation, kernels_for_other_chip, kernels_missing, chips)
