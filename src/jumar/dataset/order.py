"""Orders that follow from a seed alone: the shuffles of samplers are those of MindSpore for the same seed.

In: a seed, the number of a pass, how many rows.  Out: permutations and draws (samplers.py, stages.py), and the random numbers of a row (`row_generator`).
MindSpore shuffles with C++'s `std::shuffle` over `std::mt19937`; both are public standards, so the order can be computed here from
NumPy's Mersenne Twister: two draws at once while the product of their ranges fits 32 bits, each by rejection.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from jumar.dataset import config

Array = np.ndarray[Any, np.dtype[Any]]
_FULL = 0xFFFFFFFF


class Twister:
    """`std::mt19937`: a stream of 32-bit words."""

    def __init__(self, seed: int) -> None:
        self._state = np.random.RandomState(seed & _FULL)

    def words(self, count: int) -> Array:
        return np.frombuffer(self._state.bytes(4 * count), dtype="<u4").astype(np.uint64)

    def word(self) -> int:
        return int.from_bytes(self._state.bytes(4), "little")

    def below(self, bounds: Array) -> Array:
        """One uniform integer below each bound (each at most 2**32 - 1), as `std::uniform_int_distribution` draws them one after the other."""
        bounds = bounds.astype(np.uint64)
        scale = np.uint64(_FULL) // bounds
        out = np.empty(len(bounds), np.int64)
        done = 0
        stock = np.empty(0, np.uint64)
        while done < len(bounds):
            if len(stock) < len(bounds) - done:
                stock = np.concatenate([stock, self.words(len(bounds) - done - len(stock))])
            s, b = scale[done:], bounds[done:]
            x = stock[: len(s)]
            bad = np.flatnonzero(x >= b * s)
            good = int(bad[0]) if len(bad) else len(s)
            out[done : done + good] = x[:good] // s[:good]
            stock = stock[good + (1 if len(bad) else 0) :]  # a rejected word is dropped and its bound drawn again
            done += good
        return out


def shuffled(count: int, seed: int) -> Array:
    """The permutation that `std::shuffle` gives 0 .. count-1 with `std::mt19937(seed)`.

    >>> shuffled(8, 5).tolist()
    [3, 0, 5, 2, 4, 6, 7, 1]
    """
    if count < 2:
        return np.arange(count)
    draws = Twister(seed)
    if _FULL // count >= count:
        odd = [0] if count % 2 else [int(draws.below(np.array([2]))[0]), 0]
        first = np.arange(len(odd), count, 2, dtype=np.uint64) + np.uint64(1)
        pairs = draws.below(first * (first + np.uint64(1)))
        places = np.empty(count, np.int64)
        places[: len(odd)] = [0, *odd[:-1]] if len(odd) > 1 else [0]
        places[len(odd) :: 2] = pairs // (first + np.uint64(1)).astype(np.int64)
        places[len(odd) + 1 :: 2] = pairs % (first + np.uint64(1)).astype(np.int64)
    else:
        places = np.concatenate([np.zeros(1, np.int64), draws.below(np.arange(2, count + 1))])
    order = list(range(count))
    for i, j in enumerate(places.tolist()):
        order[i], order[j] = order[j], order[i]
    return np.array(order)


_orders: dict[tuple[int, int, int], tuple[int, Array]] = {}  # (count, seed, step) -> the last pass asked for, and its order


def pass_order(count: int, seed: int, number: int, step: int = 1) -> Array:
    """The order of pass `number`: each pass shuffles the order before it once more, with `seed + number * step`."""
    last, order = _orders.get((count, seed, step), (-1, np.arange(count)))
    if last > number:
        last, order = -1, np.arange(count)
    for n in range(last + 1, number + 1):
        order = order[shuffled(count, seed + n * step)]
    while len(_orders) >= 8:
        _orders.pop(next(iter(_orders)), None)
    _orders[count, seed, step] = (number, order)
    return order


@dataclass(frozen=True)
class RowKey:
    """What the random numbers of a row follow from: nothing but the seed, the stage, the pass and the row's number in it."""

    seed: int
    stage: int
    number: int
    index: int


class _Current(threading.local):
    key: RowKey | None = None
    generator: np.random.Generator | None = None


_current = _Current()
_eager = np.random.default_rng()
_eager_seed: int | None = None


def set_row(key: RowKey | None) -> None:
    """Says which row this thread works on; its generator is made when first asked for."""
    _current.key = key
    _current.generator = None


def make_generator(key: RowKey) -> np.random.Generator:
    """The generator of a row: Philox with (seed, stage) as its key and (index, pass) in its counter."""
    bits = np.random.Philox(key=np.array([key.seed, key.stage], np.uint64), counter=np.array([0, 0, key.index, key.number], np.uint64))
    return np.random.Generator(bits)


def row_generator() -> np.random.Generator:
    """The random numbers for the row at hand; outside a pipeline those that follow from `config.set_seed`."""
    global _eager, _eager_seed  # noqa: PLW0603
    if _current.generator is not None:
        return _current.generator
    if _current.key is not None:
        _current.generator = make_generator(_current.key)
        return _current.generator
    seed = config.get_seed()
    if seed != _eager_seed:
        _eager_seed = seed
        _eager = np.random.default_rng(seed if seed != config.DEFAULT_SEED else None)
    return _eager
