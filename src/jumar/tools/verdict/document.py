"""A verdict as JSON: a stable document, told by `schema()`.

In: a `Verdict`.  Out: plain values.  A key is never renamed or removed without a new number in `format`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jumar.tools.knowledge import LANGUAGES, Evidence, Finding
from jumar.tools.verdict.verdict import Decoded, Verdict

FORMAT = 1


def document(verdict: Verdict) -> dict[str, Any]:
    """The verdict for programs: both languages, all evidence, codes decoded."""
    return {
        "format": FORMAT,
        "exit_code": verdict.exit_code,
        "layer": verdict.layer,
        "confidence": verdict.confidence,
        "machine": verdict.machine,
        "components": [
            {"name": c.name, "value": c.value, "state": c.state, "evidence": _evidence(c.evidence) if c.evidence else None}
            for c in verdict.components
        ],
        "levels": [{"name": level.name, "state": level.state, "why": dict(level.why)} for level in verdict.levels],
        "findings": [_finding(f) for f in verdict.findings],
        "followed": [_finding(f) for f in verdict.followed],
        "like": _finding(verdict.like) if verdict.like else None,
        "codes": [_decoded(d) for d in verdict.codes],
        "first_error": _evidence(verdict.first_error) if verdict.first_error else None,
        "first_rank": verdict.first_rank,
        "sources": list(verdict.sources),
        "lines": verdict.lines,
        "notes": list(verdict.notes),
    }


def schema() -> dict[str, Any]:
    """The JSON schema of the document."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name("verdict.schema.json").read_text(encoding="utf-8"))
    return found


def _evidence(evidence: Evidence) -> dict[str, Any]:
    return {"source": evidence.source, "line": evidence.line, "text": evidence.text}


def _finding(finding: Finding) -> dict[str, Any]:
    texts = {lang: finding.text(lang) for lang in LANGUAGES}
    return {
        "rule": finding.rule.name,
        "layer": finding.rule.layer,
        "stack": finding.rule.stack,
        "cause": finding.rule.cause,
        "tier": finding.rule.tier,
        "what": {lang: text.what for lang, text in texts.items()},
        "fix": {lang: list(text.fix) for lang, text in texts.items()},
        "next": {lang: text.next for lang, text in texts.items()},
        "blanks": {lang: dict(finding.blanks(lang)) for lang in texts},
        "commands": list(finding.run()),
        "evidence": [_evidence(e) for e in finding.evidence],
        "count": finding.count,
        "follows": finding.follows,
    }


def _decoded(decoded: Decoded) -> dict[str, Any]:
    return {
        "text": decoded.text,
        "meanings": [
            {"number": c.number, "family": c.family, "module": c.module, "symbol": c.symbol, "en": c.en, "zh": c.zh, "layer": c.layer}
            for c in decoded.codes
        ],
        "evidence": _evidence(decoded.evidence),
    }
