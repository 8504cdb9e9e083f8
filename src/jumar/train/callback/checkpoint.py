"""`ModelCheckpoint`: checkpoints during training, by steps or seconds, so many at a time.

In: a CheckpointConfig; moments of the loop.  Out: `prefix-epoch_step.ckpt` files, the oldest removed; `..._breakpoint.ckpt` after an error.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jumar.frontend import Parameter, Tensor
from jumar.train.callback._callback import Callback, RunContext
from jumar.train.errors import ArgumentFault, KindFault, UnsupportedError, check_count, check_kind
from jumar.train.network import Network
from jumar.train.serialization import SAVER, save_checkpoint

_INFO = ("epoch_num", "step_num")
_BREAKPOINT = "_breakpoint.ckpt"


class CheckpointConfig:
    """When and how ModelCheckpoint saves.

    save_checkpoint_steps, save_checkpoint_seconds: how often (steps win).   keep_checkpoint_max: how many are kept; keep_checkpoint_per_n_minutes: one
    for each so many minutes instead.   saved_network: instead of the training network, which has the optimiser's state, too.
    append_info: "epoch_num", "step_num", and a dict of further values.   exception_save: also when training ends with an error.
    """

    def __init__(
        self, save_checkpoint_steps: int | None = 1, save_checkpoint_seconds: int | None = 0, keep_checkpoint_max: int | None = 5,
        keep_checkpoint_per_n_minutes: int | None = 0, integrated_save: bool = True, async_save: bool | str = False, saved_network: Any = None,
        append_info: list[Any] | None = None, enc_key: bytes | None = None, enc_mode: str = "AES-GCM", exception_save: bool = False,
        crc_check: bool = False, remove_redundancy: bool = False, format: str = "ckpt", **kwargs: Any,
    ) -> None:  # fmt: skip
        where = "CheckpointConfig"
        counts = {"save_checkpoint_steps": save_checkpoint_steps, "save_checkpoint_seconds": save_checkpoint_seconds,
                  "keep_checkpoint_max": keep_checkpoint_max, "keep_checkpoint_per_n_minutes": keep_checkpoint_per_n_minutes}  # fmt: skip
        for name, count in counts.items():
            if count is not None:
                check_count(where, name, count, 0)
        if not any(counts.values()):
            raise ArgumentFault(f"{where}: one of {', '.join(counts)} must be above 0, got none", code="train-argument")
        check_kind(where, "exception_save", exception_save, bool)
        check_kind(where, "crc_check", crc_check, bool)
        check_kind(where, "integrated_save", integrated_save, bool)
        if saved_network is not None and not isinstance(saved_network, Network):
            raise KindFault(f"{where}: saved_network must be a Cell, got {type(saved_network).__name__}", code="train-argument")
        if enc_key is not None:
            raise UnsupportedError(f"{where}: enc_key must be None: Jumar does not encrypt", code="checkpoint-encrypted")
        if remove_redundancy or kwargs.get("incremental") or kwargs.get("enable_redundance"):
            raise UnsupportedError(f"{where}: remove_redundancy is for many devices; Jumar trains on one", code="train-unsupported")
        if async_save not in (False, True, "thread", "process") or format not in ("ckpt", "safetensors"):
            raise ArgumentFault(f"{where}: async_save and format must be known, got {async_save!r} and {format!r}", code="train-argument")
        if format == "safetensors" and (crc_check or exception_save):
            raise ArgumentFault(f"{where}: crc_check and exception_save must be False for safetensors", code="train-argument")
        self.save_checkpoint_steps = save_checkpoint_steps
        self.save_checkpoint_seconds = None if save_checkpoint_steps else save_checkpoint_seconds
        self.keep_checkpoint_per_n_minutes = None if keep_checkpoint_max else keep_checkpoint_per_n_minutes
        self.keep_checkpoint_max = keep_checkpoint_max if keep_checkpoint_max or keep_checkpoint_per_n_minutes else 1
        self.integrated_save, self.async_save, self.saved_network = integrated_save, async_save, saved_network
        self.enc_key, self.enc_mode, self.exception_save, self.crc_check, self.format = enc_key, enc_mode, exception_save, crc_check, format
        self.map_param_inc = False
        self.append_dict = _append_dict(append_info)

    def get_checkpoint_policy(self) -> dict[str, Any]:
        """When it saves, and how many it keeps."""
        names = (
            "save_checkpoint_steps",
            "save_checkpoint_seconds",
            "keep_checkpoint_max",
            "keep_checkpoint_per_n_minutes",
            "saved_network",
        )
        return {name: getattr(self, name) for name in names}


def _append_dict(info: list[Any] | None) -> dict[str, Any] | None:
    if not info:
        return None
    check_kind("CheckpointConfig", "append_info", info, list)
    found: dict[str, Any] = {}
    for item in info:
        if isinstance(item, str) and item in _INFO:
            found[item] = 0
        elif isinstance(item, dict) and all(
            isinstance(k, str) and isinstance(v, int | float | str | Parameter | Tensor) for k, v in item.items()
        ):
            found |= item
        else:
            what = f"append_info must hold {' and '.join(_INFO)} and a dict of numbers, texts and tensors by name, got {item!r:.100}"
            raise KindFault(f"CheckpointConfig: {what}", code="train-argument")
    return found


@dataclass
class CheckpointManager:
    """The checkpoints of one prefix in one folder."""

    format: str = "ckpt"
    ckpoint_filelist: list[str] = field(default_factory=list)

    @property
    def ckpoint_num(self) -> int:
        return len(self.ckpoint_filelist)

    def update_ckpoint_filelist(self, directory: str, prefix: str) -> None:
        """Looks which there are."""
        ending = f".{self.format}"
        self.ckpoint_filelist = [
            os.path.join(directory, name)
            for name in sorted(os.listdir(directory))
            if name.startswith(prefix + "-") and name.endswith(ending) and not any(c.isalpha() for c in name[len(prefix) : -len(ending)])
        ]

    def remove_ckpoint_file(self, path: str) -> None:
        """Removes one, and forgets it."""
        os.remove(path)
        self.ckpoint_filelist.remove(path)

    def remove_oldest_ckpoint_file(self) -> None:
        """Removes the oldest."""
        self.remove_ckpoint_file(min(self.ckpoint_filelist, key=os.path.getmtime))

    def keep_one_ckpoint_per_minutes(self, minutes: float, now: float) -> None:
        """Of those of the last minutes, only the oldest stays."""
        recent = sorted((p for p in self.ckpoint_filelist if now - os.path.getmtime(p) < 60 * minutes), key=os.path.getmtime)
        for path in recent[1:]:
            self.remove_ckpoint_file(path)


class ModelCheckpoint(Callback):
    """Saves the training network during training.   prefix, directory: texts, or functions of the run's parameters that give them.

    A prefix that is taken in the folder gets a number: `CKP_1-1_100.ckpt`.
    """

    resumable = ("_last_triggered_step", "_prefix")

    def __init__(
        self,
        prefix: str | Callable[[Any], str] = "CKP",
        directory: str | Callable[[Any], str] | None = None,
        config: CheckpointConfig | None = None,
    ) -> None:
        if config is not None and not isinstance(config, CheckpointConfig):
            raise KindFault(f"ModelCheckpoint: config must be a CheckpointConfig, got {type(config).__name__}", code="train-argument")
        self._config = config or CheckpointConfig()
        self._prefix_func = prefix if callable(prefix) else None
        self._directory_func = directory if callable(directory) else None
        self._prefix = "" if callable(prefix) else _checked_prefix(prefix)
        self._directory = os.getcwd() if directory is None else "" if callable(directory) else _made(directory)
        self._exception_prefix = self._prefix or "CKP"
        if not callable(prefix) and not callable(directory):
            self._prefix = _free_prefix(self._directory, self._prefix)
        self._manager = CheckpointManager(self._config.format)
        self._append = dict(self._config.append_dict or {})
        self._start = {n: self._append.get(n, 0) for n in _INFO}
        self._latest_ckpt_file_name = ""
        self._last_time = self._last_time_for_keep = time.time()
        self._last_triggered_step = 0

    @property
    def latest_ckpt_file_name(self) -> str:
        """The file that was saved last."""
        return self._latest_ckpt_file_name

    def step_end(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        if self._prefix_func is not None:
            self._prefix = _checked_prefix(self._prefix_func(params))
        if self._directory_func is not None:
            self._directory = _made(self._directory_func(params))
        self._save(params, force=False)

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """Nothing is saved while evaluating."""

    def on_eval_end(self, run_context: RunContext) -> None:
        """Nothing is saved while evaluating."""

    def end(self, run_context: RunContext) -> None:
        self._save(run_context.original_args(), force=True)
        SAVER.wait()

    def _due(self, params: Any, force: bool) -> bool:
        config = self._config
        if config.save_checkpoint_steps:
            return force or params.cur_step_num >= self._last_triggered_step + config.save_checkpoint_steps
        if config.save_checkpoint_seconds:
            now = time.time()
            if force or now - self._last_time > config.save_checkpoint_seconds:
                self._last_time = now
                return True
        return False

    def _save(self, params: Any, *, force: bool) -> None:
        if params.cur_step_num == self._last_triggered_step or not self._due(params, force):
            return
        config = self._config
        step = (params.cur_step_num - 1) % params.batch_num + 1
        name = self._prefix if self._prefix_func is not None else f"{self._prefix}-{params.cur_epoch_num}_{step}"
        path = os.path.join(self._directory, f"{name}.{config.format}")
        self._last_triggered_step = params.cur_step_num
        self._note(params.cur_epoch_num, params.cur_step_num)
        save_checkpoint(
            config.saved_network if config.saved_network is not None else params.train_network, path, config.integrated_save, config.async_save,
            self._append, crc_check=config.crc_check, format=config.format,
        )  # fmt: skip
        self._thin_out(path)
        self._latest_ckpt_file_name = path

    def _thin_out(self, newest: str) -> None:
        """Removes old files, after the new one is there: a crash leaves one too many, never one too few."""
        config, manager = self._config, self._manager
        manager.update_ckpoint_filelist(self._directory, self._prefix)
        if newest in manager.ckpoint_filelist:
            manager.ckpoint_filelist.remove(newest)
        if config.keep_checkpoint_max:
            while manager.ckpoint_num >= config.keep_checkpoint_max:
                manager.remove_oldest_ckpoint_file()
        elif config.keep_checkpoint_per_n_minutes:
            now = time.time()
            if now - self._last_time_for_keep < config.keep_checkpoint_per_n_minutes * 60:
                manager.keep_one_ckpoint_per_minutes(config.keep_checkpoint_per_n_minutes, now)
            self._last_time_for_keep = now

    def _note(self, epoch: int, step: int) -> None:
        for name, number in zip(_INFO, (epoch, step), strict=True):
            if name in self._append:
                self._append[name] = self._start[name] + number

    def save_after_error(self, network: Network, epoch: int, step: int) -> None:
        """What `exception_save` promises; called by the loop when it ends with an error."""
        if not self._config.exception_save:
            return
        prefix = _free_prefix(self._directory, self._exception_prefix, broken=True)
        self._note(epoch, step)
        save_checkpoint(network, os.path.join(self._directory, f"{prefix}-{epoch}_{step}{_BREAKPOINT}"), append_dict=self._append)


def _checked_prefix(prefix: Any) -> str:
    if not isinstance(prefix, str) or "/" in prefix:
        raise ArgumentFault(f"ModelCheckpoint: prefix must be a text without '/', or give one, got {prefix!r:.100}", code="train-argument")
    return prefix


def _made(directory: str) -> str:
    check_kind("ModelCheckpoint", "directory", directory, str)
    os.makedirs(directory, exist_ok=True)
    return os.path.realpath(directory)


def _free_prefix(directory: str, prefix: str, *, broken: bool = False) -> str:
    """The prefix, with a number if other runs left checkpoints of that name."""
    number = 0
    for name in os.listdir(directory):
        mine = name.endswith(_BREAKPOINT) if broken else name.endswith((".ckpt", ".safetensors")) and not name.endswith(_BREAKPOINT)
        if not mine or not name.startswith(prefix) or name[len(prefix)].isalpha():
            continue
        before, dash, _ = name[len(prefix) :].partition("-")
        if dash and not before:
            number = max(number, 1)
        elif dash and before[1:].isdigit():
            number = max(number, int(before[1:]) + 1)
    return f"{prefix}_{number}" if number else prefix
