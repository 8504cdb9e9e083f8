"""Parameters of MindSpore's search for ways to split operators: checked and kept; there is nothing to split in one process."""

from __future__ import annotations

from typing import Any

from jumar.base import nearest

_DEFAULTS: dict[str, Any] = {
    "fully_use_devices": False,
    "elementwise_op_strategy_follow": False,
    "enable_algo_approxi": False,
    "algo_approxi_epsilon": 0.1,
    "tensor_slice_align_enable": False,
    "tensor_slice_align_size": 16,
}
_VALUES = dict(_DEFAULTS)


def set_algo_parameters(**kwargs: Any) -> None:
    """Sets parameters."""
    for name, value in kwargs.items():
        if name not in _DEFAULTS:
            raise ValueError(f"Set context keyword {name} is not recognized! {nearest(name, list(_DEFAULTS))}".rstrip())
        if not isinstance(value, type(_DEFAULTS[name])):
            raise TypeError(f"The parameter '{name}' must be {type(_DEFAULTS[name])}, but got {type(value)}")
        _VALUES[name] = value


def get_algo_parameters(attr_key: str) -> Any:
    """The value of a parameter.

    >>> get_algo_parameters("fully_use_devices")
    False
    """
    if attr_key not in _VALUES:
        raise ValueError(f"Get context keyword {attr_key} is not recognized! {nearest(attr_key, list(_DEFAULTS))}".rstrip())
    return _VALUES[attr_key]


def reset_algo_parameters() -> None:
    """Every parameter as it was at the start."""
    _VALUES.update(_DEFAULTS)
