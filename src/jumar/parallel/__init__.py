"""`mindspore.parallel`: layouts, strategies and contexts of training on many devices, for a job of one process.

In: scripts that may run on many devices.  Out: descriptions and answers for one; what needs several raises and says so.
"""

from __future__ import annotations

import jumar.parallel.parameter_broadcast
from jumar.parallel import _auto_parallel_context, _cost_model_context, _ps_context, _utils
from jumar.parallel.algo_parameter_config import get_algo_parameters, reset_algo_parameters, set_algo_parameters
from jumar.parallel.checkpoint_transform import (
    build_searched_strategy,
    load_distributed_checkpoint,
    load_segmented_checkpoints,
    merge_pipeline_strategys,
    merge_sliced_parameter,
    rank_list_for_transform,
    restore_group_info_list,
    sync_pipeline_shared_parameters,
    transform_checkpoint_by_rank,
    transform_checkpoints,
    unified_safetensors,
)
from jumar.parallel.parameter_broadcast import parameter_broadcast
from jumar.parallel.shard import Layout, reshard, shard

__all__ = [
    "Layout", "build_searched_strategy", "get_algo_parameters", "load_distributed_checkpoint", "load_segmented_checkpoints", "merge_pipeline_strategys",
    "merge_sliced_parameter", "parameter_broadcast", "rank_list_for_transform", "reset_algo_parameters", "reshard", "restore_group_info_list",
    "set_algo_parameters", "shard", "sync_pipeline_shared_parameters", "transform_checkpoint_by_rank", "transform_checkpoints", "unified_safetensors",
]  # fmt: skip
