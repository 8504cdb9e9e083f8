"""A verdict in the terminal: no more than a screen."""

from __future__ import annotations

import click

from jumar.tools.knowledge import layers
from jumar.tools.verdict.verdict import Verdict


def terminal(verdict: Verdict, lang: str) -> str:
    """The verdict as text with colours."""
    lines = []
    known = layers()
    if verdict.findings:
        finding = verdict.findings[0]
        text = finding.text(lang)
        lines.append(click.style(f"{known[verdict.layer].title[lang]}: {finding.rule.cause} ({verdict.confidence})", bold=True))
        lines.append(text.what)
        lines += [f"  {e}: {e.text.strip()[:160]}" for e in finding.evidence]
        lines += [f"- {step}" for step in text.fix]
        lines += [f"  $ {command}" for command in finding.run()]
    elif verdict.first_error:
        lines.append(
            f"not known; layer {verdict.layer or '?'}; first error {verdict.first_error}: {verdict.first_error.text.strip()[:160]}"
        )
    for finding in verdict.findings[1:4]:
        lines.append(f"also: {finding.rule.name}: {finding.what(lang)[:120]}")
    lines += [f"followed: {finding.rule.name}" for finding in verdict.followed[:6]]
    lines += [f"{d.text}: {d.codes[0].symbol} {getattr(d.codes[0], lang)}" for d in verdict.codes if d.codes]
    return "\n".join(lines)
