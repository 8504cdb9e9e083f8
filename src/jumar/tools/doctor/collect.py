"""Packs what the doctor reads of a machine, neutralised, into one archive that can be attached to an issue: `jumar doctor --collect OUT.tar.gz`.

In: a `Machine` (gather.py) and the newest logs of CANN.  Out: a tar.gz of plain texts with the manifest jumar-doctor.json, the same bytes for the
same machine, which `jumar doctor --from` reads back to the same verdict.  Written beside and renamed: nothing half-written is left.  Nothing is sent.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import platform
import re
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from jumar.base import Said, ToolError, reason
from jumar.tools.doctor.foreign import MANIFEST, MARKER, PARTIAL
from jumar.tools.doctor.layout import texts
from jumar.tools.doctor.machine import Machine, Text
from jumar.tools.doctor.neutralise import Progress, neutralised
from jumar.tools.files.text import text_of

ANOTHER_NAME = Said("another name, or --force to replace it", "换一个名字，或用 --force 覆盖")
FORMAT = 1
MOST_LOGS = 24
MOST_OF_LOG = 512 << 10  # bytes of one log: its beginning, where the first error is, and its end
MOST_OF_LOGS = 6 << 20
_BEGINNING = 192 << 10
_FOLDERS = ("root/ascend/log", "var/log/npu/slog", "var/log/ascend_seclog")


@dataclass(frozen=True)
class Collected:
    """What was written.   files: names with their sizes; replaced: distinct values by kind; machine: as it was collected, before it was neutralised."""

    path: Path
    files: Mapping[str, int]
    replaced: Mapping[str, int]
    machine: Machine

    def told(self, lang: str) -> str:
        """What its owner should know, in a few lines."""
        kinds = _KINDS[lang]
        counts = ", ".join(f"{count} {kinds[kind]}" for kind, count in self.replaced.items()) or {"en": "nothing", "zh": "无"}[lang]
        size = sum(self.files.values())
        if lang == "zh":
            return (
                f"已写入 {self.path}：{len(self.files)} 个文件，共 {size / 1024:.0f} KB，什么都没有发送\n已替换：{counts}\n"
                f"发送之前请先看一遍：tar tzf {self.path} 列出文件，tar xzOf {self.path} 显示内容\n"
                f"读回：jumar doctor --from {self.path}"
            )
        return (
            f"{self.path}: {len(self.files)} files, {size / 1024:.0f} KB; nothing was sent\nreplaced: {counts}\n"
            f"look at it before you send it: `tar tzf {self.path}` lists the files, `tar xzOf {self.path}` shows them\n"
            f"to read it back: jumar doctor --from {self.path}"
        )


_KINDS = {
    "en": {
        "user": "user names",
        "host": "host names",
        "ipv4": "IPv4 addresses",
        "ipv6": "IPv6 addresses",
        "mac": "MAC addresses",
        "mail": "e-mail addresses",
        "secret": "secrets",
        "serial": "serial numbers",
        "licence": "licence numbers",
        "proxy": "proxies",
        "uuid": "UUIDs",
        "domain": "domains",
        "project": "repositories",
        "phone": "phone numbers",
        "person": "identity numbers",
        "staff": "staff numbers",
        "group": "group names",
        "image": "names of images",
    },
    "zh": {
        "user": "个用户名",
        "host": "个主机名",
        "ipv4": "个 IPv4 地址",
        "ipv6": "个 IPv6 地址",
        "mac": "个 MAC 地址",
        "mail": "个邮箱地址",
        "secret": "个密钥或口令",
        "serial": "个序列号",
        "licence": "个许可证号",
        "proxy": "个代理",
        "uuid": "个 UUID",
        "domain": "个域名",
        "project": "个代码仓",
        "phone": "个电话号码",
        "person": "个身份证号",
        "staff": "个工号",
        "group": "个用户组名",
        "image": "个镜像名",
    },
}


def collect(
    machine: Machine, out: Path, logs: Iterable[Path] | None = None, *, force: bool = False, progress: Progress = lambda done, total: None
) -> Collected:
    """Writes the archive.   logs: files and folders; None takes CANN's own places; force: an archive that is there is replaced."""
    if os.path.isdir(out) or (os.path.exists(out) and not os.path.isfile(out)):
        raise ToolError(
            Said(f"{out}: must be a file to write, got a folder", f"{out}：是目录，必须是要写的文件"),
            hint=f"--collect {out}/machine.tar.gz",
            code="collect-out",
        )
    if not os.path.isdir(out.absolute().parent):
        raise ToolError(
            Said(f"{out}: must be in a folder that is there, got {out.parent}", f"{out}：目录 {out.parent} 不存在"),
            hint=f"mkdir -p {out.parent}",
            code="collect-out",
        )
    if re.search(r"\.(?:zip|7z|rar|tar|tar\.bz2|tar\.xz|json|txt)$", out.name, re.IGNORECASE):
        raise ToolError(
            Said(
                f"{out}: must end in .tar.gz, the form that is written, got {out.suffix}",
                f"{out}：文件名必须以 .tar.gz 结尾（写出的就是这种格式）",
            ),
            hint=f"--collect {_stem(out)}.tar.gz",
            code="collect-out",
        )
    if os.path.exists(out) and not force:
        raise ToolError(Said(f"{out}: must not be there yet, got a file", f"{out}：文件已存在"), hint=ANOTHER_NAME, code="collect-out")
    whole = replace(machine, logs=(*machine.logs, *newest_logs(log_places(machine) if logs is None else logs)))
    plain = dict(texts(whole))
    if not whole.whole:  # files that somebody copied: what is not among them may still be there
        plain[MARKER] += f"{PARTIAL}\n"
    for number, log in enumerate(whole.logs, 1):
        plain[f"logs/{number:02d}-{_last(log.source)}"] = log.text
    user = whole.identity.user
    clean, counts = neutralised(plain, users=[user.value] if user else [], hosts=[platform.node()] if whole.here else [], progress=progress)
    files = {name: text.encode("utf-8", "replace") for name, text in sorted(clean.items())}
    manifest = {
        "format": FORMAT,
        "made by": "jumar doctor --collect",
        "files": {name: {"nbytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()},
        "replaced": counts,
    }
    files = {MANIFEST: (json.dumps(manifest, indent=1, ensure_ascii=False) + "\n").encode(), **files}
    write_whole(out, archive_of(files), "collect-out")
    return Collected(out, {name: len(data) for name, data in files.items()}, counts, whole)


def _stem(out: Path) -> str:
    return re.sub(r"\.(?:tar\.)?\w+$", "", str(out))


def archive_of(files: Mapping[str, bytes]) -> bytes:
    """A tar.gz that has the same bytes whenever its files have."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0, filename="") as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o644
            tar.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def write_whole(path: Path, data: bytes, code: str) -> None:
    """The file with this content, or, whatever happens, none: written beside it, then renamed.   code: of the error's page."""
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        number, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(number, "wb") as stream:
            stream.write(data)
        os.replace(temporary, path)
        temporary = ""
    except OSError as error:
        why = reason(error)
        raise ToolError(
            Said(f"{path}: must be writable, got {why}", f"{path}：无法写入：{why.zh}"),
            hint=Said("another folder", "换一个目录"),
            code=code,
        ) from error
    finally:
        if temporary:
            with suppress(OSError):
                os.unlink(temporary)


def log_places(machine: Machine, root: Path = Path("/")) -> tuple[Path, ...]:
    """Where CANN and the driver write their logs on this machine; none where the machine is another one."""
    if not machine.here:
        return ()
    named = [machine.variable(name) for name in ("ASCEND_PROCESS_LOG_PATH", "ASCEND_WORK_PATH")]
    home = machine.variable("HOME")
    places = [*(n for n in named if n), *([f"{home}/ascend/log"] if home else []), *(f"/{folder}" for folder in _FOLDERS)]
    return tuple(dict.fromkeys(root / place.lstrip("/") for place in places))


def newest_logs(places: Iterable[Path]) -> tuple[Text, ...]:
    """The newest logs of these files and folders, the oldest of them first, within MOST_LOGS files and MOST_OF_LOGS bytes."""
    found: dict[Path, float] = {}
    for place in places:
        for file in [place] if os.path.isfile(place) else _logs_below(place):
            with suppress(OSError):
                found[file] = file.stat().st_mtime
    newest = sorted(found, key=lambda f: (-found[f], str(f)))[:MOST_LOGS]
    kept: list[Text] = []
    room = MOST_OF_LOGS
    for file in newest:
        text = _beginning_and_end(file, min(MOST_OF_LOG, room))
        if text and text.strip():
            kept.append(Text(str(file), text))
            room -= len(text)
        if room <= 0:
            break
    return tuple(reversed(kept))


def _logs_below(folder: Path) -> list[Path]:
    found: list[Path] = []
    for parent, _, names in os.walk(folder, followlinks=False):
        found += [Path(parent) / name for name in names if name.endswith((".log", ".txt", ".err", ".out")) or ".log." in name]
        if len(found) > 20_000:
            break
    return [file for file in found if os.path.isfile(file) and not file.is_symlink()]


def _beginning_and_end(file: Path, most: int) -> str | None:
    """The text of a log; of a long one its beginning and its end, cut at ends of lines."""
    try:
        with file.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size <= most:
                raw = stream.read(most)
            else:
                first = min(_BEGINNING, most // 2)
                head = stream.read(first).rpartition(b"\n")[0]
                stream.seek(size - (most - first))
                tail = stream.read(most - first).partition(b"\n")[2]
                raw = head + f"\n... {size - len(head) - len(tail)} bytes left out ...\n".encode() + tail
    except OSError:
        return None
    return text_of(raw)


def _last(source: str) -> str:
    name = source.rsplit("/", 1)[-1]
    return name if name.endswith((".log", ".txt")) else f"{name}.log"
