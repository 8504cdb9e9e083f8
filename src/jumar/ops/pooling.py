"""Pools as functions: max, average, Lp, adaptive ones, and the way back.

In: x [n, c, *spatial] (or [c, *spatial]).  Out: [n, c, *out], with places in the flat image where asked for.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jumar import operators as o
from jumar.base import Array
from jumar.ops import arithmetic as a
from jumar.ops import movement as s
from jumar.ops.convolution import spread
from jumar.ops.operands import I64, Tensor, apply, as_tensor, cast, constant, floating, ints, numpy_dtype


def _windows(
    x: Tensor, rank: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, name: str
) -> tuple[tuple[int, ...], ...]:
    """kernel, strides, pads before, pads after, dilations, and how many of those after come from ceil_mode."""
    kernel = spread(kernel_size, rank, f"{name}: kernel_size")
    strides = kernel if stride is None else spread(stride, rank, f"{name}: stride")
    low, dilations = spread(padding, rank, f"{name}: padding"), spread(dilation, rank, f"{name}: dilation")
    extra = []
    for size, k, step, p, d in zip(x.shape[2:], kernel, strides, low, dilations, strict=True):
        room = size + 2 * p - d * (k - 1) - 1
        spare = 0
        if ceil_mode and room % step and (room // step + 1) * step < size + p:
            spare = step - room % step  # a last window that begins inside
        extra.append(spare)
    return kernel, strides, low, tuple(p + e for p, e in zip(low, extra, strict=True)), dilations, tuple(extra)


def _batched(input: Any, rank: int, name: str) -> tuple[Tensor, bool]:
    x = as_tensor(input)
    if x.ndim not in (rank + 1, rank + 2):
        raise ValueError(f"{name}: input must have {rank + 1} or {rank + 2} dimensions, got {x.shape}")
    return (s.unsqueeze(x, 0), True) if x.ndim == rank + 1 else (x, False)


def max_pool(
    rank: int, input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """The largest cell of each window; with return_indices also its place in the flat image."""
    name = f"max_pool{rank}d"
    x, single = _batched(input, rank, name)
    kernel, strides, low, high, dilations, _ = _windows(x, rank, kernel_size, stride, padding, dilation, ceil_mode, name)
    if not return_indices:
        y: Tensor = apply(o.MaxPool(kernel, strides, low, high, dilations), x)
        return s.squeeze(y, 0) if single else y
    y, place = apply(o.MaxPoolIndices(kernel, strides, low, high, dilations), x)
    place = a.remainder(place, math.prod(x.shape[2:]))
    return (s.squeeze(y, 0), s.squeeze(place, 0)) if single else (y, place)


def max_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest cell of each window of rows."""
    return max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: bool = False, ceil_mode: bool = False
) -> Any:
    """The largest cell of each window of images."""
    return max_pool(2, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d_torch(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest cell of each window of images."""
    return max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False, return_indices: bool = False
) -> Any:
    """The largest cell of each window of volumes."""
    return max_pool(3, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def avg_pool(
    rank: int, input: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool, divisor_override: Any
) -> Tensor:
    """The mean of each window; divisor_override: the sum divided by that."""
    name = f"avg_pool{rank}d"
    x, single = _batched(input, rank, name)
    kernel, strides, low, high, dilations, spare = _windows(x, rank, kernel_size, stride, padding, 1, ceil_mode, name)
    uncounted = spare if any(spare) else ()
    if divisor_override:
        whole = o.AvgPool(kernel, strides, low, high, dilations, True)
        y: Tensor = a.mul(apply(whole, x), math.prod(kernel) / float(divisor_override))
    else:
        y = apply(o.AvgPool(kernel, strides, low, high, dilations, bool(count_include_pad), False, uncounted), x)
    return s.squeeze(y, 0) if single else y


def _average(rank: int, default_kernel: Any, default_stride: Any, divisor: bool) -> Any:
    name = f"avg_pool{rank}d"
    if default_kernel is None:

        def torch_like(
            input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
            divisor_override: Any = None,
        ) -> Tensor:  # fmt: skip
            return avg_pool(rank, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

        call: Any = torch_like
    else:

        def older(
            input_x: Any, kernel_size: Any = 1, stride: Any = 1, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
            divisor_override: Any = 0,
        ) -> Tensor:  # fmt: skip
            return avg_pool(rank, input_x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

        call = older
    call.__name__ = call.__qualname__ = name
    call.__doc__ = "The mean of each window."
    return call


avg_pool1d, avg_pool2d, avg_pool3d = (_average(n, 1, 1, n > 1) for n in (1, 2, 3))
avg_pool1d_torch, avg_pool2d_torch, avg_pool3d_torch = (_average(n, None, None, True) for n in (1, 2, 3))


def lp_pool(rank: int, x: Any, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool) -> Tensor:
    """The p-norm of each window."""
    powers = a.pow(floating(x), float(norm_type))
    mean = avg_pool(rank, powers, kernel_size, stride, 0, ceil_mode, True, None)
    count = math.prod(spread(kernel_size, rank, "lp_pool: kernel_size"))
    total = a.mul(mean, count)
    return a.pow(a.mul(a.sign(total), a.clamp(a.abs(total), 0.0)), 1.0 / float(norm_type))


def lp_pool1d(x: Any, norm_type: float, kernel_size: int, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """The p-norm of each window of rows."""
    return lp_pool(1, x, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(x: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """The p-norm of each window of images."""
    return lp_pool(2, x, norm_type, kernel_size, stride, ceil_mode)


# ------------------------------------------------------------------------------------------------------------- adaptive
def _wanted(x: Tensor, rank: int, output_size: Any) -> tuple[int, ...]:
    given = (output_size,) * rank if isinstance(output_size, int) or output_size is None else tuple(output_size)
    if len(given) != rank:
        raise ValueError(f"adaptive pool: output_size must be one or {rank} numbers, got {output_size}")
    return tuple(size if v is None else int(v) for v, size in zip(given, x.shape[2:], strict=True))


def _bounds(size: int, out: int) -> tuple[Array, Array]:
    """Where each window starts and ends."""
    i = np.arange(out)
    return i * size // out, -(-(i + 1) * size // out)


def adaptive_avg_pool(rank: int, input: Any, output_size: Any) -> Tensor:
    """Means of windows that share the image out evenly."""
    x, single = _batched(input, rank, f"adaptive_avg_pool{rank}d")
    wanted = _wanted(x, rank, output_size)
    spatial = x.shape[2:]
    if all(out == 1 for out in wanted):
        y: Tensor = apply(o.ReduceMean(tuple(range(2, 2 + rank)), True), x)
    elif all(size % out == 0 for size, out in zip(spatial, wanted, strict=True)):
        kernel = tuple(size // out for size, out in zip(spatial, wanted, strict=True))
        y = apply(o.AvgPool(kernel, kernel, (0,) * rank, (0,) * rank, (1,) * rank), x)
    else:
        y = x
        for axis, (size, out) in enumerate(zip(spatial, wanted, strict=True)):
            if size == out:
                continue
            start, end = _bounds(size, out)
            cells = np.arange(size)[:, None]
            share = ((cells >= start) & (cells < end)) / (end - start)
            y = s.swapaxes(a_matmul(s.swapaxes(y, axis + 2, -1), constant(share.astype(numpy_dtype(x)))), axis + 2, -1)
    return s.squeeze(y, 0) if single else y


def a_matmul(x: Tensor, w: Tensor) -> Tensor:
    """Matrix product."""
    return apply(o.MatMul(), x, w)  # type: ignore[no-any-return]


def adaptive_max_pool(rank: int, input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Largest cells of windows that share the image out evenly; asked for: their places in the flat image."""
    x, single = _batched(input, rank, f"adaptive_max_pool{rank}d")
    wanted = _wanted(x, rank, output_size)
    spatial = x.shape[2:]
    place: Array = np.zeros((1,) * (2 * rank), np.int64)
    for axis, (size, out) in enumerate(zip(spatial, wanted, strict=True)):
        start, end = _bounds(size, out)
        cells = np.minimum(
            start[:, None] + np.arange((end - start).max()), end[:, None] - 1
        )  # [out, k]: short windows repeat their last cell
        shape = [1] * (2 * rank)
        shape[axis], shape[axis + rank] = cells.shape
        place = place * size + cells.reshape(shape)
    flat = s.reshape(x, (*x.shape[:2], math.prod(spatial)))
    windows = place.reshape(*wanted, -1)
    cells_: Tensor = apply(o.Gather(2), flat, constant(windows))
    y: Tensor = apply(o.ReduceMax((cells_.ndim - 1,)), cells_)
    if single:
        y = s.squeeze(y, 0)
    if not return_indices:
        return y
    best: Tensor = apply(o.ArgMax(cells_.ndim - 1, True), cells_)
    table = s.broadcast_to(constant(windows), cells_.shape)
    found = s.squeeze(apply(o.GatherElements(cells_.ndim - 1), table, best), -1)
    return y, s.squeeze(found, 0) if single else found


def adaptive_avg_pool1d(input: Any, output_size: Any) -> Tensor:
    """Means of windows that share a row out evenly."""
    return adaptive_avg_pool(1, input, output_size)


def adaptive_avg_pool2d(input: Any, output_size: Any) -> Tensor:
    """Means of windows that share an image out evenly."""
    return adaptive_avg_pool(2, input, output_size)


def adaptive_avg_pool3d(input: Any, output_size: Any) -> Tensor:
    """Means of windows that share a volume out evenly."""
    return adaptive_avg_pool(3, input, output_size)


def adaptive_max_pool1d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Largest cells of windows that share a row out evenly."""
    return adaptive_max_pool(1, input, output_size, return_indices)


def adaptive_max_pool2d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Largest cells of windows that share an image out evenly."""
    return adaptive_max_pool(2, input, output_size, return_indices)


def adaptive_max_pool3d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Largest cells of windows that share a volume out evenly."""
    return adaptive_max_pool(3, input, output_size, return_indices)


def max_unpool(rank: int, x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None) -> Tensor:
    """Cells at the places that a max pool gave, zeros elsewhere."""
    value, single = _batched(x, rank, f"max_unpool{rank}d")
    place = s.reshape(cast(as_tensor(indices), I64), value.shape)
    kernel = spread(kernel_size, rank, "max_unpool: kernel_size")
    strides = kernel if stride is None else spread(stride, rank, "max_unpool: stride")
    low = spread(padding, rank, "max_unpool: padding")
    shape = tuple((d - 1) * t - 2 * p + k for d, t, p, k in zip(value.shape[2:], strides, low, kernel, strict=True))
    if output_size is not None:
        shape = ints(output_size)[-rank:]
    n, c = value.shape[:2]
    image = math.prod(shape)
    place = a.add(place, constant((np.arange(n * c) * image).reshape(n, c, *[1] * rank)))
    y: Tensor = apply(o.MaxUnpool((n, c, *shape)), value, place)
    return s.squeeze(y, 0) if single else y


def max_unpool1d(x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None) -> Tensor:
    """Undoes max_pool1d."""
    return max_unpool(1, x, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None) -> Tensor:
    """Undoes max_pool2d."""
    return max_unpool(2, x, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None) -> Tensor:
    """Undoes max_pool3d."""
    return max_unpool(3, x, indices, kernel_size, stride, padding, output_size)


__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d",
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d", "lp_pool2d", "max_pool2d", "max_pool3d", "max_unpool1d", "max_unpool2d",
    "max_unpool3d",
]  # fmt: skip
