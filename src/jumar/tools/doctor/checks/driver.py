"""Driver and firmware: are they there, do they fit each other, does the kernel hold the driver's modules; the cards are in card.py.

In: a `View`.  Out: facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from jumar.device.ascend import Properties, pairings, read_version
from jumar.tools.doctor.machine import Output, Seen
from jumar.tools.doctor.view import Smi, View, fact
from jumar.tools.knowledge import Fact

_LOG = "/var/log/ascend_seclog/ascend_install.log"
_NO_VERDICT = ("", "OK", "UNKNOWN", "NA", "N/A", "NOT SUPPORT", "NOT SUPPORTED", "-")


def driver_missing(v: View) -> list[Fact]:
    """A card or the software for it is there, its driver is not (on a host)."""
    m = v.machine
    if v.inside or v.driver_version or v.devices:
        return []
    cards = [place for o in m.output("lspci") for line, place in o.text.lines() if re.search(r"19e5:d(?:10|50|80)\w", line, re.IGNORECASE)]
    absent = [s.place(f.line) for s in v.smi for f in s.read.failures if f.kind == "not-found"]
    nodes = m.listings.get("/dev")
    no_nodes = nodes is not None and nodes.lacks("davinci_manager")
    if cards or (absent and (no_nodes or m.has("/usr/local/Ascend/driver") is False)):
        return [fact("driver-missing", [*cards[:1], *absent[:1], nodes.evidence if nodes and no_nodes else None], cards=len(cards) or "")]
    return []


def npu_smi_fails(v: View) -> list[Fact]:
    """npu-smi that does not answer: its code tells why."""
    found = []
    for smi in v.smi:
        for failure in smi.read.failures:
            place = smi.place(failure.line)
            if failure.kind == "dcmi" and failure.code is not None:
                name = {-8001: "npu-smi-driver-broken", -8005: "npu-smi-no-access", -8020: "npu-smi-device-used"}.get(
                    failure.code, "npu-smi-fails"
                )
                found.append(fact(name, [place], code=failure.code))
            elif failure.kind == "library":  # in a container its folder was not mounted
                found.append(
                    fact("container-driver-not-mounted" if v.inside else "npu-smi-library-missing", [place], what=_mount_of(failure.text))
                )
            elif failure.kind == "not-found" and (v.inside or v.devices):
                found.append(fact("npu-smi-absent", [place]))
        if not smi.read.failures and re.search(r"no answer within [\d.]+ s", smi.text.text):
            found.append(fact("npu-smi-hangs", [smi.text.at(0)]))
    return found[:2]


def _mount_of(text: str) -> str:
    return "/usr/local/dcmi (npu-smi's own library)" if "libdcmi" in text else "/usr/local/Ascend/driver/lib64"


def firmware_pair(v: View) -> list[Fact]:
    """Firmware within the range that the driver names, and the driver within one that the firmware names; what npu-smi says of it."""
    driver, firmware = v.driver_version or v.driver.get("Version"), v.firmware_version
    for smi in v.smi:
        for one in smi.read.of("board"):
            verdict, told = str(one.values.get("compatibility", "")).strip().upper(), _text(one.values.get("firmware_version"))
            # in a container and without root the firmware is not told, and UNKNOWN means just that
            if verdict not in _NO_VERDICT or (verdict == "UNKNOWN" and told and not v.inside):
                place = smi.line_of(one, rf"Compatibility\s*:\s*{re.escape(verdict)}")
                card = f" (card {one.npu})" if one.npu is not None else ""
                return [fact("driver-firmware-mismatch", [place], driver=_text(smi.read.driver), firmware=f"{told}{card}".strip())]
    if not driver or not firmware:
        return []
    have, wanted = read_version(firmware.value), v.driver.get("compatible_version_fw")
    ranges = v.driver_file.firmwares if v.driver_file else ()
    if have and wanted and ranges and not any(one.holds(have) for one in ranges):
        text = ", ".join(f"{one.low} - {one.high}" for one in ranges)
        places = [firmware.evidence, wanted.evidence]
        return [fact("driver-firmware-mismatch", places, driver=driver.value, firmware=firmware.value, wanted=text)]
    served = v.firmware.get("compatible_version_drv")
    pairs = re.findall(r"\[\s*([^,\]]+),\s*([^\]]+?)\.?\s*\]", served.value) if served else []
    if served and pairs and not any(_served(driver.value, low) for low, _ in pairs):
        text = ", ".join(f"{low}.x" for low, _ in pairs)
        return [
            fact("driver-firmware-mismatch", [served.evidence, driver.evidence], driver=driver.value, firmware=firmware.value, served=text)
        ]
    return [] if ranges or pairs else _by_table(driver, firmware)


def _by_table(driver: Seen, firmware: Seen) -> list[Fact]:
    """What no version file settles, by the tables of `jumar compat`."""
    versions = {"driver": read_version(driver.value), "firmware": read_version(firmware.value)}
    for pair in pairings({name: version for name, version in versions.items() if version}):
        if pair.verdict == "outside":
            wanted = ", ".join(pair.wanted[:4])
            places = [firmware.evidence, driver.evidence]
            return [fact("driver-firmware-mismatch", places, driver=driver.value, firmware=firmware.value, wanted=wanted)]
    return []


def _served(driver: str, prefix: str) -> bool:
    """`24.1` serves 24.1.rc3 and 24.1.0.3; `23.0.rc3` serves 23.0.rc3.x; RCs of a release count as the release."""
    short = re.sub(r"\.0$", "", prefix.rstrip(".").lower())
    return driver.lower() == short or driver.lower().startswith(short + ".")


def firmwares_differ(v: View) -> list[Fact]:
    """One card with another firmware than the others, as a card has that was replaced, or whose upgrade failed."""
    found: dict[str, list[tuple[Smi, Properties]]] = {}
    for smi in v.smi:
        for one in smi.read.of("board"):
            told = one.text("firmware_version")
            if one.npu is not None and re.match(r"\d", told):
                found.setdefault(told, []).append((smi, one))
    if len(found) < 2 or len({smi.text.source for ours in found.values() for smi, _ in ours}) > 1:  # files of several nodes
        return []
    usual, *others = sorted(found, key=lambda told: -len(found[told]))
    odd = found[others[0]]
    places = [smi.line_of(one, r"Firmware Version\s*:") for smi, one in (odd[0], found[usual][0])]
    cards = ", ".join(str(one.npu) for _, one in odd[:8])
    return [fact("firmwares-differ", places, card=cards, npu=odd[0][1].npu, firmware=others[0], others=usual)]


def half_upgraded(v: View) -> list[Fact]:
    """npu-smi's own version, the driver that runs and the driver's file tell three versions: after an upgrade without a reboot they differ."""
    for smi in v.smi:
        tool, runs = smi.read.tool, smi.read.driver
        if not (tool and runs and re.match(r"\d", tool) and re.match(r"\d", runs)):
            continue
        place = smi.text.find(r"npu-smi\s+\S+\s+Version:")
        if tool.lower() != runs.lower():
            return [fact("driver-half-upgraded", [place], tool=tool, runs=runs)]
        stated = [v.driver[key] for key in ("package_version", "Version") if key in v.driver]
        file = stated[0] if stated else None
        if file and not v.inside and runs.lower() not in {seen.value.lower() for seen in stated}:
            return [fact("driver-half-upgraded", [place, file.evidence], tool=file.value, runs=runs)]
    return []


def nodes_differ(v: View) -> list[Fact]:
    """Tables of several nodes whose drivers have different versions."""
    found: dict[str, Smi] = {}
    for smi in v.smi:
        if smi.read.npus and re.match(r"\d", smi.read.driver) and smi.text.source not in {s.text.source for s in found.values()}:
            found.setdefault(smi.read.driver.lower(), smi)
    if len(found) < 2:
        return []
    a, b = list(found.values())[:2]
    places = [s.text.find(r"npu-smi\s+\S+\s+Version:") for s in (a, b)]
    return [fact("nodes-differ", places, a=a.read.driver, a_from=a.text.source, b=b.read.driver, b_from=b.text.source)]


def modules_missing(v: View) -> list[Fact]:
    """The driver is installed, its modules are not in the kernel (on a host)."""
    m = v.machine
    if v.inside or not v.driver:
        return []
    texts = [m.files["/proc/modules"]] if "/proc/modules" in m.files else [o.text for o in m.output("lsmod") if _tells_modules(o)]
    if not texts or any(re.search(r"^(?:drv_|ascend_|davinci|asdrv)", t.text, re.MULTILINE) for t in texts):
        return []
    return [fact("driver-modules-missing", [texts[0].at(0), v.driver["Version"].evidence if "Version" in v.driver else None])]


def _tells_modules(output: Output) -> bool:
    """All modules were listed, or those were asked for that the driver has."""
    return "|" not in output.command or bool(re.search(r"drv|ascend|davinci", output.command, re.IGNORECASE))


def install_log(v: View) -> list[Fact]:
    """What the installer says of a kernel that it was not built for."""
    text = v.machine.file(_LOG)
    if text is None:
        return []
    tail = text.text.rfind("Driver package install success")
    for pattern in (
        r"current kernel primary version\((?P<kernel>[^)]*)\) is different from the driver\((?P<wanted>[^)]*)\)",
        r"driver ko vermagic\((?P<wanted>[^)]*)\) is different from the os\((?P<kernel>[^)]*)\)",
    ):
        for found in re.finditer(pattern, text.text):
            if found.start() > tail:
                return [fact("driver-for-other-kernel", [text.at(found.start())], kernel=found["kernel"], wanted=found["wanted"])]
    return []


def kernel_log(v: View) -> list[Fact]:
    """What the kernel's log says of a card that did not come up or was lost."""
    found = []
    for output in v.machine.output("dmesg"):
        for line, at in output.text.lines():
            built = _OTHER_KERNEL.search(line)
            if built:
                return [fact("driver-for-other-kernel", [at], wanted=built["wanted"], kernel=built["kernel"])]
            refused = _REFUSED.search(line)
            if refused and not v.devices:
                return [fact("driver-module-refused", [at], module=refused["name"], why=refused["why"])]
        unsigned = output.text.find(_UNSIGNED)
        if unsigned and v.driver and not v.devices:
            return [fact("driver-module-refused", [unsigned], why="it is not signed with a key that this machine trusts (secure boot)")]
        for name, pattern in _KERNEL:
            place = output.text.find(pattern)
            if place:
                number = re.search(r"dev(?:ice|_id|id)?\s*=\s*(\d+)", place.text)
                found.append(fact(name, [place], device=number[1] if number else ""))
    return found


_MODULE = r"(?:drv_|ascend_|asdrv|davinci|devdrv|hisi_hdc)\w*"
_OTHER_KERNEL = re.compile(
    rf"{_MODULE}: version magic '(?P<wanted>[^\s']+)[^']*' should be '(?P<kernel>[^\s']+)", re.IGNORECASE
)  # a module that was built for another kernel
_REFUSED = re.compile(rf"(?P<name>{_MODULE}): (?P<why>disagrees about version of symbol \S+|Unknown symbol \S+)", re.IGNORECASE)
_UNSIGNED = r"Loading of (?:unsigned module|module with unavailable key) is rejected|unsigned module loading is restricted|not signed with a trusted key"
_KERNEL = (
    ("card-did-not-boot", r"Load timeout\. \(dev_id|Device os load failed|Wait boot mode from bios time ?out|Get boot mode flag failed"),
    ("driver-package-damaged", r"Load file check (?:image|tee|filesystem) failed"),
    ("card-heartbeat-lost", r"urgent heartbeat is lost|heartbeat (?:lost|is lost).*dev"),
    ("card-link-lost", r"link_speed_raw is invalid|Failed to read link status|Slot_reset failed"),
)


def _text(value: object) -> str:
    return "" if value is None else str(value)


CHECKS: tuple[Callable[[View], list[Fact]], ...] = (
    driver_missing,
    install_log,
    modules_missing,
    firmware_pair,
    firmwares_differ,
    half_upgraded,
    nodes_differ,
    kernel_log,
    npu_smi_fails,
)
