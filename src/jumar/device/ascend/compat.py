"""Do these versions fit?  The official tables, ranges and what the packages themselves declare, as one question with four answers.

In: versions by component (stated.py, version_files.py, pip).  Out: `Pairing`s, read by `jumar compat`, doctor and diagnose.
ok: a pair that a table names.  inside: within an official range or the same series, not the named pair.  outside: neither.  unknown: no table knows it.
compat_table.py holds the rows with their sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from jumar.device.ascend.compat_table import Row, applicable, declared, exact, fits, fits_any, releases, rows_of, series
from jumar.device.ascend.version_files import VersionFile
from jumar.device.ascend.versions import Version, inner_of_market, market_of_inner, parse_version, read_version

Verdict = Literal["ok", "inside", "outside", "unknown"]


@dataclass(frozen=True)
class Pairing:
    """Whether a and b fit.   wanted: the versions of `wants` that would, the named ones first; nearest: the known version of a that was used instead."""

    a: str
    a_version: Version
    b: str
    b_version: Version
    verdict: Verdict
    wanted: tuple[str, ...] = ()
    source: str = ""
    wants: str = ""
    nearest: str = ""
    note: str = ""


PAIRS: tuple[tuple[str, str], ...] = (  # in the order in which they are shown: from the card upwards
    ("driver", "firmware"), ("cann", "driver"), ("kernels", "cann"), ("nnal", "cann"), ("mindspore", "cann"), ("torch_npu", "cann"), ("torch", "torch_npu"),
    ("vllm-ascend", "cann"), ("vllm-ascend", "torch_npu"), ("vllm-ascend", "torch"), ("vllm-ascend", "vllm"), ("vllm-ascend", "triton-ascend"),
    ("mindie", "cann"), ("mindie", "driver"), ("mindspeed", "cann"), ("mindspore-lite", "cann"), ("vllm-mindspore", "cann"), ("pta", "cann"),
    ("torch_npu", "pta"), ("mindie", "pta"), ("mindspeed", "pta"),
    ("python", "mindspore"), ("python", "torch_npu"), ("python", "vllm-ascend"), ("python", "cann"),
)  # fmt: skip


_QUIET = frozenset(
    {
        ("python", "cann"),
        ("mindie", "driver"),
        ("mindie", "pta"),
        ("mindspeed", "pta"),
        ("torch_npu", "pta"),
        ("vllm-ascend", "triton-ascend"),
    }
)


def pairings(versions: Mapping[str, Version], files: Iterable[VersionFile] = ()) -> tuple[Pairing, ...]:
    """Every pair of `versions` that can be judged; files: what the packages of that machine declare, which settles what no table knows.

    >>> v = parse_version
    >>> [(p.a, p.b, p.verdict) for p in pairings({"torch_npu": v("2.5.1"), "cann": v("8.1.RC1"), "driver": v("24.1.rc3")})]
    [('cann', 'driver', 'inside'), ('torch_npu', 'cann', 'ok')]
    """
    known = dict(versions)
    inner = known.get("cann-inner")
    if "cann" not in known and inner is not None and (release := market_of_inner(inner)):
        known["cann"] = release
    found = judged(known)
    declared = {(p.a, p.b): p for p in declared_pairings(files)}
    merged = []
    for pair in found:
        own = declared.pop((pair.a, pair.b), None)
        # the packages at hand know better than a table of others of their kind; branches are necessary, not sufficient
        mine = own is not None and (pair.verdict == "unknown" or own.verdict == "outside" or (pair.a == "driver" and pair.verdict != "ok"))
        merged.append(own if mine and own is not None else pair)
    return (*merged, *declared.values())


def judged(versions: Mapping[str, Version]) -> list[Pairing]:
    """The pairs of `versions` by the tables alone; what no table says of a lesser pair is left out."""
    there = [(a, versions[a], b, versions[b]) for a, b in PAIRS if a in versions and b in versions]
    found = [replace(judge(a, x, b, y), a_version=x, b_version=y) for a, x, b, y in there]  # in the spelling that was asked
    return [p for p in found if not (p.verdict == "unknown" and (p.a, p.b) in _QUIET)]


@lru_cache(maxsize=8192)
def judge(a: str, a_version: Version, b: str, b_version: Version) -> Pairing:
    """Whether one pair fits; a and b as in `PAIRS`."""
    match a, b:
        case "driver", "firmware":
            return _firmware(a_version, b_version)
        case "cann", "driver":
            return _driver(a_version, b_version)
        case (("kernels" | "nnal"), "cann"):
            return _same_release(a, a_version, b_version)
        case "torch", "torch_npu":
            return _torch(a_version, b_version)
        case "python", _:
            pair = _by_table(b, b_version, "python", a_version)
            verdict: Verdict = "ok" if pair.verdict == "inside" else pair.verdict
            return replace(pair, a=a, a_version=a_version, b=b, b_version=b_version, verdict=verdict, wants="python")
        case "mindspore", "cann":
            return _mindspore(a_version, b_version)
        case _:
            return _by_table(a, a_version, b, b_version)


def declared_pairings(files: Iterable[VersionFile]) -> tuple[Pairing, ...]:
    """What the version files of one machine say of each other: branches, firmware ranges, driver interfaces, required packages."""
    files = tuple(files)
    first: Callable[[str], VersionFile | None] = lambda kind: next((f for f in files if f.kind == kind and not _broken(f)), None)  # noqa: E731
    driver, firmware, toolkit = first("driver"), first("firmware"), first("toolkit")
    pairs: list[Pairing] = []
    if driver and firmware and driver.version and firmware.inner and (driver.firmwares or firmware.drivers):
        fits = not driver.firmwares or any(r.holds(firmware.inner) for r in driver.firmwares)
        fits = fits and (not firmware.drivers or any(r.holds(driver.version) for r in firmware.drivers))
        wanted = tuple(r.text for r in driver.firmwares)
        pairs.append(
            _pair("driver", driver.version, "firmware", firmware.inner, "inside" if fits else "outside", wanted, _paths(driver, firmware))
        )
    if driver and toolkit and driver.version and toolkit.version and driver.branch and toolkit.branch and (driver.serves or toolkit.serves):
        fits = toolkit.branch in driver.serves or driver.branch in toolkit.serves
        wanted = () if fits else tuple(f"branch {b}" for b in toolkit.serves)
        pairs.append(
            _pair("cann", toolkit.version, "driver", driver.version, "inside" if fits else "outside", wanted, _paths(driver, toolkit))
        )
    for file in files:
        hal = file.demands.get("ascendhal")
        have = driver.provides.get("ascendhal") if driver else None
        if hal and have:
            pairs.append(_pair(file.component, hal, "ascendhal", have, "ok" if have >= hal else "outside", (f">={hal}",), _paths(file)))
    return (*pairs, *_required(files))


# ------------------------------------------------------------------------------ the pairs that have their own rules


def _driver(cann: Version, driver: Version) -> Pairing:
    """The tables, then the branches that a driver and a toolkit declare for each other, then age: an older driver than any named one does not serve."""
    pair = _by_table("cann", cann, "driver", driver)
    if pair.verdict in ("ok", "inside") or any(
        r.kind == "range" and fits_any(r.a_spec, cann) and len(r.b_spec) > 1 for r in rows_of("cann", "driver")
    ):
        return pair
    own, served = declared("cann", cann), declared("driver", driver)
    if own[0] and served[0] and (own[1] or served[1]):
        fits = own[0] in served[1] or served[0] in own[1]
        source = "; ".join(dict.fromkeys(filter(None, (own[2], served[2]))))
        return replace(pair, verdict="inside" if fits else "outside", source=source, note=f"branches {own[0]} and {served[0]}")
    named = [v for t in pair.wanted if (v := exact(t)) is not None]
    if pair.verdict == "outside" and named and driver > max(named):
        return replace(pair, verdict="unknown", note="newer than the drivers that are named")
    return pair


def _firmware(driver: Version, firmware: Version) -> Pairing:
    """Firmware is told by its own number (7.5.0.1.129) or by the HDK's, which is the driver's."""
    if firmware.major >= 20:
        verdict: Verdict = (
            "ok" if _base(firmware) == _base(driver) else "inside" if series("driver", firmware) == series("driver", driver) else "outside"
        )
        return _pair(
            "driver", driver, "firmware", firmware, verdict, (str(driver),), "driver and firmware of one Ascend HDK belong together"
        )
    for row in rows_of("firmware", "driver"):
        if row.kind == "tested" and fits_any(row.a_spec, firmware) and fits_any(row.b_spec, driver):
            return _pair("driver", driver, "firmware", firmware, "ok", row.a_spec, row.source)
    pair = _by_table("driver", driver, "firmware", firmware)
    own = [r for r in rows_of("firmware", "driver") if r.kind == "range" and fits_any(r.a_spec, firmware)]
    if own and not any(fits_any(r.b_spec, driver) for r in own):
        return replace(pair, verdict="outside", source=own[0].source)
    if own and pair.verdict == "unknown":
        return replace(pair, verdict="inside", source=own[0].source, nearest="")
    return pair


def _same_release(a: str, a_version: Version, cann: Version) -> Pairing:
    """Kernels and nnal are those of the toolkit's release; a few mixtures are official."""
    source = "the packages of one CANN release belong together"
    if _base(a_version) == _base(cann):
        return _pair(a, a_version, "cann", cann, "ok", (str(cann),), source, wants=a)
    pair = _by_table(a, a_version, "cann", cann) if rows_of(a, "cann") else None
    if pair is not None and pair.verdict in ("ok", "inside") and not pair.nearest:
        return replace(pair, wanted=(str(cann.public),), wants=a)
    verdict: Verdict = "inside" if series("cann", a_version) == series("cann", cann) else "outside"
    return _pair(a, a_version, "cann", cann, verdict, (str(cann.public),), source, wants=a)


def _torch(torch: Version, torch_npu: Version) -> Pairing:
    """torch_npu carries the number of the torch that it was built for; posts are its own."""
    source = "Ascend/pytorch COMPATIBILITY.en.md"
    fits = torch.release[:3] == torch_npu.release[:3]
    named = torch_npu.public in {v.public for v in releases("torch_npu")}
    wanted = tuple(str(v) for v in reversed(releases("torch_npu")) if v.release[:3] == torch.release[:3])
    built = ".".join(map(str, torch_npu.release[:3]))
    verdict: Verdict = "outside" if not fits else "ok" if named and not torch.trial else "inside"
    return _pair(
        "torch", torch, "torch_npu", torch_npu, verdict, wanted, source, wants="torch_npu", note="" if fits else f"built for torch {built}"
    )


def _mindspore(mindspore: Version, cann: Version) -> Pairing:
    """The installation pages, and the inner numbers that MindSpore itself compares when it starts."""
    pair = _by_table("mindspore", mindspore, "cann", cann)
    rows, nearest = applicable("mindspore", mindspore, "cann-inner")
    if pair.verdict == "ok" or not rows or nearest:
        return pair
    inner = inner_of_market(cann)
    if inner is None:
        return pair
    accepted = [v for r in rows for t in r.b_spec if (w := read_version(t.removesuffix(".*"))) and (v := market_of_inner(w))]
    wanted = tuple(dict.fromkeys((*pair.wanted, *map(str, accepted))))
    fits = any(fits_any(r.b_spec, inner) for r in rows)
    return replace(pair, verdict="inside" if fits else "outside", wanted=wanted, source=rows[0].source, note=f"its check compares {inner}")


def _required(files: tuple[VersionFile, ...]) -> tuple[Pairing, ...]:
    """Inside one CANN: does each package find the others within the ranges that it requires?"""
    have = {f.component: f for f in files if f.kind == "component" and f.inner and f.component}
    for file in files:
        if file.kind == "cfg":
            for part in file.parts:
                if part.state == "running":
                    have.setdefault(part.name, VersionFile(file.path, "component", part.name, part.version, part.inner))
    pairs = []
    for file in have.values():
        for name, wanted in file.requires.items():
            other = have.get(name)
            if file.inner is None or other is None or other.inner is None:
                continue
            verdict: Verdict = "ok" if wanted.holds(other.inner) else "outside"
            pairs.append(_pair(file.component, file.inner, name, other.inner, verdict, (wanted.text,), _paths(file, other), wants=name))
    return tuple(pairs)


# ------------------------------------------------------------------------------ the tables


def _by_table(a: str, a_version: Version, b: str, b_version: Version) -> Pairing:
    rows, nearest = applicable(a, a_version, b)
    wanted = tuple(dict.fromkeys(t for kind in ("tested", "range") for r in rows if r.kind == kind for t in r.b_spec))
    if not rows:
        return _pair(a, a_version, b, b_version, "unknown")
    if nearest and series(a, a_version) != series(a, parse_version(nearest)):
        return replace(_pair(a, a_version, b, b_version, "unknown", wanted, rows[0].source), nearest=nearest)
    hit = next((r for kind in ("tested", "range") for r in rows if r.kind == kind and fits_any(r.b_spec, b_version)), None)
    verdict: Verdict
    if hit is not None:
        verdict = "ok" if hit.kind == "tested" and not nearest and not _kin(hit, b_version) else "inside"
    elif any(series(b, b_version) == series(b, v) for r in rows for t in r.b_spec if (v := exact(t)) is not None):
        verdict = "inside"
    else:  # posts of torch_npu belong to other CANNs: what its neighbour needs says little
        verdict = "unknown" if nearest and a in ("torch_npu", "vllm-ascend") else "outside"
    return replace(
        _pair(a, a_version, b, b_version, verdict, wanted, (hit or rows[0]).source), nearest=nearest, note=hit.note if hit else ""
    )


def _kin(row: Row, version: Version) -> bool:
    """It fits a row only by the family of a `.*`: official, but not the named release."""
    return (
        row.b != "python"
        and not any(exact(t) is not None and fits(t, version) for t in row.b_spec)
        and not any(".." in t for t in row.b_spec)
    )


def _base(version: Version) -> Version:
    return version.public


def _broken(file: VersionFile) -> bool:
    return any(c.kind == "version-file-binary" for c in file.complaints)


def _paths(*files: VersionFile) -> str:
    return "; ".join(f.path for f in files)


def _pair(
    a: str,
    a_version: Version,
    b: str,
    b_version: Version,
    verdict: Verdict,
    wanted: tuple[str, ...] = (),
    source: str = "",
    *,
    wants: str = "",
    note: str = "",
) -> Pairing:
    return Pairing(a, a_version, b, b_version, verdict, wanted, source, wants or b, note=note)
