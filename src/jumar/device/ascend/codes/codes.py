"""Error codes of every layer of an Ascend host: what each number and name means.

In: codes.csv (one row a code) and causes.toml (usual causes, by number or by family).  Out: `Code`, found by number or name through `table()`;
spellings.py turns what people type into it, mentions.py what logs print.  Nothing is read before the first question.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from jumar.base import read_toml

FAMILIES: Mapping[str, tuple[str, str]] = {  # what a family numbers, en and zh; the likelier family stands first where a number is in two
    "rts": ("aclError of the runtime (107xxx, 207xxx, 507xxx)", "运行时 aclError（107xxx、207xxx、507xxx）"),
    "acl": ("aclError of AscendCL itself (100xxx, 148xxx, 200xxx, 300xxx, 500xxx)", "AscendCL 自身的 aclError（100xxx、148xxx、200xxx、300xxx、500xxx）"),
    "ge": ("aclError of the graph engine (145xxx, 245xxx, 345xxx, 545xxx)", "图引擎 GE 的 aclError（145xxx、245xxx、345xxx、545xxx）"),
    "aclnn": ("return values of aclnn operators (161xxx, 361xxx, 561xxx)", "aclnn 算子接口返回值（161xxx、361xxx、561xxx）"),
    "plog": ("codes that CANN prints in logs and error messages (EZ9999, EE1001, E40021)", "CANN 日志和报错中的错误码（EZ9999、EE1001、E40021）"),
    "torch_npu": ("codes of torch_npu (ERR00100)", "torch_npu 错误码（ERR00100）"),
    "rts-inner": ("inner codes of the runtime (retCode, InnerCode: 0x07MMEEEE)", "运行时内部码（retCode、InnerCode：0x07MMEEEE）"),
    "dcmi": ("return values of DCMI, which npu-smi prints (-8001 to -8255)", "DCMI 返回值，npu-smi 会打印（-8001 至 -8255）"),
    "hccl": ("HcclResult, also inside errNo[0x05SSEEEE]", "HcclResult，也出现在 errNo[0x05SSEEEE] 中"),
    "drv": ("return values of the driver's hal interface (drvRetCode)", "驱动 hal 接口返回值（drvRetCode）"),
    "ts": ("codes that the task scheduler on the device reports (retCode=0x2a)", "设备侧任务调度器上报的码（retCode=0x2a）"),
    "aicore": ("error bits of a core of the device: (0x800000, 0, 0)", "AI Core 错误位：(0x800000, 0, 0)"),
    "aicpu": ("codes of kernels on the AI CPU (3) and of its scheduler (21007, 521106)", "AI CPU 算子（3）及其调度（21007、521106）的错误码"),
    "event": ("fault events of the device, which npu-smi health and dmesg show (80818C00)", "设备故障事件，npu-smi health 与 dmesg 显示（80818C00）"),
    "ge-inner": ("inner codes of the graph engine (0x50100001)", "图引擎内部码（0x50100001）"),
    "hccp": ("codes of HCCP, which serves HCCL's network on the device", "HCCP（HCCL 的设备侧网络服务）错误码"),
    "installer": ("codes of the driver's installer (ERR_NO:0x0091)", "驱动安装程序错误码（ERR_NO:0x0091）"),
    "dvpp": ("codes of picture and video processing, DVPP (0xA0078003)", "图像视频处理 DVPP 错误码（0xA0078003）"),
    "mindie": ("codes of the MindIE services (MIE05E000002)", "MindIE 服务错误码（MIE05E000002）"),
    "mindspore": ("codes of MindSpore", "MindSpore 错误码"),
    "exit": ("exit codes of a process: 128 + signal (137), or the signal with a minus (-9)", "进程退出码：128 + 信号（137），或带负号的信号（-9）"),
}  # fmt: skip
_NAMED = ("plog", "torch_npu", "mindie")  # families that number by letters and digits
_BY_BEGINNING = (*_NAMED, "event")  # families whose numbers that begin alike are of one module
Causes = tuple[tuple[str, ...], tuple[str, ...]]  # en, zh
_SYMBOL = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+|[A-Z]{3,}")


@dataclass(frozen=True)
class Code:
    """One code and what it means.

    number: as its family prints it (507018, 0x7020023, -8005, EZ9999, 80818C00, (0x800000, 0, 0)); module: who prints it; layer: where the fault
    usually is; known: False where the table lacks the exact number and only its parts were read.
    """

    number: str
    family: str
    module: str
    symbol: str = ""
    en: str = ""
    zh: str = ""
    causes_en: tuple[str, ...] = ()
    causes_zh: tuple[str, ...] = ()
    layer: str = ""
    source: str = ""
    known: bool = True

    def meaning(self, lang: str = "en") -> str:
        """What it means, in the language if the table has it, else in the other, else from its symbol."""
        first, second = (self.zh, self.en) if lang == "zh" else (self.en, self.zh)
        return first or second or self.symbol.replace("_", " ").lower()

    def causes(self, lang: str = "en") -> tuple[str, ...]:
        """Usual causes and what to look at."""
        first, second = (self.causes_zh, self.causes_en) if lang == "zh" else (self.causes_en, self.causes_zh)
        return first or second

    @property
    def value(self) -> int | None:
        """The number as an integer; None for a name and for error bits."""
        return value_of(self.number, self.family)


def value_of(number: str, family: str) -> int | None:
    """The integer that a family's number stands for.

    >>> value_of("0x7020023", "rts-inner"), value_of("80818C00", "event"), value_of("EZ9999", "plog")
    (117571619, 2155973632, None)
    """
    if family in _NAMED or number.startswith("("):
        return None
    try:
        if family == "event":
            return int(number, 16)
        return int(number, 16) if number.lower().startswith(("0x", "-0x")) else int(number)
    except ValueError:
        return None


@dataclass(frozen=True)
class Table:
    """All codes, and where each is found.

    causes: by what causes.toml tells them of; values: by integer; names: by number and symbol in capitals; bits: by a core's three error words;
    prefixes: by the first characters of a name (EZ, ERR01); inner: the runtime's modules by the third byte of 0x07MMEEEE.
    """

    codes: tuple[Code, ...] = ()
    causes: dict[str, Causes] = field(default_factory=dict)
    values: dict[int, list[Code]] = field(default_factory=dict)
    names: dict[str, list[Code]] = field(default_factory=dict)
    bits: dict[tuple[int, ...], list[Code]] = field(default_factory=dict)
    prefixes: dict[str, list[Code]] = field(default_factory=dict)
    inner: dict[int, str] = field(default_factory=dict)

    def usual_layer(self, prefix: str) -> str:
        """The layer of three in four codes that begin so; empty where they are of many."""
        layers = Counter(code.layer for code in self.prefixes.get(prefix, ()))
        return next((layer for layer, count in layers.most_common(1) if count * 4 >= layers.total() * 3), "")


@cache
def table() -> Table:
    """The table, read on the first call.

    >>> [c.symbol for c in table().values[507018]]
    ['ACL_ERROR_RT_AICPU_EXCEPTION']
    """
    room = Path(__file__).parent
    causes = _causes(room / "causes.toml")
    with (room / "codes.csv").open(encoding="utf-8", newline="") as file:
        found = Table(tuple(_code(row, causes) for row in csv.DictReader(file)), causes)
    for code in found.codes:
        _enter(found, code)
    for codes in found.values.values():
        codes.sort(key=rank)
    return found


def known_codes() -> tuple[Code, ...]:
    """Every code that the table has."""
    return table().codes


def rank(code: Code) -> int:
    """Where the family stands among those that share a number: the lower, the likelier."""
    return list(FAMILIES).index(code.family) if code.family in FAMILIES else len(FAMILIES)


def _code(row: Mapping[str, str | None], causes: Mapping[str, Causes]) -> Code:
    number, family, module, symbol, en, zh, layer, source = (
        (row.get(k) or "").strip() for k in ("number", "family", "module", "symbol", "en", "zh", "layer", "source")
    )
    return Code(number, family, module, symbol, en, zh, *causes_of(number, family, causes), layer=layer, source=source)


def causes_of(number: str, family: str, causes: Mapping[str, Causes]) -> Causes:
    """Usual causes of a number: its own (drv:7 before 7), else those of the longest beginning of a name (EI), else its family's."""
    beginnings = [number[:n] for n in range(len(number) - 1, 0, -1)] if family in _BY_BEGINNING else []
    return next((causes[key] for key in (f"{family}:{number}", number, *beginnings, family) if key in causes), ((), ()))


def _causes(file: Path) -> dict[str, Causes]:
    """What causes.toml holds, by what it is told of: a number, FAMILY:NUMBER, the beginning of a name, a family."""
    return {key: (tuple(cause["en"]), tuple(cause["zh"])) for cause in read_toml(file)["cause"] for key in cause["codes"]}


def _enter(found: Table, code: Code) -> None:
    """Puts a code into every index that it is looked for in."""
    if code.number.startswith("("):
        found.bits.setdefault(tuple(int(word, 16) for word in code.number.strip("()").split(",")), []).append(code)
    elif code.value is not None:
        found.values.setdefault(code.value, []).append(code)
    else:
        found.names.setdefault(code.number.upper(), []).append(code)
        for long in {"torch_npu": (5, 2), "mindie": (5, 3)}.get(code.family, (2,)):
            found.prefixes.setdefault(code.number[:long], []).append(code)
    symbol = code.symbol.partition(" (")[0]  # FAILED (0xFFFFFFFF)
    if code.family not in _NAMED and _SYMBOL.fullmatch(symbol):
        found.names.setdefault(symbol.upper(), []).append(code)
    if code.family == "rts-inner" and code.value is not None and code.symbol.endswith("_BASE"):
        found.inner[code.value >> 16 & 0xFF] = code.symbol.removeprefix("RT_ERROR_").removesuffix("_BASE").lower()
