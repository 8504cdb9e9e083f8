"""Collective functions that write into tensors the caller gives, under the names of `mindspore.ops`.

In: tensors to fill and tensors to send.  Out: handles.  On one process the world is this process; what needs another one is an error.
"""

from __future__ import annotations

from typing import Any

from jumar.frontend.tensor import Tensor
from jumar.ops.methods import write


def _rooms() -> tuple[Any, Any]:
    from jumar.communication import comm_func, management  # noqa: PLC0415  (which are made of tensors, too)

    return comm_func, management


def _group(group: Any) -> Any:
    return "hccl_world_group" if group is None else group


def _into(output: Tensor, value: Tensor, async_op: bool) -> Any:
    if output is not value:
        write(output, value)
    return _rooms()[0].default_handle if async_op else None


def all_reduce(tensor: Tensor, op: str = "sum", group: Any = None, async_op: bool = False) -> Any:
    """The sum over all processes, into the tensor."""
    return _into(tensor, _rooms()[0].all_reduce(tensor, op, _group(group))[0], async_op)


def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False) -> Any:
    """The tensors of all processes one after another, into the output."""
    return _into(output_tensor, _rooms()[0].all_gather_into_tensor(input_tensor, _group(group))[0], async_op)


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Any:
    """The tensors of all processes, into the list's tensors."""
    _single(tensor_list, "all_gather")
    return _into(tensor_list[0], _rooms()[0].all_gather_into_tensor(tensor, _group(group))[0], async_op)


def reduce_scatter_tensor(output: Tensor, input: Tensor, op: str = "sum", group: Any = None, async_op: bool = False) -> Any:
    """This process's part of the sum, into the output."""
    return _into(output, _rooms()[0].reduce_scatter_tensor(input, op, _group(group))[0], async_op)


def reduce_scatter(output: Tensor, input_list: list[Tensor], op: str = "sum", group: Any = None, async_op: bool = False) -> Any:
    """This process's part of the sum, into the output."""
    _single(input_list, "reduce_scatter")
    return reduce_scatter_tensor(output, input_list[0], op, group, async_op)


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Any = None, input_split_sizes: Any = None, group: Any = None, async_op: bool = False
) -> Any:
    """Parts of the input to all processes and from all of them, into the output."""
    return _into(output, _rooms()[0].all_reduce(input, "sum", _group(group))[0], async_op)


def all_to_all(output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False) -> Any:
    """One tensor to each process and from each, into the list's tensors."""
    _single(output_tensor_list, "all_to_all")
    return all_to_all_single(output_tensor_list[0], input_tensor_list[0], group=group, async_op=async_op)


def broadcast(tensor: Tensor, src: int, group: Any = None, async_op: bool = False) -> Any:
    """One process's tensor, into that of all."""
    return _into(tensor, _rooms()[0].broadcast(tensor, src, _group(group)), async_op)


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Any:
    """Waits for all processes."""
    _rooms()[0].barrier(_group(group))
    return _rooms()[0].default_handle if async_op else None


def _single(tensors: list[Tensor], name: str) -> None:
    if len(tensors) != 1:
        raise ValueError(f"{name}: there must be one tensor for each process, of which there is one, got {len(tensors)}")


__all__ = [
    "all_gather", "all_gather_into_tensor", "all_reduce", "all_to_all", "all_to_all_single", "barrier", "broadcast", "reduce_scatter",
    "reduce_scatter_tensor",
]  # fmt: skip
