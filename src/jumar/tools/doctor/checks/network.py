"""The host's network as HCCL uses it: the network card that it takes, its MTU, the ports that it listens on.

In: a `View`.  Out: facts.  The order in which HCCL takes a card is that of its documentation: HCCL_IF_IP, HCCL_SOCKET_IFNAME, then the first by name
of those that are neither docker's nor the loopback, then docker's, then the loopback.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jumar.device.ascend import parse_hccn, parse_rank_table
from jumar.tools.doctor import readings
from jumar.tools.doctor.checks.hccl import rank_tables
from jumar.tools.doctor.machine import Seen
from jumar.tools.doctor.view import View, fact
from jumar.tools.knowledge import Evidence, Fact

BASE_PORT, PORTS = 60000, 32  # HCCL_IF_BASE_PORT and how many HCCL takes from there
IFNAMES = ("HCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME")
_LOCAL = re.compile(r"lo\d*|docker.*")
_VIRTUAL = re.compile(r"(?:br-|cni|cali|flannel|kube|veth|virbr|tun|tap|vxlan|dummy|ovs|lxc|lxd|podman|cilium|nodelocaldns).*")


@dataclass(frozen=True)
class Chosen:
    """The network card that a library takes.   by: the variable that says so, None where none does."""

    card: str
    evidence: Evidence
    by: str = ""


def cards(v: View) -> dict[str, tuple[int, str, Evidence]]:
    """Network cards: name -> MTU, state, line."""
    known: dict[str, tuple[int, str, Evidence]] = {}
    for output in v.machine.output("ip", "ifconfig"):
        known = {**readings.cards(output.text), **known}
    return known


def addresses(v: View) -> dict[str, str]:
    """Address -> network card."""
    found: dict[str, str] = {}
    for output in v.machine.output("ip", "ifconfig"):
        found.update(readings.addresses(output.text))
    return found


def fitting(value: str, names: list[str]) -> list[str]:
    """The cards that a value of HCCL_SOCKET_IFNAME takes, in the order of its parts: prefixes, `=` exact names, `^` all but these.

    >>> fitting("^=eth0", ["eth0", "eth01"]), fitting("eth", ["enp1", "eth0"]), fitting("=eth", ["eth0"])
    (['eth01'], ['eth0'], [])
    """
    but, exact = value.startswith("^"), value.lstrip("^").startswith("=")
    words = [w.strip() for w in value.lstrip("^=").split(",") if w.strip()]
    named = [n for w in words for n in sorted(names) if (n == w if exact else n.startswith(w))]
    return [n for n in sorted(names) if n not in named] if but else list(dict.fromkeys(named))


def chosen(v: View) -> Chosen | None:
    """The card that HCCL takes; None where it is not known which there are."""
    known, owners, env = cards(v), addresses(v), v.machine.environment
    if not known:
        return None
    address, named = env.get("HCCL_IF_IP"), env.get("HCCL_SOCKET_IFNAME")
    if address and address.value:
        card = owners.get(address.value, "")
        return Chosen(card, address.evidence, "HCCL_IF_IP") if card else None
    with_address = [n for n in known if n in owners.values()] or list(known)
    if named and named.value:
        found = fitting(named.value, with_address) or fitting(named.value, list(known))
        return Chosen(found[0], named.evidence, "HCCL_SOCKET_IFNAME") if found else None
    order = sorted(with_address, key=lambda n: (n.startswith("lo"), n.startswith("docker"), n))
    return Chosen(order[0], known[order[0]][2])


def several_hosts(v: View) -> Evidence | None:
    """The line that shows a job over several hosts."""
    env, own = v.machine.environment, addresses(v)
    for _, text in rank_tables(v):
        if len(parse_rank_table(text.text).servers) > 1:
            return text.find(r'"server_id"|"server_list"') or text.at(0)
    for name in ("NNODES", "PET_NNODES", "NODE_NUM", "WORLD_NODES"):
        seen = env.get(name)
        if seen and re.fullmatch(r"[0-9]{1,5}", seen.value) and int(seen.value) > 1:
            return seen.evidence
    world, local = env.get("WORLD_SIZE") or env.get("RANK_SIZE"), env.get("LOCAL_WORLD_SIZE")
    count = int(local.value) if local and local.value.isdecimal() else len(v.devices)
    if world and re.fullmatch(r"[0-9]{1,6}", world.value) and 0 < count < int(world.value):
        return world.evidence
    for name in ("MASTER_ADDR", "MS_SCHED_HOST"):
        seen = env.get(name)
        if seen and own and re.fullmatch(r"\d+(?:\.\d+){3}", seen.value) and not seen.value.startswith("127.") and seen.value not in own:
            return seen.evidence
    return None


def network_cards(v: View) -> list[Fact]:
    """A variable names a network card that is not there, or one that is down."""
    known = cards(v)
    for name, seen in v.variables(*IFNAMES) if known else ():
        if not re.sub(r"[=^,\s]", "", seen.value):
            continue
        found = fitting(seen.value, list(known))
        if not found:
            return [fact("network-card-absent", [seen.evidence], variable=name, value=seen.value, cards=", ".join(sorted(known)))]
        down = [c for c in found if known[c][1] == "DOWN"]
        if down and len(down) == len(found):
            return [fact("network-card-down", [known[down[0]][2], seen.evidence], variable=name, card=down[0])]
    return []


def host_address(v: View) -> list[Fact]:
    """HCCL_IF_IP is no address of this machine."""
    seen, own = v.machine.environment.get("HCCL_IF_IP"), addresses(v)
    if seen and own and re.fullmatch(r"\d+(?:\.\d+){3}", seen.value) and seen.value not in own:
        return [fact("host-address-absent", [seen.evidence], value=seen.value, addresses=", ".join(sorted(own)))]
    return []


def card_of_this_host_only(v: View) -> list[Fact]:
    """A job over several hosts whose HCCL takes the loopback or a bridge that no other host reaches."""
    hosts, taken = several_hosts(v), chosen(v)
    if hosts is None or taken is None or not (_LOCAL.fullmatch(taken.card) or _VIRTUAL.fullmatch(taken.card)):
        return []
    others = [n for n, (_, state, _) in sorted(cards(v).items()) if not (_LOCAL.fullmatch(n) or _VIRTUAL.fullmatch(n)) and state != "DOWN"]
    by = taken.by or "no variable"
    return [fact("host-card-local", [taken.evidence, hosts], card=taken.card, by=by, others=", ".join(others), first=(others or [""])[0])]


def cards_disagree(v: View) -> list[Fact]:
    """Gloo or TensorPipe go over another network card than HCCL."""
    known, own = list(cards(v)), v.machine.environment.get("HCCL_SOCKET_IFNAME")
    if not own or not own.value or (own.value.startswith("lo") and not several_hosts(v)):
        return []
    for name, seen in v.variables("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME"):
        mine, theirs = _taken(own, known), _taken(seen, known)
        if mine and theirs and mine != theirs and (several_hosts(v) or not {mine, theirs} & {"lo"}):
            return [fact("socket-cards-differ", [own.evidence, seen.evidence], variable=name, theirs=theirs, hccl=mine)]
    return []


def _taken(seen: Seen, known: list[str]) -> str:
    """The card that a value names: of those that are there, else as it is written, where it is one whole name."""
    if known:
        return next(iter(fitting(seen.value, known)), "")
    value = seen.value.lstrip("=")
    return value if re.fullmatch(r"[\w.-]*\d[\w.-]*|lo", value) else ""


def host_mtu(v: View) -> list[Fact]:
    """Network cards that one job uses with different MTU: of several hosts, or of one variable on this host."""
    taken = chosen(v)
    sizes: dict[int, Evidence] = {}
    for output in v.machine.output("ip", "ifconfig"):  # files of several hosts hold one each
        seen = readings.cards(output.text)
        if taken and taken.card in seen:
            sizes.setdefault(seen[taken.card][0], seen[taken.card][2])
    named = v.machine.environment.get("HCCL_SOCKET_IFNAME")
    known = cards(v)
    for card in fitting(named.value, list(known)) if named and named.value and not named.value.startswith("^") else ():
        if known[card][1] != "DOWN":
            sizes.setdefault(known[card][0], known[card][2])
    if len(sizes) < 2 or taken is None:
        return []
    return [fact("host-mtu-differs", list(sizes.values())[:3], card=taken.card, sizes=", ".join(map(str, sorted(sizes))))]


def card_mtu(v: View) -> list[Fact]:
    """Ports of the cards with different MTU: packets of the larger are lost."""
    sizes: dict[str, Evidence] = {}
    conf = v.machine.file("/etc/hccn.conf")
    for name, seen in (conf.keys() if conf else {}).items():
        if re.fullmatch(r"mtu_\d+", name):
            sizes.setdefault(seen.value, seen.evidence)
    if len(sizes) < 2:
        for output in v.machine.output("hccn"):
            for one in parse_hccn(f"$ {output.command}\n{output.text.text}").devices:
                if one.mtu is not None:
                    sizes.setdefault(str(one.mtu), output.text.find(rf"\b{one.mtu}\b") or output.text.at(0))
    return [fact("card-mtu-differs", list(sizes.values())[:2], sizes=", ".join(sizes))] if len(sizes) > 1 else []


def ports(v: View) -> list[Fact]:
    """A port that HCCL listens on is taken, by a server or by a connection of somebody else (only told where a job of several cards is set up)."""
    env = v.machine.environment
    if not any(n.startswith(("HCCL_", "RANK_", "MASTER_", "MS_WORKER")) for n in env):
        return []
    named = env.get("HCCL_IF_BASE_PORT")
    base = int(named.value) if named and re.fullmatch(r"[0-9]{1,5}", named.value) else BASE_PORT
    used = [(number, listens, place) for number, listens, place in _sockets(v) if base <= number < base + PORTS]
    for number, listens, place in used:
        if listens:
            return [fact("hccl-port-taken", [place], port=number, base=base, last=base + PORTS - 1)]
    reserved = v.machine.file("/proc/sys/net/ipv4/ip_local_reserved_ports")
    kept = _ranges(reserved.text) if reserved else []
    for number, _, place in used:
        if reserved and not any(low <= number <= high for low, high in kept):
            places = [place, Evidence(reserved.source, 1, reserved.text.strip()[:200] or "(none is reserved)")]
            return [fact("hccl-port-borrowed", places, port=number, base=base, last=base + PORTS - 1)]
    return []


def _ranges(text: str) -> list[tuple[int, int]]:
    return [(int(low), int(high or low)) for low, high in re.findall(r"(\d{1,5})(?:-(\d{1,5}))?", text)]


def _sockets(v: View) -> Iterator[tuple[int, bool, Evidence]]:
    """Local ports that are in use, and whether somebody listens on them."""
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        text = v.machine.file(path)
        for line, place in text.lines() if text else ():
            row = re.match(r"\s*\d+: [0-9A-F]+:([0-9A-F]{4}) \S+ (0[1-9AB]) ", line)
            if row and row[2] != "06":  # waiting connections have ended
                yield int(row[1], 16), row[2] == "0A", place
    for output in v.machine.output("ss", "netstat"):
        for line, place in output.text.lines():
            row = re.match(r"^(?:tcp6?\s+\d+\s+\d+\s+|(?:tcp\s+)?(?:LISTEN|ESTAB)\s+\d+\s+\d+\s+)\S*?:(\d+)\s", line)
            if row and ("LISTEN" in line or "ESTAB" in line):
                yield int(row[1]), "LISTEN" in line, place


CHECKS: tuple[Callable[[View], list[Fact]], ...] = (
    card_mtu,
    network_cards,
    host_address,
    card_of_this_host_only,
    cards_disagree,
    host_mtu,
    ports,
)
