"""Callbacks of a map: told when its passes and rows begin and end.

In: subclasses of `DSCallback` (or `WaitedDSCallback`).  Out: calls with a `CBRunParam` (mapping.py).
They run in the thread of the pipeline, which is ahead of the step; `WaitedDSCallback` lets it wait for the step.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jumar.dataset import config
from jumar.dataset.errors import DataFault, check_int

if TYPE_CHECKING:
    from jumar.dataset.dataset import Dataset


@dataclass
class CBRunParam:
    """Counts from one.   cur_step_num: over all epochs."""

    cur_epoch_num: int = 0
    cur_step_num_in_epoch: int = 0
    cur_step_num: int = 0


class DSCallback:
    """Override what you need: ds_begin, ds_epoch_begin, ds_epoch_end, ds_step_begin, ds_step_end."""

    def __init__(self, step_size: int = 1) -> None:
        self.step_size = check_int(type(self).__name__, "step_size", step_size, 1)

    def ds_begin(self, ds_run_context: CBRunParam) -> None:
        pass

    def ds_epoch_begin(self, ds_run_context: CBRunParam) -> None:
        pass

    def ds_epoch_end(self, ds_run_context: CBRunParam) -> None:
        pass

    def ds_step_begin(self, ds_run_context: CBRunParam) -> None:
        pass

    def ds_step_end(self, ds_run_context: CBRunParam) -> None:
        pass


class WaitedDSCallback(DSCallback):
    """A callback that shares the step's view: the train loop calls `epoch_end` and `step_end`, the pipeline waits for them.

    Override `sync_epoch_begin(train_run_context, ds_run_context)` and `sync_step_begin(train_run_context, ds_run_context)`.
    """

    def __init__(self, step_size: int = 1) -> None:
        super().__init__(step_size)
        self._condition = threading.Condition()
        self._trained_epochs = 0
        self._trained_steps = 0
        self._context: Any = None
        self._closed = False

    def sync_epoch_begin(self, train_run_context: Any, ds_run_context: CBRunParam) -> None:
        pass

    def sync_step_begin(self, train_run_context: Any, ds_run_context: CBRunParam) -> None:
        pass

    def epoch_end(self, run_context: Any) -> None:
        with self._condition:
            self._trained_epochs, self._context = self._trained_epochs + 1, run_context
            self._condition.notify_all()

    def step_end(self, run_context: Any) -> None:
        with self._condition:
            self._trained_steps, self._context = self._trained_steps + 1, run_context
            self._condition.notify_all()

    def end(self, run_context: Any) -> None:
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def _overrides(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(WaitedDSCallback, name)

    def ds_epoch_begin(self, ds_run_context: CBRunParam) -> None:
        if ds_run_context.cur_epoch_num > 1 and self._overrides("sync_epoch_begin"):
            with self._condition:
                self._wait(lambda: self._trained_epochs >= ds_run_context.cur_epoch_num - 1)
            self.sync_epoch_begin(self._context, ds_run_context)

    def ds_step_begin(self, ds_run_context: CBRunParam) -> None:
        if ds_run_context.cur_step_num > self.step_size and self._overrides("sync_step_begin"):
            with self._condition:
                self._wait(lambda: self._trained_steps >= ds_run_context.cur_step_num - self.step_size)
            self.sync_step_begin(self._context, ds_run_context)

    def _wait(self, ready: Any) -> None:
        limit = config.get_callback_timeout()
        if not self._condition.wait_for(lambda: self._closed or ready(), timeout=limit):
            raise DataFault(
                f"{type(self).__name__}: the train loop must call step_end or epoch_end within {limit} s, got no call",
                hint="pass the callback to Model.train too, and let the step be no larger than the pipeline's",
            )


class MapCallbacks:
    """The calls of one pass."""

    def __init__(self, callbacks: list[DSCallback], number: int, below: Dataset) -> None:
        self.callbacks = callbacks
        size = below.known_size() or 0
        self.param = CBRunParam(number + 1, 0, number * size)
        for one in callbacks:
            if number == 0:
                one.ds_begin(self.param)
            one.ds_epoch_begin(self.param)

    def before_row(self) -> None:
        self.param.cur_step_num_in_epoch += 1
        self.param.cur_step_num += 1
        for one in self.callbacks:
            if (self.param.cur_step_num_in_epoch - 1) % one.step_size == 0:
                one.ds_step_begin(self.param)

    def after_row(self) -> None:
        for one in self.callbacks:
            if (self.param.cur_step_num_in_epoch - 1) % one.step_size == 0:
                one.ds_step_end(self.param)

    def after_pass(self) -> None:
        for one in self.callbacks:
            one.ds_epoch_end(self.param)
