"""Random numbers: normal, uniform, coin flips, draws; the same on every machine and every day, since each operator has its seed.

In: attributes, or probabilities.  Out: arrays from NumPy's `RandomState`, whose streams are frozen.  They run on the host.
"""
# mypy: disable-error-code="override, no-any-return"

from __future__ import annotations

import numpy as np

from jumar.base import Array, DType, OpError, TensorType, f16, f32, f64, i32, i64
from jumar.ir import Result, Sample, f32t, sample
from jumar.operators.families import Source, Special, wide


class RandomNormal(Source):
    """Normally distributed numbers around `mean` with standard deviation `scale`."""

    shape: tuple[int, ...]
    mean: float = 0.0
    scale: float = 1.0
    seed: int = 0
    dtype: DType = f32
    signature = "-> y[*shape]"
    samples = (sample(shape=(2, 3)), sample(shape=(), mean=2.0, scale=0.5, seed=7, dtype=f64), sample(shape=(0,), dtype=f16))

    def infer(self, *types: TensorType) -> Result:
        check_seed(self.name, self.seed)
        return TensorType(self.shape, self.dtype)

    def reference(self, *arrays: Array) -> Array:
        drawn = np.random.RandomState(self.seed).standard_normal(self.shape)
        return np.asarray(drawn * self.scale + self.mean)


class RandomUniform(Source):
    """Numbers between `low` and `high`, each as likely."""

    shape: tuple[int, ...]
    low: float = 0.0
    high: float = 1.0
    seed: int = 0
    dtype: DType = f32
    signature = "-> y[*shape]"
    samples = (
        sample(shape=(2, 3)),
        Sample((), {"shape": (), "low": -1.0, "high": 0.5, "seed": 7, "dtype": f64}),
        sample(shape=(0,), dtype=f16),
    )

    def infer(self, *types: TensorType) -> Result:
        check_seed(self.name, self.seed)
        return TensorType(self.shape, self.dtype)

    def reference(self, *arrays: Array) -> Array:
        return np.asarray(np.random.RandomState(self.seed).uniform(self.low, self.high, self.shape))


class Bernoulli(Special):
    """1 with probability x, else 0."""

    dtype: DType
    seed: int = 0
    signature = "x[...] -> y[...]"
    samples = (sample(f32t(3, 4), dtype=f32, low=0, high=1), sample(f32t(), dtype=i64, seed=3, low=0, high=1), sample(f32t(0), dtype=f64))

    def infer(self, *types: TensorType) -> Result:
        check_seed(self.name, self.seed)
        (x,) = types
        return x.with_dtype(self.dtype)

    def reference(self, x: Array) -> Array:
        drawn = np.random.RandomState(self.seed).uniform(0, 1, x.shape)
        return np.asarray(drawn < wide(x)).astype(self.dtype.numpy)


class Multinomial(Special):
    """`count` draws of a class for each row of logarithms of (unnormalised) probabilities."""

    count: int = 1
    seed: int = 0
    dtype: DType = i32
    signature = "x[batch, classes] -> y[batch, count]"
    samples = (sample(f32t(2, 5), count=4), sample(np.log(np.array([[0.0, 1.0, 0.0]], np.float32) + 1e-30), count=3, dtype=i64, seed=5))

    def infer(self, *types: TensorType) -> Result:
        check_seed(self.name, self.seed)
        (x,) = types
        if x.rank != 2 or x.shape[1] == 0:
            raise OpError(f"multinomial: x must be [batch, classes], got {x}", code="rank")
        return TensorType((x.shape[0], self.count), self.dtype)

    def reference(self, x: Array) -> Array:
        likely = np.exp(wide(x).astype(np.float64) - wide(x).max(axis=1, keepdims=True))
        edges = np.cumsum(likely, axis=1) / likely.sum(axis=1, keepdims=True)
        drawn = np.random.RandomState(self.seed).uniform(0, 1, (x.shape[0], self.count, 1))
        return np.minimum((drawn >= edges[:, None, :]).sum(axis=2), x.shape[1] - 1)


def check_seed(name: str, seed: int) -> None:
    """Refuses what NumPy's generator takes for no seed."""
    if not 0 <= seed < 2**32:
        raise OpError(f"{name}: seed must be within 0..{2**32 - 1}, got {seed}", code="attribute")
