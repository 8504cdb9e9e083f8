"""Containers: what `docker inspect` and a `docker run` line say is mapped, what an NPU still needs, and whether this is a container at all.

In: these texts, and /proc/self/cgroup.  Out: `Container`, `Inside`; complaints of `check_container` name each node, library and
option that is missing.  Facts: hicann/driver (device nodes), the CANN install guide (containers), Ascend Docker Runtime.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from jumar.device.ascend.complaint import Complaint, plain_lines, quoted
from jumar.device.ascend.device_nodes import visible_ids
from jumar.device.ascend.json_lines import Entry, read_json

MANAGER, MEMORY, HDC = "/dev/davinci_manager", ("/dev/devmm_svm", "/dev/asdrv_svm", "/dev/svm0"), "/dev/hisi_hdc"
LIBRARIES = "/usr/local/Ascend/driver/lib64"


@dataclass(frozen=True)
class DeviceMap:
    """A node of the host that the container gets."""

    host: str
    container: str
    permissions: str = "rwm"


@dataclass(frozen=True)
class Mount:
    """A folder or file of the host in the container."""

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True)
class Container:
    """One container as it was asked for, or as it is.   source: `inspect` or `run`; visible: what ASCEND_VISIBLE_DEVICES holds, None where it
    is not set; environment: the names that concern Ascend, with their values; cgroup_rules: device nodes that are opened to it beyond those mapped;
    read_only: its root file system; complaints: what was not understood.
    """

    source: str
    image: str = ""
    name: str = ""
    devices: tuple[DeviceMap, ...] = ()
    mounts: tuple[Mount, ...] = ()
    privileged: bool = False
    capabilities: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    user: str = ""
    runtime: str = ""
    network: str = ""
    ipc: str = ""
    shm_size: str = ""
    visible: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    cgroup_rules: tuple[str, ...] = ()
    read_only: bool = False
    running: bool | None = None
    line: int = 0
    complaints: tuple[Complaint, ...] = ()

    @property
    def device_ids(self) -> tuple[int, ...]:
        """Ids of the chips that are mapped by name, in order."""
        found = (re.fullmatch(r"/dev/davinci([0-9]{1,3})", one.host) for one in self.devices)
        return tuple(sorted({int(one[1]) for one in found if one}))

    def mounted(self, path: str) -> bool:
        """Whether that path of the container comes from the host."""
        return any(path == one.target.rstrip("/") or path.startswith(one.target.rstrip("/") + "/") for one in self.mounts)

    def maps(self, node: str) -> bool:
        """Whether that device node is there."""
        return self.privileged or any(one.container == node for one in self.devices) or self.mounted(node)


@dataclass(frozen=True)
class Inside:
    """Whether a process is in a container.   kind: `docker`, `kubernetes`, `containerd`, `podman`, `isula`, `lxc`, `container` or empty."""

    kind: str = ""
    evidence: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.kind)


# ---- docker run

_RUN = re.compile(r"\b(?:docker|nerdctl|podman|isula)\s+(?:container\s+)?(?:run|create)\b")
_FLAGS = {  # options that take no value
    "--rm", "--privileged", "--init", "--detach", "--interactive", "--tty", "--publish-all", "--read-only", "--no-healthcheck",
    "--oom-kill-disable", "--sig-proxy", "--disable-content-trust", "--quiet", "--no-hosts", "--replace",
}  # fmt: skip
_SHORT_FLAGS = set("itdPq")
_NAMES = {
    "v": "volume", "e": "env", "u": "user", "w": "workdir", "h": "hostname", "p": "publish", "m": "memory", "l": "label", "a": "attach",
    "c": "cpu-shares", "net": "network",
}  # fmt: skip
_END = {";", "&&", "||", "|", "&", ">", "2>&1", "<"}


def parse_docker_run(text: str) -> tuple[Container, ...]:
    """Every `docker run` (or nerdctl, podman, isula) command of a text, over lines that a backslash continues.

    >>> one = parse_docker_run("docker run -it --device=/dev/davinci0 -v /usr/local/dcmi:/usr/local/dcmi:ro -e ASCEND_VISIBLE_DEVICES=0 img:1 bash")[0]
    >>> one.device_ids, one.mounts[0].read_only, one.visible, one.image, one.command
    ((0,), True, '0', 'img:1', ('bash',))
    """
    found = []
    for at, line in _joined(plain_lines(text)):
        start = _RUN.search(line)
        if start is not None:
            found.append(_run(line[start.end() :], at))
    return tuple(found)


def _joined(lines: list[str]) -> list[tuple[int, str]]:
    """Lines with those that a backslash continues, each with where it begins; comments between are passed over."""
    found: list[tuple[int, str]] = []
    parts: list[str] = []
    begin = 0
    for at, line in enumerate(lines, 1):
        if parts and line.lstrip().startswith("#"):
            continue
        begin = begin if parts else at
        if line.endswith("\\") and len(parts) < 500:
            parts.append(line[:-1])
            continue
        found.append((begin, " ".join([*parts, line])))
        parts = []
    if parts:
        found.append((begin, " ".join(parts)))
    return found


def _words(command: str, at: int, complaints: list[Complaint]) -> list[str]:
    """The words of a command as a shell splits them; quotes that do not close are taken as they are, with a complaint."""
    try:
        words = shlex.split(command[:100_000], comments=True)
    except ValueError as error:
        complaints.append(Complaint(f"docker run: quotes must close, got {quoted(command)} ({error})", at, "quotes"))
        words = command.split()
    end = next((i for i, word in enumerate(words) if word in _END), len(words))
    return words[:end]


def _run(text: str, at: int) -> Container:
    options: list[tuple[str, str]] = []
    complaints: list[Complaint] = []
    words = _words(text, at, complaints)
    i = 0
    while i < len(words):
        word = words[i]
        if word == "--":
            i += 1
            break
        if not word.startswith("-") or word == "-":
            break
        i += 1
        name, equals, value = word.partition("=")
        if name in _FLAGS:
            options.append((name[2:], value or "true"))
        elif not name.startswith("--") and set(name[1:]) <= _SHORT_FLAGS and name[1:]:
            continue
        else:
            if not equals and not name.startswith("--") and len(name) > 2 and name[1] in _NAMES and name[1:] not in _NAMES:
                name, value = name[:2], name[2:]  # -v/a:/b
            elif not equals:
                if i >= len(words):
                    complaints.append(Complaint(f"docker run: {name} must have a value, the command ends", at, "option"))
                    break
                value = words[i]
                i += 1
            key = name.lstrip("-")
            options.append((_NAMES.get(key, key), value))
    image = words[i] if i < len(words) else ""
    if not image:
        complaints.append(Complaint("docker run: an image must follow the options, the command ends", at, "image"))
    return _from_options(options, image, tuple(words[i + 1 :]), at, complaints)


def _from_options(options: list[tuple[str, str]], image: str, command: tuple[str, ...], at: int, complaints: list[Complaint]) -> Container:
    def all_of(name: str) -> list[str]:
        return [value for key, value in options if key == name]

    def last(name: str) -> str:
        return next(reversed(all_of(name)), "")

    mounts = [_volume(value) for value in all_of("volume")] + [_mount(value) for value in all_of("mount")]
    environment = dict(value.split("=", 1) for value in all_of("env") if "=" in value)
    return Container(
        source="run",
        image=image,
        name=last("name"),
        devices=tuple(_device(value) for value in all_of("device")),
        mounts=tuple(one for one in mounts if one is not None),
        privileged=last("privileged").lower() == "true",
        capabilities=_capabilities(all_of("cap-add")),
        dropped=_capabilities(all_of("cap-drop")),
        groups=tuple(all_of("group-add")),
        user=last("user"),
        runtime=last("runtime"),
        network=last("network"),
        ipc=last("ipc"),
        shm_size=last("shm-size"),
        visible=environment.get("ASCEND_VISIBLE_DEVICES"),
        environment=_concerning(environment),
        command=command,
        cgroup_rules=tuple(all_of("device-cgroup-rule")),
        read_only=last("read-only").lower() == "true",
        line=at,
        complaints=tuple(complaints),
    )


def _device(text: str) -> DeviceMap:
    parts = text.split(":")
    target = parts[1] if len(parts) > 1 and parts[1].startswith("/") else parts[0]
    return DeviceMap(parts[0], target, parts[-1] if len(parts) > 1 and not parts[-1].startswith("/") else "rwm")


def _volume(text: str) -> Mount | None:
    parts = text.split(":")
    if len(parts) < 2:
        return None
    return Mount(parts[0], parts[1], "ro" in parts[2].split(",") if len(parts) > 2 else False)


def _mount(text: str) -> Mount | None:
    parts = dict(part.partition("=")[::2] for part in text.split(","))
    target = parts.get("target") or parts.get("dst") or parts.get("destination") or ""
    if not target:
        return None
    return Mount(parts.get("source") or parts.get("src") or "", target, "readonly" in parts or "ro" in parts)


def _capabilities(names: list[str]) -> tuple[str, ...]:
    return tuple(name.upper().removeprefix("CAP_") for name in names)


def _concerning(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that concern Ascend; others are the user's own."""
    wanted = ("ASCEND", "HCCL", "NPU", "RANK", "DEVICE_ID", "LD_LIBRARY_PATH", "PYTHONPATH", "MS_", "TASK_QUEUE", "PYTORCH_NPU")
    return {name: value for name, value in environment.items() if name.startswith(wanted)}


# ---- docker inspect


def parse_docker_inspect(text: str) -> tuple[Container, ...]:
    """The containers of `docker inspect`; a text that is none gives one container with complaints only."""
    start = min((at for at in (text.find("["), text.find("{")) if at >= 0), default=0)
    entry, complaints = read_json(re.sub(r"[^\n]", " ", text[:start]) + text[start:])  # a prompt may stand before
    entries = [] if entry is None else entry.entries if isinstance(entry.value, list) else [entry]
    found = [_inspected(one) for one in entries if isinstance(one.value, dict)]
    if not found:
        if entry is not None and not complaints:
            complaints = (Complaint(f"docker inspect: it must be an array of objects, got {entry.kind}", entry.line, "shape"),)
        return (Container("inspect", complaints=complaints),)
    return (_with(found[0], complaints), *found[1:]) if complaints else tuple(found)


def _with(container: Container, complaints: tuple[Complaint, ...]) -> Container:
    return replace(container, complaints=(*complaints, *container.complaints))


def _inspected(entry: Entry) -> Container:
    items = entry.items
    host, config = _part(items, "HostConfig"), _part(items, "Config")
    complaints = []
    if not host or not config:
        missing = " and ".join(name for name, part in (("HostConfig", host), ("Config", config)) if not part)
        complaints.append(Complaint(f"docker inspect: {missing} must be there", entry.line, "shape"))
    devices = [
        DeviceMap(_text(one.items, "PathOnHost"), _text(one.items, "PathInContainer"), _text(one.items, "CgroupPermissions") or "rwm")
        for one in _list(host, "Devices")
    ]
    mounts = [
        Mount(_text(one.items, "Source"), _text(one.items, "Destination"), "RW" in one.items and one.items["RW"].value is False)
        for one in _list(items, "Mounts")
    ]
    binds = [_volume(f"{one.value}") for one in _list(host, "Binds") if isinstance(one.value, str)]
    known = {one.target for one in mounts}
    environment = dict(f"{one.value}".split("=", 1) for one in _list(config, "Env") if isinstance(one.value, str) and "=" in one.value)
    running = _part(items, "State").get("Running")
    size = host.get("ShmSize")
    return Container(
        source="inspect",
        image=_text(config, "Image"),
        name=_text(items, "Name").lstrip("/"),
        devices=tuple(devices),
        mounts=(*mounts, *(one for one in binds if one is not None and one.target not in known)),
        privileged="Privileged" in host and host["Privileged"].value is True,
        capabilities=_capabilities(_texts(host, "CapAdd")),
        dropped=_capabilities(_texts(host, "CapDrop")),
        groups=tuple(_texts(host, "GroupAdd")),
        user=_text(config, "User"),
        runtime=_text(host, "Runtime"),
        network=_text(host, "NetworkMode"),
        ipc=_text(host, "IpcMode"),
        shm_size=f"{size.value}" if size is not None and isinstance(size.value, int) else "",
        visible=environment.get("ASCEND_VISIBLE_DEVICES"),
        environment=_concerning(environment),
        command=tuple(_texts(config, "Cmd")),
        cgroup_rules=tuple(_texts(host, "DeviceCgroupRules")),
        read_only="ReadonlyRootfs" in host and host["ReadonlyRootfs"].value is True,
        running=running.value if running is not None and isinstance(running.value, bool) else None,
        line=entry.line,
        complaints=tuple(complaints),
    )


def _part(items: Mapping[str, Entry], name: str) -> dict[str, Entry]:
    return items[name].items if name in items else {}


def _list(items: Mapping[str, Entry], name: str) -> list[Entry]:
    return items[name].entries if name in items else []


def _text(items: Mapping[str, Entry], name: str) -> str:
    value = items[name].value if name in items else ""
    return value if isinstance(value, str) else ""


def _texts(items: Mapping[str, Entry], name: str) -> list[str]:
    return [one.value for one in _list(items, name) if isinstance(one.value, str)]


# ---- judging


def check_container(container: Container) -> tuple[Complaint, ...]:
    """What the container lacks for an NPU: nodes, the driver's libraries, ids that are not mapped.

    With Ascend Docker Runtime (runtime `ascend`, or visible devices set and nothing mapped by hand) the runtime maps nodes and libraries.
    """
    found = list(container.complaints)

    def lacks(what: str, kind: str) -> None:
        found.append(Complaint(what, container.line, kind))

    by_runtime = container.runtime == "ascend" or (
        container.visible not in (None, "") and not container.devices and not container.privileged
    )
    visible = visible_ids(container.visible) if container.visible is not None else ()
    if visible is None and container.visible not in {"all", "void"}:
        lacks(f"ASCEND_VISIBLE_DEVICES must list ids (0,1 or 0-3), got {quoted(container.visible or '')}", "visible")
    if by_runtime:
        if container.runtime == "ascend" and container.visible in (None, ""):
            lacks("ASCEND_VISIBLE_DEVICES must name devices, else the ascend runtime maps none", "visible")
        if container.runtime not in ("", "ascend"):
            lacks(f"runtime must be ascend for ASCEND_VISIBLE_DEVICES to map devices, got {container.runtime}", "runtime")
        return tuple(found)
    bound = any(re.fullmatch(r"/dev(?:/davinci[0-9]{1,3})?", one.target.rstrip("/")) for one in container.mounts)
    if not container.device_ids and not container.privileged and not bound:
        lacks("a chip must be mapped (--device /dev/davinci0), got none", "device")
    if not container.maps(MANAGER):
        lacks(f"{MANAGER} must be mapped", "device")
    if not any(container.maps(node) for node in MEMORY):
        lacks(f"{MEMORY[0]} must be mapped (with new drivers {MEMORY[1]})", "device")
    if not container.maps(HDC) and not container.maps(MEMORY[2]):  # boards with svm0 are their own host
        lacks(f"{HDC} must be mapped", "device")
    if not container.mounted(LIBRARIES):
        lacks(f"{LIBRARIES} must be mounted: the driver's libraries of the host", "libraries")
    mapped = {one.container for one in container.devices}
    for number in visible or ():
        if f"/dev/davinci{number}" not in mapped and not container.privileged:
            lacks(f"ASCEND_VISIBLE_DEVICES names {number}, but /dev/davinci{number} is not mapped", "visible")
    for one in container.devices:
        if one.host.startswith("/dev/davinci") and not {"r", "w"} <= set(one.permissions):
            lacks(f"{one.host} must be mapped to read and write, got {one.permissions}", "permissions")
    return tuple(found)


_KINDS = (
    ("kubernetes", "kubepods"),
    ("docker", "/docker"),
    ("podman", "libpod"),
    ("containerd", "containerd"),
    ("isula", "isula"),
    ("lxc", "/lxc"),
)


def inside_container(
    cgroup: str = "", *, dockerenv: bool = False, environment: Mapping[str, str] | None = None, mounts: str = ""
) -> Inside:
    """Whether these are a container's.   cgroup, mounts: /proc/self/cgroup and mountinfo; dockerenv: /.dockerenv is there.

    >>> inside_container("12:devices:/docker/0123"), bool(inside_container("0::/user.slice"))
    (Inside(kind='docker', evidence=('/proc/self/cgroup: 12:devices:/docker/0123',)), False)
    """
    env = environment or {}
    kinds: list[str] = []
    evidence: list[str] = []
    for kind, word in _KINDS:
        line = next((line for line in plain_lines(cgroup) if word in line and not re.search(r"(?:containerd|docker)\.service", line)), "")
        if line:
            kinds.append(kind)
            evidence.append(f"/proc/self/cgroup: {line[:120]}")
    if env.get("KUBERNETES_SERVICE_HOST"):
        kinds.append("kubernetes")
        evidence.append("KUBERNETES_SERVICE_HOST is set")
    if dockerenv:
        kinds.append("docker")
        evidence.append("/.dockerenv is there")
    if env.get("container"):
        kinds.append({"podman": "podman", "docker": "docker", "lxc": "lxc"}.get(env["container"], "container"))
        evidence.append(f"container={env['container'][:40]} is set")
    root = next((line for line in plain_lines(mounts) if " / / " in line and " overlay " in line), "")
    if root:  # cgroup v2 shows nothing inside, the root file system does
        kinds.append("container")
        evidence.append("/ is an overlay")
    return Inside("kubernetes" if "kubernetes" in kinds else kinds[0] if kinds else "", tuple(evidence))
