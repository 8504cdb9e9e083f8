"""`write_profile`: the folder of one rank, as Ascend's profilers for PyTorch (`_ascend_pt`) and MindSpore (`_ascend_ms`) leave it.

In: a folder, a `Timeline` and what is known of memory.  Out: NAME_rank0_TIME_ascend_pt/ with profiler_info_0.json, profiler_metadata.json and
ASCEND_PROFILER_OUTPUT/, which `msprof-analyze advisor`, `compare` and `cluster` read.
"""

from __future__ import annotations

import csv
import json
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jumar.base import ToolError
from jumar.compiler import Forecast
from jumar.device.npu import COMMUNICATION, Timeline
from jumar.profiler.ascend import host, kernels, memory
from jumar.profiler.ascend.communication import communication, communication_matrix
from jumar.profiler.ascend.kernels import Rows
from jumar.profiler.ascend.step import PREDICTED, Life, Step, lives_of
from jumar.profiler.ascend.trace import trace
from jumar.version import MINDSPORE_VERSION, VERSION

FLAVOURS = ("pt", "ms")
# whose tables these are: what tools choose their columns by
SCHEMA = "8.3.RC1"


def write_profile(
    folder: Path | str,
    line: Timeline,
    *,
    name: str = "model",
    flavour: str = "pt",
    rank: int = 0,
    ranks: int = 1,
    lives: Sequence[Life] = (),
    resident_nbytes: int = 0,
    reserved_nbytes: int = 0,
    at_us: float | None = None,
) -> Path:
    """The folder of one rank inside `folder`.   flavour: `pt` or `ms`; lives: tensors on the device (`lives_of`); at_us: when the step begins, by the
    clock that profiles have (microseconds since 1970), now by default."""
    if flavour not in FLAVOURS:
        raise ToolError(f"profile: flavour must be one of {', '.join(FLAVOURS)}, got {flavour!r}", code="profile-options")
    if not 0 <= rank < ranks:
        raise ToolError(f"profile: rank must be 0 to {ranks - 1}, got {rank}", code="profile-options")
    at_us = time.time() * 1e6 if at_us is None else at_us
    plain = re.sub(r"[^0-9A-Za-z.-]+", "-", name).strip("-.") or "model"
    step = Step(
        line=line,
        name=plain,
        at_us=at_us,
        rank=rank,
        ranks=ranks,
        lives=tuple(lives),
        resident_nbytes=resident_nbytes,
        reserved_nbytes=reserved_nbytes,
    )
    stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime(at_us / 1e6)) + f"{int(at_us / 1e3) % 1000:03d}"
    root = Path(folder) / f"{plain}_rank{rank}_{stamp}_ascend_{flavour}"
    output = root / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True, exist_ok=True)
    _json(root / f"profiler_info_{rank}.json", _info(step, flavour), indent=1)
    _json(root / "profiler_metadata.json", _metadata(step))
    # where a profiler leaves its raw data: from this file the advisor has the number of cores and their clock
    device = root / f"PROF_000001_{stamp}_JUMAR" / f"device_{rank}"
    device.mkdir(parents=True, exist_ok=True)
    _json(device / f"info.json.{rank}", _device(step))
    _table(output / "kernel_details.csv", kernels.kernel_details(step))
    _table(output / "op_statistic.csv", kernels.op_statistic(step))
    _table(output / "step_trace_time.csv", kernels.step_trace(step))
    _table(output / "api_statistic.csv", host.api_statistic(step))
    _table(output / "operator_details.csv", host.operator_details(step))
    _json(output / "trace_view.json", trace(step))
    if any(task.core == COMMUNICATION for task in line.tasks):  # msprof-analyze compare stumbles over a file without collectives
        _json(output / "communication.json", communication(step))
        _json(output / "communication_matrix.json", communication_matrix(step))
    if step.lives:
        _table(output / "operator_memory.csv", memory.operator_memory(step))
        _table(output / "memory_record.csv", memory.memory_record(step))
    return root


def write_forecast(
    folder: Path | str, found: Forecast, *, name: str = "", flavour: str = "pt", rank: int = 0, ranks: int = 1, at_us: float | None = None
) -> Path:
    """The profile of a forecast, with the lives of its tensors.   ranks: devices that all do this step."""
    memory, outputs = found.memory, {id(node) for node in found.graph.outputs}
    kept = [i for i, launch in enumerate(found.launches) if any(id(node) in outputs for node in launch.writes)]
    return write_profile(
        folder,
        found.timeline,
        name=name or found.captured.name,
        flavour=flavour,
        rank=rank,
        ranks=ranks,
        lives=lives_of([x.task for x in found.launches], [x.reads for x in found.launches], kept),
        resident_nbytes=max(0, memory.needed_nbytes - memory.arena_nbytes),
        reserved_nbytes=memory.needed_nbytes,
        at_us=at_us,
    )


def write_op_summary(path: Path | str, line: Timeline, *, name: str = "model", rank: int = 0, at_us: float | None = None) -> Path:
    """The table of kernels that `msprof --export` writes, alone: op_summary_14DIGITS.csv in the folder `path`, or `path` itself where it ends in .csv."""
    at_us = time.time() * 1e6 if at_us is None else at_us
    path = Path(path)
    if path.suffix != ".csv":
        path = path / f"op_summary_{time.strftime('%Y%m%d%H%M%S', time.gmtime(at_us / 1e6))}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    _table(path, kernels.op_summary(Step(line=line, name=name, at_us=at_us, rank=rank, ranks=rank + 1)))
    return path


def _info(step: Step, flavour: str) -> dict[str, Any]:
    """profiler_info: the switches that give the tables we write, and that nothing was measured."""
    version = {"torch_npu_version": PREDICTED} if flavour == "pt" else {"ms_version": MINDSPORE_VERSION}
    common = {
        "activities": ["ProfilerActivity.CPU", "ProfilerActivity.NPU"], "record_shapes": True, "profile_memory": bool(step.lives), "with_stack": False,
        "with_flops": False, "with_modules": False,
    }  # fmt: skip
    experimental = {
        "_profiler_level": "Level1", "_aic_metrics": "ACL_AICORE_PIPE_UTILIZATION", "_l2_cache": False, "_data_simplification": True,
        "_export_type": "text",
    }  # fmt: skip
    end = round((step.at_us + step.line.latency_us) * 1e3)
    return {
        "config": {"common_config": common, "experimental_config": experimental},
        "start_info": {"syscnt_enable": False, "freq": 0, "start_cnt": 0, "start_monotonic": 0},
        "end_info": {"collectionTimeEnd": end, "MonotonicTimeEnd": round(step.line.latency_us * 1e3)},
        **version,
        "cann_version": SCHEMA,
        "rank_id": step.rank,
        "jumar": _said(step),
    }


def _device(step: Step) -> dict[str, Any]:
    chip = step.line.chip
    known = {
        "id": step.rank, "ai_core_num": chip.cube_cores, "aiv_num": chip.vector_cores if chip.split else 0, "aic_frequency": f"{chip.clock_hz / 1e6:g}",
    }  # fmt: skip
    return {"DeviceInfo": [known], "jumar": _said(step)}


def _metadata(step: Step) -> dict[str, Any]:
    group = {step.group: {"group_name": "default_group", "group_rank": step.rank, "global_ranks": list(range(step.ranks))}}
    return {"parallel_group_info": group if step.ranks > 1 else {}, "ENV_VARIABLES": {}, "jumar": _said(step)}


def _said(step: Step) -> dict[str, Any]:
    line = step.line
    return {
        "kind": PREDICTED, "version": VERSION, "soc": line.chip.name, "mode": line.mode, "bound": line.bound,
        "latency_us": [round(x, 3) for x in (line.latency_us, line.low_us, line.high_us)], "interval": "80 %", "schema": f"CANN {SCHEMA}",
        "notes": list(line.notes),
    }  # fmt: skip


def _table(path: Path, rows: Rows) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


def _json(path: Path, value: Any, indent: int | None = None) -> None:
    path.write_text(json.dumps(value, indent=indent, ensure_ascii=False), encoding="utf-8")
