"""`mindspore.communication`: ranks, groups and collectives, for a job of one process.

In: scripts that may run on many devices.  Out: rank 0 of 1; a job of several processes is refused with a reason.
"""

from __future__ import annotations

from jumar.communication._comm_helper import (
    HCCL_WORLD_COMM_GROUP,
    MCCL_WORLD_COMM_GROUP,
    NCCL_WORLD_COMM_GROUP,
    DistributedError,
    GlobalComm,
)
from jumar.communication.management import (
    create_group,
    destroy_group,
    get_comm_name,
    get_group_rank_from_world_rank,
    get_group_size,
    get_local_rank,
    get_local_rank_size,
    get_process_group_ranks,
    get_rank,
    get_world_rank_from_group_rank,
    init,
    release,
)

__all__ = [
    "HCCL_WORLD_COMM_GROUP", "MCCL_WORLD_COMM_GROUP", "NCCL_WORLD_COMM_GROUP", "DistributedError", "GlobalComm", "create_group", "destroy_group",
    "get_comm_name", "get_group_rank_from_world_rank", "get_group_size", "get_local_rank", "get_local_rank_size", "get_process_group_ranks", "get_rank",
    "get_world_rank_from_group_rank", "init", "release",
]  # fmt: skip
