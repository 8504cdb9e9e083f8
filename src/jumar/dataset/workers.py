"""Workers: the same function on many rows at once, in threads or in processes, with results in the order of the rows.

In: a function of (key, payload) and an iterator of such pairs, in which `HOLE` stands for a row that nobody wants.
Out: an iterator of results; a row that fails comes as a `RowFault` with the worker's traceback (stages.py, sources.py).
A worker process ends when its pool is closed, when the iterator is dropped, or when the parent is gone; it never outlives them.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing import connection
from typing import Any, Protocol

import numpy as np

from jumar.base import StackError
from jumar.dataset import config
from jumar.dataset.channel import Slots, receive, send
from jumar.dataset.errors import RowFault, WorkerLost, trace_of
from jumar.dataset.order import RowKey, set_row

DEPTH = 2  # tasks that one worker process may have: one at work, one waiting
_TASK, _DONE, _FAILED = range(3)


class Hole:
    """Stands for a row that is left out: it keeps its place in the count of rows, and no work is done for it."""

    def __repr__(self) -> str:
        return "HOLE"


HOLE = Hole()
Task = tuple[RowKey, Any]
Work = Callable[[RowKey, Any], Any]


def work_on(stage: str, work: Work, key: RowKey, payload: Any, worker: str = "") -> Any:
    """One row in this thread, with its own random numbers; what fails comes as a `RowFault`."""
    set_row(key)
    try:
        return work(key, payload)
    except StackError as fault:
        fault.context.append(f"making row {key.index} of {stage}")
        raise
    except Exception as error:
        raise RowFault(stage, key.index, trace_of(error), worker) from error
    finally:
        set_row(None)


class Pool(Protocol):
    def run(self, tasks: Iterable[Task | Hole]) -> Iterator[Any]: ...
    def close(self) -> None: ...


class Inline:
    """No workers: each row when it is asked for."""

    def __init__(self, stage: str, work: Work) -> None:
        self.stage, self.work = stage, work

    def run(self, tasks: Iterable[Task | Hole]) -> Iterator[Any]:
        for task in tasks:
            yield HOLE if isinstance(task, Hole) else _settled(self.stage, self.work, *task)

    def close(self) -> None:
        pass


def _settled(stage: str, work: Work, key: RowKey, payload: Any) -> Any:
    """The result, or the fault as a value: the caller decides whether a bad row ends the pipeline."""
    try:
        return work_on(stage, work, key, payload)
    except StackError as fault:
        return fault


class Threads:
    """Worker threads.   Rows that take less than a thread costs are worked on at once."""

    QUICK_S = 60e-6

    def __init__(self, stage: str, work: Work, count: int) -> None:
        self.stage, self.work, self.count = stage, work, count
        self.pool = ThreadPoolExecutor(count, thread_name_prefix="jumar-dataset")
        self._times: list[float] = []

    def run(self, tasks: Iterable[Task | Hole]) -> Iterator[Any]:
        window: deque[Future[Any] | Hole] = deque()
        source = iter(tasks)
        try:
            for task in source:
                if isinstance(task, Hole):
                    window.append(HOLE)
                elif len(self._times) < 8 or np.median(self._times) < self.QUICK_S:
                    while window:
                        yield _value(window.popleft())
                    start = time.perf_counter()
                    result = _settled(self.stage, self.work, *task)
                    self._times = [*self._times[-15:], time.perf_counter() - start]
                    yield result
                    continue
                else:
                    window.append(self.pool.submit(_settled, self.stage, self.work, *task))
                if len(window) > 2 * self.count:
                    yield _value(window.popleft())
            while window:
                yield _value(window.popleft())
        finally:
            for waiting in window:
                if isinstance(waiting, Future):
                    waiting.cancel()

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)


def _value(waiting: Future[Any] | Hole) -> Any:
    return HOLE if isinstance(waiting, Hole) else waiting.result()


_parent_ends: weakref.WeakSet[Any] = weakref.WeakSet()  # a forked child closes them, so that a pipe breaks when its owner ends


class _Worker:
    """A worker process as its pool sees it."""

    def __init__(self, stage: str, work: Work, number: int) -> None:
        self.name = f"worker {number}"
        shared = config.get_enable_shared_mem()
        self.inbox: Slots | None = Slots(DEPTH) if shared else None
        self.outbox: Slots | None = Slots(DEPTH) if shared else None
        self.pipe, theirs = multiprocessing.Pipe()
        _parent_ends.add(self.pipe)
        context = multiprocessing.get_context(config.get_multiprocessing_start_method())
        arguments = (stage, work, self.name, theirs, self.inbox, self.outbox, os.getpid())
        self.process = context.Process(target=_serve, args=arguments, daemon=True, name=f"jumar-dataset-{number}")  # type: ignore[attr-defined]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 warns of any fork beside threads; the child uses none of their locks
            self.process.start()
        theirs.close()
        self.waiting: deque[int] = deque()  # tickets of the pool, oldest first
        self.sent = 0

    def close(self) -> None:
        self.pipe.close()
        if self.process.is_alive():
            self.process.terminate()
        self.process.join(1.0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join(5.0)
        for slots in (self.inbox, self.outbox):
            if slots is not None:
                slots.close()


def _close_all(workers: list[_Worker], owner: int) -> None:
    if os.getpid() != owner:  # a forked child has copies of the pools of its parent
        return
    for worker in workers:
        if worker.process.is_alive():
            worker.process.terminate()
    for worker in workers:
        worker.close()
    workers.clear()


class Processes:
    """Worker processes."""

    def __init__(self, stage: str, work: Work, count: int) -> None:
        self.stage = stage
        self.workers: list[_Worker] = []
        self.close = weakref.finalize(self, _close_all, self.workers, os.getpid())
        for number in range(count):
            self.workers.append(_Worker(stage, work, number))
        self.tickets = 0
        self.done: dict[int, Any] = {}
        self.rows: dict[int, int] = {}  # ticket -> row, for those under way

    def run(self, tasks: Iterable[Task | Hole]) -> Iterator[Any]:
        window: deque[int | Hole] = deque()
        source, more = iter(tasks), True
        # without shared memory a large task and a large result could fill both ways of a pipe, with both sides waiting
        depth = DEPTH if all(w.inbox for w in self.workers) else 1
        limit = 2 * depth * len(self.workers)
        try:
            while more or window:
                while (
                    more
                    and len(window) < limit
                    and (worker := min(self.workers, key=lambda w: len(w.waiting)))
                    and len(worker.waiting) < depth
                ):
                    task = next(source, None)
                    if task is None:
                        more = False
                    elif isinstance(task, Hole):
                        window.append(HOLE)
                        if window[0] is HOLE:
                            break
                    else:
                        window.append(self._send(worker, task))
                if not window:
                    return
                head = window[0]
                if isinstance(head, Hole):
                    window.popleft()
                    yield HOLE
                    continue
                while head not in self.done:
                    self._receive()
                window.popleft()
                yield self.done.pop(head)
        finally:
            for ticket in window:  # results of a pass that was left early are dropped when they come
                if not isinstance(ticket, Hole):
                    self.rows.pop(ticket, None)
                    self.done.pop(ticket, None)

    def _send(self, worker: _Worker, task: Task) -> int:
        self.tickets += 1
        ticket = self.tickets
        self.rows[ticket] = task[0].index
        worker.waiting.append(ticket)
        try:
            send(worker.pipe, worker.inbox, worker.sent, _TASK, task)
        except (BrokenPipeError, ConnectionResetError):
            self._lost(worker)
        worker.sent += 1
        return ticket

    def _receive(self) -> None:
        """Takes at least one result; a worker that is gone is an error, a silent one a warning."""
        pipes: dict[Any, _Worker] = {w.pipe: w for w in self.workers if w.waiting}
        ends: dict[Any, _Worker] = {w.process.sentinel: w for w in self.workers}
        patience = config.get_multiprocessing_timeout_interval()
        while not (ready := connection.wait([*pipes, *ends], timeout=patience)):
            if config.get_enable_watchdog():
                busy = ", ".join(f"{w.name} (pid {w.process.pid}) at row {self._row(w)}" for w in pipes.values())
                warnings.warn(f"{self.stage}: no row came for {patience} s; {busy}", RuntimeWarning, stacklevel=2)
        for one in ready:  # results that a worker had sent before it ended still count
            if one in pipes:
                worker = pipes[one]
                try:
                    _, kind, message = receive(worker.pipe, worker.outbox)
                except (EOFError, ConnectionResetError):
                    self._lost(worker)
                ticket = worker.waiting.popleft()
                row = self.rows.pop(ticket, None)
                if row is not None:
                    self.done[ticket] = self._result(worker, row, kind, message)
        if not any(one in pipes for one in ready):
            self._lost(next(ends[one] for one in ready))

    def _result(self, worker: _Worker, row: int, kind: int, message: Any) -> Any:
        if kind == _DONE:
            return message
        return RowFault(self.stage, row, message, f"{worker.name} (pid {worker.process.pid})")

    def _row(self, worker: _Worker) -> int | str:
        return self.rows.get(worker.waiting[0], "?") if worker.waiting else "?"

    def _lost(self, worker: _Worker) -> None:
        worker.process.join(2.0)
        code = worker.process.exitcode
        how = "ended" if code is None else f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        hint = "SIGKILL often means that memory ran out: use fewer workers or a smaller prefetch size" if code == -signal.SIGKILL else ""
        fault = WorkerLost(
            f"{self.stage}: {worker.name} (pid {worker.process.pid}) must give row {self._row(worker)}, but it {how}", hint=hint
        )
        self.close()
        raise fault


def _serve(stage: str, work: Work, name: str, pipe: Any, inbox: Slots | None, outbox: Slots | None, parent: int) -> None:
    """The life of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the parent ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in list(_parent_ends):
        other.close()
    if "cv2" in sys.modules:
        sys.modules["cv2"].setNumThreads(0)  # its threads did not survive the fork
    try:
        while True:
            while not pipe.poll(2.0):
                if os.getppid() != parent:
                    return
            ticket, _, task = receive(pipe, inbox)
            key, payload = task
            seed = np.random.SeedSequence([key.seed, key.stage, key.number, key.index]).generate_state(2)
            random.seed(int(seed[0]))
            np.random.seed(int(seed[1]))
            set_row(key)
            try:
                answer: tuple[int, Any] = (_DONE, work(key, payload))
            except StackError as fault:
                answer = (_FAILED, f"{trace_of(fault)}\n{fault}")
            except Exception as error:
                answer = (_FAILED, trace_of(error))
            set_row(None)
            try:
                send(pipe, outbox, ticket, *answer)
            except (BrokenPipeError, ConnectionResetError):
                return
            except Exception as error:  # a result that cannot be pickled
                send(pipe, outbox, ticket, _FAILED, f"the result of {stage} must be picklable\n{trace_of(error)}")
    except (EOFError, ConnectionResetError, KeyboardInterrupt):
        return


def make_pool(stage: str, work: Work, count: int, processes: bool) -> Pool:
    """Workers as asked for; one worker, or debug mode, is none."""
    if config.get_debug_mode() or count < 2:
        return Inline(stage, work)
    return Processes(stage, work, count) if processes else Threads(stage, work, count)
