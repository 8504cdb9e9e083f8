"""Pools: largest elements, means and norms of windows, and of as many cells as the result shall have.

In: [n, c, *spatial], or [c, *spatial].  Out: the same with fewer cells.  `same` pads so that the result has ceil(size / stride) cells;
`pad` pads as it is told.
"""

from __future__ import annotations

from typing import Any

from jumar import ops
from jumar.frontend.engine import apply
from jumar.frontend.tensor import Tensor
from jumar.nn.cell import Cell
from jumar.nn.layer.sizes import ceil_pads, pad_mode, same_pads, spread, spread_pads
from jumar.operators import AvgPool, MaxPool, MaxPoolIndices, Mul


class _PoolNd(Cell):
    """What pools of windows share."""

    rank = 2

    def __init__(self, kernel_size: Any, stride: Any, mode: str, padding: Any, dilation: Any, ceil_mode: bool, data_format: str) -> None:
        super().__init__()
        name = type(self).__name__
        rank = self.rank
        self.pad_mode = pad_mode(name, mode)
        if data_format not in ("NCHW", "NHWC"):
            raise ValueError(f"For '{name}', the 'data_format' must be in ['NCHW', 'NHWC'], but got {data_format!r}.")
        self._kernel = spread(name, "kernel_size", kernel_size, rank)
        self._strides = self._kernel if stride is None else spread(name, "stride", stride, rank)
        self._dilations = spread(name, "dilation", dilation, rank)
        self._low, self._high = spread_pads(name, padding, rank)
        self.ceil_mode, self.format, self.padding = ceil_mode, data_format, padding
        one = (1,) if rank == 1 else ()
        self.kernel_size = (*one, *self._kernel) if one else kernel_size
        self.stride = (*one, *self._strides) if one else (kernel_size if stride is None else stride)

    def _only_pad(self, **options: bool) -> None:
        """Options that the modes `same` and `valid` do not have."""
        if self.pad_mode != "PAD" and any(options.values()):
            names = ", ".join(f"'{n}'" for n in options)
            raise ValueError(
                f"For {type(self).__name__}, the parameter {names} can not be set to non-default value when pad_mode is not 'pad', "
                f"but got pad_mode:{self.pad_mode.lower()}."
            )

    def _windows(self, spatial: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Pads before and after, and how much of those after come from ceil_mode."""
        if self.pad_mode == "SAME":
            low, high = same_pads(spatial, self._kernel, self._strides, self._dilations)
            return low, high, (0,) * self.rank
        extra = (0,) * self.rank
        if self.ceil_mode:
            extra = ceil_pads(spatial, self._kernel, self._strides, self._dilations, self._low, self._high)
        return self._low, tuple(h + e for h, e in zip(self._high, extra, strict=True)), extra

    def _batched(self, x: Tensor) -> tuple[Tensor, bool]:
        if x.ndim == self.rank + 1 and self.format == "NCHW":
            return ops.expand_dims(x, 0), True
        if x.ndim != self.rank + 2:
            raise ValueError(f"For '{type(self).__name__}', the rank of x must be {self.rank + 1} or {self.rank + 2}, but got {x.ndim}.")
        return x, False

    def _spatial(self, x: Tensor) -> tuple[int, ...]:
        return x.shape[1:-1] if self.format == "NHWC" else x.shape[2:]

    def extend_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode}"


class _MaxPool(_PoolNd):
    """The largest element of each window.   return_indices: with its place among the cells of its channel."""

    return_indices = False

    def construct(self, x: Tensor) -> Any:
        x, single = self._batched(x)
        low, high, _ = self._windows(self._spatial(x))
        if self.return_indices:
            y, place = apply(MaxPoolIndices(self._kernel, self._strides, low, high, self._dilations), x)
            cells = 1
            for d in x.shape[2:]:
                cells *= d
            place = place % cells
            return (ops.squeeze(y, 0), ops.squeeze(place, 0)) if single else (y, place)
        y = apply(MaxPool(self._kernel, self._strides, low, high, self._dilations, self.format == "NHWC"), x)
        return ops.squeeze(y, 0) if single else y


class MaxPool1d(_MaxPool):
    """The largest element of each window of [n, c, l]."""

    rank = 1

    def __init__(
        self, kernel_size: Any = 1, stride: Any = 1, pad_mode: str = "valid", padding: Any = 0, dilation: Any = 1, return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(kernel_size, stride, pad_mode, padding, dilation, ceil_mode, "NCHW")
        self._only_pad(
            padding=padding not in (0, (0,)), dilation=dilation not in (1, (1,)), return_indices=return_indices, ceil_mode=ceil_mode
        )
        self.return_indices = return_indices


class MaxPool2d(_MaxPool):
    """The largest element of each window of [n, c, h, w]."""

    def __init__(
        self, kernel_size: Any = 1, stride: Any = 1, pad_mode: str = "valid", padding: Any = 0, dilation: Any = 1, return_indices: bool = False,
        ceil_mode: bool = False, data_format: str = "NCHW",
    ) -> None:  # fmt: skip
        super().__init__(kernel_size, stride, pad_mode, padding, dilation, ceil_mode, data_format)
        self._only_pad(
            padding=padding not in (0, (0, 0)), dilation=dilation not in (1, (1, 1)), return_indices=return_indices, ceil_mode=ceil_mode
        )
        self.return_indices = return_indices


class MaxPool3d(_MaxPool):
    """The largest element of each window of [n, c, d, h, w]."""

    rank = 3

    def __init__(
        self, kernel_size: Any = 1, stride: Any = 1, pad_mode: str = "valid", padding: Any = 0, dilation: Any = 1, return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(kernel_size, stride, pad_mode, padding, dilation, ceil_mode, "NCHW")
        self._only_pad(
            padding=padding not in (0, (0, 0, 0)),
            dilation=dilation not in (1, (1, 1, 1)),
            return_indices=return_indices,
            ceil_mode=ceil_mode,
        )
        self.return_indices = return_indices


class MaxPool2dExt(_MaxPool):
    """The largest element of each window of [n, c, h, w]; the stride is the window's size where none is given."""

    def __init__(
        self,
        kernel_size: Any = 1,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(kernel_size, stride, "pad", padding, dilation, ceil_mode, "NCHW")
        self.return_indices = return_indices

    def construct(self, input: Tensor) -> Any:
        return super().construct(input)

    def extend_repr(self) -> str:
        return ""


class _AvgPool(_PoolNd):
    """The mean of each window."""

    count_include_pad = True
    divisor_override: int | None = None

    def construct(self, x: Tensor) -> Tensor:
        x, single = self._batched(x)
        low, high, extra = self._windows(self._spatial(x))
        counted = self.count_include_pad and self.pad_mode != "SAME"
        last = self.format == "NHWC"
        if self.divisor_override:
            total = 1
            for k in self._kernel:
                total *= k
            op = AvgPool(self._kernel, self._strides, low, high, self._dilations, True, last)
            y = apply(Mul(), apply(op, x), ops.full((), total / self.divisor_override, dtype=x.dtype))
        else:
            y = apply(AvgPool(self._kernel, self._strides, low, high, self._dilations, counted, last, extra if any(extra) else ()), x)
        return ops.squeeze(y, 0) if single else y  # type: ignore[no-any-return]

    def _check(self, divisor_override: Any) -> None:
        if divisor_override is not None and divisor_override <= 0:
            raise ValueError(f"For '{type(self).__name__}', the 'divisor_override' must be > 0, but got {divisor_override}.")
        self.divisor_override = divisor_override


class AvgPool1d(_AvgPool):
    """The mean of each window of [n, c, l]."""

    rank = 1

    def __init__(
        self, kernel_size: Any = 1, stride: Any = 1, pad_mode: str = "valid", padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(kernel_size, stride, pad_mode, padding, 1, ceil_mode, "NCHW")
        self.count_include_pad = count_include_pad


class AvgPool2d(_AvgPool):
    """The mean of each window of [n, c, h, w]."""

    def __init__(
        self, kernel_size: Any = 1, stride: Any = 1, pad_mode: str = "valid", padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None, data_format: str = "NCHW",
    ) -> None:  # fmt: skip
        super().__init__(kernel_size, stride, pad_mode, padding, 1, ceil_mode, data_format)
        self.count_include_pad = count_include_pad
        self._check(divisor_override)


class AvgPool3d(_AvgPool):
    """The mean of each window of [n, c, d, h, w]."""

    rank = 3

    def __init__(
        self, kernel_size: Any = 1, stride: Any = 1, pad_mode: str = "valid", padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(kernel_size, stride, pad_mode, padding, 1, ceil_mode, "NCHW")
        self.count_include_pad = count_include_pad
        self._check(divisor_override)


class _AvgPoolExt(_AvgPool):
    """Means where the stride is the window's size if none is given."""

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(kernel_size, stride, "pad", padding, 1, ceil_mode, "NCHW")
        self.count_include_pad = count_include_pad
        self._check(divisor_override)

    def construct(self, input: Tensor) -> Tensor:
        return super().construct(input)

    def extend_repr(self) -> str:
        return ""


class AvgPool1dExt(_AvgPoolExt):
    """The mean of each window of [n, c, l]."""

    rank = 1

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)


class AvgPool2dExt(_AvgPoolExt):
    """The mean of each window of [n, c, h, w]."""


class AvgPool3dExt(_AvgPoolExt):
    """The mean of each window of [n, c, d, h, w]."""

    rank = 3


class LPPool1d(Cell):
    """The p-norm of each window of [n, c, l]."""

    def __init__(self, norm_type: float, kernel_size: int, stride: int | None = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def construct(self, x: Tensor) -> Tensor:
        return ops.lp_pool1d(x, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)  # type: ignore[no-any-return]


class LPPool2d(Cell):
    """The p-norm of each window of [n, c, h, w]."""

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def construct(self, x: Tensor) -> Tensor:
        return ops.lp_pool2d(x, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)  # type: ignore[no-any-return]


class _Adaptive(Cell):
    """Pools that know the size of their result."""

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size


class AdaptiveAvgPool1d(_Adaptive):
    """Means, as many as output_size says."""

    def construct(self, input: Tensor) -> Tensor:
        return ops.adaptive_avg_pool1d(input, self.output_size)  # type: ignore[no-any-return]


class AdaptiveAvgPool2d(_Adaptive):
    """Means, as many as output_size says."""

    def construct(self, input: Tensor) -> Tensor:
        return ops.adaptive_avg_pool2d(input, self.output_size)  # type: ignore[no-any-return]


class AdaptiveAvgPool3d(_Adaptive):
    """Means, as many as output_size says."""

    def construct(self, input: Tensor) -> Tensor:
        return ops.adaptive_avg_pool3d(input, self.output_size)  # type: ignore[no-any-return]


class AdaptiveMaxPool1d(_Adaptive):
    """Largest elements, as many as output_size says."""

    def construct(self, x: Tensor) -> Tensor:
        return ops.adaptive_max_pool1d(x, self.output_size)  # type: ignore[no-any-return]


class AdaptiveMaxPool2d(_Adaptive):
    """Largest elements, as many as output_size says.   return_indices: with their places."""

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def construct(self, input: Tensor) -> Any:
        return ops.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_Adaptive):
    """Largest elements, as many as output_size says.   return_indices: with their places."""

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def construct(self, input: Tensor) -> Any:
        return ops.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class _MaxUnpool(Cell):
    """Puts largest elements back to their places among zeros."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding


class MaxUnpool1d(_MaxUnpool):
    """Puts the results of MaxPool1d back."""

    def construct(self, x: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return ops.max_unpool1d(x, indices, self.kernel_size, self.stride, self.padding, output_size)  # type: ignore[no-any-return]


class MaxUnpool2d(_MaxUnpool):
    """Puts the results of MaxPool2d back."""

    def construct(self, x: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return ops.max_unpool2d(x, indices, self.kernel_size, self.stride, self.padding, output_size)  # type: ignore[no-any-return]


class MaxUnpool3d(_MaxUnpool):
    """Puts the results of MaxPool3d back."""

    def construct(self, x: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return ops.max_unpool3d(x, indices, self.kernel_size, self.stride, self.padding, output_size)  # type: ignore[no-any-return]


class _Fractional(Cell):
    """Largest elements of windows whose sizes vary at random."""

    def __init__(
        self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False, _random_samples: Any = None
    ) -> None:
        super().__init__()
        self.kernel_size, self.output_size, self.output_ratio = kernel_size, output_size, output_ratio
        self.return_indices, self._random_samples = return_indices, _random_samples


class FractionalMaxPool2d(_Fractional):
    """Of [n, c, h, w]."""

    def construct(self, input: Tensor) -> Any:
        return ops.fractional_max_pool2d(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


class FractionalMaxPool3d(_Fractional):
    """Of [n, c, d, h, w]."""

    def construct(self, input: Tensor) -> Any:
        return ops.fractional_max_pool3d(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )
