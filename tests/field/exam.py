"""How the doctor does in an exam that its rules have not seen: `python -m tests.field.exam [FOLDER]`.

In: FOLDER/*.toml (exam/ unless told; exam2/ to exam5/ were held back from who wrote rules), reports as users paste them with their true answer,
written by one who had not read the rules.
Out: `reports(folder)`, `graded(report)`; as a script the score of each layer, and the reports that lost points: what was said instead, which words are missing.
A report is scored as field cases are: 0.4 layer (0.25 for one of `also`), 0.4 groups of words (the answer's own), 0.2 a line of the input as evidence.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from jumar.base import read_toml
from jumar.tools.diagnose import diagnose_text
from jumar.tools.verdict import Verdict
from tests.field.answer_cases import text_of

EXAM = Path(__file__).parent / "exam"
EXAM2 = Path(__file__).parent / "exam2"
EXAM3 = Path(__file__).parent / "exam3"
EXAM4 = Path(__file__).parent / "exam4"
EXAM5 = Path(__file__).parent / "exam5"
RUN, LIMIT = 40, 1200  # what is repeated from the input in longer runs does not count; nor what stands behind the limit
FIRM = ("cause", "symptom")


@dataclass(frozen=True)
class Report:
    """A text as a user pastes it.   layer: at fault, empty when nothing is wrong; also: other layers that pass; keywords: one of each group must be said."""

    id: str
    layer: str
    also: tuple[str, ...]
    keywords: tuple[tuple[str, ...], ...]
    why: str
    input: str


@dataclass(frozen=True)
class Grade:
    """What the answer to a report was worth.   said: layer, rule and tier of the answer; missing: the groups of words it lacks."""

    report: Report
    layer: float
    words: float
    evidence: float
    said: str
    missing: tuple[tuple[str, ...], ...]
    firm: bool

    @property
    def score(self) -> float:
        return self.layer + self.words + self.evidence


def reports(folder: Path = EXAM) -> tuple[Report, ...]:
    """Every report of the folder's exam, by layer."""
    tables = [table for path in sorted(folder.glob("*.toml")) for table in read_toml(path)["report"]]
    return tuple(
        Report(t["id"], t["layer"], tuple(t["also"]), tuple(tuple(group) for group in t["keywords"]), t["why"], t["input"]) for t in tables
    )


def graded(report: Report) -> Grade:
    """What `jumar diagnose` is worth on a report."""
    verdict = diagnose_text(report.input)
    text = own_words(text_of(verdict), report.input)
    missing = tuple(group for group in report.keywords if not any(word.lower() in text for word in group))
    return Grade(
        report,
        layer=0.4 if verdict.layer == report.layer else 0.25 if verdict.layer in report.also else 0.0,
        words=0.4 * (1 - len(missing) / max(1, len(report.keywords))),
        evidence=0.2 if _quotes(verdict, report.input) else 0.0,
        said=_said(verdict),
        missing=missing,
        firm=any(f.rule.tier in FIRM for f in verdict.findings),
    )


def own_words(text: str, source: str) -> str:
    """The text without the longer runs that it repeats from the source.

    >>> own_words("Set it. " + "x" * 50, "y" + "x" * 50)
    'set it.  '
    """
    t, s = " ".join(text.lower().split()), " ".join(source.lower().split())
    kept: list[str] = []
    at = 0
    while at < len(t):
        n = RUN
        if at + n > len(t) or t[at : at + n] not in s:
            kept.append(t[at])
            at += 1
            continue
        while at + n < len(t) and t[at : at + n + 1] in s:
            n += 1
        kept.append(" ")
        at += n
    return "".join(kept)[:LIMIT]


def mean(scores: Iterable[float]) -> float:
    values = list(scores)
    return sum(values) / max(1, len(values))


def _quotes(verdict: Verdict, source: str) -> bool:
    first = verdict.told.evidence if verdict.told else (verdict.first_error,) if verdict.first_error else ()
    lines = [line.strip() for line in source.splitlines() if len(line.strip()) > 8]
    said = [e.text.strip() for e in first]
    return any(8 < len(text) < 600 and any(text in line or line in text for line in lines) for text in said)


def _said(verdict: Verdict) -> str:
    if not verdict.told:
        return f"{verdict.layer or '-'} no finding"
    rule = verdict.told.rule
    return f"{verdict.layer or '-'} {rule.name} ({rule.tier})"


def table(grades: Iterable[Grade]) -> list[str]:
    """A line per layer and one for all.   Healthy reports are counted apart: right is no firm finding."""
    of: dict[str, list[Grade]] = defaultdict(list)
    for grade in grades:
        of[grade.report.layer].append(grade)
    healthy = of.pop("", [])
    of = dict(sorted(of.items())) | {"ALL": [g for group in of.values() for g in group]}
    lines = [
        f"{name:17}n={len(g):3d}  mean {mean(x.score for x in g):.3f}  layer {mean(x.layer == 0.4 for x in g):.2f}"
        for name, g in of.items()
    ]
    if healthy:
        lines.append(f"{'healthy':17}n={len(healthy):3d}  without a firm finding {sum(not g.firm for g in healthy)}")
    return lines


def lost(grades: Iterable[Grade]) -> list[str]:
    """A line for every report that lost points."""
    wrong = [g for g in grades if (g.firm if not g.report.layer else g.score < 0.999)]
    return [f"{g.report.id:14}{g.score:.2f}  said: {g.said}" + "".join(f"  lacks {'|'.join(group)}" for group in g.missing) for g in wrong]


if __name__ == "__main__":
    marks = tuple(graded(report) for report in reports(Path(sys.argv[1]) if len(sys.argv) > 1 else EXAM))
    sys.stdout.write("\n".join([*table(marks), "", *lost(marks)]) + "\n")
