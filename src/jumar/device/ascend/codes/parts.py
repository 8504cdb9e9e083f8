"""A number that the table lacks, read by its build: its range, or its bit fields, say which module speaks and of what class the failure is.

In: a number, or a name such as EZ4711.  Out: a `Code` that is not `known` and tells what its parts say; None where no family is built so.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import cache

from jumar.base import Said
from jumar.device.ascend.codes.codes import Code, causes_of, table

_CLASSES = {  # the first of six digits
    1: ("the call is wrong: an argument, or the order of calls", "调用有误：参数或调用顺序", "framework_usage"),
    2: (
        "a resource is missing or refused: memory, streams, events, permission, support",
        "资源不足或不可用：内存、流、事件、权限或特性不支持",
        "",
    ),
    3: ("a limit or a state of the service", "业务侧的限制或状态", ""),
    5: ("a failure inside: the task, the module or the device", "内部失败：任务、模块或设备", ""),
}
_MODULES = {  # the next two digits: family, module, en, zh
    0: ("acl", "ACL", "AscendCL", "AscendCL"),
    7: ("rts", "RTS", "the runtime", "运行时"),
    21: ("aicpu", "AICPU", "the AI CPU scheduler", "AI CPU 调度"),
    45: ("ge", "GE", "the graph engine", "图引擎 GE"),
    48: ("acl", "ACL", "AscendCL", "AscendCL"),
    61: ("aclnn", "aclnn", "an aclnn operator interface", "aclnn 算子接口"),
}
_LAYERS = {"aclnn": "operator", "aicpu": "operator", "ge": "graph_compile"}
_GE_RUNTIMES = {1: ("host", "主机侧"), 2: ("device", "设备侧")}
_GE_TYPES = {1: ("error", "错误"), 2: ("exception", "异常")}
_GE_LEVELS = ("common", "suggestion", "minor", "major", "critical")
_GE_MODULES = ("common", "client", "init", "session", "graph", "engine", "ops", "plugin", "runtime", "executor", "generator")
_HCCL_PARTS = ("HCCL", "HCOM", "CLTM", "custom operators")
_TS_OVERFLOWS = {  # numbers whose inner code is not 0x07150000 + number; 0x2f and on
    0x2F: 0x5B, 0x30: 0x5D, 0x31: 0x5E, 0x32: 0x5F, 0x33: 0x61, 0x34: 0x65, 0x35: 0x66,
}  # fmt: skip


def take_apart(value: int) -> Code | None:
    """What the build of a number says.

    >>> take_apart(507999).module, take_apart(0x05010007).symbol, take_apart(12345678)
    ('RTS', 'HCCL_E_UNAVAIL', None)
    """
    for reader in (_six_digits, _inner, hccl_code, _graph_engine, _parser, _device_management, _event):
        code = reader(value)
        if code is not None:
            return code if code.causes_en else _with_causes(code)
    return None


def _with_causes(code: Code) -> Code:
    en, zh = causes_of(code.number, code.family, table().causes)
    return replace(code, causes_en=en, causes_zh=zh)


def _six_digits(value: int) -> Code | None:
    """Class, module, number: 1 07 002."""
    kind, module, rest = value // 100000, value // 1000 % 100, value % 1000
    if kind not in _CLASSES or module not in _MODULES or (module == 0 and rest > 99):
        return None
    family, name, en, zh = _MODULES[module]
    says_en, says_zh, layer = _CLASSES[kind]
    return Code(
        str(value), family, name,
        en=f"a code of {en} that the table lacks; its first digit says: {says_en}",
        zh=f"{zh}的错误码，表中没有该编号；首位数字表示：{says_zh}",
        layer=_LAYERS.get(family, layer), source="ranges of aclError", known=False,
    )  # fmt: skip


def _inner(value: int) -> Code | None:
    """0x07MMEEEE: the runtime's module and the number in it."""
    module, rest = value >> 16 & 0xFF, value & 0xFFFF
    if value >> 24 != 7 or module not in table().inner or rest > 0x3FF:
        return None
    name = table().inner[module]
    return Code(
        f"0x{value:x}", "rts-inner", "RTS-inner(retCode/InnerCode)",
        en=f"an inner code of the runtime that the table lacks; module 0x{module:02x} is {name}, number 0x{rest:x} in it",
        zh=f"运行时内部码，表中没有该编号；模块 0x{module:02x} 为 {name}，模块内编号 0x{rest:x}",
        layer="driver_firmware" if name in ("drv", "device") else "", source="build of the runtime's inner codes", known=False,
    )  # fmt: skip


def hccl_code(value: int) -> Code | None:
    """0x05SSEEEE, as HCCL prints errNo: module 5, the part of it, HcclResult."""
    part, result = value >> 16 & 0xFF, value & 0xFFFF
    if value >> 24 != 5 or part >= len(_HCCL_PARTS) or not result:
        return None
    number, where = f"0x{value:016x}", _HCCL_PARTS[part]
    for code in table().values.get(result, ()):
        if code.family == "hccl":
            return replace(
                code,
                number=number,
                en=f"HcclResult {result} from {where}: {code.meaning('en')}",
                zh=f"来自 {where} 的 HcclResult {result}：{code.meaning('zh')}",
            )
    return Code(
        number, "hccl", "HCCL", en=f"HcclResult {result} from {where}; the table lacks this result", zh=f"来自 {where} 的 HcclResult {result}，表中没有该值",
        layer="hccl", source="build of HCCL's errNo", known=False,
    )  # fmt: skip


def _graph_engine(value: int) -> Code | None:
    """Runtime, type, level, system 8 (graph engine), module, number: 2, 2, 3, 8, 5, 12 bits."""
    runtime, kind, level, system = value >> 30, value >> 28 & 3, value >> 25 & 7, value >> 17 & 0xFF
    module, rest = value >> 12 & 31, value & 0xFFF
    if runtime not in _GE_RUNTIMES or kind not in _GE_TYPES or level >= len(_GE_LEVELS) or system != 8 or module >= len(_GE_MODULES):
        return None
    en, zh = _GE_RUNTIMES[runtime][0], _GE_RUNTIMES[runtime][1]
    return Code(
        f"0x{value:08x}", "ge-inner", "GE-ErrorNo",
        en=f"an inner code of the graph engine that the table lacks: {_GE_LEVELS[level]} {_GE_TYPES[kind][0]} on the {en}, "
        f"module {_GE_MODULES[module]}, number {rest}",
        zh=f"图引擎内部码，表中没有该编号：{zh}{_GE_TYPES[kind][1]}，级别 {_GE_LEVELS[level]}，模块 {_GE_MODULES[module]}，编号 {rest}",
        layer="graph_compile", source="build of the graph engine's codes", known=False,
    )  # fmt: skip


def _parser(value: int) -> Code | None:
    """0x03MMEEEE: the graph engine's parsers, which number so since before the graph engine had its own build."""
    module, rest = value >> 16 & 0xFF, value & 0xFFFF
    if value >> 24 != 3 or module > 3 or not 0 < rest < 1000:
        return None
    what = (
        ("parameter invalid", "参数非法")
        if (module, rest) == (0, 1)
        else (f"module {module}, number {rest}", f"模块 {module}，编号 {rest}")
    )
    return Code(
        f"0x{value:08x}", "ge-inner", "GE-ErrorNo",
        en=f"an inner code of the graph engine's parsers: {what[0]}", zh=f"图引擎解析器的内部码：{what[1]}",
        layer="deploy_om", source="build of the parsers' codes", known=(module, rest) == (0, 1),
    )  # fmt: skip


def _device_management(value: int) -> Code | None:
    """-8001 to -8255."""
    if not -8299 <= value <= -8000:
        return None
    return Code(
        str(value), "dcmi", "driver-dcmi",
        en="a return value of DCMI, the driver's device management, that the table lacks", zh="驱动设备管理接口 DCMI 的返回值，表中没有该值",
        layer="driver_firmware", source="range of DCMI's return values", known=False,
    )  # fmt: skip


def _event(value: int) -> Code | None:
    """Fault events have the highest bit set and the next one clear; those of the chip are 0x40, node type, sensor type, state: 7, 8, 8, 9 bits."""
    if not 0x80000000 <= value <= 0xBFFFFFFF:
        return None
    en, zh = "built like a fault event of the device", "形如设备故障事件"
    if value >> 25 == _CHIP:
        nodes, states = _event_parts()
        node, state = value >> 17 & 0xFF, (value >> 9 & 0xFF, value & 0x1FF)
        where, what = nodes.get(node, (f"node type {node}", f"节点类型 {node}")), states.get(state, ("", ""))
        en = f"a fault event of the chip: {where[0]}, {what[0] or f'sensor type 0x{state[0]:x}, state {state[1]}'}"
        zh = f"芯片故障事件：{where[1]}，{what[1] or f'传感器类型 0x{state[0]:x}，状态 {state[1]}'}"
    return Code(
        f"{value:08X}", "event", "NPU event",
        en=f"{en}; the table lacks it: `npu-smi info -t health -i <id>` and the list of the card's health codes tell more",
        zh=f"{zh}，表中没有该编号；请用 `npu-smi info -t health -i <id>` 并查阅该卡的健康管理故障码",
        layer="driver_firmware", source="build of the device's events", known=False,
    )  # fmt: skip


_CHIP = 0x80000000 >> 25


@cache
def _event_parts() -> tuple[dict[int, tuple[str, str]], dict[tuple[int, int], tuple[str, str]]]:
    """What most events of the table with a node type, and with a sensor type and state, say: `node: state; advice`, en and zh."""
    nodes: dict[int, Counter[tuple[str, str]]] = {}
    states: dict[tuple[int, int], Counter[tuple[str, str]]] = {}
    for code in table().codes:
        value = code.value
        if code.family == "event" and value is not None and value >> 25 == _CHIP and ": " in code.en and "：" in code.zh:
            (node_en, _, en), (node_zh, _, zh) = code.en.partition(": "), code.zh.partition("：")
            nodes.setdefault(value >> 17 & 0xFF, Counter())[node_en, node_zh] += 1
            states.setdefault((value >> 9 & 0xFF, value & 0x1FF), Counter())[en.split(";")[0], zh.split("；")[0]] += 1
    return {n: c.most_common(1)[0][0] for n, c in nodes.items()}, {s: c.most_common(1)[0][0] for s, c in states.items() if c.total() > 1}


def why_no_number(value: int) -> Said:
    """Why a number is none of any family."""
    kind, module = value // 100000, value // 1000 % 100
    if 100000 <= value <= 999999:
        what, zh = f"module {module:02} has no such number", f"模块 {module:02} 没有这个编号"
        if module not in _MODULES:
            what, zh = f"module {module:02} is unknown", f"没有模块 {module:02}"
        if kind not in _CLASSES:
            what, zh = f"class {kind} is unknown", f"没有类别 {kind}"
        kinds, modules = [str(k) for k in _CLASSES], [f"{m:02}" for m in _MODULES]
        return Said(
            f"six digits are a class ({', '.join(kinds)}), a module ({', '.join(modules)}) and a number: {what}",
            f"六位数由类别（{'、'.join(kinds)}）、模块（{'、'.join(modules)}）和编号组成：{zh}",
        )
    if value >> 24 == 7:
        module = value >> 16 & 0xFF
        return Said(
            f"0x07MMEEEE are inner codes of the runtime: module 0x{module:02x} is unknown",
            f"0x07MMEEEE 是运行时的内部码：没有模块 0x{module:02x}",
        )
    if value >> 24 == 5:
        part = value >> 16 & 0xFF
        return Said(f"0x05SSEEEE are HCCL's: part 0x{part:02x} is unknown", f"0x05SSEEEE 属于 HCCL：没有部分 0x{part:02x}")
    if 0 <= value < 1000:
        return Said(
            "small numbers are return values of the driver (0 to 99) and of HCCL (0 to 24)",
            "小的数是驱动（0 到 99）和 HCCL（0 到 24）的返回值",
        )
    return Said("a number that is in the range of no family", "这个数不在任何类别的范围之内")


def core_bits(bits: tuple[int, ...]) -> tuple[Code, ...]:
    """The rows of a core's three error words: the exact one, else one for each bit that is set.

    >>> [c.number for c in core_bits((0x810000, 0, 0))]
    ['(0x10000, 0, 0)', '(0x800000, 0, 0)']
    """
    exact = table().bits.get(bits)
    if exact:
        return tuple(exact)
    single = (
        tuple(1 << b if i == word else 0 for i in range(len(bits))) for word, value in enumerate(bits) for b in range(64) if value >> b & 1
    )
    return tuple(code for one in single for code in table().bits.get(one, ()))


def scheduler_code(value: int) -> Code | None:
    """What the task scheduler on the device reports, which the runtime turns into an inner code.

    >>> scheduler_code(0x2A).symbol
    'TS_ERROR_AICPU_EXCEPTION'
    """
    rest = _TS_OVERFLOWS.get(value, value if 0 < value < 0x2F else 0)
    for code in table().values.get(0x07150000 | rest, ()) if rest else ():
        return replace(
            code,
            number=f"0x{value:x}",
            family="ts",
            module="TS",
            symbol=code.symbol.replace("RT_ERROR_TSFW_", "TS_ERROR_"),
        )
    return None


def kernel_code(value: int) -> Code:
    """What a kernel on the AI CPU returned."""
    return Code(
        f"0x{value:x}", "aicpu", "AICPU",
        en="what the kernel on the AI CPU returned; its meaning is the kernel's own: soName and funcName of the line name it, "
        "the device's log (device-*/) has its messages",
        zh="AI CPU 算子的返回码，含义由该算子定义：日志行中的 soName、funcName 指明算子，设备日志（device-*/）中有其打印",
        layer="operator", source="build of the runtime's AI CPU messages", known=False,
    )  # fmt: skip


def name_apart(name: str) -> Code | None:
    """What the first characters of EZ4711 or ERR01999 say: the module that prints such codes.

    >>> name_apart("EZ4711").module, name_apart("EX4711")
    ('plog-operator-common', None)
    """
    for long in (5, 2):
        alike = table().prefixes.get(name[:long])
        if alike and len(name) == len(alike[0].number):
            like = alike[0]
            break
    else:
        return None
    inner = re.fullmatch(r"[EW].9999", name)
    who = like.module.removeprefix("plog-")
    what = (
        (f"an inner error of {who}", f"{who} 内部错误")
        if inner
        else (f"a code of {who} that the table lacks", f"{who} 的错误码，表中没有该编号")
    )
    code = Code(
        name, like.family, like.module, en=f"{what[0]}; the lines that follow it tell what happened", zh=f"{what[1]}；请看其后的日志行",
        layer=table().usual_layer(like.number[:long]), source="first characters of the code", known=bool(inner),
    )  # fmt: skip
    return _with_causes(code)
