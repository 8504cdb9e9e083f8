"""CANN: is one there, is it the one that the environment names, do its parts and the driver fit it.

In: a `View`.  Out: facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from jumar.device.ascend import declared_pairings, pairings, read_version
from jumar.tools.doctor.machine import Seen
from jumar.tools.doctor.view import Release, View, fact
from jumar.tools.knowledge import Evidence, Fact

_HOMES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH", "ASCEND_AICPU_PATH", "TOOLCHAIN_HOME")
_PATHS = ("LD_LIBRARY_PATH", "PYTHONPATH", "PATH")
_LATEST = "/usr/local/Ascend/ascend-toolkit/latest"  # where its version is not known, a second spelling still tells of a second set_env.sh
_PLUGINS = ("torch-npu", "mindspore", "vllm-ascend", "mindspore-ascend")


def missing(v: View) -> list[Fact]:
    """A framework for the NPU without any CANN."""
    if v.releases or not v.machine.whole:
        return []
    plugin = next(((n, seen) for n in _PLUGINS if n != "mindspore" and (seen := v.machine.package(n))), None)
    if plugin:
        return [fact("cann-missing", [plugin[1].evidence], package=plugin[0])]
    return [fact("cann-missing", [v.smi[0].text.at(0) if v.smi else None])] if v.devices else []


def home_gone(v: View) -> list[Fact]:
    """A variable names a CANN folder that is not there."""
    m = v.machine
    for name, seen in v.variables("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH"):
        path = seen.value.rstrip("/")
        if not path.startswith("/") or v.release_of(path):
            continue
        folder = m.listings.get(path.rpartition("/")[0])
        gone = (folder is not None and folder.lacks(path.rpartition("/")[2])) or (m.whole and bool(v.releases) and not m.has(path))
        if gone:
            homes = ", ".join(r.homes[0] for r in v.releases)
            return [fact("cann-home-gone", [seen.evidence], variable=name, path=path, homes=homes)]
    return []


def not_sourced(v: View) -> list[Fact]:
    """CANN is installed, but this environment does not name it."""
    env = v.machine.environment
    if not v.releases or not env or any(name in env for name in _HOMES) or any(v.version_at(p) for _, p, _ in _entries(v)):
        return []
    if not (v.machine.whole or {"PATH", "HOME", "LD_LIBRARY_PATH"} & set(env)):
        return []
    release = v.releases[-1]
    home = next((h for h in release.homes if h.endswith("/latest")), release.homes[0])
    script = f"{home.rsplit('/', 1)[0]}/set_env.sh" if "/ascend-toolkit/" in home else f"{home}/set_env.sh"
    path = env.get("LD_LIBRARY_PATH")
    lacks = path.evidence if path else Evidence("environment", 0, "ASCEND_HOME_PATH and LD_LIBRARY_PATH are not set")
    return [fact("cann-not-sourced", [lacks, release.evidence], cann=release.version, script=script)]


def _entries(v: View) -> Iterator[tuple[str, str, Evidence]]:
    """Every folder that the environment's paths and CANN variables name: variable, folder, line."""
    for name, seen in v.variables(*_HOMES, *_PATHS):
        for part in seen.value.split(":"):
            if part.startswith("/") and "/nnal/" not in part and "/driver/" not in part:
                yield name, part, seen.evidence


def mixed(v: View) -> list[Fact]:
    """Variables and paths that lead into CANN releases of different versions."""
    found: dict[str, dict[str, Evidence]] = {}  # version -> variable -> line
    latest = v.releases[0].version if len(v.releases) == 1 else "latest" if v.releases else ""  # a link to the only one that is there
    for name, path, place in _entries(v):
        version = v.version_at(path) or (latest if path.startswith(_LATEST) else "")
        if version:
            found.setdefault(version, {}).setdefault(name, place)
    for output in v.machine.output("sourced"):
        for line, place in output.text.lines():
            script = re.match(r"\s*(?:source|\.)\s+(/\S+)/set_env\.sh", line)
            version = v.version_at(f"{script[1]}/") if script else ""
            if version:
                found.setdefault(version, {}).setdefault(f"{output.text.source}, line {place.line},", place)
    if len(found) < 2:
        return []
    listed = list(found.items())
    told = "; ".join(f"{version}: {', '.join(names)}" for version, names in listed)
    (a, a_names), (b, b_names) = listed[0], listed[1]
    places = [*list(a_names.values())[:1], *list(b_names.values())[:1]]
    return [fact("cann-mixed", places, a=a, b=b, a_from=next(iter(a_names)), b_from=next(iter(b_names)), told=told)]


def parts_differ(v: View) -> list[Fact]:
    """Within one CANN: what a package requires of another, and the version that is there."""
    alone = next((r for r in v.releases if set(r.parts) == {"opp_kernel"} and not r.toolkit), None)
    for release in (v.used,) if v.used else v.releases:
        if alone and release is not alone and release.parts and "opp_kernel" not in release.parts and release.kernels is None:
            stated = alone.parts["opp_kernel"].get("Version")
            values = {"part": "opp_kernel", "version": alone.version, "by": "toolkit", "wanted": release.version, "cann": release.version}
            return [fact("kernels-of-other-version", [stated, release.evidence], **values)]
    for release in (v.used,) if v.used else v.releases:
        for pair in declared_pairings(release.files):
            if pair.verdict != "outside" or pair.b == "ascendhal":
                continue
            wanted = release.parts.get(pair.a, {}).get(f"required_package_{pair.b}_version")
            have = release.parts.get(pair.b, {}).get("Version")
            values = {
                "part": pair.b,
                "version": str(pair.b_version),
                "by": pair.a,
                "wanted": ", ".join(pair.wanted),
                "cann": release.version,
            }
            odd = pair.b if str(pair.b_version) != release.inner else pair.a  # the package that is not of this CANN
            name = "kernels-of-other-version" if "kernel" in odd else "cann-parts-differ"
            return [fact(name, [wanted, have], **values)]
    return [one for release in v.releases for one in _cfg_differs(v, release)][:1]


def _cfg_differs(v: View, release: Release) -> list[Fact]:
    """Packages of different releases in one version.cfg."""
    for file in release.files:
        text = v.machine.file(file.path)
        running = {part.version: part for part in reversed(file.parts) if part.state == "running"}
        if text is None or len(running) < 2:
            continue
        first, second = list(reversed(running.values()))[:2]
        name = "kernels-of-other-version" if "kernel" in first.name + second.name else "cann-parts-differ"
        places = [text.find(rf"^\s*{re.escape(part.name)}_running_version") for part in (first, second)]
        values = {"part": second.name, "version": second.version, "by": first.name, "wanted": first.version, "cann": release.version}
        return [fact(name, places, **values)]
    return []


def driver_pair(v: View) -> list[Fact]:
    """The driver serves this CANN: by the branches that both files list, by the hardware interface, else by the table."""
    driver = v.driver_version
    for release in (v.used,) if v.used else v.releases:
        pairs = declared_pairings([*((v.driver_file,) if v.driver_file else ()), *release.files])
        declared = next((p for p in pairs if (p.a, p.b) == ("cann", "driver")), None)
        values = {"driver": _value(driver), "cann": release.version, "wanted": _wanted(release.version)}
        if declared and declared.verdict == "outside" and v.driver_file:
            own = next(f for f in release.files if f.kind == "toolkit" and f.branch)
            name = "driver-too-old-for-cann" if _older(v, release, v.driver_file.branch, own.branch) else "driver-cann-mismatch"
            places = [v.driver.get("compatible_version"), release.toolkit.get("innerversion")]
            return [fact(name, places, **values, branches=f"; branches: driver {v.driver_file.branch}, CANN {own.branch}")]
        lacking = next((p for p in pairs if p.b == "ascendhal" and p.verdict == "outside"), None)
        if lacking:
            need = release.parts.get(lacking.a, {}).get("required_driver_ascendhal_version")
            have = v.driver.get("ascendhal_version")
            return [fact("driver-too-old-for-cann", [have, need], **values)]
        if driver:
            found = _by_table(release, driver, declared=declared is not None)
            if found:
                return found
    return []


def _by_table(release: Release, driver: Seen, declared: bool) -> list[Fact]:
    """What the tables say.   declared: both files name the other's branch, which is necessary, not sufficient; a newer driver is then trusted."""
    cann, runs = read_version(release.version), read_version(driver.value)
    if cann is None or runs is None:
        return []
    for pair in pairings({"cann": cann, "driver": runs}):
        named = [w for w in map(read_version, pair.wanted) if w]
        older = bool(named) and runs < min(named)
        wanted = ", ".join(pair.wanted[:4])
        values = {"driver": driver.value, "cann": release.version, "wanted": wanted}
        places = [driver.evidence, release.evidence]
        near = declared and bool(named) and runs.major == min(named).major  # both files allow it, and it is of the same generation
        if pair.verdict == "outside" and not near and (older or not declared):
            return [fact("driver-too-old-for-cann" if older else "driver-cann-mismatch", places, **values)]
        if pair.verdict == "inside" and older and runs.major < min(named).major:
            return [fact("driver-older-than-tested", places, **values)]
    return []


def _wanted(cann: str) -> str:
    """The driver that the table gives for a CANN."""
    version, any_driver = read_version(cann), read_version("1.0")
    if version is None or any_driver is None:
        return ""
    return next(
        (", ".join(p.wanted[:4]) for p in pairings({"cann": version, "driver": any_driver}) if {p.a, p.b} == {"cann", "driver"}), ""
    )


def _older(v: View, release: Release, driver_branch: str, branch: str) -> bool:
    """The driver is older than the oldest that the table names for this CANN; without one, its branch is lower."""
    driver = read_version(_value(v.driver_version))
    named = [w for w in map(read_version, re.split(r",\s*", _wanted(release.version))) if w]
    return driver < min(named) if driver and named else driver_branch < branch


def _value(seen: Seen | None) -> str:
    return seen.value if seen else ""


def nnal(v: View) -> list[Fact]:
    """ATB must be of CANN's release."""
    used = v.used
    for path, text in v.machine.glob("*/nnal/atb/*version.info"):
        stated = text.find(r"Ascend-cann-atb\s*:\s*\S")
        found = re.search(r"Ascend-cann-atb\s*:\s*(\S+)", stated.text) if stated else None
        if used and found and _release_part(found[1]) != _release_part(used.version):
            return [fact("nnal-of-other-version", [stated, used.evidence], nnal=found[1], cann=used.version, path=path)]
    return []


def _release_part(version: str) -> str:
    found = re.match(r"\d+\.\d+(?:\.RC\d+|\.\d+)?", version, re.IGNORECASE)
    return found[0].upper() if found else version


_STUB = re.compile(r"/(?:stub|devlib)(?:/|$)")
_OF_DRIVER = re.compile(r"/driver/lib64(?:/|$)")


def stubs_first(v: View) -> list[Fact]:
    """A folder of libraries for linking only, before the driver's own: they have every symbol and do nothing."""
    for output in v.machine.output("ldd"):
        place = output.text.find(r"lib\S+\.so\S* => \S*/(?:stub|devlib)/")
        if place:
            return [fact("stub-libraries-first", [place], variable="ldd", path=place.text.partition("=> ")[2].partition(" (")[0])]
    if not (v.devices or v.driver or any(smi.read.npus for smi in v.smi)):
        return []  # where programs are only built, stubs are right
    for name, seen in v.variables("LD_LIBRARY_PATH"):
        for part in seen.value.split(":"):
            if _OF_DRIVER.search(part):
                break
            if _STUB.search(part):
                return [fact("stub-libraries-first", [seen.evidence], variable=name, path=part)]
    return []


def several(v: View) -> list[Fact]:
    """More than one CANN, for the record: which is used."""
    if len(v.releases) < 2:
        return []
    return [
        fact(
            "cann-several",
            [r.evidence for r in v.releases],
            versions=", ".join(r.version for r in v.releases),
            used=v.used.version if v.used else "",
        )
    ]


def stated(v: View) -> list[Fact]:
    """Versions, for rules that ask for them."""
    found = [fact("cann-version", [v.used.evidence], version=v.used.version)] if v.used else []
    driver = v.driver_version
    if driver:
        found.append(fact("driver-version", [driver.evidence], version=driver.value))
    if "Version" in v.firmware:
        found.append(fact("firmware-version", [v.firmware["Version"].evidence], version=v.firmware["Version"].value))
    return found


CHECKS: tuple[Callable[[View], list[Fact]], ...] = (
    missing,
    mixed,
    home_gone,
    not_sourced,
    driver_pair,
    parts_differ,
    nnal,
    stubs_first,
    several,
    stated,
)
