"""Exit codes of a process, as shells, launchers and containers print them: 128 and the signal (137), or the signal with a minus (-9).

In: a number.  Out: a `Code` of family `exit`, or None.
"""

from __future__ import annotations

from jumar.device.ascend.codes.codes import Code

_Signal = tuple[str, str, str, tuple[str, ...], tuple[str, ...], str]
_SIGNALS: dict[int, _Signal] = {  # name, meaning in en and zh, causes in en and zh, layer
    1: (
        "SIGHUP",
        "the terminal or session that started it was closed",
        "启动它的终端或会话已关闭",
        ("Start it with nohup, tmux or as a service.",),
        ("用 nohup、tmux 或服务方式启动。",),
        "framework_usage",
    ),
    2: ("SIGINT", "it was interrupted (Ctrl-C, or its launcher stopped it)", "被中断（Ctrl-C 或启动器停止）", (), (), ""),
    4: (
        "SIGILL",
        "an instruction that this CPU lacks: a binary or wheel for another machine",
        "CPU 不支持的指令：二进制或 wheel 是为其他机器编译的",
        ("Compare uname -m and lscpu with what the wheel was built for.",),
        ("用 uname -m、lscpu 与 wheel 的编译目标比较。",),
        "python_abi",
    ),
    6: (
        "SIGABRT",
        "the program ended itself: abort(), a failed assertion, an uncaught C++ exception",
        "程序自行终止：abort()、断言失败或未捕获的 C++ 异常",
        ("The lines before it say why (terminate called after throwing ..., glog's F lines).",),
        ("之前的日志行给出原因（terminate called after throwing ...、glog 的 F 行）。",),
        "",
    ),
    7: (
        "SIGBUS",
        "memory that is mapped but not there: /dev/shm is full, a file was cut, huge pages ran out",
        "访问已映射但不存在的内存：/dev/shm 已满、文件被截断或大页不足",
        ("df -h /dev/shm; start the container with a larger --shm-size.",),
        ("df -h /dev/shm；容器启动时加大 --shm-size。",),
        "memory",
    ),
    8: ("SIGFPE", "an arithmetic fault, such as an integer division by zero", "算术错误，如整数除以零", (), (), ""),
    9: (
        "SIGKILL",
        "it was killed from outside, most often by the kernel because host memory ran out",
        "被外部强制结束，最常见的是主机内存不足被内核杀死",
        (
            "dmesg -T | grep -i -E 'oom|killed process' tells; in a container its memory limit counts (docker inspect: OOMKilled).",
            "Fewer dataset workers, smaller caches, more memory; or a launcher or scheduler killed it after another rank failed.",
        ),
        (
            "dmesg -T | grep -i -E 'oom|killed process' 可确认；容器内受内存限制约束（docker inspect 的 OOMKilled）。",
            "减少数据集 worker、缓存，增大内存；也可能是其他 rank 失败后由启动器或调度系统杀死。",
        ),
        "memory",
    ),
    11: (
        "SIGSEGV",
        "it touched memory that is not its own: a crash in native code",
        "访问了非法内存：本地代码崩溃",
        (
            "python -X faulthandler, or gdb on the core file, shows where; at import mostly libraries that do not fit (CANN, torch_npu, NumPy).",
        ),
        ("用 python -X faulthandler 或对 core 文件用 gdb 定位；导入时崩溃多因库不配套（CANN、torch_npu、NumPy）。",),
        "",
    ),
    13: ("SIGPIPE", "the reader of its output went away", "读取其输出的一端已关闭", (), (), ""),
    15: (
        "SIGTERM",
        "it was asked to end: by its launcher after another rank failed, a scheduler, docker stop",
        "被要求结束：其他 rank 失败后由启动器、调度系统或 docker stop 发出",
        ("Look for the first failure in the logs of the other ranks.",),
        ("查看其他 rank 日志中最早的失败。",),
        "",
    ),
}
_PLAIN = {
    126: ("a command that may not be run (no right, or no program)", "命令不可执行（无权限或不是程序）"),
    127: ("a command that was not found", "命令未找到"),
}


def exit_code(value: int) -> Code | None:
    """What a process's exit code says.

    >>> exit_code(137).symbol, exit_code(-11).symbol, exit_code(3)
    ('SIGKILL', 'SIGSEGV', None)
    """
    if value in _PLAIN:
        en, zh = _PLAIN[value]
        return Code(
            str(value),
            "exit",
            "shell",
            "",
            f"exit code of {en}",
            f"退出码：{zh}",
            layer="framework_usage",
            source="POSIX shell, exit status",
        )
    signal = -value if value < 0 else value - 128
    if signal not in _SIGNALS:
        return None
    name, en, zh, causes_en, causes_zh, layer = _SIGNALS[signal]
    said = f"exit code {value}: signal {signal}"
    return Code(
        str(value), "exit", "operating system", name, f"{said}, {en}", f"退出码 {value}：信号 {signal}，{zh}", causes_en, causes_zh, layer,
        "POSIX shell and signal(7): 128 + signal",
    )  # fmt: skip


def exit_code_named(name: str) -> Code | None:
    """The exit code of a signal's name.

    >>> exit_code_named("sigkill").number, exit_code_named("SIGNAL")
    ('-9', None)
    """
    return next((exit_code(-signal) for signal, (known, *_) in _SIGNALS.items() if known == name.upper()), None)


def exit_codes() -> tuple[Code, ...]:
    """All of them, as 128 + signal."""
    return tuple(code for value in (*_PLAIN, *(128 + signal for signal in _SIGNALS)) if (code := exit_code(value)))
