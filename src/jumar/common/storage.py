"""`UntypedStorage`: the bytes under a tensor, as `Tensor.untyped_storage()` gives them."""

from __future__ import annotations

from jumar.frontend.tensor import Tensor


class UntypedStorage:
    """The memory of a tensor."""

    def __init__(self, tensor: Tensor) -> None:
        self._array = tensor.asnumpy()

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return int(self._array.ctypes.data)

    def size(self) -> int:
        """How many bytes there are."""
        return int(self._array.nbytes)

    nbytes = size
