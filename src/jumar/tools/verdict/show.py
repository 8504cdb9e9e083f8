"""A verdict, shown the way the user asked for.

In: a `Verdict`.  Out: text or JSON on stdout, an HTML file.
"""

from __future__ import annotations

from pathlib import Path

import click

from jumar.tools.verdict.terminal import terminal
from jumar.tools.verdict.verdict import Verdict


def show(verdict: Verdict, lang: str, *, as_json: bool = False, html: Path | None = None) -> None:
    """Print a verdict.   html: a page, too."""
    click.echo(terminal(verdict, lang))
