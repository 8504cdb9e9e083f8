"""Facts that stand between the lines: arithmetic of a memory message, versions and whether they fit, the chip that is meant.

In: hits of the patterns below.  Out: `Fact`s, which rules ask for by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from jumar.device.ascend import Version, component_versions, pairings
from jumar.tools.diagnose import outcome
from jumar.tools.diagnose.strangers import ASCEND, STRANGERS, other_software
from jumar.tools.knowledge import Evidence, Fact, Hit, Moment
from jumar.tools.products import product, release_range

_SIZE = r"[\d.]+ ?(?:[KMGT]?i?B|bytes)"
OUT_OF_MEMORY = (
    rf"tried to allocate (?P<wanted>{_SIZE}).*?(?P<total>{_SIZE}) total capacity; (?P<allocated>{_SIZE}) already allocated;"
    rf".*?(?P<free>{_SIZE}) free; (?P<reserved>{_SIZE}) reserved"
)
VERSIONS = (
    r"(CANN|toolkit|torch|mindspore|driver|firmware|npu-smi|python|vllm|mindie|mindspeed|nnal|atb|numpy|Version|PTA|HDK)[^\n]{0,60}\d+\.\d",
    r"Ascend-cann-[a-z0-9-]+_\d",
)
SOC = r"(910|310|950|Atlas|soc_?version)"
VARIABLE = r"\b(LD_LIBRARY_PATH|PYTHONPATH|PATH|ASCEND_\w+|TOOLCHAIN_HOME|CANN_\w+)['\"]?\s*[=:]\s*['\"]?\S*(Ascend|cann|ascend-toolkit)\S*"
LATEST = r"\blatest\b\S* -> \S*?(?P<version>\d+\.\d[\w.]*)"
PATTERNS = (OUT_OF_MEMORY, *VERSIONS, SOC, VARIABLE, LATEST, ASCEND, *STRANGERS.values(), *outcome.PATTERNS)

_SOCS = (  # fact, what names it
    ("soc-910b", re.compile(r"910B[1-4]|910b[1-4]|Atlas 800T? ?A2|\bA2\b")),
    ("soc-910_93", re.compile(r"910_93\d\d|Ascend910C|Atlas (?:800T?|900) A3", re.IGNORECASE)),
    ("soc-310p", re.compile(r"310P\d?\b|Atlas 300[IV] (?:Pro|Duo)", re.IGNORECASE)),
    ("soc-310b", re.compile(r"310B\d?\b|Atlas 200I DK A2|\b200I A2", re.IGNORECASE)),
    ("soc-310", re.compile(r"Ascend ?310\b|Atlas ?200 ?DK\b|Atlas 300I\b(?! (?:Pro|Duo))", re.IGNORECASE)),
    ("soc-910", re.compile(r"910A\b|910Pro[AB]|910PremiumA|\bascend910\b|\| *\d+ +910B? +\|", re.IGNORECASE)),
    ("soc-950", re.compile(r"Ascend950|950(?:PR|DT)", re.IGNORECASE)),
)
_UNITS = {"": 1.0, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40}


def derive(hits: Mapping[str, tuple[Hit, ...]]) -> tuple[Fact, ...]:
    """Every fact that the hits give: of a text of other software, and of a run that went well, only that."""
    alone = other_software(hits) or outcome.went_well(hits)
    if alone:
        return tuple(alone)
    return (
        *_memory(hits.get(OUT_OF_MEMORY, ())),
        *_chips(hits.get(SOC, ())),
        *_versions([h for p in VERSIONS for h in hits.get(p, ())]),
        *_paths(hits.get(VARIABLE, ()), hits.get(LATEST, ())),
    )


def nbytes_of(text: str) -> float:
    """The bytes that a size of a message means.

    >>> nbytes_of("1.5 GiB") == 1.5 * 2**30, nbytes_of("39.48 MiB") == 39.48 * 2**20
    (True, True)
    >>> nbytes_of("0 bytes")
    0.0
    """
    found = re.fullmatch(r"([\d.]+) ?([KMGT]?)i?B(?:ytes)?", text, re.IGNORECASE)
    try:
        return float(found[1]) * _UNITS[found[2].upper()] if found else 0.0
    except ValueError:
        return 0.0


def _gib(nbytes: float) -> str:
    return f"{nbytes / 2**30:.1f} GiB" if nbytes >= 2**30 else f"{nbytes / 2**20:.0f} MiB"


def _memory(hits: tuple[Hit, ...]) -> list[Fact]:
    """Who holds the memory that an allocation did not find."""
    if not hits:
        return []
    hit = hits[0]
    size = {name: nbytes_of(text) for name, text in hit.groups.items()}
    if not {"total", "free", "reserved", "allocated", "wanted"} <= set(size):
        return []
    outside = size["total"] - size["free"] - size["reserved"]
    values = {**hit.groups, "outside": _gib(max(outside, 0.0)), "slack": _gib(max(size["reserved"] - size["allocated"], 0.0))}
    if outside > max(0.2 * size["total"], 2 * 2**30) and outside > size["reserved"]:
        name = "memory-held-outside"
    elif size["reserved"] - size["allocated"] > max(size["wanted"], 0.05 * size["total"]):
        name = "memory-fragmented"
    else:
        name = "memory-own"
    return [Fact(name, values, (hit.evidence,), hit.moment)]


def _chips(hits: tuple[Hit, ...]) -> list[Fact]:
    found: dict[str, Fact] = {}
    for hit in hits:
        for name, pattern in _SOCS:
            if name not in found and (match := pattern.search(hit.evidence.text)):
                found[name] = Fact(name, {"name": match[0].strip("| ")}, (hit.evidence,), hit.moment)
    return list(found.values())


def _versions(hits: list[Hit]) -> list[Fact]:
    """A fact for each component whose version is stated, and one for each pair that a table knows."""
    stated: dict[str, tuple[Version, Evidence, Moment]] = {}
    for hit in sorted(hits, key=lambda h: h.moment):
        for one in component_versions(hit.evidence.text):
            stated.setdefault(one.component, (one.version, hit.evidence, hit.moment))
    facts = [Fact(f"{c.replace('_', '-')}-version", {"version": str(v)}, (e,), m) for c, (v, e, m) in stated.items()]
    for pair in pairings({c: v for c, (v, _, _) in stated.items()}):
        if pair.a not in stated or pair.b not in stated:
            continue
        places = tuple(dict.fromkeys((stated[pair.a][1], stated[pair.b][1])))
        values = {
            "a": product(pair.a),
            "a_version": str(pair.a_version),
            "b": product(pair.b),
            "b_version": str(pair.b_version),
            "wanted": ", ".join(map(release_range, pair.wanted)),
        }
        moment = max(stated[pair.a][2], stated[pair.b][2])
        facts.append(Fact(f"pairing-{pair.verdict}", values, places, moment))
        facts.append(Fact(f"pairing-{pair.verdict}-{pair.a}-{pair.b}", values, places, moment))
    return facts


_RELEASE = re.compile(r"(?:ascend-toolkit|cann|nnae|nnrt|toolkit)[-/](?:CANN-)?(\d+\.\d[\w.]*?)(?=[/:'\"\s]|$)", re.IGNORECASE)


def _paths(hits: tuple[Hit, ...], latest: tuple[Hit, ...] = ()) -> list[Fact]:
    """Variables of the environment that point into more than one CANN.   latest: where that link points."""
    places: dict[str, Hit] = {}
    for hit in sorted(hits, key=lambda h: h.moment):
        for version in _RELEASE.findall(hit.evidence.text):
            places.setdefault(version.rstrip("."), hit)
    if any("/latest" in hit.evidence.text for hit in hits):
        for hit in latest:
            places.setdefault(hit.groups["version"].rstrip("."), hit)
    if len(places) < 2:
        return []
    evidence = tuple(dict.fromkeys(hit.evidence for hit in places.values()))
    return [Fact("paths-of-several-canns", {"versions": ", ".join(places)}, evidence, max(h.moment for h in places.values()))]
