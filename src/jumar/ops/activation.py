"""Activation functions, softmax and dropout's kin without randomness.

In: tensors.  Out: tensors, mostly by one fused operator.
"""

from __future__ import annotations

from typing import Any

from jumar import operators as o
from jumar.ops import arithmetic as a
from jumar.ops import movement as s
from jumar.ops.operands import Tensor, apply, as_tensor, axis_of, float_unary, floating, numpy_dtype, scalar, unary

_relu = unary("relu", o.Relu())
_silu, mish, softsign = float_unary("silu", o.Silu()), float_unary("mish", o.Mish()), float_unary("softsign", o.Softsign())
selu, hardswish = float_unary("selu", o.Selu()), float_unary("hardswish", o.HardSwish())
_hard_sigmoid = o.HardSigmoid(1 / 6, 0.5)


def inplace_or(input: Any, result: Tensor, inplace: bool) -> Tensor:
    """The result, written into the input where that was asked for."""
    if inplace:
        input._write(result)
        return input  # type: ignore[no-any-return]
    return result


def relu(input: Any, inplace: bool = False) -> Tensor:
    """max(x, 0)."""
    return inplace_or(input, _relu(input), inplace)


def silu(input: Any, inplace: bool = False) -> Tensor:
    """x sigmoid(x)."""
    return inplace_or(input, _silu(input), inplace)


def relu6(x: Any, inplace: bool = False) -> Tensor:
    """x within 0 .. 6."""
    return inplace_or(x, a.clamp(x, 0, 6), inplace)


def gelu(input: Any, approximate: str = "none") -> Tensor:
    """x times the normal distribution function of x.   approximate: "none" or "tanh"."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}")
    return apply(o.Gelu(approximate), floating(input))  # type: ignore[no-any-return]


def leaky_relu(input: Any, alpha: float = 0.2) -> Tensor:
    """x above zero, alpha x below."""
    return apply(o.LeakyRelu(float(alpha)), floating(input))  # type: ignore[no-any-return]


def leaky_relu_torch(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x above zero, negative_slope x below."""
    return inplace_or(input, leaky_relu(input, negative_slope), inplace)


def elu(input_x: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above zero, alpha (exp(x) - 1) below."""
    return inplace_or(input_x, apply(o.Elu(float(alpha)), floating(input_x)), inplace)


def celu(x: Any, alpha: float = 1.0) -> Tensor:
    """x above zero, alpha (exp(x / alpha) - 1) below."""
    return apply(o.Celu(float(alpha)), floating(x))  # type: ignore[no-any-return]


def prelu(input: Any, weight: Any) -> Tensor:
    """x above zero, weight x below; one weight, or one for each channel."""
    x, w = floating(input), as_tensor(weight)
    if w.size > 1 and x.ndim > 1:
        w = s.reshape(w, (-1, *[1] * (x.ndim - 2)))
    elif w.ndim:
        w = s.reshape(w, (w.size,) if x.ndim else ())
    return apply(o.PRelu(), x, w)  # type: ignore[no-any-return]


def hardsigmoid(input: Any, inplace: bool = False) -> Tensor:
    """x / 6 + 1/2 within 0 .. 1."""
    return inplace_or(input, apply(_hard_sigmoid, floating(input)), inplace)


def hardtanh(input: Any, min_val: Any = -1.0, max_val: Any = 1.0, inplace: bool = False) -> Tensor:
    """x within min_val .. max_val."""
    return inplace_or(input, a.clamp(input, min_val, max_val), inplace)


def hardshrink(x: Any, lambd: float = 0.5) -> Tensor:
    """x, but 0 between -lambd and lambd."""
    tensor = floating(x)
    return a.where(a.less_equal(a.abs(tensor), lambd), 0.0, tensor)


def softshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """x moved by lambd towards 0, and 0 between -lambd and lambd."""
    x = floating(input)
    return a.sub(x, a.clamp(x, -lambd, lambd))


def tanhshrink(input: Any) -> Tensor:
    """x - tanh(x)."""
    x = floating(input)
    return a.sub(x, a.tanh(x))


def softplus(input: Any, beta: Any = 1, threshold: Any = 20) -> Tensor:
    """log(1 + exp(beta x)) / beta; x itself where beta x is above the threshold."""
    x = floating(input)
    at = x if beta == 1 else a.mul(x, beta)
    y: Tensor = apply(o.Softplus(), at)
    y = y if beta == 1 else a.div(y, beta)
    return a.where(a.greater(at, threshold), x, y)


def threshold(input: Any, thr: Any, value: Any, inplace: bool = False) -> Tensor:
    """x above the threshold, else the value."""
    x = as_tensor(input)
    y: Tensor = apply(o.Select(), a.greater(x, thr), x, scalar(value, numpy_dtype(x)))
    return inplace_or(input, y, inplace)


def logsigmoid(input: Any) -> Tensor:
    """log of sigmoid."""
    return a.neg(apply(o.Softplus(), a.neg(floating(input))))  # type: ignore[no-any-return]


def softmax(input: Any, dim: int | None = -1, *, dtype: Any = None) -> Tensor:
    """exp(x) over its sum along an axis."""
    x = a.softmax_type(input, dtype)
    if not x.ndim:
        return a.exp(a.sub(x, x))  # type: ignore[no-any-return]
    return apply(o.Softmax(axis_of(_default(dim, x.ndim), x.ndim, "softmax")), x)  # type: ignore[no-any-return]


def softmax_torch(input: Any, dim: int | None = None, dtype: Any = None) -> Tensor:
    """exp(x) over its sum along an axis."""
    return softmax(input, dim, dtype=dtype)


def log_softmax(input: Any, dim: int | None = -1, *, dtype: Any = None) -> Tensor:
    """log of softmax."""
    x = a.softmax_type(input, dtype)
    if not x.ndim:
        return a.sub(x, x)
    return apply(o.LogSoftmax(axis_of(_default(dim, x.ndim), x.ndim, "log_softmax")), x)  # type: ignore[no-any-return]


def log_softmax_torch(input: Any, dim: int | None = None, *, dtype: Any = None) -> Tensor:
    """log of softmax."""
    return log_softmax(input, dim, dtype=dtype)


def _default(dim: int | None, rank: int) -> int:
    """The axis that torch takes where none is given."""
    return dim if dim is not None else 0 if rank in (0, 1, 3) else 1


def softmin(x: Any, axis: int = -1, *, dtype: Any = None) -> Tensor:
    """softmax of -x."""
    return softmax(a.neg(as_tensor(x)), axis, dtype=dtype)


def glu(x: Any, axis: int = -1) -> Tensor:
    """The first half times the sigmoid of the second."""
    first, second = s.split_evenly(as_tensor(x), axis, 2)
    return a.mul(first, a.sigmoid(second))


def swiglu(input: Any, dim: int = -1) -> Tensor:
    """silu of the first half times the second."""
    first, second = s.split_evenly(as_tensor(input), dim, 2)
    return a.mul(silu(first), second)


def fast_gelu(x: Any) -> Tensor:
    """x sigmoid(1.702 |x|) exp(0.851 (x - |x|)): an approximation of gelu."""
    tensor = floating(x)
    return apply(o.Silu(1.702), tensor)  # type: ignore[no-any-return]


hswish, hsigmoid, soft_shrink, log_sigmoid = hardswish, hardsigmoid, softshrink, logsigmoid
hard_shrink = hardshrink

__all__ = [
    "celu", "elu", "fast_gelu", "gelu", "glu", "hard_shrink", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "log_softmax",
    "logsigmoid", "mish", "prelu", "relu", "relu6", "selu", "silu", "soft_shrink", "softmax", "softmin", "softplus", "softshrink", "softsign", "swiglu",
    "tanhshrink", "threshold",
]  # fmt: skip
