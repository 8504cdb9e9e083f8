"""Checkpoints of many devices: not here.   Each function raises and says what there is instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

NAMES = (
    "build_searched_strategy", "load_distributed_checkpoint", "load_segmented_checkpoints", "merge_pipeline_strategys", "merge_sliced_parameter",
    "rank_list_for_transform", "restore_group_info_list", "sync_pipeline_shared_parameters", "transform_checkpoint_by_rank", "transform_checkpoints",
    "unified_safetensors",
)  # fmt: skip


def _refusing(name: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        """Raises: checkpoints of many devices are not read or written here."""
        raise NotImplementedError(f"{name}: checkpoints of several devices are not supported; load_checkpoint reads those of one")

    refuse.__name__ = name
    return refuse


(
    build_searched_strategy, load_distributed_checkpoint, load_segmented_checkpoints, merge_pipeline_strategys, merge_sliced_parameter,
    rank_list_for_transform, restore_group_info_list, sync_pipeline_shared_parameters, transform_checkpoint_by_rank, transform_checkpoints,
    unified_safetensors,
) = map(_refusing, NAMES)  # fmt: skip
