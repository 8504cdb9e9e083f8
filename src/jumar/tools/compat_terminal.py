"""The answer of `jumar compat` in the terminal, in two languages.

In: an `Answer` (compat.py).  Out: text on stdout: pairs with verdicts, a set, steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import click
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from jumar.base import Language
from jumar.device.ascend import MatchingSet, Pairing, Step, Version, VersionFile, first_cann_of_chip, near_releases, parse_version
from jumar.tools.products import product


@dataclass(frozen=True)
class Answer:
    """What was found.   versions: what was judged; asked: what the user named; others: by the component that may change, a set; files: read here."""

    versions: Mapping[str, Version]
    asked: tuple[str, ...]
    pairs: tuple[Pairing, ...]
    found: MatchingSet
    others: tuple[tuple[str, MatchingSet], ...] = ()
    files: tuple[VersionFile, ...] = ()
    soc: str = ""

    @property
    def exit_code(self) -> int:
        """0: nothing is outside; 1: something is; 2: no pair and no set is known."""
        if any(p.verdict == "outside" for p in self.pairs) or self.found.contradiction:
            return 1
        return 0 if self.found.versions or any(p.verdict != "unknown" for p in self.pairs) else 2


_MARKS = {"ok": ("✓", "green"), "inside": ("~", "yellow"), "outside": ("✗", "red"), "unknown": ("?", "cyan")}
_WORDS: Mapping[Language, Mapping[str, str]] = {
    "en": {
        "ok": "fits: a named pair", "inside": "within an official range, not the named pair", "outside": "does not fit", "unknown": "in no table",
        "wanted": "{what} that fits: {versions}",
        "nearest": "the nearest known, {nearest}, goes with {what} {versions}", "nearest-none": "the nearest known is {nearest}",
        "set": "A set that fits", "changes": "If {part} may change", "keeps": "nothing has to change",
        "none": "No set fits: {one} and {other} exclude each other.",
        "allows": "  {part} goes with {what} {versions}", "unknown-part": "{part} is in no table, so no set can be proposed for it.",
        "near": "The nearest known: {command}",
        "no-set": "No set of named pairs is known for this.", "steps": "What to do, in this order (nothing was run)",
        "chip": "{soc} is driven by CANN {version} and newer ({source})", "alone": "{part} was given; the pairs follow from the set below.",
        "install": "install", "upgrade": "upgrade from {was}", "downgrade": "go back from {was}", "reboot": "reboot, then check: npu-smi info",
        "source": "in every shell that uses it", "stop": "stop every process on the cards first; the driver's installer refuses otherwise",
        "damaged": "{path}: {what}",
        "<chip>": "name it with --soc", "<7.x.y.z.n>": "the number of the firmware in the same Ascend HDK",
    },
    "zh": {
        "ok": "配套版本", "inside": "在官方兼容范围内，但不是配套版本", "outside": "不匹配", "unknown": "表中没有",
        "wanted": "可用的{what}：{versions}", "nearest": "最接近的已知版本 {nearest} 对应{what} {versions}", "nearest-none": "最接近的已知版本是 {nearest}",
        "set": "一套匹配的版本", "changes": "如果可以更换 {part}", "keeps": "无需改动", "none": "没有可用的组合：{one} 与 {other} 互相排斥。",
        "allows": "  {part} 对应的{what}：{versions}", "unknown-part": "{part} 不在任何表中，无法为它给出组合。", "near": "最接近的已知版本：{command}",
        "no-set": "没有已知的配套组合。", "steps": "按此顺序操作（未执行任何命令）",
        "chip": "{soc} 从 CANN {version} 起支持（{source}）", "alone": "只给出了 {part}；匹配关系见下面的组合。",
        "install": "安装", "upgrade": "从 {was} 升级", "downgrade": "从 {was} 回退", "reboot": "重启，然后检查：npu-smi info",
        "source": "每个使用它的终端都要执行", "stop": "先停止卡上的所有进程，否则驱动安装程序会拒绝", "damaged": "{path}：{what}",
        "<chip>": "用 --soc 指定", "<7.x.y.z.n>": "同一 Ascend HDK 中的固件版本号",
    },
}  # fmt: skip
_WIDTH = 120


def show(answer: Answer, lang: Language) -> None:
    """Print the answer."""
    words = _WORDS[lang]
    here = Console()
    width = min(here.width, _WIDTH) if here.is_terminal else _WIDTH
    console = Console(highlight=False, markup=False, emoji=False, width=width)
    with console.capture() as text:
        for part in _parts(answer, words, lang):
            console.print(part, soft_wrap=isinstance(part, Text))  # commands are copied: never broken
    click.echo("\n".join(line.rstrip() for line in text.get().splitlines()))


def _parts(answer: Answer, words: Mapping[str, str], lang: Language) -> Iterator[RenderableType]:
    for file in answer.files:
        for complaint in file.complaints:
            yield Text(words["damaged"].format(path=file.path, what=complaint), "yellow")
    if answer.pairs:
        yield _pairs_table(answer.pairs, lang)
    else:
        yield words["alone"].format(part=", ".join(f"{product(c, lang)} {v}" for c, v in answer.versions.items()))
    if answer.soc and (first := first_cann_of_chip(answer.soc)):
        yield words["chip"].format(soc=answer.soc, version=first[0], source=first[1])
    yield ""
    yield from _proposed(answer.found, lang)
    for component, one in answer.others:
        yield ""
        yield Text(words["changes"].format(part=product(component, lang)), "bold")
        yield from _set_lines(one, lang)


def _pairs_table(pairs: tuple[Pairing, ...], lang: Language) -> Table:
    words = _WORDS[lang]
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for pair in pairs:
        mark, colour = _MARKS[pair.verdict]
        said = Text(words[pair.verdict], colour)
        versions = " ".join(pair.wanted[:6])
        if pair.nearest and pair.verdict == "unknown":
            key = "nearest" if versions else "nearest-none"
            said.append("\n" + words[key].format(nearest=pair.nearest, what=product(pair.wants, lang), versions=versions), "")
        elif pair.verdict in ("inside", "outside") and versions:
            said.append("\n" + words["wanted"].format(what=product(pair.wants, lang), versions=versions), "")
        if pair.source and pair.verdict != "unknown":
            said.append(f"\n{pair.source.split(' ; ')[0]}", "dim")
        table.add_row(
            Text(mark, f"bold {colour}"), f"{product(pair.a, lang)} {pair.a_version}", f"{product(pair.b, lang)} {pair.b_version}", said
        )
    return table


def _proposed(found: MatchingSet, lang: Language) -> list[RenderableType]:
    words = _WORDS[lang]
    if clash := found.contradiction:
        over = product(clash.over, lang)
        lines: list[RenderableType] = [Text(words["none"].format(one=_part(clash.one, lang), other=_part(clash.other, lang)), "bold red")]
        for part, allows in ((clash.one, clash.one_allows), (clash.other, clash.other_allows)):
            if not part.startswith(f"{clash.over} "):
                lines.append(Text(words["allows"].format(part=_part(part, lang), what=over, versions=" ".join(allows[:8]))))
        return lines
    if found.unknown:
        told: list[RenderableType] = []
        for part in found.unknown:
            told.append(Text(words["unknown-part"].format(part=_part(part, lang)), "yellow"))
            component, version = named(part)
            option = component.replace("_", "-")
            near = [f"jumar compat --{option} {v}" for v in near_releases(component, version)]
            if near:
                told.append(Text("  " + words["near"].format(command=", ".join(near))))
        return told
    if not found.versions:
        return [Text(words["no-set"], "yellow")]
    return [Text(words["set"], "bold"), *_set_lines(found, lang)]


def _set_lines(found: MatchingSet, lang: Language) -> list[RenderableType]:
    words = _WORDS[lang]
    lines: list[RenderableType] = [Padding(" · ".join(f"{product(c, lang)} {v}" for c, v in found.versions.items()), (0, 0, 0, 2))]
    for p in found.pairings:
        if p.verdict == "inside":
            lines.append(Text(f"  ~ {product(p.a, lang)} {p.a_version}, {product(p.b, lang)} {p.b_version}: {words['inside']}", "yellow"))
    if not found.steps:
        return [*lines, Text(f"  {words['keeps']}", "green")]
    lines.append(Text(words["steps"], "bold"))
    if any(s.component in ("driver", "firmware") and s.was for s in found.steps):
        lines.append(Text(f"  - {words['stop']}"))
    for number, step in enumerate(found.steps, 1):
        lines += _step_lines(number, step, lang)
    lines += [Text(f"  {mark}: {words[mark]}", "dim") for mark in ("<chip>", "<7.x.y.z.n>") if any(mark in s.package for s in found.steps)]
    return lines


def _step_lines(number: int, step: Step, lang: Language) -> list[Text]:
    words = _WORDS[lang]
    if step.action == "reboot":
        return [Text(f"  {number}. {words['reboot']}")]
    if step.action == "source":
        return [Text(f"  {number}. {words['source']}"), Text(f"       {step.command}", "cyan")]
    line = f"  {number}. {product(step.component, lang)} {step.version}: {words[step.action].format(was=step.was)}"
    return [Text(line), Text(f"       {step.command}", "cyan")]


def named(part: str) -> tuple[str, Version]:
    """`cann 8.1` as component and version."""
    component, _, version = part.partition(" ")
    return component, parse_version(version)


def _part(part: str, lang: Language) -> str:
    component, _, version = part.partition(" ")
    return f"{product(component, lang)} {version}".rstrip()
