"""Curves of a run in files that TensorBoard shows.  MindSpore's `mindspore.train.summary`."""

from jumar.train.summary.record import SummaryRecord

__all__ = ["SummaryRecord"]
