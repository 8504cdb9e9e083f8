"""The settings, looked at before the work: a misspelt one costs an error now and not a wrong figure later.

In: the environment.  Out: warnings; an error where a value cannot be meant.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from jumar.base import ToolError, config, nearest
from jumar.compiler import stages
from jumar.device import host
from jumar.tools.settings import check_values, unknown_variables


def check_settings() -> tuple[str, ...]:
    """Warnings about the settings; refuses values that no setting takes."""
    check_values()
    _check_passes()
    fault = cache_fault()
    notes = [f"the compile cache cannot be used: {fault}"] if fault and config("cache") else []
    return (*notes, *(f"no setting is called {name}, and it does nothing" for name in unknown_variables()))


def cache_fault() -> str:
    """Why the compile cache is not used; empty where it is."""
    if not config("cache"):
        return "JUMAR_CACHE is off"
    folder = Path(config("cache_dir"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return f"{folder}: {error.strerror}"


def _check_passes() -> None:
    wanted = [name.strip() for name in config("skip_passes").split(",") if name.strip()]
    if not wanted:
        return
    before = os.environ.pop("JUMAR_SKIP_PASSES")  # the table leaves out what is skipped
    try:
        known = sorted({p.name for stage in stages(host()) for p in stage.passes})
    finally:
        os.environ["JUMAR_SKIP_PASSES"] = before
    for name in wanted:
        if name not in known:
            hint = nearest(name, known) or f"known: {', '.join(known)}"
            raise ToolError(f"config: JUMAR_SKIP_PASSES must name passes, got {name!r}", hint=hint, code="setting-value")
