"""Epilogues: what happens to a tile of sums on its way to memory.

In: the region (region.py) of the elementwise body around a contraction.  Out: `Layout`, how its operands and results lie along the
contraction's batches, rows and columns, and `Writer`, code that takes sums through the body to memory.  Used by gemm.py and its kin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from jumar.base import Array, DType
from jumar.ir import Node
from jumar.kernel import Builder, Value
from jumar.operators.cpu.expression import Accumulate, Expression, load, store
from jumar.operators.cpu.region import Operand, Region
from jumar.operators.schedule import Pitched, TaskArg

FIXED, LINEAR, PERIODIC = "fixed", "linear", "periodic"  # how an address follows from the row
NONE, DENSE, SPLIT = "none", "dense", "split"  # and from the column


@dataclass(frozen=True)
class Lie:
    """How a value lies along rows and columns, as far as code depends on it.

    rows: fixed (all the same), linear, or periodic (two strides).
    columns: none (all the same), dense, or split (dense runs of whole panels).
    """

    dtype: DType
    rows: str
    columns: str


@dataclass(frozen=True)
class Epilogue:
    """The part of an epilogue that is code.   source: which input of the expression is the sums; operands: the others, in order."""

    expression: Expression
    source: int
    operands: tuple[Lie, ...]
    outputs: tuple[Lie, ...]


@dataclass(frozen=True)
class Strides:
    """Numbers of a value, in elements: row m is at (m // period) * outer + (m % period) * inner, columns likewise with steps of 1."""

    period: int = 1
    outer: int = 0
    inner: int = 0
    column_period: int = 1
    column_outer: int = 0

    @property
    def args(self) -> tuple[int, ...]:
        return (self.period, self.outer, self.inner, self.column_period, self.column_outer)


NUMBERS = ("period", "outer", "inner", "column_period", "column_outer")


@dataclass(frozen=True)
class Spot:
    """A value of the graph in an epilogue.   offsets: of each batch, in elements; run: columns, where they are dense."""

    node: Node
    lie: Lie
    strides: Strides
    offsets: Array
    run: int = 0

    def pitched(self, arg: int) -> tuple[Pitched, ...]:
        """The value as rows that may lie further apart, where it is argument `arg` and its numbers follow."""
        if self.lie.rows != LINEAR or self.lie.columns != DENSE or self.offsets.any():
            return ()
        nbytes = self.lie.dtype.nbytes
        return (Pitched(arg, (arg + 1 + NUMBERS.index("inner"),), self.run * nbytes, nbytes),)


@dataclass(frozen=True)
class Layout:
    """An epilogue with its numbers."""

    epilogue: Epilogue
    operands: tuple[Spot, ...]
    outputs: tuple[Spot, ...]

    @property
    def offsets(self) -> list[Array]:
        """Offsets of each batch: outputs, then operands; columns of the table of places."""
        return [s.offsets for s in (*self.outputs, *self.operands)]

    def args(self, places: Sequence[TaskArg]) -> tuple[TaskArg, ...]:
        """Arguments of `Writer`, from where outputs and operands are."""
        spots = (*self.outputs, *self.operands)
        return tuple(a for spot, place in zip(spots, places, strict=True) for a in (place, *spot.strides.args))


@dataclass(frozen=True)
class Axes:
    """How the contraction's result, dense in memory, falls into columns, rows and batches: names with the element where each ends.

    `(("columns", 64), ("rows", 64 * 196))`: 64 columns, 196 rows.  Groups of a convolution are batches between columns and rows.
    """

    parts: tuple[tuple[str, int], ...]


def lay_out(region: Region, root: Node, axes: Axes, panel: int) -> Layout | None:
    """How the operands of a region lie along the result of `root`; None where an epilogue cannot read or write them so.

    panel: columns of a tile; runs of columns must be whole tiles.
    """
    sources = [i for i, o in enumerate(region.operands) if o.node is root]
    if any(isinstance(s.op, Accumulate) for s in region.expression.steps):  # also over a dimension of 1, where `reduced` is empty
        return None
    if len(sources) != 1 or region.reduced or region.operands[sources[0]].offset or region.size != root.type.size:
        return None
    split = _split(region, region.operands[sources[0]].strides, axes)
    if split is None:
        return None
    spots = [_spot(o, split, panel) for i, o in enumerate(region.operands) if i != sources[0]]
    targets = [_spot(o, split, panel) for o in region.targets]
    operands, outputs = [s for s in spots if s], [t for t in targets if t]
    if len(operands) < len(spots) or len(outputs) < len(targets) or any(o.lie.columns == NONE for o in outputs):
        return None
    epilogue = Epilogue(region.expression, sources[0], tuple(o.lie for o in operands), tuple(o.lie for o in outputs))
    return Layout(epilogue, tuple(operands), tuple(outputs))


_Split = dict[str, list[tuple[int, int, int]]]  # part -> (axis, size, multiple of the axis' stride), outermost first


def _split(region: Region, strides: Sequence[int], axes: Axes) -> _Split | None:
    """The axes of the region by the part of the result that they walk; an axis over several parts is cut."""
    found: _Split = {name: [] for name, _ in axes.parts}
    order = sorted((s, -size, axis) for axis, (size, s) in enumerate(zip(region.space, strides, strict=True)) if size > 1)
    expected = 1
    for stride, negative, axis in order:
        size, multiple = -negative, 1
        if stride != expected:
            return None  # the body repeats or skips parts of the result
        for name, end in axes.parts:
            at = stride * multiple
            if at >= end or size == 1:
                continue
            inside = min(size, end // at)
            if end % at or size % inside:
                return None
            found[name].insert(0, (axis, inside, multiple))
            size, multiple = size // inside, multiple * inside
        expected = stride * -negative
    return found


def _spot(operand: Operand, split: _Split, panel: int) -> Spot | None:
    def runs(name: str) -> list[tuple[int, int]]:
        """(size, stride) of a part, outermost first, merged where one continues the next."""
        merged: list[tuple[int, int]] = []
        for axis, size, multiple in split.get(name, ()):
            stride = operand.strides[axis] * multiple
            if merged and merged[-1][1] == size * stride:
                merged[-1] = (merged[-1][0] * size, stride)
            else:
                merged.append((size, stride))
        return merged

    rows, period, outer, inner = FIXED, 1, 0, 0
    match runs("rows"):
        case [] | [(_, 0)]:
            pass
        case [(_, inner)]:
            rows = LINEAR
        case [(_, outer), (period, inner)]:
            rows = PERIODIC
        case _:
            return None
    columns, column_period, column_outer, run = NONE, 1, 0, 0
    match runs("columns"):
        case [] if not split["columns"]:
            columns, run = DENSE, 1  # a single column
        case [(_, 0)]:
            pass
        case [(run, 1)]:
            columns = DENSE
        case [(_, column_outer), (column_period, 1)] if column_period % panel == 0:
            columns = SPLIT
        case _:
            return None
    offsets = np.full(1, operand.offset, np.int64)
    for axis, size, multiple in split.get("batch", ()):
        offsets = (offsets[:, None] + np.arange(size) * (operand.strides[axis] * multiple)).reshape(-1)
    lie = Lie(operand.node.dtype, rows, columns)
    return Spot(operand.node, lie, Strides(period, outer, inner, column_period, column_outer), offsets, run)


class Writer:
    """Code of an epilogue in one kernel: declares its parameters (in the order of `Layout.args`), then writes rows."""

    def __init__(self, k: Builder, epilogue: Epilogue) -> None:
        self.k = k
        self.epilogue = epilogue
        self.lies = (*epilogue.outputs, *epilogue.operands)
        self.params: list[tuple[Value, dict[str, Value]]] = []
        for i, lie in enumerate(self.lies):
            name = f"y{i}" if i < len(epilogue.outputs) else f"e{i - len(epilogue.outputs)}"
            self.params.append((k.pointer(name, lie.dtype), {n: k.integer(f"{name}_{n}") for n in NUMBERS}))

    def columns(
        self, offset: Callable[[int], Value], column: Value, width: Value | None, lanes: int, *, ahead: bool = True
    ) -> Columns:  # fmt: skip
        """Code for the columns from `column`.   offset(i): of this batch for value i; width: columns that exist (None: all `lanes`).

        ahead: the next columns are written later, so their lines are fetched.
        """
        return self.panel(self.starts(offset, column), width, lanes, ahead=ahead)

    def starts(self, offset: Callable[[int], Value], column: Value) -> list[Value]:
        """Pointers to where each value has its row 0 at `column`."""
        k, starts = self.k, []
        for i, (lie, (pointer, numbers)) in enumerate(zip(self.lies, self.params, strict=True)):
            at = offset(i)
            if lie.columns == DENSE:
                at = at + column
            elif lie.columns == SPLIT:
                period = numbers["column_period"]
                at = at + quotient(k, column, period) * numbers["column_outer"] + modulo(k, column, period)
            starts.append(k.offset(pointer, at))
        return starts

    def panel(self, starts: list[Value], width: Value | None, lanes: int, *, ahead: bool = False) -> Columns:
        """Code for the columns that begin at `starts`."""
        return Columns(self, starts, None if width is None else self.k.lane_mask(width, lanes), lanes, ahead)


class Columns:
    """Code of an epilogue for one panel of columns: what all rows share is loaded once."""

    def __init__(self, writer: Writer, starts: list[Value], mask: Value | None, lanes: int, ahead: bool) -> None:
        self.writer, self.starts, self.mask, self.lanes, self.ahead = writer, starts, mask, lanes, ahead
        self.shared = {i: self._load(i, 0) for i, lie in self._operands() if lie.rows == FIXED}

    def _operands(self) -> list[tuple[int, Lie]]:
        count = len(self.writer.epilogue.outputs)
        return list(enumerate(self.writer.lies))[count:]

    def _load(self, i: int, at: Value | int) -> Value:
        k = self.writer.k
        return load(k, self.starts[i], at) if self.writer.lies[i].columns == NONE else load(k, self.starts[i], at, self.lanes, self.mask)

    def _row(self, i: int, row: Value) -> Value:
        k, numbers = self.writer.k, self.writer.params[i][1]
        if self.writer.lies[i].rows == PERIODIC:
            period = numbers["period"]
            return quotient(k, row, period) * numbers["outer"] + modulo(k, row, period) * numbers["inner"]
        return row * numbers["inner"]

    def write(self, row: Value, sums: Value) -> None:
        """One row: the sums through the body to memory."""
        epilogue, k = self.writer.epilogue, self.writer.k
        values = [self.shared[i] if i in self.shared else self._load(i, self._row(i, row)) for i, _ in self._operands()]
        values.insert(epilogue.source, sums)
        for i, value in enumerate(epilogue.expression.emit(k, values, self.lanes)):
            at = self._row(i, row)
            store(k, value, self.starts[i], at, self.mask)
            if self.ahead:
                k.prefetch(self.starts[i], at + self.lanes, write=True)  # the line of the next panel, while that one is computed

    def fetch(self, row: Value) -> None:
        """Fetches what a row still to come is made of and where it goes, where that needs no division."""
        outputs = len(self.writer.epilogue.outputs)
        for i, lie in enumerate(self.writer.lies):
            if lie.rows == LINEAR and lie.columns != NONE:
                at = row * self.writer.params[i][1]["inner"]
                for line in range(0, self.lanes, 64 // lie.dtype.nbytes):
                    self.writer.k.prefetch(self.starts[i], at + line, write=i < outputs)


def quotient(k: Builder, a: Value, b: Value) -> Value:
    """a / b of numbers that are never negative, b never 0: without the tests that the Builder's `/` makes."""
    return k.binary("div", a, b)


def modulo(k: Builder, a: Value, b: Value) -> Value:
    """a % b, likewise."""
    return k.binary("rem", a, b)
