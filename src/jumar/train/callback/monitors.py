"""What a run shows: losses, times, a history, whatever a lambda wants.

In: moments of the loop.  Out: the lines that MindSpore prints, letter by letter, since scripts read them; lists of values.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from jumar.frontend import Tensor
from jumar.train.callback._callback import MOMENTS, Callback, RunContext, _handle_loss
from jumar.train.errors import ArgumentFault, TrainError, check_count, check_kind


class LossNotFinite(TrainError, ValueError):
    """The loss is NaN or infinite."""


class LossMonitor(Callback):
    """Prints the loss every so many steps, and stops a run whose loss is NaN or infinite.   per_print_times: 0 prints none."""

    resumable = ("_last_print_time",)

    def __init__(self, per_print_times: int = 1) -> None:
        self._per_print_times = check_count("LossMonitor", "per_print_times", per_print_times, 0)
        self._last_print_time = 0

    def step_end(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        epoch, every = params.get("cur_epoch_num", 1), self._per_print_times
        loss = _handle_loss(params.net_outputs)
        step = (params.cur_step_num - 1) % params.batch_num + 1
        if isinstance(loss, float) and not math.isfinite(loss):
            raise LossNotFinite(
                f"In epoch: {epoch} step: {step}, loss is NAN or INF, training process cannot continue, terminating training.",
                hint="jumar train-check SCRIPT names the first operator that overflows",
                code="loss-not-finite",
            )
        if not every:
            return
        if params.cur_step_num <= self._last_print_time:  # another run with the same callback
            self._last_print_time -= ((self._last_print_time - params.cur_step_num) // every + 1) * every
        if params.cur_step_num - self._last_print_time >= every:
            self._last_print_time = params.cur_step_num
            print(f"epoch: {epoch} step: {step}, loss is {loss}", flush=True)  # noqa: T201

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        if params.get("metrics"):
            print(f"Eval result: epoch {params.cur_epoch_num}, metrics: {params.metrics}")  # noqa: T201


class TimeMonitor(Callback):
    """Prints the time of each epoch and of a step in it.   data_size: steps of an epoch where the run does not say; data_time: also the wait for data."""

    def __init__(self, data_size: int | None = None, data_time: bool = False) -> None:
        check_kind("TimeMonitor", "data_time", data_time, bool)
        self.data_size, self.data_time = data_size, data_time
        self.epoch_time = time.time()
        self.data_time_sum = self.data_time_start = 0.0

    def on_train_step_begin(self, run_context: RunContext) -> None:
        self.data_time_sum += time.time() - self.data_time_start
        super().on_train_step_begin(run_context)

    def on_train_step_end(self, run_context: RunContext) -> None:
        self.data_time_start = time.time()
        super().on_train_step_end(run_context)

    def epoch_begin(self, run_context: RunContext) -> None:
        self.epoch_time = self.data_time_start = time.time()
        self.data_time_sum = 0.0

    def epoch_end(self, run_context: RunContext) -> None:
        time_ms = (time.time() - self.epoch_time) * 1000
        params = run_context.original_args()
        steps = params.get("batch_num")
        if not isinstance(steps, int) or steps < 1:
            steps = check_count("TimeMonitor", "data_size", self.data_size)
        line = f"{params.get('mode', '').title()} epoch time: {time_ms:5.3f} ms, per step time: {time_ms / steps:5.3f} ms"
        if self.data_time:
            line += f" (data time: {self.data_time_sum * 1000 / steps:5.3f} ms)"
        print(line, flush=True)  # noqa: T201


class History(Callback):
    """Keeps the loss (`net_output`) and metrics of each epoch.   history: lists by name; epoch: {"epoch": numbers}."""

    def __init__(self) -> None:
        self.history: dict[str, list[Any]] = {}
        self.epoch: dict[str, list[int]] | None = None

    def begin(self, run_context: RunContext) -> None:
        self.epoch = {"epoch": []}

    def epoch_end(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        if self.epoch is not None:
            self.epoch["epoch"].append(params.get("cur_epoch_num", 1))
        output = params.net_outputs
        if isinstance(output, tuple | list) and isinstance(output[0], Tensor):
            output = output[0]
        if isinstance(output, Tensor):
            output = np.mean(output.asnumpy())
        for name, value in {"net_output": output, **(params.get("metrics") or {})}.items():
            self.history.setdefault(name, []).append(value)


class LambdaCallback(Callback):
    """A callback of functions: `LambdaCallback(on_train_step_end=lambda run_context: ...)`."""

    def __init__(self, *functions: Callable[[RunContext], Any] | None, **named: Callable[[RunContext], Any] | None) -> None:
        if len(functions) > len(_LAMBDAS) or not named.keys() <= set(MOMENTS):
            raise ArgumentFault(
                f"LambdaCallback: functions must be among {', '.join(_LAMBDAS)}, got {', '.join(named)}", code="train-argument"
            )
        for name, function in [*zip(_LAMBDAS, functions, strict=False), *named.items()]:
            if function is not None:
                setattr(self, name, function)


_LAMBDAS = tuple(
    f"on_{mode}_{when}" for mode in ("train", "eval") for when in ("epoch_begin", "epoch_end", "step_begin", "step_end", "begin", "end")
)
