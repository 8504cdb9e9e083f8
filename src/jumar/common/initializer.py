"""Initialisers: `initializer("normal", shape)` and the classes behind the names.

In: a name, a number, an `Initializer` or a tensor, and a shape.  Out: a Tensor with its values.  Random ones draw from the stream that
`set_seed` begins (NumPy's global one), by a generator of their own, so that large weights are made quickly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from jumar.base import Array
from jumar.frontend import dtype as types
from jumar.frontend.tensor import Tensor, wrap

__all__ = [
    "Constant", "Dirac", "HeNormal", "HeUniform", "Identity", "Initializer", "Normal", "One", "Orthogonal", "Sparse", "TruncatedNormal", "Uniform",
    "VarianceScaling", "XavierNormal", "XavierUniform", "Zero", "initializer",
]  # fmt: skip

_ALIASES: dict[str, Callable[[], Initializer]] = {}


def _register(*aliases: str) -> Callable[[type[Initializer]], type[Initializer]]:
    """Makes a class known by its name in lower case, and by these."""

    def keep(cls: type[Initializer]) -> type[Initializer]:
        for name in (cls.__name__.lower(), *aliases):
            _ALIASES[name] = cls
        return cls

    return keep


def _generator() -> np.random.Generator:
    """A generator that the global seed decides."""
    return np.random.Generator(np.random.SFC64(int(np.random.randint(0, 1 << 31))))


class Initializer:
    """Fills an array.   Subclasses define `_initialize(arr)`, which writes into it."""

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs
        self._seed: Any = None

    @property
    def seed(self) -> Any:
        return self._seed

    @seed.setter
    def seed(self, value: Any) -> None:
        self._seed = value

    def _initialize(self, *kwargs: Any) -> None:
        raise NotImplementedError("Initializer: a subclass must define _initialize(arr)")

    def __call__(self, arr: Array) -> None:
        self._initialize(arr)


@_register("zeros")
class Zero(Initializer):
    """Zeros."""

    def _initialize(self, arr: Array) -> None:
        arr[...] = 0


@_register("ones")
class One(Initializer):
    """Ones."""

    def _initialize(self, arr: Array) -> None:
        arr[...] = 1


class Constant(Initializer):
    """One value everywhere."""

    def __init__(self, value: Any) -> None:
        super().__init__(value=value)
        self.value = value

    def _initialize(self, arr: Array) -> None:
        arr[...] = self.value.asnumpy() if isinstance(self.value, Tensor) else self.value


@_register()
class Normal(Initializer):
    """N(mean, sigma^2)."""

    def __init__(self, sigma: float = 0.01, mean: float = 0.0) -> None:
        super().__init__(sigma=sigma, mean=mean)
        self.sigma, self.mean = sigma, mean

    def _initialize(self, arr: Array) -> None:
        _fill_normal(arr, self.mean, self.sigma)


@_register()
class Uniform(Initializer):
    """U(-scale, scale)."""

    def __init__(self, scale: float = 0.07) -> None:
        super().__init__(scale=scale)
        self.scale = scale

    def _initialize(self, arr: Array) -> None:
        _fill_uniform(arr, -self.scale, self.scale)


@_register()
class TruncatedNormal(Initializer):
    """N(mean, sigma^2), where only values within [a, b] are taken."""

    def __init__(self, sigma: float = 0.01, mean: float = 0.0, a: float = -2.0, b: float = 2.0) -> None:
        super().__init__(sigma=sigma, mean=mean, a=a, b=b)
        self.sigma, self.mean, self.a, self.b = sigma, mean, a, b

    def _initialize(self, arr: Array) -> None:
        _fill_truncated(arr, self.mean, self.sigma, self.a, self.b)


@_register("xavier_uniform")
class XavierUniform(Initializer):
    """U(-r, r) with r = gain sqrt(6 / (fan_in + fan_out))."""

    def __init__(self, gain: float = 1) -> None:
        super().__init__(gain=gain)
        self.gain = gain

    def _initialize(self, arr: Array) -> None:
        bound = self.gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(arr.shape)))
        _fill_uniform(arr, -bound, bound)


@_register("xavier_normal")
class XavierNormal(Initializer):
    """N(0, s^2) with s = gain sqrt(2 / (fan_in + fan_out))."""

    def __init__(self, gain: float = 1) -> None:
        super().__init__(gain=gain)
        self.gain = gain

    def _initialize(self, arr: Array) -> None:
        _fill_normal(arr, 0.0, self.gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(arr.shape))))


@_register("he_uniform")
class HeUniform(Initializer):
    """U(-r, r) with r = gain sqrt(3 / fan)."""

    def __init__(self, negative_slope: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> None:
        super().__init__(negative_slope=negative_slope, mode=mode, nonlinearity=nonlinearity)
        self.negative_slope, self.mode, self.nonlinearity = negative_slope, mode, nonlinearity

    def _initialize(self, arr: Array) -> None:
        fan = _calculate_correct_fan(arr.shape, self.mode)
        bound = _calculate_gain(self.nonlinearity, self.negative_slope) * math.sqrt(3.0 / fan)
        _fill_uniform(arr, -bound, bound)


@_register("he_normal")
class HeNormal(Initializer):
    """N(0, s^2) with s = gain / sqrt(fan)."""

    def __init__(self, negative_slope: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> None:
        super().__init__(negative_slope=negative_slope, mode=mode, nonlinearity=nonlinearity)
        self.negative_slope, self.mode, self.nonlinearity = negative_slope, mode, nonlinearity

    def _initialize(self, arr: Array) -> None:
        fan = _calculate_correct_fan(arr.shape, self.mode)
        _fill_normal(arr, 0.0, _calculate_gain(self.nonlinearity, self.negative_slope) / math.sqrt(fan))


@_register()
class Identity(Initializer):
    """The identity matrix: two dimensions only."""

    def _initialize(self, arr: Array) -> None:
        if arr.ndim != 2:
            raise ValueError(f"For 'Identity', the dimension of tensor must be 2, but got {arr.ndim}.")
        arr[...] = np.eye(*arr.shape)


@_register()
class Sparse(Initializer):
    """N(0, sigma^2), with that fraction of each column zero."""

    def __init__(self, sparsity: float, sigma: float = 0.01) -> None:
        super().__init__(sparsity=sparsity, sigma=sigma)
        self.sparsity, self.sigma = sparsity, sigma

    def _initialize(self, arr: Array) -> None:
        if arr.ndim != 2:
            raise ValueError(f"For 'Sparse', the dimension of tensor must be 2, but got {arr.ndim}.")
        _fill_normal(arr, 0.0, self.sigma)
        rows = math.ceil(self.sparsity * arr.shape[0])
        rng = _generator()
        for column in range(arr.shape[1]):
            arr[rng.permutation(arr.shape[0])[:rows], column] = 0


@_register()
class Dirac(Initializer):
    """A convolution that hands its input on."""

    def __init__(self, groups: int = 1) -> None:
        super().__init__(groups=groups)
        self.groups = groups

    def _initialize(self, arr: Array) -> None:
        if arr.ndim not in (3, 4, 5):
            raise ValueError(f"For 'Dirac', only support 3, 4, 5 dimensions, but got {arr.ndim}.")
        if arr.shape[0] % self.groups:
            raise ValueError(
                f"For 'Dirac', the first dimension of shape must be a multiple of groups, but got {arr.shape[0]} and {self.groups}."
            )
        arr[...] = 0
        per_group = arr.shape[0] // self.groups
        centre = tuple(d // 2 for d in arr.shape[2:])
        for group in range(self.groups):
            for i in range(min(per_group, arr.shape[1])):
                place = (group * per_group + i, i, *centre)
                arr[place] = 1


@_register()
class Orthogonal(Initializer):
    """Rows (or columns, where there are fewer) that are orthogonal, times a gain."""

    def __init__(self, gain: float = 1.0) -> None:
        super().__init__(gain=gain)
        self.gain = gain

    def _initialize(self, arr: Array) -> None:
        if arr.ndim < 2:
            raise ValueError(f"For 'Orthogonal', the dimension of tensor must be at least 2, but got {arr.ndim}.")
        rows = arr.shape[0]
        flat = _generator().standard_normal((rows, arr.size // rows))
        q, r = np.linalg.qr(flat.T if rows < flat.shape[1] else flat)
        q = q * np.where(np.diag(r) < 0, -1.0, 1.0)
        arr[...] = self.gain * (q.T if rows < flat.shape[1] else q).reshape(arr.shape)


@_register()
class VarianceScaling(Initializer):
    """Values whose variance is scale / fan.   distribution: uniform, truncated_normal or untruncated_normal."""

    def __init__(self, scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal") -> None:
        super().__init__(scale=scale, mode=mode, distribution=distribution)
        if scale <= 0:
            raise ValueError(f"For 'VarianceScaling', the argument 'scale' must be greater than 0, but got {scale}.")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(f"For 'VarianceScaling', the argument 'mode' must be fan_in, fan_out or fan_avg, but got {mode}.")
        if distribution not in ("uniform", "truncated_normal", "untruncated_normal"):
            raise ValueError(
                "For 'VarianceScaling', the argument 'distribution' must be uniform, truncated_normal or untruncated_normal, "
                f"but got {distribution}."
            )
        self.scale, self.mode, self.distribution = scale, mode, distribution

    def _initialize(self, arr: Array) -> None:
        fan_in, fan_out = _calculate_fan_in_and_fan_out(arr.shape)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        std = math.sqrt(self.scale / max(1.0, fan))
        if self.distribution == "uniform":
            _fill_uniform(arr, -math.sqrt(3) * std, math.sqrt(3) * std)
        elif self.distribution == "untruncated_normal":
            _fill_normal(arr, 0.0, std)
        else:
            wide = std / 0.8796256610342398  # the standard deviation of N(0, 1) between -2 and 2
            _fill_truncated(arr, 0.0, wide, -2 * wide, 2 * wide)


def initializer(init: Any, shape: Any = None, dtype: Any = types.float32) -> Tensor:
    """A tensor of that shape.   init: a name, a number, an Initializer or a tensor of that shape.

    >>> initializer("ones", [2], types.float16).dtype
    mindspore.float16
    """
    if not isinstance(init, Tensor | int | float | str | Initializer):
        raise TypeError(
            "For 'initializer', the type of the 'init' argument should be 'Tensor', 'number', 'string' or 'initializer', "
            f"but got {type(init)}."
        )
    if isinstance(init, Tensor):
        if shape is not None and tuple(init.shape) != _checked_shape(shape):
            raise ValueError(
                "For 'initializer', the shape of the 'init' argument should be same as the argument 'shape', "
                f"but got the 'init' shape {list(init.shape)} and the 'shape' {shape}."
            )
        return init
    dims = _checked_shape(shape)
    wanted = types.as_type(dtype)
    array = np.empty(dims, np.float32 if wanted.is_floating_point and wanted.itemsize < 4 else wanted.numpy)
    _filler(init)(array)
    return wrap(array.astype(wanted.numpy, copy=False))


_SKIP = [0]  # how many blocks of `only_zeros` are open


@contextmanager
def only_zeros() -> Iterator[None]:
    """Within it every initialiser leaves zeros."""
    _SKIP[0] += 1
    try:
        yield
    finally:
        _SKIP[0] -= 1


def _filler(init: Any) -> Initializer:
    """The initialiser that is meant."""
    if _SKIP[0]:
        return Zero()
    if isinstance(init, Initializer):
        return init
    if isinstance(init, str):
        found = _ALIASES.get(init.lower())
        if found is None:
            raise ValueError(f"For 'initializer', the class corresponding to '{init}' was not found.")
        return found()
    return Constant(init)


def _checked_shape(shape: Any) -> tuple[int, ...]:
    dims = (shape,) if isinstance(shape, int) else shape
    if not isinstance(dims, tuple | list) or any(isinstance(d, bool) or not isinstance(d, int | np.integer) or d <= 0 for d in dims):
        raise ValueError(
            f"For 'initializer', the argument 'shape' is invalid, the value of 'shape' must be positive integer, but got {shape}"
        )
    return tuple(int(d) for d in dims)


def _fill_normal(arr: Array, mean: float, sigma: float) -> None:
    kind = np.float64 if arr.dtype == np.float64 else np.float32
    arr[...] = _generator().standard_normal(arr.shape, kind) * kind(sigma) + kind(mean)


def _fill_uniform(arr: Array, low: float, high: float) -> None:
    kind = np.float64 if arr.dtype == np.float64 else np.float32
    arr[...] = _generator().random(arr.shape, kind) * kind(high - low) + kind(low)


def _fill_truncated(arr: Array, mean: float, sigma: float, low: float, high: float) -> None:
    """By rejection; where hardly anything would be taken, an error rather than an endless search."""
    rng = _generator()
    flat = rng.standard_normal(arr.size) * sigma + mean
    for _ in range(1000):
        bad = np.flatnonzero((flat < low) | (flat > high))
        if not bad.size:
            arr[...] = flat.reshape(arr.shape)
            return
        flat[bad] = rng.standard_normal(bad.size) * sigma + mean
    raise ValueError(f"TruncatedNormal: the interval must hold a part of N({mean}, {sigma}^2), got [{low}, {high}]")


def _assignment(arr: Array, num: Any) -> Array:
    """The array, filled with a number or with the values of an array."""
    arr[...] = num
    return arr


def _calculate_fan_in_and_fan_out(shape: Any) -> tuple[int, int]:
    """How many numbers each output depends on, and each input acts on."""
    if len(shape) < 2:
        raise ValueError(
            f"'fan_in' and 'fan_out' can not be computed for tensor with fewer than 2 dimensions, but got dimensions {len(shape)}."
        )
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def _calculate_correct_fan(shape: Any, mode: str) -> int:
    """One of the two."""
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"'mode' {mode} not supported, please use one of ['fan_in', 'fan_out'].")
    return _calculate_fan_in_and_fan_out(shape)[mode.lower() == "fan_out"]


def _calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """How much larger weights before an activation must be."""
    if nonlinearity in ("linear", "sigmoid", "conv1d", "conv2d", "conv3d"):
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, int | float):
            raise ValueError(f"For 'HeUniform', 'negative_slope' {slope} is not a valid number.")
        return math.sqrt(2.0 / (1 + slope**2))
    raise ValueError(
        f"For 'HeUniform', the argument 'nonlinearity' should be one of ['sigmoid', 'tanh', 'relu' or 'leaky_relu'], but got {nonlinearity}."
    )
