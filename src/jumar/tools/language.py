"""The language that a command answers in: English or Chinese.

In: `--lang`, else the locale (LC_ALL, LC_MESSAGES, LANG, the first that is set, as POSIX orders them).  Out: "en" or "zh".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

import click

Language = Literal["en", "zh"]
_Command = TypeVar("_Command", bound=Callable[..., Any])


def language(option: str | None, environment: Mapping[str, str] | None = None) -> Language:
    """The language to answer in.   option: what --lang says, None where it was not given; environment: for tests.

    >>> language("zh"), language(None, {"LANG": "zh_CN.UTF-8"}), language(None, {"LC_ALL": "C", "LANG": "zh_CN.UTF-8"})
    ('zh', 'zh', 'en')
    """
    env = os.environ if environment is None else environment
    asked = option or next((env[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if env.get(name)), "")
    return "zh" if asked.lower().startswith("zh") else "en"


def lang_option(command: _Command) -> _Command:
    """Adds `--lang zh|en` to a click command; its parameter is `lang`."""
    return click.option("--lang", type=click.Choice(["en", "zh"]), help="Language of the answer; without it, the locale's.")(command)
