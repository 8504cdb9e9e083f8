"""Activations with PyTorch's defaults.

In: a Tensor.  Out: a Tensor.  inplace: the result is written into the input, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jumar import ops
from jumar.frontend.tensor import Tensor
from jumar.nn.cell import Cell
from jumar.nn.layer.activation import GLU as _GLU
from jumar.nn.layer.activation import HShrink, HSigmoid, HSwish, LogSoftmaxExt, PReLUExt, SoftmaxExt, SoftShrink
from jumar.nn.layer.activation import ReLU as _ReLU

Hardshrink, Hardsigmoid, Hardswish, LogSoftmax, PReLU, Softmax, Softshrink = (
    HShrink, HSigmoid, HSwish, LogSoftmaxExt, PReLUExt, SoftmaxExt, SoftShrink
)  # fmt: skip
ReLU = _ReLU


class GLU(_GLU):
    """One half times the sigmoid of the other."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim)
        self.dim = dim

    def construct(self, input: Tensor) -> Tensor:
        return super().construct(input)


class _Activation(Cell):
    """An activation that can write into its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def _put(self, input: Tensor, function: Callable[..., Any], *options: Any) -> Tensor:
        result: Tensor = function(input, *options)
        if not self.inplace:
            return result
        input._write(result)
        return input


class LogSigmoid(Cell):
    """log(sigmoid(x))."""

    def construct(self, input: Tensor) -> Tensor:
        return ops.logsigmoid(input)  # type: ignore[no-any-return]


class Mish(Cell):
    """x tanh(softplus(x))."""

    def construct(self, input: Tensor) -> Tensor:
        return ops.mish(input)  # type: ignore[no-any-return]


class SELU(Cell):
    """The self-normalising exponential unit."""

    def construct(self, input: Tensor) -> Tensor:
        return ops.selu(input)  # type: ignore[no-any-return]


class Sigmoid(Cell):
    """1 / (1 + exp(-x))."""

    def construct(self, input: Tensor) -> Tensor:
        return ops.sigmoid(input)  # type: ignore[no-any-return]


class Tanh(Cell):
    """tanh(x)."""

    def construct(self, input: Tensor) -> Tensor:
        return ops.tanh(input)  # type: ignore[no-any-return]


class GELU(Cell):
    """x Phi(x).   approximate: none or tanh."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        if approximate not in ("none", "tanh"):
            raise ValueError(f"For 'GELU', the 'approximate' must be 'none' or 'tanh', but got {approximate!r}.")
        self.approximate = approximate

    def construct(self, input: Tensor) -> Tensor:
        return ops.gelu(input, approximate=self.approximate)  # type: ignore[no-any-return]


class SiLU(_Activation):
    """x sigmoid(x)."""

    def construct(self, x: Tensor) -> Tensor:
        return self._put(x, ops.silu)


class ReLU6(_Activation):
    """min(max(x, 0), 6)."""

    def construct(self, input: Tensor) -> Tensor:
        return self._put(input, ops.relu6)


class ELU(_Activation):
    """x, or alpha (exp(x) - 1) below zero."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def construct(self, input: Tensor) -> Tensor:
        return self._put(input, ops.elu, self.alpha)


class Hardtanh(_Activation):
    """x kept within min_val..max_val."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.min_val, self.max_val = min_val, max_val

    def construct(self, input: Tensor) -> Tensor:
        return self._put(input, ops.hardtanh, self.min_val, self.max_val)


class Threshold(_Activation):
    """x where it is greater than the threshold, else value."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold, self.value = threshold, value

    def construct(self, input: Tensor) -> Tensor:
        return self._put(input, ops.threshold, self.threshold, self.value)
