"""What is different between two snapshots, in words, and the way back.

In: two `Snapshot`s.  Out: `Changes`: components by group, files that changed though the version did not, pairs that fit worse, steps back; shown by
jumar.tools.snapshot.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jumar.device.ascend import Pairing, Step, Version, pairings, read_version, steps
from jumar.tools.doctor.snapshot import GROUPS, Snapshot, group_of

_NAMED = 6  # files of a group that are named; the others are counted
_COMPONENTS = {  # group, name -> what the version tables call it
    ("driver", "driver"): "driver",
    ("firmware", "firmware"): "firmware",
    ("cann", "CANN"): "cann",
    ("cann", "nnal"): "nnal",
    ("framework", "mindspore"): "mindspore",
    ("framework", "mindspore-ascend"): "mindspore",
    ("framework", "torch"): "torch",
    ("framework", "torch-npu"): "torch_npu",
    ("framework", "vllm"): "vllm",
    ("framework", "vllm-ascend"): "vllm-ascend",
    ("framework", "triton-ascend"): "triton-ascend",
    ("framework", "mindspeed"): "mindspeed",
    ("framework", "mindie"): "mindie",
    ("python", "Python"): "python",
}
_WORSE = {"ok": 0, "inside": 1, "unknown": 2, "outside": 3}


@dataclass(frozen=True)
class Change:
    """One difference.   kind: version, variable, file; files: name of them changed with the version, old of them went, new of them came;
    more: name of them are not listed.   old, new: empty where it was, or is, not there; warning: it is not what an upgrade does.
    """

    group: str
    kind: str
    name: str
    old: str = ""
    new: str = ""
    warning: bool = False


@dataclass(frozen=True)
class Worse:
    """A pair that fits worse than before: its verdicts, and the versions that would fit."""

    now: Pairing
    before: str


@dataclass(frozen=True)
class Changes:
    """changes: in the order of GROUPS; worse: pairs; back: official packages in their order; pip, variables, others: the rest of the way back."""

    old: Snapshot
    new: Snapshot
    changes: tuple[Change, ...]
    worse: tuple[Worse, ...] = ()
    back: tuple[Step, ...] = ()
    pip: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    others: tuple[Change, ...] = ()

    @property
    def exit_code(self) -> int:
        return 1 if self.changes else 0


def compared(old: Snapshot, new: Snapshot) -> Changes:
    """All that is different, and how to come back to `old`."""
    found = [*_versions(old, new), *_files(old, new), *_variables(old, new)]
    found.sort(key=lambda c: GROUPS.index(c.group))  # stable: within a group as they were found
    was, now = components(old), components(new)
    named = {_COMPONENTS[c.group, c.name] for c in found if c.kind == "version" and (c.group, c.name) in _COMPONENTS}
    wanted = {name: version for name, version in was.items() if name in named or (name == "kernels" and "cann" in named)}
    back = steps(wanted, now, soc=old.chip or _chip_of_kernels(old), arch=old.arch or "aarch64") if wanted else ()
    done = {step.component for step in back}
    return Changes(
        old,
        new,
        tuple(found),
        tuple(_worse(was, now)),
        back,
        tuple(_pip(found, done)),
        tuple(_exports(old, new)),
        tuple(c for c in found if c.group == "system" and c.kind in ("version", "file")),
    )


def components(snapshot: Snapshot) -> dict[str, Version]:
    """The versions that the tables of pairs know."""
    found: dict[str, Version] = {}
    for (group, name), component in _COMPONENTS.items():
        version = read_version(snapshot.version(group, name)) if snapshot.version(group, name) else None
        if version is not None:
            found.setdefault(component, version)
    if "cann" in found and snapshot.version("cann", "kernels for"):
        found["kernels"] = found["cann"]  # of the same release, where any are there
    return found


def _chip_of_kernels(snapshot: Snapshot) -> str:
    """The chip as its kernels name it, where npu-smi did not and there are those of one chip."""
    kernels = snapshot.version("cann", "kernels for").split(", ")
    return kernels[0] if len(kernels) == 1 else ""


def _versions(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    for group in GROUPS:
        was, now = old.versions.get(group, {}), new.versions.get(group, {})
        for name in dict.fromkeys((*_first(was), *_first(now))):
            if was.get(name) != now.get(name):
                yield Change(group, "version", name, was.get(name, ""), now.get(name, ""))


def _first(names: Mapping[str, str]) -> list[str]:
    """The component that names the group before its parts."""
    return sorted(names, key=lambda n: (n not in ("driver", "firmware", "CANN", "Python"), n))


def _files(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    """Files of a group whose version changed are counted; those that changed though it did not are named, with a warning."""
    for group in GROUPS:
        paths = sorted(p for p in {*old.files, *new.files} if group_of(p) == group)
        other = [p for p in paths if not _same(old, new, p)]
        if not other:
            continue
        if group in ("driver", "firmware", "cann") and old.versions.get(group) != new.versions.get(group):
            gone, come = (sum(p not in side.files for p in other) for side in (new, old))
            yield Change(group, "files", str(len(other) - gone - come), str(gone), str(come))
            continue
        for path in other[:_NAMED]:
            was, now = ("" if path not in s.files else s.files[path].sha256[:12] or f"{s.files[path].nbytes} bytes" for s in (old, new))
            yield Change(group, "file", path, was, now, warning=group != "system")
        if len(other) > _NAMED:
            yield Change(group, "more", str(len(other) - _NAMED), warning=group != "system")


def _same(old: Snapshot, new: Snapshot, path: str) -> bool:
    a, b = old.files.get(path), new.files.get(path)
    if a is None or b is None:
        return False
    return a.nbytes == b.nbytes and (a.sha256 == b.sha256 or not (a.sha256 and b.sha256))


def _variables(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    for name in sorted({*old.environment, *new.environment}):
        was, now = old.environment.get(name, ""), new.environment.get(name, "")
        if was != now:
            yield Change("system", "variable", name, was, now)


def parts_of_path(old: str, new: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What left and what came into a list of folders; both empty where only the order changed.

    >>> parts_of_path("/a/lib:/b/lib", "/b/lib:/c/lib")
    (('/a/lib',), ('/c/lib',))
    """
    was, now = ([p for p in text.split(":") if p] for text in (old, new))
    return tuple(p for p in was if p not in now), tuple(p for p in now if p not in was)


def _worse(was: Mapping[str, Version], now: Mapping[str, Version]) -> Iterator[Worse]:
    before = {(p.a, p.b): p.verdict for p in pairings(was)}
    for pair in pairings(now):
        then = before.get((pair.a, pair.b), "")
        if _WORSE[pair.verdict] > _WORSE.get(then, 1) and (then or pair.verdict == "outside"):
            yield Worse(pair, then)


def _pip(changes: list[Change], done: set[str]) -> Iterator[str]:
    """Commands that bring Python's packages back, but for those that the steps name."""
    packages = [c for c in changes if c.kind == "version" and c.group in ("framework", "python") and c.name != "Python"]
    packages = [c for c in packages if _COMPONENTS.get((c.group, c.name)) not in done]
    install = [f"{c.name}=={c.old}" for c in packages if c.old]
    remove = [c.name for c in packages if not c.old]
    if install:
        yield "pip install --no-deps " + " ".join(shlex.quote(i) for i in install)
    if remove:
        yield "pip uninstall -y " + " ".join(shlex.quote(r) for r in remove)


def _exports(old: Snapshot, new: Snapshot) -> Iterator[str]:
    for change in _variables(old, new):
        if "SECRET-" not in change.old:
            yield f"export {change.name}={shlex.quote(change.old)}" if change.name in old.environment else f"unset {change.name}"
