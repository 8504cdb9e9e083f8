"""`Parameter` and `ParameterTuple`, under the names of `mindspore.common.parameter`.

In: `jumar.frontend.parameter`.  Out: what scripts import.
"""

from __future__ import annotations

from typing import Any

from jumar.frontend.parameter import Parameter, ParameterTuple
from jumar.frontend.tensor import Tensor
from jumar.parallel._auto_parallel_context import auto_parallel_context

PARAMETER_NAME_DEFAULT = "Parameter"
PARAMETER_NAME_PREFIX_MAX_LEN = 1024


def init_to_value(init: Any) -> Any:
    """The number that an initialiser's name stands for: zeros 0.0, ones 1.0."""
    if isinstance(init, str):
        found = {"zeros": 0.0, "zero": 0.0, "ones": 1.0, "one": 1.0}.get(init.lower())
        if found is None:
            raise ValueError(f"init_to_value: init must be zeros or ones, got {init!r}")
        return found
    if isinstance(init, bool):
        return float(init)
    if isinstance(init, int | float):
        return init
    raise ValueError(f"init_to_value: init must be a name or a number, got {type(init).__name__}")


def _is_parameter_generated(param_name: str) -> bool:
    """Whether a name was made up because none was given."""
    return isinstance(param_name, str) and param_name.startswith(f"{PARAMETER_NAME_DEFAULT}$")


def _gen_offload_file_path(offload_dir: str) -> str:
    raise NotImplementedError("Parameter: offloading to files does not exist here; Jumar keeps parameters in memory")


__all__ = ["Parameter", "ParameterTuple", "Tensor", "auto_parallel_context"]
