"""Batch normalization in training: by the mean and variance of the batch itself, and what comes back through it.

In: [n, c, ...] with a scale and a bias for each channel.  Out: the normalised tensor with the statistics it used; its gradient.
Statistics have the element type of the scale (f32 beside an f16 input).
"""

from __future__ import annotations

import numpy as np

from jumar.base import Array, OpError, TensorType, f16
from jumar.ir import Node, Result, f32t, sample, tensor
from jumar.operators.elementwise import Rsqrt, add, cast, mul, square, sub
from jumar.operators.families import Composite, wide
from jumar.operators.normalization import by_channel, widened
from jumar.operators.reduction import ReduceMean, ReduceSum


class BatchNormTrain(Composite):
    """(x - mean) / sqrt(var + epsilon) * scale + bias, with mean and (biased) variance of each channel (dimension 1) over all the rest."""

    epsilon: float = 1e-5
    signature = "x[n, c, ...], scale[c], bias[c] -> y[n, c, ...], mean[c], var[c]"
    samples = (
        sample(f32t(2, 3, 2, 3), f32t(3), f32t(3)),
        sample(f32t(5, 3), f32t(3), f32t(3), epsilon=1e-3),
        sample(tensor(f16, 4, 2, 3), f32t(2), f32t(2)),
    )
    cann = "aclnnBatchNorm"

    def infer(self, *types: TensorType) -> Result:
        x, scale, bias = types
        check_floats(self.name, x, scale, bias)
        return x, scale, scale

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, (scale, bias) = wide(arrays[0]), arrays[1:]
        axes, shape = _rest(x.ndim), _row(x.ndim)
        mean = _mean(x, axes)
        centered = x - mean.reshape(shape)
        var = _mean(np.square(centered), axes)
        y = centered / np.sqrt(var.reshape(shape) + self.epsilon) * wide(scale).reshape(shape) + wide(bias).reshape(shape)
        return y.astype(arrays[0].dtype), mean.astype(scale.dtype), var.astype(scale.dtype)

    def decompose(self, *inputs: Node) -> tuple[Node, ...]:
        x, scale, bias = (widened(n) for n in inputs)
        axes = _rest(x.rank)
        mean = ReduceMean(axes)(x)
        centered = sub(x, by_channel(mean, x))
        var = ReduceMean(axes)(square(centered))
        factor = mul(cast(scale, x.dtype), Rsqrt()(add(var, self.epsilon)))
        y = add(mul(centered, by_channel(factor, x)), by_channel(cast(bias, x.dtype), x))
        return cast(y, inputs[0].dtype), cast(mean, inputs[1].dtype), cast(var, inputs[1].dtype)

    def grad(self, x: Node, scale: Node, bias: Node, y: tuple[Node, ...], dy: tuple[Node | None, ...]) -> tuple[Node | None, ...]:
        _, mean, var = y
        main, dmean, dvar = dy
        dx, dscale, dbias = BatchNormGrad(self.epsilon)(x, scale, mean, var, main).results if main is not None else (None,) * 3
        share = scale.type.size / max(x.type.size, 1)
        if dmean is not None:
            part = mul(by_channel(cast(dmean, x.dtype), x), share)
            dx = add(dx, part) if dx is not None else add(mul(x, 0), part)
        if dvar is not None:
            centered = sub(x, by_channel(cast(mean, x.dtype), x))
            part = mul(centered, by_channel(mul(cast(dvar, x.dtype), 2 * share), x))
            dx = add(dx, part) if dx is not None else part
        return dx, dscale, dbias


class BatchNormGrad(Composite):
    """What x, scale and bias of a `BatchNormTrain` receive from dy, given the statistics that it gave."""

    epsilon: float = 1e-5
    signature = "x[n, c, ...], scale[c], mean[c], var[c], dy[n, c, ...] -> dx[n, c, ...], dscale[c], dbias[c]"
    samples = (
        sample(f32t(2, 3, 2, 3), f32t(3), f32t(3), f32t(3), f32t(2, 3, 2, 3), low=0.5),
        sample(f32t(5, 3), f32t(3), f32t(3), f32t(3), f32t(5, 3), low=0.5, epsilon=1e-3),
        sample(tensor(f16, 4, 2, 3), f32t(2), f32t(2), f32t(2), tensor(f16, 4, 2, 3), low=0.5),
    )
    cann = "aclnnBatchNormBackward"

    def infer(self, *types: TensorType) -> Result:
        x, scale, mean, var, dy = types
        check_floats(self.name, x, scale, mean, var)
        if dy != x:
            raise OpError(f"batch_norm_grad: dy must be {x} as x is, got {dy}", code="dimension-mismatch")
        return x, scale, scale

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, scale, mean, var, dy = (wide(a) for a in arrays)
        axes, shape = _rest(x.ndim), _row(x.ndim)
        count = x.size / max(scale.size, 1)
        rate = 1 / np.sqrt(var + self.epsilon)
        normal = (x - mean.reshape(shape)) * rate.reshape(shape)
        dbias, dscale = dy.sum(axis=axes), (dy * normal).sum(axis=axes)
        dx = (scale * rate).reshape(shape) * (dy - (dbias.reshape(shape) + normal * dscale.reshape(shape)) / max(count, 1))
        return dx.astype(arrays[0].dtype), dscale.astype(arrays[1].dtype), dbias.astype(arrays[1].dtype)

    def decompose(self, *inputs: Node) -> tuple[Node, ...]:
        """Two sums, then dx = a dy + b (x - mean) + c with a, b, c for each channel."""
        x, dy = widened(inputs[0]), widened(inputs[4])
        scale, mean, var = (cast(n, x.dtype) for n in inputs[1:4])
        axes, share = _rest(x.rank), scale.type.size / max(x.type.size, 1)
        rate = Rsqrt()(add(var, self.epsilon))
        centered = sub(x, by_channel(mean, x))
        dbias = ReduceSum(axes)(dy)
        dscale = mul(ReduceSum(axes)(mul(dy, centered)), rate)
        a = mul(scale, rate)
        b, c = mul(mul(mul(a, rate), dscale), -share), mul(mul(a, dbias), -share)
        dx = add(add(mul(dy, by_channel(a, x)), mul(centered, by_channel(b, x))), by_channel(c, x))
        return cast(dx, inputs[0].dtype), cast(dscale, inputs[1].dtype), cast(dbias, inputs[1].dtype)


def check_floats(name: str, x: TensorType, *rest: TensorType) -> None:
    """All of floats, what is given for each channel of one type."""
    if not x.dtype.is_float or not rest[0].dtype.is_float or any(r.dtype != rest[0].dtype for r in rest):
        raise OpError(f"{name}: inputs must be of floats, those for each channel of one type, got {x} and {rest[0]}", code="dtype")


def _rest(rank: int) -> tuple[int, ...]:
    """All dimensions but the channels'."""
    return tuple(i for i in range(rank) if i != 1)


def _row(rank: int) -> tuple[int, ...]:
    return tuple(-1 if i == 1 else 1 for i in range(rank))


def _mean(x: Array, axes: tuple[int, ...]) -> Array:
    """The mean; of nothing NaN, without NumPy's warning."""
    with np.errstate(all="ignore"):
        return np.asarray(x.sum(axis=axes) / np.asarray(np.prod([x.shape[a] for a in axes]), x.dtype))
