"""The auto-parallel context: MindSpore's keys for training on many devices, their checks, and single-process meaning.

In: `set_auto_parallel_context(parallel_mode=..., device_num=...)`.  Out: `get_auto_parallel_context(key)`, `ParallelMode`.
One process is all that Jumar runs: the values are kept for scripts that branch on them; `communication.init` refuses a larger job.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jumar.base import nearest


class ParallelMode:
    """Names of the ways to train on many devices."""

    STAND_ALONE = "stand_alone"
    DATA_PARALLEL = "data_parallel"
    HYBRID_PARALLEL = "hybrid_parallel"
    SEMI_AUTO_PARALLEL = "semi_auto_parallel"
    AUTO_PARALLEL = "auto_parallel"
    MODE_LIST = [STAND_ALONE, DATA_PARALLEL, HYBRID_PARALLEL, SEMI_AUTO_PARALLEL, AUTO_PARALLEL]


@dataclass(frozen=True)
class Key:
    """One key.   readable: whether `get_auto_parallel_context` knows it; settable: whether `set_...` does."""

    default: Any
    kind: type | tuple[type, ...] | None
    check: Callable[[str, Any], None] | None = None
    readable: bool = True
    settable: bool = True


_SEARCH = ("recursive_programming", "dynamic_programming", "sharding_propagation")
_OPTIMIZER_KEYS = ("gradient_accumulation_shard", "parallel_optimizer_threshold", "optimizer_weight_shard_size", "optimizer_level")
_FUSION = {name: {"mode": "auto", "config": None} for name in ("allreduce", "allgather", "reducescatter")}


def _positive(key: str, value: int) -> None:
    if value < 1:
        raise ValueError(f"The context configuration parameter '{key}' must be a positive integer, but got the value of {key} : {value}.")


def _rank(key: str, value: int) -> None:
    if not 0 <= value <= 4095:
        raise ValueError(f"The context configuration parameter '{key}' must be in [0, 4095], but got the value of {key} : {value}.")


def _mode(key: str, value: str) -> None:
    if value not in ParallelMode.MODE_LIST:
        *names, last = (f"'{m}'" for m in ParallelMode.MODE_LIST)
        raise ValueError(
            f"The context configuration parameter 'parallel_mode' only support {', '.join(names)} and {last}, but got the value : {value}."
        )


def _search(key: str, value: str) -> None:
    if value not in _SEARCH:
        *names, last = (f"'{m}'" for m in _SEARCH)
        raise ValueError(
            f"The context configuration parameter 'auto_parallel_search_mode' only support {', '.join(names)} and {last}, "
            f"but got the value: {value}."
        )


def _stages(key: str, value: int) -> None:
    if value < 1:
        raise ValueError(
            f"For 'set_auto_parallel_context', the argument 'pipeline_stages' should be greater or equal 1, "
            f"but got the value of stages : {value}."
        )


def _strategy(key: str, value: Any) -> None:
    if not isinstance(value, str | tuple):
        raise TypeError(
            f"For 'set_auto_parallel_context', the argument 'dataset_strategy' must be str or tuple type, but got the type : {type(value)}."
        )


def _optimizer(key: str, value: dict[str, Any]) -> None:
    unknown = [k for k in value if k not in _OPTIMIZER_KEYS]
    if unknown:
        raise ValueError(f"Unknown config: {unknown}")


KEYS: dict[str, Key] = {
    "device_num": Key(1, int, _positive),
    "global_rank": Key(0, int, _rank),
    "gradients_mean": Key(False, bool),
    "gradient_fp32_sync": Key(True, bool),
    "loss_repeated_mean": Key(True, bool),
    "parallel_mode": Key(ParallelMode.STAND_ALONE, str, _mode),
    "search_mode": Key(_SEARCH[0], str, _search),
    "auto_parallel_search_mode": Key(_SEARCH[0], str, _search),
    "parameter_broadcast": Key(False, bool),
    "strategy_ckpt_load_file": Key("", str),
    "strategy_ckpt_save_file": Key("", str),
    "group_ckpt_save_file": Key("", str, readable=False),
    "full_batch": Key(False, bool),
    "full_batch_is_set": Key(False, bool, settable=False),
    "dataset_strategy": Key("data_parallel", None, _strategy),
    "enable_parallel_optimizer": Key(False, bool),
    "force_fp32_communication": Key(False, bool),
    "enable_alltoall": Key(False, bool),
    "all_reduce_fusion_config": Key([], list),
    "pipeline_stages": Key(1, int, _stages),
    "pipeline_segments": Key(1, int, readable=False),
    "pipeline_config": Key({}, dict, readable=False),
    "pipeline_result_broadcast": Key(False, bool),
    "pipeline_interleave": Key(False, bool, settable=False),
    "pipeline_scheduler": Key("1f1b", str, settable=False),
    "auto_pipeline": Key(False, bool),
    "grad_accumulation_step": Key(1, int, _positive),
    "optimizer_weight_shard_size": Key(-1, int),
    "optimizer_weight_shard_aggregated_save": Key(False, bool),
    "communi_parallel_mode": Key("all_group_parallel", str),
    "parallel_optimizer_config": Key({}, dict, _optimizer, readable=False),
    "comm_fusion": Key({"openstate": True, **_FUSION}, dict),
    "strategy_ckpt_config": Key({"load_file": "", "save_file": "", "only_trainable_params": True}, dict),
    "sharding_propagation": Key(False, bool),
    "dump_local_norm": Key(False, bool),
    "dump_local_norm_path": Key("", str),
    "dump_device_local_norm": Key(False, bool),
    "auto_parallel_new_interface": Key(False, bool),
    "init_param_in_compile": Key(True, bool),
}
_MERGED = (
    "comm_fusion",
    "strategy_ckpt_config",
    "parallel_optimizer_config",
    "pipeline_config",
)  # a given dict changes some of the entries
_VALUES: dict[str, Any] = {}


def set_auto_parallel_context(**kwargs: Any) -> None:
    """Sets keys, each checked as MindSpore does."""
    for name, value in kwargs.items():
        key = KEYS.get(name)
        if key is None or not key.settable:
            hint = nearest(name, [k for k, v in KEYS.items() if v.settable])
            raise ValueError(f"Set context keyword {name} is not recognized!{f' {hint}' if hint else ''}")
        if key.kind is not None and (not isinstance(value, key.kind) or (key.kind is int and isinstance(value, bool))):
            raise TypeError(f"The parameter '{name}' must be {key.kind}, but got {type(value)}")
        if key.check:
            key.check(name, value)
        _VALUES[name] = {**_VALUES[name], **value} if name in _MERGED else value
        if name in ("search_mode", "auto_parallel_search_mode"):
            _VALUES["search_mode"] = _VALUES["auto_parallel_search_mode"] = value
        if name == "full_batch":
            _VALUES["full_batch_is_set"] = True


def get_auto_parallel_context(attr_key: str) -> Any:
    """The value of a key."""
    key = KEYS.get(attr_key)
    if key is None or not key.readable:
        hint = nearest(attr_key, [k for k, v in KEYS.items() if v.readable])
        raise ValueError(f"Get context keyword {attr_key} is not recognized!{f' {hint}' if hint else ''}")
    return copy.deepcopy(_VALUES[attr_key])


def reset_auto_parallel_context() -> None:
    """Every key as it was at the start."""
    _VALUES.update({name: copy.deepcopy(key.default) for name, key in KEYS.items()})


reset_auto_parallel_context()
_set_auto_parallel_context = set_auto_parallel_context
_get_auto_parallel_context = get_auto_parallel_context
_reset_auto_parallel_context = reset_auto_parallel_context


class _Context:
    """The context as the object that `auto_parallel_context()` gives: `get_device_num()`, `set_device_num(2)` ..."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("get_"):
            return lambda: _VALUES[self._key(name)]
        if name.startswith("set_"):
            return lambda value: set_auto_parallel_context(**{self._key(name): value})
        raise AttributeError(f"auto_parallel_context() has no attribute {name!r}")

    @staticmethod
    def _key(name: str) -> str:
        key = name[4:]
        if key not in KEYS:
            raise AttributeError(f"auto_parallel_context() has no attribute {name!r}; {nearest(key, list(KEYS))}")
        return key

    @staticmethod
    def reset() -> None:
        reset_auto_parallel_context()


_CONTEXT = _Context()


def auto_parallel_context() -> _Context:
    """The context as an object."""
    return _CONTEXT
