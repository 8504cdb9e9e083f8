"""Mathematical functions as cells.

In: Tensors.  Out: what the functions of `jumar.ops` of that meaning give.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jumar import ops
from jumar.frontend import dtype as types
from jumar.frontend.tensor import Tensor
from jumar.nn.cell import Cell
from jumar.ops.arithmetic import stop_gradient


class ReduceLogSumExp(Cell):
    """log of the sum of exp over some axes."""

    def __init__(self, axis: Any, keep_dims: bool = False) -> None:
        super().__init__()
        self.axis, self.keep_dims = axis, keep_dims

    def construct(self, x: Tensor) -> Tensor:
        return ops.logsumexp(x, None if self.axis == () else self.axis, self.keep_dims)  # type: ignore[no-any-return]


class Range(Cell):
    """Numbers from start to limit."""

    def __init__(self, start: float, limit: float | None = None, delta: float = 1) -> None:
        super().__init__()
        if delta == 0:
            raise ValueError(f"For 'Range', the 'delta' must not be zero, but got {delta}.")
        numbers = np.arange(start, limit, delta) if limit is not None else np.arange(0, start, delta)
        self.result_tensor = Tensor(numbers.astype(np.int32 if numbers.dtype.kind == "i" else np.float32))

    def construct(self) -> Tensor:
        return self.result_tensor


class Moments(Cell):
    """Mean and variance over some axes."""

    def __init__(self, axis: Any = None, keep_dims: bool | None = None) -> None:
        super().__init__()
        self.axis, self.keep_dims = () if axis is None else axis, bool(keep_dims)

    def construct(self, x: Tensor) -> tuple[Tensor, Tensor]:
        axes = None if self.axis == () else self.axis
        wide = ops.cast(x, types.float32)
        mean = ops.mean(wide, axes, True)
        variance = ops.mean(ops.square(wide - stop_gradient(mean)), axes, True)
        if not self.keep_dims:
            mean, variance = ops.squeeze(mean, axes), ops.squeeze(variance, axes)
        return ops.cast(mean, x.dtype), ops.cast(variance, x.dtype)


class LGamma(Cell):
    """The logarithm of the gamma function."""

    def construct(self, x: Tensor) -> Tensor:
        return ops.lgamma(x)  # type: ignore[no-any-return]


class DiGamma(Cell):
    """The derivative of lgamma."""

    def construct(self, x: Tensor) -> Tensor:
        return ops.digamma(x)  # type: ignore[no-any-return]


class IGamma(Cell):
    """The lower regularised incomplete gamma function."""

    def construct(self, a: Tensor, x: Tensor) -> Tensor:
        return ops.igamma(a, x)  # type: ignore[no-any-return]


class LBeta(Cell):
    """The logarithm of the beta function."""

    def construct(self, x: Tensor, y: Tensor) -> Tensor:
        return ops.lgamma(x) + ops.lgamma(y) - ops.lgamma(x + y)  # type: ignore[no-any-return]


class MatInverse(Cell):
    """The inverse of a matrix."""

    def construct(self, a: Tensor) -> Tensor:
        return ops.inverse(a)  # type: ignore[no-any-return]


class MatDet(Cell):
    """The determinant of a matrix."""

    def construct(self, a: Tensor) -> Tensor:
        return ops.det(a)  # type: ignore[no-any-return]


class LRN(Cell):
    """Each value divided by a power of the squares of its neighbours among the channels."""

    def __init__(
        self, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5, norm_region: str = "ACROSS_CHANNELS"
    ) -> None:
        super().__init__()
        if norm_region != "ACROSS_CHANNELS":
            raise ValueError(f"For 'LRN', the 'norm_region' must be 'ACROSS_CHANNELS', but got {norm_region!r}.")
        self.depth_radius, self.bias, self.alpha, self.beta = depth_radius, bias, alpha, beta

    def construct(self, input_x: Tensor) -> Tensor:
        reach, channels = self.depth_radius, input_x.shape[1]
        squares = ops.pad(ops.square(input_x), [0, 0, 0, 0, reach, reach])
        total = squares[:, :channels]
        for i in range(1, 2 * reach + 1):
            total = total + squares[:, i : i + channels]
        return input_x / ops.pow(total * self.alpha + self.bias, self.beta)  # type: ignore[no-any-return]
