"""Data for the step: one iterator for all epochs of a run.

In: a dataset.  Out: tuples of Tensors, epoch by epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jumar.frontend import Tensor
from jumar.train.errors import UnsupportedError


class DatasetHelper:
    """Each `for` over it is one epoch.   dataset_sink_mode: accepted; there is no device to sink data to, so rows come one by one."""

    def __init__(self, dataset: Any, dataset_sink_mode: bool = True, sink_size: int = -1, epoch_num: int = 1) -> None:
        self.dataset = dataset
        self._sink_size = sink_size
        self.iter = dataset.create_tuple_iterator(num_epochs=epoch_num)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for row in self.iter:
            yield (row,) if isinstance(row, Tensor) else tuple(row)

    def types_shapes(self) -> tuple[Any, Any]:
        """Element types and shapes of the columns."""
        return self.dataset.output_types(), self.dataset.output_shapes()

    def sink_size(self) -> int:
        """Rows of a step: one."""
        return 1

    def stop_send(self) -> None:
        """Ends the threads of the pipeline."""
        self.release()

    def continue_send(self) -> None:
        """Nothing to do: rows come when they are asked for."""

    def release(self) -> None:
        """Ends the threads of the pipeline."""
        if hasattr(self.iter, "stop"):
            self.iter.stop()


def connect_network_with_dataset(network: Any, dataset_helper: DatasetHelper) -> Any:
    """The network itself: rows are handed to it."""
    return network


def data_sink(fn: Any, dataset: Any, sink_size: int = 1, jit_config: Any = None, input_signature: Any = None) -> Any:
    """Not on this device, as in MindSpore on CPU."""
    hint = "for row in dataset: fn(*row)"
    raise UnsupportedError("data_sink: supports Ascend and GPU, got a host that feeds steps itself", hint=hint, code="train-unsupported")
