"""`SummaryCollector`: loss, learning rate and metrics of a run, in files that TensorBoard shows.

In: moments of the loop.  Out: scalars in an event file (summary/record.py).
"""

from __future__ import annotations

import logging
from typing import Any

from jumar.frontend import Parameter
from jumar.train.callback._callback import Callback, RunContext, loss_of
from jumar.train.errors import check_count, check_kind
from jumar.train.summary import SummaryRecord

log = logging.getLogger("jumar.train")


class SummaryCollector(Callback):
    """Writes the loss and learning rate every `collect_freq` steps, and metrics after evaluations.

    Graphs, histograms, images and lineage, which only MindSpore's ended viewer showed, are not collected; the log says so once if they are asked for.
    """

    def __init__(
        self, summary_dir: str, collect_freq: int = 10, num_process: int = 32, collect_specified_data: dict[str, Any] | None = None,
        keep_default_action: bool = True, custom_lineage_data: dict[str, Any] | None = None, collect_tensor_freq: int | None = None,
        max_file_size: int | None = None, export_options: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        check_kind("SummaryCollector", "summary_dir", summary_dir, str)
        check_kind("SummaryCollector", "collect_specified_data", collect_specified_data, (dict, type(None)))
        self._freq = check_count("SummaryCollector", "collect_freq", collect_freq)
        wanted = {k for k, v in (collect_specified_data or {}).items() if v} - {"collect_metric"}
        self._metric = bool((collect_specified_data or {}).get("collect_metric", keep_default_action))
        if wanted or custom_lineage_data:
            log.warning(
                "SummaryCollector: %s are not collected; loss, learning rate and metrics are", ", ".join(sorted(wanted)) or "lineage data"
            )
        self._dir = summary_dir
        self._record: SummaryRecord | None = None

    def __enter__(self) -> SummaryCollector:
        self._record = SummaryRecord(self._dir)
        return self

    def __exit__(self, *error: Any) -> None:
        if self._record is not None:
            self._record.close()
            self._record = None

    def on_train_step_end(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        if self._record is None or not self._metric or (params.cur_step_num != 1 and params.cur_step_num % self._freq):
            return
        loss, rate = loss_of(params.net_outputs), getattr(params.optimizer, "learning_rate", None)
        if loss is not None:
            self._record.add_value("scalar", "loss", loss)
        if isinstance(rate, Parameter) and rate.size == 1:
            self._record.add_value("scalar", "learning_rate", rate)
        self._record.record(params.cur_step_num)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        if self._record is None:
            return
        for name, value in (params.get("eval_results") or {}).items():
            if isinstance(value, float) or getattr(value, "size", 0) == 1:
                self._record.add_value("scalar", f"eval/{name}", value)
        self._record.record(params.cur_step_num)
        self._record.flush()
