"""A `Machine` with what the checks ask for read once: npu-smi's tables, the driver's files, the CANN releases.

In: a `Machine`.  Out: `View`, read by checks/.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from jumar.device.ascend import NpuSmi, Properties, VersionFile, parse_npu_smi, parse_version_file
from jumar.tools.doctor.machine import Listing, Machine, Seen, Text
from jumar.tools.knowledge import Evidence, Fact

DRIVER = "/usr/local/Ascend/driver/version.info"
FIRMWARE = "/usr/local/Ascend/firmware/version.info"
PARTS = ("compiler", "runtime", "opp", "toolkit", "hccl", "opp_kernel", "fwkplugin", "aoe", "ncs")
_OF_HOME = re.compile(
    rf"^(?P<home>/.*?)(?:/[\w.]+-linux)?/(?:version\.cfg|ascend_toolkit_install\.info|(?:share/info/)?(?P<part>{'|'.join(PARTS)}|ops\w*)/version\.info)$"
)
_KERNELS = re.compile(r"^(?P<home>/.*?)/opp(?:/[^/]+)?/built-in/op_impl/ai_core/tbe/kernel/config$")
_NAMED = re.compile(r"/(?:ascend-toolkit|nnae|nnrt)/(?P<old>[^/:]+)|/cann-(?P<new>\d[^/:]*)")


@dataclass(frozen=True)
class Smi:
    """One output of npu-smi, read.   place: line of the output -> where it stands."""

    text: Text
    read: NpuSmi
    above: int = 0  # lines that were read before the text's first one: its command

    def place(self, line: int) -> Evidence:
        lines, at = self.text.text.split("\n"), line - self.above
        shown = lines[at - 1].strip()[:300] if 0 < at <= len(lines) else ""
        return Evidence(self.text.source, self.text.first_line + at - 1 if at > 0 else 0, shown)

    def line_of(self, one: Properties, pattern: str) -> Evidence:
        """The line of a `-t` output that the pattern finds, from the output's first line on; else that first line."""
        lines = self.text.text.split("\n")
        first = max(one.line - self.above, 1)
        at = next((n for n in range(first, len(lines) + 1) if re.search(pattern, lines[n - 1], re.IGNORECASE)), first)
        return self.place(at + self.above)


@dataclass(frozen=True)
class Release:
    """One CANN that is installed.

    homes: its folder under every name; parts: the version files' keys by package, with their lines; kernels: chips that have kernels;
    files: the version files, read.
    """

    version: str
    homes: tuple[str, ...]
    evidence: Evidence
    inner: str = ""
    toolkit: Mapping[str, Seen] = field(default_factory=dict)
    parts: Mapping[str, Mapping[str, Seen]] = field(default_factory=dict)
    kernels: Listing | None = None
    files: tuple[VersionFile, ...] = ()


_OF_LOGS = re.compile(r"LOG|WORK_PATH|CACHE|COREDUMP|EVENT")  # variables that a laptop may have, too
_MAPS_NPU = re.compile(r"/dev/davinci|/Ascend/driver|ASCEND_(?:RT_)?VISIBLE_DEVICES|\"ascend\"")


@dataclass(frozen=True)
class View:
    """What the checks look at.

    smi: npu-smi's outputs; driver, firmware: keys of their version files, with their lines, empty where there are none; driver_file: the
    driver's, read.
    """

    machine: Machine
    smi: tuple[Smi, ...]
    driver: Mapping[str, Seen]
    firmware: Mapping[str, Seen]
    releases: tuple[Release, ...]
    driver_file: VersionFile | None = None

    def variables(self, *names: str) -> Iterator[tuple[str, Seen]]:
        return ((n, self.machine.environment[n]) for n in names if n in self.machine.environment)

    @property
    def driver_version(self) -> Seen | None:
        """The driver's version: of its file, else of npu-smi's title."""
        stated = self.driver.get("Version") or self.driver.get("package_version")
        if stated:
            return stated
        for smi in self.smi:
            if smi.read.driver and re.match(r"\d", smi.read.driver):
                return Seen(smi.read.driver, smi.text.find(r"Version:|Software Version") or smi.text.at(0))
        return None

    @property
    def firmware_version(self) -> Seen | None:
        """The firmware's version: of its file, else of `npu-smi info -t board`."""
        stated = self.firmware.get("Version")
        if stated:
            return stated
        for smi in self.smi:
            for board in smi.read.of("board"):
                told = str(board.values.get("firmware_version") or "")
                if re.match(r"\d", told):
                    return Seen(told, smi.text.find(r"Firmware Version\s*:") or smi.text.at(0))
        return None

    @property
    def generation(self) -> tuple[str, Seen] | None:
        """The chips' generation (`910b`, `310p`, ...) with the name that npu-smi prints."""
        for smi in self.smi:
            for npu in smi.read.npus:
                if npu.generation:
                    return npu.generation, Seen(npu.name, smi.place(npu.line))
        return None

    @property
    def used(self) -> Release | None:
        """The CANN that the environment names, else the only one."""
        for _, seen in self.variables("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH"):
            found = self.release_of(seen.value)
            if found:
                return found
        return self.releases[0] if len(self.releases) == 1 else None

    def release_of(self, path: str) -> Release | None:
        path = posixpath.normpath(path) if path else path
        homes = [(home, release) for release in self.releases for home in release.homes if path == home or path.startswith(home + "/")]
        return max(homes, key=lambda pair: len(pair[0]))[1] if homes else None

    def version_at(self, path: str) -> str:
        """The CANN version that a path belongs to: of the release that lies there, else as its folder is named; empty where it is none."""
        release = self.release_of(path)
        if release:
            return release.version
        named = _NAMED.search(path)
        if not named:
            return ""
        name = named["old"] or named["new"]
        return name if re.match(r"\d", name) else ""

    @property
    def devices(self) -> tuple[int, ...]:
        """Numbers of the device nodes that are there."""
        listing = self.machine.listings.get("/dev")
        return tuple(sorted(int(n[7:]) for n in listing.names() if re.fullmatch(r"davinci\d{1,4}", n))) if listing else ()

    @property
    def inside(self) -> bool:
        """A container: it was shown, or, where nothing was told of it, what was copied is as in one."""
        m = self.machine
        if m.identity.container:
            return m.in_container
        codes = {f.code for smi in self.smi for f in smi.read.failures}
        modules = "/proc/modules" in m.files or bool(m.output("lsmod"))
        return (
            bool(
                codes & {-8005, -8020}
                or m.output("docker inspect", "docker-inspect")
                or re.fullmatch(r"[0-9a-f]{12}", m.variable("HOSTNAME"))
                or any(name in m.environment for name in ("ASCEND_VISIBLE_DEVICES", "ASCEND_RUNTIME_OPTIONS", "KUBERNETES_SERVICE_HOST"))
            )
            and not modules
        )

    @property
    def ascend(self) -> bool:
        """Anything that speaks of an NPU or its software."""
        return (
            bool(self.smi or self.driver or self.releases or self.devices)
            or any(self.machine.package(name) for name in ("torch-npu", "mindspore-ascend", "vllm-ascend"))
            or any(name.startswith("ASCEND_") and not _OF_LOGS.search(name) for name in self.machine.environment)
            or any(_MAPS_NPU.search(o.text.text) for o in self.machine.output("docker", "docker-inspect", "nerdctl", "podman"))
            or bool(self.machine.output("hccn") or self.machine.file("/etc/hccn.conf"))
        )


def view(machine: Machine) -> View:
    """The machine with its usual questions answered."""
    # the command tells which card a `-t` output is of
    smi = tuple(Smi(o.text, parse_npu_smi(f"$ {o.command}\n{o.text.text}"), 1) for o in machine.output("npu-smi") if o.text.text.strip())
    driver, firmware = _file_of(machine, "driver", DRIVER), _file_of(machine, "firmware", FIRMWARE)
    read = parse_version_file(DRIVER, driver.text) if driver else None
    return View(machine, smi, driver.keys() if driver else {}, firmware.keys() if firmware else {}, _releases(machine), read)


def _file_of(machine: Machine, part: str, usual: str) -> Text | None:
    return machine.file(usual) or next((t for p, t in machine.files.items() if p.endswith(f"/{part}/version.info")), None)


@dataclass
class _Found:
    """What the files below one folder tell (the buffer that _releases freezes)."""

    cfg: Text | None = None
    toolkit: dict[str, Seen] = field(default_factory=dict)
    parts: dict[str, dict[str, Seen]] = field(default_factory=dict)
    files: list[VersionFile] = field(default_factory=list)
    kernels: Listing | None = None


def _releases(machine: Machine) -> tuple[Release, ...]:
    """Every CANN that is installed; folders of the same version are one release with several names."""
    found: dict[str, _Found] = {}
    for path, text in sorted(machine.files.items()):
        place = _OF_HOME.match(path)
        if not place or "/nnal/" in path or path in (DRIVER, FIRMWARE):
            continue
        one = found.setdefault(place["home"], _Found())
        one.files.append(parse_version_file(path, text.text))
        if path.endswith("version.cfg"):
            one.cfg = text
        elif path.endswith("ascend_toolkit_install.info"):
            one.toolkit = text.keys()
        else:
            one.parts[place["part"]] = text.keys()
    for path, listing in machine.listings.items():
        kernels = _KERNELS.match(path)
        if kernels:
            one = found.setdefault(kernels["home"], _Found())
            one.kernels = listing.joined(one.kernels) if one.kernels else listing
    _follow_links(machine, found)
    merged: dict[str, Release] = {}
    for home, one in found.items():
        version, inner, stated = _version(home, one)
        if not version:
            continue
        release = Release(version, (home,), stated, inner, one.toolkit, one.parts, one.kernels, tuple(one.files))
        known = merged.get(version)
        merged[version] = _joined(known, release) if known else release
    return tuple(merged.values())


def _follow_links(machine: Machine, found: dict[str, _Found]) -> None:
    """`latest` that is a link holds what its target holds; kernels that were listed below `latest` belong to the only release."""
    for folder, listing in machine.listings.items():
        for entry in listing.entries:
            target = posixpath.normpath(posixpath.join(folder, entry.target)) if entry.target else ""
            if target in found and f"{folder}/{entry.name}" not in found:
                found[f"{folder}/{entry.name}"] = found[target]
    bare = [home for home, one in found.items() if not (one.cfg or one.toolkit or one.parts)]
    stated = [one for one in found.values() if one.cfg or one.toolkit or one.parts]
    if bare and len(stated) == 1:
        stated[0].kernels = found[bare[0]].kernels


def _version(home: str, found: _Found) -> tuple[str, str, Evidence]:
    """Market version, inner number and the line that states them."""
    inner = next((keys["Version"].value for keys in found.parts.values() if "Version" in keys), "")
    if found.cfg:
        place = found.cfg.find(r"^(?:toolkit|runtime|compiler)_running_version|_running_version|_installed_version")
        pair = re.search(r"\[([^:\]]*):([^\]]+)\]", place.text) if place else None
        if pair and place:
            return pair[2], pair[1], place
    if "version" in found.toolkit:
        return found.toolkit["version"].value, inner, found.toolkit["version"].evidence
    for keys in found.parts.values():
        for key in ("version_dir", "Version"):
            if key in keys:
                return keys[key].value, inner, keys[key].evidence
    return "", "", Evidence(home, 0, "")


def _joined(a: Release, b: Release) -> Release:
    return Release(
        a.version,
        a.homes + b.homes,
        a.evidence,
        a.inner or b.inner,
        {**b.toolkit, **a.toolkit},
        {**b.parts, **a.parts},
        a.kernels or b.kernels,
        a.files or b.files,
    )


def fact(name: str, evidence: Iterable[Evidence | Seen | None] = (), /, **values: object) -> Fact:
    """A fact of a check; places that are not known are left out."""
    places = tuple(e.evidence if isinstance(e, Seen) else e for e in evidence if e is not None)
    return Fact(name, {k: str(v) for k, v in values.items()}, places)
