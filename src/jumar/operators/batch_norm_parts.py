"""Batch normalization in training in two kernels each way, as Ascend's graphs before 910B compute it: sums over the batch, then every element.

In: what `BatchNormTrain` and `BatchNormGrad` read.  Out: together the same.  Made by `passes/expand.py` for chips without a kernel for the whole.
"""

from __future__ import annotations

import numpy as np

from jumar.base import Array, OpError, TensorType, f16
from jumar.ir import Node, Result, f32t, sample, tensor
from jumar.operators.batch_norm import check_floats
from jumar.operators.elementwise import Rsqrt, add, cast, maximum, mul, square, sub
from jumar.operators.families import Composite, wide
from jumar.operators.normalization import by_channel, widened
from jumar.operators.reduction import ReduceSum


class BatchNormReduce(Composite):
    """The sums of x and of its squares over all but the channels."""

    signature = "x[n, c, ...] -> sum[c], squares[c]"
    samples = (sample(f32t(2, 3, 2, 3)), sample(tensor(f16, 4, 2, 3)))

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        found = TensorType(x.shape[1:2], x.dtype if x.dtype.bits > 32 else f32t().dtype)
        return found, found

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, axes = wide(arrays[0]), _rest(arrays[0].ndim)
        return np.asarray(x.sum(axis=axes)), np.asarray(np.square(x).sum(axis=axes))

    def decompose(self, *inputs: Node) -> tuple[Node, ...]:
        x = widened(inputs[0])
        add_up = ReduceSum(_rest(x.rank))
        return add_up(x), add_up(square(x))


class BatchNormUpdate(Composite):
    """(x - mean) / sqrt(var + epsilon) * scale + bias, with mean and variance of the sums that `BatchNormReduce` gives; and those two."""

    epsilon: float = 1e-5
    signature = "x[n, c, ...], sum[c], squares[c], scale[c], bias[c] -> y[n, c, ...], mean[c], var[c]"
    samples = (
        sample(f32t(2, 3, 2, 3), f32t(3), np.array([30, 40, 50], np.float32), f32t(3), f32t(3)),
        sample(tensor(f16, 4, 2, 3), f32t(2), np.array([30, 40], np.float32), f32t(2), f32t(2), epsilon=1e-3),
    )

    def infer(self, *types: TensorType) -> Result:
        x, *rest = types
        check_floats(self.name, x, *rest)
        return x, rest[2], rest[2]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, total, squares, scale, bias = map(wide, arrays)
        count, shape = x.size / max(total.size, 1), (1, -1, *(1,) * (x.ndim - 2))
        mean = total / count
        var = np.maximum(squares / count - np.square(mean), 0)
        factor = scale / np.sqrt(var + self.epsilon)
        y = (x - mean.reshape(shape)) * factor.reshape(shape) + bias.reshape(shape)
        return y.astype(arrays[0].dtype), mean.astype(arrays[3].dtype), var.astype(arrays[3].dtype)

    def decompose(self, *inputs: Node) -> tuple[Node, ...]:
        x, total, squares, scale, bias = (widened(i) for i in inputs)
        share = total.type.size / max(x.type.size, 1)
        mean = mul(total, share)
        var = maximum(sub(mul(squares, share), square(mean)), 0)
        factor = mul(scale, Rsqrt()(add(var, self.epsilon)))
        y = add(mul(sub(x, by_channel(mean, x)), by_channel(factor, x)), by_channel(bias, x))
        return cast(y, inputs[0].dtype), cast(mean, inputs[3].dtype), cast(var, inputs[3].dtype)


class BatchNormGradReduce(Composite):
    """What scale and bias of a batch normalization receive: sums over all but the channels."""

    epsilon: float = 1e-5
    signature = "dy[n, c, ...], x[n, c, ...], mean[c], var[c] -> dscale[c], dbias[c]"
    samples = (
        sample(f32t(2, 3, 2, 3), f32t(2, 3, 2, 3), f32t(3), f32t(3), low=0.5),
        sample(tensor(f16, 4, 2, 3), tensor(f16, 4, 2, 3), f32t(2), f32t(2), low=0.5),
    )

    def infer(self, *types: TensorType) -> Result:
        _check_gradient(self.name, *types)
        return types[2], types[2]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        dy, x, mean, var = map(wide, arrays)
        axes, shape = _rest(x.ndim), (1, -1, *(1,) * (x.ndim - 2))
        normal = (x - mean.reshape(shape)) / np.sqrt(var + self.epsilon).reshape(shape)
        return (dy * normal).sum(axis=axes).astype(arrays[2].dtype), dy.sum(axis=axes).astype(arrays[2].dtype)

    def decompose(self, *inputs: Node) -> tuple[Node, ...]:
        dy, x, mean, var = (widened(i) for i in inputs)
        add_up = ReduceSum(_rest(x.rank))
        dscale = mul(add_up(mul(dy, sub(x, by_channel(mean, x)))), Rsqrt()(add(var, self.epsilon)))
        return cast(dscale, inputs[2].dtype), cast(add_up(dy), inputs[2].dtype)


class BatchNormGradUpdate(Composite):
    """What x of a batch normalization receives, given what scale and bias do."""

    epsilon: float = 1e-5
    signature = "dy[n, c, ...], x[n, c, ...], scale[c], mean[c], var[c], dscale[c], dbias[c] -> dx[n, c, ...]"
    samples = (
        sample(f32t(2, 3, 2, 3), f32t(2, 3, 2, 3), f32t(3), f32t(3), f32t(3), f32t(3), f32t(3), low=0.5),
        sample(tensor(f16, 4, 2, 3), tensor(f16, 4, 2, 3), f32t(2), f32t(2), f32t(2), f32t(2), f32t(2), low=0.5),
    )

    def infer(self, *types: TensorType) -> Result:
        _check_gradient(self.name, *types)
        return types[1]

    def reference(self, *arrays: Array) -> Array:
        dy, x, scale, mean, var, dscale, dbias = map(wide, arrays)
        count, shape = x.size / max(scale.size, 1), (1, -1, *(1,) * (x.ndim - 2))
        rate = 1 / np.sqrt(var + self.epsilon)
        normal = (x - mean.reshape(shape)) * rate.reshape(shape)
        dx = (scale * rate).reshape(shape) * (dy - (dbias.reshape(shape) + normal * dscale.reshape(shape)) / count)
        return np.asarray(dx.astype(arrays[1].dtype))

    def decompose(self, *inputs: Node) -> Node:
        dy, x, scale, mean, var, dscale, dbias = (widened(i) for i in inputs)
        share = scale.type.size / max(x.type.size, 1)
        rate = Rsqrt()(add(var, self.epsilon))
        normal = mul(sub(x, by_channel(mean, x)), by_channel(rate, x))
        towards = mul(add(by_channel(dbias, x), mul(normal, by_channel(dscale, x))), share)
        return cast(mul(by_channel(mul(scale, rate), x), sub(dy, towards)), inputs[1].dtype)


def _check_gradient(name: str, dy: TensorType, x: TensorType, *parts: TensorType) -> None:
    check_floats(name, x, *parts)
    if dy.shape != x.shape or not dy.dtype.is_float:
        raise OpError(f"{name}: dy must be floats of the shape of x, got {dy} and {x}", code="dimension-mismatch")


def _rest(rank: int) -> tuple[int, ...]:
    """All dimensions but the channels."""
    return (0, *range(2, rank))
