"""The parameter-server context: keys and values.   Jumar has no parameter servers: switching them on is an error."""

from __future__ import annotations

from typing import Any

from jumar.base import ImportFault

_DEFAULTS: dict[str, Any] = {"enable_ps": False, "config_file_path": "", "enable_ssl": False}
_VALUES = dict(_DEFAULTS)


def set_ps_context(**kwargs: Any) -> None:
    """Sets keys; `enable_ps=True` is refused."""
    for key, value in kwargs.items():
        if key not in _DEFAULTS and key not in ("client_password", "server_password", "scheduler_manage_port"):
            raise ValueError(f"Set PS context keyword {key} is not recognized!")
        if key in ("enable_ps", "enable_ssl") and not isinstance(value, bool):
            raise TypeError(f"The parameter '{key}' must be <class 'bool'>, but got {type(value)}")
        if key == "enable_ps" and value:
            raise ImportFault(
                "set_ps_context: enable_ps must be False, got True: parameter servers do not exist here", code="not-distributed"
            )
        if key in _DEFAULTS:
            _VALUES[key] = value


def get_ps_context(attr_key: str) -> Any:
    """The value of a key."""
    if attr_key not in _VALUES:
        raise ValueError(f"Get PS context keyword {attr_key} is not recognized!")
    return _VALUES[attr_key]


def reset_ps_context() -> None:
    """Every key as it was at the start."""
    _VALUES.update(_DEFAULTS)


def _is_role_sched() -> bool:
    """Whether this process only schedules others."""
    return False


def _is_role_pserver() -> bool:
    """Whether this process is a parameter server."""
    return False


def _is_role_worker() -> bool:
    """Whether this process is a worker of parameter servers."""
    return False


def _is_ps_mode() -> bool:
    """Whether parameter servers are in use."""
    return False
