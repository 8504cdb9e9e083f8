"""Convolutions and their transposes as functions.

In: x [n, c, *spatial] (or [c, *spatial]), weight [k, c/groups, *kernel].  Out: [n, k, *out].
"""

from __future__ import annotations

from typing import Any

from jumar import operators as o
from jumar.ops import movement as s
from jumar.ops.operands import Tensor, apply, as_tensor, cast, ints, numpy_dtype


def spread(value: Any, rank: int, what: str) -> tuple[int, ...]:
    """One number for each dimension."""
    found = ints(value)
    if len(found) == 1:
        return found * rank
    if len(found) == rank + 2 and found[:2] == (1, 1):  # MindSpore's primitives count batch and channels, too
        found = found[2:]
    if len(found) != rank:
        raise ValueError(f"{what}: must be one or {rank} numbers, got {value}")
    return found


def pads(padding: Any, rank: int, what: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Numbers of padded cells before and after each dimension."""
    found = ints(padding)
    if (len(found) == 2 * rank and rank > 1) or (rank == 1 and len(found) == 2):
        return found[::2], found[1::2]
    one = spread(found, rank, what)
    return one, one


def same_pads(
    spatial: tuple[int, ...], kernel: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Pads that give ceil(size / stride) cells, the odd one at the end."""
    total = [
        max(0, (-(-size // step) - 1) * step + d * (k - 1) + 1 - size)
        for size, k, step, d in zip(spatial, kernel, strides, dilations, strict=True)
    ]
    return tuple(p // 2 for p in total), tuple(p - p // 2 for p in total)


def conv(
    rank: int,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    pad_mode: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    channels_last: bool = False,
) -> Tensor:
    """A convolution over `rank` spatial dimensions."""
    x, w = as_tensor(input), as_tensor(weight)
    name = f"conv{rank}d"
    single = x.ndim == rank + 1
    if single:
        x = s.unsqueeze(x, 0)
    if x.ndim != rank + 2 or w.ndim != rank + 2:
        raise ValueError(f"{name}: input and weight must have {rank + 2} dimensions, got {x.shape} and {w.shape}")
    strides, dilations = spread(stride, rank, f"{name}: stride"), spread(dilation, rank, f"{name}: dilation")
    spatial, kernel = (x.shape[1:-1] if channels_last else x.shape[2:]), w.shape[2:]
    if isinstance(padding, str):
        pad_mode, padding = padding, 0
    if pad_mode == "same":
        low, high = same_pads(spatial, kernel, strides, dilations)
    elif pad_mode == "valid":
        low = high = (0,) * rank
    elif pad_mode == "pad":
        low, high = pads(padding, rank, f"{name}: padding")
    else:
        raise ValueError(f"{name}: pad_mode must be 'valid', 'same' or 'pad', got {pad_mode!r}")
    dtype = numpy_dtype(x)
    parts = [x, cast(w, dtype)] + ([] if bias is None else [cast(as_tensor(bias), dtype)])
    y: Tensor = apply(o.Conv(strides, low, high, dilations, int(groups), channels_last), *parts)
    return s.squeeze(y, 0) if single else y


def conv1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    pad_mode: str = "valid",
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """A convolution of rows."""
    return conv(1, input, weight, bias, stride, pad_mode, padding, dilation, groups)


def conv2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    pad_mode: str = "valid",
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """A convolution of images."""
    return conv(2, input, weight, bias, stride, pad_mode, padding, dilation, groups)


def conv3d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    pad_mode: str = "valid",
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """A convolution of volumes."""
    return conv(3, input, weight, bias, stride, pad_mode, padding, dilation, groups)


def torch_conv(rank: int) -> Any:
    """The convolution with torch's arguments: padding is a number or 'valid' or 'same'."""

    def call(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Tensor:
        return conv(rank, input, weight, bias, stride, "pad", padding, dilation, groups)

    call.__name__ = call.__qualname__ = f"conv{rank}d"
    call.__doc__ = "A convolution."
    return call


def conv_transpose(
    rank: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, output_padding: Any, groups: int, dilation: Any
) -> Tensor:
    """The gradient of a convolution as a function.   weight: [c, k/groups, *kernel]."""
    x, w = as_tensor(input), as_tensor(weight)
    name = f"conv_transpose{rank}d"
    single = x.ndim == rank + 1
    if single:
        x = s.unsqueeze(x, 0)
    low, high = pads(padding, rank, f"{name}: padding")
    op = o.ConvTranspose(
        spread(stride, rank, f"{name}: stride"), low, high, spread(output_padding, rank, f"{name}: output_padding"),
        spread(dilation, rank, f"{name}: dilation"), int(groups),
    )  # fmt: skip
    dtype = numpy_dtype(x)
    parts = [x, cast(w, dtype)] + ([] if bias is None else [cast(as_tensor(bias), dtype)])
    y: Tensor = apply(op, *parts)
    return s.squeeze(y, 0) if single else y


def conv_transpose1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The transpose of a convolution of rows."""
    return conv_transpose(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The transpose of a convolution of images."""
    return conv_transpose(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The transpose of a convolution of volumes."""
    return conv_transpose(3, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv3d_transpose(
    inputs: Any,
    weight: Any,
    pad_mode: str = "valid",
    padding: Any = 0,
    stride: Any = 1,
    dilation: Any = 1,
    group: int = 1,
    output_padding: Any = 0,
) -> Tensor:
    """The transpose of a convolution of volumes, as MindSpore's older function has it."""
    if pad_mode == "same":
        raise NotImplementedError("conv3d_transpose: pad_mode 'valid' and 'pad' are supported, got 'same'")
    return conv_transpose(3, inputs, weight, None, stride, padding if pad_mode == "pad" else 0, output_padding, group, dilation)


__all__ = ["conv1d", "conv2d", "conv3d", "conv3d_transpose", "conv_transpose2d"]
