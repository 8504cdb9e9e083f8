"""The codes that a line of a log mentions, each with the family that the words around it tell.

In: one line, of any tool of an Ascend host.  Out: `Mention`s.  One pattern finds candidates in time linear in the line (RE2); numbers that are process
ids, addresses, ports, sizes or times are none: a small number counts only behind a word that announces a return value, beside words that tell whose.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import re2

from jumar.device.ascend.codes.codes import Code, table
from jumar.device.ascend.codes.parts import core_bits, kernel_code, name_apart, scheduler_code, take_apart

_SIX = r"[1-5](?:00|07|21|45|48|61)[0-9]{3}"
_KEYWORD = (
    r"(?:\b|_)(?:[A-Za-z0-9]{2,12}[_ ]?)??"
    r"(?:ret(?:urn)?(?:ed)?(?:[_ ]?(?:code|val(?:ue)?|no|num))?|err(?:or)?[_ ]?(?:code|no|num|id)s?|results?|error|err|rc|code|fail(?:ed|ure)?|status"
    r"|(?:event|exception|fault|alarm)[_ ]?(?:id|code))"
    r"|错误码|返回码|返回值|返回|报错|错误|故障码|事件"
)
_JOIN = r"(?:\s*(?:is|was|of|as|with|by|equals|value|=|:|：|->|=>|,|\(|\[|\{|'|\"|为|是|了)){0,5}\s*"
_PATTERN = re2.compile(
    r"\b(?P<plog>[EW][0-9A-Z][0-9]{4})\b"
    r"|\b(?P<torch>ERR[0-9]{5})\b"
    r"|\b(?P<mindie>MIE[0-9]{2}[EW][0-9A-F]{6})\b"
    r"|\b(?P<symbol>[A-Z][A-Z0-9]{1,7}(?:_[A-Z0-9]+)*_(?:E|ERR|ERROR)_[A-Z0-9_]+)\b"
    r"|(?i:err(?:or)?[_ ]?code)s?[:= ]{0,3}(?P<bits>\((?:0x[0-9a-fA-F]{1,16}|0)(?:, ?(?:0x[0-9a-fA-F]{1,16}|0)){2}\))"
    rf"|(?P<keyword>(?i:{_KEYWORD}))(?i:{_JOIN})(?P<number>[-+]?0[xX][0-9a-fA-F]{{1,16}}\b|[89A-Fa-f][0-9A-Fa-f]{{7}}\b|[-+]?[0-9]{{1,20}}\b)"
    rf"|\b(?P<inner>0[xX]0?70[1-9a-fA-F][0-9a-fA-F]{{4}}|0[xX]0?71[0-9a-fA-F]{{5}})\b"
    rf"|\b(?P<six>{_SIX})\b"
    r"|(?P<dcmi>-8(?:0[0-2][0-9]|255))\b"
    r"|\b(?P<event>(?:0[xX])?[89Aa][0-9A-Fa-f]{7})\b"
)
_KINDS = {index: name for name, index in _PATTERN.groupindex.items()}
_AROUND = 500  # characters before and after a number that may tell whose it is: a line of 100 KB costs no more for each of its numbers
_MORE = re2.compile(r"[\s,;、]+((?:0[xX])?[0-9A-Fa-f]{8})\b")  # npu-smi lists several events behind one word
_DRIVER = re2.compile(r"\bhal[A-Z][A-Za-z]+|\[drv api\]|\b[Dd]rv[A-Z_][A-Za-z_]*|\bdrv |devmm|\bEL[0-9]{4}\b|\bDRV\(|npu_driver")
_HCCL = re2.compile(r"HCCL|Hccl|call trace|hccl|[Hh]com|EI[0-9]{4}|EJ[0-9]{4}|network_manager|\bhost nic\b")
_KERNEL_LOG = re2.compile(r"\[ascend\]|\[devdrv\]|\[drv_\w+\]")  # values there are the kernel's errno
_DEVICE_TOOLS = re2.compile(r"(?i)dcmi|dsmi|npu-?smi|\bret\b|error code|device")
_FAILS = re2.compile(r"(?i)err|fail|fault|excep|abnormal|\bacl|desc=|\bret|错|失败|异常|出错")
_UNIT = re2.compile(r"(?i) ?(?:[munp]?s|sec|[kmg]i?b|bytes?|tokens?|samples?|steps?|rows?|times|items?|files?|次|条|个|步)\b")
_AICPU = re2.compile(r"(?i)ai ?cpu")
_CORE = re2.compile(r"(?i)ai ?core|ai ?vec|vector ?core|core id|fftsplus|cube core")
_GRAPH = re2.compile(
    r"\bGE\(|engine_name|graph_name|SubGraph|GraphManager|\bge result|GeExecutor|graph engine|\bFE\(|OptimizeFusedGraph|SubGraphOpt"
)
_NO_CODE = re2.compile(
    r"(?i)(?:pid|tid|ppid|port|id|size|length|len|time|timestamp|cost|bytes?|addr|address|offset|line|count|num|total|step|iter|iteration|batch|epoch|seed|seq|index|idx|rank|line|rows?|sn|v|version)s?"
    r"[\s\]'\"]*[=:：\[(#]?\s*[\[(]?$"
)


_STRANGER = re2.compile(  # lines of others, whose numbers are their own: of a shop, a web server, a scheduler, another maker's driver
    r"(?i)\b(?:invoices?|orders?|tickets?|customers?|payments?|purchases?|refunds?|card declined|jobs?|job_?ids?) ?[#:*]? ?(?:\d{6}|(?-i:[A-Z]{1,2}\d{4}))\b"
    r"|\b(?:invoices?|customers?|payments?|purchases?|refunds?)\b|订单|发票|客户编号"
    r"|\b(?:GET|POST|PUT|DELETE|HEAD|PATCH) /|\bHTTP(?:/[12](?:\.\d)?\W?)? ?[1-5]\d\d\b|\[(?:error|emerg|alert|crit|warn)\] \d+#\d+|\bslurmstepd\b"
    r"|\bORA-\d{5}\b"
    r"|\bNVRM\b|\bjava\.\w+\.|\bERROR \d{4} \("
)
_OURS = re2.compile(
    r"(?i)ascend|npu|\bcann\b|hccl|hccp|\bacl|mindspore|mindie|davinci|ai ?core|ai ?cpu|aclnn|\bhal[A-Z]|\bdrv|\bruntime\b|\bstream|devmm|dcmi|\bGE\(|vllm"
)


@dataclass(frozen=True)
class Mention:
    """A code in a line.   text: as it stands there; start: where, in characters."""

    text: str
    start: int
    code: Code


def codes_in(line: str) -> tuple[Mention, ...]:
    """Every code that a line mentions, from left to right.

    >>> [(m.text, m.code.symbol) for m in codes_in("halQueueQueryInfo failed: deviceId=0, qid=1, drvRetCode=7.")]
    [('7', 'DRV_ERROR_INNER_ERR')]
    >>> [m.code.symbol for m in codes_in("(PID:507018, Device:0) NPU function error, error code is 507018")]
    ['ACL_ERROR_RT_AICPU_EXCEPTION']
    """
    try:
        matches = list(_PATTERN.finditer(line))
    except UnicodeEncodeError:  # RE2 reads UTF-8, which has no lone surrogates; one character for one, so that places stay
        line = line.encode("utf-8", "replace").decode("utf-8")
        matches = list(_PATTERN.finditer(line))
    if not matches or (_STRANGER.search(line) and not _OURS.search(line)):
        return ()
    mentions = [mention for match in matches for mention in _mentions(line, match)]
    return tuple(dict.fromkeys(mentions))  # the second event behind one word is found as such and by itself


def _mentions(line: str, match: Any) -> Iterator[Mention]:
    """What one candidate is: a code, several (error bits, a list of events), or none."""
    index = match.lastindex  # by index: names cost RE2's wrapper 5 us each
    kind, text, start = _KINDS[index], match.group(index), match.start(index)
    if kind == "number":
        yield from _announced(line, match.group(index - 1).lower(), text, start)
        return
    for code in _standing_alone(line, kind, text, start):
        yield Mention(text, start, code)


def _standing_alone(line: str, kind: str, text: str, start: int) -> tuple[Code, ...]:
    """A name, error bits, or a number that tells its family by itself; such a number must be in the table."""
    match kind:
        case "plog" | "torch":
            known = table().names.get(text)
            if known:
                return tuple(known)
            code = name_apart(text)
            return (code,) if code is not None and not text.startswith("W") else ()
        case "symbol" | "mindie":
            return tuple(table().names.get(text, ()))[:1]
        case "bits":
            return core_bits(tuple(int(word, 16) for word in text.strip("()").split(",")))
    if _is_part(line, start, len(text)) or _NO_CODE.search(line[max(0, start - 40) : start]):
        return ()
    if kind == "six" and (not _FAILS.search(line[max(0, start - _AROUND) : start + _AROUND]) or _UNIT.match(line, start + len(text))):
        return ()
    if kind == "dcmi" and not _DEVICE_TOOLS.search(line[max(0, start - _AROUND) : start + _AROUND]):
        return ()
    if kind == "event" and text[:2].lower() != "0x" and (text.isdecimal() or text.upper() != text):  # a number, a hash
        return ()
    family = {"six": (), "dcmi": ("dcmi",), "inner": ("rts-inner",), "event": ("event", "dvpp")}[kind]
    value = int(text) if kind in ("six", "dcmi") else int(text, 16)
    return tuple(c for c in table().values.get(value, ()) if not family or c.family in family)[:1]


def _is_part(line: str, start: int, length: int) -> bool:
    """Whether a number is a piece of something longer: 1.507018, 507018.5, 2025-107002, [507018], name(507018,"""
    before, after = line[max(0, start - 2) : start], line[start + length : start + length + 2]
    if line[start] == "-" and (before[-1:].isalnum() or before[-1:] == "_"):  # npu-smi-8005, 1-8005
        return True
    if before and (before[-1] in ".-/+@#~$&[" or (before[-1] == "(" and len(before) == 2 and before[0].isascii() and before[0].isalnum())):
        return True
    return bool(after) and (after[0] in "-/%" or (after[0] in ".:" and after[1:].isdigit()))


def _announced(line: str, keyword: str, text: str, start: int) -> Iterator[Mention]:
    """A number behind a word such as `ret`, `error code` or `failed`."""
    after = line[start + len(text) : start + len(text) + 2]
    if after and after[0] in ".:-/" and after[1:].isdigit():  # a time, a date, a version, a file's line
        return
    code = _code(line[max(0, start - _AROUND) : start + _AROUND], keyword, text)
    if code is None:
        return
    for one in code if isinstance(code, tuple) else (code,):
        yield Mention(text, start, one)
    if "event" in {one.family for one in (code if isinstance(code, tuple) else (code,))}:
        place = start + len(text)
        while more := _MORE.match(line, place):
            place = more.end(1)
            if (event := _event(more.group(1))) is not None:
                yield Mention(more.group(1), more.start(1), event)


def _code(line: str, keyword: str, text: str) -> Code | tuple[Code, ...] | None:
    """The code of a number by its value where that tells, else by the words of its line."""
    digits = text.lower().lstrip("+-")
    if digits[:1] in "89abcdef" and len(digits) == 8 and (not digits.isdecimal() or _event_known(digits)):
        return _event(text)
    hexadecimal = digits.startswith("0x")
    if len(digits) > 1 and digits[0] == "0" and not hexadecimal:  # 08 of a date
        return None
    value = int(text, 16 if hexadecimal else 10)
    if abs(value) < 1000 or value in (1041, 65534):
        return _small(line, keyword, value, hexadecimal)
    if hexadecimal and _is_core(line, keyword):
        return core_bits((value, 0, 0)) or None
    if "event" in keyword or "exception" in keyword or "fault" in keyword or "alarm" in keyword:
        return _event(text) if hexadecimal else None
    if keyword.startswith("err_no") or keyword.endswith("err_no"):
        return _of(value, ("installer",)) or _by_value(value)
    if value == 0xFFFFFFFF:
        return _of(value, ("ge-inner",)) if _GRAPH.search(line) or "ge" in keyword else None
    if 8000 < value < 8256 and ("dcmi" in line or "npu-smi" in line):
        value = -value
    if value < 100000 and _AICPU.search(line):
        return _of(value, ("aicpu",))
    return _by_value(value)


def _by_value(value: int) -> Code | None:
    """A number whose value tells its family: in the table, in a range, or in bit fields."""
    if value > 0x7FFFFFFF or value < -0x7FFF:
        value &= 0xFFFFFFFF
    for variant in (value, value - (1 << 32)) if value > 0x7FFFFFFF else (value,):
        for code in table().values.get(variant, ()):
            if code.family != "aicpu" or value > 99999:  # 21007 may be anything
                return code
    return take_apart(value)


def _of(value: int, families: tuple[str, ...]) -> Code | None:
    return next((c for c in table().values.get(value, ()) if c.family in families), None)


def _event(text: str) -> Code | None:
    value = int(text, 16)
    return _of(value, ("event", "dvpp")) or (take_apart(value) if value >= 0x80000000 else None)


@cache
def _event_known(digits: str) -> bool:
    return _of(int(digits, 16), ("event",)) is not None


def _small(line: str, keyword: str, value: int, hexadecimal: bool) -> Code | tuple[Code, ...] | None:
    """A small number means a code only behind `ret`, `code` or `result`, and only where the line tells whose it is."""
    if value == -1 and _GRAPH.search(line) and "ret" in keyword:
        return _of(0xFFFFFFFF, ("ge-inner",))
    if value <= 0:
        return None
    if keyword.startswith(("hccl", "hcom")):
        return _of(value, ("hccl",))
    if keyword.startswith(("drv", "hal", "dev_drv")):
        return _of(value, ("drv",))
    if "err_no" in keyword and hexadecimal:
        return _of(value, ("installer",))
    if not any(word in keyword for word in ("ret", "code", "result", "返回", "错误码")) or "errno" in keyword or _KERNEL_LOG.search(line):
        return None
    if _AICPU.search(line) and "code" in keyword:
        return _of(value, ("aicpu",)) or scheduler_code(value) or kernel_code(value)
    if hexadecimal and _is_core(line, keyword):
        return core_bits((value, 0, 0)) or None
    if hexadecimal and "ret" in keyword and "ask" in line:  # Kernel task happen error, retCode=0x31
        return scheduler_code(value)
    near = line[: line.rfind("[FUNC:")] if "[FUNC:" in line else line  # FILE:npu_driver.cc names the file, not who answered
    if _DRIVER.search(near) and not keyword.startswith("device"):
        return _of(value, ("drv",))
    return _of(value, ("hccl",)) if _HCCL.search(line) and "HCCP(" not in line else None  # HCCP returns numbers of its own


def _is_core(line: str, keyword: str) -> bool:
    """`error code = 0x800000` of a core: bits."""
    return keyword.replace("_", " ").replace(" ", "").endswith("errorcode") and bool(_CORE.search(line)) and not _AICPU.search(line)
