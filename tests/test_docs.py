"""The docs: generated pages are current, every error code has a page, every snippet runs, every link leads somewhere, the site builds."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from docs import generate

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(p for p in (ROOT / "docs").rglob("*.md"))
TEXTS = [ROOT / "README.md", ROOT / "README.zh.md", *PAGES]
RUN = re.compile(r"<!-- runs -->\n+```python\n(.*?)\n```", re.DOTALL)


def codes() -> dict[str, str]:
    """Codes of errors in the source, with where each stands first."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.keyword(arg="code", value=ast.Constant(value=str(code))) if code:
                    found.setdefault(code, f"{path.relative_to(ROOT)}:{node.value.lineno}")
    return found


def test_generated_pages_are_current() -> None:
    """`python docs/generate.py` writes them."""
    stale = [p.relative_to(ROOT) for p, text in generate.generated().items() if not p.exists() or p.read_text(encoding="utf-8") != text]
    assert stale == []


def test_every_error_code_has_a_page_and_every_page_a_code() -> None:
    used, written = codes(), {p.stem for p in generate.error_pages()}
    assert {code: where for code, where in used.items() if code not in written} == {}
    assert written - set(used) == set()


@pytest.mark.parametrize("path", generate.error_pages(), ids=lambda p: p.stem)
def test_error_pages_fail_and_work_as_they_say(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = generate.snippets(path.read_text(encoding="utf-8"))
    if found is None:
        return  # what cannot be shown on every machine (a full memory, another CPU) is told in words
    fails, message, works = found
    assert generate.message_of(fails, path.stem) == message
    generate.run(works, path.stem)


@pytest.mark.parametrize("path", [p for p in TEXTS if p.exists() and RUN.search(p.read_text(encoding="utf-8"))], ids=lambda p: p.name)
def test_snippets_marked_to_run_do(path: Path, tmp_path: Path) -> None:
    """All snippets of a page in one process, one after the other, in a folder with model.onnx and x.npy; of the twin's pages each by itself."""
    import numpy as np

    from tests.tools.helpers import small_network

    small_network(tmp_path / "model.onnx")
    np.save(tmp_path / "x.npy", np.ones((1, 3, 16, 16), np.float32))
    snippets = RUN.findall(path.read_text(encoding="utf-8"))
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    for script in snippets if path.parent.name == "twin" else ["\n".join(snippets)]:
        done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    missing = [t for t in targets if not re.match(r"[a-z]+:", t) and not (path.parent / t).exists()]
    assert missing == []


def test_status_names_a_command_or_test_for_everything_that_works() -> None:
    lines = (ROOT / "docs" / "status.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| capability |")]
    assert len(rows) > 10
    for row in rows:
        cells = [c.strip() for c in row.strip("|").split("|")]
        assert cells[1] in ("works", "partly", "not yet"), row
        assert cells[1] == "not yet" or cells[2].startswith("`"), f"what works names the command that shows it: {row}"


@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="mkdocs is not installed (extra `docs`)")
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONWARNINGS": "ignore", "DISABLE_MKDOCS_2_WARNING": "true"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site" / "index.html").exists()
