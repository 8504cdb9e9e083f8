"""Activations as cells.

In: a Tensor.  Out: a Tensor of the same shape (GLU: half of it).  Their meaning is that of the functions of `jumar.ops`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jumar import ops
from jumar.frontend import dtype as types
from jumar.frontend.parameter import Parameter
from jumar.frontend.tensor import Tensor
from jumar.nn.cell import Cell
from jumar.nn.layer.sizes import is_int


class Softmin(Cell):
    """Softmax of -x."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Tensor) -> Tensor:
        return ops.softmax(-x, self.axis)  # type: ignore[no-any-return]


class Softmax(Cell):
    """exp(x) over its sum along an axis."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, input: Tensor) -> Tensor:
        return ops.softmax(input, self.axis)  # type: ignore[no-any-return]


class SoftmaxExt(Cell):
    """exp(x) over its sum along a dimension.   dim: default the channels' of an image or matrix."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def construct(self, input: Tensor) -> Tensor:
        return ops.softmax(input, _default_dim(self.dim, input.ndim))  # type: ignore[no-any-return]


def _default_dim(dim: int | None, rank: int) -> int:
    return dim if dim is not None else (0 if rank in (0, 1, 3) else 1)


class Softmax2d(Cell):
    """Softmax over the channels of [n, c, h, w] or [c, h, w]."""

    def construct(self, x: Tensor) -> Tensor:
        if x.ndim not in (3, 4):
            raise ValueError(f"For 'Softmax2d', the rank of x must be 3 or 4, but got {x.ndim}.")
        return ops.softmax(x, -3)  # type: ignore[no-any-return]


class LogSoftmax(Cell):
    """The logarithm of softmax."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Tensor) -> Tensor:
        return ops.log_softmax(x, self.axis)  # type: ignore[no-any-return]


class LogSoftmaxExt(Cell):
    """The logarithm of softmax.   dim: default the channels' of an image or matrix."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def construct(self, x: Tensor) -> Tensor:
        return ops.log_softmax(x, _default_dim(self.dim, x.ndim))  # type: ignore[no-any-return]


class ReLU(Cell):
    """max(x, 0)."""

    def construct(self, input: Tensor) -> Tensor:
        return ops.relu(input)  # type: ignore[no-any-return]


class ReLU6(Cell):
    """min(max(x, 0), 6)."""

    def construct(self, x: Tensor) -> Tensor:
        return ops.relu6(x)  # type: ignore[no-any-return]


class ELU(Cell):
    """x, or alpha (exp(x) - 1) below zero."""

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = alpha

    def construct(self, x: Tensor) -> Tensor:
        return ops.elu(x, self.alpha)  # type: ignore[no-any-return]


class CELU(Cell):
    """max(x, 0) + min(alpha (exp(x / alpha) - 1), 0)."""

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = alpha

    def construct(self, x: Tensor) -> Tensor:
        return ops.celu(x, self.alpha)  # type: ignore[no-any-return]


class SeLU(Cell):
    """The self-normalising exponential unit."""

    def construct(self, input_x: Tensor) -> Tensor:
        return ops.selu(input_x)  # type: ignore[no-any-return]


class SiLU(Cell):
    """x sigmoid(x)."""

    def construct(self, x: Tensor) -> Tensor:
        return ops.silu(x)  # type: ignore[no-any-return]


class Mish(Cell):
    """x tanh(softplus(x))."""

    def construct(self, input_x: Tensor) -> Tensor:
        return ops.mish(input_x)  # type: ignore[no-any-return]


class LeakyReLU(Cell):
    """x, or alpha x below zero."""

    def __init__(self, alpha: float = 0.2) -> None:
        super().__init__()
        self.alpha = alpha

    def construct(self, x: Tensor) -> Tensor:
        return ops.leaky_relu(x, self.alpha)  # type: ignore[no-any-return]


class Tanh(Cell):
    """tanh(x)."""

    def construct(self, x: Tensor) -> Tensor:
        return ops.tanh(x)  # type: ignore[no-any-return]


class Tanhshrink(Cell):
    """x - tanh(x)."""

    def construct(self, x: Tensor) -> Tensor:
        return x - ops.tanh(x)  # type: ignore[no-any-return]


class Hardtanh(Cell):
    """x kept within min_val..max_val."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0) -> None:
        super().__init__()
        self.min_val, self.max_val = min_val, max_val

    def construct(self, x: Tensor) -> Tensor:
        return ops.hardtanh(x, self.min_val, self.max_val)  # type: ignore[no-any-return]


class GELU(Cell):
    """x Phi(x).   approximate: by tanh."""

    def __init__(self, approximate: bool = True) -> None:
        super().__init__()
        if not isinstance(approximate, bool):
            raise TypeError(f"For 'GELU', the 'approximate' must be bool, but got {type(approximate).__name__}.")
        self.approximate = approximate

    def construct(self, x: Tensor) -> Tensor:
        return ops.gelu(x, approximate="tanh" if self.approximate else "none")  # type: ignore[no-any-return]


class FastGelu(Cell):
    """x sigmoid(1.702 x), nearly."""

    def construct(self, x: Tensor) -> Tensor:
        return ops.fast_gelu(x)  # type: ignore[no-any-return]


class Sigmoid(Cell):
    """1 / (1 + exp(-x))."""

    def construct(self, x: Tensor) -> Tensor:
        return ops.sigmoid(x)  # type: ignore[no-any-return]


class Softsign(Cell):
    """x / (1 + |x|)."""

    def construct(self, x: Tensor) -> Tensor:
        return ops.softsign(x)  # type: ignore[no-any-return]


class PReLU(Cell):
    """x, or w x below zero, w being learned: one number, or one for each channel."""

    def __init__(self, channel: int = 1, w: Any = 0.25) -> None:
        super().__init__()
        if not is_int(channel) or channel < 1:
            raise ValueError(f"For 'PReLU', the 'channel' must be int and must be > 0, but got {channel!r}.")
        start = w.asnumpy() if isinstance(w, Tensor) else np.asarray(w, np.float32)
        if start.size not in (1, channel):
            raise ValueError(f"For 'PReLU', the 'w' must have one element or one for each of {channel} channels, but got {start.shape}.")
        self.w = Parameter(Tensor(np.broadcast_to(start.ravel(), (channel,)).astype(start.dtype)), name="a")

    def construct(self, x: Tensor) -> Tensor:
        return ops.prelu(x, ops.cast(self.w, x.dtype))  # type: ignore[no-any-return]


class PReLUExt(Cell):
    """x, or weight x below zero, weight being learned."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, dtype: Any = None) -> None:
        super().__init__()
        kind = types.float32 if dtype is None else types.as_type(dtype)
        self.weight = Parameter(Tensor(np.full((num_parameters,), init, np.float32), kind), name="weight")

    def construct(self, input: Tensor) -> Tensor:
        return ops.prelu(input, ops.cast(self.weight, input.dtype))  # type: ignore[no-any-return]


class RReLU(Cell):
    """x, or x times a random number of lower..upper below zero."""

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3) -> None:
        super().__init__()
        if lower > upper:
            raise ValueError(f"For 'RReLU', the 'lower' must be at most 'upper', but got {lower} and {upper}.")
        self.lower, self.upper = lower, upper

    def construct(self, x: Tensor) -> Tensor:
        alpha = ops.rand_like(x) * (self.upper - self.lower) + self.lower
        return ops.where(x >= 0, x, ops.cast(alpha, x.dtype) * x)  # type: ignore[no-any-return]


class HSwish(Cell):
    """x relu6(x + 3) / 6."""

    def construct(self, input: Tensor) -> Tensor:
        return ops.hardswish(input)  # type: ignore[no-any-return]


class HSigmoid(Cell):
    """relu6(x + 3) / 6."""

    def construct(self, input: Tensor) -> Tensor:
        return ops.hardsigmoid(input)  # type: ignore[no-any-return]


class LogSigmoid(Cell):
    """log(sigmoid(x))."""

    def construct(self, input_x: Tensor) -> Tensor:
        return ops.logsigmoid(input_x)  # type: ignore[no-any-return]


class SoftShrink(Cell):
    """x moved towards zero by lambd."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def construct(self, input: Tensor) -> Tensor:
        return ops.softshrink(input, self.lambd)  # type: ignore[no-any-return]


class HShrink(Cell):
    """x, or zero within -lambd..lambd."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def construct(self, input: Tensor) -> Tensor:
        return ops.hardshrink(input, self.lambd)  # type: ignore[no-any-return]


class Threshold(Cell):
    """x where it is greater than the threshold, else value."""

    def __init__(self, threshold: float, value: float) -> None:
        super().__init__()
        self.threshold, self.value = threshold, value

    def construct(self, input_x: Tensor) -> Tensor:
        return ops.threshold(input_x, self.threshold, self.value)  # type: ignore[no-any-return]


class GLU(Cell):
    """One half times the sigmoid of the other."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Tensor) -> Tensor:
        return ops.glu(x, self.axis)  # type: ignore[no-any-return]


ACTIVATIONS: dict[str, Callable[..., Cell]] = {
    "softmin": Softmin, "softmax": Softmax, "softmax2d": Softmax2d, "logsoftmax": LogSoftmax, "logsoftmaxExt": LogSoftmaxExt, "relu": ReLU,
    "relu6": ReLU6, "rrelu": RReLU, "silu": SiLU, "tanh": Tanh, "tanhshrink": Tanhshrink, "hardtanh": Hardtanh, "gelu": GELU,
    "fast_gelu": FastGelu, "elu": ELU, "sigmoid": Sigmoid, "softsign": Softsign, "prelu": PReLU, "preluExt": PReLUExt, "leakyrelu": LeakyReLU,
    "hswish": HSwish, "hsigmoid": HSigmoid, "logsigmoid": LogSigmoid, "softshrink": SoftShrink, "hshrink": HShrink, "threshold": Threshold,
    "mish": Mish,
}  # fmt: skip


def get_activation(name: str | None, prim_name: str | None = None) -> Cell | None:
    """The activation of a name, with its defaults; None for None."""
    if name is None:
        return None
    owner = f"For '{prim_name}', the" if prim_name else "The"
    if name not in ACTIVATIONS:
        raise KeyError(f"{owner} 'name' must be in {list(ACTIVATIONS)}, but got {name}.")
    return ACTIVATIONS[name]()
