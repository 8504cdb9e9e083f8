"""`mindspore.profiler`: where the time of a script goes, from the spans and events of our own trace.

In: `Profiler(output_path=...)`, or `profile(...)` as a block.  Out: `jumar_profile.json` in that folder: spans (what, when, how long, facts) and events.
On the twin of an Ascend NPU also a folder for each graph that ran, `..._ascend_ms`, in the formats of Ascend's own profiler (ascend/), predicted.
Switches for devices that are not here (levels, AiCore metrics) are checked and kept.
"""

from __future__ import annotations

import enum
import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NoReturn

from jumar.base import StackError, event, nearest, recording
from jumar.frontend import twin, twin_forecast
from jumar.log import warning
from jumar.profiler import mstx

FILE = "jumar_profile.json"
_ARGUMENTS = (
    "start_profile", "profiler_level", "profile_memory", "aicore_metrics", "l2_cache", "hbm_ddr", "pcie", "data_process", "parallel_strategy",
    "output_path", "with_stack", "data_simplification", "activities", "schedule", "on_trace_ready", "experimental_config", "sync_enable",
    "profile_communication", "profile_framework", "op_time", "timeline_limit", "aicore_metric", "env_enable", "mstx", "host_sys", "record_shapes",
)  # fmt: skip


class ProfilerLevel(enum.Enum):
    """How much a device notes."""

    LevelNone, Level0, Level1, Level2 = "LevelNone", "Level0", "Level1", "Level2"


class ProfilerActivity(enum.Enum):
    """What is watched."""

    CPU, NPU, GPU = "CPU", "NPU", "GPU"


class AicoreMetrics(enum.Enum):
    """What an Ascend core counts."""

    AiCoreNone, ArithmeticUtilization, PipeUtilization, Memory, MemoryL0, ResourceConflictRatio, MemoryUB, L2Cache, MemoryAccess = range(
        -1, 8
    )


class ExportType(enum.Enum):
    """Forms of MindSpore's reports."""

    Text, Db = "text", "db"


class HostSystem(enum.Enum):
    """What of the host is watched."""

    CPU, MEM, DISK, NETWORK, OSRT = "cpu", "mem", "disk", "network", "osrt"


class _ExperimentalConfig:
    """Switches for devices: kept."""

    def __init__(self, **kwargs: Any) -> None:
        self.values = kwargs


class Profiler:
    """Notes from `start` (or from its making) to `stop`; `analyse` writes the file."""

    def __init__(self, **kwargs: Any) -> None:
        for name in kwargs:
            if name not in _ARGUMENTS:
                raise TypeError(f"Profiler: arguments must be known, got {name!r} {nearest(name, list(_ARGUMENTS))}".rstrip())
        self._folder = Path(kwargs.get("output_path") or "./data")
        self._ready: Callable[[Profiler], Any] | None = kwargs.get("on_trace_ready")
        self._open: AbstractContextManager[Any] | None = None
        self._records: list[Any] = []
        self._extra: dict[str, Any] = {}
        self._step, self._begun_s = 0, time.perf_counter()
        if kwargs.get("start_profile", True):
            self.start()

    def start(self) -> None:
        """Begins to note."""
        if self._open is not None:
            raise RuntimeError("Profiler: it must be stopped before it is started again")
        self._open = recording()
        self._records.append(self._open.__enter__())

    def step(self) -> None:
        """A step of training ends."""
        self._step += 1
        event("step", number=self._step)

    def stop(self) -> None:
        """Ends noting."""
        if self._open is None:
            raise RuntimeError("Profiler: it must be started before it is stopped")
        self._open.__exit__(None, None, None)
        self._open = None
        if self._ready is not None:
            self._ready(self)

    def add_metadata(self, key: str, value: str) -> None:
        """A text that is written into the file."""
        self._extra[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """A JSON text that is written into the file."""
        self._extra[key] = json.loads(value)

    def analyse(self, offline_path: str | None = None, **kwargs: Any) -> None:
        """Writes the file."""
        if self._open is not None:
            self.stop()
        spans = [self._span(s) for r in self._records for s in r.spans]
        events = [{"name": e.name, "facts": _plain(e.facts)} for r in self._records for e in r.events]
        self._folder.mkdir(parents=True, exist_ok=True)
        document = {"metadata": self._extra, "steps": self._step, "spans": spans, "events": events}
        (self._folder / FILE).write_text(json.dumps(document, indent=1), encoding="utf-8")
        if (stood := twin.watched()) is not None:
            self._write_twin(stood)

    def _write_twin(self, stood: twin.Twin) -> None:
        """One step of each graph that ran, and the operators that ran one by one, as Ascend's profiler would have written them."""
        from jumar.profiler.ascend import write_forecast, write_profile  # noqa: PLC0415  (the compiler comes with it)

        forecasts = {}
        for seen in stood.graphs.values():
            try:
                forecasts[seen] = twin_forecast.forecast_of(seen, stood.chip)
            except StackError as error:
                warning("profiler: %s has no forecast on %s: %s", seen.graph.name, stood.chip.name, error.what)
        for number, (seen, found) in enumerate((w, f) for w, f in forecasts.items() if w.kind == twin.GRAPH):
            write_forecast(self._folder, found, name=f"{seen.graph.name}-{number}", flavour="ms")
        if (line := twin_forecast.eager_line(stood.order, forecasts, stood.chip)) is not None:
            write_profile(self._folder, line, name="pynative", flavour="ms")

    def _span(self, s: Any) -> dict[str, Any]:
        begun_us = round((s.start_s - self._begun_s) * 1e6)
        return {"name": s.name, "start_us": begun_us, "duration_us": round(s.seconds * 1e6), "depth": s.depth, "facts": _plain(s.facts)}

    @classmethod
    def offline_analyse(cls, path: str, **kwargs: Any) -> NoReturn:
        """Raises: MindSpore's raw data are not read here."""
        raise NotImplementedError("Profiler.offline_analyse: raw data of MindSpore's devices are not read here")

    def op_analyse(self, op_name: Any, device_id: Any = None) -> NoReturn:
        """Raises: operators of a Program are measured by `jumar enable`."""
        raise NotImplementedError("Profiler.op_analyse: operators run fused in Programs; jumar enable measures their kernels")

    def __enter__(self) -> Profiler:
        if self._open is None:
            self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._open is not None:
            self.stop()
        self.analyse()


class profile(Profiler):  # noqa: N801  (MindSpore's name)
    """`Profiler` as a block: `with profile(...) as p:`."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"start_profile": False, **kwargs})


class EnvProfiler:
    """Profiling that an environment variable starts: `jumar run --explain` is the way here."""

    def __init__(self) -> None:
        raise NotImplementedError("EnvProfiler: MS_PROFILER_OPTIONS starts nothing here; jumar run --explain tells where the time goes")


DynamicProfilerMonitor = EnvProfiler


def schedule(*, wait: int, active: int, warmup: int = 0, repeat: int = 0, skip_first: int = 0) -> Callable[[int], str]:
    """A function from the step's number to what the profiler does in it: NONE, WARM_UP, RECORD or RECORD_AND_SAVE."""
    for name, value in (("wait", wait), ("active", active), ("warmup", warmup), ("repeat", repeat), ("skip_first", skip_first)):
        if not isinstance(value, int) or value < 0:
            raise ValueError(f"schedule: {name} must be an int that is 0 or more, got {value!r}")

    def action(step: int) -> str:
        at, length = step - skip_first, wait + warmup + active
        if at < 0 or (repeat and at >= repeat * length):
            return "NONE"
        place = at % length
        if place < wait:
            return "NONE"
        if place < wait + warmup:
            return "WARM_UP"
        return "RECORD_AND_SAVE" if place == length - 1 else "RECORD"

    return action


def tensorboard_trace_handler(**kwargs: Any) -> Callable[[Profiler], None]:
    """A function for `on_trace_ready` that writes the file."""
    return Profiler.analyse


tensor_board_trace_handler = tensorboard_trace_handler


def _plain(facts: dict[str, Any]) -> dict[str, Any]:
    return {k: v if isinstance(v, bool | int | float | str | type(None)) else str(v) for k, v in facts.items()}


__all__ = [
    "AicoreMetrics", "DynamicProfilerMonitor", "EnvProfiler", "ExportType", "HostSystem", "Profiler", "ProfilerActivity", "ProfilerLevel", "mstx",
    "profile", "schedule", "tensorboard_trace_handler",
]  # fmt: skip
