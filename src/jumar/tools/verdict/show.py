"""A verdict, shown the way the user asked for.

In: a `Verdict`.  Out: text or JSON on stdout, an HTML file.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from jumar.base import Said, ToolError, reason, told
from jumar.tools.verdict.document import document
from jumar.tools.verdict.verdict import Verdict

WIDTH = 110  # of a page in the terminal, at most


def show(verdict: Verdict, lang: str, *, as_json: bool = False, html: Path | None = None) -> None:
    """Print a verdict.   html: a file to write the page to as well."""
    if html:
        from jumar.tools.verdict.page import page  # noqa: PLC0415  (Jinja, 50 ms)

        try:
            html.write_text(page(verdict, lang), encoding="utf-8")
        except OSError as error:
            why = reason(error)
            raise ToolError(
                Said(f"--html: file must be writable, got {html}: {why}", f"--html：无法写入 {html}：{why.zh}"), code="out-folder"
            ) from error
    if as_json:
        click.echo(json.dumps(document(verdict), indent=1, ensure_ascii=False))
        return
    from rich.console import Console  # noqa: PLC0415  (60 ms, which --json does not wait for)

    from jumar.tools.verdict.terminal import terminal  # noqa: PLC0415

    here = Console()
    width = min(here.width, WIDTH) if here.is_terminal or "COLUMNS" in os.environ else WIDTH
    console = Console(highlight=False, markup=False, emoji=False, width=width)
    with console.capture() as text:
        for part in terminal(verdict, lang, width):
            console.print(part)
    click.echo("\n".join(line.rstrip() for line in text.get().splitlines()))
    if html:
        click.echo(told(Said(f"page: {html}", f"页面：{html}"), lang), err=True)
