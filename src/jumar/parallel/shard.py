"""`Layout` and `shard`: how tensors would lie on many devices.

In: a matrix of devices with names.  Out: a description; on one device `shard` gives the function back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jumar.parallel._utils import _get_device_num


class Layout:
    """Devices in a matrix, each axis with a name; called with names it says how a tensor's axes lie on them.

    >>> Layout((2, 2), ("dp", "mp"))("dp", "mp").to_dict()["tensor_map"]
    (1, 0)
    """

    def __init__(self, device_matrix: Any, alias_name: Any, rank_list: list[int] | None = None) -> None:
        for name, value in (("device_matrix", device_matrix), ("alias_name", alias_name)):
            if not isinstance(value, tuple):
                raise TypeError(f"{name} must be tuple type, but got:{type(value)}")
        if len(device_matrix) != len(alias_name):
            raise ValueError("device_matrix length should be equal to alias_name length")
        if len(set(alias_name)) != len(alias_name):
            raise ValueError(f"Each element of alias_name must be different, but got alias_name:{alias_name}")
        size = 1
        for d in device_matrix:
            size *= d
        if rank_list is not None and len(rank_list) != size:
            raise ValueError(f"The number of ranks must be {size} for device_matrix {device_matrix}, but got {len(rank_list)}")
        self._device_matrix, self._alias_name = device_matrix, alias_name
        self._rank_list = list(range(size)) if rank_list is None else rank_list
        self._tensor_map: tuple[Any, ...] | None = None

    def __call__(self, *tensor_map: Any) -> Layout:
        made = Layout(self._device_matrix, self._alias_name, self._rank_list)
        made._tensor_map = tuple(tuple(map(self._axis, a)) if isinstance(a, tuple) else self._axis(a) for a in tensor_map)
        return made

    def _axis(self, name: str) -> int:
        if name == "None":
            return -1
        if name not in self._alias_name:
            raise ValueError(f"The axis {name} is not found in {self._alias_name}")
        at: int = self._alias_name.index(name)
        return len(self._alias_name) - 1 - at

    def to_dict(self) -> dict[str, Any]:
        """What it says, by name."""
        if self._tensor_map is None:
            raise ValueError("The tensor_map of layout is None")
        return {
            "device_matrix": self._device_matrix,
            "tensor_map": self._tensor_map,
            "interleaved_parallel": "interleaved_parallel" in self._alias_name,
            "alias_name": self._alias_name,
            "rank_list": self._rank_list,
        }


def shard(fn: Callable[..., Any], in_strategy: Any, out_strategy: Any = None, parameter_plan: Any = None) -> Callable[..., Any]:
    """The function: on one device nothing is split."""
    if not callable(fn):
        raise TypeError(f"shard: fn must be a function or a cell, got {type(fn).__name__}")
    if _get_device_num() != 1:
        raise NotImplementedError(
            f"shard: there must be 1 device, got {_get_device_num()}: Jumar does not split operators over devices yet"
        )
    return fn


def reshard(tensor: Any, layout: Layout) -> Any:
    """The tensor: on one device it lies as it lies."""
    if not isinstance(layout, Layout):
        raise TypeError(f"Reshard only support type mindspore.Layout, but got:{type(layout)}")
    if _get_device_num() != 1:
        raise NotImplementedError(f"reshard: there must be 1 device, got {_get_device_num()}")
    return tensor
