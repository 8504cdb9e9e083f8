"""batch, padded_batch, bucket_batch_by_length: rows put together.

In: a stage whose rows have one shape, or are padded to one, or are what `per_batch_map` makes of them.  Out: a stage of batches.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator as Rows
from dataclasses import dataclass
from typing import Any

import numpy as np

from jumar.base import StackError
from jumar.dataset.dataset import Dataset
from jumar.dataset.errors import DataFault, DataTypeFault, DataValueFault, check_bool, check_int, names
from jumar.dataset.mapping import rearranged
from jumar.dataset.order import RowKey
from jumar.dataset.pipeline import Row, Run, Want
from jumar.dataset.stages import places
from jumar.dataset.values import stack, to_value
from jumar.dataset.workers import HOLE, Hole


@dataclass(frozen=True)
class BatchInfo:
    """What `per_batch_map` and a function as batch_size are told: which batch of which epoch, from zero."""

    epoch_num: int
    batch_num: int

    def get_epoch_num(self) -> int:
        return self.epoch_num

    def get_batch_num(self) -> int:
        return self.batch_num


CBatchInfo = BatchInfo


@dataclass(frozen=True)
class BatchWork:
    """What a worker does with the rows of a batch: (rows, info) -> columns."""

    names: list[str]
    inputs: list[int]
    plan: list[tuple[str, int, bool]]
    per_batch_map: Callable[..., Any] | None
    expected: int

    def __call__(self, _: RowKey, task: tuple[list[Row], BatchInfo]) -> Row:
        rows, info = task
        if self.per_batch_map is None:
            return tuple(stack([row[p] for row in rows], "batch", name) for p, name in enumerate(self.names))
        made = self.per_batch_map(*([row[p] for row in rows] for p in self.inputs), info)
        made = made if isinstance(made, tuple) else (made,)
        if len(made) != self.expected:
            raise DataFault(
                f"batch: per_batch_map must return {self.expected} columns, got {len(made)}", hint="name them all in output_columns"
            )
        results = [
            stack([to_value(v, "per_batch_map") for v in m], "batch", "per_batch_map") if isinstance(m, list) and m else m for m in made
        ]
        results = [to_value(r, "per_batch_map") for r in results]
        return tuple(results[p] if new else stack([row[p] for row in rows], "batch", name) for name, p, new in self.plan)


class BatchDataset(Dataset):
    """`batch_size` rows (or as many as a function of the BatchInfo says) in one."""

    who = "batch"

    def __init__(
        self,
        child: Dataset,
        batch_size: int | Callable[..., int],
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        per_batch_map: Callable[..., Any] | None = None,
        input_columns: str | list[str] | None = None,
        output_columns: str | list[str] | None = None,
        python_multiprocessing: bool = False,
        max_rowsize: int | list[int] | None = None,
    ) -> None:
        super().__init__([child], num_parallel_workers)
        self.batch_size = batch_size if callable(batch_size) else check_int(self.who, "batch_size", batch_size, 1)
        self.drop_remainder = check_bool(self.who, "drop_remainder", drop_remainder)
        if per_batch_map is not None and not callable(per_batch_map):
            raise DataTypeFault(f"{self.who}: per_batch_map must be a function, got {type(per_batch_map).__name__}")
        self.per_batch_map = per_batch_map
        self.inputs = names(self.who, "input_columns", input_columns)
        self.outputs = names(self.who, "output_columns", output_columns)
        if (self.inputs or self.outputs) and per_batch_map is None:
            raise DataValueFault(f"{self.who}: per_batch_map must be given with input_columns and output_columns, got none")
        self.python_multiprocessing = check_bool(self.who, "python_multiprocessing", python_multiprocessing)

    def stage_name(self) -> str:
        return f"Batch({'function' if callable(self.batch_size) else self.batch_size})"

    def _plan(self) -> list[tuple[str, int, bool]]:
        have = self.children[0].columns()
        inputs = self.inputs or have
        places(self.children[0], inputs, self.who)
        return rearranged(have, inputs, self.outputs or inputs)

    def columns(self) -> list[str]:
        return self.children[0].columns() if self.per_batch_map is None else [name for name, _, _ in self._plan()]

    def known_size(self) -> int | None:
        below = self.children[0].known_size()
        if below is None or callable(self.batch_size):
            return None
        return below // self.batch_size if self.drop_remainder else -(-below // self.batch_size)

    def _count(self) -> int:
        if callable(self.batch_size):
            return super()._count()
        below = self.children[0].get_dataset_size()
        return below // self.batch_size if self.drop_remainder else -(-below // self.batch_size)

    def get_batch_size(self) -> int:
        return 1 if callable(self.batch_size) else int(self.batch_size)

    def work(self) -> Callable[[RowKey, Any], Row]:
        have = self.children[0].columns()
        inputs = self.inputs or have
        plan = self._plan() if self.per_batch_map else []
        return BatchWork(have, places(self.children[0], inputs, self.who), plan, self.per_batch_map, len(self.outputs or inputs))

    def open(self, run: Run) -> None:
        # stacking is one copy: it gains nothing from workers, a per_batch_map may
        asked = self.num_parallel_workers is not None or self.python_multiprocessing
        count = self.workers() if self.per_batch_map and asked else 1
        run.pool(self, self.work(), count, self.python_multiprocessing and count > 1)

    def size_of(self, info: BatchInfo) -> int:
        return check_int(self.who, "batch_size", self.batch_size(info), 1) if callable(self.batch_size) else self.batch_size

    def groups(self, run: Run, number: int, want: Want) -> Rows[tuple[RowKey, Any] | Hole]:
        """The rows of each batch, as tasks."""
        size = None if callable(self.batch_size) else self.batch_size
        below: Want = None if want is None or size is None else lambda i: want(i // size)
        index, rows, holes = 0, [], 0
        info = BatchInfo(number, 0)
        limit = self.size_of(info)
        for row in run.rows(self.children[0], number, below):
            if isinstance(row, Hole):
                holes += 1
            else:
                rows.append(row)
            if len(rows) + holes == limit:
                yield self._task(run, number, index, rows, holes, want)
                index, rows, holes = index + 1, [], 0
                info = BatchInfo(number, index)
                limit = self.size_of(info)
        if (rows or holes) and not self.drop_remainder:
            yield self._task(run, number, index, rows, holes, want)

    def _task(self, run: Run, number: int, index: int, rows: list[Row], holes: int, want: Want) -> tuple[RowKey, Any] | Hole:
        if not rows or (want is not None and not want(index)):
            return HOLE
        return run.key(self, number, index), (rows, BatchInfo(number, index))

    def rows(self, run: Run, number: int, want: Want) -> Rows[Row | Hole]:
        for result in run.pools[id(self)].run(self.groups(run, number, want)):
            if isinstance(result, StackError):
                raise result
            yield result


PadInfo = dict[str, tuple[list[int | None] | None, Any]]


def pad_value(value: np.ndarray[Any, Any], shape: list[int], fill: Any, column: str) -> np.ndarray[Any, Any]:
    """`value` with `fill` after its end in each dimension; what is longer is cut."""
    if value.ndim != len(shape):
        raise DataFault(f"padded_batch: pad shape of column {column!r} must have {value.ndim} dimensions, got {shape}")
    if list(value.shape) == shape:
        return value
    text = value.dtype.kind in "US"
    if text and fill is not None and not isinstance(fill, (str, bytes)):
        raise DataTypeFault(f"padded_batch: pad value of column {column!r} must be a text, got {fill!r}")
    width = max(value.dtype.itemsize // (4 if value.dtype.kind == "U" else 1), len(fill or "")) if text else 0
    out = np.full(shape, fill if fill is not None else ("" if text else 0), f"{value.dtype.kind}{max(width, 1)}" if text else value.dtype)
    part = tuple(slice(0, min(a, b)) for a, b in zip(value.shape, shape))
    out[part] = value[part]
    return out


@dataclass(frozen=True)
class PadWork:
    """Pads the rows of a batch and stacks them."""

    names: list[str]
    pad_info: PadInfo

    def __call__(self, _: RowKey, task: tuple[list[Row], BatchInfo]) -> Row:
        rows, _info = task
        columns = []
        for p, name in enumerate(self.names):
            values = [row[p] for row in rows]
            if name in self.pad_info or not self.pad_info:
                shape, fill = self.pad_info.get(name, (None, None))
                longest = [max(n) for n in zip(*(v.shape for v in values))]
                if shape is not None and len(shape) != values[0].ndim:
                    raise DataFault(f"padded_batch: pad shape of column {name!r} must have {values[0].ndim} dimensions, got {shape}")
                target = longest if shape is None else [w if w is not None else n for w, n in zip(shape, longest)]
                values = [pad_value(v, target, fill, name) for v in values]
            columns.append(stack(values, "padded_batch", name))
        return tuple(columns)


def check_pad_info(who: str, pad_info: Any) -> PadInfo:
    if pad_info is None:
        return {}
    if not isinstance(pad_info, dict):
        raise DataTypeFault(f"{who}: pad_info must be a dict of column to (shape, value), got {type(pad_info).__name__}")
    found: PadInfo = {}
    for name, spec in pad_info.items():
        if spec is None:
            found[name] = (None, None)
        elif isinstance(spec, (tuple, list)) and len(spec) == 2:
            shape = None if spec[0] is None else [None if n in (None, -1) else check_int(who, "pad shape", n, 1) for n in spec[0]]
            found[name] = (shape, spec[1])
        else:
            raise DataTypeFault(f"{who}: pad_info[{name!r}] must be (shape, value), got {spec!r}")
    return found


class PaddedBatchDataset(BatchDataset):
    """Batches of rows that are padded to one shape."""

    who = "padded_batch"

    def __init__(self, child: Dataset, batch_size: Any, drop_remainder: bool, num_parallel_workers: int | None, pad_info: Any) -> None:
        super().__init__(child, batch_size, drop_remainder, num_parallel_workers)
        self.pad_info = check_pad_info(self.who, pad_info)

    def stage_name(self) -> str:
        return f"PaddedBatch({'function' if callable(self.batch_size) else self.batch_size})"

    def work(self) -> Callable[[RowKey, Any], Row]:
        places(self.children[0], list(self.pad_info), self.who)
        return PadWork(self.children[0].columns(), self.pad_info)


class BucketBatchByLengthDataset(Dataset):
    """Rows sorted into buckets by length; a bucket that is full is a batch."""

    def __init__(
        self,
        child: Dataset,
        column_names: list[str],
        bucket_boundaries: list[int],
        bucket_batch_sizes: list[int],
        element_length_function: Callable[..., int] | None,
        pad_info: Any,
        pad_to_bucket_boundary: bool,
        drop_remainder: bool,
    ) -> None:
        super().__init__([child])
        who = "bucket_batch_by_length"
        self.inputs = names(who, "column_names", column_names)
        if element_length_function is None and len(self.inputs) != 1:
            raise DataValueFault(f"{who}: element_length_function must be given for several columns, got none")
        self.boundaries = [check_int(who, "bucket_boundaries", b, 1) for b in bucket_boundaries]
        self.sizes = [check_int(who, "bucket_batch_sizes", b, 1) for b in bucket_batch_sizes]
        if not self.boundaries or self.boundaries != sorted(set(self.boundaries)):
            raise DataValueFault(f"{who}: bucket_boundaries must grow, got {bucket_boundaries}")
        if len(self.sizes) != len(self.boundaries) + 1:
            raise DataValueFault(f"{who}: bucket_batch_sizes must be one more than the boundaries, got {len(self.sizes)}")
        self.length = element_length_function
        self.pad_info = check_pad_info(who, pad_info)
        self.pad = pad_info is not None
        self.to_boundary = check_bool(who, "pad_to_bucket_boundary", pad_to_bucket_boundary)
        self.drop_remainder = check_bool(who, "drop_remainder", drop_remainder)

    def known_size(self) -> int | None:
        return None

    def _batch(self, rows: list[Row], bucket: int) -> Row:
        have = self.children[0].columns()
        if not self.pad:
            return tuple(stack([r[p] for r in rows], "bucket_batch_by_length", n) for p, n in enumerate(have))
        info = dict(self.pad_info)
        if self.to_boundary:
            if bucket == len(self.boundaries):
                raise DataFault(
                    f"bucket_batch_by_length: a row must be shorter than the last boundary {self.boundaries[-1]}, got a longer one"
                )
            limit = self.boundaries[bucket] - 1
            info = {n: (None if s is None else [limit if d is None else d for d in s], v) for n, (s, v) in info.items()}
        return PadWork(have, info)(RowKey(0, 0, 0, 0), (rows, BatchInfo(0, 0)))

    def rows(self, run: Run, number: int, want: Want) -> Rows[Row | Hole]:
        chosen = places(self.children[0], self.inputs, "bucket_batch_by_length")
        buckets: list[list[Row]] = [[] for _ in self.sizes]
        given = 0
        for row in run.rows(self.children[0], number):
            if isinstance(row, Hole):
                continue
            values = [row[p] for p in chosen]
            length = int(self.length(*values)) if self.length else int(values[0].shape[0])
            bucket = int(np.searchsorted(self.boundaries, length, side="right"))
            buckets[bucket].append(row)
            if len(buckets[bucket]) == self.sizes[bucket]:
                yield self._batch(buckets[bucket], bucket) if want is None or want(given) else HOLE
                buckets[bucket] = []
                given += 1
        for bucket, rows in enumerate(buckets):
            if rows and not self.drop_remainder:
                yield self._batch(rows, bucket) if want is None or want(given) else HOLE
                given += 1
