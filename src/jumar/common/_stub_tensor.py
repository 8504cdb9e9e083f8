"""Names from the time when MindSpore had tensors without a value yet.   Here every tensor is one class."""

from __future__ import annotations

from typing import Any

from jumar.frontend.tensor import Tensor

StubTensor = Tensor


def is_stub_tensor(tensor: Any) -> bool:
    """False: there are none."""
    return False


def _convert_stub(stub: Any) -> Any:
    """The tensor itself."""
    return stub


def _convert_python_data(data: Any) -> Any:
    """The value itself."""
    return data
