"""Winograd's transforms: of filters, of a tile's inputs, of its products; as matrices, and as code on registers.

In: a `Form` (stride and outputs of a tile).  Out: code for winograd_kernel.py and winograd_grad.py, constants for winograd.py.

At stride 1 a tile of m outputs in one direction reads m + 2 inputs, and has as many positions (Lavin and Gray, Fast Algorithms for
Convolutional Neural Networks, 2015).  At stride 2 it reads 2m + 1, of two phases: the m + 1 even ones meet two taps, for which m + 1
positions do; the m odd ones meet the tap in the middle, output by output, and are positions as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from jumar.base import Array, DType
from jumar.kernel import Builder, Value


@dataclass(frozen=True)
class Form:
    """m: outputs of a tile in each direction."""

    m: int
    stride: int = 1

    @property
    def side(self) -> int:
        """Inputs of a tile in each direction, and positions."""
        return self.m + 2 if self.stride == 1 else 2 * self.m + 1

    @property
    def positions(self) -> int:
        return self.side**2

    @property
    def unlike(self) -> int:
        """Positions in each direction whose filters differ: at stride 2 all odd ones share theirs."""
        return self.m + 2

    @property
    def filters(self) -> Array:
        """The transform of a filter's three taps, [unlike, 3]."""
        return FILTERS[self.stride, self.m]


FILTERS = {
    (1, 2): np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]]),
    (1, 4): np.array(
        [[1 / 4, 0, 0], [-1 / 6, -1 / 6, -1 / 6], [-1 / 6, 1 / 6, -1 / 6], [1 / 24, 1 / 12, 1 / 6], [1 / 24, -1 / 12, 1 / 6], [0, 0, 1]]
    ),
    (2, 2): np.array([[1, 0, 0], [1, 0, 1], [0, 0, 1], [0, 1, 0]]),
    (2, 4): np.array([[1 / 2, 0, 0], [-1 / 2, 0, -1 / 2], [-1 / 6, 0, 1 / 6], [1 / 6, 0, 1 / 3], [0, 0, 1], [0, 1, 0]]),
}  # by stride and m


def filter_rows(k: Builder, form: Form, taps: Sequence[Value]) -> list[Value]:
    """One direction of the transform of filters: 3 -> unlike."""
    found = []
    for row in form.filters:
        terms = [(float(c), tap) for c, tap in zip(row, taps, strict=True) if c]
        total = terms[0][1] if terms[0][0] == 1 else terms[0][1] * terms[0][0]
        for c, tap in terms[1:]:
            total = total + tap if c == 1 else k.fma(tap, c, total)
        found.append(total)
    return found


def input_rows(k: Builder, form: Form, d: Sequence[Value]) -> list[Value]:
    """One direction of the transform of inputs: side -> side; at stride 2 the positions of even inputs come first."""
    match form.stride, form.m:
        case 1, 2:
            return [d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]]
        case 1, 4:
            even, odd = k.fma(d[2], -4.0, d[4]), k.fma(d[1], -4.0, d[3])
            p, q = d[4] - d[2], d[3] - d[1]
            first, last = k.fma(d[0], 4.0, k.fma(d[2], -5.0, d[4])), k.fma(d[1], 4.0, k.fma(d[3], -5.0, d[5]))
            return [first, even + odd, even - odd, k.fma(q, 2.0, p), k.fma(q, -2.0, p), last]
        case 2, 2:
            return [d[0] - d[2], d[2], d[4] - d[2], d[1], d[3]]
    e, t = d[::2], d[6] - d[2]
    p = e[3] - e[2]
    return [k.fma(e[2] - e[0], -2.0, t), k.fma(e[1], -2.0, p), k.fma(e[2] - e[1], -2.0, p), t, k.fma(t, -2.0, e[4] - e[2]), *d[1::2]]


def output_rows(k: Builder, form: Form, d: Sequence[Value]) -> list[Value]:
    """One direction of the transform of products: side -> m."""
    match form.stride, form.m:
        case 1, 2:
            return [d[0] + d[1] + d[2], d[1] - d[2] - d[3]]
        case 1, 4:
            s, t, u, v = d[1] + d[2], d[1] - d[2], d[3] + d[4], d[3] - d[4]
            return [d[0] + s + u, k.fma(v, 2.0, t), k.fma(u, 4.0, s), k.fma(v, 8.0, t) + d[5]]
        case 2, 2:
            return [d[0] + d[1] + d[3], d[1] + d[2] + d[4]]
    s, t = d[1] + d[2], d[1] - d[2]
    return [d[0] + s + (d[3] + d[5]), k.fma(d[3], 2.0, t) + d[6], k.fma(d[3], 4.0, s) + d[7], k.fma(d[3], 8.0, t) + (d[4] + d[8])]


Rows = Callable[[Sequence[Value]], list[Value]]


def emit_square(
    k: Builder,
    dtype: DType,
    lanes: int,
    sizes: tuple[int, int],
    rows: Rows,
    load: Callable[[Value | int, Value | int], Value],
    store: Callable[[Value, Value | int, Value | int], None],
    straight: bool = False,
) -> None:
    """A transform in both directions: sizes[0] x sizes[0] vectors that `load(i, j)` reads -> sizes[1] x sizes[1] for `store(v, i, j)`.

    straight: in straight lines, all in registers (which must be many), instead of loops around a square in memory: three times the code.
    """
    before, after = sizes
    if straight:
        columns = [rows([load(i, j) for i in range(before)]) for j in range(before)]
        for i in range(after):
            for j, value in enumerate(rows([column[i] for column in columns])):
                store(value, i, j)
        return
    held = k.array(dtype, before * after * lanes)
    with k.loop(0, before) as column:
        for i, value in enumerate(rows([load(i, column) for i in range(before)])):
            k.store(value, held, (column + i * before) * lanes, aligned=True)
    with k.loop(0, after) as row:
        for j, value in enumerate(rows([k.load(held, (row * before + j) * lanes, lanes, aligned=True) for j in range(before)])):
            store(value, row, j)
