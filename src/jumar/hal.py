"""The hardware: devices, memory, streams and events, under the names of `mindspore.hal` and `mindspore.runtime`.

In: questions.  Out: facts about the one device there is, the CPU.  Operators have run when their calls return, so there is one stream and nothing to wait for.
"""

from __future__ import annotations

import gc
import os
import platform
import resource
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from jumar.base import nearest
from jumar.context import TARGETS, set_context

# names that `mindspore.runtime` has; `jumar.runtime`, the room that runs Programs, passes them on
RUNTIME = (
    "Event", "MemPool", "Stream", "StreamCtx", "communication_stream", "current_stream", "default_stream", "dispatch_threads_num", "empty_cache",
    "launch_blocking", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats", "memory_summary",
    "reset_max_memory_allocated", "reset_max_memory_reserved", "reset_peak_memory_stats", "set_cpu_affinity", "set_cur_stream",
    "set_kernel_launch_group", "set_memory", "synchronize",
)  # fmt: skip


# ---------------------------------------------------------------------- devices
def _known(device_target: str | None) -> str:
    target = device_target or "CPU"
    if target not in TARGETS:
        raise ValueError(f"hal: device_target must be one of {', '.join(TARGETS)}, got {target!r} {nearest(target, TARGETS)}".rstrip())
    return target


def is_available(device_target: str) -> bool:
    """Whether this process can use a device of that kind."""
    return _known(device_target) == "CPU"


def is_initialized(device_target: str) -> bool:
    """Whether it is ready: the CPU always is."""
    return _known(device_target) == "CPU"


def device_count(device_target: str | None = None) -> int:
    """How many devices of that kind there are."""
    return 1 if _known(device_target) == "CPU" else 0


def get_device_name(device_id: int, device_target: str | None = None) -> str:
    """Its name."""
    return _known(device_target)


def get_device_capability(device_id: int, device_target: str | None = None) -> None:
    """None: a CPU has no such pair of numbers."""
    _known(device_target)


def get_device_properties(device_id: int, device_target: str | None = None) -> dict[str, Any]:
    """Name, cores and memory of the CPU."""
    _known(device_target)
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"name": platform.processor() or platform.machine(), "cores": len(os.sched_getaffinity(0)), "total_memory": total}


def get_arch_list(device_target: str | None = None) -> None:
    """None: MindSpore lists the architectures of a GPU only."""
    _known(device_target)


# ---------------------------------------------------------------------- memory of this process
def memory_allocated(device_target: str | None = None) -> int:
    """Bytes that this process holds in memory: a CPU has no pool of its own."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def max_memory_allocated(device_target: str | None = None) -> int:
    """The most bytes that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


memory_reserved, max_memory_reserved = memory_allocated, max_memory_allocated


def memory_stats(device_target: str | None = None) -> dict[str, Any]:
    """Both figures by name."""
    return {"total_allocated_memory": memory_allocated(), "max_allocated_memory": max_memory_allocated()}


def memory_summary(device_target: str | None = None) -> str:
    """Both figures as a text."""
    return f"memory of this process: {memory_allocated() >> 20} MiB now, {max_memory_allocated() >> 20} MiB at most"


def reset_peak_memory_stats(device_target: str | None = None) -> None:
    """Begins the peak anew where Linux allows it."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError as error:
        raise NotImplementedError("reset_peak_memory_stats: this system does not let a process begin its peak of memory anew") from error


reset_max_memory_allocated, reset_max_memory_reserved = reset_peak_memory_stats, reset_peak_memory_stats


def empty_cache() -> None:
    """Frees what nothing refers to any more."""
    gc.collect()


def set_memory(
    init_size: str = "2GB", increase_size: str = "2GB", max_size: str = "1024GB", optimize_level: str = "O0", huge_page_reserve_size: str = "0GB"
) -> None:  # fmt: skip
    """Sizes of a device's pool, which a CPU does not have; only the level is kept, in the context."""
    set_context(memory_optimize_level=optimize_level)


class MemPool:
    """A pool of a device's memory: a CPU has none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("MemPool: the CPU has no pool of memory to manage")


# ---------------------------------------------------------------------- order in time
class Stream:
    """The one order in which operators run: everything before has ended."""

    def __init__(self, priority: int = 0, **kwargs: Any) -> None:
        self.id = 0
        self.device_name = "CPU"

    def synchronize(self) -> None:
        """Returns at once: nothing is under way."""

    def query(self) -> bool:
        """True: nothing is under way."""
        return True

    def record_event(self, event: Event | None = None) -> Event:
        """Notes the time in an event."""
        found = event or Event(enable_timing=True)
        found.record(self)
        return found

    def wait_event(self, event: Event) -> None:
        """Returns at once."""

    def wait_stream(self, stream: Stream) -> None:
        """Returns at once."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream)

    def __hash__(self) -> int:
        return hash(Stream)

    def __repr__(self) -> str:
        return "Stream(device_name=CPU, stream_id:0)"


class Event:
    """A moment."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False) -> None:
        self._timing, self._at_s = enable_timing, 0.0

    def record(self, stream: Stream | None = None) -> None:
        """The moment is now."""
        self._at_s = time.perf_counter()

    def wait(self, stream: Stream | None = None) -> None:
        """Returns at once."""

    def synchronize(self) -> None:
        """Returns at once."""

    def query(self) -> bool:
        """True: it has happened."""
        return True

    def elapsed_time(self, other_event: Event) -> float:
        """Milliseconds from here to another one."""
        if not self._timing or not other_event._timing:
            raise RuntimeError("Event.elapsed_time: both events must be made with enable_timing=True")
        return (other_event._at_s - self._at_s) * 1e3


class StreamCtx:
    """A block on a stream: there is only the one."""

    def __init__(self, ctx_stream: Stream | None) -> None:
        if ctx_stream is not None and not isinstance(ctx_stream, Stream):
            raise TypeError(f"StreamCtx: ctx_stream must be a Stream or None, got {type(ctx_stream).__name__}")
        self.stream = ctx_stream

    def __enter__(self) -> StreamCtx:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        return None


_STREAM = Stream()


def current_stream() -> Stream:
    """The one stream."""
    return _STREAM


default_stream = communication_stream = current_stream


def set_cur_stream(stream: Stream) -> None:
    """Makes a stream the current one: there is only the one."""
    StreamCtx(stream)


def synchronize() -> None:
    """Returns at once: operators have run when their calls return."""


def launch_blocking() -> None:
    """Makes every operator wait for its end, as it does here in any case."""
    set_context(pynative_synchronize=True)


def dispatch_threads_num(threads_num: int) -> None:
    """Threads that hand out operators: none here; the number is kept in the context."""
    set_context(inter_op_parallel_num=threads_num)


def set_kernel_launch_group(thread_num: int = 2, kernel_group_num: int = 8) -> None:
    """Groups in which kernels are handed to a device: a Program is one call here."""


def set_cpu_affinity(enable_affinity: bool, affinity_cpu_list: Sequence[str] | None = None, module_to_cpu_dict: Any = None) -> None:
    """Binds this process to processors: `["0-3", "8"]`, or those that it has."""
    if enable_affinity and affinity_cpu_list:
        cores: set[int] = set()
        for part in affinity_cpu_list:
            low, _, high = str(part).partition("-")
            cores |= set(range(int(low), int(high or low) + 1))
        os.sched_setaffinity(0, cores)
