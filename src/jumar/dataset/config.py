"""`dataset.config`: the settings of the data pipelines of this process, under MindSpore's names.

In: `set_*` calls of a script.  Out: what `get_*` gives; a pipeline reads them when an iterator is made from it.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from enum import IntEnum
from pathlib import Path
from typing import Any

from jumar.dataset.errors import DataFault, DataTypeFault, DataValueFault, check_bool, check_int

DEFAULT_SEED = 5489  # MindSpore's value for "no seed": each iterator then draws one


class ErrorSamplesMode(IntEnum):
    """What a map does with a row on which its operations fail."""

    RETURN = 0  # the error ends the pipeline
    REPLACE = 1
    SKIP = 2


def _cores() -> int:
    return len(os.sched_getaffinity(0))


class _Settings:
    def __init__(self) -> None:
        self.seed = DEFAULT_SEED
        self.num_parallel_workers = min(8, _cores())
        self.prefetch_size = 16
        self.monitor_sampling_interval = 1000
        self.callback_timeout = 60
        self.multiprocessing_timeout_interval = 300
        self.start_method = "fork"
        self.shared_mem = True
        self.watchdog = True
        self.error_samples_mode = ErrorSamplesMode.RETURN
        self.fast_recovery = True
        self.debug_mode = False
        self.iterator_mode = {"do_copy": False, "parallel_convert": False}
        self.switches: dict[str, Any] = {
            "auto_num_workers": False, "numa_enable": False, "enable_autotune": False, "dynamic_shape": False, "auto_offload": False,
        }  # fmt: skip


_settings = _Settings()
_global_seed = getattr(sys.modules.get("jumar.common.seed"), "get_seed", lambda: None)()
if _global_seed is not None:  # `set_seed` was called before this room was loaded; later calls tell it here
    _settings.seed = _global_seed % 2**32


def set_seed(seed: int) -> None:
    """Every shuffle and every random operation of pipelines that are iterated from now on follows from `seed`."""
    _settings.seed = check_int("config.set_seed", "seed", seed, 0, 2**32 - 1)


def get_seed() -> int:
    return _settings.seed


def draw_seed() -> int:
    """The seed of a new iterator: the one set, else a fresh one."""
    return _settings.seed if _settings.seed != DEFAULT_SEED else secrets.randbits(32)


def set_num_parallel_workers(num: int) -> None:
    _settings.num_parallel_workers = check_int("config.set_num_parallel_workers", "num", num, 1, 1024)


def get_num_parallel_workers() -> int:
    return _settings.num_parallel_workers


def set_prefetch_size(size: int) -> None:
    """Rows that may wait between the pipeline and the step (they also never hold more than 256 MiB)."""
    _settings.prefetch_size = check_int("config.set_prefetch_size", "size", size, 1)


def get_prefetch_size() -> int:
    return _settings.prefetch_size


def set_monitor_sampling_interval(interval: int) -> None:
    _settings.monitor_sampling_interval = check_int("config.set_monitor_sampling_interval", "interval", interval, 1)


def get_monitor_sampling_interval() -> int:
    return _settings.monitor_sampling_interval


def set_callback_timeout(timeout: int) -> None:
    _settings.callback_timeout = check_int("config.set_callback_timeout", "timeout", timeout, 1)


def get_callback_timeout() -> int:
    return _settings.callback_timeout


def set_multiprocessing_timeout_interval(interval: int) -> None:
    """Seconds after which a warning says that no worker has given a row."""
    _settings.multiprocessing_timeout_interval = check_int("config.set_multiprocessing_timeout_interval", "interval", interval, 1)


def get_multiprocessing_timeout_interval() -> int:
    return _settings.multiprocessing_timeout_interval


def set_multiprocessing_start_method(start_method: str = "fork") -> None:
    """`fork`: workers start with what the script has loaded.   `spawn`: a fresh interpreter each; functions and sources must be picklable."""
    if start_method not in ("fork", "spawn"):
        raise DataValueFault(f"config.set_multiprocessing_start_method: start_method must be 'fork' or 'spawn', got {start_method!r}")
    _settings.start_method = start_method


def get_multiprocessing_start_method() -> str:
    return _settings.start_method


def set_enable_shared_mem(enable: bool) -> None:
    """Whether large arrays go between processes through shared memory (else through pipes)."""
    _settings.shared_mem = check_bool("config.set_enable_shared_mem", "enable", enable)


def get_enable_shared_mem() -> bool:
    return _settings.shared_mem


def set_enable_watchdog(enable: bool) -> None:
    _settings.watchdog = check_bool("config.set_enable_watchdog", "enable", enable)


def get_enable_watchdog() -> bool:
    return _settings.watchdog


def set_error_samples_mode(error_samples_mode: ErrorSamplesMode) -> None:
    """What `map` does with a row that fails: RETURN raises, SKIP leaves it out, REPLACE gives the last good row in its place."""
    if not isinstance(error_samples_mode, ErrorSamplesMode):
        raise DataTypeFault(f"config.set_error_samples_mode: must be an ErrorSamplesMode, got {error_samples_mode!r}")
    _settings.error_samples_mode = error_samples_mode


def get_error_samples_mode() -> ErrorSamplesMode:
    return _settings.error_samples_mode


def set_fast_recovery(fast_recovery: bool) -> None:
    """Kept for scripts: a pipeline that is restored here is always both fast and exact."""
    _settings.fast_recovery = check_bool("config.set_fast_recovery", "fast_recovery", fast_recovery)


def get_fast_recovery() -> bool:
    return _settings.fast_recovery


def set_debug_mode(debug_mode_flag: bool, debug_hook_list: list[Any] | None = None) -> None:
    """Everything runs in the calling thread, without workers and prefetch, so that a debugger stops where the error is."""
    if debug_hook_list:
        raise DataFault("config.set_debug_mode: debug_hook_list must be empty, got hooks", hint="put a breakpoint() into the operation")
    _settings.debug_mode = check_bool("config.set_debug_mode", "debug_mode_flag", debug_mode_flag)


def get_debug_mode() -> bool:
    return _settings.debug_mode


def set_iterator_mode(do_copy: bool = False, parallel_convert: bool = False) -> None:
    _settings.iterator_mode = {
        "do_copy": check_bool("config.set_iterator_mode", "do_copy", do_copy),
        "parallel_convert": check_bool("config.set_iterator_mode", "parallel_convert", parallel_convert),
    }


def get_iterator_mode() -> dict[str, bool]:
    return dict(_settings.iterator_mode)


def _switch(name: str, value: bool) -> None:
    """A switch that chooses how MindSpore's own engine works; here only False says what happens."""
    if check_bool(f"config.set_{name}", "enable", value):
        raise DataFault(f"config.set_{name}: must be False, got True", hint="this engine has no such mode; leave the call out")


def set_auto_num_workers(enable: bool) -> None:
    _switch("auto_num_workers", enable)


def get_auto_num_workers() -> bool:
    return False


def set_numa_enable(numa_enable: bool) -> None:
    _switch("numa_enable", numa_enable)


def get_numa_enable() -> bool:
    return False


def set_enable_autotune(enable: bool, filepath_prefix: str | None = None) -> None:
    _switch("enable_autotune", enable)


def get_enable_autotune() -> bool:
    return False


def set_autotune_interval(interval: int) -> None:
    check_int("config.set_autotune_interval", "interval", interval, 0)


def get_autotune_interval() -> int:
    return 0


def set_dynamic_shape(is_dynamic: bool) -> None:
    """Kept for scripts: shapes may always differ from row to row here."""
    check_bool("config.set_dynamic_shape", "is_dynamic", is_dynamic)


def get_dynamic_shape() -> bool:
    return False


def set_auto_offload(offload: bool) -> None:
    _switch("auto_offload", offload)


def get_auto_offload() -> bool:
    return False


def set_sending_batches(batch_num: int) -> None:
    """Kept for scripts: how far a device may be ahead; there is no device queue here."""
    check_int("config.set_sending_batches", "batch_num", batch_num, 0)


def load(file: str) -> None:
    """Settings from a JSON file of MindSpore's form (`numParallelWorkers`, `seed`, `monitorSamplingInterval`, `prefetchSize` ...)."""
    try:
        found = json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataFault(f"config.load: {file} must be a JSON file of settings, got {error}") from error
    setters = {
        "numParallelWorkers": set_num_parallel_workers, "seed": set_seed, "prefetchSize": set_prefetch_size,
        "monitorSamplingInterval": set_monitor_sampling_interval, "callbackTimeout": set_callback_timeout,
    }  # fmt: skip
    for name, value in found.items():
        if name in setters:
            setters[name](value)
