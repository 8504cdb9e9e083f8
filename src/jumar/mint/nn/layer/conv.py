"""Convolutions with PyTorch's defaults: no padding, with a bias; `padding` may be `same` or `valid`.

In: [n, c, *spatial], or [c, *spatial].  Out: [n, k, *spatial'].
"""

from __future__ import annotations

import math
from typing import Any

from jumar import ops
from jumar.common.initializer import HeUniform, Uniform, _calculate_fan_in_and_fan_out, initializer
from jumar.frontend import dtype as types
from jumar.frontend.engine import apply
from jumar.frontend.parameter import Parameter
from jumar.frontend.tensor import Tensor
from jumar.nn.cell import Cell
from jumar.nn.layer.conv import to_type
from jumar.nn.layer.sizes import is_int, same_pads, spread
from jumar.operators import Conv, ConvTranspose
from jumar.ops.convolution import torch_conv

_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "replicate", "circular": "circular"}


class _Conv(Cell):
    """What they share."""

    rank = 2
    transposed = False

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
        bias: bool = True, padding_mode: str = "zeros", dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        name, rank = type(self).__name__, self.rank
        for label, value in (("in_channels", in_channels), ("out_channels", out_channels), ("groups", groups)):
            if not is_int(value) or value < 1:
                raise ValueError(f"For '{name}', the '{label}' must be int and must be > 0, but got '{value!r}'.")
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"For '{name}', in_channels and out_channels must be divisible by groups, got {in_channels}, {out_channels}, {groups}."
            )
        if padding_mode not in _MODES:
            raise ValueError(f"For '{name}', the 'padding_mode' must be one of {list(_MODES)}, but got {padding_mode!r}.")
        kind = types.float32 if dtype is None else dtype
        self.in_channels, self.out_channels, self.groups, self.padding_mode, self.has_bias = (
            in_channels, out_channels, groups, padding_mode, bias
        )  # fmt: skip
        self.kernel_size = spread(name, "kernel_size", kernel_size, rank)
        self.stride = spread(name, "stride", stride, rank)
        self.dilation = spread(name, "dilation", dilation, rank)
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"For '{name}', the 'padding' must be ints, 'same' or 'valid', but got {padding!r}.")
            if padding == "same" and any(s != 1 for s in self.stride):
                raise ValueError(f"For '{name}', 'padding' may be 'same' only with stride 1, but got stride {stride}.")
            self.padding: Any = padding
        else:
            self.padding = spread(name, "padding", padding, rank, least=0)
        inner = (in_channels, out_channels // groups) if self.transposed else (out_channels, in_channels // groups)
        shape = (*inner, *self.kernel_size)
        self.weight = Parameter(initializer(HeUniform(math.sqrt(5)), shape, kind), name="weight")
        self.bias: Any = None
        if bias:
            bound = 1 / math.sqrt(_calculate_fan_in_and_fan_out(shape)[0])
            self.bias = Parameter(initializer(Uniform(bound), (out_channels,), kind), name="bias")

    @property
    def _reversed_padding(self) -> list[int]:
        """Pairs of padding from the last dimension on, as `pad` takes them; MindSpore's name, read by subclasses."""
        low, high = self._pads(tuple(d * (k - 1) + 1 for d, k in zip(self.dilation, self.kernel_size, strict=True)))
        return [p for pair in zip(reversed(low), reversed(high), strict=True) for p in pair]

    def _pads(self, spatial: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        if self.padding == "valid":
            return (0,) * self.rank, (0,) * self.rank
        if self.padding == "same":
            return same_pads(spatial, self.kernel_size, self.stride, self.dilation)
        return self.padding, self.padding

    def construct(self, input: Tensor) -> Tensor:
        single = input.ndim == self.rank + 1
        x = ops.expand_dims(input, 0) if single else input
        if x.ndim != self.rank + 2:
            raise ValueError(
                f"For '{type(self).__name__}', the rank of input must be {self.rank + 1} or {self.rank + 2}, but got {input.ndim}."
            )
        low, high = self._pads(x.shape[2:])
        if self.padding_mode != "zeros" and any((*low, *high)):
            around = [p for pair in zip(reversed(low), reversed(high), strict=True) for p in pair]
            x = ops.pad(x, around, _MODES[self.padding_mode])
            low = high = (0,) * self.rank
        op = Conv(self.stride, low, high, self.dilation, self.groups)
        w, bias = to_type(self.weight, x), self.bias
        y = apply(op, x, w) if bias is None else apply(op, x, w, to_type(bias, x))
        return ops.squeeze(y, 0) if single else y  # type: ignore[no-any-return]

    def extend_repr(self) -> str:
        return (
            f"input_channels={self.in_channels}, output_channels={self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"padding={self.padding}, dilation={self.dilation}, groups={self.groups}, bias={self.has_bias}"
        )


class Conv1d(_Conv):
    """Convolution over one dimension."""

    rank = 1
    conv1d = staticmethod(torch_conv(1))  # MindSpore's name for the function of the cell, called by subclasses


class Conv2d(_Conv):
    """Convolution over two dimensions."""

    conv2d = staticmethod(torch_conv(2))


class Conv3d(_Conv):
    """Convolution over three dimensions."""

    rank = 3
    conv3d = staticmethod(torch_conv(3))


class ConvTranspose2d(_Conv):
    """Transposed convolution over two dimensions."""

    transposed = True

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1,
        bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros", dtype: Any = None,
    ) -> None:  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f"For 'ConvTranspose2d', the 'padding_mode' must be 'zeros', but got {padding_mode!r}.")
        if isinstance(padding, str):
            raise TypeError(f"For 'ConvTranspose2d', the 'padding' must be ints, but got {padding!r}.")
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, dtype)
        self.output_padding = spread("ConvTranspose2d", "output_padding", output_padding, 2, least=0)

    def _output_padding(
        self, input: Tensor, output_size: Any, stride: Any, padding: Any, kernel_size: Any, num_spatial_dims: int, dilation: Any
    ) -> tuple[int, ...]:
        """What the output has beyond its least size; MindSpore's method, called by subclasses."""
        if output_size is None:
            return tuple(self.output_padding)
        least = [
            (i - 1) * s - 2 * p + d * (k - 1) + 1
            for i, s, p, d, k in zip(input.shape[-num_spatial_dims:], stride, padding, dilation, kernel_size, strict=True)
        ]
        extra = tuple(int(o) - m for o, m in zip(output_size[-num_spatial_dims:], least, strict=True))
        if any(not 0 <= e < s for e, s in zip(extra, stride, strict=True)):
            raise ValueError(
                f"For 'ConvTranspose2d', the 'output_size' must be from {least} on, below one stride more, but got {output_size}."
            )
        return extra

    def construct(self, input: Tensor, output_size: Any = None) -> Tensor:
        single = input.ndim == 3
        x = ops.expand_dims(input, 0) if single else input
        extra = self._output_padding(x, output_size, self.stride, self.padding, self.kernel_size, 2, self.dilation)
        op = ConvTranspose(self.stride, self.padding, self.padding, extra, self.dilation, self.groups)
        w, bias = to_type(self.weight, x), self.bias
        y = apply(op, x, w) if bias is None else apply(op, x, w, to_type(bias, x))
        return ops.squeeze(y, 0) if single else y  # type: ignore[no-any-return]
