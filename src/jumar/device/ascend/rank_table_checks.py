"""What is wrong with a rank table: each fault with the server, device and rank that has it, as HCCL would refuse it or hang on it.

In: `RankTable` (rank_table.py), and what is known of the machines.  Out: complaints with the line of the file.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType

from jumar.device.ascend.complaint import Complaint
from jumar.device.ascend.rank_table import RankDevice, RankServer, RankTable

LONGEST_SERVER_ID = 64
_NONE: Mapping[int, str] = MappingProxyType({})
VERSIONS = {  # which versions a generation's HCCL reads
    "910": ("1.0",),
    "310p": ("1.0",),
    "910b": ("1.0",),
    "910_93": ("1.0", "1.2"),
    "950": ("2.0",),
}


def check_rank_table(
    table: RankTable,
    *,
    hosts: Collection[str] = (),
    devices: Collection[int] = (),
    addresses: Mapping[int, str] = _NONE,
    server: str = "",
    generation: str = "",
) -> tuple[Complaint, ...]:
    """All faults of a table, those of its text first.   hosts: names or addresses of the job's servers; devices: ids that are present
    (on `server`, or on each server where none is named); addresses: of `server`'s devices, as /etc/hccn.conf has them;
    generation: `910`, `910b`, `910_93`, `950` ... as of `Npu`.

    >>> from jumar.device.ascend.rank_table import parse_rank_table
    >>> [one.what for one in check_rank_table(parse_rank_table('{"status": "initializing", "server_list": [], "version": "1.0"}'))]
    ["status must be completed, got 'initializing': the job's controller has not filled the table yet"]
    """
    found = list(table.complaints)
    if not table.form:
        return tuple(found)
    ready = table.status == "completed"
    found += _head(table, generation)
    if ready or table.ranks:
        found += _counts(table)
        found += _servers(table, hosts)
        found += _rank_ids(table)
        found += _device_ids(table, devices, addresses, server)
        found += _networks(table, generation)
        found += _super_pods(table)
    return tuple(found)


def _place(server: RankServer, device: RankDevice | None = None) -> str:
    name = f"server {server.server_id}" if server.server_id else ""
    return ", ".join(part for part in (name, f"{device}" if device is not None else "") if part) or "the table"


def _head(table: RankTable, generation: str) -> Iterator[Complaint]:
    line = table.lines.get("status", 0)
    if "status" not in table.lines:
        yield Complaint("status must be there and be completed", 0, "status")
    elif table.status != "completed":
        more = ": the job's controller has not filled the table yet" if table.status == "initializing" else ""
        yield Complaint(f"status must be completed, got {table.status!r}{more}", line, "status")
    line = table.lines.get("version", 0)
    if table.form == "groups":
        if table.version or generation in {"910b", "910_93", "950"}:
            yield Complaint(
                "group_list is the old template without a version: Atlas A2 and later need version 1.0 with server_list", line, "version"
            )
        return
    if not table.version:
        yield Complaint(f"version must be there and be {table.form}", 0, "version")
    elif table.version not in {"1.0", "1.2", "2.0"}:
        yield Complaint(f"version must be 1.0, 1.2 or 2.0, got {table.version!r}", line, "version")
    elif (table.version == "2.0") != (table.form == "2.0"):
        wanted = "rank_list" if table.version == "2.0" else "server_list"
        yield Complaint(
            f"version {table.version} must have {wanted}, got {'rank_list' if table.form == '2.0' else 'server_list'}", line, "version"
        )
    elif table.version == "1.2" and not table.has_super_pods:
        yield Complaint("version 1.2 must have super_pod_list; without super pods write version 1.0", line, "version")
    elif table.version == "1.0" and table.has_super_pods:
        yield Complaint("super_pod_list must have version 1.2, got 1.0", line, "version")
    wanted_versions = VERSIONS.get(generation)
    if table.version and wanted_versions and table.version not in wanted_versions:
        yield Complaint(
            f"version must be {' or '.join(wanted_versions)} for this chip ({generation}), got {table.version}", line, "version-chip"
        )


def _counts(table: RankTable) -> Iterator[Complaint]:
    if table.form == "2.0":
        count, listed, name, where = table.rank_count, len(table.ranks), "rank_count", "rank_list"
    else:
        count, listed, name, where = table.server_count, len(table.servers), "server_count", "server_list"
    if count is not None and count != listed:
        yield Complaint(f"{name} must be {listed}, as many as {where} has, got {count}", table.lines.get(name, 0), "count")
    elif table.form in {"1.0", "2.0"} and name not in table.lines:
        yield Complaint(f"{name} must be there and be {listed}", 0, "count")
    if not table.ranks:
        yield Complaint(f"{where if table.form != 'groups' else 'group_list'} must name at least one device, got none", 0, "empty")


def _servers(table: RankTable, hosts: Collection[str]) -> Iterator[Complaint]:
    if table.form == "2.0":
        return
    seen: dict[str, RankServer] = {}
    for index, server in enumerate(table.servers):
        if not server.server_id:
            yield Complaint(f"server {index}: server_id must be there", server.line, "server-id")
        elif len(server.server_id) > LONGEST_SERVER_ID:
            yield Complaint(
                f"server {server.server_id[:20]}...: server_id must have at most {LONGEST_SERVER_ID} characters, got {len(server.server_id)}",
                server.line,
                "server-id",
            )
        elif server.server_id in seen and table.form != "groups":
            yield Complaint(
                f"server {server.server_id}: server_id must be unique, line {seen[server.server_id].line} has it too",
                server.line,
                "server-twice",
            )
        elif hosts and not {server.server_id, server.host_ip} & set(hosts):
            yield Complaint(f"server {server.server_id}: it must be one of the hosts {', '.join(sorted(hosts)[:8])}", server.line, "host")
        seen.setdefault(server.server_id, server)
        if not server.devices:
            yield Complaint(f"{_place(server)}: it must have at least one device, got none", server.line, "empty")


def _rank_ids(table: RankTable) -> Iterator[Complaint]:
    """Ranks are 0 to N-1, each once, and no server's or super pod's are mixed with another's."""
    owner: dict[int, tuple[RankServer, RankDevice]] = {}
    total = len(table.ranks)
    clean = True
    for server, device in table.ranks:
        if device.rank is None:
            clean = False
            continue
        if device.rank in owner:
            first = _place(*owner[device.rank])
            yield Complaint(
                f"{_place(server, device)}: rank_id {device.rank} must be unique, {first} has it too", device.line, "rank-id-twice"
            )
            clean = False
        elif not 0 <= device.rank < total:
            yield Complaint(f"{_place(server, device)}: rank_id must be 0 to {total - 1}, got {device.rank}", device.line, "rank-id-range")
            clean = False
        owner.setdefault(device.rank, (server, device))
    missing = [rank for rank in range(total) if rank not in owner]
    if missing and any(device.rank is not None for _, device in table.ranks):
        yield Complaint(
            f"rank_id must be 0 to {total - 1} without a gap, {_some(missing)} {'is' if len(missing) == 1 else 'are'} missing",
            0,
            "rank-id-gap",
        )
    if not clean or missing or table.form == "2.0":
        return
    spans = []
    for server in table.servers:
        ranks = sorted(device.rank for device in server.devices if device.rank is not None)
        if not ranks:
            continue
        between = [rank for rank in range(ranks[0], ranks[-1]) if owner[rank][0] is not server]
        if between:
            others = ", ".join(dict.fromkeys(owner[rank][0].server_id for rank in between))
            what = f"its rank_ids must follow one another, got {_some(ranks)}: {_some(between)} {'is' if len(between) == 1 else 'are'} on {others}"
            yield Complaint(f"{_place(server)}: {what}", server.line, "rank-id-crossed")
        spans.append((ranks[0], server))
    at = {server.server_id: first for first, server in spans}
    firsts = [(min((at[name] for name in pod.servers if name in at), default=-1), pod) for pod in table.super_pods]
    for (before, earlier), (after, pod) in pairwise(firsts):
        if -1 < after < before:
            what = f"its ranks must come after those of super pod {earlier.super_pod_id}, got {after} before {before}"
            yield Complaint(f"super pod {pod.super_pod_id}: {what}", pod.line, "super-pod-order")


def _some(numbers: list[int]) -> str:
    """Numbers as text, the first eight of many."""
    return ", ".join(map(str, numbers[:8])) + (f" and {len(numbers) - 8} more" if len(numbers) > 8 else "")


def _device_ids(table: RankTable, present: Collection[int], addresses: Mapping[int, str], here: str) -> Iterator[Complaint]:
    """Device ids are once in a server, or told apart by their ports, and exist."""
    for server in table.servers:
        seen: dict[int, RankDevice] = {}
        ports: dict[tuple[int, int | None], RankDevice] = {}
        for device in server.devices:
            number = device.device_id
            if number is None:
                continue
            if number < 0:
                yield Complaint(f"{_place(server, device)}: device_id must not be negative, got {number}", device.line, "device-id")
            # version 2.0 does not name servers: an id comes again on each
            same = ports.get((number, device.device_port)) if table.form != "2.0" else None
            if same is not None:
                more = "" if device.device_port is None else f" and device_port {device.device_port}"
                what = f"device_id {number}{more} must be once in a server, rank {same.rank} has it too"
                hint = "" if device.device_port is not None else " (several processes on a card need a device_port each)"
                yield Complaint(f"{_place(server, device)}: {what}{hint}", device.line, "device-id-twice")
            elif number in seen and table.form != "2.0" and None in (device.device_port, seen[number].device_port):
                what = f"device_port must be set for each of several processes on device {number}"
                yield Complaint(f"{_place(server, device)}: {what}", device.line, "device-port")
            if present and number not in present and here in {"", server.server_id, server.host_ip}:
                what = f"device_id must be one that is present ({_some(sorted(present))}), got {number}"
                yield Complaint(f"{_place(server, device)}: {what}", device.line, "device-absent")
            wanted = addresses.get(number, "") if here in {"", server.server_id, server.host_ip} else ""
            if wanted and device.device_ip and device.device_ip != wanted:
                what = f"device_ip must be {wanted}, which the device has (/etc/hccn.conf), got {device.device_ip}"
                yield Complaint(f"{_place(server, device)}: {what}", device.line, "device-ip-other")
            seen.setdefault(number, device)
            ports.setdefault((number, device.device_port), device)


def _networks(table: RankTable, generation: str) -> Iterator[Complaint]:
    owner: dict[str, tuple[RankServer, RankDevice]] = {}
    several = len(table.servers) > 1
    needed = (table.form in {"1.0", "groups"} and (several or generation == "910")) or (table.form == "1.2" and len(table.super_pods) > 1)
    for server, device in table.ranks:
        where = _place(server, device)
        if table.form == "2.0":
            yield from _layers(device, where)
        elif not device.device_ip:
            if needed:
                why = "between servers" if several else "by this chip"
                yield Complaint(
                    f"{where}: device_ip must be there, it is needed {why} (see /etc/hccn.conf)", device.line, "device-ip-missing"
                )
        else:
            yield from _address(where, "device_ip", device.device_ip, device.line)
            first = owner.get(device.device_ip)
            if first is not None and not (first[0] is server and first[1].device_id == device.device_id):
                what = f"device_ip {device.device_ip} must be unique, {_place(*first)} has it too"
                yield Complaint(f"{where}: {what}", device.line, "ip-twice")
            owner.setdefault(device.device_ip, (server, device))
        if device.backup_ip:
            yield from _address(where, "backup_device_ip", device.backup_ip, device.line)
            if device.backup_ip == device.device_ip:
                yield Complaint(
                    f"{where}: backup_device_ip must be another device's, got its own {device.backup_ip}", device.line, "backup-ip"
                )
        for name, port in (
            ("device_port", device.device_port),
            ("backup_device_port", device.backup_port),
            ("host_port", device.host_port),
        ):
            if port is not None and not 1 <= port <= 65535:
                yield Complaint(f"{where}: {name} must be 1 to 65535, got {port}", device.line, "port")
    for server in table.servers:
        if server.host_ip:
            yield from _address(_place(server), "host_ip", server.host_ip, server.line)


def _layers(device: RankDevice, where: str) -> Iterator[Complaint]:
    if not device.addresses:
        yield Complaint(f"{where}: level_list must give an address, got none", device.line, "device-ip-missing")
    for one in device.addresses:
        within = f"{where}, layer {'?' if one.layer is None else one.layer}"
        if not one.address:
            yield Complaint(f"{within}: addr must be there", one.line, "device-ip-missing")
        elif one.kind.upper() in {"IPV4", "IPV6"}:
            yield from _address(within, "addr", one.address, one.line)


def _address(where: str, name: str, text: str, line: int) -> Iterator[Complaint]:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        yield Complaint(f"{where}: {name} must be an IP address, got {text[:60]!r}", line, "ip")
        return
    if address.is_unspecified or address.is_loopback or address.is_multicast:
        yield Complaint(f"{where}: {name} must be an address of the port, got {text}", line, "ip")


def _super_pods(table: RankTable) -> Iterator[Complaint]:
    """Super pods name known servers, each once; the ids of their devices are unique in a pod."""
    if not table.has_super_pods:
        return
    known = {server.server_id: server for server in table.servers}
    owner: dict[str, str] = {}
    names: set[str] = set()
    for pod in table.super_pods:
        if pod.super_pod_id in names:
            yield Complaint(f"super pod {pod.super_pod_id}: super_pod_id must be unique", pod.line, "super-pod")
        names.add(pod.super_pod_id)
        seen: dict[int, str] = {}
        for name in pod.servers:
            if name not in known:
                yield Complaint(f"super pod {pod.super_pod_id}: server {name} must be in server_list", pod.line, "super-pod")
                continue
            if name in owner:
                yield Complaint(
                    f"super pod {pod.super_pod_id}: server {name} must be in one super pod, {owner[name]} has it too", pod.line, "super-pod"
                )
                continue
            owner[name] = pod.super_pod_id
            for device in known[name].devices:
                where = f"super pod {pod.super_pod_id}, {_place(known[name], device)}"
                if device.super_device_id is None:
                    yield Complaint(
                        f"{where}: super_device_id must be there (`npu-smi info -t spod-info`: SDID)", device.line, "super-device-id"
                    )
                elif device.super_device_id in seen:
                    what = (
                        f"super_device_id {device.super_device_id} must be unique in a super pod, {seen[device.super_device_id]} has it too"
                    )
                    yield Complaint(f"{where}: {what}", device.line, "super-device-id")
                else:
                    seen[device.super_device_id] = _place(known[name], device)
    for server in table.servers:
        if server.server_id not in owner:
            yield Complaint(f"{_place(server)}: it must be in a super pod", server.line, "super-pod")
