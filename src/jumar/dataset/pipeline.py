"""From stages to rows: one walk over a tree of stages, ahead of the step, from any position.

In: the root of a pipeline (dataset.py), an epoch and a step to start at.  Out: `Iterator`, which gives tuples or dicts of arrays or Tensors.
A position is (seed, epoch, step): orders and random numbers follow from the seed, the pass and the row alone, so a pipeline that starts
at a position gives bit for bit what the one that was left there would have given; rows before it are counted, not made.
"""

from __future__ import annotations

import json
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from collections.abc import Iterator as Rows
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from jumar.base import StackError, event
from jumar.dataset import config
from jumar.dataset.errors import DataFault
from jumar.dataset.order import RowKey
from jumar.dataset.report import Clock, Report, make_report, timed
from jumar.dataset.workers import Hole, Inline, Pool, Work, make_pool

if TYPE_CHECKING:
    from jumar.dataset.dataset import Dataset

Row = tuple[Any, ...]
Want = Callable[[int], bool] | None  # which rows of a pass are wanted; None: all
QUEUE_BYTES = 256 << 20


@dataclass(frozen=True)
class Position:
    """Where an iterator stands: `step` rows of `epoch` were given.   It goes to JSON and back.

    >>> Position.from_json(Position(7, 2, 5).to_json())
    Position(seed=7, epoch=2, step=5)
    """

    seed: int
    epoch: int
    step: int

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Position:
        try:
            found = json.loads(text)
            return Position(int(found["seed"]), int(found["epoch"]), int(found["step"]))
        except (ValueError, KeyError, TypeError) as error:
            raise DataFault(f"Position: text must be JSON with seed, epoch and step, got {text[:80]!r}") from error


@dataclass
class Run:
    """What the stages of one iterator share."""

    seed: int
    workers: bool = True
    stages: dict[int, int] = field(default_factory=dict)  # id of a stage -> its number in the tree
    pools: dict[int, Pool] = field(default_factory=dict)
    clocks: dict[int, Clock] = field(default_factory=dict)
    seeds: dict[int, int] = field(default_factory=dict)  # of a stage, where it is not the run's own (below a split)
    shard: int = 0
    first: int = 0  # number of the first stage; datasets inside flat_map have their own stretch

    def enter(self, root: Dataset, depth: int = 0, seed: int | None = None) -> Run:
        """Numbers the stages from the root down and starts their workers."""
        mine, seed = id(root), self.seed if seed is None else seed
        if mine not in self.stages:
            self.stages[mine] = self.first + len(self.stages)
            self.seeds[mine] = seed
            self.clocks[mine] = Clock(root.stage_name(), depth, below=[id(c) for c in root.children])
            root.open(self)
            for child in root.children:
                self.enter(child, depth + 1, root.seed_below(seed))
        return self

    def seed_of(self, stage: Dataset) -> int:
        return self.seeds[id(stage)]

    def key(self, stage: Dataset, number: int, index: int) -> RowKey:
        return RowKey(self.seeds[id(stage)], self.stages[id(stage)] + (self.shard << 32), number, index)

    def pool(self, stage: Dataset, work: Work, count: int, processes: bool) -> None:
        """Called by `open`: the workers of a stage."""
        name = stage.stage_name()
        self.pools[id(stage)] = make_pool(name, work, count, processes) if self.workers else Inline(name, work)

    def rows(self, stage: Dataset, number: int, want: Want = None) -> Rows[Row | Hole]:
        """The rows of one pass of a stage, with `HOLE` for those not wanted."""
        rows = stage.rows(self, number, want)
        return timed(self.clocks[id(stage)], rows)

    def picked(self, stage: Dataset, number: int, order: Rows[int | None]) -> Rows[Row | Hole]:
        """The rows of a pass at the given places, in that order; `HOLE` for None."""
        return timed(self.clocks[id(stage)], stage.picked(self, number, order))

    def close(self) -> None:
        for pool in self.pools.values():
            pool.close()


class _End:
    """The end of an epoch, in the queue."""


END = _End()


def produce(run: Run, root: Dataset, epoch: int, step: int, num_epochs: int) -> Rows[Row | _End]:
    """All rows from a position on, with END after each epoch."""
    last = epoch + num_epochs if num_epochs > 0 else None
    while last is None or epoch < last:
        start = step
        want: Want = (lambda i, start=start: i >= start) if start else None
        for row in run.rows(root, epoch, want):
            if not isinstance(row, Hole):
                yield row
        yield END
        epoch, step = epoch + 1, 0


def nbytes(row: Any) -> int:
    return sum(a.nbytes for a in row if isinstance(a, np.ndarray)) if isinstance(row, tuple) else 0


class Feed:
    """A thread that makes rows ahead of the step; it holds nothing of the iterator, so dropping that ends it."""

    def __init__(self, run: Run, source: Rows[Row | _End], size: int) -> None:
        self.run, self.size = run, max(1, size)
        self.queue: deque[Any] = deque()
        self.bytes = 0
        self.condition = threading.Condition()
        self.stopped = False
        self.error: BaseException | None = None
        self.finished = False
        self.step_waited_s = 0.0
        self.pipeline_waited_s = 0.0
        self.owner = os.getpid()
        self.thread = threading.Thread(target=self._fill, args=(source,), daemon=True, name="jumar-dataset")
        self.thread.start()

    def _fill(self, source: Any) -> None:
        try:
            for row in source:
                with self.condition:
                    start = perf_counter()
                    while not self.stopped and self.queue and (len(self.queue) >= self.size or self.bytes > QUEUE_BYTES):
                        self.condition.wait()
                    self.pipeline_waited_s += perf_counter() - start
                    if self.stopped:
                        break
                    self.queue.append(row)
                    self.bytes += nbytes(row)
                    self.condition.notify_all()
        except BaseException as error:  # it is raised in the thread of the step
            self.error = error
        finally:
            try:
                source.close()
            except Exception as error:
                self.error = self.error or error
            with self.condition:
                self.finished = True
                self.condition.notify_all()

    def get(self) -> Any:
        """The next row or END; None when there is nothing more."""
        with self.condition:
            start = perf_counter()
            while not self.queue and not self.finished:
                self.condition.wait()
            self.step_waited_s += perf_counter() - start
            if self.queue:
                row = self.queue.popleft()
                self.bytes -= nbytes(row)
                self.condition.notify_all()
                return row
        if self.error is not None:
            raise self.error
        return None

    def close(self) -> None:
        if os.getpid() != self.owner:
            return
        with self.condition:
            self.stopped = True
            self.queue.clear()
            self.condition.notify_all()
        if threading.current_thread() is not self.thread:
            self.thread.join(0.2)
        self.run.close()
        if threading.current_thread() is not self.thread:
            self.thread.join(2.0)


class Direct:
    """The rows in the thread of the step: for debugging."""

    def __init__(self, run: Run, source: Rows[Row | _End]) -> None:
        self.run, self.source = run, source
        self.step_waited_s = self.pipeline_waited_s = 0.0

    def get(self) -> Any:
        start = perf_counter()
        try:
            return next(self.source, None)
        finally:
            self.step_waited_s += perf_counter() - start

    def close(self) -> None:
        self.source.close()  # type: ignore[attr-defined]
        self.run.close()


@dataclass
class Walk:
    """How far an iterator has come; the dataset keeps it when the iterator is gone."""

    seed: int
    epoch: int
    step: int
    feed: Feed | Direct
    given: int = 0
    started: float = field(default_factory=perf_counter)
    ended: float = 0.0

    def position(self) -> Position:
        return Position(self.seed, self.epoch, self.step)

    def report(self) -> Report:
        seconds = (self.ended or perf_counter()) - self.started
        return make_report(self.feed.run.clocks, self.given, seconds, self.feed.step_waited_s, self.feed.pipeline_waited_s)


def _finish(walk: Walk) -> None:
    walk.ended = walk.ended or perf_counter()
    walk.feed.close()


class Iterator:
    """Rows of a pipeline; each `for` loop over it is one epoch.

    It gives Tensors, or arrays where output_numpy is True; texts and Python dicts are always given as they are.
    """

    def __init__(
        self,
        dataset: Dataset,
        num_epochs: int,
        output_numpy: bool,
        *,
        as_dict: bool,
        columns: list[str] | None = None,
        do_copy: bool = False,
    ) -> None:
        names = dataset.get_col_names()
        for name in columns or []:
            if name not in names:
                raise DataFault(f"create_tuple_iterator: columns must be among {names}, got {name!r}")
        self._places = [names.index(c) for c in columns] if columns else list(range(len(names)))
        self._names = [names[p] for p in self._places]
        self._as_dict, self._numpy, self._copy = as_dict, output_numpy, do_copy
        self._left = num_epochs
        start = dataset.start_position()
        run = Run(start.seed, shard=dataset.shard())
        try:
            run.enter(dataset)
            source = produce(run, dataset, start.epoch, start.step, num_epochs)
            feed = Direct(run, source) if config.get_debug_mode() else Feed(run, source, config.get_prefetch_size())
        except BaseException:
            run.close()
            raise
        self._walk = Walk(start.seed, start.epoch, start.step, feed)
        self._end = weakref.finalize(self, _finish, self._walk)
        dataset.started(self._walk)

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        if self._left == 0:
            raise DataFault("iterator: a row must be within num_epochs, got one asked for after the last", hint="num_epochs=-1 has no end")
        if not self._end.alive:
            raise DataFault("iterator: must be open, got one that was released or has failed", hint="make a new one from the dataset")
        walk = self._walk
        try:
            row = walk.feed.get()
        except StackError:
            self.stop()
            raise
        except Exception as error:
            self.stop()
            raise DataFault(f"pipeline: a stage must not fail, got {type(error).__name__}: {error}") from error
        if row is END:
            walk.epoch, walk.step = walk.epoch + 1, 0
            self._left -= self._left > 0
            if self._left == 0:
                self.stop()
            event("dataset", epoch=walk.epoch, rows=walk.given, step_waited_s=walk.feed.step_waited_s, starving=walk.report().starving)
            raise StopIteration
        walk.step += 1
        walk.given += 1
        values = [self._value(row[p]) for p in self._places]
        return dict(zip(self._names, values)) if self._as_dict else values

    def _value(self, value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        if self._numpy or value.dtype.kind in "USO":
            return np.array(value) if self._copy else value
        from jumar.frontend import Tensor  # noqa: PLC0415  the front end is loaded only by those who want Tensors

        return Tensor(value)

    def position(self) -> Position:
        """Where this iterator stands: after the last row that it gave."""
        return self._walk.position()

    def report(self) -> Report:
        """The time of each stage so far."""
        return self._walk.report()

    def get_col_names(self) -> list[str]:
        return list(self._names)

    def stop(self) -> None:
        """Ends the thread and the workers; rows that wait are dropped."""
        self._end()

    release = stop
