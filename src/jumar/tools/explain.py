"""`jumar explain CODE`: the page of an error: what it means, a snippet that fails, a snippet that works.

In: docs/errors/CODE.md, which travels inside the installed package.  Out: the page.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console
from rich.markdown import Markdown

from jumar.base import ToolError, nearest


@click.command()
@click.argument("code", required=False)
@click.option("--plain", is_flag=True, help="Print the page's Markdown as it is.")
def command(code: str | None, plain: bool) -> None:
    """Explain the error CODE; without one, list them all."""
    known = pages()
    if code is None:
        click.echo("\n".join(known))
        return
    if code not in known:
        hint = nearest(code, list(known)) or "jumar explain lists all codes"
        raise ToolError(f"explain: code must be known, got {code!r}", hint=hint, code="explain-code")
    text = known[code].read_text(encoding="utf-8")
    if plain or not sys.stdout.isatty():
        click.echo(text)
    else:
        Console().print(Markdown(text))


def pages() -> dict[str, Path]:
    """Every page by its code: from the installed package, else from the checkout."""
    here = Path(__file__).resolve()
    for folder in (here.parent / "errors", here.parents[3] / "docs" / "errors"):
        if folder.is_dir():
            return {p.stem: p for p in sorted(folder.glob("*.md")) if p.stem != "index"}
    return {}
