"""`jumar diagnose FILE...|-`: which layer is at fault, the line that proves it, the command that fixes it.

In: logs, tracebacks, plog folders, archives, standard input.  Out: a verdict in the terminal, as JSON or HTML.  Exit code: 0 nothing wrong was
found, 1 findings, 2 could not check, or not all that was named.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from jumar.base import Language, Said, told
from jumar.tools.diagnose.diagnose import diagnose
from jumar.tools.diagnose.sources import opened, size_of
from jumar.tools.language import lang_option
from jumar.tools.verdict import show

_LONG = 50_000_000  # bytes from which on a bar is shown


@click.command()
@click.argument("paths", nargs=-1, metavar="FILE...|-", type=click.Path(allow_dash=True, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write the verdict as a page, too.")
@lang_option
def command(paths: tuple[Path, ...], as_json: bool, html: Path | None, lang: Language) -> int:
    """Say which layer is at fault in logs, tracebacks or a pasted mess.

    FILE is a log, a folder of logs (a plog folder, one file a rank), an archive of them (tar, zip, gz, archives in it), or - for standard input.
    Lines are ordered by time over all of them.  Nothing that stands in a log is run or sent.

    \b
    jumar diagnose train.log
    jumar diagnose ~/ascend/log rank_*/worker_*.log --lang zh
    python train.py 2>&1 | jumar diagnose -

    Exit code: 0 nothing wrong was found, 1 findings, 2 could not check, or not all that was named.
    """
    if not paths:
        raise click.UsageError("give at least one file or folder, or - for standard input")
    with _progress(paths, lang) as progress:
        found = opened(paths, progress)
        verdict = diagnose(found.sources)
    names = ", ".join(map(str, paths))
    empty = () if verdict.lines else (Said(f"{names}: nothing to read", f"{names}：没有可读的内容"),)
    verdict = replace(verdict, notes=(*verdict.notes, *found.notes, *empty), unread=bool(found.failed))
    show(verdict, lang, as_json=as_json, html=html)
    return verdict.exit_code


@contextmanager
def _progress(paths: tuple[Path, ...], lang: Language) -> Iterator[Callable[[int], None]]:
    """A bar on stderr while much is read, if that is a terminal."""
    total = size_of(paths) if sys.stderr.isatty() else 0
    with ExitStack() as stack:
        bar: Any = None

        def tell(nbytes: int) -> None:
            nonlocal bar
            if total >= _LONG:  # the bar comes with the first bytes: a file that is not there shows none
                bar = bar or stack.enter_context(
                    click.progressbar(length=total, label=told(Said("reading", "读取"), lang), file=sys.stderr)
                )
                bar.update(nbytes)

        yield tell
