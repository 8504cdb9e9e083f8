"""The files in which driver, firmware and CANN's packages say their versions and what they need.

In: a file's path and text (`version.info`, `version.cfg`, `ascend_toolkit_install.info`, `/etc/ascend_install.info`, ATB's, an environment).
Out: `VersionFile`, typed, with complaints about what is damaged; compat.py judges whether several of them fit.
The kind is told by the content before the path, since files that were copied off a machine have any name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from jumar.device.ascend.complaint import Complaint, plain_lines, quoted
from jumar.device.ascend.versions import Range, Version, market_of_inner, parse_range, read_version

_LARGEST_NBYTES = 1 << 20


@dataclass(frozen=True)
class Part:
    """A line of version.cfg.   state: running, upgrade or installed."""

    name: str
    state: str
    inner: Version
    version: Version


@dataclass(frozen=True)
class VersionFile:
    """What one file says.

    kind: driver, firmware, toolkit (an install.info of a CANN package), component (a version.info inside CANN), cfg, nnal, ascend-install,
    component-install, environment or unknown.   version: as the release is called (8.1.RC1); inner: 7.7.0.1.238; branch: C21;
    serves: the branches that it declares to go with; firmwares, drivers: the ranges of the other of the two;
    requires: package -> range; provides, demands: interfaces of the driver that it has, or needs at least.
    """

    path: str
    kind: str = "unknown"
    component: str = ""
    version: Version | None = None
    inner: Version | None = None
    branch: str = ""
    serves: tuple[str, ...] = ()
    firmwares: tuple[Range, ...] = ()
    drivers: tuple[Range, ...] = ()
    requires: Mapping[str, Range] = field(default_factory=dict)
    provides: Mapping[str, Version] = field(default_factory=dict)
    demands: Mapping[str, Version] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    complaints: tuple[Complaint, ...] = ()


_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z][\w .\-]{0,60}?)\s*(\+?[=:])\s*(.*)\Z")
_CFG = re.compile(r"([a-z][\w\-]{0,60}?)_(running|upgrade|installed)_version\Z", re.IGNORECASE)
_CFG_VALUE = re.compile(r"\[([^:\[\]]{1,60}):([^:\[\]]{1,60})\]")
_NEEDS = re.compile(r"required_(package|driver)_([a-z][\w\-]{0,40}?)_version\Z", re.IGNORECASE)
_NEEDS_OTHER = re.compile(r"required_([a-z][\w\-]{0,40}?)_version\Z", re.IGNORECASE)
_PROVIDES = re.compile(r"([a-z]\w{0,40}?)_version\Z", re.IGNORECASE)


def parse_version_file(path: str, text: str) -> VersionFile:
    """The file `path` with the content `text`; whatever is wrong with it becomes a complaint.

    >>> parse_version_file("driver/version.info", "Version=24.1.rc3\\ncompatible_version_fw=[7.0.0,7.5.99]").kind
    'driver'
    """
    complaints: list[Complaint] = []
    if "\x00" in text:
        complaints.append(Complaint("file must be text, holds bytes of zero", kind="version-file-binary"))
    values, places = _values(text, complaints)
    if not values:
        complaints.append(Complaint("file must hold key=value lines, got none", kind="version-file-empty"))
        return VersionFile(path, complaints=tuple(complaints))
    kind = _kind(path, values)
    lower = {name.lower(): name for name in values}

    def line_of(key: str) -> int:
        return places.get(lower.get(key.lower(), key), 0)

    def version(key: str, needed: bool = False) -> Version | None:
        written = _unquoted(values.get(lower.get(key.lower(), ""), ""))
        found = read_version(written) if written else None
        if written and found is None:
            complaints.append(Complaint(f"{key} must be a version, got {quoted(written)}", line_of(key), "version-file-value"))
        elif needed and not written:
            complaints.append(Complaint(f"{key} must be stated, got nothing", line_of(key), "version-file-key-missing"))
        return found

    def ranges(key: str) -> tuple[Range, ...]:
        return _brackets(key, _unquoted(values.get(lower.get(key, ""), "")), line_of(key), complaints)

    def branches() -> tuple[str, ...]:
        found = []
        written = _unquoted(values.get(lower.get("compatible_version", ""), ""))
        for item in _items(written):
            branch = read_version(item)
            if branch is None or not branch.branch:
                complaints.append(
                    Complaint(
                        f"compatible_version must list branches like [V100R001C21], got {quoted(item)}",
                        line_of("compatible_version"),
                        "version-file-value",
                    )
                )
            else:
                found.append(branch.branch)
        return tuple(found)

    match kind:
        case "driver":
            own, inner = version("Version", needed=True) or version("package_version"), version("Innerversion")
            provides = {
                m[1].lower(): v
                for k in values
                if (m := _PROVIDES.match(k)) and "compatible" not in k and k.lower() != "package_version" and (v := version(k))
            }
            made = VersionFile(
                path,
                kind,
                "driver",
                own,
                inner,
                inner.branch if inner else "",
                branches(),
                ranges("compatible_version_fw"),
                provides=provides,
            )
        case "firmware":
            made = VersionFile(
                path,
                kind,
                "firmware",
                version("package_version"),
                version("Version", needed=True),
                drivers=ranges("compatible_version_drv"),
            )
        case "toolkit":
            inner = version("innerversion")
            made = VersionFile(
                path, kind, _package(values), version("version", needed=True), inner, inner.branch if inner else "", branches()
            )
        case "component":
            requires, demands = _needs(values, line_of, complaints)
            made = VersionFile(
                path,
                kind,
                _component(path, values),
                version("version_dir"),
                version("Version", needed=True),
                requires=requires,
                demands=demands,
            )
            if made.version is None and made.inner is not None:
                made = replace(made, version=market_of_inner(made.inner))
        case "cfg":
            parts = _parts(values, line_of, complaints)
            main = next((p for name in ("toolkit", "runtime", "compiler") for p in parts if p.name == name and p.state != "upgrade"), None)
            made = VersionFile(path, kind, "", main.version if main else None, main.inner if main else None, parts=parts)
            _disagreeing(parts, complaints)
        case "nnal":
            build = version("Ascend-cann-atb Version")
            made = VersionFile(path, kind, "nnal", version("Ascend-cann-atb", needed=True) or (build.public if build else None), build)
        case _:
            made = VersionFile(path, kind)
    if kind == "unknown":
        complaints.append(
            Complaint(
                f"file must be one of the known version files, got the keys {', '.join(list(values)[:6])}", kind="version-file-unknown"
            )
        )
    return replace(made, values=values, complaints=tuple(complaints))


def read_version_files(root: Path = Path("/"), home: str = "") -> tuple[VersionFile, ...]:
    """Every version file of the machine whose file system is at `root`; home: CANN's folder, where it is known.

    A file that is there but cannot be read gives a VersionFile with the complaint.
    """
    folders = (
        [Path(home)]
        if home
        else [root / f for f in ("usr/local/Ascend/ascend-toolkit/latest", "usr/local/Ascend/cann", "usr/local/Ascend/nnae/latest")]
    )
    places = [
        root / f for f in ("etc/ascend_install.info", "usr/local/Ascend/driver/version.info", "usr/local/Ascend/firmware/version.info")
    ]
    for folder in folders:
        if os.path.isdir(folder):
            for pattern in _IN_CANN:
                places += sorted(folder.glob(pattern))
            break
    places += sorted((root / "usr/local/Ascend/nnal/atb").glob("latest/version.info"))
    found: dict[Path, VersionFile] = {}
    for place in places:
        try:
            real = place.resolve()
            if real in found or not place.is_file():
                continue
            with place.open("rb") as file:
                data = file.read(_LARGEST_NBYTES)
        except OSError as error:
            complaint = Complaint(f"file must be readable, got {error.strerror or error}", kind="version-file-unreadable")
            found[place] = VersionFile(str(place), complaints=(complaint,))
            continue
        found[real] = parse_version_file(str(place), data.decode("utf-8", "replace"))
    return tuple(found.values())


def versions_of_files(files: Iterable[VersionFile]) -> dict[str, Version]:
    """The version of each component that the files of one machine state; the install.info and version.cfg of CANN before its packages' own."""
    found: dict[str, Version] = {}

    def take(component: str, version: Version | None) -> None:
        if version is not None:
            found.setdefault(component, version)

    order = {"driver": 0, "firmware": 0, "toolkit": 1, "cfg": 2, "nnal": 3, "component": 4}
    for file in sorted(files, key=lambda f: order.get(f.kind, 9)):
        match file.kind:
            case "driver":
                take("driver", file.version)
            case "firmware":
                take("firmware", file.inner or file.version)
            case "toolkit" | "cfg":
                take("cann", file.version)
                kernels = next((p for p in file.parts if p.name == "opp_kernel" and p.state in ("running", "installed")), None)
                take("kernels", kernels.version if kernels else None)
            case "nnal":
                take("nnal", file.version)
            case "component":
                take("kernels" if file.component == "opp_kernel" else "cann", file.version)
                if file.component in ("compiler", "runtime", "toolkit"):
                    take("cann-inner", file.inner)
    return found


_IN_CANN = (
    "version.cfg",
    "version.info",
    "ascend_toolkit_install.info",
    "*-linux/ascend_toolkit_install.info",
    *(f"{part}/version.info" for part in ("compiler", "runtime", "opp", "opp_kernel", "toolkit", "hccl")),
    "opp/built-in/op_impl/ai_core/tbe/kernel/version.info",
    "share/info/*/version.info",
)

# ------------------------------------------------------------------------------ the small print


def _values(text: str, complaints: list[Complaint]) -> tuple[dict[str, str], dict[str, int]]:
    values: dict[str, str] = {}
    places: dict[str, int] = {}
    for number, line in enumerate(plain_lines(text), 1):
        if not line.strip() or line.lstrip().startswith(("#", "(")):
            continue
        found = _LINE.match(line)
        if found is None:
            complaints.append(Complaint(f"line must be key=value, got {quoted(line)}", number, "version-file-line"))
            continue
        key, value = found[1].strip(), found[3].strip()
        if key in values and values[key] != value and found[2] == "=":
            complaints.append(
                Complaint(f"{key} must be stated once, got {quoted(values[key])} and {quoted(value)}", number, "version-file-twice")
            )
            continue
        values[key], places[key] = value, number
    return values, places


def _kind(path: str, values: Mapping[str, str]) -> str:
    keys = {k.lower() for k in values}
    place = path.lower()
    if any(_CFG.match(k) for k in keys):
        return "cfg"
    if any(k.startswith("ascend-cann-atb") for k in keys):
        return "nnal"
    if "compatible_version_drv" in keys:
        return "firmware"
    if keys & {"compatible_version_fw", "ascendhal_version"}:
        return "driver"
    if "package_name" in keys:
        return "toolkit"
    if keys & {"driver_install_path_param", "firmware_install_path_param", "driver_install_type", "firmware_install_type"}:
        return "ascend-install"
    if any(k.endswith(("_install_type", "_install_path_param")) for k in keys):
        return "component-install"
    if "version" in keys:
        return "firmware" if "firmware" in place else "driver" if "driver" in place else "component"
    return (
        "environment"
        if keys & {"ascend_toolkit_home", "ascend_home_path", "ascend_opp_path", "ld_library_path", "pythonpath"}
        else "unknown"
    )


def _package(values: Mapping[str, str]) -> str:
    return values.get("package_name", "").removeprefix("Ascend-cann-") or "toolkit"


def _component(path: str, values: Mapping[str, str]) -> str:
    """Which package of CANN: told by the folder or the file's name, else by keys that only one package writes."""
    named = re.search(r"([a-z][\w\-]*?)[_/\\]version\.info", path, re.IGNORECASE)
    name = named[1].lower().rpartition("/")[2] if named else ""
    if name in ("latest", "", "version") or name[0].isdigit():
        keys = set(values)
        name = "opp_kernel" if "ops_version" in keys else "runtime" if "runtime_acl_version" in keys else ""
    return "opp_kernel" if name == "kernel" else name


def _needs(
    values: Mapping[str, str], line_of: Callable[[str], int], complaints: list[Complaint]
) -> tuple[dict[str, Range], dict[str, Version]]:
    requires: dict[str, Range] = {}
    demands: dict[str, Version] = {}
    for key, value in values.items():
        if not (found := _NEEDS.match(key) or _NEEDS_OTHER.match(key)):
            continue
        wanted = parse_range(value)
        if wanted is None:
            complaints.append(Complaint(f"{key} must be a range of versions, got {quoted(value)}", line_of(key), "version-file-value"))
        elif wanted.low is not None and wanted.high is not None and wanted.high < wanted.low:
            complaints.append(Complaint(f"{key} must start below its end, got {quoted(value)}", line_of(key), "version-file-range"))
        elif key.lower().startswith("required_driver_"):
            if wanted.low is not None:
                demands[found[2].lower()] = wanted.low
        else:
            requires[found[found.lastindex or 1].lower()] = wanted
    return requires, demands


def _parts(values: Mapping[str, str], line_of: Callable[[str], int], complaints: list[Complaint]) -> tuple[Part, ...]:
    parts = []
    for key, value in values.items():
        if not (found := _CFG.match(key)):
            continue
        pair = _CFG_VALUE.match(value)
        inner, version = (read_version(pair[1]), read_version(pair[2])) if pair else (None, None)
        if inner is None or version is None:
            complaints.append(Complaint(f"{key} must be [inner:release], got {quoted(value)}", line_of(key), "version-file-value"))
        else:
            parts.append(Part(found[1].lower(), found[2].lower(), inner, version))
    return tuple(parts)


def _disagreeing(parts: tuple[Part, ...], complaints: list[Complaint]) -> None:
    """Packages of several releases in one folder: the usual trace of an upgrade that did not reach all of them."""
    running = {p.name: p.version for p in parts if p.state == "running"}
    if len(set(running.values())) > 1:
        told = ", ".join(f"{name} {version}" for name, version in running.items())
        complaints.append(Complaint(f"the running packages must be of one release, got {told}", kind="version-file-mixed"))


def _unquoted(value: str) -> str:
    return value.strip().strip("\"'").strip()


def _items(written: str) -> list[str]:
    return re.findall(r"[^\[\],\s]+", written)


def _brackets(key: str, written: str, line: int, complaints: list[Complaint]) -> tuple[Range, ...]:
    """`[7.0.0,7.5.99],[8.0,8.9]` and the families `[24.1,24.1.]`."""
    if not written:
        return ()
    found = []
    groups = re.findall(r"\[([^\[\]]*)\]", written)
    if not groups or written.count("[") != len(groups) or written.count("]") != len(groups):
        complaints.append(Complaint(f"{key} must be ranges like [7.0.0,7.5.99], got {quoted(written)}", line, "version-file-value"))
    for group in groups:
        ends = [p.strip() for p in group.split(",")]
        low, high = (read_version(ends[0].rstrip(".")), read_version(ends[-1].rstrip("."))) if 1 <= len(ends) <= 2 else (None, None)
        if low is None or high is None:
            complaints.append(
                Complaint(f"{key} must be ranges like [7.0.0,7.5.99], got {quoted('[' + group + ']')}", line, "version-file-value")
            )
        elif high < low:
            complaints.append(Complaint(f"{key} must start below its end, got {quoted('[' + group + ']')}", line, "version-file-range"))
        elif low == high:
            found.append(Range(f"[{group}]", low, high, family=low.text.lower()))
        else:
            found.append(Range(f"[{group}]", low, high))
    return tuple(found)
