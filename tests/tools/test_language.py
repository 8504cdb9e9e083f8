"""The language of an answer: what was asked for, else the locale's."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from jumar.base import Language, Said, ToolError
from jumar.tools.language import lang_option, language


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


@click.command()
@click.argument("name")
@lang_option
def failing(name: str, lang: Language) -> None:
    raise ToolError(Said(f"{name}: must be there, got none", f"{name}：不存在"))


@pytest.mark.parametrize(
    ("arguments", "locale", "what"),
    [
        (["--lang", "zh"], "C", "a：不存在"),
        ([], "zh_CN.UTF-8", "a：不存在"),
        (["--lang", "en"], "zh_CN.UTF-8", "a: must be there, got none"),
        ([], "C", "a: must be there, got none"),
    ],
)
def test_an_error_is_told_in_the_language_of_the_answer(arguments: list[str], locale: str, what: str) -> None:
    done = CliRunner(env={"LC_ALL": locale}).invoke(failing, ["a", *arguments], standalone_mode=False)
    assert f"ToolError: [tools] {what}" == str(done.exception)
