"""The host: room on the disk where caches and logs go, memory, huge pages, /dev/shm, limits, the operator compiler's work folder.

In: a `View`.  Out: facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from jumar.tools.doctor import readings
from jumar.tools.doctor.view import View, fact
from jumar.tools.knowledge import Fact

GIB = 1 << 30
LEAST_DISK = GIB // 2
LEAST_MEMORY = 4 * GIB
LEAST_SHM = GIB
LEAST_FILES = 1024  # the usual soft limit: only what is below it is told
_PLACES = re.compile(r"^/(?:tmp|root|home(?:/[^/]+)?|var(?:/log)?|usr/local|data\d*|workspace|work|cache|home/\S*|mnt/\S*|)$")


def disk_full(v: View) -> list[Fact]:
    """No room where kernels are cached, logs written, models saved."""
    named = {v.machine.variable(n) for n in ("ASCEND_CACHE_PATH", "ASCEND_WORK_PATH", "TE_CACHE", "TMPDIR", "HOME")} - {""}
    for output in v.machine.output("df"):
        for path, total, free, place in readings.rooms(output.text):
            if total > 0 and free < LEAST_DISK and free < total // 20 and (path in named or _PLACES.match(path)):
                return [fact("disk-full", [place], path=path, free=_size(free), total=_size(total))]
    return []


def shm_small(v: View) -> list[Fact]:
    """/dev/shm as Docker makes it: data loaders and collectives of one host need more."""
    for output in v.machine.output("df"):
        for path, total, _, place in readings.rooms(output.text):
            if path == "/dev/shm" and 0 < total < LEAST_SHM and v.machine.in_container:
                return [fact("shm-small", [place], total=_size(total))]
    return []


def memory_low(v: View) -> list[Fact]:
    """Host memory that is all but used up; huge pages that hold most of it."""
    text = v.machine.file("/proc/meminfo")
    if text is None:
        return _free(v)
    keys = text.keys()
    size = {name: int(found[0]) * 1024 for name, seen in keys.items() if (found := re.findall(r"\d+", seen.value))}
    total, available = size.get("MemTotal", 0), size.get("MemAvailable", 0)
    pages, unused, page = (size.get(n, 0) // 1024 for n in ("HugePages_Total", "HugePages_Free", "Hugepagesize"))
    held = pages * page * 1024
    if total and held > total // 2 and unused * 2 > pages:
        return [fact("huge-pages-hold-memory", [keys["HugePages_Total"].evidence], pages=pages, held=_size(held), total=_size(total))]
    if total and "MemAvailable" in size and available < min(LEAST_MEMORY, total // 20):
        return [fact("host-memory-low", [keys["MemAvailable"].evidence], available=_size(available), total=_size(total))]
    return []


def _free(v: View) -> list[Fact]:
    for output in v.machine.output("free"):
        place = output.text.find(r"^(?:Mem:|内存[:：])")
        row = re.findall(r"\d{1,18}(?:\.\d{1,6})?(?:[KMGT]i?)?", place.text)[0:6] if place else []
        unit = 1024**2 if "-m" in output.command else 1024**3 if "-g" in output.command else 1
        if place and len(row) == 6:
            total, available = (_nbytes(row[i], unit) for i in (0, 5))
            if total > GIB and available < min(LEAST_MEMORY, total // 20):
                return [fact("host-memory-low", [place], available=_size(available), total=_size(total))]
    return []


def _nbytes(text: str, unit: int) -> int:
    return readings.nbytes(text) if text[-1].isalpha() else int(float(text) * (unit if unit > 1 else 1024))


def limits(v: View) -> list[Fact]:
    """Open files that a process may have."""
    text = v.machine.file("/proc/self/limits")
    if text is not None:
        place = text.find(r"^Max open files")
        soft = re.search(r"Max open files\s+(\d+)", place.text) if place else None
    else:
        output = next(iter(v.machine.output("ulimit")), None)
        place = output.text.find(r"open files") if output else None
        soft = re.search(r"(\d+)\s*$", place.text) if place else None
    if not v.ascend or place is None or soft is None or int(soft[1]) >= LEAST_FILES:
        return []
    return [fact("open-files-few", [place], limit=soft[1])] if v.machine.environment or v.devices else []


def work_folder(v: View) -> list[Fact]:
    """Folders of variables that the operator compiler and the logs need, which are not absolute."""
    for name, seen in v.variables("ASCEND_CACHE_PATH", "ASCEND_WORK_PATH", "ASCEND_PROCESS_LOG_PATH"):
        if seen.value and not seen.value.startswith(("/", "~", "$")):
            return [fact("work-folder-relative", [seen.evidence], variable=name, value=seen.value)]
    return []


def blocking(v: View) -> list[Fact]:
    """Debugging switches that were left on and make every step slow."""
    for name, wanted in (("ASCEND_LAUNCH_BLOCKING", "1"), ("ASCEND_GLOBAL_LOG_LEVEL", "0"), ("ASCEND_SLOG_PRINT_TO_STDOUT", "1")):
        seen = v.machine.environment.get(name)
        if seen and seen.value == wanted:
            return [fact("debug-switch-left-on", [seen.evidence], variable=name, value=seen.value)]
    return []


def _size(nbytes: int) -> str:
    return f"{nbytes / GIB:.1f} GiB" if nbytes >= GIB else f"{nbytes / (1 << 20):.0f} MiB"


CHECKS: tuple[Callable[[View], list[Fact]], ...] = (disk_full, shm_small, memory_low, limits, work_folder, blocking)
