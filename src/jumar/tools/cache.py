"""`jumar cache`: what the compile cache holds, and how to empty it.

In: the folder of the setting `cache_dir`.  Out: counts and sizes; `clear` removes the entries, never another file.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import click

from jumar.base import config
from jumar.tools.enable.units import nbytes_text, plural

_ENTRY = re.compile(r"[0-9a-f]{16,}(\..*\.tmp)?")  # a digest, or one being written


@click.group()
def command() -> None:
    """Show or clear the compile cache."""


@command.command()
def show() -> None:
    """Say where the cache is, how many entries it holds and how large they are."""
    folder = Path(config("cache_dir"))
    click.echo(f"folder   {folder}")
    groups: dict[str, list[int]] = {}
    for path in entries(folder):
        with contextlib.suppress(OSError):
            groups.setdefault(path.relative_to(folder).parts[0] if path.parent.parent != folder else "entries", []).append(
                path.stat().st_size
            )
    for name, sizes in sorted(groups.items()):
        click.echo(f"{name:8} {plural(len(sizes), 'entry')}, {nbytes_text(sum(sizes))}")
    if not groups:
        click.echo("entries  none")
    click.echo(f"limit    {config('cache_gb'):g} GB (JUMAR_CACHE_GB), the least recently used go first")


@command.command()
def clear() -> None:
    """Remove every entry of the cache."""
    folder = Path(config("cache_dir"))
    count, nbytes = 0, 0
    for path in entries(folder):
        with contextlib.suppress(OSError):  # another process may have removed it
            nbytes += path.stat().st_size
            path.unlink()
            count += 1
    click.echo(f"removed {plural(count, 'entry')}, {nbytes_text(nbytes)}, from {folder}")


def entries(folder: Path) -> list[Path]:
    """Files in the cache folder that the cache itself wrote, by their names."""
    return sorted(p for p in folder.rglob("*") if p.is_file() and _ENTRY.fullmatch(p.name)) if folder.is_dir() else []
