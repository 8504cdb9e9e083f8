"""Training: checkpoints, the training loop, callbacks, metrics.  MindSpore's `mindspore.train`."""

from jumar.train import metrics
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

__all__ = [
    "async_ckpt_thread_status", "ckpt_to_safetensors", "load_checkpoint", "load_checkpoint_async", "load_param_into_net", "safetensors_to_ckpt",
    "save_checkpoint",
]  # fmt: skip
__all__ += metrics.__all__
