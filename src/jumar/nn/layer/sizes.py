"""Sizes of windows: numbers and tuples of users as one number for each dimension, and what `same`, `valid` and `pad` mean.

In: kernel sizes, strides and pads as users write them.  Out: tuples as the operators of floor 4 want them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def is_int(value: Any) -> bool:
    """Whether a value is an int and no bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def spread(owner: str, name: str, value: Any, rank: int, least: int = 1) -> tuple[int, ...]:
    """One number for each of `rank` dimensions."""
    values = (value,) * rank if is_int(value) else value
    if isinstance(values, list | tuple) and len(values) == 1:
        values = tuple(values) * rank
    if not isinstance(values, list | tuple) or not all(is_int(v) for v in values):
        raise TypeError(f"For '{owner}', the '{name}' must be an int or a tuple of {rank} ints, but got {value!r}.")
    if len(values) != rank or any(v < least for v in values):
        raise ValueError(f"For '{owner}', the '{name}' must be an int or {rank} ints, each at least {least}, but got {value!r}.")
    return tuple(int(v) for v in values)


def spread_pads(owner: str, value: Any, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Pads before and after each dimension: of one number, of one for each dimension, or of two for each."""
    if isinstance(value, list | tuple) and len(value) == 2 * rank and rank > 0 and all(is_int(v) for v in value):
        low, high = tuple(value[0::2]), tuple(value[1::2])
    else:
        low = high = spread(owner, "padding", value, rank, least=0)
    if any(p < 0 for p in (*low, *high)):
        raise ValueError(f"For '{owner}', the 'padding' must be at least 0, but got {value!r}.")
    return tuple(map(int, low)), tuple(map(int, high))


def same_pads(
    spatial: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Pads with which the result has ceil(size / stride) cells; the odd one is at the end.

    >>> same_pads((5,), (3,), (2,), (1,))
    ((1,), (1,))
    """
    low, high = [], []
    for size, k, s, d in zip(spatial, kernel, strides, dilations, strict=True):
        total = max((-(-size // s) - 1) * s + d * (k - 1) + 1 - size, 0)
        low.append(total // 2)
        high.append(total - total // 2)
    return tuple(low), tuple(high)


def ceil_pads(
    spatial: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], low: Sequence[int], high: Sequence[int]
) -> tuple[int, ...]:
    """How much more pad at the end makes the last, partial window count; none for a window that would begin in the pad."""
    extra = []
    for size, k, s, d, lo, hi in zip(spatial, kernel, strides, dilations, low, high, strict=True):
        room = size + lo + hi - d * (k - 1) - 1
        cells = -(-room // s) + 1
        if (cells - 1) * s >= size + lo:
            cells -= 1
        extra.append(max((cells - 1) * s - room, 0))
    return tuple(extra)


def pad_mode(owner: str, value: Any, allowed: Sequence[str] = ("VALID", "SAME", "PAD")) -> str:
    """The mode in capitals."""
    if not isinstance(value, str) or value.upper() not in allowed:
        found = value.upper() if isinstance(value, str) else value
        raise ValueError(f"For '{owner}', the 'pad_mode' must be str and must be in '{list(allowed)}', but got '{found}'.")
    return value.upper()
