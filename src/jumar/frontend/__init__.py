"""Application enablement: the core of the front end that trains, and the importers that bring foreign models in.

The public rooms in MindSpore's layout (`jumar.nn`, `jumar.ops`, `jumar.mint` ...) stand beside this one and build on it.
Names are imported when they are first asked for: `load` needs neither Tensors nor operators where a model comes from the cache.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jumar.frontend import dtype
    from jumar.frontend.dtype import Type
    from jumar.frontend.engine import apply, execute
    from jumar.frontend.importers.onnx.port import Port
    from jumar.frontend.model import Model, Piece, load
    from jumar.frontend.parameter import Parameter, ParameterTuple
    from jumar.frontend.promote import as_tensor, cast, floating, is_floating, numpy_dtype, operands
    from jumar.frontend.recorder import is_capturing
    from jumar.frontend.tensor import LOCAL, Scalar, Tensor, active, scalar, wrap

_FACES = {  # where each name lives: file -> its names
    "dtype": "Type",
    "engine": "apply execute",
    "importers.onnx.port": "Port",
    "model": "Model Piece load",
    "parameter": "Parameter ParameterTuple",
    "promote": "as_tensor cast floating is_floating numpy_dtype operands",
    "recorder": "is_capturing",
    "tensor": "LOCAL Scalar Tensor active scalar wrap",
}
_PLACES = {name: file for file, names in _FACES.items() for name in names.split()}
__all__ = [
    "LOCAL", "Model", "Parameter", "ParameterTuple", "Piece", "Port", "Scalar", "Tensor", "Type", "active", "apply", "as_tensor", "cast", "dtype",
    "execute", "floating", "is_capturing", "is_floating", "load", "numpy_dtype", "operands", "scalar", "wrap",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Finds a name of the room's face and keeps it."""
    file = _PLACES.get(name)
    if file is None and name != "dtype":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{file or name}")
    found = module if file is None else getattr(module, name)
    globals()[name] = found
    return found
