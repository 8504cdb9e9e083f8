"""Every way to write a code: decimal, hexadecimal with or without 0x and zeros, signed and unsigned, a name, a family before it.

In: what somebody typed.  Out: the codes that it may be, the likeliest first; `near_codes` for what is none.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from jumar.base import UNSAID, Said
from jumar.device.ascend.codes.codes import FAMILIES, Code, rank, table
from jumar.device.ascend.codes.exits import exit_code, exit_code_named, exit_codes
from jumar.device.ascend.codes.parts import core_bits, hccl_code, kernel_code, name_apart, scheduler_code, take_apart, why_no_number

_ALIASES: dict[str, tuple[str, ...]] = {  # what people call the families
    "acl": ("acl", "rts", "ge", "aclnn"), "aclerror": ("acl", "rts", "ge", "aclnn"), "cann": ("acl", "rts", "ge", "aclnn", "plog"),
    "runtime": ("rts", "rts-inner"), "rt": ("rts", "rts-inner"), "rts": ("rts", "rts-inner"), "retcode": ("rts-inner", "ts"),
    "innercode": ("rts-inner",), "ge": ("ge", "ge-inner"), "errorno": ("ge-inner",), "drvret": ("drv",), "drvretcode": ("drv",), "driver": ("drv", "dcmi"),
    "hal": ("drv",), "npusmi": ("dcmi",), "hcom": ("hccl",), "hcclresult": ("hccl",), "hcclret": ("hccl",), "errno": ("hccl", "ge-inner"),
    "ts": ("ts",), "tsfw": ("ts",), "aivec": ("aicore",), "errcode": ("aicore",), "health": ("event",), "fault": ("event",), "eventid": ("event",),
    "pta": ("torch_npu",), "torch": ("torch_npu",), "ms": ("mindspore",), "opapi": ("aclnn",), "install": ("installer",), "log": ("plog",),
    "himpi": ("dvpp",), "mie": ("mindie",), "media": ("dvpp",),
}  # fmt: skip
_NAME = re.compile(r"[EW][0-9A-Z]\d{4}|ERR\d{5}")
_BITS = re.compile(r"(?:0x)?[0-9a-f]{1,16}(?:\s*,\s*(?:0x)?[0-9a-f]{1,16}){2}", re.I)
_WITH_FAMILY = re.compile(r"([A-Za-z][A-Za-z_ -]*[A-Za-z])\s*(?:[:= ]\s*)(.+)", re.S)
_REWRITTEN = ("dcmi", "event", "ge-inner", "rts-inner", "drv", "dvpp")  # families whose numbers are also printed with another sign or base
_RETURNED = re.compile(
    r"(?i)(?:(?:ret|return|retval|result|rc)\s*[\[:=(]|"
    r"(?:process )?(?:exit|exited|returned)(?: with)?(?: ?code| ?status)?\s*[\[:=(]?(?:is )?)\s*([+-]?(?:0x)?[0-9a-f]+)[\])]?"
)
_AROUND = " \t.,:;'\"`[]{}<>!?。、！？“”‘’「」【】《》"
_LONGEST = 200  # characters; a code is no essay


@dataclass(frozen=True)
class _Number:
    """A number as written.   values: what it may stand for; hexadecimal: it was written so."""

    values: tuple[int, ...]
    hexadecimal: bool


def families_named(name: str) -> tuple[str, ...]:
    """The families that a name means: `drv`, `hal`, `acl` (which is four); none where there is no such family."""
    plain = re.sub(r"[ _-]", "", name.lower())
    by_name = tuple(f for f in FAMILIES if re.sub(r"[_-]", "", f) == plain)
    return _ALIASES.get(plain) or by_name


def find_code(text: str, family: str = "") -> tuple[Code, ...]:
    """The codes that a text may be, the likeliest first; empty where it is none.   family: only these (drv, hccl, dcmi ...), also before the code.

    >>> [c.symbol for c in find_code("0x07020023")], find_code("117571619") == find_code("0x7020023")
    (['RT_ERROR_DRV_NO_RESOURCES'], True)
    >>> find_code("drv:87")[0].symbol, find_code("EZ9999")[0].family, find_code("507999")[0].known, find_code("no code")
    ('DRV_ERROR_RESOURCE_OCCUPIED', 'plog', False, ())
    """
    wanted = families_named(family) if family else ()
    if family and not wanted:
        return ()
    text = unicodedata.normalize("NFKC", text[: _LONGEST + 1]).strip().removeprefix("#")
    if not text or len(text) > _LONGEST:
        return ()
    if returned := _RETURNED.fullmatch(text):
        text = returned[1]
    if (apart := _WITH_FAMILY.fullmatch(text)) and (named := families_named(apart[1])):
        wanted, text = tuple(f for f in named if not wanted or f in wanted), apart[2].strip()
        if not wanted:
            return ()
    for spelled in _respelled(text.strip(_AROUND)):
        if found := dict.fromkeys(code for code in _found(spelled, wanted) if not wanted or code.family in wanted):
            return tuple(found)
    return ()


def _respelled(text: str) -> Iterator[str]:
    """A code as it was written, then without what tables, sheets and conversions put into it.

    >>> list(_respelled("0x 7BC8A")), list(_respelled("EZ 9999")), list(_respelled("507018.0")), list(_respelled("-507018"))
    (['0x 7BC8A', '0x7BC8A'], ['EZ 9999', 'EZ9999'], ['507018.0', '507018'], ['-507018', '507018'])
    """
    yield text
    if re.fullmatch(r"(?i)(?:0x|[a-z]{1,3})\s+[0-9a-f]{1,16}", text):
        yield "".join(text.split())
    if re.fullmatch(r"\d{1,12}\.0{1,6}", text):
        yield text.partition(".")[0]
    if re.fullmatch(r"-\d{6}", text):
        yield text[1:]


def _signal(text: str) -> Code | None:
    """What `SIGSEGV`, `signal 9` and `信号 9` are as exit codes."""
    named = re.fullmatch(r"(?i)(?:signal|信号)\s*[:=]?\s*(\d{1,2})", text)
    return exit_code(-int(named[1])) if named else exit_code_named(text)


def _found(text: str, wanted: tuple[str, ...]) -> Iterator[Code]:
    if _BITS.fullmatch(bare := text.strip("() ")):
        yield from core_bits(tuple(int(word, 16) for word in bare.split(",")))
        return
    if killed := _signal(bare):
        yield killed
        return
    name = bare.upper()
    if name in table().names:
        yield from sorted(table().names[name], key=rank)
        return
    if _NAME.fullmatch(name) and (code := name_apart(name)):
        yield code
        return
    number = _number(bare)
    if number is not None:
        yield from _numbered(number, wanted)


def _number(text: str) -> _Number | None:
    """All integers that a spelling may stand for: as it is, unsigned, signed in 32 or 64 bits, and as hexadecimal without 0x."""
    spelled = re.fullmatch(r"([+-]?)(0x)?([0-9a-f]{1,20})(?:u|ul|l|h)?", text.replace("_", ""), re.I)
    if not spelled:
        return None
    sign, prefix, digits = spelled[1], spelled[2], spelled[3]
    hexadecimal = bool(prefix) or not digits.isdecimal()
    if not prefix and hexadecimal and len(digits) < 2:  # a letter is no number
        return None
    value = int(digits, 16 if hexadecimal else 10) * (-1 if sign == "-" else 1)
    values = [value]
    for bits in (32, 64):
        if -(1 << bits - 1) <= value < 0:
            values.append(value + (1 << bits))
        elif 1 << bits - 1 <= value < 1 << bits:
            values.append(value - (1 << bits))
    if not hexadecimal:
        if sign == "":
            values.append(-value)  # DCMI's -8005, written without its sign
        if len(digits) in (7, 8):
            values.append(int(digits, 16))  # 7020023 for 0x7020023, 81078603 for an event
    return _Number(tuple(dict.fromkeys(values)), hexadecimal)


def _numbered(number: _Number, wanted: tuple[str, ...]) -> Iterator[Code]:
    """Known codes first, then what the build of the number says."""
    known: list[Code] = []
    first = number.values[0]
    for value in number.values:
        codes = table().values.get(value, ())
        known += [c for c in codes if value == first or (c.family in _REWRITTEN and abs(value) > 999)]
    scheduled = [code] if (code := scheduler_code(first)) and (number.hexadecimal or "ts" in wanted) else []
    core = list(core_bits((first, 0, 0))) if first > 0 and (number.hexadecimal or "aicore" in wanted) else []
    if core and "aicore" not in wanted and first & first - 1:  # several bits are error bits only if somebody says so
        core = []
    yield from (*core, *scheduled, *known) if number.hexadecimal and first < 0x1000 else (*known, *core, *scheduled)
    if "aicpu" in wanted and first > 0:
        yield kernel_code(first)
    ended = exit_code(first) if not number.hexadecimal and (not known or "exit" in wanted) else None
    if ended is not None:
        yield ended
    elif not known and not core and not scheduled:
        for value in number.values:
            if (code := take_apart(value)) is not None:
                yield code
                return
    elif (code := hccl_code(first)) is not None:
        yield code


def out_of_range(text: str, family: str = "") -> Said:
    """Why a number is no code, of a family that was asked for or of any; empty for what is no number.

    >>> out_of_range("123456")
    'six digits are a class (1, 2, 3, 5), a module (00, 07, 21, 45, 48, 61) and a number: module 23 is unknown'
    >>> out_of_range("drv 500")
    'numbers of drv are 0 to 99 and 65534'
    """
    apart = _WITH_FAMILY.fullmatch(text.strip()[:_LONGEST])
    wanted = families_named(family)
    if apart and (named := families_named(apart[1])):
        text, wanted = apart[2], named
    number = _number(text.strip())
    if number is None:
        return UNSAID
    ranges = [(name, found) for name in wanted if (found := _ranges(name))]
    if ranges:
        return Said(
            "; ".join(f"numbers of {name} are {found}" for name, found in ranges),
            "；".join(f"{name} 的编号为 {found.zh}" for name, found in ranges),
        )
    return why_no_number(number.values[0])


def _ranges(family: str) -> Said:
    """The numbers of a family that the table has: `0 to 99 and 65534`; empty where they are no integers, or in too many pieces."""
    codes = sorted((code.value, code.number) for code in table().codes if code.family == family and code.value is not None)
    pieces: list[list[tuple[int, str]]] = []
    for value, number in codes:
        if pieces and value - pieces[-1][-1][0] <= 100:
            pieces[-1].append((value, number))
        else:
            pieces.append([(value, number)])
    if len(pieces) > 8:
        return UNSAID
    en = [piece[0][1] if len(piece) == 1 else f"{piece[0][1]} to {piece[-1][1]}" for piece in pieces]
    zh = [piece[0][1] if len(piece) == 1 else f"{piece[0][1]} 到 {piece[-1][1]}" for piece in pieces]
    return Said(" and ".join([", ".join(en[:-1]), en[-1]] if en[1:] else en), "、".join(zh))


def codes_of(text: str) -> tuple[Code, ...]:
    """Every code of a family (hccl), or whose name begins so (EI, ERR02); none where a text is neither.

    >>> {c.family for c in codes_of("EI")}, len(codes_of("hccl")) > 20, codes_of("nobody")
    ({'plog'}, True, ())
    """
    families = families_named(text)
    if families:
        return tuple(code for code in (*table().codes, *exit_codes()) if code.family in families)
    start = text.strip().upper()
    if re.fullmatch("[A-Z]", start):
        return tuple(dict.fromkeys(code for name, codes in table().prefixes.items() if name.startswith(start) for code in codes))
    return tuple(table().prefixes.get(start, ()))


def _distance(name: str, typed: str) -> int:
    """How far the digit is that differs."""
    return sum(abs(ord(a) - ord(b)) for a, b in zip(name, typed, strict=True))


def near_codes(text: str, count: int = 3) -> tuple[str, ...]:
    """Numbers and names that are spelled almost like a text that is no code, the nearest first.

    >>> near_codes("HCCL_E_TIMEOT")[0]
    'HCCL_E_TIMEOUT'
    """
    from difflib import get_close_matches  # noqa: PLC0415  (only an error pays for it)

    typed = text.strip().upper()[:_LONGEST]
    if not typed:
        return ()
    spelled = {code.number.upper(): code.number for code in table().codes} | {name: name for name in table().names}
    if _number(typed) is not None:  # one digit was mistaken; of short numbers that says nothing
        near = [name for name in spelled if len(name) == len(typed) and sum(a != b for a, b in zip(name, typed, strict=True)) == 1]
        return tuple(spelled[name] for name in sorted(near, key=lambda n: _distance(n, typed)))[:count] if len(typed) > 3 else ()
    inside = sorted((name for name in spelled if "_" in name and len(typed) > 4 and name.endswith(f"_{typed}")), key=len)
    close = get_close_matches(typed, spelled, n=count, cutoff=0.8 if any(c.isdigit() for c in typed) else 0.75)
    return tuple(dict.fromkeys(spelled[name] for name in (*inside, *close)))[:count]
