"""`jumar diagnose FILE...|-`: which layer is at fault, the line that proves it, the command that fixes it.

In: logs, tracebacks, plog folders, archives, standard input.  Out: a verdict in the terminal, as JSON or HTML.  Exit code: 0 nothing wrong was
found, 1 findings, 2 could not check.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from jumar.tools.diagnose.diagnose import diagnose
from jumar.tools.diagnose.sources import Source, source_of_file, source_of_text
from jumar.tools.language import lang_option, language
from jumar.tools.verdict import show


@click.command()
@click.argument("paths", nargs=-1, metavar="FILE...|-", type=click.Path(allow_dash=True, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write a page, too.")
@lang_option
def command(paths: tuple[Path, ...], as_json: bool, html: Path | None, lang: str | None) -> int:
    """Say which layer is at fault in logs, tracebacks or a pasted mess.

    FILE is a log, a folder of logs, or - for standard input.  Nothing in it is run or sent.
    """
    if not paths:
        raise click.UsageError("give at least one file or folder, or - for standard input")
    sources = [source for path in paths for source in _sources(path)]
    verdict = diagnose(sources)
    show(verdict, language(lang), as_json=as_json, html=html)
    return verdict.exit_code


def _sources(path: Path) -> list[Source]:
    if str(path) == "-":
        return [source_of_text("stdin", sys.stdin.buffer.read().decode("utf-8", "replace"))]
    if path.is_dir():
        return [source_of_file(file) for file in sorted(path.rglob("*")) if file.is_file()]
    return [source_of_file(path)]
