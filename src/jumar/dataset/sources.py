"""Sources with rows at places: the base of all that can read row i, and the ones whose rows are in memory.

In: arrays, objects with `__getitem__` and `__len__`, functions that make iterators.  Out: the first stage of a pipeline.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Iterator as Rows
from dataclasses import dataclass
from typing import Any

import numpy as np

from jumar.base import StackError
from jumar.dataset.cache import DatasetCache
from jumar.dataset.dataset import Dataset
from jumar.dataset.enums import Shuffle
from jumar.dataset.errors import DataFault, DataTypeFault, DataValueFault, check_bool, check_int, names
from jumar.dataset.order import RowKey
from jumar.dataset.pipeline import Row, Run, Want
from jumar.dataset.samplers import IterSampler, Sampler, SequentialSampler, choose_sampler
from jumar.dataset.values import numpy_type, to_value
from jumar.dataset.workers import HOLE, Hole, work_on


@dataclass(frozen=True)
class ReadWork:
    """What a worker does: reads the row at a place."""

    read: Callable[[int], Row]
    cache: DatasetCache | None = None

    def __call__(self, key: RowKey, place: int) -> Row:
        return self.read(place) if self.cache is None else self.cache.row(place, self.read)


class SourceDataset(Dataset):
    """A source whose rows have places: `count()` of them, `read(place)` each.   A sampler says which ones a pass reads."""

    processes = False

    def __init__(
        self,
        num_samples: int | None,
        num_parallel_workers: int | None,
        shuffle: bool | Shuffle | None,
        sampler: Sampler | Iterable[int] | None,
        num_shards: int | None,
        shard_id: int | None,
        cache: DatasetCache | None = None,
        default_shuffle: bool = True,
    ) -> None:
        super().__init__((), num_parallel_workers, cache)
        if cache is not None and not isinstance(cache, DatasetCache):
            raise DataTypeFault(f"{type(self).__name__}: cache must be a DatasetCache, got {type(cache).__name__}")
        self.sampler = choose_sampler(type(self).__name__, sampler, num_samples, shuffle, num_shards, shard_id, default_shuffle)

    def count(self) -> int:
        raise NotImplementedError

    def read(self, place: int) -> Row:
        raise NotImplementedError

    def labels(self) -> Sequence[int] | None:
        """The class of each row, for PKSampler."""
        return None

    def _labels(self) -> Sequence[int]:
        found = self.labels()
        if found is None:
            raise DataFault(f"{type(self).__name__}: PKSampler must have labels, got a source without")
        return found

    def known_size(self) -> int | None:
        return self.sampler.size(self.count(), self._labels)

    def is_shuffled(self) -> bool:
        return self.sampler.is_shuffled()

    def is_sharded(self) -> bool:
        return self.sampler.is_sharded()

    def shard(self) -> int:
        return self.sampler.shard()

    def use_sampler(self, new_sampler: Sampler | Iterable[int]) -> None:
        self.sampler = new_sampler if isinstance(new_sampler, Sampler) else IterSampler(new_sampler)
        self.dataset_size = None

    def add_sampler(self, new_sampler: Sampler) -> None:
        """A sampler over what the present one leaves."""
        new_sampler.add_child(self.sampler)
        self.use_sampler(new_sampler)

    def unsampled(self) -> tuple[Dataset, bool]:
        if self.sampler.is_sharded() or self.sampler.child_sampler is not None or self.sampler.num_samples:
            return self, False
        return self.copy_of(sampler=SequentialSampler()), self.sampler.is_shuffled()

    def open(self, run: Run) -> None:
        run.pool(self, ReadWork(self.read, self.cache), self.workers(), self.processes and self.workers() > 1)

    def rows(self, run: Run, number: int, want: Want) -> Rows[Row | Hole]:
        order = self.sampler.indices(self.count(), run.seed_of(self), number, self._labels)
        yield from self._read(run, number, ((i, p if want is None or want(i) else None) for i, p in enumerate(order.tolist())))

    def picked(self, run: Run, number: int, order: Rows[int | None]) -> Rows[Row | Hole]:
        mine = self.sampler.indices(self.count(), run.seed_of(self), number, self._labels).tolist()
        yield from self._read(run, number, ((i or 0, None if i is None else mine[i]) for i in order))

    def _read(self, run: Run, number: int, places: Iterable[tuple[int, int | None]]) -> Rows[Row | Hole]:
        tasks = (HOLE if place is None else (run.key(self, number, i), place) for i, place in places)
        for result in run.pools[id(self)].run(tasks):
            if isinstance(result, StackError):
                raise result
            yield result


def to_row(result: Any, columns: list[str], who: str) -> Row:
    """What a user's source returned for one row, as values in the order of the columns."""
    if not isinstance(result, tuple):
        if isinstance(result, list):
            raise DataTypeFault(f"{who}: source must return an array, a number, a text or a tuple of them, got a list")
        result = (result,)
    if len(result) != len(columns):
        raise DataFault(f"{who}: source must return {len(columns)} values for the columns {columns}, got {len(result)}")
    # a copy: an operation that writes into its input must not change the user's array
    return tuple(v.copy() if isinstance(v, np.ndarray) else v for v in (to_value(v, who) for v in result))


@dataclass(frozen=True)
class ItemRead:
    """Row i of an object with `__getitem__`."""

    source: Any
    columns: list[str]
    types: list[Any] | None

    def __call__(self, place: int) -> Row:
        return checked(to_row(self.source[place], self.columns, "GeneratorDataset"), self.types, self.columns)


def checked(row: Row, types: list[Any] | None, columns: list[str]) -> Row:
    for value, kind, name in zip(row, types or [], columns):
        if kind is not None and isinstance(value, np.ndarray) and value.dtype != kind and not (value.dtype.kind == kind.kind == "U"):
            raise DataTypeFault(f"GeneratorDataset: column {name!r} must be {kind}, got {value.dtype}")
    return row


class GeneratorDataset(SourceDataset):
    """Rows that Python makes: from an object with `__getitem__` and `__len__`, or from an iterable or a function that gives iterators.

    >>> [r[0].tolist() for r in GeneratorDataset([3, 4], ["x"], shuffle=False).create_tuple_iterator(num_epochs=1, output_numpy=True)]
    [3, 4]
    """

    def __init__(
        self,
        source: Any,
        column_names: str | list[str] | None = None,
        column_types: list[Any] | None = None,
        schema: Any = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = 1,
        shuffle: bool | Shuffle | None = None,
        sampler: Sampler | Iterable[int] | None = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        python_multiprocessing: bool = True,
        max_rowsize: int | list[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        collate_fn: Callable[..., Any] | None = None,
    ) -> None:
        who = "GeneratorDataset"
        if schema is not None:
            column_names, column_types = schema.names(), schema.types()
        self.names = names(who, "column_names", column_names)
        if not self.names:
            raise DataValueFault(f"{who}: column_names must name the columns, got none")
        self.types = [numpy_type(t) for t in column_types] if column_types is not None else None
        if self.types is not None and len(self.types) != len(self.names):
            raise DataValueFault(f"{who}: column_types must be one for each of {self.names}, got {len(self.types)}")
        self.source = source
        self.random_access = not inspect.isclass(source) and hasattr(source, "__getitem__") and hasattr(source, "__len__")
        if not self.random_access and not callable(source) and not hasattr(source, "__iter__") and not hasattr(source, "__next__"):
            raise DataTypeFault(f"{who}: source must be iterable, callable or have __getitem__ and __len__, got {type(source).__name__}")
        if not self.random_access and (sampler is not None or num_shards is not None):
            raise DataValueFault(
                f"{who}: source must have __getitem__ and __len__ for a sampler or num_shards, got {type(source).__name__}"
            )
        if batch_sampler is not None and any(a is not None for a in (num_samples, shuffle, num_shards, shard_id, sampler)):
            raise DataValueFault(
                f"{who}: batch_sampler must stand alone, got it with num_samples, shuffle, num_shards, shard_id or sampler"
            )
        super().__init__(num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id)
        self.processes = check_bool(who, "python_multiprocessing", python_multiprocessing)
        self.num_samples = num_samples
        self.batch_sampler, self.collate_fn = batch_sampler, collate_fn
        if collate_fn is not None and batch_sampler is None:
            raise DataValueFault(f"{who}: collate_fn must come with batch_sampler, got it alone")

    def columns(self) -> list[str]:
        return list(self.names)

    def count(self) -> int:
        return len(self.source)

    def workers(self) -> int:
        return self.num_parallel_workers or 1

    def known_size(self) -> int | None:
        if self.batch_sampler is not None:
            return len(list(self.batch_sampler))
        if self.random_access:
            return super().known_size()
        if not hasattr(self.source, "__len__"):
            return None
        # asked, not counted: a walk would be one more pass over a source that may change with each
        return min(len(self.source), self.num_samples or len(self.source))

    def is_shuffled(self) -> bool:
        return self.random_access and super().is_shuffled()

    def unsampled(self) -> tuple[Dataset, bool]:
        return super().unsampled() if self.random_access and self.batch_sampler is None else (self, False)

    def open(self, run: Run) -> None:
        if self.batch_sampler is not None:
            work: Any = BatchRead(self.source, self.names, self.collate_fn)
        else:
            work = ReadWork(ItemRead(self.source, self.names, self.types))
        count = self.workers() if self.random_access else 1
        run.pool(self, work, count, self.processes and count > 1)

    def rows(self, run: Run, number: int, want: Want) -> Rows[Row | Hole]:
        if self.batch_sampler is not None:
            groups = [[int(i) for i in group] for group in self.batch_sampler]
            tasks = ((run.key(self, number, i), g) if want is None or want(i) else HOLE for i, g in enumerate(groups))
            for result in run.pools[id(self)].run(tasks):
                if isinstance(result, StackError):
                    raise result
                yield result
        elif self.random_access:
            yield from super().rows(run, number, want)
        else:
            yield from self._iterated(run, number, want)

    def picked(self, run: Run, number: int, order: Rows[int | None]) -> Rows[Row | Hole]:
        yield from (
            super().picked(run, number, order)
            if self.random_access and not self.batch_sampler
            else Dataset.picked(self, run, number, order)
        )

    def _iterated(self, run: Run, number: int, want: Want) -> Rows[Row | Hole]:
        """An iterable can only be walked: rows before a position are made and dropped."""
        rows = iter(self._fresh())
        end = object()

        def following(_: RowKey, __: Any) -> Any:
            try:
                result = next(rows)
            except StopIteration:
                return end
            return checked(to_row(result, self.names, "GeneratorDataset"), self.types, self.names)

        index = 0
        while not self.num_samples or index < self.num_samples:
            row = work_on("Generator", following, run.key(self, number, index), None)
            if row is end:
                return
            yield row if want is None or want(index) else HOLE
            index += 1

    def _fresh(self) -> Any:
        """An iterable for one pass.   A generator that was started can be walked once only, so its rows are kept for the next pass."""
        if inspect.isgenerator(self.source) or (
            hasattr(self.source, "__next__") and iter(self.source) is self.source and _once(self.source)
        ):
            if not isinstance(self.source, Kept):
                self.source = Kept(self.source)
            return self.source.walk()
        if isinstance(self.source, Kept):
            return self.source.walk()
        if callable(self.source) and not hasattr(self.source, "__iter__"):
            return self.source()
        if inspect.isclass(self.source):
            return self.source()
        return self.source


def _once(source: Any) -> bool:
    """Whether an iterator of Python's own cannot start again; a class of the user's starts again in `__iter__`."""
    return type(source).__module__ in ("builtins", "itertools")


class Kept:
    """Rows of an iterator that can be walked once, kept so that each epoch has them."""

    def __init__(self, source: Any) -> None:
        self.source, self.rows = source, []  # type: ignore[var-annotated]

    def __iter__(self) -> Rows[Any]:
        return self.walk()

    def walk(self) -> Rows[Any]:
        at = 0
        while True:
            if at == len(self.rows):
                try:
                    self.rows.append(next(self.source))
                except StopIteration:
                    return
            yield self.rows[at]
            at += 1


@dataclass(frozen=True)
class BatchRead:
    """The rows of one batch of a batch_sampler, put together."""

    source: Any
    columns: list[str]
    collate: Callable[..., Any] | None

    def __call__(self, _: RowKey, group: list[int]) -> Row:
        items = [self.source[i] for i in group]
        if self.collate is not None:
            made = self.collate(items)
            return to_row(tuple(made) if isinstance(made, list) else made, self.columns, "GeneratorDataset")
        rows = [to_row(item, self.columns, "GeneratorDataset") for item in items]
        return tuple(np.stack(column) for column in zip(*rows))


class NumpySlicesDataset(SourceDataset):
    """Rows along the first dimension of arrays: one array or list, a tuple of them, or a dict of columns."""

    def __init__(
        self,
        data: Any,
        column_names: str | list[str] | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = 1,
        shuffle: bool | Shuffle | None = None,
        sampler: Sampler | Iterable[int] | None = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
    ) -> None:
        who = "NumpySlicesDataset"
        found = names(who, "column_names", column_names)
        if isinstance(data, dict):
            parts, default = list(data.values()), list(data)
        else:
            parts = list(data) if isinstance(data, tuple) else [data]
            default = [f"column_{i}" for i in range(len(parts))]
        if not parts:
            raise DataValueFault(f"{who}: data must have a column, got none")
        self.arrays = [to_value(p, who) for p in parts]
        self.names = found or names(who, "column_names", default)
        if len(self.names) != len(self.arrays):
            raise DataValueFault(f"{who}: column_names must be {len(self.arrays)}, got {self.names}")
        lengths = [len(a) if np.ndim(a) else -1 for a in self.arrays]
        if len(set(lengths)) != 1 or lengths[0] < 0:
            raise DataValueFault(f"{who}: columns must have one length, got {lengths}")
        super().__init__(num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id)

    def columns(self) -> list[str]:
        return list(self.names)

    def workers(self) -> int:
        return 1  # a slice costs less than a worker

    def count(self) -> int:
        return len(self.arrays[0])

    def read(self, place: int) -> Row:
        return tuple(np.array(a[place]) for a in self.arrays)


class PaddedDataset(SourceDataset):
    """Rows that are given: to fill up a dataset to a multiple of the shards."""

    def __init__(self, padded_samples: list[dict[str, Any]]) -> None:
        if not isinstance(padded_samples, list) or not padded_samples or not all(isinstance(s, dict) for s in padded_samples):
            raise DataTypeFault(f"PaddedDataset: padded_samples must be a list of dicts, got {padded_samples!r}")
        super().__init__(None, 1, False, None, None, None)
        self.names = list(padded_samples[0])
        self.samples = [tuple(to_value(s[n], "PaddedDataset") for n in self.names) for s in padded_samples]

    def columns(self) -> list[str]:
        return list(self.names)

    def workers(self) -> int:
        return 1

    def count(self) -> int:
        return len(self.samples)

    def read(self, place: int) -> Row:
        return tuple(np.array(v) if isinstance(v, np.ndarray) else v for v in self.samples[place])


class RandomDataset(SourceDataset):
    """Random rows of given columns: `schema` says their types and shapes."""

    def __init__(
        self,
        total_rows: int | None = None,
        schema: Any = None,
        columns_list: list[str] | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        cache: DatasetCache | None = None,
        shuffle: bool | None = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
    ) -> None:
        super().__init__(num_samples, num_parallel_workers, shuffle, None, num_shards, shard_id, cache, default_shuffle=False)
        if schema is None:
            raise DataValueFault("RandomDataset: schema must say the columns, got none")
        self.total = check_int("RandomDataset", "total_rows", total_rows, 1) if total_rows is not None else 1000
        chosen = columns_list or schema.names()
        self.specs = [(c, t, s) for c, t, s in zip(schema.names(), schema.types(), schema.shapes()) if c in chosen]

    def columns(self) -> list[str]:
        return [c for c, _, _ in self.specs]

    def workers(self) -> int:
        return 1

    def count(self) -> int:
        return self.total

    def read(self, place: int) -> Row:
        draws = np.random.default_rng([place, len(self.specs)])
        return tuple(_random_value(draws, np.dtype(kind or "uint8"), tuple(shape or ())) for _, kind, shape in self.specs)


def _random_value(draws: np.random.Generator, kind: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    if kind.kind == "f":
        return np.asarray(draws.random(shape), kind)
    if kind.kind == "b":
        return np.asarray(draws.integers(2, size=shape), bool)
    return np.asarray(draws.integers(0, min(127, np.iinfo(kind).max), size=shape), kind)
