"""Runs the few tools that tell of an NPU, each within a time limit, and never anything that changes a setting.

In: nothing but the tools on PATH and in their usual folders.  Out: `Output`s for gather.py.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from jumar.tools.doctor.machine import Output, Text

LIMIT_S = 5.0  # npu-smi of a card that hangs answers never
TOTAL_S = 40.0
AT_ONCE = 8  # questions: a machine of eight cards is asked some fifty
MOST = 4_000_000  # characters of output
CARDS = 64
PLACES = ("/usr/local/bin", "/usr/local/sbin", "/usr/local/Ascend/driver/tools", "/usr/sbin", "/sbin")

Runner = Callable[[Sequence[str], float], "Output | None"]


def run(arguments: Sequence[str], limit_s: float) -> Output | None:
    """What a command printed (both streams), or None where there is no such command.   After limit_s it is ended."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *PLACES])
    program = shutil.which(arguments[0], path=path)
    command = " ".join(arguments)
    if not program:
        return None
    try:
        process = subprocess.Popen(
            [program, *arguments[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "LC_ALL": "C"},
        )
    except OSError as error:
        return Output(command, Text(command, f"{arguments[0]}: {error.strerror or error}"), 126)
    try:
        raw, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        _end(process)
        return Output(command, Text(command, f"{command}: no answer within {limit_s:g} s"), 124)
    return Output(command, Text(command, raw.decode("utf-8", "replace")[:MOST]), process.returncode)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process of ours; one that the driver holds in the kernel cannot be ended and is left."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=1)
    except (OSError, subprocess.TimeoutExpired):
        pass
    if process.stdout:
        process.stdout.close()


def ask(cards: Sequence[int], runner: Runner = run) -> tuple[Output, ...]:
    """What npu-smi, hccn_tool and the system's tools say, in a fixed order.   cards: numbers of the devices that are there."""
    end = time.monotonic() + TOTAL_S

    def one(arguments: Sequence[str]) -> Output | None:
        left = end - time.monotonic()
        return runner(arguments, min(LIMIT_S, left)) if left > 0 else None

    asked: list[Output | None] = [one(("npu-smi", "info"))]
    more: list[Sequence[str]] = []
    info = asked[0]
    if info and info.code == 0:
        more.append(("npu-smi", "info", "-m"))
        more += [
            ("npu-smi", "info", "-t", what, "-i", str(card))
            for card in _cards(info.text.text, cards)
            for what in ("board", "health", "ecc")
        ]
    if cards:  # the first card shows whether the tool is there and answers
        asked.append(one(("hccn_tool", "-i", str(cards[0]), "-link", "-g")))
        if (first := asked[-1]) and first.code != 124:
            more += [("hccn_tool", "-i", str(card), "-link", "-g") for card in cards[1:CARDS]]
            more += [
                ("hccn_tool", "-i", str(card), what, "-g")
                for card in cards[:CARDS]
                for what in ("-tls", "-net_health", "-ip", "-optical", "-mtu")
            ]
    more += [("dmesg",), ("lspci", "-n", "-d", "19e5:")]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked += pool.map(one, more)
    return tuple(_ascend_only(o) if o.command == "dmesg" else o for o in asked if o)


def _cards(info: str, devices: Sequence[int]) -> tuple[int, ...]:
    """NPU ids of the table that npu-smi printed (they need not be the devices' numbers)."""
    from jumar.device.ascend import parse_npu_smi  # noqa: PLC0415  (its tables only where npu-smi answered)

    found = sorted({npu.npu for npu in parse_npu_smi(info).npus if npu.npu is not None})
    return tuple(found[:CARDS]) or tuple(devices[:CARDS])


_WORDS = ("ascend", "davinci", "devdrv", "devmm", "hisi", "drv_", "fault_manager", "out of memory", "oom-kill", "aer:", "pcieport")


def _ascend_only(output: Output) -> Output:
    """Of the kernel's log the lines that may tell of an NPU, the newest thousand."""
    lines = [line for line in output.text.text.splitlines() if any(word in line.lower() for word in _WORDS)]
    return Output(output.command, Text(output.text.source, "\n".join(lines[-1000:])), output.code)


def there(name: str) -> str:
    """Where a tool lies, on PATH or in its usual folders; empty where it does not."""
    return shutil.which(name) or next((str(Path(p) / name) for p in PLACES if os.path.isfile(Path(p) / name)), "")
