"""The world of processes: one.   State and names that `mindspore.communication` is made of.

In: `init`, and the variables with which launchers (mpirun, msrun) say how many processes there are.  Out: rank 0 of 1; a larger job is refused.
"""

from __future__ import annotations

import os
from typing import Any

from jumar.base import DeviceError

HCCL_WORLD_COMM_GROUP, NCCL_WORLD_COMM_GROUP, MCCL_WORLD_COMM_GROUP = "hccl_world_group", "nccl_world_group", "mccl_world_group"
DEVICE_TO_BACKEND = {"Ascend": "hccl", "GPU": "nccl", "CPU": "mccl"}
_SIZES = ("OMPI_COMM_WORLD_SIZE", "MS_WORKER_NUM", "RANK_SIZE", "PMI_SIZE")  # where launchers say how many processes there are


class DistributedError(DeviceError, RuntimeError):
    """What one process cannot do.   A RuntimeError, too, as MindSpore's is."""


class Backend(str):
    """A communication library's name."""

    UNDEFINED, HCCL, NCCL, MCCL = "undefined", "hccl", "nccl", "mccl"

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise TypeError(f"For 'Backend', the class variable 'name' must be a string, but got the type : {type(name)}")
        if name.lower() not in (cls.HCCL, cls.NCCL, cls.MCCL):
            raise ValueError(f"For 'Backend', the 'name' {name} is not supported, please use one of 'hccl', 'nccl', 'mccl'.")
        return str.__new__(cls, name.lower())


DEFAULT_BACKEND = "hccl"


class GlobalComm:
    """What all processes share."""

    BACKEND = DEFAULT_BACKEND
    WORLD_COMM_GROUP = HCCL_WORLD_COMM_GROUP
    INITED = False
    CHECK_ENVS = True


_GROUPS: dict[str, list[int]] = {}


def _world_size() -> int:
    """How many processes the launcher started."""
    return max([int(os.environ[name]) for name in _SIZES if os.environ.get(name, "").isdigit()], default=1)


def _start(backend: str) -> None:
    size = _world_size()
    if size > 1:
        raise DistributedError(
            f"communication.init: the job must have 1 process, got {size}: Jumar does not train on several devices yet",
            hint="start the script without a launcher (mpirun, msrun) and without RANK_SIZE",
            code="not-distributed",
        )
    GlobalComm.BACKEND, GlobalComm.INITED = backend, True
    GlobalComm.WORLD_COMM_GROUP = f"{backend}_world_group"


def _stop() -> None:
    GlobalComm.BACKEND, GlobalComm.WORLD_COMM_GROUP, GlobalComm.INITED = DEFAULT_BACKEND, HCCL_WORLD_COMM_GROUP, False
    _GROUPS.clear()


def _is_initialized() -> bool:
    """Whether `init` has been called."""
    return GlobalComm.INITED


def _is_available() -> bool:
    """Whether there is more than one process to talk to: no."""
    return False


_is_hccl_available = _is_nccl_available = _is_mpi_available = _is_available


def _get_group_map() -> dict[str, str]:
    """Groups by the names of their libraries: none."""
    return {}


def _remove_group_info(group_name: str) -> None:
    """Forgets a group."""
    _GROUPS.pop(group_name, None)


def _get_group(group: str) -> str:
    """The group that a name means: the world group of any library is the world."""
    return GlobalComm.WORLD_COMM_GROUP if group in (HCCL_WORLD_COMM_GROUP, NCCL_WORLD_COMM_GROUP, MCCL_WORLD_COMM_GROUP) else group


def _ready(function: str, group: Any = "") -> None:
    if not isinstance(group, str):
        raise TypeError(f"For '{function}', the argument 'group' must be type of string, but got 'group' type : {type(group)}.")
    if not GlobalComm.INITED:
        raise RuntimeError(
            "Distributed Communication has not been inited.You can't invoke this interface yet. Please call `init()` method first."
        )
    if group and _get_group(group) != GlobalComm.WORLD_COMM_GROUP and group not in _GROUPS:
        raise ValueError(f"For '{function}', the group {group!r} does not exist; create_group makes one")
