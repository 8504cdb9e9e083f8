"""Pointwise groups: elementwise operators with broadcasting, any number of results, in one pass over memory.

In: a `Region` without reduced axes.  Out: one task.  The last axis is the inner one and runs in vectors; the axes before it are counted
as rows.  A chunk is some rows, or a part of one long row.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from jumar.base import DType
from jumar.device import Target
from jumar.ir import Node
from jumar.kernel import Builder, Kernel, Value, Variable
from jumar.operators.cpu.expression import Expression, lanes_of, load, masks_are_cheap, store, widen
from jumar.operators.cpu.region import Operand, Region, collapse, with_axes
from jumar.operators.schedule import Lowered, Packed, Pitched, Place, Task, TaskArg

CHUNK_WORK = 6000  # vector instructions in a chunk: some microseconds, so that handing it out is small
CHUNK_NBYTES = 16 << 10
MAX_CHUNKS = 256
PAIR = 2


@dataclass(frozen=True)
class Walk:
    """What the code of a nest depends on.   outer: axes around the inner one; inner: how each operand, then each target, moves
    along it: 0 stands still, 1 is dense, 2 has a stride.

    wide: registers that make one vector.  Two whose instructions alternate keep the machine busier than two one after the other: a long
    polynomial is a chain, and the scheduler looks only so far ahead (exp: 12 % faster, erf: 25 %).
    """

    outer: int
    inner: tuple[int, ...]
    lanes: int
    wide: int
    masked: bool


def lower_pointwise(region: Region, places: dict[Node, TaskArg], target: Target, label: str = "") -> Lowered:
    """The task of a region.   places: where operands and targets are."""
    if region.size == 0:
        return Lowered()
    region, expression = collapse(region), region.expression
    memory = [o.node.dtype for o in (*region.operands, *region.targets)]
    lanes = lanes_of((*expression.dtypes, *memory), target)
    long = _long_axis(region, lanes)
    if long is not None:
        region = _innermost(region, long)
    *outer, inner = region.space or (1,)
    everything = (*region.operands, *region.targets)
    inner_strides = [o.strides[-1] if o.strides else 1 for o in everything]
    masked = lanes > 1 and long is None and masks_are_cheap(memory, target)
    if 0 < inner < lanes and not masked:
        lanes = max(1, 1 << (inner.bit_length() - 1))
    units = expression.cost + len(everything)
    walk = Walk(
        len(outer), tuple(s if s in (0, 1) else 2 for s in inner_strides), lanes,
        PAIR if inner >= PAIR * lanes else 1, masked,
    )  # fmt: skip
    rows = math.prod(outer)
    nbytes = sum(o.node.dtype.nbytes for o in everything) * rows * inner
    rows_per_chunk, parts, part = split(rows, inner, units * rows * -(-inner // lanes), nbytes, lanes * walk.wide)
    args: list[TaskArg] = [argument(o, places) for o in everything]
    args += [inner, part, parts]
    if outer:
        args += [rows, rows_per_chunk, *outer[1:]]
        args += [o.strides[a] for o in everything for a in range(len(outer))]
    pitched = []
    for i, (o, step) in enumerate(zip(region.targets, inner_strides[-len(region.targets) :], strict=True)):
        first, nbytes = len(args) - (len(region.targets) - i) * len(outer), o.node.dtype.nbytes
        if outer and step == 1:
            pitched.append(Pitched(len(region.operands) + i, tuple(range(first, first + len(outer))), inner * nbytes, nbytes))
    args += [s for s in inner_strides if s not in (0, 1)]
    count = len(region.operands)
    task = Task(
        pointwise_kernel(expression, tuple(memory[count:]), walk), tuple(args), tuple(range(count, len(everything))),
        chunks=-(-rows // rows_per_chunk) * parts, inplace=tuple(_inplace(region)), nbytes=nbytes, label=label, pitched=tuple(pitched),
    )  # fmt: skip
    return Lowered((task,))


def _long_axis(region: Region, lanes: int) -> int | None:
    """The axis to run in vectors where the last one is too short for them: a long one along which the operands are dense or stand still.

    An image of three channels that comes in planes is read in vectors and written element by element: four times as fast as the reverse.
    """
    if not region.space or region.space[-1] >= lanes:
        return None
    for axis in reversed(range(len(region.space) - 1)):
        steps = {o.strides[axis] for o in region.operands}
        if region.space[axis] >= 4 * lanes and 1 in steps and steps <= {0, 1}:
            return axis
    return None


def _innermost(region: Region, axis: int) -> Region:
    """The same nest with another axis as the last."""
    everything = (*region.operands, *region.targets)
    axes = [(size, a in region.reduced, [o.strides[a] for o in everything]) for a, size in enumerate(region.space)]
    return with_axes(region, [*axes[:axis], *axes[axis + 1 :], axes[axis]])


def argument(operand: Operand, places: dict[Node, TaskArg]) -> TaskArg:
    """The pointer to an operand's first element in the space; constants of a body bring themselves along."""
    nbytes = operand.offset * operand.node.dtype.nbytes
    found = places.get(operand.node)
    match found:
        case Place(node=node, nbytes_offset=before, result=result):
            return Place(node, before + nbytes, result)
        case None if operand.node.array is not None:
            assert not operand.offset, "a constant is sliced by folding"
            return Packed(operand.node.array)
        case None:
            raise AssertionError(f"{operand.node} has no place: this is our bug")
    return found


def split(rows: int, inner: int, work: float, nbytes: int, quantum: int) -> tuple[int, int, int]:
    """(rows of a chunk, parts of a row, elements of a part): chunks that are worth handing out, of equal size."""
    wanted = int(min(max(work / CHUNK_WORK, nbytes / (4 * CHUNK_NBYTES)), MAX_CHUNKS, work * 4 / CHUNK_WORK + nbytes / CHUNK_NBYTES))
    if wanted < 2:
        return rows, 1, inner
    if rows >= wanted:
        return -(-rows // wanted), 1, inner
    parts = max(1, min(wanted // rows, inner // quantum))
    part = -(-inner // parts // quantum) * quantum if parts > 1 else inner
    return 1, max(1, -(-inner // part)), part


def _inplace(region: Region) -> list[tuple[int, int]]:
    """Results that may lie where an operand lies: it is read once, dense, at the same element, with elements of the same size."""
    found = []
    nodes = [o.node for o in region.operands]
    for t, target in enumerate(region.targets, len(nodes)):
        for i, operand in enumerate(region.operands):
            same = operand.strides == target.strides and not operand.offset and operand.node.type.size == target.node.type.size
            if same and operand.node.dtype.nbytes == target.node.dtype.nbytes and nodes.count(operand.node) == 1:
                found.append((t, i))
    return found


@functools.cache
def pointwise_kernel(expression: Expression, results: tuple[DType, ...], walk: Walk) -> Kernel:
    """Code of a nest.   args: operands, targets, inner size, part of it, parts; with outer axes: rows, rows of a chunk, their sizes but
    the first, strides of each pointer along each; then the strides along the inner axis that are not 0 or 1."""
    k = Builder("pointwise")
    pointers = [k.pointer(f"x{i}", d) for i, d in enumerate(expression.inputs)]
    pointers += [k.pointer(f"y{i}", d) for i, d in enumerate(results)]
    n, part, parts = k.integer("n"), k.integer("part"), k.integer("parts")
    outer = None
    if walk.outer:
        rows, rows_per_chunk = k.integer("rows"), k.integer("rows_per_chunk")
        sizes = [k.integer(f"size{a}") for a in range(1, walk.outer)]
        strides = [[k.integer(f"stride{i}_{a}") for a in range(walk.outer)] for i in range(len(pointers))]
        outer = (rows, rows_per_chunk, sizes, strides)
    steps = [k.integer(f"step{i}") if kind == 2 else None for i, kind in enumerate(walk.inner)]
    block = k.chunk % parts
    begin = block * part
    end = k.minimum(begin + part, n)
    if outer is None:
        _inner(k, expression, walk, pointers, steps, begin, end)
        return k.finish()
    rows, rows_per_chunk, sizes, strides = outer
    first = (k.chunk / parts) * rows_per_chunk
    last = k.minimum(first + rows_per_chunk, rows)
    with rows_of(k, first, last, sizes, strides) as offsets:
        moved = [k.offset(p, o.get()) for p, o in zip(pointers, offsets, strict=True)]
        _inner(k, expression, walk, moved, steps, begin, end)
    return k.finish()


class rows_of:  # noqa: N801  (used as a statement)
    """`with rows_of(k, first, last, sizes, strides) as offsets:` runs the block for each row; offsets: variables, one for each pointer.

    Rows are counted like an odometer: additions only, a division at the start.   sizes: of the outer axes but the first.
    """

    def __init__(self, k: Builder, first: Value, last: Value, sizes: Sequence[Value], strides: Sequence[Sequence[Value]]) -> None:
        self.k, self.first, self.last, self.sizes, self.strides = k, first, last, sizes, strides

    def __enter__(self) -> list[Variable]:
        k = self.k
        rest, at = self.first, []
        for size in reversed(self.sizes):
            at.append(rest % size)
            rest = rest / size
        at.append(rest)
        at.reverse()
        self.counters = [k.var(a) for a in at[1:]]
        self.offsets = []
        for strides in self.strides:
            offset = at[0] * strides[0]
            for a, stride in zip(at[1:], strides[1:], strict=True):
                offset = offset + a * stride
            self.offsets.append(k.var(offset))
        self.loop = k.loop(self.first, self.last)
        self.loop.__enter__()
        return self.offsets

    def __exit__(self, *exception: object) -> None:
        self.advance(len(self.counters))
        self.loop.__exit__(None, None, None)

    def advance(self, axis: int) -> None:
        """One step of an axis; where it is through, back to its begin and one step of the axis before."""
        k = self.k
        for offset, strides in zip(self.offsets, self.strides, strict=True):
            offset.set(offset.get() + strides[axis])
        if axis == 0:
            return
        counter, size = self.counters[axis - 1], self.sizes[axis - 1]
        counter.set(counter.get() + 1)
        with k.when(counter.get() == size):
            counter.set(0)
            for offset, strides in zip(self.offsets, self.strides, strict=True):
                offset.set(offset.get() - strides[axis] * size)
            self.advance(axis - 1)


def _inner(
    k: Builder, expression: Expression, walk: Walk, pointers: Sequence[Value], steps: Sequence[Value | None], begin: Value, end: Value
) -> None:
    """The inner axis from `begin` to `end`."""
    count = len(expression.inputs)
    fixed = {i: load(k, pointers[i], 0) for i in range(count) if walk.inner[i] == 0}

    def body(at: Value, lanes: int, mask: Value | None = None) -> None:
        values = [fixed[i] if i in fixed else fetch(k, pointers[i], at, steps[i], lanes, mask) for i in range(count)]
        for value, pointer, step in zip(expression.emit(k, values, lanes), pointers[count:], steps[count:], strict=True):
            put(k, value, pointer, at, step, mask)

    rest = begin
    width = walk.lanes * walk.wide
    for lanes in dict.fromkeys((width, walk.lanes)) if not walk.masked else (width,):
        if lanes > 1:
            whole = rest + (end - rest) / lanes * lanes
            with k.loop(rest, whole, lanes) as i:
                body(i, lanes)
            rest = whole
    if walk.masked:
        with k.loop(rest, end, width) as i:
            body(i, width, k.lane_mask(end - i, width))
        return
    with k.loop(rest, end) as i:
        body(i, 1)


def fetch(k: Builder, pointer: Value, at: Value, step: Value | None, lanes: int, mask: Value | None) -> Value:
    """Elements at `at`, or at `at * step` for each lane where the stride is not 1, in the compute type."""
    if step is None:
        return load(k, pointer, at, lanes, mask)
    if lanes == 1:
        return load(k, pointer, at * step)
    if mask is not None:
        places = [(at + lane) * step for lane in range(lanes)]
        offsets = k.splat(places[0], lanes)
        for lane, place in enumerate(places[1:], 1):
            offsets = k.insert(offsets, place, lane)
        return widen(k, k.gather(pointer, offsets, mask))
    value = k.splat(k.load(pointer, at * step), lanes)
    for lane in range(1, lanes):
        value = k.insert(value, k.load(pointer, (at + lane) * step), lane)
    return widen(k, value)


def put(k: Builder, value: Value, pointer: Value, at: Value, step: Value | None, mask: Value | None) -> None:
    """Stores elements at `at`, or lane by lane with a stride."""
    if step is None:
        store(k, value, pointer, at, mask)
        return
    value = k.convert(value, pointer.type.dtype)
    if mask is None:
        for lane in range(value.lanes):
            k.store(k.extract(value, lane), pointer, (at + lane) * step)
        return
    for lane in range(value.lanes):
        with k.when(k.extract(mask, lane)):
            k.store(k.extract(value, lane), pointer, (at + lane) * step)
