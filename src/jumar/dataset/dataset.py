"""`Dataset`: a stage of a pipeline, with the methods that put the next stage on top.

In: sources (sources.py and its neighbours).  Out: trees of stages (stages.py, mapping.py, batching.py) and iterators over them (pipeline.py).
A stage is a description: it holds no open file, thread or process, may be used in several trees, and may be iterated many times at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Iterator as Rows
from typing import TYPE_CHECKING, Any

import numpy as np

from jumar.dataset import config
from jumar.dataset.errors import DataFault, DataTypeFault, DataValueFault, check_bool, check_int, names
from jumar.dataset.pipeline import Iterator, Position, Row, Run, Walk, Want
from jumar.dataset.report import Report
from jumar.dataset.workers import HOLE, Hole

if TYPE_CHECKING:
    from jumar.dataset.samplers import Sampler


class Dataset:
    """A stage.   Its subclasses say which columns it has, how many rows, and how a pass makes them."""

    def __init__(self, children: Sequence[Dataset] = (), num_parallel_workers: int | None = None, cache: Any = None) -> None:
        for child in children:
            if not isinstance(child, Dataset):
                raise DataTypeFault(f"{type(self).__name__}: must stand on datasets, got {type(child).__name__}")
        self.children: list[Dataset] = list(children)
        if num_parallel_workers is not None:
            check_int(type(self).__name__, "num_parallel_workers", num_parallel_workers, 1, 1024)
        self.num_parallel_workers = num_parallel_workers
        self.cache = cache
        self.dataset_size: int | None = None
        self._init_step = 0
        self._restored: Position | None = None
        self._walk: Walk | None = None

    # what a stage is

    def columns(self) -> list[str]:
        """Names of the columns, without making a row."""
        return self.children[0].columns()

    def known_size(self) -> int | None:
        """Rows of a pass, or None where only walking it tells."""
        return self.children[0].known_size()

    def rows(self, run: Run, number: int, want: Want) -> Rows[Row | Hole]:
        """The rows of pass `number`; `HOLE` for those that `want` does not ask for."""
        raise NotImplementedError(f"{type(self).__name__}: a stage must define rows")

    def picked(self, run: Run, number: int, order: Rows[int | None]) -> Rows[Row | Hole]:
        """The rows of pass `number` at the given places; here by keeping rows until their turn comes, in sources by reading them there."""
        chosen = list(order)
        last_use = {place: i for i, place in enumerate(chosen) if place is not None}
        source = enumerate(self.rows(run, number, last_use.__contains__))
        kept: dict[int, Row | Hole] = {}
        for i, place in enumerate(chosen):
            if place is None:
                yield HOLE
                continue
            while place not in kept:
                at, row = next(source)
                if at in last_use:
                    kept[at] = row
            yield kept.pop(place) if last_use[place] == i else kept[place]

    def seed_below(self, seed: int) -> int:
        """The seed of the stages below: that of this stage, but for a split."""
        return seed

    def open(self, run: Run) -> None:
        """Called once before the first pass: the place to ask for workers."""

    def stage_name(self) -> str:
        return type(self).__name__.removesuffix("Dataset")

    def workers(self) -> int:
        return self.num_parallel_workers or config.get_num_parallel_workers()

    def copy_of(self, **changes: Any) -> Dataset:
        """The same stage with some attributes changed."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, dataset_size=None, _walk=None, _restored=None, **changes)
        new.children = list(changes.get("children", self.children))
        return new

    # the next stage

    def batch(
        self, batch_size: int | Callable[..., int], drop_remainder: bool = False, num_parallel_workers: int | None = None, **kwargs: Any
    ) -> Dataset:
        """Rows put together `batch_size` at a time; `per_batch_map`, `input_columns`, `output_columns`, `python_multiprocessing`, `max_rowsize`.

        >>> from jumar.dataset import NumpySlicesDataset
        >>> [b[0].tolist() for b in NumpySlicesDataset([1, 2, 3], shuffle=False).batch(2).create_tuple_iterator(num_epochs=1, output_numpy=True)]
        [[1, 2], [3]]
        """
        return batching.BatchDataset(self, batch_size, drop_remainder, num_parallel_workers, **kwargs)

    def padded_batch(
        self,
        batch_size: int | Callable[..., int],
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        pad_info: Any = None,
    ) -> Dataset:
        """Batches whose columns are padded: `pad_info={"x": ([4], -1)}`; a None in the shape, or {}, is the longest of the batch."""
        return batching.PaddedBatchDataset(self, batch_size, drop_remainder, num_parallel_workers, pad_info)

    def bucket_batch_by_length(
        self,
        column_names: list[str],
        bucket_boundaries: list[int],
        bucket_batch_sizes: list[int],
        element_length_function: Callable[..., int] | None = None,
        pad_info: Any = None,
        pad_to_bucket_boundary: bool = False,
        drop_remainder: bool = False,
    ) -> Dataset:
        """Batches of rows of like length."""
        return batching.BucketBatchByLengthDataset(
            self,
            column_names,
            bucket_boundaries,
            bucket_batch_sizes,
            element_length_function,
            pad_info,
            pad_to_bucket_boundary,
            drop_remainder,
        )

    def map(
        self,
        operations: Any,
        input_columns: str | list[str] | None = None,
        output_columns: str | list[str] | None = None,
        num_parallel_workers: int | None = None,
        **kwargs: Any,
    ) -> Dataset:
        """Columns replaced by what operations make of them; `python_multiprocessing`, `cache`, `callbacks`, `max_rowsize`, `offload`."""
        return mapping.MapDataset(self, operations, input_columns, output_columns, num_parallel_workers, **kwargs)

    def filter(
        self, predicate: Callable[..., Any], input_columns: str | list[str] | None = None, num_parallel_workers: int | None = None
    ) -> Dataset:
        return stages.FilterDataset(self, predicate, input_columns, num_parallel_workers)

    def flat_map(self, func: Callable[..., Any]) -> Dataset:
        """The rows of all datasets that `func` makes of the rows."""
        return stages.FlatMapDataset(self, func)

    def shuffle(self, buffer_size: int) -> Dataset:
        return stages.ShuffleDataset(self, buffer_size)

    def repeat(self, count: int | None = None) -> Dataset:
        return stages.RepeatDataset(self, count)

    def skip(self, count: int) -> Dataset:
        return stages.SkipDataset(self, count)

    def take(self, count: int = -1) -> Dataset:
        return stages.TakeDataset(self, count)

    def zip(self, datasets: Dataset | Sequence[Dataset]) -> Dataset:
        if not isinstance(datasets, (Dataset, tuple, list)):
            raise DataTypeFault(f"zip: datasets must be a Dataset or a tuple of them, got {type(datasets).__name__}")
        return stages.ZipDataset((self, *((datasets,) if isinstance(datasets, Dataset) else datasets)))

    def concat(self, datasets: Dataset | Sequence[Dataset]) -> Dataset:
        if not isinstance(datasets, (Dataset, tuple, list)):
            raise DataTypeFault(f"concat: datasets must be a Dataset or a list of them, got {type(datasets).__name__}")
        return stages.ConcatDataset([self, *([datasets] if isinstance(datasets, Dataset) else datasets)])

    def __add__(self, datasets: Dataset | Sequence[Dataset]) -> Dataset:
        return self.concat(datasets)

    def rename(self, input_columns: str | list[str], output_columns: str | list[str]) -> Dataset:
        return stages.RenameDataset(self, input_columns, output_columns)

    def project(self, columns: str | list[str]) -> Dataset:
        return stages.ProjectDataset(self, columns)

    def apply(self, apply_func: Callable[[Dataset], Dataset]) -> Dataset:
        if not callable(apply_func):
            raise DataTypeFault(f"apply: apply_func must be a function, got {type(apply_func).__name__}")
        result = apply_func(self)
        if not isinstance(result, Dataset):
            raise DataTypeFault(f"apply: apply_func must return a Dataset, got {type(result).__name__}")
        return result

    def split(self, sizes: Sequence[int] | Sequence[float], randomize: bool = True) -> tuple[Dataset, ...]:
        """Parts of the rows, as counts or as fractions; `randomize` mixes first, the same way for all parts and epochs."""
        return stages.split(self, sizes, check_bool("split", "randomize", randomize))

    def unsampled(self) -> tuple[Dataset, bool]:
        """What a split cuts, and whether its parts are to be shuffled in each pass: a source gives its rows as they lie."""
        return self, False

    def use_sampler(self, new_sampler: Sampler | Iterable[int]) -> None:
        raise DataFault(f"{self.stage_name()}: use_sampler must be called on a source or on a concat, got this")

    # walking

    def create_tuple_iterator(
        self, columns: list[str] | None = None, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False
    ) -> Iterator:
        """Rows as lists; see `Iterator`."""
        _check_epochs("create_tuple_iterator", num_epochs)
        return Iterator(
            self,
            num_epochs,
            output_numpy,
            as_dict=False,
            columns=names("create_tuple_iterator", "columns", columns) or None,
            do_copy=do_copy,
        )

    def create_dict_iterator(self, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False) -> Iterator:
        """Rows as dicts of columns; see `Iterator`."""
        _check_epochs("create_dict_iterator", num_epochs)
        return Iterator(self, num_epochs, output_numpy, as_dict=True, do_copy=do_copy)

    def __iter__(self) -> Iterator:
        return self.create_tuple_iterator(num_epochs=1)

    def __len__(self) -> int:
        return self.get_dataset_size()

    # resuming

    def position(self) -> Position:
        """Where the last iterator over this dataset stands (or where the next one will start)."""
        return self._walk.position() if self._walk else self.start_position()

    state = position

    def restore(self, position: Position) -> None:
        """The next iterator starts at `position` and gives what the one that was left there would have given."""
        if not isinstance(position, Position):
            raise DataTypeFault(
                f"restore: position must be a Position, got {type(position).__name__}", hint="Position.from_json reads a text"
            )
        self._restored = position

    def set_init_step(self, init_step: int) -> None:
        """Iterators start after `init_step` rows, counted over epochs; the orders are those that these epochs have."""
        self._init_step = check_int("set_init_step", "init_step", init_step, 0)

    def get_init_step(self) -> int:
        return self._init_step

    def start_position(self) -> Position:
        """Where the next iterator starts."""
        if self._restored is not None:
            return self._restored
        # processes that share the rows must shuffle them alike, also where nobody has set a seed
        seed = config.get_seed() if self.is_sharded() else config.draw_seed()
        if not self._init_step:
            return Position(seed, 0, 0)
        size = self.get_dataset_size()
        return Position(seed, self._init_step // size, self._init_step % size) if size else Position(seed, 0, 0)

    def started(self, walk: Walk) -> None:
        self._walk, self._restored = walk, None

    def report(self) -> Report:
        """Which stage starves the step: the time of each stage of the last iterator; `print` it or ask `to_json()`."""
        if self._walk is None:
            raise DataFault("report: the dataset must have been iterated, got one that was not")
        return self._walk.report()

    # asking

    def get_dataset_size(self) -> int:
        """Rows of an epoch; where only a walk tells (after a filter, an iterable source) it walks once."""
        if self.dataset_size is None:
            known = self.known_size()
            self.dataset_size = self._count() if known is None else known
        return self.dataset_size

    def _count(self) -> int:
        run = Run(config.draw_seed(), workers=False)
        try:
            return sum(1 for _ in run.enter(self).rows(self, 0, lambda i: False))
        finally:
            run.close()

    def first_row(self) -> Row:
        """The first row, made without workers."""
        run = Run(config.draw_seed(), workers=False)
        rows = run.enter(self).rows(self, 0, lambda i: i == 0)
        try:
            for row in rows:
                if not isinstance(row, Hole):
                    return row
        finally:
            rows.close()  # type: ignore[attr-defined]
            run.close()
        raise DataFault(f"{self.stage_name()}: the dataset must have a row, got none")

    def get_col_names(self) -> list[str]:
        return self.columns()

    def output_shapes(self, estimate: bool = False) -> list[list[int | None]]:
        """Shape of each column in the first row; with `estimate` None where rows differ."""
        if not check_bool("output_shapes", "estimate", estimate):
            return [list(np.shape(v)) for v in self.first_row()]
        found: list[list[int | None]] | None = None
        run = Run(config.draw_seed(), workers=False)
        for row in run.enter(self).rows(self, 0):
            shapes: list[list[int | None]] = [list(np.shape(v)) for v in row] if isinstance(row, tuple) else []
            if found is None:
                found = shapes
            for mine, other in zip(found, shapes):
                if len(mine) != len(other):
                    raise DataFault(f"output_shapes: a column must keep its rank, got {mine} and {other}")
                mine[:] = [a if a == b else None for a, b in zip(mine, other)]
        return found or []

    def output_types(self) -> list[Any]:
        """NumPy dtype of each column in the first row (`<U` for texts)."""
        return [np.dtype("U") if v.dtype.kind == "U" else v.dtype if isinstance(v, np.ndarray) else dict for v in self.first_row()]

    def get_batch_size(self) -> int:
        return self.children[0].get_batch_size() if self.children else 1

    def get_repeat_count(self) -> int:
        return self.children[0].get_repeat_count() if self.children else 1

    def num_classes(self) -> int | None:
        return self.children[0].num_classes() if self.children else None

    def get_class_indexing(self) -> dict[str, Any]:
        return self.children[0].get_class_indexing() if self.children else {}

    def is_shuffled(self) -> bool:
        return any(c.is_shuffled() for c in self.children)

    def is_sharded(self) -> bool:
        return any(c.is_sharded() for c in self.children)

    def shard(self) -> int:
        """Which shard this process reads, so that its random numbers are not those of the others."""
        return max((c.shard() for c in self.children), default=0)

    def reset(self) -> None:
        """Forgets a restored position and counts rows again."""
        self._restored, self.dataset_size = None, None

    # what is left to other means

    def device_que(self, send_epoch_end: bool = True, create_data_info_queue: bool = False, queue_name: str = "") -> Dataset:
        raise DataFault(
            "device_que: there must be a device queue, got a host that feeds steps itself", hint="iterate, or dataset_sink_mode=False"
        )

    def sync_wait(self, condition_name: str, num_batch: int = 1, callback: Callable[..., Any] | None = None) -> Dataset:
        raise DataFault("sync_wait: is not supported", hint="a callback of map (DSCallback) or a generator sees what the step has changed")

    def sync_update(self, condition_name: str, num_batch: int | None = None, data: Any = None) -> None:
        raise DataFault(
            "sync_update: is not supported", hint="a callback of map (DSCallback) or a generator sees what the step has changed"
        )

    def to_json(self, filename: str = "") -> dict[str, Any]:
        raise DataFault(
            "to_json: a pipeline must be kept as its script, got a wish for JSON", hint="dataset.position() keeps where it stands"
        )

    def save(self, file_name: str, num_files: int = 1, file_type: str = "mindrecord") -> None:
        """Writes all rows of one epoch into MindRecord files that `MindDataset` reads."""
        if file_type != "mindrecord":
            raise DataValueFault(f"save: file_type must be 'mindrecord', got {file_type!r}")
        mindrecord.save_rows(self, file_name, check_int("save", "num_files", num_files, 1, 1000))


def _check_epochs(who: str, num_epochs: int) -> None:
    if check_int(who, "num_epochs", num_epochs, -1) == 0:
        raise DataValueFault(f"{who}: num_epochs must be -1 or positive, got 0")


# the stages are subclasses of Dataset, and its methods make them: the circle closes here
from jumar.dataset import batching, mapping, mindrecord, stages  # noqa: E402
