"""The language that a command answers in: English or Chinese.

In: `--lang`, else the locale (LC_ALL, LC_MESSAGES, LANG, the first that is set, as POSIX orders them).  Out: "en" or "zh", given to the command as
`lang`; an error that it raises is told in it, too.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from jumar.base import Language, StackError

_Answer = TypeVar("_Answer")


def language(option: str | None, environment: Mapping[str, str] | None = None) -> Language:
    """The language to answer in.   option: what --lang says, None where it was not given; environment: for tests.

    >>> language("zh"), language(None, {"LANG": "zh_CN.UTF-8"}), language(None, {"LC_ALL": "C", "LANG": "zh_CN.UTF-8"})
    ('zh', 'zh', 'en')
    """
    env = os.environ if environment is None else environment
    asked = option or next((env[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if env.get(name)), "")
    return "zh" if asked.lower().startswith("zh") else "en"


def lang_option(command: Callable[..., _Answer]) -> Callable[..., _Answer]:
    """Adds `--lang en|zh` to a click command: its parameter `lang` is the language to answer in."""

    @functools.wraps(command)
    def answering(*values: Any, lang: Language, **options: Any) -> _Answer:  # click gives whatever the command asked for
        try:
            return command(*values, lang=lang, **options)
        except StackError as error:
            error.language = lang
            raise

    def chosen(ctx: click.Context, _param: click.Parameter, asked: str | None) -> Language:
        answer = language(asked)
        if ctx.obj is not None:  # of cli.py, which tells how the command ended
            ctx.obj["lang"] = answer
        return answer

    about = "Language of the answer and of errors; without it, the locale's."
    return click.option("--lang", type=click.Choice(["en", "zh"]), callback=chosen, help=about)(answering)
