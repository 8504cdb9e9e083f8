"""Sliding windows: the geometry that convolutions and pools share.

In: spatial sizes, kernel, strides, pads and dilations, one number for each spatial dimension.  Out: output sizes, and views of the windows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jumar.base import Array, OpError


def windows_out(
    name: str,
    spatial: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    low: Sequence[int],
    high: Sequence[int],
    dilations: Sequence[int],
) -> tuple[int, ...]:
    """How many windows fit in each dimension.

    >>> windows_out("conv", (7,), (3,), (2,), (1,), (1,), (1,))
    (4,)
    """
    check_windows(name, len(spatial), kernel, strides, low, high, dilations)
    room = [i + lo + hi - (d * (k - 1) + 1) for i, k, lo, hi, d in zip(spatial, kernel, low, high, dilations, strict=True)]
    if any(r < 0 for r in room):
        raise OpError(f"{name}: kernel must fit the padded input, got kernel {list(kernel)} on {list(spatial)}", code="kernel-fit")
    return tuple(r // s + 1 for r, s in zip(room, strides, strict=True))


def check_windows(
    name: str,
    rank: int,
    kernel: Sequence[int],
    strides: Sequence[int],
    low: Sequence[int],
    high: Sequence[int],
    dilations: Sequence[int],
    *,
    least_pad: int | None = 0,
) -> None:
    """Refuses windows without one number for each of `rank` spatial dimensions, and numbers that make none.   least_pad: None for any."""
    for what, values, least in (
        ("kernel", kernel, 1), ("strides", strides, 1), ("dilations", dilations, 1), ("pads_low", low, least_pad), ("pads_high", high, least_pad),
    ):  # fmt: skip
        if len(values) != rank or (least is not None and any(v < least for v in values)):
            wanted = f"{rank} numbers" + ("" if least is None else f" from {least} up")
            raise OpError(f"{name}: {what} must be {wanted}, got {tuple(values)}", code="window-sizes")


def windows(
    x: Array,
    kernel: Sequence[int],
    strides: Sequence[int],
    low: Sequence[int],
    high: Sequence[int],
    dilations: Sequence[int],
    fill: float = 0,
) -> Array:
    """A view of all windows.   x: [n, c, *spatial] -> [n, c, *out, *kernel]; what lies outside of x is `fill`."""
    if any(low) or any(high):
        x = np.pad(x, [(0, 0), (0, 0), *zip(low, high, strict=True)], constant_values=fill)
    reach = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True))
    if not kernel:
        return x
    view = np.lib.stride_tricks.sliding_window_view(x, reach, axis=tuple(range(2, x.ndim)))
    steps = (slice(None), slice(None), *(slice(None, None, s) for s in (*strides, *dilations)))
    return view[steps]


def split_channels(shape: Sequence[int], channels_last: bool) -> tuple[int, int, tuple[int, ...]]:
    """Batch, channels and spatial sizes of [n, c, *spatial], or of [n, *spatial, c]."""
    n, *rest = shape
    return (n, rest[-1], tuple(rest[:-1])) if channels_last else (n, rest[0], tuple(rest[1:]))


def join_channels(n: int, c: int, spatial: Sequence[int], channels_last: bool) -> tuple[int, ...]:
    """The inverse of `split_channels`."""
    return (n, *spatial, c) if channels_last else (n, c, *spatial)
