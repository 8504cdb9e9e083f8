"""The table of versions that go together: compat.csv, and what follows from two of its rows.

In: compat.csv.  Out: `Row`s about a pair, whether a version fits a row's words, what counts as one series; compat.py and matching.py judge with them.
`8.1.RC1` is one release, `25.5.*` a family, `3.9..3.11` a range of prefixes, `>=8.0.0` a lower bound.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from jumar.device.ascend.versions import Version, inner_of_market, parse_version, read_version, within


@dataclass(frozen=True)
class Row:
    """A line of compat.csv.   kind: tested (a named pair), range (official), declared (a package's own words)."""

    a: str
    a_spec: tuple[str, ...]
    b: str
    b_spec: tuple[str, ...]
    kind: str
    source: str
    note: str


def releases(component: str) -> tuple[Version, ...]:
    """Every release of a component that the tables name, in order."""
    named = [
        t for r in all_rows() for c, spec in ((r.a, r.a_spec), (r.b, r.b_spec)) if c == component and r.kind != "declared" for t in spec
    ]
    return tuple(sorted({v for t in named if (v := exact(t)) is not None}))


def near_releases(component: str, version: Version, count: int = 3) -> tuple[Version, ...]:
    """The releases of the tables that are nearest to one that they lack: of its branch, else of its first two numbers, else its neighbours.

    >>> [str(v) for v in near_releases("cann", parse_version("8.1"))]
    ['8.1.RC1']
    >>> [str(v) for v in near_releases("cann", parse_version("V100R001C21"))]
    ['8.1.RC1']
    """
    every = [v for v in releases(component) if not any(n in ("alpha", "beta", "dev") for n, _ in v.stages)]
    if version.branch:
        return tuple(v for v in every if declared(component, v)[0] == version.branch and _own_branch(component, v))[:count]
    same = [v for v in every if (v.major, v.minor) == (version.major, version.minor)]
    if same:
        return tuple(sorted(same)[-count:])
    below, above = [v for v in every if v < version], [v for v in every if v > version]
    return (*below[-1:], *above[: count - 1])


def _own_branch(component: str, version: Version) -> bool:
    """Its branch is told of this very release, not of its series."""
    return any(r.a == component and r.b == "inner-version" and r.kind == "declared" and fits_any(r.a_spec, version) for r in all_rows())


@lru_cache(maxsize=8192)
def applicable(a: str, version: Version, b: str) -> tuple[tuple[Row, ...], str]:
    """The rows about this version of a and any b; where there are none, those of the nearest version that has some, and its name."""
    every = rows_of(a, b)
    rows = tuple(r for r in every if r.kind != "declared" and fits_any(r.a_spec, version))
    if rows or not every:
        return rows, ""
    starts = sorted({v for r in every if r.kind != "declared" for t in r.a_spec if (v := start(t)) is not None})
    same = [v for v in starts if series(a, v) == series(a, version)]
    below = [v for v in (same or starts) if v <= version] or [v for v in (same or starts) if v > version][:1]
    if not below:
        return (), ""
    return tuple(r for r in every if r.kind != "declared" and fits_any(r.a_spec, below[-1])), str(below[-1])


@lru_cache(maxsize=8192)
def declared(component: str, version: Version) -> tuple[str, tuple[str, ...], str]:
    """The branch of a release, the branches that it says it goes with (its own words, else those of its series), and the source."""
    about = [r for r in all_rows() if r.a == component and r.kind == "declared"]
    own = [r for r in about if fits_any(r.a_spec, version)]
    near = [r for r in about if any((v := start(t)) is not None and series(component, v) == series(component, version) for t in r.a_spec)]
    branch = next((r for r in (*own, *near) if r.b == "inner-version"), None)
    serves = next((r for r in (*own, *near) if r.b == "serves"), None)
    sources = dict.fromkeys(r.source for r in (serves, branch) if r)
    return parse_version(branch.b_spec[0]).branch if branch else "", serves.b_spec if serves else (), "; ".join(sources)


@cache
def all_rows() -> tuple[Row, ...]:
    """The lines of compat.csv and those that follow from two of them."""
    text = (Path(__file__).parent / "compat.csv").read_text(encoding="utf-8")
    rows = [
        Row(a, tuple(va.split()), b, tuple(vb.split()), kind, source, note)
        for a, va, b, vb, kind, source, note in list(csv.reader(text.splitlines()))[1:]
    ]
    return (*rows, *_through_adapter(rows), *_through_vllm(rows))


@cache
def rows_of(a: str, b: str) -> tuple[Row, ...]:
    return tuple(r for r in all_rows() if r.a == a and r.b == b)


def _through_adapter(rows: list[Row]) -> list[Row]:
    """torch_npu goes with what its FrameworkPTAdapter goes with."""
    ranges = {r.a_spec[0]: r for r in rows if r.a == "pta" and r.b == "cann"}
    return [
        Row("torch_npu", r.a_spec, "cann", w.b_spec, "range", w.source, "")
        for r in rows
        if r.b == "pta" and r.a == "torch_npu" and (w := ranges.get(r.b_spec[0]))
    ]


def _through_vllm(rows: list[Row]) -> list[Row]:
    """A release of vllm-ascend was tested with its torch_npu on its CANN: a named pair of the two, too."""
    cann = {r.a_spec[0]: r.b_spec for r in rows if r.a == "vllm-ascend" and r.b == "cann"}
    return [
        Row("torch_npu", r.b_spec, "cann", cann[r.a_spec[0]], "tested", r.source, f"with vllm-ascend {r.a_spec[0]}")
        for r in rows
        if r.a == "vllm-ascend" and r.b == "torch_npu" and r.a_spec[0] in cann
    ]


def fits_any(spec: tuple[str, ...], version: Version) -> bool:
    return any(fits(token, version) for token in spec)


@lru_cache(maxsize=8192)
def fits(token: str, version: Version) -> bool:
    """Does the version fit a word of the table?"""
    if token.startswith(">="):
        return version >= parse_version(token[2:])
    if ".." in token:
        low, _, high = token.partition("..")
        return within(version, parse_version(low), parse_version(high))
    if token.endswith(".*"):
        head = parse_version(token[:-2])
        if head.stages:
            name, numbers = head.stages[0]
            return version.release == head.release and any(n == name and v[: len(numbers)] == numbers for n, v in version.stages[:1])
        return (version.release + (0,) * len(head.release))[: len(head.release)] == head.release
    return version.public == parse_version(token).public


@cache
def exact(token: str) -> Version | None:
    """The release that a word names; None for a family, a range, a bound."""
    return None if token.endswith("*") or ".." in token or token.startswith(">") else parse_version(token)


@cache
def start(token: str) -> Version | None:
    """Where a word's versions begin."""
    return read_version(token.removeprefix(">=").partition("..")[0].removesuffix(".*"))


@lru_cache(maxsize=8192)
def series(component: str, version: Version) -> tuple[object, ...]:
    """What changes only by patches within: the inner x.y of CANN, an RC line of a driver, the three numbers of torch."""
    match component:
        case "cann" | "kernels" | "nnal":
            inner = inner_of_market(version)
            return (inner.release,) if inner else (version.major, version.minor, version.stages[:1])
        case "driver":
            return (version.major, version.minor, version.stages[0][1][:1] if version.stages else ())
        case "python":
            return version.release[:2]
        case _:
            return version.release[:3]
