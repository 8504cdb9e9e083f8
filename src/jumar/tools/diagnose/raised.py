"""The exception that a frame of a traceback led to: a frame shows where, the traceback's last line what.

In: findings, the lines that look like an error.  Out: the same findings; where a frame proves one, the exception of its traceback stands beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from jumar.tools.knowledge import Evidence, Finding

_FRAME = re.compile(r'(?P<before>.*?)\s*File "[^"\n]{1,400}", line \d+(?:, in \S+)?')
_EXCEPTION = re.compile(
    r"(?P<before>.*?)\s?(?<![\w.])[A-Za-z_][\w.]{0,100}(?:Error|Exception|Failed|Timeout|Expired|Interrupt|Exit|Warning)(?::|$)"
)
_FAR = 120  # lines from a frame to the end of its traceback


def with_exceptions(findings: tuple[Finding, ...], errors: Iterable[Evidence]) -> tuple[Finding, ...]:
    """The findings, with the exceptions of the frames that prove them."""
    ends: dict[str, list[tuple[Evidence, str]]] = {}
    for line in sorted(set(errors), key=lambda e: (e.source, e.line)):
        if end := _EXCEPTION.match(line.text):
            ends.setdefault(line.source, []).append((line, end["before"].rstrip()))

    def shown(finding: Finding) -> Finding:
        lines: dict[Evidence, None] = {}
        for line in finding.evidence:
            lines[line] = None
            if frame := _FRAME.match(line.text):
                before = frame["before"].rstrip()  # [rank3]: of a launcher, which weaves the tracebacks of ranks into each other
                near = (e for e, b in ends.get(line.source, ()) if b == before and line.line < e.line <= line.line + _FAR)
                if end := next(near, None):
                    lines[end] = None
        return finding if len(lines) == len(finding.evidence) else replace(finding, evidence=tuple(lines))

    return tuple(map(shown, findings))
