"""`Callback`: what users hang into the training loop, and what it sees there.

In: the loop's moments (train and eval; begin, epoch, step, end).  Out: calls in the order of the list.  `begin`, `step_end` and the like, without `on_train_`,
serve both loops, as MindSpore has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

import numpy as np

from jumar.frontend import Tensor
from jumar.train.errors import KindFault, check_kind


class Callback:
    """Override what you want to see.   Each gets the RunContext; `with` is entered before training and left after it, whatever happens.

    resumable: names of attributes that `Resume` saves and puts back: numbers, texts, tensors.
    """

    resumable: tuple[str, ...] = ()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: Any) -> Any:
        return None

    def begin(self, run_context: RunContext) -> None:
        """Before the first epoch."""

    def epoch_begin(self, run_context: RunContext) -> None:
        """Before each epoch."""

    def epoch_end(self, run_context: RunContext) -> None:
        """After each epoch."""

    def step_begin(self, run_context: RunContext) -> None:
        """Before each step."""

    def step_end(self, run_context: RunContext) -> None:
        """After each step."""

    def end(self, run_context: RunContext) -> None:
        """After the last epoch."""

    def on_train_begin(self, run_context: RunContext) -> None:
        self.begin(run_context)

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        self.epoch_begin(run_context)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        self.epoch_end(run_context)

    def on_train_step_begin(self, run_context: RunContext) -> None:
        self.step_begin(run_context)

    def on_train_step_end(self, run_context: RunContext) -> None:
        self.step_end(run_context)

    def on_train_end(self, run_context: RunContext) -> None:
        self.end(run_context)

    def on_eval_begin(self, run_context: RunContext) -> None:
        self.begin(run_context)

    def on_eval_epoch_begin(self, run_context: RunContext) -> None:
        self.epoch_begin(run_context)

    def on_eval_epoch_end(self, run_context: RunContext) -> None:
        self.epoch_end(run_context)

    def on_eval_step_begin(self, run_context: RunContext) -> None:
        self.step_begin(run_context)

    def on_eval_step_end(self, run_context: RunContext) -> None:
        self.step_end(run_context)

    def on_eval_end(self, run_context: RunContext) -> None:
        self.end(run_context)


MOMENTS = tuple(
    f"on_{mode}_{when}" for mode in ("train", "eval") for when in ("begin", "epoch_begin", "epoch_end", "step_begin", "step_end", "end")
)


class CallbackManager:
    """Callbacks as one: each moment goes to all of them in order."""

    def __init__(self, callbacks: Any) -> None:
        self._callbacks = as_list(callbacks)
        self._stack = ExitStack()

    def __enter__(self) -> CallbackManager:
        self._callbacks = [entered if isinstance(entered := self._stack.enter_context(cb), Callback) else cb for cb in self._callbacks]
        return self

    def __exit__(self, *error: Any) -> bool | None:
        return self._stack.__exit__(*error)

    def call(self, moment: str, run_context: RunContext) -> None:
        """A moment of the loop: one of MOMENTS."""
        for callback in self._callbacks:
            getattr(callback, moment)(run_context)


def as_list(callbacks: Any) -> list[Callback]:
    """None, one callback or several, as a list."""
    if callbacks is None:
        return []
    found = [callbacks] if isinstance(callbacks, Callback) or not isinstance(callbacks, Iterable) else list(callbacks)
    for callback in found:
        if not isinstance(callback, Callback):
            raise KindFault(f"callbacks: all must be Callbacks, got {type(callback).__name__}", code="train-argument")
    return found


class InternalCallbackParam(dict[str, Any]):
    """What callbacks read, as attributes and as a dict."""

    def __getattr__(self, key: str) -> Any:
        try:
            return self[key]
        except KeyError:
            raise AttributeError(f"cb_params: {key} must be one of {', '.join(sorted(self))}") from None

    def __setattr__(self, key: str, value: Any) -> None:
        self[key] = value


class RunContext:
    """What a callback gets: the parameters of the run, and a way to stop it."""

    def __init__(self, original_args: dict[str, Any]) -> None:
        check_kind("RunContext", "original_args", original_args, dict)
        self._original_args = original_args
        self._stop_requested = False

    def original_args(self) -> Any:
        """The parameters of the run."""
        return self._original_args

    def request_stop(self) -> None:
        """Training ends after this step."""
        self._stop_requested = True

    def get_stop_requested(self) -> bool:
        """Whether someone asked to stop."""
        return self._stop_requested


def _handle_loss(loss: Any) -> Any:
    """The loss among the outputs of a step: a float of a tensor; of several outputs the first, as it is.  Client code knows it by this name."""
    if isinstance(loss, tuple | list):
        return loss[0] if isinstance(loss[0], Tensor) else loss
    return float(np.mean(loss.asnumpy())) if isinstance(loss, Tensor) else loss


def loss_of(outputs: Any) -> float | None:
    """The loss of a step as a float, if there is one."""
    first = _handle_loss(outputs)
    if isinstance(first, Tensor):
        return float(np.mean(first.asnumpy(), dtype=np.float64))
    return first if isinstance(first, float) else None
