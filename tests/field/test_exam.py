"""The doctor in five exams that its rules have not seen: a floor for the mean of each, and nothing is found where nothing is wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from jumar.tools.knowledge import layers
from tests.field.exam import EXAM, EXAM2, EXAM3, EXAM4, EXAM5, Report, graded, mean, reports

FLOORS = {
    EXAM: 0.95,
    EXAM2: 0.75,
    EXAM3: 0.75,
    EXAM4: 0.75,
    EXAM5: 0.75,
}  # 0.92, 0.91, 0.94, 0.82 and 0.87 when the exams were written; what they found has been mended since
NOT_YET: dict[str, str] = {}  # healthy texts in which words of failures are found all the same; who mends one takes it out


@pytest.mark.parametrize(
    ("folder", "none"),
    [(folder, {""} if folder == EXAM else set[str]()) for folder in FLOORS],
    ids=[folder.name for folder in FLOORS],
)
def test_every_layer_is_examined_and_every_report_has_one_name(folder: Path, none: set[str]) -> None:
    asked = Counter(report.layer for report in reports(folder))
    assert set(layers()) | none == set(asked)
    assert {1} == set(Counter(report.id for report in reports(folder)).values())


@pytest.mark.parametrize("folder", FLOORS, ids=lambda folder: folder.name)
def test_the_mean_of_the_exam_is_above_its_floor(folder: Path) -> None:
    assert mean(graded(report).score for report in reports(folder) if report.layer) >= FLOORS[folder]


def _healthy() -> list[Any]:
    marks = {name: pytest.mark.xfail(reason=why) for name, why in NOT_YET.items()}
    return [pytest.param(r, id=r.id, marks=marks.get(r.id, ())) for r in reports() if not r.layer]


@pytest.mark.parametrize("report", _healthy())
def test_a_healthy_report_gives_no_firm_finding(report: Report) -> None:
    grade = graded(report)
    assert not grade.firm, grade.said
