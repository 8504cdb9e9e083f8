"""`jumar snapshot save|list|diff`: the versions and files of this machine before an upgrade, what is different after it, and the way back.

In: this machine (doctor/gather.py), snapshots in the folder of the setting snapshot_dir.  Out: words or JSON; nothing is installed or run.
Exit code: 0 the same, 1 different, 2 could not compare.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from jumar.base import Language, Said, ToolError, told
from jumar.tools.doctor.changes import Change, Changes, Worse, compared, parts_of_path
from jumar.tools.doctor.gather import gather
from jumar.tools.doctor.snapshot import FRAMEWORKS, GROUPS, Snapshot, files_of, folder, load, names, nbytes_of, save, take
from jumar.tools.doctor.view import view
from jumar.tools.language import lang_option

ROOT = Path("/")
_LONG = 200_000_000  # bytes from which on a bar is shown
_SHOWN = 12  # lines of a group; --json has all
_WORDS = {
    "en": {
        "saved": "saved {name}: {parts}; {files} files, {packages} packages",
        "where": "after the upgrade: jumar snapshot diff {name}",
        "none": "no snapshots in {folder}; `jumar snapshot save` makes one",
        "damaged": "damaged: {what}",
        "left-out": "damaged, of no use any more: {names}",
        "skipped": "{name} is damaged; compared with the newest that is whole: {old}",
        "same": "nothing is different between {old} and {new}",
        "title": "{old} -> {new}",
        "cann": "CANN",
        "framework": "frameworks",
        "python": "Python",
        "system": "system",
        "come": "{name} {new} is new",
        "gone": "{name} {old} is gone",
        "with": "files: {parts}",
        "files": "{n} changed with it",
        "files-gone": "{n} gone",
        "files-come": "{n} new",
        "and": ", ",
        "more-files": "{n} more files changed",
        "file": "{name} changed",
        "file-come": "{name} is new",
        "file-gone": "{name} is gone",
        "though": ", though the version of {group} did not",
        "order": "{name}: its folders are in another order",
        "path": "{name}: {parts}",
        "left": "{n} more (--json shows all)",
        "worse": "{a} {a_version} with {b} {b_version}: {before}, now {now}{wanted}",
        "wanted": "; {wants} {versions} would fit",
        "ok": "a tested pair",
        "inside": "within the official range",
        "unknown": "not known to fit",
        "outside": "outside of what fits",
        "": "not there before",
        "back": "the way back to {name}, in this order (nothing was run)",
        "download": "get the packages first: {packages}",
        "others": "not by packages: {names} (your system's package manager, your backup)",
        "notes": "not read: {notes}",
    },
    "zh": {
        "saved": "已保存 {name}：{parts}；{files} 个文件，{packages} 个 Python 包",
        "where": "升级之后：jumar snapshot diff {name}",
        "none": "{folder} 中没有快照；用 jumar snapshot save 保存一个",
        "damaged": "已损坏：{what}",
        "left-out": "以下快照已损坏，不能再用：{names}",
        "skipped": "{name} 已损坏；改用最新的完整快照 {old}",
        "same": "{old} 与 {new} 之间没有差别",
        "title": "{old} -> {new}",
        "driver": "驱动",
        "firmware": "固件",
        "cann": "CANN",
        "framework": "框架",
        "python": "Python",
        "system": "系统",
        "come": "新增 {name} {new}",
        "gone": "{name} {old} 已不在",
        "with": "文件：{parts}",
        "files": "随之改变 {n} 个",
        "files-gone": "减少 {n} 个",
        "files-come": "新增 {n} 个",
        "and": "，",
        "more-files": "另有 {n} 个文件改变",
        "file": "{name} 已改变",
        "file-come": "新增 {name}",
        "file-gone": "{name} 已不在",
        "though": "，但{group}的版本没有变",
        "order": "{name}：目录顺序变了",
        "path": "{name}：{parts}",
        "left": "另有 {n} 项（--json 显示全部）",
        "worse": "{a} {a_version} 与 {b} {b_version}：原为{before}，现为{now}{wanted}",
        "wanted": "；合适的 {wants} 是 {versions}",
        "ok": "已测试的配套",
        "inside": "官方范围之内",
        "unknown": "配套未知",
        "outside": "不配套",
        "": "以前没有",
        "back": "回到 {name} 的步骤，按此顺序（什么都没有执行）",
        "download": "先准备好软件包：{packages}",
        "others": "不由这些包决定：{names}（系统包管理器或自己的备份）",
        "notes": "未读取：{notes}",
    },
}


def complete_name(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of snapshots."""
    return [CompletionItem(name) for name in names() if name.startswith(incomplete)]


def _complete_new(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [*complete_name(ctx, param, incomplete), *([CompletionItem("now")] if "now".startswith(incomplete) else [])]


@click.group()
def command() -> None:
    """Keep the versions and the files' hashes of this machine, and see after an upgrade what changed and how to go back.

    Driver, firmware, CANN, frameworks, Python's packages, settings.  Nothing is copied, installed or run: a snapshot tells, it brings no file back.

    \b
    jumar snapshot save before-8.2
    ... the upgrade ...
    jumar snapshot diff before-8.2

    Exit code of diff: 0 the same, 1 different, 2 could not compare.
    """


@command.command("save", short_help="Save what is installed here now.")
@click.argument("name", required=False)
@click.option("--note", default="", help="A sentence to find it by.")
@click.option("--force", is_flag=True, help="Replace a snapshot of this name.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@lang_option
def save_command(name: str | None, note: str, force: bool, as_json: bool, lang: Language) -> int:
    """Save what is installed on this machine now.

    NAME: letters, digits and . _ + -, such as before-8.2; without it, the date and time.
    """
    words = _WORDS[lang]
    snapshot = _now(f"{datetime.now():%Y-%m-%d-%H%M%S}" if name is None else name, note, lang)
    path = save(snapshot, force=force)
    if as_json:
        click.echo(json.dumps({"path": str(path), **asdict(snapshot)}, indent=1))
        return 0
    packages = len(snapshot.versions["framework"]) + len(snapshot.versions["python"])
    click.echo(words["saved"].format(name=snapshot.name, parts=_summary(snapshot), files=len(snapshot.files), packages=packages))
    if snapshot.notes:
        click.echo(words["notes"].format(notes="; ".join(snapshot.notes[:3])), err=True)
    click.echo(words["where"].format(name=snapshot.name))
    return 0


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@lang_option
def list_command(as_json: bool, lang: Language) -> int:
    """List the snapshots, the oldest first."""
    words = _WORDS[lang]
    rows: list[dict[str, Any]] = []
    for name in names():
        try:
            one = load(name)
            rows.append({"name": name, "taken": one.taken, "note": one.note, "versions": _summary(one)})
        except ToolError as error:
            rows.append({"name": name, "damaged": told(error.what, lang)})
    if as_json:
        click.echo(json.dumps(rows, indent=1, ensure_ascii=False))
    elif not rows:
        click.echo(words["none"].format(folder=folder()))
    else:
        wide = max(len(row["name"]) for row in rows)
        for row in rows:
            line = (
                words["damaged"].format(what=row["damaged"])
                if "damaged" in row
                else f"{row['taken'][:16].replace('T', ' ')}  {row['versions']}"
            )
            click.echo(f"{row['name']:{wide}}  {line}" + (f"  {row['note']}" if row.get("note") else ""))
        damaged = [row["name"] for row in rows if "damaged" in row]
        if damaged:
            click.echo(words["left-out"].format(names=", ".join(damaged)), err=True)
    return 0


@command.command("diff", short_help="Say what changed since a snapshot, and the way back.")
@click.argument("old", required=False, shell_complete=complete_name)
@click.argument("new", default="now", metavar="[NEW|now]", shell_complete=_complete_new)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@lang_option
def diff_command(old: str | None, new: str, as_json: bool, lang: Language) -> int:
    """Say what changed since a snapshot, which versions do not fit any more, and how to go back.

    OLD: a snapshot; without it, the newest.  NEW: a later snapshot; without it (or now), this machine as it is.

    Exit code: 0 the same, 1 different, 2 could not compare.
    """
    if old is None:
        old, spoilt = _newest_whole()
        if old and spoilt:
            click.echo(_WORDS[lang]["skipped"].format(name=", ".join(spoilt), old=old), err=True)
        if not old:
            raise ToolError(
                Said("snapshot: there must be one to compare with, got none", "snapshot：没有可以比较的快照"),
                hint="jumar snapshot save",
                code="snapshot-missing",
            )
    before = load(old)
    found = compared(before, _now("now", "", lang) if new == "now" else load(new))
    if as_json:
        click.echo(json.dumps(_document(found), indent=1))
    else:
        click.echo("\n".join(_lines(found, lang)))
    return found.exit_code


def _newest_whole() -> tuple[str, list[str]]:
    """The newest snapshot that can be read, empty where there is none, and those after it that cannot."""
    spoilt: list[str] = []
    for name in reversed(names()):
        try:
            load(name)
        except ToolError:
            spoilt.append(name)
        else:
            return name, spoilt
    return "", spoilt


def _now(name: str, note: str, lang: Language) -> Snapshot:
    machine = gather(ROOT)
    with _progress(nbytes_of(files_of(view(machine), ROOT)), lang) as progress:
        return take(machine, name, f"{datetime.now().astimezone():%Y-%m-%dT%H:%M:%S%z}", note, ROOT, progress)


@contextmanager
def _progress(total: int, lang: Language) -> Iterator[Callable[[int], None]]:
    """A bar on stderr while much is hashed, if that is a terminal."""
    if total < _LONG or not sys.stderr.isatty():
        yield lambda _: None
        return
    with click.progressbar(length=total, label=told(Said("hashing", "计算校验和"), lang), file=sys.stderr) as bar:
        yield bar.update


def _summary(snapshot: Snapshot) -> str:
    """The versions that one asks for first."""
    wanted = (
        ("driver", "driver"),
        ("firmware", "firmware"),
        ("cann", "CANN"),
        *(("framework", f) for f in FRAMEWORKS[:2]),
        ("framework", "torch-npu"),
    )
    told = [f"{name} {version}" for group, name in wanted if (version := snapshot.version(group, name))]
    return ", ".join([*told, f"Python {snapshot.version('python', 'Python')}"])


# ------------------------------------------------------------------------------ what is different, in words


def _lines(found: Changes, lang: str) -> Iterator[str]:
    words = _WORDS[lang]
    if not found.changes:
        yield words["same"].format(old=found.old.name, new=found.new.name)
        return
    yield click.style(
        words["title"].format(old=f"{found.old.name} ({found.old.taken[:16].replace('T', ' ')})", new=found.new.name), bold=True
    )
    for group in GROUPS:
        of_group = [c for c in found.changes if c.group == group]
        if of_group:
            yield click.style(words.get(group, group), bold=True)
        shown = [line for c in sorted(of_group, key=lambda c: not c.warning) for line in _said(c, words)]
        yield from (f"  {line}" for line in shown[:_SHOWN])
        if len(shown) > _SHOWN:
            yield f"  {words['left'].format(n=len(shown) - _SHOWN)}"
    yield from (click.style(f"! {_worse(worse, words)}", fg="red") for worse in found.worse)
    yield from _back(found, words)


def _said(change: Change, words: dict[str, str]) -> Iterator[str]:
    """One change, in a line."""
    values = {"name": change.name, "old": change.old, "new": change.new}
    known = "come" if not change.old else "gone" if not change.new else ""
    match change.kind:
        case "more":
            yield _warned(change, words["more-files"].format(n=change.name), words)
        case "files":
            counts = zip(("files", "files-gone", "files-come"), (change.name, change.old, change.new), strict=True)
            yield words["with"].format(parts=words["and"].join(words[word].format(n=n) for word, n in counts if n != "0"))
        case "file":
            yield _warned(change, words[f"file-{known}" if known else "file"].format(**values), words)
        case "variable" if not known and ":" in change.old + change.new:
            gone, come = parts_of_path(change.old, change.new)
            parts = ", ".join([*(f"-{p}" for p in gone), *(f"+{p}" for p in come)])
            yield words["path" if parts else "order"].format(name=change.name, parts=parts)
        case _ if known:
            yield words[known].format(**values)
        case _:
            yield "{name} {old} -> {new}".format(**values)


def _warned(change: Change, line: str, words: dict[str, str]) -> str:
    if not change.warning:
        return line
    though = words["though"].format(group=words.get(change.group, change.group))
    return click.style(f"! {line}{though}", fg="yellow")


def _worse(worse: Worse, words: dict[str, str]) -> str:
    pair = worse.now
    wanted = words["wanted"].format(wants=pair.wants or pair.b, versions=", ".join(pair.wanted[:4])) if pair.wanted else ""
    return words["worse"].format(
        a=pair.a,
        a_version=pair.a_version,
        b=pair.b,
        b_version=pair.b_version,
        before=words[worse.before],
        now=words[pair.verdict],
        wanted=wanted,
    )


def _back(found: Changes, words: dict[str, str]) -> Iterator[str]:
    commands = [*(step.command for step in found.back), *found.pip, *found.variables]
    if commands:
        yield click.style(words["back"].format(name=found.old.name), bold=True)
        packages = [step.package for step in found.back if step.package.endswith(".run")]
        if packages:
            yield f"  {words['download'].format(packages=', '.join(packages))}"
        wide = len(str(len(commands)))
        for number, line in enumerate(commands, 1):
            yield f"  {number:{wide}}. {line}"
    if found.others:
        yield f"  {words['others'].format(names=', '.join(c.name for c in found.others[:8]))}"


def _document(found: Changes) -> dict[str, Any]:
    """JSON: stable names; versions as texts."""
    return {
        "old": {"name": found.old.name, "taken": found.old.taken},
        "new": {"name": found.new.name, "taken": found.new.taken},
        "same": not found.changes,
        "changes": [asdict(c) for c in found.changes],
        "worse": [
            {
                "a": w.now.a,
                "a_version": str(w.now.a_version),
                "b": w.now.b,
                "b_version": str(w.now.b_version),
                "before": w.before,
                "now": w.now.verdict,
                "wanted": list(w.now.wanted),
                "source": w.now.source,
            }
            for w in found.worse
        ],
        "back": [
            {"action": s.action, "component": s.component, "version": s.version, "package": s.package, "command": s.command}
            for s in found.back
        ],
        "pip": list(found.pip),
        "variables": list(found.variables),
        "others": [c.name for c in found.others],
        "notes": list(found.new.notes),
    }
