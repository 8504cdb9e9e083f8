"""The errors of `jumar doctor` in Chinese, where somebody asked for it.

In: a `ToolError` in English.  Out: the same one with the text of the language; command.py raises it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from jumar.base import ToolError

_WHAT = (
    (r"(.*): must be readable, got No such file or directory", r"\1：文件或目录不存在"),
    (r"(.*): must be readable, got Permission denied", r"\1：没有读取权限"),
    (r"(.*): must be readable, got (.*)", r"\1：无法读取（\2）"),
    (r"(.*): must hold text files, got .*", r"\1：其中没有可读的文本文件"),
    (r"(.*): must hold files of a machine, got none that is known", r"\1：其中没有可识别的机器文件"),
    (r"(.*): must hold files of an Ascend machine, .*", r"\1：其中没有任何昇腾机器的信息，无法检查"),
    (r"(.*): must be a whole archive, .*", r"\1：归档不完整或已损坏"),
    (r"(.*): must be a folder, an archive or a text file, .*", r"\1：必须是目录、归档或文本文件"),
    (r"(.*): must be a file to write, got a folder", r"\1：是目录，必须是要写的文件"),
    (r"(.*): must be in a folder that is there, got (.*)", r"\1：目录 \2 不存在"),
    (r"(.*): must end in \.tar\.gz, .*", r"\1：文件名必须以 .tar.gz 结尾（写出的就是这种格式）"),
    (r"(.*): must not be there yet, got a file", r"\1：文件已存在"),
    (r"(.*): must be writable, got (.*)", r"\1：无法写入（\2）"),
)
_HINTS = {
    "check the path and its permissions": "检查路径和权限",
    "docs/field/doctor.md lists what to copy": "要复制的文件见 docs/field/doctor.md",
    "copy it again": "重新复制一次",
    "another name, or --force to replace it": "换一个名字，或用 --force 覆盖",
    "another folder": "换一个目录",
}


@contextmanager
def errors_in(lang: str) -> Iterator[None]:
    """What goes wrong within is said in this language; what is not known here stays English."""
    try:
        yield
    except ToolError as error:
        if lang != "zh":
            raise
        said = next((found.expand(to) for pattern, to in _WHAT if (found := re.fullmatch(pattern, error.what, re.DOTALL))), error.what)
        raise ToolError(said, loc=error.loc, hint=_HINTS.get(error.hint, error.hint), code=error.code) from error
