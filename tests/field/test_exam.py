"""The doctor in an exam that its rules have not seen: a floor for the mean, and nothing is found where nothing is wrong."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from jumar.tools.knowledge import layers
from tests.field.exam import Grade, Report, graded, mean, reports

FLOOR = 0.80  # 0.92 when the exam was written
# healthy texts in which words of failures are found all the same; who mends one takes it out
NOT_YET = {
    "healthy-04": "a count of devices is said to be one that is missing",
    "healthy-09": "the name of a test that passed is read as a failure",
    "healthy-11": "a warning that double is cast to float, which costs nothing",
}


@pytest.fixture(scope="module")
def grades() -> tuple[Grade, ...]:
    return tuple(graded(report) for report in reports())


def test_every_layer_is_examined_and_every_report_has_one_name() -> None:
    asked = Counter(report.layer for report in reports())
    assert set(layers()) | {""} == set(asked)
    assert {1} == set(Counter(report.id for report in reports()).values())


def test_the_mean_of_the_exam_is_above_its_floor(grades: tuple[Grade, ...]) -> None:
    assert mean(grade.score for grade in grades if grade.report.layer) >= FLOOR


def _healthy() -> list[Any]:
    marks = {name: pytest.mark.xfail(reason=why) for name, why in NOT_YET.items()}
    return [pytest.param(r, id=r.id, marks=marks.get(r.id, ())) for r in reports() if not r.layer]


@pytest.mark.parametrize("report", _healthy())
def test_a_healthy_report_gives_no_firm_finding(report: Report) -> None:
    grade = graded(report)
    assert not grade.firm, grade.said
