"""A script's first steps, watched: `python -m jumar.tools.training.watch ORDER FACTS SCRIPT [ARGUMENTS]`.

In: an Order (facts.py), a script.  Out: Facts in a file.  The script runs unchanged, in PYNATIVE mode whatever it says, until its
optimiser was called so many times.  What is watched hangs on five places through which every run goes:
rows of datasets, calls of cells, operators, gradients, calls of optimisers.
"""

from __future__ import annotations

import builtins
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from jumar.base import Array
from jumar.frontend import LOCAL, Tensor, engine, grad, recorder, user
from jumar.frontend import capture as captures
from jumar.frontend import dtype as types
from jumar.tools.alias import as_mindspore
from jumar.tools.training.facts import Bad, Column, Facts, Layer, Order

_NARROW = ("float16", "bfloat16")


class _Enough(BaseException):
    """So many steps are done."""


class Watch:
    """What is seen of a run."""

    def __init__(self, order: Order) -> None:
        self.order, self.facts = order, Facts()
        self.backward = False
        self.alive: dict[str, Array] = {}  # ReLU -> units that were above 0
        self.root: Any = None
        self.scale = 1.0  # by which the loss is multiplied before it is differentiated

    # ------------------------------------------------------------------ data
    def row(self, names: Sequence[str], values: Any, dataset_shuffled: bool) -> None:
        """A row that a dataset gave."""
        self.facts.shuffled = dataset_shuffled
        items = values.items() if isinstance(values, dict) else zip(names, values, strict=False)
        for name, value in items:
            array = value.array if isinstance(value, Tensor) else value
            if isinstance(array, np.ndarray) and (array.dtype.kind in "iub" or _is_float(array)):
                self.column(name, array)

    def column(self, name: str, array: Array) -> None:
        """A batch of a column."""
        found = self.facts.columns.setdefault(name, Column(name, str(array.dtype)))
        wide = array.astype(np.float64).reshape(-1)
        good = wide[np.isfinite(wide)]
        found.batches += 1
        found.samples += len(array) if array.ndim else 1
        found.bad += len(wide) - len(good)
        if len(good):
            found.least, found.most = min(found.least, float(good.min())), max(found.most, float(good.max()))
            found.total, found.squares, found.count = (
                found.total + float(good.sum()),
                found.squares + float((good**2).sum()),
                found.count + len(good),
            )
            found.constant_batches += bool(good.min() == good.max()) and len(good) > 1
        found.whole = found.whole and array.ndim <= 1 and array.dtype.kind in "iu"
        found.sorted_batches += bool(found.whole and len(wide) > 2 and np.all(np.diff(wide) >= 0))

    # ------------------------------------------------------------------ cells
    def entered(self, cell: Any, args: tuple[Any, ...]) -> None:
        """The outermost call of a cell; the first one in training says what the network is."""
        sense = getattr(cell, "scale_sense", None)
        if isinstance(sense, Tensor) and sense.size == 1 and type(cell).__name__ == "TrainOneStepWithLossScaleCell":
            self.scale = float(sense.asnumpy().reshape(()))
        if self.root is not None or not (cell.training or any(c.training for _, c in cell.cells_and_names())):
            return
        self.root = cell
        for name, leaf in leaves(cell):
            self.facts.leaves.append(name)
            if leaf._mixed is not None and leaf._mixed is not types.float32:
                self.facts.narrow_leaves.append(name)
            if name in self.order.wide or (self.order.wide == ("*",)):
                leaf.to_float(types.float32)
                leaf.__dict__["_result"] = None  # amp may have asked for a float16 result
                leaf._refresh_plain()

    def called(self, cell: Any, args: tuple[Any, ...]) -> None:
        """A cell is about to compute: a loss tells how many classes there are."""
        kind = type(cell).__name__
        if "CrossEntropy" in kind or "NLLLoss" in kind:
            logits = next((a for a in args if isinstance(a, Tensor) and a.ndim >= 2), None)
            if logits is not None:
                self.facts.classes = logits.shape[1]

    def left(self, cell: Any, result: Any) -> None:
        """A cell has given its result."""
        kind = type(cell).__name__
        if kind in ("ReLU", "ReLU6") and isinstance(result, Tensor) and result._value is not None and cell.training:
            above: Array = np.asarray((result.array > 0).any(axis=0))
            key = user.cell_path() or kind
            before = self.alive.get(key)
            self.alive[key] = np.asarray(before | above) if before is not None and before.shape == above.shape else above

    # ------------------------------------------------------------------ operators
    def computed(self, op: Any, arrays: Sequence[Array], result: Any) -> None:
        """An operator's result."""
        results = result if isinstance(result, tuple) else (result,)
        narrow = any(str(r.dtype) in _NARROW for r in results)
        self.facts.narrow |= narrow
        if self.facts.bad is not None or (self.root is None and not self.backward and not LOCAL.calls):
            return
        if all(_finite(r) for r in results) or not all(_finite(a) for a in arrays):
            return
        node = sys._getframe(2).f_locals.get("node") if self.backward else None  # the node whose gradient is being computed knows its line
        loc = getattr(node, "loc", None) or user.user_loc()
        largest = max((float(np.abs(a.astype(np.float64)).max()) for a in arrays if a.size and _is_float(a)), default=0.0)
        phase = "backward" if self.backward else "forward"
        self.facts.bad = Bad(
            self.facts.steps + 1, op.name, str(results[0].dtype), phase, str(loc) if loc else "", user.cell_path(), largest
        )

    def loss(self, value: Array | None, seeds: Any) -> None:
        """What is about to be differentiated; with overflow steps without end are possible, so these count, too."""
        if len(self.facts.losses) >= 2 * self.order.steps:
            raise _Enough
        if value is not None:
            self.facts.losses.append(float(np.mean(value, dtype=np.float64)) / self.scale)
        seed = seeds[0] if isinstance(seeds, tuple | list) and seeds else seeds
        scale = float(seed.array.reshape(())) if isinstance(seed, Tensor) and seed.size == 1 else self.scale
        self.facts.scales.append(scale)

    # ------------------------------------------------------------------ optimisers
    def before(self, optimizer: Any, gradients: Any) -> dict[int, Array]:
        """Gradients that an optimiser is called with.   -> the parameters as they are"""
        rate = getattr(optimizer, "learning_rate", None)
        if self.facts.steps == 0 and self.order.factor != 1.0 and isinstance(rate, Tensor):
            rate._write(Tensor(rate.asnumpy() * np.float32(self.order.factor)))
        if isinstance(rate, Tensor) and rate.size == 1:
            self.facts.rates.append(float(rate.asnumpy()))
        kept = {}
        for param, gradient in zip(optimizer.parameters, gradients, strict=False):
            if not isinstance(gradient, Tensor):
                continue
            layer = self.facts.layers.setdefault(param.name, Layer(param.name))
            wide = gradient.array.astype(np.float64)
            layer.norms.append(float(np.linalg.norm(wide.reshape(-1))))
            layer.zeros.append(float(np.mean(wide == 0)) if wide.size else 0.0)
            kept[id(param)] = param.asnumpy().astype(np.float64)
        return kept

    def after(self, optimizer: Any, kept: dict[int, Array]) -> None:
        """What the optimiser has changed; ends the run when it was the last step."""
        for param in optimizer.parameters:
            old = kept.get(id(param))
            if old is not None:
                change, size = np.linalg.norm((param.asnumpy().astype(np.float64) - old).reshape(-1)), np.linalg.norm(old.reshape(-1))
                self.facts.layers[param.name].changes.append(float(change / size) if size else 0.0)
        self.facts.steps += 1
        if self.facts.steps >= self.order.steps:
            raise _Enough

    def finish(self) -> Facts:
        """The facts of the run."""
        self.facts.relus = {name: float(1 - above.mean()) for name, above in self.alive.items()}
        return self.facts


def leaves(cell: Any) -> list[tuple[str, Any]]:
    """Layers without layers below."""
    return [(name, c) for name, c in cell.cells_and_names() if name and not c._cells and not hasattr(c, "global_step")]


def _is_float(array: Array) -> bool:
    return array.dtype.kind == "f" or str(array.dtype) == "bfloat16"


def _finite(array: Array) -> bool:
    return not _is_float(array) or bool(np.isfinite(array).all())


# ------------------------------------------------------------------ the places
def install(watch: Watch) -> None:
    """Hangs the watch on the places through which a run goes.   In this process, which runs nothing else."""
    from jumar.context import force_mode  # noqa: PLC0415  (this process forces a mode; others import only `leaves`)
    from jumar.dataset import pipeline  # noqa: PLC0415
    from jumar.nn import Cell, Optimizer  # noqa: PLC0415

    force_mode("pynative")
    Iterator = pipeline.Iterator
    execute, cell_call, optimizer_call = engine.execute, Cell.__call__, Optimizer.__call__
    following, differentiate = Iterator.__next__, grad.differentiate

    def watched_execute(op: Any, arrays: Sequence[Array]) -> Any:
        result = execute(op, arrays)
        watch.computed(op, arrays, result)
        return result

    def watched_cell(cell: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(cell, Optimizer):
            return watched_optimizer(cell, *args, **kwargs)
        if not LOCAL.calls:
            watch.entered(cell, args)
        watch.called(cell, args)
        result = cell_call(cell, *args, **kwargs)
        LOCAL.calls.append(cell)  # the path of the cell that is left
        try:
            watch.left(cell, result)
        finally:
            LOCAL.calls.pop()
        return result

    def watched_optimizer(optimizer: Any, gradients: Any, *args: Any, **kwargs: Any) -> Any:
        kept = watch.before(optimizer, gradients)
        result = optimizer_call(optimizer, gradients, *args, **kwargs)
        watch.after(optimizer, kept)
        return result

    def watched_row(iterator: Any) -> Any:
        row = following(iterator)
        watch.row(iterator.get_col_names(), row, bool(watched_datasets.get(id(iterator), True)))
        return row

    watched_datasets: dict[int, bool] = {}
    make = Iterator.__init__

    def watched_make(iterator: Any, dataset: Any, *args: Any, **kwargs: Any) -> None:
        make(iterator, dataset, *args, **kwargs)
        watched_datasets[id(iterator)] = dataset.is_shuffled()

    def watched_gradients(under_way: Any, nodes: Any, wrt: Any, seeds: Any = None) -> Any:
        if not watch.backward:
            watch.loss(under_way.known.get(nodes[0]), seeds)
        before, watch.backward = watch.backward, True
        try:
            return differentiate(under_way, nodes, wrt, seeds)
        finally:
            watch.backward = before

    def watched_differentiated(function: Any, *args: Any, **kwargs: Any) -> Any:
        if LOCAL.recorder is not None:
            return function.run(*args, **kwargs)
        tape = recorder.Tape()
        try:
            with recorder.activated(tape):
                return function.run(*args, **kwargs)
        finally:
            tape.close()

    for place, name, watched in (
        (engine, "execute", watched_execute),
        (recorder, "execute", watched_execute),
        (grad, "differentiate", watched_gradients),
        (grad._Differentiated, "__call__", watched_differentiated),
        (captures.Captured, "__call__", lambda captured, *args, **kwargs: captured.function(*args, **kwargs)),
        (Iterator, "__next__", watched_row),
        (Iterator, "__init__", watched_make),
        (Cell, "__call__", watched_cell),
    ):
        setattr(place, name, watched)


def run(watch: Watch, script: Path, arguments: Sequence[str]) -> Facts:
    """Runs the script until it has done its steps, has ended, or has failed."""
    as_mindspore()
    install(watch)
    sys.argv = [str(script), *arguments]
    sys.path[0] = str(script.resolve().parent)
    main = ModuleType("__main__")
    main.__dict__.update(__file__=str(script), __builtins__=builtins)
    sys.modules["__main__"] = main
    try:
        exec(compile(script.read_bytes(), str(script), "exec"), main.__dict__)
    except (_Enough, SystemExit):
        pass
    except BaseException as error:
        last = next((f for f in reversed(traceback.extract_tb(error.__traceback__)) if f.filename == str(script)), None)
        where = f" at {last.filename}:{last.lineno}" if last else ""
        said = (str(error).splitlines() or [""])[0].removeprefix(f"{type(error).__name__}: ")
        watch.facts.error = f"{type(error).__name__}: {said}{where}"
    return watch.finish()


def main() -> None:
    """See the head of the file."""
    order, out, script, *arguments = sys.argv[1:]
    facts = run(Watch(Order.from_json(order)), Path(script), arguments)
    Path(out).write_text(facts.to_json(), encoding="utf-8")


if __name__ == "__main__":
    main()
