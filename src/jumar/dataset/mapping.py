"""map: columns replaced by what operations make of them, by workers where they are worth it.

In: a stage, operations, names of columns.  Out: a stage.  Operations are functions of as many arrays as there are input columns, or of
transforms/ and vision/; each gets what the one before it returned.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator as Rows
from dataclasses import dataclass
from typing import Any

from jumar.base import StackError
from jumar.dataset import config
from jumar.dataset.callback import DSCallback, MapCallbacks
from jumar.dataset.dataset import Dataset
from jumar.dataset.errors import DataFault, DataTypeFault, check_bool, names
from jumar.dataset.order import RowKey
from jumar.dataset.pipeline import Row, Run, Want
from jumar.dataset.stages import places
from jumar.dataset.transforms.base import Transform
from jumar.dataset.values import to_value
from jumar.dataset.workers import HOLE, Hole


def rearranged(have: list[str], inputs: list[str], outputs: list[str]) -> list[tuple[str, int, bool]]:
    """Columns after inputs became outputs: (name, place in the outputs or in `have`, whether it is an output).

    As many outputs as inputs take their places; otherwise the outputs come first, then the rest.
    """
    if len(inputs) == len(outputs):
        new = dict(zip(inputs, range(len(outputs))))
        found = [(outputs[new[c]], new[c], True) if c in new else (c, i, False) for i, c in enumerate(have)]
        return [f for f in found if f[2] or f[0] not in outputs]
    rest = [(c, i, False) for i, c in enumerate(have) if c not in inputs and c not in outputs]
    return [(c, i, True) for i, c in enumerate(outputs)] + rest


def flat_operations(operations: Any) -> list[Callable[..., Any]]:
    """One operation or a list of them as a list of callables."""
    found = list(operations) if isinstance(operations, (list, tuple)) else [operations]
    if not found:
        raise DataTypeFault("map: operations must be a function or a list of functions, got none")
    for op in found:
        if not callable(op):
            raise DataTypeFault(f"map: operations must be callable, got {type(op).__name__}")
    return found


def apply_operations(operations: list[Callable[..., Any]], values: tuple[Any, ...]) -> tuple[Any, ...]:
    """What the operations make of the values, one after the other."""
    for op in operations:
        result = op(*values)
        values = result if isinstance(result, tuple) else (result,)
    return values


@dataclass(frozen=True)
class MapWork:
    """What a worker does with the input columns of a row."""

    operations: list[Callable[..., Any]]
    expected: int

    def __call__(self, _: RowKey, values: tuple[Any, ...]) -> tuple[Any, ...]:
        results = apply_operations(self.operations, values)
        if len(results) != self.expected:
            raise DataFault(
                f"map: operations must return {self.expected} columns, got {len(results)}", hint="name them all in output_columns"
            )
        return tuple(to_value(v, "map") for v in results)


class MapDataset(Dataset):
    """A stage whose rows are those below with some columns replaced."""

    def __init__(
        self,
        child: Dataset,
        operations: Any,
        input_columns: str | list[str] | None = None,
        output_columns: str | list[str] | None = None,
        num_parallel_workers: int | None = None,
        python_multiprocessing: bool = False,
        cache: Any = None,
        callbacks: DSCallback | list[DSCallback] | None = None,
        max_rowsize: int | list[int] | None = None,
        offload: bool | None = None,
    ) -> None:
        super().__init__([child], num_parallel_workers, cache)
        self.operations = flat_operations(operations)
        self.inputs = names("map", "input_columns", input_columns)
        self.outputs = names("map", "output_columns", output_columns)
        self.python_multiprocessing = check_bool("map", "python_multiprocessing", python_multiprocessing)
        self.callbacks = [callbacks] if isinstance(callbacks, DSCallback) else list(callbacks or [])
        if offload:
            raise DataFault("map: offload must be None or False, got True", hint="operations of a map run on the host")

    def workers(self) -> int:
        """Functions of the user's may draw from global random numbers: they stay in order unless workers are asked for."""
        known = all(isinstance(op, Transform) for op in self.operations)
        return self.num_parallel_workers or (super().workers() if known or self.python_multiprocessing else 1)

    def stage_name(self) -> str:
        inner = ", ".join(getattr(op, "__name__", type(op).__name__) for op in self.operations[:3])
        return f"Map({inner}{', ...' if len(self.operations) > 3 else ''})"

    def _inputs(self) -> list[str]:
        return self.inputs or self.children[0].columns()[:1]

    def _plan(self) -> list[tuple[str, int, bool]]:
        inputs = self._inputs()
        places(self.children[0], inputs, "map")
        return rearranged(self.children[0].columns(), inputs, self.outputs or inputs)

    def columns(self) -> list[str]:
        return [name for name, _, _ in self._plan()]

    def open(self, run: Run) -> None:
        # callbacks may change what the operations do, so that row by row is the only right order
        count = 1 if self.callbacks else self.workers()
        work = MapWork(self.operations, len(self.outputs or self._inputs()))
        run.pool(self, work, count, self.python_multiprocessing and count > 1)

    def rows(self, run: Run, number: int, want: Want) -> Rows[Row | Hole]:
        yield from self._made(run, number, enumerate(run.rows(self.children[0], number, want)))

    def picked(self, run: Run, number: int, order: Rows[int | None]) -> Rows[Row | Hole]:
        chosen = list(order)
        rows = run.picked(self.children[0], number, iter(chosen))
        yield from self._made(run, number, ((-1 if place is None else place, row) for place, row in zip(chosen, rows)))

    def _made(self, run: Run, number: int, numbered: Rows[tuple[int, Row | Hole]]) -> Rows[Row | Hole]:
        plan = self._plan()
        chosen = places(self.children[0], self._inputs(), "map")
        waiting: list[Row | Hole] = []

        calls = MapCallbacks(self.callbacks, number, self.children[0]) if self.callbacks else None

        def tasks() -> Rows[tuple[RowKey, Any] | Hole]:
            for index, row in numbered:
                waiting.append(row)
                if calls and not isinstance(row, Hole):
                    calls.before_row()
                yield row if isinstance(row, Hole) else (run.key(self, number, index), tuple(row[p] for p in chosen))

        last: Row | Hole = HOLE
        at = 0
        for result in run.pools[id(self)].run(tasks()):
            row, at = waiting[at], at + 1
            if at >= 256:
                del waiting[:at]
                at = 0
            if isinstance(row, Hole) or isinstance(result, Hole):
                yield HOLE
                continue
            if isinstance(result, StackError):
                match config.get_error_samples_mode():
                    case config.ErrorSamplesMode.SKIP:
                        continue
                    case config.ErrorSamplesMode.REPLACE if isinstance(last, tuple):
                        yield last
                        continue
                raise result
            last = tuple(result[p] if new else row[p] for _, p, new in plan)
            yield last
            if calls:
                calls.after_row()
        if calls:
            calls.after_pass()
