"""Samplers: which rows of a source a pass reads, and in which order.

In: how many rows there are, a seed, the number of the pass.  Out: the indices (sources.py).
Orders follow from (seed, pass) only; those of MindSpore's Random, Distributed and SubsetRandom samplers are met exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from jumar.dataset.enums import Shuffle
from jumar.dataset.errors import DataFault, DataTypeFault, DataValueFault, check_bool, check_int
from jumar.dataset.order import Array, Twister, pass_order


class Sampler:
    """A user's sampler: subclass it and write `__iter__`, which gives indices; `self.dataset_size` is the number of rows."""

    def __init__(self, num_samples: int | None = None) -> None:
        who = type(self).__name__
        self.num_samples = None if num_samples is None else check_int(who, "num_samples", num_samples, 0)
        self.child_sampler: Sampler | None = None
        self.dataset_size = 0
        self.batch_size = 1

    def __iter__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: a subclass of Sampler must define __iter__")

    def order(self, count: int, seed: int, number: int) -> Array:
        """The indices of pass `number` among `count` rows."""
        self.dataset_size = count
        found: list[int] = []
        for one in self:
            found += [int(i) for i in one] if isinstance(one, (list, tuple, np.ndarray)) and np.ndim(one) else [int(one)]
            if self.num_samples and len(found) >= self.num_samples:
                break
        return np.array(found[: self.num_samples or None], np.int64)

    def count(self, count: int) -> int:
        """How many indices a pass has."""
        return len(self.order(count, 0, 0))

    def _first(self, count: int) -> int:
        return min(count, self.num_samples) if self.num_samples else count

    def indices(self, count: int, seed: int, number: int, classes: Callable[[], Sequence[int]] | None = None) -> Array:
        """The order, taken from what the child sampler leaves where there is one, and checked against `count`."""
        below = self.child_sampler.indices(count, seed, number, classes) if self.child_sampler else None
        if isinstance(self, PKSampler):
            self.labels = None if classes is None else list(classes())
        found = self.order(count if below is None else len(below), seed, number)
        limit = count if below is None else len(below)
        if len(found) and not (found.min() >= 0 and found.max() < limit):
            bad = int(found.max()) if found.max() >= limit else int(found.min())
            raise DataValueFault(f"{type(self).__name__}: an index must be within [0, {limit}), got {bad}")
        return found if below is None else below[found]

    def size(self, count: int, classes: Callable[[], Sequence[int]] | None = None) -> int:
        if isinstance(self, PKSampler) or self.child_sampler or type(self).count is Sampler.count:
            return len(self.indices(count, 0, 0, classes))
        return self.count(count)

    def add_child(self, sampler: Sampler) -> None:
        if self.child_sampler is not None:
            raise DataFault(f"{type(self).__name__}: a sampler must have one child at most, got a second")
        self.child_sampler = sampler

    def get_child(self) -> Sampler | None:
        return self.child_sampler

    def get_num_samples(self) -> int | None:
        return self.num_samples

    def is_shuffled(self) -> bool:
        return bool(self.child_sampler and self.child_sampler.is_shuffled())

    def is_sharded(self) -> bool:
        return bool(self.child_sampler and self.child_sampler.is_sharded())

    def shard(self) -> int:
        """Which shard this process reads."""
        return self.child_sampler.shard() if self.child_sampler else 0


class BuiltinSampler(Sampler):
    """The base of the samplers of this file."""


class SequentialSampler(BuiltinSampler):
    """Rows in order, from `start_index`.

    >>> SequentialSampler(2, 3).order(8, 0, 0).tolist()
    [2, 3, 4]
    """

    def __init__(self, start_index: int | None = None, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self.start_index = 0 if start_index is None else check_int("SequentialSampler", "start_index", start_index, 0)

    def order(self, count: int, seed: int, number: int) -> Array:
        if self.start_index > count:
            raise DataValueFault(f"SequentialSampler: start_index must be within [0, {count}], got {self.start_index}")
        return np.arange(self.start_index, self.start_index + self.count(count))

    def count(self, count: int) -> int:
        return self._first(max(0, count - self.start_index))


class RandomSampler(BuiltinSampler):
    """Rows in an order that each pass shuffles anew; with `replacement` each index is drawn by itself.

    >>> RandomSampler().order(8, 5, 0).tolist()
    [3, 0, 5, 2, 4, 6, 7, 1]
    """

    def __init__(self, replacement: bool = False, num_samples: int | None = None, shuffle: Shuffle = Shuffle.GLOBAL) -> None:
        super().__init__(num_samples)
        self.replacement = check_bool("RandomSampler", "replacement", replacement)
        if shuffle not in (Shuffle.GLOBAL, Shuffle.ADAPTIVE):
            raise DataValueFault(f"RandomSampler: shuffle must be Shuffle.GLOBAL, got {shuffle!r}")
        self.reshuffle_each_epoch = True

    def order(self, count: int, seed: int, number: int) -> Array:
        number = number if self.reshuffle_each_epoch else 0
        if self.replacement:
            return Twister(seed + number).below(np.full(self.count(count), count))
        return pass_order(count, seed, number)[: self.count(count)]

    def count(self, count: int) -> int:
        return (self.num_samples or count) if self.replacement else self._first(count)

    def is_shuffled(self) -> bool:
        return True


class DistributedSampler(BuiltinSampler):
    """Every `num_shards`-th row from `shard_id` on; shards are made equal by reading again from the start, unless `offset` says where padding lies.

    >>> [DistributedSampler(3, i, shuffle=False).order(7, 0, 0).tolist() for i in range(3)]
    [[0, 3, 6], [1, 4, 0], [2, 5, 1]]
    """

    def __init__(self, num_shards: int, shard_id: int, shuffle: bool = True, num_samples: int | None = None, offset: int = -1) -> None:
        super().__init__(num_samples)
        self.num_shards = check_int("DistributedSampler", "num_shards", num_shards, 1)
        self.shard_id = check_int("DistributedSampler", "shard_id", shard_id, 0, num_shards - 1)
        self.shuffle = check_bool("DistributedSampler", "shuffle", shuffle)
        self.offset = check_int("DistributedSampler", "offset", offset, -1, num_shards)

    def order(self, count: int, seed: int, number: int) -> Array:
        if not count:
            return np.empty(0, np.int64)
        places = (self.shard_id + self.num_shards * np.arange(self.count(count))) - max(self.offset, 0)
        if self.offset >= 0:
            places = self.num_shards * np.arange(count // self.num_shards + 2) + self.shard_id - self.offset
            places = places[(places >= 0) & (places < count)][: self.count(count)]
        rows = pass_order(count, seed + 1, number) if self.shuffle else np.arange(count)  # MindSpore counts its distributed seeds from one
        return rows[places % count]

    def count(self, count: int) -> int:
        if self.offset >= 0:
            places = self.num_shards * np.arange(count // self.num_shards + 2) + self.shard_id - self.offset
            return self._first(int(((places >= 0) & (places < count)).sum()))
        return self._first(-(-count // self.num_shards))

    def is_shuffled(self) -> bool:
        return self.shuffle

    def is_sharded(self) -> bool:
        return True

    def shard(self) -> int:
        return self.shard_id


class SubsetSampler(BuiltinSampler):
    """The rows with the given indices, in that order."""

    def __init__(self, indices: Iterable[int] | int, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        found = [indices] if isinstance(indices, (int, np.integer)) else list(indices)
        for i in found:
            if isinstance(i, bool) or not isinstance(i, (int, np.integer)):
                raise DataTypeFault(f"{type(self).__name__}: indices must be integers, got {i!r}")
        self.subset = np.array(found, np.int64)

    def order(self, count: int, seed: int, number: int) -> Array:
        return self.subset[: self.count(count)]

    def count(self, count: int) -> int:
        return self._first(len(self.subset))


class SubsetRandomSampler(SubsetSampler):
    """The rows with the given indices, shuffled anew in each pass."""

    def order(self, count: int, seed: int, number: int) -> Array:
        first = self.subset[: self.count(count)]
        return first[pass_order(len(first), seed, number, 0)]

    def is_shuffled(self) -> bool:
        return True


class IterSampler(SubsetSampler):
    """Indices from a list or any iterable that gives the same ones each time it is walked."""


class WeightedRandomSampler(BuiltinSampler):
    """Rows drawn with probabilities in proportion to `weights`, anew in each pass."""

    def __init__(self, weights: Sequence[float], num_samples: int | None = None, replacement: bool = True) -> None:
        super().__init__(num_samples)
        values = np.asarray(weights, np.float64)
        if values.ndim != 1 or not len(values):
            raise DataValueFault(f"WeightedRandomSampler: weights must be a list of numbers, got {weights!r}")
        if not np.isfinite(values).all() or (values < 0).any() or not values.any():
            raise DataValueFault("WeightedRandomSampler: weights must be finite, not negative and not all zero, got others")
        self.weights = values
        self.replacement = check_bool("WeightedRandomSampler", "replacement", replacement)

    def order(self, count: int, seed: int, number: int) -> Array:
        if len(self.weights) > count:
            raise DataValueFault(f"WeightedRandomSampler: weights must be one for each of the {count} rows, got {len(self.weights)}")
        p = self.weights / self.weights.sum()
        if not self.replacement and np.count_nonzero(p) < self.count(count):
            raise DataValueFault(f"WeightedRandomSampler: num_samples must be at most the rows with a weight, got {self.count(count)}")
        draws = np.random.default_rng([seed, number])
        return draws.choice(len(p), self.count(count), replace=self.replacement, p=p)

    def count(self, count: int) -> int:
        return self.num_samples or len(self.weights)

    def is_shuffled(self) -> bool:
        return True


class PKSampler(BuiltinSampler):
    """`num_val` rows of each of `num_class` classes, for sources with labels."""

    def __init__(
        self, num_val: int, num_class: int | None = None, shuffle: bool = False, class_column: str = "label", num_samples: int | None = None
    ) -> None:
        super().__init__(num_samples)
        self.num_val = check_int("PKSampler", "num_val", num_val, 1)
        if num_class is not None:
            raise NotImplementedError("PKSampler: num_class must be None (all classes), as in MindSpore")
        self.shuffle = check_bool("PKSampler", "shuffle", shuffle)
        self.class_column = class_column
        self.labels: list[int] | None = None

    def order(self, count: int, seed: int, number: int) -> Array:
        if self.labels is None:
            raise DataFault(
                "PKSampler: the source must have labels, got one without", hint="ImageFolder, Mnist, Cifar and Mind datasets have"
            )
        labels = np.asarray(self.labels)
        draws = np.random.default_rng([seed, number])
        found: list[int] = []
        for label in np.unique(labels):
            rows = np.flatnonzero(labels == label)
            if self.shuffle:
                rows = draws.permutation(rows)
            found += np.resize(rows, self.num_val).tolist()
        return np.array(found[: self.num_samples or None], np.int64)

    def is_shuffled(self) -> bool:
        return self.shuffle


def choose_sampler(
    who: str,
    sampler: Sampler | Iterable[int] | None,
    num_samples: int | None,
    shuffle: bool | Shuffle | None,
    num_shards: int | None,
    shard_id: int | None,
    default_shuffle: bool = True,
) -> Sampler:
    """The sampler that a source's arguments ask for; arguments that contradict each other are refused."""
    if num_samples is not None:
        num_samples = check_int(who, "num_samples", num_samples, 0) or None
    if (num_shards is None) != (shard_id is None):
        raise DataFault(f"{who}: num_shards and shard_id must be given together, got num_shards={num_shards}, shard_id={shard_id}")
    if sampler is not None:
        if num_shards is not None or shuffle is not None or num_samples is not None:
            raise DataValueFault(
                f"{who}: sampler must stand alone, got num_samples={num_samples}, num_shards={num_shards}, shard_id={shard_id}, shuffle={shuffle}"
            )
        if isinstance(sampler, Sampler):
            return sampler
        if not isinstance(sampler, Iterable):
            raise DataTypeFault(f"{who}: sampler must be a Sampler or an iterable of indices, got {type(sampler).__name__}")
        return IterSampler(sampler)
    if isinstance(shuffle, Shuffle):
        shuffle = shuffle is not Shuffle.FALSE
    if shuffle is not None:
        check_bool(who, "shuffle", shuffle)
    mixed = default_shuffle if shuffle is None else shuffle
    if num_shards is not None:
        num_shards = check_int(who, "num_shards", num_shards, 1)
        return DistributedSampler(num_shards, check_int(who, "shard_id", shard_id, 0, num_shards - 1), mixed, num_samples)
    # as in MindSpore, num_samples of a source that shuffles are drawn with replacement
    return RandomSampler(num_samples is not None, num_samples) if mixed else SequentialSampler(num_samples=num_samples)
