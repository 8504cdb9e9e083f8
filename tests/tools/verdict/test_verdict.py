"""A verdict is shown in a terminal, as JSON after its schema, and as a page that acts on nothing that stands in a log."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from jumar.tools.diagnose import diagnose_text
from jumar.tools.knowledge import Evidence, Finding, Moment, load_rules
from jumar.tools.verdict import Component, Level, Verdict, show
from jumar.tools.verdict.document import document, schema
from jumar.tools.verdict.page import page

HOSTILE = "ERROR <script>alert(1)</script> [bold red]x[/] \x1b]0;title\x07\x1b[2J {{ 7 * 7 }} \u202e end"


def hostile() -> Verdict:
    rule = load_rules()[0]
    line = Evidence("run.log", 3, HOSTILE)
    finding = Finding(rule, {}, (line,), 1, Moment())
    levels = (Level("driver", "verified", {"en": "npu-smi answers", "zh": "npu-smi 有应答"}),)
    return Verdict(
        findings=(finding,),
        followed=(finding,),
        layer=rule.layer,
        confidence="high",
        first_error=line,
        sources=("run.log",),
        lines=3,
        notes=("a note",),
        machine="a machine",
        components=(Component("driver", HOSTILE, "bad", line),),
        levels=levels,
    )


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.append(tag)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_page_escapes_what_a_log_holds(lang: str) -> None:
    text = page(hostile(), lang)
    tags = Tags()
    tags.feed(text)
    assert "script" not in tags.seen and "&lt;script&gt;" in text
    assert "{{ 7 * 7 }}" in text and "\x1b" not in text and "\u202e" not in text


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_terminal_acts_on_nothing_that_a_log_holds(lang: str, capsys: pytest.CaptureFixture[str]) -> None:
    show(hostile(), lang)
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\x07" not in out and "[bold red]x[/]" in out
    assert len(out.splitlines()) <= 60


def test_json_follows_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    for verdict in (hostile(), Verdict(), diagnose_text("Device[1] lost heartbeat.\nerror code is 507010")):
        show(verdict, "en", as_json=True)
        found = json.loads(capsys.readouterr().out)
        assert found == json.loads(json.dumps(document(verdict)))
        jsonschema.validate(found, schema())


def test_exit_codes_tell_healthy_from_findings_from_nothing_read(tmp_path: Path) -> None:
    assert Verdict().exit_code == 2
    assert Verdict(sources=("a.log",), lines=3).exit_code == 0
    assert hostile().exit_code == 1


@pytest.mark.parametrize(
    ("verdict", "state", "code"),
    [
        (Verdict(), "nothing", 2),
        (Verdict(lines=3), "healthy", 0),
        (Verdict(lines=3, unread=True), "partly", 2),
        (Verdict(lines=3, first_error=Evidence("a", 1, "error")), "found", 1),
        (Verdict(lines=3, first_error=Evidence("a", 1, "error"), unread=True), "found", 2),
    ],
)
def test_the_exit_code_says_whether_all_that_was_named_could_be_read(verdict: Verdict, state: str, code: int) -> None:
    assert (verdict.state, verdict.exit_code) == (state, code)


@pytest.mark.parametrize("width", [30, 40, 60])
def test_a_narrow_terminal_shows_the_end_of_the_place_with_its_line_and_the_text(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    line = Evidence("a/very/long/way/to/the/folder/of/plog/plog-1002_20250501100000000.log", 1234, "RuntimeError: this proves it")
    finding = Finding(load_rules()[0], {}, (line,), 1, Moment())
    show(Verdict(findings=(finding,), followed=(finding,), layer=finding.rule.layer, confidence="high", lines=3), "en")
    shown = capsys.readouterr().out
    assert ".log:1234\n" in shown and "RuntimeError: this" in shown and "proves it" in " ".join(shown.split())
    assert max(map(len, shown.splitlines())) <= width
