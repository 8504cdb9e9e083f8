"""A machine's versions and its files' hashes at one time, kept as a JSON file, to be held against a later one.

In: a `Machine` (gather.py) and the files that its CANN and driver have.  Out: `Snapshot`, saved below the setting `snapshot_dir`; changes.py compares two.
A file that was changed by hand or broke is refused by name: it carries its own hash.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from jumar.base import Said, ToolError, config, nearest, reason
from jumar.tools.doctor.collect import ANOTHER_NAME, write_whole
from jumar.tools.doctor.machine import Machine, not_read
from jumar.tools.doctor.neutralise import Neutral
from jumar.tools.doctor.view import View, view

FORMAT = 1
GROUPS = ("driver", "firmware", "cann", "framework", "python", "system")
MOST_FILES = 1500
MOST_NBYTES = 4 << 30  # of files that are hashed; of those beyond it the size is kept
FRAMEWORKS = (  # packages that are a framework or one of its plug-ins
    "mindspore", "mindspore-ascend", "mindspore-lite", "mindformers", "vllm-mindspore", "torch", "torch-npu", "torchvision", "torchvision-npu", "apex",
    "vllm", "vllm-ascend", "triton", "triton-ascend", "mindie", "mindspeed", "mindspeed-llm", "deepspeed", "megatron-core", "tensorflow", "npu-device",
    "onnxruntime", "onnxruntime-cann", "paddlepaddle", "paddle-custom-npu", "transformers", "accelerate",
)  # fmt: skip
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}")
_VOLATILE = ("/proc/", "/var/log/", "/sys/", "/dev/")
_NOT_KEPT = ("USER", "HOME", "LANG")  # of the environment: they tell nothing of the software
_LIBRARIES = ("lib64", "lib64/driver", "lib64/common", "lib64/inner")  # below the driver
_OF_CANN = (
    "lib64",
    "*-linux/lib64",
    "runtime/lib64",
    "compiler/lib64",
    "opp/built-in/op_impl/ai_core/tbe/op_tiling/lib/linux/*",
    "hccl/lib64",
)


@dataclass(frozen=True)
class Stored:
    """A file.   sha256: empty where only its size was kept."""

    nbytes: int
    sha256: str = ""


@dataclass(frozen=True)
class Snapshot:
    """versions: by group of GROUPS, name -> version; files: by absolute path; taken: when, as ISO writes it; chip: as npu-smi names it."""

    name: str
    taken: str
    note: str = ""
    chip: str = ""
    arch: str = ""
    versions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    files: Mapping[str, Stored] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def version(self, group: str, name: str) -> str:
        return self.versions.get(group, {}).get(name, "")


Progress = Callable[[int], None]


# ------------------------------------------------------------------------------ taking one


def take(machine: Machine, name: str, taken: str, note: str = "", root: Path = Path("/"), progress: Progress = lambda _: None) -> Snapshot:
    """The snapshot of this machine.   taken: the time; root: for tests; progress: is told of bytes that were read."""
    v = view(machine)
    notes = list(machine.notes)
    identity = machine.identity
    neutral = Neutral()
    return Snapshot(
        name=name,
        taken=taken,
        note=note,
        chip=v.generation[1].value if v.generation else "",
        arch=identity.arch.value if identity.arch else "",
        versions=_versions(v),
        files=dict(_hashed(files_of(v, root), root, notes, progress)),
        environment={n: _without_secrets(neutral, n, s.value) for n, s in sorted(machine.environment.items()) if n not in _NOT_KEPT},
        notes=tuple(notes),
    )


def _without_secrets(neutral: Neutral, name: str, value: str) -> str:
    return neutral.secretless(f"{name}={value}").partition("=")[2]


def files_of(v: View, root: Path = Path("/")) -> tuple[Path, ...]:
    """The files that are hashed: small ones that tell versions and settings first, then the driver's libraries, then CANN's."""
    small = [root / path.lstrip("/") for path in v.machine.files if not path.startswith(_VOLATILE)]
    homes = [root / home.lstrip("/") for release in v.releases for home in release.homes]
    nnal = sorted(root.glob("usr/local/Ascend/nnal/atb/*"))
    scripts = [parent / "set_env.sh" for parent in dict.fromkeys((*homes, *(h.parent for h in homes), *nnal, *(h.parent for h in nnal)))]
    driver = root / "usr/local/Ascend/driver"
    libraries = [file for part in _LIBRARIES for file in sorted((driver / part).glob("*.so*"))]
    libraries += [file for home in homes for part in _OF_CANN for file in sorted(home.glob(f"{part}/*.so*"))]
    libraries += [file for home in nnal for file in sorted(home.glob("atb/*/lib/*.so*"))]
    found: dict[Path, None] = {}
    for file in (*small, *scripts, *libraries):
        with suppress(OSError):  # a link and what it points to are one file
            if file.is_file():
                found.setdefault(file.resolve())
    return tuple(found)[:MOST_FILES]


def nbytes_of(files: Iterable[Path]) -> int:
    total = 0
    for file in files:
        with suppress(OSError):
            total += file.stat().st_size
    return min(total, MOST_NBYTES)


def _hashed(files: Iterable[Path], root: Path, notes: list[str], progress: Progress) -> Iterator[tuple[str, Stored]]:
    room, top = MOST_NBYTES, root.resolve()
    for file in files:
        path = "/" + str(file.relative_to(top)) if file.is_relative_to(top) else str(file)
        try:
            size = file.stat().st_size
            if size > room:
                yield path, Stored(size)
                continue
            room -= size
            digest = hashlib.sha256()
            with file.open("rb") as stream:
                while chunk := stream.read(4 << 20):
                    digest.update(chunk)
                    progress(len(chunk))
            yield path, Stored(size, digest.hexdigest())
        except OSError as error:
            notes.append(not_read(path, error))


def _versions(v: View) -> dict[str, dict[str, str]]:
    """What is installed, by group."""
    found: dict[str, dict[str, str]] = {group: {} for group in GROUPS}

    def add(group: str, name: str, value: str) -> None:
        if value:
            found[group][name] = value

    add("driver", "driver", v.driver_version.value if v.driver_version else "")
    add("driver", "npu-smi", next((s.read.tool for s in v.smi if s.read.tool), ""))
    add("firmware", "firmware", v.firmware["Version"].value if "Version" in v.firmware else "")
    used = v.used
    if used:
        add("cann", "CANN", used.version)
        for part, keys in sorted(used.parts.items()):
            add("cann", part, keys["Version"].value if "Version" in keys else "")
        if used.kernels:
            add("cann", "kernels for", ", ".join(sorted(n for n in used.kernels.names() if n.startswith("ascend"))))
    for release in v.releases:
        if release is not used:
            add("cann", f"CANN {release.version}", release.homes[0])
    for path, text in v.machine.glob("*/nnal/atb/*version.info"):
        stated = re.search(r"Ascend-cann-atb\s*:\s*(\S+)", text.text)
        add("cann", "nnal" if "/latest/" in path or "nnal" not in found["cann"] else f"nnal {path}", stated[1] if stated else "")
    for name, seen in sorted(v.machine.packages.items()):
        add("framework" if name in FRAMEWORKS else "python", name, seen.value)
    identity = v.machine.identity
    for name in ("os", "kernel", "arch", "glibc", "glibcxx"):
        told = getattr(identity, name)
        add("system", name, told.value if told else "")
    add("python", "Python", identity.python.value if identity.python else "")
    return found


def group_of(path: str) -> str:
    """The group that a file belongs to."""
    if "/driver/" in path:
        return "driver"
    if "/firmware/" in path:
        return "firmware"
    return "cann" if re.search(r"/(?:ascend-toolkit|cann[\w.-]*|nnae|nnrt|nnal)/", path) else "system"


# ------------------------------------------------------------------------------ keeping them


def folder() -> Path:
    return Path(config("snapshot_dir"))


def names() -> tuple[str, ...]:
    """The snapshots by name, the oldest first, by the time that they say; a damaged one by its file's."""
    found = []
    with suppress(OSError):
        for file in folder().glob("*.json"):
            if _NAME.fullmatch(file.stem):
                written = file.stat().st_mtime_ns
                found.append((_taken(file.stem) or written / 1e9, written, file.stem))
    return tuple(name for *_, name in sorted(found))


def _taken(name: str) -> float:
    """When, in seconds; 0 where that cannot be read."""
    try:
        return datetime.strptime(load(name).taken, "%Y-%m-%dT%H:%M:%S%z").timestamp()
    except (ToolError, ValueError):
        return 0.0


def save(snapshot: Snapshot, *, force: bool = False) -> Path:
    """Writes it whole or not at all."""
    path = _path(snapshot.name)
    if path.exists() and not force:
        raise ToolError(
            Said(f"snapshot: name must be new, got {snapshot.name!r}", f"snapshot：已有名为 {snapshot.name!r} 的快照"),
            hint=ANOTHER_NAME,
            code="snapshot-name",
        )
    document: dict[str, Any] = {"format": FORMAT, **asdict(snapshot)}
    document["sha256"] = _seal(document)
    write_whole(path, (json.dumps(document, indent=1) + "\n").encode(), "snapshot-name")
    return path


def load(name: str) -> Snapshot:
    """The snapshot of this name; raises ToolError where there is none or its file is damaged."""
    path = _path(name)
    if not path.is_file():
        known = names()
        hint = nearest(name, list(known)) or ("jumar snapshot list" if known else "jumar snapshot save")
        raise ToolError(
            Said(f"snapshot: name must be one that was saved, got {name!r}", f"snapshot：没有名为 {name!r} 的快照"),
            hint=hint,
            code="snapshot-missing",
        )
    try:
        document = json.loads(path.read_bytes())
        seal = document.pop("sha256")
        if document["format"] != FORMAT:
            raise _damaged(
                path,
                Said(f"format {document['format']}, this Jumar reads {FORMAT}", f"格式为 {document['format']}，本版 Jumar 只读 {FORMAT}"),
            )
        if seal != _seal(document):
            raise _damaged(path, Said("another content than was written", "内容与保存时不同"))
        del document["format"]
        files = {name: Stored(**one) for name, one in document.pop("files").items()}
        return Snapshot(**{**document, "files": files, "notes": tuple(document["notes"])})
    except OSError as error:
        raise _damaged(path, reason(error)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(path, Said("no whole snapshot", "不是完整的快照")) from error


def _damaged(path: Path, got: Said) -> ToolError:
    return ToolError(
        Said(f"{path}: snapshot must be as it was written, got {got}", f"{path}：快照无法使用：{got.zh}"),
        hint=Said(f"remove it: rm {path}", f"删除它：rm {path}"),
        code="snapshot-damaged",
    )


def _seal(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _path(name: str) -> Path:
    if not _NAME.fullmatch(name) or name == "now":
        raise ToolError(
            Said(
                f"snapshot: name must be letters, digits and . _ + -, got {name[:80]!r}",
                f"snapshot：名字只能由字母、数字和 . _ + - 组成，不能是 {name[:80]!r}",
            ),
            hint=Said("such as before-8.2", "例如 before-8.2"),
            code="snapshot-name",
        )
    return folder() / f"{name}.json"
