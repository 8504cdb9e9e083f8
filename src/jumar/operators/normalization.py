"""Normalizations: softmax, layer, batch, instance and group norms, and their kin.

In: a tensor and, mostly, scale and bias.  Out: the same shape.  f16 and bf16 are computed in f32 and rounded once.
Each is a name for what `decompose` says in reductions and pointwise operators; targets that have it whole keep the name.
"""

from __future__ import annotations

import numpy as np

from jumar.base import Array, OpError, TensorType, f16, f32
from jumar.ir import Node, Result, f32t, sample, tensor
from jumar.operators.elementwise import Abs, Rsqrt, add, cast, div, equal, exp, log, mul, power, select, sign, sqrt, square, sub
from jumar.operators.families import Composite, broadcast, normal_axis, wide
from jumar.operators.movement import Reshape, reshape, sum_to
from jumar.operators.pooling import AvgPool
from jumar.operators.reduction import ReduceMax, ReduceMean, ReduceSum


class Normalization(Composite):
    """A composite whose result has the type of its first input, and that computes in f32 or wider.

    `formula` is the decomposition, on inputs that are wide already.
    """

    abstract = True

    def infer(self, *types: TensorType) -> Result:
        x = types[0]
        if not x.dtype.is_float:
            raise OpError(f"{self.name}: x must be of floats, got {x}", code="dtype")
        return x

    def reference(self, *arrays: Array) -> Array:
        x = arrays[0]
        return self.meaning(*map(wide, arrays)).astype(x.dtype, copy=False)

    def meaning(self, *arrays: Array) -> Array:
        """The reference, on arrays of f32 or f64."""
        raise NotImplementedError(f"{self.name}: meaning must be defined")

    def decompose(self, *inputs: Node) -> Node:
        return cast(self.formula(*map(widened, inputs)), inputs[0].dtype)

    def formula(self, *inputs: Node) -> Node:
        """The same in simpler operators, on nodes of f32 or f64."""
        raise NotImplementedError(f"{self.name}: formula must be defined")


class AlongAxis(Normalization):
    """A normalization along `axis`, or over the dimensions from `axis` on."""

    abstract = True
    axis: int = -1

    def infer(self, *types: TensorType) -> Result:
        x, *scales = types
        normal_axis(self.name, self.axis, x.rank)
        if any(broadcast(self.name, x.shape, s.shape) != x.shape for s in scales):
            raise OpError(f"{self.name}: scale and bias must broadcast to x, got {', '.join(map(str, types))}", code="broadcast")
        return super().infer(*types)


def widened(x: Node) -> Node:
    """The node in the type in which a normalization computes: f32 or wider."""
    return cast(x, f32) if x.dtype.is_float and x.dtype.bits < 32 else x


class Softmax(AlongAxis):
    """exp(x - max x) over its sum, along `axis`."""

    signature = "x[...] -> y[...]"
    samples = (sample(f32t(2, 5)), sample(f32t(4, 3, 8), axis=1), sample(tensor(f16, 2, 5)))
    cann = "aclnnSoftmax"

    def meaning(self, *arrays: Array) -> Array:
        (x,) = arrays
        e = np.exp(x - x.max(axis=self.axis, keepdims=True, initial=-np.inf))
        return np.asarray(e / e.sum(axis=self.axis, keepdims=True))

    def formula(self, *inputs: Node) -> Node:
        (x,) = inputs
        axes = (normal_axis(self.name, self.axis, x.rank),)
        e = exp(sub(x, ReduceMax(axes, keepdims=True)(x)))
        return div(e, ReduceSum(axes, keepdims=True)(e))

    def grad(self, x: Node, y: Node, dy: Node) -> tuple[Node]:
        axes = (normal_axis(self.name, self.axis, x.rank),)
        return (mul(y, sub(dy, ReduceSum(axes, keepdims=True)(mul(dy, y)))),)


class LogSoftmax(AlongAxis):
    """The logarithm of softmax, without its overflow."""

    signature = "x[...] -> y[...]"
    samples = (sample(f32t(2, 5)), sample(f32t(4, 3, 8), axis=1))
    cann = "aclnnLogSoftmax"

    def meaning(self, *arrays: Array) -> Array:
        (x,) = arrays
        shifted = x - x.max(axis=self.axis, keepdims=True, initial=-np.inf)
        return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=self.axis, keepdims=True)))

    def formula(self, *inputs: Node) -> Node:
        (x,) = inputs
        axes = (normal_axis(self.name, self.axis, x.rank),)
        shifted = sub(x, ReduceMax(axes, keepdims=True)(x))
        return sub(shifted, log(ReduceSum(axes, keepdims=True)(exp(shifted))))

    def grad(self, x: Node, y: Node, dy: Node) -> tuple[Node]:
        axes = (normal_axis(self.name, self.axis, x.rank),)
        return (sub(dy, mul(exp(y), ReduceSum(axes, keepdims=True)(dy))),)


class LayerNorm(AlongAxis):
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, over the dimensions from `axis` on."""

    epsilon: float = 1e-5
    signature = "x[..., *normed], scale[*normed], bias[*normed]? -> y[..., *normed]"
    samples = (sample(f32t(2, 5), f32t(5), f32t(5)), sample(f32t(2, 3, 4), f32t(3, 4), axis=1), sample(tensor(f16, 2, 6), tensor(f16, 6)))
    cann = "aclnnLayerNorm"

    def meaning(self, *arrays: Array) -> Array:
        x, scale, *bias = arrays
        axes = _from(self.axis, x.ndim)
        centered = x - x.mean(axis=axes, keepdims=True)
        y = centered / np.sqrt(np.square(centered).mean(axis=axes, keepdims=True) + self.epsilon) * scale
        return np.asarray(y + bias[0] if bias else y)

    def formula(self, *inputs: Node) -> Node:
        x, scale, *bias = inputs
        y = mul(standardized(x, _from(self.axis, x.rank), self.epsilon), scale)
        return add(y, bias[0]) if bias else y

    def grad(self, *nodes: Node) -> tuple[Node, ...]:
        x, scale, *bias, _, dy = nodes
        wide_, back = widened(x), widened(dy)
        axes = _from(self.axis, x.rank)
        dx, normal = standardized_grad(wide_, mul(back, widened(scale)), axes, self.epsilon)
        dscale = cast(sum_to(mul(back, normal), scale.shape), scale.dtype)
        return (cast(dx, x.dtype), dscale, *(cast(sum_to(back, b.shape), b.dtype) for b in bias))


class RmsNorm(AlongAxis):
    """x / sqrt(mean x^2 + epsilon) * scale, over the dimensions from `axis` on."""

    epsilon: float = 1e-5
    signature = "x[..., *normed], scale[*normed] -> y[..., *normed]"
    samples = (sample(f32t(2, 5), f32t(5)), sample(f32t(2, 3, 4), f32t(3, 4), axis=1), sample(tensor(f16, 2, 6), tensor(f16, 6)))
    cann = "aclnnRmsNorm"

    def meaning(self, *arrays: Array) -> Array:
        x, scale = arrays
        axes = _from(self.axis, x.ndim)
        return np.asarray(x / np.sqrt(np.square(x).mean(axis=axes, keepdims=True) + self.epsilon) * scale)

    def formula(self, *inputs: Node) -> Node:
        x, scale = inputs
        mean = ReduceMean(_from(self.axis, x.rank), keepdims=True)(square(x))
        return mul(mul(x, Rsqrt()(add(mean, self.epsilon))), scale)

    def grad(self, x: Node, scale: Node, y: Node, dy: Node) -> tuple[Node, Node]:
        wide_, back = widened(x), widened(dy)
        mean = ReduceMean(_from(self.axis, x.rank), keepdims=True)
        rate = Rsqrt()(add(mean(square(wide_)), self.epsilon))
        normal, scaled = mul(wide_, rate), mul(back, widened(scale))
        dx = mul(rate, sub(scaled, mul(normal, mean(mul(scaled, normal)))))
        return cast(dx, x.dtype), cast(sum_to(mul(back, normal), scale.shape), scale.dtype)


class BatchNorm(Normalization):
    """(x - mean) / sqrt(var + epsilon) * scale + bias, each a number for each channel (dimension 1) that is given."""

    epsilon: float = 1e-5
    signature = "x[n, c, ...], scale[c], bias[c], mean[c], var[c] -> y[n, c, ...]"
    samples = (
        sample(f32t(2, 3, 4, 4), f32t(3), f32t(3), f32t(3), f32t(3), low=0.5),
        sample(f32t(2, 3), f32t(3), f32t(3), f32t(3), f32t(3), low=0.5, epsilon=1e-3),
    )
    cann = "aclnnBatchNorm"

    def meaning(self, *arrays: Array) -> Array:
        x, *rest = arrays
        scale, bias, mean, var = (a.reshape(_channels(x.ndim, 1)) for a in rest)
        return np.asarray((x - mean) / np.sqrt(var + self.epsilon) * scale + bias)

    def formula(self, *inputs: Node) -> Node:
        """x * a + b, where a and b fold away when the four are constants."""
        x, scale, bias, mean, var = inputs
        a = mul(scale, Rsqrt()(add(var, self.epsilon)))
        b = sub(bias, mul(mean, a))
        return add(mul(x, by_channel(a, x)), by_channel(b, x))


class InstanceNorm(Normalization):
    """Each channel of each example to mean 0 and variance 1, then scale and bias for each channel."""

    epsilon: float = 1e-5
    signature = "x[n, c, *spatial], scale[c], bias[c] -> y[n, c, *spatial]"
    samples = (sample(f32t(2, 3, 4, 5), f32t(3), f32t(3)), sample(f32t(2, 3, 7), f32t(3), f32t(3), epsilon=1e-2))
    cann = "aclnnInstanceNorm"

    def meaning(self, *arrays: Array) -> Array:
        return GroupNorm(arrays[0].shape[1], self.epsilon).meaning(*arrays)

    def formula(self, *inputs: Node) -> Node:
        x, scale, bias = inputs
        y = standardized(x, tuple(range(2, x.rank)), self.epsilon)
        return add(mul(y, by_channel(scale, x)), by_channel(bias, x))

    def grad(self, x: Node, scale: Node, bias: Node, y: Node, dy: Node) -> tuple[Node, ...]:
        return _grouped_grad(x, scale, bias, dy, x.shape[1], self.epsilon)


class GroupNorm(Normalization):
    """Each group of channels of each example to mean 0 and variance 1, then scale and bias for each channel."""

    groups: int
    epsilon: float = 1e-5
    signature = "x[n, c, *spatial], scale[c], bias[c] -> y[n, c, *spatial]"
    samples = (sample(f32t(2, 4, 3, 3), f32t(4), f32t(4), groups=2), sample(tensor(f16, 2, 4, 3), tensor(f16, 4), tensor(f16, 4), groups=1))
    cann = "aclnnGroupNorm"

    def infer(self, *types: TensorType) -> Result:
        if self.groups < 1 or types[0].dims[1] % self.groups:
            raise OpError(f"group_norm: groups must divide the channels, got {self.groups} for {types[0]}", code="dimension-mismatch")
        return super().infer(*types)

    def meaning(self, *arrays: Array) -> Array:
        x, scale, bias = arrays
        if not x.size:  # a mean over nothing is a warning of NumPy's
            return x
        grouped = x.reshape(x.shape[0], self.groups, x.size // max(x.shape[0] * self.groups, 1))
        centered = grouped - grouped.mean(axis=-1, keepdims=True)
        y = centered / np.sqrt(np.square(centered).mean(axis=-1, keepdims=True) + self.epsilon)
        shape = _channels(x.ndim, 1)
        return np.asarray(y.reshape(x.shape) * scale.reshape(shape) + bias.reshape(shape))

    def formula(self, *inputs: Node) -> Node:
        x, scale, bias = inputs
        # channels are cut, and nothing is joined: that is as good with channels last
        grouped = Reshape((x.shape[0], self.groups, x.shape[1] // self.groups, *x.shape[2:]))(x)
        y = Reshape(x.shape)(standardized(grouped, tuple(range(2, grouped.rank)), self.epsilon))
        return add(mul(y, by_channel(scale, x)), by_channel(bias, x))

    def grad(self, x: Node, scale: Node, bias: Node, y: Node, dy: Node) -> tuple[Node, ...]:
        return _grouped_grad(x, scale, bias, dy, self.groups, self.epsilon)


class LpNorm(AlongAxis):
    """x over its p-norm (p is 1 or 2) along `axis`; zeros stay zeros."""

    p: int = 2
    signature = "x[...] -> y[...]"
    samples = (sample(f32t(2, 5)), sample(f32t(4, 3, 8), axis=1, p=1))

    def infer(self, *types: TensorType) -> Result:
        if self.p not in (1, 2):
            raise OpError(f"lp_norm: p must be 1 or 2, got {self.p}", code="attribute")
        return super().infer(*types)

    def meaning(self, *arrays: Array) -> Array:
        (x,) = arrays
        norm = np.linalg.norm(x, self.p, axis=self.axis, keepdims=True)
        return np.asarray(np.where(norm == 0, 0, x / np.where(norm == 0, 1, norm)))

    def formula(self, *inputs: Node) -> Node:
        (x,) = inputs
        axes = (normal_axis(self.name, self.axis, x.rank),)
        if self.p == 1:
            norm = ReduceSum(axes, keepdims=True)(Abs()(x))
        else:
            norm = sqrt(ReduceSum(axes, keepdims=True)(square(x)))
        return div(x, select(equal(norm, 0), 1, norm))

    def grad(self, x: Node, y: Node, dy: Node) -> tuple[Node]:
        axes = (normal_axis(self.name, self.axis, x.rank),)
        wide_, unit, back = widened(x), widened(y), widened(dy)
        total = ReduceSum(axes, keepdims=True)
        norm = total(Abs()(wide_)) if self.p == 1 else sqrt(total(square(wide_)))
        along = mul(sign(wide_) if self.p == 1 else unit, total(mul(back, unit)))
        return (cast(div(sub(back, along), select(equal(norm, 0), 1, norm)), x.dtype),)


class Lrn(Normalization):
    """x / (bias + alpha * mean of squares over `size` neighbouring channels)^beta: local response normalization."""

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    bias: float = 1.0
    signature = "x[n, c, *spatial] -> y[n, c, *spatial]"
    samples = (sample(f32t(2, 5, 3, 3), size=3, alpha=0.5), sample(f32t(1, 4, 2), size=2, alpha=0.5, beta=0.5, bias=2.0))

    def infer(self, *types: TensorType) -> Result:
        if self.size < 1:
            raise OpError(f"lrn: size must be 1 or more, got {self.size}", code="window-sizes")
        return super().infer(*types)

    @property
    def pads(self) -> tuple[int, int]:
        """How many channels before and after take part."""
        return (self.size - 1) // 2, self.size // 2

    def meaning(self, *arrays: Array) -> Array:
        (x,) = arrays
        if not x.size:
            return x
        square = np.pad(np.square(x), [self.pads if axis == 1 else (0, 0) for axis in range(x.ndim)])
        total = np.lib.stride_tricks.sliding_window_view(square, self.size, axis=1).sum(axis=-1)
        return np.asarray(x / (self.bias + self.alpha / self.size * total) ** self.beta)

    def formula(self, *inputs: Node) -> Node:
        (x,) = inputs
        (low, high), (n, c) = self.pads, x.shape[:2]
        image = Reshape((n, 1, c, x.type.size // max(n * c, 1)))(square(x))
        mean = AvgPool((self.size, 1), (1, 1), (low, 0), (high, 0), (1, 1), count_include_pad=True)(image)
        bias, alpha, beta = (v for v in (self.bias, self.alpha, self.beta))
        return div(x, power(add(bias, mul(alpha, Reshape(x.shape)(mean))), beta))


def standardized(x: Node, axes: tuple[int, ...], epsilon: float) -> Node:
    """(x - mean) / sqrt(variance + epsilon), over `axes`."""
    centered = sub(x, ReduceMean(axes, keepdims=True)(x)) if axes else sub(x, x)
    variance = ReduceMean(axes, keepdims=True)(square(centered)) if axes else square(centered)
    return mul(centered, Rsqrt()(add(variance, epsilon)))


def standardized_grad(x: Node, dy: Node, axes: tuple[int, ...], epsilon: float) -> tuple[Node, Node]:
    """What x receives through `standardized`, and the standardized x itself."""
    if not axes:  # of one element: always zero
        return mul(dy, 0), mul(x, 0)
    mean = ReduceMean(axes, keepdims=True)
    centered = sub(x, mean(x))
    rate = Rsqrt()(add(mean(square(centered)), epsilon))
    normal = mul(centered, rate)
    return mul(rate, sub(sub(dy, mean(dy)), mul(normal, mean(mul(dy, normal))))), normal


def _grouped_grad(x: Node, scale: Node, bias: Node, dy: Node, groups: int, epsilon: float) -> tuple[Node, ...]:
    """What x, scale and bias receive, where channels are normalized in groups."""
    wide_, back = widened(x), widened(dy)
    shape = (x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    scaled = mul(back, by_channel(widened(scale), x))
    dx, normal = standardized_grad(reshape(wide_, shape), reshape(scaled, shape), tuple(range(2, len(shape))), epsilon)
    over = ReduceSum(tuple(i for i in range(x.rank) if i != 1))
    dscale = over(mul(back, reshape(normal, x.shape)))
    return cast(reshape(dx, x.shape), x.dtype), cast(dscale, scale.dtype), cast(over(back), bias.dtype)


def by_channel(value: Node, x: Node) -> Node:
    """[c] as [c, 1, 1, ...], so that it broadcasts along dimension 1 of `x`."""
    return Reshape((value.shape[0], *[1] * (x.rank - 2)))(value) if x.rank > 2 else value


def _channels(rank: int, axis: int) -> tuple[int, ...]:
    return tuple(-1 if i == axis else 1 for i in range(rank))


def _from(axis: int, rank: int) -> tuple[int, ...]:
    return tuple(range(normal_axis("norm", axis, rank), rank))
