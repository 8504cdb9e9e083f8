"""The rank table: its own faults, and whether it fits this machine's devices and addresses.

In: a `View`.  Out: facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from jumar.device.ascend import RankTable, check_rank_table, parse_rank_table
from jumar.tools.doctor.checks import network
from jumar.tools.doctor.checks.hccl import own_addresses, rank_tables
from jumar.tools.doctor.view import View, fact
from jumar.tools.knowledge import Evidence, Fact


def rank_table_bad(v: View) -> list[Fact]:
    """The rank table's own faults."""
    for path, text in rank_tables(v):
        table = parse_rank_table(text.text)
        here = _server(v, table)
        present = v.devices if here is not None and not v.inside else ()
        generation = v.generation[0] if v.generation else ""
        found = check_rank_table(table, devices=present, server=here or "", generation=generation)
        if found:
            first = found[0]
            lines = text.text.split("\n")
            shown = lines[first.line - 1].strip()[:300] if 0 < first.line <= len(lines) else first.what
            kinds = {one.kind: one.what for one in reversed(found)}  # one of each kind, the first
            told = list(reversed(kinds.values()))[:3]
            what = "; ".join(told) + _more(len(found) - len(told))
            return [
                fact(
                    "rank-table-bad",
                    [Evidence(text.source, first.line, shown)],
                    what=what,
                    path=text.source if path == f"/{text.source}" else path,
                )
            ]
    return []


def _server(v: View, table: RankTable) -> str | None:
    """The server of a table that this machine is: the only one, or the one with an address of ours; None where nothing tells."""
    if len(table.servers) == 1:
        return table.servers[0].server_id
    own = {*network.addresses(v), *(address for _, address, _ in own_addresses(v))}
    mine = [s for s in table.servers if own & {s.server_id, s.host_ip, *(d.device_ip for d in s.devices if d.device_ip)}]
    return mine[0].server_id if len(mine) == 1 else None


def rank_table_gone(v: View) -> list[Fact]:
    """RANK_TABLE_FILE names a file that is not there."""
    for name, seen in v.variables("RANK_TABLE_FILE"):
        if seen.value.startswith("/") and v.machine.whole and seen.value not in v.machine.files:
            return [fact("rank-table-gone", [seen.evidence], variable=name, path=seen.value)]
    return []


def addresses(v: View) -> list[Fact]:
    """Addresses of the cards: two of one address, or others than the rank table's."""
    owners: dict[str, tuple[str, Evidence]] = {}
    for device, address, place in own_addresses(v):
        if address in owners:
            if owners[address][0] != device:
                return [fact("card-address-twice", [owners[address][1], place], address=address, first=owners[address][0], second=device)]
            continue
        owners[address] = (device, place)
    for _, text in rank_tables(v):
        servers = parse_rank_table(text.text).servers
        listed = [d.device_ip for server in servers for d in server.devices if d.device_ip]
        if listed and owners and not set(listed) & set(owners):
            mine = next(iter(owners.values()))[1]
            return [fact("rank-table-of-other-machine", [text.find(r'"device_ip"'), mine], table=listed[0], here=next(iter(owners)))]
        known = {device: (address, place) for address, (device, place) in owners.items()}
        for server in servers:
            pairs = [(d, *known[str(d.device_id)]) for d in server.devices if d.device_ip and str(d.device_id) in known]
            wrong = [(d, address, place) for d, address, place in pairs if d.device_ip != address]
            if wrong and len(wrong) * 2 < len(pairs):  # it is this machine: most of its addresses are right
                d, address, place = wrong[0]
                values = {"device": d.device_id, "table": d.device_ip, "here": address, "server": server.server_id}
                return [fact("rank-table-address-differs", [text.find(rf'"{re.escape(d.device_ip)}"'), place], **values)]
    return []


def _more(count: int) -> str:
    return f" (+{count})" if count > 0 else ""


CHECKS: tuple[Callable[[View], list[Fact]], ...] = (rank_table_gone, rank_table_bad, addresses)
