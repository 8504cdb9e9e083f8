"""Device nodes, and what a container must be given of its host: nodes, driver libraries, npu-smi, version files, visible devices.

In: a `View`.  Out: facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from jumar.device.ascend import Container, check_container, visible_ids
from jumar.tools.doctor.checks.rights import MANAGERS, containers
from jumar.tools.doctor.machine import Entry
from jumar.tools.doctor.view import View, fact
from jumar.tools.knowledge import Evidence, Fact

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
    if not v.inside:
        return [fact("device-nodes-missing", [_place(listing.evidence, listing.source, text)], nodes=text)] if v.driver_version else []
    place = _place(listing.evidence, listing.source, text)
    container = v.machine.identity.container
    return [fact("container-nodes-missing", [place, container.evidence if container else None], nodes=text)]


def _place(evidence: Evidence, source: str, names: str) -> Evidence:
    """The line that says so, or, where a listing says so by what it lacks, the listing."""
    return evidence if evidence.text else Evidence(source, 0, f"not there: {names}")


def run_line(v: View) -> list[Fact]:
    """A `docker run` line, or what docker inspect shows, that maps too little for an NPU."""
    for container, place in containers(v):
        if not _for_npu(container):
            continue
        wrong = check_container(container)
        lacking = ["/dev/davinci0" if w.what.startswith("a chip") else w.what.split()[0] for w in wrong if w.kind == "device"]
        if lacking:
            return [fact("container-nodes-missing", [place], nodes=", ".join(lacking))]
        if any(w.kind == "libraries" for w in wrong):
            return [fact("container-driver-not-mounted", [place], what=_LIB)]
        told = [w.what for w in wrong if w.kind in ("visible", "runtime", "permissions")]
        if told:
            return [fact("container-devices-wrong", [place], what=told[0])]
    return []


def _for_npu(container: Container) -> bool:
    """It was meant to use a card: it maps a node, names devices, mounts the driver, or its image is one of Ascend's."""
    nodes = any("davinci" in d.host or "devmm" in d.host for d in container.devices)
    mounts = any("/Ascend" in m.target or "dcmi" in m.target for m in container.mounts)
    return (
        nodes
        or mounts
        or container.visible is not None
        or bool(re.search(r"ascend|cann|npu|mindie|910b|mindspore", container.image, re.IGNORECASE))
    )


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
            installed = v.machine.file("/etc/ascend_install.info")
            for_all = installed.keys().get("Driver_Install_For_All") if installed else None
            name, places = "device-nodes-permission", [entry.evidence, user.evidence]
            if for_all and for_all.value.lower() == "yes":
                name, places = "device-nodes-closed", [*places, for_all.evidence]
            return [fact(name, places, node=f"/dev/{entry.name}", user=user.value, group=entry.group, mode=entry.mode)]
    return []


def _may(entry: Entry, user: str, groups: list[str]) -> bool:
    owner, group, others = entry.mode[1:4], entry.mode[4:7], entry.mode[7:10]
    if entry.owner == user:
        return "rw" in owner
    return "rw" in others or (entry.group in groups and "rw" in group)


def mounts_missing(v: View) -> list[Fact]:
    """The driver's libraries, npu-smi and version files in a container that has the nodes."""
    m = v.machine
    if not v.inside or not v.devices:
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
    if "/driver/lib64" in m.variable("LD_LIBRARY_PATH") or any("driver/lib64" in t.text for _, t in m.glob("/etc/ld.so.conf*")):
        return []
    if not m.whole and not m.glob("/etc/ld.so.conf*"):
        return []
    path = m.environment.get("LD_LIBRARY_PATH")
    return [fact("driver-libraries-hidden", [path.evidence if path else Evidence("environment", 0, "LD_LIBRARY_PATH is not set")])]


def visible_devices(v: View) -> list[Fact]:
    """ASCEND_RT_VISIBLE_DEVICES and DEVICE_ID that name cards which are not there."""
    # a table of npu-smi that was pasted may have been cut, unless that of processes follows it
    shown = [s for s in v.smi if v.machine.whole or re.search(r"(?i)\bprocess id\b|no running process", s.text.text)]
    count = len(v.devices) or len({(n.npu, n.chip) for s in shown for n in s.read.npus})
    if not count:
        return []
    for name, seen in v.variables("ASCEND_RT_VISIBLE_DEVICES", "ASCEND_DEVICE_ID", "DEVICE_ID"):
        asked = [int(n) for n in re.findall(r"\d{1,4}", re.sub(r"\s", "", seen.value))] if re.fullmatch(r"[\d,\s-]+", seen.value) else []
        known = set(range(count)) | (set(v.devices) if name != "ASCEND_RT_VISIBLE_DEVICES" else set())
        beyond = [n for n in asked if n not in known]
        if beyond:
            return [fact("visible-device-absent", [seen.evidence], variable=name, value=seen.value, count=count, last=count - 1)]
    asked_seen = v.machine.environment.get("ASCEND_VISIBLE_DEVICES")
    if asked_seen and v.inside and v.devices and re.fullmatch(r"[\d,-]+", asked_seen.value):
        asked_for = set(visible_ids(asked_seen.value) or ())
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


CHECKS: tuple[Callable[[View], list[Fact]], ...] = (
    nodes_missing,
    run_line,
    permission,
    mounts_missing,
    driver_libraries_hidden,
    visible_devices,
)
