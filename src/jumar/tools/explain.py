"""`jumar explain CODE...`: what an error code means: a page of Jumar's own errors, or a number or name of any layer of an Ascend host.

In: docs/errors/CODE.md, which travels inside the installed package; the tables of `jumar.device.ascend`.  Out: the page, or module, symbol, meaning,
layer, usual causes and source of the code, as text or JSON (explained.py).  Exit code 0 where every code was known, else 2.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from jumar.base import Language, Said, ToolError, did_you_mean, nearest, told
from jumar.device.ascend import FAMILIES, Code, codes_in, codes_of, families_named, find_code, known_codes, near_codes, out_of_range
from jumar.tools.explained import code_document, code_lines, code_list, family_counts
from jumar.tools.language import lang_option


@dataclass(frozen=True)
class _Answer:
    """What there is on one thing that was asked: a page, or codes, the likeliest first; neither where it is unknown.   listed: a family
    or a beginning was asked for, so that one line a code will do."""

    asked: str
    page: Path | None = None
    codes: tuple[Code, ...] = ()
    listed: bool = False

    @property
    def known(self) -> bool:
        return self.page is not None or any(code.known for code in self.codes)


def _complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Pages, families, and, as soon as something is typed, the codes that go on so."""
    typed = incomplete.lower()
    items = [CompletionItem(name) for name in (*pages(), *FAMILIES) if name.lower().startswith(typed)]
    if typed:
        for code in known_codes():
            names = (code.number, code.symbol) if "_" in code.symbol and " " not in code.symbol else (code.number,)
            items += [CompletionItem(name, help=code.meaning()) for name in names if name.lower().startswith(typed) and "(" not in name]
    return items


def _complete_family(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name, help=title) for name, (title, _) in FAMILIES.items() if name.startswith(incomplete.lower())]


@click.command(context_settings={"ignore_unknown_options": True})  # -8005 is a code, not an option
@click.argument("codes", nargs=-1, metavar="[CODE|NAME|-]...", shell_complete=_complete)
@click.option(
    "--family", default="", metavar="F", shell_complete=_complete_family, help="Only codes of this family: drv, hccl, dcmi, acl ..."
)
@click.option("--plain", is_flag=True, help="Print the page of one of Jumar's errors as the Markdown that it is.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, codes in both languages.")
@lang_option
def command(codes: tuple[str, ...], family: str, plain: bool, as_json: bool, lang: Language) -> int:
    """Explain error codes: those of every layer of an Ascend host, in any spelling, and Jumar's own.

    CODE is a number (decimal, hexadecimal, negative), with its family before it where it is small, a name, or a whole line of a log; NAME is
    one of Jumar's errors, or a family, whose codes are listed; - reads lines from standard input.  Without any, families and names are listed.

    \b
    jumar explain 507018 0x7020023 -8005 EZ9999
    jumar explain drv 87
    jumar explain "drvRetCode=7, [drv api] halQueueQueryInfo failed"
    jumar explain - < plog-1234.log

    Exit code: 0 every code is known, 2 one is not.
    """
    try:
        return _explained(codes, family, plain, lang, as_json)
    except BrokenPipeError:  # `jumar explain | head`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _explained(codes: tuple[str, ...], family: str, plain: bool, lang: Language, as_json: bool) -> int:
    if family and not families_named(family):
        families = Said(f"one of {', '.join(FAMILIES)}", f"可以是 {'、'.join(FAMILIES)}")
        raise ToolError(
            Said(f"explain: --family must be known, got {family!r}", f"explain：--family 没有 {family!r} 这个类别"),
            hint=nearest(family, list(FAMILIES)) or families,
            code="explain-code",
        )
    if family and not codes:
        codes, family = (family,), ""
    if not codes:
        _list(lang, as_json)
        return 0
    answers = _answers(codes, family)
    if not answers:
        raise ToolError(
            Said("explain: stdin must hold a line that mentions a code, got none", "explain：标准输入中没有任何一行提到错误码"),
            code="explain-code",
        )
    unknown = [answer for answer in answers if not answer.known]
    if len(unknown) == len(answers) == 1 and not unknown[0].codes:
        raise _unknown(unknown[0].asked, family)
    if as_json:
        documents = [_document(answer, lang, family) for answer in answers]
        click.echo(json.dumps(documents, indent=1, ensure_ascii=False))
    else:
        for place, answer in enumerate(answers):
            if place:
                click.echo()
            _show(answer, lang, plain, family)
    return 2 if unknown else 0


def pages() -> dict[str, Path]:
    """Every page by its code: from the installed package, else from the checkout."""
    here = Path(__file__).resolve()
    for folder in (here.parent / "errors", here.parents[3] / "docs" / "errors"):
        if folder.is_dir():
            return {p.stem: p for p in sorted(folder.glob("*.md")) if p.stem != "index"}
    return {}


def _answers(asked: Sequence[str], family: str) -> list[_Answer]:
    """One answer for each code; a family before its number is one with it; words that are no codes are read as a line of a log."""
    known = pages()
    answers: list[_Answer] = []
    place = 0
    while place < len(asked):
        text = asked[place]
        place += 1
        if text == "-":
            answers += _from_lines((line.decode("utf-8", "replace") for line in sys.stdin.buffer), family)
        elif text in known and not family:
            answers.append(_Answer(text, page=known[text]))
        elif place < len(asked) and families_named(text) and (found := find_code(asked[place], text)):
            answers.append(_Answer(f"{text} {asked[place]}", codes=found))
            place += 1
        elif several := _several(text, family):
            answers += several
        else:
            answers.append(_answer(text, family))
    unknown = sum(not answer.known and not answer.codes for answer in answers)
    if unknown > len(answers) - unknown > 0 and "-" not in asked:  # error code is 507018
        return _from_lines([" ".join(asked)], family) or answers
    return answers


def _several(text: str, family: str) -> list[_Answer]:
    """Codes that were pasted into one argument, none where any part of it is something else."""
    parts = [part for part in re.split(r"[\s,;、，；。]+", text) if part]
    if len(parts) < 2 or find_code(text, family):
        return []
    found = [_Answer(part, codes=find_code(part, family)) for part in parts]
    return found if all(answer.known for answer in found) else []


def _answer(text: str, family: str) -> _Answer:
    """What one text is: a code, or a line that mentions some."""
    if text.startswith("--"):
        raise click.NoSuchOption(text)
    found = find_code(text, family)
    if not found and not family and (listed := codes_of(text)):
        return _Answer(text.strip(), codes=listed, listed=True)
    if not found:
        found = tuple(
            dict.fromkeys(mention.code for mention in codes_in(text) if not family or mention.code.family in families_named(family))
        )
    return _Answer(text.strip(), codes=found)


def _from_lines(lines: Iterable[str], family: str) -> list[_Answer]:
    """Each code once: a line may be a code, or mention some."""
    found: dict[tuple[Code, ...], _Answer] = {}
    wanted = families_named(family)
    for line in lines:
        alone = find_code(line, family)
        if alone:
            found.setdefault(alone, _Answer(line.strip(), codes=alone))
            continue
        for mention in codes_in(line):
            if not wanted or mention.code.family in wanted:
                found.setdefault((mention.code,), _Answer(mention.text, codes=(mention.code,)))
    return list(found.values())


def _unknown(asked: str, family: str) -> ToolError:
    """The error for what is no code: what is spelled like it, and which numbers there are."""
    hint = nearest(asked, list(pages())) or did_you_mean(near_codes(asked, 2 if any(c.isdigit() for c in asked) else 3))
    why = out_of_range(asked, family)
    if not hint and not why:
        hint = Said("jumar explain lists all pages and the families of codes", "jumar explain 列出所有页面和错误码类别")
    en, zh = (f" in family {family}", f"类别 {family} 中") if family else ("", "")
    return ToolError(
        Said(
            f"explain: code must be known{en}, got {asked!r}{why and f', {why}'}",
            f"explain：{zh}没有这个错误码：{asked!r}{why and f'，{why.zh}'}",
        ),
        hint=hint,
        code="explain-code",
    )


def _show(answer: _Answer, lang: Language, plain: bool, family: str) -> None:
    if answer.page is not None:
        text = answer.page.read_text(encoding="utf-8")
        if plain or not sys.stdout.isatty():
            click.echo(text)
        else:
            from rich.console import Console  # noqa: PLC0415  (a tenth of a second, which a code does not wait for)
            from rich.markdown import Markdown  # noqa: PLC0415

            Console().print(Markdown(text))
    elif answer.listed:
        click.echo("\n".join(code_list(answer.codes, lang)))
    elif answer.codes:
        click.echo("\n".join(code_lines(answer.asked, answer.codes, lang)))
    else:
        error = _unknown(answer.asked, family)
        error.language = lang
        click.echo(str(error), err=True)


def _document(answer: _Answer, lang: Language, family: str) -> dict[str, object]:
    document: dict[str, object] = {"asked": answer.asked, "known": answer.known}
    if answer.page is not None:
        document["page"] = answer.page.read_text(encoding="utf-8")
    elif answer.codes:
        document["codes"] = [code_document(code, lang) for code in answer.codes]
    else:
        error = _unknown(answer.asked, family)
        document |= {"codes": [], "error": told(error.what, lang), "hint": told(error.hint, lang)}
    return document


def _list(lang: str, as_json: bool) -> None:
    counts = family_counts()
    title = {name: titles[lang == "zh"] for name, titles in FAMILIES.items()}
    if as_json:
        families = [{"family": name, "title": title[name], "codes": count} for name, count in counts.items()]
        click.echo(json.dumps({"pages": list(pages()), "families": families}, indent=1, ensure_ascii=False))
        return
    click.echo("昇腾主机的错误码，按类别：" if lang == "zh" else "error codes of an Ascend host, by family:")
    wide = max(len(name) for name in counts)
    for name, count in counts.items():
        click.echo(f"  {name:{wide}}  {count or '':>4}  {title[name]}")
    click.echo("\nJumar 自身的错误页面：" if lang == "zh" else "\nJumar's own errors, a page each:")
    click.echo("\n".join(_columns(list(pages()), min(shutil.get_terminal_size((108, 24)).columns, 120))))
    click.echo(
        "\njumar explain 507018   jumar explain drv 87   jumar explain EZ9999   jumar explain HCCL_E_TIMEOUT   jumar explain - < run.log"
    )


def _columns(names: list[str], width: int) -> list[str]:
    """Names in as many columns as the width has room for, read downwards."""
    wide = max(map(len, names), default=0) + 2
    rows = -(-len(names) // max(1, (width - 2) // wide))
    return ["  " + "".join(f"{name:{wide}}" for name in names[row::rows]).rstrip() for row in range(rows)]
