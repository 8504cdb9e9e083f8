"""What changes a run by what it measures: stopping early, lowering the learning rate.

In: the loss or a metric of each epoch.  Out: a request to stop; a new learning rate.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jumar.frontend import Parameter, Tensor, wrap
from jumar.train.callback._callback import Callback, RunContext, loss_of
from jumar.train.errors import ArgumentFault, UnsupportedError, check_count, check_kind
from jumar.train.network import parameters_of

_SMALLER_IS_BETTER = (
    "hausdorff_distance", "mae", "mse", "loss", "perplexity", "mean_surface_distance", "root_mean_square_distance", "eval_loss",
)  # fmt: skip
log = logging.getLogger("jumar.train")


class _Watch(Callback):
    """Follows one value, and whether it gets better."""

    resumable: tuple[str, ...] = ("wait", "best")

    def __init__(self, monitor: str, min_delta: float, patience: int, verbose: bool, mode: str) -> None:
        where = type(self).__name__
        check_kind(where, "monitor", monitor, str)
        check_kind(where, "min_delta", min_delta, (float, int))
        check_kind(where, "verbose", verbose, bool)
        if mode not in ("auto", "min", "max"):
            raise ArgumentFault(f"{where}: mode must be 'auto', 'min' or 'max', got {mode!r}", code="train-argument")
        self.monitor, self.min_delta, self.verbose, self.mode = monitor, abs(min_delta), verbose, mode
        self.patience = check_count(where, "patience", patience, 0)
        self._down = mode == "min" or (mode == "auto" and monitor in _SMALLER_IS_BETTER)
        self.wait = 0
        self.best = math.inf if self._down else -math.inf

    def on_train_begin(self, run_context: RunContext) -> None:
        self.wait = 0
        self.best = math.inf if self._down else -math.inf

    def is_improvement(self, value: Any, best: Any) -> bool:
        """Whether a value is better by more than min_delta."""
        return bool(value < best - self.min_delta if self._down else value > best + self.min_delta)

    def _value(self, params: Any) -> Any:
        found: dict[str, Any] = params.get("eval_results") or {}
        value = loss_of(params.get("net_outputs")) if self.monitor == "loss" else found.get(self.monitor)
        if value is None:
            log.warning("%s: %s is not there; there are: %s", type(self).__name__, self.monitor, ", ".join(["loss", *found]))
        elif np.ndim(value) != 0:
            raise ArgumentFault(
                f"{type(self).__name__}: {self.monitor} must be a number, got shape {np.shape(value)}", code="train-argument"
            )
        return value


class EarlyStopping(_Watch):
    """Stops a run whose value gets no better for `patience` epochs.   baseline: to be beaten, too; restore_best_weights: those of the best epoch."""

    resumable = ("wait", "best", "_kept")

    def __init__(
        self, monitor: str = "eval_loss", min_delta: float = 0, patience: int = 0, verbose: bool = False, mode: str = "auto",
        baseline: float | None = None, restore_best_weights: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(monitor, min_delta, patience, verbose, mode)
        check_kind("EarlyStopping", "baseline", baseline, (float, int, type(None)))
        check_kind("EarlyStopping", "restore_best_weights", restore_best_weights, bool)
        self.baseline, self.restore_best_weights = baseline, restore_best_weights
        self.stopped_epoch = 0
        self._kept: list[Tensor] = []

    def on_train_begin(self, run_context: RunContext) -> None:
        super().on_train_begin(run_context)
        self.stopped_epoch = 0
        self._keep(run_context.original_args())

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        value = self._value(params)
        if value is None:
            return
        self.wait += 1
        if self.is_improvement(value, self.best):
            self.best = value
            self._keep(params)
            if self.baseline is None or self.is_improvement(value, self.baseline):
                self.wait = 0
        if self.wait >= self.patience:
            self.stopped_epoch = params.cur_epoch_num
            run_context.request_stop()
            if self.restore_best_weights:
                if self.verbose:
                    print("Restoring model weights from the end of the best epoch.")  # noqa: T201
                for p, best in zip(parameters_of(params.train_network), self._kept, strict=True):
                    p.set_data(best)

    def _keep(self, params: Any) -> None:
        if self.restore_best_weights:
            self._kept = [wrap(p.asnumpy()) for p in parameters_of(params.train_network)]

    def on_train_end(self, run_context: RunContext) -> None:
        if self.stopped_epoch > 0 and self.verbose:
            print(f"Epoch {self.stopped_epoch:05d}: early stopping")  # noqa: T201


class ReduceLROnPlateau(_Watch):
    """Multiplies the learning rate by `factor` when the value gets no better for `patience` epochs.   cooldown: epochs before it counts again."""

    resumable = ("wait", "best", "cooldown_counter")

    def __init__(
        self, monitor: str = "eval_loss", factor: float = 0.1, patience: int = 10, verbose: bool = False, mode: str = "auto",
        min_delta: float = 1e-4, cooldown: int = 0, min_lr: float = 0,
    ) -> None:  # fmt: skip
        super().__init__(monitor, min_delta, patience, verbose, mode)
        check_kind("ReduceLROnPlateau", "min_lr", min_lr, (float, int))
        if not (isinstance(factor, float) and 0.0 < factor < 1.0):
            raise ArgumentFault(f"ReduceLROnPlateau: factor must be a float between 0 and 1, got {factor!r}", code="train-argument")
        self.factor, self.min_lr = factor, min_lr
        self.cooldown = check_count("ReduceLROnPlateau", "cooldown", cooldown, 0)
        self.cooldown_counter = 0

    def on_train_begin(self, run_context: RunContext) -> None:
        super().on_train_begin(run_context)
        self.cooldown_counter = 0

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        rate = learning_rate_of("ReduceLROnPlateau", params.optimizer)
        value = self._value(params)
        if value is None:
            return
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.wait = 0
        if self.is_improvement(value, self.best):
            self.best, self.wait = value, 0
        elif self.cooldown_counter <= 0:
            self.wait += 1
            if self.wait >= self.patience:
                self._lower(params, rate)
                self.cooldown_counter, self.wait = self.cooldown, 0

    def _lower(self, params: Any, rate: Parameter) -> None:
        now = float(rate.asnumpy())
        if now > self.min_lr:
            new = max(now * self.factor, float(self.min_lr))
            rate.set_data(Tensor(np.float32(new)))
            if self.verbose:
                print(f"Epoch {params.cur_epoch_num:05d}: ReduceLROnPlateau reducing learning rate to {new}.")  # noqa: T201


class LearningRateScheduler(Callback):
    """Sets the learning rate after each step.   learning_rate_function: (learning rate, number of the step) -> learning rate"""

    def __init__(self, learning_rate_function: Callable[[float, int], float]) -> None:
        self.learning_rate_function = learning_rate_function

    def step_end(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        rate = learning_rate_of("LearningRateScheduler", params.optimizer)
        now = float(str(rate.asnumpy()))  # 0.1, not 0.10000000149
        new = self.learning_rate_function(now, params.cur_step_num)
        if not math.isclose(now, new, rel_tol=1e-10):
            rate.set_data(Tensor(np.float32(new)))


def learning_rate_of(where: str, optimizer: Any) -> Parameter:
    """The one learning rate of an optimiser."""
    rate = optimizer.learning_rate
    if not isinstance(rate, Parameter):
        raise UnsupportedError(
            f"{where}: optimizer must have one fixed learning rate, got {type(rate).__name__}",
            hint="leave the schedule to the optimizer, or give it a float", code="train-unsupported",
        )  # fmt: skip
    return rate
