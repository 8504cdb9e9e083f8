"""Stages that choose, mix, join and rename rows: filter, flat_map, shuffle, repeat, skip, take, zip, concat, rename, project, split.

In: other stages.  Out: `Dataset`s (dataset.py makes them).  Each asks the stages below only for the rows that it is asked for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Iterator as Rows
from itertools import count as counting
from typing import Any

import numpy as np

from jumar.dataset import config
from jumar.dataset.dataset import Dataset
from jumar.dataset.errors import DataFault, DataTypeFault, DataValueFault, check_int, names
from jumar.dataset.order import make_generator
from jumar.dataset.pipeline import Row, Run, Want
from jumar.dataset.samplers import DistributedSampler, IterSampler, RandomSampler, Sampler, SequentialSampler
from jumar.dataset.workers import HOLE, Hole, work_on


def places(stage: Dataset, wanted: list[str], who: str) -> list[int]:
    """Where the named columns are in the rows of a stage."""
    have = stage.columns()
    for name in wanted:
        if name not in have:
            raise DataFault(f"{who}: a column must be among {have}, got {name!r}")
    return [have.index(name) for name in wanted]


class FilterDataset(Dataset):
    """The rows for which a function of the given columns (default: all) is true."""

    def __init__(
        self, child: Dataset, predicate: Callable[..., Any], input_columns: str | list[str] | None, num_parallel_workers: int | None
    ) -> None:
        super().__init__([child], num_parallel_workers)
        if not callable(predicate):
            raise DataTypeFault(f"filter: predicate must be a function, got {type(predicate).__name__}")
        self.predicate = predicate
        self.inputs = names("filter", "input_columns", input_columns)

    def known_size(self) -> int | None:
        return None

    def rows(self, run: Run, number: int, want: Want) -> Rows[Row | Hole]:
        chosen = places(self.children[0], self.inputs or self.columns(), "filter")

        def keep(_: Any, row: Row) -> bool:
            answer = self.predicate(*(row[p] for p in chosen))
            if np.size(answer) != 1 or not isinstance(np.asarray(answer).item(), (bool, int)):
                raise DataFault(f"filter: predicate must return a bool, got {answer!r}")
            return bool(answer)

        kept = 0
        for index, row in enumerate(run.rows(self.children[0], number)):
            if isinstance(row, Hole) or not work_on("filter", keep, run.key(self, number, index), row):
                continue
            yield row if want is None or want(kept) else HOLE
            kept += 1


class FlatMapDataset(Dataset):
    """The rows of the datasets that a function makes of each row, one after the other."""

    def __init__(self, child: Dataset, func: Callable[..., Any]) -> None:
        super().__init__([child])
        if not callable(func):
            raise DataTypeFault(f"flat_map: func must be a function, got {type(func).__name__}")
        self.func = func
        self._columns: list[str] | None = None

    def columns(self) -> list[str]:
        if self._columns is None:
            self._columns = self._inner(self.children[0].first_row()).columns()
        return self._columns

    def known_size(self) -> int | None:
        return None

    def _inner(self, row: Row) -> Dataset:
        inner = self.func(*row)
        if not isinstance(inner, Dataset):
            raise DataTypeFault(f"flat_map: func must return a Dataset, got {type(inner).__name__}")
        return inner

    def rows(self, run: Run, number: int, want: Want) -> Rows[Row | Hole]:
        given = 0
        for index, row in enumerate(run.rows(self.children[0], number)):
            if isinstance(row, Hole):
                continue
            inner = work_on("flat_map", lambda _, r: self._inner(r), run.key(self, number, index), row)
            seed = int(make_generator(run.key(self, number, index)).integers(2**32)) if inner.is_shuffled() else run.seed_of(self)
            inside = Run(seed, workers=False, first=1 << 16).enter(inner)
            before = given
            for one in inside.rows(inner, number, None if want is None else lambda i, before=before: want(before + i)):  # type: ignore[misc]
                yield one
                given += 1


class ShuffleDataset(Dataset):
    """Rows in the order in which they are drawn from a buffer."""

    def __init__(self, child: Dataset, buffer_size: int) -> None:
        super().__init__([child])
        self.buffer_size = check_int("shuffle", "buffer_size", buffer_size, 2)

    def is_shuffled(self) -> bool:
        return True

    def _drawn(self, run: Run, number: int, rows: Rows[Any]) -> Rows[Any]:
        draws = make_generator(run.key(self, number, 0))
        stock: list[int] = []
        buffer: list[Any] = []
        for row in rows:
            buffer.append(row)
            if len(buffer) > self.buffer_size:
                if not stock:
                    stock = draws.integers(self.buffer_size, size=1024).tolist()
                at = stock.pop()
                buffer[at], buffer[-1] = buffer[-1], buffer[at]
                yield buffer.pop()
        yield from (buffer[i] for i in draws.permutation(len(buffer)))

    def rows(self, run: Run, number: int, want: Want) -> Rows[Row | Hole]:
        size = self.children[0].known_size() if want is not None else None
        if want is None or size is None:
            for i, row in enumerate(self._drawn(run, number, run.rows(self.children[0], number))):
                yield row if want is None or want(i) else HOLE
            return
        needed = {row for i, row in enumerate(self._drawn(run, number, iter(range(size)))) if want(i)}
        yield from self._drawn(run, number, run.rows(self.children[0], number, needed.__contains__))


class RepeatDataset(Dataset):
    """Passes one after the other: pass n of this stage is passes n * count ... of the one below."""

    def __init__(self, child: Dataset, count: int | None) -> None:
        super().__init__([child])
        if count is not None and check_int("repeat", "count", count, -1) == 0:
            raise DataValueFault("repeat: count must be -1 or positive, got 0")
        self.count = -1 if count is None else int(count)

    def known_size(self) -> int | None:
        below = self.children[0].known_size()
        return below if below is None or self.count < 0 else below * self.count

    def _count(self) -> int:
        return self.children[0].get_dataset_size() * max(self.count, 1)

    def get_repeat_count(self) -> int:
        return self.count * self.children[0].get_repeat_count()

    def rows(self, run: Run, number: int, want: Want) -> Rows[Row | Hole]:
        given = 0
        child = self.children[0]
        passes = counting() if self.count < 0 else range(number * self.count, (number + 1) * self.count)
        for one in passes:
            before = given
            for row in run.rows(child, one, None if want is None else lambda i, before=before: want(before + i)):  # type: ignore[misc]
                yield row
                given += 1
            if self.count < 0 and given == before:
                return  # nothing to repeat


class SkipDataset(Dataset):
    def __init__(self, child: Dataset, count: int) -> None:
        super().__init__([child])
        self.count = check_int("skip", "count", count, 0)

    def known_size(self) -> int | None:
        below = self.children[0].known_size()
        return None if below is None else max(0, below - self.count)

    def rows(self, run: Run, number: int, want: Want) -> Rows[Row | Hole]:
        wanted = run.rows(self.children[0], number, lambda i: i >= self.count and (want is None or want(i - self.count)))
        for i, row in enumerate(wanted):
            if i >= self.count:
                yield row


class TakeDataset(Dataset):
    def __init__(self, child: Dataset, count: int) -> None:
        super().__init__([child])
        if check_int("take", "count", count, -1) == 0:
            raise DataValueFault("take: count must be -1 or positive, got 0")
        self.count = count

    def known_size(self) -> int | None:
        below = self.children[0].known_size()
        return below if below is None or self.count < 0 else min(below, self.count)

    def rows(self, run: Run, number: int, want: Want) -> Rows[Row | Hole]:
        limit = self.count if self.count > 0 else None
        rows = run.rows(self.children[0], number, want if limit is None else lambda i: i < limit and (want is None or want(i)))
        for i, row in enumerate(rows):
            yield row
            if i + 1 == limit:
                rows.close()  # type: ignore[attr-defined]
                return


class ZipDataset(Dataset):
    """Columns of several datasets side by side, for as long as the shortest has rows."""

    def __init__(self, children: Sequence[Dataset]) -> None:
        if not isinstance(children, (tuple, list)) or len(children) < 1:
            raise DataTypeFault(f"zip: datasets must be a tuple of datasets, got {children!r}")
        super().__init__(children)

    def columns(self) -> list[str]:
        found = [name for child in self.children for name in child.columns()]
        return names("zip", "columns", found)

    def known_size(self) -> int | None:
        sizes = [c.known_size() for c in self.children]
        return None if None in sizes else min(s for s in sizes if s is not None)

    def rows(self, run: Run, number: int, want: Want) -> Rows[Row | Hole]:
        for parts in zip(*(run.rows(c, number, want) for c in self.children)):
            yield HOLE if any(isinstance(p, Hole) for p in parts) else tuple(v for p in parts if isinstance(p, tuple) for v in p)


class ConcatDataset(Dataset):
    """The rows of several datasets one after the other; a sampler may choose among all of them."""

    def __init__(self, children: Sequence[Dataset]) -> None:
        super().__init__(children)
        self.sampler: Sampler | None = None

    def columns(self) -> list[str]:
        first = self.children[0].columns()
        for child in self.children[1:]:
            if child.columns() != first:
                raise DataFault(f"concat: all datasets must have the columns {first}, got {child.columns()}")
        return first

    def use_sampler(self, new_sampler: Sampler | Any) -> None:
        if isinstance(new_sampler, DistributedSampler) and new_sampler.offset < 0:  # over a concat no row is read twice, as in MindSpore
            n = new_sampler
            new_sampler = DistributedSampler(n.num_shards, n.shard_id, n.shuffle, n.num_samples, offset=0)
        self.sampler = new_sampler if isinstance(new_sampler, Sampler) else IterSampler(new_sampler)
        self.dataset_size = None

    def is_sharded(self) -> bool:
        return bool(self.sampler and self.sampler.is_sharded()) or super().is_sharded()

    def is_shuffled(self) -> bool:
        return bool(self.sampler and self.sampler.is_shuffled()) or super().is_shuffled()

    def shard(self) -> int:
        return max(self.sampler.shard() if self.sampler else 0, super().shard())

    def known_size(self) -> int | None:
        sizes = [c.known_size() for c in self.children]
        if None in sizes:
            return None
        total = sum(s for s in sizes if s is not None)
        return self.sampler.size(total) if self.sampler else total

    def _all(self, run: Run, number: int, want: Want) -> Rows[Row | Hole]:
        given = 0
        for child in self.children:
            before = given
            for row in run.rows(child, number, None if want is None else lambda i, before=before: want(before + i)):  # type: ignore[misc]
                yield row
                given += 1

    def rows(self, run: Run, number: int, want: Want) -> Rows[Row | Hole]:
        self.columns()
        if self.sampler is None:
            yield from self._all(run, number, want)
            return
        order = self.sampler.indices(sum(c.get_dataset_size() for c in self.children), run.seed_of(self), number).tolist()
        yield from self._merged(run, number, [place if want is None or want(i) else None for i, place in enumerate(order)])

    def _merged(self, run: Run, number: int, order: list[int | None]) -> Rows[Row | Hole]:
        """Places among all rows: each child gives its share in the order that is asked for."""
        ends = np.cumsum([c.get_dataset_size() for c in self.children])
        owners = [None if place is None else int(np.searchsorted(ends, place, side="right")) for place in order]
        shares: list[list[int | None]] = [[] for _ in self.children]
        for place, owner in zip(order, owners):
            if place is not None and owner is not None:
                shares[owner].append(place - int(ends[owner] - self.children[owner].get_dataset_size()))
        parts = [run.picked(child, number, iter(share)) for child, share in zip(self.children, shares)]
        for owner in owners:
            yield HOLE if owner is None else next(parts[owner])

    def picked(self, run: Run, number: int, order: Rows[int | None]) -> Rows[Row | Hole]:
        if self.sampler is None:
            yield from self._merged(run, number, list(order))
        else:
            yield from super().picked(run, number, order)


class RenameDataset(Dataset):
    def __init__(self, child: Dataset, input_columns: str | list[str], output_columns: str | list[str]) -> None:
        super().__init__([child])
        self.inputs, self.outputs = names("rename", "input_columns", input_columns), names("rename", "output_columns", output_columns)
        if len(self.inputs) != len(self.outputs):
            raise DataValueFault(f"rename: output_columns must be as many as input_columns, got {self.inputs} and {self.outputs}")

    def columns(self) -> list[str]:
        places(self.children[0], self.inputs, "rename")
        changed = dict(zip(self.inputs, self.outputs))
        return names("rename", "columns", [changed.get(c, c) for c in self.children[0].columns()])

    def rows(self, run: Run, number: int, want: Want) -> Rows[Row | Hole]:
        yield from run.rows(self.children[0], number, want)


class ProjectDataset(Dataset):
    def __init__(self, child: Dataset, columns: str | list[str]) -> None:
        super().__init__([child])
        self.kept = names("project", "columns", columns)

    def columns(self) -> list[str]:
        places(self.children[0], self.kept, "project")
        return list(self.kept)

    def rows(self, run: Run, number: int, want: Want) -> Rows[Row | Hole]:
        chosen = places(self.children[0], self.kept, "project")
        for row in run.rows(self.children[0], number, want):
            yield row if isinstance(row, Hole) else tuple(row[p] for p in chosen)


class PartDataset(Dataset):
    """One part of a split.   Which rows it has follows from the split's own seed, so that no row is in two parts, whatever iterates them."""

    def __init__(self, child: Dataset, order: Sampler, start: int, count: int, seed: int) -> None:
        super().__init__([child])
        self.order_of, self.start, self.count, self.seed = order, start, count, seed
        self.sampler: Sampler | None = None

    def known_size(self) -> int | None:
        return self.sampler.size(self.count) if self.sampler else self.count

    def seed_below(self, seed: int) -> int:
        return self.seed

    def is_sharded(self) -> bool:
        return bool(self.sampler and self.sampler.is_sharded()) or super().is_sharded()

    def shard(self) -> int:
        return max(self.sampler.shard() if self.sampler else 0, super().shard())

    def use_sampler(self, new_sampler: Sampler | Any) -> None:
        self.sampler = new_sampler if isinstance(new_sampler, Sampler) else IterSampler(new_sampler)
        self.dataset_size = None

    def rows(self, run: Run, number: int, want: Want) -> Rows[Row | Hole]:
        mine = self.order_of.indices(self.children[0].get_dataset_size(), self.seed, 0)[self.start : self.start + self.count]
        if self.sampler is not None:
            mine = mine[self.sampler.indices(len(mine), run.seed_of(self), number)]
        chosen = (place if want is None or want(i) else None for i, place in enumerate(mine.tolist()))
        yield from run.picked(self.children[0], 0, chosen)


def split(dataset: Dataset, sizes: Sequence[int] | Sequence[float], randomize: bool) -> tuple[Dataset, ...]:
    """Parts with `sizes` rows; fractions are rounded, and what is left goes to the parts from the first on."""
    total = dataset.get_dataset_size()
    if not isinstance(sizes, (list, tuple)) or not sizes:
        raise DataTypeFault(f"split: sizes must be a list of counts or fractions, got {sizes!r}")
    if all(isinstance(s, int) and not isinstance(s, bool) for s in sizes):
        counts = [check_int("split", "sizes", s, 1) for s in sizes]
        if sum(counts) != total:
            raise DataFault(f"split: sizes must add up to the {total} rows, got {counts} with sum {sum(counts)}")
    elif all(isinstance(s, float) and 0 < s <= 1 for s in sizes):
        if abs(sum(sizes) - 1) > 1e-9:
            raise DataValueFault(f"split: fractions must add up to 1, got {list(sizes)} with sum {sum(sizes)}")
        counts = [round(s * total) for s in sizes]
        if 0 in counts:
            raise DataFault(f"split: each part must have a row, got {counts} for {list(sizes)} of {total}")
        left = total - sum(counts)
        for i in range(len(counts)):
            if left and counts[i] + (1 if left > 0 else -1) > 0:
                step = 1 if left > 0 else -1
                counts[i] += step
                left -= step
    else:
        raise DataValueFault(f"split: sizes must be all counts or all fractions in (0, 1], got {list(sizes)}")
    base, mixed = dataset.unsampled()
    parts: list[PartDataset] = []
    for i, count in enumerate(counts):
        part = PartDataset(
            base,
            RandomSampler() if randomize else SequentialSampler(),
            sum(counts[:i]),
            count,
            config.draw_seed() if i == 0 else parts[0].seed,
        )
        if mixed:  # a source that shuffles goes on to shuffle within the part
            part.use_sampler(RandomSampler())
        parts.append(part)
    return tuple(parts)


def zip_datasets(datasets: Sequence[Dataset]) -> Dataset:
    """`dataset.zip((a, b))`: columns side by side."""
    if not isinstance(datasets, (tuple, list)) or len(datasets) < 2:
        raise DataTypeFault(f"zip: datasets must be a tuple of two or more datasets, got {type(datasets).__name__}")
    return ZipDataset(datasets)
