"""What a text leaves blank, `<id>`: filled in from what was read where that tells it, else with a line that says how to find it.

In: blanks.toml, the lines of a finding, facts.  Out: values for `{npu_id:<id>}` and the like, which every rule may use, and the blanks of a text.
Only what is certain is filled in: a command with another card's number would reset the wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from jumar.base import read_toml
from jumar.tools.knowledge.facts import Evidence, Fact

COMMON = ("npu_id", "device_id", "chip_name", "soc_version", "cann_version")  # values that every rule may use
BLANK = re.compile(r"<[^<>\n=]{1,40}>")
_NPU = re.compile(r"\bNPU[ _]?ID ?[:=] ?(\d{1,3})\b", re.IGNORECASE)
_DEVICE = re.compile(r"/dev/davinci(\d{1,3})\b|\bphy(?:sical)?[ _]?(?:dev(?:ice)?[ _]?)?id ?[=:\[(]? ?(\d{1,3})\b", re.IGNORECASE)
_SOC = "soc-"
_ONE_CHIP = frozenset(("soc-910", "soc-910b"))  # cards of which each has one chip: its NPU ID is its device's number
_PACKAGES = {"910_93": "A3"}  # chips that packages name otherwise
_FULL_NAME = re.compile(r"(?:Ascend)?(310P\d|310B\d|910B[1-4](?:-\d)?|910(?:A|B|ProA|ProB|PremiumA)|910_93\d\d|950(?:PR|DT)\w*)")


def known_values(facts: Iterable[Fact]) -> dict[str, str]:
    """What facts tell: the chip, where they speak of one only, and CANN's version."""
    facts = tuple(facts)
    chips = {fact.name: fact.values.get("name", "") for fact in facts if fact.name.startswith(_SOC)}
    canns = {fact.values.get("version", "") for fact in facts if fact.name == "cann-version"}
    found: dict[str, str] = {}
    if len(chips) == 1:
        ((chip, name),) = chips.items()
        chip = chip.removeprefix(_SOC)
        found["chip_name"] = _PACKAGES.get(chip, chip)
        if full := _FULL_NAME.fullmatch(name):
            found["soc_version"] = f"Ascend{full[1]}"
    if len(canns) == 1 and (version := canns.pop()):
        found["cann_version"] = version
    return found


def values_of_lines(lines: Iterable[Evidence], chips: frozenset[str]) -> dict[str, str]:
    """The card that all lines of a finding speak of.   chips: facts that name one; a process counts its devices anew, so those do not count.

    >>> lines = [Evidence("a", 1, "open /dev/davinci3 failed")]
    >>> values_of_lines(lines, frozenset()), values_of_lines(lines, frozenset({"soc-910b"}))
    ({'device_id': '3'}, {'device_id': '3', 'npu_id': '3'})
    """
    texts = [line.text for line in lines]
    npus = {found[1] for text in texts for found in _NPU.finditer(text)}
    devices = {found[1] or found[2] for text in texts for found in _DEVICE.finditer(text)}
    if chips and chips <= _ONE_CHIP:
        npus = devices = npus | devices
    return {name: next(iter(found)) for name, found in (("device_id", devices), ("npu_id", npus)) if len(found) == 1}


@cache
def blanks() -> Mapping[str, Mapping[str, str]]:
    """How each blank is found, by language and by how it is written."""
    rows = read_toml(Path(__file__).parent / "blanks.toml")["blank"]
    return {lang: {row[lang]["as"]: row[lang]["how"] for row in rows} for lang in ("en", "zh")}


def left_blank(texts: Iterable[str], lang: str) -> tuple[tuple[str, str], ...]:
    """The blanks of texts, in their order, and how each is found.

    >>> left_blank(["usermod -aG HwHiAiUser <user>"], "en")
    (('<user>', 'who starts the job: `whoami`'),)
    """
    how = blanks()[lang]
    return tuple((blank, how[blank]) for blank in dict.fromkeys(b for text in texts for b in BLANK.findall(text)) if blank in how)
