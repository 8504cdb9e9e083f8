"""Device nodes, and what a container must be given of its host: nodes, driver libraries, npu-smi, version files, visible devices.

In: a `View`.  Out: facts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

from jumar.tools.doctor.machine import Entry, Output
from jumar.tools.doctor.view import View, fact
from jumar.tools.knowledge import Evidence, Fact

MANAGERS = ("davinci_manager", "devmm_svm", "hisi_hdc")
_NEWER = {"devmm_svm": "asdrv_svm"}  # of the driver's new kernel interface
_LIB = "/usr/local/Ascend/driver/lib64"


def nodes_missing(v: View) -> list[Fact]:
    """Nodes of /dev that a process needs to reach a card."""
    listing = v.machine.listings.get("/dev")
    if listing is None or not v.ascend:
        return []
    lacking = [n for n in MANAGERS if listing.lacks(n) and not (n in _NEWER and _NEWER[n] in listing.names())]
    no_card = listing.lacks("davinci0") and not v.devices and any(p in listing.asked for p in ("*", "davinci*", "davinci[0-9]*"))
    if not lacking and not no_card:
        return []
    names = [*(["davinci0 ..."] if no_card else []), *lacking]
    text = ", ".join(f"/dev/{n}" for n in names)
    if not v.machine.in_container:
        return [fact("device-nodes-missing", [_place(listing.evidence, listing.source, text)], nodes=text)] if v.driver_version else []
    place = _place(listing.evidence, listing.source, text)
    container = v.machine.identity.container
    return [fact("container-nodes-missing", [place, container.evidence if container else None], nodes=text)]


def _place(evidence: Evidence, source: str, names: str) -> Evidence:
    """The line that says so, or, where a listing says so by what it lacks, the listing."""
    return evidence if evidence.text else Evidence(source, 0, f"not there: {names}")


def run_line(v: View) -> list[Fact]:
    """A `docker run` line, or what docker inspect shows, that maps too little."""
    for output in _docker(v):
        mapped = set(re.findall(r"/dev/(davinci\d+|davinci_manager|devmm_svm|hisi_hdc|asdrv_svm)\b", output.text.text))
        text = output.text.text
        by_runtime = re.search(
            r"ASCEND_VISIBLE_DEVICES|--runtime[= ]ascend|\"Runtime\"\s*:\s*\"ascend|--privileged|\"Privileged\"\s*:\s*true|-v\s+/dev:/dev",
            text,
        )
        if by_runtime or not re.search(r"ascend|davinci|npu|/usr/local/dcmi|cann", text, re.IGNORECASE):
            continue
        lacking = [n for n in MANAGERS if n not in mapped and not (n == "devmm_svm" and "asdrv_svm" in mapped)]
        if not any(re.fullmatch(r"davinci\d+", n) for n in mapped):
            lacking.insert(0, "davinci0 ...")
        if lacking:
            nodes = ", ".join(f"/dev/{n}" for n in lacking)
            place = output.text.find(r"docker\s+run|nerdctl\s+run|podman\s+run|\"Devices\"") or output.text.at(0)
            return [fact("container-nodes-missing", [place], nodes=nodes)]
        if not re.search(r"/usr/local/Ascend/driver", text):
            return [fact("container-driver-not-mounted", [output.text.at(0)], what="/usr/local/Ascend/driver")]
    return []


def _docker(v: View) -> Iterator[Output]:
    for output in v.machine.output("docker", "nerdctl", "podman"):
        if output.command.startswith(("docker-inspect", "docker inspect")) and not _is_json(output.text.text):
            continue
        yield output


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), (list, dict))
    except ValueError:
        return False


def permission(v: View) -> list[Fact]:
    """A user who may not open the nodes: neither owner, nor in the group, nor open to all."""
    listing, user = v.machine.listings.get("/dev"), v.machine.identity.user
    if listing is None or user is None or user.value == "root":
        return []
    groups = v.machine.identity.groups.value.split() if v.machine.identity.groups else []
    for entry in listing.entries:
        if (
            re.fullmatch(r"davinci\d+|davinci_manager|devmm_svm|hisi_hdc", entry.name)
            and entry.mode
            and not _may(entry, user.value, groups)
        ):
            places = [entry.evidence, user.evidence]
            return [fact("device-nodes-permission", places, node=f"/dev/{entry.name}", user=user.value, group=entry.group, mode=entry.mode)]
    return []


def _may(entry: Entry, user: str, groups: list[str]) -> bool:
    owner, group, others = entry.mode[1:4], entry.mode[4:7], entry.mode[7:10]
    if entry.owner == user:
        return "rw" in owner
    return "rw" in others or (entry.group in groups and "rw" in group)


def mounts_missing(v: View) -> list[Fact]:
    """The driver's libraries, npu-smi and version files in a container that has the nodes."""
    m = v.machine
    if not m.in_container or not v.devices:
        return []
    lacking = [p for p in (_LIB, "/usr/local/Ascend/driver/version.info", "/etc/ascend_install.info") if m.has(p) is False]
    if m.has("/usr/local/Ascend/driver") is False or _LIB in lacking:
        return [fact("container-driver-not-mounted", [_absent(v, _LIB)], what=_LIB)]
    if m.has("/usr/local/bin/npu-smi") is False and m.has("/usr/local/sbin/npu-smi") is False and not v.smi:
        lacking.append("/usr/local/bin/npu-smi")
    return [fact("container-files-not-mounted", [_absent(v, lacking[0])], what=", ".join(lacking))] if lacking else []


def _absent(v: View, path: str) -> Evidence:
    folder = path.rpartition("/")[0]
    listing = v.machine.listings.get(folder)
    return listing.evidence if listing and listing.evidence.text else Evidence(folder, 0, f"not there: {path}")


def driver_libraries_hidden(v: View) -> list[Fact]:
    """The driver's lib64 is there, but neither LD_LIBRARY_PATH nor the linker's configuration names it."""
    m = v.machine
    if not m.environment or not m.has(_LIB) or not v.driver:
        return []
    if "/driver/lib64" in m.variable("LD_LIBRARY_PATH") or any("driver/lib64" in t.text for _, t in m.glob("/etc/ld.so.conf.d/*")):
        return []
    if not m.whole and not m.glob("/etc/ld.so.conf.d/*"):
        return []
    path = m.environment.get("LD_LIBRARY_PATH")
    return [fact("driver-libraries-hidden", [path.evidence if path else Evidence("environment", 0, "LD_LIBRARY_PATH is not set")])]


def visible_devices(v: View) -> list[Fact]:
    """ASCEND_RT_VISIBLE_DEVICES and DEVICE_ID that name cards which are not there."""
    count = len(v.devices) or len({(n.npu, n.chip) for s in v.smi for n in s.read.npus})
    if not count:
        return []
    for name, seen in v.variables("ASCEND_RT_VISIBLE_DEVICES", "ASCEND_DEVICE_ID", "DEVICE_ID"):
        asked = [int(n) for n in re.findall(r"\d+", re.sub(r"\s", "", seen.value))] if re.fullmatch(r"[\d,\s-]+", seen.value) else []
        known = set(range(count)) | (set(v.devices) if name != "ASCEND_RT_VISIBLE_DEVICES" else set())
        beyond = [n for n in asked if n not in known]
        if beyond:
            return [fact("visible-device-absent", [seen.evidence], variable=name, value=seen.value, count=count, last=count - 1)]
    asked_seen = v.machine.environment.get("ASCEND_VISIBLE_DEVICES")
    if asked_seen and v.machine.in_container and v.devices and re.fullmatch(r"[\d,-]+", asked_seen.value):
        asked_for = _numbers(asked_seen.value)
        if not asked_for <= set(v.devices):
            text = ", ".join(f"davinci{n}" for n in v.devices)
            return [
                fact(
                    "visible-device-absent",
                    [asked_seen.evidence],
                    variable="ASCEND_VISIBLE_DEVICES",
                    value=asked_seen.value,
                    count=count,
                    there=f" ({text})",
                )
            ]
    return []


def _numbers(text: str) -> set[int]:
    """`0-3,6` as numbers.

    >>> sorted(_numbers("0-2,6"))
    [0, 1, 2, 6]
    """
    found: set[int] = set()
    for part in text.split(","):
        low, _, high = part.partition("-")
        if low.isdigit():
            last = int(high) if high.isdigit() else int(low)
            found |= set(range(int(low), min(last, int(low) + 1024) + 1))
    return found


CHECKS: tuple[Callable[[View], list[Fact]], ...] = (
    nodes_missing,
    run_line,
    permission,
    mounts_missing,
    driver_libraries_hidden,
    visible_devices,
)
