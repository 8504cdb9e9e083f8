"""A complete set of versions that fits what the user holds fast, and the steps that lead to it, in their order.

In: versions that must stay, versions that are installed, the chip.  Out: `MatchingSet`, or the two requirements that contradict each other.
The set changes as little as possible: a driver costs a reboot, CANN less, a wheel least.  Only pairs that the tables name are proposed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Literal

from jumar.device.ascend.compat import PAIRS, Pairing, judge, judged, pairings
from jumar.device.ascend.compat_table import exact, fits_any, releases, rows_of
from jumar.device.ascend.packages import OPS_SINCE, first_cann_of_chip, package_of
from jumar.device.ascend.versions import Version, parse_version

Action = Literal["install", "upgrade", "downgrade", "reboot", "source"]


@dataclass(frozen=True)
class Step:
    """One thing to do.   package: the file or the pip requirement; command: what does it, for the user to run; was: what is there now."""

    action: Action
    component: str = ""
    version: str = ""
    was: str = ""
    package: str = ""
    command: str = ""


@dataclass(frozen=True)
class Contradiction:
    """Two requirements that no version of `over` meets.   one, other: what requires, as `torch_npu 2.5.1`; the versions that each allows."""

    one: str
    other: str
    over: str
    one_allows: tuple[str, ...] = ()
    other_allows: tuple[str, ...] = ()


@dataclass(frozen=True)
class MatchingSet:
    """versions: the whole set, empty where there is none; pairings: of it; steps: from what is installed; unknown: fixed parts that no table knows."""

    versions: Mapping[str, Version] = field(default_factory=dict)
    pairings: tuple[Pairing, ...] = ()
    steps: tuple[Step, ...] = ()
    contradiction: Contradiction | None = None
    unknown: tuple[str, ...] = ()


_FRAMEWORKS = ("mindspore", "torch_npu", "vllm-ascend", "mindie", "mindspeed")
_PYTHONS = ("3.11", "3.10", "3.9", "3.12", "3.8", "3.13", "3.7", "3.14")
_COST = {"driver": 6, "firmware": 1, "cann": 4, "python": 3, "mindspore": 2, "torch_npu": 2, "vllm-ascend": 2, "mindie": 2, "mindspeed": 2}
_INSIDE_COST = 100  # a named pair is preferred to any number of changes
_NNAL_SINCE = parse_version("8.0.RC3")
_CHOICES = 8


def matching_set(
    fixed: Mapping[str, Version], installed: Mapping[str, Version] | None = None, *, soc: str = "", arch: str = "aarch64"
) -> MatchingSet:
    """The set that fits `fixed` and changes least of `installed`; soc, arch: for the packages' names.

    >>> found = matching_set({"mindspore": parse_version("2.6.0")})
    >>> {part: str(v) for part, v in found.versions.items() if part in ("driver", "cann", "python")}
    {'driver': '25.0.RC1', 'cann': '8.1.RC1', 'python': '3.11'}
    """
    have = dict(installed or {})
    held = {c: _known_spelling(c, v) for c, v in fixed.items() if c in _SET or c in ("vllm", "torch", "pta")}
    unknown = tuple(f"{c} {v}" for c, v in held.items() if not _known(c, v))
    if unknown:
        return MatchingSet(unknown=unknown)
    first = first_cann_of_chip(soc)
    if first and "cann" in held and held["cann"] < first[0]:
        return MatchingSet(contradiction=Contradiction(f"cann {held['cann']}", soc, "cann", (str(held["cann"]),), (f">={first[0]}",)))
    best: tuple[tuple[int, int, tuple[int, ...]], dict[str, Version]] | None = None
    ranks = {v: i for i, v in enumerate(_canns(held)) if not first or v >= first[0]}
    for cann, rank in ranks.items():
        for candidate in _candidates(cann, held, have):
            cost = _cost(candidate, held, have)
            key = (cost, -rank, tuple(-n for n in _newness(candidate)))
            if best is None or key < best[0]:
                best = key, candidate
    if best is None:
        return MatchingSet(contradiction=contradiction(held))
    chosen = {c: best[1][c] for c in _SET if c in best[1]}
    return MatchingSet(chosen, pairings(chosen), steps(chosen, have, soc=soc, arch=arch))


def contradiction(fixed: Mapping[str, Version]) -> Contradiction | None:
    """The first two of `fixed` that exclude each other, directly or over the CANN or the Python that both need."""
    for a, b in PAIRS:
        if a in fixed and b in fixed and (pair := judge(a, fixed[a], b, fixed[b])).verdict == "outside":
            one, other = (a, b) if pair.wants == b else (b, a)
            return Contradiction(f"{one} {fixed[one]}", f"{other} {fixed[other]}", pair.wants, pair.wanted, (str(fixed[other]),))
    for over, candidates in (("cann", releases("cann")), ("python", tuple(map(parse_version, sorted(_PYTHONS, key=_numbers))))):
        allowed = [
            (c, tuple(x for x in candidates if judge(*_ordered(c, v, over, x)).verdict in ("ok", "inside")))
            for c, v in fixed.items()
            if _paired(c, over)
        ]
        for i, (c, mine) in enumerate(allowed):
            for d, theirs in allowed[i + 1 :]:
                if mine and theirs and not set(mine) & set(theirs):
                    return Contradiction(f"{c} {fixed[c]}", f"{d} {fixed[d]}", over, tuple(map(str, mine)), tuple(map(str, theirs)))
    return None


def steps(wanted: Mapping[str, Version], installed: Mapping[str, Version], *, soc: str = "", arch: str = "aarch64") -> tuple[Step, ...]:
    """What to do, in order: card first (firmware before driver where both are there, driver before firmware on a fresh machine), then upwards."""
    changed = {c: v for c, v in wanted.items() if c not in installed or not _same(c, installed[c], v)}
    if "driver" in installed and "driver" not in changed and "firmware" not in installed:
        changed.pop("firmware", None)  # not visible (a container), not missing
    card = ("firmware", "driver") if "driver" in installed else ("driver", "firmware")
    done = [_step(c, changed[c], installed, soc, arch, wanted) for c in card if c in changed]
    if done:
        done.append(Step("reboot", command="reboot"))
    done += [_step(c, changed[c], installed, soc, arch, wanted) for c in ("python", "cann") if c in changed]
    if "cann" in changed:
        done.append(Step("source", "cann", command=f"source {_set_env(changed['cann'])}"))
    done += [
        _step(c, changed[c], installed, soc, arch, wanted)
        for c in _SET
        if c in changed and c not in ("driver", "firmware", "python", "cann")
    ]
    return tuple(done)


# ------------------------------------------------------------------------------ the search

_SET = (
    "driver",
    "firmware",
    "cann",
    "kernels",
    "nnal",
    "python",
    "mindspore",
    "torch",
    "torch_npu",
    "vllm",
    "vllm-ascend",
    "triton-ascend",
    "mindie",
    "mindspeed",
)


def _known_spelling(component: str, version: Version) -> Version:
    """The table's spelling of a version: 2.6 is 2.6.0, a first number of python's three suffices."""
    return next((v for v in releases(component) if v in (version, version.public)), version)


def _known(component: str, version: Version) -> bool:
    """Some pair of it can be judged."""
    if component in ("kernels", "nnal", "firmware"):
        return True
    for a, b in PAIRS:
        if component == a == "torch":
            return any(v.release[:3] == version.release[:3] for v in releases("torch_npu"))
        if component in (a, b) and component != "python":
            other = b if component == a else a
            if any(judge(*_ordered(component, version, other, v)).verdict in ("ok", "inside") for v in releases(other)):
                return True
    return component in ("python", "vllm", "pta")


def _canns(held: Mapping[str, Version]) -> list[Version]:
    return [held["cann"]] if "cann" in held else [v for v in releases("cann") if not any(n in ("alpha", "beta") for n, _ in v.stages)]


def _candidates(cann: Version, held: Mapping[str, Version], have: Mapping[str, Version]) -> Iterator[dict[str, Version]]:
    """Sets around one CANN, without those that hold an outside or unknown pair."""
    drivers = _options("driver", "cann", cann, held, have)
    lists = [_options(f, "cann", cann, held, have) for f in _wanted_frameworks(held, have)]
    optional = not _asked(held, have)
    if optional:
        lists = [options or [()] for options in lists]
    for combination in product(*lists):
        stack = {name: version for choice in combination for name, version in choice}
        base = {
            "cann": cann,
            "kernels": held.get("kernels", cann),
            **({"nnal": held.get("nnal", cann)} if cann >= _NNAL_SINCE or "nnal" in held else {}),
            **stack,
        }
        if any(held.get(name, version) != version and not fits_any((str(held[name]),), version) for name, version in stack.items()):
            continue
        python = _python(base, held, have)
        if python is None:
            continue
        for ((_, driver),) in drivers[:_CHOICES]:
            made = {**base, "python": python, "driver": driver, "firmware": _firmware_for(driver, held, have)}
            if all(p.verdict in ("ok", "inside") for p in judged(made)):
                yield made


_Choice = tuple[tuple[str, Version], ...]


def _options(component: str, beside: str, cann: Version, held: Mapping[str, Version], have: Mapping[str, Version]) -> list[_Choice]:
    """The versions of a framework or driver that go with this CANN, each with what it brings; named pairs before others, new before old."""
    if component in held:
        versions = [held[component]]
    else:
        named = [
            v
            for v in releases(component)
            if judge(*_ordered(component, v, beside, cann)).verdict == "ok" and not any(n == "dev" for n, _ in v.stages)
        ]
        versions = sorted(
            named,
            key=lambda v: (
                component in have and not _same(component, have[component], v),
                v.trial,
                tuple(-n for n in v.release),
                -_posts(v),
            ),
        )
        if component == "torch_npu" and "torch" in held:
            versions = [v for v in versions if v.release[:3] == held["torch"].release[:3]]
        if (
            component in have
            and have[component] not in versions
            and judge(*_ordered(component, have[component], beside, cann)).verdict in ("ok", "inside")
        ):
            versions.append(have[component])
        versions = versions[:_CHOICES]
    return [choice for v in versions for choice in _brought(component, v, held)]


def _brought(component: str, version: Version, held: Mapping[str, Version]) -> Iterator[_Choice]:
    """A framework with the parts that its own table names for it."""
    match component:
        case "torch_npu":
            torch = held.get("torch", parse_version(".".join(map(str, version.release[:3]))))
            yield ((component, version), ("torch", torch))
        case "vllm-ascend":
            parts: list[tuple[str, Version]] = [(component, version)]
            for name in ("vllm", "torch_npu", "torch", "triton-ascend"):
                named = [
                    v for r in rows_of("vllm-ascend", name) if fits_any(r.a_spec, version) for t in r.b_spec if (v := exact(t)) is not None
                ]
                if named:
                    parts.append((name, held[name] if name in held and held[name] in named else named[-1]))
            yield tuple(parts)
        case _:
            yield ((component, version),)


def _asked(held: Mapping[str, Version], have: Mapping[str, Version]) -> bool:
    return any(f in held or f in have for f in (*_FRAMEWORKS, "torch", "vllm"))


def _wanted_frameworks(held: Mapping[str, Version], have: Mapping[str, Version]) -> list[str]:
    """The frameworks that the set must hold; MindSpore and torch_npu where none is named, each if it has a release for the CANN."""
    if not _asked(held, have):
        return ["mindspore", "torch_npu"]
    asked = {f for f in _FRAMEWORKS if f in held or f in have}
    asked |= {"torch_npu"} if "torch" in held else set()
    asked |= {"vllm-ascend"} if "vllm" in held else set()
    return [f for f in _FRAMEWORKS if f in asked and not (f == "torch_npu" and "vllm-ascend" in asked)]


def _python(made: Mapping[str, Version], held: Mapping[str, Version], have: Mapping[str, Version]) -> Version | None:
    choices = [held["python"]] if "python" in held else [*([have["python"]] if "python" in have else []), *map(parse_version, _PYTHONS)]

    def worst(python: Version) -> set[str]:
        return {p.verdict for p in judged({**made, "python": python}) if p.a == "python"}

    fitting = [p for p in choices if "outside" not in worst(p)]
    return next((p for p in fitting if worst(p) <= {"ok"}), fitting[0] if fitting and "python" in held else None)


def _firmware_for(driver: Version, held: Mapping[str, Version], have: Mapping[str, Version]) -> Version:
    """The firmware of the driver's own HDK, by its number where the table knows it."""
    for source in (held, have):
        if "firmware" in source and (source is held or judge("driver", driver, "firmware", source["firmware"]).verdict == "ok"):
            return source["firmware"]
    named = [
        v
        for r in rows_of("firmware", "driver")
        if r.kind == "tested" and fits_any(r.b_spec, driver)
        for t in r.a_spec
        if (v := exact(t)) is not None
    ]
    return named[0] if named else driver


def _cost(made: Mapping[str, Version], held: Mapping[str, Version], have: Mapping[str, Version]) -> int:
    changes = sum(_COST.get(c, 1) for c, v in made.items() if c in have and not _same(c, have[c], v))
    loose = sum(p.verdict != "ok" for p in judged(made))
    missing = 0 if _asked(held, have) else sum(f not in made for f in ("mindspore", "torch_npu"))
    return changes + _INSIDE_COST * loose + missing


def _newness(made: Mapping[str, Version]) -> tuple[int, ...]:
    frameworks = [
        n for f in ("mindspore", "torch_npu", "vllm-ascend") if f in made for n in (*(made[f].release + (0,) * 3)[:3], _posts(made[f]))
    ]
    return (*frameworks, *made["driver"].release[:3], -len(made["driver"].stages))


def _posts(version: Version) -> int:
    return next((numbers[0] for name, numbers in version.stages if name == "post" and numbers), 0)


def _same(component: str, one: Version, other: Version) -> bool:
    if component == "python":
        return one.release[:2] == other.release[:2]
    if component == "firmware" and (one.major >= 20) != (other.major >= 20):
        return False
    return one.public == other.public


def _paired(component: str, over: str) -> bool:
    return (component, over) in PAIRS or (over, component) in PAIRS


def _ordered(a: str, a_version: Version, b: str, b_version: Version) -> tuple[str, Version, str, Version]:
    return (a, a_version, b, b_version) if (a, b) in PAIRS else (b, b_version, a, a_version)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split("."))


# ------------------------------------------------------------------------------ the steps


def _step(component: str, version: Version, installed: Mapping[str, Version], soc: str, arch: str, wanted: Mapping[str, Version]) -> Step:
    was = installed.get(component)
    action: Action = "install" if was is None else "downgrade" if version < was else "upgrade"
    package = package_of(component, version, soc=soc, arch=arch)
    match component:
        case "driver" | "firmware":
            fresh = "--full --install-for-all" if component == "driver" else "--full"
            command = f"./{package} {fresh if was is None else '--upgrade'}"
        case "cann" | "kernels" | "nnal" | "mindie":
            # from 8.5 on an older release cannot be laid over a newer one
            command = f"./{package} --upgrade" if action == "upgrade" else f"./{package} --install"
            if action == "downgrade":
                command = f"./{package_of(component, was or version, soc=soc, arch=arch)} --uninstall && {command}"
        case "python":
            command = f"conda create -n ascend python={version.major}.{version.minor}"
        case _:
            command = f"pip install {package}"
    return Step(action, component, str(version), str(was or ""), package, command)


def _set_env(cann: Version) -> str:
    return "/usr/local/Ascend/cann/set_env.sh" if cann >= OPS_SINCE else "/usr/local/Ascend/ascend-toolkit/set_env.sh"
