"""Random tensors: uniform, normal, integers, permutations, choices, dropout.

In: shapes and parameters.  Out: tensors by elementwise formulas on counted random bits (frontend/random.py):
the same numbers in both modes, for any number of threads.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jumar import operators as o
from jumar.frontend import dtype as types
from jumar.frontend.random import Generator, draw
from jumar.ops import arithmetic as a
from jumar.ops import movement as s
from jumar.ops import ordering
from jumar.ops import reduction as r
from jumar.ops.activation import softmax
from jumar.ops.creation import made
from jumar.ops.operands import F32, I64, Tensor, apply, as_tensor, as_type, axis_of, cast, floating, ints, numpy_dtype, scalar, sizes
from jumar.ops.places import places, scatter

_U32, _U64 = np.dtype(np.uint32), np.dtype(np.uint64)


def bits(shape: tuple[int, ...], generator: Generator | None = None, seed: Any = None) -> Tensor:
    """Random bits, u32; with a seed always the same ones."""
    if seed is None:
        return draw(shape, generator)
    return apply(o.RandomBits(shape), scalar(int(seed) & 0xFFFFFFFFFFFFFFFF, _U64), scalar(0, _U64))  # type: ignore[no-any-return]


def unit(shape: tuple[int, ...], generator: Generator | None = None, seed: Any = None, *, open_below: bool = False) -> Tensor:
    """Uniform float32 from 0 to before 1; open_below: from above 0 to 1."""
    high = apply(o.ShiftRight(), bits(shape, generator, seed), scalar(8, _U32))
    number = cast(high, F32)
    return a.mul(a.add(number, 1.0) if open_below else number, 2.0**-24)


def gauss(shape: tuple[int, ...], generator: Generator | None = None, seed: Any = None) -> Tensor:
    """Normal float32 of mean 0 and deviation 1, by Box and Muller."""
    both = unit((2, *shape), generator, seed, open_below=True)
    radius = a.sqrt(a.mul(a.log(s.select(both, 0, 0)), -2.0))
    return a.mul(radius, a.cos(a.mul(s.select(both, 0, 1), 2 * math.pi)))


def _typed(x: Tensor, dtype: Any) -> Tensor:
    return cast(x, types.float32 if dtype is None else as_type(dtype))


def rand(*size: Any, dtype: Any = None, seed: Any = None, generator: Any = None, device: Any = None) -> Tensor:
    """Uniform numbers from 0 to before 1."""
    return _typed(unit(sizes(*size), generator, seed), dtype)


def randn(*size: Any, dtype: Any = None, seed: Any = None, generator: Any = None, device: Any = None) -> Tensor:
    """Normal numbers of mean 0 and deviation 1."""
    return _typed(gauss(sizes(*size), generator, seed), dtype)


def rand_like(input: Any, seed: Any = None, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Uniform numbers in the tensor's shape."""
    x = as_tensor(input)
    return cast(unit(x.shape, None, seed), x.dtype if dtype is None else as_type(dtype))


def randn_like(input: Any, seed: Any = None, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Normal numbers in the tensor's shape."""
    x = as_tensor(input)
    return cast(gauss(x.shape, None, seed), x.dtype if dtype is None else as_type(dtype))


def integers(low: int, high: int, shape: tuple[int, ...], generator: Generator | None = None, seed: Any = None) -> Tensor:
    """Whole numbers from low to before high, int64."""
    if high <= low:
        raise ValueError(f"randint: high must be above low, got {low} and {high}")
    span = high - low
    if span <= 1 << 32:
        number = cast(bits(shape, generator, seed), I64)
    else:
        both = cast(bits((2, *shape), generator, seed), I64)
        number = a.add(a.mul(a.bitwise_and(s.select(both, 0, 0), 0x7FFFFFFF), 1 << 32), s.select(both, 0, 1))
    return a.add(a.remainder(number, span), low)


def randint(low: int, high: int, size: Any, seed: Any = None, *, dtype: Any = None) -> Tensor:
    """Whole numbers from low to before high."""
    return cast(integers(int(low), int(high), ints(size), None, seed), types.int64 if dtype is None else as_type(dtype))


def randint_torch(
    *args: Any, low: int = 0, high: int | None = None, size: Any = None, generator: Any = None, dtype: Any = None, device: Any = None
) -> Tensor:
    """Whole numbers from low (0) to before high: (high, size) or (low, high, size)."""
    given = list(args)
    if given and not isinstance(given[-1], int) and size is None:
        size = given.pop()
    if len(given) == 2:
        low, high = given
    elif given:
        (high,) = given
    assert high is not None, "randint: high must be given"
    return cast(integers(int(low), int(high), ints(size), generator), types.int64 if dtype is None else as_type(dtype))


def randint_like(input: Any, low: int, high: int, seed: Any = None, *, dtype: Any = None) -> Tensor:
    """Whole numbers in the tensor's shape."""
    x = as_tensor(input)
    return cast(integers(int(low), int(high), x.shape, None, seed), x.dtype if dtype is None else as_type(dtype))


def randint_like_torch(*args: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Whole numbers in the tensor's shape: (input, high) or (input, low, high)."""
    x, *bounds = args
    low, high = bounds if len(bounds) == 2 else (0, *bounds)
    return randint_like(x, low, high, dtype=dtype)


def randperm(n: Any, seed: Any = 0, offset: Any = 0, dtype: Any = types.int64) -> Tensor:
    """The numbers below n in random order."""
    return cast(permutation(int(n)), as_type(dtype))


def randperm_torch(n: Any, *, generator: Any = None, dtype: Any = types.int64) -> Tensor:
    """The numbers below n in random order."""
    return cast(permutation(int(n), generator), as_type(dtype))


def permutation(n: int, generator: Generator | None = None, seed: Any = None) -> Tensor:
    """The numbers below n in random order, int64."""
    return ordering.sorted_pair(cast(bits((n,), generator, seed), I64), 0)[1]


def shuffle(x: Any, seed: Any = None) -> Tensor:
    """The slices along the first dimension in random order."""
    tensor = as_tensor(x)
    return apply(o.Gather(0), tensor, permutation(tensor.shape[0], None, seed))  # type: ignore[no-any-return]


def uniform(shape: Any, minval: Any, maxval: Any, seed: Any = None, dtype: Any = types.float32) -> Tensor:
    """Uniform numbers from minval to before maxval."""
    low, high = as_tensor(minval), as_tensor(maxval)
    wanted = np.broadcast_shapes(ints(shape), low.shape, high.shape)
    if as_type(dtype).kind in ("Int", "UInt"):
        return randint(int(low.item()), int(high.item()), wanted, seed, dtype=dtype)
    return _typed(a.add(a.mul(unit(wanted, None, seed), a.sub(floating(high), low)), low), dtype)


def normal(shape: Any, mean: Any, stddev: Any, seed: Any = None) -> Tensor:
    """Normal numbers."""
    middle, spread = as_tensor(mean), as_tensor(stddev)
    wanted = np.broadcast_shapes(ints(shape), middle.shape, spread.shape)
    return a.add(a.mul(gauss(wanted, None, seed), floating(spread)), floating(middle))


def normal_torch(mean: Any = 0.0, std: Any = 1.0, size: Any = None, generator: Any = None) -> Tensor:
    """Normal numbers; the shape is that of mean and std where no size is given."""
    middle, spread = floating(mean), floating(std)
    shape = np.broadcast_shapes(middle.shape, spread.shape) if size is None else ints(size)
    return a.add(a.mul(gauss(shape, generator), spread), middle)


def standard_normal(shape: Any, seed: Any = None) -> Tensor:
    """Normal numbers of mean 0 and deviation 1."""
    return gauss(ints(shape), None, seed)


def standard_laplace(shape: Any, seed: Any = None) -> Tensor:
    """Laplace numbers of mean 0 and scale 1."""
    centered = a.sub(unit(ints(shape), None, seed, open_below=True), 0.5)
    return a.mul(a.neg(a.sign(centered)), a.log(a.clamp(a.sub(1, a.mul(a.abs(centered), 2)), 1e-12)))


def laplace(shape: Any, mean: Any, lambda_param: Any, seed: Any = None) -> Tensor:
    """Laplace numbers."""
    middle, spread = floating(mean), floating(lambda_param)
    wanted = np.broadcast_shapes(ints(shape), middle.shape, spread.shape)
    return a.add(a.mul(standard_laplace(wanted, seed), spread), middle)


def bernoulli(input: Any, p: Any = 0.5, seed: Any = None) -> Tensor:
    """1 with probability p, else 0, in the tensor's shape and type."""
    x = as_tensor(input)
    hit = a.less(unit(x.shape, None, seed), p if isinstance(p, Tensor) else float(p))
    return cast(hit, numpy_dtype(x))


def bernoulli_torch(input: Any, *, generator: Any = None) -> Tensor:
    """1 with the element as probability, else 0."""
    x = as_tensor(input)
    return cast(a.less(unit(x.shape, generator), x), numpy_dtype(x))


def _numpy_stream(seed: Any) -> np.random.Generator:
    """A NumPy generator for distributions that need rejection; its seed is drawn."""
    words = bits((4,), None, seed).asnumpy()
    return np.random.Generator(np.random.Philox(key=int(words[0]) | int(words[1]) << 32))


def random_gamma(shape: Any, alpha: Any, seed: Any = None) -> Tensor:
    """Gamma numbers of that shape parameter and rate 1: [*shape, *alpha.shape]."""
    x = as_tensor(alpha)
    return made(_numpy_stream(seed).gamma(x.asnumpy(), size=(*ints(shape), *x.shape)).astype(numpy_dtype(x)))


def gamma(shape: Any, alpha: Any, beta: Any, seed: Any = None) -> Tensor:
    """Gamma numbers of a shape parameter and a rate: [*shape, *broadcast of both]."""
    x, y = floating(alpha), floating(beta)
    rest = np.broadcast_shapes(x.shape, y.shape)
    values = _numpy_stream(seed).gamma(x.asnumpy(), 1.0 / y.asnumpy(), size=(*ints(shape), *rest))
    return made(values.astype(np.float32))


def random_poisson(shape: Any, rate: Any, seed: Any = None, dtype: Any = types.float32) -> Tensor:
    """Poisson numbers: [*shape, *rate.shape]."""
    x = as_tensor(rate)
    return made(_numpy_stream(seed).poisson(x.asnumpy(), size=(*ints(shape), *x.shape)).astype(as_type(dtype).numpy))


def multinomial(input: Any, num_samples: int, replacement: bool = True, seed: Any = None) -> Tensor:
    """Numbers of categories, drawn by weights in the last dimension (int32)."""
    return cast(choices(input, num_samples, replacement, None, seed), types.int32)


def multinomial_torch(input: Any, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Tensor:
    """Numbers of categories, drawn by weights in the last dimension (int64)."""
    return choices(input, num_samples, replacement, generator, None)


def choices(input: Any, num_samples: int, replacement: bool, generator: Any, seed: Any) -> Tensor:
    """Numbers of categories, int64: by the running sum with replacement, else the largest keys u^(1/w)."""
    weights = cast(as_tensor(input), F32)
    if replacement:
        edges = r.cumsum(weights, -1)
        total = s.part(edges, weights.ndim - 1, weights.shape[-1] - 1, weights.shape[-1])
        at = a.mul(unit((*weights.shape[:-1], num_samples), generator, seed), total)
        found = ordering.searchsorted(edges, at, right=True)
        return a.minimum(found, weights.shape[-1] - 1)  # type: ignore[no-any-return]
    keys = a.div(a.log(unit(weights.shape, generator, seed, open_below=True)), weights)
    keys = a.where(a.equal(weights, 0), -math.inf, keys)
    return ordering.topk_pair(keys, num_samples)[1]


def random_categorical(logits: Any, num_sample: int, seed: Any = 0, dtype: Any = types.int64) -> Tensor:
    """Numbers of categories, drawn by logits [n, c]."""
    return cast(choices(softmax(floating(logits), -1), num_sample, True, None, seed or None), as_type(dtype))


def gumbel_softmax(logits: Any, tau: float = 1.0, hard: bool = False, dim: int = -1) -> Tensor:
    """softmax of (logits + Gumbel noise) / tau; hard: one-hot forwards, with the soft gradient."""
    x = floating(logits)
    noise = a.neg(a.log(a.neg(a.log(a.clamp(unit(x.shape, open_below=True), 1e-20, 1.0 - 2**-24)))))
    soft = softmax(a.div(a.add(x, cast(noise, numpy_dtype(x))), tau), dim)
    if not hard:
        return soft
    at = r.positions(o.ArgMax, soft, dim, True)
    sharp = scatter(a.mul(a.stop_gradient(soft), 0), axis_of(dim, x.ndim), places(at), 1.0)
    return a.add(a.sub(sharp, a.stop_gradient(soft)), soft)


# -------------------------------------------------------------------------------------------------------------- dropout
def kept(shape: tuple[int, ...], p: float, generator: Any = None, seed: Any = None) -> Tensor:
    """True with probability 1 - p."""
    return apply(o.GreaterEqual(), bits(shape, generator, seed), scalar(min(round(p * 2**32), 2**32 - 1), _U32))  # type: ignore[no-any-return]


def _dropped(input: Any, mask_shape: Any, p: float, training: bool, seed: Any = None) -> Tensor:
    x = floating(input)
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: p must be within 0..1, got {p}")
    if not training or p == 0:
        return x
    if p == 1:
        return a.mul(x, 0)
    mask = kept(mask_shape or x.shape, p, None, seed)
    return a.where(mask, a.mul(x, 1 / (1 - p)), 0.0)


def dropout(input: Any, p: float = 0.5, training: bool = True, seed: Any = None) -> Tensor:
    """Each element zero with probability p, else x / (1 - p)."""
    return _dropped(input, None, float(p), training, seed)


def dropout_torch(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element zero with probability p, else x / (1 - p)."""
    y = _dropped(input, None, float(p), training)
    if inplace:
        input._write(y)
        return input  # type: ignore[no-any-return]
    return y


def _channels(input: Any, rank: int) -> tuple[int, ...]:
    x = as_tensor(input)
    keep = x.ndim - rank
    return (*x.shape[:keep], *[1] * rank)


def dropout1d(input: Any, p: float = 0.5, training: bool = True) -> Tensor:
    """Whole channels of rows zero with probability p."""
    return _dropped(input, _channels(input, 1), float(p), training)


def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of images zero with probability p."""
    return _dropped(input, _channels(input, 2), float(p), training)


def dropout3d(input: Any, p: float = 0.5, training: bool = True) -> Tensor:
    """Whole channels of volumes zero with probability p."""
    return _dropped(input, _channels(input, 3), float(p), training)


def dropout_with_mask(x: Any, keep_prob: float) -> tuple[Tensor, Tensor]:
    """Dropout and the mask of what stayed (as numbers)."""
    tensor = floating(x)
    mask = kept(tensor.shape, 1 - keep_prob)
    return a.where(mask, a.div(tensor, keep_prob), 0.0), cast(mask, numpy_dtype(tensor))


def rrelu(input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3) -> Tensor:
    """x above zero, a x below, with a random in lower .. upper for each element."""
    x = floating(input)
    slope = a.add(a.mul(unit(x.shape), upper - lower), lower)
    return a.where(a.less(x, 0), a.mul(x, cast(slope, numpy_dtype(x))), x)


def choice_with_mask(input_x: Any, count: int = 256, seed: Any = None) -> tuple[Tensor, Tensor]:
    """So many places of true elements in random order, and which rows are such places."""
    x = as_tensor(input_x)
    where = np.argwhere(x.asnumpy())
    order = np.random.Generator(np.random.Philox(key=int(bits((1,), None, seed).asnumpy()[0]))).permutation(len(where))[:count]
    rows = np.zeros((count, x.ndim), np.int32)
    rows[: len(order)] = where[order]
    return made(rows), made(np.arange(count) < len(order))


def _in_place(sample: Any) -> Any:
    """The method that fills a tensor with samples of its shape."""

    def call(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        self._write(cast(sample(self, *args, **kwargs), numpy_dtype(self)))
        return self

    return call


def _uniform_of(self: Tensor, from_: Any = 0, to: Any = 1, *, generator: Any = None) -> Tensor:
    return a.add(a.mul(unit(self.shape, generator), to - from_), from_)


def _normal_of(self: Tensor, mean: Any = 0, std: Any = 1, *, generator: Any = None) -> Tensor:
    return a.add(a.mul(gauss(self.shape, generator), std), mean)


def _random_of(self: Tensor, from_: int = 0, to: int | None = None, *, generator: Any = None) -> Tensor:
    if to is None:
        kind = numpy_dtype(self)
        top = 2**24 if kind.kind not in "iu" else min(int(np.iinfo(kind).max), 2**31 - 1)
        return integers(int(from_), top, self.shape, generator)
    return integers(int(from_), int(to), self.shape, generator)


def _bernoulli_of(self: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    return a.less(unit(self.shape, generator), p)  # type: ignore[no-any-return]


def _exponential_of(self: Tensor, lambd: float = 1, *, generator: Any = None) -> Tensor:
    return a.div(a.neg(a.log(unit(self.shape, generator, open_below=True))), lambd)


METHODS: dict[str, Any] = {
    "uniform_": _in_place(_uniform_of), "normal_": _in_place(_normal_of), "random_": _in_place(_random_of), "bernoulli_": _in_place(_bernoulli_of),
    "exponential_": _in_place(_exponential_of), "bernoulli": bernoulli_torch, "multinomial": multinomial, "random_categorical": random_categorical,
}  # fmt: skip

__all__ = [
    "bernoulli", "choice_with_mask", "dropout", "dropout1d", "dropout2d", "dropout3d", "gamma", "gumbel_softmax", "laplace", "multinomial", "normal",
    "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "random_categorical", "random_gamma", "random_poisson", "randperm",
    "rrelu", "shuffle", "standard_laplace", "standard_normal", "uniform",
]  # fmt: skip
