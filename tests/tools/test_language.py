"""The language of an answer: what was asked for, else the locale's."""

from __future__ import annotations

import pytest

from jumar.tools.language import language


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_TW"}, "zh"),
        ({"LANG": "en_GB.UTF-8"}, "en"),
        ({"LC_ALL": "", "LC_MESSAGES": "zh_CN.GBK", "LANG": "en_US.UTF-8"}, "zh"),
        ({"LC_ALL": "C.UTF-8", "LC_MESSAGES": "zh_CN", "LANG": "zh_CN"}, "en"),
    ],
)
def test_the_first_locale_that_is_set_decides(environment: dict[str, str], expected: str) -> None:
    assert language(None, environment) == expected


@pytest.mark.parametrize("asked", ["en", "zh"])
def test_what_is_asked_for_goes_before_the_locale(asked: str) -> None:
    assert language(asked, {"LC_ALL": "zh_CN.UTF-8" if asked == "en" else "C"}) == asked
