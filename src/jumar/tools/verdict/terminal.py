"""A verdict in the terminal: the layer, the cause, the lines that prove it, the way out; no more than a screen.

In: a `Verdict`, a language, the terminal's width.  Out: rich renderables, printed by show.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from jumar.base import told
from jumar.tools.knowledge import Evidence, Finding, layers
from jumar.tools.verdict.verdict import Verdict
from jumar.tools.verdict.words import counted, safe, short, tail, word

_COLOUR = {"high": "bold red", "medium": "yellow", "low": "cyan", "none": "dim"}
_STATE = {"ok": "green", "bad": "bold red", "unknown": "dim", "verified": "green", "failed": "bold red", "unchecked": "dim"}
_PLACE = 44  # characters of a file's name and line: its end
_NARROW = 80  # columns
MOST = 5  # rows of codes, of what followed, of what else was found


def terminal(verdict: Verdict, lang: str, width: int) -> Iterator[RenderableType]:
    """The parts of a verdict, top to bottom."""
    if verdict.machine:
        yield Text(verdict.machine, style="bold")
    if verdict.components or verdict.levels:
        yield _components(verdict, lang)
    yield from _head(verdict, lang)
    if told := verdict.told:
        if told is verdict.like:
            yield _title("like", lang)
        yield from _finding(told, lang, width)
    elif verdict.first_error:
        yield _title("first_error", lang)
        yield _evidence((verdict.first_error,), width)
    if verdict.layer and verdict.confidence != "high" and not (verdict.told and verdict.told.text(lang).next):
        yield _title("next", lang)
        yield Padding(Text(layers()[verdict.layer].next[lang]), (0, 0, 0, 2))
    yield from _rest(verdict, lang, width)


def _head(verdict: Verdict, lang: str) -> Iterator[RenderableType]:
    if not verdict.findings or verdict.like:
        if verdict.state != "found":
            yield Text(word(verdict.state, lang), style="green" if verdict.state == "healthy" else "yellow")
        else:
            where = f"{word('likely', lang)}: {_layer(verdict.layer, lang)}" if verdict.layer else word("no_layer", lang)
            yield Text(f"{word('unknown', lang)}; {where}", style="yellow")
        return
    finding = verdict.findings[0]
    head = Text(f"{word('at_fault', lang)}: ", style="bold")
    head.append(_layer(verdict.layer, lang), style="bold red")
    head.append(f"   {word('confidence', lang)}: ")
    head.append(word(verdict.confidence, lang), style=_COLOUR[verdict.confidence])
    head.append(f"   {finding.rule.cause}", style="dim")
    yield head


def _layer(name: str, lang: str) -> str:
    return f"{layers()[name].title[lang]} ({name})" if name else word("no_machine_layer", lang)


def _title(key: str, lang: str, extra: str = "") -> Text:
    return Text(word(key, lang), style="bold").append(extra, style="dim")


def _finding(finding: Finding, lang: str, width: int) -> Iterator[RenderableType]:
    text = finding.text(lang)
    yield Padding(Text(text.what), (0, 0, 0, 2))
    yield _title("evidence", lang, f"  {finding.count} {word('times', lang)}" if finding.count > len(finding.evidence) else "")
    yield _evidence(finding.evidence, width)
    yield _title("fix", lang)
    steps = Table.grid(padding=(0, 1), pad_edge=False)
    steps.add_column(no_wrap=True)
    steps.add_column(overflow="fold")
    for number, step in enumerate(text.fix, 1):
        steps.add_row(f"  {number}." if len(text.fix) > 1 else "  -", Text(step))
    for command in finding.run():
        steps.add_row("  $", Text(safe(command), style="cyan"))
    for blank, how in finding.blanks(lang):
        steps.add_row("  ", Text(f"{blank}  {how}", style="dim"))
    yield steps
    if text.next:
        yield _title("next", lang)
        yield Padding(Text(text.next), (0, 0, 0, 2))


def _evidence(lines: tuple[Evidence, ...], width: int) -> RenderableType:
    lines = tuple(line for line in lines if not line.text.strip().startswith("Traceback (most")) or lines  # a headline proves nothing
    if width < _NARROW:  # the place above its line
        stacked = Table.grid(padding=0)
        stacked.add_column(overflow="fold")
        for line in lines:
            stacked.add_row(Text(f"  {tail(str(line), width - 2)}", style="magenta"))
            stacked.add_row(Padding(Text(safe(line.text, max(3 * width, 80))), (0, 0, 0, 4)))
        return stacked
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, style="magenta")
    table.add_column(overflow="fold")
    for line in lines:
        place = tail(str(line), _PLACE)
        table.add_row(f"  {place}", Text(safe(line.text, max(2 * (width - len(place) - 5), 80))))
    return table


def _components(verdict: Verdict, lang: str) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for component in verdict.components:
        table.add_row(f"  {component.name}", Text(safe(component.value, 90), style=_STATE[component.state]))
    for level in verdict.levels:
        why = safe(level.why[lang], 90)
        state = Text(word(level.state, lang), style=_STATE[level.state]).append(f": {why}" if why else "", style="")
        table.add_row(f"  {word('levels', lang)}: {word(level.name, lang)}", state)
    return table


def _rest(verdict: Verdict, lang: str, width: int) -> Iterator[RenderableType]:
    if verdict.codes:
        firsts = {getattr(d.codes[0], lang): d for d in reversed(verdict.codes)}  # one row for each meaning, the first that was met
        rows = [d for d in verdict.codes if firsts[getattr(d.codes[0], lang)] is d][:MOST]
        table = Table.grid(padding=(0, 1))
        for decoded in rows:
            code = decoded.codes[0]
            table.add_row(
                f"  {safe(decoded.text, 20)}", Text(short(" ".join(dict.fromkeys((code.symbol, getattr(code, lang)))), 2 * width))
            )
        yield _title(
            "codes", lang, f"  jumar explain {rows[0].codes[0].number if ' ' not in rows[0].codes[0].number else rows[-1].codes[0].number}"
        )
        yield table
    if also := verdict.findings[0 if verdict.like else 1 :]:
        yield _title("also", lang)
        yield _short(also, lang, width)
    if followed := tuple(f for f in verdict.followed if f.rule.tier != "hint"):
        yield _title("followed", lang)
        yield _short(followed, lang, width)
    for note in verdict.notes:
        yield Text(f"{word('notes', lang)}: {told(note, lang)}", style="yellow")
    if verdict.lines:
        rank = f" ({word('rank', lang)} {verdict.first_rank})" if verdict.first_rank >= 0 else ""
        first = f"; {word('first_error', lang)}: {tail(str(verdict.first_error), 60)}{rank}" if verdict.first_error else ""
        counts = f"{counted(len(verdict.sources), 'sources', lang)}, {counted(verdict.lines, 'lines', lang)}"
        yield Text(f"{word('read', lang)}: {counts}{first}", style="dim")


def _short(findings: tuple[Finding, ...], lang: str, width: int) -> RenderableType:
    """A line for each: layer, place, first sentence."""
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, style="magenta")
    table.add_column(no_wrap=True)
    for finding in findings[:MOST]:
        place = tail(str(finding.evidence[0]), min(_PLACE, max(width - len(finding.rule.layer) - 5, 12))) if finding.evidence else ""
        room = width - len(place) - len(finding.rule.layer) - 5
        table.add_row(f"  {finding.rule.layer}", place, Text(short(finding.what(lang), max(room // (2 if lang == "zh" else 1), 30))))
    if len(findings) > MOST:
        table.add_row(f"  +{len(findings) - MOST}", "", Text(word("more", lang), style="dim"))
    return table
