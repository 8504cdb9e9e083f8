"""`mint.distributed`: process groups and collectives in PyTorch's manner, for a job of one process.

In: tensors and lists that results are written into.  Out: what the collective gives where the world is this process; talking to another one is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from jumar.communication import management
from jumar.communication._comm_helper import DistributedError, GlobalComm, _ready
from jumar.communication.comm_func import _OPS, CommHandle, default_handle
from jumar.frontend.tensor import Tensor


def is_available() -> bool:
    """True: collectives can be called."""
    return True


def is_initialized() -> bool:
    """Whether `init_process_group` has been called."""
    return GlobalComm.INITED


def init_process_group(
    backend: str | None = None, init_method: Any = None, timeout: Any = None, world_size: int = -1, rank: int = -1, store: Any = None,
    group_name: str = "", pg_options: Any = None, device_id: Any = None,
) -> None:  # fmt: skip
    """Begins communication: with no other process.   A larger world is refused."""
    if world_size > 1 or rank > 0:
        raise DistributedError(
            f"init_process_group: world_size must be 1 and rank 0, got {world_size} and {rank}: Jumar does not train on several devices yet",
            code="not-distributed",
        )
    management.init(None if backend in (None, "hccl") else backend)


def destroy_process_group(group: str | None = None) -> None:
    """Ends communication, or forgets a group."""
    if group is None or group == GlobalComm.WORLD_COMM_GROUP:
        management.release()
    else:
        management.destroy_group(group)


def get_rank(group: str | None = None) -> int:
    """This process's number: 0.

    >>> get_rank(), get_world_size()
    (0, 1)
    """
    return management.get_rank() if group is None else management.get_rank(group)


def get_world_size(group: str | None = None) -> int:
    """How many processes there are: 1."""
    return management.get_group_size() if group is None else management.get_group_size(group)


def new_group(
    ranks: list[int] | None = None, timeout: Any = None, backend: Any = None, pg_options: Any = None, use_local_synchronization: bool = False,
    group_desc: str | None = None,
) -> str:  # fmt: skip
    """Makes a group, of process 0, and says its name."""
    name = group_desc or f"group_{id(ranks)}"
    management.create_group(name, [0] if ranks is None else list(ranks))
    return name


def get_backend(group: str | None = None) -> str:
    """The library's name."""
    return GlobalComm.BACKEND


def get_global_rank(group: str, group_rank: int) -> int:
    """The number in the world of a member of a group."""
    return management.get_world_rank_from_group_rank(_named(group), group_rank)


def get_group_rank(group: str, global_rank: int) -> int:
    """The number in a group of a process."""
    return management.get_group_rank_from_world_rank(global_rank, _named(group))


def get_process_group_ranks(group: str | None = None) -> list[int]:
    """The members of a group."""
    return management.get_process_group_ranks(_named(group))


def _named(group: str | None) -> str:
    return GlobalComm.WORLD_COMM_GROUP if group is None else group


# ---------------------------------------------------------------------- collectives of one
def _begin(function: str, group: str | None, rank: int = 0, op: str = "sum") -> None:
    _ready(function, _named(group))
    if rank != 0:
        raise DistributedError(f"{function}: the other process must be 0 in a job of one, got {rank}", code="not-distributed")
    if op not in _OPS:
        raise ValueError(f"For '{function}', the argument 'op' must be one of {list(_OPS)}, but got {op!r}.")


def _handle(async_op: bool) -> CommHandle | None:
    return default_handle if async_op else None


def _only(function: str, given: Sequence[Any]) -> Any:
    if len(given) != 1:
        raise ValueError(f"{function}: the list must have one entry for each of 1 processes, got {len(given)}")
    return given[0]


def all_reduce(tensor: Tensor, op: str = "sum", group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """The tensor becomes the sum (prod, min, max) over all processes: itself."""
    _begin("all_reduce", group, op=op)
    return _handle(async_op)


def reduce(tensor: Tensor, dst: int, op: str = "sum", group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """The tensor of process `dst` becomes the sum: itself."""
    _begin("reduce", group, dst, op)
    return _handle(async_op)


def broadcast(tensor: Tensor, src: int, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """The tensor becomes that of process `src`: itself."""
    _begin("broadcast", group, src)
    return _handle(async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """`output_tensor` becomes the tensors of all processes, joined: the one."""
    _begin("all_gather_into_tensor", group)
    output_tensor._write(input_tensor)
    return _handle(async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: str = "sum", group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """`output` becomes this process's part of the sum: the whole."""
    _begin("reduce_scatter_tensor", group, op=op)
    output._write(input)
    return _handle(async_op)


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Any = None, input_split_sizes: Any = None, group: str | None = None, async_op: bool = False
) -> CommHandle | None:  # fmt: skip
    """`output` becomes the parts that all processes have for this one: all of them."""
    _begin("all_to_all_single", group)
    output._write(input)
    return _handle(async_op)


def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Each process's part for this one."""
    _begin("all_to_all", group)
    _only("all_to_all", output_tensor_list)._write(_only("all_to_all", input_tensor_list))
    return _handle(async_op)


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """The tensors of the list become those of all processes."""
    _begin("all_gather", group)
    _only("all_gather", tensor_list)._write(tensor)
    return _handle(async_op)


def gather(tensor: Tensor, gather_list: list[Tensor], dst: int = 0, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """On process `dst` the tensors of the list become those of all processes."""
    _begin("gather", group, dst)
    _only("gather", gather_list)._write(tensor)
    return _handle(async_op)


def scatter(
    tensor: Tensor, scatter_list: list[Tensor], src: int = 0, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """The tensor becomes this process's of the list of process `src`."""
    _begin("scatter", group, src)
    tensor._write(_only("scatter", scatter_list))
    return _handle(async_op)


def reduce_scatter(
    output: Tensor, input_list: list[Tensor], op: str = "sum", group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """`output` becomes the sum of this process's entries."""
    _begin("reduce_scatter", group, op=op)
    output._write(_only("reduce_scatter", input_list))
    return _handle(async_op)


def barrier(group: str | None = None, async_op: bool = False, device_ids: Any = None) -> CommHandle | None:
    """Waits for all processes: returns at once."""
    return _handle(async_op)


def all_gather_object(object_list: list[Any], obj: Any, group: str | None = None) -> None:
    """The list becomes the objects of all processes."""
    _begin("all_gather_object", group)
    _only("all_gather_object", object_list)
    object_list[0] = obj


def broadcast_object_list(object_list: list[Any], src: int = 0, group: str | None = None, device: Any = None) -> None:
    """The list becomes that of process `src`: itself."""
    _begin("broadcast_object_list", group, src)


def gather_object(obj: Any, object_gather_list: list[Any] | None = None, dst: int = 0, group: str | None = None) -> None:
    """On process `dst` the list becomes the objects of all processes."""
    _begin("gather_object", group, dst)
    if object_gather_list is None:
        raise TypeError("gather_object: object_gather_list must be a list on the process that gathers, got None")
    _only("gather_object", object_gather_list)
    object_gather_list[0] = obj


def scatter_object_list(output: list[Any], given: list[Any], src: int = 0, group: str | None = None) -> None:
    """The first entry of `output` becomes this process's of the list of process `src`."""
    _begin("scatter_object_list", group, src)
    output[0] = _only("scatter_object_list", given)


def _nobody(function: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        """Raises: there is no other process."""
        raise DistributedError(f"{function}: there must be another process to talk to, got a job of one", code="not-distributed")

    refuse.__name__ = function
    return refuse


send, recv, isend, irecv = _nobody("send"), _nobody("recv"), _nobody("isend"), _nobody("irecv")
send_object_list, recv_object_list = _nobody("send_object_list"), _nobody("recv_object_list")
P2POp, batch_isend_irecv = _nobody("P2POp"), _nobody("batch_isend_irecv")
all_gather_into_tensor_uneven, reduce_scatter_tensor_uneven = (
    _nobody("all_gather_into_tensor_uneven"),
    _nobody("reduce_scatter_tensor_uneven"),
)
