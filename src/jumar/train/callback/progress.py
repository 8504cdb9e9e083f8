"""A bar for who watches: steps, loss, speed.  On a terminal only; into a file or a pipe nothing is written.

In: moments of the loop.  Out: one line at the bottom of the terminal; what callbacks print scrolls above it.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from jumar.base import config
from jumar.train.callback._callback import Callback, RunContext, loss_of

if TYPE_CHECKING:
    from rich.progress import Progress


class ProgressBar(Callback):
    """A bar on stderr, if that is a terminal; `Model.train` adds it.   JUMAR_PROGRESS=0 keeps it away."""

    def __init__(self) -> None:
        self.shown = sys.stderr.isatty() and config("progress")
        self._bar: Progress | None = None
        self._task: Any = None
        self._drawn = 0.0

    def __exit__(self, *error: Any) -> Any:
        self._stop()
        return None

    def on_train_begin(self, run_context: RunContext) -> None:
        if not self.shown:
            return
        from rich.console import Console  # noqa: PLC0415  (rich takes a tenth of a second, and only a terminal needs it)
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[facts]}"),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=sys.stdout.isatty())
        params = run_context.original_args()
        self._task = self._bar.add_task("training", total=params.batch_num * params.epoch_num, facts="")
        self._first, self._since = params.cur_step_num, time.perf_counter()
        self._bar.start()

    def on_train_step_end(self, run_context: RunContext) -> None:
        now = time.perf_counter()
        if self._bar is None or now - self._drawn < 0.1:
            return
        self._drawn = now
        params = run_context.original_args()
        done = params.cur_step_num - self._first
        loss = loss_of(params.net_outputs)
        facts = f"{'' if loss is None else f'loss {loss:.4g}  '}{done / (now - self._since):.1f} steps/s"
        self._bar.update(self._task, completed=done, description=f"epoch {params.cur_epoch_num}", facts=facts)

    def on_train_end(self, run_context: RunContext) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
