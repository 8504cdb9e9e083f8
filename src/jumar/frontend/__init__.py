"""Application enablement: the core of the front end that trains, and the importers that bring foreign models in.

The public rooms in MindSpore's layout (`jumar.nn`, `jumar.ops`, `jumar.mint` ...) stand beside this one and build on it.
"""

from jumar.frontend import dtype
from jumar.frontend.dtype import Type
from jumar.frontend.engine import apply, execute
from jumar.frontend.importers.onnx.port import Port
from jumar.frontend.model import Model, Piece, load
from jumar.frontend.parameter import Parameter, ParameterTuple
from jumar.frontend.promote import as_tensor, cast, floating, is_floating, numpy_dtype, operands
from jumar.frontend.recorder import is_capturing
from jumar.frontend.tensor import LOCAL, Scalar, Tensor, active, scalar, wrap

__all__ = [
    "LOCAL", "Model", "Parameter", "ParameterTuple", "Piece", "Port", "Scalar", "Tensor", "Type", "active", "apply", "as_tensor", "cast", "dtype",
    "execute", "floating", "is_capturing", "is_floating", "load", "numpy_dtype", "operands", "scalar", "wrap",
]  # fmt: skip
