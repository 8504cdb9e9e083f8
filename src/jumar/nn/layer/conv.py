"""Convolutions and their transposes, in one, two and three dimensions.

In: [n, c, *spatial].  Out: [n, k, *spatial'].  `same` pads so that the result has ceil(size / stride) cells, the odd one at the end.
A filter of one dimension is kept as [k, c, 1, size], as checkpoints have it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from jumar.base import OpError
from jumar.common.initializer import HeUniform, Uniform, _calculate_fan_in_and_fan_out, initializer
from jumar.frontend import dtype as types
from jumar.frontend.engine import apply
from jumar.frontend.parameter import Parameter
from jumar.frontend.promote import cast, is_floating, numpy_dtype
from jumar.frontend.tensor import Tensor
from jumar.frontend.user import explained
from jumar.nn.cell import Cell
from jumar.nn.layer.sizes import is_int, same_pads, spread, spread_pads
from jumar.operators import Conv, ConvTranspose, Reshape, Transpose

_FORMATS = {1: ("NCHW",), 2: ("NCHW", "NHWC"), 3: ("NCDHW",)}


def to_type(x: Tensor, like: Tensor) -> Tensor:
    """A parameter in the element type of the input."""
    if numpy_dtype(x) == numpy_dtype(like):
        return x
    if not is_floating(like) or like.dtype is types.float64:
        what = f"x must have the element type of the parameters, {x.dtype}, or one of 16 bits, got {like.dtype}{list(like.shape)}"
        raise explained(OpError(what, hint="cast it: x.astype(mindspore.float32)", code="dtype-mismatch"))
    return cast(x, numpy_dtype(like))


class _Conv(Cell):
    """What all convolutions share."""

    rank = 2
    transposed = False

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, pad_mode: str, padding: Any, dilation: Any, group: int,
        has_bias: bool, weight_init: Any, bias_init: Any, data_format: str = "NCHW", transposed: bool = False, dtype: Any = types.float32,
    ) -> None:  # fmt: skip
        super().__init__()
        name = type(self).__name__
        for label, value in (("in_channels", in_channels), ("out_channels", out_channels), ("group", group)):
            if not is_int(value) or value < 1:
                raise ValueError(f"For '{name}', the '{label}' must be int and must be > 0, but got '{value!r}'.")
        if pad_mode not in ("same", "valid", "pad"):
            raise ValueError(f"For '{name}', the 'pad_mode' must be one of ['same', 'valid', 'pad'], but got {pad_mode!r}.")
        if data_format not in _FORMATS[self.rank]:
            raise ValueError(f"For '{name}', the 'data_format' must be in {list(_FORMATS[self.rank])}, but got {data_format!r}.")
        if in_channels % group or out_channels % group:
            raise ValueError(
                f"For '{name}', 'in_channels' and 'out_channels' must be divisible by 'group', but got {in_channels}, {out_channels} and {group}."
            )
        rank = self.rank
        self.in_channels, self.out_channels, self.group, self.groups = in_channels, out_channels, group, group
        self.pad_mode, self.padding, self.has_bias, self.format = pad_mode, padding, has_bias, data_format
        self._kernel = spread(name, "kernel_size", kernel_size, rank)
        self._strides = spread(name, "stride", stride, rank)
        self._dilations = spread(name, "dilation", dilation, rank)
        self._low, self._high = spread_pads(name, padding, rank)
        if pad_mode != "pad" and any((*self._low, *self._high)):
            raise ValueError(
                f"For '{name}', the 'pad' must be zero when 'pad_mode' is not 'pad', but got 'pad': {padding} and 'pad_mode': {pad_mode}."
            )
        one = (1,) if rank == 1 else ()
        self.kernel_size, self.stride, self.dilation = (*one, *self._kernel), (*one, *self._strides), (*one, *self._dilations)
        if rank == 1:
            self.padding = (0, 0, self._low[0], self._high[0])
        self._last = data_format == "NHWC"
        if self.transposed:
            shape = (in_channels, out_channels // group, *self.kernel_size)
        elif self._last:
            shape = (out_channels, *self.kernel_size, in_channels // group)
        else:
            shape = (out_channels, in_channels // group, *self.kernel_size)
        if weight_init is None:
            weight_init = HeUniform(math.sqrt(5))
        self.weight_init, self.bias_init = weight_init, bias_init
        self.weight = Parameter(initializer(weight_init, shape, dtype), name="weight")
        self.bias: Any = None
        if has_bias:
            if bias_init is None:
                bias_init = Uniform(1 / math.sqrt(_calculate_fan_in_and_fan_out(shape)[0]))
                self.bias_init = bias_init
            self.bias = Parameter(initializer(bias_init, (out_channels,), dtype), name="bias")

    def _filters(self, x: Tensor) -> Tensor:
        """The filters as the operator wants them."""
        w = to_type(self.weight, x)
        if self.rank == 1:
            return apply(Reshape((*w.shape[:2], w.shape[3])), w)  # type: ignore[no-any-return]
        return apply(Transpose((0, 3, 1, 2)), w) if self._last else w

    def construct(self, x: Tensor) -> Tensor:
        return self._convolved(x, self._filters(x), self.bias)

    def _convolved(self, x: Tensor, w: Tensor, bias: Any = None) -> Tensor:
        """The convolution with the cell's attributes and other filters."""
        spatial = x.shape[1:-1] if self._last else x.shape[2:]
        if self.pad_mode == "same" and len(spatial) == self.rank:
            low, high = same_pads(spatial, self._kernel, self._strides, self._dilations)
        else:
            low, high = self._low, self._high
        op = Conv(self._strides, low, high, self._dilations, self.group, self._last)
        return apply(op, x, w) if bias is None else apply(op, x, w, to_type(bias, x))  # type: ignore[no-any-return]

    def extend_repr(self) -> str:
        return (
            f"input_channels={self.in_channels}, output_channels={self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"pad_mode={self.pad_mode}, padding={self.padding}, dilation={self.dilation}, group={self.group}, has_bias={self.has_bias}, "
            f"weight_init={self.weight_init}, bias_init={self.bias_init}, format={self.format}"
        )


class Conv2d(_Conv):
    """Convolution over two dimensions."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, pad_mode: str = "same", padding: Any = 0,
        dilation: Any = 1, group: int = 1, has_bias: bool = False, weight_init: Any = None, bias_init: Any = None, data_format: str = "NCHW",
        dtype: Any = types.float32,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init, bias_init, data_format,
            dtype=dtype,
        )  # fmt: skip

    @property
    def conv2d(self) -> Callable[[Tensor, Tensor], Tensor]:
        """MindSpore's primitive of the cell, `conv2d(x, weight)`: subclasses give it filters of their own."""
        return self._convolved


class Conv1d(_Conv):
    """Convolution over one dimension."""

    rank = 1

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, pad_mode: str = "same", padding: Any = 0,
        dilation: Any = 1, group: int = 1, has_bias: bool = False, weight_init: Any = None, bias_init: Any = None, dtype: Any = types.float32,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            pad_mode,
            padding,
            dilation,
            group,
            has_bias,
            weight_init,
            bias_init,
            dtype=dtype,
        )


class Conv3d(_Conv):
    """Convolution over three dimensions."""

    rank = 3

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, pad_mode: str = "same", padding: Any = 0,
        dilation: Any = 1, group: int = 1, has_bias: bool = False, weight_init: Any = None, bias_init: Any = None, data_format: str = "NCDHW",
        dtype: Any = types.float32,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init, bias_init, data_format,
            dtype=dtype,
        )  # fmt: skip


class _Transposed(_Conv):
    """What transposed convolutions share."""

    transposed = True
    _extra: tuple[int, ...] | None = None

    def _set_output_padding(self, output_padding: Any) -> None:
        extra = spread(type(self).__name__, "output_padding", output_padding, self.rank, least=0)
        if any(extra) and self.pad_mode != "pad":
            raise ValueError(
                f"For '{type(self).__name__}', the 'output_padding' must be zero when 'pad_mode' is not 'pad', but got {output_padding}."
            )
        self._extra = extra
        self.output_padding = output_padding

    def construct(self, x: Tensor) -> Tensor:
        bias = self.bias
        w = self._filters(x)
        low, high, extra = self._low, self._high, self._extra or (0,) * self.rank
        spatial = x.shape[2:]
        if self.pad_mode != "pad" and len(spatial) == self.rank:
            reach = [d * (k - 1) + 1 for k, d in zip(self._kernel, self._dilations, strict=True)]
            if self.pad_mode == "same":
                wanted = [i * s for i, s in zip(spatial, self._strides, strict=True)]
            else:
                wanted = [i * s + max(r - s, 0) for i, s, r in zip(spatial, self._strides, reach, strict=True)]
            total = [(i - 1) * s + r - o for i, s, r, o in zip(spatial, self._strides, reach, wanted, strict=True)]
            low = tuple(max(t, 0) // 2 for t in total)
            high = tuple(t - lo for t, lo in zip(total, low, strict=True))
        op = ConvTranspose(self._strides, low, high, extra, self._dilations, self.group)
        return apply(op, x, w) if bias is None else apply(op, x, w, to_type(bias, x))  # type: ignore[no-any-return]


class Conv2dTranspose(_Transposed):
    """Transposed convolution over two dimensions."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, pad_mode: str = "same", padding: Any = 0,
        output_padding: Any = 0, dilation: Any = 1, group: int = 1, has_bias: bool = False, weight_init: Any = None, bias_init: Any = None,
        dtype: Any = types.float32,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            pad_mode,
            padding,
            dilation,
            group,
            has_bias,
            weight_init,
            bias_init,
            dtype=dtype,
        )
        self._set_output_padding(output_padding)


class Conv1dTranspose(_Transposed):
    """Transposed convolution over one dimension."""

    rank = 1

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, pad_mode: str = "same", padding: Any = 0,
        dilation: Any = 1, group: int = 1, has_bias: bool = False, weight_init: Any = None, bias_init: Any = None, dtype: Any = types.float32,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            pad_mode,
            padding,
            dilation,
            group,
            has_bias,
            weight_init,
            bias_init,
            dtype=dtype,
        )


class Conv3dTranspose(_Transposed):
    """Transposed convolution over three dimensions."""

    rank = 3

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, pad_mode: str = "same", padding: Any = 0,
        dilation: Any = 1, group: int = 1, output_padding: Any = 0, has_bias: bool = False, weight_init: Any = None, bias_init: Any = None,
        data_format: str = "NCDHW", dtype: Any = types.float32,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init, bias_init, data_format,
            dtype=dtype,
        )  # fmt: skip
        self._set_output_padding(output_padding)
