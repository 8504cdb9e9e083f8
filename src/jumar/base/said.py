"""A text in both of our languages, written down where it arises.

In: what there is to say, in English and in Chinese.  Out: `Said`, which every reader of texts takes for the English one, `UNSAID` where there is
nothing to say; `told`, the text in the language that somebody reads.  `reason` says both of an `OSError`.
"""

from __future__ import annotations

import errno
from typing import Literal

Language = Literal["en", "zh"]


class Said(str):
    """An English text that holds the same in Chinese.   Put together with others it is English: say the whole sentence in both.

    >>> gone = Said("a.log is gone", "a.log 已不在")
    >>> gone, told(gone, "zh"), told("a.log", "zh")
    ('a.log is gone', 'a.log 已不在', 'a.log')
    """

    __slots__ = ("zh",)
    zh: str

    def __new__(cls, en: str, zh: str) -> Said:
        said = super().__new__(cls, en)
        said.zh = zh
        return said

    def __reduce__(self) -> tuple[type[Said], tuple[str, str]]:  # for copies, and for errors that cross processes
        return Said, (str(self), self.zh)


UNSAID = Said("", "")


def told(text: str, language: str) -> str:
    """The text in this language; one that is the same in both (a command, a name) as it is."""
    return text.zh if language == "zh" and isinstance(text, Said) else str(text)


_REASONS = {
    errno.ENOENT: "文件或目录不存在",
    errno.EACCES: "没有权限",
    errno.EPERM: "不允许此操作",
    errno.EISDIR: "这是一个目录",
    errno.ENOTDIR: "路径中有一段不是目录",
    errno.ELOOP: "符号链接循环",
    errno.ENAMETOOLONG: "文件名过长",
    errno.EROFS: "文件系统只读",
    errno.ENOSPC: "磁盘空间不足",
    errno.EDQUOT: "超出磁盘配额",
    errno.EIO: "读写设备出错",
    errno.ESTALE: "网络文件系统上的文件句柄已失效",
    errno.EMFILE: "打开的文件过多",
    errno.ENXIO: "没有这个设备",
}


def reason(error: OSError) -> Said:
    """Why the system refused, without the path.

    >>> reason(OSError(errno.ENOENT, "No such file or directory")).zh
    '文件或目录不存在'
    """
    en = error.strerror or str(error)
    return Said(en, _REASONS.get(error.errno or 0, en))
