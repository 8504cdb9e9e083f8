"""The cards: are all of them there, healthy, cool enough to run at full clock, is their memory sound and free.

In: a `View`.  Out: facts, of each card its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from jumar.device.ascend import Properties
from jumar.tools.doctor.machine import Text
from jumar.tools.doctor.view import Smi, View, fact
from jumar.tools.knowledge import Evidence, Fact

_IDLE_MB = 4096  # an idle A2 or A3 card shows up to 3.4 GB
_MANY_PAGES = 48  # isolated pages: a card takes 64
_HOT_C, _VERY_HOT_C = 95, 100  # chips slow down at about 105, some boards sooner: then npu-smi calls them Warning
_SLOWED = 0.95  # of the rated clock: what is below it under load was lowered
_CARD = re.compile(  # a row of lspci, with words or numbers
    r"^(?:[0-9a-f]{4}:)?(?P<bus>[0-9a-f]{2}):[0-9a-f]{2}\.[0-7] .*(?:19e5:d[0-9a-f]{3}|Huawei.* Device d[0-9a-f]{3})\b(?P<rest>.*)",
    re.IGNORECASE,
)


def unhealthy(v: View) -> list[Fact]:
    """Cards that npu-smi does not call OK, with their event codes."""
    told = [(smi, one) for smi in v.smi for one in smi.read.of("health")]
    bad = [(smi, npu) for smi in v.smi for npu in smi.read.npus if not npu.healthy and npu.health.upper() not in ("", "NA", "-")]
    found = []
    for smi, npu in bad:
        ours = [(s, one) for s, one in told if one.npu == npu.npu and one.chip in (None, npu.chip)]
        if not ours and len(bad) == 1:  # an answer without its command is of the one card that is not well
            ours = [(s, one) for s, one in told if one.npu is None]
        values = {"npu": npu.npu, "name": npu.name, "health": npu.health, **_events(ours)}
        said = [(s, one) for s, one in ours if one.text("error_code")][:1]
        places = [smi.place(npu.line), *(s.line_of(one, r"Error Code\s*:") for s, one in said)]
        found.append(fact("card-unhealthy", places, **values))
    if not found:
        for smi, one in told:
            health = str(one.values.get("health") or "OK")
            if health.upper() not in ("OK", "NA", ""):
                place = smi.line_of(one, r"Health(?: Status)?\s*:")
                found.append(fact("card-unhealthy", [place], npu=_text(one.npu), health=health, **_events([(smi, one)])))
    if not found:
        events = ((smi, event) for smi in v.smi for event in smi.read.events)
        found = [
            fact("card-unhealthy", [s.place(e.line)], npu=_text(e.npu), health="fault event", codes=e.hex, about=_about(e.text))
            for s, e in events
        ]
    return found[:8] or _of_kernel(v)


def _of_kernel(v: View) -> list[Fact]:
    """Fault events that only the kernel's log tells of; black boxes (0xA...) are for the rules."""
    for output in v.machine.output("dmesg"):
        for line, place in output.text.lines():
            event = re.search(r"exception_id=0x(8[0-9a-f]{7})\b(?:.*?dev(?:ice)?_?id=(\d+))?", line, re.IGNORECASE)
            if event:
                return [fact("card-unhealthy", [place], npu=event[2] or "", health="fault event", codes=event[1].upper())]
    return []


def _events(ours: list[tuple[Smi, Properties]]) -> dict[str, str]:
    """Codes and words of `-t health`; empty where it was not asked."""
    codes = [one.text("error_code") for _, one in ours if one.text("error_code")]
    about = next((one.text("error_information") for _, one in ours if one.text("error_information")), "")
    return {"codes": ", ".join(dict.fromkeys(codes)), "about": _about(about)}


def _about(words: str) -> str:
    return f"; {words[:120]}" if words else ""


def bit_errors(v: View) -> list[Fact]:
    """Uncorrectable bit errors of a card's memory: now, or so many pages set aside that it must be replaced; what was mended is only told."""
    found = []
    for smi in v.smi:
        for one in smi.read.of("ecc"):
            counts = {name: n for name, n in one.values.items() if isinstance(n, int) and n > 0}
            now = sum(n for name, n in counts.items() if name.endswith("double_bit_error_count"))
            ever = sum(
                n for name, n in counts.items() if "double_bit" in name and "isolated" not in name and not name.endswith("error_count")
            )
            pages = sum(n for name, n in counts.items() if "isolated_pages" in name)
            values = {"npu": _text(one.npu), "count": now, "total": max(now, ever), "pages": pages}
            if now or pages >= _MANY_PAGES:
                pattern = r"Double Bit Error Count\s*:\s*[1-9]" if now else r"Isolated Pages Count\s*:\s*[1-9]"
                found.append(fact("card-bit-errors", [smi.line_of(one, pattern)], **values))
            elif ever:
                found.append(fact("card-bit-errors-past", [smi.line_of(one, r"Double Bit .*:\s*[1-9]")], **values))
    return found


def slowed(v: View) -> list[Fact]:
    """A clock below its rated one under load: too hot, or too little power."""
    found = []
    for smi in v.smi:
        for one in smi.read.of("common"):
            rated, now, load = (one.number(n) for n in ("aicore_freq_mhz", "aicore_curfreq_mhz", "aicore_usage_rate_percent"))
            if rated and now and load and now < rated * _SLOWED:
                heat = one.number("temperature_c")
                text = f" at {heat:g} C" if heat else ""
                values = {"npu": _text(one.npu), "now": f"{now:g}", "rated": f"{rated:g}", "heat": text, "load": f"{load:g}"}
                places = [smi.line_of(one, r"curFreq"), smi.line_of(one, r"Temperature") if heat else None]
                found.append(fact("card-slowed", places, **values))
    return found


def hot(v: View) -> list[Fact]:
    """A card close to the temperature at which it slows down or stops."""
    for smi in v.smi:
        for npu in smi.read.npus:
            heat = npu.temperature_c
            if heat is not None and (heat >= _VERY_HOT_C or (heat >= _HOT_C and not npu.healthy)):
                return [fact("card-hot", [smi.place(npu.line)], npu=npu.npu, heat=f"{heat:g}")]
    return []


def lost(v: View) -> list[Fact]:
    """Cards that the bus no longer answers for, that have no device node, or whose number is left out among the nodes (on a host)."""
    rows = [(row, text, place) for text, place in _of_lspci(v) if (row := _CARD.match(text))]
    for row, _, place in rows:
        if "rev ff" in row["rest"].lower():
            return [fact("card-link-lost", [place], device=f"{row['bus']}:00.0")]
    if v.inside or not v.devices or not _a_host(v):
        return []
    nodes = v.machine.listings["/dev"]
    first = next((e.evidence for e in nodes.entries if re.fullmatch(r"davinci\d+", e.name)), None)
    buses = {row["bus"].lower() for row, _, _ in rows}
    gone = sorted(set(range(max(v.devices) + 1)) - set(v.devices))
    if gone and 0 in v.devices:
        return [fact("card-gone", [first, *_not_listed(v, gone)], device=gone[0], devices=", ".join(map(str, gone)), count=len(v.devices))]
    if len(buses) > len(v.devices):
        return [fact("card-not-up", [rows[0][2], first], listed=len(buses), count=len(v.devices))]
    return []


def _of_lspci(v: View) -> Iterator[tuple[str, Evidence]]:
    texts: tuple[Text, ...] = tuple(o.text for o in v.machine.output("lspci"))
    return (pair for text in texts for pair in text.lines())


def _a_host(v: View) -> bool:
    """Something that only a host shows: its bus, its modules, its kernel's log."""
    return bool(v.machine.output("lspci", "lsmod", "dmesg") or v.machine.file("/proc/modules")) and not v.machine.in_container


def _not_listed(v: View, gone: list[int]) -> list[Evidence]:
    """The line of npu-smi's table after the one that is missing."""
    return [smi.place(npu.line) for smi in v.smi for npu in smi.read.npus if npu.npu == gone[0] + 1][:1]


def memory_held(v: View) -> list[Fact]:
    """Cards most of whose memory is taken: by a process that npu-smi shows (a card at work), or by none that it shows."""
    at_work: list[Fact] = []
    for smi in v.smi:
        full = [
            npu
            for npu in smi.read.npus
            if npu.hbm_used_mb and npu.hbm_total_mb and npu.hbm_used_mb >= max(0.6 * npu.hbm_total_mb, _IDLE_MB)
        ]
        for npu in full:
            holders = [p for p in smi.read.processes if p.npu == npu.npu]
            places = [smi.place(npu.line), *(smi.place(p.line) for p in holders[:1] if p.line)]
            others = [str(n.npu) for n in full if n is not npu and not any(p.npu == n.npu for p in smi.read.processes)]
            values = {"npu": npu.npu, "used": npu.hbm_used_mb, "total": npu.hbm_total_mb}
            if not holders and smi.read.processes_listed:
                return [fact("card-memory-held-unseen", places, **{**values, "npu": ", ".join([str(npu.npu), *others[:7]])})]
            who = ", ".join(f"{p.name} (pid {p.pid})" for p in holders[:3])
            at_work = at_work or [fact("card-memory-held", places, **values, who=who, pid=holders[0].pid if holders else "")]
    return at_work


def _text(value: object) -> str:
    return "" if value is None else str(value)


CHECKS: tuple[Callable[[View], list[Fact]], ...] = (lost, unhealthy, bit_errors, slowed, hot, memory_held)
