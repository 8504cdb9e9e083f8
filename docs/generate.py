"""Writes what comes from the code and from bench/results.

The pages ops.md, settings.md, names.md, performance.md with its chart, errors/index.md and field/causes/;
the tables of twin/soc.md and twin/formats-and-fusion.md; the messages inside errors/*.md; figures in the READMEs.

In: the registry, `SETTINGS`, the newest results, and the snippets of the error pages, which are run.  Out: the files; `--check` says which
are out of date.
Usage: python docs/generate.py [--check]
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS.parent / "src"), str(DOCS.parent)]

from docs import causes, names, performance, twin_models  # noqa: E402

from jumar.base import SETTINGS, StackError  # noqa: E402
from jumar.compiler.passes.fusion_rules import described  # noqa: E402
from jumar.compiler.passes.switches import FREE, rule_names  # noqa: E402
from jumar.device.npu import chips  # noqa: E402
from jumar.ir import REGISTRY  # noqa: E402
from jumar.tools.ops import op_rows  # noqa: E402
from jumar.tools.soc import text_of  # noqa: E402

_BLOCK = re.compile(r"```(\w+)\n(.*?)\n```", re.DOTALL)
NOTE = "<!-- written by docs/generate.py; do not edit -->\n\n"


def ops_page() -> str:
    """Every operator by family: attributes, meaning, what it has."""
    rows = [r for r in op_rows() if r.family]
    lines = ["# Operators", "", NOTE.strip(), ""]
    about = "CPU: machine code by its `own` schedule, its `family`'s, or its `parts`'; on the host where empty."
    lines.append(f"{len(rows)} operators. `jumar ops --table` prints the same. {about}")
    for family in dict.fromkeys(r.family for r in rows):
        lines += ["", f"## {family.capitalize()}", "", "| operator | attributes | meaning | CPU | CANN |", "|---|---|---|---|---|"]
        for r in (r for r in rows if r.family == family):
            doc = (r.doc or "").replace("|", "\\|")
            signature = REGISTRY[r.name].signature
            about = f"{doc} `{signature}`" if signature else doc
            lines.append(f"| `{r.name}` | {r.attributes} | {about} | {r.cpu} | {r.cann} |")
    return "\n".join(lines) + "\n"


def settings_page() -> str:
    """Every setting."""
    lines = [
        "# Settings",
        "",
        NOTE.strip(),
        "",
        "Each is read from its environment variable at the moment it is needed; `jumar settings` shows the values now.",
        "",
    ]
    lines += ["| variable | default | meaning | also | changes code |", "|---|---|---|---|---|"]
    for s in SETTINGS.values():
        default = "" if s.default in ("", None) else f"`{s.default}`"
        also = f"`{s.also}`" if s.also else ""
        lines.append(f"| `{s.environment}` | {default} | {s.meaning} | {also} | {'yes' if s.changes_code else ''} |")
    lines += ["", "What changes code is part of the key of the compile cache, so that a changed setting never meets old code."]
    return "\n".join(lines) + "\n"


def between(page: Path, name: str, text: str) -> str:
    """A page with a text between its marks of that name."""
    before, rest = page.read_text(encoding="utf-8").split(f"<!-- {name} -->\n", 1)
    after = rest.split(f"<!-- end of {name} -->\n", 1)[1]
    return f"{before}<!-- {name} -->\n<!-- written by docs/generate.py -->\n\n{text}\n\n<!-- end of {name} -->\n{after}"


def soc_page() -> str:
    """The chips: a table between the words that docs/twin/soc.md has around it."""
    lines = [
        "| chip | cores | clock | fp16 | bf16 | int8 | fp32 | memory | L2 | fp16 past 65504 |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for c in chips():
        figures = c.figures
        peaks = (f"{c.peak_flops_per_s(d) / 1e12:.4g}" if d in c.cube_macs else "-" for d in ("f16", "bf16", "i8", "f32"))
        memory = f"{text_of(figures['memory_nbytes'])}, {text_of(figures['memory_bytes_per_s'])}"
        clock = f"{text_of(figures['clock_hz'])}{' (measured)' if figures['clock_hz'].kind == 'measured' else ''}"
        overflow = {"saturate": "saturates", "infnan": "inf", "both": "inf, or saturates"}[c.overflow]
        cells = (f"`{c.name}`", f"{c.cube_cores} + {c.vector_cores}", clock, *peaks, memory, text_of(figures["l2_nbytes"]), overflow)
        lines.append(f"| {' | '.join(cells)} |")
    return between(DOCS / "twin" / "soc.md", "chips", "\n".join(lines))


def fusion_page() -> str:
    """The device's fusion rules: those that join something here, then those that are only known."""
    known = dict(rule_names())
    order = ("310", "310b", "310p", "910", "910b", "910_93", "950")
    lines = ["| rule | group | after | joins | chips | switched off |", "|---|---|---|---|---|---|"]
    used = set()
    for name, after, what in described():
        rule = known[name]
        chips_of = " ".join(f for f in order if rule.on(f))
        lines.append(f"| `{name}` | {rule.group} | {after} | {what} | {chips_of} | {rule.switched_off} |")
        used.add(name)
    rest = [f"`{n}`" if r.switched_off == FREE else f"`{n}` ({r.switched_off})" for n, r in sorted(known.items()) if n not in used]
    lines += ["", f"A switch file may name these {len(rest)}, too, and they change nothing here:", "", ", ".join(rest) + "."]
    return between(DOCS / "twin" / "formats-and-fusion.md", "rules", "\n".join(lines))


def index_page() -> str:
    """All error codes with their first sentence."""
    lines = [
        "# Error codes",
        "",
        NOTE.strip(),
        "",
        "An error names its page: `more: jumar explain CODE`. Every snippet on these pages runs in the tests.",
        "",
    ]
    for path in error_pages():
        about = path.read_text(encoding="utf-8").split("\n\n")[1]
        lines.append(f"- [{path.stem}]({path.name}): {about}")
    return "\n".join(lines) + "\n"


def error_pages() -> list[Path]:
    return sorted(p for p in (DOCS / "errors").glob("*.md") if p.stem != "index")


def snippets(text: str) -> tuple[str, str, str] | None:
    """The failing snippet, its message, the working snippet; None on a page without."""
    blocks = [(kind, body) for kind, body in _BLOCK.findall(text) if kind in ("python", "text")]
    if not blocks:
        return None
    assert [kind for kind, _ in blocks] == ["python", "text", "python"], "a page holds a failing snippet, its message, and a working one"
    return blocks[0][1], blocks[1][1], blocks[2][1]


def message_of(snippet: str, code: str) -> str:
    """What the snippet says when it fails, with folders of this run made equal."""
    try:
        run(snippet, code)
    except StackError as error:
        assert error.code == code, f"{code}: the snippet must fail with its own code, got {error.code}"
        return re.sub(re.escape(tempfile.gettempdir()) + r"/tmp\w+", "FOLDER", str(error))
    raise AssertionError(f"{code}: the snippet must fail, and ran")


@contextlib.contextmanager
def elsewhere() -> Iterator[None]:
    """In a folder of its own: some snippets write files."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def run(snippet: str, name: str) -> None:
    with (
        elsewhere(),
        contextlib.redirect_stdout(io.StringIO()),
        mock.patch.dict(os.environ, JUMAR_CACHE="0"),
    ):  # as on a machine that never saw the model
        exec(compile(snippet, name, "exec"), {"__name__": "snippet"})


def generated() -> dict[Path, str]:
    """Every generated page's text."""
    pages = {DOCS / "ops.md": ops_page(), DOCS / "settings.md": settings_page(), DOCS / "errors" / "index.md": index_page()}
    pages[DOCS / "twin" / "soc.md"] = soc_page()
    pages[DOCS / "twin" / "formats-and-fusion.md"] = fusion_page()
    pages[twin_models.PAGE] = twin_models.page()
    pages |= causes.pages(NOTE)
    pages[DOCS / "names.md"] = names.page(NOTE)
    pages[DOCS / "performance.md"] = performance.page(NOTE)
    pages[DOCS / "images" / "performance.svg"] = performance.chart(performance.newest_bars())
    for readme in (DOCS.parent / "README.md", DOCS.parent / "README.zh.md"):
        pages[readme] = performance.readme(readme.name, readme.read_text(encoding="utf-8"))
    for path in error_pages():
        text = path.read_text(encoding="utf-8")
        found = snippets(text)
        if found:
            pages[path] = text.replace(f"```text\n{found[1]}\n```", f"```text\n{message_of(found[0], path.stem)}\n```")
    return pages


def main() -> None:
    stale = [p for p, text in generated().items() if not p.exists() or p.read_text(encoding="utf-8") != text]
    for path in stale:
        print(path.relative_to(DOCS.parent))
    if "--check" in sys.argv:
        sys.exit(bool(stale))
    pages = generated()
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(pages[path], encoding="utf-8")


if __name__ == "__main__":
    main()
