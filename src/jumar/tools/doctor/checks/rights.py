"""What a process may do here: capabilities, the device cgroup, privileged containers, folders that cannot be written.

In: a `View`: /proc/self/status, the output "access" (rights.py), docker inspect or a `docker run` line, mounts.  Out: facts.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator

from jumar.device.ascend import (
    Confinement,
    Container,
    device_allowed,
    in_user_namespace,
    parse_confinement,
    parse_device_rules,
    parse_docker_inspect,
    parse_docker_run,
    root_outside,
)
from jumar.tools.doctor.machine import Output
from jumar.tools.doctor.rights import COMMAND, FOLDERS
from jumar.tools.doctor.view import View, fact
from jumar.tools.knowledge import Evidence, Fact

NODES = re.compile(r"davinci\d+|davinci_manager|devmm_svm|hisi_hdc")
MANAGERS = ("davinci_manager", "devmm_svm", "hisi_hdc")
DEVICES_LIST = "/sys/fs/cgroup/devices/devices.list"
ID_MAP = "/proc/self/uid_map"
UNMAPPED = frozenset(("nobody", "nogroup", "65534"))
OVERRIDE = 1  # CAP_DAC_OVERRIDE: root opens files whatever their rights


def containers(v: View) -> Iterator[tuple[Container, Evidence]]:
    """What docker inspect and `docker run` lines ask for, each with its line."""
    for output in v.machine.output("docker", "nerdctl", "podman"):
        text = output.text.text
        for container in parse_docker_inspect(text) if '"HostConfig"' in text else parse_docker_run(text):
            yield container, _line(output, container)


def _line(output: Output, container: Container) -> Evidence:
    lines = output.text.text.split("\n")
    if container.source == "inspect":  # its devices say what is mapped, its first line is a bracket
        here = range(max(container.line, 1) - 1, len(lines))
        places = (next((i for i in here if re.search(words, lines[i])), None) for words in (r"/dev/davinci", r'"Devices"', r'"HostConfig"'))
        at = next((i for i in places if i is not None), None)
        if at is not None:
            return Evidence(output.text.source, output.text.first_line + at, lines[at].strip()[:300])
    shown = lines[container.line - 1].strip()[:300] if 0 < container.line <= len(lines) else container.image
    return Evidence(output.text.source, output.text.first_line + max(container.line, 1) - 1, shown)


def capabilities(v: View) -> tuple[int, Evidence] | None:
    """The effective capabilities as bits, with their line."""
    text = v.machine.file("/proc/self/status")
    place = text.find(r"^CapEff:\s*[0-9a-fA-F]{8,16}\s*$") if text else None
    return (int(place.text.split()[1], 16), place) if place else None


def device_refused(v: View) -> list[Fact]:
    """A node that is there, with rights that would do, but which the container's device cgroup keeps closed."""
    for output in v.machine.output(COMMAND):
        refused = [
            (row[1], place) for line, place in output.text.lines() if (row := re.match(r"(/dev/\S+) rw: Operation not permitted", line))
        ]
        if refused:
            return [_refused([node for node, _ in refused], [p for _, p in refused[:3]])]
    for container, place in containers(v):
        mapped = {d.container for d in container.devices}
        bound = [m.target for m in container.mounts if re.fullmatch(r"/dev(?:/(?:davinci\w*|devmm_svm|hisi_hdc))?/?", m.target)]
        if bound and not container.privileged and not container.cgroup_rules and not any("davinci" in d for d in mapped):
            nodes = [b for b in bound if b.rstrip("/") != "/dev"]
            return [_refused(nodes or ["/dev/davinci0", *(f"/dev/{n}" for n in MANAGERS)], [place])]
    return _not_listed(v)


def _refused(nodes: list[str], places: list[Evidence]) -> Fact:
    options = " ".join(f"--device={node}" for node in nodes)
    return fact("device-cgroup-refuses", [*places], node=nodes[0], count=len(nodes), options=options)


def _not_listed(v: View) -> list[Fact]:
    """Nodes whose numbers the list of cgroup v1 does not hold."""
    listing, text = v.machine.listings.get("/dev"), v.machine.file(DEVICES_LIST)
    rules = parse_device_rules(text.text) if text else ()
    if listing is None or text is None or not rules or not v.inside:
        return []
    closed = [e for e in listing.entries if NODES.fullmatch(e.name) and e.device and not device_allowed(rules, *e.device)]
    return [_refused([f"/dev/{e.name}" for e in closed], [closed[0].evidence, text.at(0)])] if closed else []


def foreign_owner(v: View) -> list[Fact]:
    """A user namespace (rootless, userns-remap) does not know the nodes' owner: capabilities do not count for them, nor does any group."""
    ids, listing = v.machine.file(ID_MAP), v.machine.listings.get("/dev")
    outside = root_outside(ids.text) if ids else None
    if ids is None or listing is None or not in_user_namespace(ids.text):
        return []
    for entry in listing.entries:
        if NODES.fullmatch(entry.name) and {entry.owner, entry.group} & UNMAPPED and entry.mode and "rw" not in entry.mode[7:10]:
            values = {"node": f"/dev/{entry.name}", "mode": entry.mode, "root": "" if outside is None else outside}
            return [fact("user-namespace-hides-owner", [entry.evidence, ids.at(0)], **values)]
    return []


def threads_refused(v: View) -> list[Fact]:
    """An old seccomp profile answers clone3 with EPERM: glibc 2.34 and later then start no thread."""
    for output in v.machine.output(COMMAND):
        place = output.text.find(r"^clone3: Operation not permitted")
        if place:
            status = v.machine.file("/proc/self/status")
            glibc = v.machine.identity.glibc
            return [
                fact("seccomp-refuses-threads", [place, status.find(r"^Seccomp:") if status else None], glibc=glibc.value if glibc else "")
            ]
    return []


def confinement(v: View) -> tuple[str, Evidence | None]:
    """What holds a container's processes, in short words, and the line that tells of seccomp; empty where nothing does."""
    status, ids = v.machine.file("/proc/self/status"), v.machine.file(ID_MAP)
    told = parse_confinement(status.text) if status else Confinement()
    words = [f"seccomp {told.seccomp}"] if told.seccomp else []
    words += ["no new privileges"] if told.no_new_privileges else []
    if ids and in_user_namespace(ids.text):
        outside = root_outside(ids.text)
        words.append("user namespace" + (f" (root is {outside} outside)" if outside is not None else ""))
    if v.machine.file(DEVICES_LIST):
        words.append("device cgroup v1")
    elif _second_cgroup(v):
        asked = any(output.text.find(r"^/dev/\S+ rw:") for output in v.machine.output(COMMAND))
        words.append("device cgroup v2" + ("" if asked else " (eBPF: no file shows its list, only a run of jumar doctor inside tells)"))
    return ", ".join(words), status.find(r"^Seccomp:") if status else None


def _second_cgroup(v: View) -> bool:
    mounts = v.machine.file("/proc/self/mountinfo")
    return "/sys/fs/cgroup/cgroup.controllers" in v.machine.files or bool(mounts and mounts.find(r" /sys/fs/cgroup \S+ .*- cgroup2 "))


def root_without_override(v: View) -> list[Fact]:
    """Root without CAP_DAC_OVERRIDE (cap-drop ALL) counts as any other user before a node of 0660."""
    held, user, listing = capabilities(v), v.machine.identity.user, v.machine.listings.get("/dev")
    if held is None or user is None or user.value != "root" or listing is None or held[0] >> OVERRIDE & 1:
        return []
    groups = v.machine.identity.groups.value.split() if v.machine.identity.groups else []
    for entry in listing.entries:
        closed = entry.owner != "root" and "rw" not in entry.mode[7:10] and not (entry.group in groups and "rw" in entry.mode[4:7])
        if NODES.fullmatch(entry.name) and entry.mode and closed:
            return [fact("root-without-override", [held[1], entry.evidence], node=f"/dev/{entry.name}", group=entry.group, mode=entry.mode)]
    return []


def privileged(v: View) -> list[Fact]:
    """Cards were chosen for a container, but --privileged gives it all of them."""
    for container, place in containers(v):
        chosen = ", ".join(f"davinci{n}" for n in container.device_ids) or (container.visible or "")
        if container.privileged and chosen and chosen != "all":
            return [fact("container-privileged-needless", [place], cards=chosen)]
    return []


def folders(v: View) -> list[Fact]:
    """A folder that caches, logs or temporary files need cannot be written."""
    needed = [name for name in FOLDERS if name != "HOME" or not _home_unused(v)]
    for output in v.machine.output(COMMAND):
        for line, place in output.text.lines():
            row = re.match(r"(\w+) (/\S*) w: (?!ok)(.+)", line)
            if row and row[1] in needed:
                return _unwritable(v, row[1], row[2], row[3].strip(), place)
    if not v.machine.output(COMMAND):
        for name, seen in v.variables(*needed):
            mount = _read_only_mount(v, seen.value) if seen.value.startswith("/") else None
            if mount:
                return _unwritable(v, name, seen.value, "Read-only file system", mount)
    for container, place in containers(v):
        if container.read_only and not (set(container.environment) & {"ASCEND_CACHE_PATH", "ASCEND_WORK_PATH", "ASCEND_PROCESS_LOG_PATH"}):
            return _unwritable(v, "HOME", "/", "Read-only file system", place)
    return []


def _unwritable(v: View, name: str, path: str, why: str, place: Evidence) -> list[Fact]:
    return [fact("work-folder-unwritable", [place], variable=name, path=path, why=why)] if v.ascend else []


def _home_unused(v: View) -> bool:
    """Caches and logs were both put elsewhere."""
    m = v.machine
    return bool(m.variable("ASCEND_WORK_PATH") or (m.variable("ASCEND_CACHE_PATH") and m.variable("ASCEND_PROCESS_LOG_PATH")))


def _read_only_mount(v: View, path: str) -> Evidence | None:
    """The line of the mount that a path lies on, where it is read-only."""
    best: tuple[int, Evidence, bool] | None = None
    texts = [text for p in ("/proc/self/mountinfo", "/proc/mounts") if (text := v.machine.file(p))]
    for text in (*texts, *(o.text for o in v.machine.output("mount"))):
        for line, place in text.lines():
            row = (
                re.match(r"\d+ \d+ \d+:\d+ \S+ (?P<at>/\S*) (?P<options>\S+)", line)
                or re.match(r"\S+ on (?P<at>/\S*) type \S+ \((?P<options>[^)]*)\)", line)
                or re.match(r"\S+ (?P<at>/\S*) \w\S* (?P<options>r[ow]\S*) \d \d$", line)
            )
            if (
                row
                and posixpath.commonpath([row["at"], path]) == row["at"].rstrip("/").ljust(1, "/")
                and (not best or len(row["at"]) >= best[0])
            ):
                best = (len(row["at"]), place, "ro" in row["options"].split(","))
    return best[1] if best and best[2] else None


CHECKS: tuple[Callable[[View], list[Fact]], ...] = (
    device_refused,
    foreign_owner,
    root_without_override,
    threads_refused,
    privileged,
    folders,
)
