"""Leaving and coming back: a signal that ends training after its step, a backup after each epoch.

In: signals, moments of the loop.  Out: a checkpoint that the next run finds.  To go on with the very same bits, use `jumar.train.Resume`.
"""

from __future__ import annotations

import logging
import os
import signal
from typing import Any

from jumar.train.callback._callback import Callback, RunContext
from jumar.train.errors import ArgumentFault, check_count, check_kind
from jumar.train.serialization import load_checkpoint, save_checkpoint

log = logging.getLogger("jumar.train")


class OnRequestExit(Callback):
    """On a signal (SIGTERM), ends training after the step and saves; the next run with it begins with what was saved.

    Files: `directory/rank_0/<file_name>_train.ckpt` and `..._eval.ckpt`.   save_mindir: nothing is written for it, and the log says so once.
    """

    def __init__(
        self, save_ckpt: bool = True, save_mindir: bool = True, file_name: str = "Net", directory: str | None = "./",
        config_file: str | None = None, sig: int = signal.SIGTERM,
    ) -> None:  # fmt: skip
        for name, value, kind in (("save_ckpt", save_ckpt, bool), ("save_mindir", save_mindir, bool), ("sig", sig, int)):
            check_kind("OnRequestExit", name, value, kind)
        if sig == signal.SIGKILL:
            raise ArgumentFault("OnRequestExit: sig must be a signal that can be caught, got SIGKILL", code="train-argument")
        self.save_ckpt, self.save_mindir, self.sig, self.config_file = save_ckpt, save_mindir, sig, config_file
        folder = os.path.join(directory or os.getcwd(), "rank_0")
        self.train_name, self.eval_name = (os.path.join(folder, f"{file_name}_{mode}.ckpt") for mode in ("train", "eval"))
        self.exit = False
        self._before: Any = None

    def __exit__(self, *error: Any) -> Any:
        if self._before is not None:
            signal.signal(self.sig, self._before)
            self._before = None
        return None

    def _listen(self) -> None:
        if self._before is None:
            self._before = signal.signal(self.sig, self._request)

    def _request(self, number: int, frame: Any) -> None:
        self.exit = True

    def on_train_begin(self, run_context: RunContext) -> None:
        self._listen()
        if self.save_ckpt and os.path.isfile(self.train_name):
            load_checkpoint(self.train_name, net=run_context.original_args().train_network)

    def on_train_step_end(self, run_context: RunContext) -> None:
        if self.exit:
            run_context.request_stop()

    def on_train_end(self, run_context: RunContext) -> None:
        if self.exit:
            self._save(run_context.original_args().train_network, self.train_name)

    def on_eval_begin(self, run_context: RunContext) -> None:
        self._listen()
        if self.save_ckpt:
            for path in (self.eval_name, self.train_name):
                if os.path.isfile(path):
                    load_checkpoint(path, net=run_context.original_args().eval_network)
                    break

    def on_eval_step_end(self, run_context: RunContext) -> None:
        if self.exit:
            run_context.request_stop()

    def on_eval_end(self, run_context: RunContext) -> None:
        if self.exit:
            self._save(run_context.original_args().eval_network, self.eval_name)

    def _save(self, network: Any, path: str) -> None:
        if self.save_ckpt:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            save_checkpoint(network, path)
        if self.save_mindir:
            log.warning("OnRequestExit: no MindIR file is written: Jumar has none; the checkpoint has the weights")


class BackupAndRestore(Callback):
    """Saves every `save_freq` epochs; the next run begins with what was saved.   delete_checkpoint: at the end of a run that was not cut off."""

    def __init__(self, backup_dir: str, save_freq: str | int = "epoch", delete_checkpoint: bool = True) -> None:
        check_kind("BackupAndRestore", "backup_dir", backup_dir, str)
        check_kind("BackupAndRestore", "delete_checkpoint", delete_checkpoint, bool)
        os.makedirs(backup_dir, exist_ok=True)
        self.backup_file = os.path.join(os.path.realpath(backup_dir), "backup.ckpt")
        self.save_freq = 1 if save_freq == "epoch" else check_count("BackupAndRestore", "save_freq", save_freq)
        self.delete_checkpoint = delete_checkpoint

    def on_train_begin(self, run_context: RunContext) -> None:
        if os.path.exists(self.backup_file):
            load_checkpoint(self.backup_file, net=run_context.original_args().train_network)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        if params.cur_epoch_num % self.save_freq == 0:
            save_checkpoint(params.train_network, self.backup_file)

    def on_train_end(self, run_context: RunContext) -> None:
        if self.delete_checkpoint and os.path.exists(self.backup_file):
            os.remove(self.backup_file)
