"""Gradients of a convolution: by its input, and by its filters.

In: what came back from the convolution's result, with the filters or with the input.  Out: the same sums of products, turned round; each
of the three is linear in both of its inputs, so their gradients are one another.
"""

from __future__ import annotations

import math

import numpy as np

from jumar.base import Array, OpError, TensorType, f16
from jumar.ir import Node, Result, f32t, sample, tensor
from jumar.operators.contraction import Conv, ConvTranspose, fitted, summable
from jumar.operators.families import Composite
from jumar.operators.movement import reshape, transpose
from jumar.operators.windows import split_channels, windows


class ConvGradInput(Composite):
    """What the input `x` of a `Conv` receives: each cell of dy adds its filters to a window of the result.   x_shape: the shape of x."""

    x_shape: tuple[int, ...]
    strides: tuple[int, ...]
    pads_low: tuple[int, ...]
    pads_high: tuple[int, ...]
    dilations: tuple[int, ...]
    groups: int = 1
    channels_last: bool = False
    signature = "dy[n, *k_out], w[k, c/groups, *kernel] -> dx[*x_shape]"
    samples = (
        sample(f32t(2, 4, 7, 6), f32t(4, 3, 3, 3), x_shape=(2, 3, 7, 6), strides=(1, 1), pads_low=(1, 1), pads_high=(1, 1), dilations=(1, 1)),
        sample(f32t(1, 6, 3, 8), f32t(6, 2, 3, 2), x_shape=(1, 4, 9, 8), strides=(2, 1), pads_low=(0, 1), pads_high=(1, 0), dilations=(2, 1),
               groups=2),
        sample(f32t(2, 4, 3, 4), f32t(4, 1, 3, 3), x_shape=(2, 7, 6, 4), strides=(2, 2), pads_low=(1, 1), pads_high=(1, 1), dilations=(1, 1),
               groups=4, channels_last=True),
        sample(f32t(2, 4, 3), f32t(4, 3, 3), x_shape=(2, 3, 8), strides=(3,), pads_low=(1,), pads_high=(1,), dilations=(1,)),
        sample(tensor(f16, 1, 4, 3, 3), tensor(f16, 4, 2, 1, 1), x_shape=(1, 2, 5, 5), strides=(2, 2), pads_low=(0, 0), pads_high=(0, 0),
               dilations=(1, 1)),
    )  # fmt: skip
    cann = "aclnnConvolutionBackward"

    @property
    def conv(self) -> Conv:
        """The convolution whose gradient this is."""
        return Conv(self.strides, self.pads_low, self.pads_high, self.dilations, self.groups, self.channels_last)

    def infer(self, *types: TensorType) -> Result:
        dy, w = types
        x = dy.with_shape(self.x_shape)
        check_gradient(self.name, dy, self.conv.out(self.name, x, w))
        return x

    def reference(self, *arrays: Array) -> Array:
        dy, w = arrays
        dy = np.moveaxis(dy, -1, 1) if self.channels_last else dy
        g, (k, inner, *kernel) = self.groups, w.shape
        n, c, spatial = split_channels(self.x_shape, self.channels_last)
        out = dy.shape[2:]
        rows = summable(w).reshape(g, k // g, inner * math.prod(kernel)).swapaxes(1, 2)
        taps = np.matmul(rows, summable(dy).reshape(n, g, k // g, math.prod(out))).reshape(n, c, *kernel, *out)
        dx = np.zeros((n, c, *(i + lo + hi for i, lo, hi in zip(spatial, self.pads_low, self.pads_high, strict=True))), taps.dtype)
        for tap in np.ndindex(*kernel):
            firsts = [t * d for t, d in zip(tap, self.dilations, strict=True)]
            cells = (slice(f, f + (o - 1) * s + 1, s) for f, o, s in zip(firsts, out, self.strides, strict=True))
            into, of = (slice(None), slice(None), *cells), (slice(None), slice(None), *tap)
            dx[into] += taps[of]
        crop = (slice(None), slice(None), *(slice(lo, lo + i) for lo, i in zip(self.pads_low, spatial, strict=True)))
        dx = dx[crop]
        return np.moveaxis(dx, 1, -1) if self.channels_last else dx

    def decompose(self, *inputs: Node) -> Node:
        """A transposed convolution; what the strides left over of the input gets zeros."""
        dy, w = inputs
        _, _, spatial = split_channels(self.x_shape, self.channels_last)
        _, _, out = split_channels(dy.shape, self.channels_last)
        rest = tuple(
            i + lo + hi - (o - 1) * s - d * (k - 1) - 1
            for i, lo, hi, o, s, d, k in zip(
                spatial, self.pads_low, self.pads_high, out, self.strides, self.dilations, w.shape[2:], strict=True)
        )  # fmt: skip
        turned = ConvTranspose(self.strides, self.pads_low, self.pads_high, rest, self.dilations, self.groups)
        if not self.channels_last:
            return turned(dy, w)
        last = dy.rank - 1
        return transpose(turned(transpose(dy, (0, last, *range(1, last))), w), (0, *range(2, last + 1), 1))

    def flops(self, *types: TensorType) -> int:
        """As many as the convolution has."""
        return self.conv.flops(types[0].with_shape(self.x_shape), types[1])

    def grad(self, dy: Node, w: Node, y: Node, ddx: Node) -> tuple[Node, Node]:
        dw = ConvGradWeight(w.shape, self.strides, self.pads_low, self.pads_high, self.dilations, self.groups, self.channels_last)
        return self.conv(ddx, w), dw(ddx, dy)


class ConvGradWeight(Composite):
    """What the filters `w` of a `Conv` receive: each tap the products of dy with the cells it met.   w_shape: the shape of w."""

    w_shape: tuple[int, ...]
    strides: tuple[int, ...]
    pads_low: tuple[int, ...]
    pads_high: tuple[int, ...]
    dilations: tuple[int, ...]
    groups: int = 1
    channels_last: bool = False
    signature = "x[n, *c_spatial], dy[n, *k_out] -> dw[*w_shape]"
    samples = (
        sample(f32t(2, 3, 7, 6), f32t(2, 4, 7, 6), w_shape=(4, 3, 3, 3), strides=(1, 1), pads_low=(1, 1), pads_high=(1, 1), dilations=(1, 1)),
        sample(f32t(1, 4, 9, 8), f32t(1, 6, 3, 8), w_shape=(6, 2, 3, 2), strides=(2, 1), pads_low=(0, 1), pads_high=(1, 0), dilations=(2, 1),
               groups=2),
        sample(f32t(2, 7, 6, 4), f32t(2, 4, 3, 4), w_shape=(4, 1, 3, 3), strides=(2, 2), pads_low=(1, 1), pads_high=(1, 1), dilations=(1, 1),
               groups=4, channels_last=True),
        sample(f32t(2, 3, 8), f32t(2, 4, 3), w_shape=(4, 3, 3), strides=(3,), pads_low=(1,), pads_high=(1,), dilations=(1,)),
        sample(tensor(f16, 1, 2, 5, 5), tensor(f16, 1, 4, 3, 3), w_shape=(4, 2, 1, 1), strides=(2, 2), pads_low=(0, 0), pads_high=(0, 0),
               dilations=(1, 1)),
    )  # fmt: skip
    cann = "aclnnConvolutionBackward"

    @property
    def conv(self) -> Conv:
        """The convolution whose gradient this is."""
        return Conv(self.strides, self.pads_low, self.pads_high, self.dilations, self.groups, self.channels_last)

    def infer(self, *types: TensorType) -> Result:
        x, dy = types
        w = x.with_shape(self.w_shape)
        check_gradient(self.name, dy, self.conv.out(self.name, x, w))
        return w

    def reference(self, *arrays: Array) -> Array:
        x, dy = (np.moveaxis(a, -1, 1) if self.channels_last else a for a in arrays)
        g, (k, inner, *kernel), n = self.groups, self.w_shape, len(x)
        cells = windows(summable(x), kernel, self.strides, self.pads_low, self.pads_high, self.dilations)
        out = cells.shape[2 : x.ndim]
        order = (1, *range(x.ndim, cells.ndim), 0, *range(2, x.ndim))  # [c, *kernel, n, *out]
        columns = cells.transpose(order).reshape(g, inner * math.prod(kernel), n * math.prod(out))
        rows = summable(dy).swapaxes(0, 1).reshape(g, k // g, n * math.prod(out))
        return np.asarray(np.matmul(rows, columns.swapaxes(1, 2)).reshape(self.w_shape))

    def decompose(self, *inputs: Node) -> Node:
        """A convolution of x with dy as its filters: examples and channels change places, and so do strides and dilations."""
        x, dy = inputs
        g, (_, inner, *kernel) = self.groups, self.w_shape
        if self.channels_last:
            x, dy = (transpose(v, (0, v.rank - 1, *range(1, v.rank - 1))) for v in (x, dy))
        n, _, *spatial = x.shape
        rank = len(spatial)
        image = transpose(reshape(x, (n, g, inner, *spatial)), (2, 1, 0, *range(3, 3 + rank)))
        image = reshape(image, (inner, g * n, *spatial))
        filters = transpose(dy, (1, 0, *range(2, 2 + rank)))
        # the last cells that no window reached must make no further taps
        reach = [s * (o - 1) + d * (t - 1) + 1 for s, o, d, t in zip(self.strides, dy.shape[2:], self.dilations, kernel, strict=True)]
        high = [r - i - lo for r, i, lo in zip(reach, spatial, self.pads_low, strict=True)]
        image = fitted(image, (0,) * (rank + 2), (0, 0, *(min(h, 0) for h in high)))
        dw = Conv(self.dilations, self.pads_low, tuple(max(h, 0) for h in high), self.strides, g)(image, filters)
        return transpose(dw, (1, 0, *range(2, 2 + rank)))

    def flops(self, *types: TensorType) -> int:
        """As many as the convolution has."""
        return self.conv.flops(types[0], types[0].with_shape(self.w_shape))

    def grad(self, x: Node, dy: Node, y: Node, ddw: Node) -> tuple[Node, Node]:
        dx = ConvGradInput(x.shape, self.strides, self.pads_low, self.pads_high, self.dilations, self.groups, self.channels_last)
        return dx(dy, ddw), self.conv(x, ddw)


def check_gradient(name: str, dy: TensorType, expected: TensorType) -> None:
    """What comes back has the type of the result that went out, and is of floats."""
    if not dy.dtype.is_float or dy != expected:
        raise OpError(f"{name}: dy must be {expected} of floats, as the result was, got {dy}", code="dimension-mismatch")
