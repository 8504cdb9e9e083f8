"""Callbacks of the training loop.  MindSpore's `mindspore.train.callback`."""

from jumar.train.callback._callback import Callback, RunContext
from jumar.train.callback._callback import CallbackManager as _CallbackManager
from jumar.train.callback._callback import InternalCallbackParam as _InternalCallbackParam
from jumar.train.callback.checkpoint import CheckpointConfig, ModelCheckpoint
from jumar.train.callback.checkpoint import CheckpointManager as _CheckpointManager
from jumar.train.callback.leave import BackupAndRestore, OnRequestExit
from jumar.train.callback.monitors import History, LambdaCallback, LossMonitor, TimeMonitor
from jumar.train.callback.progress import ProgressBar
from jumar.train.callback.summary import SummaryCollector
from jumar.train.callback.watch import EarlyStopping, LearningRateScheduler, ReduceLROnPlateau
from jumar.train.unsupported import refuser

FlopsUtilizationCollector = refuser("FlopsUtilizationCollector")
SummaryLandscape = refuser("SummaryLandscape")
TrainFaultTolerance = refuser("TrainFaultTolerance")

__all__ = [
    "BackupAndRestore", "Callback", "CheckpointConfig", "EarlyStopping", "FlopsUtilizationCollector", "History", "LambdaCallback",
    "LearningRateScheduler", "LossMonitor", "ModelCheckpoint", "OnRequestExit", "ProgressBar", "ReduceLROnPlateau", "RunContext", "SummaryCollector",
    "SummaryLandscape", "TimeMonitor", "TrainFaultTolerance",
]  # fmt: skip
