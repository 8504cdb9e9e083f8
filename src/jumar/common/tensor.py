"""`Tensor` and `tensor`, under the names of `mindspore.common.tensor`.

In: `jumar.frontend.tensor`.  Out: what scripts import; importing it hangs the methods of `jumar.ops` on Tensor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jumar.common._register_for_tensor import tensor_operator_registry
from jumar.frontend.dtype import of_numpy
from jumar.frontend.tensor import Tensor, wrap

np_types = (
    np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.float16, np.float32, np.float64, np.bool_, np.str_,
    np.complex64, np.complex128,
)  # fmt: skip


def tensor(
    input_data: Any = None, dtype: Any = None, shape: Any = None, init: Any = None, const_arg: bool = False, device: Any = None
) -> Tensor:
    """A new Tensor; the arguments are those of `Tensor`.

    >>> tensor([1.0, 2.0]).shape
    (2,)
    """
    return Tensor(input_data, dtype, shape, init, const_arg, device)


def from_numpy(array: Any) -> Tensor:
    """A tensor that shares the array's memory.

    >>> from_numpy(np.zeros((2, 3), np.float32)).shape
    (2, 3)
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"from_numpy: input must be a NumPy array, got {type(array).__name__}")
    of_numpy(array.dtype)
    return wrap(array)


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Each tensor becomes what the other was: value, name and attributes."""
    for t in (t1, t2):
        if not isinstance(t, Tensor):
            raise TypeError(f"swap_tensors: arguments must be Tensors, got {type(t).__name__}")
    if type(t1) is not type(t2):
        raise RuntimeError(f"swap_tensors: tensors must be of one class, got {type(t1).__name__} and {type(t2).__name__}")
    t1._value, t2._value = t2._value, t1._value
    t1._node, t2._node = t2._node, t1._node
    t1._recorder, t2._recorder = t2._recorder, t1._recorder
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__


__all__ = ["Tensor", "from_numpy", "swap_tensors", "tensor", "tensor_operator_registry"]
