"""Training: checkpoints, the training loop, callbacks, metrics.  MindSpore's `mindspore.train`.

In: networks, datasets, files.  Out: trained networks, files.  What stands on `jumar.nn` and `jumar.amp` is imported when it is first asked for, since those
two need checkpoints and loss scales themselves.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from jumar.train import callback, metrics, summary
from jumar.train.callback import *  # noqa: F403
from jumar.train.dataset_helper import DatasetHelper, connect_network_with_dataset, data_sink
from jumar.train.metrics import *  # noqa: F403
from jumar.train.serialization import (
    async_ckpt_thread_status,
    ckpt_to_safetensors,
    load_checkpoint,
    load_checkpoint_async,
    load_param_into_net,
    safetensors_to_ckpt,
    save_checkpoint,
)
from jumar.train.state import Resume, TrainState
from jumar.train.summary import SummaryRecord
from jumar.train.unsupported import refuser

if TYPE_CHECKING:
    from jumar.amp import build_train_network
    from jumar.train.loss_scale_manager import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager
    from jumar.train.model import Model

ConvertModelUtils, ConvertNetUtils = refuser("ConvertModelUtils"), refuser("ConvertNetUtils")
build_searched_strategy, export, export_split_mindir = refuser("build_searched_strategy"), refuser("export"), refuser("export_split_mindir")
get_ckpt_path_with_strategy, load, load_distributed_checkpoint = (
    refuser("get_ckpt_path_with_strategy"), refuser("load"), refuser("load_distributed_checkpoint")
)  # fmt: skip
load_mindir, merge_sliced_parameter, restore_group_info_list = (
    refuser("load_mindir"),
    refuser("merge_sliced_parameter"),
    refuser("restore_group_info_list"),
)
save_mindir = refuser("save_mindir")

_LATE = {
    "Model": "jumar.train.model", "DynamicLossScaleManager": "jumar.train.loss_scale_manager", "FixedLossScaleManager": "jumar.train.loss_scale_manager",
    "LossScaleManager": "jumar.train.loss_scale_manager", "build_train_network": "jumar.amp",
}  # fmt: skip
__all__ = [
    "ConvertModelUtils", "ConvertNetUtils", "DatasetHelper", "DynamicLossScaleManager", "FixedLossScaleManager", "LossScaleManager", "Model", "Resume",
    "SummaryRecord", "TrainState", "async_ckpt_thread_status", "build_searched_strategy", "build_train_network", "ckpt_to_safetensors",
    "connect_network_with_dataset", "data_sink", "export", "export_split_mindir", "get_ckpt_path_with_strategy", "load", "load_checkpoint",
    "load_checkpoint_async", "load_distributed_checkpoint", "load_mindir", "load_param_into_net", "merge_sliced_parameter", "restore_group_info_list",
    "safetensors_to_ckpt", "save_checkpoint", "save_mindir",
]  # fmt: skip
__all__ += callback.__all__ + metrics.__all__


def __getattr__(name: str) -> Any:
    if name in _LATE:
        found = getattr(importlib.import_module(_LATE[name]), name)
    elif name in ("amp", "loss_scale_manager", "model"):
        found = importlib.import_module(f"jumar.train.{name}")
    else:
        raise AttributeError(f"module 'jumar.train' has no attribute {name!r}")
    globals()[name] = found
    return found
