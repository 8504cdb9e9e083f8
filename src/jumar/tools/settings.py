"""`jumar settings`: every setting, its value now, and where that comes from.

In: `base.SETTINGS` and the environment.  Out: a table, or JSON.
"""

from __future__ import annotations

import json
import os

import click

from jumar.base import SETTINGS, config, nearest


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> None:
    """List the settings: name, value, where it comes from, meaning. Each is set by its environment variable."""
    rows = [
        {
            "name": s.name,
            "value": str(config(s.name)),
            "from": s.environment if s.environment in os.environ else "default",
            "environment": s.environment,
            "also": s.also,
            "changes_code": s.changes_code,
            "meaning": s.meaning,
        }
        for s in SETTINGS.values()
    ]
    known = [s.environment for s in SETTINGS.values()]
    unknown = {name: nearest(name, known) for name in sorted(os.environ) if name.startswith("JUMAR_") and name not in known}
    if as_json:
        rows += [{"name": "", "environment": name, "from": name, "meaning": f"unknown; {hint}"} for name, hint in unknown.items()]
        click.echo(json.dumps(rows, indent=1))
        return
    for row in rows:
        also = f", also {row['also']}" if row["also"] else ""
        click.echo(f"{row['environment']} = {row['value'] or '(empty)'}   ({row['from']})\n    {row['meaning']}{also}")
    for name, hint in unknown.items():
        click.echo(f"{name}   (no setting is called that{f'; {hint}' if hint else ''})")
