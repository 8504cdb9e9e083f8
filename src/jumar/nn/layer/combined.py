"""Layers that are a layer, a norm and an activation; channels in another order; one layer at each step of time; the bilinear layer.

In: Tensors.  Out: Tensors.
"""

from __future__ import annotations

import math
from typing import Any

from jumar import ops
from jumar.common.initializer import Uniform, initializer
from jumar.frontend import dtype as types
from jumar.frontend.parameter import Parameter
from jumar.frontend.tensor import Tensor
from jumar.nn.cell import Cell
from jumar.nn.layer.activation import LeakyReLU, get_activation
from jumar.nn.layer.basic import Dense
from jumar.nn.layer.conv import Conv2d, to_type
from jumar.nn.layer.normalization import BatchNorm1d, BatchNorm2d


class _Combined(Cell):
    """What the two share."""

    def _finish(self, activation: Any, alpha: float) -> None:
        if activation == "leakyrelu":
            self.activation: Any = LeakyReLU(alpha)
        else:
            self.activation = get_activation(activation) if isinstance(activation, str) else activation
        self.has_act = self.activation is not None

    def _then(self, x: Tensor) -> Tensor:
        if self.has_bn:
            x = self.batchnorm(x)
        return self.activation(x) if self.has_act else x


class Conv2dBnAct(_Combined):
    """A convolution, batch normalisation where has_bn, an activation where one is given."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, pad_mode: str = "same", padding: Any = 0, dilation: Any = 1,
        group: int = 1, has_bias: bool = False, weight_init: Any = "normal", bias_init: Any = "zeros", has_bn: bool = False,
        momentum: float = 0.997, eps: float = 1e-5, activation: Any = None, alpha: float = 0.2, after_fake: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.conv = Conv2d(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init, bias_init
        )
        self.has_bn, self.after_fake = has_bn, after_fake
        if has_bn:
            self.batchnorm = BatchNorm2d(out_channels, eps, momentum)
        self._finish(activation, alpha)

    def construct(self, x: Tensor) -> Tensor:
        return self._then(self.conv(x))


class DenseBnAct(_Combined):
    """A dense layer, batch normalisation where has_bn, an activation where one is given."""

    def __init__(
        self, in_channels: int, out_channels: int, weight_init: Any = "normal", bias_init: Any = "zeros", has_bias: bool = True,
        has_bn: bool = False, momentum: float = 0.9, eps: float = 1e-5, activation: Any = None, alpha: float = 0.2, after_fake: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.dense = Dense(in_channels, out_channels, weight_init, bias_init, has_bias)
        self.has_bn, self.after_fake = has_bn, after_fake
        if has_bn:
            self.batchnorm = BatchNorm1d(out_channels, eps, momentum)
        self._finish(activation, alpha)

    def construct(self, x: Tensor) -> Tensor:
        return self._then(self.dense(x))


class ChannelShuffle(Cell):
    """Channels of groups interleaved."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        if groups < 1:
            raise ValueError(f"For 'ChannelShuffle', the 'groups' must be at least 1, but got {groups}.")
        self.groups = groups

    def construct(self, x: Tensor) -> Tensor:
        n, c, *rest = x.shape
        if c % self.groups:
            raise ValueError(f"For 'ChannelShuffle', the {c} channels must be divisible by 'groups', but got {self.groups}.")
        parts = ops.reshape(x, (n, self.groups, c // self.groups, *rest))
        return ops.reshape(ops.swapaxes(parts, 1, 2), x.shape)  # type: ignore[no-any-return]


class TimeDistributed(Cell):
    """A layer at each step along time_axis."""

    def __init__(self, layer: Any, time_axis: int, reshape_with_axis: Any = None) -> None:
        super().__init__()
        if not callable(layer):
            raise TypeError(f"For 'TimeDistributed', the 'layer' must be a Cell or a primitive, but got {type(layer).__name__}.")
        self.layer, self.time_axis, self.reshape_with_axis = layer, time_axis, reshape_with_axis

    def construct(self, inputs: Tensor) -> Tensor:
        axis = self.time_axis % inputs.ndim
        steps = [self.layer(x) for x in ops.unbind(inputs, axis)]
        return ops.stack(steps, axis)  # type: ignore[no-any-return]


class BiDense(Cell):
    """x1 A x2 + b."""

    def __init__(
        self, in1_channels: int, in2_channels: int, out_channels: int, weight_init: Any = None, bias_init: Any = None, has_bias: bool = True,
        dtype: Any = types.float32,
    ) -> None:  # fmt: skip
        super().__init__()
        self.in1_channels, self.in2_channels, self.out_channels, self.has_bias = in1_channels, in2_channels, out_channels, has_bias
        bound = 1 / math.sqrt(in1_channels)
        start = Uniform(bound) if weight_init is None else weight_init
        self.weight = Parameter(initializer(start, (out_channels, in1_channels, in2_channels), dtype), name="weight")
        self.bias: Any = None
        if has_bias:
            self.bias = Parameter(initializer(Uniform(bound) if bias_init is None else bias_init, (out_channels,), dtype), name="bias")

    def construct(self, input1: Tensor, input2: Tensor) -> Tensor:
        lead = input1.shape[:-1]
        a, b = ops.reshape(input1, (-1, self.in1_channels)), ops.reshape(input2, (-1, self.in2_channels))
        w = ops.reshape(ops.transpose(to_type(self.weight, input1), (1, 0, 2)), (self.in1_channels, -1))
        half = ops.reshape(ops.matmul(a, w), (-1, self.out_channels, self.in2_channels))
        y = ops.reshape(ops.matmul(half, ops.expand_dims(b, -1)), (*lead, self.out_channels))
        return y if self.bias is None else y + to_type(self.bias, input1)  # type: ignore[no-any-return]

    def extend_repr(self) -> str:
        text = f"in1_channels={self.in1_channels}, in2_channels={self.in2_channels}, output_channels={self.out_channels}"
        return f"{text}, has_bias={self.has_bias}" if self.has_bias else text
