"""Contractions: matrix products, convolutions, and what is written as one of them.

In: tensors of one element type (integers may mix).  Out: sums of products; f16 and bf16 accumulate in f32 and round once,
narrow integers accumulate in i32.  Pads, strides and dilations have one entry for each spatial dimension.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from string import ascii_lowercase, ascii_uppercase
from typing import Any

import numpy as np

from jumar.base import Array, DType, OpError, TensorType, dtype_of, f16, f32, i8, i32, i64, u8
from jumar.ir import Node, Result, f32t, find_op, sample, tensor
from jumar.operators.elementwise import add
from jumar.operators.families import Composite, Contraction, broadcast
from jumar.operators.movement import Broadcast, Pad, Reshape, Slice, Transpose, flip, reshape, spaced, sum_to, transpose
from jumar.operators.reduction import ReduceSum
from jumar.operators.windows import check_windows, join_channels, split_channels, windows, windows_out


def accumulator(dtype: DType) -> DType:
    """The type in which products of `dtype` are summed; for integers also the type of the result.

    >>> accumulator(u8)
    i32
    """
    if dtype.is_integer:
        return i64 if dtype.bits == 64 else i32
    return f32 if dtype.is_float and dtype.bits < 32 else dtype


def product_dtype(name: str, x: DType, w: DType) -> DType:
    """The result type of a contraction of `x` and `w`."""
    if x != w and not (x.is_integer and w.is_integer and max(x.bits, w.bits) < 64):
        raise OpError(f"{name}: x and w must have one element type, got {x} and {w}", code="dtype-mismatch")
    return accumulator(x) if x.is_integer else x


def summable(array: Array) -> Array:
    """The array in a type whose products NumPy sums exactly enough and fast: bytes go through f64 to reach BLAS."""
    dtype = dtype_of(array.dtype)
    if dtype.is_integer and dtype.bits <= 8:
        return array.astype(np.float64)
    return array.astype(accumulator(dtype).numpy, copy=False)


class MatMul(Contraction):
    """Matrix product over the last two dimensions, as numpy.matmul: leading dimensions broadcast, vectors are rows or columns.

    x_zero: of integers, the code that stands for 0 in x, taken off each element before the product.
    """

    x_zero: int = 0
    name = "matmul"
    signature = "x[..., m?, k], w[..., k, n?] -> y[..., m?, n?]"
    samples = (
        sample(f32t(4, 3), f32t(3, 5)), sample(f32t(2, 1, 4, 3), f32t(3, 3, 5)), sample(f32t(3), f32t(2, 3, 5)),
        sample(f32t(4, 3), f32t(3)),
        sample(tensor(u8, 4, 3), tensor(u8, 3, 2)), sample(tensor(f16, 4, 3), tensor(f16, 3, 2)),
        sample(tensor(u8, 5, 7), tensor(i8, 7, 3), x_zero=131), sample(tensor(i8, 2, 5, 8), tensor(i8, 2, 8, 18), x_zero=-7),
    )  # fmt: skip
    cann = "aclnnMatmul"

    def infer(self, *types: TensorType) -> Result:
        x, w = types
        if not x.rank or not w.rank:
            raise OpError(f"matmul: x and w must be vectors or matrices, got {x} and {w}", code="rank")
        if x.shape[-1] != (k := w.shape[-2 if w.rank > 1 else 0]):
            what = f"matmul: dimension k must be the same in x and w, got {x.shape[-1]} in x{list(x.shape)} and {k} in w{list(w.shape)}"
            raise OpError(what, code="dimension-mismatch")
        batch = broadcast("matmul", x.shape[:-2], w.shape[:-2])
        n = w.shape[-1:] if w.rank > 1 else ()
        return TensorType((*batch, *x.shape[-2:-1], *n), product_dtype(self.name, x.dtype, w.dtype))

    def reference(self, *arrays: Array) -> Array:
        x, w = arrays
        return np.asarray(np.matmul(summable(x) - self.x_zero if self.x_zero else summable(x), summable(w)))

    def grad(self, x: Node, w: Node, y: Node, dy: Node) -> tuple[Node, Node]:
        if x.rank > 2 and w.rank == 2:  # one product over all rows, not a sum of one for each of the batch
            rows = math.prod(x.shape[:-1])
            flat, back = reshape(x, (rows, x.shape[-1])), reshape(dy, (rows, w.shape[-1]))
            return reshape(matmul(back, turned(w)), x.shape), matmul(turned(flat), back)
        row, column = reshape(x, (1, *x.shape)) if x.rank == 1 else x, reshape(w, (*w.shape, 1)) if w.rank == 1 else w
        batch = broadcast(self.name, row.shape[:-2], column.shape[:-2])
        whole = reshape(dy, tuple(map(int, (*batch, row.shape[-2], column.shape[-1]))))
        dx, dw = matmul(whole, turned(column)), matmul(turned(row), whole)
        return reshape(sum_to(dx, row.shape), x.shape), reshape(sum_to(dw, column.shape), w.shape)

    def flops(self, *types: TensorType) -> int:
        y = self.infer(*types)
        assert isinstance(y, TensorType), "a matrix product has one result"
        return 2 * y.size * types[0].dims[-1]


def matmul(x: Node, w: Node) -> Node:
    """x w, over the last two dimensions."""
    return MatMul()(x, w)


def turned(x: Node) -> Node:
    """The last two dimensions exchanged."""
    return transpose(x, (*range(x.rank - 2), x.rank - 1, x.rank - 2))


class Conv(Contraction):
    """Convolution (cross-correlation) of `x` with the filters `w`, any number of spatial dimensions, plus `bias` where given.

    groups: input and output channels fall into so many independent parts.  channels_last: x and y are [n, *spatial, c].
    x_zero: of integers, the code that stands for 0 in x, taken off each element (so padding is this code).
    """

    strides: tuple[int, ...]
    pads_low: tuple[int, ...]
    pads_high: tuple[int, ...]
    dilations: tuple[int, ...]
    groups: int = 1
    channels_last: bool = False
    x_zero: int = 0
    signature = "x[n, c, *spatial], w[k, c/groups, *kernel], bias[k]? -> y[n, k, *out]"
    samples = (
        sample(f32t(2, 3, 7, 6), f32t(4, 3, 3, 3), f32t(4), strides=(1, 1), pads_low=(1, 1), pads_high=(1, 1), dilations=(1, 1)),
        sample(f32t(1, 4, 9, 8), f32t(6, 2, 3, 2), strides=(2, 1), pads_low=(0, 1), pads_high=(1, 0), dilations=(2, 1), groups=2),
        sample(f32t(2, 7, 6, 4), f32t(4, 1, 3, 3), f32t(4), strides=(2, 2), pads_low=(1, 1), pads_high=(1, 1), dilations=(1, 1),
               groups=4, channels_last=True),
        sample(f32t(2, 3, 8), f32t(4, 3, 3), strides=(1,), pads_low=(1,), pads_high=(1,), dilations=(1,)),
        sample(f32t(1, 2, 4, 5, 4), f32t(3, 2, 2, 2, 2), strides=(1, 2, 1), pads_low=(0, 1, 0), pads_high=(0, 0, 1), dilations=(1, 1, 1)),
        sample(f32t(1, 8, 5, 5), f32t(4, 8, 1, 1), strides=(1, 1), pads_low=(0, 0), pads_high=(0, 0), dilations=(1, 1)),
        sample(tensor(u8, 1, 2, 5, 5), tensor(u8, 3, 2, 3, 3), strides=(1, 1), pads_low=(0, 0), pads_high=(0, 0), dilations=(1, 1)),
        sample(tensor(u8, 1, 6, 5, 5), tensor(i8, 4, 3, 3, 3), strides=(2, 1), pads_low=(1, 1), pads_high=(1, 1), dilations=(1, 1),
               groups=2, x_zero=3),
        sample(tensor(i8, 1, 6, 5, 4), tensor(i8, 4, 1, 3, 3), strides=(1, 1), pads_low=(1, 1), pads_high=(1, 1), dilations=(1, 1),
               groups=4, channels_last=True, x_zero=-5),
    )  # fmt: skip
    cann = "aclnnConvolution"

    def infer(self, *types: TensorType) -> Result:
        x, w, *bias = types
        y = self.out(self.name, x, w)
        if bias and bias[0].shape != w.shape[:1]:
            raise OpError(f"conv: bias must be [{w.shape[0]}], one for each filter, got {bias[0]}", code="dimension-mismatch")
        return y

    def out(self, name: str, x: TensorType, w: TensorType) -> TensorType:
        """The type of the result, without a bias.   name: who asks, for errors (the gradients of a convolution ask too)"""
        if w.rank != x.rank or x.rank < 2:
            raise OpError(f"{name}: x and w must have one rank, got {x} and {w}", code="rank")
        n, c, spatial = split_channels(x.dims, self.channels_last)
        k, inner, *kernel = w.dims
        if self.groups < 1 or c != inner * self.groups or k % self.groups:
            raise OpError(
                f"{name}: w must be [k, c/groups, ...] with c = {c} and groups = {self.groups}, got {w}", code="dimension-mismatch"
            )
        out = windows_out(name, spatial, kernel, self.strides, self.pads_low, self.pads_high, self.dilations)
        return TensorType(join_channels(n, k, out, self.channels_last), product_dtype(name, x.dtype, w.dtype))

    def reference(self, *arrays: Array) -> Array:
        x, w, *bias = arrays
        if self.channels_last:
            x = np.moveaxis(x, -1, 1)
        k, inner, *kernel = w.shape
        cells = windows(
            summable(x) - self.x_zero if self.x_zero else summable(x), kernel, self.strides, self.pads_low, self.pads_high, self.dilations
        )
        out = cells.shape[2 : x.ndim]
        order = (0, 1, *range(x.ndim, cells.ndim), *range(2, x.ndim))
        columns = cells.transpose(order).reshape(len(x), self.groups, inner * math.prod(kernel), math.prod(out))
        rows = summable(w).reshape(self.groups, k // self.groups, inner * math.prod(kernel))
        y = np.matmul(rows, columns).reshape(len(x), k, *out)
        if bias:
            y = y + summable(bias[0]).reshape(k, *[1] * len(out))
        return np.moveaxis(y, 1, -1) if self.channels_last else y

    def flops(self, *types: TensorType) -> int:
        return 2 * self.out(self.name, types[0], types[1]).size * math.prod(types[1].dims[1:])

    def grad(self, *nodes: Node) -> tuple[Node, ...]:
        x, w, *bias, _, dy = nodes
        fields = (self.strides, self.pads_low, self.pads_high, self.dilations, self.groups, self.channels_last)
        by_input: Any = find_op("conv_grad_input")  # by name: conv_grad.py builds on this file
        by_weight: Any = find_op("conv_grad_weight")
        dx, dw = by_input(x.shape, *fields)(dy, w), by_weight(w.shape, *fields)(x, dy)
        if not bias:
            return dx, dw
        channel = dy.rank - 1 if self.channels_last else 1
        return dx, dw, ReduceSum(tuple(i for i in range(dy.rank) if i != channel))(dy)


class ConvTranspose(Composite):
    """The gradient of a convolution as an operator: each input cell adds its filter to a window of the output.

    out = (in - 1) * stride + dilation * (kernel - 1) + 1 + output_pad - pads; a negative pad widens.
    """

    strides: tuple[int, ...]
    pads_low: tuple[int, ...]
    pads_high: tuple[int, ...]
    output_pads: tuple[int, ...]
    dilations: tuple[int, ...]
    groups: int = 1
    signature = "x[n, c, *spatial], w[c, k/groups, *kernel], bias[k]? -> y[n, k, *out]"
    samples = (
        sample(f32t(2, 3, 4, 5), f32t(3, 4, 2, 2), f32t(4), strides=(2, 2), pads_low=(0, 0), pads_high=(0, 0), output_pads=(0, 0),
               dilations=(1, 1)),
        sample(f32t(1, 4, 4, 3), f32t(4, 2, 3, 3), strides=(2, 1), pads_low=(1, 0), pads_high=(0, 1), output_pads=(1, 0),
               dilations=(1, 2), groups=2),
        sample(f32t(1, 2, 5), f32t(2, 3, 4), strides=(3,), pads_low=(-1,), pads_high=(2,), output_pads=(2,), dilations=(1,)),
        sample(f32t(1, 2, 3, 3), f32t(2, 1, 1, 1), strides=(3, 3), pads_low=(0, 0), pads_high=(0, 0), output_pads=(2, 2), dilations=(1, 1)),
    )  # fmt: skip
    cann = "aclnnConvolution"

    def infer(self, *types: TensorType) -> Result:
        x, w, *bias = types
        if w.rank != x.rank or self.groups < 1 or w.dims[0] % self.groups:
            what = f"conv_transpose: w must be [c, k/groups, ...] with c = {x.shape[1]} and groups = {self.groups}, got {w}"
            raise OpError(what, code="dimension-mismatch")
        check_windows(self.name, x.rank - 2, w.dims[2:], self.strides, self.pads_low, self.pads_high, self.dilations, least_pad=None)
        if 0 in x.shape[2:]:
            raise OpError(f"conv_transpose: x must have cells, got {x}", code="empty")
        if len(self.output_pads) != x.rank - 2:
            raise OpError(f"conv_transpose: output_pads must be {x.rank - 2} numbers, got {self.output_pads}", code="window-sizes")
        k = w.dims[1] * self.groups
        if bias and bias[0].shape != (k,):
            raise OpError(f"conv_transpose: bias must be [{k}], one for each filter, got {bias[0]}", code="dimension-mismatch")
        return TensorType((x.shape[0], k, *self.out(x.dims[2:], w.dims[2:])), product_dtype(self.name, x.dtype, w.dtype))

    def out(self, spatial: Sequence[int], kernel: Sequence[int]) -> tuple[int, ...]:
        """Spatial dimensions of the result."""
        whole = zip(spatial, kernel, self.strides, self.dilations, strict=True)
        pads = zip(self.pads_low, self.pads_high, self.output_pads, strict=True)
        sizes = [(i - 1) * s + d * (k - 1) + 1 for i, k, s, d in whole]
        return tuple(size - low - high + extra for size, (low, high, extra) in zip(sizes, pads, strict=True))

    def reference(self, *arrays: Array) -> Array:
        x, w, *bias = arrays
        g, (n, c, *spatial), (_, kg, *kernel) = self.groups, x.shape, w.shape
        rows = summable(w).reshape(g, c // g, kg * math.prod(kernel)).swapaxes(1, 2)
        columns = summable(x).reshape(n, g, c // g, math.prod(spatial))
        taps = np.matmul(rows, columns).reshape(n, g * kg, *kernel, *spatial)
        out = self.out(spatial, kernel)
        # room for every window and for the crop, on both sides
        before = [max(0, -low) for low in self.pads_low]
        whole = zip(spatial, kernel, self.strides, self.dilations, before, out, self.pads_low, strict=True)
        sizes = [max((i - 1) * s + d * (k - 1) + 1 + b, o + max(low, 0)) for i, k, s, d, b, o, low in whole]
        y = np.zeros((n, g * kg, *sizes), taps.dtype)
        for tap in np.ndindex(*kernel):
            firsts = [b + t * d for t, d, b in zip(tap, self.dilations, before, strict=True)]
            cells = tuple(slice(f, f + (i - 1) * s + 1, s) for f, i, s in zip(firsts, spatial, self.strides, strict=True))
            into, of = (slice(None), slice(None), *cells), (slice(None), slice(None), *tap)
            y[into] += taps[of]
        crop = (slice(None), slice(None), *(slice(max(low, 0), max(low, 0) + o) for low, o in zip(self.pads_low, out, strict=True)))
        y = y[crop]
        return y + summable(bias[0]).reshape(-1, *[1] * len(out)) if bias else y

    def decompose(self, *inputs: Node) -> Node:
        """One convolution that makes all `stride` phases of the output as channels, then interleaves them: no product with zero.

        Output cell s*i + r sums x[i - t] * w[s*t + r] over t: phase r is a convolution with every s-th tap of the filter.
        """
        x, w, *bias = inputs
        g, rank, (n, c, *spatial), (_, kg, *kernel) = self.groups, x.rank - 2, x.shape, w.shape
        for axis, d in enumerate(self.dilations):
            w = spaced(w, axis + 2, d)
        taps = [-(-k // s) for k, s in zip(w.shape[2:], self.strides, strict=True)]
        w = _pad_high(w, (0, 0, *(t * s - k for t, s, k in zip(taps, self.strides, w.shape[2:], strict=True))))
        # [g, c/g, k/g, t0, s0, t1, s1, ...] -> [g, s0, s1, ..., k/g, c/g, t0, t1, ...], taps reversed; phases outside of channels, so
        # that with channels last the interleaving moves runs of whole channels
        split = [size for pair in zip(taps, self.strides, strict=True) for size in pair]
        w = Reshape((g, c // g, kg, *split))(w)
        w = Transpose((0, *range(4, 4 + 2 * rank, 2), 2, 1, *range(3, 3 + 2 * rank, 2)))(w)
        w = Reshape((g * kg * math.prod(self.strides), c // g, *taps))(w)
        w = flip(w, range(2, w.rank))
        edge = tuple(t - 1 for t in taps)
        y = Conv((1,) * rank, edge, edge, (1,) * rank, g)(x, w)
        cells = y.shape[2:]
        y = Reshape((n, g, *self.strides, kg, *cells))(y)
        y = Transpose((0, 1, 2 + rank, *(i for axis in range(rank) for i in (3 + rank + axis, 2 + axis))))(y)
        whole = tuple(i * s for i, s in zip(cells, self.strides, strict=True))
        y = Reshape((n, g * kg, *whole))(y)
        out = self.out(spatial, kernel)
        high = tuple(o + low - size for o, low, size in zip(out, self.pads_low, whole, strict=True))
        y = fitted(y, (0, 0, *(-low for low in self.pads_low)), (0, 0, *high))
        return add(y, Reshape((g * kg, *[1] * rank))(bias[0])) if bias else y

    def flops(self, *types: TensorType) -> int:
        """Two for each input cell, filter and tap."""
        x, w, *_ = types
        return 2 * x.size * math.prod(w.dims[1:])

    def grad(self, *nodes: Node) -> tuple[Node, ...]:
        """A convolution of dy with the filters, and what filters receive from one."""
        x, w, *bias, _, dy = nodes
        out, kernel = dy.shape[2:], w.shape[2:]
        whole = zip(x.shape[2:], kernel, self.strides, self.dilations, strict=True)
        reach = [(i - 1) * s + d * (k - 1) + 1 for i, k, s, d in whole]
        low, high = self.pads_low, tuple(r - o - lo for r, o, lo in zip(reach, out, self.pads_low, strict=True))
        if any(lo < 0 for lo in low) or any(h <= -s for h, s in zip(high, self.strides, strict=True)):
            image, low, high = fitted(dy, (0, 0, *low), (0, 0, *high)), (0,) * len(out), (0,) * len(out)
        else:
            image, high = dy, tuple(max(h, 0) for h in high)
        dx = Conv(self.strides, low, high, self.dilations, self.groups)(image, w)
        by_weight: Any = find_op("conv_grad_weight")
        dw = by_weight(w.shape, self.strides, low, high, self.dilations, self.groups)(image, x)
        return (dx, dw, ReduceSum((0, *range(2, dy.rank)))(dy)) if bias else (dx, dw)


class Einsum(Composite):
    """Sum of products by index letters, as numpy.einsum: `equation` is explicit ("bij,bjk->bik", "...i->...")."""

    equation: str
    signature = "operands[...]... -> y[...]"
    samples = (
        sample(f32t(2, 3, 4), f32t(2, 4, 5), equation="bij,bjk->bik"), sample(f32t(3, 4), equation="ij->ji"),
        sample(f32t(3, 3), equation="ii->i"), sample(f32t(2, 3, 3), equation="...ii->..."), sample(f32t(3), f32t(4), equation="i,j->ij"),
        sample(f32t(2, 3), f32t(3, 4), f32t(4, 5), equation="ab,bc,cd->ad"), sample(f32t(2, 1, 4), f32t(3, 5), equation="...a,...b->...ab"),
        sample(f32t(3, 4), f32t(5, 4), equation="ij,kj->k"),
    )  # fmt: skip
    cann = "aclnnEinsum"

    def infer(self, *types: TensorType) -> Result:
        sizes: dict[str, int] = {}
        terms, result = einsum_terms(self.equation, [t.rank for t in types])
        for term, t in zip(terms, types, strict=True):
            for letter, size in zip(term, t.dims, strict=True):
                if size != 1 and sizes.get(letter, 1) not in (1, size):
                    what = f"einsum: {letter} must have one size, got {sizes[letter]} and {size} in {self.equation!r}"
                    raise OpError(what, code="dimension-mismatch")
                sizes[letter] = max(size, sizes.get(letter, 1)) if size else 0
        return TensorType(tuple(sizes[letter] for letter in result), types[0].dtype)

    def reference(self, *arrays: Array) -> Array:
        x = [a.astype(accumulator(dtype_of(a.dtype)).numpy, copy=False) for a in arrays]
        return np.asarray(np.einsum(self.equation, *x, optimize=len(x) > 2)).astype(arrays[0].dtype)

    def decompose(self, *inputs: Node) -> Node:
        """Operand by operand: what only one of the two holds and nobody needs is summed first, the rest is one batched matrix product."""
        terms, result = einsum_terms(self.equation, [n.rank for n in inputs])
        left, x = _diagonal(terms[0], inputs[0])
        for at, node in enumerate(inputs[1:], 1):
            right, w = _diagonal(terms[at], node)
            needed = set(result).union(*terms[at + 1 :])
            left, x = _sum_out(left, x, needed | set(right))
            right, w = _sum_out(right, w, needed | set(left))
            left, x = _multiply(left, x, right, w, needed)
        left, x = _sum_out(left, x, set(result))
        return Transpose(tuple(left.index(letter) for letter in result))(x)

    def flops(self, *types: TensorType) -> int:
        sizes: dict[str, int] = {}
        for term, t in zip(einsum_terms(self.equation, [t.rank for t in types])[0], types, strict=True):
            sizes |= dict(zip(term, t.dims, strict=True))
        return 2 * math.prod(sizes.values())


def einsum_terms(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Letters of each operand and of the result; an ellipsis becomes letters that the equation does not use, aligned at its right.

    >>> einsum_terms("...ij,...jk->...ik", [3, 2])
    (['Aij', 'jk'], 'Aik')
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise OpError(f"einsum: operands must be {len(terms)}, as in {equation!r}, got {len(ranks)}", code="operand-count")
    spare = [c for c in ascii_uppercase + ascii_lowercase if c not in equation]
    extra = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    if any(e < 0 or (e > 0 and "..." not in term) for e, term in zip(extra, terms, strict=True)):
        raise OpError(f"einsum: operands must have the ranks of {equation!r}, got {list(ranks)}", code="rank")
    most = max(extra)
    stands = "".join(spare[:most])
    terms = [t.replace("...", stands[most - e :]) for t, e in zip(terms, extra, strict=True)]
    if arrow:
        return terms, right.replace("...", stands)
    named = "".join(terms)
    return terms, stands + "".join(sorted(c for c in set(named) - set(stands) if named.count(c) == 1))


def _diagonal(term: str, x: Node) -> tuple[str, Node]:
    """Letters once each: a letter that stands twice reads the diagonal, every (n + 1)-th cell of the two dimensions laid flat."""
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            first, second = [i for i, c in enumerate(term) if c == letter][:2]
            rest = [i for i in range(len(term)) if i not in (first, second)]
            n = x.shape[first]
            x = Transpose((*rest, first, second))(x)
            outer = x.shape[:-2]
            flat = Reshape((*outer, n * n))(x)
            x = Slice((0,) * len(flat.shape), flat.shape, (*[1] * len(outer), n + 1))(flat)
            term = "".join(term[i] for i in rest) + letter
    return term, x


def _sum_out(term: str, x: Node, keep: set[str]) -> tuple[str, Node]:
    """Sums over the letters that nobody needs."""
    axes = tuple(i for i, letter in enumerate(term) if letter not in keep)
    return "".join(c for c in term if c in keep), ReduceSum(axes)(x) if axes else x


def _multiply(left: str, x: Node, right: str, w: Node, needed: set[str]) -> tuple[str, Node]:
    """Product of two terms as a batched matrix product [batch, m, k] x [batch, k, n]."""
    both = [c for c in left if c in right]
    batch, inner = [c for c in both if c in needed], [c for c in both if c not in needed]
    rows, columns = [c for c in left if c not in right], [c for c in right if c not in left]
    for letter in inner:  # a size of 1 stands for any: broadcasting an inner letter repeats the operand
        size = max(x.shape[left.index(letter)], w.shape[right.index(letter)])
        x, w = (_stretch(n, term.index(letter), size) for n, term in ((x, left), (w, right)))
    x = Transpose(tuple(left.index(c) for c in (*batch, *rows, *inner)))(x)
    w = Transpose(tuple(right.index(c) for c in (*batch, *inner, *columns)))(w)
    b, r, i = len(batch), len(rows), len(inner)
    m, n = x.shape[b : b + r], w.shape[b + i :]
    k = math.prod(x.shape[b + r :])
    y = matmul(Reshape((*x.shape[:b], math.prod(m), k))(x), Reshape((*w.shape[:b], k, math.prod(n)))(w))
    return "".join((*batch, *rows, *columns)), Reshape((*y.shape[:b], *m, *n))(y)


def _stretch(x: Node, axis: int, size: int) -> Node:
    return x if x.shape[axis] == size else Broadcast((*x.shape[:axis], size, *x.shape[axis + 1 :]))(x)


def fitted(x: Node, low: tuple[int, ...], high: tuple[int, ...]) -> Node:
    """So many zeros more before and after each dimension; a negative number takes elements away."""
    starts = tuple(max(-lo, 0) for lo in low)
    stops = tuple(size + min(hi, 0) for size, hi in zip(x.shape, high, strict=True))
    if (starts, stops) != ((0,) * x.rank, x.shape):
        x = Slice(starts, stops, (1,) * x.rank)(x)
    low, high = (tuple(max(p, 0) for p in pads) for pads in (low, high))
    return Pad(low, high)(x) if any(low) or any(high) else x


def _pad_high(x: Node, high: tuple[int, ...]) -> Node:
    return fitted(x, (0,) * x.rank, high)
