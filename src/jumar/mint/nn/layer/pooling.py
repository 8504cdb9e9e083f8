"""Pools with PyTorch's defaults: the stride is the window's size.

In: [n, c, *spatial], or [c, *spatial].  Out: the same with fewer cells.
"""

from __future__ import annotations

from typing import Any

from jumar import ops
from jumar.frontend.tensor import Tensor
from jumar.nn.layer.pooling import AdaptiveAvgPool1d as _Avg1
from jumar.nn.layer.pooling import AdaptiveAvgPool2d as _Avg2
from jumar.nn.layer.pooling import AdaptiveAvgPool3d as _Avg3
from jumar.nn.layer.pooling import AdaptiveMaxPool2d as _Max2
from jumar.nn.layer.pooling import AvgPool1dExt, AvgPool2dExt, AvgPool3dExt, MaxPool2dExt, _Adaptive
from jumar.nn.layer.pooling import MaxUnpool2d as _Unpool2

AvgPool1d, AvgPool2d, AvgPool3d, MaxPool2d = AvgPool1dExt, AvgPool2dExt, AvgPool3dExt, MaxPool2dExt
AdaptiveMaxPool2d = _Max2


class AdaptiveAvgPool1d(_Avg1):
    """Means, as many as output_size says."""

    def extend_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool2d(_Avg2):
    """Means, as many as output_size says."""

    def extend_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool3d(_Avg3):
    """Means, as many as output_size says."""


class AdaptiveMaxPool1d(_Adaptive):
    """Largest elements, as many as output_size says.   return_indices: with their places."""

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def construct(self, input: Tensor) -> Any:
        size = self.output_size[0] if isinstance(self.output_size, tuple | list) else self.output_size
        found = ops.adaptive_max_pool2d(ops.expand_dims(input, -2), (1, size), self.return_indices)
        if self.return_indices:
            return ops.squeeze(found[0], -2), ops.squeeze(found[1], -2)
        return ops.squeeze(found, -2)

    def extend_repr(self) -> str:
        return f"output_size={self.output_size}, return_indices={self.return_indices}"


class MaxUnpool2d(_Unpool2):
    """Puts the results of MaxPool2d back."""

    def construct(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return super().construct(input, indices, output_size)
