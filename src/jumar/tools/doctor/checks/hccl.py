"""Collectives: rank table, addresses, TLS, links, network cards, ports, and variables outside of their range.

In: a `View`.  Out: facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from jumar.device.ascend import check_hccn, check_rank_table, parse_hccn, parse_rank_table
from jumar.tools.doctor import readings
from jumar.tools.doctor.machine import Text
from jumar.tools.doctor.view import View, fact
from jumar.tools.knowledge import Evidence, Fact

BASE_PORT, PORTS = 60000, 32  # HCCL_IF_BASE_PORT and how many HCCL takes from there
RANGES = {  # variable: least, most, what is meant
    "HCCL_CONNECT_TIMEOUT": (120, 7200, "seconds"),
    "HCCL_EXEC_TIMEOUT": (0, 2147483647, "seconds"),
    "HCCL_IF_BASE_PORT": (1024, 65520, "a port"),
    "HCCL_BUFFSIZE": (1, 2147483647, "MB"),
    "HCCL_WHITELIST_DISABLE": (0, 1, "0 or 1"),
    "HCCL_DETERMINISTIC": None,
}
_IFNAMES = ("HCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME")


def rank_tables(v: View) -> Iterator[tuple[str, Text]]:
    """Files that are rank tables: the one that the environment names first."""
    named = [v.machine.variable(n) for n in ("RANK_TABLE_FILE", "HCCL_CONFIG_PATH")]
    for path, text in sorted(v.machine.files.items(), key=lambda pair: pair[0] not in named):
        if path in named or re.search(r'"(?:server_list|group_list|rank_list)"\s*:', text.text[:100_000]):
            yield path, text


def rank_table_bad(v: View) -> list[Fact]:
    """The rank table's own faults."""
    for path, text in rank_tables(v):
        found = check_rank_table(parse_rank_table(text.text))
        if found:
            first = found[0]
            lines = text.text.split("\n")
            shown = lines[first.line - 1].strip()[:300] if 0 < first.line <= len(lines) else first.what
            return [fact("rank-table-bad", [Evidence(text.source, first.line, shown)], what=first.what, more=len(found) - 1, path=path)]
    return []


def rank_table_gone(v: View) -> list[Fact]:
    """RANK_TABLE_FILE names a file that is not there."""
    for name, seen in v.variables("RANK_TABLE_FILE"):
        if seen.value.startswith("/") and v.machine.whole and seen.value not in v.machine.files:
            return [fact("rank-table-gone", [seen.evidence], variable=name, path=seen.value)]
    return []


def addresses(v: View) -> list[Fact]:
    """Addresses of the cards in /etc/hccn.conf: two of one address, or others than the rank table's."""
    conf = v.machine.file("/etc/hccn.conf")
    if conf is None:
        return []
    owners: dict[str, tuple[str, Evidence]] = {}
    for name, seen in conf.keys().items():
        number = re.fullmatch(r"address_(\d+)", name)
        if number and seen.value:
            if seen.value in owners:
                places = [owners[seen.value][1], seen.evidence]
                return [fact("card-address-twice", places, address=seen.value, first=owners[seen.value][0], second=number[1])]
            owners[seen.value] = (number[1], seen.evidence)
    for _, text in rank_tables(v):
        listed = [d.device_ip for server in parse_rank_table(text.text).servers for d in server.devices if d.device_ip]
        if listed and owners and not set(listed) & set(owners):
            mine = next(iter(owners.values()))[1]
            return [fact("rank-table-of-other-machine", [text.find(r'"device_ip"'), mine], table=listed[0], here=next(iter(owners)))]
    return []


def tls(v: View) -> list[Fact]:
    """TLS on for some cards and off for others: their handshakes fail."""
    states: dict[str, Evidence] = {}
    for output in v.machine.output("hccn"):
        for line, place in output.text.lines():
            found = re.search(r"tls switch\[(\d)\]", line)
            if found:
                states.setdefault(found[1], place)
    return [fact("hccl-tls-mixed", [states["0"], states["1"]])] if {"0", "1"} <= set(states) else []


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


def network_cards(v: View) -> list[Fact]:
    """A variable names a network card that is not there, or one that is down."""
    known: dict[str, tuple[int, str, Evidence]] = {}
    for output in v.machine.output("ip", "ifconfig"):
        known.update(readings.cards(output.text))
    if not known:
        return []
    for name, seen in v.variables(*_IFNAMES):
        wanted = [w.strip() for w in re.sub(r"^[=^]+", "", seen.value).split(",") if w.strip()]
        if seen.value.startswith("^") or not wanted:
            continue
        fitting = [c for c in known if any(c == w if seen.value.startswith("=") else c.startswith(w) for w in wanted)]
        if not fitting:
            return [fact("network-card-absent", [seen.evidence], variable=name, value=seen.value, cards=", ".join(sorted(known)))]
        down = [c for c in fitting if known[c][1] == "DOWN"]
        if down and len(down) == len(fitting):
            return [fact("network-card-down", [known[down[0]][2], seen.evidence], variable=name, card=down[0])]
    return []


def ports(v: View) -> list[Fact]:
    """A port that HCCL listens on is taken (only told where a job of several cards is set up)."""
    env = v.machine.environment
    if not any(n.startswith(("HCCL_", "RANK_", "MASTER_", "MS_WORKER")) for n in env):
        return []
    base = (
        int(env["HCCL_IF_BASE_PORT"].value)
        if "HCCL_IF_BASE_PORT" in env and re.fullmatch(r"[0-9]{1,5}", env["HCCL_IF_BASE_PORT"].value)
        else BASE_PORT
    )
    for number, place in _listening(v):
        if base <= number < base + PORTS:
            return [fact("hccl-port-taken", [place], port=number, base=base, last=base + PORTS - 1)]
    return []


def _listening(v: View) -> Iterator[tuple[int, Evidence]]:
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        text = v.machine.file(path)
        for line, place in text.lines() if text else ():
            row = re.match(r"\s*\d+: [0-9A-F]+:([0-9A-F]{4}) \S+ 0A ", line)
            if row:
                yield int(row[1], 16), place
    for output in v.machine.output("ss", "netstat"):
        for line, place in output.text.lines():
            row = re.match(r"^(?:tcp6?\s+\d+\s+\d+\s+|(?:tcp\s+)?LISTEN\s+\d+\s+\d+\s+)\S*?:(\d+)\s", line)
            if row and "LISTEN" in line:
                yield int(row[1]), place


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


def card_mtu(v: View) -> list[Fact]:
    """Ports of the cards with different MTU: packets of the larger are lost."""
    conf = v.machine.file("/etc/hccn.conf")
    sizes: dict[str, Evidence] = {}
    for name, seen in (conf.keys() if conf else {}).items():
        if re.fullmatch(r"mtu_\d+", name):
            sizes.setdefault(seen.value, seen.evidence)
    return [fact("card-mtu-differs", list(sizes.values())[:2], sizes=", ".join(sizes))] if len(sizes) > 1 else []


CHECKS: tuple[Callable[[View], list[Fact]], ...] = (
    rank_table_gone,
    rank_table_bad,
    addresses,
    tls,
    links,
    card_mtu,
    network_cards,
    ports,
    values,
)
