"""Collective functions in a job of one process: `all_reduce` of one is the tensor itself.

In: tensors.  Out: what the collective gives where the world is this process; sending to another process is an error.
"""

from __future__ import annotations

from typing import Any, NoReturn

from jumar.communication._comm_helper import HCCL_WORLD_COMM_GROUP, DistributedError, _ready
from jumar.frontend.tensor import Tensor

_OPS = ("sum", "prod", "min", "max")


class CommHandle:
    """Waits for an asynchronous call, which here has ended."""

    def wait(self) -> None:
        """Returns at once."""

    def is_completed(self) -> bool:
        """True."""
        return True


default_handle = CommHandle()


def _checked(function: str, tensor: Any, group: str, op: str = "sum") -> Tensor:
    _ready(function, group)
    if not isinstance(tensor, Tensor):
        raise TypeError(f"For '{function}', the argument 'tensor' must be Tensor, but got {type(tensor)}.")
    if op not in _OPS:
        raise ValueError(f"For '{function}', the argument 'op' must be one of {list(_OPS)}, but got {op!r}.")
    return tensor


def all_reduce(
    tensor: Tensor, op: str = "sum", group: str = HCCL_WORLD_COMM_GROUP, async_op: bool = False
) -> tuple[Tensor, CommHandle | None]:
    """The sum (prod, min, max) over all processes: the tensor.   With a handle where async_op."""
    return _checked("all_reduce", tensor, group, op), default_handle if async_op else None


def all_gather_into_tensor(tensor: Tensor, group: str = HCCL_WORLD_COMM_GROUP, async_op: bool = False) -> tuple[Tensor, CommHandle | None]:
    """The tensors of all processes, joined along the first axis: the tensor."""
    return _checked("all_gather_into_tensor", tensor, group), default_handle if async_op else None


def reduce_scatter_tensor(
    tensor: Tensor, op: str = "sum", group: str = HCCL_WORLD_COMM_GROUP, async_op: bool = False
) -> tuple[Tensor, CommHandle | None]:
    """This process's part of the sum: the tensor."""
    return _checked("reduce_scatter_tensor", tensor, group, op), default_handle if async_op else None


def reduce(tensor: Tensor, dst: int, op: str = "sum", group: str = HCCL_WORLD_COMM_GROUP) -> Tensor:
    """The sum, on process `dst`: the tensor."""
    _only_here("reduce", "dst", dst)
    return _checked("reduce", tensor, group, op)


def broadcast(tensor: Tensor, src: int = 0, group: str = HCCL_WORLD_COMM_GROUP) -> Tensor:
    """The tensor of process `src`: the tensor."""
    _only_here("broadcast", "src", src)
    return _checked("broadcast", tensor, group)


def scatter_tensor(tensor: Tensor, src: int = 0, group: str = HCCL_WORLD_COMM_GROUP) -> Tensor:
    """This process's part: the tensor."""
    _only_here("scatter_tensor", "src", src)
    return _checked("scatter_tensor", tensor, group)


def gather_into_tensor(tensor: Tensor, dst: int = 0, group: str = HCCL_WORLD_COMM_GROUP) -> Tensor:
    """The tensors of all processes on process `dst`: the tensor."""
    _only_here("gather_into_tensor", "dst", dst)
    return _checked("gather_into_tensor", tensor, group)


def barrier(group: str = HCCL_WORLD_COMM_GROUP) -> None:
    """Waits for all processes: returns at once."""
    _ready("barrier", group)


def _only_here(function: str, name: str, rank: int) -> None:
    if rank != 0:
        raise DistributedError(f"{function}: {name} must be 0 in a job of one process, got {rank}", code="not-distributed")


def _nobody(function: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        """Raises: there is no other process."""
        raise DistributedError(f"{function}: there must be another process to talk to, got a job of one", code="not-distributed")

    refuse.__name__ = function
    return refuse


send, recv, isend, irecv = _nobody("send"), _nobody("recv"), _nobody("isend"), _nobody("irecv")
batch_isend_irecv, P2POp = _nobody("batch_isend_irecv"), _nobody("P2POp")
all_to_all_with_output_shape, all_to_all_single_with_output_shape = _nobody("all_to_all_with_output_shape"), _nobody("all_to_all_single")
