"""The words around a verdict, in English and Chinese, and lines of logs made safe to show.

In: keys.  Out: short texts, read by terminal.py and page.py.
"""

from __future__ import annotations

import re
import unicodedata

WORDS = {
    "at_fault": ("at fault", "故障层"),
    "confidence": ("confidence", "置信度"),
    "high": ("high", "高"),
    "medium": ("medium", "中"),
    "low": ("low", "低"),
    "none": ("none", "无"),
    "evidence": ("evidence", "证据"),
    "fix": ("what to do", "处理办法"),
    "commands": ("commands (never run by jumar)", "命令（jumar 不会执行）"),
    "next": ("if that does not help", "若仍未解决"),
    "codes": ("codes", "错误码"),
    "followed": ("followed from it", "由此引发"),
    "also": ("also found", "另外发现"),
    "first_error": ("first error", "首个错误"),
    "read": ("read", "已读取"),
    "lines": ("lines", "行"),
    "sources": ("sources", "个来源"),
    "healthy": ("nothing wrong was found", "未发现问题"),
    "partly": ("nothing wrong was found in what could be read", "在能读取的内容中未发现问题"),
    "unknown": ("cause not known", "原因未知"),
    "like": ("by its words it is most like this known failure, which no line proves", "从用词看最像以下已知故障，但没有一行能证明"),
    "likely": ("most likely layer", "最可能的层"),
    "no_machine_layer": ("none of this machine's layers", "不属于本机任何一层"),
    "no_layer": ("no layer is evident", "无法判断所在层"),
    "nothing": ("nothing could be checked", "没有可检查的内容"),
    "more": ("more", "更多"),
    "machine": ("machine", "机器"),
    "components": ("parts", "组件"),
    "levels": ("levels", "验证级别"),
    "driver": ("driver", "驱动"),
    "cann": ("CANN", "CANN"),
    "framework": ("framework", "框架"),
    "verified": ("verified", "已验证"),
    "failed": ("failed", "失败"),
    "unchecked": ("not checked", "未检查"),
    "ok": ("ok", "正常"),
    "bad": ("wrong", "异常"),
    "notes": ("notes", "说明"),
    "rank": ("rank", "rank"),
    "times": ("times", "次"),
    "stack": ("where", "位置"),
    "cause": ("cause", "原因"),
}


def word(key: str, lang: str) -> str:
    """A word in a language.

    >>> word("evidence", "en"), word("evidence", "zh")
    ('evidence', '证据')
    """
    return WORDS[key][lang == "zh"]


def safe(line: str, longest: int = 0) -> str:
    """A line of a log without what a terminal or page would act on; cut in the middle where it is longer than `longest`.

    >>> safe("a\\x1b[31mred\\x07\\tb"), safe("0123456789", 7)
    ('ared b', '012…789')
    """
    text = re.sub(r"\x1b\[[0-9;?]*[ -/]*[@-~]", "", line)
    text = "".join(
        " " if c in "\t\n\r\u2028\u2029" else c
        for c in text
        if c in "\t\n\r\u2028\u2029" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co")
    ).strip()
    if longest and len(text) > longest:
        half = (longest - 1) // 2
        text = f"{text[:half]}…{text[len(text) - (longest - 1 - half) :]}"
    return text


def tail(place: str, longest: int) -> str:
    """A file and line, by its end where it is long: that is what tells files of one folder apart.

    >>> tail("plog/plog-12_3.log:7", 40), tail("/var/log/npu/plog/plog-12_3.log:7", 20)
    ('plog/plog-12_3.log:7', '…log/plog-12_3.log:7')
    """
    text = safe(place)
    return text if len(text) <= longest else f"…{text[1 - longest :]}"


def counted(number: int, what: str, lang: str) -> str:
    """How many of what.

    >>> counted(1, "lines", "en"), counted(1200, "lines", "en"), counted(2, "sources", "zh")
    ('1 line', '1,200 lines', '2 个来源')
    """
    name = word(what, lang)
    return f"{number:,} {name.removesuffix('s') if number == 1 else name}"


def short(text: str, longest: int) -> str:
    """The first sentence of a text, cut at a word where it is longer than `longest`.

    >>> short("A port is taken: stop the job. More.", 99), short("A port is taken by another", 14), short("端口被占用。详见", 99)
    ('A port is taken: stop the job', 'A port is…', '端口被占用')
    """
    first = re.split(r"\.\s|。", safe(text), maxsplit=1)[0].rstrip(".")
    if len(first) <= longest:
        return first
    cut = first[: longest - 1]
    word_end = cut.rfind(" ")
    return (cut[:word_end] if len(cut) - word_end < _LONGEST_WORD else cut).rstrip(",;: ") + "…"


_LONGEST_WORD = 18  # Chinese has no blanks to cut at
