"""What `set_context` sets: the mode, the device, and MindSpore's other keys, with its errors and a hint.

In: keyword arguments of scripts.  Out: `MODE` (read by cells at every call), environment settings of ours where a key has one
(`save_graphs`, `runtime_num_threads`, `compile_cache_path`), and values for `get_context`.  A key that steers what Jumar does not have (task queues,
memory pools of a device) is checked, kept and noted as an event `context`, which `jumar run --explain` shows.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jumar._checkparam import args_type_check
from jumar.base import DeviceError, event, nearest
from jumar.frontend import twin
from jumar.frontend.guards import EPOCH
from jumar.parallel._auto_parallel_context import (
    ParallelMode,
    get_auto_parallel_context,
    reset_auto_parallel_context,
    set_auto_parallel_context,
)
from jumar.parallel._ps_context import get_ps_context, reset_ps_context, set_ps_context

__all__ = [
    "COMPATIBLE", "GRAPH_MODE", "LAX", "PYNATIVE_MODE", "STRICT", "ParallelMode", "args_type_check", "get_auto_parallel_context", "get_context",
    "get_ps_context", "reset_auto_parallel_context", "reset_ps_context", "set_auto_parallel_context", "set_context", "set_ps_context",
]  # fmt: skip

GRAPH_MODE, PYNATIVE_MODE = 0, 1
STRICT, COMPATIBLE, LAX = 0, 1, 2
DEBUG, RELEASE = 1, 0
_FORCED: int | None = None
_FORCED_SOC = ""
MODE = PYNATIVE_MODE  # cells look here at every call: a module-level name is the cheapest look-up there is

TARGETS = ("CPU", "GPU", "Ascend", "Davinci")
_JIT_KEYS = {"jit_level": ["O0", "O1", "O2"], "infer_boost": ["on", "off"]}


class TargetError(DeviceError, RuntimeError):
    """A device that this process cannot use.   A RuntimeError, too, as MindSpore's is."""


@dataclass(frozen=True)
class Key:
    """One key of the context.

    kind: the class that its value must have.   check: the value as it is kept, or an error.   act: what setting it does.   device_only: MindSpore
    ignores it on CPU, and so do we: the value stays.   here: what it changes in Jumar; empty where there is nothing that it could change.
    """

    default: Any
    kind: type | tuple[type, ...]
    check: Callable[[str, Any], Any] | None = None
    act: Callable[[Any], None] | None = None
    device_only: bool = False
    here: str = ""


def _one_of(*allowed: str) -> Callable[[str, Any], Any]:
    def check(key: str, value: Any) -> Any:
        if value not in allowed:
            raise ValueError(f"For 'context.set_context', the argument '{key}' must be one of {list(allowed)}, but got {value}.")
        return value

    return check


def _mode(key: str, value: int) -> int:
    if value not in (GRAPH_MODE, PYNATIVE_MODE):
        raise ValueError(
            f"For 'context.set_context', the argument 'mode' should be context.GRAPH_MODE (0) or context.PYNATIVE_MODE (1), but got {value}."
        )
    return value


def _set_mode(value: int) -> None:
    global MODE  # noqa: PLW0603  (see MODE)
    MODE = value if _FORCED is None else _FORCED


def force_mode(name: str) -> None:
    """From now on this mode, graph or pynative, whatever scripts set: `jumar run --mode`."""
    global _FORCED  # noqa: PLW0603  (a switch of the whole process)
    _FORCED = {"graph": GRAPH_MODE, "pynative": PYNATIVE_MODE}[name]
    _set_mode(_FORCED)


def _target(key: str, value: str) -> str:
    _one_of(*TARGETS)(key, value)
    if value == "GPU":
        raise TargetError(
            f"Unsupported device target {value}. This process only supports one of the ['CPU', 'Ascend']. "
            f"device: {value} cannot run here, Jumar has no code generator for it",
            hint="device_target='CPU', or 'Ascend' for the twin of an Ascend NPU: values computed here, times predicted",
            code="device-target",
        )
    return "Ascend" if value == "Davinci" else value


def _set_target(value: str) -> None:
    if value == "Ascend" or _FORCED_SOC:
        twin.start(_FORCED_SOC)
    else:
        twin.stop()


def force_soc(name: str) -> None:
    """From now on the twin of this Ascend chip stands by, whatever device scripts set: `jumar run --soc`."""
    global _FORCED_SOC  # noqa: PLW0603  (a switch of the whole process)
    _FORCED_SOC = name
    _set_target("Ascend")
    _VALUES["device_target"] = "Ascend"


def _device_id(key: str, value: int) -> int:
    if not 0 <= value <= 4095:
        raise ValueError(f"For 'context.set_context', the argument 'device_id' must be in range [0, 4095], but got {value}.")
    return value


def _save_graphs(key: str, value: bool | int) -> int:
    if isinstance(value, bool):
        return 2 if value else 0
    if value not in (0, 1, 2, 3):
        raise ValueError(f"value for save_graphs should be 0-3 but got '{value}'")
    return value


def _memory_level(key: str, value: str) -> int:
    return int(_one_of("O0", "O1")(key, value)[1])


def _positive(key: str, value: int) -> int:
    if value <= 0:
        raise ValueError(f"For 'context.set_context', the argument '{key}' must be greater than 0, but got {value}.")
    return value


def _threads(what: str) -> Callable[[str, Any], Any]:
    def check(key: str, value: int) -> int:
        if value < 0:
            raise ValueError(f"The num of {what} must bigger than or equal to 0.")
        return value

    return check


def _pair(names: str, allowed: tuple[int, ...]) -> Callable[[str, Any], Any]:
    def check(key: str, value: int) -> int:
        if value not in allowed:
            raise ValueError(f"For '{key}', the value should be {names}, but got {value}.")
        return value

    return check


def _jit_config(key: str, value: dict[str, Any]) -> dict[str, Any]:
    for name, given in value.items():
        if name not in _JIT_KEYS:
            raise ValueError(f"For 'context.set_context', the key of argument 'jit_config' must be one of {_JIT_KEYS}, but got {name}.")
        if given not in _JIT_KEYS[name]:
            raise ValueError(f"For 'context.set_context', the value of argument {name} must be one of {_JIT_KEYS[name]}, but got {given}.")
    return dict(value)


def _tune_mode(key: str, value: str) -> str:
    if value not in ("online", "offline"):
        raise ValueError(f"For 'context.set_context', the argument 'aoe_tune_mode' must be in ['online', 'offline'], but got {value}.")
    return value


def _existing_file(key: str, value: str) -> str:
    if not os.path.exists(value):
        raise ValueError(f"For 'context.set_context', the '{key}' file '{value}' is not exists, please check whether '{key}' is correct.")
    return value


def _environment(name: str) -> Callable[[Any], None]:
    """Hands the value to the setting of ours that means the same."""

    def act(value: Any) -> None:
        os.environ[name] = str(value)

    return act


def _act_save_graphs(_: Any) -> None:
    if _VALUES["save_graphs"]:
        os.environ["JUMAR_SAVE_GRAPHS"] = _VALUES["save_graphs_path"] or "."
    else:
        os.environ.pop("JUMAR_SAVE_GRAPHS", None)


def _act_compile_cache(value: bool) -> None:
    os.environ["JUMAR_CACHE"] = "1" if value else "0"


KEYS: dict[str, Key] = {
    "mode": Key(PYNATIVE_MODE, int, _mode, _set_mode, here="how cells run"),
    "device_target": Key("CPU", str, _target, _set_target, here="the CPU, or the twin of an Ascend NPU"),
    "device_id": Key(0, int, _device_id),
    "save_graphs": Key(0, (bool, int), _save_graphs, _act_save_graphs, here="JUMAR_SAVE_GRAPHS"),
    "save_graphs_path": Key(".", str, None, _act_save_graphs, here="JUMAR_SAVE_GRAPHS"),
    "runtime_num_threads": Key(0, int, _threads("thread"), _environment("JUMAR_THREADS"), here="JUMAR_THREADS"),
    "inter_op_parallel_num": Key(0, int, _threads("parallel thread")),
    "enable_compile_cache": Key(None, bool, None, _act_compile_cache, here="JUMAR_CACHE"),
    "compile_cache_path": Key("", str, None, _environment("JUMAR_CACHE_DIR"), here="JUMAR_CACHE_DIR"),
    "deterministic": Key("OFF", str, _one_of("ON", "OFF"), here="results are the same at every run in any case"),
    "pynative_synchronize": Key(False, bool, here="errors name the line that made them in any case"),
    "enable_graph_kernel": Key(False, bool, here="operators are fused in any case"),
    "graph_kernel_flags": Key("", str),
    "memory_optimize_level": Key(0, str, _memory_level, here="memory is reused in any case"),
    "jit_config": Key({}, dict, _jit_config),
    "jit_syntax_level": Key(
        LAX, int, _pair("context.STRICT or context.LAX", (STRICT, COMPATIBLE, LAX)), here="all of Python works at any level"
    ),
    "max_call_depth": Key(1000, int, _positive, here="Python's own limit holds"),
    "debug_level": Key(RELEASE, int, _pair("context.DEBUG or context.RELEASE", (DEBUG, RELEASE))),
    "reserve_class_name_in_scope": Key(True, bool),
    "check_bprop": Key(False, bool),
    "support_binary": Key(False, bool),
    "enable_profiling": Key(False, bool),
    "profiling_options": Key("training_trace", str),
    "enable_auto_mixed_precision": Key(False, bool),
    "exec_order": Key("bfs", str, _one_of("bfs", "dfs")),
    "op_timeout": Key(900, int, _threads("op exe timeout")),
    "aoe_tune_mode": Key("", str, _tune_mode),
    "aoe_config": Key({}, dict),
    "auto_tune_mode": Key("", str),
    "env_config_path": Key("", str, _existing_file),
    "dataset_broadcast_opt_level": Key(0, int),
    "max_device_memory": Key(1024.0, str, device_only=True),
    "mempool_block_size": Key(1.0, str, device_only=True),
    "variable_memory_max_size": Key("0", str, device_only=True),
    "ascend_config": Key({}, dict, device_only=True),
    "gpu_config": Key({}, dict, device_only=True),
    "print_file_path": Key("", str, device_only=True),
    "disable_format_transform": Key(False, bool, device_only=True),
    "enable_reduce_precision": Key(True, bool, device_only=True),
    "topo_order": Key("", dict, device_only=True),
}
_REMOVED = {
    "precompile_only": "Please use the env MS_DEV_PRECOMPILE_ONLY instead.",
    "grad_for_scalar": "Please use the tensor derivative instead.",
}
_UNREADABLE = ("enable_auto_mixed_precision", "auto_tune_mode")  # can be set and not asked for
_VALUES: dict[str, Any] = {name: key.default for name, key in KEYS.items()}


def set_context(**kwargs: Any) -> None:
    """Sets keys of the context: `set_context(mode=GRAPH_MODE, save_graphs=True, save_graphs_path="ir")`."""
    for name, value in kwargs.items():
        _set(name, value)


def _set(name: str, value: Any) -> None:
    if name in _REMOVED:
        raise ValueError(
            f"For 'context.set_context', the parameter '{name}' has been removed since MindSpore 2.10 version. {_REMOVED[name]}"
        )
    key = KEYS.get(name)
    if key is None:
        raise ValueError(_not_recognised("set_context", "keyword argument", name))
    if not isinstance(value, key.kind) or (key.kind is int and isinstance(value, bool)):
        wanted = key.kind[0] if isinstance(key.kind, tuple) else key.kind
        raise TypeError(f"The parameter '{name}' must be {wanted}, but got {type(value)}")
    kept = key.check(name, value) if key.check else value
    if not key.here:
        event("context", key=name, value=repr(value), effect="none here")
    if key.device_only:
        return
    if _VALUES.get(name) != kept:
        EPOCH[0] += 1  # captured functions may have read it
    _VALUES[name] = kept
    if key.act:
        key.act(kept)


def get_context(attr_key: str) -> Any:
    """The value of a key."""
    if attr_key not in KEYS or attr_key in _UNREADABLE:
        raise ValueError(_not_recognised("get_context", "argument", attr_key))
    if attr_key == "mode":
        return MODE
    if attr_key == "runtime_num_threads" and not _VALUES[attr_key]:
        return int(os.environ.get("JUMAR_THREADS") or 0) or len(os.sched_getaffinity(0))
    value = _VALUES[attr_key]
    return dict(value) if isinstance(value, dict) else value


def _not_recognised(function: str, what: str, name: str) -> str:
    text = (
        f"For 'context.{function}', the {what} {name} is not recognized! "
        f"For detailed usage of '{function}', please refer to the Mindspore official website."
    )
    hint = nearest(name, [k for k in KEYS if k not in _UNREADABLE])
    return f"{text} ({hint})" if hint else text


def get_jit_config() -> dict[str, Any]:
    """What `set_context(jit_config=...)` was given."""
    return dict(_VALUES["jit_config"])


def _get_mode() -> int:
    """The mode."""
    return MODE


def is_graph_mode() -> bool:
    """Whether cells are captured."""
    return MODE == GRAPH_MODE
