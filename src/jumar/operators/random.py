"""Random numbers: normal, uniform, coin flips, draws; the same on every machine and every day, since each operator has its seed.

In: attributes, or probabilities.  Out: arrays from NumPy's `RandomState`, whose streams are frozen.  They run on the host.
`RandomBits` is the one for training: seed and place in the stream are inputs, and each element is a function of them and of its own index.
"""
# mypy: disable-error-code="override, no-any-return"

from __future__ import annotations

import numpy as np

from jumar.base import Array, DType, OpError, TensorType, f16, f32, f64, i32, i64, u32
from jumar.ir import Node, Result, Sample, f32t, sample
from jumar.operators.families import Source, Special, numel, wide


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

    def grad(self, x: Node, y: Node, dy: Node) -> tuple[None]:
        """A coin's fall is a step: no gradient flows."""
        return (None,)


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


class RandomBits(Special):
    """32 random bits for each element: Philox 4x32-10, a function of (key, offset, index of the element) alone.

    Element i is word i % 4 of the block whose counter is (low and high half of i // 4, low and high half of offset) under the key's two halves.
    """

    shape: tuple[int, ...]
    signature = "u64 key[], u64 offset[] -> u32 y[*shape]"
    samples = (
        sample(np.uint64(7), np.uint64(0), shape=(2, 5)),
        sample(np.uint64(2**63 + 11), np.uint64(2**40 + 3), shape=(4, 3, 3)),
        sample(np.uint64(0), np.uint64(1), shape=()),
        sample(np.uint64(0), np.uint64(0), shape=(0, 3)),
    )

    def infer(self, *types: TensorType) -> Result:
        return TensorType(self.shape, u32)

    def reference(self, key: Array, offset: Array) -> Array:
        count = numel(self.shape)
        return philox(int(key), int(offset), -(-count // 4)).reshape(-1)[:count].reshape(self.shape)


PHILOX_ROUNDS = 10
PHILOX_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)  # Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (2011)
PHILOX_WEYL = (0x9E3779B9, 0xBB67AE85)


def philox(key: int, offset: int, blocks: int) -> Array:
    """The first blocks of the stream `offset` of `key`.   -> u32 [blocks, 4]

    >>> [hex(word) for word in philox(0, 0, 1)[0]]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    index = np.arange(blocks, dtype=np.uint64)
    a, b = index & low, index >> half
    c, d = (np.full(blocks, v, np.uint64) for v in (offset & 0xFFFFFFFF, offset >> 32))
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(PHILOX_ROUNDS):
        first, second = a * np.uint64(PHILOX_MULTIPLIERS[0]), c * np.uint64(PHILOX_MULTIPLIERS[1])
        a, b, c, d = (second >> half) ^ b ^ np.uint64(k0), second & low, (first >> half) ^ d ^ np.uint64(k1), first & low
        k0, k1 = (k0 + PHILOX_WEYL[0]) & 0xFFFFFFFF, (k1 + PHILOX_WEYL[1]) & 0xFFFFFFFF
    return np.stack([a, b, c, d], axis=1).astype(np.uint32)


def check_seed(name: str, seed: int) -> None:
    """Refuses what NumPy's generator takes for no seed."""
    if not 0 <= seed < 2**32:
        raise OpError(f"{name}: seed must be within 0..{2**32 - 1}, got {seed}", code="attribute")
