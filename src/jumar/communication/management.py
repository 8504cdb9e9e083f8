"""`init`, `get_rank`, `get_group_size` and groups, with the meaning they have in a job of one process.

In: calls of scripts that may run on many devices.  Out: rank 0, size 1; MindSpore's errors where `init` has not been called.
"""

from __future__ import annotations

import os
from typing import Any

from jumar.communication._comm_helper import (
    _GROUPS,
    DEVICE_TO_BACKEND,
    HCCL_WORLD_COMM_GROUP,
    MCCL_WORLD_COMM_GROUP,
    NCCL_WORLD_COMM_GROUP,
    Backend,
    DistributedError,
    GlobalComm,
    _get_group,
    _is_initialized,
    _ready,
    _start,
    _stop,
)

DEFAULT_WORLD_COMM_GROUP = HCCL_WORLD_COMM_GROUP
is_initialized = _is_initialized


def init(backend_name: str | None = None) -> None:
    """Begins communication: with no other process.   A job that a launcher started with several is refused."""
    if backend_name is not None and not isinstance(backend_name, str):
        raise TypeError(f"For 'init', the argument 'backend_name' must be a string, but got the type : {type(backend_name)}")
    backend = backend_name or DEVICE_TO_BACKEND["CPU"]
    if backend not in ("hccl", "nccl", "mccl"):
        raise RuntimeError(
            f"For 'init', the argument 'backend_name' must be one of 'hccl', 'nccl' and 'mccl', but got 'backend_name' : {backend}"
        )
    if backend != "mccl":
        raise RuntimeError(f"For 'init', the argument 'backend_name' should be 'mccl' to init 'CPU', but got '{backend}'.")
    _start(backend)


def release() -> None:
    """Ends communication."""
    _stop()


def _number(function: str, group: Any, value: int) -> int:
    """A number that needs no `init` in one process, as in MindSpore without a launcher."""
    if not isinstance(group, str):
        raise TypeError(f"For '{function}', the argument 'group' must be type of string, but got 'group' type : {type(group)}.")
    return value


def get_rank(group: str = DEFAULT_WORLD_COMM_GROUP) -> int:
    """This process's number: 0.

    >>> get_rank()
    0
    """
    return _number("get_rank", group, 0)


def get_local_rank(group: str = DEFAULT_WORLD_COMM_GROUP) -> int:
    """This process's number on its machine: 0."""
    return _number("get_local_rank", group, 0)


def get_group_size(group: str = DEFAULT_WORLD_COMM_GROUP) -> int:
    """How many processes there are: 1."""
    return _number("get_group_size", group, 1)


def get_local_rank_size(group: str = DEFAULT_WORLD_COMM_GROUP) -> int:
    """How many processes there are on this machine: 1."""
    return _number("get_local_rank_size", group, 1)


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """The number in the world of a member of a group."""
    _ready("get_world_rank_from_group_rank", group)
    return _members(group)[group_rank_id]


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """The number in a group of a process."""
    _ready("get_group_rank_from_world_rank", group)
    return _members(group).index(world_rank_id)


def get_process_group_ranks(group: str = DEFAULT_WORLD_COMM_GROUP) -> list[int]:
    """The members of a group, by their numbers in the world."""
    _ready("get_process_group_ranks", group)
    return list(_members(group))


def get_comm_name(group: str = DEFAULT_WORLD_COMM_GROUP) -> str:
    """The name of a group in its library."""
    _ready("get_comm_name", group)
    return _get_group(group)


def _members(group: str) -> list[int]:
    return _GROUPS.get(group, [0])


def create_group(group: str, rank_ids: list[int], options: Any = None) -> None:
    """Makes a group: of process 0."""
    _ready("create_group")
    if not isinstance(group, str):
        raise TypeError(f"For 'create_group', the argument 'group' must be type of string, but got 'group' type : {type(group)}.")
    if not isinstance(rank_ids, list):
        raise TypeError(f"For 'create_group', the argument 'rank_ids' must be type of list, but got 'rank_ids' type : {type(rank_ids)}.")
    if rank_ids != [0]:
        raise DistributedError(f"create_group: rank_ids must be [0] in a job of one process, got {rank_ids}", code="not-distributed")
    _GROUPS[group] = rank_ids


def destroy_group(group: str) -> None:
    """Forgets a group."""
    _ready("destroy_group", group)
    if _get_group(group) == GlobalComm.WORLD_COMM_GROUP:
        raise ValueError(f"For 'destroy_group', the world group {group} cannot be destroyed.")
    _GROUPS.pop(group)


def _host_distribute() -> bool:
    """Whether a launcher for hosts started this process."""
    return os.environ.get("MS_ROLE") is not None


__all__ = [
    "HCCL_WORLD_COMM_GROUP", "MCCL_WORLD_COMM_GROUP", "NCCL_WORLD_COMM_GROUP", "Backend", "GlobalComm", "create_group", "destroy_group",
    "get_comm_name", "get_group_rank_from_world_rank", "get_group_size", "get_local_rank", "get_local_rank_size", "get_process_group_ranks", "get_rank",
    "get_world_rank_from_group_rank", "init", "is_initialized", "release",
]  # fmt: skip
