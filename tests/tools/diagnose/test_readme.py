"""What the READMEs and the docs show of `jumar diagnose` is what it prints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(("page", "lang"), [("README.md", "en"), ("README.zh.md", "zh"), ("docs/field/diagnose.md", "en")])
def test_the_verdict_that_a_page_shows_is_printed_so(page: str, lang: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "JUMAR_RULES")} | {"PYTHONUTF8": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "jumar", "diagnose", "examples/failed_job", "--lang", lang],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert f"```text\n{done.stdout}```" in (ROOT / page).read_text(encoding="utf-8")
