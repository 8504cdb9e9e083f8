"""Signals: Fourier transforms of whole tensors and of frames, windows, and the mel scale.

In: [..., n, 1] for real numbers or [..., n, 2] for complex ones.  Out: [..., n, 2] (or 1 where it is known to be real).
A transform is a matrix product with cosines and sines; a long one of n = a * b points is a products of a and b (Cooley and Tukey).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from jumar.base import Array, OpError, TensorType
from jumar.ir import Node, Result, constant, f32t, sample
from jumar.operators.contraction import fitted, matmul
from jumar.operators.elementwise import add, mul, sub
from jumar.operators.families import Composite, normal_axis, wide
from jumar.operators.movement import Gather, concat, reshape, slice_axis, transpose

_DIRECT = 512  # up to this length one matrix product beats two passes


class Dft(Composite):
    """The discrete Fourier transform along `axis`, over `length` points: the input is cut or filled with zeros.

    onesided: only the first half of the frequencies (forward), or they are all that is given (inverse, and the result is real).
    """

    length: int
    axis: int = -2
    inverse: bool = False
    onesided: bool = False
    signature = "x[..., n, parts] -> y[..., k, parts]"
    samples = (
        sample(f32t(2, 8, 1), length=8), sample(f32t(1, 6, 3, 2), length=7, axis=1), sample(f32t(2, 9, 1), length=8, onesided=True),
        sample(f32t(2, 6, 2), length=6, inverse=True), sample(f32t(2, 5, 2), length=8, inverse=True, onesided=True),
        sample(f32t(1, 600, 2), length=600), sample(f32t(1, 1030, 1), length=1024, onesided=True),
    )  # fmt: skip

    def infer(self, *types: TensorType) -> Result:
        (x,) = types
        axis = normal_axis(self.name, self.axis, x.rank)
        if x.rank < 2 or axis == x.rank - 1 or x.dims[-1] not in (1, 2):
            raise OpError(f"dft: x must be [..., n, 1 or 2] with an axis before the last, got {x} and axis {self.axis}", code="rank")
        if self.length < 1:
            raise OpError(f"dft: length must be 1 or more, got {self.length}", code="window-sizes")
        shape = list(x.shape)
        shape[axis] = self.length // 2 + 1 if self.onesided and not self.inverse else self.length
        shape[-1] = 1 if self.onesided and self.inverse else 2
        return x.with_shape(shape)

    def reference(self, *arrays: Array) -> Array:
        (x,) = arrays
        axis = normal_axis(self.name, self.axis, x.ndim)
        parts = wide(x)
        z = parts[..., 0] + 1j * parts[..., 1] if x.shape[-1] == 2 else parts[..., 0]
        if self.inverse and self.onesided:
            return np.fft.irfft(z, self.length, axis)[..., None].astype(x.dtype)
        y = np.fft.ifft(z, self.length, axis) if self.inverse else np.fft.fft(z, self.length, axis)
        if self.onesided:
            y = np.take(y, range(self.length // 2 + 1), axis)
        return np.stack([y.real, y.imag], -1).astype(x.dtype)

    def decompose(self, *inputs: Node) -> Node:
        (x,) = inputs
        axis, n = normal_axis(self.name, self.axis, x.rank), self.length
        given = n // 2 + 1 if self.inverse and self.onesided else n
        x = fitted(x, (0,) * x.rank, tuple(given - size if a == axis else 0 for a, size in enumerate(x.shape)))
        order = (*(a for a in range(x.rank) if a != axis), axis)  # the points last, the parts before them
        x = transpose(x, order)
        rows = x.shape[:-2]
        x = reshape(x, (math.prod(rows), x.shape[-2], given))
        re = _part(x, 0)
        im = _part(x, 1) if x.shape[1] == 2 else None
        y = self._whole(re, im) if given == n else self._real_of_half(re, im)
        y = reshape(y, (*rows, *y.shape[1:]))
        return transpose(y, tuple(int(a) for a in np.argsort(order)))

    def _whole(self, re: Node, im: Node | None) -> Node:
        """[rows, n] twice -> [rows, 2, k]"""
        n = self.length
        sign = 1 if self.inverse else -1
        keep = n // 2 + 1 if self.onesided else n
        a, b = _transform(re, im, n, sign, keep if n <= _DIRECT else n)
        if a.shape[1] > keep:
            a, b = (slice_axis(p, 1, 0, keep) for p in (a, b))
        if self.inverse:
            a, b = mul(a, 1 / n), mul(b, 1 / n)
        return concat([reshape(p, (p.shape[0], 1, keep)) for p in (a, b)], 1)

    def _real_of_half(self, re: Node, im: Node | None) -> Node:
        """The inverse of a one-sided transform: each frequency but the first (and the middle) stands for its mirror too."""
        n, half = self.length, self.length // 2 + 1
        angle = 2 * np.pi * np.outer(np.arange(half), np.arange(n)) / n
        weight = np.full((half, 1), 2.0)
        weight[0] = 1
        if n % 2 == 0:
            weight[-1] = 1
        y = matmul(re, constant(weight * np.cos(angle) / n, re.dtype))
        if im is not None:
            y = sub(y, matmul(im, constant(weight * np.sin(angle) / n, re.dtype)))
        return reshape(y, (y.shape[0], 1, n))


def _part(x: Node, index: int) -> Node:
    """[rows, parts, n] -> [rows, n]"""
    return reshape(slice_axis(x, 1, index, index + 1), (x.shape[0], x.shape[2]))


def _transform(re: Node, im: Node | None, n: int, sign: int, keep: int) -> tuple[Node, Node]:
    """Transform of the last dimension, [..., n] -> [..., keep]; the imaginary part may be absent (zero).   sign: -1 forward, 1 inverse"""
    a = next((f for f in range(math.isqrt(n), 1, -1) if n % f == 0), 1)
    if n <= _DIRECT or a == 1:
        angle = sign * 2 * np.pi * np.outer(np.arange(n), np.arange(keep)) / n
        cos, sin = (constant(f(angle), re.dtype) for f in (np.cos, np.sin))
        if im is None:
            return matmul(re, cos), matmul(re, sin)
        return sub(matmul(re, cos), matmul(im, sin)), add(matmul(re, sin), matmul(im, cos))
    # point j1 * b + j2 and frequency k2 * a + k1: transform over j1, turn by w^(j2 k1), transform over j2
    b, rows = n // a, re.shape[0]

    def turned(p: Node) -> Node:
        return transpose(p, (0, 2, 1))

    inner = [turned(reshape(p, (rows, a, b))) if p is not None else None for p in (re, im)]
    assert inner[0] is not None, "there is a real part"
    u, v = _transform(inner[0], inner[1], a, sign, a)
    twist = sign * 2 * np.pi * np.outer(np.arange(b), np.arange(a)) / n
    c, s = (constant(f(twist), re.dtype) for f in (np.cos, np.sin))
    u, v = sub(mul(u, c), mul(v, s)), add(mul(u, s), mul(v, c))
    u, v = _transform(turned(u), turned(v), b, sign, b)
    return reshape(turned(u), (rows, n)), reshape(turned(v), (rows, n))


class Stft(Composite):
    """Fourier transforms of frames of `length` points, `step` apart, each weighed by `window`."""

    step: int
    length: int
    onesided: bool = True
    signature = "x[b, n, parts], window[length] -> y[b, frames, k, 2]"
    samples = (sample(f32t(2, 20, 1), f32t(8), step=4, length=8), sample(f32t(1, 16, 2), f32t(6), step=5, length=6, onesided=False))

    def infer(self, *types: TensorType) -> Result:
        x, window = types
        if x.rank != 3 or window.shape != (self.length,) or self.length > x.dims[1]:
            raise OpError(f"stft: x must be [b, n, parts] and window [{self.length}], got {x} and {window}", code="dimension-mismatch")
        if self.step < 1 or self.length < 1 or x.dims[2] not in (1, 2):
            what = f"stft: step and length must be 1 or more and x of 1 or 2 parts, got {self.step}, {self.length} and {x}"
            raise OpError(what, code="window-sizes")
        frames = (x.dims[1] - self.length) // self.step + 1
        return x.with_shape((x.shape[0], frames, self.length // 2 + 1 if self.onesided else self.length, 2))

    def places(self, n: int) -> Array:
        """Points of each frame.   -> [frames, length]"""
        first = np.arange((n - self.length) // self.step + 1) * self.step
        return np.asarray(first[:, None] + np.arange(self.length))

    def reference(self, *arrays: Array) -> Array:
        x, window = arrays
        return Dft(self.length, -2, onesided=self.onesided).reference(x[:, self.places(x.shape[1])] * window[:, None])

    def decompose(self, *inputs: Node) -> Node:
        x, window = inputs
        frames = Gather(1)(x, constant(self.places(x.shape[1])))
        return Dft(self.length, -2, onesided=self.onesided)(mul(frames, reshape(window, (self.length, 1))))


WINDOWS: dict[str, tuple[float, ...]] = {"hann": (0.5, 0.5), "hamming": (25 / 46, 21 / 46), "blackman": (0.42, 0.5, 0.08)}


def window(kind: str, size: int, periodic: bool = True) -> Array:
    """A window of `size` points: a sum of cosines.   kind: hann, hamming or blackman

    >>> window("hann", 4).round(2).tolist()
    [0.0, 0.5, 1.0, 0.5]
    """
    angle = 2 * np.pi * np.arange(size) / max(size if periodic else size - 1, 1)
    return np.asarray(sum((-1) ** k * a * np.cos(k * angle) for k, a in enumerate(WINDOWS[kind])))


class Mel(NamedTuple):
    """A mel filter bank: `bins` triangles from `low` to `high` hertz."""

    bins: int
    length: int
    rate: int
    low: float
    high: float


def mel_matrix(mel: Mel) -> Array:
    """Weights that turn a spectrum of `length` points into `bins` of the mel scale, as ONNX MelWeightMatrix rounds them.

    -> [length // 2 + 1, bins]
    """
    steps = np.arange(mel.bins + 2)
    low, high = (2595 * np.log1p(f / 700) / np.log(10) for f in (mel.low, mel.high))
    hertz = 700 * np.expm1((steps * ((high - low) / len(steps)) + low) / 2595 * np.log(10))
    edges = ((mel.length + 1) * hertz // mel.rate).astype(np.int64)
    weights = np.zeros((mel.length // 2 + 1, mel.bins))
    for i in range(mel.bins):
        left, middle, right = edges[i : i + 3]
        if left == middle:
            weights[middle, i] = 1
        else:
            at = np.arange(left, middle + 1)
            weights[at, i] = (at - left) / (middle - left)
        if middle != right:
            at = np.arange(middle, right)
            weights[at, i] = (right - at) / (right - middle)
    return weights
