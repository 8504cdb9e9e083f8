"""`jumar settings`: every setting, its value now, and where that comes from.

In: `base.SETTINGS` and the environment.  Out: a table, or JSON.
"""

from __future__ import annotations

import json
import os

import click

from jumar.base import SETTINGS, ToolError, config, nearest

_FLAGS = ("", "0", "1", "false", "true", "no", "yes", "off", "on")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> None:
    """List the settings: name, value, where it comes from, meaning. Each is set by its environment variable."""
    check_values()
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
    unknown = unknown_variables()
    if as_json:
        rows += [{"name": "", "environment": name, "from": name, "meaning": f"unknown; {hint}"} for name, hint in unknown.items()]
        click.echo(json.dumps(rows, indent=1))
        return
    for row in rows:
        also = f", also {row['also']}" if row["also"] else ""
        click.echo(f"{row['environment']} = {row['value'] or '(empty)'}   ({row['from']})\n    {row['meaning']}{also}")
    for name, hint in unknown.items():
        click.echo(f"{name}   (no setting is called that{f'; {hint}' if hint else ''})")


_OF_SCRIPTS = {"JUMAR_VENV", "JUMAR_TEST_CACHE"}  # read by scripts/ and tests/, not by the package


def check_values() -> None:
    """Refuses values that no setting takes."""
    for setting in SETTINGS.values():
        config(setting.name)
        text = os.environ.get(setting.environment, "").strip().lower()
        if isinstance(setting.default, bool) and text not in _FLAGS:
            raise ToolError(f"config: {setting.environment} must be 0 or 1, got {text!r}", code="setting-value")
    if config("threads") < 0:
        raise ToolError(f"config: JUMAR_THREADS must be at least 0, got {config('threads')}", code="setting-value")


def unknown_variables() -> dict[str, str]:
    """Variables JUMAR_* that no setting reads, each with the nearest setting."""
    known = {s.environment for s in SETTINGS.values()} | _OF_SCRIPTS
    found = [name for name in sorted(os.environ) if name.startswith("JUMAR_") and name not in known]
    return {name: nearest(name.removeprefix("JUMAR_").lower(), list(SETTINGS)) for name in found}
