"""Collectives: addresses, TLS, links of the cards, variables outside of their range; rank_table.py and network.py have the rest.

In: a `View`.  Out: facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from jumar.device.ascend import check_hccn, parse_hccn
from jumar.tools.doctor.machine import Text
from jumar.tools.doctor.view import View, fact
from jumar.tools.knowledge import Evidence, Fact

RANGES = {  # variable: least, most, what is meant
    "HCCL_CONNECT_TIMEOUT": (120, 7200, "seconds"),
    "HCCL_EXEC_TIMEOUT": (0, 2147483647, "seconds"),
    "HCCL_IF_BASE_PORT": (1024, 65520, "a port"),
    "HCCL_BUFFSIZE": (1, 2147483647, "MB"),
    "HCCL_WHITELIST_DISABLE": (0, 1, "0 or 1"),
    "HCCL_DETERMINISTIC": None,
}


def rank_tables(v: View) -> Iterator[tuple[str, Text]]:
    """Files that are rank tables: the one that the environment names first."""
    named = [v.machine.variable(n) for n in ("RANK_TABLE_FILE", "HCCL_CONFIG_PATH")]
    for path, text in sorted(v.machine.files.items(), key=lambda pair: pair[0] not in named):
        if path in named or re.search(r'"(?:server_list|group_list|rank_list)"\s*:', text.text[:100_000]):
            yield path, text


def own_addresses(v: View) -> Iterator[tuple[str, str, Evidence]]:
    """Device, address and line: of /etc/hccn.conf, else of `hccn_tool -i N -ip -g`."""
    conf = v.machine.file("/etc/hccn.conf")
    for name, seen in conf.keys().items() if conf else ():
        number = re.fullmatch(r"address_(\d+)", name)
        if number and seen.value:
            yield number[1], seen.value, seen.evidence
    for output in v.machine.output("hccn") if conf is None else ():
        for one in parse_hccn(f"$ {output.command}\n{output.text.text}").devices:
            if one.ip and not one.assumed:
                yield str(one.device), one.ip, output.text.find(rf"\b{re.escape(one.ip)}\b") or output.text.at(0)


def tls(v: View) -> list[Fact]:
    """TLS on for some cards and off for others: their handshakes fail."""
    states: dict[str, Evidence] = {}
    for output in v.machine.output("hccn"):
        for line, place in output.text.lines():
            found = re.search(r"tls switch\[(\d)\]", line)
            if found:
                states.setdefault(found[1], place)
    return [fact("hccl-tls-mixed", [states["0"], states["1"]])] if {"0", "1"} <= set(states) else []


def address_missing(v: View) -> list[Fact]:
    """A card without an address while the others have one."""
    have = {device for device, _, _ in own_addresses(v)}
    for output in v.machine.output("hccn"):
        for one in parse_hccn(f"$ {output.command}\n{output.text.text}").devices:
            if "ip" in one.lines and not one.ip and not one.assumed and len(have) > 1:
                return [fact("card-address-missing", [output.text.at(0)], device=one.device, count=len(have))]
    conf = v.machine.file("/etc/hccn.conf")
    cards = {str(npu.npu) for smi in v.smi for npu in smi.read.npus if npu.generation in ("910", "910b")}
    lacking = sorted(cards - have, key=int)
    if conf and lacking and len(have & cards) > len(lacking) and not v.inside:
        return [fact("card-address-missing", [conf.find(r"^address_\d") or conf.at(0)], device=lacking[0], count=len(have))]
    return []


_MANY_PACKETS = 1000  # that were sent again or came damaged: on a sound network these counters stay near 0


def packets_lost(v: View) -> list[Fact]:
    """Counters of packets that were sent again, came damaged or out of order."""
    found = []
    for output in v.machine.output("hccn"):
        for wrong in check_hccn(parse_hccn(f"$ {output.command}\n{output.text.text}")):
            told = re.fullmatch(r"device (\d+): (\w+) must be 0, got (\d+)", wrong.what) if wrong.kind == "counter" else None
            if told and int(told[3]) >= _MANY_PACKETS:
                place = output.text.find(rf"\b{told[2]}\s*:\s*{told[3]}\b") or output.text.at(0)
                found.append((int(told[3]), fact("card-packets-lost", [place], device=told[1], counter=told[2], value=told[3])))
    return [max(found, key=lambda pair: pair[0])[1]] if found else []


_PORT_FAULTS = {  # kind of check_hccn -> fact
    "link-down": "card-port-down",
    "net-health": "card-network-unhealthy",
    "optical-absent": "card-optics-bad",
    "optical-power": "card-optics-bad",
    "optical-signal": "card-optics-bad",
    "link-flaps": "card-port-flaps",
}


def links(v: View) -> list[Fact]:
    """Ports of cards: down, unstable, optics out of bounds, a detection address that does not answer; one fact of each kind."""
    found: dict[str, Fact] = {}
    for output in v.machine.output("hccn"):
        lines = [f"$ {output.command}", *output.text.text.split("\n")]
        read = parse_hccn("\n".join(lines))
        for wrong in check_hccn(read):
            name = _PORT_FAULTS.get(wrong.kind, "")
            if not name or name in found:
                continue
            shown = lines[wrong.line - 1].strip() if 1 < wrong.line <= len(lines) else wrong.what
            place = Evidence(output.text.source, output.text.first_line + max(wrong.line - 2, 0), shown[:300])
            device = re.match(r"device (\d+):", wrong.what)
            found[name] = fact(name, [place], device=device[1] if device else "", what=wrong.what, status=wrong.what.rpartition("got ")[2])
    return list(found.values())


def values(v: View) -> list[Fact]:
    """HCCL variables outside of their range."""
    for name, bounds in RANGES.items():
        seen = v.machine.environment.get(name)
        if not seen or not seen.value:
            continue
        if bounds is None:
            if seen.value.lower() not in ("true", "false", "strict"):
                return [fact("hccl-value-invalid", [seen.evidence], variable=name, value=seen.value, wanted="true, false or strict")]
            continue
        least, most, unit = bounds
        number = int(seen.value) if re.fullmatch(r"-?[0-9]{1,12}", seen.value) else None
        if number is None or not least <= number <= most:
            return [fact("hccl-value-invalid", [seen.evidence], variable=name, value=seen.value, wanted=f"{least} to {most} ({unit})")]
    return []


CHECKS: tuple[Callable[[View], list[Fact]], ...] = (
    address_missing,
    tls,
    links,
    packets_lost,
    values,
)
