"""A rank table as values: which rank runs on which device of which server, by every version of the file that HCCL reads.

In: the file's text.  Out: `RankTable`, for rank_table_checks.py.  A table of another shape is a complaint, what can be read of it is kept.
Facts: hicann/hccl cluster_info_config, mind-cluster hccl.json, MindSpore's rank_table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from jumar.device.ascend.complaint import Complaint, quoted
from jumar.device.ascend.json_lines import Entry, read_json


@dataclass(frozen=True)
class RankAddress:
    """An address of a rank on one network layer (version 2.0)."""

    layer: int | None
    network: str
    kind: str
    address: str
    ports: tuple[str, ...] = ()
    plane: str = ""
    line: int = 0


@dataclass(frozen=True)
class RankDevice:
    """One rank.   rank: None where the table does not tell it as a number; line: where its entry begins.

    local_id, addresses: of version 2.0; super_device_id, backup_ip, backup_port, host_port: of A3.
    """

    rank: int | None = None
    device_id: int | None = None
    device_ip: str = ""
    device_port: int | None = None
    backup_ip: str = ""
    backup_port: int | None = None
    host_port: int | None = None
    super_device_id: int | None = None
    local_id: int | None = None
    addresses: tuple[RankAddress, ...] = ()
    line: int = 0

    def __str__(self) -> str:
        return f"device {'?' if self.device_id is None else self.device_id} (rank {'?' if self.rank is None else self.rank})"


@dataclass(frozen=True)
class RankServer:
    """One server with its devices.   others: what else the table says of it (`hardware_type`, `pod_name`, `host_nic_ip`)."""

    server_id: str
    devices: tuple[RankDevice, ...] = ()
    host_ip: str = ""
    container_ip: str = ""
    others: Mapping[str, str] = field(default_factory=dict)
    line: int = 0


@dataclass(frozen=True)
class SuperPod:
    """A super pod of A3: the ids of its servers, in order."""

    super_pod_id: str
    servers: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True)
class RankTable:
    """The whole table.   form: `1.0`, `1.2`, `2.0`, `groups` (the old template with group_list), or empty where it is none of them.

    In `2.0` all ranks are devices of one server without a name.  server_count, rank_count: as written.  lines: of the names at the top.
    complaints: what reading the text found, bad JSON and values of the wrong kind.
    """

    form: str = ""
    version: str = ""
    status: str = ""
    server_count: int | None = None
    rank_count: int | None = None
    servers: tuple[RankServer, ...] = ()
    super_pods: tuple[SuperPod, ...] = ()
    has_super_pods: bool = False
    lines: Mapping[str, int] = field(default_factory=dict)
    complaints: tuple[Complaint, ...] = ()

    @property
    def ranks(self) -> tuple[tuple[RankServer, RankDevice], ...]:
        """Every rank with its server, as the table lists them."""
        return tuple((server, device) for server in self.servers for device in server.devices)


def parse_rank_table(text: str) -> RankTable:
    """The rank table of a text.

    >>> table = parse_rank_table('{"status": "completed", "version": "1.0", "server_count": "1", "server_list": [{"server_id": "a", "device": '
    ...     '[{"device_id": "4", "device_ip": "10.0.0.4", "rank_id": "0"}]}]}')
    >>> [(server.server_id, device.rank, device.device_id) for server, device in table.ranks], table.complaints
    ([('a', 0, 4)], ())
    """
    entry, complaints = read_json(text)
    if entry is None:
        return RankTable(complaints=complaints)
    if not isinstance(entry.value, dict):
        return RankTable(complaints=(*complaints, Complaint(f"a rank table must be an object, got {entry.kind}", entry.line, "shape")))
    top = entry.items
    reader = _Reader("rank_list" in top, [])
    form = _form(top, reader)
    servers = _SHAPES[form](top, reader) if form else ()
    pods = reader.array(top, "super_pod_list", "the table") if "super_pod_list" in top else []
    return RankTable(
        form=form,
        version=reader.text(top, "version", "the table"),
        status=reader.text(top, "status", "the table"),
        server_count=reader.count(top, "server_count"),
        rank_count=reader.count(top, "rank_count"),
        servers=servers,
        super_pods=tuple(_super_pod(pod, reader) for pod in pods),
        has_super_pods="super_pod_list" in top,
        lines={name: one.line for name, one in top.items()},
        complaints=(*complaints, *reader.complaints),
    )


@dataclass
class _Reader:
    """Takes fields of the right kind.   numbers: the version writes numbers (2.0), not strings; complaints: grows."""

    numbers: bool
    complaints: list[Complaint]

    def complain(self, what: str, line: int, kind: str) -> None:
        self.complaints.append(Complaint(what, line, kind))

    def text(self, items: dict[str, Entry], name: str, where: str) -> str:
        """A field that is a string, empty where it is absent; a number is taken as its digits, with a complaint."""
        entry = items.get(name)
        if entry is None:
            return ""
        if not isinstance(entry.value, str):
            self.complain(f"{where}: {name} must be a string, got {entry.kind}", entry.line, "type")
            return "" if isinstance(entry.value, (dict, list, bool)) or entry.value is None else f"{entry.value}"
        return entry.value.strip()

    def number(self, items: dict[str, Entry], name: str, where: str) -> int | None:
        """A field that is a whole number, written as the version writes numbers; None where it is absent or none."""
        entry = items.get(name)
        if entry is None:
            return None
        value = entry.value
        if isinstance(value, bool) or not isinstance(value, (str, int)) or (isinstance(value, str) and not _WHOLE.fullmatch(value.strip())):
            self.complain(f"{where}: {name} must be a whole number, got {entry.kind}", entry.line, "number")
            return None
        if isinstance(value, str) == self.numbers:
            wanted, version = ("a number", "2.0") if self.numbers else ("a string", "1.0 and 1.2")
            self.complain(f"{where}: {name} must be {wanted} in version {version}, got {entry.kind}", entry.line, "type")
        return int(value)

    def count(self, items: dict[str, Entry], name: str) -> int | None:
        return self.number(items, name, "the table")

    def array(self, items: dict[str, Entry], name: str, where: str, line: int = 0) -> list[Entry]:
        """The objects of a field that is an array; anything else in it is complained of."""
        entry = items.get(name)
        if entry is None:
            self.complain(f"{where}: {name} must be there", line, "missing")
            return []
        if not isinstance(entry.value, list):
            self.complain(f"{where}: {name} must be an array, got {entry.kind}", entry.line, "type")
            return []
        for one in entry.value:
            if not isinstance(one.value, dict):
                self.complain(f"{where}: {name} must hold objects, got {one.kind}", one.line, "type")
        return [one for one in entry.value if isinstance(one.value, dict)]


_WHOLE = re.compile(r"-?[0-9]{1,18}")


def _form(top: dict[str, Entry], reader: _Reader) -> str:
    if "rank_list" in top:
        return "2.0"
    if "group_list" in top:
        return "groups"
    version = top.get("version")
    if "server_list" in top:
        return "1.2" if version is not None and version.value == "1.2" else "1.0"
    names = ", ".join(list(top)[:8]) or "nothing"
    reader.complain(f"a rank table must have server_list, rank_list or group_list, got {quoted(names, 120)}", 0, "shape")
    return ""


def _servers(top: dict[str, Entry], reader: _Reader) -> tuple[RankServer, ...]:
    """Versions 1.0 and 1.2, and the file that Kubernetes' operator writes."""
    found = []
    for index, entry in enumerate(reader.array(top, "server_list", "the table")):
        items = entry.items
        name = reader.text(items, "server_id", f"server {index}")
        where = f"server {name or index}"
        devices = tuple(_device(one, reader, where) for one in reader.array(items, "device", where, entry.line))
        others = {key: f"{one.value}" for key, one in items.items() if key not in _SERVER and not isinstance(one.value, (dict, list))}
        found.append(
            RankServer(name, devices, reader.text(items, "host_ip", where), reader.text(items, "container_ip", where), others, entry.line)
        )
    return tuple(found)


_SERVER = {"server_id", "device", "devices", "host_ip", "container_ip"}


def _device(entry: Entry, reader: _Reader, where: str) -> RankDevice:
    items = entry.items
    shown = [f"{items[name].value}" if name in items else "?" for name in ("device_id", "rank_id")]
    where = f"{where}, device {shown[0][:20]} (rank {shown[1][:20]})"
    for name in ("device_id", "rank_id"):
        if name not in items:
            reader.complain(f"{where}: {name} must be there", entry.line, "missing")
    return RankDevice(
        rank=reader.number(items, "rank_id", where),
        device_id=reader.number(items, "device_id", where),
        device_ip=reader.text(items, "device_ip", where),
        device_port=reader.number(items, "device_port", where),
        backup_ip=reader.text(items, "backup_device_ip", where),
        backup_port=reader.number(items, "backup_device_port", where),
        host_port=reader.number(items, "host_port", where),
        super_device_id=reader.number(items, "super_device_id", where),
        line=entry.line,
    )


def _groups(top: dict[str, Entry], reader: _Reader) -> tuple[RankServer, ...]:
    """The old template: groups of instances; ranks are counted in its order."""
    found = []
    rank = 0
    for index, group in enumerate(reader.array(top, "group_list", "the table")):
        name = reader.text(group.items, "group_name", f"group {index}") or f"{index}"
        instances = reader.array(group.items, "instance_list", f"group {name}", group.line)
        count = 0
        for instance in instances:
            server = reader.text(instance.items, "server_id", f"group {name}")
            pod = reader.text(instance.items, "pod_name", f"group {name}")
            devices = []
            for entry in reader.array(instance.items, "devices", f"group {name}, server {server}", instance.line):
                where = f"group {name}, server {server}, rank {rank}"
                if "device_id" not in entry.items:
                    reader.complain(f"{where}: device_id must be there", entry.line, "missing")
                number = reader.number(entry.items, "device_id", where)
                devices.append(RankDevice(rank, number, reader.text(entry.items, "device_ip", where), line=entry.line))
                rank += 1
            count += len(devices)
            found.append(RankServer(server, tuple(devices), others={"pod_name": pod, "group_name": name}, line=instance.line))
        for key, got in (("instance_count", len(instances)), ("device_count", count)):
            said = reader.number(group.items, key, f"group {name}")
            if said is not None and said != got:
                reader.complain(f"group {name}: {key} must be {got}, as many as are listed, got {said}", group.items[key].line, "count")
    groups = reader.count(top, "group_count")
    listed = len(top["group_list"].entries)
    if groups is not None and groups != listed:
        reader.complain(f"group_count must be {listed}, as many as group_list has, got {groups}", top["group_count"].line, "count")
    return tuple(found)


def _ranks(top: dict[str, Entry], reader: _Reader) -> tuple[RankServer, ...]:
    """Version 2.0: a flat list of ranks with their networks."""
    devices = []
    for index, entry in enumerate(reader.array(top, "rank_list", "the table")):
        items = entry.items
        rank = items["rank_id"].value if "rank_id" in items else index
        where = f"rank {rank}"[:30]
        for name in ("rank_id", "device_id"):
            if name not in items:
                reader.complain(f"{where}: {name} must be there", entry.line, "missing")
        devices.append(
            RankDevice(
                rank=reader.number(items, "rank_id", where),
                device_id=reader.number(items, "device_id", where),
                device_port=reader.number(items, "device_port", where),
                host_port=reader.number(items, "host_port", where),
                local_id=reader.number(items, "local_id", where),
                addresses=tuple(_addresses(entry, reader, where)),
                line=entry.line,
            )
        )
    return (RankServer("", tuple(devices), line=top["rank_list"].line),)


def _addresses(rank: Entry, reader: _Reader, where: str) -> list[RankAddress]:
    found = []
    for level in reader.array(rank.items, "level_list", where, rank.line):
        layer = reader.number(level.items, "net_layer", where)
        within = f"{where}, layer {'?' if layer is None else layer}"
        network = reader.text(level.items, "net_instance_id", within)
        for one in reader.array(level.items, "rank_addr_list", within, level.line):
            kind, address = reader.text(one.items, "addr_type", within), reader.text(one.items, "addr", within)
            ports = tuple(f"{port.value}" for port in one.items["ports"].entries) if "ports" in one.items else ()
            found.append(RankAddress(layer, network, kind, address, ports, reader.text(one.items, "plane_id", within), one.line))
    return found


def _super_pod(entry: Entry, reader: _Reader) -> SuperPod:
    name = reader.text(entry.items, "super_pod_id", "super pod")
    servers = reader.array(entry.items, "server_list", f"super pod {name or '?'}", entry.line)
    return SuperPod(name, tuple(reader.text(one.items, "server_id", f"super pod {name}") for one in servers), entry.line)


_SHAPES = {"1.0": _servers, "1.2": _servers, "2.0": _ranks, "groups": _groups}
